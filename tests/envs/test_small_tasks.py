"""What the small tasks have in common, alone and in a vector environment of Gymnasium."""

import itertools

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from hindsight_rl.envs.goal_env import time_limit
from hindsight_rl.envs.small_tasks import BitFlipping, PointReach
from hindsight_rl.errors import InputError, OptionError, ShapeError

POINT = (PointReach, {"max_steps": 4, "distance_threshold": 0.5, "dt": 0.07})
BITS = (BitFlipping, {"n_bits": 3, "max_steps": 4})
FORMS = [
    (BitFlipping, {"n_bits": 3, "max_steps": 4, **options})
    for options in (
        {"observation": "box", "continuous": True},
        {"observation": "discrete", "goal": "ones"},
        {"observation": "image"},
    )
]


@pytest.mark.parametrize(("task", "options"), [POINT, BITS])
def test_gymnasium_makes_a_vector_of_them(task, options):
    env = gymnasium.make_vec(f"{task.__name__}-v0", num_envs=8, **options)
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert time_limit(env) == 4
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    single = task(**options)
    alone, _ = single.reset(seed=3)
    assert all(np.array_equal(observation[key][3], alone[key]) for key in alone)
    env.action_space.seed(0)
    actions = env.action_space.sample()
    batch, rewards, *_ = env.step(actions)
    alone, reward, *_ = single.step(actions[3])
    assert all(np.array_equal(batch[key][3], alone[key]) for key in alone)
    assert rewards[3] == reward


@pytest.mark.parametrize(("task", "options"), [POINT, BITS])
def test_images_are_rendered_in_the_mode_rgb_array(task, options):
    env = task(render_mode="rgb_array", **options)
    assert env.render() is None  # before the first reset
    env.reset(seed=0)
    image = env.render()
    assert image.ndim == 3
    assert image.dtype == np.uint8
    assert task().render() is None
    with pytest.raises(OptionError, match="rgb_array"):
        task(render_mode="human")


@pytest.mark.parametrize(("task", "options"), [POINT, BITS, *FORMS])
def test_observations_are_copies(task, options):
    changed, other = task(**options), task(**options)
    changed.action_space.seed(0)
    observation, same = changed.reset(seed=1)[0], other.reset(seed=1)[0]
    for _ in range(3):
        assert all(np.array_equal(observation[key], same[key]) for key in same)
        assert not any(np.shares_memory(a, b) for a, b in itertools.combinations(observation.values(), 2))
        for value in observation.values():
            value += 1
        action = changed.action_space.sample()
        observation, same = changed.step(action)[0], other.step(action)[0]


@pytest.mark.parametrize("task", [PointReach, BitFlipping])
def test_episodes_are_truncated_after_max_steps(task):
    env = task(max_steps=3)
    env.action_space.seed(0)
    for seed in (0, None):
        env.reset(seed=seed)
        assert [env.step(env.action_space.sample())[3] for _ in range(3)] == [False, False, True]
    for wrong in (0, 1.5, "3"):
        with pytest.raises(OptionError, match=f"max_steps of {task.__name__} .*at least 1, got {wrong!r}"):
            task(max_steps=wrong)


@pytest.mark.parametrize("task", [PointReach, BitFlipping])
def test_wrong_calls_are_errors(task):
    env = task()
    with pytest.raises(InputError, match="must be reset"):
        env.step(env.action_space.sample())
    env.reset(seed=0)
    with pytest.raises(ShapeError, match=f"for an action of {task.__name__}"):
        env.step(env.action_space.sample()[None])
