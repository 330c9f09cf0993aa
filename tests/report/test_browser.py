"""The page in a real browser, without a network: every plot is drawn, and nothing is said on the console."""

import shutil
import time

import pytest
from run_files import write_run

from hindsight.report.write import write_report

webdriver = pytest.importorskip("selenium.webdriver", reason="the browser test needs selenium: pip install selenium")
pytest.importorskip("plotly", reason="a report needs plotly: pip install plotly")

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="there is no Chromium here: apt-get install chromium chromium-driver"
)
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --window-size=1200,900"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in [*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('browser')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


def visit(browser, page):
    browser.get(page.resolve().as_uri())
    deadline = time.monotonic() + 60
    while browser.execute_script("return document.body.dataset.drawn") is None:
        assert time.monotonic() < deadline, "the plots were not drawn"
        time.sleep(0.02)
    assert browser.get_log("browser") == []


def drawn(browser):
    """Of each plot its name, and how many lines and points it shows."""
    count = "p => [p.id.slice(5), p.querySelectorAll('path.js-line, path.point, path.js-fill').length]"
    return dict(browser.execute_script(f"return [...document.querySelectorAll('.plot')].map({count})"))


def test_every_plot_of_a_run_is_drawn_and_nothing_is_said(browser, tmp_path):
    run = write_run(tmp_path / "a", **{"train/goals_already_achieved": [0.1] * 4, "train/actor_loss": [1.0] * 4})
    visit(browser, write_report([run]))
    plots = drawn(browser)
    assert len(plots) == 13
    assert all(plots.values()), plots
    assert plots["goals-1"] == 40 + 4  # evaluated, and where training ended
    assert browser.find_element("tag name", "h1").text.endswith("100% of unseen episodes succeed")

    browser.execute_script("const s = document.getElementById('when'); s.value = 0; s.dispatchEvent(new Event('input'))")
    assert drawn(browser)["goals-1"] == 10 + 1
    assert browser.find_element("id", "when-told").text == "100 steps"

    rows = "return [...document.querySelectorAll('.options tbody tr')].filter(r => r.offsetHeight).length"
    assert browser.execute_script(rows) == 4
    browser.execute_script("document.getElementById('only').click()")
    assert browser.execute_script(rows) == 2  # discount and tau


def test_a_page_that_stands_alone_and_one_of_several_runs_are_drawn(browser, tmp_path):
    runs = [write_run(tmp_path / agent, agent=agent) for agent in ("td3", "sac")]
    visit(browser, write_report(runs, tmp_path / "alone" / "page.html", standalone=True))
    assert len(plots := drawn(browser)) == 6
    assert all(plots.values()), plots


def test_without_its_script_the_page_says_so(browser, tmp_path):
    page = write_report([write_run(tmp_path / "a")])
    (page.parent / "plotly.min.js").unlink()
    browser.get(page.resolve().as_uri())
    assert "--standalone" in browser.find_element("id", "missing").text
    assert all("plotly.min.js" in entry["message"] for entry in browser.get_log("browser"))
