"""CUDA C++ inside the strings of a Python file: the kernels that CuPy, PyCUDA, PyTorch and NVRTC compile at run time.

The text of such a kernel becomes a `Source` of its own. It is made from the literals as they are written and has
exactly their length: quotes become blanks, an escape becomes its character and blanks, a hole of a template becomes
an identifier or its value. So an offset in the kernel plus the offset of its first literal is an offset in the file.
A piece that goes into a kernel of CuPy's (`ElementwiseKernel`) is put into a function of ours; the head of that lies
before the offset.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from portlint.condition import Guard, Name, Op, any_way
from portlint.regex import regex
from portlint.source import Source
from portlint.source.node import MissingField, Node
from portlint.source.python import PythonAnalysis

if TYPE_CHECKING:
    from portlint.condition import Value
    from portlint.source.python.scopes import Binding

_TORCH_HEADERS = ("torch/extension.h", "cuda.h", "cuda_runtime.h")


_NO_HOST_PASS = Guard(
    Op("or", (Op("defined", (Name("__HIP_DEVICE_COMPILE__"),)), Op("not", (Op("defined", (Name("__HIP__"),)),)))),
    True,
    "compiled at run time",
    0,
)
"""the guard of what hiprtc reads, which compiles for the device alone"""


class _Compiler(msgspec.Struct, frozen=True):
    """A function that compiles CUDA C++ text."""

    places: tuple[tuple[int | None, str], ...]
    """the arguments that are compiled: position and keyword"""
    homes: tuple[str, ...]
    """the packages that the function is in; a class of that name from elsewhere is another one"""
    headers: tuple[str, ...] = ()
    """what it includes before the text"""
    has_host_pass: bool = False
    """whether it compiles the text for the host, too, as the compilers of whole files do"""
    bodies: tuple[tuple[int | None, str], ...] = ()
    """the arguments that it puts into a kernel of its own: statements or expressions"""
    word: bytes = b""
    """what else a file has to have, where functions of other packages have the same name"""


_COMPILERS = {
    "RawKernel": _Compiler(((0, "code"),), ("cupy", "cp", "chainer")),
    "RawModule": _Compiler(((None, "code"),), ("cupy", "cp", "chainer")),
    "SourceModule": _Compiler(((0, "source"),), ("pycuda",), has_host_pass=True),
    "DynamicSourceModule": _Compiler(((0, "source"),), ("pycuda",), has_host_pass=True),
    "load_inline": _Compiler(((1, "cpp_sources"), (2, "cuda_sources")), ("torch",), _TORCH_HEADERS, has_host_pass=True),
    "_compile_kernel": _Compiler(((0, "kernel_source"),), ("torch",)),
    "_create_jit_fn": _Compiler(((0, "code_string"),), ("torch",)),
    "_create_multi_output_jit_fn": _Compiler(((0, "code_string"),), ("torch",)),
    "nvrtcCreateProgram": _Compiler(((0, "src"),), ("cuda", "nvrtc")),
    "Program": _Compiler(((0, "code"),), ("cuda",), word=b"cuda.core"),
    "ElementwiseKernel": _Compiler(
        ((5, "preamble"),),
        ("cupy",),
        bodies=((2, "operation"), (None, "loop_prep"), (None, "after_loop")),
        word=b"cupy",
    ),
    "ReductionKernel": _Compiler(
        ((9, "preamble"),),
        ("cupy",),
        bodies=((2, "map_expr"), (3, "reduce_expr"), (4, "post_map_expr")),
        word=b"cupy",
    ),
    "create_ufunc": _Compiler(((3, "preamble"),), ("cupy",), bodies=((1, "ops"), (2, "routine")), word=b"cupy"),
    "create_reduction_func": _Compiler(
        ((4, "preamble"),), ("cupy",), bodies=((1, "ops"), (2, "routine")), word=b"cupy"
    ),
}
"""last part of a name -> what is compiled"""
_UNMISTAKABLE = frozenset(name for name, compiler in _COMPILERS.items() if not compiler.word)
"""names that nothing else has: they count where the import is not to be seen, too"""
_GATE = tuple((name.encode(), compiler.word) for name, compiler in _COMPILERS.items())
_HEAD, _TAIL = b"__device__ void kernel() {", b";}"
"""what stands around a text that is part of a kernel"""
_OPERATORS_ON_TEXT = frozenset(
    "replace strip lstrip rstrip encode decode format substitute safe_substitute render expandtabs".split()
)
_WRAPPERS = frozenset(("textwrap.dedent", "inspect.cleandoc", "str", "bytes", "dedent"))
_TEMPLATES = frozenset(("Template",))
_TYPES = regex(r"['\"][\w?]*->[\w?]+['\"]")
_DEPTH = 10
_MOST_TEXTS = 8
"""texts that one argument may be"""
_MOST_STEPS = 5_000
"""expressions looked at in one file"""
_MOST_SOURCES = 300
_MOST_BYTES = 4_000_000
"""of all kernels of a file together, with what lies between their literals"""


class Embedded(msgspec.Struct, frozen=True):
    """A kernel text and the tests of the Python code around it."""

    source: Source
    guards: tuple[Guard, ...]


class Filling(msgspec.Struct, frozen=True):
    """An operation that fills the holes of a text: `format`, `%` or a template's method."""

    kind: str
    value: Callable[[str], Value]
    """name or number of a hole -> its value"""


