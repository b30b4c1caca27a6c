"""The configuration explained: its schema for editors, and what is in force in a run."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from portlint.config import Config
from portlint.report.escape import printable

SCHEMA = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """The JSON Schema of a configuration, with what each key means."""
    found = msgspec.json.schema(Config)
    described = explained()
    ((name, table),) = [(name, one) for name, one in found["$defs"].items() if name == "Config"]
    properties = {
        key: {"description": described[key], **what} for key, what in table["properties"].items() if key in described
    }
    others = {key: value for key, value in found["$defs"].items() if key != name}
    return {
        "$schema": SCHEMA,
        "title": "The configuration of portlint: portlint.toml, or [tool.portlint] in pyproject.toml",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        **({"$defs": others} if others else {}),
    }


@cache
def explained() -> dict[str, str]:
    """Key -> what it means, from the docstrings of the fields."""
    (definition,) = ast.parse(inspect.getsource(Config)).body
    assert isinstance(definition, ast.ClassDef)
    names = {field.name: field.encode_name for field in msgspec.structs.fields(Config) if field.name != "file"}
    found: dict[str, str] = {}
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))) if (
                name in names
            ):
                found[names[name]] = text
    return found


def shown(config: Config, **given: tuple[str, ...]) -> Iterator[str]:
    """What is in force, as TOML, with where each value comes from; `given` are keys that the command line set."""
    yield printable(f"# {config.file or 'no configuration file'}")
    defaults = msgspec.structs.asdict(Config())
    for field in msgspec.structs.fields(Config):
        if field.name == "file":
            continue
        value = getattr(config, field.name)
        origin = "default" if value == defaults[field.name] else "configuration"
        if given.get(field.name):
            value, origin = given[field.name], "command line"
        yield printable(f"{field.encode_name} = {_toml(value)}  # {origin}")


def _toml(value: object) -> str:
    """A value as TOML: JSON is, but for tables."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_toml(key)} = {_toml(one)}' for key, one in value.items())}}}"
    return msgspec.json.encode(value).decode()
