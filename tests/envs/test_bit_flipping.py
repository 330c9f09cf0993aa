"""BitFlipping, worked by hand, in every form of its observation."""

import itertools
import math

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from hindsight_rl.envs.check import check_goal_env
from hindsight_rl.envs.goal_env import read_spec, resets_exactly
from hindsight_rl.envs.goal_functions import reward_function, terminated_function
from hindsight_rl.envs.small_tasks import BitFlipping
from hindsight_rl.errors import InputError, OptionError

KINDS = ("multibinary", "box", "discrete", "image")


def started(start, goal, **options):
    env = BitFlipping(len(start), **options)
    env.reset(seed=0, options={"start": start, "goal": goal})
    return env


def test_an_action_flips_its_bit_and_the_last_right_one_ends_the_episode():
    env = started([0, 1, 0], [1, 1, 1])
    observation, reward, terminated, truncated, info = env.step(2)
    assert {k: v.tolist() for k, v in observation.items()} == {
        "observation": [0, 1, 1],
        "achieved_goal": [0, 1, 1],
        "desired_goal": [1, 1, 1],
    }
    assert (reward, terminated, truncated, info) == (-1, False, False, {"is_success": False})
    observation, reward, terminated, truncated, info = env.step(np.int64(0))
    assert observation["achieved_goal"].tolist() == [1, 1, 1]
    assert (reward, terminated, truncated, info) == (0, True, False, {"is_success": True})
    assert reward.dtype == np.float32
    assert not np.signbit(reward)


def test_an_episode_has_as_many_steps_as_bits():
    env = started([0, 0], [1, 1])
    assert [env.step(0)[3], env.step(0)[3]] == [False, True]
    assert started([0, 0], [1, 1], max_steps=1).step(0)[3]


def test_positive_components_flip_their_bits():
    env = started([0, 1, 0, 1], [1, 0, 1, 1], continuous=True)
    assert env.action_space == gymnasium.spaces.Box(-1, 1, (4,), np.float32)
    observation, *_ = env.step(np.array([0.1, 0.0, -0.5, 1.0]))
    assert observation["achieved_goal"].tolist() == [1, 1, 0, 0]
    assert env.step(np.array([-1.0, 0.2, 0.3, 0.4]))[2]


@pytest.mark.parametrize(
    ("kind", "expected", "dtype"),
    [("multibinary", [0, 1, 1], "int8"), ("box", [0.0, 1.0, 1.0], "float32"), ("discrete", 2 + 4, "int64")],
)
def test_the_forms_of_an_observation(kind, expected, dtype):
    env = BitFlipping(3, observation=kind)
    observation, _ = env.reset(options={"start": [0, 1, 1], "goal": [1, 0, 0]})
    assert observation["observation"].tolist() == observation["achieved_goal"].tolist() == expected
    assert observation["observation"].dtype == dtype
    assert env.observation_space.contains(observation)


