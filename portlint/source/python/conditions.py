"""Python tests as conditions that a target can answer.

What code asks in many spellings comes down to a few queries: `device.type`, `device.is_cuda`, `device.capability`,
`gcn_arch`, `warp_size`, and the qualified names of probes such as `torch.cuda.is_available`. Flags and helper functions
of the same file are followed to what they test.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from portlint.condition import UNANSWERABLE, Expression, Literal, Name, Op
from portlint.naming import declared
from portlint.regex import regex
from portlint.source.kept import with_source
from portlint.source.python import predicates, users
from portlint.source.python.constants import constant

if TYPE_CHECKING:
    from portlint.source import Source
    from portlint.source.node import Node
    from portlint.source.python.scopes import Binding, Scopes

_DEPTH = 10

_PROBES = {
    "torch.cuda.get_device_capability": "device.capability",
    "torch.accelerator.is_available": "torch.accelerator.is_available",
    "torch.distributed.is_nccl_available": "torch.cuda.is_available",
    "typing.TYPE_CHECKING": None,
}
"""qualified names with a query of another name; None is a test that is always false when the program runs"""

_AVAILABLE = Name("torch.cuda.is_available")
_ONLY_WITH_CUDA = Op("and", (_AVAILABLE, UNANSWERABLE))
"""false where there is no CUDA device, and open where there is one"""
CAPABILITY = Name("device.capability")
ONLY_ON_NVIDIA = Op("and", (Name("is_nvidia"), UNANSWERABLE))
"""false on every other vendor's machines, and open on NVIDIA's"""
_SM_NUMBER = Op(
    "+", (Op("*", (Op("item", (CAPABILITY, Literal(0))), Literal(10))), Op("item", (CAPABILITY, Literal(1))))
)
_DEVICE_COUNT = Op("if", (_AVAILABLE, UNANSWERABLE, Literal(0)))

_JAX_DEVICES = ("jax.devices", "jax.local_devices")
_JAX_BACKENDS = ("jax.extend.backend.get_backend", "jax.lib.xla_bridge.get_backend")
_ATTRIBUTES: dict[str, Expression] = {
    "is_cuda": Name("device.is_cuda"),
    "is_mps": Op("==", (Name("device.type"), Literal("mps"))),
    "is_xpu": Op("==", (Name("device.type"), Literal("xpu"))),
    "gcnArchName": Name("gcn_arch"),
    "major": Op("item", (Name("device.capability"), Literal(0))),
    "minor": Op("item", (Name("device.capability"), Literal(1))),
    "warp_size": Name("warp_size"),
}
_DEVICE_NAME = regex(r"(^|_)(device|dev)(_?(type|name|str|obj))?$")
_DEVICE_GETTER = regex(
    r"_?(get|infer|detect|select|current|default|guess)_(torch_)?(device|accelerator)(_(type|name|str))?"
)
_KIND_NAME = regex(r"(^|_)(accelerator|hardware)(_?(type|name|kind))?$")
_CUDA_MEMBER = regex(r"([A-Z]+_)?(CUDA|GPU)")
_GPU_FLAG = regex(r"^(is|on|use|using|has|have|with)?_?gpus?(_available)?$", re.IGNORECASE)
_CAPABILITY_TESTS = {"is_device_capability": "==", "has_device_capability": ">="}
"""vLLM's questions for the capability as one number, 90 for 9.0"""
_CAPABILITY_NAME = regex(r"_?(get_|query_)?(device_|compute_|gpu_|cuda_)*capability")
_SM_NAME = regex(r"_?(get_)?(device_|gpu_|cuda_)?(sm|cc|arch)(_?(version|number|arch))?")
_NVIDIA_PART = regex(
    r"(^|_)(sm_?(at_least_|ge_)?\d{2,3}[af]?|hopper|blackwell|h100|h200|b200|a100|ampere)(_|$)", re.IGNORECASE
)
_PLATFORM = regex(r"(^|_)platform$")
_ARITHMETIC = frozenset(("+", "-", "*", "//", "%"))
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))


