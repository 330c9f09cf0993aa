"""Presets: hyperparameters for features of a task, one TOML file each. A run with an inferred structure uses them.

A file says for which feature it is, and with which tasks that was established. Some of its values are multiples of what was
measured in the steps of the task:

[options]: values as they are. A text in a list may name an option of [steps] in braces.
[horizon]: of the discount, in steps: factor * measure, at least `shortest` and at most LONGEST_HORIZON. It is left out
above `unless_above`.
[steps]: whole numbers: factor * measure. `least` and `most` bound them; above `unless_above` the option is left out.
[scaled]: numbers with two digits: factor * measure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from ..errors import FileError, OptionError
from ..options import Choice, Feature, OptionRecord
from .files import RECIPES, names_in, read_toml

PRESETS = RECIPES / "presets"
LONGEST_HORIZON = 100  # steps: with more, values are too large to be learned from few samples
Measure = Literal["time_limit", "episode_steps", "steps_to_goal", "goal_std", "tolerance_step"]


class Multiple(OptionRecord):
    """factor * what was measured under the name `of`."""

    factor: float
    of: Measure

    def value(self, measures: Mapping[str, float]) -> float:
        """Return the product; infinity if nothing was measured."""
        return self.factor * measures.get(self.of, float("inf"))


class StepCount(Multiple):
    """A number of steps, with its bounds."""

    least: int = 1
    most: Multiple | None = None
    unless_above: Multiple | None = None


class Horizon(Multiple):
    """How many steps the discount looks ahead."""

    shortest: float
    unless_above: Multiple


class Preset(OptionRecord):
    """The options for one feature of a task. See the module.

    feature: in a sentence or two. tasks: that it was established with.
    """

    name: str
    feature: str = ""
    tasks: tuple[str, ...] = ()
    options: dict[str, Any] = Field(default_factory=dict)
    horizon: Horizon | None = None
    steps: dict[str, StepCount] = Field(default_factory=dict)
    scaled: dict[str, Multiple] = Field(default_factory=dict)

    def values(self, measures: Mapping[str, float]) -> dict[str, Any]:
        """Return the values of the options. measures: what was measured in the task, by its name."""
        steps = {name: round(count) for name, count in self._steps(measures)}
        found = {name: _filled(value, steps) for name, value in self.options.items()} | steps
        if self.horizon is not None and self.horizon.value(measures) <= self.horizon.unless_above.value(measures):
            horizon = min(max(self.horizon.value(measures), self.horizon.shortest), LONGEST_HORIZON)
            found["discount"] = round(1 - 1 / horizon, 3)
        return found | {name: float(f"{each.value(measures):.2g}") for name, each in self.scaled.items()}

    def _steps(self, measures: Mapping[str, float]) -> Iterator[tuple[str, float]]:
        for name, count in self.steps.items():
            steps = max(count.value(measures), count.least)
            if count.unless_above is None or steps <= count.unless_above.value(measures) < float("inf"):
                yield name, steps if count.most is None else min(steps, count.most.value(measures))


def _filled(value: Any, steps: Mapping[str, int]) -> Any:
    if not isinstance(value, list):
        return value
    return tuple(each.format_map(steps) if isinstance(each, str) else each for each in value)


def preset_names() -> list[str]:
    """Return the names of the presets."""
    return names_in(PRESETS)


def load_preset(name: str) -> Preset:
    """Return a preset by its name. Raises UnknownNameError and FileError."""
    _, data = read_toml("preset", name, PRESETS)
    try:
        return Preset(name=name, **data)
    except OptionError as problem:
        raise FileError(f"{name}.toml is not a preset. {problem}") from None


def preset_choices(features: Iterable[Feature], measures: Mapping[str, float]) -> Iterator[Choice]:
    """Yield the options that follow from features of a task, in their order: of several values the last one counts."""
    for feature in features:
        for option, value in load_preset(feature.preset).values(measures).items():
            yield Choice(option, value, feature.reason, needs=feature.needs if option != feature.needs else "")
