import copy
import json
import math
import os
import pickle
import signal
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces
from tiny import (
    ACTION_SPACE,
    OBSERVATION_SPACE,
    SPEC,
    buffer_of,
    compute_reward,
    make_buffer,
    make_episode,
    place,
    play,
    step,
    vector_step,
)

from hindsight_rl import HindsightBuffer, Relabel
from hindsight_rl.errors import FileError, GoalEnvError, InputError, NothingToSampleError, OptionError, UnknownNameError
from hindsight_rl.records import BATCH_FIELDS


def test_steps_in_batches_out():
    buffer = make_buffer()
    with pytest.raises(NothingToSampleError, match="0 episodes have ended"):
        buffer.sample(4)
    buffer.add(*step(1, 0))
    with pytest.raises(NothingToSampleError):
        buffer.sample(4)
    buffer.end_open_episodes()
    play(buffer, 2, 5, terminated=True)
    buffer.add_episode(make_episode(3, 4))
    assert (len(buffer), buffer.num_episodes, buffer.her_probability) == (10, 3, 0.8)
    batch = buffer.sample(6)
    assert (batch.observation.shape, batch.goal.shape, batch.reward.shape) == ((6, 2), (6, 1), (6,))
    assert buffer.sample_many(3, 6).next_observation.shape == (3, 6, 2)
    assert buffer.sample(6, out=batch) is batch


@pytest.mark.parametrize("options", [{}, {"relabel_at": "episode_end"}, {"strategy": Relabel(future=0.8)}])
def test_open_episodes_can_be_sampled_with_the_goals_achieved_so_far(options):
    buffer = make_buffer(n_envs=2, **options)
    with pytest.raises(NothingToSampleError):
        buffer.sample_open(4)
    buffer.add(*vector_step([1, 2], [0, 0], [False, False], [False, False]))
    buffer.add(*vector_step([1, 2], [1, 1], [False, False], [False, False]))
    before = buffer.state_dict()[0]
    batch = buffer.sample_open(400)
    number, t = batch.observation.astype(int).T
    assert set(zip(number, t, strict=True)) == {(1, 0), (1, 1), (2, 0), (2, 1)}
    here = batch.is_relabelled
    assert abs(here.mean() - 0.8) < 0.1
    assert set(zip(number[here], t[here], batch.goal[here, 0] - 1000 * number[here], strict=True)) == {
        (n, step, goal) for n in (1, 2) for step, goal in ((0, 1), (0, 2), (1, 2))
    }
    assert not batch.terminated.any()
    after = buffer.state_dict()[0]
    assert [name for name in before if before[name].tobytes() != after[name].tobytes()] == ["random_state"]


def test_open_episodes_give_n_step_returns_too():
    buffer = make_buffer(n_steps=2, discount=0.5, n_sampled_goal=0)
    for t in range(3):
        buffer.add(*step(1, t))
    batch = buffer.sample_open(50)
    expected = np.array([0.5 * 1 / 8, 1 / 8 + 0.5 * 2 / 8, 2 / 8])
    assert batch.reward.tolist() == expected[batch.observation[:, 1].astype(int)].tolist()
    assert set(batch.discount) == {0.25, 0.5}


def test_add_and_add_episode_store_the_same():
    one, other = make_buffer(), make_buffer()
    play(one, 3, 4, terminated=True)
    other.add_episode(make_episode(3, 4, terminated=True))
    assert (one.state_dict()[0]["rows"] == other.state_dict()[0]["rows"]).all()


