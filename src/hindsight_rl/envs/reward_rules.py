"""The rules for rewards, each checked on a probe of an environment."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from ..records.info_keys import info_key
from ..records.reward_scale import is_close
from .goal_functions import SUCCESS_KEYS
from .probe import Probe
from .reset_rule import Answer, listed

TIMED_GOALS, SLOW_REWARD = 256, 5e-3  # goals of a batch, and the seconds from which its rewards are slow
RECOMPUTE = "train on compute_reward instead: --reward recompute, or reward='recompute'"


def check_batches(probe: Probe) -> Answer:
    """compute_reward should accept N goals at once."""
    if probe.reward_fault:
        return "warning", probe.reward_fault
    forms = {"arrays": "", "list": "; it gets a list of infos", "objects": "; it gets an array of infos"}
    infos = forms[probe.reward.form.infos]
    return "ok", f"a batch of goals has the same finite rewards as single goals{infos}"


def check_reward_speed(probe: Probe, clock: Callable[[], float] = time.process_time) -> Answer:
    """compute_reward is called for every batch of an update. The fastest of three counts, in time of the processor.

    Most goals of a batch are achieved ones. Of those near to each other a reward may take longer.
    """
    achieved, _, info = probe.random[0].goals()
    rows = np.arange(TIMED_GOALS) % len(achieved)
    arguments = achieved[rows], np.roll(achieved, -1, axis=0)[rows], {key: values[rows] for key, values in info.items()}
    seconds = []
    for _ in range(3):
        began = clock()
        probe.reward(*arguments)
        seconds.append(clock() - began)
    sentence = f"compute_reward takes {1000 * min(seconds):.2g} ms for a batch of {TIMED_GOALS} goals"
    if min(seconds) < SLOW_REWARD:
        return "ok", sentence
    return "warning", f"{sentence}, longer than an update of a small network. Vectorize it with NumPy"


def check_reward_values(probe: Probe) -> Answer:
    """The reward of a step must be compute_reward of the goals after that step."""
    computed, rewards = probe.values(probe.reward), probe.step_rewards
    wrong = np.flatnonzero(~is_close(computed, rewards))
    if not len(wrong):
        return "ok", f"compute_reward returns the rewards of all {len(rewards)} steps"
    first, worst = int(wrong[0]), np.abs(computed - rewards)[wrong].max()
    sentence = (
        f"{probe.step_name(first)} has the reward {rewards[first]:g}, but compute_reward returns {computed[first]:g}; "
        f"{len(wrong)} of {len(rewards)} steps differ, by up to {worst:g}. "
    )
    if probe.recomputes_rewards:
        return "ok", f"{sentence}The rewards of compute_reward are used"
    if probe.is_success[wrong].all() or (probe.has_extra_reward and not _is_extra(probe)):
        return "warning", (
            f"{sentence}Relabelled goals have the rewards of compute_reward, so they succeed elsewhere, or lack a bonus. "
            f"Let step return what compute_reward returns, or {RECOMPUTE}"
        )
    if needs_extra_reward(probe):
        kept = "`train`, HER and make_buffer add it to relabelled rewards too; other buffers need extra_reward=True"
        return "ok", sentence + kept
    if probe.has_extra_reward:
        lost = "Relabelled rewards lack this part. extra_reward=True adds it, but a large penalty hides the goals"
        return "ok", sentence + lost
    return "error", f"{sentence}Let step return what compute_reward returns, or {RECOMPUTE}"


def needs_extra_reward(probe: Probe) -> bool:
    """Whether relabelled rewards need the part of a reward that compute_reward leaves out.

    Where rewards have two values, an episode that ends without a success costs as much as one that fails forever. Beside a
    further penalty of 20 or 100, goals were hardly learned.
    """
    return probe.has_extra_reward and not np.isfinite(probe.spec.reward_high) and _is_extra(probe)


def _is_extra(probe: Probe) -> bool:
    """Return whether rewards that differ from compute_reward's do so for another reason than the goal, as a fall.

    A bonus of a success belongs to one goal, and so does one of the two values of a sparse reward.
    """
    others, spec = probe.other_rewards, probe.spec
    rewards = probe.rewards[others]
    is_value = np.isin(rewards, (spec.reward_low, spec.reward_high)) & np.isfinite(spec.reward_high)
    return not (is_value | probe.is_success[others]).any()


def check_reward_timing(probe: Probe) -> Answer:
    """The reward must belong to the state after the step, not to the one before it."""
    if shift := probe.reward_shift:
        state = {-1: "the state before the step", 1: "the state after the next step"}[shift]
        fix = f"Return compute_reward of the achieved_goal that step returns, or {RECOMPUTE}"
        return "error", f"the rewards are those of {state}. {fix}"
    at, before = (probe.values(probe.reward, shift) for shift in (0, -1))
    if n_different := int((~is_close(at, before)).sum()):
        return "ok", f"in {n_different} of {len(at)} steps, the state before the step would have another reward"
    return "not seen", f"no step of {len(at)} changed the reward, so a reward of the state before the step would not show"


def check_reward_inputs(probe: Probe) -> Answer:
    """compute_reward must depend on its arguments only, and must be highest for a goal that is achieved."""
    achieved, desired, info = probe.random[0].goals()
    highest = probe.spec.reward_high
    same = probe.reward(achieved, achieved.copy(), info)
    others = np.stack([probe.reward(achieved, goal, info) for goal in (desired, np.roll(achieved, 1, axis=0))])
    success, rewards = probe.is_success, probe.rewards
    has_both = 0 < success.sum() < len(success)
    if has_both and rewards[success].max() < rewards[~success].min():
        return "error", "steps with success have lower rewards than the others. Is the sign of the reward wrong?"
    is_lower = ~is_close(same, np.full_like(same, highest)) if np.isfinite(highest) else np.zeros(len(same), np.bool_)
    if is_lower.any() and is_close(others, same).all():
        return "error", (
            f"compute_reward returns {same.min():g} instead of {highest:g} if the desired goal is the achieved one. It "
            f"must use the desired_goal that it is given, not the environment's own"
        )
    if probe.rewards_differ:
        return "error", (
            "after further resets, compute_reward returns other rewards for the same goals. It must depend on its "
            "arguments only, since rewards of stored steps are computed later. Put what else it needs into info"
        )
    if has_both:
        computed = probe.values(probe.reward)
        best, least = computed[success].max(), computed[~success].min()
        success_ends = probe.terminates_on_success and (probe.success or probe.has_right_termination)
        if best <= least and not success_ends:  # with -1 for every step, a known end is enough to learn from
            return "error", (
                f"compute_reward returns {best:g} for {success.sum()} successes, and no less than {least:g} for the other "
                f"{(~success).sum()} steps, so no relabelled goal is a success. Return a higher reward for a goal that is "
                f"achieved, such as 0 instead of -1"
            )
    if is_lower.any():
        return "warning", (
            f"compute_reward(x, x) is {same.min():g} instead of {highest:g} for {is_lower.sum()} of {len(same)} achieved "
            f"goals, so goals that are relabelled with them make no success"
        )
    if (is_worse := (others > same) & ~is_close(others, same)).any():
        goal, i = np.argwhere(is_worse)[0]
        return "warning", (
            f"compute_reward(x, x) is {same[i]:g} for an achieved goal x, but {others[goal, i]:g} for another desired goal "
            f"of the same step. It should be highest for the goal that is achieved, since goals are relabelled with it"
        )
    if is_close(others, same).all() and not success.any():
        return "warning", (
            f"compute_reward(x, x) is {same[0]:g}, as is the reward of every other goal that was tried, and no step was a "
            f"success. If so, no relabelled goal is ever a success: compute_reward(x, x) should be the highest reward"
        )
    n_lower = int((~is_close(others, same)).sum())
    compared = f"compute_reward(x, x) is higher than the reward of {n_lower} of {others.size} other goals, and never lower"
    return "ok" if n_lower else "not seen", compared


def check_goal_dimensions(probe: Probe) -> Answer:
    """Each dimension of the goal should matter to the reward, as relabelled goals ask for all of them."""
    unused, goal = probe.unused_goal, probe.spec.goal
    if unused is None:
        return "not seen", "compute_reward cannot answer for goals that the environment did not produce"
    if len(unused) == goal.size:
        return "not seen", "no reward changed, whichever dimension did"
    if unused:
        return "ok", (
            f"no reward depends on dimensions {listed(unused)} of the desired goal. `train` shows the achieved goal there "
            f"to its networks. For a learner of your own leave them out of both goals: relabelling asks for all dimensions"
        )
    if len(goal.shape) == 1 and np.dtype(goal.dtype).kind == "f":
        return "ok", "rewards depend on each dimension"
    return "ok", f"goals of shape {goal.shape} and {goal.dtype} are taken as a whole"


def check_info_keys(probe: Probe, given: Sequence[str]) -> Answer:
    """The entries of info that the functions read must be kept with each step. Without given keys, those are kept."""
    numeric = [info_key(key, values.shape[1:]) for key, values in probe.random[0].goals()[2].items()]
    if unknown := [key for key in given if key not in numeric]:
        return "error", f"info has no numeric entry {unknown[0]!r} at every step. It has: {', '.join(numeric) or 'none'}"
    if given and (missing := [key for key, is_needed in probe.info_keys.items() if is_needed and key not in given]):
        return "error", f"the functions of the environment need {', '.join(missing)} too"
    if not (needed := tuple(probe.info_keys)):
        return "ok", f"{len(probe.random[0])} rewards are the same without info"
    read = f"the functions of the environment read {', '.join(needed)}"
    if own := [key for key in needed if key.partition("[")[0] in SUCCESS_KEYS]:
        return "error", (
            f"{read}, but {own[0]} says whether a step reached its own goal. Relabelled goals are others: compare "
            f"achieved_goal with the desired_goal that is given"
        )
    return "ok", f"{read}. `train` and HER keep it; your own buffer needs info_keys={needed}"
