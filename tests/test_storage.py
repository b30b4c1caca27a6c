"""Widths and sizes in C++: which integers certainly have 32 bits, what keeps a value, how many bytes an array takes."""

from __future__ import annotations

import pytest

from portlint.source import Source
from portlint.source.node import Node


def source(text: str) -> Source:
    return Source("kernel.cu", text.encode(), "cuda")


def argument(expression: str, before: str = "") -> Node:
    """`expression` as an argument of a call in a function with some variables."""
    of = source(
        f"{before}\n__device__ void f(uint32_t narrow, unsigned long long wide, mask_t unknown, int* pointer) {{\n"
        f"  unsigned local = 0; uint64_t large = 0; auto deduced = g();\n  use({expression});\n}}\n"
    )
    call = next(call for call in of.root.walk("call_expression") if call.name == "use")
    return call.arguments[0]


@pytest.mark.parametrize(
    "expression",
    [
        "0xffffffff", "0xffffffffu", "-1", "~0u", "(0xff)", "1", "unsigned(-1)", "uint32_t(~0ull)", "(unsigned)wide",
        "static_cast<uint32_t>(wide)", "narrow", "local", "narrow & local", "(1u << 16) - 1", "narrow >> 1",
        "1u << wide",
    ],
)  # fmt: skip
def test_certainly_32_bits(expression: str) -> None:
    assert argument(expression).role("32-bit")


@pytest.mark.parametrize(
    "expression",
    [
        "0xffffffffffffffff", "0xffffffffull", "~0ull", "1ULL", "uint64_t(0xffffffff)", "(unsigned long long)narrow",
        "static_cast<uint64_t>(narrow)", "wide", "large", "deduced", "unknown", "pointer", "narrow & wide", "1ull << 3",
        "wide >> 32", "g()", "__activemask()", "narrow < 3",
    ],
)  # fmt: skip
def test_wide_or_not_known(expression: str) -> None:
    assert not argument(expression).role("32-bit")


@pytest.mark.parametrize(
    ("body", "narrow"),
    [
        ("0xffffffff", True),
        ("0xffffffff  // every lane", True),
        ("(0xffffffffu)", True),
        ("((unsigned)-1) /* all */", True),
        ("0xffffffffffffffffull  // every lane", False),
        ("(~0ull)", False),
        ("uint64_t(0xffffffff)", False),
        ("__activemask()", False),
    ],
)
def test_the_text_of_a_macro(body: str, narrow: bool) -> None:
    (text,) = argument("MASK", before=f"#define MASK {body}").choices
    assert text.role("32-bit") is narrow


@pytest.mark.parametrize(
    "statement",
    [
        "uint32_t m = __ballot(p);",
        "const unsigned m = (__ballot(p));",
        "int m; m = __ballot(p);",
        "auto m = static_cast<int>(__ballot(p));",
        "auto m = (unsigned)__ballot(p);",
        "auto m = uint32_t(__ballot(p));",
        "return __ballot(p);",
    ],
)
def test_kept_in_32_bits(statement: str) -> None:
    of = source(f"__device__ uint32_t f(bool p) {{ {statement} }}")
    ballot = next(call for call in of.root.walk("call_expression") if call.name == "__ballot")
    assert ballot.role("kept-in-32-bits")


@pytest.mark.parametrize(
    "statement",
    [
        "uint64_t m = __ballot(p);",
        "auto m = __ballot(p);",
        "mask_t m = __ballot(p);",
        "unsigned long long m; m = __ballot(p);",
        "use(__ballot(p));",
        "uint32_t n = __popcll(__ballot(p));",
        "uint64_t m = 0; m |= __ballot(p);",
        "auto g = [&] { return __ballot(p); };",
    ],
)
def test_not_kept_in_32_bits(statement: str) -> None:
    of = source(f"__device__ uint32_t f(bool p) {{ {statement} }}")
    ballot = next(call for call in of.root.walk("call_expression") if call.name == "__ballot")
    assert not ballot.role("kept-in-32-bits")


@pytest.mark.parametrize(
    ("declaration", "size", "first"),
    [
        ("__shared__ float a[32];", 128, 32),
        ("__shared__ double a[4][8];", 256, 4),
        ("__shared__ float4 a[kRows][2 * kRows + 1];", 16 * 4 * 9, 4),
        ("__shared__ half a[1 << 10];", 2048, 1024),
        ("__shared__ Tile a[2];", None, 2),
        ("__shared__ float a[n];", None, None),
        ("extern __shared__ float a[];", None, None),
    ],
)
def test_bytes_and_first_dimension(declaration: str, size: int | None, first: int | None) -> None:
    of = source(f"constexpr int kRows = 4;\n__device__ void f(int n) {{ {declaration} use(a[0]); }}")
    array = next(of.root.walk("array_declarator"))
    assert array.storage_bytes == size
    assert array.extent == first


def test_a_use_has_the_extent_of_its_array() -> None:
    of = source("__device__ void f(int i) { __shared__ float sums[32]; use(sums[i]); }")
    access = next(of.root.walk("subscript_expression"))
    assert access["argument"].extent == 32
