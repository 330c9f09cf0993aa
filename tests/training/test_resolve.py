import json
from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces
from short_runs import her

from hindsight_rl.errors import OptionError, UnknownNameError
from hindsight_rl.options import AGENT_OPTIONS, STRUCTURE, Choice, Settings
from hindsight_rl.recipes import Recipe, load_recipe, recipe_names
from hindsight_rl.records import GoalSpec
from hindsight_rl.training.resolve import Found, resolve_settings, without_contradictions

PLAIN = Recipe(name="plain", options={"tau": 0.25, "steps": 7})
GOAL = spaces.Box(-np.inf, np.inf, (3,), np.float64)
SEEN = spaces.Dict(observation=spaces.Box(-1, 1, (10,)), achieved_goal=GOAL, desired_goal=GOAL)
SPEC = GoalSpec.from_spaces(SEEN, spaces.Box(-1, 1, (4,)), 50)
MIRROR = "o0=-o0 g0=-g0 a0=-a0"
REACH = "reach achieved=0,1,2 goal=3,4,5 tolerance=0.1 switch_distance=0.2"
DISCRETE = GoalSpec.from_spaces(SEEN, spaces.Discrete(4), 50)


def found_by_steps(**values):
    return Found(tuple(Choice(name, value, "found") for name, value in values.items()))


def test_given_values_override_the_recipe_and_the_recipe_the_defaults():
    settings = resolve_settings(PLAIN, SPEC, None, {"steps": 9, "policy_lag": 2})
    assert (settings.agent_options.tau, settings.training.steps, settings.rollout.policy_lag) == (0.25, 9, 2)
    assert settings.training.seed == 0
    assert [settings.source(name) for name in ("steps", "tau", "seed")] == ["given", "recipe", "default"]


def test_the_agent_follows_from_the_actions_unless_it_is_given():
    recipe = load_recipe("default")
    assert resolve_settings(recipe, SPEC, None, {}).agent == "td3"
    assert resolve_settings(recipe, DISCRETE, None, {}).agent == "dqn"
    assert resolve_settings(recipe, DISCRETE, "qrdqn", {}).agent == "qrdqn"


def test_an_automatic_recipe_chooses_from_the_task_what_nobody_gave():
    settings = resolve_settings(load_recipe("default"), SPEC, None, {"hidden": [7]})
    assert (settings.agent_options.hidden, settings.agent_options.discount) == ((7,), 0.95)
    assert [settings.source(name) for name in ("hidden", "discount", "tau")] == ["given", "task", "recipe"]
    assert settings.reasons["discount"] == "20 steps ahead, in episodes of 50 steps"
    assert "hidden" not in settings.reasons


def test_what_was_observed_lies_between_the_defaults_and_the_recipe():
    observed = Found((Choice("relabel_terminated", "success", "success ends an episode"), Choice("tau", 0.9, "observed")))
    settings = resolve_settings(PLAIN, SPEC, None, {}, observed)
    assert (settings.replay.relabel_terminated, settings.agent_options.tau) == ("success", 0.25)
    assert settings.reasons == {"relabel_terminated": "success ends an episode"}
    assert settings.source("relabel_terminated") == "task"
    assert resolve_settings(PLAIN, SPEC, None, {"relabel_terminated": "keep"}, observed).reasons == {}


def test_the_users_time_limit_is_the_one_that_counts():
    settings = resolve_settings(load_recipe("default"), SPEC, None, {"max_episode_steps": 20})
    assert (settings.agent_options.discount, settings.training.random_steps) == (0.9, 200)


