"""FetchPush with its columns permuted, scaled, among others that mean nothing, or without those of the object.

    cd benchmarks && hindsight-rl train changed_fetch_push:Permuted-v0 --recipe default

Permuted: the 25 columns of the observation in another order.
Scaled: each column in a unit of its own, with either sign, and goals in centimetres.
Padded: 31 columns, of which three are noise and three are constant.
Unseen: 19 columns, without the position of the object and its gap to the gripper. Only the achieved goal shows the object.

What is found, and how fast it is learned, should be that of FetchPush.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import gymnasium_robotics
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Array = NDArray[np.float64]
RNG = np.random.default_rng(11)  # the same columns in each process
N_COLUMNS, N_NOISE, N_CONSTANTS = 25, 3, 3
CENTIMETRES = 100.0  # in a metre
ORDER = RNG.permutation(N_COLUMNS)
UNITS = np.exp(RNG.uniform(-2, 2, N_COLUMNS)) * RNG.choice([-1, 1], N_COLUMNS)
OF_OBJECT = [3, 4, 5, 6, 7, 8]  # its position, and its gap to the gripper
PADDED = RNG.permutation(N_COLUMNS + N_NOISE + N_CONSTANTS)


class ChangedFetchPush(gymnasium.ObservationWrapper[dict[str, Array], Array, dict[str, Array]]):
    """FetchPush whose observation is changed by `columns`, and whose goals are in `goal_unit`."""

    goal_unit = 1.0  # in one metre
    n_columns = N_COLUMNS

    def __init__(self) -> None:
        gymnasium.register_envs(gymnasium_robotics)
        super().__init__(gymnasium.make("FetchPush-v4").unwrapped)
        goal = spaces.Box(-np.inf, np.inf, (3,), np.float64)
        columns = spaces.Box(-np.inf, np.inf, (self.n_columns,), np.float64)
        self.observation_space = spaces.Dict({"observation": columns, "achieved_goal": goal, "desired_goal": goal})

    def columns(self, observation: Array) -> Array:
        """Return the columns that are seen instead of the 25 of FetchPush."""
        raise NotImplementedError

    def observation(self, observation: dict[str, Array]) -> dict[str, Array]:
        """Return the changed observation."""
        return {
            "observation": self.columns(observation["observation"]),
            "achieved_goal": observation["achieved_goal"] * self.goal_unit,
            "desired_goal": observation["desired_goal"] * self.goal_unit,
        }

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return the rewards of FetchPush, (N,) for goals (N, 3)."""
        fetch: Any = self.env
        return fetch.compute_reward(achieved_goal / self.goal_unit, desired_goal / self.goal_unit, info)


class Permuted(ChangedFetchPush):
    """The columns in another order."""

    def columns(self, observation: Array) -> Array:
        return observation[ORDER]


class Scaled(ChangedFetchPush):
    """Each column in another unit, and goals in centimetres."""

    goal_unit = CENTIMETRES

    def columns(self, observation: Array) -> Array:
        return observation * UNITS


class Padded(ChangedFetchPush):
    """Columns of noise and constant ones among those of FetchPush."""

    n_columns = len(PADDED)

    def columns(self, observation: Array) -> Array:
        noise = self.np_random.normal(size=N_NOISE)
        return np.concatenate([observation, noise, np.full(N_CONSTANTS, 2.0)])[PADDED]


class Unseen(ChangedFetchPush):
    """No column shows where the object is."""

    n_columns = N_COLUMNS - len(OF_OBJECT)

    def columns(self, observation: Array) -> Array:
        return np.delete(observation, OF_OBJECT)


for changed in (Permuted, Scaled, Padded, Unseen):
    gymnasium.register(f"{changed.__name__}-v0", entry_point=changed, max_episode_steps=50)
