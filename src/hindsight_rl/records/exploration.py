"""How episodes explore, as plain data that a job carries: `rollout` plays it, `agents.policy` acts by it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..task_structure.affine import AffineColumns, Posture
from . import Array

Rows = tuple[tuple[float, ...], ...]


def as_rows(matrix: Array) -> Rows:
    """Return a matrix as plain data."""
    return tuple(map(tuple, matrix.tolist()))


@dataclass(frozen=True)
class Probing:
    """How to steer a tool, which the action controls, to an object, which it does not.

    tool: columns of the observation, the position of the tool in the units of the goal.
    objects: positions of the objects, at least one. The tool is steered to one after another, in random order.
    effect: change of the tool's position per unit of action, (action size, axes).
    drift: how each position of the tool changes with an action in the middle of its range, (axes, 2): a factor of the
        position, and a constant.
    posture: numbers on which the effect depends, in deviations from their mean; there may be none.
    by_posture: what each of them adds to the effect, (posture size, action size, axes).
    reach: usual distance between tool and object when the object begins to move.
    largest_reach: as long as that is not known, it may be any between `reach` and this.
    """

    tool: AffineColumns
    objects: tuple[AffineColumns, ...]
    effect: Rows
    drift: Rows
    posture: Posture
    by_posture: tuple[Rows, ...]
    reach: float
    largest_reach: float


@dataclass(frozen=True)
class Exploration:
    """How actions depart from the greedy action.

    random_eps: probability of a uniformly random action.
    noise: standard deviation of Gaussian noise, in half widths of the action range.
    is_random: every action is uniformly random.
    samples: a Gaussian policy samples its action.
    guided_episodes: probability that an episode is guided to the subgoals.
    guided_fraction: probability that a step of a guided episode acts for the first subgoal that is not met.
    exploration_episodes: probability that an episode seeks one of the policy's waypoints after another.
    follows_paths: the policy acts for waypoints on the path to the goal, if it has any; otherwise for the goal itself.
    random_scale: fraction of the action range, around its middle, from which actions are drawn if all are random.
    random_action_repeat: a random action is repeated for 1 to this many steps (by the collector: a policy has no memory).
    probing: the collector acts by this plan, and not by the policy.
    lowest_achieved, highest_achieved: the episode ends once the achieved goal leaves this range; empty: it does not.
    rest_displacement: it ends there only once the achieved goal moves by less in two steps in a row; 0: at once.
    episode_steps: the episode ends after so many steps; None: at the time limit.
    """

    random_eps: float
    noise: float
    is_random: bool = False
    samples: bool = False
    guided_episodes: float = 0.0
    guided_fraction: float = 0.0
    exploration_episodes: float = 0.0
    follows_paths: bool = True
    random_scale: float = 1.0
    random_action_repeat: int = 1
    probing: Probing | None = None
    lowest_achieved: tuple[float, ...] = ()
    highest_achieved: tuple[float, ...] = ()
    rest_displacement: float = 0.0
    episode_steps: int | None = None

    def without_random_actions(self) -> Exploration:
        """Return the exploration of the steps between repeated random actions."""
        return replace(self, random_eps=0.0, is_random=False)

    @property
    def repeat_start_probability(self) -> float:
        """Return the probability to start repeating a random action; a fraction random_eps of all steps is then random."""
        if self.is_random:
            return 1.0
        mean = (1 + self.random_action_repeat) / 2
        return self.random_eps / (mean - self.random_eps * (mean - 1))

    def unguided(self) -> Exploration:
        """Return the exploration of an unguided episode: half the noise, because its success measures the policy."""
        return replace(self.scaled(0.5), guided_fraction=0.0)

    def without_noise(self) -> Exploration:
        """Return the exploration of an episode whose success is that of the policy."""
        return replace(self.scaled(0.0), samples=False, exploration_episodes=0.0)

    def scaled(self, factor: float) -> Exploration:
        """Return the exploration with `random_eps` and `noise` multiplied by a factor."""
        return replace(self, random_eps=self.random_eps * factor, noise=self.noise * factor)


GREEDY = Exploration(random_eps=0.0, noise=0.0)
