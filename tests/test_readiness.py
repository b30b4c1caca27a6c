"""`portlint report` as a user meets it: where a tree stands, what it costs, and the formats that say so."""

from __future__ import annotations

import csv
import json
import re
import zipfile
from collections.abc import Callable
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from portlint.cli import main
from portlint.config import Selector
from portlint.finding import Programming
from portlint.readiness import effort
from portlint.readiness.effort import Effort
from portlint.rules import discover
from portlint.source.census import census

VOTES = """__global__ void count_ayes(int* out, const int* in) {
    const unsigned votes = __ballot_sync(0xffffffff, in[threadIdx.x] > 0);
    if (threadIdx.x % 32 == 0) atomicAdd(out, __popc(votes));
}
"""
PTX = """__device__ unsigned lane() {
    unsigned found;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(found));
    return found;
}
"""
LANE = VOTES.replace("count_ayes", "count_noes")
HOSTILE = '"><img src=x onerror=alert(1)>.cu'

Report = Callable[..., Result]


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """Write a report on a folder `src` that holds one kernel."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1796000000")
    Path("src").mkdir()
    Path("src/votes.cu").write_text(VOTES)

    def run(*arguments: str, kind: str = "json", targets: tuple[str, ...] = ("cdna3",)) -> Result:
        named = [word for target in targets for word in ("--target", target)]
        return CliRunner().invoke(main, ["report", "src", "--output-format", kind, *named, *arguments])

    return run


def said(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def standing(result: Result, target: str = "cdna3") -> dict[str, Any]:
    found: list[dict[str, Any]] = said(result)["readiness"]
    return next(one for one in found if one["target"] == target)


class TestCensus:
    @pytest.mark.parametrize(
        ("text", "language", "programming", "kernels"),
        [
            ("import os\n", "python", Programming.PLAIN, 0),
            ("    import torch.nn as nn\n", "python", Programming.GRAPH, 0),
            ("# import torch\n", "python", Programming.PLAIN, 0),
            ("import triton\n\n@triton.jit\ndef f(x):\n    pass\n", "python", Programming.TILE, 1),
            ("import triton\nprint(triton.__version__)\n", "python", Programming.GRAPH, 0),
            ("from jax.experimental import pallas as pl\ny = pl.pallas_call(f)(x)\n", "python", Programming.TILE, 1),
            ("from numba import cuda\n\n@cuda.jit\ndef f(x):\n    pass\n", "python", Programming.SIMT, 1),
            ("import cupy\nk = cupy.RawKernel('__global__ void f() {}', 'f')\n", "python", Programming.SIMT, 1),
            ("__global__ void f() {}\n// __global__ void g() {}\n", "cuda", Programming.SIMT, 1),
            ("void f(cudaStream_t stream);\n", "cuda", Programming.SIMT, 0),
            ("int main() {}\n", None, Programming.PLAIN, 0),
        ],
    )
    def test_files(self, text: str, language: str | None, programming: Programming, kernels: int) -> None:
        found = census(text.encode(), language, 1)
        assert (found.programming, found.kernels) == (programming, kernels)


class TestEffort:
    def test_every_selector_names_a_rule_or_a_pack(self) -> None:
        rules = set(discover())
        packs = {rule.partition("/")[0] for rule in rules}
        table = effort.table()
        assert {str(one) for one, _ in table if one.name} <= rules
        assert {one.pack for one, _ in table if not one.name} == packs

    def test_the_last_entry_holds(self) -> None:
        assert effort.of_rule("isa/inline-ptx", "cdna3") is Effort.HOURS
        assert effort.of_rule("isa/hopper-only", "cdna3") is Effort.REWRITE
        assert Selector.parse("isa").matches("isa/hopper-only", "cdna3")

    def test_a_belief_costs_its_full_price_once_in_a_file(self, report: Report) -> None:
        Path("src/votes.cu").write_text(PTX)
        once = standing(report("--select", "isa/inline-ptx"))["effort"]
        Path("src/votes.cu").write_text(PTX + PTX.replace("lane", "other"))
        twice = standing(report("--select", "isa/inline-ptx"))["effort"]
        Path("src/votes.cu").write_text(PTX)
        Path("src/other.cu").write_text(PTX)
        elsewhere = standing(report("--select", "isa/inline-ptx"))["effort"]
        assert (once["hours"], once["minutes"]) == (1, 0)
        assert (twice["hours"], twice["minutes"]) == (1, 1)
        assert (elsewhere["hours"], elsewhere["minutes"]) == (2, 0)

    def test_kernels_that_the_target_does_not_take_are_rewritten(self, report: Report) -> None:
        Path("src/helpers.cuh").write_text("__device__ int one() { return 1; }\n")
        found = standing(report(targets=("tpu-v6e",)), "tpu-v6e")
        assert (found["effort"]["rewrite"], found["effort"]["hours"], found["effort"]["minutes"]) == (1, 1, 0)
        assert found["tiers"]["bound"] == {"files": 2, "lines": 7}
        assert standing(report())["tiers"]["simt"] == {"files": 2, "lines": 7}

    def test_kernels_for_a_third_machine_need_no_port(self, report: Report) -> None:
        Path("src/rocm").mkdir()
        Path("src/rocm/votes.cu").write_text(VOTES)
        Path("src/flash.py").write_text("from neuronxcc import nki\n\n@nki.jit\ndef f(x):\n    return x\n")
        found = standing(report(targets=("tpu-v6e",)), "tpu-v6e")
        assert found["tiers"]["elsewhere"]["files"] == 2
        assert found["effort"]["rewrite"] == 1


class TestVerdict:
    def test_what_stops_the_port_is_said_in_one_sentence(self, report: Report) -> None:
        found = standing(report())
        assert re.fullmatch(
            r"Not ready for AMD CDNA3 \(gfx942\): 3 places would give wrong numbers and 1 place would not build, "
            r"start or run; about \d+ \w+ of work\.",
            found["sentence"],
        )
        assert [gate["state"] for gate in found["gates"]] == ["failed", "not measured", "not measured", "not measured"]

    def test_clean_code_passes_the_first_gate_and_no_other(self, report: Report) -> None:
        Path("src/votes.cu").write_text("__global__ void nothing() {}\n")
        found = standing(report())
        assert found["sentence"].startswith("Nothing that portlint looks for stops this code")
        assert [gate["state"] for gate in found["gates"]] == ["passed"] + ["not measured"] * 3

    def test_what_was_not_read_passes_no_gate(self, report: Report) -> None:
        Path("src/votes.cu").write_text("(" * 5000)
        found = standing(report())
        assert found["gates"][0]["state"] == "not measured"
        assert "1 part of it could not be analysed" in found["gates"][0]["why"]

    def test_the_cheaper_machine_is_named_first(self, report: Report) -> None:
        text = report(kind="markdown", targets=("tpu-v6e", "cdna3")).stdout
        line = next(line for line in text.splitlines() if line.startswith("By effort"))
        assert line.index("CDNA") < line.index("TPU")


REQUESTS = "start_s,first_token_s,end_s,output_tokens,ok\n" + "".join(
    f"{number},{number + 0.1},{number + 2.08},100,true\n" for number in range(10)
)
LIMITS = ("--ttft-ms", "450", "--tpot-ms", "45")


class TestGates:
    def gates(self, report: Report, *arguments: str) -> list[tuple[str, str]]:
        return [(gate["state"], gate["why"]) for gate in standing(report(*arguments))["gates"][1:]]

    def test_an_answer_of_fit_decides_the_second(self, report: Report) -> None:
        model = "fit --params 70e9 --weight-dtype fp8 --layers 80 --kv-heads 8 --head-dim 128 --context 8192"
        result = CliRunner().invoke(main, [*model.split(), "--target", "cdna3", "--output-format", "json"])
        Path("fit.json").write_text(result.stdout)
        state, why = self.gates(report, "--fit", "fit.json")[0]
        assert state == "passed"
        assert "1 device of MI300X" in why
        other = standing(report("--fit", "fit.json", targets=("mps",)), "mps")["gates"][1]
        assert other["state"] == "not measured"

    def test_requests_decide_the_third_and_the_fourth(self, report: Report) -> None:
        Path("requests.csv").write_text(REQUESTS)
        given = ("--measurements", "requests.csv", *LIMITS, "--price", "4")
        (_, latency, cost) = self.gates(report, *given)
        assert latency == ("passed", "p95 TTFT 100.0 ms, p95 TPOT 20.0 ms; 100.0% of requests keep both limits")
        assert cost == ("passed", "90.3 eligible tokens/s, 12.31 for a million of them")

    def test_late_tokens_fail_the_third_and_leave_the_fourth(self, report: Report) -> None:
        Path("requests.csv").write_text(REQUESTS)
        found = self.gates(report, "--measurements", "requests.csv", "--ttft-ms", "50", "--tpot-ms", "45")
        assert [state for state, _ in found] == ["not measured", "failed", "not measured"]

    def test_requests_without_limits_decide_nothing(self, report: Report) -> None:
        Path("requests.csv").write_text(REQUESTS)
        (_, latency, cost) = self.gates(report, "--measurements", "requests.csv")
        assert latency[0] == cost[0] == "not measured"
        assert "--ttft-ms" in latency[1]

    def test_rows_that_cannot_be_read_are_named(self, report: Report) -> None:
        Path("requests.csv").write_text(REQUESTS + "soon,1,2,3,true\n")
        (_, latency, _) = self.gates(report, "--measurements", "requests.csv", *LIMITS)
        assert "1 row could not be read: line 12" in latency[1]

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("--measurements", "requests.csv"), "on which target was requests.csv measured?"),
            (("--measurements", "hopper=requests.csv"), "none of the targets"),
            (("--measurements", "cdna3=none.csv"), "none.csv"),
            (("--fit", "requests.csv"), "no answer of 'portlint fit"),
            (("--ttft-ms", "-1"), "--ttft-ms"),
        ],
    )
    def test_mistakes(self, report: Report, arguments: tuple[str, ...], words: str) -> None:
        Path("requests.csv").write_text(REQUESTS)
        result = report(*arguments, targets=("cdna3", "mps"))
        assert result.exit_code == 2
        assert words in result.stderr


class TestProgress:
    def test_what_is_gone_new_and_kept(self, report: Report) -> None:
        Path("src/lane.cu").write_text(LANE)
        Path("old.json").write_text(report().stdout)
        Path("src/votes.cu").write_text("\n\n" + VOTES)
        Path("src/lane.cu").write_text(LANE.replace("% 32", "% warpSize"))
        Path("src/new.cu").write_text("__global__ void f(int* x) { x[0] = __ffs(__ballot_sync(0xffffffff, 1)); }\n")
        found = said(report("--since", "old.json"))
        gone = found["progress"]["gone"]
        assert "lanes/warp-is-32" in [one["rule"] for one in gone]
        assert {one["path"] for one in gone} == {"src/lane.cu"}
        assert found["progress"]["kept"] == len(json.loads(Path("old.json").read_text())["findings"]) - len(gone)
        assert found["progress"]["new"] == len(found["findings"]) - found["progress"]["kept"]

    def test_each_report_carries_its_history(self, report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
        for number in range(3):
            monkeypatch.setenv("SOURCE_DATE_EPOCH", str(1_796_000_000 + number * 86_400))
            since = ("--since", "old.json") if number else ()
            Path("old.json").write_text(report(*since).stdout)
        history = json.loads(Path("old.json").read_text())["history"]
        assert [one["date"] for one in history] == ["2026-11-30", "2026-12-01", "2026-12-02"]
        page = report("--since", "old.json", kind="html").stdout
        assert page.count("<polyline") == 1
        assert len(re.search(r'<polyline[^>]*points="([^"]*)"', page)[1].split()) == 4  # type: ignore[index]

    def test_the_json_of_a_check_will_do(self, report: Report) -> None:
        result = CliRunner().invoke(main, ["check", "src", "--target", "cdna3", "--output-format", "json:old.json"])
        assert result.exit_code == 1
        assert said(report("--since", "old.json"))["progress"]["new"] == 0

    @pytest.mark.parametrize("text", ["", "[]", '{"version": 9, "findings": []}', '{"version": 1}'])
    def test_a_file_that_is_no_report(self, report: Report, text: str) -> None:
        Path("old.json").write_text(text)
        result = report("--since", "old.json")
        assert result.exit_code == 2
        assert "old.json" in result.stderr


class _Elements(HTMLParser):
    """The elements and links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.attributes: set[str] = set()
        self.addresses: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.add(value or "")
            if name == "href" and (value or "").startswith("#"):
                self.links.add((value or "")[1:].partition("@")[0])
            if name in ("src", "href") and not (value or "").startswith("#"):
                self.addresses.add(value or "")


