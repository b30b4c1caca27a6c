"""JAX is asked for the devices of one platform by name.

`jax.devices("gpu")` finds CUDA and ROCm devices; where there is neither it raises RuntimeError, and so does every first use
of JAX after `jax_platforms` was set to a platform that is not there. A target of the foreign function interface is
registered for one platform, too, and its calls are not lowered for any other.

## Exceptions
`"cpu"` is there on every machine. Calls whose error is caught, and code behind a test of the back end, are silent; so is
a foreign function that the file registers for the host or for another platform as well, and a variable that is set when
JAX has been imported: it has no effect.

## Fix safety
Unsafe: without the name, JAX takes its default platform, which an option or a variable may have set to another one.

## References
https://docs.jax.dev/en/latest/_autosummary/jax.devices.html
https://docs.jax.dev/en/latest/ffi.html
"""

from __future__ import annotations

from portlint.rule import Edit, Hit, Hits, Node, Rule, any_of, has, replace

rule = Rule(
    assumes={},
    message="'{text}' names a platform of JAX; {target} has {fact}.",
    remedy={
        "*": "Ask for the default with `jax.devices()`, and choose by `jax.default_backend()` where code differs; register foreign functions for each platform that is served.",
    },
)

OPTIONS = ("jax_platforms", "jax_platform_name")
VARIABLES = ("JAX_PLATFORMS", "JAX_PLATFORM_NAME")
REGISTER = ("jax.ffi.register_ffi_target", "jax.extend.ffi.register_ffi_target")


@rule.calls("jax.devices", "jax.device_count", "jax.local_device_count")
def devices(call: Node) -> Hits:
    backend = call.argument(0, "backend")
    alone = call.name == "jax.devices" and backend is not None and call.arguments == [backend]
    yield from _named(backend, call, (replace(backend, ""),) if backend is not None and alone else ())


@rule.calls("jax.local_devices")
def local_devices(call: Node) -> Hits:
    yield from _named(call.argument(None, "backend"), call)


@rule.calls("jax.config.update", "jax.config.config.update")
def configured(call: Node) -> Hits:
    option = call.argument(0, "name")
    if option is not None and option.constant in OPTIONS:
        yield from _named(call.argument(1, "val"), call)


@rule.python(
    '((assignment left: (subscript value: (_) @owner subscript: (string) @key) right: (_) @value) (#match? @key "JAX_PLATFORMS|JAX_PLATFORM_NAME"))'
)
def variable(owner: Node, key: Node, value: Node) -> Hits:
    if owner.name == "os.environ" and key.constant in VARIABLES and not owner.role("after-jax"):
        yield from _named(value, value)


@rule.calls(*REGISTER)
def foreign_function(call: Node) -> Hits:
    name, platform = call.argument(0, "name"), call.argument(2, "platform")
    calls = [one for one in call.source.root.walk("call") if one.name in REGISTER]
    same = [one for one in calls if name is not None and (given := one.argument(0, "name")) and given.text == name.text]
    served = [one.constant if (one := each.argument(2, "platform")) is not None else "cpu" for each in same]
    texts = [one.lower() for one in served if isinstance(one, str)]
    if platform is not None and texts and len(texts) == len(served) and texts[0] != "cpu":
        yield Hit(platform, {"device.jax_platforms": any_of(sorted(set(texts)))}, language="jax")


def _named(platform: Node | None, at: Node, edits: tuple[Edit, ...] = ()) -> Hits:
    """A platform that is not there; of a list all have to be."""
    value = platform.constant if platform is not None else None
    if platform is None or not isinstance(value, str) or at.role("guarded-call"):
        return
    for one in value.lower().split(","):
        if one and one != "cpu":
            edits = edits if value.lower() in ("gpu", "cuda") else ()
            yield Hit(platform, {"device.jax_platforms": has(one)}, language="jax", edits=edits)
