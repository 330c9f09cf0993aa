"""Hit: a puck or a ball goes on to places that the tool does not reach."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..task import Observation, Task
from .base import Array, GoalTask

RADIUS, SPEED, KEPT = 0.08, 0.1, 0.85  # distance of contact, of a step; fraction of its speed that a sliding puck keeps


class SlidingPuck(GoalTask):
    """A disc stays on the left of a line and hits a puck, which slides to a goal on the right of it."""

    near = 0.1

    def __init__(self) -> None:
        super().__init__(8, 2, 2)

    def begin(self) -> None:
        """Place the disc behind the puck."""
        self.disc = np.array([-0.45, self.np_random.uniform(-0.1, 0.1)])
        self.puck = np.array([-0.15, 0.0]) + self.place(-0.1, 0.1)
        self.goal = np.array([self.np_random.uniform(0.15, 0.5), self.np_random.uniform(-0.25, 0.25)])
        self.velocity, self.slide = np.zeros(2), np.zeros(2)

    def move(self, action: Array) -> None:
        """Accelerate the disc. A hit gives the puck the disc's speed along the line of their centres."""
        self.velocity = 0.5 * self.velocity + 0.5 * SPEED * action
        target = np.clip(self.disc + self.velocity, [-0.7, -0.5], [0.0, 0.5])
        self.velocity, self.disc = target - self.disc, target
        gap = self.puck - self.disc
        distance = max(float(np.linalg.norm(gap)), 1e-9)
        if distance < RADIUS:
            ahead = gap / distance
            self.slide = self.slide + max(0.0, float((self.velocity - self.slide) @ ahead)) * ahead
            self.puck = self.disc + RADIUS * ahead
        self.puck, self.slide = self.puck + self.slide, KEPT * self.slide

    def observe(self) -> Array:
        """Return positions and velocities of disc and puck."""
        return np.concatenate([self.disc, self.velocity, self.puck, self.slide])

    def achieved(self) -> Array:
        """Return the position of the puck."""
        return self.puck.copy()


def hit(observation: Observation) -> Array:
    """Take position behind the puck, then move through it with the speed that brings it to the goal."""
    seen = observation["observation"]
    disc, velocity, puck, slide = seen[:2], seen[2:4], seen[4:6], seen[6:8]
    way = observation["desired_goal"] - puck
    rest = slide / (1 - KEPT)
    if np.linalg.norm(slide) > 1e-3 and np.linalg.norm(disc - puck) > RADIUS:
        missing = way - rest
        if np.linalg.norm(missing) < 0.05 or puck[0] > 0.05:
            return np.zeros(2, np.float32)
    distance = float(np.linalg.norm(way))
    ahead = way / distance
    along, across = float((disc - puck) @ ahead), (disc - puck) - ((disc - puck) @ ahead) * ahead
    speed = distance * (1 - KEPT)
    if -along < 2.6 * RADIUS and -along > 0 and np.linalg.norm(across) < 0.012:
        wanted = speed * ahead - across
        left = -along - RADIUS
        wanted = wanted if left < 2.5 * speed or left < 0.1 else 0.5 * speed * ahead - across
    else:
        wanted = 0.5 * (puck - 2.2 * RADIUS * ahead - disc)
    action = (wanted - 0.5 * velocity) / (0.5 * SPEED)
    return (action / max(1.0, float(np.abs(action).max()))).astype(np.float32)


class SlopePutt(GoalTask):
    """A putter that stays on the left hits a ball on a sloping green, where it rolls in a curve until friction stops it."""

    near, contact, slope, friction = 0.1, 0.07, 0.0015, 0.004

    def __init__(self) -> None:
        super().__init__(8, 2, 2)

    def begin(self) -> None:
        """Place the putter behind the ball."""
        draw = self.np_random.uniform
        self.ball = np.array([-0.35, 0.0]) + self.place(-0.06, 0.06)
        self.putter = np.array([draw(-0.65, -0.5), draw(-0.12, 0.12)])
        self.goal = draw([0.05, -0.3], [0.5, 0.25])
        self.velocity, self.roll = np.zeros(2), np.zeros(2)

    def move(self, action: Array) -> None:
        """Accelerate the putter. A hit gives the ball the putter's speed along the line of their centres."""
        before = self.putter
        self.velocity = 0.5 * self.velocity + 0.06 * action
        for part in range(1, 5):  # a contact lies anywhere in a step
            self.putter = np.clip(before + part / 4 * self.velocity, [-0.9, -0.5], [-0.2, 0.5])
            gap = self.ball - self.putter
            distance = max(float(np.linalg.norm(gap)), 1e-9)
            if distance < self.contact:
                ahead = gap / distance
                self.roll = self.roll + max(0.0, float((self.velocity - self.roll) @ ahead)) * ahead
                self.ball = self.putter + self.contact * ahead
            self.ball = self.ball + self.roll / 4
        self.velocity, self.roll = self.putter - before, rolled(self.roll)

    def observe(self) -> Array:
        """Return positions and velocities of putter and ball."""
        return np.concatenate([self.putter, self.ball, self.velocity, self.roll])

    def achieved(self) -> Array:
        """Return the position of the ball."""
        return self.ball.copy()


def rolled(roll: Array) -> Array:
    """Return the velocity of a ball on the green after a step."""
    speed = float(np.linalg.norm(roll))
    if speed <= SlopePutt.friction:
        return np.zeros(2)
    return roll * (1 - SlopePutt.friction / speed) - np.array([0.0, SlopePutt.slope])


def aimed(way: Array) -> Array:
    """Return the velocity that a ball needs to roll to rest after a way, by shooting again and again."""
    speed = np.sqrt(2 * SlopePutt.friction / max(float(np.linalg.norm(way)), 1e-9)) * way
    for _ in range(8):
        end, roll = np.zeros(2), speed
        while roll.any():
            end, roll = end + roll, rolled(roll)
        speed = speed + 0.06 * (way - end)
    return speed


def putting() -> Callable[[Observation], Array]:
    """Return a policy that takes position behind the ball and swings with the speed that brings it to the goal."""
    aim: Array | None = None

    def putt(observation: Observation) -> Array:
        nonlocal aim
        putter, ball, velocity, roll = observation["observation"].reshape(4, 2)
        if roll.any():
            aim = None
            return np.clip(-0.5 * velocity / 0.06, -1, 1).astype(np.float32)
        aim = aimed(observation["desired_goal"] - ball) if aim is None else aim
        speed = float(np.linalg.norm(aim))
        ahead, gap = aim / max(speed, 1e-9), putter - ball
        along = float(gap @ ahead)
        across = gap - along * ahead
        is_swinging = np.linalg.norm(across) < 0.004 and along < 0
        if is_swinging and (velocity @ ahead > 0.02 or along < -0.25):
            wish = aim - across
        else:
            wish = 0.5 * (ball - 0.27 * ahead - putter)
        action = (wish - 0.5 * velocity) / 0.06
        return (action / max(1.0, float(np.linalg.norm(action)))).astype(np.float32)

    return putt


TASKS = (
    Task("SlidingPuck-v0", "hit", "open", SlidingPuck, 40, lambda: hit),
    Task("SlopePutt-v0", "hit", "open", SlopePutt, 50, putting),
)
