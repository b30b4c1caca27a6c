"""The build makes code for the machines it was written on, and for no later one.

A list of architectures without PTX holds machine code only: on a newer part the program starts and every kernel fails
with "no kernel image is available for execution on the device". PTX of an `a` variant (`compute_90a`) does not help, it
runs on that one part. AMD has no PTX: a code object runs on the parts that its list names.

## Exceptions
All lists of a file are taken together, so that a file with one list per kernel is silent if any of them serves the
target. Workflows count where their names say that they make what users get, and the builds of tests do not.

## References
https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/index.html#gpu-compilation
"""

from __future__ import annotations

from itertools import takewhile

from portlint.rule import Entry, Guard, Hit, Hits, Node, Rule, any_of, architectures, on_platform, regex

rule = Rule(
    assumes={},
    message="The build makes {built} only; {target} needs {fact}.",
    remedy={
        "amd": "Add the part's gfx name to the list, or a generic target that covers it (`gfx9-4-generic`, ROCm 6.3 or later).",
        "*": "Add the part to the list, and PTX of the newest plain architecture (`-gencode arch=compute_120,code=compute_120`, `+PTX`, CMake's `120-virtual`) for those to come.",
    },
)

LISTS = frozenset(("CMAKE_CUDA_ARCHITECTURES", "CUDA_ARCHITECTURES"))
OF_TORCH = "TORCH_CUDA_ARCH_LIST"
OF_CMAKE = "CUDAARCHS"
OF_AMD = frozenset(
    ("PYTORCH_ROCM_ARCH", "CMAKE_HIP_ARCHITECTURES", "AMDGPU_TARGETS", "GPU_TARGETS", "HIP_ARCHITECTURES")
)
SCOPES = frozenset(("CACHE", "PARENT_SCOPE"))
"""words after the value of `set`"""
SAYING = frozenset(("expression_statement", "comparison_operator", "assert_statement"))
"""what text stands in that is no flag: a docstring, a test of one"""
ONE_PART = regex(r"sm_?\d{2,3}\w*\.cu\b")
"""a source of kernels for one part, whose flags are for that part"""
OFFLOAD = regex(r"offload-arch=([\w:+-]+)")


@rule.python('((string_content) @flag (#match? @flag "arch=compute_"))')
def gencode(flag: Node) -> Hits:
    strings = [
        string
        for string in flag.source.root.walk("string")
        if "arch=compute_" in string.text
        and string.parent is not None
        and string.parent.type not in SAYING
        and not string.is_in_unused
    ]
    if not strings or flag.parent != strings[-1] or not all(string.variants for string in strings):
        return
    texts = [variant for string in strings for variant in string.variants]
    built = frozenset().union(*(architectures.from_gencode(text) for text in texts))
    is_of_one_part = ONE_PART.search(flag.source.root.text) or architectures.is_place_of_one_part(flag.source.place)
    if not (all(one.suffix for one in built) and is_of_one_part):
        yield from _judge(strings[-1].origin, built)


@rule.python('((string_content) @variable (#eq? @variable "TORCH_CUDA_ARCH_LIST"))')
def torch_list(variable: Node) -> Hits:
    value = _given(variable)
    lists = [_given(other) for other in variable.source.root.walk("string_content") if other.text == OF_TORCH]
    built = {one: architectures.from_torch(str(one.constant)) or frozenset() for one in lists if one is not None}
    if value is not None and value == max(built, key=lambda one: len(built[one])):
        yield from _judge(value, frozenset().union(*built.values()))


def _given(variable: Node) -> Node | None:
    """What an environment variable is set to."""
    assignment = next(variable.ancestors("assignment"), None)
    value = assignment.get("right") if assignment is not None else None
    return value if value is not None and isinstance(value.constant, str) else None


