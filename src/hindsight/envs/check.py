"""Check whether an environment keeps the rules that hindsight relies on, by playing a few episodes."""

from __future__ import annotations

import functools
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import GoalEnvError, MissingExtraError, OptionError
from ..records import OBSERVATION_KEYS, Array, ArraySpec, GoalSpec
from ..records.symmetries import Symmetries
from .goal_env import EnvSource, make_env, read_spec
from .goal_functions import GoalFunction, find_reward, find_terminated, own_function, read_success, sample_goals
from .random_play import Environment, RandomEpisode, name_of, play_random_episode, random_state_kept
from .symmetry_check import compare_rewards, compare_steps

MAX_STEPS = 300  # of each of the two episodes
REPLAYED_STEPS = 100  # of the first episode, played again


@dataclass(frozen=True)
class Finding:
    """The result of one check. level: "ok", "warning" (works, with a loss) or "error" (learning would go wrong)."""

    level: str
    name: str
    sentence: str


@dataclass(frozen=True)
class CheckReport:
    """The findings about an environment. `str(report)` is a table for a terminal."""

    env: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not self.of("error")

    def of(self, level: str) -> list[Finding]:
        """Return the findings of one level."""
        return [finding for finding in self.findings if finding.level == level]

    def __str__(self) -> str:
        lines = [f"  {f.level:<8} {f.name:<18} {f.sentence}" for f in self.findings]
        errors, warnings = len(self.of("error")), len(self.of("warning"))
        verdict = "ready for hindsight" if self.ok else "not ready for hindsight"
        return "\n".join([self.env, *lines, f"{self.env} is {verdict}: errors {errors}, warnings {warnings}"])


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the checks look at.

    episodes: two, of random actions. replay: the first steps of the first one, played again.
    reward, terminated: the environment's functions of N goals. terminated_fault: what is wrong with the latter.
    """

    env: Environment
    spec: GoalSpec
    episodes: list[RandomEpisode]
    replay: RandomEpisode
    reward: GoalFunction
    terminated: GoalFunction | None
    terminated_fault: str

    @property
    def step_rewards(self) -> Array:
        """The reward of each step of each episode."""
        return np.concatenate([episode.rewards for episode in self.episodes])

    def values(self, function: GoalFunction) -> Array:
        """Return a function's value for the goals of each step."""
        return np.concatenate([np.asarray(function(*each.goals()), np.float64) for each in self.episodes])

    def step_name(self, i: int | np.integer[Any]) -> str:
        """Return the name of step i of all episodes."""
        return [f"step {t + 1} with seed {each.seed}" for each in self.episodes for t in range(len(each))][i]


def check_goal_env(
    env: EnvSource, env_options: Mapping[str, Any] | None = None, symmetries: Sequence[str] = ()
) -> CheckReport:
    """Return what an environment does right and wrong, found by playing two seeded random episodes.

    env, env_options: as for `make_goal_env`. An environment that exists is reset; reset it again before the next step.
    symmetries: to check too, on rewards and, where that is possible, on steps; see `hindsight.records.symmetries`.
    Raises only OptionError and MissingExtraError, for wrong arguments. Everything that the environment does wrong is in
    the report.
    """
    try:
        made = make_env(env, None, env_options)
    except (OptionError, MissingExtraError):
        raise
    except Exception as problem:
        return CheckReport(str(env), (Finding("error", "making", f"{type(problem).__name__}: {problem}"),))
    try:
        with random_state_kept(made):
            return CheckReport(name_of(made), tuple(_findings(made, symmetries)))
    finally:
        if made is not env:
            made.close()


def _findings(env: Environment, symmetries: Sequence[str]) -> Iterator[Finding]:
    """Play the environment and yield what is found. A failure in a step that others need ends the check."""
    part = "spaces"
    try:
        spec = read_spec(env)
        yield from _spec_findings(spec)
        part = "episodes"
        episodes, replay = [play_random_episode(env, seed, MAX_STEPS) for seed in (1, 2)], _replay(env)
        yield _run("observations", functools.partial(_observations, spec, episodes))
        samples, part = sample_goals(env), "reward form"
        reward, fault = find_reward(env, samples)
    except GoalEnvError as problem:
        yield Finding("error", part, str(problem))
        return
    yield Finding("warning" if fault else "ok", part, fault or "takes N goals at once and returns N finite numbers")
    evidence = Evidence(env, spec, episodes, replay, reward, *find_terminated(env, samples))
    for name, check in CHECKS.items():
        yield _run(name, functools.partial(check, evidence))
    if symmetries:
        yield _run("symmetric rewards", lambda: _symmetric_rewards(evidence, symmetries))
        yield _run("symmetric steps", lambda: compare_steps(env, Symmetries(symmetries, spec)))