@pytest.mark.parametrize("size", [0, -1, 2.0, True, None, "8", 10**12])
def test_an_unusable_batch_size_is_refused(size):
    buffer = make_buffer()
    buffer.add_episode(make_episode(1, 3))
    for call in (lambda: buffer.sample(size), lambda: buffer.sample_many(size, 4), lambda: buffer.sample_many(4, size)):
        with pytest.raises(ValueError, match=r"must be a whole number|takes .* GB"):
            call()
    assert len(buffer.sample(np.int64(2))) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"capacity": 0}, "capacity must be a whole number of at least 1, got 0"),
        ({"n_envs": 0}, "n_envs must be a whole number of at least 1, got 0"),
        ({"n_sampled_goal": -1}, "`n_sampled_goal` must be at least 0, got -1"),
        ({"n_sampled_goal": 0.5}, "`n_sampled_goal` must be .*got 0.5"),
        ({"n_sampled_goal": 4, "strategy": Relabel(future=0.5)}, "`n_sampled_goal` is 4, but the fractions"),
        ({"episode_length": 0}, "episode_length must be a whole number of at least 1, got 0"),
        ({"dtype": "half"}, "`dtype` must be .*, got 'half'"),
        ({"strategy": "futures"}, "must be 'future', 'final'"),
    ],
)
def test_unusable_options_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        make_buffer(**options)


@pytest.mark.parametrize("reward", [None, 3, "reward"])
def test_compute_reward_must_be_a_function(reward):
    with pytest.raises(OptionError, match="compute_reward must be a function"):
        buffer_of(10, OBSERVATION_SPACE, ACTION_SPACE, reward)


@pytest.mark.parametrize("beta", ["x", None, True, -0.1, 1.5, float("nan")])
def test_beta_must_be_a_fraction(beta):
    buffer = make_buffer(prioritized=True)
    with pytest.raises(OptionError, match="beta must be a number between 0 and 1"):
        buffer.beta = beta
    assert buffer.beta == 0.4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("options", {"n_steps": 3}),
        ("seed", -1),
        ("seed", "0"),
        ("subgoals", (1, 2)),
        ("subgoals", None),
        ("compute_terminated", 3),
        ("compute_success", "success"),
    ],
)
def test_arguments_of_another_type_are_refused(name, value):
    with pytest.raises(OptionError, match=rf"{name} must be .*got"):
        HindsightBuffer(9, SPEC, None, compute_reward, **{name: value})


def test_what_is_no_episode_no_info_or_no_path_is_refused():
    buffer = make_buffer()
    with pytest.raises(InputError, match=r"Expected a hindsight_rl.records.Episode"):
        buffer.add_episode({"observation": [0.0]})
    step = {"observation": np.zeros(2), "achieved_goal": np.zeros(1), "desired_goal": np.zeros(1)}
    for info in (3, "x", [3]):
        with pytest.raises(InputError, match=r"info must be a dict"):
            buffer.add(step, np.zeros(1), 0.0, {k: v + 1 for k, v in step.items()}, False, False, info)
    assert len(buffer) == buffer.open_episodes.steps.sum() == 0
    with pytest.raises(OptionError, match=r"path must be a path, got 3"):
        buffer.save(3)


def test_too_many_environments_for_the_memory_are_refused():
    with pytest.raises(OptionError, match="Lower capacity or n_envs"):
        make_buffer(n_envs=10**9)


@pytest.mark.parametrize(
    ("space", "inside", "outside"),
    [
        (spaces.Box(-1, 1, (2,), np.float32), [1 + 1e-6, -1], [0, 1.01]),
        (spaces.Box(np.float32([0, -2]), np.float32([1, 2])), [1, 2], [-0.1, 2]),
        (spaces.Box(np.float32([0, -np.inf]), np.float32([1, np.inf])), [1, 1e6], [1.1, 0]),
        (spaces.Box(0, 9, (2,), np.uint8), [0, 9], [10, 0]),
    ],
)
def test_actions_outside_a_box_are_refused(space, inside, outside):
    buffer = buffer_of(40, OBSERVATION_SPACE, space, compute_reward)
    inside, outside = (np.array(action, space.dtype) for action in (inside, outside))
    buffer.add(step(1, 0)[0], inside, 0.0, *step(1, 0)[3:])
    with pytest.raises(InputError, match=r"action must be within its space, .*Clip it"):
        buffer.add(step(1, 1)[0], outside, 0.0, *step(1, 1)[3:])
    episode = make_episode(1, 12)
    with pytest.raises(InputError, match="action must be within its space"):
        buffer.add_episode(replace(episode, action=np.stack([*[inside] * 11, outside])))
    buffer.add_episode(replace(episode, action=np.stack([inside] * 12)))


