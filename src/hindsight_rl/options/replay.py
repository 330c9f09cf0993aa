"""The options of the replay buffer: relabelling and sampling."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, NoReturn, Self, get_args

from annotated_types import Ge, Le
from pydantic import Field, PositiveFloat, field_serializer, field_validator, model_validator

from ..errors import OptionError
from ..records import Array
from .record import Fraction, OptionRecord, Texts, named_values

StrategyName = Literal["future", "final", "episode", "random"]
STRATEGIES: tuple[str, ...] = get_args(StrategyName)
DEFAULT_N_SAMPLED_GOAL = 4
FUNCTION = "function "  # stands before the name of a function, which is what files hold of it
SUM_TOLERANCE = 1e-9  # decimal fractions such as 0.7 + 0.2 + 0.1 may sum to a little more than 1
RelabelAt = Literal["sample", "episode_end"]
RelabelTerminated = Literal["success", "keep", "never"]
RewardSource = Literal["step", "recompute"]
FloatType = Literal["float32", "float64"]
StrategyFunction = Callable[[Array, Array, Array, Array], Array]


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
        if total > 1 + SUM_TOLERANCE:
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
        return dict(self)

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

    def __str__(self) -> str:
        return f"{FUNCTION}{self.name}"


def her_probability(strategy: Any, n_sampled_goal: int | None) -> float:
    """Return the fraction of samples that are relabelled: that of a mixture, else k / (k + 1), with k = 4 for None."""
    if isinstance(strategy, Relabel):
        return strategy.fraction
    k = DEFAULT_N_SAMPLED_GOAL if n_sampled_goal is None else n_sampled_goal
    return k / (k + 1)


GOAL_SOURCES = tuple(Relabel.model_fields)


class RelabelOptions(OptionRecord, title="Relabelling"):
    """Where relabelled goals come from."""

    strategy: StrategyName | Relabel | StrategyFunction = Field(
        "future", description="source of relabelled goals: future, final, episode or random"
    )
    n_sampled_goal: int | None = Field(  # k / (k + 1) is 1 in 32 bits for the largest; stored goals have a lower limit
        None, ge=0, le=10**9, description="k: a sample is relabelled with probability k/(k+1); None: k = 4"
    )
    relabel: str = Field(
        "", description="fractions of the batch by source, instead of strategy and n_sampled_goal: future=0.5,desired=0.3"
    )
    relabel_schedule: Texts = Field(
        (), description='later fractions by environment steps, as in "100000: future=0.35,desired=0.15"'
    )
    relabel_at: RelabelAt = Field("sample", description="when goals are relabelled: at sampling, or once after the episode")
    relabel_terminated: RelabelTerminated | None = Field(
        None,
        description="`terminated` of relabelled samples: success (at success), keep (as stored), never; "
        "None: compute_terminated, or keep",
    )
    reward: RewardSource = Field(
        "step", description="rewards of original goals: those of step, or of compute_reward (recompute)"
    )
    extra_reward: bool = Field(
        False,
        description="add the part of the reward that compute_reward leaves out, such as a crash penalty, to every goal",
    )
    # each calls compute_reward; after 20 a millionth of the distance is left
    tolerance_levels: Annotated[int, Ge(0), Le(20)] = Field(
        0, description="graded reward: so many more rewards, for 1/2, 1/4, ... of the difference to the goal, are averaged"
    )
    info_keys: Texts = Field(
        (), description="entries of info that compute_reward needs: speed is a number, force[3] an array of three"
    )

    @field_validator("strategy", mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value.startswith(FUNCTION):
            return UnavailableFunction(name=value.removeprefix(FUNCTION))
        return Relabel.parse(value) if "=" in value else value

    @field_serializer("strategy")
    def _as_text(self, strategy: Any) -> str:
        """Return the strategy as files have it: text, a mixture as text, or the name of a function."""
        if isinstance(strategy, str | OptionRecord):
            return str(strategy)
        named = strategy if hasattr(strategy, "__qualname__") else type(strategy)  # a partial or an object has no name
        return f"{FUNCTION}{named.__module__}.{named.__qualname__}"

    @model_validator(mode="after")
    def _one_source_of_goals_and_rewards(self) -> Self:
        if self.relabel:
            Relabel.parse(self.relabel)
            if self.strategy != "future":
                raise OptionError("`relabel` and `strategy` both choose the goals. Give one of them.")
        if self.n_sampled_goal is not None and isinstance(self.goal_strategy, Relabel):
            raise OptionError(
                f"`n_sampled_goal` is {self.n_sampled_goal}, but the fractions {self.goal_strategy} already say how many "
                f"goals are relabelled. Give one of them."
            )
        if self.extra_reward and self.reward == "recompute":
            raise OptionError(
                "`extra_reward` adds what compute_reward leaves out, and reward='recompute' drops it. Give one of them."
            )
        return self

    @model_validator(mode="after")
    def _schedule_and_relabel_at_fit(self) -> Self:
        starts = [start for start, _ in self._schedule()]
        if starts != sorted(set(starts)) or min(starts, default=1) < 1:
            raise OptionError(f"The steps of `relabel_schedule` must be positive and increase, got {starts}.")
        if starts and self.relabel_at != "sample":
            raise OptionError(
                "`relabel_schedule` needs relabel_at='sample': at the end of an episode goals are chosen once."
            )
        if self.relabel_at == "episode_end" and not isinstance(self.goal_strategy, str | Relabel):
            raise OptionError("A function as `strategy` needs relabel_at='sample'. Use that, or a named strategy.")
        return self

    @property
    def goal_strategy(self) -> str | Relabel | StrategyFunction:
        """What chooses goals at the start: the mixture of `relabel` if given, else `strategy`."""
        return Relabel.parse(self.relabel) if self.relabel else self.strategy

    @property
    def relabelled_fraction(self) -> float:
        """Fraction of the samples that are relabelled at the start: k/(k+1), or the sum of the mixture's fractions."""
        return her_probability(self.goal_strategy, self.n_sampled_goal)

    def relabel_at_step(self, env_steps: int) -> Relabel | None:
        """Return the mixture that `relabel_schedule` sets at this environment step; None before its first entry."""
        return next((mixture for start, mixture in reversed(list(self._schedule())) if env_steps >= start), None)

    def _schedule(self) -> Iterator[tuple[int, Relabel]]:
        for entry in self.relabel_schedule:
            start, colon, mixture = entry.partition(":")
            if not colon or not re.fullmatch(r"\s*\d+(_\d+)*\s*", start):
                raise OptionError(
                    f'An entry of `relabel_schedule` must be written as "100000: future=0.35,desired=0.15", got {entry!r}.'
                )
            yield int(start), Relabel.parse(mixture)


