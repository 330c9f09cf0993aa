"""What the pages say of metrics, files and names is what a run writes and the package has."""

import json
import re
from pathlib import Path

import pytest

import hindsight
from hindsight import HER, callbacks
from hindsight.agents import AGENT_NAMES
from hindsight.cli import main
from hindsight.options import DISCRETE_AGENTS

DOCS = Path(__file__).parents[2] / "docs"
SMALL = {"hidden": (8,), "batch_size": 16, "random_steps": 0, "updates_per_step": 0.2}
OF_EPISODES = {"train/success_rate", "train/return", "train/episode_steps", "train/goals_already_achieved"}


def page(name):
    return (DOCS / name).read_text(encoding="utf-8")


def names_in(text):
    """All that stands in code, word by word."""
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
        logged = set(model.learn(60).trainer.meter.means()) - OF_EPISODES
    text = page(f"agents/{agent}.md")
    told = re.search(r"## What is logged\n(.*?)\n## ", text, re.DOTALL)[1]
    assert set(re.findall(r"`(train/\w+)`", told)) == logged
    assert f"```{{options}} {agent}\n" in text


def test_every_metric_of_a_run_is_explained(run_folder):
    told = names_in(page("metrics.md")) | names_in(page("agents/td3.md"))
    records = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
    assert {name for record in records for name in record} <= told


def test_every_file_of_a_run_and_every_field_of_its_lines_is_explained(run_folder):
    text = page("files.md")
    assert {path.name for path in run_folder.iterdir()} <= set(re.findall(r"[\w.]+", text))
    for name in ("evaluations.jsonl", "episodes.jsonl"):
        (row,) = re.findall(rf"^\| `{name}` \| (.*) \|$", text, re.MULTILINE)
        assert names_in(row) == set(json.loads((run_folder / name).read_text().splitlines()[0]))
    (row,) = re.findall(r"^\| `settings.json` \| (.*) \|$", text, re.MULTILINE)
    assert names_in(row) == set(json.loads((run_folder / "settings.json").read_text()))


def test_the_reference_has_every_public_name():
    text = page("reference.md")
    assert [name for name in hindsight.__all__ if not re.search(rf"hindsight\.{name}$", text, re.MULTILINE)] == []
    told = [name for name, thing in vars(callbacks).items() if getattr(thing, "__module__", "") == callbacks.__name__]
    public = [name for name in told if not name.startswith("_") and name != "Model"]  # which callbacks see as HER
    assert [name for name in public if f"hindsight.callbacks.{name}\n" not in text] == []
