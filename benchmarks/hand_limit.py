"""How near the finger tips of HandReach can come to its goals.

python benchmarks/hand_limit.py [--goals 50]

A goal asks the thumb and one finger to meet, and the other fingers to stay. For goals of each finger, the distance of all
five tips to the goal is minimized by damped least squares over the joints, within their limits and with the two last
joints of a finger moving together, as tendons make them. Contacts and time are left out. Success needs 0.01.
"""

import argparse
import warnings

import gymnasium as gym
import gymnasium_robotics
import mujoco
import numpy as np

FINGERS = {"first": "ff", "middle": "mf", "ring": "rf", "little": "lf"}
RESTARTS, ITERATIONS, DAMPING, STEP = 3, 300, 1e-5, 0.5
MOVES = 0.01  # a tip whose goal lies farther from its place at rest has to move


class Hand:
    """The finger tips as a function of the joints."""

    def __init__(self) -> None:
        gym.register_envs(gymnasium_robotics)
        self.env = gym.make("HandReach-v3")
        self.inner = self.env.unwrapped
        self.model, self.data = self.inner.model, self.inner.data
        self.tips = [self.model.site(f"robot0:S_{name}tip").id for name in (*FINGERS.values(), "th")]
        joint = {self.model.joint(i).name: i for i in range(self.model.njnt)}
        pairs = [(joint[f"robot0:{name.upper()}J0"], joint[f"robot0:{name.upper()}J1"]) for name in FINGERS.values()]
        driven = [i for i in range(self.model.njnt) if i not in {last for last, _ in pairs}]
        self.joints = np.zeros((self.model.njnt, len(driven)))  # joints = self.joints @ free ones
        self.joints[driven, range(len(driven))] = 1
        for last, before in pairs:
            self.joints[last] = self.joints[before]
        self.low, self.high = self.model.jnt_range[driven].T
        self.env.reset(seed=0)
        self.rest = self.data.qpos[driven].copy()

    def distance(self, free: np.ndarray, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return goal minus tips, (15,), and its Jacobian, (15, number of free joints)."""
        self.data.qpos[:] = self.joints @ free
        mujoco.mj_forward(self.model, self.data)
        jacobian = np.zeros((15, self.model.nv))
        for i, tip in enumerate(self.tips):
            mujoco.mj_jacSite(self.model, self.data, jacobian[3 * i : 3 * i + 3], None, tip)
        return goal - np.concatenate([self.data.site_xpos[tip] for tip in self.tips]), jacobian @ self.joints

    def nearest(self, goal: np.ndarray, rng: np.random.Generator) -> float:
        """Return the smallest distance to a goal from several starts."""
        best = np.inf
        for restart in range(RESTARTS):
            free = np.clip(self.rest + 0.3 * (restart > 0) * rng.normal(size=len(self.rest)), self.low, self.high)
            for _ in range(ITERATIONS):
                gap, jacobian = self.distance(free, goal)
                best = min(best, float(np.linalg.norm(gap)))
                free = np.clip(free + STEP * self._direction(free, gap, jacobian), self.low, self.high)
        return best

    def _direction(self, free: np.ndarray, gap: np.ndarray, jacobian: np.ndarray) -> np.ndarray:
        """Return the step of least squares in the joints that are not held at their limits."""
        moves = np.ones(len(free), bool)
        while True:
            part = jacobian * moves
            step = part.T @ np.linalg.solve(part @ part.T + DAMPING * np.eye(15), gap)
            held = moves & (((free <= self.low) & (step < 0)) | ((free >= self.high) & (step > 0)))
            if not held.any():
                return step
            moves &= ~held


def main() -> None:
    """Print the distances for goals of each finger."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--goals", type=int, default=50, help="of each finger")
    goals = parser.parse_args().goals
    warnings.simplefilter("ignore")
    hand, rng, seed = Hand(), np.random.default_rng(0), 0
    found: dict[int, list[float]] = {number: [] for number in range(len(FINGERS))}
    while min(map(len, found.values())) < goals:
        goal = hand.env.reset(seed=seed)[0]["desired_goal"]
        seed += 1
        moves = np.flatnonzero(np.linalg.norm((goal - hand.inner.initial_goal).reshape(5, 3), axis=1) > MOVES)
        if len(moves) == 2 and len(found[moves[0]]) < goals:
            found[moves[0]].append(hand.nearest(goal, rng))
    for name, distances in zip(FINGERS, found.values(), strict=True):
        low, middle, high = np.quantile(distances, [0, 0.5, 1])
        share = np.mean(np.array(distances) < 0.01)
        print(f"{name} finger: {low:.4f} to {high:.4f}, median {middle:.4f}; {share:.0%} below 0.01")


if __name__ == "__main__":
    main()
