from dataclasses import replace
from itertools import pairwise

import gymnasium
import numpy as np
import pytest

from hindsight import HER, PointReach
from hindsight.errors import CollectError, HindsightError
from hindsight.training.evaluate import Outcome
from hindsight.training.trainer import REFUSED_IN_A_ROW, EvaluationFinished, JobFinished

SMALL = {"hidden": (8,), "batch_size": 16, "updates_per_step": 1.0, "random_steps": 20, "solved_evaluations": 0}
OPTIONS = SMALL | {"eval_every": 0}


def short():
    return PointReach(max_steps=10)


def her(env=short, **options):
    return HER(env, recipe="point_reach", **(OPTIONS | options))


class Watched:
    """A source that remembers the jobs it was given."""

    def __init__(self, source):
        self.source, self.jobs = source, []

    def submit(self, job):
        self.jobs.append(job)
        return self.source.submit(job)

    def result(self, ticket):
        return self.source.result(ticket)

    def take_fault_counts(self):
        return self.source.take_fault_counts()


@pytest.mark.parametrize("policy_lag", [0, 1, 3])
@pytest.mark.parametrize("episodes_per_job", [1, 2])
def test_a_job_acts_with_weights_that_are_lag_jobs_old(policy_lag, episodes_per_job):
    with her(policy_lag=policy_lag, episodes_per_job=episodes_per_job) as model:
        trainer = model.trainer
        trainer.source = watched = Watched(trainer.source)
        published = [trainer.agent.policy_weights().flat.tobytes()]
        for _ in range(8):
            trainer.learn_from_next_job()
            published.append(trainer.agent.policy_weights().flat.tobytes())
        for number, job in enumerate(watched.jobs):
            assert job.weights.flat.tobytes() == published[max(0, number - policy_lag)]
            assert job.episodes == tuple(range(number * episodes_per_job, (number + 1) * episodes_per_job))
        assert len(set(published)) > 4


@pytest.mark.parametrize(
    ("options", "updates"),
    [
        ({}, [0, 0, 10, 20, 30]),
        ({"updates_per_step": 0.25, "policy_period": 2}, [0, 0, 2, 4, 6]),  # 2.5 owed each time, made in pairs
        ({"updates_per_step": 0.25}, [0, 0, 2, 5, 7]),
        ({"updates_per_step": 3.0, "random_steps": 0}, [30, 60, 90, 120, 150]),
    ],
)
def test_updates_are_owed_by_the_step_after_the_warm_up(options, updates):
    with her(**options) as model:
        seen = []
        for _ in updates:
            model.trainer.learn_from_next_job()
            seen.append(model.trainer.counts.updates)
        assert seen == updates
        assert model.agent.n_updates == updates[-1]


def test_the_warm_up_acts_at_random_and_the_rest_does_not():
    with her(policy_lag=1) as model:
        model.trainer.source = watched = Watched(model.trainer.source)
        model.learn(60)
        assert [job.exploration.is_random for job in watched.jobs] == [True] * 3 + [False] * 4


def test_evaluations_come_at_their_steps_on_episodes_of_their_own():
    with her(eval_every=30, eval_episodes=3, random_steps=20) as model:
        events = list(model.trainer.run(70))
    kinds = [type(e) for e in events]
    assert kinds.count(JobFinished) == 7
    assert kinds.count(EvaluationFinished) == 3
    assert [r["env_steps"] for r in model.trainer.history] == [30, 60, 70]
    assert [e.episode for e in events if isinstance(e, Outcome)] == list(range(9))
    assert next(e.is_best for e in events if isinstance(e, EvaluationFinished))


def test_an_evaluation_cut_short_is_made_again():
    def told(events):
        return [str(e) for e in events if isinstance(e, Outcome | EvaluationFinished)]

    with her(eval_every=30, eval_episodes=3) as whole, her(eval_every=30, eval_episodes=3) as halved:
        everything = told(whole.trainer.run(60))
        run = halved.trainer.run(60)
        next(e for e in run if isinstance(e, Outcome))
        run.close()
        assert halved.trainer.history == []
        assert told(halved.trainer.run(60)) == everything
        assert halved.trainer.history == whole.trainer.history


