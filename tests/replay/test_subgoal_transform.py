"""Samples with the goals of subgoals, against a loop over the samples."""

import numpy as np
import pytest
from gymnasium import spaces
from tiny import buffer_of

from hindsight_rl import Episode, HindsightBuffer, Relabel
from hindsight_rl.errors import OptionError
from hindsight_rl.records.reward_scale import RewardScale

REACH = "reach achieved=0,1 goal=4,2 tolerance=0.5 switch_distance=1"
LIFT = "lift achieved=3,3 goal=0,1 tolerance=0.25 switch_distance=1"
TURN = "o0=-o1 o1=o0 o4=-o2 o2=o4 g0=-g1 g1=g0 a0=-a0"


def box(size):
    return spaces.Box(-np.inf, np.inf, (size,), np.float32)


def compute_reward(achieved_goal, goal, info):
    return -np.abs(achieved_goal - goal).sum(-1)


def make_buffer(subgoals=(REACH,), **options):
    parts = spaces.Dict(observation=box(5), achieved_goal=box(2), desired_goal=box(2))
    buffer = buffer_of(400, parts, box(1), compute_reward, subgoals=subgoals, episode_length=8, **options)
    generator = np.random.default_rng(0)
    for number in range(20):
        rows, achieved = (generator.standard_normal((9, n)).astype(np.float32) for n in (5, 2))
        desired = np.tile(generator.standard_normal(2).astype(np.float32), (9, 1))
        buffer.add_episode(
            Episode(rows, achieved, desired, rows[1:, :1], compute_reward(achieved[1:], desired[1:], {}), number % 2)
        )
    return buffer


def expected_sample(subgoal, row, rows, source):
    """By hand: the goal and the reward of a sample of a subgoal. source: the row of its goal, achieved or desired there."""
    name, achieved, goal, tolerance = {
        1: ("desired", [0, 1], [4, 2], 0.5),
        2: ("desired", [3, 3], [0, 1], 0.25),
    }[subgoal]
    wanted = rows[source[1]][goal if source[0] == name else achieved]
    reached = rows[row + 1][achieved]
    return rows[row][achieved], reached, wanted, -float(np.linalg.norm(reached - wanted) >= tolerance)


@pytest.mark.parametrize("subgoals", [(REACH,), (REACH, LIFT)])
@pytest.mark.parametrize("how", [{}, {"strategy": "final"}, {"strategy": Relabel(future=0.4, desired=0.3)}])
def test_against_a_slow_model(subgoals, how):
    buffer = make_buffer(subgoals, subgoal_fraction=0.5, **how)
    plain = make_buffer((), **how)
    rows, batch, was = buffer.timeline.rows["observation"], buffer.sample(600), plain.sample(600)
    assert was.subgoal is None
    assert (batch.row == was.row).all()
    desired_at, achieved_at = (buffer.timeline.rows[name] for name in ("desired_goal", "achieved_goal"))
    of_task = batch.subgoal == 0
    for name in ("goal", "achieved_goal", "reward", "terminated"):
        assert np.array_equal(getattr(batch, name)[of_task], getattr(was, name)[of_task])
    for i in np.flatnonzero(~of_task):
        # the row of the goal of this sample: all goals are different
        sources = [("achieved", r) for r in np.flatnonzero((achieved_at == was.goal[i]).all(1))]
        if not sources:
            rows_of_goal = np.flatnonzero((desired_at == was.goal[i]).all(1))
            sources = [("desired", r) for r in (rows_of_goal if batch.is_relabelled[i] else [batch.row[i]])]
        models = [expected_sample(int(batch.subgoal[i]), batch.row[i], rows, source) for source in sources]
        found = batch.achieved_goal[i], batch.next_achieved_goal[i], batch.goal[i], batch.reward[i]
        assert any(all(np.array_equal(a, b) for a, b in zip(found, model, strict=True)) for model in models)
        assert not batch.terminated[i]
    assert set(np.unique(batch.subgoal)) == set(range(len(subgoals) + 1))


HANDLE = "reach achieved=0,1,3 goal=4,2,1 tolerance=1.5 switch_distance=2 dimensions=0 placed=0.25"


def test_places_that_are_no_positions_in_the_goal_stand_beside_it():
    buffer, plain = make_buffer((HANDLE,), subgoal_fraction=0.5), make_buffer(())
    batch, was, rows = buffer.sample(600), plain.sample(600), buffer.timeline.rows
    here = batch.subgoal == 1
    assert batch.goal.shape == was.goal.shape
    assert not batch.place[~here].any()
    for i in np.flatnonzero(here):
        seen, name = rows["observation"], "achieved_goal" if batch.is_relabelled[i] else "desired_goal"
        sources = np.flatnonzero((rows[name] == was.goal[i]).all(1)) if batch.is_relabelled[i] else [batch.row[i]]
        columns = [0, 1, 3] if batch.is_relabelled[i] else [4, 2, 1]
        wanted = [seen[row][columns] for row in sources] or [batch.place[i]]  # the desired goal of another episode
        assert any(np.array_equal(batch.place[i], each) for each in wanted)
        reached = seen[batch.row[i] + 1][[0, 1, 3]]
        assert batch.reward[i] == -float(np.linalg.norm(reached - batch.place[i]) >= 1.5)
        assert batch.achieved_goal[i, 0] == batch.goal[i, 0]  # the drawer itself counts as reached
        assert np.array_equal(batch.goal[i], was.goal[i])
    assert len(set(batch.reward[here].tolist())) == 2


