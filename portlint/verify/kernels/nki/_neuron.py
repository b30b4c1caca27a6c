"""Runs NKI kernels on NumPy arrays: on the Neuron device that is here, or in NKI's own simulator.

Written from the documentation of the `nki` package, whose compiler is not on PyPI, so none of these kernels has run.
"""

import argparse
import os
from typing import Any

from _kernel import need, refuse

INSTALL = "pip install nki --extra-index-url https://pip.repos.neuron.amazonaws.com"
PLATFORMS = {"inferentia2": "inf2", "trainium2": "trn2", "trainium3": "trn3"}
"""a target's name -> what NEURON_PLATFORM_TARGET_OVERRIDE takes"""

nki = need("nki", INSTALL)
nl = need("nki.language", INSTALL)
nisa = need("nki.isa", INSTALL)
numpy = need("numpy", INSTALL)


def called(asked: argparse.Namespace, kernel: Any, *arguments: Any) -> Any:
    """The result of a kernel, as a NumPy array."""
    if asked.level == "compile":
        refuse("NKI compiles a kernel for NumPy arrays only to run it: ask for --level simulate or run")
    if asked.architecture:
        if asked.architecture not in PLATFORMS:
            refuse(f"NKI has no platform for '{asked.architecture}'")
        os.environ["NEURON_PLATFORM_TARGET_OVERRIDE"] = PLATFORMS[asked.architecture]
    if asked.level == "simulate":
        return numpy.asarray(nki.simulate(kernel)(*arguments))
    return numpy.asarray(kernel(*arguments))


def described(asked: argparse.Namespace) -> dict[str, str]:
    """The environment that a report names."""
    device = "the simulator" if asked.level == "simulate" else asked.architecture or "neuron"
    return {"nki": str(getattr(nki, "__version__", "")), "device": device}
