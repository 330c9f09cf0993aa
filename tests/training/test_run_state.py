"""The success of the policy in its last unguided training episodes, and how the search for structure explores."""

from dataclasses import replace

import pytest

from hindsight_rl.records.exploration import Exploration, Probing
from hindsight_rl.training.run_state import RECENT, WINDOW, SearchState, UnguidedSuccess, read_successes


def success_of(*successes):
    found = UnguidedSuccess()
    for success in successes:
        found.add(bool(success))
    return found


def test_only_the_last_episodes_count():
    found = success_of(*[1] * 3, *[0] * 49)
    assert found.successes == [True] + [False] * 49
    assert success_of(*[1] * 30, *[0] * 50).successes == [False] * WINDOW


def test_the_recent_rate_starts_at_0_and_follows_the_last_episodes():
    assert success_of().recent_rate == 0
    assert success_of(1, 1).recent_rate == 2 / RECENT
    assert success_of(*[0] * 30, *[1] * 10).recent_rate == 0.5


def test_the_interval_is_wide_with_few_episodes():
    assert success_of().interval == (0.0, 1.0)
    assert success_of(*[0] * 15).interval == pytest.approx((0.0, 0.204), abs=1e-3)
    assert success_of(*[0, 0, 0, 0, 1] * 10).interval == pytest.approx((0.112, 0.330), abs=1e-3)


@pytest.mark.parametrize(
    ("successes", "is_below"),
    [
        ([0] * 50, True),
        ([0] * 49, False),
        ([1] * 4 + [0] * 46, True),
        ([1] * 5 + [0] * 45, False),
        ([0] * 46 + [1] * 4, False),  # the later half is better
        ([1] + [0] * 48 + [1], True),
    ],
)
def test_50_episodes_show_that_success_is_below_a_fifth_and_does_not_increase(successes, is_below):
    assert success_of(*successes).is_below(0.2) is is_below


@pytest.mark.parametrize(("n", "has_none"), [(19, False), (20, True)])
def test_without_a_success_in_20_episodes_there_is_none(n, has_none):
    assert success_of(*[0] * n).has_none is has_none
    assert not success_of(*[0] * n, 1).has_none


@pytest.mark.parametrize("data", [[1], [None], [True] * 51])
def test_malformed_successes_are_refused(data):
    with pytest.raises(ValueError, match="at most 50 truth values"):
        read_successes(data)
    assert read_successes([True, False]) == success_of(1, 0)


def test_only_the_first_random_episodes_are_long():
    exploration, guess = Exploration(0.3, 0.1, is_random=True), Probing(*[()] * 6, reach=1.0)
    first, later = SearchState(next_at=250), SearchState(next_at=500, guesses=(guess,))
    assert first.exploration(exploration, 1, 250).episode_steps == 500
    assert replace(first, next_at=3_000).exploration(exploration, 1, 3_000).episode_steps == 1_000
    planned = [later.exploration(exploration, episode, 250) for episode in range(4)]
    assert [each.episode_steps for each in planned] == [100] * 4
    assert [each.probing for each in planned] == [None, guess, None, None]
    assert [each.random_action_repeat for each in planned] == [1, 1, 1, 5]
    seeking = SearchState(phase="probing", probing=guess).exploration(exploration, 0, 250)
    assert (seeking.episode_steps, seeking.probing) == (100, guess)
