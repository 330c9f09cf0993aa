"""A tiny task for the SB3 adapter: observations that contain the number of their episode and step."""

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from hindsight_rl.compat.sb3 import HerReplayBuffer

ARRAYS = ("actions", "rewards", "dones", "timeouts", "ep_length")


def learner(algorithm, env, **options):
    """A very small model."""
    tiny = {
        "policy_kwargs": {"net_arch": [16]},
        "batch_size": 16,
        "buffer_size": 1000,
        "replay_buffer_class": HerReplayBuffer,
    }
    return algorithm("MultiInputPolicy", env, **tiny, **options)


def box(size, dtype=np.float32):
    return spaces.Box(-np.inf, np.inf, (size,), dtype)


class Line(gymnasium.Env):
    """Walk on a line for `length` steps. The reward shows the two goals that it was computed from."""

    observation_space = spaces.Dict(observation=box(2), achieved_goal=box(1), desired_goal=box(1))
    action_space = spaces.Box(-1, 1, (1,), np.float32)
    length = 5

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.goal, self.step_number = np.float32(0), self.np_random.normal(size=1).astype(np.float32), 0
        return self.observe(), {}

    def step(self, action):
        self.at, self.step_number = self.at + action[0], self.step_number + 1
        obs = self.observe()
        reward = float(self.compute_reward(obs["achieved_goal"][None], self.goal[None], {})[0])
        return obs, reward, False, self.step_number == self.length, {"is_success": False}

    def observe(self):
        position = np.array([self.at, self.step_number], np.float32)
        return {"observation": position, "achieved_goal": position[:1].copy(), "desired_goal": self.goal}

    def compute_reward(self, achieved_goal, desired_goal, info):
        return -np.abs(achieved_goal - desired_goal)[:, 0]


class Twice(Line):
    def compute_reward(self, achieved_goal, desired_goal, info):
        return 2 * super().compute_reward(achieved_goal, desired_goal, info)


class InfoReward(Line):
    """The reward is the bonus in the info."""

    def compute_reward(self, achieved_goal, desired_goal, info):
        assert len(info) == len(desired_goal)
        return np.array([each["bonus"] for each in info], np.float32)


def venv(n_envs=1, kind=Line):
    return DummyVecEnv([kind] * n_envs)


def make(size=100, n_envs=1, kind=HerReplayBuffer, env=Line, **options):
    return kind(size, env.observation_space, env.action_space, venv(n_envs, env), device="cpu", n_envs=n_envs, **options)


def observe(numbers, ts):
    """Observations after t steps of episode `number`: (number, t), achieved goal 1000 number + t, desired goal -number."""
    number, t = np.asarray(numbers, np.float32), np.asarray(ts, np.float32)
    return {
        "observation": np.stack([number, t], axis=1),
        "achieved_goal": (1000 * number + t)[:, None],
        "desired_goal": -number[:, None],
    }


def play(buffers, numbers, ts, done, terminated=False, **info):
    """Add a step of every environment: action t, reward t / 8. An end is a time limit unless it terminates."""
    t = np.asarray(ts, np.float32)
    done = np.broadcast_to(done, t.shape)
    for buffer in buffers if isinstance(buffers, list) else [buffers]:
        infos = [{"TimeLimit.truncated": bool(end) and not terminated, **info} for end in done]
        buffer.add(observe(numbers, ts), observe(numbers, t + 1), t[:, None], t / 8, done.copy(), infos)


def play_episode(buffer, number, steps, terminated=False, is_ended=True):
    for t in range(steps):
        play(buffer, [number], [t], is_ended and t == steps - 1, terminated)


def play_unequal(buffers, n_envs, n_episodes, longest=20, seed=0):
    """Add random episodes of 1 to `longest` steps, in parallel. Every third one terminates."""
    rng = np.random.default_rng(seed)
    number, t = np.arange(n_envs), np.zeros(n_envs, int)
    length, started = rng.integers(1, longest + 1, n_envs), n_envs
    while started < n_episodes:
        done = t + 1 == length
        infos = [{"TimeLimit.truncated": bool(d) and n % 3 > 0} for d, n in zip(done, number, strict=True)]
        step = np.float32(t)
        for buffer in buffers:
            buffer.add(observe(number, t), observe(number, t + 1), step[:, None], step / 8, done.copy(), infos)
        t = np.where(done, 0, t + 1)
        for i in np.flatnonzero(done):
            number[i], length[i], started = started, rng.integers(1, longest + 1), started + 1


def numbers_of(samples):
    """(number, t) of the observation of each sample, its goal, and whether it is relabelled."""
    number, t = samples.observations["observation"].numpy().T
    goal = samples.observations["desired_goal"].numpy()[:, 0]
    return number.astype(int), t.astype(int), goal, goal >= 0


def check_rewards(samples):
    """A relabelled reward is that of the new goal; others stay as stored."""
    number, t, goal, is_relabelled = numbers_of(samples)
    achieved = samples.next_observations["achieved_goal"].numpy()[:, 0]
    expected = np.where(is_relabelled, -np.abs(achieved - goal), t / 8)
    assert samples.rewards.numpy()[:, 0].tolist() == expected.astype(np.float32).tolist()
    assert achieved.tolist() == (1000 * number + t + 1).tolist()
    assert samples.next_observations["desired_goal"].tolist() == samples.observations["desired_goal"].tolist()


def arrays_of(buffer):
    arrays = {name: getattr(buffer, name) for name in ARRAYS}
    arrays |= {f"observations {key}": value for key, value in buffer.observations.items()}
    return arrays | {f"next_observations {key}": value for key, value in buffer.next_observations.items()}


def same(samples, others):
    parts = [(samples.observations, others.observations), (samples.next_observations, others.next_observations)]
    pairs = [(a[key], b[key]) for a, b in parts for key in a]
    pairs += [(getattr(samples, name), getattr(others, name)) for name in ("actions", "rewards", "dones")]
    return all(torch.equal(a, b) for a, b in pairs)
