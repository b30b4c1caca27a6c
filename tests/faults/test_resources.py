"""What a run takes, and what it leaves alone: memory, order, the code that it reads, comments that speak to it."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness import fixtures
from runs import DEVICE, FULL, KERNEL, TARGETS, command, environment, scan, write

from portlint.detect import RuleSet
from portlint.rules import discover
from portlint.source import Source
from portlint.source.prescan import Limits

# ---- the order of things ---------------------------------------------------------------------------------------------


def tree_of_fixtures(count: int) -> list[str]:
    """Fixtures of many rules in a tree; their names, as arguments."""
    chosen = random.Random(1).sample(sorted(one.path for one in fixtures() if "\n" not in one.path.name), count)
    for number, path in enumerate(chosen):
        Path(f"d{number % 7}").mkdir(exist_ok=True)
        shutil.copy(path, f"d{number % 7}/{number}_{path.name}")
    write({"d0/broken.py": b"\xff", "d1/deep.cu": "(" * 20_000})
    return sorted(str(path) for path in Path().rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", ["full", "json", "sarif"] if FULL else ["json"])
def test_jobs_order_hash_seed_locale_and_time_zone_change_nothing(kind: str) -> None:
    """The same bytes, but for the seconds that the JSON summary has."""
    names = tree_of_fixtures(300 if FULL else 25)
    ways = [(jobs, seed, locale) for jobs in "128" for seed in "01234" for locale in ("C", "C.UTF-8", "tr_TR.UTF-8")]
    seen = set()
    for jobs, seed, locale in ways if FULL else [("1", "0", "C"), ("2", "1", "C.UTF-8"), ("8", "4", "tr_TR.UTF-8")]:
        arguments = names if seed != "0" else ["."]
        random.Random(seed).shuffle(arguments)
        outputs = [f"--output-format={one}:../{one}" for one in ("full", "concise", "sarif", "github", "markdown")]
        more = {"PYTHONHASHSEED": seed, "LC_ALL": locale, "TZ": f"UTC{seed}", "COLUMNS": "100", "LANG": locale}
        run = subprocess.run(
            command("check", *arguments, *TARGETS, "--isolated", "-j", jobs, f"--output-format={kind}", *outputs),
            env=environment(**more),
            capture_output=True,
            check=False,
        )
        assert run.stderr == b""
        printed = run.stdout
        if kind == "json":
            report = json.loads(printed)
            assert report["findings"]
            report["summary"].pop("seconds")
            printed = json.dumps(report).encode()
        files = [Path(f"../{one}").read_bytes() for one in ("full", "concise", "sarif", "github", "markdown")]
        seen.add(hashlib.sha256(b"\0".join([printed, *files])).hexdigest())
    assert len(seen) == 1


# ---- the code that is read -------------------------------------------------------------------------------------------

AUDITED = """
import os, sys
tree = os.path.realpath(sys.argv[1])
log = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
busy = False

def hook(event, arguments):
    global busy
    if busy:
        return
    busy = True
    try:
        first = arguments[0] if arguments else None
        if event == "open" and isinstance(first, (str, bytes)):
            path, flags = os.path.realpath(os.fsdecode(first)), arguments[2] or 0
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and path != os.devnull
            if writes or (path.startswith(tree) and path.endswith((".pyc", ".pth"))):
                os.write(log, f"open {path}\\n".encode(errors="replace"))
        elif event in ("exec", "compile"):
            name = getattr(first, "co_filename", None) if event == "exec" else arguments[1]
            if isinstance(name, str) and name[:1] != "<" and os.path.realpath(name).startswith(tree):
                os.write(log, f"{event} {name}\\n".encode(errors="replace"))
        elif event == "import" and isinstance(arguments[1], str) and arguments[1].startswith(tree):
            os.write(log, f"import {arguments[1]}\\n".encode())
        elif event.startswith(("subprocess.", "os.exec", "os.posix_spawn", "os.system", "socket.", "ctypes.dlopen")):
            os.write(log, f"{event} {first}\\n".encode(errors="replace"))
    finally:
        busy = False