class Piece(msgspec.Struct, frozen=True):
    """A string literal of a text."""

    node: Node
    fillings: tuple[Filling, ...]
    """what fills its holes"""
    via: tuple[Node, ...] = ()
    """the names and calls through which it was found: their guards are its own"""


Text: TypeAlias = tuple[Piece, ...]
"""the literals that a text is made of"""


def may_hold(text: bytes) -> bool:
    """The byte gate: False only if no function that compiles kernels is named in a Python text."""
    return any(name in text and word in text for name, word in _GATE)


def kernels(source: Source) -> tuple[list[Embedded], bool]:
    """The kernel texts of a Python source, and whether there were too many to give all."""
    found: dict[tuple[int, bytes, tuple[str, ...]], list[tuple[Guard, ...]]] = {}
    size = 0
    cut_off = False
    finder = _Finder(source)
    for call, compiler in finder.calls():
        for text, is_body in finder.given(call, compiler):
            if (made := _text_of(source, text)) is None:
                continue
            begin, code = made
            if is_body:
                begin, code = begin - len(_HEAD), _HEAD + code + _TAIL
            kernel = (begin, code, compiler.headers)
            if kernel not in found:
                size += len(code)
                if len(found) == _MOST_SOURCES or size > _MOST_BYTES:
                    cut_off = True
                    break
            literals = (guard for piece in text for node in (piece.node, *piece.via) for guard in node.guards)
            passes = () if compiler.has_host_pass else (_NO_HOST_PASS,)
            found.setdefault(kernel, []).append(tuple(dict.fromkeys((*call.guards, *literals, *passes))))
    embedded = [
        Embedded(
            Source(source.path, code, "cuda", offset=source.offset + begin, headers=headers),
            ways[0] if len(set(ways)) == 1 else (any_way(ways, "calls that compile it", 0),),
        )
        for (begin, code, headers), ways in found.items()
    ]
    return embedded, cut_off or finder.steps > _MOST_STEPS


def _text_of(source: Source, text: Text) -> tuple[int, bytes] | None:
    """Where a kernel's first literal starts, and its code; literals are taken in the order in which they stand."""
    pieces = {one.node.start: one for one in text if _content(one.node) is not None}
    if not pieces:
        return None
    ordered = [pieces[start] for start in sorted(pieces)]
    begin, end = ordered[0].node.start, ordered[-1].node.end
    code = bytearray(b" " * (end - begin))
    previous: Node | None = None
    for piece in ordered:
        node = piece.node
        if previous is not None and not _in_one_expression(previous, node):
            between = source.text[previous.end : node.start]
            code[previous.end - begin : node.start - begin] = re.sub(rb"[^\r\n]", b" ", between)
        code[node.start - begin : node.end - begin] = _plain(node, piece.fillings)
        previous = node
    return begin, bytes(code)


