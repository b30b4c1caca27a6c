"""The accelerator is taken to be a CUDA device.

A device string, `.cuda()`, or a call of `torch.cuda` that needs a driver fails where PyTorch has another backend:
"Torch not compiled with CUDA enabled". On ROCm `cuda` is the right name, so nothing is said there.

## Exceptions
Code behind `torch.cuda.is_available()`, a test of the device's type, `is_cuda`, or a skip mark is silent, and so are
the calls of `torch.cuda` that do nothing without a device (`empty_cache`, `manual_seed`, `memory_allocated`), files in
a folder of CUDA's own that has siblings for other machines, and device objects that a test only compares or hands to a
mock, and an index that no machine has. A device by its index alone (`.to(0)`) is the current accelerator's, and needs one.

## Fix safety
Safe: a statement that only calls `torch.cuda`, for nothing that other devices miss, runs if `torch.cuda.is_available()`,
which is true on NVIDIA's devices. It is left in a function that needs a CUDA device anyway, for its events or streams, and
`set_device` beside what is put on that device. Unsafe: `torch.accelerator.synchronize` (PyTorch 2.6) where a clock is read,
or what is copied meanwhile; and a name `device` that has a value there, for "cuda" and for `.cuda()`: it may be another.

## References
https://docs.pytorch.org/docs/stable/torch.html#accelerators
"""

from __future__ import annotations

import re

from portlint.rule import (
    Edit,
    Hit,
    Hits,
    Node,
    Rule,
    mended_by_accelerator,
    one_runs,
    put_after,
    put_before,
    regex,
    replace,
    unless,
    when,
)

rule = Rule(
    assumes={"device.cuda": "native"},
    message="'{text}' needs a CUDA device; {target} has {fact}.",
    remedy={
        "mps": "Take the device from `torch.accelerator.current_accelerator()` (PyTorch 2.6 and newer) or the input's `.device`; `mps` is its name here, and `torch.mps` has `synchronize` and `empty_cache`.",
        "gaudi": "Take the device from the input's `.device`, or use `torch.device('hpu')` after `import habana_frameworks.torch.core`; `torch.hpu` has `synchronize` and the memory queries.",
        "tpu": "Take the device from `torch_xla.device()`, and synchronise with `torch_xla.sync()`.",
        "neuron": "Take the device from `torch_xla.device()`, and synchronise with `torch_xla.sync()`.",
        "intel-xpu": "Take the device from `torch.accelerator.current_accelerator()` (PyTorch 2.6 and newer) or the input's `.device`; `torch.xpu` mirrors `torch.cuda`.",
        "*": "Take the device from the input's `.device` or from an option, and keep calls of `torch.cuda` behind `torch.cuda.is_available()`.",
    },
)

NEED_A_DRIVER = (
    "CUDAGraph Event ExternalStream MemPool Stream can_device_access_peer caching_allocator_alloc clock_rate "
    "cudart current_blas_handle current_device current_stream default_stream device get_device_capability "
    "get_device_name get_device_properties get_rng_state graph graph_pool_handle init ipc_collect "
    "make_graphed_callables mem_get_info memory_usage nvtx.mark nvtx.range nvtx.range_pop nvtx.range_push power_draw "
    "profiler.start profiler.stop reset_max_memory_allocated reset_max_memory_cached reset_peak_memory_stats "
    "set_device set_per_process_memory_fraction set_rng_state synchronize temperature utilization"
)
"""functions of torch.cuda that initialise CUDA or raise without it (torch/cuda/__init__.py, memory.py, nvtx.py, streams.py)"""
DISPENSABLE = frozenset(
    f"torch.cuda.{name}"
    for name in "init ipc_collect nvtx.mark nvtx.range_pop nvtx.range_push profiler.start profiler.stop "
    "reset_max_memory_allocated reset_max_memory_cached reset_peak_memory_stats set_device "
    "set_per_process_memory_fraction synchronize".split()
)
"""those whose calls do nothing that is missing where there is no CUDA device"""
NEEDED = frozenset(name for name in NEED_A_DRIVER.split() if f"torch.cuda.{name}" not in DISPENSABLE)
NEEDS_A_DRIVER = regex(rf"\b({'|'.join(map(re.escape, sorted(NEEDED)))})\s*\(")
ON_CUDA = regex(r"[\'\"]cuda\b|\.cuda\(")
LONGEST_BLOCK = 20_000
"""bytes; in a longer one, each statement gets a test of its own"""
LONGEST_RUN = 20
TEST = "torch.cuda.is_available()"
BEFORE_AND = frozenset(
    "identifier attribute call subscript not_operator comparison_operator boolean_operator parenthesized_expression".split()
)
"""conditions that ` and ...` behind them leaves as they are"""
READS_LATER = regex(
    r"\b(time|timeit|[Tt]imers?|timings?|perf_counter|default_timer|monotonic|process_time|elapsed_time|non_blocking"
    r"|[Bb]enchmark|latency|throughput)(_ns)?\b"
)
"""what is wrong, on any device, if work has not been waited for"""
LEGACY_TYPES = tuple(
    f"torch.cuda.{kind}Tensor" for kind in "BFloat16 Bool Byte Char Double Float Half Int Long Short".split()
)

