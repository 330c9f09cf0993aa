"""An arm with a scoop, two robots at a heavy stone, a shunting yard, and a bottle that can fall."""

from __future__ import annotations

from math import atan2, cos, hypot, pi, sin
from typing import Any

import numpy as np

from ..open.aisles import Plan, Planner, State
from ..open.base import Array, GoalTask, unit
from ..task import Observation, Task

GOALS = ("achieved_goal", "desired_goal")


def wrapped(angle: float) -> float:
    """Return an angle between -pi and pi."""
    return (angle + pi) % (2 * pi) - pi


class ScoopArm(GoalTask):
    """An arm with shoulder, elbow and wrist pushes a puck over a desk with a scoop, which is a V. Lengths in centimetres.

    The shoulder is at 0, and the arm is above the puck: only the scoop touches it. The wrist turns without end. Actions are
    the speeds of the joints.
    """

    near, radius, upper, fore, wing, spread = 3.0, 3.0, 30.0, 25.0, 7.0, 0.9  # spread: half the angle of the V
    most = np.array([0.11, 0.15, 0.35])  # radians in a step

    def __init__(self) -> None:
        super().__init__(12, 2, 3)

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.puck = draw(26, 42) * unit(draw(0.5, 2.6))
        self.goal, self.speed, self.load = self.puck, np.zeros(3), 0.0
        while not (8 < np.linalg.norm(self.goal - self.puck) < 20):
            self.goal = draw(26, 42) * unit(draw(0.4, 2.7))
        self.joints = np.array([draw(-0.3, 1.8), draw(0.6, 2.2), draw(-pi, pi)])
        while not 12 < np.linalg.norm(self.wrist() - self.puck) < 30:
            self.joints = np.array([draw(-0.3, 1.8), draw(0.6, 2.2), draw(-pi, pi)])

    def wrist(self) -> Array:
        """Return the position of the wrist, where the V has its corner."""
        shoulder, elbow, _ = self.joints.tolist()
        bend = shoulder + elbow
        x, y = self.upper * cos(shoulder) + self.fore * cos(bend), self.upper * sin(shoulder) + self.fore * sin(bend)
        return np.array([x, y])

    def move(self, action: Array) -> None:
        self.speed = 0.4 * self.speed + 0.6 * self.most * action
        before = self.puck
        for _ in range(5):
            self.joints = np.clip(self.joints + self.speed / 5, [-2.0, 0.25, -np.inf], [3.4, 2.7, np.inf])
            forward, corner = unit(self.joints.sum()), self.wrist()
            left, gap = np.array([-forward[1], forward[0]]), self.puck - corner
            ahead, aside = self.pushed(float(gap @ forward), float(gap @ left))
            self.puck = corner + ahead * forward + aside * left
        self.load = 10 * float(np.linalg.norm(self.puck - before))

    def pushed(self, ahead: float, aside: float) -> tuple[float, float]:
        """Return where the puck is, seen from the wrist, after both wings of the scoop pushed it away."""
        for side in (1, -1, 1, -1):
            x, y = cos(self.spread), side * sin(self.spread)
            along = min(max(ahead * x + aside * y, 0.0), self.wing)
            gap_x, gap_y = ahead - along * x, aside - along * y
            distance = max(hypot(gap_x, gap_y), 1e-6)
            if distance < self.radius:
                more = self.radius / distance - 1
                ahead, aside = ahead + more * gap_x, aside + more * gap_y
        return ahead, aside

    def observe(self) -> Array:
        (shoulder, elbow, wrist), (x, y), (puck_x, puck_y) = self.joints, self.wrist(), self.puck
        load = self.load + self.np_random.normal(0, 0.3)
        place = [puck_y + self.np_random.normal(0, 0.05), x, load, puck_x + self.np_random.normal(0, 0.05), y]
        return np.array([shoulder, elbow, cos(wrist), sin(wrist), *self.speed, *place])

    def achieved(self) -> Array:
        return self.puck.copy()


