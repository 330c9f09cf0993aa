"""infer_structure: from episodes to what they show of a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import InputError
from ..records import Array, ArraySpec, Episode, GoalSpec
from ..records.reward_scale import RewardOf
from .axis_symmetries import SymmetryFinder, SymmetryVerdict
from .columns import (
    ControlledColumns,
    GoalCopies,
    Units,
    find_constant_columns,
    find_controlled_columns,
    find_differences,
    find_goal_copies,
    find_units,
)
from .contact import (
    MIN_MOVED,
    Contact,
    ObjectSequence,
    count_moved,
    find_contact,
    find_onsets,
    find_sequence,
    gap_columns,
    guess_tools,
    measure_contact,
    measure_sequence,
)
from .findings import Structure
from .mirrors import Mirror, MirrorFinder
from .model import Relevance, find_relevance
from .parts import Parts, find_parts, find_workspace
from .random_actions import measure_inertia
from .steps import HELD_OUT, MOSTLY, Steps, measure_noise
from .success import count_tolerance_levels, find_success_distance, has_dense_rewards, ignores_exchange


def infer_structure(
    episodes: Sequence[Episode],
    spec: GoalSpec,
    probing: Sequence[Episode] = (),
    shown: Sequence[int] = (),
    compute_reward: RewardOf | None = None,
    known: Sequence[str] = (),
    hidden: Sequence[int] | None = None,
    later: Sequence[Episode] = (),
) -> Structure:
    """Infer the structure of a task from its steps; a pure function of arrays.

    episodes: with random actions, which say how the world moves by itself. probing: with actions that seek contact
    (`plan_probing`); without them only what random actions show is used. shown: columns not to hide, unless they are
    positions along axes of which a mirror holds. compute_reward: of the task; it shows when one of several objects is
    placed, and how far from a success most starts are.
    known: mirrors that held before, of a task without an object.
    hidden: columns that the networks do not see, if that is decided. Symmetries must then hold for all others. None: those
        that turn out to be needless.
    later: with the actions of a policy. They show more contacts and positions, but not what rests or what follows actions:
    a policy chooses its actions by what it sees.
    Raises InputError for fewer than 3 episodes, or if observations, goals or actions are not flat arrays of numbers.
    """
    _check(episodes, spec)
    random_steps = Steps.from_episodes(episodes)
    noise = measure_noise(random_steps)
    steps = Steps.from_episodes([*episodes, *later], noise)
    units = find_units(steps)
    steps, random_steps = (units.apply(each) for each in (steps, replace(random_steps, noise=noise)))
    copies, constant = find_goal_copies(steps), find_constant_columns(steps)
    controlled, inertia = find_controlled_columns(random_steps), measure_inertia(random_steps)
    parts = find_parts(steps, random_steps)
    sequence, contact = _find_contacts(steps, parts, copies, controlled, units)
    guesses: tuple[tuple[int, ...], ...] = ()
    if contact is None and parts.has_object and copies.is_complete:
        of_object = tuple(copies.complete[k] for k in parts.objects[0])
        guesses = guess_tools(steps.of_objects(parts.objects)[0], of_object, controlled, units)
    has_mirrors = not parts.has_object and copies.is_complete
    found = Structure(
        units=units,
        parts=parts,
        inertia=inertia,
        is_dense=has_dense_rewards(episodes, spec, compute_reward),
        copies=copies,
        controlled=controlled,
        constant=constant,
        differences=find_differences(steps) if contact is not None else (),
        contact=contact,
        guesses=guesses,
        n_onsets=max((len(find_onsets(one)) for one in steps.of_objects(parts.objects)), default=0),
        sequence=sequence,
        time_limit=spec.max_episode_steps,
        tolerance_levels=0 if compute_reward is None else count_tolerance_levels(compute_reward, episodes),
        mirrors=_find_mirrors(steps, copies, constant, units, spec.action, known) if has_mirrors else None,
    )
    if contact is None or not probing:
        return found
    return _with_probing(found, contact, [*episodes, *later], probing, noise, shown, compute_reward, hidden)


def _find_contacts(
    steps: Steps, parts: Parts, copies: GoalCopies, controlled: ControlledColumns, units: Units
) -> tuple[ObjectSequence | None, Contact | None]:
    """Return the sequence of several objects, or of one beside a body, and the contact: for a sequence, the joint one."""
    if not (parts.has_object and copies.is_complete):
        return None, None
    if len(parts.objects) > 1 or parts.body:
        sequence = find_sequence(steps, parts, copies, controlled, units)
        return sequence, sequence.joint if sequence else None
    return None, find_contact(steps, copies, controlled, units)


def _with_probing(
    found: Structure,
    contact: Contact,
    episodes: Sequence[Episode],
    probing: Sequence[Episode],
    noise: Array | None,
    shown: Sequence[int],
    compute_reward: RewardOf | None,
    hidden: Sequence[int] | None,
) -> Structure:
    """Return the structure with what episodes that seek contact show besides."""
    steps, objects, sequence = Steps.from_episodes(probing, noise), found.parts.objects, found.sequence
    began = {int(steps.episode[onset]) for one in steps.of_objects(objects) for onset in find_onsets(one)}
    found = replace(found, probes=(len(began), len(probing)), moved=count_moved(steps, objects))
    if found.probes[0] < MOSTLY * len(probing) or (sequence is not None and min(found.moved) < MIN_MOVED):
        return replace(found, contact=None, sequence=None)
    everything = found.units.apply(Steps.from_episodes([*episodes, *probing], noise))
    if not found.parts.body:
        found = replace(found, workspace=find_workspace(everything, steps, objects))
    if sequence is None:
        return _with_contact(
            found, measure_contact(everything, contact.tool, contact.object_columns), everything, shown, hidden
        )
    distance = None if compute_reward is None else find_success_distance(compute_reward, episodes, sequence.dimensions)
    sequence = measure_sequence(everything, sequence, distance)
    found = _with_contact(replace(found, sequence=sequence), sequence.joint, everything, shown, hidden)
    if compute_reward is not None and not sequence.others and ignores_exchange(compute_reward, episodes, len(objects[0])):
        return found
    return replace(found, symmetries=tuple(each for each in found.symmetries if not each.objects))


def _find_mirrors(
    steps: Steps, copies: GoalCopies, constant: Sequence[int], units: Units, action: ArraySpec, known: Sequence[str]
) -> tuple[Mirror, ...] | None:
    low, high = action.bounds()
    return MirrorFinder(steps, copies.complete, constant, units, np.isclose(-low, high).ravel()).find(known)


def _with_contact(
    found: Structure, contact: Contact, steps: Steps, shown: Sequence[int], hidden: Sequence[int] | None
) -> Structure:
    """Return the structure with a measured contact, and the columns to hide and the symmetries that its steps show."""
    controlled, gaps = found.controlled, gap_columns(contact, found.differences)
    live = [c for c in range(steps.n_columns) if c not in found.constant]
    always = {*gaps, *controlled.columns, *shown, *contact.object_columns}
    may_be_needless = [c for c in live if c not in always] if hidden is None else []
    relevance = find_relevance(steps, contact, live, may_be_needless) if may_be_needless else Relevance({}, (), None)
    visible = [c for c in live if c not in (relevance.needless if hidden is None else hidden)]
    is_whole = len(contact.tool) % len(contact.axes) == 0  # an object with fewer dimensions than others has no such axes
    finder = SymmetryFinder(steps, visible, contact, controlled, found.units) if is_whole else None
    symmetries = tuple(finder.find()) if finder else ()
    may_hide = [c for c in range(steps.n_columns) if c not in shown or c in {*contact.tool, *contact.object_columns}]
    needless = _hidden_columns(may_hide, visible, contact, symmetries)
    found = replace(found, contact=contact, relevance=relevance, hidden=needless)
    return replace(found, symmetries=symmetries, unclear=finder.unclear if finder else ())


def _check(episodes: Sequence[Episode], spec: GoalSpec) -> None:
    if not is_flat(spec):
        parts = ", ".join(f"{name} {part.shape} of {part.dtype}" for name, part in _parts(spec).items())
        raise InputError(f"Structure is inferred from flat arrays of floats, but the task has {parts}.")
    if len(episodes) < HELD_OUT:
        raise InputError(f"At least {HELD_OUT} episodes are needed, got {len(episodes)}. Play more steps.")


def is_flat(spec: GoalSpec) -> bool:
    """Return whether observations, goals and actions are flat arrays of floats, as inference needs."""
    return all(len(part.shape) == 1 and np.dtype(part.dtype).kind == "f" for part in _parts(spec).values())


def _parts(spec: GoalSpec) -> dict[str, ArraySpec]:
    return {"observation": spec.observation, "goal": spec.goal, "action": spec.action}


def _hidden_columns(
    columns: Sequence[int], visible: Sequence[int], contact: Contact, symmetries: Sequence[SymmetryVerdict]
) -> tuple[int, ...]:
    """Return which columns to hide: what helps no prediction, and positions along axes of which the mirror holds.

    Along the other axes the position may matter (gravity, the edge of the reach), whatever a few steps show.
    """
    mirrored = {symmetry.axes[0] for symmetry in symmetries if symmetry.holds and len(symmetry.axes) == 1}
    n_axes = len(contact.axes)
    positions = {
        column: k % n_axes for columns in (contact.tool, contact.object_columns) for k, column in enumerate(columns)
    }
    return tuple(c for c in columns if (positions[c] in mirrored if c in positions else c not in visible))
