"""Samples under a random symmetry, by hand. Rewards and the timeline do not change."""

import numpy as np
import pytest
import slow_kernels
from gymnasium import spaces
from tiny import buffer_of

from hindsight_rl import Episode, GoalSpec, HindsightBuffer, PointReach
from hindsight_rl.errors import OptionError
from hindsight_rl.task_structure import samples
from hindsight_rl.task_structure.symmetries import SymmetryGroup

QUARTER = "o0=-o1 o1=o0 o2=-o3 o3=o2 g0=-g1 g1=g0 a0=-a1 a1=a0"
MIRROR = "o0=-o0 o2=-o2 g0=-g0 a0=-a0"
ENV = PointReach(max_steps=20)


def make_buffer(symmetries, seed=0, **options):
    spaces_ = (ENV.observation_space, ENV.action_space, ENV.compute_reward)
    buffer = buffer_of(1000, *spaces_, episode_length=20, seed=seed, symmetries=symmetries, **options)
    generator = np.random.default_rng(1)
    for _ in range(10):
        rows = generator.uniform(-0.2, 0.2, (21, 4)).astype(np.float32)
        goals = np.tile(generator.uniform(-0.2, 0.2, 2).astype(np.float32), (21, 1))
        reward = ENV.compute_reward(rows[1:, :2], goals[1:], {})
        buffer.add_episode(Episode(rows, rows[:, :2], goals, rows[1:, 2:] * 5, reward))
    return buffer


def of_row(buffer, row):
    return buffer.timeline.rows["observation"][row]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_compiled_symmetry_equals_the_slow_one(dtype):
    generator = np.random.default_rng(0)
    spec = GoalSpec.from_spaces(ENV.observation_space, ENV.action_space)
    maps = SymmetryGroup(("o0=0.3-o1 o1=o0",), spec).maps["observation"]
    values, element = generator.standard_normal((50, 4)).astype(dtype), generator.integers(len(maps.source), size=50)
    transformed = [values.copy(), values.copy()]
    slow_kernels.apply_symmetry(transformed[0], element, maps.source, maps.factor, maps.offset)
    samples.apply_symmetry(transformed[1], element, maps.source, maps.factor, maps.offset)
    assert transformed[0].tobytes() == transformed[1].tobytes()
    assert transformed[0].tobytes() != values.tobytes()


@pytest.mark.parametrize(
    "options", [{}, {"strategy": "episode"}, {"n_steps": 3}, {"energy_priority": True}, {"prioritized": True}]
)
def test_a_transformed_batch_by_hand(options):
    buffer = make_buffer((QUARTER, MIRROR), **options)
    plain = make_buffer((), **options)
    batch, was = buffer.sample(400), plain.sample(400)  # the same samples: the group element is drawn last
    assert (batch.row == was.row).all()
    assert batch.reward.tobytes() == was.reward.tobytes()
    if "n_steps" not in options:
        assert (ENV.compute_reward(batch.next_achieved_goal, batch.goal, {}) == batch.reward).all()
    augmented = set()
    for i in range(400):
        a, b = was.observation[i, :2], batch.observation[i, :2]
        by_hand = [(s * a[j], t * a[1 - j]) for s in (1, -1) for t in (1, -1) for j in (0, 1)]
        element = [k for k, each in enumerate(by_hand) if np.array_equal(each, b)]
        assert len(element) == 1
        s, t, j = [(s, t, j) for s in (1, -1) for t in (1, -1) for j in (0, 1)][element[0]]
        for name in ("goal", "achieved_goal", "next_achieved_goal", "action"):
            old, new = getattr(was, name)[i], getattr(batch, name)[i]
            assert new.tolist() == [s * old[j], t * old[1 - j]]
        for part in (slice(0, 2), slice(2, 4)):
            old, new = was.next_observation[i, part], batch.next_observation[i, part]
            assert new.tolist() == [s * old[j], t * old[1 - j]]
        augmented.add((s, t, j))
    assert len(augmented) == 8


