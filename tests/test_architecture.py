"""The structure of the package: allowed imports, no circles, nothing heavy at import, short definitions and files."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import hindsight_rl

ROOT = Path(hindsight_rl.__file__).parent
BASE = {
    "errors",
    "records",
    "seeds",
    "storage",
    "options",
    "task_structure",
}  # plain data that every folder may import
COMMAND_LINE = {"cli", "commands", "__main__"}  # may import everything, and nothing else may import it
MAY_IMPORT = {  # folder or top module: what it may import of the package. A module that is not listed may import everything
    "errors": set(),
    "seeds": BASE,
    "records": BASE,
    "task_structure": BASE,
    "storage": BASE,
    "options": BASE,
    "envs": BASE,
    "replay": BASE,
    "agents": BASE,
    "structure": BASE,
    "compat": {*BASE, "replay"},
    "rollout": {*BASE, "envs", "agents"},
    "recipes": BASE,
    "training": {*BASE, "envs", "replay", "agents", "rollout", "recipes", "structure"},
    "report": BASE,
}
MAY_NOT_IMPORT = {  # packages that a layer must not import
    "records": {"torch", "numba"},
    "task_structure": {"torch", "gymnasium"},
    "errors": {"torch", "numba", "gymnasium", "numpy"},
    "envs": {"torch", "numba", "mujoco"},
    "replay": {"torch", "gymnasium"},
    "agents.policy": {"torch"},
    "agents.layout": {"torch"},
    "agents.forward": {"torch"},
    "options": {"torch", "numba", "gymnasium"},
    "agents": {"gymnasium", "numba"},
    "rollout": {"torch", "numba"},
    "compat.cpprb": {"torch", "gymnasium", "cpprb"},
    "report": {"torch", "numba", "gymnasium"},
}
LONGEST_FUNCTION, LONGEST_CLASS, LONGEST_FILE = 60, 250, 400  # lines


@cache
def modules():
    """Return the syntax tree of every module by its name in the package."""
    return {
        ".".join(p.relative_to(ROOT).with_suffix("").parts): ast.parse(p.read_text()) for p in sorted(ROOT.rglob("*.py"))
    }


def package_imports(name, nodes):
    """Yield the modules of the package that these nodes of a module import."""
    here = name.split(".")
    for node in nodes:
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level:
            base = here[: len(here) - node.level] + (node.module.split(".") if node.module else [])
        elif node.module and node.module.split(".")[0] == "hindsight_rl":
            base = node.module.split(".")[1:]
        else:
            continue
        yield ".".join(base)
        yield from (".".join([*base, alias.name]) for alias in node.names)


def top_level(tree):
    """Yield the nodes that run when the module is imported."""
    for node in tree.body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield from (n for n in ast.walk(node) if not isinstance(node, ast.FunctionDef | ast.ClassDef))


def everywhere(tree):
    """Yield all nodes, also those inside functions and for type checkers only."""
    yield from ast.walk(tree)


def third_party(tree):
    for node in everywhere(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.split(".")[0]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)


def test_imports_have_one_direction():
    crossings = []
    for name, tree in modules().items():
        layer = name.split(".")[0]
        for target in package_imports(name, top_level(tree)):
            to = target.split(".")[0]
            if layer in MAY_IMPORT and to and to != layer and to not in MAY_IMPORT[layer]:
                crossings.append(f"{name} -> {target}")
    assert not crossings


def test_only_the_command_line_imports_the_command_line():
    importers = {
        f"{name} -> {target}"
        for name, tree in modules().items()
        for target in package_imports(name, everywhere(tree))
        if target.split(".")[0] in COMMAND_LINE and name.split(".")[0] not in COMMAND_LINE
    }
    assert not importers


def test_rollout_needs_only_the_policy_of_the_agents():
    for name, tree in modules().items():
        if name.startswith("rollout"):
            of_agents = {t for t in package_imports(name, top_level(tree)) if t.startswith("agents.")}
            assert all(t.startswith("agents.policy") for t in of_agents), name


def test_layers_do_not_import_forbidden_packages():
    for name, tree in modules().items():
        for place, packages in MAY_NOT_IMPORT.items():
            if name == place or name.startswith(place + "."):
                assert not set(third_party(tree)) & packages, name


def test_imports_have_no_circle():
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


@pytest.mark.parametrize(
    ("kind", "limit"),
    [(ast.FunctionDef | ast.AsyncFunctionDef, LONGEST_FUNCTION), (ast.ClassDef, LONGEST_CLASS)],
    ids=["functions", "classes"],
)
def test_definitions_are_short(kind, limit):
    long = [
        f"{name}:{node.name} has {node.end_lineno - node.lineno + 1} lines"
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, kind) and node.end_lineno - node.lineno + 1 > limit
    ]
    assert not long


def test_files_are_short():
    lengths = {path: len(path.read_text().splitlines()) for path in ROOT.rglob("*.py")}
    assert {path.name: lines for path, lines in lengths.items() if lines > LONGEST_FILE} == {}


def test_a_public_class_is_defined_once_in_the_package():
    homes = {}
    for module, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(module)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_no_two_folders_have_a_file_of_the_same_name():
    """A command or an option record may be named after what it serves."""
    folders = {}
    for path in ROOT.rglob("*.py"):
        if path.name != "__init__.py" and path.parent.name not in ("commands", "options"):
            folders.setdefault(path.name, []).append(path.parent.name)
    assert {name: found for name, found in folders.items() if len(found) > 1} == {}


def public_definitions(body, prefix):
    """Yield public functions and classes, and the public methods of these classes but setters, by their full names."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_") and not is_setter(node):
            yield f"{prefix}:{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from public_definitions(node.body, f"{prefix}:{node.name}")


