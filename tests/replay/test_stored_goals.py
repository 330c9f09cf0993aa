"""Goals that are drawn when an episode ends: against a list of the goals of each step, and by their distributions."""

from collections import Counter

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import (
    ACTION_SPACE,
    OBSERVATION_SPACE,
    buffer_of,
    compute_reward,
    live_episodes,
    make_buffer,
    make_episode,
    place,
    play,
    step,
)

from distributions import assert_distribution
from hindsight_rl import Episode, HindsightBuffer, Relabel
from hindsight_rl.errors import FileError, OptionError
from hindsight_rl.options.replay import STRATEGIES
from hindsight_rl.records import BATCH_FIELDS


def stored_buffer(capacity=100, **options):
    return make_buffer(capacity, relabel_at="episode_end", **options)


def windy_reward(achieved_goal, goal, info):
    """The wind of the step minus the distance: the value identifies the goals and the row."""
    return info["wind"] - np.abs(achieved_goal - goal)[:, 0]


def near(achieved_goal, goal, info):
    return np.abs(achieved_goal - goal)[:, 0] <= info["reach"]


def windy_episode(number, steps):
    info = {"wind": number / 4 + np.arange(steps) / 16, "reach": np.arange(steps) % 2.0}
    return make_episode(number, steps, terminated=number % 2 == 0, info=info)


RULES = {
    "keep": {"relabel_terminated": "keep"},
    "never": {"relabel_terminated": "never"},
    "given": {"compute_terminated": near},
    "success": {"relabel_terminated": "success", "success_reward": 0.25},
    "compute_success": {"relabel_terminated": "success", "compute_success": near},
}
MIXTURE = Relabel(future=0.4, final=0.1, desired=0.2, random=0.1)
WAYS = [*STRATEGIES, MIXTURE, Relabel(final=0.5), Relabel(desired=0.7), Relabel()]


def possible_goals(strategy, number, t, steps, held):
    """By hand: every goal that step t of an episode may get. held: {number: steps} when it ended, itself included."""
    anywhere = {place(other, later) for other, length in held.items() for later in range(1, length + 1)}
    future = {place(number, later) for later in range(t + 1, steps + 1)}
    desired = {-float(other) for other in held}
    if isinstance(strategy, Relabel):
        final = {place(number, steps)}
        parts = {"future": future, "final": final, "random": anywhere, "desired": desired}
        return set().union(*(goals for name, goals in parts.items() if getattr(strategy, name)))
    episode = {place(number, any_) for any_ in range(1, steps + 1)}
    return {"future": future, "final": {place(number, steps)}, "episode": episode, "random": anywhere}[strategy]


def recomputed(rule, number, t, steps, goal):
    """By hand: reward and termination of a step under a goal, as RULES define them."""
    distance, stored = abs(place(number, t + 1) - goal), t == steps - 1 and number % 2 == 0
    reward = number / 4 + t / 16 - distance
    is_near = distance <= t % 2
    return reward, {
        "keep": stored,
        "never": False,
        "given": stored or is_near,  # the own goal explains no end: it is far away
        "success": stored or reward >= 0.25,
        "compute_success": stored or is_near,
    }[rule]


def stored_of(buffer):
    """The stored goals of all rows, (rows, k)."""
    rows = buffer.timeline.rows
    return rows["stored_goals"][..., 0].astype(float) if buffer.timeline.n_stored_goals else np.zeros((len(rows), 0))


def goals_of(buffer, first, steps):
    """The stored goals of an episode: a list for each step."""
    return stored_of(buffer)[first : first + steps].tolist()


@settings(max_examples=75)
@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=8),
    capacity=st.integers(5, 14),
    k=st.integers(0, 3),
    strategy=st.sampled_from(WAYS),
    rule=st.sampled_from(sorted(RULES)),
    prioritized=st.booleans(),
    shape=st.sampled_from([(12,), (3, 4)]),
    seed=st.integers(0, 99),
)
def test_every_step_keeps_its_goals_until_it_leaves(lengths, capacity, k, strategy, rule, prioritized, shape, seed):
    n_sampled_goal = None if isinstance(strategy, Relabel) else k
    options = {"n_sampled_goal": n_sampled_goal, "strategy": strategy, "prioritized": prioritized, "seed": seed}
    options |= {"info_keys": ("wind", "reach"), "dtype": "float64", "relabel_at": "episode_end"}
    buffer = buffer_of(capacity, OBSERVATION_SPACE, ACTION_SPACE, windy_reward, **options, **RULES[rule])
    is_same = strategy == "final" or strategy == Relabel(final=0.5)
    n_goals = 0 if not buffer.her_probability else 1 if is_same else 4 if n_sampled_goal is None else k
    stored = {}
    for number, steps in enumerate(lengths, start=1):
        held = dict(live_episodes(buffer.timeline).values()) | {number: steps}
        buffer.add_episode(windy_episode(number, steps))
        live = live_episodes(buffer.timeline)
        [first] = [first for first, (other, _) in live.items() if other == number]
        stored[number] = goals_of(buffer, first, steps)
        for t, goals in enumerate(stored[number]):
            assert len(goals) == n_goals
            assert set(goals) <= possible_goals(strategy, number, t, steps, held)
        assert {other: stored[other] for other, _ in live.values()} == {
            other: goals_of(buffer, first, length) for first, (other, length) in live.items()
        }
        batch = buffer.sample(*shape) if len(shape) == 1 else buffer.sample_many(*shape)
        assert_samples(batch, shape, rule, stored, lengths)


