"""The default settings alone solve two tasks that users wrote."""

import pytest
from docking_env import Docking
from push_box_env import PushBox

from hindsight_rl import HER


@pytest.mark.learning
@pytest.mark.filterwarnings("ignore:check of PushBox")  # its observation holds the goal
@pytest.mark.parametrize(("task", "steps", "success"), [(Docking, 6_000, 0.95), (PushBox, 30_000, 0.85)])
def test_the_default_solves(task, steps, success):
    with HER(task, seed=0) as model:
        assert model.learn(steps).evaluate(100).success_rate >= success
