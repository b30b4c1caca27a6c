"""What is fuzzed, family by family, and what has to hold of it."""

from __future__ import annotations

import json
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from random import Random
from typing import Any, Protocol

import msgspec

from fuzz import generate
from portlint import __version__, baseline, config, report, shard
from portlint.annotated import PANEL
from portlint.detect import RuleSet
from portlint.finding import FileResult, Report, Summary
from portlint.fix import choose, edits_of, is_wanted, rewrite
from portlint.mistake import Mistake
from portlint.readiness import history
from portlint.rules import discover
from portlint.run import Request, describe
from portlint.scan import Scan
from portlint.source.decode import NotText, decode
from portlint.source.discover import Found
from portlint.source.language import by_name
from portlint.source.prescan import Limits
from portlint.target import load
from portlint.verify import evidence

ROOT = Path(__file__).resolve().parent.parent.parent
FIXTURES = ROOT / "fixtures"
DAY = "2026-01-01"

Phase = Callable[[str], None]


class Broken(Exception):
    """Something that has to hold does not."""


class Family(Protocol):
    """One kind of input. An input is one byte that chooses a name, and what is below that name."""

    @property
    def seeds(self) -> Sequence[bytes]:
        """Inputs to start from."""

    def make(self, random: Random) -> bytes:
        """A new input."""

    def check(self, data: bytes, phase: Phase) -> None:
        """Raise whatever shows a fault. `phase` is told what begins."""


class _Ungated(RuleSet):
    """The rules without the gate that skips files."""

    def may_fire(self, text: bytes, language: str) -> bool:  # noqa: ARG002
        return True


@cache
def rules() -> tuple[RuleSet, RuleSet]:
    """All rules, with the gate and without."""
    gated, ungated = RuleSet(discover().values()), _Ungated(discover().values())
    return gated, ungated


@cache
def scans() -> tuple[Scan, Scan]:
    """What is done with a file, with the gate and without."""
    targets = tuple(load(name) for name in PANEL)
    gated, ungated = (Scan(one, targets, Limits()) for one in rules())
    return gated, ungated


class Files:
    """Source files, in a project that has some others."""

    def __init__(self, names: Sequence[str], suffixes: Sequence[str], *, directives: bool = False) -> None:
        self.names = tuple(names)
        self.suffixes = tuple(suffixes)
        self.directives = directives

    @cached_property
    def seeds(self) -> Sequence[bytes]:
        """The fixtures, each below all names that are like its own."""
        found = []
        for path in sorted(FIXTURES.glob("*/*/*")):
            for number, name in enumerate(self.names):
                if path.is_file() and path.name.endswith(self.suffixes) and _is_like(name, path.name):
                    found.append(bytes([number]) + path.read_bytes()[: generate.MOST_BYTES])
                    break
        return found

    def make(self, random: Random) -> bytes:
        """A program, something nested or repeated, or a fixture with mutations."""
        number = random.randrange(len(self.names))
        name = self.names[number]
        alike = [seed[1:] for seed in self.seeds if seed[0] == number] or [b""]
        kind = random.choice(("program", "program", "nesting", "repetition", "mutated", "mutated"))
        if kind == "mutated":
            text = generate.mutated(random, random.choice(alike), alike)
        else:
            text = {
                "program": generate.program,
                "nesting": generate.nesting,
                "repetition": generate.repetition,
            }[kind](random, name)
        if self.directives:
            text = _with_directives(random, text, "#" if generate.LANGUAGES[name] != "cuda" else "//")
        return bytes([number]) + text

    def check(self, data: bytes, phase: Phase) -> None:
        """Scan it: nothing is raised, places lie inside, the gate changes nothing, fixes and reports can be made."""
        name, text = self.names[(data[:1] or b"\0")[0] % len(self.names)], data[1:]
        check_file(name, text, phase)


def check_file(name: str, text: bytes, phase: Phase) -> FileResult:
    """What has to hold of the scan of a file; its result."""
    found = Found(path=name, file=str(_project() / name), size=len(text), kind=by_name(name) or "")
    gated, ungated = scans()
    # An empty text is not taken for one that stands in: then the file itself would be read.
    result = gated.examine(found, frozenset(), phase, text or b"\n").result
    if (without := ungated.examine(found, frozenset(), phase, text or b"\n").result) != result:
        raise Broken(f"the gate makes a difference: {_difference(result, without)}")
    phase("places")
    _check_places(result, text, found.kind)
    phase("fixes")
    _check_fixes(result, text, found.kind)
    _check_reports(result, phase)
    return result