def test_the_fraction_is_split_between_the_subgoals():
    subgoal = make_buffer((REACH, LIFT), subgoal_fraction=0.4).sample(20_000).subgoal
    assert [np.mean(subgoal == n) for n in range(3)] == pytest.approx([0.6, 0.2, 0.2], abs=0.01)


def test_the_reward_of_a_success():
    buffer = make_buffer(subgoal_fraction=1.0, success_reward=1.0)
    assert set(buffer.sample(500).reward.tolist()) == {0.0, 1.0}


@pytest.mark.parametrize(("failure", "success"), [(0.0, 100.0), (-100.0, 0.0), (99.0, 100.0), (0.1, 0.3)])
def test_subgoals_have_the_two_rewards_of_the_task(failure, success):
    buffer = make_buffer(subgoal_fraction=1.0, failure_reward=failure, success_reward=success)
    rewards = buffer.sample(500).reward
    assert set(rewards.tolist()) == {float(np.float32(failure)), float(np.float32(success))}
    buffer.reward_scale = RewardScale(success, failure)
    assert set(buffer.sample(500).reward.tolist()) == {-1.0, 0.0}


def test_symmetries_transform_subgoals_as_goals():
    batch, was = (make_buffer(subgoal_fraction=0.5, symmetries=group).sample(300) for group in ((TURN,), ()))
    here = batch.subgoal == 1
    assert (batch.reward == was.reward).all()
    assert np.array_equal(batch.achieved_goal[here], batch.observation[here][:, [0, 1]])
    assert np.array_equal(batch.next_achieved_goal[here], batch.next_observation[here][:, [0, 1]])
    desired = here & ~batch.is_relabelled
    assert np.array_equal(batch.goal[desired], batch.observation[desired][:, [4, 2]])
    assert not np.array_equal(batch.goal[desired], was.goal[desired])


def test_subgoals_with_other_symmetries_than_goals_are_refused():
    with pytest.raises(OptionError, match=r"must transform the columns \(3, 3\) of the subgoal lift as they"):
        make_buffer((LIFT,), symmetries=(TURN,))


def test_several_batches_at_once_and_saved_ones(tmp_path):
    buffer = make_buffer(subgoal_fraction=0.5)
    assert buffer.sample_many(3, 16).subgoal.shape == (3, 16)
    buffer.save(tmp_path / "b")
    loaded = HindsightBuffer.load(tmp_path / "b", compute_reward)
    one, other = buffer.sample(64), loaded.sample(64)
    assert one[3:9].subgoal.tolist() == other.subgoal[3:9].tolist()
    assert one.goal.tobytes() == other.goal.tobytes()


def test_n_step_returns_are_refused_with_subgoals():
    with pytest.raises(OptionError, match="n_steps must be 1 with subgoals, got 3"):
        make_buffer(n_steps=3)


def test_extra_reward_is_refused_with_subgoals():
    with pytest.raises(OptionError, match="extra_reward must be False with subgoals, got True"):
        make_buffer(extra_reward=True)


FIRST = "reach achieved=0 goal=1 tolerance=0.5 switch_distance=1 dimensions=0 placed=0.5"
OTHER = "reach achieved=0 goal=2 tolerance=0.25 switch_distance=1 dimensions=1 placed=0.5"


def test_samples_of_a_chain():
    """1 and 2 lead to an object, 3 asks for the position of the first one alone. What comes later counts as reached."""
    chain, plain = make_buffer((FIRST, OTHER), subgoal_fraction=0.5), make_buffer(())
    batch, was = chain.sample(4_000), plain.sample(4_000)
    assert [np.mean(batch.subgoal == n) for n in range(4)] == pytest.approx([0.25] * 4, abs=0.03)
    for number, at in ((1, 0), (2, 1), (3, 0)):
        here = batch.subgoal == number
        for name in ("achieved_goal", "next_achieved_goal"):
            before = getattr(was, name) if number == 2 else was.goal  # the first object stays where it is placed
            assert np.array_equal(getattr(batch, name)[here, 1 - at], before[here, 1 - at])
            source = name if number == 3 else name.replace("achieved_goal", "observation")
            own = getattr(was, source)[here, 0]
            assert np.array_equal(getattr(batch, name)[here, at], own)
        assert np.array_equal(batch.goal[here, 1 - at], was.goal[here, 1 - at])
        distance = np.abs(batch.next_achieved_goal - batch.goal)[here]
        is_met = distance[:, at] < (0.25 if number == 2 else 0.5)
        assert np.array_equal(batch.reward[here], (is_met & (distance[:, 1 - at] <= 0.5)) - 1.0)
        assert not batch.terminated[here].any()
    of_first = batch.subgoal == 3
    assert np.array_equal(batch.goal[of_first], was.goal[of_first])


EXCHANGE = "o1=o2 o2=o1 g0=g1 g1=g0"


def test_a_chain_is_relabelled_after_its_objects_were_exchanged():
    batch = make_buffer((FIRST, OTHER), subgoal_fraction=0.5, symmetries=(EXCHANGE,)).sample(4_000)
    was = make_buffer((FIRST, OTHER), subgoal_fraction=0.5).sample(4_000)
    is_exchanged = ~(batch.observation == was.observation).all(1)
    assert np.mean(is_exchanged) == pytest.approx(0.5, abs=0.03)
    assert np.array_equal(batch.observation[is_exchanged], was.observation[is_exchanged][:, [0, 2, 1, 3, 4]])
    for number, at in ((1, 0), (2, 1)):
        here = batch.subgoal == number
        assert np.array_equal(batch.achieved_goal[here, at], batch.observation[here, 0])
        own = here & ~batch.is_relabelled
        assert np.array_equal(batch.goal[own, at], batch.observation[own, 1 + at])
