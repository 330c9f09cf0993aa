import json
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from short_runs import her, same_bytes, short

from hindsight_rl import PointReach
from hindsight_rl.envs.minari_data import write_episodes
from hindsight_rl.errors import FileError, OptionError
from hindsight_rl.records import BATCH_FIELDS, Batch
from hindsight_rl.rollout.collect import play_episode
from hindsight_rl.training.checkpoint import restore_trainer, trainer_state
from hindsight_rl.training.demonstrations import Demonstrations
from hindsight_rl.training.events import EpisodesStored, JobFinished
from hindsight_rl.training.run_folder import RunFolder

pytest.importorskip("h5py")
pytest.importorskip("minari")
NAME = "demo/point-v0"


def towards_goal(observation):
    position, velocity = observation["observation"][:2], observation["observation"][2:]
    wanted = np.clip(4 * (observation["desired_goal"] - position), -1, 1)
    return np.clip(2 * (wanted - velocity), -1, 1).astype(np.float32)


@pytest.fixture(autouse=True)
def data_set(monkeypatch, tmp_path):
    """Five demonstrations of PointReach, each of 10 steps."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    with short() as env:
        write_episodes(NAME, env, [play_episode(env, towards_goal, seed, seed) for seed in range(5)], "towards_goal")


def batches_of(model, steps):
    """Return the batches that the agent learns from."""
    seen, updates = [], model.agent.updates
    model.agent.updates = lambda batch: (seen.append(batch), updates(batch))[1]
    model.learn(steps)
    return seen


@pytest.mark.parametrize("agent", ["ddpg", "td3", "sac", "tqc"])
def test_a_fixed_fraction_of_each_batch_comes_from_the_demonstrations(agent):
    options = {"agent": agent, "demonstrations": NAME, "demonstration_fraction": 0.25, "symmetries": ()}
    with her(**options) as model:
        rows = {row.tobytes() for e in model.trainer.demonstrations.episodes for row in e.observation}
        batches = batches_of(model, 50)
    assert batches
    for batch in batches:
        is_demonstrated = [[row.tobytes() in rows for row in each] for each in batch.observation]
        assert np.array_equal(is_demonstrated, np.tile(np.arange(16) >= 12, (len(batch), 1)))
        assert batch.n_demonstrations == 4


def test_the_places_of_subgoals_stay_with_their_samples():
    def batches(size, place):
        rows = np.zeros((1, size))
        return Batch(**dict.fromkeys(BATCH_FIELDS, rows), place=np.full((1, size, 2), place))

    own = batches(3, 0.4)
    demonstrations = SimpleNamespace(sample=lambda n, size: batches(size, 0.1))
    assert Demonstrations.extend(demonstrations, own, 2).place[0, :, 0].tolist() == [0.4, 0.4, 0.4, 0.1, 0.1]


def test_demonstrations_with_larger_actions_than_the_policy_can_take_are_refused():
    with (
        her(demonstrations=NAME, action_scale=0.125) as model,
        pytest.raises(OptionError, match=r"episode 0 of the data set .* has larger actions than action_scale allows"),
    ):
        model.learn(10)


def test_without_demonstrations_batches_are_whole():
    with her() as model:
        assert all((batch.row.shape[1], batch.n_demonstrations) == (16, 0) for batch in batches_of(model, 50))


@pytest.mark.parametrize(
    "options",
    [
        {"prioritized": True, "n_steps": 3, "agent": "sac"},
        {"relabel": "future=0.8", "relabel_schedule": ("40: future=0.3,desired=0.2",), "energy_priority": True},
    ],
)
def test_a_restored_trainer_goes_on_to_the_same_bytes(options):
    options = {"demonstrations": NAME, "offline_steps": 10, "steps": 120} | options
    with her(**options) as whole, her(**options) as half, her(**options) as rest:
        expected, _ = trainer_state(whole.learn(100).trainer)
        restore_trainer(rest.trainer, *trainer_state(half.learn(50).trainer))
        arrays, data = trainer_state(rest.learn(50).trainer)
    assert same_bytes(arrays, expected)
    assert data["counts"]["offline_updates"] == 16  # two draws of 8


def test_offline_updates_come_before_the_first_step():
    with her(demonstrations=NAME, offline_steps=20) as model:
        batches = batches_of(model, 0)
        assert [batch.n_demonstrations for batch in batches] == [16] * 3
        assert (model.trainer.counts.env_steps, model.trainer.counts.updates, model.agent.n_updates) == (0, 24, 24)


def test_a_run_continues_the_offline_updates():
    with her(demonstrations=NAME, offline_steps=20) as model:
        events = model.trainer.run(10)
        assert [type(next(events)) for _ in range(3)] == [JobFinished, EpisodesStored, JobFinished]
        assert model.trainer.counts.offline_updates == 24


def test_the_inputs_are_normalized_by_the_demonstrations_too():
    with her(demonstrations=NAME) as with_them, her() as without:
        assert with_them.trainer.agent.input_statistics() != without.trainer.agent.input_statistics()


def test_the_facts_name_the_data():
    with her(demonstrations=NAME) as model:
        facts = model.trainer.demonstrations.facts
    assert {name: facts[name] for name in ("name", "episodes", "steps")} == {"name": NAME, "episodes": 5, "steps": 50}


def test_rewards_of_other_options_are_warned_of():
    other = partial(PointReach, max_steps=10, distance_threshold=3.0)
    with (
        her(other, demonstrations=NAME) as model,
        pytest.warns(UserWarning, match=r"of 50 rewards of the data set .* are not those"),
    ):
        model.learn(10)


class OtherRewards(PointReach):
    """A task whose step returns another reward than compute_reward."""

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, reward - 0.25, *rest


@pytest.mark.parametrize("recorded", [PointReach, OtherRewards])
def test_samples_of_demonstrations_have_the_recomputed_rewards_whatever_was_recorded(recorded):
    task = OtherRewards(max_steps=10)
    with recorded(max_steps=10) as env:
        write_episodes("demo/other-v0", env, [play_episode(env, towards_goal, seed, seed) for seed in range(5)], "a test")
    options = {"demonstrations": "demo/other-v0", "demonstration_fraction": 0.25, "offline_steps": 40}
    options |= {"reward": "recompute", "relabel": "future=0.5", "symmetries": ()}
    with her(partial(OtherRewards, max_steps=10), **options) as model:
        batches = batches_of(model, 50)  # without a warning of other rewards
    assert {batch.n_demonstrations for batch in batches} == {16, 4}  # from demonstrations alone, then a quarter
    assert any((~batch.is_relabelled[:, -4:]).any() for batch in batches)
    for batch in batches:
        assert np.array_equal(batch.reward, task.compute_reward(batch.next_achieved_goal, batch.goal, {}))


def test_actions_outside_their_space_are_refused():
    with short() as env:
        episode = play_episode(env, towards_goal, 0, 0)
        write_episodes("demo/wild-v0", env, [replace(episode, action=3 * np.ones_like(episode.action))], "a test")
    with her(demonstrations="demo/wild-v0") as model, pytest.raises(FileError, match=r"Episode 0 of .*'demo/wild-v0'"):
        model.learn(10)


def test_a_run_goes_on_with_the_same_data_only(tmp_path):
    with her(demonstrations=NAME) as model:
        model.learn(30, folder=tmp_path / "run")
        found = json.loads((tmp_path / "run" / "settings.json").read_text())["demonstrations"]
        assert found == model.trainer.demonstrations.facts
    other = SimpleNamespace(facts=found | {"crc32": 1})
    refused = pytest.raises(FileError, match=r"The demonstrations of .* were")
    with RunFolder(tmp_path / "run", model.settings, model.spec, (), other) as folder, refused:
        folder.resume(model.trainer)


def test_offline_steps_need_demonstrations():
    with pytest.raises(OptionError, match="Give `demonstrations`"):
        her(offline_steps=10)
