"""What guards of Python code come to on a target, and what names refer to."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from portlint.condition import UNKNOWN, Environment, evaluate, is_live
from portlint.source import Source
from portlint.source.node import Node
from portlint.target import load

HEADER = "import torch\nimport sys\n"


def source(code: str) -> Source:
    return Source("code.py", textwrap.dedent(code).encode(), "python")


def here(code: str) -> Node:
    """The call `here()` in a piece of code."""
    root = source(code).root
    return next(call for call in root.walk("call") if call["function"].text == "here")


def live(code: str, target: str) -> bool | None:
    """Whether `here()` can run on a target; None if that is not known."""
    outcome = is_live(here(HEADER + textwrap.dedent(code)).guards, load(target).queries())
    return None if outcome is UNKNOWN else bool(outcome)


def lives_on(code: str, *targets: str) -> dict[str, bool | None]:
    return {target: live(code, target) for target in targets}


AVAILABLE = {"hopper": True, "cdna3": True, "mps": False, "tpu-v6e": False, "cpu": False}


@pytest.mark.parametrize(
    "code",
    [
        "if torch.cuda.is_available(): here()",
        "if not torch.cuda.is_available(): pass\nelse: here()",
        "torch.cuda.is_available() and here()",
        "not torch.cuda.is_available() or here()",
        "x = here() if torch.cuda.is_available() else 0",
        "assert torch.cuda.is_available()\nhere()",
        "while torch.cuda.is_available(): here()",
        "x = [here() for i in y if torch.cuda.is_available()]",
        "if not torch.cuda.is_available(): sys.exit(1)\nhere()",
        "if not torch.cuda.is_available(): raise SystemExit\nhere()",
        "def f():\n    if not torch.cuda.is_available():\n        return\n    here()",
        "for x in y:\n    if not torch.cuda.is_available():\n        continue\n    here()",
        "if torch.cuda.is_available(): pass\nelse: raise SystemExit\nhere()",
        "if torch.device('cuda').type == device.type: here()",
        "if x.is_cuda: here()",
        "if x.device.type == 'cuda': here()",
        "if 'cuda' in str(device): here()",
        "if device.startswith('cuda'): here()",
        "if args.device == 'cuda': here()",
        "if config.accelerator == 'cuda': here()",
        "if hardware_type != 'cuda': raise ValueError\nhere()",
        "if device.type in ('cuda',): here()",
        "if getattr(x, 'is_cuda'): here()",
        "match device.type:\n    case 'cuda': here()",
        "match device.type:\n    case 'mps' | 'cpu' | 'xla': pass\n    case _: here()",
    ],
)
def test_a_test_of_the_device_in_any_spelling(code: str) -> None:
    assert lives_on(code, *AVAILABLE) == AVAILABLE


@pytest.mark.parametrize(
    "code",
    [
        "HAS = torch.cuda.is_available()\nif HAS: here()",
        "def has(): return torch.cuda.is_available()\nif has(): here()",
        "class A:\n    def __init__(self):\n        on = torch.cuda.is_available()\n        if on: here()",
        "def f():\n    here()\nif torch.cuda.is_available(): f()",
        "class A:\n    def run(self):\n        if self.x.is_cuda: self._wait()\n    def _wait(self):\n        here()",
        "def a():\n    b()\ndef b():\n    here()\nif torch.cuda.is_available(): a()",
    ],
)
def test_flags_helpers_and_callers_are_followed(code: str) -> None:
    assert lives_on(code, *AVAILABLE) == AVAILABLE


@pytest.mark.parametrize(
    "code",
    [
        "if torch.cuda.device_count() > 1: here()",
        "for i in range(torch.cuda.device_count()): here()",
        "x = [here() for i in range(torch.cuda.device_count())]",
        "if torch.distributed.get_backend() == 'nccl': here()",
        "if args.use_gpu: here()",
    ],
)
def test_what_a_gpu_is_needed_for_and_does_not_suffice_for(code: str) -> None:
    assert lives_on(code, "hopper", "cdna3", "mps", "cpu") == {
        "hopper": None,
        "cdna3": None,
        "mps": False,
        "cpu": False,
    }


WORKER = """
def worker(rank):
    here()

