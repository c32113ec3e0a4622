"""The emulator's symbols stay inside the library of the Atari family."""

import subprocess

from neuroevo.native import library


def test_the_emulator_stays_inside_its_library():
    """They must not clash with another ALE in the process. The chips compiled with a profile have hidden symbols; a
    second copy compiled without the profile would replace them, and its symbols would be visible."""
    path = library.library_path("libneuroevo_atari.so")
    listed = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True)
    symbols = [line.split()[-1] for line in listed.stdout.splitlines()]
    assert any("8neuroevo" in symbol for symbol in symbols), "nm lists what is exported"
    inside = [name for name in symbols if name.startswith(("_ZN3ale", "_ZN8neuroevo3Tia", "_ZN8neuroevo3Cpu"))]
    assert inside == []
