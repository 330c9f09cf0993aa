"""Transforms: the steps of the sampler's pipeline after the gather, one small class each.

Rewards and terminations of relabelled samples, n-step returns, subgoals, symmetries, importance weights, and stored goals.
A transform is called as transform(batch, draw, rng) and changes the batch in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import FileError, GoalEnvError, OptionError
from ..options import ReplayOptions
from ..options.relabel import DEFAULT_N_SAMPLED_GOAL, Relabel
from ..records import Array, Batch
from ..records.subgoals import Subgoal, parse_subgoals
from ..records.symmetries import Symmetries
from .kernels import apply_symmetry, gather, row_layout, write_rewards
from .priorities import Priorities
from .rows import BatchMemory, Draw, as_bytes, check_stored
from .sampler import GoalSampler, RandomState, RowSampler, Transform
from .strategies import (
    AS_STORED,
    DESIRED,
    RewardFunction,
    Strategy,
    Termination,
    check_strategy,
    custom_rows,
    her_probability,
    mixed_rows,
    refuse_goal_rows,
)
from .timeline import Timeline, zero_rows

TRANSFORMED = {
    "observation": "observation",
    "next_observation": "observation",
    "achieved_goal": "goal",
    "next_achieved_goal": "goal",
    "goal": "goal",
    "action": "action",
}  # field of a batch that a symmetry changes: the columns that it holds
_BELOW_ONE = 1 - 1e-12  # rounding must not choose a goal outside the fractions of a mixture


class RewardTransform:
    """Recompute the rewards and terminations of relabelled samples with the functions of the environment.

    desired_goals: the desired goals of all rows, for `extra_reward`: the part of a reward that compute_reward leaves out,
        such as a penalty for a crash, is then added under every goal. None: that part is lost where samples are relabelled.
    """

    def __init__(
        self, compute_reward: RewardFunction, termination: Termination = AS_STORED, desired_goals: Array | None = None
    ) -> None:
        self.compute_reward, self.termination, self._desired_goals = compute_reward, termination, desired_goals

    def __call__(self, batch: Batch, draw: Draw, rng: RandomState) -> None:
        """Overwrite reward and terminated where relabelled. The functions get read-only views.

        Raises GoalEnvError if a function returns what cannot be used.
        """
        achieved, goal = _read_only(batch.next_achieved_goal), _read_only(batch.goal)
        info = {key: _read_only(values) for key, values in draw.info.items()} if draw.info else {}
        recomputed = reward = _call(self.compute_reward, "compute_reward", achieved, goal, info)
        if self._desired_goals is not None:
            own_goal = _read_only(self._desired_goals[batch.row])
            reward = recomputed + batch.reward - _call(self.compute_reward, "compute_reward", achieved, own_goal, info)
        if not write_rewards(reward, batch.reward, batch.is_relabelled):
            raise GoalEnvError("compute_reward must return finite rewards for every achieved goal, got NaN or infinity.")
        if self.termination is not AS_STORED:
            self._terminate(batch, achieved, goal, info, recomputed)

    def _terminate(self, batch: Batch, achieved: Array, goal: Array, info: dict[str, Array], reward: Array) -> None:
        """Overwrite terminated where relabelled. reward: without extra reward, which does not decide success."""
        function, least_reward = self.termination
        if function is not None:
            terminated = _call(function, "compute_terminated (or compute_success)", achieved, goal, info).astype(np.bool_)
            np.copyto(batch.terminated, terminated, where=batch.is_relabelled)
        elif least_reward is not None:
            is_success = reward.astype(batch.reward.dtype) >= least_reward
            np.copyto(batch.terminated, is_success, where=batch.is_relabelled)


def _read_only(array: Array) -> Array:
    view = array.view()
    view.setflags(write=False)
    return view


def _call(function: RewardFunction, name: str, achieved: Array, goal: Array, info: dict[str, Array]) -> Array:
    """Return what a function of the environment returns, (B,) numbers."""
    try:
        values = np.asarray(function(achieved, goal, info))
    except ValueError as problem:
        if "read-only" not in str(problem):
            raise
        raise GoalEnvError(f"{name} must not write into its arguments ({problem}). Let it work on copies.") from problem
    if values.shape != (len(goal),) or values.dtype.kind not in "fiub":
        wanted, got = f"numbers of shape ({len(goal)},) for {len(goal)} goals", f"shape {values.shape} of {values.dtype}"
        raise GoalEnvError(f"{name} must return {wanted}, got {got}. Vectorize it, or let make_buffer wrap it.")
    return values


def already_achieved_fraction(compute_reward: RewardFunction, batch: Batch) -> float | None:
    """See `HindsightBuffer.already_achieved_fraction`."""
    here = batch.is_relabelled
    if not here.any():
        return None
    goal = batch.goal[here]
    before, at_goal = (np.asarray(compute_reward(a, goal, {})) for a in (batch.achieved_goal[here], goal))
    return float(np.mean(before >= at_goal))


class NStepReturn:
    """Replace one-step samples by n-step returns under the goal of the sample, not corrected for the policy.

    A sample spans m steps: up to n, fewer if the episode ends or terminates before. `reward` becomes the discounted sum,
    next_observation and next_achieved_goal those after the last step, `terminated` that of the last step, and `discount`
    becomes discount**m, or 0 where the last step terminated (Hessel et al. 2018, without off-policy correction).
    """

    def __init__(self, timeline: Timeline, rewards: RewardTransform, n_steps: int, discount: float) -> None:
        self._timeline, self._rewards, self._n_steps, self._discount = timeline, rewards, n_steps, discount
        self._ring = as_bytes(timeline.rows)
        self._memories: dict[int, BatchMemory] = {}

    def __call__(self, batch: Batch, draw: Draw, rng: RandomState) -> None:
        """Gather the next steps of each sample, recompute their rewards, and sum them."""
        steps_left = self._timeline.steps_left[batch.row]
        steps = self._next_steps(batch, draw, steps_left)
        self._rewards(steps.flat, steps, rng)
        sum_steps(steps.batch, steps_left, self._discount, batch)

    def _next_steps(self, batch: Batch, draw: Draw, steps_left: Array) -> Draw:
        """Return the steps of each sample under its goal, (n, B); those behind the end repeat the last step."""
        n, size = self._n_steps, len(batch)
        memory = self._memories.get(size)
        if memory is None:
            memory = self._memories[size] = BatchMemory(self._timeline.rows.dtype, (n, size))
        steps = memory.allocate()
        steps.batch.row[:] = batch.row + np.minimum(np.arange(n)[:, None], steps_left - 1)
        steps.batch.is_relabelled[:] = batch.is_relabelled
        steps.goal_at.reshape(n, size)[:] = draw.goal_at
        gather(self._ring, self._timeline.rows.itemsize, steps.flat.row, steps.goal_at, steps.plan, steps.block)
        return steps


def sum_steps(steps: Batch, steps_left: Array, discount: float, batch: Batch) -> None:
    """Write the n-step returns of `steps`, arrays (n, B, ...), into `batch`, arrays (B, ...), see NStepReturn.

    steps_left: (B,), of the first steps.
    """
    n, size = steps.reward.shape
    step = np.arange(n)[:, None]
    terminated_before = np.cumsum(steps.terminated, axis=0) > steps.terminated
    is_used = (step < steps_left) & ~terminated_before
    n_used = is_used.sum(axis=0)
    last = n_used - 1, np.arange(size)
    batch.reward[:] = np.where(is_used, discount**step * steps.reward, 0.0).sum(axis=0)
    for name in ("terminated", "next_observation", "next_achieved_goal"):
        getattr(batch, name)[:] = getattr(steps, name)[last]
    if batch.discount is not None:
        batch.discount[:] = np.where(batch.terminated, 0.0, discount**n_used)


def check_subgoals(subgoals: Sequence[str], options: ReplayOptions) -> tuple[str, ...]:
    """Return `subgoals`. Raises OptionError for options that do not fit them."""
    wanted = {"relabel_at": "sample", "extra_reward": False, "n_steps": 1} if subgoals else {}
    for name, value in wanted.items():
        if getattr(options, name) != value:
            raise OptionError(f"{name} must be {value!r} with subgoals, got {getattr(options, name)!r}.")
    return tuple(subgoals)


class SubgoalTransform:
    """Relabel a fraction of the samples with the goals of subgoals (relay HER, Luo et al. 2023).

    texts: subgoals as `hindsight.records.subgoals` describes them. The fraction is split evenly between them.
    success_reward: reward where a subgoal is reached. It is one less elsewhere.
    symmetries: those that are applied to the samples. They must transform the columns of subgoals as they do goals.
    """

    def __init__(
        self, timeline: Timeline, texts: Sequence[str], fraction: float, success_reward: float, symmetries: Symmetries
    ) -> None:
        self.subgoals: tuple[Subgoal, ...] = parse_subgoals(texts, timeline.spec)
        for subgoal in self.subgoals:
            _refuse_other_symmetry(subgoal, symmetries)
        self.fraction, self.success_reward = fraction, success_reward
        self._observations: Array = timeline.rows["observation"]
        *_, self._row_bytes, _, self._desired_at = row_layout(timeline.rows.dtype).tolist()

    def __call__(self, batch: Batch, draw: Draw, rng: RandomState) -> None:
        """Choose the samples of each subgoal. `subgoal` of the batch says which subgoal a sample has, 0 for none."""
        u = rng.uniform(len(batch))
        subgoal = np.where(u < self.fraction, 1 + (u / max(self.fraction, 1e-9) * len(self.subgoals)).astype(np.int64), 0)
        for number, each in enumerate(self.subgoals, 1):
            self._relabel(batch, draw.goal_at, np.flatnonzero(subgoal == number), each)
        draw.batch.subgoal = subgoal.reshape(draw.batch.row.shape)

    def _relabel(self, batch: Batch, goal_at: Array, here: Array, subgoal: Subgoal) -> None:
        """Write goals and rewards of `subgoal` into the samples `here`.

        The goal comes from the row of the sample's goal: the subgoal achieved there if relabelled, else desired there.
        """
        goal_row, place = np.divmod(goal_at[here], self._row_bytes)
        is_desired = (place == self._desired_at)[:, None]
        there = self._observations[goal_row]
        batch.achieved_goal[here] = batch.observation[here][:, subgoal.achieved]
        batch.next_achieved_goal[here] = reached = batch.next_observation[here][:, subgoal.achieved]
        batch.goal[here] = goal = np.where(is_desired, there[:, subgoal.goal], there[:, subgoal.achieved])
        is_met = np.sqrt(np.square(reached - goal).sum(1)) < subgoal.tolerance
        batch.reward[here] = self.success_reward - 1.0 + is_met
        batch.terminated[here] = False


def _refuse_other_symmetry(subgoal: Subgoal, symmetries: Symmetries) -> None:
    """Raise OptionError unless the symmetries transform the columns of `subgoal` as they transform goals."""
    observation, goal = symmetries.maps["observation"], symmetries.maps["goal"]
    for columns in (subgoal.achieved, subgoal.goal):
        at = list(columns)
        is_same = np.array_equal(observation.source[:, at], np.array(columns)[goal.source])
        is_same &= np.array_equal(observation.sign[:, at], goal.sign)
        if not (is_same and np.allclose(observation.offset[:, at], goal.offset)):
            which = f"the columns {columns} of the subgoal {subgoal.name}"
            raise OptionError(f"The symmetries must transform {which} as they transform goals.")


class SymmetryTransform:
    """Apply a random group element to each sample. Rewards are computed before: no symmetry changes them."""

    def __init__(self, symmetries: Symmetries) -> None:
        self._symmetries = symmetries

    def __call__(self, batch: Batch, draw: Draw, rng: RandomState) -> None:
        """Transform observations, goals and actions in place."""
        element = (rng.uniform(len(batch)) * len(self._symmetries)).astype(np.int64)
        for field, columns in TRANSFORMED.items():
            maps = self._symmetries.maps[columns]
            apply_symmetry(getattr(batch, field), element, maps.source, maps.sign, maps.offset)


class WeightTransform:
    """Set the importance weights (N * p / total) ** -beta of prioritized samples, divided by their maximum in each batch.

    It is the last transform, because it replaces `row` by write positions, which `update_priorities` needs.
    beta: 0 (no correction) to 1 (full correction). It may be changed at any time.
    """

    def __init__(self, timeline: Timeline, priorities: Priorities | None, beta: float) -> None:
        self._timeline, self._priorities, self.beta = timeline, priorities, beta

    def __call__(self, batch: Batch, draw: Draw, rng: RandomState) -> None:
        """Set `weight` and `row` of the batch. N and total cancel out. Without priorities, nothing changes."""
        if self._priorities is None:
            return
        values = self._priorities.values(draw.batch.row)
        draw.batch.weight = ((values.min(axis=-1, keepdims=True) / values) ** self.beta).astype(np.float32)
        if self._timeline.wraps:
            batch.row[:] = self._timeline.positions(batch.row)


class StoredGoals:
    """Relabelled goals that are drawn once, when an episode ends (Stable Baselines 2), and kept beside its rows.

    As row data of a timeline it draws k goals for each row of an episode that enters. As a transform it relabels a sample
    with one of the goals of its row; the rewards are recomputed afterwards.
    strategy, n_sampled_goal: as in ReplayOptions. k is n_sampled_goal, 4 for a Relabel, and at most 1 for "final".
    probability: fraction of the samples that are relabelled.
    goals: (rows, k, ...), in the dtype of the timeline.
    """

    def __init__(self, rows: RowSampler, rng: RandomState, strategy: Strategy, n_sampled_goal: int | None) -> None:
        self._rows, self._rng = rows, rng
        self.probability = her_probability(check_strategy(strategy), n_sampled_goal)
        self._strategy = Relabel(**{strategy: 1.0}) if isinstance(strategy, str) else strategy
        k = DEFAULT_N_SAMPLED_GOAL if n_sampled_goal is None else n_sampled_goal
        if isinstance(self._strategy, Relabel) and self._strategy.only == "final":
            k = min(k, 1)
        self._k = k if self.probability else 0
        goal, n_rows = rows.timeline.rows.dtype["desired_goal"], len(rows.timeline.rows)
        self.goals = zero_rows(n_rows * self._k, goal).reshape(n_rows, self._k, *goal.shape)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.goals.nbytes

    def __call__(self, batch: Batch, draw: Draw, rng: RandomState) -> None:
        """Relabel each sample with `probability`, with one of the goals of its row, each equally likely."""
        u = rng.uniform(len(batch))
        np.less(u, self.probability, out=batch.is_relabelled)
        if self._k:
            which = np.minimum((u / self.probability * self._k).astype(np.int64), self._k - 1)
            goals = self.goals.reshape(-1, *self.goals.shape[2:]).take(batch.row * self._k + which, axis=0)
            batch.goal[batch.is_relabelled] = goals[batch.is_relabelled]

    def prepare(self, rows: Array) -> Array:
        """Return the (T, k) goals of an episode of T + 1 records, whose rows are numbered from the end of the ring.

        Goals of other episodes are drawn from what is stored before the episode enters, and from the episode itself.
        Raises InputError if a custom strategy returns what cannot be used.
        """
        steps, timeline = len(rows) - 1, self._rows.timeline
        first = len(timeline.rows)
        row = np.repeat(np.arange(first, first + steps), self._k)
        steps_done, steps_left = row - first, first + steps - row
        source = np.zeros(len(row), np.int64)
        if isinstance(self._strategy, Relabel):
            reads_others = self._strategy.random or self._strategy.desired
            other_row = self._other_rows(steps, len(row)) if reads_others else row
            u = self._rng.uniform(len(row)) * (self._strategy.fraction * _BELOW_ONE)
            goal_row, source = mixed_rows(self._strategy, row, steps_done, steps_left, u, other_row)
        elif callable(self._strategy):
            goal_row = custom_rows(self._strategy, row, steps_done, steps_left, self._rng.uniform(len(row)).copy())
            is_own = (goal_row >= first) & (goal_row <= first + steps)
            refuse_goal_rows(goal_row, is_own | timeline.holds(goal_row))
        return _read_goals(timeline.rows, rows, goal_row, source == DESIRED).reshape(steps, *self.goals.shape[1:])

    def _other_rows(self, steps: int, size: int) -> Array:
        """Return rows that start a transition, of all that is stored or of the episode that enters, each equally likely."""
        timeline = self._rows.timeline
        index = (self._rng.uniform(size) * (timeline.num_transitions + steps)).astype(np.int64)
        other_row, is_stored = len(timeline.rows) + index, index >= steps
        if is_stored.any():
            other_row[is_stored] = self._rows.uniform(int(is_stored.sum()))
        return other_row

    def enter(self, first: int, rows: Array, prepared: Array) -> None:
        """Keep the goals of an episode that was written from row `first` on."""
        self.goals[first : first + len(prepared)] = prepared

    def leave(self, first: int, steps: int) -> None:
        """Do nothing: goals of evicted rows are never selected."""

    def state(self, n_rows: int) -> dict[str, Array]:
        """Return what `load` needs: a view of the goals of the first `n_rows` rows."""
        return {"stored_goals": self.goals[:n_rows]}

    def check(self, state: Mapping[str, Array], steps_left: Array) -> None:
        """Raise FileError unless `state` holds as many finite goals per row."""
        stored, shape = state["stored_goals"], (len(steps_left), *self.goals.shape[1:])
        check_stored("goals", stored, shape, self.goals.dtype)
        if not np.isfinite(stored).all():
            raise FileError("The stored goals must be finite. The file is damaged.")

    def load(self, state: Mapping[str, Array]) -> None:
        """Take the goals of the first rows from a checked state."""
        self.goals[: len(state["stored_goals"])] = state["stored_goals"]


def _read_goals(ring: Array, rows: Array, goal_row: Array, is_desired: Array) -> Array:
    """Return the achieved or desired goal of each goal row. Rows from the end of the ring on are those of `rows`."""
    goals = np.empty((len(goal_row), *ring.dtype["desired_goal"].shape), ring.dtype["desired_goal"].base)
    is_new = goal_row >= len(ring)
    for records, first, is_here in ((ring, 0, ~is_new), (rows, len(ring), is_new)):
        for name, here in (("achieved_goal", is_here & ~is_desired), ("desired_goal", is_here & is_desired)):
            goals[here] = records[name][goal_row[here] - first]
    return goals


@dataclass(frozen=True)
class Pipeline:
    """What the transforms of a buffer are made from, for any timeline."""

    compute_reward: RewardFunction
    termination: Termination
    options: ReplayOptions
    discount: float
    subgoals: tuple[str, ...]
    success_reward: float
    symmetries: Symmetries

    def __post_init__(self) -> None:
        if not callable(self.compute_reward):
            raise OptionError(f"compute_reward must be a function, got {self.compute_reward!r}.")

    @property
    def extras(self) -> tuple[str, ...]:
        """Further arrays of a batch."""
        return ("discount",) if self.options.n_steps > 1 else ()

    def rewards(self, timeline: Timeline) -> RewardTransform:
        """Return the transform that recomputes the rewards of single steps."""
        desired_goals = timeline.rows["desired_goal"] if self.options.extra_reward else None
        return RewardTransform(self.compute_reward, self.termination, desired_goals)

    def returns(self, timeline: Timeline) -> Transform:
        """Return the transform that the options ask for: of one step, or of n_steps."""
        rewards, n_steps = self.rewards(timeline), self.options.n_steps
        return rewards if n_steps == 1 else NStepReturn(timeline, rewards, n_steps, self.discount)

    def stored_goals(self, rows: RowSampler, rng: RandomState) -> StoredGoals | None:
        """Return the goals that are drawn when an episode ends, if the options ask for it."""
        options = self.options
        if options.relabel_at == "sample":
            return None
        return StoredGoals(rows, rng, options.goal_strategy, options.n_sampled_goal)

    def goals(self, rows: RowSampler, rng: RandomState) -> GoalSampler:
        """Return what chooses goals when a batch is sampled: none with goals that are stored before."""
        if self.options.relabel_at == "episode_end":
            return GoalSampler(rows, rng, "future", 0)
        return GoalSampler(rows, rng, self.options.goal_strategy, self.options.n_sampled_goal)

    def transforms(self, timeline: Timeline, stored: StoredGoals | None, weights: WeightTransform) -> list[Transform]:
        """Return all transforms, in the order in which they are applied."""
        transforms: list[Transform] = [] if stored is None else [stored]
        transforms.append(self.returns(timeline))
        if self.subgoals:
            fraction, reward = self.options.subgoal_fraction, self.success_reward
            transforms.append(SubgoalTransform(timeline, self.subgoals, fraction, reward, self.symmetries))
        if len(self.symmetries) > 1:
            transforms.append(SymmetryTransform(self.symmetries))
        if self.options.prioritized:
            transforms.append(weights)
        return transforms
