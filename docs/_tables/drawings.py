"""Drawings of the timeline as SVG. Probabilities come from the functions of the package."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from hindsight_rl.options import DEFAULT_N_SAMPLED_GOAL
from hindsight_rl.options.replay import STRATEGIES
from hindsight_rl.replay.strategies import goal_rows

EPISODE_STEPS = (4, 7)  # of the two episodes in the drawing, one after the other on the timeline
SAMPLED_ROW = 5 + 2  # the row that is relabelled: the second episode begins at row 5
WIDTH, LEFT, PITCH = 800, 96, 54  # width of the drawing, left margin, distance from row to row
BOX, BAR = 36, 96  # side of a row, height of a bar of probability 1
STYLE = """
text { font-family: system-ui, sans-serif; }
.ink { fill: #1f2328; }
.faint { fill: #59636e; }
.line, .last-row { stroke: #59636e; fill: none; }
.last-row { stroke-dasharray: 3 3; }
.row { fill: #f0f2f5; stroke: #59636e; }
.own { fill: #0a4bff; stroke: none; }
.own-line { stroke: #0a4bff; fill: none; }
.goal { fill: #b8620a; stroke: none; }
.on-colour { fill: #ffffff; }
"""


def step_counts() -> tuple[np.ndarray, np.ndarray]:
    """Return steps_done and steps_left of every row of the drawing."""
    done = np.concatenate([np.arange(steps + 1) for steps in EPISODE_STEPS])
    left = np.concatenate([np.arange(steps, -1, -1) for steps in EPISODE_STEPS])
    return done, left


def goal_probabilities(strategy: str) -> list[Fraction]:
    """Return the probability of every row to give the goal of the sampled row.

    The strategy is evaluated at evenly spaced numbers u. Their count is a multiple of every possible support.
    """
    done, left = step_counts()
    live = np.flatnonzero(left)
    size = int(np.lcm.reduce(np.arange(1, len(done) + 1)))
    u, row = (np.arange(size) + 0.5) / size, np.full(size, SAMPLED_ROW)
    other_row = live[(u * len(live)).astype(np.int64)]
    goals = goal_rows(strategy, row, done[row], left[row], u, other_row)
    return [Fraction(int(n), size) for n in np.bincount(goals, minlength=len(done))]


def draw_strategy(strategy: str) -> str:
    """Return the timeline with a bar over every row that may give the goal, as high as its probability."""
    probabilities = goal_probabilities(strategy)
    base = float(max(probabilities)) * BAR + 26
    parts = _rows(base)
    for row, probability in enumerate(probabilities):
        if probability:
            x, height = LEFT + row * PITCH, float(probability) * BAR
            parts += [
                f'<rect class="goal" x="{x}" y="{base - 4 - height:.1f}" width="{BOX}" height="{height:.1f}" rx="2"/>',
                _text(x + BOX / 2, base - 9 - height, str(probability)),
            ]
    return _svg(base + BOX + 34, parts, f"Probabilities of {strategy} by row: {', '.join(map(str, probabilities))}.")


def draw_timeline() -> str:
    """Return two episodes as rows, and the transition of the sampled row."""
    done, left = step_counts()
    base, first, parts = 34, 0, []
    for steps in EPISODE_STEPS:
        start, stop = LEFT + first * PITCH, LEFT + (first + steps) * PITCH + BOX
        parts += [
            f'<path class="line" d="M{start} {base - 6} v-6 H{stop} v6"/>',
            _text((start + stop) / 2, base - 18, f"an episode of {steps} steps"),
        ]
        first += steps + 1
    parts += _rows(base)
    for name, values, y in (("steps_done", done, base + BOX + 50), ("steps_left", left, base + BOX + 72)):
        parts += [_text(LEFT + row * PITCH + BOX / 2, y, str(n)) for row, n in enumerate(values)]
        parts.append(_text(LEFT - 12, y, name, style="faint", anchor="end"))
    return _svg(base + BOX + 82, parts, "Two episodes on the timeline, with steps_done and steps_left of each row.")


def draw_fractions() -> str:
    """Return a batch, in which k of k + 1 samples are relabelled."""
    k, width = DEFAULT_N_SAMPLED_GOAL, 12 * PITCH + BOX
    relabelled = k / (k + 1) * width
    rest = width - relabelled
    parts = [
        _text(LEFT - 12, 24, "a batch", style="faint", anchor="end"),
        f'<rect class="goal" x="{LEFT}" y="2" width="{relabelled:.0f}" height="34" rx="3"/>',
        f'<rect class="own" x="{LEFT + relabelled + 3:.0f}" y="2" width="{rest - 3:.0f}" height="34" rx="3"/>',
        _text(LEFT + relabelled / 2, 24, f"k/(k+1) = {k}/{k + 1}: relabelled goal", style="on-colour"),
        _text(LEFT + relabelled + rest / 2, 24, f"1/{k + 1}: original", style="on-colour"),
    ]
    return _svg(38, parts, f"{k}/{k + 1} of a batch is relabelled, and 1/{k + 1} keeps its original goal.")


def drawings() -> dict[str, str]:
    """Return the SVG text of every drawing by its name."""
    return {"timeline": draw_timeline(), "fractions": draw_fractions()} | {name: draw_strategy(name) for name in STRATEGIES}


def _rows(y: float) -> list[str]:
    """Return the boxes of the rows with their numbers, last rows dashed, and the sampled transition as an arrow."""
    _, left = step_counts()
    parts = [_text(LEFT - 12, y + BOX / 2 + 5, "row", style="faint", anchor="end")]
    for row in range(len(left)):
        x = LEFT + row * PITCH
        box, ink = ("own", "on-colour") if row == SAMPLED_ROW else ("last-row" if left[row] == 0 else "row", "ink")
        parts += [
            f'<rect class="{box}" x="{x}" y="{y}" width="{BOX}" height="{BOX}" rx="4"/>',
            _text(x + BOX / 2, y + BOX / 2 + 5, str(row), style=ink),
        ]
    start, under = LEFT + SAMPLED_ROW * PITCH + BOX / 2, y + BOX
    stop = start + PITCH
    return [
        *parts,
        f'<path class="own-line" stroke-width="2" d="M{start} {under + 3} v8 H{stop} v-7"/>',
        f'<path class="own" d="M{stop - 5} {under + 8} h10 l-5 -7 z"/>',
        _text((start + stop) / 2, under + 27, "the transition"),
    ]


def _text(x: float, y: float, text: str, style: str = "ink", anchor: str = "middle") -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" font-size="13" text-anchor="{anchor}">{text}</text>'


def _svg(height: float, parts: Sequence[str], title: str) -> str:
    size = f'viewBox="-12 -12 {WIDTH + 24} {height + 24:.0f}" width="{WIDTH + 24}" height="{height + 24:.0f}"'
    paper = f'<rect x="-12" y="-12" width="{WIDTH + 24}" height="{height + 24:.0f}" rx="8" fill="#ffffff"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>{title}</title><style>{STYLE}</style>'
    return "\n".join((head, paper, *parts, "</svg>\n"))
