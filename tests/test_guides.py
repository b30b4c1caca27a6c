"""The pages of docs/ keep their word: commands run, examples are judged as they say, links lead somewhere.

What a block of code is, its fence says:

    ```console              commands after `$ `, run in order in one folder per page, with fixtures/demo in it; other
                            lines are what they print, and `...` stands for any number of lines, or the rest of one
    ```toml title="x.toml"  the file x.toml in that folder
    ```cuda title="before: lanes/warp-is-32 @ cdna3"   exactly these rules fire, for each of these targets
    ```cuda title="after: cdna3"                       no rule fires for them

`Dockerfile, before: ...` says how the file is called where its language has no usual ending.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from click.testing import CliRunner, Result
from harness import ROOT
from test_docs import TOOL

from portlint import rules
from portlint.cli import main
from portlint.config import Config, load
from portlint.readiness.formats.table import FILES, FINDINGS, TARGETS
from portlint.target import load as target
from portlint.verify.runner import NOT_INSTALLED

DOCS = ROOT / "docs"
WRITTEN = sorted(path for path in DOCS.rglob("*.md") if path.relative_to(ROOT) not in TOOL.pages())
"""the pages that no tool writes"""

FENCE = re.compile(r'^```(?P<language>[\w-]+)(?: title="(?P<title>[^"]*)")?\n(?P<text>.*?)^```$', re.M | re.S)
EXAMPLE = re.compile(
    r"(?:(?P<file>[\w.-]+), )?(?P<kind>before|after): (?:(?P<rules>[\w/, -]+) @ )?(?P<targets>[\w -]+)"
)
ENDINGS = {"cuda": "kernel.cu", "cpp": "host.cpp", "python": "module.py", "cmake": "CMakeLists.txt"}
DATA = {"toml", "json", "csv"}
FOREIGN = {"lua", "lisp"}
"""settings of editors, which nothing here can run"""


class Block(NamedTuple):
    """A fenced block."""

    page: Path
    line: int
    language: str
    title: str
    text: str

    def __str__(self) -> str:
        return f"{name(self.page)}:{self.line}"

    @property
    def example(self) -> re.Match[str] | None:
        return EXAMPLE.fullmatch(self.title)


def name(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Block(page, line, match["language"], match["title"] or "", match["text"])


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


BLOCKS = [block for page in WRITTEN for block in blocks(page)]
EXAMPLES = [block for block in BLOCKS if block.example]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in, with the demo; rules that were loaded in it are forgotten afterwards."""
    shutil.copytree(ROOT / "fixtures" / "demo", tmp_path / "fixtures" / "demo")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rules, "_folders", [])
    yield tmp_path
    rules.discover.cache_clear()


def portlint(arguments: list[str]) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code in (0, 1), result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def fleet(arguments: list[str]) -> str:
    """What a run over a fleet prints, in a process of its own: warnings are errors here, and Dask has some."""
    for module in ("distributed", "pyarrow"):
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install '.[fleet]'")
    command = [sys.executable, "-P", "-m", "portlint", *arguments]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert ended.returncode in (0, 1), ended.stderr
    return ended.stdout


def holds(wanted: list[str], said: str) -> bool:
    """Whether the lines of a block were printed, in their order; `...` stands for what is left out."""
    exact = (re.escape(line.rstrip()).replace(r"\.\.\.", ".*") for line in wanted)
    pattern = "".join(r"(?:.*\n)*?" if line == r".*" else line + r" *\n" for line in exact)
    return re.search(f"^{pattern}", said, re.MULTILINE) is not None


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_every_fence_is_understood(page: Path) -> None:
    fences = re.findall(r"^```.+$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(fences) == len(list(blocks(page))), f"a fence has another form than this test knows: {fences}"


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_every_block_is_checked_by_something(block: Block) -> None:
    is_file = re.fullmatch(r"[\w./-]+\.\w+", block.title) is not None
    assert block.language in {"console", *DATA, *FOREIGN} or block.example or is_file


@pytest.mark.parametrize(
    "page", [page for page in WRITTEN if any(b.language == "console" for b in blocks(page))], ids=name
)
def test_commands_run_and_print_what_the_page_says(page: Path, folder: Path) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for block in blocks(page):
        if block.language != "console":
            if block.title and not block.example:
                Path(block.title).parent.mkdir(parents=True, exist_ok=True)
                Path(block.title).write_text(block.text, encoding="utf-8")
            continue
        assert block.text.startswith("$ "), block
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, *wanted = part.splitlines()
            program, *arguments = shlex.split(command, comments=True)
            if program == "portlint":
                rules._folders.clear()
                rules.discover.cache_clear()
                if "--execute" in arguments and find_spec("torch") is None:
                    continue  # it runs what it is given, and needs its framework
                said = fleet(arguments) if arguments[0] == "fleet" else portlint(arguments).stdout
                assert not wanted or holds(wanted, said + "\n"), f"{block}: {command}\n{said}"
            else:
                assert program in ("pip", "apt-get", "zensical"), f"{block}: a command that this test does not know"
                named = re.findall(r"\[([\w,]+)\]", command)
                assert not set(",".join(named).split(",")) - {""} - extras.keys(), block


@pytest.mark.parametrize("block", EXAMPLES, ids=str)
def test_examples_are_judged_as_they_say(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = block.example
    assert example is not None
    monkeypatch.chdir(tmp_path)
    file = Path(example["file"] or ENDINGS[block.language])
    file.write_text(block.text, encoding="utf-8")
    targets = example["targets"].split()
    options = [word for name in targets for word in ("--target", name)]
    report = json.loads(portlint(["check", str(file), "--isolated", "--output-format", "json", *options]).stdout)
    assert not report["problems"]
    found = {name: {one["rule"] for one in report["findings"] if one["target"] == name} for name in targets}
    wanted = set((example["rules"] or "").split(", ")) - {""}
    assert bool(wanted) == (example["kind"] == "before")
    assert found == dict.fromkeys(targets, wanted)


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language in DATA], ids=str)
def test_data_has_its_form(block: Block, tmp_path: Path) -> None:
    if block.language == "json":
        json.loads(block.text)
    elif block.language == "toml":
        table = tomllib.loads(block.text)
        file = tmp_path / Path(block.title or "portlint.toml").name
        file.write_text(block.text, encoding="utf-8")
        if "families" in table:
            target(str(file))
        elif file.name == "portlint.toml" or "portlint" in table.get("tool", {}):
            assert load(tmp_path).file == str(file)
    else:
        rows = [line.split(",") for line in block.text.splitlines()]
        assert len({len(row) for row in rows}) == 1


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)#\s]+)", prose(page)):
        there = (page.parent / link).resolve()
        assert there.exists(), link
        assert there.is_relative_to(DOCS), f"{link} is not part of the site"


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_rules_that_are_named_exist(page: Path) -> None:
    packs = {rule.partition("/")[0] for rule in rules.discover()}
    own = {match[1] for block in blocks(page) for match in re.finditer(r"\brule ([\w/-]+) --new", block.text)}
    for rule in re.findall(r"[`\[]([a-z]+/[a-z0-9-]+)[`\]]", prose(page)):
        assert rule.partition("/")[0] not in packs or rule in rules.discover() or rule in own, rule


