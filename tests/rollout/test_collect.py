from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import setups

from hindsight_rl import PointReach
from hindsight_rl.agents.policy import PolicyWeights
from hindsight_rl.errors import CollectError, GoalEnvError, MissingKeyError
from hindsight_rl.records import ArraySpec
from hindsight_rl.records.exploration import Exploration
from hindsight_rl.rollout.collect import Collector, EarlyEnd, Job, PolicyActor, RolloutSetup, play_episode
from hindsight_rl.seeds import EVALUATION, TRAINING, environment_seed

NOISY = Exploration(random_eps=0.3, noise=0.2)


def same(first, second):
    names = ("observation", "achieved_goal", "desired_goal", "action", "reward")
    return all(getattr(first, n).tobytes() == getattr(second, n).tobytes() for n in names)


def test_a_job_gives_the_same_episodes_whatever_was_collected_before():
    job = Job(7, TRAINING, (3, 4), setups.weights(), (NOISY, NOISY))
    fresh, used = Collector(setups.setup()), Collector(setups.setup())
    used.collect(Job(1, EVALUATION, (0, 1, 2), setups.weights(1)))
    first, second = fresh.collect(job), used.collect(job)
    assert [e.number for e in first] == [3, 4]
    assert all(same(a, b) for a, b in zip(first, second, strict=True))
    assert same(first[1], Collector(setups.setup()).collect(Job(7, TRAINING, (4,), setups.weights(), (NOISY,)))[0])
    assert not same(*first)


def test_seed_stream_weights_and_exploration_decide_an_episode():
    def collect(run_seed=0, stream=TRAINING, weights=0, explorations=(NOISY,)):
        return Collector(setups.setup()).collect(Job(run_seed, stream, (0,), setups.weights(weights), explorations))[0]

    assert same(collect(), collect())
    for change in ({"run_seed": 1}, {"stream": EVALUATION}, {"weights": 1}, {"explorations": ()}):
        assert not same(collect(), collect(**change)), change


THREE = Job(0, TRAINING, (0, 1, 2), setups.weights())


def test_remake_environment_makes_a_new_one_for_each_episode(counted):
    collector = Collector(setups.setup(counted, remake_environment=True))
    collector.collect(THREE)
    assert (counted.made, counted.closed) == (3, 2)
    collector.close()
    assert (counted.made, counted.closed) == (3, 3)


def test_a_given_environment_is_used_and_not_closed(counted):
    collector = Collector(setups.setup(counted), counted())
    episodes = collector.collect(THREE)
    collector.close()
    assert (counted.made, counted.closed) == (1, 0)
    assert all(same(a, b) for a, b in zip(episodes, Collector(setups.setup(setups.short)).collect(THREE), strict=True))


def test_a_given_environment_stays_open_if_each_episode_needs_a_new_one(counted):
    collector = Collector(setups.setup(counted, remake_environment=True), counted())
    collector.collect(THREE)
    collector.close()
    assert (counted.made, counted.closed) == (4, 3)


def test_after_an_error_the_next_episode_gets_a_new_environment(counted):
    given = counted()
    given.step = None
    collector = Collector(setups.setup(counted), given)
    with pytest.raises(CollectError, match=r"Episode 0 \(reset seed \d+\) failed in the environment \(TypeError"):
        collector.collect(THREE)
    assert len(collector.collect(THREE)) == 3
    assert (counted.made, counted.closed) == (2, 0)


def test_a_setup_without_environment_cannot_make_one():
    with pytest.raises(GoalEnvError, match="Pass an id or a function"):
        Collector(setups.setup(None)).collect(THREE)


def test_the_episode_holds_every_step():
    observed = []

    def act(observation):
        observed.append(observation["observation"].copy())
        return np.array([1.0, -1.0], np.float32)

    episode = play_episode(setups.short(), act, seed=5, number=9)
    assert len(episode) == 10
    assert np.array_equal(episode.observation[:-1], observed)
    assert np.array_equal(episode.observation[:, :2], episode.achieved_goal)
    assert (episode.action == [1.0, -1.0]).all()
    distance = np.linalg.norm(episode.achieved_goal[1:] - episode.desired_goal[1:], axis=1)
    assert np.array_equal(episode.reward, -(distance > 0.05).astype(float))
    assert (episode.terminated, episode.number) == (False, 9)
    assert episode.success is bool(distance[-1] <= 0.05)


