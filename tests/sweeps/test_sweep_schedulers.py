"""Schedulers and searches as sweeps have them: seeds, bounds, and states that survive a crash. No trial is played."""

import pickle
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

pytest.importorskip("ray.tune")
pytest.importorskip("optuna")

from neuroevo.core.problems import ConfigError  # noqa: E402 (Ray may be missing)
from neuroevo.sweeps.tune.ledger import Ledger  # noqa: E402
from neuroevo.sweeps.tune.schedulers import Asha, Pbt, SchedulerState, make_scheduler  # noqa: E402
from neuroevo.sweeps.tune.search import NumberedSearch  # noqa: E402
from tests.support.sweeps import SIGMA, load  # noqa: E402

PBT = 'trials = 4\nscheduler = "pbt"\n'
OPTUNA = 'trials = 9\nsearch = "optuna"\n'
SPACE = SIGMA + '"network.hidden" = [[4], [4, 4]]\n"algorithm.population" = {integer = [2, 6]}\n'


@dataclass(eq=False)
class TuneTrial:
    """What schedulers read of a trial."""

    trial_id: str
    config: dict

    def is_finished(self):
        return False


def result(generation, value):
    return {"training_iteration": generation, "steps_total": 100 * generation, "validation_mean": value}


def asha(folder, options="time = 'generation'\nset = ['training.generations=16']"):
    scheduler = make_scheduler(load(folder, f'trials = 4\nscheduler = "asha"\n{options}'))
    assert isinstance(scheduler, Asha)
    return scheduler


def rungs(scheduler):
    return [milestone for milestone, _ in scheduler._brackets[0]._rungs]


def test_asha_s_rungs_follow_the_budget(tmp_path):
    assert rungs(asha(tmp_path)) == [16, 4, 1]
    options = "set = ['training.total_steps=16000']"
    assert rungs(asha(tmp_path, options)) == [16000, 4000, 1000]
    assert rungs(asha(tmp_path, "asha = {max_t = 90, grace_period = 10, reduction_factor = 3}")) == [90, 30, 10]


def test_asha_goes_on_with_the_rungs_of_before(tmp_path):
    before, trials = asha(tmp_path), [TuneTrial(str(number), {}) for number in range(4)]
    for trial in trials:
        before.on_trial_add(None, trial)
    for trial, value in zip(trials[:3], (3.0, 2.0, 1.0), strict=True):
        before.on_trial_result(None, trial, result(1, value))
    state = pickle.loads(pickle.dumps(SchedulerState(before).get_state()))
    for scheduler in (before, asha(tmp_path)):
        SchedulerState(scheduler).set_state(state)
        scheduler.on_trial_add(None, trials[3])
        assert scheduler.on_trial_result(None, trials[3], result(1, 0.5)) == "STOP"
    fresh = asha(tmp_path)
    fresh.on_trial_add(None, trials[3])
    assert fresh.on_trial_result(None, trials[3], result(1, 0.5)) == "CONTINUE"


@pytest.fixture
def pbt(tmp_path):
    """Population-based training of a sweep, and two of its trials."""
    text = PBT + 'time = "generation"\nset = ["training.generations=20"]'
    sweep = load(tmp_path, text, SIGMA + '"algorithm.population" = {integer = [2, 6]}')
    trials = [
        TuneTrial(f"id-{number}", {"out": "x", "trial": {"number": number, **sweep.points[number]}})
        for number in range(2)
    ]
    return make_scheduler(sweep), trials


def test_pbt_s_clones_keep_number_and_seed_and_stay_in_the_space(pbt):
    scheduler, (clone, donor) = pbt
    assert isinstance(scheduler, Pbt) and scheduler._perturbation_interval == 2
    seen = set()
    for _ in range(50):
        config, _ = scheduler._get_new_config(clone, donor)
        assert config["trial"]["number"] == 0 and config["out"] == "x"
        assert config["trial"]["training.seed"] == clone.config["trial"]["training.seed"]
        assert 0.001 <= config["trial"]["algorithm.sigma"] <= 1.0
        assert config["trial"]["algorithm.population"] in range(2, 7)
        seen.add(config["trial"]["algorithm.sigma"])
    assert len(seen) > 2 and donor.config["trial"]["number"] == 1