def condition(scopes: Scopes, node: Node, depth: int = _DEPTH) -> Expression:
    """The condition that a Python test amounts to."""
    if not depth:
        return UNANSWERABLE

    def inner(child: Node) -> Expression:
        return condition(scopes, child, depth - 1)

    match node.type:
        case "parenthesized_expression" | "named_expression":
            child = node.get("value") or next(iter(node.children), None)
            return inner(child) if child is not None else UNANSWERABLE
        case "not_operator":
            return Op("not", (inner(node["argument"]),))
        case "boolean_operator":
            return Op(node["operator"].text, (inner(node["left"]), inner(node["right"])))
        case "conditional_expression" if len(node.children) == 3:
            body, test, other = node.children
            return Op("if", (inner(test), inner(body), inner(other)))
        case "binary_operator" if node["operator"].text in _ARITHMETIC:
            return Op(node["operator"].text, (inner(node["left"]), inner(node["right"])))
        case "comparison_operator":
            return _comparison(scopes, node, depth)
        case "none":
            return Literal(None)
        case "true" | "false" | "integer" | "float" | "string" | "tuple" | "list" | "set" | "unary_operator":
            value = constant(scopes, node)
            return UNANSWERABLE if value is None else Literal(value)
        case "call" | "attribute" | "identifier" if declared(_last(node.get("function") or node)) is not None:
            return Name(_last(node.get("function") or node))  # whatever its definition says
        case "call":
            return _call(scopes, node, depth)
        case "subscript":
            key = node.get("subscript")
            index = constant(scopes, key) if key is not None else None
            return Op("item", (inner(node["value"]), Literal(index))) if index is not None else UNANSWERABLE
        case "attribute":
            return _attribute(scopes, node, depth)
        case "identifier":
            return _identifier(scopes, node, depth)
    return UNANSWERABLE


def _comparison(scopes: Scopes, node: Node, depth: int) -> Expression:
    operands = node.children
    signs = [raw.type for raw in node.raw.children if not raw.is_named or raw.type in ("is not", "not in")]
    symbols = [" ".join(sign.split()) for sign in signs]
    if len(symbols) != len(operands) - 1:
        return UNANSWERABLE
    values = [condition(scopes, operand, depth - 1) for operand in operands]
    if symbols == ["=="] and Literal("nccl") in values:  # the backend of a process group that is running
        return _ONLY_WITH_CUDA
    if symbols in (["=="], ["is"], ["!="], ["is not"]) and any(map(_is_enumerated_cuda, operands)):
        return _ONLY_WITH_CUDA if symbols[0] in ("==", "is") else Op("not", (_ONLY_WITH_CUDA,))
    if symbols in (["=="], ["in"]) and _KIND_NAME.search(_last(operands[0])) and _names_gpus_only(values[1]):
        return _ONLY_WITH_CUDA
    values = [_as_number(scopes, one, values) or value for one, value in zip(operands, values, strict=True)]
    if any(isinstance(value, Literal) and isinstance(value.value, str) for value in values):
        values = [
            Name("device.type") if _asks_for_device(scopes, one) or _is_kind(one, values) else value
            for one, value in zip(operands, values, strict=True)
        ]
    if (of_count := _of_device_count(symbols, values)) is not None:
        return of_count
    tests: list[Expression] = []
    for symbol, left, right in zip(symbols, values[:-1], values[1:], strict=True):
        if symbol in _COMPARISONS or symbol in ("is", "in"):
            tests.append(Op(symbol, (left, right)))
        elif symbol in ("is not", "not in"):
            tests.append(Op("not", (Op(symbol.replace("not", "").strip(), (left, right)),)))
        else:
            return UNANSWERABLE
    return tests[0] if len(tests) == 1 else Op("and", tuple(tests))


def _of_device_count(symbols: list[str], values: list[Expression]) -> Expression | None:
    """What `torch.cuda.device_count() >= world_size` comes to: whatever number of devices that is, it is not 0."""
    if len(values) != 2 or _DEVICE_COUNT not in values or any(isinstance(one, Literal) for one in values):
        return None
    (symbol,) = symbols
    asks_for_more = (">=", ">") if values[0] == _DEVICE_COUNT else ("<=", "<")
    if symbol in asks_for_more:
        return _ONLY_WITH_CUDA
    return Op("not", (_ONLY_WITH_CUDA,)) if symbol in ("<", "<=", ">", ">=") else None


