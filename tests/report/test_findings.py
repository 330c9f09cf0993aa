from hindsight_rl.records.findings import Finding
from hindsight_rl.report.findings import finding_plots
from hindsight_rl.report.page import findings_section

HIDDEN = Finding("column", "column 4", "is hidden", "it adds little", (), 0.01, -0.02, 0.04, 0.1)
SHOWN = Finding("column", "column 5", "is shown", "it adds much", (), 0.6, 0.4, 0.8, 0.1)


def test_columns_are_drawn_with_their_intervals_and_the_limit():
    (plot,) = finding_plots([HIDDEN, SHOWN])
    assert [(row["label"], row["low"], row["value"], row["high"], row["colour"]) for row in plot.rows] == [
        ("column 4", -0.02, 0.01, 0.04, "blue"),
        ("column 5", 0.4, 0.6, 0.8, "orange"),
    ]
    assert [mark["x"] for mark in plot.marks] == [0.1]


def test_each_column_stands_in_the_row_of_its_role():
    agent, other = (
        Finding("group", "agent columns", "are 0, 2", "", (0, 2)),
        Finding("group", "gap columns", "are 1", "", (1,)),
    )
    (plot,) = finding_plots([agent, other])
    assert [(row["label"], row["value"]) for row in plot.rows] == [("agent", 0), ("agent", 2), ("gap", 1)]


def test_a_column_without_a_figure_is_in_the_table_and_not_in_the_plot():
    constant = Finding("column", "column 3", "is hidden", "it never changes")
    section = findings_section([constant], finding_plots([constant]))
    assert section.plots == []
    assert section.tables[0].rows == [("column", "column 3 is hidden", "it never changes")]
