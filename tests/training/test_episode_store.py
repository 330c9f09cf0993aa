"""When waypoints are planned, and what the agent gets."""

import numpy as np
import pytest
from short_runs import SUBGOALS, her

from hindsight_rl import PointReach
from hindsight_rl.errors import OptionError
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


def test_waypoints_and_subgoals_do_not_go_together():
    with her(n_waypoints=20, **SUBGOALS) as model, pytest.raises(OptionError, match="n_waypoints"):
        model.learn(20)