def test_an_image_shows_squares_row_after_row():
    env = BitFlipping(5, observation="image")  # 3 x 3 squares of 12 pixels
    observation, _ = env.reset(options={"start": [1, 0, 0, 0, 1], "goal": [0, 0, 0, 1, 0]})
    image, goal = observation["observation"], observation["desired_goal"]
    assert image.shape == (36, 36, 1)
    assert image.dtype == np.uint8
    assert image[::12, ::12, 0].tolist() == image[11::12, 11::12, 0].tolist() == [[255, 0, 0], [0, 255, 0], [0, 0, 0]]
    assert image.sum() == 2 * 144 * 255
    assert goal[::12, ::12, 0].tolist() == [[0, 0, 0], [255, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("n_bits", [1, 2, 25, 36 * 36])
def test_an_image_has_a_square_for_each_bit(n_bits):
    shown = BitFlipping(n_bits, goal="ones", observation="image").show(np.eye(n_bits, dtype=np.int8))
    assert shown.shape == (n_bits, 36, 36, 1)
    used = math.isqrt(n_bits - 1) + 1
    used *= 36 // used
    assert not shown[:, used:].any()
    assert not shown[:, :, used:].any()
    assert shown.max(axis=0).sum() == shown.sum(dtype=np.int64) > 0  # no pixel shows two bits
    assert (shown.reshape(n_bits, -1).sum(axis=1) > 0).all()  # and every bit has a pixel


@pytest.mark.parametrize("kind", KINDS)
def test_rewards_of_one_goal_and_of_many(kind):
    env = BitFlipping(2, observation=kind)
    bits = np.array(list(itertools.product((0, 1), repeat=2)), np.int8)  # 00 01 10 11
    shown = env.show(bits)
    achieved, desired = shown[[0, 1, 2, 3, 1]], shown[[0, 1, 2, 0, 2]]
    expected = np.array([True, True, True, False, False])
    for values, correct in (
        (env.compute_success(achieved, desired), expected),
        (env.compute_terminated(achieved, desired, {}), expected),
        (env.compute_reward(achieved, desired, {}), expected - 1.0),
        (env.compute_reward(achieved[None], desired[None]), [expected - 1.0]),
        ([env.compute_reward(a, d) for a, d in zip(achieved, desired, strict=True)], expected - 1.0),
        ([env.compute_terminated(a, d) for a, d in zip(achieved, desired, strict=True)], expected),
    ):
        assert np.array_equal(values, correct)
    assert env.compute_reward(achieved, desired).dtype == np.float32


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("continuous", [False, True])
def test_every_rule_is_kept(kind, continuous):
    options = {"n_bits": 3, "observation": kind, "continuous": continuous}
    env = gymnasium.make("BitFlipping-v0", **options)
    report = check_goal_env(env)
    assert {f.level for f in report.findings if f.name != "goal columns"} == {"ok"}, str(report)  # the goal may be an index
    spec = read_spec(env, options)
    assert (spec.max_episode_steps, spec.reward_low, spec.reward_high, spec.env_id) == (3, -1, 0, "BitFlipping-v0")
    assert reward_function(env).function == env.unwrapped.compute_reward
    assert terminated_function(env).function == env.unwrapped.compute_terminated
    assert resets_exactly(env)
    check_env(gymnasium.make("BitFlipping-v0", render_mode="rgb_array", **options).unwrapped)


def test_no_episode_begins_at_its_goal():
    pairs = [BitFlipping(2).reset(seed=seed)[0] for seed in range(300)]
    starts, goals = (np.stack([o[key] for o in pairs]) @ [1, 2] for key in ("achieved_goal", "desired_goal"))
    counts = np.zeros((4, 4), int)
    np.add.at(counts, (starts, goals), 1)
    assert not counts.diagonal().any()
    assert counts[~np.eye(4, dtype=bool)].min() > 10  # of 25 expected, in each of 12 cells


@pytest.mark.parametrize(
    ("options", "fixed", "key"),
    [
        ({"goal": "ones"}, {}, "desired_goal"),
        ({}, {"goal": [1, 1]}, "desired_goal"),
        ({}, {"start": [1, 1]}, "achieved_goal"),
    ],
)
def test_a_fixed_start_or_goal_is_not_drawn_for_the_other(options, fixed, key):
    env = BitFlipping(2, **options)
    for seed in range(50):
        observation, info = env.reset(seed=seed, options=fixed)
        assert observation[key].tolist() == [1, 1]
        assert not info["is_success"]


def test_a_start_at_the_goal_can_be_given():
    assert BitFlipping(2).reset(seed=0, options={"start": [0, 1], "goal": [0, 1]})[1] == {"is_success": True}
    assert BitFlipping(2, goal="ones").reset(seed=0, options={"start": [1, 1]})[1] == {"is_success": True}


def test_a_seed_decides_everything():
    first, second = BitFlipping(20), BitFlipping(20, observation="box")
    for seed in (5, None, None):
        a, b = first.reset(seed=seed)[0], second.reset(seed=seed)[0]
        assert all(np.array_equal(a[key], b[key]) for key in a)
    fixed = BitFlipping(20).reset(seed=5, options={"start": [0] * 20})[0]
    assert np.array_equal(fixed["desired_goal"], BitFlipping(20).reset(seed=5)[0]["desired_goal"])


def test_the_picture_shows_the_state_above_the_goal():
    env = started([1, 0, 1], [0, 0, 1], render_mode="rgb_array")
    image = env.render()
    assert image.shape == (24, 36, 3)
    assert image.dtype == np.uint8
    blue, green, grey = [40, 80, 200], [80, 180, 110], [225, 225, 225]
    assert image[6::12, 6::12].tolist() == [[blue, grey, blue], [grey, grey, green]]
    assert (image[::12] == 255).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_bits": 0}, "n_bits of BitFlipping .*at least 1, got 0"),
        ({"n_bits": 2.5}, "n_bits"),
        ({"goal": "one"}, "random, ones, got 'one'. Did you mean 'ones'"),
        ({"observation": "bits"}, "multibinary, box, discrete, image, got 'bits'"),
        ({"n_bits": 21, "observation": "discrete"}, "at most 20 .*got 21. Use observation='multibinary'"),
        ({"n_bits": 1297, "observation": "image"}, "at most 1296"),
        ({"max_steps": 0}, "max_steps"),
    ],
)
def test_options_out_of_range_are_errors(options, message):
    with pytest.raises(OptionError, match=message):
        BitFlipping(**options)


@pytest.mark.parametrize("options", [{"goal": [0, 2]}, {"start": [0.5, 0]}, {"start": [0, 1, 0]}])
def test_reset_options_that_are_not_bits_are_errors(options):
    with pytest.raises(OptionError, match=r"must be in MultiBinary\(2\), got \["):
        BitFlipping(2).reset(options=options)


@pytest.mark.parametrize("action", [-1, 3, 0.5, np.nan])
def test_an_action_that_is_not_a_bit_is_an_error(action):
    env = started([0, 0, 0], [1, 1, 1])
    with pytest.raises(InputError, match="must be 0 to 2, got"):
        env.step(action)
