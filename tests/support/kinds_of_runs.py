"""Short runs of every kind: what may differ between machines, engines and clusters differs in one of them."""

_SHORT = {"generations": 3, "max_episode_steps": 60, "validation_episodes": 3, "seed": 5}
_GA = {"name": "ga", "population": 12, "parents": 4, "sigma": 0.05, "validation_candidates": 3}
_ES = {"name": "es", "population": 12, "sigma": 0.05}
_MAZE = {"env": {"name": "HardMaze-v0"}, "network": {"name": "mlp", "hidden": [6]}}
_HOPPER = {"env": {"name": "Hopper-v5"}, "network": {"name": "mlp", "hidden": [16], "normalize_observations": True}}
_CHANGES = {
    "cma_es": {**_MAZE, "algorithm": {"name": "experiments.examples.cma_es:CMAES", "population": 8}},
    "ga": {"algorithm": _GA},
    "es with a normalizer": {**_HOPPER, "algorithm": _ES},
    "es with vbn": {"algorithm": _ES, "network": {"name": "virtual_bn"}},
    "low_rank_es with a normalizer": {**_HOPPER, "algorithm": {**_ES, "name": "low_rank_es", "rank": 2}},
    "ga_ns": {**_MAZE, "algorithm": {**_GA, "name": "ga_ns", "k": 3, "archive_probability": 0.3}},
    "ga in integers": {"algorithm": _GA, "network": {"name": "model", "dtype": "int8"}},
}
# For tests.support.runs.config(). On Frostbite a test episode, which has no cut-off, may take minutes.
KINDS = {
    kind: {**changes, "training": {**_SHORT, "test_episodes": 6 if "env" in changes else 0}}
    for kind, changes in _CHANGES.items()
}


def assert_three_generations(found):
    """Of tests.support.runs.results(): three, each with other returns."""
    assert len(found["rows"]) == 3
    assert len({tuple(row["fitness"]) for row in found["rows"]}) == 3
