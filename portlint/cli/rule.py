"""`portlint rule`: list the rules, or explain one."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
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
@friendly
def rule(name: str | None, output_format: str) -> None:
    """List the rules, or explain the rule NAME: why it matters, an example, what to do, and where it fires."""
    from portlint.rules import discover

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

    if name not in rules:
        from difflib import get_close_matches

        near = get_close_matches(name, rules, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise UserError(f"there is no rule '{name}'.{hint} 'portlint rule' lists them all.")
    try:
        return explain(rules[name])
    except MissingExample as error:
        raise UserError(str(error)) from error


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
