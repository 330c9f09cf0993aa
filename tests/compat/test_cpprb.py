"""cpprb's buffer, made of our parts: its layout and its laws, by hand and against cpprb itself where it is installed."""

import io
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hindsight.compat.cpprb import HindsightReplayBuffer
from hindsight.errors import (
    CastError,
    EpisodeTooLongError,
    FileError,
    GoalEnvError,
    InputError,
    NothingToSampleError,
    OptionError,
    ShapeError,
    UnknownNameError,
)

RARE = 1e-6
ENV = {"obs": {"shape": 2}, "act": {}, "next_obs": {"shape": 2}}
STRATEGIES = ("future", "episode", "random", "final")


def distance(next_state, action, goal):
    """Minus the distance along the second axis, and the action: so that it says which step and goal it came from."""
    return action[:, 0] - np.abs(next_state[:, 1] - goal[:, 1])


def make(size=100, env_dict=ENV, max_episode_len=6, reward_func=distance, **options):
    return HindsightReplayBuffer(size, env_dict, max_episode_len, reward_func, **options)


def play(buffer, number, steps):
    """An episode: step t goes from (number, t) to (number, t + 1) by action 100 * t; it is asked for (number, -1)."""
    for t in range(steps):
        buffer.add(obs=(number, t), act=100 * t, next_obs=(number, t + 1))
    buffer.on_episode_end((number, -1))


def held(lengths, **options):
    buffer = make(**options)
    for number, steps in enumerate(lengths, start=1):
        play(buffer, number, steps)
    return buffer


def assert_law(counts, expected):
    """counts: how often each thing was seen; expected: its probability."""
    assert set(counts) <= set(expected)
    total = sum(counts.values())
    if len(expected) > 1:
        seen = [counts[key] for key in expected]
        assert stats.chisquare(seen, [total * p for p in expected.values()]).pvalue > RARE


def test_an_episode_is_its_steps_and_then_a_block_for_every_extra_goal():
    stored = held([3, 2], additional_goals=2).get_all_transitions()
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


def test_shuffled_transitions_are_the_same_ones():
    buffer = held([4, 3])
    plain, shuffled = buffer.get_all_transitions(), buffer.get_all_transitions(shuffle=True)
    rows = [np.concatenate(list(each.values()), axis=1).tolist() for each in (plain, shuffled)]
    assert rows[0] != rows[1]
    assert sorted(rows[0]) == sorted(rows[1])


@settings(deadline=None, max_examples=100)
@given(
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=8),
    size=st.integers(12, 40),
    k=st.integers(0, 2),
    strategy=st.sampled_from(STRATEGIES),
    prioritized=st.booleans(),
    seed=st.integers(0, 99),
)
def test_whatever_is_stored_is_what_was_told_of_the_newest_episodes(lengths, size, k, strategy, prioritized, seed):
    options = {"additional_goals": k, "strategy": strategy, "prioritized": prioritized, "seed": seed}
    buffer, told, kept = make(size, **options), {}, {}
    k = 1 if strategy == "final" else k
    for number, steps in enumerate(lengths, start=1):
        play(buffer, number, steps)
        kept[number] = steps
        stored, at, numbers = buffer.get_all_transitions(), 0, []
        while at < len(stored["obs"]):
            number_here = int(stored["obs"][at, 0])
            block = slice(at, at + kept[number_here] * (1 + k))
            here = {name: array[block].tolist() for name, array in stored.items()}
            assert told.setdefault(number_here, here) == here
            numbers.append(number_here)
            at = block.stop
        assert numbers == list(range(number - len(numbers) + 1, number + 1))
        assert buffer.get_stored_size() == at <= size
        judged = (np.array(told[number][name]) for name in ("next_obs", "act", "goal"))
        assert told[number]["rew"] == distance(*judged)[:, None].tolist()
        sample = buffer.sample(20)
        known = {row for here in (told[n] for n in numbers) for row in rows_of(here)}
        assert set(rows_of({name: sample[name].tolist() for name in stored})) <= known


