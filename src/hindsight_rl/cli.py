"""The command line: hindsight-rl COMMAND. Each command imports what it needs when it runs."""

from __future__ import annotations

import atexit
import gc
import io
import os
import re
import signal
import sys
import time
import warnings
import webbrowser
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

from . import __version__
from .errors import HindsightError, UnknownNameError, missing_extra, nearest, origin
from .seeds import UNSEEN_SEED

GARBAGE_THRESHOLD = 100_000  # new objects between two collections: importing torch makes many, and no garbage
BROKEN_PIPE = 128 + 13  # exit status where the reader of the output went away
_WITH_EXPONENT = re.compile(r"-(\d+\.?|\d*\.\d+)e[-+]?\d{1,3}", re.IGNORECASE)  # a negative number
_full_warning = warnings.formatwarning


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status: 0, 1 for an error, 2 for wrong usage, 130, 141 or 143 for a signal."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    warnings.formatwarning = _warning_line
    gc.set_threshold(GARBAGE_THRESHOLD)
    atexit.register(gc.freeze)  # when it ends, Python else searches all modules for garbage, which takes a second
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
    except ModuleNotFoundError as problem:
        print(f"hindsight-rl: {missing_extra(words[0], problem)}", file=sys.stderr)
        return 1
    except (HindsightError, OSError) as problem:
        notes = getattr(problem, "__notes__", ())
        print(f"hindsight-rl: {problem}{origin(problem)}", *notes, sep="\n", file=sys.stderr)
        return 2 if isinstance(problem, UnknownNameError) else 1


def _run(words: list[str]) -> int:
    name, *rest = words or ["--help"]
    if name in ("-h", "--help", "help"):
        print(_overview())
        return 0
    if name in ("-V", "--version"):
        print(f"hindsight-rl {__version__}")
        return 0
    if name not in COMMANDS:
        raise UnknownNameError(
            f"There is no command {name!r}.{nearest(name, COMMANDS)} The commands: {', '.join(COMMANDS)}."
        )
    arguments = _parse(command_parser(name), rest)
    if name == "train" and (arguments.help or arguments.help_all):
        from .commands.arguments import train_help

        print(train_help(arguments), end="")
        return 0
    run = COMMANDS[name].run
    call = getattr(import_module(f".commands.{run}", __package__), name) if isinstance(run, str) else run
    return call(arguments) or 0


