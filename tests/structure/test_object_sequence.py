"""Several objects: which dimensions of the goal are whose, what touches them, in which order, and when one is placed."""

from dataclasses import replace

import numpy as np
import pusher
import pytest
from pusher import RADIUS, Pusher, options_of, play, repeated_random_actions
from two_objects import COLUMNS, SPEC, THRESHOLD, TwoObjects, compute_reward

from hindsight_rl.records import ArraySpec, Episode
from hindsight_rl.rollout.plans import ProbingActor
from hindsight_rl.structure import Contact, axis_symmetries, explain_missing, infer_structure, plan_probing
from hindsight_rl.structure.columns import Gap, Units
from hindsight_rl.structure.contact import find_onsets
from hindsight_rl.structure.object_sequence import ObjectSequence, count_moved
from hindsight_rl.structure.steps import EXCEPTIONS, Steps
from hindsight_rl.structure.success import RewardPairs, find_success_distance, find_success_distances
from hindsight_rl.structure.workspace import find_workspace
from hindsight_rl.task_structure.affine import AffineMap
from hindsight_rl.task_structure.subgoals import Subgoals
from hindsight_rl.task_structure.symmetries import SymmetryGroup


def structure_of(world):
    episodes = play(world, 40, repeated_random_actions(1))
    found = infer_structure(episodes, SPEC)
    probing = probe(world, found, found.sequence)
    return infer_structure(episodes, SPEC, probing, compute_reward=compute_reward), probing


def probe(world, found, sequence):
    plan, probing = plan_probing(found, sequence), []
    for k in range(30):
        act = ProbingActor(plan, SPEC.action, np.random.default_rng([2, k]))
        probing += play(world, 1, lambda observation, is_first, act=act: act(observation))
    return probing


@pytest.fixture(scope="module")
def inferred():
    return structure_of(TwoObjects(0))


def steps_of(*paths, goals=((0.0,) * 4, (1.0,) * 4)):
    """Steps of episodes whose achieved goals are given, (T + 1, g) each, with goals in turn."""
    episodes = []
    for k, path in enumerate(paths):
        positions = np.array(path, float)
        goal = np.tile(goals[k % len(goals)], (len(positions), 1))
        episodes.append(
            Episode(positions, positions, goal, np.zeros((len(positions) - 1, 1)), np.zeros(len(positions) - 1))
        )
    return Steps.from_episodes(episodes)


def test_an_onset_while_another_object_moves_may_have_that_as_its_cause():
    rest, alone = [[0, 0, 0, 0]] * 2, [[0, 0, 0, 0]] * 2 + [[1, 1, 0, 0]]
    pushed = [*rest, [0, 0, 1, 1], [1, 1, 2, 2]]
    assert find_onsets(steps_of(alone, pushed).of_objects([(0, 1), (2, 3)])[0]).tolist() == [1]


@pytest.mark.parametrize(
    ("path", "onsets"),
    [
        ([0, 0, 1, 2], [1]),
        ([0, 0, 0.003, 0.006, 1, 2], [3]),  # pushed softly at first: two slow steps
        ([0, 0.003, 1, 2], []),  # never at rest
        ([0, 0, 1, 1.003, 1.006, 2], [1]),  # the first alone counts
        ([0, 1, 1.003, 2, 2, 3], [4]),  # it comes to rest at last
    ],
)
def test_slow_steps_between_rest_and_motion_are_part_of_the_onset(path, onsets):
    steps = steps_of(*[[[x, 0.0] for x in path]] * 2, goals=((-1.0, 0.0), (1.0, 0.0)))  # 1 is one standard deviation
    assert find_onsets(steps).tolist() == [*onsets, *(at + len(path) - 1 for at in onsets)]


def test_the_tool_and_both_objects_are_found(inferred):
    structure, probing = inferred
    assert structure.parts.objects == ((0, 1), (2, 3))
    assert structure.contact.tool == COLUMNS["tool"] * 2
    assert structure.contact.object_columns == COLUMNS["objects"]
    for contact in structure.sequence.contacts:
        assert contact.distances[1] == pytest.approx(RADIUS, abs=0.03)
    assert min(count_moved(Steps.from_episodes(probing), structure.parts.objects)) >= 0.4 * len(probing)


