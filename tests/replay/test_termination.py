"""Rules of termination by hand: in episodes of 3 steps the reward is 0 at the goal."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import compute_reward, make_buffer, make_episode

from hindsight_rl import HindsightBuffer
from hindsight_rl.errors import FileError, GoalEnvError, OptionError
from hindsight_rl.options.replay import STRATEGIES
from hindsight_rl.replay.strategies import AS_STORED, choose_termination


def always(achieved_goal, goal, info):
    return np.ones(len(goal))


def near(achieved_goal, goal, info):
    return np.abs(achieved_goal - goal)[:, 0] <= 1


def is_near(next_achieved, goal):
    return abs(next_achieved - goal) <= 1


# The arguments of a buffer, and what they mean for a sample: (stored, next achieved goal, goal) -> terminated. No episode
# ends at its own goal, so that an end is an event, which stays.
RULES = {
    "as given": ({"compute_terminated": near}, lambda stored, a, g: stored or is_near(a, g)),
    "as stored": ({}, lambda stored, a, g: stored),
    "keep": ({"relabel_terminated": "keep", "compute_terminated": always}, lambda stored, a, g: stored),
    "never": ({"relabel_terminated": "never", "compute_terminated": always}, lambda stored, a, g: False),
    "reward": ({"relabel_terminated": "success", "compute_terminated": always}, lambda stored, a, g: stored or a == g),
    "lower": ({"relabel_terminated": "success", "success_reward": -1}, lambda stored, a, g: stored or is_near(a, g)),
    "function": ({"relabel_terminated": "success", "compute_success": near}, lambda stored, a, g: stored or is_near(a, g)),
}


@pytest.mark.parametrize("name", RULES)
@settings(deadline=None)  # the first sample compiles
@given(seed=st.integers(0, 99), strategy=st.sampled_from(STRATEGIES))
def test_relabelled_samples_follow_the_rule_and_others_stay_as_stored(name, seed, strategy):
    arguments, says = RULES[name]
    buffer = make_buffer(seed=seed, strategy=strategy, n_sampled_goal=1, **arguments)
    for number in range(1, 5):
        buffer.add_episode(make_episode(number, 3, terminated=number > 2))
    batch = buffer.sample(64)
    for i in range(64):
        number, t = batch.observation[i].tolist()
        stored = number > 2 and t == 2
        expected = says(stored, float(batch.next_achieved_goal[i, 0]), float(batch.goal[i, 0]))
        assert batch.terminated[i] == (expected if batch.is_relabelled[i] else stored)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"relabel_terminated": "Success"},
            "`relabel_terminated` must be 'success', 'keep' or 'never', got 'Success'",
        ),
        ({"relabel_terminated": "keep", "compute_success": near}, "compute_success needs .* got relabel_terminated='keep'"),
        ({"compute_success": near}, "compute_success needs .* got relabel_terminated=None"),
        ({"success_reward": np.inf}, "success_reward must be a finite number, got inf"),
        ({"success_reward": "0"}, "success_reward must be a finite number, got '0'"),
    ],
)
def test_invalid_rules_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        make_buffer(**options)


def test_an_unusable_compute_success_is_refused():
    buffer = make_buffer(relabel_terminated="success", compute_success=lambda a, g, i: a == g)
    buffer.add_episode(make_episode(1, 3))
    with pytest.raises(GoalEnvError, match=r"compute_success\) must return numbers .* got shape \(8, 1\)"):
        buffer.sample(8)


def test_a_rule_is_saved_with_the_buffer(tmp_path):
    first = make_buffer(relabel_terminated="success", success_reward=-1.0)
    first.add_episode(make_episode(1, 9))
    first.save(tmp_path / "buffer")
    second = HindsightBuffer.load(tmp_path / "buffer", compute_reward)
    assert (first.sample(99).terminated == second.sample(99).terminated).all()
    assert first.sample(99).terminated.any()


@pytest.mark.parametrize(
    ("name", "options"), [("compute_terminated", {}), ("compute_success", {"relabel_terminated": "success"})]
)
def test_a_buffer_is_not_loaded_without_a_function_that_it_had(name, options, tmp_path):
    first = make_buffer(**{name: near}, **options)
    first.add_episode(make_episode(1, 9))
    first.save(tmp_path / "buffer")
    with pytest.raises(FileError, match=f"It used {name}, which is not in the file. Pass {name}="):
        HindsightBuffer.load(tmp_path / "buffer", compute_reward)
    second = HindsightBuffer.load(tmp_path / "buffer", compute_reward, **{name: near})
    assert (first.sample(99).terminated == second.sample(99).terminated).all()


def test_without_a_rule_compute_terminated_is_called():
    assert choose_termination(None, near, None, 0.0).function is near
    assert choose_termination(None, None, None, 0.0) is AS_STORED  # nothing is recomputed