def _names_gpus_only(value: Expression) -> bool:
    """Whether a value to compare with names GPUs and nothing else: "gpu", ("gpu", "gpu_multiprocess")."""
    given = value.value if isinstance(value, Literal) else None
    names = given if isinstance(given, tuple) else (given,)
    return bool(names) and all(isinstance(one, str) and one.startswith("gpu") for one in names)


def _is_kind(operand: Node, values: list[Expression]) -> bool:
    """Whether an operand such as `config.accelerator` says the kind of device, since it is compared with "cuda"."""
    return Literal("cuda") in values and _KIND_NAME.search(_last(operand)) is not None


def _is_enumerated_cuda(operand: Node) -> bool:
    """Whether an operand is a member such as `Backend.CUDA` or `DistributedType.MULTI_GPU` of an enumeration."""
    return operand.type == "attribute" and _CUDA_MEMBER.fullmatch(operand["attribute"].text) is not None


def _call(scopes: Scopes, node: Node, depth: int) -> Expression:
    name = scopes.qualified(node)
    function = node["function"]
    arguments = scopes.source.analysis.arguments(node)
    if name in _PROBES:
        query = _PROBES[name]
        return Name(query) if query else Literal(False)
    if name == "torch.cuda.device_count":
        return _DEVICE_COUNT
    if name in ("bool", "str", "triton.language.constexpr") and len(arguments) == 1:
        return condition(scopes, arguments[0], depth - 1)
    if name == "torch.device" and arguments:
        return condition(scopes, arguments[0], depth - 1)
    if name in ("hasattr", "getattr") and len(arguments) >= 2:
        attribute = constant(scopes, arguments[1])
        if name == "getattr" and isinstance(attribute, str) and attribute in _ATTRIBUTES:
            return _ATTRIBUTES[attribute]
        owner = scopes.qualified(arguments[0])
        if (name, owner, attribute) == ("hasattr", "torch", "hip"):
            return Literal(False)  # no build has it
        if (name, owner, attribute) == ("hasattr", "torch", "accelerator"):
            return Literal(True)  # every build since 2.6 has it
        return Name(f"{name} {owner}.{attribute}") if owner and isinstance(attribute, str) else UNANSWERABLE
    if function.type == "attribute" and function["attribute"].text in ("startswith", "lower", "split"):
        subject = condition(scopes, function["object"], depth - 1)
        if function["attribute"].text != "startswith":
            return subject
        prefixes = constant(scopes, arguments[0]) if arguments else None
        options = prefixes if isinstance(prefixes, tuple) else (prefixes,)
        tests = tuple(Op("startswith", (subject, Literal(option))) for option in options)
        return UNANSWERABLE if prefixes is None else Op("or", tests)
    if name in ("any", "all"):
        given = node["arguments"]
        over = arguments[0] if len(arguments) == 1 else given
        if (of_devices := _of_each_device(scopes, over)) is not None:
            return condition(scopes, of_devices, depth - 1)
        each = _each(scopes, over, depth)
        return Op("or" if name == "any" else "and", tuple(each)) if each else UNANSWERABLE
    if _last(function) == "test_device_matches" and len(arguments) == 1:
        return _one_of_platforms(scopes, arguments[0])
    if _last(function) in _CAPABILITY_TESTS and len(arguments) == 1:
        number = constant(scopes, arguments[0])
        return Op(_CAPABILITY_TESTS[_last(function)], (_SM_NUMBER, Literal(number))) if number else UNANSWERABLE
    if name == "importlib.util.find_spec" and arguments:
        return Op("if", (_is_installed(scopes, arguments[0]), UNANSWERABLE, Literal(None)))
    if function.type == "attribute" and function["attribute"].text == "is_cuda" and _is_platform(function["object"]):
        return Name("is_nvidia")
    named = _by_convention(function)
    if named is None:
        named = Name(name) if name else Name(function.text) if _is_dotted(function) else UNANSWERABLE
    return _predicate(scopes, node, named, depth)


