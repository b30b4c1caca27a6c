"""What portlint knows of CUDA and HIP C++: guards, constants, roles, names, functions, launches, macro bodies."""

from __future__ import annotations

import subprocess
import sys

import pytest

from portlint.condition import UNKNOWN, Environment, Outcome, is_live
from portlint.source import Source
from portlint.source.cxx import CxxAnalysis
from portlint.source.cxx.lexer import mask
from portlint.source.cxx.roles import EXPRESSION_ROLES
from portlint.source.grammar import comments, language, parse
from portlint.source.node import Node

NVIDIA = Environment(
    {"__CUDACC__": 1, "__CUDA_ARCH__": 900, "CUDART_VERSION": 12040, "USE_CUDA": 1},
    frozenset(("USE_ROCM", "__HIP_PLATFORM_AMD__", "__HIPCC__", "__gfx942__")),
)
AMD = Environment(
    {"USE_ROCM": 1, "__HIP_PLATFORM_AMD__": 1, "__HIPCC__": 1, "__gfx942__": 1},
    frozenset(("__CUDACC__", "__CUDA_ARCH__", "CUDART_VERSION", "USE_CUDA")),
)


def source(text: str | bytes) -> Source:
    return Source("kernel.cu", text if isinstance(text, bytes) else text.encode(), "cuda")


def analysis(of: Source) -> CxxAnalysis:
    assert isinstance(of.analysis, CxxAnalysis)
    return of.analysis


def node(of: Source, code: str, nth: int = 0) -> Node:
    """The nth node that spells `code`, in the file's tree or that of its macro bodies."""
    wanted = code.encode()
    start = -1
    for _ in range(nth + 1):
        start = of.text.index(wanted, start + 1)
    for root in analysis(of).roots():
        raw = root.descendant_for_byte_range(start, start + len(wanted))
        if (
            raw is not None
            and raw.type != "preproc_arg"
            and (raw.start_byte, raw.end_byte) == (start, start + len(wanted))
        ):
            return Node(of, raw)
    raise LookupError(f"no node spells {code!r}")


def offset(of: Source, code: str) -> int:
    return of.text.index(code.encode())


def live(of: Source, code: str, environment: Environment) -> Outcome:
    return is_live(analysis(of).guards_at(offset(of, code)), environment)


def texts(of: Source, code: str) -> list[tuple[str, bool]]:
    return [(guard.text, guard.expected) for guard in analysis(of).guards_at(offset(of, code))]


def roles(of: Source, code: str, nth: int = 0) -> set[str]:
    found = node(of, code, nth)
    return {role for role in EXPRESSION_ROLES if found.role(role)}


def roles_of(declarations: str, variable: str, before: str = "") -> set[str]:
    """The roles of a variable in a kernel with these declarations."""
    text = f"{before}\n__global__ void k(float* x, int n) {{ {declarations}\n probe({variable}); }}"
    found = source(text)
    start = offset(found, f"probe({variable})") + len("probe(")
    raw = found.tree.root_node.descendant_for_byte_range(start, start + len(variable))
    assert raw is not None
    probed = Node(found, raw)
    return {role for role in EXPRESSION_ROLES if probed.role(role)}


def values(of: Source, code: str, nth: int = 0) -> set[tuple[object, str]]:
    """Each value with the texts of its guards, `!` before those that must not hold."""
    return {
        (value, " ".join(f"{'' if guard.expected else '!'}{guard.text}" for guard in guards))
        for value, guards in analysis(of).values(node(of, code, nth))
    }


def constant(expression: str, before: str = "") -> object:
    return node(source(f"{before}\nauto probe = {expression};"), expression, before.count(expression)).constant


# ---- grammars -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "root"), [("cuda", "translation_unit"), ("python", "module"), ("cmake", "source_file")]
)
def test_each_language_has_a_grammar(name: str, root: str) -> None:
    assert parse(b"", name).root_node.type == root
    assert language(name) is language(name)


def test_an_unknown_language_is_named_in_the_error() -> None:
    with pytest.raises(ValueError, match="'fortran'"):
        parse(b"", "fortran")


def test_comments_are_found_in_order() -> None:
    assert comments(parse(b"/* a */ int b; // c\n", "cuda")) == [(0, 7), (15, 19)]
    assert comments(parse(b"x = 1 # y\n", "python")) == [(6, 9)]


# ---- what is code ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a // b\nc", "a     \nc"),
        ("a // b \\\n c\nd", "a       \n  \nd"),
        ("a /* b\nc */ d", "a     \n     d"),
        ("a /* b", "a     "),
        ('f("x // y", 1)', 'f("      ", 1)'),
        ('"a\\"b" c', '"    " c'),
        ('R"(a " b)" c', 'R"       " c'),
        ('R"q(a )" b)q" c', 'R"          " c'),
        ('u8R"(a)"; FOOR"(a)"', 'u8R"   "; FOOR"   "'),
        ("'\"' + '\\'' + 1'000'000 + 'x'", "' ' + '  ' + 1'000'000 + ' '"),
        ("0xFF'FFu 'a'", "0xFF'FFu ' '"),
        ("#error don't\nx", "#error      \nx"),
        ("# error it's \\\n 'more'\ny", "# error       \n       \ny"),
        ('"open\nx', '"    \nx'),
        ("a\r\n// b\r\nc", "a\r\n    \r\nc"),
    ],
)
def test_comments_and_literals_are_masked(text: str, code: str) -> None:
    assert mask(text.encode()).decode() == code
    assert len(code) == len(text)


# ---- guards ---------------------------------------------------------------------------------------------------------


def test_branches_are_live_where_their_condition_holds() -> None:
    file = source("#ifdef USE_ROCM\nint amd;\n#else\nint nvidia;\n#endif\nint both;\n")
    assert [live(file, name, AMD) for name in ("amd", "nvidia", "both")] == [True, False, True]
    assert [live(file, name, NVIDIA) for name in ("amd", "nvidia", "both")] == [False, True, True]


