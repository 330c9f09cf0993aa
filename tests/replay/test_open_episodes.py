"""Steps of several environments: ends, reported and unreported resets, autoreset, info."""

import warnings
from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest
from tiny import ACTION_SPACE, OBSERVATION_SPACE, buffer_of, live_episodes, make_buffer, play, seen, step, vector_step

from hindsight_rl.errors import (
    CastError,
    EpisodeTooLongError,
    InputError,
    MissingKeyError,
    NonFiniteError,
    OptionError,
    ShapeError,
)
from hindsight_rl.replay.open_episodes import FIRST_ROOM


def held(buffer):
    """The finished episodes in the order of their rows: (number, steps)."""
    return list(live_episodes(buffer.timeline).values())


def state_of(buffer):
    arrays, data = buffer.state_dict()
    return {name: array.tobytes() for name, array in arrays.items()}, data


def test_an_episode_is_stored_when_it_ends():
    buffer = make_buffer()
    for t in range(3):
        buffer.add(*step(5, t, terminated=t == 2))
        assert len(buffer) == (3 if t == 2 else 0)
    rows = buffer.timeline.rows[:4]
    assert rows["observation"].tolist() == [[5, 0], [5, 1], [5, 2], [5, 3]]
    assert rows["desired_goal"][:, 0].tolist() == [-5] * 4
    assert rows["action"][:, 0].tolist() == [0, 1, 2, 0]
    assert rows["reward"].tolist() == [0, 0.125, 0.25, 0]
    assert rows["terminated"].tolist() == [False, False, True, False]


def test_truncation_is_not_termination():
    buffer = make_buffer()
    play(buffer, 1, 3)
    assert buffer.num_episodes == 1
    assert not buffer.timeline.rows["terminated"].any()


def test_one_environment_with_and_without_the_leading_axis():
    bare, axis = make_buffer(), make_buffer()
    for t in range(4):
        observation, action, reward, after, terminated, truncated, info = step(2, t, terminated=t == 3)
        bare.add(observation, action.tolist(), reward, after, terminated, truncated, info)
        observations = [{key: value[None] for key, value in each.items()} for each in (observation, after)]
        ends = np.array([terminated]), np.array([truncated])
        axis.add(observations[0], action[None], np.array([reward]), observations[1], *ends, [info])
    assert state_of(bare) == state_of(axis)


def test_environments_are_independent():
    buffer = make_buffer(n_envs=3)
    numbers, ts, lengths = [1, 2, 3], [0, 0, 0], {1: 2, 2: 5, 3: 99, 4: 2, 5: 2}
    following = iter((4, 5, 6, 7))
    for _ in range(5):
        ends = [ts[i] + 1 == lengths.get(numbers[i], 99) for i in range(3)]
        buffer.add(*vector_step(numbers, ts, ends, [False] * 3))
        for i in range(3):
            numbers[i], ts[i] = (next(following), 0) if ends[i] else (numbers[i], ts[i] + 1)
    assert held(buffer) == [(1, 2), (4, 2), (2, 5)]
    assert buffer.open_episodes.steps.tolist() == [1, 0, 5]
    assert set(buffer.sample(200).observation[:, 0]) == {1, 2, 4}


def test_an_unreported_reset_closes_the_episode_as_truncated():
    buffer = make_buffer(n_envs=2)
    buffer.add(*vector_step([1, 2], [0, 0], [False, False], [False, False]))
    buffer.add(*vector_step([1, 2], [1, 1], [False, False], [False, False]))
    buffer.add(*vector_step([3, 2], [0, 2], [False, False], [False, False]))  # environment 0 was reset
    assert held(buffer) == [(1, 2)]
    assert not buffer.timeline.rows["terminated"].any()
    assert buffer.open_episodes.steps.tolist() == [1, 3]


def test_a_changed_desired_goal_is_not_a_reset():
    buffer = make_buffer()
    for t in range(3):
        observation, *rest = step(1, t, truncated=t == 2)
        buffer.add(observation | {"desired_goal": np.float32([40 + t])}, *rest)
    assert held(buffer) == [(1, 3)]
    assert buffer.timeline.rows["desired_goal"][:3, 0].tolist() == [40, 41, 42]


