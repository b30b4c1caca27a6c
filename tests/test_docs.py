"""The pages of docs/ that tools/make_docs.py writes are up to date, and the tool says so when they are not."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from portlint.rules import discover
from portlint.target import shipped

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("docs/rules/lanes/warp-is-32.md")


def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "tools" / "make_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = load_tool()


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose pages have just been written."""
    for name in ("CHANGELOG.md", "zensical.toml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    monkeypatch.setattr(TOOL, "ROOT", tmp_path)
    TOOL.write()
    return tmp_path


def check(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["make_docs.py", "--check"])
    status: int = TOOL.main()
    return status


def test_no_page_is_stale() -> None:
    found = [f"{path.as_posix()} {reason}" for path, reason in TOOL.stale().items()]
    assert not found, f"run '{TOOL.COMMAND}': {', '.join(found)}"


def test_every_rule_and_target_has_its_place() -> None:
    pages = TOOL.pages()
    assert {f"docs/rules/{name}.md" for name in discover()} <= {path.as_posix() for path in pages}
    index = pages[Path("docs/rules/README.md")]
    assert re.findall(r"^\| \[([a-z0-9/-]+)\]", index, flags=re.MULTILINE) == list(discover())
    for name in shipped():
        assert f"\n| `{name}` |" in pages[Path("docs/targets.md")]


def test_every_rule_is_in_the_navigation() -> None:
    navigation = TOOL.pages()[Path("zensical.toml")]
    tomllib.loads(navigation)
    assert re.findall(r'"rules/([a-z0-9/-]+)\.md"', navigation) == list(discover())


def test_a_rule_page_has_its_properties() -> None:
    page = TOOL.pages()[PAGE]
    assert "| Languages | CUDA and HIP C++, Python |" in page
    assert "| Fires on | corrupts: cdna2, cdna3, cdna4 |" in page
    assert "| Since | 0.1.0 |" in page
    assert "| To suppress | `// portlint: ignore[lanes/warp-is-32] reason` |" in page
    assert "\n```cuda\n// The sum over a block" in page
    assert "## References" in page


def test_key_facts_link_to_their_sources() -> None:
    row = next(line for line in TOOL.pages()[Path("docs/targets.md")].splitlines() if line.startswith("| `cdna3` |"))
    assert "[64](https://" in row
    assert "[65,536](https://" in row
    assert "[cuda](https://" in row


@pytest.mark.parametrize("page", TOOL.pages(), ids=Path.as_posix)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", TOOL.pages()[page], flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", prose):
        assert (ROOT / page.parent / link).exists(), link


@pytest.mark.usefixtures("elsewhere")
def test_check_accepts_what_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(monkeypatch) == 0


def test_check_names_what_is_wrong(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (elsewhere / PAGE).write_text("edited by hand\n", encoding="utf-8")
    (elsewhere / "docs/targets.md").unlink()
    (elsewhere / "docs/rules/lanes/is-gone.md").write_text("a rule that was renamed\n", encoding="utf-8")
    assert check(monkeypatch) == 1
    assert capsys.readouterr().err.splitlines() == [
        "docs/rules/lanes/warp-is-32.md is stale",
        "docs/targets.md is missing",
        "docs/rules/lanes/is-gone.md belongs to no rule",
        f"Run '{TOOL.COMMAND}'.",
    ]
    TOOL.write()
    assert check(monkeypatch) == 0


def test_a_rule_that_the_changelog_does_not_name_is_asked_for(elsewhere: Path) -> None:
    changelog = elsewhere / "CHANGELOG.md"
    changelog.write_text(changelog.read_text(encoding="utf-8").replace("`dtype/float64`", "`dtype/other`"))
    with pytest.raises(SystemExit, match="does not name the rule `dtype/float64`"):
        TOOL.pages()


def test_since_is_the_version_that_first_names_a_rule() -> None:
    releases = TOOL._releases("## [0.2.0] - x\n\n- `lanes/a` sees more, `lanes/b`\n\n## [0.1.0] - x\n\n- `lanes/a`\n")
    assert [TOOL._since(name, releases) for name in ("lanes/a", "lanes/b")] == ["0.1.0", "0.2.0"]
