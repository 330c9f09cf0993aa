"""Where relabelled goals come from, as an option: names of strategies, and mixtures of them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from ..errors import OptionError, UnknownNameError, nearest

RelabelAt = Literal["sample", "episode_end"]
STRATEGIES = ("future", "final", "episode", "random")
DEFAULT_N_SAMPLED_GOAL = 4
_SLACK = 1e-9  # by which shares written as decimals may exceed 1 in sum


@dataclass(frozen=True, kw_only=True)
class Relabel:
    """A mixture of goals by shares of the batch; what is missing to 1 keeps the goal that was asked.

    future, final, episode, random: as the strategies of that name. desired: goals that were really asked, the desired_goal
    of a live row drawn apart, of any episode ("futureactual" in published code where it goes with future). Each sample is
    decided apart. Raises OptionError for a share below 0, or where they exceed 1 together.
    """

    future: float = 0.0
    final: float = 0.0
    episode: float = 0.0
    random: float = 0.0
    desired: float = 0.0

    def __post_init__(self) -> None:
        for name, share in self.shares().items():
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
                raise OptionError(f"the share {name} of a Relabel is {share!r}, but a number from 0 to 1 is needed")
        if sum(self.shares().values()) > 1 + _SLACK:
            raise OptionError(
                f"the shares {self} are {sum(self.shares().values()):g} together, but 1 is the most: lower one"
            )

    @classmethod
    def parse(cls, text: str) -> Relabel:
        """The mixture written as "future=0.5,desired=0.3". Raises OptionError and UnknownNameError."""
        shares: dict[str, float] = {}
        for part in text.split(","):
            name, _, share = (piece.strip() for piece in part.partition("="))
            if name not in SOURCES:
                raise UnknownNameError(
                    f"there is no source {name!r} of goals in relabel {text!r}: write shares as in future=0.5,desired=0.3, "
                    f"of {', '.join(SOURCES)}.{nearest(name, SOURCES)}"
                )
            try:
                number = float(share)
            except ValueError:
                raise OptionError(f"relabel {text!r} gives {name} the share {share!r}, but a number is needed") from None
            if name in shares:
                raise OptionError(f"relabel {text!r} names {name} twice: give it one share")
            shares[name] = number
        return cls(**shares)

    def __str__(self) -> str:
        return ",".join(f"{name}={share}" for name, share in self.shares().items() if share)

    def shares(self) -> dict[str, float]:
        """The share of every source by its name."""
        return {name: getattr(self, name) for name in SOURCES}

    @property
    def share(self) -> float:
        """The share of samples whose goal is not their own."""
        return min(float(sum(self.shares().values())), 1.0)

    @property
    def only(self) -> str | None:
        """The strategy that alone has a share, the first where none has; None where several have, or `desired` does."""
        used = [name for name, share in self.shares().items() if share] or [STRATEGIES[0]]
        return used[0] if len(used) == 1 and used[0] in STRATEGIES else None


SOURCES = tuple(field.name for field in fields(Relabel))
DESIRED, REAL = SOURCES.index("desired"), len(SOURCES)


def check_relabel_at(relabel_at: str, n_steps: int) -> None:
    """Raise OptionError for a time of relabelling that is not known, or that does not go with n-step returns."""
    if relabel_at not in get_args(RelabelAt):
        raise OptionError(f"relabel_at is {relabel_at!r}, but one of {', '.join(get_args(RelabelAt))} is needed")
    if relabel_at == "episode_end" and n_steps > 1:
        raise OptionError(
            f"relabel_at is 'episode_end', which keeps the reward of one step per goal, but n_steps is {n_steps}: "
            f"choose n_steps=1, or relabel_at='sample'"
        )
