import json

import pytest

from hindsight.errors import OptionError, UnknownNameError
from hindsight.options import AGENT_OPTIONS, Settings, coerce, option_types
from hindsight.recipes import Recipe, load_recipe
from hindsight.training.settings import resolve_settings

PLAIN = Recipe("plain", (), "td3", {"tau": 0.25, "steps": 7}, {})


def test_given_values_override_the_recipe_and_the_recipe_the_defaults():
    settings = resolve_settings(PLAIN, None, {"steps": 9, "policy_lag": 2})
    assert (settings.agent_options.tau, settings.training.steps, settings.rollout.policy_lag) == (0.25, 9, 2)
    assert settings.training.seed == 0


@pytest.mark.parametrize("agent", AGENT_OPTIONS)
def test_no_option_name_stands_in_two_records(agent):
    settings = resolve_settings(PLAIN, agent, {})
    assert len(settings.flat()) == sum(len(vars(record)) for record in settings.records())


@pytest.mark.parametrize("agent", AGENT_OPTIONS)
def test_settings_survive_json(agent):
    settings = resolve_settings(PLAIN, agent, {"hidden": [3, 4]})
    assert settings.agent_options.hidden == (3, 4)
    assert Settings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


def test_a_recipe_may_hold_options_of_other_agents():
    recipe = Recipe("r", (), "td3", {"policy_period": 3}, {})
    assert resolve_settings(recipe, "td3", {}).agent_options.policy_period == 3
    assert "policy_period" not in option_types("ddpg")
    resolve_settings(recipe, "ddpg", {})


@pytest.mark.parametrize(
    ("overrides", "error", "said"),
    [
        ({"tua": 1.0}, UnknownNameError, "Did you mean 'tau'"),
        ({"tau": "fast"}, OptionError, "tau is 'fast', but it must be float"),
        ({"steps": 1.5}, OptionError, "steps is 1.5, but it must be int"),
        ({"steps": True}, OptionError, "steps is True"),
        ({"hidden": 64}, OptionError, "hidden is 64"),
        ({"discount": 1.5}, OptionError, "discount"),
        ({"batch_size": 0}, OptionError, "at least 1"),
        ({"alpha": 1.5}, OptionError, "between 0 and 1"),
        ({"beta": -0.5}, OptionError, "between 0 and 1"),
        ({"prioritized": True, "energy_priority": True}, OptionError, "choose one"),
        ({"learning_rate": -1.0}, OptionError, "learning_rate"),
        ({"updates_per_step": 0.0}, OptionError, "between 0 and 1,000"),
        ({"solved_at": 1.5}, OptionError, "success rate"),
        ({"workers": -1}, OptionError, "at least 0"),
        ({"device": "tpu"}, OptionError, "device"),
    ],
)
def test_what_cannot_be_is_refused(overrides, error, said):
    with pytest.raises(error, match=said):
        resolve_settings(PLAIN, "td3", overrides)


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"option": {"tau": 0.5}}, "Did you mean 'options'"),
        ({"td3": {"nosie": 0.9}}, "Did you mean 'noise'"),
        ({"tdd3": {}}, "td3"),
    ],
)
def test_a_recipe_with_names_that_mean_nothing_is_refused(tables, said):
    with pytest.raises(UnknownNameError, match=said):
        resolve_settings(Recipe("r", (), "td3", {}, tables), "sac", {})


def test_an_unknown_agent_names_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'td3'"):
        resolve_settings(PLAIN, "td4", {})


def test_coerce_changes_only_lists_and_integers():
    assert coerce("x", [1, 2], tuple[int, ...]) == (1, 2)
    assert isinstance(coerce("x", 1, float), float)
    assert coerce("x", None, int | None) is None
    assert coerce("x", 3, int | None) == 3


@pytest.mark.parametrize(
    ("without", "variant"),
    [
        ({}, "subgoals"),
        ({"subgoals": ()}, "symmetric"),
        ({"subgoals": (), "symmetries": ()}, "relative"),
        ({"subgoals": (), "symmetries": (), "goal_features": "none"}, "plain"),
    ],
)
def test_the_variant_names_what_was_told_of_the_world(without, variant):
    settings = resolve_settings(load_recipe("fetch_push"), None, without)
    assert settings.variant == settings.to_json()["variant"] == variant
    assert resolve_settings(load_recipe("bit_flipping"), "dqn", {}).variant == "plain"
