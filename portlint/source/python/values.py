"""What is known of a Python value without running it: is it a tensor or a host array, of which dtype, and where.

A small abstract interpreter over single assignments. It says nothing rather than guess: every field may be unknown.
"""

from __future__ import annotations

import re
from functools import cached_property, reduce
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
    """host | device | "" for unknown: of tensors and traced arrays; of a number or list, that it was read back from
    the device"""
    sized: str = ""
    """"data" where the shape depends on data on the device"""


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
    " Tensor FloatTensor LongTensor IntTensor BoolTensor from_numpy zeros_like ones_like empty_like full_like rand_like"
    " randn_like complex polar".split()
)
_INDICES = frozenset("nonzero argwhere argmax argmin argsort count_nonzero bincount searchsorted multinomial".split())
"""operations whose result is int64 whatever they are given"""
_TESTS = frozenset(
    "isnan isinf isfinite isclose isin eq ne lt le gt ge logical_and logical_or logical_not any all".split()
)
"""operations whose result is bool"""
_COUNTS = frozenset("sum cumsum prod cumprod".split())
"""operations that make int64 of booleans"""
_HOST_METHODS = frozenset(("numpy", "tolist", "item"))
_SELECTIONS = frozenset("nonzero argwhere unique unique_consecutive masked_select".split())
"""operations that give as many elements as the data decides"""
_KEEP_SIZE = (
    frozenset("squeeze unsqueeze flatten view reshape contiguous clone detach t transpose permute type_as sort".split())
    | set(_CONVERSIONS)
    | {"to"}
)
"""operations after which a size that depends on data still does"""
_TENSOR_MODULES = frozenset(("", "nn.functional", "linalg", "fft", "special", "nn.utils"))
"""modules of torch whose functions give tensors"""
_HOST_LOADERS = frozenset(
    "torchaudio.load torchvision.io.read_image torchvision.io.read_video torchvision.transforms.functional.to_tensor"
    " torchvision.transforms.functional.pil_to_tensor".split()
)
"""functions that read files or images into tensors on the CPU"""
_LIKE_TORCH = ("torchaudio.functional.", "torchvision.transforms.functional.")
_ASK = ("is_", "are_", "get_", "set_", "can_", "use_", "manual_", "enable_", "inference_")
_NO_TENSOR = frozenset(
    "load save device dtype Generator Size compile no_grad set_grad_enabled finfo iinfo equal allclose autocast numel"
    " typename seed initial_seed result_type promote_types clip_grad_value_ parameters_to_vector vmap".split()
)
_OF_NUMBERS = frozenset("int float bool round abs min max".split())
_OF_TENSORS = frozenset(
    "backward detach unsqueeze masked_fill masked_fill_ contiguous permute numel new_zeros new_ones new_full new_tensor"
    " expand_as index_select index_add_ scatter_ scatter_add_ requires_grad_ type_as view_as size long".split()
)
"""methods that tensors have, and arrays, lists and modules have not"""
_TENSOR_ANNOTATION = re.compile(r"\b(Tensor|FloatTensor|LongTensor)\b")
_ARRAY_ANNOTATION = re.compile(r"\b(ndarray|NDArray)\b")
_TRACED_ANNOTATION = re.compile(r"\b(jax\.Array|jnp\.ndarray|ArrayLike)\b")
_CONTAINER_ANNOTATION = re.compile(r"\b(list|List|tuple|Tuple|dict|Dict|Sequence|Iterable|Iterator|Callable)\b")
_NUMBER_ANNOTATION = re.compile(r"\b(int|float|bool|str)\b")
_FLOAT_LIST = re.compile(r"^(list|List|Sequence|tuple|Tuple)\[.*\bfloat\b.*\]$")


