"""Actors that explore by a plan: one seeks contact with objects, three seek what is rarely visited."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..records import Array, ArraySpec
from ..records.exploration import Probing
from ..task_structure.affine import AffineColumns
from ..task_structure.state_planner import StatePlanner
from ..task_structure.tabular_model import TabularModel
from ..task_structure.waypoints import Waypoints

# of the strongest effect of actions in a posture: what moves the tool less there is not used to steer it. Without this
# limit a disc that turns moved its puck in 47 instead of 76 % of the probing episodes, an arm in 94 % with and without it
WEAK = 0.2
NOISE = 0.4  # standard deviation of the exploration noise, in half widths of the action range; how often a choice is random
OFFSET, MET = 0.6, 0.4  # of the reach: standard deviation of the target's offset, and the distance at which it is met
# probability that actions that hardly move the tool are noise until it meets its target. With a third for each of them,
# tongs that must have the angle of a bar moved it in 3 of 20 probing episodes, too few to be found as its tool
AS_NOISE = 0.5
MOST_TRYING = 30  # steps for one target while the reach is not known: it may lie in a table
ANOTHER_OBJECT = 0.2  # probability that another object is sought when a target is met

ANOTHER_POSITION = 0.005  # probability of each step that another position is sought
LARGEST_OFFSET = 3.0  # of a sought position from a waypoint in each dimension, in distances between neighbouring waypoints
STILL = 30  # steps near one waypoint: the sought position is reached, or the path to it is closed
ORDER_EXPONENT = 2.0  # a third of the sought positions is among the first tenth in their order
CUT_OFF = 0.5  # fraction of the sought positions that no known path leads to, if there are such positions

RANDOM_ACTIONS = 0.1  # probability of a random action of an episode that explores by a plan over states
ANY_STATE = 0.5  # probability that any state is sought, if no path to the goal is known, and not the nearest to it


class ProbingActor:
    """Act so that the tool meets the object from random directions: each contact is evidence, and random actions make few.

    The target is the object plus a random offset, which is drawn again when the target is met, and as long as the reach is
    not known also if it is not met for long. Of several objects one is drawn at the start, and sometimes with another
    target. Actions that hardly move the tool are noise, or stay at an end of their range, from one target to the next: to
    close a hand, or to turn a wrist, takes several steps.
    """

    def __init__(self, probing: Probing, action: ArraySpec, rng: np.random.Generator) -> None:
        self._probing, self._rng = probing, rng
        self._drift_factor, self._drift_constant = np.array(probing.drift).T
        self._is_guess = probing.largest_reach > probing.reach
        self._draw_offset()
        self._steering = (SteeringByChoice if action.n_values else SteeringByVector)(probing, action, rng)
        self._object = self._draw_object()

    def _draw_object(self) -> AffineColumns:
        objects = self._probing.objects
        return objects[int(self._rng.integers(len(objects)))] if len(objects) > 1 else objects[0]

    def _draw_offset(self) -> None:
        lowest, highest = self._probing.reach, self._probing.largest_reach
        self._reach = lowest * (highest / lowest) ** self._rng.random() if self._is_guess else lowest
        self._offset = self._rng.normal(size=len(self._probing.tool.columns)) * OFFSET * self._reach
        self._tried = 0

    def __call__(self, observation: Mapping[str, Array]) -> Array:
        """Return the action for one observation."""
        seen = np.asarray(observation["observation"], np.float64).ravel()
        tool = self._probing.tool.of(seen)
        moves_by_itself = self._drift_factor * tool + self._drift_constant
        gap: Array = self._object.of(seen) + self._offset - tool
        self._tried += 1
        if np.linalg.norm(gap) < MET * self._reach or (self._is_guess and self._tried == MOST_TRYING):
            self._draw_offset()
            self._steering.draw()
            if len(self._probing.objects) > 1 and self._rng.random() < ANOTHER_OBJECT:
                self._object = self._draw_object()
        return self._steering(seen, gap - moves_by_itself)


class SteeringByVector:
    """Chooses an action, a vector, that changes the tool's position as wanted, with noise."""

    def __init__(self, probing: Probing, action: ArraySpec, rng: np.random.Generator) -> None:
        self._posture, self._rng, self._dtype = probing.posture, rng, action.dtype
        self._effect, self._by_posture = np.array(probing.effect), np.array(probing.by_posture)
        self._fixed = np.linalg.pinv(self._effect.T)  # where the effect is the same in all postures
        self._low, self._high = action.bounds()
        effects = np.abs([self._effect, *self._by_posture]).max((0, 2))
        self._other = np.flatnonzero(effects < WEAK * effects.max())
        self.draw()

    def draw(self) -> None:
        """Draw an end of its range for each action that hardly moves the tool, or NaN for all: then they are noise."""
        n = len(self._other)
        low, high = self._low.ravel()[self._other], self._high.ravel()[self._other]
        is_noise = not n or self._rng.random() < AS_NOISE
        self._others = np.full(n, np.nan) if is_noise else np.where(self._rng.random(n) < 0.5, low, high)

    def _matrix(self, seen: Array) -> Array:
        """Return the matrix (action size, axes) that makes an action of a wanted change of the tool's position."""
        if not self._posture.columns:
            return self._fixed
        effect = self._effect + np.tensordot(self._posture.of(seen), self._by_posture, 1)
        return np.linalg.pinv(effect.T, rcond=WEAK)

    def __call__(self, seen: Array, wanted: Array) -> Array:
        """Return the action. seen: the observation, (columns,). wanted: the change of the tool's position, (axes,)."""
        width = (self._high - self._low).ravel() / 2
        middle = (self._high + self._low).ravel() / 2
        action: Array = middle + self._matrix(seen) @ wanted + self._rng.normal(size=len(width)) * NOISE * width
        action[self._other] = np.where(np.isnan(self._others), action[self._other], self._others)
        return np.clip(action.reshape(self._low.shape), self._low, self._high).astype(self._dtype)


