"""Arguments of `hindsight-rl train`, generated from the option records. Only what the user gives reaches the settings."""

from __future__ import annotations

import re
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from ..errors import OptionError
from ..options import AGENT_OPTIONS, OptionField, run_options
from ..recipes import FITTED, choose_recipe
from ..training.resolve import resolve_settings

DEFAULT_ENVIRONMENT = "FetchReach-v4"
SHOWN_BY_HELP = ("steps", "seed", "workers", "eval_every", "max_episode_steps", "env_options")  # shown by --help
COMMAND_DEFAULTS = {"workers": "auto"}  # of the command line; in Python others hold
_METAVARS = {int: "N", float: "X", str: "TEXT"}


def add_train_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `train`: its own, and the options of every agent."""
    _add_own(parser)
    _add_own_others(parser)
    for option in _all_options().values():
        _add_option(parser, option, SUPPRESS)


def given_options(arguments: Namespace) -> dict[str, Any]:
    """Return the options that the user gave, by name. Raises OptionError for a list without values."""
    known = _all_options()
    given = {name: value for name, value in vars(arguments).items() if name in known}
    for name, value in given.items():
        if value == []:
            flag = _flag(name)
            raise OptionError(f"`{flag}` needs at least one value. Use `--no-{flag[2:]}` for an empty list.")
    return given


def take_environment(arguments: Namespace) -> str:
    """Return the environment's id: the positional argument, an id behind a list of values, or the default."""
    if arguments.environment is not None:
        return str(arguments.environment)
    for value in vars(arguments).values():
        if isinstance(value, list) and len(value) > 1 and re.search(r"-v\d+$", str(value[-1])):
            return str(value.pop())
    return DEFAULT_ENVIRONMENT


def train_help(arguments: Namespace) -> str:
    """Return the help of `train` for this environment, agent and recipe: the first options, or all of them."""
    environment = take_environment(arguments)
    recipe = choose_recipe(arguments.recipe, environment)
    settings = resolve_settings(recipe, None, arguments.agent, {})
    values = settings.flat() | COMMAND_DEFAULTS | dict.fromkeys(FITTED if recipe.automatic else (), "chosen from the task")
    options = run_options(settings.agent)
    parser = ArgumentParser("hindsight-rl train", "hindsight-rl train [ENV] [options]", add_help=False)
    parser.description = f"Train a policy for {environment}. The values in parentheses hold unless you give others."
    parser.epilog = "--no-NAME empties a list, removes a limit, or switches an option off."
    _add_own(parser, f" ({settings.agent})", f" ({recipe.name})")
    first = parser.add_argument_group("options that most people use first")
    for name in SHOWN_BY_HELP:
        _add_option(first, options[name], _help(options[name], values))
    others = [option for option in options.values() if option.name not in SHOWN_BY_HELP]
    if arguments.help_all:
        _add_own_others(first)
        groups = {title: parser.add_argument_group(title) for title in dict.fromkeys(o.group for o in others)}
        for option in others:
            _add_option(groups[option.group], option, _help(option, values))
    else:
        parser.epilog += f" {len(others)} more options: hindsight-rl train {environment} --help-all"
    return parser.format_help()


def option_words(name: str, value: Any) -> list[str]:
    """Return an option as on the command line."""
    flag = name.replace("_", "-")
    if value is True:
        return [f"--{flag}"]
    if value is False or value is None or value in ((), []):
        return [f"--no-{flag}"]
    return [f"--{flag}", *map(str, value if isinstance(value, list | tuple) else [value])]


def _add_own(parser: ArgumentParser, agent: str = "", recipe: str = "") -> None:
    """Add what `train` takes besides the options of a run. agent, recipe: those that hold, for the help."""
    add = parser.add_argument
    add("environment", nargs="?", metavar="ENV", help=f"id of the environment ({DEFAULT_ENVIRONMENT})")
    add("--agent", metavar="NAME", help=f"{', '.join(AGENT_OPTIONS)}{agent}")
    add("--recipe", metavar="NAME", help=f"tuned hyperparameters: a built-in recipe or a .toml file{recipe}")
    add("--folder", type=_folder, metavar="DIR", help="folder of the run (a new one under runs/)")
    add("--resume", action="store_true", help="continue the run in the folder, or the newest of its kind")
    add("--tensorboard", action="store_true", help="also write metrics for TensorBoard into the folder")
    add("-h", "--help", action="store_true", help="show this page")
    add("--help-all", action="store_true", help="show every option")


def _folder(text: str) -> Path:
    if not text:  # a variable of the shell that is not set: the current folder is not meant
        raise ArgumentTypeError("must be the path of a folder, got nothing")
    return Path(text)


def _add_own_others(parser: Any) -> None:
    """Add what fewer people use."""
    parser.add_argument("--no-check", action="store_true", help="do not check the environment first")
    parser.add_argument("--wandb", action="store_true", help="also send metrics to Weights & Biases")
    parser.add_argument("--name", metavar="TEXT", default="", help="name of the run in legends and tables (none)")
    parser.add_argument("--save-recipe", type=Path, metavar="FILE", help="at the end write all options as a recipe (.toml)")


def _add_option(parser: Any, option: OptionField, help_text: str) -> None:
    """Add --NAME, and --no-NAME where the option is a switch, a list or may be None."""
    flag, kinds = _flag(option.name), _plain_types(option.type)
    if bool in kinds:
        parser.add_argument(flag, action=BooleanOptionalAction, default=SUPPRESS, help=help_text)
        return
    is_list = get_origin(option.type) is tuple
    choices = next((get_args(part) for part in (option.type, *get_args(option.type)) if get_origin(part) is Literal), ())
    metavar = _metavar(choices, kinds)
    nargs = "*" if is_list else None
    parser.add_argument(flag, type=partial(_read, kinds), metavar=metavar, nargs=nargs, default=SUPPRESS, help=help_text)
    if is_list or type(None) in kinds:
        off = () if is_list else None
        no_flag = {"dest": option.name, "default": SUPPRESS, "help": SUPPRESS}
        parser.add_argument(f"--no-{flag[2:]}", action="store_const", const=off, **no_flag)


def _metavar(choices: Sequence[str], kinds: set[Any]) -> str:
    """Return what stands for a value in the help: "{a,b}" for names, "N" for a number, "N or auto" for both."""
    number = next((name for kind, name in _METAVARS.items() if kind in kinds and not (kind is str and choices)), "")
    if not choices:
        return number
    return " or ".join([number, *choices]) if number else f"{{{','.join(choices)}}}"


def _read(kinds: set[Any], text: str) -> Any:
    """Return a number if the text is one; other text is left for the option record to refuse."""
    for kind in (int, float):
        if kind in kinds:
            with suppress(ValueError):
                return kind(text)
    return text


def _plain_types(annotation: Any) -> set[Any]:
    """Return the types inside an annotation: {int, NoneType} of `int | None`."""
    if get_origin(annotation) is Literal:
        return {str}
    if get_origin(annotation) is Callable:  # only from Python
        return set()
    return {annotation}.union(*(_plain_types(part) for part in get_args(annotation)))


def _all_options() -> dict[str, OptionField]:
    return {name: option for agent in AGENT_OPTIONS for name, option in run_options(agent).items()}


def _help(option: OptionField, values: Mapping[str, Any]) -> str:
    """Return the description and the value that holds."""
    value = values[option.name]
    text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    text = text if len(text) <= 40 else f"{text[:37]}..."
    return f"{option.description} ({text or 'none'})".replace("%", "%%")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
