"""Hit: a puck or a ball goes on to places that the tool does not reach."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..task import Observation, Task
from .base import Array, GoalTask, unit

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


class VelcroPong(GoalTask):
    """A ball rolls to a paddle on a slanted table. It sticks to the far wall, which it shall meet at a position."""

    near, wall, width, bounce, slope = 0.1, 1.2, 0.11, 0.7, 0.0004
    pace, tilt_most, tilt_pace = 0.05, 0.5, 0.12

    def __init__(self) -> None:
        super().__init__(9, 2, 3)

    def begin(self) -> None:
        """Let the ball roll from the side of the wall, and place the paddle about where it arrives."""
        draw = self.np_random.uniform
        self.ball, steps = draw([0.7, -0.1], [0.95, 0.4]), draw(16, 24)
        entry = draw([0.0, -0.15], [0.0, 0.3])
        self.velocity = (entry - self.ball) / steps + [0, self.slope * steps / 2]
        self.paddle, self.tilt, self.is_stuck = draw([-0.1, entry[1] - 0.15], [0.05, entry[1] + 0.15]), 0.0, False
        self.shift = np.zeros(2)
        self.goal = np.array([self.wall, draw(-0.25, 0.55)])

    def move(self, action: Array) -> None:
        """Tilt and move the paddle. In each half of a step the ball may bounce."""
        before = self.paddle
        self.tilt += float(np.clip(self.tilt_most * action[0] - self.tilt, -self.tilt_pace, self.tilt_pace))
        self.paddle = np.clip(before + self.pace * action[1:], [-0.2, -0.5], [0.3, 0.7])
        self.shift = self.paddle - before
        for part in (0.5, 1.0):
            if not self.is_stuck:
                self._roll(before + part * self.shift, unit(self.tilt))

    def _roll(self, paddle: Array, normal: Array) -> None:
        self.ball = self.ball + 0.5 * self.velocity
        self.velocity = self.velocity - [0, 0.5 * self.slope]
        gap = self.ball - paddle
        depth, along = gap @ normal, gap[1] * normal[0] - gap[0] * normal[1]
        closing = (self.velocity - self.shift) @ normal
        if -0.1 < depth < 0.02 and abs(along) < self.width and closing < 0:
            self.velocity = self.velocity - (1 + self.bounce) * closing * normal
        if not -0.5 < self.ball[1] < 0.7:  # the cushions
            self.velocity = self.velocity * [1, -0.8 if self.velocity[1] * (self.ball[1] - 0.1) > 0 else 1]
        if not -0.3 < self.ball[0] < self.wall:  # the net, or the felt
            self.ball = np.array([np.clip(self.ball[0], -0.3, self.wall), self.ball[1]])
            self.velocity, self.is_stuck = np.zeros(2), True

    def observe(self) -> Array:
        """Return velocities in tenths, the tilt in degrees, the paddle and the gap to the ball, mixed."""
        (x, y), (px, py), (vx, vy), (mx, my) = self.ball, self.paddle, 10 * self.velocity, 10 * self.shift
        return np.array([vx, px, y - py, np.degrees(self.tilt), vy, x - px, my, py, mx])

    def achieved(self) -> Array:
        """Return where the ball is."""
        return self.ball.copy()


def strike(observation: Observation) -> Array:
    """Wait where the ball arrives, and strike it ahead with the tilt that sends it to the goal."""
    task, tilts = VelcroPong, np.linspace(-0.5, 0.5, 201)
    seen, ball, goal = observation["observation"], observation["achieved_goal"], observation["desired_goal"]
    velocity, paddle = seen[[0, 4]] / 10, seen[[1, 7]]
    if velocity[0] >= 0 or ball[0] < paddle[0]:
        return np.zeros(3, np.float32)
    steps = max(0.0, (ball[0] - paddle[0]) / (task.pace - velocity[0]))  # until they meet, if the paddle strikes now
    is_strike = steps < 3
    if not is_strike:
        steps = (ball[0] - paddle[0]) / -velocity[0]
    meeting = ball + steps * velocity - [0, task.slope * steps**2 / 2]
    arriving, normals = velocity - [0, task.slope * steps], np.stack([np.cos(tilts), np.sin(tilts)], 1)
    closing = normals @ (arriving - [task.pace, 0])
    after = arriving - (1 + task.bounce) * closing[:, None] * normals
    left = (task.wall - meeting[0]) / np.maximum(after[:, 0], 1e-3)
    landing = meeting[1] + after[:, 1] * left - task.slope * left**2 / 2
    tilt = tilts[np.argmin(np.abs(landing - goal[1]))]
    aside = 0.0 if steps < 1 else (meeting[1] - paddle[1]) / task.pace
    ahead = 1.0 if is_strike else (-0.1 - paddle[0]) / task.pace
    return np.clip([tilt / task.tilt_most, ahead, aside], -1, 1).astype(np.float32)


TASKS = (
    Task("SlidingPuck-v0", "hit", "open", SlidingPuck, 40, lambda: hit),
    Task("SlopePutt-v0", "hit", "open", SlopePutt, 50, putting),
    Task("VelcroPong-v0", "hit", "open", VelcroPong, 60, lambda: strike),
)
