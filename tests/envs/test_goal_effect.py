"""A desired goal that takes part in the dynamics is found from episodes with the same actions."""

import numpy as np
import pytest
from line_env import Line

from hindsight_rl.envs.check import check_goal_env
from hindsight_rl.envs.goal_effect import GoalEffect, find_goal_effect
from hindsight_rl.envs.random_play import RandomEpisode


def led_to(*achieved):
    """An episode with these achieved goals of one dimension."""
    episode = RandomEpisode(seed=0)
    episode.observations["achieved_goal"].extend(np.array([value]) for value in achieved)
    return episode


def test_the_largest_difference_of_two_episodes_is_the_effect():
    episodes = [led_to(0, 1, 2, 4), led_to(0, 1, 3, 3.5, 9), led_to(0, 1)]
    assert find_goal_effect(episodes) == GoalEffect(gap=1.0, extent=4.0, n_steps=3)


def test_equal_episodes_have_no_effect():
    assert find_goal_effect([led_to(0, 1, 2), led_to(0, 1, 2, 5), led_to(0)]) is None
    assert find_goal_effect([led_to(0, 1, 2)]) is None
    assert find_goal_effect([]) is None


def test_episodes_with_different_starts_are_not_compared():
    assert find_goal_effect([led_to(0, 1, 2), led_to(0.5, 2, 4)]) is None


@pytest.mark.parametrize(("gap", "is_found"), [(0.029, False), (0.031, True)])
def test_a_difference_below_one_percent_of_the_first_steps_is_rounding(gap, is_found):
    """It first shows at step 2, and until step 6 the episode moves by 3 from step 1 on. Later it may grow."""
    other = led_to(0, 1, 2 + gap, 4, 4, 4, 4, 8)
    assert (find_goal_effect([led_to(0, 1, 2, 4, 4, 4, 4, 4), other]) is not None) == is_found


class Attracted(Line):
    """The goal attracts the place. The observation shows the place and its last displacement, but no goal."""

    displacement = 0.0

    def reset(self, *, seed=None, options=None):
        self.displacement = 0.0
        return super().reset(seed=seed)

    def step(self, action):
        self.displacement = float(action[0]) + 0.1 * float(self.goal[0] - self.place)
        return super().step(np.array([self.displacement]))

    def observe(self):
        return {**super().observe(), "observation": np.array([self.place, self.displacement], np.float32)}


def test_the_check_warns_of_a_goal_in_the_dynamics():
    findings = {each.name: each for each in check_goal_env(Attracted()).findings}
    assert findings["desired goal"].level == "warning"
    assert findings["desired goal"].sentence.startswith(
        "with another desired goal, the same actions lead elsewhere: within 4 steps, achieved goals differ by up to 1.3 "
    )
    assert findings["goal columns"].level == "not seen"  # the displacement holds no goal
    assert "since the achieved goal changes with it" in findings["goal columns"].sentence
