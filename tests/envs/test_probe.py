"""Which goals a probe sets, and which columns hold the goal, found by trying."""

import gymnasium
import numpy as np
import pytest
from line_env import Line

from hindsight_rl.envs.goal_env import read_spec
from hindsight_rl.envs.goal_setters import find_goal_setters
from hindsight_rl.envs.probe import SEEDS, Probe, columns_with_goals, dimensions_not_shown
from hindsight_rl.envs.random_play import RandomEpisode
from hindsight_rl.records import OBSERVATION_KEYS


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


def started(observation, desired, achieved=(0.0, 0.0)):
    """An episode without a step."""
    episode = RandomEpisode(seed=0)
    values = zip(OBSERVATION_KEYS, (observation, achieved, desired), strict=True)
    episode.append({key: np.array(value, np.float32) for key, value in values})
    return episode


def held(episodes):
    return columns_with_goals([each.observations for each in episodes])


def test_a_column_that_equals_one_of_two_goals_of_zeros_and_ones_holds_no_goal():
    episodes = [started((1, 0), (0, 0)), started((0, 0), (0, 1)), started((0, 1), (1, 0)), started((0, 0), (0, 1))]
    assert held(episodes) == ()  # column 1 equals the first dimension, and no column equals the second


def test_columns_that_equal_all_goals_of_zeros_and_ones_hold_the_goal():
    goals = [(0, 0), (0, 1), (1, 0), (0, 1)]
    episodes = [started((*goal, place), goal) for goal, place in zip(goals, (3, 5, 5, 4), strict=True)]
    assert held(episodes) == (0, 1)


def test_a_column_that_follows_one_dimension_with_many_values_holds_the_goal():
    goals = [(0.1, 0.3), (0.2, 0.9), (0.3, 0.1), (0.4, 0.2)]
    episodes = [started((7, 2 * goal[0] + 1), goal) for goal in goals]
    assert held(episodes) == (1,)


def test_a_column_of_an_object_that_rests_at_its_goal_holds_no_goal():
    goals = [(0.1, 0.3), (0.2, 0.9), (0.3, 0.1), (0.4, 0.2)]
    resting = [started((goal[1] + 1e-7, 0), goal, (0.0, goal[1] + 1e-7)) for goal in goals]  # in dimension 1
    assert held(resting) == ()


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
    assert probe.resets_are_exact == (cls is Holding)
    assert probe.goal_columns == (2, 3)


def moved(observation, achieved):
    """Episodes of no step, with one observation and one achieved goal each."""
    return [started(seen, (0.0,) * len(goal), goal) for seen, goal in zip(observation, achieved, strict=True)]


def test_dimensions_that_no_column_shows_are_those_that_differ_from_each_column():
    goals = [(0.1, 0.3, 0.5), (0.2, 0.9, 0.5), (0.3, 0.1, 0.5)]
    assert dimensions_not_shown(moved([(7, 8), (9, 7), (8, 9)], goals)) == (0, 1, 2)
    assert dimensions_not_shown(moved([goal[1::-1] for goal in goals], goals)) == (2,)  # its constant height
    assert dimensions_not_shown(moved([(*goal, 0.0) for goal in goals], goals)) == ()


def test_a_column_with_little_noise_shows_a_dimension_and_one_with_much_does_not():
    goals = [(0.1,), (0.2,), (0.4,), (0.3,)]
    for noise, missing in ((0.005, ()), (0.05, (0,))):
        seen = [(goal[0] + sign * noise,) for goal, sign in zip(goals, (1, -1, -1, 1), strict=True)]
        assert dimensions_not_shown(moved(seen, goals)) == missing


def test_nothing_is_missing_where_a_column_shows_a_dimension_in_other_units():
    goals = [(0.1, 0.3), (0.2, 0.9), (0.3, 0.1)]
    assert dimensions_not_shown(moved([(100 * goal[0] + 7,) for goal in goals], goals)) == ()


def test_whole_numbers_are_not_looked_for():
    observations = {key: np.array([1, 2]) for key in OBSERVATION_KEYS} | {"observation": np.array([3.0, 4.0])}
    episode = RandomEpisode(seed=0)
    episode.append(observations)
    assert dimensions_not_shown([episode]) == ()