def scoop(observation: Observation) -> Array:
    """Bring the scoop around the puck to the side behind it, and push. The joints follow from position and heading."""
    seen, (puck, goal), task = observation["observation"], (observation[key] for key in GOALS), ScoopArm
    missing, from_puck = goal - puck, seen[[8, 11]] - puck
    if np.linalg.norm(missing) < 1.2:
        return np.clip(-0.4 * seen[4:7] / (0.6 * task.most), -1, 1).astype(np.float32)
    push = atan2(missing[1], missing[0])
    off = wrapped(push + pi - atan2(from_puck[1], from_puck[0]))  # left to go around the puck
    facing = wrapped(push - seen[0] - seen[1] - atan2(seen[3], seen[2]))
    far = float(np.linalg.norm(from_puck))
    if abs(off) < 0.35 and (abs(facing) < 0.35 or far < 6):
        to = puck - (2.33 if far < 5 else max(far - 4.5, 2.5)) * unit(push)
    else:
        to = puck + 11.0 * unit(push + pi - off + float(np.clip(off, -0.45, 0.45)))
    distance = float(np.clip(hypot(*to), 14, 54))
    elbow = np.arccos((distance**2 - task.upper**2 - task.fore**2) / (2 * task.upper * task.fore))
    shoulder = atan2(to[1], to[0]) - atan2(task.fore * sin(elbow), task.upper + task.fore * cos(elbow))
    wish = np.array([shoulder - seen[0], elbow - seen[1], 0.0])
    wish *= min(1.0, float(np.min(task.most[:2] / np.maximum(np.abs(wish[:2]), 1e-6))))
    wish[2] = 0.6 * facing - wish[0] - wish[1]
    return np.clip((wish - 0.4 * seen[4:7]) / (0.6 * task.most), -1, 1).astype(np.float32)


class StoneTeam(GoalTask):
    """Two round robots push a heavy round stone over a yard to a position. Lengths are in metres.

    One robot moves the stone only slowly, and two which push to the same side move it well. Actions are the wished speeds
    of both robots along x and y.
    """

    near, reach, pace, size, rubbing = 0.5, 1.35, 0.4, 6.0, 0.1  # reach: from the middle of the stone to that of a robot

    def __init__(self) -> None:
        super().__init__(12, 2, 4)

    def begin(self) -> None:
        self.stone = self.goal = self.place(-2.5, 2.5)
        while not 2.5 < np.linalg.norm(self.goal - self.stone) < 5:
            self.goal = self.place(-4.2, 4.2)
        self.robots = np.tile(self.stone, (2, 1))
        while np.linalg.norm(np.diff([*self.robots, self.stone, self.robots[0]], axis=0), axis=-1).min() < 1.8:
            self.robots = self.stone + self.place(-2.4, 2.4, (2, 2))
        self.speed, self.presses = np.zeros((2, 2)), np.zeros(2)

    def move(self, action: Array) -> None:
        self.speed = 0.4 * self.speed + 0.6 * self.pace * action.reshape(2, 2)
        for _ in range(2):
            self.robots = np.clip(self.robots + self.speed / 2, -self.size, self.size)
            apart = self.robots[1] - self.robots[0]
            distance = max(hypot(*apart), 1e-6)
            if distance < 0.7:
                shift = apart * (0.35 / distance - 0.5)
                self.robots = self.robots + np.stack([-shift, shift])
            self._press()

    def _press(self) -> None:
        """Let the robots push the stone against its friction, and stop them at the stone."""
        gaps = self.stone - self.robots
        distances = np.maximum(np.sqrt((gaps**2).sum(-1)), 1e-6)
        self.presses = np.maximum(self.reach - distances, 0.0)
        normals = gaps / distances[:, None]
        force = self.presses @ normals
        size = hypot(*force)
        if size > self.rubbing:
            self.stone = np.clip(self.stone + 0.6 * (1 - self.rubbing / size) * force, -self.size + 1, self.size - 1)
        touching = self.stone - self.reach * normals
        self.robots = np.where(self.presses[:, None] > 0, touching, self.robots)

    def observe(self) -> Array:
        (one_x, one_y), (two_x, two_y) = self.robots + self.np_random.normal(0, 0.01, (2, 2))
        (x, y), (one, two) = self.stone, 100 * self.presses + self.np_random.normal(0, 0.2, 2)
        (speed_x, speed_y), (other_x, other_y) = self.speed
        return np.array([one_x, one_y, speed_x, speed_y, one, two_x, two_y, other_x, other_y, two, x, y])

    def achieved(self) -> Array:
        return self.stone.copy()


