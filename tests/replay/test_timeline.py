import warnings
from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import ACTION_SPACE, SPEC, box, buffer_of, compute_reward, live_episodes, make_episode, play, step

from hindsight_rl import Episode, GoalSpec, HindsightBuffer, Timeline, storage
from hindsight_rl.errors import (
    EpisodeTooLongError,
    FileError,
    InputError,
    MissingKeyError,
    NonFiniteError,
    OptionError,
    ShapeError,
)
from hindsight_rl.options import ReplayOptions


def append_all(timeline, lengths):
    for number, steps in enumerate(lengths):
        timeline.append(make_episode(number, steps))


def test_an_episode_is_its_steps_and_a_last_row():
    timeline = Timeline(SPEC, 10)
    timeline.append(make_episode(7, 3, terminated=True))
    rows = timeline.rows[:4]
    assert rows["steps_done"].tolist() == [0, 1, 2, 3]
    assert rows["steps_left"].tolist() == [3, 2, 1, 0]
    assert rows["achieved_goal"][:, 0].tolist() == [7000, 7001, 7002, 7003]
    assert rows["action"][:, 0].tolist() == [0, 1, 2, 0]
    assert rows["reward"].tolist() == [0, 0.125, 0.25, 0]
    assert rows["terminated"].tolist() == [False, False, True, False]
    assert (len(timeline), timeline.num_episodes, timeline.high_water) == (3, 1, 4)
    assert timeline.live_rows().tolist() == [0, 1, 2]


def test_full_length_episodes_fill_the_capacity_exactly():
    timeline = Timeline(SPEC, 12, episode_length=3)
    append_all(timeline, [3] * 9)
    assert len(timeline.rows) == 16
    assert len(timeline) == 12
    assert live_episodes(timeline) == {0: (8, 3), 4: (5, 3), 8: (6, 3), 12: (7, 3)}


def test_the_cursor_wraps_if_an_episode_does_not_fit_behind_it():
    timeline = Timeline(SPEC, 8, episode_length=4)  # 10 rows
    append_all(timeline, [3, 3, 2])  # rows 0-3, 4-7; two rows remain, the third needs three
    assert live_episodes(timeline) == {0: (2, 2), 4: (1, 3)}
    assert timeline.live_rows().tolist() == [0, 1, 4, 5, 6]


def test_an_episode_as_long_as_the_capacity_can_be_sampled():
    timeline = Timeline(SPEC, 5, episode_length=2)
    append_all(timeline, [2, 5])
    assert live_episodes(timeline) == {0: (1, 5)}


def place_slowly(size, capacity, lengths):
    """The ring as a list of episodes: those that are overwritten, passed or too many are evicted, the oldest first."""
    held, cursor = [], 0
    for number, steps in enumerate(lengths):
        start = cursor if cursor + steps + 1 <= size else 0
        passed = range(cursor, size) if start == 0 and cursor else range(0)
        taken = {*range(start, start + steps + 1), *passed}
        while any(taken & set(range(s, s + n + 1)) for _, s, n in held) or sum(n for *_, n in held) + steps > capacity:
            held.pop(0)
        held.append((number, start, steps))
        cursor = start + steps + 1
    return {start: (number, steps) for number, start, steps in held}


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(1, 12), st.none() | st.integers(1, 5), st.lists(st.integers(1, 12), max_size=30))
def test_the_ring_equals_a_list_of_episodes(capacity, episode_length, lengths):
    timeline, lengths = Timeline(SPEC, capacity, episode_length), [min(n, capacity) for n in lengths]
    append_all(timeline, lengths)
    held = place_slowly(len(timeline.rows), capacity, lengths)
    assert live_episodes(timeline) == held
    assert (len(timeline), timeline.num_episodes) == (sum(n for _, n in held.values()), len(held))
    dead = np.ones(len(timeline.rows), bool)
    for start, (_, steps) in held.items():
        dead[start : start + steps + 1] = False
    assert not timeline.steps_done[dead].any()
    timeline.check(timeline.state())


def test_holds_includes_last_rows():
    timeline = Timeline(SPEC, 4, episode_length=2)
    timeline.append(make_episode(1, 2))
    timeline.append(make_episode(2, 1))
    timeline.append(make_episode(3, 3))  # evicts the first and the second
    assert live_episodes(timeline) == {0: (3, 3)}
    assert timeline.holds(np.arange(-1, 6)).tolist() == [False, True, True, True, True, False, False]
    assert timeline.holds(np.array([10**9])).tolist() == [False]


def test_append_rows_adds_all_episodes_or_none():
    timeline = Timeline(SPEC, 6)
    rows = [np.zeros(steps + 1, timeline.rows.dtype) for steps in (2, 7)]
    with pytest.raises(EpisodeTooLongError):
        timeline.append_rows(rows)
    assert timeline.num_episodes == timeline.cursor == 0
    timeline.append_rows([rows[0], rows[0].copy()])
    assert (timeline.num_episodes, timeline.steps_left[:6].tolist()) == (2, [2, 1, 0, 2, 1, 0])


