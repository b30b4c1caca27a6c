"""Source files made of what fixes mend and of what gets in their way, and what has to hold of every fix in them.

`file(seed)` is the same file for the same seed, so that a failure can be looked at again.
"""

from __future__ import annotations

import ast
import codecs
import json
import random
import re
import textwrap
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from io import StringIO
from pathlib import Path

import msgspec
from harness import FIXTURES, change_of, fixtures, measure, rules

from portlint.examples import IS_FIXED, strip
from portlint.finding import Edit, FileResult, Verdict
from portlint.fix import Change, edits_of
from portlint.rule import Rule
from portlint.source import Source, embedded
from portlint.source.decode import decode
from portlint.source.grammar import broken_places
from portlint.source.language import by_name
from portlint.source.notebook import read

TARGETS = ("cdna3", "mps", "gaudi3", "tpu-v6e", "trainium2")

DENSE = (
    "torch.cuda.synchronize(); y = x.cuda(); z = y.double()\n",
    "a, b = x.cuda(), torch.load(path)\n",
    'for step in range(3): torch.cuda.synchronize(); x.to("cuda")\n',
    'with torch.autocast("cuda"), torch.autocast("cuda", dtype=torch.float16): torch.cuda.synchronize()\n',
    "wait = lambda: torch.cuda.synchronize()\n",
    'if torch.cuda.is_available and (torch.version.cuda >= "11") == (torch.version.cuda < "12"): pass\n',
    'x = (torch.version.cuda > "11"\n     and torch.version.cuda < "13")\n',
    "device = torch.device(0)\nx = net(x.cuda(), mask=mask.cuda(non_blocking=True)).cuda().double()\n",
    "try:\n    torch.cuda.set_device(0)\nexcept ValueError: torch.cuda.set_device(1)\nelse:\n    torch.cuda.init()\n",
    "state = {'a': torch.load(path), **torch.load(other, weights_only=True)}\n",
    "y = torch.full((2,), torch.iinfo(torch.int64).max, device=device)\\\n"
    ' + torch.zeros(2, dtype=torch.float64, device="cuda")\n',
    'z = f"{torch.load(path)} and {x.cuda()}"\n',
    "torch.cuda.synchronize(\n    0,\n)\n",
    "torch.cuda.synchronize()\\\n\n",
    "match kind:\n    case 1:\n        torch.cuda.synchronize()\n    case _: torch.cuda.synchronize()\n",
    "@decorated(torch.load(path))\nasync def later(x=torch.load(path)):\n\ttorch.cuda.synchronize()\n",
    'dist.init_process_group("nccl"); dist.new_group([0], backend="nccl")\n',
    "loader = DataLoader(data, batch_size=8, shuffle=True,)\n",
    "loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True, **options)\n",
    "x = torch.load(path for path in paths)\n",
    "x = torch.load(*paths) if flag else torch.load((path))\n",
)
"""Python with several findings on a line, and statements where little room is left"""
HEAD = "import torch\nimport torch.distributed as dist\nfrom torch.utils.data import DataLoader\n"
DENSE_CUDA = (
    "__device__ int a(int x) { unsigned m = __ballot_sync(0xffffffff, x);"
    " return __popc(m & ((1u << (threadIdx.x % warpSize)) - 1)) + __ffs(m); }\n",
    "#define SUM(v) for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffff, v, d)\n",
    "__global__ void b(int* p) { int l = threadIdx.x & 31, w = threadIdx.x >> 5;"
    " p[w] = __any_sync(~0u, l) + __all_sync(-1, w); }\n",
    "__global__ void c(int* p) {\n#if __CUDA_ARCH__ >= 300\n  p[0] = __shfl_sync(0xffffffffu, p[1], 0);\n#endif\n}\n",
    "__global__ void d(int* p) {\n#ifdef __CUDA_ARCH__\n  atomicAdd(p, __popc(__activemask()));\n#endif\n}\n",
    "template <class T> __global__ void k(T* p) {}\n"
    "void e() { cudaFuncSetAttribute(k<int>, cudaFuncAttributeMaxDynamicSharedMemorySize, 9);"
    " k<int><<<1, 64>>>(nullptr); }\n",
    "__device__ auto f = [](int v) { for (int d = 16; d; d >>= 1)"
    " v += __shfl_down_sync(0xffffffff, v, d); return v; };\n",
)
AROUND = (
    "def outer(device):\n{}",
    "class Outer:\n{}",
    "if flag:\n{}",
    "async def outer():\n{}",
    "while go():\n{}\n  # end\n",
    "try:\n{}\nfinally:\n    pass\n",
)
NOISE = ("é", "数", "\U0001f600", "\u2028", "ß")
NARROW = ("é", "ß", "ñ")
"""what is in Latin-1, too"""


