"""Which dimensions of a goal move together, and whether actions move them at once or only by touch."""

from dataclasses import replace

import numpy as np
import pytest
from pusher import Pusher, play, repeated_random_actions

from hindsight_rl.records import Episode
from hindsight_rl.structure.parts import _together, find_parts
from hindsight_rl.structure.steps import Steps

WAIT, LENGTH = 3, 9  # steps of rest at the start of an episode, and all of its positions


def steps_of(*paths, goals=None):
    """Steps of episodes whose achieved goals are given, (T + 1, g) each, with goals in turn."""
    episodes = []
    for k, path in enumerate(paths):
        achieved = np.array(path, float)
        goal = np.full_like(achieved, k % 2) if goals is None else np.tile(goals[k % len(goals)], (len(achieved), 1))
        actions = np.zeros((len(achieved) - 1, 1))
        episodes.append(Episode(achieved, achieved, goal, actions, np.zeros(len(actions))))
    return Steps.from_episodes(episodes)


def path(*speeds, wait=WAIT):
    """Positions that rest, then change for three steps at these speeds, then rest again."""
    moving = np.clip(np.arange(LENGTH) - wait, 0, 3)
    return np.outer(moving, speeds)


def body(*speeds):
    """Positions that change in every step."""
    return np.outer(np.arange(LENGTH), speeds)


ONE, OTHER, BOTH = path(1, 2, 0, 0), path(0, 0, 1, -1), path(1, 1, 1, 1)


def kinds(*paths, goals=None):
    return [(part.dimensions, part.kind) for part in find_parts(steps_of(*paths, goals=goals)).parts]


def test_what_moves_from_the_start_and_then_rests_is_a_body_that_breaks():
    """In five of eight steps it rests."""
    (part,) = find_parts(steps_of(*[path(speed, -speed, wait=0) for speed in (1, 2, 3)])).parts
    assert part.kind == "body"


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ([ONE, OTHER], [((0, 1), "object"), ((2, 3), "object")]),
        (
            [ONE, OTHER, path(0, 0, 1, -1, wait=5), BOTH, path(1, 2, 0, 0, wait=5)],
            [((0, 1), "object"), ((2, 3), "object")],
        ),  # some moves are those of both
        ([BOTH, BOTH], [((0, 1, 2, 3), "object")]),
        ([ONE, ONE], [((0, 1), "object"), ((2, 3), "unmoved")]),
        ([path(0, 0), path(0, 0)], [((0, 1), "unmoved")]),
        ([body(1, 1), body(1, -1)], [((0, 1), "body")]),
    ],
)
def test_dimensions_that_move_together_are_a_part(paths, expected):
    assert kinds(*paths) == expected


def test_a_goal_may_mix_a_body_and_objects():
    mixed = [np.hstack([body(1, 2), each]) for each in (ONE, OTHER)]
    parts = find_parts(steps_of(*mixed))
    assert (parts.body, parts.objects, parts.has_object) == ((0, 1), ((2, 3), (4, 5)), True)


def test_a_body_that_comes_to_rest_is_no_object():
    crashed = np.outer(np.minimum(np.arange(LENGTH), 2), (1, 1))
    parts = find_parts(steps_of(crashed, crashed))
    assert parts.parts[0].rest > 0.5
    assert (parts.parts[0].kind, parts.has_object) == ("body", False)


def test_an_object_that_settles_at_the_start_waits_until_it_is_touched():
    """It falls for a step, rests for six, and is pushed for one. A body that breaks rests only after it moved."""
    settles = np.array([[0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2]]).T
    assert kinds(settles, settles) == [((0,), "object")]
    breaks = np.array([[0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 4]]).T
    assert kinds(breaks, breaks) == [((0,), "body")]


def test_what_falls_alike_in_all_episodes_waits_until_it_is_caught():
    falls = np.arange(LENGTH)[:, None]
    caught = np.minimum(falls, LENGTH - 3)
    assert kinds(falls, falls, caught) == [((0,), "object")]


def test_what_moves_in_the_first_step_only_waits():
    """The first observation after a reset is that of another place, as some simulators have it."""
    jumps = [np.outer(np.minimum(np.arange(LENGTH), 1), speeds) for speeds in ((1, 2), (-1, 1), (3, -1))]
    assert kinds(*jumps) == [((0, 1), "object")]


