"""Signals, closed terminals and nohup: an interrupted run can be resumed from its folder."""

import fcntl
import os
import pty
import signal
import subprocess
import termios

import pytest

from neuroevo.cli.common import HungUp, Terminated, sigterm_raises
from neuroevo.runs.paths import CSV
from neuroevo.runs.writer import Writer
from neuroevo.sessions.folder import RunFolder
from neuroevo.sessions.metrics_csv import CsvFile
from tests.support.commands import start_endless, wait_for_rows
from tests.support.databases import count_rows, query, read_rows
from tests.support.runs import new_run, play, results


@pytest.mark.parametrize(
    ("sent", "code", "word"),
    [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated"), ("SIGHUP", 129, "hung up")],
)
def test_signals_leave_a_run_that_goes_on(tmp_path, sent, code, word):
    path = tmp_path / "run"
    process = start_endless(
        path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    process.send_signal(getattr(signal, sent))
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == code
    assert stderr == f"neuroevo: {word}; to resume: neuroevo train --resume {path}\n"
    with RunFolder.resume(path) as folder:
        finished = folder.state.generation
    assert finished == len(read_rows(path)) >= 5  # although no checkpoint was due
    play(RunFolder.resume(path, [f"training.generations={finished + 2}"]))
    new_run(tmp_path / "whole", training={"generations": finished + 2}, checkpoints={"every": 10**6})
    assert results(path)["rows"] == results(tmp_path / "whole")["rows"]


@pytest.mark.parametrize("what", ["state", "csv"])
def test_an_interrupt_while_a_generation_is_written(tmp_path, monkeypatch, whole_run, what):
    """The row is complete, and so is the state after it: generations with a row are not played again."""
    path, owner, name = tmp_path / "run", *{"state": (Writer, "insert"), "csv": (CsvFile, "append")}[what]
    write = getattr(owner, name)

    def interrupt_and_write(self, *values, **options):
        if count_rows(path) == 3:
            signal.raise_signal(signal.SIGINT)
        return write(self, *values, **options)

    monkeypatch.setattr(owner, name, interrupt_and_write)
    with pytest.raises(KeyboardInterrupt):
        new_run(path, checkpoints={"every": 10**6})
    monkeypatch.undo()
    with RunFolder.resume(path) as folder:
        finished = folder.state.generation
    assert finished == len(read_rows(path)) == len((path / CSV).read_text().splitlines()) - 1 == 3 + (what == "state")
    assert query(path, "SELECT max(generation) FROM members") == [(finished - 1,)]
    play(RunFolder.resume(path))
    assert results(path) == whole_run()


@pytest.mark.parametrize("number", [2, 3])
def test_an_interrupt_between_two_transactions(tmp_path, monkeypatch, whole_run, number):
    """While the write lock is reacquired after storing outcomes of episodes."""
    path, lock, calls = tmp_path / "run", Writer._lock, []

    def interrupt_or_lock(self):
        if count_rows(path) == 3:
            calls.append(1)
            if len(calls) == number:
                raise KeyboardInterrupt
        lock(self)

    monkeypatch.setattr(Writer, "_lock", interrupt_or_lock)
    with pytest.raises(KeyboardInterrupt):
        new_run(path, checkpoints={"every": 10**6})
    monkeypatch.undo()
    with RunFolder.resume(path) as folder:
        assert folder.state.generation == 3 and folder.ended
    play(RunFolder.resume(path))
    assert results(path) == whole_run()


def test_under_nohup_a_run_goes_on(tmp_path):
    path = tmp_path / "run"
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    process = start_endless(path, ["nohup"], **streams)
    process.send_signal(signal.SIGHUP)
    wait_for_rows(path, process, len(read_rows(path)) + 20)
    process.terminate()
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 143
    assert stderr.endswith(f"neuroevo: terminated; to resume: neuroevo train --resume {path}\n")


def test_a_closed_terminal_leaves_a_run_that_goes_on(tmp_path):
    """The kernel sends SIGHUP to the processes of the terminal, which can no longer write to it."""
    path = tmp_path / "run"
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    process = start_endless(
        path, terminal=ours, start_new_session=True, **streams,
        preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(theirs)
    os.close(ours)
    assert process.wait(timeout=120) != 0
    with RunFolder.resume(path) as folder:
        assert folder.state.generation == len(read_rows(path)) >= 5  # although no checkpoint was due


def test_a_second_hangup_does_not_break_off_what_the_first_began():
    with pytest.raises(HungUp), sigterm_raises():
        try:
            signal.raise_signal(signal.SIGHUP)
        finally:
            signal.raise_signal(signal.SIGHUP)
    with pytest.raises(Terminated) as raised, sigterm_raises():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGHUP)
    assert raised.type is Terminated
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


def test_a_signal_of_which_a_library_makes_a_plain_interrupt_is_still_told_apart():
    with pytest.raises(HungUp, match="^; resume$"), sigterm_raises():
        try:
            signal.raise_signal(signal.SIGHUP)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("; resume") from None
    with pytest.raises(KeyboardInterrupt) as raised, sigterm_raises():
        raise KeyboardInterrupt
    assert raised.type is KeyboardInterrupt
