"""The platforms that JAX finds, the kinds of its devices, and the cores of a chip.

How it checks itself: the default device must be of one of the platforms, and all devices of the same kind.

Proof: run
"""

from collections import Counter

from _kernel import options, refuse, report

asked = options("device.jax_platforms", "device.jax_kinds", "device.cores_per_chip", "device.megacore")

from _platform import described, device, jax, topology

PLATFORMS = ("cpu", "cuda", "gpu", "rocm", "tpu", "neuron")


def is_here(platform: str) -> bool:
    """Whether JAX has devices of a platform."""
    try:
        return bool(jax.devices(platform))
    except RuntimeError:
        return False


if asked.level == "compile":
    devices, environment = topology(asked).devices, {"jax": jax.__version__}
else:
    where = device(asked)
    devices, environment = jax.devices(where.platform), described(where)
kinds = sorted({one.device_kind for one in devices})
measured: object
if asked.fact == "device.jax_platforms":
    if asked.level == "compile":
        refuse("platforms are those of a machine: ask for --level run")
    measured = [name for name in PLATFORMS if is_here(name)]
elif asked.fact == "device.jax_kinds":
    measured = kinds
else:
    if not hasattr(devices[0], "coords"):
        refuse("only TPUs tell which chip a device is on")
    shared = max(Counter(tuple(one.coords) for one in devices).values())
    cores = shared * getattr(devices[0], "num_cores", 1)
    measured = cores if asked.fact == "device.cores_per_chip" else "native" if cores > shared else "none"
report(asked.fact, measured, checked=len(kinds) == 1 and bool(devices), detail=", ".join(kinds), **environment)