class SteeringByChoice:
    """Chooses the Discrete action after which the tool is nearest to where it is wanted, and now and then another one.

    That is any, or the same one of those that hardly move the tool until the next draw.
    """

    def __init__(self, probing: Probing, action: ArraySpec, rng: np.random.Generator) -> None:
        self._posture, self._rng = probing.posture, rng
        self._first, self._dtype = int(action.low[0]), np.dtype(action.dtype)
        self._effect, self._by_posture = np.array(probing.effect), np.array(probing.by_posture)
        effects = np.abs([self._effect - np.median(self._effect, 0), *self._by_posture]).max((0, 2))
        self._other = np.flatnonzero(effects < WEAK * effects.max())
        self.draw()

    def draw(self) -> None:
        """Draw the actions that are chosen now and then."""
        is_any = not len(self._other) or self._rng.random() < AS_NOISE
        self._sometimes = np.arange(len(self._effect)) if is_any else self._rng.choice(self._other, 1)

    def __call__(self, seen: Array, wanted: Array) -> Array:
        """Return the action. seen: the observation, (columns,). wanted: the change of the tool's position, (axes,)."""
        effect = self._effect + np.tensordot(self._posture.of(seen), self._by_posture, 1)
        action = int(np.linalg.norm(effect - wanted, axis=1).argmin())
        if self._rng.random() < NOISE:
            action = int(self._rng.choice(self._sometimes))
        return np.asarray(action + self._first).astype(self._dtype)[()]


class ExploringActor:
    """Act for a random position near a waypoint that the known paths lead to, then for another.

    A position may lie where no episode has been, and waypoints that few episodes have visited are sought more often, so
    what is known grows (Ecoffet et al. 2021, Pitis et al. 2020). Waypoints that no known path leads to are sought too, the
    nearest ones more often, so that paths are found that join what is known. An episode that seeks its own goal begins to
    explore where it gets stuck.

    act: chooses an action for an observation whose desired goal is the position.
    explores: whether it explores from the start; it becomes True where the episode gets stuck.
    """

    def __init__(
        self, act: Callable[[Mapping[str, Array]], Array], waypoints: Waypoints, rng: np.random.Generator, explores: bool
    ) -> None:
        self._act, self._waypoints, self._rng, self.explores = act, waypoints, rng, explores
        self._beyond = LARGEST_OFFSET * waypoints.spacing()
        self._sought: Array | None = None
        self._near, self._steps_near = -1, 0

    def __call__(self, observation: Mapping[str, Array]) -> Array:
        """Return the action for one observation."""
        nearest = self._waypoints.nearest(observation["achieved_goal"])
        self._steps_near = self._steps_near + 1 if nearest == self._near else 0
        self._near, is_still = nearest, self._steps_near >= STILL
        if is_still and nearest != self._waypoints.nearest(observation["desired_goal"]):
            self.explores = True
        if not self.explores:
            return self._act(observation)
        if self._sought is None or is_still or self._rng.random() < ANOTHER_POSITION:
            self._sought, self._steps_near = self._draw_position(nearest), 0
        return self._act({**observation, "desired_goal": self._sought})

    def _draw_position(self, start: int) -> Array:
        known, cut_off = self._waypoints.split(start)
        if len(cut_off) and self._rng.random() < CUT_OFF:
            gap = np.square(cut_off[:, None] - known).sum(-1).min(1)
            return self._one_of(cut_off[np.argsort(gap, kind="stable")])
        waypoint = self._one_of(known)
        return np.asarray(waypoint + self._rng.uniform(-self._beyond, self._beyond, len(waypoint)).astype(waypoint.dtype))

    def _one_of(self, positions: Array) -> Array:
        """Return one of these positions, (g,), the first ones more often."""
        return np.asarray(positions[int(self._rng.random() ** ORDER_EXPONENT * len(positions))])


