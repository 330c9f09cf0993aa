"""Planning over states that were visited, and over those that rules predict."""

from dataclasses import replace

import numpy as np
import pytest

from hindsight_rl.errors import InputError
from hindsight_rl.records import Episode
from hindsight_rl.task_structure.state_planner import LEAST_STEPS, StatePlanner
from hindsight_rl.task_structure.tabular_model import NO_PATH

SIZES, DISCOUNT = (3, 1, 2), 0.98  # room and cell, the cell as achieved goal, to the left and to the right
CELLS, TRAP = 9, 80


def episode(room, rng, length=20, trap=TRAP):
    """Walk at random through a corridor. In rooms from `trap` on, nothing leads out of the first cell."""
    action, cells = rng.integers(0, 2, length), [int(rng.integers(CELLS))]
    for each in action:
        step = 0 if room >= trap and cells[-1] == 0 else 2 * each - 1
        cells.append(int(np.clip(cells[-1] + step, 0, CELLS - 1)))
    return episode_of(np.array([[room, cell] for cell in cells]), action)


def episode_of(observation, action):
    cells = observation[:, 1:]
    return Episode(observation, cells, np.zeros_like(cells), action=action, reward=np.full(len(action), -1.0))


@pytest.fixture(scope="module")
def walked():
    """Return a planner after episodes in 100 rooms, each another: no state is visited in two episodes."""
    planner, rng = StatePlanner(SIZES), np.random.default_rng(0)
    for room in range(100):
        planner.add(episode(room, rng), 0)
    return planner


def action(planner, room, cell, goal):
    return planner.action(np.array([room, cell]), np.array([cell]), np.array([goal]), DISCOUNT)


def test_rules_lead_to_goals_through_rooms_where_nobody_was(walked):
    assert (walked.visited.known_fraction, walked.recurs, walked.predicts) == (0.0, False, True)
    assert action(walked, 50, 2, 8) == 1
    assert action(walked, 50, 2, 0) == 0
    assert action(walked, 50, 8, 8) == 1  # against the wall: it stays
    assert action(walked, 50, 2, CELLS) == NO_PATH


def grid_episode(rng, slip=0.0, length=30):
    """Walk at random over 7 x 7 cells; column 3 is a pit that ends the episode, but for its last cell."""
    place, places, actions = rng.integers(0, 7, 2) * (1, 1), [], []
    place[0] = place[0] if place[0] != 3 else 0
    places.append(place.copy())
    for _ in range(length):
        actions.append(int(rng.integers(4)))
        moved = actions[-1] if rng.random() >= slip else int(rng.integers(4))
        place = np.clip(place + ((1, 0), (-1, 0), (0, 1), (0, -1))[moved], 0, 6)
        places.append(place)
        if place[0] == 3 and place[1] < 6:
            break
    seen, is_over = np.array(places), place[0] == 3 and place[1] < 6
    action = np.array(actions)
    return Episode(seen, seen, np.zeros_like(seen), action, -np.ones(len(action)), terminated=bool(is_over), success=False)


def test_no_path_leads_through_what_ends_an_episode():
    planner, rng = StatePlanner((4, 2, 4)), np.random.default_rng(0)
    for _ in range(300):
        planner.add(grid_episode(rng), 0)
    assert planner.predicts
    place, path = np.array([2, 0]), []
    for _ in range(20):
        chosen = planner.action(place, place, np.array([4, 0]), 0.98)
        place = place + ((1, 0), (-1, 0), (0, 1), (0, -1))[chosen]
        path.append(tuple(place.tolist()))
    assert (3, 6) in path  # the gap
    assert not [cell for cell in path if cell[0] == 3 and cell[1] < 6]


