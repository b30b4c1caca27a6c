"""What is known of Python values: constants, choices, dtypes, places, and in what kind of code they stand."""

from __future__ import annotations

import textwrap

import pytest

from portlint.source import Source
from portlint.source.node import Node

IMPORTS = (
    "import numpy as np\nimport torch\nimport torch_xla\nimport jax\nimport jax.numpy as jnp\n"
    "from torch import float64 as f64\n"
)


def parsed(code: str) -> Node:
    return Source("code.py", textwrap.dedent(code).encode(), "python").root


def value(code: str) -> Node:
    """The value of the last assignment to `it`."""
    found = [one for one in parsed(code).walk("assignment") if one["left"].text == "it"]
    return found[-1]["right"]


def roles(node: Node, *names: str) -> set[str]:
    return {name for name in names if node.role(name)}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("it = 0x20", 32),
        ("it = 1_024", 1024),
        ("it = -1", -1),
        ("it = ~0", -1),
        ("it = 2 ** 5 * (3 - 1)", 64),
        ("it = 1 << 5", 32),
        ("it = 7 // 2 + 7 % 2", 4),
        ("it = 'cu' 'da'", "cuda"),
        ("it = [1, 2] + [3]", (1, 2, 3)),
        ("it = (8, 'x', True)", (8, "x", True)),
        ("A = 4\nB = A * 8\nit = B", 32),
        ("A, B = 4, 8\nit = B", 8),
        ("A = 4\ndef f():\n    it = A", 4),
        ("A = 4\nA = 5\nit = A", None),
        ("def f(a=4):\n    it = a", None),
        ("class C:\n    A = 4\n    def f(self):\n        it = A", None),
        ("it = f'cuda:{rank}'", None),
        ("it = 1 / 0", None),
        ("it = 2 ** 100", None),
        ("it = 1 << 100", None),
        ("it = 9 ** 9 ** 9", None),
        ("it = a", None),
        ("it = None", None),
        ("a = b\nb = a\nit = a", None),
    ],
)
def test_constants(code: str, expected: object) -> None:
    assert value(code).constant == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("it = 4", [4]),
        ("it = 32 if big else 8", [32, 8]),
        ("it = 32 if a else (16 if b else 8)", [32, 16, 8]),
        ("w = 32 if big else 8\nit = w", [32, 8]),
        ("for w in [4, 8]:\n    it = w", [4, 8]),
        ("ALL = (4, 8)\nfor w in ALL:\n    it = w", [4, 8]),
        ("for w in [4, other()]:\n    it = w", []),
        ("for w in widths():\n    it = w", []),
        ("it = width()", []),
    ],
)
def test_choices(code: str, expected: list[int]) -> None:
    assert [one.constant for one in value(code).choices] == expected


def test_choices_of_a_comprehension() -> None:
    call = next(parsed("x = [f(w) for w in [2, 4] for s in [1]]").walk("call"))
    assert [one.constant for one in call.arguments[0].choices] == [2, 4]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("it = f'sm_{90}'", ["sm_90"]),
        ("for a in ('80', '90'):\n    it = f'arch=compute_{a},code=sm_{a}'", None),
        ("for a in ('80', '90'):\n    it = f'sm_{a}'", ["sm_80", "sm_90"]),
        ("it = f'sm_{arch}'", []),
        ("it = 'plain'", ["plain"]),
    ],
)
def test_texts_of_a_string(code: str, expected: list[str] | None) -> None:
    texts = value(code).variants
    if expected is None:
        assert {"arch=compute_80,code=sm_80", "arch=compute_90,code=sm_90"} <= set(texts)
    else:
        assert texts == expected


def test_the_texts_of_a_string_are_bounded() -> None:
    many = "[" + ", ".join(map(str, range(50))) + "]"
    assert len(value(f"for a in {many}:\n    for b in {many}:\n        it = f'{{a}}{{b}}'").variants) <= 64


