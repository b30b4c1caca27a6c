"""Code that is loaded or compiled at run time is taken to be PTX or a cubin.

HIP's driver functions have CUDA's names and take other files. `hipModuleLoad` wants a code object for the very part and
answers with an error to PTX and cubins; the linker takes LLVM bitcode alone; hipRTC hands a CUDA architecture to a compiler
that does not know it; and HIPIFY turns `nvrtcGetCUBIN` into `hiprtcGetBitcode`, which fails unless the program was compiled
with `-fgpu-rdc`.

## Exceptions
What HIPIFY translates and hipRTC does as well is silent: `nvrtcGetPTX` and `cuModuleLoadData` of what it gives. So are files
that know hipRTC or `--offload-arch`, code that another platform never sees, and names that the tree defines itself.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_porting_driver_api.html
https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_rtc.html
"""

from __future__ import annotations

from collections.abc import Iterator

from portlint.rule import Guard, Hit, Hits, Node, Rule, has, regex

rule = Rule(
    assumes={},
    message="'{text}' means {what}; {target} loads {fact}.",
    remedy={
        "amd": "Build the kernels for each gfx part (`hipcc --genco --offload-arch=gfx942`) and load that file, or compile the source with hipRTC: `--offload-arch` or no architecture at all, `hiprtcGetCode`, `hipModuleLoadData`.",
        "*": "Load what the device's own toolchain builds.",
    },
)

LOADS = ("cuModuleLoad", "cuLibraryLoadFromFile", "cudaLibraryLoadFromFile", "hipModuleLoad", "hipLibraryLoadFromFile")
FORMATS = {".ptx": "PTX", ".cubin": "cubin", ".fatbin": "fatbin"}
FILE = regex(r".*(\.ptx|\.cubin|\.fatbin)")
INPUTS = {
    f"{prefix}{name}": kind
    for kind in ("PTX", "cubin", "fatbin")
    for prefix, name in (
        ("CU_JIT_INPUT_", {"fatbin": "FATBINARY"}.get(kind, kind.upper())),
        ("hipJitInput", {"fatbin": "FatBinary"}.get(kind, kind.capitalize())),
    )
}
OPTION = regex(r"(?:--gpu-architecture|-arch)(?:=| +)(compute|sm)_\w*")
OF_HIPRTC = ("offload-arch", "hiprtc", "fgpu-rdc")


@rule.cuda_calls(*LOADS)
def loads_a_file(call: Node) -> Hits:
    path = call.argument(1)
    if path is None or call.source.defines(call.name):
        return
    for literal in _literals(path):
        found = FILE.fullmatch(literal.constant) if isinstance(literal.constant, str) else None
        if found is not None:
            kind = FORMATS[found[1]]
            yield _hit(literal, kind, f"a file with {kind}", guards=(*call.guards, *literal.guards))
            return


@rule.cuda_words(INPUTS.__contains__)
def links(word: Node) -> Hits:
    call = next(word.ancestors("call_expression"), None)
    if call is not None and word in call.arguments and not word.source.defines(call.name):
        kind = INPUTS[word.text]
        yield _hit(word, kind, f"{kind} for the linker")


@rule.cuda('((string_literal) @option (#match? @option "(compute|sm)_"))')
def compiles_for(option: Node) -> Hits:
    found = OPTION.fullmatch(option.constant) if isinstance(option.constant, str) else None
    if found is not None and option.source.mentions("rtcCompileProgram") and not _knows_hiprtc(option):
        kind = "PTX" if found[1] == "compute" else "cubin"
        yield _hit(option, kind, f"an architecture of NVIDIA's, compiled to {kind}")


@rule.cuda_calls("nvrtcGetCUBIN")
def takes_a_cubin(call: Node) -> Hits:
    if not call.source.defines("nvrtcGetCUBIN") and not _knows_hiprtc(call):
        yield _hit(call["function"], "cubin", "a cubin that is compiled at run time")


@rule.calls("cupy.RawModule")
def loads_a_file_in_python(call: Node) -> Hits:
    path = call.argument(None, "path")
    found = FILE.fullmatch(path.constant) if path is not None and isinstance(path.constant, str) else None
    if path is not None and found is not None and call.argument(None, "code") is None:
        kind = FORMATS[found[1]]
        yield _hit(path, kind, f"a file with {kind}")


def _hit(node: Node, kind: str, what: str, guards: tuple[Guard, ...] | None = None) -> Hit:
    return Hit(node, assumes={"isa.module_formats": has(kind)}, words={"what": what}, guards=guards)


def _knows_hiprtc(node: Node) -> bool:
    return any(node.source.mentions(word) for word in OF_HIPRTC)


def _literals(path: Node) -> Iterator[Node]:
    """The literals that the name of a file is put together from, the last one first."""
    called = path.get("function") if path.type == "call_expression" else None
    named = called.get("argument") if called is not None and called.type == "field_expression" else None
    for choice in (named or path).choices:
        yield from reversed(list(choice.walk("string_literal")))
