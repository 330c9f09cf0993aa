"""HindsightBuffer: steps in, relabelled batches out, for any learner."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakSet

import numpy as np

from ..errors import FileError, InputError, OptionError
from ..options import ReplayOptions
from ..records import Array, ArraySpec, Batch, Episode, GoalSpec
from ..records.reward_scale import RewardScale
from ..storage import as_path, load_arrays, save_arrays
from ..task_structure.symmetries import SymmetryGroup
from .open_episodes import OpenEpisodes
from .priorities import ErrorPriorities, make_priorities
from .rows import fraction_of_one, whole_number
from .sampler import GoalSampler, RandomNumbers, RowSampler, Sampler, StoredGoals, count_stored_goals
from .saved_buffer import describe, load_state, saved_arguments
from .strategies import RewardFunction, Strategy
from .timeline import Timeline
from .transforms import WeightTransform, achieved_fraction, make_pipeline

BUFFER_KIND = "hindsight-rl buffer"


class HindsightBuffer:
    """Replay buffer for goal-conditioned tasks with hindsight relabelling (Andrychowicz et al. 2017).

    capacity: transitions that are kept. The oldest episodes leave first.
    observation_space: Dict space with observation, achieved_goal and desired_goal; or a GoalSpec of the whole task.
    action_space: Box, Discrete or MultiBinary space; None with a GoalSpec.
    compute_reward: function (next_achieved_goal, goal, info) -> (N,) rewards, vectorized. info has an (N,) array for each
        of options.info_keys. The arrays are read-only. A function that Numba compiled is faster; it gets info=None.
    n_envs: number of environments that `add` serves at once.
    autoreset: what the environments do after an end, needed if n_envs > 1: a name or Gymnasium's AutoresetMode.
        "disabled" (None, for one environment): the caller resets. "next_step": the step after an end is the reset and is
        skipped. "same_step": the last observation is in info["final_obs"].
    seed: a number, or a NumPy Generator that the random state is drawn from.
    options: relabelling and sampling. `options.strategy` may be a function (rows, steps_done, steps_left, u) -> goal rows.
    compute_terminated, compute_success: as compute_reward; used as options.relabel_terminated says.
    success_reward: with relabel_terminated="success" and no compute_success, a reward of at least this is a success.
        Samples with a subgoal get this reward where it is reached, and failure_reward (None: one less) elsewhere.
    episode_length: usual number of steps per episode, which fits the memory to it.
    discount: per step, for n-step returns.
    subgoals: see `hindsight_rl.task_structure.subgoals`. options.subgoal_fraction of the samples are relabelled with them.
    Raises OptionError, UnknownNameError and GoalEnvError.
    timeline, open_episodes, symmetries, random (its state), pipeline, functions (by name): parts of the buffer, to be read.
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
        failure_reward: float | None = None,
        episode_length: int | None = None,
        discount: float = 0.98,
        subgoals: Sequence[str] = (),
    ) -> None:
        functions = _by_name(compute_reward, compute_terminated, compute_success)
        _refuse_other_types(options, seed, subgoals, functions)
        is_spec = isinstance(observation_space, GoalSpec)
        spec = observation_space if is_spec else GoalSpec.from_spaces(observation_space, action_space)
        self.options, strategy = options, options.goal_strategy
        self.symmetries = SymmetryGroup(options.symmetries, spec)
        self.functions, rewards = functions, (failure_reward, success_reward)
        pipeline = self.pipeline = make_pipeline(functions, options, discount, subgoals, rewards, self.symmetries)
        self.compute_reward = pipeline.compute_reward
        n_goals, self.random = count_stored_goals(options), RandomNumbers(seed)
        timeline = self.timeline = Timeline(spec, capacity, episode_length, options.info_keys, options.dtype, n_goals)
        self.open_episodes = OpenEpisodes(timeline, n_envs, autoreset)
        timeline.priorities = make_priorities(len(timeline.rows), options)
        rows = RowSampler(timeline, self.random, timeline.priorities)
        timeline.draw_goals = StoredGoals(rows, strategy).draw if n_goals else None
        goals = GoalSampler(rows, strategy, options.n_sampled_goal, options.relabel_at == "episode_end")
        self._weights = WeightTransform(timeline, options.beta)
        self._sampler = Sampler(rows, goals, pipeline.transforms(timeline, self._weights), pipeline.extras)
        self._lock = ForkLocks.make()

    def __len__(self) -> int:
        """Number of transitions that can be sampled: those of finished episodes."""
        return self.timeline.num_transitions

    def __repr__(self) -> str:
        return f"HindsightBuffer({len(self):,} of {self.timeline.capacity:,} transitions, {self.num_episodes:,} episodes)"

    @property
    def num_episodes(self) -> int:
        """Number of finished episodes."""
        return self.timeline.num_episodes

    @property
    def nbytes(self) -> int:
        """Memory of the stored steps and their priorities, in bytes."""
        return self.timeline.nbytes

    @property
    def her_probability(self) -> float:
        """Fraction of the samples that are relabelled: k / (k + 1), or that of a Relabel."""
        return self._sampler.goals.probability

    @property
    def strategy(self) -> Strategy:
        """Source of relabelled goals. It may be set at any time, except with relabel_at="episode_end"."""
        return self._sampler.goals.strategy

    @strategy.setter
    def strategy(self, strategy: Strategy) -> None:
        if self.options.relabel_at == "episode_end":
            raise OptionError("strategy cannot change with relabel_at='episode_end', because the goals are stored already.")
        with self._lock:
            self._sampler.goals = GoalSampler(self._sampler.rows, strategy, self.options.n_sampled_goal)

    @property
    def beta(self) -> float:
        """Exponent of the importance weights: 0 no correction, 1 full correction. It may be set at any time."""
        return self._weights.beta

    @beta.setter
    def beta(self, beta: float) -> None:
        self._weights.beta = fraction_of_one("beta", beta)

    @property
    def reward_scale(self) -> RewardScale | None:
        """Brings sampled rewards to units of the task; None: they are the environment's. It may be set at any time."""
        return self.pipeline.scale

    @reward_scale.setter
    def reward_scale(self, scale: RewardScale | None) -> None:
        with self._lock:
            self.pipeline = self.pipeline.with_scale(scale, self.timeline.rows["reward"].dtype.name)
            self._sampler.transforms = self.pipeline.transforms(self.timeline, self._weights)

    def update_priorities(self, row: Any, priority: Any) -> None:
        """Set the TD errors of sampled transitions.

        row: batch.row of a sample, however long ago. If a row is repeated, its last value counts. Rows whose episode was
            evicted since are ignored: a prioritized batch has write positions, which are not used again for other steps.
        priority: absolute TD errors, of the same shape.
        Raises InputError for NaN, infinity, negative numbers, other shapes, and rows that start no transition. Nothing is
        changed then.
        """
        priorities = self.timeline.priorities
        if not isinstance(priorities, ErrorPriorities):
            raise InputError("The buffer does not sample by TD error. Make it with ReplayOptions(prioritized=True).")
        with self._lock:
            priorities.update(row, priority, *self.timeline.live_positions())

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
        with self._lock:
            self.open_episodes.add(observation, action, reward, next_observation, terminated, truncated, info)

    def add_episode(self, episode: Episode) -> None:
        """Add a whole episode. Raises as `add` does, before anything is stored."""
        with self._lock:
            self.timeline.append(episode)

    def end_open_episodes(self) -> None:
        """Close every open episode as truncated, for resets in the middle of one."""
        with self._lock:
            self.open_episodes.close_all()

    def sample(self, batch_size: int, out: Batch | None = None) -> Batch:
        """Return a batch, arrays (batch_size, ...), copied from the buffer.

        The samples are independent. With priorities, the batch is stratified and in the order of the rows.
        out: a batch that was returned before for the same size. Its memory is reused and it is returned.
        Raises NothingToSampleError, InputError, or GoalEnvError if compute_reward returns what cannot be used.
        """
        with self._lock:
            return self._sampler.sample((whole_number("batch_size", batch_size, 1),), out)

    def sample_many(self, n: int, batch_size: int, out: Batch | None = None) -> Batch:
        """Return n batches, arrays (n, batch_size, ...), faster than n calls. batches[i] is one of them."""
        shape = (whole_number("n", n, 1), whole_number("batch_size", batch_size, 1))
        with self._lock:
            return self._sampler.sample(shape, out)

    def sample_open(self, batch_size: int) -> Batch:
        """Return a batch of steps of open episodes, relabelled with the goals achieved in them so far.

        For learners that cannot wait for the first end. Each call copies the open episodes.
        """
        with self._lock:
            batch_size, timeline = whole_number("batch_size", batch_size, 1), self.open_episodes.as_truncated()
            rows = RowSampler(timeline, self.random)
            goals = GoalSampler(rows, self.strategy, self.options.n_sampled_goal)
            return Sampler(rows, goals, [self.pipeline.returns(timeline)], self.pipeline.extras).sample((batch_size,))

    def already_achieved_fraction(self, batch: Batch) -> float | None:
        """Return the fraction of relabelled samples whose goal was achieved before their step: they teach little.

        Achieved means: the reward is as good as at the goal, and that is better than the worst reward for other goals.
        None if no sample is relabelled, if the reward needs info or does not know the goals, or if none is rewarded.
        """
        return None if self.options.info_keys else achieved_fraction(self.compute_reward, batch)

    def state_dict(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return arrays and strict JSON from which `load_state_dict` continues with the same bytes.

        Large arrays are views: write or copy them before the buffer changes.
        """
        with self._lock:
            arrays = self.timeline.state() | self.open_episodes.state() | {"random_state": self.random.state.copy()}
            return arrays, describe(self)

    def load_state_dict(self, arrays: Mapping[str, Array], data: Mapping[str, Any]) -> None:
        """Take the contents and the random state of another buffer of the same task, capacity and n_envs.

        Raises FileError, which names what differs. The buffer is unchanged then.
        """
        with self._lock:
            load_state(self, arrays, data)

    def save(self, path: str | Path) -> None:
        """Write everything except the functions to the file `path`, atomically."""
        with self._lock:
            save_arrays(as_path("path", path), BUFFER_KIND, *self.state_dict())

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

        The functions are not in the file: pass again those that the saved buffer had. strategy: if it was a function.
        Raises FileError for a file that is missing, damaged, foreign or of another version, and for a missing function.
        """
        arrays, data = load_arrays(as_path("path", path), BUFFER_KIND)
        try:
            return _restore(_by_name(compute_reward, compute_terminated, compute_success), strategy, arrays, data)
        except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError, MemoryError) as problem:
            raise FileError(f"The buffer at {path} cannot be loaded: {problem}") from None

    def __reduce__(self) -> Any:
        """Pickle the contents and the functions, instead of arrays that would no longer be views of each other."""
        with self._lock:
            return _restore, (self.functions, self.strategy, *self.state_dict())

    def __deepcopy__(self, memo: Any) -> HindsightBuffer:
        """Return a buffer with a copy of the contents and with the same functions, which may belong to an environment."""
        with self._lock:
            return _restore(self.functions, self.strategy, *self.state_dict())


