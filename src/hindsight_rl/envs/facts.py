"""What a check finds out about an environment, and the options that follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..options import Choice
from ..records.definitions import LARGEST_GOAL
from .evidence import Evidence


@dataclass(frozen=True)
class EnvironmentFacts:
    """What was found out about an environment.

    terminates_on_success: None: no success was seen, or some successes ended their episode and others did not.
    relabel_terminated: the option that ends relabelled episodes as real ones; None: compute_terminated is right, or
        nothing was seen.
    info_keys: entries of info that the functions of the environment need.
    exact_resets: whether a reset with the same seed gives the same observations.
    goal_columns: columns of the observation that hold the desired goal or change with it, to hide from the networks.
    largest_goal, goal_spread: the largest number in float64 goals, and how far they lie apart; 0 and 1 for other goals.
    needs_float64: whether compute_reward fails for goals that were rounded to float32.
    n_extra_rewards: steps whose reward has a part that compute_reward leaves out; 0 if it is another error.
    reward_range: the two values of the reward; infinite if it has others, also where `read_spec` saw two.
    """

    terminates_on_success: bool | None
    relabel_terminated: str | None
    info_keys: tuple[str, ...]
    exact_resets: bool
    goal_columns: tuple[int, ...]
    largest_goal: float
    goal_spread: float
    needs_float64: bool
    n_extra_rewards: int
    reward_range: tuple[float, float]

    def choices(self, can_remake: bool = False) -> list[Choice]:
        """Return the options of a run that follow from the facts. can_remake: whether new environments can be made."""
        ends = "end" if self.terminates_on_success else "do not end"
        is_coarse = self.largest_goal > LARGEST_GOAL * self.goal_spread
        dtype = "float64" if is_coarse or self.needs_float64 else None
        too_coarse = f"goals of up to {self.largest_goal:g} lie {self.goal_spread:g} apart, so float32 is too coarse"
        not_found = "compute_reward fails for goals that were rounded to float32"
        added = f"in {self.n_extra_rewards} steps the reward has a part that compute_reward leaves out"
        found: dict[str, tuple[Any, str]] = {
            "dtype": (dtype, not_found if self.needs_float64 else too_coarse),
            "relabel_terminated": (self.relabel_terminated, f"successes {ends} their episode, and so do relabelled ones"),
            "extra_reward": (self.n_extra_rewards > 0, added),
            "info_keys": (self.info_keys, "the functions of the environment read these entries of info"),
            "hidden_observation": (
                self.goal_columns,
                "these columns change with the desired goal, and relabelling keeps them",
            ),
        }
        choices = [Choice(name, *choice) for name, choice in found.items() if choice[0]]
        if can_remake:
            why = f"a reset {'equals' if self.exact_resets else 'does not equal'} a new environment"
            choices.append(Choice("remake_environment", not self.exact_resets, why))
        return choices


def facts_of(evidence: Evidence) -> EnvironmentFacts:
    """Return what the evidence says about an environment."""
    spec, terminates, is_right = evidence.spec, evidence.terminates_on_success, evidence.has_right_termination
    shows_success = np.isfinite(spec.reward_high) or evidence.success is not None
    needs_rule = terminates and not is_right and shows_success
    largest, spread = _extent_of_goals(evidence)
    return EnvironmentFacts(
        terminates_on_success=terminates,
        relabel_terminated="success" if needs_rule else "keep" if terminates is False and is_right is False else None,
        info_keys=evidence.info_keys,
        exact_resets=evidence.resets_are_exact,
        goal_columns=hideable_columns(evidence),
        largest_goal=largest,
        goal_spread=spread,
        needs_float64=evidence.reward.needs_float64,
        n_extra_rewards=len(evidence.other_rewards) if evidence.has_extra_reward else 0,
        reward_range=(spec.reward_low, spec.reward_high),
    )


def _extent_of_goals(evidence: Evidence) -> tuple[float, float]:
    """Return the largest number in float64 goals, and the largest difference of a number between goals; else 0 and 1."""
    if evidence.spec.goal.dtype != "float64":
        return 0.0, 1.0
    goals = np.concatenate([goals for episode in evidence.random for goals in episode.goals()[:2]])
    return float(np.abs(goals).max()), float(np.ptp(goals, axis=0).max())


def hideable_columns(evidence: Evidence) -> tuple[int, ...]:
    """Return the columns to hide: none if the observation is no flat array of floats, or has no others."""
    part, columns = evidence.spec.observation, evidence.goal_columns or ()
    return columns if len(part.shape) == 1 and part.dtype.startswith("float") and len(columns) < part.size else ()
