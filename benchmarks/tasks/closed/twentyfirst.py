"""Five closed tasks: a sideboard, a rack of test tubes, a carousel of spices, a stretcher, and stacks in a port."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, Seen, SizedTask, clipped, shortest_path, wrapped
from ..open.grids import DiscreteTask, numbers
from ..task import Observation, Task
from .twentieth import OwnUnits


class Sideboard(OwnUnits):
    """A hand opens and shuts two drawers of a sideboard, seen from above; a sliding panel always covers one of them.

    Goals are how far the left and the right drawer are out, in centimetres. The panel slides only before shut drawers.
    Actions: motion of the hand in centimetres, to the right and away from the sideboard, and the grip.
    """

    numbers, thing = (7, 2, 3), "out"
    limits = ((-5.0, -5.0, -1.0), (5.0, 5.0, 1.0))
    handles, reach, longest = np.array([20.0, 80.0]), 3.5, 35.0

    def begin(self) -> None:
        free = int(self.np_random.integers(2))
        self.panel, self.out, self.goal, self.held = (75.0, 25.0)[free], np.zeros(2), np.zeros(2), 0
        if self.np_random.random() < 0.5:
            self.out[free] = self.np_random.uniform(8, 33)
        wished = free if self.np_random.random() < 0.4 else 1 - free
        self.goal[wished] = self.out[wished]
        while abs(self.goal[wished] - self.out[wished]) < 6:
            self.goal[wished] = self.np_random.uniform(8, 33)
        self.hand = self.place([5, 10], [95, 55])

    def move(self, action: Array) -> None:
        right, away = 5.0 * action[:2]
        if action[2] <= 0:
            self.held = 0
        elif not self.held:
            places = np.array([[20, self.out[0]], [self.panel, 0], [80, self.out[1]]])
            far = np.linalg.norm(places - self.hand, axis=1) + 99 * np.array([self.panel < 72, False, self.panel > 28])
            self.held = int(np.argmin(far)) + 1 if far.min() < self.reach else 0
        if self.held == 2:
            if self.out.max() < 1:
                self.panel = float(np.clip(self.panel + right, 25, 75))
            self.hand = np.array([self.panel, 0.0])
        elif self.held:
            drawer = self.held // 2
            self.out = self.out.copy()
            self.out[drawer] = np.clip(self.out[drawer] + away, 0, self.longest)
            self.hand = np.array([self.handles[drawer], self.out[drawer]])
        else:
            self.hand = np.clip(self.hand + np.array([right, away]), 0, [100, 60])

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return (np.abs(achieved_goal - desired_goal) <= 2.0).all(-1)

    def observe(self) -> Array:
        warmth = 21 + self.np_random.normal(0, 0.5)
        return np.array([self.hand[1], self.held, self.out[1], warmth, self.hand[0], self.panel, self.out[0]])


def open_drawer() -> Any:
    """Shut the drawer that is out in vain, slide the panel away, then pull the other one."""

    def act(observation: Observation) -> Array:
        away, held, right_out, _, right, panel, left_out = observation["observation"]
        goal, out = observation["desired_goal"], (left_out, right_out)
        wished = int(np.argmax(goal))
        drawer = 1 - wished if out[1 - wished] > 0.8 else wished
        aside = (75, 25)[wished] - panel
        if drawer == wished and abs(aside) > 2.5:
            thing, handle, shift = 2, np.array([panel, 0]), np.array([aside, 0])
        else:
            thing = 1 + 2 * drawer
            handle, shift = np.array([Sideboard.handles[drawer], out[drawer]]), np.array([0, goal[drawer] - out[drawer]])
        if held == thing and np.abs(shift).max() > 0.3:
            return np.append(np.clip(shift, -5, 5), 1).astype(np.float32)
        way = handle - [right, away]
        if held or np.abs(shift).max() <= 0.3:
            return np.array([0, 0, -1], np.float32)
        return np.append(np.clip(way, -5, 5), 1 if np.linalg.norm(way) < 2 else -1).astype(np.float32)

    return act


class TubeRack(OwnUnits):
    """A jaw, seen from the side, takes a test tube out of a hole of a rack and brings it into another one, or above it.

    All in millimetres, goals are the position of the foot of the tube. A tube leaves its hole straight up only.
    Actions: where the jaw should be, and how far open. A balance in the wrist shows grams.
    """

    numbers, thing, near = (6, 2, 3), "tube", 4.0
    limits = ((-10.0, 60.0, 0.0), (130.0, 190.0, 30.0))
    holes, top, length, wide = 30.0 * np.arange(5), 40.0, 75.0, 16.0  # top: of the rack; wide: the tube

    def begin(self) -> None:
        start, other = self.np_random.choice(5, 2, replace=False)
        self.tube, self.is_held = np.array([self.holes[start], 0.0]), False
        is_hole = self.np_random.random() < 0.7
        self.goal = np.array([self.holes[other], 0.0]) if is_hole else self.place([0, 50], [120, 100])
        self.jaw, self.width = self.place([-10, 100], [130, 180]), float(self.np_random.uniform(0, 30))

    def move(self, action: Array) -> None:
        wish = self.middle + self.half * action
        before, way = self.width, wish[:2] - self.jaw
        way = way * min(1.0, 12 / max(1e-9, float(np.linalg.norm(way))))
        self.width += float(np.clip(wish[2] - self.width, -8, 8))
        if self.is_held and self.width <= self.wide + 1:
            self.width = self.wide
            self._carry(way)
            return
        if self.is_held:
            self.is_held = False
            over = self._hole(self.tube[0])
            self.tube = np.array([self.tube[0], self.top]) if over is None else np.array([over, 0.0])
        head = self.tube[1] + self.length
        x, height = np.clip(self.jaw + way, [-10, 60], [130, 190])
        fits = self.width >= 22 and abs(x - self.tube[0]) < 5
        if height < head and abs(x - self.tube[0]) < 14 and not fits:
            x, height = (self.jaw[0], height) if self.jaw[1] < head else (x, head)
        self.jaw = np.array([x, height])
        is_around = abs(x - self.tube[0]) < 5 and height < head - 3
        if is_around and before > self.wide >= self.width:
            self.is_held, self.width, self.grip = True, self.wide, height - self.tube[1]
            self.jaw = np.array([self.tube[0], height])

    def _hole(self, x: float) -> float | None:
        nearest = float(self.holes[np.argmin(np.abs(self.holes - x))])
        return nearest if abs(nearest - x) < 3 else None

    def _carry(self, way: Array) -> None:
        x, height = self.tube
        if height >= self.top:
            x = float(np.clip(x + way[0], -10, 130))
        over = self._hole(x)
        height = float(np.clip(height + way[1], self.top if over is None else 0, 110))
        self.tube = np.array([over if over is not None and height < self.top else x, height])
        self.jaw = self.tube + np.array([0, self.grip])

    def observe(self) -> Array:
        grams, gap = 18 * self.is_held + self.np_random.normal(0, 1.5), self.tube - self.jaw
        return np.array([self.width, gap[0], grams, self.jaw[1], gap[1], self.jaw[0]])


def carry_tube() -> Any:
    """Put the open jaw over the tube, close it, lift the tube out, carry it, and lower it."""

    def act(observation: Observation) -> Array:
        width, gap, grams, height, below, x = observation["observation"]
        tube, goal = np.array([x + gap, height + below]), observation["desired_goal"]
        head = tube[1] + TubeRack.length
        if grams > 9:
            across = np.array([0, 50 - tube[1]] if tube[1] < 46 else [goal[0] - tube[0], 0])
            shift = goal - tube if abs(tube[0] - goal[0]) < 1 else across
            return np.array([x + shift[0], height + shift[1], 5], np.float32)
        if abs(gap) > 2:
            return np.array([x if height < head + 8 else tube[0], head + 15, 30], np.float32)
        if height > head - 10:
            return np.array([tube[0], head - 12 if width >= 22 else height, 30], np.float32)
        return np.array([x, height, 5], np.float32)

    return act


class SpiceCarousel(OwnUnits):
    """A carousel carries three jars. A rod at one side hooks the jar before it and draws it in or out.

    Goals say how far out each jar should stand, in per cent. The carousel does not turn while a jar is hooked.
    Actions: motion of the rod in centimetres, of the carousel in degrees, and the hook.
    """

    numbers, thing = (9, 3, 3), "percent"
    limits = ((-1.5, -12.0, -1.0), (1.5, 12.0, 1.0))
    inner, outer = 4.0, 16.0

    def begin(self) -> None:
        self.seats = np.array([0.0, 130.0, 235.0]) + self.np_random.uniform(0, 360)
        self.jars, self.rod, self.hooked = self.place(self.inner, self.outer, 3), float(self.place(3, 16, 1)[0]), -1
        self.goal = self.percent
        while np.abs(self.goal - self.percent).max() < 25:
            changes = self.np_random.random(3) < 0.6
            self.goal = np.where(changes, self.place(5, 95, 3), self.percent)

    @property
    def percent(self) -> Array:
        return 100 * (self.jars - self.inner) / (self.outer - self.inner)

    def angles(self) -> Array:
        return (self.seats + 180) % 360 - 180

    def move(self, action: Array) -> None:
        if action[2] <= 0:
            self.hooked = -1
        elif self.hooked < 0:
            found = np.flatnonzero((np.abs(self.angles()) < 6) & (np.abs(self.jars - self.rod) < 1))
            self.hooked = int(found[0]) if found.size else -1
        self.rod = float(np.clip(self.rod + 1.5 * action[0], 3, self.outer))
        if self.hooked < 0:
            self.seats = self.seats + 12 * action[1]
        else:
            self.rod = max(self.inner, self.rod)
            self.jars = np.where(np.arange(3) == self.hooked, self.rod, self.jars)

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return (np.abs(achieved_goal - desired_goal) <= 6.0).all(-1)

    def observe(self) -> Array:
        current = 0.4 + 0.3 * (self.hooked >= 0) + self.np_random.normal(0, 0.1)  # ampere
        return np.array([current, *self.jars, self.rod, *self.angles(), float(self.hooked >= 0)])


def sort_spices() -> Any:
    """Turn the first jar that is wrong to the rod, hook it, and draw it to its place."""

    def act(observation: Observation) -> Array:
        seen, span = observation["observation"], SpiceCarousel.outer - SpiceCarousel.inner
        jars, rod, angles, is_hooked = seen[1:4], seen[4], seen[5:8], seen[8]
        lack = SpiceCarousel.inner + span * observation["desired_goal"] / 100 - jars
        wrong = np.flatnonzero(np.abs(lack) > 0.4)
        if not wrong.size:
            return np.array([0, 0, -1], np.float32)
        jar = wrong[0]
        is_there = abs(angles[jar]) < 5 and abs(jars[jar] - rod) < 0.7
        if is_hooked or is_there:
            return np.array([np.clip(lack[jar], -1.5, 1.5) if is_there else 0, 0, 1 if is_there else -1], np.float32)
        return np.array([np.clip(jars[jar] - rod, -1.5, 1.5), np.clip(-angles[jar], -12, 12), -1], np.float32)

    return act


class StretcherPair(SizedTask):
    """Two robots carry a stretcher through a yard with a wall across. Its door is narrower than the stretcher is long.

    Both robots have a place to reach, in metres. Actions: the speeds of both, to the right and ahead.
    """

    numbers, thing = (11, 4, 4), "ends"
    length, wall, half_door, speed = 2.2, 5.0, 0.8, 0.3
    yard = np.array([10.0, 7.0])

    def begin(self) -> None:
        self.door = float(self.np_random.uniform(1.5, 5.5))
        side = self.np_random.random() < 0.5
        other = side if self.np_random.random() < 0.3 else not side
        self.ends, self.rates = self._pose(side), np.zeros((2, 2))
        self.goal = self.ends.ravel()
        while np.linalg.norm(self.goal - self.ends.ravel()) < 1.5:
            self.goal = self._pose(other).ravel()

    def _pose(self, is_right: bool) -> Array:
        middle, angle = self.place([1.3, 1.3], [3.6, 5.7]), self.np_random.uniform(-np.pi, np.pi)
        half = 0.5 * self.length * np.array([np.cos(angle), np.sin(angle)])
        return np.array([middle - half, middle + half]) + np.array([5.1 * is_right, 0])

    def _is_free(self, ends: Array) -> bool:
        for before, after in [*zip(self.ends, ends, strict=True), ends]:
            a, b = before[0] - self.wall, after[0] - self.wall
            if a * b < 0 and abs(before[1] + (after[1] - before[1]) * a / (a - b) - self.door) > self.half_door:
                return False
        return True

    def move(self, action: Array) -> None:
        start = self.ends
        self.rates = 0.3 * self.rates + 0.7 * self.speed * action.reshape(2, 2)
        for kept in ([1, 1], [0, 1], [1, 0]):
            ends = np.clip(start + self.rates * kept, 0, self.yard)
            bar = ends[1] - ends[0]
            ends = ends + 0.5 * (1 - self.length / float(np.linalg.norm(bar))) * np.array([bar, -bar])
            if self._is_free(ends):
                self.ends = ends
                break
        self.rates = self.ends - start

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        gaps = (achieved_goal - desired_goal).reshape(*achieved_goal.shape[:-1], 2, 2)
        return (np.linalg.norm(gaps, axis=-1) <= 0.35).all(-1)

    def observe(self) -> Array:
        wind = self.np_random.normal(2, 0.5)
        first, second = self.ends
        return np.array([*second, *self.rates[1], wind, *first, *self.rates[0], first[1] - self.door, self.door])


def carry_stretcher() -> Any:
    """Stand lengthwise before the door, walk through, then go to the place."""

    def act(observation: Observation) -> Array:
        seen, goal = observation["observation"], observation["desired_goal"].reshape(2, 2)
        first, second, door, half = seen[5:7], seen[:2], seen[10], 0.5 * StretcherPair.length
        middle, angle = (first + second) / 2, float(np.arctan2(*(second - first)[::-1]))
        side = np.sign(goal[:, 0].mean() - StretcherPair.wall)
        along = 0.0 if abs(angle) < np.pi / 2 else np.pi
        if (middle[0] - StretcherPair.wall) * side > 1.2:
            to, turn = goal.mean(0), float(np.arctan2(*(goal[1] - goal[0])[::-1])) - angle
        else:
            is_aligned = abs(np.sin(angle)) * half < 0.2 and abs(middle[1] - door) < 0.25
            to, turn = np.array([StretcherPair.wall + (1.4 if is_aligned else -1.4) * side, door]), along - angle
        spin = 0.6 * wrapped(turn) * half * np.array([-np.sin(angle), np.cos(angle)])
        shift = 0.6 * (to - middle)
        wish = np.array([shift - spin, shift + spin]).ravel()
        return clipped(*wish / max(StretcherPair.speed, float(np.abs(wish).max())))

    return act


class PortStacks(DiscreteTask):
    """A crane sorts four containers on three stacks, each at most three high. It takes the upper one of a stack only.

    A container has a code: ten times the stack plus the level, from 11 to 33, or 0 while it hangs on the crane.
    Actions: one stack to the left, one to the right, and take or put down.
    """

    stacks, highest, containers = 3, 3, 4

    def __init__(self) -> None:
        observed, code = numbers(33, self.containers + 1), numbers(33, self.containers)
        self.observation_space = spaces.Dict(observation=observed, achieved_goal=code, desired_goal=code)
        self.action_space = spaces.Discrete(3)  # type: ignore[assignment]

    def begin(self) -> None:
        self.state = (self._piled(), int(self.np_random.integers(self.stacks)), -1)
        self.goal = np.array(self.codes(self.state))
        while (self.goal == self.codes(self.state)).sum() > 1:
            self.goal = np.array(self.codes((self._piled(), 0, -1)))

    def _piled(self) -> tuple[tuple[int, ...], ...]:
        piles: list[tuple[int, ...]] = [()] * self.stacks
        for container in self.np_random.permutation(self.containers).tolist():
            free = [stack for stack, pile in enumerate(piles) if len(pile) < self.highest]
            stack = free[int(self.np_random.integers(len(free)))]
            piles[stack] = (*piles[stack], container)
        return tuple(piles)

    @classmethod
    def codes(cls, state: Any) -> list[int]:
        found = [0] * cls.containers
        for stack, pile in enumerate(state[0]):
            for level, container in enumerate(pile):
                found[container] = 10 * (stack + 1) + level + 1
        return found

    @classmethod
    def after(cls, state: Any) -> list[Any]:
        piles, crane, held = state
        moved, pile = list(piles), piles[crane]
        if held >= 0 and len(pile) < cls.highest:
            moved[crane], now = (*pile, held), -1
        elif held < 0 and pile:
            moved[crane], now = pile[:-1], pile[-1]
        else:
            now = held
        sides = max(0, crane - 1), min(cls.stacks - 1, crane + 1)
        return [(piles, sides[0], held), (piles, sides[1], held), (tuple(moved), crane, now)]

    def seen(self) -> Seen:
        codes = self.codes(self.state)
        observed = np.array([self.state[1] + 1, *codes])
        return {"observation": observed, "achieved_goal": np.array(codes), "desired_goal": self.goal.copy()}


def stack_containers() -> Any:
    """Follow a shortest path, then drive to the left."""
    plan: list[int] | None = None

    def act(observation: Observation) -> int:
        nonlocal plan
        if plan is None:
            crane, *codes = observation["observation"].tolist()
            order = sorted(range(len(codes)), key=codes.__getitem__)
            piles = tuple(tuple(c for c in order if codes[c] // 10 == 1 + stack) for stack in range(PortStacks.stacks))
            goal = observation["desired_goal"].tolist()
            start = (piles, crane - 1, codes.index(0) if 0 in codes else -1)
            plan = shortest_path(start, lambda state: PortStacks.codes(state) == goal, PortStacks.after)
        return plan.pop(0) if plan else 0

    return act


TASKS: tuple[Task, ...] = (
    Task("Sideboard-v0", "pull", "closed", Sideboard, 90, open_drawer),
    Task("TubeRack-v0", "grasp", "closed", TubeRack, 60, carry_tube),
    Task("SpiceCarousel-v0", "several-objects", "closed", SpiceCarousel, 90, sort_spices),
    Task("StretcherPair-v0", "several-bodies", "closed", StretcherPair, 90, carry_stretcher),
    Task("PortStacks-v0", "discrete", "closed", PortStacks, 60, stack_containers),
)
