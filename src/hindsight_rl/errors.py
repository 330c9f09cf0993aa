"""Exceptions of the library, and how to install what is missing. A message says what was expected and given, and the fix.

Every error is also the built-in exception that a reader would expect, so `except ValueError` works.
"""

from __future__ import annotations

import difflib
import json
import shlex
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlparse

DISTRIBUTION = "hindsight-rl"
OF_TRAIN = frozenset({"torch", "rich", "PIL", "jinja2", "plotly", "matplotlib"})  # modules that this extra installs
ONLY_REPORT = frozenset({"report", "compare"})  # commands for which the smaller extra `report` is enough
LONGEST_MESSAGE = 4_000  # characters
LONGEST_TYPED_NAME = 200  # characters of a name whose nearest names are looked for; a file of somebody else may have any


class HindsightError(Exception):
    """Base class of every error that this library raises on purpose."""


class InputError(HindsightError, ValueError):
    """An argument is invalid; nothing of it was stored."""


class ShapeError(InputError):
    """An array has another shape than its space."""


class NonFiniteError(InputError):
    """An array holds NaN or infinity."""


class CastError(InputError):
    """A value changes when it is converted to the dtype of its storage."""


class MissingKeyError(InputError):
    """An observation or an info lacks a required key."""


class EpisodeTooLongError(InputError):
    """An episode has more steps than the buffer can hold."""


class NothingToSampleError(HindsightError, RuntimeError):
    """The buffer holds no finished episode yet."""


class OptionError(HindsightError, ValueError):
    """An option has a wrong type or a value out of range."""


class UnknownNameError(OptionError):
    """There is no environment, agent, strategy or option of this name; the message suggests the nearest names."""


class GoalEnvError(HindsightError, ValueError):
    """An environment breaks the goal interface or cannot be made."""


class MissingExtraError(HindsightError, ImportError):
    """An optional package is not installed; the message gives the command that installs it."""


class FileError(HindsightError, ValueError):
    """A file is damaged, was written by other software or another version, or does not fit where it is loaded.

    A long message is cut: text of the file may be in it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]} ...")


class RunFolderError(HindsightError, OSError):
    """A run folder is used by another process, already holds a run, or holds none."""


class InUseError(HindsightError, RuntimeError):
    """Another thread is using an object that serves one thread at a time."""


class CollectError(HindsightError, RuntimeError):
    """An episode could not be collected: the environment or its process failed."""


class WorkerError(CollectError):
    """Worker processes failed more often than they are restarted."""


class JobLostError(WorkerError):
    """A job ended its worker, took longer than `job_timeout`, or had a damaged result, at every attempt."""


def line_of_user(problem: BaseException) -> traceback.FrameSummary | None:
    """Return the last line outside Python, its packages and this library that led to an error; None if there is none."""
    paths = sysconfig.get_paths()
    libraries = (paths["stdlib"], paths["purelib"], paths["platlib"], str(Path(__file__).parent), "<frozen")
    frames = traceback.extract_tb(problem.__traceback__)
    return next((frame for frame in reversed(frames) if not frame.filename.startswith(libraries)), None)


def origin(problem: BaseException) -> str:
    """Return where the error behind an error was raised, such as the line of an environment; "" if its message says it."""
    cause = problem.__cause__
    if cause is None or cause.__traceback__ is None:
        return ""
    last = line_of_user(cause)
    if last is None and isinstance(cause, ImportError | SyntaxError):
        return ""  # only the lines of Python's own import
    last = last or traceback.extract_tb(cause.__traceback__)[-1]
    if f"{last.filename}:{last.lineno}" in str(problem):
        return ""
    return f"\n  {type(cause).__name__} in {last.name}, {last.filename}:{last.lineno}: {last.line}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the most similar names as the end of a sentence: " Did you mean 'a' or 'b'?", or "" if none is similar."""
    if len(name) > LONGEST_TYPED_NAME:
        return ""
    lowered = {k.lower(): k for k in known}
    close = [lowered[k] for k in difflib.get_close_matches(name.lower(), lowered, n=3, cutoff=0.5)]
    return f" Did you mean {' or '.join(repr(k) for k in close)}?" if close else ""


def install_line(extra: str) -> str:
    """Return the command that installs an extra ("": the package alone).

    It installs from the checkout or wheel that was installed, or else from the index.
    """
    try:
        url = json.loads(metadata.distribution(DISTRIBUTION).read_text("direct_url.json") or "{}").get("url", "")
    except metadata.PackageNotFoundError:
        url = ""
    source = Path(unquote(urlparse(url).path)) if url.startswith("file:") else None
    constraints = source / "constraints.txt" if source else None
    options = f"-c {shlex.quote(str(constraints))} " if constraints and constraints.exists() else ""
    return f'pip install {options}"{source or DISTRIBUTION}{f"[{extra}]" if extra else ""}"'


@contextmanager
def needs_extra(extra: str, sentence: str) -> Iterator[None]:
    """Raise MissingExtraError if an import within it fails.

    sentence: says what is needed; the command that installs the extra follows.
    """
    try:
        yield
    except ImportError as problem:
        raise MissingExtraError(f"{sentence}: {install_line(extra)}") from problem


def missing_extra(command: str, problem: ModuleNotFoundError) -> MissingExtraError:
    """Return the error that names the extra that a command needs. Raises `problem` again if no extra has the module."""
    package = (problem.name or "").partition(".")[0]
    if package not in OF_TRAIN:
        raise problem
    line = install_line("report" if command in ONLY_REPORT else "train")
    return MissingExtraError(f"`{command}` needs {package}, which is not installed: {line}")
