from dataclasses import replace

import numpy as np
import pytest
from pusher import COLUMNS, RADIUS, SPEC, Pusher, options_of, play, repeated_random_actions, structure_of

from hindsight_rl.errors import InputError
from hindsight_rl.options import STRUCTURE
from hindsight_rl.records import ArraySpec, Episode, GoalSpec
from hindsight_rl.rollout.plans import ProbingActor
from hindsight_rl.structure import Contact, explain_missing, infer_structure, plan_probing
from hindsight_rl.structure.axis_symmetries import AxisSymmetries
from hindsight_rl.structure.contact import is_at_task
from hindsight_rl.structure.hidden_columns import mirrored_positions
from hindsight_rl.structure.model import Difference
from hindsight_rl.structure.parts import Part, Parts
from hindsight_rl.structure.random_actions import Inertia
from hindsight_rl.structure.steps import Steps
from hindsight_rl.structure.symmetry_verdicts import Candidate, SymmetryVerdict, with_consequences
from hindsight_rl.structure.walls import Stops
from hindsight_rl.task_structure.subgoals import Subgoals
from hindsight_rl.task_structure.symmetries import Symmetry, SymmetryGroup


class Walled(Pusher):
    """The tool cannot go beyond 1 in x. All goals are within 0.8."""

    def step(self, action):
        super().step(action)
        self.tool[0] = min(self.tool[0], 1.0)


class Sloping(Pusher):
    """The tool slides towards positive x."""

    def step(self, action):
        super().step(action + np.array([0.5, 0.0]))


class Jointed(Pusher):
    """Column 8 is the last joint of an arm. It turns with the tool along y, about 0.8."""

    def see(self):
        seen = super().see()
        seen[8] = 0.8 + 0.2 * self.tool[1]
        return seen


class Turned(Pusher):
    """Objects move along the direction of the tool alone. The third action turns it."""

    def reset(self):
        super().reset()
        self.angle, self.spin = self.rng.uniform(-0.7, 0.7), 0.0

    def step(self, action):
        before = self.puck
        super().step(action[:2])
        self.puck = before + (self.puck - before) @ self.direction * self.direction
        self.spin = 0.1 * action[2]
        self.angle += self.spin

    @property
    def direction(self):
        return np.array([np.cos(self.angle), np.sin(self.angle)])

    def see(self):
        return np.concatenate([self.tool, self.puck, self.puck - self.tool, self.direction, [self.spin, 3.0]])


def test_probing_makes_contact_in_nearly_every_episode(inferred):
    _, episodes, probing = inferred

    def contacts(played):
        return np.mean([np.ptp(episode.achieved_goal, axis=0).max() > 0.01 for episode in played])

    assert contacts(probing) >= 0.9 > contacts(episodes)


def test_the_tool_is_found_and_the_distance_of_contact(inferred):
    structure = inferred[0]
    assert structure.copies.columns == COLUMNS["object"]
    assert structure.contact.tool == COLUMNS["tool"]
    assert structure.contact.distances[1] == pytest.approx(RADIUS, abs=0.02)
    (subgoal,) = Subgoals(options_of(structure)["subgoals"], SPEC)
    assert (subgoal.achieved.columns, subgoal.goal.columns) == (COLUMNS["tool"], COLUMNS["object"])
    assert subgoal.tolerance < RADIUS < subgoal.switch_distance


def test_mirrors_and_the_quarter_turn_hold_and_make_a_finite_group(inferred):
    structure = inferred[0]
    assert [(symmetry.candidate.axes, symmetry.holds) for symmetry in structure.symmetries] == [
        ((0,), True),
        ((1,), True),
        ((0, 1), True),
    ]
    assert len(SymmetryGroup(options_of(structure)["symmetries"], SPEC)) == 8


def shifted(episode, by):
    """Return an episode of a world that lies elsewhere."""
    observation = episode.observation.copy()
    for name in ("tool", "object"):
        observation[:, COLUMNS[name]] += by
    goals = {name: getattr(episode, name) + by for name in ("achieved_goal", "desired_goal")}
    return replace(episode, observation=observation, **goals)


