"""The checks of an environment. Each returns a level and a sentence that names its evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..records import OBSERVATION_KEYS, Array, ArraySpec
from ..records.symmetries import Symmetries
from .evidence import MAX_STEPS, Evidence
from .goal_env import unused_keys
from .goal_functions import read_success
from .symmetry_check import compare_rewards, compare_steps

Check = Callable[[Evidence], tuple[str, str]]
RARE = 0.1  # fraction of steps up to which another reward than compute_reward's is an addition, such as a penalty


def check_spaces(evidence: Evidence) -> tuple[str, str]:
    """Name shapes and dtypes, and the keys of the observation that are not used."""
    spec = evidence.spec
    parts = (("observation", spec.observation), ("goals", spec.goal), ("action", spec.action))
    sentence = ", ".join(f"{name} {part.shape} {part.dtype}" for name, part in parts)
    unused = ", ".join(unused_keys(evidence.env))
    if unused:
        return "warning", f"{sentence}. Not used: {unused}. Append them with observation_keys if the policy needs them"
    return "ok", sentence


def check_action_bounds(evidence: Evidence) -> tuple[str, str]:
    """Actions are scaled by their bounds, so these must be finite."""
    action = evidence.spec.action
    if action.is_bounded:
        return "ok", f"{min(action.low):g} to {max(action.high):g}"
    return "error", "not all are finite, so actions cannot be scaled. Use gymnasium.wrappers.RescaleAction"


def check_time_limit(evidence: Evidence) -> tuple[str, str]:
    """An episode should end after a known number of steps, and not later."""
    limit, longest = evidence.spec.max_episode_steps, max(map(len, evidence.random))
    if limit is None:
        return "warning", "none was found, so an episode may never end. Set max_episode_steps"
    if limit > MAX_STEPS:
        return "not seen", f"{limit} steps; only {longest} steps of an episode were played"
    if longest > limit:
        return "error", (
            f"an episode continued after {limit} steps, the limit that the environment names. Return truncated=True there, "
            f"or use gymnasium.wrappers.TimeLimit"
        )
    return "ok", f"{limit} steps; the longest of {len(evidence.random)} episodes had {longest}"


def check_observations(evidence: Evidence) -> tuple[str, str]:
    """Shape and finiteness are required. Another dtype or bound than declared is a warning."""
    spec, warning, count = evidence.spec, "", 0
    for key, part in zip(OBSERVATION_KEYS, (spec.observation, spec.goal, spec.goal), strict=True):
        for episode in evidence.random:
            for step, value in enumerate(episode.observations[key]):
                count += 1
                level, problem = _compare_with_spec(value, part)
                sentence = f"{key} at step {step} of the episode with seed {episode.seed} {problem}"
                if level == "error":
                    return level, sentence
                if level == "warning":
                    warning = warning or sentence
    if warning:
        return "warning", f"{warning}. Declare what is returned; values are cast"
    return "ok", f"{count} arrays have the declared shapes, dtypes and bounds"


def _compare_with_spec(value: Array, part: ArraySpec) -> tuple[str, str]:
    if value.shape != part.shape:
        return "error", f"has shape {value.shape}, but {part.shape} is declared"
    if value.dtype.kind not in "biuf" or not np.isfinite(value).all():
        return "error", f"is not finite: {value.tolist()}"
    low, high = part.bounds()
    outside = (value < low) | (value > high)
    if outside.any():
        return "warning", f"has the value {value[outside].flat[0]:g}, outside of its declared bounds"
    is_whole = value.dtype.kind in "biu" and part.dtype.startswith("int")  # any integer suits Discrete and MultiBinary
    is_same = value.dtype == part.dtype or is_whole
    return ("ok", "") if is_same else ("warning", f"is {value.dtype}, but {part.dtype} is declared")


def check_batches(evidence: Evidence) -> tuple[str, str]:
    """compute_reward should accept N goals at once."""
    if evidence.reward_fault:
        return "warning", evidence.reward_fault
    return "ok", f"{len(evidence.samples.achieved)} goals at once have the same finite rewards as one by one"


def check_reward_values(evidence: Evidence) -> tuple[str, str]:
    """The reward of a step must be compute_reward of the goals after that step."""
    computed, rewards = evidence.values(evidence.reward), evidence.step_rewards
    wrong = np.flatnonzero(~_close_to(computed, rewards))
    if not len(wrong):
        return "ok", f"compute_reward returns the rewards of all {len(rewards)} steps"
    first, worst = wrong[0], np.abs(computed - rewards)[wrong].max()
    sentence = (
        f"{evidence.step_name(first)} has the reward {rewards[first]:g}, but compute_reward returns {computed[first]:g}; "
        f"{len(wrong)} of {len(rewards)} steps differ, by up to {worst:g}. "
    )
    if len(wrong) <= RARE * len(rewards) and not _explaining_shift(evidence):
        return "warning", sentence + "What step adds to compute_reward is lost on relabelling, unless extra_reward keeps it"
    return "error", sentence + "Let step return what compute_reward returns"


def check_reward_timing(evidence: Evidence) -> tuple[str, str]:
    """The reward must belong to the state after the step, not to the one before it."""
    shift = _explaining_shift(evidence)
    if shift:
        state = {-1: "the state before the step", 1: "the state after the next step"}[shift]
        return "error", f"the rewards are those of {state}. Return compute_reward of the achieved_goal that step returns"
    at, before = (_rewards_at(evidence, shift) for shift in (0, -1))
    n_different = int((~_close_to(at, before)).sum())
    if n_different:
        return "ok", f"in {n_different} of {len(at)} steps, the state before the step would have another reward"
    return "not seen", f"no step of {len(at)} changed the reward, so a reward of the state before the step would not show"


def _explaining_shift(evidence: Evidence) -> int:
    """Return by how many steps achieved goals must be shifted to explain all rewards: -1, 1, or 0 if no shift does."""
    if _matches(evidence, 0):
        return 0
    return next((shift for shift in (-1, 1) if _matches(evidence, shift)), 0)


def _matches(evidence: Evidence, shift: int) -> bool:
    computed = _rewards_at(evidence, shift)
    rewards = [np.asarray(each.rewards)[: len(each) - max(shift, 0)] for each in evidence.episodes]
    return bool(_close_to(computed, np.concatenate(rewards)).all())


def _rewards_at(evidence: Evidence, shift: int) -> Array:
    """Return compute_reward of each step with the achieved goal before it (-1), after it (0) or one step later (1)."""
    computed = []
    for episode in evidence.episodes:
        steps = slice(0, len(episode) - max(shift, 0))
        _, desired, info = episode.goals()
        achieved = np.stack(episode.observations["achieved_goal"])[1 + shift :][steps]
        computed.append(evidence.reward(achieved, desired[steps], {key: values[steps] for key, values in info.items()}))
    return np.concatenate(computed).astype(np.float64)


def _close_to(first: Array, second: Array) -> Array:
    return np.isclose(first, second, rtol=1e-5, atol=1e-6)


def check_reward_inputs(evidence: Evidence) -> tuple[str, str]:
    """compute_reward must depend on its arguments only."""
    achieved, desired, info = evidence.random[0].goals()
    first, again = (np.asarray(evidence.reward(achieved, desired, info)) for _ in range(2))
    if not np.array_equal(first, again):
        worst = np.abs(first - again).max()
        return "error", f"compute_reward returns other values on a second call, by up to {worst:g}. It must not be random"
    highest = evidence.spec.reward_high
    same = np.asarray(evidence.reward(achieved, achieved.copy(), info), np.float64)
    if np.isfinite(highest) and (same != highest).any():
        return "error", (
            f"compute_reward returns {same.min():g} instead of {highest:g} if the desired goal is the achieved one. It "
            f"must use the desired_goal that it is given, not the environment's own"
        )
    if evidence.info_keys:
        keys = ", ".join(evidence.info_keys)
        return "warning", f"compute_reward needs these entries of info: {keys}. They must be stored: info_keys"
    return "ok", f"{len(first)} rewards are the same on a second call and without info"


def check_success(evidence: Evidence) -> tuple[str, str]:
    """Each step must report success, and success must have the highest reward."""
    infos, highest = [info for episode in evidence.episodes for info in episode.infos], evidence.spec.reward_high
    success = [read_success(info) for info in infos]
    if None in success:
        first = success.index(None)
        return "error", (
            f"{evidence.step_name(first)} has neither is_success nor success in its info, but {sorted(infos[first])}. The "
            f"success rate needs one of them"
        )
    n_wrong = int((np.asarray(success) != (evidence.step_rewards == highest)).sum())
    if n_wrong and np.isfinite(highest):
        return "warning", f"success and the reward {highest:g} disagree in {n_wrong} of {len(success)} steps"
    if not any(success):
        return "not seen", f"no success in {_extent(evidence)}"
    return "ok", f"reported at each step; {sum(map(bool, success))} successes in {_extent(evidence)}"


def check_termination(evidence: Evidence) -> tuple[str, str]:
    """Relabelled successes must end an episode exactly if real ones do."""
    level, sentence = _termination(evidence)
    fault = evidence.termination[1]
    return ("warning", f"{fault} As seen: {sentence}") if fault else (level, sentence)


def _termination(evidence: Evidence) -> tuple[str, str]:
    """Return what was seen of the terminations."""
    terminated, (function, _) = evidence.terminated, evidence.termination
    if function is not None:
        return _check_function(evidence, evidence.values(function))
    if evidence.terminates_on_success:
        return _check_success_rule(evidence)
    if (terminated & evidence.success).any():
        return "warning", "some successes end their episode and others do not, so relabelled successes cannot be terminated"
    n_others = int(terminated.sum())
    others = f"; {n_others} other steps did, which is kept on relabelling" if n_others else ""
    if evidence.success.any():
        return "ok", f"none of {int(evidence.success.sum())} successes ended its episode{others}"
    return "not seen", f"no success was seen, so relabelled successes do not end an episode{others}"


def _check_function(evidence: Evidence, computed: Array) -> tuple[str, str]:
    terminated = evidence.terminated
    wrong = np.flatnonzero(computed != terminated)
    if len(wrong):
        return "warning", (
            f"{evidence.step_name(wrong[0])} has terminated={bool(terminated[wrong[0]])}, but compute_terminated returns "
            f"the opposite; {len(wrong)} of {len(terminated)} steps differ. Other terminations are lost on relabelling"
        )
    level = "ok" if terminated.any() else "not seen"
    return (
        level,
        f"compute_terminated returns the termination of all {len(terminated)} steps, {int(terminated.sum())} of them",
    )


def _check_success_rule(evidence: Evidence) -> tuple[str, str]:
    n_successes, n_terminated = int(evidence.success.sum()), int(evidence.terminated.sum())
    sentence = f"{n_successes} of {n_successes} successes ended their episode, and there is no compute_terminated"
    if not np.isfinite(evidence.spec.reward_high):
        return "warning", (
            f"{sentence}. The reward does not show a success, so relabelled successes do not end an episode. Add "
            f"compute_terminated(achieved_goal, desired_goal, info)"
        )
    if n_terminated > n_successes:
        return "warning", (
            f"{sentence}. {n_terminated - n_successes} other steps ended one too, which is lost on relabelling. Add "
            f"compute_terminated(achieved_goal, desired_goal, info)"
        )
    return "ok", f"{sentence}. Relabelled successes do the same (relabel_terminated='success')"


def check_resets(evidence: Evidence) -> tuple[str, str]:
    """A reset with a seed should lead to the same episode."""
    first, again = evidence.random[0], evidence.replay
    if evidence.resets_are_exact:
        return "ok", f"a reset with the same seed leads to the same {len(again)} steps, bit by bit"
    columns = [(first.observations[key], again.observations[key]) for key in OBSERVATION_KEYS]
    pairs = [pair for column in columns for pair in zip(*column, strict=False)]
    worst = max(float(np.abs(np.subtract(a, b, dtype=np.float64)).max(initial=0)) for a, b in pairs)
    return "warning", (
        f"after a reset with the same seed, the same actions lead to other observations, by up to {worst:g}. The "
        f"environment is made anew for each episode, so that a run can be repeated"
    )


def check_desired_goal(evidence: Evidence) -> tuple[str, str]:
    """The desired goal may change within an episode, but usually does not."""
    for episode in evidence.random:
        goals = episode.observations["desired_goal"]
        changed = next((t for t, goal in enumerate(goals) if not np.array_equal(goal, goals[0])), None)
        if changed is not None:
            return "warning", f"changes at step {changed} with seed {episode.seed}. Each step keeps its own goal"
    return "ok", f"stays the same throughout {len(evidence.random)} episodes"


def check_symmetric_rewards(evidence: Evidence, symmetries: Sequence[str]) -> tuple[str, str]:
    """Transformed goals must have the same rewards."""
    goals = [episode.goals() for episode in evidence.random]
    return compare_rewards(evidence.reward, goals, Symmetries(symmetries, evidence.spec))


def check_symmetric_steps(evidence: Evidence, symmetries: Sequence[str]) -> tuple[str, str]:
    """Transformed actions must lead to transformed observations."""
    return compare_steps(evidence.env, Symmetries(symmetries, evidence.spec))


def _extent(evidence: Evidence) -> str:
    """Return what was played, and how goals were set."""
    n_steps, setter = sum(map(len, evidence.episodes)), evidence.goal_setter
    how = f"with goals set by {setter.name}" if setter else "with random actions, since the goal cannot be set"
    return f"{n_steps} steps of {len(evidence.episodes)} episodes, {how}"


CHECKS: Mapping[str, Check] = {
    "spaces": check_spaces,
    "action bounds": check_action_bounds,
    "time limit": check_time_limit,
    "observations": check_observations,
    "reward form": check_batches,
    "reward values": check_reward_values,
    "reward timing": check_reward_timing,
    "reward inputs": check_reward_inputs,
    "success": check_success,
    "termination": check_termination,
    "seeded resets": check_resets,
    "desired goal": check_desired_goal,
}
