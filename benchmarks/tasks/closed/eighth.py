"""A hook, a car park, a wrist with fingers, a greenhouse, a taxi and a ball on a plate."""

from __future__ import annotations

from math import hypot
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ..open.base import Array, GoalTask, Seen, shortest_path, unit
from ..task import Observation, Task


class HookDrag(GoalTask):
    """A stick with a hook at its far end drags a puck towards the robot. Lengths are in centimetres.

    The stick points away from the robot, along y. At its tip a bar leads to the right, and a short lip leads back from the
    end of the bar. Stick, bar and lip push the puck. Actions are the wished speed of the stick along x and y.
    """

    near, radius, bar, lip, shaft, pace = 3.0, 3.5, 14.0, 4.0, 50.0, 4.0  # radius of puck and bar together

    def __init__(self) -> None:
        super().__init__(10, 2, 2)

    def begin(self) -> None:
        self.puck = self.tip = self.place([-12, 42], [14, 58])
        self.goal = self.puck + self.place([-12, -24], [12, -8])
        while min(hypot(*self.gap(part)) for part in range(3)) < self.radius + 1.5:
            self.tip = self.puck + self.place([-26, -16], [10, 14])
        self.speed, self.shift = np.zeros(2), np.zeros(2)

    def gap(self, part: int) -> tuple[float, float]:
        """Return the way from the nearest point of stick (0), bar (1) or lip (2) to the puck."""
        x, y = (self.puck - self.tip).tolist()
        if part == 1:
            return x - min(max(x, 0.0), self.bar), y
        return x - self.bar * (part == 2), y - min(max(y, -self.lip if part == 2 else -self.shaft), 0.0)

    def move(self, action: Array) -> None:
        self.speed = 0.3 * self.speed + 0.7 * self.pace * action
        before, start = self.puck, self.tip
        for _ in range(6):
            self.tip = np.clip(self.tip + self.speed / 6, [-45, 12], [45, 76])
            for part in range(3):
                gap = self.gap(part)
                distance = max(hypot(*gap), 1e-6)
                if distance < self.radius:
                    self.puck = self.puck + np.array(gap) * (self.radius / distance - 1)
        self.speed, self.shift = self.tip - start, self.puck - before

    def observe(self) -> Array:
        (gap_x, gap_y), (x, y), (speed_x, speed_y) = self.puck - self.tip, self.tip, self.speed
        load = np.linalg.norm(self.shift) + 0.02 * self.np_random.normal()
        puck_x, puck_y = self.puck + self.np_random.normal(0, 0.1, 2)
        return np.array([puck_y, x, speed_y, gap_y, load, y - self.shaft, puck_x, gap_x, speed_x, y])

    def achieved(self) -> Array:
        return self.puck.copy()


def drag(observation: Observation) -> Array:
    """Go around the puck on its left, come down over it, and drag it."""
    seen, task = observation["observation"], HookDrag
    gap, speed = -seen[[7, 3]], seen[[8, 2]]  # from the puck to the tip of the stick
    missing = observation["desired_goal"] - observation["achieved_goal"]
    if -11 < gap[0] < -3 and 2 < gap[1] < 7.5:  # the puck is in the hook
        side = -task.radius if missing[0] > 0 else task.radius - task.bar
        ahead = missing[1] + task.radius - gap[1] if missing[1] < -0.5 else 0.0
        to = 0.7 * np.array([missing[0] + side - gap[0] if abs(missing[0]) > 0.7 else 0.0, ahead])
    elif gap[0] <= -18.2:
        to = np.array([-7 - gap[0] if gap[1] > 8 else -19.5 - gap[0], 9.5 - gap[1]])
    elif gap[0] < -3.5 and gap[1] > 7.5:
        to = np.array([-7 - gap[0], 3.5 - gap[1] if abs(gap[0] + 7) < 2 else 9.5 - gap[1]])
    elif gap[1] < -4:
        to = np.array([-20 - gap[0], min(0.0, -6 - gap[1])])
    else:  # the stick is at the right of the puck
        to = np.array([max(0.0, 5 - gap[0]), -8 - gap[1]])
    return np.clip((to - 0.3 * speed) / (0.7 * task.pace), -1, 1).astype(np.float32)


