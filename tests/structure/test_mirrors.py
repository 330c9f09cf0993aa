"""Mirrors of tasks without an object."""

import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsight_rl.records import ArraySpec, Episode, GoalSpec
from hindsight_rl.structure import symmetry_verdicts
from hindsight_rl.structure.columns import find_goal_copies, find_units
from hindsight_rl.structure.mirrors import Mirrors, _even_sets, _ratio, _subsets
from hindsight_rl.structure.model import Difference
from hindsight_rl.structure.steps import Steps
from hindsight_rl.structure.symmetry_verdicts import Candidate, SymmetryVerdict, with_consequences
from hindsight_rl.task_structure.symmetries import Symmetry, generate_group

SPEC = GoalSpec(*(ArraySpec((size,), "float64") for size in (4, 2, 2)))
REFUTED = Difference(4.0, 0.1)  # of opposite motion
ALONG_X, ALONG_Y = "o0=-o0 o2=-o2 g0=-g0 a0=-a0", "o1=-o1 o3=-o3 g1=-g1 a1=-a1"


def play(rng, length=60, wind=0.0, low=(-1.0, -1.0), scale=1.0, n_useless=0, has_tram=False, magnet=None):
    """Slide with random pushes in a room from `low` to 1, with elastic walls. wind: its force along y.

    Starts and goals lie around 0, as far as `low`. Columns: position (in other units if `scale` is not 1), velocity.
    has_tram: two more columns are position and velocity of a tram, which shuttles whatever the agent does.
    magnet: the position along x that attracts the body.
    """
    position, speed = rng.uniform(low, np.negative(low)), rng.uniform(-0.03, 0.03, 2)
    goal, actions = rng.uniform(low, np.negative(low)), np.repeat(rng.uniform(-1, 1, (length // 10, 2)), 10, axis=0)
    rows = [np.append(position, speed)]
    for action in actions:
        pull = 0.0 if magnet is None else 0.01 * (magnet - position[0])
        speed = 0.95 * speed + 0.01 * action + [pull, wind]
        position = position + speed
        outside = (position < low) | (position > 1)
        speed, position = np.where(outside, -speed, speed), np.clip(position, low, 1)
        rows.append(np.append(position, speed))
    rows = np.array(rows)
    observation = rows * [scale, scale, 1, 1]
    if has_tram:
        observation = np.column_stack([observation, shuttle(rng, length)])
    actions = np.column_stack([actions, rng.uniform(-1, 1, (length, n_useless))])
    return Episode(observation, rows[:, :2], np.tile(goal, (length + 1, 1)), actions, np.zeros(length))


def shuttle(rng, length):
    """Return position and velocity of a tram that goes from one side of the room to the other and back."""
    travelled = rng.uniform(0, 4) + rng.choice([-0.1, 0.1]) * np.arange(length + 2)
    position = np.abs(travelled % 4 - 2) - 1
    return np.column_stack([position[:-1], np.diff(position)])


def find_mirrors(n_episodes=40, known=(), **task):
    rng = np.random.default_rng(0)
    steps = Steps.from_episodes([play(rng, **task) for _ in range(n_episodes)])
    units = find_units(steps)
    steps = units.apply(steps)
    held = [Symmetry.parse(text, SPEC) for text in known]
    return Mirrors(steps, find_goal_copies(steps).complete, (), units, held).find()


def find(*arguments, **task):
    return {verdict.text for verdict in find_mirrors(*arguments, **task) if verdict.holds}


@pytest.mark.parametrize(("attracts", "changed"), [(False, "o0 o2 g0 a0"), (True, "o0 o2 o4 g0 a0")])
def test_what_stays_in_each_episode_changes_with_the_body_if_it_matters(attracts, changed):
    """A magnet has another position in each episode, and all positions along x are positive."""
    rng, episodes = np.random.default_rng(0), []
    for _ in range(60):
        magnet = rng.uniform(-0.9, 0.9)
        episode = play(rng, magnet=magnet if attracts else None)
        seen = np.column_stack([episode.observation + np.array([1, 0, 0, 0]), np.full(len(episode) + 1, 1 + magnet)])
        goals = (each + np.array([1, 0]) for each in (episode.achieved_goal, episode.desired_goal))
        episodes.append(Episode(seen, *goals, episode.action, episode.reward))
    steps = Steps.from_episodes(episodes)
    found = Mirrors(steps, find_goal_copies(steps).complete, (), find_units(steps)).find()
    texts = [each.text for each in found if each.holds and "-g0" in each.text]
    assert [set(re.findall(r"([oga]\d)=", text)) for text in texts] == [set(changed.split())]


@pytest.mark.parametrize(("sides", "holds"), [((1,), {ALONG_Y}), ((-1, 1), {ALONG_X, ALONG_Y})])
def test_pits_break_a_mirror_unless_it_leads_from_one_to_another(sides, holds):
    """A pit is at one side of the room, or one at each side: an episode ends there."""
    rng, episodes = np.random.default_rng(0), []
    for _ in range(120):
        episode = play(rng)
        x, y = episode.achieved_goal[1:].T
        is_in = np.any([(side * x > 0.3) & (side * x < 0.6) & (np.abs(y) < 0.5) for side in sides], axis=0)
        n = int(is_in.argmax()) + 1 if is_in.any() else len(episode)
        seen = (each[: n + 1] for each in (episode.observation, episode.achieved_goal, episode.desired_goal))
        episodes.append(Episode(*seen, episode.action[:n], np.full(n, -1.0), terminated=n < len(episode)))
    steps = Steps.from_episodes(episodes, success_reward=0.0)
    found = Mirrors(steps, find_goal_copies(steps).complete, (), find_units(steps)).find()
    group = generate_group([each.candidate.symmetry for each in found if each.holds], Symmetry.identity(4, 2, 2))
    texts = {each.text() for each in group}
    assert texts & {ALONG_X, ALONG_Y} == holds


def test_an_empty_room_has_two_mirrors():
    """Which two of the three in their group are named is left to their errors."""
    both = "o0=-o0 o1=-o1 o2=-o2 o3=-o3 g0=-g0 g1=-g1 a0=-a0 a1=-a1"
    assert find() in ({ALONG_X, ALONG_Y}, {ALONG_X, both}, {ALONG_Y, both})


def test_columns_may_have_other_units():
    assert find(scale=-2.5, wind=0.004) == {ALONG_X}


def test_a_position_may_be_seen_from_another_place_too():
    rng, episodes = np.random.default_rng(0), []
    for _ in range(40):
        episode = play(rng)
        seen = np.column_stack([episode.observation, episode.achieved_goal + np.array([0.2, -0.3])])
        episodes.append(replace(episode, observation=seen))
    steps = Steps.from_episodes(episodes)
    found = Mirrors(steps, (0, 1), (), find_units(steps)).find()
    spec = replace(SPEC, observation=ArraySpec((6,), "float64"))
    group = generate_group([each.candidate.symmetry for each in found if each.holds], Symmetry.identity(6, 2, 2))
    expected = Symmetry.parse(f"{ALONG_X} o4=0.4-o4", spec)
    assert any(each.is_same(expected, 1e4) for each in group)  # the place is rounded to a few digits


def test_wind_leaves_one_mirror():
    assert find(wind=0.004) == {ALONG_X}


def test_where_something_else_moves_by_itself_no_mirror_is_used():
    """The mirrors of the agent alone and of the tram alone move as they should, but the tram would meet it elsewhere."""
    assert find(has_tram=True) == set()


def test_mirrored_places_must_be_visited():
    """The room reaches from -0.4 to 1 along y: moves are alike everywhere, but the lower end has no mirror image."""
    assert find(low=(-1.0, -0.4)) == {ALONG_X}


@pytest.mark.parametrize("n_episodes", [5, 12])
def test_too_few_visits_are_no_evidence(n_episodes):
    assert find_mirrors(n_episodes) == []


@pytest.mark.slow
def test_what_held_before_stays_unless_it_is_clearly_refuted(monkeypatch):
    """The margin is made too strict for the mirror that holds with wind."""
    loss = find_mirrors(wind=0.004)[0].loss
    monkeypatch.setattr(symmetry_verdicts, "SYMMETRY_MARGIN", loss.mean)
    assert find(wind=0.004) == set()
    assert find(wind=0.004, known=[ALONG_X]) == {ALONG_X}
    monkeypatch.setattr(symmetry_verdicts, "SYMMETRY_MARGIN", loss.mean - 3 * loss.error)
    assert find(wind=0.004, known=[ALONG_X]) == set()


def test_beside_walls_no_mirror_follows_from_others(monkeypatch):
    """Two of the three mirrors of a room would make the third hold, for which the test alone gives no clear answer."""
    tested = symmetry_verdicts.SymmetryTest.verdicts

    def verdicts(*arguments):
        unclear = Difference(0.4, 0.2)
        return [replace(each, loss=unclear) if each.text == ALONG_Y else each for each in tested(*arguments)]

    monkeypatch.setattr(symmetry_verdicts.SymmetryTest, "verdicts", verdicts)
    assert len(find()) == 1


def test_a_mirror_that_held_before_keeps_its_centre():
    """The mean of starts and goals changes with each episode; another text would be another option."""
    before = "o0=0.001-o0 o2=-o2 g0=0.001-g0 a0=-a0"
    assert find(wind=0.004, known=[before]) == {before}


def test_the_distance_of_positions_that_episodes_share_is_0():
    assert [_ratio(*each) for each in ((2.0, 4.0), (0.0, 0.0), (1.0, 0.0))] == [0.5, 0.0, np.inf]


def drive(rng, length=40):
    """A cart drives along its heading and turns. Columns: position, cosine and sine of the heading."""
    place, angle, actions = rng.uniform(-1, 1, 2), rng.uniform(-np.pi, np.pi), rng.uniform(-1, 1, (length, 2))
    rows = []
    for speed, turn in [*actions, (0.0, 0.0)]:
        rows.append([*place, np.cos(angle), np.sin(angle)])
        place, angle = place + 0.1 * speed * np.array([np.cos(angle), np.sin(angle)]), angle + 0.5 * turn
    rows, goal = np.array(rows), rng.uniform(-1, 1, 2)
    return Episode(rows, rows[:, :2], np.tile(goal, (length + 1, 1)), actions, np.zeros(length))


def test_signs_that_matter_as_products_change_together():
    """The position follows speed times cosine, and the cosine turning times sine: no column follows one value alone."""
    rng = np.random.default_rng(0)
    steps = Steps.from_episodes([drive(rng) for _ in range(100)])
    mirrors = Mirrors(steps, (0, 1), (), find_units(steps)).find()
    found = [each.symmetry for each in (verdict.candidate for verdict in mirrors if verdict.holds)]
    group = generate_group(found, Symmetry.identity(4, 2, 2))
    signs = {tuple(part for each in (one.observation, one.action) for part in each.factor.astype(int)) for one in group}
    along_x, along_y, backwards = (-1, 1, -1, 1, 1, -1), (1, -1, 1, -1, 1, -1), (1, 1, -1, -1, -1, 1)
    products = {
        tuple(np.prod(chosen, axis=0)) for n in (1, 2, 3) for chosen in combinations((along_x, along_y, backwards), n)
    }
    assert signs == products | {(1,) * 6}


@given(st.lists(st.frozensets(st.integers(0, 5), max_size=3), max_size=6))
def test_sets_with_an_even_number_of_members_of_each_rule(rules):
    """Against all sets."""
    even = {
        frozenset(chosen)
        for n in range(1, 7)
        for chosen in combinations(range(6), n)
        if all(len(rule.intersection(chosen)) % 2 == 0 for rule in rules)
    }
    basis = _even_sets(rules, 6)
    assert set(_subsets(basis)) == even
    assert len(even) == 2 ** len(basis) - 1


def test_a_change_of_signs_that_does_nothing_is_no_mirror():
    """A further action moves nothing: whether it changes its sign cannot be seen."""
    assert find(n_useless=1) == set()


def test_too_many_products_are_not_used():
    """Seven signs that change alone would make 128 symmetries, and 64 are allowed."""
    texts = [f"o{k}=-o{k}" for k in range(7)]
    spec = GoalSpec(*(ArraySpec((size,), "float64") for size in (7, 1, 1)))
    candidates = [Candidate(text, Symmetry.parse(text, spec)) for text in texts]
    tested = [SymmetryVerdict(each, each.name, Difference(0.01 * k, 0.01), REFUTED) for k, each in enumerate(candidates)]
    assert [verdict.holds for verdict in with_consequences(tested)] == [True] * 6 + [False]


def test_noise_alone_has_no_mirror():
    rng = np.random.default_rng(0)
    episodes = []
    for _ in range(30):
        seen, goal = rng.normal(size=(61, 4)), np.tile(rng.normal(size=2), (61, 1))
        episodes.append(Episode(seen, seen[:, :2], goal, rng.uniform(-1, 1, (60, 2)), np.zeros(60)))
    steps = Steps.from_episodes(episodes)
    test = symmetry_verdicts.SymmetryTest(steps, np.arange(len(steps)), [0, 1, 2, 3], [0, 1])
    symmetry = Symmetry.parse("a0=-a0", SPEC)
    alone = test.verdict(Candidate("mirror of a0", symmetry))
    assert alone.loss.is_below(0.35, 1)  # actions do nothing, so any change of theirs fits
    assert alone.opposite.mean == pytest.approx(alone.loss.mean, abs=0.05)
    (verdict,) = test.verdicts([Candidate("mirror of a0", symmetry)], find_units(steps), [])
    assert verdict.is_uncertain
    assert not verdict.holds
