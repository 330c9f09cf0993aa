"""Distribution of the samples: rows, goals, relabelling, rewards. Fixed seeds, chi-square tests at one in a million."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from tiny import SPEC, compute_reward, live_episodes, make_episode, place

from distributions import assert_distribution
from hindsight_rl import Relabel, Timeline
from hindsight_rl.errors import GoalEnvError, InputError, NothingToSampleError, UnknownNameError
from hindsight_rl.options.replay import STRATEGIES
from hindsight_rl.records import BATCH_FIELDS
from hindsight_rl.replay.rows import MOST_FRESH
from hindsight_rl.replay.sampler import GoalSampler, RandomNumbers, RowSampler, Sampler
from hindsight_rl.replay.strategies import AS_STORED, Termination, future_rows
from hindsight_rl.replay.transforms import RewardTransform


def make_sampler(lengths, capacity=200, strategy="future", k=4, seed=0, reward=compute_reward, termination=AS_STORED):
    timeline = Timeline(SPEC, capacity, episode_length=3)
    for number, steps in enumerate(lengths, start=1):
        timeline.append(make_episode(number, steps, terminated=number % 2 == 0))
    return sampler_of(timeline, strategy, k, seed, RewardTransform(reward, termination, timeline.rows["desired_goal"]))


def sampler_of(timeline, strategy, k, seed, *transforms):
    rows = RowSampler(timeline, RandomNumbers(seed))
    return Sampler(rows, GoalSampler(rows, strategy, k), transforms)


def arrays_of(batch):
    return [getattr(batch, name) for name in BATCH_FIELDS]


def expected_goals(strategy, timeline):
    """By hand: for each live transition (number, t) its possible relabelled goals, all equally likely."""
    episodes = list(live_episodes(timeline).values())
    anywhere = [place(number, t) for number, steps in episodes for t in range(1, steps + 1)]
    goals = {}
    for number, steps in episodes:
        for t in range(steps):
            goals[number, t] = {
                "future": [place(number, later) for later in range(t + 1, steps + 1)],
                "final": [place(number, steps)],
                "episode": [place(number, any_) for any_ in range(1, steps + 1)],
                "random": anywhere,
            }[strategy]
    return goals


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("capacity", range(3, 13))
def test_distributions_at_every_cursor_position_of_a_tiny_ring(strategy, capacity):
    lengths = np.random.default_rng(capacity).integers(1, min(capacity, 5) + 1, 12)
    sampler, cursors = make_sampler([], capacity, strategy, seed=capacity), set()
    for number, steps in enumerate(lengths, start=1):
        sampler.timeline.append(make_episode(number, int(steps)))
        cursors.add(sampler.timeline.cursor)
        batch, goals = sampler.sample((3000,)), expected_goals(strategy, sampler.timeline)
        transitions = list(map(tuple, batch.observation.astype(int).tolist()))
        assert_distribution(Counter(transitions), dict.fromkeys(goals, 1 / len(goals)))
        here = [(*transitions[i], float(batch.goal[i, 0])) for i in np.flatnonzero(batch.is_relabelled)]
        law = {(*key, goal): 1 / len(goals) / len(options) for key, options in goals.items() for goal in options}
        assert_distribution(Counter(here), law)
    assert len(cursors) > 2


def test_every_array_of_a_batch_belongs_to_its_row():
    sampler = make_sampler([4, 2, 7, 3], k=1)
    batch, rows = sampler.sample((500,)), sampler.timeline.rows
    for name in ("observation", "achieved_goal", "action", "terminated"):
        assert (getattr(batch, name) == rows[name][batch.row]).all()
    for name in ("observation", "achieved_goal"):
        assert (getattr(batch, f"next_{name}") == rows[name][batch.row + 1]).all()
    real = ~batch.is_relabelled
    assert (batch.goal[real] == rows["desired_goal"][batch.row[real]]).all()
    assert (batch.reward[real] == rows["reward"][batch.row[real]]).all()
    recomputed = compute_reward(batch.next_achieved_goal, batch.goal, {})
    assert (batch.reward == recomputed)[batch.is_relabelled].all()
    assert 0 < real.sum() < 500


@pytest.mark.parametrize(("k", "fraction"), [(0, 0.0), (1, 0.5), (4, 0.8), (9, 0.9)])
def test_each_sample_is_relabelled_independently(k, fraction):
    sampler = make_sampler([5] * 10, k=k)
    assert sampler.goals.probability == fraction
    here = sampler.sample((400, 50)).is_relabelled
    assert_distribution(Counter(here.ravel().tolist()), {True: fraction, False: 1 - fraction} if k else {False: 1.0})
    if k:  # independent within a batch: the number per batch has the variance of a binomial
        assert 0.7 < here.sum(axis=1).var() / (50 * fraction * (1 - fraction)) < 1.3


def test_sampling_neither_changes_nor_aliases_the_timeline():
    sampler = make_sampler([4, 2, 7, 3])
    before = sampler.timeline.rows.tobytes()
    for batch in (sampler.sample((64,)), sampler.sample((4, 16))):
        for name in BATCH_FIELDS:
            array = getattr(batch, name)
            assert not np.shares_memory(array, sampler.timeline.rows)
            array[...] = 1
    assert sampler.timeline.rows.tobytes() == before


def test_many_batches_are_one_draw():
    one, many = make_sampler([4, 2, 7, 3]), make_sampler([4, 2, 7, 3])
    flat, batches = one.sample((32,)), many.sample((4, 8))
    assert batches.observation.shape == (4, 8, 2)
    for name in BATCH_FIELDS:
        array = getattr(batches, name)
        assert (array.reshape(32, *array.shape[2:]) == getattr(flat, name)).all()
    assert (batches[2].reward == flat.reward[16:24]).all()


@pytest.mark.parametrize("shape", [(64,), (4, 16)])
@pytest.mark.parametrize("strategy", ["future", "random"])
def test_out_is_filled_as_fresh_memory_would_be(shape, strategy):
    one, other = make_sampler([4, 2, 7, 3], strategy=strategy), make_sampler([4, 2, 7, 3], strategy=strategy)
    first, second = other.sample(shape), one.sample(shape)
    for out in (first, second, second):
        fresh = one.sample(shape)
        assert other.sample(shape, out) is out
        assert all((a == b).all() for a, b in zip(arrays_of(fresh), arrays_of(out), strict=True))


def test_fresh_batches_have_memory_of_their_own():
    sampler = make_sampler([4, 2, 7, 3])
    batches = [sampler.sample((8,)) for _ in range(2 * MOST_FRESH + 2)]
    for number, batch in enumerate(batches):
        for array in arrays_of(batch):
            array[...] = number
    assert all(
        (array == np.array(n).astype(array.dtype)).all() for n, batch in enumerate(batches) for array in arrays_of(batch)
    )


def test_an_out_that_no_sample_returned_is_refused():
    sampler = make_sampler([4, 2])
    good = sampler.sample((8,))
    for out in (3, replace(good, reward=good.reward.copy()), replace(good, reward=[0.0] * 8), sampler.sample((4,))):
        with pytest.raises(InputError, match="out must be a batch that the same call returned before"):
            sampler.sample((8,), out)
    good.reward.flags.writeable = False
    with pytest.raises(InputError, match="out must be a batch"):
        sampler.sample((8,), good)


def test_nothing_to_sample_yet():
    sampler = make_sampler([])
    with pytest.raises(NothingToSampleError, match="0 episodes have ended"):
        sampler.sample((4,))


def test_a_batch_beyond_all_memory_is_refused():
    sampler = make_sampler([3])
    with pytest.raises(InputError, match=r"shape \(1000000000,\) takes .* GB"):
        sampler.sample((10**9,))
    assert len(sampler.sample((2,))) == 2


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_few_live_rows_are_drawn_from_the_exact_list(strategy):
    sampler = make_sampler([500, 3], capacity=500, strategy=strategy)  # the second episode evicts the first
    assert (len(sampler.timeline), sampler.timeline.high_water) == (3, 505)
    goals = expected_goals(strategy, sampler.timeline)
    batch = sampler.sample((3000,))
    assert_distribution(Counter(map(tuple, batch.observation.astype(int).tolist())), dict.fromkeys(goals, 1 / 3))


def test_too_few_proposals_fall_back_to_the_exact_list(monkeypatch):
    sampler = make_sampler([1] * 50)
    monkeypatch.setattr(sampler.rows, "count_proposals", lambda size: size // 2)
    batch = sampler.sample((3000,))
    assert_distribution(Counter(batch.row.tolist()), dict.fromkeys(range(0, 100, 2), 1 / 50))


def test_a_custom_strategy():
    arguments = []

    def near(rows, steps_done, steps_left, u):
        arguments.append((rows, steps_done, steps_left, u))
        return rows + 1

    sampler = make_sampler([4, 2, 7], strategy=near)
    batch = sampler.sample((100,))
    rows, steps_done, steps_left, u = arguments[0]
    assert (batch.goal == batch.next_achieved_goal)[batch.is_relabelled].all()
    assert (rows == batch.row[batch.is_relabelled]).all()
    assert (steps_done == sampler.timeline.steps_done[rows]).all()
    assert (steps_left == sampler.timeline.steps_left[rows]).all()
    assert 0 <= u.min() <= u.max() < 1


def test_a_custom_future_strategy_has_the_distribution_of_the_built_in_one():
    def future(rows, steps_done, steps_left, u):
        return future_rows(rows, steps_left, u)

    sampler = make_sampler([4, 2, 7], strategy=future)
    batch, goals = sampler.sample((5000,)), expected_goals("future", sampler.timeline)
    here = np.flatnonzero(batch.is_relabelled)
    seen = Counter((*map(int, batch.observation[i]), float(batch.goal[i, 0])) for i in here)
    assert_distribution(seen, {(*key, goal): 1 / 13 / len(options) for key, options in goals.items() for goal in options})


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda rows: rows + 0.5, "The strategy must return integers of shape .* of float64"),
        (lambda rows: rows[:-1], "The strategy must return integers"),
        (lambda rows: rows - 1000, "The strategy returned row -"),
        (lambda rows: rows + 100, "which belongs to no stored episode"),
    ],
)
def test_a_custom_strategy_must_return_stored_rows(answer, message):
    sampler = make_sampler([4, 2, 7], strategy=lambda rows, steps_done, steps_left, u: answer(rows))
    with pytest.raises(InputError, match=message):
        sampler.sample((100,))


def mixture_law(relabel, timeline):
    """By hand: the probability of each (number, t, goal). No goal is both achieved and desired in these episodes."""
    law, goals_of = Counter(), {}
    for name in STRATEGIES:
        goals_of[name] = expected_goals(name, timeline)
    desired = [-float(number) for number, t in goals_of["future"]]
    goals_of["desired"] = dict.fromkeys(goals_of["future"], desired)
    for number, t in goals_of["future"]:
        law[number, t, -float(number)] += 1 - relabel.fraction
        for name, fraction in relabel.fractions().items():
            goals = goals_of[name][number, t]
            for goal in goals:
                law[number, t, goal] += fraction / len(goals)
    return {key: p / len(desired) for key, p in law.items() if p}


@pytest.mark.parametrize("lengths", [[4, 2, 3], [500, 3, 2]])
@pytest.mark.parametrize(
    "relabel",
    [
        Relabel(future=0.5, desired=0.3, random=0.1),
        Relabel(final=0.25, episode=0.75),
        Relabel(desired=0.4),
        Relabel(future=0.6),
    ],
)
def test_the_distribution_of_a_mixture(relabel, lengths):
    sampler = make_sampler(lengths, capacity=500, k=None, strategy=relabel)
    assert len(sampler.timeline) < 10  # the long episode of the second was evicted: few rows are live
    batch = sampler.sample((4000,))
    keys = np.column_stack([batch.observation, batch.goal]).tolist()
    assert_distribution(
        Counter((int(number), int(t), goal) for number, t, goal in keys), mixture_law(relabel, sampler.timeline)
    )
    assert sampler.goals.probability == pytest.approx(relabel.fraction)
    assert abs(batch.is_relabelled.mean() - relabel.fraction) < 0.04
    recomputed = compute_reward(batch.next_achieved_goal, batch.goal, {})
    assert (batch.reward == np.where(batch.is_relabelled, recomputed, batch.observation[:, 1] / 8)).all()


def test_a_mixture_of_one_strategy_gives_the_bytes_of_the_strategy():
    one, other = make_sampler([4, 2, 7], k=1), make_sampler([4, 2, 7], k=None, strategy=Relabel(future=0.5))
    assert all((a == b).all() for a, b in zip(*(arrays_of(s.sample((50,))) for s in (one, other)), strict=True))


def test_an_evicted_row_is_not_a_goal():
    sampler = make_sampler([6, 2, 1], capacity=6, strategy=lambda rows, *_: np.zeros_like(rows) + 6)
    assert live_episodes(sampler.timeline) == {0: (2, 2), 3: (3, 1)}  # row 6 was the last row of the first
    with pytest.raises(InputError, match="row 6, which belongs to no stored episode"):
        sampler.sample((100,))


def test_an_unknown_strategy():
    with pytest.raises(UnknownNameError, match="'final'"):
        make_sampler([3], strategy="finale")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a, g, i: -1.0, r"compute_reward must return numbers .* got shape \(\)"),
        (lambda a, g, i: np.zeros((len(a), 1)), r"got shape \(8, 1\)"),
        (lambda a, g, i: ["bad"] * len(a), "got shape .* of <U3"),
        (lambda a, g, i: np.full(len(a), np.nan), "compute_reward must return finite rewards"),
        (lambda a, g, i: np.full(len(a), 1e300), "compute_reward must return finite rewards"),
        (lambda a, g, i: np.subtract(a, g, out=a)[:, 0], "compute_reward must not write into its arguments"),
    ],
)
def test_an_unusable_reward_is_refused(function, message):
    with pytest.raises(GoalEnvError, match=message):
        make_sampler([4, 3], reward=function).sample((8,))


@pytest.mark.parametrize("convert", [list, lambda r: r.astype(np.float64), lambda r: r.astype(np.int64), lambda r: r > -2])
def test_rewards_may_be_any_numbers(convert):
    sampler = make_sampler([4, 3], reward=lambda a, g, i: convert(compute_reward(a, g, i)))
    batch = sampler.sample((100,))
    recomputed = np.asarray(convert(compute_reward(batch.next_achieved_goal, batch.goal, {})), np.float32)
    assert (batch.reward == recomputed)[batch.is_relabelled].all()


def test_the_reward_gets_contiguous_flat_arrays():
    shapes = []

    def function(achieved_goal, goal, info):
        assert achieved_goal.flags.c_contiguous
        assert goal.flags.c_contiguous
        shapes.append((achieved_goal.shape, goal.shape, info))
        return compute_reward(achieved_goal, goal, info)

    make_sampler([4, 3], reward=function).sample((3, 5))
    assert set(map(str, shapes)) == {"((15, 1), (15, 1), {})"}


def test_terminations_stay_as_stored_or_are_recomputed():
    kept = make_sampler([3, 3]).sample((200,))
    assert (kept.terminated == ((kept.observation[:, 0] == 2) & (kept.observation[:, 1] == 2))).all()

    def reached(achieved_goal, goal, info):
        return (achieved_goal == goal)[:, 0]

    batch = make_sampler([3, 3], termination=Termination(reached)).sample((200,))
    here = batch.is_relabelled
    assert (batch.terminated == (batch.next_achieved_goal == batch.goal)[:, 0])[here].all()
    assert (batch.terminated == ((batch.observation[:, 0] == 2) & (batch.observation[:, 1] == 2)))[~here].all()
    assert 0 < batch.terminated[here].sum() < here.sum()


@pytest.mark.parametrize("shape", [(50,), (5, 10)])
def test_the_reward_function_gets_the_info_keys(shape):
    timeline = Timeline(SPEC, 50, info_keys=("wind", "rain[2]"))
    for number, steps in ((1, 4), (2, 6)):
        t = np.arange(steps)
        rain = np.column_stack([t / 3 - 1, np.ones(steps)])
        timeline.append(make_episode(number, steps, info={"wind": 10.0 * number + t, "rain": rain}))

    def function(achieved_goal, goal, info):
        assert set(info) == {"wind", "rain"}
        return info["wind"] + info["rain"].sum(-1)

    sampler = sampler_of(timeline, "future", 4, 0, RewardTransform(function, AS_STORED, timeline.rows["desired_goal"]))
    out = sampler.sample(shape)
    for batch in (sampler.sample(shape), sampler.sample(shape, out)):
        number, t = batch.observation[..., 0].astype(np.float64), batch.observation[..., 1].astype(np.float64)
        expected = (10 * number + t + t / 3).astype(np.float32)
        assert (batch.reward == expected)[batch.is_relabelled].all()
