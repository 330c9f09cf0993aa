"""What rewards show: how near to the goal a success is, and whether successes end episodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..options import Choice
from ..records import Array, Episode
from ..records.reward_scale import GuardedReward, RewardOf
from ..records.statistics import FLOAT32_ROUNDING
from ..task_structure.affine import AffineMap
from .steps import ALIKE, FEWEST, HARDLY, MOST_DEVIATIONS, MOSTLY, SAMPLED

# at each, the difference between start and goal is half as large, until it is hardly any
MOST_LEVELS = int(-math.log2(HARDLY))
MIN_SUCCESSES = 3  # that ended an episode


class RewardPairs:
    """Asks whether rewards stay the same if a symmetry transforms achieved and desired goals.

    Half of the achieved goals are those of episodes. The others differ from the desired ones in each dimension, by hardly
    anything up to the usual difference of goals: so some are successes, and some are not.
    """

    def __init__(self, compute_reward: RewardOf, episodes: Sequence[Episode]) -> None:
        rng, goal, info = np.random.default_rng(0), *_last_goals(episodes)
        self._ask, self._dtype = GuardedReward(compute_reward), goal.dtype
        last = np.stack([np.asarray(each.achieved_goal[-1]) for each in episodes[:SAMPLED]])
        rows = np.concatenate([np.roll(np.arange(len(goal)), k) for k in range(FEWEST)])  # each goal with other positions
        desired = goal[rows].astype(np.float64)
        usual = np.maximum(goal.std(0), last.std(0))
        gap = usual * HARDLY ** rng.random(desired.shape) * rng.choice([-1, 1], desired.shape)
        self._achieved = np.concatenate([np.tile(last, (FEWEST, 1)), desired + gap])
        self._desired = np.concatenate([desired, desired])
        self._info = {key: np.concatenate([values[rows], values[rows]]) for key, values in info.items()}
        self._before = self._rewards(self._achieved, self._desired)

    def _rewards(self, achieved: Array, desired: Array) -> Array | None:
        return self._ask(achieved.astype(self._dtype), desired.astype(self._dtype), self._info)

    def changed_by(self, goal: AffineMap) -> float | None:
        """Return the fraction of the pairs whose reward a change of goals changes; None if the reward gives no answer.

        Pairs that have the commonest reward before and after do not count: they show nothing.
        """
        before, after = self._before, self._rewards(goal.apply(self._achieved), goal.apply(self._desired))
        if before is None or after is None:
            return None
        values, counts = np.unique(before, return_counts=True)
        is_telling = (before != values[counts.argmax()]) | (after != values[counts.argmax()])
        is_changed = ~np.isclose(before, after, rtol=HARDLY, atol=HARDLY * float(before.std()))
        return float(is_changed[is_telling].mean()) if is_telling.any() else None


def count_tolerance_levels(compute_reward: RewardOf, episodes: Sequence[Episode]) -> int:
    """Return how often the difference between start and goal must be halved until most starts are successes.

    0 if most starts are successes, or if they never become one, as with dense rewards, and if the reward cannot answer for
    goals between start and goal.
    """
    achieved, goal = (np.stack([np.asarray(g[0]) for g in goals]) for goals in zip(*map(_goals, episodes), strict=True))
    info = {key: np.stack([each.info[key][0] for each in episodes]) for key in episodes[0].info}
    ask = GuardedReward(compute_reward)
    success = ask(goal, goal, info)
    for k in range(MOST_LEVELS + 1):
        rewards = ask((goal + (achieved - goal) / 2**k).astype(goal.dtype), goal, info)
        if success is None or rewards is None:
            return 0
        if (rewards == success).mean() > MOSTLY:
            return k
    return 0


def _goals(episode: Episode) -> tuple[Array, Array]:
    return episode.achieved_goal, episode.desired_goal


def _last_goals(episodes: Sequence[Episode]) -> tuple[Array, dict[str, Array]]:
    last = episodes[:SAMPLED]
    goal = np.stack([np.asarray(each.desired_goal[-1]) for each in last])
    return goal, {key: np.stack([each.info[key][-1] for each in last]) for key in last[0].info}


def find_success_distances(
    compute_reward: RewardOf, episodes: Sequence[Episode], objects: Sequence[Sequence[int]]
) -> tuple[float, ...] | None:
    """Return how far each object may be from its goal if all of them are: as much of the distance that it may be alone.

    objects: dimensions of each. None as in `find_success_distance`.
    """
    alone = [find_success_distance(compute_reward, episodes, [each]) for each in objects]
    known = [each for each in alone if each]
    if len(known) < len(alone):
        return None
    part = find_success_distance(compute_reward, episodes, objects, known) if len(known) > 1 else 1.0
    return None if part is None else tuple(part * each for each in known)


def find_success_distance(
    compute_reward: RewardOf,
    episodes: Sequence[Episode],
    objects: Sequence[Sequence[int]] = (),
    sizes: Sequence[float] = (),
) -> float | None:
    """Return the largest distance, along single dimensions of the goal, at which the reward is still that of a success.

    Both sides of a goal count: the smaller distance that is not 0.
    objects: dimensions of each object. All of them are so far from their goals then, along the same axis.
    sizes: of each object; the distance counts in them. Empty: in the unit of the goal.
    None if the reward has more than two values or has one value on a side, if the distance differs between goals or
    dimensions by more than a tenth, or if the reward cannot answer for such goals.
    """
    of_sides = [_distance_on_side(compute_reward, episodes, objects, sizes, side) for side in (1, -1)]
    known = [each for each in of_sides if each is not None]
    return min(filter(None, known), default=0.0) if len(known) == len(of_sides) else None


def _distance_on_side(
    compute_reward: RewardOf,
    episodes: Sequence[Episode],
    objects: Sequence[Sequence[int]],
    sizes: Sequence[float],
    side: int,
) -> float | None:
    """Return what `find_success_distance` returns of achieved goals above, or with a side of -1 below, the desired ones."""
    goal, info = _last_goals(episodes)
    together = [list(axis) for axis in zip(*objects, strict=True)] if objects else [[k] for k in range(goal.shape[1])]
    ask = GuardedReward(compute_reward)
    unit = side * np.array(sizes if sizes else [1.0])
    farthest = MOST_DEVIATIONS * float(np.linalg.norm(goal.std(0))) / float(np.abs(unit).max())

    def rewards(distance: Array) -> Array:
        """distance: (goals, axes). Returns rewards where one axis after another is so far away, the same shape.

        NaN without an answer.
        """
        columns = []
        for k, dimensions in enumerate(together):
            achieved = goal.copy()
            achieved[:, dimensions] += distance[:, k, None] * unit
            found = ask(achieved, goal, info)
            columns.append(np.full(len(goal), np.nan) if found is None else found)
        return np.stack(columns, 1)

    low = np.zeros((len(goal), len(together)))
    high = np.full(low.shape, farthest)
    success, failure = rewards(low), rewards(high)
    if np.ptp(success) != 0 or np.ptp(failure) != 0 or not success[0, 0] > failure[0, 0]:  # NaN differs from 0
        return None
    while (high - low).max() > FLOAT32_ROUNDING * farthest:
        middle = (low + high) / 2
        found = rewards(middle)
        if not np.isin(found, (success[0, 0], failure[0, 0])).all():
            return None
        is_success = found == success[0, 0]
        low, high = np.where(is_success, middle, low), np.where(is_success, high, middle)
    return float(low.min()) if low.min() >= ALIKE * low.max() else None


def errors_add_up(compute_reward: RewardOf | None, episodes: Sequence[Episode], dimensions: Sequence[int]) -> bool:
    """Return whether errors in these dimensions of the goal add up to one distance, which decides what is a success.

    Then less of each is allowed where all of them are wrong. False without a reward, or if `find_success_distance` gives no
    answer.
    """
    if compute_reward is None:
        return False
    of_one = find_success_distance(compute_reward, episodes)
    of_all = find_success_distance(compute_reward, episodes, [[k] for k in dimensions])
    return of_one is not None and of_all is not None and of_all < ALIKE * of_one


@dataclass
class Endings:
    """What the episodes so far say about whether a success ends an episode, and with which rewards.

    n_ended: episodes that ended with a success. least_reward: the smallest reward of these last steps.
    n_open: episodes whose last step was a success that ended nothing. highest_other: the highest reward of all other steps.
    """

    n_ended: int = 0
    least_reward: float | None = None
    n_open: int = 0
    highest_other: float | None = None

    def add(self, episode: Episode) -> None:
        """Take an episode into account."""
        others = episode.reward
        if episode.success and episode.terminated:
            last, others = float(others[-1]), others[:-1]
            self.n_ended += 1
            self.least_reward = last if self.least_reward is None else min(self.least_reward, last)
        self.n_open += bool(episode.success and not episode.terminated)
        if len(others):
            highest = float(others.max())
            self.highest_other = highest if self.highest_other is None else max(self.highest_other, highest)

    @property
    def is_clear(self) -> bool:
        """Whether all successes ended their episode, with rewards that no other step has."""
        if self.least_reward is None or self.n_ended < MIN_SUCCESSES or self.n_open:
            return False
        return self.highest_other is None or self.highest_other < self.least_reward

    def contradict(self, success_reward: float) -> bool:
        """Whether a success ended nothing, or another step had a reward of at least `success_reward`."""
        return self.n_open > 0 or (self.highest_other is not None and self.highest_other >= success_reward)

    def choices(self) -> tuple[Choice, ...]:
        """Return the options that end relabelled episodes as real ones."""
        why = f"{self.n_ended} of {self.n_ended} successes ended their episode, with rewards that no other step has"
        return Choice("relabel_terminated", "success", why), Choice("success_reward", self.least_reward, why)
