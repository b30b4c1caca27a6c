"""The configuration with its names checked and resolved, and explained: the schema for editors, what is in force."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from portlint.condition import PLATFORM_WORDS
from portlint.config import Config, ConfigError, Selector, check_selectors, matches, nearest
from portlint.report.escape import printable
from portlint.source.discover import printable_path

if TYPE_CHECKING:
    from portlint.source.discover import Found
    from portlint.target import Target

SCHEMA = "https://json-schema.org/draft/2020-12/schema"


def settled(config: Config, targets: Sequence[Target]) -> Config:
    """The configuration for a run with these targets, with every name in its tables checked.

    What stands for another name, as an alias of a target does, is replaced by it. Raises ConfigError and ProfileError.
    """
    ignores = {
        pattern: tuple(map(str, selectors(texts, targets, where=_where(config, f'per-file-ignores."{pattern}"'))))
        for pattern, texts in config.per_file_ignores.items()
    }
    if config.rules:
        _check_options(config)
    known = _known(config, targets) if config.macros or config.per_file_targets else {}
    return msgspec.structs.replace(
        config,
        per_file_ignores=ignores,
        per_file_targets=_file_targets(config, known),
        macros={name: _meaning(config, name, said, known) for name, said in config.meanings.items()},
    )


def _known(config: Config, targets: Iterable[Target]) -> Mapping[str, str]:
    """Every name that a target has in this run or in the configuration -> its proper name."""
    from portlint.target import aliases

    own = _resolved(config, "target", (text for text in config.target if text.endswith(".toml")), {})
    return {**aliases(), **{name: name for name in (*own, *(one.name for one in targets))}}


def target_names(config: Config, targets: Iterable[Target]) -> Mapping[str, str]:
    """The same for a run that goes on where a profile that it does not use cannot be read."""
    from portlint.target import aliases

    try:
        return _known(config, targets)
    except ConfigError:
        return {**aliases(), **{one.name: one.name for one in targets}}


def _check_options(config: Config) -> None:
    from portlint.rules import RuleError, configure

    try:
        configure(config.rules)
    except RuleError as error:
        raise ConfigError(f"{printable_path(config.file)}: {error}") from None


def _meaning(config: Config, macro: str, places: Iterable[str], known: Mapping[str, str]) -> tuple[str, ...]:
    """Where a macro is true, with targets as `@name`."""
    if not macro.isidentifier():
        raise ConfigError(f"{_where(config, 'macros')}: '{macro}' is no name of a macro, a flag or a function.")
    for one in places:
        if one not in PLATFORM_WORDS and one not in known:
            hint = nearest(one, {*PLATFORM_WORDS, *known})
            said = f"there is no platform or target '{one}'.{hint} Platforms: {', '.join(sorted(PLATFORM_WORDS))}."
            raise ConfigError(f"{_where(config, f'macros.{macro}')}: {said}")
    return tuple(sorted(one if one in PLATFORM_WORDS else f"@{known[one]}" for one in places))


def _file_targets(config: Config, known: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """`per-file-targets` with the names of targets, each of which exists and can be checked."""
    listed = _resolved(config, "target", config.target, known) if config.per_file_targets else ()
    by_pattern: dict[str, tuple[str, ...]] = {}
    for pattern, names in config.per_file_targets.items():
        key = f'per-file-targets."{pattern}"'
        by_pattern[pattern] = _resolved(config, key, names, known)
        idle = [name for name in by_pattern[pattern] if listed and name not in listed]
        if idle:
            said = f"'{idle[0]}' is none of the targets in 'target', so it is never checked: add it there"
            raise ConfigError(f"{_where(config, key)}: {said}.")
    return by_pattern


def selectors(texts: Iterable[str], targets: Iterable[Target], where: str = "") -> tuple[Selector, ...]:
    """The selectors in these texts, each of which may hold several with commas between them.

    An alias of a target becomes its name. Raises ConfigError where a pack, a rule or a target does not exist, or where
    a text has another shape; `where` says in the error where the texts stand.
    """
    from portlint.rules import discover
    from portlint.target import aliases

    found = tuple(Selector.parse(part) for text in texts for part in text.split(","))
    if not found:
        return ()
    names = {**aliases(), **{one.name: one.name for one in targets}}
    check_selectors(found, discover(), names, where)
    return tuple(msgspec.structs.replace(one, target=names.get(one.target, "")) for one in found)


def _resolved(config: Config, key: str, texts: Iterable[str], known: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the targets that a key of the configuration lists by name, alias or path."""
    from portlint.target import ProfileError, load

    try:
        return tuple(known.get(text) or load(text).name for text in texts)
    except ProfileError as error:
        raise ConfigError(f"{_where(config, key)}: {error}") from None


def _where(config: Config, key: str) -> str:
    return f"{printable_path(config.file)}: '{key}'"


def files(config: Config, targets: Sequence[Target], found: Iterable[Found]) -> Iterator[str]:
    """The files that are checked, a line each; behind those that are not for every target, for which ones."""
    for one in found:
        own = [target.name for target in targets if config.is_for(one.path, target.name)]
        if own:
            narrowed = f"  # {', '.join(own)}" if len(own) < len(targets) else ""
            yield printable(f"{one.path}{narrowed}")


def idle_patterns(config: Config, found: Sequence[Found]) -> Iterator[str]:
    """A sentence for each pattern of a table that none of these files matches."""
    paths = [config.relative(one.path) for one in found]
    for key in ("per-file-ignores", "per-file-targets"):
        for pattern in getattr(config, key.replace("-", "_")):
            if not any(matches(pattern, path) for path in paths):
                yield printable(f"'{key}': no file that is checked matches '{pattern}'")


def schema() -> dict[str, Any]:
    """The JSON Schema of a configuration, with what each key means."""
    found = msgspec.json.schema(Config)
    described = explained()
    ((name, table),) = [(name, one) for name, one in found["$defs"].items() if name == "Config"]
    properties = {
        key: {"description": described[key], **what} for key, what in table["properties"].items() if key in described
    }
    properties["rules"] = {**properties["rules"], "properties": _options_schema()}
    others = {key: value for key, value in found["$defs"].items() if key != name}
    return {
        "$schema": SCHEMA,
        "title": "The configuration of portlint: portlint.toml, or [tool.portlint] in pyproject.toml",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        **({"$defs": others} if others else {}),
    }


def _options_schema() -> dict[str, Any]:
    """The options of each rule that has some; rules of others may have any."""
    from portlint.rules import discover

    return {
        rule.name: {
            "type": "object",
            "properties": {
                one.name: {"description": one.about, **msgspec.json.schema(one.type), "default": one.default}
                for one in rule.options.values()
            },
            "additionalProperties": False,
        }
        for rule in discover().values()
        if rule.options
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