def test_each_object_has_a_subgoal(inferred):
    structure = inferred[0]
    first, other = Subgoals(options_of(structure)["subgoals"], SPEC)
    assert (first.achieved.columns, first.goal.columns, first.dimensions) == ((0, 1), (2, 3), (0, 1))
    assert (other.achieved.columns, other.goal.columns, other.dimensions) == ((0, 1), (4, 5), (2, 3))
    assert first.tolerance < RADIUS < first.switch_distance
    assert first.placed == other.placed == pytest.approx(THRESHOLD / 2**0.5, abs=0.005)
    assert "order 1, 2, the order of the goal" in next(f for f in structure.choices() if f.option == "subgoals").reason


def test_networks_see_either_object_in_the_place_of_the_first(inferred):
    first, other = Subgoals(options_of(inferred[0])["subgoals"], SPEC)
    assert (first.columns, other.columns) == ((2, 3, 6, 7), (4, 5, 8, 9))


def contact_of(columns, tool=0):
    return Contact(tool=(tool,), object_columns=columns, n_onsets=9, distances=(1.0, 1.0, 1.0), in_reach=1.0, moves_on=0.0)


def exchange(source, factor=(1.0,) * 7):
    return AffineMap(np.array(source), np.array(factor), np.zeros(7))


EXCHANGES = {(0, 1): exchange([0, 2, 1, 3, 5, 4, 6]), (1, 2): exchange([0, 1, 3, 2, 4, 6, 5])}
OTHER_SIGN = EXCHANGES | {(1, 2): exchange([0, 1, 3, 2, 4, 6, 5], [1, 1, 1, 1, 1, -1, -1])}
OTHER_SCALE = EXCHANGES | {(0, 1): exchange([0, 2, 1, 3, 5, 4, 6], [1, 1, 1, 1, 100, 0.01, 1])}
ABOUT_SAME = EXCHANGES | {(0, 1): exchange([0, 2, 1, 3, 5, 4, 6], [1, 1, 1, 1, 1.25, 0.8, 1])}
CENTIMETRES = Units(np.array([1, 1, 0.01, 1, 1, 1, 1.0]), np.zeros(7), np.ones(7, bool))
BY_GAPS = replace(Units.same(7), gaps=(Gap(4, 1, 1.0),))  # the tool, column 7, is column 1 less column 4
SHIFTED = Units(np.ones(7), np.array([0, 0, 0, 0, 0, 3.0, 0]), np.ones(7, bool))


@pytest.mark.parametrize(
    ("exchanges", "units", "columns"),
    [
        (EXCHANGES, Units.same(7), ((1, 4), (2, 5), (3, 6))),
        (ABOUT_SAME, Units.same(7), ((1, 4), (2, 5), (3, 6))),  # deviations of few steps
        (OTHER_SIGN, Units.same(7), ((1,), (2,), (3,))),
        (OTHER_SCALE, Units.same(7), ((1,), (2,), (3,))),
        (EXCHANGES, SHIFTED, ((1,), (2,), (3,))),
        (EXCHANGES, CENTIMETRES, ()),  # of the position of the second object
        ({(0, 1): EXCHANGES[0, 1]}, Units.same(7), ()),
    ],
)
def test_the_columns_of_each_object_follow_from_exchanges_of_neighbours(exchanges, units, columns):
    contacts = tuple(contact_of((column,)) for column in (1, 2, 3))
    sequence = ObjectSequence(((0,), (1,), (2,)), contacts, (), (1.0, 1.0, 1.0))
    assert sequence.with_columns(exchanges, units).columns == columns


def test_a_tool_made_of_columns_of_an_object_and_handles_leave_out_shared_columns():
    sequence = ObjectSequence(
        ((0,), (1,), (2,)), tuple(contact_of((column,), 7) for column in (1, 2, 3)), (), (1.0, 1.0, 1.0)
    )
    assert sequence.with_columns(EXCHANGES, BY_GAPS).columns == ()
    shared = replace(sequence, columns=((1,), (2,), (3,)))
    assert [" columns=" in text for text in shared.subgoals(BY_GAPS)] == [True] * 3
    assert [" columns=" in text for text in shared.subgoals(BY_GAPS, are_all=False)] == [False] * 3  # drawers have none