def test_guards_say_what_is_written_and_where() -> None:
    file = source("\n#if defined(USE_ROCM) && \\\n    FOO > 2  // why\nint a;\n#endif\n")
    (guard,) = node(file, "a").guards
    assert (guard.text, guard.expected, guard.line) == ("#if defined(USE_ROCM) && FOO > 2", True, 2)


def test_elif_branches_exclude_the_earlier_ones() -> None:
    file = source("#if defined(A)\nint a;\n#elif B > 2\nint b;\n#elif !C\nint c;\n#else\nint d;\n#endif\nint e;")
    assert texts(file, "int a") == [("#if defined(A)", True)]
    assert texts(file, "int b") == [("#if defined(A)", False), ("#elif B > 2", True)]
    assert texts(file, "int d") == [("#if defined(A)", False), ("#elif B > 2", False), ("#elif !C", False)]
    assert texts(file, "int e") == []
    assert live(file, "int c", Environment({"B": 1, "C": 0}, frozenset("A"))) is True
    assert live(file, "int c", Environment({"B": 3, "C": 0}, frozenset("A"))) is False


def test_guards_nest() -> None:
    file = source("#ifndef USE_ROCM\n#if __CUDA_ARCH__ >= 800\nint a;\n#endif\nint b;\n#endif\n")
    assert live(file, "a", NVIDIA) is True
    assert live(file, "a", NVIDIA.extended({"__CUDA_ARCH__": 700})) is False
    assert live(file, "b", NVIDIA.extended({"__CUDA_ARCH__": 700})) is True
    assert live(file, "a", AMD) is False


def test_a_directive_in_an_expression_guards_its_part() -> None:
    file = source(
        "int f() {\n  return 1 +\n#ifdef USE_ROCM\n    amd(64)\n#else\n    nvidia(32)\n#endif\n    + both();\n}\n"
    )
    assert live(file, "amd", NVIDIA) is False
    assert live(file, "nvidia", NVIDIA) is True
    assert live(file, "both", AMD) is True


def test_a_directive_in_a_parameter_list_guards_its_part() -> None:
    file = source("__global__ void k(int a,\n#ifdef USE_ROCM\n  int amd,\n#endif\n  int b) { use(b); }\n")
    assert live(file, "amd", NVIDIA) is False
    assert live(file, "use", NVIDIA) is True


def test_branches_that_split_braces_leave_guards_and_functions_intact() -> None:
    file = source(
        "__global__ void k(int n) {\n#ifdef USE_ROCM\n  if (n > 1) {\n#else\n  if (n > 2) {\n    nvidia();\n#endif\n"
        "    inner(threadIdx.x % 32);\n  }\n  last();\n}\nvoid host() { call(); }\n"
    )
    assert live(file, "nvidia", AMD) is False
    assert live(file, "inner", AMD) is True
    around = analysis(file).enclosing_function(node(file, "last()"))
    assert around is not None
    assert around.name == "k"
    assert node(file, "threadIdx.x % 32").role("lane-id")
    assert node(file, "call()").role("host-code")


def test_functions_in_every_branch_of_a_broken_file_are_known() -> None:
    branches = "".join(
        f"#{word}\n__global__ void k{n}() {{ int lane = threadIdx.x % 32; use{n}(lane, kN); }}\n"
        for n, word in enumerate(("if A", "elif B", "elif C", "else"))
    )
    split = "void open() {\n#if X\n if (a) {\n#else\n if (b) {\n#endif\n } }\n"
    file = source(f"{split}constexpr int kN = 4;\n{branches}#endif\n")
    for n in range(4):
        call = node(file, f"use{n}(lane, kN)")
        assert call.function is not None
        assert (call.function.name, call.role("device-code")) == (f"k{n}", True)
        assert (call.arguments[0].role("lane-id"), call.arguments[1].constant) == (True, 4)


def test_directives_in_comments_and_strings_are_none() -> None:
    file = source('/*\n#ifdef USE_ROCM\n*/\nconst char* s = R"(\n#if 0\n)";\nint a;\n')
    assert texts(file, "a;") == []


def test_a_directive_may_stand_behind_a_comment() -> None:
    assert texts(source("/* x */ # if A\nint a;\n#endif\n"), "a;") == [("#if A", True)]


@pytest.mark.parametrize(
    "head",
    ["#ifndef A_H\n#define A_H\n", "#if !defined(A_H)\n#define A_H 1\n", "#pragma once\n#ifndef A_H\n#define A_H\n"],
)
def test_an_include_guard_is_no_condition(head: str) -> None:
    file = source(f"// licence\n{head}int a;\n#ifdef USE_ROCM\nint b;\n#endif\n#endif  // A_H\n")
    assert texts(file, "a;") == []
    assert texts(file, "b;") == [("#ifdef USE_ROCM", True)]


def test_a_default_is_no_include_guard() -> None:
    file = source("#ifndef FAST\n#define FAST 1\nint a;\n#endif\nint b;\n")
    assert texts(file, "a;") == [("#ifndef FAST", True)]


@pytest.mark.parametrize(
    ("condition", "nvidia", "amd"),
    [
        ("defined USE_ROCM", False, True),
        ("!defined(USE_ROCM) && defined(__CUDACC__)", True, False),
        ("defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 800)", True, False),
        ("!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 0x2BC", True, True),
        ("CUDART_VERSION / 1000 == 12", True, False),
        ("(CUDART_VERSION % 1000) / 10 > 3 ? USE_CUDA : 0", True, False),
        ("__CUDA_ARCH__ >= 9'00u", True, False),
        ("USE_ROCM", False, True),
        ("not USE_ROCM and true", True, False),
        ("-1 < 0 && ~0 == -1 && (1 << 3) == 010", True, True),
        ("0", False, False),
        ("FOO", UNKNOWN, UNKNOWN),
        ("__has_include(<hip/hip_runtime.h>)", UNKNOWN, UNKNOWN),
        ("defined(__CUDA_ARCH__) && CUDA_AT_LEAST(12, 4)", UNKNOWN, False),
        ("USE_ROCM || AT_LEAST(1, (2))", UNKNOWN, True),
        ("1 +", UNKNOWN, UNKNOWN),
        ("", UNKNOWN, UNKNOWN),
        ("1 / 0", UNKNOWN, UNKNOWN),
        ("9" * 5000, UNKNOWN, UNKNOWN),
        ("(" * 5000 + "1" + ")" * 5000, UNKNOWN, UNKNOWN),
        ("!" * 5000 + "1", UNKNOWN, UNKNOWN),
        ("a + " * 5000 + "1", UNKNOWN, UNKNOWN),
        ("1 ? 1 : " * 5000 + "1", UNKNOWN, UNKNOWN),
    ],
)
def test_conditions_are_evaluated_for_each_side(condition: str, nvidia: Outcome, amd: Outcome) -> None:
    file = source(f"#if {condition}\nint probe;\n#endif\n")
    assert live(file, "probe", NVIDIA) is nvidia
    assert live(file, "probe", AMD) is amd


