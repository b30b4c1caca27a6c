"""The configuration: `portlint.toml`, `.portlint.toml`, or the table `[tool.portlint]` of `pyproject.toml`.

The file nearest to the working directory holds, alone: nothing is merged. It is data; nothing that it names is run.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from portlint.finding import Verdict
from portlint.mistake import Mistake
from portlint.regex import regex
from portlint.source.discover import DEFAULT_EXCLUDE, PatternError, ignore_spec, printable_path

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_LONGEST_FILE = 256 << 10
_MOST_DOTS = 500
_NAMES = (".portlint.toml", "portlint.toml", "pyproject.toml")


class ConfigError(Mistake):
    """A configuration or a selector that cannot be used; the message says where, what is wrong and what to write."""


class Selector(msgspec.Struct, frozen=True):
    """Rules, and the targets for which they are meant: `pack`, `pack/name`, `pack/name @ target`."""

    pack: str
    name: str = ""
    """"" for every rule of the pack"""
    target: str = ""
    """"" for every target"""

    @staticmethod
    def parse(text: str) -> Selector:
        """Read a selector. Raises ConfigError if it has another shape; whether the names exist is not asked."""
        match = _SELECTOR.fullmatch(text)
        if match is None:
            raise ConfigError(f"'{text}' is no selector; write 'pack', 'pack/name' or 'pack/name @ target'")
        return Selector(match["pack"], match["name"] or "", match["target"] or "")

    def matches(self, rule: str, target: str) -> bool:
        """Whether it selects the rule of this name for the target of this name."""
        pack, _, name = rule.partition("/")
        return self.pack == pack and self.name in ("", name) and self.target in ("", target)

    def __str__(self) -> str:
        name = f"{self.pack}/{self.name}" if self.name else self.pack
        return f"{name} @ {self.target}" if self.target else name


_SELECTOR = regex(r"\s*(?P<pack>[\w-]+)(?:/(?P<name>[\w-]+))?\s*(?:@\s*(?P<target>[\w.-]+)\s*)?", re.ASCII)


class Config(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The configuration; every field but `file` is a key that may be written."""

    target: tuple[str, ...] = ()
    """the targets, where the command line names none"""
    select: tuple[str, ...] = ()
    """selectors of the rules to run; all if empty"""
    ignore: tuple[str, ...] = ()
    """selectors of the findings to leave out"""
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    """patterns of the files to leave out, in the syntax of .gitignore and relative to the configuration file"""
    extend_exclude: tuple[str, ...] = ()
    """more of them, beside the default"""
    per_file_ignores: dict[str, tuple[str, ...]] = {}
    """pattern of files -> selectors of the findings to leave out in them"""
    per_file_targets: dict[str, tuple[str, ...]] = {}
    """pattern of files -> the targets that they are for: of those of the run, they are checked for no others"""
    macros: dict[str, str | tuple[str, ...]] = {}
    """macro, flag or predicate of the project -> the platforms or targets on which it is true: {"ON_AMD" = "rocm"}"""
    rules: dict[str, dict[str, Any]] = {}
    """rule -> option -> value; `portlint rule NAME` shows what a rule has"""
    fail_on: Verdict = Verdict.DEGRADES
    """the mildest verdict that counts as a failure"""
    baseline: str = ""
    """the file with the findings that are known, relative to the configuration file"""
    require_reason: bool = False
    """whether a suppression comment has to say why"""
    file: str = ""
    """the file that was read, "" where there is none"""

    @property
    def root(self) -> str | None:
        """The folder to which patterns are relative; None for the working directory."""
        return str(Path(self.file).parent) if self.file else None

    @property
    def excluded(self) -> tuple[str, ...]:
        """All patterns of files to leave out."""
        return self.exclude + self.extend_exclude

    @property
    def meanings(self) -> dict[str, frozenset[str]]:
        """The macros as `naming.declare` takes them, once their names are settled."""
        return {name: frozenset([said] if isinstance(said, str) else said) for name, said in self.macros.items()}

    def relative(self, path: str) -> str:
        """A path as patterns see it; a relative one starts in the working directory."""
        return os.path.relpath(path, self.root).replace(os.sep, "/")

    def file_ignores(self, path: str) -> tuple[Selector, ...]:
        """The selectors of `per-file-ignores` that hold in a file."""
        return tuple(Selector.parse(text) for texts in self._for_file(self.per_file_ignores, path) for text in texts)

    def is_for(self, path: str, target: str) -> bool:
        """Whether a file is checked for the target of that name: each pattern that matches it lists the target."""
        return all(target in names for names in self._for_file(self.per_file_targets, path))

    def _for_file(self, by_pattern: Mapping[str, tuple[str, ...]], path: str) -> list[tuple[str, ...]]:
        """What a table has for the patterns that match a file."""
        if not by_pattern:
            return []
        relative = self.relative(path)
        return [texts for pattern, texts in by_pattern.items() if matches(pattern, relative)]


def matches(pattern: str, path: str) -> bool:
    """Whether a pattern of files matches a path that is relative to the folder of the configuration."""
    return _spec(pattern).match_file(path)


@cache
def _spec(pattern: str) -> GitIgnoreSpec:
    return ignore_spec([pattern])


def load(start: Path) -> Config:
    """The configuration for a working directory: that of the nearest folder upwards which has one, else the defaults.

    In one folder `.portlint.toml` comes before `portlint.toml`, and that before `pyproject.toml`, which counts only if
    it has the table `[tool.portlint]`. Raises ConfigError.
    """
    folder = start.resolve()
    for file in (above / name for above in (folder, *folder.parents) for name in _NAMES):
        if os.path.isfile(file):
            table = _table(file)
            if table is not None:
                return _config(file, table)
    return Config()