{mark}
def test_worker():
    {run}
"""


@pytest.mark.parametrize("run", ["spawn(worker, 2)", "run(target=worker)", "start([worker])", "worker.remote(1)"])
def test_a_worker_runs_where_it_is_passed_on(run: str) -> None:
    marked = WORKER.format(mark="@pytest.mark.skipif(torch.cuda.device_count() < 2)", run=run)
    assert lives_on("import pytest\n" + marked, "hopper", "mps") == {"hopper": None, "mps": False}
    assert live(WORKER.format(mark="", run=run), "mps") is True


def test_what_set_up_skips_no_test_of_the_class_runs() -> None:
    code = """
class TestKernels(TestCase):
    def setUp(self):
        if not jtu.test_device_matches(["cuda"]) or not jtu.is_cuda_compute_capability_at_least("9.0"):
            self.skipTest("needs Hopper")

    def test_kernel(self):
        here()
"""
    assert lives_on(code, "hopper", "cdna3", "tpu-v6e", "cpu") == {
        "hopper": None,
        "cdna3": False,
        "tpu-v6e": False,
        "cpu": False,
    }


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("if torch.cuda.get_device_capability() < (9, 0): pytest.skip()\nhere()", {"hopper": True, "mps": False}),
        ("if current_platform.is_device_capability(90): here()", {"hopper": True, "cdna3": False, "mps": False}),
        ("if current_platform.has_device_capability(90): here()", {"hopper": True, "cdna3": True, "mps": False}),
        ("if torch.cuda.get_device_capability()[0] >= 8: here()", {"hopper": True, "mps": False}),
        ("here() if not hasattr(torch, 'accelerator') else None", {"hopper": False, "mps": False}),
    ],
)
def test_a_capability_that_is_not_there_is_less_than_any(code: str, expected: dict[str, bool]) -> None:
    assert lives_on(f"import pytest\n{code}", *expected) == expected


@pytest.mark.parametrize("leaving", ["pytest.skip('broken')", "return", "raise RuntimeError", "sys.exit()"])
def test_nothing_runs_after_leaving(leaving: str) -> None:
    code = f"import pytest\ndef test_it():\n    {leaving}\n    here()\n"
    assert lives_on(code, "hopper", "mps") == {"hopper": False, "mps": False}


@pytest.mark.parametrize(("package", "mps"), [("triton", False), ("triton.language", False), ("numpy", None)])
def test_a_package_that_a_target_lacks_skips_what_follows(package: str, mps: bool | None) -> None:
    code = f"import pytest\nkernels = pytest.importorskip('{package}')\n\ndef test_it():\n    here()\n"
    assert lives_on(code, "hopper", "mps") == {"hopper": None, "mps": mps}


FIXTURES = """
import pytest

def _require_cuda():
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")

@pytest.fixture({arguments})
def kernels():
    _require_cuda()
    return load()

def test_kernel({parameters}):
    here()
