"""Which columns are the tool: what is near the object when it begins to move."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from ..records import Array
from .columns import GoalCopies, Units, find_delayed_columns, find_differences, third_column
from .contact import MIN_ONSETS, find_onsets, is_at_rest, is_moving, tool_range
from .controlled import ControlledColumns
from .parts import POSITION_SIZES, Parts
from .steps import ALIKE, ERROR_RATE, FEWEST, LITTLE, MOSTLY, ROUNDED, Steps, regress, standardize, with_unit_norm

CANDIDATES = max(POSITION_SIZES)  # columns per dimension of the goal, as those of a position may be in any order
CLEARLY = math.log(1 / ERROR_RATE)  # by how much the logarithm of a likelihood must be higher
MOST_GUESSES = 4  # of the tool: they share the episodes, so with more of them each is tried less often


@dataclass(frozen=True)
class Tool:
    """What meets an object.

    columns: of the tool, one for each dimension of the position. dimensions: of an object, those that are its position.
    """

    columns: tuple[int, ...]
    dimensions: tuple[int, ...]


def find_tool(
    steps: Steps,
    shown: Sequence[int],
    no_tool: Collection[int],
    controlled: ControlledColumns,
    units: Units,
    may_tie: bool = True,
) -> Tool | None:
    """Return the columns that meet the position of an object; None with too little evidence.

    steps: in the units of the goal. Only columns whose units are known can be compared with the position of the object.
    shown: the column that shows each dimension of the object. no_tool: those that show any object.

    All dimensions are its position, unless a column of a tool clearly meets some of them, which are neighbours, oftener
    than the best choice of columns meets all of them: then the others are its angle, or another state. That needs more
    contacts, and a tool whose position is seen. Dimensions that never change are left out then; of more than three
    dimensions they are at once.

    may_tie: whether orders of the same columns may be equally likely, see `_certain`.
    """
    whole = tuple(range(steps.goal_size))
    ranges = np.ptp(np.concatenate([steps.achieved_goal, steps.next_achieved_goal, steps.desired_goal]), axis=0)
    varying = tuple(np.flatnonzero(ranges > 0).tolist())
    runs = [whole]
    if len(find_onsets(steps)) >= FEWEST and not units.gaps:
        runs += [each for each in _runs_of(varying) if each != whole]
    elif len(whole) > max(POSITION_SIZES) and len(varying) in POSITION_SIZES:
        runs.append(varying)
    shown_at = {at: [shown[k] for k in at] for at in runs}
    may_touch = [c for c in controlled.columns if units.knows(c) and c not in no_tool]
    ranked = {at: _rank(steps.of_objects([at])[0], shown_at[at], may_touch) for at in runs}
    likelihood = {at: found[0][0] for at, (found, _) in ranked.items() if found}
    if not likelihood:
        return None
    best = max(likelihood, key=likelihood.__getitem__)
    if likelihood[best] < likelihood.get(whole, -math.inf) + CLEARLY:
        best = whole
    compared = [whole] if best == whole else runs
    columns = _certain(ranked[best][0], sum(ranked[at][1] for at in compared), steps, shown_at[best], may_tie)
    return None if columns is None else Tool(columns, best)


def _runs_of(dimensions: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the neighbouring ones of some dimensions that may be a position."""
    sizes = [n for n in POSITION_SIZES if n <= len(dimensions)]
    return [tuple(dimensions[at : at + n]) for n in sizes for at in range(len(dimensions) - n + 1)]


