"""Kernels in the strings of Python files: their text, where it stands, and when it runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import rules

from portlint.detect import RuleSet
from portlint.finding import FileResult
from portlint.scan import Scan
from portlint.source import Source, embedded
from portlint.source.discover import Found
from portlint.source.language import by_name
from portlint.source.prescan import Limits
from portlint.target import load

WORD = "__activemask"
MASK = f"unsigned m = {WORD}();"


def texts(code: str | bytes) -> list[str]:
    data = code if isinstance(code, bytes) else code.encode()
    found, _ = embedded.kernels(Source("code.py", data, "python"))
    for one in found:
        start = one.source.offset
        assert len(one.source.text) <= len(data) - start
    return [one.source.text.decode() for one in found]


def scan(tmp_path: Path, code: str | bytes, name: str = "code.py", limits: Limits | None = None) -> FileResult:
    data = code if isinstance(code, bytes) else code.encode()
    (tmp_path / name).write_bytes(data)
    found = Found(path=name, file=str(tmp_path / name), size=len(data), kind=by_name(name) or "")
    one = Scan(RuleSet([rules()["lanes/mask-is-32-bit"]]), (load("cdna3"),), limits or Limits())
    return one(found, frozenset(), lambda _: None)


def places(result: FileResult) -> list[tuple[int, int]]:
    return [(finding.line, finding.column) for finding in result.findings]


CUPY = "import cupy\n"


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        (r"'a;\nb;'", " a;\n b; "),
        (r"r'a;\nb;'", r"  a;\nb; "),
        (r'"#define A \\\n B"', " #define A  \\\n  B "),
        (r"'\"x\"\t'", '  "x " \t '),
        (r"'\x41\u00e9\0;'", "    A    é  ; "),
        ('"a" "b"', " a   b "),
        ('"a" +\\\n "b"', " a       b "),
        ('"""é;"""', "   é;   "),
        ("f'{{ {n} }}'", "  {  12  }  "),
        ("f'a{n}b {k!r} {n:x}'", "  a_n_b _k_r_ _n_x_ "),
        ("'{{ {n} }}'.format(n=7)", " {  7   }  "),
        ("'x[%d]%%' % (8,)", " x[8 ]%  "),
        ("'x[%(n)s]' % {'n': 8}", " x[8    ] "),
        ("'a_%s_b' % kind", " a__s_b "),
        ("Template('${n} $m').substitute(n=5)", " 5    _m "),
        ("Template('{{ n }}{% if x %};').render(n=3)", " 3                ; "),
        ("textwrap.dedent('a;').strip().encode()", " a; "),
    ],
)
def test_the_text_has_the_length_of_the_literal(literal: str, expected: str) -> None:
    assert texts(f"{CUPY}n = 12\ncupy.RawKernel({literal}, 'k')\n") == [expected]


@pytest.mark.parametrize(
    "code",
    [
        "cupy.RawKernel('a;', 'k')",
        "cupy.RawModule(code='a;')",
        "from cupy import RawKernel as Raw\nRaw('a;', 'k')",
        "from pycuda.compiler import SourceModule\nSourceModule('a;')",
        "from torch.utils.cpp_extension import load_inline\nload_inline('x', None, 'a;')",
        "from torch.utils.cpp_extension import load_inline\nload_inline('x', None, cuda_sources=['a;'])",
        "import torch\ntorch.cuda._compile_kernel('a;', 'k')",
        "from torch.cuda.jiterator import _create_jit_fn\n_create_jit_fn('a;')",
        "from cuda.bindings import nvrtc\nnvrtc.nvrtcCreateProgram(b'a;', b'k.cu', 0, [], [])",
        "from cuda.core.experimental import Program\nProgram('a;', 'c++')",
        "def make(code):\n    return cupy.RawKernel(code, 'k')\nmake('a;')",
        "def code():\n    return 'a;'\ncupy.RawKernel(code(), 'k')",
        "class A:\n    code = 'a;'\n    def f(self):\n        return cupy.RawKernel(self.code, 'k')",
        "code = unknown\ncode = 'a;'\ncupy.RawKernel(code, 'k')",
        "codes = {'x': 'a;'}\ncupy.RawKernel(codes['x'], 'k')",
        "for code in ['a;']:\n    cupy.RawKernel(code, 'k')",
    ],
)
def test_where_a_text_is_compiled(code: str) -> None:
    assert [text.strip() for text in texts(CUPY + code + "\n")] == ["a;"]


@pytest.mark.parametrize(
    "code",
    [
        "text = 'a;'\nprint(text)",
        "from sympy import Program\nProgram('a;')",
        "from cuda.core.experimental import Program\nProgram('.version 8', 'ptx')",
        "cupy.RawKernel(unknown, 'k')",
        "cupy.RawKernel()",
        "from ours import RawKernel\nRawKernel('a;', 'k')",
        "from pyopencl.elementwise import ElementwiseKernel\nElementwiseKernel(context, 'int n', 'a;')",
        "cupy.ElementwiseKernel('T x', 'T y', unknown)",
        "cupy._core.create_ufunc('k', ('f->f', 'd->d'))",
    ],
)
def test_a_text_that_no_compiler_reads_is_none(code: str) -> None:
    assert texts(CUPY + code + "\n") == []


@pytest.mark.parametrize(
    "call",
    [
        "cupy.ElementwiseKernel('T x', 'T y', {body}, 'k')",
        "cupy.ElementwiseKernel('T x', 'T y', operation={body})",
        "cupy.ReductionKernel('T x', 'T y', 'x', {body}, 'y = a', '0', 'k')",
        "cupy._core.create_ufunc('k', ('f->f',), {body})",
        "cupy._core.create_ufunc('k', ('f->f', ('d->d', {body})))",
        "cupy._core.create_reduction_func('k', ('f->f',), ('in0', {body}, 'out0 = a', None))",
        "from cupy import ElementwiseKernel as Kernel\nKernel('T x', 'T y', {body})",
    ],
)
def test_a_piece_of_a_kernel_is_read_as_the_body_of_one(tmp_path: Path, call: str) -> None:
    before = "    y = threadIdx.x % 32 + "
    code = CUPY + call.format(body=f"'''\n{before}{WORD}()'''") + "\n"
    assert any(text.startswith("__device__ void kernel() {") for text in texts(code))
    unsigned = code.replace(f"{WORD}()", f"__popc({WORD}())")
    assert (code[: code.index(WORD)].count("\n") + 1, len(before) + 1) in places(scan(tmp_path, unsigned))


def test_the_preamble_of_a_piece_is_code_of_its_own(tmp_path: Path) -> None:
    code = f"{CUPY}cupy.ElementwiseKernel('T x', 'T y', 'y = f()', 'k', preamble='void f() {{ {MASK} }}')\n"
    assert places(scan(tmp_path, code)) == [(2, code.splitlines()[1].index(WORD) + 1)]


def test_a_piece_at_the_start_of_a_file(tmp_path: Path) -> None:
    code = f"BODY = '{MASK}'\nimport cupy\ncupy.ElementwiseKernel('T x', 'T y', BODY)\n"
    assert places(scan(tmp_path, code)) == [(1, code.index(WORD) + 1)]


def test_alternatives_and_additions() -> None:
    code = "if fast:\n    code = 'a;'\nelse:\n    code = 'b;'\ncode += 'c;'\ncupy.RawKernel(code, 'k')\n"
    assert sorted("".join(text.split()) for text in texts(CUPY + code)) == ["a;c;", "b;c;"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("before", ["", "/* 語é */ "])
def test_findings_stand_where_the_string_says(tmp_path: Path, end: str, before: str) -> None:
    lines = ["import cupy", 'K = cupy.RawKernel(r"""', f"{before}__global__ void k() {{ {MASK} }}", '""", "k")', ""]
    assert places(scan(tmp_path, end.join(lines))) == [(3, lines[2].index(WORD) + 1)]


def test_findings_after_escapes_and_holes(tmp_path: Path) -> None:
    code = f"""import cupy