def test_a_long_chain_of_alternatives_is_read() -> None:
    chain = " || ".join(f"defined(ARCH_{number})" for number in range(60))
    file = source(f"#if {chain}\nint probe;\n#endif\n")
    assert live(file, "probe", Environment({"ARCH_59": 1})) is True


def test_macros_of_the_file_are_expanded_to_what_they_depend_on() -> None:
    file = source(
        "#if defined(USE_ROCM)\n#define HAS_X\n#endif\n#define LEVEL 3\n"
        "#ifdef HAS_X\nint a;\n#else\nint b;\n#endif\n#if LEVEL > 2\nint c;\n#endif\n#if LEVEL > 3\nint d;\n#endif\n"
    )
    assert [live(file, f"{name};", AMD) for name in "abcd"] == [True, False, True, False]
    assert [live(file, f"{name};", NVIDIA) for name in "abcd"] == [False, True, True, False]


def test_the_value_of_a_macro_follows_its_conditions() -> None:
    file = source(
        "#ifdef USE_ROCM\n#define WARP 64\n#elif defined(__CUDACC__)\n#define WARP 32\n#endif\n"
        "#if WARP == 64\nint wide;\n#endif\n#if WARP * 2 == 64\nint narrow;\n#endif\n"
    )
    assert [live(file, name, AMD) for name in ("wide", "narrow")] == [True, False]
    assert [live(file, name, NVIDIA) for name in ("wide", "narrow")] == [False, True]


def test_a_default_leaves_the_choice_to_the_build() -> None:
    file = source("#ifndef USE_FOO\n#define USE_FOO 0\n#endif\n#if USE_FOO\nint a;\n#endif\n")
    assert live(file, "a;", Environment({})) is UNKNOWN
    assert live(file, "a;", Environment({"USE_FOO": 1})) is True
    assert live(file, "a;", Environment({}, frozenset(("USE_FOO",)))) is False


def test_a_macro_counts_only_after_its_definition() -> None:
    file = source("#ifdef USE_ROCM\nint a;\n#endif\n#define USE_ROCM\n#ifdef USE_ROCM\nint b;\n#endif\n")
    assert live(file, "a;", NVIDIA) is False
    assert live(file, "b;", NVIDIA) is True


def test_a_macro_that_is_undefined_somewhere_is_not_followed() -> None:
    file = source("#define A 1\n#undef A\n#define A 2\n#if A == 2\nint a;\n#endif\n")
    assert live(file, "a;", Environment({})) is UNKNOWN


def test_macros_that_double_at_each_step_end_in_unknown() -> None:
    steps = "".join(f"#if A{i}\n#define A{i + 1} (A{i} + A{i})\n#endif\n" for i in range(100))
    assert live(source(f"{steps}#if A100\nint a;\n#endif\n"), "a;", Environment({})) is UNKNOWN


def test_deep_nesting_and_stray_directives_are_survived() -> None:
    deep = source("#if A\n" * 3000 + "int a;\n")
    assert len(analysis(deep).guards_at(offset(deep, "a;"))) == 3000
    assert texts(source("#else\n#endif\n#elif X\nint a;\n"), "a;") == []


def test_compile_time_branches_guard_their_code() -> None:
    file = source(
        "#ifdef USE_ROCM\nconstexpr int kWarp = 64;\n#else\nconstexpr int kWarp = 32;\n#endif\n"
        "__device__ void f() { if constexpr (kWarp == 32) { narrow(); } else { wide(); } }\n"
    )
    assert [live(file, name, NVIDIA) for name in ("narrow", "wide")] == [True, False]
    assert [live(file, name, AMD) for name in ("narrow", "wide")] == [False, True]


def test_a_test_of_the_warp_size_guards_its_code() -> None:
    file = source("__device__ void f(int n) { if (warpSize == 32) { a(); } else if (n) { b(); } else { c(); } }")
    assert texts(file, "a()") == [("if (warpSize == 32)", True)]
    assert texts(file, "b()") == texts(file, "c()") == [("if (warpSize == 32)", False)]


