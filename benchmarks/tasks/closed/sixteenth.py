"""Closed tasks: a dinghy, a waiter, a belt, a curtain, an apple, bricks, and the dial of a safe."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..open.base import Array, SizedTask, clipped, push_out, toward_push, unit, wrapped
from ..task import Observation, Task


class HarbourDinghy(SizedTask):
    """A dinghy sails in a harbour to a mark, where the episode ends. A mole with one open end lies across the harbour. The
    wind comes from elsewhere in each episode. Actions: rudder and sheet. Metres.
    """

    numbers, thing, near, head = (8, 2, 2), "place", 10.0, 20.0

    def begin(self) -> None:
        draw, self.speed = self.np_random.uniform, 0.0
        self.wind, self.heading = draw(-math.pi, math.pi, 2)
        side = self.np_random.choice([-1, 1])
        self.place = self.goal = np.array([draw(-80, 80), side * draw(20, 80)])
        while np.linalg.norm(self.goal - self.place) < 50:
            self.goal = np.array([draw(-80, 80), draw(20, 80) * (side if draw() < 0.3 else -side)])

    @staticmethod
    def drive(angle: Any) -> Any:
        """Return the speed at an angle to the wind, in parts of the greatest one."""
        return np.clip((np.abs(angle) - 0.6) / 0.4, 0, 1) * (1 - 0.3 * np.abs(angle) / math.pi)

    def move(self, action: Array) -> None:
        self.heading = wrapped(self.heading + 0.5 * action[0] * (0.4 + 0.6 * self.speed))
        wish = float(self.drive(wrapped(self.heading - self.wind))) * (1 + action[1]) / 2
        self.speed = 0.6 * self.speed + 0.4 * wish
        was, place = self.place, np.clip(self.place + 8 * self.speed * unit(self.heading), -100, 100)
        if (was[1] < 0) != (place[1] < 0) and min(was[0], place[0]) < self.head:
            place, self.speed = was, 0.0
        self.place = place

    def is_over(self) -> bool:
        return bool(self.is_met(self.place, self.goal))

    def observe(self) -> Array:
        (ahead, aside), (east, north) = unit(self.heading), unit(self.wind)
        return np.array([east, self.place[1], ahead, self.speed, north, self.place[0], aside, 100 - self.place[0]])


def sail() -> Any:
    """Take the course that gains most on the next place of the way, and change it seldom."""
    courses = np.linspace(-math.pi, math.pi, 49)[:-1]

    def act(observation: Observation) -> Array:
        east, y, ahead, speed, north, x, aside, _ = observation["observation"]
        place, goal, heading = np.array([x, y]), observation["desired_goal"], math.atan2(aside, ahead)
        aim, wind, free = goal, math.atan2(north, east), HarbourDinghy.head + 20
        if (y < 0) != (goal[1] < 0) and min(x + (goal[0] - x) * y / (y - goal[1]), x) < free - 12:
            aim = np.array([free + 10, 15 * np.sign(y)] if x < free - 12 else [free, -10 * np.sign(y)])
        bearing = math.atan2(*(aim - place)[::-1])
        turns = np.abs((courses - heading + math.pi) % (2 * math.pi) - math.pi)
        drive = HarbourDinghy.drive((courses - wind + math.pi) % (2 * math.pi) - math.pi)
        steps = np.arange(1, 6)[:, None] * 8 * drive
        x_track, y_track = x + steps * np.cos(courses), y + steps * np.sin(courses)
        hits = (y_track * math.copysign(1, y) < 4) & (x_track < 26) | (np.maximum(np.abs(x_track), np.abs(y_track)) > 98)
        best = courses[np.argmax(drive * np.cos(courses - bearing) - 0.12 * turns - 0.25 * hits.sum(0))]
        return clipped(wrapped(best - heading) / (0.5 * (0.4 + 0.6 * speed)), 1)

    return act


class SoupWaiter(SizedTask):
    """A robot on wheels brings a bowl of soup to a table of a dining room. The soup sloshes. What spills ends the episode.
    Actions: acceleration in two directions. Metres; a step lasts 0.2 seconds. The battery does not matter.
    """

    numbers, thing, near, most = (10, 2, 2), "place", 0.15, 1.2

    def begin(self) -> None:
        self.speed, self.slosh, self.rate, self.battery = np.zeros(2), np.zeros(2), np.zeros(2), 24.0
        self.depth = self.np_random.uniform(0.8, 1.2)
        self.place = self.goal = self.np_random.uniform(0.3, 3.7, 2)
        while np.linalg.norm(self.goal - self.place) < 1.2:
            self.goal = self.np_random.uniform(0.3, 3.7, 2)

    def move(self, action: Array) -> None:
        push, self.battery = self.most * action, self.battery - 0.01 * float(np.abs(action).sum())
        for _ in range(4):
            self.speed = self.speed + 0.05 * (push - 0.1 * self.speed)
            self.rate = self.rate - 0.05 * (16 * self.depth * self.slosh + 1.2 * self.rate + 8 * push)
            self.slosh = self.slosh + 0.05 * self.rate
            place = self.place + 0.05 * self.speed
            self.place = np.clip(place, 0, 4)
            self.speed[self.place != place] = 0

    def is_over(self) -> bool:
        return bool(np.linalg.norm(self.slosh) > 1)

    def observe(self) -> Array:
        return np.array([self.depth, *self.place, *self.rate, self.battery, *self.slosh, *self.speed])


def serve(observation: Observation) -> Array:
    """Speed up and slow down gently."""
    place, goal, seen = (observation[key] for key in ("achieved_goal", "desired_goal", "observation"))
    push = 0.5 * (goal - place) - 1.1 * seen[8:10]
    return clipped(*(push * min(1.0, 0.45 / max(1e-9, float(np.linalg.norm(push)))) / SoupWaiter.most))


class BeltParcel(SizedTask):
    """A hand pushes a round parcel to a position on one of two benches. Between them runs a belt, which carries the parcel
    along. Belts of other episodes run at other speeds, or the other way. Metres.
    """

    numbers, thing, near, radius, belt = (6, 2, 2), "parcel", 0.08, 0.16, 0.3

    def begin(self) -> None:
        draw, side = self.np_random.uniform, self.np_random.choice([-1, 1])
        self.run = self.np_random.choice([-1, 1]) * draw(0.01, 0.035)
        self.parcel = self.goal = np.array([draw(-0.7, 0.7), side * draw(0.45, 0.75)])
        while np.linalg.norm(self.goal - self.parcel) < 0.25:
            self.goal = np.array([draw(-0.7, 0.7), draw(0.45, 0.8) * (side if draw() < 0.25 else -side)])
        self.hand = draw([-0.9, -0.25], [0.9, 0.25])

    def move(self, action: Array) -> None:
        if abs(self.parcel[1]) < self.belt:
            self.parcel = self.parcel + np.array([self.run, 0])
        self.hand = np.clip(self.hand + 0.08 * action, -1.2, 1.2)
        self.parcel = np.clip(self.parcel + push_out(self.parcel, self.hand, self.radius), -1, 1)

    def observe(self) -> Array:
        return np.array(
            [self.parcel[0], self.hand[1], self.run, self.parcel[1], self.hand[0], np.abs(self.parcel[1]) < 0.3]
        )


def push_over(observation: Observation) -> Array:
    """Push the parcel straight over the belt, and go along with it; then push it to its place."""
    hand, run, is_carried = observation["observation"][[4, 1]], *observation["observation"][[2, 5]]
    parcel, goal = observation["achieved_goal"], observation["desired_goal"]
    along = np.array([run * is_carried, 0.0])
    if np.linalg.norm(goal - parcel) < 0.05:
        return clipped(0, 0)
    if is_carried or parcel[1] * goal[1] < 0:
        goal = np.array([parcel[0], goal[1]])
    gap, ahead, radius = parcel + along - hand, (goal - parcel) / np.linalg.norm(goal - parcel), BeltParcel.radius
    way = gap - ahead * (radius - 0.045)
    if np.linalg.norm(gap - radius * ahead) > 0.08:
        way = toward_push(hand, parcel + along, goal, radius, 0.06)
    return clipped(*((way * min(1.0, 0.08 / float(np.linalg.norm(way))) + along) / 0.08))


class CurtainCord(SizedTask):
    """A hand draws a curtain by its cord, a loop that hangs beside the window in two strands. Each strand, pulled down,
    moves the curtain another way. Actions: speeds of the hand, and its grip. Centimetres.
    """

    numbers, thing, near, strands = (7, 1, 3), "open", 4.0, np.array([12.0, 22.0])

    def begin(self) -> None:
        draw, self.held = self.np_random.uniform, -1
        self.hand, self.open, self.sun = draw([0, 60], [34, 160]), draw(0, 200), draw(0.3, 1)
        self.goal = np.array([self.open])
        while abs(self.goal[0] - self.open) < 25:
            self.goal = draw(0, 200, 1)

    def move(self, action: Array) -> None:
        """Move the hand. A hand that holds a strand can go up and down only, and a cord can't be pushed."""
        was, place = self.hand, np.clip(self.hand + 9 * action[:2], [0, 50], [34, 170])
        if action[2] <= 0:
            self.held = -1
        elif self.held < 0:
            gaps = np.abs(self.strands - was[0])
            self.held = int(gaps.argmin()) if gaps.min() < 2.5 else -1
        if self.held >= 0:
            place[0] = self.strands[self.held]
            drawn = max(0.0, was[1] - place[1]) * (1 if self.held else -1)
            self.open = min(200.0, max(0.0, self.open + drawn))
        self.hand = place

    def observe(self) -> Array:
        light = self.sun * (20 + 4 * self.open)
        return np.array([*self.hand[::-1], light, self.held == 0, self.held == 1, self.open, self.sun], np.float64)


