"""The size of an attention head fills no whole vector register.

The last dimension is padded to the lanes of a register. A cache of keys and values with heads of 64 then takes twice its
memory, and half of the matrix unit computes nothing.

## Exceptions
Files that import neither JAX nor torch_xla, sizes that are not constants, tests, benchmarks and tuners are silent.

## References
https://cloud.google.com/tpu/docs/performance-guide
https://github.com/vllm-project/tpu-inference/pull/159
"""

from __future__ import annotations

import re

from portlint.rule import Hit, Hits, Node, Rule, regex

rule = Rule(
    assumes={"shape.width_not_128": "native"},
    message="'{text}' is a head size that is no multiple of 128; {target} has {fact}.",
    remedy={"*": "Choose heads of 128 or 256 and fewer of them, or let two heads share a row where the kernel can."},
)

HEAD = regex(r"^(attention_)?(head_dim|head_size|dim_head|d_head|dim_per_head|head_width)$", re.IGNORECASE)
PACKAGES = ("torch_xla", "jax", "flax")


@rule.python("(keyword_argument name: (identifier) @name value: (integer) @size)", mentions=PACKAGES)
@rule.python("(assignment left: (identifier) @name right: (integer) @size)", mentions=PACKAGES)
def head(name: Node, size: Node) -> Hits:
    if not HEAD.match(name.text) or not any(map(name.source.imports, PACKAGES)) or name.role("host-file"):
        return
    if name.role("measures"):
        return
    if isinstance(size.constant, int) and size.constant > 8 and size.constant % 128:
        yield Hit(size)