def test_end_open_episodes():
    buffer = make_buffer(n_envs=2)
    buffer.end_open_episodes()
    buffer.add(*vector_step([1, 2], [0, 0], [True, False], [False, False]))
    buffer.end_open_episodes()
    buffer.end_open_episodes()
    assert held(buffer) == [(1, 1), (2, 1)]
    assert buffer.timeline.rows["terminated"].sum() == 1


def test_closed_lists_the_episodes_that_the_last_call_appended():
    buffer = make_buffer(n_envs=2)
    buffer.add(*vector_step([1, 2], [0, 0], [False, False], [False, False]))
    assert buffer.open_episodes.closed == []
    buffer.add(*vector_step([3, 2], [0, 1], [False, True], [True, False]))  # environment 0 was reset in episode 1
    assert buffer.open_episodes.closed == [(0, 1), (0, 1), (1, 2)]
    buffer.add(*vector_step([4, 5], [0, 0], [False, False], [False, False]))
    assert buffer.open_episodes.closed == []
    buffer.end_open_episodes()
    assert buffer.open_episodes.closed == [(0, 1), (1, 1)]


@pytest.mark.parametrize(
    ("autoreset", "reward", "stored"),
    [("next_step", 0.0, 0), ("next_step", -1.0, 0), ("disabled", 0.0, 1), (None, 0.0, 1), ("same_step", 0.0, 1)],
)
def test_the_step_after_an_end_is_skipped_with_next_step_alone(autoreset, reward, stored):
    buffer = make_buffer(autoreset=autoreset)
    last = seen(1, 1)
    buffer.add(*step(1, 0, terminated=True)[:-1], {"final_obs": last} if autoreset == "same_step" else {})
    buffer.add(last, np.float32([9]), reward, seen(2, 0), False, False, {})
    assert buffer.open_episodes.steps.tolist() == [stored]
    assert held(buffer) == [(1, 1)]


def test_an_agent_that_stands_still_loses_no_step_with_manual_resets():
    """Each episode starts where the last one ended, and its first reward is 0."""
    buffer = make_buffer()
    for _ in range(4):
        for t in range(3):
            buffer.add(seen(1, 0), np.float32([0]), 0.0, seen(1, 0), False, t == 2, {})
    assert [steps for _, steps in held(buffer)] == [3, 3, 3, 3]


def test_a_reset_by_the_caller_after_next_step_starts_an_episode():
    buffer = make_buffer(autoreset="next_step")
    play(buffer, 1, 2)
    play(buffer, 2, 3)
    assert held(buffer) == [(1, 2), (2, 3)]
    assert buffer.open_episodes.breaks == 1


def walk(buffer, observations):
    """Add a walk through these observations, (x, y) each, as one episode that never ends."""
    for before, after in pairwise(observations):
        now, then = (seen(1, 0) | {"observation": np.float32(each)} for each in (before, after))
        buffer.add(now, np.float32([0]), 0.0, then, False, False, {})


def test_zero_and_negative_zero_are_the_same_observation():
    buffer = make_buffer()
    for before, after in [((1, 0.0), (0.0, 0.0)), ((-0.0, 0.0), (1, -0.0)), ((1, 0.0), (2, 0))]:
        walk(buffer, [before, after])
    assert (buffer.open_episodes.steps.tolist(), buffer.open_episodes.breaks) == ([3], 0)