@pytest.mark.parametrize("action", [-2, 3, 200])
def test_actions_outside_a_discrete_space_are_refused(action):
    buffer = buffer_of(10, OBSERVATION_SPACE, spaces.Discrete(4, start=-1), compute_reward)
    with pytest.raises(InputError, match=r"action (must be within its space, -1 to 2|is stored as int8)"):
        buffer.add(step(1, 0)[0], action, 0.0, *step(1, 0)[3:])
    episode = make_episode(1, 3)
    with pytest.raises(InputError, match=r"action (must be within its space, -1 to 2|is stored as int8)"):
        buffer.add_episode(replace(episode, action=np.array([0, 1, action])))
    buffer.add_episode(replace(episode, action=np.array([-1, 0, 2])))
    assert len(buffer) == 3


def test_a_space_without_goals_is_refused():
    with pytest.raises(GoalEnvError, match="Expected a Dict observation space"):
        buffer_of(10, ACTION_SPACE, ACTION_SPACE, compute_reward)


def test_the_seed_is_a_number_or_a_generator():
    buffers = [make_buffer(seed=seed) for seed in (3, np.random.default_rng(3), 4)]
    for buffer in buffers:
        buffer.add_episode(make_episode(1, 50))
    rows = [buffer.sample(20).row.tolist() for buffer in buffers]
    assert rows[0] == rows[1] != rows[2]


def filled(**options):
    """A buffer of three environments whose ring has wrapped, with open episodes and one that has just ended."""
    buffer = make_buffer(capacity=20, n_envs=3, episode_length=5, **options)
    for number in range(6):
        buffer.add_episode(make_episode(number, 1 + number % 5))
    for t in range(4):
        buffer.add(*vector_step([11, 12, 13], [t, t, t], [False, t == 3, False], [False] * 3))
    buffer.sample(7)
    return buffer


def assert_continue_equally(*buffers):
    """Do the same with all buffers. Every batch and every byte must agree."""
    batches = []
    for buffer in buffers:
        mine = [buffer.sample(30)]
        buffer.add(*vector_step([11, 14, 13], [4, 0, 4], [True, False, False], [False] * 3))
        buffer.add_episode(make_episode(20, 4))
        mine += [buffer.sample_many(2, 9), buffer.sample(5)]
        batches.append(mine)
    states = [buffer.state_dict() for buffer in buffers]
    for mine, (arrays, data) in zip(batches[1:], states[1:], strict=True):
        assert json.dumps(data) == json.dumps(states[0][1])
        assert all((arrays[name] == array).all() for name, array in states[0][0].items())
        for one, other in zip(batches[0], mine, strict=True):
            assert all((getattr(one, name) == getattr(other, name)).all() for name in BATCH_FIELDS)


@pytest.mark.parametrize("seed", [5, np.random.Generator(np.random.MT19937(5))])
def test_the_state_survives_json(seed):
    first = filled(seed=seed)
    arrays, data = first.state_dict()
    arrays, data = {name: array.copy() for name, array in arrays.items()}, json.loads(json.dumps(data, allow_nan=False))
    second = make_buffer(capacity=20, n_envs=3, episode_length=5)
    play_over = make_episode(99, 5)
    second.add_episode(play_over)
    second.load_state_dict(arrays, data)
    assert_continue_equally(first, second)


def test_a_saved_buffer_continues_with_the_same_bytes(tmp_path):
    first = filled(strategy="episode", n_sampled_goal=2)
    first.save(tmp_path / "buffer")
    second = HindsightBuffer.load(tmp_path / "buffer", compute_reward)
    assert (second.her_probability, len(second), second.num_episodes) == (2 / 3, len(first), first.num_episodes)
    first.save(tmp_path / "buffer")
    third = HindsightBuffer.load(str(tmp_path / "buffer"), compute_reward=compute_reward)
    assert_continue_equally(first, second, third)


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda buffer: pickle.loads(pickle.dumps(buffer))])
@pytest.mark.parametrize("options", [{}, {"prioritized": True}, {"relabel_at": "episode_end", "strategy": "final"}])
def test_a_copy_is_independent_and_continues_with_the_same_bytes(copied, options):
    first = filled(**options)
    second, third = copied(first), copied(first)
    before = first.state_dict()[0]["rows"].copy()
    third.add_episode(make_episode(50, 5))
    third.sample(9)
    assert (first.state_dict()[0]["rows"] == before).all()
    assert np.shares_memory(second.timeline.steps_left, second.timeline.rows)
    assert_continue_equally(first, second)


