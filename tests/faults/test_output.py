"""What a linted tree holds is quoted in every output, and obeyed in none: terminals, browsers, GitHub, spreadsheets."""

from __future__ import annotations

import gzip
import json
import os
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest
from runs import FULL, TARGETS, portlint, write

from portlint.report import KINDS, sarif

CODE = (
    'import torch\n\nx = torch.zeros(3, device="cuda")  # \x1b]52;c;aGk=\x07\x1b[2J \x9b31m \u202e\u2066 \u200b'
    " @octocat #1"
    " <script>alert(1)</script> ](javascript:alert(1)) <img src=x onerror=alert(1)> `` | ::error::x ##[error]y"
    " ]]> --> {{7*7}} =cmd|'/c calc'!A0 \U0001f389 e\u0301\n"
)
"""a finding whose line holds something for every reader"""
NAMES = [
    b"caf\xe9.py",
    b"a\nb.py",
    b"a\r\n::error::b.py",
    b"a\tb.py",
    b"\x1b[2J\x1b]52;c;aGk=\x07.py",
    b"\xc2\x9b31m.py",
    b"n" * 252 + b".py",
    b"-rf.py",
    b"--target.py",
    b"[/foo].py",
    b"[bold]x[/bold].py",
    b"::error::x.py",
    b"::add-mask::.py",
    b"##[error]z.py",
    b"%0A::error::y.py",
    b"%1b%5b2J.py",
    b"<img src=x onerror=alert(1)>.py",
    b'"><script>alert(1)<.py',
    b"</script>.py",
    b"it's.py",
    b"a`b`.py",
    b"@octocat.py",
    b"[x](javascript:alert(1)).py",
    b"|x|.py",
    b"&lt;.py",
    b"a#b?c=1%41.py",
    b"$(touch fired).py",
    b"`touch fired`.py",
    b"a;touch fired.py",
    b"a:1:2: corrupts.py",
    b"\xe2\x80\xaegnp.py",
    b"\xe2\x80\x8bz.py",
    b"\xe2\x80\xa8ls.py",
    b"\xed\xa0\x80.py",
    b"\\x41.py",
    b" lead.py",
    b"#x.py",
    b"!x.py",
    b"*.py",
    b"=1+1.py",
    b"\xf0\x9f\x8e\x89.py",
    b"e\xcc\x81.py",
]
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]")
COMMAND = re.compile(r"^\s*::|##\[", re.MULTILINE)


@pytest.fixture
def names(tree: Path) -> list[bytes]:
    """A tree of files with hostile names; those that the file system takes."""
    taken = []
    for name in NAMES:
        place = os.path.join(os.fsencode(tree), name)
        try:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "wb") as file:
                file.write(CODE.encode())
        except OSError:
            continue
        taken.append(name)
    return taken


def outputs(*kinds: str) -> dict[str, str]:
    """What `check` writes in each of these formats, in one run."""
    asked = [one for kind in kinds for one in ("--output-format", f"{kind}:../out.{kind}")]
    result = portlint("check", ".", *TARGETS, "--isolated", *asked)
    assert result.exit_code in (0, 1), result.output
    assert result.output == ""
    return {kind: Path(f"../out.{kind}").read_bytes().decode() for kind in kinds}


def test_names_and_code_in_every_format(names: list[bytes]) -> None:
    """Nothing reaches a terminal or a runner but text, every format holds every file, and machines read them back."""
    written = outputs(*KINDS)
    for kind, text in written.items():
        assert not UNSAFE.search(text), kind
        assert kind == "github" or not COMMAND.search(text), kind
        assert kind in ("github", "markdown") or text.count("device") >= len(names), kind
    assert all(line.startswith(("::error ", "::notice ", "::warning ")) for line in written["github"].splitlines())
    paths = {one["path"] for one in json.loads(written["json"])["findings"]}
    assert len(paths) == len(names)
    assert paths == {json.loads(line)["path"] for line in written["json-lines"].splitlines()}
    assert len(ET.fromstring(written["junit"]).findall(".//failure")) == len(names)
    assert len({one["fingerprint"] for one in json.loads(written["gitlab"])}) == len(names)
    not_utf_8 = ("\\xe9", "\\xed\\xa0\\x80")
    uris = {
        unquote_to_bytes(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]).decode()
        for run in json.loads(written["sarif"])["runs"]
        for result in run["results"]
    }
    assert uris >= {name.decode() for name in names if not set(name) & set(b"\xed\xe9")}
    assert sum(any(part in uri for part in not_utf_8) for uri in uris) == sum(
        bool(set(name) & set(b"\xed\xe9")) for name in names
    )
    assert not list(Path().glob("fired*"))


def test_names_on_the_command_line(names: list[bytes]) -> None:
    """Behind `--` a name is a name; before it an option, as everywhere."""
    result = portlint("check", *TARGETS, "--isolated", "--output-format", "concise", "--", "-rf.py", "--target.py")
    assert [line.partition(":")[0] for line in result.stdout.splitlines()] == ["--target.py", "-rf.py"]
    listed = portlint("check", ".", *TARGETS, "--isolated", "--show-files").stdout
    assert len(listed.splitlines()) == len(names)
    assert not UNSAFE.search(listed)


