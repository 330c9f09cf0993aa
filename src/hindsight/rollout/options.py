"""How episodes are collected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from ..errors import OptionError

Engine = Literal["processes", "ray"]
Schedule = Literal["deterministic", "free"]


@dataclass(frozen=True, kw_only=True)
class RolloutOptions:
    """Options of collecting. Workers and their engine are free of consequences: the others decide what is learnt."""

    workers: int = 0  # processes that collect while this one learns; 0 collects in this one; the result is the same
    engine: Engine = "processes"  # what runs the workers; ray may place them on other machines
    ray_address: str | None = None  # of a Ray cluster, auto for one on this machine; None starts a Ray for this run
    schedule: Schedule = "deterministic"  # free takes episodes as they come: for uneven workers; no two runs are the same
    episodes_per_job: int = 1  # episodes collected with the same weights before the learner sees them
    lag: int = 0  # how many jobs old weights may be, so that lag + 1 jobs run at once; older episodes are dropped
    job_timeout: float = 600.0  # seconds after which a worker that is still busy with one job is replaced
    max_episode_steps: int | None = None  # cut episodes here; needed where the environment has no time limit of its own
    led_episodes: float = 0.8  # with stages: share of the episodes led to them, times 1 - the recent success of the others
    led_steps: float = 0.5  # with stages: share of a led episode's steps that act for the first stage not met
    remake_environment: bool | None = None  # a new environment per episode; None: only where a reset is not exact

    def __post_init__(self) -> None:
        for name, known in (("engine", get_args(Engine)), ("schedule", get_args(Schedule))):
            if getattr(self, name) not in known:
                raise OptionError(f"{name} is {getattr(self, name)!r}, but it must be one of {', '.join(known)}")
        for name in ("led_episodes", "led_steps"):
            if not 0 <= getattr(self, name) <= 1:
                raise OptionError(f"{name} is {getattr(self, name)}, but it must lie between 0 and 1")
        for name, lowest in (
            ("workers", 0),
            ("episodes_per_job", 1),
            ("lag", 0),
            ("max_episode_steps", 1),
            ("job_timeout", 1),
        ):
            value = getattr(self, name)
            if value is not None and value < lowest:
                raise OptionError(f"{name} is {value}, but it must be at least {lowest}")
