"""`portlint verify` as a user meets it, and the evidence that `portlint check` shows: nothing here needs a device."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from portlint.cli import main
from portlint.verify import runner
from portlint.verify.toolchains import Toolchain, clang
from portlint.verify.toolchains.gcc_style import diagnostics

VOTES = """__global__ void count_ayes(int* out, const int* in) {
    const unsigned votes = __ballot_sync(0xffffffff, in[threadIdx.x] > 0);
    if (threadIdx.x % 32 == 0) atomicAdd(out, __popc(votes));
}
"""
RULES = "lanes/warp-is-32,lanes/mask-is-32-bit"
MI300X = {"platform": "hip", "name": "AMD Instinct MI300X", "architecture": "gfx942:sramecc+", "driver": ""}
EVIDENCE = Path("portlint-evidence.json")
HANGING_HIPCC = """#!/bin/sh
# A compiler whose programs hang, as on a device that is stuck, but for the one that measures the width.
for last; do :; done
if [ "$last" = lanes_width.cu ]; then
    cat > kernel <<'END'
#!/bin/sh
echo '{"measured": "64, by a stand-in", "outcome": "failed"}'
END
else
    cat > kernel <<'END'
#!/bin/sh
sleep 600 &
echo $! $$ >> "$PIDS"
wait
END
fi
chmod +x kernel
"""
needs_clang = pytest.mark.skipif(
    not isinstance(clang.find(), Toolchain), reason="no clang with the AMDGPU back end: apt-get install clang-22"
)

Portlint = Callable[..., Result]


@pytest.fixture
def portlint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Portlint:
    """Run portlint in a temporary folder that holds one kernel, for CDNA 3."""
    monkeypatch.chdir(tmp_path)
    Path("src").mkdir()
    Path("src/votes.cu").write_text(VOTES)

    def run(*arguments: str, target: str = "cdna3") -> Result:
        return CliRunner().invoke(main, [*arguments, "--target", target])

    return run


def shown(result: Result) -> list[dict[str, Any]]:
    """The findings of `check --output-format json`."""
    findings: list[dict[str, Any]] = json.loads(result.stdout)["findings"]
    return findings


def checked(portlint: Portlint) -> Result:
    return portlint("check", "src", "--select", RULES, "--output-format", "json")


def answered(portlint: Portlint, measured: int, device: dict[str, str] | None = None) -> Result:
    """Make a bundle, let a device answer it, and import what it said."""
    result = portlint("verify", "src", "--select", RULES, "--bundle", "bundle")
    assert result.exit_code == 0, result.output
    questions = json.loads(Path("bundle/questions.json").read_text())
    found = device or MI300X
    line = {"assumption": "x", "measured": measured, "outcome": "measured", "environment": {"device": found["name"]}}
    answers = [
        {"id": one["id"], "line": line, "status": 0, "err": "", "command": "kernel", "out": "", "seconds": 0.1}
        for one in questions["questions"]
        if one["kernel"] == "lanes_width"
    ]
    content = {
        "version": 1,
        "bundle": questions["bundle"],
        "date": "2026-11-30",
        "devices": [found],
        "answers": answers,
    }
    Path("answers.json").write_text(json.dumps({**content, "answers": answers}))
    return portlint("verify", "src", "--select", RULES, "--import", "answers.json")


class TestEvidence:
    def test_a_device_with_64_lanes_confirms_the_finding(self, portlint: Portlint) -> None:
        result = answered(portlint, 64)
        assert result.exit_code == 0, result.output
        evidence = [one for finding in shown(checked(portlint)) for one in finding["evidence"]]
        assert {(one["level"], one["outcome"], one["device"]) for one in evidence} == {
            ("run", "confirmed", "AMD Instinct MI300X")
        }

    def test_a_device_with_32_lanes_refutes_it(self, portlint: Portlint) -> None:
        answered(portlint, 32)
        evidence = [one for finding in shown(checked(portlint)) for one in finding["evidence"]]
        assert evidence
        assert {one["outcome"] for one in evidence} == {"refuted"}

    def test_another_device_than_the_target_says_nothing(self, portlint: Portlint) -> None:
        device = {"platform": "cuda", "name": "NVIDIA H200", "architecture": "9.0", "driver": "580"}
        result = answered(portlint, 32, device)
        assert "the machine has NVIDIA H200, which is not AMD CDNA3 (gfx942)" in result.output
        assert not EVIDENCE.exists()

    def test_it_is_found_where_it_was_put(self, portlint: Portlint) -> None:
        answered(portlint, 64)
        EVIDENCE.rename("kept.json")
        assert not any(one["evidence"] for one in shown(checked(portlint)))
        result = portlint("check", "src", "--output-format", "json", "--evidence", "kept.json")
        assert any(one["evidence"] for one in shown(result))

    def test_moved_lines_keep_it(self, portlint: Portlint) -> None:
        answered(portlint, 64)
        Path("src/votes.cu").write_text("// counts votes\n\n" + VOTES)
        assert any(one["evidence"] for one in shown(checked(portlint)))

    @pytest.mark.parametrize(("old", "new"), [('"stated": 64', '"stated": 32'), ("measured 64", "measured 32")])
    def test_what_was_changed_by_hand_is_stale(self, portlint: Portlint, old: str, new: str) -> None:
        answered(portlint, 64)
        EVIDENCE.write_text(EVIDENCE.read_text().replace(old, new))
        result = checked(portlint)
        assert not any(one["evidence"] for one in shown(result))
        problems = json.loads(result.stdout)["problems"]
        assert any("the entry was changed by hand" in problem["message"] for problem in problems)

    def test_what_is_of_code_that_has_changed_is_stale(self, portlint: Portlint) -> None:
        answered(portlint, 64)
        Path("src/votes.cu").write_text(VOTES.replace("votes", "ayes"))
        problems = json.loads(checked(portlint).stdout)["problems"]
        messages = [problem["message"] for problem in problems]
        assert any("the code has changed" in message for message in messages)
        assert any("the statement around the finding has changed" in message for message in messages)

    def test_what_is_of_files_that_are_not_checked_is_left_in_peace(self, portlint: Portlint) -> None:
        answered(portlint, 64)
        Path("other").mkdir()
        result = portlint("check", "other", "--output-format", "json")
        assert not json.loads(result.stdout)["problems"]

    def test_a_file_that_is_none_is_an_error_for_people(self, portlint: Portlint) -> None:
        EVIDENCE.write_text("{")
        result = portlint("check", "src")
        assert result.exit_code == 2
        assert "portlint-evidence.json is no evidence file" in result.output
        assert "Traceback" not in result.output


class TestBundle:
    def test_it_runs_with_python_alone(self, portlint: Portlint, tmp_path: Path) -> None:
        portlint("verify", "src", "--select", RULES, "--bundle", "bundle")
        environment = {"PATH": str(tmp_path), "HOME": str(tmp_path)}  # no compiler on it
        run = subprocess.run(
            [sys.executable, "-I", "-S", "bundle/run.py"], env=environment, capture_output=True, text=True, check=True
        )
        assert "there is neither hipcc nor nvcc on PATH" in run.stderr
        result = portlint("verify", "src", "--select", RULES, "--import", "bundle/answers.json")
        assert "not run: there is neither hipcc nor nvcc on PATH" in result.output
        assert not EVIDENCE.exists()

    def test_a_kernel_that_hangs_the_device_costs_its_own_answer(
        self, portlint: Portlint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        compiler = tmp_path / "bin" / "hipcc"
        compiler.parent.mkdir()
        compiler.write_text(HANGING_HIPCC)
        compiler.chmod(0o755)
        monkeypatch.setenv("PATH", f"{compiler.parent}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("PIDS", str(tmp_path / "pids"))
        portlint("verify", "src", "--select", RULES, "--bundle", "bundle")
        run = subprocess.run(
            [sys.executable, "bundle/run.py", "--seconds", "1"], capture_output=True, text=True, check=True, timeout=120
        )
        questions = json.loads(Path("bundle/questions.json").read_text())["questions"]
        answers = json.loads(Path("bundle/answers.json").read_text())["answers"]
        assert [one["id"] for one in answers] == [one["id"] for one in questions]
        assert "it was stopped after 1 s" in run.stderr
        assert "64, by a stand-in" in run.stderr
        for process in (tmp_path / "pids").read_text().split():
            assert not _is_alive(int(process))
        result = portlint("verify", "src", "--select", RULES, "--import", "bundle/answers.json")
        assert "not run: it was stopped after 1 s" in result.output

    def test_it_says_how_to_use_it(self, portlint: Portlint) -> None:
        portlint("verify", "src", "--select", RULES, "--bundle", "bundle")
        text = Path("bundle/README.md").read_text()
        assert "python3 run.py" in text
        assert "--target cdna3" in text

    def test_it_holds_no_code_of_the_tree(self, portlint: Portlint) -> None:
        portlint("verify", "src", "--select", RULES, "--bundle", "bundle")
        files = [path for path in Path("bundle").rglob("*") if path.is_file()]
        assert files
        assert not any("count_ayes" in path.read_text() for path in files)

    def test_answers_of_another_bundle_are_refused(self, portlint: Portlint) -> None:
        answered(portlint, 64)
        Path("src/more.cu").write_text(VOTES)
        content = json.loads(Path("answers.json").read_text()) | {"bundle": "0123"}
        Path("answers.json").write_text(json.dumps(content))
        result = portlint("verify", "src", "--import", "answers.json")
        assert result.exit_code == 2
        assert "these answers are of another bundle" in result.output

    def test_a_folder_with_files_is_not_overwritten(self, portlint: Portlint) -> None:
        result = portlint("verify", "src", "--bundle", "src")
        assert result.exit_code == 2
        assert "src is not empty" in result.output


class TestCompile:
    @needs_clang
    def test_the_compiler_is_quoted_at_the_users_line(self, portlint: Portlint) -> None:
        Path("votes.hip").write_text("#include <hip/hip_runtime.h>\n" + VOTES)
        result = portlint("verify", "--compile", "votes.hip")
        assert result.exit_code == 1
        assert "The mask must be a 64-bit integer" in result.output
        assert "cdna3: votes.hip: refused" in result.output

    @needs_clang
    def test_what_it_takes_is_accepted(self, portlint: Portlint) -> None:
        text = VOTES.replace("unsigned votes", "unsigned long long votes").replace("0xffffffff", "~0ull")
        Path("votes.hip").write_text("#include <hip/hip_runtime.h>\n" + text.replace("__popc(", "__popcll("))
        result = portlint("verify", "--compile", "votes.hip")
        assert result.exit_code == 0, result.output
        assert "cdna3: votes.hip: accepted" in result.output

    def test_a_target_without_cxx_is_an_error_for_people(self, portlint: Portlint) -> None:
        result = portlint("verify", "--compile", "src/votes.cu", target="mps")
        assert result.exit_code == 2
        assert "is not programmed in C++" in result.output

    def test_the_styles_of_the_compilers(self) -> None:
        text = """k.hip:3:9: error: too few arguments
