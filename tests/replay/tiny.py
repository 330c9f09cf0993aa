"""A tiny task in which every number in a buffer identifies its step."""

import numpy as np
from gymnasium import spaces

from hindsight_rl import Episode, GoalSpec, HindsightBuffer
from hindsight_rl.options import ReplayOptions, option_fields


def box(size, dtype=np.float32):
    return spaces.Box(-np.inf, np.inf, (size,), dtype)


OBSERVATION_SPACE = spaces.Dict(observation=box(2), achieved_goal=box(1), desired_goal=box(1))
ACTION_SPACE = box(1)
SPEC = GoalSpec.from_spaces(OBSERVATION_SPACE, ACTION_SPACE)


def compute_reward(achieved_goal, goal, info):
    """Minus the distance: the value identifies the two goals."""
    return -np.abs(achieved_goal - goal)[:, 0]


def split(options):
    """Split keyword arguments into those of a HindsightBuffer and the options of its ReplayOptions."""
    names = [field.name for field in option_fields(ReplayOptions)]
    replay = {name: value for name, value in options.items() if name in names}
    return {name: value for name, value in options.items() if name not in names} | {"options": ReplayOptions(**replay)}


def buffer_of(capacity, observation_space, action_space, compute_reward, **options):
    """A buffer, from its arguments and its replay options together. Several environments have autoreset "disabled"."""
    if options.get("n_envs", 1) != 1:
        options = {"autoreset": "disabled"} | options
    return HindsightBuffer(capacity, observation_space, action_space, compute_reward, **split(options))


def make_buffer(capacity=100, **options):
    return buffer_of(capacity, OBSERVATION_SPACE, ACTION_SPACE, compute_reward, **options)


def place(number, t):
    """The achieved goal of episode `number` after t steps, which is unique."""
    return 1000.0 * number + t


def make_episode(number, steps, terminated=False, **more):
    """Episode `number`: observation (number, t), achieved place(number, t), desired -number, action t, reward t / 8."""
    t = np.arange(steps + 1, dtype=np.float32)
    observation = np.stack([np.full(steps + 1, number, np.float32), t], axis=1)
    desired = np.full((steps + 1, 1), -number, np.float32)
    return Episode(observation, place(number, t)[:, None], desired, t[:-1, None], t[:-1] / 8, terminated, **more)


def seen(number, t):
    """The observation of a single environment in episode `number` after t steps."""
    parts = {"observation": [number, t], "achieved_goal": [place(number, t)], "desired_goal": [-number]}
    return {key: np.array(value, np.float32) for key, value in parts.items()}


def step(number, t, terminated=False, truncated=False):
    """The arguments of `add` for step t of episode `number`, of a single environment."""
    return seen(number, t), np.float32([t]), t / 8, seen(number, t + 1), terminated, truncated, {}


def play(buffer, number, steps, terminated=False):
    """Add a whole episode step by step."""
    for t in range(steps):
        is_last = t == steps - 1
        buffer.add(*step(number, t, is_last and terminated, is_last and not terminated))


def vector_step(numbers, ts, terminated, truncated):
    """The same for several environments at once, with a leading axis."""
    before = [seen(number, t) for number, t in zip(numbers, ts, strict=True)]
    after = [seen(number, t + 1) for number, t in zip(numbers, ts, strict=True)]
    stacked = [{key: np.stack([each[key] for each in part]) for key in part[0]} for part in (before, after)]
    ts = np.asarray(ts, np.float32)
    return stacked[0], ts[:, None], ts / 8, stacked[1], np.asarray(terminated), np.asarray(truncated), {}


def live_episodes(timeline):
    """The episodes in the ring, read from its rows: {first row: (number, steps)}."""
    found, row = {}, 0
    while row < timeline.high_water:
        steps = int(timeline.steps_left[row])
        if steps:
            found[row] = (int(timeline.rows["observation"][row, 0]), steps)
        row += steps + 1
    return found
