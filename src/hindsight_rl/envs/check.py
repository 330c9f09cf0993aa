"""Check whether an environment keeps the rules that hindsight-rl needs, by playing it within a fixed budget of steps."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium
from gymnasium.wrappers import TimeLimit

from ..errors import GoalEnvError
from ..options import ReplayOptions
from ..options.replay import RewardSource
from ..options.settings import ResetMode
from .check_rules import CHECKS, RESETS, check_symmetries
from .environment_facts import EnvironmentFacts, find_facts
from .goal_env import EnvSource, close_env, make_goal_env, read_spec
from .probe import Probe
from .random_play import Environment, name_of, random_state_kept
from .reset_rule import Answer
from .reward_rules import check_info_keys
from .wrappers import StepCounter


@dataclass(frozen=True)
class CheckResult:
    """The result of one check, with its evidence.

    level: "ok", "not seen" (nothing that was played shows it), "warning" (works, with a loss) or "error" (learning would
        go wrong).
    """

    level: str
    name: str
    sentence: str


@dataclass(frozen=True, repr=False)
class CheckReport:
    """The findings about an environment. `str(report)` is a table for a terminal.

    facts: None if the environment could not be played, or if one of its functions failed.
    n_steps: environment steps that the check played.
    """

    env: str
    findings: tuple[CheckResult, ...]
    facts: EnvironmentFacts | None = None
    n_steps: int = 0

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not self.of("error")

    def of(self, level: str) -> list[CheckResult]:
        """Return the findings of one level."""
        return [finding for finding in self.findings if finding.level == level]

    @property
    def warnings(self) -> list[str]:
        """The warnings as sentences."""
        return [f"{finding.name}: {finding.sentence}" for finding in self.of("warning")]

    def warn(self) -> None:
        """Show the warnings."""
        for sentence in self.warnings:
            warnings.warn(f"check of {self.env}: {sentence}", UserWarning, stacklevel=3)

    def __str__(self) -> str:
        lines = [f"  {f.level:<8} {f.name:<18} {f.sentence}" for f in self.findings]
        played = f"The check played {self.n_steps:,} environment steps."
        return "\n".join([self.env, *lines, played, self._conclusion])

    def __repr__(self) -> str:
        return f"CheckReport({self._conclusion})"

    @property
    def _conclusion(self) -> str:
        counts = f"errors {len(self.of('error'))}, warnings {len(self.of('warning'))}, not seen {len(self.of('not seen'))}"
        return f"{self.env} is {'ready' if self.ok else 'not ready'} for hindsight-rl: {counts}"


def check_goal_env(
    env: EnvSource,
    env_options: Mapping[str, Any] | None = None,
    symmetries: Sequence[str] = (),
    *,
    info_keys: Sequence[str] = (),
    max_episode_steps: int | None = None,
    reward: RewardSource = "step",
    reset_mode: ResetMode = "exact",
    make: Callable[[], Environment] | None = None,
) -> CheckReport:
    """Return what an environment does right and wrong.

    It plays random episodes, and it looks for a success: by setting the desired goal to an achieved one if the environment
    allows it, else by playing on. The budget is a number of steps, so that every machine finds the same.

    env, env_options: as for `make_goal_env`. An environment that exists is reset; reset it again before the next step.
    symmetries: to check too, on rewards only; see `task_structure.symmetries`. Wrong ones are an error in the report.
    info_keys: entries of info that compute_reward needs, as you know it. max_episode_steps: a time limit besides its own.
    reward: "recompute": the rewards of steps are those of compute_reward, whatever `step` returns.
    reset_mode: "reuse": resets need not be exact; first observations near those of a new environment are enough.
    make: returns another environment like `env`, if `env` is one. Without it no new environment is compared.
    Raises only OptionError and MissingExtraError, for a wrong `env` or `env_options`. Everything that the environment does
    wrong is in the report.
    """
    recomputes = ReplayOptions(reward=reward).reward == "recompute"
    try:
        made = make_goal_env(env, None, env_options)
    except GoalEnvError as problem:
        name = name_of(env) if isinstance(env, gymnasium.Env) else str(env)
        return CheckReport(name, (CheckResult("error", "environment", str(problem)),))
    counters = [counter := _counted(made, max_episode_steps)]
    make_another = partial(make_goal_env, env, None, env_options) if made is not env else make

    def make_counted() -> Environment:
        assert make_another is not None
        counters.append(_counted(make_another(), max_episode_steps))
        return counters[-1]

    of_rule = {RESETS: (make_counted if make_another else None, reset_mode)}
    facts = None
    try:
        with random_state_kept(made):
            probe = Probe(counter, read_spec(counter), recomputes)
            findings = [_run(name, check, probe, *of_rule.get(name, ())) for name, check in CHECKS.items()]
            findings.append(_run("info keys", check_info_keys, probe, info_keys))
            if symmetries:
                findings.append(_run("symmetries", check_symmetries, probe, symmetries))
            with contextlib.suppress(Exception):  # the finding of the same check says what failed
                facts = find_facts(probe)
            if probe.goal_setter:  # a goal that was set may replace what resets write their goals to
                probe.goal_setter.undo()
    except GoalEnvError as problem:
        findings = [CheckResult("error", "first episodes", str(problem))]
    finally:
        if made is not env:
            close_env(made)
    return CheckReport(name_of(counter), tuple(findings), facts, sum(each.n_steps for each in counters))


def _counted(env: Environment, max_episode_steps: int | None) -> StepCounter:
    """Return an environment with a time limit besides its own, and a count of its steps."""
    return StepCounter(TimeLimit(env, max_episode_steps) if max_episode_steps else env)


def _run(name: str, check: Callable[..., Answer], *arguments: Any) -> CheckResult:
    try:
        level, sentence = check(*arguments)
        return CheckResult(level, name, sentence)
    except Exception as problem:
        return CheckResult("error", name, f"could not be checked ({type(problem).__name__}: {problem})")
