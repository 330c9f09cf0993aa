"""For the tests of your own environment: `from hindsight_rl.testing import check_goal_env`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .envs import check
from .envs.goal_env import EnvSource
from .options.replay import RewardSource


def check_goal_env(
    env: EnvSource,
    env_options: Mapping[str, Any] | None = None,
    symmetries: Sequence[str] = (),
    *,
    info_keys: Sequence[str] = (),
    max_episode_steps: int | None = None,
    reward: RewardSource = "step",
    allow_warnings: bool = True,
) -> check.CheckReport:
    """Fail a test unless an environment follows the goal interface, and return the report of the check.

    The first six arguments are those of `hindsight_rl.check_goal_env`, which returns the report of any environment.
    allow_warnings: False: warnings fail the test too.
    Raises AssertionError with the table of the check, and OptionError and MissingExtraError as that function does.
    """
    __tracebackhide__ = True  # pytest shows the table, and not this function
    report = check.check_goal_env(
        env, env_options, symmetries, info_keys=info_keys, max_episode_steps=max_episode_steps, reward=reward
    )
    if not report.ok or (report.warnings and not allow_warnings):
        raise AssertionError(str(report))
    return report
