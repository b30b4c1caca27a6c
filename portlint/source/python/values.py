"""What is known of a Python value without running it: is it a tensor or a host array, of which dtype, and where.

A small abstract interpreter over single assignments. It says nothing rather than guess: every field may be unknown.
"""

from __future__ import annotations

import re
from functools import reduce
from typing import TYPE_CHECKING

import msgspec

from portlint.source.python.constants import constant

if TYPE_CHECKING:
    from portlint.source.node import Node
    from portlint.source.python.scopes import Binding, Scopes

_DEPTH = 12


class Abstract(msgspec.Struct, frozen=True):
    """A value as far as it is known."""

    kind: str = ""
    """tensor | array (NumPy) | traced (a JAX array) | number | text | list | object | other | "" for unknown"""
    dtype: str = ""
    """float64, float32, bfloat16, int64, ... or "" """
    place: str = ""
    """host | device | "" for unknown: of tensors and traced arrays"""


NOTHING = Abstract()

DTYPES = {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "float_": "float64",
}
"""other names of dtypes, as torch and NumPy attributes"""

_DTYPE = re.compile(r"^(float\d+(_\w+)?|bfloat16|u?int\d+|complex\d+|bool)$")
_CONVERSIONS = {"double": "float64", "float": "float32", "half": "float16", "bfloat16": "bfloat16", "long": "int64",
                "int": "int32", "cdouble": "complex128", "cfloat": "complex64", "bool": "bool"}  # fmt: skip

_NUMPY_FLOAT64 = frozenset(
    "zeros ones empty linspace logspace geomspace eye identity hanning hamming blackman bartlett kaiser".split()
)
_NUMPY_RANDOM = frozenset(
    "rand randn random random_sample normal uniform standard_normal beta gamma exponential poisson".split()
)
_TORCH_CREATORS = frozenset(
    "zeros ones empty full rand randn arange linspace logspace eye tensor as_tensor scalar_tensor randperm randint"
    " from_numpy zeros_like ones_like empty_like full_like rand_like randn_like complex polar".split()
)
_INDICES = frozenset("nonzero argwhere argmax argmin argsort count_nonzero bincount searchsorted multinomial".split())
"""operations whose result is int64 whatever they are given"""
_TESTS = frozenset(
    "isnan isinf isfinite isclose isin eq ne lt le gt ge logical_and logical_or logical_not any all".split()
)
"""operations whose result is bool"""
_COUNTS = frozenset("sum cumsum prod cumprod".split())
"""operations that make int64 of booleans"""
_NARROW = frozenset(("float16", "bfloat16"))
_TRACED_CREATORS = {
    **dict.fromkeys(("zeros", "ones", "empty", "array", "asarray", "astype"), 1),
    **dict.fromkeys(("full", "normal", "uniform", "truncated_normal"), 2),
}
"""functions of JAX that take a dtype, and its position"""
_TRACED_LINEAR = ("jax.numpy.linalg.", "jax.scipy.linalg.", "jax.lax.linalg.")
"""functions whose results have the dtype of their first argument"""
_TRACED_PRODUCTS = frozenset("matmul dot vdot tensordot einsum inner outer kron transpose reshape".split())
_HOST_METHODS = frozenset(("numpy", "tolist", "item"))
_TENSOR_ANNOTATION = re.compile(r"\b(Tensor|FloatTensor|LongTensor)\b")
_ARRAY_ANNOTATION = re.compile(r"\b(ndarray|NDArray)\b")
_TRACED_ANNOTATION = re.compile(r"\b(jax\.Array|jnp\.ndarray|ArrayLike)\b")
_FLOAT_LIST = re.compile(r"^(list|List|Sequence|tuple|Tuple)\[.*\bfloat\b.*\]$")