class ParkingBay(GoalTask):
    """A small car with a steered front axle parks in a bay, nose or tail first. Lengths are in metres.

    The goal is x, y, cosine and sine of the heading. Actions are the throttle, negative to go back, and the steering wheel.
    """

    near, straight, wheelbase, sharpest, fastest = 0.4, 0.25, 1.2, 0.65, 0.5  # radians, and metres in a step

    def __init__(self) -> None:
        super().__init__(10, 4, 2)

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.at, self.heading = self.place([-4, -1.5], [4, 1.5]), draw(-0.5, 0.5) + np.pi * self.np_random.integers(2)
        self.speed, self.steering, self.odometer = 0.0, draw(-0.2, 0.2), draw(0, 5)
        row, nose = self.np_random.choice([-1, 1], 2)
        self.goal = np.array([2.4 * self.np_random.integers(-2, 3), 4.5 * row, 0.0, nose])

    def move(self, action: Array) -> None:
        self.speed += float(np.clip(self.fastest * action[0] - self.speed, -0.15, 0.15))
        self.steering += float(np.clip(self.sharpest * action[1] - self.steering, -0.35, 0.35))
        for _ in range(2):
            self.heading += 0.5 * self.speed * np.tan(self.steering) / self.wheelbase
            self.at = np.clip(self.at + 0.5 * self.speed * unit(self.heading), -9, 9)
        self.odometer += abs(self.speed)

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        away, askew = (np.linalg.norm((achieved_goal - desired_goal)[..., k : k + 2], axis=-1) for k in (0, 2))
        return (away <= self.near) & (askew <= self.straight)

    def observe(self) -> Array:
        (x, y), (cosine, sine) = self.at, unit(self.heading)
        left, right = self.speed * (1 + 0.02 * self.np_random.normal(size=2))  # wheels
        return np.array([sine, self.steering, x, left, self.odometer, self.speed, y, right, cosine, self.at @ self.at])

    def achieved(self) -> Array:
        return np.concatenate([self.at, unit(self.heading)])


def park(observation: Observation) -> Array:
    """Begin the best path of two arcs and a straight line to the bay."""
    seen, (x, y, cosine, sine), task = observation["observation"], observation["desired_goal"], ParkingBay
    to, turn = np.array([complex(x - seen[2], y - seen[6]), complex(cosine, sine)]) / complex(seen[8], seen[0])
    most = 0.9 * np.tan(task.sharpest) / task.wheelbase
    lengths = np.array([0, 0.3, 0.7, 1.4, 2, 3, 4.5, -0.3, -0.7, -1.4, -2, -3, -4.5])
    curve, length = (k.ravel() for k in np.meshgrid(np.linspace(-most, most, 9) + 1e-9, lengths))
    way, turned = np.expm1(1j * curve * length) / (1j * curve), np.exp(1j * curve * length)  # after an arc
    left = (to - way[:, None] - turned[:, None] * way) / (turned[:, None] * turned)  # what is missing after both arcs
    path = np.abs(length)[:, None] + np.abs(length) + np.abs(left.real)
    changes = 0.4 * (length[:, None] * length < 0) + 0.4 * (length * left.real < 0)
    cost = 4 * np.abs(left.imag) + 4 * np.abs(turned[:, None] * turned - turn) + 0.1 * path + changes
    first, second = np.unravel_index(np.argmin(cost), cost.shape)
    arc = first if length[first] != 0 else second
    rest, wheel = (length[arc], curve[arc]) if length[arc] != 0 else (left[first, second].real, 0.0)
    steering = np.arctan(wheel * task.wheelbase)
    speed = 0.6 * rest if abs(steering - seen[1]) < 0.4 or abs(rest) < 0.1 else 0.1 * np.sign(rest)
    return np.clip([speed / task.fastest, steering / task.sharpest], -1, 1).astype(np.float32)


