"""How episodes are collected."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ..errors import OptionError

Engine = Literal["processes", "ray"]
Schedule = Literal["deterministic", "free"]


@dataclass(frozen=True, kw_only=True)
class RolloutOptions:
    """Options of collecting. Workers and their engine are free of consequences: the others decide what is learnt."""

    env_options: tuple[str, ...] = ()  # what the environment is made with, as in n_bits=30 or 'reward_type="dense"' (TOML)
    workers: int = 0  # processes that collect while this one learns; 0 collects in this one; the result is the same
    engine: Engine = "processes"  # what runs the workers; ray may place them on other machines
    ray_address: str | None = None  # of a Ray cluster, auto for one on this machine; None starts a Ray for this run
    schedule: Schedule = "deterministic"  # free takes episodes as they come: for uneven workers; no two runs are the same
    episodes_per_job: int = 1  # episodes collected with the same weights before the learner sees them
    policy_lag: int = (
        0  # how many jobs old weights may be, so that policy_lag + 1 jobs run at once; older episodes are dropped
    )
    job_timeout: float = 600.0  # seconds after which a worker that is still busy with one job is replaced
    max_episode_steps: int | None = None  # cut episodes here; needed where the environment has no time limit of its own
    guided_episodes: float = (
        0.8  # with subgoals: share of the episodes led to them, times 1 - the recent success of the others
    )
    guided_fraction: float = 0.5  # with subgoals: share of a led episode's steps that act for the first subgoal not met
    remake_environment: bool | None = None  # a new environment per episode; None: only where a reset is not exact

    @property
    def env_arguments(self) -> dict[str, Any]:
        """`env_options` as keyword arguments of what makes the environment."""
        return named_values("env_options", self.env_options)

    def __post_init__(self) -> None:
        named_values("env_options", self.env_options)
        for name, known in (("engine", get_args(Engine)), ("schedule", get_args(Schedule))):
            if getattr(self, name) not in known:
                raise OptionError(f"{name} is {getattr(self, name)!r}, but it must be one of {', '.join(known)}")
        for name in ("guided_episodes", "guided_fraction"):
            if not 0 <= getattr(self, name) <= 1:
                raise OptionError(f"{name} is {getattr(self, name)}, but it must lie between 0 and 1")
        for name, lowest in (
            ("workers", 0),
            ("episodes_per_job", 1),
            ("policy_lag", 0),
            ("max_episode_steps", 1),
            ("job_timeout", 1),
        ):
            value = getattr(self, name)
            if value is not None and value < lowest:
                raise OptionError(f"{name} is {value}, but it must be at least {lowest}")


def named_values(option: str, entries: Sequence[str]) -> dict[str, Any]:
    """The values of entries such as "n_bits=30", each written as in TOML, by their names.

    option: what errors call the entries. Raises OptionError for an entry that is not of this form, and for a name twice.
    """
    values: dict[str, Any] = {}
    for entry in entries:
        name, _, value = (part.strip() for part in entry.partition("="))
        if not name.isidentifier() or not value:
            raise OptionError(f"{option} holds {entry!r}, but name=value is needed, as in n_bits=30")
        if name in values:
            raise OptionError(f"{option} names {name!r} twice: leave one of them out")
        values[name] = _toml_value(option, entry, value)
    return values


def _toml_value(option: str, entry: str, value: str) -> Any:
    try:
        read = tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        read = {}
    if list(read) != ["value"]:
        raise OptionError(
            f"{option} holds {entry!r}, but {value!r} is no value of TOML: write true, 30, 0.5, [1, 2], {{ key = 1 }} or, "
            f'for text, "in quotes" (which a shell takes away unless it stands in quotes of the other kind)'
        )
    return read["value"]
