"""Files that steer portlint and that somebody else wrote: configuration, baseline, evidence, reports, notebooks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from runs import DEVICE, FULL, KERNEL, TARGETS, check, environment, found, portlint, scan, write

from portlint.source.prescan import Limits

DEEP = 100_000

TOML = {
    "nested lists": "select = " + "[" * DEEP + "]" * DEEP,
    "nested tables": "x = " + "{a = " * 20_000 + "1" + "}" * 20_000,
    "unclosed": "select = " + "[" * DEEP,
    "dots": "a." * DEEP + "b = 1",
    "tables": "".join(f"[a{number}]\n" for number in range(20_000)),
    "headers": "[" + "a." * 20_000 + "b]\n",
    "large": "# " + "x" * (50_000_000 if FULL else 2_000_000),
    "long string": 'select = ["' + "x" * 200_000 + '"]',
    "many selectors": "select = [" + '"x", ' * 40_000 + "]",
    "many patterns": "exclude = [" + '"*a*a*a*a*a*b", ' * 10_000 + "]",
    "stars": 'exclude = ["' + "*a" * 10_000 + '"]',
    "braces": 'exclude = ["' + "{a,b}" * 20_000 + "[z-a]" + '"]',
    "number": "x = " + "9" * 100_000,
    "date": "x = 9999-99-99",
    "nul": "x = '\0'",
    "bytes": b"\xff\xfe\x00",
    "surrogate": 'x = "\\ud800"',
    "escapes": 'x = "' + "\\n" * 100_000,
    "quotes": "x = " + '"' * 100_000,
    "twice": "select = []\nselect = []\n",
}


@pytest.mark.parametrize("kind", TOML)
@pytest.mark.parametrize("name", ["portlint.toml", "pyproject.toml"])
def test_a_configuration_that_is_a_bomb_is_one_message(kind: str, name: str) -> None:
    text = TOML[kind]
    head = b"" if name == "portlint.toml" else b"[tool.portlint]\n"
    write({name: head + (text.encode() if isinstance(text, str) else text), "a.py": DEVICE})
    result = portlint("check", "a.py", *TARGETS)
    if kind in ("headers", "tables") and name == "pyproject.toml":
        return  # tables of others are none of our business
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr) < 250_000


def test_a_configuration_runs_nothing_and_reaches_nothing_outside() -> None:
    """No plugin, no command, no file of the configuration's choosing is executed."""
    write({"a.py": DEVICE, "evil.py": "open('fired', 'w')\n", "rules/x/y.py": "open('fired', 'w')\n"})
    for key in ("plugins", "rules", "extends", "command", "formatter", "python", "hooks", "cache-dir", "output-file"):
        write({"portlint.toml": f'{key} = "evil.py"\n'})
        result = portlint("check", "a.py", *TARGETS)
        assert result.exit_code == 2
        assert f"there is no key '{key}'" in result.stderr or "A configuration runs no code" in result.stderr
    for value in ("../../../../etc/passwd", "/etc/passwd", "/dev/zero", "/dev/stdin", "~/.ssh/id_rsa"):
        write({"portlint.toml": f"baseline = {json.dumps(value)}\n"})
        result = portlint("check", "a.py", *TARGETS)
        assert "root:" not in result.output
        assert result.exit_code in (1, 2)
    assert not Path("fired").exists()


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


JSON = {
    "deep": f'{{"version": 1, "entries": {nested(DEEP)}}}',
    "deep and unknown": f'{{"other": {nested(DEEP)}, "version": 1, "entries": []}}',
    "unclosed": '{"version": 1, "entries": ' + "[" * DEEP,
    "no UTF-8": b'{"version": 1, "entries": "\xff"}',
    "number": '{"version": ' + "9" * 20_000 + "}",
    "exponent": '{"version": 1e999999999}',
    "nul": b"\0" * 1_000,
    "list": "[]",
    "null": "null",
    "empty": "",
    "string": '"' + "x" * 5_000_000 + '"',
    "keys": "{" + ",".join(f'"a{number}": 1' for number in range(100_000)) + "}",
    "pickle": b"\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x0btouch fired\x94\x85\x94R\x94.",
    "later": '{"version": 99, "entries": []}',
}


