"""What a run measures between two records, and the files it writes them to."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..records import Episode
from ..storage import parse_json


@dataclass
class Meter:
    """Means since the last record, under the names they are written with."""

    sums: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, total: float, count: int = 1) -> None:
        """Take in `count` values that add up to `total`."""
        self.sums[name] = self.sums.get(name, 0.0) + total
        self.counts[name] = self.counts.get(name, 0) + count

    def add_episode(self, episode: Episode) -> None:
        """Take in a training episode."""
        self.add("train/return", float(episode.reward.sum()))
        self.add("train/episode_steps", len(episode))
        if episode.success is not None:
            self.add("train/success_rate", float(episode.success))

    def add_updates(self, metrics: Sequence[Mapping[str, torch.Tensor]]) -> None:
        """Take in what the agent's updates returned; reading the numbers waits for the device once."""
        if metrics:
            for name in metrics[0]:
                values = torch.stack([m[name].reshape(()) for m in metrics])
                self.add(f"train/{name}", float(values.double().sum()), len(metrics))

    def means(self) -> dict[str, float]:
        """The means so far."""
        return {name: self.sums[name] / self.counts[name] for name in sorted(self.sums)}

    def state(self) -> dict[str, Any]:
        """Plain data for the checkpoint."""
        return {"sums": dict(self.sums), "counts": dict(self.counts)}

    @classmethod
    def from_state(cls, data: Mapping[str, Any]) -> Meter:
        """The inverse of `state`."""
        return cls(dict(data["sums"]), dict(data["counts"]))


class MetricsFiles:
    """metrics.jsonl, appended line by line, and progress.csv, the same as a table: made anew where a column is new."""

    def __init__(self, folder: Path) -> None:
        self.lines = folder / "metrics.jsonl"
        self.table = folder / "progress.csv"
        self._columns: list[str] = []

    def write(self, record: Mapping[str, float]) -> None:
        """Append one record to both files."""
        append_line(self.lines, json.dumps(record))
        if set(record) <= set(self._columns):
            with self.table.open("a", newline="", encoding="utf-8") as file:
                csv.DictWriter(file, self._columns).writerow(record)
        else:
            self.rebuild()

    def rebuild(self) -> None:
        """Make the table from the lines."""
        lines = self.lines.read_text(encoding="utf-8", errors="replace").splitlines() if self.lines.exists() else []
        records = [parse_json(line, str(self.lines)) for line in lines]
        self._columns = list(dict.fromkeys(name for record in records for name in record))
        with self.table.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self._columns)
            writer.writeheader()
            writer.writerows(records)


def append_line(path: Path, line: str) -> None:
    """Add one line to a text file, in one write."""
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def cut(path: Path, size: int) -> None:
    """Cut a file to `size` bytes: what a run wrote after the checkpoint it goes on from is written again."""
    if path.exists() and path.stat().st_size > size:
        os.truncate(path, size)
