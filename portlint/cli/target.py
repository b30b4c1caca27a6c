"""`portlint target`: list the targets, show the facts of one, or compare two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from portlint.cli.errors import UserError, friendly

if TYPE_CHECKING:
    from portlint.target import Target

NOT_STATED = "-"


@click.command(short_help="List the targets, show one, or compare two.")
@click.argument("name", required=False)
@click.option("--diff", nargs=2, metavar="LEFT RIGHT", help="Show the facts in which two targets differ.")
@click.option("--output-format", type=click.Choice(("text", "json")), default="text")
@friendly
def target(name: str | None, diff: tuple[str, str] | None, output_format: str) -> None:
    """List the targets, or show every fact of the target NAME with its source.

    NAME, LEFT and RIGHT are names or aliases of targets, or paths to profiles of your own (`./my.toml`). Targets that
    an installed package brings are listed with the package.
    """
    from portlint.target import load

    described: Any
    if name and diff:
        raise UserError("give either a target or --diff with two targets, not both.")
    if diff:
        left, right = (load(side) for side in diff)
        described, shown = _described_difference(left, right), _difference(left, right)
    elif name:
        one = load(name)
        described, shown = _described(one), _page(one)
    else:
        described, shown = _described_all(), _table()
    if output_format == "json":
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(described), indent=1).decode())
    else:
        click.echo("\n".join(shown))


def _described_all() -> list[dict[str, Any]]:
    from portlint.target import installed, load, shipped

    packages = {name: one.package for name, one in installed().items()}
    targets = [load(name) for name in (*shipped(), *packages)]
    return [
        {
            "name": one.name,
            "title": one.title,
            "aliases": _aliases(one),
            "package": packages.get(one.name, "portlint"),
        }
        for one in targets
    ]


def _described(one: Target) -> dict[str, Any]:
    from portlint.target import vocabulary

    facts = {}
    for name in _in_order(one.profile.facts):
        fact = one.profile.facts[name]
        facts[name] = {
            "value": fact.value,
            "unit": vocabulary()[name].unit,
            "text": one.state(name).text,
            "cites": [{"title": cite.title, "url": cite.url, "seen": cite.seen} for cite in one.cites(fact)],
            "note": fact.note,
            "since": fact.since,
        }
    return {
        "name": one.name,
        "title": one.title,
        "aliases": _aliases(one),
        "families": one.profile.families,
        "facts": facts,
    }


def _described_difference(left: Target, right: Target) -> dict[str, Any]:
    facts = [
        {"name": name, "left": _value(left, name), "right": _value(right, name)} for name in _differing(left, right)
    ]
    return {"left": left.name, "right": right.name, "facts": facts}


def _table() -> Iterator[str]:
    rows = [(one["name"], one["title"], ", ".join([*one["aliases"], *_origin(one)])) for one in _described_all()]
    return _aligned([("target", "title", "aliases"), *rows])


def _origin(described: dict[str, Any]) -> list[str]:
    """Where a target comes from, if that is not portlint."""
    package = described["package"]
    return [] if package == "portlint" else [f"from the package {package}"]


def _page(one: Target) -> Iterator[str]:
    from portlint.target import vocabulary

    yield f"{one.name}: {one.title}"
    if _aliases(one):
        yield f"aliases: {', '.join(_aliases(one))}"
    for pack, names in groupby(_in_order(one.profile.facts), key=_pack):
        yield from ("", pack)
        for name in names:
            fact = one.profile.facts[name]
            value = f"{_text(fact.value)} {vocabulary()[name].unit}".rstrip()
            phrase = one.state(name).text
            yield f"  {name} = {value}" + ("" if phrase == value else f" ({phrase})")
            for cite in one.cites(fact):
                yield "    " + ", ".join(filter(None, (cite.title, cite.url, cite.seen)))
            if fact.since:
                yield f"    since {fact.since}"
            if fact.note:
                yield f"    note: {fact.note}"


def _difference(left: Target, right: Target) -> Iterator[str]:
    names = _differing(left, right)
    if not names:
        yield f"{left.name} and {right.name} state the same facts."
        return
    rows = [(name, _text(_value(left, name)), _text(_value(right, name))) for name in names]
    heading, *lines = _aligned([("fact", left.name, right.name), *rows])
    yield heading
    for _, group in groupby(zip(names, lines, strict=True), key=lambda pair: _pack(pair[0])):
        yield ""
        yield from (line for _, line in group)


def _differing(left: Target, right: Target) -> list[str]:
    names = _in_order({*left.profile.facts, *right.profile.facts})
    return [name for name in names if _value(left, name) != _value(right, name)]


def _in_order(names: Iterable[str]) -> list[str]:
    """Fact names in the order of the vocabulary, which keeps each pack together."""
    from portlint.target import vocabulary

    position = {name: index for index, name in enumerate(vocabulary())}
    return sorted(names, key=position.__getitem__)


def _pack(name: str) -> str:
    return name.partition(".")[0]


def _value(one: Target, name: str) -> Any:
    fact = one.fact(name)
    return None if fact is None else fact.value


def _text(value: Any) -> str:
    if value is None:
        return NOT_STATED
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _aliases(one: Target) -> list[str]:
    from portlint.target import aliases

    return sorted(alias for alias, name in aliases().items() if name == one.name != alias)


def _aligned(rows: list[tuple[str, str, str]]) -> Iterator[str]:
    """The rows as lines whose first two columns are as wide as their widest cell."""
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    for row in rows:
        yield f"{row[0]:{first}}  {row[1]:{second}}  {row[2]}".rstrip()
