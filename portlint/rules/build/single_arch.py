"""The build makes code for the machines it was written on, and for no later one.

A list of architectures without PTX holds machine code only: on a newer part the program starts and every kernel fails
with "no kernel image is available for execution on the device". PTX of an `a` variant (`compute_90a`) does not help, it
runs on that one part.

## Exceptions
All lists of a file are taken together, so that a file with one list per kernel is silent if any of them serves the
target.

## References
https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/index.html#gpu-compilation
"""

from __future__ import annotations

from itertools import takewhile

from portlint.rule import Hit, Hits, Node, Rule, any_of, architectures, on_platform

rule = Rule(
    assumes={},
    message="The build makes {built} only; {target} needs {fact}.",
    remedy={
        "*": "Add the part to the list, and PTX of the newest plain architecture (`-gencode arch=compute_120,code=compute_120`, `+PTX`, CMake's `120-virtual`) for those to come.",
    },
)

LISTS = frozenset(("CMAKE_CUDA_ARCHITECTURES", "CUDA_ARCHITECTURES"))
SCOPES = frozenset(("CACHE", "PARENT_SCOPE"))
"""words after the value of `set`"""


@rule.python('((string_content) @flag (#match? @flag "arch=compute_"))')
def gencode(flag: Node) -> Hits:
    strings = [
        string
        for string in flag.source.root.walk("string")
        if "arch=compute_" in string.text and string.parent is not None and string.parent.type != "expression_statement"
    ]
    if not strings or flag.parent != strings[-1]:
        return
    texts = [variant for string in strings for variant in string.variants]
    built = frozenset().union(*(architectures.from_gencode(text) for text in texts))
    yield from _judge(strings[-1].origin, built)


@rule.python('((string_content) @variable (#eq? @variable "TORCH_CUDA_ARCH_LIST"))')
def torch_list(variable: Node) -> Hits:
    assignment = next(variable.ancestors("assignment"), None)
    value = assignment.get("right") if assignment is not None else None
    if value is not None and isinstance(value.constant, str):
        built = architectures.from_torch(value.constant)
        yield from _judge(value, built or frozenset())


@rule.cmake("(normal_command (identifier) (argument_list)) @command")
def cmake_list(command: Node) -> Hits:
    if not _architectures(command):
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


def _judge(node: Node, built: frozenset[architectures.Built]) -> Hits:
    if built:
        yield Hit(
            node,
            assumes={"build.architectures": any_of(architectures.covered(built))},
            words={"built": architectures.shown(built)},
            guards=(on_platform("nvidia"),),
            language="cuda",
        )