class WristPick(GoalTask):
    """A gripper with a wrist takes an oblong block between two fingers and brings it to a position. In centimetres.

    Actions are the speed along x, y and z, of the wrist, and of opening or closing the fingers.
    """

    near, thick, long, tall, widest = 2.0, 4.0, 10.0, 4.0, 9.0
    most = np.array([3.0, 3.0, 2.5, 0.25, 1.5])  # centimetres, and radians of the wrist, in a step

    def __init__(self) -> None:
        super().__init__(14, 3, 5)

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.block, self.angle, self.fall = np.array([*self.place(-10, 10), 0.0]), draw(-1.5, 1.5), 0.0
        self.hand = np.array([*(self.block[:2] + self.place(-6, 6)), draw(6, 12)])
        self.wrist, self.opening, self.is_held, self.goal = draw(-0.8, 0.8), draw(5, self.widest), False, self.block
        while not 6 < np.linalg.norm(self.goal - self.block) < 18:
            self.goal = np.array([*self.place(-14, 14), draw(4, 13) * (draw() < 0.5)])

    def needed(self) -> float:
        """Return the opening that the block needs between the fingers, as it lies."""
        askew = self.angle - self.wrist
        return self.thick * abs(np.cos(askew)) + self.long * abs(np.sin(askew))

    def move(self, action: Array) -> None:
        *speed, turn, spread = self.most * action
        was_above = self.hand[2] - self.block[2] >= self.tall - 1e-9
        self.hand = np.clip(self.hand + speed, [-22, -22, 0], [22, 22, 22])
        self.wrist = float(np.clip(self.wrist + turn, -1.8, 1.8))
        self.opening = float(np.clip(self.opening + spread, 0, self.widest))
        if self.is_held and self.opening <= self.thick + 0.6:
            self.opening, self.block, self.angle, self.fall = self.thick, self.hand.copy(), self.wrist, 0.0
            return
        self.is_held = False
        across, gap = unit(self.wrist + np.pi / 2), self.block[:2] - self.hand[:2]  # across: from finger to finger
        if abs(self.hand[2] - self.block[2]) < self.tall and np.linalg.norm(gap) < 5:
            self._touch(gap @ across, gap @ unit(self.wrist), across, was_above, spread)
        self.fall = self.fall + 1.0 if self.block[2] > 0 and not self.is_held else 0.0
        self.block[2] = max(0.0, self.block[2] - self.fall)

    def _touch(self, aside: float, along: float, across: Array, was_above: bool, spread: float) -> None:
        """Let the fingers rest on the block, shift it, turn it, or hold it."""
        room = (self.opening - self.needed()) / 2
        if was_above and (room < 0 or abs(aside) > room + 1):
            self.hand[2] = self.block[2] + self.tall
            return
        self.block[:2] += (np.clip(aside, -max(room, 0.0), max(room, 0.0)) - aside) * across
        if room < 0 and spread < 0 and abs(along) < 4:  # closing fingers turn it, until it lies flat between them
            self.angle = self.wrist + max(0.0, 1 + room) * np.arctan(np.tan(self.angle - self.wrist))
            self.is_held = self.opening <= self.thick and self.needed() < self.thick + 2
        self.opening = max(self.opening, self.thick)

    def observe(self) -> Array:
        gap = self.block - self.hand + self.np_random.normal(0, 0.05, 3)
        (x, y, z), (cosine, sine), (block_x, block_y, block_z) = self.hand, unit(self.angle), self.block
        first = [self.opening, block_y, cosine, z, gap[0], self.wrist, block_z]
        return np.array([*first, x, gap[2], sine, block_x, self.fall, gap[1], y])

    def achieved(self) -> Array:
        return self.block.copy()


def pick(observation: Observation) -> Array:
    """Hold the open fingers above the block, turn them, lower them, close them, and carry the block."""
    seen, task = observation["observation"], WristPick
    (opening, cosine, wrist, sine), gap = seen[[0, 2, 5, 9]], seen[[4, 12, 8]]
    askew = np.arctan(sine / cosine) - wrist  # the block may be taken either way round
    if opening < task.thick + 0.1 and np.abs(gap).max() < 0.3:
        way = [*(observation["desired_goal"] - observation["achieved_goal"]), 0, -9]
    elif np.abs(gap).max() < 1.0 and abs(askew) < 0.2:
        way = [0, 0, 0, 0, -9]
    else:
        is_ready = np.abs(gap[:2]).max() < 0.8 and abs(askew) < 0.15 and opening > 7
        way = [gap[0], gap[1], gap[2] if is_ready else max(gap[2] + 5.5, 0), askew, 9]
    return np.clip(np.array(way) / task.most, -1, 1).astype(np.float32)


def most_water(air: Any) -> Any:
    """Return the grams of water that a kilogram of air holds at most."""
    return 3.8 * np.exp(0.065 * air)


def flow(air: Any, soil: Any, water: Any, weather: Any, valves: Any) -> tuple[Any, Any, Any]:
    """Return how temperature and water change in a step, and the part of the air that is exchanged."""
    (outside, damp, sun, wind), (heat, window, fog) = weather, valves
    leak = 0.03 + 0.15 * window * wind
    warmth = 2.2 * heat + 0.5 * sun - 0.5 * fog - (0.04 + leak) * (air - outside) + 0.05 * (soil - air)
    return warmth, 0.6 * fog + 0.1 + 0.1 * sun - leak * (water - damp), leak


