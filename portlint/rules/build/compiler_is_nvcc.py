"""Flags that only nvcc knows are given to whatever compiles the kernels.

PyTorch hands the flags of an extension to hipcc as they stand, and clang stops at the first that it does not know, such as
`--use_fast_math`. `-use_fast_math` it reads as `-u se_fast_math`, and leaves fast math out without a word.

## Exceptions
Silent behind a test of the platform or of NVIDIA's architecture, in files and folders named for one of these (`sm100/`), in lists
for an nvcc that is called by its path, and in files that mention HIP or ROCm: they have been looked at. Each flag is reported
where a file first has it.

## Fix safety
Safe: with PyTorch for CUDA, `torch.version.hip` is None, and the flag is in the list as before.

## References
https://github.com/pytorch/pytorch/blob/0011ec5c5d6171a395bb339b873343a4cdfebd18/torch/utils/cpp_extension.py
"""

from __future__ import annotations

import re

from portlint.rule import Edit, Hit, Hits, Node, Rule, architectures, on_platform, put_after, put_before, regex

rule = Rule(
    assumes={"build.nvcc_flags": "native"},
    message="'{text}' is a flag of nvcc's; {target} has {fact}.",
    remedy={
        "amd": "Add nvcc's flags only where `torch.version.hip is None`; for HIP write `-ffast-math` for fast math and `-Rpass-analysis=kernel-resource-usage` for the report on registers, and leave the others out.",
        "*": "Add nvcc's flags only where nvcc compiles.",
    },
)

FLAGS = regex(
    r"(--(?:use_fast_math|expt-relaxed-constexpr|expt-extended-lambda|extended-lambda|generate-line-info|ptxas-options|threads"
    r"|maxrregcount|relocatable-device-code|compiler-options|default-stream|resource-usage|source-in-ptx|ftz|fmad|diag_suppress)"
    r"|-maxrregcount|-rdc|-ftz|-prec-div|-split-compile|-Xptxas|-Xcudafe|-Xfatbin|-gencode)(?:[= ].*)?"
)
TAKES_A_VALUE = frozenset(
    "--ptxas-options --threads --maxrregcount --relocatable-device-code --compiler-options --default-stream"
    " --ftz --fmad --diag_suppress -maxrregcount -rdc -ftz -prec-div -split-compile -Xptxas -Xcudafe -Xfatbin -gencode".split()
)
"""flags whose value may be the next item of the list"""
IGNORED = "-use_fast_math"
ADDING = regex(r"\.(append|extend|insert)$")
EXTENSION = "torch.utils.cpp_extension"
PORTED = regex(r"hip|rocm", re.IGNORECASE)


PART = r"(?:\w+_)?(?:cc|sm|cap|capability|arch)(?:_(?:version|number|major|minor))?"
ASKING_FOR_PART = regex(rf"\b{PART}\b\W*(?:not\s+in|in|[=!<>]=?)\W*\d")
"""a test of NVIDIA's architecture: `cc in [90, 100]`, `sm_version >= 80`"""
NVCC = regex(r"(?:.*/)?nvcc(?:\.exe)?")


@rule.python(
    '((string_content) @flag (#match? @flag "use_fast_math|constexpr|lambda|line|ptxas|threads|maxrregcount|relocatable|compiler|default|resource|source|ftz|fmad|diag_suppress|rdc|prec|split|Xcudafe|Xfatbin|gencode"))'
)
def given(flag: Node) -> Hits:
    name = _name(flag)
    if not name or not flag.source.imports(EXTENSION) or PORTED.search(flag.source.root.text):
        return
    same = (one for one in flag.source.root.walk("string_content") if _name(one) == name and _is_for_others(one))
    if flag == next(same, None) and not architectures.is_place_of_one_part(flag.source.place):
        verdict = "degrades" if name == IGNORED else None
        guards = (*flag.guards, on_platform("rocm"))
        yield Hit(flag, guards=guards, language="cuda", otherwise=verdict, edits=_unless_hip(flag, name), safe=True)


def _unless_hip(flag: Node, name: str) -> tuple[Edit, ...]:
    """A flag, wherever the file has it in a list, and the value behind it, where it is not for HIP."""
    root = flag.source.root
    same = [one for one in root.walk("string_content") if _name(one) == name and _is_for_others(one)]
    spans = [_item(one) for one in same]
    if None in spans or not all(one.role("sees-torch") for one in same):
        return ()
    return tuple(
        edit
        for first, last in filter(None, spans)
        for edit in (put_before(first, "*([] if torch.version.hip else ["), put_after(last, "])"))
    )


def _item(flag: Node) -> tuple[Node, Node] | None:
    """The first and the last string of a flag that stands in a list: its value may be the next one."""
    string, whole = flag.parent, next(flag.ancestors("list"), None)
    if string is None or whole is None or string.parent != whole:
        return None
    if flag.text not in TAKES_A_VALUE:
        return string, string
    items = whole.children
    place = items.index(string) + 1
    return (string, items[place]) if place < len(items) and items[place].type == "string" else None


def _is_for_others(flag: Node) -> bool:
    """Whether a flag may come to another compiler than nvcc."""
    if flag.is_in_unused or any(ASKING_FOR_PART.search(guard.text) for guard in flag.guards):
        return False
    assignment = next(flag.ancestors("assignment"), None)
    name = assignment.get("left") if assignment is not None else None
    uses = name.uses if name is not None and name.type == "identifier" else []
    return not (uses and all(map(_is_given_to_nvcc, uses)))


def _is_given_to_nvcc(use: Node) -> bool:
    """Whether the function around a use calls nvcc by its path."""
    strings = use.function.walk("string") if use.function is not None else ()
    paths = (one for one in strings if one.parent is not None and one.parent.type in ("argument_list", "list"))
    return any(isinstance(one.constant, str) and NVCC.fullmatch(one.constant) for one in paths)


def _name(flag: Node) -> str:
    """The name of a flag of nvcc's that stands in a list or a call."""
    string = flag.parent
    around = string.parent if string is not None else None
    if around is None or around.type not in ("list", "tuple", "argument_list"):
        return ""
    if (
        around.type == "argument_list"
        and around.parent is not None
        and not ADDING.search(around.parent["function"].text)
    ):
        return ""
    found = FLAGS.fullmatch(flag.text)
    return found[1] if found else flag.text * (flag.text == IGNORED)