@rule.python('((string_content) @flag (#match? @flag "offload-arch="))')
def offload(flag: Node) -> Hits:
    flags = [one for one in flag.source.root.walk("string_content") if "offload-arch=" in one.text]
    if flag == flags[-1]:
        yield from _judge_amd(flag, " ".join(found for one in flags for found in OFFLOAD.findall(one.text)))


@rule.recipes("setting")
def setting(entry: Entry) -> Hits:
    same = [one for one in entry.node.source.entries if one.name == entry.name and one.kind == "setting"]
    if same and entry.node != same[-1].node:
        return
    text = " ".join(one.value for one in same or [entry])
    if entry.name == OF_TORCH:
        yield from _judge(entry.node, architectures.from_torch(text) or frozenset(), entry.guards)
    elif entry.name == OF_CMAKE:
        yield from _judge(
            entry.node, architectures.from_cmake(text.replace(";", " ").split()) or frozenset(), entry.guards
        )
    elif entry.name in OF_AMD:
        yield from _judge_amd(entry.node, text, entry.guards)


@rule.cmake("(normal_command (identifier) (argument_list (argument) @variable))")
def amd_list(variable: Node) -> Hits:
    if variable.text not in OF_AMD or variable.role("test"):
        return
    sets = [one for one in variable.source.root.walk("normal_command") if _sets(one, variable.text)]
    if sets and variable == sets[-1].arguments[0]:
        values = [_value(one, one.arguments[1:]) for one in sets]
        items = [str(item) for value in values for argument in value for item in argument.items]
        yield from _judge_amd(values[-1][0], " ".join(items), variable.guards)


def _sets(command: Node, variable: str) -> bool:
    """Whether a command gives a variable a value."""
    return (
        command.name == "set"
        and [one.text for one in command.arguments[:1]] == [variable]
        and len(command.arguments) > 1
    )


@rule.cmake("(normal_command (identifier) (argument_list)) @command")
def cmake_list(command: Node) -> Hits:
    if not _architectures(command) or command.role("test"):
        return
    lists = [found for other in command.source.root.walk("normal_command") if (found := _architectures(other))]
    if lists and command == next(lists[-1][-1].ancestors("normal_command")):
        yield from _judge(lists[-1][-1], frozenset().union(*map(_built, lists)))


def _architectures(command: Node) -> list[Node]:
    """The architectures that a command sets.

    None for a list of `a` variants that one target alone gets: such a target holds the kernels of one architecture, and
    others hold the rest.
    """
    if command.name not in ("set", "set_property", "set_target_properties"):
        return []
    given = command.arguments
    names = [index for index, argument in enumerate(given) if argument.text in LISTS]
    found = _value(command, given[names[0] + 1 :]) if names else []
    special = command.name != "set" and all(one.suffix == "a" for one in _built(found))
    return [] if special else found


def _value(command: Node, rest: list[Node]) -> list[Node]:
    """The arguments that belong to the list: the next one for a property among others, all before `CACHE` for `set`."""
    if command.name == "set_target_properties":
        return rest[:1]
    return list(takewhile(lambda argument: argument.text not in SCOPES, rest))


def _built(arguments: list[Node]) -> frozenset[architectures.Built]:
    items = [str(item) for argument in arguments for item in argument.items]
    return architectures.from_cmake(items) or frozenset()


def _judge_amd(node: Node, text: str, guards: tuple[Guard, ...] = ()) -> Hits:
    built = architectures.from_gfx(text)
    if built:
        names = sorted(built)
        yield Hit(
            node,
            assumes={"build.architectures": any_of(names)},
            words={"built": ", ".join(names)},
            guards=(*guards, on_platform("rocm")),
            language="cuda",
        )


def _judge(node: Node, built: frozenset[architectures.Built], guards: tuple[Guard, ...] = ()) -> Hits:
    if built:
        yield Hit(
            node,
            assumes={"build.architectures": any_of(architectures.covered(built))},
            words={"built": architectures.shown(built)},
            guards=(*guards, on_platform("nvidia")),
            language="cuda",
        )
