"""collect(job) -> episodes: a pure function of weights and seeds, the same in this process and in any other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import gymnasium
import numpy as np

from ..agents.policy import Exploration, Policy, PolicySpec, PolicyWeights
from ..envs.goal_env import make_goal_env, read_success
from ..errors import CollectError, GoalEnvError, HindsightError, MissingKeyError, OptionError
from ..records import OBSERVATION_KEYS, Array, Episode

TRAINING, EVALUATION, NOISE = 0, 1, 2  # the three streams of seeds of a run; episode numbers count within each


@dataclass(frozen=True)
class RolloutSetup:
    """Where jobs are played: what a process needs to know once, before its first job.

    environment: an id, or a callable that makes one (picklable, where other processes are to call it); None where only one
    that exists is used. policy: the network's shape. max_episode_steps: where episodes are cut, None to leave that to the
    environment. info_keys: numeric `info` entries that the reward needs. remake_environment: a new one for each episode.
    env_arguments: keyword arguments that it is made with.
    """

    environment: str | Callable[[], gymnasium.Env[Any, Any]] | None
    policy: PolicySpec
    max_episode_steps: int | None = None
    info_keys: tuple[str, ...] = ()
    remake_environment: bool = False
    env_arguments: Mapping[str, Any] = field(default_factory=dict)

    def make(self) -> gymnasium.Env[Any, Any]:
        """A new environment. Raises GoalEnvError where nothing makes one."""
        if self.environment is None:
            raise GoalEnvError("the environment was closed, and nothing makes a new one: give its id, or a function")
        return make_goal_env(self.environment, env_options=self.env_arguments)


@dataclass(frozen=True, eq=False)
class Job:
    """Everything that decides what is collected: the same job gives the same episodes, wherever and whenever it runs.

    stream: TRAINING or EVALUATION. episodes: their numbers within the stream. exploration: None acts without noise.
    version: which of the weights that a run has published these are.
    """

    run_seed: int
    stream: int
    episodes: tuple[int, ...]
    weights: PolicyWeights
    exploration: Exploration | None = None
    version: int = 0


def environment_seed(run_seed: int, stream: int, episode: int) -> int:
    """The seed of one episode's reset: a non-negative 31-bit number, since some simulators keep it in a C int."""
    if run_seed < 0:
        raise OptionError(f"a seed is {run_seed}, but it must not be negative")
    return int(np.random.SeedSequence(run_seed, spawn_key=(stream, episode)).generate_state(1)[0]) >> 1


class Collector:
    """Plays jobs on one environment, which it makes at its first job (or is given)."""

    def __init__(self, setup: RolloutSetup, environment: gymnasium.Env[Any, Any] | None = None) -> None:
        self.setup = setup
        self.policy = Policy(setup.policy)
        self._environment = environment

    def collect(self, job: Job) -> list[Episode]:
        """The episodes of a job, in the order of their numbers. Raises CollectError where the environment fails."""
        self.policy.load(job.weights)
        return [self._play_or_give_up(job, number) for number in job.episodes]

    def _play_or_give_up(self, job: Job, number: int) -> Episode:
        try:
            return self._play(job, number)
        except HindsightError:
            raise
        except Exception as problem:
            if self.setup.environment is not None:
                self.close()  # it may be in any state: the next episode gets a new one
            raise CollectError(
                f"episode {number} failed in the environment ({type(problem).__name__}: {problem})"
            ) from problem

    def _play(self, job: Job, number: int) -> Episode:
        if self._environment is None or self.setup.remake_environment:
            self.close()
            self._environment = self.setup.make()
        seed = environment_seed(job.run_seed, job.stream, number)
        noise = np.random.default_rng(np.random.SeedSequence(job.run_seed, spawn_key=(NOISE, number)))

        exploration, is_guided = job.exploration, False
        if exploration is not None and exploration.guided_episodes > 0:
            is_guided = bool(noise.random() < exploration.guided_episodes)
            exploration = exploration if is_guided else exploration.left_alone()
        act = _Acting(self.policy, exploration, noise)
        if exploration is not None and exploration.random_action_repeat > 1:
            act = _Holding(self.policy, exploration, noise)
        limit, info_keys = self.setup.max_episode_steps, self.setup.info_keys
        episode = play_episode(self._environment, act, seed, number, limit, info_keys)
        return replace(episode, is_guided=is_guided)

    def close(self) -> None:
        """Close the environment; a later job makes a new one."""
        if self._environment is not None:
            self._environment.close()
            self._environment = None


