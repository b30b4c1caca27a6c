"""`portlint rule`: list the rules, or explain one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from portlint.cli.errors import UserError, friendly

if TYPE_CHECKING:
    from portlint.rule import Rule


@click.command()
@click.argument("name", required=False)
@click.option("--output-format", type=click.Choice(("text", "json")), default="text")
@friendly
def rule(name: str | None, output_format: str) -> None:
    """List the rules, or explain the rule NAME: why it matters, what to do, and on which targets it holds."""
    from portlint.rules import discover

    rules = discover()
    if name is not None and name not in rules:
        from difflib import get_close_matches

        near = get_close_matches(name, rules, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise UserError(f"there is no rule '{name}'.{hint} 'portlint rule' lists them all.")
    chosen = [rules[name]] if name else list(rules.values())
    if output_format == "json":
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode([_described(one) for one in chosen]), indent=1).decode())
    elif name:
        click.echo(_page(rules[name]))
    else:
        width = max(map(len, rules))
        for one in chosen:
            click.echo(f"{one.name:{width}}  {_summary(one)}")


def _summary(one: Rule) -> str:
    return " ".join(one.doc.strip().partition("\n\n")[0].split())


def _fires_on(one: Rule) -> dict[str, list[str]]:
    """For each assumed fact, the targets whose own value differs. What a hit assumes itself depends on the code."""
    from portlint.judge import holds
    from portlint.target import load, shipped

    targets = [load(name) for name in shipped()]
    return {
        name: [
            target.name for target in targets if (fact := target.fact(name)) is not None and not holds(assumed, fact)
        ]
        for name, assumed in one.assumes.items()
    }


def _described(one: Rule) -> dict[str, Any]:
    from portlint.rule import unfold

    return {
        "name": one.name,
        "summary": _summary(one),
        "description": one.doc.strip().partition("\n\n")[2],
        "languages": sorted({detector.language for detector in one.detectors}),
        "assumes": {name: unfold(assumed) for name, assumed in one.assumes.items()},
        "remedy": dict(one.remedy),
        "fires_on": _fires_on(one),
    }


def _page(one: Rule) -> str:
    from portlint.rule import unfold
    from portlint.target import vocabulary

    lines = [one.name, "=" * len(one.name), "", one.doc.strip(), "", "## Assumes", ""]
    fires = _fires_on(one)
    for name, assumed in one.assumes.items():
        on = ", ".join(fires[name]) or "no target"
        lines.append(f"{name} = {unfold(assumed)}: {vocabulary()[name].title}; another value on {on}.")
    if not one.assumes:
        lines.append("What the code says decides: each finding names the fact that it contradicts.")
    lines += ["", "## Remedy", ""]
    lines += [f"{'everywhere else' if key == '*' else key}: {text}" for key, text in one.remedy.items()]
    lines += ["", f"Languages: {', '.join(sorted({detector.language for detector in one.detectors}))}"]
    return "\n".join(lines)
