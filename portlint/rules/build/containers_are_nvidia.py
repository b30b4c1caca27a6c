"""Containers are built on images of NVIDIA's, or run with its container runtime.

`FROM nvidia/cuda`, `runtime: nvidia` and `--gpus all` work where NVIDIA's driver is on the host. On another machine the runtime is
not there, and what is built on the image knows no other device. The PyTorch of an older image has no code for newer parts.

## Exceptions
A variable of the runtime (`NVIDIA_VISIBLE_DEVICES`) is reported beside such an image or device; alone it does nothing elsewhere.
Silent where a file named for the platform (`Dockerfile.rocm`, `docker/rocm/Dockerfile`), another stage or another service serves
it, where a build argument names the base image, and in workflows.

## References
https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from portlint.rule import Assumed, Entry, Hit, Hits, Rule, at_least, regex

rule = Rule(
    assumes={},
    message="'{text}' is for NVIDIA's containers{cuda}; {target} has {fact}.",
    remedy={
        "nvidia": "Take an image whose PyTorch is built with that toolkit or a later one.",
        "amd": "Add a container file on an image of ROCm (`rocm/pytorch`, `rocm/dev-ubuntu-22.04`), or let a build argument name the base image; run it with `--device /dev/kfd --device /dev/dri`.",
        "gaudi": "Add a container file on the vendor's image (`vault.habana.ai/gaudi-docker/...`), and run it with `--runtime=habana` and `HABANA_VISIBLE_DEVICES`.",
        "*": "Add a container file on an image for that machine, or let a build argument name the base image.",
    },
)

IMAGES = regex(r"(?:docker\.io/)?nvidia/\S+|nvcr\.io/nvidia/\S+")
OF_TORCH = regex(r"(?:docker\.io/)?pytorch/pytorch")
OF_CUDA = regex(r"cuda(\d+\.\d+)")
OWN_IMAGES = rule.option(
    "images", (), "images of your own that are built on NVIDIA's, such as those of a mirror; `*` stands for any part"
)
NVIDIA: dict[str, Assumed] = {"build.nvidia_containers": "native"}
VARIABLES = frozenset(("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_REQUIRE_CUDA"))
OFF = frozenset(("void", "none", "", "no"))


@rule.recipes("image", "device")
def asked_for(entry: Entry) -> Hits:
    if is_nvidia(entry):
        version = OF_CUDA.search(entry.value) if OF_TORCH.fullmatch(entry.name) else None
        needed: dict[str, Assumed] = {**NVIDIA}
        if version:
            needed["build.oldest_cuda"] = at_least(float(version[1]))
        yield Hit(entry.node, assumes=needed, words={"cuda": f" with CUDA {version[1]}" if version else ""})


@rule.recipes("setting")
def variable(entry: Entry) -> Hits:
    if entry.name in VARIABLES and entry.value not in OFF and any(map(is_nvidia, entry.node.source.entries)):
        yield Hit(entry.node, assumes=NVIDIA, words={"cuda": ""}, otherwise="degrades", language="container")


def is_nvidia(entry: Entry) -> bool:
    if entry.choice:
        return False
    if entry.kind == "image":
        own = any(fnmatchcase(entry.name, pattern) for pattern in OWN_IMAGES.value)
        return bool(own or IMAGES.fullmatch(entry.name) or (OF_TORCH.fullmatch(entry.name) and "cuda" in entry.value))
    return entry.kind == "device" and (entry.name == "--gpus" or entry.value == "nvidia")
