"""The tables of closed tasks in docs/results.md, from first_runs.csv and proving_ground.csv in benchmarks/results."""

import statistics
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from result_tables import RESULTS, Line, read, summary
from tasks import TASKS
from tasks.task import FAMILIES

NEEDS_STRUCTURE = 80.0  # a task counts if `none` has less success in %
REACHED = 90.0  # success in % that the two counts ask for
HEADER = (
    "| task | family | `none` | first run, unseen | newest run | solved at steps | commit |\n"
    "|---|---|---|---|---|---|---|\n"
)


@dataclass(frozen=True)
class Result:
    """What the runs of one variant reached on a task.

    success: in %, the median of the seeds.
    solved_at: the steps until solved as text, "" if no seed is solved.
    commits: those of the runs, with a comma between them.
    n_seeds: the number of runs.
    n_errors: the number of runs that ended with an error. Their success is 0.
    """

    success: float
    solved_at: str
    commits: str
    n_seeds: int = 1
    n_errors: int = 0


@dataclass(frozen=True)
class ClosedTask:
    """A task that is or was closed. none: success in % without structure, None if that is unknown."""

    name: str
    family: str
    none: float | None
    first: Result
    newest: Result
    is_closed: bool

    @property
    def is_counted(self) -> bool:
        """Whether `none` is below 80 % or was not run."""
        return self.none is None or self.none < NEEDS_STRUCTURE


def closed_text(part: str) -> str:
    """Return a part of the section of closed tasks: "counts", "table" or "others"."""
    closed = [task.name for task in TASKS.values() if task.status == "closed"]
    tasks = closed_tasks(read(RESULTS / "first_runs.csv"), read(RESULTS / "proving_ground.csv"), closed)
    return {"counts": counts_text, "table": table_text, "others": others_text}[part](tasks)


def closed_tasks(first_runs: Sequence[Line], runs: Sequence[Line], closed: Collection[str]) -> list[ClosedTask]:
    """Return the tasks of first_runs.csv by family and name.

    first_runs: the lines of first_runs.csv.
    runs: the lines of proving_ground.csv.
    closed: names of the tasks that are closed today.
    """
    tasks = [closed_task(line, runs, line["task"] in closed) for line in first_runs]
    return sorted(tasks, key=lambda task: (list(FAMILIES).index(task.family), task.name))


def closed_task(line: Line, runs: Sequence[Line], is_closed: bool) -> ClosedTask:
    """Return the task of a line of first_runs.csv. If `none` was run later, it is in proving_ground.csv."""
    first, none = first_result(line), newest_result(line["task"], "none", runs)
    return ClosedTask(
        name=line["task"].removesuffix("-v0"),
        family=line["family"],
        none=float(line["none"]) if line["none"] else none and none.success,
        first=first,
        newest=newest_result(line["task"], "default", runs) or first,
        is_closed=is_closed,
    )


def first_result(line: Line) -> Result:
    """Return the result of a line of first_runs.csv."""
    steps = f"{int(line['solved_at']):,}" if line["solved_at"] else ""
    return Result(float(line["default"]), steps, line["commit"])


def newest_result(task: str, variant: str, runs: Sequence[Line]) -> Result | None:
    """Return the result of a variant under the last label that it has on a task in the file, None if it has none."""
    lines = [line for line in runs if (line["task"], line["variant"]) == (task, variant)]
    lines = [line for line in lines if line["label"] == lines[-1]["label"]]
    if not lines:
        return None
    solved = [float(line["steps_to_solve"]) for line in lines if line["steps_to_solve"]]
    steps = summary(solved) if solved else ""
    return Result(
        success=statistics.median(100 * float(line["success"] or 0) for line in lines),
        solved_at=f"{len(solved)} of {len(lines)}: {steps}" if 0 < len(solved) < len(lines) else steps,
        commits=", ".join(dict.fromkeys(line["commit"] for line in lines)),
        n_seeds=len(lines),
        n_errors=sum(bool(line["error"]) for line in lines),
    )


def counts_text(tasks: Iterable[ClosedTask]) -> str:
    """Return how many tasks that count reached 90 % in their first run, and how many closed ones do in their newest run."""
    counted = [task for task in tasks if task.is_counted]
    today = [task for task in counted if task.is_closed]
    below = [task.name for task in today if task.newest.success < REACHED]
    n_first = sum(task.first.success >= REACHED for task in counted)
    n_unknown = sum(task.none is None for task in counted)
    first, newest = fraction(n_first, len(counted)), fraction(len(today) - len(below), len(today))
    return (
        f"- **First run, unseen**: of the tasks that count, {first} reached {REACHED:g} % in their first run. "
        f"They include those that are open now. `none` was not run on {n_unknown} of the {len(counted)} tasks.\n"
        f"- **Newest run**: of those that are closed today, {newest} reach {REACHED:g} % in their newest run."
        + (f" The others are {', '.join(below)}." if below else "")
    )


def fraction(number: int, total: int) -> str:
    """Return a number of a total with its percentage, as in "3 of 4 (75 %)"."""
    return f"{number} of {total} ({100 * number / total:.0f} %)"


def table_text(tasks: Iterable[ClosedTask]) -> str:
    """Return a row for each task that is closed today and that counts."""
    return HEADER + "\n".join(row_of(task) for task in tasks if task.is_closed and task.is_counted) + "\n"


def row_of(task: ClosedTask) -> str:
    """Return a row of the table."""
    newest = task.newest
    notes = [f"median of {newest.n_seeds} seeds"] if newest.n_seeds > 1 else []
    notes += [f"errors: {newest.n_errors}"] if newest.n_errors else []
    success = percent(newest.success) + (f" ({', '.join(notes)})" if notes else "")
    cells = [task.name, FAMILIES[task.family], "not run" if task.none is None else percent(task.none)]
    cells += [f"{percent(task.first.success)} ({task.first.commits})", success, newest.solved_at or "-", newest.commits]
    return f"| {' | '.join(cells)} |"


def percent(success: float) -> str:
    """Return a success in percent without needless digits."""
    return f"{success:g}"


def others_text(tasks: Iterable[ClosedTask]) -> str:
    """Return the closed tasks that do not count, by family: the newest success, and that of `none` after a slash."""
    names: dict[str, list[str]] = {}
    for task in tasks:
        if task.is_closed and task.none is not None and not task.is_counted:
            text = f"{task.name} {percent(task.newest.success)}/{percent(task.none)}"
            names.setdefault(FAMILIES[task.family], []).append(text)
    return "\n".join(f"- {family}: {', '.join(found)}" for family, found in names.items())
