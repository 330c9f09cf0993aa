"""How the choices of Discrete actions change places in a symmetry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np

from ..records import Array
from ..task_structure.affine import AffineMap
from ..task_structure.symmetries import Symmetry
from .model import Difference
from .steps import LITTLE, TINY


def match_choices(effect: Array, transformed: Array, others: Array) -> Array:
    """Return for each choice the one of which the transformed effect is its own, (choices,).

    A choice stays if its own effect hardly changes, and all stay if two choices would share one.
    effect, transformed: on the tool, (choices, axes), relative to the largest. others: what choices do besides, (choices,
    columns), which does not change.
    """
    unlike = np.square(effect[:, None] - transformed).sum(-1)
    source = (unlike + np.square(others[:, None] - others).sum(-1)).argmin(1)
    source = np.where(np.diag(unlike) <= LITTLE**2, np.arange(len(effect)), source)
    return source if len(np.unique(source)) == len(source) else np.arange(len(source))


def effect_beside_tool(effect: Array, on_tool: Array) -> Array:
    """Return what each choice does besides moving the tool, as closing a hand: (choices, columns), relative to the largest.

    effect: on columns that actions move, (choices, columns). on_tool: (choices, axes); what it explains is left out.
    """
    relative = effect - effect.mean(0)
    relative = relative / np.maximum(np.abs(relative).max(0), TINY)
    on_tool = on_tool - on_tool.mean(0)
    return np.asarray(relative - on_tool @ np.linalg.lstsq(on_tool, relative, rcond=None)[0])


def exchange_alike(
    symmetry: Symmetry,
    effect: Array,
    change: Callable[[AffineMap], Symmetry],
    growth: Callable[[Symmetry, Symmetry], Difference],
    is_close: Callable[[Symmetry], bool],
) -> Symmetry:
    """Return the symmetry with choices exchanged that move the tool alike, as long as steps are predicted better then.

    The best exchange comes first. A robot turns to the right where it turned to the left; neither moves it.
    effect: on the tool, (choices, axes), relative to the largest. change: returns the symmetry with other actions. growth:
    of the error with the second of two symmetries. is_close: whether a symmetry needs no exchange.
    """
    pairs = [(i, j) for i, j in combinations(range(len(effect)), 2) if np.abs(effect[i] - effect[j]).max() <= LITTLE]
    while pairs and not is_close(symmetry):
        others = [change(_exchanged(symmetry.action, *pair)) for pair in pairs]
        growths = [growth(symmetry, other).mean for other in others]
        best = int(np.argmin(growths))
        if growths[best] >= 0:
            break
        symmetry = others[best]
    return symmetry


def _exchanged(action: AffineMap, one: int, other: int) -> AffineMap:
    source = action.source.copy()
    source[[one, other]] = source[[other, one]]
    return replace(action, source=source)