def _in_one_expression(first: Node, second: Node) -> bool:
    """Whether two literals are joined where they stand, so that no line ends between them."""
    joins = ("concatenated_string", "binary_operator", "parenthesized_expression")
    around = next((one for one in first.ancestors() if one.type not in joins), None)
    return around is not None and around == next((one for one in second.ancestors() if one.type not in joins), None)


# ---- which literals -------------------------------------------------------------------------------------------------


class _Finder:
    """Follows the arguments of compiling functions to literals."""

    def __init__(self, source: Source) -> None:
        assert isinstance(source.analysis, PythonAnalysis)
        self.source = source
        self.scopes = source.analysis.scopes
        self.steps = 0

    def calls(self) -> Iterator[tuple[Node, _Compiler]]:
        """The calls that compile kernels, in source order."""
        names = {name for name in _COMPILERS if name.encode() in self.source.text}
        names |= {alias for alias, full in self.scopes.imports.items() if full.rpartition(".")[2] in names}
        found = (call for name in names for use in self.scopes.uses(name) if (call := _call_of(use)) is not None)
        for call in sorted(found, key=lambda one: one.start):
            function = call["function"]
            last = function["attribute"].text if function.type == "attribute" else function.text
            qualified = call.name
            compiler = _COMPILERS.get((qualified or last).rpartition(".")[2])
            if compiler is not None and _is_at_home(qualified, last, compiler) and not _is_other_language(call):
                yield call, compiler

    def given(self, call: Node, compiler: _Compiler) -> Iterator[tuple[Text, bool]]:
        """The texts that a call may compile, as far as they are written in the file, and whether each is a body."""
        for place in compiler.places:
            if (node := call.argument(*place)) is not None:
                yield from ((text, False) for text in self._texts(node, (), ()))
        for place in compiler.bodies:
            if (node := call.argument(*place)) is not None:
                yield from ((text, True) for one in _each(node) for text in self._texts(one, (), ()))

    def _texts(self, node: Node, fillings: tuple[Filling, ...], path: tuple[int, ...]) -> list[Text]:
        self.steps += 1
        if len(path) > _DEPTH or self.steps > _MOST_STEPS:
            return []
        try:
            texts = self._of(node, fillings, path)[:_MOST_TEXTS]
        except MissingField:
            return []
        if node.type not in ("identifier", "attribute", "call", "subscript"):
            return texts
        return [tuple(msgspec.structs.replace(one, via=(*one.via, node)) for one in text) for text in texts]

    def _of(self, node: Node, fillings: tuple[Filling, ...], path: tuple[int, ...]) -> list[Text]:
        match node.type:
            case "string":
                return [(Piece(node, fillings),)]
            case "concatenated_string" | "list" | "tuple":
                return self._joined(node.children, fillings, path)
            case "parenthesized_expression" if node.children:
                return self._texts(node.children[0], fillings, path)
            case "conditional_expression" if len(node.children) == 3:
                return self._any(node.children[::2], fillings, path)
            case "binary_operator" if node["operator"].text == "+":
                return self._joined((node["left"], node["right"]), fillings, path)
            case "binary_operator" if node["operator"].text == "%":
                return self._texts(node["left"], (*fillings, Filling("%", _percent_value(node["right"]))), path)
            case "call":
                return self._called(node, fillings, path)
            case "identifier":
                return self._named(node, fillings, path)
            case "attribute":
                return self._member(node, fillings, path)
            case "subscript":
                return self._entry(node, fillings, path)
        return []

    def _any(self, nodes: Iterable[Node], fillings: tuple[Filling, ...], path: tuple[int, ...]) -> list[Text]:
        return [text for node in nodes for text in self._texts(node, fillings, path)]

    def _joined(self, nodes: Iterable[Node], fillings: tuple[Filling, ...], path: tuple[int, ...]) -> list[Text]:
        """One after the other; what is not written in the file is left out."""
        parts = [self._texts(node, fillings, path) or [()] for node in nodes]
        joined = itertools.islice(itertools.product(*parts), _MOST_TEXTS)
        return [tuple(piece for text in texts for piece in text) for texts in joined]

    def _called(self, call: Node, fillings: tuple[Filling, ...], path: tuple[int, ...]) -> list[Text]:
        function, given = call["function"], call.arguments
        last = function["attribute"].text if function.type == "attribute" else function.text
        if (call.name in _WRAPPERS or last in _WRAPPERS | _TEMPLATES) and given:
            return self._texts(given[0], fillings, path)
        if function.type == "attribute" and last == "join" and given:
            return self._texts(given[0], fillings, path)
        if function.type == "attribute" and last in _OPERATORS_ON_TEXT:
            kind = {"format": "{", "render": "{{", "substitute": "$", "safe_substitute": "$"}.get(last)
            more = (Filling(kind, _call_value(call)),) if kind is not None else ()
            return self._texts(function["object"], (*more, *fillings), path)
        if function.type == "identifier":
            bound = self.scopes.only(function.text, function)
            if bound is not None and bound.kind == "function" and bound.value is not None and bound.start not in path:
                returned = (
                    one.children[0]
                    for one in bound.value["body"].walk("return_statement")
                    if one.children and self.scopes.function(one) == bound.value
                )
                return self._any(returned, fillings, (*path, bound.start))
        return []

    def _named(self, name: Node, fillings: tuple[Filling, ...], path: tuple[int, ...]) -> list[Text]:
        return self._bound(self.scopes.bindings(name.text, name), name, fillings, path)

    def _bound(
        self, bindings: list[Binding], use: Node, fillings: tuple[Filling, ...], path: tuple[int, ...]
    ) -> list[Text]:
        """What a name stands for at a use: its last value that surely was given, and those that may have come after."""
        if not bindings:
            return []
        if bindings[0].kind == "parameter" and len(bindings) == 1:
            return self._passed(bindings[0], use, fillings, path)
        own = bindings[0].value is not None and self.scopes.function(bindings[0].value) == self.scopes.function(use)
        seen = [one for one in bindings if (one.start <= use.start or not own) and one.start not in path]
        texts: list[Text] = []
        appended: list[Node] = []
        for one in reversed(seen):
            if one.value is None:
                continue
            after = (*path, one.start)
            if one.kind == "augmented":
                appended.insert(0, one.value)
            elif one.kind == "assign":
                texts += self._joined((one.value, *appended), fillings, after)
                if not _is_conditional(one.value, use):
                    break
            elif one.kind == "loop" and one.value.type in ("list", "tuple"):
                texts += self._any(one.value.children, fillings, after)
        return texts

    def _passed(
        self, parameter: Binding, use: Node, fillings: tuple[Filling, ...], path: tuple[int, ...]
    ) -> list[Text]:
        """What the calls in the same file pass for a parameter."""
        function = next((one for one in use.ancestors("function_definition") if one.start < parameter.start), None)
        if function is None or parameter.start in path:
            return []
        listed = function["parameters"].children
        index = next((i for i, one in enumerate(listed) if one.start == parameter.start), None)
        if index is None:
            return []
        is_method = bool(listed) and listed[0].text in ("self", "cls")
        given = (call.argument(index - is_method, use.text) for call in self.scopes.callers(function))
        values = [one for one in given if one is not None]
        values += [parameter.value] if parameter.value is not None else []
        return self._any(values, fillings, (*path, parameter.start))

    def _member(self, member: Node, fillings: tuple[Filling, ...], path: tuple[int, ...]) -> list[Text]:
        """`self.source` or `Kernels.SOURCE`: what the class is given under that name."""
        owner, name = member["object"], member["attribute"].text
        if owner.text in ("self", "cls"):
            around = next(member.ancestors("class_definition"), None)
        else:
            bound = self.scopes.only(owner.text, owner) if owner.type == "identifier" else None
            around = bound.value if bound is not None and bound.kind == "class" else None
        if around is None or around.start in path:
            return []
        written = [f"{one}.{name}" for one in ("self", "cls")]
        given = (one for one in around.walk("assignment") if one["left"].text in (name, *written))
        values = (one.get("right") for one in given)
        return self._any([one for one in values if one is not None], fillings, (*path, around.start))

    def _entry(self, entry: Node, fillings: tuple[Filling, ...], path: tuple[int, ...]) -> list[Text]:
        """`SOURCES["add"]`: an entry of a dictionary that is written out; every entry where the key is not known."""
        value, key = entry["value"], entry["subscript"].constant
        bound = self.scopes.only(value.text, value) if value.type == "identifier" else None
        held = bound.value if bound is not None and bound.kind == "assign" else value
        if held is None or held.type != "dictionary":
            return []
        pairs = [one for one in held.children if one.type == "pair"]
        named = [one for one in pairs if key is None or one["key"].constant == key]
        return self._any([one["value"] for one in named], fillings, (*path, held.start))


