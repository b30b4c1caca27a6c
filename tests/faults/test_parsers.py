"""Texts and rules that crash, hang or eat memory: each costs itself, is named, and nothing else changes."""

from __future__ import annotations

import json
import os
import re

import msgspec
import pytest
import shapes
from runs import DEVICE, FULL, KERNEL, check, found, scan, start, told, write

from portlint.finding import FileResult
from portlint.source.prescan import Limits, refuse

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="isolation needs fork")

QUICK = Limits() if FULL else msgspec.structs.replace(Limits(), parse_seconds=1, rule_seconds=0.5)
GOOD = {
    f"good{number:02}.{end}": text.encode() for number in range(10) for end, text in (("cu", KERNEL), ("py", DEVICE))
}
REFUSED = re.compile(
    r"brackets are nested|levels of (indentation|nesting)|it looks (generated|minified)|more than the [\d,]+ "
)
STOPPED = re.compile(r"was stopped after [\d.]+ s of CPU time|rules were stopped in this file|too many syntax matches")

GROUPS = {
    "brackets of Python": ("py", shapes.PYTHON_BRACKETS, (190, 100_000)),
    "stairs of Python": ("py", shapes.PYTHON_STAIRS, (90, 1_000)),
    "chains of Python": ("py", shapes.PYTHON_CHAINS, (300, 3_000, 100_000) if FULL else (1_000,)),
    "C++": ("cu", shapes.CUDA_SHAPES, (900, 20_000, 256_000) if FULL else (400,)),
    **{name: (name, table, (90, 3_000) if FULL else (90,)) for name, table in shapes.OTHERS.items()},
}


@pytest.fixture(scope="module")
def plain() -> dict[str, FileResult]:
    """What is found where there is no trouble."""
    return scan(GOOD.items(), QUICK)


@pytest.mark.parametrize("group", GROUPS)
def test_nesting_and_chains_are_analysed_or_named(group: str, plain: dict[str, FileResult]) -> None:
    """No crash, no recursion without end, nothing lost in silence; and every other file is as it would be alone."""
    end, table, sizes = GROUPS[group]
    head = {"py": DEVICE, "cu": KERNEL}.get(end, "")
    texts = {
        f"{number}{size}/{end}" if "." in end or end == "Dockerfile" else f"{number}-{size}.{end}": head + shape(size)
        for number, shape in enumerate(table.values())
        for size in sizes
    }
    results = scan([*GOOD.items(), *((name, text.encode()) for name, text in texts.items())], QUICK)
    assert {name: results[name] for name in GOOD} == plain
    for name in texts:
        problems = [problem.message for problem in results[name].problems]
        assert all(REFUSED.search(one) or STOPPED.search(one) for one in problems), (name, problems)
        assert results[name].analysed or problems
        if head and not problems:
            assert results[name].findings, name


