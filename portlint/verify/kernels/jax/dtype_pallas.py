"""Which element types libtpu takes in a Pallas kernel that loads, adds and stores blocks of them.

How it checks itself: float32 must be among them.

Proof: compile
"""

from typing import Any

from _kernel import options, refuse, report

asked = options("dtype.pallas")

from _pallas import blocked
from _platform import compiled, jax, jnp, shape

TYPES = "float32 bfloat16 int8 int16 int32 uint8 uint16 uint32 bool float16 float64 complex64 complex128".split()
WHOLE, BLOCK = (64, 128), (32, 128)


def body(source: Any, out: Any) -> None:
    """Copy a block."""
    out[...] = source[...]


if asked.level != "compile":
    refuse("element types are the compiler's matter: ask for --level compile")
jax.config.update("jax_enable_x64", True)
words = {}
for name in dict.fromkeys(("float32", *([asked.item] if asked.item in TYPES else TYPES))):
    dtype = jnp.bool_ if name == "bool" else getattr(jnp, name)
    with jax.enable_x64(name in ("float64", "complex128")):
        call = blocked(body, WHOLE, BLOCK, dtype=dtype)
        answer = compiled(asked, call, shape(*WHOLE, dtype=dtype))
    words[name] = "" if answer.accepted else answer.words or "refused"
taken = [name for name, refused in words.items() if not refused]
detail = "; ".join(f"{name}: {refused[:80]}" for name, refused in words.items() if refused)
report(asked.fact, taken, checked="float32" in taken, detail=detail, jax=jax.__version__)
