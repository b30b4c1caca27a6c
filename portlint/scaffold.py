"""`portlint rule --new`: a rule to start from, with fixtures that hold it to what it says."""

from __future__ import annotations

from pathlib import Path

from portlint.mistake import Mistake
from portlint.regex import regex
from portlint.rules import FIXTURES

_NAME = regex(r"(?P<pack>[a-z][a-z0-9]*)/(?P<name>[a-z][a-z0-9]*(?:-[a-z0-9]+)*)")

_RULE = '''"""{summary}

Say here what happens on a machine for which that is wrong, and why nobody notices.
"""

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={{"lanes.width": 32}},  # a fact of `portlint target NAME`, and the value that the code believes in
    otherwise="corrupts",
    message="'{{text}}' adds up 32 lanes; {{target}} has {{fact}}.",
    remedy={{"*": "Call `warp_sum`, which takes the width from the device."}},
)


@rule.cuda_calls("warp_sum_32")
def sum_over_a_warp(call: Node) -> Hits:
    yield Hit(call["function"])
'''
_BEFORE = """__device__ float warp_sum_32(float value);

__global__ void total(const float* in, float* out) {{
    out[blockIdx.x] = warp_sum_32(in[threadIdx.x]);  // expect[{name} @ cdna3 cdna4]
}}
"""
_AFTER = """__device__ float warp_sum(float value);

__global__ void total(const float* in, float* out) {
    out[blockIdx.x] = warp_sum(in[threadIdx.x]);
}
"""


class ScaffoldError(Mistake):
    """A rule that cannot be written."""


def write(name: str, folder: Path) -> list[Path]:
    """Write a rule and its fixtures below a folder. Returns the files.

    Raises ScaffoldError where the name is none for a rule, or one of the files is there already.
    """
    if not _NAME.fullmatch(name):
        raise ScaffoldError(f"'{name}' is no name for a rule: write 'pack/name', such as 'lanes/warp-sum-is-32'.")
    place = name.replace("-", "_")
    summary = f"{name.partition('/')[2].replace('-', ' ').capitalize()}."
    texts = {
        folder / f"{place}.py": _RULE.format(summary=summary),
        folder / FIXTURES / place / "before.cu": _BEFORE.format(name=name),
        folder / FIXTURES / place / "silent_after.cu": _AFTER,
    }
    for path in texts:
        if path.exists():
            raise ScaffoldError(f"{path} is there already.")
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ScaffoldError(f"cannot write {error.filename}: {error.strerror}") from error
    return list(texts)