@pytest.mark.parametrize(("success", "n_transitions"), [(False, 5), (True, 3), (None, 3)])
def test_paths_end_where_an_episode_failed_and_stored_ones_do_not_say_it(success, n_transitions):
    planner, cells = StatePlanner(SIZES), np.array([[0, 1], [0, 2], [0, 3], [0, 4]])
    planner.add(replace(episode_of(cells, np.ones(3, int)), terminated=True, success=success), 0)
    assert len(planner.arrays()["transitions"]) == n_transitions


def test_beside_states_that_recur_rules_that_chance_breaks_are_not_planned_with():
    rules = []
    for slip in (0.0, 0.2):
        planner, rng = StatePlanner((4, 2, 4)), np.random.default_rng(0)
        for _ in range(300):
            planner.add(grid_episode(rng, slip), 0)
        assert (planner.recurs, planner.predicts) == (True, True)
        rules.append(len(planner.plan()["rule_nodes"]) > 0)
    assert rules == [True, False]


def test_a_planner_goes_on_from_its_arrays_to_the_same_bytes(walked):
    planners = [StatePlanner.restore(walked.arrays(), SIZES) for _ in range(2)]
    planners[1] = StatePlanner.restore(planners[1].arrays(), SIZES)
    for planner in planners:
        rng = np.random.default_rng(1)
        for room in range(30):
            planner.add(episode(room, rng), 0)
    contents = [{name: array.tobytes() for name, array in planner.arrays().items()} for planner in planners]
    assert contents[0] == contents[1]
    assert contents[0]["rule_nodes"] != walked.arrays()["rule_nodes"].tobytes() or planners[0].predicts


def test_a_policy_gets_only_what_it_can_use(walked):
    plan = walked.plan()
    assert len(plan["visited_states"]) == len(plan["transitions"]) == 0
    assert len(plan["rule_nodes"]) > 0
    policy = StatePlanner.from_plan(plan, SIZES)
    assert action(policy, 50, 2, 8) == 1
    assert all(len(array) == 0 for name, array in StatePlanner(SIZES).plan().items() if name != "state_columns")


def test_it_gives_up_if_states_do_not_recur_and_nothing_predicts_them():
    planner, rng = StatePlanner(SIZES), np.random.default_rng(0)
    for _ in range(LEAST_STEPS // 20):
        planner.add(episode_of(rng.integers(0, 1_000, (21, 2)), rng.integers(0, 2, 20)), 0)
    assert planner.visited.is_given_up
    assert all(len(array) == 0 for name, array in planner.plan().items() if name != "state_columns")
    again = StatePlanner.restore(planner.arrays(), SIZES)
    again.add(episode(0, rng), 0)
    assert again.visited.is_given_up


def test_a_needless_column_is_left_out_of_the_plan():
    planner, rng = StatePlanner(SIZES), np.random.default_rng(0)
    for room in range(100):
        planner.add(episode(room, rng, trap=100), 0)
    assert planner.columns == [1, 2]
    assert planner.recurs
    assert planner.visited.n_states == CELLS
    assert planner.seen.n_states > 5 * CELLS
    policy = StatePlanner.from_plan(planner.plan(), SIZES)
    assert [action(each, 5_000, 2, 8) for each in (planner, policy)] == [1, 1]
    again = StatePlanner.restore(planner.arrays(), SIZES)
    for each in (planner, again):
        each.add(episode(0, np.random.default_rng(1)), 0)
    contents = [{name: array.tobytes() for name, array in each.arrays().items()} for each in (planner, again)]
    assert contents[0] == contents[1]
    for room in range(100, 200):  # in these it matters
        planner.add(episode(room, rng, trap=100), 0)
    assert planner.columns == [0, 1, 2]
    assert planner.visited is planner.seen


def test_numbers_that_are_not_whole_empty_it(walked):
    planner, cells = StatePlanner.restore(walked.arrays(), SIZES), np.array([[0.5, 0.5], [1.0, 1.0]])
    planner.add(episode_of(cells, np.array([1])), 0)
    assert planner.seen.is_given_up
    assert all(len(array) == 0 for name, array in planner.plan().items() if name != "state_columns")


def test_bits_have_rules_too():
    """An action moves the only 1 of a row to the next place, in episodes that visit few places of 20."""
    planner, rng = StatePlanner((40, 20, 1)), np.random.default_rng(0)
    for _ in range(120):
        places = (rng.integers(20) + np.arange(4)) % 20
        row = np.eye(20, dtype=int)[places]
        planner.add(Episode(row, row, np.zeros_like(row), np.zeros(3, int), np.full(3, -1.0)), 0)
    assert planner.predicts
    start, goal = np.eye(20, dtype=int)[[2, 17]]
    assert planner.action(start, start, goal, DISCOUNT) == 0


def test_a_forged_plan_is_refused(walked):
    with pytest.raises(InputError, match="rule_ranges"):
        StatePlanner.from_plan(walked.plan() | {"rule_ranges": np.zeros((3, 3), np.int32)}, SIZES)
    unsorted, without_goal, unknown = ([1, 0, 2], [0, 1], [0, 1, 3])
    forged = [*(np.array(columns, np.int32) for columns in (unsorted, without_goal, unknown)), np.array([1.0, 2.0])]
    for columns in forged:
        with pytest.raises(InputError, match="state_columns"):
            StatePlanner.from_plan(walked.plan() | {"state_columns": columns}, SIZES)


GRID, MOVES = 5, np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])


