"""Presets: options for features of a task, worked out by hand."""

import pytest

from hindsight_rl.errors import OptionError, UnknownNameError
from hindsight_rl.options import AGENT_OPTIONS, Feature, run_options
from hindsight_rl.recipes.presets import Preset, load_preset, preset_choices, preset_names


def options_of(measures, *presets):
    return {choice.option: choice.value for choice in preset_choices([Feature(name, "why") for name in presets], measures)}


@pytest.mark.parametrize(
    ("steps_to_goal", "limit", "options"),
    [
        (15, 500, {"training_episode_steps": 90, "discount": 0.967}),
        (2, 500, {"training_episode_steps": 50, "discount": 0.95}),
        (2, 50, {"discount": 0.95}),
        (80, 500, {"discount": 0.99}),
        (40, 100, {"discount": 0.988}),
        (80, 100, {}),  # twice as far is more than the time limit: the estimate is wrong
        (15, 150, {"discount": 0.967}),
        (15, None, {"discount": 0.967}),
    ],
)
def test_training_episodes_are_as_long_as_goals_need(steps_to_goal, limit, options):
    measures = {"steps_to_goal": steps_to_goal} | ({} if limit is None else {"time_limit": limit})
    assert options_of(measures, "body") == options | {"relabel": "future=0.4,desired=0.4"}


@pytest.mark.parametrize(("limit", "steps"), [(400, 120), (300, 100)])
def test_plans_from_many_starts_need_short_episodes_of_at_most_a_third_of_the_limit(limit, steps):
    measures = {"steps_to_goal": 80.0, "time_limit": limit}
    waypoints = {"n_waypoints": 400, "critic_layer_norm": True, "relabel": "future=0.6,desired=0.4"}
    assert options_of(measures, "waypoints") == waypoints
    assert options_of(measures, "many_starts") == {"training_episode_steps": steps}


def test_what_a_preset_needs_is_not_needed_by_itself():
    choices = preset_choices([Feature("waypoints", "far", needs="n_waypoints")], {})
    needs = {choice.option: choice.needs for choice in choices}
    assert needs == {"n_waypoints": "", "critic_layer_norm": "n_waypoints", "relabel": "n_waypoints"}


def test_an_object_that_must_be_hit_gets_exact_hits_later():
    options = options_of({"episode_steps": 50}, "hit")
    assert options["exploration_decay_start"] == 100_000  # 2,000 episodes
    assert options["relabel_schedule"] == ("100000: future=0.35,desired=0.15",)


def test_a_preset_has_lists_of_numbers_and_measures_that_exist():
    assert Preset(name="large", options={"hidden": [256, 256]}).values({}) == {"hidden": (256, 256)}
    with pytest.raises(OptionError, match="goal_std"):
        Preset(name="misspelt", scaled={"energy_cap": {"factor": 0.4, "of": "goal_sdt"}})


def test_scaled_numbers_have_two_digits():
    assert options_of({"goal_std": 0.1234}, "lone_object")["energy_cap"] == 0.049
    assert options_of({"tolerance_step": 1 / 4}, "many_dimensions") == {"action_l2": 0.025}


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_has_options_of_the_library(name):
    preset = load_preset(name)
    names = {*preset.options, *preset.steps, *preset.scaled}
    assert names <= {option for agent in AGENT_OPTIONS for option in run_options(agent)}
    assert names or preset.horizon is not None


def test_no_two_presets_have_the_same_values():
    values = [load_preset(name).model_dump_json(exclude={"name", "feature", "tasks"}) for name in preset_names()]
    assert len(set(values)) == len(values)


def test_an_unknown_preset_is_refused_with_similar_names():
    with pytest.raises(UnknownNameError, match="object"):
        load_preset("objekt")
