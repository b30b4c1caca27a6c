"""Fixes: which edits are made, what becomes of the bytes of a file, and what `--fix` and `--diff` say."""

from __future__ import annotations

import codecs
import errno
import json
import os
import signal
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from harness import fixed, rules

from portlint.cli import main
from portlint.finding import Edit, Finding, StatedFact, Verdict
from portlint.fix import Change, Unfit, choose, edits_of, rewrite, unified, write

SAFE = "import torch\n\n\ndef wait() -> None:\n    torch.cuda.synchronize()\n"
MENDED = "import torch\n\n\ndef wait() -> None:\n    if torch.cuda.is_available():\n        torch.cuda.synchronize()\n"
UNSAFE = "import torch\n\n\ndef make(x, device):\n    return x.cuda()\n"


def finding(*edits: Edit, rule: str = "device/is-cuda", target: str = "mps", line: int = 1) -> Finding:
    fact = StatedFact("device.cuda", "none", "no CUDA")
    place = {"line": line, "column": 1, "end_line": line, "end_column": 2}
    said = {"message": "m", "assumes": {}, "fact": fact, "remedy": "r", "kernel": None, "fingerprint": "f"}
    return Finding(
        rule=rule, target=target, verdict=Verdict.BREAKS, path="a.py", edits=edits, safe=True, **place, **said
    )


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, stdin: str | None = None) -> Result:
        options = ["check", "--isolated", "--target", "mps", "--select", "device/is-cuda", "--jobs", "1"]
        return CliRunner().invoke(main, [*options, *arguments], input=stdin)

    return run


class TestChoice:
    def test_the_same_fix_for_two_targets_is_made_once(self) -> None:
        edit = Edit(0, 1, "x")
        both = choose([finding(edit), finding(edit, target="gaudi3")])
        assert edits_of(both) == [edit]
        assert Change("a.py", "a.py", b"", b"", (both,)).fixes == 1

    def test_of_two_that_meet_the_first_in_order_is_made(self) -> None:
        one, other = finding(Edit(0, 3, "x")), finding(Edit(2, 4, "y"), line=2)
        assert choose([other, one]) == (one,)

    def test_a_fix_is_made_whole_or_not_at_all(self) -> None:
        taken, other = finding(Edit(0, 3, "x")), finding(Edit(2, 4, "y"), Edit(9, 9, "z"), line=2)
        assert choose([taken, other]) == (taken,)

    def test_what_stands_side_by_side_does_not_meet(self) -> None:
        edits = [Edit(0, 2, "x"), Edit(2, 4, "y"), Edit(4, 4, "z")]
        assert edits_of(choose(finding(one, line=line) for line, one in enumerate(edits, 1))) == edits

    def test_two_texts_at_one_place_meet(self) -> None:
        one, other = finding(Edit(3, 3, "x")), finding(Edit(3, 3, "y"), line=2)
        assert choose([one, other]) == (one,)

    def test_the_same_text_for_two_ends_is_not_put_in_once(self) -> None:
        outer = finding(Edit(0, 0, "("), Edit(9, 9, ")"))
        assert choose([finding(Edit(4, 4, "("), Edit(9, 9, ")"), line=2), outer]) == (outer,)