@pytest.mark.slow
def test_the_centre_of_a_mirror_is_exact_for_the_size_of_the_task_wherever_it_lies(inferred):
    _, episodes, probing = inferred
    by = np.array([1001.34, 0.749])
    played, sought = ([shifted(episode, by) for episode in each] for each in (episodes, probing))
    elsewhere = infer_structure(played, SPEC, sought)
    assert [symmetry.holds for symmetry in elsewhere.symmetries] == [True, True, True]
    start = np.mean([episode.observation[0, COLUMNS["tool"]] for episode in played + sought], axis=0)
    for symmetry, centre, axis in zip(elsewhere.symmetries, start, "01", strict=False):
        (mirrored,) = [word for word in symmetry.text.split() if word.startswith(f"g{axis}=")]
        assert float(mirrored[3:].removesuffix(f"-g{axis}")) / 2 == pytest.approx(centre, abs=1e-3)


@pytest.mark.slow
def test_columns_of_which_the_axis_is_unclear_get_the_sign_that_fits(inferred):
    _, episodes, probing = inferred
    (noise,) = COLUMNS["noise"]
    shown = infer_structure(episodes, SPEC, probing, hidden=())
    assert [symmetry.holds for symmetry in shown.symmetries] == [True] * 3
    few = infer_structure(episodes, SPEC, probing, hidden=(*COLUMNS["velocity"], noise))
    assert [symmetry.holds for symmetry in few.symmetries] == [True] * 3
    assert not any(f"o{column}=" in symmetry.text for symmetry in few.symmetries for column in COLUMNS["velocity"])


def test_a_hidden_column_takes_part_where_a_symmetry_exchanges_it_with_a_visible_one(inferred):
    """A quarter turn takes the hidden velocity along x for the visible one along y."""
    _, episodes, probing = inferred
    (along_x, along_y), (noise,) = COLUMNS["velocity"], COLUMNS["noise"]
    found = infer_structure(episodes, SPEC, probing, hidden=(along_x, noise))
    assert [symmetry.holds for symmetry in found.symmetries] == [True] * 3
    assert f"o{along_y}=o{along_x}" in found.symmetries[2].text


@pytest.mark.slow
def test_a_mirror_that_fails_only_beyond_the_goals_holds():
    structure = structure_of(world=Walled(0))[0]
    assert [symmetry.holds for symmetry in structure.symmetries] == [True, True, True]


class WithWrist(Pusher):
    """Columns 2 and 3 are a wrist beside the tool."""

    def see(self):
        return np.insert(super().see(), [2, 2], self.tool + np.array([0.12, 0.04]))


@pytest.mark.parametrize(("seed", "first"), [(1, (0, 3)), (4, (0, 1))])
def test_the_tool_and_not_its_wrist_touches_whichever_few_contacts_show(seed, first):
    spec, world = replace(SPEC, observation=ArraySpec((12,), "float64")), WithWrist(seed)
    episodes = play(world, 8, repeated_random_actions(seed + 1))
    found = infer_structure(episodes, spec)
    plan, probing = plan_probing(found, found.sequence), []
    for k in range(30):
        act = ProbingActor(plan, spec.action, np.random.default_rng([2, k]))
        probing += play(world, 1, lambda observation, is_first, act=act: act(observation))
    probed = infer_structure(episodes, spec, probing)
    assert (found.contact.axes, probed.contact.axes) == (first, (0, 1))
    assert [each.holds for each in probed.symmetries] == [True] * 3  # with the wrist about its own place


def test_a_false_mirror_does_not_hold():
    structure = structure_of(world=Sloping(1))[0]
    assert [(symmetry.candidate.axes, symmetry.holds) for symmetry in structure.symmetries] == [
        ((0,), False),
        ((1,), True),
        ((0, 1), False),
    ]
    assert [sentence[:31] for sentence in explain_missing(structure)] == [
        "mirror of axis 0 does not hold:",
        "quarter turn of axes 0 and 1 do",
    ]


def test_steps_at_the_task_are_those_where_goals_and_starts_lie_and_within_contact():
    contact = Contact(tool=(0,), object_columns=(1,), n_onsets=2, distances=(0.1, 0.1, 0.1), in_reach=1.0, moves_on=0.0)
    tool = np.array([0.0, 0.5, 1.05, 1.2, 0.5])
    puck = np.array([0.5, 0.5, 0.5, 0.5, -0.2])  # starts at 0.5, the tool at 0, and the goal is 1
    seen, goal = np.column_stack([tool, puck]), np.full((6, 1), 1.0)
    seen = np.concatenate([seen, seen[-1:]])
    episode = Episode(seen, seen[:, 1:], goal, np.zeros((5, 1)), np.zeros(5))
    assert is_at_task(Steps.from_episodes([episode]), contact).tolist() == [True, True, True, False, False]