USES_TORCH = (
    "torch", "accelerate", "diffusers", "lightning", "pytorch_lightning", "sentence_transformers", "timm", "torchaudio",
    "torchvision", "transformers", "ultralytics",
)  # fmt: skip
"""packages whose devices are PyTorch's"""
TAKES_A_DEVICE = frozenset(("dev", "device", "device_map", "map_location", "target_device", "torch_device"))
OWN_PARAMETERS = rule.option(
    "device-parameters", (), "parameters of your own functions and classes that take a device, as `device` does"
)
RECORDS = frozenset(("SimpleNamespace", "Mock", "MagicMock"))
"""what stands for something else in tests: nothing is put on a device"""
TAKES_A_DEVICE_FIRST = frozenset(
    ("torch.set_default_device", "torch.Generator", "torch.distributed.device_mesh.init_device_mesh")
)
LOADS = frozenset(("torch.load", "torch.jit.load"))
SCALERS = ("torch.amp.GradScaler", "torch.cuda.amp.GradScaler")
OTHER_DEVICES = regex(r"(xla|mps|hpu|xpu|npu|neuron|tpu)\b")
NO_CARD = regex(r":\d{4}")
"""in a device, an index that is there to fail"""
COLLECTIONS = frozenset(("list", "tuple", "set", "comparison_operator"))
"""what holds or compares a device, and puts nothing on it"""


@rule.calls(*(f"torch.cuda.{name}" for name in NEED_A_DRIVER.split()))
def driver_call(call: Node) -> Hits:
    if call.role("guarded-call") or _is_of_a_default(call) or _is_one_of_several(call):
        return
    function = call.function
    needs_more = call.name not in DISPENSABLE or _is_beside_what_needs_cuda(call)
    if call.name == "torch.cuda.synchronize" and _is_waited_for(call):
        edits = _of_any_accelerator(call) if not needs_more else ()
        yield from mended_by_accelerator(call["function"], call.guards, edits)
    else:
        yield Hit(call["function"], edits=_behind_a_test(call) if not needs_more else (), safe=True)
    for use in function.callers if function is not None else ():
        if use.role("import-time") and not use.role("guarded-call"):
            yield Hit(use, guards=(*use.guards, *call.guards))


@rule.calls(".cuda")
def move(call: Node) -> Hits:
    moved = call["function"]["object"]
    if not _is_torch(call) or _implements(call, "cuda") or call.role("guarded-call"):
        return
    if not call.source.defines("cuda") or moved.name.startswith("torch.") or moved.role("tensor"):
        yield Hit(call, edits=_moved_to(call, call.device_nearby))


