"""Which language a file is in: by its name where that says it, else by what is in it."""

from __future__ import annotations

import re

from portlint.regex import regex

CXX = "cxx?"
"""C or C++ by its name; only the text says whether it is code for a GPU"""

_SUFFIXES = {
    **dict.fromkeys(("py", "pyi", "pyw"), "python"),
    "ipynb": "notebook",
    **dict.fromkeys(("cu", "cuh", "hip"), "cuda"),
    **dict.fromkeys(("h", "hpp", "hxx", "hh", "inl", "inc", "cpp", "cc", "cxx", "c"), CXX),
    "cmake": "cmake",
    **dict.fromkeys(("dockerfile", "containerfile"), "dockerfile"),
    **dict.fromkeys(("sh", "bash"), "bash"),
}
CXX_HEADERS = (".h", ".hpp", ".hxx", ".hh", ".cuh", ".inl", ".inc")
"""what other C++ files include"""
CXX_COMPILED = (".cu", ".hip", ".cpp", ".cc", ".cxx")
"""what a build compiles by itself"""
_NAMES = {"CMakeLists.txt": "cmake", "pyproject.toml": "toml", ".gitlab-ci.yml": "yaml"}
_REQUIREMENTS = regex(r"(?:.+[-_.])?(?:requirements|constraints)[^/]*\.txt", re.IGNORECASE)
_YAML = regex(r"(?:.+[-_.])?(?:compose|environment|env)(?:[-_.].+)?\.ya?ml", re.IGNORECASE)
"""compose files, and environments of conda"""
_DOCKERFILE = regex(r"(?:Dockerfile|Containerfile)(?:[-_.].*)?", re.IGNORECASE)
_NO_DOCKERFILE = frozenset("dockerignore png jpg jpeg svg gif md rst html txt py json yml yaml toml".split())
"""endings of files about container files"""


def by_name(path: str) -> str | None:
    """The language that a file's name says, `"cxx?"` where only the content can tell, None where it is none of ours.

    The folders in the path matter for two kinds: workflows of GitHub are YAML in `.github/workflows`, and
    `requirements/*.txt` are requirements.
    """
    folder, _, name = path.replace("\\", "/").rpartition("/")
    stem, _, suffix = name.lower().rpartition(".")
    if language := _NAMES.get(name) or (stem and _SUFFIXES.get(suffix)):
        return language
    if suffix in ("yml", "yaml"):
        return "yaml" if f"/{folder}".endswith("/.github/workflows") or _YAML.fullmatch(name) else None
    if suffix == "txt" and (_REQUIREMENTS.fullmatch(name) or f"/{folder}".endswith("/requirements")):
        return "requirements"
    return "dockerfile" if _DOCKERFILE.fullmatch(name) and suffix not in _NO_DOCKERFILE else None


_GPU_WORDS = tuple(
    word.encode()
    for word in (
        # declarations, built-in variables and intrinsics
        "__global__ __device__ __shared__ __constant__ __launch_bounds__ threadIdx blockIdx blockDim gridDim warpSize "
        "__shfl __ballot __activemask __syncwarp __syncthreads "
        # compilers and versions
        "__CUDA __HIP CUDA_VERSION CUDART_VERSION HIP_VERSION USE_ROCM "
        # headers, namespaces and libraries
        "cuda_runtime cuda_fp cuda_bf16 hip_runtime hip_fp hip_bf16 cooperative_groups "
        "at::cuda:: c10::cuda:: thrust:: wmma:: cutlass:: cublas cudnn nccl cufft cusparse cusolver curand nvrtc "
        "hipblas hipfft hipcub rocblas rocwmma miopen rccl/ "
        # macros that stand for __device__
        "CUTLASS_DEVICE CUTLASS_HOST_DEVICE CUTE_DEVICE CUTE_HOST_DEVICE C10_DEVICE C10_HOST_DEVICE"
    ).split()
)
# Every repetition is bounded or possessive, so that the search is linear. Each branch starts with a character, not with
# an assertion: only so can the search skip ahead.
_GPU_SHAPES = regex(
    rb"""
      <<<(?<=[\w>\s]<<<)(?![<=])                                # a launch, and no mark of a merge conflict
    | cu(?<=\bcu)(?:da)?[A-Z]\w++(?:(?<=_t)|\s{0,8}\()          # cudaMalloc(, cuLaunchKernel(, cudaStream_t
    | hip(?<=\bhip)[A-Z]\w++(?:(?<=_t)|\s{0,8}\()
    | cu(?<=\bcu)(?:b|te)::
    | asm(?<=[\W_]asm)(?:__)?\s{0,8}(?:(?:__)?volatile(?:__)?)?\s{0,8}\(\s{0,64}"[\s{]{0,16}(?:@?[%\w]{0,16}\s)?
        (?:[a-z][a-z0-9]{0,15}\.[a-z]                           # PTX: mov.u32
          |[sv]_[a-z]|(?:ds|buffer|global|flat)_[a-z])          # AMD: v_mov_b32, ds_read_b64
    """,
    re.VERBOSE,
)
_PYTHON_SCRIPT = regex(rb"#!.{0,200}\bpython[0-9.]*(?:\s|$)")


def by_content(kind: str, text: bytes) -> str | None:
    """The language of a text whose name says `kind`, or None if it is none that portlint reads.

    `"cxx?"` is "cuda" if it has device code, or uses a GPU's runtime or libraries; plain C++ is None. A file whose
    name says nothing ("") is "python" if it starts with a `#!` line that runs Python. Every other kind is settled.
    """
    if kind == CXX:
        return "cuda" if any(word in text for word in _GPU_WORDS) or _GPU_SHAPES.search(text) else None
    if kind == "":
        return "python" if _PYTHON_SCRIPT.match(text) else None
    return kind