from portlint.cli import main
sys.addaudithook(hook)
os.chdir(tree)
main(sys.argv[3:])
"""
BOMB = "import os\nopen(os.environ['FIRED'], 'a').write(__name__ + '\\n')\n"


def test_nothing_that_is_read_is_imported_executed_or_opened_for_writing(tree: Path) -> None:
    """A tree full of files that Python, pytest, setuptools and shells would run; watched by an audit hook."""
    for name in (
        "conftest.py",
        "sitecustomize.py",
        "usercustomize.py",
        "setup.py",
        "__init__.py",
        "__main__.py",
        "torch.py",
        "click.py",
        "msgspec.py",
        "portlint.py",
        "tree_sitter.py",
        "rich.py",
        "tomllib.py",
        "encodings.py",
        "noxfile.py",
        "tasks.py",
        "manage.py",
        "pkg/__init__.py",
        "pkg/conftest.py",
        "portlint/__init__.py",
        "portlint/rules/x/y.py",
        "rules/x/y.py",
    ):
        write({name: BOMB + DEVICE})
    write(
        {
            "x.pth": "import os; open(os.environ['FIRED'], 'a')\n",
            "site-packages/x.pth": "import os; open(os.environ['FIRED'], 'a')\n",
            "run.sh": "touch $FIRED\npip install torch\n",
            "Dockerfile": "FROM nvidia/cuda\nRUN touch $FIRED\n",
            "CMakeLists.txt": "execute_process(COMMAND touch $ENV{FIRED})\nenable_language(CUDA)\n",
            "setup.cfg": "[options]\nsetup_requires = evil\n",
            "tox.ini": "[testenv]\ncommands = touch fired\n",
            ".envrc": "touch $FIRED\n",
            "Makefile": "$(shell touch $$FIRED)\n",
            "k.cu": '#include "/etc/passwd"\n#pragma comment(lib, "x")\n' + KERNEL,
            "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "setup"\nbackend-path = ["."]\n',
        }
    )
    log, fired = tree.parent / "log", tree.parent / "fired"
    for arguments in (("check", ".", *TARGETS, "-j", "2", "--no-cache"), ("report", ".", *TARGETS, "-j", "2")):
        run = subprocess.run(
            [sys.executable, "-P", "-B", "-c", AUDITED, str(tree), str(log), *arguments],
            env=environment(FIRED=str(fired), PYTHONDONTWRITEBYTECODE="1"),
            capture_output=True,
            check=False,
        )
        assert run.returncode == (1 if arguments[0] == "check" else 0), run.stderr
        assert b"k.cu" in run.stdout
    assert log.read_text() == ""
    assert not fired.exists()


# ---- comments that speak to portlint ---------------------------------------------------------------------------------


def test_very_many_suppressions_are_read_and_the_unused_ones_are_told() -> None:
    """In comments, not in strings; and a file of them costs itself at most."""
    many = 190_000 if FULL else 2_000
    line = "# portlint: ignore[device/is-cuda] x\n"
    texts = {
        "unused.py": (DEVICE + line * min(many, 1_000_000 // len(line) - 10)).encode(),
        "used.py": ("import torch\n" + "x = torch.cuda.current_device()  " + line).encode()
        + (f"y = torch.cuda.current_device()  {line}" * 300).encode(),
        "strings.py": (DEVICE + f's = "{line.strip()}"\n' * min(many, 10_000)).encode(),
        "one_line.py": (DEVICE + "# " + "portlint: ignore[lanes] " * (3_900 if FULL else 400) + "\n").encode(),
        "broken.py": (DEVICE + "# portlint: ignore[" * (4_000 if FULL else 400) + "\n").encode(),
        "blanks.py": (DEVICE + "# portlint: ignore[a" + " " * (90_000 if FULL else 3_000) + "until\n").encode(),
        "selectors.py": (DEVICE + "# portlint: ignore[" + "lanes, " * (13_000 if FULL else 1_000) + "x]\n").encode(),
        "many.cu": (KERNEL + "// portlint: ignore[lanes/warp-is-32] x\n" * min(many, 20_000)).encode(),
        "good.py": DEVICE.encode(),
    }
    results = scan(texts.items(), Limits())
    assert results["good.py"].findings
    assert not results["good.py"].problems
    for name, result in results.items():
        assert result.findings or result.problems or result.suppressed, name
        assert not [one.message for one in result.problems if "crashed" in one.message or "raised" in one.message], name
    assert len(results["used.py"].problems) == 0
    assert results["used.py"].suppressed >= 301
    assert not results["strings.py"].problems
    unused = [one for one in results["unused.py"].problems if one.kind == "directive"]
    assert len(unused) > 1_000 or results["unused.py"].problems[0].kind in ("timeout", "skipped")


# ---- memory and time -------------------------------------------------------------------------------------------------

MANY = """
import sys
from pathlib import Path
from portlint.cli import main
try:
    main(sys.argv[1:])
