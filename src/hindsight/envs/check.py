"""Check whether an environment keeps the rules that hindsight relies on, by playing it within a fixed budget of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import GoalEnvError, MissingExtraError, OptionError
from .checks import CHECKS, Check, check_symmetric_rewards, check_symmetric_steps
from .evidence import Evidence, gather_evidence
from .goal_env import EnvSource, make_env, read_spec, unused_keys
from .random_play import Environment, name_of, random_state_kept


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
    has_right_termination: whether compute_terminated returns the termination of every success; None: it does not exist, or
        cannot be used.
    success_is_known: whether the reward has two values, so that a relabelled success can be recognized.
    info_keys: entries of info that compute_reward needs.
    time_limit: steps of an episode; None: no limit was found.
    action_bounds: the lowest and highest action; None: actions are not bounded, or discrete.
    exact_resets: whether a reset with the same seed led to the same observations.
    unused_keys: further keys of the observation, which the networks do not get.
    """

    terminates_on_success: bool | None
    has_right_termination: bool | None
    success_is_known: bool
    info_keys: tuple[str, ...]
    time_limit: int | None
    action_bounds: tuple[float, float] | None
    exact_resets: bool
    unused_keys: tuple[str, ...]

    def settings(self) -> dict[str, tuple[Any, str]]:
        """Return the options of a run that follow from the facts: name -> (value, reason)."""
        settings: dict[str, tuple[Any, str]] = {}
        if self.terminates_on_success and not self.has_right_termination and self.success_is_known:
            settings["relabel_terminated"] = "success", "success ends an episode, so a relabelled success does too"
        if self.terminates_on_success is False and self.has_right_termination is False:
            settings["relabel_terminated"] = "keep", "no success ended its episode, whatever compute_terminated returns"
        if self.info_keys:
            settings["info_keys"] = self.info_keys, "compute_reward reads these entries of info"
        return settings


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
        made = make_env(env, None, env_options)
    except (OptionError, MissingExtraError):
        raise
    except Exception as problem:
        return CheckReport(str(env), (Finding("error", "making", f"{type(problem).__name__}: {problem}"),))
    with random_state_kept(made):
        report = _check(made, symmetries)
    return report if made is env else _close(made, report)


def _check(env: Environment, symmetries: Sequence[str]) -> CheckReport:
    try:
        spec = read_spec(env)
    except GoalEnvError as problem:
        return CheckReport(name_of(env), (Finding("error", "spaces", str(problem)),))
    try:
        evidence = gather_evidence(env, spec)
    except GoalEnvError as problem:
        return CheckReport(name_of(env), (Finding("error", "first episodes", str(problem)),))
    checks = dict(CHECKS)
    if symmetries:
        checks["symmetric rewards"] = lambda evidence: check_symmetric_rewards(evidence, symmetries)
        checks["symmetric steps"] = lambda evidence: check_symmetric_steps(evidence, symmetries)
    findings = tuple(_run(name, check, evidence) for name, check in checks.items())
    return CheckReport(name_of(env), findings, _facts(evidence))


def _run(name: str, check: Check, evidence: Evidence) -> Finding:
    try:
        level, sentence = check(evidence)
        return Finding(level, name, sentence)
    except Exception as problem:
        return Finding("error", name, f"could not be checked ({type(problem).__name__}: {problem})")


def _facts(evidence: Evidence) -> EnvironmentFacts:
    spec = evidence.spec
    is_scaled = spec.action.n_values is None and spec.action.is_bounded
    return EnvironmentFacts(
        terminates_on_success=evidence.terminates_on_success,
        has_right_termination=evidence.has_right_termination,
        success_is_known=bool(np.isfinite(spec.reward_high)),
        info_keys=evidence.info_keys,
        time_limit=spec.max_episode_steps,
        action_bounds=(min(spec.action.low), max(spec.action.high)) if is_scaled else None,
        exact_resets=evidence.resets_are_exact,
        unused_keys=unused_keys(evidence.env),
    )


def _close(env: Environment, report: CheckReport) -> CheckReport:
    """Close an environment that was made for the check, and report it if that fails."""
    try:
        env.close()
        return report
    except Exception as problem:
        finding = Finding("warning", "close", f"close() failed ({type(problem).__name__}: {problem})")
        return replace(report, findings=(*report.findings, finding))
