"""Plots of what the steps of a task show: the columns of each part, and what was tested, with intervals and limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..records.findings import Finding
from .figures import LegendEntry, Plot

ACCEPTED = ("is hidden", "are not needed", "holds")  # verdicts, drawn in blue
LIMIT = LegendEntry("limit", "red", "dash")


def finding_plots(findings: Sequence[Finding]) -> list[Plot]:
    """Return a plot for each kind of finding that has columns or figures."""
    plots = [
        _members(
            "roles",
            "Columns of the observation",
            "What each column shows.",
            "column of the observation",
            _of(findings, "group"),
        ),
        _intervals("column", "Columns that may be hidden", "without the column", _of(findings, "column")),
        _contacts(_of(findings, "contact")),
        _intervals("symmetry", "Symmetries", "in transformed steps", _of(findings, "symmetry")),
    ]
    parts = _members("parts", "Parts of the goal", "What moves together.", "dimension of the goal", _of(findings, "part"))
    return [plot for plot in (parts, *plots) if plot.rows]


def _of(findings: Iterable[Finding], kind: str) -> list[Finding]:
    return [finding for finding in findings if finding.kind == kind]


def _members(key: str, title: str, caption: str, x_title: str, findings: Sequence[Finding]) -> Plot:
    plot = Plot(key, title, caption, x_title=x_title)
    for finding in findings:
        name = finding.name.removesuffix(" columns")
        label = f"{name} {finding.verdict}" if finding.kind == "part" else name
        for member in finding.members:
            plot.row(label, member, str(finding), "blue")
    return plot


def _intervals(key: str, title: str, changed: str, findings: Sequence[Finding]) -> Plot:
    """Return the plot of how much the held-out error grows under each hypothesis."""
    caption = "Intervals over episodes: a verdict holds if the whole interval is below the limit."
    plot = Plot(key, title, caption, x_title=f"growth of the held-out error {changed}", scale="fraction")
    plot.legend.append(LegendEntry("hidden" if key == "column" else "used", "blue"))
    plot.legend.append(LegendEntry("shown" if key == "column" else "not used", "orange"))
    tested = [finding for finding in findings if finding.value is not None]
    for finding in tested:
        colour = "blue" if finding.verdict in ACCEPTED else "orange"
        plot.row(finding.name, finding.value, str(finding), colour, finding.low, finding.high)
    if tested and tested[0].limit is not None:
        plot.limit(tested[0].limit, LIMIT)
    return plot


def _contacts(findings: Sequence[Finding]) -> Plot:
    caption = (
        "Median, 10 and 90 % quantiles of the distance at which an object begins to move. Below the dashed line the "
        "subgoal is met."
    )
    plot = Plot("contact", "Contact", caption, x_title="distance, in units of the goal")
    for finding in findings:
        plot.row(f"{finding.name} {finding.verdict}", finding.value, str(finding), "blue", finding.low, finding.high)
    limits = [finding.limit for finding in findings if finding.limit is not None]
    if limits:
        plot.limit(min(limits), LegendEntry("tolerance of the subgoal", "red", "dash"))
    return plot
