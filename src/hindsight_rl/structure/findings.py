"""What the steps of a task show, the options that follow from it with their evidence, and plans that seek contact."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..options import Choice, Feature
from ..records import GoalSpec
from ..records.exploration import Probing, as_rows
from ..task_structure.symmetries import Symmetry
from .columns import ColumnDifference, GoalCopies, Units
from .contact import Contact, missing_differences
from .controlled import ControlledColumns
from .handles import Handle
from .hidden_columns import HiddenColumns
from .object_sequence import ObjectSequence
from .parts import POSITION_SIZES, Parts
from .random_actions import SMALL_FRACTION, ActionRange, Inertia
from .steps import BESIDE
from .symmetry_verdicts import SymmetryVerdict, generators
from .walls import Stops
from .workspace import Workspace

MANY_LEVELS = 30  # levels times dimensions: cars with 12 learn faster from plain rewards, a hand with 60 from graded ones


@dataclass(frozen=True, eq=False)
class Structure:
    """What the steps of a task show.

    parts: of the goal. sequence, hidden, workspace: None without an object, or with too little evidence.
    moved: for each object of the sequence, number of probing episodes in which it began to move.
    time_limit: of an episode, in steps. longest_episode: the steps of the longest random one.
    action_range: whether a fraction of the range suffices, in a task without an object whose goals are far away; None: not
        tested.
    symmetries: that were tested; none if too little was seen for that.
    tolerance_levels: how often the difference between start and goal is halved, until most starts are successes.
    handles: where the tool must be to move what has no position in the goal.
    without_handle: dimensions of the goal that may need a handle, and have none.
    guesses: columns that may be the tool, if there is no contact. See `guess_tools`.
    stops: of a body inside the range of positions; None: unknown, as actions do not explain displacements, or an object.
    has_choices: whether actions are Discrete: without an object no symmetries are sought then.
    n_onsets: number of random episodes in which the goal began to move.
    probes: number of probing episodes in which it began to move, and number of all probing episodes.
    """

    units: Units
    parts: Parts
    inertia: Inertia
    copies: GoalCopies
    controlled: ControlledColumns
    constant: tuple[int, ...]
    differences: tuple[ColumnDifference, ...]
    n_onsets: int
    time_limit: int | None
    longest_episode: int
    tolerance_levels: int = 0
    probes: tuple[int, int] = (0, 0)
    hidden: HiddenColumns | None = None
    workspace: Workspace | None = None
    symmetries: tuple[SymmetryVerdict, ...] = ()
    action_range: ActionRange | None = None
    moved: tuple[int, ...] = ()
    sequence: ObjectSequence | None = None
    handles: tuple[Handle, ...] = ()
    without_handle: tuple[int, ...] = ()
    guesses: tuple[tuple[int, ...], ...] = ()
    has_choices: bool = False
    stops: Stops | None = None

    def with_symmetries(self, change: Callable[[Symmetry], Symmetry], spec: GoalSpec) -> Structure:
        """Return the same with the text of each symmetry changed, as where a frame shows goals or actions otherwise."""
        texts = [change(Symmetry.parse(each.text, spec)).text() for each in self.symmetries]
        changed = [replace(each, text=text) for each, text in zip(self.symmetries, texts, strict=True)]
        return replace(self, symmetries=tuple(changed))

    @cached_property
    def contact(self) -> Contact | None:
        """The contact of the tool with all objects."""
        return self.sequence.joint if self.sequence else None

    @property
    def hidden_columns(self) -> tuple[int, ...]:
        """The observation columns that are hidden."""
        return () if self.hidden is None else self.hidden.columns

    @property
    def shows_columns_again(self) -> bool:
        """Whether columns that were hidden are shown again."""
        return self.hidden is not None and bool(self.hidden.needed)

    @property
    def has_walls(self) -> bool:
        """Whether there are walls between the positions of a body. They break mirrors, which single steps seldom show."""
        return self.stops is not None and self.stops.are_walls

    @property
    def is_open_room(self) -> bool:
        """Whether nothing stops or breaks the body, as far as was seen. Then straight lines lead to goals."""
        return self.stops is not None and self.stops.n_stopped == 0 and self.inertia.broken == 0

    @property
    def is_uncertain(self) -> bool:
        """Whether more episodes that seek contact may decide what is open: a symmetry, or whether positions matter."""
        is_open = self.hidden is not None and self.hidden.is_uncertain
        return is_open or any(symmetry.is_uncertain for symmetry in self.symmetries)

    def measures(self) -> dict[str, float]:
        """Return what was measured, by the names that presets use."""
        limit = {} if self.time_limit is None else {"time_limit": float(self.time_limit)}
        return limit | {
            "episode_steps": self.time_limit or self.longest_episode,
            "steps_to_goal": self.inertia.steps_to_goal,
            "goal_std": self.parts.goal_std,
            "tolerance_step": 1 / (1 + self.tolerance_levels),
        }

    def features(self) -> list[Feature]:
        """Return the features of the task that have a preset, with evidence. Options of later ones replace others."""
        return [*(self._features_of_objects() if self.parts.has_object else self._features_of_bodies())]

    def _features_of_objects(self) -> Iterator[Feature]:
        yield Feature("object", self.parts.evidence())
        if (n := self._goal_size) <= max(POSITION_SIZES):
            yield Feature("few_dimensions", f"the goal has size {n}, at most that of a position ({max(POSITION_SIZES)})")
        if not self.parts.body:
            yield Feature("lone_object", self.parts.evidence())
        if self.contact is None and self.handles:
            yield Feature("guided", "a subgoal leads the tool to what it must move", needs="subgoals")
        elif self.contact is not None:
            reach = f"as {self.contact.reasons}"
            if self.contact.leads_to_goals:
                yield Feature("guided", f"a subgoal leads to the first contact, {reach}", needs="subgoals")
            else:
                yield Feature("hit", f"the object must be hit, {reach}")

    def _features_of_bodies(self) -> Iterator[Feature]:
        inertia, limit = self.inertia.evidence(), self.time_limit
        if self.inertia.keeps_speed and self.inertia.is_far:
            yield Feature("cancelling_actions", inertia)
        evidence = f"{inertia}; the time limit is {'not known' if limit is None else f'{limit} steps'}"
        yield Feature("body", evidence)
        if self.inertia.has_speed:
            yield Feature("speeds", inertia)
        if self.is_far_on_paths and not self.is_open_room:
            yield Feature("waypoints", inertia, needs="n_waypoints")
            if limit is not None and self.inertia.starts_anywhere:
                yield Feature("many_starts", inertia, needs="n_waypoints")
        if self._is_graded:
            yield Feature("many_dimensions", self._why_graded, needs="tolerance_levels")
        if self.action_range is not None and self.action_range.small_suffices:
            yield Feature("cancelling_actions", self.action_range.evidence())

    @property
    def has_paths(self) -> bool:
        """Whether waypoints may lead to goals: a few hundred cover a space, but no more. Along a line there is one path."""
        return not self.parts.has_object and self._goal_size in POSITION_SIZES and self.inertia.follows_paths

    @property
    def is_far_on_paths(self) -> bool:
        """Whether waypoints may lead to goals, and goals are many steps away."""
        return self.has_paths and self.inertia.is_far

    def choices(self) -> list[Choice]:
        """Return the structure that follows as options, with their evidence."""
        found = [*self._without_object(), *self._with_contact()]
        if self.hidden is not None:
            found += self.hidden.choices(self._goal_size)
        if self.workspace is not None and self.workspace.is_left:
            found += [Choice(*option, self.workspace.evidence()) for option in self.workspace.options().items()]
        if used := generators(self.symmetries):
            evidence = "; ".join(symmetry.evidence() for symmetry in self.symmetries)
            found.append(Choice("symmetries", tuple(symmetry.text for symmetry in used), evidence))
        return found

    def _without_object(self) -> Iterator[Choice]:
        if self.parts.has_object:
            return
        if self._is_graded:
            yield Choice("tolerance_levels", self.tolerance_levels, self._why_graded)
        if self.action_range is not None and self.action_range.small_suffices:
            yield Choice("action_scale", SMALL_FRACTION, self.action_range.evidence())

    @property
    def _is_graded(self) -> bool:
        """Whether so many dimensions must be right at once that few steps succeed."""
        return self._goal_size * self.tolerance_levels >= MANY_LEVELS

    @property
    def _why_graded(self) -> str:
        n = self._goal_size
        return f"with {self.tolerance_levels} tolerance levels in each of {n} dimensions, most starts count as a success"

    @property
    def has_all_handles(self) -> bool:
        """Whether there are only objects without a position, and all of them have a handle."""
        return {k for each in self.parts.objects for k in each} == {handle.dimension for handle in self.handles}

    @property
    def subgoals(self) -> tuple[str, ...]:
        """The subgoals that lead to handles and to objects, as the option writes them."""
        handles = tuple(handle.subgoal(self.units).text() for handle in self.handles)
        if self.contact is None or self.sequence is None or not self.contact.leads_to_goals:
            return handles
        return *handles, *self.sequence.subgoals(self.units, are_all=not handles)

    def _with_contact(self) -> Iterator[Choice]:
        if self.subgoals:
            reasons = [handle.evidence(self.units) for handle in self.handles]
            if self.sequence is not None:
                reasons.append(self.sequence.evidence(self.units) + self.units.evidence())
            yield Choice("subgoals", self.subgoals, "; ".join(reasons))
        if self.contact is None:
            return
        missing = missing_differences(self.contact, self.differences, self.units)
        if missing:
            yield Choice("column_differences", missing, "no column holds these gaps between tool and object")

    @property
    def _goal_size(self) -> int:
        return len(self.copies.columns)


def plan_probing(found: Structure, sequence: ObjectSequence) -> Probing:
    """Return how to bring the tool to its objects. sequence: what was found."""
    first = sequence.contacts[0]
    reach = first.distances[1]
    return _steer(found, first.tool, [each.object_columns for each in sequence.contacts], reach, reach)


def plan_guesses(found: Structure) -> tuple[Probing, ...]:
    """Return how to bring each possible tool to the objects, where no contact was seen yet.

    Dimensions that rest together may be several objects, each with as many dimensions as the tool.
    """
    plans, spread = [], found.parts.goal_std
    for tool in found.guesses:
        size, columns = len(tool), found.copies.complete
        objects = [
            tuple(columns[k] for k in dimensions[at : at + size])
            for dimensions in found.parts.objects
            for at in range(0, len(dimensions) - size + 1, size)
        ]
        plans.append(_steer(found, tool, objects, BESIDE * spread, spread))
    return tuple(plans)


def _steer(
    found: Structure, tool: Sequence[int], objects: Sequence[Sequence[int]], reach: float, largest_reach: float
) -> Probing:
    controlled, units = found.controlled, found.units
    at, posture = controlled.at(tool), controlled.posture
    return Probing(
        tool=units.of(tool),
        objects=tuple(map(units.of, objects)),
        effect=as_rows(controlled.effect[:, at]),
        drift=as_rows(controlled.drift[:, at].T),
        posture=posture.after(units.of(posture.columns)),
        by_posture=tuple(map(as_rows, controlled.by_posture[:, :, at])),
        reach=reach,
        largest_reach=largest_reach,
    )
