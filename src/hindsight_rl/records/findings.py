"""What the steps of a task show, as plain data: the run folder holds it, and the report draws it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FindingKind = Literal["part", "group", "column", "contact", "symmetry"]


@dataclass(frozen=True)
class Finding:
    """A part, role, verdict or contact that the steps of a task show.

    kind: "part" of the goal, "group" of columns with one role, "column" that was tested, "contact" or "symmetry".
    name: as "column 10". verdict: in a few words, as "hidden". reason: with its figures.
    members: dimensions of the goal of a part, or columns of the observation of a group.
    value: the figure that decides, low and high: its interval; None without one. limit: the largest value that is accepted.
    """

    kind: FindingKind
    name: str
    verdict: str
    reason: str
    members: tuple[int, ...] = ()
    value: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None

    def __str__(self) -> str:
        """Return it as one sentence."""
        return " ".join(filter(None, (self.name, self.verdict))) + (f": {self.reason}" if self.reason else "")
