import html
import os
import re

import pytest
from run_files import change_settings, write_changes, write_run

from hindsight_rl.report.page import link, run_page
from hindsight_rl.report.run import read_run


def page_of(path):
    return run_page(read_run(path)).to_html()


def text_of(page):
    """Return the text of a page without tags."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", page)))


def test_changed_options_come_first_and_all_are_folded(tmp_path):
    page = page_of(write_run(tmp_path / "a"))
    changed, rest = page[page.index('id="options"') :].split("<details>")
    assert re.findall(r"<tr><th>(\w+)</th><td>", changed) == ["discount", "tau"]
    assert "<tr><th>hidden</th><td>64 64</td><td></td>" in rest
    assert "All 6 options" in rest
    discount = "<tr><th>discount</th><td>0.9</td><td>you (default 0.98, recipe 0.95)</td><td>discount per step</td></tr>"
    assert discount in changed
    assert "<td>recipe (default 0.005)</td>" in changed


def test_an_option_of_the_recipe_that_equals_the_default_is_not_listed_as_changed(tmp_path):
    facts = {"discount": {"default": 0.9, "recipe": 0.9, "source": "recipe"}}
    facts["tau"] = {"default": 0.05, "recipe": 0.1, "source": "given"}
    page = page_of(change_settings(write_run(tmp_path / "a"), explained=facts))
    changed = page[page.index('id="options"') :].split("<details>")[0]
    assert re.findall(r"<tr><th>(\w+)</th><td>", changed) == ["tau"]


def test_tiles_have_units_and_the_options_of_the_run(tmp_path):
    counts = {"offline_updates": [100] * 4, "catch_up_updates": [0, 0, 900, 900]}
    path = change_settings(write_run(tmp_path / "a", **counts), options={"updates_per_step": 10.0})
    text = text_of(page_of(path))
    assert "success 100% 95 % interval 50% to 100%, last evaluation" in text
    assert "final distance 0 in units of the goal, mean of the last evaluation" in text
    assert (
        "updates 4,000 10 for each of 300 training steps, 900 with which new agents caught up, 100 from demonstrations"
        in text
    )
    assert "time 8 s of collecting and updating" in text


def test_updates_that_were_not_counted_by_kind_are_not_explained(tmp_path):
    assert "updates 4,000 time" in text_of(page_of(write_run(tmp_path / "a")))


def test_what_changed_and_why_is_in_the_page(tmp_path):
    path = write_run(tmp_path / "a")
    assert "What changed, and why?" not in page_of(path)
    write_changes(path, (150, 3.0, "noise", ""), (250, 5.0, "", "the success in training was low (2%)"))
    text = text_of(page_of(path))
    assert "step what changed why 150 noise: 0.1 → 0.2 the goal rests 250 a new agent takes over" in text
    assert "learns from the stored episodes the success in training was low (2%)" in text


def test_what_was_not_found_or_is_not_used_is_in_the_page(tmp_path):
    path = write_run(tmp_path / "a")
    assert "What was not found" not in page_of(path)
    change_settings(path, not_found=["no mirrors: places differ"], not_used=["noise = 0.5, since you set noise = 0.1"])
    text = text_of(page_of(path))
    assert "not found no mirrors: places differ not used noise = 0.5, since you set noise = 0.1" in text


def test_options_that_were_found_have_their_reason(tmp_path):
    facts = {"tau": {"default": 0.005, "source": "task"}}
    path = change_settings(write_run(tmp_path / "a"), explained=facts, reasons={"tau": "the default of goals that rest"})
    assert "<td>task (default 0.005): the default of goals that rest</td>" in page_of(path)


def test_the_wall_time_is_shown_by_part(tmp_path):
    text = text_of(page_of(write_run(tmp_path / "a")))
    speeds = "collect 2.0 s 200 env steps per second update 6.0 s 667 updates per second"
    assert f"start not recorded {speeds} evaluate not recorded write not recorded in all 8.0 s" in text
    columns = {"start_seconds": [3.0] * 4, "evaluate_seconds": [1.0, 2.0, 3.0, 4.0], "write_seconds": [0.5] * 4}
    text = text_of(page_of(write_run(tmp_path / "b", **columns)))
    assert f"start 3.0 s {speeds} evaluate 4.0 s write 0.5 s in all 15.5 s" in text


def test_task_and_machine_are_shown(tmp_path):
    text = text_of(page_of(write_run(tmp_path / "a")))
    assert "environment Task-v0 steps per episode, at most 50 reward of a step -1 to 0" in text
    assert "python 3.11 cores 2 numpy 2.0" in text
    spec = {"env_id": "Task-v0", "reward_low": "-inf", "reward_high": "inf"}
    text = text_of(page_of(write_run(tmp_path / "b", spec=spec)))
    assert "steps per episode, at most none reward of a step range unknown" in text


AGENT_METRICS = {
    "dqn": (),
    "qrdqn": (),
    "ddpg": ("train/actor_loss",),
    "td3": ("train/actor_loss",),
    "sac": ("train/actor_loss", "train/entropy_coefficient", "train/entropy"),
    "tqc": ("train/actor_loss", "train/entropy_coefficient", "train/entropy"),
}
RATES = {"solved": (0.0, 1.0, 1.0), "good": (0.0, 0.8, 0.9), "bad": (0.9, 0.8, 0.1), "stuck": (0.0, 0.0, 0.0)}


@pytest.mark.parametrize("agent", AGENT_METRICS)
@pytest.mark.parametrize("result", RATES)
def test_a_page_says_of_each_agent_what_is_true_of_it(tmp_path, agent, result):
    columns = {name: [1.0, 0.5, 0.25] for name in AGENT_METRICS[agent]}
    page = run_page(read_run(write_run(tmp_path / "a", RATES[result], agent, **columns)))
    levels = {"solved": "good", "good": "partly", "bad": "bad", "stuck": "bad"}
    assert page.verdict.level == levels[result]
    assert ("Solved at 200 environment steps of training" in page.verdict.text) == (result == "solved")
    plots = {plot.key: plot for section in page.sections for plot in section.plots}
    assert ("actor_loss" in plots) == (agent not in ("dqn", "qrdqn"))
    has_entropy = agent in ("sac", "tqc")
    assert ("entropy_coefficient" in plots) == has_entropy
    assert ("The entropy bonus is included" in plots["q"].caption) == has_entropy
    html_text = page.to_html()
    for advice in ("Lower learning_rate", "Set clip_targets", "Explore more", "Healthy"):
        assert advice not in html_text


def test_warnings_and_checks_are_shown(tmp_path):
    text = text_of(page_of(write_run(tmp_path / "a")))
    assert "No warnings. Checked, as far as recorded: a fall of the success, infinite values" in text
    page = page_of(write_run(tmp_path / "b", failed_jobs=[2] * 4))
    assert "⚠ Warnings The environment or a worker failed 2 times" in text_of(page)


def test_constant_dimensions_of_the_goals_are_named(tmp_path):
    assert "goal[2] is 0.425 everywhere. Shown: the evaluation" in text_of(page_of(write_run(tmp_path / "a")))
    page = page_of(write_run(tmp_path / "b", goals=lambda n: [1.0]))
    assert "goal[0] is 1 everywhere." in text_of(page)
    assert "Shown: the evaluation" not in page
    assert 'id="slider"' not in page
    assert "No goal was evaluated yet." in text_of(page_of(write_run(tmp_path / "c", ())))


@pytest.mark.parametrize("name", ["</script><script>alert(1)</script>", "\ud800"])
def test_a_hostile_name_is_only_text(tmp_path, name):
    page = page_of(write_run(tmp_path / "a", spec={"env_id": name}))
    assert "<script>alert" not in page


def test_links_are_quoted():
    assert link("a b/é#1?.html") == "a%20b/%C3%A9%231%3F.html"
    assert link(os.fsdecode(b"run-\xe9")) == "run-%E9"
