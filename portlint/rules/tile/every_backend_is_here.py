"""A Pallas kernel uses what one back end has on every machine.

Modules below `jax.experimental.pallas` are for one back end each: `tpu` for TPUs, `mosaic_gpu` for NVIDIA GPUs from Hopper
on, `triton` for NVIDIA's and AMD's. A launch with memories, grids or parameters of one is not lowered by the others;
`wgmma` is for Hopper's matrix units and `tcgen05_mma` for Blackwell's.
They import everywhere, so nothing is noticed before the kernel runs.

## Exceptions
Launches behind a test of the back end are silent, and so are files whose path names the machine that they are for.

## References
https://docs.jax.dev/en/latest/pallas/index.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, on_platform, regex

rule = Rule(
    assumes={},
    message="'{text}' makes this Pallas kernel one for a single back end; {target} has {fact}.",
    remedy={
        "*": "Choose the kernel by `jax.default_backend()` or `jax.lax.platform_dependent`, and keep a version in plain JAX for every other machine.",
    },
)

PACKAGE = "jax.experimental.pallas"
FACTS = {
    f"{PACKAGE}.{module}.": f"tile.pallas_{fact}"
    for module, fact in {"tpu": "tpu", "triton": "triton", "gpu": "triton", "mosaic_gpu": "mosaic_gpu"}.items()
}
GENERATIONS = {"wgmma": "isa.wgmma", "tcgen05_mma": "isa.tcgen05"}
"""the matrix units of Hopper and of Blackwell, by the functions for them"""
MACHINES = "tpu|gpu|mgpu|cuda|rocm|triton|mosaic|hopper|blackwell"
NAMED_FOR_ONE = regex(rf"(^|[/\\])({MACHINES})[/\\]|(^|[/\\_])({MACHINES})(_[^/\\]*)?\.\w+$")
"""a folder or a file that is called by a machine"""


@rule.calls(f"{PACKAGE}.pallas_call", f"{PACKAGE}.mosaic_gpu.kernel", "functools.partial")
def launch(call: Node) -> Hits:
    if NAMED_FOR_ONE.search(call.source.place):
        return
    if call.name == f"{PACKAGE}.mosaic_gpu.kernel":
        yield Hit(call["function"], {FACTS[f"{PACKAGE}.mosaic_gpu."]: "native"}, language="pallas")
    if any(one.call == call for one in call.launches):
        for module, used in _own_to_one(call).items():
            yield Hit(used, {FACTS[module]: "native"}, language="pallas")


@rule.calls(*(f"{PACKAGE}.mosaic_gpu.{name}" for name in GENERATIONS))
def matrix_unit(call: Node) -> Hits:
    if not NAMED_FOR_ONE.search(call.source.place):
        fact = GENERATIONS[call.name.rpartition(".")[2]]
        guards = (*call.guards, on_platform("nvidia"))
        yield Hit(call["function"], {fact: "native"}, guards=guards, language="pallas")


def _own_to_one(call: Node) -> dict[str, Node]:
    """The first thing in the arguments of a launch that is of one back end, for each of these."""
    found: dict[str, Node] = {}
    for given in call["arguments"].children:
        value = given.get("value") or given
        for one in (value.assigned or value).walk("attribute"):
            module = next((module for module in FACTS if one.name.startswith(module)), None)
            if module is not None and module not in found:
                found[module] = one
    return found