def is_setter(node):
    return any(isinstance(d, ast.Attribute) and d.attr == "setter" for d in node.decorator_list)


def assigned_names(tree):
    """Yield the names that a module assigns at its top level: constants, type variables and names of types."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        for target in targets:
            yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name))


def test_a_constant_is_defined_once_in_the_package():
    """Neither has a name two values, nor are there two definitions with one value: one module has it, others import it."""
    homes = {}
    for module, tree in modules().items():
        for name in set(assigned_names(tree)) - {"__all__"}:
            homes.setdefault(name, []).append(module)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_public_definitions_have_docstrings():
    bare = [
        full_name
        for name, tree in modules().items()
        for full_name, node in public_definitions(tree.body, name)
        if not ast.get_docstring(node)
    ]
    assert not bare


def test_no_pickle_and_no_eval_in_the_package():
    """Files and strings are never executed. Only messages between processes of one run are pickled."""
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec", "compile"), name
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pickle":
                assert node.attr in ("dumps", "UnpicklingError"), name


@pytest.mark.parametrize(
    "modules_in_order",
    [
        {
            "hindsight_rl": ["torch", "numba", "mujoco"],
            "hindsight_rl.cli": ["torch", "numba", "rich", "mujoco", "hindsight_rl.her"],
            "hindsight_rl.rollout.episode_sources": ["torch", "numba", "mujoco", "ray", "hindsight_rl.replay"],
            "hindsight_rl.training.resolve": ["torch", "numba"],
            "hindsight_rl.her": ["torch", "numba", "mujoco", "ray"],
            "hindsight_rl.commands.policies": ["torch", "numba", "jinja2", "plotly", "mujoco"],
        },
        {
            "hindsight_rl.replay.buffer": ["torch", "mujoco", "hindsight_rl.agents"],
            "hindsight_rl.buffers": ["torch", "mujoco", "hindsight_rl.agents"],
            "hindsight_rl.compat.cpprb": ["torch", "mujoco", "cpprb", "hindsight_rl.agents"],
        },
    ],
)
def test_importing_loads_nothing_heavy(modules_in_order):
    """One process imports several modules: what one loads is there for the next too, so nothing is missed."""
    code = "import sys\n" + "\n".join(
        f"import {module}; print({module!r}, [m for m in {absent!r} if m in sys.modules])"
        for module, absent in modules_in_order.items()
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.splitlines() == [f"{module} []" for module in modules_in_order]


def test_every_public_name_resolves_and_the_list_is_sorted():
    assert list(hindsight_rl.__all__) == sorted(hindsight_rl.__all__)
    for name in hindsight_rl.__all__:
        assert getattr(hindsight_rl, name).__name__ == name
    with pytest.raises(AttributeError, match="HER"):
        hindsight_rl.Her  # noqa: B018