class Values:
    """The abstract values of one file."""

    def __init__(self, scopes: Scopes) -> None:
        self.scopes = scopes
        self._known: dict[tuple[int, int], Abstract] = {}

    def of(self, node: Node, depth: int = _DEPTH) -> Abstract:
        """What is known of an expression."""
        key = node.start, node.end
        if key not in self._known:
            self._known[key] = NOTHING  # a value that depends on itself is not known
            self._known[key] = self._infer(node, depth) if depth else NOTHING
        return self._known[key]

    def dtype(self, node: Node | None) -> str:
        """The dtype that an expression such as `torch.float64`, `np.double` or "float32" names, or ""."""
        if node is None:
            return ""
        value = constant(self.scopes, node)
        if isinstance(value, str) and _DTYPE.match(value):
            return value
        name = self.scopes.qualified(node)
        if name == "float":
            return "float64"
        module, _, last = name.rpartition(".")
        if module.partition(".")[0] in ("torch", "numpy", "jax", "triton"):
            if module == "numpy" and last == "float":
                return "float64"
            last = DTYPES.get(last, last)
            return last if _DTYPE.match(last) else ""
        if node.type == "attribute" and node["attribute"].text == "dtype":
            return self.of(node["object"]).dtype
        if node.type == "identifier" and not name:
            binding = self.scopes.only(node.text, node)
            if binding is not None and binding.kind == "assign" and binding.value is not None:
                return self.dtype(binding.value) if binding.value != node else ""
        return ""

    def place(self, node: Node | None) -> str:
        """Where a device expression points: host, device, or "" where it is not known."""
        if node is None:
            return ""
        value = constant(self.scopes, node)
        if isinstance(value, str):
            return "host" if value.partition(":")[0] in ("cpu", "meta") else "device"
        if node.type == "call" and self.scopes.qualified(node) == "torch.device":
            return self.place(node.argument(0, "type"))
        if node.type == "identifier":
            binding = self.scopes.only(node.text, node)
            if binding is not None and binding.kind == "assign" and binding.value not in (None, node):
                return self.place(binding.value) or "device"
        if node.type == "attribute" and node["attribute"].text == "device":
            return self.of(node["object"]).place or "device"
        return "device"

    def _infer(self, node: Node, depth: int) -> Abstract:
        match node.type:
            case "parenthesized_expression" | "unary_operator" | "await":
                child = node.get("argument") or next(iter(node.children), None)
                return self.of(child, depth - 1) if child is not None else NOTHING
            case "integer" | "float" | "true" | "false":
                return Abstract("number")
            case "string" | "concatenated_string":
                return Abstract("text")
            case "list" | "list_comprehension" | "tuple" | "dictionary" | "set":
                return Abstract("list")
            case "binary_operator":
                return promote(self.of(node["left"], depth - 1), self.of(node["right"], depth - 1))
            case "comparison_operator" if len(node.children) == 2:
                both = promote(*(self.of(child, depth - 1) for child in node.children))
                return (
                    Abstract(both.kind, "bool", both.place) if both.kind in ("tensor", "array", "traced") else NOTHING
                )
            case "conditional_expression" if len(node.children) == 3:
                body, other = self.of(node.children[0], depth - 1), self.of(node.children[2], depth - 1)
                return body if body == other else Abstract(body.kind if body.kind == other.kind else "")
            case "subscript":
                value = self.of(node["value"], depth - 1)
                if node["value"].type == "attribute" and node["value"]["attribute"].text == "shape":
                    return Abstract("number")
                return value if value.kind in ("tensor", "array", "traced") else NOTHING
            case "attribute":
                return self._attribute(node, depth)
            case "identifier":
                return self._identifier(node, depth)
            case "call":
                return self._call(node, depth)
        return NOTHING

    def _attribute(self, node: Node, depth: int) -> Abstract:
        attribute = node["attribute"].text
        if attribute in ("T", "mT", "data", "real", "imag", "grad"):
            return self.of(node["object"], depth - 1)
        return Abstract("other") if attribute in ("shape", "device", "dtype", "ndim") else NOTHING

    def _identifier(self, node: Node, depth: int) -> Abstract:
        binding = self.scopes.binding(node.text, node)
        if binding is None:
            return NOTHING
        if binding.annotation and (known := _annotated(binding.annotation)).kind:
            return known
        if binding.value is None:
            return NOTHING
        value = self.of(binding.value, depth - 1)
        if binding.kind in ("assign", "augmented"):
            return value
        if binding.kind == "loop":
            return self._element(binding, value)
        return NOTHING

    def _element(self, binding: Binding, value: Abstract) -> Abstract:
        """What iterating over a value gives: a parameter annotated list[Tensor] gives tensors."""
        if value.kind in ("tensor", "array", "traced"):
            return value
        source = binding.value
        if source is not None and source.type == "identifier":
            outer = self.scopes.binding(source.text, source)
            if outer is not None and _TENSOR_ANNOTATION.search(outer.annotation):
                return Abstract("tensor")
        return NOTHING

    def _call(self, node: Node, depth: int) -> Abstract:
        name = self.scopes.qualified(node)
        if name.startswith("numpy."):
            return self._numpy(node, name.removeprefix("numpy."), depth)
        if name.startswith("torch."):
            return self._torch(node, name.removeprefix("torch."), depth)
        if name.startswith(("jax.numpy.", "jax.lax.", "jax.random.", "jax.nn.", *_TRACED_LINEAR)):
            return Abstract("traced", self._traced_dtype(node, name, depth), "device")
        function = node["function"]
        if function.type == "attribute":
            return self._method(node, function["attribute"].text, self.of(function["object"], depth - 1))
        if name in ("len", "int", "float", "bool", "min", "max"):
            return Abstract("number")
        if name in ("list", "tuple", "dict", "range", "set"):
            return Abstract("list")
        return self._instance(function)

    def _traced_dtype(self, node: Node, name: str, depth: int) -> str:
        """The dtype of what a function of JAX returns: as it says, or as its arguments have it."""
        function = name.rpartition(".")[2]
        explicit = node.argument(_TRACED_CREATORS.get(function), "dtype")
        if explicit is not None:
            return self.dtype(explicit)
        if name == f"jax.numpy.{function}" and _DTYPE.match(function):
            return function
        if name.startswith(_TRACED_LINEAR) and node.arguments:
            return self.of(node.arguments[0], depth - 1).dtype
        if function in _TRACED_PRODUCTS:
            given = [self.of(one, depth - 1) for one in node.arguments]
            dtypes = {one.dtype for one in given if one.kind not in ("text", "number", "list")}
            return next(iter(dtypes)) if len(dtypes) == 1 else ""
        return ""

    def _instance(self, function: Node) -> Abstract:
        """What calling a class of this file makes; nothing is known of subclasses of classes from elsewhere."""
        binding = self.scopes.only(function.text, function) if function.type == "identifier" else None
        if binding is None or binding.kind != "class" or binding.value is None:
            return NOTHING
        return NOTHING if binding.value.get("superclasses") is not None else Abstract("object")

    def _numpy(self, node: Node, name: str, depth: int) -> Abstract:
        explicit = self.dtype(node.argument(None, "dtype"))
        if explicit or node.argument(None, "dtype") is not None:
            return Abstract("array", explicit, "host")
        if name in _NUMPY_FLOAT64 or (name.startswith("random.") and name.removeprefix("random.") in _NUMPY_RANDOM):
            return Abstract("array", "float64", "host")
        if name in ("array", "asarray", "stack", "concatenate") and node.arguments:
            first = node.arguments[0]
            elements = first.children if first.type in ("list", "tuple") else []
            dtype = reduce(promote, (self.of(one, depth - 1) for one in elements), self.of(first, depth - 1)).dtype
            return Abstract("array", "float64" if self._holds_floats(first) else dtype, "host")
        if name in ("float64", "double"):
            return Abstract("array", "float64", "host")
        for argument in node.arguments:
            inner = self.of(argument, depth - 1)
            if inner.kind == "array":
                return Abstract("array", inner.dtype, "host")
        return Abstract("array", "", "host")

    def _holds_floats(self, node: Node) -> bool:
        """Whether a list certainly holds Python floats, which NumPy turns into float64."""
        if node.type == "identifier":
            binding = self.scopes.binding(node.text, node)
            return binding is not None and _FLOAT_LIST.match(binding.annotation) is not None
        return node.type in ("list", "tuple") and any(child.type == "float" for child in node.walk("float"))

    def _torch(self, node: Node, name: str, depth: int) -> Abstract:
        if name.startswith(("cuda.", "distributed.", "utils.", "nn.Module", "version.", "backends.")):
            return NOTHING
        dtype_argument, device_argument = node.argument(None, "dtype"), node.argument(None, "device")
        dtype = self.dtype(dtype_argument)
        first = self.of(node.arguments[0], depth - 1) if node.arguments else NOTHING
        if name in _TORCH_CREATORS:
            if not dtype and dtype_argument is None and first.kind in ("array", "tensor"):
                dtype = first.dtype
            default = first.place if name.endswith("_like") else "host"
            return Abstract("tensor", dtype, self.place(device_argument) if device_argument is not None else default)
        if name in ("load", "device", "dtype", "Generator", "is_tensor", "compile", "jit.script", "no_grad", "finfo"):
            return NOTHING
        inputs = [self.of(argument, depth - 1) for argument in node.arguments]
        tensors = [one for one in inputs if one.kind == "tensor"]
        merged = tensors[0] if tensors else Abstract("tensor")
        for one in tensors[1:]:
            merged = promote(merged, one)
        return Abstract("tensor", dtype or _result(name, merged.dtype), merged.place)

    def _method(self, node: Node, method: str, owner: Abstract) -> Abstract:
        if method in _HOST_METHODS:
            return Abstract("number" if method == "item" else "array", owner.dtype, "host")
        if owner.kind in ("number", "text", "list", "object"):
            return NOTHING
        if method == "astype":
            return Abstract(owner.kind or "array", self.dtype(node.argument(0, "dtype")), owner.place)
        if method in _CONVERSIONS and not node.arguments:
            return Abstract(owner.kind or "tensor", _CONVERSIONS[method], owner.place)
        if method == "cpu":
            return Abstract("tensor", owner.dtype, "host")
        if method in ("cuda", "xpu", "npu"):
            return Abstract("tensor", owner.dtype, "device")
        if method == "to":
            return self._moved(node, owner)
        if method in ("size", "dim", "numel", "backward", "data_ptr", "stride"):
            return Abstract("number")
        if owner.kind not in ("tensor", "array", "traced"):
            return NOTHING
        return Abstract(owner.kind, _result(method, owner.dtype), owner.place)

    def _moved(self, node: Node, owner: Abstract) -> Abstract:
        """`x.to(...)`: a dtype, a device, another tensor, or both."""
        dtype, place = owner.dtype, owner.place
        given = [*node.arguments, node.argument(None, "dtype"), node.argument(None, "device")]
        for argument in given:
            if argument is None:
                continue
            named = self.dtype(argument)
            if named:
                dtype = named
            elif self.of(argument).kind != "tensor" and not _names_dtype(argument):
                place = self.place(argument)
            else:
                dtype = ""
        return Abstract(owner.kind or "tensor", dtype, place)


