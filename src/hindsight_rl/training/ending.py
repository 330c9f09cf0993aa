"""How a run ends: with its last files written, after an error too."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import HindsightError

if TYPE_CHECKING:  # they import torch
    from .run_folder import RunFolder
    from .trainer import Trainer


def print_error(text: str) -> None:
    """Print a sentence to stderr."""
    print(f"hindsight-rl: {text}", file=sys.stderr, flush=True)


@contextmanager
def finished(folder: RunFolder, trainer: Trainer, report: Callable[[str], None] = print_error) -> Iterator[None]:
    """Write the last files of a run when the block ends. An error gets a note that says how the run goes on.

    If an environment neither returns nor can be interrupted, the block never ends. The files are written nevertheless.
    report: is called after that, in another thread, with what happened and how the run goes on.
    """
    limit = trainer.source.time_limit
    limit.on_stuck = lambda what: report(f"{what}: the environment does not return. {_finish(folder, trainer)}")
    try:
        yield
    except BaseException as problem:
        problem.add_note(_finish(folder, trainer))
        raise
    finally:
        limit.on_stuck = None
    folder.finish(trainer)


def _finish(folder: RunFolder, trainer: Trainer) -> str:
    """Write the last files, and return how the run goes on. If the disk fails, the text says so."""
    try:
        folder.finish(trainer)
    except (HindsightError, OSError) as problem:
        return str(problem)
    return folder.checkpoints.how_to_go_on()