"""


@pytest.mark.parametrize(
    ("arguments", "parameters", "mps"),
    [("autouse=True", "", False), ("", "x, kernels: Kernels", False), ("", "x", True)],
)
def test_fixtures_that_skip(arguments: str, parameters: str, mps: bool) -> None:
    code = FIXTURES.format(arguments=arguments, parameters=parameters)
    assert lives_on(code, "hopper", "mps") == {"hopper": True, "mps": mps}


@pytest.mark.parametrize(
    ("platforms", "expected"),
    [
        ("['gpu']", {"hopper": None, "cdna3": None, "tpu-v6e": False}),
        ("['cpu', 'tpu']", {"hopper": False, "cdna3": False, "tpu-v6e": True}),
        ("NAMES", {"hopper": None, "cdna3": None, "tpu-v6e": None}),
    ],
)
def test_platforms_that_jax_tests_run_on(platforms: str, expected: dict[str, bool | None]) -> None:
    assert lives_on(f"if jtu.test_device_matches({platforms}): here()", *expected) == expected


def test_a_registered_function_may_run_anywhere() -> None:
    code = "@registry.register('x')\ndef step():\n    here()\n\nif torch.cuda.is_available():\n    step()\n"
    assert live(code, "mps") is True


@pytest.mark.parametrize(
    ("check", "mps"),
    [
        ("if not torch.cuda.is_available(): raise RuntimeError", False),
        ("assert torch.cuda.is_available()", False),
        ("if not torch.cuda.is_available(): return", True),
        ("if x is None: return\n    if not torch.cuda.is_available(): raise RuntimeError", True),
    ],
)
def test_a_check_that_raises_is_a_guard_of_what_follows(check: str, mps: bool) -> None:
    code = f"def check(x):\n    {check}\n\ndef run(x):\n    check(x)\n    here()\n"
    assert lives_on(code, "hopper", "mps") == {"hopper": True, "mps": mps}


@pytest.mark.parametrize("getter", ["infer_device", "get_device_type", "current_accelerator", "get_torch_device"])
def test_a_project_function_for_the_device_is_compared_with_a_name(getter: str) -> None:
    code = f"from utils import {getter}\nif {getter}() == 'xpu': here()"
    assert lives_on(code, "hopper", "cdna3", "xpu") == {"hopper": False, "cdna3": False, "xpu": True}


@pytest.mark.parametrize(
    ("mark", "hopper", "cdna3"),
    [
        ("disable_on_rocm", True, False),
        ("skipIfRocm", True, False),
        ("skipIfRocm(reason='slow')", True, False),
        ("skipIfRocm(arch=('gfx942',))", True, True),
        ("rocm_only", False, True),
        ("skip_if_not_rocm", False, True),
        ("skip_slow", None, None),
        ("RunIf(min_cuda_gpus=1)", True, True),
        ("retry_on_failure", True, True),
    ],
)
def test_marks_named_for_a_platform(mark: str, hopper: bool | None, cdna3: bool | None) -> None:
    code = f"@{mark}\ndef test_step():\n    here()\n"
    assert lives_on(code, "hopper", "cdna3") == {"hopper": hopper, "cdna3": cdna3}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("if torch.version.hip: here()", {"hopper": False, "cdna3": True, "cpu": False}),
        ("if torch.version.hip is None: here()", {"hopper": True, "cdna3": False, "cpu": True}),
        ("if torch.version.cuda is not None: here()", {"hopper": True, "cdna3": False, "cpu": False}),
        ("if x.device.type != 'cpu': here()", {"hopper": True, "mps": True, "cpu": False}),
        ("if sys.platform == 'darwin': here()", {"mps": True, "cpu": False}),
        (
            "major, minor = torch.cuda.get_device_capability()\nif major >= 10: here()",
            {"hopper": False, "blackwell": True},
        ),
        ("if torch.cuda.get_device_capability() == (9, 0): here()", {"hopper": True, "blackwell": False}),
        ("if 8 <= props.major < 10: here()", {"hopper": True, "blackwell": False}),
        ("if props.gcnArchName.startswith(('gfx94', 'gfx90')): here()", {"cdna3": True, "cdna4": False}),
        ("if USE_ROCM: here()", {"hopper": False, "cdna3": True}),
        ("if args.verbose: here()", {"hopper": None, "cpu": None}),
        ("if hasattr(torch, 'hip'): here()", {"hopper": False, "cdna3": False}),
    ],
)
def test_what_tells_targets_apart(code: str, expected: dict[str, bool | None]) -> None:
    assert lives_on(code, *expected) == expected


def test_the_backend_of_triton() -> None:
    code = "import triton\nif triton.runtime.driver.active.get_current_target().backend == 'hip': here()"
    assert lives_on(code, "hopper", "cdna3") == {"hopper": False, "cdna3": True}


def test_code_for_type_checkers_never_runs() -> None:
    assert live("from typing import TYPE_CHECKING\nif TYPE_CHECKING: here()", "hopper") is False


@pytest.mark.parametrize(
    "code",
    [
        "if torch.cuda.is_available(): pass\nhere()",
        "if torch.cuda.is_available():\n    def f(): pass\ndef g(): here()",
        "if not torch.cuda.is_available(): print()\nhere()",
        "def f(): here()\nif torch.cuda.is_available(): f()\nf()",
        "def f(): here()\nif torch.cuda.is_available(): f()\ntable = [f]",
        "class A:\n    def run(self): here()\nif torch.cuda.is_available(): A().run()",
        "def f():\n    f()\n    here()",
    ],
)
def test_code_that_no_test_guards_runs_everywhere(code: str) -> None:
    assert lives_on(code, "hopper", "cpu") == {"hopper": True, "cpu": True}


@pytest.mark.parametrize(
    "mark",
    [
        "@pytest.mark.skipif(not torch.cuda.is_available(), reason='GPU')",
        "@pytest.mark.skipif(condition=not torch.cuda.is_available(), reason='GPU')",
        "@unittest.skipIf(not torch.cuda.is_available(), 'GPU')",
        "@unittest.skipUnless(torch.cuda.is_available(), 'GPU')",
        "@pytest.mark.gpu",
        "@require_torch_gpu",
        "@skip_if_no_cuda",
    ],
)
def test_skip_marks(mark: str) -> None:
    imports = "import pytest, unittest\n"
    assert lives_on(f"{imports}{mark}\ndef test(): here()", "hopper", "cpu") == {"hopper": True, "cpu": False}
    in_class = f"{imports}{mark}\nclass Test:\n    def test(self): here()"
    assert lives_on(in_class, "hopper", "cpu") == {"hopper": True, "cpu": False}


def test_marks_of_a_module() -> None:
    code = (
        "import pytest\npytestmark = [pytest.mark.skipif(not torch.cuda.is_available(), reason='')]\ndef test(): here()"
    )
    assert lives_on(code, "hopper", "cpu") == {"hopper": True, "cpu": False}


def test_a_module_that_is_skipped() -> None:
    code = "import pytest\nif not torch.cuda.is_available():\n    pytest.skip('', allow_module_level=True)\nhere()"
    assert lives_on(code, "hopper", "cpu") == {"hopper": True, "cpu": False}


def test_a_guard_shows_its_text_and_line() -> None:
    (guard,) = here("import torch\n\nif (torch.cuda\n    .is_available()):\n    here()\n").guards
    assert (guard.text, guard.line, guard.expected) == ("(torch.cuda .is_available())", 3, True)


def test_a_long_chain_of_functions_is_not_followed_forever() -> None:
    chain = "".join(f"def f{i}(): f{i + 1}()\n" for i in range(2000)) + "def f2000(): here()\n"
    assert live(chain + "if torch.cuda.is_available(): f0()", "cpu") is True


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import torch\ntorch.cuda.synchronize()", "torch.cuda.synchronize"),
        ("import torch as t\nt.cuda.synchronize()", "torch.cuda.synchronize"),
        ("import torch.cuda as tc\ntc.synchronize()", "torch.cuda.synchronize"),
        ("import torch.cuda\ntorch.cuda.synchronize()", "torch.cuda.synchronize"),
        ("from torch import cuda\ncuda.synchronize()", "torch.cuda.synchronize"),
        ("from torch.cuda import synchronize as wait\nwait()", "torch.cuda.synchronize"),
        ("import torch\nwait = torch.cuda.synchronize\nwait()", "torch.cuda.synchronize"),
        ("import torch\ncuda = torch.cuda\nwait = cuda.synchronize\nwait()", "torch.cuda.synchronize"),
        ("def f():\n    import torch\n    torch.cuda.synchronize()", "torch.cuda.synchronize"),
        ("from . import torch\ntorch.cuda.synchronize()", "..torch.cuda.synchronize"),
        ("float(x)", "float"),
        ("def float(x): pass\nfloat(x)", ""),
        ("def f(torch): torch.cuda.synchronize()", ""),
        ("import torch\ndef f(torch): torch.cuda.synchronize()", ""),
        ("a = b\nb = a\na()", ""),
        ("f()()", ""),
        ("x[0].y()", ""),
    ],
)
def test_names(code: str, name: str) -> None:
    assert list(source(code).root.walk("call"))[0 if code == "f()()" else -1].name == name


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("any(one in arch for one in ('gfx94', 'gfx90a'))", True),
        ("any(one in arch for one in ('gfx95', 'gfx12'))", False),
        ("any(arch.startswith(one) for one in ['gfx94'])", True),
        ("any([one == arch for one in ('gfx942',)])", True),
        ("all(one in arch for one in ('gfx', '94'))", True),
        ("any(one in arch for one in others)", UNKNOWN),
        ("any(f(one, arch) for one in ('gfx94', 'gfx90a'))", UNKNOWN),
        ("any(one in arch for one in ('gfx94',) if one)", UNKNOWN),
    ],
)
def test_one_of_several_words(test: str, expected: object) -> None:
    code = f"import torch\narch = torch.cuda.get_device_properties(0).gcnArchName\nif {test}: pass\n"
    statement = next(Source("a.py", code.encode(), "python").root.walk("if_statement"))
    assert evaluate(statement["condition"].holds.condition, Environment({"gcn_arch": "gfx942"})) is expected


@pytest.mark.parametrize(
    "code",
    [
        "pytest.param(here(), 2, marks=pytest.mark.skipif(not torch.cuda.is_available()))",
        "pytest.param(here(), marks=[pytest.mark.slow, pytest.mark.gpu])",
        "pytest.param(here(), marks=(RunIf(min_cuda_gpus=1),))",
    ],
)
def test_the_marks_of_one_case_of_a_test(code: str) -> None:
    assert lives_on("import pytest\n" + code, *AVAILABLE) == AVAILABLE


@pytest.mark.parametrize(
    "code",
    [
        "if kind == Backend.CUDA: here()",
        "if kind is DeviceType.CUDA: here()",
        "if self.distributed_type == DistributedType.MULTI_GPU: here()",
        "if kind != Backend.CUDA: raise ValueError\nhere()",
    ],
)
def test_a_member_of_an_enumeration_named_for_cuda(code: str) -> None:
    assert lives_on(code, "hopper", "cdna3", "mps", "cpu") == {
        "hopper": None,
        "cdna3": None,
        "mps": False,
        "cpu": False,
    }


@pytest.mark.parametrize("place", ["cuda.py", "cuda/ops.py", "cuda/kernels/scan.py"])
@pytest.mark.parametrize(("sibling", "expected"), [("mps", False), ("utils", True)])
def test_a_file_of_cudas_own_beside_those_of_other_machines(
    place: str, sibling: str, expected: bool, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "backends" / sibling).mkdir(parents=True)
    (tmp_path / "backends" / "cuda").mkdir()
    file = str(tmp_path / "backends" / place)
    guards = next(Source(file, b"here()\n", "python", file).root.walk("call")).guards
    assert is_live(guards, load("mps").queries()) is expected
    assert is_live(guards, load("cdna3").queries()) is True


@pytest.mark.parametrize(
    ("place", "runs_on_mps"),
    [("extensions/hpu/run.py", False), ("src/ops_hpu/run.py", False), ("src/hpus/run.py", True), ("src/run.py", True)],
)
def test_a_folder_for_one_machine_beside_the_rest_of_a_project(place: str, runs_on_mps: bool, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    for name in (place, "extensions/hpu/run.py", "src/run.py", "src/train.py", "src/test.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    file = str(tmp_path / place)
    guards = next(Source(file, b"here()\n", "python", file).root.walk("call")).guards
    assert is_live(guards, load("gaudi3").queries()) is True
    assert is_live(guards, load("mps").queries()) is runs_on_mps


def test_a_project_that_is_for_one_machine_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "habana").mkdir()
    file = tmp_path / "habana" / "run.py"
    file.touch()
    guards = next(Source(str(file), b"here()\n", "python", str(file)).root.walk("call")).guards
    assert not guards


@pytest.mark.parametrize(
    "code",
    [
        "if any(d.platform == 'gpu' for d in jax.devices()): here()",
        "assert all(map(lambda d: d.platform == 'gpu', jax.devices()))\nhere()",
        "devices = jax.devices()\nif devices[0].platform == 'gpu': here()",
        "device = jax.devices()[0]\nif device.platform == 'gpu': here()",
    ],
)
def test_what_jax_lists_as_devices(code: str) -> None:
    known = {target: live(f"import jax\n{code}", target) for target in ("hopper", "cdna3", "tpu-v6e", "cpu")}
    assert known == {"hopper": True, "cdna3": True, "tpu-v6e": False, "cpu": False}


BACKWARD = """
def forward(x):
    y = launch(x)
    return y, x

