"""infer_structure: from episodes to what they show of a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..errors import InputError
from ..records import Array, Episode, GoalSpec
from ..records.reward_scale import RewardOf
from ..task_structure.symmetries import Symmetry
from .actions import ActionFrame
from .columns import (
    GoalCopies,
    Units,
    find_constant_columns,
    find_differences,
    find_goal_copies,
    find_units,
)
from .contact import MIN_ONSETS, find_onsets
from .controlled import ControlledColumns, find_controlled_columns
from .findings import Structure
from .gaps import find_gaps
from .goal_frame import GoalFrame, find_frame
from .handles import find_handles, single_dimensions
from .hidden_columns import GivenColumns, HiddenColumnSearch
from .mirrors import Mirrors
from .object_sequence import ObjectSequence, count_moved, find_sequence, measure_sequence
from .own_motion import OwnMotion, find_own_motion
from .parts import Parts, find_parts
from .poses import find_symmetries
from .random_actions import measure_inertia
from .steps import BESIDE, HELD_OUT, MOSTLY, Steps, measure_noise
from .success import (
    RewardPairs,
    count_tolerance_levels,
    errors_add_up,
    find_success_distance,
    find_success_distances,
)
from .tool import are_alike, guess_tools
from .tool_units import find_tool_units
from .walls import count_stopped
from .workspace import Workspace, find_reach, find_workspace, whole_episodes


@dataclass(frozen=True)
class _Stack:
    """Makes steps of episodes. noise, success_reward: see `Steps`. own: motion of objects that nothing touches."""

    noise: Array | None
    success_reward: float | None
    own: OwnMotion | None = None

    def steps(self, episodes: Sequence[Episode]) -> Steps:
        """Return the steps as they were."""
        return Steps.from_episodes(episodes, self.noise, self.success_reward)

    def touched(self, episodes: Sequence[Episode]) -> Steps:
        """Return the steps without the motion of objects that nothing touches."""
        steps = self.steps(episodes)
        return steps if self.own is None else self.own.subtract(steps)


@dataclass(frozen=True)
class _Decided:
    """What is decided before: see `infer_structure`.

    has_choices: whether actions are Discrete. success_reward: see `Steps.from_episodes`.
    """

    known: Sequence[Symmetry]
    columns: GivenColumns
    moves_by_itself: bool
    has_choices: bool
    success_reward: float | None


@dataclass(frozen=True)
class _Played:
    """Episodes of three kinds, with actions as inference sees them, and the reward; see `infer_structure`."""

    episodes: Sequence[Episode]
    probing: Sequence[Episode]
    later: Sequence[Episode]
    compute_reward: RewardOf | None

    @property
    def reward_pairs(self) -> RewardPairs | None:
        """What says whether rewards stay the same in a symmetry; None without a reward."""
        return None if self.compute_reward is None else RewardPairs(self.compute_reward, self.episodes)

    def seen_in(self, frame: GoalFrame, dtype: str) -> _Played:
        """Return the same with goals as a frame shows them. dtype: of the goals."""
        episodes, probing, later = map(frame.of_episodes, (self.episodes, self.probing, self.later))
        return _Played(episodes, probing, later, frame.of_reward(self.compute_reward, dtype))


@dataclass(frozen=True)
class _View:
    """Steps in some units, those with random actions among them, and the columns that actions move there."""

    units: Units
    steps: Steps
    random_steps: Steps
    controlled: ControlledColumns

    @classmethod
    def of(cls, units: Units, as_seen: tuple[Steps, Steps]) -> _View:
        steps, random_steps = map(units.apply, as_seen)
        return cls(units, steps, random_steps, find_controlled_columns(random_steps))


def infer_structure(
    episodes: Sequence[Episode],
    spec: GoalSpec,
    probing: Sequence[Episode] = (),
    shown: Sequence[int] = (),
    compute_reward: RewardOf | None = None,
    known: Sequence[str] = (),
    hidden: Sequence[int] | None = None,
    later: Sequence[Episode] = (),
    may_show: bool = False,
    moves_by_itself: bool = True,
) -> Structure:
    """Infer the structure of a task from its steps; a pure function of arrays.

    episodes: with random actions, which say how the world moves by itself. probing: with actions that seek contact
    (`plan_probing`); without them only what random actions show is used.
    shown: columns not to hide, unless they are positions along axes of mirrors, and networks predict as well without them.
    compute_reward: of the task; it shows when one of several objects is placed, and how far from a success most starts are.
    known: symmetries that held before; they hold until they are refuted.
    hidden: columns that the networks do not see, if that is decided. Symmetries must then hold for all others. None: those
        that turn out to be needless.
    later: with the actions of a policy. They show more contacts and positions, but not what rests or what follows actions:
        a policy chooses its actions by what it sees. Discrete actions are seen one-hot.
    may_show: whether hidden columns are shown again if networks clearly predict worse without them.
    moves_by_itself: whether what moves, although actions do not move it, may be an object. It is a body else.
    Raises InputError for fewer than 3 episodes, or if observations, goals or actions are not flat arrays of numbers.
    """
    _check(episodes, spec)
    actions = ActionFrame.of(spec.action)
    episodes, probing, later = map(actions.of_episodes, (episodes, probing, later))
    played = _Played(episodes, probing, later, compute_reward)
    symmetries = [actions.of_symmetry(Symmetry.parse(text, spec)) for text in known]
    success_reward = spec.reward_high if np.isfinite(spec.reward_high) else None  # more than two rewards do not show it
    has_choices = bool(spec.action.n_values)
    columns = GivenColumns(shown=shown, hidden=hidden, may_show=may_show)
    decided = _Decided(symmetries, columns, moves_by_itself, has_choices, success_reward)
    stack, view, parts = _find_parts(played, decided)
    frame = find_frame(parts, view.units)
    if frame.is_usual:
        found = _infer(played, spec, decided, stack, view, parts)
    else:
        seen = played.seen_in(frame, spec.goal.dtype)
        decided = replace(decided, known=list(map(frame.of_symmetry, symmetries)))
        found = frame.restore(_infer(seen, spec, decided, *_find_parts(seen, decided)), spec)
    return actions.restore(found, spec)


def _infer(played: _Played, spec: GoalSpec, decided: _Decided, stack: _Stack, view: _View, parts: Parts) -> Structure:
    """Infer the structure, once its parts are found."""
    episodes, later, compute_reward = played.episodes, played.later, played.compute_reward
    copies, constant = find_goal_copies(view.steps), find_constant_columns(view.steps)
    as_seen = stack.touched([*episodes, *later]), stack.touched(episodes)
    everything = stack.touched([*episodes, *later, *played.probing])
    view, sequence, guesses = _look_for_contact(view, as_seen, everything, parts, copies)
    units, steps = view.units, view.steps
    found = Structure(
        units=units,
        parts=parts,
        inertia=measure_inertia(view.random_steps),
        copies=copies,
        controlled=view.controlled,
        constant=constant,
        differences=find_differences(steps) if sequence is not None else (),
        guesses=guesses,
        has_choices=decided.has_choices,
        n_onsets=max((len(find_onsets(one)) for one in steps.of_objects(parts.objects)), default=0),
        sequence=sequence,
        time_limit=spec.max_episode_steps,
        longest_episode=max(map(len, episodes)),
        tolerance_levels=0 if compute_reward is None else count_tolerance_levels(compute_reward, episodes),
        stops=None if parts.has_object else count_stopped(steps, view.random_steps),
    )
    if not (parts.has_object or decided.has_choices or found.has_walls) and copies.is_complete:
        mirrors = Mirrors(steps, copies.complete, constant, units, decided.known, played.reward_pairs)
        return replace(found, symmetries=tuple(mirrors.find()))
    if sequence is None or not played.probing:
        return _with_handles(found, steps, episodes, compute_reward)
    return _with_probing(found, sequence, played, stack, decided)


def _find_parts(played: _Played, decided: _Decided) -> tuple[_Stack, _View, Parts]:
    """Return what makes steps of episodes, these in the units of the goal, and its parts.

    What moves, although actions move no column of it, is an object if it rests as objects do once its own motion is
    subtracted.
    """
    episodes, later = played.episodes, played.later
    add_up = partial(errors_add_up, played.compute_reward, episodes)
    find = partial(find_parts, errors_add_up=add_up, has_choices=decided.has_choices)
    stack = _Stack(measure_noise(Steps.from_episodes(episodes)), decided.success_reward)
    as_seen = stack.steps([*episodes, *later]), stack.steps(episodes)
    view = _View.of(find_units(as_seen[0]), as_seen)
    parts = find(view.steps, view.random_steps)
    if not (decided.moves_by_itself and parts.body):
        return stack, view, parts
    own = find_own_motion(as_seen[1], parts, find_goal_copies(view.steps), view.controlled)
    if own is None:
        return stack, view, parts
    steps, random_steps = (view.units.apply(own.subtract(each)) for each in as_seen)
    with_objects = find(steps, random_steps)
    if set(own.dimensions) & set(with_objects.body):
        return stack, view, parts
    return replace(stack, own=own), replace(view, steps=steps, random_steps=random_steps), with_objects


def _look_for_contact(
    view: _View, as_seen: tuple[Steps, Steps], everything: Steps, parts: Parts, copies: GoalCopies
) -> tuple[_View, ObjectSequence | None, tuple[tuple[int, ...], ...]]:
    """Return what touches the objects, and without that columns that may be the tool; first the units in which they are.

    What a collision takes from the speed of a tool looks like a gap. So a tool is looked for with gaps and without them: it
    is the one that comes nearer to the object.
    """
    views = [view]
    if gaps := find_gaps(view.steps, parts, copies, view.controlled):
        view = _View.of(replace(view.units, gaps=gaps), as_seen)
        views.append(view)
    if not parts.has_positions or not copies.is_complete:
        return view, None, ()
    # gaps to an object are near 0 at contacts in any order: as long as they count as positions, such orders are no tie
    sequences = [
        find_sequence(each.steps, parts, copies, each.controlled, each.units, may_tie=each is view) for each in views
    ]
    if found := [(each, sequence) for each, sequence in zip(views, sequences, strict=True) if sequence is not None]:
        return *min(found, key=lambda pair: pair[1].joint.distances[1]), ()
    if units := find_tool_units(view.units.apply(everything), parts, view.controlled, view.units):
        in_units = _View.of(units, as_seen)
        if sequence := find_sequence(in_units.steps, parts, copies, in_units.controlled, units):
            return in_units, sequence, ()
    return view, None, guess_tools(view.steps, parts, copies, view.controlled, view.units)


def _with_probing(
    found: Structure,
    sequence: ObjectSequence,
    played: _Played,
    stack: _Stack,
    decided: _Decided,
) -> Structure:
    """Return the structure with what episodes that seek contact show besides."""
    episodes, probing, compute_reward = [*played.episodes, *played.later], played.probing, played.compute_reward
    steps, objects = stack.touched(probing), sequence.dimensions
    everything = found.units.apply(stack.touched([*episodes, *probing]))
    began = {int(steps.episode[onset]) for one in steps.of_objects(objects) for onset in find_onsets(one)}
    found = replace(found, probes=(len(began), len(probing)), moved=count_moved(steps, objects))
    without = partial(_with_handles, replace(found, sequence=None), everything, episodes, compute_reward)
    again = find_sequence(everything, found.parts, found.copies, found.controlled, found.units)
    is_same = again is not None and again.joint.axes == sequence.joint.axes
    # with few contacts it must also be turned or closed, or it is not the tool, or a lid is in the way, which has a handle
    if found.probes[0] < MOSTLY * len(probing) and not is_same:
        return without()
    if min(found.moved) < MIN_ONSETS:
        return without()
    distances = None if compute_reward is None else find_success_distances(compute_reward, episodes, objects)
    possible = [sequence]
    if again is not None and are_alike(everything, again.joint.axes, sequence.joint.axes):
        possible.append(again)  # of a hand and its wrist, few contacts do not tell which one touches
    measured = [measure_sequence(everything, each, distances) for each in possible]
    sequence = min(measured, key=lambda each: each.joint.distances[2] - each.joint.distances[0])
    if not (found.parts.body or found.parts.move_by_themselves):
        found = replace(found, workspace=_find_workspace(everything, probing, found.parts, sequence))
    found = _with_handles(replace(found, sequence=sequence), everything, episodes, compute_reward)
    as_they_were = everything if stack.own is None else found.units.apply(stack.steps([*episodes, *probing]))
    found = _with_contact(found, sequence, as_they_were, decided, played.reward_pairs)
    if compute_reward is not None and not (sequence.others or sequence.has_poses):
        return found
    return replace(found, symmetries=tuple(each for each in found.symmetries if not each.candidate.objects))


def _with_handles(
    found: Structure, steps: Steps, episodes: Sequence[Episode], compute_reward: RewardOf | None
) -> Structure:
    """Return the structure with where the tool must be to move what has no position in the goal."""
    if not found.parts.has_object or (found.contact is not None and not found.contact.leads_to_goals):
        return found
    tool = found.contact.axes if found.contact is not None else ()
    positions = [k for dimensions in found.sequence.dimensions for k in dimensions] if found.sequence else []
    handles, may_need_one = [], single_dimensions(steps, found.parts, positions)
    for each in find_handles(steps, found.parts, found.copies, found.controlled, tool, positions):
        k = each.dimension
        distance = None if compute_reward is None else find_success_distance(compute_reward, episodes, [[k]])
        usual = BESIDE * float(steps.desired_goal[steps.starts_episode, k].std())
        handles.append(replace(each, placed=usual if distance is None else distance))
    handles = [each for each in handles if each.placed > 0]
    without = set(may_need_one).difference(each.dimension for each in handles)
    return replace(found, handles=tuple(handles), without_handle=tuple(sorted(without)))


def _find_workspace(everything: Steps, probing: Sequence[Episode], parts: Parts, sequence: ObjectSequence) -> Workspace:
    """Return where nothing can move the objects any more."""
    whole = Steps.from_episodes(whole_episodes(probing), everything.noise)
    if sequence.is_plain and not (sequence.has_poses or sequence.joint.leads_to_goals):
        reach = find_reach(everything, whole, sequence.joint)
        if reach.is_left:
            return reach
    return find_workspace(everything, whole, parts.objects)


def _with_contact(
    found: Structure, sequence: ObjectSequence, steps: Steps, decided: _Decided, rewards: RewardPairs | None
) -> Structure:
    """Return the structure with measured contacts, and the columns to hide and the symmetries that their steps show."""
    search = HiddenColumnSearch(
        steps=steps,
        contact=sequence.joint,
        units=found.units,
        differences=found.differences,
        controlled=found.controlled,
        constant=found.constant,
        given=decided.columns,
    )
    hidden = search.find_needless()
    symmetries = find_symmetries(steps, hidden.tested, found, sequence, decided.known, rewards)
    exchanges = {each.candidate.objects: each.candidate.symmetry.observation for each in symmetries}
    return replace(
        found,
        sequence=sequence.with_columns(exchanges, found.units),
        hidden=search.add_positions(hidden, symmetries),
        symmetries=symmetries,
    )


def _check(episodes: Sequence[Episode], spec: GoalSpec) -> None:
    if not is_flat(spec):
        given = {"observation": spec.observation, "goal": spec.goal, "action": spec.action}
        parts = ", ".join(f"{name} {part.shape} of {part.dtype}" for name, part in given.items())
        raise InputError(
            f"Structure is inferred from flat arrays of floats and Discrete actions, but the task has {parts}."
        )
    if len(episodes) < HELD_OUT:
        raise InputError(f"At least {HELD_OUT} episodes are needed, got {len(episodes)}. Play more steps.")


def is_flat(spec: GoalSpec) -> bool:
    """Return whether observations, goals and actions are flat arrays of floats, or actions Discrete, as inference needs."""
    parts = [spec.observation, spec.goal, *([] if spec.action.n_values else [spec.action])]
    return all(len(part.shape) == 1 and np.dtype(part.dtype).kind == "f" for part in parts)
