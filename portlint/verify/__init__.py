"""Takes findings towards proof: a kernel for each fact, and compilers, simulators and devices that run it.

Three levels, each of which proves less than the next: `compile` asks the compiler of the exact target, `simulate`
computes values on this machine, `run` asks the device. An answer of one level is never reported as that of another, and
what did not run is reported as not run.
"""