def test_a_copy_shares_the_functions():
    """They may be methods of an environment, which is not copied."""

    class Environment:
        def compute_reward(self, achieved_goal, goal, info):
            return compute_reward(achieved_goal, goal, info)

        def __deepcopy__(self, memo):
            raise AssertionError

    environment = Environment()
    buffer = buffer_of(50, OBSERVATION_SPACE, ACTION_SPACE, environment.compute_reward)
    buffer.add_episode(make_episode(1, 3))
    assert copy.deepcopy(buffer).sample(4).row.tolist() == buffer.sample(4).row.tolist()


def test_two_threads_get_whole_batches():
    """One samples, one adds: each reward belongs to its goals."""
    buffer = make_buffer(capacity=60, n_sampled_goal=20)
    for number in range(1, 9):
        buffer.add_episode(make_episode(number, 7))
    faults, stop = [], threading.Event()

    def sample():
        while not stop.is_set():
            batch = buffer.sample(64)
            expected = compute_reward(batch.next_achieved_goal, batch.goal, {})
            faults.append((batch.reward != expected)[batch.is_relabelled].any())

    threads = [threading.Thread(target=sample, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(9, 600):
        buffer.add_episode(make_episode(number, 1 + number % 7))
    stop.set()
    for thread in threads:
        thread.join()
    assert len(faults) > 10
    assert not any(faults)


def child_of_fork(act):
    """Fork, call `act` in the child, and return how the child ended: 0 if `act` returned. It has ten seconds."""
    child = os.fork()
    if not child:
        signal.alarm(10)
        try:
            act()
        finally:
            os._exit(0 if sys.exception() is None else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_process_forked_while_another_thread_samples_can_use_the_buffer():
    """A thread is within `sample` when the process forks. Another one lets it go on a little later."""
    is_sampling, may_go_on = threading.Event(), threading.Event()

    def slow_reward(achieved_goal, goal, info):
        is_sampling.set()
        may_go_on.wait()
        return compute_reward(achieved_goal, goal, info)

    buffer = buffer_of(50, OBSERVATION_SPACE, ACTION_SPACE, slow_reward)
    buffer.add_episode(make_episode(1, 3))
    sampling, waking = threading.Thread(target=buffer.sample, args=(4,)), threading.Timer(0.2, may_go_on.set)
    sampling.start()
    is_sampling.wait()
    waking.start()
    try:
        assert child_of_fork(lambda: buffer.sample(4)) == 0
    finally:
        sampling.join()
    assert len(buffer.sample(4)) == 4


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_process_may_fork_within_a_call_of_the_buffer():
    ended = []

    def forking_reward(achieved_goal, goal, info):
        if not ended:
            ended.append(None)
            ended[0] = child_of_fork(lambda: buffer.sample(4))
        return compute_reward(achieved_goal, goal, info)

    buffer = buffer_of(50, OBSERVATION_SPACE, ACTION_SPACE, forking_reward)
    buffer.add_episode(make_episode(1, 3))
    buffer.sample(4)
    assert ended == [0]


def test_n_sampled_goal_is_saved_beside_a_mixture(tmp_path):
    first = filled(n_sampled_goal=8)
    first.strategy = Relabel(future=0.5)
    first.save(tmp_path / "buffer")
    second = HindsightBuffer.load(tmp_path / "buffer", compute_reward)
    assert second.her_probability == 0.5
    second.strategy = "future"
    assert second.her_probability == 8 / 9


def test_a_mixture_is_saved_with_the_buffer(tmp_path):
    first = filled(strategy=Relabel(future=0.5, desired=0.25))
    assert first.her_probability == 0.75
    first.save(tmp_path / "buffer")
    second = HindsightBuffer.load(tmp_path / "buffer", compute_reward)
    assert second.her_probability == 0.75
    assert_continue_equally(first, second)


def test_another_strategy_may_be_set_at_any_time(tmp_path):
    first, second = filled(strategy=Relabel(final=0.8, random=0.1)), filled(strategy=Relabel(future=0.5, desired=0.25))
    first.strategy = second.strategy
    assert first.her_probability == 0.75
    assert_continue_equally(first, second)
    first.save(tmp_path / "buffer")
    assert HindsightBuffer.load(tmp_path / "buffer", compute_reward).strategy == second.strategy
    assert HindsightBuffer.load(tmp_path / "buffer", compute_reward, strategy="final").strategy == "final"
    third = filled(strategy="final", n_sampled_goal=9)
    third.load_state_dict(*first.state_dict())
    assert third.strategy == second.strategy
    third.strategy = "future"
    assert third.her_probability == 0.9  # with its own n_sampled_goal
    first.strategy = "final"
    assert first.her_probability == 0.8
    with pytest.raises(UnknownNameError, match="Did you mean 'future'"):
        first.strategy = "futur"
    assert first.strategy == "final"
    with pytest.raises(OptionError, match="relabel_at='episode_end', because the goals are stored already"):
        filled(relabel_at="episode_end").strategy = "final"


def test_an_empty_buffer_can_be_saved(tmp_path):
    make_buffer().save(tmp_path / "buffer")
    assert len(HindsightBuffer.load(tmp_path / "buffer", compute_reward)) == 0


def test_a_custom_strategy_is_passed_again_when_loading(tmp_path):
    def near(rows, steps_done, steps_left, u):
        return rows + 1

    filled(strategy=near).save(tmp_path / "buffer")
    with pytest.raises(FileError, match="used a function as strategy"):
        HindsightBuffer.load(tmp_path / "buffer", compute_reward)
    buffer = HindsightBuffer.load(tmp_path / "buffer", compute_reward, strategy=near)
    batch = buffer.sample(50)
    assert (batch.goal == batch.next_achieved_goal)[batch.is_relabelled].all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"capacity": 21}, "capacity 20 instead of 21"),
        ({"episode_length": 4}, "episode_length 5 instead of 4"),
        ({"n_envs": 2}, "n_envs 3 instead of 2"),
        ({"dtype": "float64"}, "dtype 'float32' instead of 'float64'"),
        ({"info_keys": ("wind",)}, r"info_keys \(\) instead of \('wind',\)"),
    ],
)
def test_a_state_of_another_kind_of_buffer_is_refused(options, message):
    buffer = make_buffer(**{"capacity": 20, "n_envs": 3, "episode_length": 5, **options})
    with pytest.raises(FileError, match=message):
        buffer.load_state_dict(*filled().state_dict())
    assert len(buffer) == 0