class Page(HTMLParser):
    """The tags, attributes and texts of an HTML page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


def test_the_pages_of_a_report(names: list[bytes]) -> None:
    """One script, ours; no handler, no image, no link that runs; and no cell that a spreadsheet computes."""
    kinds = ("html", "markdown", "json", "csv")
    asked = [one for kind in kinds for one in ("--output-format", f"{kind}:../out.{kind}")]
    result = portlint("report", ".", *TARGETS, "--isolated", *asked)
    assert result.exit_code == 0, result.output
    written = {kind: Path(f"../out.{kind}").read_bytes().decode() for kind in kinds}
    page = Page(written["html"])
    assert page.tags.count("script") == 1
    assert not {"img", "iframe", "object", "embed", "base"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    links = [value for name, value in page.attributes if name in ("href", "src", "action")]
    assert [link for link in links if not link.startswith(("https://", "http://", "#"))] == ["data:,"]  # no icon
    (policy,) = [value for name, value in page.attributes if name == "content" and "default-src" in value]
    assert policy.startswith("default-src 'none'")
    for kind, text in written.items():
        assert not UNSAFE.search(text.replace("\r\n", "\n")), kind
    assert not re.search(r"^\s*::", written["markdown"], re.MULTILINE)
    assert not re.search(r"(?<!\\)<script", written["markdown"].replace("`", ""))
    assert not re.search(r"(^|,)[=+@]", written["csv"], re.MULTILINE)


def test_problems_and_mistakes_quote_harmlessly(tree: Path) -> None:
    """What cannot be read, and what is wrong with a configuration, is told without obeying it."""
    nasty = "\x1b[2J\u202e\n::add-mask::x"
    write({f"a{nasty}.py".replace("/", "_"): b"\0", f"b{nasty}.cu": b"\xff\xfe\0"})
    for kind, text in outputs("full", "concise", "markdown", "github").items():
        assert not UNSAFE.search(text)
        assert kind == "github" or not COMMAND.search(text)
    quoted = json.dumps(nasty)
    for config in (
        f"{quoted} = 1",
        f"select = [{quoted}]",
        f"exclude = [{json.dumps('[z-a]' + nasty)}]",
        f"fail-on = {quoted}",
        f"target = [{quoted}]",
        f"ignore = [{json.dumps('lanes/x' + nasty)}]",
        f"baseline = {quoted}",
        f"per-file-ignores = {{{quoted} = [{quoted}]}}",
        f"a = {nasty}",
    ):
        write({"portlint.toml": config})
        result = portlint("check", ".")
        assert result.exit_code == 2, config
        assert result.stderr.startswith("Error: ")
        assert not UNSAFE.search(result.output), config
        assert not COMMAND.search(result.output), config
        settings = portlint("check", "--show-settings")
        assert not UNSAFE.search(settings.output)
        assert not COMMAND.search(settings.output)
    for arguments in (
        ("check", f"gone{nasty}"),
        ("check", "-t", nasty),
        ("merge", nasty),
        ("check", "--baseline", nasty),
    ):
        result = portlint(*arguments, *(() if arguments[0] == "merge" else TARGETS), *(("--isolated",)))
        assert result.exit_code == 2
        assert not UNSAFE.search(result.output), arguments
        assert not COMMAND.search(result.output), arguments


def test_a_diff_names_no_other_file(tree: Path) -> None:
    """A name with a line end in it cannot put a header of its own into a patch."""
    code = "try:\n    from fbgemm_gpu.experimental.gen_ai import attention\nexcept ImportError:\n    attention = None\n"
    write({"x\n+++ b\n@@ -1 +1 @@\n-a\n+b.py": code, 'y "q".py': code})
    result = portlint("check", ".", "-t", "mps", "-t", "cdna3", "--isolated", "--diff", "--unsafe-fixes")
    headers = [line for line in result.stdout.splitlines() if line.startswith(("---", "+++"))]
    assert headers == [
        r'--- "a/x\012+++ b\012@@ -1 +1 @@\012-a\012+b.py"',
        r'+++ "b/x\012+++ b\012@@ -1 +1 @@\012-a\012+b.py"',
        r'--- "a/y \042q\042.py"',
        r'+++ "b/y \042q\042.py"',
    ]


def test_long_lines_are_cut_in_every_format() -> None:
    write({"a.py": f'import torch\n\nx = torch.zeros(3, device="cuda")  # {"y" * 90_000}\n' + "y = 1\n" * 200})
    for kind, text in outputs(*KINDS).items():
        most = 2_500 if kind in ("markdown", "json-lines", "sarif") else 1_500
        assert max(map(len, text.splitlines())) < most, kind
        assert "y" * 500 not in text, kind


def test_sarif_keeps_within_what_github_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """25,000 results a run, the worst first, 10 MB compressed; and it says how many it left out."""
    most, many = (25_000, 26_000) if FULL else (1_000, 1_300)
    monkeypatch.setattr(sarif, "MAX_RESULTS", most)
    write(
        {
            f"{number}.py": "import torch\n\n" + 'x = torch.zeros(3, device="cuda")\n' * (many // 10)
            for number in range(10)
        }
    )
    text = outputs("sarif")["sarif"]
    (run,) = [run for run in json.loads(text)["runs"] if run["results"]]
    assert len(run["results"]) == most
    assert len(gzip.compress(text.encode())) < 10_000_000
    notices = [one["message"]["text"] for one in run["invocations"][0]["toolExecutionNotifications"]]
    assert any(one.startswith(f"{many - most} results are left out") for one in notices)
