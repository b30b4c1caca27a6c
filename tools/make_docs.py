"""Write the pages of docs/ that are derived from the rules, their fixtures and the targets, and their navigation.

Usage: python tools/make_docs.py [--check]

With --check nothing is written; the exit status is 1 if a page is stale, missing or left over, and each is named.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

import msgspec

from portlint.explain import LANGUAGES, Choice, Explanation, Outcome, explain
from portlint.finding import Cite
from portlint.rules import discover
from portlint.settings import schema
from portlint.target import Fact, Target, aliases, load, shipped

ROOT = Path(__file__).resolve().parent.parent
RULES = Path("docs/rules")
SCHEMA = Path("docs/portlint.schema.json")
TARGETS = Path("docs/targets.md")
SITE = Path("zensical.toml")
SOURCES = "https://github.com/portlint/portlint/blob/main"
"""where what lies outside docs/ is read: pages are a site of their own, too"""
COMMAND = "python tools/make_docs.py"

KEY_FACTS = {
    "Lanes": "lanes.width",
    "Shared memory, bytes": "memory.shared_bytes",
    "FP8": "dtype.fp8_variant",
    "float64": "dtype.float64",
    "PyTorch device": "device.type",
}
"""column of docs/targets.md -> fact"""

FENCES = {"cu": "cuda", "cuh": "cuda", "hip": "cpp", "cpp": "cpp", "h": "cpp", "py": "python", "cmake": "cmake"}
FENCES |= {"Dockerfile": "dockerfile", "txt": "text", "yml": "yaml", "toml": "toml", "sh": "sh"}
"""ending of a fixture -> the language that highlights it"""


def pages() -> dict[Path, str]:
    """Every generated page, and the site's configuration with its navigation, by the path below the repository."""
    explained = [explain(rule) for rule in discover().values()]
    releases = _releases((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    written = {RULES / f"{one.name}.md": _text(_rule_page(one, _since(one.name, releases))) for one in explained}
    return {
        RULES / "README.md": _text(_index(explained)),
        **written,
        TARGETS: _text(_targets_page([load(name) for name in shipped()])),
        SCHEMA: msgspec.json.format(msgspec.json.encode(schema()), indent=2).decode() + "\n",
        SITE: _navigated((ROOT / SITE).read_text(encoding="utf-8"), explained),
    }


def stale() -> dict[Path, str]:
    """Page -> what is wrong with its file: it is missing or stale, or no rule has it any more."""
    wanted = pages()
    found = {path: reason for path, text in wanted.items() if (reason := _differs(ROOT / path, text))}
    return {**found, **dict.fromkeys(_left_over(wanted), "belongs to no rule")}


def write() -> None:
    """Write all pages, and remove those of rules that are gone."""
    wanted = pages()
    for path in _left_over(wanted):
        (ROOT / path).unlink()
    for path, text in wanted.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")


def _differs(file: Path, text: str) -> str:
    if not file.is_file():
        return "is missing"
    return "" if file.read_text(encoding="utf-8") == text else "is stale"


def _left_over(wanted: Mapping[Path, str]) -> list[Path]:
    there = (file.relative_to(ROOT) for file in (ROOT / RULES).rglob("*.md"))
    return sorted(path for path in there if path not in wanted)


def _text(lines: Iterator[str]) -> str:
    return f"<!-- Written by {COMMAND}; do not edit. -->\n\n" + "\n".join(lines) + "\n"


def _releases(changelog: str) -> dict[str, str]:
    """Version -> what the changelog says of it, the oldest first."""
    parts = re.split(r"^## \[([\d.]+)\].*$", changelog, flags=re.MULTILINE)[1:]
    return dict(reversed(list(zip(parts[::2], parts[1::2], strict=True))))


def _since(name: str, releases: Mapping[str, str]) -> str:
    """The version that brought a rule: the first one whose changes name it."""
    for version, changes in releases.items():
        if f"`{name}`" in changes:
            return version
    raise SystemExit(f"CHANGELOG.md does not name the rule `{name}`: add it to the version that brings it.")


def _index(rules: list[Explanation]) -> Iterator[str]:
    yield "# Rules"
    yield ""
    yield "Each rule is named for the belief that it looks for. `portlint rule NAME` prints these pages."
    for pack, members in groupby(rules, key=lambda one: one.name.partition("/")[0]):
        yield from ("", f"## {pack}", "", "| Rule | Summary |", "|---|---|")
        yield from (f"| [{one.name}]({one.name}.md) | {_cell(one.summary)} |" for one in members)


def _navigated(site: str, rules: list[Explanation]) -> str:
    """The site's configuration with the rules' pages between its two marks."""
    before, mark, rest = site.partition(f"  # Rules: written by {COMMAND}\n")
    _, end, after = rest.partition("  # End of rules\n")
    return before + mark + "".join(f"  {line}\n" for line in _entries(rules)) + end + after


def _entries(rules: list[Explanation]) -> Iterator[str]:
    yield from ('{ "Rules" = [', f'  "{RULES.name}/README.md",')
    for pack, members in groupby(rules, key=lambda one: one.name.partition("/")[0]):
        yield f'  {{ "{pack}" = ['
        yield from (f'    {{ "{one.name.partition("/")[2]}" = "{RULES.name}/{one.name}.md" }},' for one in members)
        yield "  ] },"
    yield "] },"


def _rule_page(one: Explanation, since: str) -> Iterator[str]:
    yield from (f"# {one.name}", "", one.summary)
    if one.why:
        yield from ("", one.why)
    yield from ("", *_properties(one, since))
    yield from ("", "## Before", "", *_fenced(one.before.file, one.before.text))
    yield from ("", "## After", "", *_fenced(one.after.file, one.after.text))
    yield from ("", "## Remedy", "", "| For | What to do |", "|---|---|")
    yield from (f"| {_family(family)} | {_cell(text)} |" for family, text in one.remedy.items())
    yield from ("", "## Where the example fires", "", "| Target | Verdict | Fact | Source |", "|---|---|---|---|")
    yield from map(_row, one.fires_on)
    if one.options:
        yield from ("", "## Options", "", f'In `[tool.portlint.rules."{one.name}"]`:', "")
        yield from ("| Option | Value | Default | For |", "|---|---|---|---|", *map(_option, one.options))
    if one.exceptions:
        yield from ("", "## Exceptions", "", one.exceptions)
    if one.fix_safety:
        yield from ("", "## Fix safety", "", one.fix_safety)
    if one.references:
        yield from ("", "## References", "", *(f"- <{url}>" for url in one.references))


def _properties(one: Explanation, since: str) -> Iterator[str]:
    pack, _, name = one.name.partition("/")
    source = f"portlint/rules/{pack}/{name.replace('-', '_')}.py"
    mark = "//" if one.languages[0] == "cuda" else "#"
    yield from ("| Property | Value |", "|---|---|")
    yield f"| Languages | {', '.join(LANGUAGES[language] for language in one.languages)} |"
    yield f"| Fires on | {'; '.join(_by_verdict(one.fires_on))} |"
    yield f"| Since | {since} |"
    yield f"| Source | [{source}]({SOURCES}/{source}) |"
    yield f"| To suppress | `{mark} portlint: ignore[{one.name}] reason` |"


def _by_verdict(outcomes: tuple[Outcome, ...]) -> Iterator[str]:
    """`corrupts: cdna2, cdna3`, the worst verdict first."""
    ranked = sorted(outcomes, key=lambda one: one.verdict.rank)
    for verdict, members in groupby(ranked, key=lambda one: one.verdict):
        yield f"{verdict}: {', '.join(one.target for one in members)}"


def _family(key: str) -> str:
    return "everything else" if key == "*" else f"`{key}`"


def _row(one: Outcome) -> str:
    source = _cited(one.fact.cite) if one.fact.cite is not None else "-"
    return f"| `{one.target}`, {_cell(one.title)} | {one.verdict} | {_cell(one.fact.text)} | {source} |"


def _cited(cite: Cite) -> str:
    return f"[{_cell(cite.title)}]({cite.url}), {cite.seen}"


def _option(one: Choice) -> str:
    default = msgspec.json.encode(one.default).decode()
    return f"| `{one.name}` | {one.kind} | `{default}` | {_cell(one.about)} |"


def _fenced(file: str, text: str) -> tuple[str, str, str]:
    return f"```{FENCES[file.rpartition('.')[2]]}", text.rstrip("\n"), "```"


def _targets_page(targets: list[Target]) -> Iterator[str]:
    yield "# Targets"
    yield ""
    yield "The facts that matter most, each linked to its source; `-` where no profile states one. Shared memory is the"
    yield "most that a block may use. `portlint target NAME` prints every fact of a target, with notes and dates, and"
    yield "`portlint target --diff LEFT RIGHT` what differs between two."
    yield ""
    yield f"| Target | Machine | {' | '.join(KEY_FACTS)} |"
    yield "|---|---" + "|---" * len(KEY_FACTS) + "|"
    for one in targets:
        cells = (_fact(one, one.fact(name)) for name in KEY_FACTS.values())
        yield f"| `{one.name}` | {_cell(one.title)} | {' | '.join(cells)} |"
    yield from ("", "## Names", "", "`--target` takes any of these names.", "", "| Target | Other names |", "|---|---|")
    for one in targets:
        others = (f"`{alias}`" for alias, name in sorted(aliases().items()) if name == one.name != alias)
        yield f"| `{one.name}` | {', '.join(others) or '-'} |"


def _fact(target: Target, fact: Fact | None) -> str:
    if fact is None:
        return "-"
    value = f"{fact.value:,}" if isinstance(fact.value, int) else str(fact.value)
    return f"[{_cell(value)}]({target.cites(fact)[0].url})"


def _cell(text: str) -> str:
    """Text that may stand in a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def main() -> int:
    """Write the pages, or check them; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, and name the pages that are stale")
    if not parser.parse_args().check:
        write()
        return 0
    found = stale()
    for path, reason in found.items():
        sys.stderr.write(f"{path.as_posix()} {reason}\n")
    if found:
        sys.stderr.write(f"Run '{COMMAND}'.\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
