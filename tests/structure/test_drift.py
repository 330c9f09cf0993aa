"""Objects that move on by themselves: friction is no drift, a slope is."""

from dataclasses import replace

import numpy as np

from hindsight_rl.structure.contact import Contact
from hindsight_rl.structure.drift import find_drift
from hindsight_rl.structure.steps import Steps

EPISODES, STEPS = 12, 8
CONTACT = Contact(tool=(0, 1), object_columns=(2, 3), n_onsets=9, distances=(0.1, 0.1, 0.1), in_reach=0.0, moves_on=1.0)


def slope(velocity):
    return np.broadcast_to([0.0, -0.01], velocity.shape)


def steps_of_rolling(acceleration):
    """Episodes in which an object rolls from 0, with `acceleration(velocity)` added in each step, far from the tool."""
    velocity = np.random.default_rng(0).uniform(-1, 1, (EPISODES, 2))
    positions = [np.zeros((EPISODES, 2))]
    for _ in range(STEPS):
        positions.append(positions[-1] + velocity)
        velocity = velocity + acceleration(velocity)
    path = np.stack(positions, axis=1)  # (EPISODES, STEPS + 1, 2)
    seen = np.concatenate([np.full_like(path, -5.0), path], axis=2)
    before, after = seen[:, :-1].reshape(-1, 4), seen[:, 1:].reshape(-1, 4)
    goals = np.repeat(np.random.default_rng(1).uniform(-1, 1, (EPISODES, 2)), STEPS, axis=0)
    episode = np.repeat(np.arange(EPISODES), STEPS)
    return Steps(before, np.zeros((len(before), 2)), after, before[:, 2:], after[:, 2:], goals, episode)


def test_friction_is_no_drift():
    for friction in (lambda v: -0.1 * v, lambda v: -0.02 * v / np.linalg.norm(v, axis=1, keepdims=True)):
        for drift in find_drift(steps_of_rolling(friction), CONTACT):
            assert drift.mean < 1e-6


def test_what_a_slope_adds_in_each_step_is_the_drift_along_it():
    along_x, along_y = find_drift(steps_of_rolling(slope), CONTACT)
    assert along_x.mean < 1e-6
    # nothing else changes the velocity; the part that goes along with the velocity passes for friction
    assert 0.7 < along_y.mean < 1.0
    assert along_y.is_above(0.5, 1)


def test_without_steps_far_from_the_tool_the_drift_is_unknown():
    near = replace(CONTACT, distances=(5.0, 5.0, 5.0))  # three times this distance holds all of the steps
    for drift in find_drift(steps_of_rolling(slope), near):
        assert drift.error == np.inf
        assert not drift.is_above(0.0, 1)
