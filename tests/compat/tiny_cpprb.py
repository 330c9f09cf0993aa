"""A tiny task for the cpprb adapter: states that contain the number of their episode and step."""

import numpy as np

from hindsight_rl.compat.cpprb import HindsightReplayBuffer

ENV = {"obs": {"shape": 2}, "act": {}, "next_obs": {"shape": 2}}


def distance(next_state, action, goal):
    """The action, minus the distance along the second axis: shows which step and which goal the reward belongs to."""
    return action[:, 0] - np.abs(next_state[:, 1] - goal[:, 1])


def make(size=100, env_dict=ENV, max_episode_len=6, reward_func=distance, **options):
    return HindsightReplayBuffer(size, env_dict, max_episode_len, reward_func, **options)


def play(buffer, number, steps):
    """Add an episode: step t goes from (number, t) to (number, t + 1) by action 100 * t, with the goal (number, -1)."""
    for t in range(steps):
        buffer.add(obs=(number, t), act=100 * t, next_obs=(number, t + 1))
    buffer.on_episode_end((number, -1))


def filled(lengths, **options):
    """A buffer with episodes 1, 2, ... of these lengths."""
    buffer = make(**options)
    for number, steps in enumerate(lengths, start=1):
        play(buffer, number, steps)
    return buffer


def prioritized_buffer(seed=0, **options):
    """A buffer with 18 transitions of two episodes, and their indexes in the order in which they are stored."""
    buffer = filled([3, 3], additional_goals=2, seed=seed, **options)
    index = np.unique(np.concatenate([buffer.sample(100)["indexes"] for _ in range(10)]))
    assert len(index) == 18
    return buffer, index


def priorities_of(buffer):
    """(priority + eps) ** alpha of each stored transition, in the order of `get_all_transitions` until the ring wraps."""
    values = buffer._error_priorities().leaves
    return values[values > 0]
