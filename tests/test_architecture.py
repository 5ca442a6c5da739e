"""The rules that keep the code base readable, checked on its syntax trees and in fresh processes.

A failure here names the file and the rule; CONTRIBUTING.md explains why each rule exists.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import latticework

PACKAGE = Path(latticework.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# Layer of every part of the package: a part imports parts of its own layer (without cycles) and
# of lower ones, never of higher ones.
LAYERS = {
    "exceptions": 0,
    "rules.conditions": 0,
    "_kernels": 1,
    "engines": 2,
    "losses": 2,
    "weightings": 2,
    "blocks": 2,
    "search": 3,
    "solvers": 3,
    "rules": 4,
    "trees": 4,
    "graphs": 4,
    "estimators": 5,
    "theory": 6,
    "dask": 6,
    "report": 7,
    "cli": 8,
    "__main__": 9,
    "__init__": 9,
}

MAX_MODULE_LINES = 500
MAX_FUNCTION_LINES = 60
COMPILERS = {"njit", "jit", "vectorize", "guvectorize", "cfunc", "stencil"}
OPTIONAL_LIBRARIES = (
    "cvxpy", "dask", "distributed", "duckdb", "jinja2", "matplotlib", "pandas", "polars",
    "pyarrow", "rich",
)  # fmt: skip


def module_name(file: Path) -> str:
    """Name of a file's module within the package: ``search.bound``, ``rules``, ``__init__``."""
    parts = list(file.relative_to(PACKAGE).with_suffix("").parts)
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return ".".join(parts)


def part_of(module: str) -> str:
    """The entry of LAYERS that a module belongs to."""
    return module if module in LAYERS else module.split(".")[0]


def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), filename=str(file))


def imported_names(tree: ast.AST) -> Iterator[str]:
    """Every module or ``module.name`` that a tree imports, wherever in the file it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


MODULES = {module_name(file) for file in FILES}


def imported_modules(file: Path) -> set[str]:
    """Modules of the package that a file imports, as the longest existing module name."""
    found = set()
    for name in imported_names(tree_of(file)):
        if name == "latticework" or name.startswith("latticework."):
            inner = name.removeprefix("latticework").removeprefix(".")
            while inner and inner not in MODULES:
                inner = inner.rpartition(".")[0]
            if not inner and name == "latticework.__version__":
                continue  # the one name of the package's root that anything may read
            found.add(inner or "__init__")
    return found - {module_name(file)}


@pytest.mark.parametrize("file", FILES, ids=module_name)
def test_imports_go_one_way(file: Path) -> None:
    importer = part_of(module_name(file))
    assert importer in LAYERS, f"give {importer!r} a layer in LAYERS of tests/test_architecture.py"
    for module in imported_modules(file):
        imported = part_of(module)
        assert LAYERS[imported] <= LAYERS[importer], (
            f"{module_name(file)} (layer {LAYERS[importer]}) imports {module} "
            f"(layer {LAYERS[imported]}): imports go from higher layers to lower ones"
        )


def test_parts_do_not_import_each_other_in_circles() -> None:
    graph: dict[str, set[str]] = {}
    for file in FILES:
        importer = part_of(module_name(file))
        imported = {part_of(module) for module in imported_modules(file)} - {importer}
        graph.setdefault(importer, set()).update(imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"circular imports: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize("file", FILES, ids=module_name)
def test_modules_and_functions_stay_short(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    lines = text.count("\n")
    assert lines <= MAX_MODULE_LINES, f"{file.name} has {lines} lines: split it"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
            assert length <= MAX_FUNCTION_LINES, (
                f"{file.name}:{node.lineno} {node.name} has {length} lines beside its docstring: "
                "split it"
            )


def compiler_uses(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, ast.expr, str]]:
    """(function, decorator, compiler) for every function that numba compiles."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                name = called.attr if isinstance(called, ast.Attribute) else ast.unparse(called)
                if name in COMPILERS:
                    yield node, decorator, name


@pytest.mark.parametrize("file", FILES, ids=module_name)
def test_compiled_code_lives_in_kernels_and_is_cached(file: Path) -> None:
    tree = tree_of(file)
    inside = part_of(module_name(file)) == "_kernels"
    for function, decorator, compiler in compiler_uses(tree):
        where = f"{file.name}:{function.lineno} {function.name}"
        assert inside, f"{where} is compiled: compiled code belongs in latticework._kernels"
        cached = isinstance(decorator, ast.Call) and any(
            keyword.arg == "cache" and ast.unparse(keyword.value) == "True"
            for keyword in decorator.keywords
        )
        assert cached, f"{where}: @{compiler} without cache=True compiles again in every process"
    assert not any("jitclass" in name for name in imported_names(tree)), (
        f"{file.name} uses jitclass, which numba never caches and pickle refuses"
    )


@pytest.mark.parametrize("file", FILES, ids=module_name)
def test_only_one_file_imports_dask(file: Path) -> None:
    roots = {name.split(".")[0] for name in imported_names(tree_of(file))}
    assert module_name(file) == "engines.dask" or not roots & {"dask", "distributed"}, (
        f"{file.name} imports dask: only engines/dask.py may"
    )


# Run in a fresh interpreter. A finder in front of all others writes down every attempt to import
# an optional library and refuses it, which is also how the package meets a minimal installation.
# scikit-learn itself tries pandas, so it is imported before the recording starts.
PROBE = """
import importlib, json, sys, time

refused, attempts = set({optional!r}), []

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in refused:
            attempts.append(name)
            raise ModuleNotFoundError(f"refused: {{name}}", name=name)

sys.meta_path.insert(0, Refuse())
import numpy, scipy.optimize, scipy.sparse
import sklearn.base, sklearn.linear_model, sklearn.model_selection, sklearn.preprocessing
attempts.clear()
start = time.perf_counter()
import latticework
seconds = time.perf_counter() - start
for name in {then_import!r}:
    importlib.import_module(name)
for name in dir(latticework) if {touch_names!r} else ():
    getattr(latticework, name)
print(json.dumps({{"seconds": seconds, "attempts": attempts}}))
"""


def probe(then_import: tuple[str, ...] = (), touch_names: bool = False) -> dict[str, object]:
    """What one fresh process reports about importing the package."""
    code = PROBE.format(
        optional=OPTIONAL_LIBRARIES, then_import=then_import, touch_names=touch_names
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_import_is_light() -> None:
    reports = [probe() for _ in range(3)]
    assert not reports[0]["attempts"], f"import latticework tries {reports[0]['attempts']}"
    seconds = min(float(str(report["seconds"])) for report in reports)
    assert seconds < 0.3, f"import latticework adds {seconds:.2f} s to importing scikit-learn"


def test_public_names_need_no_optional_library() -> None:
    assert not probe(touch_names=True)["attempts"]


def test_every_module_imports_without_optional_libraries() -> None:
    needs_dask = {"engines.dask", "dask"}
    modules = tuple(
        f"latticework.{name}" for name in sorted(MODULES - needs_dask - {"__init__", "__main__"})
    )
    assert not probe(then_import=modules)["attempts"]