def symmetries_with(losses, distance, opposite=4.0):
    """The mirror of each of two axes, and the quarter turn."""
    texts = {(0,): "g0=-g0 a0=-a0", (1,): "g1=-g1 a1=-a1", (0, 1): "g0=-g1 g1=g0 a0=-a1 a1=a0"}
    return [
        SymmetryVerdict(
            Candidate("it", Symmetry.parse(text, SPEC), axes),
            text,
            Difference(loss, 0.1),
            Difference(opposite, 0.1),
            distance=distance,
        )
        for (axes, text), loss in zip(texts.items(), losses, strict=True)
    ]


@pytest.mark.parametrize(("turn_loss", "positions"), [(0.0, [0, 1, 2, 3]), (1.0, [1, 3])])
def test_a_mirror_that_follows_from_a_quarter_turn_holds_and_positions_may_be_hidden(turn_loss, positions):
    """The mirror of the second axis and x -> -y, y -> x make the mirror of the first axis."""
    contact = Contact((0, 1), (2, 3), 5, (0.1, 0.1, 0.1), 1.0, 0.0)
    symmetries = with_consequences(symmetries_with([0.3, 0.0, turn_loss], 0.0))
    assert [each.holds for each in symmetries] == [turn_loss == 0, True, turn_loss == 0]
    assert symmetries[0].verdict == ("follows from others" if turn_loss == 0 else "is uncertain, so it is not used")
    assert mirrored_positions(contact, symmetries) == positions


def test_of_symmetries_with_a_refuted_product_the_least_certain_is_left_out():
    found = with_consequences(symmetries_with([1.0, 0.0, 0.1], 0.0))
    assert [each.holds for each in found] == [False, True, False]
    assert [each.verdict for each in found] == ["does not hold", "holds", "is uncertain, so it is not used"]


def test_where_walls_may_be_an_uncertain_symmetry_follows_from_no_others():
    found = with_consequences(symmetries_with([0.3, 0.0, 0.1], 1.0))
    assert [each.holds for each in found] == [False, True, False]


def test_a_model_that_does_not_refute_the_opposite_motion_accepts_nothing():
    found = with_consequences(symmetries_with([0.0, 0.0, 0.0], 0.0, opposite=0.3))
    assert {each.verdict for each in found} == {"is uncertain, so it is not used"}
    assert "the model knows too little" in found[0].evidence()


@pytest.mark.parametrize(("goal_size", "relabel"), [(2, "future=0.6,desired=0.4"), (4, "future=0.6,desired=0.2")])
def test_an_object_whose_goal_is_a_position_learns_without_goals_of_their_own_episodes(inferred, goal_size, relabel):
    reached = inferred[0]
    found = replace(reached, copies=replace(reached.copies, columns=tuple(range(goal_size))))
    assert options_of(found)["relabel"] == relabel


def test_an_object_that_must_be_hit_gets_exact_hits_later(inferred):
    reached = inferred[0]
    contact = replace(reached.contact, in_reach=0.1, moves_on=0.5)
    hit = replace(reached, sequence=replace(reached.sequence, contacts=(contact,)), time_limit=50)
    options = options_of(hit)
    assert not {"subgoals", "discount"} & options.keys()
    assert options["action_l2"] == 0.05
    assert (options["exploration_decay"], options["exploration_decay_start"]) == (0.4, 100_000)
    assert options["relabel_schedule"] == ("100000: future=0.35,desired=0.15",)
    later = options_of(replace(hit, time_limit=None, longest_episode=100))
    assert later["exploration_decay_start"] == 200_000
    assert not {"discount", "exploration_decay", "relabel_schedule"} & options_of(reached).keys()


def test_graded_rewards_count_where_many_numbers_must_be_right(inferred):
    reached = replace(inferred[0], tolerance_levels=3)
    assert "tolerance_levels" not in options_of(reached)
    near = replace(reached, parts=Parts((Part((0, 1), "body", 0.0),), 1.0), sequence=None, inertia=Inertia(0.5, 5.0))
    assert "tolerance_levels" not in options_of(near)  # two numbers
    many = replace(near, copies=replace(near.copies, columns=tuple(range(10))))
    assert (options_of(many)["tolerance_levels"], options_of(many)["action_l2"]) == (3, 0.025)  # 0.1 / 4
    assert "tolerance_levels" not in options_of(replace(many, tolerance_levels=2))  # 20 of all together