class Values:
    """The abstract values of one file."""

    def __init__(self, scopes: Scopes) -> None:
        self.scopes = scopes
        self._known: dict[tuple[int, int], Abstract] = {}
        self._used_as_tensor: dict[tuple[int, str], bool] = {}

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
            case "comparison_operator" if len(node.children) == 2 and _compares_values(node):
                both = promote(*(self.of(child, depth - 1) for child in node.children))
                return (
                    Abstract(both.kind, "bool", both.place) if both.kind in ("tensor", "array", "traced") else NOTHING
                )
            case "conditional_expression" if len(node.children) == 3:
                body, other = self.of(node.children[0], depth - 1), self.of(node.children[2], depth - 1)
                return body if body == other else Abstract(body.kind if body.kind == other.kind else "")
            case "subscript":
                return self._subscript(node, depth)
            case "attribute":
                return self._attribute(node, depth)
            case "identifier":
                return self._identifier(node, depth)
            case "call":
                return self._call(node, depth)
        return NOTHING

    def _subscript(self, node: Node, depth: int) -> Abstract:
        value = self.of(node["value"], depth - 1)
        if value.kind not in ("tensor", "array", "traced", "list"):
            return NOTHING
        if value.kind == "list":  # of what was read back, as `mask.sum(1).tolist()[0]` or `rows.shape[0]`
            return Abstract("number", "", "device") if value.place == "device" else NOTHING
        index = node["subscript"]
        if value.kind == "tensor" and value.place != "host" and self.of(index, depth - 1).dtype == "bool":
            return msgspec.structs.replace(value, sized="data")
        # a slice, or one of the tensors that `torch.where(mask)` gives, has still a size of its own
        keeps = index.type == "slice" or node["value"].type == "call"
        return value if keeps else msgspec.structs.replace(value, sized="")

    def _attribute(self, node: Node, depth: int) -> Abstract:
        attribute = node["attribute"].text
        if attribute in ("T", "mT", "data", "real", "imag", "grad"):
            return self.of(node["object"], depth - 1)
        if attribute == "shape" and self.of(node["object"], depth - 1).sized:
            return Abstract("list", "", "device")
        return Abstract("other") if attribute in ("shape", "device", "dtype", "ndim") else NOTHING

    def _identifier(self, node: Node, depth: int) -> Abstract:
        binding = self.scopes.binding(node.text, node)
        if binding is None:
            return NOTHING
        value = self.of(binding.value, depth - 1) if binding.value is not None else NOTHING
        if binding.annotation and (known := _annotated(binding.annotation)).kind:
            known = value if value.kind == known.kind and binding.kind == "assign" else known
            return Abstract("number") if known.kind == "tensor" and _is_number_here(node) else known
        if binding.kind == "loop":
            value = self._element(node, binding, depth)
        elif binding.kind == "item":
            value = msgspec.structs.replace(value, dtype="") if value.kind == "tensor" else NOTHING
        elif binding.kind not in ("assign", "augmented"):
            value = NOTHING
        if (
            value == NOTHING
            and binding.kind in ("assign", "item", "loop", "parameter")
            and self._is_used_as_tensor(node)
        ):
            return Abstract("tensor")
        if value.kind == "tensor" and _is_number_here(node):
            return Abstract("number")
        return NOTHING if self._may_be_other(node, binding, value, depth) else value

    def _may_be_other(self, name: Node, binding: Binding, value: Abstract, depth: int) -> bool:
        """Whether a name got its value in a branch that the use is not in, and was something else before."""
        if value.kind not in ("tensor", "number") or binding.value is None or not _is_conditional(binding.value, name):
            return False
        for earlier in reversed(self.scopes.bindings(name.text, name)):
            known = earlier.value is not None and earlier.value.type != "none"
            if earlier.start < binding.start and earlier.kind in ("assign", "item") and known:
                before = self.of(earlier.value, depth - 1) if earlier.value is not None else NOTHING
                return before.kind not in ("", value.kind)
        return False

    def _is_used_as_tensor(self, name: Node) -> bool:
        """Whether the function around a name calls a method of it that only tensors have."""
        function = self.scopes.function(name)
        key = function.start if function is not None else -1, name.text
        if function is None or not self._has_torch:
            return False
        if key not in self._used_as_tensor:
            self._used_as_tensor[key] = any(
                function.start < use.start < function.end and _is_tensor_method(use)
                for use in self.scopes.uses(name.text)
            )
        return self._used_as_tensor[key]

    def _element(self, name: Node, binding: Binding, depth: int) -> Abstract:
        """What iterating over a value gives: a parameter annotated list[Tensor] gives tensors."""
        source = _iterated(name, binding.value) if binding.value is not None else None
        if source is None:
            return NOTHING
        value = self.of(source, depth - 1)
        if value.kind in ("tensor", "array", "traced"):
            return value
        if source.type == "identifier":
            outer = self.scopes.binding(source.text, source)
            if outer is not None and _TENSOR_ANNOTATION.search(outer.annotation):
                return Abstract("tensor")
        return NOTHING

    def _call(self, node: Node, depth: int) -> Abstract:
        name = self.scopes.qualified(node)
        if name.startswith("numpy."):
            return self._numpy(node, name.removeprefix("numpy."), depth)
        if name in _HOST_LOADERS:
            return Abstract("tensor", "", "host")
        if name.startswith(_LIKE_TORCH):
            return self._torch(node, name.rpartition(".")[2], depth)
        if name.startswith("torch."):
            return self._torch(node, name.removeprefix("torch."), depth)
        if name.startswith(("jax.numpy.", "jax.lax.", "jax.random.", "jax.nn.")):
            return Abstract("traced", self.dtype(node.argument(None, "dtype")), "device")
        if name.startswith("math."):
            return self._number(node.arguments, depth)
        function = node["function"]
        if function.type == "attribute":
            return self._method(node, function["attribute"].text, self.of(function["object"], depth - 1))
        if name in _OF_NUMBERS:
            return self._number(node.arguments, depth)
        if name == "len":
            sized = bool(node.arguments) and self.of(node.arguments[0], depth - 1).sized
            return Abstract("number", "", "device" if sized else "")
        if name in ("list", "tuple", "dict", "range", "set"):
            return Abstract("list")
        return self._instance(function)

    def _number(self, arguments: list[Node], depth: int) -> Abstract:
        """A Python number made of others, or of tensors: it is read back if one of them is on the device."""
        given = [self.of(argument, depth - 1) for argument in arguments]
        read = any(
            one.place != "host" if one.kind == "tensor" else one.kind == "number" and one.place == "device"
            for one in given
        )
        return Abstract("number", "", "device" if read else "")

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
        module, _, last = name.rpartition(".")
        if module not in _TENSOR_MODULES or last.startswith(_ASK) or last in _NO_TENSOR:
            return NOTHING
        dtype_argument, device_argument = node.argument(None, "dtype"), node.argument(None, "device")
        dtype = self.dtype(dtype_argument)
        first = self.of(node.arguments[0], depth - 1) if node.arguments else NOTHING
        if name in _TORCH_CREATORS:
            if not dtype and dtype_argument is None and first.kind in ("array", "tensor"):
                dtype = first.dtype
            default = first.place if name.endswith("_like") else "host"
            return Abstract("tensor", dtype, self.place(device_argument) if device_argument is not None else default)
        inputs = [self.of(argument, depth - 1) for argument in node.arguments]
        tensors = [one for one in inputs if one.kind == "tensor"]
        merged = tensors[0] if tensors else Abstract("tensor")
        for one in tensors[1:]:
            merged = promote(merged, one)
        sized = name in _SELECTIONS or (name == "where" and len(node.arguments) == 1)
        sized = sized and merged.place != "host"
        return Abstract("tensor", dtype or _result(name, merged.dtype), merged.place, "data" if sized else "")

    def _method(self, node: Node, method: str, owner: Abstract) -> Abstract:
        if method in _HOST_METHODS:
            read = owner.kind == "tensor" and owner.place != "host" and method != "numpy"
            return Abstract("number" if method == "item" else "array", owner.dtype, "device" if read else "host")
        if owner.kind in ("number", "text", "list", "object"):
            return NOTHING
        if method == "astype":
            return Abstract(owner.kind or "array", self.dtype(node.argument(0, "dtype")), owner.place)
        if method in _CONVERSIONS and not node.arguments:
            return Abstract(owner.kind or "tensor", _CONVERSIONS[method], owner.place, owner.sized)
        if method == "cpu":
            return Abstract("tensor", owner.dtype, "host")
        if method in ("cuda", "xpu", "npu"):
            return Abstract("tensor", owner.dtype, "device")
        if method == "to":
            return self._moved(node, owner)
        if method in ("size", "dim", "numel", "backward", "data_ptr", "stride"):
            return Abstract("number", "", "device" if owner.sized else "")
        if method.startswith(_ASK) or method in ("storage", "untyped_storage"):
            return NOTHING
        if not owner.kind and self._is_tensor_call(node, method):
            return Abstract("tensor", _result(method, ""))
        if owner.kind not in ("tensor", "array", "traced"):
            return NOTHING
        selects = method in _SELECTIONS and owner.kind == "tensor" and owner.place != "host"
        sized = "data" if selects else owner.sized if method in _KEEP_SIZE else ""
        return Abstract(owner.kind, _result(method, owner.dtype), owner.place, sized)

    def _is_tensor_call(self, call: Node, method: str) -> bool:
        """Whether a method of something unknown is one of tensors, by its name or by an argument `dim` or `keepdim`."""
        named = call.argument(None, "dim") is not None or call.argument(None, "keepdim") is not None
        return (named or method in _OF_TENSORS) and self._has_torch

    @cached_property
    def _has_torch(self) -> bool:
        return any(module.partition(".")[0] == "torch" for module in self.scopes.imports.values())

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
        return Abstract(owner.kind or "tensor", dtype, place, owner.sized)


