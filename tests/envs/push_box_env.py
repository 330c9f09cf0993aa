"""A box on a 6x6 grid that an agent must push to a goal, with five discrete moves."""

import gymnasium
import numpy as np
from gymnasium import spaces

SIDE, MAX_STEPS = 6, 40
MOVES = np.array([(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)])


class PushBox(gymnasium.Env):
    """The agent steps into the box to move it, if the cell behind it is free. There are 40 steps."""

    max_steps = MAX_STEPS

    def __init__(self):
        cell = spaces.Box(0, SIDE - 1, (2,), np.float32)
        self.observation_space = spaces.Dict(
            observation=spaces.Box(0, SIDE - 1, (6,), np.float32), achieved_goal=cell, desired_goal=cell
        )
        self.action_space = spaces.Discrete(len(MOVES))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.box = self.np_random.integers(1, SIDE - 1, 2)
        self.agent, self.target = self.np_random.permutation(self.cells_except(self.box))[:2]
        self.steps = 0
        return self.observe(), {"is_success": False}

    def cells_except(self, taken):
        cells = np.indices((SIDE, SIDE)).reshape(2, -1).T
        return cells[(cells != taken).any(1)]

    def step(self, action):
        move = MOVES[action]
        place, behind = self.agent + move, self.box + move
        is_pushed = (place == self.box).all()
        if is_on_grid(behind if is_pushed else place):
            self.agent, self.box = place, behind if is_pushed else self.box
        self.steps += 1
        success = bool((self.box == self.target).all())
        return self.observe(), float(success) - 1.0, False, self.steps >= MAX_STEPS, {"is_success": success}

    def observe(self):
        agent, box, target = (np.asarray(cell, np.float32) for cell in (self.agent, self.box, self.target))
        return {"observation": np.concatenate([agent, box, target]), "achieved_goal": box, "desired_goal": target}

    def compute_reward(self, achieved_goal, desired_goal, info):
        return (np.asarray(achieved_goal) == desired_goal).all(-1).astype(np.float32) - 1


def is_on_grid(cell):
    return bool(((cell >= 0) & (cell < SIDE)).all())
