"""Play an environment, within a fixed budget of steps, to see what the checks need: above all a success."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from ..errors import InputError
from ..records import Array, GoalSpec
from .goal_functions import GoalFunction, SampleGoals, find_reward, find_terminated, read_success, sample_goals
from .goal_setting import GoalSetter, find_goal_setter
from .random_play import Environment, RandomEpisode, play_actions, play_random_episode, random_actions

SEEDS, SEARCH_SEED = (1, 2), 3  # of the random episodes, and of the first episode of the search
MAX_STEPS = 150  # of each of them
REPLAYED_STEPS = 50  # of the first one, played again
SEARCH_STEPS = 500  # to search for a success, if no goal can be set
SEARCH_EPISODES = 20
MOST_REPEATS = 10  # of an action during the search, so that the environment moves farther
STEPS_AFTER = 3  # played after the target
TARGETS = (0.5, 0.95, 0.25, 0.0)  # where in an episode the achieved goal is taken that is set as the desired one


@dataclass(eq=False)
class Evidence:
    """What was seen of an environment.

    random: episodes of random actions. replay: the first steps of the first one, played again.
    search: episodes played to see a success. goal_setter: how their goal was set; None: it cannot be set.
    reward: the reward of N goals. reward_fault: what is wrong with the environment's own.
    """

    env: Environment
    spec: GoalSpec
    random: list[RandomEpisode]
    replay: RandomEpisode
    samples: SampleGoals
    reward: GoalFunction
    reward_fault: str
    goal_setter: GoalSetter | None = None
    search: list[RandomEpisode] = field(default_factory=list)

    @property
    def episodes(self) -> list[RandomEpisode]:
        """All episodes."""
        return [*self.random, *self.search]

    @property
    def step_rewards(self) -> Array:
        """The reward of each step of all episodes."""
        return np.concatenate([episode.rewards for episode in self.episodes])

    @property
    def terminated(self) -> Array:
        """Whether each step of all episodes is terminated."""
        return np.concatenate([episode.terminated for episode in self.episodes])

    @property
    def success(self) -> Array:
        """Whether each step of all episodes is a success."""
        return np.concatenate([self.success_of(episode) for episode in self.episodes])

    def success_of(self, episode: RandomEpisode) -> list[bool]:
        """Return whether each step is a success: by its info, or by the highest reward if its info does not say."""
        success = [_read_success(info) for info in episode.infos]
        reached = [reward == self.spec.reward_high for reward in episode.rewards]
        return [r if s is None else s for s, r in zip(success, reached, strict=True)]

    def values(self, function: GoalFunction) -> Array:
        """Return a function's value for the goals of each step."""
        return np.concatenate([np.asarray(function(*each.goals()), np.float64) for each in self.episodes])

    @functools.cached_property
    def terminates_on_success(self) -> bool | None:
        """Whether success ends an episode; None if no success was seen, or if some ended their episode and some did not."""
        endings = set(self.terminated[self.success].tolist())
        return endings.pop() if len(endings) == 1 else None

    @functools.cached_property
    def termination(self) -> tuple[GoalFunction | None, str]:
        """The environment's termination of N goals, and what is wrong with it."""
        return find_terminated(self.env, self.samples)

    @functools.cached_property
    def has_right_termination(self) -> bool | None:
        """Whether compute_terminated returns the termination of every success; None if there is no such function.

        It may miss other terminations, such as a crash, but must not add any.
        """
        function, _ = self.termination
        if function is None:
            return None
        is_other = self.terminated & ~self.success
        return bool(((self.values(function) == self.terminated) | is_other).all())

    @functools.cached_property
    def info_keys(self) -> tuple[str, ...]:
        """The entries of info without which compute_reward fails or returns another reward."""
        rewards = self._rewards_without(lambda key: False)
        if np.array_equal(rewards, self._rewards_without(lambda key: True)):
            return ()
        keys = self.random[0].goals()[2]
        return tuple(key for key in keys if not np.array_equal(rewards, self._rewards_without(key.__eq__)))

    def _rewards_without(self, is_removed: Callable[[str], bool]) -> Array:
        """Return the rewards of the first episode without some entries of info; empty if compute_reward fails."""
        achieved, desired, info = self.random[0].goals()
        try:
            return np.asarray(self.reward(achieved, desired, {k: v for k, v in info.items() if not is_removed(k)}))
        except Exception:
            return np.zeros(0)

    @property
    def resets_are_exact(self) -> bool:
        """Whether the replay equals the first episode, bit by bit."""
        return self.random[0].to_bytes()[: len(self.replay) + 1] == self.replay.to_bytes()

    def step_name(self, i: int | np.integer[Any]) -> str:
        """Return the name of step i of all episodes."""
        return [f"step {t + 1} with seed {each.seed}" for each in self.episodes for t in range(len(each))][i]


def gather_evidence(env: Environment, spec: GoalSpec) -> Evidence:
    """Play the environment. Raises GoalEnvError if it fails, or if its reward cannot be used."""
    episodes = [play_random_episode(env, seed, MAX_STEPS) for seed in SEEDS]
    replay = play_random_episode(env, SEEDS[0], REPLAYED_STEPS)
    samples = sample_goals(env)
    reward, fault = find_reward(env, samples)
    evidence = Evidence(env, spec, episodes, replay, samples, reward, fault)
    _search_success(evidence)
    return evidence


def _search_success(evidence: Evidence) -> None:
    """Add episodes to the evidence until one shows how a success is rewarded, or the budget is spent."""
    evidence.goal_setter = find_goal_setter(evidence.env)
    for episode in _episodes_with_set_goal(evidence):
        evidence.search.append(episode)
        success = evidence.success_of(episode)
        if any(success[1:]) and not success[0]:
            return
    for episode in _episodes_with_repeated_actions(evidence):
        if any(any(evidence.success_of(each)) for each in evidence.episodes):
            return
        evidence.search.append(episode)


def _episodes_with_set_goal(evidence: Evidence) -> Iterator[RandomEpisode]:
    """Play an episode, then play it again with some of its achieved goals as the desired goal."""
    env, setter = evidence.env, evidence.goal_setter
    if setter is None:
        return
    first = play_actions(env, SEARCH_SEED, islice(random_actions(env, SEARCH_SEED, MOST_REPEATS), MAX_STEPS))
    yield first
    for fraction in TARGETS:
        target = int(fraction * (len(first) - 1))
        start = setter.with_goal(first.observations["achieved_goal"][target + 1])
        yield play_actions(env, SEARCH_SEED, first.actions[: target + 1 + STEPS_AFTER], start)


def _episodes_with_repeated_actions(evidence: Evidence) -> Iterator[RandomEpisode]:
    steps_left = SEARCH_STEPS
    for seed in range(SEARCH_SEED + 1, SEARCH_SEED + 1 + SEARCH_EPISODES):
        actions = random_actions(evidence.env, seed, MOST_REPEATS)
        episode = play_actions(evidence.env, seed, islice(actions, min(MAX_STEPS, steps_left)))
        yield episode
        steps_left -= len(episode)
        if steps_left <= 0:
            return


def _read_success(info: Mapping[str, Any]) -> bool | None:
    try:
        return read_success(info)
    except InputError:  # the check of success reports it
        return None