def draw_curtain() -> Any:
    """Pull the right strand, hand under hand."""
    is_rising = False

    def act(observation: Observation) -> Array:
        nonlocal is_rising
        height, x, _, *holds = observation["observation"][:5]
        missing = float(observation["desired_goal"][0] - observation["achieved_goal"][0])
        if abs(missing) < 1:
            return clipped(0, 0, -1)
        k = int(missing > 0)
        is_rising = height < 51 or (is_rising and height < 50 + min(110.0, abs(missing)))
        across = float(CurtainCord.strands[k] - x)
        if is_rising or abs(across) > 1 or holds[1 - k]:
            return clipped(across / 9, (50 + min(112.0, abs(missing) + 2) - height) / 9 if is_rising else 0, -1)
        return clipped(0, -abs(missing) / 9, 1)

    return act


class ApplePick(SizedTask):
    """A hand with a wrist picks an apple and brings it to a position, often in a basket on the ground. The stem holds the
    apple until it is turned far enough. Actions: speeds of hand and wrist, and opening or closing. Metres and degrees.
    """

    numbers, thing, near, twist = (9, 2, 4), "apple", 0.08, 65.0

    def begin(self) -> None:
        draw, self.jaws, self.is_held, self.is_free, self.fall = self.np_random.uniform, 1.0, False, False, 0.0
        self.apple = draw([-0.6, 0.7], [0.6, 1.3])
        self.hand, self.wrist, self.turned = draw([-0.8, 0.2], [0.8, 0.6]), draw(-110, 110), 0.0
        self.goal = draw([-0.7, 0.3], [0.7, 1.3]) if draw() < 0.4 else np.array([draw(-0.7, 0.7), 0.0])
        while np.linalg.norm(self.goal - self.apple) < 0.2:
            self.goal = draw([-0.7, 0.3], [0.7, 1.3])

    def move(self, action: Array) -> None:
        was_open, was = self.jaws > 0.3, self.wrist
        self.jaws = min(1.0, max(0.0, self.jaws + 0.4 * action[3]))
        is_near = bool(np.linalg.norm(self.hand - self.apple) < 0.08)
        self.is_held = self.jaws <= 0.3 and (self.is_held or (was_open and is_near))
        self.wrist = min(120.0, max(-120.0, self.wrist + 18 * action[2]))
        if not self.is_held or self.is_free:
            self.hand = np.clip(self.hand + 0.09 * action[:2], [-0.9, 0], [0.9, 1.4])
        self.turned = self.turned + self.wrist - was if self.is_held and not self.is_free else 0.0
        self.is_free = self.is_free or abs(self.turned) > self.twist
        if self.is_held:
            self.fall = 0.0
            self.apple, self.hand = (self.hand.copy(), self.hand) if self.is_free else (self.apple, self.apple.copy())
        elif self.is_free:
            self.fall = self.fall + 0.05 if self.apple[1] > 0 else 0.0
            self.apple = np.maximum(self.apple - np.array([0, self.fall]), [-np.inf, 0])

    def observe(self) -> Array:
        return np.array([*self.hand, self.turned, self.jaws, *self.apple, self.wrist, self.is_free, self.fall])