@pytest.mark.parametrize("later", [(2,), (2, 3)])
def test_short_episodes_do_not_show_that_something_rests(later):
    """Most end after the first step, in which nothing moves. In the others actions move it from the second step on."""
    stands = np.zeros((2, 1))
    moves = np.array([[0], [0], *([position] for position in later)])
    assert kinds(stands, moves, stands, stands, moves, stands) == [((0,), "body")]
    assert kinds(stands, stands) == [((0,), "unmoved")]
    assert kinds(stands, [*stands, [0], [1]]) == [((0,), "body")]


def test_axes_of_one_position_are_joined_beside_a_dimension_that_is_always_the_same():
    slides, falls = path(1, 0, 0), path(0, 1, 0)
    steps = steps_of(slides, falls, goals=([1, 2, 0], [2, 1, 0]))
    found = find_parts(steps, errors_add_up=lambda dimensions: list(dimensions) == [0, 1])
    assert [part.dimensions for part in found.parts] == [(0, 1, 2)]


def test_vibrations_are_no_motion_where_all_goals_are_the_same():
    vibrating = np.hstack([path(1, 1), 1e-7 * (np.arange(LENGTH) % 2)[:, None]])
    assert kinds(vibrating, vibrating, goals=([0, 0, 5], [1, 1, 5])) == [((0, 1, 2), "object")]


def test_what_drops_alike_in_each_episode_is_not_moved_by_actions():
    """The height of a cube drops in the first step, and nothing touches the cube. In the fourth episode something does."""
    drops = path(0, 0, 0)
    drops[1:, 2] = -1
    assert kinds(drops, drops, drops) == [((0, 1, 2), "unmoved")]
    pushed = drops + path(1, 1, 0)
    assert kinds(drops, drops, drops, pushed) == [((0, 1, 2), "object")]


@pytest.mark.parametrize(
    ("at_random", "of_policy", "expected"),
    [
        (body(1, 1), path(1, 1), [((0, 1), "body")]),  # the policy waits
        (path(1, 1), body(1, 1), [((0, 1), "object")]),  # it pushes from the first step
        (path(0, 0), path(1, 1), [((0, 1), "object")]),  # it alone touches the object
    ],
)
def test_random_steps_alone_show_what_rests_by_itself(at_random, of_policy, expected):
    random_steps = steps_of(at_random, at_random)
    found = find_parts(steps_of(at_random, at_random, *[of_policy] * 8), random_steps)
    assert [(part.dimensions, part.kind) for part in found.parts] == expected
    assert found.parts[0].rest == find_parts(random_steps).parts[0].rest


def test_an_object_may_have_one_dimension():
    assert kinds(path(1), path(2)) == [((0,), "object")]
    assert not find_parts(steps_of(path(1), path(2))).has_positions
    assert find_parts(steps_of(path(1, 1), path(2, 2))).has_positions


def test_a_drawer_that_moved_does_not_divide_a_block_that_nothing_moved_yet():
    goals = ([0, 0, 0], [1, 1, 1])
    assert kinds(path(1, 0, 0), path(2, 0, 0), goals=goals) == [((0,), "object"), ((1, 2), "unmoved")]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ([path(1, 0), path(0, -1)], [((0, 1), "object")]),  # it slides along the ground, and falls from above
        ([path(1, 0), path(2, 0)], [((0, 1), "object")]),  # nothing lifted it yet
        ([np.hstack([each, body(1)]) for each in (path(1, 0), path(0, 1))], [((0, 1), "object"), ((2,), "body")]),
        ([path(*row) for row in np.eye(4)], [((k,), "object") for k in range(4)]),  # no position has four dimensions
    ],
)
def test_neighbours_that_move_alone_are_one_object_if_their_errors_add_up(paths, expected):
    steps = steps_of(*paths)
    parts = find_parts(steps, errors_add_up=lambda dimensions: True).parts
    assert [(part.dimensions, part.kind) for part in parts] == expected
    assert {part.dimensions for part in find_parts(steps).parts} >= {(0,), (1,)}


def test_with_noise_objects_with_the_dimensions_of_one_position_are_one():
    """A cube slides along two axes, and noise hides them where it falls."""
    steps = replace(steps_of(path(1, 1, 0), path(0, 0, -1), path(2, 1, 0), path(0, 0, 1)), noise=np.full(3, 1e-3))
    assert find_parts(steps).objects == ((0, 1), (2,))
    assert find_parts(steps, errors_add_up=lambda dimensions: True).objects == ((0, 1, 2),)
    assert find_parts(replace(steps, noise=None), errors_add_up=lambda dimensions: True).objects == ((0, 1), (2,))


