import copy
import io
import pickle
import subprocess
import sys

import numpy as np
import pytest

from hindsight_rl import HER, PointReach
from hindsight_rl.errors import (
    FileError,
    HindsightError,
    InputError,
    MissingKeyError,
    NonFiniteError,
    OptionError,
    ShapeError,
    UnknownNameError,
)
from hindsight_rl.report.page import run_page
from hindsight_rl.report.run import read_run

SMALL = {"hidden": (8,), "batch_size": 16, "updates_per_step": 1.0, "random_steps": 50, "eval_every": 0}


def short():
    return PointReach(max_steps=10)


@pytest.fixture
def model():
    with HER(short, recipe="point_reach", **SMALL) as model:
        yield model


def observation(rows=None):
    lead = () if rows is None else (rows,)
    return {"observation": np.zeros((*lead, 4)), "achieved_goal": np.zeros((*lead, 2)), "desired_goal": np.ones((*lead, 2))}


def weights_of(model):
    return {k: v.tobytes() for k, v in model.agent.state_dict().items()}


def test_learning_in_pieces_is_learning_at_once(model):
    pieces = [model.learn(60).num_timesteps, model.learn(50).num_timesteps]
    assert pieces == [60, 50]
    with HER(short, recipe="point_reach", **SMALL) as other:
        assert other.learn(110) is other
        assert weights_of(other) == weights_of(model)
    timeline = model.trainer.buffer
    assert (len(timeline), timeline.num_episodes) == (110, 11)


def test_the_step_count_goes_on_unless_reset(model):
    model.learn(20)
    assert model.learn(20, reset_num_timesteps=False).num_timesteps == 40
    assert model.learn(25).num_timesteps == 30  # the episode under way is finished


def test_a_callback_sees_the_run_and_can_stop_it(model, capsys):
    seen = []
    model.learn(200, callback=lambda progress: seen.append(progress) or len(seen) < 4, log_interval=2)
    assert [p.num_timesteps for p in seen] == [10, 20, 30, 40]
    assert [p.updates for p in seen] == [0, 0, 0, 0]
    assert capsys.readouterr().out.count(" episodes, 0 updates") == 2


def test_predict_takes_one_or_a_batch(model):
    model.learn(60)
    one, state = model.predict(observation(), state="kept", episode_start=np.ones(1, bool))
    assert (one.shape, one.dtype, state) == ((2,), np.float32, "kept")
    many, _ = model.predict(observation(rows=3))
    assert many.shape == (3, 2)
    assert many == pytest.approx(np.tile(one, (3, 1)), abs=1e-6)
    assert np.array_equal(model.predict(observation(), deterministic=False)[0], one)


def test_a_stochastic_policy_samples_its_actions():
    with HER(short, agent="sac", recipe="point_reach", **SMALL) as model:
        first, second = (model.predict(observation(), deterministic=False)[0] for _ in range(2))
        assert not np.array_equal(first, second)
        assert np.array_equal(model.predict(observation())[0], model.predict(observation())[0])


def test_probabilities_of_actions():
    with HER(short, agent="sac", recipe="point_reach", **SMALL) as model:
        mean, deviation = model.action_probability(observation())
        assert (mean.shape, deviation.shape) == ((2,), (2,))
        action = np.tanh(mean)
        log = model.action_probability(observation(), actions=action, logp=True)
        # the Gaussian at its mean, divided by the slope of tanh there
        expected = -np.log(deviation * np.sqrt(2 * np.pi)).sum() - np.log(1 - action**2).sum()
        assert log == pytest.approx(expected, rel=1e-4)
        assert model.action_probability(observation(), actions=action) == pytest.approx(np.exp(log))
    with HER("BitFlipping-v0", hidden=(8,), eval_every=0) as model:
        bits = {k: np.zeros((3, 10), np.int8) for k in observation()}
        probabilities = model.action_probability(bits)
        assert probabilities.shape == (3, 10)
        assert np.array_equal(probabilities.argmax(1), model.predict(bits)[0])
        assert np.array_equal(model.action_probability(bits, actions=probabilities.argmax(1)), [1, 1, 1])


def test_a_deterministic_policy_has_no_probabilities(model):
    with pytest.raises(InputError, match="deterministic policy has no distribution"):
        model.action_probability(observation())


def test_predict_refuses_what_is_no_observation(model):
    for change in ({"desired_goal": np.ones(3)}, {"desired_goal": np.ones((2, 2))}):
        with pytest.raises(ShapeError, match="desired_goal"):
            model.predict(observation() | change)
    with pytest.raises(NonFiniteError, match="desired_goal"):
        model.predict(observation() | {"desired_goal": np.array([np.nan, 0.0])})
    with pytest.raises(MissingKeyError, match="achieved_goal"):
        model.predict({"observation": np.zeros(4)})
    with pytest.raises(InputError, match="ndarray"):
        model.predict(np.zeros(4))