def test_evaluating_does_not_change_what_is_learnt():
    with her(eval_every=20, eval_episodes=2) as evaluated, her() as plain:
        list(evaluated.trainer.run(80))
        plain.learn(80)
        states = [m.agent.state_dict() for m in (evaluated, plain)]
        assert all(states[0][k].tobytes() == states[1][k].tobytes() for k in states[0])


def test_solved_after_evaluations_in_a_row():
    with her(solved_evaluations=2, solved_at=0.5) as model:
        trainer = model.trainer
        for rates, solved in (((0.6,), False), ((0.6, 0.4), False), ((0.4, 0.5, 0.6), True)):
            trainer.history = [{"env_steps": 0.0, "success_rate": r, "return_mean": 0.0} for r in rates]
            assert trainer.is_solved is solved
        assert list(trainer.run(1000)) == []


class Broken(gymnasium.Wrapper):
    """Gives a NaN in the last step of the episodes whose first action of the test says so."""

    def __init__(self, env, broken):
        super().__init__(env)
        self.broken, self.episode = broken, -1

    def reset(self, **options):
        self.episode, self.steps = self.episode + 1, 0
        return self.env.reset(**options)

    def step(self, action):
        observation, *rest = self.env.step(action)
        self.steps += 1
        if self.steps == 10 and self.broken(self.episode):
            observation = observation | {"observation": np.full(4, np.nan, np.float32)}
        return observation, *rest


def test_an_episode_with_bad_values_is_left_out_whole_and_counted():
    env = Broken(short(), lambda episode: episode % 3 == 1)
    with her(env) as model:
        model.learn(90)
        counts = model.trainer.counts
        assert (counts.env_steps, counts.episodes) == (90, 9)
        assert 2 <= counts.refused_episodes <= 4
        assert len(model.trainer.buffer) == 90 - 10 * counts.refused_episodes
        assert all(np.isfinite(v).all() for v in model.agent.state_dict().values() if v.dtype.kind == "f")


def test_many_bad_episodes_in_a_row_end_the_run_with_the_reason():
    with her(Broken(short(), lambda episode: True)) as model:
        with pytest.raises(HindsightError, match=f"{REFUSED_IN_A_ROW} episodes in a row were refused.*(NaN|finite)"):
            model.learn(1000)
        assert len(model.trainer.buffer) == 0


def test_weights_that_are_not_finite_end_the_run():
    with her(learning_rate=1e30) as model, pytest.raises(HindsightError, match=r"no longer finite.*lower learning_rate"):
        model.learn(2000)


STAGED = {"subgoals": ("near achieved=0,1 goal=2,3 tolerance=0.1 switch_distance=0.5",)}  # any two columns will do


LATER = {"relabel": "future=0.8", "relabel_later": "future=0.3,desired=0.2", "relabel_later_from": 40}


@pytest.mark.parametrize("options", [{}, {"prioritized": True, "steps": 120}, {"energy_priority": True}, STAGED, LATER])
def test_the_state_goes_on_to_the_same_bytes_even_with_jobs_under_way(options):
    options = options | {"policy_lag": 2, "agent": "sac"}

    def pieces(first):
        with her(**options) as model:
            model.learn(first)
            if first == 60:
                state = model.trainer.state()
                with her(**options) as other:
                    other.trainer.load_state(*state)
                    other.learn(60)
                    return other.trainer.state()
            return model.trainer.state()

    (arrays, data), (expected, expected_data) = pieces(60), pieces(120)
    assert set(arrays) == set(expected)
    assert all(arrays[k].tobytes() == expected[k].tobytes() for k in arrays)
    for each in (data, expected_data):
        each["counts"] = {k: v for k, v in each["counts"].items() if "seconds" not in k}
    assert data == expected_data


