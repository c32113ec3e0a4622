"""Runs on the Hugging Face Hub: a repository holds a run's folder, a model card and a video of the last elite."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfile, rmtree
from typing import NamedTuple

from neuroevo.analysis.run import Run
from neuroevo.config.own_runs import forget
from neuroevo.core.errors import NativeError, UserError, cannot_write, is_of_disk
from neuroevo.core.extras import require
from neuroevo.core.user_module import KEPT
from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.paths import CONFIG, CSV, check_names, check_run
from neuroevo.sessions.metrics_csv import CsvFile
from neuroevo.system.files import check_kind, make_folder, written_aside

_CARD, _VIDEO, _PAGE = "README.md", "elite.mp4", "elite.html"
_FILES = (DATABASE, CONFIG, CSV, _CARD, _VIDEO, _PAGE)
_MODULE = re.compile(rf"{KEPT}(?:/[^/.]+)+\.py")

_TEXT = """
# {algorithm} on {env}

A network with {dimension:,} weights, trained by neuroevolution with neuroevo {version}, seed {seed}. The repository is
the folder of a run: `{database}` contains its configuration, the metrics of every generation, the genomes of all
members, and the state from which training can continue.

| | |
|---|---|
| environment | {env} |
| algorithm | {algorithm} |
| network | {network} |
| generations | {generations:,} |
| frames played | {frames:,} |
| return of the last elite | {score} |

With neuroevo and its extra `hub`:

```sh
neuroevo pull {repo} --out {name}
neuroevo evaluate {name}
neuroevo inspect {name}
neuroevo train --resume {name} --set training.generations={more}
```
"""


class Pushed(NamedTuple):
    """Result of a push.

    Attributes:
        url: Address of the repository.
        no_video: Reason why the video is missing; None if it was rendered.
    """

    url: str
    no_video: str | None


def push(run: Run | Path | str, repo: str, *, private: bool = False, trust: bool = False) -> Pushed:
    """Upload a run to the Hugging Face Hub, as `neuroevo push` does, with a model card and a video.

    Args:
        run: The run or its folder; the run may be training.
        repo: The repository, such as "user/pong", created if it does not exist. Its card is replaced.
        private: Require a private repository. Otherwise a new repository has its owner's default visibility.
        trust: Allow external code and models referenced by a run in a folder; see docs/security.md.

    Returns:
        The address of the repository, and the reason why the video is missing, or None.

    Raises:
        UserError: No generation is finished, the package huggingface_hub is not installed, or the Hub refuses the
            request or cannot be reached.
        DiskError: The disk is full or broken.
    """
    require("hub", "huggingface_hub")
    from huggingface_hub import HfApi

    run, api = run if isinstance(run, Run) else Run(run, trust=trust), HfApi(library_name="neuroevo")
    check_run(run.path)
    with tempfile.TemporaryDirectory(prefix="neuroevo-push-") as folder:
        with _hub(f"push to {repo}"):
            name = repo if "/" in repo else f"{api.whoami()['name']}/{repo}"
        copy = _copy(run, Path(folder))
        (Path(folder) / _CARD).write_text(model_card(copy, name), encoding="utf-8")
        no_video = _render(copy)
        with _hub(f"push to {repo}"):
            url = api.create_repo(name, private=private or None, exist_ok=True)
            if private and not api.model_info(name).private:
                raise UserError(f"{name} is a public repository, expected a private or a new one")
            api.upload_folder(
                repo_id=name,
                folder_path=folder,
                commit_message=f"Upload generation {copy.finished()}",
                delete_patterns=[*_FILES, f"{KEPT}/*"],
            )
    return Pushed(str(url), no_video)


def pull(repo: str, out: Path | str | None = None, *, revision: str | None = None) -> Path:
    """Download a run that `push` has uploaded to the Hugging Face Hub, as `neuroevo pull` does.

    Args:
        repo: The repository, such as "user/pong".
        out: The run's folder, which must not exist; None for runs/NAME, where NAME is the second part of `repo`.
        revision: A branch, tag or commit; None for the newest.

    Returns:
        The folder, for `neuroevo.open_run` and every command. External code of the run is only executed with `trust`.

    Raises:
        UserError: The package huggingface_hub is not installed, the Hub refuses the request or cannot be reached, the
            repository does not hold a run, or the folder exists.
        DiskError: The disk is full or broken.
    """
    require("hub", "huggingface_hub")
    from huggingface_hub import HfApi, hf_hub_download

    path = Path("runs") / repo.rpartition("/")[2] if out is None else Path(out)
    if path.exists():
        raise UserError(f"{path} exists, expected another folder")
    with _hub(f"pull {repo}"):
        found = HfApi(library_name="neuroevo").model_info(repo, revision=revision)
        names = [each.rfilename for each in found.siblings or ()]
    if DATABASE not in names:
        raise UserError(f"{repo} does not hold a run: expected {DATABASE} in it")
    make_folder(path.absolute().parent)
    with written_aside(path, mark=DATABASE) as aside:
        for name in names:  # sequentially in this thread, which Ctrl-C can interrupt
            if name in _FILES or _MODULE.fullmatch(name):
                with _hub(f"pull {name} of {repo}"):
                    hf_hub_download(repo, name, revision=found.sha, local_dir=aside, library_name="neuroevo")
        rmtree(aside / ".cache", ignore_errors=True)  # huggingface_hub's metadata
        with Database(aside / DATABASE):
            pass  # check that it is a run's database
        forget(path / DATABASE)
    return path


def _copy(run: Run, folder: Path) -> Run:
    """Copy a consistent snapshot of a run to an empty folder; return the copy.

    Raises:
        DiskError: The disk is full or broken.
        UserError: No generation is finished, or the run's files cannot be read.
    """
    run.finished()
    check_names(run.path)
    with Database(run.path / DATABASE) as database:
        database.copy(folder / DATABASE)
    for path, _, files in os.walk(run.path / KEPT):
        for source in (Path(path) / name for name in files if name.endswith(".py")):
            check_kind(source)
            target = folder / source.relative_to(run.path)
            target.parent.mkdir(parents=True, exist_ok=True)
            copyfile(source, target)
    copy = Run(folder, trust=True, like=run.config)  # trust was checked when the run was opened
    (folder / CONFIG).write_text(copy.config.toml(), encoding="utf-8")
    CsvFile(folder, lambda: copy.rows(fitness=False))
    return copy


def _render(run: Run) -> str | None:
    """Render a video, or for a run on Brax a page, into a run's folder; return the reason of a failure, or None."""
    try:
        run.render(run.path / (_PAGE if run.config.environment.accelerated else _VIDEO))
    except (UserError, NativeError) as error:
        return str(error).partition("\n")[0]
    return None


