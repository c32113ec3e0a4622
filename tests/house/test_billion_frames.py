"""The genome file of the long run plays what the page about it says."""

import re
from pathlib import Path

import neuroevo

RESULTS = Path(__file__).parents[2] / "experiments/results"


def test_the_elite_has_the_returns_on_the_page():
    page, path = (RESULTS / "billion_frames.md").read_text(), RESULTS / "frostbite_seed0.toml"
    (said,) = re.findall(r"different episodes\s+return ([\d,\s]+) and ([\d,]+)", page)
    expected = [float(each.replace(",", "")) for each in re.findall(r"\d[\d,]*\d", " ".join(said))]
    run = neuroevo.open_run(path)
    assert set(run.evaluate(episodes=30).outcomes.returns.tolist()) == set(expected)
    assert f"{path.stat().st_size:,} bytes" in page and path.stat().st_size < 20_000
    assert f"and {run.elite()[1].genome.depth} mutations" in page
