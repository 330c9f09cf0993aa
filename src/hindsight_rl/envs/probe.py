"""Play an environment once, within a fixed budget of steps, to see what the checks need."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import InputError
from ..records import Array, GoalSpec
from ..records.reward_scale import is_close
from .goal_columns import changing_columns, columns_with_goals
from .goal_effect import GoalEffect, find_goal_effect
from .goal_functions import GoalFunction, find_flag, find_reward, read_success, sample_goals
from .goal_setters import GoalSetter, find_goal_setters
from .info_entries import find_entries
from .random_play import Environment, RandomEpisode, play, play_actions
from .unused_goal import find_unused_goal

SEEDS, SEARCH_SEED = (1, 2), 3  # of the random episodes, and of the first episode of the search
MAX_STEPS = 150  # of each of them
REPLAYED_STEPS = 50  # of the first one, played again
STEPS_AFTER_SUCCESS = 5  # of the first one, played again directly after a success
SEARCH_STEPS, SEARCH_EPISODES = 500, 50  # to search for a success, if set goals do not show one
START_SEEDS = range(101, 107)  # of episodes that are only started
MOST_REPEATS = 10  # of an action during the search, so that the environment moves farther
TARGETS = (0.5, 0.95, 0.25, 0.0)  # where in an episode the achieved goal is taken that is set as the desired one
STEPS_AFTER = 3  # played after the target
RARE = 0.1  # fraction of steps up to which another reward than compute_reward's is an addition, such as a penalty


class Probe:
    """An environment that was played, and what this shows.

    It plays random episodes, and it looks for a success: by setting the desired goal to an achieved one if the environment
    allows it, else by playing on.
    env, spec: the environment and its task, without a range of rewards if a step shows another value than its two.
    recomputes_rewards: the rewards of steps are those of compute_reward, whatever `step` returns.
    step_rewards: the reward that `step` returned at each step of all episodes.
    random: episodes of random actions. replay: the first steps of the first one, played again.
    replay_after_success: fewer of its first steps, played again directly after a success; None: the replay differs already,
        or no success comes early in an episode.
    reward, terminated, success: the functions of N goals. reward_fault, terminated_fault, success_fault: what is wrong with
        the environment's own.
    rewards_differ: whether compute_reward returns other rewards for the same goals after further resets.
    goal_setter: how goals were set in the search for a success; None: they cannot be set.
    search: the episodes of that search. with_set_goal: those of them whose goal was set.
    starts: episodes without a step, which show more goals.
    Raises GoalEnvError if the environment fails, or if its reward cannot be used.
    """

    def __init__(self, env: Environment, spec: GoalSpec, recomputes_rewards: bool = False) -> None:
        self.env, self.spec, self.recomputes_rewards = env, spec, recomputes_rewards
        samples = sample_goals(env)
        # one more reset before the second episode: what earlier resets leave may differ at every second one
        first, _, second = (play(env, *each) for each in ((SEEDS[0], MAX_STEPS), (SEEDS[1], 0), (SEEDS[1], MAX_STEPS)))
        self.random = [first, second]
        self.replay = play(env, SEEDS[0], REPLAYED_STEPS)
        self.search: list[RandomEpisode] = []
        self.with_set_goal: list[RandomEpisode] = []
        self.starts = [play(env, seed, 0) for seed in START_SEEDS]
        self.reward, self.reward_fault = find_reward(env, samples)
        self.terminated, self.terminated_fault = find_flag(env, samples, "terminated")
        self.success, self.success_fault = find_flag(env, samples, "success")
        self._correct_reward_range()
        self.goal_setter: GoalSetter | None = None
        before = self._rewards_of_first()
        self._search_success()
        after = self._rewards_of_first()
        self.rewards_differ = before is not None and after is not None and not is_close(before, after).all()
        self._correct_reward_range()
        self.replay_after_success: RandomEpisode | None = None
        if self.equals_first(self.replay) and self.play_success():
            self.replay_after_success = play(env, SEEDS[0], STEPS_AFTER_SUCCESS)
        self.step_rewards = self.rewards
        for episode in (*self.episodes, *self.replays) if recomputes_rewards else ():
            episode.rewards[:] = self.reward(*episode.goals()).tolist()

    def _rewards_of_first(self) -> Array | None:
        """Return the reward of each step of the first episode; None if that fails, as the check of the reward reports."""
        with contextlib.suppress(Exception):
            return self.reward(*self.random[0].goals())
        return None

    def _correct_reward_range(self) -> None:
        """Remove the range of rewards from the task if a step, or an achieved goal, shows another value than its two."""
        spec = self.spec
        if np.isfinite(spec.reward_high):
            with contextlib.suppress(Exception):  # the check of the reward values reports it
                achieved, _, info = self.random[0].goals()
                values = np.concatenate([self.values(self.reward), self.reward(achieved, achieved.copy(), info)])
                low, high = (is_close(values, np.full_like(values, end)) for end in (spec.reward_low, spec.reward_high))
                if not (low | high).all():
                    self.spec = replace(spec, reward_low=-np.inf, reward_high=np.inf)

    def _search_success(self) -> None:
        """Add episodes with set goals, and with random actions until there is a success."""
        for setter in find_goal_setters(self.env, SEEDS):
            self.search = [play(self.env, SEARCH_SEED, MAX_STEPS, MOST_REPEATS)]
            base = max(self.episodes, key=lambda episode: np.ptp(episode.goals()[0].astype(float), axis=0).sum())
            with_set_goal = self._episodes_with_set_goal(setter, base)
            if self._rewards_follow(base, with_set_goal):
                self.goal_setter, self.with_set_goal = setter, with_set_goal
                self.search += with_set_goal
                break
        steps = 0
        for seed in range(SEARCH_SEED + 1, SEARCH_SEED + 1 + SEARCH_EPISODES):
            if self.is_success.any() or steps >= SEARCH_STEPS:
                return
            most_repeats = MOST_REPEATS if seed % 2 else 1
            self.search.append(play(self.env, seed, min(MAX_STEPS, SEARCH_STEPS - steps), most_repeats))
            steps += len(self.search[-1])

    def _episodes_with_set_goal(self, setter: GoalSetter, base: RandomEpisode) -> list[RandomEpisode]:
        """Play an episode again, with some of its achieved goals as the desired goal."""
        targets = [int(fraction * (len(base) - 1)) for fraction in TARGETS]
        goals = [base.observations["achieved_goal"][target + 1] for target in targets]
        starts = [functools.partial(setter.start, base.seed, goal) for goal in goals]
        lengths = [target + 1 + STEPS_AFTER for target in targets]
        return [play_actions(self.env, base.seed, base.actions[:n], s) for n, s in zip(lengths, starts, strict=True)]

    def play_success(self) -> bool:
        """Play the episode with the earliest success again, up to its success. Return whether there is one."""
        ends = np.cumsum([len(each) for each in self.episodes])
        successes = zip(self.episodes, np.split(self.is_success, ends[:-1]), strict=True)
        found = [(int(flags.argmax()), episode) for episode, flags in successes if flags[:REPLAYED_STEPS].any()]
        if not found:
            return False
        step, episode = min(found, key=lambda each: each[0])
        start = None
        if self.goal_setter and episode in self.with_set_goal:
            start = functools.partial(self.goal_setter.start, episode.seed, episode.observations["desired_goal"][0])
        play_actions(self.env, episode.seed, episode.actions[: step + 1], start)
        return True

    def _rewards_follow(self, base: RandomEpisode, with_set_goal: Sequence[RandomEpisode]) -> bool:
        """Return whether set goals change rewards of `step`, if they change those of compute_reward.

        An attribute may be a copy that only the observation shows.
        """
        computed, changed = self.reward(*base.goals()), []
        for each in with_set_goal:
            pairs = (computed, self.reward(*each.goals())), (np.array(base.rewards), np.array(each.rewards))
            changed.append([not is_close(before[: len(each)], now).all() for before, now in pairs])
        is_expected, is_seen = np.any(changed, axis=0)
        return bool(is_seen or not is_expected)

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
        """Whether each step of all episodes is a success: by its info, else by the highest reward of compute_reward."""
        reported: list[bool | None] = [None] * len(self.rewards)
        with contextlib.suppress(InputError):  # the check of success reports it
            reported = [read_success(info) for episode in self.episodes for info in episode.infos]
        if None not in reported:
            return np.array(reported, np.bool_)
        rewards = self.rewards
        with contextlib.suppress(Exception):  # the check of the reward values reports it
            rewards = self.values(self.reward)
        is_highest = (rewards == self.spec.reward_high).tolist()
        return np.array([h if r is None else r for h, r in zip(is_highest, reported, strict=True)], np.bool_)

    def values(self, function: GoalFunction, shift: int = 0) -> Array:
        """Return a function's value for the goals of each step. shift: as for `RandomEpisode.goals`."""
        return np.concatenate([np.asarray(function(*each.goals(shift)), np.float64) for each in self.episodes])

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
        """By how many steps achieved goals must be shifted to explain all rewards: -1, 1, or 0 if no shift does.

        A shift of 1 leaves out last steps. It explains nothing if the other steps need none: a fall has its own penalty.
        """
        last_steps = np.cumsum([len(each) for each in self.episodes]) - 1
        shifts = (0, -1) if np.isin(self.other_rewards, last_steps).all() else (0, -1, 1)
        for shift in shifts:
            rewards = [np.asarray(each.rewards)[: len(each) - max(shift, 0)] for each in self.episodes]
            if is_close(self.values(self.reward, shift), np.concatenate(rewards)).all():
                return shift
        return 0

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
        """Whether compute_terminated ends each success, and adds no end. It may miss a crash. None: there is none."""
        if self.terminated is None:
            return None
        is_other = self.is_terminated & ~self.is_success
        return bool(((self.values(self.terminated) == self.is_terminated) | is_other).all())

    @functools.cached_property
    def info_keys(self) -> dict[str, bool]:
        """The entries of info that a function reads, and whether one needs it; see `find_entries`."""
        return find_entries(filter(None, (self.reward, self.terminated, self.success)), *self.random[0].goals())

    @functools.cached_property
    def unused_goal(self) -> tuple[int, ...] | None:
        """Dimensions of the desired goal on which no reward depends; see `find_unused_goal`."""
        return find_unused_goal(self.reward, self.episodes)

    @functools.cached_property
    def goal_effect(self) -> GoalEffect | None:
        """The effect of the desired goal on achieved goals; None if there is none, or if resets would hide it."""
        return find_goal_effect(self.with_set_goal) if self.equals_first(self.replay) else None

    @functools.cached_property
    def goal_columns(self) -> tuple[int, ...] | None:
        """Columns of the observation that change with the desired goal alone, or that hold it in every step.

        None if no goal can be set and no column holds the goal.
        """
        whole = [each.observations for each in (*self.random, *self.starts)]
        # the first observation after the goal was set may still hold the goal of the reset
        later = [{key: rows[1:] for key, rows in each.observations.items()} for each in self.search]
        changing, held = changing_columns(self.with_goals), columns_with_goals([*whole, *later])
        return None if changing is None and not held else tuple(sorted({*(changing or ()), *held}))

    @functools.cached_property
    def with_goals(self) -> list[RandomEpisode]:
        """A step with the same seed and one goal, another, and the first again if they differ; none if none can be set."""
        if self.goal_setter is None or not self.equals_first(self.replay) or self.goal_effect:
            return []
        setter, actions = self.goal_setter, self.random[0].actions[:1]
        first, other = (episode.observations["desired_goal"][0] for episode in self.random)

        def play_with(goal: Array) -> RandomEpisode:
            return play_actions(self.env, SEARCH_SEED, actions, functools.partial(setter.start, SEARCH_SEED, goal))

        played = [play_with(first), play_with(other)]
        return [*played, play_with(first)] if changing_columns(played) else played

    @property
    def hideable_columns(self) -> tuple[int, ...]:
        """The goal columns to hide: none if the observation is no flat array, or has no others."""
        part, columns = self.spec.observation, self.goal_columns or ()
        return columns if len(part.shape) == 1 and len(columns) < part.size else ()

    @property
    def replays(self) -> list[RandomEpisode]:
        """The first steps of the first episode, played again."""
        return [self.replay, *filter(None, [self.replay_after_success])]

    def equals_first(self, replay: RandomEpisode) -> bool:
        """Return whether a replay equals the first steps of the first episode, bit by bit."""
        return is_replay(replay, self.random[0])


def is_replay(replay: RandomEpisode, first: RandomEpisode) -> bool:
    """Return whether an episode equals the first steps of another one, bit by bit."""
    return first.to_bytes()[: len(replay) + 1] == replay.to_bytes()