def test_save_and_load_to_a_path_and_to_a_file(model, tmp_path):
    model.learn(80)
    expected = model.predict(observation(5))[0]
    model.save(tmp_path / "model")
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    for loaded in (HER.load(tmp_path / "model"), HER.load(file)):
        assert np.array_equal(loaded.predict(observation(5))[0], expected)
        assert weights_of(loaded) == weights_of(model)
        assert loaded.settings == model.settings
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_a_loaded_model_learns_on(model, tmp_path):
    model.learn(60).save(tmp_path / "model")
    loaded = HER.load(tmp_path / "model", env=short, learning_rate=0.5)
    assert loaded.settings.agent_options.learning_rate == 0.5
    before = weights_of(loaded)
    assert weights_of(loaded.learn(100)) != before
    loaded.close()


def test_a_closed_model_learns_on_in_a_new_environment_after_an_evaluation():
    with HER(short, recipe="point_reach", policy_lag=1, **SMALL) as model:
        model.learn(60).close()
        model.evaluate(1)
        model.learn(20)
        assert model.trainer.source is model.source
        assert model.num_timesteps == 20


def test_predicting_from_a_file_needs_neither_torch_nor_an_environment(model, tmp_path):
    model.save(tmp_path / "model")
    code = (
        "import sys, numpy as np\nfrom hindsight_rl import HER\n"
        f"model = HER.load({str(tmp_path / 'model')!r})\n"
        "model.predict({'observation': np.zeros(4), 'achieved_goal': np.zeros(2), 'desired_goal': np.ones(2)})\n"
        "print('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "foreign"])
def test_a_damaged_policy_file_is_named(model, tmp_path, harm):
    path = tmp_path / "model"
    model.save(path)
    content = path.read_bytes()
    damaged = {
        "flip": content[:-40] + bytes([content[-40] ^ 1]) + content[-39:],
        "cut": content[:-3],
        "empty": b"",
        "foreign": b"PK\x03\x04" + bytes(100),
    }
    path.write_bytes(damaged[harm])
    with pytest.raises(FileError, match=str(path)):
        HER.load(path)


def test_evaluation_uses_the_same_unseen_episodes_each_time(model):
    model.learn(40)
    first, second = model.evaluate(6), model.evaluate(6)
    assert first == second
    assert len({o.seed for o in first.outcomes}) == 6
    assert model.evaluate(6, seed=1) != first
    with pytest.raises(OptionError, match="episodes must be a whole number of at least 1"):
        model.evaluate(0)
    with pytest.raises(OptionError, match="seed must be a whole number of at least 0"):
        model.evaluate(1, seed=-1)


def test_the_recipe_is_chosen_by_the_id_and_overridden_by_options():
    with HER("PointReach-v0", tau=0.5) as model:
        assert (model.settings.recipe, model.settings.agent_options.tau) == ("point_reach", 0.5)
    with HER(short) as model:
        assert model.settings.recipe == "default"


def test_names_that_do_not_exist():
    with pytest.raises(UnknownNameError, match="Did you mean 'learning_rate'"):
        HER("PointReach-v0", learning_rte=0.1)
    with pytest.raises(UnknownNameError, match="Did you mean 'PointReach-v0'"):
        HER("PointReech-v0")


def test_no_callback_is_none(model):
    assert model.learn(20, None, None, True).num_timesteps == 20


def test_predict_uses_the_newest_weights(model):
    seen = []
    model.learn(100, callback=lambda view: seen.append(model.predict(observation())[0].tolist()))
    assert np.array_equal(model.predict(observation())[0], seen[-1])
    assert seen[0] != seen[-1]


def test_a_closed_model_learns_on():
    with HER("PointReach-v0", workers=1, **SMALL) as model:
        model.learn(100)
    with model:
        model.learn(100)
    with HER("PointReach-v0", **SMALL) as other:
        assert weights_of(other.learn(200)) == weights_of(model)


def test_a_loaded_model_counts_on_and_acts_by_its_policy(model, tmp_path):
    model.learn(80).save(tmp_path / "model")
    loaded = HER.load(tmp_path / "model", env=short)
    counts = loaded.trainer.counts
    assert (counts.env_steps, counts.episodes, counts.submitted_episodes) == (80, 8, 8)
    loaded.learn(10)
    assert not loaded.trainer.agent.exploration(counts.env_steps < 50).is_random
    assert counts.updates == 40
    loaded.close()


def test_a_loaded_model_continues_the_count_of_steps_unless_reset(model, tmp_path):
    model.learn(80).save(tmp_path / "model")
    with HER.load(tmp_path / "model", env=short) as loaded:
        assert loaded.num_timesteps == 80
        assert loaded.learn(10, reset_num_timesteps=False).num_timesteps == 90
        assert loaded.learn(10).num_timesteps == 10


def test_options_given_to_load_are_saved(model, tmp_path):
    model.learn(60).save(tmp_path / "model")
    HER.load(tmp_path / "model", tau=0.25).save(tmp_path / "other")
    other = HER.load(tmp_path / "other")
    assert other.settings.agent_options.tau == 0.25
    assert other.num_timesteps == 60
    assert np.array_equal(other.predict(observation())[0], model.predict(observation())[0])


def test_a_changed_description_is_refused(model, tmp_path):
    model.save(tmp_path / "model")
    content = (tmp_path / "model").read_bytes()
    changed = content.replace(b"clip_targets", b"clip_tragets")
    assert changed != content
    with pytest.raises(FileError, match="SHA-256"):
        HER.load(io.BytesIO(changed))


def test_fractions_of_relabelled_goals_reach_the_buffer():
    with HER("PointReach-v0", relabel="future=0.5,desired=0.25") as model:
        assert model.trainer.buffer.her_probability == 0.75


def test_goals_can_be_relabelled_at_the_end_of_an_episode():
    with HER(short(), recipe="point_reach", relabel_at="episode_end", **SMALL) as model:
        model.learn(60)
        assert model.trainer.buffer.options.relabel_at == "episode_end"
        assert model.trainer.buffer.sample(64).is_relabelled.any()


def test_n_step_returns_use_the_discount_of_the_agent():
    with HER(short(), recipe="point_reach", n_steps=2, discount=0.5, **SMALL) as model:
        model.learn(60)
        assert model.trainer.counts.updates > 0
        batch = model.trainer.buffer.sample(256)
        assert set(np.unique(batch.discount)) <= {0.0, 0.25, 0.5}  # 0.5 at the last step of an episode


@pytest.mark.parametrize(("name", "agent"), [("PointReach-v0", "sac"), ("BitFlipping-v0", "dqn")])
def test_random_actions_are_repeated(name, agent):
    with HER(name, agent, random_action_repeat=7, **SMALL) as model:
        assert [model.agent.exploration(is_random).random_action_repeat for is_random in (False, True)] == [7, 7]
        model.learn(60)
        assert model.trainer.counts.updates > 0


@pytest.mark.parametrize("steps", ["100", -5, float("nan"), 10.5, None])
def test_steps_that_are_not_a_count_are_refused(model, steps):
    with pytest.raises(OptionError, match="total_timesteps must be a whole number of at least 0"):
        model.learn(steps)


@pytest.mark.parametrize(
    "call",
    [
        lambda model: HER("PointReach-v0", agent=3),
        lambda model: HER("PointReach-v0", recipe=b"fetch"),
        lambda model: HER("PointReach-v0", check="no"),
        lambda model: HER("PointReach-v0", saved="policy.safetensors"),
        lambda model: HER.load(None),
        lambda model: HER.load(io.StringIO()),
        lambda model: model.save(3),
        lambda model: model.save(io.StringIO()),
        lambda model: model.learn(0, folder=3),
        lambda model: model.learn(0, folder=""),
        lambda model: model.learn(0, callback=np.zeros(2)),
        lambda model: model.learn(0, reset_num_timesteps="no"),
        lambda model: model.predict(PointReach().reset(seed=0)[0], deterministic="no"),
    ],
)
def test_arguments_of_another_type_are_refused(model, call):
    with pytest.raises(HindsightError, match=r"must be|Expected|missing"):
        call(model)


def test_a_recipe_may_be_a_path(tmp_path):
    (tmp_path / "mine.toml").write_text('agent = "sac"\n')
    with HER("PointReach-v0", recipe=tmp_path / "mine.toml", check=False) as model:
        assert model.settings.agent == "sac"


def test_a_model_is_neither_copied_nor_pickled(model):
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="Save it and load it again"):
            attempt(model)


