"""What a run achieved, in words, and checks of its health; and values and durations as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from ..records import Array
from ..records.reward_scale import UNIT_RANGE
from ..records.statistics import first_solved, mean_window, moving_mean, rank_of_evaluation, return_range
from .run import Run

Level = Literal["good", "partly", "bad", "unknown"]
LARGE_FALL = 0.3  # of the success rate below its best: the verdict is "bad"
GROWTH_WARNING = 10.0  # times the median of a metric: a warning
MIN_RECORDS = 20  # before the growth of a metric is checked
MANY_ALREADY_ACHIEVED = 0.7  # fraction of relabelled goals: a warning
VALUE_TOLERANCE = 0.1  # of the range of possible returns, by which values may leave it
ENDINGS = {"solved": "because it was solved", "steps": "after all its steps", "stopped": "before all its steps"}


@dataclass(frozen=True)
class Verdict:
    """level: decides colour and sign. title: the result. text: when, and with which confidence."""

    level: Level
    title: str
    text: str


def verdict(run: Run) -> Verdict:
    """Return whether the run learnt its task, and when."""
    best = best_evaluation(run)
    if best is None:
        random = (
            f" There are no updates in the first {run.options.random_steps:,} steps, nor while structure is looked for."
        )
        text = f"There is no evaluation yet.{random if run.last('updates') == 0 else ''}"
        return Verdict("unknown", "Not evaluated yet", text)
    steps, rates = run.curve("test/success_rate")
    level, title = _answer(run, float(rates[-1]), best.success_rate)
    text = (
        f"Last evaluation, at {steps[-1]:,.0f} steps of training: {rates[-1]:.0%} of {run.last('test/episodes'):,.0f} "
        f"episodes succeed ({success_interval(run)})."
    )
    if best.env_steps < steps[-1]:
        text += f" Best evaluation: {best.success_rate:.0%} of {best.episodes:,.0f}, at {best.env_steps:,.0f} steps."
    if run.ended in ENDINGS:
        text += f" The run ended {ENDINGS[run.ended]}."
    return Verdict(level, title, f"{_when_solved(run)}{text}")


def success_interval(run: Run) -> str:
    """Return the interval of the success rate of the last evaluation, in words."""
    return f"95 % interval {run.last('test/success_low'):.0%} to {run.last('test/success_high'):.0%}"


class BestEvaluation(NamedTuple):
    """The evaluation whose policy is kept as the best: when, and its success."""

    env_steps: float
    success_rate: float
    episodes: float


def best_evaluation(run: Run) -> BestEvaluation | None:
    """Return the best evaluation of a run, see `rank_of_evaluation`; None without one."""
    names = ("env_steps", "test/success_rate", "test/episodes", "test/success_low", "test/return_mean")
    columns = np.stack([run.column(name) for name in names], axis=1)
    evaluations = columns[np.isfinite(columns[:, :2]).all(1)].tolist()
    ranks = [rank_of_evaluation(np.nan_to_num(low), mean) for *_, low, mean in evaluations]
    latest_best = max(range(len(ranks)), key=lambda row: (ranks[row], row), default=None)
    return None if latest_best is None else BestEvaluation(*evaluations[latest_best][:3])


def solved_at_step(run: Run) -> float | None:
    """Return the steps of training at the first of the evaluations that count as solved, None if there are none."""
    steps, rates = run.curve("test/success_rate")
    options = run.options
    index = first_solved(rates.tolist(), options.solved_at, max(1, options.solved_evaluations))
    return None if index is None else float(steps[index])


def possible_returns(run: Run) -> tuple[float, float]:
    """Return the lowest and the highest possible discounted return in units of the task, infinite if unknown."""
    spec = run.settings.spec
    is_known = math.isfinite(spec.reward_low) and math.isfinite(spec.reward_high)
    if run.options.extra_reward or not is_known:  # the range of the reward does not include extra rewards
        return -math.inf, math.inf
    return return_range(*UNIT_RANGE, run.options.discount)


def warnings_of(run: Run) -> list[str]:
    """Return a sentence for each problem that the checks find."""
    return [*_check_fall(run), *_check_metrics(run), *_check_values(run), *_check_failures(run)]


def _answer(run: Run, last: float, best: float) -> tuple[Level, str]:
    succeed = f"{last:.0%} of the evaluation episodes succeed"
    if best == 0:
        return "bad", "Not learnt: no evaluation episode has succeeded"
    if best - last > LARGE_FALL:
        return "bad", f"Success fell: {succeed}, {best:.0%} did at best"
    is_solved = solved_at_step(run) is not None
    if last >= run.options.solved_at:
        once = f"Not solved yet: {succeed}, but not in {run.options.solved_evaluations} evaluations in a row"
        return ("good", f"Solved: {succeed}") if is_solved else ("partly", once)
    if is_solved:
        return "partly", f"Solved before, but now {succeed}"
    return ("bad", f"Learnt little: {succeed}") if last < 0.5 else ("partly", f"Partly learnt: {succeed}")


def _when_solved(run: Run) -> str:
    steps, count = solved_at_step(run), max(1, run.options.solved_evaluations)
    if steps is None:
        return ""
    return (
        f"Solved at {environment_steps(steps, run.check_steps)}, after {duration(run.at(steps, 'seconds'))} of collecting "
        f"and updating: the first of {count} evaluations in a row with at least {run.options.solved_at:.0%} success. "
    )


def _check_fall(run: Run) -> Iterator[str]:
    """Compare the last evaluation with the one whose 95 % interval has the highest lower bound."""
    steps, low = run.curve("test/success_low")
    if not len(low) or run.last("test/success_high") >= low.max():
        return
    best = steps[int(low.argmax())]
    rate, high = run.at(best, "test/success_rate"), run.at(best, "test/success_high")
    yield (
        f"Success fell to {run.last('test/success_rate'):.0%} ({success_interval(run)}) from {rate:.0%} "
        f"at {best:,.0f} steps ({low.max():.0%} to {high:.0%})."
    )


def _check_metrics(run: Run) -> Iterator[str]:
    for name, values in run.metrics.items():
        if np.isinf(values).any():
            yield f"{name} became infinite."
    for name in ("train/critic_loss", "train/entropy_coefficient"):
        values = _smoothed(run, name)
        if len(values) >= MIN_RECORDS and values[-1] > GROWTH_WARNING * np.median(values) > 0:
            yield f"{name} is {values[-1] / np.median(values):.0f} times its median."
    fraction = _smoothed(run, "train/goals_already_achieved")
    if len(fraction) and fraction[-1] > MANY_ALREADY_ACHIEVED:
        yield f"{fraction[-1]:.0%} of the relabelled goals were already achieved before the step."


def _check_values(run: Run) -> Iterator[str]:
    """Compare mean Q with the possible returns. The entropy bonus of SAC and TQC may add to them."""
    values = _smoothed(run, "train/q_mean")
    low, high = possible_returns(run)
    if not len(values) or not math.isfinite(high - low):
        return
    bonus = abs(run.last("train/entropy_coefficient") * run.last("train/entropy")) / (1 - run.options.discount)
    tolerance = VALUE_TOLERANCE * (high - low) + (0.0 if math.isnan(bonus) else bonus)
    if values[-1] > high + tolerance:
        yield f"Mean Q is {values[-1]:.3g}, above the highest possible discounted return ({high:.3g})."
    if values[-1] < low - tolerance:
        yield f"Mean Q is {values[-1]:.3g}, below the lowest possible discounted return ({low:.3g})."


def _check_failures(run: Run) -> Iterator[str]:
    yield from (f"`hindsight-rl check`: {problem}" for problem in run.settings.check)
    refused, failed = run.last("refused_episodes"), run.last("failed_jobs")
    if refused > 0:
        yield (
            f"{refused:,.0f} training episodes were refused, for example for NaN. The check plays too few episodes to see "
            "rare ones: let `step` raise an error for such values to see where they begin."
        )
    if failed > 0:
        yield f"The environment or a worker failed {failed:,.0f} times. The episodes were collected again."
    for name, count in run.damaged_lines.items():
        yield f"{count:,} damaged lines of {name} were skipped."


def _smoothed(run: Run, name: str) -> Array:
    """Return the moving mean of a metric, where it was recorded."""
    _, values = run.curve(name)
    return moving_mean(values, mean_window(len(values)))


def format_value(value: Any) -> str:
    """Return the value of an option as text. Entries with spaces are separated by commas, others by spaces."""
    if isinstance(value, list | tuple):
        texts = [format_value(entry) for entry in value]
        return (", " if any(" " in text for text in texts) else " ").join(texts) or "none"
    if value is None or value == "":
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def by_reason(texts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return pairs of texts and their reason: those with the same reason are joined by commas."""
    groups: dict[str, list[str]] = {}
    for text, reason in texts:
        groups.setdefault(reason, []).append(text)
    return [(", ".join(texts), reason) for reason, texts in groups.items()]


def duration(seconds: float) -> str:
    """Return a duration such as "4.2 s", "12 min" or "3.4 h"."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def reward_range(low: float, high: float, unknown: str) -> str:
    """Return the range of a reward such as "-1 to 0", or `unknown` if an end is infinite."""
    return f"{low:g} to {high:g}" if math.isfinite(low) and math.isfinite(high) else unknown


def environment_steps(training: float, check: float) -> str:
    """Return environment steps such as "703 environment steps (400 of training, 303 before it)".

    training: those of training. check: those that were played before, NaN if they were not recorded.
    """
    if math.isnan(check):
        return f"{training:,.0f} environment steps of training (those before it are unknown)"
    return f"{training + check:,.0f} environment steps ({training:,.0f} of training, {check:,.0f} before it)"
