"""How code uses its warp: over its real width, or in groups of 32 lanes."""

from __future__ import annotations

import pytest

from portlint.source import Source
from portlint.source.node import Node

XOR = """
#define XOR32(v, d) __shfl_xor((v), (d), 32)
#define XOR(v, d) __shfl_xor((v), (d))
"""


def function(body: str, before: str = "") -> Node:
    of = Source("kernel.cu", f"{before}\n__device__ float f(float v, int n, float* s) {{ {body} }}".encode(), "cuda")
    return list(of.root.walk("function_definition"))[-1]


def call(expression: str, before: str = "") -> Node:
    return next(function(f"use({expression});", before).walk("argument_list")).children[0]


@pytest.mark.parametrize(
    "body",
    [
        "v = __any_sync(m, v > 0);", "m = __ballot(v);", "m = __activemask();", "v = __shfl_sync(m, v, 0);",
        "v = __shfl(v, 0);", "v = __reduce_add_sync(m, v);", "m = __match_any_sync(m, n);",
        "n = threadIdx.x % warpSize;",
    ],
)  # fmt: skip
def test_over_the_whole_warp(body: str) -> None:
    assert function(body).warp_operations


@pytest.mark.parametrize(
    "body",
    [
        "v += s[threadIdx.x % 32];", "v = __shfl_sync(m, v, 0, 32);", "v = __shfl(v, 0, 32);",
        "v += __shfl_xor_sync(m, v, 16);", "v = tile.shfl(v, 0);", "v = all(v);", "__syncthreads();",
    ],
)  # fmt: skip
def test_within_groups_whatever_the_width(body: str) -> None:
    assert not function(body).warp_operations


@pytest.mark.parametrize("index", ["threadIdx.x % 32", "threadIdx.x / 32", "threadIdx.x & 31", "threadIdx.x >> 5"])
def test_a_block_split_by_literals_works_in_groups_of_32(index: str) -> None:
    assert function(f"s[{index}] = v;").role("groups-of-32")
    assert not function(f"s[{index}] = v; n = warpSize;").role("groups-of-32")


@pytest.mark.parametrize("index", ["threadIdx.x % 64", "threadIdx.x & 15", "n / 32", "threadIdx.x % warpSize"])
def test_other_arithmetic_makes_no_groups_of_32(index: str) -> None:
    assert not function(f"s[{index}] = v;").role("groups-of-32")


@pytest.mark.parametrize(
    "name", ["__shfl_xor", "__shfl_down_sync", "WARP_SHFL_XOR", "warp_shuffle", "cub::ShuffleDown", "SHFL"]
)
def test_shuffles_go_by_name(name: str) -> None:
    assert call(f"{name}(v, 1)").role("shuffle")


@pytest.mark.parametrize("name", ["__ballot", "shift", "permute", "__reduce_add_sync"])
def test_other_calls_are_no_shuffles(name: str) -> None:
    assert not call(f"{name}(v, 1)").role("shuffle")


@pytest.mark.parametrize(
    "expression",
    ["__shfl_xor(v, 16, 32)", "__shfl_xor_sync(m, v, 16, 32)", "SHFL_XOR(v, 16, 32)", "XOR32(v, 16)"],
)
def test_shuffles_that_state_their_group(expression: str) -> None:
    assert call(expression, XOR).role("group-width")


@pytest.mark.parametrize(
    "expression",
    ["__shfl_xor(v, 16)", "__shfl_xor_sync(m, v, 16)", "__shfl_xor_sync(m, v, 16, warpSize)", "XOR(v, 16)"],
)
def test_shuffles_over_the_whole_warp(expression: str) -> None:
    assert not call(expression, XOR).role("group-width")


@pytest.mark.parametrize("lane", ["threadIdx.x % warpSize", "threadIdx.x & (warpSize - 1)", "__lane_id()"])
def test_lanes_of_the_hardware(lane: str) -> None:
    of = function(f"const int lane = {lane}; use(s[lane]);")
    assert next(of.walk("subscript_argument_list")).children[0].role("hardware-lane")


def test_a_lane_by_literal_ends_at_31() -> None:
    of = function("const int lane = threadIdx.x % 32; use(s[lane]);")
    assert not next(of.walk("subscript_argument_list")).children[0].role("hardware-lane")


@pytest.mark.parametrize(
    ("body", "bounded"),
    [
        ("v = lane < n ? s[lane] : 0.f;", True),
        ("if (lane < n) v = s[lane];", True),
        ("if (n > 2 && lane < n) { v = s[lane]; }", True),
        ("v = n > 0 && lane < n && s[lane] > 0;", True),
        ("v = s[lane];", False),
        ("if (n < 2) v = s[lane];", False),
        ("if (lane == 0) v = s[lane];", False),
    ],
)
def test_a_test_bounds_an_index(body: str, bounded: bool) -> None:
    of = function(f"const int lane = threadIdx.x % warpSize; {body}")
    index = list(of.walk("subscript_argument_list"))[-1].children[0]
    assert index.role("bounded") is bounded


@pytest.mark.parametrize(
    ("test", "first"),
    [
        ("threadIdx.x < 32", True),
        ("n > 1 && threadIdx.x <= 31", True),
        ("threadIdx.x < 64", False),
        ("threadIdx.x < warpSize", False),
        ("n < 32", False),
    ],
)
def test_a_test_lets_in_the_first_32_threads(test: str, first: bool) -> None:
    of = function(f"if ({test}) {{ use(v); }}")
    assert next(of.walk("call_expression")).role("first-32-threads") is first
