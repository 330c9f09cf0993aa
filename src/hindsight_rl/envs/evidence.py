"""Play an environment, within a fixed budget of steps, to see what the checks need: above all a success."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from ..errors import InputError
from ..records import OBSERVATION_KEYS, Array, GoalSpec
from .goal_columns import columns_with_goals
from .goal_functions import GoalFunction, find_reward, find_success, find_terminated, read_success, sample_goals
from .random_play import Environment, RandomEpisode, play_actions, random_actions

SEEDS, SEARCH_SEED = (1, 2), 3  # of the random episodes, and of the first episode of the search
MAX_STEPS = 150  # of each of them
REPLAYED_STEPS = 50  # of the first one, played again
SEARCH_STEPS, SEARCH_EPISODES = 500, 50  # to search for a success, if set goals do not show one
START_SEEDS = range(101, 107)  # of episodes that are only started
MOST_REPEATS = 10  # of an action during the search, so that the environment moves farther
TARGETS = (0.5, 0.95, 0.25, 0.0)  # where in an episode the achieved goal is taken that is set as the desired one
STEPS_AFTER = 3  # played after the target
RARE = 0.1  # fraction of steps up to which another reward than compute_reward's is an addition, such as a penalty


@dataclass(frozen=True)
class GoalSetter:
    """A way to start an episode of an environment with a given desired goal.

    name: how the goal is set, for messages.
    start: (seed, goal) -> first observation.
    """

    name: str
    start: Callable[[int, Array], Any]


def find_goal_setter(env: Environment) -> GoalSetter | None:
    """Return a way to set the desired goal: by the options of reset, or by an attribute. None if there is none.

    An attribute is found by its value: after a reset it equals the desired goal, and after it was changed the next
    observation shows the change. The environment is reset.
    """
    return next((setter for setter in list(_goal_setters(env)) if _works(env, setter)), None)


def _goal_setters(env: Environment) -> Iterator[GoalSetter]:
    """Yield ways that may work."""
    yield GoalSetter("the reset option 'goal'", lambda seed, goal: env.reset(seed=seed, options={"goal": goal.copy()})[0])
    goal = np.asarray(env.reset(seed=SEEDS[0])[0]["desired_goal"])
    for path, owner in (("", env.unwrapped), ("task.", getattr(env.unwrapped, "task", None))):
        for name, value in list(getattr(owner, "__dict__", {}).items()):
            with contextlib.suppress(TypeError, ValueError):  # not numbers
                if np.array_equal(np.asarray(value).astype(goal.dtype), goal):
                    yield GoalSetter(f"the attribute {path}{name}", _attribute_setter(env, owner, name))


def _attribute_setter(env: Environment, owner: Any, name: str) -> Callable[[int, Array], Any]:
    def start(seed: int, goal: Array) -> Any:
        observation = env.reset(seed=seed)[0]
        value = getattr(owner, name)
        setattr(owner, name, goal.astype(value.dtype) if isinstance(value, np.ndarray) else type(value)(goal.tolist()))
        return {**observation, "desired_goal": goal.copy()}

    return start


def _works(env: Environment, setter: GoalSetter) -> bool:
    """Return whether the set goal appears in the observation after the next step."""
    try:
        goal, other = (np.array(env.reset(seed=seed)[0]["desired_goal"]) for seed in SEEDS)
        observations = [setter.start(SEEDS[1], goal), env.step(next(random_actions(env, 0)))[0]]
        is_set = all(np.array_equal(observation["desired_goal"], goal) for observation in observations)
        return is_set and not np.array_equal(goal, other)
    except Exception:  # the option is unknown, or the attribute must not change
        return False


@dataclass(eq=False)
class Evidence:
    """What was seen of an environment.

    random: episodes of random actions. replay: the first steps of the first one, played again.
    reward, terminated, success: the functions of N goals. reward_fault, terminated_fault, success_fault: what is wrong with
        the environment's own.
    goal_setter: how goals were set in the search for a success; None: they cannot be set.
    search: the episodes of that search. starts: episodes without a step, which show more goals if none can be set.
    """

    env: Environment
    spec: GoalSpec
    random: list[RandomEpisode]
    replay: RandomEpisode
    reward: GoalFunction
    reward_fault: str
    terminated: GoalFunction | None
    terminated_fault: str
    success: GoalFunction | None
    success_fault: str
    goal_setter: GoalSetter | None = None
    search: list[RandomEpisode] = field(default_factory=list)
    starts: list[RandomEpisode] = field(default_factory=list)

    @property
    def episodes(self) -> list[RandomEpisode]:
        """All episodes."""
        return [*self.random, *self.search]

    @property
    def rewards(self) -> Array:
        """The reward of each step of all episodes."""
        return np.concatenate([episode.rewards for episode in self.episodes])

    @property
    def is_terminated(self) -> Array:
        """Whether each step of all episodes is terminated."""
        return np.concatenate([episode.terminated for episode in self.episodes])

    @property
    def is_success(self) -> Array:
        """Whether each step of all episodes is a success."""
        return np.concatenate([self.success_of(episode) for episode in self.episodes])

    def success_of(self, episode: RandomEpisode) -> list[bool]:
        """Return whether each step is a success: by its info, or by the highest reward if its info does not say."""
        success = [reward == self.spec.reward_high for reward in episode.rewards]
        with contextlib.suppress(InputError):  # the check of success reports it
            reported = [read_success(info) for info in episode.infos]
            return [s if r is None else r for s, r in zip(success, reported, strict=True)]
        return success

    def values(self, function: GoalFunction) -> Array:
        """Return a function's value for the goals of each step."""
        return np.concatenate([np.asarray(function(*each.goals()), np.float64) for each in self.episodes])

    @functools.cached_property
    def other_rewards(self) -> Array:
        """The steps of all episodes whose reward is not that of compute_reward, (M,) numbers."""
        return np.flatnonzero(~is_close(self.values(self.reward), self.rewards))

    @property
    def has_extra_reward(self) -> bool:
        """Whether few steps have another reward than that of compute_reward: then an addition, such as a penalty."""
        return 0 < len(self.other_rewards) <= RARE * len(self.rewards) and not self.reward_shift

    @functools.cached_property
    def reward_shift(self) -> int:
        """By how many steps achieved goals must be shifted to explain all rewards: -1, 1, or 0 if no shift does."""
        for shift in (0, -1, 1):
            rewards = [np.asarray(each.rewards)[: len(each) - max(shift, 0)] for each in self.episodes]
            if is_close(self.rewards_at(shift), np.concatenate(rewards)).all():
                return shift
        return 0

    def rewards_at(self, shift: int) -> Array:
        """Return compute_reward of each step with the achieved goal before it (-1), after it (0) or one step later (1)."""
        computed = []
        for episode in self.episodes:
            steps = slice(0, len(episode) - max(shift, 0))
            _, desired, info = episode.goals()
            achieved = np.stack(episode.observations["achieved_goal"])[1 + shift :][steps]
            computed.append(self.reward(achieved, desired[steps], {key: values[steps] for key, values in info.items()}))
        return np.concatenate(computed).astype(np.float64)

    def step_name(self, i: int) -> str:
        """Return the name of step i of all episodes."""
        return [f"step {t + 1} with seed {each.seed}" for each in self.episodes for t in range(len(each))][i]

    @property
    def terminates_on_success(self) -> bool | None:
        """Whether success ends an episode; None if no success was seen, or if some ended their episode and some did not."""
        endings = set(self.is_terminated[self.is_success].tolist())
        return endings.pop() if len(endings) == 1 else None

    @functools.cached_property
    def has_right_termination(self) -> bool | None:
        """Whether compute_terminated returns the termination of every success; None if there is no such function.

        It may miss other terminations, such as a crash, but must not add any.
        """
        if self.terminated is None:
            return None
        is_other = self.is_terminated & ~self.is_success
        return bool(((self.values(self.terminated) == self.is_terminated) | is_other).all())

    @functools.cached_property
    def needed_keys(self) -> tuple[str, ...]:
        """The entries of info without which a function fails or returns another value."""
        achieved, desired, info = self.random[0].goals()

        def is_needed(function: GoalFunction, key: str) -> bool:
            values = function(achieved, desired, info)
            with contextlib.suppress(Exception):
                return not np.array_equal(values, function(achieved, desired, {k: info[k] for k in info if k != key}))
            return True

        return tuple(key for key in info if any(is_needed(function, key) for function in self._functions))

    @functools.cached_property
    def info_keys(self) -> tuple[str, ...]:
        """The entries of info that a function needs or reads: some change a value so rarely that it is not seen."""
        achieved, desired, info = self.random[0].goals()
        read = [
            each.entries_read(achieved[:1], desired[:1], {k: v[:1] for k, v in info.items()}) for each in self._functions
        ]
        used = {*self.needed_keys}.union(*read)
        return tuple(key for key in info if key in used)

    @property
    def _functions(self) -> list[GoalFunction]:
        return [function for function in (self.reward, self.terminated, self.success) if function is not None]

    @functools.cached_property
    def goal_columns(self) -> tuple[int, ...] | None:
        """Entries of the observation that change with the desired goal alone, or that hold it in every step.

        None if no goal can be set and no entry holds the goal.
        """
        changing, held = self._columns_that_change(), columns_with_goals([*self.episodes, *self.starts])
        return None if changing is None and not held else tuple(sorted({*(changing or ()), *held}))

    def _columns_that_change(self) -> tuple[int, ...] | None:
        """Return the entries that change if another goal is set; None if that cannot be tried."""
        goals = [episode.observations["desired_goal"][0] for episode in self.random]
        if self.goal_setter is None or not self.resets_are_exact:
            return None
        first, second = (
            play_actions(
                self.env,
                SEARCH_SEED,
                self.random[0].actions[:1],
                functools.partial(self.goal_setter.start, SEARCH_SEED, goal),
            )
            for goal in goals
        )
        is_same = {key: first.observations[key][-1] == second.observations[key][-1] for key in OBSERVATION_KEYS[:2]}
        return tuple(np.flatnonzero(~is_same["observation"]).tolist()) if is_same["achieved_goal"].all() else None

    @property
    def resets_are_exact(self) -> bool:
        """Whether the replay equals the first episode, bit by bit."""
        return self.random[0].to_bytes()[: len(self.replay) + 1] == self.replay.to_bytes()