class OptimisticActor:
    """Act by value iteration over the visited states, as if an action that was never tried met the goal.

    So an episode goes where the known paths to its goal are long, and tries there what it does not know. In a state that
    was never visited it acts at random.
    """

    def __init__(self, planner: StatePlanner, discount: float, action: ArraySpec, rng: np.random.Generator) -> None:
        self._planner, self._model, self._discount, self._rng = planner, planner.visited, discount, rng
        self._first_action, self._dtype = int(action.low[0]), np.dtype(action.dtype)

    def __call__(self, observation: Mapping[str, Array]) -> Array:
        """Return the action for one observation."""
        state = self._model.find(self._planner.state_of(observation["observation"], observation["achieved_goal"]))
        if state is None or self._rng.random() < RANDOM_ACTIONS:
            action = self._rng.integers(self._model.n_actions)
        else:
            values = self._model.action_values(observation["desired_goal"], self._discount, is_optimistic=True)[state]
            action = self._rng.choice(np.flatnonzero(values == values.max()))
        return np.asarray(action + self._first_action).astype(self._dtype)[()]


class SeekingActor:
    """Act for the goal along paths that rules predict. If none leads there, act for another state, then at random.

    That state is the nearest to the goal in one half of the cases, which shows whether the path goes on, and any in the
    other half.
    """

    def __init__(self, planner: StatePlanner, discount: float, action: ArraySpec, rng: np.random.Generator) -> None:
        self._planner, self._discount, self._rng = planner, discount, rng
        self._first_action, self._dtype = int(action.low[0]), np.dtype(action.dtype)
        self._reachable: TabularModel | None = None
        self._sought, self._values = np.zeros(0, np.bool_), np.zeros(0)
        self._is_goal = self._has_arrived = False
        self._before = -1  # the number of the last state

    def __call__(self, observation: Mapping[str, Array]) -> Array:
        """Return the action for one observation."""
        if self._has_arrived or self._rng.random() < RANDOM_ACTIONS:
            action = int(self._rng.integers(self._planner.sizes[2]))
        else:
            action = self._planned(observation)
        return np.asarray(action + self._first_action).astype(self._dtype)[()]

    def _planned(self, observation: Mapping[str, Array]) -> int:
        state = self._planner.state_of(observation["observation"], observation["achieved_goal"])
        reachable = self._planner.reachable(state, self._discount)
        if reachable is not self._reachable:
            self._reachable = reachable
            self._seek(reachable, observation["desired_goal"])
        number = reachable.find(state)
        assert number is not None, "the model begins here"
        is_there, before = bool(self._sought[number]), self._before
        self._has_arrived, self._before = is_there and not self._is_goal, number
        if number == before and not is_there:  # the rules expected another state: another action leads away
            return int(self._rng.integers(self._planner.sizes[2]))
        return int(self._values[number].argmax())

    def _seek(self, reachable: TabularModel, goal: Array) -> None:
        self._sought = reachable.meets(goal)
        self._is_goal = bool(self._sought.any())
        if not self._is_goal and self._rng.random() < ANY_STATE:
            self._sought = np.arange(reachable.n_states) == self._rng.integers(reachable.n_states)
        elif not self._is_goal:
            distance = np.abs(reachable.achieved_goals() - np.ravel(goal)).sum(1)
            self._sought = np.arange(reachable.n_states) == self._rng.choice(np.flatnonzero(distance == distance.min()))
        self._values = reachable.values_toward(self._sought, self._discount, is_optimistic=False)