def test_every_page_is_in_the_navigation() -> None:
    site = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    entries = re.findall(r'^(?!\s*#).*"([\w./-]+\.md)"', site, flags=re.MULTILINE)
    assert sorted(entries) == sorted(map(name, DOCS.rglob("*.md")))


def test_every_key_of_the_configuration_is_explained() -> None:
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    keys = {field.encode_name for field in msgspec.structs.fields(Config) if field.name != "file"}
    assert set(re.findall(r"^\| `([\w-]+)` \|", page, flags=re.MULTILINE)) == keys


def test_every_column_is_explained() -> None:
    page = (DOCS / "readiness.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([\w ]+)` \|", page, flags=re.MULTILINE)) >= {*FINDINGS, *FILES, *TARGETS}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built from a copy."""
    if find_spec("zensical") is None:
        pytest.skip("zensical is not installed: pip install '.[docs]'")
    copy = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "zensical.toml", copy)
    shutil.copytree(DOCS, copy / "docs")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    built = subprocess.run(command, check=False, cwd=copy, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stdout + built.stderr
    return copy / "build" / "site"


def test_the_site_has_every_page(site: Path) -> None:
    for page in DOCS.rglob("*.md"):
        html = page.with_name("index.html") if page.name == "README.md" else page.with_suffix(".html")
        assert (site / html.relative_to(DOCS)).is_file(), page


def test_the_site_needs_no_network(site: Path) -> None:
    for page in [*site.rglob("*.html"), *site.rglob("*.css")]:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source|video)\b[^>]*\bsrc=[\"']?(?:https?:)?//[^>]*>", text)
        styles = re.findall(r"<link\b[^>]*\bhref=[\"']?(?:https?:)?//[^>]*>", text)
        imports = re.findall(r"@import[^;]*//[^;]*;|url\([\"']?(?:https?:)?//[^)]*\)", text)
        assert not loaded + styles + imports, page


def test_links_of_the_site_lead_somewhere(site: Path) -> None:
    anchors: dict[Path, set[str]] = {}
    for page in site.rglob("*.html"):
        if page.name == "404.html":  # made for a server: its links start at the root
            continue
        for link in re.findall(r'<a\b[^>]*\bhref="((?!https?:)[^"]*)"', page.read_text(encoding="utf-8")):
            path, _, anchor = unescape(link).partition("#")
            there = (page.parent / path).resolve() if path else page
            there = there / "index.html" if there.is_dir() else there
            assert there.is_file(), f"{page}: {link}"
            if there not in anchors:
                anchors[there] = set(re.findall(r'\bid="([^"]+)', there.read_text(encoding="utf-8")))
            assert not anchor or anchor.startswith("__") or anchor in anchors[there], f"{page}: {link}"


def test_pages_ask_nobody_in_a_browser(site: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install '.[browser]'")
    asked: list[str] = []
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page()
        opened.on("request", lambda request: asked.append(request.url))
        for page in ("index.html", "guides/to-mps.html", "rules/index.html"):
            opened.goto((site / page).as_uri(), wait_until="networkidle")
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_titles_and_code_of_examples_are_shown(site: Path) -> None:
    for block in EXAMPLES:
        text = (site / block.page.relative_to(DOCS).with_suffix(".html")).read_text(encoding="utf-8")
        assert f'<span class="filename">{block.title}</span>' in text, block


def test_the_kernel_of_the_page_runs(tmp_path: Path) -> None:
    """It is there to be read, but it is a kernel: it measures, or says what is missing."""
    (block,) = [one for one in BLOCKS if one.page.name == "kernels.md" and one.language == "python"]
    route = ROOT / "portlint" / "verify" / "kernels" / Path(block.title).parent.name
    for shared in [*route.glob("_*.py"), *route.parent.glob("_*.py")]:
        shutil.copy(shared, tmp_path)
    kernel = tmp_path / Path(block.title).name
    kernel.write_text(block.text, encoding="utf-8")
    ended = subprocess.run([sys.executable, kernel], check=False, capture_output=True, text=True, timeout=120)
    if ended.returncode == NOT_INSTALLED:
        assert "install it with" in ended.stderr
    else:
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stdout)["measured"] == "native"
    assert "\nProof: run\n" in block.text