def test_mirrors_change_both_objects_and_objects_are_exchanged(inferred):
    structure = inferred[0]
    assert [(symmetry.candidate.axes, symmetry.candidate.objects) for symmetry in structure.symmetries] == [
        ((0,), ()),
        ((1,), ()),
        ((0, 1), ()),
        ((), (0, 1)),
    ]
    texts = options_of(structure)["symmetries"]
    assert len(SymmetryGroup(texts, SPEC)) == 16
    assert texts[3] == "o2=o4 o3=o5 o4=o2 o5=o3 o6=o8 o7=o9 o8=o6 o9=o7 g0=g2 g1=g3 g2=g0 g3=g1"
    mirrored = SymmetryGroup(texts[:1], SPEC).transformed("goal", np.array([[0.1, 0.2, 0.3, 0.4]]), 1)
    assert mirrored[0] == pytest.approx([-0.1, 0.2, -0.3, 0.4], abs=0.02)


def unequal(achieved_goal, desired_goal, info):
    """The first object may be farther from its goal than the second."""
    first, second = (np.linalg.norm((achieved_goal - desired_goal)[:, at : at + 2], axis=-1) for at in (0, 2))
    return ((first < 4 * THRESHOLD) & (second < THRESHOLD)) - 1.0


@pytest.mark.parametrize(("reward", "is_changed"), [(compute_reward, False), (unequal, True)])
def test_objects_are_exchanged_only_if_rewards_ignore_it(reward, is_changed):
    goals = [np.tile(goal, (3, 1)) for goal in np.random.default_rng(0).uniform(-1, 1, (8, 4))]
    episodes = [Episode(goal, goal, goal, np.zeros((2, 1)), np.zeros(2)) for goal in goals]
    changed = RewardPairs(reward, episodes).changed_by(axis_symmetries.exchange(4, 2, 0, 1))
    assert changed > EXCEPTIONS if is_changed else changed == 0


def test_positions_are_hidden_and_the_gaps_are_not(inferred):
    hidden = set(options_of(inferred[0])["hidden_observation"])
    assert hidden >= {*COLUMNS["tool"], *COLUMNS["objects"]}
    assert not hidden & set(COLUMNS["gaps"])


@pytest.mark.slow
def test_the_order_the_units_and_the_signs_of_the_columns_do_not_matter(inferred):
    rng, plain = np.random.default_rng(4), inferred[0]
    scale = np.exp(rng.uniform(-2, 2, 12)) * rng.choice([-1, 1], 12)
    order = rng.permutation(12)
    position = np.argsort(order)  # where each column stands now
    structure = structure_of(TwoObjects(0, order, scale))[0]
    assert structure.contact.tool == tuple(position[list(plain.contact.tool)])
    seen = rng.uniform(-1, 1, (5, 12))
    found, expected = (Subgoals(options_of(each)["subgoals"], SPEC) for each in (structure, plain))
    for one, other in zip(found, expected, strict=True):
        assert one.distance((seen * scale)[:, order]) == pytest.approx(other.distance(seen), rel=1e-4)
        assert one.dimensions == other.dimensions


@pytest.mark.slow
def test_an_object_whose_goals_lie_where_it_does_not_rest_comes_last():
    structure = structure_of(TwoObjects(0, far=3.0))[0]
    assert structure.sequence.order == (1, 0)
    assert "order 2, 1, not the order of the goal" in structure.sequence.evidence(structure.units)


def test_without_rewards_an_object_is_placed_within_the_distance_of_contact():
    contact = Contact(tool=(0,), object_columns=(1,), n_onsets=2, distances=(0.1, 0.2, 0.3), in_reach=1.0, moves_on=0.0)
    sequence = ObjectSequence(((0,), (1,)), (contact, contact), (), (1.0, 1.0))
    assert sequence.placed(0) == 0.2
    assert "as rewards show no distance of success" in sequence.evidence(Units.same(12))