def test_a_state_of_another_task_is_refused():
    space = type(OBSERVATION_SPACE)(OBSERVATION_SPACE.spaces | {"observation": ACTION_SPACE})
    buffer = buffer_of(20, space, ACTION_SPACE, compute_reward, n_envs=3, episode_length=5)
    with pytest.raises(FileError, match=r"observation \(1,\) float32 against \(2,\) float32"):
        buffer.load_state_dict(*filled().state_dict())


def test_a_state_of_other_dtypes_is_refused():
    space = type(OBSERVATION_SPACE)(OBSERVATION_SPACE.spaces | {"observation": spaces.Box(-9, 9, (2,), np.int32)})
    buffer = buffer_of(20, space, ACTION_SPACE, compute_reward, n_envs=3, episode_length=5)
    with pytest.raises(FileError, match="other dtypes of its spaces"):
        buffer.load_state_dict(*filled().state_dict())


def invalid_states():
    """Changes that make the state of a buffer invalid."""

    def array(name, value):
        return lambda arrays, data: arrays.__setitem__(name, value)

    return [
        lambda arrays, data: arrays.pop("rows"),
        lambda arrays, data: arrays.pop("open_phase"),
        lambda arrays, data: data.pop("options"),
        lambda arrays, data: data.pop("spec"),
        lambda arrays, data: data.__setitem__("options", 3),
        lambda arrays, data: data.__setitem__("strategy", 3),
        lambda arrays, data: data.__setitem__("beta", "x"),
        array("open_steps", np.zeros(2, np.int64)),
        array("open_steps", np.full(3, 2**40)),
        array("open_steps", np.full(3, -1)),
        array("open_phase", np.full(3, 7)),
        array("open_rows", np.zeros((1, 1), np.uint8)),
        array("cursor", np.ones(2, np.int64)),
        array("rows", np.zeros((4, 4), np.uint8)),
        array("rows", "rows"),
        array("random_state", np.zeros(2, np.uint64)),
        array("random_state", np.zeros(1)),
        lambda arrays, data: arrays.pop("random_state"),
    ]


