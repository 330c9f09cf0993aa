"""Sensor noise: what rests is recognized, and columns with noise of their own are copies of the goal."""

from dataclasses import replace

import numpy as np
import pytest

from hindsight_rl.structure.columns import find_goal_copies
from hindsight_rl.structure.parts import find_parts
from hindsight_rl.structure.steps import Steps, measure_noise

EPISODES, STEPS = 8, 50


def measured(steps):
    return replace(steps, noise=measure_noise(steps))


def steps_of(positions, actions, observation=None):
    """Positions of 8 episodes of 50 steps, (8, 51), actions (8, 50) and one observation column like the positions."""
    observation = positions if observation is None else observation
    rows = [
        x.reshape(-1, 1) for x in (observation[:, :-1], actions, observation[:, 1:], positions[:, :-1], positions[:, 1:])
    ]
    goal = np.repeat(np.linspace(-1, 1, EPISODES), STEPS)[:, None]
    return measured(Steps(*rows, goal, np.repeat(np.arange(EPISODES), STEPS)))


def noise(rng, size=0.01):
    return rng.normal(0, size, (EPISODES, STEPS + 1))


def test_noise_of_an_object_at_rest_is_no_displacement():
    rng = np.random.default_rng(0)
    starts = rng.uniform(-1, 1, (EPISODES, 1)) + np.zeros((EPISODES, STEPS + 1))
    starts[:, 40:] += 0.5  # pushed once
    steps = steps_of(starts + noise(rng), rng.uniform(-1, 1, (EPISODES, STEPS)))
    assert abs(steps.noise[0] - 0.01 * np.sqrt(2)) < 0.002
    assert np.flatnonzero(steps.moved).tolist() == [STEPS * k + 39 for k in range(EPISODES)]


@pytest.mark.parametrize(("n_pushed", "pace"), [(5, 0.06), (12, 0.15)])  # four and ten times as far in a step as noise
def test_noise_is_measured_although_the_object_is_pushed(n_pushed, pace):
    rng = np.random.default_rng(0)
    position = rng.uniform(-1, 1, (EPISODES, 1)) + np.zeros((EPISODES, STEPS + 1))
    position[:, 20:] += pace * np.minimum(np.arange(1, STEPS - 18), n_pushed)
    steps = steps_of(position + noise(rng), rng.uniform(-1, 1, (EPISODES, STEPS)))
    assert 0.9 < steps.noise[0] / (0.01 * np.sqrt(2)) < 1.6


def test_exact_readings_have_no_noise():
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (EPISODES, STEPS))
    walk = np.concatenate([np.zeros((EPISODES, 1)), actions.cumsum(1)], 1)
    assert steps_of(walk, actions).noise is None


def test_a_body_that_is_where_the_action_says_is_not_noisy():
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (EPISODES, STEPS))
    position = np.concatenate([np.zeros((EPISODES, 1)), actions], 1)
    steps = steps_of(position, actions)
    assert steps.noise is None
    np.testing.assert_array_equal(steps.displacement[:, 0], np.diff(position, axis=1).ravel())


def test_a_column_with_noise_of_its_own_is_a_copy_of_the_goal():
    rng = np.random.default_rng(0)
    position = rng.uniform(-1, 1, (EPISODES, STEPS + 1))
    actions = rng.uniform(-1, 1, (EPISODES, STEPS))
    assert find_goal_copies(steps_of(position, actions, position + noise(rng))).columns == (0,)
    assert find_goal_copies(steps_of(position, actions, position + noise(rng, 0.2))).columns == (None,)


def test_dimensions_that_move_together_under_noise_are_one_part():
    rng = np.random.default_rng(0)
    episodes, n_steps = 6, 40
    position = np.repeat(rng.uniform(-1, 1, (episodes, 1, 2)), n_steps + 1, axis=1)
    position[:, 20:, 0] += 0.2  # the second dimension moves right after the first: what touches it is slow
    position[:, 21:, 1] += 0.2
    position += rng.normal(0, 0.005, position.shape)
    before, after = position[:, :-1].reshape(-1, 2), position[:, 1:].reshape(-1, 2)
    action = rng.uniform(-1, 1, (episodes * n_steps, 2))
    goal = np.repeat(rng.uniform(-1, 1, (episodes, 2)), n_steps, axis=0)
    steps = measured(Steps(before, action, after, before, after, goal, np.repeat(np.arange(episodes), n_steps)))
    assert [part.dimensions for part in find_parts(steps).parts] == [(0, 1)]
