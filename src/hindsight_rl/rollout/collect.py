"""Collect episodes. The same job gives the same episodes, byte for byte, in every process and on every engine."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..agents.policy import Policy, PolicySpec, PolicyWeights
from ..envs.goal_env import close_env, make_goal_env
from ..envs.goal_functions import read_success
from ..envs.random_play import Environment, step
from ..errors import CollectError, GoalEnvError, HindsightError, MissingKeyError
from ..options.replay import RewardSource
from ..records import OBSERVATION_KEYS, Array, Episode
from ..records.exploration import GREEDY, Exploration
from ..records.info_keys import info_shapes
from ..seeds import TRAINING, environment_seed, exploration_rng
from ..task_structure.waypoints import Waypoints
from .plans import ExploringActor, OptimisticActor, ProbingActor, SeekingActor

Observation = Mapping[str, Array]

SEEKING = 0.5  # fraction of the exploring episodes that follow rules, if states also recur
LONGEST_EPISODE = 100_000  # steps of an episode that nothing limits


@dataclass(frozen=True)
class RolloutSetup:
    """What a process needs to know before its first job.

    environment: an id, or a function that makes an environment (picklable, if workers call it); None if no environment
        can be made.
    policy: the shape of the policy network.
    max_episode_steps: truncate episodes after this many steps; None leaves the limit to the environment.
    info_keys: numeric `info` entries that the reward needs, as `info_shapes` reads them.
    remake_environment: make a new environment for every episode.
    env_arguments: keyword arguments of `environment`.
    observation_keys: further keys of the observation to append to it.
    reward: "recompute": the rewards are those of compute_reward, not of `step`.
    """

    environment: str | Callable[[], Environment] | None
    policy: PolicySpec
    max_episode_steps: int | None = None
    info_keys: tuple[str, ...] = ()
    remake_environment: bool = False
    env_arguments: Mapping[str, Any] = field(default_factory=dict)
    observation_keys: tuple[str, ...] = ()
    reward: RewardSource = "step"

    def make(self) -> Environment:
        """Return a new environment. Raises GoalEnvError if `environment` is None."""
        if self.environment is None:
            raise GoalEnvError(
                "A new environment is needed, but none can be made. Pass an id or a function, not an object."
            )
        return make_goal_env(self.environment, None, self.env_arguments, self.observation_keys, self.reward)


@dataclass(frozen=True, eq=False)
class Job:
    """Episodes to collect, and everything that decides what they contain.

    run_seed: the seed of the run, from which all others derive.
    stream: TRAINING or EVALUATION.
    episodes: numbers of the episodes within the stream.
    weights: of the policy.
    explorations: of each episode; empty: act without noise.
    version: number of jobs that had finished when these weights were taken. The policy lag is counted from it.
    policy: the shape of the policy network; None: that of the setup.
    """

    run_seed: int
    stream: int
    episodes: tuple[int, ...]
    weights: PolicyWeights
    explorations: tuple[Exploration, ...] = ()
    version: int = 0
    policy: PolicySpec | None = None

    def __str__(self) -> str:
        """Return the episodes with the seeds of their resets, as the beginning of a sentence."""
        kind = "Training" if self.stream == TRAINING else "Evaluation"
        seeds = [str(environment_seed(self.run_seed, self.stream, number)) for number in self.episodes]
        numbers, ending = ", ".join(map(str, self.episodes)), "s" * (len(seeds) > 1)
        return f"{kind} episode{ending} {numbers} (reset seed{ending} {', '.join(seeds)})"


class Collector:
    """Run jobs in one environment.

    setup: makes the environment at the first job, if none is given.
    environment: an environment that exists. Its owner closes it; the collector closes only those that it made.
    on_step: called before each action; None: nothing is called.
    """

    def __init__(
        self,
        setup: RolloutSetup,
        environment: Environment | None = None,
        on_step: Callable[[], None] | None = None,
    ) -> None:
        self.setup = setup
        self.policy = Policy(setup.policy)
        self._on_step = on_step
        self._given = environment
        self._made: Environment | None = None

    def prepare(self) -> None:
        """Make the environment before the first job. If that fails, the first job raises the error."""
        with contextlib.suppress(Exception):
            self._environment()

    def collect(self, job: Job) -> list[Episode]:
        """Return the episodes of a job in the order of their numbers. Raises CollectError if the environment fails."""
        policy = job.policy or self.setup.policy
        if policy != self.policy.spec:
            self.policy = Policy(policy)
        self.policy.load(job.weights)
        explorations = job.explorations or (None,) * len(job.episodes)
        episodes = []
        for number, exploration in zip(job.episodes, explorations, strict=True):
            try:
                episodes.append(self._play(job, number, exploration))
            except HindsightError:
                raise
            except Exception as problem:
                self.replace_environment()
                seed = environment_seed(job.run_seed, job.stream, number)
                raise CollectError(
                    f"Episode {number} (reset seed {seed}) failed in the environment ({type(problem).__name__}: {problem})."
                ) from problem
        return episodes

    def replace_environment(self) -> None:
        """Close the environment, whose state is unknown. The next episode gets a new one, if one can be made."""
        if self.setup.environment is not None:
            self._given = None
        self.close()

    def close(self) -> None:
        """Close the environment, if the collector made it. A later job makes a new one."""
        made, self._made = self._made, None
        if made is not None:
            close_env(made)

    def _environment(self) -> Environment:
        """Return the environment for the next episode: a new one, the one that was given, or the one made before."""
        if self.setup.remake_environment:
            self.close()
        elif self._given is not None:
            return self._given
        if self._made is None:
            self._made = self.setup.make()
        return self._made

    def _play(self, job: Job, number: int, exploration: Exploration | None) -> Episode:
        environment = self._environment()
        plan, rng = exploration or GREEDY, exploration_rng(job.run_seed, number)
        is_unguided = not (plan.is_random or plan.probing)
        self.policy.follows_paths = plan.follows_paths
        if max(plan.guided_episodes, plan.guided_fraction) > 0:
            is_guided = plan.guided_episodes > 0 and bool(rng.random() < plan.guided_episodes)
            exploration = plan if is_guided else plan.unguided()
            is_unguided = is_unguided and not is_guided
        act: Callable[[Observation], Array] = PolicyActor(self.policy, exploration, rng)
        if plan.probing is not None:
            act = ProbingActor(plan.probing, self.policy.spec.task.action, rng)
        if plan.exploration_episodes > 0:
            explores = bool(rng.random() < plan.exploration_episodes)
            is_unguided = is_unguided and not explores
            act = self._exploring(act, job.weights, rng, explores)
        limits = self.setup.max_episode_steps, plan.episode_steps
        episode = play_episode(
            environment,
            act,
            environment_seed(job.run_seed, job.stream, number),
            number,
            min((limit for limit in limits if limit is not None), default=None),
            self.setup.info_keys,
            EarlyEnd(plan) if plan.lowest_achieved else None,
            self._on_step,
            self.policy.spec.task.failure_limit,
        )
        return replace(episode, is_unguided=is_unguided)

    def _exploring(
        self, act: Callable[[Observation], Array], weights: PolicyWeights, rng: np.random.Generator, explores: bool
    ) -> Callable[[Observation], Array]:
        """Return an actor that explores, by the plan that the policy has, or one that may begin to where it gets stuck."""
        planner, spec = self.policy.planner, self.policy.spec
        if planner is None:
            return ExploringActor(act, Waypoints(weights.waypoints, weights.next_waypoint), rng, explores)
        if not explores:
            return act
        if len(planner.rules.nodes) and (not planner.visited.n_states or rng.random() < SEEKING):
            return SeekingActor(planner, spec.options.discount, spec.task.action, rng)
        return OptimisticActor(planner, spec.options.discount, spec.task.action, rng)


@dataclass
class PolicyActor:
    """Choose the actions of one episode with a policy.

    If `random_action_repeat` of the exploration is above 1, each random action is repeated for 1 to so many steps,
    uniformly. After Dabney et al. (2021), who draw the number of steps from a heavy-tailed distribution.
    rng: needed for exploration only.
    """

    policy: Policy
    exploration: Exploration | None = None
    rng: np.random.Generator | None = None
    repeated: Array | None = None
    repeats_left: int = 0
    _before: tuple[Array, Array, Array] | None = None  # observation, achieved goal and action of the step before

    def __post_init__(self) -> None:
        """Begin an episode."""
        if self.policy.planner is not None:
            self.policy.planner.begin_episode()

    def __call__(self, observation: Observation) -> Array:
        """Return the action for one observation. The plan of the policy counts actions that changed nothing."""
        planner, before = self.policy.planner, self._before
        if planner is None:
            return self._choose(observation)
        seen, achieved, _ = (np.array(observation[key]) for key in OBSERVATION_KEYS)
        if before is not None and np.array_equal(seen, before[0]) and np.array_equal(achieved, before[1]):
            planner.add_blocked(seen, achieved, int(before[2]) - int(self.policy.spec.task.action.low[0]))
        action = self._choose(observation)
        self._before = seen, achieved, action
        return action

    def _choose(self, observation: Observation) -> Array:
        exploration, rng = self.exploration, self.rng
        if exploration is None or rng is None or exploration.random_action_repeat == 1:
            return self._act(observation, exploration)
        if self.repeated is not None and self.repeats_left:
            self.repeats_left -= 1
            return self.repeated
        if rng.random() >= exploration.repeat_start_probability:
            return self._act(observation, exploration.without_random_actions())
        self.repeats_left = int(rng.integers(exploration.random_action_repeat))
        self.repeated = self._act(observation, replace(exploration, is_random=True))
        return self.repeated

    def _act(self, observation: Observation, exploration: Exploration | None) -> Array:
        state, achieved, desired = (observation[key] for key in OBSERVATION_KEYS)
        return self.policy.act(state, achieved, desired, exploration, self.rng)


class EarlyEnd:
    """Ends one training episode where the achieved goal leaves a range, or comes to rest outside. plan: names the range."""

    def __init__(self, plan: Exploration) -> None:
        self._low, self._high = np.array(plan.lowest_achieved), np.array(plan.highest_achieved)
        self._rest_displacement, self._rested = plan.rest_displacement, False

    def is_reached(self, before: Array, after: Array) -> bool:
        """Return whether the episode ends after a step. before, after: the achieved goal."""
        before, after = before.ravel(), after.ravel()
        is_outside = bool(((after < self._low) | (after > self._high)).any())
        if not self._rest_displacement:
            return is_outside
        rests = is_outside and bool(np.linalg.norm(after - before) < self._rest_displacement)
        is_reached, self._rested = rests and self._rested, rests
        return is_reached


def play_episode(
    env: Environment,
    act: Callable[[Observation], Array],
    seed: int,
    number: int = -1,
    limit: int | None = None,
    info_keys: tuple[str, ...] = (),
    early_end: EarlyEnd | None = None,
    on_step: Callable[[], None] | None = None,
    time_limit: int | None = None,
) -> Episode:
    """Reset the environment with `seed`, step until the episode ends, and return the episode.

    An environment that gives up before its time limit, without a success, truncates an episode that has failed: the ball
    rolled off the plate. Such an episode counts as terminated, because its goal can't be reached any more. Else the value
    of its last state would be that of states that are never seen.

    act: observation -> action.
    number: the episode's number in the run.
    limit: truncate after this many steps; None: no limit besides the environment's own.
    info_keys: numeric `info` entries to keep.
    early_end: truncate where it says; None: the achieved goal may be anywhere.
    on_step: called before each action; None: nothing is called.
    time_limit: of the task, in steps, see `GoalSpec.failure_limit`; None: no truncation counts as a failure.
    Raises GoalEnvError if the episode does not end and `limit` is None, MissingKeyError if an info lacks a key.
    """
    observation, info = env.reset(seed=seed)
    observations = [_copy(observation)]
    steps: list[tuple[Array, float, dict[str, Array]]] = []
    info_names = tuple(info_shapes(info_keys))
    terminated = truncated = False
    while not (terminated or truncated or len(steps) == (limit or LONGEST_EPISODE)):
        if on_step is not None:
            on_step()
        action = act(observation)
        observation, reward, terminated, truncated, info = step(env, action)
        observations.append(_copy(observation))
        steps.append((action, reward, {key: _read_info(info, key) for key in info_names}))
        is_early = time_limit is not None and len(steps) < min(time_limit, limit or time_limit)
        terminated |= bool(truncated) and is_early and not read_success(info)
        if early_end is not None:
            truncated |= early_end.is_reached(observations[-2]["achieved_goal"], observations[-1]["achieved_goal"])
    if limit is None and not (terminated or truncated):
        raise GoalEnvError(f"The episode did not end within {LONGEST_EPISODE} steps. Set max_episode_steps.")
    actions, rewards, infos = zip(*steps, strict=True)
    rows = _stack(observations, OBSERVATION_KEYS)
    return Episode(
        rows["observation"],
        rows["achieved_goal"],
        rows["desired_goal"],
        action=np.stack(actions),
        reward=np.asarray(rewards),
        terminated=bool(terminated),
        success=read_success(info),
        info=_stack(infos, info_names),
        number=number,
    )


def _stack(records: Sequence[Mapping[str, Array]], keys: Sequence[str]) -> dict[str, Array]:
    return {key: np.stack([record[key] for record in records]) for key in keys}


def _copy(observation: Observation) -> dict[str, Array]:
    """Return copies, since environments may reuse their arrays."""
    return {key: np.array(observation[key]) for key in OBSERVATION_KEYS}


def _read_info(info: Mapping[str, Any], key: str) -> Array:
    if key not in info:
        known = ", ".join(sorted(info)) or "none"
        raise MissingKeyError(f"`info_keys` names {key!r}, but the keys of info are: {known}. Correct `info_keys`.")
    return np.array(info[key])
