import re

import numpy as np
import pytest
from run_files import change_settings, write_changes, write_run

from hindsight_rl.report import write
from hindsight_rl.report.comparison import comparison_page
from hindsight_rl.report.figures import LegendEntry, Plot
from hindsight_rl.report.page import run_page
from hindsight_rl.report.run import read_run
from hindsight_rl.report.write import pictures_folder, write_report

pictures = pytest.importorskip("hindsight_rl.report.pictures", reason="pictures need matplotlib")


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_every_curve_of_a_report_is_an_svg_and_a_png(tmp_path, monkeypatch):
    monkeypatch.setattr(write, "_plotly_script", lambda: "")
    run = write_run(tmp_path / "a")
    write_changes(run, (150, 3.0, "noise", ""), (250, 5.0, "noise", "its success was low"))
    page = write_report([run])
    plots = [plot for section in run_page(read_run(run)).sections for plot in section.plots if plot.curves]
    stems = [re.sub(r"[^\w]+", "-", plot.title.lower()) for plot in plots]
    assert len(stems) == 7
    assert names_in(pictures_folder(page)) == sorted(f"{stem}.{kind}" for stem in stems for kind in ("svg", "png"))
    success = pictures_folder(page) / "success-rate-against-steps"
    assert success.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert success.with_suffix(".svg").read_text().startswith("<?xml")


def test_pictures_of_a_comparison_name_the_environment_and_the_entries(tmp_path):
    paths = [write_run(tmp_path / name, rates) for name, rates in (("one", (0.0, 1.0)), ("two", (0.0, 0.5)))]
    for path in paths:
        change_settings(path, name=path.name)
    section = comparison_page([read_run(path) for path in paths], tmp_path).sections[1]
    pictures.write_pictures(section.plots[:1], tmp_path / "pictures")
    assert names_in(tmp_path / "pictures") == [f"Task-v0-success-rate-against-steps.{kind}" for kind in ("png", "svg")]
    comments = re.findall("<!-- (.*) -->", (tmp_path / "pictures" / "Task-v0-success-rate-against-steps.svg").read_text())
    assert {"one, td3, none", "two, td3, none", "Task-v0", "environment steps"} <= set(comments)


def test_the_same_plot_gives_the_same_bytes_whatever_its_names():
    plot = Plot("key", "Loss", "", scale="log", subject="$ / ../x")
    plot.curve(np.array([1.0, 2.0]), np.array([1.0, 100.0]), "$\\alpha_ $", "blue@0.35")
    plot.legend.append(LegendEntry("$\\alpha_ $", "blue"))
    assert pictures.pictures_of(plot) == pictures.pictures_of(plot)


def test_a_name_cannot_leave_the_folder(tmp_path):
    plot = Plot("key", "Loss", "", subject="/../../" + "x" * 300)
    plot.curve(np.array([1.0]), np.array([1.0]), "loss", "blue")
    pictures.write_pictures([plot], tmp_path / "pictures")
    assert len(names_in(tmp_path / "pictures")) == 2
    assert names_in(tmp_path) == ["pictures"]