def elements(page: str) -> _Elements:
    found = _Elements()
    found.feed(page)
    return found


class TestPage:
    def test_it_fetches_nothing_and_its_links_lead_somewhere(self, report: Report) -> None:
        found = elements(report(kind="html", targets=("cdna3", "mps")).stdout)
        assert found.links <= found.ids
        assert all(one.startswith(("https://", "http://", "data:")) for one in found.addresses)
        assert found.tags.count("script") == 1
        assert not {"img", "iframe", "object", "base"} & set(found.tags)

    def test_every_finding_is_on_it(self, report: Report) -> None:
        findings = said(report())["findings"]
        page = report(kind="html").stdout
        assert findings
        for one in findings:
            assert f"{one['path']}:{one['line']}" in page

    def test_names_and_code_cannot_inject(self, report: Report) -> None:
        payload = "</script><script>alert(1)</script>"
        Path("src", HOSTILE).write_text(f"// x\n{VOTES.rstrip()} // {payload}\n")
        Path("src/b\x1b[31m.py").write_text(f"import torch\nx = torch.zeros(3, device='cuda')  # {payload}\n")
        found = elements(report(kind="html", targets=("cdna3", "tpu-v6e")).stdout)
        assert found.tags.count("script") == 1
        assert "img" not in found.tags
        assert not {name for name in found.attributes if name.startswith("on")}

    def test_it_is_the_same_each_time(self, report: Report) -> None:
        assert report(kind="html").stdout == report("--jobs", "2", kind="html").stdout