def _replay(env: Environment) -> RandomEpisode:
    return play_random_episode(env, 1, REPLAYED_STEPS)


def _run(name: str, check: Callable[[], tuple[str, str]]) -> Finding:
    try:
        level, sentence = check()
        return Finding(level, name, sentence)
    except Exception as problem:
        return Finding("error", name, f"could not be checked ({type(problem).__name__}: {problem})")


def _spec_findings(spec: GoalSpec) -> Iterator[Finding]:
    """Yield what is known before anything is played."""
    action, limit = spec.action, spec.max_episode_steps
    parts = (("observation", spec.observation), ("goals", spec.goal), ("action", action))
    yield Finding("ok", "spaces", ", ".join(f"{name} {part.shape} {part.dtype}" for name, part in parts))
    if action.is_bounded:
        yield Finding("ok", "action bounds", f"{min(action.low):g} to {max(action.high):g}")
    else:
        sentence = "not all are finite, so actions cannot be scaled. Use gymnasium.wrappers.RescaleAction"
        yield Finding("error", "action bounds", sentence)
    if limit is not None:
        yield Finding("ok", "time limit", f"{limit} steps")
    else:
        sentence = "none was found, so an episode may never end. Use gymnasium.wrappers.TimeLimit or max_episode_steps"
        yield Finding("warning", "time limit", sentence)


def _observations(spec: GoalSpec, episodes: list[RandomEpisode]) -> tuple[str, str]:
    """Shape and finiteness are required; another dtype or bound than declared is a warning."""
    warning = ""
    for key, part in zip(OBSERVATION_KEYS, (spec.observation, spec.goal, spec.goal), strict=True):
        for episode in episodes:
            for step, value in enumerate(episode.observations[key]):
                level, problem = _compare_with_spec(value, part)
                sentence = f"{key} at step {step} of the episode with seed {episode.seed} {problem}"
                if level == "error":
                    return level, sentence
                if level == "warning":
                    warning = warning or sentence
    return ("warning", f"{warning}. Declare what is returned; values are cast") if warning else ("ok", "as declared")


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


def _reward_values(evidence: Evidence) -> tuple[str, str]:
    computed, rewards = evidence.values(evidence.reward), evidence.step_rewards
    wrong = np.flatnonzero(~np.isclose(computed, rewards, rtol=1e-5, atol=1e-6))
    if not len(wrong):
        return "ok", f"compute_reward returns the rewards of all {len(rewards)} steps"
    first, worst = wrong[0], np.abs(computed - rewards)[wrong].max()
    sentence = (
        f"{evidence.step_name(first)} has the reward {rewards[first]:g}, but compute_reward returns {computed[first]:g}; "
        f"{len(wrong)} of {len(rewards)} steps differ, by up to {worst:g}. "
    )
    if len(wrong) <= 0.1 * len(rewards):
        return "warning", sentence + "What step adds to compute_reward is lost on relabelling, unless extra_reward keeps it"
    return "error", sentence + "Let step return what compute_reward returns"


def _reward_inputs(evidence: Evidence) -> tuple[str, str]:
    achieved, desired, info = evidence.episodes[0].goals()
    first, again = (np.asarray(evidence.reward(achieved, desired, info)) for _ in range(2))
    if not np.array_equal(first, again):
        worst = np.abs(first - again).max()
        return "error", f"compute_reward returns other values on a second call, by up to {worst:g}. It must not be random"
    try:
        without = np.asarray(evidence.reward(achieved, desired, {}))
    except Exception:  # it needs the info
        without = np.full(len(first), np.nan)
    if not np.array_equal(first, without):
        keys = ", ".join(_info_keys(evidence, achieved[0], desired[0])) or "unknown keys"
        return "warning", f"compute_reward reads the info ({keys}). Name these keys as info_keys, so that they are stored"
    highest = evidence.spec.reward_high
    same = np.asarray(evidence.reward(achieved, achieved.copy(), info), np.float64)
    if np.isfinite(highest) and (same != highest).any():
        return "error", (
            f"compute_reward returns {same.min():g} instead of {highest:g} if the desired goal is the achieved one. It "
            f"must use the desired_goal that it is given, not the environment's own"
        )
    return "ok", "compute_reward depends on the two goals only"