k.cu(7): error: identifier "f" is undefined
ptxas k.ptx, line 12; error   : Instruction 'wgmma.fence' not supported on .target 'sm_90'
ptxas fatal   : Value 'sm_99' is not defined
clang: error: invalid target ID
note: candidate function
"""
        assert [(one.path, one.line, one.kind) for one in diagnostics(text)] == [
            ("k.hip", 3, "error"),
            ("k.cu", 7, "error"),
            ("k.ptx", 0, "error"),
            ("", 0, "error"),
            ("", 0, "error"),
        ]


class TestRunner:
    def test_what_hangs_is_ended_with_its_children(self, tmp_path: Path) -> None:
        program = "import os, subprocess, sys, time\n"
        program += "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        program += "open('child', 'w').write(str(child.pid)); time.sleep(600)"
        ended = runner.run([sys.executable, "-c", program], seconds=2.0, folder=tmp_path)
        assert ended.status is None
        child = int((tmp_path / "child").read_text())
        for _ in range(100):
            if not _is_alive(child):
                break
            time.sleep(0.05)
        assert not _is_alive(child)

    def test_a_crash_keeps_what_was_printed(self) -> None:
        program = "import os, signal, sys; print('before', flush=True); os.kill(os.getpid(), signal.SIGSEGV)"
        ended = runner.run([sys.executable, "-c", program], seconds=60.0)
        assert ended.status == -11
        assert ended.out == "before\n"


def _is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        try:
            os.kill(process, 0)
        except OSError:
            return False
        return not Path("/proc").is_dir()
    return state != "Z"
