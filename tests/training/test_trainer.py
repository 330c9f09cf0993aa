from itertools import pairwise

import gymnasium
import numpy as np
import pytest
from short_runs import her, short

from hindsight_rl.errors import HindsightError
from hindsight_rl.training.episodes import REFUSED_IN_A_ROW


class Broken(gymnasium.Wrapper):
    """Returns NaN in the last step of the episodes for which `broken` is true."""

    def __init__(self, env, broken):
        super().__init__(env)
        self.broken, self.episode = broken, -1

    def reset(self, **options):
        self.episode, self.steps = self.episode + 1, 0
        return self.env.reset(**options)

    def step(self, action):
        observation, *rest = self.env.step(action)
        self.steps += 1
        if self.steps == 10 and self.broken(self.episode):
            observation = observation | {"observation": np.full(4, np.nan, np.float32)}
        return observation, *rest


def test_an_episode_with_bad_values_is_left_out_whole_and_counted():
    env = Broken(short(), lambda episode: episode % 3 == 1)
    with her(env) as model:
        model.learn(90)
        counts = model.trainer.counts
        assert (counts.env_steps, counts.episodes) == (90, 9)
        assert 2 <= counts.refused_episodes <= 4
        assert len(model.trainer.buffer) == 90 - 10 * counts.refused_episodes
        assert all(np.isfinite(v).all() for v in model.agent.state_dict().values() if v.dtype.kind == "f")


def test_many_bad_episodes_in_a_row_end_the_run_with_the_reason():
    with her(Broken(short(), lambda episode: True)) as model:
        with pytest.raises(HindsightError, match=f"refused {REFUSED_IN_A_ROW} episodes in a row.*(NaN|finite)"):
            model.learn(1000)
        assert len(model.trainer.buffer) == 0


def test_all_episodes_of_the_last_job_are_counted_before_the_run_ends():
    with her(Broken(short(), lambda episode: True), episodes_per_job=REFUSED_IN_A_ROW + 5) as model:
        for times in (1, 2):  # going on does not help
            with pytest.raises(HindsightError, match=f"refused {times * (REFUSED_IN_A_ROW + 5)} episodes in a row"):
                model.learn(1000)
            assert model.trainer.counts.episodes == times * (REFUSED_IN_A_ROW + 5)
            assert model.trainer.is_resumable


def test_a_solved_task_is_not_trained_on():
    with her(solved_evaluations=1, solved_at=0.5) as model:
        model.trainer.history.append({"env_steps": 0.0, "success_rate": 0.6, "return_mean": 0.0})
        assert list(model.trainer.run(1000)) == []


def test_collecting_and_updating_are_timed():
    with her() as model:
        seconds = []
        for _ in range(4):
            model.trainer.learn_from_next_job()
            counts = model.trainer.counts
            seconds.append(counts.collect_seconds + counts.update_seconds)
        assert all(later > earlier > 0 for earlier, later in pairwise(seconds))