def model_card(run: Run, repo: str) -> str:
    """Return the model card of a run: metadata for the Hub, then a description of the run and the commands to use it.

    Args:
        run: The run.
        repo: The repository's name.

    Raises:
        UserError: No generation is finished.
    """
    from huggingface_hub import EvalResult, ModelCardData

    run.finished()
    config, last, env = run.config, run.rows(fitness=False)[-1], run.config.env.name
    score, results = "not tested", []
    if last["test_mean"] is not None:
        mean, error = last["test_mean"], last["test_standard_error"] or 0.0
        score = f"{mean:,.2f} ± {error:,.2f} (mean of {config.training.test_episodes:,} episodes, standard error)"
        task = "reinforcement-learning"
        results = [EvalResult(task, env, env, "mean_reward", f"{mean:.2f} +/- {error:.2f}", task_name=task)]
    data = ModelCardData(
        library_name="neuroevo",
        pipeline_tag="reinforcement-learning",
        tags=["neuroevolution", "reinforcement-learning", env],
        model_name=repo.rpartition("/")[2],
        eval_results=results or None,
    )
    text = _TEXT.format(
        algorithm=config.algorithm_name,
        env=env,
        dimension=len(run.weights()),
        version=run.about().info["versions"].get("neuroevo"),
        seed=config.training.seed,
        database=DATABASE,
        network=config.network,
        generations=last["generation"] + 1,
        frames=last["frames_total"],
        score=score,
        repo=repo,
        name=repo.rpartition("/")[2],
        more=2 * (last["generation"] + 1),
    )
    return f"---\n{data.to_yaml()}\n---\n{text}"


@contextmanager
def _hub(what: str) -> Iterator[None]:
    """Raise failures of the Hub and its library in the block as UserError, and those of the disk as DiskError."""
    import httpx2

    try:
        yield
    except UserError:
        raise
    except (httpx2.HTTPError, OSError, ValueError, RuntimeError) as error:
        if isinstance(error, OSError) and is_of_disk(error):
            raise cannot_write("a download or upload", error) from error
        refused = getattr(getattr(error, "response", None), "status_code", None) == 401
        hint = (
            "; expected an existing repository, and a token for your own or a private one: hf auth login"
            if refused
            else ""
        )
        raise UserError(f"cannot {what}: {' '.join(str(error).split())}{hint}") from error
