"""Closed tasks: an arm and a spool, a sliding crate, the underground, a barrow, and a glacier."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ..open.base import Array, Seen, SinglePrecision, SizedTask, clipped, push_out, shortest_path, toward_push, unit
from ..task import Observation, Task


class SpoolPicker(SinglePrecision):
    """An arm with two joints over a table picks up a spool and puts it at a position, in metres.

    The jaws need two steps to close. The motors of the joints reach a commanded speed with a delay.
    Actions: speeds of shoulder and elbow, and the jaws (above 0 closes).
    """

    numbers, thing, near = (12, 2, 3), "spool", 0.07
    links, pace, grab = (0.5, 0.4), 0.16, 0.08
    low, high = np.array([-3.0, 0.2]), np.array([3.0, 2.6])

    def reachable(self) -> Array:
        """Return a random position on the table within reach."""
        return self.np_random.uniform(0.42, 0.84) * unit(self.np_random.uniform(-1.4, 1.4))

    def tip(self) -> Array:
        """Return the position of the jaws."""
        return self.links[0] * unit(self.joints[0]) + self.links[1] * unit(self.joints.sum())

    def begin(self) -> None:
        self.joints, self.speed, self.gap, self.is_held = self.place([-1.2, 0.8], [0.6, 2.0]), np.zeros(2), 1.0, False
        self.spool = self.reachable()
        while not 0.05 < np.linalg.norm(self.spool - self.tip()) < 0.25:
            self.spool = self.reachable()
        self.goal = self.spool
        while np.linalg.norm(self.goal - self.spool) < 0.15:
            self.goal = self.reachable()

    def move(self, action: Array) -> None:
        self.speed = 0.4 * self.speed + 0.6 * self.pace * action[:2]
        before = self.joints
        self.joints = np.clip(before + self.speed, self.low, self.high)
        self.speed = self.joints - before
        was_open = self.gap > 0.3
        self.gap = float(np.clip(self.gap + (-0.5 if action[2] > 0 else 0.5), 0, 1))
        if self.gap > 0.3:
            self.is_held = False
        elif was_open:
            self.is_held = bool(np.linalg.norm(self.spool - self.tip()) < self.grab)
        if self.is_held:
            self.spool = self.tip()

    def observe(self) -> Array:
        tip, joints = self.tip(), self.joints
        return np.array([*np.cos(joints), *np.sin(joints), *(10 * self.speed), *tip, *(self.spool - tip), self.gap, 1])


def pick_spool() -> Any:
    """Move the joints to those that reach the spool, close the jaws, then move to those that reach the goal."""
    is_closing = False

    def act(observation: Observation) -> Array:
        nonlocal is_closing
        seen, (near_link, far_link) = observation["observation"], SpoolPicker.links
        joints = np.arctan2(seen[2:4], seen[:2])
        off = float(np.linalg.norm(seen[8:10]))
        is_closing = off < 0.03 or (is_closing and off < 0.05)
        x, y = observation["desired_goal" if is_closing and seen[10] < 0.3 else "achieved_goal"]
        bend = math.acos(min(1.0, max(-1.0, (x * x + y * y - near_link**2 - far_link**2) / (2 * near_link * far_link))))
        shoulder = math.atan2(y, x) - math.atan2(far_link * math.sin(bend), near_link + far_link * math.cos(bend))
        return clipped(*(0.7 * (np.array([shoulder, bend]) - joints) / SpoolPicker.pace), 1 if is_closing else -1)

    return act


class CoulombCrate(SizedTask):
    """A heavy puck, driven by forces, shoves a crate over a rough floor. The crate stops by dry friction.

    Actions: forces along x and y. Metres, seconds.
    """

    numbers, thing, near = (8, 2, 2), "crate", 0.12
    dt, parts, thrust, drag, dry, contact, ratio = 0.05, 4, 7.0, 4.5, 3.0, 0.16, 0.5

    def begin(self) -> None:
        self.crate, self.crate_speed, self.puck_speed = self.place(-0.55, 0.55), np.zeros(2), np.zeros(2)
        self.puck, self.goal = self.crate, self.crate
        while not 0.2 < np.linalg.norm(self.puck - self.crate) < 0.45:
            self.puck = self.place(-0.8, 0.8)
        while not 0.25 < np.linalg.norm(self.goal - self.crate) < 0.9:
            self.goal = self.place(-0.65, 0.65)

    def move(self, action: Array) -> None:
        dt = self.dt / self.parts
        for _ in range(self.parts):
            self.puck_speed = self.puck_speed + dt * (self.thrust * action - self.drag * self.puck_speed)
            self.puck, self.crate = self.puck + dt * self.puck_speed, self.crate + dt * self.crate_speed
            self.collide()
            pace = float(np.linalg.norm(self.crate_speed))
            self.crate_speed = self.crate_speed * max(0.0, 1 - self.dry * dt / max(pace, 1e-9))
            self.puck_speed[np.abs(self.puck) > 1] = 0
            self.crate_speed[np.abs(self.crate) > 0.9] = 0
            self.puck, self.crate = np.clip(self.puck, -1, 1), np.clip(self.crate, -0.9, 0.9)

    def collide(self) -> None:
        """Let both go on with one speed along the line between them, where they touch and approach."""
        overlap = push_out(self.crate, self.puck, self.contact)
        depth = float(np.linalg.norm(overlap))
        if depth == 0:
            return
        normal = overlap / depth
        approach = float((self.puck_speed - self.crate_speed) @ normal)
        if approach > 0:
            self.crate_speed = self.crate_speed + self.ratio * approach * normal
            self.puck_speed = self.puck_speed - (1 - self.ratio) * approach * normal
        self.crate, self.puck = self.crate + 0.5 * overlap, self.puck - 0.5 * overlap

    def observe(self) -> Array:
        return np.concatenate([self.puck, self.puck_speed, self.crate, self.crate_speed])


def shove_crate() -> Any:
    """Go around the crate, shove it slowly, and brake when it arrives."""

    def act(observation: Observation) -> Array:
        seen, task, goal = observation["observation"], CoulombCrate, observation["desired_goal"]
        way = toward_push(seen[:2], seen[4:6] + 0.05 * seen[6:], goal, task.contact, 0.08)
        far = float(np.linalg.norm(way))
        wished = way * min(4.0, 1.2 / max(far, 1e-9))
        force = task.drag * wished + 6 * (wished - seen[2:4])
        if np.linalg.norm(seen[:2] - seen[4:6]) < task.contact + 0.02:
            force = force + task.dry * way / max(far, 0.05)
        return clipped(*(force / task.thrust))

    return act


LINES = (
    ((0, 2), (2, 2), (4, 2), (6, 2), (8, 2), (10, 2), (12, 2)),
    ((4, 7), (4, 5), (4, 4), (4, 2), (4, 0), (5, -2), (7, -3)),
    ((12, 8), (11, 6), (10, 4), (10, 2), (9, 0), (7, -3), (5, -5)),
    ((0, 6), (2, 5), (4, 5), (7, 6), (11, 6), (13, 5), (15, 5)),
)
STATIONS = sorted({station for line in LINES for station in line})


def ride(state: tuple[int, int], action: int) -> tuple[int, int]:
    """Return the line and the stop after an action: on, back, change the line, wait."""
    line, stop = state
    if action == 2:
        others = [number for number, stops in enumerate(LINES) if number != line and LINES[line][stop] in stops]
        return (others[0], LINES[others[0]].index(LINES[line][stop])) if others else state
    return line, min(6, max(0, stop + (1, -1, 0, 0)[action]))


class MetroRider(gymnasium.Env[Seen, Any]):
    """A passenger travels by underground to a station. Lines meet at some stations. Goals are places on the map."""

    def __init__(self) -> None:
        observed, goal = spaces.Box(-10, 100, (8,), np.float32), spaces.Box(-5, 15, (2,), np.float32)
        self.observation_space = spaces.Dict(observation=observed, achieved_goal=goal, desired_goal=goal)
        self.action_space = spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = (int(self.np_random.integers(4)), int(self.np_random.integers(7)))
        start = STATIONS.index(LINES[self.state[0]][self.state[1]])
        self.target = STATIONS[(start + int(self.np_random.integers(1, len(STATIONS)))) % len(STATIONS)]
        self.crowd = float(self.np_random.uniform(20, 80))
        return self._get_obs(), {}

    def _get_obs(self) -> Seen:
        line, stop = self.state
        here = np.array(LINES[line][stop], np.float32)
        observed = np.array([*(np.arange(4) == line), stop, *here, self.crowd], np.float32)
        return {"observation": observed, "achieved_goal": here, "desired_goal": np.array(self.target, np.float32)}

    def step(self, action: int) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        self.state = ride(self.state, int(action))
        self.crowd = float(np.clip(self.crowd + self.np_random.normal(0, 3), 0, 100))
        seen = self._get_obs()
        reward = self.compute_reward(seen["achieved_goal"], seen["desired_goal"], {})
        return seen, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 0 at the station, else -1."""
        return -np.any(np.abs(achieved_goal - desired_goal) > 0.5, axis=-1).astype(np.float32)