def launch(x):
    assert torch.cuda.is_available()
    return x

def backward(x, dy):
    here()

attention.defvjp(forward, backward)
"""
SET_UP_OF_BASE = """
class A(Case):
    def setUp(self):
        if not torch.cuda.is_available():
            self.skipTest("for GPUs")

class B(A):
    def test_it(self):
        here()
"""
IS_HIP = """
def is_hip_or_old():
    try:
        if triton.runtime.driver.active.get_current_target().backend == "hip":
            return True
        elif torch.cuda.get_device_capability()[0] < 9:
            return True
        return False
    except Exception:
        return False
"""
HAS_PACKAGE = """
def has_package():
    try:
        import deep_gemm
    except ImportError:
        return False
    return True
"""


@pytest.mark.parametrize(
    "code",
    [
        "if config.hardware in ('gpu', 'gpu_multiprocess'): here()",
        "if hardware == 'gpu': here()",
        "def fits():\n    if not torch.cuda.is_available():\n        return False\n    return n > 1\nif fits(): here()",
        SET_UP_OF_BASE,
        BACKWARD,
        "if gpus:\n    n = 2\nelif torch.cuda.is_available():\n    n = 1\nelse:\n    sys.exit()\nhere()",
    ],
)
def test_what_no_machine_without_a_gpu_gets_to(code: str) -> None:
    assert lives_on(code, "hopper", "mps", "tpu-v6e") | {"hopper": True} == {
        "hopper": True,
        "mps": False,
        "tpu-v6e": False,
    }


@pytest.mark.parametrize(
    "code",
    [
        "def fits(n):\n    if n: return True\n    if not torch.cuda.is_available():\n        return False\n"
        "    return True\nif fits(n): here()",
        "if config.hardware in ('gpu', 'tpu'): here()",
        "if any(d.platform == 'gpu' for d in given): here()",
    ],
)
def test_what_a_machine_without_a_gpu_may_get_to(code: str) -> None:
    assert lives_on(code, "mps", "tpu-v6e") == {"mps": None, "tpu-v6e": None}


def test_jax_that_is_kept_to_the_cpu(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "conftest.py").write_text("import jax\njax.config.update('jax_platforms', 'cpu')\n")

    def runs(name: str, code: str) -> dict[str, bool | None]:
        file = str(tmp_path / "tests" / name)
        call = Source(file, code.encode(), "python", file).root
        guards = next(call.walk("call")).guards
        found = {target: is_live(guards, load(target).queries()) for target in ("hopper", "tpu-v6e", "cpu")}
        return {target: None if one is UNKNOWN else bool(one) for target, one in found.items()}

    on_the_host = {"hopper": False, "tpu-v6e": False, "cpu": True}
    everywhere = {"hopper": True, "tpu-v6e": True, "cpu": True}
    assert runs("test_it.py", "import jax\nhere()") == on_the_host
    assert runs("test_it.py", "import jax\nimport torch\nhere()") == everywhere
    assert runs("test_gpu_copies.py", "here()") == {"hopper": True, "tpu-v6e": False, "cpu": False}
    assert runs("test_it.py", "here()") == everywhere


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (IS_HIP + "if is_hip_or_old(): here()", {"cdna3": True, "hopper": False, "ampere": True}),
        (IS_HIP + "if not is_hip_or_old(): here()", {"cdna3": False, "hopper": True, "ampere": False}),
        (HAS_PACKAGE + "if has_package(): here()", {"cdna3": False}),
        (HAS_PACKAGE + "if not has_package(): here()", {"cdna3": True}),
        (
            "try:\n    import deep_gemm\n    HAS = True\nexcept ImportError:\n    HAS = False\nif HAS: here()",
            {"cdna3": False},
        ),
        (
            "HAS = False\ntry: import deep_gemm\nexcept ImportError: pass\nelse: HAS = True\nif HAS: here()",
            {"cdna3": False},
        ),
        (
            "try:\n    import numpy\n    HAS = True\nexcept ImportError:\n    HAS = False\nif HAS: here()",
            {"cdna3": None},
        ),
        ("import importlib.util\nif importlib.util.find_spec('deep_gemm'): here()", {"cdna3": False}),
        ("import importlib.util\nif importlib.util.find_spec('deep_gemm') is None: here()", {"cdna3": True}),
        (
            "def f(kind):\n    if kind == 'mps':\n        return False\n    return True\nif f('mps'): here()",
            {"cdna3": False},
        ),
        (
            "def f(kind='mps'):\n    if kind == 'mps':\n        return False\n    return True\nif f(): here()",
            {"cdna3": False},
        ),
        (
            "def f(kind):\n    if kind == 'mps':\n        return False\n    return True\nif f(x): here()",
            {"cdna3": None},
        ),
        ("assert current_platform.is_cuda(), 'only CUDA'\nhere()", {"cdna3": False, "hopper": True}),
        ("def f():\n    for x in y:\n        return True\n    return False\nif f(): here()", {"cdna3": None}),
        (
            "def f():\n    if torch.version.hip:\n        raise RuntimeError\n    return True\nif f(): here()",
            {"cdna3": None, "hopper": True},
        ),
    ],
)
def test_small_predicates_path_by_path(code: str, expected: dict[str, bool | None]) -> None:
    assert lives_on(code, *expected) == expected


@pytest.mark.parametrize("expecting", ["pytest.raises(ValueError)", "self.assertRaises(ValueError) as caught"])
def test_what_is_expected_to_fail(expecting: str) -> None:
    assert live(f"with {expecting}:\n    here()", "hopper") is False
    assert live(f"with {expecting}:\n    pass\nhere()", "hopper") is True


@pytest.mark.parametrize(
    ("enabled", "expected"),
    [("torch.version.hip is None", False), ("torch.version.hip", True), ("False", True), ("torch.zeros(1)", None)],
)
def test_what_a_decorator_registers_by_a_flag(enabled: str, expected: bool | None) -> None:
    assert live(f"@register_benchmark(enabled={enabled})\ndef bench(x):\n    here()\n", "cdna3") is expected


def test_a_flag_that_is_a_constant_of_triton() -> None:
    code = "import triton.language as tl\nIS_CUDA = tl.constexpr(torch.version.cuda is not None)\nif IS_CUDA: here()"
    assert lives_on(code, "cdna3", "hopper") == {"cdna3": False, "hopper": True}
