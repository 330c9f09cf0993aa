"""The command line: hindsight COMMAND. Its options are generated from the option records."""

from __future__ import annotations

import io
import itertools
import json
import re
import signal
import sys
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import Any

from . import __version__
from .errors import HindsightError, MissingExtraError, OptionError, UnknownNameError, nearest

DEFAULT_ENVIRONMENT = "FetchReach-v4"
_HELP = f"""hindsight {__version__}: teach agents to reach goals from sparse success signals

usage: hindsight COMMAND [arguments]

  train [ENV]      train a policy ({DEFAULT_ENVIRONMENT} if no environment is named)
  play RUN         show what a policy does
  evaluate RUN     measure a policy on unseen episodes
  report RUN...    draw what a run learnt, or compare several, as a page to look at
  compare RUN...   tell how runs compare: median and range over seeds
  benchmark SUITE  train on every task of a suite with several seeds, and say what it takes
  export RUN       write a policy as ONNX or TorchScript, for a robot without this library
  doctor           tell what is installed, what is missing for which command, and what fixes it
  check ENV        test whether an environment keeps to the goal interface

hindsight COMMAND --help lists the arguments. RUN is a run folder (its best policy) or a policy file.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0, 1 for an error told in a sentence, 2 for wrong usage, 130, 143."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a letter shows a question mark
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_HELP, end="")
        return 0
    if arguments[0] in ("-V", "--version"):
        print(f"hindsight {__version__}")
        return 0
    try:
        if arguments[0] not in COMMANDS:
            close = nearest(arguments[0], COMMANDS)
            raise UnknownNameError(f"there is no command {arguments[0]!r}.{close} The commands are {', '.join(COMMANDS)}")
        return COMMANDS[arguments[0]](arguments[1:])
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except UnknownNameError as problem:
        print(f"hindsight: {problem}", file=sys.stderr)
        return 2
    except (HindsightError, OSError) as problem:
        print(f"hindsight: {problem}", file=sys.stderr)
        return 1


@dataclass(frozen=True)
class TrainArguments:
    """What `train` takes besides the options of a run."""

    agent: str = "td3"  # dqn, qrdqn, ddpg, td3, sac or tqc; which options there are depends on it
    recipe: str = "default"  # a built-in recipe, or a .toml file; chosen by the environment unless given
    folder: Path | None = None  # of the run; a new one under runs/ unless given
    resume: bool = False  # go on with the run in the folder (the newest of this environment, agent and seed); start if none
    tensorboard: bool = False  # write the metrics for TensorBoard too, in the run's folder
    wandb: bool = False  # send the metrics to Weights & Biases too; WANDB_MODE=offline keeps them in the run's folder

    def trackers(self) -> list[str]:
        """The names of those that are asked for."""
        return [name for name in ("tensorboard", "wandb") if getattr(self, name)]


@dataclass(frozen=True)
class PlayArguments:
    """Show what a policy does: each episode's outcome, and the statistics of all."""

    run: str  # a run folder (its best policy) or a policy file
    episodes: int = 10  # how many
    seed: int = 1_000_003  # of the episodes
    env: str | None = (
        None  # where its environment is not registered by itself: its id, with the module, as in mine:Reach-v0
    )
    video: Path | None = None  # write the episodes to this file: .gif, .webp or .mp4


@dataclass(frozen=True)
class EvaluateArguments:
    """Measure a policy: success at the last step, noise off, on seeds that training never used."""

    run: str  # a run folder (its best policy) or a policy file
    episodes: int = 100  # how many
    seed: int = 1_000_003  # of the episodes
    env: str | None = (
        None  # where its environment is not registered by itself: its id, with the module, as in mine:Reach-v0
    )
    workers: int = 0  # processes that play them; the result is the same
    json: bool = False  # print the statistics as JSON


@dataclass(frozen=True)
class ReportArguments:
    """Draw what a run learnt, or compare several, as one page that needs no network."""

    runs: tuple[Path, ...]  # run folders, or folders of them
    output: Path | None = None  # the page; report.html in the run's folder, or comparison.html beside several, unless given
    open: bool = False  # show it in a browser
    standalone: bool = False  # all in one file of 5 MB, in place of a script file beside the page


@dataclass(frozen=True)
class CompareArguments:
    """Tell how runs compare, by environment, variant and agent: what their seeds say, as text and as a page."""

    runs: tuple[Path, ...]  # run folders, or folders of them
    output: Path | None = None  # the page; comparison.html in the folder that all runs share unless given


@dataclass(frozen=True)
class BenchmarkArguments:
    """Train on every task of a suite with every seed, and say what it takes: a table, and a line of CSV for each run."""

    suite: str  # quick, bits, fetch, fetch-apart, maze, panda, parking, hand, all, or a .toml file of your own
    seeds: str = "0-2"  # as in 0-4, 0,2,5 or 3
    folder: Path | None = None  # of the runs; runs/benchmark/SUITE unless given. What is finished there is not run again
    jobs: int = 1  # runs side by side, each a process of its own; times mean most with one
    set: tuple[str, ...] = ()  # options of all runs, as in steps=20000 hidden=[64,64]; written as in a recipe


