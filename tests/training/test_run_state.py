"""How the search for structure explores."""

from dataclasses import replace

from hindsight_rl.records.exploration import Exploration, Probing
from hindsight_rl.training.run_state import SearchState
from hindsight_rl.training.unguided_success import PathTrial, UnguidedSuccess

NONE, ONE = UnguidedSuccess(), UnguidedSuccess([False, True])


def test_only_the_first_random_episodes_are_long():
    exploration, guess = Exploration(0.3, 0.1, is_random=True), Probing(*[()] * 6, reach=1.0, largest_reach=1.0)
    first, later = SearchState(next_at=250), SearchState(next_at=500, guesses=(guess,))
    assert first.exploration(exploration, 1, 250).episode_steps == 500
    assert replace(first, next_at=3_000).exploration(exploration, 1, 3_000).episode_steps == 1_000
    planned = [later.exploration(exploration, episode, 250) for episode in range(4)]
    assert [each.episode_steps for each in planned] == [100] * 4
    assert [each.probing for each in planned] == [None, guess, None, guess]
    assert [each.random_action_repeat for each in planned] == [1, 1, 5, 1]
    alone = [replace(later, guesses=()).exploration(exploration, episode, 250) for episode in range(4)]
    assert [each.random_action_repeat for each in alone] == [1, 1, 5, 5]
    seeking = SearchState(phase="probing", probing=guess).exploration(exploration, 0, 250)
    assert (seeking.episode_steps, seeking.probing) == (100, guess)


def test_guesses_of_the_tool_are_tried_until_the_agent_succeeds():
    exploration, guess = Exploration(0.3, 0.1), Probing(*[()] * 6, reach=1.0, largest_reach=1.0)
    state, every_fourth = SearchState(phase="learning", guesses=(guess,)), [None, guess, *[None] * 3, guess]
    assert [state.searching(exploration, episode, NONE).probing for episode in range(6)] == every_fourth
    assert [state.searching(exploration, episode, ONE).probing for episode in range(6)] == [None] * 6


def test_a_tool_is_steered_to_the_object_until_most_episodes_succeed():
    exploration, plan = Exploration(0.3, 0.1), Probing(*[()] * 6, reach=1.0, largest_reach=1.0)
    state, every_fourth = SearchState(phase="learning", probing=plan), [None, plan, *[None] * 3, plan]
    for success in (NONE, ONE, UnguidedSuccess([True] * 9)):  # of the last 20
        assert [state.searching(exploration, episode, success).probing for episode in range(6)] == every_fourth
    assert [state.searching(exploration, episode, UnguidedSuccess([True] * 10)).probing for episode in range(6)] == [
        None
    ] * 6


def test_in_a_trial_every_second_episode_follows_paths_or_seeks_waypoints():
    exploration, state = Exploration(0.3, 0.1, exploration_episodes=0.5), SearchState(phase="learning", trial=PathTrial())
    planned = [state.searching(exploration, episode, NONE) for episode in range(4)]
    assert [each.follows_paths for each in planned] == [True, False, True, False]
    assert [each.exploration_episodes for each in planned] == [0.5, 0.0, 0.5, 0.0]
