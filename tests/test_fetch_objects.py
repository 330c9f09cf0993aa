"""The recipes of the Fetch tasks with an object, and each part left out."""

from pathlib import Path

import numpy as np
import pytest

from hindsight_rl import HER, make_goal_env

pytest.importorskip("gymnasium_robotics")

RECIPES = Path(__file__).parents[1] / "benchmarks" / "recipes"
SMALL = {"hidden": (8,), "random_steps": 50, "updates_per_step": 0.1, "eval_every": 0}


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("name", "recipe", "augmented", "subgoals", "inputs"),
    [
        ("FetchPush-v4", str(RECIPES / "fetch_push.toml"), 8, 1, 21 + 3 + 1),
        ("FetchPickAndPlace-v4", str(RECIPES / "fetch_pick_and_place.toml"), 4, 1, 21 + 3 + 1),
        ("FetchSlide-v4", "fetch_slide", 2, 0, 23 + 3),
    ],
)
def test_a_recipe_learns_saves_and_acts(name, recipe, augmented, subgoals, inputs, tmp_path):
    with HER(name, recipe=recipe, **SMALL) as model:
        model.learn(150)
        assert len(model.trainer.buffer.symmetries) == augmented
        assert (model.trainer.buffer.sample(64).subgoal is not None) == bool(subgoals)
        assert (len(model.policy.spec.subgoals), model.policy.spec.layout.size) == (subgoals, inputs)
        model.save(tmp_path / "model")
        observation = make_goal_env(name).reset(seed=0)[0]
        action, _ = model.predict(observation)
    with HER.load(tmp_path / "model") as loaded:
        assert loaded.predict(observation)[0].tobytes() == action.tobytes()
        far = observation | {"observation": observation["observation"] + np.r_[np.zeros(3), 1, np.zeros(21)]}
        moved = observation | {"desired_goal": observation["desired_goal"] + 0.1}
        has_subgoals = bool(subgoals)
        far_moved = far | {"desired_goal": moved["desired_goal"]}
        assert np.array_equal(loaded.predict(far)[0], loaded.predict(far_moved)[0]) == has_subgoals  # the subgoal acts


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("variant", "options", "inputs"),
    [
        ("symmetric", {"subgoals": ()}, 21 + 3),
        ("relative", {"subgoals": (), "symmetries": ()}, 21 + 3),
        ("plain", {"subgoals": (), "symmetries": (), "goal_features": "none"}, 25 + 3),
    ],
)
def test_each_part_can_be_left_out(variant, options, inputs):
    with HER("FetchPush-v4", recipe=str(RECIPES / "fetch_push.toml"), **SMALL, **options) as model:
        model.learn(100)
        assert model.policy.spec.layout.size == inputs, variant
        assert len(model.trainer.buffer.symmetries) == (8 if variant == "symmetric" else 1)
        assert model.trainer.counts.updates == 5