@dataclass(frozen=True)
class ExportArguments:
    """Write a policy with its normaliser as one file for other programs: from an observation's three arrays to actions."""

    run: str  # a run folder (its best policy) or a policy file
    onnx: Path | None = None  # write it for ONNX Runtime and its like
    torchscript: Path | None = None  # write it for torch.jit.load, in Python or C++


@dataclass(frozen=True)
class DoctorArguments:
    """Tell what is installed, what is missing for which command, and the line that fixes it."""


@dataclass(frozen=True)
class CheckArguments:
    """Test whether an environment keeps to the goal interface, and to what its recipe says of it; say what does not."""

    env: str  # the id of a registered environment
    recipe: str | None = None  # a built-in recipe, or a .toml file; chosen by the environment unless given
    env_options: tuple[str, ...] = ()  # what the environment is made with, as in n_bits=30; the recipe's unless given


def train(arguments: list[str]) -> int:
    """hindsight train [ENV]"""
    from .runs import find_modules_here, folder_of
    from .runs import train as run_to_its_end
    from .trackers import refuse_missing

    environment = _take_environment(arguments)
    find_modules_here(environment)
    own, options = _parse_train(arguments, environment)
    from .her import HER

    refuse_missing(own.trackers())
    with HER(environment, own.agent, own.recipe, **options) as model:
        trainer = model.trainer  # made now, so that whatever is wrong with the options shows before there is a folder
        if model.learners.rank:
            trainer.follow()
            return 0
        path = own.folder or folder_of(model, environment, own.resume)
        return run_to_its_end(model, path, environment, own.resume, own.trackers())


def _take_environment(arguments: list[str]) -> str:
    """Take the environment's id out of the arguments: the first of all, or what looks like one; or else the default."""
    for i, argument in enumerate(arguments):
        if not argument.startswith("-") and (i == 0 or re.search(r"-v\d+$", argument)):
            return arguments.pop(i)
    return DEFAULT_ENVIRONMENT


def _parse_train(arguments: list[str], environment: str) -> tuple[TrainArguments, dict[str, Any]]:
    """The arguments of a run. Environment, agent and recipe decide which options there are, and their defaults."""
    from .recipes import choose_recipe
    from .runs import for_this_task
    from .training.settings import resolve_settings

    name = _peek(arguments, "--recipe")
    recipe = choose_recipe(name, environment)
    recipe, agent = for_this_task(recipe, environment, _peek_all(arguments, "--env-options") or recipe.env_options)
    settings = resolve_settings(recipe, _peek(arguments, "--agent") or agent, {})
    own = TrainArguments(agent=settings.agent, recipe=name or recipe.name)
    groups: list[Any] = [(type(r).__name__, type(r), field(default=r)) for r in (own, *settings.records())]
    kind = make_dataclass("Train", groups, frozen=True)
    kind.__doc__ = f"Train a policy for {environment}, by the recipe {recipe.name!r} unless you say otherwise."
    given = _parse(kind, arguments, "hindsight train [ENV]")
    options = {f.name: getattr(getattr(given, r), f.name) for r, cls, _ in groups[1:] for f in fields(cls)}
    return getattr(given, TrainArguments.__name__), options


def _peek(arguments: Sequence[str], name: str) -> str | None:
    """The value of an option that decides what the other options are; the last one, where it is given again."""
    found = _peek_all(arguments, name)
    return found[0] if found else None


def _peek_all(arguments: Sequence[str], name: str) -> list[str]:
    """All its values; the name may be written with _ too, as tyro takes it."""
    found: list[str] = []
    for i, argument in enumerate(arguments):
        word, is_joined, value = argument.partition("=")
        if word.replace("_", "-") == name:
            rest = itertools.takewhile(lambda value: not value.startswith("--"), arguments[i + 1 :])
            found = [value] if is_joined else list(rest)
    return found


def evaluate(arguments: list[str]) -> int:
    """hindsight evaluate RUN"""
    given = _parse(EvaluateArguments, arguments, "hindsight evaluate")
    from .her import HER
    from .report.run import environment_name
    from .runs import find_modules_here

    find_modules_here(given.env)
    with HER.load(given.run, given.env, workers=given.workers, engine="processes", ray_address=None) as model:
        result = model.evaluate(given.episodes, given.seed)
        name = environment_name(model.spec.env_id, model.settings.rollout.env_options)
        facts = {"environment": name, "agent": model.settings.agent, "seed": given.seed}
    print(json.dumps(facts | result.to_json()) if given.json else f"{facts['environment']}: {result}")
    return 0