def team_up(observation: Observation) -> Array:
    """Bring both robots around the stone to the side behind it, one to the left and one to the right, and push."""
    seen, (stone, goal), task = observation["observation"], (observation[key] for key in GOALS), StoneTeam
    robots, speed, missing = seen[[0, 1, 5, 6]].reshape(2, 2) - stone, seen[[2, 3, 7, 8]].reshape(2, 2), goal - stone
    if np.linalg.norm(missing) < 0.2:
        return np.zeros(4, np.float32)
    push, bearings, slot = atan2(missing[1], missing[0]), np.arctan2(robots[:, 1], robots[:, 0]), np.array([-0.45, 0.45])
    off = min((wrapped(push + pi + sign * slot - bearings) for sign in (1, -1)), key=lambda angles: np.abs(angles).sum())
    is_ready = bool(np.all(np.abs(off) < 0.4) and np.all(np.hypot(*robots.T) < 1.6))
    part = np.clip(off, -0.5, 0.5)
    far = np.where(np.abs(off) < 0.25, 1.36, 1.8)[:, None]
    to = far * unit(bearings + part).T
    way = 0.4 * unit(push) + 1.2 * (to - robots) if is_ready else to - robots
    return np.clip((way - 0.4 * speed).ravel() / (0.6 * task.pace), -1, 1).astype(np.float32)


class WagonYard(Plan):
    """An engine sorts four wagons in a yard of three sidings, for three, two and two wagons, all of them dead ends.

    The state is the siding to which the switch leads, the wagons at the engine, at most two, and those in each siding, from
    its end. Actions: set the switch to a siding (0 to 2), draw its front wagon out (3), push the last wagon in (4).
    """

    n_actions = 5
    tracks = ((3, 6), (6, 8), (8, 10))  # columns of the state
    tonnes = (0, 12, 30, 18, 25)

    def __init__(self) -> None:
        super().__init__(12, 7)

    def begin(self) -> tuple[State, State]:
        start, goal = self.order(), self.order()
        while start == goal:
            goal = self.order()
        return (int(self.np_random.integers(3)), 0, 0, *start), goal

    def order(self) -> State:
        """Draw an order of the wagons in the sidings."""
        state = (0, 0, 0) + 7 * (0,)
        for wagon in (1 + self.np_random.permutation(4)).tolist():
            before = state
            while state == before:
                switch = int(self.np_random.integers(3))
                state = self.after((switch, wagon, 0, *state[3:]), 4)
                state = state if state[1] == 0 else before
        return state[3:]

    @staticmethod
    def after(state: State, action: int) -> State:
        if action < 3:
            return (action, *state[1:])
        first, last = WagonYard.tracks[state[0]]
        train, siding = ([wagon for wagon in state[a:b] if wagon] for a, b in ((1, 3), (first, last)))
        giver, taker, room = (siding, train, 2) if action == 3 else (train, siding, last - first)
        if not giver or len(taker) == room:
            return state
        taker.append(giver.pop())
        train, siding = train + [0] * (2 - len(train)), siding + [0] * (last - first - len(siding))
        return (state[0], *train, *state[3:first], *siding, *state[last:])

    @staticmethod
    def achieved(state: State) -> State:
        return state[3:]

    def observe(self) -> list[int]:
        load = self.tonnes[self.state[1]] + self.tonnes[self.state[2]]
        return [*self.state[3:], load, *self.state[1:3], self.changes, self.state[0]]


def shunting_script() -> Planner:
    """Take a shortest path, then leave the wagons alone."""
    return Planner(WagonYard, lambda seen: (seen[11], *seen[8:10], *seen[:7]), 0)