def test_an_object_that_is_not_touched_gives_no_subgoal():
    class Fixed(TwoObjects):
        def step(self, action):
            other = self.puck[2:].copy()
            super().step(action)
            self.puck[2:] = other

    episodes = play(Fixed(0), 40, repeated_random_actions(1))
    assert infer_structure(episodes, SPEC).sequence.contacts[1].n_onsets == 0  # guessed: it may be touched as the other is
    structure = structure_of(Fixed(0))[0]
    assert structure.sequence is None
    assert "subgoals" not in options_of(structure)


def test_an_object_that_probing_does_not_move_is_reported():
    world = TwoObjects(0)
    episodes = play(world, 40, repeated_random_actions(1))
    found = infer_structure(episodes, SPEC)
    plan = plan_probing(found, found.sequence)
    plan = replace(plan, objects=plan.objects[:1])
    act, probing = ProbingActor(plan, SPEC.action, np.random.default_rng(2)), []
    world.rng = np.random.default_rng(8)
    for _ in range(3):
        probing += play(world, 1, lambda observation, is_first: act(observation), steps=12)
    found = infer_structure(episodes, SPEC, probing)
    assert found.contact is None
    assert found.sequence is None
    assert "moved them in 3, 0 of 3 episodes, 2 needed" in explain_missing(found)[0]


def test_each_object_has_its_own_range():
    goals = (np.array([-3.0, 0, 0, 0]), np.array([5.0, 0, 0, 2]))
    steps = steps_of([[9, 0, 0, 0], [9, 0, 0, 0]], [[0, 0, 0, 0], [9, 0, 0, 0]], goals=goals)
    options = find_workspace(steps, steps, ((0, 1), (2, 3))).options()
    assert options["lowest_achieved"] == (-6, -3, -0.5, -0.5)
    assert options["highest_achieved"] == (12, 3, 0.5, 2.5)


@pytest.mark.parametrize(
    ("reward", "distance"),
    [
        (compute_reward, THRESHOLD),
        (lambda a, g, info: -(np.abs(a - g).max(1) > 0.3).astype(float), 0.3),
        (lambda a, g, info: -np.linalg.norm(a - g, axis=1), None),  # dense
        (lambda a, g, info: np.zeros(len(g)), None),
        (lambda a, g, info: ((a >= g) & (a < g + 0.2)).all(1) - 1.0, 0.2),
        (lambda a, g, info: (a <= g).all(1) - 1.0, None),
        (lambda a, g, info: -((np.abs(a - g) > [1, 1, 2, 2]).any(1)).astype(float), None),  # other for other numbers
    ],
)
def test_the_distance_of_success_is_read_from_rewards(reward, distance):
    goals = [np.tile(goal, (3, 1)) for goal in np.random.default_rng(0).uniform(-1, 1, (8, 4))]
    episodes = [Episode(goal, goal, goal, np.zeros((2, 1)), np.zeros(2)) for goal in goals]
    assert find_success_distance(reward, episodes) == (distance and pytest.approx(distance, abs=0.003))


@pytest.mark.parametrize(
    ("reward", "distances"),
    [
        (unequal, (4 * THRESHOLD, THRESHOLD)),
        (lambda a, g, info: -(np.linalg.norm(a - g, axis=1) > 0.3).astype(float), (0.3 / 2**0.5, 0.3 / 2**0.5)),
        (lambda a, g, info: -np.linalg.norm(a - g, axis=1), None),
        (lambda a, g, info: (a[:, 0] > g[:, 0]) - 1.0, None),  # on one side only
    ],
)
def test_each_object_has_its_own_distance_of_success(reward, distances):
    goals = [np.tile(goal, (3, 1)) for goal in np.random.default_rng(0).uniform(-1, 1, (8, 4))]
    episodes = [Episode(goal, goal, goal, np.zeros((2, 1)), np.zeros(2)) for goal in goals]
    found = find_success_distances(reward, episodes, [(0, 1), (2, 3)])
    assert found == (distances and pytest.approx(distances, abs=0.003))


