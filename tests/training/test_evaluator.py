import math

import pytest
from short_runs import Uneven, her, same_bytes

from hindsight.options import TrainingOptions
from hindsight.training.evaluate import Outcome
from hindsight.training.evaluator import Evaluator
from hindsight.training.events import EvaluationFinished, JobFinished


def records(*pairs):
    return [{"env_steps": float(i), "success_rate": rate, "return_mean": mean} for i, (rate, mean) in enumerate(pairs)]


def evaluator(history, **options):
    made = Evaluator(None, TrainingOptions(**options))
    made.history = history
    return made


def test_the_best_evaluation_has_the_highest_success_then_the_highest_return_then_is_the_latest():
    history = records((0.5, -3.0), (0.9, -5.0), (0.9, -4.0), (0.9, -4.0), (0.1, -1.0))
    assert evaluator(history).best["env_steps"] == 3.0
    assert evaluator([]).best is None


def test_a_return_that_is_not_finite_counts_as_the_lowest():
    for unknown in (math.nan, None):
        assert evaluator(records((0.9, -5.0), (0.9, unknown))).best["env_steps"] == 0.0


@pytest.mark.parametrize(
    ("rates", "is_solved"), [((0.6,), False), ((0.6, 0.4), False), ((0.4, 0.5, 0.6), True), ((0.5, 0.6, 0.4), False)]
)
def test_a_task_is_solved_by_the_last_evaluations_in_a_row(rates, is_solved):
    history = records(*((rate, 0.0) for rate in rates))
    assert evaluator(history, solved_evaluations=2, solved_at=0.5).is_solved is is_solved
    assert not evaluator(history, solved_evaluations=0, solved_at=0.5).is_solved


def test_evaluations_come_at_their_steps_on_episodes_of_their_own():
    with her(eval_every=30, eval_episodes=3) as model:
        events = list(model.trainer.run(70))
    kinds = [type(e) for e in events]
    assert kinds.count(JobFinished) == 7
    assert kinds.count(EvaluationFinished) == 3
    assert [r["env_steps"] for r in model.trainer.history] == [30, 60, 70]
    assert [e.episode for e in events if isinstance(e, Outcome)] == list(range(9))
    assert next(e.is_best for e in events if isinstance(e, EvaluationFinished))


def test_an_evaluation_that_is_interrupted_is_played_again():
    def evaluations(events):
        return [str(e) for e in events if isinstance(e, Outcome | EvaluationFinished)]

    with her(eval_every=30, eval_episodes=3) as whole, her(eval_every=30, eval_episodes=3) as halved:
        everything = evaluations(whole.trainer.run(60))
        run = halved.trainer.run(60)
        next(e for e in run if isinstance(e, Outcome))
        run.close()
        assert halved.trainer.history == []
        assert evaluations(halved.trainer.run(60)) == everything
        assert halved.trainer.history == whole.trainer.history


def test_evaluating_does_not_change_the_training():
    with her(eval_every=20, eval_episodes=2) as evaluated, her() as plain:
        list(evaluated.trainer.run(80))
        plain.learn(80)
        assert same_bytes(evaluated.agent.state_dict(), plain.agent.state_dict())


def test_with_the_free_schedule_evaluations_run_beside_training():
    with her(schedule="free", eval_every=30, eval_episodes=2) as model:
        trainer = model.trainer
        trainer.source = source = Uneven(trainer.source, min)
        source.is_evaluating = False
        run, seen = trainer.run(60), []
        for event in run:
            seen.append(type(event).__name__)
            if seen == ["JobFinished"] * 3:
                state = trainer.agent.state_dict()
            if seen == ["JobFinished"] * 5:
                source.is_evaluating = True
            if isinstance(event, EvaluationFinished) and trainer.counts.env_steps == 50:
                assert event.snapshot.counts.env_steps == 30
                assert same_bytes(event.snapshot.agent_state, state)
        one = ["Outcome", "Outcome", "EvaluationFinished"]
        assert seen == ["JobFinished"] * 5 + one + ["JobFinished"] + one
        assert [record["env_steps"] for record in trainer.history] == [30, 60]