def test_where_the_text_of_a_string_is_decided() -> None:
    node = value("ALL = ['80', '90']\nfor a in ALL:\n    it = f'sm_{a}'")
    assert node.origin.text == "['80', '90']"


DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "bool", "complex64", "complex128")


@pytest.mark.parametrize(
    ("expression", "dtype", "kind", "place"),
    [
        ("np.zeros(3)", "float64", "array", "on-host"),
        ("np.linspace(0, 1, 5)", "float64", "array", "on-host"),
        ("np.zeros(3, dtype=np.float32)", "float32", "array", "on-host"),
        ("np.array([1.0, 2.0])", "float64", "array", "on-host"),
        ("np.array([1, 2])", "int64", "array", "on-host"),
        ("np.array([1, 2]) / 3", "float64", "array", "on-host"),
        ("np.array([1, 2]) * 0.5", "float64", "array", "on-host"),
        ("np.array([[0.5, 1], [2, 3]])", "float64", "array", "on-host"),
        ("np.array([np.zeros(2), np.ones(2)])", "float64", "array", "on-host"),
        ("np.zeros(3, np.float32) * 2.0", "float32", "array", "on-host"),
        ("np.full(3, 0.5)", "float64", "array", "on-host"),
        ("np.full(3, 1)", "int64", "array", "on-host"),
        ("np.arange(0, 1, 0.1)", "float64", "array", "on-host"),
        ("np.arange(8)", "int64", "array", "on-host"),
        ("np.arange(n)", "", "array", "on-host"),
        ("np.arange(8).mean()", "float64", "array", "on-host"),
        ("np.asarray(x) / 255.0", "", "array", "on-host"),
        ("np.argmax(np.zeros(3))", "int64", "array", "on-host"),
        ("np.random.default_rng(0).normal(size=3)", "float64", "array", "on-host"),
        ("np.where(x > 0, np.zeros(3), 1.0)", "float64", "array", "on-host"),
        ("np.zeros(3).tolist()", "", "scalar", "on-host"),
        ("torch.tensor(np.zeros(3).tolist())", "", "tensor", "on-host"),
        ("torch.tensor(np.sqrt(2.0))", "float64", "tensor", "on-host"),
        ("torch.tensor(2.0)", "", "tensor", "on-host"),
        ("torch.Tensor(np.zeros(3))", "float32", "tensor", "on-host"),
        ("torch.DoubleTensor([1])", "float64", "tensor", "on-host"),
        ("torch.ones(2).type(torch.DoubleTensor)", "float64", "tensor", "on-host"),
        ("torch.ones(2).new_zeros(3, dtype=torch.float64)", "float64", "tensor", "on-host"),
        ("torch.ones(2).sum(dtype=torch.float64)", "float64", "tensor", "on-host"),
        ("torch.ones(2).long() * 0.5", "", "tensor", "on-host"),
        ("torch.ones(2).double().to(torch.complex64)", "complex64", "tensor", "on-host"),
        ("torch.view_as_complex(torch.ones(2).double())", "complex128", "tensor", "on-host"),
        ("torch.view_as_complex(torch.ones(2).double()).real", "float64", "tensor", "on-host"),
        ("np.stack([np.ones(2), np.ones(2)])", "float64", "array", "on-host"),
        ("np.zeros(3).astype('float32')", "float32", "array", "on-host"),
        ("np.random.randn(3).mean(axis=0)", "float64", "array", "on-host"),
        ("np.sqrt(np.ones(3))", "float64", "array", "on-host"),
        ("np.ones(3) * 2.0", "float64", "array", "on-host"),
        ("torch.zeros(3)", "", "tensor", "on-host"),
        ("torch.zeros(3, device='cpu')", "", "tensor", "on-host"),
        ("torch.zeros(3, device='cuda')", "", "tensor", "on-device"),
        ("torch.zeros(3, device=device)", "", "tensor", "on-device"),
        ("torch.zeros(3, device=torch.device('cpu'))", "", "tensor", "on-host"),
        ("torch.zeros(3, dtype=torch.double)", "float64", "tensor", "on-host"),
        ("torch.zeros(3, dtype=f64)", "float64", "tensor", "on-host"),
        ("torch.from_numpy(np.zeros(3))", "float64", "tensor", "on-host"),
        ("torch.from_numpy(np.zeros(3)).to(device)", "float64", "tensor", "on-device"),
        ("torch.from_numpy(np.zeros(3)).float().to(device)", "float32", "tensor", "on-device"),
        ("torch.from_numpy(np.zeros(3)).to(device, torch.float32)", "float32", "tensor", "on-device"),
        ("torch.as_tensor(np.zeros(3), dtype=torch.float32)", "float32", "tensor", "on-host"),
        ("torch.tensor(np.zeros(3), device=device)", "float64", "tensor", "on-device"),
        ("torch.ones(2, device=device).double()", "float64", "tensor", "on-device"),
        ("torch.ones(2, device=device).cpu()", "", "tensor", "on-host"),
        ("torch.ones(2).cuda()", "", "tensor", "on-device"),
        ("torch.ones(2, device=device).half().T", "float16", "tensor", "on-device"),
        (
            "torch.ones(2, device=device) + torch.ones(2, dtype=torch.float64, device=device)",
            "float64",
            "tensor",
            "on-device",
        ),
        ("torch.ones(2, device=device) > 0", "bool", "tensor", "on-device"),
        ("(torch.ones(2, device=device) > 0).sum()", "int64", "tensor", "on-device"),
        ("torch.nonzero(torch.ones(2, device=device) > 0)", "int64", "tensor", "on-device"),
        ("torch.isnan(torch.ones(2, device=device)).any()", "bool", "tensor", "on-device"),
        ("torch.ones(2, device=device).numpy()", "", "array", "on-host"),
        ("jnp.zeros(3)", "", "traced", "on-device"),
        ("jnp.zeros(3, dtype=jnp.bfloat16)", "bfloat16", "traced", "on-device"),
        ("jnp.zeros(3, jnp.bfloat16) * 2", "bfloat16", "traced", "on-device"),
        ("jnp.zeros(3, jnp.bfloat16) * anything()", "", "traced", "on-device"),
        ("jnp.linalg.qr(jnp.zeros((3, 3), jnp.float16))", "float16", "traced", "on-device"),
        ("jnp.matmul(jnp.zeros((3, 3), jnp.float16), anything())", "", "traced", "on-device"),
        ("torch.ones(3).long() * 2", "int64", "tensor", "on-host"),
        ("torch.ones(3).long() / 2", "", "tensor", "on-host"),
        ("torch.ones(3).long() * 0.5", "", "tensor", "on-host"),
        ("torch.ones(3).long() + unknown", "", "tensor", "on-host"),
        ("torch.FloatTensor(3, 3)", "float32", "tensor", "on-host"),
        ("torch.tril_indices(3, 3, device=device)", "", "tensor", "on-device"),
        ("torch.nn.Parameter(torch.zeros(3))", "", "tensor", "on-device"),
        ("torch.multiprocessing.Queue()", "", "", "on-device"),
        ("len(x)", "", "scalar", "on-host"),
        ("torch.ones(2, device=device).item()", "", "scalar", "on-host"),
        ("torch.ones(2, device=device).shape[0]", "", "scalar", "on-host"),
        ("anything()", "", "", "on-device"),
    ],
)
def test_dtype_and_place(expression: str, dtype: str, kind: str, place: str) -> None:
    node = value(f"{IMPORTS}it = {expression}")
    assert roles(node, *DTYPES) == ({dtype} if dtype else set())
    assert roles(node, "tensor", "array", "traced", "scalar") == ({kind} if kind else set())
    assert roles(node, "on-host", "on-device") == {place}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("def f(x: torch.Tensor):\n    it = x", "tensor"),
        ("def f(x: 'torch.Tensor | None' = None):\n    it = x", "tensor"),
        ("def f(xs: list[torch.Tensor]):\n    for x in xs:\n        it = x", "tensor"),
        ("def f(x: np.ndarray):\n    it = x", "array"),
        ("def f(x: jax.Array):\n    it = x", "traced"),
        ("def f(n: int):\n    it = n", "scalar"),
        ("class A:\n    pass\nit = A()", "object"),
        ("class A(torch.nn.Module):\n    pass\nit = A()", ""),
        ("x = torch.ones(1)\nx = x + 1\nit = x", "tensor"),
        ("def f(x: torch.Tensor):\n    x = x.to(d)\n    it = x", "tensor"),
        ("x = torch.ones(1)\nfor x in x:\n    it = x", "tensor"),
        ("x = torch.ones(1)\ny = (x := np.ones(1)) + x\nit = x", "array"),
        ("x = x\nit = x", ""),
        ("it = torch.ones(1) if a else torch.zeros(1)", "tensor"),
        ("it = torch.ones(1) if a else 0", ""),
        ("values, it_ = torch.sort(torch.ones(3))\nit = it_", "tensor"),
        ("model = make().to(device).eval()\nit = model.encode(1)", ""),
    ],
)
def test_kinds_through_names_and_annotations(code: str, kind: str) -> None:
    node = value(IMPORTS + code)
    assert roles(node, "tensor", "array", "traced", "scalar", "object") == ({kind} if kind else set())


