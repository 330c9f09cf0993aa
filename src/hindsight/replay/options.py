"""How steps are kept and retold."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import OptionError


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """Options of the replay buffer."""

    capacity: int = 1_000_000  # transitions kept; the oldest episodes leave first
    n_sampled_goal: int = 4  # k hindsight goals per real one: a share of k/(k+1) of every batch; 0 for none
    strategy: str = "future"  # where a hindsight goal comes from: future, final, episode or random
    batch_size: int = 256  # transitions per update
    info_keys: tuple[str, ...] = ()  # numeric entries of the environment's info that its reward needs
    prioritized: bool = False  # draw transitions more often where their value was wrong (Schaul et al. 2016)
    alpha: float = 0.6  # with prioritized: the power of the error that counts; 0 draws all alike
    beta: float = 0.4  # with prioritized: how far weights make up for it at first; rises to 1, wholly, over the run
    energy: bool = False  # draw episodes more often where the achieved goal moved far (Zhao and Tresp 2018)

    def __post_init__(self) -> None:
        for name, lowest in (("capacity", 1), ("n_sampled_goal", 0), ("batch_size", 1)):
            if getattr(self, name) < lowest:
                raise OptionError(f"{name} is {getattr(self, name)}, but it must be at least {lowest}")
        for name in ("alpha", "beta"):
            if not 0 <= getattr(self, name) <= 1:
                raise OptionError(f"{name} is {getattr(self, name)}, but it must lie between 0 and 1")
        if self.prioritized and self.energy:
            raise OptionError("prioritized and energy are two ways to draw transitions: choose one")
