"""Roles of Python nodes: what a value is, and in what kind of code a node stands.

Values: "tensor", "array" (NumPy), "traced" (a JAX array), "on-host", "on-device" (not known to be on the host, and not
in host code), "device-tensor" (a tensor, on the device), "read-back" (a number or list that was read from the device),
"sized-by-data" (a tensor whose shape depends on data on the device), "growing-list" (a list of numbers that is handed
in, collected, or made of another), "scalar" (a Python number or text), "object" (of a class of this file), "stored"
(taken from a state dict or a checkpoint), and dtypes by name ("float64"). Places: "jitted" (inside a function that JAX,
torch.compile or TorchScript traces), "triton-kernel", "import-time" (runs when the module is imported), "step-loop" (a
loop that trains, decodes or validates, or a function that is one such step), "loop-count" (a number that another round
of the loop has another of), "model-loop" (a loop that runs a model in each of more than a few rounds), "accumulated" (a
name that nothing but its own assignment changes from round to round, in a loop that runs a model as often as is asked
for), "occasional" (in some rounds of its loop only), "host-code" (of data sets, collators, step closures, tests, and of
scripts that prepare data or convert checkpoints: their tensors are on the CPU, or may be read), "host-file" (of tests
and such scripts), "at-rest" (in `__init__`, over a state dict, or called from there only), "only-element" (of a list
that is written out, or in none), "loaded" (by `tl.load`, and not changed since), "default-not-used" (a parameter whose
default no known call takes, or that its function never reads), "test" (in a test, or a file of tests), "selected-gpu"
(in a package whose processes select their GPU), "two-kinds-of-device" (in a file that names no accelerator but CUDA),
"own-package" (an import of a package of the same tree), "guarded-import" (a failed import is caught here or where the
module is imported, or the package was looked for before), "only-import-error" (a failed import is caught where it
raises ImportError, but not where it raises OSError), "closed-over" (a name that a traced function takes from the code
around it, where the value was made before), "host-torch" (in a file of JAX code that keeps the tensors of torch on the
CPU), "after-jax" (runs when the file has imported JAX, which has read its variables then), "measures" (in a benchmark
or a tuner, which is slow where it is told to be), "guarded-call" (a failed call or attribute is caught), "guarded-
command" (a program that is not there is caught here, or by all callers of the function), "sees-torch" and "sees-triton"
(the module surely has that name there), "every-hip" (in the branch for all of HIP, whatever its architecture).

In device code (`source/python/kernels.py`), as in C++: "thread-index", "hardware-lane", "bounded", "group-width",
"groups-of-32", "at-most-32-threads", "first-32-threads", and "names-first-group" (the number of a group of 32 threads
that is only compared with 0). In Pallas kernels (`source/python/pallas.py`): "pallas-kernel", "pallas-kernel-for-tpu",
"pallas-kernel-for-gpu" (runs in one, and in one whose launch takes something of that back end), "past-the-end" (the
last slice of a loop ends after the last element).
"""

from __future__ import annotations

import os
import re
from functools import cached_property
from typing import TYPE_CHECKING

from portlint.condition import names, words_of
from portlint.regex import regex
from portlint.source import nearby
from portlint.source.node import Node
from portlint.source.platforms import asks_for_architecture, is_every_hip
from portlint.source.python import users
from portlint.source.python.choices import comprehended
from portlint.source.python.kernels import MARKS
from portlint.source.python.pallas import GPU_MODULES
from portlint.source.python.queries import calls_of, every_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from portlint.condition import Value
    from portlint.source import Source
    from portlint.source.python.kernels import Kernels
    from portlint.source.python.pallas import Pallas
    from portlint.source.python.scopes import Scopes
    from portlint.source.python.values import Values