def pick(observation: Observation) -> Array:
    """Take the apple, turn it to where the wrist has more room, and carry it."""
    x, z, turned, jaws, *_, wrist, is_free, _ = observation["observation"]
    hand, apple, goal = np.array([x, z]), observation["achieved_goal"], observation["desired_goal"]
    gap = apple - hand
    if jaws > 0.3 or np.abs(gap).max() > 1e-6:
        return clipped(0, 0, 0, -1) if np.linalg.norm(gap) < 0.05 else clipped(*(gap / 0.09), 0, 1)
    if is_free:
        return clipped(*((goal - apple) / 0.09), 0, -1)
    return clipped(0, 0, np.sign(turned) if abs(turned) > 1 else -np.sign(wrist), -1)


class StackBricks(SizedTask):
    """A hand, seen from the front, sets two bricks on a floor beside each other or one upon the other. A brick that another
    one lies on cannot be taken. The goal: x and height of the first, then of the second. Actions: speeds, and grip. Metres.
    """

    numbers, thing, near, width, tall = (8, 4, 3), "bricks", 0.05, 0.1, 0.08

    def begin(self) -> None:
        draw, self.held, self.bricks = self.np_random.uniform, -1, self.arranged(0.3)
        self.hand, self.goal = draw([-0.4, 0.2], [0.4, 0.4]), self.bricks.ravel()
        while np.abs(self.goal - self.bricks.ravel()).max() < 0.1:
            self.goal = self.arranged(0.55).ravel()

    def arranged(self, chance: float) -> Array:
        """Return two bricks, stacked by chance."""
        draw, (one, other) = self.np_random.uniform, self.np_random.permutation(2)
        bricks = np.full((2, 2), 0.04)
        bricks[one, 0], is_stack = draw(-0.4, 0.4), draw() < chance
        bricks[other] = [bricks[one, 0] + draw(-0.03, 0.03), 0.12] if is_stack else [draw(-0.4, 0.4), 0.04]
        return bricks if is_stack or abs(bricks[0, 0] - bricks[1, 0]) > 0.15 else self.arranged(0)

    def move(self, action: Array) -> None:
        if action[2] <= 0:
            self.held = -1
        elif self.held < 0:
            far = np.linalg.norm(self.bricks - self.hand, axis=1)
            k = int(far.argmin())
            (x, z), (other_x, other_z) = self.bricks[k], self.bricks[1 - k]
            is_below = abs(other_x - x) < self.width and other_z > z + 0.04
            self.held = k if far[k] < 0.05 and not is_below else -1
        was = self.hand if self.held < 0 else self.bricks[self.held]
        aim = np.clip(was + 0.08 * action[:2], [-0.55, 0.04], [0.55, 0.45])
        if self.held >= 0:
            ways, other = np.array([aim, [aim[0], was[1]], [was[0], aim[1]], was]), self.bricks[1 - self.held]
            is_free = (np.abs(ways - other) > np.array([self.width, self.tall]) - 1e-6).any(1)
            self.bricks[self.held] = aim = ways[is_free.argmax()] if is_free.any() else was.copy()
        self.hand = aim.copy()
        for k in {0, 1} - {self.held}:
            self.drop(k)

    def drop(self, k: int) -> None:
        """Let a brick fall on what is below it. It slides off what is not below its middle."""
        (x, z), (other_x, other_z) = self.bricks[k], self.bricks[1 - k]
        ground, aside = 0.04, x - other_x
        if abs(aside) < self.width - 1e-6 and z > other_z + 0.04:
            ground = other_z + self.tall
            if abs(aside) > 0.07 and self.held < 0:
                ground, self.bricks[k, 0] = 0.04, other_x + math.copysign(self.width, aside)
        self.bricks[k, 1] = max(ground, z - 0.08)

    def observe(self) -> Array:
        return np.array([*self.bricks[1], *self.hand, self.held == 0, self.held == 1, *self.bricks[0]], np.float64)


