"""PointReach, worked by hand."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from hindsight_rl.envs.small_tasks import PointReach
from hindsight_rl.errors import OptionError


def started(start, goal, **options):
    env = PointReach(**options)
    env.reset(seed=0, options={"start": start, "goal": goal})
    return env


def test_the_velocity_changes_first_and_then_the_position():
    env = started((0.0, 0.0), (1.0, 1.0))  # a step adds 10 * 0.05 to the velocity, and 0.05 * velocity to the position
    observation, reward, terminated, truncated, info = env.step(np.array([1.0, -0.5]))
    assert np.allclose(observation["observation"], [0.025, -0.0125, 0.5, -0.25])
    assert np.array_equal(observation["achieved_goal"], observation["observation"][:2])
    assert (reward, terminated, truncated, info) == (-1, False, False, {"is_success": False})
    observation, *_ = env.step(np.array([0.0, 0.0]))
    assert np.allclose(observation["observation"], [0.05, -0.025, 0.5, -0.25])


def test_actions_velocity_and_position_are_clipped_on_each_axis():
    env = started((0.99, 0.0), (-1.0, 0.0))
    for expected in ([1.0, -0.025, 0.5, -0.5], [1.0, -0.075, 1.0, -1.0], [1.0, -0.125, 1.0, -1.0]):
        observation, *_ = env.step(np.array([9.0, -9.0]))  # as (1, -1)
        assert np.allclose(observation["observation"], expected)


def test_the_threshold_itself_is_a_success_and_success_is_never_minus_zero():
    env, beyond = PointReach(), np.nextafter(np.float32(0.05), np.float32(1))
    achieved, desired = np.zeros((3, 2)), np.array([[0.05, 0], [beyond, 0], [0, 0]])
    reward = env.compute_reward(achieved, desired)
    assert reward.dtype == np.float32
    assert reward.tolist() == [0, -1, 0]
    assert not np.signbit(reward[[0, 2]]).any()
    assert env.compute_success(achieved, desired).tolist() == [True, False, True]
    assert env.compute_reward(achieved[0], desired[1], {"is_success": True}) == -1


def test_rewards_keep_any_leading_shape():
    assert PointReach().compute_reward(np.zeros((4, 3, 2)), np.ones((4, 3, 2))).shape == (4, 3)
    assert PointReach().compute_reward(np.zeros(2), np.ones(2)).shape == ()


def test_success_has_reward_zero_and_does_not_end_the_episode():
    env = started((0.5, 0.5), (0.5, 0.54))
    _, reward, terminated, _, info = env.step(np.zeros(2))
    assert (reward, terminated, info["is_success"]) == (0, False, True)


def test_starts_and_goals_are_uniform_in_the_square_and_at_rest():
    env = PointReach(goal_range=0.3)
    observations = [env.reset(seed=0 if i == 0 else None)[0] for i in range(2000)]
    for values in (
        np.stack([o["achieved_goal"] for o in observations]),
        np.stack([o["desired_goal"] for o in observations]),
    ):
        assert np.abs(values.mean(0)).max() < 0.02
        assert np.allclose(values.std(0), 0.3 / np.sqrt(3), atol=0.01)
        assert 0.29 < np.abs(values).max() <= np.float32(0.3)
    assert not np.stack([o["observation"][2:] for o in observations]).any()


def test_the_bounds_of_the_space_are_reached_and_never_left():
    env = PointReach(goal_range=0.3, max_speed=0.7, max_steps=200)
    env.reset(seed=1)
    observations = [env.step(np.array([1.0, -1.0]))[0] for _ in range(100)]
    assert all(env.observation_space.contains(o) for o in observations)
    high = env.observation_space["observation"].high
    assert np.array_equal(np.abs(observations[-1]["observation"]), high)


def test_a_seed_decides_everything_and_fixed_starts_draw_the_same_numbers():
    first, second = PointReach(), PointReach()
    for seed in (5, None):
        a, b = first.reset(seed=seed)[0], second.reset(seed=seed, options={"start": (0.1, 0.2)})[0]
        assert np.array_equal(a["desired_goal"], b["desired_goal"])
        assert np.allclose(b["achieved_goal"], (0.1, 0.2))


@pytest.mark.parametrize("render_mode", [None, "rgb_array"])
def test_gymnasium_finds_no_fault(render_mode):
    check_env(gymnasium.make("PointReach-v0", render_mode=render_mode).unwrapped)


def test_the_picture_shows_point_goal_and_velocity():
    env = started((-0.5, 0.5), (0.5, -0.5), render_mode="rgb_array", distance_threshold=0.2)
    env.step(np.array([1.0, 0.0]))
    image = env.render()
    assert image.shape == (240, 240, 3)
    assert image.dtype == np.uint8
    assert image[65, 65].tolist() == [40, 80, 200]  # the point, up on the left: 240 / 2.2 pixels per unit
    assert image[174, 174].tolist() == [80, 180, 110]  # the goal
    assert image[65, 75].tolist() == [230, 120, 50]  # the velocity, on its right
    assert image[2, 2].tolist() == [205, 205, 210]  # outside of the square


@pytest.mark.parametrize(
    ("options", "message"),
    [({"dt": 0.0}, "dt of PointReach"), ({"goal_range": float("inf")}, "goal_range")],
)
def test_options_out_of_range_are_errors(options, message):
    with pytest.raises(OptionError, match=message):
        PointReach(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"goal": (2.0, 0.0)}, "'goal'.*Box"), ({"start": (0.0, 0.0, 0.0)}, r"\(2,\)")],
)
def test_reset_options_out_of_range_are_errors(options, message):
    with pytest.raises(OptionError, match=message):
        PointReach().reset(options=options)


def test_the_rules_work_on_any_leading_axes():
    state = np.zeros((5, 6, 4), np.float32)
    assert PointReach().next_state(state, np.ones((5, 6, 2))).shape == (5, 6, 4)