def is_close(first: Array, second: Array) -> Array:
    """Return which of two arrays of rewards are equal up to rounding, beside the size of all of them."""
    size = max(float(np.abs(first).max(initial=0.0)), float(np.abs(second).max(initial=0.0)))
    return np.isclose(first, second, rtol=1e-5, atol=1e-6 * size)


def gather_evidence(env: Environment, spec: GoalSpec, recomputes_rewards: bool = False) -> Evidence:
    """Play the environment. Raises GoalEnvError if it fails, or if its reward cannot be used.

    recomputes_rewards: the rewards of steps are those of compute_reward, whatever `step` returns.
    """
    samples = sample_goals(env)
    episodes = [_play(env, seed, MAX_STEPS) for seed in SEEDS]
    replay = _play(env, SEEDS[0], REPLAYED_STEPS)
    functions = *find_reward(env, samples), *find_terminated(env, samples), *find_success(env, samples)
    evidence = Evidence(env, spec, episodes, replay, *functions)
    evidence.spec = _with_seen_rewards(evidence)
    _search_success(evidence)
    evidence.spec = _with_seen_rewards(evidence)
    for episode in (*evidence.episodes, replay) if recomputes_rewards else ():
        episode.rewards[:] = evidence.reward(*episode.goals()).tolist()
    return evidence


