"""HindsightBuffer: steps in, relabelled batches out, for any learner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileError, InputError, OptionError
from ..options import Relabel, ReplayOptions
from ..records import Array, ArraySpec, Batch, Episode, GoalSpec
from ..records.symmetries import Symmetries
from ..storage import load_arrays, save_arrays
from .open_episodes import OpenEpisodes
from .priorities import ErrorPriorities, make_priorities
from .rows import row_dtype, whole_number
from .sampler import GoalSampler, RandomState, RowSampler, Sampler, Transform
from .strategies import Strategy, check_strategy
from .timeline import Timeline
from .transforms import (
    NStepReturn,
    RewardFunction,
    RewardTransform,
    StoredGoals,
    SubgoalTransform,
    SymmetryTransform,
    Termination,
    WeightTransform,
    choose_termination,
)

KIND = "hindsight buffer"
SAVED_ARGUMENTS = ("capacity", "episode_length", "dtype", "autoreset", "success_reward", "discount")
MUST_AGREE = ("capacity", "episode_length", "dtype", "n_envs")
OPTIONS_MUST_AGREE = (
    "info_keys",
    "prioritized",
    "alpha",
    "energy_priority",
    "energy_cap",
    "energy_remaining",
    "relabel_at",
)


class HindsightBuffer:
    """Replay buffer for goal-conditioned tasks with hindsight relabelling (Andrychowicz et al. 2017).

    capacity: transitions that are kept. The oldest episodes leave first.
    observation_space: Dict space with observation, achieved_goal and desired_goal; or a GoalSpec of the whole task.
    action_space: Box, Discrete or MultiBinary space; None with a GoalSpec.
    compute_reward: function (next_achieved_goal, goal, info) -> (N,) rewards, vectorized. info has an (N,) array for each
        of options.info_keys. The arrays are read-only.
    n_envs: number of environments that `add` serves at once.
    autoreset: what the environments do after an end, needed if n_envs > 1: a name or Gymnasium's AutoresetMode.
        "disabled" (None, for one environment): the caller resets. "next_step": the step after an end is the reset and is
        skipped. "same_step": the last observation is in info["final_obs"].
    seed: a number, or a NumPy Generator that the random state is drawn from.
    options: relabelling and sampling. `options.strategy` may be a function (rows, steps_done, steps_left, u) -> goal rows.
    compute_terminated: as compute_reward, whether a step terminates. Without it, `terminated` stays as stored.
    compute_success: as compute_reward, for relabel_terminated="success".
    success_reward: least reward of a success. A subgoal that is reached gives it, otherwise one less.
    episode_length: usual number of steps per episode, which fits the memory to it.
    dtype: widest float that is stored, "float32" or "float64".
    discount: per step, for n-step returns.
    subgoals: see `hindsight.records.subgoals`. options.subgoal_fraction of the samples are relabelled with them.
    Raises OptionError, UnknownNameError and GoalEnvError.
    """

    def __init__(
        self,
        capacity: int,
        observation_space: Any,
        action_space: Any,
        compute_reward: RewardFunction,
        *,
        n_envs: int = 1,
        autoreset: Any = None,
        seed: int | np.random.Generator = 0,
        options: ReplayOptions = ReplayOptions(),  # noqa: B008 - the record is frozen
        compute_terminated: RewardFunction | None = None,
        compute_success: RewardFunction | None = None,
        success_reward: float = 0.0,
        episode_length: int | None = None,
        dtype: str = "float32",
        discount: float = 0.98,
        subgoals: Sequence[str] = (),
    ) -> None:
        is_spec = isinstance(observation_space, GoalSpec)
        spec = observation_space if is_spec else GoalSpec.from_spaces(observation_space, action_space)
        _check_combination(options, subgoals)
        rule = options.relabel_terminated
        termination = choose_termination(rule, compute_terminated, compute_success, success_reward)
        self._rewards = _Rewards(compute_reward, termination, options, _check_fraction("discount", discount))
        self._timeline = Timeline(spec, capacity, episode_length, options.info_keys, dtype)
        self._open = OpenEpisodes(self._timeline, n_envs, autoreset)
        self.options, self._strategy = options, check_strategy(options.goal_strategy)
        self._rng, self._symmetries = RandomState(seed), Symmetries(options.symmetries, spec)
        self._priorities = make_priorities(len(self._timeline.rows), options)
        self._weights = WeightTransform(self._priorities if options.prioritized else None, options.beta)
        self._stored: StoredGoals | None = None
        self._subgoals, self._success_reward = tuple(subgoals), success_reward
        self._sampler = self._make_sampler()

    def _make_sampler(self) -> Sampler:
        """Return the pipeline that the options ask for: rows, goals, then transforms."""
        timeline, options, strategy = self._timeline, self.options, self._strategy
        if self._priorities is not None:
            timeline.attach(self._priorities)
        rows = RowSampler(timeline, self._rng, self._priorities)
        goals = GoalSampler(rows, self._rng, strategy, options.n_sampled_goal)
        transforms = [self._rewards.returns(timeline)]
        if options.relabel_at == "episode_end":
            rewards = self._rewards.one_step(timeline)
            self._stored = StoredGoals(rows, self._rng, rewards, strategy, options.n_sampled_goal)
            timeline.attach(self._stored)
            goals, transforms = GoalSampler(rows, self._rng, "future", 0), [self._stored]
        if self._subgoals:
            fraction, reward = options.subgoal_fraction, self._success_reward
            transforms.append(SubgoalTransform(timeline, self._subgoals, fraction, reward, self._symmetries))
        if len(self._symmetries) > 1:
            transforms.append(SymmetryTransform(self._symmetries))
        if options.prioritized:
            transforms.append(self._weights)
        return Sampler(timeline, self._rng, rows, goals, transforms, self._rewards.extras)

    def __len__(self) -> int:
        """Number of transitions that can be sampled: those of finished episodes."""
        return len(self._timeline)

    @property
    def num_episodes(self) -> int:
        """Number of finished episodes."""
        return self._timeline.num_episodes

    @property
    def timeline(self) -> Timeline:
        """The finished episodes, to be read."""
        return self._timeline

    @property
    def open_episodes(self) -> OpenEpisodes:
        """The episodes that have not ended yet, to be read."""
        return self._open

    @property
    def nbytes(self) -> int:
        """Memory in bytes: the ring and what is kept beside it, the open episodes, scratch."""
        return self._timeline.nbytes + self._open.nbytes + self._sampler.nbytes

    @property
    def her_probability(self) -> float:
        """Fraction of the samples that are relabelled: k / (k + 1), or that of a Relabel."""
        return self._sampler.goals.probability if self._stored is None else self._stored.probability

    @property
    def strategy(self) -> Strategy:
        """Source of relabelled goals. It may be set at any time, except with relabel_at="episode_end"."""
        return self._strategy

    @strategy.setter
    def strategy(self, strategy: Strategy) -> None:
        if self._stored is not None:
            raise OptionError("strategy cannot change with relabel_at='episode_end', because the goals are stored already.")
        self._sampler.goals = GoalSampler(self._sampler.rows, self._rng, strategy, self.options.n_sampled_goal)
        self._strategy = strategy

    @property
    def symmetries(self) -> Symmetries:
        """The symmetry group of the samples. Without symmetries it holds the identity alone."""
        return self._symmetries

    @property
    def beta(self) -> float:
        """Exponent of the importance weights: 0 no correction, 1 full correction. It may be set at any time."""
        return self._weights.beta

    @beta.setter
    def beta(self, beta: float) -> None:
        self._weights.beta = _check_fraction("beta", beta)

    def update_priorities(self, row: Any, priority: Any) -> None:
        """Set the TD errors of sampled transitions.

        row: integers, such as batch.row. If a row is repeated, its last value counts. Rows whose episode was evicted since
            the last draw are ignored.
        priority: absolute TD errors, of the same shape.
        Raises InputError for NaN, infinity, negative numbers, other shapes, and rows that start no transition. Nothing is
        changed then.
        """
        if not isinstance(self._priorities, ErrorPriorities):
            raise InputError("The buffer does not sample by TD error. Make it with ReplayOptions(prioritized=True).")
        self._priorities.update(row, priority)

    def add(
        self,
        observation: Mapping[str, Any],
        action: Any,
        reward: Any,
        next_observation: Mapping[str, Any],
        terminated: Any,
        truncated: Any,
        info: Any = None,
    ) -> None:
        """Add one step of every environment: arrays with a leading axis n_envs, which is optional for one environment.

        info: Gymnasium's dict of arrays, a list of dicts, or a single dict.
        An episode can be sampled once it has ended. If an observation is not the next_observation of the step before, the
        open episode is closed as truncated there.
        Raises MissingKeyError, ShapeError, CastError, NonFiniteError, EpisodeTooLongError or InputError. Nothing of the
        step is stored then, for any environment.
        """
        self._open.add(observation, action, reward, next_observation, terminated, truncated, info)

    def add_episode(self, episode: Episode) -> None:
        """Add a whole episode. Raises as `add` does, before anything is stored."""
        self._timeline.append(episode)

    def end_open_episodes(self) -> None:
        """Close every open episode as truncated, for resets in the middle of one."""
        self._open.close_all()

    def sample(self, batch_size: int, out: Batch | None = None) -> Batch:
        """Return a batch of independent samples, arrays (batch_size, ...), copied from the buffer.

        With priorities the batch is stratified and in the order of the rows.
        out: a batch that was returned before for the same size. Its memory is reused and it is returned.
        Raises NothingToSampleError, InputError, or GoalEnvError if compute_reward returns what cannot be used.
        """
        return self._sampler.sample((whole_number("batch_size", batch_size, 1),), out)

    def sample_many(self, n: int, batch_size: int, out: Batch | None = None) -> Batch:
        """Return n batches, arrays (n, batch_size, ...), faster than n calls. `batches[i]` is one of them."""
        return self._sampler.sample((whole_number("n", n, 1), whole_number("batch_size", batch_size, 1)), out)

    def sample_open(self, batch_size: int) -> Batch:
        """Return a batch of steps of open episodes, relabelled with the goals achieved in them so far.

        For learners that cannot wait for the first end. Each call copies the open episodes.
        """
        timeline, rng, k = self._open.as_truncated(), self._rng, self.options.n_sampled_goal
        rows = RowSampler(timeline, rng)
        goals, returns = GoalSampler(rows, rng, self._strategy, k), self._rewards.returns(timeline)
        sampler = Sampler(timeline, rng, rows, goals, [returns], self._rewards.extras)
        return sampler.sample((whole_number("batch_size", batch_size, 1),))

    def already_achieved_fraction(self, batch: Batch) -> float | None:
        """Return the fraction of relabelled samples whose goal was achieved before their step: they teach little.

        A goal counts as achieved if the reward is as good as at the goal itself. None if no sample is relabelled, or if the
        reward needs info.
        """
        here = batch.is_relabelled
        if self.options.info_keys or not here.any():
            return None
        goal, compute_reward = batch.goal[here], self._rewards.compute_reward
        before, at_goal = (np.asarray(compute_reward(a, goal, {})) for a in (batch.achieved_goal[here], goal))
        return float(np.mean(before >= at_goal))

    def state_dict(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return arrays and strict JSON from which `load_state_dict` continues with the same bytes.

        Large arrays are views: write or copy them before the buffer changes.
        """
        arrays = self._timeline.state() | self._open.state() | {"random_state": self._rng.state.copy()}
        return arrays, self._description()

    def _description(self) -> dict[str, Any]:
        options = self.options.replace(strategy="future") if callable(self.options.strategy) else self.options
        return {
            "spec": self._timeline.spec.to_json(),
            "capacity": self._timeline.capacity,
            "episode_length": self._timeline.episode_length,
            "dtype": self._timeline.rows["reward"].dtype.name,
            "n_envs": self._open.n_envs,
            "autoreset": self._open.autoreset,
            "success_reward": self._success_reward,
            "discount": self._rewards.discount,
            "subgoals": list(self._subgoals),
            "options": options.to_dict(),
            "strategy": None if callable(self._strategy) else str(self._strategy),
            "beta": self.beta,
        }

    def load_state_dict(self, arrays: Mapping[str, Array], data: Mapping[str, Any]) -> None:
        """Take the contents and the random state of another buffer of the same task, capacity and n_envs.

        Raises FileError, which names what differs. The buffer is unchanged then.
        """
        try:
            _refuse_other_kind(self._description(), data, self._timeline)
            self._timeline.check(arrays)
            self._open.check(arrays)
            self._rng.check(arrays["random_state"])
            beta, strategy = _check_fraction("beta", data["beta"]), _read_strategy(data["strategy"])
        except (KeyError, TypeError, AttributeError, OptionError) as problem:
            raise FileError(f"The stored buffer is malformed ({problem!r}). It is not ours, or damaged.") from None
        self._timeline.load(arrays)
        self._open.load(arrays)
        self._rng.load(arrays["random_state"])
        self.beta = beta
        if self._stored is None and strategy is not None:
            self.strategy = strategy

    def save(self, path: str | Path) -> None:
        """Write everything except the functions to the file `path`, atomically."""
        save_arrays(Path(path), KIND, *self.state_dict())

    @classmethod
    def load(
        cls,
        path: str | Path,
        compute_reward: RewardFunction,
        *,
        compute_terminated: RewardFunction | None = None,
        compute_success: RewardFunction | None = None,
        strategy: Strategy | None = None,
    ) -> HindsightBuffer:
        """Return the buffer that was saved at `path`. It continues with the same bytes. Reading runs no code.

        The functions are not in the file. strategy: needed if the saved one was a function.
        Raises FileError for a file that is missing, damaged, foreign or of another version.
        """
        arrays, data = load_arrays(Path(path), KIND)
        try:
            buffer = cls(
                observation_space=GoalSpec.from_json(data["spec"]),
                action_space=None,
                compute_reward=compute_reward,
                compute_terminated=compute_terminated,
                compute_success=compute_success,
                **_saved_arguments(arrays, data, strategy),
            )
            buffer.load_state_dict(arrays, data)
            if strategy is not None and buffer.strategy != strategy:
                buffer.strategy = strategy
        except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError, MemoryError) as problem:
            raise FileError(f"The buffer at {path} cannot be loaded: {problem}") from None
        return buffer


