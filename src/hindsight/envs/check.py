"""Whether an environment keeps the promises that hindsight rests on: a few episodes are played and compared with them."""

from __future__ import annotations

import functools
import itertools
from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import GoalEnvError
from ..records import OBSERVATION_KEYS, Array, ArraySpec, GoalSpec
from ..records.symmetries import Symmetries
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
from .symmetry_check import compare_rewards, compare_steps

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

    @property
    def paid(self) -> Array:
        """The reward of each step of each episode."""
        return np.concatenate([e.rewards for e in self.episodes])

    def ask(self, function: GoalFunction) -> Array:
        """What a function says of the goals of each step."""
        return np.concatenate([np.asarray(function(*e.goals()), np.float64) for e in self.episodes])

    def place(self, i: int | np.integer[Any]) -> str:
        """The name of step i of all."""
        return [f"step {t + 1} with seed {e.seed}" for e in self.episodes for t in range(len(e.rewards))][i]


def examine(env: Environment, spec: GoalSpec, symmetries: Sequence[str] = ()) -> CheckReport:
    """Play and look. Raises nothing for what the environment does wrong; its random generator is given back.

    symmetries: what is declared of the environment, to be tried too.
    """
    looked, stage = _read(spec), "episodes"
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
        if symmetries:
            looked.append(_run("turned rewards", lambda: _turned_rewards(facts, symmetries)))
            looked.append(_run("turned steps", lambda: compare_steps(env, spec, Symmetries(symmetries, spec))))
    return CheckReport(name_of(env), tuple(looked))


def _run(name: str, check: Callable[[], tuple[str, str]]) -> Finding:
    try:
        level, sentence = check()
        return Finding(level, name, sentence)
    except Exception as problem:
        return Finding("error", name, f"could not be looked at ({type(problem).__name__}: {problem})")


def _read(spec: GoalSpec) -> list[Finding]:
    """What is known before anything is played."""
    action, limit = spec.action, spec.max_episode_steps
    parts = (("observation", spec.observation), ("goals", spec.goal), ("action", action))
    looked = [Finding("ok", "spaces", ", ".join(f"{name} {part.shape} {part.dtype}" for name, part in parts))]
    if action.is_bounded:
        looked.append(Finding("ok", "action bounds", f"{min(action.low):g} to {max(action.high):g}"))
    else:
        sentence = "not all are finite, so actions cannot be scaled: wrap with gymnasium.wrappers.TransformAction"
        looked.append(Finding("error", "action bounds", sentence))
    if limit is not None:
        return [*looked, Finding("ok", "time limit", f"{limit} steps")]
    sentence = "none was found, an episode may never end: wrap with gymnasium.wrappers.TimeLimit"
    return [*looked, Finding("warning", "time limit", sentence)]


def _observations(spec: GoalSpec, episodes: list[Played]) -> tuple[str, str]:
    """Shape and finiteness are needed; a dtype or a bound that is not as declared is only told."""
    parts = zip(OBSERVATION_KEYS, (spec.observation, spec.goal, spec.goal), strict=True)
    found = [
        (*_against(value, part), f"{key} at step {step} of the episode with seed {episode.seed}")
        for (key, part), episode in itertools.product(parts, episodes)
        for step, value in enumerate(episode.seen[key])
    ]
    for level, fix in (("error", ""), ("warning", ": declare what is given, it is cast to the declaration")):
        for _, problem, where in (f for f in found if f[0] == level):
            return level, f"{where} {problem}{fix}"
    return "ok", "as declared"


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
    said, paid = facts.ask(facts.reward), facts.paid
    wrong = np.flatnonzero(~np.isclose(said, paid, rtol=1e-5, atol=1e-6))
    if not len(wrong):
        return "ok", f"compute_reward gives what the {len(paid)} steps paid"
    first, worst = wrong[0], np.abs(said - paid)[wrong].max()
    sentence = (
        f"{facts.place(first)} paid {paid[first]:g} and compute_reward says {said[first]:g}; "
        f"{len(wrong)} of {len(paid)} steps differ, by up to {worst:g}: "
    )
    if len(wrong) <= 0.1 * len(paid):
        return (
            "warning",
            sentence + "under a new goal, what the step adds to compute_reward is lost unless extra_reward keeps it",
        )
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

    class Noted(UserDict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            read.append(key)
            return super().__getitem__(key)

    if compute is not None:
        compute(achieved, desired, Noted(facts.episodes[0].infos[0]))
    return sorted(set(read))


def _success(facts: Facts) -> tuple[str, str]:
    infos, best = [info for episode in facts.episodes for info in episode.infos], facts.spec.reward_high
    told = [read_success(info) for info in infos]
    if None in told:
        first = told.index(None)
        return "error", (
            f"{facts.place(first)} has neither is_success nor success in its info, but {sorted(infos[first])}: without it "
            f"no success rate can be told"
        )
    n_wrong = int((np.asarray(told) != (facts.paid == best)).sum())
    if n_wrong and np.isfinite(best):
        return "warning", f"success and the reward {best:g} disagree in {n_wrong} of {len(told)} steps"
    return "ok", f"told at each of {len(told)} steps"


def _terminated(facts: Facts) -> tuple[str, str]:
    function, complaint = measured_terminated(facts.env, facts.seen)
    ended = np.concatenate([episode.terminated for episode in facts.episodes])
    if complaint:
        return "warning", complaint
    if function is None and ended.any():
        return "warning", (
            f"an episode ended for good at {facts.place(ended.argmax())}, and no compute_terminated says which goals do "
            f"that: under a new goal the end cannot be recomputed"
        )
    if function is None:
        return "ok", "no goal ends an episode"
    wrong = np.flatnonzero(facts.ask(function) != ended)
    if not len(wrong):
        return "ok", f"compute_terminated takes N goals at once and says how the {len(ended)} steps ended"
    return "warning", (
        f"{facts.place(wrong[0])} has terminated={bool(ended[wrong[0]])} and compute_terminated says the opposite; "
        f"{len(wrong)} of {len(ended)} steps differ: under a new goal, what else ends an episode is lost"
    )


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


def _end(facts: Facts) -> tuple[str, str]:
    limit, longest = facts.spec.max_episode_steps, max(len(episode.rewards) for episode in facts.episodes)
    if limit is None or limit > MAX_STEPS or longest <= limit:
        return "ok", f"the longest of {len(facts.episodes)} episodes had {longest} steps"
    return "error", (
        f"an episode went on after {limit} steps, which the environment names as its limit: let step return truncated=True "
        f"there, or wrap it in gymnasium.wrappers.TimeLimit"
    )


def _turned_rewards(facts: Facts, symmetries: Sequence[str]) -> tuple[str, str]:
    goals = [episode.goals() for episode in facts.episodes]
    return compare_rewards(facts.reward, goals, Symmetries(symmetries, facts.spec))


CHECKS: Mapping[str, Callable[[Facts], tuple[str, str]]] = {
    "reward values": _reward_values,
    "reward inputs": _reward_repeats,
    "success": _success,
    "compute_terminated": _terminated,
    "seeded resets": _resets,
    "desired goal": _goal_constant,
    "episode end": _end,
}
