"""The command line: hindsight-rl COMMAND. Each command imports what it needs when it runs."""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import signal
import sys
import time
import webbrowser
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

from . import __version__
from .errors import HindsightError, OptionError, UnknownNameError, missing_extra, nearest, origin

GARBAGE_THRESHOLD = 100_000  # new objects between two collections: importing torch makes many, and no garbage
BROKEN_PIPE = 128 + 13  # exit status where the reader of the output went away
_RUN_HELP = "a run folder (its best policy) or a policy file"
_ENV_HELP = "id of a registered environment"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status: 0, 1 for an error, 2 for wrong usage, 130, 141 or 143 for a signal."""
    words = list(sys.argv[1:] if arguments is None else arguments)
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
    return COMMANDS[name].run(arguments) or 0


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
    arguments, extra = parser.parse_known_args([_with_dashes(word) for word in words])
    unknown = [word.partition("=")[0].strip("-").replace("-", "_") for word in extra if word.startswith("-")]
    if unknown:
        from .options import refuse_unknown

        known = [word[2:].replace("-", "_") for action in parser._actions for word in action.option_strings]
        refuse_unknown(unknown, known, parser.prog)
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
        f"hindsight-rl {__version__}: train agents to reach goals from sparse rewards, with Hindsight Experience Replay\n\n"
        f"usage: hindsight-rl COMMAND [arguments]\n\n{commands}\n\n"
        f"RUN is a run folder (its best policy) or a policy file. hindsight-rl COMMAND --help lists the arguments."
    )


def add_train(parser: Parser) -> None:
    """Add the arguments of `train`."""
    from .commands.arguments import add_train_arguments

    add_train_arguments(parser)


def train(arguments: Namespace) -> int:
    """Train a policy."""
    started = time.perf_counter()
    from .commands.arguments import COMMAND_DEFAULTS, given_options, take_environment
    from .commands.modules import find_modules_here
    from .recipes.files import require_toml, save_recipe
    from .trackers import refuse_missing
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


def _add_episodes(parser: Parser, episodes: int, seed: int | None = None) -> None:
    """Add the arguments of commands that play the episodes of a policy. episodes, seed: the defaults; None: UNSEEN_SEED."""
    from .seeds import UNSEEN_SEED

    parser.number("--episodes", "number of episodes", episodes, lowest=1)
    parser.number("--seed", "seed of the episodes", UNSEEN_SEED if seed is None else seed)
    parser.add_argument("--env", metavar="ENV", help="id of the environment, as in mine:Reach-v0 (the run's own)")
    parser.add_argument("--trust-module", action="store_true", help="import the module that the run names: it is code")


def _add_env_options(parser: Parser, help_text: str) -> None:
    parser.add_argument("--env-options", nargs="+", default=SUPPRESS, metavar="NAME=VALUE", help=help_text)


def add_play(parser: Parser) -> None:
    """Add the arguments of `play`."""
    parser.add_argument("run", type=Path, metavar="RUN", help=_RUN_HELP)
    _add_episodes(parser, episodes=10)
    parser.add_argument("--video", type=Path, metavar="FILE", help="write a .gif, .webp or .mp4")


def play(arguments: Namespace) -> None:
    """Show what a policy does."""
    from .commands import policies

    env = policies.environment_of(arguments.run, arguments.env, arguments.trust_module)
    policies.play(arguments.run, env, episodes=arguments.episodes, seed=arguments.seed, video_path=arguments.video)


def add_evaluate(parser: Parser) -> None:
    """Add the arguments of `evaluate`."""
    parser.add_argument("run", type=Path, metavar="RUN", help=_RUN_HELP)
    _add_episodes(parser, episodes=100)
    workers = "processes that evaluate, auto: this one and others on spare cores; the result is the same (auto)"
    parser.add_argument("--workers", type=_worker_count, default="auto", metavar="N", help=workers)
    parser.add_argument("--json", action="store_true", help="print the statistics as JSON")


def evaluate(arguments: Namespace) -> None:
    """Measure a policy."""
    from .commands import policies
    from .commands.lines import say

    env = policies.environment_of(arguments.run, arguments.env, arguments.trust_module)
    facts, result = policies.evaluate_run(
        arguments.run, env, episodes=arguments.episodes, seed=arguments.seed, workers=arguments.workers
    )
    if arguments.json:
        print(json.dumps(facts | result.to_json()))
    else:
        say(f"{facts['environment']}: {result}")


def _add_runs(parser: Parser, default_page: str) -> None:
    """Add the arguments of commands that write a page about runs."""
    parser.add_argument("runs", type=Path, metavar="RUN", nargs="+", help="run folders, or folders of them")
    parser.add_argument("--output", type=Path, metavar="FILE", help=f"the page ({default_page})")


def add_report(parser: Parser) -> None:
    """Add the arguments of `report`."""
    _add_runs(parser, "report.html in the run's folder")
    parser.add_argument("--open", action="store_true", help="show it in a browser")
    parser.add_argument("--standalone", action="store_true", help="one file of 5 MB, without a script beside it")


def report(arguments: Namespace) -> None:
    """Draw runs as a page."""
    from .report.write import pictures_folder, write_report

    page = write_report(arguments.runs, arguments.output, arguments.standalone)
    print(f"report: {page}\npictures: {pictures_folder(page)}")
    if arguments.open:
        webbrowser.open(page.resolve().as_uri())


def add_compare(parser: Parser) -> None:
    """Add the arguments of `compare`."""
    _add_runs(parser, "comparison.html beside the runs")


def compare(arguments: Namespace) -> None:
    """Compare runs over their seeds."""
    from .report.write import pictures_folder, write_comparison

    text, page = write_comparison(arguments.runs, arguments.output)
    print(f"{text}\ncurves: {page}\npictures: {pictures_folder(page)}")


def add_benchmark(parser: Parser) -> None:
    """Add the arguments of `benchmark`."""
    suites = "quick, bits, fetch, maze, panda, parking, hand, all"
    parser.add_argument("suite", metavar="SUITE", help=f"{suites}, or a .toml file of your own")
    parser.add_argument("--seeds", metavar="SEEDS", default="0-2", help="as in 0-4, 0,2,5 or 3 (0-2)")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="finished runs there are kept (runs/benchmark/)")
    parser.number("--jobs", "runs at the same time, each in a process", 1, lowest=1)
    options_help = "options of all runs, as in hidden=[64,64]"
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help=options_help)


def benchmark(arguments: Namespace) -> int:
    """Train on every task of a suite with several seeds."""
    from .commands.benchmark import Benchmark, parse_seeds
    from .options import named_values
    from .recipes.suite import load_suite

    suite = load_suite(arguments.suite)
    folder = arguments.folder or Path("runs") / "benchmark" / suite.name
    return Benchmark(suite, parse_seeds(arguments.seeds), folder, named_values("set", arguments.set)).run(arguments.jobs)


def add_export(parser: Parser) -> None:
    """Add the arguments of `export`."""
    parser.add_argument("run", type=Path, metavar="RUN", help=_RUN_HELP)
    parser.add_argument("--onnx", type=Path, metavar="FILE", help="write it for ONNX Runtime")
    parser.add_argument("--torchscript", type=Path, metavar="FILE", help="write it for torch.jit.load")


def export(arguments: Namespace) -> None:
    """Write a policy for other programs."""
    files = {name: path for name in ("onnx", "torchscript") if (path := getattr(arguments, name)) is not None}
    if not files:
        raise OptionError("No file is named. Give --onnx FILE, --torchscript FILE or both.")
    from .commands.export import EXPORTS
    from .commands.lines import say
    from .commands.terminal import console_of
    from .training.saved_model import SavedModel

    saved = SavedModel.read(arguments.run)
    for name, path in files.items():
        with console_of(sys.stderr).status(f"writing {path}"):
            EXPORTS[name](saved, path)
        say(f"policy: {path}")


def doctor(arguments: Namespace) -> int:
    """Check the installation."""
    from .commands.doctor import examine

    findings = examine()
    print(*findings, sep="\n")
    return int(any(finding.level == "missing" for finding in findings))


def add_check(parser: Parser) -> None:
    """Add the arguments of `check`."""
    parser.add_argument("env", metavar="ENV", help=_ENV_HELP)
    parser.add_argument("--recipe", metavar="NAME", help="a built-in recipe or a .toml file (by the environment)")
    _add_env_options(parser, "arguments of the environment, as in n_bits=30")
    parser.add_argument("--info-keys", nargs="+", default=(), metavar="NAME", help="entries of info that the reward needs")
    parser.number("--max-episode-steps", "a time limit; 0: that of the environment", 0)
    rewards = "recompute: check with the rewards of compute_reward, whatever step returns (step)"
    parser.add_argument("--reward", choices=("step", "recompute"), help=rewards)


def check(arguments: Namespace) -> int:
    """Check an environment."""
    from .commands.lines import say
    from .commands.modules import find_modules_here
    from .envs.check import check_goal_env
    from .recipes import choose_recipe

    find_modules_here(arguments.env)
    recipe = choose_recipe(arguments.recipe, arguments.env)
    result = check_goal_env(
        arguments.env,
        recipe.environment_arguments(vars(arguments)),
        recipe.options.get("symmetries", ()),
        info_keys=arguments.info_keys,
        max_episode_steps=arguments.max_episode_steps or None,
        reward=arguments.reward or recipe.options.get("reward", "step"),
    )
    say(str(result))
    return int(not result.ok)


def add_new(parser: Parser) -> None:
    """Add the arguments of `new`."""
    parser.add_argument("name", metavar="NAME", help="of the task, as in my_task")
    parser.add_argument("--folder", type=Path, metavar="DIR", default=Path(), help="where the files are written (.)")


def new(arguments: Namespace) -> None:
    """Write a goal environment to start from."""
    from .commands.new import class_name, new_task

    module, test = new_task(arguments.name, arguments.folder)
    environment = f"{arguments.name}:{class_name(arguments.name)}-v0"
    change_folder = "" if arguments.folder == Path() else f"  cd {arguments.folder}\n"
    print(f"{module}: a goal environment with comments\n{test}: its test\n{change_folder}  python -m pytest {test.name}")
    print(f"  hindsight-rl check {environment}\n  hindsight-rl train {environment}")


def add_infer(parser: Parser) -> None:
    """Add the arguments of `infer`."""
    parser.add_argument("env", metavar="ENV", help=_ENV_HELP)
    parser.number("--steps", "random steps at least", 1_000, lowest=1)
    parser.number("--seed", "seed of the steps", 0)
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the result as a recipe (.toml)")


def infer(arguments: Namespace) -> None:
    """Find the structure of a task in its steps."""
    from .commands.infer import infer_task, save_choices
    from .commands.lines import say, say_command
    from .commands.modules import find_modules_here
    from .recipes.files import require_toml

    if arguments.output is not None:
        require_toml(arguments.output)  # now, not after the steps
    find_modules_here(arguments.env)
    choices, missing, counts = infer_task(arguments.env, arguments.steps, arguments.seed)
    say(f"played {counts.env_steps + counts.check_steps:,} environment steps, {counts.check_steps:,} of them by the check")
    for choice in choices:
        say(f"{choice.option}: {choice.value}\n    {choice.reason}")
    for sentence in missing:
        say(f"not found: {sentence}")
    if arguments.output is not None:
        save_choices(arguments.env, choices, arguments.output)
        say(f"recipe: {arguments.output}")
        say_command(f"train {arguments.env} --recipe {arguments.output}")


def _worker_count(text: str) -> int | Literal["auto"]:
    return "auto" if text == "auto" else int(text)


def add_record(parser: Parser) -> None:
    """Add the arguments of `record`."""
    source = "a run folder, a policy file, or MODULE:FUNCTION, which maps observations to actions"
    parser.add_argument("source", metavar="RUN", help=source)
    parser.add_argument("--output", required=True, metavar="NAME", help="name of the data set, as in fetch/pick-v0")
    _add_episodes(parser, episodes=100, seed=0)
    _add_env_options(parser, "of a function: arguments of the environment")
    info_help = "of a function: numbers of the info that the reward needs"
    parser.add_argument("--info-keys", nargs="+", default=(), metavar="KEY", help=info_help)


def record(arguments: Namespace) -> None:
    """Record episodes."""
    from .commands.record import record_data_set

    record_data_set(arguments)


class Command(NamedTuple):
    """A command: what follows its name, one line about it, its arguments, and its function, which may return a status."""

    usage: str
    summary: str
    add_arguments: Callable[[Parser], None]
    run: Callable[[Namespace], int | None]


COMMANDS: dict[str, Command] = {
    "train": Command("[ENV]", "train a policy (on FetchReach-v4 if no environment is named)", add_train, train),
    "play": Command("RUN", "show what a policy does", add_play, play),
    "evaluate": Command("RUN", "measure a policy on unseen episodes", add_evaluate, evaluate),
    "report": Command("RUN...", "draw a run, or compare several, as an HTML page, SVG and PNG", add_report, report),
    "compare": Command("RUN...", "compare runs over seeds: as text, HTML page, SVG and PNG", add_compare, compare),
    "benchmark": Command("SUITE", "train on every task of a suite with several seeds", add_benchmark, benchmark),
    "export": Command("RUN", "write a policy as ONNX or TorchScript", add_export, export),
    "doctor": Command("", "check what is installed, and say how to install the rest", lambda parser: None, doctor),
    "new": Command("NAME", "write a small goal environment with its test, to start from", add_new, new),
    "infer": Command("ENV", "find the structure of a task in its steps, and write it as a recipe", add_infer, infer),
    "record": Command("RUN", "record episodes of a policy or a function as a Minari data set", add_record, record),
    "check": Command("ENV", "check that an environment follows the goal interface", add_check, check),
}