@pytest.mark.parametrize("spoil", invalid_states())
def test_an_invalid_state_is_refused_and_changes_nothing(spoil):
    arrays, data = filled().state_dict()
    data = json.loads(json.dumps(data))
    spoil(arrays, data)
    buffer, twin = filled(), filled()
    with pytest.raises(FileError):
        buffer.load_state_dict(arrays, data)
    assert_continue_equally(buffer, twin)


def test_a_damaged_file_is_named(tmp_path):
    filled().save(tmp_path / "buffer")
    file = tmp_path / "buffer"
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(FileError, match="damaged"):
        HindsightBuffer.load(tmp_path / "buffer", compute_reward)
    with pytest.raises(FileError, match="elsewhere"):
        HindsightBuffer.load(tmp_path / "elsewhere", compute_reward)


@pytest.mark.parametrize(
    "change",
    [
        {"capacity": 10**15},
        {"capacity": -1},
        {"n_envs": 10**9},
        {"strategy": "none"},
        {"strategy": None},
        {"subgoals": 3},
        {"success_reward": "much"},
        {"info_keys": 3},
        {"info_keys": ["a", "a"]},
        {"dtype": "O"},
    ],
)
def test_a_file_with_hostile_arguments_is_refused_before_memory_is_allocated(tmp_path, change):
    from hindsight_rl.replay.buffer import BUFFER_KIND
    from hindsight_rl.storage import save_arrays

    arrays, data = filled().state_dict()
    options = {name: value for name, value in change.items() if name in data["options"]}
    rest = {name: value for name, value in change.items() if name not in options}
    save_arrays(tmp_path / "buffer", BUFFER_KIND, arrays, data | rest | {"options": data["options"] | options})
    with pytest.raises(FileError, match="cannot be loaded"):
        HindsightBuffer.load(tmp_path / "buffer", compute_reward)


@pytest.mark.parametrize("n_envs", [1, 2])
@pytest.mark.parametrize(
    ("observation", "goal", "action", "dtypes"),
    [
        (spaces.Box(0, 255, (4, 4, 3), np.uint8), spaces.Box(-9, 9, (2,)), spaces.Discrete(5), "uint8 float32 uint8"),
        (spaces.MultiBinary(6), spaces.MultiBinary(6), spaces.Discrete(6, start=-1), "int8 int8 int8"),
        (spaces.Discrete(1000), spaces.Discrete(1000), spaces.Box(-1, 1, (2, 3), np.float64), "uint16 uint16 float32"),
        (
            spaces.Box(-9, 9, (3,), np.int64),
            spaces.Box(-9, 9, (1,), np.float16),
            spaces.MultiBinary(2),
            "int64 float32 int8",
        ),
    ],
)
def test_every_kind_of_space(observation, goal, action, dtypes, n_envs):
    space = spaces.Dict(observation=observation, achieved_goal=goal, desired_goal=goal)
    space.seed(0)
    action.seed(0)
    buffer = buffer_of(50, space, action, lambda a, g, info: np.zeros(len(a)), n_envs=n_envs)

    def draw(from_):
        many = [from_.sample() for _ in range(n_envs)]
        if n_envs == 1:
            return many[0]
        return {key: np.stack([each[key] for each in many]) for key in space} if from_ is space else np.stack(many)

    shown, actions = [draw(space) for _ in range(6)], [draw(action) for _ in range(5)]
    for t in range(5):
        reward, ends = (-1.0, t == 4) if n_envs == 1 else (np.full(2, -1.0), np.full(2, t == 4))
        buffer.add(shown[t], actions[t], reward, shown[t + 1], ends & False, ends, {})
    assert (len(buffer), buffer.num_episodes) == (5 * n_envs, n_envs)
    batch = buffer.sample(20)
    assert [batch.observation.dtype, batch.goal.dtype, batch.action.dtype] == dtypes.split()
    for i in range(20):
        env, t = divmod(int(batch.row[i]), 6)
        expected = (shown[t]["observation"], actions[t], shown[t + 1]["observation"])
        if n_envs > 1:
            expected = tuple(each[env] for each in expected)
        for got, want in zip((batch.observation[i], batch.action[i], batch.next_observation[i]), expected, strict=True):
            assert (got == np.asarray(want).astype(got.dtype)).all()