class Greenhouse(GoalTask):
    """Heating, windows and fog bring a greenhouse to a temperature and a humidity: degrees Celsius and per cent.

    Each action sets one of the three between off (-1) and full (1). A step is two minutes. The sun and the wind vary.
    """

    near = np.array([0.8, 4.0])

    def __init__(self) -> None:
        super().__init__(11, 2, 3)

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.weather = self.place([6, 4, 0.2, 0.5], [16, 6, 0.8, 1.5], 4)  # temperature, water, sun and wind
        self.valves, self.hour, self.air = self.place(0, 1, 3), draw(8, 17), draw(13, 24)
        self.soil, self.water = self.air, draw(0.45, 0.8) * most_water(self.air)
        self.goal = start = self.achieved()
        while np.all(np.abs(start - self.goal) < 3 * self.near) or np.any((self.goal < [14, 45]) | (self.goal > [29, 88])):
            warmth, wet, leak = flow(*self.weather[[0, 0, 1]], self.weather, self.place(0.1, 0.9, 3))
            air, water = self.weather[0] + warmth / (0.04 + leak), self.weather[1] + wet / leak  # in the end
            self.goal = np.array([air, 100 * water / most_water(air)])

    def move(self, action: Array) -> None:
        self.valves = 0.3 * self.valves + 0.7 * (0.5 + 0.5 * action)
        warmth, wet, _ = flow(self.air, self.soil, self.water, self.weather, self.valves)
        self.soil += 0.02 * (self.air - self.soil)
        self.air += warmth
        self.water = np.clip(self.water + wet, 0.5, most_water(self.air))
        self.weather[2:] = np.clip(self.weather[2:] + self.np_random.normal(0, 0.02, 2), [0.1, 0.4], [0.9, 1.6])
        self.hour += 1 / 30

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return np.all(np.abs(achieved_goal - desired_goal) <= self.near, axis=-1)

    def observe(self) -> Array:
        (heat, window, fog), (outside, damp, sun, wind) = self.valves, self.weather
        air, humidity = self.achieved() + self.np_random.normal(0, [0.05, 0.3])
        return np.array([fog, sun, air, wind, self.hour, heat, outside, humidity, self.soil, window, damp])

    def achieved(self) -> Array:
        return np.array([self.air, 100 * self.water / most_water(self.air)])


def grow(observation: Observation) -> Array:
    """Choose, among many settings, those whose next change is nearest to the wished one."""
    seen, grid = observation["observation"], np.stack(np.meshgrid(*3 * [np.linspace(0, 1, 21)])).reshape(3, -1)
    (air, humidity), (to_air, to_humidity) = observation["achieved_goal"], observation["desired_goal"]
    water, to_water = humidity * most_water(air) / 100, to_humidity * most_water(to_air) / 100
    valves = 0.3 * seen[[5, 9, 0], None] + 0.7 * grid
    warmth, wet, _ = flow(air, seen[8], water, seen[[6, 10, 1, 3]], valves)
    cost = (warmth - 0.5 * (to_air - air)) ** 2 + (wet - 0.5 * (to_water - water)) ** 2 + 1e-3 * valves.sum(0)
    return (2 * grid[:, np.argmin(cost)] - 1).astype(np.float32)


class TaxiTown(gymnasium.Env[Seen, int]):
    """A taxi takes a passenger to a crossing of a small town. The goal is where the passenger is, and whether aboard (0).

    Actions: drive north, south, east or west, let the passenger in, let the passenger out. "#" are buildings.
    """

    town = ("..#....", ".......", "#.##.#.", ".......", ".#.#.##", ".......", "...#...")
    moves = ((-1, 0), (1, 0), (0, 1), (0, -1))

    def __init__(self) -> None:
        observed, goal = spaces.Box(0, 99, (6,), np.int64), spaces.Box(0, 6, (3,), np.int64)
        self.observation_space = spaces.Dict(observation=observed, achieved_goal=goal, desired_goal=goal)
        self.action_space = spaces.Discrete(6)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        free = [(i, j) for i, row in enumerate(self.town) for j, place in enumerate(row) if place == "."]
        taxi, passenger, to = (free[k] for k in self.np_random.choice(len(free), 3, replace=False))
        self.state, self.goal, self.fare = (*taxi, *passenger, 0), np.array([*to, 0]), 0
        return self.seen(), {}

    def step(self, action: int) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Drive, or open the door. The fare counts the crossings with the passenger aboard."""
        before, self.state = self.state, self.after(self.state, int(action))
        self.fare = min(99, self.fare + int(self.state[4] == 1 and self.state != before))
        seen = self.seen()
        reward = float(self.compute_reward(seen["achieved_goal"], seen["desired_goal"], {}))
        return seen, reward, False, False, {"is_success": reward == 0}

    @classmethod
    def after(cls, state: tuple[int, ...], action: int) -> tuple[int, ...]:
        """Return the state after an action: row and column of taxi and passenger, and whether aboard."""
        row, column, to_row, to_column, aboard = state
        if action > 3:
            return (*state[:4], int(action == 4 and state[:2] == state[2:4]))
        i, j = row + cls.moves[action][0], column + cls.moves[action][1]
        if not (0 <= i < 7 and 0 <= j < 7) or cls.town[i][j] == "#":
            return state
        return (i, j, i, j, 1) if aboard else (i, j, to_row, to_column, 0)

    def seen(self) -> Seen:
        observed = np.array([*self.state, self.fare])[[1, 2, 4, 5, 0, 3]]
        return {"observation": observed, "achieved_goal": np.array(self.state[2:]), "desired_goal": self.goal.copy()}

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 0 where the passenger is out at the goal, else -1."""
        return np.all(achieved_goal == desired_goal, axis=-1).astype(np.float64) - 1