@rule.references(*LEGACY_TYPES)
def legacy_type(name: Node) -> Hits:
    parent = name.parent
    made = parent is not None and parent.type == "call"
    given = parent is not None and parent.type == "argument_list" and next(parent.ancestors()).name != "isinstance"
    if (made or given) and not name.role("guarded-call"):
        yield Hit(name)


def _serves_triton(literal: Node) -> bool:
    """Whether the function around a device launches a Triton kernel."""
    function = literal.function
    if function is None or not literal.source.imports("triton"):
        return False
    return any(call["function"].type == "subscript" for call in function.walk("call"))


@rule.python('((string) @literal (#match? @literal "^[fF]?[\'\\"]cuda(:.*)?[\'\\"]$"))', mentions=("cuda",))
def device_string(literal: Node) -> Hits:
    if not _is_torch(literal) or literal.role("guarded-call") or NO_CARD.search(literal.text):
        return
    value = _device_of(literal)
    if _decides(value):
        named = _named(value)
        uses = named.uses if named is not None else []
        # where there is no Triton, its absence comes first
        own = ([one_runs(uses)] if uses else []) + ([when("installed triton")] if _serves_triton(literal) else [])
        edits = _on_device(literal, value, literal.device_nearby)
        yield Hit(literal, guards=(*literal.guards, *own) if own else None, edits=edits)


@rule.python(
    '((call function: (attribute attribute: (identifier) @_to) arguments: (argument_list . (integer) @index)) (#eq? @_to "to"))'
)
def index_alone(index: Node) -> Hits:
    if _is_torch(index) and not index.role("guarded-call"):
        yield Hit(index, guards=(*index.guards, unless("torch.accelerator.is_available")))


def _behind_a_test(call: Node) -> tuple[Edit, ...]:
    """A test in front of a statement that does no more than call a function of `torch.cuda`, and of those after it."""
    statement = call.parent
    block = statement.parent if statement is not None else None
    run = _run(statement, block) if statement is not None and block is not None else []
    if not run or block is None:
        return ()
    test = _condition_of(block) if run == block.children else None
    if test is not None:
        return (put_after(test, f" and {TEST}"),)
    indent = _lead(run[0])
    step = "\t" if "\t" in indent else "    "
    return put_before(run[0], f"if {TEST}:\n{indent}{step}"), *(put_before(one, step) for one in run[1:])


def _run(statement: Node, block: Node) -> list[Node]:
    """The statements around one of a block, line after line, that can all be left out; none if that one cannot."""
    if not _is_dispensable(statement):
        return []
    if block.end - block.start > LONGEST_BLOCK:
        return [statement]
    beside = block.children
    run = [statement]
    at = beside.index(statement)
    for before in reversed(beside[:at]):
        if before.line != run[0].line - 1 or not _is_dispensable(before):
            break
        run.insert(0, before)
    for after in beside[at + 1 :]:
        if after.line != run[-1].line + 1 or not _is_dispensable(after):
            break
        run.append(after)
    return run if len(run) <= LONGEST_RUN else [statement]


def _is_dispensable(statement: Node) -> bool:
    """Whether a statement, alone on its line, only calls a function of `torch.cuda` that other devices do not miss."""
    call = statement.children[0] if statement.type == "expression_statement" and statement.children else None
    if call is None or call.type != "call" or not call["function"].text.startswith("torch.cuda."):
        return False
    if call.name not in DISPENSABLE or _is_beside_what_needs_cuda(call):
        return False
    if call.name == "torch.cuda.synchronize" and _is_waited_for(call):
        return False
    rest = statement.source.text[statement.end :].lstrip(b" \t")[:1]
    return not _lead(statement).strip() and rest in (b"", b"\n", b"\r", b"#") and "\n" not in statement.text


def _lead(statement: Node) -> str:
    """What stands before a statement on its line."""
    text = statement.source.text
    first = max(text.rfind(b"\n", 0, statement.start), text.rfind(b"\r", 0, statement.start)) + 1
    return text[first : statement.start].decode(errors="replace")


