"""Suppression comments that `portlint check` writes and takes out: the code stays the same, byte for byte."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from harness import FIXTURES, fixtures

from portlint.cli import main

REASON = "an old debt"
COMMENT = rb"(?://|#) portlint: ignore\[[^\]\n]*\] " + REASON.encode()
KERNEL = """__global__ void f(float* y, float x) {
    y[0] = __shfl_xor_sync(0xffffffff, x, 16);
}
"""
MACRO = """#define SUM(x) \\
    x += __shfl_xor_sync(0xffffffff, x, 16); \\
    x += 1

__global__ void f(float* y, float x) { SUM(x); y[0] = x; }
"""
DEVICE = 'import torch\n\nx = torch.zeros(3, device="cuda")\n'


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def check(*arguments: str, targets: tuple[str, ...] = ("cdna3", "mps")) -> Result:
    named = [part for target in targets for part in ("-t", target)]
    outcome = CliRunner().invoke(main, ["check", *arguments, *named, "--output-format", "json"])
    assert outcome.exit_code in (0, 1), outcome.output
    return outcome


def report(outcome: Result) -> dict[str, list[dict[str, object]]]:
    parsed: dict[str, list[dict[str, object]]] = json.loads(outcome.stdout)
    return parsed


def add(*arguments: str, targets: tuple[str, ...] = ("cdna3", "mps")) -> dict[str, list[dict[str, object]]]:
    return report(check(*arguments, f"--add-ignore={REASON}", targets=targets))


def without_comments(data: bytes) -> bytes:
    """The bytes without the comments that were written."""
    data = re.sub(rb"(?m)^[ \t]*" + COMMENT + rb"(?:\r\n|\n)", b"", data)
    return re.sub(rb"  " + COMMENT + rb"(?=\r?\n|\Z)", b"", data)


def chosen() -> list[Path]:
    """Some fixtures with findings of every kind of file, and what is beside them."""
    many: Counter[str] = Counter()
    found = []
    for one in fixtures():
        kind = one.path.suffix or one.path.name
        targets = {target for expected in one.expectations for target in expected.targets}
        if targets & {"cdna3", "mps"} and kind != ".ipynb" and many[kind] < 8:
            many[kind] += 1
            found.append(one.path)
    assert len(many) > 8
    return found


class TestAdding:
    def test_what_holds_for_every_file(self) -> None:
        names = []
        for path in chosen():
            name = path.relative_to(FIXTURES)
            if not name.parent.exists():
                shutil.copytree(path.parent, name.parent)
            names.append(str(name))
        before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
        after = add(*names)
        assert [(one["path"], one["line"], one["rule"]) for one in after["findings"]] == []
        assert not [one for one in after["problems"] if "not edited" in str(one["message"])]
        edited = {path for path, data in before.items() if path.read_bytes() != data}
        assert {str(path) for path in edited} <= set(names)
        assert len(edited) > len(names) / 2
        for path in edited:
            data = path.read_bytes()
            assert without_comments(data) == before[path], path
            if path.suffix == ".py":
                assert ast.dump(ast.parse(data)) == ast.dump(ast.parse(before[path])), path
        now = {path: path.read_bytes() for path in before}
        add(*names)
        assert {path: path.read_bytes() for path in before} == now

    def test_only_what_was_found_is_suppressed(self) -> None:
        Path("a.py").write_text(DEVICE)
        check("a.py", f"--add-ignore={REASON}", targets=("mps",))
        assert Path("a.py").read_text().endswith(f'"cuda")  # portlint: ignore[device/is-cuda @ mps] {REASON}\n')
        assert check("a.py", targets=("mps",)).exit_code == 0
        assert check("a.py", targets=("gaudi3",)).exit_code == 1

    def test_a_macro_with_continuation_gets_it_above(self) -> None:
        Path("a.cu").write_text(MACRO)
        assert add("a.cu", targets=("cdna3",))["findings"] == []
        assert Path("a.cu").read_text().splitlines()[1:] == MACRO.splitlines()

    def test_a_macro_on_one_line_gets_it_above(self) -> None:
        text = "#define SUM(x) x += __shfl_xor_sync(0xffffffff, x, 16)\n" + MACRO.partition("\n\n")[2]
        Path("a.cu").write_text(text)
        assert add("a.cu", targets=("cdna3",))["findings"] == []
        assert Path("a.cu").read_text().splitlines()[1:] == text.splitlines()

    def test_a_kernel_in_a_string_gets_it_above_the_statement(self) -> None:
        text = f'import cupy\n\nmodule = cupy.RawModule(\n    code=r"""\n{KERNEL}"""\n)\n'
        Path("a.py").write_text(text)
        assert add("a.py")["findings"] == []
        assert ast.dump(ast.parse(Path("a.py").read_text())) == ast.dump(ast.parse(text))

    def test_a_long_line_gets_it_above(self) -> None:
        long = f'    x = torch.zeros({", ".join("3" * 20)}, device="cuda")\n'
        Path("a.py").write_text("import torch\n\nif True:\n" + long)
        assert add("a.py")["findings"] == []
        assert Path("a.py").read_text().splitlines()[3].startswith("    # portlint: ignore[")

    def test_behind_a_comment(self) -> None:
        Path("a.py").write_text(DEVICE.replace('"cuda")', '"cuda")  # noqa: X'))
        assert add("a.py")["findings"] == []
        assert '"cuda")  # noqa: X  # portlint: ignore[' in Path("a.py").read_text()

    @pytest.mark.parametrize(
        ("name", "text", "encoding"),
        [
            ("a.cu", KERNEL.replace("\n", "\r\n"), "utf-8"),
            ("a.cu", "\ufeff" + KERNEL, "utf-8"),
            ("a.cu", KERNEL.replace("{\n", "{  // größer\n"), "latin-1"),
            ("a.cu", "\ufeff" + KERNEL, "utf-16-le"),
            ("a.cu", KERNEL.rstrip("\n").replace("\n}", " }"), "utf-8"),
            ("a.py", "# -*- coding: latin-1 -*-\n# größer\n" + DEVICE, "latin-1"),
            ("a.py", "#!/usr/bin/env python\n" + DEVICE.rstrip("\n"), "utf-8"),
            ("a.py", DEVICE.replace("\n\n", "\n").replace("\n", "\r\n"), "utf-8"),
        ],
    )
    def test_bytes(self, name: str, text: str, encoding: str) -> None:
        data = text.encode(encoding)
        Path(name).write_bytes(data)
        Path(name).chmod(0o750)
        assert add(name)["findings"] == []
        written = Path(name).read_bytes()
        if encoding == "utf-16-le":
            written, data = (one.decode(encoding).encode() for one in (written, data))
        assert written != data
        assert without_comments(written) == data
        assert Path(name).stat().st_mode & 0o777 == 0o750

    def test_a_reason_that_the_encoding_cannot_hold(self) -> None:
        data = b"# coding: latin-1\n" + DEVICE.encode()
        Path("a.py").write_bytes(data)
        (problem,) = report(check("a.py", "--add-ignore=später → nie"))["problems"]
        assert problem["path"] == "a.py"
        assert "not edited" in str(problem["message"])
        assert Path("a.py").read_bytes() == data

    def test_a_reason_that_names_an_encoding(self) -> None:
        Path("a.py").write_text(f'import torch; x = torch.zeros({", ".join("3" * 30)}, device="cuda")\n')
        outcome = report(check("a.py", "--add-ignore=coding: latin-1"))
        assert "not edited" in str(outcome["problems"][0]["message"])

    def test_a_notebook_is_named(self) -> None:
        cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": DEVICE, "execution_count": None}
        text = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        Path("a.ipynb").write_text(text)
        outcome = add("a.ipynb")
        assert outcome["findings"]
        assert "comments are not written into notebooks" in str(outcome["problems"][0]["message"])
        assert Path("a.ipynb").read_text() == text

    def test_a_file_that_cannot_be_written(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Path("a.py").write_text(DEVICE)

        def refuse(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", refuse)
        assert "No space left" in str(add("a.py")["problems"][0]["message"])
        assert Path("a.py").read_text() == DEVICE
        assert [one.name for one in Path().iterdir() if one.is_file()] == ["a.py"]

    def test_findings_of_the_baseline_get_none(self) -> None:
        Path("a.py").write_text(DEVICE)
        assert CliRunner().invoke(main, ["baseline", "write", "a.py", "-t", "mps"]).exit_code == 0
        check("a.py", f"--add-ignore={REASON}", targets=("mps",))
        assert Path("a.py").read_text() == DEVICE

    @pytest.mark.parametrize("reason", ["", " ", "two\nlines", "goes on \\", "portlint: ignore[x] y"])
    def test_a_reason_that_is_none(self, reason: str) -> None:
        Path("a.py").write_text(DEVICE)
        outcome = CliRunner().invoke(main, ["check", "a.py", "-t", "mps", f"--add-ignore={reason}"])
        assert outcome.exit_code == 2
        assert Path("a.py").read_text() == DEVICE


UNUSED = "portlint: ignore[lanes/mask-is-32-bit @ cdna3] old"
REMOVALS = {
    "behind": (f"int x;  // {UNUSED}\n", "int x;\n"),
    "on a line of its own": (f"int x;\n    // {UNUSED}\nint y;\n", "int x;\nint y;\n"),
    "with other line ends": (f"int x;\r\n// {UNUSED}\r\nint y;\r\n", "int x;\r\nint y;\r\n"),
    "at the end": (f"int x;  // {UNUSED}", "int x;"),
    "behind another comment": (f"int x;  // a word  // {UNUSED}\n", "int x;  // a word\n"),
    "inside another comment": (f"int x;  // a word {UNUSED}\n", "int x;  // a word\n"),
    "before another directive": (
        f"int x;  // {UNUSED}  // portlint: ignore[lanes @ mps] kept\n",
        "int x;  // portlint: ignore[lanes @ mps] kept\n",
    ),
    "two": (f"int x;  // {UNUSED}  // {UNUSED}\n", "int x;\n"),
    "a block": (f"int x;  /* {UNUSED} */\nint y;\n", "int x;\nint y;\n"),
    "a block within a line": (f"int /* {UNUSED} */ x;\n", "int  x;\n"),
    "a block with more in it": (f"/* a word\n * {UNUSED}\n */\nint x;\n", "/* a word\n *\n */\nint x;\n"),
}


class TestRemoving:
    @pytest.mark.parametrize(("before", "after"), REMOVALS.values(), ids=REMOVALS)
    def test_unused(self, before: str, after: str) -> None:
        head = "__global__ void f();\n"
        Path("a.cu").write_bytes((head + before).encode())
        outcome = report(check("a.cu", "--remove-unused-ignores", targets=("cdna3",)))
        assert Path("a.cu").read_bytes().decode() == head + after
        assert outcome["problems"] == []

    @pytest.mark.parametrize(
        "comment",
        [f"ignore[device/is-cuda] {REASON}", "ignore[device]", "expect[lanes/warp-is-32]", "ignore[lanes @ tpu-v6e]"],
    )
    def test_what_is_used_or_not_judged_stays(self, comment: str) -> None:
        text = DEVICE.replace('"cuda")', f'"cuda")  # portlint: {comment}')
        Path("a.py").write_text(text)
        check("a.py", "--remove-unused-ignores")
        assert Path("a.py").read_text() == text

    def test_a_pack_of_which_not_all_ran_stays(self) -> None:
        text = DEVICE.replace('"cuda")', '"cuda")  # portlint: ignore[device] x')
        Path("a.py").write_text(text)
        check("a.py", "--remove-unused-ignores", "--select", "device/nccl-exists")
        assert Path("a.py").read_text() == text

    def test_in_a_string_it_is_named(self) -> None:
        kernel = KERNEL.replace("0xffffffff", "0xffffffffffffffff").replace("{\n", f"{{  // {UNUSED}\n", 1)
        text = f'import cupy\n\nmodule = cupy.RawModule(code=r"""\n{kernel}""")\n'
        Path("a.py").write_text(text)
        problems = report(check("a.py", "--remove-unused-ignores", targets=("cdna3",)))["problems"]
        assert any("stands in a string" in str(one["message"]) for one in problems)
        assert Path("a.py").read_text() == text

    def test_what_was_written_goes_when_it_is_mended(self) -> None:
        Path("a.cu").write_text(MACRO)
        add("a.cu", targets=("cdna3",))
        mended = Path("a.cu").read_text().replace("0xffffffff", "0xffffffffffffffffull")
        Path("a.cu").write_text(mended)
        check("a.cu", "--remove-unused-ignores", targets=("cdna3",))
        assert Path("a.cu").read_text() == MACRO.replace("0xffffffff", "0xffffffffffffffffull")

    def test_one_step_at_a_time(self) -> None:
        Path("a.py").write_text(DEVICE)
        for more in (("--remove-unused-ignores", "--add-ignore=x"), ("--stdin-filename", "b.py", "--add-ignore=x")):
            arguments = ["check", *(() if "--stdin-filename" in more else ("a.py",)), "-t", "mps", *more]
            assert CliRunner().invoke(main, arguments, input="").exit_code == 2