@pytest.mark.parametrize("kind", JSON)
def test_a_file_of_findings_that_is_a_bomb_is_one_message(kind: str) -> None:
    """As baseline, as evidence, as a report to merge or to compare with: one line, and status 2."""
    text = JSON[kind]
    write({"x.json": text if isinstance(text, bytes) else text.encode(), "a.py": DEVICE})
    for arguments in (
        ("check", "a.py", *TARGETS, "--isolated", "--baseline", "x.json"),
        ("check", "a.py", *TARGETS, "--isolated", "--evidence", "x.json"),
        ("report", "a.py", *TARGETS, "--isolated", "--since", "x.json"),
        ("report", "a.py", *TARGETS, "--isolated", "--fit", "x.json"),
        ("merge", "x.json", "--isolated"),
    ):
        result = portlint(*arguments)
        assert result.exit_code == 2, (arguments, result.output)
        assert result.stdout == ""
        assert result.stderr.startswith("Error: "), arguments
        assert len(result.stderr) < 1_000
    assert not Path("fired").exists()


def test_a_baseline_that_names_files_elsewhere_reads_none_of_them() -> None:
    entry = {"rule": "device/is-cuda", "target": "mps", "fingerprint": "0"}
    paths = (
        "../../../../etc/passwd",
        "/etc/shadow",
        "\x1b[2J",
        "a\n::error::x",
        "x" * 5_000,
        "",
        ".",
        "\\\\host\\share",
    )
    entries = [{"path": path, **entry} for path in paths]
    write({"portlint-baseline.json": json.dumps({"version": 1, "entries": entries}), "a.py": DEVICE})
    result = portlint("check", ".", *TARGETS, "--output-format", "concise")
    assert result.exit_code == 1
    assert "root:" not in result.output
    assert "\x1b" not in result.output
    assert "\n::error" not in result.output


def test_counts_in_a_baseline_cost_no_memory() -> None:
    """An entry that says that it stands for a billion findings."""
    entries = [{"path": "a.py", "rule": "device/is-cuda", "target": "mps", "fingerprint": "0", "count": 10**9}]
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30));"
        "from portlint.cli import main; main(sys.argv[1:])"
    )
    write({"portlint-baseline.json": json.dumps({"version": 1, "entries": entries}), "a.py": DEVICE})
    run = subprocess.run(
        [sys.executable, "-P", "-c", script, "check", ".", *TARGETS, "--isolated", "--output-format", "concise"],
        capture_output=True,
        env=environment(),
        check=False,
        timeout=300,
    )
    assert run.returncode == 1, run.stderr
    assert b"a.py:3:5" in run.stdout


CELL = '{"cell_type": "code", "source": ["import torch\\n", "x = torch.cuda.current_device()"]}'
NOTEBOOKS = {
    "deep": f'{{"cells": {nested(DEEP)}, "nbformat": 4}}',
    "deep beside": f'{{"cells": [{CELL}], "metadata": {nested(DEEP)}, "nbformat": 4}}',
    "unclosed": '{"cells": [' + CELL,
    "strings": '{"cells": ["' + '\\"' * 100_000 + '"], "nbformat": 4}',
    "surrogate": '{"cells": [{"cell_type": "code", "source": "x = \\ud800"}], "nbformat": 4}',
    "nul": '{"cells": [{"cell_type": "code", "source": "x = \\u0000"}], "nbformat": 4}',
    "format": '{"cells": [], "nbformat": 1e400}',
    "list": "[]",
    "text": "import torch\n",
}


def test_a_notebook_that_is_a_bomb_costs_itself() -> None:
    texts = {f"{kind}.ipynb": text.encode() for kind, text in NOTEBOOKS.items()}
    texts["good.ipynb"] = f'{{"cells": [{CELL}], "nbformat": 4}}'.encode()
    many = f'{{"cells": [{", ".join([CELL] * (20_000 if FULL else 500))}], "nbformat": 4}}'
    texts["many.ipynb"] = many.encode()
    results = scan(texts.items(), Limits())
    assert results["strings.ipynb"].findings == ()  # a cell that is a text holds no code
    for kind in NOTEBOOKS.keys() - {"strings"}:
        assert not results[f"{kind}.ipynb"].analysed, kind
        assert [problem.kind for problem in results[f"{kind}.ipynb"].problems] == ["read"]
    assert results["good.ipynb"].findings
    assert results["many.ipynb"].findings or results["many.ipynb"].problems


def test_archives_are_not_opened() -> None:
    """A wheel, a zip file and a tar file may hold what they like."""
    import zipfile

    for name in ("a.whl", "a.zip", "a.egg", "a.nbz"):
        with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.py", DEVICE + "\n" * 5_000_000)
    write({"good.cu": KERNEL})
    report = check()
    assert found(report) == ["good.cu"]
    assert report["summary"]["files"] == 1
    assert os.path.getsize("a.whl") < 100_000
