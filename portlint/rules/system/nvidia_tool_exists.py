"""NVIDIA's command line tools are taken to be on every machine.

`nvidia-smi` comes with NVIDIA's driver, `nsys` and `ncu` with its toolkit. Where they are missing, `subprocess` raises
FileNotFoundError, and what was to be asked stays unknown.

## Exceptions
Calls whose failure is caught, in files that look for the tool with `shutil.which`, or behind a test of the platform are
silent, and so are calls through a shell that do not raise, pipes among them.

## References
https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from __future__ import annotations

from portlint.rule import Hit, Hits, Node, Rule

rule = Rule(
    assumes={},
    message="'{text}' runs a tool of NVIDIA's; {target} has {fact}.",
    remedy={
        "amd": "Ask the framework (`torch.cuda.get_device_properties`), or run `amd-smi` and `rocprofv3` there; look for the tool with `shutil.which` first.",
        "gaudi": "Run `hl-smi` there; look for the tool with `shutil.which` first.",
        "*": "Ask the framework about its devices, or look for the tool with `shutil.which` first.",
    },
)

FACTS = {"nvidia-smi": "system.nvidia_smi", "nsys": "system.nsight", "ncu": "system.nsight"}
RAISING = ("check_call", "check_output")
"""functions of subprocess that raise where a shell does not find the program"""


@rule.calls(*(f"subprocess.{name}" for name in ("run", "call", "Popen", *RAISING)))
def command(call: Node) -> Hits:
    if not call.arguments:
        return
    program = _program(call.arguments[0])
    words = str(program.constant).split() if program is not None and program.constant else []
    fact = FACTS.get(words[0]) if words else None
    if program is None or fact is None or "|" in program.text or not _raises(call) or call.role("guarded-command"):
        return
    if b"which(" not in call.source.text:
        yield Hit(program, assumes={fact: "native"})


def _program(given: Node) -> Node | None:
    """The program of a command: the first item of a list, or the text itself."""
    command = given.assigned if given.type == "identifier" else given
    if command is not None and command.type in ("list", "tuple"):
        return command.children[0] if command.children else None
    return command if command is not None and command.type in ("string", "concatenated_string") else None


def _raises(call: Node) -> bool:
    """Whether a call raises where the program is not there."""
    shell = call.argument(None, "shell")
    if shell is None or shell.constant is False:
        return True
    check = call.argument(None, "check")
    return call.name.endswith(RAISING) or (check is not None and check.constant is True)
