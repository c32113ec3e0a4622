"""Runs on the Hugging Face Hub: a repository is a run's folder, with a model card and a video of the last elite."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfile, copytree, rmtree
from typing import TYPE_CHECKING, NamedTuple

from neuroevo.core.errors import UserError
from neuroevo.core.extras import require
from neuroevo.core.user_module import KEPT
from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.paths import CONFIG, CSV, check_run
from neuroevo.system.files import make_folder, written_aside

if TYPE_CHECKING:
    from neuroevo.analysis.run import Run

_CARD = "README.md"
_VIDEO = "elite"  # without its ending
_FILES = (DATABASE, CONFIG, CSV, _CARD, f"{_VIDEO}.*", f"{KEPT}/*")

_TEXT = """
# {algorithm} on {env}

A network of {dimension:,} weights, which neuroevolution has trained: neuroevo {version}, seed {seed}. The repository is
the folder of the run. `{database}` has its configuration, every generation's numbers, the genomes of all members and
the state to continue from.

| | |
|---|---|
| environment | {env} |
| algorithm | {algorithm} |
| network | {network} |
| generations | {generations:,} |
| frames played | {frames:,} |
| return of the last elite | {score} |

```sh
pip install 'neuroevo[hub]'
neuroevo pull {repo} --out {name}
neuroevo evaluate {name}
neuroevo inspect {name}
neuroevo train --resume {name}
```
"""


class Pushed(NamedTuple):
    """What was pushed.

    Attributes:
        url: Of the repository.
        no_video: Why there is no video; None if there is one.
    """

    url: str
    no_video: str | None


def push(run: Run, repo: str, *, private: bool = False) -> Pushed:
    """Upload a run to the Hugging Face Hub; see neuroevo.analysis.run.Run.push()."""
    require("hub", "huggingface_hub")
    from huggingface_hub import HfApi

    with tempfile.TemporaryDirectory(prefix="neuroevo-push-") as folder, _hub(f"push to {repo}"):
        api = HfApi(library_name="neuroevo")
        url = api.create_repo(repo, private=private, exist_ok=True)
        no_video = write_repository(run, url.repo_id, Path(folder))
        message = f"Upload generation {run.finished()}"
        api.upload_folder(repo_id=url.repo_id, folder_path=folder, commit_message=message, delete_patterns=[*_FILES])
    return Pushed(str(url), no_video)


def pull(repo: str, out: Path | str | None = None, *, revision: str | None = None) -> Path:
    """Download a run that `push` has uploaded to the Hugging Face Hub, as `neuroevo pull` does.

    Args:
        repo: The repository, such as "user/pong".
        out: The run's folder, which must not exist; None is runs/NAME, where NAME is the second part of `repo`.
        revision: A branch, tag or commit; None is the newest.

    Returns:
        The folder, for `neuroevo.open_run` and every command. Code of the run's author is run with `trust` alone.

    Raises:
        UserError: The package huggingface_hub is not installed, the Hub refuses or cannot be reached, the repository
            does not hold a run, or the folder exists.
    """
    require("hub", "huggingface_hub")
    from huggingface_hub import snapshot_download

    path = Path("runs") / repo.rpartition("/")[2] if out is None else Path(out)
    if path.exists():
        raise UserError(f"{path} exists, expected another folder")
    make_folder(path.absolute().parent)
    with written_aside(path, mark=DATABASE) as aside:
        with _hub(f"pull {repo}"):
            snapshot_download(
                repo, revision=revision, local_dir=aside, allow_patterns=[*_FILES], library_name="neuroevo"
            )
        rmtree(aside / ".cache", ignore_errors=True)  # the library's notes of what is there
        if not (aside / DATABASE).is_file():
            raise UserError(f"{repo} does not hold a run: expected {DATABASE} in it")
        check_run(aside)
    return path


def write_repository(run: Run, repo: str, folder: Path) -> str | None:
    """Write the files of a repository: what others need of the run's folder, the card, and the video.

    Args:
        run: The run, which may be training.
        repo: The repository's name, for the card.
        folder: Where to, an empty folder.

    Returns:
        Why there is no video; None if there is one.

    Raises:
        UserError: No generation is finished, or the run's files cannot be read.
    """
    run.finished()
    with Database(run.path / DATABASE) as database:
        database.copy(folder / DATABASE)
    for name in (CONFIG, CSV):
        if (run.path / name).is_file():
            copyfile(run.path / name, folder / name)
    if (run.path / KEPT).is_dir():
        copytree(run.path / KEPT, folder / KEPT)
    (folder / _CARD).write_text(model_card(run, repo), encoding="utf-8")
    try:
        run.render(folder / f"{_VIDEO}{'.html' if run.config.environment.accelerated else '.mp4'}")
    except UserError as error:
        return str(error)
    return None


def model_card(run: Run, repo: str) -> str:
    """Return the model card of a run: metadata of the Hub, then what was trained and how to play it.

    Args:
        run: The run.
        repo: The repository's name.

    Raises:
        UserError: No generation is finished.
    """
    from huggingface_hub import EvalResult, ModelCardData

    config, last, env = run.config, run.rows(fitness=False)[run.finished()], run.config.env.name
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
    )
    return f"---\n{data.to_yaml()}\n---\n{text}"


@contextmanager
def _hub(what: str) -> Iterator[None]:
    """In the block, raise the Hub's failures as UserError, which says what was to be done."""
    import httpx2
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        LocalTokenNotFoundError,
    )

    try:
        yield
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, LocalTokenNotFoundError) as error:
        response = getattr(error, "response", None)
        hint = "; expected a token: hf auth login" if response is not None and response.status_code == 401 else ""
        raise UserError(f"cannot {what}: {' '.join(str(error).split())}{hint}") from error
    except (httpx2.HTTPError, ConnectionError) as error:
        raise UserError(f"cannot {what}: the Hub cannot be reached: {error}") from error