@pytest.mark.parametrize("options", [{"agent": "sac"}, {"agent": "td3", "policy_period": 2}])
def test_the_errors_of_an_update_become_the_priorities_of_its_rows(options):
    with her(prioritized=True, alpha=1.0, steps=200, **options) as model:
        trainer, told = model.trainer, []
        update = trainer.agent.update

        def watched(batch):
            metrics = update(batch)
            told.append((batch.row.copy().ravel(), metrics["priority"].numpy().copy().ravel(), trainer.buffer.beta))
            assert batch.weight.shape == batch.row.shape
            return metrics

        trainer.agent.update = watched
        model.learn(100)
        rows, errors = (np.concatenate(part) for part in list(zip(*told, strict=True))[:2])
        last = dict(zip(rows.tolist(), errors.tolist(), strict=True))
        found = trainer.buffer._timeline.priorities.of(np.array(list(last)))
        assert found == pytest.approx(np.array(list(last.values())) + 1e-6)
        assert not any("priority" in name for name in trainer.meter.means())
        betas = [beta for *_, beta in told]
        assert (betas[0], betas[-1]) == (pytest.approx(0.4 + 0.6 * 30 / 200), pytest.approx(0.4 + 0.6 * 100 / 200))


def test_later_other_goals_are_drawn():
    with her(relabel="future=0.8", relabel_later="future=0.25,desired=0.5", relabel_later_from=60) as model:
        buffer, seen, state = model.trainer.buffer, [], None
        for _ in range(8):
            model.trainer.learn_from_next_job()
            seen.append((model.trainer.counts.env_steps, buffer.her_probability))
            state = state if len(seen) > 5 else model.trainer.state()
        assert seen[2:] == [(steps, 0.8 if steps < 60 else 0.75) for steps in range(30, 90, 10)]
        model.trainer.load_state(*state)
        assert (model.trainer.counts.env_steps, buffer.her_probability) == (50, 0.8)


def test_broken_weights_explain_themselves_before_broken_priorities_do():
    with her(prioritized=True, learning_rate=1e30) as model, pytest.raises(HindsightError, match="no longer finite"):
        model.learn(2000)


def test_steps_and_updates_are_timed():
    with her() as model:
        seconds = []
        for _ in range(4):
            model.trainer.learn_from_next_job()
            counts = model.trainer.counts
            seconds.append(counts.collect_seconds + counts.update_seconds)
        assert all(later > earlier > 0 for earlier, later in pairwise(seconds))


class Faulty(gymnasium.Wrapper):
    """Raises in the steps of which `faulty` says so, counted over all environments of the test."""

    count = 0

    def __init__(self, env, faulty):
        super().__init__(env)
        self.faulty = faulty

    def step(self, action):
        type(self).count += 1
        if self.faulty(type(self).count):
            raise RuntimeError("the cable came off")
        return self.env.step(action)


def test_a_job_that_fails_is_tried_again_on_a_new_environment():
    Faulty.count = -100  # what looks at the environment first
    with her(lambda: Faulty(short(), lambda count: count in (25, 47))) as model:
        model.trainer  # noqa: B018
        Faulty.count = 0
        model.learn(60)
        assert model.trainer.counts.failed_jobs == 2
        with her() as plain:
            assert plain.learn(60).agent.state_dict()["weights"].tobytes() == model.agent.state_dict()["weights"].tobytes()


def test_an_environment_that_always_fails_ends_the_run_with_its_error():
    Faulty.count = -1000
    with her(lambda: Faulty(short(), lambda count: count > 35)) as model:
        model.trainer  # noqa: B018
        Faulty.count = 0
        with pytest.raises(CollectError, match=r"episode 3 failed.*the cable came off") as caught:
            model.learn(100)
        assert isinstance(caught.value.__cause__, RuntimeError)
        assert (model.trainer.counts.episodes, model.trainer.counts.failed_jobs) == (3, 2)


def test_episodes_are_led_less_often_the_better_the_others_succeed():
    with her(guided_episodes=0.8, guided_fraction=0.5, **STAGED) as model:
        trainer = model.trainer
        trainer.source = watched = Watched(trainer.source)
        model.learn(60)
        assert [job.exploration.guided_episodes for job in watched.jobs[:3]] == [0.0, 0.0, 0.8]  # the warm-up leads nobody
        assert watched.jobs[2].exploration.guided_fraction == 0.5
        alone, episode = trainer.counts.success_alone, trainer.learn_from_next_job()[0]
        for success, is_guided, expected in ((True, True, alone), (True, False, 0.9 * alone + 0.1), (False, False, None)):
            before = trainer.counts.success_alone
            trainer._take(replace(episode, success=success, is_guided=is_guided))
            assert trainer.counts.success_alone == pytest.approx(0.9 * before if expected is None else expected)
        trainer.counts = replace(trainer.counts, success_alone=0.25)
        assert trainer._exploration().guided_episodes == pytest.approx(0.6)