def test_a_refused_episode_changes_nothing():
    timeline = Timeline(SPEC, 6, info_keys=("wind",))
    timeline.append(make_episode(1, 2, info={"wind": np.zeros(2)}))
    before = {name: value.copy() for name, value in timeline.state().items()}
    good = make_episode(2, 3, info={"wind": np.zeros(3)})
    fields = {name: getattr(good, name) for name in ("observation", "achieved_goal", "desired_goal", "action", "reward")}
    for error, changes, message in [
        (NonFiniteError, {"reward": np.array([0, np.nan, 0])}, r"reward must be finite, got nan at index \(1,\)"),
        (ShapeError, {"desired_goal": np.zeros((4, 2))}, r"Expected shape \(4, 1\) for desired_goal, got \(4, 2\)"),
        (ShapeError, {"action": np.zeros((3,))}, "for action, got"),
        (MissingKeyError, {"info": {}}, "the info of the episode must have wind, got nothing"),
        (NonFiniteError, {"info": {"wind": np.full(3, np.inf)}}, "info:wind must be finite, got inf"),
    ]:
        with pytest.raises(error, match=message):
            timeline.append(Episode(**({**fields, "info": good.info} | changes)))
    with pytest.raises(EpisodeTooLongError, match="Episode has 7 steps, but capacity is 6 transitions"):
        timeline.append(make_episode(3, 7))
    with pytest.raises(InputError, match="at least 1 step"):
        timeline.append(make_episode(3, 0))
    assert all((timeline.state()[name] == value).all() for name, value in before.items())
    timeline.append(good)
    assert len(timeline) == 5


def test_info_keys_are_columns():
    timeline = Timeline(SPEC, 6, info_keys=("wind",))
    timeline.append(make_episode(1, 2, info={"wind": np.array([0.1, 0.2]), "more": np.zeros(2)}))
    assert timeline.rows["info:wind"][:3].tolist() == [0.1, 0.2, 0.0]


def test_an_info_key_may_be_an_array():
    timeline, force = Timeline(SPEC, 6, info_keys=("force[2,1]",)), np.array([[[1.0], [2.0]], [[3.0], [4.0]]])
    timeline.append(make_episode(1, 2, info={"force": force}))
    (episode,) = timeline.episodes()
    assert episode.info["force"].tolist() == force.tolist()
    with pytest.raises(ShapeError, match="for info:force"):
        timeline.append(make_episode(1, 2, info={"force": force[:, 0]}))


@pytest.mark.parametrize("value", [0, -3, 2.5, "many"])
def test_sizes_are_whole_numbers(value):
    with pytest.raises(OptionError, match="capacity must be a whole number"):
        Timeline(SPEC, value)
    with pytest.raises(OptionError, match="episode_length must be a whole number"):
        Timeline(SPEC, 10, episode_length=value)


def test_a_ring_larger_than_the_memory_is_refused():
    with pytest.raises(OptionError, match=r"GB of memory are free. Lower capacity"):
        Timeline(SPEC, 10**13)


def test_free_memory_and_the_memory_of_a_cgroup_count(monkeypatch, tmp_path):
    machine, limit, statistics = (tmp_path / name for name in ("meminfo", "memory.max", "memory.stat"))
    monkeypatch.setattr(storage, "_MEMORY", str(machine))
    monkeypatch.setattr(storage, "_CGROUPS", [(str(limit), str(statistics), "anon ")])
    machine.write_text("MemTotal:  9000000 kB\nMemAvailable:  1000000 kB\n")
    assert storage.free_memory() == 1_024_000_000
    limit.write_text("max\n")
    assert storage.free_memory() == 1_024_000_000
    limit.write_text("500000000\n")
    statistics.write_text("file 100000000\nanon 400000000\n")
    assert storage.free_memory() == 100_000_000
    with pytest.raises(OptionError, match=r"The rows take 0\.4 GB, but 0\.1 GB of memory are free"):
        Timeline(SPEC, 10**7)


def test_info_keys_must_differ():
    with pytest.raises(OptionError, match="info_keys must differ from each other, got a, b, a"):
        Timeline(SPEC, 10, info_keys=["a", "b", "a"])


def test_memory_per_transition_of_fetch_push():
    space = spaces.Dict(observation=box(25), achieved_goal=box(3), desired_goal=box(3))
    timeline = Timeline(GoalSpec.from_spaces(space, box(4)), 1_000_000, episode_length=50)
    assert timeline.nbytes / 1_000_000 <= 165


