"""How a symmetry changes columns that are no positions: by what they correlate with."""

from dataclasses import replace

import numpy as np
import pytest
from pusher import Pusher, play, repeated_random_actions

from hindsight_rl.structure.axis_symmetries import AxisSymmetries, goals_lie_around, pair_columns, values_overlap
from hindsight_rl.structure.columns import Gap, Units
from hindsight_rl.structure.contact import measure_contact
from hindsight_rl.structure.controlled import find_controlled_columns
from hindsight_rl.structure.steps import Steps, correlations


def pairs_in_a_mirror(profiles):
    """The last signal is constant; the mirror changes the sign of the first one."""
    profiles = np.array(profiles)
    return pair_columns(profiles, profiles * [-1.0, 1.0, 1.0])


def test_a_column_of_the_mirrored_axis_changes_its_sign_and_others_stay():
    assert pairs_in_a_mirror([[0.8, 0.0, 0.1], [0.0, 0.8, 0.1]]) == [(0, 0, -1.0, -1.0), (1, 1, 1.0, 1.0)]


def test_left_and_right_finger_take_each_others_places():
    """Their velocities have opposite signs along the mirrored axis, and both lie on one side of 0."""
    assert pairs_in_a_mirror([[-0.6, 0.0, 0.6], [0.6, 0.0, 0.6], [0.8, 0.0, 0.0]]) == [(0, 1, 1.0, 1.0), (2, 2, -1.0, -1.0)]


def test_columns_whose_values_do_not_overlap_stay():
    mean, std = np.array([0.03, -0.04, 1.3]), np.array([0.02, 0.01, 0.2])  # two fingers, and the position of a box
    overlap = values_overlap(mean, std, np.ones((3, 3)))
    assert overlap.tolist() == [[True, True, False], [True, True, False], [False, False, True]]
    scaled = values_overlap(mean, std, std[:, None] / std)  # without known units: 1.5, 4 and 6.5 standard deviations
    assert scaled.tolist() == [[True, False, False], [False, True, False], [False, False, True]]
    profiles = np.array([[-0.6, 0.0, 0.6], [0.6, 0.0, 0.6]])
    assert pair_columns(profiles, profiles * [-1.0, 1.0, 1.0], np.eye(2) > 0) == [(0, 0, 1.0, 1.0), (1, 1, 1.0, 1.0)]


def test_a_column_that_correlates_with_nothing_stays():
    assert pairs_in_a_mirror([[-0.01, 0.02, 0.0], [0.02, 0.0, 0.01]]) == [(0, 0, 1.0, 1.0), (1, 1, 1.0, 1.0)]


def test_a_quarter_turn_takes_the_column_of_one_axis_for_that_of_the_other():
    """x -> -y, y -> x: the first column becomes minus the second one."""
    profiles = np.array([[0.9, 0.0], [0.0, 0.9]])
    turned = profiles[:, [1, 0]] * [-1.0, 1.0]
    assert pair_columns(profiles, turned) == [(0, 1, -1.0, 1.0)]


def test_correlations_are_those_of_numpy_and_0_for_a_constant():
    rng = np.random.default_rng(0)
    values, signals = rng.normal(size=(50, 2)), rng.normal(size=(3, 50))
    expected = np.corrcoef(values.T, signals)[:2, 2:]
    assert correlations(values, signals) == pytest.approx(expected)
    assert correlations(np.ones((50, 1)), signals) == pytest.approx(np.zeros((1, 3)))


@pytest.mark.parametrize(
    ("desired", "is_around"),
    [([-1, 1, -2, 2], True), ([1, 1, 1, 2], False), ([0, 0, 0, 0], False)],
    ids=["on both sides", "on one side", "as at the start"],
)
def test_a_mirror_needs_goals_on_both_sides_that_differ_from_the_start(desired, is_around):
    nothing, start = np.zeros((4, 1)), np.zeros((4, 2))
    goals = np.column_stack([np.full(4, 3.0), desired])
    steps = Steps(nothing, nothing, nothing, start, start, goals, episode=np.arange(4))
    assert goals_lie_around(steps, np.zeros(1), 1) is is_around


class Driven(Pusher):
    """The first action turns the tool, the second one drives it in its direction, which columns 8 and 9 show."""

    def reset(self):
        super().reset()
        self.heading = self.rng.uniform(-np.pi, np.pi)

    def step(self, action):
        self.heading += 0.6 * action[0]
        super().step(action[1] * np.array([np.cos(self.heading), np.sin(self.heading)]))

    def see(self):
        return np.array([*super().see()[:8], np.cos(self.heading), np.sin(self.heading)])


