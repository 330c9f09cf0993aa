"""Training on compute_reward where the reward of `step` is another one."""

import gymnasium
import numpy as np
import pytest
from line_env import Line, near

from hindsight_rl import HER, ReplayOptions, make_buffer
from hindsight_rl.envs.check import check_goal_env
from hindsight_rl.envs.goal_env import make_goal_env, read_spec
from hindsight_rl.errors import GoalEnvError, OptionError


class Shaped(Line):
    """Its step returns minus the distance, its compute_reward 0 near the goal, else -1."""

    def reward(self, observation, info):
        return -float(np.abs(observation["achieved_goal"] - self.goal).sum())


class Moving(Shaped):
    """The goal moves when it is reached: the reward of the step is that of the goal before."""

    def observe(self):
        goal = self.goal.copy()
        here = np.full(2, self.place, np.float32)
        self.goal = goal + 5 if near(here, goal) else goal
        return {"observation": here, "achieved_goal": here.copy(), "desired_goal": self.goal.copy()}


def test_the_check_offers_to_train_on_compute_reward_and_accepts_it():
    report = check_goal_env(Shaped())
    assert [f.name for f in report.of("error")] == ["reward values"]
    (found,) = report.of("error")
    assert "or train on compute_reward instead: --reward recompute, or reward='recompute'" in found.sentence
    report = check_goal_env(Shaped(), reward="recompute")
    assert {f.level for f in report.findings} == {"ok"}, str(report)
    with pytest.raises(OptionError, match="`reward` must be 'step' or 'recompute'"):
        check_goal_env(Shaped(), reward="computed")


@pytest.mark.parametrize("kind", [Shaped, Moving])
def test_each_step_has_the_reward_of_its_goals(kind):
    env = make_goal_env(kind, reward="recompute")
    observation, _ = env.reset(seed=3)
    for _ in range(10):
        goal = observation["desired_goal"]
        observation, reward, *_ = env.step(env.action_space.sample())
        assert reward == near(observation["achieved_goal"], goal) - 1.0
    assert (read_spec(env).reward_low, read_spec(env).reward_high) == (-1.0, 0.0)


def test_a_run_trains_on_compute_reward():
    options = {"agent": "td3", "hidden": (8,), "random_steps": 30, "updates_per_step": 0.1}
    maker = lambda: gymnasium.wrappers.TimeLimit(Shaped(), 10)  # noqa: E731
    with pytest.raises(GoalEnvError, match="reward='recompute'"):
        HER(maker, **options)
    with HER(maker, reward="recompute", **options) as model:
        batch = model.learn(60).trainer.buffer.sample(500)
        distance = np.linalg.norm(batch.next_achieved_goal - batch.goal, axis=1)
        assert (batch.reward == np.where(distance < 0.5, 0, -1)).all()
        assert set(model.trainer.buffer.timeline.rows["reward"].tolist()) <= {-1.0, 0.0}
        assert set(model.evaluate(2).outcomes[0].episode_return.as_integer_ratio()) & {1}  # a whole number


def test_a_buffer_recomputes_the_rewards_of_all_samples():
    env = Shaped()
    with pytest.warns(UserWarning, match="reward values"):
        make_buffer(env, 100)
    buffer = make_buffer(env, 100, ReplayOptions(reward="recompute"))
    observation, _ = env.reset(seed=1)
    for _ in range(10):
        before, action = observation, env.action_space.sample()
        observation, reward, terminated, truncated, info = env.step(action)
        buffer.add(before, action, reward, observation, terminated, truncated, info)
    batch = buffer.sample(200)
    assert (~batch.is_relabelled).any()
    distance = np.linalg.norm(batch.next_achieved_goal - batch.goal, axis=1)
    assert (batch.reward == np.where(distance < 0.5, 0, -1)).all()


def test_an_extra_reward_contradicts_it():
    with pytest.raises(OptionError, match="`extra_reward` adds what compute_reward leaves out"):
        ReplayOptions(extra_reward=True, reward="recompute")