def test_pbt_remembers_when_trials_were_compared(pbt, tmp_path):
    before, trials = pbt
    add(before, trials)
    state = before._trial_state[trials[0]]
    state.last_score, state.last_train_time, state.last_perturbation_time = 5.0, 4, 4
    saved = pickle.loads(pickle.dumps(SchedulerState(before).get_state()))
    after = Pbt({}, {}, custom_explore_fn=dict, time_attr="x", metric="y", mode="max")
    add(after, trials[:1])
    SchedulerState(after).set_state(saved)
    add(after, trials[1:])
    assert after._trial_state[trials[0]].last_perturbation_time == 4
    assert after._quantiles() == ([], []) and after._trial_state[trials[1]].last_score is None


def add(scheduler, trials):
    for trial in trials:
        settings = SimpleNamespace(num_to_keep=None)
        trial.run_metadata = SimpleNamespace(checkpoint_manager=SimpleNamespace(checkpoint_config=settings))
        trial.experiment_tag = trial.trial_id
        trial.evaluated_params = {}
        scheduler.on_trial_add(SimpleNamespace(search_alg=None), trial)


def search(folder, text=OPTUNA, space=SPACE):
    sweep = load(folder, text, space)
    sweep.out.mkdir(exist_ok=True)
    return NumberedSearch(sweep, Ledger.read(sweep.out))


def ask(of, number):
    return of.suggest(f"id-{number}")["trial"]


def tell(of, number, value):
    of.on_trial_complete(f"id-{number}", result(1, value))


def test_optuna_s_trials_have_numbers_seeds_and_values_of_the_space(tmp_path):
    of = search(tmp_path)
    found = [ask(of, number) for number in range(6)]
    assert [values["number"] for values in found] == list(range(6))
    assert len({values["training.seed"] for values in found}) == 6
    for values in found:
        assert values["network.hidden"] in ([4], [4, 4]) and type(values["algorithm.population"]) is int
        assert 0.001 <= values["algorithm.sigma"] <= 1.0
    ledger = Ledger.read(tmp_path / "out")
    assert [{"number": number, **trial.values} for number, trial in ledger.trials.items()] == found


def test_optuna_goes_on_with_what_it_knew(tmp_path):
    whole, first = tmp_path / "whole", tmp_path / "first"
    whole.mkdir(), first.mkdir()
    left_alone, stopped = search(whole), search(first)
    for of in (left_alone, stopped):
        for number in range(12):
            tell(of, number, -abs(ask(of, number)["algorithm.sigma"] - 0.1))
    stopped.save(str(tmp_path / "state.pkl"))
    again = search(first)
    again.restore(str(tmp_path / "state.pkl"))
    assert [ask(again, number) for number in range(12, 15)] == [ask(left_alone, number) for number in range(12, 15)]


def test_a_trial_that_tune_forgot_gets_its_values_again(tmp_path):
    of = search(tmp_path)
    of.save(str(tmp_path / "state.pkl"))
    forgotten = ask(of, 0)
    again = search(tmp_path)
    again.restore(str(tmp_path / "state.pkl"))
    assert ask(again, 77) == forgotten
    tell(again, 77, 1.0)
    best = again._optuna._ot_study.best_trial
    assert best.params["algorithm.sigma"] == forgotten["algorithm.sigma"] and best.value == 1.0


def test_optuna_s_values_are_checked(tmp_path):
    space = '"algorithm.parents" = {integer = [1, 8]}\n"algorithm.population" = {integer = [2, 8]}'
    of = search(tmp_path, OPTUNA, space)
    found = [ask(of, number) for number in range(8)]
    assert all(values["algorithm.parents"] <= values["algorithm.population"] for values in found)
    tell(of, 0, 1.0)
    states = [trial.state.name for trial in of._optuna._ot_study.trials]
    assert states.count("FAIL") == len(states) - 8 and states.count("COMPLETE") == 1
    of._sweep.tables["network"]["name"] = "modle"  # from here on nothing is accepted
    with pytest.raises(ConfigError) as raised:
        ask(of, 99)
    assert [problem.key for problem in raised.value.problems] == ["network.name"]
