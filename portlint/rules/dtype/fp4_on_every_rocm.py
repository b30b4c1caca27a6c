"""Any ROCm device is taken to multiply FP4.

Matrix instructions for FP4 came with gfx950. A branch that asks for ROCm alone sends older CDNA parts and RDNA to
kernels that stop with an error there.

## Exceptions
Silent where the gfx target is asked for as well, and for branches that unpack FP4 and multiply in a wider type.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/reference/low_fp_types.html
"""

from __future__ import annotations

import re

from portlint.rule import Hit, Hits, Node, Rule, on_platform, regex

rule = Rule(
    assumes={"dtype.fp4": "native"},
    message="'{text}' is true of {target}, which has {fact}, and leads to '{feature}'.",
    remedy={
        "amd": 'Ask for the gfx target (`"gfx950" in torch.cuda.get_device_properties(0).gcnArchName`), and unpack the weights to bfloat16 elsewhere.',
        "*": "Ask for the device before choosing FP4, and unpack the weights to a wider type elsewhere.",
    },
)

PRODUCT = regex(r"(gemm|matmul|mm|linear|moe|asm)\w*(fp4|a4w4)|(fp4|a4w4)\w*(gemm|matmul|mm|linear|moe)", re.IGNORECASE)
OTHER_WAY = regex(r"emulat|dequant|unpack|fake|simul|reference|ref_|_ref|supports?_|has_|is_", re.IGNORECASE)
SPELLINGS = ("fp4", "FP4", "Fp4", "a4w4", "A4W4")


@rule.python("((if_statement condition: (_) @test consequence: (_) @body))", mentions=SPELLINGS)
@rule.python("((elif_clause condition: (_) @test consequence: (_) @body))", mentions=SPELLINGS)
def branch(test: Node, body: Node) -> Hits:
    if not test.asks("torch.version.hip"):
        return
    for call in body.walk("call"):
        function = call["function"].text.rpartition(".")[2]
        if PRODUCT.search(function) and not OTHER_WAY.search(function):
            yield Hit(test, words={"feature": function}, guards=(*call.guards, on_platform("rocm")))
            return