def test_the_reward_has_the_widest_float():
    buffer = make_buffer(dtype="float64")
    buffer.add_episode(make_episode(1, 3))
    assert buffer.sample(4).reward.dtype == np.float64
    assert math.isclose(buffer.timeline.rows["reward"][1], 0.125)


def test_the_already_achieved_fraction_counts_relabelled_samples_that_were_at_their_goal():
    buffer = make_buffer(strategy="final")
    buffer.add_episode(make_episode(1, 4))
    batch = buffer.sample(4)
    batch.is_relabelled[:] = [True, True, True, False]
    batch.achieved_goal[:, 0] = [7.0, 7.0, 3.0, 7.0]
    batch.goal[:, 0] = [7.0, 8.0, 3.0, 7.0]
    assert buffer.already_achieved_fraction(batch) == pytest.approx(2 / 3)
    batch.is_relabelled[:] = False
    assert buffer.already_achieved_fraction(batch) is None


def test_no_goal_counts_as_already_achieved_if_none_is_ever_rewarded():
    """A compute_reward(x, x) of -1 is the reward of a failure, also where another goal would be rewarded."""
    buffer = make_buffer(strategy="final")
    buffer.add_episode(make_episode(1, 4))
    batch = buffer.sample(4)
    batch.is_relabelled[:] = [True, True, True, False]
    batch.achieved_goal[:, 0] = batch.goal[:, 0] = [7.0, 8.0, 3.0, 5.0]
    buffer.compute_reward = lambda achieved, goal, info: -np.ones(len(goal))
    assert buffer.already_achieved_fraction(batch) is None
    buffer.compute_reward = lambda achieved, goal, info: (achieved == goal + 1)[:, 0] - 1.0
    assert buffer.already_achieved_fraction(batch) is None
    buffer.compute_reward = lambda achieved, goal, info: (achieved == goal)[:, 0] - 1.0
    assert buffer.already_achieved_fraction(batch) == 1.0


@pytest.mark.parametrize(
    "options", [{}, {"relabel_at": "episode_end"}, {"n_steps": 3}, {"relabel": "future=0.5,desired=0.4"}]
)
def test_extra_reward_is_added_under_every_goal(options):
    buffer = make_buffer(extra_reward=True, **{k: v for k, v in options.items() if k != "relabel"} | relabelling(options))
    for number in (1, 2):
        play(buffer, number, 5)
    batch = buffer.sample(200)
    number, t = batch.observation.T
    n_steps = np.minimum(options.get("n_steps", 1), 5 - t).astype(int)
    expected = np.zeros(200)
    for i, (each, first) in enumerate(zip(number, t, strict=True)):
        for ahead in range(n_steps[i]):
            now = first + ahead
            extra = now / 8 + abs(place(each, now + 1) + each)
            recomputed = -abs(place(each, now + 1) - batch.goal[i, 0]) + extra
            expected[i] += 0.98**ahead * (recomputed if batch.is_relabelled[i] else now / 8)
    assert np.allclose(batch.reward, expected, atol=1e-2)
    assert 50 < batch.is_relabelled.sum() < 200


def relabelling(options):
    return {"strategy": Relabel.parse(options["relabel"])} if "relabel" in options else {}
