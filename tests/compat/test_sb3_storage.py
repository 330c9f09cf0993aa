"""The arrays of the SB3 adapter: SB3's layout, made on demand."""

import numpy as np
import pytest
from stable_baselines3 import HerReplayBuffer as SB3HerReplayBuffer
from tiny_sb3 import arrays_of, make, play, play_episode, play_unequal

from hindsight_rl.compat.sb3 import HerReplayBuffer


@pytest.mark.parametrize(("size", "handle_timeouts"), [(6000, True), (6000, False), (90, True)])
def test_the_arrays_are_those_of_sb3(size, handle_timeouts):
    for n_episodes in (4, 30, 60):
        kinds = (HerReplayBuffer, SB3HerReplayBuffer)
        ours, theirs = (make(size, 3, kind, handle_timeout_termination=handle_timeouts) for kind in kinds)
        play_unequal([ours, theirs], 3, n_episodes, seed=n_episodes)
        assert (ours.pos, ours.full, ours.size()) == (theirs.pos, theirs.full, theirs.size())
        assert ours._current_ep_start.tolist() == theirs._current_ep_start.tolist()
        mine, others = arrays_of(ours), arrays_of(theirs)
        kept = mine["next_observations observation"][..., 1] > 0  # the steps that are still stored
        assert kept.sum() > min(size, 3 * n_episodes) / 2
        if ours.full:  # SB3 drops an episode once its first step is overwritten; ours may still be complete
            mine["ep_length"] = np.where(others["ep_length"] > 0, mine["ep_length"], 0)
        for name, array in mine.items():
            assert array.shape == others[name].shape
            assert array.dtype == others[name].dtype
            assert (array[kept] == others[name][kept]).all(), name
            assert not array[~kept].any(), name


def test_the_arrays_are_read_only():
    buffer = make()
    play_episode(buffer, 1, 3)
    with pytest.raises(ValueError, match="read-only"):
        buffer.dones[0] = 1
    with pytest.raises(AttributeError):
        buffer.pos = 3


def test_truncating_the_last_trajectory_closes_open_episodes():
    buffer = make(100, 2)
    for t in range(3):
        play(buffer, [1, 2], [t, t], [t == 2, False])
    assert buffer.ep_length[:3].tolist() == [[3, 0]] * 3
    with pytest.warns(UserWarning, match="The last trajectory in the replay buffer will be truncated"):
        buffer.truncate_last_trajectory()
    assert buffer.ep_length[:3].tolist() == [[3, 3]] * 3
    assert (buffer.dones[2].tolist(), buffer.timeouts[2].tolist()) == ([1, 1], [1, 1])
    assert buffer._current_ep_start.tolist() == [3, 3]
    buffer.truncate_last_trajectory()  # nothing is open: no warning