# ---- constants ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("32", 32), ("0x1F", 31), ("0b101", 5), ("017", 15), ("1'024u", 1024), ("32ULL", 32),
        ("0xffffffffu", 0xFFFFFFFF),
        ("0xffffffffffffffffull", 2**64 - 1), ("1e3f", 1000.0), (".5", 0.5), ("1.f", 1.0), ("0x1p4", 16.0),
        ("true", True), ("'a'", 97), ('"sm_80"', "sm_80"), ('"a\\n" "b"', "a\nb"), ('R"(a\\n)"', "a\\n"),
        ("~0u", 0xFFFFFFFF), ("-1", -1), ("~0", -1), ("1 << 5", 32), ("1u << 31", 2**31), ("1 << 31", -(2**31)),
        ("1ull << 40", 2**40), ("(unsigned)-1", 0xFFFFFFFF), ("static_cast<uint64_t>(-1)", 2**64 - 1), ("int(3.9f)", 3),
        ("7 / 2", 3), ("-7 / 2", -3), ("-7 % 3", -1), ("7.0 / 2", 3.5), ("96 * 1024", 98304), ("(1 << 5) - 1", 31),
        ("3 > 2 ? 64 : 32", 64), ("1 && 0 || 1", True), ("!0", True), ("5 == 5u", True), ("-1 < 1u", False),
        ("sizeof(float4)", 16), ("sizeof(double2) * 2", 32), ("sizeof(half)", 2), ("sizeof(__nv_bfloat162)", 4),
        ("sizeof(ulonglong4)", 32), ("sizeof(uchar3)", 3), ("sizeof(unsigned long long)", 8), ("sizeof(at::Half)", 2),
        ("sizeof(float *)", 8), ("sizeof(dim3)", 12),
        ("n", None), ("f(3)", None), ("sizeof(T)", None), ("1 / 0", None), ("1 << 40", None), ("threadIdx.x", None),
        ("1" + "0" * 100, None),
    ],
)  # fmt: skip
def test_expressions_are_folded_as_the_language_says(expression: str, value: object) -> None:
    found = constant(expression)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        ("#define N 32", 32),
        ("#define M 16\n#define N (M * 2)", 32),
        ("#define N M\n#define M 32", 32),
        ("#define N \\\n  (1 << 5) // lanes", 32),
        ("constexpr int N = 32;", 32),
        ("static const unsigned N = 8 * sizeof(int);", 32),
        ("const uint8_t N = 288;", 32),
        ("inline constexpr auto N{32};", 32),
        ("constexpr int M = 5, N = 1 << M;", 32),
        ("enum { M = 30, L, N };", 32),
        ("enum Width : int { N = 0x20 };", 32),
        ("namespace a { constexpr int N = 32; } namespace a { int x; }", 32),
        ("#ifndef N\n#define N 32\n#endif", 32),
        ("#define N 32\n#define N 32", 32),
        ("#define N 32\n#define N 64", None),
        ("#define N 32\n#undef N\n#define N 64", None),
        ("#define N(x) 32", None),
        ("int N = 32;", None),
        ("extern const int N;", None),
        ("constexpr int N[1] = {32};", None),
        ("#define N (M + 1)\n#define M (N + 1)", None),
    ],
)
def test_constants_of_the_file_are_followed(definition: str, value: object) -> None:
    assert constant("N + 0", definition) == value


def test_the_nearest_definition_counts() -> None:
    file = source(
        "constexpr int kN = 1;\nvoid f() { constexpr int kN = 2; { constexpr int kN = 3; a(kN); } b(kN); }\n"
        "void g() { c(kN); }"
    )
    assert [node(file, call).arguments[0].constant for call in ("a(kN)", "b(kN)", "c(kN)")] == [3, 2, 1]


def test_members_are_found_by_their_type() -> None:
    file = source(
        "struct A { static constexpr int kN = 4; enum { M = 5 }; void f() { a(kN); } };\n"
        "struct B { static constexpr int kN = 6; };\nenum class E { X = 7 };\n"
        "void g() { b(A::kN, B::kN, A::M, E::X, C::kN); c(kN); }"
    )
    assert node(file, "a(kN)").arguments[0].constant == 4
    assert [one.constant for one in node(file, "b(A::kN, B::kN, A::M, E::X, C::kN)").arguments] == [4, 6, 5, 7, None]
    assert node(file, "c(kN)").arguments[0].constant is None


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("int n = 98304; f(n);", 98304),
        ("int n = 1; n = 2; f(n);", None),
        ("int n = 1; n++; f(n);", None),
        ("int n = 1; read(&n); f(n);", None),
        ("int n; f(n);", None),
        ("for (int n = 0; n < 4; ++n) f(n);", None),
        ("dim3 n(32); f(n);", None),
        ("static int n = 1; f(n);", None),
    ],
)
def test_a_local_variable_that_nothing_changes_is_constant(body: str, value: object) -> None:
    file = source(f"void host() {{ {body} }}")
    assert node(file, "f(n)").arguments[0].constant == value


def test_parameters_are_not_constant() -> None:
    file = source("template <int W = 32>\n__global__ void k(int n = 4) { f(W, n); }")
    assert [one.constant for one in node(file, "f(W, n)").arguments] == [None, None]


CONDITIONAL = "#ifdef USE_ROCM\n#define WS 64\n#else\n#define WS 32\n#endif\n"


def test_a_conditional_constant_has_a_value_for_each_side() -> None:
    file = source(f"{CONDITIONAL}constexpr int kMask = WS - 1;\nint a = kMask * 2 + WS - WS;\n")
    assert node(file, "kMask * 2 + WS - WS").constant is None
    assert values(file, "kMask * 2 + WS - WS") == {(126, "#ifdef USE_ROCM"), (62, "!#ifdef USE_ROCM")}


def test_a_conditional_constant_is_one_value_under_its_own_condition() -> None:
    file = source(f"{CONDITIONAL}#ifdef USE_ROCM\nint a = WS;\n#else\nint b = WS + 0;\n#endif\n")
    assert node(file, "WS", 2).constant == 64
    assert node(file, "WS + 0").constant == 32


def test_a_constant_may_be_macro_on_one_side_and_variable_on_the_other() -> None:
    file = source("#ifdef USE_ROCM\n#define WS 64\n#else\nconstexpr int WS = 32;\n#endif\nint a = WS * 1;\n")
    assert values(file, "WS * 1") == {(64, "#ifdef USE_ROCM"), (32, "!#ifdef USE_ROCM")}


def test_function_like_macros_are_expanded_when_called_with_constants() -> None:
    macros = "#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))\n#define TWICE(x) ((x) * 2)\n"
    assert constant("CEIL_DIV(TWICE(50), 32)", macros) == 4
    assert constant("CEIL_DIV(n, 32)", macros) is None
    assert constant("CEIL_DIV(1)", macros) is None


def test_nested_macro_calls_that_double_the_work_end_in_unknown() -> None:
    assert constant("F(" * 60 + "1" + ")" * 60, "#define F(x) (x + x)\n") is None


def test_deep_expressions_are_unknown_and_do_not_raise() -> None:
    assert constant("1 + " * 3000 + "1") is None
    assert constant("(" * 3000 + "1 + 1" + ")" * 3000) == 2