def _result(operation: str, dtype: str) -> str:
    """The dtype of an operation's result, for an input of a dtype."""
    if operation in _TESTS:
        return "bool"
    counts = operation in _COUNTS and dtype == "bool"
    return "int64" if counts or operation in _INDICES else dtype


def _names_dtype(node: Node) -> bool:
    return "dtype" in node.text.lower()


def _annotated(annotation: str) -> Abstract:
    if annotation.startswith(("list", "List", "tuple", "Tuple", "dict", "Dict", "Sequence", "Iterable")):
        return Abstract("list")
    if _TRACED_ANNOTATION.search(annotation):
        return Abstract("traced", "", "device")
    if _ARRAY_ANNOTATION.search(annotation):
        return Abstract("array", "", "host")
    if _TENSOR_ANNOTATION.search(annotation):
        return Abstract("tensor")
    if annotation in ("int", "float", "bool"):
        return Abstract("number")
    return Abstract("text") if annotation == "str" else NOTHING


def promote(left: Abstract, right: Abstract) -> Abstract:
    """The result of arithmetic between two values.

    A tensor wins over an array, an array over a number; a Python number leaves the dtype alone; the wider dtype wins
    where both are known. A narrow one is not known beside a value of which nothing is.
    """
    for kind in ("tensor", "traced", "array"):
        sides = [side for side in (left, right) if side.kind == kind]
        if not sides:
            continue
        dtypes = {side.dtype for side in sides}
        dtype = "float64" if "float64" in dtypes else next(iter(dtypes)) if len(dtypes) == 1 else ""
        if dtype in _NARROW and not (left.kind and right.kind):
            dtype = ""
        places = {side.place for side in sides} - {""}
        return Abstract(kind, dtype, next(iter(places)) if len(places) == 1 else "")
    return Abstract("number") if left.kind == right.kind == "number" else NOTHING
