"""When waypoints are planned, and what the agent gets."""

import numpy as np
import pytest
from short_runs import SUBGOALS, her

from hindsight_rl import PointReach
from hindsight_rl.errors import OptionError
from hindsight_rl.records import Episode
from hindsight_rl.records.reward_scale import RewardScale
from hindsight_rl.task_structure.waypoints import GOAL, is_planning_due


@pytest.mark.parametrize(("steps", "new", "due"), [(10, 10, True), (100, 1, False), (110, 10, True), (10_000, 50, False)])
def test_waypoints_are_planned_when_the_steps_have_grown_by_a_tenth(steps, new, due):
    assert is_planning_due(steps, new) is due


def test_the_policy_of_a_run_has_waypoints_over_its_episodes():
    with her(PointReach, n_waypoints=20) as model:
        model.learn(500)
        weights, path = model.weights, np.concatenate(model.trainer.buffer.timeline.paths())
        assert weights.waypoints.shape == (20, 2)
        assert weights.next_waypoint.shape == (20, 20)
        assert all((np.abs(path - place) < 1e-6).all(1).any() for place in weights.waypoints)
        assert (weights.next_waypoint != GOAL).any()


class Slot(PointReach):
    """Goals are narrow along x and long along y."""

    def compute_reward(self, achieved_goal, desired_goal, info=None):
        return (np.abs(achieved_goal - desired_goal) < np.array([0.02, 0.6])).all(-1).astype(np.float32) - 1


def test_waypoints_are_farther_than_a_success_may_be_along_any_dimension():
    with her(Slot, n_waypoints=20) as model:
        model.learn(500)
        weights = model.weights
        start, goal = np.nonzero((weights.next_waypoint != GOAL) & (weights.next_waypoint != np.arange(20)))
        gap = weights.waypoints[weights.next_waypoint[start, goal]] - weights.waypoints[start]
        assert len(gap)
        assert np.linalg.norm(gap, axis=1).min() > 0.6


@pytest.mark.parametrize(
    ("rewards", "scale", "counts"),
    [
        ((-1, 0, -1), RewardScale(0, -1), True),  # the goal was met on the path
        ((-1, -1, -1), RewardScale(0, -1), False),
        ((-1, -2, -1), RewardScale(0, -1), False),  # a cost that the info has
        ((-0.3, 0, -0.3), RewardScale(0, -1, is_sparse=False), False),  # a distance
        ((-1, 0, -1), None, False),
    ],
)
def test_with_waypoints_a_goal_that_was_met_on_the_path_is_a_success(rewards, scale, counts):
    with her(PointReach, n_waypoints=20) as model:
        trainer, rows = model.trainer, np.zeros((4, 2))
        trainer.agent.reward_scale = scale
        episode = Episode(rows, rows, rows, rows[1:], np.float32(rewards), success=False, is_unguided=True)
        assert trainer.storing._is_success(episode) is counts


def test_waypoints_and_subgoals_do_not_go_together():
    with her(n_waypoints=20, **SUBGOALS) as model, pytest.raises(OptionError, match="n_waypoints"):
        model.learn(20)