NAME = "long_name"
K = cupy.RawKernel("#define Q \\"é\\"\\n" f"__global__ void {{NAME}}() {{{{ {MASK} }}}}", "k")
"""
    assert places(scan(tmp_path, code)) == [(3, code.splitlines()[2].index(WORD) + 1)]


@pytest.mark.parametrize(
    ("test", "count"),
    [("torch.version.hip is None", 0), ("torch.version.hip", 1), ("torch.version.cuda is not None", 0), ("fast", 1)],
)
def test_the_guards_of_the_call_and_of_the_literal_count(tmp_path: Path, test: str, count: int) -> None:
    kernel = f"'__global__ void k() {{ {MASK} }}'"
    head = "import cupy, torch\n"
    for code in (
        f"{head}if {test}:\n    cupy.RawKernel({kernel}, 'k')\n",
        f"{head}CODE = ''\nif {test}:\n    CODE = {kernel}\ncupy.RawKernel(CODE, 'k')\n",
        f"{head}CODE = {kernel}\ncupy.RawKernel(CODE if {test} else '', 'k')\n",
    ):
        assert len(places(scan(tmp_path, code))) == count, code


def test_the_preprocessor_counts_and_hiprtc_has_no_host_pass(tmp_path: Path) -> None:
    kernel = f"'''\n#ifndef __HIP_DEVICE_COMPILE__\n__global__ void k() {{ {MASK} }}\n#endif\n'''"
    assert not places(scan(tmp_path, f"{CUPY}cupy.RawKernel({kernel}, 'k')\n"))
    inline = f"from torch.utils.cpp_extension import load_inline\nload_inline('x', [], {kernel})\n"
    assert len(places(scan(tmp_path, inline))) == 1


def test_a_text_in_two_kernels_is_reported_once(tmp_path: Path) -> None:
    head = f"import cupy\nHEAD = '__device__ void h() {{ {MASK} }}'\nA = cupy.RawKernel(HEAD + 'int a;', 'a')\n"
    once = scan(tmp_path, head)
    twice = scan(tmp_path, head + "B = cupy.RawKernel(HEAD + 'int b;', 'b')\n")
    assert len(twice.findings) == 1
    assert twice.findings[0].fingerprint == once.findings[0].fingerprint


IGNORE = "portlint: ignore[lanes/mask-is-32-bit] fine"


@pytest.mark.parametrize(
    "kernel",
    [
        f'"""\n__global__ void k() {{\n  {MASK} // {IGNORE}\n}}\n"""',
        f'"""\n__global__ void k() {{\n  // {IGNORE}\n  {MASK}\n}}\n"""',
        f'"__global__ void k() {{ {MASK} }}"  # {IGNORE}\n',
    ],
)
def test_comments_in_the_string_and_beside_it_suppress(tmp_path: Path, kernel: str) -> None:
    result = scan(tmp_path, f"{CUPY}cupy.RawKernel({kernel}, 'k')\n")
    assert (len(result.findings), result.suppressed, result.problems) == (0, 1, ())


