"use strict";
// Draws the panels that lie in this page as JSON, one after another, in the colours of the page's style.
(() => {
  const panels = JSON.parse(document.getElementById("panels").textContent);
  const slider = document.getElementById("when");
  const config = { responsive: true, displayModeBar: false };

  function style(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  }

  function faded(hex, alpha) {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    return `rgba(${red},${green},${blue},${alpha})`;
  }

  // "var:blue" and "var:blue@0.3" become colours; numbers pass.
  function coloured(value) {
    if (typeof value === "string" && value.startsWith("var:")) {
      const [name, alpha] = value.slice(4).split("@");
      return alpha ? faded(style(name), alpha) : style(name);
    }
    if (Array.isArray(value)) return typeof value[0] === "object" && value[0] !== null ? value.map(coloured) : value;
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, coloured(part)]));
  }

  function merged(base, more) {
    const result = { ...base };
    for (const [key, value] of Object.entries(more)) {
      const both = value && typeof value === "object" && !Array.isArray(value) && result[key];
      result[key] = both ? merged(result[key], value) : value;
    }
    return result;
  }

  function layoutOf(panel) {
    const axis = {
      gridcolor: style("line"), zeroline: false, linecolor: style("line"),
      title: { font: { size: 12, color: style("muted") }, standoff: 6 },
    };
    const base = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 58, r: 58, t: 12, b: 42 },
      font: { family: "system-ui, Segoe UI, Roboto, sans-serif", size: 12, color: style("ink") },
      showlegend: false, hovermode: panel.goals ? "closest" : "x unified", xaxis: axis, yaxis: axis,
      hoverlabel: { bgcolor: style("card"), bordercolor: style("line"), font: { color: style("ink") } },
    };
    return merged(base, coloured(panel.layout));
  }

  function points(part, name, keep, marker, text) {
    const rows = part.x.map((_, row) => row).filter(keep);
    return {
      type: "scatter", mode: "markers", name, marker, x: rows.map((row) => part.x[row]), y: rows.map((row) => part.y[row]),
      ...(text ? { text: rows.map(text), hovertemplate: "(%{x:.3~g}, %{y:.3~g})<br>%{text}" } : { hoverinfo: "skip" }),
    };
  }

  // The latest evaluated episodes up to the chosen evaluation, over where training had been by then.
  function traces(panel) {
    if (!panel.goals) return coloured(panel.traces);
    const { evaluated, trained, steps, shown } = panel.goals;
    const until = steps[slider ? Number(slider.value) : steps.length - 1];
    const seen = evaluated.step.filter((step) => step <= until).length;
    const isShown = (row) => row < seen && (row >= seen - shown || evaluated.step[row] === until);
    const tell = (row) => `${evaluated.success[row] ? "success" : "failure"} at ${evaluated.step[row].toLocaleString()} steps` +
      (evaluated.distance[row] === null ? "" : `<br>final distance ${evaluated.distance[row]}`);
    return [
      points(trained, "training", (row) => trained.step[row] <= until, { color: faded(style("muted"), 0.35), size: 4 }),
      points(evaluated, "success", (row) => isShown(row) && evaluated.success[row], { color: faded(style("blue"), 0.85), size: 7 }, tell),
      points(evaluated, "failure", (row) => isShown(row) && !evaluated.success[row],
        { color: style("red"), size: 9, symbol: "x-thin", line: { width: 2, color: style("red") } }, tell),
    ];
  }

  // A map shows where goals are asked, and keeps its axes while the slider moves.
  function fixed(panel, layout) {
    if (!panel.goals) return layout;
    for (const axis of ["x", "y"]) {
      const all = panel.goals.evaluated[axis].filter((value) => value !== null);
      const low = all.reduce((a, b) => Math.min(a, b)), high = all.reduce((a, b) => Math.max(a, b));
      const room = 0.12 * (high - low || 1);
      layout[axis + "axis"].range = [low - room, high + room];
    }
    return layout;
  }

  function draw(panel) {
    const layout = fixed(panel, layoutOf(panel));
    return Plotly.react(document.getElementById("plot-" + panel.key), traces(panel), layout, config);
  }

  // From the top down, with room between for the reader's own moves; `opened`: milliseconds until the first screen stood.
  function drawAll() {
    let next = 0;
    (function more() {
      const place = next < panels.length && document.getElementById("plot-" + panels[next].key).getBoundingClientRect();
      if (!place || place.top > innerHeight) document.body.dataset.opened ??= String(Math.round(performance.now()));
      if (!place) {
        document.body.dataset.drawn = String(panels.length);
        return;
      }
      draw(panels[next++]);
      setTimeout(more, 0);
    })();
  }

  function tellWhen() {
    const steps = panels.find((panel) => panel.goals).goals.steps;
    document.getElementById("when-told").textContent = `${steps[Number(slider.value)].toLocaleString()} steps`;
  }

  if (typeof Plotly === "undefined") {
    document.getElementById("missing").hidden = false;
    return;
  }
  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  if (slider) {
    tellWhen();
    slider.addEventListener("input", () => {
      tellWhen();
      panels.filter((panel) => panel.goals).forEach(draw);
    });
  }
})();
