"""Python interface to the commands: train a run and analyze its results."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from neuroevo.analysis.evaluation import Evaluation, episode_seeds, evaluate_run
from neuroevo.analysis.population import GenerationMembers, read_population
from neuroevo.config.load import load_config, make_config
from neuroevo.config.schema import Config
from neuroevo.core.behavior import Behavior
from neuroevo.core.errors import UserError
from neuroevo.runs.reader import RunReader
from neuroevo.sessions.evaluators import info_of, make_evaluator
from neuroevo.sessions.folder import RunFolder
from neuroevo.sessions.training_run import run
from neuroevo.training.callback import AnyCallback
from neuroevo.training.state import finished

if TYPE_CHECKING:
    import numpy as np
    import pandas
    from matplotlib.figure import Figure

    from neuroevo.analysis.curves import XAxis
    from neuroevo.analysis.exported_network import Exported
    from neuroevo.analysis.policy import Policy
    from neuroevo.analysis.rendering import Rendered
    from neuroevo.analysis.web_page import Page


class Run(RunReader):
    """Read-only view of a run's folder, which another process may be training, or of the elite in a genome file.

    Attributes:
        path: The folder, or the genome file.
        config: The run's configuration.

    Example:
        >>> import neuroevo
        >>> run = neuroevo.open_run("runs/frostbite")
        >>> run.metrics["test_mean"].max(), run.evaluate(episodes=100).summary.mean
        >>> run.render("elite.mp4")

    A run that you did not create may reference external modules and models: `open_run(path, trust=True)` allows them,
    and otherwise NotTrustedError lists them. See docs/security.md.
    """

    @property
    def metrics(self) -> pandas.DataFrame:
        """Metrics of generations with a tested elite, indexed by generation, as in metrics.csv.

        Raises:
            UserError: pandas is not installed, or the database is damaged or cannot be read.
        """
        try:
            import pandas
        except ImportError:
            raise UserError("metrics require the package pandas: pip install pandas (or use rows())") from None
        rows = self.rows(fitness=False)
        return pandas.DataFrame(rows).set_index("generation") if rows else pandas.DataFrame()

    def evaluate(
        self,
        episodes: int = 30,
        generation: int | None = None,
        seed: int | None = None,
        max_episode_steps: int = 0,
    ) -> Evaluation:
        """Evaluate the elite of one generation, as `neuroevo evaluate` does; see neuroevo.evaluate()."""
        return evaluate_run(self, generation, episodes, seed, max_episode_steps)

    def render(
        self,
        path: Path | str,
        *,
        generation: int | None = None,
        members: int = 1,
        episodes: int = 1,
        seed: int | None = None,
        max_episode_steps: int = 2500,
        scale: int = 2,
        fps: float | None = None,
        captions: bool = True,
        force: bool = True,
        on_progress: Callable[[int, int], None] = lambda episodes, steps: None,
    ) -> Rendered | Page:
        """Render a video of an elite, as `neuroevo render` does, or an HTML page for a run on Brax.

        Args:
            path: The file to write: FILE.mp4 or FILE.gif, or FILE.html for a run on Brax.
            generation: The elite's generation; None for the last finished generation.
            members: Number of agents side by side: the elite, then the next best members.
            episodes: Number of episodes, shown one after another.
            seed: Seed that the episodes' seeds are drawn from; None for the held-out seeds.
            max_episode_steps: Steps after which an episode is cut off; 0 means the environment's own limit.
            scale: Width and height in the video of each pixel of a screen.
            fps: Frames per second; None for real time.
            captions: Whether to write names and returns above the screens.
            force: Whether to replace a file.
            on_progress: Called with the number of finished episodes and the steps of the current episode, for a page of
                all finished episodes.

        Returns:
            The outcomes, the number of frames and, for a video, its size.

        Raises:
            UserError: The generation does not exist, its members are no longer available, the suffix of the file is not
                supported, the file exists and `force` is False, or the environment has no screens.
        """
        from neuroevo.analysis.rendering import choose_agents, render
        from neuroevo.analysis.video.writer import check_format
        from neuroevo.system.files import written_aside

        out, seeds = Path(path), episode_seeds(episodes, seed)
        if self.config.environment.accelerated:
            from neuroevo.analysis.web_page import check_name, check_options, write_page

            check_options(
                {"members": members > 1, "scale": scale != 2, "fps": fps is not None, "captions": not captions}
            )
            check_name(out)
            _, elite = self.elite(generation)
            with written_aside(out, force) as aside:
                return write_page(
                    self.config, elite, seeds, aside, max_episode_steps=max_episode_steps, on_progress=on_progress
                )
        check_format(out)
        _, agents = choose_agents(self, generation, members)
        with written_aside(out, force) as aside:
            return render(
                self.config,
                agents,
                seeds,
                aside,
                max_episode_steps=max_episode_steps,
                scale=scale,
                fps=fps,
                captions=captions,
                reference_batch=self.reference_batch(),
                on_progress=on_progress,
            )

    def policy(self, generation: int | None = None) -> Policy:
        """Return an elite as a function from observations to actions.

        Args:
            generation: The generation; None for the last finished one.

        Returns:
            The policy: `policy(observation)` returns an action; call `policy.reset()` at the start of an episode.

        Raises:
            UserError: The generation does not exist, or its weights are not stored.

        Example:
            >>> env = neuroevo.make_vec(run.config.env.name, 1)
            >>> policy = run.policy()
            >>> observations, _ = env.reset(seed=0)
            >>> observations, rewards, *_ = env.step(policy(observations))
        """
        from neuroevo.analysis.policy import Policy

        return Policy(self.config, self.elite(generation)[1], self.reference_batch())

    def weights(self, generation: int | None = None) -> np.ndarray:
        """Return the weights of an elite's network, float32 [D], in the order of its layers.

        Args:
            generation: The generation; None for the last finished one.

        Raises:
            UserError: The generation does not exist, or its weights are not stored.
        """
        from neuroevo.analysis.exported_network import elite_network

        number, elite = self.elite(generation)
        return elite_network(self.config, elite, number, self.reference_batch()).theta

    def export(
        self,
        path: Path | str,
        generation: int | None = None,
        format: Literal["keras", "savedmodel", "onnx", "npz", "genome"] | None = None,
    ) -> Exported:
        """Write an elite as a network or a genome file, as `neuroevo export` does; a file is replaced.

        Args:
            path: The file, or for savedmodel the folder, to write.
            generation: The generation; None for the last finished one.
            format: The format; None for the format of the path's suffix: ".keras", ".onnx", ".npz", ".toml" for a
                genome file, or no suffix for savedmodel.

        Returns:
            The exported network; `neuroevo.analysis.exported_network.how_to_act` describes how to turn its outputs into
            actions.

        Raises:
            UserError: The generation does not exist, its weights are not stored, the format does not match the path, or
                the elite cannot be written in this format.
        """
        from neuroevo.analysis.network_export import export, format_of

        out = Path(path)
        return export(self, generation, out, format or format_of(out), force=True)

    def plot(self, x: XAxis = "frames", column: str | None = None) -> Figure:
        """Plot the population's best and mean fitness, and the elites' validation and test returns.

        Args:
            x: The axis: "frames", "steps" (decisions), "time" (wall time) or "generations".
            column: A column of metrics.csv to draw instead, such as "sigma".

        Returns:
            A matplotlib figure, which notebooks display; figure.savefig("curves.png") saves it.

        Raises:
            UserError: The axis or column does not exist, or no generation is finished.
        """
        from neuroevo.analysis.run_plots import plot

        return plot([self], x, column)

    def population(self, generation: int | None = None, behaviors: bool | Behavior = False) -> GenerationMembers:
        """Return the members of a generation with their parents, fitness and, on request, behaviors.

        Args:
            generation: Index of the generation; None for the last finished generation.
            behaviors: Behaviors to return, recomputed by replaying the members' episodes if they are not stored: a
                neuroevo.core.behavior.Behavior selects their type; True selects the algorithm's or, if it records none,
                the final behavior of each episode.

        Raises:
            UserError: The generation does not exist; its members are not stored and the checkpoint before it was
                deleted (see keep_last and keep_every of [checkpoints]); the environment has no behaviors; or the
                replayed episodes differ from those of the run.
        """
        return read_population(self, generation, behaviors)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}: {self._summary()})"

    def _repr_html_(self) -> str:
        """Return the HTML for notebooks: a summary and the last five generations."""
        shown = ("generation", "fitness_mean", "fitness_max", "validation_mean", "test_mean", "steps_total")
        lines = [f"<b>{html.escape(str(self.path))}</b>: {html.escape(self._summary())}", "<table>"]
        lines.append("<tr>" + "".join(f"<th>{name}</th>" for name in shown) + "</tr>")
        for row in self.rows(fitness=False)[-5:]:
            values = ("" if row[name] is None else f"{row[name]:,.10g}" for name in shown)
            lines.append("<tr>" + "".join(f"<td>{value}</td>" for value in values) + "</tr>")
        return "\n".join([*lines, "</table>"])

    def _summary(self) -> str:
        rows, config = self.rows(fitness=False), self.config
        what = f"{config.algorithm_name} on {config.env.name}, {config.network}, seed {config.training.seed}"
        return f"{what}, {len(rows)} generation{'' if len(rows) == 1 else 's'}"


def train(
    config: Config | Mapping[str, Any] | Path | str,
    overrides: Mapping[str, Any] | Sequence[str] = (),
    *,
    out: Path | str | None = None,
    resume: bool | Literal["auto"] = False,
    trust: bool = False,
    callbacks: Iterable[AnyCallback] = (),
    progress: bool = False,
    command: Sequence[str] = ("neuroevo.train",),
) -> Run:
    """Train a run until its budget is spent, as `neuroevo train` does.

    The run's folder then contains the configuration, the metrics and the elite of every generation, checkpoints,
    TensorBoard events and a log. An exception that ends the training early, including KeyboardInterrupt, is re-raised
    after a checkpoint is written; the same call with resume="auto" continues from it.

    Args:
        config: A TOML file, a JSON file of the 2018 code, a preset's name, tables (a mapping of sections to keys and
            values), or a configuration returned by `load_config` or `make_config`.
        overrides: Overrides of its keys, such as {"training.seed": 3} or ["training.seed=3"].
        out: The run's folder; None for runs/NAME-TIME, where NAME is the file's or preset's name, or "run", and
            TIME is the local time.
        resume: False: the folder must not contain a run. True: the folder must contain a run, which continues with this
            configuration. "auto": start or continue a run; a finished run whose budget is spent is returned unchanged.
        trust: Allow external code and models referenced by runs that you did not create: the resumed run,
            training.start_from, or a run whose config.toml is `config`. See docs/security.md.
        callbacks: Objects of neuroevo.Callback, or functions that are called with the record of each generation.
        progress: Whether to show progress: a table and a bar on a terminal and, with ipywidgets installed, in a
            notebook; otherwise plain lines.
        command: The command line to record as the origin of the run.

    Returns:
        The finished run, for its metrics, elites, evaluations and videos.

    Raises:
        UserError: The configuration is invalid (the message lists all problems); the folder contains a run, contains no
            run, or is not writable; the run cannot continue with this configuration; or the device or an environment is
            not available.
        DiskError: The disk is full or broken.
        SimulationError: All episodes of a population or of a validation failed.
        EnvironmentFailure: A Gymnasium environment raised an exception or did not respond in time.

    Example:
        >>> import neuroevo
        >>> run = neuroevo.train("demo", {"training.generations": 3}, out="runs/climber", resume="auto")
        >>> run.metrics["fitness_max"].iloc[-1]
        >>> generation, elite = run.elite()
    """
    name = "run"
    if isinstance(config, (str, Path)):
        name, config = Path(config).stem, load_config(config, overrides, trust=trust)
    elif not isinstance(config, Config) or overrides:
        config = make_config(config.tables() if isinstance(config, Config) else config, overrides)
    if resume not in (True, False, "auto"):
        raise UserError(f"resume is {resume!r}, expected True, False or 'auto'")
    if resume and out is None:
        raise UserError(f"resume is {resume!r}, expected out to be the run's folder")
    if out is None or not resume:
        folder = RunFolder.create(out, config, name, trust=trust)
    elif resume is True:
        folder = RunFolder.resume(out, config=config, trust=trust)
    else:
        folder = RunFolder.resume_or_create(out, config, trust=trust)
    if finished(folder.state, config.training) and folder.ended:
        folder.close()
        return Run(folder.path, trust=trust, like=config)
    with make_evaluator(config, folder.reference_batch) as evaluator, folder.open(command, info_of(evaluator)):
        if progress:
            from neuroevo.sessions.progress import make_progress

            with make_progress() as shown:
                run(config, evaluator, folder, [*callbacks, shown])
        else:
            run(config, evaluator, folder, callbacks)
    return Run(folder.path, trust=trust, like=config)