# ---- roles ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declarations", "variable", "role"),
    [
        ("int t = threadIdx.x;", "t", "thread-index"),
        ("const auto t = static_cast<unsigned>(threadIdx.x);", "t", "thread-index"),
        ("int t = hipThreadIdx_x;", "t", "thread-index"),
        ("int t = __builtin_amdgcn_workitem_id_x();", "t", "thread-index"),
        ("int t; t = threadIdx.x;", "t", "thread-index"),
        ("int t = threadIdx.x; t += blockIdx.x * blockDim.x;", "t", "thread-index"),
        ("int t = blockIdx.x * blockDim.x + threadIdx.x;", "t", "thread-index"),
        ("int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);", "t", "thread-index"),
        ("auto g = cg::this_thread_block(); int t = g.thread_rank();", "t", "thread-index"),
        ("dim3 v = threadIdx; int t = v.x;", "t", "thread-index"),
        ("int w = threadIdx.x / 32, l = threadIdx.x % 32; int t = w * 32 + l;", "t", "thread-index"),
        ("int b = blockIdx.x;", "b", "block-index"),
        ("int b = hipBlockIdx_y * 4;", "b", "block-index"),
        ("int a = threadIdx.x & 31;", "a", "lane-id"),
        ("int a = threadIdx.x % warpSize;", "a", "lane-id"),
        ("int a = threadIdx.x & (warpSize - 1);", "a", "lane-id"),
        ("int a = threadIdx.x & 0x3f;", "a", "lane-id"),
        ("int t = threadIdx.x + blockDim.x * threadIdx.y; int a = t % 32u;", "a", "lane-id"),
        ("auto g = cg::this_thread_block(); int a = g.thread_rank() % 32;", "a", "lane-id"),
        ("auto g = cg::tiled_partition<32>(cg::this_thread_block()); int a = g.thread_rank();", "a", "lane-id"),
        ("int a = __lane_id();", "a", "lane-id"),
        ("int a = cub::LaneId();", "a", "lane-id"),
        ("int a = cutlass::canonical_lane_idx();", "a", "lane-id"),
        ("int a; asm volatile(\"mov.u32 %0, %%laneid;\" : \"=r\"(a));", "a", "lane-id"),
        ("int a = threadIdx.x; a &= 31;", "a", "lane-id"),
        ("int a = threadIdx.x % 32; int b = a ^ 1;", "b", "lane-id"),
        ("int a = threadIdx.x % 32; int b = a + 1;", "b", "lane-id"),
        ("int laneId = get(n);", "laneId", "lane-id"),
        ("int w = threadIdx.x / 32;", "w", "warp-id"),
        ("int w = threadIdx.x >> 5;", "w", "warp-id"),
        ("int w = threadIdx.x / warpSize;", "w", "warp-id"),
        ("int w = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);", "w", "warp-id"),
        ("int w = cutlass::canonical_warp_idx_sync();", "w", "warp-id"),
        ("int w = warpSize;", "w", "warp-size"),
        ("int w = props.warpSize;", "w", "warp-size"),
        ("auto m = __ballot_sync(0xffffffff, n);", "m", "ballot"),
        ("auto m = __ballot(n) & 7;", "m", "ballot"),
        ("unsigned m = 0; m = __ballot_sync(~0u, n);", "m", "ballot"),
        ("auto g = cg::coalesced_threads(); auto m = g.ballot(n);", "m", "ballot"),
        ("auto m = __activemask();", "m", "lane-mask"),
        ("auto m = __match_any_sync(0xffffffff, n);", "m", "lane-mask"),
        ("int l = threadIdx.x & 31; unsigned m = (1u << l) - 1;", "m", "lane-mask"),
        ("unsigned m = 0xffff; __syncwarp(m);", "m", "lane-mask"),
        ("__shared__ float s[32];", "s", "shared-array"),
        ("__shared__ float s[32][33];", "s[n]", "shared-array"),
        ("extern __shared__ __align__(16) char s[];", "s", "shared-array"),
    ],
)  # fmt: skip
def test_the_usual_idioms_have_their_role(declarations: str, variable: str, role: str) -> None:
    assert role in roles_of(declarations, variable)


@pytest.mark.parametrize(
    ("declarations", "variable", "role"),
    [
        ("int t = blockIdx.x * 32 + threadIdx.x;", "t", "lane-id"),
        ("int t = threadIdx.x;", "t", "lane-id"),
        ("int t = threadIdx.x * 4;", "t", "thread-index"),
        ("int a = (threadIdx.x * 4) % 32;", "a", "lane-id"),
        ("int a = threadIdx.y % 32;", "a", "lane-id"),
        ("int a = threadIdx.x % 16;", "a", "lane-id"),
        ("int a = threadIdx.x % n;", "a", "lane-id"),
        ("int a = blockIdx.x % 32;", "a", "lane-id"),
        ("int a = n % 32;", "a", "lane-id"),
        ("int a = blockDim.x / 32;", "a", "warp-id"),
        ("int a = threadIdx.x / 4;", "a", "warp-id"),
        ("int i = threadIdx.x; i += blockDim.x;", "i", "thread-index"),
        ("int l = threadIdx.x & 31; int a = l * 4;", "a", "lane-id"),
        ("int wid = n;", "wid", "warp-id"),
        ("int c = __popc(__ballot_sync(~0u, n));", "c", "ballot"),
        ("int mask = 7;", "mask", "lane-mask"),
        ("float s[32];", "s", "shared-array"),
        ("int a = b; int b = a;", "a", "thread-index"),
    ],
)
def test_what_only_looks_alike_has_not(declarations: str, variable: str, role: str) -> None:
    assert role not in roles_of(declarations, variable)


def test_a_transposed_tile_is_a_thread_index_and_no_lane() -> None:
    file = source("__global__ void t(float* o) { int x = blockIdx.x * 32 + threadIdx.x; o[x] = 0; }")
    assert roles(file, "blockIdx.x * 32 + threadIdx.x") == {"thread-index"}
    assert roles(file, "o[x]") == set()
    assert node(file, "o[x]")["indices"].children[0].role("thread-index")


def test_a_loop_over_elements_is_no_thread_index() -> None:
    file = source("__global__ void t(int n) { for (int i = threadIdx.x; i < n; i += blockDim.x) use(i % 32); }")
    assert roles(file, "i % 32") == set()


