import pytest

from hindsight_rl.errors import OptionError, UnknownNameError
from hindsight_rl.options import Relabel, ReplayOptions


def next_rows(rows, steps_done, steps_left, u):
    return rows + 1


def test_relabelling_at_the_end_of_an_episode_needs_a_named_strategy():
    assert ReplayOptions(relabel_at="episode_end", relabel="future=0.5").relabelled_fraction == 0.5
    with pytest.raises(OptionError, match="A function as `strategy` needs relabel_at='sample'"):
        ReplayOptions(relabel_at="episode_end", strategy=next_rows)


@pytest.mark.parametrize(
    ("options", "strategy", "fraction"),
    [
        ({}, "future", 0.8),
        ({"n_sampled_goal": 1}, "future", 0.5),
        ({"n_sampled_goal": 0}, "future", 0.0),
        ({"strategy": "final"}, "final", 0.8),
        ({"relabel": "future=0.5,desired=0.25"}, Relabel(future=0.5, desired=0.25), 0.75),
        ({"strategy": Relabel(random=0.5)}, Relabel(random=0.5), 0.5),
        ({"strategy": "random=0.5"}, Relabel(random=0.5), 0.5),
        ({"strategy": next_rows}, next_rows, 0.8),
    ],
)
def test_the_strategy_and_the_relabelled_fraction(options, strategy, fraction):
    made = ReplayOptions(**options)
    assert made.goal_strategy == strategy
    assert made.relabelled_fraction == pytest.approx(fraction)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"relabel": "future=0.5", "n_sampled_goal": 4}, "`n_sampled_goal` is 4, but the fractions future=0.5 already"),
        ({"strategy": Relabel(final=0.5), "n_sampled_goal": 4}, "`n_sampled_goal` is 4, but the fractions final=0.5"),
        ({"relabel": "future=0.5", "strategy": "final"}, "`relabel` and `strategy` both choose the goals"),
        ({"strategy": "futur"}, "must be 'future', 'final', 'episode' or 'random', got 'futur'"),
        ({"strategy": 3}, "got 3. Or it must be .* instance of Relabel. Or it must be callable"),
        ({"prioritized": True, "energy_priority": True}, "Give one of them"),
        ({"energy_cap": 0.1}, "`energy_cap` needs energy_priority=True"),
        ({"energy_remaining": True}, "`energy_remaining` needs energy_priority=True"),
        ({"energy_priority": True, "energy_cap": 0.0}, "`energy_cap` must be greater than 0"),
    ],
)
def test_options_that_exclude_each_other_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        ReplayOptions(**options)


def test_a_function_becomes_its_name_which_is_read_back_but_cannot_be_called():
    data = ReplayOptions(strategy=next_rows).to_dict()
    assert data["strategy"] == "function test_replay_options.next_rows"
    again = ReplayOptions(**data)
    assert again.to_dict() == data
    with pytest.raises(OptionError, match=r"was the function test_replay_options.next_rows.*Give it again"):
        again.strategy()
    with pytest.raises(OptionError, match=r"`strategy` must be .*, got 'soon'. .* Or it must be callable.$"):
        ReplayOptions(strategy="soon")


def test_the_schedule_sets_the_last_entry_that_is_due():
    options = ReplayOptions(relabel_schedule=["100: future=0.5", "2_000: desired=0.25"])
    steps = (0, 99, 100, 1_999, 2_000, 9_999)
    first, second = Relabel(future=0.5), Relabel(desired=0.25)
    assert [options.relabel_at_step(n) for n in steps] == [None, None, first, first, second, second]


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (["future=0.5"], "must be written as"),
        (["later: future=0.5"], "must be written as"),
        (["1__0: future=0.5"], "must be written as"),
        (["5"], "must be written as"),
        (["100: futur=0.5"], "Did you mean 'future'"),
        (["100: future=0.5", "100: final=0.5"], "must be positive and increase"),
        (["0: future=0.5"], "must be positive and increase"),
    ],
)
def test_a_schedule_that_cannot_be_read_is_refused(schedule, message):
    with pytest.raises(OptionError, match=message):
        ReplayOptions(relabel_schedule=schedule)


def test_a_schedule_needs_relabelling_at_sampling():
    with pytest.raises(OptionError, match="needs relabel_at='sample'"):
        ReplayOptions(relabel_schedule=["100: future=0.5"], relabel_at="episode_end")


def test_a_mixture_is_written_as_it_is_read():
    relabel = Relabel.parse("future=0.5, desired = 0.3,random=0.1")
    assert relabel == Relabel(future=0.5, desired=0.3, random=0.1)
    assert str(relabel) == "future=0.5,random=0.1,desired=0.3"
    assert Relabel.parse(str(relabel)) == relabel
    assert (Relabel(future=0.7, final=0.2, random=0.1).fraction, Relabel().fraction) == (pytest.approx(1.0), 0.0)


@pytest.mark.parametrize(
    ("relabel", "only"),
    [
        (Relabel(final=0.5), "final"),
        (Relabel(), "future"),
        (Relabel(desired=0.5), None),
        (Relabel(future=0.5, final=0.1), None),
    ],
)
def test_the_only_strategy_of_a_mixture(relabel, only):
    assert relabel.only == only


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("futur=1", "Did you mean 'future'"),
        ("future=a", "must be name=value with a value in TOML"),
        ("future=0.1,future=0.2", "`relabel` must name 'future' once"),
        ("future=2", "`future` must be at most 1, got 2"),
        ("future=nan", "`future` must be a finite number"),
        ("future=0.7,final=0.4", "must sum to at most 1, got 1.1"),
    ],
)
def test_a_mixture_that_cannot_be_read_is_refused(text, message):
    with pytest.raises(OptionError, match=message):
        Relabel.parse(text)


def test_an_unknown_source_is_an_unknown_name():
    with pytest.raises(UnknownNameError):
        ReplayOptions(relabel="futur=1")
