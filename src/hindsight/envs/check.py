"""Whether an environment keeps the promises that hindsight rests on: a few episodes are played and compared with them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import GoalEnvError
from ..records import OBSERVATION_KEYS, Array, ArraySpec, GoalSpec
from .probe import (
    Environment,
    GoalFunction,
    Played,
    Probe,
    measured_reward,
    measured_terminated,
    name_of,
    own_function,
    play,
    probe,
    random_state_kept,
    read_success,
)

MAX_STEPS = 300  # of each of the two episodes that are played
MAX_REPLAYED = 100  # of the first one again


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. level: "ok", "warning" (works, at a price) or "error" (learning would go wrong)."""

    level: str
    name: str
    sentence: str


@dataclass(frozen=True)
class CheckReport:
    """What was found out about an environment, in the order in which it was looked at; `str()` is made for a terminal."""

    env: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is an error."""
        return not self.of("error")

    def of(self, level: str) -> list[Finding]:
        """The findings of one level."""
        return [f for f in self.findings if f.level == level]

    def __str__(self) -> str:
        lines = [f"  {f.level:<8} {f.name:<18} {f.sentence}" for f in self.findings]
        errors, warnings = len(self.of("error")), len(self.of("warning"))
        verdict = "ready for hindsight" if self.ok else "not ready for hindsight"
        return "\n".join([self.env, *lines, f"{self.env} is {verdict}: errors {errors}, warnings {warnings}"])


@dataclass(frozen=True, eq=False)
class Facts:
    """What the checks look at. reward: the reward of N goals, whatever it took to get it."""

    env: Environment
    spec: GoalSpec
    episodes: list[Played]
    replay: Played
    seen: Probe
    reward: GoalFunction


def examine(env: Environment, spec: GoalSpec) -> CheckReport:
    """Play and look. Raises nothing for what the environment does wrong; its random generator is given back."""
    looked, stage = [Finding("ok", "spaces", _shapes(spec)), _action_bounds(spec), _time_limit(spec)], "episodes"
    with random_state_kept(env):
        try:
            episodes, replay = [play(env, seed, MAX_STEPS) for seed in (1, 2)], play(env, 1, MAX_REPLAYED)
            looked.append(_run("observations", lambda: _observations(spec, episodes)))
            seen, stage = probe(env), "reward form"
            reward, complaint = measured_reward(env, seen)
        except GoalEnvError as problem:
            return CheckReport(name_of(env), (*looked, Finding("error", stage, str(problem))))
        good = "takes N goals at once and gives N finite numbers"
        looked.append(Finding("warning" if complaint else "ok", stage, complaint or good))
        facts = Facts(env, spec, episodes, replay, seen, reward)
        looked += [_run(name, functools.partial(check, facts)) for name, check in CHECKS.items()]
    return CheckReport(name_of(env), tuple(looked))


def _run(name: str, check: Callable[[], tuple[str, str]]) -> Finding:
    try:
        level, sentence = check()
        return Finding(level, name, sentence)
    except Exception as problem:
        return Finding("error", name, f"could not be looked at ({type(problem).__name__}: {problem})")


def _shapes(spec: GoalSpec) -> str:
    parts = (("observation", spec.observation), ("goals", spec.goal), ("action", spec.action))
    return ", ".join(f"{name} {part.shape} {part.dtype}" for name, part in parts)


def _action_bounds(spec: GoalSpec) -> Finding:
    if spec.action.is_bounded:
        return Finding("ok", "action bounds", f"{min(spec.action.low):g} to {max(spec.action.high):g}")
    sentence = "actions have no finite bounds, so they cannot be scaled: wrap with gymnasium.wrappers.RescaleAction or clip"
    return Finding("error", "action bounds", sentence)


def _time_limit(spec: GoalSpec) -> Finding:
    if spec.max_episode_steps is not None:
        return Finding("ok", "time limit", f"{spec.max_episode_steps} steps")
    return Finding(
        "warning", "time limit", "none was found, an episode may never end: wrap with gymnasium.wrappers.TimeLimit"
    )


def _observations(spec: GoalSpec, episodes: list[Played]) -> tuple[str, str]:
    """Shape and finiteness are needed; a dtype or a bound that is not as declared is only told."""
    told = ""
    parts = (spec.observation, spec.goal, spec.goal)
    for key, part in zip(OBSERVATION_KEYS, parts, strict=True):
        for episode in episodes:
            for step, value in enumerate(episode.seen[key]):
                level, problem = _against(value, part)
                where = f"{key} at step {step} of the episode with seed {episode.seed} {problem}"
                if level == "error":
                    return level, where
                told = told or (where if problem else "")
    return ("warning", f"{told}: declare what is given, it is cast to the declaration") if told else ("ok", "as declared")


def _against(value: Array, part: ArraySpec) -> tuple[str, str]:
    if value.shape != part.shape:
        return "error", f"has shape {value.shape}, but {part.shape} is declared"
    if value.dtype.kind not in "biuf" or not np.isfinite(value).all():
        return "error", f"is not finite: {value.tolist()}"
    low, high = part.bounds()
    outside = (value < low) | (value > high)
    if outside.any():
        return "warning", f"has the value {value[outside].flat[0]:g}, outside of its declared bounds"
    is_whole = value.dtype.kind in "biu" and part.dtype.startswith("int")  # of Discrete and MultiBinary any will do
    is_same = value.dtype == part.dtype or is_whole
    return ("ok", "") if is_same else ("warning", f"is {value.dtype}, but {part.dtype} is declared")


def _reward_values(facts: Facts) -> tuple[str, str]:
    n_wrong, n_steps, worst, where = 0, 0, 0.0, ""
    for episode in facts.episodes:
        said, paid = np.asarray(facts.reward(*episode.goals()), np.float64), np.asarray(episode.rewards)
        wrong = np.flatnonzero(~np.isclose(said, paid, rtol=1e-5, atol=1e-6))
        n_wrong, n_steps = n_wrong + len(wrong), n_steps + len(paid)
        worst = max(worst, *np.abs(said - paid)[wrong], 0.0)
        if len(wrong) and not where:
            i = wrong[0]
            where = f"step {i + 1} with seed {episode.seed} paid {paid[i]:g} and compute_reward says {said[i]:g}"
    if not n_wrong:
        return "ok", f"compute_reward gives what the {n_steps} steps paid"
    sentence = f"{where}; {n_wrong} of {n_steps} steps differ, by up to {worst:g}: "
    if n_wrong <= 0.1 * n_steps:
        return "warning", sentence + "under a new goal, what the step adds to compute_reward is lost"
    return "error", sentence + "let step pay what compute_reward gives"


def _reward_repeats(facts: Facts) -> tuple[str, str]:
    achieved, desired, info = facts.episodes[0].goals()
    first, again = (np.asarray(facts.reward(achieved, desired, info)) for _ in range(2))
    if not np.array_equal(first, again):
        worst = np.abs(first - again).max()
        return "error", f"asked twice, compute_reward differs by up to {worst:g}: leave chance out of it"
    try:
        without = np.asarray(facts.reward(achieved, desired, {}))
    except Exception:  # it cannot do without the info
        without = np.full(len(first), np.nan)
    if not np.array_equal(first, without):
        read = ", ".join(_keys_read(facts, achieved[0], desired[0])) or "unknown keys"
        return "warning", f"compute_reward reads the info ({read}): name these keys as info_keys, so that they are stored"
    same = np.asarray(facts.reward(achieved, achieved.copy(), info), np.float64)
    if np.isfinite(facts.spec.reward_high) and (same != facts.spec.reward_high).any():
        return "error", (
            f"where the goal asked is the goal achieved, compute_reward gives {same.min():g} instead of "
            f"{facts.spec.reward_high:g}: it must look at the desired_goal it is given, not at the environment's own"
        )
    return "ok", "compute_reward depends on the two goals alone"


def _keys_read(facts: Facts, achieved: Array, desired: Array) -> list[str]:
    compute, read = own_function(facts.env, "compute_reward"), []

    class Noted(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            read.append(key)
            return super().__getitem__(key)

        def get(self, key: str, default: Any = None) -> Any:
            read.append(key)
            return super().get(key, default)

    if compute is not None:
        compute(achieved, desired, Noted(facts.episodes[0].infos[0]))
    return sorted(set(read))


def _success(facts: Facts) -> tuple[str, str]:
    spec, n_wrong, n_steps = facts.spec, 0, 0
    for episode in facts.episodes:
        told = [read_success(info) for info in episode.infos]
        if any(t is None for t in told):
            return "error", (
                f"step {told.index(None) + 1} with seed {episode.seed} has neither is_success nor success in its info, but "
                f"{sorted(episode.infos[told.index(None)])}: without it no success rate can be told"
            )
        n_wrong += int((np.asarray(told) != (np.asarray(episode.rewards) == spec.reward_high)).sum())
        n_steps += len(told)
    if n_wrong and np.isfinite(spec.reward_high):
        return "warning", f"success and the reward {spec.reward_high:g} disagree in {n_wrong} of {n_steps} steps"
    return "ok", f"told at each of {n_steps} steps"


def _terminated(facts: Facts) -> tuple[str, str]:
    function, complaint = measured_terminated(facts.env, facts.seen)
    ended = [e for e in facts.episodes if any(e.terminated)]
    if complaint:
        return "warning", complaint
    if function is None and ended:
        return "warning", (
            f"the episode with seed {ended[0].seed} ended for good at step {len(ended[0].rewards)}, and no "
            f"compute_terminated says which goals do that: under a new goal the end cannot be recomputed"
        )
    return "ok", "no goal ends an episode" if function is None else "compute_terminated takes N goals at once"


def _resets(facts: Facts) -> tuple[str, str]:
    first, again = facts.episodes[0], facts.replay
    if first.rows()[: len(again.rows())] == again.rows():
        return "ok", f"a reset with the same seed gives the same {len(again.rewards)} steps, bit by bit"
    pairs = [(a, b) for key in OBSERVATION_KEYS for a, b in zip(first.seen[key], again.seen[key], strict=False)]
    worst = max(float(np.abs(np.subtract(a, b, dtype=np.float64)).max(initial=0)) for a, b in pairs)
    return "warning", (
        f"after a reset with the same seed the same actions lead elsewhere, by up to {worst:g}: the environment must be "
        f"made anew for each episode, where a run is to be repeatable"
    )


def _goal_constant(facts: Facts) -> tuple[str, str]:
    for episode in facts.episodes:
        goals = episode.seen["desired_goal"]
        moved = next((t for t, goal in enumerate(goals) if not np.array_equal(goal, goals[0])), None)
        if moved is not None:
            return "warning", f"desired_goal changes at step {moved} with seed {episode.seed}: each step keeps its own goal"
    return "ok", "desired_goal stays the same throughout an episode"


CHECKS: Mapping[str, Callable[[Facts], tuple[str, str]]] = {
    "reward values": _reward_values,
    "reward inputs": _reward_repeats,
    "success": _success,
    "compute_terminated": _terminated,
    "seeded resets": _resets,
    "desired goal": _goal_constant,
}
