"""An error is recognised by a text that only NVIDIA's GPUs give.

PyTorch puts the backend in front: "HIP out of memory" on AMD, "MPS backend out of memory" on Apple, "XPU out of memory"
on Intel. A handler that looks for "CUDA out of memory" never matches there, and the program ends where it was meant to
go on with a smaller batch.

## Fix safety
Unsafe: 'out of memory' is also in the errors of other allocators.

## References
https://docs.pytorch.org/docs/stable/generated/torch.OutOfMemoryError.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule, replace

rule = Rule(
    assumes={"system.vendor": "NVIDIA"},
    message="'{text}' is in no error of a device that is not NVIDIA's; {target} is {fact}.",
    remedy={"*": "Catch `torch.OutOfMemoryError` (PyTorch 2.5 and newer), or look for 'out of memory' alone."},
)

GENERAL = "out of memory"
OF_MEMORY = ("cuda out of memory", "cuda out of memory.", "cuda error: out of memory")
"""what says no more than that"""


@rule.python('((comparison_operator . (string) @text ["in" "not in"] (_)) (#match? @text "CUDA|cuda"))')
def searched(text: Node) -> Hits:
    said = text.constant
    if isinstance(said, str) and _is_memory_error(said) and not text.role("test") and not _is_one_of_several(text):
        edits = (replace(text, f'"{GENERAL}"' if text.text.endswith('"') else f"'{GENERAL}'"),)
        yield Hit(text, edits=edits if said.lower() in OF_MEMORY else ())


def _is_memory_error(said: str) -> bool:
    return said.lower().startswith("cuda") and GENERAL in said.lower()


def _is_one_of_several(text: Node) -> bool:
    """Whether the same test, or one around it, looks for other texts as well."""
    for parent in text.ancestors("boolean_operator"):
        if any(one != text and GENERAL in one.text.lower() for one in parent.walk("string")):
            return True
    for test in text.ancestors("if_statement"):
        if any(GENERAL in one.text.lower() for one in test.walk("string") if one != text):
            return True
    return False
