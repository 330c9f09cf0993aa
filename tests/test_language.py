"""The words of docs/glossary.md that this library does not use are nowhere: not in code, docs, examples or tests."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
GLOSSARY = ROOT / "docs" / "glossary.md"
SEARCHED = ("src", "docs", "examples", "tests", "README.md")
SUFFIXES = {".py", ".md", ".toml", ".txt", ".html", ".js", ".sh", ".yaml"}
EXEMPT = (
    "tests/docs/test_pages.py",  # has names of options of older versions
    "docs/_build/",
)


def unused_words():
    """Return the words in the first column of the table in the glossary."""
    section = GLOSSARY.read_text().split("## Words that this library does not use")[1]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    return [word for row in rows for word in re.findall("`(.+?)`", row.split(" | ")[0])]


def pattern(words):
    """Match the words in text, in snake_case and in CamelCase, also across the end of a line."""
    choices = "|".join(r"[\s_#-]+".join(map(re.escape, word.split())) for word in words)
    return re.compile(rf"(?<![a-z])({choices})(?![a-z])", re.IGNORECASE)


def found_in(text, words):
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text)  # CamelCase
    return [(text.count("\n", 0, match.start()) + 1, match[0]) for match in pattern(words).finditer(text)]


def texts():
    for name in SEARCHED:
        path = ROOT / name
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            name = file.relative_to(ROOT).as_posix()
            is_ours = ".egg-info" not in name and not name.startswith(
                EXEMPT
            )  # the list of files of an installation may be old
            if file.suffix in SUFFIXES and is_ours and file != Path(__file__):
                text = file.read_text()
                yield name, text.split("## Words that this library does not use")[0] if file == GLOSSARY else text


def test_a_word_is_found_in_any_case_and_across_lines():
    text = "whole\n# actions\nclass RoamingActor:\n    near_misses = wholesale"
    assert found_in(text, ["whole actions", "roaming", "near misses", "whole"]) == [
        (1, "whole\n# actions"),
        (3, "Roaming"),
        (4, "near_misses"),
    ]


def test_the_words_of_the_glossary_that_are_not_used_are_nowhere():
    words = unused_words()
    assert len(words) > 50
    found = [f"{name}:{line}: {word}" for name, text in texts() for line, word in found_in(text, words)]
    assert not found, "Words that docs/glossary.md replaces:\n" + "\n".join(found)
