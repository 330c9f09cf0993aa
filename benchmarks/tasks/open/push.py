"""Push a puck with a disc or an arm, a barrel with a paddle, a piece on a platter, and a cube seen by noisy sensors."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from ..task import Observation, Task
from .base import Array, GoalTask, Seen, push_out, toward_push, unit

RADIUS = 0.09  # distance of the centres at which disc and puck touch
LINKS = np.array([0.4, 0.35, 0.25])
LOWEST, HIGHEST = np.array([-1.0, -2.6, -2.6]), np.array([3.2, 2.6, 2.6])  # angles of the joints
KEPT, TORQUE, MOST_TURN = 5 / 6, 0.04, 0.2  # of a speed in a step; speed that the largest torque adds; largest speed
CONTACT, INNER, HALF = 0.07, 0.03, 0.03  # hand and cube: reach outside and between the fingers, half the cube


class DiscPuck(GoalTask):
    """A disc pushes a puck, which slides on and slows down. The action is the velocity of the disc."""

    def __init__(self) -> None:
        super().__init__(8, 2, 2)

    def begin(self) -> None:
        """Place the disc near the puck."""
        self.puck, self.goal = self.place(-0.3, 0.3), self.place(-0.4, 0.4)
        self.disc = self.puck + 0.2 * unit(self.np_random.uniform(0, 2 * np.pi))
        self.velocity, self.slide = np.zeros(2), np.zeros(2)

    def move(self, action: Array) -> None:
        """Move the disc, and the puck out of its way."""
        self.velocity = 0.05 * action
        self.disc = self.disc + self.velocity
        push = push_out(self.puck, self.disc, RADIUS)
        self.slide = 0.5 * (push if push.any() else self.slide)
        self.puck = self.puck + (push if push.any() else 2 * self.slide)

    def observe(self) -> Array:
        """Return the positions and velocities of disc and puck."""
        return np.concatenate([self.disc, self.puck, self.velocity, self.slide])

    def achieved(self) -> Array:
        """Return the position of the puck."""
        return self.puck.copy()


class FixedPuck(DiscPuck):
    """As DiscPuck, but the puck always starts at one place, so far from the disc that random actions do not touch it."""

    def begin(self) -> None:
        """Place the disc on a circle around the puck."""
        super().begin()
        self.puck = np.array([0.1, 0.05])
        self.disc = self.puck + 0.7 * unit(self.np_random.uniform(0, 2 * np.pi))


def push_puck(observation: Observation) -> Array:
    """Push the puck from behind."""
    disc, puck = observation["observation"][:2], observation["achieved_goal"]
    way = toward_push(disc, puck, observation["desired_goal"], RADIUS, DiscPuck.near)
    distance = float(np.linalg.norm(observation["desired_goal"] - puck))
    limit = 0.05 if np.linalg.norm(disc - puck) > 1.3 * RADIUS else min(0.05, 0.6 * distance + 0.01)
    return (way / max(limit, float(np.linalg.norm(way))) * limit / 0.05).astype(np.float32)


class ArmPuck(GoalTask):
    """An arm with three joints in a plane pushes a puck with its tip. Columns come in no particular order."""

    near = 0.06

    def __init__(self) -> None:
        super().__init__(13, 2, 3)

    def begin(self) -> None:
        """Place the puck where the arm reaches it from all sides."""
        self.angles = np.array([0.6, 1.0, 0.6]) + self.np_random.uniform(-0.2, 0.2, 3)
        self.turn = np.zeros(3)
        self.goal, self.puck = self._reachable(), self._reachable()
        while np.linalg.norm(self.puck - self.tip()) < 1.2 * RADIUS:
            self.puck = self._reachable()

    def _reachable(self) -> Array:
        return self.np_random.uniform(0.42, 0.68) * unit(self.np_random.uniform(0.6, 2.2))

    def tip(self) -> Array:
        """Return the position of the tip."""
        absolute = np.cumsum(self.angles)
        return np.array([LINKS @ np.cos(absolute), LINKS @ np.sin(absolute)])

    def move(self, action: Array) -> None:
        """Turn the joints, and move the puck out of the tip's way, in two halves of a step."""
        self.turn = 0.12 * action
        for _ in range(2):
            self.angles = np.clip(self.angles + self.turn / 2, LOWEST, HIGHEST)
            self.puck = self.puck + push_out(self.puck, self.tip(), RADIUS)

    def observe(self) -> Array:
        """Return cosines, tip and puck, sines, speeds of the joints, and their order of motion."""
        cosine, sine = np.cos(self.angles), np.sin(self.angles)
        return np.concatenate([cosine, self.tip(), sine, self.puck, self.turn])

    def achieved(self) -> Array:
        """Return the position of the puck."""
        return self.puck.copy()