class TestTables:
    def test_csv_holds_no_formula(self, report: Report) -> None:
        Path("src", "=HYPERLINK(1).cu").write_text(VOTES)
        rows = list(csv.reader(StringIO(report(kind="csv").stdout)))
        assert len(rows) > 4
        assert all(len(row) == len(rows[0]) for row in rows)
        assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row)

    def test_a_workbook_has_targets_files_and_findings(self, report: Report) -> None:
        pytest.importorskip("xlsxwriter", reason="XlsxWriter is not installed: pip install '.[xlsx]'")
        Path("src", "=1+1.cu").write_text(VOTES)
        assert report(kind="xlsx:out.xlsx").exit_code == 0
        with zipfile.ZipFile("out.xlsx") as book:
            names = re.findall(r'<sheet name="(\w+)"', book.read("xl/workbook.xml").decode())
            assert names == ["Targets", "Files", "Findings"]
            sheet = book.read("xl/worksheets/sheet3.xml").decode()
            assert sheet.count("<row ") == 1 + len(said(report())["findings"])
            assert "<f>" not in sheet

    def test_markdown_holds_no_markup_of_the_tree(self, report: Report) -> None:
        Path("src", "<b>|x|[y](z).cu").write_text(VOTES)
        text = report(kind="markdown").stdout
        assert "<b>" not in text
        assert r"\[y\]" in text


class TestMistakes:
    def test_an_unknown_format(self, report: Report) -> None:
        result = report(kind="pdf")
        assert result.exit_code == 2
        assert "it is one of html, markdown, json, csv, xlsx" in result.stderr

    def test_a_place_that_cannot_be_written(self, report: Report) -> None:
        result = report(kind="html:nowhere/out.html")
        assert result.exit_code == 2
        assert "nowhere/out.html" in result.stderr