OPENING = ("isa/cuda-arch-is-defined", "device/cuda-is-required", "device/hip-module-exists", "device/probe-is-called")
"""rules whose fixes let a target run code that was dead there, where more may be found"""


JUDGED = ("dtype/complex64", "dtype/float16")
"""rules that may not like what others leave: half of complex128, and a precision of CUDA's now asked of any device"""


class Made(msgspec.Struct, frozen=True):
    """A generated file."""

    seed: int
    path: Path
    content: bytes
    unsafe: bool


@cache
def fixable() -> dict[str, Rule]:
    """The rules that have fixes, by name."""
    folders = {path.parent for path in FIXTURES.glob("*/*/*") if IS_FIXED.search(path.name)}
    names = {f"{one.parent.name}/{one.name.replace('_', '-')}" for one in folders}
    return {name: rule for name, rule in rules().items() if name in names}


@cache
def pieces(language: str) -> tuple[str, ...]:
    """What fixtures of rules with fixes hold: whole files, and of Python their statements."""
    suffixes = (".py",) if language == "python" else (".cu", ".cuh", ".hip")
    own = [one.path for one in fixtures() if one.rule in fixable() and one.path.suffix in suffixes]
    whole = [strip(path.read_text("utf-8")) for path in own if not path.name.startswith("silent_")]
    if language != "python":
        return (*whole, *DENSE_CUDA * 3)
    parts: list[str] = []
    for text in whole:
        lines = text.splitlines(keepends=True)
        tree = ast.parse(text)
        imports = "".join(ast.unparse(one) + "\n" for one in tree.body if isinstance(one, ast.Import | ast.ImportFrom))
        for one in tree.body:
            first = min([one.lineno, *(mark.lineno for mark in getattr(one, "decorator_list", []))])
            if not isinstance(one, ast.Import | ast.ImportFrom):
                parts.append(imports + "".join(lines[first - 1 : one.end_lineno]).rstrip("\n") + "\n")
    return (*whole, *parts, *(HEAD + one for one in DENSE * 4))


def file(seed: int) -> Made:
    """The file of a seed."""
    rng = random.Random(seed)
    kind = rng.choice(("python", "python", "python", "cuda", "cuda", "notebook", "string"))
    made = {"python": _python_file, "cuda": _cuda_file, "notebook": _notebook, "string": _kernel_in_string}[kind](rng)
    ending = {"cuda": rng.choice((".cu", ".cuh", ".hip")), "notebook": ".ipynb"}.get(kind, ".py")
    return Made(seed, Path(f"generated_{seed}{ending}"), made, rng.random() < 0.7)


# ---- Python ----------------------------------------------------------------------------------------------------------


