"""Which columns, the tool, must come near the object before it begins to move: the subgoal "reach".

If one tool moves several objects, this module also finds the order in which they are placed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from ..records import Array
from ..task_structure.subgoals import Subgoal
from .columns import ColumnDifference, GoalCopies, Units, find_delayed_columns, find_differences, listed
from .controlled import ControlledColumns
from .parts import AT_REST, POSITION_SIZES, Dimensions, Parts
from .steps import ALIKE, ERROR_RATE, EXCEPTIONS, HARDLY, MOSTLY, ROUNDED, Steps, regress, standardize

MIN_ONSETS = 2  # each in another episode: steps of one contact are not independent evidence
CANDIDATES = max(POSITION_SIZES)  # columns per dimension of the goal, as those of a position may be in any order
MOST_GUESSES = 4  # of the tool: they share the episodes, so with more of them each is tried less often
TOLERANCE, SWITCH = 0.75, 3.0  # of the distance at which motion begins: its 10 % quantile, its median


@dataclass(frozen=True)
class Contact:
    """The columns that are near the object whenever it begins to move.

    tool: for each dimension of the goal, the observation column of the tool; with several objects the same ones for each.
    object_columns: the columns that are copies of the achieved goal, the position of the object.
    n_onsets: number of episodes in which the object moved from rest.
    distances: between tool and object at these onsets, the 10, 50 and 90 % quantiles.
    in_reach: fraction of the desired goals in the range of positions where the tool was, widened by the median distance:
        a tool that touches objects from above is never as low as they are.
    """

    tool: tuple[int, ...]
    object_columns: tuple[int, ...]
    n_onsets: int
    distances: tuple[float, float, float]
    in_reach: float

    @property
    def axes(self) -> tuple[int, ...]:
        """Return the tool's columns, each once: one for each axis of a position."""
        return tuple(dict.fromkeys(self.tool))

    @property
    def leads_to_goals(self) -> bool:
        """Whether the tool can bring the object to its goals; where it cannot, the object must leave the tool."""
        return self.in_reach > MOSTLY

    def subgoal(self, units: Units) -> Subgoal:
        """Return the subgoal that brings the tool to the object."""
        tolerance, switch = TOLERANCE * self.distances[0], SWITCH * self.distances[1]
        return Subgoal("reach", units.of(self.tool), units.of(self.object_columns), tolerance, max(switch, tolerance))

    def evidence(self) -> str:
        """Return the evidence in one sentence."""
        tool, other = listed(self.tool), listed(self.object_columns)
        return f"columns {tool} were near columns {other} on average where the goal moved from rest, in {self.figures()}"

    def figures(self) -> str:
        """Return the figures of the evidence."""
        low, middle, high = self.distances
        return (
            f"{self.n_onsets} episodes (distance {low:.3f}, {middle:.3f}, {high:.3f} at the 10, 50 and 90 % quantiles); "
            f"{self.in_reach:.0%} of the goals lie within the reach of these columns"
        )


def find_tool(steps: Steps, controlled: ControlledColumns, units: Units) -> tuple[int, ...] | None:
    """Return the column that meets each dimension of the goal; None for more than three of them, or too little evidence.

    steps: in the units of the goal. Only columns whose units are known can be compared with the position of the object.
    """
    onsets = find_onsets(steps)
    is_position = steps.goal_size <= max(POSITION_SIZES)  # objects that only moved together so far have more dimensions
    if not is_position or len(onsets) < MIN_ONSETS * (1 if steps.noise is None else 2):
        return None
    positions = find_positions(steps, [column for column in controlled.columns if units.is_known[column]])
    return _certain(_rank_tools(steps, onsets, positions))


def guess_tools(
    steps: Steps, parts: Parts, copies: GoalCopies, controlled: ControlledColumns, units: Units
) -> tuple[tuple[int, ...], ...]:
    """Return columns that may be the tool where no contact was seen yet, the likely ones first.

    They are positions that follow the action. First come columns whose gap to the first object is a column of the
    observation, then neighbouring columns in their order.
    """
    positions = find_positions(steps, [c for c in controlled.columns if units.is_known[c] and c not in copies.complete])
    differences = find_differences(steps)
    for size in possible_sizes(len(parts.objects[0])):
        of_object = [copies.complete[k] for k in parts.objects[0][:size]]
        beside = [[c for c in positions if _third((c, column), differences) is not None] for column in of_object]
        tools = [tuple(columns[0] for columns in beside)] if all(beside) else []
        runs = [tuple(positions[at : at + size]) for at in range(len(positions) - size + 1)]
        tools += [run for run in runs if run[-1] - run[0] == size - 1 and run not in tools]
        if tools:
            return tuple(tools[:MOST_GUESSES])
    return ()