def _rank(steps: Steps, shown: Sequence[int], columns: Sequence[int]) -> tuple[list[tuple[float, tuple[int, ...]]], int]:
    """Return choices of a column for each dimension as `_rank_tools` does, none with too little evidence, and their number.

    Orders of the same columns count as choices, though only one of them may be left.
    """
    onsets = find_onsets(steps)
    is_position = steps.goal_size <= max(POSITION_SIZES)  # objects that only moved together so far have more dimensions
    if not is_position or len(onsets) < MIN_ONSETS * (1 if steps.noise is None else 2):
        return [], 0
    ranked = _rank_tools(steps, onsets, find_positions(steps, columns), shown, _gap_pairs(steps, columns))
    n_choices, place = len(ranked), steps.achieved_goal[onsets]
    # beside one place the tool may seem nearer if its columns are in a wrong order
    if np.linalg.norm(place.std(0)) < LITTLE * steps.goal_std:
        ranked = _in_one_order(steps, onsets, ranked, shown)
    return ranked, n_choices


def guess_tools(
    steps: Steps, parts: Parts, copies: GoalCopies, controlled: ControlledColumns, units: Units
) -> tuple[tuple[int, ...], ...]:
    """Return columns that may be the tool where no contact was seen yet, the likely ones first.

    They are positions that follow the action. First come columns whose gap to the first object is a column of the
    observation; where only some gaps are, any position may be the rest of the tool. Then come neighbouring columns. Of
    both, those come first that come nearest to where this object is. Angles seldom do. A body of the goal may be the tool.
    """
    may_be_known = [c for c in controlled.columns if units.knows(c) or c >= units.n_columns]
    no_tool = copies.of_objects(parts.objects)
    (of_objects,) = steps.of_objects([[k for each in parts.objects for k in each]])
    positions = find_positions(of_objects, [c for c in may_be_known if c not in no_tool])
    differences, gap_pairs = find_differences(steps), _gap_pairs(steps, controlled.columns)
    first = next(each for each in parts.objects if len(each) >= min(POSITION_SIZES))
    for size in possible_sizes(len(first)):
        of_object = [copies.complete[k] for k in first[:size]]
        beside = [[c for c in positions if third_column((c, column), differences) is not None] for column in of_object]
        known = [columns[:1] or positions for columns in beside] if any(beside) else []
        tools = [t for t in product(*known) if len(set(t)) == size and not any(set(pair) <= set(t) for pair in gap_pairs)]
        runs = [tuple(positions[at : at + size]) for at in range(len(positions) - size + 1)]
        runs = [run for run in runs if run[-1] - run[0] == size - 1 and run not in tools]
        nearest_first = partial(_distance_to_range, steps, of_object)
        tools = [*sorted(tools, key=nearest_first), *sorted(runs, key=nearest_first)]
        if tools:
            return tuple(tools[:MOST_GUESSES])
    return ()


def _distance_to_range(steps: Steps, of_object: Sequence[int], tool: Sequence[int]) -> float:
    """Return the mean distance between an object and the range of positions where a tool was; 0 in this range."""
    low, high = tool_range(steps, tool, margin=0.0)
    positions = steps.observation[:, list(of_object)]
    return float(np.linalg.norm(positions - positions.clip(low, high), axis=1).mean())


def possible_sizes(n: int) -> list[int]:
    """Return how many dimensions the position of an object may have, of n that rest together, the likely ones first.

    More than three may be several objects in space or in a plane. Others may be an angle. One is no position.
    """
    return sorted((size for size in POSITION_SIZES if size <= n), key=lambda size: n % size != 0)


def find_positions(steps: Steps, columns: Sequence[int]) -> list[int]:
    """Return the columns that are positions of their own.

    A position changes little in a step, while a velocity may change to any other. What shows where a position was one step
    before does not count. As long as the object never moved, nor does a column that shows at the start of an episode where
    the object is: it may be the gap between tool and object, though a tool may start near the object, too.
    """
    at = positions_among(steps, set(columns).difference(_find_gaps(steps, columns)))
    starts = standardize(np.column_stack([steps.observation[:, at], steps.achieved_goal])[steps.starts_episode])
    correlation = np.abs(starts[:, : len(at)].T @ starts[:, len(at) :]).max(1) / len(starts)
    may_be_gap = (correlation > ALIKE) & ~is_moving(steps).any()
    return [c for c, is_gap in zip(at, may_be_gap, strict=True) if not is_gap]


