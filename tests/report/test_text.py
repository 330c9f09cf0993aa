from hindsight_rl.report.text import duration, format_value


def test_values_of_options():
    values = [None, True, 0, 10**400, 0.005, [64, 64], [], (), "", "td3", ("o0=-o0 a0=-a0", "o1=-o1"), (0.5, 1e-7)]
    texts = ["none", "True", "0", str(10**400), "0.005", "64 64", "none", "none", "none", "td3"]
    assert [format_value(value) for value in values] == [*texts, "o0=-o0 a0=-a0, o1=-o1", "0.5 1e-07"]


def test_durations():
    assert [duration(s) for s in (4.21, 150, 7200)] == ["4.21 s", "2 min", "2.0 h"]
