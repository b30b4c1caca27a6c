"""Compile Triton kernels for a target, with no device: one JSON request a line, one answer a line.

A request is {"kernel", "types", "values", "options", "backend", "arch", "is_whole"}; an answer is {"shared": bytes},
{"error": text} where the compiler refuses, or {"broken": text} where a pass of its own fails. Without `is_whole` the
compiler stops once it has laid out shared memory, which is a hundred times faster than to generate code. Run as a
program, so that what the compiler prints or breaks stays out of the tests.
"""

from __future__ import annotations

import importlib.util
import json
import sys

import triton
from triton import knobs
from triton._C.libtriton import amd, ir, nvidia, passes
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptx_version_from_options
from triton.compiler import ASTSource

_LAST = "llir"
"""the stage in which shared memory is laid out; of it and of those after it nothing else is needed"""


def stop_at_allocation(backend=None, stages=None, options=None, language=None, capability=None):
    """The hook by which Triton lets a caller change the stages of a compilation; called bare, it names itself."""
    if backend is None:
        return stop_at_allocation.__name__, stop_at_allocation.__name__

    def allocate(module, metadata):
        manager = ir.pass_manager(module.context)
        if backend.binary_ext == "hsaco":
            amd.passes.ttgpuir.add_update_async_wait_count(manager, options.arch)
            amd.passes.ttgpuir.add_warp_pipeline_conversion(manager, options.arch)
        else:
            passes.ttgpuir.add_combine_tensor_select_and_if(manager)
            passes.ttgpuir.add_allocate_warp_groups(manager, False)
        passes.convert.add_scf_to_cf(manager)
        passes.gluon.add_inliner(manager)
        if backend.binary_ext == "hsaco":
            passes.convert.add_index_to_llvmir(manager)
            amd.passes.ttgpuir.add_allocate_shared_memory(manager, options.arch)
        else:
            version = get_ptx_version_from_options(options, backend.target.arch)
            nvidia.passes.ttgpuir.add_allocate_shared_memory_nv(manager, capability, version)
        manager.run(module, "allocation")
        metadata["shared"] = module.get_int_attr("ttg.shared")
        metadata["name"] = "kernel"
        return ""

    names = list(stages)
    for name in names[names.index(_LAST) :]:
        stages[name] = lambda module, metadata, name=name: b"" if name == backend.binary_ext else ""
    stages[_LAST] = allocate
    return None


def compiled(request: dict, module) -> dict:
    kernel = getattr(module, request["kernel"])
    values, types = request["values"], request["types"]
    signature = {name: "constexpr" if name in values else types[name] for name in kernel.arg_names}
    aligned = {(index,): [["tt.divisibility", 16]] for index, name in enumerate(kernel.arg_names) if name not in values}
    width = 64 if request["backend"] == "hip" and request["arch"].startswith("gfx9") else 32
    target = GPUTarget(request["backend"], request["arch"], width)
    source = ASTSource(fn=kernel, signature=signature, constexprs=values, attrs=aligned)
    knobs.runtime.add_stages_inspection_hook = None if request["is_whole"] else stop_at_allocation
    try:
        return {"shared": triton.compile(source, target=target, options=request["options"]).metadata.shared}
    except Exception as error:  # the compiler raises what it likes
        said = f"{type(error).__name__}: {error.__cause__ or error}"[-400:]
        return {"broken" if "PassManager::run failed" in said else "error": said}


def main() -> None:
    spec = importlib.util.spec_from_file_location("kernels", sys.argv[1])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(compiled(json.loads(line), module)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
