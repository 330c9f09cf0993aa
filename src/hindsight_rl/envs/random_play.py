"""Play an environment with seeded random actions, and leave its random state as it was."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, repeat
from typing import Any

import gymnasium
import numpy as np

from ..errors import GoalEnvError, line_of_user
from ..records import OBSERVATION_KEYS, Array

EPISODE_ATTEMPTS = 3  # at an episode, before the error of the environment is raised

Environment = gymnasium.Env[Any, Any]


@dataclass(frozen=True, eq=False)
class RandomEpisode:
    """An episode of T steps of random actions, as the environment returned it.

    seed: of the reset and of the actions.
    observations: T + 1 values for each of the three keys.
    actions, rewards, terminated, truncated, infos: of each step.
    """

    seed: int
    observations: Mapping[str, list[Array]] = field(default_factory=lambda: {key: [] for key in OBSERVATION_KEYS})
    actions: list[Any] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    terminated: list[bool] = field(default_factory=list)
    truncated: list[bool] = field(default_factory=list)
    infos: list[Mapping[str, Any]] = field(default_factory=list)

    def __len__(self) -> int:
        """The number of steps."""
        return len(self.rewards)

    def goals(self, shift: int = 0) -> tuple[Array, Array, dict[str, Array]]:
        """Return (T, ...) achieved goals after each step, desired goals before it, and the numeric infos.

        The desired goal is the one before the step, since some environments change it when it is reached.
        shift: -1: the achieved goals before each step. 1: those after the next step, so that the last step is left out.
        """
        steps = slice(0, len(self) - max(shift, 0))
        achieved, desired = (np.stack(self.observations[key]) for key in OBSERVATION_KEYS[1:])
        info = {key: values[steps] for key, values in numeric_info(self.infos).items()}
        return achieved[1 + shift :][steps], desired[steps], info

    def to_bytes(self) -> list[tuple[bytes, ...]]:
        """Return T + 1 rows of observations and rewards, which are equal only if every bit is."""
        columns = zip(*(self.observations[key] for key in OBSERVATION_KEYS), [0.0, *self.rewards], strict=True)
        return [tuple(np.asarray(value).tobytes() for value in row) for row in columns]

    def append(self, observation: Any) -> None:
        """Append a copy of an observation."""
        for key in OBSERVATION_KEYS:
            self.observations[key].append(np.array(observation[key]))


def play(env: Environment, seed: int, max_steps: int, most_repeats: int = 1) -> RandomEpisode:
    """Play random actions, each repeated for 1 to `most_repeats` steps, for at most `max_steps`. See `play_actions`."""
    return play_actions(env, seed, islice(random_actions(env, seed, most_repeats), max_steps))


def play_actions(
    env: Environment, seed: int, actions: Iterable[Any], start: Callable[[], Any] | None = None
) -> RandomEpisode:
    """Play the actions until they or the episode end. If the environment fails, warn and play again: it may fail rarely.

    start: starts the episode and returns the first observation; None: a reset.
    Raises GoalEnvError, with the number of the step, if it fails EPISODE_ATTEMPTS times.
    """
    actions = list(actions)
    for _ in range(EPISODE_ATTEMPTS - 1):
        try:
            return _play_once(env, seed, actions, start)
        except GoalEnvError as problem:
            warnings.warn(f"{problem} The episode is played again, as in training.", UserWarning, stacklevel=2)
    return _play_once(env, seed, actions, start)


def _play_once(env: Environment, seed: int, actions: Sequence[Any], start: Callable[[], Any] | None) -> RandomEpisode:
    episode = RandomEpisode(seed)
    try:
        first, _ = (start(), None) if start else env.reset(seed=seed)
        episode.append(first)
        for action in actions:
            observation, reward, terminated, truncated, info = step(env, action)
            episode.actions.append(action)
            episode.append(observation)
            episode.rewards.append(reward)
            episode.terminated.append(bool(terminated))
            episode.truncated.append(bool(truncated))
            episode.infos.append({k: v.copy() if isinstance(v, np.ndarray) else v for k, v in info.items()})
            if terminated or truncated:
                break
    except Exception as problem:
        raise GoalEnvError(
            f"Step {len(episode)} of an episode with seed {seed} failed ({describe_failure(problem)})."
        ) from problem
    return episode


def step(env: Environment, action: Any) -> tuple[Any, float, bool, bool, Any]:
    """Step an environment. Raises TypeError if it does not return one reward, two truth values and a dict.

    A truth value may be any number, as in environments that return that of a comparison.
    """
    observation, reward, terminated, truncated, info = env.step(action)
    if not isinstance(info, Mapping):
        raise TypeError(f"step must return info as a dict, got {info!r}")
    if any(isinstance(flag, str) or np.size(flag) != 1 for flag in (terminated, truncated)):  # any text would count as True
        raise TypeError(f"step must return terminated and truncated as True or False, got {terminated!r} and {truncated!r}")
    try:
        return observation, float(reward), bool(terminated), bool(truncated), info
    except (TypeError, ValueError):
        raise TypeError(f"step must return reward as one number, got {reward!r}") from None


def describe_failure(problem: Exception) -> str:
    """Return the error of an environment, with the line of the user's file, or with what reset and step take and return."""
    text, line = f"{type(problem).__name__}: {problem}", line_of_user(problem)
    if line is not None:
        return f"{text}, in {line.filename}:{line.lineno}: {line.line}"
    if (isinstance(problem, ValueError) and "unpack" in text) or "reset() got an unexpected keyword argument" in text:
        step_returns = "step(action) returns (observation, reward, terminated, truncated, info)"
        return f"{text}. reset(*, seed=None, options=None) returns (observation, info), {step_returns}"
    return text


def random_actions(env: Environment, seed: int, most_repeats: int = 1) -> Iterator[Any]:
    """Yield random actions without end. They come from a copy of the action space, so that its random state is kept.

    most_repeats: each action is repeated for 1 to so many steps.
    """
    space = copy.deepcopy(env.action_space)
    space.seed(seed)
    rng = np.random.default_rng(seed)
    while True:
        yield from repeat(space.sample(), int(rng.integers(1, most_repeats + 1)))


@contextlib.contextmanager
def random_state_kept(env: Environment) -> Iterator[None]:
    """Restore the environment's random generator afterwards. Other generators within a simulator are not restored."""
    kept = {name: copy.deepcopy(vars(env.unwrapped).get(name)) for name in ("_np_random", "_np_random_seed")}
    try:
        yield
    finally:
        vars(env.unwrapped).update(kept)


def numeric_info(infos: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
    """Return arrays (T, ...) of the numeric entries that all T infos have."""
    columns = {key: [_array(info.get(key)) for info in infos] for key in (infos[0] if len(infos) else ())}
    return {
        key: np.stack(values)
        for key, values in columns.items()
        if all(value.dtype.kind in "biuf" and value.shape == values[0].shape for value in values)
    }


def _array(value: Any) -> Array:
    """Return a value as an array; one of no numbers if it cannot be one, as lists of other lengths."""
    try:
        return np.asarray(value)
    except Exception:
        return np.asarray(None)


def name_of(env: Environment) -> str:
    """Return the id of an environment, or the name of its class."""
    spec = env.unwrapped.spec
    return spec.id if spec is not None else type(env.unwrapped).__name__