@pytest.mark.parametrize(
    ("stores", "place"),
    [
        ("self.x = torch.ones(3)", "on-host"),
        ("self.x = torch.ones(3, device=device)", "on-device"),
        ("self.x = torch.ones(3)\n        self.x = self.x.to(device)", "on-device"),
        ("self.x = torch.nn.Parameter(torch.ones(3))", "on-device"),
        ("self.y = torch.ones(3)\n        self.x = self.y.log()", "on-host"),
        ("self.y = torch.ones(3)", "on-device"),
        ("self.x = x", "on-device"),
    ],
)
def test_where_an_attribute_is(stores: str, place: str) -> None:
    code = f"class A:\n    def __init__(self, x):\n        {stores}\n    def f(self):\n        it = self.x"
    assert roles(value(IMPORTS + code), "on-host", "on-device") == {place}


@pytest.mark.parametrize(
    ("code", "dtype"),
    [
        ("def f(n): return np.zeros(n)\nit = f(3)", "float64"),
        ("def f(n):\n    if n: return np.zeros(n)\n    return np.ones(1, dtype=np.float32)\nit = f(3)", ""),
        ("def f(n): yield np.zeros(n)\nit = f(3)", ""),
        ("@wrap\ndef f(n): return np.zeros(n)\nit = f(3)", ""),
        ("@staticmethod\ndef f(n): return np.zeros(n)\nit = f(3)", "float64"),
        ("def f(n): return np.zeros(n), 1\na, b = f(3)\nit = a", "float64"),
        ("def f(x):\n    it = x\nf(np.zeros(3))", "float64"),
        ("def f(x):\n    it = x\nf(np.zeros(3))\nf(np.zeros(3, dtype=np.float32))", ""),
        ("def f(x):\n    it = x\nf(np.zeros(3))\nf(other)", ""),
        ("class C:\n    def __init__(self, x):\n        it = x\nC(np.zeros(3))", "float64"),
        ("class C:\n    def f(self): return np.zeros(3)\n    def g(self):\n        it = self.f()", "float64"),
        ("class C:\n    def f(self): self.x = np.zeros(3)\n    def g(self):\n        it = self.x", "float64"),
        (
            "class C:\n    def f(self):\n        self.x = None\n        self.x = np.ones(1)\n        it = self.x",
            "float64",
        ),
        ("class C:\n    def f(self):\n        self.x = other()\n        self.x = np.ones(1)\n        it = self.x", ""),
        (
            "class C:\n    def f(self): self.register_buffer('x', torch.ones(1).double())\n"
            "    def g(self):\n        it = self.x",
            "float64",
        ),
        ("class C:\n    @property\n    def x(self): return np.ones(1)\n    def g(self): it = self.x", "float64"),
        ("d = {'x': np.ones(1), 'y': np.ones(1, np.float32)}\nit = d['x']", "float64"),
        ("d = {'x': np.ones(1), 'y': np.ones(1, np.float32)}\nit = d['y']", "float32"),
        ("d = {}\nd['x'] = np.ones(1)\nit = d['x']", "float64"),
        ("d = {'x': np.ones(1)}\nd['x'] = other\nit = d['x']", ""),
        ("xs = [np.ones(1), np.ones(1, np.float32)]\nit = xs[0]", "float64"),
        ("for x in [np.ones(1), np.zeros(1)]:\n    it = x", "float64"),
        ("xs = []\nfor i in y:\n    xs.append(np.ones(1))\nit = np.stack(xs)", "float64"),
        ("xs = []\nfor i in y:\n    xs.append(0.5)\nit = np.array(xs)", "float64"),
        ("xs = []\nfor i in y:\n    xs.append(f(i))\nit = np.array(xs)", ""),
        ("x = np.ones(1)\nx /= 2\nit = x", "float64"),
        ("x = np.ones(1)\nif y:\n    x = x.astype(np.float32)\nit = x", ""),
        ("x = np.ones(1)\nif y:\n    x = x * 2\nit = x", "float64"),
        ("x = None\nif y:\n    x = np.ones(1)\nit = x", "float64"),
        ("if y:\n    x = np.ones(1)\n    it = x", "float64"),
        ("def f(x: np.ndarray):\n    it = x\nf(np.zeros(3))", "float64"),
        ("import soundfile as sf\nx, rate = sf.read(p)\nit = x", "float64"),
        ("import soundfile as sf\nx, rate = sf.read(p, dtype='float32')\nit = x", "float32"),
        ("from PIL import Image\nit = np.array(Image.open(p).convert('RGB')) / 255.0", "float64"),
        ("from PIL import Image\nit = np.array(Image.open(p)) / 255.0", ""),
        ("import cv2\nit = cv2.imread(p) / 255.0", "float64"),
        ("a, b = np.meshgrid(np.zeros(2), np.zeros(2))\nit = a", "float64"),
    ],
)
def test_dtypes_through_the_file(code: str, dtype: str) -> None:
    assert roles(value(IMPORTS + code), *DTYPES) == ({dtype} if dtype else set())


