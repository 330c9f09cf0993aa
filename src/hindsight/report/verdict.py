"""What a run amounts to, in words: did it learn, when, and is it healthy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .curves import Array, known, moving_mean, window_of
from .run import Run

Level = Literal["good", "partly", "bad", "unknown"]
FORGOT = 0.3  # of the success rate, below its best, that decides the answer
FELL_BY = 0.2  # of the success rate, from its best moving mean, that is called out
GREW_BY = 10.0  # times its usual size, that is called out
MANY_TRIVIAL = 0.7  # share of goals in hindsight that were achieved already, that is called out
SLACK = 0.1  # of the range of possible returns, by which values may leave it


@dataclass(frozen=True)
class Verdict:
    """level: for the colour and the sign. title: the answer. text: when, how long, how sure."""

    level: Level
    title: str
    text: str


def verdict(run: Run) -> Verdict:
    """Did it learn, and when."""
    steps, rate = known(run.column("env_steps"), run.column("test/success_rate"))
    if not len(rate):
        return _without_evaluations(run)
    best = int(np.flatnonzero(rate == rate.max())[-1])
    now, episodes = rate[-1], int(run.last("test/episodes"))
    sure = f"{run.last('test/success_low'):.0%} to {run.last('test/success_high'):.0%} with 95% confidence"
    text = f"The last evaluation, at {steps[-1]:,.0f} steps: {now:.0%} of {episodes} unseen episodes ({sure})."
    solved = solved_at(run)
    if solved is not None:
        _, seconds = known(run.column("seconds"), run.column("seconds"))
        at = float(np.interp(solved, run.column("env_steps"), seconds))
        text = f"First at {run.options['solved_at']:.0%} after {solved:,.0f} steps and {duration(at)}, and held. {text}"
        return Verdict("good", f"It learnt the task: {now:.0%} of unseen episodes succeed", text)
    if best < len(rate) - 1:
        text += f" Best so far: {rate[best]:.0%}, at {steps[best]:,.0f} steps."
    if rate[best] == 0:
        return Verdict("bad", "It has not learnt the task so far: no evaluated episode has succeeded", text)
    if rate[best] - now > FORGOT:
        return Verdict("bad", f"It forgot: {now:.0%} of unseen episodes succeed, {rate[best]:.0%} did at best", text)
    if now < 0.5:
        return Verdict("bad", f"It has learnt little so far: {now:.0%} of unseen episodes succeed", text)
    return Verdict("partly", f"It has learnt the task in part: {now:.0%} of unseen episodes succeed", text)


def _without_evaluations(run: Run) -> Verdict:
    rate = run.last("train/success_rate")
    text = "Nothing was evaluated yet."
    if not math.isnan(rate):
        text += f" While exploring, {rate:.0%} of the latest training episodes succeeded."
    return Verdict("unknown", "It cannot be told yet whether it learns", text)


def solved_at(run: Run) -> float | None:
    """The steps of the first evaluation of those in a row that count as solved; None where it never was."""
    steps, rate = known(run.column("env_steps"), run.column("test/success_rate"))
    in_a_row = max(1, int(run.options.get("solved_evaluations", 2)))
    enough = rate >= run.options.get("solved_at", 0.95)
    for first in range(len(rate) - in_a_row + 1):
        if enough[first : first + in_a_row].all():
            return float(steps[first])
    return None


def possible_returns(run: Run) -> tuple[float, float]:
    """The lowest and the highest discounted return that the task's rewards can add up to; infinite where not known."""
    low, high = (float(run.settings["spec"].get(name, math.nan)) for name in ("reward_low", "reward_high"))
    horizon = 1 / (1 - float(run.options.get("discount", 0.98)))
    if run.options.get("extra_reward"):  # steps pay more than what the range was read from
        low, high = -math.inf, math.inf
    return min(low, low * horizon), max(high, high * horizon)


def signs(run: Run) -> list[str]:
    """What looks wrong, one sentence each."""
    return [sentence for look in _LOOKS for sentence in look(run)]


def _not_finite(run: Run) -> Iterator[str]:
    for name, values in run.metrics.items():
        if np.isinf(values).any():
            yield f"{name} became infinite: the learning rate is too high, or gradients need a gradient_clip."


