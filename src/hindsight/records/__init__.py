"""What travels between the folders: GoalSpec (the task), Episode (what happened), Batch (what is learnt from)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from ..errors import FileError, GoalEnvError, InputError

Array = npt.NDArray[Any]
OBSERVATION_KEYS = ("observation", "achieved_goal", "desired_goal")


@dataclass(frozen=True)
class ArraySpec:
    """One array of a task: its shape, its dtype and the values it can take.

    shape: () for a Discrete space. dtype: NumPy's name. low, high: one number when all elements share it, else one per
    element, flat, in C order. n_values: how many values a Discrete space has (they start at `low`), None for any other.
    """

    shape: tuple[int, ...]
    dtype: str
    low: tuple[float, ...] = (-np.inf,)
    high: tuple[float, ...] = (np.inf,)
    n_values: int | None = None

    @property
    def size(self) -> int:
        """How many numbers the array holds."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def is_bounded(self) -> bool:
        """Whether every element has a finite lower and upper bound."""
        return bool(np.isfinite(self.low).all() and np.isfinite(self.high).all())

    def bounds(self) -> tuple[Array, Array]:
        """low and high as float64 arrays of the full shape."""
        low, high = np.asarray(self.low, np.float64), np.asarray(self.high, np.float64)
        if low.size == 1:
            return np.full(self.shape, low.item()), np.full(self.shape, high.item())
        return low.reshape(self.shape), high.reshape(self.shape)

    @classmethod
    def from_space(cls, space: spaces.Space[Any], name: str) -> ArraySpec:
        """Read a Box, Discrete or MultiBinary space; raises GoalEnvError, naming the wrapper to use, for any other."""
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
        raise GoalEnvError(
            f"{name} is a {type(space).__name__} space, but a Box, Discrete or MultiBinary space is needed: "
            f"flatten it first, with gymnasium.wrappers.FlattenObservation or a TransformObservation of your own"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data; infinities become strings, so that the text is strict JSON."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        return data | {"low": [_to_text(x) for x in self.low], "high": [_to_text(x) for x in self.high]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ArraySpec:
        """The inverse of `to_json`."""
        n_values = data["n_values"]
        return cls(
            tuple(int(n) for n in data["shape"]),
            np.dtype(str(data["dtype"])).name,
            tuple(float(x) for x in data["low"]),
            tuple(float(x) for x in data["high"]),
            None if n_values is None else int(n_values),
        )


@dataclass(frozen=True)
class GoalSpec:
    """The shape of a goal-conditioned task: what is seen, what is asked, what can be done, and for how long.

    observation, goal, action: an ArraySpec each (achieved and desired goals share one). max_episode_steps: the time limit
    in steps, None without one. reward_low, reward_high: the range of the reward, infinite where it is not known; a sparse
    reward of -1 and 0 reads (-1, 0). env_id: the registered name, where there is one.
    """

    observation: ArraySpec
    goal: ArraySpec
    action: ArraySpec
    max_episode_steps: int | None = None
    reward_low: float = -np.inf
    reward_high: float = np.inf
    env_id: str | None = None

    @classmethod
    def from_spaces(
        cls,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        max_episode_steps: int | None = None,
        reward_range: tuple[float, float] = (-np.inf, np.inf),
        env_id: str | None = None,
    ) -> GoalSpec:
        """Read the spaces of a goal environment; raises GoalEnvError where they are not those of one."""
        if not isinstance(observation_space, spaces.Dict):
            raise GoalEnvError(
                f"the observation space is a {type(observation_space).__name__}, but hindsight needs a Dict space with "
                f"the keys {', '.join(OBSERVATION_KEYS)}: wrap the environment so that it names what it achieved and what "
                f"it was asked"
            )
        missing = [k for k in OBSERVATION_KEYS if k not in observation_space.spaces]
        if missing:
            raise GoalEnvError(
                f"the observation space has the keys {', '.join(observation_space.spaces)}, but {', '.join(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} missing: hindsight needs {', '.join(OBSERVATION_KEYS)}"
            )
        parts = {k: ArraySpec.from_space(observation_space.spaces[k], k) for k in OBSERVATION_KEYS}
        achieved, desired = parts["achieved_goal"], parts["desired_goal"]
        if achieved.shape != desired.shape:
            raise GoalEnvError(
                f"achieved_goal has shape {achieved.shape} and desired_goal {desired.shape}: they must be the same, "
                f"since what was achieved stands in for what was asked"
            )
        action = ArraySpec.from_space(action_space, "the action space")
        low, high = reward_range
        return cls(parts["observation"], desired, action, max_episode_steps, float(low), float(high), env_id)

    def to_json(self) -> dict[str, Any]:
        """Plain data, strict JSON."""
        return {
            "observation": self.observation.to_json(),
            "goal": self.goal.to_json(),
            "action": self.action.to_json(),
            "max_episode_steps": self.max_episode_steps,
            "reward_low": _to_text(self.reward_low),
            "reward_high": _to_text(self.reward_high),
            "env_id": self.env_id,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> GoalSpec:
        """The inverse of `to_json`; raises FileError where something is missing or malformed."""
        try:
            return cls(
                ArraySpec.from_json(data["observation"]),
                ArraySpec.from_json(data["goal"]),
                ArraySpec.from_json(data["action"]),
                None if data["max_episode_steps"] is None else int(data["max_episode_steps"]),
                float(data["reward_low"]),
                float(data["reward_high"]),
                None if data["env_id"] is None else str(data["env_id"]),
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise FileError(
                f"the description of a task is malformed ({problem!r}): the file is not ours, or damaged"
            ) from None

    def difference(self, other: GoalSpec) -> str:
        """What differs between two tasks in shape or kind, in words; "" where a policy of one can act in the other."""
        parts = [
            f"{name} {mine.shape} {mine.dtype} against {theirs.shape} {theirs.dtype}"
            for name in ("observation", "goal", "action")
            if (mine := getattr(self, name)) != (theirs := getattr(other, name))
            and (mine.shape, mine.n_values) != (theirs.shape, theirs.n_values)
        ]
        return "; ".join(parts)


@dataclass(frozen=True, eq=False)
class Episode:
    """One whole episode of T steps.

    observation (T+1, ...), achieved_goal (T+1, ...), desired_goal (T+1, ...): what was seen before each step, and at last
    after the final one. action (T, ...), reward (T,). terminated: whether the last step ended the episode for good (a time
    limit does not). success: whether the last step reported success; None where the environment does not say. info: numeric
    values that the reward needs, (T, ...) each, of the step that led to row t + 1. number: its place in the run. is_guided:
    whether it was led to the task's subgoals.
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
    is_guided: bool = False

    def __post_init__(self) -> None:
        steps = len(self.action)
        for name in OBSERVATION_KEYS:
            if len(getattr(self, name)) != steps + 1:
                raise InputError(
                    f"an episode of {steps} actions needs {steps + 1} rows of {name}, got {len(getattr(self, name))}"
                )
        for name, values in {"reward": self.reward, **self.info}.items():
            if len(values) != steps:
                raise InputError(f"an episode of {steps} actions needs {steps} values of {name}, got {len(values)}")

    def __len__(self) -> int:
        """The number of steps."""
        return len(self.action)


@dataclass(eq=False, slots=True)  # not frozen, which would take six times as long to make
class Batch:
    """B transitions with the goals they are learnt under; every array may carry further leading axes, (n, B, ...).

    observation, achieved_goal: before the step. goal: the one used here, asked or put in hindsight. action, reward: of the
    step, under `goal`. next_observation, next_achieved_goal: after it. terminated: whether the step ended the episode for
    good, so that no value follows. is_relabelled: whether `goal` was put in hindsight. row: where in the timeline it came
    from. discount: what the value after the step counts, 0 where terminated; None leaves it to the agent, for one-step
    returns. weight: how much a sample counts; None where all count alike. subgoal: whose goals these are, 0 for those of the
    task, else the number of a subgoal; None where there are no subgoals.
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

    def __len__(self) -> int:
        """The length of the leading axis."""
        return len(self.reward)

    def __getitem__(self, index: Any) -> Batch:
        """The same index into every array: views, for slices and integers."""
        arrays = [getattr(self, name)[index] for name in BATCH_FIELDS]
        others = (self.discount, self.weight, self.subgoal)
        return Batch(*arrays, *(None if array is None else array[index] for array in others))


BATCH_FIELDS = tuple(f.name for f in fields(Batch) if f.default is MISSING)  # those that are always there


def _to_text(value: float) -> float | str:
    return value if np.isfinite(value) else str(value)