_TRACERS = frozenset(
    (
        "jax.jit", "jax.pmap", "jax.vmap", "jax.checkpoint", "jax.experimental.pjit.pjit", "pjit", "equinox.filter_jit",
        "flax.linen.jit", "torch.jit.script",
    )
)  # fmt: skip
_COMPILERS = _TRACERS | {"torch.compile"}
_KERNEL_MARKS = frozenset(("triton.jit", "triton.experimental.gluon.jit", "gluon.jit"))
_LANGUAGE_MARKS = _KERNEL_MARKS.union(
    MARKS,
    ("tilelang.language.prim_func", "tilelang.language.macro", "cutlass.cute.jit", "cutlass.cute.kernel"),
)
"""what compiles a function that is written in a language of its own: there is no tensor of PyTorch in it"""
_STEP_CALLS = frozenset(("step", "mark_step", "optimizer_step", "train_step", "training_step"))
"""what a loop over steps calls; a loop with `backward` alone is mostly a check of gradients"""
_STEP_FUNCTION = regex(r"^_?(train|training|val|validation|eval|evaluation|test|predict|prediction|decode)_step$")
_MODELS = regex(r"^(model|net|network|policy|encoder|decoder|transformer|unet|\w+_model|model_\w+)$")
_LAYERS = regex(r"layer|block|stage|depth|level|len\(self")
_DECODES = frozenset(("argmax", "multinomial", "topk", "gumbel_softmax"))
"""what chooses the next token"""
_LOADER = regex(r"(loader|_dl|dl)$", re.IGNORECASE)
_HOST_FUNCTION = regex(
    r"^(__getitem__|__getitems__|worker_init\w*|collate|\w*collate_fn|\w*_collate|collate_\w+|test_\w+|cpu_\w+|\w+_cpu)$"
)
_HOST_CLASS = regex(
    r"Dataset|Datamodule|DataModule|Collat|Tokenizer|ImageProcessor|FeatureExtractor|BatchSampler|DataLoader|TestCase$"
)
_HOST_FILE = regex(
    r"(^|[/\\])((cpu|(checkpoint_|ckpt_)?(conversions?|converters?))[/\\].*"
    r"|cpu_[^/\\]*|(convert|prepare|preprocess|export)[^/\\]*|setup)\.\w+$"
)
"""code for the CPU, and scripts that prepare data or convert checkpoints"""
_OF_MEASUREMENTS = regex(r"(^|[/\\_])(bench(marks?|marking)?|(auto)?tun(e|er|ing)|microbench\w*)(?=[/\\_.])")
_MOVERS = frozenset(("cuda", "xpu", "set_default_device", "enable_globally", "default_env"))
"""calls after which tensors of torch are on a device; the last two hand them to JAX"""
_REGIONS = ("for_statement", "while_statement", "function_definition")
_CALLS_DEEP = 4
"""how far a function is followed to who calls it"""
_FEW = 16
"""rounds of a loop that is repetition, not training"""
_ALL = ("Exception", "BaseException")
_IMPORT_ERRORS = frozenset(("ImportError", "ModuleNotFoundError"))
_OF_IMPORTS = _IMPORT_ERRORS.union(_ALL)
_OS_ERRORS = frozenset((*_ALL, "OSError", "EnvironmentError", "IOError"))
_OF_COMMANDS = _OS_ERRORS | {"FileNotFoundError"}
_OF_CALLS = frozenset(
    (*_ALL, "RuntimeError", "AssertionError", "AttributeError", "TypeError", "NotImplementedError", "NVMLError")
)
"""what is raised without the device: by torch.cuda RuntimeError or AssertionError, by NVML its own, else by None"""
_ACCELERATORS = frozenset(
    "mps xpu hpu habana gaudi npu ascend mlu musa tpu xla neuron neuronx directml dml mlx privateuseone".split()
)
_LONGEST_DEVICE = 24
"""characters of a string that may name a device; what is longer is prose"""
_OCCASION = regex(r"log|interval|every|verbose|debug|print|eval|save|checkpoint", re.IGNORECASE)
_STORE = regex(r"state_?dict|checkpoint|ckpt", re.IGNORECASE)
_DTYPE_ROLES = frozenset("float64 float32 float16 bfloat16 int64 int32 complex64 complex128 bool".split())