def _each(scopes: Scopes, generator: Node, depth: int) -> list[Expression]:
    """The tests that `word in name for word in ("gfx94", "gfx95")` makes of one subject; none for other generators."""
    if generator.type not in ("generator_expression", "list_comprehension") or len(generator.children) != 2:
        return []
    body, clause = generator.children
    words = constant(scopes, clause["right"]) if clause.type == "for_in_clause" else None
    if not isinstance(words, tuple):
        return []
    if body.type == "comparison_operator" and len(body.children) == 2:
        word, subject = body.children
        operator = next((raw.type for raw in body.raw.children if raw.type in ("in", "==")), "")
    elif body.type == "call" and _last(body["function"]) == "startswith" and len(body.arguments) == 1:
        operator, word, subject = "startswith", body.arguments[0], body["function"]["object"]
    else:
        return []
    if not operator or word.text != clause["left"].text:
        return []
    asked = condition(scopes, subject, depth - 1)
    swapped = operator == "startswith"
    return [Op(operator, (asked, Literal(one)) if swapped else (Literal(one), asked)) for one in words]


def _of_each_device(scopes: Scopes, over: Node) -> Node | None:
    """The test that `device.platform == "gpu" for device in jax.devices()` makes of each device, or a `map` does."""
    if over.type in ("generator_expression", "list_comprehension") and len(over.children) == 2:
        body, clause = over.children
        over_devices = clause.type == "for_in_clause" and _lists_jax_devices(scopes, clause["right"])
        return body if over_devices else None
    if over.type == "call" and over["function"].text == "map" and len(over.arguments) == 2:
        function, devices = over.arguments
        return function["body"] if function.type == "lambda" and _lists_jax_devices(scopes, devices) else None
    return None


def _last(reference: Node) -> str:
    """The last word of a dotted name."""
    return reference["attribute"].text if reference.type == "attribute" else reference.text


def _one_of_platforms(scopes: Scopes, platforms: Node) -> Expression:
    """`test_device_matches(["cuda", "tpu"])` of JAX's test utilities: that the tests run on one of these."""
    names = constant(scopes, platforms)
    if not isinstance(names, tuple):
        return UNANSWERABLE
    return Op("or", tuple(_ONLY_WITH_CUDA if name == "gpu" else Name(f"is_{name}") for name in names))


def _by_convention(node: Node) -> Expression | None:
    """What a name says where its definition is not to be seen: `get_compute_capability()`, `is_sm90_supported`."""
    last = _last(node)
    if _CAPABILITY_NAME.fullmatch(last):
        return CAPABILITY
    return ONLY_ON_NVIDIA if names_nvidia_part(last) or "cuda_compute_capability" in last else None


def names_nvidia_part(name: str) -> bool:
    """Whether a flag or predicate is named for an NVIDIA part: `requires_h100`, `SM90_SUPPORTED`."""
    return _NVIDIA_PART.search(name) is not None


def _as_number(scopes: Scopes, operand: Node, values: list[Expression]) -> Expression | None:
    """The capability as one number, 90 for 9.0, where a name such as `get_sm_version()` is compared with one."""
    reference = operand["function"] if operand.type == "call" else operand
    last = _last(reference)
    numbers = [one.value for one in values if isinstance(one, Literal) and isinstance(one.value, int)]
    is_number = any(not isinstance(number, bool) and 50 <= number < 300 for number in numbers)
    if not is_number or not _SM_NAME.fullmatch(last):
        return None
    owner = reference.get("object") if reference.type == "attribute" else None
    if owner is not None and owner.type == "identifier" and owner.text != "self" and operand.type != "call":
        return None  # `op.arch` is what an object was made for
    known = scopes.only(last, operand)
    return _SM_NUMBER if known is None or known.kind in ("import", "parameter", "function") else None


def _asks_for_device(scopes: Scopes, operand: Node) -> bool:
    """Whether an operand is a call such as `infer_device()` of a function that other files define."""
    if operand.type != "call" or operand["function"].type != "identifier":
        return False
    known = scopes.only(operand["function"].text, operand)
    return _DEVICE_GETTER.fullmatch(operand["function"].text) is not None and (known is None or known.kind == "import")


def _predicate(scopes: Scopes, call: Node, named: Expression, depth: int) -> Expression:
    """What a call of a small function of the tree comes to; where that does not tell, what its name says."""
    definition = predicates.function(scopes, call["function"])
    said = _outcome(definition.source, definition, depth - 1) if definition is not None else None
    if definition is None or said is None:
        return named
    passed: dict[str, Expression] = {}
    for position, parameter in enumerate(definition["parameters"].children):
        name = parameter.get("name") or next(iter(parameter.children), parameter)
        given = call.argument(position, name.text) or parameter.get("value")
        value = given.constant if given is not None else None
        passed[name.text] = UNANSWERABLE if value is None else Literal(value)
    defined = predicates.applied(said, passed)
    is_plain = definition.source == scopes.source and predicates.is_plain(definition)
    return defined if is_plain else Op("known", (defined, named))