def marked(code: str) -> Node:
    """The call `here()` in a piece of code."""
    return next(call for call in parsed(IMPORTS + code).walk("call") if call["function"].text == "here")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("here()", True),
        ("class A:\n    x = here()", True),
        ("def f(x=here()): pass", True),
        ("def f(): here()\nf()", True),
        ("def f(): here()", False),
        ("f = lambda: here()", False),
        ("if __name__ == '__main__': here()", False),
        ("def f(): here()\nif __name__ == '__main__': f()", False),
    ],
)
def test_what_runs_when_a_module_is_imported(code: str, expected: bool) -> None:
    assert marked(code).role("import-time") is expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("for x in y:\n    here()\n    loss.backward()", False),
        ("for x in range(3):\n    here()\n    optimizer.step()", False),
        ("for x in [1, 2]:\n    here()\n    optimizer.step()", False),
        ("for x in y:\n    here()\n    optimizer.step()\n    torch.cuda.synchronize()", False),
        ("while True:\n    here()\n    optimizer.step()", True),
        ("for x in y:\n    here()", False),
        ("for x in y:\n    loss.backward()\nhere()", False),
    ],
)
def test_loops_of_steps(code: str, expected: bool) -> None:
    assert marked(code).role("step-loop") is expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def training_step(self, batch): here()", True),
        ("def f(m, o):\n    m().backward()\n    o.step()\n    here()", True),
        ("def f(it):\n    batch = next(it)\n    here()", True),
        ("for x in loader:\n    model(x)\n    here()", True),
        ("while True:\n    i = model(i).argmax(-1)\n    here()", True),
        ("for x in loader:\n    here()", False),
        ("def training_step(self, batch):\n    def helper(): here()", False),
        ("class A(Dataset):\n    def training_step(self): here()", False),
    ],
)
def test_steps_that_are_functions_or_run_a_model(code: str, expected: bool) -> None:
    assert marked(code).role("step-loop") is expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("class A(Dataset):\n    def __getitem__(self, i): here()", True),
        ("class A(nn.Module):\n    def forward(self, i): here()", False),
        ("class Sampler(nn.Module):\n    def forward(self, i): here()", False),
        ("def collate_fn(rows): here()", True),
        ("def pad(rows): here()\nDataLoader(d, collate_fn=pad)", True),
        ("def log(loss): here()\nxm.add_step_closure(log, args=(loss,))", True),
        ("def f(rows): here()", False),
    ],
)
def test_code_that_works_on_the_host(code: str, expected: bool) -> None:
    assert marked(code).role("host-code") is expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(x: torch.Tensor):\n    it = x.max().item()", {"read-back"}),
        ("def f(x: torch.Tensor):\n    it = min(int(x.sum()), 4) + 1", {"read-back"}),
        ("def f(x: torch.Tensor):\n    n = x.tolist()\n    it = n[0]", {"read-back"}),
        ("def f(x: torch.Tensor):\n    it = len(x[x > 0])", {"read-back"}),
        ("def f(x: torch.Tensor):\n    it = x.nonzero().shape[0]", {"read-back"}),
        ("def f(x: torch.Tensor):\n    it = x[~(x > 0)].float()", {"sized-by-data"}),
        ("def f(x: torch.Tensor):\n    it = torch.where(x > 0)[0]", {"sized-by-data"}),
        ("def f(x: torch.Tensor):\n    it = x[x > 0].sum()", set()),
        ("def f(x: torch.Tensor):\n    it = x.cpu().max().item()", set()),
        ("def f(x: torch.Tensor):\n    it = x.shape[0]", set()),
        ("def f(x: int | torch.Tensor):\n    it = int(x)", set()),
        ("def f(x: torch.Tensor):\n    it = int(x) if isinstance(x, int) else 0", set()),
        ("def f(xs: list[int]):\n    it = max(xs)", set()),
        ("it = int(torch.randint(0, 4, (2,)).sum())", set()),
    ],
)
def test_numbers_and_sizes_that_depend_on_data(code: str, expected: set[str]) -> None:
    assert roles(value(IMPORTS + textwrap.dedent(code)), "read-back", "sized-by-data") == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("for i in x:\n    if i % 10 == 0: here()", True),
        ("for i in x:\n    if args.log_interval: here()", True),
        ("for i in x:\n    if rank == 0: here()", False),
        ("for i in x:\n    here()", False),
        ("if i % 10 == 0:\n    for i in x: here()", False),
    ],
)
def test_occasions(code: str, expected: bool) -> None:
    assert marked(code).role("occasional") is expected