def travel() -> Any:
    """Take the shortest path through the network, then wait."""

    def act(observation: Observation) -> int:
        seen, goal = observation["observation"], tuple(observation["desired_goal"].astype(int).tolist())
        start = (int(seen[:4].argmax()), int(seen[4]))
        path = shortest_path(start, lambda at: LINES[at[0]][at[1]] == goal, lambda at: [ride(at, a) for a in range(3)])
        return path[0] if path else 3

    return act


class GardenBarrow(SizedTask):
    """A gardener wheels a barrow to a bed and then goes to another place. The goal says where both shall be.

    The barrow moves with the gardener while its handles are held, at a lower speed. Actions: steps, and the hands (above 0
    holds). Metres. `near` bounds each of the two distances.
    """

    numbers, near = (10, 4, 3), 0.5
    pace, laden, reach, size = 0.4, 0.7, 0.5, 4.0

    def begin(self) -> None:
        self.barrow, self.is_held = self.place(-3, 3), False
        self.gardener = np.clip(self.barrow + self.place(-1.5, 1.5), -self.size, self.size)
        self.goal, self.rain = np.append(self.barrow, self.gardener), float(self.np_random.uniform())
        while np.linalg.norm(self.goal[:2] - self.barrow) < 1 or np.linalg.norm(self.goal[2:] - self.goal[:2]) < 0.8:
            self.goal = self.place(-3.5, 3.5, 4)

    def achieved(self) -> Array:
        return np.concatenate([self.barrow, self.gardener])

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        gap = (achieved_goal - desired_goal).reshape(*np.shape(achieved_goal)[:-1], 2, 2)
        return (np.linalg.norm(gap, axis=-1) < self.near).all(axis=-1)

    def move(self, action: Array) -> None:
        is_near = bool(np.linalg.norm(self.barrow - self.gardener) < self.reach)
        self.is_held = bool(action[2] > 0) and (self.is_held or is_near)
        before = self.gardener
        step = self.pace * (self.laden if self.is_held else 1.0) * action[:2]
        self.gardener = np.clip(before + step, -self.size, self.size)
        if self.is_held:
            self.barrow = np.clip(self.barrow + self.gardener - before, -self.size, self.size)

    def observe(self) -> Array:
        (x, y), (east, north) = self.gardener, self.barrow
        gap = float(np.linalg.norm(self.barrow - self.gardener))
        return np.array([self.rain, x, east, y, north, self.is_held, east - x, north - y, gap, 12.5])


