import io

from hindsight_rl.commands.terminal import say, say_command, wrapped

LINE = (
    "training FetchPickAndPlace-v4 with td3, recipe 'default' (inferred: nothing found yet), seed 0, in "
    "runs/FetchPickAndPlace-v4/td3-seed0-1"
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_long_line_breaks_between_words():
    assert wrapped(LINE, 80).splitlines() == [
        "training FetchPickAndPlace-v4 with td3, recipe 'default' (inferred: nothing",
        "    found yet), seed 0, in runs/FetchPickAndPlace-v4/td3-seed0-1",
    ]


def test_indented_lines_stay_indented_and_long_words_whole():
    path = "/a-long-path/" + 30 * "x"
    assert wrapped(f"  noise = 0.2 in {path}\n\nend", 20).splitlines() == ["  noise = 0.2 in", f"      {path}", "", "end"]


def test_lines_are_whole_in_a_pipe_and_wrapped_in_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    pipe, terminal = io.StringIO(), Terminal()
    for file in (pipe, terminal):
        say(LINE, file)
    assert pipe.getvalue() == LINE + "\n"
    assert max(map(len, terminal.getvalue().splitlines())) <= 80
    assert terminal.getvalue().split() == LINE.split()


def test_a_command_to_copy_is_one_line_everywhere(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    say_command("play runs/FetchPickAndPlace-v4/td3-seed0-1")
    assert terminal.getvalue() == "  hindsight-rl play runs/FetchPickAndPlace-v4/td3-seed0-1\n"


def test_a_closed_reader_does_not_stop_a_run(monkeypatch):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Closed())
    say("a line")
    say_command("play runs")
