"""The recipes of the other simulators, those of the package chosen by the id. One of them solves PandaReach."""

from pathlib import Path

import numpy as np
import pytest

from hindsight_rl import HER, make_goal_env
from hindsight_rl.records import OBSERVATION_KEYS
from hindsight_rl.rollout.collect import play_episode

WARNINGS_OF_CHECKS = pytest.mark.filterwarnings("ignore:check of")  # tested in tests/envs
pytestmark = [pytest.mark.simulator, WARNINGS_OF_CHECKS]

APART = Path(__file__).parents[1] / "benchmarks" / "recipes" / "panda_push.toml"  # no part of the package
SMALL = {"hidden": (8,), "random_steps": 50, "updates_per_step": 0.1, "eval_every": 0}


@pytest.mark.parametrize(
    ("package", "name", "recipe", "augmented", "inputs", "limit"),
    [
        ("panda_gym", "PandaReach-v3", "panda_reach", 2, 3 + 3, 50),
        ("panda_gym", "PandaPush-v3", "panda_push", 2, 14 + 3 + 3 + 1, 50),
        ("highway_env", "parking-v0", "parking", 4, 5 + 6, 100),
    ],
)
def test_a_recipe_learns_saves_and_acts(package, name, recipe, augmented, inputs, limit, tmp_path):
    pytest.importorskip(package)
    chosen = str(APART) if recipe == APART.stem else None
    with HER(name, recipe=chosen, **SMALL) as model:
        model.learn(limit + 50)
        assert model.settings.recipe == recipe
        assert len(model.trainer.buffer.symmetries) == augmented
        assert model.policy.spec.layout.size == inputs
        assert model.trainer.counts.updates > 0
        model.save(tmp_path / "model")
        parts = np.zeros(model.spec.observation.size), *np.zeros((2, model.spec.goal.size))
        seen = dict(zip(OBSERVATION_KEYS, parts, strict=True))
        action, _ = model.predict(seen)
    with HER.load(tmp_path / "model") as loaded:
        assert loaded.predict(seen)[0].tobytes() == action.tobytes()


def test_a_few_episodes_solve_panda_reach():
    pytest.importorskip("panda_gym")
    with HER("PandaReach-v3", seed=0, eval_every=0) as model:
        assert model.learn(500).evaluate(100).success_rate >= 0.95


def test_the_penalty_of_a_crash_is_kept_under_every_goal():
    pytest.importorskip("highway_env")
    with HER("parking-v0", **SMALL) as model:
        model.learn(1)
        buffer = model.trainer.buffer
        env = make_goal_env("parking-v0")
        crashes = []
        for seed in range(20):
            episode = play_episode(env, lambda seen: np.array([1.0, 0.0], np.float32), seed, limit=100)
            crashes.append(bool(episode.terminated) and not episode.success)
            buffer.add_episode(episode)
        assert any(crashes)
        batch = buffer.sample(2_000)
        assert batch.reward[batch.is_relabelled & batch.terminated].max() < -4
        assert batch.reward[batch.is_relabelled & ~batch.terminated].min() > -2
