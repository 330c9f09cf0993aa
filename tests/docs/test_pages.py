"""The pages name the metrics, files, options and tests that exist."""

import json
import re
import tomllib
from pathlib import Path

import pytest

import hindsight_rl
from hindsight_rl import HER, callbacks
from hindsight_rl.agents import AGENT_NAMES
from hindsight_rl.cli import main
from hindsight_rl.options import DISCRETE_AGENTS, run_options

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SMALL = {"hidden": (8,), "batch_size": 16, "random_steps": 0, "updates_per_step": 0.2}
EPISODE_METRICS = {"train/success_rate", "train/return", "train/episode_steps", "train/goals_already_achieved"}


def page(name):
    return (DOCS / name).read_text(encoding="utf-8")


def names_in(text):
    """Return the words of all code in a text."""
    return {name for code in re.findall(r"`([^`\n]+)`", text) for name in re.split(r"[,:\s]+", code)}


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "point"
    short = "--steps 300 --eval-every 150 --eval-episodes 2 --keep-every 1 --hidden 8 8 --updates-per-step 0.2"
    assert main(["train", "PointReach-v0", "--folder", str(folder), *short.split()]) == 0
    return folder


@pytest.mark.parametrize("agent", AGENT_NAMES)
def test_the_page_of_an_agent_names_what_it_logs(agent):
    environment = "BitFlipping-v0" if agent in DISCRETE_AGENTS else "PointReach-v0"
    with HER(environment, agent, **SMALL) as model:
        logged = set(model.learn(60).trainer.meter.means()) - EPISODE_METRICS
    text = page(f"agents/{agent}.md")
    logged_text = re.search(r"## What is logged\n(.*?)\n## ", text, re.DOTALL)[1]
    assert set(re.findall(r"`(train/\w+)`", logged_text)) == logged
    assert f"docs/make_tables.py: options {agent} -->" in text


def test_every_metric_of_a_run_is_explained(run_folder):
    explained = names_in(page("metrics.md")) | names_in(page("agents/td3.md"))
    records = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
    assert {name for record in records for name in record} <= explained


def test_every_file_of_a_run_and_every_field_of_its_lines_is_explained(run_folder):
    text = page("files.md")
    assert {path.name for path in run_folder.iterdir()} <= set(re.findall(r"[\w.-]+", text))
    for name in ("evaluations.jsonl", "episodes.jsonl"):
        (row,) = re.findall(rf"^\| `{name}` \| (.*) \|$", text, re.MULTILINE)
        assert names_in(row) == set(json.loads((run_folder / name).read_text().splitlines()[0]))
    (row,) = re.findall(r"^\| `settings.json` \| (.*) \|$", text, re.MULTILINE)
    assert names_in(row) == set(json.loads((run_folder / "settings.json").read_text()))


def test_the_reference_has_every_public_name():
    text = page("reference.md")
    assert [name for name in hindsight_rl.__all__ if not re.search(rf"reference hindsight_rl\.{name}\b", text)] == []
    own = [name for name, member in vars(callbacks).items() if getattr(member, "__module__", "") == callbacks.__name__]
    internal = {"Model", "Trackers", "refuse_missing"}  # a protocol that HER has; for `hindsight-rl train`
    public = [name for name in own if not name.startswith("_") and name not in internal]
    assert [name for name in public if not re.search(rf"hindsight_rl\.callbacks\.{name}\b", text)] == []


def test_every_test_on_a_page_exists():
    found = {place for path in sorted(DOCS.rglob("*.md")) for place in re.findall(r"`(tests/[\w/.:]+)`", path.read_text())}
    assert len(found) > 20
    assert [place for place in sorted(found) if not is_test(*place.split("::"))] == []


def is_test(file, name=""):
    if file.endswith("/"):
        return (ROOT / file).is_dir()
    return (ROOT / file).is_file() and f"def {name}" in (ROOT / file).read_text(encoding="utf-8")


def test_names_of_other_libraries_and_of_older_versions_lead_to_options_that_exist():
    section = page("migrating.md").split("## Names of options")[1]
    pairs = re.findall(r"^\| `.*` \| `(\w+)` \|$", section, re.MULTILINE)
    assert len(pairs) > 20
    options = {name for agent in AGENT_NAMES for name in run_options(agent)}
    assert [ours for ours in pairs if ours not in options] == []
    table = (ROOT / "CHANGELOG.md").read_text().split("| old name | new name |")[1]
    for old in ("mean_share", "random_hold", "led_episodes", "relabel_later", "energy_limit", "stages", "lag"):
        (row,) = (line for line in table.splitlines() if re.match(rf"\|.*`{old}`.*\|.*\|$", line))
        assert set(names_in(row.split("|")[2])) & options


def test_messages_on_the_page_about_failures_exist():
    source = "".join(path.read_text(encoding="utf-8") for path in Path(hindsight_rl.__file__).parent.rglob("*.py"))
    joined = re.sub(r'"\s*f?"', "", source).replace("{self.env} is {'ready' if self.ok else 'not ready'}", "not ready")
    quoted = [text.replace("\\", "") for text in re.findall(r'"([^"|]+)"', page("how-to/my-run-fails.md"))]
    assert len(quoted) > 8
    assert [text for text in quoted if text not in joined] == []


def test_links_of_the_readme_exist():
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text())
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_the_readme_is_short():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 150
    assert len(text.split()) <= 900


def test_install_lines_are_the_same_on_all_pages():
    texts = [path.read_text() for path in (ROOT / "README.md", *DOCS.rglob("*.md"))]
    lines = [line for text in texts for line in re.findall(r"pip install (?!jax|pytest)[^\n`&]*", text)]
    forms = {re.sub(r"\[[\w,]+\]", "[...]", line).removesuffix(" onnxruntime").strip() for line in lines}
    assert forms == {
        'pip install -c constraints.txt ".[...]"',
        'pip install -c constraints.txt -e ".[...]"',
        f'pip install -c constraints.txt "dist/hindsight_rl-{hindsight_rl.__version__}-py3-none-any.whl[...]"',
    }


def test_supported_python_versions_are_the_same_in_readme_and_metadata():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = [line.rsplit(" ", 1)[1] for line in project["classifiers"] if "Python :: 3." in line]
    assert f"Python {versions[0]} to {versions[-1]} on Linux" in (ROOT / "README.md").read_text()
    assert project["requires-python"] == f">={versions[0]},<3.{int(versions[-1].split('.')[1]) + 1}"


def test_every_file_of_the_source_layout_exists():
    package = Path(hindsight_rl.__file__).parent
    names = set(re.findall(r"`([\w/]+\.py)`", page("source-layout.md")))
    assert len(names) > 40
    assert [name for name in names if not ((package / name).exists() or (ROOT / name).exists())] == []
