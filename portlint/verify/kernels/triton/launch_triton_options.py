"""What launch options Triton has for an architecture: defaults, options of one vendor, and those that it takes back.

How it checks itself: the defaults that the back end states must be those that a kernel is compiled with.

Proof: compile
"""

from _kernel import options, report

asked = options(
    "launch.triton_num_warps",
    "launch.triton_num_stages",
    "launch.triton_num_ctas",
    "launch.triton_options",
    "launch.triton_kpack",
)

from _compile import INSTALL, Compiled, backend_options, compiled, need, target, triton

tl = need("triton.language", INSTALL)

OPTIONS = (
    "maxnreg launch_pdl clc ptx_version ptx_options sched4reg min_shared_mem"
    " waves_per_eu matrix_instr_nonkdim kpack allow_flush_denorm schedule_hint wgp_cu_mode llvm_fn_attrs"
).split()


@triton.jit
def doubles(source, out):
    place = tl.arange(0, 256)
    tl.store(out + place, tl.load(source + place) * 2)


def built(**launch: int) -> Compiled:
    """The kernel, compiled with some launch options."""
    return compiled(doubles, ("*fp32", "*fp32"), {}, gpu, **launch)


gpu = target(asked)
default, plain = backend_options(gpu), built()
measured: object
detail = plain.words
if asked.fact in ("launch.triton_num_warps", "launch.triton_num_stages"):
    measured = getattr(default, asked.fact.removeprefix("launch.triton_"))
elif asked.fact == "launch.triton_num_ctas":
    pair = built(num_ctas=2)
    measured, detail = "native" if pair.accepted else "none", pair.words
elif asked.fact == "launch.triton_options":
    measured = [one for one in ([asked.item] if asked.item in OPTIONS else OPTIONS) if hasattr(default, one)]
else:
    keeps = hasattr(default, "kpack") and backend_options(gpu, kpack=2).kpack == 2 and built(kpack=2).accepted
    measured = "native" if keeps else "none"
right = plain.accepted and plain.metadata["num_warps"] == default.num_warps
report(asked.fact, measured, checked=right, detail=detail, triton=triton.__version__)