def test_roles_pass_through_macros() -> None:
    macros = (
        "#define tid threadIdx.x\n#define LANE(t) ((t) & 31)\n#define MY_LANE LANE(tid)\n#define MASK_ALL 0xffffffff\n"
    )
    assert roles_of("", "tid", macros) == {"thread-index"}
    assert roles_of("int a = LANE(tid);", "a", macros) == {"lane-id"}
    assert roles_of("int a = MY_LANE;", "a", macros) == {"lane-id"}
    assert roles_of("int a = LANE(n);", "a", macros) == set()
    assert "lane-mask" in roles_of("", "MASK_ALL", macros)


def test_expressions_in_macro_bodies_have_roles() -> None:
    file = source("#define STORE(p) do { \\\n    int l = threadIdx.x % 32; \\\n    p[l] = 0; } while (0)\n")
    assert roles(file, "threadIdx.x % 32") == {"lane-id"}
    assert roles(file, "l", 0) == {"lane-id"}
    assert node(file, "threadIdx.x % 32").role("device-code")


@pytest.mark.parametrize("mask", ["0xffffffff", "~0u", "-1", "(unsigned)-1", "mask", "1 + 2", "FULL_MASK"])
def test_the_first_argument_of_a_warp_operation_is_a_mask(mask: str) -> None:
    file = source(f"__device__ int f(int v, unsigned mask) {{ return __shfl_xor_sync({mask}, v, 16); }}")
    call = node(file, f"__shfl_xor_sync({mask}, v, 16)")
    assert call.arguments[0].role("lane-mask")
    assert not call.arguments[2].role("lane-mask")


def test_a_parameter_used_as_a_mask_is_one_everywhere() -> None:
    file = source("__device__ void f(unsigned m, unsigned q) { use(m); use(q); __syncwarp(m); }")
    assert node(file, "use(m)").arguments[0].role("lane-mask")
    assert not node(file, "use(q)").arguments[0].role("lane-mask")


@pytest.mark.parametrize(
    "name",
    ["WARP_SIZE", "kWarpSize", "WarpSize", "warp_size", "C10_WARP_SIZE", "kWarpLanes", "THREADS_PER_WARP", "WARPSIZE",
     "at::cuda::warp_size()", "WAVEFRONT_SIZE", "warpWidth", "NumThreadsPerWarp"],
)  # fmt: skip
def test_names_of_the_warp_size_are_known(name: str) -> None:
    assert "warp-size" in roles_of("", name)
    assert roles_of(f"int a = threadIdx.x % {name};", "a") == {"lane-id"}


@pytest.mark.parametrize("name", ["LOGICAL_WARP_SIZE", "HALF_WARP_SIZE", "MAX_WARP_SIZE", "warps", "kLogWarpSize"])
def test_names_of_other_widths_are_not(name: str) -> None:
    assert "warp-size" not in roles_of("", name)


def test_parameters_are_judged_by_name_in_device_code_only() -> None:
    file = source("__device__ void f(int lane, int warp_id, int tid, int wid) { a(lane, warp_id, tid / 32, wid); }")
    found = [roles(file, text, 1) for text in ("lane", "warp_id")]
    assert found == [{"lane-id"}, {"warp-id"}]
    assert roles(file, "tid / 32") == {"warp-id"}
    assert roles(file, "wid", 1) == set()
    host = source("void f(int warp_id, int tid) { a(warp_id, tid); }")
    assert roles(host, "warp_id", 1) == roles(host, "tid", 1) == set()


def test_code_is_device_code_or_host_code() -> None:
    file = source(
        "#define HD __host__ __device__\n"
        "__global__ void k() { p0(1); }\nHD int both() { return p1(1); }\nCUTLASS_DEVICE void macro() { p2(1); }\n"
        "void host() { p3(1); auto l = [=] __device__ (int i) { p4(1); }; }\n"
        "template <class T> void plain(T* s) { p5(1, threadIdx.x); }\nint g = p6(1);\n"
    )
    calls = ["p0(1)", "p1(1)", "p2(1)", "p3(1)", "p4(1)", "p5(1, threadIdx.x)", "p6(1)"]
    assert [node(file, call).role("device-code") for call in calls] == [True, True, True, False, True, True, False]
    assert [node(file, call).role("host-code") for call in calls] == [False, False, False, True, False, False, False]


def test_a_kernel_is_the_definition_of_one() -> None:
    file = source('extern "C" __global__ void k() { }\nvoid host() { }\ntemplate <int N>\n__global__ void t() { }')
    assert [one.role("kernel") for one in file.root.children] == [True, False, True]


def test_an_unknown_role_is_an_error_of_the_rule() -> None:
    with pytest.raises(ValueError, match="'lane'"):
        node(source("int a;"), "a").role("lane")


# ---- names and calls ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "expression", "name"),
    [
        ("", "cudaMalloc(&p, 4)", "cudaMalloc"),
        ("", "::cudaMalloc(&p, 4)", "cudaMalloc"),
        ("namespace cg = cooperative_groups;", "cg::tiled_partition<32>(b)", "cooperative_groups::tiled_partition"),
        ("namespace a = b; namespace b = c::d;", "a::f()", "c::d::f"),
        ("using cooperative_groups::this_grid;", "this_grid()", "cooperative_groups::this_grid"),
        ("using namespace cooperative_groups;", "this_thread_block()", "cooperative_groups::this_thread_block"),
        ("using namespace cooperative_groups;", "mine()", "mine"),
        ("using namespace nvcuda;", "wmma::load_matrix_sync(a, b, 16)", "nvcuda::wmma::load_matrix_sync"),
        ("using Reduce = cub::WarpReduce<float>;", "Reduce(tmp)", "cub::WarpReduce"),
        ("typedef cub::BlockReduce<float, 128> Reduce;", "Reduce(tmp)", "cub::BlockReduce"),
        ("using A = A;", "A::f()", "A::f"),
        ("", "ns::f<3>::g(2)", "ns::f::g"),
        ("", "tile.shfl_down(v, 1)", "tile.shfl_down"),
        ("", "props->warpSize", "props.warpSize"),
        ("", "cub::WarpReduce<float>(tmp).Sum(v)", ".Sum"),
        ("", "threadIdx.x", "threadIdx.x"),
        ("", "a->b.c<3>(4)", "a.b.c"),
        ("", "k<float, 32><<<g, b, 0, s>>>(x)", "k"),
        ("", "1 + 2", ""),
        ("", "f(1)(2)", ""),
    ],
)
def test_names_are_qualified_and_aliases_resolved(before: str, expression: str, name: str) -> None:
    file = source(f"{before}\nvoid f() {{ {expression}; }}")
    assert node(file, expression).name == name


