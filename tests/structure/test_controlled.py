"""Which columns actions move."""

import numpy as np
import pytest

from hindsight_rl.structure.controlled import find_controlled_columns
from hindsight_rl.structure.steps import Steps


def played(make_columns, n_episodes=8, length=50, seed=0):
    """Steps of random episodes; make_columns(actions (length, 2), rng) -> columns of the observation, length + 1 each."""
    rng, each = np.random.default_rng(seed), []
    for number in range(n_episodes):
        actions = rng.uniform(-1, 1, (length, 2))
        seen = np.stack(make_columns(actions, rng), 1)
        each.append((seen[:-1], actions, seen[1:], np.full(length, number)))
    before, action, after, episode = map(np.concatenate, zip(*each, strict=True))
    goal = np.zeros((len(action), 1))
    return Steps(before, action, after, goal, goal, goal, episode)


def driven(force, kept):
    """Positions, one more than forces, of a body that keeps a part of its speed in each step."""
    speed, place = 0.0, [0.0]
    for each in force:
        speed = kept * speed + each
        place.append(place[-1] + speed)
    return np.array(place)


def test_what_forces_move_is_controlled_and_what_slides_on_is_not():
    def make_columns(actions, rng):
        pushes = np.where(rng.random(len(actions)) < 0.03, actions[:, 1], 0.0)
        return driven(actions[:, 0], 0.95), driven(pushes, 0.95), driven(rng.normal(size=len(actions)), 0.0)

    found = find_controlled_columns(played(make_columns))
    assert found.columns == found.clear == (0,)
    assert found.effect[:, 0] == pytest.approx([1, 0], abs=0.1)


def test_what_actions_move_for_certain_is_controlled_though_they_explain_little_of_it():
    """A hand on a table sinks no further, so in most steps its height stays, and now and then something else moves it."""

    def make_columns(actions, rng):
        lift = np.where(rng.random(len(actions)) < 0.5, 0.3 * actions[:, 0], 0.0) + rng.normal(size=len(actions)) * 0.3
        return driven(lift, 0.0), driven(rng.normal(size=len(actions)), 0.0)

    found = find_controlled_columns(played(make_columns, n_episodes=20))
    assert found.columns == (0,)
    assert found.r2[0] < 0.2
    assert not found.clear


def test_a_heading_that_jumps_decides_where_a_car_drives():
    """Its speed and its turning are the actions; without cosine and sine of the heading neither position follows them."""

    def make_columns(actions, rng):
        heading = rng.uniform(-np.pi, np.pi) + np.append(0, 0.5 * actions[:, 1].cumsum())
        along = actions[:, 0] * [np.cos(heading[:-1]), np.sin(heading[:-1])]
        x, y = np.append(0, along[0].cumsum()), np.append(0, along[1].cumsum())
        return x, y, (heading + np.pi) % (2 * np.pi) - np.pi

    steps = played(make_columns, n_episodes=20)
    found = find_controlled_columns(steps)
    assert found.clear == (0, 1, 2)
    assert found.posture.angles == (2,)
    assert found.by_posture.shape == (3 + 2, 2, 3)
    at = np.array([[0.0, 0.0, np.pi / 2]])
    effect = found.effect + np.tensordot(found.posture.of(at), found.by_posture, 1)[0]
    assert effect[0] == pytest.approx([0, 1, 0], abs=0.1)  # it drives to where it looks
    assert effect[1] == pytest.approx([0, 0, 0.5], abs=0.1)


def test_an_action_may_be_a_target_position():
    """In each step it goes half of the way."""

    def make_columns(actions, rng):
        place = [0.5]
        for target in actions[:, 1]:
            place.append(place[-1] + 0.5 * (target - place[-1]))
        return (np.array(place),)

    found = find_controlled_columns(played(make_columns))
    assert found.effect[:, 0] == pytest.approx([0, 0.5])
    assert found.drift[:, 0] == pytest.approx([-0.5, 0])


def test_a_car_moves_where_it_heads():
    """Actions: its speed, and how far it turns. Columns: position, cosine and sine of the heading."""

    def make_columns(actions, rng):
        heading = rng.uniform(0, 2 * np.pi) + np.append(0, 0.4 * actions[:, 1].cumsum())
        along = np.stack([np.cos(heading), np.sin(heading)])
        position = np.append(np.zeros((2, 1)), (0.1 * actions[:, 0] * along[:, :-1]).cumsum(1), axis=1)
        return (*position, *along)

    steps = played(make_columns, n_episodes=15)
    found = find_controlled_columns(steps)
    assert {0, 1} <= set(found.clear)
    seen = steps.observation[7]
    effect = found.effect + np.tensordot(found.posture.of(seen), found.by_posture, 1)
    assert effect[:, found.at((0, 1))] == pytest.approx(np.stack([0.1 * seen[2:], [0, 0]]), abs=0.01)


@pytest.mark.parametrize(("n_episodes", "length"), [(4, 50), (5, 50), (30, 2)])
def test_few_episodes_of_noise_show_no_column_that_actions_move(n_episodes, length):
    """At an error rate of 5 %, of 20 inferences with 12 columns each one finds a column by chance."""

    def make_columns(actions, rng):
        return tuple(driven(row, 0.0) for row in rng.normal(size=(12, len(actions))))

    found = [find_controlled_columns(played(make_columns, n_episodes, length, seed)).columns for seed in range(20)]
    assert sum(map(bool, found)) <= 3