def test_breaks_are_counted_and_warned_about_once():
    """Noise on each observation, such as by a normalization outside, cuts every episode to one step."""
    buffer = make_buffer()
    for t in range(3):
        walk(buffer, [(t, 0.001 * t), (t + 1, 0)])
    with pytest.warns(UserWarning, match="3 episodes were closed as truncated after 1 step"):
        walk(buffer, [(3, 0.003), (4, 0)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for t in range(5):
            walk(buffer, [(t, 0.5), (t, 0)])
    assert (buffer.open_episodes.breaks, buffer.num_episodes) == (8, 8)


def test_a_few_unreported_resets_are_only_counted():
    buffer = make_buffer()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for start in range(0, 50, 10):
            walk(buffer, [(start + t, 0) for t in range(4)])
    assert (buffer.open_episodes.breaks, buffer.num_episodes) == (4, 4)


def test_an_observation_in_the_memory_of_the_next_one_is_refused():
    buffer = make_buffer()
    array = np.zeros(2, np.float32)
    shared = seen(1, 0) | {"observation": array}
    for _ in range(2):
        with pytest.raises(InputError, match="observation of observation and next_observation must not share"):
            buffer.add(shared, np.float32([0]), 0.0, seen(1, 1) | {"observation": array[:]}, False, False, {})
    walk(buffer, [(0, 0), (1, 0)])
    with pytest.raises(InputError, match="Copy before env"):  # from the second step on
        buffer.add(shared, np.float32([0]), 0.0, shared, False, False, {})
    assert buffer.open_episodes.steps.tolist() == [1]


@pytest.mark.parametrize(
    ("autoreset", "n_envs", "message"),
    [
        (None, 2, r'got None. Pass env.metadata\["autoreset_mode"\]'),
        ("sometimes", 1, "one of 'disabled', 'next_step', 'same_step', got 'sometimes'"),
        (3, 1, "got 3"),
        ("", 2, "got ''"),
    ],
)
def test_an_unknown_autoreset_mode_is_refused(autoreset, n_envs, message):
    with pytest.raises(OptionError, match=message):
        make_buffer(autoreset=autoreset, n_envs=n_envs)


def test_slices_of_one_array_that_have_no_byte_in_common_are_stored():
    """Recorded data (episodes, steps, size): the steps of one array lie between each other in memory."""
    recorded = {key: np.zeros((2, 4, space.shape[0]), np.float32) for key, space in OBSERVATION_SPACE.items()}
    for values in recorded.values():
        values += np.arange(4, dtype=np.float32)[:, None]
    buffer = make_buffer(n_envs=2)
    for t in range(3):
        before, after = ({key: values[:, u] for key, values in recorded.items()} for u in (t, t + 1))
        buffer.add(before, np.zeros((2, 1), np.float32), np.zeros(2), after, np.zeros(2, bool), np.full(2, t == 2))
    assert len(buffer) == 6
    overlapping = np.zeros((2, 3), np.float32)
    before, after = (seen(1, t) | {"observation": overlapping.reshape(-1)[t : t + 2]} for t in (0, 1))
    with pytest.raises(InputError, match="must not share memory"):
        make_buffer().add(before, np.float32([0]), 0.0, after, False, False, {})


def test_same_step_without_the_final_observation_is_refused():
    buffer = make_buffer(n_envs=2, autoreset="same_step")
    with pytest.raises(MissingKeyError, match="no final_obs for environment 1"):
        buffer.add(*vector_step([1, 2], [0, 0], [False, True], [False, False]))
    assert buffer.open_episodes.steps.tolist() == [0, 0]


@pytest.mark.parametrize("info", [{"final_obs": np.array([None, seen(2, 1)])}, [{}, {"final_obs": seen(2, 1)}]])
@pytest.mark.parametrize("autoreset", ["disabled", "next_step"])
def test_final_observations_in_another_mode_are_refused(autoreset, info):
    buffer = make_buffer(n_envs=2, autoreset=autoreset)
    with pytest.raises(InputError, match="autoreset must be 'same_step', but it is"):
        buffer.add(*vector_step([1, 2], [0, 0], [False, True], [False, False])[:-1], info)


def test_final_observations_of_the_same_step():
    """Gymnasium's SAME_STEP: next_observation belongs to the next episode, and the last observation is in info."""
    buffer = make_buffer(n_envs=2, info_keys=("wind",), autoreset="same_step")
    first, action, reward, second, *_ = vector_step([1, 2], [0, 0], [0, 0], [0, 0])
    second = {key: value.copy() for key, value in second.items()}
    for key, value in seen(3, 0).items():
        second[key][0] = value
    info = {
        "final_obs": np.array([seen(1, 1), None], object),
        "_final_obs": np.array([True, False]),
        "final_info": {"wind": np.array([0.5, 0.0]), "_wind": np.array([True, False])},
        "_final_info": np.array([True, False]),
        "wind": np.array([7.0, 0.25]),  # of the reset, and of the step
        "_wind": np.array([True, True]),
    }
    buffer.add(first, action, reward, second, np.array([True, False]), np.array([False, False]), info)
    rows = buffer.timeline.rows[:2]
    assert rows["observation"].tolist() == [[1, 0], [1, 1]]
    assert rows["info:wind"].tolist() == [0.5, 0.0]
    third = vector_step([3, 2], [0, 1], [False, False], [False, False])
    buffer.add(*third[:-1], {"wind": np.zeros(2)})
    assert buffer.open_episodes.steps.tolist() == [1, 2]


def test_final_observations_in_a_list_of_infos():
    buffer = make_buffer(n_envs=2, autoreset="same_step")
    first, action, reward, second, *_ = vector_step([1, 2], [0, 0], [0, 0], [0, 0])
    truncated, infos = np.array([False, True]), [{}, {"final_obs": seen(2, 44)}]
    buffer.add(first, action, reward, second, ~truncated & False, truncated, infos)
    assert buffer.timeline.rows["observation"][:2].tolist() == [[2, 0], [2, 44]]


class Walk(gym.Env):
    """Episodes of 2, 3, 2, 3, ... steps, numbered from `first`, every other one terminated."""

    observation_space, action_space = OBSERVATION_SPACE, ACTION_SPACE

    def __init__(self, first):
        self.number, self.t = first - 1, 0

    def reset(self, *, seed=None, options=None):
        self.number, self.t = self.number + 1, 0
        return seen(self.number, 0), {}

    def step(self, action):
        self.t += 1
        is_over = self.t == 2 + self.number % 2
        return seen(self.number, self.t), -1.0, is_over and self.number % 2 == 0, is_over, {"wind": float(self.t)}


@pytest.mark.parametrize("mode", list(gym.vector.AutoresetMode))
def test_every_autoreset_mode_of_gymnasium(mode):
    env = gym.vector.SyncVectorEnv([lambda: Walk(10), lambda: Walk(25)], autoreset_mode=mode)
    buffer = make_buffer(n_envs=2, info_keys=("wind",), autoreset=mode)
    observation, _ = env.reset()
    while buffer.num_episodes < 7:
        action = env.action_space.sample() * 0
        after, reward, terminated, truncated, info = env.step(action)
        buffer.add(observation, action, reward, after, terminated, truncated, info)
        observation, ends = after, terminated | truncated
        if mode is gym.vector.AutoresetMode.DISABLED and ends.any():
            observation, _ = env.reset(options={"reset_mask": ends})
    env.close()
    episodes = live_episodes(buffer.timeline)
    assert {(10, 2), (11, 3), (12, 2), (25, 3), (26, 2), (27, 3)} <= set(episodes.values())
    for start, (number, steps) in episodes.items():
        rows = buffer.timeline.rows[start : start + steps + 1]
        assert rows["observation"].tolist() == [[number, t] for t in range(steps + 1)]
        assert rows["info:wind"].tolist() == [*range(1, steps + 1), 0]
        assert rows["terminated"].tolist() == [False] * (steps - 1) + [number % 2 == 0, False]


@pytest.mark.parametrize(
    "info",
    [
        {"wind": np.array([1.5, 2.5]), "_wind": np.array([True, True])},
        {"wind": [1.5, 2.5]},
        [{"wind": 1.5}, {"wind": np.float32(2.5), "more": "text"}],
    ],
)
def test_info_in_every_format(info):
    buffer = make_buffer(n_envs=2, info_keys=("wind",))
    buffer.add(*vector_step([1, 2], [0, 0], [True, True], [False, False])[:-1], info)
    assert buffer.timeline.rows["info:wind"].tolist()[:4] == [1.5, 0, 2.5, 0]


@pytest.mark.parametrize(
    "info",
    [
        {"force": np.array([[1.0, 2.0], [3.0, 4.0]]), "_force": np.array([True, True])},
        {"final_info": {"force": np.array([[1.0, 2.0], [3.0, 4.0]])}, "force": np.zeros((2, 2))},
        [{"force": [1, 2]}, {"force": np.array([3.0, 4.0])}],
    ],
)
def test_info_arrays_in_every_format(info):
    buffer = make_buffer(n_envs=2, info_keys=("force[2]",))
    buffer.add(*vector_step([1, 2], [0, 0], [True, True], [False, False])[:-1], info)
    assert buffer.timeline.rows["info:force"].tolist()[:4] == [[1, 2], [0, 0], [3, 4], [0, 0]]


@pytest.mark.parametrize(
    "info", [[{"force": [1, 2, 3]}, {}], {"force": np.zeros(2)}, [{"force": [1, np.nan]}, {"force": [1, 2]}]]
)
def test_info_arrays_that_do_not_fit_are_named(info):
    buffer = make_buffer(n_envs=2, info_keys=("force[2]",))
    with pytest.raises(InputError, match=r"info\['force'\] must"):
        buffer.add(*vector_step([1, 2], [0, 0], [True, True], [False, False])[:-1], info)
    assert buffer.open_episodes.steps.tolist() == [0, 0]


@pytest.mark.parametrize("info", [None, {}, {"wind": np.zeros(2), "_wind": np.array([True, False])}, [{"wind": 1}, {}]])
def test_a_missing_info_key_is_named(info):
    buffer = make_buffer(n_envs=2, info_keys=("wind",))
    with pytest.raises(MissingKeyError, match=r"info\['wind'\] must be a finite number"):
        buffer.add(*vector_step([1, 2], [0, 0], [True, True], [False, False])[:-1], info)
    assert buffer.open_episodes.steps.tolist() == [0, 0]


def test_the_info_of_a_reset_step_need_not_have_the_keys():
    buffer = make_buffer(info_keys=("wind",), autoreset="next_step")
    buffer.add(*step(1, 0, terminated=True)[:-1], {"wind": 1.0})
    buffer.add(seen(1, 1), np.float32([9]), 0.0, seen(2, 0), False, False, {"speed": 3})
    assert held(buffer) == [(1, 1)]


def wrong_steps():
    """The error, its message, the position of the wrong argument of `add`, and its value."""
    good = vector_step([1, 2], [3, 3], [False, False], [False, False])
    bad = {key: value.copy() for key, value in good[0].items()}
    bad["achieved_goal"][1] = np.nan
    big = good[3] | {"observation": np.full((2, 2), 1e39)}
    return [
        (NonFiniteError, r"observation\['achieved_goal'\] must be finite, got nan at index \(1, 0\)", 0, bad),
        (CastError, r"next_observation\['observation'\] is infinite as float32", 3, big),
        (NonFiniteError, "reward must be finite, got -inf", 2, np.array([0, -np.inf])),
        (NonFiniteError, "action must be finite, got nan", 1, np.array([[np.nan], [0]])),
        (ShapeError, r"Expected shape \(2, 1\) for action, got \(2,\)", 1, np.zeros(2)),
        (ShapeError, r"for reward, got \(2, 1\)", 2, np.zeros((2, 1))),
        (ShapeError, r"for reward, got \(\)", 2, 0.5),
        (ShapeError, r"for truncated, got \(3,\)", 5, np.zeros(3, bool)),
        (ShapeError, r"for next_observation\['observation'\], got \(2,\)", 3, seen(1, 1)),
        (
            MissingKeyError,
            "observation must have observation, achieved_goal, .* got observation",
            0,
            {"observation": 0},
        ),
        (MissingKeyError, "next_observation must have .* got ndarray", 3, np.zeros((2, 4))),
        (CastError, "terminated is stored as bool, .* cannot hold 2", 4, np.array([0, 2])),
        (InputError, "action cannot be converted", 1, [[1.0], [1.0, 2.0]]),
    ]


@pytest.mark.parametrize(("error", "message", "position", "value"), wrong_steps())
def test_a_refused_step_changes_nothing(error, message, position, value):
    buffer = make_buffer(n_envs=2)
    for t in range(3):
        buffer.add(*vector_step([1, 2], [t, t], [False, False], [False, False]))
    before = state_of(buffer)
    arguments = list(vector_step([1, 2], [3, 3], [False, False], [False, False]))
    arguments[position] = value
    with pytest.raises(error, match=message):
        buffer.add(*arguments)
    assert state_of(buffer) == before
    buffer.add(*vector_step([1, 2], [3, 3], [False, False], [True, True]))
    assert held(buffer) == [(1, 4), (2, 4)]


@pytest.mark.parametrize(
    ("error", "message", "change"),
    [
        (NonFiniteError, r"final_obs\[1\]\['observation'\] must be finite", lambda v: v * np.nan),
        (ShapeError, r"Expected shape \(2,\) for final_obs\[1\]\['observation'\], got \(0,\)", lambda v: v[:0]),
    ],
)
def test_an_unusable_final_observation_is_refused(error, message, change):
    buffer = make_buffer(n_envs=2, autoreset="same_step")
    before = state_of(buffer)
    info = [{}, {"final_obs": {key: change(value) for key, value in seen(2, 1).items()}}]
    with pytest.raises(error, match=message):
        buffer.add(*vector_step([1, 2], [0, 0], [False, True], [False, False])[:-1], info)
    assert state_of(buffer) == before


def test_an_episode_longer_than_the_capacity_is_refused_with_its_step():
    buffer = make_buffer(capacity=4, n_envs=2)
    for t in range(4):
        buffer.add(*vector_step([1, 2], [t, t], [False, t == 1], [False, False]))
    before = state_of(buffer)
    with pytest.raises(EpisodeTooLongError, match="Episode has 5 steps, but capacity is 4 transitions"):
        buffer.add(*vector_step([1, 9], [4, 0], [False, False], [False, False]))
    assert state_of(buffer) == before
    buffer.add(*vector_step([3, 2], [0, 4], [False, True], [False, False]))
    assert held(buffer) == [(2, 3)]  # it evicted the four steps of the first


def test_memory_of_open_episodes_grows_up_to_the_capacity():
    buffer = make_buffer(capacity=3 * FIRST_ROOM, n_envs=2)
    for t in range(3 * FIRST_ROOM):
        buffer.add(*vector_step([1, 1000 + t], [t, 0], [False, True], [False, False]))
    assert buffer.open_episodes.rows.shape == (2, 3 * FIRST_ROOM + 1)
    buffer.add(*vector_step([5000, 5001], [0, 0], [True, True], [False, False]))
    assert buffer.open_episodes.steps.tolist() == [0, 0]


def test_padding_between_the_fields_does_not_break_an_episode():
    """A uint8 observation of 3 bytes before a float goal leaves a gap in the row."""
    goal = gym.spaces.Box(-9, 9, (1,))
    space = gym.spaces.Dict(observation=gym.spaces.Box(0, 255, (3,), np.uint8), achieved_goal=goal, desired_goal=goal)
    buffer = buffer_of(500, space, gym.spaces.Discrete(4), lambda a, g, info: np.zeros(len(a)))
    steps = 2 * FIRST_ROOM  # the memory grows meanwhile
    for t in range(steps):
        before, after = (
            {"observation": np.full(3, x, np.uint8), "achieved_goal": np.float32([x]), "desired_goal": np.zeros(1)}
            for x in (t % 8, (t + 1) % 8)
        )
        buffer.add(before, t % 4, -1.0, after, False, t == steps - 1)
    assert (len(buffer), buffer.num_episodes) == (steps, 1)
    assert buffer.sample(4).action.dtype == np.uint8