def _loss_grows(run: Run) -> Iterator[str]:
    steps, loss = _smooth(run, "train/critic_loss")
    usual = float(np.median(loss)) if len(loss) >= 20 else 0.0
    if usual > 0 and loss[-1] > GREW_BY * usual:
        began = steps[np.flatnonzero(loss <= GREW_BY / 2 * usual)[-1]]
        yield (
            f"The critic's loss has grown to {loss[-1] / usual:.0f} times its usual size since {began:,.0f} steps: "
            f"the critic diverges. Lower learning_rate or tau, or set gradient_clip."
        )


def _values_leave_their_range(run: Run) -> Iterator[str]:
    steps, value = _smooth(run, "train/q_mean")
    low, high = possible_returns(run)
    if not len(value) or not math.isfinite(high - low):
        return
    slack = SLACK * (high - low) + _worth_of_entropy(run)
    above = (value > high + slack, "above the highest", high)
    below = (value < low - slack, "below the lowest", low)
    for outside, word, bound in (above, below):
        if outside[-1]:
            yield (
                f"Mean Q stands at {value[-1]:.3g}, {word} return that the rewards can add up to ({bound:.3g}), and has "
                f"been there since {steps[len(outside) - _length_of_the_end(outside)]:,.0f} steps: the critic diverges. "
                f"Set clip_targets, or lower learning_rate or tau."
            )


def _worth_of_entropy(run: Run) -> float:
    """What a soft value may add to a return."""
    coefficient, entropy = run.last("train/entropy_coefficient"), run.last("train/entropy")
    worth = abs(coefficient * entropy) / (1 - float(run.options.get("discount", 0.98)))
    return 0.0 if math.isnan(worth) else worth


def _length_of_the_end(flags: Array) -> int:
    """How many flags at the end are set without a gap."""
    unset = np.flatnonzero(~flags)
    return len(flags) - (int(unset[-1]) + 1 if len(unset) else 0)


def _success_falls(run: Run) -> Iterator[str]:
    steps, rate = known(run.column("env_steps"), run.column("test/success_rate"))
    window = max(3, window_of(len(rate)))
    if len(rate) < 2 * window:
        return
    mean = moving_mean(rate, window)
    best = int(mean[window - 1 :].argmax()) + window - 1
    if mean[best] - mean[-1] > FELL_BY:
        yield (
            f"Success fell: from {mean[best]:.0%} around {steps[best]:,.0f} steps to {mean[-1]:.0%} at the end (means of "
            f"{window} evaluations). The policy forgets; policies/best.safetensors still holds the best one."
        )


def _goals_are_trivial(run: Run) -> Iterator[str]:
    _, share = _smooth(run, "train/goals_already_achieved")
    if len(share) and share[-1] > MANY_TRIVIAL:
        yield (
            f"{share[-1]:.0%} of the goals put in hindsight were achieved before the step already, which teaches "
            f"little: what the goal is about hardly moves. Explore more, or draw by --energy-priority."
        )


def _entropy_runs_away(run: Run) -> Iterator[str]:
    _, coefficient = _smooth(run, "train/entropy_coefficient")
    if len(coefficient) >= 10 and coefficient[-1] > GREW_BY * max(coefficient[0], float(np.median(coefficient))):
        yield (
            f"The entropy coefficient has grown to {coefficient[-1]:.3g}: entropy drowns the rewards. Set "
            f"entropy_learning_rate to 0, or lower target_entropy."
        )


def _episodes_fail(run: Run) -> Iterator[str]:
    counts = {"refused_episodes": "training episodes were refused", "failed_jobs": "jobs failed and ran again"}
    for name, what in counts.items():
        if run.last(name) > 0:
            yield f"{run.last(name):,.0f} {what}: `hindsight check` says what is wrong with the environment."


_LOOKS: tuple[Callable[[Run], Iterator[str]], ...] = (
    _not_finite,
    _values_leave_their_range,
    _loss_grows,
    _success_falls,
    _entropy_runs_away,
    _goals_are_trivial,
    _episodes_fail,
)


def _smooth(run: Run, name: str) -> tuple[Array, Array]:
    """Steps and moving mean of a metric, where it was written."""
    steps, values = known(run.column("env_steps"), run.column(name))
    return steps, moving_mean(values, window_of(len(values)))


def duration(seconds: float) -> str:
    """So many seconds as people say it: 4.2 s, 12 min, 3.4 h."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
