"""What can go wrong, as a short tree. Every message names the thing, the value got, the value wanted and the fix.

Each error is also the built-in exception that a reader would expect, so `except ValueError` keeps working.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class HindsightError(Exception):
    """Anything this library raises on purpose."""


class InputError(HindsightError, ValueError):
    """A value that was handed in cannot be taken; nothing of it was stored."""


class ShapeError(InputError):
    """An array has another shape than the space it belongs to."""


class NonFiniteError(InputError):
    """An array holds NaN or infinity."""


class CastError(InputError):
    """A value does not survive the conversion to the type in which it would be stored."""


class MissingKeyError(InputError):
    """An observation or an info lacks a key that is needed."""


class EpisodeTooLongError(InputError):
    """An episode has more steps than the timeline can hold."""


class NothingToSampleError(HindsightError, RuntimeError):
    """There is no finished episode yet."""


class OptionError(HindsightError, ValueError):
    """An option has an unknown name, a wrong type or a value out of range."""


class UnknownNameError(OptionError):
    """An environment, an agent, a strategy or an option that does not exist; the message names the nearest."""


class GoalEnvError(HindsightError, ValueError):
    """An environment does not keep to the goal interface, or cannot be made."""


class MissingExtraError(HindsightError, ImportError):
    """A package of an optional part is not installed; the message holds the line that installs it."""


class FileError(HindsightError, ValueError):
    """A file is damaged, foreign, from another version, or does not fit the thing it is loaded into."""


class RunFolderError(HindsightError, OSError):
    """A run folder is in use by another process, already holds a run, or holds none."""


class CollectError(HindsightError, RuntimeError):
    """An episode could not be collected: the environment failed, or the process that it ran in."""


class WorkerError(CollectError):
    """Worker processes died more often than they are replaced."""


class LearnerError(HindsightError, RuntimeError):
    """One of several processes that learn together is lost."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The names in `known` that look most like `name`, as the end of a sentence: " Did you mean 'a' or 'b'?" or ""."""
    known = list(known)
    lowered = {k.lower(): k for k in known}
    close = [lowered[k] for k in difflib.get_close_matches(name.lower(), lowered, n=3, cutoff=0.5)]
    return f" Did you mean {' or '.join(repr(k) for k in close)}?" if close else ""
