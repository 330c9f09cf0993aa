import pytest
from short_runs import CHOICES, SUBGOALS, her, same_bytes

from hindsight_rl import BitFlipping
from hindsight_rl.errors import FileError
from hindsight_rl.training.checkpoint import restore_trainer, trainer_state

SCHEDULE = {"relabel": "future=0.8", "relabel_schedule": ("40: future=0.3,desired=0.2",)}


def without_seconds(data):
    return data | {"counts": {k: v for k, v in data["counts"].items() if "seconds" not in k}}


@pytest.mark.parametrize(
    "options", [{"prioritized": True, "steps": 120}, {"energy_priority": True}, SUBGOALS, SCHEDULE, {"n_waypoints": 10}]
)
def test_a_restored_trainer_goes_on_to_the_same_bytes_with_jobs_in_flight(options):
    options = options | {"policy_lag": 2, "agent": "sac"}
    with her(**options) as whole, her(**options) as half, her(**options) as rest:
        expected, expected_data = trainer_state(whole.learn(120).trainer)
        restore_trainer(rest.trainer, *trainer_state(half.learn(60).trainer))
        arrays, data = trainer_state(rest.learn(60).trainer)
    assert same_bytes(arrays, expected)
    assert without_seconds(data) == without_seconds(expected_data)


def test_a_restored_trainer_plans_over_the_same_states():
    options = {"policy_lag": 2, "agent": "dqn", "plan_states": True, "env": lambda: BitFlipping(3), **CHOICES}
    with her(**options) as whole, her(**options) as half, her(**options) as rest:
        expected, _ = trainer_state(whole.learn(200).trainer)
        restore_trainer(rest.trainer, *trainer_state(half.learn(100).trainer))
        arrays, _ = trainer_state(rest.learn(200 - half.num_timesteps).trainer)
    assert whole.agent.planner.recurs
    assert len(arrays["job/0/visited_states"]) == 8
    assert same_bytes(arrays, expected)


def test_a_restored_trainer_relabels_as_at_the_checkpoint():
    with her(relabel="future=0.8", relabel_schedule=("60: future=0.25,desired=0.5",)) as model:
        state = trainer_state(model.learn(50).trainer)
        model.learn(30)
        assert model.trainer.buffer.her_probability == 0.75
        restore_trainer(model.trainer, *state)
        assert (model.trainer.counts.env_steps, model.trainer.buffer.her_probability) == (50, 0.8)


@pytest.mark.parametrize(
    "change",
    [
        {"counts": {"env_stepz": 1}},
        {"counts": {"env_steps": "many"}},
        {"counts": {"env_steps": -1}},
        {"counts": {"unfinished_steps": 31}},
        {"counts": {"due_updates": 1e9}},
        {"counts": None},
        {"meter": {"sums": {"x": 1.0}, "counts": {}}},
        {"meter": {"sums": {"x": 1.0}, "counts": {"x": 0}}},
        {"meter": {"sums": [], "counts": {}}},
        {"history": [{}]},
        {"history": [{"env_steps": "x", "episodes": 1.0, "success_rate": 1.0, "return_mean": 0.0}]},
        {"meter": []},
        {"history": 3},
        {"jobs": [{}]},
        {"jobs": [{"episodes": ["x"], "explorations": [], "version": 0}]},
        {"jobs": [{"episodes": [1], "explorations": [{"x": 1}], "version": 1}]},
        {"jobs": [{"episodes": [1], "explorations": [], "version": 1}]},
        {"buffer": None},
    ],
)
def test_a_malformed_state_is_refused(change):
    with her() as model:
        arrays, data = trainer_state(model.learn(30).trainer)
        with pytest.raises(FileError):
            restore_trainer(model.trainer, arrays, data | change)
