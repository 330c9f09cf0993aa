import math
from types import SimpleNamespace

import numpy as np
import pytest
from short_runs import OPTIONS, Uneven, her, same_bytes

from hindsight_rl import HER
from hindsight_rl.options import build_settings
from hindsight_rl.rollout.collect import Job
from hindsight_rl.seeds import EVALUATION
from hindsight_rl.training.checkpoint import restore_trainer, trainer_state
from hindsight_rl.training.evaluate import Outcome
from hindsight_rl.training.evaluator import SCREEN_EPISODES, Evaluator
from hindsight_rl.training.events import EpisodesStored, EvaluationFinished, JobFinished
from hindsight_rl.training.run_state import Counts


def records(*pairs, episodes=100.0):
    return [
        {"env_steps": float(i), "episodes": episodes, "success_rate": rate, "return_mean": mean}
        for i, (rate, mean) in enumerate(pairs)
    ]


def evaluator(history, **options):
    made = Evaluator(SimpleNamespace(settings=build_settings("td3", "default", options), counts=Counts()))
    made.history = history
    return made


def test_the_best_evaluation_has_the_highest_success_then_the_highest_return_then_is_the_latest():
    history = records((0.5, -3.0), (0.9, -5.0), (0.9, -4.0), (0.9, -4.0), (0.1, -1.0))
    assert evaluator(history).best["env_steps"] == 3.0
    assert evaluator([]).best is None


def test_a_lucky_evaluation_of_20_episodes_is_not_better_than_a_good_one_of_100():
    """The 95 % intervals begin at 53 % for 15 of 20, and at 59 % for 69 of 100."""
    history = records((0.75, -5.0), episodes=20.0) + records((0.1, -5.0), (0.69, -9.0), (0.5, -5.0))
    assert evaluator(history).best == history[2]


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
    assert [(r["env_steps"], r["episodes"]) for r in model.trainer.history] == [(30, 3), (60, 3), (70, 3)]
    assert [e.episode for e in events if isinstance(e, Outcome)] == list(range(9))
    assert next(e.is_best for e in events if isinstance(e, EvaluationFinished))


def test_an_evaluation_takes_effect_a_fifth_of_eval_every_later_or_at_the_end():
    with her(eval_every=60, eval_episodes=3) as model:
        effects = [
            (event.snapshot.counts.env_steps, model.trainer.counts.env_steps)
            for event in model.trainer.run(140)
            if isinstance(event, EvaluationFinished)
        ]
    assert effects == [(60, 80), (120, 140), (140, 140)]


@pytest.mark.parametrize(
    ("rates", "solved_evaluations", "is_due"),
    [((0.96,), 2, True), ((0.94,), 2, False), ((0.96, 0.94), 2, False), ((0.96, 0.96), 2, False), ((0.96,), 0, False)],
)
def test_a_success_is_confirmed_by_an_evaluation_that_begins_and_takes_effect_at_once(rates, solved_evaluations, is_due):
    made = evaluator(
        records(*((rate, 0.0) for rate in rates)), eval_every=100, solved_at=0.95, solved_evaluations=solved_evaluations
    )
    counts = made._run.counts = Counts(env_steps=20, updates=1)
    assert made.is_due(until=1_000) is is_due
    made.pending = SimpleNamespace(counts=counts)
    assert made.takes_effect(until=1_000) is is_due


def test_evaluations_begin_with_the_first_due_step_after_the_random_steps():
    with her(eval_every=100, eval_episodes=3, random_steps=180) as model:
        list(model.trainer.run(230))
    assert [record["env_steps"] for record in model.trainer.history] == [200, 230]


@pytest.mark.parametrize(
    ("successes", "best", "is_promising"),
    [
        (14, 0.9, False),
        (15, 0.9, True),
        (14, 0.7, True),
        (14, 0.1, False),
        (2, 0.1, True),
        (14, None, False),
        (0, 0.0, False),
    ],
)
def test_a_screen_is_promising_if_the_policy_may_be_solved_or_the_best(successes, best, is_promising):
    outcomes = [SimpleNamespace(success=i < successes) for i in range(SCREEN_EPISODES)]
    history = [] if best is None else records((best, 0.0))
    assert evaluator(history, eval_episodes=100, solved_at=0.95)._is_promising(outcomes) is is_promising