def possible_sizes(n: int) -> list[int]:
    """Return how many dimensions each object may have, of n that rest together, the likely ones first.

    More than three are several objects in space or in a plane. One is no position.
    """
    return [size for size in POSITION_SIZES if n % size == 0] if n > max(POSITION_SIZES) else [n] if n > 1 else []


def find_positions(steps: Steps, columns: Sequence[int]) -> list[int]:
    """Return the columns that are positions of their own.

    A position changes little in a step, while a velocity may change to any other. What shows where a position was one step
    before does not count. At the start of an episode a position does not depend on where the object is, while the gap
    between tool and object does.
    """
    at = sorted(set(columns).difference(find_delayed_columns(steps), _find_gaps(steps, columns)))
    change = steps.change[:, at].std(0) / np.maximum(steps.observation[:, at].std(0), ROUNDED)
    starts = standardize(np.column_stack([steps.observation[:, at], steps.achieved_goal])[steps.starts_episode])
    correlation = np.abs(starts[:, : len(at)].T @ starts[:, len(at) :]).max(1) / len(starts)
    return [c for c, ratio, same in zip(at, change, correlation, strict=True) if ratio <= MOSTLY and same <= ALIKE]


def _find_gaps(steps: Steps, columns: Sequence[int]) -> list[int]:
    """Return which of the columns, that actions move, are gaps to the object, if the object moves in some steps.

    Of two columns whose sum or difference is a third one, which actions do not move, one is the gap: how actions move the
    columns while the object rests predicts its change worse while the object moves.
    """
    is_moving = steps.moved > HARDLY * steps.goal_std
    triples = [(each.column, each.left, each.right) for each in find_differences(steps)]
    pairs = [pair for triple in triples if len(pair := [c for c in triple if c in columns]) == 2]
    if not pairs or not is_moving.any() or is_moving.all():
        return []
    actions = np.column_stack([steps.action, steps.previous_action])
    weights, own = regress(actions[~is_moving], steps.change[~is_moving], steps.observation[~is_moving])
    error = steps.change - actions @ weights[:-1] - weights[-1] - own * steps.observation
    size = np.square(error[is_moving]).mean(0)
    return [max(pair, key=lambda c: float(size[c])) for pair in pairs]


def measure_contact(steps: Steps, tool: tuple[int, ...], object_columns: tuple[int, ...]) -> Contact:
    """Measure at which distance between the columns `tool` and `object_columns` the achieved goal begins to move.

    A distance below a usual step of the tool counts as that step: the tool comes nearer by chance alone.
    """
    onsets = find_onsets(steps)
    gap = steps.next_observation[onsets][:, tool] - steps.next_observation[onsets][:, object_columns]
    distances = np.quantile(np.linalg.norm(gap, axis=1), [EXCEPTIONS, MOSTLY, 1 - EXCEPTIONS])
    usual_step = np.median(np.linalg.norm(steps.change[:, tool], axis=1))
    low, middle, high = np.maximum(distances, max(usual_step, HARDLY * steps.goal_std)).tolist()
    low_position, high_position = np.quantile(steps.observation[:, tool], [HARDLY, 1 - HARDLY], axis=0)
    goals = steps.desired_goal[steps.starts_episode]
    in_reach = ((goals >= low_position - middle) & (goals <= high_position + middle)).all(1).mean()
    return Contact(tool, object_columns, len(onsets), (low, middle, high), float(in_reach))


def is_at_task(steps: Steps, contact: Contact) -> Array:
    """Return whether tool and object are in the range of goals and starts, widened by the median distance, (N,) bool.

    Outside, the tool may be at the end of its reach, or an object may have fallen. There a task is less symmetric.
    """
    start, tool = steps.starts_episode, steps.observation[:, contact.tool]
    ends = np.concatenate([steps.desired_goal[start], steps.achieved_goal[start], tool[start]])
    low, high = ends.min(0) - contact.distances[1], ends.max(0) + contact.distances[1]
    positions = np.stack([tool, steps.achieved_goal])
    return np.asarray(((positions >= low) & (positions <= high)).all((0, 2)))


def find_onsets(steps: Steps) -> Array:
    """Return the first transition of each episode in which the achieved goal moves after a step of rest, (M,).

    A step in which another object moves does not count as rest: that object may be the cause.
    """
    moved, goal_std = steps.moved, steps.goal_std
    rested = np.roll(moved < AT_REST * goal_std, 1) & ~steps.starts_episode
    if steps.others_moved is not None:
        rested &= steps.others_moved < AT_REST
    onsets = np.flatnonzero((moved > HARDLY * goal_std) & rested)
    first = np.unique(steps.episode[onsets], return_index=True)[1]
    return onsets[first]