def walk(room, rng, length=40):
    """Walk at random on a grid without obstacles. In rooms from 45 on, nothing leads out of the last cell."""
    action, places = rng.integers(0, 4, length), [rng.integers(0, GRID, 2)]
    for each in action:
        is_trapped = room >= 45 and (places[-1] == GRID - 1).all()
        places.append(places[-1] if is_trapped else np.clip(places[-1] + MOVES[each], 0, GRID - 1))
    places = np.array(places)
    observation = np.column_stack([np.full(len(places), room), places])
    return Episode(observation, places, np.zeros_like(places), action=action, reward=np.full(length, -1.0))


def test_a_path_leads_around_what_turned_out_to_be_blocked_until_the_next_episode():
    planner, rng = StatePlanner((5, 2, 4)), np.random.default_rng(0)
    for room in (*range(30), *range(31, 60)):
        planner.add(walk(room, rng), 0)

    def toward(place, goal):
        return planner.action(np.array([30, *place]), np.array(place), np.array(goal), DISCOUNT)

    assert toward((0, 2), (4, 2)) == 2  # straight ahead
    for _ in range(3):
        planner.add_blocked(np.array([30, 0, 2]), np.array([0, 2]), 2)
    assert toward((0, 2), (4, 2)) in (0, 1)  # around it: two steps more, where to try again takes four on average
    assert toward((1, 2), (4, 2)) == 2
    planner.begin_episode()
    assert toward((0, 2), (4, 2)) == 2


def test_what_the_rules_expect_to_change_nothing_is_not_counted():
    planner, rng = StatePlanner((5, 2, 4)), np.random.default_rng(0)
    for room in range(60):
        planner.add(walk(room, rng), 0)
    planner.action(np.array([30, 0, 2]), np.array([0, 2]), np.array([4, 2]), DISCOUNT)
    before = planner.reachable(np.array([30, 0, 2, 0, 2], np.int32), DISCOUNT).arrays()["transitions"]
    planner.add_blocked(np.array([30, 0, 2]), np.array([0, 2]), 3)  # the edge of the grid
    after = planner.reachable(np.array([30, 0, 2, 0, 2], np.int32), DISCOUNT).arrays()["transitions"]
    assert np.array_equal(before, after)
    planner.add_blocked(np.array([30, 0, 2]), np.array([0, 2]), 2)
    assert len(planner.reachable(np.array([30, 0, 2, 0, 2], np.int32), DISCOUNT).arrays()["transitions"]) > len(after)