def _info_keys(evidence: Evidence, achieved: Array, desired: Array) -> list[str]:
    """Return the keys of info that compute_reward reads."""
    compute, keys = own_function(evidence.env, "compute_reward"), []

    class Recorder(UserDict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            keys.append(key)
            return super().__getitem__(key)

    if compute is not None:
        compute(achieved, desired, Recorder(evidence.episodes[0].infos[0]))
    return sorted(set(keys))


def _success(evidence: Evidence) -> tuple[str, str]:
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
    return "ok", f"reported at each of {len(success)} steps"


def _terminated(evidence: Evidence) -> tuple[str, str]:
    terminated = np.concatenate([episode.terminated for episode in evidence.episodes])
    if evidence.terminated_fault:
        return "warning", evidence.terminated_fault
    if evidence.terminated is None and terminated.any():
        return "warning", (
            f"{evidence.step_name(terminated.argmax())} is terminated, and there is no compute_terminated, so the "
            f"termination of relabelled steps cannot be computed"
        )
    if evidence.terminated is None:
        return "ok", "no goal ends an episode"
    wrong = np.flatnonzero(evidence.values(evidence.terminated) != terminated)
    if not len(wrong):
        return "ok", f"compute_terminated takes N goals at once and returns the terminations of all {len(terminated)} steps"
    return "warning", (
        f"{evidence.step_name(wrong[0])} has terminated={bool(terminated[wrong[0]])}, but compute_terminated returns the "
        f"opposite; {len(wrong)} of {len(terminated)} steps differ. Other terminations are lost on relabelling"
    )


def _resets(evidence: Evidence) -> tuple[str, str]:
    first, again = evidence.episodes[0], evidence.replay
    if first.to_bytes()[: len(again) + 1] == again.to_bytes():
        return "ok", f"a reset with the same seed leads to the same {len(again)} steps, bit by bit"
    columns = [(first.observations[key], again.observations[key]) for key in OBSERVATION_KEYS]
    pairs = [pair for column in columns for pair in zip(*column, strict=False)]
    worst = max(float(np.abs(np.subtract(a, b, dtype=np.float64)).max(initial=0)) for a, b in pairs)
    return "warning", (
        f"after a reset with the same seed, the same actions lead to other observations, by up to {worst:g}. The "
        f"environment is made anew for each episode, so that a run can be repeated"
    )


def _goal_constant(evidence: Evidence) -> tuple[str, str]:
    for episode in evidence.episodes:
        goals = episode.observations["desired_goal"]
        changed = next((t for t, goal in enumerate(goals) if not np.array_equal(goal, goals[0])), None)
        if changed is not None:
            return "warning", f"changes at step {changed} with seed {episode.seed}. Each step keeps its own goal"
    return "ok", "stays the same throughout an episode"


def _episode_end(evidence: Evidence) -> tuple[str, str]:
    limit, longest = evidence.spec.max_episode_steps, max(map(len, evidence.episodes))
    if limit is None or limit > MAX_STEPS or longest <= limit:
        return "ok", f"the longest of {len(evidence.episodes)} episodes had {longest} steps"
    return "error", (
        f"an episode continued after {limit} steps, the limit that the environment names. Return truncated=True there, or "
        f"use gymnasium.wrappers.TimeLimit"
    )


def _symmetric_rewards(evidence: Evidence, symmetries: Sequence[str]) -> tuple[str, str]:
    goals = [episode.goals() for episode in evidence.episodes]
    return compare_rewards(evidence.reward, goals, Symmetries(symmetries, evidence.spec))


CHECKS: Mapping[str, Callable[[Evidence], tuple[str, str]]] = {
    "reward values": _reward_values,
    "reward inputs": _reward_inputs,
    "success": _success,
    "compute_terminated": _terminated,
    "seeded resets": _resets,
    "desired goal": _goal_constant,
    "episode end": _episode_end,
}
