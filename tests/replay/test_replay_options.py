import pytest

from hindsight.errors import OptionError
from hindsight.replay.options import ReplayOptions


def test_a_mixture_stands_instead_of_the_strategy_and_its_count():
    assert ReplayOptions(relabel="future=0.5,desired=0.3").n_sampled_goal == 4
    for options, words in [
        ({"n_sampled_goal": 2}, "n_sampled_goal is 2, but relabel .* says already"),
        ({"strategy": "final"}, "strategy is 'final', but relabel .* says already"),
        ({"relabel": "futur=1"}, "Did you mean 'future'"),
    ]:
        with pytest.raises(OptionError, match=words):
            ReplayOptions(**{"relabel": "future=0.5", **options})
