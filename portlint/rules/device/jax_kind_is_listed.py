"""A table is looked up by the name of the device, and has the machines that its author knew.

`jax.devices()[0].device_kind` is "TPU v6 lite" on a v6e and "NVIDIA H100 80GB HBM3" on an H100. A table of peak rates or block
sizes without the name raises KeyError, on the next generation of the same machine, too.

## Exceptions
Tables that are asked with `.get`, in a `try`, or after `in`, are silent, and so are those whose keys are not all written
in the file.

## References
https://github.com/jax-ml/jax/blob/cec06d11/jax/_src/tpu_info.py
"""

from __future__ import annotations

from collections.abc import Iterator

from portlint.rule import Hit, Hits, Node, Rule, any_of

rule = Rule(
    assumes={},
    message="'{text}' is looked up by the kind of the device; {target} has {fact}.",
    remedy={
        "*": "Give the table a default, `TABLE.get(kind, ...)`, and take figures of the chip from `pltpu.get_tpu_info()` where there are any.",
    },
)


@rule.references(".device_kind")
def table(name: Node) -> Hits:
    for lookup in _lookups(name):
        kinds = lookup["value"].assigned or lookup["value"]
        pairs = [one for one in kinds.children if one.type == "pair"] if kinds.type == "dictionary" else []
        keys = [pair["key"].constant for pair in pairs]
        listed = [key for key in keys if isinstance(key, str)]
        is_whole = bool(pairs) and len(listed) == len(kinds.children)
        is_asked = any(lookup["value"].text in guard.text for guard in lookup.guards)
        if is_whole and not is_asked and next(lookup.ancestors("try_statement"), None) is None:
            yield Hit(lookup, {"device.jax_kinds": any_of(listed)}, language="jax")


def _lookups(name: Node) -> Iterator[Node]:
    """Where something is indexed by a device kind, in place or by the name that it is given."""
    statement = name.parent
    given = statement["left"] if statement is not None and statement.type == "assignment" else None
    for one in (name, *(given.uses if given is not None and given.type == "identifier" else ())):
        around = one.parent
        if around is not None and around.type == "subscript" and around["subscript"] == one:
            yield around
