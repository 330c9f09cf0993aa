from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from recorded import episode

from hindsight_rl.envs.goal_env import read_spec
from hindsight_rl.envs.minari_data import read_episodes, write_episodes
from hindsight_rl.errors import FileError, OptionError

pytest.importorskip("h5py")
minari = pytest.importorskip("minari")


def test_what_is_written_is_read(env):
    written = [episode(env, number=0), episode(env, 1, number=1, terminated=True, success=False)]
    write_episodes("demo/point-v0", env, written, "a test")
    read = read_episodes("demo/point-v0", read_spec(env), ("load",))
    for one, other in zip(read, written, strict=True):
        for name, value in vars(other).items():
            np.testing.assert_equal(getattr(one, name), value)
    assert read_episodes("demo/point-v0", read_spec(env))[0].info == {}
    assert minari.load_dataset("demo/point-v0").total_steps == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reward": np.array([-1.0, np.nan, 0.0])}, "Episode 1 of the data set 'demo/point-v0' .*reward is NaN.* in row 1"),
        ({"achieved_goal": np.full((4, 2), np.inf, "f4")}, "achieved_goal is NaN or infinite in row 0"),
        ({"info": {}}, "lacks 'load'"),
    ],
)
def test_an_episode_that_cannot_be_used_is_named(env, change, message):
    write_episodes("demo/point-v0", env, [episode(env), episode(env, **change)], "a test")
    with pytest.raises(FileError, match=message):
        read_episodes("demo/point-v0", read_spec(env), ("load",))


@pytest.mark.filterwarnings("ignore::UserWarning")  # of minari, about descriptions that are left out
@pytest.mark.parametrize("ends", [[False, True, True], [False, False, False]])
def test_an_episode_with_another_end_is_refused(env, ends):
    whole = episode(env)
    buffer = minari.data_collector.EpisodeBuffer(
        observations={key: getattr(whole, key) for key in env.observation_space},
        actions=whole.action,
        rewards=whole.reward,
        terminations=np.zeros(3, bool),
        truncations=np.array(ends),
        infos={},
    )
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
    minari.create_dataset_from_buffers("demo/point-v0", [buffer], **spaces)
    with pytest.raises(FileError, match="expected one end, after the last of its 3 steps, but it ends after"):
        read_episodes("demo/point-v0", read_spec(env))


def test_other_spaces_are_named(env):
    write_episodes("demo/point-v0", env, [episode(env)], "a test")
    spec = read_spec(env)
    with pytest.raises(FileError, match=r"observation \(4,\) float32 against \(5,\)"):
        read_episodes("demo/point-v0", replace(spec, observation=replace(spec.observation, shape=(5,))))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_data_without_goals_are_refused(env):
    cart = gymnasium.make("CartPole-v1")
    spaces = {"observation_space": cart.observation_space, "action_space": cart.action_space}
    minari.create_dataset_from_buffers("demo/cart-v0", [], **spaces)
    with pytest.raises(FileError, match=r"has no goals: .*desired_goal"):
        read_episodes("demo/cart-v0", read_spec(env))


def test_a_missing_data_set_is_not_downloaded(env):
    with pytest.raises(FileError, match=r"no data set 'demo/point-v0' .*minari download demo/point-v0"):
        read_episodes("demo/point-v0", read_spec(env))


def test_a_damaged_file_is_refused(env, tmp_path):
    write_episodes("demo/point-v0", env, [episode(env)], "a test")
    [file] = tmp_path.rglob("*.hdf5")
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(FileError, match="is damaged"):
        read_episodes("demo/point-v0", read_spec(env))


def test_a_data_set_is_not_overwritten_and_needs_a_version(env):
    write_episodes("demo/point-v0", env, [episode(env)], "a test")
    with pytest.raises(FileError, match="already"):
        write_episodes("demo/point-v0", env, [episode(env)], "a test")
    for name in ("demo/point", "h/push-v0"):
        with pytest.raises(OptionError, match=r"as in fetch/pick-v0.* at least two characters before the slash"):
            write_episodes(name, env, [episode(env)], "a test")
