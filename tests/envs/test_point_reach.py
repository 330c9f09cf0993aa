"""PointReach, worked by hand, and the vector of many against as many singles."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from hindsight.envs.point_reach import PointReach, PointReachVector, PointTask
from hindsight.errors import InputError, OptionError

KEYS = ("observation", "achieved_goal", "desired_goal")


def started(start, goal, **options):
    env = PointReach(**options)
    env.reset(seed=0, options={"start": start, "goal": goal})
    return env


def test_the_velocity_changes_first_and_then_the_position():
    env = started(
        (0.0, 0.0), (1.0, 1.0)
    )  # one step adds 10 * 0.05 to the velocity, and a twentieth of that to the position
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


def test_a_goal_reached_pays_zero_and_the_episode_goes_on():
    env = started((0.5, 0.5), (0.5, 0.54))
    _, reward, terminated, _, info = env.step(np.zeros(2))
    assert (reward, terminated, info["is_success"]) == (0, False, True)


def test_episodes_end_by_themselves_after_max_steps():
    env = PointReach(max_steps=3)
    env.reset(seed=0)
    assert [env.step(np.zeros(2))[3] for _ in range(3)] == [False, False, True]
    env.reset()
    assert env.step(np.zeros(2))[3] is False


def test_starts_and_goals_are_uniform_in_the_square_and_at_rest():
    env = PointReach(goal_range=0.3)
    seen = [env.reset(seed=0 if i == 0 else None)[0] for i in range(2000)]
    for values in (np.stack([o["achieved_goal"] for o in seen]), np.stack([o["desired_goal"] for o in seen])):
        assert np.abs(values.mean(0)).max() < 0.02
        assert np.allclose(values.std(0), 0.3 / np.sqrt(3), atol=0.01)
        assert 0.29 < np.abs(values).max() <= np.float32(0.3)
    assert not np.stack([o["observation"][2:] for o in seen]).any()


def test_the_bounds_of_the_space_are_reached_and_never_left():
    env = PointReach(goal_range=0.3, max_speed=0.7, max_steps=200)
    env.reset(seed=1)
    seen = [env.step(np.array([1.0, -1.0]))[0] for _ in range(100)]
    assert all(env.observation_space.contains(o) for o in seen)
    high = env.observation_space["observation"].high
    assert np.array_equal(np.abs(seen[-1]["observation"]), high)


def test_a_seed_decides_everything_and_fixed_starts_draw_the_same_numbers():
    first, second = PointReach(), PointReach()
    for seed in (5, None):
        a, b = first.reset(seed=seed)[0], second.reset(seed=seed, options={"start": (0.1, 0.2)})[0]
        assert np.array_equal(a["desired_goal"], b["desired_goal"])
        assert np.allclose(b["achieved_goal"], (0.1, 0.2))


def test_observations_are_copies():
    env = started((0.0, 0.0), (1.0, 1.0))
    for observation in (env.reset(seed=1)[0], env.step(np.zeros(2))[0]):
        kept = {k: v.copy() for k, v in observation.items()}
        for value in observation.values():
            value += 7
        again, *_ = env.step(np.zeros(2))
        assert np.array_equal(again["desired_goal"], kept["desired_goal"])
        assert np.array_equal(again["achieved_goal"], kept["achieved_goal"])


@pytest.mark.parametrize("render_mode", [None, "rgb_array"])
def test_gymnasium_finds_nothing_to_complain_about(render_mode):
    check_env(gymnasium.make("PointReach-v0", render_mode=render_mode).unwrapped)


def test_the_picture_shows_point_goal_and_tick():
    env = started((-0.5, 0.5), (0.5, -0.5), render_mode="rgb_array", distance_threshold=0.2)
    env.step(np.array([1.0, 0.0]))
    image = env.render()
    assert image.shape == (240, 240, 3)
    assert image.dtype == np.uint8
    assert image[65, 65].tolist() == [40, 80, 200]  # the point, up on the left: 240 / 2.2 pixels per unit
    assert image[174, 174].tolist() == [80, 180, 110]  # the goal
    assert image[65, 75].tolist() == [230, 120, 50]  # the tick, on its right
    assert image[2, 2].tolist() == [205, 205, 210]  # outside of the square


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dt": 0.0}, "dt of PointReach"),
        ({"goal_range": float("inf")}, "goal_range"),
        ({"max_steps": 0}, "max_steps.*at least 1, got 0"),
        ({"max_steps": 1.5}, "max_steps"),
        ({"render_mode": "human"}, "rgb_array"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        PointReach(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"strat": 1}, "Did you mean 'start'"), ({"goal": (2.0, 0.0)}, "'goal'"), ({"start": (0.0, 0.0, 0.0)}, r"\(2,\)")],
)
def test_reset_options_out_of_range_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        PointReach().reset(options=options)


def test_a_step_before_the_first_reset_is_refused():
    with pytest.raises(InputError, match="reset"):
        PointReach().step(np.zeros(2))
    with pytest.raises(InputError, match="reset"):
        PointReachVector(2, autoreset_mode="Disabled").step(np.zeros((2, 2)))


def assert_same(mine, theirs):
    if isinstance(theirs, dict):
        assert set(mine) == set(theirs)
        for key in theirs:
            assert_same(mine[key], theirs[key])
    elif isinstance(theirs, tuple) or getattr(theirs, "dtype", np.dtype(int)).kind == "O":
        for a, b in zip(mine, theirs, strict=True):
            assert_same(a, b)
    else:
        assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_the_vector_gives_what_a_sync_vector_of_singles_gives(mode):
    options = {"max_steps": 4, "distance_threshold": 0.5, "dt": 0.07}
    mine = PointReachVector(3, autoreset_mode=mode, **options)
    theirs = SyncVectorEnv([lambda: PointReach(**options)] * 3, autoreset_mode=mode)
    rng = np.random.default_rng(0)
    assert_same(mine.reset(seed=7), theirs.reset(seed=7))
    for _ in range(13):
        actions = rng.uniform(-1, 1, (3, 2)).astype(np.float32)
        for a, b in zip(mine.step(actions), theirs.step(actions), strict=True):
            assert_same(a, b)
    assert_same(mine.reset(seed=[3, None, 1]), theirs.reset(seed=[3, None, 1]))


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_a_masked_reset_touches_only_its_environments(mode):
    mine = PointReachVector(3, max_steps=4, autoreset_mode=mode)
    theirs = SyncVectorEnv([lambda: PointReach(max_steps=4)] * 3, autoreset_mode=mode)
    for env in (mine, theirs):
        env.reset(seed=0)
        env.step(np.ones((3, 2), np.float32))
    mask = np.array([True, False, True])
    assert_same(
        mine.reset(seed=[8, None, 9], options={"reset_mask": mask})[0],
        theirs.reset(seed=[8, None, 9], options={"reset_mask": mask})[0],
    )
    for _ in range(3):
        a, b = mine.step(np.ones((3, 2), np.float32)), theirs.step(np.ones((3, 2), np.float32))
        assert_same(a, b)
    assert a[3].tolist() == [False, True, False]


def test_a_finished_environment_is_not_stepped_unless_it_begins_anew_by_itself():
    env = PointReachVector(2, max_steps=1, autoreset_mode="Disabled")
    env.reset(seed=0)
    env.step(np.zeros((2, 2)))
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        env.step(np.zeros((2, 2)))


def test_the_vector_takes_one_start_for_all_or_one_for_each():
    env = PointReachVector(2)
    observation, _ = env.reset(seed=0, options={"start": (0.5, 0.5), "goal": [(0.1, 0.1), (0.2, 0.2)]})
    assert np.allclose(observation["achieved_goal"], 0.5)
    assert np.allclose(observation["desired_goal"], [[0.1, 0.1], [0.2, 0.2]])


@pytest.mark.parametrize("arguments", [{"seed": [1, 2, 3]}, {"options": {"reset_mask": np.ones(3, bool)}}])
def test_a_vector_refuses_what_is_not_one_per_environment(arguments):
    with pytest.raises(InputError, match=r"2 (environments|bools)"):
        PointReachVector(2).reset(**arguments)


def test_gymnasium_makes_the_vector():
    env = gymnasium.make_vec("PointReach-v0", num_envs=8, vectorization_mode="vector_entry_point", max_steps=7)
    assert isinstance(env, PointReachVector)
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert env.max_steps == 7
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    assert env.step(env.action_space.sample())[1].shape == (8,)


def test_the_vector_draws_one_picture_each():
    env = PointReachVector(2, render_mode="rgb_array")
    env.reset(seed=0)
    assert [image.shape for image in env.render()] == [(240, 240, 3)] * 2
    assert PointReachVector(2).render() is None


def test_the_rules_work_on_any_leading_axes():
    state = np.zeros((5, 6, 4), np.float32)
    assert PointTask().move(state, np.ones((5, 6, 2))).shape == (5, 6, 4)
