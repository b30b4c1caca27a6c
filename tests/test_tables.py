"""The packaged tables: what each toolkit has of CUDA's names, and each library of PyTorch's operators."""

from importlib.resources import files

import pytest

from portlint.tables import cuda_name, cuda_names, is_cuda_name, torch_operators
from portlint.target import load, shipped


def test_every_row_is_whole() -> None:
    text = (files("portlint") / "targets" / "tables" / "cuda_names.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    assert rows[0] == ["name", "hip", "nearest", "removed", "torch", "since", "feature"]
    assert {len(row) for row in rows} == {7}
    assert len({row[0] for row in rows}) == len(rows)
    assert len(cuda_names()) == len(rows) - 1
    assert all(row.removed == "" or float(row.removed) for row in cuda_names().values())


def test_a_name_that_hip_has_needs_no_replacement() -> None:
    assert not [row.name for row in cuda_names().values() if row.hip and row.nearest]


@pytest.mark.parametrize(
    ("name", "toolkit", "has"),
    [
        ("cudaMalloc", "HIP 7.0", True),
        ("cudaMalloc", "CUDA 12.8", True),
        ("__ll2bfloat16_rn", "HIP 7.0", False),
        ("__ll2bfloat16_rn", "CUDA 11.0", True),
        ("cudaBindTexture", "CUDA 11.8", True),
        ("cudaBindTexture", "CUDA 12.8", False),
        ("cudaGraphConditionalHandleCreate", "HIP 7.0", False),
        ("nvmlDeviceGetCount_v2", "HIP 7.0", False),
        ("nvtxRangePushA", "HIP 7.0", False),
    ],
)
def test_what_a_toolkit_has(name: str, toolkit: str, has: bool) -> None:
    row = cuda_name(name)
    assert row is not None
    assert row.in_toolkit(toolkit) is has


@pytest.mark.parametrize("name", ["nccl", "ncclAllReduce", "saturate", "mulhi", "malloc", "at", "nvm", ""])
def test_other_names_are_none_of_cuda(name: str) -> None:
    assert not is_cuda_name(name)


@pytest.mark.parametrize(
    ("name", "toolkit", "says"),
    [
        ("cudnnCreate", "HIP 7.0", "; nearest is MIOpen's miopenCreate"),
        ("cudaMemAdvise_v2", "HIP 7.0", "; nearest is hipMemAdvise_v2 of HIP 7.1"),
        ("cudaStreamGetDevice", "HIP 7.0", "; nearest is hipStreamGetDevice, renamed by hand"),
        ("nvmlInit_v2", "HIP 7.0", "; nearest is AMD SMI, the amdsmi_* functions"),
        ("cudaBindTexture", "CUDA 12.8", " since CUDA 12.0"),
        ("cudaD3D9GetDevice", "HIP 7.0", ""),
    ],
)
def test_what_to_use_instead(name: str, toolkit: str, says: str) -> None:
    row = cuda_name(name)
    assert row is not None
    assert row.instead_in(toolkit) == says


def test_names_of_a_feature_are_exactly_those_that_their_rule_judges() -> None:
    from portlint.rules.isa.hopper_only import FACTS

    stated = {row.name: row.feature for row in cuda_names().values() if row.feature}
    assert stated == {name: fact for name, fact in FACTS.items() if name in cuda_names()}


def test_every_row_of_the_operators_is_whole() -> None:
    text = (files("portlint") / "targets" / "tables" / "torch_operators.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    assert rows[0] == ["name", "also", "needs", "mps", "xla", "neuron", "hpu", "xpu", "instead"]
    assert {len(row) for row in rows} == {9}
    assert {level for row in rows[1:] for level in row[3:8]} == {"", "error", "host"}
    assert all(any(row[3:8]) for row in rows)
    names = [name for row in rows[1:] for name in (row[0], *row[1].split())]
    assert len(names) == len(set(names)) == len(torch_operators())


def test_every_target_names_a_library_of_the_table() -> None:
    libraries = {name: load(name).fact("api.operators") for name in shipped()}
    assert not [name for name, fact in libraries.items() if fact is None]
    columns = {fact.value.rpartition("(")[2] for fact in libraries.values() if fact is not None}
    assert columns == {"mps)", "xla)", "neuron)", "hpu)", "xpu)", "cuda)", "cpu)"}


MPS, XLA, NEURON, GAUDI = (
    "PyTorch 2.14.1 (mps)",
    "PyTorch/XLA 2.9 (xla)",
    "torch-neuronx on PyTorch/XLA 2.9 (neuron)",
    "Gaudi bridge 1.19.0 (hpu)",
)


@pytest.mark.parametrize(
    ("name", "library", "happens"),
    [
        ("torch.linalg.eig", MPS, "error"),
        ("torch.linalg.eigh", MPS, ""),
        ("torch.fft.rfft", MPS, ""),
        ("torch.fft.rfft", XLA, "host"),
        ("torch.nn.functional.grid_sample", XLA, "host"),
        ("torch.nn.functional.grid_sample", GAUDI, ""),
        ("torch.triangular_solve", NEURON, "error"),
        ("torch.triangular_solve", XLA, ""),
        ("torch.inverse", GAUDI, "host"),
        ("torch.linalg.eig", "PyTorch 2.14.1 (cuda)", ""),
    ],
)
def test_what_a_call_comes_to(name: str, library: str, happens: str) -> None:
    row = torch_operators().get(name)
    assert (row.happens_in(library) if row is not None else "") == happens


def test_what_replaces_an_operator_has_kernels_itself() -> None:
    solve = torch_operators()["torch.linalg.solve"]
    assert solve.instead_in(XLA) == "`torch.linalg.inv(A) @ B`, or `B @ torch.linalg.inv(A)` with `left=False`"
    assert solve.instead_in(GAUDI) == ""  # torch.linalg.inv has none there
