"""Whether JAX computes in an element type on a device, in a narrower one, in several narrower ones, or not at all.

How it checks itself: a number has a part that only that type keeps. The device takes the number apart again, in each
place of a vector and in its sum; Python's own arithmetic says what must be left. For TPU the compiled
program is read: a wide type that none of its multiplications has is emulated.

Proof: run
"""

import re

from _kernel import options, refuse, report, said
from _types import FACTS, TYPES, level

asked = options(*FACTS, "dtype.refused")

from _platform import compiled, described, device, jax, jnp, shape

WIDE = {"float64": "f64", "int64": "s64", "complex128": "c128"}
"""types that may be emulated -> what the compiled program calls them"""
REFUSED = ("complex64", "complex128", "float8_e4m3fnuz", "float8_e5m2fnuz", "float64")
COUNT = 64

jax.config.update("jax_enable_x64", True)


def kept(name: str) -> tuple[str, bool]:
    """The level of a type on the device, and whether the sum agrees."""
    one, dtype = TYPES[name], getattr(jnp, name)
    count = 1 if name == "int8" else COUNT
    whole, large = (jnp.full(count, number, dtype) for number in (one.whole, one.large))
    left = jax.jit(lambda x, y: x - y)(jax.device_put(whole, where), jax.device_put(large, where)).tolist()
    found = level(left[0], one.small)
    total = complex(jax.jit(jnp.sum)(jax.device_put(jnp.asarray(left, dtype), where)))
    return found, left == left[:1] * count and (found != "native" or total == one.small * count)


def takes(name: str) -> bool:
    """Whether the device squares a number of a type, for types that this machine's processor need not have."""
    try:
        jax.jit(lambda x: x * x)(jax.device_put(jnp.ones(COUNT, getattr(jnp, name)), where)).block_until_ready()
    except Exception:  # a refusal may be any exception
        return False
    return True


name = asked.fact.rpartition(".")[2]
if asked.level == "compile":
    if name == "refused":
        refuse("only Neuron's compiler says so: ask for --level run")
    answer = compiled(asked, lambda x: x * x + x, shape(128, 128, dtype=getattr(jnp, name)))
    multiplied = set(re.findall(r"= (\w+)\[[^ ]* multiply\(", answer.text))
    is_emulated = name in WIDE and WIDE[name] not in multiplied
    measured = "none" if not answer.accepted else "emulated" if is_emulated else "native"
    report(
        asked.fact,
        measured,
        checked=bool(multiplied) or not answer.accepted,
        detail=answer.words or str(sorted(multiplied)),
        jax=jax.__version__,
    )
where = device(asked)
if name == "refused":
    found = [one for one in ([asked.item] if asked.item in REFUSED else REFUSED) if not takes(one)]
    report(asked.fact, found, checked=takes("float32"), **described(where))
measured, right, words = "none", True, ""
try:
    measured, right = kept(name)
except Exception as error:  # a refusal may be any exception
    words = said(error)
report(asked.fact, measured, checked=right, detail=words, **described(where))
