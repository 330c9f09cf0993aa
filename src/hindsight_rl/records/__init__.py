"""Plain data that crosses folders: GoalSpec (a task), Episode (one rollout), Batch (samples), Finding (what steps show)."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from pydantic import FailFast, TypeAdapter

from ..errors import FileError, GoalEnvError, InputError

Array = npt.NDArray[Any]
GOAL_DIMENSIONS = 3  # of each goal, the first ones, are kept in the files of a run: enough for a map
Record = TypeVar("Record")
Bounds = Annotated[tuple[float, ...], FailFast()]  # a malformed file may have many
OBSERVATION_KEYS = ("observation", "achieved_goal", "desired_goal")
ACTION_SPACE = "the action space"  # its name in errors
LARGEST_ARRAY = 2**31  # elements: NumPy's limit for the record of a step, in bytes
MOST_AXES = 32
LONGEST_NAME = 1_000  # characters of the id of an environment
LONGEST_RECORD = 1_000_000  # characters of a record in a file
FindingKind = Literal["part", "group", "column", "contact", "symmetry"]


@dataclass(frozen=True, repr=False)
class ArraySpec:
    """Shape, dtype and bounds of one array of a task.

    shape: () for a Discrete space.
    dtype: NumPy's name of the dtype.
    low, high: the bounds: one number if all elements share it, otherwise one per element, flat, in C order.
    n_values: number of values of a Discrete space (the first one is `low`), None for other spaces.
    """

    shape: Annotated[tuple[int, ...], FailFast()]
    dtype: str
    low: Bounds = (-np.inf,)
    high: Bounds = (np.inf,)
    n_values: int | None = None

    def __post_init__(self) -> None:
        if len(self.dtype) > 20 or np.dtype(self.dtype).kind not in "biuf":  # np.dtype may take long for a long text
            raise ValueError(f"Expected a dtype of numbers, got {self.dtype!r:.20}.")
        if len(self.shape) > MOST_AXES or max(self.shape, default=0) > LARGEST_ARRAY or self.size > LARGEST_ARRAY:
            raise ValueError(f"Expected at most {MOST_AXES} axes and {LARGEST_ARRAY:,} elements, got {self.shape!s:.50}.")
        if min(self.shape, default=0) < 0 or len(self.low) != len(self.high) or len(self.low) not in (1, self.size):
            raise ValueError(f"Expected bounds for shape {self.shape}, got {len(self.low)} and {len(self.high)} numbers.")
        if self.n_values is not None and (self.shape or self.n_values < 1):
            raise ValueError(f"Expected shape () and at least 1 value, got {self.shape} and {self.n_values} values.")

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return math.prod(self.shape)

    @property
    def is_bounded(self) -> bool:
        """Return whether every element has a finite lower and upper bound."""
        return bool(np.isfinite(self.low).all() and np.isfinite(self.high).all())

    def bounds(self) -> tuple[Array, Array]:
        """Return low and high as float64 arrays of the full shape."""
        low, high = np.asarray(self.low, np.float64), np.asarray(self.high, np.float64)
        if low.size == 1:
            return np.full(self.shape, low.item()), np.full(self.shape, high.item())
        return low.reshape(self.shape), high.reshape(self.shape)

    def __repr__(self) -> str:
        return f"ArraySpec({self.shape} {self.dtype})"

    @classmethod
    def from_space(cls, space: spaces.Space[Any], name: str) -> ArraySpec:
        """Return the spec of a Box, Discrete, MultiBinary or MultiDiscrete space. Raises GoalEnvError for other spaces."""
        if isinstance(space, spaces.Box):
            low, high = np.asarray(space.low, np.float64), np.asarray(space.high, np.float64)
            if low.size and (low == low.flat[0]).all() and (high == high.flat[0]).all():
                low, high = low.flat[:1], high.flat[:1]
            return cls(space.shape, space.dtype.name, tuple(low.ravel().tolist()), tuple(high.ravel().tolist()))
        if isinstance(space, spaces.Discrete):
            start, n_values = int(space.start), int(space.n)
            return cls((), "int64", (float(start),), (float(start + n_values - 1),), n_values)
        if isinstance(space, spaces.MultiBinary):
            return cls(tuple(space.shape), "int8", (0.0,), (1.0,))
        if isinstance(space, spaces.MultiDiscrete):
            low, high = space.start.ravel(), (space.start + space.nvec - 1).ravel()
            return cls(space.shape, "int64", tuple(low.astype(float).tolist()), tuple(high.astype(float).tolist()))
        fix = "Wrap the environment in hindsight_rl.envs.wrappers.FlattenGoalEnv."
        if name == ACTION_SPACE:  # how several actions become one is a choice of its author
            fix = "Convert its actions in a gymnasium.ActionWrapper whose action_space is one of these."
        raise GoalEnvError(
            f"Expected a Box, Discrete, MultiBinary or MultiDiscrete space for {name}, got a {type(space).__name__} space. "
            f"{fix}"
        )


@dataclass(frozen=True, repr=False)
class GoalSpec:
    """Spaces, time limit and reward range of a goal-conditioned task.

    observation, goal, action: one ArraySpec each; achieved and desired goals share one.
    max_episode_steps: time limit in steps, None without a limit.
    reward_low, reward_high: range of the reward, infinite if unknown; (-1, 0) for a sparse reward of -1 and 0.
    env_id: the registered name of the environment, None if it has none.
    """

    observation: ArraySpec
    goal: ArraySpec
    action: ArraySpec
    max_episode_steps: int | None = None
    reward_low: float = -np.inf
    reward_high: float = np.inf
    env_id: str | None = None

    def __post_init__(self) -> None:
        if len(self.env_id or "") > LONGEST_NAME:
            raise ValueError(f"An id has at most {LONGEST_NAME:,} characters, got {len(self.env_id or ''):,}.")

    @property
    def failure_limit(self) -> int | None:
        """The steps before which an episode that is truncated without a success has failed; None: that does not show.

        It is the time limit. With rewards of more than two values no truncation counts as a failure: minus the distance is
        0 after an end, so to fail would be best.
        """
        return self.max_episode_steps if np.isfinite(self.reward_high) else None

    def limited(self, max_episode_steps: int | None) -> GoalSpec:
        """Return the task with a time limit besides its own, in steps; None: without another one."""
        limits = [n for n in (self.max_episode_steps, max_episode_steps) if n is not None]
        return replace(self, max_episode_steps=min(limits, default=None))

    @classmethod
    def from_spaces(
        cls,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        max_episode_steps: int | None = None,
        reward_range: tuple[float, float] = (-np.inf, np.inf),
        env_id: str | None = None,
    ) -> GoalSpec:
        """Return the spec of a goal environment with these spaces. Raises GoalEnvError if they are not those of one."""
        found = observation_space.spaces if isinstance(observation_space, spaces.Dict) else {}
        if missing := [key for key in OBSERVATION_KEYS if key not in found]:
            raise GoalEnvError(
                f"Expected a Dict observation space with the keys {', '.join(OBSERVATION_KEYS)}, got {observation_space}: "
                f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing. Use a wrapper that returns them."
            )
        arrays = {k: ArraySpec.from_space(found[k], k) for k in OBSERVATION_KEYS}
        achieved, desired = arrays["achieved_goal"], arrays["desired_goal"]
        if achieved.shape != desired.shape:
            raise GoalEnvError(
                f"achieved_goal has shape {achieved.shape} and desired_goal {desired.shape}, but they must be the same: "
                f"relabelling replaces a desired goal by an achieved goal."
            )
        action = ArraySpec.from_space(action_space, ACTION_SPACE)
        low, high = map(float, reward_range)
        return cls(arrays["observation"], desired, action, max_episode_steps, low, high, env_id)

    def to_json(self) -> dict[str, Any]:
        """Return plain data for strict JSON."""
        return dict(to_plain(self))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> GoalSpec:
        """Return the spec that `to_json` wrote. Raises FileError if something is missing or malformed."""
        return read_record(cls, data, "task", longest=sys.maxsize)

    def difference(self, other: GoalSpec) -> str:
        """Return what differs in shapes, numbers of values or action bounds, in words; "" if a policy of one fits both."""
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in ("observation", "goal", "action")}
        differences = [
            f"{name} {mine.shape} {mine.dtype} against {theirs.shape} {theirs.dtype}"
            for name, (mine, theirs) in pairs.items()
            if (mine.shape, mine.n_values) != (theirs.shape, theirs.n_values)
        ]
        mine, theirs = pairs["action"]
        if mine.shape == theirs.shape and not np.array_equal(mine.bounds(), theirs.bounds()):
            differences.append(f"action bounds {mine.low} to {mine.high} against {theirs.low} to {theirs.high}")
        return "; ".join(differences)

    def __repr__(self) -> str:
        names = ("observation", "goal", "action")
        arrays = ", ".join(f"{name} {array.shape} {array.dtype}" for name in names if (array := getattr(self, name)))
        return f"GoalSpec({self.env_id or 'no id'}: {arrays}, at most {self.max_episode_steps} steps)"


@dataclass(frozen=True, eq=False, repr=False)
class Episode:
    """One whole episode of T steps. Raises InputError if the lengths of its arrays do not fit.

    observation, achieved_goal, desired_goal: (T+1, ...), before each step; the last row is after the final step.
    action: (T, ...). reward: (T,).
    terminated: whether the last step terminated the episode (a time limit truncates it instead).
    success: `is_success` of the last step; None if the environment does not report it.
    info: numeric values that the reward needs, (T, ...) each; row t belongs to the step from row t to row t + 1.
    number: number of the episode in the run.
    is_unguided: whether the policy acted for the desired goal from the start, without guidance by subgoals. The success of
        such training episodes measures the policy, also if it got stuck and explored from then on.
    """

    observation: Array
    achieved_goal: Array
    desired_goal: Array
    action: Array
    reward: Array
    terminated: bool = False
    success: bool | None = None
    info: Mapping[str, Array] = field(default_factory=dict)
    number: int = -1
    is_unguided: bool = False

    def __post_init__(self) -> None:
        steps = len(self.action)
        expected = {name: (getattr(self, name), steps + 1) for name in OBSERVATION_KEYS}
        expected |= {name: (values, steps) for name, values in {"reward": self.reward, **self.info}.items()}
        for name, (values, length) in expected.items():
            if len(values) != length:
                raise InputError(f"Expected {length} rows of {name} for an episode of {steps} actions, got {len(values)}.")

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.action)

    def __repr__(self) -> str:
        return f"Episode({len(self)} steps, return {self.reward.sum():.2f}, success {self.success})"


@dataclass(eq=False, slots=True, repr=False)  # not frozen: a frozen one takes six times as long to construct
class Batch:
    """B transitions. Every array may have further leading axes: (n, B, ...).

    observation, achieved_goal: before the step.
    goal: the original desired goal or the one that replaced it.
    action: of the step. reward: of the step under `goal`.
    next_observation, next_achieved_goal: after the step.
    terminated: whether the step terminated the episode, so that its target does not bootstrap.
    is_relabelled: whether `goal` replaced the original goal.
    row: row of the timeline.
    discount: factor of the next value, 0 if terminated; None: the agent uses its own, for one-step returns.
    weight: weight of each sample in the loss; None: all the same.
    subgoal: 0 if `goal` is the task's goal, otherwise the number of the subgoal; None without subgoals.
    place: the goal of a subgoal in the dimensions that it adds to goals, 0 for other samples; None if none adds any.
    n_demonstrations: the last so many transitions of each batch are demonstrations.
    """

    observation: Array
    achieved_goal: Array
    goal: Array
    action: Array
    reward: Array
    next_observation: Array
    next_achieved_goal: Array
    terminated: Array
    is_relabelled: Array
    row: Array
    discount: Array | None = None
    weight: Array | None = None
    subgoal: Array | None = None
    place: Array | None = None
    n_demonstrations: int = 0

    def __len__(self) -> int:
        """Return the length of the leading axis."""
        return len(self.reward)

    def __repr__(self) -> str:
        arrays = ", ".join(f"{name} {getattr(self, name).shape}" for name in ("observation", "goal", "action", "reward"))
        return f"Batch({arrays}, {np.mean(self.is_relabelled):.0%} relabelled)"

    def __getitem__(self, index: Any) -> Batch:
        """Return every array at this index; slices and integers give views."""
        values: list[Any] = [getattr(self, name) for name in _ALL_FIELDS]
        return Batch(*[value[index] if isinstance(value, np.ndarray) else value for value in values])


_ALL_FIELDS = tuple(f.name for f in fields(Batch))
BATCH_FIELDS = tuple(f.name for f in fields(Batch) if f.default is MISSING)  # the fields that are never None


def read_record(record_class: type[Record], data: Mapping[str, Any], name: str, longest: int = LONGEST_RECORD) -> Record:
    """Return the dataclass that `to_json` wrote, validated by pydantic. Raises FileError if `data` is malformed.

    longest: characters of `data` as text at most: pydantic needs about 1 kB for each wrong value. A class whose sequences
        fail at the first one needs no limit.
    """
    try:
        if len(str(data)) > longest:
            raise ValueError(f"it has more than {longest:,} characters")
        return TypeAdapter(record_class).validate_python(data)
    except (TypeError, ValueError, SyntaxError) as problem:  # NumPy parses the name of a dtype
        raise FileError(
            f"The description of the {name} is malformed: {problem}. The file is damaged, or hindsight-rl did not write it."
        ) from None


def to_plain(value: Any) -> Any:
    """Return dataclasses as dictionaries, tuples as lists and infinities as strings, recursively."""
    if is_dataclass(value):
        return {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [to_plain(each) for each in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


@dataclass(frozen=True)
class Finding:
    """A part, role, verdict or contact that the steps of a task show.

    kind: "part" of the goal, "group" of columns with one role, "column" that was tested, "contact" or "symmetry".
    name: as "column 10". verdict: in a few words, as "hidden". reason: with its figures.
    members: dimensions of the goal of a part, or columns of the observation of a group.
    value: the figure that decides, low and high: its interval; None without one. limit: the largest value that is accepted.
    """

    kind: FindingKind
    name: str
    verdict: str
    reason: str
    members: tuple[int, ...] = ()
    value: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None

    def __str__(self) -> str:
        """Return it as one sentence."""
        return " ".join(filter(None, (self.name, self.verdict))) + (f": {self.reason}" if self.reason else "")
