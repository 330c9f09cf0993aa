"""The sources of relabelled goals and their fractions of a batch."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from ..errors import OptionError, UnknownNameError, nearest
from .record import Fraction, OptionRecord

Strategy = Literal["future", "final", "episode", "random"]
STRATEGIES = ("future", "final", "episode", "random")
DEFAULT_N_SAMPLED_GOAL = 4
_TOLERANCE = 1e-9  # decimal fractions such as 0.7 + 0.2 + 0.1 may sum to a little more than 1


class Relabel(OptionRecord, title="Relabelling"):
    """Fractions of the batch per source of goals. The rest keeps the desired goal of the episode.

    future, final, episode, random: goals of the strategies with these names. desired: the desired goal of a row of any
    episode ("futureactual" in published code, together with future). Each sample is relabelled independently.
    Raises OptionError if a fraction is below 0 or if they sum to more than 1.
    """

    future: Fraction = Field(0.0, description="goals achieved later in the same episode")
    final: Fraction = Field(0.0, description="goals achieved at the end of the same episode")
    episode: Fraction = Field(0.0, description="goals achieved at any time in the same episode")
    random: Fraction = Field(0.0, description="goals achieved at any time in any episode")
    desired: Fraction = Field(0.0, description="desired goals of any episode")

    @model_validator(mode="after")
    def _at_most_all(self) -> Self:
        total = sum(self.fractions().values())
        if total > 1 + _TOLERANCE:
            raise OptionError(f"The fractions of a Relabel must sum to at most 1, got {total:g} ({self}).")
        return self

    @classmethod
    def parse(cls, text: str) -> Relabel:
        """Return the mixture written as "future=0.5,desired=0.3". Raises OptionError and UnknownNameError."""
        fractions: dict[str, float] = {}
        for part in text.split(","):
            name, _, written = (piece.strip() for piece in part.partition("="))
            if name not in SOURCES:
                raise UnknownNameError(
                    f"There is no source {name!r} of goals (in {text!r}). Write fractions of {', '.join(SOURCES)}, as in "
                    f"future=0.5,desired=0.3.{nearest(name, SOURCES)}"
                )
            if name in fractions:
                raise OptionError(f"The source {name!r} must be given once, got {text!r}.")
            fractions[name] = _number(text, name, written)
        return cls(**fractions)

    def __str__(self) -> str:
        return ",".join(f"{name}={fraction}" for name, fraction in self.fractions().items() if fraction)

    def fractions(self) -> dict[str, float]:
        """Return the fraction of each source by its name."""
        return {name: getattr(self, name) for name in SOURCES}

    @property
    def fraction(self) -> float:
        """Fraction of the samples that are relabelled: the sum of all sources, at most 1."""
        return min(float(sum(self.fractions().values())), 1.0)

    @property
    def only(self) -> str | None:
        """The strategy that alone has a fraction, "future" if none has one, None if several have or `desired` has."""
        used = [name for name, fraction in self.fractions().items() if fraction] or [STRATEGIES[0]]
        return used[0] if len(used) == 1 and used[0] in STRATEGIES else None


def _number(text: str, name: str, written: str) -> float:
    try:
        return float(written)
    except ValueError:
        raise OptionError(f"The fraction of {name!r} must be a number, got {written!r} (in {text!r}).") from None


SOURCES = tuple(Relabel.model_fields)
DESIRED, REAL = SOURCES.index("desired"), len(SOURCES)