def test_every_group_element_is_equally_likely():
    from scipy import stats

    buffer = make_buffer((QUARTER,), n_sampled_goal=0)
    batch = buffer.sample(8000)
    was = of_row(buffer, batch.row)
    transformed = [buffer.symmetries.transformed("observation", was, e) for e in range(4)]
    counts = [(batch.observation == each).all(1).sum() for each in transformed]
    assert sum(counts) == 8000
    assert stats.chisquare(counts).pvalue > 1e-6


def test_several_batches_and_reused_memory_are_transformed():
    buffer, plain = make_buffer((MIRROR,)), make_buffer(())
    batches = buffer.sample_many(3, 16)
    again = buffer.sample_many(3, 16, out=batches)
    assert again is batches
    plain.sample_many(3, 16)
    assert np.abs(batches.observation).tobytes() != np.abs(plain.sample_many(3, 16).observation).tobytes()  # a later draw
    before = of_row(buffer, batches.row)
    is_transformed = batches.observation[..., 0] != before[..., 0]
    assert 0 < is_transformed.sum() < 48
    assert (np.abs(batches.observation) == np.abs(before)).all()


def test_the_timeline_does_not_change_and_a_saved_buffer_continues(tmp_path):
    buffer = make_buffer((QUARTER,))
    before = buffer.timeline.rows.tobytes()
    buffer.sample(100)
    assert buffer.timeline.rows.tobytes() == before
    buffer.save(tmp_path / "b")
    loaded = HindsightBuffer.load(tmp_path / "b", ENV.compute_reward)
    assert loaded.sample(50).observation.tobytes() == buffer.sample(50).observation.tobytes()


def test_discrete_actions_exchange_their_choices():
    """Choices 3, 4, 5 and 6 go to the right, up, to the left and down."""
    action = spaces.Discrete(4, start=3)
    turn = "o0=-o1 o1=o0 o2=-o3 o3=o2 g0=-g1 g1=g0 a0=a3 a1=a0 a2=a1 a3=a2"
    buffer, plain = (
        buffer_of(100, ENV.observation_space, action, ENV.compute_reward, n_sampled_goal=0, symmetries=symmetries)
        for symmetries in ((turn,), ())
    )
    vectors = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], np.float32)
    choices = np.random.default_rng(0).integers(0, 4, 20)
    rows = np.concatenate([np.zeros((1, 4), np.float32), np.tile(vectors[choices], 2)])
    goals = np.zeros((21, 2), np.float32)
    for each in (buffer, plain):
        each.add_episode(Episode(rows, rows[:, :2], goals, choices + 3, ENV.compute_reward(rows[1:, :2], goals[1:], {})))
    batch, was = buffer.sample(200), plain.sample(200)
    assert (batch.next_observation[:, :2] == vectors[batch.action - 3]).all()
    assert 0 < (batch.action != was.action).sum() < 200
    augmented = list(buffer.symmetries.augmented(Episode(rows, rows[:, :2], goals, choices + 3, np.zeros(20, np.float32))))
    assert all((each.observation[1:, :2] == vectors[each.action - 3]).all() for each in augmented)
    assert len({each.action.tobytes() for each in augmented}) == 4


@pytest.mark.parametrize("entry", ["a0=-a0", "a1=1-a1", "a0=2*a1 a1=0.5*a0"])
def test_choices_have_no_signs(entry):
    with pytest.raises(OptionError, match=r"changes a Discrete action as a number. Exchange choices, as in a0=a1 a1=a0"):
        buffer_of(100, ENV.observation_space, spaces.Discrete(4), ENV.compute_reward, symmetries=(entry,))


def test_actions_of_several_whole_numbers_have_no_symmetries():
    action = spaces.MultiDiscrete([3, 3])
    with pytest.raises(OptionError, match=r"got shape \(2,\) .* for the action"):
        buffer_of(100, ENV.observation_space, action, ENV.compute_reward, symmetries=("o0=-o0",))
