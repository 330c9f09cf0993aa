"""The success of the policy in training: that of the last unguided episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..records.definitions import wilson_interval

WINDOW = 50  # unguided episodes: fewer do not show that an agent is poor
RECENT = 20  # the last of them: more would be slow to follow an agent that improves


@dataclass
class UnguidedSuccess:
    """The success of the last WINDOW unguided training episodes of an agent.

    Episodes that begin to explore where they get stuck are among them: their success is what the policy reached.
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