class ForkLocks:
    """Makes re-entrant locks that a fork waits for.

    A child of `os.fork` has only the thread that forked. A lock that another thread holds at that moment would never be
    released in the child. So a fork first acquires every lock: no call is half done then, and the child finds them free.
    """

    _locks: ClassVar[WeakSet[threading.RLock]] = WeakSet()
    _changing: ClassVar[threading.RLock] = threading.RLock()  # guards `_locks`
    _held: ClassVar[list[threading.RLock]] = []  # by the fork under way
    _is_registered: ClassVar[bool] = False

    @classmethod
    def make(cls) -> threading.RLock:
        """Return a new lock."""
        lock = threading.RLock()
        with cls._changing:
            if not cls._is_registered:
                cls._is_registered = True
                os.register_at_fork(before=cls._acquire, after_in_parent=cls._release, after_in_child=cls._release)
            cls._locks.add(lock)
        return lock

    @classmethod
    def _acquire(cls) -> None:
        cls._changing.acquire()
        cls._held = list(cls._locks)
        for lock in cls._held:
            lock.acquire()

    @classmethod
    def _release(cls) -> None:
        for lock in cls._held:
            lock.release()
        cls._held = []
        cls._changing.release()


def _by_name(*functions: RewardFunction | None) -> dict[str, Any]:
    return dict(zip(("compute_reward", "compute_terminated", "compute_success"), functions, strict=True))


