"""The table of CUDA names: what each toolkit has, and what it has instead."""

from importlib.resources import files

import pytest

from portlint.tables import cuda_name, cuda_names, is_cuda_name


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