@pytest.mark.parametrize(("low", "high"), [((-9.0, -0.25), (9.0, 9.0)), ((-9.0, -9.0), (9.0, 9.0))])
def test_training_ends_where_the_achieved_goal_leaves_its_range(low, high):
    exploration = Exploration(random_eps=0.0, noise=0.5, lowest_achieved=low, highest_achieved=high)
    job = Job(7, TRAINING, tuple(range(20)), setups.weights(), (exploration,) * 20)
    episodes = Collector(setups.setup(setups.short)).collect(job)  # of 10 steps
    for episode in episodes:
        is_outside = (episode.achieved_goal[1:, 1] < low[1]).tolist()
        assert not any(is_outside[:-1])
        assert is_outside[-1] or len(episode) == 10
        assert not episode.terminated
    assert any(len(episode) < 10 for episode in episodes) == (low[1] > -9)


@pytest.mark.parametrize(
    ("path", "rest", "steps"),
    [
        ([0, 1, 5, 5, 5, 5], 0.0, 2),  # at once
        ([0, 1, 5, 5.01, 5.02, 5.03], 0.1, 4),  # after two steps of rest
        ([0, 5, 5, 6, 6, 6], 0.1, 5),  # it moved again before
        ([0, 5, 5, 0, 0, 0], 0.1, None),  # it came back
        ([0, 0, 0, 0, 0], 0.1, None),  # it rests inside
    ],
)
def test_an_episode_ends_outside_of_a_range_at_once_or_where_the_achieved_goal_rests(path, rest, steps):
    plan = Exploration(0.0, 0.0, lowest_achieved=(-2.0,), highest_achieved=(2.0,), rest_displacement=rest)
    early_end, goals = EarlyEnd(plan), [np.array([float(x)]) for x in path]
    is_reached = [early_end.is_reached(*pair) for pair in pairwise(goals)]
    assert (is_reached.index(True) + 1 if any(is_reached) else None) == steps


def test_goals_with_several_axes_are_compared_number_by_number():
    early_end = EarlyEnd(Exploration(0.0, 0.0, lowest_achieved=(-2.0, 7.0), highest_achieved=(2.0, 9.0)))
    assert not early_end.is_reached(np.zeros((2, 1)), np.array([[0.0], [8.0]]))
    assert early_end.is_reached(np.zeros((2, 1)), np.array([[0.0], [6.0]]))


@pytest.mark.parametrize(("steps", "length"), [(4, 4), (None, 10), (25, 10)])
def test_training_episodes_may_be_shorter_than_others(steps, length):
    exploration = Exploration(random_eps=0.0, noise=0.5, episode_steps=steps)
    job = Job(7, TRAINING, (0,), setups.weights(), (exploration,))
    (episode,) = Collector(setups.setup(setups.short)).collect(job)
    assert (len(episode), episode.terminated) == (length, False)


def test_the_limit_truncates_an_episode():
    env = setups.Endless(max_steps=10)
    episode = play_episode(env, lambda o: np.zeros(2, np.float32), 0, limit=25, info_keys=("speed",))
    assert len(episode) == 25
    assert not episode.terminated
    assert episode.info["speed"].tolist() == [2.0] * 25


@pytest.mark.parametrize(
    ("time_limit", "success", "terminated"), [(10, False, True), (10, None, True), (10, True, False), (4, False, False)]
)
def test_an_episode_that_is_truncated_early_without_a_success_has_failed(time_limit, success, terminated):
    class GivesUp(PointReach):
        def step(self, action):
            seen, reward, _, _, _ = super().step(action)
            return seen, reward, False, self._steps == 4, {} if success is None else {"is_success": success}

    stay = lambda observation: np.zeros(2, np.float32)  # noqa: E731
    assert play_episode(GivesUp(), stay, seed=5, time_limit=time_limit).terminated == terminated
    assert not play_episode(GivesUp(), stay, seed=5).terminated  # every truncation may be that of the time limit


def test_an_episode_that_is_truncated_at_the_limit_of_the_run_has_not_failed():
    """The environment names a longer limit than it has, and the run has the right one."""

    class GivesUp(PointReach):
        def step(self, action):
            return *super().step(action)[:3], self._steps == 4, {"is_success": False}

    stay = lambda observation: np.zeros(2, np.float32)  # noqa: E731
    assert not play_episode(GivesUp(), stay, seed=5, limit=4, time_limit=10).terminated


def test_entries_of_info_are_copies():
    class Reuses(PointReach):
        cost = np.zeros(1)

        def step(self, action):
            self.cost[:] += 1
            return *super().step(action)[:4], {"is_success": False, "cost": self.cost}

    stay = lambda observation: np.zeros(2, np.float32)  # noqa: E731
    episode = play_episode(Reuses(), stay, seed=5, limit=3, info_keys=("cost[1]",))
    assert episode.info["cost"].ravel().tolist() == [1, 2, 3]