def push_with_arm(observation: Observation) -> Array:
    """Move the tip by the Jacobian of the arm, as `toward_push` asks."""
    seen = observation["observation"]
    tip, puck = seen[3:5], seen[8:10]
    absolute = np.cumsum(np.arctan2(seen[5:8], seen[:3]))
    lever = np.cumsum((LINKS * np.array([np.cos(absolute), np.sin(absolute)]))[:, ::-1], axis=1)[:, ::-1]
    jacobian = np.stack([-lever[1], lever[0]])
    way = toward_push(tip, puck, observation["desired_goal"], RADIUS, ArmPuck.near)
    way *= min(1.0, 0.04 / max(float(np.linalg.norm(way)), 1e-9))
    turn = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + 1e-3 * np.eye(2), way)
    return (turn / 0.12 / max(1.0, float(np.abs(turn / 0.12).max()))).astype(np.float32)


class TorqueArm(ArmPuck):
    """The arm of `ArmPuck`, driven by torques. A speed decays by a sixth in each step."""

    def move(self, action: Array) -> None:
        """Accelerate the joints; they stop at their limits. Move the puck out of the tip's way, in two halves of a step."""
        self.turn = np.clip(KEPT * self.turn + TORQUE * action, -MOST_TURN, MOST_TURN)
        for _ in range(2):
            wanted = self.angles + self.turn / 2
            self.angles = np.clip(wanted, LOWEST, HIGHEST)
            self.turn = np.where(wanted == self.angles, self.turn, 0.0)
            self.puck = self.puck + push_out(self.puck, self.tip(), RADIUS)


def push_with_torques(observation: Observation) -> Array:
    """Give the joints the speeds that `push_with_arm` asks for."""
    turn = 0.12 * push_with_arm(observation)
    torque = (turn - KEPT * observation["observation"][10:]) / TORQUE
    return np.clip(torque, -1, 1).astype(np.float32)


class NoisyTable(GoalTask):
    """A hand pushes or grasps a cube on a table in 3-D. The action is the velocity of the hand and of its fingers.

    All sensors are noisy, those of the achieved goal too. Three columns carry no information about the cube.

    noise: standard deviation of the sensors, metres.
    """

    def __init__(self, noise: float = 0.003) -> None:
        super().__init__(14, 3, 4)
        self.noise = noise

    def begin(self) -> None:
        """Place the hand above the table, the cube on it, and the goal at least 0.1 from the cube."""
        draw = self.np_random.uniform
        self.hand, self.moved, self.opening = np.array([*draw(-0.2, 0.2, 2), draw(0.08, 0.2)]), np.zeros(3), 1.0
        self.cube, self.fall = np.array([*draw(-0.14, 0.14, 2), HALF]), 0.0
        self.is_between, self.is_held = False, False
        self.goal = self.cube
        while np.linalg.norm(self.goal - self.cube) < 0.1:
            self.goal = np.array([*draw(-0.2, 0.2, 2), HALF])
        self.warmth = 30 + draw(-5, 5)

    def move(self, action: Array) -> None:
        """Move the hand and the fingers, then the cube."""
        before, was_level = self.hand, self._is_level()
        self.hand = np.clip(before + 0.045 * action[:3], [-0.35, -0.35, HALF], [0.35, 0.35, 0.3])
        self.moved, self.opening = self.hand - before, float(np.clip(self.opening + 0.4 * action[3], 0, 1))
        self.warmth += 0.2 * self.np_random.normal()
        is_closed = self.opening < 0.5
        if self.is_held and is_closed:
            self.cube = self.cube + self.moved
        elif self._is_level():
            gap = self.cube[:2] - self.hand[:2]
            distance = float(np.linalg.norm(gap)) + 1e-9
            if not was_level:  # the hand comes from above
                self.is_between = self.opening > 0.5 and distance < INNER
            self.is_held = self.is_between and is_closed
            reach = min(distance, INNER) if self.is_between else max(distance, CONTACT)
            self.cube[:2] = self.hand[:2] + gap / distance * reach
        else:
            self.is_between = self.is_held = False
        self._drop()

    def _is_level(self) -> bool:
        return bool(abs(self.hand[2] - self.cube[2]) < 0.05)

    def _drop(self) -> None:
        floor = HALF if np.abs(self.cube[:2]).max() < 0.38 else -0.5  # beside the table, the floor is lower
        self.fall = 0.0 if self.is_held else self.fall - 0.01
        self.cube[2] = max(self.cube[2] + self.fall, floor)
        self.fall *= self.cube[2] > floor

    def observe(self) -> Array:
        """Return hand, opening, three columns without information, cube, displacement of the hand, and fall, with noise."""
        idle = [self.warmth / 10, self.np_random.uniform(), self.np_random.normal()]
        exact = np.array([*self.hand, self.opening, *idle, *self.cube, *self.moved, self.fall])
        return exact + self.noise * self.np_random.standard_normal(14)

    def achieved(self) -> Array:
        """Return the position of the cube, with noise of its own."""
        return self.cube + self.noise * self.np_random.standard_normal(3)