def test_an_own_recipe_of_one_line_keeps_the_automatic_settings(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[options]\ntarget_noise = 0.3\n")
    settings = resolve_settings(load_recipe(str(path)), SPEC, None, {})
    assert (settings.agent_options.target_noise, settings.agent_options.tau) == (0.3, 0.01)
    assert settings.agent_options.goal_features == "relative"
    assert settings.recipe == "mine"
    path.write_text("automatic = false\n[options]\ntarget_noise = 0.3\n")
    settings = resolve_settings(load_recipe(str(path)), SPEC, None, {})
    assert (settings.agent_options.tau, settings.agent_options.goal_features) == (0.005, "none")


@pytest.mark.parametrize("agent", AGENT_OPTIONS)
def test_no_option_name_occurs_in_two_records(agent):
    settings = resolve_settings(PLAIN, SPEC, agent, {})
    assert len(settings.flat()) == sum(len(record.to_dict()) for record in settings.records())


@pytest.mark.parametrize("agent", AGENT_OPTIONS)
def test_settings_are_made_again_from_json(agent):
    settings = resolve_settings(PLAIN, SPEC, agent, {"hidden": [3, 4]})
    assert settings.agent_options.hidden == (3, 4)
    assert Settings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


def test_a_recipe_may_hold_options_of_other_agents():
    recipe = Recipe(name="r", options={"policy_period": 3})
    assert resolve_settings(recipe, SPEC, "td3", {}).agent_options.policy_period == 3
    resolve_settings(recipe, SPEC, "ddpg", {})


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"tua": 1.0}, UnknownNameError, "Did you mean 'tau'"),
        (
            {"gamma": 0.9},
            UnknownNameError,
            "no option `gamma` .agent 'td3'...* Names of other libraries: docs/migrating.md",
        ),
        ({"dueling": True}, UnknownNameError, "no option `dueling` .agent 'td3'"),
        ({"tau": "fast"}, OptionError, "`tau` must be a valid number, got 'fast'"),
        ({"steps": 1.5}, OptionError, "`steps` must be a valid integer"),
        ({"batch_size": 0}, OptionError, "at least 1"),
        ({"prioritized": True, "energy_priority": True}, OptionError, "Give one of them"),
        ({"updates_per_step": 0.0}, OptionError, "`updates_per_step` must be greater than 0"),
    ],
)
def test_names_and_values_that_are_not_valid_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        resolve_settings(PLAIN, SPEC, "td3", given)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"option": {"tau": 0.5}}, "Did you mean 'options'"),
        ({"td3": {"nosie": 0.9}}, "Did you mean 'noise'"),
        ({"tdd3": {}}, "td3"),
    ],
)
def test_unknown_names_in_a_recipe_are_refused(tables, message):
    with pytest.raises(UnknownNameError, match=message):
        resolve_settings(Recipe(name="r", agent_options=tables), SPEC, "sac", {})


def test_an_unknown_agent_names_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'td3'"):
        resolve_settings(PLAIN, SPEC, "td4", {})


def test_a_structure_that_nothing_declares_is_not_declared():
    with pytest.raises(OptionError, match=r"structure='declared' needs an option that declares it: subgoals, "):
        resolve_settings(load_recipe("default"), SPEC, None, {"structure": "declared"})


@pytest.mark.parametrize(
    ("recipe", "given", "variant"),
    [
        ("parking", {}, "declared"),
        ("parking", {"symmetries": ()}, "declared"),
        ("parking", dict.fromkeys(STRUCTURE, ()), "none"),
        ("parking", {"structure": "none"}, "none"),
        ("parking", {"structure": "inferred"}, "inferred"),
        ("fetch_reach", {}, "none"),
        ("default", {}, "inferred"),
        ("default", {"symmetries": (MIRROR,)}, "declared"),
        ("default", {"symmetries": (MIRROR,), "structure": "declared"}, "declared"),
        ("plappert2018", {}, "none"),
        ("plappert2018", {"symmetries": (MIRROR,)}, "declared"),
        ("plappert2018", {"structure": "inferred"}, "inferred"),
        ("fetch_reach", {"symmetries": (MIRROR,)}, "declared"),
    ],
)
def test_the_variant_names_where_the_structure_comes_from(recipe, given, variant):
    settings = resolve_settings(load_recipe(recipe), SPEC, None, given)
    assert settings.variant == settings.to_json()["variant"] == variant
    if variant != "declared":
        assert not any(settings.flat()[name] for name in STRUCTURE)


@pytest.mark.parametrize("recipe", recipe_names())
def test_a_recipe_infers_only_if_it_says_so(recipe):
    settings = resolve_settings(load_recipe(recipe), SPEC, None, {})
    assert (settings.training.structure == "inferred") == (recipe == "default")


@pytest.mark.parametrize(
    ("options", "variant"),
    [
        ("tau = 0.5", "none"),
        ("hidden_observation = [1, 4]", "declared"),
        ('structure = "inferred"', "inferred"),
        ('structure = "none"', "none"),
    ],
)
@pytest.mark.parametrize("head", ["", "automatic = false\n"])
def test_an_own_recipe_infers_only_if_it_says_so_itself(tmp_path, head, options, variant):
    path = tmp_path / "mine.toml"
    path.write_text(f"{head}[options]\n{options}\n")
    settings = resolve_settings(load_recipe(str(path)), SPEC, None, {})
    assert settings.training.structure == settings.variant == variant


