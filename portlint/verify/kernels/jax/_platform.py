"""Where JAX runs or compiles a kernel: a device that is here, a platform that is not, or a TPU as libtpu knows it."""

import argparse
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from _kernel import need, refuse, said

INSTALL = "pip install jax"
LIBTPU = "pip install libtpu (its licence is that of Google's cloud services)"
PLATFORMS = {"sm_": "cuda", "gfx": "rocm", "tpu": "tpu", "cpu": "cpu", "trainium": "neuron", "inferentia": "neuron"}
"""how a target's name begins -> the platform that JAX calls it"""
KINDS = {
    "tpu-v5e": ("TPU v5 lite", "TPU v5e"),
    "tpu-v5p": ("TPU v5", "TPU v5p"),
    "tpu-v6e": ("TPU v6 lite", "TPU v6e"),
    "tpu-v7": ("TPU7x", "TPU7"),
}
"""what a generation calls itself; which of the names depends on the release"""
TOPOLOGIES = {"tpu-v5e": "v5e:2x2", "tpu-v5p": "v5p:2x2x1", "tpu-v6e": "v6e:2x2", "tpu-v7": "tpu7x:2x2x1"}
"""the smallest that libtpu describes"""

for name, value in {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
}.items():
    os.environ.setdefault(name, value)  # libtpu would ask a cloud's server for them

jax = need("jax", INSTALL)
jnp = need("jax.numpy", INSTALL)


class Answer(NamedTuple):
    """What became of a function."""

    accepted: bool
    text: str
    """the program, where it was accepted"""
    words: str
    """what was said, where it was not"""
    arguments_bytes: int = 0
    """what its arguments take on the device, where a compiler has laid them out"""


def shape(*sizes: int, dtype: Any = None) -> Any:
    """An array as compilers want to know it."""
    return jax.ShapeDtypeStruct(sizes, dtype or jnp.float32)


def platform(asked: argparse.Namespace) -> str:
    """The platform that the options name. Refuses where they name none."""
    given: str = asked.architecture or "cpu"
    found = next((platform for start, platform in PLATFORMS.items() if given.startswith(start)), "")
    return found or refuse(f"JAX has no platform for '{given}'")


def device(asked: argparse.Namespace) -> Any:
    """The device to run on: the CPU to simulate, or what is here. Refuses where it is not here."""
    if asked.level == "compile":
        refuse("this takes values, which only a device gives: ask for --level simulate or run")
    if asked.level == "run" and not asked.architecture:
        return jax.devices()[0]
    wanted = "cpu" if asked.level == "simulate" else platform(asked)
    try:
        found = jax.devices(wanted)[0]
    except RuntimeError as error:
        refuse(f"no device '{wanted}' for JAX here: {said(error)}")
    kinds = KINDS.get(asked.architecture, ())
    if asked.level == "run" and kinds and found.device_kind not in kinds:
        refuse(f"the device here is '{found.device_kind}', not '{kinds[0]}'")
    return found


def described(where: Any) -> dict[str, str]:
    """The environment that a report names."""
    return {"jax": jax.__version__, "device": str(where.device_kind)}


def lowered(asked: argparse.Namespace, function: Callable[..., Any], *arguments: Any) -> Answer:
    """Take a function to the program that a platform's compiler is given."""
    target = platform(asked)
    if target == "neuron":
        refuse("Neuron's rules are in its compiler, which JAX reaches on a machine that has it: ask for --level run")
    try:
        with _chip(asked):
            traced = jax.jit(function).trace(*arguments)
            return Answer(True, traced.lower(lowering_platforms=(target,)).as_text(), "")
    except Exception as error:  # a refusal may be any exception
        if "install jaxlib GPU" in str(error):
            refuse("Mosaic GPU comes with JAX for CUDA only: pip install jax[cuda13]")
        return Answer(False, "", said(error))


def _chip(asked: argparse.Namespace) -> Any:
    """What tells Pallas for TPU which generation it lowers for."""
    kinds = KINDS.get(asked.architecture, ())
    sharding = jax.sharding
    chip = sharding.AbstractDevice(device_kind=kinds[0], num_cores=1, platform="tpu") if kinds else None
    return sharding.use_abstract_mesh(sharding.AbstractMesh((1,), ("x",), abstract_device=chip))


def topology(asked: argparse.Namespace) -> Any:
    """A TPU of that generation, as libtpu describes it without one."""
    if asked.architecture not in TOPOLOGIES:
        refuse(f"libtpu compiles for TPUs, not for '{asked.architecture}'")
    need("libtpu", LIBTPU)
    topologies = need("jax.experimental.topologies", INSTALL)
    try:
        return topologies.get_topology_desc(topology_name=TOPOLOGIES[asked.architecture], platform="tpu")
    except jax.errors.JaxRuntimeError as error:  # one process at a time may load it
        refuse(f"libtpu describes no '{asked.architecture}' now: {said(error)}")


def compiled(asked: argparse.Namespace, function: Callable[..., Any], *arguments: Any) -> Answer:
    """Compile a function for one chip of a TPU generation that is not here."""
    numpy = need("numpy", INSTALL)
    sharding = jax.sharding
    mesh = sharding.Mesh(numpy.array(topology(asked).devices[:1]), ("x",))
    place = sharding.NamedSharding(mesh, sharding.PartitionSpec())
    placed = [jax.ShapeDtypeStruct(one.shape, one.dtype, sharding=place) for one in arguments]
    try:
        with _chip(asked):
            made = jax.jit(function).lower(*placed).compile()
    except Exception as error:  # a refusal may be any exception
        return Answer(False, "", said(error))
    return Answer(True, made.as_text(), "", made.memory_analysis().argument_size_in_bytes)
