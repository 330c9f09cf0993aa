"""The zip of a tent, which runs along an arch and is pulled by its tab."""

from __future__ import annotations

import math

import numpy as np

from ..open.base import Array, OwnUnits, clipped
from ..task import Observation, Task

REACH, TAB, SLIP = 4.0, 3.0, 6.0  # cm: of the fingers, length of the tab, distance at which the tab slips away
SPEED, CLOSING = 5.0, 35.0  # cm and percent per step
CLOSED = 30.0  # percent: the fingers hold what is between them if they open less


def on_arch(turn: float, sizes: Array) -> Array:
    """Return the point of the arch at an angle from 0 (right) to pi (left). sizes: middle, half width, height."""
    return np.array([sizes[0] + sizes[1] * math.cos(turn), sizes[2] * math.sin(turn)])


def along_arch(turn: float, sizes: Array) -> Array:
    """Return by how much the point moves per radian."""
    return np.array([-sizes[1] * math.sin(turn), sizes[2] * math.cos(turn)])


class TentZip(OwnUnits):
    """A hand takes the tab of a zip and pulls it along the arch of a tent door. It must follow the bend, or the tab slips.

    The tab hangs below the slider. Fingers that close around it hold it. The slider follows if the hand is
    far enough ahead of it, and it runs harder at the top.
    """

    numbers, near = (14, 2, 3), 3.0
    limits = ((-CLOSING, -SPEED, -SPEED), (CLOSING, SPEED, SPEED))

    def begin(self) -> None:
        """Draw the arch, where the slider is and should be, and where the hand begins."""
        self.sizes = self.place([-20, 25, 40], [20, 40, 70], 3)
        self.turn, turn = self.place(0.15, math.pi - 0.15)
        self.goal = on_arch(turn, self.sizes)
        while np.linalg.norm(self.goal - self.achieved()) < 5 * self.near:
            self.goal = on_arch(self.np_random.uniform(0.15, math.pi - 0.15), self.sizes)
        self.is_holding, self.pull, self.opening = False, 0.0, self.np_random.uniform(0, 100)
        self.wind, self.warmth = self.place([0, 8], [9, 27])
        self.hand = self.tab()
        while not 9 < np.linalg.norm(self.hand - self.tab()) < 22:
            self.hand = self.place([-60, 0], [60, 75])

    def achieved(self) -> Array:
        """Return the position of the slider in cm."""
        return on_arch(self.turn, self.sizes)

    def tab(self) -> Array:
        """Return the position of the end of the tab in cm."""
        return self.hand.copy() if self.is_holding else self.achieved() - np.array([0, TAB])

    def move(self, action: Array) -> None:
        """Close or open the fingers, move the hand, and let the slider follow."""
        before = self.opening
        self.opening = float(np.clip(before + CLOSING * action[0], 0, 100))
        closes = before > CLOSED and np.linalg.norm(self.hand - self.tab()) < REACH
        self.is_holding = bool(self.opening <= CLOSED and (self.is_holding or closes))
        self.hand = np.clip(self.hand + SPEED * action[1:], [-75, -10], [75, 90])
        self.wind = float(np.clip(self.wind + self.np_random.normal(0, 0.5), 0, 12))
        self.pull = 0.0
        if self.is_holding:
            self.follow()

    def follow(self) -> None:
        """Move the slider toward the hand, and lose the tab if the hand is still too far away."""
        ahead = along_arch(self.turn, self.sizes)
        length = float(np.linalg.norm(ahead))
        self.pull = float((self.hand - self.achieved()) @ ahead) / length
        free = 2 + math.sin(self.turn) ** 4
        way = 0.8 * math.copysign(max(0.0, abs(self.pull) - free), self.pull)
        self.turn = float(np.clip(self.turn + way / length, 0.05, math.pi - 0.05))
        self.is_holding = bool(np.linalg.norm(self.hand - self.achieved()) < SLIP)

    def observe(self) -> Array:
        """Return arch (m), warmth, fingers (percent), tab (cm), wind (m/s), hand (cm), holding, pull and slider (cm)."""
        return np.array(
            [
                *(0.01 * self.sizes),
                self.warmth,
                self.opening,
                *self.tab(),
                self.wind,
                *self.hand,
                float(self.is_holding),
                self.pull,
                *self.achieved(),
            ]
        )


def pull_zip(observation: Observation) -> Array:
    """Open the fingers, go to the tab, close them, and stay a little ahead of the slider along the arch."""
    seen, goal = observation["observation"], observation["desired_goal"]
    sizes, opening, tab, hand, slider = 100 * seen[:3], seen[4], seen[5:7], seen[8:10], seen[12:14]
    grip, way = -CLOSING, tab - hand
    if seen[10] > 0:
        now, wanted = (math.atan2(p[1] / sizes[2], (p[0] - sizes[0]) / sizes[1]) for p in (slider, goal))
        length = float(np.linalg.norm(along_arch(now, sizes)))
        left = length * (wanted - now)
        lead = math.copysign(min(7.5, abs(left) + 3), left) if abs(left) > 1 else 0.0
        way = on_arch(now + lead / length, sizes) - hand
    elif opening <= CLOSED or np.linalg.norm(way) > 0.5 * REACH:
        grip = CLOSING
    way = way / max(1.0, float(np.linalg.norm(way)) / SPEED)
    return np.array([grip, *(SPEED * clipped(*(way / SPEED)))], np.float32)


TASKS = (Task("TentZip-v0", "pull", "closed", TentZip, 70, lambda: pull_zip),)
