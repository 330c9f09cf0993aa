"""How steps are kept and retold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ..errors import OptionError
from .relabel import DEFAULT_N_SAMPLED_GOAL, Relabel, RelabelAt, check_relabel_at

Rule = Literal["success", "keep", "never"]


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """Options of the replay buffer."""

    capacity: int = 1_000_000  # transitions kept; the oldest episodes leave first
    n_sampled_goal: int = DEFAULT_N_SAMPLED_GOAL  # k hindsight goals per real one: k/(k+1) of every batch; 0 for none
    strategy: str = "future"  # where a hindsight goal comes from: future, final, episode or random
    relabel: str = ""  # instead of strategy and n_sampled_goal: shares of the batch, as in future=0.5,desired=0.3
    relabel_later: str = ""  # other shares, from relabel_later_from on: with some success, near misses teach more than luck
    relabel_later_from: int = 0  # environment steps after which goals come by relabel_later
    relabel_at: RelabelAt = "sample"  # when goals are put in hindsight: at every sample, or once, when an episode ends
    relabel_terminated: Rule | None = None  # whether a hindsight goal ends the episode; None: as the environment says
    extra_reward: bool = False  # what a step pays besides compute_reward, as for a crash, it pays under every goal
    n_steps: int = 1  # rewards of so many steps are summed before a value is asked, discounted as the agent does
    batch_size: int = 256  # transitions per update
    info_keys: tuple[str, ...] = ()  # numeric entries of the environment's info that its reward needs
    prioritized: bool = False  # draw transitions more often where their value was wrong (Schaul et al. 2016)
    alpha: float = 0.6  # with prioritized: the power of the error that counts; 0 draws all alike
    beta: float = 0.4  # with prioritized: how far weights make up for it at first; rises to 1, wholly, over the run
    energy_priority: bool = False  # draw episodes more often where the achieved goal moved far (Zhao and Tresp 2018)
    energy_cap: float | None = None  # with energy: a longer way counts no more than this, in the goal's units
    energy_remaining: bool = False  # with energy: each step counts by the way still ahead of it in its episode
    subgoal_fraction: float = 0.2  # with subgoals: share of a batch that is learnt under their goals
    symmetries: tuple[str, ...] = ()  # turns and mirrors that change nothing, as in "o0=-o0 g0=-g0 a0=-a0"

    def __post_init__(self) -> None:
        for name, lowest in (("capacity", 1), ("n_sampled_goal", 0), ("batch_size", 1), ("n_steps", 1)):
            if getattr(self, name) < lowest:
                raise OptionError(f"{name} is {getattr(self, name)}, but it must be at least {lowest}")
        check_relabel_at(self.relabel_at, self.n_steps)
        for name in ("alpha", "beta", "subgoal_fraction"):
            if not 0 <= getattr(self, name) <= 1:
                raise OptionError(f"{name} is {getattr(self, name)}, but it must lie between 0 and 1")
        check_drawing(self.prioritized, self.energy_priority, self.energy_cap, self.energy_remaining)
        self._check_later()
        if not self.relabel:
            return
        Relabel.parse(self.relabel)
        for name in ("n_sampled_goal", "strategy"):
            if getattr(self, name) != getattr(ReplayOptions, name):
                raise OptionError(
                    f"{name} is {getattr(self, name)!r}, but relabel ({self.relabel}) says already where goals come from: "
                    f"give one of the two"
                )

    def _check_later(self) -> None:
        if self.relabel_later_from < 0 or bool(self.relabel_later) != bool(self.relabel_later_from):
            raise OptionError(
                f"relabel_later is {self.relabel_later!r} and relabel_later_from {self.relabel_later_from}, but shares and "
                f"a number of steps above 0 belong together: give both or neither"
            )
        if self.relabel_later:
            Relabel.parse(self.relabel_later)
            if not self.relabel:
                raise OptionError(
                    f"relabel_later is {self.relabel_later!r}, but relabel is empty: give the first shares too"
                )
            if self.relabel_at != "sample":
                raise OptionError(
                    f"relabel_at is {self.relabel_at!r}, where goals are drawn once: relabel_later needs 'sample'"
                )


def check_drawing(prioritized: bool, energy: bool, energy_cap: float | None, energy_remaining: bool) -> None:
    """Raise OptionError where these do not say together how transitions are drawn."""
    if prioritized and energy:
        raise OptionError("prioritized and energy are two ways to draw transitions: choose one")
    if energy_cap is not None and not (energy and 0 < energy_cap < math.inf):
        raise OptionError(
            f"energy_cap is {energy_cap!r}, but it must be a number above 0, with energy_priority=True, or None: leave it out, "
            f"or set energy_priority=True with it"
        )
    if energy_remaining and not energy:
        raise OptionError("energy_remaining is True, but it says how energy draws: set energy_priority=True with it")
