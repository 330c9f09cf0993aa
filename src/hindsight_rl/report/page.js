"use strict";
// Draws the plots, which this page holds as JSON, in the colours of its style sheet.
(() => {
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const slider = document.getElementById("slider");
  const config = { responsive: true, displayModeBar: false };
  const labelHeight = 0.1; // as a fraction of the height of a plot
  const labelWidth = 7.5; // pixels of a character of the labels at the ends of curves
  const leftMargin = 60; // about as wide as Plotly makes it for the labels of the y axis
  const rowHeight = 20, longestLabel = 36; // pixels and characters of a row of a plot of intervals
  const tickWidth = 50; // pixels that a label of the x axis needs at least

  function style(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  }

  // "blue" and "blue@0.3": a colour of the style sheet, and the same with an opacity.
  function colour(text) {
    const [name, alpha] = text.split("@");
    if (!alpha) return style(name);
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(style(name).slice(at, at + 2), 16));
    return `rgba(${red},${green},${blue},${alpha})`;
  }

  const lowest = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
  const highest = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);

  function baseLayout(xTitle, hovermode) {
    const axis = { gridcolor: style("line"), zeroline: false, linecolor: style("line"), automargin: true };
    const title = { text: xTitle, font: { size: 12, color: style("muted") }, standoff: 6 };
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 12, r: 14, t: 12, b: 42 },
      font: { family: "system-ui, Segoe UI, Roboto, sans-serif", size: 12, color: style("ink") },
      showlegend: false, hovermode, xaxis: { ...axis, title }, yaxis: { ...axis },
      hoverlabel: { bgcolor: style("card"), bordercolor: style("line"), font: { color: style("ink") } },
    };
  }

  function verticalLines(plot) {
    return plot.marks.map(({ x, colour: name, dash }) => ({
      type: "line", yref: "paper", y0: 0, y1: 1, x0: x / plot.unit.size, x1: x / plot.unit.size,
      line: { color: style(name), width: 1.5, dash },
    }));
  }

  function curveTraces(plot) {
    const x = (values) => values.map((value) => value / plot.unit.size);
    const bands = plot.bands.map((band) => ({
      type: "scatter", mode: "lines", x: x(band.x), y: band.y, fill: "toself", fillcolor: colour(band.colour),
      line: { width: 0 }, hoverinfo: "skip",
    }));
    const format = plot.scale === "fraction" ? ".0%" : ".3~g";
    const curves = plot.curves.map((curve) => ({
      type: "scatter", mode: curve.x.length > 1 ? "lines" : "markers", x: x(curve.x), y: curve.y, name: curve.name,
      line: { color: colour(curve.colour), width: curve.width, dash: curve.dash }, hovertemplate: `%{y:${format}}`,
    }));
    return [...bands, ...curves];
  }

  // Labels at the ends of curves, moved up so that they do not overlap.
  function labels(plot) {
    const onAxis = plot.is_log ? Math.log10 : (value) => value;
    const values = [...plot.curves.flatMap((curve) => curve.y), ...plot.levels.map((level) => level.y)].map(onAxis);
    const height = plot.scale === "fraction" ? labelHeight : labelHeight * (highest(values) - lowest(values));
    let before = -Infinity;
    return plot.curves.filter((curve) => curve.label)
      .map((curve) => ({ curve, y: onAxis(curve.y[curve.y.length - 1]) })).sort((a, b) => a.y - b.y)
      .map(({ curve, y }) => {
        before = Math.max(y, before + height);
        return {
          x: 1, xref: "paper", y: before, text: curve.label, showarrow: false, xanchor: "left",
          yanchor: "middle", xshift: 6, font: { color: colour(curve.colour), size: 12 },
        };
      });
  }

  // The curves fill the plot. The margin on the right has room for the labels, and is small without labels.
  function drawCurves(plot, element) {
    const layout = baseLayout(plot.unit.title, "x unified"), ends = labels(plot);
    const last = highest([...plot.curves.flatMap((curve) => curve.x), ...plot.marks.map((mark) => mark.x)]);
    const line = { color: style("muted"), width: 1, dash: "dot" };
    const note = { showarrow: false, xanchor: "left", font: { color: style("muted"), size: 11 } };
    layout.margin.r += highest([0, ...ends.map((end) => labelWidth * end.text.length)]);
    Object.assign(layout.xaxis, {
      tickformat: plot.x === "env_steps" ? "~s" : ",.4~g", range: [0, (last || 1) / plot.unit.size],
      nticks: Math.max(2, Math.floor((element.clientWidth - leftMargin - layout.margin.r) / tickWidth)),
    });
    Object.assign(layout.yaxis, { tickformat: plot.scale === "fraction" ? ".0%" : ".3~g", nticks: 6 });
    if (plot.scale === "fraction") layout.yaxis.range = [-0.04, 1.08];
    if (plot.is_log) Object.assign(layout.yaxis, { type: "log", dtick: 1 });
    layout.shapes = [
      ...plot.levels.map(({ y }) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line })),
      ...verticalLines(plot),
    ];
    layout.annotations = [
      ...plot.levels.map(({ y, text }) => ({ ...note, xref: "paper", x: 0, xshift: 3, y, text, yanchor: "top" })),
      ...ends,
    ];
    return Plotly.react(element, curveTraces(plot), layout, config);
  }

  function points(part, name, keep, marker, text) {
    const rows = part.x.map((_, row) => row).filter((row) => part.x[row] !== null && keep(row));
    return {
      type: "scatter", mode: "markers", name, marker, x: rows.map((row) => part.x[row]), y: rows.map((row) => part.y[row]),
      ...(text ? { text: rows.map(text), hovertemplate: "(%{x:.3~g}, %{y:.3~g})<br>%{text}" } : { hoverinfo: "skip" }),
    };
  }

  function evaluationSteps() {
    return [...new Set(plots.find((plot) => plot.goals.evaluated).goals.evaluated.steps)].sort((a, b) => a - b);
  }

  // The evaluation that the slider selects, at least the latest `min_shown` episodes up to it, and the training before.
  function mapTraces({ evaluated, trained, min_shown }) {
    const until = evaluationSteps()[Number(slider.value)];
    const past = evaluated.steps.filter((step) => step <= until).length;
    const isShown = (row) => row < past && (row >= past - min_shown || evaluated.steps[row] === until);
    const hover = (row) => `${evaluated.success[row] ? "success" : "failure"} at ${evaluated.steps[row].toLocaleString()} steps` +
      (evaluated.distance[row] === null ? "" : `<br>final distance ${evaluated.distance[row].toPrecision(3)}`);
    const cross = { color: style("red"), size: 9, symbol: "x-thin", line: { width: 2, color: style("red") } };
    return [
      points(trained, "training", (row) => trained.steps[row] <= until, { color: colour("muted@0.35"), size: 4 }),
      points(evaluated, "success", (row) => isShown(row) && evaluated.success[row], { color: colour("blue@0.85"), size: 7 }, hover),
      points(evaluated, "failure", (row) => isShown(row) && !evaluated.success[row], cross, hover),
    ];
  }

  // The axes of a map span the desired goals, and stay when the slider moves.
  function drawMap(plot, element) {
    const { x_title, y_title, evaluated } = plot.goals;
    const layout = baseLayout(x_title, "closest");
    layout.yaxis.title = { ...layout.xaxis.title, text: y_title };
    for (const axis of ["x", "y"]) {
      const low = lowest(evaluated[axis]), high = highest(evaluated[axis]);
      const room = 0.12 * (high - low || 1);
      layout[axis + "axis"].range = [low - room, high + room];
    }
    return Plotly.react(element, mapTraces(plot.goals), layout, config);
  }

  // A row for each label, from the top down; the ends of an interval are drawn as error bars.
  function drawRows(plot, element) {
    const labels = [...new Set(plot.rows.map((row) => row.label))], longest = Math.min(longestLabel, element.clientWidth / 20);
    const tooLong = (label) => label.length > longest ? label.slice(0, longest) + " …" : label;
    const width = element.clientWidth - labelWidth * highest(labels.map((label) => tooLong(label).length));
    const nticks = Math.max(2, Math.floor(width / tickWidth));
    const title = plot.x_title.replace(new RegExp(`(.{1,${Math.floor(width / labelWidth)}})(?:\\s|$)`, "g"), "$1<br>").slice(0, -4);
    const layout = baseLayout(title, "closest");
    element.style.height = `${rowHeight * labels.length + 70}px`;
    Object.assign(layout.yaxis, {
      tickvals: labels.map((_, at) => at), ticktext: labels.map(tooLong), range: [labels.length - 0.4, -0.6],
    });
    Object.assign(layout.xaxis, { tickformat: plot.scale === "fraction" ? ".0%" : ".3~g", nticks });
    if (plot.rows.every((row) => Number.isInteger(row.value))) {
      layout.xaxis.dtick = Math.max(1, Math.ceil(highest(plot.rows.map((row) => row.value)) / nticks));
    }
    const traces = [...new Set(plot.rows.map((row) => row.colour))].map((name) => {
      const rows = plot.rows.filter((row) => row.colour === name);
      return {
        type: "scatter", mode: "markers", marker: { color: colour(name), size: 7 }, x: rows.map((row) => row.value),
        y: rows.map((row) => labels.indexOf(row.label)), text: rows.map((row) => row.text.replace(/(.{60}\S*) /g, "$1<br>")),
        hovertemplate: "%{text}<extra></extra>", error_x: {
          type: "data", symmetric: false, color: colour(name), thickness: 1.5, width: 3,
          array: rows.map((row) => row.high - row.value), arrayminus: rows.map((row) => row.value - row.low),
        },
      };
    });
    const limited = plot.rows.filter((row) => row.limit !== null);
    traces.push({
      type: "scatter", mode: "markers", marker: { symbol: "line-ns", size: 14, line: { color: style("red"), width: 1.5 } },
      x: limited.map((row) => row.limit), y: limited.map((row) => labels.indexOf(row.label)), hoverinfo: "skip",
    });
    return Plotly.react(element, traces, layout, config);
  }

  function draw(plot) {
    const element = document.getElementById("plot-" + plot.key);
    if (plot.rows.length) return drawRows(plot, element);
    return plot.goals.evaluated ? drawMap(plot, element) : drawCurves(plot, element);
  }

  // Draws from the top down, with pauses for input. `opened`: milliseconds until the first screen was drawn.
  function drawAll() {
    let next = 0;
    (function more() {
      const element = next < plots.length && document.getElementById("plot-" + plots[next].key).getBoundingClientRect();
      if (!element || element.top > innerHeight) document.body.dataset.opened ??= String(Math.round(performance.now()));
      if (!element) {
        document.body.dataset.drawn = String(plots.length);
        return;
      }
      draw(plots[next++]);
      setTimeout(more, 0);
    })();
  }

  function showSliderValue() {
    document.getElementById("slider-value").textContent = `${evaluationSteps()[Number(slider.value)].toLocaleString()} steps`;
  }

  if (typeof Plotly === "undefined") {
    document.getElementById("missing").hidden = false;
    return;
  }
  if (slider) {
    slider.max = String(evaluationSteps().length - 1);
    slider.value = slider.max;
    showSliderValue();
    slider.addEventListener("input", () => {
      showSliderValue();
      plots.filter((plot) => plot.goals.evaluated).forEach(draw);
    });
  }
  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
})();
