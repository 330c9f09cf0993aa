"""The success of the policy in its last unguided training episodes, and whether planned paths help it."""

from dataclasses import replace

import numpy as np
import pytest

from hindsight_rl.records import Episode
from hindsight_rl.records.exploration import Exploration
from hindsight_rl.training.unguided_success import RECENT, WINDOW, PathTrial, UnguidedSuccess, read_successes


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


def trial_of(on_path, straight):
    """Return a trial after episodes with these successes."""
    rows, trial = np.zeros((2, 1)), PathTrial()
    episode = Episode(rows, rows, rows, action=rows[:1], reward=np.zeros(1), is_unguided=True)
    for first, successes in ((0, on_path), (1, straight)):
        for k, success in enumerate(successes):
            trial.add(replace(episode, number=first + 2 * k, success=bool(success)))
    trial.add(replace(episode, number=0, success=True, is_unguided=False))  # guided: it does not count
    return trial


@pytest.mark.parametrize(
    ("on_path", "straight", "helps", "is_clear"),
    [
        ([1] * 9 + [0] * 3, [0] * 12, True, True),  # at least 47 % and at most 24 %
        ([1] * 5 + [0] * 7, [0] * 12, False, False),  # at least 19 %
        ([1] * 12, [1] * 6 + [0] * 6, True, True),
        ([0] * 12, [1] * 12, False, True),
        ([1] * 10 + [0] * 10, [1] * 10 + [0] * 10, False, True),  # they help as little as none
        ([1] * 10 + [0] * 10, [1] * 9 + [0] * 11, False, False),
        ([0] * 3, [1] + [0] * 4, False, False),  # one success may be luck
        ([0] * 12, [0] * 12, False, False),  # there is nothing to lose
        ([1] * 3, [], False, False),
        ([], [1] * 3, False, False),
    ],
)
def test_planned_paths_help_if_episodes_on_them_succeed_more_often_for_certain(on_path, straight, helps, is_clear):
    trial = trial_of(on_path, straight)
    assert trial.helps is helps
    assert trial.is_clear is is_clear
    assert (trial.on_path.successes, trial.straight.successes) == (list(map(bool, on_path)), list(map(bool, straight)))
    assert f"{sum(on_path)} of {len(on_path)} episodes succeeded for which paths were planned" in str(trial)


@pytest.mark.parametrize(
    ("on_path", "straight", "is_followed", "is_clear"),
    [
        ([1] * 2 + [0] * 10, [1] * 11 + [0], False, True),  # they harm for certain
        ([1] * 5 + [0] * 7, [1] * 9 + [0] * 3, False, False),
        ([1] * 9 + [0] * 3, [0] * 12, True, True),
        ([1] * 9 + [0] * 11, [1] * 12 + [0] * 8, False, True),  # 20 episodes without them are enough
        ([1] * 9 + [0] * 11, [1] * 9 + [0] * 11, True, True),
    ],
)
def test_paths_that_are_usual_are_given_up_if_they_harm_for_certain_or_in_the_end_seem_to(
    on_path, straight, is_followed, is_clear
):
    trial = PathTrial(success_of(*on_path), success_of(*straight), are_usual=True)
    assert (trial.is_followed, trial.is_clear) == (is_followed, is_clear)


def test_every_fourth_episode_leaves_out_paths_that_are_usual():
    trial, exploration = PathTrial(are_usual=True), Exploration(0.3, 0.1, exploration_episodes=0.5)
    follow = [trial.exploration(exploration, number).follows_paths for number in range(8)]
    assert follow == [True, False, True, True] * 2
    assert trial.exploration(exploration, 2).exploration_episodes == 0.5
    rows = np.zeros((2, 1))
    for number in range(8):
        trial.add(Episode(rows, rows, rows, rows[:1], np.zeros(1), number=number, success=number == 5, is_unguided=True))
    assert (trial.straight.successes, len(trial.on_path.successes)) == ([False, True], 6)