def _python(rng: random.Random, most: int = 4) -> str:
    chosen = [rng.choice(pieces("python")) for _ in range(rng.randint(1, most))]
    text = ""
    for piece in chosen:
        part = _nested(piece, rng) if rng.random() < 0.3 else piece
        part = _respaced(part, rng) if rng.random() < 0.3 else part
        text += part.replace("from __future__", "# ") if text else part
    if rng.random() < 0.3:
        text = re.sub(r"^(?: {4})+", lambda match: "\t" * (len(match[0]) // 4), text, flags=re.MULTILINE)
    return text


def _nested(piece: str, rng: random.Random) -> str:
    if "from __future__" in piece or "import *" in piece:
        return piece
    inner = textwrap.indent(piece, rng.choice(("    ", "\t", "  ", "        ")))
    around = rng.choice(AROUND)
    return around.format(inner)


def _respaced(piece: str, rng: random.Random) -> str:
    """The same program with other white space, comments and line breaks between its tokens."""
    try:
        tokens = list(tokenize.generate_tokens(StringIO(piece).readline))
    except (tokenize.TokenError, IndentationError):
        return piece
    lines = piece.splitlines(keepends=True)
    depth = 0
    places: list[tuple[int, int, str, str]] = []
    for token in tokens:
        if token.type == tokenize.OP and token.string in "([{":
            depth += 1
            places.append((*token.end, "open", token.string))
        elif token.type == tokenize.OP and token.string in ")]}":
            depth -= 1
        elif token.type == tokenize.OP and token.string == ".":
            places.append((*token.start, "dot", ""))
        elif token.type == tokenize.OP and token.string == "," and depth:
            places.append((*token.end, "open", ","))
    for line, column, kind, _ in sorted(places, reverse=True):
        if rng.random() > 0.15:
            continue
        text = lines[line - 1]
        new = rng.choice(("  # (é\n  ", "\n", "  ")) if kind == "open" else rng.choice((" ", "\\\n  ", " \\\n"))
        lines[line - 1] = text[:column] + new + text[column:]
    return "".join(lines)


def _python_file(rng: random.Random) -> bytes:
    return _encoded(_noisy(_python(rng), "# ", rng), rng, cookie=True)


def _noisy(text: str, mark: str, rng: random.Random) -> str:
    """A text with comments between its lines; where a string goes over several lines they are part of that."""
    lines = text.splitlines(keepends=True)
    for _ in range(rng.randint(0, 4)):
        at = rng.randrange(len(lines) + 1)
        if not (at and lines[at - 1].rstrip("\r\n").endswith("\\")):
            lines.insert(at, f"{mark}{rng.choice(NARROW)}\n")
    return "".join(lines)


def _encoded(text: str, rng: random.Random, *, cookie: bool) -> bytes:
    end = rng.choice(("\n", "\n", "\n", "\r\n", "\r\n", "\r"))
    encoding = rng.choice(("utf-8",) * 5 + ("latin-1", "utf-8-sig", "cp1252" if cookie else "utf-16"))
    if rng.random() < 0.3:
        text = text.rstrip("\n")
    if encoding in ("latin-1", "cp1252"):
        text = "".join(one if one.isascii() or one in NARROW else "?" for one in text)
        if cookie and "from __future__" not in text:
            text = f"# -*- coding: {encoding} -*-\n{text}"
        elif cookie:
            encoding = "utf-8"
    elif rng.random() < 0.3:
        text = f"{'#' if cookie else '//'} {rng.choice(NOISE)}\n{text}"
    if rng.random() < 0.05:
        half = len(text) // 2
        return (text[:half] + text[half:].replace("\n", "\r\n")).encode(encoding)
    return text.replace("\n", end).encode(encoding)


# ---- CUDA ------------------------------------------------------------------------------------------------------------


def _cuda(rng: random.Random) -> str:
    text = ""
    for _ in range(rng.randint(1, 4)):
        piece = rng.choice(pieces("cuda"))
        if rng.random() < 0.4:
            piece = _gapped(piece, rng)
        if rng.random() < 0.3:
            piece = rng.choice(
                (
                    "#if USE_IT\n{}\n#else\nint other;\n#endif\n",
                    "#ifdef __CUDACC__\n{}\n#endif\n",
                    "namespace inner {{\n{}\n}}\n",
                    "#ifndef __HIP_PLATFORM_AMD__\n{}\n#elif X\n#endif\n",
                    "#if 0\n{}\n#endif\n",
                )
            ).format(piece)
        if rng.random() < 0.15 and not re.search(r"^\s*#|//|/\*", piece, re.MULTILINE):
            piece = "#define ALL_OF_IT \\\n" + piece.rstrip("\n").replace("\n", " \\\n") + "\nALL_OF_IT\n"
        text += piece
    return text


def _gapped(piece: str, rng: random.Random) -> str:
    """The same program with comments and line breaks in the place of blanks."""
    lines = piece.split("\n")
    for number, line in enumerate(lines):
        if line.lstrip().startswith("#") or "//" in line or '"' in line or line.endswith("\\"):
            continue
        parts = re.split(r"(?<=\S) (?=\S)", line)
        joined = parts[0]
        for part in parts[1:]:
            joined += rng.choice((" ",) * 12 + (" /* é */ ", "\n", "\t", " \\\n")) + part
        lines[number] = joined
    return "\n".join(lines)


def _cuda_file(rng: random.Random) -> bytes:
    return _encoded(_noisy(_cuda(rng), "// ", rng), rng, cookie=False)


def _kernel_in_string(rng: random.Random) -> bytes:
    quotes = rng.choice(('"""', "'''"))
    body = _cuda(rng).replace(quotes, "").rstrip("\\")
    prefix = "r" if "\\" in body or rng.random() < 0.5 else ""
    if body.endswith(quotes[0]):
        body += "\n"
    text = f"import cupy\nimport torch\n\nkernel = cupy.RawModule(code={prefix}{quotes}{body}{quotes})\n"
    if rng.random() < 0.5:
        piece = rng.choice(pieces("python"))
        text += piece if "from __future__" not in piece else ""
    return _encoded(text, rng, cookie=True)


# ---- notebooks -------------------------------------------------------------------------------------------------------


def _notebook(rng: random.Random) -> bytes:
    cells = []
    for _ in range(rng.randint(1, 4)):
        text = _python(rng, 1)
        if rng.random() < 0.3:
            text = (
                rng.choice(("%matplotlib inline\n", "!pip install x\n", "%%time\n", "# é \u2028 \U0001f600\n")) + text
            )
        if rng.random() < 0.6:
            text = text.rstrip("\n")
        source = text.splitlines(keepends=True) if rng.random() < 0.7 else text
        cells.append({"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": source})
        if rng.random() < 0.2:
            cells.append({"cell_type": "markdown", "metadata": {}, "source": ["x.cuda()"]})
    book = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    text = json.dumps(book, indent=rng.choice((1, None, 2)), ensure_ascii=rng.random() < 0.5)
    data = (text + rng.choice(("", "\n"))).encode()
    return rng.choice((b"", b"", codecs.BOM_UTF8)) + data


# ---- what holds ------------------------------------------------------------------------------------------------------


def violations(made: Made, *, thorough: bool) -> Iterator[str]:
    """What a fix of a generated file did that none may do; nothing if all is well.

    `thorough` says whether all rules look at the outcome, and not only those that have fixes.
    """
    own = list(fixable().values())
    change, problems = change_of(made.path, own, made.content, unsafe=made.unsafe, targets=TARGETS)
    yield from (f"{one.message}" for one in problems)
    if thorough and change_of(made.path, own[::-1], made.content, unsafe=made.unsafe, targets=TARGETS)[0] != change:
        yield "the order of rules matters"
    if change is None:
        return
    yield from _bytes(change)
    again, _ = change_of(made.path, own, change.after, unsafe=made.unsafe, targets=TARGETS)
    if again is not None:
        yield f"a second run changes it: {[one.rule for one in again.rounds[0]]}"
    every = _all_rules() if thorough else own
    before, after = (measure(made.path, every, data, TARGETS) for data in (change.before, change.after))
    yield from _findings(change, before, after)
    if after.broken > before.broken:
        yield "parses worse"
    if by_name(made.path.name) == "python":
        yield from _kernels(change)
        yield from _python_trees(change)
    if by_name(made.path.name) == "notebook":
        yield from _cells(change)


@cache
def _all_rules() -> list[Rule]:
    return list(rules().values())


def _bytes(change: Change) -> Iterator[str]:
    kind, data = by_name(change.path) or "", change.before
    for made in change.rounds:
        mark, text, encoding = _text(data, kind)
        parts, at = [mark], 0
        for edit in edits_of(made):
            if edit.start < at or edit.end > len(text):
                yield f"edits overlap, or leave the file: {edit}"
                return
            parts += [text[at : edit.start].decode().encode(encoding), edit.text.encode(encoding)]
            at = edit.end
        data = b"".join([*parts, text[at:].decode().encode(encoding)])
    if data != change.after:
        yield "bytes outside of edits differ"
    if _text(change.after, kind)[::2] != _text(change.before, kind)[::2]:
        yield "encoding or mark differ"
    ends = [set(re.findall(rb"\r\n|\r|\n", _text(one, kind)[1])) for one in (change.before, change.after)]
    if ends[0] and kind != "notebook" and ends[1] != ends[0]:
        yield f"line ends differ: {ends}"


def _text(data: bytes, kind: str) -> tuple[bytes, bytes, str]:
    """The mark, the text in UTF-8 and the encoding of a file."""
    if kind == "notebook":
        mark = data[: 3 * data.startswith(codecs.BOM_UTF8)]
        return mark, data[len(mark) :], "utf_8"
    decoded = decode(data, kind)
    size = {"utf_8": 3}.get(decoded.encoding, 2) if decoded.bom else 0
    return data[:size], decoded.text, decoded.encoding


def _findings(change: Change, before: FileResult, after: FileResult) -> Iterator[str]:
    had, has = (_counts(result) for result in (before, after))
    if any(one.rule in OPENING for found in change.rounds for one in found):
        return
    made = Counter((one.rule, one.target) for found in change.rounds for one in found)
    for key, count in has.items():
        if key[0] in JUDGED:
            continue
        if count > had[key]:
            yield f"new: {key[0]} for {key[1]}"
        elif count > had[key] - made[key]:
            yield f"left: {key[0]} for {key[1]}, {had[key]} before, {made[key]} mended, {count} after"


def _counts(result: FileResult) -> Counter[tuple[str, str]]:
    return Counter((one.rule, one.target) for one in result.findings if one.verdict is not Verdict.UNKNOWN)


def _kernels(change: Change) -> Iterator[str]:
    before, after = (_broken_kernels(_text(data, "python")[1]) for data in (change.before, change.after))
    if after > before:
        yield "a kernel in a string parses worse"


def _broken_kernels(text: bytes) -> int:
    source = Source("x.py", text, "python", "x.py")
    return sum(broken_places(one.source.tree) for one in embedded.kernels(source)[0])


def _python_trees(change: Change) -> Iterator[str]:
    data = change.before
    for number, made in enumerate(change.rounds):
        text, edits = _text(data, "python")[1], edits_of(made)
        new = _edited(text, edits)
        if (old_tree := _tree(text)) is not None:
            new_tree = _tree(new)
            if new_tree is None:
                yield f"is no Python any more after round {number + 1}: {[one.rule for one in made]}"
                return
            yield from _other_nodes(old_tree, new_tree, text, edits)
        mark, _, encoding = _text(data, "python")
        data = mark + new.decode().encode(encoding)


def _edited(text: bytes, edits: Sequence[Edit]) -> bytes:
    for edit in reversed(edits):
        text = text[: edit.start] + edit.text.encode() + text[edit.end :]
    return text


def _tree(text: bytes) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text.decode(), "generated", "exec", dont_inherit=True)
            return ast.parse(text.decode())
        except (SyntaxError, ValueError):
            return None


def _other_nodes(old: ast.AST, new: ast.AST, text: bytes, edits: Sequence[Edit]) -> Iterator[str]:
    """Where two trees differ in a node that no edit touches."""
    starts = [0, *(match.end() for match in re.finditer(rb"\r\n|\r|\n", text))]

    def touched(node: ast.AST) -> bool:
        if not hasattr(node, "lineno"):
            return True
        opening = min([node, *getattr(node, "decorator_list", [])], key=lambda one: one.lineno)
        first = starts[opening.lineno - 1] + opening.col_offset
        last = starts[node.end_lineno - 1] + node.end_col_offset
        return any(edit.start <= last and first <= edit.end for edit in edits)

    waiting: list[tuple[ast.AST, ast.AST]] = [(old, new)]
    while waiting:
        one, other = waiting.pop()
        if ast.dump(one) == ast.dump(other):
            continue
        if not touched(one):
            yield f"a node that no edit touches differs: {ast.unparse(one)[:80]}"
            return
        if type(one) is not type(other):
            continue
        for field in one._fields:
            left, right = getattr(one, field, None), getattr(other, field, None)
            if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
                pairs = [(a, b) for a, b in zip(left, right, strict=True) if isinstance(a, ast.AST)]
                waiting += [(a, b) for a, b in pairs if isinstance(b, ast.AST)]
            elif isinstance(left, ast.AST) and isinstance(right, ast.AST):
                waiting.append((left, right))


def _cells(change: Change) -> Iterator[str]:
    try:
        before, after = (json.loads(data.decode("utf-8-sig")) for data in (change.before, change.after))
    except ValueError:
        yield "is no JSON any more"
        return
    read(change.after)
    for one, other in zip(before["cells"], after["cells"], strict=True):
        sources = [source if isinstance(source := cell["source"], str) else "".join(source) for cell in (one, other)]
        if _tree(sources[0].encode()) is not None and _tree(sources[1].encode()) is None:
            yield "a cell is no Python any more"
        if {**one, "source": ""} != {**other, "source": ""}:
            yield "something else than the source of a cell differs"
