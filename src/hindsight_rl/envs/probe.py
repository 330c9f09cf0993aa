"""Play an environment once, within a fixed budget of steps, to see what the checks and the options of a run need."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import InputError
from ..options.settings import Choice
from ..records import OBSERVATION_KEYS, Array, GoalSpec
from ..records.statistics import FLOAT32_ROUNDING, LARGEST_GOAL, are_noisy_copies
from ..task_structure.categories import Categories
from .goal_functions import GoalFunction, find_flag, find_reward, read_success, sample_goals
from .goal_setters import GoalSetter, find_goal_setters
from .random_play import Environment, RandomEpisode, play, play_actions

SEEDS, SEARCH_SEED = (1, 2), 3  # of the random episodes, and of the first episode of the search
MAX_STEPS = 150  # of each of them
REPLAYED_STEPS = 50  # of the first one, played again
SEARCH_STEPS, SEARCH_EPISODES = 500, 50  # to search for a success, if set goals do not show one
START_SEEDS = range(101, 107)  # of episodes that are only started
MOST_REPEATS = 10  # of an action during the search, so that the environment moves farther
TARGETS = (0.5, 0.95, 0.25, 0.0)  # where in an episode the achieved goal is taken that is set as the desired one
STEPS_AFTER = 3  # played after the target
RARE = 0.1  # fraction of steps up to which another reward than compute_reward's is an addition, such as a penalty
FEWEST_GOALS = 4  # values of a dimension of the goal; with fewer, other columns may equal it by chance
COPY_RTOL = 1e-4  # of the range of a column, which an environment may round


@dataclass(frozen=True)
class EnvironmentFacts:
    """What was found out about an environment.

    terminates_on_success: None: no success was seen, or some successes ended their episode and others did not.
    exact_resets: whether a reset with the same seed gives the same observations.
    reward_range: the two values of the reward; infinite if it has others, also where `read_spec` saw two.
    proposed: options of every run and buffer that follow from what was seen.
    """

    terminates_on_success: bool | None
    exact_resets: bool
    reward_range: tuple[float, float]
    proposed: tuple[Choice, ...]

    def choices(self, can_remake: bool = False) -> list[Choice]:
        """Return the options of a run that follow from the facts. can_remake: whether new environments can be made."""
        why = f"a reset {'equals' if self.exact_resets else 'does not equal'} a new environment"
        remake = [Choice("remake_environment", not self.exact_resets, why)] if can_remake else []
        return [*self.proposed, *remake]


class Probe:
    """An environment that was played, and what this shows.

    It plays random episodes, and it looks for a success: by setting the desired goal to an achieved one if the environment
    allows it, else by playing on.
    env, spec: the environment and its task, without a range of rewards if a step shows another value than its two.
    recomputes_rewards: the rewards of steps are those of compute_reward, whatever `step` returns.
    step_rewards: the reward that `step` returned at each step of all episodes.
    random: episodes of random actions. replay: the first steps of the first one, played again.
    reward, terminated, success: the functions of N goals. reward_fault, terminated_fault, success_fault: what is wrong with
        the environment's own.
    goal_setter: how goals were set in the search for a success; None: they cannot be set.
    search: the episodes of that search. starts: episodes without a step, which show more goals if none can be set.
    Raises GoalEnvError if the environment fails, or if its reward cannot be used.
    """

    def __init__(self, env: Environment, spec: GoalSpec, recomputes_rewards: bool = False) -> None:
        self.env, self.spec, self.recomputes_rewards = env, spec, recomputes_rewards
        samples = sample_goals(env)
        self.random = [play(env, seed, MAX_STEPS) for seed in SEEDS]
        self.replay = play(env, SEEDS[0], REPLAYED_STEPS)
        self.search: list[RandomEpisode] = []
        self.starts: list[RandomEpisode] = []
        self.reward, self.reward_fault = find_reward(env, samples)
        self.terminated, self.terminated_fault = find_flag(env, samples, "terminated")
        self.success, self.success_fault = find_flag(env, samples, "success")
        self._correct_reward_range()
        self.goal_setter: GoalSetter | None = None
        self._search_success()
        self._correct_reward_range()
        self.step_rewards = self.rewards
        for episode in (*self.episodes, self.replay) if recomputes_rewards else ():
            episode.rewards[:] = self.reward(*episode.goals()).tolist()

    def _correct_reward_range(self) -> None:
        """Remove the range of rewards from the task if a step shows another value than its two."""
        spec = self.spec
        if np.isfinite(spec.reward_high):
            with contextlib.suppress(Exception):  # the check of the reward values reports it
                values = self.values(self.reward)
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
                self.goal_setter, self.search = setter, [*self.search, *with_set_goal]
                break
        else:
            self.starts = [play(self.env, seed, 0) for seed in START_SEEDS]
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
        """Whether each step of all episodes is a success: by its info, else by the highest reward."""
        success = self.rewards == self.spec.reward_high
        with contextlib.suppress(InputError):  # the check of success reports it
            reported = [read_success(info) for episode in self.episodes for info in episode.infos]
            success = np.array([s if r is None else r for s, r in zip(success, reported, strict=True)])
        return np.asarray(success)

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
        """Whether compute_terminated returns the termination of every success; None if there is no such function.

        It may miss other terminations, such as a crash, but must not add any.
        """
        if self.terminated is None:
            return None
        is_other = self.is_terminated & ~self.is_success
        return bool(((self.values(self.terminated) == self.is_terminated) | is_other).all())

    @functools.cached_property
    def info_keys(self) -> dict[str, bool]:
        """The entries of info that a function reads, and whether one fails or returns another value without the entry.

        Some entries change a value so rarely that it is not seen.
        """
        achieved, desired, info = self.random[0].goals()
        first = achieved[:1], desired[:1], {key: values[:1] for key, values in info.items()}
        found: dict[str, bool] = {}
        for function in filter(None, (self.reward, self.terminated, self.success)):
            read, values = function.entries_read(*first), function(achieved, desired, info)
            for key in info:
                is_needed = True
                with contextlib.suppress(Exception):
                    others = {name: column for name, column in info.items() if name != key}
                    is_needed = not np.array_equal(values, function(achieved, desired, others))
                if is_needed or key in read:
                    found[key] = found.get(key, False) or is_needed
        return {key: found[key] for key in info if key in found}

    @functools.cached_property
    def goal_columns(self) -> tuple[int, ...] | None:
        """Columns of the observation that change with the desired goal alone, or that hold it in every step.

        None if no goal can be set and no column holds the goal.
        """
        whole = [each.observations for each in (*self.random, *self.starts)]
        # the first observation after the goal was set may still hold the goal of the reset
        later = [{key: rows[1:] for key, rows in each.observations.items()} for each in self.search]
        changing, held = self._columns_that_change(), columns_with_goals([*whole, *later])
        return None if changing is None and not held else tuple(sorted({*(changing or ()), *held}))

    def _columns_that_change(self) -> tuple[int, ...] | None:
        """Return the columns that change if another goal is set; None if that cannot be tried."""
        if self.goal_setter is None or not self.resets_are_exact:
            return None
        goals = [episode.observations["desired_goal"][0] for episode in self.random]
        starts = [functools.partial(self.goal_setter.start, SEARCH_SEED, goal) for goal in goals]
        played = [play_actions(self.env, SEARCH_SEED, self.random[0].actions[:1], start) for start in starts]
        seen, achieved, _ = ([each.observations[key][-1] for each in played] for key in OBSERVATION_KEYS)
        return tuple(np.flatnonzero(seen[0] != seen[1]).tolist()) if np.array_equal(achieved[0], achieved[1]) else None

    @property
    def hideable_columns(self) -> tuple[int, ...]:
        """The goal columns to hide: none if the observation is no flat array of floats, or has no others."""
        part, columns = self.spec.observation, self.goal_columns or ()
        return columns if len(part.shape) == 1 and part.dtype.startswith("float") and len(columns) < part.size else ()

    @property
    def categories(self) -> tuple[str, ...]:
        """The columns with categories, as texts, if some are not declared by the spaces; none otherwise."""
        rows = {key: np.concatenate([each.observations[key] for each in self.episodes]) for key in OBSERVATION_KEYS}
        goals = np.concatenate([rows["achieved_goal"], rows["desired_goal"]])
        declared, seen = Categories.of_spaces(self.spec), Categories.of_steps(self.spec, rows["observation"], goals)
        return () if seen == declared else seen.texts()

    @property
    def resets_are_exact(self) -> bool:
        """Whether the replay equals the first episode, bit by bit."""
        return self.random[0].to_bytes()[: len(self.replay) + 1] == self.replay.to_bytes()

    def facts(self) -> EnvironmentFacts:
        """Return what was found out, and the options that follow."""
        reward_range = self.spec.reward_low, self.spec.reward_high
        return EnvironmentFacts(self.terminates_on_success, self.resets_are_exact, reward_range, tuple(self._choices()))

    def _choices(self) -> Iterator[Choice]:
        if self.reward.needs_float64:
            yield Choice("dtype", "float64", "compute_reward fails for goals that were rounded to float32")
        elif self.spec.goal.dtype == "float64":
            goals = np.concatenate([goals for episode in self.random for goals in episode.goals()[:2]])
            largest, extent = np.abs(goals).max(), np.ptp(goals, axis=0).max()
            if largest > LARGEST_GOAL * extent:
                too_coarse = f"goals of up to {largest:g} lie {extent:g} apart, so float32 is too coarse"
                yield Choice("dtype", "float64", too_coarse)
        shows_success = np.isfinite(self.spec.reward_high) or self.success is not None
        if self.terminates_on_success and not self.has_right_termination and shows_success:
            yield Choice("relabel_terminated", "success", "successes end their episode, and so do relabelled ones")
        elif self.terminates_on_success is False and self.has_right_termination is False:
            yield Choice("relabel_terminated", "keep", "successes do not end their episode, nor do relabelled ones")
        if self.has_extra_reward:
            n_steps = len(self.other_rewards)
            yield Choice("extra_reward", True, f"in {n_steps} steps the reward has a part that compute_reward leaves out")
        if keys := tuple(self.info_keys):
            yield Choice("info_keys", keys, "the functions of the environment read these entries of info")
        if texts := self.categories:
            yield Choice("categories", texts, f"they hold whole numbers in {len(self.rewards)} steps, as the goals do")
        if dimensions := dimensions_not_shown([*self.episodes, *self.starts]):
            is_all = len(dimensions) == self.spec.goal.size
            key = "achieved_goal" if is_all else f"achieved_goal[{','.join(map(str, dimensions))}]"
            yield Choice("observation_keys", (key,), f"no column of the observation shows {key}")
        if columns := self.hideable_columns:
            why = "these columns change with the desired goal, and relabelling keeps them"
            yield Choice("hidden_observation", columns, why)


def is_close(first: Array, second: Array) -> Array:
    """Return which of two arrays of rewards are equal up to rounding, beside the size of all of them."""
    size = max(float(np.abs(first).max(initial=0.0)), float(np.abs(second).max(initial=0.0)))
    return np.isclose(first, second, rtol=1e-5, atol=1e-6 * size)


def dimensions_not_shown(episodes: Sequence[RandomEpisode]) -> tuple[int, ...]:
    """Return the dimensions of the achieved goal that no column of the observation shows in every step.

    A column shows one if it is its copy, up to little noise. None are returned if a column shows one in other units: the
    units of others follow from it. Empty for observations and goals that are not flat arrays of floats.
    """
    seen, achieved = (
        np.concatenate([episode.observations[key] for episode in episodes]) for key in ("observation", "achieved_goal")
    )
    if any(values.ndim != 2 or values.dtype.kind != "f" for values in (seen, achieved)):
        return ()
    errors = np.array([np.square(seen.astype(np.float64) - values[:, None]).mean(0).min() for values in achieved.T])
    is_equal = errors <= np.square(FLOAT32_ROUNDING * np.abs(achieved).max(0))
    missing = np.flatnonzero(~(is_equal | are_noisy_copies(errors, achieved.var(0)))).tolist()
    in_other_units = any(np.ptp(achieved[:, k]) > 0 and _are_copies(seen, achieved[:, k]).any() for k in missing)
    return () if in_other_units else tuple(missing)


def columns_with_goals(episodes: Sequence[Mapping[str, Sequence[Array]]]) -> tuple[int, ...]:
    """Return the columns that hold a dimension of the desired goal, or its difference to the achieved goal, in every step.

    They equal it, or they are its copy with another scale and offset. Only dimensions that differ between episodes count. A
    column that always equals the achieved goal too is not one of the goal: an object may rest at its goal. Dimensions with
    few different values, such as those of a goal of zeros and ones, are often equalled by chance: they count if columns
    hold all that differ.
    Empty for observations and goals that are not flat arrays of floats.
    episodes: the observations of each.
    """
    seen, achieved, desired = (
        np.concatenate([episode[key] for episode in episodes]) for key in ("observation", "achieved_goal", "desired_goal")
    )
    if any(values.ndim != 2 or values.dtype.kind != "f" for values in (seen, achieved, desired)):
        return ()
    dtype = min((seen.dtype, desired.dtype), key=lambda each: each.itemsize)
    goals = np.stack([episode["desired_goal"][0] for episode in episodes])
    has_many_values, holding = list[bool](), list[Array]()  # of each dimension that differs
    for k, n_values in enumerate(len(np.unique(column)) for column in goals.T):
        goal, gap = desired[:, k], (desired - achieved)[:, k]
        if n_values == 1 or np.abs(gap).max() <= COPY_RTOL * np.ptp(goal):
            continue
        equal = (seen.astype(dtype) == goal.astype(dtype)[:, None]).all(0) | _are_copies(seen, gap)
        has_many_values.append(n_values >= FEWEST_GOALS)
        holding.append(equal | _are_copies(seen, goal) if has_many_values[-1] else equal)
    if not holding:
        return ()
    counts = np.array(has_many_values) | all(columns.any() for columns in holding)
    return tuple(np.flatnonzero(np.stack(holding)[counts].any(0)).tolist())


def _are_copies(columns: Array, values: Array) -> Array:
    """Return which columns, (T, n), are `values`, (T,), with another scale and offset. Constant ones are not."""
    values, columns = (part.astype(np.float64) - part.mean(0, np.float64) for part in (values, columns))
    scale = values @ columns / (values @ values)
    error, size = np.abs(values[:, None] * scale - columns).max(0), np.ptp(columns, axis=0)
    return np.asarray((error <= COPY_RTOL * size) & (size > 0))