@dataclass(frozen=True)
class _Rewards:
    """How the rewards of a batch are computed, for any timeline."""

    compute_reward: RewardFunction
    termination: Termination
    options: ReplayOptions
    discount: float

    @property
    def extras(self) -> tuple[str, ...]:
        """Further arrays of a batch."""
        return ("discount",) if self.options.n_steps > 1 else ()

    def one_step(self, timeline: Timeline) -> RewardTransform:
        """Return the transform for one-step samples."""
        desired_goals = timeline.rows["desired_goal"] if self.options.extra_reward else None
        return RewardTransform(self.compute_reward, self.termination, desired_goals)

    def returns(self, timeline: Timeline) -> Transform:
        """Return the transform that the options ask for: of one step, or of n_steps."""
        rewards, n_steps = self.one_step(timeline), self.options.n_steps
        return rewards if n_steps == 1 else NStepReturn(timeline, rewards, n_steps, self.discount)


def _check_combination(options: ReplayOptions, subgoals: Sequence[str]) -> None:
    """Raise OptionError for options that do not fit subgoals."""
    if not subgoals:
        return
    for name, value, wanted in (
        ("relabel_at", options.relabel_at, "sample"),
        ("extra_reward", options.extra_reward, False),
        ("n_steps", options.n_steps, 1),
    ):
        if value != wanted:
            raise OptionError(f"{name} must be {wanted!r} with subgoals, got {value!r}. Change it, or pass subgoals=().")


