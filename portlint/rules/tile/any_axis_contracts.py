"""A matrix product of an NKI kernel is given its operands as they are written on paper.

The tensor engine sums over the partitions: `nc_matmul` takes K rows of both operands, `[K, M]` and `[K, N]`. An operand
`[M, K]` has its contracted dimension on the free axis; the partitions of the two then differ in number and the compiler
refuses them, and where M happens to equal K the product is that of the transposed matrix.

## Exceptions
Only operands whose rows are both known are judged. `nl.matmul` moves the axes by itself.

## References
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/get-started/about/tiling-overview.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={"tile.contraction_axis": "any axis"},
    message="'{text}' has {rows} partitions, and the other operand has {others}; {target} has {fact}.",
    remedy={
        "*": "Load the stationary operand transposed (`nl.load_transpose2d`, `nisa.nc_transpose`), so that both operands have the contracted dimension on the partitions.",
    },
)


@rule.calls("neuronxcc.nki.isa.nc_matmul", "nki.isa.nc_matmul")
def product(call: Node) -> Hits:
    shift = 1 if call.argument(None, "dst") is None and len(call.arguments) > 2 else 0
    stationary, moving = call.argument(shift, "stationary"), call.argument(1 + shift, "moving")
    first = stationary.tile if stationary is not None else None
    second = moving.tile if moving is not None else None
    if stationary is None or first is None or second is None or first.rows is None or second.rows is None:
        return
    if first.rows != second.rows:
        words = {"rows": first.rows, "others": second.rows}
        yield Hit(stationary, words=words, language="nki")