finally:
    # not ru_maxrss: that keeps what the process had before it was this program, a copy of the tests' own
    print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0], file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts memory as Linux does")
def test_very_many_findings_fit_into_memory() -> None:
    """Each finding costs a bounded part of what the promise for a million allows."""
    many = 1_000_000 if FULL else 5_000
    lines = "x = torch.cuda.current_device()\n" * 1_000
    write({f"{number:03}.py": "import torch\n" + lines for number in range(many // 1_000)})
    peaks = []
    for kind in ("json-lines", "concise") if FULL else ("json",):
        run = subprocess.run(
            [
                sys.executable,
                "-P",
                "-c",
                MANY,
                "check",
                ".",
                "-t",
                "mps",
                "--isolated",
                f"--output-format={kind}:{os.devnull}",
            ],
            env=environment(),
            capture_output=True,
            check=False,
        )
        assert run.returncode == 1, run.stderr
        peaks.append(int(run.stderr.split()[-1]) * 1024)
    own = 100 << 20
    assert max(peaks) < own + many * 8_000, [f"{peak >> 20} MiB" for peak in peaks]


def test_queries_on_very_many_siblings() -> None:
    """Every query of every rule, over lists, arguments, statements and parameters that do not end."""
    many = 100_000 if FULL else 1_000
    rules = RuleSet(discover().values())
    texts = {
        "python": [
            "x = [" + "a, " * many + "]\n",
            "f(" + "a, " * many + ")\n",
            "x = 1\n" * many,
            "def f(" + "a, " * many + "): pass\n",
            "x = {" + "a: b, " * many + "}\n",
            "f(" + "a=1, " * many + ")\n",
            "import a\n" * many,
            "@a\n" * many + "def f(): pass\n",
        ],
        "cuda": [
            "int a[] = {" + "1, " * many + "};\n",
            "void g() { f(" + "a, " * many + "); }\n",
            "int a;\n" * many,
            "void f(" + "int a, " * many + "int b);\n",
            "template <" + "int A, " * many + "int B> void f();\n",
            "#define A 1\n" * many,
            "void f() {" + "a();\n" * many + "}\n",
            "void f() { switch (a) {" + "case 1: b();\n" * many + "} }\n",
        ],
        "cmake": ["set(x " + "a " * many + ")\n", "set(x 1)\n" * many],
        "bash": ["a " + "b " * many + "\n", "a\n" * min(many, 5_000)],
        "requirements": ["a\n" * many],
        "toml": ["a = [" + "1, " * many + "]\n", "".join(f"a{one} = 1\n" for one in range(many))],
        "yaml": ["- a\n" * many, "".join(f"a{one}: 1\n" for one in range(many))],
    }
    import time

    for language, ones in texts.items():
        rules.matches(Source("x", b"", language))
        for text in ones:
            source = Source("x", text.encode(), language)
            assert source.tree.root_node.end_byte
            began = time.process_time()
            rules.matches(source)
            assert time.process_time() - began < (10 if FULL else 2), (language, text[:30])


WORKERS = """
import resource
import sys
from portlint.cli import main
try:
    main(sys.argv[1:])
finally:
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts memory as Linux does")
def test_a_worker_lets_go_of_the_files_that_it_asked() -> None:
    """Modules that import one another are read for one another's sake, and no tree is kept for good."""
    many = 120
    body = "    x = x.cuda() if x.is_cuda else torch.zeros(3, device=device)\n" * 200
    for number in range(many):
        others = [(number + step) % many for step in (1, 7, 31)]
        imports = "".join(f"from package.part{other} import helper{other}\n" for other in others)
        calls = "".join(f"    helper{other}(torch.zeros(3), 'cuda')\n" for other in others)
        start = f"import torch\n{imports}\ny = torch.zeros(3, device='cuda')\n\n"
        text = f"{start}def helper{number}(x, device):\n{calls}{body}    return x\n"
        write({f"package/part{number}.py": text})
    write({"package/__init__.py": "", "pyproject.toml": "[project]\nname = 'package'\n"})
    arguments = ["check", ".", "-t", "mps", "--isolated", "--jobs", "1", f"--output-format=json:{os.devnull}"]
    run = subprocess.run(
        [sys.executable, "-P", "-c", WORKERS, *arguments], env=environment(), capture_output=True, check=False
    )
    assert run.returncode == 1, run.stderr
    assert int(run.stderr.split()[-1]) * 1024 < 160 << 20