def push_cube(observation: Observation) -> Array:
    """Move down beside the cube, then push it."""
    hand, cube = observation["observation"][:3], observation["observation"][7:10]
    if hand[2] > 0.05:
        gap = hand[:2] - cube[:2]
        distance = float(np.linalg.norm(gap)) + 1e-9
        return np.array([*gap / distance, 0, 0] if distance < 1.3 * CONTACT else [0, 0, -1, 0], np.float32)
    displacement = toward_push(hand[:2], cube[:2], observation["desired_goal"][:2], CONTACT, NoisyTable.near)
    displacement *= 0.9 / max(0.04, float(np.linalg.norm(displacement)))
    return np.array([*displacement, 0, 0], np.float32)


class PaddleBarrel(GoalTask):
    """A straight paddle that moves and turns pushes a round barrel, which slides on until friction stops it."""

    half, radius, friction = 0.15, 0.07, 0.012

    def __init__(self) -> None:
        super().__init__(11, 2, 3)

    def begin(self) -> None:
        """Place the paddle beside the barrel."""
        self.barrel = self.goal = self.place(-0.3, 0.3)
        while np.linalg.norm(self.goal - self.barrel) < 0.15:
            self.goal = self.place(-0.4, 0.4)
        self.paddle = self.barrel + 0.27 * unit(self.np_random.uniform(-np.pi, np.pi))
        self.angle, self.spin = self.np_random.uniform(-np.pi, np.pi), 0.0
        self.velocity, self.slide = np.zeros(2), np.zeros(2)

    def move(self, action: Array) -> None:
        """Move the paddle in two halves, and the barrel out of its way."""
        self.velocity, self.spin = 0.5 * self.velocity + 0.025 * action[:2], 0.2 * action[2]
        pushed = np.zeros(2)
        for _ in range(2):
            self.paddle, self.angle = self.paddle + self.velocity / 2, self.angle + self.spin / 2
            barrel, along = self.barrel + pushed, unit(self.angle)
            nearest = self.paddle + np.clip((barrel - self.paddle) @ along, -self.half, self.half) * along
            pushed = pushed + push_out(barrel, nearest, self.radius)
        speed = max(float(np.linalg.norm(self.slide)), 1e-9)
        self.slide = pushed if pushed.any() else self.slide * max(0.0, 1 - self.friction / speed)
        self.barrel = self.barrel + self.slide

    def observe(self) -> Array:
        """Return velocities, the direction of the paddle, and both positions."""
        return np.concatenate([self.velocity, [self.spin], unit(self.angle), self.slide, self.paddle, self.barrel])

    def achieved(self) -> Array:
        """Return the position of the barrel."""
        return self.barrel.copy()


def push_with_paddle(observation: Observation) -> Array:
    """Turn the paddle across the way on a circle round the barrel, and push from behind, slower and slower."""
    seen, barrel = observation["observation"], observation["achieved_goal"]
    velocity, slide, paddle = seen[:2], seen[5:7], seen[7:9]
    way = observation["desired_goal"] - barrel
    missing = way - slide * np.linalg.norm(slide) / 2 / PaddleBarrel.friction
    distance = float(np.linalg.norm(way))
    ahead = way / max(distance, 1e-9)
    side = np.array([-ahead[1], ahead[0]])
    turn = _between(2 * (np.arctan2(side[1], side[0]) - np.arctan2(seen[4], seen[3]))) / 2
    gap = paddle - barrel
    along, across = gap @ ahead, gap @ side
    if distance < 0.02 or np.linalg.norm(missing) < 0.03 or (slide @ ahead > 0 > missing @ ahead):
        wish, turn = np.zeros(2), 0.0  # it is there, or slides there
    elif along < -0.04 and abs(across) < 0.05 and abs(turn) < 0.25:
        free = max(0.0, -along - PaddleBarrel.radius)
        wish = ahead * min(0.05, 0.25 * distance + 0.5 * free) - 0.3 * across * side
    else:
        angle = np.arctan2(gap[1], gap[0])
        rest = _between(np.arctan2(-ahead[1], -ahead[0]) - angle)
        is_near = np.linalg.norm(gap) < 0.22
        wish = barrel + 0.26 * unit(angle + (0 if is_near else np.clip(rest, -0.4, 0.4))) - paddle
        turn = 0.0 if is_near else turn
        wish = 0.05 * wish / max(0.05, float(np.linalg.norm(wish)))
    return np.clip([*(wish - 0.5 * velocity) / 0.025, turn / 0.2], -1, 1).astype(np.float32)


