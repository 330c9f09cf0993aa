"""How a tool touches an object: at which distance it begins to move, and the subgoal "reach" that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..records import Array
from ..task_structure.affine import AffineColumns
from ..task_structure.subgoals import Subgoal
from .columns import ColumnDifference, Units, listed, third_column
from .parts import AT_REST
from .steps import EXCEPTIONS, HARDLY, LITTLE, MOSTLY, Steps

MIN_ONSETS = 2  # each in another episode: steps of one contact are not independent evidence
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
    moves_on: fraction of the steps in which the object moves that begin and end far from the tool.
    """

    tool: tuple[int, ...]
    object_columns: tuple[int, ...]
    n_onsets: int
    distances: tuple[float, float, float]
    in_reach: float
    moves_on: float

    @property
    def axes(self) -> tuple[int, ...]:
        """Return the tool's columns, each once: one for each axis of a position."""
        return tuple(dict.fromkeys(self.tool))

    @property
    def has_equal_objects(self) -> bool:
        """Whether each object has as many dimensions as the tool has axes."""
        return len(self.tool) % len(self.axes) == 0

    @property
    def leads_to_goals(self) -> bool:
        """Whether the tool must bring the object to its goals.

        It can if it has been there. If it has not, it must all the same if the object stays where the tool leaves it.
        """
        return self.in_reach > MOSTLY or self.moves_on < LITTLE

    @property
    def reasons(self) -> str:
        """Return why it leads to the goals, or does not."""
        reach = f"the tool reaches {self.in_reach:.0%} of the goals"
        if self.in_reach > MOSTLY:
            return reach
        return f"{reach}, and the object is far from it in {self.moves_on:.0%} of the steps in which it moves"

    def subgoal(self, units: Units) -> Subgoal:
        """Return the subgoal that brings the tool to the object."""
        return reach(units.of(self.tool), units.of(self.object_columns), self.distances)

    def evidence(self, units: Units) -> str:
        """Return the evidence in one sentence. units: how the observation holds the columns."""
        tool, other = units.listed(self.tool), listed(self.object_columns)
        return f"columns {tool} were near columns {other} on average where the goal moved from rest, in {self.figures()}"

    def figures(self) -> str:
        """Return the figures of the evidence."""
        low, middle, high = self.distances
        return (
            f"{self.n_onsets} episodes (distance {low:.3g}, {middle:.3g}, {high:.3g} at the 10, 50 and 90 % quantiles); "
            f"{self.in_reach:.0%} of the goals lie within the reach of these columns"
        )


def reach(tool: AffineColumns, place: AffineColumns, distances: tuple[float, float, float]) -> Subgoal:
    """Return the subgoal that brings a tool to a place. distances: between them when motion begins, see `Contact`."""
    low, middle, _ = distances
    tolerance = TOLERANCE * low
    return Subgoal("reach", tool, place, tolerance, max(SWITCH * middle, tolerance))


def measure_contact(steps: Steps, tool: tuple[int, ...], object_columns: tuple[int, ...]) -> Contact:
    """Measure at which distance between the columns `tool` and `object_columns` the achieved goal begins to move.

    A distance below a usual step of the tool counts as that step: the tool comes nearer by chance alone.
    """
    onsets = find_onsets(steps)
    gap = steps.next_observation[onsets][:, tool] - steps.next_observation[onsets][:, object_columns]
    distances = np.quantile(np.linalg.norm(gap, axis=1), [EXCEPTIONS, MOSTLY, 1 - EXCEPTIONS])
    usual_step = np.median(np.linalg.norm(steps.change[:, tool], axis=1))
    low, middle, high = np.maximum(distances, max(usual_step, HARDLY * steps.goal_std)).tolist()
    lowest, highest = tool_range(steps, tool, middle)
    goals = steps.desired_goal[steps.starts_episode]
    in_reach = ((goals >= lowest) & (goals <= highest)).all(1).mean()
    moves_on = is_far(steps, tool, object_columns, middle)[is_moving(steps)].mean()
    return Contact(tool, object_columns, len(onsets), (low, middle, high), float(in_reach), float(moves_on))


def is_far(steps: Steps, tool: Sequence[int], object_columns: Sequence[int], distance: float) -> Array:
    """Return whether each object is far from the tool before and after each step, (N, objects) bool.

    tool, object_columns: those of one object after another. distance: at which motion begins.
    """
    n_axes = len(set(tool))
    near = [
        np.linalg.norm((seen[:, object_columns] - seen[:, tool]).reshape(len(steps), -1, n_axes), axis=2)
        for seen in (steps.observation, steps.next_observation)
    ]
    return np.asarray(np.min(near, axis=0) > SWITCH * distance)


def tool_range(steps: Steps, tool: Sequence[int], margin: float) -> tuple[Array, Array]:
    """Return the lowest and the highest positions where the tool was, widened by a margin, (tool columns,) each."""
    low, high = np.quantile(steps.observation[:, list(tool)], [HARDLY, 1 - HARDLY], axis=0)
    return low - margin, high + margin


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

    Between both there may be slow steps, in which it neither rests nor moves: a soft push begins so. A step in which
    another object moves does not count as rest: that object may be the cause.
    """
    rests, moves = is_at_rest(steps), is_moving(steps)
    with_others = np.zeros_like(rests) if steps.others_moved is None else steps.others_moved >= AT_REST
    at = np.arange(len(rests))
    last = np.maximum.accumulate(np.where(rests | moves | with_others | steps.starts_episode, at, 0))
    before = np.roll(last, 1)  # of each step, the last one before it that was not slow
    onsets = np.flatnonzero(moves & (rests & ~with_others)[before] & ~steps.starts_episode)
    first = np.unique(steps.episode[onsets], return_index=True)[1]
    return onsets[first]


def is_moving(steps: Steps) -> Array:
    """Return whether the achieved goal moves in each step, (N,) bool."""
    return np.asarray(steps.moved > HARDLY * steps.goal_std)


def is_at_rest(steps: Steps) -> Array:
    """Return whether the achieved goal rests in each step, (N,) bool; in few steps it neither rests nor moves."""
    return np.asarray(steps.moved < AT_REST * steps.goal_std)


def gap_columns(contact: Contact, differences: Sequence[ColumnDifference]) -> list[int]:
    """Return the columns that are the gap between tool and object, as far as there are any."""
    return [column for pair in _pairs(contact) if (column := third_column(pair, differences)) is not None]


def missing_differences(contact: Contact, differences: Sequence[ColumnDifference], units: Units) -> tuple[str, ...]:
    """Return the gaps between tool and object that no column holds, as the option `column_differences` writes them.

    units: how the observation holds the columns: where a position is known by a gap alone, no other gap is missing.
    """
    pairs = [pair for pair in _pairs(contact) if max(pair) < units.n_columns]
    return tuple(
        units.difference(column, tool) for tool, column in pairs if third_column((tool, column), differences) is None
    )


def _pairs(contact: Contact) -> list[tuple[int, int]]:
    """Return the columns of tool and object in each dimension of the goal where they differ."""
    return [pair for pair in zip(contact.tool, contact.object_columns, strict=True) if pair[0] != pair[1]]
