"""Which environment variables of older PyTorch/XLA still change the type of a tensor: each is set in its own process.

How it checks itself: a process in which none is set must keep the types.

Proof: run
"""

import os
import subprocess
import sys

from _kernel import options, report

asked = options("system.removed_variables")

import _xla

VARIABLES = ("XLA_USE_BF16", "XLA_DOWNCAST_BF16", "XLA_USE_32BIT_LONG")
CODE = """
import torch, torch_xla
kept = (torch.tensor([1 + 2**-20]).to(torch_xla.device()) - 1).item() == 2**-20
wide = torch.tensor([2**40]).to(torch_xla.device()).item() == 2**40
print(kept and wide)
"""

_xla.device(asked)


def keeps(variable: str) -> bool:
    """Whether a process with a variable keeps the types."""
    environment = {**os.environ, variable: "1"}
    command = [sys.executable, "-c", CODE]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)  # noqa: S603
    return ended.stdout.strip().endswith("True")


wanted = [asked.item] if asked.item in VARIABLES else list(VARIABLES)
report(
    asked.fact,
    [name for name in wanted if keeps(name)],
    checked=keeps("PORTLINT_NO_SUCH_VARIABLE"),
    **_xla.described(),
)
