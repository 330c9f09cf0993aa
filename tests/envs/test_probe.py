"""Which goals a probe sets, and which columns hold the goal, found by trying."""

import gymnasium
import numpy as np
import pytest
from line_env import Line

from hindsight_rl.envs.goal_env import read_spec
from hindsight_rl.envs.goal_setters import find_goal_setters
from hindsight_rl.envs.probe import SEEDS, STEPS_AFTER_SUCCESS, Probe
from hindsight_rl.envs.reset_rule import check_resets, resets_are_exact


class Shown(Line):
    """The attribute `shown` sets the goal of the observation only; `parts`, which is not found, sets the rewards."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.shown, self.parts = self.goal.copy(), {"goal": self.goal}
        del self.goal
        return self.observe(), {}

    def observe(self):
        return {**super().observe(), "desired_goal": self.shown.copy() if "shown" in vars(self) else self.goal}

    def __getattr__(self, name):
        if name == "goal":
            return self.__dict__["parts"]["goal"]
        raise AttributeError(name)


def test_an_attribute_that_rewards_do_not_follow_does_not_set_the_goal():
    assert [setter.name for setter in find_goal_setters(Shown(), SEEDS)] == ["the attribute shown"]
    probe = Probe(Shown(), read_spec(Shown()))
    assert probe.goal_setter is None
    assert not len(probe.other_rewards)


def test_an_episode_with_a_success_is_played_again_up_to_its_success():
    env = Line()
    probe = Probe(env, read_spec(env))
    assert len(probe.replay_after_success) == STEPS_AFTER_SUCCESS
    assert probe.play_success()
    assert env.info(env.observe())["is_success"]


def test_without_a_success_none_is_played_again():
    env = Line()
    env.step = lambda action: (*Line.step(env, action)[:4], {"is_success": False})
    probe = Probe(env, read_spec(env))
    assert not probe.play_success()
    assert probe.replay_after_success is None
    assert resets_are_exact(probe)


class Holding(Line):
    """Its observation ends with the goal. A little of the last action stays after a reset if `remains` is not 0."""

    remains, last_action = 0.0, 0.0

    def __init__(self):
        super().__init__()
        box = gymnasium.spaces.Box(-100, 100, (4,), np.float32)
        self.observation_space = gymnasium.spaces.Dict({**self.observation_space.spaces, "observation": box})

    def step(self, action):
        self.last_action = float(action[0])
        return super().step(action)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place += self.remains * self.last_action
        return self.observe(), {}

    def observe(self):
        seen = super().observe()
        return {**seen, "observation": np.concatenate([seen["observation"], self.goal])}


class HoldingInexact(Holding):
    remains = 1e-3


@pytest.mark.parametrize("cls", [Holding, HoldingInexact])
def test_columns_that_hold_a_goal_are_found_although_the_first_one_after_it_was_set_is_older(cls):
    probe = Probe(cls(), read_spec(cls()))
    assert probe.goal_setter.name == "the attribute goal"
    assert resets_are_exact(probe) == (cls is Holding)
    assert probe.goal_columns == (2, 3)


class Leaking(Holding):
    """Its last column is the place of a puddle that, by mistake, must not cover the goal of the episode before."""

    goal, puddle = np.zeros(2, np.float32), 0.0

    def reset(self, *, seed=None, options=None):
        before = self.goal[0]
        super().reset(seed=seed)
        self.puddle = -2.0 if before > 0 else self.np_random.uniform(0, 3)
        return self.observe(), {}

    def observe(self):
        seen = super().observe()
        return {**seen, "observation": np.append(seen["observation"][:3], self.puddle).astype(np.float32)}


def test_a_column_that_depends_on_the_goal_before_holds_no_goal():
    probe = Probe(Leaking(), read_spec(Leaking()))
    assert not resets_are_exact(probe)
    assert probe.goal_columns == (2,)
    level, sentence = check_resets(probe)
    assert level == "warning"
    assert sentence.startswith("after another goal and a reset with the same seed and goal, the same actions lead to other")
