"""Parts of a goal: which of its dimensions move together, whether actions or touch move them, and where they stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from ..records import Array
from .steps import (
    FEWEST,
    HARDLY,
    HELD_OUT,
    LITTLE,
    MOST_DEVIATIONS,
    MOSTLY,
    TINY,
    Steps,
    explained_variance,
)

AT_REST = 1e-3  # displacement in a step, relative to the standard deviation of the goals
POSITION_SIZES = (3, 2)  # dimensions of a position: in space or in a plane
BY_ITSELF = 2  # steps: what moves before the second step of most episodes is moved by the actions, not by touch

Dimensions = tuple[int, ...]  # of the goal
PartKind = Literal["body", "object", "unmoved"]


@dataclass(frozen=True)
class Part:
    """Dimensions of the goal that move together.

    kind: "body" if actions move it at once; "object" if it rests in most random steps, and at the start of most episodes,
        until something moves it; "unmoved" if nothing moved it yet, as an object far from the tool.
    rest: fraction of the random steps in which it rests, or moves by itself.
    moves_by_itself: whether it is an object that moves although nothing touches it, see `OwnMotion`.
    """

    dimensions: Dimensions
    kind: PartKind
    rest: float
    moves_by_itself: bool = False

    @property
    def name(self) -> str:
        """The kind in words."""
        return {"body": "a body", "object": "an object", "unmoved": "an object that nothing moved yet"}[self.kind]

    @property
    def reason(self) -> str:
        """Why it is of this kind."""
        if self.kind == "body" and self.rest > MOSTLY:
            return f"it does not wait until something moves it, though it rests in {self.rest:.0%} of the random steps"
        return f"it {'moves by itself' if self.moves_by_itself else 'rests'} in {self.rest:.0%} of the random steps"

    def evidence(self) -> str:
        """Return the evidence in a few words."""
        return f"achieved_goal[{', '.join(map(str, self.dimensions))}] is {self.name}, as {self.reason}"


@dataclass(frozen=True)
class Parts:
    """The parts of a goal, in the order of their first dimensions. goal_std: see `Steps.goal_std`."""

    parts: tuple[Part, ...]
    goal_std: float

    @cached_property
    def objects(self) -> tuple[Dimensions, ...]:
        """The dimensions of each object; none if all episodes start at the same goal."""
        return tuple(each.dimensions for each in self.parts if each.kind != "body" and self.goal_std > 0)

    @cached_property
    def body(self) -> Dimensions:
        """The dimensions of all bodies."""
        return tuple(k for each in self.parts if each.kind == "body" for k in each.dimensions)

    @property
    def has_object(self) -> bool:
        """Whether the goal is, at least partly, about something that must be touched first."""
        return bool(self.objects)

    @property
    def move_by_themselves(self) -> bool:
        """Whether some object moves although nothing touches it."""
        return any(each.moves_by_itself for each in self.parts)

    @property
    def has_positions(self) -> bool:
        """Whether some object has the dimensions of a position, which a tool can meet: an opening or an angle is none."""
        return any(len(dimensions) >= min(POSITION_SIZES) for dimensions in self.objects)

    def evidence(self) -> str:
        """Return the evidence in one sentence."""
        return "; ".join(each.evidence() for each in self.parts)


def find_parts(
    steps: Steps,
    random_steps: Steps | None = None,
    errors_add_up: Callable[[Sequence[int]], bool] = lambda _: False,
    has_choices: bool = False,
) -> Parts:
    """Find the parts of the goal in steps.

    random_steps: those with random actions. They alone show what rests by itself: a policy may rest at its goal, or move an
        object from the start. None: all steps are random.
    errors_add_up: whether errors in some dimensions add up to one distance, which decides what is a success.
    has_choices: whether actions are Discrete, and one-hot here. What one of them moves in most steps is a body, though it
        rests while others are chosen: a robot that drives or turns.

    Two dimensions of one kind belong together if the one that moves less often mostly moves with the other: the height of
    a cube changes only while something moves it. Neighbouring dimensions that never moved are divided into parts of the
    usual size. If their number does not fit, they belong to a part beside them. Two or three neighbouring dimensions that
    are objects of their own are axes of one position if their errors add up: an object slides on the ground, and falls.
    With noise, which hides what moves together, so are all objects that have two or three such dimensions together.
    Dimensions that never move, and need not, may lie between neighbours: the second axis of what moves in a plane.
    """
    random_steps = steps if random_steps is None else random_steps
    least = _least(steps)
    settling = _settling(random_steps, least, int(steps.time.max()) + 1)
    size, at_random = (np.abs(each.displacement - settling[each.time]) / least for each in (steps, random_steps))
    is_moving = size > 1
    moved, is_body = np.any(is_moving, axis=0), ~_waits(random_steps, at_random)
    # each of them rests in most steps, but in most steps one of them moves
    one_moves = at_random[:, ~is_body].max(1, keepdims=True, initial=0.0)
    is_body |= ~_waits(random_steps, one_moves)
    is_body |= _follows_choice(random_steps.action, at_random) if has_choices else _follows_action(random_steps, at_random)
    together = is_moving
    if steps.noise is not None:  # it hides slow motion, so dimensions that move together seldom show it in the same step
        together = _moved_by_episode(steps, steps.noise)
    groups = [*_together(np.flatnonzero(is_body), together), *_together(np.flatnonzero(~is_body & moved), together)]
    is_asked = (np.ptp(steps.desired_goal, axis=0) > 0) & steps.is_asked
    for run in _runs(np.flatnonzero(~moved).tolist()):
        groups += _unmoved_parts(groups, run, is_asked)
    may_join = [group for group in groups if not is_body[group[0]] and (len(group) == 1 or steps.noise is not None)]
    runs = _runs(sorted(k for group in may_join for k in group), between=~moved & ~is_asked)
    positions = [run for run in runs if len(run) in POSITION_SIZES and errors_add_up(run)]
    groups = [group for group in groups if not any(group[0] in run for run in positions)] + positions
    for run in _runs(sorted({*range(steps.goal_size)}.difference(*groups))):  # it belongs to a part beside it
        groups = _with_unmoved(groups, run, is_body, is_asked)
    rests = [float((at_random[:, group] <= 1).all(1).mean()) for group in groups]
    by_itself = np.zeros(steps.goal_size, bool) if steps.own_motion is None else (steps.own_motion != 0).any(0)
    parts = [
        Part(tuple(group), _kind(group, is_body, moved), rest, bool(by_itself[group].any()))
        for group, rest in zip(groups, rests, strict=True)
    ]
    return Parts(tuple(sorted(parts, key=lambda part: part.dimensions)), steps.goal_std)


def _settling(random_steps: Steps, least: Array, length: int) -> Array:
    """Return how far the goal moves at each time of an episode because of this time alone, (length, g).

    That is what most random episodes have in common, whatever their actions: an object drops to the ground after a reset.
    least: displacement that counts as motion, (g,).
    """
    usual = np.zeros((length, random_steps.goal_size))
    for time in np.unique(random_steps.time):
        displacement = random_steps.displacement[random_steps.time == time]
        median = np.median(displacement, axis=0)
        is_common = (np.abs(displacement - median) <= least).mean(0) > MOSTLY
        if len(displacement) >= HELD_OUT:
            usual[time] = np.where(is_common, median, 0.0)
    return usual


def _moved_by_episode(steps: Steps, noise: Array) -> Array:
    """Return whether each dimension of the goal ends elsewhere than it started, (episodes, goal size) bool.

    Positions are means of the readings in the first and the last fifth of an episode: noise changes them less. With
    objects that move by themselves, what something moved at any step counts.
    """
    episodes = np.unique(steps.episode)
    if steps.own_motion is not None:
        return np.array([steps.displacement[steps.episode == k].any(0) for k in episodes])
    moved = []
    for k in episodes:
        positions = steps.next_achieved_goal[steps.episode == k]
        n_readings = max(1, int(LITTLE * len(positions)))
        change = positions[-n_readings:].mean(0) - positions[:n_readings].mean(0)
        moved.append(np.abs(change) > MOST_DEVIATIONS * noise / np.sqrt(n_readings))
    return np.array(moved)


def _least(steps: Steps) -> Array:
    """Return the displacement in a step that counts as motion in each dimension of the goal, (g,).

    It is AT_REST of the standard deviation of the desired goals. A dimension in which they are the same moves if it goes
    farther, HARDLY any of that of all dimensions together: a ball in a plane trembles across it. Where all desired goals
    are the same, it is AT_REST of the standard deviation of the achieved ones, which is not taken to be smaller than HARDLY
    any of that of all dimensions. Never 0: no displacement of 0 is larger than a multiple of it.
    """
    desired, goal_std = steps.desired_goal[steps.starts_episode].std(0), steps.goal_std
    if desired.any():
        least = np.where(desired > 0, AT_REST * desired, HARDLY * goal_std)
    else:
        least = AT_REST * np.maximum(steps.achieved_goal.std(0), HARDLY * goal_std)
    return np.asarray(np.maximum(least, AT_REST * TINY))


def _waits(steps: Steps, size: Array) -> Array:
    """Return whether each of m dimensions rests in most steps, and waits for something in most episodes, (m,) bool.

    It waits in an episode if it does not move in the first steps, if it moves in the first one only, or if it rests in most
    steps before its last motion. What breaks or falls rests only after its last motion. What waits then moves at once; what
    speeds up little by little does not. The first step does not show what rests, nor do episodes that have no other one:
    actions may act one step late.

    size: of displacements, in multiples of the least that counts as motion, (N, m).
    """
    is_moving, before = size > 1, steps.of_step_before(size)
    at_once = is_moving & (before < LITTLE * size)
    starts = np.flatnonzero(steps.starts_episode)
    ends = np.append(starts[1:], len(steps))
    is_later, waits = ~steps.starts_episode, []
    if not is_later.any():
        return np.asarray(~is_moving.any(0))
    for rows in (slice(start, end) for start, end in zip(starts, ends, strict=True) if end - start >= BY_ITSELF):
        motion = is_moving[rows]
        first = np.where(motion.any(0), motion.argmax(0), BY_ITSELF)
        n_until_last = len(motion) - motion[::-1].argmax(0)
        rests = (first >= BY_ITSELF) | (n_until_last < BY_ITSELF) | (motion.sum(0) < MOSTLY * n_until_last)
        waits.append(rests & (at_once[rows].any(0) | ~motion.any(0)))
    return np.asarray(((~is_moving[is_later]).mean(0) > MOSTLY) & (np.mean(waits, axis=0) > MOSTLY))


def _follows_choice(choices: Array, size: Array) -> Array:
    """Return whether a choice mostly moves each of m dimensions, (m,). choices: (N, n), one-hot. size: see `_waits`."""
    n_chosen = choices.sum(0)
    n_moving = choices.T @ (size > 1)
    return np.asarray(((n_moving > MOSTLY * n_chosen[:, None]) & (n_chosen >= FEWEST)[:, None]).any(0))


def _follows_action(steps: Steps, size: Array) -> Array:
    """Return whether actions alone mostly say in which steps each of m dimensions begins to move, (m,). size: see `_waits`.

    What touches an object depends on where both are. A valve that sticks, or a lander that needs much thrust, is no object.
    """
    actions = np.column_stack([steps.action, steps.previous_action])
    inputs = np.column_stack([actions, np.square(actions)])
    is_moving, found = size > 1, np.zeros(size.shape[1], bool)
    rested = steps.of_step_before(is_moving) == 0
    for k in range(size.shape[1]):
        rows = rested[:, k]
        begins, episode = is_moving[rows, k], steps.episode[rows]
        if begins.sum() >= FEWEST and len(np.unique(episode)) >= HELD_OUT:
            found[k] = explained_variance(inputs[rows], begins[:, None].astype(float), episode)[0] > MOSTLY
    return found


def _together(dimensions: Array, is_moving: Array) -> list[list[int]]:
    """Group dimensions: two belong together if one of them mostly moves with the other."""
    motion = is_moving[:, dimensions].astype(np.float64)
    both, each = motion.T @ motion, np.maximum(motion.sum(0), 1.0)
    linked = (both > MOSTLY * np.minimum(each[:, None], each)) | np.eye(len(dimensions), dtype=bool)
    for _ in dimensions:
        linked = linked @ linked
    return [dimensions[row].tolist() for row in np.unique(linked, axis=0)]


def _unmoved_parts(groups: list[list[int]], run: list[int], is_asked: Array) -> list[list[int]]:
    """Return the parts of the usual size of neighbouring dimensions that never moved; none if their number does not fit.

    What has one dimension, as a drawer, says nothing of the size of others: then all that desired goals ask for is one.

    is_asked: whether the desired goals of each dimension differ. Each part has one of which they do.
    """
    sizes, asked = [len(group) for group in groups if len(group) > 1], [k for k in run if is_asked[k]]
    if groups and not sizes:
        return [asked] if asked else []
    usual = max(sizes, key=sizes.count, default=len(run))
    for dimensions in (run, asked):
        parts = [dimensions[at : at + usual] for at in range(0, len(dimensions), usual)]
        if len(dimensions) % usual == 0 and all(is_asked[part].any() for part in parts):
            return parts
    return []


def _with_unmoved(groups: list[list[int]], run: list[int], is_body: Array, is_asked: Array) -> list[list[int]]:
    """Return the groups with dimensions that never moved in the one beside them. is_asked: see `_unmoved_parts`."""
    may_wait = bool(is_asked[run].any())
    beside = [group for k in (run[0] - 1, run[-1] + 1) for group in groups if k in group and not (may_wait and is_body[k])]
    if not beside:
        return [*groups, run]
    return [sorted([*group, *run]) if group is beside[0] else group for group in groups]


def _runs(dimensions: Sequence[int], between: Array | None = None) -> list[list[int]]:
    """Return runs of neighbouring dimensions. between: those that may lie between neighbours, (g,) bool; None: none."""
    runs: list[list[int]] = []
    for k in dimensions:
        if runs and (k - 1 == runs[-1][-1] or (between is not None and between[runs[-1][-1] + 1 : k].all())):
            runs[-1].append(k)
        else:
            runs.append([k])
    return runs


def _kind(group: Sequence[int], is_body: Array, moved: Array) -> PartKind:
    if is_body[list(group)].any():
        return "body"
    return "object" if moved[list(group)].any() else "unmoved"