def _condition_of(block: Node) -> Node | None:
    """The condition under which a block runs, and nothing else, where ` and ...` can be written behind it."""
    branch = block.parent
    if branch is None or branch.type != "if_statement" or branch.get("alternative") is not None:
        return None
    test = branch["condition"]
    is_or = test.type == "boolean_operator" and test["operator"].text == "or"
    return test if test.type in BEFORE_AND and not is_or else None


def _is_beside_what_needs_cuda(call: Node) -> bool:
    """Whether the function around a call needs a CUDA device whatever becomes of the call.

    The device that `set_device` chooses is also that of what is put on "cuda" there.
    """
    chooses = call.name == "torch.cuda.set_device"
    around = call.function or (call.source.root if chooses else None)
    if around is None:
        return False
    text = around.text
    if chooses and ON_CUDA.search(text):
        return True
    needed = around.walk("call") if NEEDS_A_DRIVER.search(text) else ()
    return any(one.name.removeprefix("torch.cuda.") in NEEDED and not one.role("guarded-call") for one in needed)


def _is_waited_for(call: Node) -> bool:
    """Whether code around a call reads a clock, or what is copied meanwhile: it has to wait for any device.

    A benchmark may have its clock elsewhere.
    """
    if call.role("measures"):
        return True
    around = list(call.ancestors("function_definition"))
    return READS_LATER.search(around[-1].text if around else call.source.root.text) is not None


def _of_any_accelerator(call: Node) -> tuple[Edit, ...]:
    """The same question of `torch.accelerator`."""
    module = call["function"].get("object")
    return (replace(module, "torch.accelerator"),) if module is not None and module.text == "torch.cuda" else ()


def _moved_to(call: Node, device: str) -> tuple[Edit, ...]:
    """`x.cuda()` as `x.to(device)`; an index, or what else is given by position, is left."""
    method = call["function"]["attribute"]
    if not device or call.arguments:
        return ()
    rest = call["arguments"].text[1:] if call["arguments"].children else ")"
    return (Edit(method.start, call.end, f"to({device}" + (", " if rest != ")" else "") + rest),)


def _on_device(literal: Node, value: Node, device: str) -> tuple[Edit, ...]:
    """A device by its name where "cuda" is passed to what puts something on it."""
    parent = value.parent
    passed = parent is not None and parent.type in ("keyword_argument", "argument_list")
    call = next(value.ancestors("call"), None)
    if not device or not passed or literal.constant != "cuda" or call is None or call.name.endswith("init_device_mesh"):
        return ()
    return (replace(value, device),)


def _is_torch(node: Node) -> bool:
    return any(map(node.source.imports, USES_TORCH))


def _implements(node: Node, method: str) -> bool:
    """Whether a node stands in a method of that name, which somebody calls who wants what it does."""
    function = node.function
    return function is not None and function["name"].text == method


def _device_of(literal: Node) -> Node:
    """The device that a string makes: `torch.device("cuda")`, else the string itself."""
    parent = literal.parent
    call = parent.parent if parent is not None and parent.type == "argument_list" else None
    if call is not None and call.name == "torch.device" and call.arguments[:1] == [literal]:
        return call
    return literal


def _decides(value: Node) -> bool:
    """Whether a device stands where something is put on it, and no option can change it."""
    parent = value.parent
    if parent is None or parent.type in COLLECTIONS:
        return False
    match parent.type:
        case "conditional_expression" | "parenthesized_expression":
            return _decides(parent)
        case "keyword_argument":
            return _is_taken(parent, value)
        case "default_parameter" | "typed_default_parameter":
            taken = parent["name"].text in _device_names() and not parent.role("default-not-used")
            return taken and not _only_scales(parent)
        case "assignment":
            return _is_kept(parent["left"], value)
        case "argument_list" if parent.parent is not None:
            return _is_passed(parent.parent, value)
        case "pair":
            return parent["value"] == value and _is_of_arguments(parent)
        case "return_statement":
            return value.type == "call" or _returns_a_device(value)
    return value.type == "call"


