import numpy as np
import pytest
from short_runs import her

from hindsight.errors import HindsightError


@pytest.mark.parametrize(
    ("options", "updates"),
    [
        ({}, [0, 0, 10, 20, 30]),
        ({"updates_per_step": 0.25, "policy_period": 2}, [0, 0, 2, 4, 6]),  # 2.5 due each time, made in pairs
        ({"updates_per_step": 0.25}, [0, 0, 2, 5, 7]),
        ({"updates_per_step": 3.0, "random_steps": 0}, [30, 60, 90, 120, 150]),
    ],
)
def test_updates_are_due_per_step_after_the_random_steps(options, updates):
    with her(**options) as model:
        seen = []
        for _ in updates:
            model.trainer.learn_from_next_job()
            seen.append(model.trainer.counts.updates)
        assert seen == updates
        assert model.agent.n_updates == updates[-1]


def test_weights_that_are_not_finite_end_the_run():
    with her(learning_rate=1e30) as model, pytest.raises(HindsightError, match=r"no longer finite.*Lower learning_rate"):
        model.learn(2000)


def test_weights_that_are_not_finite_are_reported_before_the_priorities():
    with her(prioritized=True, learning_rate=1e30) as model, pytest.raises(HindsightError, match="no longer finite"):
        model.learn(2000)


@pytest.mark.parametrize("options", [{"agent": "sac"}, {"agent": "td3", "policy_period": 2}])
def test_the_errors_of_an_update_become_the_priorities_of_its_rows(options):
    with her(prioritized=True, alpha=1.0, steps=200, **options) as model:
        trainer, seen = model.trainer, []
        updates = trainer.agent.updates

        def recording(batch):
            metrics = updates(batch)
            errors = np.concatenate([m["priority"].numpy().copy() for m in metrics])
            seen.append((batch.row.copy().ravel(), errors.ravel(), trainer.buffer.beta))
            assert batch.weight.shape == batch.row.shape
            return metrics

        trainer.agent.updates = recording
        model.learn(100)
        rows, errors = (np.concatenate(part) for part in list(zip(*seen, strict=True))[:2])
        last = dict(zip(rows.tolist(), errors.tolist(), strict=True))
        found = trainer.buffer.timeline.priorities.values(np.array(list(last)))
        assert found == pytest.approx(np.array(list(last.values())) + 1e-6)
        assert not any("priority" in name for name in trainer.meter.means())
        betas = [beta for *_, beta in seen]
        assert (betas[0], betas[-1]) == (pytest.approx(0.4 + 0.6 * 30 / 200), pytest.approx(0.4 + 0.6 * 100 / 200))


def test_the_relabel_schedule_changes_the_fraction_of_relabelled_samples():
    with her(relabel="future=0.8", relabel_schedule=("60: future=0.25,desired=0.5",)) as model:
        buffer, seen = model.trainer.buffer, []
        for _ in range(8):
            model.trainer.learn_from_next_job()
            seen.append((model.trainer.counts.env_steps, buffer.her_probability))
        assert seen[2:] == [(steps, 0.8 if steps < 60 else 0.75) for steps in range(30, 90, 10)]


def test_goals_that_were_achieved_already_are_measured_once_per_record():
    with her() as model:
        model.learn(40)
        assert 0.0 < model.trainer.meter.means()["train/goals_already_achieved"] < 1.0
        assert model.trainer.meter.counts["train/goals_already_achieved"] == 1