def test_what_never_moves_and_is_never_asked_for_belongs_to_its_neighbour():
    goals = ([0, 0, 5], [1, 1, 5])
    assert kinds(path(1, 2, 0), path(2, 1, 0), goals=goals) == [((0, 1, 2), "object")]
    assert kinds(body(1, 2, 0), body(2, 1, 0), goals=goals) == [((0, 1, 2), "body")]


def test_what_never_changes_may_lie_between_the_axes_of_a_position():
    """In a plane of space: x, 0, z and a rotation by nothing. First nothing is lifted, then it moves along both axes."""
    goals = ([0, 0, 0, 1, 0, 0, 0], [1, 0, 1, 1, 0, 0, 0])
    rotation = np.array([0, 0, 0, 1, 0, 0, 0])
    slides = [path(speed, 0, 0, 0, 0, 0, 0) + rotation for speed in (1, 2)]
    lifted = [*slides, path(0, 0, 1, 0, 0, 0, 0) + rotation]
    for paths in (slides, lifted):
        steps = steps_of(*paths, goals=goals)
        assert find_parts(steps, errors_add_up=lambda dimensions: dimensions == [0, 2]).objects == (tuple(range(7)),)


def test_what_a_choice_moves_in_most_steps_is_a_body_although_it_rests_while_others_are_chosen():
    """Every third choice drives; with the others it rests."""
    choices = np.eye(3)[np.arange(30) % 3]
    moves = np.where(choices[:, :1] == 1, 1.0, 0.0)
    position = np.cumsum(moves, axis=0) - moves
    steps = Steps(position, choices, position + moves, position, position + moves, position * 0 + 9, np.arange(30) // 15)
    assert find_parts(steps).objects == ((0,),)
    assert find_parts(steps, has_choices=True).body == (0,)
    rarely = replace(steps, action=np.eye(3)[np.arange(30) // 15])  # neither of both choices moves it in most steps
    assert find_parts(rarely, has_choices=True).objects == ((0,),)


@pytest.mark.parametrize("kind", ["body", "object"])
def test_what_an_action_above_a_threshold_moves_is_a_body(kind):
    """A valve that sticks moves with a large action; a puck moves as seldom, where something touches it."""
    rng, episodes = np.random.default_rng(0), []
    for k in range(6):
        action = rng.uniform(-1, 1, (40, 1))
        moves = np.abs(action) > 0.8 if kind == "body" else rng.random((40, 1)) < 0.2
        places = np.concatenate([[[0.0]], (moves * np.sign(action)).cumsum(0)])
        episodes.append(Episode(places, places, np.full_like(places, k % 2), action, np.zeros(40)))
    assert [part.kind for part in find_parts(Steps.from_episodes(episodes)).parts] == [kind]


def test_what_never_moves_and_starts_where_it_is_wanted_belongs_to_its_neighbour():
    """A button is pressed down at another place in each episode. The last goals ask for other places."""
    paths = path(0, 0, -1) + np.array([4, 5, 0]), path(0, 0, -2) + np.array([6, 7, 0])
    assert kinds(*paths, goals=([4, 5, -3], [6, 7, -6])) == [((0, 1, 2), "object")]
    assert kinds(*paths, goals=([4, 6, -3], [5, 7, -6]))[-1] == ((2,), "object")


def test_if_all_episodes_have_one_goal_the_distance_from_the_start_is_the_size_of_the_task():
    parts = find_parts(steps_of(path(1, 1), path(1, 2), goals=([3, 4],)))
    assert (parts.objects, parts.goal_std) == (((0, 1),), 5.0)


def test_if_all_episodes_start_at_the_goal_there_is_no_object():
    parts = find_parts(steps_of(path(1, 1), path(1, 2), goals=([0, 0],)))
    assert not parts.has_object


def test_the_pushed_puck_is_one_object():
    assert find_parts(Steps.from_episodes(play(Pusher(0), 5, repeated_random_actions(1)))).objects == ((0, 1),)


def test_the_evidence_names_dimensions_and_rest():
    assert "achieved_goal[0, 1] is an object" in find_parts(steps_of(ONE, OTHER)).evidence()


def test_a_dimension_that_moves_with_no_other_is_a_group_of_its_own():
    """Noise may hide how the last one moves: it moves in single steps, but ends no episode elsewhere than it started."""
    is_moving = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 0]], bool)
    assert sorted(_together(np.array([0, 1, 2]), is_moving)) == [[0, 1], [2]]
