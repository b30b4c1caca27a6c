"""Whether tools of NVIDIA answer on the machine of the device.

How it checks itself: a tool counts where it can be started and ends well; a name that no tool has must not.

Proof: run
"""

import shutil
import subprocess

from _kernel import options, report

asked = options("system.nvidia_smi", "system.nsight")

import _xla

TOOLS = {"system.nvidia_smi": ("nvidia-smi",), "system.nsight": ("nsys", "ncu")}


def answers(name: str) -> bool:
    """Whether a tool can be started."""
    path = shutil.which(name)
    if path is None:
        return False
    ended = subprocess.run([path, "--version"], capture_output=True, check=False, timeout=60)  # noqa: S603
    return ended.returncode == 0


_xla.device(asked)
wanted = [asked.item] if asked.item in TOOLS[asked.fact] else list(TOOLS[asked.fact])
found = [name for name in wanted if answers(name)]
report(
    asked.fact,
    "native" if found else "none",
    checked=not answers("portlint-no-such-tool"),
    detail=", ".join(found),
    **_xla.described(),
)
