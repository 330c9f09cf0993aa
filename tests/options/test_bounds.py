import pytest

from hindsight_rl.errors import OptionError, UnknownNameError
from hindsight_rl.options import AGENT_OPTIONS, build_settings, run_options

HUGE = 10**6  # of what is allocated or repeated for each
ENDLESS = 10**30  # of steps
TOO_MUCH = {
    "threads": HUGE,
    "workers": HUGE,
    "hidden": (HUGE,),
    "image_channels": (HUGE,),
    "n_critics": HUGE,
    "n_target_critics": HUGE,
    "n_quantiles": HUGE,
    "policy_period": HUGE,
    "batch_size": HUGE,
    "capacity": ENDLESS,
    "n_steps": HUGE,
    "n_sampled_goal": ENDLESS,
    "n_waypoints": HUGE,
    "tolerance_levels": HUGE,
    "episodes_per_job": HUGE,
    "policy_lag": HUGE,
    "job_timeout": 1e300,
    "eval_episodes": HUGE,
    "updates_per_step": 1e6,
    "seed": ENDLESS,
    **dict.fromkeys(
        (
            "steps",
            "random_steps",
            "offline_steps",
            "eval_every",
            "solved_evaluations",
            "log_every",
            "checkpoint_every",
            "keep_every",
            "max_episode_steps",
            "training_episode_steps",
            "target_period",
            "random_action_repeat",
            "exploration_decay_start",
            "eps_steps",
        ),
        ENDLESS,
    ),
}
WITHOUT_BOUND = {  # columns, which the task bounds; and the number of quantiles, which it must be below
    "hidden_observation",
    "hidden_goal",
    "unused_goal",
    "top_quantiles_to_drop_per_net",
}


def agent_with(option):
    return next(agent for agent in AGENT_OPTIONS if option in run_options(agent))


@pytest.mark.parametrize(("option", "value"), TOO_MUCH.items())
def test_a_number_that_would_take_all_memory_or_never_end_is_refused_at_once(option, value):
    with pytest.raises(OptionError, match=f"`{option}` must be (at most|less than) "):
        build_settings(agent_with(option), "mine", {option: value})


@pytest.mark.parametrize("option", ["hidden", "image_channels"])
def test_a_network_has_a_bounded_number_of_layers(option):
    with pytest.raises(OptionError, match=f"`{option}` must have at most 16 items") as caught:
        build_settings("td3", "mine", {option: (8,) * 100})
    assert len(str(caught.value)) < 400


def test_every_whole_number_is_in_the_table():
    options = {name: option for agent in AGENT_OPTIONS for name, option in run_options(agent).items()}
    whole = {name for name, option in options.items() if "int" in str(option.type).replace("interval", "")}
    assert whole - WITHOUT_BOUND == TOO_MUCH.keys() - {"job_timeout", "updates_per_step"}


def test_every_list_and_every_text_has_a_bounded_length():
    lists = {
        name
        for agent in AGENT_OPTIONS
        for name, option in run_options(agent).items()
        if str(option.type).startswith("tuple")
    }
    for name in lists:
        with pytest.raises(OptionError, match=f"`{name}` must have at most .* items") as caught:
            build_settings(agent_with(name), "mine", {name: ("x",) * HUGE})
        assert len(str(caught.value)) < 400
    with pytest.raises(OptionError, match="at most 100000 characters"):
        build_settings("td3", "mine", {"subgoals": ("x" * 100_001,)})


def test_only_some_of_many_unknown_options_are_named():
    with pytest.raises(UnknownNameError, match="9,980 other names are unknown too"):
        build_settings("td3", "mine", {f"x{number}": 1 for number in range(10_000)})