def stack() -> Any:
    """Set the lower brick first, and out of its way what is upon it or in its place."""
    job: tuple[int, Array] | None = None

    def next_job(bricks: Array, goal: Array) -> tuple[int, Array] | None:
        up, low = np.argsort(-goal[:, 1], kind="stable")
        is_wrong = np.abs(bricks - goal).max(1) > 0.025
        if is_wrong[low]:
            is_near = abs(bricks[up, 0] - bricks[low, 0]) < 0.1
            top = low if bricks[low, 1] > bricks[up, 1] else up
            if (is_near and bricks[top, 1] > 0.1) or abs(bricks[up, 0] - goal[low, 0]) < 0.12:
                spots = (goal[up, 0], -0.4, -0.2, 0.0, 0.2, 0.4)
                others = (bricks[1 - top, 0], goal[low, 0])
                return top, np.array([next(x for x in spots if min(abs(x - one) for one in others) > 0.13), 0.04])
            return low, goal[low]
        return (up, goal[up]) if is_wrong[up] else None

    def act(observation: Observation) -> Array:
        nonlocal job
        seen, bricks, goal = (observation[key] for key in ("observation", "achieved_goal", "desired_goal"))
        bricks, goal, hand = bricks.reshape(2, 2), goal.reshape(2, 2), seen[2:4]
        job = job if seen[4:6].any() else next_job(bricks, goal)
        if job is None:
            return clipped(0, 0, -1)
        k, aim = job
        if not seen[4 + k]:
            gap = bricks[k] - hand
            return clipped(*(gap / 0.08), -1) if np.abs(gap).max() > 0.02 else clipped(0, 0, 1)
        across, down = aim - bricks[k]
        if abs(across) > 0.005:
            return clipped(across / 0.08 if hand[1] > 0.22 else 0, (0.25 - hand[1]) / 0.08, 1)
        return clipped(0, 0, -1) if down > -0.01 else clipped(0, down / 0.08, 1)

    return act