def drive(observation: Observation) -> int:
    """Take the first action of a shortest path."""
    passenger, goal = (tuple(observation[key].tolist()) for key in ("achieved_goal", "desired_goal"))
    start, actions = (*observation["observation"][[4, 0]].tolist(), *passenger), range(6)
    path = shortest_path(start, lambda state: state[2:] == goal, lambda state: [TaxiTown.after(state, k) for k in actions])
    return path[0] if path else 5


class PlateBall(GoalTask):
    """A plate that tilts about two axes rolls a ball to a position. Centimetres, seconds, and tilts in radians.

    Actions are the speeds of both tilts. The reward is minus the distance, and 10 more where the ball is near enough.
    """

    near, half, steepest, turn = 2.0, 20.0, 0.15, 0.06  # the turn is that of a step of 0.1 s

    def __init__(self) -> None:
        super().__init__(9, 2, 2)

    def begin(self) -> None:
        self.ball, self.velocity, self.tilt = self.place(-16, 16), self.place(-5, 5), self.place(-0.03, 0.03)
        self.goal = self.ball
        while np.linalg.norm(self.goal - self.ball) < 8:
            self.goal = self.place(-15, 15)

    def move(self, action: Array) -> None:
        for _ in range(4):
            self.tilt = np.clip(self.tilt + self.turn / 4 * action, -self.steepest, self.steepest)
            self.velocity = 0.992 * self.velocity + 0.025 * 5 / 7 * 981 * np.sin(self.tilt)
            self.ball = self.ball + 0.025 * self.velocity
            self.velocity = np.where(np.abs(self.ball) > self.half, -0.3, 1.0) * self.velocity
            self.ball = np.clip(self.ball, -self.half, self.half)

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return the dense reward."""
        distance = np.linalg.norm(achieved_goal - desired_goal, axis=-1)
        return 10.0 * (distance <= self.near) - distance

    def observe(self) -> Array:
        (x, y), (tilt_x, tilt_y) = self.ball, self.tilt
        speed_x, speed_y = self.velocity + self.np_random.normal(0, 0.2, 2)
        return np.array([tilt_y, speed_x, y, self.half * (tilt_x + tilt_y), x, speed_y, tilt_x, np.cos(tilt_x), 22.0])

    def achieved(self) -> Array:
        return self.ball.copy()


def roll(observation: Observation) -> Array:
    """Tilt towards the goal, and against the speed."""
    seen = observation["observation"]
    missing, velocity, tilt = observation["desired_goal"] - seen[[4, 2]], seen[[1, 5]], seen[[6, 0]]
    wished = np.clip((2.0 * missing - 2.4 * velocity) / 700, -PlateBall.steepest, PlateBall.steepest)
    return np.clip((wished - tilt) / PlateBall.turn, -1, 1).astype(np.float32)


TASKS = (
    Task("HookDrag-v0", "pull", "closed", HookDrag, 60, lambda: drag),
    Task("ParkingBay-v0", "angles", "closed", ParkingBay, 80, lambda: park),
    Task("WristPick-v0", "grasp", "closed", WristPick, 60, lambda: pick),
    Task("Greenhouse-v0", "not-a-robot", "closed", Greenhouse, 60, lambda: grow, 15_000),
    Task("TaxiTown-v0", "discrete", "closed", TaxiTown, 50, lambda: drive),
    Task("PlateBall-v0", "rewards", "closed", PlateBall, 60, lambda: roll, 15_000),
)
