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

from portlint.rule import Hit, Hits, Node, Rule, any_of, architectures, on_platform

rule = Rule(
    assumes={},
    message="The build makes {built} only; {target} needs {fact}.",
    remedy={
        "*": "Add the part to the list, and PTX of the newest plain architecture (`-gencode arch=compute_120,code=compute_120`, `+PTX`, CMake's `120-virtual`) for those to come.",
    },
)

LISTS = frozenset(("CMAKE_CUDA_ARCHITECTURES", "CUDA_ARCHITECTURES"))


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
    if not (command.name in ("set", "set_property", "set_target_properties") and _list(command)):
        return
    lists = [found for other in command.source.root.walk("normal_command") if (found := _list(other))]
    if command != _command(lists[-1][-1]):
        return
    items = [str(item) for arguments in lists for argument in arguments for item in argument.constant or ()]  # type: ignore[union-attr]
    built = architectures.from_cmake(items)
    yield from _judge(lists[-1][-1], built or frozenset())


def _list(command: Node) -> list[Node]:
    """The arguments that are architectures, where a command sets them."""
    given = command.arguments
    names = [index for index, argument in enumerate(given) if argument.text in LISTS]
    return given[names[0] + 1 :] if names and command.name in ("set", "set_property", "set_target_properties") else []


def _command(argument: Node) -> Node:
    return next(argument.ancestors("normal_command"))


def _judge(node: Node, built: frozenset[architectures.Built]) -> Hits:
    if built:
        yield Hit(
            node,
            assumes={"build.architectures": any_of(architectures.covered(built))},
            words={"built": architectures.shown(built)},
            guards=(on_platform("nvidia"),),
            language="cuda",
        )