def test_an_alias_counts_in_its_own_scope() -> None:
    file = source("void f() { using R = a::X; R(1); }\nvoid g() { using R = b::Y; R(2); }\n")
    assert [node(file, call).name for call in ("R(1)", "R(2)")] == ["a::X", "b::Y"]


def test_arguments_leave_comments_out() -> None:
    call = node(source("void f() { g(1, /* two */ 2,\n // three\n h(3)); }"), "g(1, /* two */ 2,\n // three\n h(3))")
    assert [one.text for one in call.arguments] == ["1", "2", "h(3)"]
    second = call.argument(1)
    assert second is not None
    assert second.text == "2"
    assert call.argument(3) is None
    assert call.argument(None, "keyword") is None
    assert node(source("dim3 grid(4, 2);"), "grid(4, 2)").argument(0, "x") is not None


@pytest.mark.parametrize(
    ("launch", "parts"),
    [
        ("k<<<g, b>>>(x)", ("k", "g", "b", None, None)),
        ("k<<<dim3(1, 2), 32 * 8, 1024>>>(x)", ("k", "dim3(1, 2)", "32 * 8", "1024", None)),
        ("k<T, 32><<<g, b, 0, s>>>(x)", ("k<T, 32>", "g", "b", "0", "s")),
        ("ns::k<(A > 1)><<<g, b, sizeof(T), s>>>()", ("ns::k<(A > 1)>", "g", "b", "sizeof(T)", "s")),
        ("hipLaunchKernelGGL(k<32>, g, b, 0, s, x, n)", ("k<32>", "g", "b", "0", "s")),
        ("cudaLaunchKernel((void*)k, g, b, args, 96, s)", ("(void*)k", "g", "b", "96", "s")),
    ],
)
def test_launches_are_taken_apart(launch: str, parts: tuple[str | None, ...]) -> None:
    file = source(f"void f() {{ {launch}; }}")
    config = analysis(file).launch(node(file, launch))
    assert config is not None
    found = (config.kernel, config.grid, config.block, config.shared, config.stream)
    assert tuple(one.text if one else None for one in found) == parts


def test_a_launch_gives_the_template_arguments() -> None:
    file = source("void f() { k<T, 32><<<g, b>>>(x); }")
    call = node(file, "k<T, 32><<<g, b>>>(x)")
    config = analysis(file).launch(call)
    assert config is not None
    assert [one.text for one in config.template_arguments] == ["T", "32"]
    assert config.template_arguments[1].constant == 32
    assert config.kernel.name == "k"
    assert [one.text for one in call.arguments] == ["x"]


@pytest.mark.parametrize("call", ["f(x)", "hipLaunchKernelGGL(k)", "hipLaunchKernelGGL()"])
def test_other_calls_are_no_launches(call: str) -> None:
    file = source(f"void g() {{ {call}; }}")
    assert analysis(file).launch(node(file, call)) is None


# ---- functions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "bounds"),
    [
        ("__global__ void k(int n)", []),
        ("__global__ void __launch_bounds__(256, 2) k(int n)", ["256", "2"]),
        ("__global__ __launch_bounds__(N * 32) void k(int n)", ["N * 32"]),
        ('extern "C" __global__ void __launch_bounds__(64) k(int n)', ["64"]),
        ("__launch_bounds__(128) __global__ void k(int n)", ["128"]),
        ("__global__ void C10_LAUNCH_BOUNDS_1(512) k(int n)", ["512"]),
        ("static __global__ void __cluster_dims__(2, 1, 1) k(int n)", []),
        ("template <typename T>\n__global__ void __launch_bounds__(32) k(int n)", ["32"]),
        ("CUTLASS_GLOBAL void k(int n)", []),
    ],
)
def test_a_kernel_is_known_by_its_head(head: str, bounds: list[str]) -> None:
    file = source(f"int before;\n{head} {{ body(n); }}\nvoid after() {{ last(); }}\n")
    info = analysis(file).function(node(file, "body(n)"))
    assert info is not None
    assert (info.name, info.is_kernel, info.is_device, info.is_host) == ("k", True, True, False)
    assert [one.text for one in info.launch_bounds] == bounds
    assert [(one.name, one.type) for one in info.parameters] == [("n", "int")]
    other = analysis(file).function(node(file, "last()"))
    assert other is not None
    assert (other.name, other.is_kernel, other.is_device, other.is_host) == ("after", False, False, True)


def test_parameters_and_template_parameters_are_listed() -> None:
    file = source(
        "template <typename T, int N = 32, bool kFast, class... Rest>\n"
        "__host__ __device__ inline T* f(const T* __restrict__ x, T (&a)[4], int n = 3, float) { return body(); }"
    )
    info = analysis(file).function(node(file, "body()"))
    assert info is not None
    assert info.template_parameters == ("T", "N", "kFast", "Rest")
    assert [one.name for one in info.parameters] == ["x", "a", "n", ""]
    assert [one.type for one in info.parameters][::2] == ["const T* __restrict__", "int"]
    assert (info.is_kernel, info.is_device, info.is_host) == (False, True, True)
    assert info.body.text == "{ return body(); }"


def test_methods_have_qualified_names() -> None:
    file = source("template <class T> __device__ void A<T>::run(int n) { body(); }")
    info = analysis(file).function(node(file, "body()"))
    assert info is not None
    assert info.name == "A::run"


def test_outside_functions_there_is_no_function() -> None:
    file = source("int a = f();")
    assert analysis(file).function(node(file, "f()")) is None
    assert analysis(file).enclosing_function(node(file, "f()")) is None