def _warning_line(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Return a warning of this package as one line; of others also where it comes from."""
    is_own = Path(filename).is_relative_to(Path(__file__).parent)
    return f"warning: {message}\n" if is_own else _full_warning(message, category, filename, lineno, line)


class Parser(ArgumentParser):
    """An argument parser that names the page with the arguments in its errors."""

    def error(self, message: str) -> NoReturn:
        """Print the error and end with status 2."""
        self.exit(2, f"{self.prog}: {message}\n{self.prog} --help lists the arguments.\n")

    def number(self, name: str, help_text: str, default: int, lowest: int = 0) -> None:
        """Add an argument that takes a whole number of at least `lowest`."""

        def read(text: str) -> int:
            if not text.replace("_", "").isdecimal() or int(text) < lowest:
                raise ArgumentTypeError(f"must be a whole number of at least {lowest}, got {text!r}")
            return int(text)

        self.add_argument(name, type=read, metavar="N", default=default, help=f"{help_text} ({default})")


def command_parser(name: str) -> Parser:
    """Return the parser of a command."""
    command = COMMANDS[name]
    parser = Parser(f"hindsight-rl {name}", description=command.summary, add_help=name != "train", allow_abbrev=False)
    command.add_arguments(parser)
    return parser


def _parse(parser: ArgumentParser, words: Sequence[str]) -> Namespace:
    """Return the arguments. Raises UnknownNameError for one that does not exist, with the right name where it is known."""
    arguments, extra = parser.parse_known_args([_readable(word) for word in words])
    unknown = [word.partition("=")[0].strip("-").replace("-", "_") for word in extra if word.startswith("-")]
    if unknown:
        from .options import refuse_unknown

        known = [word[2:].replace("-", "_") for action in parser._actions for word in action.option_strings]
        refuse_unknown(unknown, known, parser.prog)
    if extra:
        parser.error(f"{extra[0]!r} was not expected.")
    return arguments


def _readable(word: str) -> str:
    """Return --eval-every for --eval_every, as in Python, and -0.001 for -1e-3, which argparse takes for an option."""
    if _WITH_EXPONENT.fullmatch(word):
        return format(Decimal(word), "f")
    name, equals, value = word.partition("=")
    return f"{name.replace('_', '-')}{equals}{value}" if word.startswith("--") else word


def _overview() -> str:
    commands = "\n".join(f"  {f'{name} {command.usage}':18} {command.summary}" for name, command in COMMANDS.items())
    return (
        f"hindsight-rl {__version__}: train agents to reach goals from sparse rewards, with Hindsight Experience Replay\n\n"
        f"usage: hindsight-rl COMMAND [arguments]\n\n{commands}\n\n"
        f"RUN is a run folder (its best policy) or a policy file. hindsight-rl COMMAND --help lists the arguments."
    )


def _train(arguments: Namespace) -> int:
    """Train a policy."""
    started = time.perf_counter()
    from .callbacks import refuse_missing
    from .commands.arguments import COMMAND_DEFAULTS, given_options, take_environment
    from .commands.tasks import find_modules_here
    from .recipes.files import require_toml, save_recipe
    from .training.machine import loops_compiling

    environment, given = take_environment(arguments), given_options(arguments)
    if arguments.save_recipe:
        require_toml(arguments.save_recipe)  # now, not after the run
    defaults: dict[str, Any] = {name: value for name, value in COMMAND_DEFAULTS.items() if name not in given}
    trackers = [name for name in ("tensorboard", "wandb") if getattr(arguments, name)]
    refuse_missing(trackers)
    find_modules_here(environment)
    with loops_compiling():
        from .commands.train import Training
        from .her import HER

        made = HER(environment, arguments.agent, arguments.recipe, check=not arguments.no_check, **given, **defaults)
    with made as model:
        folder, resume, name = arguments.folder, arguments.resume, arguments.name
        status = Training(model, environment, folder, resume, trackers, started, defaults, name).run()
        if arguments.save_recipe:
            save_recipe(model.settings, arguments.save_recipe)
            print(f"recipe: {arguments.save_recipe}")
        return status


def _report(arguments: Namespace) -> None:
    """Draw runs as a page."""
    from .report.write import pictures_folder, write_report

    page = write_report(arguments.runs, arguments.output, arguments.standalone)
    print(f"report: {page}\npictures: {pictures_folder(page)}")
    if arguments.open:
        webbrowser.open(page.resolve().as_uri())


def _compare(arguments: Namespace) -> None:
    """Compare runs over their seeds."""
    from .report.write import pictures_folder, write_comparison

    text, page = write_comparison(arguments.runs, arguments.output)
    print(f"{text}\ncurves: {page}\npictures: {pictures_folder(page)}")


def _add_train(parser: Parser) -> None:
    from .commands.arguments import add_train_arguments

    add_train_arguments(parser)


def _add_run(parser: Parser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder (its best policy) or a policy file")


def _add_env(parser: Parser) -> None:
    parser.add_argument("env", metavar="ENV", help="id of a registered environment")


def _add_episodes(parser: Parser, episodes: int, seed: int = UNSEEN_SEED) -> None:
    """Add the arguments of commands that play the episodes of a policy. episodes, seed: the defaults."""
    parser.number("--episodes", "number of episodes", episodes, lowest=1)
    parser.number("--seed", "seed of the episodes", seed)
    _add_env_of_run(parser)


def _add_env_of_run(parser: Parser) -> None:
    parser.add_argument("--env", metavar="ENV", help="id of the environment, as in mine:Reach-v0 (the run's own)")
    parser.add_argument("--trust-module", action="store_true", help="import the module that the run names: it is code")


def _add_env_options(parser: Parser, options_help: str, keys_help: str) -> None:
    """Add the arguments of commands that make an environment."""
    parser.add_argument("--env-options", nargs="+", default=SUPPRESS, metavar="NAME=VALUE", help=options_help)
    parser.add_argument("--info-keys", nargs="+", default=(), metavar="NAME", help=keys_help)


def _add_play(parser: Parser) -> None:
    _add_run(parser)
    _add_episodes(parser, episodes=10)
    parser.add_argument("--video", type=Path, metavar="FILE", help="write a .gif, .webp or .mp4")


def _add_evaluate(parser: Parser) -> None:
    _add_run(parser)
    _add_episodes(parser, episodes=100)
    workers = "processes that evaluate, auto: this one and others on spare cores; the result is the same (auto)"
    parser.add_argument("--workers", type=_worker_count, default="auto", metavar="N", help=workers)
    parser.add_argument("--json", action="store_true", help="print the statistics as JSON")


def _worker_count(text: str) -> int | Literal["auto"]:
    return "auto" if text == "auto" else int(text)


def _add_compare(parser: Parser, default_page: str = "comparison.html beside the runs") -> None:
    parser.add_argument("runs", type=Path, metavar="RUN", nargs="+", help="run folders, or folders of them")
    parser.add_argument("--output", type=Path, metavar="FILE", help=f"the page ({default_page})")


def _add_report(parser: Parser) -> None:
    _add_compare(parser, "report.html in the run's folder")
    parser.add_argument("--open", action="store_true", help="show it in a browser")
    parser.add_argument("--standalone", action="store_true", help="one file of 5 MB, without a script beside it")


def _add_benchmark(parser: Parser) -> None:
    suites = "quick, bits, fetch, maze, panda, parking, hand, all"
    parser.add_argument("suite", metavar="SUITE", help=f"{suites}, or a .toml file of your own")
    parser.add_argument("--seeds", metavar="SEEDS", default="0-2", help="as in 0-4, 0,2,5 or 3 (0-2)")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="finished runs there are kept (runs/benchmark/)")
    parser.number("--jobs", "runs at the same time, each in a process", 1, lowest=1)
    options_help = "options of all runs, as in hidden=[64,64]"
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help=options_help)


def _add_export(parser: Parser) -> None:
    _add_run(parser)
    parser.add_argument("--onnx", type=Path, metavar="FILE", help="write it for ONNX Runtime")
    parser.add_argument("--torchscript", type=Path, metavar="FILE", help="write it for torch.jit.load")
    parser.add_argument("--card", type=Path, metavar="FILE", help="write a model card: task, figures, command (.md)")
    replay_help = "write the episodes of the replay buffer as a Minari data set, as in fetch/replay-v0"
    parser.add_argument("--replay", metavar="NAME", help=replay_help)
    _add_env_of_run(parser)


def _add_check(parser: Parser) -> None:
    _add_env(parser)
    parser.add_argument("--recipe", metavar="NAME", help="a built-in recipe or a .toml file (by the environment)")
    _add_env_options(parser, "arguments of the environment, as in n_bits=30", "entries of info that the reward needs")
    parser.number("--max-episode-steps", "a time limit; 0: that of the environment", 0)
    rewards = "recompute: check with the rewards of compute_reward, whatever step returns (step)"
    parser.add_argument("--reward", choices=("step", "recompute"), help=rewards)


def _add_new(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the task, as in my_task")
    parser.add_argument("--folder", type=Path, metavar="DIR", default=Path(), help="where the files are written (.)")


def _add_infer(parser: Parser) -> None:
    _add_env(parser)
    parser.number("--steps", "random steps at least; 0: as many as train plays", 0)
    parser.number("--seed", "seed of the steps", 0)
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the result as a recipe (.toml)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the result (.html, .svg or .png)")


def _add_record(parser: Parser) -> None:
    source = "a run folder, a policy file, or MODULE:FUNCTION, which maps observations to actions"
    parser.add_argument("source", metavar="RUN", help=source)
    parser.add_argument("--output", required=True, metavar="NAME", help="name of the data set, as in fetch/pick-v0")
    _add_episodes(parser, episodes=100, seed=0)
    keys_help = "of a function: numbers of the info that the reward needs"
    _add_env_options(parser, "of a function: arguments of the environment", keys_help)


class Command(NamedTuple):
    """A command: what follows its name, one line about it, and its arguments.

    run: its function, which may return a status, or the module of commands/ with a function of its name. Such a module is
        imported when the command runs.
    """

    usage: str
    summary: str
    add_arguments: Callable[[Parser], None]
    run: str | Callable[[Namespace], int | None]


COMMANDS = {
    "train": Command("[ENV]", "train a policy (on FetchReach-v4 if no environment is named)", _add_train, _train),
    "play": Command("RUN", "show what a policy does", _add_play, "policies"),
    "evaluate": Command("RUN", "measure a policy on unseen episodes", _add_evaluate, "policies"),
    "report": Command("RUN...", "draw a run, or compare several, as an HTML page, SVG and PNG", _add_report, _report),
    "compare": Command("RUN...", "compare runs over seeds: as text, HTML page, SVG and PNG", _add_compare, _compare),
    "benchmark": Command("SUITE", "train on every task of a suite with several seeds", _add_benchmark, "benchmark"),
    "export": Command("RUN", "write a policy as ONNX or TorchScript, a model card, or the replay", _add_export, "export"),
    "doctor": Command("", "check what is installed, and say how to install the rest", lambda parser: None, "doctor"),
    "new": Command("NAME", "write a small goal environment with its test, to start from", _add_new, "tasks"),
    "infer": Command("ENV", "find the structure of a task in its steps, and write it as a recipe", _add_infer, "tasks"),
    "record": Command("RUN", "record episodes of a policy or a function as a Minari data set", _add_record, "policies"),
    "check": Command("ENV", "check that an environment follows the goal interface", _add_check, "tasks"),
}
