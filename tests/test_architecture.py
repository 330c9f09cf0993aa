"""The shape of the package: who may import whom, no circle, nothing heavy at import, no long function."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hindsight

ROOT = Path(hindsight.__file__).parent
BASE = {"errors", "records", "storage", "options"}  # plain data that every folder may import
MAY_IMPORT = {  # folder or top module -> what it may import of the package; what is not listed may import everything
    "errors": set(),
    "records": BASE,
    "storage": BASE,
    "options": BASE,
    "envs": BASE,
    "replay": BASE,
    "agents": BASE,
    "structure": BASE,
    "compat": {*BASE, "replay"},
    "rollout": {*BASE, "envs", "agents"},
    "recipes": BASE,
    "training": {*BASE, "envs", "replay", "agents", "rollout", "recipes"},
    "report": BASE,
}
MAY_NOT_IMPORT = {  # packages that a layer must do without
    "records": {"torch", "numba"},
    "errors": {"torch", "numba", "gymnasium", "numpy"},
    "envs": {"torch", "numba", "mujoco"},
    "replay": {"torch", "gymnasium"},
    "agents.policy": {"torch"},
    "options": {"torch", "numba", "gymnasium"},
    "agents": {"gymnasium", "numba"},
    "rollout": {"torch", "numba"},
    "compat.cpprb": {"torch", "gymnasium", "cpprb"},
    "report": {"torch", "numba", "gymnasium"},
}
LONGEST_FUNCTION = 60


def modules():
    return {
        ".".join(p.relative_to(ROOT).with_suffix("").parts): ast.parse(p.read_text()) for p in sorted(ROOT.rglob("*.py"))
    }


def package_imports(name, nodes):
    """The package's modules that these nodes of a module import."""
    here = name.split(".")
    for node in nodes:
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level:
            base = here[: len(here) - node.level] + (node.module.split(".") if node.module else [])
        elif node.module and node.module.split(".")[0] == "hindsight":
            base = node.module.split(".")[1:]
        else:
            continue
        yield ".".join(base)
        yield from (".".join([*base, alias.name]) for alias in node.names)


def top_level(tree):
    """What runs when the module is imported."""
    for node in tree.body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield from (n for n in ast.walk(node) if not isinstance(node, ast.FunctionDef | ast.ClassDef))


def everywhere(tree):
    """Inside functions, and for type checkers alone, too."""
    yield from ast.walk(tree)


def third_party(tree):
    for node in everywhere(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.split(".")[0]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)


def test_imports_go_one_way():
    crossings = []
    for name, tree in modules().items():
        layer = name.split(".")[0]
        for target in package_imports(name, top_level(tree)):
            to = target.split(".")[0]
            if layer in MAY_IMPORT and to and to != layer and to not in MAY_IMPORT[layer]:
                crossings.append(f"{name} -> {target}")
    assert not crossings


def test_rollout_needs_only_the_policy_of_the_agents():
    for name, tree in modules().items():
        if name.startswith("rollout"):
            of_agents = {t for t in package_imports(name, top_level(tree)) if t.startswith("agents.")}
            assert all(t.startswith("agents.policy") for t in of_agents), name


def test_layers_do_without_what_is_not_theirs():
    for name, tree in modules().items():
        for place, packages in MAY_NOT_IMPORT.items():
            if name == place or name.startswith(place + "."):
                assert not set(third_party(tree)) & packages, name


def test_no_module_imports_itself_through_others():
    trees = modules()
    names = set(trees) - {"__init__"}
    edges = {n: {t for t in package_imports(n, everywhere(trees[n])) if t in names and t != n} for n in names}

    def reachable(start):
        seen, todo = set(), list(edges[start])
        while todo:
            if (at := todo.pop()) not in seen:
                seen.add(at)
                todo += edges[at]
        return seen

    assert [n for n in names if n in reachable(n)] == []


def test_functions_are_short():
    long = [
        f"{name}:{node.name} has {node.end_lineno - node.lineno + 1} lines"
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno - node.lineno + 1 > LONGEST_FUNCTION
    ]
    assert not long


def test_public_things_have_docstrings():
    bare = [
        f"{name}:{node.name}"
        for name, tree in modules().items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert not bare


def test_no_pickle_and_no_eval_in_the_package():
    """Worker processes talk over a pipe of the standard library; files and strings are never executed."""
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec", "compile"), name
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pickle":
                assert node.attr in ("dumps", "UnpicklingError"), name


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("hindsight", ["torch", "numba", "mujoco"]),
        ("hindsight.replay.buffer", ["torch", "mujoco", "hindsight.agents"]),
        ("hindsight.compat.cpprb", ["torch", "mujoco", "cpprb", "hindsight.agents"]),
        ("hindsight.rollout.workers", ["torch", "numba", "mujoco", "ray", "hindsight.replay"]),
        ("hindsight.her", ["torch", "mujoco", "ray"]),
        ("hindsight.cli", ["torch", "numba", "tyro", "rich", "hindsight.her"]),
        ("hindsight.training.settings", ["torch", "numba"]),
    ],
)
def test_importing_loads_nothing_heavy(module, absent):
    code = f"import sys, {module}; print([m for m in {absent!r} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_every_public_name_resolves_and_the_list_is_sorted():
    assert list(hindsight.__all__) == sorted(hindsight.__all__)
    for name in hindsight.__all__:
        assert getattr(hindsight, name).__name__ == name
    with pytest.raises(AttributeError, match="HER"):
        hindsight.Her  # noqa: B018
