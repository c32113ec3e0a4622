"""An elite of an evolution strategy needs its center's weights, which are stored as long as a state needs them."""

import numpy as np
import pytest

from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center
from neuroevo.runs.reader import RunReader
from neuroevo.sessions.folder import RunFolder
from tests.support.databases import change, delete_states_after, query
from tests.support.runs import config, new_run

ES = {"name": "es", "population": 8, "sigma": 0.1}
NS_ES = {"name": "ns_es", "population": 8, "sigma": 0.1, "centers": 3}


def stored_weights(path):
    """Return the weights of all centers that the run stores."""
    rows = query(path, "SELECT name, weights FROM centers WHERE weights IS NOT NULL")
    return {name: np.frombuffer(weights, "<f4").tolist() for name, weights in rows}


def test_a_start_from_a_run_whose_newest_elite_is_in_no_state(tmp_path):
    """As after a kill between two states: another run can start from the state from which the run resumes."""
    first = tmp_path / "first"
    new_run(first, algorithm=ES, checkpoints={"every": 2})
    delete_states_after(first, 4)
    with pytest.raises(UserError, match="generation 4's elite .*: 1, 3 "):
        RunReader(first).elite(4)
    generation, elite = RunReader(first).elite()
    assert (generation, elite) == RunReader(first).elite(3) and generation == 3
    center = RunReader(first).state(4).algorithm.center
    folder = RunFolder.create(tmp_path / "second", config(algorithm=ES, training={"start_from": str(first)}))
    assert folder.state.algorithm.center == center
    assert np.array_equal(folder.state.algorithm.center.root.vector, center.root.vector)


def test_weights_stay_as_long_as_a_state_needs_them(tmp_path):
    """Elites of all generations have a row; the weights that no state needs are deleted."""
    new_run(tmp_path, algorithm=ES, checkpoints={"keep_last": 2})
    reader = RunReader(tmp_path)
    centers = {number: reader.state(number).algorithm.center.root for number in (4, 5)}
    assert stored_weights(tmp_path) == {center.name: center.vector.tolist() for center in centers.values()}
    elites = "SELECT name FROM generations JOIN genomes ON genomes.id = elite JOIN centers ON centers.id = center"
    names = [name for (name,) in query(tmp_path, f"{elites} ORDER BY generations.generation")]
    assert len(set(names)) == 5 and names[3:] == [centers[4].name, centers[5].name]
    for generation in (3, 4):
        assert reader.elite(generation)[1].genome.root.vector.tolist() == centers[generation + 1].vector.tolist()


@pytest.mark.parametrize("weights", [np.ones(8, "<f4").tobytes(), b"123", b""])
def test_an_elite_whose_weights_are_damaged(tmp_path, weights):
    """The message does not report them as deleted, and no older elite replaces them silently."""
    new_run(tmp_path, algorithm=ES)
    elite = "(SELECT center FROM genomes JOIN generations ON elite = id WHERE generations.generation = 4)"
    assert change(tmp_path, f"UPDATE centers SET weights = ? WHERE id = {elite}", weights) == 1
    for generation in (None, 4):
        with pytest.raises(UserError, match="run.db is damaged: the (weights of the )?center sha256:.* "):
            RunReader(tmp_path).elite(generation)
    assert RunReader(tmp_path).elite(2)[1].genome.root.has_weights


def test_elites_whose_center_is_not_that_of_the_newest(tmp_path):
    """The parents from which a run started have their own centers."""
    new_run(tmp_path / "first", algorithm=NS_ES, training={"generations": 8})
    path = tmp_path / "second"
    new_run(path, training={"start_from": str(tmp_path / "first"), "generations": 1})
    parents = RunReader(path).state(0).algorithm.parents
    centers = {parent.root.name: parent.root for parent in parents if isinstance(parent.root, Center)}
    assert len(centers) > 1
    before, kept = stored_weights(tmp_path / "first"), stored_weights(path)
    assert kept == {name: before[name] for name in centers}
    _, elite = RunReader(path).elite()
    assert elite.genome.root.vector.tolist() == before[elite.genome.root.name]
