"""The rules: one file each, `<pack>/<name>.py`, found by walking this folder. Nothing to register."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from portlint.rule import Rule


@cache
def discover() -> Mapping[str, Rule]:
    """Every rule by name, sorted: `portlint/rules/lanes/warp_is_32.py` is `lanes/warp-is-32`."""
    found: dict[str, Rule] = {}
    for pack in sorted(one.name for one in iter_modules(__path__) if one.ispkg):
        package = import_module(f"{__name__}.{pack}")
        for name in sorted(one.name for one in iter_modules(package.__path__) if not one.name.startswith("_")):
            module = import_module(f"{package.__name__}.{name}")
            rule: Rule = module.rule
            rule.name = f"{pack}/{name.replace('_', '-')}"
            rule.doc = module.__doc__ or ""
            found[rule.name] = rule
    return MappingProxyType(found)
