"""Recorded episodes of a small task."""

import numpy as np

from hindsight_rl.records import Episode


def episode(env, seed=0, **changes):
    """Three steps with random numbers, an info `load`, and a success."""
    rng = np.random.default_rng(seed)
    rows = {key: rng.uniform(-1, 1, (4, *space.shape)).astype("f4") for key, space in env.observation_space.items()}
    values = {"action": rng.uniform(-1, 1, (3, 2)).astype("f4"), "reward": np.array([-1.0, -1.0, 0.0]), "success": True}
    return Episode(**{**rows, **values, "info": {"load": np.arange(3.0)}, **changes})