def _difference(one: FileResult, two: FileResult) -> str:
    for field in FileResult.__struct_fields__:
        ours, theirs = getattr(one, field), getattr(two, field)
        if ours != theirs:
            if not isinstance(ours, tuple):
                return f"{field}: {ours!r} and {theirs!r}"
            own, other = [x for x in ours if x not in theirs], [x for x in theirs if x not in ours]
            return f"{field}: {own!r:.400} and {other!r:.400}"
    return "nothing that can be named"


def _check_places(result: FileResult, text: bytes, kind: str) -> None:
    try:
        lines = text if kind == "notebook" else decode(text, kind).text
    except NotText:
        return
    most = lines.count(b"\n") + lines.count(b"\r") + 1
    for one in result.findings:
        if not 1 <= one.line <= one.end_line <= most:
            raise Broken(f"{one.rule} lies outside: lines {one.line} to {one.end_line} of {most}")
        if not (1 <= one.column < one.end_column or (one.column >= 1 and one.line < one.end_line)):
            raise Broken(f"{one.rule} is empty: {one.line}:{one.column} to {one.end_line}:{one.end_column}")
        if "{" in one.message and "}" not in one.message and "…" not in one.message:
            raise Broken(f"{one.rule} has a message that is not filled in: {one.message}")
    if len({one.order for one in result.findings}) != len(result.findings):
        raise Broken("two findings at the same place by the same rule for the same target")


def _check_fixes(result: FileResult, text: bytes, kind: str) -> None:
    for unsafe in (False, True):
        edits = edits_of(choose(one for one in result.findings if is_wanted(one, unsafe=unsafe)))
        if edits:
            rewrite(text, kind, edits)


def _check_reports(result: FileResult, phase: Phase) -> None:
    """Every format takes what was found, and can be written as UTF-8; what a worker sends arrives as it was."""
    if msgspec.msgpack.decode(msgspec.msgpack.encode(result), type=FileResult) != result:
        raise Broken("the result does not survive the way from a worker")
    if not result.findings and not result.problems:
        return
    for kind in report.KINDS:
        phase(f"report {kind}")
        text = report.render(_report(result), kind, color=False, width=100, version=__version__)
        text.encode()
        if kind in ("json", "sarif", "gitlab"):
            json.loads(text)


def _report(result: FileResult) -> Report:
    named = {one.rule for one in result.findings}
    return Report(
        targets=PANEL,
        findings=result.findings,
        problems=result.problems,
        summary=Summary(files=1, lines=result.lines),
        rules={name: describe(rule) for name, rule in discover().items() if name in named},
        titles={name: load(name).title for name in PANEL},
    )


@cache
def _project() -> Path:
    """A folder that has what rules look for beside a file: headers, builds, modules, tests."""
    folder = Path(tempfile.mkdtemp(prefix="portlint-fuzz-"))
    for path in sorted((FIXTURES / "demo").rglob("*")):
        if path.is_file() and path.suffix in (".py", ".h", ".cu", ".cpp"):
            (folder / path.name).write_bytes(path.read_bytes())
    (folder / "w.h").write_text("#define WARP_SIZE 32\n#define USE_ROCM 0\n")
    return folder


def _is_like(name: str, other: str) -> bool:
    ours, theirs = Path(name), Path(other)
    if name.endswith(("Dockerfile", "CMakeLists.txt")) or other.endswith(("Dockerfile", "CMakeLists.txt")):
        return theirs.name.endswith(ours.name)
    return ours.suffix == theirs.suffix


def _with_directives(random: Random, text: bytes, mark: str) -> bytes:
    lines = text.split(b"\n")
    for _ in range(random.choice((1, 2, 5, 30))):
        at = random.randrange(len(lines))
        words = f" {mark} {directive(random)}".encode()
        if random.random() < 0.5:
            lines[at] += words
        else:
            lines.insert(at, words)
    return b"\n".join(lines)


