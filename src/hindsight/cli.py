"""The command line: hindsight COMMAND. Each command imports what it needs when it runs."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import traceback
import webbrowser
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from . import __version__
from .errors import HindsightError, MissingExtraError, OptionError, UnknownNameError, nearest

UNSEEN_SEED = 1_000_003  # of `play` and `evaluate`: training never uses it
BROKEN_PIPE = 128 + 13  # exit status where the reader of the output went away
_RUN_HELP = "a run folder (its best policy) or a policy file"
_ENV_HELP = "id of the environment, with its module as in mine:Reach-v0 (the run's own)"
_TRUST_HELP = "import the module that registers the run's environment: it is code"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status: 0, 1 for an error, 2 for wrong usage, 130, 141 or 143 for a signal."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a letter shows a question mark
    try:
        status = _run(words)
        sys.stdout.flush()
        return status
    except SystemExit as end:
        return int(end.code or 0)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python writes what is left when it ends
        return BROKEN_PIPE
    except (HindsightError, OSError) as problem:
        print(f"hindsight: {problem}{_origin(problem)}", file=sys.stderr)
        return 2 if isinstance(problem, UnknownNameError) else 1


def _origin(problem: BaseException) -> str:
    """Return where the error behind an error was raised, such as the line of an environment, or ""."""
    cause = problem.__cause__
    if cause is None or cause.__traceback__ is None:
        return ""
    last = traceback.extract_tb(cause.__traceback__)[-1]
    return f"\n  {type(cause).__name__} in {last.name}, {last.filename}:{last.lineno}: {last.line}"


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0
    if words[0] in ("-V", "--version"):
        print(f"hindsight {__version__}")
        return 0
    name, *rest = words
    if name not in COMMANDS:
        raise UnknownNameError(
            f"There is no command {name!r}.{nearest(name, COMMANDS)} The commands: {', '.join(COMMANDS)}."
        )
    arguments = _parse(command_parser(name), rest)
    if name == "train" and (arguments.help or arguments.help_all):
        from .commands.arguments import train_help

        print(train_help(arguments), end="")
        return 0
    return COMMANDS[name].run(arguments)


class Parser(ArgumentParser):
    """An argument parser that names the page with the arguments in its errors."""

    def error(self, message: str) -> NoReturn:
        """Print the error and end with status 2."""
        self.exit(2, f"{self.prog}: {message}\n{self.prog} --help lists the arguments.\n")


def command_parser(name: str) -> ArgumentParser:
    """Return the parser of a command."""
    command = COMMANDS[name]
    parser = Parser(f"hindsight {name}", description=command.summary, argument_default=SUPPRESS, add_help=name != "train")
    parser.allow_abbrev = False
    command.add_arguments(parser)
    return parser


def command_parsers() -> dict[str, ArgumentParser]:
    """Return the parser of every command by its name, for the documents."""
    return {name: command_parser(name) for name in COMMANDS}


def _parse(parser: ArgumentParser, words: Sequence[str]) -> Namespace:
    """Return the arguments. Raises UnknownNameError for one that does not exist, with the right name where it is known."""
    arguments, extra = parser.parse_known_args([_with_dashes(word) for word in words])
    unknown = [word.partition("=")[0] for word in extra if word.startswith("-")]
    if unknown:
        from .options.messages import unknown_option

        known = [word[2:].replace("-", "_") for action in parser._actions for word in action.option_strings]
        names = [word.strip("-").replace("-", "_") for word in unknown]
        raise UnknownNameError("\n  ".join(unknown_option(name, known, parser.prog) for name in names))
    if extra:
        parser.error(f"{extra[0]!r} was not expected.")
    return arguments


def _with_dashes(word: str) -> str:
    """Return --eval-every for --eval_every, as in Python."""
    name, equals, value = word.partition("=")
    return f"{name.replace('_', '-')}{equals}{value}" if word.startswith("--") else word


def _overview() -> str:
    commands = "\n".join(f"  {f'{name} {command.usage}':18} {command.summary}" for name, command in COMMANDS.items())
    return (
        f"hindsight {__version__}: train agents to reach goals from sparse rewards, with Hindsight Experience Replay\n\n"
        f"usage: hindsight COMMAND [arguments]\n\n{commands}\n\n"
        f"RUN is a run folder (its best policy) or a policy file. hindsight COMMAND --help lists the arguments."
    )


def add_train(parser: ArgumentParser) -> None:
    """Add the arguments of `train`."""
    from .commands.arguments import add_train_arguments

    add_train_arguments(parser)


def train(arguments: Namespace) -> int:
    """Train a policy."""
    from .commands.arguments import given_options, take_environment
    from .commands.policies import find_modules_here
    from .commands.train import Training
    from .her import HER
    from .recipes.files import save_recipe
    from .trackers import refuse_missing

    environment, given = take_environment(arguments), given_options(arguments)
    trackers = [name for name in ("tensorboard", "wandb") if getattr(arguments, name)]
    refuse_missing(trackers)
    find_modules_here(environment)
    with HER(environment, arguments.agent, arguments.recipe, check=not arguments.no_check, **given) as model:
        if arguments.save_recipe:
            save_recipe(model.settings, arguments.save_recipe)
        return Training(model, environment, arguments.folder, arguments.resume, trackers).run()


def _add_policy(parser: ArgumentParser, episodes: int) -> None:
    """Add the arguments of commands that play the episodes of a policy. episodes: the default."""
    parser.add_argument("run", metavar="RUN", help=_RUN_HELP)
    parser.add_argument("--episodes", type=int, default=episodes, metavar="N", help=f"number of episodes ({episodes})")
    parser.add_argument("--seed", type=int, default=UNSEEN_SEED, metavar="N", help=f"seed of the episodes ({UNSEEN_SEED})")
    parser.add_argument("--env", default=None, metavar="ENV", help=_ENV_HELP)
    parser.add_argument("--trust-module", action="store_true", default=False, help=_TRUST_HELP)


def add_play(parser: ArgumentParser) -> None:
    """Add the arguments of `play`."""
    _add_policy(parser, episodes=10)
    parser.add_argument("--video", type=Path, default=None, metavar="FILE", help="write a .gif, .webp or .mp4")


def play(arguments: Namespace) -> int:
    """Show what a policy does."""
    from .commands.policies import environment_of
    from .commands.policies import play as show

    _at_least_one("episodes", arguments.episodes)
    run = Path(arguments.run)
    env = environment_of(run, arguments.env, arguments.trust_module)
    show(run, env, episodes=arguments.episodes, seed=arguments.seed, video_path=arguments.video)
    return 0


def add_evaluate(parser: ArgumentParser) -> None:
    """Add the arguments of `evaluate`."""
    _add_policy(parser, episodes=100)
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="processes; the result is the same (0)")
    parser.add_argument("--json", action="store_true", default=False, help="print the statistics as JSON")


def evaluate(arguments: Namespace) -> int:
    """Measure a policy."""
    from .commands.policies import environment_of, evaluate_run

    _at_least_one("episodes", arguments.episodes)
    run = Path(arguments.run)
    env = environment_of(run, arguments.env, arguments.trust_module)
    facts, result = evaluate_run(run, env, episodes=arguments.episodes, seed=arguments.seed, workers=arguments.workers)
    print(json.dumps(facts | result.to_json()) if arguments.json else f"{facts['environment']}: {result}")
    return 0


def add_report(parser: ArgumentParser) -> None:
    """Add the arguments of `report`."""
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders, or folders of them")
    parser.add_argument(
        "--output", type=Path, default=None, metavar="FILE", help="the page (report.html in the run's folder)"
    )
    parser.add_argument("--open", action="store_true", default=False, help="show it in a browser")
    parser.add_argument(
        "--standalone", action="store_true", default=False, help="one file of 5 MB, without a script beside it"
    )


def report(arguments: Namespace) -> int:
    """Draw runs as a page."""
    from .report.write import write_report

    page = write_report(arguments.runs, arguments.output, arguments.standalone)
    print(f"report: {page}")
    if arguments.open:
        webbrowser.open(page.resolve().as_uri())
    return 0


def add_compare(parser: ArgumentParser) -> None:
    """Add the arguments of `compare`."""
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders, or folders of them")
    parser.add_argument(
        "--output", type=Path, default=None, metavar="FILE", help="the page (comparison.html beside the runs)"
    )


def compare(arguments: Namespace) -> int:
    """Compare runs over their seeds."""
    from .report.write import write_comparison

    text, page = write_comparison(arguments.runs, arguments.output)
    print(f"{text}\ncurves: {page}")
    return 0


def add_benchmark(parser: ArgumentParser) -> None:
    """Add the arguments of `benchmark`."""
    suites = "quick, bits, fetch, fetch-apart, maze, panda, parking, hand, all"
    parser.add_argument("suite", metavar="SUITE", help=f"{suites}, or a .toml file of your own")
    parser.add_argument("--seeds", default="0-2", metavar="SEEDS", help="as in 0-4, 0,2,5 or 3 (0-2)")
    parser.add_argument(
        "--folder", type=Path, default=None, metavar="DIR", help="finished runs there are kept (runs/benchmark/)"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at the same time, each in a process (1)")
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="NAME=VALUE", help="options of all runs, as in hidden=[64,64]"
    )


def benchmark(arguments: Namespace) -> int:
    """Train on every task of a suite with several seeds."""
    from .commands.benchmark import Benchmark, parse_seeds
    from .options import named_values
    from .recipes.suite import load_suite

    _at_least_one("jobs", arguments.jobs)
    suite = load_suite(arguments.suite)
    folder = arguments.folder or Path("runs") / "benchmark" / suite.name
    return Benchmark(suite, parse_seeds(arguments.seeds), folder, named_values("set", arguments.set)).run(arguments.jobs)


def add_export(parser: ArgumentParser) -> None:
    """Add the arguments of `export`."""
    parser.add_argument("run", metavar="RUN", help=_RUN_HELP)
    parser.add_argument("--onnx", type=Path, default=None, metavar="FILE", help="write it for ONNX Runtime")
    parser.add_argument("--torchscript", type=Path, default=None, metavar="FILE", help="write it for torch.jit.load")


def export(arguments: Namespace) -> int:
    """Write a policy for other programs."""
    files = {name: path for name in ("onnx", "torchscript") if (path := getattr(arguments, name)) is not None}
    if not files:
        raise OptionError("No file is named. Give --onnx FILE, --torchscript FILE or both.")
    from rich.console import Console

    from .training.saved_model import SavedModel

    saved = SavedModel.read(Path(arguments.run))
    try:
        from .commands.export import EXPORTS
    except ModuleNotFoundError as problem:
        raise MissingExtraError(f'Exporting needs torch ({problem}): pip install "hindsight-rl[train]"') from None
    for name, path in files.items():
        with Console(stderr=True).status(f"writing {path}"):
            EXPORTS[name](saved, path)
        print(f"policy: {path}")
    return 0


def doctor(arguments: Namespace) -> int:
    """Check the installation."""
    from .commands.doctor import examine

    findings = examine()
    print("\n".join(map(str, findings)))
    return 1 if any(finding.level == "missing" for finding in findings) else 0


def add_check(parser: ArgumentParser) -> None:
    """Add the arguments of `check`."""
    parser.add_argument("env", metavar="ENV", help="id of a registered environment")
    parser.add_argument(
        "--recipe", default=None, metavar="NAME", help="a built-in recipe or a .toml file (by the environment)"
    )
    parser.add_argument(
        "--env-options", nargs="+", metavar="NAME=VALUE", help="arguments of the environment, as in n_bits=30"
    )
    parser.add_argument("--info-keys", nargs="+", default=(), metavar="NAME", help="entries of info that the reward needs")
    parser.add_argument("--max-episode-steps", type=int, default=None, metavar="N", help="a time limit (its own)")


def check(arguments: Namespace) -> int:
    """Check an environment."""
    from .commands.policies import find_modules_here
    from .envs.check import check_goal_env
    from .recipes import choose_recipe

    find_modules_here(arguments.env)
    recipe = choose_recipe(arguments.recipe, arguments.env)
    result = check_goal_env(
        arguments.env,
        recipe.environment_arguments(vars(arguments)),
        recipe.options.get("symmetries", ()),
        info_keys=arguments.info_keys,
        max_episode_steps=arguments.max_episode_steps,
    )
    print(result)
    return 0 if result.ok else 1


def add_new(parser: ArgumentParser) -> None:
    """Add the arguments of `new`."""
    parser.add_argument("name", metavar="NAME", help="of the task, as in my_task")
    parser.add_argument("--folder", type=Path, default=Path(), metavar="DIR", help="where the files are written (.)")


def new(arguments: Namespace) -> int:
    """Write a goal environment to start from."""
    from .commands.new import class_name, new_task

    module, test = new_task(arguments.name, arguments.folder)
    environment = f"{arguments.name}:{class_name(arguments.name)}-v0"
    change_folder = "" if arguments.folder == Path() else f"  cd {arguments.folder}\n"
    print(f"{module}: a goal environment with comments\n{test}: its test\n{change_folder}  python -m pytest {test.name}")
    print(f"  hindsight check {environment}\n  hindsight train {environment}")
    return 0


def add_infer(parser: ArgumentParser) -> None:
    """Add the arguments of `infer`."""
    parser.add_argument("env", metavar="ENV", help="id of a registered environment")
    parser.add_argument("--steps", type=int, default=2_000, metavar="N", help="random steps to learn from (2000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the steps (0)")
    parser.add_argument("--output", type=Path, default=None, metavar="FILE", help="write the result as a recipe (.toml)")


def infer(arguments: Namespace) -> int:
    """Find the structure of a task in its steps."""
    from .commands.infer import infer_task, write_recipe
    from .commands.policies import find_modules_here

    _at_least_one("steps", arguments.steps)
    find_modules_here(arguments.env)
    structure = infer_task(arguments.env, arguments.steps, arguments.seed)
    for finding in structure.findings():
        print(f"{finding.option}: {finding.value}\n    {finding.evidence}")
    if arguments.output is not None:
        write_recipe(arguments.env, arguments.steps, structure, arguments.output)
        print(f"recipe: {arguments.output}\n  hindsight train {arguments.env} --recipe {arguments.output}")
    return 0


def _at_least_one(name: str, value: int) -> None:
    if value < 1:
        raise OptionError(f"`--{name}` must be at least 1, got {value}.")


class Command(NamedTuple):
    """A command: what stands behind its name, one line about it, its arguments, and what it does."""

    usage: str
    summary: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]


COMMANDS: dict[str, Command] = {
    "train": Command("[ENV]", "train a policy (on FetchReach-v4 if no environment is named)", add_train, train),
    "play": Command("RUN", "show what a policy does", add_play, play),
    "evaluate": Command("RUN", "measure a policy on unseen episodes", add_evaluate, evaluate),
    "report": Command("RUN...", "draw a run, or compare several, as an HTML page", add_report, report),
    "compare": Command("RUN...", "compare runs: median and range over seeds", add_compare, compare),
    "benchmark": Command("SUITE", "train on every task of a suite with several seeds", add_benchmark, benchmark),
    "export": Command("RUN", "write a policy as ONNX or TorchScript", add_export, export),
    "doctor": Command("", "check what is installed, and say how to install the rest", lambda parser: None, doctor),
    "new": Command("NAME", "write a small goal environment with its test, to start from", add_new, new),
    "infer": Command("ENV", "find the structure of a task in its steps, and write it as a recipe", add_infer, infer),
    "check": Command("ENV", "check that an environment follows the goal interface", add_check, check),
}