@pytest.mark.parametrize(
    "declaration",
    [
        "struct __align__(16) Vec { float x; };",
        "extern __shared__ __align__(16) char smem[];",
        "C10_API C10_EXPORT int api(int a);",
        "#define MY_INLINE __device__ __forceinline__\nMY_INLINE int g(int a) { return a; }",
        "void h() { each([=] __host__ __device__ (int i) { return i; }); }",
        "#if 0\n}}}}\n#else\nint fine;\n#endif",
    ],
)
def test_what_the_grammar_does_not_know_is_kept_from_the_structure(declaration: str) -> None:
    file = source(f"{declaration}\n__global__ void k() {{ body(); }}\n")
    assert not analysis(file).structure().root_node.has_error
    info = analysis(file).function(node(file, "body()"))
    assert info is not None
    assert (info.name, info.is_kernel) == ("k", True)


def test_a_clean_file_is_parsed_once() -> None:
    file = source("int a;")
    assert analysis(file).structure() is file.tree


# ---- macro bodies ---------------------------------------------------------------------------------------------------


def test_code_in_macro_bodies_is_where_the_file_has_it() -> None:
    file = source(
        "// \xe4\n#define REDUCE(v) \\\n  v += __shfl_xor_sync(0xffffffff, v, 16); \\\n  v += f(v)\nint a;\n"
        "#define ONE (1 + 0)"
    )
    call = node(file, "__shfl_xor_sync(0xffffffff, v, 16)")
    assert (call.line, call.name) == (3, "__shfl_xor_sync")
    assert [one.text for one in call.arguments] == ["0xffffffff", "v", "16"]
    assert node(file, "f(v)").line == 4
    assert node(file, "1 + 0").constant == 1


def test_macro_bodies_have_the_guards_of_their_place() -> None:
    file = source("#ifndef USE_ROCM\n#define S(v) __shfl_sync(0xffffffff, v, 0)\n#endif\n")
    (guard,) = node(file, "__shfl_sync(0xffffffff, v, 0)").guards
    assert guard.text == "#ifndef USE_ROCM"


def test_macros_are_listed_with_their_bodies() -> None:
    file = source(
        "#define A 32\n#define B(x, ...) f(x, __VA_ARGS__)\n#define C\n#define D \\\n  if (x) { \\\n    y(); }\n"
    )
    bodies = analysis(file).macro_bodies()
    assert [one.macro.name for one in bodies] == ["A", "B", "C", "D"]
    assert [one.macro.parameters for one in bodies] == [None, ("x", "..."), None, None]
    assert [one.node.text if one.node else None for one in bodies][:3] == [None, "f(x, __VA_ARGS__)", None]


@pytest.mark.parametrize("text", ["int a;", "#define A 32\n#define B kC\n#define C\n"])
def test_macros_of_one_token_need_no_tree(text: str) -> None:
    assert len(analysis(source(text)).roots()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "#define A(x) {\n#define B(x) }\n#define C(v) probe(v)\n",
        "#define A B(\n#define C(v) probe(v)\n",
        "#define A a;b\n#define C(v) x = probe(v)\n",
        "#define A(n) v_##n = #n + probe(v)\n",
        "#define A __global__ void k() { probe(v); }\n#define B 1+1",
        "#define A do { x; } while (0)\n#define C(v) \\\r\n  probe(v)\r\n",
    ],
)
def test_broken_neighbours_do_not_hide_a_body(text: str) -> None:
    file = source(text)
    assert node(file, "probe(v)").type == "call_expression"
    assert analysis(file).roots()[1].start_point[0] == 0


def test_the_wrapping_of_a_body_is_no_variable_of_the_file() -> None:
    file = source("#define A 1 + 1\nint b = v + f;\n")
    assert node(file, "v + f").constant is None


# ---- robustness -----------------------------------------------------------------------------------------------------

HOSTILE = {
    "nothing": b"",
    "no end of line": b"#define",
    "bare directives": b"#\n#if\n#elif\n#define \n#undef\n#include\n",
    "open brackets": b"void f(){" + b"(" * 2000,
    "deep blocks": b"void f()" + b"{" * 2000 + b"a = b % 32;" + b"}" * 2000,
    "long sums": b"int a = " + b"b + " * 5000 + b"c;",
    "long members": b"int a = b" + b".c" * 3000 + b";",
    "long scopes": b"int a = " + b"b::" * 3000 + b"c;",
    "doubling macros": b"".join(b"#define A%d (A%d + A%d)\n" % (n + 1, n, n) for n in range(300))
    + b"int a = A300 % 32;",
    "doubling calls": b"#define F(x) (x + x)\nint a = " + b"F(" * 60 + b"threadIdx.x" + b")" * 60 + b" % 32;",
    "a ring of macros": b"#define A (B + 1)\n#define B (A + 1)\nint a = A % 32;",
    "a ring of variables": b"void f() { int a = b; int b = c; int c = a; a = b % 32; }",
    "carriage returns": b"#define A 1 \\\r\n + 2\r\n#if A\r\nint a = A;\r\n#endif\r\n",
    "not UTF-8 inside": "int ä = 1; // ö\n#define Ü(x) f(x)\n".encode(),
    "half a kernel": b"__global__ void k(int n) { int lane = threadIdx.x %",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_input_raises(name: str) -> None:
    file = source(HOSTILE[name])
    services = analysis(file)
    for root in services.roots():
        for index, found in enumerate(Node(file, root).walk()):
            if index > 300:
                break
            services.name(found)
            services.constant(found)
            services.guards(found)
            services.arguments(found)
            services.launch(found)
            services.function(found)
            assert isinstance(services.role(found, "lane-id"), bool)
            assert isinstance(services.role(found, "device-code"), bool)
    services.macro_bodies()


def test_the_services_load_nothing_but_the_parser() -> None:
    code = (
        "import sys; from portlint.source import Source;"
        "s = Source('a.cu', b'int a = 1;', 'cuda'); s.root.constant, s.root.guards, s.root.role('lane-id');"
        "print(sorted({'libcst', 'rich', 'click', 'sarif_om', 'tree_sitter_python'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