def _check_fraction(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating) or not 0 <= value <= 1:
        raise OptionError(f"{name} must be a number between 0 and 1, got {value!r}.")
    return float(value)


def _read_strategy(stored: Any) -> Strategy | None:
    """Return a strategy that was written as text; None for a function."""
    if stored is None:
        return None
    return check_strategy(Relabel.parse(stored) if "=" in stored else stored)


def _saved_arguments(arrays: Mapping[str, Array], data: Mapping[str, Any], strategy: Strategy | None) -> dict[str, Any]:
    """Return the arguments of a saved buffer, with which it is made again. Raises FileError if they do not fit."""
    options = ReplayOptions(**data["options"])
    if strategy is None and data["strategy"] is None:
        raise FileError("It used a function as strategy, which is not in the file. Pass strategy=...")
    if callable(strategy):
        options = options.replace(strategy=strategy, relabel="")
    if data["n_envs"] != len(arrays["open_steps"]):
        raise FileError(f"n_envs is {data['n_envs']}, but the file has {len(arrays['open_steps'])} open episodes.")
    more = {"n_envs": data["n_envs"], "subgoals": data["subgoals"], "options": options}
    return {name: data[name] for name in SAVED_ARGUMENTS} | more


def _refuse_other_kind(mine: Mapping[str, Any], data: Mapping[str, Any], timeline: Timeline) -> None:
    """Raise FileError unless the description `data` of a saved buffer fits `mine`."""
    spec = GoalSpec.from_json(data["spec"])
    options, own = ReplayOptions(**data["options"]), ReplayOptions(**mine["options"])
    pairs = [(name, data[name], mine[name]) for name in MUST_AGREE]
    pairs += [(name, getattr(options, name), getattr(own, name)) for name in OPTIONS_MUST_AGREE]
    differences = [f"{name} {theirs!r} instead of {wanted!r}" for name, theirs, wanted in pairs if theirs != wanted]
    if row_dtype(spec, options.info_keys, data["dtype"]) != timeline.rows.dtype:
        differences.insert(0, timeline.spec.difference(spec) or "other dtypes of its spaces")
    if differences:
        raise FileError(f"The stored buffer does not fit this one. It has {'; '.join(differences)}.")


def compile_kernels() -> None:
    """Compile the loops now, on a tiny task, so that the first batch is not slow. They are cached on disk."""
    part, rows = ArraySpec((1,), "float32"), np.zeros((3, 1), np.float32)
    options = ReplayOptions(symmetries=("o0=-o0 g0=-g0 a0=-a0",))
    buffer = HindsightBuffer(4, GoalSpec(part, part, part), None, lambda achieved, goal, info: goal[:, 0], options=options)
    buffer.add_episode(Episode(rows, rows, rows, rows[1:], rows[1:, 0]))
    buffer.sample(1)
