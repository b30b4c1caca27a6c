"""The rules: one file each, `<pack>/<name>.py`, found by walking this folder. Nothing to register.

Rules of others come from packages that are installed and name themselves in the entry points `portlint.rules`, and from
folders that the caller names (`portlint --rules DIR`). Nothing in a linted tree can name one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType, ModuleType

from portlint.config import nearest
from portlint.mistake import Mistake
from portlint.plugins import RULES, entries
from portlint.rule import Rule

FIXTURES = "fixtures"
"""the folder beside the packs of others where their fixtures are"""

_folders: list[Path] = []


class RuleError(Mistake):
    """A rule of the user's that cannot be loaded."""


def add(folder: Path) -> None:
    """Take the rules of a folder as well. Their code runs when they are first asked for.

    Raises RuleError where there is no such folder.
    """
    if not folder.is_dir():
        raise RuleError(f"there is no folder {folder} to take rules from.")
    if folder not in _folders:
        _folders.append(folder)
        discover.cache_clear()


def configure(options: Mapping[str, Mapping[str, object]]) -> None:
    """Give options of rules, by rule and name, their values; every other option has its default again.

    Raises RuleError where there is no such rule or option, or where a value is of another type.
    """
    rules = discover()
    for name in options:
        if name not in rules:
            raise RuleError(f"'rules': there is no rule '{name}'.{nearest(name, rules)}")
    for name, rule in rules.items():
        given = options.get(name, {})
        for unknown in given.keys() - rule.options.keys():
            has = f"; it has {', '.join(rule.options)}" if rule.options else ": it has no options"
            raise RuleError(f"'rules.\"{name}\"': there is no option '{unknown}'{has}.")
        for option in rule.options.values():
            try:
                option.set(given.get(option.name, option.default))
            except ValueError as error:
                raise RuleError(f"'rules.\"{name}\"': '{option.name}' {error}.") from None


@cache
def discover() -> Mapping[str, Rule]:
    """Every rule by name, sorted: `portlint/rules/lanes/warp_is_32.py` is `lanes/warp-is-32`.

    Raises RuleError for a rule of the user's that cannot be loaded, or has the name of another.
    """
    found: dict[str, Rule] = {}
    for name, module in _shipped():
        found[name] = _rule(module, name)
    for name, module, home in (*_installed(), *_in_folders()):
        if name in found:
            raise RuleError(f"{module.__file__}: there is a rule '{name}' already.")
        found[name] = _rule(module, name)
        found[name].home = home
    return MappingProxyType(dict(sorted(found.items())))


def _rule(module: ModuleType, name: str) -> Rule:
    rule = getattr(module, "rule", None)
    if not isinstance(rule, Rule):
        raise RuleError(f"{module.__file__}: it holds no Rule named 'rule'.")
    rule.name = name
    rule.doc = module.__doc__ or ""
    return rule


def _shipped() -> Iterator[tuple[str, ModuleType]]:
    return _of_package(sys.modules[__name__])


def _installed() -> Iterator[tuple[str, ModuleType, Path]]:
    for entry in entries(RULES):
        try:
            package = entry.load()
            for name, module in _of_package(package):
                yield name, module, Path(package.__path__[0])
        except Exception as error:  # whatever the package's own code raises
            raise RuleError(f"the rules of the package '{entry.value}' cannot be loaded: {error}") from error


def _of_package(package: ModuleType) -> Iterator[tuple[str, ModuleType]]:
    for pack in sorted(one.name for one in iter_modules(package.__path__) if one.ispkg):
        inner = import_module(f"{package.__name__}.{pack}")
        for name in sorted(one.name for one in iter_modules(inner.__path__) if not one.name.startswith("_")):
            yield f"{pack}/{name.replace('_', '-')}", import_module(f"{inner.__name__}.{name}")


def _in_folders() -> Iterator[tuple[str, ModuleType, Path]]:
    for folder in _folders:
        for file in sorted(folder.glob("*/*.py")):
            if file.name.startswith("_") or file.parent.name == FIXTURES:
                continue
            pack, name = file.parent.name, file.stem.replace("_", "-")
            yield f"{pack}/{name}", _load(file, f"portlint_rules_of_others.{pack}.{file.stem}"), folder


def _load(file: Path, name: str) -> ModuleType:
    spec = spec_from_file_location(name, file)
    assert spec is not None  # the file ends with .py
    assert spec.loader is not None
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise RuleError(f"{file}: the rule cannot be loaded: {type(error).__name__}: {error}") from error
    return module