class BottlePush(GoalTask):
    """A finger pushes a tall bottle over a table to a position. Lengths are in centimetres, and angles in degrees.

    The bottle leans if it is pushed far above its middle, or fast. If it leans too far it falls, and the episode ends.
    The goal is x, y, and the height of the cap of a bottle that stands. The reward is 1 at the goal, else 0. Actions are
    the wished speeds along x, y and z.
    """

    near, reach, tall, firm, topple = 2.5, 5.0, 24.0, 10.0, 20.0  # reach: radius of bottle and finger together
    most = np.array([3.0, 3.0, 2.5])

    def __init__(self) -> None:
        super().__init__(11, 3, 3)

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.bottle = at = self.place(-12, 12)
        while not 8 < np.linalg.norm(at - self.bottle) < 16:
            at = self.place(-20, 20)
        self.goal, side = np.array([*at, self.tall]), draw(8, 14) * unit(draw(-pi, pi))
        self.finger, self.speed, self.lean = np.array([*(self.bottle + side), draw(4, 20)]), np.zeros(3), 0.0

    def move(self, action: Array) -> None:
        self.speed = 0.3 * self.speed + 0.7 * self.most * action
        pushed = 0.0
        for _ in range(3):
            was_above = self.finger[2] >= self.tall
            self.finger = np.clip(self.finger + self.speed / 3, [-30, -30, 2], [30, 30, 32])
            gap = self.bottle - self.finger[:2]
            distance = max(hypot(*gap), 1e-6)
            if distance < self.reach and was_above:
                self.finger[2] = max(self.finger[2], self.tall)
            elif distance < self.reach and self.finger[2] < self.tall:
                self.bottle = self.bottle + gap * (self.reach / distance - 1)
                pushed += self.reach - distance
        self.lean = 0.5 * self.lean + pushed * 1.5 * max(0.0, self.finger[2] - self.firm) + 6 * max(0.0, pushed - 2.2)
        self.lean = 90.0 if self.lean > self.topple else self.lean

    def is_over(self) -> bool:
        return self.lean == 90.0

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 1 at the goal, else 0."""
        return self.is_met(achieved_goal, desired_goal).astype(np.float64)

    def observe(self) -> Array:
        (x, y, z), (bottle_x, bottle_y) = self.finger, self.bottle + self.np_random.normal(0, 0.05, 2)
        speed_x, speed_y, speed_z = self.speed
        lean = self.lean + 0.2 * self.np_random.normal()
        return np.array([z, bottle_x, lean, speed_y, x, self.tall, bottle_y, speed_z, y, speed_x, bottle_x - x])

    def achieved(self) -> Array:
        return np.array([*self.bottle, self.tall * cos(np.radians(self.lean))])


def push_bottle(observation: Observation) -> Array:
    """Lower the finger, bring it around the bottle to the side behind it, and push slowly."""
    seen, (bottle, goal), task = observation["observation"], (observation[key] for key in GOALS), BottlePush
    at, speed = seen[[4, 8, 0]], seen[[9, 3, 7]]
    missing, from_bottle = (goal - bottle)[:2], at[:2] - bottle[:2]
    off = wrapped(atan2(-missing[1], -missing[0]) - atan2(from_bottle[1], from_bottle[0]))
    if np.linalg.norm(missing) < 0.8:
        way = np.zeros(2)
    elif abs(off) < 0.35 and at[2] < 9:
        push = missing / np.linalg.norm(missing)
        ahead = -from_bottle @ push
        way = (1.5 if ahead > 6.5 else 1.2) * push - 0.9 * (from_bottle + ahead * push)
    else:
        way = bottle[:2] + 7.5 * unit(atan2(from_bottle[1], from_bottle[0]) + float(np.clip(off, -0.5, 0.5))) - at[:2]
    return np.clip((np.array([*way, 6 - at[2]]) - 0.3 * speed) / (0.7 * task.most), -1, 1).astype(np.float32)


TASKS = (
    Task("ScoopArm-v0", "push", "closed", ScoopArm, 80, lambda: scoop),
    Task("StoneTeam-v0", "several-bodies", "closed", StoneTeam, 60, lambda: team_up),
    Task("WagonYard-v0", "discrete", "closed", WagonYard, 60, shunting_script),
    Task("BottlePush-v0", "fragile", "closed", BottlePush, 60, lambda: push_bottle),
)