def wheel_barrow() -> Any:
    """Go to the barrow, wheel it to its place, let go, and walk on."""

    def act(observation: Observation) -> Array:
        (barrow, gardener), task = observation["achieved_goal"].reshape(2, 2), GardenBarrow
        goals = observation["desired_goal"].reshape(2, 2)
        if np.linalg.norm(barrow - goals[0]) < 0.3:
            return clipped(*((goals[1] - gardener) / task.pace), -1)
        if observation["observation"][5] or np.linalg.norm(barrow - gardener) < 0.3:
            return clipped(*((goals[0] - barrow) / (task.laden * task.pace)), 1)
        return clipped(*((barrow - gardener) / task.pace), -1)

    return act


class GlacierSpikes(SizedTask):
    """A hiker walks to a place, mostly beyond a slope of ice. Whoever wears no spikes slides back from the ice.

    Somewhere before the ice lies a pair of spikes. The hiker puts them on by coming near. Actions: steps east and north.
    """

    numbers, thing, near = (8, 2, 2), "hiker", 0.5
    pace, ice, slide, grab, size = 0.45, (4.0, 6.5), 0.5, 0.5, np.array([10.0, 6.0])

    def begin(self) -> None:
        self.hiker, self.spikes, self.is_worn = self.place([0, 0], [3.8, 6]), self.place([0.4, 0.4], [3.5, 5.6]), False
        while np.linalg.norm(self.spikes - self.hiker) < 1:
            self.spikes = self.place([0.4, 0.4], [3.5, 5.6])
        self.goal = self.hiker
        while np.linalg.norm(self.goal - self.hiker) < 1.5:
            is_far = self.np_random.random() < 0.75
            self.goal = self.place([7.2, 0.3], [9.7, 5.7]) if is_far else self.place(0.3, [3.7, 5.7])

    def is_on_ice(self) -> bool:
        """Return whether the hiker stands on the ice."""
        return bool(self.ice[0] < self.hiker[0] < self.ice[1])

    def move(self, action: Array) -> None:
        step = self.pace * action
        if self.is_on_ice() and not self.is_worn:
            step = 0.3 * step - np.array([self.slide, 0])
        self.hiker = np.clip(self.hiker + step, 0, self.size)
        self.is_worn = self.is_worn or bool(np.linalg.norm(self.spikes - self.hiker) < self.grab)
        if self.is_worn:
            self.spikes = self.hiker

    def observe(self) -> Array:
        cold = -8 + self.np_random.normal(0, 0.5)
        return np.array([*(self.spikes - self.hiker), self.is_worn, *self.hiker, self.is_on_ice(), cold, self.ice[0]])

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 1 where the goal is met, else 0."""
        return self.is_met(achieved_goal, desired_goal).astype(np.float64)


def hike() -> Any:
    """Fetch the spikes if the goal lies beyond the ice, then walk straight."""

    def act(observation: Observation) -> Array:
        seen, way = observation["observation"], observation["desired_goal"] - observation["achieved_goal"]
        if observation["desired_goal"][0] > 5 and not seen[2]:
            way = seen[:2]
        return clipped(*(way / GlacierSpikes.pace))

    return act


TASKS: tuple[Task, ...] = (
    Task("SpoolPicker-v0", "grasp", "closed", SpoolPicker, 50, pick_spool),
    Task("CoulombCrate-v0", "push", "closed", CoulombCrate, 75, shove_crate),
    Task("MetroRider-v0", "discrete", "closed", MetroRider, 25, travel),
    Task("GardenBarrow-v0", "several-objects", "closed", GardenBarrow, 60, wheel_barrow),
    Task("GlacierSpikes-v0", "later", "closed", GlacierSpikes, 60, hike),
)
