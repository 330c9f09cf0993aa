"""A flat world in NumPy: a tool that the action moves, an object that it pushes, columns that mean nothing."""

import numpy as np

from hindsight_rl.records import ArraySpec, Episode, GoalSpec
from hindsight_rl.rollout.plans import ProbingActor
from hindsight_rl.structure import infer_structure, plan_probing
from hindsight_rl.training.structure_search import all_choices

COLUMNS = {"tool": (0, 1), "object": (2, 3), "gap": (4, 5), "velocity": (6, 7), "noise": (8,), "constant": (9,)}
SPEC = GoalSpec(
    ArraySpec((10,), "float64"), ArraySpec((2,), "float64"), ArraySpec((2,), "float64", (-1.0, -1.0), (1.0, 1.0))
)
RADIUS = 0.15


def options_of(structure):
    """Return the options that follow from a structure; of several choices of one the last."""
    return {choice.option: choice.value for choice in all_choices(structure)}


class Pusher:
    """Positions within about 1 of the origin; the tool moves 0.1 per unit of action and pushes the object within RADIUS."""

    def __init__(self, seed, order=None, scale=1.0):
        self.rng = np.random.default_rng(seed)
        self.order = np.arange(10) if order is None else np.asarray(order)
        self.scale = scale

    def reset(self):
        self.tool = self.rng.normal(size=2) * 0.02
        direction = self.rng.uniform(0, 2 * np.pi)
        self.puck = self.rng.uniform(0.3, 0.6) * np.array([np.cos(direction), np.sin(direction)])
        self.velocity = np.zeros(2)
        self.goal = self.rng.uniform(-0.8, 0.8, size=2)

    def step(self, action):
        before = self.tool
        self.tool = self.tool + 0.1 * action + self.rng.normal(size=2) * 1e-3
        gap = self.puck - self.tool
        distance = np.linalg.norm(gap)
        moved = gap / distance * (RADIUS - distance) if distance < RADIUS else np.zeros(2)
        self.puck, self.velocity = self.puck + moved, self.tool - before

    def see(self):
        seen = np.concatenate([self.tool, self.puck, self.puck - self.tool, self.velocity, self.rng.normal(size=1), [3.0]])
        return (seen * self.scale)[self.order]


def play(world, n_episodes, choose, steps=50):
    """Episodes of `steps` steps; choose(observation, is_first) -> action."""
    episodes = []
    for _ in range(n_episodes):
        world.reset()
        seen, achieved, actions = [world.see()], [world.puck.copy()], []
        for step in range(steps):
            action = np.clip(choose({"observation": seen[-1]}, step == 0), -1, 1)
            world.step(action)
            seen.append(world.see())
            achieved.append(world.puck.copy())
            actions.append(action)
        goal = np.tile(world.goal, (steps + 1, 1))
        episodes.append(Episode(np.array(seen), np.array(achieved), goal, np.array(actions), np.zeros(steps)))
    return episodes


def repeated_random_actions(seed, longest=8, size=2):
    """Random actions, (size,), each for 1 to `longest` steps."""
    rng, state = np.random.default_rng(seed), {"left": 0, "action": None}

    def choose(observation, is_first):
        if is_first or not state["left"]:
            state["action"], state["left"] = rng.uniform(-1, 1, size=size), int(rng.integers(1, longest + 1))
        state["left"] -= 1
        return state["action"]

    return choose


def structure_of(order=None, scale=1.0, world=None, spec=SPEC):
    """Return the structure of a world, the random episodes, and those that seek contact."""
    world = world or Pusher(0, order, scale)
    episodes = play(world, 40, repeated_random_actions(1, size=spec.action.shape[0]))
    found = infer_structure(episodes, spec)
    plan = plan_probing(found, found.sequence)
    probing = []
    for k in range(30):
        act = ProbingActor(plan, spec.action, np.random.default_rng([2, k]))
        probing += play(world, 1, lambda observation, is_first, act=act: act(observation))
    return infer_structure(episodes, spec, probing), episodes, probing
