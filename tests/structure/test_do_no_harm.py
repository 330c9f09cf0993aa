"""Columns that mean nothing to random actions and matter later stay visible."""

import push_tasks
import pytest

from hindsight_rl import HER

pytestmark = pytest.mark.learning


MATTERS = {"Key": {6, 7, 8}, "Latch": {6}, "Fuel": {6}, "Wind": {6, 7}, "Peg": {6, 7}}  # later: columns of each task


@pytest.mark.parametrize("task", MATTERS)
@pytest.mark.parametrize("options", [{}, {"random_steps": 400}])
def test_what_matters_later_is_not_hidden(task, options):
    with HER(getattr(push_tasks, task), check=False, seed=0, **options) as model:
        while model.trainer.search.is_warm_up:
            model.trainer.learn_from_next_job()
        assert not MATTERS[task] & set(model.settings.agent_options.hidden_observation)


def test_a_task_with_a_latch_is_learned():
    with HER(push_tasks.Latch, recipe="default", check=False, seed=0, updates_per_step=2) as model:
        model.learn(5_000)
        assert model.evaluate(50).success_rate >= 0.9  # 4 % after 7,500 steps with structure="none"
