"""What is known of a Python value without running it: is it a tensor or a host array, of which dtype, and where.

A small abstract interpreter over assignments: through names, attributes of `self`, items of lists and dictionaries, and
what functions of the same file return and are called with. It says nothing rather than guess: every field may be
unknown, and where branches meet, only what they agree on is kept.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from portlint.regex import regex
from portlint.source.kept import with_source
from portlint.source.python import arrays, users
from portlint.source.python.constants import constant
from portlint.source.python.queries import assigned_attributes, assigned_items, calls_of

if TYPE_CHECKING:
    from portlint.source import Source
    from portlint.source.node import Node
    from portlint.source.python.scopes import Binding, Scopes

_DEPTH = 48
"""how far a value is followed: deep enough that what is cut off there, and remembered, does not matter"""


class Abstract(msgspec.Struct, frozen=True):
    """A value as far as it is known."""

    kind: str = ""
    """tensor | batch (of tensors by name) | array (NumPy) | traced (a JAX array) | number | text | list | object |
    image (PIL) | generator (of NumPy's random numbers) | other | "" for unknown"""
    dtype: str = ""
    """float64, float32, bfloat16, int64, ... or ""; of Python's own numbers int, float or complex"""
    place: str = ""
    """host | device | "" for unknown: of tensors and traced arrays; of a number or list, that it was read back from
    the device"""
    sized: str = ""
    """"data" where the shape depends on data on the device"""
    filled: bool = False
    """of a tensor: with one number that the host knows, so that reading it says nothing new"""


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

_DTYPE = regex(r"^(float\d+(_\w+)?|bfloat16|u?int\d+|complex\d+|bool)$")
_BITS = regex(r"(?:float|bfloat|u?int|complex)(\d+)")
_CONVERSIONS = {"double": "float64", "float": "float32", "half": "float16", "bfloat16": "bfloat16", "long": "int64",
                "int": "int32", "cdouble": "complex128", "cfloat": "complex64", "bool": "bool"}  # fmt: skip

_TORCH_CREATORS = frozenset(
    "zeros ones empty full rand randn arange linspace logspace eye tensor as_tensor scalar_tensor randperm randint"
    " from_numpy zeros_like ones_like empty_like full_like rand_like randn_like complex polar tril_indices triu_indices"
    " Tensor FloatTensor DoubleTensor HalfTensor BFloat16Tensor LongTensor IntTensor BoolTensor ByteTensor".split()
)
CREATORS = tuple(
    f"torch.{name}"
    for name in (
        "arange as_tensor empty empty_like eye full full_like linspace logspace ones ones_like rand rand_like randn"
        " randn_like scalar_tensor tensor zeros zeros_like"
    ).split()
)
"""functions of torch that take a dtype and a device"""
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
_TRACED_FORMS = {
    **dict.fromkeys(("jax.numpy.ndim", "jax.numpy.size", "jax.lax.axis_size"), "number"),
    **dict.fromkeys(("jax.numpy.shape", "jax.numpy.broadcast_shapes", "jax.lax.broadcast_shapes"), "list"),
    **{
        f"jax.numpy.{name}": "other"
        for name in (
            "result_type promote_types issubdtype isdtype can_cast dtype finfo iinfo isscalar iscomplexobj isrealobj"
            " iterable"
        ).split()
    },
}
"""functions of JAX that say something of a value's form, which is known while it is traced, and what they return"""
_AXIS_SUMS = ("jax.lax.psum", "jax.lax.pmax", "jax.lax.pmin")
"""reductions over an axis, which of a Python number are known while they are traced"""
_TRACED_PRODUCTS = frozenset("matmul dot vdot tensordot einsum inner outer kron transpose reshape".split())
_LEGACY = {"DoubleTensor": "float64", "FloatTensor": "float32", "Tensor": "float32", "HalfTensor": "float16",
           "BFloat16Tensor": "bfloat16", "LongTensor": "int64", "IntTensor": "int32"}  # fmt: skip
"""constructors of a fixed dtype, and names of it for `type`; the default dtype is taken to be float32"""
_WIDENED = {"float64": "complex128", "float32": "complex64", "complex128": "complex128", "complex64": "complex64"}
_TO_COMPLEX = frozenset(("view_as_complex", "polar", "complex", "stft", *(f"fft.{name}" for name in (
    "fft", "fft2", "fftn", "ifft", "ifft2", "ifftn", "rfft", "rfft2", "rfftn", "fftshift", "ifftshift"))))  # fmt: skip
_NARROWED = {"complex128": "float64", "complex64": "float32"}
_TO_REAL = frozenset("view_as_real real imag abs angle istft fft.irfft fft.irfft2 fft.irfftn".split())
_ELSEWHERE = {"soundfile.read": "float64", "librosa.load": "float32", "cv2.imread": "uint8"}
"""readers of other packages that return an array, alone or first in a tuple, and its dtype if none is asked for"""
_KEEP_DTYPE = frozenset(("cv2.cvtColor", "cv2.resize", "cv2.flip", "cv2.GaussianBlur"))
_WHOLE = ("randint", "randrange", "choice", "floor", "ceil", "comb", "factorial", "gcd", "prod", "sample", "isqrt")
"""ends of functions of `math` and `random` that do not return a float"""
_NUMPY_NUMBERS = {"float": "float64", "int": "int64", "complex": "complex128", "float64": "float64"}
"""what NumPy makes of numbers"""
_DTYPE_POSITIONS = {**dict.fromkeys("zeros ones empty array asarray zeros_like ones_like".split(), 1), "full": 2}
"""where NumPy's functions take a dtype that is not given by name"""
_MOST_CALLS = 16
"""calls of one function that are looked at; one that is called more often is given anything"""
_MOST_ELEMENTS = 16
"""elements of a list that are looked at"""
_NUMBERS = {"len": "int", "int": "int", "float": "float", "bool": "int"}
_IMAGE_METHODS = frozenset("convert resize crop rotate transpose copy".split())
_EIGHT_BITS = frozenset(("L", "RGB", "RGBA"))
"""modes of PIL's images whose pixels are bytes"""
_DECORATORS_THAT_KEEP = regex(
    r"(staticmethod|classmethod|property|(functools\.)?(cache|lru_cache|cached_property)|torch\.(no_grad|inference_mode))"
    r"(\(.*\))?"
)
"""decorators after which a function returns what its body says"""
_FOR_HOST = regex(r"(^|_)(cpu|host)(_|$)")
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
_TO_TENSOR = frozenset(
    f"torchvision.transforms.{name}"
    for name in ("ToTensor", "PILToTensor", "v2.ToTensor", "v2.PILToTensor", "v2.ToImage")
)
_MAKES_ON_HOST = regex(
    r"\b(ToTensor|to_tensor|pil_to_tensor|PILToTensor|from_numpy|FloatTensor|torchaudio\.load|read_image|return_tensors)\b"
)
"""what a function says that may return a tensor on the host"""
_LIKE_TORCH = ("torchaudio.functional.", "torchvision.transforms.functional.")
_NUMBER_METHODS = frozenset(
    "size dim ndimension numel nelement element_size backward data_ptr stride storage_offset get_device".split()
)
"""methods of tensors that say something of their form, and do not read them"""
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
_TENSOR_ANNOTATION = regex(r"\b(Tensor|FloatTensor|LongTensor)\b")
_ARRAY_ANNOTATION = regex(r"\b(ndarray|NDArray)\b")
_TRACED_ANNOTATION = regex(r"\b(jax\.Array|jnp\.ndarray|ArrayLike)\b")
_CONTAINER_ANNOTATION = regex(r"\b(list|List|tuple|Tuple|dict|Dict|Sequence|Iterable|Iterator|Callable)\b")
_NUMBER_ANNOTATION = regex(r"\b(int|float|bool|str)\b")
_GRAPH_BUILDERS = frozenset("tensorrt_llm paddle mindspore tinygrad mxnet".split())
"""packages with a class `Tensor` of their own"""
_FLOAT_LIST = regex(r"^(list|List|Sequence|tuple|Tuple)\[.*\bfloat\b.*\]$")


_WRITTEN = frozenset(
    "integer float true false string concatenated_string list tuple dictionary set list_comprehension binary_operator"
    " comparison_operator".split()
)
"""expressions that are never None"""


def dtype_bytes(dtype: str, unknown: int = 1) -> int:
    """The bytes of an element of a dtype; at least one, and `unknown` where it is not known."""
    bits = _BITS.match(dtype)
    return max(int(bits[1]) // 8, 1) if bits is not None else unknown


class Values:
    """The abstract values of one file."""

    def __init__(self, scopes: Scopes, *, asks_others: bool = True) -> None:
        self.scopes = scopes
        self._asks_others = asks_others
        self._always_given: dict[tuple[int, str], bool] = {}
        self._known: dict[tuple[int, int], Abstract] = {}
        self._used_as_tensor: dict[tuple[int, str], bool] = {}
        self._methods_of: dict[int, dict[str, Node]] = {}

    def of(self, node: Node, depth: int = _DEPTH) -> Abstract:
        """What is known of an expression."""
        key = node.start, node.end
        if key not in self._known and depth:
            self._known[key] = NOTHING  # a value that depends on itself is not known
            self._known[key] = self._infer(node, depth)
        return self._known.get(key, NOTHING)

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
        if isinstance(value, str) and value.startswith("torch.") and (last := value.rpartition(".")[2]) in _LEGACY:
            return _LEGACY[last]
        module, _, last = name.rpartition(".")
        if module.partition(".")[0] in ("torch", "numpy", "jax", "triton"):
            if module == "numpy" and last == "float":
                return "float64"
            last = _LEGACY.get(last) or DTYPES.get(last, last)
            return last if _DTYPE.match(last) else ""
        if node.type == "attribute" and node["attribute"].text == "dtype":
            return self.of(node["object"]).dtype
        if node.type == "identifier" and not name:
            binding = self.scopes.only(node.text, node)
            if binding is not None and binding.kind == "assign" and binding.value is not None:
                return self.dtype(binding.value) if binding.value != node else ""
        return ""

    def dtypes(self, node: Node, depth: int = 4) -> list[tuple[str, Node]]:
        """The dtypes that an expression may name, each with the expression that decides for it."""
        if node.type == "conditional_expression" and len(node.children) == 3 and depth:
            body, _, other = node.children
            return self.dtypes(body, depth - 1) + self.dtypes(other, depth - 1)
        if node.type == "parenthesized_expression" and node.children and depth:
            return self.dtypes(node.children[0], depth - 1)
        if node.type == "identifier" and depth:
            bindings = self.scopes.reaching(node.text, node)
            value = bindings[0].value if len(bindings) == 1 and bindings[0].kind == "assign" else None
            if value is not None:
                return self.dtypes(value, depth - 1)
            if len(bindings) == 1 and bindings[0].kind == "parameter":
                values = self._defaults(node, bindings[0])
                return [found for value in values for found in self.dtypes(value, depth - 1)]
        if node.type == "attribute" and depth and (values := self._assigned_to(node)):
            return [found for value in values for found in self.dtypes(value, depth - 1)]
        named = "" if _is_taken_over(node) else self.dtype(node)
        return [(named, node)] if named else []

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

    def is_none(self, test: Node) -> bool | None:
        """What a test says that asks whether a parameter is None, where every call passes one that is not."""
        if not self._asks_others or test.type != "comparison_operator" or len(test.children) != 2:
            return None
        name, none = test.children
        function = self.scopes.function(test) if none.type == "none" and name.type == "identifier" else None
        operator = next((raw.type for raw in test.raw.children if raw.type in ("is", "is not")), "")
        if function is None or not operator or not self._is_parameter(name):
            return None
        key = function.start, name.text
        if key not in self._always_given:
            self._always_given[key] = False
            self._always_given[key] = self._is_always_given(function, name.text)
        return operator == "is not" if self._always_given[key] else None

    def _is_parameter(self, name: Node) -> bool:
        reaching = self.scopes.reaching(name.text, name)
        return len(reaching) == 1 and reaching[0].kind == "parameter"

    def _is_always_given(self, function: Node, name: str) -> bool:
        """Whether all calls of a function are known, and each passes a value that is not None for a parameter."""
        place = position(function, name)
        calls = users.every_call(function, self.scopes) if place is not None else None
        if not calls or len(calls) > _MOST_CALLS:
            return False
        given = [(self._of(call), call.argument(place, name)) for call in calls]
        return all(values.is_something(one) for values, one in given)

    def _of(self, node: Node) -> Values:
        """The values of the file that a node stands in."""
        return self if node.source is self.scopes.source else values_of(node.source)

    def is_something(self, node: Node | None) -> bool:
        """Whether an expression is certainly not None: written out, a shape, or what makes a tensor or number."""
        if node is None:
            return False
        if node.type == "identifier":
            bindings = self.scopes.reaching(node.text, node)
            return bool(bindings) and all(one.kind == "assign" and self.is_something(one.value) for one in bindings)
        if node.type == "subscript":
            owner = node["value"]
            return owner.type == "attribute" and owner["attribute"].text == "shape"
        if node.type == "call":
            return self.of(node).kind in ("tensor", "array", "traced", "number", "text", "list")
        return node.type in _WRITTEN

    def _infer(self, node: Node, depth: int) -> Abstract:
        match node.type:
            case "parenthesized_expression" | "unary_operator" | "await":
                child = node.get("argument") or next(iter(node.children), None)
                return self.of(child, depth - 1) if child is not None else NOTHING
            case "integer" | "float" | "true" | "false":
                return Abstract("number", _of_literal(node))
            case "string" | "concatenated_string":
                return Abstract("text")
            case "list" | "list_comprehension" | "tuple" | "dictionary" | "set":
                return Abstract("list")
            case "binary_operator":
                left, right = self.of(node["left"], depth - 1), self.of(node["right"], depth - 1)
                return arithmetic(node["operator"].text, left, right)
            case "comparison_operator" if len(node.children) == 2 and _compares_values(node):
                both = promote(*(self.of(child, depth - 1) for child in node.children))
                return (
                    Abstract(both.kind, "bool", both.place) if both.kind in ("tensor", "array", "traced") else NOTHING
                )
            case "conditional_expression" if len(node.children) == 3:
                body, other = self.of(node.children[0], depth - 1), self.of(node.children[2], depth - 1)
                return join([body, other])
            case "subscript":
                return self._subscript(node, depth)
            case "attribute":
                return self._attribute(node, depth)
            case "identifier":
                return _placed_by_name(node, self._identifier(node, depth))
            case "call":
                return self._call(node, depth)
        return NOTHING

    def _subscript(self, node: Node, depth: int) -> Abstract:
        value = self.of(node["value"], depth - 1)
        if value.kind == "batch":
            return Abstract("tensor", "", value.place)
        whole = value.kind in ("tensor", "array", "traced")
        if not whole and (item := join([self.of(one, depth - 1) for one in self._items(node)])).kind:
            return item
        if value.kind not in ("tensor", "array", "traced", "list"):
            is_length = node["value"].type == "attribute" and node["value"]["attribute"].text == "shape"
            return Abstract("number") if is_length else NOTHING
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
        if node["object"].text == "self":
            return self._of_self(node, depth)
        if attribute in ("real", "imag"):
            owner = self.of(node["object"], depth - 1)
            return msgspec.structs.replace(owner, dtype=_NARROWED.get(owner.dtype, owner.dtype))
        if attribute in ("T", "mT", "data", "grad"):
            return self.of(node["object"], depth - 1)
        if (owner := self.of(node["object"], depth - 1)).kind == "batch":
            return Abstract("tensor", "", owner.place)
        if self.scopes.qualified(node) in ("numpy.pi", "numpy.e", "math.pi", "math.e", "numpy.inf", "math.inf"):
            return Abstract("number", "float")
        if attribute == "shape" and self.of(node["object"], depth - 1).sized:
            return Abstract("list", "", "device")
        return Abstract("other") if attribute in ("shape", "device", "dtype", "ndim") else NOTHING

    def _identifier(self, node: Node, depth: int) -> Abstract:
        reaching = self.scopes.reaching(node.text, node)
        if len(reaching) > 1 and reaching[-1].kind == "parameter":
            reaching = [one for one in reaching if not self._is_for_none(one)]
        binding = reaching[0] if reaching else self.scopes.binding(node.text, node)
        if binding is None:
            return NOTHING
        known = self._bound(node, binding, depth)
        others = [self._bound(node, one, depth) for one in reaching[1:] if not _is_placeholder(one)]
        if known.dtype and any(one.dtype != known.dtype for one in others):
            known = msgspec.structs.replace(known, dtype="")
        opens = binding.kind in ("assign", "item", "loop", "parameter")
        if known.kind in ("", "tensor") and _is_number_here(node):
            return Abstract("number")
        if known == NOTHING and opens and self._is_used_as_tensor(node):
            return Abstract("tensor")
        if known.filled and (reaching[1:] or node.text in self._stored_to):
            known = msgspec.structs.replace(known, filled=False)
        return NOTHING if self._may_be_other(node, binding, known, depth) else known

    def _annotated(self, annotation: str) -> Abstract:
        """What an annotation says; the tensors of libraries that build graphs have no values to wait for."""
        known = _annotated(annotation)
        if (
            known.kind == "tensor"
            and self._builds_graphs
            and not self.scopes.imports.get("Tensor", "").startswith("torch")
        ):
            return known if "torch." in annotation else Abstract("object")
        return known

    @cached_property
    def _builds_graphs(self) -> bool:
        return any(module.partition(".")[0] in _GRAPH_BUILDERS for module in self.scopes.imports.values())

    def _is_for_none(self, binding: Binding) -> bool:
        """Whether a binding takes the place of a parameter that is None, and never is."""
        branch = next(binding.value.ancestors("if_statement", "function_definition"), None) if binding.value else None
        if branch is None or branch.type != "if_statement" or binding.value is None:
            return False
        taken = branch["consequence"].start <= binding.value.start < branch["consequence"].end
        return taken and self.is_none(branch["condition"]) is False

    def _bound(self, node: Node, binding: Binding, depth: int) -> Abstract:
        """What one binding of a name gives it."""
        value = self._given(node, binding, depth)
        known = self._annotated(binding.annotation) if binding.annotation else NOTHING
        if not known.kind:
            return value
        if value.kind != known.kind:
            return known
        if binding.kind == "parameter":
            return msgspec.structs.replace(known, dtype=value.dtype, place=value.place)
        return value if binding.kind == "assign" else msgspec.structs.replace(known, dtype=value.dtype)

    def _given(self, node: Node, binding: Binding, depth: int) -> Abstract:
        if binding.kind == "parameter":
            return self._passed(node, depth)
        if binding.value is None:
            return NOTHING
        if binding.kind == "augmented":  # in place: the dtype stays
            statement = binding.value.parent
            return self.of(statement["left"], depth - 1) if statement is not None else NOTHING
        if binding.kind == "item":
            return self._unpacked(binding.value, binding.index, depth)
        if binding.kind == "assign":
            return self.of(binding.value, depth - 1)
        return self._element(node, binding, depth) if binding.kind == "loop" else NOTHING

    def _may_be_other(self, name: Node, binding: Binding, value: Abstract, depth: int) -> bool:
        """Whether a name got its value in a branch that the use is not in, and was something else before."""
        if value.kind not in ("tensor", "number") or binding.value is None or not _is_conditional(binding.value, name):
            return False
        for earlier in reversed(self.scopes.bindings(name.text, name)):
            known = earlier.value is not None and earlier.value.type != "none" and not _is_replaced(earlier, binding)
            if earlier.start < binding.start and earlier.kind in ("assign", "item") and known:
                before = self._bound(name, earlier, depth - 1)
                return before.kind not in ("", value.kind)
        return False

    def _is_used_as_tensor(self, name: Node) -> bool:
        """Whether the function around a name calls a method of it that only tensors have."""
        function = self.scopes.function(name)
        key = function.start if function is not None else -1, name.text
        if function is None or not self._has_torch:
            return False
        if key not in self._used_as_tensor:
            uses = self.scopes.uses(name.text)  # in the order of the text
            first = bisect_right(uses, function.start, key=_start)
            last = bisect_left(uses, function.end, key=_start)
            self._used_as_tensor[key] = any(map(_is_tensor_method, uses[first:last]))
        return self._used_as_tensor[key]

    def _element(self, name: Node, binding: Binding, depth: int) -> Abstract:
        """What iterating over a value gives: a parameter annotated list[Tensor] gives tensors."""
        source = _iterated(name, binding.value) if binding.value is not None else None
        if source is None:
            return NOTHING
        value = self.of(source, depth - 1)
        if value.kind in ("tensor", "array", "traced"):
            return value
        if value.kind == "list" and value.place == "device":  # read back, and gone through on the host
            return Abstract("number", "", "device")
        if source.type == "call" and self.scopes.qualified(source) == "range":
            return Abstract("number", "int")
        if source.type == "identifier":
            outer = self.scopes.binding(source.text, source)
            if outer is not None and _TENSOR_ANNOTATION.search(outer.annotation):
                return Abstract("tensor")
        return join([self.of(one, depth - 1) for one in self._elements(source)]) if source is not None else NOTHING

    # ---- through containers and the functions of the file -----------------------------------------------------------

    def _elements(self, container: Node) -> list[Node]:
        """The expressions that a list holds: written out, and appended to its name; none where that is not known."""
        if container.type in ("list", "tuple", "set"):
            return container.children
        if container.type == "list_comprehension":
            return [container["body"]]
        binding = self.scopes.only(container.text, container) if container.type == "identifier" else None
        if binding is None or binding.value is None or binding.kind != "assign" or binding.value == container:
            return []
        empty = binding.value.type == "list" and not binding.value.children
        return self._appended(container) if empty else self._elements(binding.value)

    def _appended(self, name: Node) -> list[Node]:
        """What the file appends to a list by that name, in the same function."""
        function = self.scopes.function(name)
        return [
            call.arguments[0]
            for call in self._appends
            if call["function"]["object"].text == name.text
            and call.arguments
            and self.scopes.function(call) == function
        ]

    @cached_property
    def _appends(self) -> list[Node]:
        calls = calls_of(self.scopes.source, ["append"])
        return [call for call in calls if call["function"].type == "attribute"]

    def _items(self, subscript: Node) -> list[Node]:
        """The expressions that `owner[key]` may be, for a key that is known."""
        owner, index = subscript["value"], subscript.get("subscript")
        key = constant(self.scopes, index) if index is not None else None
        if key is None:
            return []
        made = self._made(owner)
        assigned = self._assigned_items.get((owner.text, key), ())
        found = [one["right"] for one in assigned if self._shares(one, subscript)]
        if made is not None and made.type == "dictionary":
            pairs = [pair for pair in made.children if pair.type == "pair"]
            found += [pair["value"] for pair in pairs if constant(self.scopes, pair["key"]) == key]
        elif made is not None and made.type in ("list", "tuple") and isinstance(key, int) and key >= 0:
            found += made.children[key:][:1]
        return found

    def _shares(self, one: Node, other: Node) -> bool:
        """Whether two places may speak of the same variable: in one function, or of attributes in one class."""
        if one["left"]["value"].type == "attribute":
            return next(one.ancestors("class_definition"), None) == next(other.ancestors("class_definition"), None)
        return self.scopes.function(one) == self.scopes.function(other)

    def _made(self, owner: Node) -> Node | None:
        """The literal that a container is made with."""
        if owner.type == "identifier":
            binding = self.scopes.only(owner.text, owner)
            return binding.value if binding is not None and binding.kind == "assign" else None
        values = self._assigned_to(owner) if owner.type == "attribute" else []
        return values[0] if len(values) == 1 else owner

    @cached_property
    def _assigned_items(self) -> dict[tuple[str, object], list[Node]]:
        found: dict[tuple[str, object], list[Node]] = defaultdict(list)
        for one in assigned_items(self.scopes.source):
            index = one["left"].get("subscript")
            if index is not None and (key := constant(self.scopes, index)) is not None:
                found[one["left"]["value"].text, key].append(one)
        return found

    @cached_property
    def _stored_to(self) -> frozenset[str]:
        """The names with elements that the file assigns."""
        return frozenset(one["left"]["value"].text for one in assigned_items(self.scopes.source))

    def _of_self(self, attribute: Node, depth: int) -> Abstract:
        """What `self.name` is, by all that its class gives it."""
        known = join([self.of(one, depth - 1) for one in self._assigned_to(attribute)])
        if known.kind:
            return known
        method = self._method_of_class(attribute)
        marks = users.decorators(method) if method is not None else []
        is_property = any(mark.rpartition(".")[2] in ("property", "cached_property") for mark in marks)
        return self._returned(method, None, depth) if method is not None and is_property else NOTHING

    def _assigned_to(self, attribute: Node) -> list[Node]:
        """What the class around `self.name` assigns to it, or registers as a buffer by that name."""
        home = next(attribute.ancestors("class_definition"), None)
        if home is None or attribute["object"].text != "self":
            return []
        values = self._attributes.get((home.start, attribute["attribute"].text), ())
        return [one for one in values if one.type != "none"]

    @cached_property
    def _attributes(self) -> dict[tuple[int, str], list[Node]]:
        """(start of a class, attribute) -> what the class assigns to it."""
        found: dict[tuple[int, str], list[Node]] = defaultdict(list)
        for one in assigned_attributes(self.scopes.source):
            if (home := next(one.ancestors("class_definition"), None)) is not None:
                found[home.start, one["left"]["attribute"].text].append(one["right"])
        for call in calls_of(self.scopes.source, ["register_buffer"]):
            home, given = next(call.ancestors("class_definition"), None), call.argument(1, "tensor")
            name = call.argument(0, "name")
            if home is not None and given is not None and name is not None:
                found[home.start, str(name.constant)].append(given)
        return found

    def _method_of_class(self, attribute: Node) -> Node | None:
        """The definition that `self.name` means, in the class around it."""
        home = next(attribute.ancestors("class_definition"), None)
        if home is None or attribute["object"].text not in ("self", "cls"):
            return None
        return self._methods(home).get(attribute["attribute"].text)

    def _methods(self, home: Node) -> dict[str, Node]:
        """The definitions directly in a class, by name."""
        if home.start not in self._methods_of:
            members = [one.get("definition") or one for one in home["body"].children]
            named = [one for one in members if one.type == "function_definition"]
            self._methods_of[home.start] = {one["name"].text: one for one in reversed(named)}
        return self._methods_of[home.start]

    def _local(self, function: Node) -> Node | None:
        """The function of this file that is called."""
        if function.type == "attribute":
            return self._method_of_class(function)
        binding = self.scopes.only(function.text, function) if function.type == "identifier" else None
        return binding.value if binding is not None and binding.kind == "function" else None

    def _returned(self, function: Node, index: int | None, depth: int) -> Abstract:
        """What a function returns, or one element of the tuple that it returns."""
        if not all(map(_DECORATORS_THAT_KEEP.fullmatch, users.decorators(function))):
            return NOTHING
        if any(True for _ in function["body"].walk("yield")):
            return NOTHING
        returns = [one for one in function["body"].walk("return_statement") if self.scopes.function(one) == function]
        values = [one.children[0] for one in returns if one.children]
        if index is not None:
            tuples = [one.children for one in values if one.type in ("expression_list", "tuple")]
            values = [items[index] for items in tuples if index < len(items)] if len(tuples) == len(values) else []
        return join([self.of(one, depth - 1) for one in values])

    def _returned_elsewhere(self, function: Node, index: int | None) -> Abstract:
        """What a function of another file returns, where that is a tensor on the host."""
        if not self._asks_others or function.type != "identifier":
            return NOTHING
        found = users.definition_of(self.scopes, function)
        if found is None or found.type != "function_definition" or not _MAKES_ON_HOST.search(found.text):
            return NOTHING
        returned = values_of(found.source)._returned(found, index, _DEPTH)
        return returned if returned.place == "host" and returned.kind in ("tensor", "batch") else NOTHING

    def _unpacked(self, value: Node, index: int, depth: int) -> Abstract:
        """One element of a tuple that a call returns, or of a tensor."""
        if value.type != "call":
            whole = self.of(value, depth - 1)
            if value.type == "attribute" and value["attribute"].text == "shape":
                return Abstract("number", "", whole.place)
            return msgspec.structs.replace(whole, dtype="") if whole.kind == "tensor" else NOTHING
        name = self.scopes.qualified(value)
        if name in _ELSEWHERE:
            return self._read(value, _ELSEWHERE[name]) if index == 0 else NOTHING
        if name == "numpy.meshgrid":
            return self.of(value, depth - 1)
        local = self._local(value["function"])
        if local is not None:
            return self._returned(local, index, depth)
        if (returned := self._returned_elsewhere(value["function"], index)).kind:
            return returned
        whole = self.of(value, depth - 1)  # `values, indices = torch.topk(...)` differ in dtype
        return msgspec.structs.replace(whole, dtype="") if whole.kind in ("tensor", "array", "traced") else NOTHING

    def _read(self, call: Node, default: str) -> Abstract:
        """What a reader of another package returns."""
        asked = call.argument(None, "dtype")
        if asked is not None:
            return Abstract("array", self.dtype(asked), "host")
        flags = call.argument(1, "flags") if default == "uint8" else None  # of cv2.imread
        return Abstract("array", default if flags is None else "", "host")

    def _passed(self, parameter: Node, depth: int) -> Abstract:
        """What a parameter is given, where all known calls agree; on the host where no other call is thinkable."""
        given = self._arguments_for(parameter)
        known = [self.of(one, depth - 1) for one in given if one is not None]
        joined = join(known) if len(known) == len(given) else NOTHING
        if joined.kind not in ("tensor", "array"):
            return NOTHING
        return joined if joined.place == "host" and self._is_on_host_elsewhere(parameter) else _anywhere(joined)

    def _is_on_host_elsewhere(self, parameter: Node) -> bool:
        """Whether the calls of the function around a parameter in other files, if any, pass a tensor on the host."""
        function = next(parameter.ancestors("function_definition"), None)
        place = position(function, parameter.text) if function is not None else None
        calls = users.every_call(function, self.scopes) if function is not None and place is not None else None
        if calls is None or not self._asks_others:
            return False
        others = [call for call in calls if call.source is not self.scopes.source]
        given = [(values_of(call.source), call.argument(place, parameter.text)) for call in others]
        return all(one is not None and values.of(one).place == "host" for values, one in given)

    def _defaults(self, parameter: Node, binding: Binding) -> list[Node]:
        """What the file passes for a parameter, and its default where a call leaves it out, or none is in the file."""
        given = self._arguments_for(parameter)
        passed = [one for one in given if one is not None and one.text != parameter.text]
        leaves_out = not given or None in given
        return [*passed, binding.value] if binding.value is not None and leaves_out else passed

    def _arguments_for(self, parameter: Node) -> list[Node | None]:
        """What each call in the file of the function around a parameter gives for it."""
        function = next(parameter.ancestors("function_definition", "lambda"), None)
        if function is None or function.type == "lambda":
            return []
        place = position(function, parameter.text)
        callers = self._callers(function) if place is not None else []
        return [call.argument(place, parameter.text) for call in callers] if len(callers) <= _MOST_CALLS else []

    def _callers(self, function: Node) -> list[Node]:
        if function["name"].text != "__init__":
            return self.scopes.callers(function)
        home = next(function.ancestors("class_definition"), None)
        return self.scopes.callers(home) if home is not None else []

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
        if name in _TRACED_FORMS:
            return Abstract(_TRACED_FORMS[name])
        if name in _AXIS_SUMS and node.arguments and node.arguments[0].type == "integer":
            return Abstract("number", "int")
        if name.startswith(("jax.numpy.", "jax.lax.", "jax.random.", "jax.nn.", *_TRACED_LINEAR)):
            return Abstract("traced", self._traced_dtype(node, name, depth), "device")
        function = node["function"]
        tensors = node.argument(None, "return_tensors")  # of a tokenizer or processor
        if tensors is not None and tensors.constant == "pt":
            return Abstract("batch", "", "host")
        if self._makes_tensor(function):
            return Abstract("tensor", "float32", "host")
        if name in _ELSEWHERE:
            return self._read(node, _ELSEWHERE[name])
        if name in _KEEP_DTYPE and node.arguments:
            return self.of(node.arguments[0], depth - 1)
        if name == "PIL.Image.open":
            return Abstract("image")
        if name.startswith("scipy.signal.") and name.rpartition(".")[2] in ("get_window", "firwin"):
            return Abstract("array", "float64", "host")
        if name.startswith(("math.", "random.")) or name == "time.time":
            dtype = "" if name.endswith(_WHOLE) else "float"
            return msgspec.structs.replace(self._number(node.arguments, depth), dtype=dtype)
        local = self._local(function)
        if local is not None and (returned := self._returned(local, None, depth)).kind:
            return returned
        if local is None and (returned := self._returned_elsewhere(function, None)).kind:
            return returned
        if function.type == "attribute":
            return self._method(node, function["attribute"].text, self.of(function["object"], depth - 1))
        if name in _OF_NUMBERS:
            return msgspec.structs.replace(self._number(node.arguments, depth), dtype=_NUMBERS.get(name, ""))
        if name == "len":
            sized = bool(node.arguments) and self.of(node.arguments[0], depth - 1).sized
            return Abstract("number", "int", "device" if sized else "")
        if name in ("list", "tuple", "dict", "range", "set"):
            return Abstract("list")
        return self._instance(function)

    def _makes_tensor(self, function: Node, depth: int = 3) -> bool:
        """Whether calling something makes a tensor of an image: `ToTensor()`, and a `Compose` that has one."""
        if function.type == "identifier" and depth:
            bound = self.scopes.only(function.text, function)
            made = bound.value if bound is not None and bound.kind == "assign" else None
            return made is not None and made.type == "call" and self._makes_tensor(made, depth - 1)
        if function.type == "attribute" and depth:
            assigned = self._assigned_to(function)
            return bool(assigned) and all(one.type == "call" and self._makes_tensor(one, depth - 1) for one in assigned)
        if function.type != "call":
            return False
        name = self.scopes.qualified(function)
        if name.endswith(".Compose") and name.startswith("torchvision.") and function.arguments:
            return any(self._makes_tensor(one, 1) for one in self._elements(function.arguments[0]))
        return name in _TO_TENSOR

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

    def _number(self, arguments: list[Node], depth: int) -> Abstract:
        """A Python number made of others, or of tensors: it is read back if one of them is on the device."""
        given = [self.of(argument, depth - 1) for argument in arguments]
        read = any(
            one.place != "host" and not one.filled
            if one.kind == "tensor"
            else one.kind == "number" and one.place == "device"
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
        if name in ("random.default_rng", "random.RandomState"):
            return Abstract("generator")
        explicit = node.argument(None, "dtype")
        position = _DTYPE_POSITIONS.get(name)
        if explicit is None and position is not None:
            explicit = node.argument(position)
        if explicit is not None and explicit.type != "none":
            return Abstract("array", self.dtype(explicit), "host")
        if name in ("float64", "double", "float32", "float16", "complex128", "complex64"):
            return Abstract("number", DTYPES.get(name, name))
        if name in arrays.JOINING:
            return Abstract("array", self._joined(node, depth) if node.arguments else "", "host")
        given = [self.of(one, depth - 1) for one in node.arguments]
        if name == "full":
            return Abstract("array", _NUMPY_NUMBERS.get(given[1].dtype, "") if len(given) > 1 else "", "host")
        if name == "arange":
            kinds = {one.dtype for one in given}
            return Abstract("array", "float64" if "float" in kinds else "int64" if kinds == {"int"} else "", "host")
        if name == "where":
            given = given[1:]
        of_arrays = [one.dtype for one in given if one.kind == "array"]
        if not of_arrays and given and all(one.kind == "number" for one in given):
            dtype = arrays.of_function(name, [_NUMPY_NUMBERS.get(one.dtype, one.dtype) for one in given])
            makes_array = name.startswith("random.") or name in arrays.FLOAT64_MAKERS
            return Abstract("array" if makes_array else "number", dtype, "host")
        return Abstract("array", arrays.of_function(name, of_arrays), "host")

    def _joined(self, node: Node, depth: int) -> str:
        """The dtype of an array that is made of a list, or of another array."""
        first = node.arguments[0]
        inner = self.of(first, depth - 1)
        if inner.kind in ("array", "tensor"):
            return inner.dtype
        if inner.kind == "image":
            return inner.dtype
        if inner.kind == "number":
            return _NUMPY_NUMBERS.get(inner.dtype, "")
        if self._holds_floats(first):
            return "float64"
        elements = [self.of(one, depth - 1) for one in self._leaves(first)]
        if not elements or any(one.kind not in ("array", "number") for one in elements):
            return ""
        of_arrays = [one.dtype for one in elements if one.kind == "array"]
        numbers = [one.dtype for one in elements if one.kind == "number"]
        if of_arrays:
            return arrays.arithmetic("+", of_arrays, numbers)
        kinds = {_NUMPY_NUMBERS.get(one, "") for one in numbers}
        return "float64" if "float64" in kinds else "int64" if kinds == {"int64"} else ""

    def _leaves(self, node: Node, depth: int = 3) -> list[Node]:
        """The elements of a list, and of the lists in it; of long ones the first."""
        found = self._elements(node)[:_MOST_ELEMENTS]
        if not depth or not any(one.type in ("list", "tuple") for one in found):
            return found
        return [leaf for one in found for leaf in (self._leaves(one, depth - 1) or [one])]

    def _holds_floats(self, node: Node) -> bool:
        """Whether a list certainly holds Python floats, which NumPy turns into float64."""
        if node.type == "identifier":
            binding = self.scopes.binding(node.text, node)
            return binding is not None and _FLOAT_LIST.match(binding.annotation) is not None
        return False

    def _torch(self, node: Node, name: str, depth: int) -> Abstract:
        if name in _LEGACY:
            return Abstract("tensor", _LEGACY[name], "host")
        module, _, last = name.rpartition(".")
        parameter = name in ("nn.Parameter", "nn.Buffer", "nn.parameter.Parameter")
        if not parameter and (module not in _TENSOR_MODULES or last.startswith(_ASK) or last in _NO_TENSOR):
            return NOTHING
        dtype_argument, device_argument = node.argument(None, "dtype"), node.argument(None, "device")
        dtype = self.dtype(dtype_argument)
        first = self.of(node.arguments[0], depth - 1) if node.arguments else NOTHING
        if parameter:
            return msgspec.structs.replace(first, place="") if first.kind == "tensor" else Abstract("tensor")
        if name in _TORCH_CREATORS:
            if not dtype and dtype_argument is None and _takes_dtype(name, first):
                dtype = _WIDENED.get(first.dtype, "") if name in _TO_COMPLEX else first.dtype
            default = first.place if name.endswith("_like") else "host"
            place = self.place(device_argument) if device_argument is not None else default
            fill = self.of(node.arguments[1], depth - 1) if name == "full" and len(node.arguments) > 1 else NOTHING
            return Abstract("tensor", dtype, place, "", fill.kind == "number" and fill.place != "device")
        inputs = [self.of(argument, depth - 1) for argument in node.arguments]
        tensors = [one for one in inputs if one.kind == "tensor"]
        merged = tensors[0] if tensors else Abstract("tensor")
        for one in tensors[1:]:
            merged = promote(merged, one)
        sized = name in _SELECTIONS or (name == "where" and len(node.arguments) == 1)
        sized = sized and merged.place != "host"
        return Abstract("tensor", dtype or _result(name, merged.dtype), merged.place, "data" if sized else "")

    def _method(self, node: Node, method: str, owner: Abstract) -> Abstract:
        if owner.kind == "batch":
            return Abstract("batch", "", "device") if method in ("to", "cuda") else NOTHING
        if method in _HOST_METHODS:
            read = owner.kind == "tensor" and owner.place != "host" and method != "numpy"
            place = "device" if read else "host"
            if owner.filled and method in ("item", "tolist"):
                return Abstract("number" if method == "item" else "list", "", "host")
            if method == "item":
                return Abstract("number", "float" if owner.dtype.startswith(("float", "bfloat")) else "", place)
            return Abstract("list", "", place) if method == "tolist" else Abstract("array", owner.dtype, place)
        if owner.kind == "image" and method in _IMAGE_METHODS:
            mode = node.argument(0, "mode") if method == "convert" else None
            return Abstract("image", "uint8" if mode is not None and mode.constant in _EIGHT_BITS else owner.dtype)
        if owner.kind == "generator":
            return self._numpy(node, f"random.{method}", 1)
        if owner.kind in ("number", "text", "list", "object", "image"):
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
        if method in ("eval", "train"):
            return Abstract("object")
        if method == "type" and node.arguments:
            return Abstract(owner.kind or "tensor", self.dtype(node.arguments[0]), owner.place)
        if (given := node.argument(None, "dtype")) is not None and (owner.kind or method.startswith("new_")):
            return Abstract(owner.kind or "tensor", self.dtype(given), owner.place)
        if method in _NUMBER_METHODS:
            return Abstract("number", "", "device" if owner.sized else "")
        if method.startswith(_ASK) or method in ("storage", "untyped_storage"):
            return NOTHING
        if not owner.kind and self._is_tensor_call(node, method):
            return Abstract("tensor", _result(method, ""))
        if owner.kind not in ("tensor", "array", "traced"):
            return NOTHING
        if owner.kind == "array":
            return Abstract("array", _of_array_method(method, owner.dtype), "host")
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


def _placed_by_name(name: Node, value: Abstract) -> Abstract:
    """A tensor of which no more is known than that it is called `seq_lens_cpu` is on the host."""
    is_open = value.kind == "tensor" and not value.place
    return msgspec.structs.replace(value, place="host") if is_open and _FOR_HOST.search(name.text) else value


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


def _is_replaced(earlier: Binding, later: Binding) -> bool:
    """Whether two bindings of a name stand in the same block, so that the later one replaces the earlier."""
    blocks = [next(one.value.ancestors("block"), None) for one in (earlier, later) if one.value is not None]
    return len(blocks) == 2 and blocks[0] is not None and blocks[0] == blocks[1]


def _compares_values(comparison: Node) -> bool:
    """Whether values are compared, and not identities (`is`) or membership (`in`)."""
    operators = comparison.raw.children_by_field_name("operators")
    return not any(one.type in ("is", "is not", "in", "not in") for one in operators)


def _start(node: Node) -> int:
    return node.start


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
    if operation in _TO_COMPLEX:
        return _WIDENED.get(dtype, "")
    if operation in _TO_REAL:
        return _NARROWED.get(dtype, dtype)
    counts = operation in _COUNTS and dtype == "bool"
    return "int64" if counts or operation in _INDICES else dtype


def _of_array_method(method: str, dtype: str) -> str:
    """The dtype of what a method of an array returns."""
    known = arrays.of_function(method, [dtype])
    return known or ("" if arrays.is_integer(dtype) else dtype)


def _of_literal(number: Node) -> str:
    if number.text.endswith(("j", "J")):
        return "complex"
    return "float" if number.type == "float" else "int"


def _takes_dtype(creator: str, first: Abstract) -> bool:
    """Whether a creator takes the dtype of what it is given: an array, a tensor, or a number of NumPy's."""
    if first.kind in ("array", "tensor"):
        return True
    return creator in ("tensor", "as_tensor", "asarray") and first.kind == "number" and first.dtype == "float64"


def _is_taken_over(dtype: Node) -> bool:
    """Whether a dtype is that of another value, and said there: `x.dtype`."""
    return dtype.type == "attribute" and dtype["attribute"].text == "dtype"


@with_source
def values_of(source: Source) -> Values:
    """The values of a file for another that asks: no third file is."""
    return Values(users.scopes_of(source), asks_others=False)


def position(function: Node, name: str) -> int | None:
    """Where a call passes a parameter that is not given by name; None where there is none to pass."""
    names = [_parameter_name(one) for one in function["parameters"].children]
    place = names.index(name) - (names[0] in ("self", "cls")) if name in names else -1
    return place if place >= 0 else None


def _parameter_name(parameter: Node) -> str:
    """The name of a parameter in a signature, with or without annotation and default."""
    named = parameter if parameter.type == "identifier" else parameter.get("name")
    return named.text if named is not None else next((one.text for one in parameter.children), "")


def _is_placeholder(binding: Binding) -> bool:
    """Whether a binding only says that there is nothing yet: `x = None`."""
    return binding.kind == "assign" and (binding.value is None or binding.value.type == "none")


def join(values: Sequence[Abstract]) -> Abstract:
    """What is known of a value that is one of several."""
    if not values:
        return NOTHING
    first = values[0]
    if all(one == first for one in values):
        return first
    if any(one.kind != first.kind for one in values):
        return NOTHING
    return Abstract(
        first.kind,
        first.dtype if all(one.dtype == first.dtype for one in values) else "",
        first.place if all(one.place == first.place for one in values) else "",
    )


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


def _anywhere(value: Abstract) -> Abstract:
    return msgspec.structs.replace(value, place="")


def arithmetic(operator: str, left: Abstract, right: Abstract) -> Abstract:
    """The result of an arithmetic operator."""
    both = promote(left, right)
    numbers = [side.dtype for side in (left, right) if side.kind == "number"]
    if both.kind == "array":
        of_arrays = [side.dtype for side in (left, right) if side.kind == "array"]
        dtype = arrays.arithmetic(operator, of_arrays, numbers)
        known = dtype not in _NARROW or (left.kind and right.kind)
        return msgspec.structs.replace(both, dtype=dtype if known else "")
    if both.kind == "number":
        return Abstract("number", _of_numbers(operator, numbers) if len(numbers) == 2 else "", both.place)
    if both.kind == "tensor":
        if "complex" in numbers:
            return msgspec.structs.replace(both, dtype=_WIDENED.get(both.dtype, ""))
        known = left.kind and right.kind
        if arrays.is_integer(both.dtype) and (operator == "/" or not known or not set(numbers) <= {"int"}):
            return msgspec.structs.replace(both, dtype="")  # may be the default dtype
    return both


def _of_numbers(operator: str, numbers: Iterable[str]) -> str:
    """The type of arithmetic between numbers; a float64 of NumPy's stays one."""
    kinds = set(numbers)
    if "" in kinds:
        return ""
    if "float64" in kinds and "complex" not in kinds:
        return "float64"
    if kinds <= {"int"}:
        return "float" if operator == "/" else "int"
    return "float" if kinds <= {"int", "float"} else ""


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
    if left.kind == right.kind == "number":
        return Abstract("number", "", "device" if "device" in (left.place, right.place) else "")
    read = next((side for side in (left, right) if side.kind == "number" and side.place == "device"), NOTHING)
    return read if NOTHING in (left, right) else NOTHING