class Roles:
    """The roles in one file."""

    def __init__(self, scopes: Scopes, values: Values, kernels: Kernels, pallas: Pallas) -> None:
        self.scopes = scopes
        self.values = values
        self._steps: dict[int, bool] = {}
        self._tests: dict[int, bool] = {}
        self._at_rest: dict[int, bool] = {}
        self._of_device_code: dict[str, Callable[[Node], bool]] = {
            "thread-index": kernels.is_thread_index,
            "hardware-lane": kernels.is_hardware_lane,
            "bounded": kernels.is_bounded,
            "group-width": kernels.has_group_width,
            "groups-of-32": kernels.works_in_groups,
            "at-most-32-threads": kernels.has_at_most_32_threads,
            "first-32-threads": kernels.is_in_first_group,
            "names-first-group": kernels.only_names_first_group,
            "past-the-end": pallas.runs_past_end,
            "pallas-kernel": pallas.is_in_kernel,
            "pallas-kernel-for-tpu": lambda node: pallas.is_in_kernel(node, "tpu"),
            "pallas-kernel-for-gpu": lambda node: any(pallas.is_in_kernel(node, one) for one in GPU_MODULES),
        }

    def has(self, node: Node, role: str) -> bool:
        """Whether a node has a role."""
        if role in _DTYPE_ROLES:
            return self.values.of(node).dtype == role
        if role in self._of_device_code:
            return self._of_device_code[role](node)
        match role:
            case "tensor" | "array" | "traced":
                return self.values.of(node).kind == role
            case "scalar":
                return self.values.of(node).kind in ("number", "text", "list")
            case "object":
                return self.values.of(node).kind == "object"
            case "stored":
                return self._is_stored(node)
            case "on-host":
                return self.values.of(node).place == "host" or self.values.of(node).kind in ("array", "number", "list")
            case "device-tensor":
                return self.has(node, "tensor") and self.has(node, "on-device")
            case "on-device":
                if self.has(node, "on-host") or self._is_host_code(node):
                    return False
                return not self._inside(node, _LANGUAGE_MARKS)
            case "model-loop":
                short = node.type == "for_statement" and self._is_short(node["right"])
                return not short and any(map(_runs_model, node["body"].walk("call")))
            case "loop-count":
                return self._is_loop_count(node)
            case "growing-list":
                return self._is_growing_list(node)
            case "read-back":
                value = self.values.of(node)
                return value.kind in ("number", "list", "array") and value.place == "device"
            case "sized-by-data":
                return bool(self.values.of(node).sized)
            case "host-code":
                return self._is_host_code(node)
            case "host-file":
                return self._is_of_tests or self._is_host_file
            case "at-rest":
                return self._is_at_rest(node)
            case "jitted":
                return self._inside(node, _COMPILERS)
            case "jax-jitted":
                return self._inside(node, _TRACERS)
            case "closed-over":
                return self._is_closed_over(node)
            case "after-jax":
                return self._is_after_jax(node)
            case "host-torch":
                return self._torch_stays_on_host
            case "measures":
                return _OF_MEASUREMENTS.search(self.scopes.source.place) is not None
            case "triton-kernel":
                return self._inside(node, _KERNEL_MARKS)
            case "import-time":
                return self._runs_at_import(node)
            case "test":
                return self._is_of_a_test(node)
            case "selected-gpu":
                package = _package_of(self.scopes.source.file)
                return package is not None and _selects_gpu(package)
            case "two-kinds-of-device":
                return not self._names_other_accelerators
            case "step-loop":
                return self._is_in_step_loop(node)
            case "accumulated":
                return self._is_accumulated(node)
            case "occasional":
                return any(_is_occasional(test) for test in _tests_in_loop(node))
            case "guarded-import":
                return self._is_caught(node, _OF_IMPORTS) or self._is_looked_for(node) or self._is_optional(node)
            case "only-import-error":
                return self._is_caught(node, _IMPORT_ERRORS) and not self._is_caught(node, _OS_ERRORS)
            case "own-package":
                return _is_of_the_tree(node)
            case "repeated-import":
                return self._is_repeated(node)
            case "only-element":
                return _is_only_element(node)
            case "loaded":
                return self._is_loaded(node)
            case "default-not-used":
                return self._is_default_not_used(node)
            case "guarded-command":
                return self._is_command_caught(node)
            case "guarded-call":
                return self._is_caught(node, _OF_CALLS)
            case "sees-torch" | "sees-triton":
                return self.scopes.sees(role.removeprefix("sees-"), node)
            case "every-hip":  # the innermost test decides; what stands around it is there for other reasons
                guards = node.guards
                return is_every_hip(guards[-1:]) and not asks_for_architecture(guards)
        raise ValueError(f"no such role in Python: {role}")

    def _is_stored(self, node: Node, depth: int = 6) -> bool:
        """Whether a value comes out of a state dict or a checkpoint, which stands on the host more often than not."""
        while node.type in ("call", "attribute", "subscript"):
            if node.type == "attribute" and _STORE.search(node["attribute"].text):
                return True
            inner = node.get("function") or node.get("object") or node.get("value")
            if inner is None:
                return False
            node = inner
        if node.type != "identifier" or not depth:
            return False
        binding = comprehended(node) or self.scopes.binding(node.text, node)
        value = binding.value if binding is not None and binding.kind in ("assign", "item", "loop") else None
        return _STORE.search(node.text) is not None or (value is not None and self._is_stored(value, depth - 1))

    def _is_loaded(self, operand: Node, depth: int = 4) -> bool:
        """Whether a value of a Triton kernel is what `tl.load` gave, transposed or in the type of the dot at most."""
        if operand.type == "attribute" and operand["attribute"].text == "T":
            return self._is_loaded(operand["object"], depth)
        if operand.type == "call" and operand.name == "triton.language.trans" and operand.arguments:
            return self._is_loaded(operand.arguments[0], depth)
        if operand.type == "call":
            function = operand["function"]
            if function.type == "attribute" and function["attribute"].text == "to":
                return self._is_loaded(function["object"], depth)
            return operand.name == "triton.language.load"
        values = (
            [one.value for one in self.scopes.bindings(operand.text, operand)]
            if operand.type == "identifier" and depth
            else []
        )
        return bool(values) and all(one is not None and self._is_loaded(one, depth - 1) for one in values)

    def _is_default_not_used(self, parameter: Node) -> bool:
        """Whether every call in the file passes an argument for a parameter, or the function never reads it."""
        function = self.scopes.function(parameter)
        if function is None or parameter.parent != function["parameters"]:
            return False
        name = parameter["name"].text
        body = function["body"]
        if not any(one.text == name for one in body.walk("identifier")):
            return True
        siblings = parameter.parent.children
        bound = siblings[0].text in ("self", "cls")
        position = siblings.index(parameter) - bound
        callers = self._calls_of(function)
        if not callers and function["name"].text == "__init__":  # of a class that a table names
            callers = [call for call in calls_of(self.scopes.source, {"vars"}) if call["function"].text == "vars"]
            return bool(callers) and _has_option(self.scopes.source, name)
        return bool(callers) and all(_passes(call, position, name) for call in callers)

    def _calls_of(self, function: Node) -> list[Node]:
        """The known calls of a function, or of the class whose `__init__` it is, those of other files included."""
        if function["name"].text != "__init__":
            return self.scopes.callers(function) + (users.calls_from_elsewhere(function) or [])
        owner = next(function.ancestors("class_definition"), None)
        if owner is None:
            return []
        return self.scopes.callers(owner) + self._calls_of_base(owner) + (users.calls_from_elsewhere(owner) or [])

    def _calls_of_base(self, owner: Node) -> list[Node]:
        """The calls `super().__init__(...)` in the classes of the file that derive from a class."""
        bases = (use.parent for use in self.scopes.uses(owner["name"].text))
        derived = (base.parent for base in bases if base is not None and base.type == "argument_list")
        return [
            call
            for one in derived
            if one is not None and one.type == "class_definition"
            for call in one["body"].walk("call")
            if call["function"].text == "super().__init__"
        ]

    def _inside(self, node: Node, marks: frozenset[str]) -> bool:
        return any(self._is_marked(function, marks) for function in node.ancestors("function_definition"))

    def _is_closed_over(self, name: Node) -> bool:
        """Whether a name in a function that JAX traces is bound outside of all such functions."""
        functions = [one for one in name.ancestors("function_definition") if self._is_marked(one, _TRACERS)]
        binding = self.scopes.binding(name.text, name) if name.type == "identifier" and functions else None
        return binding is not None and not functions[-1].start <= binding.start < functions[-1].end

    def _is_after_jax(self, node: Node) -> bool:
        """Whether the file has imported JAX before a node runs."""
        root, function = Node(self.scopes.source, self.scopes.source.tree.root_node), self.scopes.function(node)
        return any(
            _package(one) == "jax" and self.scopes.function(one) in (None, function)
            for one in root.walk("import_statement", "import_from_statement")
            if one.start < node.start
        )

    @cached_property
    def _torch_stays_on_host(self) -> bool:
        """Whether a file computes with JAX, and nothing in it moves a tensor of torch off the CPU."""
        source = self.scopes.source
        if not source.imports("torch") or not any(map(source.imports, ("jax", "flax"))) or source.imports("torch_xla"):
            return False
        return not any(map(self._moves_to_device, every_call(source)))

    def _moves_to_device(self, call: Node) -> bool:
        if call.last_name in _MOVERS:
            return True
        if call.last_name == "to":
            return self.values.of(call).place == "device" and not any(map(self._is_device_of_tensor, call.arguments))
        if call.argument(None, "device_map") is not None:
            return True
        device = None if call.name.startswith("jax.") else call.argument(None, "device")
        is_named = device is not None and not self._is_device_of_tensor(device)
        return is_named and self.values.place(device) == "device"

    def _is_device_of_tensor(self, device: Node) -> bool:
        """Whether an expression is `x.device` of a tensor, which is where that one is already."""
        named = device.type == "attribute" and device["attribute"].text == "device"
        return named and self.values.of(device["object"]).kind == "tensor"

    def _is_marked(self, function: Node, marks: frozenset[str]) -> bool:
        """Whether a function is decorated with one of the marks, or passed to one by name in the same file.

        A decorator may be the mark alone, a call of it, or functools.partial of it.
        """
        parent = function.parent
        if parent is not None and parent.type == "decorated_definition":
            for decorator in parent.children:
                if decorator.type != "decorator":
                    continue
                expression = decorator.children[0]
                if expression.name in marks:
                    return True
                through_partial = expression.type == "call" and expression.name.endswith("partial")
                if through_partial and expression.arguments and expression.arguments[0].name in marks:
                    return True
        return function["name"].text in self._passed_to_tracers() and marks not in (_KERNEL_MARKS, _LANGUAGE_MARKS)

    def _passed_to_tracers(self) -> frozenset[str]:
        if self._passed is None:
            self._passed = frozenset(
                call.arguments[0].text
                for call in calls_of(self.scopes.source, {name.rpartition(".")[2] for name in _COMPILERS})
                if call.name in _COMPILERS and call.arguments and call.arguments[0].type == "identifier"
            )
        return self._passed

    _passed: frozenset[str] | None = None

    def _runs_at_import(self, node: Node) -> bool:
        """At module or class level, or in a function that the module itself calls while it is imported."""
        function = self.scopes.function(node)
        if function is None:
            return not any(True for _ in node.ancestors("lambda")) and not _under_main(node)
        if any(node.start < end and node.end > start for start, end in _signature_spans(function)):
            return self.scopes.function(function) is None
        return self.scopes.function(function) is None and function["name"].text in self._called_at_import()

    def _called_at_import(self) -> frozenset[str]:
        if self._called is None:
            self._called = frozenset(
                call["function"].text
                for call in every_call(self.scopes.source)
                if call["function"].type == "identifier"
                and self.scopes.function(call) is None
                and not any(True for _ in call.ancestors("lambda"))
                and not _under_main(call)
            )
        return self._called

    _called: frozenset[str] | None = None

    def _is_caught(self, node: Node, exceptions: frozenset[str]) -> bool:
        """Whether one of these exceptions, raised here, is caught by a `try` around it and not raised again."""
        child = node
        for parent in node.ancestors():
            if parent.type == "function_definition":
                return False
            if _is_safe_in(parent, child, exceptions):
                return True
            child = parent
        return False

    def _is_command_caught(self, call: Node) -> bool:
        """Whether a missing program is caught here, or wherever the file calls the function around it."""
        if self._is_caught(call, _OF_COMMANDS):
            return True
        function = self.scopes.function(call)
        callers = self.scopes.callers(function) if function is not None else []
        return bool(callers) and all(self._is_caught(one, _OF_COMMANDS) for one in callers)

    @cached_property
    def _names_other_accelerators(self) -> bool:
        """Whether the code of a file, comments and prose left out, has a word for an accelerator that is not CUDA."""
        root = Node(self.scopes.source, self.scopes.source.tree.root_node)
        return any(
            not _ACCELERATORS.isdisjoint(words_of(one.text)) or one.text == "torch.accelerator"
            for one in root.walk("identifier", "string_content", "attribute")
            if one.type != "string_content" or len(one.text) <= _LONGEST_DEVICE
        )

    @cached_property
    def _is_of_tests(self) -> bool:
        return nearby.is_of_tests(self.scopes.source.place)

    @cached_property
    def _is_host_file(self) -> bool:
        return _HOST_FILE.search(self.scopes.source.place) is not None

    def _is_of_a_test(self, node: Node) -> bool:
        """Whether a node stands in a file of tests by its name, or in a test."""
        if self._is_of_tests:
            return True
        return any(map(self._is_test, node.ancestors("function_definition")))

    def _is_test(self, function: Node) -> bool:
        """Whether a function is a test, or what only tests call, such as the reference that they compare with."""
        if function["name"].text.startswith("test"):
            return True
        if function.start not in self._tests:
            self._tests[function.start] = False  # a function that calls itself
            calls = self.scopes.callers(function)
            own = bool(calls) and len(calls) == len(self.scopes.uses(function["name"].text))
            self._tests[function.start] = (
                own and all(map(self._is_of_a_test, calls)) and users.calls_from_elsewhere(function) == []
            )
        return self._tests[function.start]

    def _is_host_code(self, node: Node) -> bool:
        """Whether code of this kind works on the CPU by custom: data sets, collators, tests, scripts for files."""
        if self._is_of_tests or self._is_host_file or self._torch_stays_on_host:
            return True
        for parent in node.ancestors("function_definition", "class_definition"):
            if parent.type == "function_definition":
                name = parent["name"].text
                if _HOST_FUNCTION.match(name) or name in self._run_on_host():
                    return True
                continue
            bases = parent.get("superclasses")
            names = [parent["name"].text, *(one.text for one in bases.walk("identifier"))] if bases else []
            if any(map(_HOST_CLASS.search, names or [parent["name"].text])) and "Module" not in names:
                return True
        return False

    def _is_at_rest(self, node: Node, depth: int = _CALLS_DEEP) -> bool:
        """Whether code runs before there are steps: in `__init__`, over a state dict, or called from there only."""
        function = self.scopes.function(node)
        if function is None:
            return False
        if _makes_or_loads(function):
            return True
        key = function.start
        if key not in self._at_rest:
            self._at_rest[key] = False  # a function that calls itself adds nothing
            calls = users.every_call(function, self.scopes) if depth else None
            self._at_rest[key] = bool(calls) and all(self._is_called_at_rest(call, depth) for call in calls or ())
        return self._at_rest[key]

    def _is_called_at_rest(self, call: Node, depth: int) -> bool:
        if call.source is self.scopes.source:
            return self._is_at_rest(call, depth - 1)
        around = next(call.ancestors("function_definition"), None)
        return around is not None and _makes_or_loads(around)

    def _run_on_host(self) -> frozenset[str]:
        """The functions that the file hands to data loaders as `collate_fn`, and to torch_xla to run after a step."""
        if self._on_host is None:
            loaders = calls_of(self.scopes.source, {"DataLoader"})
            given = [call.argument(None, "collate_fn") for call in loaders]
            given += [call.argument(0, "closure") for call in calls_of(self.scopes.source, {"add_step_closure"})]
            self._on_host = frozenset(one.text.rpartition(".")[2] for one in given if one is not None)
        return self._on_host

    _on_host: frozenset[str] | None = None

    def _is_in_step_loop(self, node: Node) -> bool:
        """Whether a loop around a node trains, decodes or validates, or the function around it is one such step.

        A loop takes steps, more than a few, and does not wait anyway. The loops of tests are not meant to be fast.
        """
        if self._is_host_code(node):
            return False
        for region in node.ancestors("for_statement", "while_statement", "function_definition"):
            if region.type == "function_definition":
                return self._is_step(region)
            if region.type == "for_statement" and self._is_short(region["right"]):
                continue
            calls = list(region["body"].walk("call"))
            if self._takes_steps(region, calls) and not any(call.last_name == "synchronize" for call in calls):
                return True
        return False

    def _is_loop_count(self, value: Node) -> bool:
        """Whether an expression is the variable of a loop over a long range, or counted up in the loop around it."""
        binding = self.scopes.binding(value.text, value) if value.type == "identifier" else None
        loop = next(value.ancestors("for_statement", "while_statement"), None)
        if binding is None or loop is None:
            return False
        if binding.kind == "loop" and loop.type == "for_statement" and binding.value == loop["right"]:
            return (
                not self._is_short(loop["right"]) and loop["right"].type == "call" and _counts_or_numbers(loop, value)
            )
        others = self.scopes.bindings(value.text, value)
        return any(one.kind == "augmented" and loop.start <= one.start <= loop.end for one in others)

    def _is_growing_list(self, name: Node) -> bool:
        """Whether a name is a list of numbers whose length the caller or a loop decides."""
        binding = self.scopes.binding(name.text, name)
        if binding is None:
            return False
        if binding.kind == "parameter":
            return re.match(r"(typing\.)?(list|List|Sequence)\[(int|float)\]", binding.annotation) is not None
        value = binding.value
        if binding.kind != "assign" or value is None:
            return False
        return value.type == "list_comprehension" or (value.type == "list" and not value.children)

    def _is_accumulated(self, name: Node) -> bool:
        """Whether a name has its value from the round before, in a loop that runs a model as often as is asked for.

        A loop over layers is none: it is unrolled, in the same way in each step.
        """
        loop = next(name.ancestors(*_REGIONS), None)
        if loop is None or loop.type == "function_definition" or name.type != "identifier":
            return False
        if loop.type == "for_statement" and (self._is_short(loop["right"]) or not _counts(loop["right"])):
            return False
        bindings = self.scopes.bindings(name.text, name)
        inside = [one for one in bindings if loop.start <= one.start <= loop.end]
        return len(inside) == 1 and any(map(_runs_model, loop["body"].walk("call")))

    def _takes_steps(self, loop: Node, calls: list[Node]) -> bool:
        """Whether each round of a loop is a step; where a loop inside takes the steps, this one counts epochs."""
        own = [call for call in calls if next(call.ancestors("for_statement", "while_statement")) == loop]
        if any(call.last_name in _STEP_CALLS for call in own):
            return True
        if not any(_runs_model(call) for call in own):
            return False
        if loop.type == "for_statement" and any(_LOADER.search(one.text) for one in loop["right"].walk("identifier")):
            return True
        return any(call.last_name in _DECODES for call in own)

    def _is_step(self, function: Node) -> bool:
        """Whether a function is one step: by its name, or because it goes backward or draws batches itself."""
        if _STEP_FUNCTION.match(function["name"].text):
            return True
        key = function.start
        if key not in self._steps:
            calls = list(function["body"].walk("call"))
            outside = [call for call in calls if next(call.ancestors(*_REGIONS)) == function]
            parameters = {one.text for one in function["parameters"].walk("identifier")}
            draws = any(
                call.name == "next" and call.arguments and call.arguments[0].text in parameters for call in calls
            )
            named = {call.last_name for call in outside}
            self._steps[key] = draws or {"backward", "step"} <= named
        return self._steps[key]

    def _is_short(self, iterated: Node) -> bool:
        """Whether a loop runs over a written list, or over a small range."""
        if iterated.type in ("list", "tuple", "set"):
            return True
        if iterated.type != "call" or iterated.name != "range" or not iterated.arguments:
            return False
        rounds = iterated.arguments[-1].constant
        return isinstance(rounds, int) and rounds <= _FEW

    def _is_optional(self, statement: Node) -> bool:
        """Whether the files that import this module catch a failure of a statement that runs with it."""
        imports = users.imports_of(self.scopes.source.file) if self.scopes.function(statement) is None else ()
        return bool(imports) and all(self._is_caught(one, _OF_IMPORTS) for one in imports)

    def _is_repeated(self, statement: Node) -> bool:
        """Whether an import of the same package stands before it at the left margin, where nothing guards it."""
        package = _package(statement).encode()
        before = self.scopes.source.text[: statement.start]
        return any(
            before.startswith(start) or b"\n" + start in before for start in (b"import " + package, b"from " + package)
        )

    def _is_looked_for(self, statement: Node) -> bool:
        """Whether a test of its package, or `pytest.importorskip`, has let an import run.

        A test of the package asks `find_spec("triton")`, or has its name: `is_triton_available()`, `HAS_TRITON`.
        """
        package = _package(statement)
        if not package:
            return False
        for guard in statement.guards:
            if f"installed {package}" in names(guard.condition) or package in guard.text.lower():
                return True
        earlier = [use for use in self.scopes.uses("importorskip") if use.start < statement.start]
        skips = [call for use in earlier for call in use.ancestors("call") if call.arguments]
        return any(_first_part(call.arguments[0].constant) == package for call in skips)


