"""A set of lanes is taken to fit 32 bits.

On AMD every lane mask has 64 bits, with 32-lane waves too. The `*_sync` builtins refuse a narrower mask at compile time;
a ballot kept in 32 bits, `__popc` of it, or `1u << lane` compile and lose the upper half of a 64-lane wave.

## Exceptions
Code that another platform never sees, and masks behind a type or a constant that the platform chooses, are silent.
What only the first 32 threads of a block do leaves the upper half of a ballot empty.
In Python only a mask of `0xffffffff` is reported, in kernels of `numba.cuda` and `cupyx.jit`.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_cpp_language_extensions.html#warp-cross-lane-functions
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"lanes.width": 32, "lanes.mask_bits": 32},
    otherwise="corrupts",
    message="'{text}' keeps a set of lanes in 32 bits; {target} has {fact}.",
    remedy={
        "amd": "Keep lane masks and ballots in `unsigned long long`, count them with `__popcll`/`__ffsll`/`__clzll`, write `1ull << lane`, and pass `~0ull` or `__activemask()` to the `*_sync` builtins; in `cupyx.jit` choose the mask by `cupy.cuda.runtime.is_hip`.",
        "*": "Keep lane masks and ballots in a 64-bit integer type, and use the 64-bit forms of the bit functions.",
    },
)

SYNC = (
    "__shfl_sync __shfl_up_sync __shfl_down_sync __shfl_xor_sync __ballot_sync __any_sync __all_sync __match_any_sync"
    " __match_all_sync __reduce_add_sync __reduce_min_sync __reduce_max_sync __reduce_and_sync __reduce_or_sync"
    " __reduce_xor_sync __syncwarp"
)
VOTES = "all any eq ballot match_any match_all".split()
WAYS = ("", "_up", "_down", "_xor")
WIDTH = {"lanes.width": 32}
BALLOTS = "__ballot_sync __ballot __activemask __match_any_sync __match_all_sync"
PYTHON_SYNC = (
    *(f"numba.{home}.{name}_sync" for home in ("cuda", "hip") for name in VOTES),
    *(f"{home}.shfl{way}_sync" for home in ("numba.cuda", "numba.hip", "cupyx.jit") for way in WAYS),
)
BIT_FUNCTIONS = "__popc __ffs __clz __brev __fns"


@rule.cuda_calls(*SYNC.split())
def sync_mask(call: Node) -> Hits:
    if call.source.defines(call.name) or not call.arguments:
        return
    mask = call.arguments[0]
    for origin in [mask] if mask.role("32-bit") else mask.choices:
        if origin.role("32-bit"):
            guards = call.guards if origin == mask else (*call.guards, *origin.guards)
            yield Hit(mask, assumes={"lanes.mask_bits": 32}, otherwise="breaks", guards=guards)


@rule.cuda_calls(*BALLOTS.split())
def narrowed_ballot(call: Node) -> Hits:
    if call.source.defines(call.name) or call.role("first-32-threads"):
        return
    if call.role("kept-in-32-bits"):
        yield Hit(call, assumes=WIDTH)


@rule.cuda_calls(*BIT_FUNCTIONS.split())
def narrow_count(call: Node) -> Hits:
    if call.role("first-32-threads"):
        return  # the upper half of the mask is empty
    if call.arguments and call.arguments[0].role("lane-mask") and not call.source.defines(call.name):
        yield Hit(call, assumes=WIDTH)


@rule.cuda('(binary_expression left: (_) @one operator: "<<" right: (_) @lane) @shift')
def lane_bit(shift: Node, one: Node, lane: Node) -> Hits:
    if one.constant == 1 and one.role("32-bit") and lane.role("lane-id"):
        yield Hit(shift, assumes=WIDTH)


@rule.calls(*PYTHON_SYNC)
def mask_of_32_lanes(call: Node) -> Hits:
    """In Python, where a mask is a number without a type, one of 32 lanes names half of a wavefront."""
    mask, function = call.argument(0), call.function
    if mask is None or mask.constant != 0xFFFFFFFF or call.role("first-32-threads"):
        return
    if function is not None and not function.role("at-most-32-threads"):
        yield Hit(mask, assumes=WIDTH, language="cuda")
