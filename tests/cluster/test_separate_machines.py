"""Runs on three machines whose networks are cut and slowed, or which are killed, give the results of one machine."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

import neuroevo.core.version
from tests.support import separate_machines
from tests.support.cluster_runs import finish, start, train, wait_until
from tests.support.runs import count_rows, read_rows, results
from tests.support.separate_machines import SeparateMachines

GENERATIONS = 90
reason = separate_machines.why_not()
pytestmark = [pytest.mark.thorough, pytest.mark.slow, pytest.mark.skipif(bool(reason), reason=reason)]


@pytest.fixture(scope="module")
def cluster():
    with SeparateMachines(3) as found:
        found.start_ray()
        yield found


@pytest.fixture(scope="module")
def pace(tmp_path_factory):
    """The file while which exists episodes take half a second, so that a run lasts as long as what happens to it."""
    return tmp_path_factory.mktemp("pace") / "slow"


@pytest.fixture(scope="module")
def changes(pace):
    toy = "gymnasium:tests.support.gymnasium_toys:ToyPaced-v0"
    return {
        "env": {"name": toy, "options": {"kwargs": {"file": str(pace), "seconds": 0.5}}},
        "network": {"name": "mlp", "hidden": [6], "normalize_observations": True},
        "algorithm": {"name": "ga", "population": 6, "parents": 2, "sigma": 0.1, "validation_candidates": 2},
        "training": {"generations": GENERATIONS, "validation_episodes": 2, "test_episodes": 2, "seed": 3},
        "hardware": {"lanes": 1, "slots": 2},
    }


@pytest.fixture(scope="module")
def expected(changes, tmp_path_factory):
    return train(tmp_path_factory.mktemp("plain") / "run", changes)


class Run:
    """A run on the cluster, at its slow pace until finish()."""

    def __init__(self, path, changes, cluster, pace):
        self.path, self.cluster, self._changes, self._pace = path, cluster, changes, pace
        self.process = None

    def start(self, resume=False, **keys):
        self._pace.touch()
        changes = {**self._changes, "cluster": {"machines": 3, "retries": 20, **keys}}
        self.process = start(self.path, changes, self.cluster.address, resume, self.cluster.machines[0])

    @property
    def rows(self):
        return count_rows(self.path)

    def wait_for_rows(self, more=1):
        wanted = self.rows + more
        wait_until(lambda: self.rows >= wanted, self.process)

    def wait(self, seconds):
        """Wait while the run continues."""
        until = time.monotonic() + seconds
        wait_until(lambda: time.monotonic() > until, self.process, 2 * seconds + 60)

    def driver(self):
        return self.cluster.machines[0].processes("neuroevo", "train")[0]

    def finish(self):
        assert self.rows < GENERATIONS
        self._pace.unlink()
        return finish(self.process)


@pytest.fixture
def run(tmp_path, changes, cluster, pace):
    """One that was not started. After the test each machine is connected and in the cluster."""
    yield (found := Run(tmp_path / "run", changes, cluster, pace))
    pace.unlink(missing_ok=True)
    if found.process is not None:
        cluster.machines[0].kill("neuroevo", "train")
        found.process.communicate()
    for machine in cluster.machines:
        machine.join()
    cluster.start_ray()


def cut_off(seconds):
    def happen(run):
        run.cluster.machines[1].cut()
        run.wait(seconds)
        run.cluster.machines[1].join()
        run.wait_for_rows()

    return happen


def slow_line(run):
    run.cluster.machines[1].slow(0.4, loss=0.05)
    run.wait_for_rows(4)


def partition_at_submissions(run):
    """Where a generation has ended, the next one is about to be submitted: to the driver's own machine alone."""
    for _ in range(3):
        run.wait_for_rows()
        for machine in run.cluster.machines[1:]:
            machine.cut()
        run.wait(4)
        for machine in run.cluster.machines[1:]:
            machine.join()


def raylet_killed(run):
    assert run.cluster.machines[2].kill("raylet/raylet") == 1
    run.wait_for_rows(2)


def node_and_driver_lost(run):
    assert run.cluster.machines[2].kill()
    os.kill(run.driver(), signal.SIGKILL)
    run.process.communicate()
    run.start(resume=True, machines=2)
    run.wait_for_rows(2)


FAULTS = {
    "cut off for 5 s": cut_off(5),
    "cut off for 30 s": cut_off(30),
    "cut off for 120 s": cut_off(120),
    "a slow line that loses": slow_line,
    "partitions at submissions": partition_at_submissions,
    "a raylet is killed": raylet_killed,
    "a node and the driver are lost": node_and_driver_lost,
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_same_as_on_one_machine(fault, run, expected):
    run.start()
    run.wait_for_rows(2)
    fault(run)
    run.finish()
    assert results(run.path) == expected
    assert all(0 <= row["idle_share"] <= 1 for row in read_rows(run.path))


def test_a_partition_before_the_first_submission(run, expected):
    run.cluster.machines[2].cut()
    run.start(machines=2)
    run.wait_for_rows(2)
    run.cluster.machines[2].join()
    run.wait_for_rows(2)
    run.finish()
    assert results(run.path) == expected


@pytest.fixture
def mend(cluster, tmp_path):
    """Two of the machines have another neuroevo, until this is called."""
    own = Path(neuroevo.core.version.__file__)
    other = tmp_path / "version.py"
    other.write_text(own.read_text().replace(neuroevo.core.version.VERSION, "0.0.99"))
    for machine in cluster.machines[1:]:
        assert machine.start("mount", "--bind", other, own).wait() == 0
    with ExitStack() as mended:
        for machine in cluster.machines[1:]:
            mended.callback(lambda machine: machine.start("umount", own).wait(), machine)
        yield mended.close


def test_machines_that_are_refused(mend, run, expected):
    """The run that waits for three ends and says why, or starts with one of them; mended ones join it."""
    run.start()
    output, _ = run.process.communicate(timeout=120)
    assert run.process.returncode == 2, output
    last = output.splitlines()[-1]
    assert "machine2" in last and "machine3" in last and "0.0.99" in last and "cluster.on_refusal" in last
    assert not run.path.exists()
    run.start(on_refusal="continue")
    run.wait_for_rows()
    mend()
    wait_until(lambda: "machine3 plays" in (run.path / "log.txt").read_text(), run.process)
    run.finish()
    assert results(run.path) == expected


def test_the_head_is_killed(run):
    """The last test, as no cluster is left: the run continues for as long as Ray permits, and then ends."""
    run.start()
    run.wait_for_rows(2)
    assert run.cluster.machines[0].kill("gcs_server") == 1
    run.wait_for_rows(2)
    os.kill(run.driver(), signal.SIGTERM)
    output, _ = run.process.communicate(timeout=120)
    assert run.process.returncode == 143, output
    assert "--resume" in output.splitlines()[-1]


def test_nothing_is_left_of_a_process_that_is_killed():
    """Linux ends the machines of a process, with all that runs there, when that process ends."""
    program = (
        "from tests.support.separate_machines import SeparateMachines; import os, signal\n"
        "machines = SeparateMachines(2).machines\n"
        "machines[1].start('sleep', '1000')\n"
        "print(*[machine.pid for machine in machines], flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=separate_machines.ROOT
    )
    pids = done.stdout.split()
    assert len(pids) == 2
    deadline = time.monotonic() + 60
    while any(Path("/proc", pid).exists() for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)