def _makes_or_loads(function: Node) -> bool:
    """Whether a function makes an object, or rewrites a state dict as it is loaded."""
    return function["name"].text == "__init__" or "state_dict" in function["parameters"].text


def _passes(call: Node, position: int, name: str) -> bool:
    """Whether a call gives a parameter a value; with `**options`, where an option of the command line has its name."""
    if call.argument(position, name) is not None:
        return True
    unpacks = any(one.type == "dictionary_splat" for one in call["arguments"].children)
    return unpacks and _has_option(call.source, name)


def _has_option(source: Source, name: str) -> bool:
    """Whether a file gives its command line an option by a name."""
    return re.search(rb"""["']--%s["']""" % name.replace("_", "[_-]").encode(), source.text) is not None


def _package(statement: Node) -> str:
    """The package that an import statement loads."""
    module = statement.get("module_name") or next(iter(statement.children), None)
    if module is None:
        return ""
    return _first_part((module.get("name") or module).text)


def _first_part(module: Value) -> str:
    return module.partition(".")[0] if isinstance(module, str) else ""


def _is_safe_in(parent: Node, child: Node, exceptions: frozenset[str]) -> bool:
    """Whether a `try`, or a `with suppress(...)`, catches one of these exceptions where `child` raises it."""
    if parent.type == "try_statement" and child == parent["body"]:
        return any(_catches(clause, exceptions) for clause in parent.children if clause.type == "except_clause")
    return parent.type == "with_statement" and any(
        call.name == "contextlib.suppress" and any(one.text in exceptions for one in call.arguments)
        for call in parent.children[0].walk("call")
    )


