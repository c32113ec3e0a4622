"""What the commands do, as calls: train a run, and look at it."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from neuroevo.analysis.evaluation import Evaluation, episode_seeds, evaluate_run
from neuroevo.analysis.population import Members, read_population
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
    """A run in a folder, which another process may be training meanwhile; nothing is written into the folder.

    Attributes:
        path: The folder.
        config: The run's configuration.

    Example:
        >>> import neuroevo
        >>> run = neuroevo.open_run("runs/frostbite")
        >>> run.metrics["test_mean"].max(), run.evaluate(episodes=100).summary.mean
        >>> run.render("elite.mp4")

    A run that somebody else has made may name modules and models of theirs: `open_run(path, trust=True)` runs these,
    and without it NotTrustedError says what they are. See docs/security.md.
    """

    @property
    def metrics(self) -> pandas.DataFrame:
        """The rows of metrics.csv, indexed by generation, without the fitness of every genome.

        Raises:
            UserError: pandas is not installed, or the file is damaged or cannot be read.
        """
        try:
            import pandas
        except ImportError:
            raise UserError("metrics need the package pandas: pip install pandas (rows() does without)") from None
        rows = self.rows(fitness=False)
        return pandas.DataFrame(rows).set_index("generation") if rows else pandas.DataFrame()

    def evaluate(
        self,
        episodes: int = 30,
        generation: int | None = None,
        seed: int | None = None,
        max_episode_steps: int = 0,
    ) -> Evaluation:
        """Replays the elite of one generation, as `neuroevo evaluate` does; see neuroevo.evaluate()."""
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
        on_progress: Callable[[int, int], None] = lambda episodes, steps: None,
    ) -> Rendered | Page:
        """Make a video of an elite at play, as `neuroevo render` does; of a run on Brax a page for a browser.

        Args:
            path: The file to write, or to replace: FILE.mp4 or FILE.gif; of a run on Brax FILE.html.
            generation: Whose elite; None: of the last finished one.
            members: Number of players side by side: the elite, then the next best members.
            episodes: Number of episodes, shown one after another.
            seed: Seed that the episodes' seeds are drawn from; None for the held-out seeds.
            max_episode_steps: Where episodes are cut off, in steps; 0: where the environment says.
            scale: How many pixels a side a screen's pixel becomes.
            fps: Frames per second; None: real time.
            captions: Whether names and returns stand above the screens.
            on_progress: Told how many episodes are over, and the steps of the one that is played.

        Returns:
            What was written: returns, frames and size.

        Raises:
            UserError: There is no such generation, its members are not known any more, the file's name has another
                ending, or the environment has no screens.
        """
        from neuroevo.analysis.rendering import choose_agents, render
        from neuroevo.analysis.video.writer import check_format
        from neuroevo.system.files import written_aside

        out, seeds = Path(path), episode_seeds(episodes, seed)
        if self.config.environment.accelerated:
            from neuroevo.analysis.web_page import check_name, write_page

            chosen = {"members": members > 1, "scale": scale != 2, "fps": fps is not None, "captions": not captions}
            for name in (name for name, given in chosen.items() if given):
                raise UserError(f"{name} is for videos; of a run on Brax a page with the elite alone is made")
            check_name(out)
            _, elite = self.elite(generation)
            with written_aside(out, force=True) as aside:
                return write_page(
                    self.config, elite, seeds, aside, max_episode_steps=max_episode_steps, on_progress=on_progress
                )
        check_format(out)
        _, players = choose_agents(self, generation, members)
        with written_aside(out, force=True) as aside:
            return render(
                self.config,
                players,
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
            The policy: `policy(observation)` is an action; `policy.reset()` begins an episode.

        Raises:
            UserError: There is no such generation, or its weights are not stored.

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
            UserError: There is no such generation, or its weights are not stored.
        """
        return self._network(generation).theta

    def export(
        self,
        path: Path | str,
        generation: int | None = None,
        format: Literal["keras", "savedmodel", "onnx", "npz"] | None = None,
    ) -> Exported:
        """Write an elite as a network that works without neuroevo, as `neuroevo export` does; a file is replaced.

        Args:
            path: The file, or for savedmodel the folder, to write.
            generation: The generation; None for the last finished one.
            format: The format; None for that of the path's ending: ".keras", ".onnx", ".npz", or none for
                savedmodel.

        Returns:
            The network that was written; `neuroevo.analysis.exported_network.how_to_act` says how to turn its outputs
            into actions.

        Raises:
            UserError: There is no such generation, its weights are not stored, or the format does not fit the path.
        """
        from neuroevo.analysis.network_export import format_of, write

        network, out = self._network(generation), Path(path)
        write(network, out, format or format_of(out), force=True)
        return network

    def _network(self, generation: int | None) -> Exported:
        from neuroevo.analysis.exported_network import elite_network

        number, elite = self.elite(generation)
        return elite_network(self.config, elite, number, self.reference_batch())

    def plot(self, x: XAxis = "frames", column: str | None = None) -> Figure:
        """Draws the run's curves: the population's best and mean fitness, and the elites' validation and test returns.

        Args:
            x: The axis: "frames", "steps" (decisions), "time" (wall time) or "generations".
            column: A column of metrics.csv to draw instead, such as "sigma".

        Returns:
            A matplotlib figure, which a notebook shows; figure.savefig("curves.png") writes it.

        Raises:
            UserError: There is no such axis or column, or no finished generation.
        """
        from neuroevo.analysis.run_plots import plot

        return plot([self], x, column)

    def population(self, generation: int | None = None, behaviors: bool | Behavior = False) -> Members:
        """Return the members of a generation with their parents, fitness and, on request, behaviors.

        Args:
            generation: Which; None: the last finished one.
            behaviors: Whether to play the members' episodes again, with the seeds that they had, to record behaviors:
                a neuroevo.core.behavior.Behavior says which, True those of a novelty search, or where episodes ended.

        Raises:
            UserError: There is no such generation; the state before it is gone (keep_last and keep_every
                of [checkpoints] say how many stay); the environment has no behaviors; or the episodes end otherwise
                here than in the run.
        """
        return read_population(self, generation, behaviors)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}: {self._summary()})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the summary and the last generations."""
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
    """Trains a run until its budget is spent, as `neuroevo train` does.

    The run's folder then holds the configuration, the metrics and the elite of every generation, states,
    TensorBoard events and a log. An exception that ends the training early, KeyboardInterrupt too, is raised again
    after a state was stored; the same call with resume="auto" continues from there.

    Args:
        config: A TOML file, a JSON file of the 2018 code, a preset's name, tables (a mapping of sections to keys and
            values), or a configuration that `load_config` or `make_config` returned.
        overrides: Changes to its keys, such as {"training.seed": 3} or ["training.seed=3"].
        out: The run's folder; None for runs/NAME-TIME, where the name is that of the file or preset, or "run", and the
            time is local.
        resume: False: the folder must not hold a run. True: it must, and the run goes on with this configuration.
            "auto": whichever it is; a run whose budget is spent and that came to its end is returned as it is.
        trust: Whether to run code and read models that runs name beside those of `config`, whoever made these runs: one
            that goes on, training.start_from, or a run whose config.toml `config` is. See docs/security.md.
        callbacks: Hear how it goes: objects of neuroevo.Callback, or functions of each generation's record.
        progress: Whether to show the generations: a table and a bar on a terminal and, with ipywidgets installed, in a
            notebook; else plain lines.
        command: The command line to record as the one that started the run.

    Returns:
        The finished run, for its metrics, elites, evaluations and videos.

    Raises:
        UserError: The configuration has problems, all of which the message lists; the folder holds a run, holds none,
            or may not be written to; the run cannot go on with this configuration; or the device or an environment
            cannot be used here.
        DiskError: The disk is full or broken.
        SimulationError: All episodes of a population or of a validation failed.
        EnvironmentFailure: An environment of Gymnasium raised an exception or did not answer in time.

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
        raise UserError(f"resume is {resume!r}, but out does not name the run's folder")
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