@dataclass
class _Acting:
    """Acts as the policy and the exploration say, step by step."""

    policy: Policy
    exploration: Exploration | None
    noise: np.random.Generator

    def __call__(self, observation: Mapping[str, Array]) -> Array:
        return self.act(observation, self.exploration)

    def act(self, observation: Mapping[str, Array], exploration: Exploration | None) -> Array:
        seen, achieved, desired = (observation[key] for key in OBSERVATION_KEYS)
        return self.policy.act(seen, achieved, desired, exploration, self.noise)


@dataclass
class _Holding(_Acting):
    """The same, but random actions are held, after Dabney et al. (2021), who draw longer times from a heavy tail."""

    exploration: Exploration
    held: Array | None = None
    steps_left: int = 0

    def __call__(self, observation: Mapping[str, Array]) -> Array:
        exploration = self.exploration
        if self.held is not None and self.steps_left:
            self.steps_left -= 1
            return self.held
        if self.noise.random() >= exploration.burst_probability:
            return self.act(observation, exploration.without_random())
        self.steps_left = int(self.noise.integers(exploration.random_action_repeat))
        self.held = self.act(observation, replace(exploration, is_random=True))
        return self.held


def play_episode(
    env: gymnasium.Env[Any, Any],
    act: Callable[[Mapping[str, Array]], Array],
    seed: int,
    number: int = -1,
    limit: int | None = None,
    info_keys: tuple[str, ...] = (),
) -> Episode:
    """Reset with `seed` and step until the episode ends, or for `limit` steps, which counts as truncated.

    act: observation -> action. Raises GoalEnvError for an episode that does not end where nothing limits it.
    """
    limit = limit or _OBVIOUSLY_ENDLESS
    observation, info = env.reset(seed=seed)
    seen = [_copy(observation)]
    actions: list[Array] = []
    rewards: list[float] = []
    infos: list[list[Array]] = []
    terminated = truncated = False
    while not (terminated or truncated or len(actions) == limit):
        action = act(observation)
        observation, reward, terminated, truncated, info = env.step(action)
        seen.append(_copy(observation))
        actions.append(action)
        rewards.append(float(reward))
        infos.append([_info_value(info, key) for key in info_keys])
    if len(actions) == _OBVIOUSLY_ENDLESS:
        raise GoalEnvError(f"an episode did not end within {limit} steps: set max_episode_steps to cut it")
    rows = {key: np.stack([o[key] for o in seen]) for key in OBSERVATION_KEYS}
    return Episode(
        observation=rows["observation"],
        achieved_goal=rows["achieved_goal"],
        desired_goal=rows["desired_goal"],
        action=np.stack(actions),
        reward=np.asarray(rewards),
        terminated=bool(terminated),
        success=read_success(info),
        info={key: np.stack([values[i] for values in infos]) for i, key in enumerate(info_keys)},
        number=number,
    )


_OBVIOUSLY_ENDLESS = 100_000


def _copy(observation: Mapping[str, Array]) -> dict[str, Array]:
    """Environments may reuse their arrays."""
    return {key: np.array(observation[key]) for key in OBSERVATION_KEYS}


def _info_value(info: Mapping[str, Any], key: str) -> Array:
    if key not in info:
        raise MissingKeyError(
            f"info has the keys {', '.join(sorted(info)) or '(none)'}, but info_keys asks for {key!r}: correct info_keys"
        )
    return np.asarray(info[key])