class SamplingOptions(OptionRecord, title="Sampling"):
    """Which transitions are sampled, and what becomes of them."""

    # each sample is gathered so many times
    n_steps: int = Field(1, ge=1, le=1_000, description="rewards summed before bootstrapping (n-step return), discounted")
    prioritized: bool = Field(False, description="sample in proportion to the TD error (Schaul et al. 2016)")
    alpha: Fraction = Field(0.6, description="exponent of the priority with prioritized; 0 samples uniformly")
    beta: Fraction = Field(0.4, description="initial exponent of the importance weights; it rises to 1 during the run")
    energy_priority: bool = Field(False, description="sample by how far the achieved goal moved (Zhao and Tresp 2018)")
    energy_cap: PositiveFloat | None = Field(
        None, description="with energy_priority: largest distance that counts, in the unit of the goals"
    )
    energy_remaining: bool = Field(False, description="with energy_priority: count the distance still to come")
    symmetries: Texts = Field(
        (), description='rotations and mirrors under which the task is the same, as in "o0=-o0 g0=-g0 a0=-a0"'
    )

    @model_validator(mode="after")
    def _one_priority(self) -> Self:
        if self.prioritized and self.energy_priority:
            raise OptionError("`prioritized` and `energy_priority` both choose the transitions. Give one of them.")
        for name in ("energy_cap", "energy_remaining"):
            if getattr(self, name) and not self.energy_priority:
                raise OptionError(f"`{name}` needs energy_priority=True.")
        return self


class SubgoalSamplingOptions(OptionRecord, title="Subgoals"):
    """Sampling for subgoals."""

    subgoal_fraction: Fraction = Field(0.2, description="fraction of each batch relabelled with subgoals, if there are any")


class StorageOptions(OptionRecord, title="Storage"):
    """How steps are stored."""

    dtype: FloatType | None = Field(
        None, description="widest float that is stored; None: float64 if float64 goals are too large for float32"
    )


class ReplayOptions(StorageOptions, SubgoalSamplingOptions, SamplingOptions, RelabelOptions):
    """Options of the replay buffer."""
