"""The model card of a run: task, figures, command and commit, as Markdown."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..errors import OptionError
from ..records import ArraySpec, GoalSpec
from ..report.run import Run, read_run
from ..report.verdict import duration, environment_steps, solved_at_step
from ..storage import save_bytes
from ..training.saved_model import SavedModel
from .arguments import option_words

USE = """```python
from hindsight_rl import HER

policy = HER.load("{run}")
action, _ = policy.predict(observation)  # observation, achieved_goal and desired_goal, as the environment returns them
```"""
PACKAGES = ("hindsight-rl", "python", "torch", "numpy", "gymnasium")
LIMITS = """- The figures are those of one run with one seed, in the environment above, on goals that it draws itself.
- The episodes that measured the success also chose this policy among those of the run. Measure it on others:
  `hindsight-rl evaluate RUN --episodes 200`.
- The policy was not tried with other goals, in other environments, or on a real machine."""


def write_card(run: Path, path: Path) -> None:
    """Write the model card of a run folder. Raises OptionError for a policy file, which has no record of its run."""
    if not run.is_dir():
        raise OptionError(f"A model card needs the folder of a run, got the file {run}. Give the run folder.")
    save_bytes(path, card_text(read_run(run), SavedModel.read(run)).encode())


def card_text(run: Run, saved: SavedModel) -> str:
    """Return the model card of a run with its policy."""
    machine = run.settings.machine.facts()
    versions = ", ".join(f"{name} {machine[name]}" for name in PACKAGES if name in machine)
    made = [("commit", code(machine.get("commit") or "unknown")), ("versions", versions), ("begun", run.settings.begun)]
    sections = {
        "Task": table(task_rows(run, saved.spec)),
        "Figures": table(figure_rows(run, saved)),
        "How it was made": f"```sh\n{train_command(run)}\n```\n\n{table(made)}",
        "Settings that the run chose from its task": table(chosen_rows(run), ("option", "value", "reason")),
        "Warnings of the check": "\n".join(f"- {line}" for line in run.settings.check),
        "How to use it": USE.format(run=run.path.name),
        "Limits": LIMITS,
    }
    learner = f"{saved.settings.agent.upper()} with Hindsight Experience Replay"
    parts = [f"# A policy for {run.environment}", f"The policy reaches goals. It was trained by {learner}."]
    parts += [f"## {title}\n\n{text}" for title, text in sections.items() if text]
    return "\n\n".join(parts) + "\n"


def task_rows(run: Run, spec: GoalSpec) -> Iterator[tuple[str, str]]:
    """Yield what the task is: environment, sizes and length of an episode."""
    yield "environment", code(run.environment)
    for name, part in (("observation", spec.observation), ("goal", spec.goal), ("action", spec.action)):
        yield name, describe(part)
    yield "steps of an episode", f"at most {spec.max_episode_steps}" if spec.max_episode_steps else "no limit"
    yield "reward", f"{spec.reward_low:g} to {spec.reward_high:g}" if math.isfinite(spec.reward_low) else "any number"


def describe(part: ArraySpec) -> str:
    """Return the size and dtype of an array."""
    return f"one of {part.n_values} choices" if part.n_values else f"{part.shape} {part.dtype}"


def figure_rows(run: Run, saved: SavedModel) -> Iterator[tuple[str, str]]:
    """Yield what the policy reaches, and what it took."""
    facts, steps = saved.facts, solved_at_step(run)
    if "success_rate" in facts:
        low, high = facts["interval"]
        interval = f"(95 % interval {low:.1%} to {high:.1%})"
        yield "success", f"{facts['success_rate']:.1%} of {facts['episodes']} episodes without exploration {interval}"
        yield "mean return", f"{facts['return_mean']:.2f}"
    yield "policy of", environment_steps(facts.get("env_steps", 0), run.check_steps)
    limit = f"{run.options.solved_evaluations} evaluations in a row with at least {run.options.solved_at:.0%}"
    yield "solved", f"{'no' if steps is None else f'at {environment_steps(steps, run.check_steps)}'}: {limit}"
    yield "updates", f"{run.last('updates'):,.0f} in the whole run"
    machine = run.settings.machine.facts()
    cores = f"on {machine.get('cores', 'unknown')} cores ({machine.get('processor', 'unknown')})"
    yield "time", f"{duration(run.last('seconds'))} of collecting and updating, {cores}"
    yield "structure of the task", run.settings.variant


def train_command(run: Run) -> str:
    """Return the command line that trains such a policy again."""
    options, explained = run.options.to_dict(), run.settings.explained
    given = {name: options[name] for name, facts in explained.items() if facts.get("source") == "given" and name in options}
    module = given.pop("env_module", None) or options.get("env_module")
    environment = f"{module}:{run.settings.spec.env_id}" if module else str(run.settings.spec.env_id)
    given.pop("seed", None)
    words = ["hindsight-rl", "train", environment, "--agent", run.settings.agent, "--recipe", run.settings.recipe]
    words += ["--seed", str(run.options.seed)]
    words += [word for name, value in given.items() for word in option_words(name, value)]
    return shlex.join(words)


def chosen_rows(run: Run) -> list[tuple[str, str, str]]:
    """Return each option that the run chose from its task, with the reason."""
    options = run.options.to_dict()
    return [(code(name), code(options.get(name)), reason) for name, reason in run.settings.reasons.items()]


def code(value: object) -> str:
    """Return a value as code."""
    return f"`{value}`"


def table(rows: Iterable[Sequence[str]], head: Sequence[str] = ("", "")) -> str:
    """Return a Markdown table, "" without rows."""
    lines = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines]) if lines else ""
