"""A run compares small random actions with whole ones where many joints move a body to goals that are far away."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from hindsight_rl import HER
from hindsight_rl.training.checkpoint import restore_trainer, trainer_state
from hindsight_rl.training.run_state import SearchState

FAST = {"hidden": (8,), "batch_size": 8, "updates_per_step": 0.02, "random_steps": 120, "capacity": 10_000}
MAX_STEPS = 300


class Crawl(gymnasium.Env):
    """Three joints move a body in the plane by at most 0.02 per step, for which an eighth of their range suffices."""

    strength = 8.0

    def __init__(self):
        goal, seen = (spaces.Box(-np.inf, np.inf, (n,), np.float64) for n in (2, 4))
        self.observation_space = spaces.Dict(observation=seen, achieved_goal=goal, desired_goal=goal)
        self.action_space = spaces.Box(-1.0, 1.0, (3,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.goal = self.np_random.uniform(-1, 1, size=(2, 2))
        self.speed, self.steps = np.zeros(2), 0
        return self.see(), {"is_success": False}

    def step(self, action):
        push = self.strength * np.array([action[0] + action[2], action[1] - action[2]], np.float64)
        self.speed = 0.9 * self.speed + 0.002 * np.clip(push, -1, 1)
        self.place, self.steps = self.place + self.speed, self.steps + 1
        seen = self.see()
        reward = float(self.compute_reward(seen["achieved_goal"], seen["desired_goal"], {}))
        return seen, reward, False, self.steps >= MAX_STEPS, {"is_success": reward == 0}

    def see(self):
        seen = np.concatenate([self.place, self.speed])
        return {"observation": seen, "achieved_goal": self.place.copy(), "desired_goal": self.goal.copy()}

    def compute_reward(self, achieved_goal, desired_goal, info):
        return (np.linalg.norm(achieved_goal - desired_goal, axis=-1) < 0.1).astype(np.float64) - 1


class Weak(Crawl):
    """The way of a step is proportional to the action."""

    strength = 0.5


def train(steps, task=Crawl, **options):
    model = HER(task, check=False, **(FAST | options))
    model.learn(steps)
    return model


@pytest.fixture(scope="module")
def crawled():
    with train(3_000) as model:
        yield model


def test_an_eighth_of_the_range_is_used_where_it_suffices(crawled):
    state, settings = crawled.trainer.search.state, crawled.settings
    assert (state.phase, state.first_scaled) == ("learning", 3)
    assert settings.agent_options.action_scale == 0.125
    assert "0.125 of the range" in settings.reasons["action_scale"]
    assert crawled.trainer.counts.episodes == 11 + 2  # three random ones, eight that compare, and those since
    episodes = crawled.trainer.buffer.timeline.episodes()
    assert [len(episode) for episode in episodes] == [200] * 4 + [300] * 2
    assert max(np.abs(episode.action).max() for episode in episodes) <= 0.125


def test_the_random_episodes_are_those_that_are_left(crawled):
    assert crawled.trainer.search.state.random_episodes == 4  # of 11: those with a fraction of the action range


def test_actions_that_were_stored_before_are_not_several_times_the_largest_one(crawled):
    batch = crawled.trainer.buffer.sample_many(1, 500)
    action = crawled.agent.algorithm.preprocessor.transitions(batch, 1).action
    assert 0.9 < action.abs().max() <= 1 + 1e-5


@pytest.mark.parametrize(
    ("task", "options", "scale"),
    [(Weak, {}, 1.0), (Crawl, {"structure": "none"}, 1.0), (Crawl, {"action_scale": 0.5}, 0.5)],
)
def test_the_whole_range_stays_where_it_is_needed_or_asked_for(task, options, scale):
    with train(2_700, task, **options) as model:
        assert model.settings.agent_options.action_scale == scale


@pytest.mark.parametrize(("episodes_per_job", "policy_lag"), [(1, 0), (2, 0), (4, 0), (1, 1), (2, 3)])
def test_every_second_episode_is_small_however_many_episodes_a_job_has(episodes_per_job, policy_lag):
    with train(0, episodes_per_job=episodes_per_job, policy_lag=policy_lag) as model:
        trainer, played = model.trainer, []
        trainer.search.state = SearchState(phase="scaling", next_at=10_000)
        while len(played) < 8:
            played += trainer.rollouts.next_episodes(trainer.search)
        assert [episode.number for episode in played] == list(range(8))
        assert [np.abs(episode.action).max() <= 0.125 for episode in played] == [False, True] * 4


@pytest.mark.parametrize("episodes_per_job", [1, 2, 4])
def test_half_of_the_episodes_repeat_their_actions_after_the_first_inference(episodes_per_job):
    with train(0, episodes_per_job=episodes_per_job) as model:
        trainer, played = model.trainer, []
        trainer.search.state = SearchState(phase="random", next_at=10_000)
        while len(played) < 8:
            played += trainer.rollouts.next_episodes(trainer.search)
        repeats = [(np.diff(episode.action, axis=0) == 0).all(axis=1).mean() for episode in played]
        assert [repeated > 0.4 for repeated in repeats] == [False, False, True, True] * 2


def test_a_checkpoint_of_the_comparison_gives_the_same_settings():
    with train(1_500) as model, HER(Crawl, check=False, **FAST) as other:
        assert model.trainer.search.state.phase == "scaling"
        arrays, data = trainer_state(model.trainer)
        restore_trainer(other.trainer, {name: array.copy() for name, array in arrays.items()}, data)
        for each in (model, other):
            while each.trainer.counts.env_steps < 2_700:
                each.trainer.learn_from_next_job()
        assert other.settings == model.settings
        assert other.settings.agent_options.action_scale == 0.125