def test_without_subgoals_nobody_is_led():
    with her() as model:
        model.learn(40)
        assert model.trainer._exploration().guided_episodes == 0.0


def test_workers_change_nothing_where_episodes_are_led():
    options = OPTIONS | STAGED | {"recipe": "point_reach", "max_episode_steps": 10, "policy_lag": 1}
    states = []
    for workers in (0, 2):
        with HER("PointReach-v0", workers=workers, **options) as model:
            model.learn(120)
            states.append((model.agent.state_dict(), model.trainer.counts.success_alone, model.trainer.counts.updates))
    assert states[0][1:] == states[1][1:]
    assert all(states[0][0][k].tobytes() == states[1][0][k].tobytes() for k in states[0][0])


def test_goals_that_were_achieved_already_are_counted_once_a_record():
    with her() as model:
        model.learn(40)
        share = model.trainer.meter.means()["train/goals_already_achieved"]
        assert model.trainer.meter.counts["train/goals_already_achieved"] == 1
        assert 0.0 < share < 1.0


class Uneven(Watched):
    """A source whose results come in the order that `first` chooses, and that plays evaluations only when asked to."""

    def __init__(self, source, first):
        super().__init__(source)
        self.first, self.is_evaluating, self.fault_counts = first, True, {}

    def wait_any(self, tickets):
        return self.first(tickets)

    def has_result(self, ticket):
        return self.is_evaluating

    def drop(self, ticket):
        self.source.drop(ticket)

    def take_fault_counts(self):
        fault_counts, self.fault_counts = self.fault_counts, {}
        return fault_counts


def test_the_free_schedule_takes_what_comes_and_drops_what_is_too_old():
    order = iter([1, 1, 0, 0, 0])  # which of the two jobs under way ends first
    with her(schedule="free", policy_lag=1) as model:
        trainer = model.trainer
        trainer.source = Uneven(trainer.source, lambda tickets: sorted(tickets)[next(order)])
        numbers = [episode.number for _ in range(4) for episode in trainer.learn_from_next_job()]
        assert numbers == [1, 2, 3, 4]  # episode 0 came third, two versions late
        counts = trainer.counts
        assert (counts.stale_episodes, counts.episodes, counts.env_steps) == (1, 4, 40)
        assert counts.updates == 20  # as many as the steps that were taken in after the warm-up of 20


def test_the_deterministic_schedule_never_asks_who_is_first():
    with her(policy_lag=2) as model:
        model.trainer.source = watched = Watched(model.trainer.source)
        assert not hasattr(watched, "wait_any")
        model.learn(60)
        assert [job.version for job in watched.jobs] == [0, 0, 0, 1, 2, 3, 4, 5]


def test_with_the_free_schedule_evaluations_run_beside_training():
    with her(schedule="free", eval_every=30, eval_episodes=2) as model:
        trainer = model.trainer
        trainer.source = source = Uneven(trainer.source, min)
        source.is_evaluating = False
        run, told = trainer.run(60), []
        for event in run:
            told.append(type(event).__name__)
            if told == ["JobFinished"] * 3:
                state = trainer.agent.state_dict()
            if told == ["JobFinished"] * 5:
                source.is_evaluating = True
            if isinstance(event, EvaluationFinished) and trainer.counts.env_steps == 50:
                assert event.snapshot.counts.env_steps == 30
                assert all(event.snapshot.agent_state[k].tobytes() == state[k].tobytes() for k in state)
        one = ["Outcome", "Outcome", "EvaluationFinished"]
        assert told == ["JobFinished"] * 5 + one + ["JobFinished"] + one
        assert [record["env_steps"] for record in trainer.history] == [30, 60]


def test_what_a_source_made_up_for_is_counted():
    with her() as model:
        model.trainer.source = source = Uneven(model.trainer.source, min)
        for _ in range(2):
            source.fault_counts = {"lost_workers": 1, "foreign_answers": 2}
            model.trainer.learn_from_next_job()
        counts = model.trainer.counts
        assert (counts.lost_workers, counts.foreign_answers, counts.truncated_answers) == (2, 4, 0)
