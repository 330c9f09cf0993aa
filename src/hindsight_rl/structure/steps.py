"""Transitions of episodes as plain arrays, and the statistics that every kind of structure is inferred with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np

from ..records import Array, Episode
from ..records.statistics import FLOAT32_ROUNDING

MOSTLY = 0.5  # a majority: of steps, of episodes, of goals, of a usual distance
# of the size of a task, as the standard deviation of its goals: what is nearer is beside. With 0.2, guesses of the tool
# touch the cube of FetchPush less often, and learning begins up to 1,000 steps later.
BESIDE = 0.25
LITTLE = 0.2  # of what is usual or explained, of episodes, of a success rate: less does not count
EXCEPTIONS = 0.1  # of contacts, of positions: so many of the nearest, and of the farthest, are not typical
ALIKE = 0.9  # correlation or ratio from which on two columns, displacements or distances are alike
HARDLY = 0.01  # of a range, of a variance, of what is usual: less may be an accident
TINY = float(np.finfo(np.float64).tiny)  # in place of 0 where something is divided by it
ROUNDED = 1e-12  # a spread that is as good as 0, because values are rounded
DIGITS = 4  # of the size of a task, to which positions are rounded that options or sentences hold
MOST_DEVIATIONS = 6.0  # standard deviations or errors: noise hardly exceeds them, and rare jumps must not outweigh the rest
UPPER_QUARTILE = NormalDist().quantiles()[-1]  # of a normal distribution: half of its values are nearer to its mean
SAMPLED = 32  # rows or episodes that are compared where all of them would take long
FEWEST = 10  # episodes or different values: fewer may agree with a hypothesis by accident
ERROR_RATE = 0.05  # of all hypotheses that are tested together
HELD_OUT = 3  # a third of the episodes is held out, each third in turn: consecutive steps are too alike to be independent


@dataclass(frozen=True, eq=False)
class Steps:
    """N transitions, one after another. All arrays are float64 with N rows; `episode` numbers the episodes from 0.

    noise: standard deviation of the sensor noise in displacements of the achieved goal, (goal size,); None: there is none.
    others_moved: how far the objects that were left out move, in standard deviations of their goals; None: none was.
    own_motion: how the achieved goal moves by itself, (N, goal size), which is no displacement; None: it does not.
    fails: whether the episode ends with this step, too early and without a success, (N,) bool; None: not known.
    """

    observation: Array
    action: Array
    next_observation: Array
    achieved_goal: Array
    next_achieved_goal: Array
    desired_goal: Array
    episode: Array
    noise: Array | None = None
    others_moved: Array | None = None
    own_motion: Array | None = None
    fails: Array | None = None

    @classmethod
    def from_episodes(
        cls, episodes: Sequence[Episode], noise: Array | None = None, success_reward: float | None = None
    ) -> Steps:
        """Stack the transitions of episodes whose observations, goals and actions are flat arrays of numbers.

        success_reward: the reward of a success; None: it is not known, nor is which episodes fail.
        """

        def stack(name: str, rows: slice) -> Array:
            return np.concatenate(
                [np.asarray(getattr(e, name), np.float64).reshape(len(e) + 1, -1)[rows] for e in episodes]
            )

        before, after = slice(None, -1), slice(1, None)
        longest = max(map(len, episodes))  # what ends there may be out of time
        limit = -np.inf if success_reward is None else success_reward
        fails = [e.terminated and e.reward[-1] < limit and len(e) < longest for e in episodes]
        return cls(
            observation=stack("observation", before),
            action=np.concatenate([np.asarray(e.action, np.float64).reshape(len(e), -1) for e in episodes]),
            next_observation=stack("observation", after),
            achieved_goal=stack("achieved_goal", before),
            next_achieved_goal=stack("achieved_goal", after),
            desired_goal=stack("desired_goal", before),
            episode=np.repeat(np.arange(len(episodes)), [len(e) for e in episodes]),
            noise=noise,
            fails=np.concatenate([(np.arange(len(e)) == len(e) - 1) & f for f, e in zip(fails, episodes, strict=True)]),
        )

    def of_objects(self, objects: Sequence[Sequence[int]]) -> list[Steps]:
        """Return the steps with the dimensions of the goal of each object alone. objects: their dimensions."""
        found = []
        for dimensions in objects:
            one = self._with_dimensions(dimensions)
            others = self._with_dimensions([k for other in objects if other is not dimensions for k in other])
            moved = others.moved / max(others.goal_std, ROUNDED)
            found.append(replace(one, others_moved=moved) if others.goal_size else one)
        return found

    def _with_dimensions(self, dimensions: Sequence[int]) -> Steps:
        names = ("achieved_goal", "next_achieved_goal", "desired_goal", "noise", "own_motion")
        given = {name: values for name in names if (values := getattr(self, name)) is not None}
        return replace(self, **{name: values[..., list(dimensions)] for name, values in given.items()})

    @classmethod
    def join(cls, parts: Sequence[Steps]) -> Steps:
        """Return steps one after another, as of different episodes. All or none of them leave objects out."""
        values: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in cls.__dataclass_fields__
            if name != "noise" and getattr(parts[0], name) is not None
        }
        noises = [part.noise for part in parts if part.noise is not None]
        values["noise"] = np.max(noises, axis=0) if noises else None
        first = np.cumsum([0, *(part.episode[-1] + 1 for part in parts[:-1])])
        values["episode"] = np.concatenate([part.episode + start for part, start in zip(parts, first, strict=True)])
        return cls(**values)

    def __len__(self) -> int:
        """The number of transitions."""
        return len(self.action)

    @property
    def n_columns(self) -> int:
        """The number of columns of an observation."""
        return int(self.observation.shape[1])

    @property
    def goal_size(self) -> int:
        """The number of dimensions of a goal."""
        return int(self.achieved_goal.shape[1])

    @cached_property
    def change(self) -> Array:
        """How each observation column changes in each step, (N, columns). An angle that jumps to -pi goes on."""
        return without_jumps(self.next_observation - self.observation, self.observation)

    @cached_property
    def angles(self) -> Array:
        """The columns that are angles and jump from pi to -pi, say: there `change` goes on."""
        return np.flatnonzero((self.change != self.next_observation - self.observation).any(0))

    @cached_property
    def displacement(self) -> Array:
        """How each dimension of the achieved goal changes in each step, (N, goal size); 0 where that may be noise."""
        change = self.next_achieved_goal - self.achieved_goal
        change = change if self.own_motion is None else change - self.own_motion
        return change if self.noise is None else np.where(np.abs(change) <= MOST_DEVIATIONS * self.noise, 0.0, change)

    @property
    def moved(self) -> Array:
        """How far the achieved goal moves in each step, (N,), Euclidean, in the units of the goal."""
        return np.asarray(np.linalg.norm(self.displacement, axis=1))

    @property
    def previous_action(self) -> Array:
        """The action of the step before, (N, action size), 0 in the first step of an episode."""
        return self.of_step_before(self.action)

    def of_step_before(self, values: Array) -> Array:
        """Return what each transition's predecessor has in `values`, (N, m), 0 in the first step of an episode."""
        return np.asarray(np.where(self.starts_episode[:, None], 0.0, np.roll(values, 1, axis=0)))

    @property
    def goal_std(self) -> float:
        """Standard deviation of the desired goals over episodes, Euclidean, in the units of the goal.

        If all of them are the same, it is their distance to the starts (root mean square).
        """
        start = self.starts_episode
        goals = self.desired_goal[start]
        if (goals == goals[0]).all():
            return float(np.sqrt(np.square(goals - self.achieved_goal[start]).sum(1).mean()))
        return float(np.linalg.norm(goals.std(0)))

    @property
    def is_asked(self) -> Array:
        """Whether some episode begins elsewhere than its goal is, in each dimension of it, (goal size,) bool."""
        start = self.starts_episode
        return np.asarray((self.desired_goal[start] != self.achieved_goal[start]).any(0))

    @cached_property
    def time(self) -> Array:
        """The number of the step in its episode, from 0, (N,)."""
        first = np.flatnonzero(self.starts_episode)
        return np.arange(len(self)) - np.repeat(first, np.diff(np.append(first, len(self))))

    @cached_property
    def failures(self) -> Array:
        """The numbers of the steps in which episodes fail, ascending; none if that is not known."""
        return np.flatnonzero(False if self.fails is None else self.fails)

    @property
    def starts_episode(self) -> Array:
        """Whether each transition is the first of its episode, (N,) bool."""
        return np.append(True, np.diff(self.episode) != 0)


