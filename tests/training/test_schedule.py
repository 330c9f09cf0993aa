from dataclasses import replace

import gymnasium
import pytest
from short_runs import OPTIONS, SUBGOALS, Recorder, Uneven, her, same_bytes, short

from hindsight_rl import HER
from hindsight_rl.errors import CollectError


@pytest.mark.parametrize("policy_lag", [0, 1, 3])
@pytest.mark.parametrize("episodes_per_job", [1, 2])
def test_a_job_acts_with_weights_that_are_policy_lag_jobs_old(policy_lag, episodes_per_job):
    with her(policy_lag=policy_lag, episodes_per_job=episodes_per_job) as model:
        trainer = model.trainer
        trainer.source = recorder = Recorder(trainer.source)
        published = [trainer.agent.policy_weights().flat.tobytes()]
        for _ in range(8):
            trainer.learn_from_next_job()
            published.append(trainer.agent.policy_weights().flat.tobytes())
        for number, job in enumerate(recorder.jobs):
            assert job.weights.flat.tobytes() == published[max(0, number - policy_lag)]
            assert job.episodes == tuple(range(number * episodes_per_job, (number + 1) * episodes_per_job))
        assert len(set(published)) > 4


def test_only_the_first_steps_act_at_random():
    with her(policy_lag=1) as model:
        model.trainer.source = recorder = Recorder(model.trainer.source)
        model.learn(60)
        assert [job.explorations[0].is_random for job in recorder.jobs] == [True] * 3 + [False] * 4


def test_the_deterministic_schedule_takes_jobs_in_their_order():
    with her(policy_lag=2) as model:
        model.trainer.source = recorder = Recorder(model.trainer.source)
        assert not hasattr(recorder, "wait_any")
        model.learn(60)
        assert [job.version for job in recorder.jobs] == [0, 0, 0, 1, 2, 3, 4, 5]


def test_the_free_schedule_takes_what_is_done_and_drops_what_is_too_old():
    order = iter([1, 1, 0, 0, 0])  # which of the two jobs in flight is done first
    with her(schedule="free", policy_lag=1) as model:
        trainer = model.trainer
        trainer.source = Uneven(trainer.source, lambda tickets: tickets[next(order)])
        numbers = [episode.number for _ in range(4) for episode in trainer.learn_from_next_job()]
        assert numbers == [1, 2, 3, 4]  # episode 0 came third, two versions late
        counts = trainer.counts
        assert (counts.stale_episodes, counts.episodes, counts.env_steps) == (1, 4, 40)
        assert counts.updates == 20  # as many as the steps that were stored after the first 20


@pytest.mark.parametrize(("schedule", "played", "after"), [("deterministic", [0, 1], [2, 3]), ("free", [1, 2], [3, 4])])
def test_no_episode_is_played_twice_after_jobs_were_dropped(schedule, played, after):
    """The free schedule takes the newer of the two jobs in flight, so 0 is in flight when the jobs are dropped."""
    with her(schedule=schedule, policy_lag=1) as model:
        trainer = model.trainer
        trainer.source = Uneven(trainer.source, lambda tickets: tickets[-1])
        assert [trainer.learn_from_next_job()[0].number for _ in range(2)] == played
        trainer.rollouts.drop()
        trainer.source.first = lambda tickets: tickets[0]
        assert [trainer.learn_from_next_job()[0].number for _ in range(2)] == after


class Faulty(gymnasium.Wrapper):
    """Raises in the steps for which `faulty` is true, counted over all environments of the test."""

    count = 0

    def __init__(self, env, faulty):
        super().__init__(env)
        self.faulty = faulty

    def step(self, action):
        type(self).count += 1
        if self.faulty(type(self).count):
            raise RuntimeError("the cable came off")
        return self.env.step(action)


def faulty(is_faulty):
    """Return a model with an environment that is faulty from the first training episode on."""
    Faulty.count = -10_000
    model = her(lambda: Faulty(short(), is_faulty), remake_environment=False)  # None would play it to decide
    model.trainer  # noqa: B018
    Faulty.count = 0
    return model


def test_a_job_that_fails_runs_again_on_a_new_environment():
    with faulty(lambda count: count in (25, 47)) as model, her() as plain:
        model.learn(60)
        assert model.trainer.counts.failed_jobs == 2
        assert same_bytes(plain.learn(60).agent.state_dict(), model.agent.state_dict())


def test_an_environment_that_always_fails_ends_the_run_with_its_error():
    with faulty(lambda count: count > 35) as model:
        with pytest.raises(CollectError, match=r"the cable came off") as caught:
            model.learn(100)
        assert isinstance(caught.value.__cause__, RuntimeError)
        assert (model.trainer.counts.episodes, model.trainer.counts.failed_jobs) == (3, 2)


def test_the_higher_the_success_without_guidance_the_fewer_episodes_are_guided():
    with her(guided_episodes=0.8, guided_fraction=0.5, policy_lag=0, **SUBGOALS) as model:
        trainer = model.trainer
        trainer.source = recorder = Recorder(trainer.source)
        model.learn(60)
        assert [job.explorations[0].guided_episodes for job in recorder.jobs[:3]] == [0.0, 0.0, 0.8]  # random steps first
        assert recorder.jobs[2].explorations[0].guided_fraction == 0.5
        trainer.success.successes = [True] * 5  # a quarter of 20: those that are missing count as failures
        assert trainer.rollouts.exploration(6, None).guided_episodes == pytest.approx(0.6)


def test_guided_and_random_episodes_do_not_count_in_the_success_without_guidance():
    with her(**SUBGOALS) as model:
        trainer = model.trainer
        [episode] = trainer.learn_from_next_job()
        assert trainer.success.successes == []  # its actions are random
        for success, is_unguided in ((True, False), (True, True), (False, True)):
            played = [replace(episode, success=success, is_unguided=is_unguided)]
            trainer.storing.store(played)
        assert trainer.success.successes == [True, False]


def test_without_subgoals_no_episode_is_guided():
    with her() as model:
        model.learn(40)
        assert model.trainer.rollouts.exploration(4, None).guided_episodes == 0.0


def test_workers_give_the_same_bytes_with_guided_episodes():
    options = OPTIONS | SUBGOALS | {"recipe": "point_reach", "max_episode_steps": 10, "policy_lag": 1}
    with HER("PointReach-v0", **options) as local, HER("PointReach-v0", workers=2, **options) as helped:
        local.learn(120)
        helped.learn(120)
        assert same_bytes(local.agent.state_dict(), helped.agent.state_dict())
        counts = local.trainer.counts, helped.trainer.counts
        assert local.trainer.success == helped.trainer.success
        assert 0 < len(local.trainer.success.successes) < 10
        assert counts[0].updates == counts[1].updates == 100


def test_faults_of_the_source_are_counted():
    with her() as model:
        model.trainer.source = source = Uneven(model.trainer.source, lambda tickets: tickets[0])
        for _ in range(2):
            source.fault_counts = {"lost_workers": 1, "damaged_results": 2}
            model.trainer.learn_from_next_job()
        counts = model.trainer.counts
        assert (counts.lost_workers, counts.damaged_results) == (2, 4)