def directive(random: Random) -> str:
    """A comment that speaks to portlint, or nearly."""
    names = [*discover(), "lanes", "device", "sync", "no/such-rule", ""]
    selectors = ", ".join(
        random.choice(("{}", "{}", "{} @ {}", "{} @ {} until {}", "{} until {}", "{} @", "@ {1}")).format(
            random.choice(names), random.choice((*PANEL, "nowhere")), random.choice((DAY, "2999-12-31", "0000-00-00"))
        )
        for _ in range(random.choice((1, 1, 2, 5)))
    )
    verb = random.choice(("ignore", "ignore", "file-ignore", "expect", "ignoring", ""))
    bracket = random.choice(("[{}]", "[{}]", "[{}]", "[{}", "{}", "[[{}]]", "[{}] [{}]")).replace("{}", selectors)
    ending = random.choice(("", " because", " */", " -- x", " portlint: ignore[lanes] y", "\\"))
    return f"portlint:{random.choice((' ', '', '  '))}{verb}{bracket}{ending}"


class Notebooks(Files):
    """Notebooks: JSON around cells of Python, magics and shell commands."""

    def __init__(self) -> None:
        super().__init__(("book.ipynb",), (".ipynb",))

    def make(self, random: Random) -> bytes:
        """Cells, in JSON that is sound, or has been tampered with."""
        if random.random() < 0.2:
            books = [seed[1:] for seed in self.seeds]
            return b"\0" + generate.mutated(random, random.choice(books), books)
        cells = [self._cell(random) for _ in range(random.choice((1, 1, 2, 5, 50)))]
        book: dict[str, Any] = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        if random.random() < 0.3:
            book["metadata"] = {"kernelspec": {"language": random.choice(("python", "R", 1)), "name": "python3"}}
        if random.random() < 0.1:
            book = {"worksheets": [{"cells": cells}], "metadata": {}, "nbformat": 3, "nbformat_minor": 0}
        if random.random() < 0.2:
            book = _tampered(random, book)
        text = json.dumps(book, ensure_ascii=random.random() < 0.5, indent=random.choice((None, 1))).encode(
            errors="surrogatepass"
        )
        return b"\0" + (generate.mutated(random, text, [text]) if random.random() < 0.2 else text)

    def _cell(self, random: Random) -> dict[str, Any]:
        text = random.choice((generate.program, generate.program, generate.nesting))(random, "module.py")
        lines = text.decode(errors="replace").splitlines(keepends=True)[:200]
        for _ in range(random.choice((0, 0, 1, 3))):
            line = random.choice(
                (
                    "%%bash\n",
                    "!pip install torch==2.1+cu121\n",
                    "%cd x\n",
                    "x = !nvidia-smi\n",
                    "?x\n",
                    "%%time\n",
                    "x = %env A\n",
                    "%%writefile a.cu\n",
                    "  !ls {x} $y\n",
                    "\r",
                    "\u2028\n",
                )
            )
            lines.insert(random.choice((0, 0, random.randint(0, len(lines)))), line)
        if random.random() < 0.3:
            lines = [derived + "\n" for derived in [generate.derive(random, generate.grammar("build.sh"))]]
            lines.insert(0, random.choice(("%%bash\n", "!", "%%sh\n")))
        source: Any = random.choice((lines, "".join(lines)))
        return {
            "cell_type": random.choice(("code", "code", "code", "markdown")),
            "metadata": {},
            "outputs": [],
            "source": source,
        }


def _tampered(random: Random, value: Any, depth: int = 0) -> Any:
    """JSON with another value somewhere."""
    if isinstance(value, dict) and value and depth < 6 and random.random() < 0.9:
        key = random.choice(list(value))
        if random.random() < 0.1:
            return {other: kept for other, kept in value.items() if other != key}
        return {**value, key: _tampered(random, value[key], depth + 1)}
    if isinstance(value, list) and value and depth < 6 and random.random() < 0.9:
        at = random.randrange(len(value))
        return [*value[:at], _tampered(random, value[at], depth + 1), *value[at + random.choice((0, 1)) :]]
    return random.choice(
        (
            None,
            0,
            -1,
            2**63,
            2**64,
            1e308,
            "",
            "é\ud800",
            "x" * 5_000,
            [],
            {},
            True,
            [[]],
            "2026-13-01",
            "../../etc",
            "a:b",
            [value] * 3,
            "cdna3",
            "0" * 16 + ":1",
        )
    )