def _refuse_other_types(options: Any, seed: Any, subgoals: Any, functions: Mapping[str, Any]) -> None:
    """Raise OptionError for arguments of the buffer that nothing else checks."""
    if not isinstance(options, ReplayOptions):
        raise OptionError(f"options must be a ReplayOptions, for example ReplayOptions(n_steps=3), got {options!r}.")
    if not isinstance(seed, np.random.Generator):
        whole_number("seed", seed, 0)
    if not isinstance(subgoals, Sequence) or not all(isinstance(each, str) for each in subgoals):
        raise OptionError(f"subgoals must be a sequence of texts, got {subgoals!r}.")
    for name, function in functions.items():
        if not callable(function) and (function is not None or name == "compute_reward"):
            raise OptionError(f"{name} must be a function, got {function!r}.")


def _restore(
    functions: Mapping[str, RewardFunction | None],
    strategy: Strategy | None,
    arrays: Mapping[str, Array],
    data: Mapping[str, Any],
) -> HindsightBuffer:
    """Return a buffer with this state. functions: all three, by name. Raises FileError if one that it had is missing."""
    if missing := [name for name in data["functions"] if functions[name] is None]:
        raise FileError(f"It used {missing[0]}, which is not in the file. Pass {missing[0]}=...")
    arguments: dict[str, Any] = {**functions, **saved_arguments(arrays, data, strategy)}
    buffer = HindsightBuffer(**arguments)
    buffer.load_state_dict(arrays, data)
    if strategy is not None and buffer.strategy != strategy:
        buffer.strategy = strategy
    return buffer


def compile_kernels(symmetries: bool) -> None:
    """Compile the loops of plain relabelling now, on a tiny task. They are cached on disk. symmetries: their loop too."""
    part, rows = ArraySpec((1,), "float32"), np.zeros((3, 1), np.float32)
    options = ReplayOptions(symmetries=("o0=-o0 g0=-g0 a0=-a0",) if symmetries else ())
    buffer = HindsightBuffer(4, GoalSpec(part, part, part), None, lambda achieved, goal, info: goal[:, 0], options=options)
    buffer.add_episode(Episode(rows, rows, rows, rows[1:], rows[1:, 0]))
    buffer.sample(1)