def _catches(clause: Node, exceptions: frozenset[str]) -> bool:
    """Whether an `except` clause catches one of these exceptions for good."""
    caught = [one for one in clause.children if one.type != "block"]
    body = next((one for one in clause.children if one.type == "block"), None)
    raises_again = body is not None and bool(body.children) and body.children[-1].type == "raise_statement"
    named = not caught or any(one.text in exceptions for each in caught for one in each.walk("identifier"))
    return named and not raises_again


def _tests_in_loop(node: Node) -> Iterator[Node]:
    """The tests between a node and the nearest loop or function around it."""
    for parent in node.ancestors("if_statement", *_REGIONS):
        if parent.type != "if_statement":
            return
        yield parent["condition"]


def _counts_or_numbers(loop: Node, name: Node) -> bool:
    """Whether a loop's variable is the number of the round: of `range(...)`, or the first of `enumerate(...)`."""
    if loop["right"].last_name == "enumerate":
        return next(iter(loop["left"].children), loop["left"]).text == name.text
    return loop["right"].last_name in ("range", "trange")


def _counts(iterated: Node) -> bool:
    """Whether a loop runs over a range, perhaps with a progress bar, that is not a number of layers."""
    ranges = [call for call in iterated.walk("call") if call.last_name in ("range", "trange", "count")]
    return bool(ranges) and _LAYERS.search(iterated.text) is None