def test_large_float64_goals_are_warned_of_once():
    space = spaces.Dict(observation=box(2), achieved_goal=box(1, np.float64), desired_goal=box(1, np.float64))
    spec = GoalSpec.from_spaces(space, ACTION_SPACE)
    timeline = Timeline(spec, 100)
    timeline.append(make_episode(1, 3))  # 1003: spacing 0.00006
    near = replace(make_episode(3, 1), desired_goal=np.full((2, 1), 3000.5))  # from 3000 to 3001
    with pytest.warns(UserWarning, match="Goals up to 3001 lose precision in float32 .spacing 0.0002"):
        timeline.append(near)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        timeline.append(near)
        Timeline(spec, 100, dtype="float64").append(near)
        Timeline(spec, 100).append(make_episode(3, 3))  # from -3 to 3003: only the unit of length is small


@pytest.mark.parametrize(
    ("bound", "goal_dtype", "stored"),
    [
        (1e6, np.float64, "float64"),
        (2000, np.float64, "float32"),
        (np.inf, np.float64, "float32"),
        (1e6, np.float32, "float32"),
    ],
)
def test_the_bounds_of_the_goals_choose_the_dtype(bound, goal_dtype, stored):
    """A goal near 1e6 with a threshold of 0.01: float32 has a spacing of 0.06 there."""
    goal = spaces.Box(-bound, bound, (1,), goal_dtype)
    space = spaces.Dict(observation=box(2), achieved_goal=goal, desired_goal=goal)
    buffer = HindsightBuffer(100, space, ACTION_SPACE, compute_reward)
    assert buffer.timeline.rows["desired_goal"].dtype == stored
    given = HindsightBuffer(100, space, ACTION_SPACE, compute_reward, options=ReplayOptions(dtype="float32"))
    assert given.timeline.rows["desired_goal"].dtype == np.float32


def test_the_warning_about_large_goals_comes_after_the_episode_is_stored():
    goal = box(1, np.float64)
    space = spaces.Dict(observation=box(2), achieved_goal=goal, desired_goal=goal)
    buffer = buffer_of(100, space, ACTION_SPACE, compute_reward)
    near = {"desired_goal": np.array([5001.0])}
    steps = [step(5, t, truncated=t == 1) for t in range(2)]
    first, last = (({**seen, **near}, a, r, {**then, **near}, *more) for seen, a, r, then, *more in steps)
    buffer.add(*first)
    with pytest.warns(UserWarning, match="Goals up to 5002"):
        buffer.add(*last)
    play(buffer, 6, 2)
    assert live_episodes(buffer.timeline) == {0: (5, 2), 3: (6, 2)}


def test_a_loaded_timeline_continues_like_the_first():
    first, second = Timeline(SPEC, 8, episode_length=4), Timeline(SPEC, 8, episode_length=4)
    append_all(first, [3, 3, 2])
    append_all(second, [4, 4, 4])
    state = {name: value.copy() for name, value in first.state().items()}
    second.check(state)
    second.load(state)
    for number, steps in ((5, 2), (6, 3), (7, 1)):
        assert live_episodes(first) == live_episodes(second)
        first.append(make_episode(number, steps))
        second.append(make_episode(number, steps))
    assert live_episodes(first) == live_episodes(second)
    assert (first.rows[: first.high_water] == second.rows[: second.high_water]).all()


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_wrong_step_counts_and_counters_are_refused(data):
    timeline = Timeline(SPEC, 8, episode_length=4)
    append_all(timeline, [3, 3, 2])
    state = {name: value.copy() for name, value in timeline.state().items()}
    number = data.draw(st.sampled_from([-(2**31), -1, 0, 1, 2, 3, 4, 5, 7, 9, 2**31 - 1]))
    if data.draw(st.booleans()):
        rows = state["rows"].view(timeline.rows.dtype)[:, 0]
        field, row = data.draw(st.sampled_from(["steps_done", "steps_left"])), data.draw(st.integers(0, len(rows) - 1))
        is_same = rows[field][row] == number
        rows[field][row] = number
    else:
        is_same = state["cursor"][0] == number
        state["cursor"][0] = number
    if is_same:
        timeline.check(state)
    else:
        with pytest.raises(FileError, match="not whole episodes"):
            timeline.check(state)


@pytest.mark.parametrize("wraps", [2**62, -1])
def test_an_impossible_number_of_wraps_is_refused(wraps):
    timeline = Timeline(SPEC, 8)
    timeline.append(make_episode(1, 3))
    state = timeline.state()
    with pytest.raises(FileError, match="do not fit the cursor"):
        timeline.check(state | {"cursor": np.array([state["cursor"][0], wraps])})


def test_rows_of_another_size_are_refused():
    timeline = Timeline(SPEC, 8)
    state = timeline.state()
    for change in (
        {"rows": np.zeros((0, 3), np.uint8)},
        {"rows": np.zeros((99, timeline.rows.itemsize), np.uint8)},
        {"rows": state["rows"].astype(np.int8)},
        {"cursor": np.zeros(3, np.int64)},
        {"cursor": np.zeros(2)},
    ):
        with pytest.raises(FileError, match=r"The stored (rows|cursor) must be"):
            timeline.check(state | change)
