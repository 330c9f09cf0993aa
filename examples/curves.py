"""Draw curves with their moving averages, and a table of settings, on one Plotly page."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

CURVES = {  # name: window of its moving average
    "return": 10,
    "success": 10,
    "final distance": 10,
    "critic loss": 200,
    "actor loss": 200,
    "mean Q": 200,
}


def draw(title, curves, settings, path):
    """Write the page.

    curves: name -> values, for each name of CURVES.
    settings: name -> (value, meaning).
    path: of the page.
    """
    cells = [[{}] * 3, [{}] * 3, [{"type": "table", "colspan": 3}, None, None]]
    figure = make_subplots(3, 3, subplot_titles=list(curves), specs=cells, vertical_spacing=0.09)
    for i, (name, values) in enumerate(curves.items()):
        window = min(CURVES[name], max(len(values), 1))
        mean = np.convolve(values, np.full(window, 1 / window), "valid") if values else []
        for y, first, colour in ((values, 0, "#c3cede"), (mean, window - 1, "#1f5fa8")):
            x = np.arange(first, first + len(y))
            figure.add_trace(go.Scatter(x=x, y=y, line_color=colour, showlegend=False), i // 3 + 1, i % 3 + 1)
        figure.update_xaxes(title_text="episode" if i < 3 else "update", row=i // 3 + 1, col=i % 3 + 1)
    columns = zip(*((name, str(value), meaning) for name, (value, meaning) in settings.items()), strict=True)
    table = {"values": list(columns), "align": "left", "height": 24}
    header = {"values": ["setting", "value", "meaning"]}
    figure.add_trace(go.Table(header=header, cells=table, columnwidth=[1, 1, 5]), 3, 1)
    figure.update_layout(title=title, height=1100, template="plotly_white").write_html(path)
