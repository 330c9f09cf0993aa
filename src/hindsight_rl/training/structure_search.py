"""Find the structure of a task while a run goes on.

Random episodes come first. If there is an object, episodes that seek contact with it follow. If the body may be too strong,
episodes follow that compare a fraction of the action range with all of it. Then training begins.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..agents.widen import can_widen
from ..options import Choice, Settings
from ..recipes.presets import preset_choices
from ..records import Array, Episode, GoalSpec
from ..records.exploration import Exploration
from ..replay.strategies import RewardFunction
from ..structure import (
    ObjectSequence,
    Structure,
    compare_ranges,
    explain_findings,
    explain_missing,
    infer_structure,
    plan_guesses,
    plan_probing,
    split_by_scale,
)
from ..structure.steps import HELD_OUT
from ..structure.symmetry_verdicts import generators
from .path_search import Build, PathSearch, Resolve
from .replacement import (
    AGAIN_FROM,
    LOOK_EVERY,
    has_not_learned,
    is_poor,
    may_be_replaced,
    replace_agent,
    widen_agent,
)
from .resolve import Found
from .run_state import SCALING_EPISODE_STEPS, RunState, SearchState
from .unguided_success import RECENT

SCALING_EPISODES = 2 * (HELD_OUT + 1)  # in every second one, random actions are small; one of each kind may be too short
PROBING_STEPS = 1_000  # for each object; at most twice as many while the structure is uncertain
# environment steps from the first inference on, after which the search for contacts ends: as many as one object is probed
# for at most, and twice as many if there are contacts, but the tool is not certain. An opening has no tool, but is learned
# from so many random steps sooner than from 400.
MOST_RANDOM_STEPS = 2 * PROBING_STEPS
MORE_RANDOM_STEPS = 250  # until the structure is inferred again
# environment steps without any success, after which training episodes end at their time limit only
TRY_LONGER_AT = 2 * AGAIN_FROM
# environment steps after which the structure is inferred again: when the data has doubled
REFINE_AT = (LOOK_EVERY, AGAIN_FROM, TRY_LONGER_AT, 2 * TRY_LONGER_AT)


class StructureSearch:
    """Decides how the first episodes explore, and rebuilds the run when the inferred structure changes its options.

    spec: the task.
    resolve: returns the settings of the run with the options that were found.
    build: returns agent, buffer and demonstrations for settings. The agent is the given one, or a new one if none is given.
        A new one takes the stored state if one is given.
    looks_for_endings: whether it is open how successes end episodes. compute_reward: of the task.
    is_used: whether structure is looked for. If not, episodes only show how successes end them.
    """

    def __init__(
        self,
        spec: GoalSpec,
        settings: Settings,
        resolve: Resolve,
        build: Build,
        looks_for_endings: bool = False,
        compute_reward: RewardFunction | None = None,
    ) -> None:
        self._random_steps, self._hidden = settings.training.random_steps, _decided_columns(settings)
        self.is_used = settings.training.structure == "inferred"
        self.state = SearchState(next_at=self._random_steps) if self.is_used else SearchState("learning", None)
        self._looks_for_endings = looks_for_endings
        self._spec, self._resolve, self._build, self._compute_reward = spec, resolve, build, compute_reward
        self._paths = PathSearch(resolve, build)

    @property
    def is_warm_up(self) -> bool:
        """Whether episodes are still played to find the structure. There are no updates then."""
        return self.state.phase != "learning"

    def exploration(self, exploration: Exploration, episode: int) -> Exploration:
        """Return how an episode of the warm-up explores. exploration: that of random actions. episode: its number."""
        return self.state.exploration(exploration, episode, self._random_steps)

    def observe(self, episodes: Sequence[Episode]) -> None:
        """Take note of how the episodes of a job ended."""
        for episode in episodes:
            self.state.observe(episode, self._looks_for_endings)

    def after_job(self, run: RunState) -> None:
        """Infer the structure if due, and rebuild the run if that changes its options. After an error, call it again."""
        before = copy.deepcopy(self.state)
        try:
            self._look(run)
        except BaseException:
            self.state = before
            raise

    def _look(self, run: RunState) -> None:
        state, steps = self.state, run.counts.env_steps
        if run.buffer.timeline.wraps and state.next_at is not None:
            self._paths.decide(run, state)
            state.end(run.settings.training.capacity)
        if not self.is_warm_up and state.update_endings():
            self._adopt(run, state.found)
        if state.ends_noiseless(run.counts.submitted_episodes) and may_be_replaced(run):
            replace_agent(run, run.settings, self._build(run.settings, None, None))
        if state.next_at is None or steps < state.next_at:
            return
        episodes = _without_unused(run.buffer.timeline.episodes(), run.settings.agent_options.unused_goal)
        if len(episodes) < HELD_OUT:  # look again after the next job
            return
        if state.phase == "random":
            self._look_for_contact(run, episodes)
        elif state.phase == "scaling":
            self._learn(run, _infer_range(episodes, state.first_scaled, self._spec, self._compute_reward))
            state.random_episodes = len(run.buffer.timeline.first_rows())  # those with larger actions may be gone
        elif state.phase == "probing":
            self._look_at_contacts(run, episodes)
        else:
            self._refine(run, episodes)

    def restore(self, run: RunState, data: Mapping[str, Any], stored: Mapping[str, Array] | None) -> None:
        """Go on from the state in a checkpoint. Call this before the trainer's own state is restored.

        stored: state of the agent.
        """
        self.state = SearchState.from_json(data)
        if (settings := self._resolve(self.state.found)) != run.settings:
            run.rebuild(self._build(settings, None, stored), settings)
        run.settings, run.agent.follows_paths = settings, self.state.follows_paths

    def _look_for_contact(self, run: RunState, episodes: Sequence[Episode]) -> None:
        state, steps = self.state, run.counts.env_steps
        if not state.first_probing:  # after those that probed a wrong tool, they do not count as random
            state.random_episodes = len(episodes)
        state.seek_until = state.seek_until or steps + MOST_RANDOM_STEPS
        # what moves by itself, and nothing touches, is learned as a body is
        found = self._infer_without_probing(episodes, moves_by_itself=steps < state.seek_until)
        if not found.parts.has_object:  # whether columns show an object may need more episodes
            if run.demonstrations is None and _may_be_too_strong(found, self._spec):  # they use the whole range
                state.phase, state.first_scaled = "scaling", len(episodes)
                state.next_at = steps + SCALING_EPISODES * SCALING_EPISODE_STEPS
                run.drop_jobs()
            else:
                self._learn(run, found)
        elif found.sequence is not None and not (found.without_handle and steps < state.seek_until):
            self._probe(run, episodes, found, found.sequence)
        elif not found.has_all_handles and steps < state.seek_until + _more_steps(found):
            state.next_at, state.guesses = steps + MORE_RANDOM_STEPS, plan_guesses(found)
        else:
            self._learn(run, found)

    def _probe(self, run: RunState, episodes: Sequence[Episode], found: Structure, sequence: ObjectSequence) -> None:
        state = self.state
        state.probing = plan_probing(found, sequence)
        state.phase, n_objects = "probing", len(state.probing.objects)
        state.next_at = run.counts.env_steps + PROBING_STEPS * n_objects
        state.seek_until = state.next_at + PROBING_STEPS * n_objects
        state.first_probing = len(episodes)
        run.drop_jobs()

    def _look_at_contacts(self, run: RunState, episodes: Sequence[Episode]) -> None:
        """Infer the structure from the probing episodes. While symmetries or positions are uncertain, play more of them.

        That costs fewer steps than to learn without a symmetry that holds, or with positions that do not matter. A wrong
        tool seldom moves the object that it is near, nor does one in wrong units. So these episodes may show the right one:
        it is probed next. If they show none, the search goes on as if it had not been found.
        """
        state, steps = self.state, run.counts.env_steps
        state.probing_episodes = len(episodes) - state.first_probing
        found = self._infer(episodes)
        if steps < state.seek_until and found.is_uncertain:
            state.next_at = min(steps + PROBING_STEPS // 2, state.seek_until)
            return
        if found.contact is None and steps < 2 * MOST_RANDOM_STEPS:
            again, probed = self._infer_without_probing(episodes), state.probing and state.probing.tool
            if again.sequence is not None and plan_probing(again, again.sequence).tool != probed:
                self._probe(run, episodes, again, again.sequence)
                return
            if again.sequence is None:
                state.phase, state.probing, state.seek_until = "random", None, self._random_steps + MOST_RANDOM_STEPS
                self._look_for_contact(run, episodes)
                return
        state.has_contact = found.contact is not None
        self._learn(run, found)

    def _infer(
        self, episodes: Sequence[Episode], n_seeking: int | None = None, hidden: Sequence[int] | None = None, **options: Any
    ) -> Structure:
        """Infer the structure from the random episodes, and from those that seek contact.

        n_seeking: how many sought contact; None: those that probed. hidden, options: see `infer_structure`.
        """
        n_random, first = self.state.random_episodes, self.state.first_probing
        stop = first + (self.state.probing_episodes if n_seeking is None else n_seeking)
        return infer_structure(
            episodes[:n_random],
            self._spec,
            episodes[first:stop],
            compute_reward=self._compute_reward,
            known=self.state.found.value("symmetries", ()),
            hidden=self._hidden if hidden is None else hidden,
            later=episodes[n_random:first],
            **options,
        )

    def _infer_without_probing(self, episodes: Sequence[Episode], **options: Any) -> Structure:
        """Infer the structure from random episodes and all later ones, as if none of them sought contact."""
        n, known = self.state.random_episodes, self.state.found.value("symmetries", ())
        return infer_structure(
            episodes[:n], self._spec, compute_reward=self._compute_reward, known=known, later=episodes[n:], **options
        )

    def _learn(self, run: RunState, found: Structure) -> None:
        """Begin to learn with what was found. If a later look found no contact, keep what was found before."""
        self.state.probing = None if found.sequence is None else plan_probing(found, found.sequence)
        self.state.phase, self.state.guesses = "learning", plan_guesses(found)
        self.state.next_at = _next_look(run.counts.env_steps, bool(self.state.guesses))
        if found.contact is not None or not self.state.found.structure:
            self._take(run, found)

    def _refine(self, run: RunState, episodes: Sequence[Episode]) -> None:
        """Infer the structure again with all episodes.

        If the agent stays and is poor, a new one replaces it, and learns from the stored episodes (Nikishin et al. 2022),
        unless episodes without noise show that only the noise fails.
        """
        self.state.next_at = _next_look(run.counts.env_steps, bool(self.state.guesses))
        before, has_failed = run.agent, is_poor(run)
        if self.state.found.endings and self.state.endings.is_clear and has_failed:
            self.state.take_endings()  # an agent that is not poor goes on with the reward that it knows
        # of several objects, not even the first is placed so early
        may_be_stuck = len(run.settings.flat().get("subgoals", ())) <= 1
        if may_be_stuck and run.counts.env_steps >= TRY_LONGER_AT and run.success.has_none:
            # the path to the goals may lead where no goal and no start lies
            self.state.found = replace(self.state.found, ends_early=False)
        if self.state.has_contact:
            self._test_again(run, episodes)
        else:
            found = self._infer_without_probing(episodes)
            self.state.guesses = plan_guesses(found)
            if found.sequence is None and found.parts.move_by_themselves:  # it was learned as a body
                found = self._infer_without_probing(episodes, moves_by_itself=False)
            self._paths.look(run, self.state, found)
            if found.sequence is not None and may_be_replaced(run):
                self._probe(run, episodes, found, found.sequence)
                return
            if len(found.subgoals) > len(self.state.found.value("subgoals", ())):
                self._take(run, found)
            if found.symmetries or found.has_walls:
                self.state.take_late(found)
        self._adopt(run, self.state.found)
        if may_be_stuck and run.agent is before and has_failed and may_be_replaced(run):
            self.state.noiseless_until = run.counts.submitted_episodes + RECENT

    def _test_again(self, run: RunState, episodes: Sequence[Episode]) -> None:
        """Test hidden columns, symmetries and the reach of the tool. Columns that are shown stay shown.

        If no contact is found, nothing changes: the policy may not touch the object yet. An agent that may not be replaced
        sees more columns from now on if these clearly matter, and symmetries are tested for the columns that it sees.
        """
        known, may_replace = self.state.found, may_be_replaced(run)
        hidden = known.value("hidden_observation", ())
        shown = [column for column in range(self._spec.observation.size) if column not in hidden]
        options = {"shown": shown, "may_show": self._hidden is None}
        found = self._infer(episodes, len(episodes), None if may_replace else hidden, **options)
        if found.contact is None:
            return
        is_subgoal_new = len(found.subgoals) > len(known.value("subgoals", ()))
        has_new_symmetries = _has_new_symmetries(found, known.value("symmetries", ()))
        if may_replace and (is_subgoal_new or has_new_symmetries or set(found.hidden_columns) != set(hidden)):
            self._take(run, found)
        elif not may_replace and (has_new_symmetries or found.shows_columns_again):
            self.state.take_late(found)

    def _take(self, run: RunState, found: Structure) -> None:
        wanted = replace(self.state.found, structure=all_choices(found))
        self._adopt(run, wanted)
        if self.state.found == wanted:
            self.state.missing, self.state.findings = tuple(explain_missing(found)), tuple(explain_findings(found))

    def _adopt(self, run: RunState, found: Found) -> None:
        """Go on with the options that were found: with the same agent if none of its own options changes.

        If some do, it is replaced if it may be, or widened if it only sees more. Otherwise nothing is adopted for now.
        """
        settings = self._resolve(found)
        if settings != run.settings:
            if settings.agent_options == run.settings.agent_options and not has_not_learned(run):
                run.rebuild(self._build(settings, run.agent, None), settings)
            elif may_be_replaced(run):
                replace_agent(run, settings, self._build(settings, None, None))
            elif can_widen(run.settings.agent_options, settings.agent_options):
                widen_agent(run, settings, self._build(settings, None, None))
            else:
                return
        self.state.found, run.settings = found, settings  # they may be equal for other reasons


def _next_look(steps: int, has_guesses: bool) -> int | None:
    """Return the environment steps after which the structure is inferred again; soon, if there are guesses of the tool."""
    due = [step for step in REFINE_AT if step > steps]
    return min([*due, steps + LOOK_EVERY]) if due and has_guesses else min(due, default=None)


def _has_new_symmetries(found: Structure, used: Sequence[str]) -> bool:
    """Whether more symmetries hold than are used, or others.

    Later steps may refute one, as a wall breaks it, or show that an angle of an object changes its sign in another way.
    """
    refuted, holding = {each.text for each in found.symmetries if each.is_refuted}, generators(found.symmetries)
    known = [_change_of_goals(text) for text in used]
    has_others = any(_change_of_goals(each.text) not in known for each in holding)
    return len(holding) > len(used) or has_others or not refuted.isdisjoint(used)


def _change_of_goals(symmetry: str) -> set[str]:
    """Return the terms of a symmetry that say how goals change."""
    return {term for term in symmetry.split() if term.startswith("g")}


def _may_be_too_strong(found: Structure, spec: GoalSpec) -> bool:
    """Whether a fraction of the action range is worth a test: many joints move a body to goals that are far away."""
    is_far = any(feature.preset == "waypoints" for feature in found.features())
    return is_far and spec.action.size > spec.goal.size


def _infer_range(
    episodes: Sequence[Episode], first: int, spec: GoalSpec, compute_reward: RewardFunction | None
) -> Structure:
    """Infer the structure from episodes with a fraction of the action range if it suffices, else from those before them.

    first: the number of the first episode that compares a fraction of the range with all of it.
    """
    small, whole = split_by_scale(episodes[first:], spec.action)
    action_range = compare_ranges(small, whole) if min(len(small), len(whole)) >= HELD_OUT else None
    suffices = action_range is not None and action_range.small_suffices
    found = infer_structure(small if suffices else episodes[:first], spec, compute_reward=compute_reward)
    return replace(found, action_range=action_range)


def _more_steps(found: Structure) -> int:
    """Return how many more random steps there may be, as there are contacts, but the tool is not certain."""
    return MOST_RANDOM_STEPS if found.n_onsets and found.parts.has_positions else 0


def _without_unused(episodes: Sequence[Episode], unused: Sequence[int]) -> list[Episode]:
    """Return episodes with goals that ask for what is there already, in dimensions on which no reward depends."""
    if not unused:
        return list(episodes)
    is_unused = np.isin(np.arange(episodes[0].desired_goal.shape[1]), unused)
    return [replace(each, desired_goal=np.where(is_unused, each.achieved_goal[:1], each.desired_goal)) for each in episodes]


def all_choices(found: Structure) -> tuple[Choice, ...]:
    """Return the options that follow from what was found: those of presets for its features, then its structure."""
    return *preset_choices(found.features(), found.measures()), *found.choices()


def _decided_columns(settings: Settings) -> tuple[int, ...] | None:
    """Return the columns that the networks do not see, if options decide it; None if the search does."""
    options = settings.agent_options
    is_open = options.goal_features == "relative" and settings.source("hidden_observation") in ("task", "default")
    return None if is_open else options.hidden_observation
