"""The cpprb adapter: layout and goals by hand, and against cpprb itself if it is installed."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_cpprb import ENV, distance, filled, make, play

from distributions import assert_distribution
from hindsight_rl.compat.cpprb import HindsightReplayBuffer
from hindsight_rl.errors import (
    CastError,
    EpisodeTooLongError,
    GoalEnvError,
    InputError,
    NonFiniteError,
    NothingToSampleError,
    OptionError,
    ShapeError,
    UnknownNameError,
)

STRATEGIES = ("future", "episode", "random", "final")


def test_an_episode_is_its_steps_and_then_a_block_for_each_additional_goal():
    stored = filled([3, 2], additional_goals=2).get_all_transitions()
    assert list(stored) == ["obs", "act", "next_obs", "rew", "goal"]
    assert stored["obs"].tolist() == [[1, t] for t in (0, 1, 2)] * 3 + [[2, t] for t in (0, 1)] * 3
    assert stored["next_obs"].tolist() == [[1, t] for t in (1, 2, 3)] * 3 + [[2, t] for t in (1, 2)] * 3
    assert stored["act"].tolist() == [[0], [100], [200]] * 3 + [[0], [100]] * 3
    assert stored["goal"][:3].tolist() == [[1, -1]] * 3
    assert stored["goal"][9:11].tolist() == [[2, -1]] * 2
    assert stored["rew"][:3].tolist() == [[0 - 2], [100 - 3], [200 - 4]]
    assert stored["rew"].tolist() == distance(stored["next_obs"], stored["act"], stored["goal"])[:, None].tolist()
    assert {name: (array.shape, array.dtype) for name, array in stored.items()} == {
        "obs": ((15, 2), np.float32),
        "act": ((15, 1), np.float32),
        "next_obs": ((15, 2), np.float32),
        "rew": ((15, 1), np.float32),
        "goal": ((15, 2), np.float32),
    }


def test_shuffled_transitions_are_the_same_transitions():
    buffer = filled([4, 3])
    plain, shuffled = buffer.get_all_transitions(), buffer.get_all_transitions(shuffle=True)
    rows = [np.concatenate(list(each.values()), axis=1).tolist() for each in (plain, shuffled)]
    assert rows[0] != rows[1]
    assert sorted(rows[0]) == sorted(rows[1])


@settings(max_examples=100)
@given(
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=8),
    size=st.integers(12, 40),
    k=st.integers(0, 2),
    strategy=st.sampled_from(STRATEGIES),
    prioritized=st.booleans(),
    seed=st.integers(0, 99),
)
def test_stored_transitions_are_those_of_the_newest_episodes(lengths, size, k, strategy, prioritized, seed):
    options = {"additional_goals": k, "strategy": strategy, "prioritized": prioritized, "seed": seed}
    buffer, at_first, steps_of = make(size, **options), {}, {}
    k = 1 if strategy == "final" else k
    for number, steps in enumerate(lengths, start=1):
        play(buffer, number, steps)
        steps_of[number] = steps
        stored, at, numbers = buffer.get_all_transitions(), 0, []
        while at < len(stored["obs"]):
            found = int(stored["obs"][at, 0])
            block = slice(at, at + steps_of[found] * (1 + k))
            here = {name: array[block].tolist() for name, array in stored.items()}
            assert at_first.setdefault(found, here) == here
            numbers.append(found)
            at = block.stop
        assert numbers == list(range(number - len(numbers) + 1, number + 1))
        assert buffer.get_stored_size() == at <= size
        arguments = (np.array(at_first[number][name]) for name in ("next_obs", "act", "goal"))
        assert at_first[number]["rew"] == distance(*arguments)[:, None].tolist()
        sample = buffer.sample(20)
        known = {row for here in (at_first[n] for n in numbers) for row in rows_of(here)}
        assert set(rows_of({name: sample[name].tolist() for name in stored})) <= known


def rows_of(transitions):
    return [tuple(tuple(part) for part in row) for row in zip(*transitions.values(), strict=True)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_distribution_of_the_goals(strategy):
    """5000 additional goals for each step of the second episode (4 steps), after an episode of 3 steps."""
    buffer = filled([3, 4], size=200_000, strategy=strategy, additional_goals=5000, prioritized=False)
    stored = buffer.get_all_transitions()
    extra = 1 if strategy == "final" else 5000
    goal, state = (stored[name][3 * (1 + extra) + 4 :].reshape(extra, 4, 2).astype(int) for name in ("goal", "obs"))
    for t in range(4):
        assert (state[:, t, 1] == t).all()
        possible = {
            "future": [(2, later) for later in range(t + 1, 5)],
            "episode": [(2, any_) for any_ in range(1, 5)],
            "random": [(1, any_) for any_ in range(1, 4)] + [(2, any_) for any_ in range(1, 5)],
            "final": [(2, 4)],
        }[strategy]
        assert_distribution(Counter(map(tuple, goal[:, t].tolist())), dict.fromkeys(possible, 1 / len(possible)))


@pytest.mark.parametrize("prioritized", [False, True])
def test_every_transition_is_sampled_with_the_same_probability(prioritized):
    buffer = filled([3, 2, 4], additional_goals=2, strategy="final", prioritized=prioritized)
    rows = Counter(row for _ in range(200) for row in rows_of(sample_of(buffer, 90)))
    stored = Counter(rows_of({n: a.tolist() for n, a in buffer.get_all_transitions().items()}))
    assert_distribution(rows, {row: count / 18 for row, count in stored.items()})


def sample_of(buffer, size):
    sample = buffer.sample(size)
    return {name: sample[name].tolist() for name in ("obs", "act", "next_obs", "rew", "goal")}


RICH = {
    "obs": {"shape": (2, 3), "dtype": np.uint8},
    "act": {"dtype": np.int64},
    "next_obs": {"shape": (2, 3), "dtype": np.uint8},
    "done": {},
    "wide": {"shape": 4, "dtype": np.float64},
    "flag": {"dtype": bool},
    "word": {"dtype": "U5"},
}


def rich_step(rng):
    step = {name: (rng.random(part.get("shape", 1)) * 200).astype(part.get("dtype", "f4")) for name, part in RICH.items()}
    return step | {"word": ["ab", "cde"][int(rng.integers(2))]}


@pytest.mark.parametrize("prioritized", [False, True])
@pytest.mark.parametrize(
    "options",
    [{}, {"strategy": "final"}, {"default_dtype": np.float64}, {"goal_func": lambda s: s[:, 0, :2], "goal_shape": 2}],
)
def test_the_dictionaries_are_those_of_cpprb(options, prioritized):
    cpprb = pytest.importorskip("cpprb")
    reward = lambda s, a, g: (s.reshape(len(s), -1)[:, :2] == g.reshape(len(g), -1)[:, :2]).all(axis=1) - 1.0  # noqa: E731
    classes = (HindsightReplayBuffer, cpprb.HindsightReplayBuffer)
    buffers = [each(1e3, RICH, 9, reward, prioritized=prioritized, **options) for each in classes]
    rng = np.random.default_rng(0)
    for steps in (4, 1, 9):
        for _ in range(steps):
            step = rich_step(rng)
            for buffer in buffers:
                buffer.add(**step)
        for buffer in buffers:
            buffer.on_episode_end(step["obs"] if "goal_shape" not in options else (3, 4))
    assert buffers[0].get_stored_size() == buffers[1].get_stored_size()
    for ours, theirs in zip(*([b.get_all_transitions(), b.sample(5)] for b in buffers), strict=True):
        assert list(ours) == list(theirs)
        for name in ours:
            assert (ours[name].shape, ours[name].dtype) == (theirs[name].shape, theirs[name].dtype)
    ours, theirs = (buffer.get_all_transitions() for buffer in buffers)
    assert all((ours[name] == theirs[name]).all() for name in RICH)
    if options.get("strategy") == "final":
        assert all((ours[name] == theirs[name]).all() for name in ours)


def test_several_steps_at_once_and_single_numbers():
    one, many = (
        make(env_dict={"obs": {}, "act": {}, "next_obs": {}}, reward_func=lambda s, a, g: -1 * (s != g)) for _ in "ab"
    )
    for t in range(3):
        one.add(obs=t, act=7, next_obs=[t + 1])
    many.add(obs=[0, 1, 2], act=7, next_obs=np.arange(1, 4)[:, None], more="ignored")
    for buffer in (one, many):
        buffer.on_episode_end(3)
        buffer.on_episode_end(3)
    stored = [buffer.get_all_transitions() for buffer in (one, many)]
    assert stored[0]["next_obs"][:3].tolist() == [[1], [2], [3]]
    assert all((stored[0][name] == stored[1][name]).all() for name in stored[0])
    assert one.get_stored_size() == 15


def test_a_next_state_is_returned_as_it_was_given():
    buffer = make(additional_goals=1)
    for t in range(3):
        buffer.add(obs=(0, 0), act=0, next_obs=(50 + t, 60 - t))
    buffer.on_episode_end(np.array([[[1, 2], [3, 4], [5, 6]]])[0])
    stored = buffer.get_all_transitions()
    assert stored["next_obs"].tolist() == [[50, 60], [51, 59], [52, 58]] * 2
    assert stored["goal"][:3].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert stored["goal"][5].tolist() == [52, 58]


def test_goals_of_integer_states_keep_their_own_dtype():
    pixels = {"shape": 2, "dtype": np.uint8}
    env = {"obs": pixels, "act": {}, "next_obs": pixels}
    buffer = make(env_dict=env, goal_func=lambda s: s / 3, strategy="final")
    buffer.add(obs=(0, 0), act=0, next_obs=(1, 200))
    buffer.on_episode_end((0.5, 2.5))
    assert buffer.get_all_transitions()["goal"].tolist() == [[0.5, 2.5], [1 / 3, 200 / 3]]
    whole = make(env_dict=env, goal_func=lambda s: s[:, ::-1])
    whole.add(obs=(0, 0), act=0, next_obs=(1, 200))
    with pytest.raises(CastError, match=r"`goal` is stored as uint8, which cannot hold 0\.5"):
        whole.on_episode_end((0.5, 2))
    whole.on_episode_end((5, 2))
    assert whole.sample(3)["goal"].dtype == np.uint8


def test_goal_func_is_for_additional_goals_only():
    buffer = make(
        goal_func=lambda s: 10 * s[:, 0], goal_shape=1, reward_func=lambda s, a, g: s[:, 0] + g[:, 0], strategy="final"
    )
    buffer.add(obs=(1, 1), act=0, next_obs=(2, 2))
    buffer.on_episode_end(7)
    stored = buffer.get_all_transitions()
    assert (stored["goal"].tolist(), stored["rew"].tolist()) == ([[7], [20]], [[9], [22]])


def test_a_seed_makes_goals_and_samples_reproducible():
    goals = [filled([6, 6], seed=seed).get_all_transitions()["goal"].tolist() for seed in (3, np.random.default_rng(3), 4)]
    assert goals[0] == goals[1] != goals[2]
    samples = [filled([6, 6], seed=seed).sample(9)["indexes"].tolist() for seed in (3, 3, 4)]
    assert samples[0] == samples[1] != samples[2]


def test_the_random_state_continues_after_clear():
    buffer = filled([6])
    before = buffer.get_all_transitions()["goal"]
    buffer.clear()
    play(buffer, 1, 6)
    assert (buffer.get_all_transitions()["goal"] != before).any()


def test_samples_share_no_memory_with_the_buffer():
    buffer = filled([6, 6])
    first = buffer.sample(9)
    before = {name: array.copy() for name, array in first.items()}
    for array in buffer.sample(9).values():
        array[...] = 0
    play(buffer, 3, 6)
    buffer.update_priorities(first["indexes"], np.ones(9))
    assert all((array == before[name]).all() for name, array in first.items())
    assert (buffer.get_all_transitions()["obs"][:6, 0] == 1).all()


def test_a_step_is_stored_once():
    state = {"shape": 250}
    buffer = make(10_000, {"obs": state, "act": {}, "next_obs": state}, goal_func=lambda s: s[:, :2], goal_shape=2)
    assert buffer._steps.nbytes == 10_000 // 5 * 501 * 4
    assert buffer._buffer.nbytes < 10_000 * 64  # a reference to the step, a goal, a reward, and the priority


def test_sizes():
    buffer = make(1e3, additional_goals=3)
    assert (buffer.get_buffer_size(), buffer.get_stored_size()) == (1000, 0)
    buffer.add(obs=(0, 0), act=0, next_obs=(0, 1))
    assert buffer.get_stored_size() == 0
    assert buffer.get_all_transitions()["goal"].shape == (0, 2)
    with pytest.raises(NothingToSampleError, match="There is nothing to sample"):
        buffer.sample(3)
    buffer.on_episode_end((0, 0))
    assert buffer.get_stored_size() == 4
    assert buffer.sample(3.0)["obs"].shape == (3, 2)
    buffer.add(obs=(0, 0), act=0, next_obs=(0, 1))
    buffer.clear()
    buffer.on_episode_end((0, 0))
    assert buffer.get_stored_size() == 0
    assert make(strategy="final", additional_goals=7).additional_goals == 1


def raises_on_add(error, words, **fields):
    buffer = make()
    buffer.add(obs=(1, 1), act=0, next_obs=(1, 1))
    with pytest.raises(error, match=words):
        buffer.add(**fields)
    buffer.on_episode_end((0, 0))
    assert buffer.get_stored_size() == 5


def test_invalid_steps_are_refused():
    step = {"obs": (1, 2), "act": 0, "next_obs": (1, 2)}
    raises_on_add(KeyError, "`add` needs act, next_obs. It got obs", obs=(1, 2))
    raises_on_add(ValueError, "needs", obs=(1, 2))
    raises_on_add(ShapeError, r"Expected shape \(2,\) for `obs`, .* got \(3,\)", **step | {"obs": (1, 2, 3)})
    raises_on_add(
        ShapeError, "`act` has 2 steps, but another field has 3", **step | {"obs": np.ones((3, 2)), "act": [1, 2]}
    )
    raises_on_add(InputError, "obs cannot be converted", **step | {"obs": ((1, 2), (1,))})
    raises_on_add(CastError, "Expected numbers of float32 for `obs`", **step | {"obs": ("a", "b")})
    raises_on_add(EpisodeTooLongError, "Exceed Max Episode Length", obs=np.ones((6, 2)), act=0, next_obs=np.ones((6, 2)))


@pytest.mark.parametrize("bad", [300, 1.5, -1])
def test_numbers_that_a_dtype_cannot_hold_are_refused(bad):
    buffer = make(env_dict=ENV | {"act": {"dtype": np.uint8}})
    with pytest.raises(CastError, match="`act` is stored as uint8, which cannot hold"):
        buffer.add(obs=(1, 2), act=bad, next_obs=(1, 2))


@pytest.mark.parametrize("field", ["obs", "act", "next_obs", "done"])
@pytest.mark.parametrize(("bad", "error"), [(np.nan, NonFiniteError), (-np.inf, NonFiniteError), (1e300, CastError)])
def test_values_that_are_not_finite_are_refused_at_once(field, bad, error):
    buffer = make(env_dict=ENV | {"done": {}})
    step = {"obs": (1.0, 2.0), "act": 0.0, "next_obs": (1.0, 2.0), "done": 0.0}
    with pytest.raises(error, match=f"`{field}` (must be finite|is infinite)"):
        buffer.add(**step | {field: (0.0, bad) if "obs" in field else bad})
    buffer.add(**step)
    buffer.on_episode_end((0, 0))
    assert buffer.get_stored_size() == 5


def test_a_batch_that_does_not_fit_the_memory_is_refused():
    with pytest.raises(InputError, match=r"Lower the batch size"):
        filled([3]).sample(10**12)


@pytest.mark.parametrize(
    ("options", "goal", "error", "words"),
    [
        ({}, (1, 2, 3), ShapeError, r"Expected shape \(2,\) for `goal`, or \(3, 2\), one goal per step, got \(3,\)"),
        ({"reward_func": lambda s, a, g: s[:, 0]}, (1, np.nan), NonFiniteError, "`goal` must be finite, got nan"),
        (
            {"goal_func": lambda s: s[:, :1]},
            (1, 2),
            ShapeError,
            r"shape \(3, 2\) for 3 states, got \(3, 1\)\. Set `goal_shape`",
        ),
        (
            {"reward_func": lambda s, a, g: 1.0},
            (1, 2),
            GoalEnvError,
            r"`reward_func` must return .* got shape \(\) and dtype",
        ),
        (
            {"reward_func": lambda s, a, g: np.full(3, np.nan)},
            (1, 2),
            NonFiniteError,
            "`reward_func` must be finite, got nan",
        ),
        (
            {"reward_func": lambda s, a, g: np.where(g[:, 0] == 1, 0, np.inf)},
            (1, 2),
            NonFiniteError,
            "`reward_func` must be finite, got inf",
        ),
        (
            {"default_dtype": np.uint8, "reward_func": lambda s, a, g: -np.ones(3)},
            (0, 9),
            CastError,
            r"`reward_func` is stored as uint8, which cannot hold -1\.0",
        ),
        (
            {"size": 14},
            (1, 2),
            EpisodeTooLongError,
            "with its goals has 15 transitions, but `size` is 14",
        ),
    ],
)
def test_a_refused_episode_end_changes_nothing(options, goal, error, words):
    buffer = make(**options)
    for t in range(3):
        buffer.add(obs=(0, t), act=0, next_obs=(0, t + 1))
    for _ in range(2):
        with pytest.raises(error, match=words):
            buffer.on_episode_end(goal)
        assert buffer.get_stored_size() == 0


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"strategy": "futur"}, UnknownNameError, "Unknown Strategy: futur. Known Strategies: future, final"),
        ({"size": 10.5}, OptionError, r"size must be a whole number of at least 5, got 10\.5"),
        ({"size": 4}, OptionError, "size .* got 4"),
        ({"size": np.inf}, OptionError, "size .* got inf"),
        ({"max_episode_len": 0}, OptionError, "max_episode_len .* got 0"),
        ({"additional_goals": -1}, OptionError, "additional_goals .* got -1"),
        ({"alpha": 2.0}, OptionError, r"`alpha` must be at most 1, got 2\.0"),
        ({"eps": 0.0}, OptionError, r"`eps` must be at least 1e-06, got 0\.0"),
        ({"Nstep": {"size": 3}}, OptionError, r"`Nstep` is not supported, .*ReplayOptions\(n_steps=3\)"),
        ({"next_of": "obs"}, OptionError, "`next_of` is not supported, got 'obs'"),
        ({"mmap_prefix": "x"}, OptionError, "`mmap_prefix` is not supported, got 'x'"),
        ({"env_dict": {"obs": {}, "act": {}}}, KeyError, "env_dict lacks next_obs. It has obs, act"),
        ({"env_dict": ENV | {"rew": {}}}, OptionError, "'rew' in env_dict is reserved"),
        ({"env_dict": ENV | {"x": {"dtype": object}}}, OptionError, "'x' in env_dict has dtype object"),
        ({"default_dtype": "U5"}, OptionError, "`default_dtype` must be numeric, .* got <U5"),
        ({"env_dict": ENV | {"x": {"shape": (2, 0)}}}, OptionError, "shape of x .* got 0"),
        ({"env_dict": {**ENV, "obs": {"dtype": "U5"}}}, OptionError, "Goals must be numeric, got <U5"),
    ],
)
def test_invalid_options_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        make(**options)


@pytest.mark.parametrize("name", ["ReplayBuffer", "PrioritizedReplayBuffer"])
def test_another_class_of_cpprb_is_not_here(name):
    with pytest.raises(ImportError, match=f"no '{name}'. .* Keep importing every other class from cpprb"):
        exec(f"from hindsight_rl.compat.cpprb import {name}")