@pytest.mark.parametrize("piece", shapes.CUDA_QUADRATIC)
def test_a_parser_that_takes_quadratic_time_is_stopped(piece: str) -> None:
    size = 1_000_000 if FULL else 100_000
    one = shapes.CUDA_QUADRATIC[piece]
    text = one(size // len(piece)).encode()
    lines = re.sub(rb"(.{300,400}?)(?=[^\w])", rb"\1\n", text)  # one long line would not be parsed at all
    results = scan([("a.cu", text), ("b.cu", KERNEL.encode() + lines), ("good.cu", KERNEL.encode())], QUICK)
    assert REFUSED.search(results["a.cu"].problems[0].message)
    assert [problem.kind for problem in results["b.cu"].problems] in (["timeout"], ["skipped"])
    assert not results["b.cu"].analysed
    assert results["good.cu"].findings
    assert not results["good.cu"].problems


def test_a_short_text_of_that_kind_is_analysed() -> None:
    texts = [
        (f"{number}.cu", (KERNEL + shape(2_000 if FULL else 300)).encode())
        for number, shape in enumerate(shapes.CUDA_QUADRATIC.values())
    ]
    for result in scan(texts, Limits()).values():
        assert result.findings, result
        assert not [one for one in result.problems if one.kind != "parse"]


@pytest.mark.parametrize(("kind", "limit"), [("python", 200), ("cuda", 1_000)])
def test_depth_is_counted_before_a_parser_sees_it(kind: str, limit: int) -> None:
    """CPython takes 200 brackets, so no valid program is lost."""
    text = b"x = " + b"(" * limit + b"1" + b")" * limit + b"\n"
    assert refuse(text, kind, Limits()) is None
    assert refuse(text.replace(b"1", b"(1)"), kind, Limits()) is not None
    write({"a.py" if kind == "python" else "a.cu": b"x = " + b"(" * 100_000 + b"\n"})
    ((_, message),) = told(check()).items()
    assert "nested 100,000 deep" in message or "it looks" in message


def test_python_of_every_version_and_of_none(plain: dict[str, FileResult]) -> None:
    """Newest syntax, Python 2, templates, merge conflicts: the line with the finding is found in all of them."""
    texts = [
        "class A[T: int = str, *Ts, **P]: pass",
        "def f[T = int](x: T) -> T: return x",
        "type X[T] = list[T]",
        'y = f"{d["k"]}"',
        'y = f"{f"{f"{1}"}"}"',
        'y = f"{a = !r:>10}"',
        'y = f"""{\na:{\nb}}"""',
        'y = t"{a} {b!r:>{w}}"',
        "y = rt'\\{a}'",
        "try: pass\nexcept A, B: pass",
        "try: pass\nexcept* A: pass",
        "def f(*args: *Ts): ...\ny = a[*b]",
        "lazy import numpy",
        "y = [*a for a in b]\nz = {**d for d in ds}",
        'match x:\n  case {"a": [1, *r], **k} if y: pass\n  case A(b=1) | None as z: pass',
        "match = 1\nmatch(x)\ncase = type = 3",
        "with (a as b, c as d,): pass",
        "def f(a, /, b, *, c): pass",
        "@a[0].b(c) if d else e\ndef f(): pass",
        "y[z:=1]",
        "y = 1_000 + 0x_ff + 1e1_0",
        'print "a"',
        "try: pass\nexcept A, e: pass",
        'exec "a"',
        "y = `1`",
        "y = 0777",
        "raise A, 'b'",
        "%matplotlib inline\n!ls",
        "y = {{ var }}\n{% if a %}",
        "<<<<<<< HEAD\ny = 1\n=======\ny = 2\n>>>>>>> b",
        "if a:\n    y\n  z",
        'y = "abc',
        'y = """abc',
        'y = f"{a',
        "y = (1,",
        "y = 1 \\\n# c",
        ";",
        "\\",
        "return 1",
        "await x",
        "yield x",
        "nonlocal x",
        "if a:\n\ty = 1\n        z = 2",
        "def f(:\n  pass",
    ]
    results = scan([(f"{number:02}.py", f"{DEVICE}{text}\n".encode()) for number, text in enumerate(texts)], QUICK)
    for number, text in enumerate(texts):
        result = results[f"{number:02}.py"]
        assert not result.problems, (text, result.problems)
        assert len(result.findings) == len(plain["good00.py"].findings), text


def test_c_plus_plus_that_the_grammar_does_not_know_is_looked_into() -> None:
    """Where the parser gives up, what stands inside is still found."""
    inside = [
        "auto f = [=] __device__ (int i) {{ {} }};",
        "__global__ void k() {{ extern __shared__ __align__(16) char s[]; {} }}",
        "__global__ void __cluster_dims__(2,1,1) k() {{ {} }}",
        "FOO(a) BAR __global__ void k() {{ {} }}",
        "__global__ void k() {{\n#ifdef A\nif (x) {{\n#else\nif (y) {{\n#endif\n {} }}\n}}",
        'void f() {{ AT_DISPATCH_FLOATING_TYPES(t, "k", [&] {{ {} }}); }}',
        "template <typename T struct {{ {} }}",
        "void f() {{ {} ",
        "}}}} ) > void f() {{ {} }}",
    ]
    shuffle = "x[0] += __shfl_xor_sync(0xffffffff, x[0], 16);"
    results = scan([(f"{number}.cu", one.format(shuffle).encode()) for number, one in enumerate(inside)], QUICK)
    assert [one for number, one in enumerate(inside) if not results[f"{number}.cu"].findings] == []


# ---- rules that fail ------------------------------------------------------------------------------------------------

PLANTED = '''"""Something is assumed."""

import os, re, signal
from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(assumes={"lanes.width": 32}, message="'{text}' assumes.", remedy={"*": "Ask."})


@rule.cuda_calls("__shfl_xor_sync")
def shuffle(call: Node) -> Hits:
    if "%s" in call.source.path:
        %s
    yield Hit(call)
'''
DEEDS = {
    "raises": ("raise ValueError('no\\nway')", "rule", "raised ValueError: no way"),
    "recurses": ("def f(): return f()\n        f()", "rule", "raised RecursionError"),
    "exits": ("os._exit(0)", "rule", "ended its process with status 0"),
    "quits": ("raise SystemExit(0)", "rule", "raised SystemExit: 0"),
    "crashes": ("signal.raise_signal(signal.SIGSEGV)", "rule", "crashed (segmentation fault)"),
    "hoards": ("x = []\n        while True: x.append(bytes(64 << 20))", "rule", "needed more than 2 GiB of memory"),
    "loops": ("while True: pass", "timeout", "was stopped after 5 s of CPU time"),
    "matches": ("re.match('(a+)+$', 'a' * 60 + 'b')", "timeout", "was stopped after 5 s of CPU time"),
}


def test_a_rule_that_fails_costs_its_own_findings_in_that_file() -> None:
    """Everything else is the same to the byte, whatever the number of jobs."""
    write({f"rules/planted/{deed}.py": PLANTED % (deed, what) for deed, (what, *_) in DEEDS.items()})
    write({"src/a.cu": KERNEL, "src/z.py": DEVICE, **{f"src/{deed}.cu": KERNEL for deed in DEEDS}})
    arguments = ("check", "src", "-t", "cdna3", "-t", "mps", "--isolated", "--output-format", "json")
    runs = [start("--rules", "rules", *arguments, "-j", jobs) for jobs in ("1", "2")]
    shown = [json.loads(run.communicate()[0]) for run in runs]
    for report in shown:
        report["summary"].pop("seconds")
    assert shown[0] == shown[1]
    planted = [one for one in shown[0]["findings"] if one["rule"].startswith("planted/")]
    everywhere = {(f"src/{name}.cu", f"planted/{deed}") for name in ("a", *DEEDS) for deed in DEEDS}
    assert {(one["path"], one["rule"]) for one in planted} == everywhere - {
        (f"src/{deed}.cu", f"planted/{deed}") for deed in DEEDS
    }
    assert [one for one in shown[0]["findings"] if one not in planted] == check("src")["findings"]
    assert {one["path"]: (one["kind"], one["message"]) for one in shown[0]["problems"]} == {
        f"src/{deed}.cu": (kind, f"'planted/{deed}' {words}; its findings in this file are missing")
        for deed, (_, kind, words) in DEEDS.items()
    } | {
        one["path"]: (one["kind"], one["message"]) for one in shown[0]["problems"] if "RecursionError" in one["message"]
    }


def test_every_rule_may_raise(plain: dict[str, FileResult]) -> None:
    """A rule that raises is left out where it raised, and the others see the file."""
    fired = sorted({finding.rule for result in plain.values() for finding in result.findings})
    assert len(fired) >= 3
    for rule in fired:
        for name, result in scan(GOOD.items(), QUICK, fails=rule).items():
            assert result.findings == tuple(one for one in plain[name].findings if one.rule != rule)
            assert [one.message.partition(" raised ")[0] for one in result.problems] in ([], [f"'{rule}'"])


# ---- files that others look at --------------------------------------------------------------------------------------


def test_a_hostile_neighbour_does_not_cost_the_files_that_include_or_import_it() -> None:
    """A header, a module and a build that no parser can take, beside files that ask them."""
    hang = ("<!" * 100 + "\n") * 1_000
    write(
        {
            ".git/HEAD": "",
            "a.cu": '#include "hang.cuh"\n#include "deep.cuh"\n' + KERNEL,
            "hang.cuh": hang,
            "deep.cuh": "(" * 50_000,
            "m.py": "import deep, stairs\nfrom deep import *\n" + DEVICE,
            "deep.py": "x = " + "(" * 50_000,
            "stairs.py": shapes.PYTHON_STAIRS["if"](500),
            "setup.py": "x = " + "[" * 50_000,
            "CMakeLists.txt": "if(" * 20_000,
            "conftest.py": "\0" * 1_000,
        }
    )
    report = check()
    assert found(report) == ["a.cu", "m.py"]
    assert {"a.cu", "m.py"}.isdisjoint(told(report))
    assert set(told(report)) >= {"deep.cuh", "deep.py", "stairs.py", "setup.py", "conftest.py"}