class TestBytes:
    @pytest.mark.parametrize(
        ("data", "kind"),
        [
            (codecs.BOM_UTF8 + "# é\nx = 1\n".encode(), "python"),
            ("# coding: latin-1\n# é\nx = 1\n".encode("latin-1"), "python"),
            ("# -*- coding: euc_kr -*-\n# 한글\nx = 1\n".encode("euc_kr"), "python"),
            ("// é\r\nx = 1\r\n".encode(), "cuda"),
            ("// é\nx = 1;".encode("cp1252"), "cuda"),
            (codecs.BOM_UTF16_LE + "// é\nx = 1;\n".encode("utf-16-le"), "cuda"),
        ],
    )
    def test_encoding_and_all_other_bytes_stay(self, data: bytes, kind: str) -> None:
        from portlint.source.decode import decode

        decoded = decode(data, kind)
        at = decoded.text.rindex(b"1")
        spelled = "1".encode(decoded.encoding)
        expected = (
            data[: data.rindex(spelled)] + "22".encode(decoded.encoding) + data[data.rindex(spelled) + len(spelled) :]
        )
        assert rewrite(data, kind, [Edit(at, at + 1, "22")]) == expected
        assert rewrite(data, kind, []) == data

    def test_a_character_that_the_encoding_lacks(self) -> None:
        with pytest.raises(Unfit, match="latin_1 lacks"):
            rewrite(b"# coding: latin-1\n# \xe9\n", "python", [Edit(18, 18, "\u20ac")])

    def test_the_mode_and_a_link_stay(self, tmp_path: Path) -> None:
        file, link = tmp_path / "a.py", tmp_path / "b.py"
        file.write_bytes(b"old")
        file.chmod(0o750)
        link.symlink_to(file)
        write(Change("b.py", str(link), b"old", b"new"))
        assert link.is_symlink()
        assert file.read_bytes() == b"new"
        assert stat.S_IMODE(file.stat().st_mode) == 0o750
        assert sorted(os.listdir(tmp_path)) == ["a.py", "b.py"]

    def test_a_file_that_changed_in_between_is_left(self, tmp_path: Path) -> None:
        file = tmp_path / "a.py"
        file.write_bytes(b"newer")
        with pytest.raises(Unfit, match="has changed"):
            write(Change("a.py", str(file), b"old", b"new"))
        assert file.read_bytes() == b"newer"

    def test_a_file_of_several_names_is_left(self, tmp_path: Path) -> None:
        file = tmp_path / "a.py"
        file.write_bytes(b"old")
        (tmp_path / "b.py").hardlink_to(file)
        with pytest.raises(Unfit, match="2 names"):
            write(Change("a.py", str(file), b"old", b"new"))
        assert file.read_bytes() == b"old"

    def test_a_file_that_is_gone_stays_gone(self, tmp_path: Path) -> None:
        with pytest.raises(Unfit, match="No such file"):
            write(Change("a.py", str(tmp_path / "a.py"), b"old", b"new"))
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize("step", ["fsync", "replace"])
    def test_a_full_disk_leaves_the_old_file_and_nothing_else(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        file = tmp_path / "a.py"
        file.write_bytes(b"old")
        monkeypatch.setattr(os, step, full)
        with pytest.raises(Unfit, match="No space left"):
            write(Change("a.py", str(file), b"old", b"new"))
        assert file.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["a.py"]

    @pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals cannot wait here")
    def test_ctrl_c_waits_for_the_file_that_is_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(*arguments: str) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            put(*arguments)

        put = os.replace
        file = tmp_path / "a.py"
        file.write_bytes(b"old")
        monkeypatch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write(Change("a.py", str(file), b"old", b"new"))
        assert file.read_bytes() == b"new"
        assert os.listdir(tmp_path) == ["a.py"]

    @pytest.mark.parametrize(("before", "after"), [(b"a\nb", b"a\nc"), (b"a\r\nb\r\n", b"a\r\nc\r\n"), (b"b", b"c\n")])
    def test_a_diff_can_be_applied(self, tmp_path: Path, before: bytes, after: bytes) -> None:
        (tmp_path / "x.py").write_bytes(before)
        diff = unified(Change("x.py", "x.py", before, after))
        subprocess.run(["git", "apply", "-"], input=diff, cwd=tmp_path, check=True)
        assert (tmp_path / "x.py").read_bytes() == after


class TestCommand:
    def test_fix_makes_the_safe_ones_and_reports_the_rest(self, check: Callable[..., Result], tmp_path: Path) -> None:
        (tmp_path / "a.py").write_text(SAFE)
        (tmp_path / "b.py").write_text(UNSAFE)
        result = check("--fix", "--output-format", "concise", ".")
        assert result.exit_code == 1
        assert [line.partition(":")[0] for line in result.stdout.splitlines()] == ["b.py"]
        assert "portlint: 1 fix made in 1 file" in result.stderr
        assert (tmp_path / "a.py").read_text() == MENDED
        assert (tmp_path / "b.py").read_text() == UNSAFE

    def test_all_fixed_is_exit_0(self, check: Callable[..., Result], tmp_path: Path) -> None:
        (tmp_path / "a.py").write_text(SAFE)
        (tmp_path / "b.py").write_text(UNSAFE)
        assert check("--fix", "--unsafe-fixes", ".").exit_code == 0
        assert (tmp_path / "b.py").read_text() == UNSAFE.replace("cuda()", "to(device)")

    def test_diff_writes_nothing(self, check: Callable[..., Result], tmp_path: Path) -> None:
        (tmp_path / "a.py").write_text(SAFE)
        result = check("--diff", ".")
        assert result.exit_code == 1
        assert "+    if torch.cuda.is_available():\n" in result.stdout
        assert "1 fix would be made in 1 file" in result.stderr
        assert (tmp_path / "a.py").read_text() == SAFE
        (tmp_path / "a.py").write_text(MENDED)
        assert check("--diff", ".").exit_code == 0

    def test_diff_of_standard_input(self, check: Callable[..., Result]) -> None:
        assert check("--diff", "--stdin-filename", "x.py", "-", stdin=SAFE).stdout.startswith(
            "--- a/x.py\n+++ b/x.py\n"
        )

    @pytest.mark.parametrize(
        "wrong",
        [
            ("--unsafe-fixes",),
            ("--diff", "--output-format", "json"),
            ("--fix", "--stdin-filename", "x.py"),
            ("--fix", "--shard", "1/2"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, check: Callable[..., Result], wrong: tuple[str, ...]) -> None:
        assert check(*wrong).exit_code == 2

    def test_what_is_suppressed_is_not_fixed(self, check: Callable[..., Result], tmp_path: Path) -> None:
        text = SAFE.replace("synchronize()", "synchronize()  # portlint: ignore[device/is-cuda] by hand")
        (tmp_path / "a.py").write_text(text)
        assert check("--fix", ".").exit_code == 0
        assert (tmp_path / "a.py").read_text() == text

    def test_line_ends_are_those_of_the_file(self, check: Callable[..., Result], tmp_path: Path) -> None:
        (tmp_path / "a.py").write_bytes(SAFE.replace("\n", "\r\n").encode())
        check("--fix", ".")
        assert (tmp_path / "a.py").read_bytes() == MENDED.replace("\n", "\r\n").encode()

    def test_a_file_that_may_not_be_written_is_named(
        self, check: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "a.py").write_text(SAFE)
        monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)  # for root, who may write everything
        result = check("--fix", "--output-format", "concise", ".")
        assert "a.py: fix: left alone: it may not be written" in result.stdout
        assert (tmp_path / "a.py").read_text() == SAFE

    def test_a_link_out_of_the_tree_is_not_followed(self, check: Callable[..., Result], tmp_path: Path) -> None:
        (tmp_path / "elsewhere.py").write_text(SAFE)
        (tmp_path / "tree").mkdir()
        (tmp_path / "tree" / "link.py").symlink_to(tmp_path / "elsewhere.py")
        (tmp_path / "tree" / "a.py").write_text(SAFE)
        (tmp_path / "tree" / "again.py").symlink_to("a.py")
        assert "1 fix made in 1 file" in check("--fix", "tree").stderr
        assert (tmp_path / "elsewhere.py").read_text() == SAFE
        assert (tmp_path / "tree" / "a.py").read_text() == MENDED
        assert (tmp_path / "tree" / "again.py").is_symlink()

    def test_json_says_what_kind_of_fix_there_is(self, check: Callable[..., Result], tmp_path: Path) -> None:
        (tmp_path / "a.py").write_text(SAFE)
        (tmp_path / "b.py").write_text(UNSAFE)
        (tmp_path / "c.py").write_text("import torch\n\nx = torch.cuda.current_device()\n")
        found = json.loads(check("--output-format", "json", ".").stdout)["findings"]
        assert [(one["path"], one["fix"]) for one in found] == [("a.py", "safe"), ("b.py", "unsafe"), ("c.py", None)]

    def test_sarif_has_the_edits(self, check: Callable[..., Result], tmp_path: Path) -> None:
        (tmp_path / "b.py").write_text(UNSAFE)
        (result,) = json.loads(check("--output-format", "sarif", ".").stdout)["runs"][0]["results"]
        (change,) = result["fixes"][0]["artifactChanges"]
        assert change["artifactLocation"] == {"uri": "b.py"}
        region = {"startLine": 5, "startColumn": 14, "endLine": 5, "endColumn": 20}
        assert change["replacements"] == [{"deletedRegion": region, "insertedContent": {"text": "to(device)"}}]


def notebook(*lines: str) -> bytes:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": list(lines)}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1).encode()


@pytest.mark.parametrize("quotes", ['"', "'''"])
def test_no_quotes_are_put_into_what_a_string_replaces(tmp_path: Path, quotes: str) -> None:
    file = tmp_path / "a.py"
    file.write_text(f"import torch\nz = f{quotes}{{torch.load(path)}}{quotes}\n")
    assert fixed(file, [rules()["device/checkpoint-device-exists"]], unsafe=True) == file.read_bytes()


def test_code_that_a_fix_repeats_keeps_its_line_ends(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b'import torch\r\nx = torch.version\\\r\n  .cuda > "12"\r\n')
    name = b"torch.version\\\r\n  .cuda"
    after = fixed(file, [rules()["device/cuda-version-is-set"]], unsafe=False)
    assert after == b"import torch\r\nx = " + name + b" is not None and " + name + b' > "12"\r\n'


class TestNotebook:
    def test_only_the_string_is_edited(self, check: Callable[..., Result], tmp_path: Path) -> None:
        before = notebook('print("é\\t\\"")\n', "import torch\n", "torch.cuda.synchronize()")
        (tmp_path / "a.ipynb").write_bytes(before)
        assert check("--fix", ".").exit_code == 0
        after = (tmp_path / "a.ipynb").read_bytes()
        added = b'if torch.cuda.is_available():\\n",\n    "    '
        assert after.replace(added, b"") == before
        assert after.count(added) == 1

    @pytest.mark.parametrize(
        ("line_end", "lead", "between"), [("\n", "", "\\n    "), ("\r\n", "\r\n\t", '\\n",\r\n\t"    ')]
    )
    def test_a_new_line_is_a_string_where_each_line_is(
        self, check: Callable[..., Result], tmp_path: Path, line_end: str, lead: str, between: str
    ) -> None:
        source = (
            f'[{lead}"import torch\\n",{lead}"torch.cuda.init()"]' if lead else '"import torch\\ntorch.cuda.init()"'
        )
        cell = f'{{"cell_type": "code",{line_end}"source": {source}{line_end}}}'
        before = f'{{"cells": [{cell}], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}{line_end}'.encode()
        (tmp_path / "a.ipynb").write_bytes(before)
        check("--fix", ".")
        added = f"if torch.cuda.is_available():{between}".encode()
        assert (tmp_path / "a.ipynb").read_bytes() == before.replace(b"torch.cuda.init()", added + b"torch.cuda.init()")

    def test_an_edit_across_strings_is_not_made(self, check: Callable[..., Result], tmp_path: Path) -> None:
        before = notebook("import torch\n", "device = torch.device(0)\n", "x = torch.ones(2).cuda(\n", ")")
        (tmp_path / "a.ipynb").write_bytes(before)
        check("--fix", "--unsafe-fixes", ".")
        assert (tmp_path / "a.ipynb").read_bytes() == before


KERNEL = """import cupy

kernel = cupy.RawKernel({before}
__global__ void f(const float* x, int* out) {{
    int n = __popc(__ballot_sync(__activemask(), x[threadIdx.x] > 0));
    if (threadIdx.x == 0) out[0] = n;
}}
{after}, "f")
"""


@pytest.mark.parametrize(("before", "after"), [('r"""', '"""'), ('"""', '"""'), ("'''", "'''")])
def test_a_kernel_in_a_string_is_edited_where_it_stands(tmp_path: Path, before: str, after: str) -> None:
    file = tmp_path / "a.py"
    file.write_text(KERNEL.format(before=before, after=after))
    mended = fixed(file, [rules()["lanes/mask-is-32-bit"]], unsafe=False)
    assert mended.decode() == file.read_text().replace("__popc(", "__popcll(")


def test_a_text_with_escapes_in_the_way_is_left(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(KERNEL.format(before='"""', after='"""').replace("__popc(", "__pop\\x63("))
    assert fixed(file, [rules()["lanes/mask-is-32-bit"]], unsafe=True) == file.read_bytes()
