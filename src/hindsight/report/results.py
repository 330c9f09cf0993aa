"""What the runs of a benchmark came to: results.csv, one line per run, and results.md, the table of all."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .comparison import markdown
from .run import Run
from .verdict import solved_at
from .write import replace_text


def record_of(run: Run) -> dict[str, Any]:
    """A run as a line of results.csv; docs/files.md says what the columns are. "" stands for what there is not."""
    at, machine = solved_at(run), run.settings.get("machine", {})
    versions = machine.get("versions", {})
    rates = run.column("test/success_rate")
    return {
        "environment": run.environment,
        "variant": run.variant,
        "agent": run.agent,
        "recipe": run.settings.get("recipe", ""),
        "seed": run.seed,
        "solved": at is not None,
        "steps_to_solve": "" if at is None else int(at),
        "updates_to_solve": "" if at is None else round(run.at(at, "updates")),
        "seconds_to_solve": "" if at is None else round(run.at(at, "seconds"), 3),
        "final_success": _number(run.last("test/success_rate")),
        "best_success": _number(float(np.nanmax(rates)) if np.isfinite(rates).any() else math.nan),
        "eval_episodes": _number(run.last("test/episodes")),
        "env_steps": _number(run.last("env_steps")),
        "updates": _number(run.last("updates")),
        "seconds": _number(run.last("seconds")),
        "version": versions.get("hindsight-rl", ""),
        "commit": machine.get("commit", ""),
        "python": machine.get("python", ""),
        "torch": versions.get("torch", ""),
        "numpy": versions.get("numpy", ""),
        "processor": machine.get("processor", ""),
        "cores": machine.get("cores", ""),
        "time": run.settings.get("begun", ""),
        "folder": str(run.path),
    }


def write_results(name: str, runs: Sequence[Run], folder: Path, failures: Sequence[str]) -> None:
    """Write results.csv and results.md into `folder`. name: of the suite. failures: a line each."""
    write_table(
        folder / "results.csv", [record_of(run) | {"folder": run.path.relative_to(folder).as_posix()} for run in runs]
    )
    failed = "\n".join(f"- {line}" for line in failures)
    parts = [f"# {name}", markdown(runs) if runs else "", f"These runs failed:\n\n{failed}" if failures else ""]
    replace_text(folder / "results.md", "\n\n".join(part for part in parts if part) + "\n")


def write_table(place: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Write a CSV file in one piece, with the columns of the first line; an empty one where there are no lines."""
    file = io.StringIO(newline="")
    if lines:
        writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    replace_text(place, file.getvalue())


def _number(value: float) -> int | float | str:
    """As short as it can be told; "" for NaN."""
    if math.isnan(value):
        return ""
    return int(value) if value.is_integer() else round(value, 6)
