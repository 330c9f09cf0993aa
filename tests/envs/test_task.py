"""What every task of ours does alike: single environments, and the vector of many against as many singles."""

import itertools

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from hindsight.envs.bit_flipping import BitFlipping, BitFlippingVector
from hindsight.envs.point_reach import PointReach, PointReachVector
from hindsight.errors import InputError, OptionError, ShapeError

POINT = (PointReach, PointReachVector, {"max_steps": 4, "distance_threshold": 0.5, "dt": 0.07})
BITS = (BitFlipping, BitFlippingVector, {"n_bits": 3, "max_steps": 4})
KINDS = [
    (BitFlipping, BitFlippingVector, {"n_bits": 3, "max_steps": 4, **options})
    for options in (
        {"observation": "box", "continuous": True},
        {"observation": "discrete", "goal": "ones"},
        {"observation": "image"},
    )
]


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
@pytest.mark.parametrize(("single", "vector", "options"), [POINT, BITS, *KINDS])
def test_the_vector_gives_what_a_sync_vector_of_singles_gives(single, vector, options, mode):
    mine = vector(3, autoreset_mode=mode, **options)
    theirs = SyncVectorEnv([lambda: single(**options)] * 3, autoreset_mode=mode)
    assert mine.observation_space == theirs.observation_space
    assert mine.action_space == theirs.action_space
    mine.action_space.seed(0)
    assert_same(mine.reset(seed=7), theirs.reset(seed=7))
    n_ended = np.zeros(2)
    for _ in range(40):
        actions = mine.action_space.sample()
        stepped = mine.step(actions)
        assert mine.observation_space.contains(stepped[0])
        n_ended += stepped[2].sum(), stepped[3].sum()
        for a, b in zip(stepped, theirs.step(actions), strict=True):
            assert_same(a, b)
    assert (n_ended > 0).tolist() == [single is BitFlipping, True]
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
    env.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(InputError, match=r"\[1\]"):
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


@pytest.mark.parametrize(("single", "vector", "options"), [POINT, BITS])
def test_gymnasium_makes_the_vector(single, vector, options):
    env = gymnasium.make_vec(f"{single.__name__}-v0", num_envs=8, vectorization_mode="vector_entry_point", max_steps=7)
    assert isinstance(env, vector)
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert env.max_steps == 7
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    assert env.step(env.action_space.sample())[1].shape == (8,)


@pytest.mark.parametrize(("single", "vector", "options"), [POINT, BITS])
def test_pictures_are_drawn_where_they_are_wanted(single, vector, options):
    env, many = single(render_mode="rgb_array", **options), vector(2, render_mode="rgb_array", **options)
    assert env.render() is None  # nothing has begun
    env.reset(seed=0)
    many.reset(seed=0)
    assert [image.shape for image in many.render()] == [env.render().shape] * 2
    assert np.array_equal(many.render()[0], env.render())
    assert single().render() is vector(2).render() is None
    with pytest.raises(OptionError, match="rgb_array"):
        single(render_mode="human")


@pytest.mark.parametrize(("single", "vector", "options"), [POINT, BITS, *KINDS])
def test_observations_are_copies(single, vector, options):
    for spoilt, other in ((single(**options), single(**options)), (vector(2, **options), vector(2, **options))):
        spoilt.action_space.seed(0)
        seen, same = spoilt.reset(seed=1)[0], other.reset(seed=1)[0]
        for _ in range(3):
            assert_same(seen, same)
            assert not any(np.shares_memory(a, b) for a, b in itertools.combinations(seen.values(), 2))
            for value in seen.values():
                value += 1
            action = spoilt.action_space.sample()
            seen, same = spoilt.step(action)[0], other.step(action)[0]


@pytest.mark.parametrize(("single", "vector", "options"), [POINT, BITS])
def test_episodes_end_by_themselves_after_max_steps(single, vector, options):
    env = single(max_steps=3)
    env.action_space.seed(0)
    for seed in (0, None):
        env.reset(seed=seed)
        assert [env.step(env.action_space.sample())[3] for _ in range(3)] == [False, False, True]
    for wrong in (0, 1.5, "3"):
        with pytest.raises(OptionError, match=f"max_steps of {single.__name__} .*at least 1, got {wrong!r}"):
            single(max_steps=wrong)


@pytest.mark.parametrize(("single", "vector", "options"), [POINT, BITS])
def test_what_makes_no_sense_is_refused(single, vector, options):
    for env in (single(), vector(2, autoreset_mode="Disabled")):
        with pytest.raises(InputError, match="reset"):
            env.step(env.action_space.sample())
        env.reset(seed=0)
        with pytest.raises(ShapeError, match=f"{single.__name__} takes actions of the shape"):
            env.step(env.action_space.sample()[None])
        with pytest.raises(OptionError, match="Did you mean 'start'"):
            env.reset(options={"strat": 1})