class Turned(Pusher):
    """The object turns while it is pushed. Its angle is a dimension of the goal, too, and the last column."""

    def reset(self):
        super().reset()
        self.goal = np.append(self.goal, self.rng.uniform(-1, 1))
        self.puck = np.append(self.puck, self.rng.uniform(-1, 1))

    def step(self, action):
        angle, self.puck = self.puck[2], self.puck[:2]
        before = self.puck
        super().step(action)
        self.puck = np.append(self.puck, angle + 4 * (self.puck - before) @ (1, -1))

    def see(self):
        angle, puck = self.puck[2], self.puck
        self.puck = puck[:2]
        seen = super().see()
        self.puck = puck
        return np.append(seen[:-1], angle)


def test_of_an_object_that_turns_the_tool_meets_the_position():
    spec = replace(pusher.SPEC, goal=ArraySpec((3,), "float64"))
    world = Turned(0)
    episodes = play(world, 30, repeated_random_actions(1))
    found = infer_structure(episodes, spec)
    assert found.parts.objects == ((0, 1, 2),)
    assert found.sequence.dimensions == ((0, 1),)
    act = ProbingActor(plan_probing(found, found.sequence), spec.action, np.random.default_rng(2))
    found = infer_structure(episodes, spec, play(world, 20, lambda observation, is_first: act(observation)))
    assert found.contact.tool == pusher.COLUMNS["tool"]
    assert found.sequence.is_plain
    (text,) = options_of(found)["subgoals"]
    assert text.startswith("reach achieved=0,1 goal=2,3 ")
    assert text.endswith(" dimensions=0,1")
    assert 9 not in found.hidden_columns  # the angle, which no other column shows
    assert not any(each.holds for each in found.symmetries)


class Rolled(Turned):
    """It follows a tool that is near, and turns as a wheel does that rolls along the first axis."""

    def step(self, action):
        moved = 0.05 * action * (np.linalg.norm(self.puck[:2] - self.tool) < 0.4)
        self.tool, self.velocity = self.tool + 0.1 * action, 0.1 * action
        self.puck = self.puck + np.append(moved, 4 * moved[0])


def test_in_a_mirror_an_angle_changes_as_its_column_does():
    spec = replace(pusher.SPEC, goal=ArraySpec((3,), "float64"))
    episodes, probing = (play(Rolled(seed), 40, repeated_random_actions(seed + 1)) for seed in (0, 2))
    for hidden in ((), (9,)):
        found = infer_structure(episodes, spec, probing, hidden=hidden)
        holding = [each.candidate for each in found.symmetries if each.holds]
        factors = {each.name: each.symmetry.goal.factor.tolist() for each in holding}
        assert factors == {"mirror of axis 0": [-1, 1, -1], "mirror of axis 1": [1, -1, 1]}


class Level(Pusher):
    """The goal has the height of the object, too, which never changes. It is the last column."""

    def reset(self):
        super().reset()
        self.goal, self.puck = np.append(self.goal, 3.0), np.append(self.puck, 3.0)

    def step(self, action):
        self.puck = self.puck[:2]
        super().step(action)
        self.puck = np.append(self.puck, 3.0)

    def see(self):
        puck, self.puck = self.puck, self.puck[:2]
        seen = super().see()
        self.puck = puck
        return seen


def test_what_never_changes_stays_as_it_is_in_a_mirror():
    spec = replace(pusher.SPEC, goal=ArraySpec((3,), "float64"))
    known = ["o0=-o0 o2=-o2 o4=-o4 o6=-o6 o8=-o8 g0=-g0 a0=-a0"]
    episodes = play(Level(0), 40, repeated_random_actions(1))
    found = infer_structure(episodes, spec, play(Level(2), 20, repeated_random_actions(3)), known=known)
    assert (found.sequence.dimensions, found.sequence.has_poses) == (((0, 1),), True)
    holding = [each for each in found.symmetries if each.holds]
    assert [each.is_known for each in holding if each.text in known] == [True]
    for each in holding:
        goal = each.candidate.symmetry.goal
        assert (goal.source[2], goal.factor[2], goal.offset[2]) == (2, 1, 0)
    assert {axis for each in holding for axis in each.candidate.axes} == {0, 1}
