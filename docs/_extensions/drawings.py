"""Drawings of the timeline, as SVG in the colours of the page. What they show is asked of the package, not typed."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from hindsight.options.relabel import DEFAULT_N_SAMPLED_GOAL, STRATEGIES
from hindsight.replay.goals import goal_rows, relabelled_share

STEPS = (4, 7)  # of the two episodes that are drawn, one after the other on the timeline
CHOSEN = 5 + 2  # the row that is relabelled: the second episode begins at row 5
WIDTH, LEFT, PITCH = 800, 96, 54  # of the whole, before the first row, from row to row
BOX, BAR = 36, 96  # the side of a row, the height of a probability of 1


def counts() -> tuple[np.ndarray, np.ndarray]:
    """steps_done and steps_left of every row that is drawn."""
    done = np.concatenate([np.arange(steps + 1) for steps in STEPS])
    left = np.concatenate([np.arange(steps, -1, -1) for steps in STEPS])
    return done, left


def law(strategy: str) -> list[Fraction]:
    """The probability of every row to give the goal of the chosen one, by asking the package for all numbers alike."""
    done, left = counts()
    live = np.flatnonzero(left)
    size = int(np.lcm.reduce(np.arange(1, len(done) + 1)))  # a number that all supports divide
    u, row = (np.arange(size) + 0.5) / size, np.full(size, CHOSEN)
    other = live[(u * len(live)).astype(np.int64)]
    chosen = goal_rows(strategy, row, done[row], left[row], u, other)
    return [Fraction(int(n), size) for n in np.bincount(chosen, minlength=len(done))]


def draw_law(strategy: str) -> str:
    """The timeline with a bar over every row that may give the goal, as high as it is probable."""
    shares = law(strategy)
    base = float(max(shares)) * BAR + 26
    parts = _rows(base)
    for row, share in enumerate(shares):
        if share:
            x, tall = LEFT + row * PITCH, float(share) * BAR
            parts += [
                f'<rect class="goal" x="{x}" y="{base - 4 - tall:.1f}" width="{BOX}" height="{tall:.1f}" rx="2"/>',
                _text(x + BOX / 2, base - 9 - tall, str(share), "ink", 13),
            ]
    return _svg(base + BOX + 34, parts, f"The law of {strategy}: probabilities {', '.join(map(str, shares))} by row.")


def draw_timeline() -> str:
    """Two episodes as rows, and the transition of the chosen row."""
    done, left = counts()
    base, first, parts = 34, 0, []
    for steps in STEPS:
        start, stop = LEFT + first * PITCH, LEFT + (first + steps) * PITCH + BOX
        parts += [
            f'<path class="line" d="M{start} {base - 6} v-6 H{stop} v6"/>',
            _text((start + stop) / 2, base - 18, f"an episode of {steps} steps", "ink", 13),
        ]
        first += steps + 1
    parts += _rows(base)
    for name, values, y in (("steps_done", done, base + BOX + 50), ("steps_left", left, base + BOX + 72)):
        parts += [_text(LEFT + row * PITCH + BOX / 2, y, str(n), "ink", 13) for row, n in enumerate(values)]
        parts.append(_text(LEFT - 12, y, name, "faint", 13, "end"))
    return _svg(base + BOX + 82, parts, "Two episodes on the timeline, with steps_done and steps_left of each row.")


def draw_share() -> str:
    """A batch, of which k in k + 1 samples are relabelled."""
    k, width = DEFAULT_N_SAMPLED_GOAL, 12 * PITCH + BOX
    told = relabelled_share("future", None) * width
    parts = [
        _text(LEFT - 12, 24, "a batch", "faint", 13, "end"),
        f'<rect class="goal" x="{LEFT}" y="2" width="{told:.0f}" height="34" rx="3"/>',
        f'<rect class="own" x="{LEFT + told + 3:.0f}" y="2" width="{width - told - 3:.0f}" height="34" rx="3"/>',
        _text(LEFT + told / 2, 24, f"k/(k+1) = {k}/{k + 1}: goals put in hindsight", "on-colour", 14),
        _text(LEFT + told + (width - told) / 2, 24, f"1/{k + 1}: as asked", "on-colour", 14),
    ]
    return _svg(38, parts, f"Of a batch {k}/{k + 1} is relabelled and 1/{k + 1} keeps the goal that was asked.")


class Drawing(SphinxDirective):
    """```{drawing} NAME, with a caption: timeline, share, or the law of a strategy by its name."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """The drawing as it is, in a figure."""
        name = self.arguments[0]
        drawings = {"timeline": draw_timeline, "share": draw_share}
        drawn = draw_law(name) if name in STRATEGIES else drawings[name]()
        before = nodes.raw("", f'<figure class="drawing">{drawn}<figcaption>', format="html")
        caption = self.parse_content_to_nodes()
        return [before, *caption, nodes.raw("", "</figcaption></figure>", format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.add_directive("drawing", Drawing)
    return {"parallel_read_safe": True}


def _rows(y: float) -> list[str]:
    """The boxes of the rows, fence posts dashed, the chosen transition as an arrow, and the numbers beneath."""
    done, left = counts()
    parts = [_text(LEFT - 12, y + BOX / 2 + 5, "row", "faint", 13, "end")]
    for row in range(len(done)):
        x = LEFT + row * PITCH
        kind, ink = ("own", "on-colour") if row == CHOSEN else ("fence" if left[row] == 0 else "row", "ink")
        parts += [
            f'<rect class="{kind}" x="{x}" y="{y}" width="{BOX}" height="{BOX}" rx="4"/>',
            _text(x + BOX / 2, y + BOX / 2 + 5, str(row), ink, 14),
        ]
    start, stop, under = LEFT + CHOSEN * PITCH + BOX / 2, LEFT + (CHOSEN + 1) * PITCH + BOX / 2, y + BOX
    parts += [
        f'<path class="own-line" stroke-width="2" d="M{start} {under + 3} v8 H{stop} v-7"/>',
        f'<path class="own" d="M{stop - 5} {under + 8} h10 l-5 -7 z"/>',
        _text((start + stop) / 2, under + 27, "the transition", "ink", 13),
    ]
    return parts


def _text(x: float, y: float, text: str, kind: str, size: int, anchor: str = "middle") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{text}</text>'


def _svg(height: float, parts: Sequence[str], title: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img"><title>{title}</title>{"".join(parts)}</svg>'
