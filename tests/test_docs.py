"""Every snippet of README.md and docs runs, page by page, in the order in which a reader meets it, with small budgets.

A block of python sees what the blocks before it on its page left; one with a name is a file that the reader saves.
Commands run in this process, in an empty folder. What cannot run says so where the reader sees it: "not run by the tests:
..." behind a command, or in the first line of a block.
"""

import json
import re
import shlex
import sys
import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import pytest

from hindsight.benchmark import Benchmark
from hindsight.cli import main
from hindsight.recipes import load_recipe
from hindsight.recipes.suite import load_suite
from hindsight.training.settings import resolve_settings

ROOT = Path(__file__).parents[1]
NOT_RUN = "not run by the tests: "
LANGUAGES = {"python", "sh", "json", "toml", "text"}  # text is what is shown, not what is typed
SMALLER = [  # how the numbers of a snippet become those of a test
    (r"(\.learn\(\s*)[\d_]+", r"\g<1>220"),
    (r'(HER\((?:Corner|"PointReach-v0"))', r"\g<1>, updates_per_step=0.5"),
    (r"((?:EvaluateEvery|KeepEvery)\()[\d_]+", r"\g<1>100"),
    (r"(episodes=|evaluate\()\d+", r"\g<1>2"),
    (r"(range\()\d{3,}", r"\g<1>3"),
]
BUDGETS = {
    "train": "--steps 250 --random-steps 100 --eval-every 150 --eval-episodes 2 --updates-per-step 0.5 --hidden 16 16",
    "evaluate": "--episodes 2",
    "play": "--episodes 1",
    "benchmark": "--set steps=250 random_steps=100 eval_every=150 eval_episodes=2 updates_per_step=0.5 hidden=[16,16]",
}
NEEDS = {  # a word on a page, and the package of an extra that its snippets need
    "stable_baselines3": "stable_baselines3",
    "onnxruntime": "onnxruntime",
    "--onnx": "onnxscript",
    ".mp4": "imageio_ffmpeg",
}
SETUP = {  # what the reader of a page has already: before the first block that holds a word
    "README.md": {
        "from hindsight import HER": """
            import gymnasium
            import gymnasium_robotics
            import numpy as np
            from stable_baselines3 import SAC
            gymnasium.register_envs(gymnasium_robotics)
            env = gymnasium.make("FetchPush-v4")
            seen, _ = gymnasium.make("FetchReach-v4").reset(seed=0)
            o, a, g = (seen[key] for key in ("observation", "achieved_goal", "desired_goal"))
            """,
        "import HindsightBuffer": """
            observation, _ = env.reset(seed=0)
            action = env.action_space.sample()
            next_observation, reward, terminated, _, info = env.step(action)
            truncated, batches = True, None
            """,
    },
    "docs/migrating.md": {
        "import HerReplayBuffer": """
            from hindsight import make_goal_env
            env = make_goal_env("FetchReach-v4")
            observation, _ = env.reset(seed=0)
            """,
    },
}


@dataclass(frozen=True)
class Block:
    """A fenced block. place: the page and the line of its first line. name: of the file it is, where it is one."""

    place: str
    line: int
    language: str
    name: str
    text: str

    @property
    def commands(self):
        """The commands of a block of shell, as words."""
        if self.text.startswith(f"# {NOT_RUN}"):
            return []
        lines = [line for line in self.text.replace(" && ", "\n").splitlines() if NOT_RUN not in line]
        return [words for line in lines if (words := shlex.split(line, comments=True))]


def blocks_of(path):
    """The fenced blocks of a page, but for the directives of Sphinx."""
    text, place = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
    found = []
    for match in re.finditer(r"^```(\S*) ?(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE):
        line = text[: match.start(3)].count("\n") + 1
        if not match[1].startswith("{"):
            found.append(Block(place, line, *match.groups()))
    return found


PAGES = {
    path.relative_to(ROOT).as_posix(): blocks_of(path)
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}


def pages_with_snippets():
    """The pages on which something runs; those with a simulated arm are marked."""
    for place, blocks in PAGES.items():
        if any(block.language in ("python", "sh") for block in blocks):
            needs_simulator = any("Fetch" in block.text for block in blocks)
            yield pytest.param(place, marks=[pytest.mark.simulator] if needs_simulator else [], id=place)


def smaller(text):
    for pattern, replacement in SMALLER:
        text = re.sub(pattern, replacement, text)
    return text


def run_python(block, namespace):
    code = "\n" * (block.line - 1) + smaller(block.text)  # an error then names the line of the page
    exec(compile(code, str(ROOT / block.place), "exec"), namespace)


def run_hindsight(words):
    command, *arguments = words
    if "--help" in arguments:
        with pytest.raises(SystemExit, match="0"):
            main(words)
        return
    budget = shlex.split(BUDGETS.get(command, ""))
    assert main([*words, *budget]) == 0 or command == "doctor", shlex.join(words)


def extras():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def check_pip(words):
    """What is to be installed is not installed here, but it must be there: extras, and files of versions."""
    assert words[0] == "install"
    for word in words[1:]:
        if asked := re.match(r"(?:\.|hindsight-rl)\[(.*)\]$", word):
            assert set(asked[1].split(",")) <= set(extras()), word
        elif word.endswith(".txt"):
            assert (ROOT / word).exists()


def run_shell(block):
    for program, *words in block.commands:
        if program == "hindsight":
            run_hindsight(words)
        elif program == "pip":
            check_pip(words)
        else:
            assert program == "pytest", f"{block.place}:{block.line}: nothing here runs {program}"


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """An empty folder to work in; modules and environments that a page makes are forgotten after it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    saved = {path.stem for path in tmp_path.glob("*.py")}
    for name, spec in list(gymnasium.registry.items()):
        if getattr(spec.entry_point, "__module__", None) in saved:
            del gymnasium.registry[name]
    for name in saved:
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("reader")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # of what writes TorchScript
@pytest.mark.parametrize("page", list(pages_with_snippets()))
def test_every_snippet_runs(page):
    text = "".join(block.text for block in PAGES[page])
    for package in (package for word, package in NEEDS.items() if word in text):
        pytest.importorskip(package)
    namespace = {"__name__": "page"}
    setup = dict(SETUP.get(page, {}))
    for block in PAGES[page]:
        for word in [word for word in setup if word in block.text]:
            exec(textwrap.dedent(setup.pop(word)), namespace)
        if block.name:
            Path(block.name).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            run_python(block, namespace)
        elif block.language == "sh":
            run_shell(block)
    assert not setup, "is for a snippet that is gone"


def test_every_block_names_its_language():
    odd = [f"{b.place}:{b.line}: {b.language or 'none'}" for blocks in PAGES.values() for b in blocks]
    assert [place for place in odd if place.split(": ")[1] not in LANGUAGES] == []


def test_data_on_the_pages_is_what_the_library_reads(tmp_path):
    for block in (b for blocks in PAGES.values() for b in blocks):
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "toml":
            place = tmp_path / "mine.toml"
            place.write_text(block.text, encoding="utf-8")
            if "[[entry]]" in block.text:
                assert Benchmark(load_suite(str(place)), [0], tmp_path).plan()
            else:
                assert resolve_settings(load_recipe(str(place)), None, {}).from_recipe
