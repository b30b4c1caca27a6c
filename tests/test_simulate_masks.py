"""The lane interpreter: masks whose type decides what compiles."""

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
