"""What the steps of a task show, the options that follow, each with its evidence, and the plans that seek contact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..options import Choice
from ..records.exploration import Probing
from .axis_symmetries import SymmetryVerdict
from .columns import ColumnDifference, ControlledColumns, GoalCopies, Units
from .contact import Contact, ObjectSequence, missing_differences
from .mirrors import Mirror
from .model import Relevance
from .parts import Parts, Workspace
from .random_actions import ActionRange, Inertia

ACTION_L2 = 0.1
HIT_ACTION_L2 = 0.05  # an object that must leave the tool needs large actions
HIT_HORIZON = 0.4  # of an episode: with a longer one, to hit now or later is worth nearly the same, and policies wait
EXACT_AFTER = 2_000  # episodes: from then on most hits lead near the goal, and noise spoils them
HIT_EXPLORATION = 0.4  # of what it was, from then on
HIT_RELABEL = "future=0.35,desired=0.15"  # from then on half of the batch keeps its goal
USUAL_LIMIT = 100  # steps of an episode, if there is no time limit
LOWEST_DISCOUNT = 0.9
MANY_LEVELS = 30  # of all dimensions together; two cars with 12 learn faster from plain rewards, a hand with 60 slower
GUIDED_ACTION_L2 = 0.2  # actions must be small until the first contact, to which a subgoal soon leads
GUESSED_REACH = 0.25  # of the standard deviation of the goals: objects are smaller than the space in which they are moved


@dataclass(frozen=True, eq=False)
class Structure:
    """What the steps of a task show.

    is_dense: whether rewards differ on the path to a goal.
    parts: of the goal. contact, relevance, workspace: None without an object, or with too little evidence.
    moved: probing episodes in which each object began to move.
    sequence: of several objects, or of one beside a body; `contact` is then its joint one.
    time_limit: of an episode, in steps.
    action_range: of a task without an object whose goals are far away; None if it was not tested.
    mirrors: of a task without an object; None if too little was visited, or too many columns were seen.
    tolerance_levels: how often the difference between start and goal is halved, until most starts are successes.
    guesses: columns that may be the tool, if there is no contact. See `guess_tools`.
    n_onsets: random episodes in which the goal began to move. probes: probing episodes in which it did, and all of them.
    unclear: visible columns of which it is not clear how a mirror changes them.
    """

    units: Units
    parts: Parts
    inertia: Inertia
    is_dense: bool
    copies: GoalCopies
    controlled: ControlledColumns
    constant: tuple[int, ...]
    differences: tuple[ColumnDifference, ...]
    contact: Contact | None
    n_onsets: int
    time_limit: int | None
    tolerance_levels: int = 0
    probes: tuple[int, int] = (0, 0)
    relevance: Relevance | None = None
    workspace: Workspace | None = None
    hidden: tuple[int, ...] = ()
    symmetries: tuple[SymmetryVerdict, ...] = ()
    action_range: ActionRange | None = None
    mirrors: tuple[Mirror, ...] | None = None
    unclear: tuple[int, ...] = ()
    moved: tuple[int, ...] = ()
    sequence: ObjectSequence | None = None
    guesses: tuple[tuple[int, ...], ...] = ()

    def choices(self) -> list[Choice]:
        """Return the options that follow, with their evidence. If an option occurs twice, the later choice knows more."""
        found = [*self._hyperparameters(), *self._without_object(), *self._with_contact(), *self._hidden_columns()]
        if self.workspace is not None and self.workspace.is_left:
            found += [Choice(*option, self.workspace.evidence()) for option in self.workspace.options().items()]
        holds = [symmetry for symmetry in self.symmetries if symmetry.holds]
        if holds:
            evidence = "; ".join(symmetry.evidence() for symmetry in self.symmetries)
            found.append(Choice("symmetries", tuple(symmetry.text for symmetry in holds), evidence))
        return found

    def _hyperparameters(self) -> Iterator[Choice]:
        measured = self.parts if self.parts.has_object else self.inertia
        yield from (Choice(*option, measured.evidence()) for option in measured.options().items())
        if self.sequence is not None and self.time_limit is not None:
            discount = self.sequence.discount(self.time_limit)
            yield Choice("discount", discount, self.sequence.reason(self.time_limit), needs="subgoals")

    def _without_object(self) -> Iterator[Choice]:
        if self.parts.has_object:
            return
        horizon, limit = self.inertia.horizon(self.time_limit, self.is_dense), self.time_limit
        evidence = f"{self.inertia.evidence()}; the time limit is {'not known' if limit is None else f'{limit} steps'}"
        yield from (Choice(*option, evidence) for option in horizon.items())
        waypoints = self.inertia.waypoints(len(self._whole_goal), limit)
        for option, value in waypoints.items():
            yield Choice(option, value, self.inertia.evidence(), needs="" if option == "n_waypoints" else "n_waypoints")
        yield from self._graded_rewards()
        if self.action_range is not None:
            yield from (Choice(*option, self.action_range.evidence()) for option in self.action_range.options().items())
        if self.copies.is_complete:
            evidence = f"the observation and goal - achieved_goal say where the goal is; {self.copies.evidence()}"
            yield Choice("hidden_goal", self._whole_goal, evidence)
        if self.mirrors:
            evidence = "; ".join(mirror.evidence() for mirror in self.mirrors)
            yield Choice("symmetries", tuple(mirror.text for mirror in self.mirrors), evidence)

    def _with_contact(self) -> Iterator[Choice]:
        if self.contact is None:
            return
        if self.contact.leads_to_goals:
            evidence = (self.sequence or self.contact).evidence() + self.units.evidence()
            subgoals = self.sequence.subgoals(self.units) if self.sequence else (self.contact.subgoal(self.units).text(),)
            yield Choice("subgoals", subgoals, evidence)
            why = f"a subgoal leads to the first contact, as the tool reaches {self.contact.in_reach:.0%} of the goals"
            yield Choice("action_l2", GUIDED_ACTION_L2, why, needs="subgoals")
        else:
            why = f"the object must be hit, as the tool reaches {self.contact.in_reach:.0%} of the goals"
            yield from (Choice(*option, why) for option in self._options_of_hits().items())
        missing = missing_differences(self.contact, self.differences)
        if missing:
            yield Choice("column_differences", missing, "no column holds these gaps between tool and object")

    def _graded_rewards(self) -> Iterator[Choice]:
        """Yield the options of graded rewards, if so many dimensions must be right at once that few steps succeed.

        Graded rewards differ by less than those of success and failure, so the penalty of actions is smaller.
        """
        n = len(self._whole_goal)
        if n * self.tolerance_levels >= MANY_LEVELS:
            why = f"with {self.tolerance_levels} tolerance levels in each of {n} dimensions, most starts count as a success"
            yield Choice("tolerance_levels", self.tolerance_levels, why)
            action_l2 = float(f"{ACTION_L2 / (1 + self.tolerance_levels):.2g}")
            yield Choice("action_l2", action_l2, why, needs="tolerance_levels")

    def _options_of_hits(self) -> dict[str, Any]:
        """Return hyperparameters for an object that must leave the tool. A few exact steps decide."""
        limit = self.time_limit or USUAL_LIMIT
        exact_from = EXACT_AFTER * limit
        return {
            "action_l2": HIT_ACTION_L2,
            "discount": round(max(1 - 1 / (HIT_HORIZON * limit), LOWEST_DISCOUNT), 3),
            "exploration_decay": HIT_EXPLORATION,
            "exploration_decay_start": exact_from,
            "relabel_schedule": (f"{exact_from}: {HIT_RELABEL}",),
        }

    def _hidden_columns(self) -> Iterator[Choice]:
        if self.relevance is not None and self.hidden:
            yield Choice("hidden_observation", self.hidden, self._why_hidden(self.relevance))
            why = f"goal - achieved_goal has all {len(self._whole_goal)} dimensions, wherever the goal lies"
            yield Choice("hidden_goal", self._whole_goal, why)

    def _why_hidden(self, relevance: Relevance) -> str:
        reasons = [f"columns {', '.join(map(str, self.constant))} are constant"] if self.constant else []
        positions = [c for c in self.hidden if c not in {*relevance.without, *self.constant}]
        reasons += [f"columns {', '.join(map(str, positions))} are positions along axes of mirrors"] if positions else []
        tested = [c for c in self.hidden if c in relevance.without]
        return "; ".join([*reasons, relevance.evidence(tested)] if tested else reasons)

    @property
    def _whole_goal(self) -> tuple[int, ...]:
        return tuple(range(len(self.copies.columns)))


def plan_probing(found: Structure, contact: Contact) -> Probing:
    """Return how to bring the tool to its objects. contact: what was found; of several objects the joint one."""
    contacts = found.sequence.contacts if found.sequence else (contact,)
    return _steer(found, contacts[0].tool, [each.object_columns for each in contacts], contacts[0].distances[1])


def plan_guesses(found: Structure) -> tuple[Probing, ...]:
    """Return how to bring each possible tool to the objects, where no contact was seen yet."""
    if not found.guesses:
        return ()
    sizes = [len(dimensions) for dimensions in found.parts.objects]
    objects = [
        tuple(found.copies.complete[k] for k in dimensions)
        for dimensions in found.parts.objects
        if len(dimensions) == sizes[0]
    ]
    return tuple(_steer(found, tool, objects, GUESSED_REACH * found.parts.goal_std) for tool in found.guesses)


def _steer(found: Structure, tool: Sequence[int], objects: Sequence[Sequence[int]], reach: float) -> Probing:
    """The change of the tool's columns is linear in the action, by regression: the pseudo-inverse of that effect steers."""
    steer = np.linalg.pinv(found.controlled.effect_on(tool).T)  # (action size, goal size)
    columns = tuple(map(found.units.of, objects))
    return Probing(found.units.of(tool), columns, tuple(map(tuple, steer.tolist())), reach)
