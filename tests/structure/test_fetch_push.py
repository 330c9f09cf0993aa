"""The structure of FetchPush, found in its steps, however the columns of its observation stand."""

import gymnasium
import numpy as np
import pytest

from hindsight import HER
from hindsight.records.symmetries import Symmetries

gymnasium_robotics = pytest.importorskip("gymnasium_robotics")
pytestmark = pytest.mark.simulator

N_COLUMNS, N_PADDED = 25, 31
PLACE = np.random.default_rng(7).permutation(N_PADDED)[:N_COLUMNS]  # where each column of FetchPush stands now


class Shuffled(gymnasium.ObservationWrapper):
    """FetchPush with its columns in another order, among constants and noise."""

    max_steps = 50

    def __init__(self):
        gymnasium.register_envs(gymnasium_robotics)
        super().__init__(gymnasium.make("FetchPush-v4").unwrapped)
        box = gymnasium.spaces.Box(-np.inf, np.inf, (N_PADDED,), np.float64)
        self.observation_space = gymnasium.spaces.Dict({**self.env.observation_space.spaces, "observation": box})

    def observation(self, observation):
        seen = np.full(N_PADDED, 2.0)
        noise = np.setdiff1d(np.arange(N_PADDED), PLACE)[:3]
        seen[noise] = self.np_random.normal(size=len(noise))
        seen[PLACE] = observation["observation"]
        return {**observation, "observation": seen}


def test_the_structure_of_shuffled_and_padded_columns_is_that_of_fetch_push():
    with HER(Shuffled, recipe="default", check=False, seed=0, max_episode_steps=50) as model:
        while model.trainer.search.is_warm_up:
            model.trainer.learn_from_next_job()
        options = model.settings.agent_options
        (subgoal,) = model.policy.spec.parsed_subgoals
        assert subgoal.achieved == tuple(PLACE[[0, 1, 2]])
        assert subgoal.goal == tuple(PLACE[[3, 4, 5]])
        assert 0.02 < subgoal.tolerance < 0.04 < subgoal.switch_distance < 0.2
        assert set(PLACE[[0, 1, 3, 4]]) <= set(options.hidden_observation)
        assert not set(PLACE[[6, 7, 8, 14, 15, 20, 21]]) & set(options.hidden_observation)
        assert set(np.setdiff1d(np.arange(N_PADDED), PLACE)) <= set(options.hidden_observation)
        assert len(Symmetries(model.settings.replay.symmetries, model.spec)) == 8