def gap_columns(contact: Contact, differences: Sequence[ColumnDifference]) -> list[int]:
    """Return the columns that are the gap between tool and object, as far as there are any."""
    return [column for pair in _pairs(contact) if (column := _third(pair, differences)) is not None]


def missing_differences(contact: Contact, differences: Sequence[ColumnDifference]) -> tuple[str, ...]:
    """Return the gaps between tool and object that no column holds, as the option `column_differences` writes them."""
    pairs = _pairs(contact)
    return tuple(f"{column}-{tool}" for tool, column in pairs if _third((tool, column), differences) is None)


def _pairs(contact: Contact) -> list[tuple[int, int]]:
    """Return the columns of tool and object in each dimension of the goal where they differ."""
    return [pair for pair in zip(contact.tool, contact.object_columns, strict=True) if pair[0] != pair[1]]


def _third(pair: tuple[int, int], differences: Sequence[ColumnDifference]) -> int | None:
    for difference in differences:
        triple = {difference.column, difference.left, difference.right}
        if set(pair) < triple:
            return (triple - set(pair)).pop()
    return None


def _rank_tools(steps: Steps, onsets: Array, positions: Sequence[int]) -> list[tuple[float, tuple[int, ...]]]:
    """Return choices of a column for each dimension of the goal, and the logarithm of their likelihood, the highest first.

    While the object rests, the tool is seldom as near to it as at an onset. Other columns are so in any fraction of these
    steps. If the fractions of n onsets, with mean m, are from an exponential distribution, their likelihood is at most
    (m e)^-n; by chance it is 1.
    """
    seen = steps.next_observation[:, list(positions), None]
    gap = np.square(seen - steps.next_achieved_goal[:, None])  # (N, positions, size)
    near = np.argsort(np.median(gap[onsets], 0) / np.maximum(np.median(gap, 0), ROUNDED**2), axis=0).T
    at_rest = np.flatnonzero(steps.moved < AT_REST * steps.goal_std)
    ranked = []
    for chosen in product(*near[:, :CANDIDATES].tolist()):
        if len(set(chosen)) == len(chosen):
            square = gap[:, chosen, range(len(chosen))].sum(1)
            n_nearer = 1 + np.searchsorted(np.sort(square[at_rest]), square[onsets])
            likelihood = -len(onsets) * (1 + math.log(n_nearer.mean() / (1 + len(at_rest))))
            ranked.append((likelihood, tuple(positions[i] for i in chosen)))
    return sorted(ranked, reverse=True)


def _certain(ranked: Sequence[tuple[float, tuple[int, ...]]]) -> tuple[int, ...] | None:
    """Return the likeliest choice if it is 1 / ERROR_RATE times as likely as any other, and as chance for each choice."""
    if not ranked:
        return None
    (most, tool), *others = ranked
    next_best = max([math.log(len(ranked)), *(likelihood for likelihood, _ in others)])
    return tool if most >= next_best + math.log(1 / ERROR_RATE) else None


