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


METHOD = "import torch\n\n\nclass Block({base}):\n    def _fast(self, x):\n        return x.to(device='cuda')\n"
PRIVATE = KERNELS.replace("fast", "_fast")


@pytest.mark.parametrize(
    ("module", "others", "lines"),
    [
        (PRIVATE, {}, []),
        (PRIVATE, {"pkg/run.py": "def _fast(x):\n    return _fast(x)\n"}, []),  # another function of that name
        (METHOD.format(base="torch.nn.Module"), {}, []),
        (METHOD.format(base="Base"), {"pkg/base.py": "class Base: ...\n"}, [6]),
        ("from .base import Base\n" + METHOD.format(base="Base"), {"pkg/base.py": "class Base: ...\n"}, []),
        # what may still be used
        (PRIVATE, {"pkg/run.py": "from .kernels import _fast\n"}, [5]),
        (PRIVATE, {"pkg/run.py": "from . import kernels\n\nrun = kernels._fast\n"}, [5]),
        (PRIVATE + "\n\nTABLE = {1: _fast}\n", {}, [5]),
        (PRIVATE.replace("def _fast", "@register\ndef _fast"), {}, [6]),
        (PRIVATE + "\n\nrun = globals()[f'_{kind}']\n", {}, [5]),
        (KERNELS, {}, [5]),  # public: for others
        (METHOD.format(base="torch.nn.Module"), {"pkg/run.py": "def run(block, x):\n    block._fast(x)\n"}, [6]),
        ("from lib import Base\n" + METHOD.format(base="Base"), {}, [7]),  # the base may call it
        ("from .base import Base\n" + METHOD.format(base="Base"), {"pkg/base.py": "class Base(X): ...\n"}, [7]),
    ],
)
def test_nothing_runs_a_private_function_that_is_never_named(
    tmp_path: Path, module: str, others: dict[str, str], lines: list[int]
) -> None:
    assert found(tmp_path, {"pkg/kernels.py": module, **others}) == lines


DEFAULT = (
    "import torch\n\n\ndef mask(lengths, longest=None):\n    if longest is None:\n"
    "        longest = torch.zeros(4, device='cuda')\n    return lengths < longest\n"
)
SHAPED = "from .kernels import mask\n\n\ndef run(x, n):\n    return mask(n, x.size(2))\n"


@pytest.mark.parametrize(
    ("users", "lines"),
    [
        ({"pkg/run.py": SHAPED}, []),
        ({"pkg/run.py": SHAPED.replace("x.size(2)", "longest=x.shape[1] + 1")}, []),
        ({"pkg/run.py": SHAPED.replace("return ", "n = len(x)\n    return ").replace("x.size(2)", "n")}, []),
        # a way in
        ({}, [6]),
        ({"pkg/run.py": SHAPED.replace(", x.size(2)", "")}, [6]),
        ({"pkg/run.py": SHAPED.replace("x.size(2)", "x")}, [6]),  # may be None
        ({"pkg/run.py": SHAPED, "pkg/other.py": "from .kernels import mask\n\nmask(1)\n"}, [6]),
        ({"pkg/run.py": SHAPED, "pkg/__init__.py": "from .kernels import mask\n"}, [6]),
    ],
)
def test_a_default_is_not_made_where_every_call_passes_a_value(
    tmp_path: Path, users: dict[str, str], lines: list[int]
) -> None:
    assert found(tmp_path, {"pkg/kernels.py": DEFAULT, **users}) == lines


BRANCH = (
    "import torch\nfrom .files import read\n\n\ndef check(audio):\n    if torch.any(audio > 2):\n"
    "        print(audio.max())\n\n\ndef load(path):\n    audio, rate = read(path)\n    check(audio)\n"
)
READER = "import torch\n\n\ndef read(path):\n    return torch.FloatTensor(open(path).read()), 22050\n"
READS = "import torch\nfrom .kernels import check\n\n\ndef load(x):\n    check(torch.from_numpy(x))\n"


@pytest.mark.parametrize(
    ("users", "lines"),
    [
        ({}, []),
        ({"pkg/run.py": READS}, []),
        ({"pkg/files.py": READER.replace("),", ").to(device),")}, [6]),
        ({"pkg/files.py": "def read(path): ...\n"}, [6]),
        ({"pkg/run.py": READS.replace("torch.from_numpy(x)", "x.cuda()")}, [6]),
        ({"pkg/run.py": READS.replace("torch.from_numpy(x)", "x")}, [6]),
        ({"pkg/run.py": "from .kernels import check\n\ntable = [check]\n"}, [6]),
    ],
)
def test_a_parameter_is_on_the_host_where_every_file_passes_such_a_tensor(
    tmp_path: Path, users: dict[str, str], lines: list[int]
) -> None:
    assert found(tmp_path, {"pkg/kernels.py": BRANCH, "pkg/files.py": READER, **users}, targets=("gaudi3",)) == lines


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


@pytest.mark.parametrize(
    ("statement", "files", "lines"),
    [
        ("from pkg.data.loaders import load", {}, []),
        ("from pkg.data.loaders import load", {"pkg/data/loaders.py": ""}, [5]),
        ("from pkg.data.loaders import load", {"pkg/data/loaders.pyx": ""}, [5]),
        ("from pkg.data.loaders import load", {"pkg/data/__init__.py": "from lib import loaders\n"}, [5]),
        ("from pkg.data.loaders_pb2 import load", {}, [5]),
        ("from elsewhere.loaders import load", {}, [5]),
        ("try:\n    from pkg.data.loaders import load\nexcept ImportError: load = None", {}, [7]),
    ],
)
def test_a_file_that_loads_what_its_package_does_not_have(
    tmp_path: Path, statement: str, files: dict[str, str], lines: list[int]
) -> None:
    code = f"import torch\n{statement}\n\ndef run():\n    return load(torch.zeros(4, device='cuda'))\n"
    packages = {"pkg/__init__.py": "", "pkg/data/__init__.py": ""}
    assert found(tmp_path, {**packages, "pkg/run.py": code, **files}, "pkg/run.py") == lines