def _iterated(name: Node, iterable: Node) -> Node | None:
    """What a loop's variable runs over: `xs` for the x of `for i, x in enumerate(xs)`, and of `zip(xs, ys)`."""
    function = iterable["function"].text if iterable.type == "call" else ""
    if function not in ("enumerate", "zip", "tqdm", "reversed"):
        return iterable
    given = iterable.get("arguments")
    loop = iterable.parent
    arguments = [one for one in given.children if one.type != "keyword_argument"] if given is not None else []
    targets = loop["left"].children if loop is not None and loop.get("left") is not None else []
    place = next((at for at, target in enumerate(targets) if target.text == name.text), 0)
    if function == "enumerate":
        place -= 1
    elif function in ("tqdm", "reversed"):
        place = 0
    return arguments[place] if 0 <= place < len(arguments) else None


def _is_number_here(use: Node) -> bool:
    """Whether a name stands in the branch of a test that it is a number: `isinstance(x, int)`."""
    for branch in use.ancestors("if_statement", "conditional_expression", "function_definition"):
        if branch.type == "function_definition":
            return False
        test = branch.get("condition")
        body = branch.get("consequence")
        if branch.type == "conditional_expression" and len(branch.children) == 3:
            body, test = branch.children[:2]
        if test is None or body is None or not body.start <= use.start < body.end:
            continue
        for call in test.walk("call"):
            asked = call.arguments if call["function"].text == "isinstance" else []
            if len(asked) == 2 and asked[0].text == use.text and _NUMBER_ANNOTATION.search(asked[1].text):
                return True
    return False


