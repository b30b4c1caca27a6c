"""The layering that docs/architecture.md promises, read off the import statements."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "portlint"


def imported(path: Path) -> set[str]:
    """The modules of portlint that a file imports, `from portlint import x` included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update(
                {f"portlint.{alias.name}" for alias in node.names} if node.module == "portlint" else {node.module}
            )
    return {name for name in found if name.startswith("portlint")}


def modules(folder: str) -> list[Path]:
    return sorted((PACKAGE / folder).rglob("*.py"))


@pytest.mark.parametrize("path", [path for path in modules("rules") if path.name != "__init__.py"], ids=str)
def test_rules_import_only_what_rules_are_written_with(path: Path) -> None:
    assert imported(path) <= {"portlint.rule"}


@pytest.mark.parametrize("path", modules("report"), ids=str)
def test_emitters_import_only_values(path: Path) -> None:
    assert {name for name in imported(path) if not name.startswith("portlint.report")} <= {
        "portlint.finding",
        "portlint.regex",
    }


@pytest.mark.parametrize("path", modules("source"), ids=str)
def test_sources_know_neither_rules_nor_targets(path: Path) -> None:
    assert not {
        name for name in imported(path) if name.startswith(("portlint.rule", "portlint.target", "portlint.judge"))
    }


@pytest.mark.parametrize("path", modules("rules"), ids=str)
def test_rules_name_targets_only_as_keys_of_a_remedy(path: Path) -> None:
    names = {file.stem for file in (PACKAGE / "targets").glob("*.toml")} - {"facts", "aliases", "cpu", "mps"}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    keys = {
        id(key)
        for call in ast.walk(tree)
        if isinstance(call, ast.keyword) and call.arg == "remedy" and isinstance(call.value, ast.Dict)
        for key in call.value.keys
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in names:
            assert id(node) in keys, f"line {node.lineno}: {node.value}"


def test_a_lint_imports_nothing_heavy() -> None:
    import subprocess
    import sys

    code = "import sys, portlint.run, portlint.cli.check; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"libcst", "rich", "sarif_om", "multiprocessing", "jinja2", "asyncio"} & set(loaded)


COMPILED = """
import re, sys
at_import = []
compiled = re.compile
def watched(*arguments, **options):
    module = sys._getframe(1).f_globals["__name__"]
    if module.startswith("portlint."):
        at_import.append(module)
    return compiled(*arguments, **options)
re.compile = watched
import portlint.cli.check, portlint.run
from portlint.rules import discover
discover()
print(*at_import)
"""


def test_what_a_check_imports_compiles_no_expression() -> None:
    """A hook would wait for all of them and use few; `portlint.regex` compiles when an expression is first used."""
    run = subprocess.run([sys.executable, "-P", "-c", COMPILED], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