@pytest.mark.parametrize(("successes", "is_promising"), [(10, False), (12, True), (13, True)])
def test_a_screen_is_promising_if_the_whole_evaluation_would_prove_more_than_a_lucky_screen(successes, is_promising):
    """14 of 20 prove 48 %. 65 of 100 would prove 55 %, 60 of 100 50 %, and 50 of 100 40 %."""
    history = records((0.7, 0.0), episodes=20.0)
    outcomes = [SimpleNamespace(success=i < successes) for i in range(SCREEN_EPISODES)]
    assert evaluator(history, eval_episodes=100, solved_at=0.95)._is_promising(outcomes) is is_promising


def test_the_mean_value_of_an_evaluation_is_that_of_the_evaluated_agent():
    with her(eval_every=60, eval_episodes=3, random_steps=20) as model, her() as plain:
        for event in model.trainer.run(80):  # the evaluation of 60 steps takes effect at 80 steps
            if isinstance(event, JobFinished) and model.trainer.counts.env_steps == 60:
                evaluated = model.trainer.agent.state_dict()
            if isinstance(event, EvaluationFinished) and event.snapshot.counts.env_steps == 60:
                state, found = model.trainer.agent.state_dict(), event
                break
        plain.learn(80)
        assert same_bytes(state, plain.agent.state_dict())  # the agent that goes on is not changed
        assert not same_bytes(state, evaluated)
        plain.agent.load_state_dict(evaluated)
        played = plain.source
        tickets = [played.submit(Job(0, EVALUATION, (number,), found.snapshot.weights)) for number in range(3)]
        values = np.concatenate([plain.agent.values(played.result(ticket)[0]) for ticket in tickets])
        assert found.evaluation.q_mean == float(values.mean())


def test_only_a_promising_evaluation_and_the_last_one_go_on_after_their_screen():
    with her(eval_every=30, eval_episodes=SCREEN_EPISODES + 2) as model:
        evaluator = model.trainer.evaluator
        evaluator._is_promising = lambda outcomes: len(outcomes) == 20 and evaluator.pending.counts.env_steps == 60
        evaluations = [e.evaluation for e in model.trainer.run(90) if isinstance(e, EvaluationFinished)]
    assert [[o.episode for o in evaluation.outcomes] for evaluation in evaluations] == [
        [*range(20)],
        [*range(22, 44)],
        [*range(44, 66)],
    ]


def test_an_evaluation_that_is_interrupted_is_played_again_with_the_same_effect():
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


def test_a_restored_trainer_begins_the_pending_evaluation_again():
    options = {"eval_every": 50, "eval_episodes": 3, "policy_lag": 1}
    with her(**options) as whole, her(**options) as half, her(**options) as rest:
        list(whole.trainer.run(100))
        run = half.trainer.run(100)
        next(event for event in run if isinstance(event, Outcome))
        restore_trainer(rest.trainer, *trainer_state(half.trainer))
        assert rest.trainer.evaluator.pending.counts.env_steps == 50
        effects = [rest.trainer.counts.env_steps for e in rest.trainer.run(100) if isinstance(e, EvaluationFinished)]
        assert effects == [60, 100]
        assert rest.trainer.history == whole.trainer.history
        assert same_bytes(rest.agent.state_dict(), whole.agent.state_dict())


def test_evaluating_does_not_change_the_training():
    with her(eval_every=20, eval_episodes=2) as evaluated, her() as plain:
        list(evaluated.trainer.run(80))
        plain.learn(80)
        assert same_bytes(evaluated.agent.state_dict(), plain.agent.state_dict())


def test_with_the_free_schedule_evaluations_run_beside_training():
    with her(schedule="free", eval_every=30, eval_episodes=2) as model:
        trainer = model.trainer
        trainer.source = source = Uneven(trainer.source, lambda tickets: tickets[0])
        source.is_evaluating = False
        run, seen = trainer.run(60), []
        for event in run:
            if isinstance(event, EpisodesStored):
                continue
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


@pytest.mark.parametrize(  # with a lag, the other processes collect too
    "policy_lag", [pytest.param(0, marks=pytest.mark.slow), 1]
)
def test_evaluations_in_other_processes_give_the_same_bytes(policy_lag):
    options = OPTIONS | {"recipe": "point_reach", "max_episode_steps": 10, "eval_every": 50, "eval_episodes": 25}
    options |= {"policy_lag": policy_lag}
    with HER("PointReach-v0", **options) as local, HER("PointReach-v0", workers="auto", **options) as helped:
        expected, events = (
            [event for event in model.trainer.run(150) if isinstance(event, EvaluationFinished)]
            for model in (local, helped)
        )
        assert [event.evaluation for event in events] == [event.evaluation for event in expected]
        assert helped.trainer.history == local.trainer.history
        assert same_bytes(local.agent.state_dict(), helped.agent.state_dict())