def _is_conditional(value: Node, use: Node) -> bool:
    """Whether a value is given in a branch or loop that a use does not stand in."""
    block = next((one for one in value.ancestors("block", "function_definition")), None)
    while block is not None and block.type == "block":
        owner = block.parent
        if owner is None or owner.type in ("function_definition", "with_statement"):
            return False
        if not block.start <= use.start < block.end:
            return True
        block = next((one for one in block.ancestors("block", "function_definition")), None)
    return False


def _compares_values(comparison: Node) -> bool:
    """Whether values are compared, and not identities (`is`) or membership (`in`)."""
    operators = comparison.raw.children_by_field_name("operators")
    return not any(one.type in ("is", "is not", "in", "not in") for one in operators)


def _is_tensor_method(use: Node) -> bool:
    """Whether a name is used as `x` in `x.unsqueeze(...)`."""
    attribute = use.parent
    if attribute is None or attribute.type != "attribute" or attribute["object"] != use:
        return False
    call = attribute.parent
    is_called = call is not None and call.type == "call" and call["function"] == attribute
    return is_called and attribute["attribute"].text in _OF_TENSORS


def _result(operation: str, dtype: str) -> str:
    """The dtype of an operation's result, for an input of a dtype."""
    if operation in _TESTS:
        return "bool"
    counts = operation in _COUNTS and dtype == "bool"
    return "int64" if counts or operation in _INDICES else dtype


def _names_dtype(node: Node) -> bool:
    return "dtype" in node.text.lower()


def _annotated(annotation: str) -> Abstract:
    if _CONTAINER_ANNOTATION.search(annotation):
        return Abstract("list")
    if _TRACED_ANNOTATION.search(annotation):
        return Abstract("traced", "", "device")
    if _ARRAY_ANNOTATION.search(annotation):
        return Abstract("array", "", "host")
    if _TENSOR_ANNOTATION.search(annotation):
        return NOTHING if _NUMBER_ANNOTATION.search(annotation) else Abstract("tensor")
    if annotation in ("int", "float", "bool"):
        return Abstract("number")
    return Abstract("text") if annotation == "str" else NOTHING


def promote(left: Abstract, right: Abstract) -> Abstract:
    """The result of arithmetic between two values.

    A tensor wins over an array, an array over a number; a Python number leaves the dtype alone; the wider dtype wins
    where both are known.
    """
    for kind in ("tensor", "traced", "array"):
        sides = [side for side in (left, right) if side.kind == kind]
        if not sides:
            continue
        dtypes = {side.dtype for side in sides}
        dtype = "float64" if "float64" in dtypes else next(iter(dtypes)) if len(dtypes) == 1 else ""
        places = {side.place for side in sides} - {""}
        return Abstract(kind, dtype, next(iter(places)) if len(places) == 1 else "")
    if left.kind == right.kind == "number":
        return Abstract("number", "", "device" if "device" in (left.place, right.place) else "")
    read = next((side for side in (left, right) if side.kind == "number" and side.place == "device"), NOTHING)
    return read if NOTHING in (left, right) else NOTHING
