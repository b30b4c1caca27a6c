"""A width of 32 lanes is the only one, or the largest, that the code serves.

A program that refuses every other warp size does not run on wavefronts of 64 lanes, and a ladder of cases that ends at
32 ends in its last branch, an assertion, once its input has grown to the width of the device.

## Exceptions
A refusal that another platform never compiles is silent, and so is a ladder over anything else than lanes, or one that
serves 64 or has a last branch that works.

## References
https://rocm.docs.amd.com/projects/HIP/en/latest/reference/hardware_features.html
"""

from __future__ import annotations

import re

from portlint.rule import Hit, Hits, Node, Rule, regex

rule = Rule(
    assumes={"lanes.width": 32},
    message="'{text}' is where the widths end that this code serves; {target} has {fact}.",
    remedy={
        "amd": "Serve 64 lanes as well.",
        "*": "Serve the device's width as well.",
    },
)

REFUSING = regex(
    r"\w*assert\w*|abort|exit|_exit|__trap|__builtin_trap|\w*(ERROR|FATAL|FAIL|UNREACHABLE|unreachable|throw)\w*"
)
CHECKS = regex(r"assert|\w*(ASSERT|CHECK|ENFORCE|REQUIRE)\w*")
LANES = regex(r"warp|wave|lane", re.IGNORECASE)
SPELLINGS = ("warp", "Warp", "WARP", "wave", "Wave", "WAVE", "lane", "Lane", "LANE")
CONSTANT = regex(r"k?[A-Z]")
"""how constants of other files are named, which are no queries"""
FIELD = regex(r"warp_?size", re.IGNORECASE)


@rule.cuda("(if_statement condition: (_) @test consequence: (_) @body)")
def refusal(test: Node, body: Node) -> Hits:
    """`if (properties.warpSize != 32) throw ...`."""
    compared = [one for one in test.walk("binary_expression") if one["operator"].text == "!=" and _is_width(one)]
    if len(compared) == 1 and "&&" not in test.text and _refuses(body):
        yield Hit(compared[0])


@rule.cuda(
    "(call_expression function: (identifier) @_name arguments: (argument_list . (binary_expression) @test)) @call"
)
def check(call: Node, test: Node) -> Hits:
    """`TORCH_CHECK(properties.warpSize == 32, ...)`."""
    if CHECKS.fullmatch(call.name.rpartition("::")[2]) and test["operator"].text == "==" and _is_width(test):
        yield Hit(test)


@rule.cuda("(if_statement condition: (_) @test) @first")
def ladder(first: Node, test: Node) -> Hits:
    if first.parent is not None and first.parent.type == "else_clause":
        return
    rungs: list[tuple[str, Node]] = []
    step: Node | None = first
    while step is not None and step.type == "if_statement":
        rung = _rung(step["condition"])
        if rung is None:
            return
        rungs.append(rung)
        otherwise = step.get("alternative")
        step = otherwise.children[0] if otherwise is not None and otherwise.children else None
    del test
    if step is not None and len({name for name, _ in rungs}) == 1 and _refuses(step):
        yield from _ends_at_32(first, rungs[0][0], [value for _, value in rungs])


@rule.cuda("(switch_statement condition: (_) @subject body: (_) @body) @switch")
def switch(switch: Node, subject: Node, body: Node) -> Hits:
    cases = [one for one in body.children if one.type == "case_statement"]
    values = [value for one in cases if (value := one.get("value")) is not None]
    last = next((one for one in cases if one.get("value") is None), None)
    if last is not None and _refuses(last):
        yield from _ends_at_32(switch, subject.text.strip("() "), values)


def _ends_at_32(place: Node, name: str, values: list[Node]) -> Hits:
    served = [value.constant for value in values]
    if len(served) < 2 or any(not isinstance(one, int) for one in served) or max(served) != 32:  # type: ignore[type-var]
        return
    if _grows_with_the_warp(place, name):
        yield Hit(values[served.index(32)])


def _grows_with_the_warp(place: Node, name: str) -> bool:
    """Whether a variable is bounded by, or set from, a number of lanes that the file does not fix."""
    function = place.function
    if function is None or not name.isidentifier():
        return False
    for one in function.walk("while_statement", "for_statement", "init_declarator", "assignment_expression"):
        told = _bound(one, name)
        if told is None or one.start >= place.start:
            continue
        names = [each for each in told.walk("identifier", "field_identifier") if LANES.search(each.text)]
        if any(each.text != name and _is_open(each) for each in names):
            return True
    return False


def _bound(statement: Node, name: str) -> Node | None:
    """What a statement bounds a variable by, or sets it from."""
    if statement.type in ("while_statement", "for_statement"):
        test = statement.get("condition")
        return test if test is not None and re.search(rf"\b{name}\b[^&|]*<", test.text) else None
    target = statement.get("declarator") or statement["left"]
    return statement.get("value") or statement.get("right") if target.text == name else None


def _is_open(name: Node) -> bool:
    return not name.values and not CONSTANT.match(name.text)


def _rung(condition: Node) -> tuple[str, Node] | None:
    """`x == 16` or `x <= 16`."""
    test = condition.get("value") or condition
    while test.type == "parenthesized_expression" and test.children:
        test = test.children[0]
    if test.type != "binary_expression" or test["operator"].text not in ("==", "<="):
        return None
    return (test["left"].text, test["right"]) if test["left"].type == "identifier" else None


def _is_width(test: Node) -> bool:
    """Whether a test compares the device's warp size with 32."""
    left, right = test["left"], test["right"]
    if right.constant != 32 or left.values or CONSTANT.match(left.text) or left.type == "qualified_identifier":
        return False
    if FIELD.fullmatch((left.get("field") or left).text) or left.role("warp-size"):
        return True
    function = test.function
    asked = rf"&\s*{re.escape(left.text)}\s*,\s*\w*(?:DevAttr|DeviceAttribute)WarpSize\b"
    return function is not None and re.search(asked, function.text) is not None


def _refuses(branch: Node) -> bool:
    """Whether a branch ends the program, or raises, and does nothing else of use."""
    if any(True for _ in branch.walk("throw_statement")):
        return True
    for call in branch.walk("call_expression"):
        name = call.name.rpartition("::")[2]
        never = bool(call.arguments) and call.arguments[0].constant in (False, 0)
        if REFUSING.fullmatch(name) or (CHECKS.fullmatch(name) and never):
            return True
    return False


@rule.python("(if_statement condition: (_) @test consequence: (_) @body)", mentions=SPELLINGS)
def refusal_in_python(test: Node, body: Node) -> Hits:
    raises = any(one.type == "raise_statement" for one in body.children)
    if raises and test.asks("warp_size") and _is_for_32(not_test=test):
        yield Hit(test, language="cuda")


@rule.python("(assert_statement . (_) @test)", mentions=SPELLINGS)
def assertion_in_python(test: Node) -> Hits:
    if test.asks("warp_size") and test.may_hold({"warp_size": 32}) and not test.may_hold({"warp_size": 64}):
        yield Hit(test, language="cuda")


def _is_for_32(not_test: Node) -> bool:
    return not not_test.may_hold({"warp_size": 32}) and not_test.may_hold({"warp_size": 64})