def _runs_model(call: Node) -> bool:
    """Whether a call runs a model: `model(x)`, `self.model(x)`, `self(x)`, `self.forward(x)`."""
    function = call["function"]
    name = function["attribute"].text if function.type == "attribute" else function.text
    if function.type == "attribute" and function["object"].text.startswith("torch"):
        return False
    return name in ("forward", "self") or _MODELS.match(name) is not None


def _is_occasional(test: Node) -> bool:
    """Whether a test holds in some rounds only: `step % 100 == 0`, or a flag named for logging."""
    remainder = any(one["operator"].text == "%" for one in test.walk("binary_operator"))
    return remainder or _OCCASION.search(test.text) is not None


def _package_of(file: str) -> str | None:
    """The folder of the outermost package around a file."""
    around = nearby.folders(file) if file else ()
    packages = [one for one in around if nearby.is_file(os.path.join(one, "__init__.py"))]
    return packages[-1] if packages else None


@nearby.remembered
def _selects_gpu(package: str) -> bool:
    """Whether code of a package that is no test makes one GPU the current one of its process."""
    return any(
        b"torch.cuda.set_device(" in (nearby.read(file) or b"")
        for file in nearby.below(package, (".py",))
        if not nearby.is_of_tests(os.path.relpath(file, package))
    )


def _is_of_the_tree(statement: Node) -> bool:
    """Whether an import statement loads a package that lies beside the file, or beside a folder around it."""
    module = statement.get("module_name") or statement.children[0]
    package = (module.get("name") or module).text.partition(".")[0]
    file = statement.source.file
    return bool(file and package) and nearby.find(file, f"{package}/__init__.py", users.PACKAGE_ROOTS) is not None


def _is_only_element(node: Node) -> bool:
    """Whether a value stands alone: in no list or comprehension, or in a list of one."""
    parent = node.parent
    if parent is None or parent.type.endswith("_comprehension") or parent.type == "generator_expression":
        return parent is None
    return parent.type not in ("list", "tuple") or len(parent.children) == 1


def _under_main(node: Node) -> bool:
    return any("__main__" in one["condition"].text for one in node.ancestors("if_statement"))


def _signature_spans(function: Node) -> list[tuple[int, int]]:
    """Defaults and annotations are evaluated when the function is defined."""
    parameters = function.get("parameters")
    return [(parameters.start, parameters.end)] if parameters is not None else []
