"""A local run makes two environments: one for training, one for evaluation."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from short_runs import OPTIONS, her, short

from hindsight_rl import HER, BitFlipping, PointReach
from hindsight_rl.cli import main
from hindsight_rl.errors import FileError, GoalEnvError, OptionError, ShapeError
from hindsight_rl.rollout.episode_sources import LocalSource
from hindsight_rl.storage import usable_cores
from hindsight_rl.training.assemble import environment_id
from hindsight_rl.training.replacement import replace_agent


def test_learning_and_evaluating_take_two_environments(counted):
    with HER(counted, recipe="point_reach", **OPTIONS) as model:
        model.learn(40)
        model.evaluate(2)
        model.learn(20)
        assert counted.made == 2
    assert counted.closed == 2


def test_hindsight_train_makes_two_environments(counted, tmp_path):
    options = ["--recipe", "point_reach", "--hidden", "8", "--random-steps", "20", "--steps", "60", "--eval-every", "30"]
    options += ["--eval-episodes", "2"]
    gymnasium.register("Counted-v0", entry_point=lambda: counted())
    try:
        assert main(["train", "Counted-v0", "--folder", str(tmp_path / "run"), "--workers", "0", *options]) == 0
    finally:
        del gymnasium.registry["Counted-v0"]
    assert (counted.made, counted.closed) == (2, 2)


def test_predicting_takes_one_environment(counted):
    with HER(counted, recipe="point_reach", **OPTIONS) as model:
        model.predict({"observation": np.zeros(4), "achieved_goal": np.zeros(2), "desired_goal": np.ones(2)})
    assert (counted.made, counted.closed) == (1, 1)


@pytest.mark.parametrize("check", [True, False])
def test_with_workers_this_process_makes_one_environment(counted, check):
    with HER(counted, recipe="point_reach", workers=1, check=check, **OPTIONS) as model:
        assert model.source is not None
        assert counted.made == 1


def test_the_learner_and_the_workers_that_evaluate_make_one_environment_each(counted):
    gymnasium.register("Counted-v0", entry_point=lambda: counted())
    try:
        with HER("Counted-v0", recipe="point_reach", workers="auto", **OPTIONS) as model:
            model.learn(20)
            model.evaluate(2)
            assert counted.made == (1 if usable_cores() > 1 else 2)
    finally:
        del gymnasium.registry["Counted-v0"]


def test_an_environment_that_was_given_needs_no_workers():
    with her(short(), workers="auto") as model:
        assert isinstance(model.source, LocalSource)


def test_a_saved_model_starts_no_workers_by_itself():
    with HER("PointReach-v0", recipe="point_reach", workers="auto", **OPTIONS) as model:
        saved = model.saved_model()
    with HER(None, saved=saved) as model:
        assert isinstance(model.source, LocalSource)


def test_a_closed_model_makes_new_environments(counted):
    with HER(counted, recipe="point_reach", check=False, **OPTIONS) as model:
        model.learn(20)
    with model:
        model.learn(20)
        model.evaluate(1)
        assert counted.made == 3
    assert counted.closed == 3


def test_the_environment_is_closed_if_the_settings_are_refused(counted):
    with pytest.raises(OptionError):
        HER(counted, recipe="point_reach", engine="ray", **OPTIONS)
    assert (counted.made, counted.closed) == (1, 1)


@pytest.mark.parametrize(("is_exact", "made"), [(True, 1), (False, 3)])
def test_environments_are_made_again_if_resets_are_found_inexact(counted, monkeypatch, is_exact, made):
    monkeypatch.setattr("hindsight_rl.training.assemble.resets_exactly", lambda environment: is_exact)
    with HER(counted, recipe="point_reach", check=False, **OPTIONS) as model:
        model.learn(20)  # two episodes
        assert counted.made == made


class Played(PointReach):
    """Counts its steps, in all environments."""

    steps = 0

    def __init__(self):
        super().__init__(max_steps=10)

    def step(self, action):
        Played.steps += 1
        return super().step(action)


@pytest.mark.parametrize("options", [{"check": True}, {"check": False}, {"check": False, "remake_environment": False}])
def test_every_step_before_training_is_counted(options, monkeypatch):
    monkeypatch.setattr(Played, "steps", 0)
    with HER(Played, recipe="point_reach", **OPTIONS, **options) as model:
        trainer = model.trainer
        assert trainer.counts.check_steps == Played.steps > 0
        model.learn(60)
        assert trainer.counts.check_steps + trainer.counts.env_steps == Played.steps
        saved = model.saved_model()
    with HER(Played, saved=saved) as loaded:
        loaded.learn(20)
        counts = loaded.trainer.counts
        assert counts.check_steps + counts.env_steps == Played.steps


def test_a_new_agent_costs_no_environment_step(monkeypatch):
    monkeypatch.setattr(Played, "steps", 0)
    with HER(Played, recipe="default", check=False, **OPTIONS) as model:
        model.learn(40)
        assert model.settings.variant == "inferred"
        replace_agent(model.trainer, model.settings, model.trainer.search._build(model.settings, None, None))
        assert model.trainer.counts.check_steps + model.trainer.counts.env_steps == Played.steps


def test_an_environment_that_was_given_stays_open():
    env, closed = short(), []
    env.close = lambda: closed.append(True)
    with her(env) as model:
        model.learn(20)
    assert not closed


def test_an_environment_that_was_given_is_used_for_training_and_evaluation_in_turn():
    with her(short()) as model, her() as other:
        model.learn(60)
        model.evaluate(2)
        model.learn(60)
        assert other.learn(120).agent.state_dict()["weights"].tobytes() == model.agent.state_dict()["weights"].tobytes()


@pytest.mark.parametrize("options", [{"workers": 2}, {"remake_environment": True}])
def test_an_environment_that_was_given_cannot_be_made_again(options):
    with pytest.raises(OptionError, match="give an id or a function"):
        her(short(), **options)


def test_engine_and_workers_must_agree():
    with pytest.raises(OptionError, match="needs workers"):
        her(engine="ray")
    with pytest.raises(OptionError, match="needs engine='ray'"):
        her(ray_address="auto")


class Wider(PointReach):
    """PointReach with observations of 7 numbers."""

    def __init__(self):
        super().__init__()
        box = gymnasium.spaces.Box(-1, 1, (7,), np.float32)
        self.observation_space = gymnasium.spaces.Dict({**self.observation_space.spaces, "observation": box})

    def _observe(self):
        return super()._observe() | {"observation": np.zeros(7, np.float32)}


def test_a_policy_that_does_not_fit_the_environment_is_refused(tmp_path):
    with her() as model:
        model.save(tmp_path / "model")
    with pytest.raises(FileError, match=r"observation \(4,\) float32 against \(7,\)"):
        HER.load(tmp_path / "model", env=Wider)


class Stronger(PointReach):
    """PointReach with actions from -2 to 2."""

    def __init__(self):
        super().__init__()
        self.action_space = gymnasium.spaces.Box(-2, 2, (2,), np.float32)


def test_a_policy_is_refused_if_the_bounds_of_the_actions_differ(tmp_path):
    with her() as model:
        model.save(tmp_path / "model")
    with pytest.raises(FileError, match="action"):
        HER.load(tmp_path / "model", env=Stronger)


def test_a_policy_is_not_used_with_another_time_limit(tmp_path):
    with her(lambda: gymnasium.make("PointReach-v0", max_episode_steps=7)) as model:
        model.save(tmp_path / "model")
    with pytest.raises(OptionError, match=r"PointReach-v0 differs .*7 steps per episode against 50"):
        HER.load(tmp_path / "model").evaluate(1)


def test_an_id_from_a_file_never_imports_a_module():
    with her() as model:
        assert environment_id(replace(model.spec, env_id="PointReach-v0")) == "PointReach-v0"
        with pytest.raises(OptionError, match="antigravity"):
            environment_id(replace(model.spec, env_id="antigravity:PointReach-v0"))
        with pytest.raises(OptionError, match="no registered id"):
            environment_id(replace(model.spec, env_id=None))


def test_success_terminates_only_if_a_function_or_the_reward_shows_it(monkeypatch):
    with her(relabel_terminated="success") as model:
        model.trainer  # noqa: B018
        model.close()
        model._assembly.spec = replace(model.spec, reward_high=float("inf"))
        buffer, _ = model._assembly.buffers(model.settings, model.agent.policy_spec)
        assert buffer.functions["compute_success"].name == "compute_success"
        monkeypatch.setattr("hindsight_rl.training.assemble.success_function", lambda env: None)
        with pytest.raises(OptionError, match=r"needs a reward of two values, success_reward, or an .*compute_success"):
            model._assembly.buffers(model.settings, model.agent.policy_spec)


def test_the_range_of_returns_is_unknown_with_an_extra_reward():
    for extra_reward, lowest in ((False, -50.0), (True, -np.inf)):
        with her(discount=0.98, extra_reward=extra_reward) as model:
            assert model.agent.algorithm.value_range[0] == pytest.approx(lowest)


def small_bits(n_bits=3):
    return BitFlipping(n_bits)


@pytest.mark.parametrize("env", ["BitFlipping-v0", small_bits])
@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_env_options_reach_every_environment_and_are_saved(env, workers, tmp_path):
    options = {"env_options": ("n_bits=5",), "random_steps": 5, "hidden": (8,), "workers": workers}
    with HER(env, **options) as model:
        model.learn(10, folder=tmp_path / "run")
        assert model.spec.goal.shape == (5,)
        model.save(tmp_path / "bits")
    with HER.load(tmp_path / "bits", None if isinstance(env, str) else env) as again:
        assert again.evaluate(2).outcomes[0].steps <= 5
    with HER.load(tmp_path / "bits", BitFlipping(5), workers=0) as again:  # it exists already
        assert again.settings.rollout.env_options == ()


def test_env_options_that_the_environment_cannot_take_are_refused():
    with pytest.raises(OptionError, match="need an id or a function"):
        HER(BitFlipping(5), env_options=("n_bits=5",))
    with pytest.raises(GoalEnvError, match=r"small_bits .*unexpected keyword argument 'bits'"):
        HER(small_bits, env_options=("bits=5",))


def test_a_recipe_may_hold_env_options(tmp_path):
    recipe = tmp_path / "mine.toml"
    recipe.write_text('discrete_agent = "dqn"\n[options]\nenv_options = ["n_bits=4"]\n')
    with HER("BitFlipping-v0", recipe=str(recipe)) as model:
        assert (model.spec.goal.shape, model.settings.agent) == ((4,), "dqn")
    with HER("BitFlipping-v0", recipe=str(recipe), env_options=("n_bits=6",)) as model:
        assert model.spec.goal.shape == (6,)
    recipe.write_text('discrete_agent = "dqn"\n[dqn]\nenv_options = ["n_bits=4"]\n')
    with pytest.raises(OptionError, match=r"has env_options .*n_bits=4.* made with"):
        HER("BitFlipping-v0", recipe=str(recipe))


class Fuelled(gymnasium.ObservationWrapper):
    """PointReach with a further key of the observation."""

    def __init__(self):
        super().__init__(short())
        fuel = gymnasium.spaces.Box(0, 1, (1,), np.float32)
        self.observation_space = gymnasium.spaces.Dict({**self.env.observation_space.spaces, "fuel": fuel})

    def observation(self, observation):
        return observation | {"fuel": np.ones(1, np.float32)}


@pytest.mark.parametrize("env", [Fuelled, Fuelled()])
def test_further_keys_of_the_observation_are_appended_in_every_environment(env, tmp_path):
    with her(env, observation_keys=("fuel",)) as model:
        model.learn(20)
        model.evaluate(1)
        assert model.spec.observation.shape == (5,)
        model.save(tmp_path / "model")
    with HER.load(tmp_path / "model", env=env) as again:
        assert again.evaluate(1).outcomes[0].steps <= 10


class Unseen(gymnasium.ObservationWrapper):
    """PointReach whose observation has the velocity, but not the position."""

    def __init__(self):
        super().__init__(short())
        parts = self.env.observation_space.spaces
        velocity = gymnasium.spaces.Box(-1, 1, (2,), parts["observation"].dtype.type)
        self.observation_space = gymnasium.spaces.Dict({**parts, "observation": velocity})

    def observation(self, observation):
        return observation | {"observation": observation["observation"][2:]}


@pytest.mark.parametrize("env", [Unseen, Unseen()])
def test_what_the_observation_does_not_show_of_the_goal_is_appended(env, tmp_path):
    with HER(env, recipe="default", **OPTIONS) as model:
        assert model.settings.rollout.observation_keys == ("achieved_goal",)
        assert model.settings.reasons["observation_keys"] == "no column of the observation shows achieved_goal"
        assert model.spec.observation.shape == (4,)
        model.learn(20)
        rows = model.trainer.buffer.timeline.rows
        assert (rows["observation"][:20, 2:] == rows["achieved_goal"][:20]).all()
        model.save(tmp_path / "model")
    with HER.load(tmp_path / "model", env=env) as again:
        assert again.evaluate(1).outcomes[0].steps <= 10
        seen, _ = Unseen().reset(seed=0)
        whole = {**seen, "observation": np.append(seen["observation"], seen["achieved_goal"])}
        several = {key: np.stack([value] * 2) for key, value in seen.items()}
        action = again.predict(whole)[0]
        assert (again.predict(seen)[0] == action).all()
        np.testing.assert_allclose(again.predict(several)[0], [action] * 2, rtol=1e-5, atol=1e-6)  # rounded differently
        with pytest.raises(ShapeError, match=r"Expected shape \(4,\) for `observation`, got \(3,\)"):
            again.predict({**seen, "observation": np.zeros(3, np.float32), "achieved_goal": 0.0})


@pytest.mark.parametrize(
    "options",
    [
        {"structure": "none"},
        {"check": False},
        {"observation_keys": ("desired_goal",)},
        {"demonstrations": "reach/unseen-v0"},
    ],
)
def test_nothing_is_appended_without_structure_or_check_or_beside_what_the_user_gives(options):
    with HER(Unseen, recipe="default", **options) as model:
        assert model.settings.rollout.observation_keys == options.get("observation_keys", ())


class AnyHeight(PointReach):
    """PointReach where the first dimension of the goal alone decides."""

    def compute_success(self, achieved_goal, desired_goal):
        return super().compute_success(achieved_goal * (1, 0), desired_goal * (1, 0))


def test_networks_see_the_achieved_goal_where_no_reward_depends_on_the_desired_one():
    with HER(AnyHeight, recipe="default", **OPTIONS) as model:
        assert model.settings.agent_options.unused_goal == (1,)
        assert "no reward depends on" in model.settings.reasons["unused_goal"]
        model.learn(20)
        seen, _ = AnyHeight().reset(seed=0)
        higher = seen | {"desired_goal": seen["desired_goal"] + np.array([0, 0.5], np.float32)}
        assert (model.predict(seen)[0] == model.predict(higher)[0]).all()
    with HER(AnyHeight, recipe="default", structure="none", **OPTIONS) as model:
        assert model.settings.agent_options.unused_goal == ()


class Sticky(PointReach):
    """Raises when it is closed."""

    def close(self):
        raise RuntimeError("the lid is stuck")


def test_an_environment_that_cannot_be_closed_is_a_warning():
    with pytest.warns(UserWarning, match="the lid is stuck"), her(Sticky) as model:
        model.predict({"observation": np.zeros(4), "achieved_goal": np.zeros(2), "desired_goal": np.ones(2)})


def test_the_module_of_an_id_is_kept_in_the_settings():
    with HER("hindsight_rl:PointReach-v0", recipe="point_reach", **OPTIONS) as model:
        assert model.settings.rollout.env_module == "hindsight_rl"


class WrongSign(PointReach):
    """PointReach with a reward of 0 until the goal is reached, and -1 there."""

    def compute_reward(self, achieved_goal, desired_goal, info=None):
        return -1.0 - super().compute_reward(achieved_goal, desired_goal, info)


def test_a_check_refuses_errors_and_keeps_its_report():
    with her() as plain, her(check=True) as checked:
        assert plain.check_report is None
        assert checked.check_report.ok
    with pytest.raises(GoalEnvError, match="check=False"):
        her(WrongSign, check=True)
    her(WrongSign).close()


def test_a_wrapped_environment_gets_the_default_recipe_and_no_id(tmp_path):
    def wrapped():
        return gymnasium.wrappers.RescaleAction(gymnasium.make("PointReach-v0"), np.float32(-2), np.float32(2))

    with HER(lambda: gymnasium.make("PointReach-v0"), check=False) as model:
        assert (model.settings.recipe, model.spec.env_id) == ("point_reach", "PointReach-v0")
    with pytest.warns(UserWarning, match=r"RescaleAction may change .*'default'.* give recipe='point_reach'"):
        model = HER(wrapped, check=False, hidden=(8,))
    with model:
        assert model.settings.recipe == "default"
        model.save(tmp_path / "policy.safetensors")
    with HER.load(tmp_path / "policy.safetensors") as loaded, pytest.raises(OptionError, match="no registered id"):
        loaded.evaluate(1)
    with HER(wrapped, recipe="point_reach", check=False) as model:
        assert model.settings.recipe == "point_reach"


def test_a_capacity_below_one_episode_is_refused_before_the_first_step():
    with her(capacity=9) as model, pytest.raises(OptionError, match="capacity must be at least the 10 steps of an episode"):
        model.learn(10)
