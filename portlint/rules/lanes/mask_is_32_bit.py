"""A set of lanes is taken to fit 32 bits.

On AMD every lane mask has 64 bits, with 32-lane waves too. The `*_sync` builtins refuse a narrower mask at compile time;
a ballot kept in 32 bits, `__popc` of it, or `1u << lane` compile and lose the upper half of a 64-lane wave.

## Exceptions
Code that another platform never sees, and masks behind a type or a constant that the platform chooses, are silent.
What only the first 32 threads of a block do leaves the upper half of a ballot empty.
In Python only a mask of `0xffffffff` is reported, in kernels of `numba.cuda` and `cupyx.jit`.

## Fix safety
Safe: the counts that take 64 bits, `1ull << lane`, 64 bits for a variable that is given a ballot, and suffixes of constants,
each where no other type follows from it: on NVIDIA's devices the upper half is empty. Unsafe: `~0ull` for the mask of all
lanes, of which CUDA's compiler says that it cuts it to 32 bits; where 32 threads run, it is `0xffffffffull`, and safe. `__clz`,
parameters and macros are left, and so is the mask of a ballot that stays in 32 bits: the compiler stops there.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_cpp_language_extensions.html#warp-cross-lane-functions
"""

from __future__ import annotations

from portlint.rule import Edit, Hit, Hits, Node, Rule, replace

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
WIDE_COUNTS = frozenset(("__popc", "__ffs"))
NARROW = frozenset(("unsigned", "unsigned int", "uint32_t", "std::uint32_t", "uint"))
BIT_FUNCTIONS = "__popc __ffs __clz __brev __fns"


@rule.cuda_calls(*SYNC.split())
def sync_mask(call: Node) -> Hits:
    if call.source.defines(call.name) or not call.arguments:
        return
    mask = call.arguments[0]
    for origin in [mask] if mask.role("32-bit") else mask.choices:
        if origin.role("32-bit"):
            guards = call.guards if origin == mask else (*call.guards, *origin.guards)
            assumes = {"lanes.mask_bits": 32}
            is_of_32_threads = _is_of_32_threads(call)
            can_run = origin == mask and (is_of_32_threads or not _is_cut_after_all(call))
            edits = _in_64_bits(mask, is_of_32_threads=is_of_32_threads) if can_run else ()
            safe = is_of_32_threads or not _names_all(mask)
            yield Hit(mask, assumes, guards=guards, otherwise="breaks", edits=edits, safe=safe)


@rule.cuda_calls(*BALLOTS.split())
def narrowed_ballot(call: Node) -> Hits:
    if call.source.defines(call.name) or call.role("first-32-threads"):
        return
    if call.role("kept-in-32-bits"):
        yield Hit(call, assumes=WIDTH, edits=_declared_wide(call), safe=True)


@rule.cuda_calls(*BIT_FUNCTIONS.split())
def narrow_count(call: Node) -> Hits:
    if call.role("first-32-threads"):
        return  # the upper half of the mask is empty
    if call.arguments and call.arguments[0].role("lane-mask") and not call.source.defines(call.name):
        counts = call["function"].text in WIDE_COUNTS and call.arguments[0].role("unsigned") and _is_whole(call)
        edits = (replace(call["function"], f"{call.name}ll"),) if counts else ()
        yield Hit(call, assumes=WIDTH, edits=edits, safe=True)


@rule.cuda('(binary_expression left: (_) @one operator: "<<" right: (_) @lane) @shift')
def lane_bit(shift: Node, one: Node, lane: Node) -> Hits:
    if one.constant == 1 and one.role("32-bit") and lane.role("lane-id"):
        fits = one.type == "number_literal" and shift.role("may-be-64-bit") and not _meets_32_bits(shift)
        edits = (replace(one, "1ull"),) if fits else ()
        yield Hit(shift, assumes=WIDTH, edits=edits, safe=True)


@rule.calls(*PYTHON_SYNC)
def mask_of_32_lanes(call: Node) -> Hits:
    """In Python, where a mask is a number without a type, one of 32 lanes names half of a wavefront."""
    mask, function = call.argument(0), call.function
    if mask is None or mask.constant != 0xFFFFFFFF or call.role("first-32-threads"):
        return
    if function is not None and not function.role("at-most-32-threads"):
        yield Hit(mask, assumes=WIDTH, language="cuda")


def _names_all(mask: Node) -> bool:
    """Whether a mask is written as that of all lanes: `0xffffffff`, `~0u`, `-1`."""
    value = mask.constant
    return isinstance(value, int) and value & 0xFFFFFFFF == 0xFFFFFFFF


def _is_cut_after_all(call: Node) -> bool:
    """Whether the lanes that a call gives stay in 32 bits: with a mask that compiles, it would lose half of them."""
    return call.name in BALLOTS.split() and call.role("kept-in-32-bits") and not _declared_wide(call)


def _is_of_32_threads(call: Node) -> bool:
    """Whether only the first 32 threads run a call: the mask of all lanes would name some that do not."""
    return call.role("first-32-threads") or (call.function is not None and call.function.role("at-most-32-threads"))


def _in_64_bits(mask: Node, *, is_of_32_threads: bool) -> tuple[Edit, ...]:
    """A mask that is written where it is passed, in 64 bits."""
    if _names_all(mask) and mask.type != "identifier":
        return (replace(mask, "0xffffffffull" if is_of_32_threads else "~0ull"),)
    return (replace(mask, f"{mask.text.rstrip('uU')}ull"),) if mask.type == "number_literal" else ()


def _declared_wide(ballot: Node) -> tuple[Edit, ...]:
    """64 bits for the variable that a ballot is kept in, where it is the only one of its declaration."""
    declarator = ballot.parent
    declaration = declarator.parent if declarator is not None and declarator.type == "init_declarator" else None
    if declarator is None or declaration is None or declaration.type != "declaration":
        return ()
    kind, name = declaration["type"], declarator["declarator"]
    alone = sum(one.type in ("init_declarator", "identifier") for one in declaration.children) == 1
    if kind.text not in NARROW or name.type != "identifier" or not alone or not name.role("may-be-declared-64-bit"):
        return ()
    return (replace(kind, "unsigned long long"),)


def _is_whole(count: Node) -> bool:
    """Whether nothing in the argument of a count has lost the upper half already: that is mended first."""
    masks = count.walk("identifier")
    shifts = (one for one in count.walk("binary_expression") if one["operator"].text == "<<")
    return not any(one.role("lane-mask") and one.role("32-bit") for one in masks) and not any(
        one["left"].role("32-bit") for one in shifts
    )


def _meets_32_bits(shift: Node) -> bool:
    """Whether the bit of a lane is looked up in what may have lost the upper half: that is mended first."""
    around = [one for one in shift.ancestors("binary_expression") if one["operator"].text == "&"]
    sides = [side for one in around for side in (one["left"], one["right"]) if not _holds(side, shift)]
    return any(side.role("32-bit") or not side.role("lane-mask") for side in sides)


def _holds(side: Node, inner: Node) -> bool:
    return side.start <= inner.start and inner.end <= side.end
