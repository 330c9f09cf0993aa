import numpy as np
import pytest
from gymnasium import spaces

from hindsight_rl.errors import FileError, OptionError, UnknownNameError
from hindsight_rl.options import AGENT_OPTIONS, Choice
from hindsight_rl.recipes import find_recipe, load_recipe, recipe_names
from hindsight_rl.recipes.files import save_recipe
from hindsight_rl.records import GoalSpec
from hindsight_rl.training.resolve import Found, resolve_settings


@pytest.mark.parametrize("name", recipe_names())
@pytest.mark.parametrize("agent", AGENT_OPTIONS)
def test_every_recipe_holds_valid_options_for_every_agent(name, agent):
    assert resolve_settings(load_recipe(name), None, agent, {}).recipe == name


def test_the_recipe_follows_from_the_id():
    assert find_recipe("FetchReach-v4").name == "fetch_reach"
    assert find_recipe("PointReach-v0").name == find_recipe("mine:PointReach-v0").name == "point_reach"
    assert find_recipe("SomethingElse-v0").name == "default"
    assert find_recipe(None).name == "default"


def test_the_agent_follows_from_the_actions_if_the_recipe_serves_both_kinds():
    assert [load_recipe("default").agent_for(is_discrete) for is_discrete in (False, True)] == ["td3", "dqn"]
    assert [load_recipe("default").agent_for(is_discrete) for is_discrete in (False, True)] == ["td3", "dqn"]
    assert load_recipe("fetch_reach").agent_for(True) == "sac"


def test_the_environment_is_made_with_what_the_user_gives_or_else_the_recipe():
    recipe = load_recipe("fetch_reach")
    assert recipe.environment_arguments({}) == {}
    assert recipe.environment_arguments({"env_options": ["n_bits=3"]}) == {"n_bits": 3}
    with pytest.raises(OptionError, match="name=value"):
        recipe.environment_arguments({"env_options": ["n_bits"]})


def test_an_unknown_recipe_names_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'fetch_reach'"):
        load_recipe("fetch_rech")


def test_a_file_is_laid_over_the_default_recipe(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('agent = "sac"\n[options]\ntau = 0.5\n[sac]\ntau = 0.25\n[td3]\ntau = 0.125\n')
    recipe = load_recipe(str(path))
    assert (recipe.name, recipe.agent, recipe.discrete_agent, recipe.automatic) == ("mine", "sac", None, True)
    base = load_recipe("default")
    for agent, tau in (("sac", 0.25), ("ddpg", 0.5)):
        general = {name: value for name, value in base.options_for(agent).items() if name != "structure"}
        assert recipe.options_for(agent) == general | {"tau": tau}


def test_a_file_that_is_not_automatic_stands_alone(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("automatic = false\n[options]\ntau = 0.5\n")
    recipe = load_recipe(str(path))
    assert (recipe.options_for("td3"), recipe.automatic, recipe.agent) == ({"tau": 0.5}, False, "td3")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"tau = ", "TOML"),
        (b"options = 3", "is not a recipe. `options` must be a valid dictionary, got 3"),
        (b"discrete_agent = 3", "discrete_agent"),
        (b"tau = 3", "`tau` must be a table of options, or stand in .options., got 3"),
        (b"\xff\xfe", "UTF-8"),
        (b"a = 1\na = 2\n", "TOML"),
    ],
)
def test_a_file_that_is_no_recipe_is_refused(tmp_path, content, message):
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(FileError, match=message):
        load_recipe(str(path))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileError, match="There is no recipe file"):
        load_recipe(str(tmp_path / "absent.toml"))


BOX = spaces.Box(-np.inf, np.inf, (3,), np.float64)
SEEN = spaces.Dict(observation=spaces.Box(-1, 1, (10,)), achieved_goal=BOX, desired_goal=BOX)
SPEC = GoalSpec.from_spaces(SEEN, spaces.Box(-1, 1, (4,)), 50)
FOUND = (
    Choice("symmetries", ("o0=-o0 g0=-g0 a0=-a0",), "a mirror of axis 0 holds"),
    Choice("hidden_observation", (0, 3), "columns 1, 2 predict the moves"),
    Choice("action_l2", 0.2, "a subgoal leads to the first contact"),
    Choice("relabel_schedule", ("2500: future=0.35,desired=0.15",), "hits must become exact"),
)
CHECKED = (
    Choice("relabel_terminated", "keep", "successes do not end"),
    Choice("remake_environment", False, "resets are exact"),
)


@pytest.mark.parametrize(
    ("recipe", "given", "found"),
    [
        ("default", {}, FOUND),
        ("default", {"hidden_observation": (1,)}, FOUND),
        ("default", {"structure": "none"}, ()),
        ("parking", {}, ()),
        ("plappert2018", {}, ()),
        ("fetch_reach", {"agent": "tqc"}, ()),
    ],
)
def test_a_saved_recipe_resolves_to_the_same_settings_whatever_is_found_then(tmp_path, recipe, given, found):
    agent, given = given.get("agent"), {name: value for name, value in given.items() if name != "agent"}
    settings = resolve_settings(load_recipe(recipe), SPEC, agent, given, Found(found), CHECKED)
    save_recipe(settings, tmp_path / "mine.toml")
    values = {"noise": 0.7, "subgoals": ("near",), "relabel_terminated": "success"}
    other = tuple(Choice(name, value, "found") for name, value in values.items())
    again = resolve_settings(load_recipe(str(tmp_path / "mine.toml")), SPEC, None, {}, Found(other), other)
    assert again == settings
    assert (again.variant, again.reasons) == (settings.variant, {})


def test_a_saved_recipe_says_why_options_have_their_values(tmp_path):
    settings = resolve_settings(load_recipe("default"), SPEC, None, {}, Found(FOUND), CHECKED)
    save_recipe(settings, tmp_path / "mine.toml")
    text = (tmp_path / "mine.toml").read_text()
    assert '# a mirror of axis 0 holds\nsymmetries = ["o0=-o0 g0=-g0 a0=-a0"]\n' in text
    assert 'structure = "inferred"\n' in text


def test_nothing_is_inferred_with_a_complete_recipe(tmp_path):
    save_recipe(resolve_settings(load_recipe("default"), SPEC, None, {}), tmp_path / "mine.toml")
    with pytest.raises(OptionError, match="has all options of a run, so nothing is inferred"):
        resolve_settings(load_recipe(str(tmp_path / "mine.toml")), SPEC, None, {"structure": "inferred"})
    plain = resolve_settings(load_recipe(str(tmp_path / "mine.toml")), SPEC, None, {"structure": "none"})
    assert plain.variant == "none"


def test_a_recipe_cannot_hold_a_function(tmp_path):
    settings = resolve_settings(load_recipe("default"), SPEC, None, {"strategy": lambda *rows: rows[0]})
    with pytest.raises(OptionError, match="cannot hold the function test_recipes"):
        save_recipe(settings, tmp_path / "mine.toml")


def test_saved_settings_are_a_recipe_that_gives_them_again(tmp_path):
    given = {"hidden": [8], "symmetries": [], "relabel": "future=0.5", "steps": 3, "seed": 7}
    settings = resolve_settings(load_recipe("fetch_slide"), None, "td3", given)
    path = tmp_path / "mine.toml"
    save_recipe(settings, path)
    again = resolve_settings(load_recipe(str(path)), None, None, {})
    assert again.flat() == settings.flat() | {"seed": 0}
    assert again.agent == "td3"
    with pytest.raises(FileError, match="must end in"):
        save_recipe(settings, tmp_path / "mine.json")