def positions_among(steps: Steps, columns: Iterable[int]) -> list[int]:
    """Return the columns that change little in a step, and do not show what another one did one step before."""
    at = sorted(set(columns).difference(find_delayed_columns(steps)))
    change = steps.change[:, at].std(0) / np.maximum(steps.observation[:, at].std(0), ROUNDED)
    return [c for c, ratio in zip(at, change, strict=True) if ratio <= MOSTLY]


def _gap_pairs(steps: Steps, columns: Sequence[int]) -> list[list[int]]:
    """Return pairs of the columns, that actions move, whose sum or difference is a third one, which they do not move.

    One of both is the gap to the object.
    """
    triples = [(each.column, each.left, each.right) for each in find_differences(steps)]
    return [pair for triple in triples if len(pair := [c for c in triple if c in columns]) == 2]


def _find_gaps(steps: Steps, columns: Sequence[int]) -> list[int]:
    """Return which of the columns, that actions move, are gaps to the object, if the object moves in some steps.

    How the columns move while the object rests predicts the change of a gap worse while the object moves. They follow
    actions, go on from the step before, and may be drawn to a position.
    """
    is_pushed, pairs = is_moving(steps), _gap_pairs(steps, columns)
    if not pairs or not is_pushed.any() or is_pushed.all():
        return []
    in_pairs = sorted({c for pair in pairs for c in pair})
    inputs = np.column_stack([steps.action, steps.previous_action, steps.observation[:, in_pairs]])
    before = steps.of_step_before(steps.change)
    weights, kept = regress(inputs[~is_pushed], steps.change[~is_pushed], before[~is_pushed])
    error = steps.change - inputs @ weights[:-1] - weights[-1] - kept * before
    moving, resting = (np.square(error[rows]).mean(0) for rows in (is_pushed, ~is_pushed))
    growth = moving / np.maximum(resting, ROUNDED**2)
    likely = [max(pair, key=lambda c: float(growth[c])) for pair in pairs]
    return [column for column in likely if MOSTLY * growth[column] > 1]


def _rank_tools(
    steps: Steps,
    onsets: Array,
    positions: Sequence[int],
    shown: Sequence[int],
    gap_pairs: Sequence[Sequence[int]],
) -> list[tuple[float, tuple[int, ...]]]:
    """Return choices of a column for each dimension of the goal, and the logarithm of their likelihood, the highest first.

    positions: ascending. gap_pairs: of two columns one is a gap, so no tool has both.

    The tool is near before the step, too: what is painted appears where the brush is.
    """
    at = list(positions)
    before = steps.observation[:, at, None] - steps.achieved_goal[:, None]  # (N, positions, size)
    after = steps.next_observation[:, at, None] - steps.next_achieved_goal[:, None]
    gap = np.maximum(np.square(before), np.square(after))
    near = np.argsort(np.median(gap[onsets], 0) / np.maximum(np.median(gap, 0), ROUNDED**2), axis=0).T
    at_rest = np.flatnonzero(is_at_rest(steps))
    ranked, apart = [], [{positions.index(c) for c in pair if c in positions} for pair in gap_pairs]
    nearest = [chosen for chosen in product(*near[:, :CANDIDATES].tolist()) if len({*chosen}) == len(chosen)]
    for chosen in sorted({*nearest, *(_ordered_as(shown, chosen) for chosen in nearest)}):  # see `_certain`
        if not any(len(pair) > 1 and pair <= set(chosen) for pair in apart):
            square = gap[:, chosen, range(len(chosen))].sum(1)
            likelihood = likelihood_of(square[onsets], square[at_rest])
            ranked.append((likelihood, tuple(positions[i] for i in chosen)))
    return sorted(ranked, reverse=True)


