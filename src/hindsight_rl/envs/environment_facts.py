"""What was found out about an environment by playing it, and the options of a run that follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..options.settings import Choice
from ..records import OBSERVATION_KEYS
from ..records.reward_scale import GuardedReward
from ..records.statistics import LARGEST_GOAL
from ..task_structure.categories import Categories
from .goal_columns import dimensions_not_shown
from .probe import Probe
from .reset_rule import resets_are_exact
from .reward_rules import needs_extra_reward


@dataclass(frozen=True)
class EnvironmentFacts:
    """What was found out about an environment.

    terminates_on_success: None: no success was seen, or some successes ended their episode and others did not.
    exact_resets: whether a reset with the same seed gives the same observations.
    reward_range: the two values of the reward; infinite if it has others, also where `read_spec` saw two.
    proposed: options of every run and buffer that follow from what was seen.
    """

    terminates_on_success: bool | None
    exact_resets: bool
    reward_range: tuple[float, float]
    proposed: tuple[Choice, ...]

    def choices(self, can_remake: bool = False) -> list[Choice]:
        """Return the options of a run that follow from the facts. can_remake: whether new environments can be made."""
        why = f"a reset {'equals' if self.exact_resets else 'does not equal'} a new environment"
        remake = [Choice("remake_environment", not self.exact_resets, why)] if can_remake else []
        return [*self.proposed, *remake]


def find_facts(probe: Probe) -> EnvironmentFacts:
    """Return what was found out, and the options that follow."""
    reward_range = probe.spec.reward_low, probe.spec.reward_high
    return EnvironmentFacts(probe.terminates_on_success, resets_are_exact(probe), reward_range, tuple(_choices(probe)))


def _choices(probe: Probe) -> Iterator[Choice]:
    if probe.reward.needs_float64:
        yield Choice("dtype", "float64", "compute_reward fails for goals that were rounded to float32")
    elif probe.spec.goal.dtype == "float64":
        goals = np.concatenate([goals for episode in probe.random for goals in episode.goals()[:2]])
        largest, extent = np.abs(goals).max(), np.ptp(goals, axis=0).max()
        if largest > LARGEST_GOAL * extent:
            too_coarse = f"goals of up to {largest:g} lie {extent:g} apart, so float32 is too coarse"
            yield Choice("dtype", "float64", too_coarse)
    shows_success = np.isfinite(probe.spec.reward_high) or probe.success is not None
    if probe.terminates_on_success and not probe.has_right_termination and shows_success:
        yield Choice("relabel_terminated", "success", "successes end their episode, and so do relabelled ones")
    elif probe.terminates_on_success is False and probe.has_right_termination is False:
        yield Choice("relabel_terminated", "keep", "successes do not end their episode, nor do relabelled ones")
    if needs_extra_reward(probe):
        n_steps = len(probe.other_rewards)
        yield Choice("extra_reward", True, f"in {n_steps} steps the reward has a part that compute_reward leaves out")
    if keys := tuple(probe.info_keys):
        yield Choice("info_keys", keys, "the functions of the environment read these entries of info")
    if texts := _categories(probe):
        yield Choice("categories", texts, f"they hold whole numbers in {len(probe.rewards)} steps, as the goals do")
    if dimensions := dimensions_not_shown([*probe.episodes, *probe.starts]):
        is_all = len(dimensions) == probe.spec.goal.size
        key = "achieved_goal" if is_all else f"achieved_goal[{','.join(map(str, dimensions))}]"
        yield Choice("observation_keys", (key,), f"no column of the observation shows {key}")
    unused = probe.unused_goal
    if unused and len(unused) < probe.spec.goal.size:
        yield Choice("unused_goal", unused, "no reward depends on these dimensions of the desired goal")
    if columns := probe.hideable_columns:
        why = "these columns change with the desired goal, and relabelling keeps them"
        yield Choice("hidden_observation", columns, why)


def _categories(probe: Probe) -> tuple[str, ...]:
    """Return the columns with categories, as texts, if some are not declared by the spaces; none otherwise.

    None either if goals beside the achieved one count as reached: they are places, in whole pixels for instance.
    """
    rows = {key: np.concatenate([each.observations[key] for each in probe.episodes]) for key in OBSERVATION_KEYS}
    goals = np.concatenate([rows["achieved_goal"], rows["desired_goal"]])
    declared, seen = Categories.of_spaces(probe.spec), Categories.of_steps(probe.spec, rows["observation"], goals)
    return () if seen == declared or _are_near_goals_reached(probe) else seen.texts()


def _are_near_goals_reached(probe: Probe) -> bool:
    """Return whether an achieved goal that differs by 1 in any one dimension from the desired one has the same reward.

    False if compute_reward cannot answer for such goals.
    """
    _, desired, info = probe.random[0].goals()
    steps = np.eye(probe.spec.goal.size).reshape(-1, *probe.spec.goal.shape).astype(desired.dtype)
    ask = GuardedReward(probe.reward)
    reached, *near = (ask(desired + each, desired, info) for each in (np.zeros_like(steps[0]), *steps, *-steps))
    return reached is not None and all(each is not None and np.array_equal(each, reached) for each in near)
