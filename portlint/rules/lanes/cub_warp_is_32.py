"""CUB's warp collectives are taken to work on 32 lanes.

`cub::WarpReduce<T>` without a width takes the hardware's. With hipCUB that is 64 where a wavefront has 64 lanes, while
the code around it still counts its warps by 32: two groups of threads are folded into one result and share one
`TempStorage`, and the leader of every second group reads a value that nothing has set.

## Exceptions
A collective that names its width is silent, and so is code that divides its threads by the device's width, or by a
constant that is called a warp size: that constant is reported where it is set. Lane arithmetic beside votes and ballots
is reported in its own place.

## Fix safety
Safe: 32 is what CUB takes for the width on NVIDIA's devices.

## References
https://rocm.docs.amd.com/projects/hipCUB/en/latest/what-is-hipcub.html
"""

from __future__ import annotations

from collections.abc import Iterator

from portlint.rule import Edit, Hit, Hits, Node, Rule, put_after

rule = Rule(
    assumes={"lanes.width": 32},
    otherwise="corrupts",
    message="'{text}' takes the hardware's width, and '{split}' counts warps of 32 lanes; {target} has {fact}.",
    remedy={
        "amd": "Give the width: `cub::WarpReduce<T, 32>`, `cub::WarpScan<T, 32>`, `cub::WarpExchange<T, ITEMS, 32>`.",
        "*": "Give the collective the width that the code counts by.",
    },
)

WIDTH_POSITIONS = {
    "WarpReduce": 1,
    "WarpScan": 1,
    "WarpExchange": 2,
    "WarpMergeSort": 2,
    "WarpLoad": 3,
    "WarpStore": 3,
}
"""class -> the position of its optional width among the template arguments"""
SPLITS = {"%": 32, "&": 31, "/": 32, ">>": 5}


@rule.cuda('((template_type name: (_) @name arguments: (_) @given) @made (#match? @name "^Warp[A-Z]"))')
@rule.cuda('((template_function name: (_) @name arguments: (_) @given) @made (#match? @name "^Warp[A-Z]"))')
def hardware_width(made: Node, name: Node, given: Node) -> Hits:
    if len(given.children) > WIDTH_POSITIONS.get(name.text, -1) or not _is_of_cub(made):
        return
    for function in _functions(made):
        split = _groups_of_32(function)
        if split is not None:
            edits = _with_width(made, name, given, function)
            yield Hit(made, words={"split": split.text}, guards=(*made.guards, *split.guards), edits=edits, safe=True)
            return


def _with_width(made: Node, name: Node, given: Node, function: Node) -> tuple[Edit, ...]:
    """The width, written wherever the function names the collective; where arguments before it are left out, nothing."""
    if len(given.children) != WIDTH_POSITIONS[name.text]:
        return ()
    named = [one for one in function.walk("template_type", "template_function") if one.text == made.text]
    return tuple(put_after(one["arguments"].children[-1], ", 32") for one in (named if made in named else [made]))


def _is_of_cub(made: Node) -> bool:
    whole = made.parent if made.parent is not None and made.parent.type == "qualified_identifier" else made
    return "cub" in whole.name.rpartition("::")[0]


def _functions(made: Node) -> list[Node]:
    """The function that names a collective first there, or those that use the alias it is given."""
    function = made.function
    if function is not None:
        first = next((one.start for one in function.walk(made.type) if one.text == made.text), made.start)
        return [function] if first == made.start else []
    alias = next(made.ancestors("alias_declaration", "type_definition"), None)
    name = (alias.get("name") or alias.get("declarator")) if alias is not None else None
    users = (use.function for use in name.uses) if name is not None else ()
    return list(dict.fromkeys(user for user in users if user is not None))


def _groups_of_32(function: Node) -> Node | None:
    """The arithmetic by which a function makes groups of 32 threads that the collective is to serve."""
    if function.role("at-most-32-threads"):
        return None
    splits = [one for one in function.walk("binary_expression") if _splits(one)]
    if any(one["right"].type == "number_literal" for one in splits) and function.warp_operations:
        return None  # reported there
    stored = [one for one in _storage_indices(function) if one in splits]
    asks = any(one.role("warp-size") for one in function.walk("identifier"))
    return next(iter(stored or ([] if asks else splits)), None)


def _splits(expression: Node) -> bool:
    operator, width = expression["operator"].text, expression["right"]
    if operator not in SPLITS or width.constant != SPLITS[operator] or width.role("warp-size"):
        return False
    return expression["left"].role("thread-index")


def _storage_indices(function: Node) -> Iterator[Node]:
    """Where the numbers come from that choose among several `TempStorage`."""
    for chosen in function.walk("subscript_expression"):
        array, indices = chosen["argument"].declaration, chosen["indices"].children
        declared = next(array.ancestors("declaration"), None) if array is not None else None
        if declared is not None and "TempStorage" in declared["type"].text and len(indices) == 1:
            yield indices[0].origin