def _between(angle: float) -> float:
    """Return an angle between -pi and pi."""
    return float((angle + np.pi) % (2 * np.pi) - np.pi)


class PlatterPush(GoalTask):
    """A platter turns under a rod, which slides in along x and pushes a round piece across the platter.

    The piece turns with the platter. Lengths are in millimetres, actions are degrees and millimetres in a step.
    """

    near, size, half_width, rim = 18.0, 20.0, 15.0, 190.0
    deepest, shortest = -150.0, 230.0  # positions of the rod's tip
    largest = np.array([12, 20], np.float32)  # action

    def __init__(self) -> None:
        super().__init__(7, 2, 2)
        self.action_space = spaces.Box(-self.largest, self.largest)

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.piece = self.goal = draw(50, 160) * unit(draw(-np.pi, np.pi))
        while np.linalg.norm(self.goal - self.piece) < 60:
            self.goal = draw(40, 160) * unit(draw(-np.pi, np.pi))
        self.rod, self.spin, self.load, self.mark = draw(190, 230), 0.0, 0.0, draw(-np.pi, np.pi)

    def step(self, action: Array) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        return super().step(np.asarray(action) / self.largest)

    def move(self, action: Array) -> None:
        turn, slide = action * self.largest
        self.spin, self.load = 0.4 * self.spin + 0.6 * turn, 0.0
        cosine, sine = unit(np.radians(self.spin) / 3)
        self.mark += np.radians(self.spin)
        for _ in range(3):
            x, y = self.piece
            self.piece = np.array([cosine * x - sine * y, sine * x + cosine * y])
            self.rod = float(np.clip(self.rod + slide / 3, self.deepest, self.shortest))
            self._push()

    def _push(self) -> None:
        x, y = self.piece
        gap = np.array([min(x - self.rod, 0.0), y - np.clip(y, -self.half_width, self.half_width)])
        distance = float(np.linalg.norm(gap))
        if distance < self.size:
            way = gap / distance if distance > 1e-9 else np.array([-1.0, 0.0])
            self.piece = self.piece + (self.size - distance) * way
            self.load += self.size - distance
        self.piece = self.piece * min(1.0, self.rim / max(float(np.linalg.norm(self.piece)), 1e-9))

    def observe(self) -> Array:
        (x, y), (cosine, sine) = self.piece, unit(self.mark)
        return np.array([self.spin, x, cosine, self.rod, y, self.load + 0.2 * self.np_random.normal(), sine])

    def achieved(self) -> Array:
        return self.piece.copy()


def turn_and_push(observation: Observation) -> Array:
    spin, x, _, rod, y, _, _ = observation["observation"]
    goal, size = observation["desired_goal"], PlatterPush.size
    radius, wished, angle = np.hypot(x, y), np.hypot(*goal), np.degrees(np.arctan2(y, x))
    turn, slide = 0.0, 20.0
    if abs(radius - wished) < 10:  # turn the piece to the goal, and keep clear of the rod
        to = (np.degrees(np.arctan2(goal[1], goal[0])) - angle + 180) % 360 - 180
        next_y = radius * np.sin(np.radians(angle + np.clip(to, -20, 20)))
        is_clear = rod > max(x, 0) + 20 or x < -40 or abs(next_y) > abs(y)
        turn = to if is_clear else 0.0
    elif abs(y) < 8 and (x > 0 or rod - x < size + 2) and rod > x + size - 5:
        end = wished if wished < radius and x > 0 else -wished
        turn, slide = -0.2 * spin, end + size - rod
    elif rod > radius + size:
        turn = -angle
    return np.clip([(turn - 0.4 * spin) / 0.6, slide], [-12, -20], [12, 20]).astype(np.float32)


TASKS = (
    Task("DiscPuck-v0", "push", "open", DiscPuck, 50, lambda: push_puck),
    Task("FixedPuck-v0", "push", "open", FixedPuck, 60, lambda: push_puck),
    Task("ArmPuck-v0", "push", "open", ArmPuck, 60, lambda: push_with_arm),
    Task("TorqueArm-v0", "push", "open", TorqueArm, 60, lambda: push_with_torques),
    Task("NoisyTable-v0", "push", "open", NoisyTable, 60, lambda: push_cube),
    Task("PaddleBarrel-v0", "push", "open", PaddleBarrel, 80, lambda: push_with_paddle),
    Task("PlatterPush-v0", "push", "open", PlatterPush, 80, lambda: turn_and_push),
)