class Rolling(Driven):
    """It keeps a part of its speed and of its turn, columns 6 and 7, and may as well roll backward."""

    def reset(self):
        super().reset()
        self.motion = np.zeros(2)

    def step(self, action):
        self.motion = 0.4 * self.motion + 0.6 * action
        super().step(self.motion[::-1])

    def see(self):
        seen = super().see()
        seen[6:8] = self.motion
        return seen


class Tracked(Driven):
    """Each action drives a track, the left and the right one, whose speeds are columns 6 and 7."""

    def reset(self):
        super().reset()
        self.speeds = np.zeros(2)

    def step(self, action):
        self.speeds = 0.4 * self.speeds + 0.6 * action
        super().step(np.array([self.speeds[1] - self.speeds[0], self.speeds.mean()]))

    def see(self):
        seen = super().see()
        seen[6:8] = self.speeds
        return seen


def drive_to_the_object(rng, actions_of=lambda turn, drive: [turn, drive]):
    """Return a policy that turns to the object and drives, and often acts at random."""

    def choose(observation, is_first):
        x, y, cosine, sine = observation["observation"][[4, 5, 8, 9]]
        turn = np.arctan2(cosine * y - sine * x, cosine * x + sine * y)
        wish = np.array(actions_of(turn / 0.6, 1.0)) + 0.3 * rng.normal(size=2)
        return rng.uniform(-1, 1, 2) if rng.random() < 0.3 else wish

    return choose


def by_tracks(turn, drive):
    return [drive - turn / 2, drive + turn / 2]


@pytest.mark.parametrize(
    ("world", "policy", "actions"),
    [
        (Driven(0), drive_to_the_object(np.random.default_rng(2)), ["a0=-a0"]),
        (Rolling(0), drive_to_the_object(np.random.default_rng(2), lambda turn, drive: [drive, turn]), ["a1=-a1"]),
        (Tracked(0), drive_to_the_object(np.random.default_rng(2), by_tracks), ["a0=a1", "a1=a0"]),
    ],
    ids=["turn and drive", "forward and backward", "two tracks"],
)
def test_actions_in_the_frame_of_the_tool_change_so_that_mirrored_steps_are_predicted_best(world, policy, actions):
    controlled = find_controlled_columns(Steps.from_episodes(play(world, 40, repeated_random_actions(1))))
    steps = Steps.from_episodes(play(world, 60, policy))
    contact, visible = measure_contact(steps, (0, 1), (2, 3)), range(10)
    found = AxisSymmetries(steps, visible, contact, controlled, Units.same(10)).find()
    mirrors = {verdict.candidate.axes: verdict for verdict in found}
    for axis, column in ((0, 8), (1, 9)):
        entries = mirrors[(axis,)].text.split()
        assert mirrors[(axis,)].holds
        assert f"o{column}=-o{column}" in entries
        assert [entry for entry in entries if entry.startswith("a")] == actions


def test_a_column_that_is_seen_never_becomes_one_that_is_not():
    """The second position of the tool is known by its gap to the object alone, so it is a column of steps only."""
    columns, episodes = [0, 2, 3, 5], play(Pusher(0), 60, repeated_random_actions(1))
    seen = [replace(each, observation=each.observation[:, columns]) for each in episodes]
    units = replace(Units.same(4), gaps=(Gap(column=3, of=2, factor=1.0),))
    steps = units.apply(Steps.from_episodes(seen))
    contact = measure_contact(steps, (0, 4), (1, 2))
    found = AxisSymmetries(steps, range(4), contact, find_controlled_columns(steps), units).find()
    assert [verdict.candidate.axes for verdict in found] == [(0,), (1,)]  # no quarter turn


class Frames(Pusher):
    """It shows all columns of the step before, too. Everything happens around (0.3, 0.2)."""

    def reset(self):
        super().reset()
        self.tool, self.puck, self.goal = (place + np.array([0.3, 0.2]) for place in (self.tool, self.puck, self.goal))
        self.before = np.zeros(10)

    def see(self):
        now, before = super().see(), self.before
        self.before = now
        return np.concatenate([now, before])


def test_columns_of_the_step_before_change_as_those_of_now():
    world = Frames(0)
    steps = Steps.from_episodes(play(world, 60, repeated_random_actions(1)))
    controlled = find_controlled_columns(steps)
    visible = [column for column in range(20) if column % 10 not in (8, 9)]  # no noise, and no constant
    found = AxisSymmetries(steps, visible, measure_contact(steps, (0, 1), (2, 3)), controlled, Units.same(20)).find()
    (mirror,) = (verdict for verdict in found if verdict.candidate.axes == (0,))
    change = mirror.candidate.symmetry.observation
    for column in (0, 2, 4, 6):
        assert (change.factor[column + 10], change.offset[column + 10]) == (change.factor[column], change.offset[column])
    assert change.offset[[0, 2]] == pytest.approx(0.6, abs=0.01)
