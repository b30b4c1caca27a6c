"""Lower or compile Pallas programs for a TPU, with no device: one JSON request a line, one answer a line.

A request is {"program", "arrays": [[shape, dtype], ...], "target"}: the program's function `launch` is lowered for
arrays like these on a kind of TPU ("TPU v5 lite"), or, where the target is a topology ("v5e:2x2"), compiled by libtpu.
An answer is {} or {"error": text}. Run as a program, so that what the compiler prints or breaks stays out of the tests.
"""

from __future__ import annotations

import json
import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# libtpu otherwise looks for the machine that it runs on
os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
os.environ.setdefault("TPU_WORKER_HOSTNAMES", "localhost")
os.environ.setdefault("TPU_ACCELERATOR_TYPE", "v5litepod-4")
# and lets one process at a time have it
os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")

import jax
import numpy as np
from jax import export
from jax.experimental import topologies
from jax.sharding import AbstractDevice, AbstractMesh, Mesh, NamedSharding, PartitionSpec, use_abstract_mesh

_topologies: dict = {}


def _lower(launch, arrays, kind: str) -> None:
    device = AbstractDevice(device_kind=kind, num_cores=1, platform="tpu")
    with use_abstract_mesh(AbstractMesh((1,), ("x",), abstract_device=device)):
        export.export(jax.jit(launch), platforms=["tpu"])(*arrays)


def _compile(launch, arrays, name: str) -> None:
    if name not in _topologies:
        _topologies[name] = topologies.get_topology_desc(topology_name=name, platform="tpu")
    mesh = Mesh(np.array(_topologies[name].devices[:1]), ("x",))
    place = NamedSharding(mesh, PartitionSpec())
    placed = [jax.ShapeDtypeStruct(one.shape, one.dtype, sharding=place) for one in arrays]
    jax.jit(launch).lower(*placed).compile()


def answer(request: dict) -> dict:
    program: dict = {}
    exec(request["program"], program)
    arrays = [jax.ShapeDtypeStruct(tuple(shape), dtype) for shape, dtype in request["arrays"]]
    target = request["target"]
    try:
        (_compile if ":" in target else _lower)(program["launch"], arrays, target)
    except Exception as error:  # the compiler raises what it likes
        return {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"[:400]}
    return {}


def main() -> None:
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
