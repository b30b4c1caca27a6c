"""How Triton names an architecture: by a number or not, and the suffix that it compiles with.

How it checks itself: the name is read from the GPU that Triton is given, and must be in the assembly that it makes.

Proof: compile
"""

import re

from _kernel import options, report

asked = options("launch.triton_arch_number", "build.triton_arch_suffix")

from _compile import INSTALL, compiled, need, target, triton

tl = need("triton.language", INSTALL)
NAMED = re.compile(r"(?:\.target sm_|\.amdgcn_target\s+\S*gfx)(\d+)(\w*)")


@triton.jit
def doubles(source, out):
    place = tl.arange(0, 256)
    tl.store(out + place, tl.load(source + place) * 2)


gpu = target(asked)
made = compiled(doubles, ("*fp32", "*fp32"), {}, gpu)
named = NAMED.search(made.assembly)
is_number = isinstance(gpu.arch, int)
measured = ("native" if is_number else "none") if asked.fact == "launch.triton_arch_number" else named and named[2]
report(
    asked.fact,
    measured or "",
    checked=named is not None and named[1] + ("" if is_number else named[2]) in str(gpu.arch),
    detail=made.words or (named[0] if named else ""),
    triton=triton.__version__,
)