def _table(file: Path) -> object:
    """The table that a file holds for us, None where it has none."""
    try:
        with file.open("rb") as stream:
            data = stream.read(_LONGEST_FILE + 1)
    except OSError as error:
        raise ConfigError(f"{_name(file)}: cannot be read: {error.strerror}") from None
    shared = file.name == "pyproject.toml"
    if shared and b"portlint" not in data:
        return None
    table: object = _parse(file, data)
    for key in ("tool", "portlint") if shared else ():
        table = table.get(key) if isinstance(table, dict) else None
    return table


def _parse(file: Path, data: bytes) -> dict[str, object]:
    if len(data) > _LONGEST_FILE:
        raise ConfigError(f"{_name(file)}: larger than {_LONGEST_FILE:,} bytes; nobody writes such a configuration")
    # The time and the memory that tomllib takes grow with the square of the parts of a dotted key.
    if max(line.count(b".") for line in data.split(b"\n")) > _MOST_DOTS:
        raise ConfigError(f"{_name(file)}: a line with more than {_MOST_DOTS} dots; break it up")
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise ConfigError(f"{_name(file)}: not UTF-8, which TOML must be: see byte {error.start}") from None
    except RecursionError:
        raise ConfigError(f"{_name(file)}: values are nested too deep") from None
    except ValueError as error:
        raise ConfigError(f"{_name(file)}: not valid TOML: {error}") from None


def _name(file: Path) -> str:
    return printable_path(str(file))


_CODE = "A configuration runs no code: rules are loaded from packages that are installed, and by 'portlint --rules DIR'"
_SHAPES = {
    "per-file-ignores": 'a table of lists of selectors, such as {"tests/**" = ["lanes"]}',
    "per-file-targets": 'a table of lists of targets, such as {"src/mps/**" = ["mps"]}',
    "macros": 'a table of platforms or lists of them, such as {"ON_AMD" = "rocm"}',
    "rules": f"a table of the options of rules. {_CODE}",
    "baseline": "the path of a file, as a string",
    "require-reason": "true or false",
    "fail-on": "one of " + ", ".join(f'"{verdict}"' for verdict in Verdict),
}
_LIST = "a list of strings"


def _config(file: Path, table: object) -> Config:
    if not isinstance(table, dict):
        raise ConfigError(f"{_name(file)}: 'portlint' must be a table, [tool.portlint]")
    fields = {field.encode_name: field for field in msgspec.structs.fields(Config) if field.name != "file"}
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in fields:
            hint = f" {_CODE}." if key.startswith(("rule", "plugin")) else nearest(key, fields)
            raise ConfigError(f"{_name(file)}: there is no key '{key}'.{hint}")
        try:
            values[fields[key].name] = msgspec.convert(value, fields[key].type)
        except msgspec.ValidationError:
            raise ConfigError(f"{_name(file)}: '{key}' must be {_SHAPES.get(key, _LIST)}") from None
    config = _with_own_profiles(Config(**values, file=str(file)))
    _check(file, "select", config.select, Selector.parse)
    _check(file, "ignore", config.ignore, Selector.parse)
    _check(file, "exclude", config.exclude, _spec)
    _check(file, "extend-exclude", config.extend_exclude, _spec)
    _check(file, "per-file-ignores", config.per_file_ignores, _spec)
    _check(file, "per-file-targets", config.per_file_targets, _spec)
    for pattern, selectors in config.per_file_ignores.items():
        _check(file, f'per-file-ignores."{pattern}"', selectors, Selector.parse)
    return config


def _with_own_profiles(config: Config) -> Config:
    """The configuration with the profiles that it names by path found from its own folder."""
    root = config.root or ""

    def found(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(os.path.relpath(os.path.join(root, one)) if one.endswith(".toml") else one for one in names)

    by_pattern = {pattern: found(names) for pattern, names in config.per_file_targets.items()}
    return msgspec.structs.replace(config, target=found(config.target), per_file_targets=by_pattern)


def _check(file: Path, key: str, values: Iterable[str], parse: Callable[[str], object]) -> None:
    """Parse each value once, so that the error of a bad one names the file and the key."""
    try:
        for value in values:
            parse(value)
    except (ConfigError, PatternError) as error:
        raise ConfigError(f"{_name(file)}: '{key}': {error}") from None


def check_selectors(
    selectors: Iterable[Selector], rules: Iterable[str], targets: Iterable[str], where: str = ""
) -> None:
    """Raise ConfigError if a selector names a pack, a rule or a target that does not exist.

    `rules` and `targets` are all names that there are; `where` says in the error where the selectors were written.
    """
    rules, targets = list(rules), list(targets)
    packs = sorted({rule.partition("/")[0] for rule in rules})
    prefix = f"{where}: " if where else ""
    for selector in selectors:
        rule = f"{selector.pack}/{selector.name}"
        if selector.pack not in packs:
            raise ConfigError(f"{prefix}there is no pack '{selector.pack}'.{nearest(selector.pack, packs)}")
        if selector.name and rule not in rules:
            raise ConfigError(f"{prefix}there is no rule '{rule}'.{nearest(rule, rules)}")
        if selector.target and selector.target not in targets:
            raise ConfigError(f"{prefix}there is no target '{selector.target}'.{nearest(selector.target, targets)}")


def nearest(name: str, known: Iterable[str]) -> str:
    """A question that ends an error: which known name was meant; "" where none is near."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), n=1)
    return f" Did you mean '{near[0]}'?" if near else ""