def assert_samples(batch, shape, rule, stored, lengths):
    """Each sample is a step with its own goal, or with one of its stored goals and recomputed values."""
    for i in np.ndindex(shape):
        number, t = map(int, batch.observation[i])
        steps, goal = lengths[number - 1], float(batch.goal[i][0])
        if batch.is_relabelled[i]:
            assert goal in stored[number][t]
            expected = recomputed(rule, number, t, steps, goal)
        else:
            assert goal == -number
            expected = t / 8, t == steps - 1 and number % 2 == 0
        assert (float(batch.reward[i]), bool(batch.terminated[i])) == expected
        assert (batch.next_observation[i].tolist(), batch.action[i].tolist()) == ([number, t + 1], [t])


def even(goals):
    return {goal: 1 / len(goals) for goal in goals}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_distribution_of_the_goals(strategy):
    """Thousands of goals for one episode of 4 steps, after others of 2 and 3."""
    buffer = stored_buffer(strategy=strategy, n_sampled_goal=5000, seed=3)
    lengths = {1: 2, 2: 3, 3: 4}
    for number, steps in lengths.items():
        buffer.add_episode(make_episode(number, steps))
    for t, goals in enumerate(goals_of(buffer, 7, 4)):
        assert_distribution(Counter(goals), even(possible_goals(strategy, 3, t, 4, lengths)))


def test_distribution_of_a_mixture():
    """1/2 of the goals are of the future, 1/4 desired, 1/4 random. Two equally long episodes are stored."""
    buffer = stored_buffer(4000, strategy=Relabel(future=0.4, desired=0.2, random=0.2), seed=4)
    for number in (1, 5):
        buffer.add_episode(make_episode(number, 2000))
    goals = stored_of(buffer)[2001:4001].ravel()
    source = np.where(goals < 0, goals, np.where(goals < place(5, 0), 1, 5))
    assert_distribution(Counter(source.tolist()), {-1: 1 / 8, -5: 1 / 8, 1: 1 / 8, 5: 5 / 8})


def test_fractions_of_a_mixture():
    buffer = stored_buffer(2000, strategy=Relabel(future=0.4, desired=0.4), seed=4)
    buffer.add_episode(make_episode(1, 2000))
    goals = stored_of(buffer)[:2000]
    assert_distribution(Counter((goals < 0).ravel().tolist()), {True: 0.5, False: 0.5})
    is_relabelled = buffer.sample(5000).is_relabelled
    assert_distribution(Counter(is_relabelled.tolist()), {True: 0.8, False: 0.2})


def test_a_sample_is_any_row_with_its_own_goal_or_one_of_its_stored_goals():
    buffer = stored_buffer(strategy="random", n_sampled_goal=3, seed=5)
    for number, steps in enumerate([4, 7, 2], start=1):
        buffer.add_episode(make_episode(number, steps))
    batch = buffer.sample_many(200, 200)
    row, goal, is_relabelled = batch.row.ravel(), batch.goal.ravel(), batch.is_relabelled.ravel()
    assert buffer.her_probability == 0.75
    assert_distribution(Counter(row.tolist()), even(buffer.timeline.live_rows().tolist()))
    assert_distribution(Counter(is_relabelled.tolist()), {True: 0.75, False: 0.25})
    goals = stored_of(buffer)
    law = Counter()
    for each in buffer.timeline.live_rows().tolist():
        for goal_of_row in goals[each]:
            law[each, float(goal_of_row)] += 1 / 13 / 3
    counts = Counter(zip(row[is_relabelled].tolist(), goal[is_relabelled].tolist(), strict=True))
    assert_distribution(counts, dict(law))


def test_priorities_choose_the_rows_and_stored_goals_are_equally_likely():
    buffer = stored_buffer(prioritized=True, alpha=1.0, seed=6)
    buffer.add_episode(make_episode(1, 4))
    buffer.sample(8)
    buffer.update_priorities(np.arange(4), np.array([1.0, 2.0, 0.0, 5.0]))
    batch = buffer.sample_many(500, 8)
    assert_distribution(Counter(batch.row[batch.row != 2].tolist()), {0: 1 / 8, 1: 2 / 8, 3: 5 / 8})
    assert_distribution(Counter(batch.is_relabelled.ravel().tolist()), {True: 0.8, False: 0.2})
    assert batch.weight.shape == (500, 8)


