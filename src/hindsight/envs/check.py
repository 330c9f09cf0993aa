"""Check whether an environment keeps the rules that hindsight relies on, by playing it within a fixed budget of steps."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from ..errors import GoalEnvError, MissingExtraError, OptionError
from ..records.symmetries import Symmetries
from .checks import CHECKS
from .evidence import Evidence, gather_evidence
from .goal_env import EnvSource, close_env, make_goal_env, read_spec
from .random_play import Environment, name_of, random_state_kept
from .symmetry_check import compare_rewards, compare_steps


@dataclass(frozen=True)
class Finding:
    """The result of one check, with its evidence.

    level: "ok", "not seen" (nothing that was played shows it), "warning" (works, with a loss) or "error" (learning would
        go wrong).
    """

    level: str
    name: str
    sentence: str


@dataclass(frozen=True)
class EnvironmentFacts:
    """What was found out about an environment.

    terminates_on_success: None: no success was seen, or some successes ended their episode and others did not.
    relabel_terminated: the option that ends relabelled episodes as real ones; None: compute_terminated is right, or
        nothing was seen.
    info_keys: entries of info that compute_reward needs.
    time_limit: steps of an episode; None: no limit was found.
    action_bounds: the lowest and the highest action.
    exact_resets: whether a reset with the same seed led to the same observations.
    """

    terminates_on_success: bool | None
    relabel_terminated: str | None
    info_keys: tuple[str, ...]
    time_limit: int | None
    action_bounds: tuple[float, float]
    exact_resets: bool

    def settings(self) -> dict[str, tuple[Any, str]]:
        """Return the options of a run that follow from the facts: name -> (value, reason)."""
        ends = "end" if self.terminates_on_success else "do not end"
        found = {
            "relabel_terminated": (self.relabel_terminated, f"successes {ends} their episode, and so do relabelled ones"),
            "info_keys": (self.info_keys, "compute_reward reads these entries of info"),
        }
        return {name: choice for name, choice in found.items() if choice[0]}


@dataclass(frozen=True)
class CheckReport:
    """The findings about an environment. `str(report)` is a table for a terminal.

    facts: None if the environment could not be played.
    """

    env: str
    findings: tuple[Finding, ...]
    facts: EnvironmentFacts | None = None

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not self.of("error")

    def of(self, level: str) -> list[Finding]:
        """Return the findings of one level."""
        return [finding for finding in self.findings if finding.level == level]

    def __str__(self) -> str:
        lines = [f"  {f.level:<8} {f.name:<18} {f.sentence}" for f in self.findings]
        counts = f"errors {len(self.of('error'))}, warnings {len(self.of('warning'))}, not seen {len(self.of('not seen'))}"
        verdict = "ready for hindsight" if self.ok else "not ready for hindsight"
        return "\n".join([self.env, *lines, f"{self.env} is {verdict}: {counts}"])


def check_goal_env(
    env: EnvSource, env_options: Mapping[str, Any] | None = None, symmetries: Sequence[str] = ()
) -> CheckReport:
    """Return what an environment does right and wrong.

    It plays random episodes, and it looks for a success: by setting the desired goal to an achieved one if the environment
    allows it, else by playing on. The budget is a number of steps, so that every machine finds the same.

    env, env_options: as for `make_goal_env`. An environment that exists is reset; reset it again before the next step.
    symmetries: to check too, on rewards and, where that is possible, on steps; see `hindsight.records.symmetries`.
    Raises only OptionError and MissingExtraError, for wrong arguments. Everything that the environment does wrong is in
    the report.
    """
    try:
        made = make_goal_env(env, None, env_options)
    except (OptionError, MissingExtraError):
        raise
    except GoalEnvError as problem:
        name = name_of(env) if isinstance(env, gymnasium.Env) else str(env)
        return CheckReport(name, (Finding("error", "environment", str(problem)),))
    with random_state_kept(made):
        report = _check(made, symmetries)
    if made is not env:
        close_env(made)
    return report


def _check(env: Environment, symmetries: Sequence[str]) -> CheckReport:
    spec = read_spec(env)
    try:
        evidence = gather_evidence(env, spec)
    except GoalEnvError as problem:
        return CheckReport(name_of(env), (Finding("error", "first episodes", str(problem)),))
    findings = [_run(name, functools.partial(check, evidence)) for name, check in CHECKS.items()]
    if symmetries:
        goals = [episode.goals() for episode in evidence.random]
        findings += [
            _run("symmetric rewards", lambda: compare_rewards(evidence.reward, goals, Symmetries(symmetries, spec))),
            _run("symmetric steps", lambda: compare_steps(env, Symmetries(symmetries, spec))),
        ]
    return CheckReport(name_of(env), tuple(findings), _facts(evidence))


def _run(name: str, check: Callable[[], tuple[str, str]]) -> Finding:
    try:
        level, sentence = check()
        return Finding(level, name, sentence)
    except Exception as problem:
        return Finding("error", name, f"could not be checked ({type(problem).__name__}: {problem})")


def _facts(evidence: Evidence) -> EnvironmentFacts:
    spec, terminates, is_right = evidence.spec, evidence.terminates_on_success, evidence.has_right_termination
    needs_rule = terminates and not is_right and np.isfinite(spec.reward_high)
    return EnvironmentFacts(
        terminates_on_success=terminates,
        relabel_terminated="success" if needs_rule else "keep" if terminates is False and is_right is False else None,
        info_keys=evidence.info_keys,
        time_limit=spec.max_episode_steps,
        action_bounds=(min(spec.action.low), max(spec.action.high)),
        exact_resets=evidence.resets_are_exact,
    )