def test_a_job_knows_the_time_limit_of_the_task_and_whether_rewards_have_two_values():
    class GivesUp(PointReach):
        def step(self, action):
            return *super().step(action)[:3], self._steps == 4, {"is_success": False}

    for time_limit, high, terminated in ((10, 0.0, True), (4, 0.0, False), (10, np.inf, False)):
        policy = setups.policy_spec()
        task = replace(policy.task, max_episode_steps=time_limit, reward_low=-1.0, reward_high=high)
        policy = replace(policy, task=task)
        (episode,) = Collector(RolloutSetup(GivesUp, policy)).collect(Job(0, TRAINING, (0,), setups.weights()))
        assert (len(episode), episode.terminated) == (4, terminated)


def test_an_endless_episode_is_an_error_that_names_the_fix(monkeypatch):
    monkeypatch.setattr("hindsight_rl.rollout.collect.LONGEST_EPISODE", 100)
    with pytest.raises(GoalEnvError, match=r"did not end within 100 steps. Set max_episode_steps"):
        play_episode(setups.Endless(max_steps=10), lambda o: np.zeros(2, np.float32), 0)


def test_a_missing_info_key_is_named():
    with pytest.raises(MissingKeyError, match="`info_keys` names 'torque', but the keys of info are: is_success"):
        play_episode(setups.short(), lambda o: np.zeros(2, np.float32), 0, info_keys=("torque",))


def test_seeds_of_the_streams_differ_and_fit_a_c_integer():
    seeds = {environment_seed(run, stream, episode) for run in range(5) for stream in (0, 1) for episode in range(200)}
    assert len(seeds) == 5 * 2 * 200
    assert 0 <= min(seeds) <= max(seeds) < 2**31


NEAR = "near achieved=0,1 goal=2,3 tolerance=0.01 switch_distance=5"


def test_some_episodes_are_guided_and_marked_so():
    spec = setups.policy_spec(subgoals=(NEAR,))
    flat = np.random.default_rng(0).standard_normal(spec.architecture.n_weights).astype(np.float32)
    weights = PolicyWeights(flat, np.zeros(7, np.float32), np.ones(7, np.float32))
    setup = RolloutSetup(setups.short, spec)

    def collect(guided_episodes, guided_fraction=1.0, numbers=range(40)):
        exploration = Exploration(0.2, 0.1, guided_episodes=guided_episodes, guided_fraction=guided_fraction)
        return Collector(setup).collect(Job(0, TRAINING, tuple(numbers), weights, (exploration,) * len(numbers)))

    half = collect(0.5)
    assert 10 < sum(e.is_unguided for e in half) < 30
    assert all(e.is_unguided for e in collect(0.0, numbers=range(5)))
    assert not any(e.is_unguided for e in collect(1.0, numbers=range(5)))
    assert all(
        same(a, b) and a.is_unguided == b.is_unguided for a, b in zip(half[7:9], collect(0.5, numbers=(7, 8)), strict=True)
    )
    guided = next(e.number for e in half if not e.is_unguided)
    assert not same(half[guided], collect(0.5, guided_fraction=0.0, numbers=(guided,))[0])


def test_an_episode_that_gets_stuck_and_then_explores_is_unguided(monkeypatch):
    """Its success is what the policy reached. An episode that explores from the start, and random ones, are not."""
    monkeypatch.setattr("hindsight_rl.rollout.plans.STILL", 3)
    spec = setups.policy_spec(n_waypoints=2)
    (first,) = Collector(setups.setup(setups.short)).collect(Job(0, TRAINING, (0,), setups.weights()))
    places = np.stack([first.achieved_goal[0], first.desired_goal[0]])
    weights = replace(setups.weights(), waypoints=places, next_waypoint=np.array([[0, 1], [0, 1]], np.int16))

    def collect(exploration_episodes, **options):
        exploration = Exploration(0.0, 0.0, exploration_episodes=exploration_episodes, **options)
        jobs = Job(0, TRAINING, (0,), weights, (exploration,))
        return Collector(RolloutSetup(setups.short, spec)).collect(jobs)[0]

    plain, stuck = collect(0.0), collect(1e-12)
    assert np.array_equal(plain.action[:3], stuck.action[:3])
    assert not np.array_equal(plain.action, stuck.action)
    assert (plain.is_unguided, stuck.is_unguided) == (True, True)
    assert (collect(1.0).is_unguided, collect(0.0, is_random=True).is_unguided) == (False, False)