def without_jumps(change: Array, observation: Array) -> Array:
    """Return changes (N, columns) without the jumps of angles, which are what is left beside the range of the column.

    A column is an angle if it is often in the middle of its range, usually changes a little, and jumps by nearly its whole
    range: what is left is little, too. A flag jumps, too, but it is never in the middle.
    """
    size, low, extent = np.abs(change), observation.min(0), np.ptp(observation, axis=0)
    jumps = size > MOSTLY * extent
    usual = np.where(jumps, 0.0, size)
    left = np.where(jumps, np.abs(size - extent), 0.0)
    goes_on = (np.median(usual, axis=0) > 0) & (np.maximum(usual, left).max(0) < LITTLE * extent)
    is_between = np.abs(observation - low - extent / 2) < MOSTLY * extent / 2
    is_angle = goes_on & (is_between.mean(0) > LITTLE)
    return np.asarray(np.where(jumps & is_angle, change - np.sign(change) * extent, change))


def measure_noise(steps: Steps) -> Array | None:
    """Return the standard deviation of the sensor noise in displacements of the achieved goal, (goal size,); None for none.

    Most displacements are noise if they go back and forth, as readings of what rests do, and no action explains them.
    steps: with random actions, in which objects mostly rest.
    """
    change = steps.next_achieved_goal - steps.achieved_goal
    usual = np.median(np.abs(change), axis=0) / UPPER_QUARTILE
    inside = np.where(np.abs(change) <= MOST_DEVIATIONS * usual, change, 0.0)  # what is touched moves farther, and goes on
    sign, sign_before = np.sign(inside), steps.of_step_before(np.sign(inside))
    agreement = (sign * sign_before).sum(0) / np.maximum(np.abs(sign * sign_before).sum(0), 1)  # -1/3: all is noise
    is_noise = (usual > 0) & (agreement < -LITTLE)
    if is_noise.any():  # what follows the action at once also goes back and forth
        both = np.column_stack([steps.action, steps.previous_action])
        r2 = explained_variance(np.column_stack([both, np.square(both)]), inside, steps.episode)
        is_noise &= r2 < LITTLE
    return np.where(is_noise, usual, 0.0) if is_noise.any() else None