def _call_of(use: Node) -> Node | None:
    """The call of a function by that use of its name, `RawKernel(...)` or `cupy.RawKernel(...)`."""
    called, parent = use, use.parent
    if parent is not None and parent.type == "attribute" and parent["attribute"] == use:
        called, parent = parent, parent.parent
    return parent if parent is not None and parent.type == "call" and parent.get("function") == called else None


def _each(node: Node) -> Iterator[Node]:
    """The texts in a table of overloads `(("ff->f", "out0 = in0"), ...)`, without those that only name types."""
    if node.type in ("tuple", "list"):
        yield from (one for child in node.children for one in _each(child))
    elif not (node.type == "string" and _TYPES.fullmatch(node.text)):
        yield node


def _is_at_home(qualified: str, last: str, compiler: _Compiler) -> bool:
    if not qualified:
        return last in _UNMISTAKABLE
    return qualified.partition(".")[0] in compiler.homes


def _is_other_language(call: Node) -> bool:
    """Whether a call says that the text is PTX or LTO code."""
    kind = call.argument(1, "code_type")
    return kind is not None and kind.constant in ("ptx", "ltoir", "nvvm")


def _is_conditional(value: Node, use: Node) -> bool:
    """Whether a value is given in a branch or loop that the use is not in."""
    for block in value.ancestors("block", "function_definition", "class_definition"):
        if block.type != "block":
            return False
        if not block.start <= use.start < block.end and block.parent is not None:
            if block.parent.type in ("function_definition", "class_definition", "with_statement"):
                continue
            return True
    return False


