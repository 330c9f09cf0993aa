"""The rules that hindsight-rl needs, each checked on a probe of an environment."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np

from ..records import OBSERVATION_KEYS, Array
from ..records.reward_scale import GuardedReward, is_close
from ..task_structure.categories import LARGEST_DISCRETE
from ..task_structure.symmetries import SymmetryGroup
from .goal_env import LIMIT_NAMES
from .goal_functions import read_success
from .probe import MAX_STEPS, SEEDS, START_SEEDS, Probe
from .random_play import RandomEpisode, play, play_actions
from .reset_rule import Answer, check_resets, listed
from .reward_rules import (
    check_batches,
    check_goal_dimensions,
    check_reward_inputs,
    check_reward_speed,
    check_reward_timing,
    check_reward_values,
)
from .wrappers import MOST_ACTIONS

LONG_STEPS = 1_000  # of an episode that shows whether an environment without a known time limit ends


def check_spaces(probe: Probe) -> Answer:
    """Name shapes and dtypes, and the keys of the observation that are not used."""
    parts = {"observation": probe.spec.observation, "goals": probe.spec.goal, "action": probe.spec.action}
    if large := [name for name in ("observation", "goals") if (parts[name].n_values or 0) > LARGEST_DISCRETE]:
        return "error", (
            f"{' and '.join(large)} with more than {LARGEST_DISCRETE} values are too large to be seen one-hot. Return the "
            f"binary digits, or numbers that say where a state lies, in a wrapper"
        )
    sentence = ", ".join(f"{name} {part.shape} {part.dtype}" for name, part in parts.items())
    declared: Any = probe.env.observation_space
    if unused := [key for key in declared if key not in OBSERVATION_KEYS]:
        return "warning", f"{sentence}. Not used: {', '.join(unused)}. Append them with observation_keys if they are needed"
    return "ok", sentence


def check_action_bounds(probe: Probe) -> Answer:
    """Actions are scaled by their bounds, so these must be finite and differ."""
    action = probe.spec.action
    if action.n_values is None and np.dtype(action.dtype).kind != "f":
        fix = f"Declare floats that step rounds, or MultiDiscrete if there are at most {MOST_ACTIONS:,} combinations"
        return "error", f"actions are arrays of {action.dtype}, which no agent returns. {fix}"
    low, high = action.bounds()
    if action.n_values is None and (low == high).any():
        empty = listed(np.flatnonzero(low == high).tolist())
        return "error", f"dimensions {empty} of the action have a single value. Leave them out in a gymnasium.ActionWrapper"
    if action.is_bounded:
        ranges = dict.fromkeys(f"{low:g} to {high:g}" for low, high in zip(action.low, action.high, strict=True))
        return "ok", listed(list(ranges))
    return (
        "error",
        "not all are finite, so actions cannot be scaled. Declare finite ones, or use gymnasium.wrappers.TransformAction",
    )


def check_time_limit(probe: Probe) -> Answer:
    """An episode should end after a known number of steps, and not later."""
    limit, longest = probe.spec.max_episode_steps, max(map(len, probe.random))
    if limit is None:
        fix = "Set max_episode_steps (--max-episode-steps N)"
        may_be_endless = longest == MAX_STEPS and not any(any(each.terminated) for each in probe.random)
        if may_be_endless and len(play(probe.env, SEEDS[0], LONG_STEPS)) == LONG_STEPS:
            return "error", f"none was found, and an episode did not end within {LONG_STEPS:,} steps. {fix}"
        return "warning", f"none was found; the longest of {len(probe.random)} episodes had {longest} steps. {fix}"
    if longest > limit:
        return "error", (
            f"an episode continued after {limit} steps. Return truncated=True there, set max_episode_steps={limit}, or "
            f"rename the attribute of this value ({', '.join(LIMIT_NAMES)}) if it means something else"
        )
    failed = [each for each in probe.random if each.truncated[-1] and not read_success(each.infos[-1])]
    early = [len(each) for each in failed if len(each) < (probe.spec.failure_limit or 0)]
    is_same = len(early) == len(probe.random) and len({*early}) == 1
    # two episodes may fail at the same step by chance
    if is_same and all(len(play(probe.env, seed, limit)) == early[0] for seed in START_SEEDS):
        return "warning", (
            f"{limit} steps, but all {len(early) + len(START_SEEDS)} episodes were truncated after {early[0]} steps. If "
            f"that is the time limit, set max_episode_steps={early[0]}: what is truncated before it without a success "
            f"counts as failed"
        )
    sentence = f"{limit} steps; the longest of {len(probe.random)} episodes had {longest}"
    if early:
        sentence += f"; truncated before it without a success, which counts as a failure: {len(early)}"
    return ("not seen", f"{sentence}; the check ends each at {MAX_STEPS}") if limit > MAX_STEPS else ("ok", sentence)


def check_observations(probe: Probe) -> Answer:
    """Shape and finiteness are required. Another dtype or bound than declared is a warning."""
    spaces: Any = probe.env.observation_space
    warning = ""
    for key, episode in itertools.product(OBSERVATION_KEYS, probe.random):
        for step, value in enumerate(episode.observations[key]):
            name = f"{key} at step {step} with seed {episode.seed}"
            if value.shape != spaces[key].shape:
                return "error", f"{name} has shape {value.shape}, but {spaces[key].shape} is declared"
            wanted = "finite" if value.dtype.kind in "biuf" else "an array of numbers"
            if wanted != "finite" or not np.isfinite(value).all():
                return "error", f"{name} is not {wanted}: {value.tolist()}"
            if not spaces[key].contains(value):
                warning = warning or f"{name} {_misfit(value, spaces[key])}"
    return ("warning", warning) if warning else ("ok", f"{sum(map(len, probe.random))} steps are in the declared spaces")


def _misfit(value: Array, space: Any) -> str:
    """Return how a value differs from its space, and how to fix it."""
    if isinstance(space, gymnasium.spaces.Box):
        outside = np.flatnonzero((value < space.low) | (value > space.high))
        if len(outside):
            i, low, high = outside[0], space.low.flat[outside[0]], space.high.flat[outside[0]]
            return f"has {value.flat[i]:g} in column {i}, outside its bounds {low:g} to {high:g}. Correct the bounds"
        if value.dtype != space.dtype:
            fix = f"Return {space.dtype}, or declare the other"
            return f"is {value.dtype}, but {space.dtype} is declared; it is cast. {fix}"
    return f"is {value.dtype} {value.tolist()}, which is not in {space}; it is cast"


def check_success(probe: Probe) -> Answer:
    """Each step must report success, and success must have the highest reward."""
    infos, highest = [info for episode in probe.episodes for info in episode.infos], probe.spec.reward_high
    success = [read_success(info) for info in infos]
    if None in success:
        i = success.index(None)
        where = (
            f" where compute_reward returns {highest:g}" if np.isfinite(highest) else " if the goal is achieved, else False"
        )
        fix = f"Let step set info['is_success'] to True{where}"
        return (
            "error",
            f"the info of {probe.step_name(i)} needs True or False as is_success or success, but has only "
            f"{sorted(key for key, value in infos[i].items() if value is not None)}. {fix}",
        )
    if probe.success_fault:
        return "warning", probe.success_fault
    if probe.success and (n_other := int((probe.values(probe.success) != np.asarray(success)).sum())):
        return "error", f"compute_success disagrees with the info in {n_other} of {len(success)} steps. Return the same"
    n_wrong = int((np.asarray(success) != (probe.rewards == highest)).sum())
    if n_wrong and np.isfinite(highest):
        return "warning", f"success and the reward {highest:g} disagree in {n_wrong} of {len(success)} steps"
    setter = probe.goal_setter
    how = f"with goals set by {setter.name}" if setter else f"with random actions, since {_why_not_set(probe)}"
    n_success, n_episodes = sum(map(bool, success)), len(probe.episodes)
    seen = "ok" if n_success else "not seen"
    return seen, f"{n_success} successes in {len(success)} steps of {n_episodes} episodes, {how}{_already_achieved(probe)}"


def _already_achieved(probe: Probe) -> str:
    """Return how many resets have a desired goal that is achieved already, as the end of a sentence; "" if none has."""
    episodes = [each for each in (*probe.random, *probe.search, *probe.starts) if each not in probe.with_set_goal]
    achieved, desired = (np.stack([each.observations[key][0] for each in episodes]) for key in OBSERVATION_KEYS[1:])
    try:
        flags = probe.success(achieved, desired) if probe.success else probe.reward(achieved, desired)
    except Exception:  # the function needs the info of a step
        return ""
    n_achieved = int((flags == (True if probe.success else probe.spec.reward_high)).sum())
    return f"; after {n_achieved} of {len(episodes)} resets, the goal is achieved already" if n_achieved else ""


def check_termination(probe: Probe) -> Answer:
    """Relabelled successes must end an episode exactly if real ones do."""
    terminated, success = probe.is_terminated, probe.is_success
    n_success, n_ended, n_others = (int(each.sum()) for each in (success, success & terminated, terminated & ~success))
    seen = f"{n_ended} of {n_success} successes and {n_others} other steps ended their episode"
    if probe.terminated_fault:
        return "warning", f"{seen}. {probe.terminated_fault}"
    if probe.has_right_termination is False:
        return "warning", f"{seen}, but compute_terminated disagrees"
    agrees = probe.has_right_termination and not n_others
    if 0 < n_ended < n_success and not agrees:
        return "warning", f"{seen}, so it is not clear which relabelled successes do"
    if n_others and _stops_costs(probe, terminated & ~success):
        return "warning", (
            f"{seen}. Steps without success have negative rewards, which such an ending stops: to fail early has a higher "
            f"return than to go on. `train` and HER count the steps that would follow as failures, too; for other "
            f"learners, subtract a penalty there"
        )
    if agrees or not n_ended:
        return "ok" if n_success else "not seen", f"{seen}{', as compute_terminated says' if agrees else ''}"
    if not np.isfinite(probe.spec.reward_high) and probe.terminated is None:
        rule = "`train` and HER find the least reward of a success in their episodes; other buffers need success_reward"
        return "ok", f"{seen}. {rule}"
    return "ok", f"{seen}; relabelled successes do too{', and other endings stay' if n_others else ''}"


def _stops_costs(probe: Probe, endings: Array) -> bool:
    """Return whether steps without success have a negative reward, and some of those that end an episode have no lower one.

    endings: of all steps, those without success that end their episode. One at the time limit stops nothing.
    """
    low, limit = probe.spec.reward_low, probe.spec.max_episode_steps
    if not np.isfinite(low) or low >= 0 or probe.spec.reward_high > 0:
        return False
    early = endings & np.concatenate([np.arange(1, len(episode) + 1) != limit for episode in probe.episodes])
    return bool(is_close(probe.rewards[early], np.full(int(early.sum()), low)).any())


def check_goal_columns(probe: Probe) -> Answer:
    """The observation should not depend on the desired goal, because relabelling changes the goal only."""
    columns = probe.goal_columns
    why_not_seen = "the achieved goal changes with it" if probe.equals_first(probe.replay) else "resets are not exact"
    why = why_not_seen if probe.goal_setter else _why_not_set(probe)
    if columns is None:
        hidden = "whether one changes with it in another way does not show"
        return "not seen", f"no column holds the desired goal; {hidden}, since {why}"
    if not columns:
        return "ok", "no column of the observation changes with the desired goal"
    changing, them = (
        (f"columns {listed(columns)} change", "them") if len(columns) > 1 else (f"column {columns[0]} changes", "it")
    )
    fix = f"`train` and HER hide {them} from the networks" if probe.hideable_columns else f"Leave {them} out"
    others = "" if probe.with_goals else f". Whether others do in another way does not show, since {why}"
    return (
        "warning",
        f"{changing} with the desired goal, but relabelling does not change {them}. {fix}{others}",
    )


def _why_not_set(probe: Probe) -> str:
    """Return why the probe could not set goals."""
    if _has_one_goal(probe):
        return "each reset has the same desired goal"
    return "the goal cannot be set: reset has no option 'goal', and no attribute that equals it changes goal and rewards"


def _has_one_goal(probe: Probe) -> bool:
    """Return whether each reset drew the same desired goal."""
    goals = [episode.observations["desired_goal"][0] for episode in (*probe.random, *probe.starts)]
    return all(np.array_equal(goals[0], goal) for goal in goals)


def check_desired_goal(probe: Probe) -> Answer:
    """The desired goal must not take part in the dynamics. It may change within an episode, but usually does not."""
    if effect := probe.goal_effect:
        return "warning", (
            f"with another desired goal, the same actions lead elsewhere: within {effect.n_steps} steps, achieved goals "
            f"differ by up to {effect.gap:.2g} and change by up to {effect.extent:.2g}. Relabelling only changes the goal, "
            f"so its transitions are wrong. Let step ignore the desired goal, or train with --n-sampled-goal 0"
        )
    episodes = (*probe.random, *probe.with_set_goal)
    if changed := next(((episode, step) for episode in episodes if (step := _first_change(episode))), None):
        return _goal_that_changes(*changed, probe)
    if _has_one_goal(probe):
        n_resets = len(probe.random) + len(probe.starts)
        return "warning", f"is the same after {n_resets} resets. Draw it in reset, unless the task has a single goal"
    return "ok", f"stays the same throughout {len(probe.random)} episodes"


def _first_change(episode: RandomEpisode) -> int | None:
    """Return the first step after which the desired goal is another one; None if it stays the same."""
    goals = episode.observations["desired_goal"]
    return next((step for step, goal in enumerate(goals) if not np.array_equal(goal, goals[0])), None)


def _goal_that_changes(episode: RandomEpisode, step: int, probe: Probe) -> Answer:
    """Return what it means that the desired goal changes at a step."""
    achieved = np.concatenate([each.observations["achieved_goal"] for each in probe.random])
    if (achieved == achieved[0]).all() and _depend_on_actions(probe, probe.random[0]):
        return "error", (
            "changes while the achieved goal is the same in all steps: goals are relative to the body, so no other goal "
            "can replace them. Return position and goal in one fixed frame, and the vector between them in the observation"
        )
    sentence = f"changes at step {step} with seed {episode.seed}"
    if read_success(episode.infos[step - 1]):
        return "warning", (
            f"{sentence}, where it was reached. Success counts in the last step alone, so a policy that reaches many goals "
            f"seems to fail. End the episode there, or keep the goal"
        )
    return "warning", f"{sentence}. Each step keeps its own goal"


def check_symmetries(probe: Probe, symmetries: Sequence[str]) -> Answer:
    """Transformed goals must have the same rewards. Desired goals, and goals achieved one step before, are transformed.

    Observations and actions are not checked: that would need a simulation from a transformed state.
    """
    group, ask = SymmetryGroup(symmetries, probe.spec), GuardedReward(probe.reward)
    n_wrong = n_rewards = 0
    for episode, element in itertools.product(probe.random, range(1, len(group))):
        achieved, desired, info = episode.goals()
        for goal in (desired, np.roll(achieved, 1, axis=0)):
            other = [group.transformed("goal", values, element) for values in (achieved, goal)]
            found = ask(other[0], other[1], info)
            if found is None:
                return "not seen", "compute_reward cannot answer for transformed goals"
            n_wrong += int((~np.isclose(found, probe.reward(achieved, goal, info))).sum())
            n_rewards += len(found)
    if n_wrong:
        return "error", f"{n_wrong} of {n_rewards} rewards differ for transformed goals. Correct or remove the symmetries"
    same = f"{n_rewards} rewards are the same under the {len(group)} elements of the group"
    return "ok", f"{same}; observations and actions were not checked"


def _depend_on_actions(probe: Probe, episode: RandomEpisode) -> bool:
    """Return whether the desired goals of an episode are others if its first action is repeated instead."""
    again = play_actions(probe.env, episode.seed, [episode.actions[0]] * len(episode))
    goals, others = (each.observations["desired_goal"] for each in (episode, again))
    return any(not np.array_equal(goal, other) for goal, other in zip(goals, others, strict=False))


RESETS = "seeded resets"
CHECKS: Mapping[str, Callable[..., Answer]] = {
    "spaces": check_spaces,
    "action bounds": check_action_bounds,
    "time limit": check_time_limit,
    "observations": check_observations,
    "reward form": check_batches,
    "reward speed": check_reward_speed,
    "reward values": check_reward_values,
    "reward timing": check_reward_timing,
    "reward inputs": check_reward_inputs,
    "goal dimensions": check_goal_dimensions,
    "success": check_success,
    "termination": check_termination,
    RESETS: check_resets,
    "desired goal": check_desired_goal,
    "goal columns": check_goal_columns,
}