def rows_of(transitions):
    return [tuple(tuple(part) for part in row) for row in zip(*transitions.values(), strict=True)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_laws_of_the_goals(strategy):
    """Of 5000 extra goals for each step of the second episode, of 4 steps after one of 3."""
    buffer = held([3, 4], size=200_000, strategy=strategy, additional_goals=5000, prioritized=False)
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
        assert_law(Counter(map(tuple, goal[:, t].tolist())), dict.fromkeys(possible, 1 / len(possible)))


@pytest.mark.parametrize("prioritized", [False, True])
def test_samples_are_of_all_that_is_stored_alike(prioritized):
    buffer = held([3, 2, 4], additional_goals=2, strategy="final", prioritized=prioritized)
    rows = Counter(row for _ in range(200) for row in rows_of(sample_of(buffer, 90)))
    stored = Counter(rows_of({n: a.tolist() for n, a in buffer.get_all_transitions().items()}))
    assert_law(rows, {row: count / 18 for row, count in stored.items()})


def sample_of(buffer, size):
    sample = buffer.sample(size)
    return {name: sample[name].tolist() for name in ("obs", "act", "next_obs", "rew", "goal")}


def prioritized_buffer(seed=0, **options):
    """18 transitions in two episodes, with priorities of their own; the indexes, in the order in which they are stored."""
    buffer = held([3, 3], additional_goals=2, seed=seed, **options)
    index = np.unique(np.concatenate([buffer.sample(100)["indexes"] for _ in range(10)]))
    assert len(index) == 18
    return buffer, index


def test_weights_and_frequencies_by_hand():
    buffer, index = prioritized_buffer(alpha=0.5, eps=0.25)
    priority = np.arange(18.0)
    buffer.update_priorities(index, priority)
    p = (priority + 0.25) ** 0.5
    by_hand = (18 * p / p.sum()) ** -0.7
    by_hand /= by_hand.max()
    counts = Counter()
    for _ in range(2000):
        sample = buffer.sample(18, 0.7)
        place = np.searchsorted(index, sample["indexes"])
        assert sample["weights"] == pytest.approx(by_hand[place], rel=1e-6)
        counts.update(place.tolist())
    assert (sample["weights"].dtype, sample["indexes"].dtype) == (np.float32, np.uint64)
    assert_law(counts, dict(enumerate(p / p.sum())))
    assert buffer.get_max_priority() == 17.0


def assert_weights_are_against_the_least(buffer):
    sample, tree = buffer.sample(4, 1.0), buffer._priorities
    numbers = tree.of(np.arange(tree.n_numbers))
    expected = numbers[numbers > 0].min() / tree.of(sample["indexes"].astype(int))
    assert sample["weights"].tolist() == expected.astype(np.float32).tolist()


def test_weights_are_measured_against_the_least_of_all():
    """Whatever is updated, evicted or repeated, the least is that of a walk over all; errors grow, so that it changes."""
    rng, buffer = np.random.default_rng(0), make(60, additional_goals=1)
    for number in range(200):
        play(buffer, number, int(rng.integers(1, 6)))
        sample = buffer.sample(8)
        buffer.update_priorities(np.repeat(sample["indexes"], 2), rng.integers(0, 3, 16) + number // 4)
        assert_weights_are_against_the_least(buffer)


def test_the_least_is_counted_once_however_often_it_is_given():
    buffer, index = prioritized_buffer()
    for indexes, priorities in [
        (index[[0, 0]], [0, 0]),
        (index[:1], [5.0]),
        (index[[1, 1, 1]], [0, 0, 4]),
        (index, np.ones(18)),
    ]:
        buffer.update_priorities(indexes, priorities)
        assert_weights_are_against_the_least(buffer)


def test_new_transitions_have_the_largest_priority_so_far():
    buffer, index = prioritized_buffer(alpha=1.0)
    assert buffer.get_max_priority() == 1.0
    buffer.update_priorities(index[:2], [5.0, 2.0])
    buffer.update_priorities(index[:1], [0.5])
    assert buffer.get_max_priority() == 5.0
    play(buffer, 3, 1)
    numbers = buffer._priorities.of(np.arange(buffer._priorities.n_numbers))
    assert np.unique(numbers.round(4)).tolist() == pytest.approx([0.0, 0.5001, 1.0001, 2.0001, 5.0001])
    buffer.clear()
    assert buffer.get_max_priority() == 1.0


def test_weights_and_priorities_are_those_of_cpprb():
    cpprb = pytest.importorskip("cpprb")
    theirs = cpprb.HindsightReplayBuffer(100, ENV, 6, distance, additional_goals=2)
    ours, index = prioritized_buffer()
    for number in (1, 2):
        play(theirs, number, 3)
    assert theirs.get_max_priority() == ours.get_max_priority()
    priority = np.random.default_rng(1).exponential(size=18)
    ours.update_priorities(index, priority)
    theirs.update_priorities(np.arange(18), priority)
    weight = [np.zeros(18), np.zeros(18)]
    counts = np.zeros((2, 18))
    for _ in range(500):
        for i, buffer in enumerate((ours, theirs)):
            sample = buffer.sample(36, beta=0.6)
            place = np.searchsorted(index, sample["indexes"]) if i == 0 else sample["indexes"].astype(int)
            weight[i][place] = sample["weights"]
            counts[i] += np.bincount(place, minlength=18)
    assert weight[0] == pytest.approx(weight[1], rel=1e-5)
    assert stats.chi2_contingency(counts).pvalue > RARE
    assert ours.get_max_priority() == pytest.approx(theirs.get_max_priority(), rel=1e-6)


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
    many.add(obs=[0, 1, 2], act=7, next_obs=np.arange(1, 4)[:, None], more="nobody asked for it")
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


def test_goals_of_integer_states_are_not_cut():
    pixels = {"shape": 2, "dtype": np.uint8}
    env = {"obs": pixels, "act": {}, "next_obs": pixels}
    buffer = make(env_dict=env, goal_func=lambda s: s / 3, strategy="final")
    buffer.add(obs=(0, 0), act=0, next_obs=(1, 200))
    buffer.on_episode_end((0.5, 2.5))
    assert buffer.get_all_transitions()["goal"].tolist() == [[0.5, 2.5], [1 / 3, 200 / 3]]
    whole = make(env_dict=env, goal_func=lambda s: s[:, ::-1])
    whole.add(obs=(0, 0), act=0, next_obs=(1, 200))
    with pytest.raises(CastError, match=r"goal holds 0\.5, which is lost as uint8"):
        whole.on_episode_end((0.5, 2))
    whole.on_episode_end((5, 2))
    assert whole.sample(3)["goal"].dtype == np.uint8


def test_goal_func_is_for_extra_goals_only():
    buffer = make(
        goal_func=lambda s: 10 * s[:, 0], goal_shape=1, reward_func=lambda s, a, g: s[:, 0] + g[:, 0], strategy="final"
    )
    buffer.add(obs=(1, 1), act=0, next_obs=(2, 2))
    buffer.on_episode_end(7)
    stored = buffer.get_all_transitions()
    assert (stored["goal"].tolist(), stored["rew"].tolist()) == ([[7], [20]], [[9], [22]])


def test_chance_is_handed_in():
    goals = [held([6, 6], seed=seed).get_all_transitions()["goal"].tolist() for seed in (3, np.random.default_rng(3), 4)]
    assert goals[0] == goals[1] != goals[2]
    samples = [held([6, 6], seed=seed).sample(9)["indexes"].tolist() for seed in (3, 3, 4)]
    assert samples[0] == samples[1] != samples[2]


def test_chance_goes_on_after_all_was_forgotten():
    buffer = held([6])
    before = buffer.get_all_transitions()["goal"]
    buffer.clear()
    play(buffer, 1, 6)
    assert (buffer.get_all_transitions()["goal"] != before).any()


def test_what_was_sampled_stays_as_it_was():
    buffer = held([6, 6])
    first = buffer.sample(9)
    before = {name: array.copy() for name, array in first.items()}
    for array in buffer.sample(9).values():
        array[...] = 0
    play(buffer, 3, 6)
    buffer.update_priorities(first["indexes"], np.ones(9))
    assert all((array == before[name]).all() for name, array in first.items())
    assert (buffer.get_all_transitions()["obs"][:6, 0] == 1).all()


@pytest.mark.parametrize(
    ("indexes", "priorities", "words"),
    [
        ([0, 1], [1.0, np.nan], "a priority is nan"),
        ([0, 1], [1.0, np.inf], "a priority is inf"),
        ([0, 1], [1.0, -1.0], r"a priority is -1\.0"),
        ([0, 10**9], [1.0, 1.0], r'index 1000000000 is none of .* give the "indexes" of a sample'),
        ([-1], [1.0], "index -1 is none of"),
        ([30], [1.0], "index 30 starts no transition"),
        ([0.5], [1.0], r"index is \(1,\) of float64"),
        ([0, 1], [1.0], "of one shape"),
        ([], [1.0], "of one shape"),
        (None, [1.0], "None"),
        ([1], None, "None"),
    ],
)
def test_bad_priorities_change_nothing(indexes, priorities, words):
    buffer = held([6])
    before = buffer._priorities._tree.tobytes()
    with pytest.raises(TypeError if "None" in words else ValueError, match=words):
        buffer.update_priorities(indexes, priorities)
    assert buffer._priorities._tree.tobytes() == before
    buffer.sample(5)


def test_priorities_are_any_array_like_and_come_too_late_for_what_left():
    buffer, index = prioritized_buffer(size=18, alpha=1.0)
    buffer.update_priorities([], [])
    buffer.update_priorities(index[:2].tolist(), (4, 3))
    buffer.update_priorities(index[:2, None], np.float32([[4], [3]]))
    play(buffer, 9, 3)
    before = buffer._priorities._tree.tobytes()
    buffer.update_priorities(index[:9], np.full(9, 9.0))
    assert buffer._priorities._tree.tobytes() == before
    assert set(buffer.sample(50)["obs"][:, 0].tolist()) == {2, 9}


def test_without_priorities():
    buffer = held([4], prioritized=False)
    assert list(buffer.sample(3)) == ["obs", "act", "next_obs", "rew", "goal"]
    for call in (lambda: buffer.update_priorities([], []), buffer.get_max_priority):
        with pytest.raises(ValueError, match="Buffer is constructed without PER"):
            call()


def test_sizes():
    buffer = make(1e3, additional_goals=3)
    assert (buffer.get_buffer_size(), buffer.get_stored_size()) == (1000, 0)
    buffer.add(obs=(0, 0), act=0, next_obs=(0, 1))
    assert buffer.get_stored_size() == 0
    assert buffer.get_all_transitions()["goal"].shape == (0, 2)
    with pytest.raises(NothingToSampleError, match="no episode was ended"):
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


def test_steps_that_cannot_be():
    raises_on_add(KeyError, "add was given obs, but act, next_obs is missing", obs=(1, 2))
    raises_on_add(ValueError, "missing", obs=(1, 2))
    raises_on_add(ShapeError, r"obs has shape \(3,\), but \(2,\)", obs=(1, 2, 3), act=0, next_obs=(1, 2))
    raises_on_add(ShapeError, "act has 2 steps, but another field has 3", obs=np.ones((3, 2)), act=[1, 2], next_obs=(1, 2))
    raises_on_add(InputError, "cannot be read", obs=((1, 2), (1,)), act=0, next_obs=(1, 2))
    raises_on_add(CastError, "not a number", obs=("a", "b"), act=0, next_obs=(1, 2))
    raises_on_add(EpisodeTooLongError, "Exceed Max Episode Length", obs=np.ones((6, 2)), act=0, next_obs=np.ones((6, 2)))
    buffer = make(env_dict=ENV | {"act": {"dtype": np.uint8}})
    for bad in (300, 1.5, -1, np.nan):
        with pytest.raises(CastError, match="which is lost as uint8"):
            buffer.add(obs=(1, 2), act=bad, next_obs=(1, 2))


@pytest.mark.parametrize(
    ("options", "goal", "error", "words"),
    [
        ({}, (1, 2, 3), ShapeError, r"goal has shape \(3,\), but \(2,\), or one per step"),
        ({"reward_func": lambda s, a, g: s[:, 0]}, (1, np.nan), ValueError, "desired_goal holds nan"),
        ({"goal_func": lambda s: s[:, :1]}, (1, 2), ShapeError, r"goals have shape \(3, 1\) for 3 states, .* goal_shape"),
        ({"reward_func": lambda s, a, g: 1.0}, (1, 2), GoalEnvError, r"reward_func returned shape \(\) of float64"),
        ({"reward_func": lambda s, a, g: np.full(3, np.nan)}, (1, 2), GoalEnvError, "reward_func returned NaN"),
        ({"reward_func": lambda s, a, g: np.where(g[:, 0] == 1, 0, np.inf)}, (1, 2), GoalEnvError, "NaN or infinity"),
        (
            {"default_dtype": np.uint8, "reward_func": lambda s, a, g: -np.ones(3)},
            (0, 9),
            CastError,
            r"reward_func holds -1\.0, which is lost as uint8",
        ),
        ({"size": 14}, (1, 2), EpisodeTooLongError, "3 steps with 4 extra goals each take 15 places, but size is 14"),
    ],
)
def test_an_end_that_is_refused_changes_nothing(options, goal, error, words):
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
        ({"size": 10.5}, OptionError, r"size is 10\.5, but a whole number of at least 5"),
        ({"size": 4}, OptionError, "size is 4"),
        ({"size": np.inf}, OptionError, "size is inf"),
        ({"max_episode_len": 0}, OptionError, "max_episode_len is 0"),
        ({"additional_goals": -1}, OptionError, "additional_goals is -1"),
        ({"alpha": 2.0}, OptionError, r"alpha is 2\.0"),
        ({"eps": 0.0}, OptionError, r"eps is 0\.0"),
        ({"Nstep": {"size": 3}}, OptionError, "Nstep is .* kept with the reward of one step"),
        ({"next_of": "obs"}, OptionError, "next_of is 'obs'"),
        ({"mmap_prefix": "x"}, OptionError, "mmap_prefix is 'x'"),
        ({"env_dict": {"obs": {}, "act": {}}}, KeyError, "env_dict has obs, act, but next_obs is missing"),
        ({"env_dict": ENV | {"rew": {}}}, OptionError, "'rew' of env_dict has the name of something that the buffer makes"),
        ({"env_dict": ENV | {"x": {"dtype": object}}}, OptionError, "'x' of env_dict is of object"),
        ({"default_dtype": "U5"}, OptionError, "default_dtype is <U5"),
        ({"env_dict": ENV | {"x": {"shape": (2, 0)}}}, OptionError, "shape of x is 0"),
        ({"env_dict": {**ENV, "obs": {"dtype": "U5"}}}, OptionError, "goals would be of <U5"),
    ],
)
def test_options_that_cannot_be(options, error, words):
    with pytest.raises(error, match=words):
        make(**options)


