"""What a Python file learns from the files of its project that import it."""

from pathlib import Path

import pytest
from harness import rules, scan

KERNELS = "import torch\n\n\ndef fast(x):\n    return torch.zeros(4, device='cuda')\n"
GUARDED = "from pkg.kernels import fast\n\n\ndef run(x):\n    if x.is_cuda:\n        return fast(x)\n    return x\n"


def found(
    folder: Path, files: dict[str, str], name: str = "pkg/kernels.py", targets: tuple[str, ...] = ("mps",)
) -> list[int]:
    """The lines of a file of a project that have a finding, for Apple silicon unless another target is asked for."""
    for each, text in {"pyproject.toml": "", **files}.items():
        path = folder / each
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    path = folder / name
    result = scan(path, rules().values(), targets=targets)
    return sorted({finding.line for finding in result})


@pytest.mark.parametrize(
    ("users", "lines"),
    [
        ({"pkg/run.py": GUARDED}, []),
        ({"pkg/run.py": GUARDED.replace("from pkg.kernels", "from .kernels")}, []),
        ({"pkg/run.py": GUARDED.replace("import fast", "import fast as quick").replace("fast(x)", "quick(x)")}, []),
        ({"pkg/run.py": "from pkg import kernels\n\nif x.is_cuda:\n    kernels.fast(x)\n"}, []),
        (
            {"pkg/run.py": "def run(x):\n    if x.is_cuda:\n        from pkg.kernels import fast\n\n        fast(x)\n"},
            [],
        ),
        ({"pkg/run.py": GUARDED, "tests/test_it.py": "from pkg.kernels import fast\n\n\ndef test(): fast(1)\n"}, []),
        # a way in that no guard closes
        ({}, [5]),
        ({"pkg/run.py": GUARDED, "pkg/other.py": "from pkg.kernels import fast\n\nfast(1)\n"}, [5]),
        ({"pkg/run.py": GUARDED, "pkg/other.py": "from pkg.kernels import fast\n\nTABLE = {1: fast}\n"}, [5]),
        ({"pkg/run.py": GUARDED, "pkg/__init__.py": "from .kernels import fast\n"}, [5]),
        ({"tests/test_it.py": "from pkg.kernels import fast\n\n\ndef test(): fast(1)\n"}, [5]),
        # what only type checkers read, and what a package loads by name
        (
            {"pkg/run.py": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from pkg.kernels import fast\n"},
            [5],
        ),
        ({"pkg/run.py": GUARDED, "pkg/__init__.py": "lazy = {'kernels': ['fast']}\n"}, [5]),
        # another module of the same name
        ({"other/kernels.py": "", "other/run.py": GUARDED.replace("pkg.kernels", "other.kernels")}, [5]),
    ],
)
def test_a_function_lives_where_one_of_its_calls_does(tmp_path: Path, users: dict[str, str], lines: list[int]) -> None:
    assert found(tmp_path, {"pkg/kernels.py": KERNELS, **users}) == lines


@pytest.mark.parametrize(("others", "lines"), [({}, []), ({"pkg/more.py": "from . import streams\n"}, [3])])
def test_a_module_lives_where_one_of_its_imports_does(tmp_path: Path, others: dict[str, str], lines: list[int]) -> None:
    module = "import torch\n\nSTREAM = torch.cuda.Stream()\n"
    guarded = "import torch\n\nif torch.cuda.is_available():\n    from . import streams\n"
    files = {"pkg/streams.py": module, "pkg/run.py": guarded, **others}
    assert found(tmp_path, files, "pkg/streams.py") == lines


def test_a_script_lives_on_its_own(tmp_path: Path) -> None:
    script = KERNELS + "\n\nif __name__ == '__main__':\n    fast(1)\n"
    assert found(tmp_path, {"pkg/kernels.py": script, "pkg/run.py": GUARDED}) == [5]


@pytest.mark.parametrize(
    ("call", "lines"),
    [
        ("Eraser('mps')", []),
        ("Eraser(device=torch.device(name))", []),
        ("Eraser()", [5]),
        ("Eraser('mps'); Eraser()", [5]),
    ],
)
def test_a_default_that_other_files_never_take(tmp_path: Path, call: str, lines: list[int]) -> None:
    module = "import torch\n\n\nclass Eraser:\n    def __init__(self, device='cuda'):\n        self.device = device\n"
    user = f"import torch\nfrom pkg.erase import Eraser\n\n{call}\n"
    assert found(tmp_path, {"pkg/erase.py": module, "pkg/run.py": user}, "pkg/erase.py") == lines


def test_options_of_the_command_line_are_passed_with_the_rest(tmp_path: Path) -> None:
    script = (
        "import argparse\nimport torch\n\nparser = argparse.ArgumentParser()\n{option}\n\n\n"
        "class Runner:\n    def __init__(self, device='cuda'):\n        self.device = device\n\n\n"
        "class Faster(Runner):\n    def __init__(self, device='cuda'):\n        super().__init__(device=device)\n\n\n"
        "Faster(**vars(parser.parse_args()))\n"
    )
    option = "parser.add_argument('--device', default='cpu')"
    assert (
        found(tmp_path, {"bench.py": script.format(option=option), "other.py": script.format(option="")}, "bench.py")
        == []
    )
    assert found(tmp_path, {}, "other.py") == [14]


def test_options_of_the_command_line_reach_a_class_that_a_table_names(tmp_path: Path) -> None:
    script = (
        "import argparse\nimport torch\n\nparser = argparse.ArgumentParser()\nparser.add_argument('--device')\n\n\n"
        "class Runner:\n    def __init__(self, device='cuda'):\n        self.device = device\n\n\n"
        "RUNNERS = {'infer': Runner}\noptions = vars(parser.parse_args())\nRUNNERS['infer'](**options)\n"
    )
    assert found(tmp_path, {"bench.py": script, "other.py": script.replace("vars", "dict")}, "bench.py") == []
    assert found(tmp_path, {}, "other.py") == [9]


@pytest.mark.parametrize(
    ("top", "name", "lines"), [("tests", "gate.py", [4]), ("cpu", "gate.py", [4]), ("work", "tests/gate.py", [])]
)
def test_what_the_folders_above_a_project_are_called_says_nothing(
    tmp_path: Path, top: str, name: str, lines: list[int]
) -> None:
    code = "import torch\n\n\nassert torch.cuda.is_available()\n"
    assert found(tmp_path / top / "project", {name: code}, name) == lines


def test_a_device_beside_a_triton_launch_counts_where_there_is_triton(tmp_path: Path) -> None:
    path = tmp_path / "launch.py"
    path.write_text(
        "import torch\nimport triton\n\n\n@triton.jit\ndef kernel(x): pass\n\n\n"
        "def run(n):\n    x = torch.empty(n, device='cuda')\n    kernel[(1,)](x)\n    return x\n"
    )
    lines = {one: [x.line for x in scan(path, [rules()["device/is-cuda"]], (one,))] for one in ("xpu", "mps", "cdna3")}
    assert lines == {"xpu": [10], "mps": [], "cdna3": []}


PROBES = {
    "pkg/__init__.py": "",
    "pkg/env.py": "import torch\n\n\ndef is_cuda() -> bool:\n    return torch.version.cuda is not None\n",
    "pkg/packages.py": (
        "import importlib.util\n\n\ndef _has(name):\n    return importlib.util.find_spec(name) is not None\n\n\n"
        "def has_deep_gemm():\n    return _has('deep_gemm')\n"
    ),
    "pkg/checks.py": (
        "from .env import is_cuda\nfrom .packages import has_deep_gemm as has\n\n\n"
        "def demand():\n    if not is_cuda():\n        raise RuntimeError\n\n\nHAS = has()\n"
    ),
}


@pytest.mark.parametrize(
    ("code", "cdna3"),
    [
        ("from pkg.env import is_cuda\nif is_cuda(): {}", False),
        ("from .env import is_cuda as on_cuda\nif not on_cuda(): {}", True),
        ("from pkg import env\nif env.is_cuda(): {}", False),
        ("from . import env\nif env.is_cuda(): {}", False),
        ("from pkg.checks import is_cuda\nif is_cuda(): {}", False),
        ("from pkg.checks import demand\ndemand()\n{}", False),
        ("from pkg.packages import has_deep_gemm\nif has_deep_gemm(): {}", False),
        ("from pkg.packages import has_deep_gemm\nif not has_deep_gemm(): {}", True),
        ("from pkg.packages import _has\nif _has('triton'): {}", True),
        ("from pkg.checks import HAS\nif HAS: {}", False),
        ("from pkg.checks import is_cuda as test\nif test('more'): {}", False),
        ("from pkg.nowhere import is_cuda\nif is_cuda(): {}", True),
    ],
)
def test_small_predicates_of_other_files(tmp_path: Path, code: str, cdna3: bool) -> None:
    lines = "import torch\n" + code.format("x = torch.finfo(torch.float8_e4m3fn).max") + "\n"
    function = "def here():\n" + "".join(f"    {line}\n" for line in lines.splitlines())
    files = {**PROBES, "pkg/kernels.py": function}
    assert bool(found(tmp_path, files, targets=("cdna3",))) == cdna3


@pytest.mark.parametrize(
    ("importing", "lines"),
    [
        ("try:\n    from .steps import step\nexcept ImportError:\n    step = None\n", []),
        ("from .steps import step\n", [1]),
    ],
)
def test_a_module_whose_import_is_caught(tmp_path: Path, importing: str, lines: list[int]) -> None:
    files = {"pkg/__init__.py": "", "pkg/steps.py": "import cutlass\n\nstep = cutlass.step\n", "pkg/run.py": importing}
    assert found(tmp_path, files, "pkg/steps.py", targets=("cdna3",)) == lines


@pytest.mark.parametrize(("elsewhere", "lines"), [("torch.cuda.set_device(0)\n", []), ("x = 1\n", [5])])
def test_the_gpu_of_a_process(tmp_path: Path, elsewhere: str, lines: list[int]) -> None:
    code = (
        "import torch\n\n\ndef total(x: torch.Tensor) -> torch.Tensor:\n"
        "    scratch = torch.empty(4, device='cuda')\n    return scratch + x\n"
    )
    files = {"pkg/__init__.py": "", "pkg/total.py": code, "pkg/serve.py": f"import torch\n\n{elsewhere}"}
    assert found(tmp_path, files, "pkg/total.py", targets=("cdna3",)) == lines
