"""Wrappers: flat observations and goals, further columns, recomputed rewards."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from line_env import Line, near

from hindsight_rl import HER, AddColumns, BitFlipping, PointReach, ReplayOptions, make_buffer
from hindsight_rl.envs.check import check_goal_env
from hindsight_rl.envs.goal_env import make_goal_env, read_spec
from hindsight_rl.envs.goal_functions import reward_function, terminated_function
from hindsight_rl.envs.wrappers import DiscreteActions, FlattenGoalEnv
from hindsight_rl.errors import GoalEnvError, OptionError
from hindsight_rl.records import OBSERVATION_KEYS


class Nested(Line):
    """Goals and observation are dictionaries; there is a further key, which is not used."""

    def __init__(self):
        super().__init__()
        box = self.observation_space["observation"]
        nested = spaces.Dict(left=spaces.Box(-100, 100, (1,), np.float32), right=spaces.Box(-100, 100, (1,), np.float32))
        fuel = spaces.Box(0.0, 1.0, (2,), np.float32)
        self.observation_space = spaces.Dict(observation=box, achieved_goal=nested, desired_goal=nested, fuel=fuel)

    def step(self, action):
        self.place += float(action[0])
        self.steps += 1
        success = bool(abs(self.place - self.goal[0]) < 0.35)
        return self.observe(), success - 1.0, success, self.steps >= self.max_steps, {"is_success": success}

    def observe(self):
        here = np.full(1, self.place, np.float32)
        nested = {"left": here, "right": here.copy()}
        goal = {"left": self.goal[:1].copy(), "right": self.goal[1:].copy()}
        fuel = np.array([0.5, self.steps / 10], np.float32) if hasattr(self, "steps") else np.zeros(2, np.float32)
        return {
            "observation": np.full(2, self.place, np.float32),
            "achieved_goal": nested,
            "desired_goal": goal,
            "fuel": fuel,
        }

    def compute_reward(self, achieved_goal, desired_goal, info):
        return float(self.compute_terminated(achieved_goal, desired_goal, info)) - 1

    def compute_terminated(self, achieved_goal, desired_goal, info):
        return bool(abs(float(achieved_goal["left"][0] - desired_goal["left"][0])) < 0.35)


def test_the_error_names_the_wrapper():
    with pytest.raises(GoalEnvError, match=r"achieved_goal, got a Dict space.*FlattenGoalEnv"):
        make_goal_env(Nested())


def test_nested_goals_are_flat_and_the_functions_accept_batches():
    env = make_goal_env(lambda: FlattenGoalEnv(Nested()))
    spec = read_spec(env)
    assert (spec.observation.shape, spec.goal.shape, spec.reward_low, spec.reward_high) == ((2,), (2,), -1.0, 0.0)
    observation, _ = env.reset(seed=0)
    assert all(observation[key] in env.observation_space[key] for key in observation)
    assert observation["desired_goal"].tolist() == env.unwrapped.goal.tolist()
    achieved, desired = np.array([[0, 0], [0, 0]], np.float32), np.array([[0.1, 0], [1, 0]], np.float32)
    assert reward_function(env)(achieved, desired, {}).tolist() == [0, -1]
    assert terminated_function(env)(achieved, desired, {}).tolist() == [True, False]
    report = check_goal_env(env)
    assert report.ok, str(report)
    assert report.facts.terminates_on_success is not False


def test_further_keys_follow_the_observation_in_their_order():
    class Fuelled(Line):
        def __init__(self):
            super().__init__()
            parts = {**self.observation_space.spaces, "fuel": spaces.Box(0.0, 1.0, (1,)), "gear": spaces.Discrete(3)}
            self.observation_space = spaces.Dict(parts)

        def observe(self):
            return {**super().observe(), "fuel": np.full(1, 0.25, np.float32), "gear": np.int64(1)}

    env = make_goal_env(Fuelled, observation_keys=("gear", "fuel"))
    assert read_spec(env).observation.shape == (6,)
    observation, _ = env.reset(seed=0)
    assert observation["observation"][2:].tolist() == [0, 1, 0, 0.25]
    assert observation["observation"] in env.observation_space["observation"]
    assert set(observation) == {"observation", "achieved_goal", "desired_goal"}
    assert env.observation_space["desired_goal"] == Line().observation_space["desired_goal"]
    assert reward_function(env).function == env.unwrapped.compute_reward
    with pytest.raises(OptionError, match="no observation 'speed', only"):
        make_goal_env(Fuelled, observation_keys=("speed",))


def test_some_numbers_of_a_key_follow_the_observation():
    env = make_goal_env(Line, observation_keys=("desired_goal[1,0]", "achieved_goal[1]"))
    observation, _ = env.reset(seed=0)
    (first, second), achieved = observation["desired_goal"], observation["achieved_goal"]
    assert observation["observation"][2:].tolist() == [second, first, achieved[1]]
    assert observation["observation"] in env.observation_space["observation"]
    with pytest.raises(OptionError, match=r"achieved_goal has no numbers 0, 2, as it is Box"):
        make_goal_env(Line, observation_keys=("achieved_goal[0,2]",))


class Cells(Line):
    """Positions on a grid are MultiDiscrete."""

    def __init__(self):
        super().__init__()
        cells = spaces.MultiDiscrete([5, 4])
        self.observation_space = spaces.Dict(dict.fromkeys(("observation", "achieved_goal", "desired_goal"), cells))
        self.action_space = spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.goal = (self.np_random.integers(0, [5, 4]) for _ in range(2))
        return self.observe(), {}

    def step(self, action):
        move = [(1, 0), (-1, 0), (0, 1), (0, -1)][action]
        self.cell = np.clip(self.cell + move, 0, [4, 3])
        self.steps += 1
        reward = self.compute_reward(self.cell, self.goal, {})
        return self.observe(), float(reward), False, self.steps >= self.max_steps, {"is_success": bool(reward == 0)}

    def observe(self):
        cell = getattr(self, "cell", np.zeros(2, np.int64))
        return {"observation": cell.copy(), "achieved_goal": cell.copy(), "desired_goal": self.goal.copy()}

    def compute_reward(self, achieved_goal, desired_goal, info):
        return (np.asarray(achieved_goal) == desired_goal).all(-1).astype(np.float32) - 1


def test_multi_discrete_spaces_are_whole_numbers_or_one_hot():
    report = check_goal_env(Cells())
    assert {f.level for f in report.findings} == {"ok"}, str(report)
    assert read_spec(Cells()).goal.shape == (2,)
    env = FlattenGoalEnv(Cells())
    assert read_spec(env).goal.shape == (9,)
    observation, _ = env.reset(seed=0)
    assert observation["achieved_goal"].sum() == 2
    assert check_goal_env(env).ok


def test_environments_without_the_three_keys_are_errors():
    env = Line()
    env.observation_space = spaces.Dict({"observation": env.observation_space["observation"]})
    with pytest.raises(OptionError, match="no observation 'achieved_goal'"):
        FlattenGoalEnv(env)


def test_actions_that_cannot_be_used_need_another_wrapper():
    env = Line()
    env.action_space = spaces.Tuple((env.action_space, spaces.Discrete(2)))
    for each in (env, FlattenGoalEnv(env)):
        with pytest.raises(
            GoalEnvError, match=r"the action space, got a Tuple space\. Convert its actions in a gymnasium\."
        ):
            make_goal_env(each)


def position(observation):
    return observation[:2]


def ahead(observation):
    return observation[:2] + 0.1 * observation[2:]


def speed(observation):
    return np.linalg.norm(observation[2:])


def make():
    return AddColumns(PointReach(max_steps=10), position, ahead, speed)


def test_columns_follow_the_observation():
    env = make()
    first, _ = env.reset(seed=0)
    second, *_ = env.step(np.array([1.0, -1.0], np.float32))
    for row in (first["observation"], second["observation"]):
        assert row.dtype == np.float32
        columns = np.concatenate([row[:2], ahead(row[:4]), [speed(row[:4])]]).astype(np.float32)
        assert row[4:].tolist() == columns.tolist()
        assert row in env.observation_space["observation"]
    assert second["achieved_goal"].tolist() == second["observation"][:2].tolist()
    assert check_goal_env(make).ok


def test_a_subgoal_may_be_a_pair_of_functions():
    subgoal = "stop achieved=4,5 goal=6,7 tolerance=0.01 switch_distance=0.02"
    options = {"hidden": (8,), "random_steps": 20, "updates_per_step": 1.0, "eval_every": 0, "agent": "ddpg"}
    with HER(make, subgoals=(subgoal,), structure="declared", **options) as model:
        model.learn(60)
        batch = model.trainer.buffer.sample(64)
        here = batch.subgoal == 1
        assert np.array_equal(batch.achieved_goal[here], batch.observation[here][:, 4:6])
        assert model.trainer.counts.updates == 40


def test_bits_cannot_have_columns():
    with pytest.raises(GoalEnvError, match="needs a flat observation of floats"):
        AddColumns(BitFlipping(4), position)


class Shaped(Line):
    """Its step returns minus the distance, its compute_reward 0 near the goal, else -1."""

    def reward(self, observation, info):
        return -float(np.abs(observation["achieved_goal"] - self.goal).sum())


class Moving(Shaped):
    """The goal moves when it is reached: the reward of the step is that of the goal before."""

    def observe(self):
        goal = self.goal.copy()
        here = np.full(2, self.place, np.float32)
        self.goal = goal + 5 if near(here, goal) else goal
        return {"observation": here, "achieved_goal": here.copy(), "desired_goal": self.goal.copy()}


def test_the_check_offers_to_train_on_compute_reward_and_accepts_it():
    report = check_goal_env(Shaped())
    assert [f.name for f in report.of("error")] == ["reward values"]
    (found,) = report.of("error")
    assert "or train on compute_reward instead: --reward recompute, or reward='recompute'" in found.sentence
    report = check_goal_env(Shaped(), reward="recompute")
    assert {f.level for f in report.findings} == {"ok"}, str(report)
    with pytest.raises(OptionError, match="`reward` must be 'step' or 'recompute'"):
        check_goal_env(Shaped(), reward="computed")


@pytest.mark.parametrize("kind", [Shaped, Moving])
def test_each_step_has_the_reward_of_its_goals(kind):
    env = make_goal_env(kind, reward="recompute")
    observation, _ = env.reset(seed=3)
    for _ in range(10):
        goal = observation["desired_goal"]
        observation, reward, *_ = env.step(env.action_space.sample())
        assert reward == near(observation["achieved_goal"], goal) - 1.0
    assert (read_spec(env).reward_low, read_spec(env).reward_high) == (-1.0, 0.0)


def test_a_run_trains_on_compute_reward():
    options = {"agent": "td3", "hidden": (8,), "random_steps": 30, "updates_per_step": 0.1}
    maker = lambda: gymnasium.wrappers.TimeLimit(Shaped(), 10)  # noqa: E731
    with pytest.raises(GoalEnvError, match="reward='recompute'"):
        HER(maker, **options)
    with HER(maker, reward="recompute", **options) as model:
        batch = model.learn(60).trainer.buffer.sample(500)
        distance = np.linalg.norm(batch.next_achieved_goal - batch.goal, axis=1)
        assert (batch.reward == np.where(distance < 0.5, 0, -1)).all()
        assert set(model.trainer.buffer.timeline.rows["reward"].tolist()) <= {-1.0, 0.0}
        assert set(model.evaluate(2).outcomes[0].episode_return.as_integer_ratio()) & {1}  # a whole number


def test_a_buffer_recomputes_the_rewards_of_all_samples():
    env = Shaped()
    with pytest.warns(UserWarning, match="reward values"):
        make_buffer(env, 100)
    buffer = make_buffer(env, 100, ReplayOptions(reward="recompute"))
    observation, _ = env.reset(seed=1)
    for _ in range(10):
        before, action = observation, env.action_space.sample()
        observation, reward, terminated, truncated, info = env.step(action)
        buffer.add(before, action, reward, observation, terminated, truncated, info)
    batch = buffer.sample(200)
    assert (~batch.is_relabelled).any()
    distance = np.linalg.norm(batch.next_achieved_goal - batch.goal, axis=1)
    assert (batch.reward == np.where(distance < 0.5, 0, -1)).all()


def test_an_extra_reward_contradicts_it():
    with pytest.raises(OptionError, match="`extra_reward` adds what compute_reward leaves out"):
        ReplayOptions(extra_reward=True, reward="recompute")


class Pads(gymnasium.Env):
    """Return the action as the observation."""

    observation_space = spaces.Dict(dict.fromkeys(OBSERVATION_KEYS, spaces.Box(-9, 9, (2,), np.int64)))

    def __init__(self, action_space):
        self.action_space = action_space

    def step(self, action):
        assert self.action_space.contains(action)
        return action, 0.0, False, False, {}


@pytest.mark.parametrize(
    ("space", "combinations"),
    [
        (spaces.MultiDiscrete([2, 3], start=[0, -1]), [[0, -1], [0, 0], [0, 1], [1, -1], [1, 0], [1, 1]]),
        (spaces.MultiBinary(2), [[0, 0], [0, 1], [1, 0], [1, 1]]),
        (spaces.MultiDiscrete([[2], [1]]), [[[0], [0]], [[1], [0]]]),
    ],
)
def test_each_combination_of_actions_has_a_number(space, combinations):
    env = DiscreteActions(Pads(space))
    assert env.action_space == spaces.Discrete(len(combinations))
    assert [env.step(action)[0].tolist() for action in range(len(combinations))] == combinations
    assert [env.number(np.array(each)) for each in combinations] == list(range(len(combinations)))


@pytest.mark.parametrize("space", [spaces.Discrete(3), spaces.MultiBinary(13), spaces.MultiBinary(2_000)])
def test_other_actions_are_not_numbered(space):
    with pytest.raises(GoalEnvError, match=r"MultiDiscrete|combinations"):
        DiscreteActions(Pads(space))