@pytest.mark.parametrize(
    ("steps_to_goal", "apart", "limit", "goal_size", "presets"),
    [
        (50.0, 0.9, 300, 2, ["waypoints", "many_starts"]),
        (50.0, 0.1, 300, 2, ["waypoints"]),  # all episodes start at one position
        (50.0, 0.9, None, 2, ["waypoints"]),
        (50.0, 0.9, 300, 4, []),
        (50.0, 0.9, 300, 1, []),  # along a line there is one path
        (39.0, 0.9, 300, 2, []),
    ],
)
def test_far_goals_of_few_dimensions_get_waypoints(inferred, steps_to_goal, apart, limit, goal_size, presets):
    copies = replace(inferred[0].copies, columns=tuple(range(goal_size)))
    parts, inertia = Parts((Part((0, 1), "body", 0.0),), 1.0), Inertia(0.5, steps_to_goal, apart)
    far = replace(inferred[0], parts=parts, sequence=None, inertia=inertia, copies=copies, time_limit=limit)
    assert [feature.preset for feature in far.features()] == ["body", *presets]
    fast, fragile = (replace(far, inertia=replace(inertia, **change)) for change in ({"has_speed": True}, {"broken": 0.2}))
    assert [feature.preset for feature in fast.features()] == ["body", "speeds"]
    assert [feature.preset for feature in fragile.features()] == ["body"]


def test_far_goals_need_no_waypoints_where_nothing_stops_the_body(inferred):
    parts = Parts((Part((0, 1), "body", 0.0),), 1.0)
    far = replace(inferred[0], parts=parts, sequence=None, inertia=Inertia(0.5, 50.0), stops=Stops(0, 5))
    pits, walls = replace(far, inertia=Inertia(0.5, 50.0, broken=0.1)), replace(far, stops=Stops(1, 5))
    for each in (pits, walls, replace(far, stops=None)):
        assert [feature.preset for feature in each.features()] == ["body", "waypoints"]
        assert not any("no planned paths" in line for line in explain_missing(each))
    assert [feature.preset for feature in far.features()] == ["body"]
    assert any("no planned paths" in line and "in 5 episodes" in line for line in explain_missing(far))


def test_every_finding_names_its_evidence(inferred):
    for choice in inferred[0].choices():
        assert any(character.isdigit() for character in choice.reason), choice


@pytest.mark.slow
def test_the_order_the_units_and_the_signs_of_the_columns_do_not_matter(inferred):
    rng, plain = np.random.default_rng(4), inferred[0]
    scale = np.exp(rng.uniform(-2, 2, 10)) * rng.choice([-1, 1], 10)
    order = rng.permutation(10)
    position = np.argsort(order)  # where each column stands now
    structure = structure_of(order, scale)[0]
    assert structure.contact.tool == tuple(position[list(plain.contact.tool)])
    assert structure.hidden_columns == tuple(sorted(position[list(plain.hidden_columns)]))
    seen = rng.uniform(-1, 1, (5, 10))
    shown = (seen * scale)[:, order]
    (subgoal,), (expected,) = (Subgoals(options_of(each)["subgoals"], SPEC) for each in (structure, plain))
    assert subgoal.distance(shown) == pytest.approx(expected.distance(seen), rel=1e-4)
    assert subgoal.tolerance == pytest.approx(expected.tolerance, rel=0.05)
    group, plain_group = (SymmetryGroup(options_of(each)["symmetries"], SPEC) for each in (structure, plain))
    assert len(group) == len(plain_group) == 8
    for element in range(8):
        transformed = group.transformed("observation", shown, element)[:, position] / scale
        assert transformed == pytest.approx(plain_group.transformed("observation", seen, element), abs=0.05)


def in_unit(episode, unit):
    lengths = {name: getattr(episode, name) * unit for name in ("observation", "achieved_goal", "desired_goal")}
    return replace(episode, **lengths)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-3, 1e3], ids=["kilometres", "millimetres"])
def test_the_unit_of_length_does_not_matter(inferred, unit):
    expected, episodes, probing = inferred
    found = infer_structure([in_unit(each, unit) for each in episodes], SPEC, [in_unit(each, unit) for each in probing])
    assert (found.copies, found.differences) == (expected.copies, expected.differences)
    assert found.hidden_columns == expected.hidden_columns
    assert found.contact.tool == expected.contact.tool
    assert found.contact.distances == pytest.approx([unit * distance for distance in expected.contact.distances])
    assert options_of(found).keys() == options_of(expected).keys()
    one, other = (SymmetryGroup(options_of(each)["symmetries"], SPEC) for each in (found, expected))
    assert len(one) == len(other) == 8
    assert np.abs(one.maps["goal"].offset - unit * other.maps["goal"].offset).max() <= 1e-3 * unit