class SafeDial(SizedTask):
    """The dial of a safe turns a wheel behind it, which it takes along by a peg: only once it has been turned back far
    enough does the wheel turn back, too. Wheel and dial have to be at two angles. The action is a torque.
    """

    numbers, near, play = (5, 4, 1), 0.15, 2.6

    def begin(self) -> None:
        draw, self.speed = self.np_random.uniform, 0.0
        self.wheel, wish = draw(-math.pi, math.pi) + np.array([0, draw(0.4, 2 * math.pi - 0.4)])
        self.dial = self.wheel + draw(-self.play, self.play)
        self.goal = np.concatenate([unit(wish), unit(wish + draw(-2.4, 2.4))])

    def move(self, action: Array) -> None:
        self.speed = 0.5 * self.speed + 0.25 * float(action[0])
        self.dial += self.speed
        self.wheel = min(self.dial + self.play, max(self.dial - self.play, self.wheel))

    def achieved(self) -> Array:
        return np.concatenate([unit(self.wheel), unit(self.dial)])

    def observe(self) -> Array:
        (dial_x, dial_y), (wheel_x, wheel_y) = unit(self.dial), unit(self.wheel)
        return np.array([dial_y, wheel_x, self.speed, wheel_y, dial_x])


def crack() -> Any:
    """Turn the wheel to its angle in the shorter way, then the dial back to its own."""
    way = 0

    def act(observation: Observation) -> Array:
        nonlocal way
        angles = np.array([observation[key].reshape(2, 2) for key in ("achieved_goal", "desired_goal")])
        (wheel, dial), (wheel_goal, dial_goal) = np.arctan2(angles[..., 1], angles[..., 0])
        speed, play = observation["observation"][2], SafeDial.play
        lead, wish, missing = wrapped(dial - wheel), wrapped(dial_goal - wheel_goal), wheel_goal - wheel
        left = wish - lead
        if abs(wrapped(missing)) > 0.04:
            costs = {d: -d * lead + (d * missing) % (2 * math.pi) - d * wish for d in (1, -1)}
            way = way or min(costs, key=lambda d: costs[d])
            left = way * (play - way * lead + (way * missing) % (2 * math.pi))
        return clipped((min(0.5, max(-0.5, left)) - 0.5 * speed) / 0.25)

    return act


TASKS: tuple[Task, ...] = (
    Task("HarbourDinghy-v0", "obstacles", "closed", HarbourDinghy, 100, sail),
    Task("SoupWaiter-v0", "fragile", "closed", SoupWaiter, 80, lambda: serve),
    Task("BeltParcel-v0", "push", "closed", BeltParcel, 80, lambda: push_over),
    Task("CurtainCord-v0", "pull", "closed", CurtainCord, 80, draw_curtain),
    Task("ApplePick-v0", "grasp", "closed", ApplePick, 60, lambda: pick),
    Task("StackBricks-v0", "several-objects", "closed", StackBricks, 80, stack),
    Task("SafeDial-v0", "angles", "closed", SafeDial, 60, crack),
)