def test_an_episode_follows_the_paths_of_the_policy_if_its_exploration_says_so():
    spec = setups.policy_spec(n_waypoints=2)
    flat = np.random.default_rng(0).standard_normal(spec.architecture.n_weights).astype(np.float32)
    places = np.array([[100.0], [200.0]], np.float32).repeat(spec.task.goal.size, 1)  # the first one is always the nearest
    weights = replace(setups.weights(), flat=flat, waypoints=places, next_waypoint=np.array([[1, 1], [0, 1]], np.int16))

    def collect(weights, **options):
        jobs = Job(0, TRAINING, (0,), weights, (Exploration(0.0, 0.0, **options),))
        return Collector(RolloutSetup(setups.short, spec)).collect(jobs)[0]

    straight = collect(weights, follows_paths=False)
    assert same(straight, collect(weights.without_paths()))
    assert not same(straight, collect(weights))
    assert straight.is_unguided


def test_no_step_is_guided_without_guided_episodes():
    spec = setups.policy_spec(subgoals=(NEAR,))
    flat = np.random.default_rng(0).standard_normal(spec.architecture.n_weights).astype(np.float32)
    weights = PolicyWeights(flat, np.zeros(7, np.float32), np.ones(7, np.float32))
    exploration = Exploration(0.2, 0.1, guided_episodes=0.0, guided_fraction=1.0)

    def collect(exploration):
        return Collector(RolloutSetup(setups.short, spec)).collect(Job(0, TRAINING, (0, 1), weights, (exploration,) * 2))

    assert all(same(a, b) for a, b in zip(collect(exploration), collect(exploration.unguided()), strict=True))


def test_random_actions_are_repeated_for_1_to_random_action_repeat_steps():
    episodes = collect_sixty(Exploration(0.0, 0.0, is_random=True, random_action_repeat=9))
    changes = [np.flatnonzero((np.diff(e.action, axis=0) != 0).any(axis=1)) for e in episodes]
    lengths = np.concatenate([np.diff(each) for each in changes])
    assert (lengths.min(), lengths.max()) == (1, 9)
    assert lengths.mean() == pytest.approx(5, rel=0.1)


def test_random_eps_is_the_fraction_of_random_steps_with_repeats_too():
    exploration = Exploration(random_eps=0.3, noise=0.0, random_action_repeat=9)
    assert exploration.repeat_start_probability == pytest.approx(0.3 / (5 - 0.3 * 4))
    collector = Collector(setups.setup())
    is_random = []
    for e in collect_sixty(exploration, collector):
        best = collector.policy.predict(e.observation[:-1], e.achieved_goal[:-1], e.desired_goal[:-1])
        is_random += (np.abs(best - e.action).max(axis=1) > 1e-5).tolist()
    assert np.mean(is_random) == pytest.approx(0.3, abs=0.04)


def collect_sixty(exploration, collector=None):
    job = Job(0, TRAINING, tuple(range(60)), setups.weights(0), (exploration,) * 60)
    return (collector or Collector(setups.setup())).collect(job)


def test_a_function_is_called_before_each_action():
    calls = []
    expected = Collector(setups.setup(setups.short)).collect(Job(0, TRAINING, (0,), setups.weights()))
    collector = Collector(setups.setup(setups.short), setups.short(), lambda: calls.append(1))
    (episode,) = collector.collect(Job(0, TRAINING, (0,), setups.weights()))
    assert len(calls) == len(episode.action)
    assert same(episode, expected[0])


class Noting:
    """A policy and its planner, which notes each call. Actions are 3 and 4."""

    def __init__(self):
        self.blocked, self.begun, self.planner, self.actions = [], 0, self, iter([3, 4, 3, 4])
        self.spec = SimpleNamespace(task=SimpleNamespace(action=ArraySpec((), "int64", (3.0,), (4.0,), 2)))

    def begin_episode(self):
        self.begun += 1

    def add_blocked(self, observation, achieved_goal, action):
        self.blocked.append((observation.tolist(), action))

    def act(self, *arguments):
        return next(self.actions)


def test_a_plan_gets_the_actions_that_changed_nothing():
    policy = Noting()
    actor = PolicyActor(policy)
    for place in (0, 1, 1, 1):  # the actions 4 and 3 changed nothing in 1
        array = np.array([place])
        actor({"observation": array, "achieved_goal": array, "desired_goal": array})
    assert policy.blocked == [([1], 1), ([1], 0)]
    PolicyActor(policy)
    assert policy.begun == 2