def play(arguments: list[str]) -> int:
    """hindsight play RUN"""
    given = _parse(PlayArguments, arguments, "hindsight play")
    from .envs.goal_env import make_goal_env
    from .envs.ids import has_display
    from .her import HER
    from .rollout.video import VideoFile, film
    from .runs import find_modules_here
    from .training.evaluate import Evaluation, outcome_of

    if given.episodes < 1:
        raise OptionError(f"episodes is {given.episodes}, but at least 1 is needed to play")
    find_modules_here(given.env)
    run, results = Path(given.run), []
    with HER.load(run, given.env) as model:
        name = given.env or model.environment_id
        env_arguments = model.settings.rollout.env_arguments
        window = given.video is None and has_display() and "human" in _render_modes(name, env_arguments)
        env = make_goal_env(name, "human" if window else "rgb_array", env_arguments)
        beside = run / "play.gif" if run.is_dir() else run.with_suffix(".gif")
        video = None if window else VideoFile(given.video or beside, env)
        for number in range(given.episodes):
            limit = model.settings.rollout.max_episode_steps
            episode, seed = film(env, model.policy, given.seed, number, limit, video)
            results.append(outcome_of(episode, seed))
            print(f"episode {number}: {results[-1]}")
        env.close()
    print(Evaluation(tuple(results)))
    if video:
        video.close()
        print(f"the video is in {video.path}")
        _show_in_report(run, video.path)
    return 0


def _show_in_report(run: Path, video: Path) -> None:
    """The page of a run shows the video that lies in its folder."""
    from .report.live import LiveReport

    if run.is_dir() and video.resolve().parent == run.resolve() and (page := LiveReport(run).finish()):
        print(f"and in {page}")


def _render_modes(environment: str, env_arguments: Mapping[str, Any]) -> Sequence[str]:
    """How an environment can be shown."""
    from .envs.goal_env import make_goal_env

    env = make_goal_env(environment, env_options=env_arguments)
    env.close()
    return list(env.metadata.get("render_modes") or ())


def report(arguments: list[str]) -> int:
    """hindsight report RUN..."""
    given = _parse(ReportArguments, arguments, "hindsight report")
    from .report.write import write_report

    page = write_report(given.runs, given.output, given.standalone)
    print(f"the report is in {page}")
    if given.open:
        webbrowser.open(page.resolve().as_uri())
    return 0


def compare(arguments: list[str]) -> int:
    """hindsight compare RUN..."""
    given = _parse(CompareArguments, arguments, "hindsight compare")
    from .report.write import write_comparison

    told, page = write_comparison(given.runs, given.output)
    print(f"{told}\nthe curves are in {page}")
    return 0


def benchmark(arguments: list[str]) -> int:
    """hindsight benchmark SUITE"""
    given = _parse(BenchmarkArguments, arguments, "hindsight benchmark")
    from .benchmark import Benchmark, parse_seeds
    from .options import named_values
    from .recipes.suite import load_suite

    if given.jobs < 1:
        raise OptionError(f"jobs is {given.jobs}, but at least 1 is needed")
    suite = load_suite(given.suite)
    folder = given.folder or Path("runs") / "benchmark" / suite.name
    return Benchmark(suite, parse_seeds(given.seeds), folder, named_values("set", given.set)).run(given.jobs)


def export(arguments: list[str]) -> int:
    """hindsight export RUN"""
    given = _parse(ExportArguments, arguments, "hindsight export")
    files = {name: path for name in ("onnx", "torchscript") if (path := getattr(given, name)) is not None}
    if not files:
        raise OptionError("nothing is to be written: name a file, by --onnx FILE or --torchscript FILE or both")
    from .training.checkpoint import SavedModel

    saved = SavedModel.read(Path(given.run))
    try:
        from .export import EXPORTS
    except ModuleNotFoundError as problem:
        raise MissingExtraError(f'exporting needs torch ({problem}): pip install "hindsight-rl[train]"') from None
    for name, path in files.items():
        EXPORTS[name](saved, path)
        print(f"the policy is in {path}")
    return 0


def doctor(arguments: list[str]) -> int:
    """hindsight doctor"""
    _parse(DoctorArguments, arguments, "hindsight doctor")
    from .doctor import examine

    findings = examine()
    print("\n".join(map(str, findings)))
    return 1 if any(finding.level == "missing" for finding in findings) else 0


def check(arguments: list[str]) -> int:
    """hindsight check ENV"""
    given = _parse(CheckArguments, arguments, "hindsight check")
    from .envs.goal_env import check_goal_env
    from .options import named_values
    from .recipes import choose_recipe
    from .runs import find_modules_here

    find_modules_here(given.env)
    recipe = choose_recipe(given.recipe, given.env)
    env_arguments = named_values("env_options", given.env_options or recipe.env_options)
    report = check_goal_env(given.env, env_arguments, recipe.options.get("symmetries", ()))
    print(report)
    return 0 if report.ok else 1


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "train": train,
    "play": play,
    "evaluate": evaluate,
    "report": report,
    "compare": compare,
    "benchmark": benchmark,
    "export": export,
    "doctor": doctor,
    "check": check,
}


def _parse(kind: Any, arguments: list[str], program: str) -> Any:
    try:
        import tyro
    except ImportError:
        raise MissingExtraError('the command line needs tyro and rich: pip install "hindsight-rl[train]"') from None
    return tyro.cli(
        kind, args=arguments, prog=program, config=(tyro.conf.OmitArgPrefixes, tyro.conf.PositionalRequiredArgs)
    )