@pytest.mark.parametrize(
    ("code", "role"),
    [
        ("@jax.jit\ndef f(): here()", "jax-jitted"),
        ("import functools\n@functools.partial(jax.jit, static_argnums=0)\ndef f(): here()", "jax-jitted"),
        ("def f(): here()\ng = jax.jit(f)", "jax-jitted"),
        ("@torch.compile\ndef f(): here()", "jitted"),
        ("@torch.compile(dynamic=True)\ndef f(): here()", "jitted"),
        ("import triton\n@triton.jit\ndef f(): here()", "triton-kernel"),
    ],
)
def test_traced_functions(code: str, role: str) -> None:
    assert marked(code).role(role)
    assert not marked(code.replace("here()", "pass") + "\ndef other(): here()").role(role)


@pytest.mark.parametrize(
    ("handler", "call", "imported"),
    [
        ("except ImportError: pass", False, True),
        ("except (ImportError, OSError): pass", False, True),
        ("except Exception: pass", True, True),
        ("except: pass", True, True),
        ("except RuntimeError as error: print(error)", True, False),
        ("except AttributeError: pass", True, False),
        ("except ValueError: pass", False, False),
        ("except ImportError: raise SystemExit", False, False),
        ("finally: pass", False, False),
    ],
)
def test_what_a_try_catches(handler: str, call: bool, imported: bool) -> None:
    assert marked(f"try:\n    here()\n{handler}").role("guarded-call") is call
    statement = next(one for one in parsed(f"try:\n    import apex\n{handler}").walk("import_statement"))
    assert statement.role("guarded-import") is imported