def test_beta():
    with pytest.raises(OptionError, match=r"beta is -0\.1"):
        held([3]).sample(4, beta=-0.1)
    assert held([3]).sample(4, 1.0000001)["weights"].tolist() == [1.0] * 4


def played(**options):
    buffer = held([3, 5, 2, 6, 4], size=60, **options)
    buffer.add(obs=(9, 0), act=0, next_obs=(9, 1))
    if options.get("prioritized", True):
        buffer.update_priorities(buffer.sample(9)["indexes"], np.arange(9.0))
    return buffer


@pytest.mark.parametrize("options", [{}, {"prioritized": False}, {"strategy": "random", "additional_goals": 2}])
def test_a_saved_buffer_goes_on_to_the_same_bytes(options, tmp_path):
    first, second, third = played(**options), make(60, seed=9, **options), make(60, seed=8, **options)
    play(second, 77, 6)
    first.save_transitions(tmp_path / "buffer.npz")
    second.load_transitions(str(tmp_path / "buffer.npz"))
    file = io.BytesIO()
    first.save_transitions(file)
    file.seek(0)
    third.load_transitions(file)
    assert [path.name for path in tmp_path.iterdir()] == ["buffer.npz"]
    for _ in range(3):
        results = []
        for buffer in (first, second, third):
            play(buffer, 9, 3)
            results.append(buffer.sample(8) | {f"all {n}": a for n, a in buffer.get_all_transitions(True).items()})
            if options.get("prioritized", True):
                buffer.update_priorities(results[-1]["indexes"], np.arange(8.0))
        for other in results[1:]:
            assert all((other[name] == array).all() for name, array in results[0].items())