def test_a_column_on_one_side_of_0_changes_its_sign_about_where_it_starts():
    found, episodes, probing = structure_of(world=Jointed(0))
    steps = found.units.apply(Steps.from_episodes([*episodes, *probing]))
    verdicts = AxisSymmetries(steps, range(9), found.contact, found.controlled, found.units).find()
    along_x, along_y = (next(each for each in verdicts if each.candidate.axes == (axis,)) for axis in (0, 1))
    assert along_x.holds
    assert along_y.holds
    assert along_x.candidate.symmetry.observation.factor[8] == 1
    assert along_y.candidate.symmetry.observation.factor[8] == -1
    assert along_y.candidate.symmetry.observation.offset[8] == pytest.approx(1.6, abs=0.01)


def test_a_mirrored_tool_turns_the_other_way():
    spec = replace(SPEC, action=ArraySpec((3,), "float64", (-1.0,) * 3, (1.0,) * 3))
    found, _, _ = structure_of(world=Turned(0), spec=spec)
    mirrors = [each for each in found.symmetries if len(each.candidate.axes) == 1]
    assert len(mirrors) == 2
    for verdict in mirrors:
        symmetry = verdict.candidate.symmetry
        assert verdict.holds
        assert symmetry.action.factor[2] == -1
        assert symmetry.observation.factor[6:9].tolist() == [1, -1, -1]


def test_a_mirror_is_not_used_while_an_action_may_have_either_sign(inferred):
    verdict = inferred[0].symmetries[0]
    undecided = replace(verdict, candidate=replace(verdict.candidate, undecided=(2,)), is_product=None)
    assert undecided.is_close
    assert undecided.is_uncertain
    assert not undecided.holds
    assert undecided.reason().endswith("; with another sign or order of action 2 the error is about the same")
    assert replace(undecided, is_known=True).holds


def test_without_a_gap_contacts_show_the_units_of_the_tool():
    scale = np.array([3.0, -0.5, 2.0, -2.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0])  # no column holds the gap
    few, more = (play(Pusher(0, scale=scale), n, repeated_random_actions(1)) for n in (30, 60))
    structure = infer_structure(few, SPEC)
    assert structure.parts.has_object
    assert structure.n_onsets < 10
    assert structure.contact is None
    assert not options_of(structure).keys() & set(STRUCTURE)
    (sentence,) = explain_missing(structure)
    assert "uncertain in which units columns 0, 1, 6, 7 show positions" in sentence
    structure = infer_structure(more, SPEC)
    assert structure.contact.tool == (0, 1)
    assert structure.units.by_contact == (0, 1)
    assert structure.units.factor[:2] == pytest.approx([1 / 3, -2], rel=0.05)
    assert "o0, -2" in structure.units.evidence()


def test_an_object_that_no_action_touches_gives_no_subgoal():
    world = Pusher(0)
    episodes = play(world, 20, lambda observation, is_first: np.zeros(2))
    structure = infer_structure(episodes, SPEC)
    assert structure.contact is None
    assert "subgoals" not in options_of(structure)
    assert explain_missing(structure)[0].endswith("the action explains the change of no column")


def test_what_is_not_flat_numbers_is_refused():
    images = GoalSpec(ArraySpec((8, 8, 3), "uint8"), SPEC.goal, SPEC.action)
    with pytest.raises(InputError, match=r"observation \(8, 8, 3\) of uint8"):
        infer_structure(play(Pusher(0), 1, repeated_random_actions(0)), images)
    with pytest.raises(InputError, match="At least 3 episodes are needed, got 0"):
        infer_structure([], SPEC)


class Crashing(Pusher):
    """A car that always drives, which the first action steers, until it stands at a wall; column 2 is its heading."""

    def reset(self):
        super().reset()
        self.puck, self.heading = np.zeros(2), 0.0

    def step(self, action):
        self.heading += 0.3 * action[0]
        if np.abs(self.puck).max() < 1:
            self.puck = self.puck + 0.1 * np.array([np.cos(self.heading), np.sin(self.heading)])

    def see(self):
        return np.array([*self.puck, self.heading])


def test_a_car_that_rests_where_it_crashed_is_a_body():
    spec = replace(SPEC, observation=ArraySpec((3,), "float64"))
    [part] = infer_structure(play(Crashing(0), 20, repeated_random_actions(1)), spec).parts.parts
    assert part.kind == "body"
    assert part.rest > 0.5
