"""Whether a pipelined loop in Triton copies to shared memory asynchronously without being asked to.

How it checks itself: a loop of one stage, in which nothing can be ahead of its use, must have no such copies.

Proof: compile
"""

import re

from _kernel import options, report

asked = options("launch.triton_async_copy")

from _compile import INSTALL, Compiled, backend_options, compiled, need, target, triton

tl = need("triton.language", INSTALL)

COPY = re.compile(r"cp\.async|(?:global|buffer)_load\w*lds\w*|buffer_load\w*.*\blds\b")


@triton.jit
def sums(left, right, out, rounds, SIDE: tl.constexpr):
    row, column, inner = tl.arange(0, SIDE), tl.arange(0, SIDE), tl.arange(0, SIDE)
    a = left + row[:, None] * SIDE + inner[None, :]
    b = right + inner[:, None] * SIDE + column[None, :]
    total = tl.zeros((SIDE, SIDE), dtype=tl.float32)
    for _ in range(rounds):
        total += tl.dot(tl.load(a), tl.load(b))
        a += SIDE * SIDE
        b += SIDE * SIDE
    tl.store(out + row[:, None] * SIDE + column[None, :], total)


def built(stages: int) -> Compiled:
    """The loop, compiled for that many stages."""
    return compiled(sums, ("*fp16", "*fp16", "*fp32", "i32"), {"SIDE": 64}, gpu, num_stages=stages)


gpu = target(asked)
piped, single = built(max(2, backend_options(gpu).num_stages)), built(1)
found = COPY.search(piped.assembly)
report(
    asked.fact,
    "native" if found else "none",
    checked=piped.accepted and not COPY.search(single.assembly),
    detail=piped.words or (found[0] if found else ""),
    triton=triton.__version__,
)