def test_a_handler_is_not_caught_by_its_own_try() -> None:
    assert not marked("try:\n    f()\nexcept Exception:\n    here()").role("guarded-call")


def test_suppressed_exceptions() -> None:
    assert marked("import contextlib\nwith contextlib.suppress(RuntimeError):\n    here()").role("guarded-call")
    assert not marked("import contextlib\nwith contextlib.suppress(KeyError):\n    here()").role("guarded-call")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("from importlib.util import find_spec\nif find_spec('apex'):\n    import apex", True),
        ("from importlib.util import find_spec\nHAS = find_spec('apex') is not None\nif HAS:\n    import apex", True),
        ("from lib import is_apex_available\nif is_apex_available():\n    from apex import amp", True),
        ("import pytest\npytest.importorskip('apex')\nimport apex.optimizers", True),
        ("import pytest\nimport apex\npytest.importorskip('apex')", False),
        ("if flag:\n    import apex", False),
    ],
)
def test_packages_that_were_looked_for(code: str, expected: bool) -> None:
    imports = [one for one in parsed(code).walk("import_statement", "import_from_statement") if "apex" in one.text]
    assert imports[-1].role("guarded-import") is expected


def test_an_unknown_role_is_an_error() -> None:
    with pytest.raises(ValueError, match="no such role in Python: lane"):
        marked("here()").role("lane")