def _with_seen_rewards(evidence: Evidence) -> GoalSpec:
    """Return the spec, without a range of rewards if a step shows another value than its two."""
    spec = evidence.spec
    if not np.isfinite(spec.reward_high):
        return spec
    with contextlib.suppress(Exception):  # the check of the reward values reports it
        values = evidence.values(evidence.reward)
        low, high = (is_close(values, np.full_like(values, reward)) for reward in (spec.reward_low, spec.reward_high))
        if not (low | high).all():
            return replace(spec, reward_low=-np.inf, reward_high=np.inf)
    return spec


def _play(env: Environment, seed: int, max_steps: int, most_repeats: int = 1) -> RandomEpisode:
    return play_actions(env, seed, islice(random_actions(env, seed, most_repeats), max_steps))


def _search_success(evidence: Evidence) -> None:
    """Add episodes to the evidence: with set goals, and with random actions until there is a success."""
    evidence.goal_setter = find_goal_setter(evidence.env)
    if evidence.goal_setter is not None:
        evidence.search.append(_play(evidence.env, SEARCH_SEED, MAX_STEPS, MOST_REPEATS))
        evidence.search += _episodes_with_set_goal(evidence, evidence.goal_setter)
    else:
        evidence.starts = [_play(evidence.env, seed, 0) for seed in START_SEEDS]
    steps = 0
    for seed in range(SEARCH_SEED + 1, SEARCH_SEED + 1 + SEARCH_EPISODES):
        if evidence.is_success.any() or steps >= SEARCH_STEPS:
            return
        most_repeats = MOST_REPEATS if seed % 2 else 1
        evidence.search.append(_play(evidence.env, seed, min(MAX_STEPS, SEARCH_STEPS - steps), most_repeats))
        steps += len(evidence.search[-1])


def _episodes_with_set_goal(evidence: Evidence, setter: GoalSetter) -> list[RandomEpisode]:
    """Play the episode that moved farthest again, with some of its achieved goals as the desired goal."""
    base = max(evidence.episodes, key=lambda episode: np.ptp(episode.goals()[0].astype(float), axis=0).sum())
    targets = [int(fraction * (len(base) - 1)) for fraction in TARGETS]
    goals = [base.observations["achieved_goal"][target + 1] for target in targets]
    return [
        play_actions(
            evidence.env,
            base.seed,
            base.actions[: target + 1 + STEPS_AFTER],
            functools.partial(setter.start, base.seed, goal),
        )
        for target, goal in zip(targets, goals, strict=True)
    ]
