from types import SimpleNamespace

import numpy as np

from hindsight_rl.structure.contact import _nearest_columns


def test_a_tool_that_is_always_as_high_as_the_object_is_found_in_the_right_order():
    rng = np.random.default_rng(0)
    thing = rng.uniform(-0.1, 0.1, (400, 3)) * (1, 1, 0)
    tool = rng.uniform(-0.5, 0.5, (400, 3)) * (1, 1, 0) + (0, 0, 0.05)
    onsets = np.arange(0, 400, 40)
    tool[onsets] = thing[onsets] + (0, 0, 0.04)
    steps = SimpleNamespace(next_observation=tool, next_achieved_goal=thing)
    heights = np.abs(tool[:, None, :] - thing[:, 2:, None])[:, 0]
    nearer = np.median(heights[onsets], 0) / np.median(heights, 0)
    assert nearer[2] > max(nearer[:2])  # the height alone says nothing, and both other columns seem better
    assert _nearest_columns(steps, onsets, [0, 1, 2]) == (0, 1, 2)