@dataclass(frozen=True)
class ObjectSequence:
    """The objects of a task, one after another. There may be only one.

    dimensions: of the goal, of each object in the order of the goal. contacts: of the tool with each of them.
    others: the columns of the other dimensions of the goal, those of bodies; they are placed last.
    at_rest: fraction of each object's goals that lie where this object rests without being placed.
    success_distance: how far each object may be from its goal in a success; None: not known.
    """

    dimensions: tuple[Dimensions, ...]
    contacts: tuple[Contact, ...]
    others: tuple[tuple[int, int], ...]
    at_rest: tuple[float, ...]
    success_distance: float | None = None

    @property
    def order(self) -> tuple[int, ...]:
        """Return the objects in the order in which they are placed: first those whose goals lie where they rest."""
        if max(self.at_rest) - min(self.at_rest) < MOSTLY:
            return tuple(range(len(self.dimensions)))
        return tuple(sorted(range(len(self.dimensions)), key=lambda k: self.at_rest[k] < max(self.at_rest) - MOSTLY))

    @property
    def is_plain(self) -> bool:
        """Whether the goal is the position of one object, and nothing else."""
        return len(self.contacts) == 1 and not self.others

    @property
    def joint(self) -> Contact:
        """Return the contacts as one, in the order of the goal: its `tool` has the tool's columns again for each object.

        A body takes part as an object that the tool meets, dimension by dimension.
        """
        n_axes, columns = len(self.contacts[0].tool), dict[int, tuple[int, int]]()
        for dimensions, each in zip(self.dimensions, self.contacts, strict=True):
            columns |= dict(zip(dimensions, zip(each.tool, each.object_columns, strict=True), strict=True))
        for position, (dimension, column) in enumerate(self.others):
            columns[dimension] = (self.contacts[0].tool[position % n_axes], column)
        tool, object_columns = zip(*(columns[k] for k in sorted(columns)), strict=True)
        low, middle, high = np.max([each.distances for each in self.contacts], axis=0).tolist()
        return Contact(
            tool,
            object_columns,
            min(each.n_onsets for each in self.contacts),
            (low, middle, high),
            min(each.in_reach for each in self.contacts),
        )

    def placed(self, k: int) -> float:
        """Return how near to its goal object k counts as placed: if all are, that is a success."""
        return self.contacts[k].distances[1] if self.success_distance is None else self.success_distance

    def subgoals(self, units: Units) -> tuple[str, ...]:
        """Return a subgoal for each object, as the option `subgoals` writes them."""
        if self.is_plain:
            return (self.contacts[0].subgoal(units).text(),)
        return tuple(
            replace(self.contacts[k].subgoal(units), dimensions=self.dimensions[k], placed=self.placed(k)).text()
            for k in self.order
        )

    def evidence(self) -> str:
        """Return the evidence in one sentence."""
        if self.is_plain:
            return self.contacts[0].evidence()
        each = "; ".join(f"object {k + 1}: {contact.evidence()}" for k, contact in enumerate(self.contacts))
        at_rest = ", ".join(f"{fraction:.0%}" for fraction in self.at_rest)
        why = "the order of the goal" if self.order == tuple(range(len(self.dimensions))) else "not the order of the goal"
        order = f"order {', '.join(str(k + 1) for k in self.order)}, {why}: {at_rest} of their goals lie where they rest"
        if self.success_distance is None:
            placed = (
                "an object counts as placed within the median distance of contact, as rewards show no distance of success"
            )
        else:
            placed = f"an object counts as placed within {self.placed(0):.3g}, as all of them are in a success"
        return (
            f"{len(self.contacts)} objects, as their dimensions of the goal change one at a time; {each}; {order}; {placed}"
        )


def find_sequence(
    steps: Steps, parts: Parts, copies: GoalCopies, controlled: ControlledColumns, units: Units
) -> ObjectSequence | None:
    """Find what touches the objects; None if no contact with any of them is clear. steps: in the units of the goal.

    One tool moves all objects. For an object that it did not touch yet, the distance of contact is that of another object.
    Objects with fewer dimensions than others have no contact of their own: they are placed last, as bodies are.
    """
    size = max(map(len, parts.objects))
    objects = [dimensions for dimensions in parts.objects if len(dimensions) == size]
    each = steps.of_objects(objects)
    tool = find_tool(Steps.join(each), controlled, units)
    touched = [len(find_onsets(one)) > 0 for one in each]
    if tool is None or not any(touched):
        return None
    of_objects = [tuple(copies.complete[k] for k in dimensions) for dimensions in objects]
    nearest = measure_contact(each[touched.index(True)], tool, of_objects[touched.index(True)])
    contacts = [
        measure_contact(one, tool, columns) if is_touched else replace(nearest, object_columns=columns, n_onsets=0)
        for one, columns, is_touched in zip(each, of_objects, touched, strict=True)
    ]
    placed_last = sorted(set(range(steps.goal_size)).difference(*objects))
    others = tuple((k, copies.complete[k]) for k in placed_last)
    return ObjectSequence(tuple(objects), tuple(contacts), others, _goals_at_rest(steps, objects))


def measure_sequence(steps: Steps, sequence: ObjectSequence, success_distance: float | None) -> ObjectSequence:
    """Measure the contacts of a sequence again. steps: all of them, in the units of the goal."""
    contacts = tuple(
        measure_contact(one, contact.tool, contact.object_columns)
        for one, contact in zip(steps.of_objects(sequence.dimensions), sequence.contacts, strict=True)
    )
    return ObjectSequence(
        sequence.dimensions, contacts, sequence.others, _goals_at_rest(steps, sequence.dimensions), success_distance
    )


def count_moved(probing: Steps, objects: Sequence[Dimensions]) -> tuple[int, ...]:
    """Return in how many probing episodes each object begins to move."""
    return tuple(len(find_onsets(one)) for one in probing.of_objects(objects))


def _goals_at_rest(steps: Steps, objects: Sequence[Dimensions]) -> tuple[float, ...]:
    """Return the fraction of each object's goals in the range of positions where it rests."""
    fractions = []
    for one in steps.of_objects(objects):
        positions = one.achieved_goal[one.moved < AT_REST * one.goal_std]
        goals = one.desired_goal[one.starts_episode]
        low, high = np.quantile(positions, [HARDLY, 1 - HARDLY], axis=0) if len(positions) else (np.inf, -np.inf)
        margin = HARDLY * one.goal_std
        fractions.append(float(((goals >= low - margin) & (goals <= high + margin)).all(1).mean()))
    return tuple(fractions)
