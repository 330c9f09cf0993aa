"""The success of unguided training episodes: it shows how good an agent is, and whether planned paths help it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..records import Episode
from ..records.exploration import Exploration
from ..records.statistics import wilson_interval

WINDOW = 50  # unguided episodes: fewer do not show that an agent is poor
SELDOM = 4  # episodes: one of them leaves out paths that are usual, as every guess of a tool takes one of four
RECENT = 20  # the last of these episodes: a rate over more of them would follow an agent that improves too slowly


@dataclass
class UnguidedSuccess:
    """The success of the last WINDOW unguided training episodes of an agent.

    An episode that got stuck and then explored counts too, with the success that the policy had reached before.
    successes: of each episode, oldest first.
    """

    successes: list[bool] = field(default_factory=list)

    def add(self, success: bool) -> None:
        """Add the last episode."""
        self.successes = [*self.successes, success][-WINDOW:]

    def clear(self) -> None:
        """Forget all episodes: they are those of another agent."""
        self.successes = []

    def __str__(self) -> str:
        return f"{sum(self.successes)} of the last {len(self.successes)} unguided episodes succeeded"

    @property
    def rate(self) -> float:
        """The success rate of all of these episodes, 0 without one."""
        return sum(self.successes) / max(1, len(self.successes))

    @property
    def recent_rate(self) -> float:
        """The success rate of the last RECENT episodes. Episodes that are still missing count as failures."""
        return sum(self.successes[-RECENT:]) / RECENT

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the success rate (Wilson 1927); 0 to 1 without an episode."""
        n_episodes = len(self.successes)
        return wilson_interval(sum(self.successes), n_episodes) if n_episodes else (0.0, 1.0)

    @property
    def improves(self) -> bool:
        """Whether the later half of the episodes has more successes than the earlier half."""
        middle = len(self.successes) // 2
        return sum(self.successes[-middle:]) > sum(self.successes[:middle]) if middle else False

    def is_below(self, limit: float) -> bool:
        """Whether WINDOW episodes show that the success rate is below a limit, by their interval, and does not increase."""
        return len(self.successes) == WINDOW and self.interval[1] < limit and not self.improves

    @property
    def has_none(self) -> bool:
        """Whether RECENT episodes or more were played, and all of them failed."""
        return len(self.successes) >= RECENT and not any(self.successes)


def read_successes(data: Sequence[object]) -> UnguidedSuccess:
    """Return the successes of a checkpoint. Raises ValueError if they are malformed."""
    if len(data) > WINDOW or not all(isinstance(success, bool) for success in data):
        raise ValueError(f"expected at most {WINDOW} truth values, got {data}")
    return UnguidedSuccess([success is True for success in data])


@dataclass
class PathTrial:
    """Whether unguided episodes succeed more often if the policy acts for waypoints on the path to the goal.

    on_path: the success of those that do so. straight: of those that do not: every second one, or every fourth if paths are
        usual.
    is_over: whether it is decided. are_usual: whether paths are followed unless they harm, as goals are far away.
    """

    on_path: UnguidedSuccess = field(default_factory=UnguidedSuccess)
    straight: UnguidedSuccess = field(default_factory=UnguidedSuccess)
    is_over: bool = False
    are_usual: bool = False

    def _is_straight(self, episode: int) -> bool:
        return episode % (SELDOM if self.are_usual else 2) == 1

    def exploration(self, exploration: Exploration, episode: int) -> Exploration:
        """Return the exploration of an episode. Those on paths may also seek waypoints for their own sake."""
        if not self._is_straight(episode):
            return exploration
        return replace(exploration, exploration_episodes=0.0, follows_paths=False)

    def add(self, episode: Episode) -> None:
        """Add the last episode."""
        if episode.is_unguided:
            (self.straight if self._is_straight(episode.number) else self.on_path).add(bool(episode.success))

    @property
    def helps(self) -> bool:
        """Whether episodes on paths succeed more often for certain."""
        return self.on_path.interval[0] > self.straight.interval[1]

    @property
    def harms(self) -> bool:
        """Whether episodes on paths succeed less often for certain: 0 is below the 95 % interval of the difference.

        It is that of two Wilson intervals (Newcombe 1998, method 10): one of both has few episodes.
        """
        straight, on_path = self.straight, self.on_path
        below, above = straight.rate - straight.interval[0], on_path.interval[1] - on_path.rate
        return straight.rate - on_path.rate > math.hypot(below, above)

    @property
    def is_followed(self) -> bool:
        """Whether paths are followed for good; usual ones unless other episodes succeed more often, be it by chance."""
        return self.straight.rate <= self.on_path.rate if self.are_usual else self.helps

    @property
    def is_clear(self) -> bool:
        """Whether paths help, or RECENT episodes that follow them do not succeed more often: they cost steps for nothing.

        As long as no other episode succeeds, there is nothing to lose. Where paths are usual, RECENT episodes without them
        decide, unless it is certain before: either choice may be wrong, and both cost the same.
        """
        if self.are_usual:
            return self.helps or self.harms or len(self.straight.successes) >= RECENT
        on_path, straight = self.on_path, self.straight
        are_enough = min(len(on_path.successes), len(straight.successes)) >= RECENT
        return self.helps or self.harms or (are_enough and 0 < straight.rate >= on_path.rate)

    def __str__(self) -> str:
        on_path, straight = (f"{sum(each.successes)} of {len(each.successes)}" for each in (self.on_path, self.straight))
        return f"{on_path} episodes succeeded for which paths were planned, and {straight} others"
