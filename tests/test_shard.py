"""Shards of one run: every file in one of them, and merged reports that are those of the whole run, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from test_report import REPORTS

from portlint.cli import main
from portlint.finding import Evidence, Report, Shard
from portlint.report import KINDS, render
from portlint.shard import ShardError, merged, parse, part
from portlint.source.discover import Found, printable_path
from portlint.verify.evidence import Entry
from portlint.verify.evidence import write as write_evidence

MASKS = """__global__ void sum(float* x) {
    for (int o = 16; o > 0; o >>= 1) x[0] += __shfl_xor_sync(0xffffffff, x[0], o);
}
"""
DEVICE = 'import torch\n\nx = torch.zeros(3, device="cuda")\n'
NOTEBOOK = {
    "cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": [DEVICE]}],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}
TREE = {
    "a.cu": MASKS,
    "b.hip": MASKS * 7,
    "lib/c.py": DEVICE,
    "lib/d.ipynb": json.dumps(NOTEBOOK),
    "lib/broken.ipynb": "{",
    "e.cu": "cudaError_t run(cudaStream_t s) { return cudaStreamSynchronize(s); }\n",
    "f.cu": MASKS.replace("o);\n", "o);  // portlint: ignore[lanes] ported\n"),
    "g.py": "x = 1  # portlint: ignore[device] nothing here\n",
    "<b>`h`|.cu": MASKS,
}
TARGETS = ("-t", "cdna3", "-t", "mps")

Portlint = Callable[..., Result]


@pytest.fixture
def portlint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Portlint:
    """Run portlint in a temporary folder with a small tree `src`."""
    monkeypatch.chdir(tmp_path)
    for name, content in TREE.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    Path("src/away.cu").symlink_to("/nowhere")

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(main, arguments)

    return run


def shards(portlint: Portlint, count: int, *options: str) -> list[str]:
    files = [f"{index}.json" for index in range(1, count + 1)]
    for index, file in enumerate(files, start=1):
        result = portlint("check", "src", *TARGETS, "--shard", f"{index}/{count}", "--output-format", f"json:{file}")
        assert result.exit_code < 2, result.output
    return files


def every_format(prefix: str) -> list[str]:
    return [argument for kind in KINDS for argument in ("--output-format", f"{kind}:{prefix}.{kind}")]


def content(prefix: str, kind: str) -> list[str]:
    lines = Path(f"{prefix}.{kind}").read_text(encoding="utf-8").splitlines(keepends=True)
    return [line for line in lines if not line.startswith('  "seconds": ')]


class TestSplit:
    FILES = st.dictionaries(st.text(min_size=1), st.integers(0, 10_000), max_size=40)

    @given(FILES, st.integers(1, 9))
    def test_each_file_is_in_one_shard_and_sizes_are_even(self, sizes: dict[str, int], count: int) -> None:
        files = [Found(path=path, file=path, size=size, kind="cuda") for path, size in sizes.items()]
        parts = [part(files, index, count) for index in range(1, count + 1)]
        assert sorted(file.path for one in parts for file in one) == sorted(sizes)
        weights = [sum(file.size + 1 for file in one) for one in parts]
        assert max(weights) - min(weights) <= max(sizes.values(), default=0) + 1

    @given(FILES, st.randoms())
    def test_the_order_of_files_does_not_matter(self, sizes: dict[str, int], random: object) -> None:
        files = [Found(path=path, file=path, size=size, kind="cuda") for path, size in sizes.items()]
        before = part(files, 1, 3)
        random.shuffle(files)  # type: ignore[attr-defined]
        assert part(files, 1, 3) == before

    @pytest.mark.parametrize("text", ["0/3", "4/3", "1", "1/0", "a/b", "-1/3", "1/3/3", "", "1 / 3", "1/999999"])
    def test_what_is_no_shard(self, text: str) -> None:
        with pytest.raises(ShardError, match="write I/N"):
            parse(text)


class TestMerge:
    @pytest.mark.parametrize("count", [1, 3, 20])
    def test_merged_shards_are_the_whole_run(self, portlint: Portlint, count: int) -> None:
        whole = portlint("check", "src", *TARGETS, *every_format("whole"))
        result = portlint("merge", *reversed(shards(portlint, count)), *every_format("merged"))
        assert (whole.exit_code, result.exit_code) == (1, 1), result.output
        for kind in KINDS:
            assert content("merged", kind) == content("whole", kind)
        shown = json.loads(Path("merged.json").read_text())
        assert {one["kind"] for one in shown["problems"]} == {"read", "skipped", "directive"}
        assert shown["summary"]["suppressed"]
        assert shown["summary"]["translated"]
        assert shown["summary"]["skipped"] == 2
        assert "shard" not in shown

    def test_seconds_are_the_sum(self, portlint: Portlint) -> None:
        files = shards(portlint, 2)
        parts = [json.loads(Path(file).read_text())["summary"]["seconds"] for file in files]
        shown = json.loads(portlint("merge", *files, "--output-format", "json").stdout)
        assert shown["summary"]["seconds"] == round(sum(parts), 3)

    @pytest.mark.parametrize("name", REPORTS)
    def test_a_report_survives_json(self, tmp_path: Path, name: str) -> None:
        findings = [msgspec.structs.replace(one, path=printable_path(one.path)) for one in REPORTS[name].findings]
        whole = msgspec.structs.replace(REPORTS[name], findings=tuple(sorted(findings, key=lambda one: one.order)))
        file = tmp_path / "one.json"
        file.write_text(written(msgspec.structs.replace(whole, shard=Shard(1, 1, "run", ("src",))), "json"))
        report, paths = merged([file], "0.1.0")
        assert paths == ("src",)
        for kind in KINDS:
            assert written(report, kind) == written(whole, kind)

    def test_evidence_is_joined_to_the_whole(self, portlint: Portlint) -> None:
        findings = json.loads(portlint("check", "src", *TARGETS, "--output-format", "json").stdout)["findings"]
        known = next(one for one in findings if one["rule"] == "lanes/mask-is-32-bit")
        said = Evidence("run", "confirmed", "hip", "7", "cdna3", "MI300X", "run", "2026-11-29", "as stated")
        entry = Entry(
            fingerprint=known["fingerprint"],
            rule=known["rule"],
            path=known["path"],
            target="cdna3",
            fact="lanes.mask_bits",
            stated=64,
            assumes=known["assumes"],
            evidence=said,
        )
        gone = msgspec.structs.replace(entry, fingerprint="0000000000000000", path="src/b.hip")
        write_evidence(Path("portlint-evidence.json"), [entry.sealed(), gone.sealed()])
        portlint("check", "src", *TARGETS, *every_format("whole"))
        portlint("merge", *shards(portlint, 3), *every_format("merged"))
        shown = json.loads(Path("merged.json").read_text())
        assert [one["kind"] for one in shown["problems"]].count("evidence") == 1
        assert sum(bool(one["evidence"]) for one in shown["findings"]) >= 1
        for kind in KINDS:
            assert content("merged", kind) == content("whole", kind)

    def test_the_exit_status_is_that_of_the_run(self, portlint: Portlint) -> None:
        files = ["1.json", "2.json"]
        for shard, file in zip(("1/2", "2/2"), files, strict=True):
            portlint("check", "src/lib", "-t", "mps", "--shard", shard, "--output-format", f"json:{file}")
        assert portlint("merge", *files).exit_code == 1
        assert portlint("merge", *files, "--exit-zero").exit_code == 0
        Path("portlint.toml").write_text('fail-on = "corrupts"\n')
        assert portlint("merge", *files).exit_code == 0
        assert portlint("merge", *files, "--isolated").exit_code == 1

    def test_a_missing_shard_is_named(self, portlint: Portlint) -> None:
        files = shards(portlint, 3)
        assert_mistake(portlint("merge", files[0], files[2]), "shard 2/3 is missing")
        assert_mistake(portlint("merge", files[0]), "2 shards are missing: 2/3, 3/3")

    def test_a_shard_that_is_given_twice_is_named(self, portlint: Portlint) -> None:
        files = shards(portlint, 2)
        Path("copy.json").write_bytes(Path(files[0]).read_bytes())
        assert_mistake(portlint("merge", *files, "copy.json"), "shard 1/2 is given twice: 1.json and copy.json")

    @pytest.mark.parametrize("change", ["files", "targets", "options", "count"])
    def test_shards_of_another_run_are_refused(self, portlint: Portlint, change: str) -> None:
        files = shards(portlint, 2)
        if change == "files":
            Path("src/new.cu").write_text(MASKS)
        targets = ("-t", "cdna3") if change == "targets" else TARGETS
        options = ("--ignore", "lanes") if change == "options" else ()
        shard = "2/3" if change == "count" else "2/2"
        portlint("check", "src", *targets, *options, "--shard", shard, "--output-format", "json:other.json")
        assert_mistake(portlint("merge", files[0], "other.json"), "other.json is of another run than 1.json")

    def test_the_report_of_a_whole_run_is_no_shard(self, portlint: Portlint) -> None:
        portlint("check", "src", *TARGETS, "--output-format", "json:whole.json")
        assert_mistake(portlint("merge", "whole.json"), "the report of a whole run")

    @pytest.mark.parametrize("part", ["targets", "titles", "rules"])
    def test_findings_of_which_the_report_does_not_say_all(self, portlint: Portlint, part: str) -> None:
        (file,) = shards(portlint, 1)
        report = json.loads(Path(file).read_text())
        assert report["findings"]
        (report if part == "targets" else report["shard"])[part] = [] if part == "targets" else {}
        Path("damaged.json").write_text(json.dumps(report))
        assert_mistake(portlint("merge", "damaged.json"), "damaged.json is damaged")

    def test_a_count_that_no_run_has(self, portlint: Portlint) -> None:
        (file,) = shards(portlint, 1)
        report = json.loads(Path(file).read_text())
        report["shard"]["count"] = 2**62
        Path("many.json").write_text(json.dumps(report))
        assert_mistake(portlint("merge", "many.json"), f"{2**62 - 1} shards are missing: 2/{2**62}, 3/")

    def test_what_is_no_report(self, portlint: Portlint) -> None:
        (file,) = shards(portlint, 1)
        report = json.loads(Path(file).read_text())
        report["shard"]["details"].pop()
        Path("damaged.json").write_text(json.dumps(report))
        report["tool"]["version"] = "9.9"
        Path("newer.json").write_text(json.dumps(report))
        Path("list.json").write_text("[]")
        Path("binary.json").write_bytes(b"\xff\x00")
        assert_mistake(portlint("merge", "damaged.json"), "damaged.json is damaged")
        assert_mistake(portlint("merge", "newer.json"), "was written by portlint 9.9")
        assert_mistake(portlint("merge", "list.json"), "is no JSON report of portlint check")
        assert_mistake(portlint("merge", "binary.json"), "is no JSON report of portlint check")
        assert_mistake(portlint("merge", "none.json"), "cannot read none.json")
        assert_mistake(portlint("merge"), "FILES")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--evidence", "e.json"], "'portlint merge'"),
        (["--prove"], "does not go with '--prove'"),
        (["--stdin-filename", "a.py"], "does not go with '--stdin-filename'"),
    ],
)
def test_options_that_need_the_whole_run(portlint: Portlint, options: list[str], words: str) -> None:
    paths = ["-"] if "--stdin-filename" in options else ["src"]
    assert_mistake(portlint("check", *paths, *TARGETS, "--shard", "1/2", *options), words)


def assert_mistake(result: Result, words: str) -> None:
    assert result.exit_code == 2
    assert words in result.stderr
    assert not result.stdout


def written(report: Report, kind: str) -> str:
    return render(report, kind, color=False, width=88, version="0.1.0")
