"""`portlint verify --execute`: a user's Python file under a simulated device, reported at its own lines.

The frameworks are imported by the processes that run the files, never by this one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner, Result

import portlint
from portlint.cli import main

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed: pip install torch")
needs_jax = pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed: pip install 'portlint[verify]'")
needs_torch_xla = pytest.mark.skipif(find_spec("torch_xla") is None, reason="PyTorch/XLA is not installed")
EVIDENCE = Path("portlint-evidence.json")

Execute = Callable[..., Result]


@pytest.fixture
def execute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Execute:
    """Write a file in a temporary folder, and run it for a target."""
    monkeypatch.chdir(tmp_path)

    def run(text: str, *words: str, target: str = "mps") -> Result:
        Path("program.py").write_text(dedent(text).lstrip())
        return CliRunner().invoke(main, ["verify", "--execute", "program.py", "--target", target, *words])

    return run


def lines(result: Result) -> list[str]:
    return result.stdout.splitlines()


def confirmed() -> list[str]:
    """The rules for which the evidence file confirms something."""
    entries = json.loads(EVIDENCE.read_text())["entries"]
    assert {(one["evidence"]["level"], one["evidence"]["outcome"]) for one in entries} == {("simulate", "confirmed")}
    return sorted(one["rule"] for one in entries)


class TestWithoutAFramework:
    def test_what_imports_none_is_not_simulated(self, execute: Execute) -> None:
        result = execute("print('ran')")
        assert result.exit_code == 2
        assert "ran through, nothing was simulated" in lines(result)[-1]

    def test_a_package_that_is_not_there_is_said_with_its_line(self, execute: Execute) -> None:
        result = execute("""
            import sys
            import no_such_package
        """)
        assert result.exit_code == 2
        assert lines(result) == [
            f"program.py:2: missing: no_such_package is not installed for {sys.executable}",
            "mps: program.py: did not run",
        ]

    def test_a_framework_that_is_not_there_is_said_with_its_command(self, execute: Execute) -> None:
        result = execute("raise ModuleNotFoundError('there is none', name='torch.nn')")
        assert result.exit_code == 2
        assert f"torch is not installed for {sys.executable}; install it with: " in lines(result)[0]
        assert lines(result)[0].endswith("-m pip install torch")

    def test_an_error_of_the_file_is_at_its_line(self, execute: Execute, capfd: pytest.CaptureFixture[str]) -> None:
        result = execute("""
            def half(number):
                return number / 0

            half(1)
        """)
        assert result.exit_code == 2
        assert lines(result)[0] == "program.py:2: error: ZeroDivisionError: division by zero"
        trace = capfd.readouterr().err
        assert "line 4, in <module>" in trace
        assert "runpy" not in trace

    def test_it_gets_its_arguments_and_runs_as_main(self, execute: Execute, capfd: pytest.CaptureFixture[str]) -> None:
        result = execute("import sys; print(__name__, sys.argv)", "--", "--steps", "3")
        assert result.exit_code == 2
        assert "__main__ ['program.py', '--steps', '3']" in capfd.readouterr().err

    def test_it_finds_the_modules_beside_it(self, execute: Execute) -> None:
        Path("beside.py").write_text("raise SystemExit(4)")
        result = execute("import beside")
        assert "ended with status 4" in lines(result)[-1]

    def test_it_is_stopped_when_its_time_is_over(self, execute: Execute) -> None:
        started = time.monotonic()
        result = execute("import time; time.sleep(60)", "--timeout", "1")
        assert time.monotonic() - started < 30
        assert result.exit_code == 2
        assert "program.py: stopped after" in lines(result)[-1]

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("--execute", "nothing.py"), "there is no file nothing.py"),
            (("--python", "no-such-python"), "cannot start"),
        ],
    )
    def test_errors_of_use_are_for_people(self, execute: Execute, words: tuple[str, ...], said: str) -> None:
        result = execute("", *words)
        assert result.exit_code == 2
        assert said in result.output
        assert "Traceback" not in result.output

    def test_the_process_of_the_file_needs_the_standard_library_only(self, tmp_path: Path) -> None:
        child = Path(portlint.__file__).parent / "verify" / "execute" / "child" / "run.py"
        (tmp_path / "facts.json").write_text(json.dumps({"kind": "mps", "queries": {}, "triton": False}))
        (tmp_path / "program.py").write_text("print('ran')")
        command = [sys.executable, "-I", "-S", str(child), "facts.json", "events", "program.py"]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert ended.stdout == "ran\n"


@needs_torch
class TestTorch:
    def test_a_model_that_stays_on_the_device_is_clean(self, execute: Execute) -> None:
        result = execute("""
            import copy
            import torch
            from torch import nn
            from torch.utils.data import DataLoader, TensorDataset

            device = "mps" if torch.backends.mps.is_available() else "cpu"
            assert device == "mps" and not torch.cuda.is_available()
            torch.manual_seed(0)
            layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            model = nn.Sequential(layer, nn.Flatten(), nn.Linear(32, 2)).to(device)
            average = copy.deepcopy(model)
            optimizer = torch.optim.AdamW(model.parameters())
            data = TensorDataset(torch.randn(8, 4, 8), torch.arange(8) % 2)
            for values, classes in DataLoader(data, batch_size=4, pin_memory=True):
                with torch.autocast(device_type=device, dtype=torch.float16):
                    out = model(values.to(device, non_blocking=True))
                loss = nn.functional.cross_entropy(out.float(), classes.to(device))
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
            with torch.device(device):
                average(torch.zeros(1, 4, 8))
            assert loss.device == model[2].weight.grad.device == torch.device("mps:0")
        """)
        assert result.exit_code == 0, result.output
        assert len(lines(result)) == 1
        assert "mps: program.py: ran through, no faults, simulated with torch " in lines(result)[0]

    @pytest.mark.parametrize(
        ("code", "target", "said"),
        [
            ("x + torch.arange(4)", "mps", "devices: add: tensors on cpu and mps:0"),
            ("x.double()", "mps", "dtype: float64 on mps"),
            ("torch.zeros(2, dtype=torch.float64).to(x)", "mps", None),
            ("x.cpu().double()", "mps", None),
            ("x + torch.tensor(1.0)", "mps", None),
            ("x[torch.tensor([0, 1])]", "mps", None),
            ("x.cuda()", "mps", "device: 'cuda' is no device of Apple GPU (MPS); its type is 'mps'"),
            ("x.numpy()", "mps", "host: numpy() of a tensor on mps:0"),
            ("torch.linalg.eig(x.outer(x))", "mps", "operator: aten::linalg_eig has no kernel"),
            ("x.to(torch.complex64)", "gaudi3", "dtype: complex64 on hpu"),
            ("torch.nonzero(x)", "trainium2", "shape: the shape of what nonzero() gives"),
            ("torch.nn.Embedding(4, 2)(x.long())", "xpu", "devices: embedding: tensors on cpu and xpu:0"),
            ("torch.cuda.synchronize(); x.double()", "hopper", None),
        ],
    )
    def test_what_the_target_does_not_do(self, execute: Execute, code: str, target: str, said: str | None) -> None:
        result = execute(
            f"""
            import torch
            device = torch.accelerator.current_accelerator()
            x = torch.ones(4, device=device)
            {code}
            """,
            target=target,
        )
        faults = [one for one in lines(result)[:-1] if ": sync: " not in one]
        assert result.exit_code == (0 if said is None else 1), result.output
        assert len(faults) == (said is not None)
        assert said is None or faults[0].startswith(f"program.py:4: {said}")

    def test_syncs_are_counted_at_their_lines(self, execute: Execute) -> None:
        result = execute("""
            import torch
            x = torch.arange(4.0, device="mps")
            for _ in range(3):
                x.sum().item()
            if x.sum() > 0:
                x[x > 0] = x[x > 0] * 2
            x[x > 0] = 0.0
            x.cpu()
            torch.ones(3).sum().item()
        """)
        assert result.exit_code == 0, result.output
        assert lines(result) == [
            "program.py:4: sync: item() waits for the device (3 times)",
            "program.py:5: sync: its truth waits for the device",
            "program.py:6: sync: the shape of what a Boolean mask gives depends on values: the host waits for them"
            " (2 times)",
            "program.py:8: sync: a copy to the CPU waits for the device",
            lines(result)[-1],
        ]
        assert "7 syncs at 4 lines" in lines(result)[-1]

    def test_a_fault_that_the_file_catches_is_none(self, execute: Execute) -> None:
        result = execute("""
            import torch
            x = torch.ones(4, device="mps")
            try:
                y = x.double()
            except TypeError:
                y = x.float()
        """)
        assert result.exit_code == 0, result.output
        assert lines(result)[0] == "program.py:4: dtype: float64 on mps; the file caught it"

    def test_threads_streams_and_recomputation(self, execute: Execute) -> None:
        result = execute(
            """
            import threading
            import torch
            from torch.utils.checkpoint import checkpoint

            model = torch.nn.Linear(8, 8).cuda()
            def read():
                model(torch.ones(2, 8, device="cuda")).sum().item()
            thread = threading.Thread(target=read)
            thread.start()
            thread.join()
            assert torch.cuda.get_device_capability() == (9, 0)
            with torch.cuda.stream(torch.cuda.Stream()), torch.autocast("cuda"):
                x = torch.ones(2, 8, device="cuda", requires_grad=True)
                y = checkpoint(model, x, use_reentrant=False)
                assert torch.is_autocast_enabled("cuda") and y.dtype == torch.float16
            scaler = torch.amp.GradScaler("cuda")
            scaler.scale(y.float().sum()).backward()
            scaler.step(torch.optim.SGD(model.parameters(), 0.1))
            """,
            target="hopper",
        )
        assert result.exit_code == 0, result.output
        assert lines(result)[:-1] == [
            "program.py:7: sync: item() waits for the device",
            "program.py:18: sync: item() waits for the device",
        ]

    @pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
    def test_kernels_of_triton_are_interpreted(self, execute: Execute) -> None:
        result = execute(
            """
            import torch, triton
            import triton.language as tl

            @triton.jit
            def increase(x, out, block: tl.constexpr):
                at = tl.arange(0, block)
                tl.store(out + at, tl.load(x + at) + 1)

            x = torch.ones(16, device="cuda")
            out = torch.empty_like(x)
            increase[(1,)](x, out, block=16)
            assert out.sum() == 32
            """,
            target="cdna3",
        )
        assert result.exit_code == 0, result.output
        assert lines(result)[:-1] == ["program.py:12: sync: its truth waits for the device"]

    @pytest.mark.parametrize(
        ("imports", "mark", "target"),
        [
            ("import habana_frameworks.torch.core as core", "core.mark_step()", "gaudi3"),
            ("import torch_xla.core.xla_model as xm", "xm.mark_step()", "trainium2"),
        ],
    )
    def test_what_comes_with_a_machine_is_stood_in_for(
        self, execute: Execute, imports: str, mark: str, target: str
    ) -> None:
        result = execute(
            f"""
            {imports}
            import torch
            device = torch.accelerator.current_accelerator()
            x = torch.ones(4).to(device)
            {mark}
            print(x.tolist())
            """,
            target=target,
        )
        assert result.exit_code == 0, result.output
        assert "portlint stands in for a part of it" in lines(result)[0]
        assert lines(result)[1] == "program.py:6: sync: tolist() waits for the device"

    def test_what_was_seen_confirms_findings(self, execute: Execute) -> None:
        text = """
            import torch

            def train(model, batches, optimizer):
                for batch in batches:
                    loss = model(batch.to("mps")).sum()
                    loss.backward()
                    optimizer.step()
                    print(loss.item())

            model = torch.nn.Linear(4, 1).to("mps")
            train(model, [torch.ones(2, 4)], torch.optim.SGD(model.parameters()))
            torch.zeros(2, dtype=torch.float64, device="mps")
        """
        result = execute(text)
        assert result.exit_code == 1, result.output
        assert confirmed() == ["dtype/float64", "sync/host-read-in-step"]


@needs_jax
class TestJax:
    def test_compilations_have_their_reasons(self, execute: Execute) -> None:
        result = execute(
            """
            import jax
            import numpy as np

            assert jax.default_backend() == "tpu"
            step = jax.jit(lambda x: (x * 2).sum())
            for size in (8, 8, 9, 10):
                step(np.ones(size, np.float32))
            for scale in range(3):
                jax.jit(lambda x: x * scale)(np.ones(3, np.float32))
            """,
            target="tpu-v6e",
        )
        assert result.exit_code == 0, result.output
        assert lines(result)[:4] == [
            "program.py:7: compile: <lambda> is compiled",
            "program.py:7: compile: <lambda> is compiled again, first because at x, now f32[9] and before f32[8]"
            " (2 times)",
            "program.py:9: compile: <lambda> is compiled",
            "program.py:9: compile: <lambda> is compiled again: each time it is another function (2 times)",
        ]
        assert "no faults, 6 compilations at 2 lines, simulated with jax" in lines(result)[-1]
        assert confirmed() == ["shape/jitted-once"]

    def test_a_sound_kernel_is_clean(self, execute: Execute) -> None:
        result = execute(
            """
            import jax
            import jax.numpy as jnp
            from jax.experimental import pallas as pl

            def double(x, out):
                out[...] = x[...] * 2

            @jax.jit
            def doubled(x):
                block = pl.BlockSpec((8, 128), lambda i: (i, 0))
                shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
                return pl.pallas_call(double, grid=(2,), in_specs=[block], out_specs=block, out_shape=shape)(x)

            assert doubled(jnp.ones((16, 128))).sum() == 2 * 16 * 128
            jnp.log(-doubled(jnp.ones((16, 128))))
            """,
            target="tpu-v6e",
        )
        assert result.exit_code == 0, result.output
        assert [one for one in lines(result)[:-1] if ": compile: " not in one] == []

    def test_faults_of_kernels(self, execute: Execute) -> None:
        result = execute(
            """
            import jax
            import jax.numpy as jnp
            from jax.experimental import pallas as pl
            from jax.experimental.pallas import tpu as pltpu

            def copy(x, out):
                out[...] = x[...]

            def half(x, out):
                out[:4] = x[:4]

            def early(x, out, done):
                pltpu.make_async_copy(x, out, done).start()
                out[...] = out[...] * 2
                pltpu.make_async_copy(x, out, done).wait()

            def outside(x, out):
                out[...] = x[pl.ds(pl.program_id(0) + 4, 8), :]

            x = jnp.ones((8, 128))
            whole = jax.ShapeDtypeStruct((8, 128), jnp.float32)
            part = pl.BlockSpec((8, 64), lambda i: (0, i))
            pl.pallas_call(copy, grid=(2,), in_specs=[part], out_specs=part, out_shape=whole)(x)
            jax.jit(pl.pallas_call(half, out_shape=whole))(x)
            vmem = pl.BlockSpec(memory_space=pltpu.VMEM)
            pl.pallas_call(early, in_specs=[vmem], out_shape=whole, scratch_shapes=[pltpu.SemaphoreType.DMA])(x)
            pl.pallas_call(outside, grid=(1,), out_shape=whole)(x)
            """,
            target="tpu-v6e",
        )
        assert result.exit_code == 1, result.output
        found = [one.split(": ")[:2] for one in lines(result)[:-1] if ": compile: " not in one]
        assert found == [
            ["program.py:13", "race"],
            ["program.py:18", "bounds"],
            ["program.py:23", "lowering"],
            ["program.py:24", "uninitialised"],
        ]
        assert "ended at a fault, 4 faults" in lines(result)[-1]


@needs_torch_xla
def test_torch_xla_compilations_and_fallbacks(execute: Execute) -> None:
    result = execute(
        """
        import torch
        import torch_xla

        device = torch_xla.device()
        for size in (8, 8, 9):
            x = torch.ones(size).to(device) * 2
            torch_xla.sync()
        torch.linalg.eig(torch.eye(3).to(device))
        print(x.sum().item())
        """,
        target="tpu-v6e",
    )
    assert result.exit_code == 0, result.output
    found = [one.split(": ")[:3] for one in lines(result)[:-1]]
    assert ["program.py:7", "compile", "a graph is compiled again"] in found
    assert ["program.py:8", "fallback", "aten"] in [[*one[:2], one[2][:4]] for one in found]
    assert ["program.py:9", "sync", "item() waits for the device"] in found
