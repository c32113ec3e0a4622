"""Run a fuzz target of a Python parser: python -m tests.fuzz.parsers TARGET [libFuzzer's options and folders].

It requires atheris (`pip install -e '.[fuzz]'`), which gives libFuzzer the coverage of Python code, and exits with 2 if
atheris is not installed. The target's own seed inputs are written to the first folder of the corpus.
"""

import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

INSTRUMENTED = ["neuroevo", "tomllib", "json", "csv", "numpy.lib.format"]
VALUES = 3  # of so many mutants one has other values in place of other bytes


def main() -> None:
    name, *options = sys.argv[1:]
    if find_spec("atheris") is None:
        print("this takes atheris, which is for Python 3.11 to 3.13: pip install -e '.[fuzz]'", file=sys.stderr)
        raise SystemExit(2)
    import atheris

    with atheris.instrument_imports(include=INSTRUMENTED):
        from tests.fuzz.parsers.target import with_changed_values, words_of
        from tests.fuzz.parsers.targets import TARGETS

        target = TARGETS[name]
        seeds = target.seeds()
        temporary = TemporaryDirectory(prefix="neuroevo_fuzz_")
        words = Path(temporary.name, "words.dict")
        words.write_text("".join(f'"{word}"\n' for word in words_of(seeds)))
        options.append(f"-dict={words}")

        def mutant(data: bytes, most: int, seed: int) -> bytes:
            made = with_changed_values(data, seed) if seed % VALUES == 0 else None
            return atheris.Mutate(data, most) if made is None or len(made) > most else made

        def check(data: bytes) -> None:
            target.check(data)

        folder = next(
            (Path(option) for option in options if not option.startswith("-") and Path(option).is_dir()), None
        )
        for number, seed in enumerate(seeds):
            check(seed)  # which also imports what is imported late
            if folder is not None:
                (folder / f"seed-{number}").write_bytes(seed)
        atheris.Setup([sys.argv[0], *options], check, custom_mutator=mutant)
        atheris.Fuzz()


main()
