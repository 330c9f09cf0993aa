import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsight.errors import OptionError, UnknownNameError
from hindsight.options import Relabel
from hindsight.replay.strategies import (
    SOURCES,
    check_strategy,
    episode_rows,
    final_rows,
    future_rows,
    goal_rows,
    her_probability,
    mixed_rows,
    random_rows,
)

# an episode of 4 steps in rows 10 .. 14, seen from its first, third and last transition
ROW, DONE, LEFT = np.array([10, 12, 13]), np.array([0, 2, 3]), np.array([4, 2, 1])


def test_future_rows_are_later_rows_of_the_same_episode():
    row, steps_left = np.array([0, 0, 0, 3]), np.array([4, 4, 4, 1])
    u = np.array([0.0, 0.5, 0.999, 0.999])
    assert future_rows(row, steps_left, u).tolist() == [1, 3, 4, 4]


def test_the_largest_random_number_stays_in_the_episode():
    row, steps_left = np.zeros(64, np.int64), np.arange(1, 65)
    assert (future_rows(row, steps_left, np.nextafter(1.0, 0.0)) == steps_left).all()


def test_final_rows_are_the_last_rows():
    assert final_rows(ROW, LEFT).tolist() == [14, 14, 14]


def test_episode_rows_are_all_rows_but_the_first():
    for u, goal_row in ((0.0, 11), (0.25, 12), (0.5, 13), (0.999, 14)):
        assert episode_rows(ROW, DONE, LEFT, np.full(3, u)).tolist() == [goal_row] * 3


def test_random_rows_are_the_outcomes_of_other_transitions():
    assert random_rows(np.array([3, 40])).tolist() == [4, 41]


def test_strategies_are_known_by_name():
    u, other = np.full(3, 0.5), np.array([20, 21, 22])
    rows = {name: goal_rows(name, ROW, DONE, LEFT, u, other).tolist() for name in ("future", "final", "episode", "random")}
    assert rows == {"future": [13, 14, 14], "final": [14] * 3, "episode": [13] * 3, "random": [21, 22, 23]}


def test_an_unknown_strategy_names_the_nearest():
    with pytest.raises(UnknownNameError, match=r"strategy must be one of future, .*, got 'futur'.*Did you mean 'future'"):
        check_strategy("futur")
    with pytest.raises(OptionError, match="got 3"):
        check_strategy(3)


def plain_mixture(fractions, row, done, left, u, other):
    """One sample of a mixture: its goal row and the name of its source, None for the desired goal of the episode."""
    start = 0.0
    for name, fraction in fractions:
        if fraction and u < start + fraction:
            rest = min((u - start) / fraction, np.nextafter(1.0, 0.0))
            goal_row = {
                "future": row + 1 + int(rest * left),
                "final": row + left,
                "episode": row - done + 1 + int(rest * (done + left)),
                "random": other + 1,
                "desired": other,
            }[name]
            return goal_row, name
        start += fraction
    return row, None


eighths = st.lists(st.integers(0, 3), min_size=5, max_size=5).filter(lambda parts: sum(parts) <= 8)  # exact in binary
samples = st.tuples(st.integers(0, 50), st.integers(1, 50), st.floats(0, 1, exclude_max=True), st.integers(0, 999))


@given(eighths, st.lists(samples, min_size=1, max_size=20))
def test_a_mixture_equals_a_loop_over_the_samples(parts, drawn):
    fractions = [(name, part / 8) for name, part in zip(SOURCES, parts, strict=True)]
    done, left, u, other = map(np.array, zip(*drawn, strict=True))
    goal_row, source = mixed_rows(Relabel(**dict(fractions)), 100 + done, done, left, u, other)
    names = [SOURCES[place] if place < len(SOURCES) else None for place in source]
    expected = [plain_mixture(fractions, 100 + d, d, s, v, o) for d, s, v, o in drawn]
    assert list(zip(goal_row.tolist(), names, strict=True)) == expected


@given(st.lists(st.floats(0, 1), min_size=5, max_size=5), st.floats(0, 1, exclude_max=True), st.integers(1, 10**6))
def test_no_mixture_leaves_the_episode_by_rounding(parts, u, steps):
    total = max(sum(parts), 1.0)
    relabel = Relabel(**{name: part / total for name, part in zip(SOURCES, parts, strict=True)})
    ends = np.cumsum(list(relabel.fractions().values()))
    u = np.clip([u, *np.nextafter(ends, 0), *ends], 0, np.nextafter(1.0, 0.0))
    row, zero = np.full(len(u), 7), np.zeros(len(u), np.int64)
    goal_row, _ = mixed_rows(relabel, row, zero, zero + steps, u, row)
    assert (goal_row >= 7).all()
    assert (goal_row <= 7 + steps).all()


def test_the_fraction_of_relabelled_samples():
    assert [her_probability("future", k) for k in (None, 0, 1, 9)] == [0.8, 0.0, 0.5, 0.9]
    assert her_probability(Relabel(future=0.5, desired=0.25), None) == 0.75
