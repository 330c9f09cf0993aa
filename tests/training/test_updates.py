from functools import partial

import numpy as np
import pytest
from short_runs import her, same_bytes

from hindsight_rl import HER, PointReach
from hindsight_rl.errors import HindsightError
from hindsight_rl.records.reward_scale import RewardScale
from hindsight_rl.training.checkpoint import restore_trainer, trainer_state


@pytest.mark.parametrize(
    ("options", "updates"),
    [
        ({}, [0, 0, 10, 20, 30]),
        ({"updates_per_step": 0.25, "policy_period": 2}, [0, 0, 2, 4, 6]),  # 2.5 due each time, made in pairs
        ({"updates_per_step": 0.25}, [0, 0, 2, 5, 7]),
        ({"updates_per_step": 3.0, "random_steps": 0}, [30, 60, 90, 120, 150]),
    ],
)
def test_updates_are_due_per_step_after_the_random_steps(options, updates):
    with her(**options) as model:
        seen = []
        for _ in updates:
            model.trainer.learn_from_next_job()
            seen.append(model.trainer.counts.updates)
        assert seen == updates
        assert model.agent.n_updates == updates[-1]


def test_weights_that_are_not_finite_end_the_run():
    with her(learning_rate=1e30) as model, pytest.raises(HindsightError, match=r"no longer finite.*Lower learning_rate"):
        model.learn(2000)


def test_weights_that_are_not_finite_are_reported_before_the_priorities():
    with her(prioritized=True, learning_rate=1e30) as model, pytest.raises(HindsightError, match="no longer finite"):
        model.learn(2000)


@pytest.mark.parametrize("options", [{"agent": "sac"}, {"agent": "td3", "policy_period": 2}])
def test_the_errors_of_an_update_become_the_priorities_of_its_rows(options):
    with her(prioritized=True, alpha=1.0, steps=200, **options) as model:
        trainer, seen = model.trainer, []
        updates = trainer.agent.updates

        def recording(batch):
            metrics = updates(batch)
            errors = np.concatenate([m["priority"].numpy().copy() for m in metrics])
            seen.append((batch.row.copy().ravel(), errors.ravel(), trainer.buffer.beta))
            assert batch.weight.shape == batch.row.shape
            return metrics

        trainer.agent.updates = recording
        model.learn(100)
        rows, errors = (np.concatenate(part) for part in list(zip(*seen, strict=True))[:2])
        last = dict(zip(rows.tolist(), errors.tolist(), strict=True))
        found = trainer.buffer.timeline.priorities.values(np.array(list(last)))
        assert found == pytest.approx(np.array(list(last.values())) + 1e-6)
        assert not any("priority" in name for name in trainer.meter.means())
        betas = [beta for *_, beta in seen]
        assert (betas[0], betas[-1]) == (pytest.approx(0.4 + 0.6 * 30 / 200), pytest.approx(0.4 + 0.6 * 100 / 200))


def test_the_relabel_schedule_changes_the_fraction_of_relabelled_samples():
    with her(relabel="future=0.8", relabel_schedule=("60: future=0.25,desired=0.5",)) as model:
        buffer, seen = model.trainer.buffer, []
        for _ in range(8):
            model.trainer.learn_from_next_job()
            seen.append((model.trainer.counts.env_steps, buffer.her_probability))
        assert seen[2:] == [(steps, 0.8 if steps < 60 else 0.75) for steps in range(30, 90, 10)]


def test_goals_that_were_achieved_already_are_measured_once_per_record():
    with her() as model:
        model.learn(40)
        assert 0.0 < model.trainer.meter.means()["train/goals_already_achieved"] < 1.0
        assert model.trainer.meter.counts["train/goals_already_achieved"] == 1


class Rewarding(PointReach):
    """PointReach in 10 steps with any two rewards."""

    def __init__(self, failure=-1.0, success=0.0):
        super().__init__(max_steps=10)
        self.rewards = failure, success

    def compute_reward(self, achieved_goal, desired_goal, info=None):
        is_success = super().compute_reward(achieved_goal, desired_goal, info) == 0
        return np.where(is_success, *reversed(self.rewards))


class Crashing(Rewarding):
    """It ends where the point leaves the middle."""

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated or bool(np.abs(observation["achieved_goal"]).max() > 0.9), truncated, info


class Dense(PointReach):
    """The reward is minus the distance, times a factor."""

    def __init__(self, factor=1.0):
        super().__init__(max_steps=10)
        self.factor = factor

    def compute_reward(self, achieved_goal, desired_goal, info=None):
        return -self.factor * np.linalg.norm(np.subtract(achieved_goal, desired_goal), axis=-1)


def weights_after(env, **options):
    with her(env, **options) as model:
        model.learn(80)
        return model.agent.algorithm.weights.numpy().tobytes()


@pytest.mark.parametrize(
    "options", [{"agent": "ddpg"}, {"agent": "sac", "n_steps": 2}, {"agent": "td3", "prioritized": True}]
)
@pytest.mark.parametrize("task", [Rewarding, pytest.param(Crashing, marks=pytest.mark.slow)])
def test_two_rewards_of_any_values_are_learned_to_the_same_bytes(task, options):
    rewards = [(-1.0, 0.0), (0.0, 1.0), (0.0, 100.0), (-100.0, 0.0), (99.0, 100.0)]
    assert len({weights_after(partial(task, *pair), **options) for pair in rewards}) == 1


def test_dense_rewards_of_any_scale_are_learned_to_the_same_bytes():
    assert len({weights_after(partial(Dense, factor)) for factor in (1.0, 2.0**-7, 2.0**7)}) == 1


def test_the_scale_of_dense_rewards_is_measured_once_and_kept(tmp_path):
    with her(Dense) as model, her(Dense) as other:
        assert model.agent.reward_scale is None
        model.learn(30)
        scale = model.agent.reward_scale
        assert not scale.is_sparse
        assert scale.success == 0.0
        model.learn(60)
        assert model.agent.reward_scale == model.trainer.buffer.reward_scale == scale
        arrays, data = trainer_state(model.trainer)
        restore_trainer(other.trainer, {name: array.copy() for name, array in arrays.items()}, data)
        for each in (model, other):
            each.trainer.learn_from_next_job()
        assert same_bytes(model.agent.state_dict(), other.agent.state_dict())
        model.save(tmp_path / "policy")
    assert HER.load(tmp_path / "policy", Dense).agent.reward_scale == scale


def test_the_rewards_of_episodes_stay_those_of_the_environment():
    with her(partial(Rewarding, 0.0, 100.0)) as model:
        model.learn(40)
        assert model.agent.reward_scale == RewardScale(100.0, 0.0)
        assert set(np.concatenate([e.reward for e in model.trainer.buffer.timeline.episodes()]).tolist()) <= {0.0, 100.0}
        assert set(model.trainer.buffer.sample(500).reward.tolist()) == {-1.0, 0.0}
        assert model.evaluate(3).return_mean in np.arange(0, 1001) * 100 / 3
