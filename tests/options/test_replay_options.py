import pytest

from hindsight.errors import OptionError
from hindsight.options import ReplayOptions


def test_goals_that_are_drawn_at_the_end_of_an_episode_are_for_one_step():
    assert ReplayOptions(relabel_at="episode_end").n_steps == 1
    with pytest.raises(OptionError, match="relabel_at is 'episode_end', which keeps the reward of one step"):
        ReplayOptions(relabel_at="episode_end", n_steps=3)


def test_a_mixture_stands_instead_of_the_strategy_and_its_count():
    assert ReplayOptions(relabel="future=0.5,desired=0.3").n_sampled_goal == 4
    for options, words in [
        ({"n_sampled_goal": 2}, "n_sampled_goal is 2, but relabel .* says already"),
        ({"strategy": "final"}, "strategy is 'final', but relabel .* says already"),
        ({"relabel": "futur=1"}, "Did you mean 'future'"),
    ]:
        with pytest.raises(OptionError, match=words):
            ReplayOptions(**{"relabel": "future=0.5", **options})


def test_later_shares_come_with_the_step_from_which_they_hold():
    first = {"relabel": "future=0.8"}
    assert ReplayOptions(**first, relabel_later="future=0.3", relabel_later_from=100).relabel_later_from == 100
    for options, words in [
        ({"relabel_later": "future=0.3"}, "'future=0.3' and relabel_later_from 0, but .* belong together"),
        ({"relabel_later_from": 5}, "relabel_later_from 5, but"),
        ({"relabel_later": "future=0.3", "relabel_later_from": -1}, "relabel_later_from -1"),
        ({"relabel_later": "futur=1", "relabel_later_from": 5}, "Did you mean 'future'"),
        (
            {"relabel_later": "future=1", "relabel_later_from": 5, "relabel_at": "episode_end"},
            "relabel_later needs 'sample'",
        ),
        (
            {"relabel": "", "relabel_later": "future=1", "relabel_later_from": 5},
            "relabel is empty: give the first shares too",
        ),
    ]:
        with pytest.raises(OptionError, match=words):
            ReplayOptions(**first | options)


@pytest.mark.parametrize("options", [{"energy_cap": 0.1}, {"energy_remaining": True}])
def test_how_energy_draws_goes_with_energy(options):
    assert ReplayOptions(energy_priority=True, **options).energy_priority
    with pytest.raises(OptionError, match="set energy_priority=True with it"):
        ReplayOptions(**options)
