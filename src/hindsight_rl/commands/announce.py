"""What `hindsight-rl train` prints about options: those that were chosen from the task, and each change, with reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..options import Settings
from ..report.text import by_reason, format_value
from ..training.events import OptionsChanged


def chosen_lines(settings: Settings) -> Iterator[str]:
    """Yield the options that were chosen from the task. What stays off is left out."""
    options = settings.flat()
    chosen = [(name, why) for name, why in settings.reasons.items() if options.get(name, False) is not False]
    for text, reason in by_reason((f"{name} = {format_value(options[name])}", why) for name, why in chosen):
        yield f"  {text}  ({reason})"


def not_used_lines(sentences: Iterable[str]) -> Iterator[str]:
    """Yield what was found, but contradicts other options. sentences: `Settings.not_used`."""
    yield from (f"  not used: {sentence}" for sentence in sentences)


def change_lines(event: OptionsChanged) -> Iterator[str]:
    """Yield the options that changed, and why the agent was replaced if it was."""
    if event.changes:
        yield f"at {event.env_steps:,} steps options change:"
    changes = [
        (f"{each.option}: {format_value(each.before)} -> {format_value(each.value)}", each.reason) for each in event.changes
    ]
    for text, reason in by_reason(changes):
        yield f"  {text}  ({reason})"
    if event.new_agent:
        yield f"at {event.env_steps:,} steps a new agent takes over, with the stored episodes: {event.new_agent}"
