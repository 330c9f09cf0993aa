"""n-step returns against a loop over the steps of the episode."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import ACTION_SPACE, OBSERVATION_SPACE, buffer_of, make_episode, place

from hindsight_rl import HindsightBuffer, Relabel
from hindsight_rl.errors import GoalEnvError, InputError, OptionError
from hindsight_rl.options.replay import STRATEGIES
from hindsight_rl.records import BATCH_FIELDS, Batch
from hindsight_rl.replay.transforms import sum_steps


def windy_reward(achieved_goal, goal, info):
    """The wind of the step minus the distance: the value identifies the goals and the row."""
    return info["wind"] - np.abs(achieved_goal - goal)[:, 0]


def near(achieved_goal, goal, info):
    return np.abs(achieved_goal - goal)[:, 0] <= info["reach"]


def make_buffer(lengths, function=windy_reward, **options):
    keys = ("wind", "reach")
    buffer = buffer_of(200, OBSERVATION_SPACE, ACTION_SPACE, function, info_keys=keys, dtype="float64", **options)
    for number, steps in enumerate(lengths, start=1):
        info = {"wind": [wind(number, t) for t in range(steps)], "reach": [t % 2 for t in range(steps)]}
        info = {key: np.array(values, np.float64) for key, values in info.items()}
        buffer.add_episode(make_episode(number, steps, terminated=number % 2 == 0, info=info))
    return buffer


def wind(number, t):
    return number / 4 + t / 16


def walk(number, t, goal, is_relabelled, lengths, n_steps, discount, rule):
    """One sample, step by step: reward, the next t, terminated, discount."""
    total, weight = 0.0, 1.0
    while True:
        achieved, steps = place(number, t + 1), lengths[number - 1]
        stored = t == steps - 1 and number % 2 == 0
        if not is_relabelled:
            reward, terminated = t / 8, stored
        else:
            reward = wind(number, t) - abs(achieved - goal)
            terminated = {
                "keep": stored,
                "never": False,
                "given": stored or abs(achieved - goal) <= t % 2,  # the own goal explains no end: it is far away
                "success": stored or reward >= 0.25,
            }[rule]
        total += weight * reward
        weight *= discount
        t, n_steps = t + 1, n_steps - 1
        if terminated or t == steps or n_steps == 0:
            return total, t, terminated, 0.0 if terminated else weight


RULES = {
    "keep": {"relabel_terminated": "keep"},
    "never": {"relabel_terminated": "never"},
    "given": {"compute_terminated": near},
    "success": {"relabel_terminated": "success", "success_reward": 0.25},
}
MIXTURE = Relabel(future=0.4, final=0.1, desired=0.2, random=0.1)


@settings(deadline=None)  # the first sample compiles
@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    n_steps=st.integers(2, 5),
    discount=st.sampled_from([0.0, 0.5, 0.98, 1.0]),
    strategy=st.sampled_from([*STRATEGIES, MIXTURE, lambda rows, steps_done, steps_left, u: rows + 1]),
    relabel_at=st.sampled_from(["sample", "episode_end"]),
    rule=st.sampled_from(sorted(RULES)),
    shape=st.sampled_from([(12,), (3, 4)]),
    seed=st.integers(0, 99),
)
def test_an_n_step_return_is_a_loop_over_its_steps(lengths, n_steps, discount, strategy, relabel_at, rule, shape, seed):
    options = {"n_steps": n_steps, "discount": discount, "strategy": strategy, "seed": seed}
    if not callable(strategy):
        options["relabel_at"] = relabel_at
    buffer = make_buffer(lengths, **options, **RULES[rule])
    batch = buffer.sample(*shape) if len(shape) == 1 else buffer.sample_many(*shape)
    assert batch.discount.shape == shape
    for i in np.ndindex(shape):
        number, t = map(int, batch.observation[i])
        goal, is_relabelled = float(batch.goal[i][0]), bool(batch.is_relabelled[i])
        reward, later, terminated, factor = walk(number, t, goal, is_relabelled, lengths, n_steps, discount, rule)
        assert batch.reward[i] == pytest.approx(reward)
        assert batch.discount[i] == pytest.approx(factor)
        assert batch.terminated[i] == terminated
        assert batch.next_observation[i].tolist() == [number, later]
        assert batch.next_achieved_goal[i].tolist() == [place(number, later)]
        assert (batch.achieved_goal[i].tolist(), batch.action[i].tolist()) == ([place(number, t)], [t])


def test_four_samples_by_hand():
    """Three steps, discount 1/2. One continues, one is truncated, one terminates at once, one at its second step."""
    reward = np.array([[1.0, 1, 1, 1], [2, 2, 2, 2], [4, 2, 4, 4]])
    terminated = np.zeros((3, 4), np.bool_)
    terminated[0, 2] = terminated[1, 3] = terminated[2, 3] = True
    after = np.arange(12.0).reshape(3, 4, 1)
    plain = dict.fromkeys(BATCH_FIELDS, after)
    facts = {"reward": reward, "terminated": terminated, "next_observation": after, "next_achieved_goal": -after}
    batch = Batch(**{name: np.zeros_like((plain | facts)[name][0]) for name in BATCH_FIELDS}, discount=np.zeros(4))
    sum_steps(Batch(**(plain | facts)), np.array([5, 2, 4, 3]), 0.5, batch)
    assert batch.reward.tolist() == [1 + 1 + 1, 1 + 1, 1, 1 + 1]
    assert batch.discount.tolist() == [0.125, 0.25, 0.0, 0.0]
    assert batch.terminated.tolist() == [False, False, True, True]
    assert batch.next_observation.ravel().tolist() == [8, 5, 2, 7]
    assert batch.next_achieved_goal.ravel().tolist() == [-8, -5, -2, -7]


def test_one_step_leaves_the_discount_to_the_agent():
    assert make_buffer([3, 4]).sample(8).discount is None


@pytest.mark.parametrize("shape", [(16,), (4, 4)])
def test_out_is_filled_as_fresh_memory_would_be(shape):
    one, other = (make_buffer([4, 2, 5], n_steps=3) for _ in range(2))
    names = (*BATCH_FIELDS, "discount")
    first, second = one._sampler.sample(shape), other._sampler.sample(shape)
    for out in (second, second, first):
        fresh = one._sampler.sample(shape)
        assert other._sampler.sample(shape, out) is out
        assert all((getattr(fresh, name) == getattr(out, name)).all() for name in names)


def test_out_must_have_a_discount_with_n_steps_alone():
    one, many = make_buffer([4, 2]), make_buffer([4, 2], n_steps=2)
    for buffer, other in ((one, many), (many, one)):
        with pytest.raises(InputError, match="out must be a batch that the same call returned before"):
            buffer.sample(8, out=other.sample(8))


def test_sampling_does_not_change_the_timeline():
    buffer = make_buffer([4, 2, 5], n_steps=3)
    before = buffer.timeline.rows.tobytes()
    batch = buffer.sample(32)
    for name in (*BATCH_FIELDS, "discount"):
        getattr(batch, name)[...] = 1
    assert buffer.timeline.rows.tobytes() == before


def test_a_reward_that_fails_at_a_later_step_is_refused():
    def function(achieved_goal, goal, info):
        return np.where(achieved_goal[:, 0] == place(1, 3), np.nan, 0.0)

    buffer = make_buffer([3], function, n_steps=3)
    with pytest.raises(GoalEnvError, match="NaN"):
        buffer.sample(32)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_steps": 0}, "`n_steps` must be at least 1, got 0"),
        ({"n_steps": 2.0}, "`n_steps` must be a valid integer, got 2.0"),
        ({"discount": 1.5}, "discount must be a number between 0 and 1, got 1.5"),
        ({"discount": float("nan")}, "discount must be a number between 0 and 1, got nan"),
    ],
)
def test_invalid_n_steps_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        make_buffer([], **options)


def test_steps_are_saved_with_the_buffer(tmp_path):
    first = make_buffer([4, 2, 5], n_steps=3, discount=0.5)
    first.save(tmp_path / "buffer")
    second = HindsightBuffer.load(tmp_path / "buffer", windy_reward)
    one, other = first.sample(16), second.sample(16)
    assert (one.reward == other.reward).all()
    assert (one.discount == other.discount).all()
    assert set(one.discount.tolist()) <= {0.0, 0.5, 0.25, 0.125}