# ---- their text -----------------------------------------------------------------------------------------------------

_ESCAPE = regex(
    rb"\\(?:(?P<char>['\"\\abfnrtv])|(?P<joined>\r\n|\r|\n)|x(?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})"
    rb"|U(?P<U>[0-9a-fA-F]{8})|(?P<octal>[0-7]{1,3}))"
)
_CHARS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"'": b"'", b'"': b'"', b"\\": b"\\"}
_HOLES = {
    "{": regex(rb"(?P<open>\{\{)|(?P<close>\}\})|\{(?P<name>[^{}\s]*)\}"),
    "%": regex(rb"(?P<open>%%)|%(?:\((?P<name>\w+)\))?[-+0# ]*\d*(?:\.\d+)?[diouxXeEfFgGcrsa]"),
    "$": regex(rb"(?P<open>\$\$)|\$(?:\{(?P<name>\w+)\}|(?P<bare>[A-Za-z_]\w*))"),
    "{{": regex(rb"(?P<blank>\{[%#].*?[%#]\})|\{\{\s*(?P<name>.*?)\s*\}\}", re.DOTALL),
}
_NOT_WORD = regex(rb"\W")


def _content(string: Node) -> tuple[int, int] | None:
    """Where the text between the quotes is; None for a literal that does not close."""
    ends = {child.type: child for child in string.children if child.type in ("string_start", "string_end")}
    if len(ends) != 2 or ends["string_end"].start == ends["string_end"].end:
        return None
    return ends["string_start"].end, ends["string_end"].start


