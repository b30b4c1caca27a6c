"""Whether PYTORCH_ENABLE_MPS_FALLBACK does anything once torch is imported: an operator that has no kernel is called.

How it checks itself: in a process in which the variable is set before the import, the same operator must work, so that
it is the variable that decides.

Proof: run
"""

import os
import subprocess
import sys

from _kernel import options, refuse, report

asked = options("api.late_fallback")

from _device import described, device

CALL = "torch.linalg.eig(torch.eye(2, device='mps'))"
EARLY = f"import os; os.environ['PYTORCH_ENABLE_MPS_FALLBACK'] = '1'; import torch; {CALL}"
LATE = f"import os; import torch; os.environ['PYTORCH_ENABLE_MPS_FALLBACK'] = '1'; {CALL}"

where = device(asked)
if where.type != "mps":
    refuse("the variable is read on MPS only")
environment = {name: value for name, value in os.environ.items() if name != "PYTORCH_ENABLE_MPS_FALLBACK"}
ended = [
    subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)  # noqa: S603
    for code in (EARLY, LATE)
]
report(
    asked.fact,
    "none" if ended[1].returncode else "native",
    checked=ended[0].returncode == 0,
    detail=(ended[1].stderr.strip().splitlines() or [""])[-1][:300],
    **described(where),
)