@with_source
def _outcome(source: Source, definition: Node, depth: int) -> Expression | None:
    there = users.scopes_of(source)
    return predicates.outcome(definition, lambda test: condition(there, test, depth))


def _is_installed(scopes: Scopes, package: Node) -> Expression:
    """Whether a package can be installed, by its name or by that of the parameter that has it."""
    name = constant(scopes, package)
    if isinstance(name, str):
        return predicates.is_installed(Literal(name))
    return predicates.is_installed(Name(package.text)) if package.type == "identifier" else UNANSWERABLE


def _is_platform(owner: Node) -> bool:
    """Whether an object is one that tells NVIDIA's devices from AMD's, as vLLM's `current_platform` does."""
    return owner.type in ("identifier", "attribute") and _PLATFORM.search(_last(owner)) is not None


def _attribute(scopes: Scopes, node: Node, depth: int) -> Expression:
    name = scopes.qualified(node)
    if name in _PROBES:
        query = _PROBES[name]
        return Name(query) if query else Literal(False)
    if name:
        return Name(name)
    attribute = node["attribute"].text
    if attribute == "platform" and _is_jax_device(scopes, node["object"]):
        return Name("jax.default_backend")
    if attribute in _ATTRIBUTES:
        return _ATTRIBUTES[attribute]
    if attribute in ("type", "name") and _is_device(node["object"]):
        return Name("device.type")
    if _is_device(node):
        return Name("device.type")
    if node["object"].type == "call" and attribute == "type":
        return condition(scopes, node["object"], depth - 1)
    if attribute == "backend" and _is_triton_target(scopes, node["object"]):
        return Name("triton.backend")
    if _GPU_FLAG.match(attribute):
        return _ONLY_WITH_CUDA
    return Name(node.text) if _is_dotted(node) else UNANSWERABLE


def _is_jax_device(scopes: Scopes, owner: Node) -> bool:
    """Whether an expression is a device of the default back end of JAX, `jax.devices()[0]`, or that back end."""
    if owner.type == "subscript":
        return _lists_jax_devices(scopes, owner["value"])
    if owner.type == "identifier":
        for around in owner.ancestors("generator_expression", "list_comprehension", "lambda"):
            over = around.parent.parent if around.type == "lambda" and around.parent is not None else around
            if over is not None and _of_each_device(scopes, over) is not None:
                return owner.text in {one.text for one in over.walk("identifier")}
        binding = scopes.only(owner.text, owner)
        value = binding.value if binding is not None and binding.kind == "assign" else None
        return value is not None and value.type == "subscript" and _lists_jax_devices(scopes, value["value"])
    return owner.type == "call" and scopes.qualified(owner) in _JAX_BACKENDS and not owner.arguments


def _lists_jax_devices(scopes: Scopes, listed: Node) -> bool:
    """Whether an expression is `jax.devices()`, in place or by name."""
    if listed.type == "identifier":
        binding = scopes.only(listed.text, listed)
        if binding is None or binding.kind != "assign" or binding.value is None:
            return False
        listed = binding.value
    return listed.type == "call" and scopes.qualified(listed) in _JAX_DEVICES and not listed.arguments


def _is_triton_target(scopes: Scopes, owner: Node) -> bool:
    """Whether an expression is Triton's current target: the call itself, or a name that was given it."""
    if owner.type == "identifier":
        binding = scopes.only(owner.text, owner)
        if binding is None or binding.kind != "assign" or binding.value is None:
            return False
        owner = binding.value
    return owner.type == "call" and owner["function"].text.endswith("get_current_target")


