"""`portlint rule`: list the rules, or explain one."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from portlint.cli.errors import UserError, friendly

if TYPE_CHECKING:
    from portlint.explain import Explanation, Outcome
    from portlint.rule import Rule

WIDTH = 100
"""columns to which prose is filled"""
INDENT = "    "


@click.command(short_help="List the rules, or explain one.")
@click.argument("name", required=False)
@click.option("--output-format", type=click.Choice(("text", "json")), default="text")
@click.option("--new", type=click.Path(path_type=Path), metavar="DIR", help="Write a rule NAME to start from in DIR.")
@click.option("--test", is_flag=True, help="Hold the rule NAME against its fixtures; exit 1 where they disagree.")
@friendly
def rule(name: str | None, output_format: str, new: Path | None, test: bool) -> None:
    """List the rules, or explain the rule NAME: why it matters, an example, what to do, and where it fires."""
    from portlint.rules import discover

    if name is None and (new or test):
        raise UserError(f"which rule? Write 'portlint rule pack/name {'--test' if test else f'--new {new}'}'.")
    if name and new:
        _create(name, new)
        return
    if name and test:
        sys.exit(_hold(_named(discover(), name)))
    described: Any
    if name is None:
        described = [_entry(one) for one in discover().values()]
        shown = _table(described)
    else:
        described = _explained(discover(), name)
        shown = _page(described)
    if output_format == "json":
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(described), indent=1).decode())
    else:
        click.echo("\n".join(shown))


def _entry(one: Rule) -> dict[str, Any]:
    from portlint.explain import languages
    from portlint.run import describe

    return {"name": one.name, "summary": describe(one).summary, "languages": languages(one)}


def _table(entries: list[dict[str, Any]]) -> Iterator[str]:
    width = max(len(entry["name"]) for entry in entries)
    return (f"{entry['name']:{width}}  {entry['summary']}" for entry in entries)


def _explained(rules: Mapping[str, Rule], name: str) -> Explanation:
    from portlint.examples import MissingExample
    from portlint.explain import explain

    try:
        return explain(_named(rules, name))
    except MissingExample as error:
        raise UserError(str(error)) from error


def _named(rules: Mapping[str, Rule], name: str) -> Rule:
    if name not in rules:
        from difflib import get_close_matches

        near = get_close_matches(name, rules, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise UserError(f"there is no rule '{name}'.{hint} 'portlint rule' lists them all.")
    return rules[name]


def _create(name: str, folder: Path) -> None:
    from portlint.scaffold import write

    for path in write(name, folder):
        click.echo(path)
    click.echo(f"\nTry it: portlint --rules {folder} rule {name} --test")


def _hold(one: Rule) -> int:
    """Say where a rule and its fixtures disagree. Returns the exit status."""
    from portlint.annotated import compare, read, scan
    from portlint.examples import fixtures
    from portlint.rules import discover

    folder = Path(str(fixtures(one)))
    files = sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
    if not files:
        raise UserError(f"'{one.name}' has no fixtures: there is nothing in {folder}.")
    wrong = []
    for fixture in map(read, files):
        names = {one.name, *(expected.rule for expected in fixture.expectations)}
        findings = scan(fixture.path, [discover()[name] for name in sorted(names) if name in discover()])
        wrong += [f"{fixture.path}: {said}" for said in compare(fixture, findings)]
    click.echo("\n".join(wrong) or f"{one.name}: {len(files)} fixtures, all as annotated")
    return int(bool(wrong))


def _page(one: Explanation) -> Iterator[str]:
    from portlint.explain import LANGUAGES

    yield from (one.name, "=" * len(one.name), "", one.summary)
    if one.why:
        yield from ("", one.why)
    yield from ("", f"Languages: {', '.join(LANGUAGES[language] for language in one.languages)}")
    yield from ("", "Before", "", textwrap.indent(one.before.text.rstrip(), INDENT))
    yield from ("", "After", "", textwrap.indent(one.after.text.rstrip(), INDENT))
    yield from ("", "Remedy", "")
    for family, text in one.remedy.items():
        yield _filled(f"{'otherwise' if family == '*' else family}: {text}")
    yield from ("", "The example fires on", "")
    for outcome in one.fires_on:
        yield from _outcome(outcome)
    if one.options:
        yield from ("", f'Options, in [tool.portlint.rules."{one.name}"]', "")
        yield from (_filled(f"{option.name}: {option.about} ({option.kind})") for option in one.options)
    if one.exceptions:
        yield from ("", "Exceptions", "", textwrap.indent(one.exceptions, INDENT))
    if one.fix_safety:
        yield from ("", "Fix safety", "", textwrap.indent(one.fix_safety, INDENT))
    if one.references:
        yield from ("", "References", "", *(INDENT + url for url in one.references))


def _outcome(one: Outcome) -> Iterator[str]:
    yield _filled(f"{one.target}: {one.verdict}; {one.title} has {one.fact.text}")
    if one.fact.cite is not None:
        yield f"{INDENT * 2}{one.fact.cite.title}, {one.fact.cite.url}"


def _filled(text: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=INDENT,
        subsequent_indent=INDENT * 2,
        break_long_words=False,
        break_on_hyphens=False,
    )