def _is_taken(keyword: Node, value: Node) -> bool:
    """Whether a keyword argument puts something on the device."""
    call = next(keyword.ancestors("call"), None)
    name = keyword["name"].text
    if call is None or (name not in _device_names() and value.type != "call"):
        return False
    function = call["function"].text.rpartition(".")[2]
    if function in RECORDS or _is_one_of_several(call):
        return False
    return not keyword.role("test") or function == "to" or call.name.startswith("torch.")


def _is_kept(target: Node, value: Node) -> bool:
    """Whether an assignment makes it the device of what follows; a name such as CUDA_DEVICE leaves the choice open."""
    name = target.text.rpartition(".")[2].lower()
    if value.role("test"):
        uses = [use for use in target.uses if use.function == value.function] if target.type == "identifier" else []
        if not any(map(_is_placing, uses)):
            return False
    return "cuda" not in name and (name in _device_names() or value.type == "call")


def _device_names() -> frozenset[str]:
    return TAKES_A_DEVICE.union(OWN_PARAMETERS.value)


def _is_placing(use: Node) -> bool:
    """Whether a use of a device's name puts something on it: `x.to(device)`, `torch.ones(4, device=device)`."""
    parent = use.parent
    call = next(use.ancestors("call"), None)
    if parent is None or call is None or parent.type not in ("keyword_argument", "argument_list"):
        return False
    return call["function"].text.rpartition(".")[2] == "to" or call.name.startswith("torch.")


def _is_passed(call: Node, value: Node) -> bool:
    """Whether a call that gets the device as an argument puts something on it."""
    function = call["function"]
    method = function["attribute"].text if function.type == "attribute" else ""
    if value not in call.arguments:
        return False
    position = call.arguments.index(value)
    if (position == 0 and (method == "to" or call.name in TAKES_A_DEVICE_FIRST)) or (
        position == 1 and call.name in LOADS
    ):
        return True
    return value.type == "call" and not value.role("test")


def _is_of_arguments(pair: Node) -> bool:
    """Whether an entry of a dictionary becomes a keyword argument: `f(**{"device": "cuda"})`."""
    table = pair.parent
    if table is None or table.parent is None or pair["key"].constant not in _device_names():
        return False
    named = _named(table)
    places = [table] if named is None else named.uses
    return any(one.parent is not None and one.parent.type == "dictionary_splat" for one in places)


def _returns_a_device(value: Node) -> bool:
    function = value.function
    return function is not None and re.search(r"(^|_)device(_(type|name|str))?$", function["name"].text) is not None


def _named(value: Node) -> Node | None:
    """The plain name that a device is given, to ask who uses it."""
    parent = value.parent
    target = parent["left"] if parent is not None and parent.type == "assignment" else None
    return target if target is not None and target.type == "identifier" else None


def _only_scales(parameter: Node) -> bool:
    """Whether a device goes to a scaler of gradients alone, which turns itself off where there is no CUDA."""
    uses = parameter["name"].uses
    calls = [next(use.ancestors("call"), None) for use in uses]
    return bool(calls) and all(call is not None and call.name in SCALERS for call in calls)


def _is_of_a_default(call: Node) -> bool:
    """Whether a call stands in the lambda that a parameter has by default."""
    return any(
        lambda_.parent is not None and lambda_.parent.type in ("default_parameter", "typed_default_parameter")
        for lambda_ in call.ancestors("lambda")
    )


def _is_one_of_several(node: Node) -> bool:
    """Whether the call around a node is made for another accelerator as well: `bench(device="xla")` beside it."""
    call = node if node.type == "call" else next(node.ancestors("call"), None)
    for around in [call, *node.ancestors("call")] if call is not None else []:
        device = around.argument(None, "device")
        function = around["function"]
        if device is None or function.type != "identifier":
            continue
        others = (use.parent.argument(None, "device") for use in function.uses if use.parent is not None)
        if any(
            isinstance(one.constant, str) and OTHER_DEVICES.match(one.constant) for one in others if one is not None
        ):
            return True
    return False