def likelihood_of(at_onset: Array, at_rest: Array, n_fitted: int = 0) -> float:
    """Return the logarithm of the likelihood that a tool is what moves something; by chance it is 0.

    While this rests, the tool is seldom as near to it as at an onset. Other columns are so in any fraction of these steps.
    If the fractions of n onsets, with mean m, are from an exponential distribution, their likelihood is at most (m e)^-n.

    at_onset, at_rest: distances, or their squares, at onsets, (n,), and at rest, (N,). n_fitted: numbers that were fitted
    to the onsets: each explains one of them.
    """
    n_nearer = 1 + np.searchsorted(np.sort(at_rest), at_onset)
    return (n_fitted - len(at_onset)) * (1 + math.log(n_nearer.mean() / (1 + len(at_rest))))


def _in_one_order(
    steps: Steps, onsets: Array, ranked: Sequence[tuple[float, tuple[int, ...]]], shown: Sequence[int]
) -> list[tuple[float, tuple[int, ...]]]:
    """Return the choices in one order of the same columns, with the likelihood of the likeliest.

    That is the order of the columns that show the object, unless objects clearly move away from where the tool was more
    directly in another: by two standard errors of the cosine.
    """
    moved, before, after = steps.displacement[onsets], steps.observation[onsets], steps.next_achieved_goal[onsets]
    orders = dict[frozenset[int], list[tuple[float, tuple[int, ...]]]]()
    for likelihood, tool in ranked:
        orders.setdefault(frozenset(tool), []).append((likelihood, tool))

    def cosines(tool: tuple[int, ...]) -> Array:
        away = after - before[:, tool]
        lengths = np.linalg.norm(away, axis=1) * np.linalg.norm(moved, axis=1)
        return np.asarray((away * moved).sum(1) / np.maximum(lengths, ROUNDED**2))

    chosen = []
    for choices in orders.values():
        most, tool = max(choices)
        best, usual = max((each for _, each in choices), key=lambda each: cosines(each).mean()), _ordered_as(shown, tool)
        gain = cosines(best) - cosines(usual)
        is_clear = gain.mean() > 2 * gain.std() / math.sqrt(len(gain))
        chosen.append((most, best if is_clear else usual))
    return sorted(chosen, reverse=True)


def _certain(
    ranked: Sequence[tuple[float, tuple[int, ...]]], n_choices: int, steps: Steps, shown: Sequence[int], may_tie: bool
) -> tuple[int, ...] | None:
    """Return the likeliest choice if it is 1 / ERROR_RATE times as likely as any other, and as chance for each choice.

    n_choices: that were compared. Choices of columns that are alike are no others: a hand and its fingers. Where an object
    lies about as far along two axes, these may seem to be exchanged: then the order of the columns that show the object
    counts, if there may be a tie.
    """
    if not ranked:
        return None
    (most, tool), *rest = ranked
    others = [(likelihood, choice) for likelihood, choice in rest if not are_alike(steps, choice, tool)]
    next_best = max([math.log(n_choices), *(likelihood for likelihood, choice in others if {*choice} != {*tool})])
    if most < next_best + CLEARLY:
        return None
    as_likely = [tool, *(choice for likelihood, choice in others if most < likelihood + CLEARLY)]
    usual = _ordered_as(shown, tool)
    if len(as_likely) == 1:
        return tool
    return usual if may_tie and usual in as_likely else None


def _ordered_as(shown: Sequence[int], tool: Sequence[int]) -> tuple[int, ...]:
    """Return the columns of a tool in the order in which others show the object: axes mostly come in one order."""
    ascending, rank = sorted(tool), np.argsort(np.argsort(shown)).tolist()
    return tuple(ascending[k] for k in rank)


def are_alike(steps: Steps, one: Sequence[int], other: Sequence[int]) -> bool:
    """Return whether two choices have as many columns, which hardly differ, but for signs and constants."""
    if len(one) != len(other):
        return False
    seen, then = (with_unit_norm(steps.observation[:, list(columns)]) for columns in (one, other))
    return bool((np.abs((seen * then).sum(0)) > ALIKE).all())