def test_out_is_filled_as_fresh_memory_would_be():
    one, other = (stored_buffer(seed=7) for _ in range(2))
    for buffer in (one, other):
        buffer.add_episode(make_episode(1, 30))
    out = other.sample(16)
    one.sample(16)
    for _ in range(3):
        fresh = one.sample(16)
        assert other.sample(16, out) is out
        assert all((getattr(fresh, name) == getattr(out, name)).all() for name in BATCH_FIELDS)
        assert not any(np.shares_memory(getattr(fresh, name), one.timeline.rows) for name in BATCH_FIELDS)


def test_goals_of_any_kind_are_kept_as_they_are():
    pixels = spaces.Box(0, 255, (2, 2), np.uint8)
    space = spaces.Dict(observation=spaces.Discrete(300), achieved_goal=pixels, desired_goal=pixels)
    reward = lambda achieved, goal, info: -np.abs(achieved.astype(int) - goal).sum(axis=(1, 2))  # noqa: E731
    buffer = buffer_of(20, space, spaces.Discrete(2), reward, relabel_at="episode_end", strategy="final")
    seen = np.arange(24, dtype=np.uint8).reshape(6, 2, 2) * 10
    buffer.add_episode(Episode(np.arange(6), seen, np.full_like(seen, 255), np.zeros(5, int), np.zeros(5)))
    batch = buffer.sample(64)
    here = batch.is_relabelled
    assert batch.goal.dtype == np.uint8
    assert 0 < here.sum() < 64
    assert (batch.goal[here] == seen[5]).all()
    assert (batch.reward[here] == -40.0 * (5 - 1 - batch.row[here]) * 4).all()
    assert (batch.goal[~here] == 255).all()


def test_steps_and_whole_episodes_get_the_same_goals():
    one, other = (stored_buffer(seed=8) for _ in range(2))
    one.add_episode(make_episode(1, 5, terminated=True))
    play(other, 1, 5, terminated=True)
    assert stored_of(one).tobytes() == stored_of(other).tobytes()


def contents(buffer):
    return {name: array.copy() for name, array in buffer.state_dict()[0].items()}


def filled(**options):
    """A buffer whose ring has wrapped, with an open episode."""
    buffer = stored_buffer(20, episode_length=5, **options)
    for number in range(1, 8):
        buffer.add_episode(make_episode(number, 1 + number % 5))
    for t in range(3):
        buffer.add(*step(9, t))
    return buffer


@pytest.mark.parametrize(
    "options",
    [{}, {"strategy": "random", "n_sampled_goal": 2}, {"strategy": MIXTURE, "prioritized": True}, {"n_sampled_goal": 0}],
)
def test_a_saved_buffer_continues_with_the_same_bytes(options, tmp_path):
    first = filled(**options)
    first.save(tmp_path / "buffer")
    second = HindsightBuffer.load(tmp_path / "buffer", compute_reward)
    for _ in range(3):
        for buffer in (first, second):
            buffer.add(*step(9, 3 + len(buffer), truncated=True))
        one, other = first.sample(40), second.sample(40)
        assert all((getattr(one, name) == getattr(other, name)).all() for name in BATCH_FIELDS)
    states = [buffer.state_dict()[0] for buffer in (first, second)]
    assert all((states[0][name] == states[1][name]).all() for name in states[0])


def test_invalid_goals_are_refused_when_loading():
    arrays, data = filled().state_dict()
    buffer = filled()
    before = contents(buffer)
    with pytest.raises(FileError, match="The stored rows must be at most"):
        buffer.load_state_dict(*filled(n_sampled_goal=3).state_dict())
    assert all((array == before[name]).all() for name, array in contents(buffer).items())
    with pytest.raises(FileError, match="relabel_at 'episode_end' instead of 'sample'"):
        make_buffer(20, episode_length=5).load_state_dict(arrays, data)


def test_stored_goals_count_as_memory():
    plain, stored = (buffer.timeline for buffer in (make_buffer(1000), stored_buffer(1000, n_sampled_goal=3)))
    assert stored.nbytes - plain.nbytes == len(stored.rows) * 3 * 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"relabel_at": "end"}, "`relabel_at` must be 'sample' or 'episode_end', got 'end'"),
        ({"relabel_at": "episode_end", "strategy": lambda *_: 0}, "A function as `strategy` needs relabel_at='sample'"),
        ({"relabel_at": "episode_end", "strategy": Relabel(), "n_sampled_goal": 4}, "Give one of them"),
        ({"relabel_at": "episode_end", "n_sampled_goal": 10**9}, "Lower n_sampled_goal"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        make_buffer(**options)
