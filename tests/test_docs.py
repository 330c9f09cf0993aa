"""Every snippet of README.md and docs runs, page by page, in the order of the page, with smaller numbers.

A Python block sees the variables of the blocks before it on its page. A block with a name is a file that it saves. Commands
run in this process, in an empty folder. If something cannot run, the page says so: "not run by the tests: ..." after a
command, or in the first line of a block.
"""

import json
import re
import runpy
import shlex
import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from hindsight_rl.cli import command_parser, main
from hindsight_rl.commands.benchmark import Benchmark
from hindsight_rl.envs.goal_env import make_goal_env, read_spec
from hindsight_rl.recipes import load_recipe
from hindsight_rl.recipes.files import load_suite
from hindsight_rl.training.resolve import resolve_settings

ROOT = Path(__file__).parents[1]
NOT_RUN = "not run by the tests: "
MADE = re.compile(r"<!-- made by .*?<!-- end -->", re.DOTALL)  # by docs/make_tables.py
LANGUAGES = {"python", "sh", "json", "toml", "yaml", "text"}  # text is output or a drawing
SMALLER = [  # replacements that make the numbers of a snippet small enough for a test
    (r"(\.learn\(\s*)[\d_]+", r"\g<1>220"),
    (r'(HER\((?:Corner|"PointReach-v0"))', r"\g<1>, updates_per_step=0.1"),
    (r"((?:EvaluateEvery|KeepEvery)\()[\d_]+", r"\g<1>100"),
    (r"(episodes=|evaluate\()\d+", r"\g<1>2"),
    (r"(for episode in range\()\d{3,}", r"\g<1>3"),
]
BUDGETS = {  # arguments that make a command short enough for a test
    "train": "--steps 250 --random-steps 100 --eval-every 150 --eval-episodes 2 --updates-per-step 0.1 --hidden 16 16",
    "evaluate": "--episodes 2",
    "play": "--episodes 1",
    "record": "--episodes 2",
}
NEEDS = {  # a word on a page, and the package that its snippets need
    "stable_baselines3": "stable_baselines3",
    "import jax": "jax",
    "--demonstrations": "minari",
    "onnxruntime": "onnxruntime",
    "--onnx": "onnxscript",
    ".mp4": "imageio_ffmpeg",
}
SLOW = {  # pages whose snippets take seconds
    "docs/migrating.md",
    "docs/tutorial.md",
    "docs/how-to/demonstrations.md",
    "docs/how-to/own-learner.md",
    "docs/how-to/tuning.md",
    "docs/how-to/describe-your-task.md",
    "docs/how-to/read-what-was-found.md",
}
SETUP = {  # code before the first block that contains a word: what the reader has already
    "docs/migrating.md": {
        "import HerReplayBuffer": """
            from hindsight_rl import make_goal_env
            env = make_goal_env("PointReach-v0")
            observation, _ = env.reset(seed=0)
            """,
    },
}


@dataclass(frozen=True)
class Block:
    """A fenced block. place: the page. line: of its first line. name: of the file that the block is, if it is one."""

    place: str
    line: int
    language: str
    name: str
    text: str

    @property
    def commands(self):
        """The commands of a shell block as lists of words."""
        if self.text.startswith(f"# {NOT_RUN}"):
            return []
        lines = [line for line in self.text.replace(" && ", "\n").splitlines() if NOT_RUN not in line]
        return [words for line in lines if (words := shlex.split(line, comments=True))]

    @property
    def needs_simulator(self):
        """Whether a test without a simulator leaves out the block, or in a shell block some of its commands."""
        return is_simulated(self.text) and (self.language == "python" or any(map(is_simulated, self.commands)))


def is_simulated(text_or_words):
    """Return whether a Fetch task is in a text or in the words of a command."""
    return any("Fetch" in word for word in ([text_or_words] if isinstance(text_or_words, str) else text_or_words))