def _plain(string: Node, fillings: tuple[Filling, ...]) -> bytes:
    """The text of a literal, as long as the literal."""
    content = _content(string)
    assert content is not None
    begin, end = content
    text = string.source.text
    prefix = text[string.start : begin].rstrip(b"'\"").lower()
    parts: list[bytes] = []
    at = begin
    holes = [one for one in string.children if one.type == "interpolation"]
    for hole in holes:
        parts.append(_unescaped(text[at : hole.start], prefix))
        parts.append(_filled(text[hole.start : hole.end], _interpolated(hole), text[hole.end : hole.end + 1]))
        at = hole.end
    parts.append(_unescaped(text[at:end], prefix))
    inner = b"".join(parts)
    for filling in fillings:
        inner = _fill(inner, filling)
    return b" " * (begin - string.start) + inner + b" " * (string.end - end)


def _unescaped(text: bytes, prefix: bytes) -> bytes:
    if b"f" in prefix or b"t" in prefix:
        text = text.replace(b"{{", b"{ ").replace(b"}}", b"} ")
    return text if b"r" in prefix or b"\\" not in text else _ESCAPE.sub(_character, text)


def _character(escape: re.Match[bytes]) -> bytes:
    """The character of an escape and blanks, placed so that a backslash at the end of a line stays there."""
    if escape["char"]:
        char = _CHARS.get(escape["char"], b" ")
    elif escape["joined"]:
        char = b" "
    else:
        digits = escape["x"] or escape["u"] or escape["U"]
        code = int(digits, 16) if digits else int(escape["octal"], 8)
        printable = 0x20 <= code < 0xD800 or 0xE000 <= code < 0x110000
        char = chr(code).encode() if printable else b" "
    return char.ljust(len(escape[0])) if char == b"\n" else char.rjust(len(escape[0]))


def _fill(text: bytes, filling: Filling) -> bytes:
    unnamed = itertools.count()

    def hole(match: re.Match[bytes]) -> bytes:
        groups = match.groupdict()
        if groups.get("open") or groups.get("close"):
            return match[0][:1] + b" "
        if groups.get("blank"):
            return re.sub(rb"[^\r\n]", b" ", match[0])
        name = groups.get("name") or groups.get("bare") or str(next(unnamed)).encode()
        return _filled(match[0], filling.value(name.decode(errors="replace")), text[match.end() : match.end() + 1])

    return _HOLES[filling.kind].sub(hole, text)


def _filled(hole: bytes, value: Value, following: bytes) -> bytes:
    """What stands for a hole: its value where that is known and short enough, else an identifier."""
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        shown = str(value).encode()
        if len(shown) <= len(hole) and (len(shown) == len(hole) or not re.match(rb"\w", following)):
            return shown.ljust(len(hole))
    return _NOT_WORD.sub(b"_", hole)


def _interpolated(hole: Node) -> Value:
    """The value of `{name}` in an f-string; not that of `{name:x}`, which is spelled in another way."""
    return hole.children[0].constant if len(hole.children) == 1 else None


def _call_value(call: Node) -> Callable[[str], Value]:
    def value(name: str) -> Value:
        position = int(name) if name.isdecimal() and len(name) < 4 else None
        given = call.argument(position, "" if position is not None else name)
        return given.constant if given is not None else None

    return value


def _percent_value(right: Node) -> Callable[[str], Value]:
    def value(name: str) -> Value:
        if right.type == "dictionary":
            pairs = (one for one in right.children if one.type == "pair" and one["key"].constant == name)
            return next((one["value"].constant for one in pairs), None)
        given = right.children if right.type == "tuple" else [right]
        return given[int(name)].constant if name.isdecimal() and int(name) < len(given) else None

    return value
