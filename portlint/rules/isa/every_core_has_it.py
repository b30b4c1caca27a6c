"""An NKI kernel uses an instruction that only later NeuronCores have.

NeuronCore-v4 (Trainium3) has matrix products in MX formats, `activate2`, `exponential` and OCP FP8 as operands;
`range_select`, `nonzero_with_count`, the exchange between the cores of a pair and FP8 at double rate came with NeuronCore-v3
(Trainium2). The compiler refuses them for an earlier core, the simulator may not.

## Exceptions
Code behind a test of the core's version, `nisa.get_nc_version()`, is silent.

## References
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/api/nki.isa.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={},
    message="'{text}' is for later NeuronCores; {target} has {fact}.",
    remedy={
        "*": "Choose by `nisa.get_nc_version()`, and keep a path in bfloat16, or with the instructions of all cores.",
    },
)

HOMES = ("neuronxcc.nki", "nki")
FACTS = {
    "isa.nki.core_v3": "isa.range_select isa.nonzero_with_count isa.core_barrier isa.sendrecv isa.rand_set_state "
    "isa.rand_get_state",
    "isa.nki.core_v4": "isa.activate2 isa.exponential isa.rand2 language.abs_max language.abs_min",
    "isa.nki.mx": "isa.nc_matmul_mx isa.quantize_mx language.float8_e5m2_x4 language.float8_e4m3fn_x4 "
    "language.float4_e2m1fn_x4",
}
BY_NAME = {f"{home}.{name}": fact for fact, listed in FACTS.items() for name in listed.split() for home in HOMES}


@rule.references(*BY_NAME)
def instruction(name: Node) -> Hits:
    if not _asks_for_version(name):
        yield Hit(name, {BY_NAME[name.name]: "native"}, language="nki")


@rule.calls(*(f"{home}.{name}" for home in HOMES for name in ("isa.nc_matmul", "language.matmul")))
def product(call: Node) -> Hits:
    if _asks_for_version(call):
        return
    mode = call.argument(None, "perf_mode")
    if mode is not None and "double_row" in mode.text:
        yield Hit(mode, {"isa.nki.double_row": "native"}, language="nki")
    for operand in (*call.arguments, call.argument(None, "stationary"), call.argument(None, "moving")):
        tile = operand.tile if operand is not None else None
        if operand is not None and tile is not None and tile.dtype == "float8_e4m3fn":
            yield Hit(operand, {"dtype.fp8_e4m3fn": "native"}, language="nki")


def _asks_for_version(node: Node) -> bool:
    return any("nc_version" in guard.text for guard in node.guards)