def test_a_directive_that_suppresses_nothing_is_reported_once(tmp_path: Path) -> None:
    head = f"HEAD = '''// {IGNORE}\nint a;\n'''\n"
    result = scan(tmp_path, f"{CUPY}{head}cupy.RawKernel(HEAD + 'int b;', 'a')\ncupy.RawKernel(HEAD + 'int c;', 'b')\n")
    assert [(one.line, one.kind) for one in result.problems] == [(2, "directive")]


def test_a_notebook(tmp_path: Path) -> None:
    lines = ["import cupy\n", 'K = cupy.RawKernel(r"""\n', f"__global__ void k() {{ {MASK} }}\n", '""", "k")\n']
    cells: list[dict[str, object]] = [
        {"cell_type": "code", "source": lines, "metadata": {}, "outputs": [], "execution_count": None}
    ]
    text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
    (finding,) = scan(tmp_path, text, "code.ipynb").findings
    assert (finding.cell, finding.cell_line) == (1, 3)
    assert WORD in text.splitlines()[finding.line - 1]


@pytest.mark.parametrize(
    "code",
    [
        "cupy.RawKernel('",
        "cupy.RawKernel('''",
        "cupy.RawKernel(f'{', 'k')",
        "cupy.RawKernel('%' % (), 'k')",
        "cupy.RawKernel('{' '}'.format(), 'k')",
        "x = x\ncupy.RawKernel(x, 'k')",
        "x = y\ny = x + x\ncupy.RawKernel(x, 'k')",
        "def f(a):\n    return f(a)\ncupy.RawKernel(f('a'), 'k')",
        "def f(a=a):\n    f(a)\n    cupy.RawKernel(a, 'k')",
        "class A:\n    x = self.x\n    def f(self): cupy.RawKernel(self.x, self.x)",
        "cupy.RawKernel(x[()], 'k')",
        "cupy.RawKernel(" + "('a' + " * 90 + "'b'" + ")" * 90 + ", 'k')",
        "\n".join(f"c{i + 1} = c{i} if p else c{i} + c{i}" for i in range(60)) + "\ncupy.RawKernel(c60, 'k')",
        "cupy.RawKernel('" + r"\\" * 999 + r"\N{DIGIT ONE}\400\U0011ffff\ud800" + "', 'k')",
    ],
)
def test_hostile_code_does_no_harm(tmp_path: Path, code: str) -> None:
    assert scan(tmp_path, CUPY + code + "\n").analysed


def test_the_limits_of_cuda_files_hold_in_strings(tmp_path: Path) -> None:
    result = scan(tmp_path, f"{CUPY}cupy.RawKernel('''{'{' * 1_001}\n{MASK}''', 'k')\n")
    assert not result.findings
    assert [(one.line, one.kind) for one in result.problems] == [(2, "parse")]


def test_too_many_kernels_are_cut_off(tmp_path: Path) -> None:
    code = CUPY + "".join(f"cupy.RawKernel('void k{i}() {{ {MASK} }}', 'k')\n" for i in range(301))
    result = scan(tmp_path, code)
    assert any("too many kernels" in one.message for one in result.problems)
