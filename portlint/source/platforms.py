"""Which platform a condition chooses, before any target is asked: all of HIP, or some of its architectures only."""

from __future__ import annotations

from collections.abc import Sequence

from portlint.condition import Environment, Guard, is_live, names
from portlint.naming import guess_platform
from portlint.regex import regex

_AMD = frozenset("rocm hip hipcc hcc amd".split())
_NVIDIA = frozenset("cuda nvidia nvcc cudart".split())
_OF_ONE_ARCHITECTURE = regex(r"__(?:gfx|GFX)\w+__|__AMDGCN_WAVEFRONT_SIZE_*|gcn_arch|warp_size|\w*(?:gfx|GFX)\d\w*")
_OF_THE_DEVICE_PASS = regex(r"__(?:gfx|GFX)\w+__|__AMDGCN_WAVEFRONT_SIZE_*|__HIP_DEVICE_COMPILE__")


_ON_HIP = Environment(
    {
        "USE_ROCM": 1, "__HIP__": 1, "__HIPCC__": 1, "__HIP_PLATFORM_AMD__": 1, "__HIP_PLATFORM_HCC__": 1,
        "__HIP_DEVICE_COMPILE__": 1, "__AMDGCN__": 1, "torch.version.hip": "7", "torch.version.cuda": None,
    },
    frozenset(("__CUDACC__", "__NVCC__", "__CUDA_ARCH__", "CUDA_VERSION", "__HIP_PLATFORM_NVIDIA__")),
    lambda name: guess_platform(name, _AMD),
)  # fmt: skip
_ON_CUDA = Environment(
    {
        "USE_CUDA": 1, "__CUDACC__": 1, "__NVCC__": 1, "torch.version.cuda": "13", "torch.version.hip": None,
    },
    frozenset(
        (
            "USE_ROCM", "__HIP__", "__HIPCC__", "__HIP_PLATFORM_AMD__", "__HIP_PLATFORM_HCC__",
            "__HIP_DEVICE_COMPILE__", "__AMDGCN__",
        )
    ),
    lambda name: guess_platform(name, _NVIDIA),
)  # fmt: skip


def is_every_hip(guards: Sequence[Guard]) -> bool:
    """Whether code under these guards is live in every build for HIP, whatever the architecture, and not for CUDA."""
    return is_live(guards, _ON_HIP) is True and is_live(guards, _ON_CUDA) is False


def asks_for_architecture(guards: Sequence[Guard]) -> bool:
    """Whether one of these guards asks which AMD architecture, or which wave width, the code is for."""
    return any(_OF_ONE_ARCHITECTURE.fullmatch(name) for guard in guards for name in names(guard.condition))


def asks_for_wave_width(guards: Sequence[Guard]) -> bool:
    """Whether a guard depends on the compiler's macro for the width of a wave, which not every version defines."""
    return any(name.startswith("__AMDGCN_WAVEFRONT_SIZE") for guard in guards for name in names(guard.condition))


def differs_between_passes(guards: Sequence[Guard]) -> bool:
    """Whether a guard depends on macros that only the device pass of a HIP compiler defines."""
    return any(_OF_THE_DEVICE_PASS.fullmatch(name) for guard in guards for name in names(guard.condition))
