"""Columns that mean nothing to random actions and matter later stay visible, or are shown again."""

import push_tasks
import pytest

from hindsight_rl import HER

pytestmark = pytest.mark.learning


MATTERS = {"Key": {6, 7, 8}, "Latch": {6}, "Fuel": {6}, "Wind": {6, 7}, "Peg": {6, 7}}  # later: columns of each task


def seen(model):
    return set(range(model.spec.observation.size)).difference(model.settings.agent_options.hidden_observation)


@pytest.mark.parametrize("task", MATTERS)
@pytest.mark.parametrize("options", [{}, {"random_steps": 400}])
def test_the_agent_sees_what_matters_later(task, options):
    """In Wind with 400 random steps the tool is found so early that a wind along one axis is hidden at first.

    It is shown again after 5,000 steps, or 10,000 on some processors.
    """
    with HER(getattr(push_tasks, task), check=False, seed=0, **options) as model:
        while model.trainer.search.is_warm_up:
            model.trainer.learn_from_next_job()
        if not MATTERS[task] <= seen(model):
            assert (task, options) == ("Wind", {"random_steps": 400})
            model.learn(10_000)
        assert MATTERS[task] <= seen(model)


def test_a_task_with_a_latch_is_learned():
    with HER(push_tasks.Latch, recipe="default", check=False, seed=0, updates_per_step=2) as model:
        model.learn(5_000)
        assert model.evaluate(50).success_rate >= 0.9  # 4 % after 7,500 steps with structure="none"