class Configurations:
    """Configuration files, of which each is read or refused with a message."""

    @cached_property
    def seeds(self) -> Sequence[bytes]:
        """Some that are in order."""
        texts = (
            'target = ["cdna3", "tpu-v6e"]\nselect = ["lanes", "sync/x @ cdna3"]\nfail-on = "breaks"\n',
            'exclude = ["a/**", "!b"]\nextend-exclude = ["*.py"]\n[per-file-ignores]\n"tests/**" = ["lanes"]\n',
            'baseline = "known.json"\nrequire-reason = true\nignore = ["device/is-cuda @ mps"]\n',
        )
        return [b"\0" + text.encode() for text in texts] + [b"\1[tool.portlint]\n" + text.encode() for text in texts]

    def make(self, random: Random) -> bytes:
        """Keys with values of the right and the wrong kind, or a seed with mutations."""
        seeds = [seed[1:] for seed in self.seeds]
        if random.random() < 0.3:
            return bytes([random.randrange(2)]) + generate.mutated(random, random.choice(seeds), seeds)
        keys = (
            "target",
            "select",
            "ignore",
            "exclude",
            "extend-exclude",
            "per-file-ignores",
            "fail-on",
            "baseline",
            "require-reason",
            "file",
            "a.b",
            '""',
            "per-file-ignores.'**'",
            "x",
        )
        values = (
            '["lanes"]',
            '["**/x", "!["]',
            '"breaks"',
            "true",
            "1",
            "1e400",
            "2026-01-01",
            "{}",
            "{'a' = ['lanes']}",
            "nan",
            "['lanes @ cdna3', '@']",
            "[[]]",
            "''",
            "['\\u0000']",
            "['" + "*/" * 200 + "']",
            "['" + "[" * 900 + "']",
            "'../..'",
        )
        lines = [f"{random.choice(keys)} = {random.choice(values)}" for _ in range(random.choice((1, 2, 4)))]
        if random.random() < 0.2:
            lines.append("x = " + "[" * random.choice((10, 1_000, 20_000)))
        number = random.randrange(2)
        return bytes([number]) + "\n".join([*["[tool.portlint]"][:number], *lines]).encode()

    def check(self, data: bytes, phase: Phase) -> None:
        """Read it as portlint does, and use what was read."""
        phase("read")
        name = ("portlint.toml", "pyproject.toml")[(data[:1] or b"\0")[0] % 2]
        file = _folder() / "configured" / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data[1:])
        try:
            read = config.load(file.parent)
            selectors = [config.Selector.parse(text) for text in (*read.select, *read.ignore)]
            config.check_selectors(selectors, list(discover()), PANEL)
        except Mistake as reason:
            str(reason).encode()
            return
        finally:
            file.unlink()
        phase("use")
        for path in ("a/b.py", "tests/x.cu", "é.py"):
            read.file_ignores(path)
        if data[:1] == b"\0" and read.file and not isinstance(tomllib.loads(data[1:].decode()), dict):
            raise Broken("read what is no TOML")


class Json:
    """Files of portlint's own in JSON, which people and other programs may have edited."""

    def __init__(self, sound: Callable[[], Sequence[Any]], read: Callable[[Path], object]) -> None:
        self.sound = sound
        self.read = read

    @cached_property
    def seeds(self) -> Sequence[bytes]:
        """Some that are in order."""
        return [b"\0" + json.dumps(value).encode() for value in self.sound()]

    def make(self, random: Random) -> bytes:
        """One with other values in it, or with mutations."""
        seed = random.choice(self.seeds)[1:]
        if random.random() < 0.3:
            return b"\0" + generate.mutated(random, seed, [seed])
        value = json.loads(seed)
        for _ in range(random.choice((1, 1, 2, 5))):
            value = _tampered(random, value)
        if random.random() < 0.05:
            return b"\0" + b"[" * random.choice((100, 5_000, 50_000))
        return b"\0" + json.dumps(value).encode(errors="surrogatepass")

    def check(self, data: bytes, phase: Phase) -> None:
        """Read and use it, or refuse it with a message."""
        phase("read")
        file = _folder() / "file.json"
        file.write_bytes(data[1:])
        try:
            self.read(file)
        except Mistake as reason:
            str(reason).encode()


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="portlint-fuzz-"))


