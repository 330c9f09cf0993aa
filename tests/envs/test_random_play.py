"""Random episodes for checks."""

from itertools import groupby, islice

import numpy as np
import pytest
from line_env import Line

from hindsight_rl.envs.random_play import numeric_info, play_actions, random_actions, random_state_kept, step
from hindsight_rl.errors import GoalEnvError


def play(env, seed, max_steps):
    return play_actions(env, seed, islice(random_actions(env, seed), max_steps))


def test_an_episode_holds_what_the_environment_returned():
    episode = play(Line(), 1, 4)
    assert len(episode) == 4
    achieved, desired, info = episode.goals()
    assert achieved.shape == desired.shape == (4, 2)
    moves = [action[0] for _, action in zip(range(4), random_actions(Line(), 1), strict=False)]
    assert np.allclose(np.diff(np.r_[episode.observations["achieved_goal"][0][:1], achieved[:, 0]]), moves, atol=1e-6)
    assert info["is_success"].tolist() == [reward == 0 for reward in episode.rewards]
    assert episode.to_bytes() == play(Line(), 1, 4).to_bytes()
    assert episode.to_bytes() != play(Line(), 2, 4).to_bytes()


@pytest.mark.filterwarnings("ignore:.*played again")
def test_an_error_names_the_step():
    env = Line()
    env.info = lambda observation: {} if env.steps < 3 else 1 / 0
    with pytest.raises(GoalEnvError, match=r"Step 2 of an episode with seed 1 failed \(ZeroDivisionError"):
        play(env, 1, 10)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (1, None, "reward as one number"),
        (1, np.zeros(2), "one number"),
        (2, "no", "True or False"),
        (3, np.zeros(2), "True or False"),
        (4, None, "as a dict"),
    ],
)
def test_a_step_that_returns_something_else_is_an_error(place, value, message):
    returned = [{}, -1.0, False, False, {}]
    env = Line()
    env.step = lambda action: tuple(returned)
    assert step(env, 0) == ({}, -1.0, False, False, {})
    returned[2] = np.float32(1)  # as of a success that is computed in floats
    assert step(env, 0)[2] is True
    returned[place] = value
    with pytest.raises(TypeError, match=f"step must return .*{message}, got"):
        step(env, 0)


def test_random_state_is_restored_and_actions_come_from_a_copy_of_the_space():
    env, other = Line(), Line()
    for e in (env, other):
        e.reset(seed=3)
        e.action_space.seed(4)
    with random_state_kept(env):
        env.reset(seed=9)
        next(random_actions(env, 0))
    assert np.array_equal(env.reset()[0]["observation"], other.reset()[0]["observation"])
    assert np.array_equal(env.action_space.sample(), other.action_space.sample())
    fresh = Line()
    with random_state_kept(fresh):
        fresh.reset(seed=0)
    assert fresh._np_random is None


def test_actions_can_be_repeated():
    moves = [action[0] for action in islice(random_actions(Line(), 1, most_repeats=4), 1000)]
    lengths = [len(list(group)) for _, group in groupby(moves)][:-1]
    assert set(lengths) == {1, 2, 3, 4}
    once = [action[0] for action in islice(random_actions(Line(), 1), 100)]
    assert [move for move, _ in groupby(moves)][:100] == once


def test_numeric_info_omits_entries_that_are_not_numbers_or_not_in_every_info():
    columns = numeric_info([{"a": 1, "b": "x", "c": 1.0, "d": [1, 2]}, {"a": True, "b": "y", "d": [3, 4]}])
    assert {k: v.tolist() for k, v in columns.items()} == {"a": [1, 1], "d": [[1, 2], [3, 4]]}
    assert numeric_info([]) == {}
    assert numeric_info([{"contacts": [[1], [2, 3]], "speed": 2.0}] * 2).keys() == {"speed"}