def blocks_of(path):
    """Return the fenced blocks that were written for a page: without those of the parts that are made."""
    text, place = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
    text = MADE.sub(lambda part: "\n" * part[0].count("\n"), text)
    found = []
    for match in re.finditer(r"^```(\S*) ?(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE):
        line = text[: match.start(3)].count("\n") + 1
        found.append(Block(place, line, *match.groups()))
    return found


PAGES = {
    path.relative_to(ROOT).as_posix(): blocks_of(path)
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}


def pages_with_snippets():
    """Yield every page with snippets: without those that need a simulator and, if it has such, with them."""
    for place, blocks in PAGES.items():
        if any(block.language in ("python", "sh") for block in blocks):
            yield pytest.param(place, False, id=place, marks=[pytest.mark.slow] * (place in SLOW))
        if any(block.needs_simulator for block in blocks):
            yield pytest.param(place, True, id=f"{place} with a simulator", marks=pytest.mark.simulator)


def smaller(text):
    for pattern, replacement in SMALLER:
        text = re.sub(pattern, replacement, text)
    return text


def run_python(block, namespace):
    code = "\n" * (block.line - 1) + smaller(block.text)  # so that an error names the line of the page
    exec(compile(code, str(ROOT / block.place), "exec"), namespace)


def run_hindsight(words):
    command, *arguments = words
    if {"--help", "--help-all"} & set(arguments):
        with pytest.raises(SystemExit, match="0"):
            main(words)
        return
    budget = shlex.split(BUDGETS.get(command, ""))
    if command in ("train", "evaluate") and "--workers" not in words:
        budget += ["--workers", "0"]  # a process takes seconds to start
    assert main([*words, *budget]) == 0 or command == "doctor", shlex.join(words)


def extras():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def check_pip(words):
    """Nothing is installed here. But the extras and the files that are named must exist."""
    assert words[0] in ("install", "wheel")
    for word in words[1:]:
        if match := re.match(r"(?:\.|dist/.*\.whl)\[(.*)\]$", word):
            assert set(match[1].split(",")) <= set(extras()), word
        elif word.endswith(".txt"):
            assert (ROOT / word).exists()


def run_shell(block, with_simulator):
    for program, *words in block.commands:
        if program == "hindsight-rl":
            if with_simulator or not is_simulated(words):
                run_hindsight(words)
        elif program == "pip":
            check_pip(words)
        else:
            assert program == "pytest", f"{block.place}:{block.line}: {program} is not run here"


@pytest.mark.usefixtures("empty_folder", "no_pictures")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # from the export to TorchScript
@pytest.mark.parametrize(("page", "with_simulator"), list(pages_with_snippets()))
def test_every_snippet_runs(page, with_simulator, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "data"))
    text = "".join(block.text for block in PAGES[page])
    for package in (package for word, package in NEEDS.items() if word in text):
        pytest.importorskip(package)
    namespace = {"__name__": "page"}
    setup = dict(SETUP.get(page, {}))
    for block in PAGES[page]:
        for word in [word for word in setup if word in block.text]:
            exec(textwrap.dedent(setup.pop(word)), namespace)
        if block.name:
            Path(block.name).parent.mkdir(parents=True, exist_ok=True)
            Path(block.name).write_text(block.text, encoding="utf-8")
        elif block.language == "python" and (with_simulator or not block.needs_simulator):
            run_python(block, namespace)
        elif block.language == "sh":
            run_shell(block, with_simulator)
    for place in Path().glob("test_*.py"):  # tests that the page shows
        for name, test in runpy.run_path(str(place)).items():
            if name.startswith("test_"):
                test()
    assert not setup, "SETUP has code for a snippet that does not exist"


def test_commands_that_are_not_run_have_valid_arguments():
    lines = [line for blocks in PAGES.values() for b in blocks if b.language == "sh" and NOT_RUN in b.text
             for line in b.text.replace("\\\n", " ").splitlines()]  # fmt: skip
    commands = [words for line in lines if (words := shlex.split(line, comments=True)) and words[0] == "hindsight-rl"]
    assert len(commands) > 5
    for _, name, *words in commands:
        command_parser(name).parse_args(words)


def test_commands_within_sentences_have_valid_arguments():
    texts = [MADE.sub("", (ROOT / place).read_text(encoding="utf-8")) for place in PAGES]
    codes = [code for text in texts for code in re.findall(r"`hindsight-rl ([a-z]+ [^`\n]+)`", text) if "..." not in code]
    assert len(codes) > 40
    for name, *words in map(shlex.split, codes):
        assert set(flags(words)) - {"--help"} <= set(command_parser(name)._option_string_actions), words


def flags(words):
    return [word.partition("=")[0] for word in words if word.startswith("--")]


def test_the_code_of_the_notebook_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((ROOT / "docs/how-to/ten-minutes.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    namespace = {"__name__": "notebook"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        exec(compile(smaller("".join(cell["source"])), f"cell {number}", "exec"), namespace)
    assert (tmp_path / "runs/puck/report.html").exists()
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1)), "run all cells, in their order"


def test_every_block_names_its_language():
    odd = [f"{b.place}:{b.line}: {b.language or 'none'}" for blocks in PAGES.values() for b in blocks]
    assert [place for place in odd if place.split(": ")[1] not in LANGUAGES] == []


def test_toml_and_json_on_the_pages_are_valid(tmp_path):
    spec = read_spec(make_goal_env("PointReach-v0"))
    for block in (b for blocks in PAGES.values() for b in blocks):
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "toml":
            place = tmp_path / "mine.toml"
            place.write_text(block.text, encoding="utf-8")
            if "[[entry]]" in block.text:
                assert Benchmark(load_suite(str(place)), [0], tmp_path).plan()
            else:
                assert resolve_settings(load_recipe(str(place)), spec, None, {}).from_recipe
