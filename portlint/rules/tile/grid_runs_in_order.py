"""The steps of a Pallas grid are taken to run one after another.

On TPU they do, so a kernel can add to an output block that several steps get. On a GPU every step is a block of threads
of its own, all run at once, and they read and write the same memory without any order: sums come out wrong, and
differently each time.

## Exceptions
Kernels that name TPU's own memories or parameters are silent, since no GPU runs them; so are grid axes of one step.

## References
https://docs.jax.dev/en/latest/pallas/quickstart.html
https://docs.jax.dev/en/latest/pallas/tpu/details.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"tile.sequential_grid": "native"},
    message="'{text}' adds to a block that other steps of the grid add to as well; {target} has {fact}.",
    remedy={
        "*": "Loop over the reduced axis inside the kernel (`jax.lax.fori_loop`) and write the block once, or write one block for each step and sum them afterwards.",
    },
)


@rule.calls("jax.experimental.pallas.pallas_call", "functools.partial")
def accumulation(call: Node) -> Hits:
    for launch in call.launches:
        chooses_order = "mosaic_gpu" in launch.modules and "sequential" in launch.call.text
        if launch.call == call and "tpu" not in launch.modules and not chooses_order:
            for statement in call.revisits:
                guards = (*call.guards, *statement.guards)
                yield Hit(statement["left"], guards=guards, otherwise="corrupts", language="pallas")