def test_an_option_that_the_user_gives_overrules_one_finding_and_leaves_the_others():
    found = found_by_steps(hidden_observation=(0, 1, 3, 4), symmetries=(MIRROR,), noise=0.5)
    given = {"hidden_observation": [1, 4]}
    settings = resolve_settings(load_recipe("default"), SPEC, None, given, found)
    assert settings.training.structure == "inferred"
    assert settings.agent_options.hidden_observation == (1, 4)
    assert (settings.replay.symmetries, settings.agent_options.noise) == ((MIRROR,), 0.5)
    assert settings.not_used == ("hidden_observation = (0, 1, 3, 4), since you set hidden_observation = (1, 4)",)
    assert (settings.variant, settings.declared) == ("declared", {"hidden_observation"})
    assert Settings.from_json(json.loads(json.dumps(settings.to_json()))).variant == "declared"


def test_a_finding_that_the_user_switches_off_leaves_the_others():
    found = found_by_steps(hidden_observation=(0, 1), symmetries=(MIRROR,))
    settings = resolve_settings(load_recipe("default"), SPEC, None, {"symmetries": ()}, found)
    assert (settings.variant, settings.replay.symmetries) == ("inferred", ())
    assert settings.agent_options.hidden_observation == (0, 1)
    assert settings.not_used == (f"symmetries = {(MIRROR,)}, since you set symmetries = ()",)


@pytest.mark.parametrize(
    ("given", "action_l2"),
    [({}, 0.2), ({"subgoals": ()}, 0.5), ({"n_steps": 3}, 0.5), ({"subgoals": (), "action_l2": 0.3}, 0.3)],
)
def test_without_subgoals_the_penalty_that_they_need_is_not_used(given, action_l2):
    subgoals = Choice("subgoals", ("reach achieved=0,1 goal=2,3 tolerance=0.1",), "found")
    penalty = Choice("action_l2", 0.2, "a subgoal leads to the first contact", needs="subgoals")
    found = Found((Choice("action_l2", 0.5, "the goal rests"), subgoals, penalty))
    settings = resolve_settings(load_recipe("default"), SPEC, None, given, found)
    assert settings.agent_options.action_l2 == action_l2
    reason = {0.2: penalty.reason, 0.5: "the goal rests", 0.3: None}[action_l2]
    assert settings.reasons.get("action_l2") == reason


