"""Where episodes fail."""

import numpy as np
import pytest

from hindsight_rl.structure.failures import N_NEAREST, Failures


def walk(n_episodes, seed=0, length=20, is_pit=lambda x: x > 0.8):
    """Steps on a line between -1 and 1, each anywhere; an episode fails in its first step into a pit, and ends there."""
    rng, states, fails, episode = np.random.default_rng(seed), [], [], []
    for k in range(n_episodes):
        x = rng.uniform(-1, 1, length)
        n = int(is_pit(x).argmax()) + 1 if is_pit(x).any() else length
        states += x[:n].tolist()
        fails += [*[False] * (n - 1), bool(is_pit(x[n - 1]))]
        episode += [k] * n
    return np.array(states)[:, None], np.array(fails), np.array(episode)


def test_a_pit_on_one_side_is_lost_on_the_other():
    states, *rest = walk(40)
    failures = Failures(states, *rest)
    assert failures.is_known
    assert (failures.lost(states).mean, failures.lost(states).error) == (0.0, 0.0)
    assert failures.lost(-states).mean == pytest.approx(1.0)


def test_a_pit_on_each_side_is_kept():
    states, *rest = walk(40, is_pit=lambda x: np.abs(x) > 0.8)
    assert Failures(states, *rest).lost(-states).is_below(0.5, 3)


def test_few_failures_and_failures_by_chance_say_nothing():
    assert not Failures(*walk(9)).is_known
    states, fails, episode = walk(40)
    assert not Failures(np.random.default_rng(1).permutation(states), fails, episode).is_known


def test_the_units_of_a_column_do_not_matter():
    states, *rest = walk(40)
    both = np.column_stack([states, np.random.default_rng(2).uniform(size=states.shape)])
    moved = both * np.array([-1, 1])
    scaled = Failures(both * np.array([1, 1e3]), *rest).lost(moved * np.array([1, 1e3]))
    assert scaled.mean == pytest.approx(Failures(both, *rest).lost(moved).mean)


def test_the_nearest_states_are_of_other_episodes():
    """Against a slow model: sort the states of other episodes by their distance."""
    rng = np.random.default_rng(3)
    states, fails, episode = rng.normal(size=(200, 3)), rng.random(200) < 0.2, np.repeat(np.arange(20), 10)
    moved = states * np.array([-1, 1, 1])
    scale = states.std(0)

    def beside(points):
        each = []
        for row in np.flatnonzero(fails):
            others = np.flatnonzero(episode != episode[row])
            nearest = sorted(others, key=lambda at: np.linalg.norm((states[at] - points[row]) / scale))[:N_NEAREST]
            each.append(fails[nearest].mean())
        return np.array(each)

    usual = beside(states)
    lost = Failures(states, fails, episode).lost(moved)
    assert lost.mean == pytest.approx(((usual - beside(moved)) / usual.mean()).mean())