_CODE = b"""import torch
x = torch.zeros(3, dtype=torch.float64).cuda()
if x.item() > 32:
    torch.distributed.init_process_group("nccl")
"""


@cache
def _sample() -> FileResult:
    """A result with some findings."""
    return check_file("module.py", _CODE, lambda _: None)


def _request() -> Request:
    return Request(paths=(".",), targets=tuple(load(name) for name in PANEL), config=config.Config())


def _baselines() -> Sequence[Any]:
    entries = [msgspec.to_builtins(one) for one in baseline.entries(_sample().findings)]
    return [{"version": 1, "entries": entries}, {"version": 1, "entries": entries[:2] * 2}]


def _use_baseline(file: Path) -> object:
    entries = baseline.read(file)
    whole = _report(_sample())
    matched = baseline.match(whole.findings, entries, _request(), whole)
    if len(matched.known) + len(matched.new) != len(whole.findings):
        raise Broken("findings are lost between those that are known and those that are new")
    applied = baseline.apply(whole, matched, file)
    return [report.render(applied, kind, color=False, width=80, version=__version__).encode() for kind in report.KINDS]


def _evidences() -> Sequence[Any]:
    said = {
        "level": "compiled",
        "outcome": "confirmed",
        "tool": "clang",
        "version": "22",
        "target": "cdna3",
        "device": None,
        "command": "clang x",
        "date": DAY,
        "detail": "error",
    }
    entries = [
        {
            "fingerprint": one.fingerprint,
            "setting": one.setting,
            "rule": one.rule,
            "path": one.path,
            "target": one.target,
            "fact": one.fact.name,
            "stated": msgspec.to_builtins(one.fact.value),
            "assumes": msgspec.to_builtins(one.assumes),
            "evidence": said,
            "digest": "x",
        }
        for one in _sample().findings[:5]
    ]
    return [{"version": 1, "entries": entries}]


def _use_evidence(file: Path) -> object:
    entries = evidence.read(file)
    joined = evidence.join(_sample().findings, entries)
    [one.text.encode(errors="surrogatepass") for one in evidence.stale(entries, joined, (".",), {})]
    whole = msgspec.structs.replace(_report(_sample()), findings=joined)
    evidence.write(file, evidence.merge(entries, entries))
    return [report.render(whole, kind, color=False, width=80, version=__version__).encode() for kind in report.KINDS]


def _reports() -> Sequence[Any]:
    from portlint.finding import Shard

    whole = _report(_sample())
    part = msgspec.structs.replace(whole, shard=Shard(1, 1, "x", (".",)))
    return [json.loads(report.render(one, "json", color=False, width=80, version=__version__)) for one in (part, whole)]


def _use_report(file: Path) -> object:
    try:
        history.compare(history.read(file), _report(_sample()), DAY)
    except Mistake as reason:
        str(reason).encode()
    merged, _ = shard.merged([file], __version__)
    return [report.render(merged, kind, color=False, width=80, version=__version__).encode() for kind in report.KINDS]


_CXX_NAMES = ("kernel.cu", "ops.hip", "tile.cuh", "w.h", "binding.cpp")
_PYTHON_NAMES = ("module.py", "test_ops.py", "setup.py", "train.py")
_RECIPE_NAMES = tuple(name for name, language in generate.LANGUAGES.items() if language == "recipe")

FAMILIES: Mapping[str, Family] = {
    "cxx": Files(_CXX_NAMES, (".cu", ".hip", ".cuh", ".h", ".cpp")),
    "python": Files(_PYTHON_NAMES, (".py",)),
    "recipes": Files(_RECIPE_NAMES, ("Dockerfile", ".txt", ".yml", ".toml", ".cmake", ".sh")),
    "notebooks": Notebooks(),
    "directives": Files(("kernel.cu", "module.py", "build.sh"), (".cu", ".py", ".sh"), directives=True),
    "configuration": Configurations(),
    "baseline": Json(_baselines, _use_baseline),
    "evidence": Json(_evidences, _use_evidence),
    "report": Json(_reports, _use_report),
}
"""every family, by name"""
