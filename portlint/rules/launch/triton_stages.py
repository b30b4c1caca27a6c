"""A Triton tile configuration is taken to fit the shared memory of the machine it was tuned on.

The software pipeline keeps the tiles of both operands in shared memory, for `num_stages - 1` stages at the least, and for
all of them where the copies are asynchronous and the matrix unit reads shared memory; with them lie what was loaded before
the loop and, where warps exchange it, what one product computes for the next. A configuration for 228 KiB of Hopper does not
start with 64 KiB of LDS: OutOfResources. In an autotune list Triton drops it and goes on with the rest, so the tuning is
lost but the kernel runs; where nothing in the list fits, it does not.

## Exceptions
Only operands that reach `tl.dot` in a loop as they were loaded are counted: what is scaled or converted in between passes
through registers. An element has the size that the tensors of the launches have, else the smallest that the file names:
one byte, or two. Loops that Triton does not pipeline (`while`, `tl.static_range`) are silent, and so are lists that the
file prunes by a function of its own.

## References
https://triton-lang.org/main/python-api/generated/triton.Config.html
"""

from __future__ import annotations

from collections.abc import Mapping

from portlint.rule import (
    PIPELINES,
    Configuration,
    Guard,
    Hit,
    Hits,
    Load,
    Node,
    Product,
    Rule,
    Stage,
    Value,
    answers,
    at_most,
    regex,
)

rule = Rule(
    assumes={},
    message="'{text}'{which} keeps at least {assumed} bytes in shared memory, at {element} an element; {target} has {fact}.",
    remedy={
        "amd": "Add configurations with fewer stages (`num_stages=2`) and smaller BLOCK_K; choose the list by `triton.runtime.driver.active.get_current_target()`.",
        "*": "Add configurations with fewer stages or smaller tiles, and choose the list by the device's shared memory, `max_shared_mem` of `triton.runtime.driver.active.utils.get_device_properties(index)`.",
    },
)

EDGES = {
    "m": ("BLOCK_M", "BLOCK_SIZE_M", "BM", "BLOCK_SIZE_M1"),
    "n": ("BLOCK_N", "BLOCK_SIZE_N", "BN", "BLOCK_SIZE_N1"),
    "k": ("BLOCK_K", "BLOCK_SIZE_K", "BK", "BLOCK_SIZE_K1"),
}
NARROW = regex(r"(tl|torch|triton\.language)\.(u?int8|float8\w*)")
"""formats of one byte; a file that names none of them is taken to multiply formats of two"""
PLACE_OF_NARROW = regex(r"(^|[^a-z])(fp|f|float|int|i|w|a)8([^0-9]|$)")
"""a file or folder for such formats: `fp8_gemm/`, `matmul_w8a8.py`"""


@rule.calls("triton.Config")
def configuration(call: Node) -> Hits:
    if any(one.listed.is_pruned for one in call.tunings) or (not call.tunings and _is_pruned_somewhere(call)):
        return
    # Triton drops what does not fit, so long as something is left
    verdict = "breaks" if _is_only_one(call) else "degrades"
    largest: dict[tuple[Guard, ...], tuple[int, Configuration, Stage]] = {}
    for one in call.configurations:
        stage = _stage(call, one.values)
        if one.is_certain and stage is not None:
            size = _stages(one.values) * stage.elements
            if size > largest.get(one.guards, (0,))[0]:
                largest[one.guards] = size, one, stage
    for _, one, stage in largest.values():
        which = f" with {_written(one.values)}" if len(call.configurations) > 1 else ""
        yield from _hits(call, one, stage, which, verdict)


@rule.calls("triton.autotune")
def nothing_fits(call: Node) -> Hits:
    """A list of several configurations of which even the smallest is too large."""
    for tuned in call.tunings:
        listed = tuned.listed
        every = [(one, _stage(config, one.values)) for config in listed.configs for one in config.configurations]
        sizes = [(_stages(one.values) * stage.elements, one, stage) for one, stage in every if stage and one.is_certain]
        if listed.is_complete and not listed.is_pruned and 1 < len(every) == len(sizes):
            _, one, stage = min(sizes, key=lambda entry: entry[0])
            which = f", in the smallest of its {len(every)} configurations,"
            yield from _hits(call["function"], one, stage, which, "breaks")


@rule.python("(call function: (subscript)) @call", mentions=("num_stages",))
def launch(call: Node) -> Hits:
    stages, kernel = call.argument(None, "num_stages"), call.launched
    if stages is None or kernel is None:
        return
    for one in call.configurations:
        yield from _hits(stages, one, kernel.staged(one.values), "", "breaks")


def _hits(node: Node, one: Configuration, stage: Stage, which: str, verdict: str) -> Hits:
    """What the configuration takes, by the way in which a back end brings operands to its matrix units."""
    names_narrow = any(NARROW.fullmatch(word.text) for word in node.source.root.walk("attribute"))
    is_narrow = names_narrow or PLACE_OF_NARROW.search(node.source.place.lower()) is not None
    item = 1 if is_narrow else 2
    shown = stage.item or item
    for pipeline in PIPELINES:
        kept = stage.bytes_kept(pipeline, one.values, item)
        yield Hit(
            node,
            assumes={"memory.shared_bytes": at_most(kept)},
            words={"element": f"{shown} byte{'s' * (shown > 1)}", "which": which},
            guards=(*one.guards, answers("triton.pipeline", pipeline)),
            otherwise=verdict,
            language="triton",
        )


def _is_only_one(config: Node) -> bool:
    """Whether a call stands for the one configuration of every list that it is in."""
    if config.tunings:
        return len(config.configurations) == 1 and all(len(one.listed.configs) == 1 for one in config.tunings)
    return config.role("only-element") and len(config.configurations) == 1


def _stages(values: Mapping[str, object]) -> int:
    stages = values.get("num_stages")
    return stages if isinstance(stages, int) else 1


def _written(values: Mapping[str, object]) -> str:
    """The numbers of a configuration, as they are written."""
    return ", ".join(f"{name}={value}" for name, value in values.items() if name not in ("num_warps", "num_ctas"))


def _is_pruned_somewhere(config: Node) -> bool:
    """Whether the file drops what does not fit by itself."""
    return config.source.mentions("prune_configs_by") and any(
        keyword["name"].text == "prune_configs_by" for keyword in config.source.root.walk("keyword_argument")
    )


def _stage(config: Node, values: Mapping[str, Value]) -> Stage | None:
    """What a stage of the kernel that a configuration is for keeps; None where that is not known.

    A list in a file without products is for the kernels of other files: these are taken to keep both operands.
    """
    if config.tunings:
        stages = [one.kernel.staged(values) for one in config.tunings]
        known = [stage for stage in stages if stage.elements]
        return max(known, key=lambda stage: stage.elements) if known else None
    if config.source.mentions("tl.dot"):
        return None
    m, n, k = (next((values[name] for name in names if name in values), None) for names in EDGES.values())
    if isinstance(m, int) and isinstance(n, int) and isinstance(k, int):
        return Stage((Product(0, 0, Load(m, k, is_masked=True), Load(k, n, is_masked=True)),))
    return None