def test_a_recipe_that_infers_may_declare_some(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(f'[options]\nstructure = "inferred"\nsymmetries = ["{MIRROR}"]\n')
    found = found_by_steps(hidden_observation=(0, 1), symmetries=("o1=-o1",))
    settings = resolve_settings(load_recipe(str(path)), SPEC, None, {}, found)
    assert (settings.training.structure, settings.declared) == ("inferred", {"symmetries"})
    assert (settings.replay.symmetries, settings.agent_options.hidden_observation) == ((MIRROR,), (0, 1))
    others = resolve_settings(load_recipe(str(path)), SPEC, None, {"structure": "none"})
    assert (others.variant, others.replay.symmetries) == ("none", ())


def test_discrete_actions_begin_with_the_same_settings_with_and_without_structure():
    """Their energy priority follows from the spaces alone."""
    default = load_recipe("default")
    plain = resolve_settings(default, DISCRETE, None, {})
    assert plain.from_recipe == resolve_settings(default, DISCRETE, None, {"structure": "none"}).from_recipe
    assert (plain.variant, plain.replay.energy_priority) == ("inferred", True)
    assert plain.reasons["energy_priority"].startswith("goals are vectors")


def test_no_structure_beside_an_option_that_declares_some_is_refused():
    with pytest.raises(OptionError, match="uses no structure, but symmetries declares some"):
        resolve_settings(load_recipe("default"), SPEC, None, {"structure": "none", "symmetries": (MIRROR,)})


def test_a_recipe_that_says_declared_must_declare_something(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[options]\nstructure = "declared"\n')
    with pytest.raises(OptionError, match="needs an option that declares it"):
        resolve_settings(load_recipe(str(path)), SPEC, None, {})


def test_what_was_found_is_above_general_options_and_below_tuned_and_given_ones():
    observed = found_by_steps(action_l2=0.7, symmetries=("o0=-o0 a0=-a0",), noise=0.5)
    inferred = resolve_settings(load_recipe("default"), SPEC, None, {"noise": 0.3}, observed)
    assert inferred.replay.symmetries == ("o0=-o0 a0=-a0",)
    assert (inferred.agent_options.action_l2, inferred.agent_options.noise) == (0.7, 0.3)
    assert inferred.reasons["action_l2"] == "found"
    assert "noise" not in inferred.reasons
    tuned = resolve_settings(load_recipe("parking"), SPEC, None, {}, observed)
    assert tuned.agent_options.action_l2 == load_recipe("parking").options["action_l2"] == 0.015
    assert len(tuned.replay.symmetries) == 2


def test_columns_that_hold_the_goal_are_hidden_wherever_the_structure_comes_from():
    checked = [Choice("hidden_observation", (1,), "these columns hold the goal")]
    for structure in ("none", "inferred"):
        settings = resolve_settings(load_recipe("default"), SPEC, None, {"structure": structure}, None, checked)
        assert settings.agent_options.hidden_observation == (1,)
    found = found_by_steps(hidden_observation=(0, 1, 3))
    settings = resolve_settings(load_recipe("default"), SPEC, None, {}, found, checked)
    assert settings.agent_options.hidden_observation == (0, 1, 3)
    assert settings.reasons["hidden_observation"] == "found; these columns hold the goal"
    settings = resolve_settings(load_recipe("default"), SPEC, None, {"goal_features": "none"}, None, checked)
    assert (settings.agent_options.hidden_observation, settings.not_used) == ((1,), ())


def test_without_differences_the_columns_that_a_recipe_hides_are_seen(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[options]\ngoal_features = "relative"\nhidden_observation = [0]\nhidden_goal = [1]\n')
    hidden = [
        resolve_settings(load_recipe(str(path)), SPEC, None, given).agent_options
        for given in ({}, {"goal_features": "none"}, {"goal_features": "none", "hidden_observation": (0,)})
    ]
    assert [(each.hidden_observation, each.hidden_goal) for each in hidden] == [((0,), (1,)), ((), ()), ((0,), ())]


@pytest.mark.parametrize(
    ("given", "left_out"),
    [
        ({"prioritized": True}, {"energy_priority", "energy_cap"}),
        ({"energy_priority": False}, {"energy_priority", "energy_cap"}),
        ({"strategy": "final"}, {"relabel", "relabel_schedule"}),
        ({"n_sampled_goal": 8}, {"relabel", "relabel_schedule"}),
        ({"relabel": "future=1"}, {"relabel", "relabel_schedule"}),
        ({"exploration_decay": 0.5, "exploration_decay_start": 9}, {"exploration_decay", "exploration_decay_start"}),
        ({"n_target_critics": 2}, {"n_critics"}),
        ({"goal_features": "none"}, {"hidden_goal", "hidden_observation"}),
        ({"highest_achieved": ()}, {"lowest_achieved", "highest_achieved", "rest_displacement"}),
        ({"subgoals": (REACH,)}, {"subgoals", "n_waypoints"}),
        ({"n_waypoints": 10}, {"subgoals", "n_waypoints"}),
        ({"extra_reward": True}, {"subgoals"}),
        ({"relabel_at": "episode_end"}, {"subgoals", "relabel_schedule"}),
        ({"n_steps": 3}, {"subgoals"}),
        ({"prioritized": False, "strategy": "future", "n_steps": 1}, set()),
    ],
)
def test_what_contradicts_a_given_option_is_not_chosen_from_the_task(given, left_out):
    values = {
        "lowest_achieved": (0.0, 0.0, 0.0),
        "highest_achieved": (1.0, 1.0, 1.0),
        "rest_displacement": 0.1,
        "n_waypoints": 400,
        "hidden_observation": (7,),
        "energy_priority": True,
        "energy_cap": 0.1,
        "relabel": "future=0.6,desired=0.2",
        "relabel_schedule": ("100: future=0.3",),
        "exploration_decay": 0.4,
        "exploration_decay_start": 100,
        "n_critics": 1,
        "subgoals": ("near",),
        "hidden_goal": (0, 1),
    }
    settings = resolve_settings(load_recipe("default"), SPEC, None, given, found_by_steps(**values))
    assert values.keys() - settings.reasons.keys() == left_out


def test_structure_is_not_inferred_from_actions_that_are_bits():
    spec = GoalSpec.from_spaces(SEEN, spaces.MultiBinary(4), 50)
    assert resolve_settings(load_recipe("default"), spec, None, {}).training.structure == "none"
    with pytest.raises(OptionError, match=r"Nothing can be inferred here: .* flat arrays of floats"):
        resolve_settings(load_recipe("default"), spec, None, {"structure": "inferred"})


def test_structure_is_inferred_beside_demonstrations_too():
    spec = GoalSpec.from_spaces(SEEN, spaces.Box(-1, 1, (4,)), 50)
    assert (
        resolve_settings(load_recipe("default"), spec, None, {"demonstrations": "grasp-v0"}).training.structure
        == "inferred"
    )


def test_arguments_of_her_are_suggested():
    with pytest.raises(UnknownNameError, match=r"no option `agnt`.*Did you mean 'agent'"):
        resolve_settings(load_recipe("default"), None, "td3", {"agnt": "sac"})


def test_later_sources_and_later_choices_of_a_source_count_more():
    recipe, checked = load_recipe("default"), [Choice("noise", 0.1, "checked"), Choice("tau", 0.2, "checked")]
    steps = (Choice("noise", 0.3, "steps"), Choice("noise", 0.4, "later steps"), Choice("random_eps", 0.5, "steps"))
    found = Found(steps, endings=(Choice("random_eps", 0.6, "endings"),))
    settings = resolve_settings(recipe, SPEC, None, {}, found, checked)
    assert (settings.agent_options.noise, settings.agent_options.tau, settings.agent_options.random_eps) == (0.4, 0.2, 0.6)
    assert [settings.reasons[name] for name in ("noise", "tau", "random_eps")] == ["later steps", "checked", "endings"]


def test_choices_that_end_episodes_early_are_taken_back_as_one():
    found = found_by_steps(lowest_achieved=(0.0,), highest_achieved=(1.0,), training_episode_steps=30, noise=0.5)
    assert [choice.option for choice in replace(found, ends_early=False).choices()] == ["noise"]
    assert len(found.choices()) == 4


def test_the_choices_of_one_option_are_replaced_and_the_others_stay():
    found = found_by_steps(symmetries=(MIRROR,), noise=0.5)
    assert found.with_option("symmetries", [Choice("symmetries", (), "wall"), Choice("noise", 0.9, "wall")]) == Found(
        (Choice("noise", 0.5, "found"), Choice("symmetries", (), "wall"))
    )
    assert found.with_option("symmetries", []).value("symmetries") is None


POINT = spaces.Box(-np.inf, np.inf, (2,), np.float64)
SEEN_POINT = spaces.Dict(observation=spaces.Box(-1, 1, (5,)), achieved_goal=POINT, desired_goal=POINT)
POINT_SPEC = GoalSpec.from_spaces(SEEN_POINT, spaces.Box(-1, 1, (2,)), 50)
REACH_POINT = "reach achieved=0,1 goal=2,3 tolerance=0.1 switch_distance=0.3"
MIRROR_X = "o0=-o0 o2=-o2 g0=-g0 a0=-a0"
MIRROR_Y = "o1=-o1 g1=-g1 a1=-a1"  # not column 3, with which the subgoal compares column 1


def chosen(**values):
    return {name: Choice(name, value, "found") for name, value in values.items()}


def test_nothing_is_dropped_without_a_contradiction():
    found = chosen(symmetries=(MIRROR_X, MIRROR_Y), energy_priority=True, n_waypoints=4)
    assert without_contradictions(found, {"noise": 0.3}, POINT_SPEC) == (found, {})


def test_symmetries_that_keep_the_given_subgoals_stay():
    found = chosen(symmetries=(MIRROR_X, MIRROR_Y))
    usable, dropped = without_contradictions(found, {"subgoals": [REACH_POINT]}, POINT_SPEC)
    assert usable == chosen(symmetries=(MIRROR_X,))
    assert dropped["symmetries"].value == (MIRROR_Y,)


def test_symmetries_that_were_found_later_than_the_subgoals_and_do_not_keep_them_are_dropped():
    """As where a tool's units, which contacts show, are measured again."""
    found = chosen(symmetries=(MIRROR_X, MIRROR_Y), subgoals=(REACH_POINT,))
    usable, dropped = without_contradictions(found, {}, POINT_SPEC)
    assert usable == chosen(symmetries=(MIRROR_X,), subgoals=(REACH_POINT,))
    assert dropped["symmetries"].value == (MIRROR_Y,)


def test_a_chain_of_given_subgoals_keeps_all_symmetries():
    chain = f"{REACH_POINT} dimensions=0,1 placed=0.1"
    found = chosen(symmetries=(MIRROR_X, MIRROR_Y))
    assert without_contradictions(found, {"subgoals": (chain,)}, POINT_SPEC) == (found, {})


def test_subgoals_that_given_symmetries_do_not_keep_are_dropped():
    for mirror, is_kept in ((MIRROR_X, True), (MIRROR_Y, False)):
        usable, dropped = without_contradictions(chosen(subgoals=(REACH_POINT,)), {"symmetries": (mirror,)}, POINT_SPEC)
        assert ("subgoals" in usable, "subgoals" in dropped) == (is_kept, not is_kept)


def test_columns_stay_visible_without_the_differences_that_replace_them():
    found = chosen(column_differences=("2-0", "3-1"), hidden_observation=(0, 1, 2, 3), symmetries=(MIRROR_X,))
    _, dropped = without_contradictions(found, {"column_differences": ("2-0",)}, POINT_SPEC)
    assert dropped.keys() == {"hidden_observation", "symmetries"}
    assert dropped["hidden_observation"].reason == "column_differences lacks 3-1"
    for given in ({"column_differences": ("3-1", "2-0", "4-0")}, {"column_differences": (), "hidden_observation": (0,)}):
        assert without_contradictions(found, given, POINT_SPEC)[1] == {}


def test_every_option_has_its_meaning_and_where_its_value_comes_from():
    with her(tau=0.5) as model:
        explained = model.settings.explained()
        assert set(explained) == set(model.settings.flat())
    assert all(facts["meaning"] for facts in explained.values())
    assert {facts["part"] for facts in explained.values()} == {"agent", "hindsight", "collecting", "training"}
    assert (explained["tau"]["part"], explained["tau"]["default"]) == ("agent", 0.005)
    assert "recipe" in explained["symmetries"]
    assert "recipe" not in explained["seed"]
    assert [explained[name]["source"] for name in ("tau", "symmetries", "capacity")] == ["given", "recipe", "default"]


CELLS = spaces.Box(0, 5, (2,), np.int64)
GRID_SPACES = {"observation": CELLS, "achieved_goal": CELLS, "desired_goal": CELLS}
GRID = GoalSpec.from_spaces(spaces.Dict(GRID_SPACES), spaces.Discrete(4), 40)


def test_whole_numbers_are_categories_unless_there_is_no_structure():
    settings = resolve_settings(load_recipe("default"), GRID, None, {})
    assert (settings.variant, settings.agent_options.categories) == ("inferred", ("o0-1=0..5", "g0-1=0..5"))
    assert str(settings.replay.relabel) == "future=0.4,random=0.4"
    assert settings.agent_options.plan_states
    assert "follow rules" in settings.reasons["plan_states"]
    assert not resolve_settings(load_recipe("default"), GRID, None, {"plan_states": False}).agent_options.plan_states
    wide = spaces.Dict({**GRID_SPACES, "observation": spaces.Box(0, 99_999, (2,), np.int64)})
    assert resolve_settings(
        load_recipe("default"), GoalSpec.from_spaces(wide, spaces.Discrete(4), 40), None, {}
    ).agent_options.plan_states
    plain = resolve_settings(load_recipe("default"), GRID, None, {"structure": "none"})
    assert (plain.variant, plain.agent_options.categories, plain.source("relabel")) == ("none", (), "default")
    assert not plain.agent_options.plan_states


def test_categories_that_the_steps_show_count_unless_there_is_no_structure():
    seen = (Choice("categories", ("o0=0..3", "g0=0..3"), "whole numbers"),)
    settings = resolve_settings(load_recipe("default"), DISCRETE, None, {}, checked=seen)
    assert (settings.variant, settings.agent_options.categories) == ("inferred", seen[0].value)
    assert settings.reasons["categories"] == "whole numbers"
    plain = resolve_settings(load_recipe("default"), DISCRETE, None, {"structure": "none"}, checked=seen)
    assert plain.agent_options.categories == ()
    own = resolve_settings(load_recipe("default"), DISCRETE, None, {"categories": ["o1=0..3"]}, checked=seen)
    assert own.agent_options.categories == ("o1=0..3",)
