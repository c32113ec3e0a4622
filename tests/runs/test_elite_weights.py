"""An elite of an evolution strategy needs its center's weights: which checkpoint has them, and what if none does."""

import json

import numpy as np
import pytest

from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome, Mutation
from neuroevo.runs.folder import RunFolder
from neuroevo.runs.genome_json import genome_to_json
from neuroevo.runs.reader import RunReader
from tests.support.damage import DAMAGES
from tests.support.runs import checkpoint_after, config, new_run

ES = {"name": "es", "population": 8, "sigma": 0.1}
NS_ES = {"name": "ns_es", "population": 8, "sigma": 0.1, "centers": 3}


def test_a_start_from_a_run_whose_newest_elite_is_in_no_checkpoint(tmp_path):
    """As one is left that was killed between two checkpoints: what it goes on from is what others start from."""
    first = tmp_path / "first"
    new_run(first, algorithm=ES, checkpoints={"every": 2})
    checkpoint_after(first, 5).unlink()
    with pytest.raises(UserError, match="generation 4's elite .*: 1, 3 "):
        RunReader(first).elite(4)
    generation, elite = RunReader(first).elite()
    assert (generation, elite) == RunReader(first).elite(3) and generation == 3
    center = RunReader(first).state(4).algorithm.center
    folder = RunFolder.create(tmp_path / "second", config(algorithm=ES, training={"start_from": str(first)}))
    assert folder.state.algorithm.center == center
    assert np.array_equal(folder.state.algorithm.center.root.vector, center.root.vector)


@pytest.mark.parametrize("how", ["truncated", "bit-flipped", "newer version"])
def test_an_elite_whose_checkpoint_cannot_be_used(tmp_path, how):
    """The message does not call it gone, and no older one takes its place in silence."""
    path = tmp_path / "run"
    new_run(path, algorithm=ES)
    for finished in (4, 5):
        DAMAGES[how].to(checkpoint_after(path, finished))
    for generation in (None, 4):
        words = f"generation 4's elite .*{checkpoint_after(path, 5)} .*{DAMAGES[how].message}.*: 2 "
        with pytest.raises(UserError, match=words):
            RunReader(path).elite(generation)
    assert RunReader(path).elite(2)[1].genome.root.has_weights


def test_elites_whose_center_is_not_that_of_the_newest(tmp_path):
    """Where the parents that a run began with have centers of their own, any checkpoint with all of them has these."""
    new_run(tmp_path / "first", algorithm=NS_ES, training={"generations": 8})
    path = tmp_path / "second"
    training = {"start_from": str(tmp_path / "first"), "generations": 1}
    new_run(path, training=training, checkpoints={"every": 10})
    checkpoint_after(path, 1).unlink()  # the one that is left has no elite of this run
    parents = RunReader(path).state().algorithm.parents
    centers = [parent.root for parent in parents if isinstance(parent.root, Center)]
    assert len(set(centers)) > 1
    for center in centers:
        line = {"generation": 0, "elite": genome_to_json(Genome(center).child(5, 0.5))}
        (path / "elites.jsonl").write_text(json.dumps(line) + "\n")
        _, elite = RunReader(path).elite()
        assert np.array_equal(elite.genome.root.vector, center.vector) and elite.genome.mutations == (Mutation(5, 0.5),)