def test_a_loaded_least_takes_the_place_of_the_one_before(tmp_path):
    high, low = held([3], alpha=1.0), held([3], alpha=1.0)
    high.sample(15)
    high.update_priorities([0, 1, 2, 3, 4], np.full(5, 7.0))
    low.update_priorities([0], [0.0])
    high.save_transitions(tmp_path / "buffer")
    low.load_transitions(tmp_path / "buffer")
    assert_weights_are_against_the_least(low)


def test_a_file_that_does_not_fit_is_refused(tmp_path):
    path, buffer = tmp_path / "buffer.npz", played()
    buffer.save_transitions(path)
    before = buffer.get_all_transitions()
    for options, words in [
        ({"additional_goals": 3}, "additional_goals 3 against 4"),
        ({"prioritized": False}, "prioritized False against True"),
        ({"env_dict": ENV | {"more": {}}}, "fields .* against"),
    ]:
        with pytest.raises(FileError, match=words):
            make(60, **options).load_transitions(path)
    content = path.read_bytes()
    place = len(content) // 2
    damaged = {
        "cut": content[:place],
        "changed": content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :],
        "nothing": b"",
        "foreign": b"PK no zip at all",
    }
    for name, bad in damaged.items():
        (tmp_path / name).write_bytes(bad)
        with pytest.raises(FileError):
            buffer.load_transitions(tmp_path / name)
    with pytest.raises(FileError, match="No such file"):
        buffer.load_transitions(tmp_path / "nowhere")
    after = buffer.get_all_transitions()
    assert all((before[name] == after[name]).all() for name in before)


def test_reading_runs_no_code(tmp_path):
    class Spy:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "ran",))

    from pathlib import Path

    np.savez(tmp_path / "evil.npz", about=np.array([Spy()], object))
    with pytest.raises(FileError, match="no saved cpprb buffer"):
        make().load_transitions(tmp_path / "evil.npz")
    assert not (tmp_path / "ran").exists()
