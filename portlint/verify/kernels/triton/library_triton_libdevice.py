"""Which math library stands behind Triton's libdevice: what the back end links, and whether a function comes out of it.

How it checks itself: a kernel that calls a function of libdevice must compile, and no call of it may be left over.

Proof: compile
"""

from pathlib import Path

from _kernel import options, report

asked = options("library.triton_libdevice")

from _compile import INSTALL, backend_options, compiled, need, target, triton

tl = need("triton.language", INSTALL)
libdevice = need("triton.language.extra.libdevice", INSTALL)


@triton.jit
def arcs(source, out):
    place = tl.arange(0, 256)
    tl.store(out + place, libdevice.acos(tl.load(source + place)))


gpu = target(asked)
made = compiled(arcs, ("*fp32", "*fp32"), {}, gpu)
files = sorted((Path(path).name for _, path in backend_options(gpu).extern_libs), reverse=True)
left = [name for name in ("__nv_acos", "__ocml_acos") if name in made.assembly]
report(
    asked.fact,
    " and ".join(files),
    checked=made.accepted and not left,
    detail=made.words or ", ".join(left),
    triton=triton.__version__,
)