@pytest.mark.parametrize(
    ("code", "place"),
    [
        ("batch = tokenizer(texts, return_tensors='pt')\nit = batch['input_ids']", "on-host"),
        ("batch = tokenizer(texts, return_tensors='pt')\nit = batch.attention_mask", "on-host"),
        ("batch = tokenizer(texts, return_tensors='pt').to(device)\nit = batch['input_ids']", "on-device"),
        ("it = tokenizer(texts, return_tensors='pt')['input_ids'].to(device)", "on-device"),
        ("from torchvision import transforms as T\nit = T.ToTensor()(image)", "on-host"),
        ("from torchvision import transforms as T\nit = T.ToTensor()(image).to(device)", "on-device"),
    ],
)
def test_what_tokenizers_and_transforms_make_is_on_the_host(code: str, place: str) -> None:
    assert roles(value(IMPORTS + code), "tensor", "on-host", "on-device") == {"tensor", place}


@pytest.mark.parametrize(
    ("code", "stays"),
    [
        ("y = torch.from_numpy(a)", True),
        ("y = a.to(torch.float32)", True),
        ("y = torch.zeros(3, device='cpu')", True),
        ("y = jnp.zeros(3, device=device)", True),
        ("y = torch.zeros(3).to(torch.ones(3).device)", True),
        ("y = torch.zeros(3, device=device)", False),
        ("y = x.to(device)", False),
        ("model.cuda()", False),
        ("model = AutoModel.from_pretrained(p, device_map='auto')", False),
    ],
)
def test_torch_beside_jax_is_on_the_host_where_nothing_moves_it(code: str, stays: bool) -> None:
    beside = parsed(f"import torch\nimport jax.numpy as jnp\n{code}")
    alone = parsed(f"import torch\nfrom numpy import jnp\n{code}")
    assert beside.role("host-torch") is stays
    assert not alone.role("host-torch")