def test_beta_reaches_one_at_the_end_of_learn_or_at_the_steps_that_were_given():
    for options, beta in (({}, 0.4 + 0.6 * 50 / 60), ({"steps": 200}, 0.4 + 0.6 * 50 / 200)):
        seen = []
        with HER(short, recipe="point_reach", prioritized=True, **SMALL, **options) as model:
            model.learn(60, callback=lambda view, seen=seen: seen.append(view.model.trainer.buffer.beta))
        assert seen[-2] == pytest.approx(beta)


def test_enormous_rewards_train_finite_weights():
    class Enormous(PointReach):
        def compute_reward(self, achieved_goal, desired_goal, info=None):
            return super().compute_reward(achieved_goal, desired_goal, info) * 1e37

    with HER(lambda: Enormous(max_steps=10), recipe="point_reach", **SMALL) as model:
        assert model.learn(80).agent.is_finite()


def test_an_evaluation_after_learn_is_in_the_folder_and_in_the_report(model, tmp_path):
    folder = tmp_path / "run"
    model.learn(60, folder=folder)
    first, second = model.evaluate(20), model.evaluate(10, seed=3)
    run = read_run(folder)
    assert run.column("test/success_rate").tolist()[-2:] == [first.success_rate, second.success_rate]
    assert run.last("eval/mean_success_rate") == np.mean([first.success_rate, second.success_rate])
    assert [each.desired_goal for each in run.evaluated] == [o.desired_goal for e in (first, second) for o in e.outcomes]
    page = run_page(run)
    assert "Not evaluated yet" not in page.verdict.title
    assert page.verdict.text.endswith("The run ended after all its steps.")
    assert [plot.key for section in page.sections for plot in section.plots if plot.goals] == ["goals-0-1"]
    assert [path.name for path in (folder / "policies").iterdir()] == ["latest.safetensors"]
    model.close()
    model.evaluate(1)  # the folder is closed
    assert len(read_run(folder).evaluated) == 30
