"""Compile Triton kernels for a target, with no device: one JSON request a line, one answer a line.

A request is {"kernel", "types", "values", "options", "backend", "arch"}; an answer is {"shared": bytes}, or
{"error": text} where the compiler refuses. Run as a program, so that what the compiler prints or breaks stays out of
the tests.
"""

from __future__ import annotations

import importlib.util
import json
import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


def compiled(request: dict, module) -> dict:
    kernel = getattr(module, request["kernel"])
    values, types = request["values"], request["types"]
    signature = {name: "constexpr" if name in values else types[name] for name in kernel.arg_names}
    aligned = {(index,): [["tt.divisibility", 16]] for index, name in enumerate(kernel.arg_names) if name not in values}
    width = 64 if request["backend"] == "hip" and request["arch"].startswith("gfx9") else 32
    target = GPUTarget(request["backend"], request["arch"], width)
    source = ASTSource(fn=kernel, signature=signature, constexprs=values, attrs=aligned)
    try:
        return {"shared": triton.compile(source, target=target, options=request["options"]).metadata.shared}
    except Exception as error:  # the compiler raises what it likes
        return {"error": f"{type(error).__name__}: {error.__cause__ or error}"[-400:]}


def main() -> None:
    spec = importlib.util.spec_from_file_location("kernels", sys.argv[1])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(compiled(json.loads(line), module)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
