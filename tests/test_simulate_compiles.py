"""The lane interpreter: what does not compile, whatever its values would be."""

from __future__ import annotations

import pytest

from portlint.source import Source
from portlint.verify.simulate import Outcome, prove

VOTES = """
constexpr unsigned kOutside = 0xffffffff;
enum { FIRST = 1 };
using Lanes = unsigned long long;
template <typename Mask, int kSome> struct Votes {
    Mask held;
    unsigned own;
    QUALIFIER bool any(bool vote, unsigned given, Lanes wide, Mask free) const {
        const auto copied = given;
        auto every = ~0ull;
        using Lanes = short;
        Lanes narrow = 1;
        for (long long copied = 1; vote; ++copied) return false;
        return threadIdx.x < 32 && __any_sync(MASK, vote);
    }
};
"""
LINE = 1 + VOTES[: VOTES.index("__any_sync")].count("\n")


def said(mask: str, qualifier: str = "__device__", before: str = "", **options: object) -> Outcome:
    text = VOTES.replace("MASK", mask).replace("QUALIFIER", qualifier) + before
    options = {"breaks": True, **options}
    return prove(Source("votes.cuh", text.encode(), "cuda"), LINE, seconds=60.0, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mask", "of"),
    [
        ("0xffffffff", "unsigned"), ("-1", "int"), ("kOutside", "unsigned"), ("FIRST", "int"), ("kSome", "int"),
        ("own", "unsigned"), ("given", "unsigned"), ("copied", "unsigned"), ("narrow", "short"),
        ("given & 1u", "unsigned"), ("(unsigned)wide", "unsigned"),
    ],
)  # fmt: skip
def test_hip_compiles_no_mask_of_32_bits(mask: str, of: str) -> None:
    outcome = said(mask)
    assert outcome.verdict == "proven", outcome
    assert f"is of type '{of}'" in outcome.reason
    assert outcome.counterexample is not None
    assert outcome.counterexample.line == LINE


@pytest.mark.parametrize(
    "mask", ["0xffffffffull", "wide", "every", "(unsigned long long)given", "__activemask()", "held", "free", "other"]
)
def test_a_mask_of_64_bits_or_of_a_type_that_is_not_known_proves_nothing(mask: str) -> None:
    assert said(mask).verdict == "undecided"


def test_the_type_of_a_mask_matters_only_where_the_toolkit_asserts_it() -> None:
    assert said("own", "inline").verdict == "undecided"
    assert said("own", "TREE_HOST_DEVICE").verdict == "proven"
    assert said("own", platform="cuda", width=32).verdict == "undecided"
    assert said("own", breaks=False).verdict == "undecided"
    assert said("own", before="__device__ bool __any_sync(unsigned mask, bool vote);").verdict == "proven"
    own = "__device__ bool __any_sync(unsigned mask, bool vote) { return vote; }"
    assert said("own", before=own).verdict == "undecided"


def test_the_type_is_asserted_where_the_values_are_right_as_well() -> None:
    text = """
    __global__ void half(const int* in, int* out) {
        if (threadIdx.x < 32) out[threadIdx.x] = __shfl_xor_sync(0xffffffff, in[threadIdx.x], 1);
    }"""
    source = Source("half.cu", text.encode(), "cuda")
    assert prove(source, 3, seconds=60.0).verdict == "refuted"
    outcome = prove(source, 3, breaks=True, seconds=60.0)
    assert outcome.verdict == "proven"
    assert "64 bits" in outcome.reason


PLACES = """
#define WAVES (1024 / warpSize)
#define OTHER 32
template <int N> __device__ int twice(int v) { return N * v; }
struct Table { static constexpr int size(int warpSize) { return 32; } };
PLACE
"""


@pytest.mark.parametrize(
    ("place", "verdict"),
    [
        ("__device__ void f() { __shared__ float s[warpSize]; s[0] = 1; }", "proven"),
        ("__device__ void f() { __shared__ float s[4][WAVES + 1]; s[0][0] = 1; }", "proven"),
        ("constexpr int kWaves = 1024 / warpSize;", "proven"),
        ("static_assert(warpSize == 64, \"\");", "proven"),
        ("enum { kRows = WAVES };", "proven"),
        ("__device__ int f() { return twice<warpSize>(1); }", "proven"),
        ("__device__ int f() { return twice<sizeof(warpSize)>(1); }", "undecided"),
        ("__device__ int f() { const int rows = WAVES; return rows; }", "undecided"),
        ("template <int warpSize> __device__ void f() { float s[warpSize]; s[0] = 1; }", "undecided"),
        ("__device__ void f() { constexpr int warpSize = 32; float s[warpSize]; s[0] = 1; }", "undecided"),
        ("__device__ void f() { float s[OTHER]; s[0] = 1; }", "undecided"),
        ("__device__ void Outside::f() { float s[warpSize]; s[0] = 1; }", "undecided"),
    ],
)  # fmt: skip
def test_the_width_of_a_wave_is_no_constant(place: str, verdict: str) -> None:
    text = PLACES.replace("PLACE", place)
    for platform in ("rocm", "cuda"):
        source = Source("places.cu", text.encode(), "cuda")
        outcome = prove(source, 6, breaks=True, platform=platform, seconds=60.0)
        assert outcome.verdict == verdict, outcome


def test_a_macro_is_refused_where_it_is_expanded() -> None:
    text = PLACES.replace("PLACE", "__device__ void f() { float s[WAVES]; s[0] = 1; }")
    for line, verdict in ((2, "proven"), (3, "undecided")):
        assert prove(Source("places.cu", text.encode(), "cuda"), line, breaks=True, seconds=60.0).verdict == verdict
    unused = PLACES.replace("PLACE", "__device__ int f() { return WAVES; }")
    assert prove(Source("places.cu", unused.encode(), "cuda"), 2, breaks=True, seconds=60.0).verdict == "undecided"
