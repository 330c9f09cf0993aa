"""The sources of relabelled goals and their fractions of a batch."""

from __future__ import annotations

from typing import Any, Literal, NoReturn, Self, get_args

from pydantic import Field, model_validator

from ..errors import OptionError
from .record import FUNCTION, Fraction, OptionRecord, named_values

Strategy = Literal["future", "final", "episode", "random"]
STRATEGIES: tuple[str, ...] = get_args(Strategy)
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
        return cls(**named_values("relabel", text.split(",")))

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


class UnavailableFunction(OptionRecord, title="Relabelling"):
    """Stands for the function that a run had as `strategy`. Files hold its name alone, which suffices for acting."""

    name: str

    def __call__(self, *rows: Any) -> NoReturn:
        """Raise OptionError, which says how to give the function again."""
        raise OptionError(
            f"The `strategy` of the run was the {self}. No file holds a function, and learning needs it. Give it again, as "
            f"in HER.load(path, strategy=my_strategy)."
        )

    @classmethod
    def parse(cls, text: str) -> UnavailableFunction | None:
        """Return the function that was written as "function NAME"; None for other text."""
        return cls(name=text.removeprefix(FUNCTION)) if text.startswith(FUNCTION) else None

    def __str__(self) -> str:
        return f"{FUNCTION}{self.name}"


def her_probability(strategy: Any, n_sampled_goal: int | None) -> float:
    """Return the fraction of samples that are relabelled: that of a mixture, else k / (k + 1), with k = 4 for None."""
    if isinstance(strategy, Relabel):
        return strategy.fraction
    k = DEFAULT_N_SAMPLED_GOAL if n_sampled_goal is None else n_sampled_goal
    return k / (k + 1)


SOURCES = tuple(Relabel.model_fields)