def _identifier(scopes: Scopes, node: Node, depth: int) -> Expression:
    name = scopes.qualified(node)
    if name in _PROBES:
        query = _PROBES[name]
        return Name(query) if query else Literal(False)
    if (loaded := _set_by_import(scopes, node)) is not None:
        return loaded
    binding = scopes.binding(node.text, node)
    if binding is not None and binding.kind == "import" and (flag := _flag_elsewhere(scopes, node, depth)) is not None:
        return Op("known", (flag, _by_convention(node) or Name(name or node.text)))
    if binding is not None and binding.kind == "parameter" and (passed := _passed_to_kernel(scopes, node)) is not None:
        return condition(scopes, passed, depth - 1)
    if binding is not None and binding.value is not None and len(scopes.bindings(node.text, node)) == 1:
        followed = _bound(scopes, binding, depth)
        if followed is not None:
            return followed
    if (changed := _changed_under_test(scopes, node, depth)) is not None:
        return changed
    if _is_device(node):
        return Name("device.type")
    if _GPU_FLAG.match(node.text):
        return _ONLY_WITH_CUDA
    return _by_convention(node) or Name(name or node.text)


def _flag_elsewhere(scopes: Scopes, node: Node, depth: int) -> Expression | None:
    """What a flag stands for that another file of the tree sets once."""
    found = users.meaning(scopes, node)
    value = found.binding.value if found is not None and found.binding.kind == "assign" else None
    return condition(found.scopes, value, depth - 1) if found is not None and value is not None and depth else None


def _set_by_import(scopes: Scopes, node: Node) -> Expression | None:
    """`HAS_X`, which is true after the imports of a `try` and false where they fail."""
    given = {
        constant(scopes, one.value): one.value for one in scopes.bindings(node.text, node) if one.value is not None
    }
    tried = next(given[True].ancestors("try_statement"), None) if given.keys() == {True, False} else None
    if tried is None or not tried["body"].start <= given[True].start < tried.end:
        return None
    packages = tuple(predicates.is_installed(Literal(one)) for one in predicates.imported_in(tried["body"]))
    return Op("and", (*packages, UNANSWERABLE)) if packages else None


def _changed_under_test(scopes: Scopes, node: Node, depth: int) -> Expression | None:
    """What a flag stands for that is set once and changed once, in an `if` that ends before the flag is asked for."""
    bindings = scopes.bindings(node.text, node)
    first, last = (bindings[0].value, bindings[1].value) if len(bindings) == 2 else (None, None)
    if first is None or last is None or not depth or any(one.kind != "assign" for one in bindings):
        return None
    around = next(last.ancestors("if_statement"), None)
    if around is None or around.end > node.start or around["consequence"].end < last.end or around.start < first.start:
        return None
    test, before = condition(scopes, around["condition"], depth - 1), condition(scopes, first, depth - 1)
    if constant(scopes, last) is False:  # a flag that was false before is so now; what the test asks of it is true
        return Op("and", (before, Op("not", (_with_true(test, node.text),))))
    return Op("if", (test, condition(scopes, last, depth - 1), before))


def _with_true(test: Expression, name: str) -> Expression:
    """A test in which one name is true."""
    if isinstance(test, Op):
        return Op(test.operator, tuple(_with_true(one, name) for one in test.operands))
    return Literal(True) if test == Name(name) else test


def _passed_to_kernel(scopes: Scopes, parameter: Node) -> Node | None:
    """What every launch or call of a Triton kernel in the file passes for a parameter (`USE_PTX=IS_NVIDIA`)."""
    function = scopes.function(parameter)
    if function is None or function.parent is None or function.parent.type != "decorated_definition":
        return None
    calls = scopes.launches(function) + scopes.callers(function)
    passed = [call.argument(None, parameter.text) for call in calls]
    first = passed[0] if passed else None
    return first if first is not None and all(one is not None and one.text == first.text for one in passed) else None


def _bound(scopes: Scopes, binding: Binding, depth: int) -> Expression | None:
    """What a name bound once stands for, if a target can answer it."""
    assert binding.value is not None
    if binding.kind not in ("assign", "item"):
        return None
    value = condition(scopes, binding.value, depth - 1)
    if value is UNANSWERABLE:
        return None
    if binding.kind == "item":
        return Op("item", (value, Literal(binding.index)))
    return value


def _is_dotted(node: Node) -> bool:
    while node.type == "attribute":
        node = node["object"]
    return node.type == "identifier"


def _is_device(node: Node) -> bool:
    """Whether an expression is named like a torch device."""
    name = node["attribute"].text if node.type == "attribute" else node.text if node.type == "identifier" else ""
    return _DEVICE_NAME.search(name) is not None
