"""The page in a real browser, without a network: every plot is drawn, and the console stays empty."""

import itertools
import shutil
import time

import pytest
from run_files import change_settings, write_run

from hindsight_rl.report.write import write_report

webdriver = pytest.importorskip("selenium.webdriver", reason="the browser test needs selenium: pip install selenium")
pytest.importorskip("plotly", reason="a report needs plotly: pip install plotly")

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="Chromium is missing: apt-get install chromium chromium-driver"),
    pytest.mark.usefixtures("no_pictures"),
]
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


def visit(browser, page, width=1200):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.resolve().as_uri())
    deadline = time.monotonic() + 60
    while browser.execute_script("return document.body.dataset.drawn") is None:
        assert time.monotonic() < deadline, "the plots were not drawn"
        time.sleep(0.02)
    assert browser.get_log("browser") == []


def drawn(browser):
    """Return the number of lines and points of each plot, by key."""
    count = "p => [p.id.slice(5), p.querySelectorAll('path.js-line, path.point, path.js-fill').length]"
    return dict(browser.execute_script(f"return [...document.querySelectorAll('.plot')].map({count})"))


def test_every_plot_of_a_run_is_drawn(browser, tmp_path):
    run = write_run(tmp_path / "a", **{"train/goals_already_achieved": [0.1] * 4, "train/actor_loss": [1.0] * 4})
    visit(browser, write_report([run]))
    plots = drawn(browser)
    assert len(plots) == 10
    assert all(plots.values()), plots
    assert plots["goals-0-1"] == 40 + 4  # evaluation episodes, and training episodes
    assert browser.find_element("tag name", "h1").text.endswith("100% of the evaluation episodes succeed")

    slide = "const s = document.getElementById('slider'); s.value = 0; s.dispatchEvent(new Event('input'))"
    browser.execute_script(slide)
    assert drawn(browser)["goals-0-1"] == 10 + 1
    assert browser.find_element("id", "slider-value").text == "100 steps"


@pytest.mark.slow
def test_the_browser_draws_the_numbers_of_the_run(browser, tmp_path):
    """Read the data back from Plotly: goals are where they are, times are in the unit of the axis."""
    run = write_run(tmp_path / "a", seconds=[1800.0, 3600.0, 5400.0, 7200.0], goals=lambda n: [n / 10, -n / 10, 0.425])
    visit(browser, write_report([run]))
    data = "return document.getElementById('plot-goals-0-1').data.map(t => [t.name, t.x.length, t.x, t.y])"
    traces = {name: (count, list(zip(x, y, strict=True))) for name, count, x, y in browser.execute_script(data)}
    assert set(traces["success"][1]) | set(traces["failure"][1]) == {(n / 10, -n / 10) for n in range(10)}
    assert (traces["success"][0], traces["failure"][0], traces["training"][0]) == (25, 15, 4)
    success = (
        "const p = document.getElementById('plot-success-seconds'); return [p.data.at(-1).x, p.layout.xaxis.title.text]"
    )
    assert browser.execute_script(success) == [[30, 60, 90, 120], "minutes of collecting and updating"]


LABELS = """
return [...document.querySelectorAll('.plot')].flatMap(plot => ['.xtick text', '.ytick text'].map(
    kind => [...plot.querySelectorAll(kind)].map(label => label.getBoundingClientRect())))
"""
FILLED = """
return [...document.querySelectorAll('.plot:not(.map)')].map(plot => {
    const area = plot.querySelector('.nsewdrag').getBoundingClientRect(), card = plot.getBoundingClientRect();
    const last = Math.max(...plot.data.flatMap(trace => trace.x).filter(Number.isFinite)), end = plot.layout.xaxis.range[1];
    return area.width / card.width * last / end;
})
"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_curves_fill_their_cards_and_labels_do_not_overlap(browser, tmp_path, width):
    columns = {"train/actor_loss": [1.0, 2.0, 3.0, 3.9], "train/q_mean": [-1e-3, -1.0, -2.0, -123.0]}
    run = write_run(tmp_path / "a", env_steps=[100, 250_000, 480_000, 1_234_567], **columns)
    visit(browser, write_report([run]), width)
    assert min(browser.execute_script(FILLED)) > 0.7
    for boxes in browser.execute_script(LABELS):
        for one, other in itertools.combinations(boxes, 2):
            beside = one["right"] <= other["left"] or other["right"] <= one["left"]
            assert beside or one["bottom"] <= other["top"] or other["bottom"] <= one["top"]
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_the_tables_of_a_comparison_are_not_cut(browser, tmp_path):
    runs = []
    for name in ("subgoals-and-symmetries", "plain"):
        for seed in range(3):
            path = write_run(tmp_path / f"{name}-{seed}", (0.0, 0.333 + 0.1 * seed), seed=seed)
            change_settings(path, name=name, spec={"env_id": "FetchPickAndPlaceDense-v4"}, variant="declared")
            runs.append(path)
    visit(browser, write_report(runs), 1280)
    cut = "return [...document.querySelectorAll('.scroll')].map(box => box.scrollWidth - box.clientWidth)"
    assert browser.execute_script(cut) == [0, 0]
    assert browser.find_element("css selector", "figcaption li").text == "subgoals-and-symmetries, td3, declared"


@pytest.mark.slow
def test_options_are_folded(browser, tmp_path):
    visit(browser, write_report([write_run(tmp_path / "a")]))
    shown = "return [...document.querySelectorAll('.options tbody tr')].filter(r => r.checkVisibility()).length"
    assert browser.execute_script(shown) == 2  # discount and tau
    browser.execute_script("document.querySelector('summary').click()")
    assert browser.execute_script(shown) == 2 + 6


@pytest.mark.slow
def test_a_standalone_page_of_several_runs_is_drawn(browser, tmp_path):
    runs = [write_run(tmp_path / agent, agent=agent) for agent in ("td3", "sac")]
    visit(browser, write_report(runs, tmp_path / "alone" / "page.html", standalone=True))
    assert len(plots := drawn(browser)) == 6
    assert all(plots.values()), plots


def test_a_page_without_its_script_says_so(browser, tmp_path):
    page = write_report([write_run(tmp_path / "a")])
    (page.parent / "plotly.min.js").unlink()
    browser.get(page.resolve().as_uri())
    assert "--standalone" in browser.find_element("id", "missing").text
    assert all("plotly.min.js" in entry["message"] for entry in browser.get_log("browser"))