def regress(inputs: Array, targets: Array, own: Array) -> tuple[Array, Array]:
    """Return the weights of a linear regression: those of inputs and of a constant, (k + 1, m), and that of `own`, (m,).

    inputs: (N, k). targets: (N, m). own: (N, m), one more input for each target alone.
    Inputs of which one is a combination of the others, up to rounding, get no large weights: as a position, and the gap to
    an object at a constant height.
    """
    design = np.column_stack([inputs, np.ones(len(inputs))])
    norm = np.linalg.norm(design, axis=0)
    scale = np.where(norm > 0, norm, np.inf)  # what is always 0 here gets no weight for where it is not
    scaled = np.linalg.lstsq(design / scale, np.column_stack([targets, own]), rcond=FLOAT32_ROUNDING)[0]
    both = scaled / scale[:, None]
    fitted, of_own = np.split(both, 2, axis=1)
    left = own - design @ of_own
    slope = ((targets - design @ fitted) * left).sum(0) / np.maximum(np.square(left).sum(0), TINY)
    return fitted - slope * of_own, slope


def explained_variance(inputs: Array, targets: Array, episode: Array, own: Array | None = None) -> Array:
    """Return the cross-validated R2 of each target column under linear regression, at most 1.

    inputs, targets, own: as in `regress`; own may be None. episode: (N,) numbers. Returns (m,); 0 for a target that does
    not vary.
    """
    own = np.zeros(targets.shape) if own is None else own
    _, episode = np.unique(episode, return_inverse=True)
    residual, deviation = np.zeros(targets.shape), np.zeros(targets.shape)
    for fold in range(HELD_OUT):
        out = episode % HELD_OUT == fold
        weights, slope = regress(inputs[~out], targets[~out], own[~out])
        residual[out] = targets[out] - inputs[out] @ weights[:-1] - weights[-1] - slope * own[out]
        deviation[out] = targets[out] - targets[~out].mean(0)
    unexplained, variation = np.square(residual).sum(0), np.square(deviation).sum(0)
    return np.asarray(np.where(variation > 0, 1 - unexplained / np.where(variation > 0, variation, 1.0), 0.0))


def correlations(values: Array, signals: Array) -> Array:
    """Return the correlations of columns (N, m) with signals (s, N), (m, s); 0 for what does not vary."""
    return np.asarray(with_unit_norm(values).T @ with_unit_norm(signals.T))


def with_unit_norm(values: Array) -> Array:
    """Return columns (N, m), or one (N,), with mean 0 and norm 1; 0 where they do not vary."""
    centred = values - values.mean(0)
    return np.asarray(centred / np.maximum(np.linalg.norm(centred, axis=0), ROUNDED))


def standardize(values: Array) -> Array:
    """Return the columns with mean 0 and standard deviation 1, clipped. Constant ones, up to rounding, become 0."""
    deviation = values.std(0) + FLOAT32_ROUNDING * np.abs(values).max(0, initial=0.0)
    centred = (values - values.mean(0)) / np.where(deviation > 0, deviation, 1.0)
    return np.asarray(np.clip(centred, -MOST_DEVIATIONS, MOST_DEVIATIONS))


def lie_on_one_side(values: Array) -> Array:
    """Return whether the mean of each column (N, m) is far from 0: a mirror does not change the sign of such a column."""
    return np.asarray(np.abs(values.mean(0)) >= MOSTLY * values.std(0))


def clear_mean(values: Array) -> Array:
    """Return the mean of values, (n, columns), and 0 where it may well be 0: most tasks have their origin in the middle."""
    mean, error = values.mean(0), values.std(0) / np.sqrt(len(values))
    return np.where(np.abs(mean) > MOST_DEVIATIONS * error, mean, 0.0)


def rounded(values: Array, size: float, digits: int = DIGITS) -> Array:
    """Return values rounded to so many digits of a size, wherever they lie."""
    return values.round(digits - math.ceil(math.log10(max(size, ROUNDED))))


def at_equal_intervals(n: int, most: int) -> Array:
    """Return at most so many of the numbers below n, at equal intervals."""
    return np.arange(n) if n <= most else np.unique(np.linspace(0, n - 1, most).astype(np.int64))
