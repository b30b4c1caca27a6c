"""What a project says of its own names: macros and predicates, and the options of rules."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from portlint.cli import main
from portlint.naming import declare, guess_platform
from portlint.rule import Rule
from portlint.rules import configure, discover
from portlint.settings import schema

MASKS = "__global__ void {name}(float* x) {{ x[0] = __shfl_xor_sync(0xffffffff, x[1], 16); }}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in; what was configured in it holds no longer than the test."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    declare({})
    configure({})


def portlint(command: str) -> Result:
    return CliRunner().invoke(main, shlex.split(command))


def found(configuration: str, *targets: str, path: str = ".", rule: str = "") -> set[tuple[str, int]]:
    """The lines with findings, by target."""
    Path("portlint.toml").write_text(f"target = {json.dumps(targets)}\n{configuration}\n")
    result = portlint(f"check {path} --output-format json")
    assert result.exit_code in (0, 1), result.output
    findings = json.loads(result.stdout)["findings"]
    return {(one["target"], one["line"]) for one in findings if one["rule"].startswith(rule)}


def refused(configuration: str) -> str:
    Path("portlint.toml").write_text(f'target = ["cdna3"]\n{configuration}\n')
    result = portlint("check .")
    assert result.exit_code == 2, result.output
    assert "portlint.toml" in result.stderr
    return result.stderr


# ---- macros ---------------------------------------------------------------------------------------------------------


def test_a_macro_of_the_project_chooses_a_platform() -> None:
    Path("a.cu").write_text(f"#ifdef ACME_FAST\n#else\n{MASKS.format(name='f')}#endif\n")
    assert found("", "cdna3", "hopper", rule="lanes") == {("cdna3", 3)}
    assert found('macros = {ACME_FAST = "rocm"}', "cdna3", "rdna4", rule="lanes") == set()
    assert found('macros = {ACME_FAST = "nvidia"}', "cdna3", rule="lanes") == {("cdna3", 3)}


def test_a_macro_can_stand_for_single_targets() -> None:
    Path("a.cu").write_text(f"#if !ACME_FAST\n{MASKS.format(name='f')}#endif\n")
    assert found("macros = {ACME_FAST = []}", "cdna3", "rdna4", rule="lanes") == {("cdna3", 2), ("rdna4", 2)}
    assert found('macros = {ACME_FAST = ["gfx942", "mps"]}', "cdna3", "rdna4", rule="lanes") == {("rdna4", 2)}


def test_flags_and_predicates_in_python_are_taken_as_well() -> None:
    Path("a.py").write_text(
        "import torch\nfrom acme import FAST, on_acme\nfrom acme.platform import flags\n\n\ndef f(x):\n"
        "    if FAST:\n        return x.cuda()\n    if on_acme():\n        return x.cuda()\n"
        "    return x.cuda() if flags.fast else x\n"
    )
    assert {line for _, line in found("", "mps")} == {8, 10, 11}
    assert found('macros = {FAST = "nvidia", on_acme = ["rocm", "nvidia"], fast = "cuda"}', "mps") == set()


def test_the_word_of_the_project_comes_before_what_its_code_says() -> None:
    default = "#ifndef ACME_FAST\n#define ACME_FAST 0\n#endif\n"
    Path("acme.h").write_text("#pragma once\n#define ACME_SLOW 0\n" + default)
    for start in (default, '#include "acme.h"\n', "#define ACME_FAST 0\n"):
        Path("a.cu").write_text(f"{start}#if !ACME_FAST\n{MASKS.format(name='f')}#endif\n")
        assert len(found("", "cdna3", path="a.cu", rule="lanes")) == 1, start
        assert found('macros = {ACME_FAST = "rocm"}', "cdna3", path="a.cu", rule="lanes") == set(), start
    Path("a.py").write_text(
        'import torch\n\nFAST = torch.__version__.endswith("acme")\n\n\ndef on_acme():\n    return FAST\n\n\n'
        "def f(x):\n    if FAST:\n        return x.cuda()\n    return x.cuda() if on_acme() else x\n"
    )
    assert found("", "mps", path="a.py") == {("mps", 12), ("mps", 13)}
    assert found('macros = {FAST = "nvidia"}', "mps", path="a.py") == set()
    assert found('macros = {on_acme = "nvidia"}', "mps", path="a.py") == {("mps", 12)}


def test_a_macro_for_all_of_amd_is_for_every_architecture() -> None:
    guarded = MASKS.format(name="f").replace("0xffffffff", "~0ull")
    Path("a.cu").write_text(
        f"#ifdef ACME_FAST\n__device__ int lane(int t) {{ return t & 63; }}\n{guarded}#else\n#endif\n"
    )
    named = Path("a.cu").read_text().replace("ACME_FAST", "USE_ROCM")
    by_macro = found('macros = {ACME_FAST = "rocm"}', "rdna4", "cdna3", "hopper")
    Path("a.cu").write_text(named)
    assert by_macro == found("", "rdna4", "cdna3", "hopper")


@pytest.mark.parametrize(
    ("meaning", "amd", "any_amd"),
    [
        ({"rocm"}, True, True),
        ({"nvidia"}, False, False),
        ({"@cdna3"}, True, None),
        ({"@rdna4"}, False, None),
        (set(), False, False),
    ],
)
def test_what_a_name_is_declared_to_mean(meaning: set[str], amd: bool, any_amd: bool | None) -> None:
    declare({"ACME": frozenset(meaning)})
    assert guess_platform("ACME", frozenset(("rocm", "hip", "@cdna3"))) is amd
    outcome = guess_platform("acme.flags.ACME", frozenset(("rocm", "hip")))
    assert outcome is any_amd or (any_amd is None and repr(outcome) == "UNKNOWN")
    declare({})
    assert repr(guess_platform("ACME", frozenset(("rocm", "hip", "@cdna3")))) == "UNKNOWN"


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        ('macros = {ACME_FAST = "rocn"}', "'macros.ACME_FAST': there is no platform or target 'rocn'"),
        ('macros = {ACME_FAST = "rocn"}', "Did you mean 'rocm'?"),
        ('macros = {"defined(ACME_FAST)" = "rocm"}', "'defined(ACME_FAST)' is no name of a macro"),
        ("macros = {ACME_FAST = 1}", "'macros' must be a table of platforms"),
        ('macros = ["ACME_FAST"]', "'macros' must be a table of platforms"),
    ],
)
def test_mistakes_in_macros(configuration: str, words: str) -> None:
    assert words in refused(configuration)


# ---- options --------------------------------------------------------------------------------------------------------


def option(rule: str, text: str) -> str:
    return f'[rules."{rule}"]\n{text}'


def test_steps_of_ones_own() -> None:
    Path("a.py").write_text(
        "import torch\n\n\nclass Engine:\n    def advance(self, x: torch.Tensor):\n        loss = self.model(x).sum()\n"
        "        loss.backward()\n        return loss.item()\n"
    )
    configured = option("sync/host-read-in-step", 'steps = ["advance"]')
    assert found("", "tpu-v6e", rule="sync") == set()
    assert found(configured, "tpu-v6e", rule="sync") == {("tpu-v6e", 8)}
    assert found("", "tpu-v6e", rule="sync") == set()


def test_marks_of_ones_own() -> None:
    fixture = discover_fixture("sync/loop-needs-no-mark")
    Path("a.py").write_text(fixture)
    lines = found("", "gaudi3", rule="sync/loop-needs-no-mark")
    assert lines
    ((_, line),) = lines
    rows = fixture.splitlines()
    indent = " " * (len(rows[line - 1]) - len(rows[line - 1].lstrip()) + 4)
    Path("a.py").write_text("\n".join([*rows[:line], f"{indent}flush_graph()", *rows[line:]]) + "\n")
    assert found("", "gaudi3", rule="sync/loop-needs-no-mark")
    configured = option("sync/loop-needs-no-mark", 'marks = ["flush_graph"]')
    assert found(configured, "gaudi3", rule="sync/loop-needs-no-mark") == set()


def discover_fixture(rule: str) -> str:
    from portlint.examples import example

    return example(discover()[rule]).before.text


def test_images_of_ones_own() -> None:
    Path("Dockerfile").write_text("FROM registry.acme.com/mirror/cuda-devel:12.4\nRUN make\n")
    assert found("", "cdna3") == set()
    configured = option("build/containers-are-nvidia", 'images = ["registry.acme.com/mirror/cuda*"]')
    assert found(configured, "cdna3", rule="build") == {("cdna3", 1)}


def test_parameters_of_ones_own_that_take_a_device() -> None:
    Path("a.py").write_text('import torch\nfrom acme import Engine\n\nengine = Engine(place="cuda")\n')
    assert found("", "mps") == set()
    assert found(option("device/is-cuda", 'device-parameters = ["place"]'), "mps") == {("mps", 4)}


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        (option("sync/host-read-in-stop", ""), "Did you mean 'sync/host-read-in-step'?"),
        (option("sync/host-read-in-step", "step = []"), "no option 'step'; it has steps"),
        (
            option("lanes/warp-is-32", "width = 64"),
            "'rules.\"lanes/warp-is-32\"': there is no option 'width': it has",
        ),
        (option("sync/host-read-in-step", 'steps = "advance"'), "'steps' must be a list of strings"),
        ("rules = {steps = 1}", "'rules' must be a table of the options of rules"),
    ],
)
def test_mistakes_in_options(configuration: str, words: str) -> None:
    assert words in refused(configuration)


def test_options_are_shown_with_the_settings_and_the_rule() -> None:
    Path("portlint.toml").write_text(
        'macros = {ACME = "rocm"}\n' + option("sync/host-read-in-step", 'steps = ["advance"]')
    )
    shown = portlint("check --show-settings").stdout
    assert 'rules = {"sync/host-read-in-step" = {"steps" = ["advance"]}}  # configuration' in shown
    assert 'macros = {"ACME" = "rocm"}  # configuration' in shown
    explained = portlint("rule sync/host-read-in-step").stdout
    assert 'Options, in [tool.portlint.rules."sync/host-read-in-step"]' in explained
    assert "steps: functions of your own that are one step" in explained
    described = json.loads(portlint("rule sync/host-read-in-step --output-format json").stdout)
    assert described["options"][0]["default"] == []


def test_the_schema_knows_the_options() -> None:
    validator = jsonschema.Draft202012Validator(schema())
    right = {"sync/host-read-in-step": {"steps": ["advance"]}, "acme/own-rule": {"most": 3}}
    assert validator.is_valid({"rules": right, "macros": {"ACME": ["rocm"], "FAST": "cdna3"}})
    for wrong in ({"steps": "advance"}, {"step": []}):
        assert not validator.is_valid({"rules": {"sync/host-read-in-step": wrong}})


def test_every_option_says_in_a_line_what_it_is_for() -> None:
    for rule in discover().values():
        for one in rule.options.values():
            assert one.name == one.name.lower().replace("_", "-")
            assert 20 < len(one.about) < 120
            assert "\n" not in one.about


@pytest.mark.parametrize(
    ("default", "right", "wrong"),
    [(3, 5, True), (3, 5, "5"), (False, True, 1), ("a", "b", ["b"]), (("a",), ["b"], ["b", 1])],
)
def test_an_option_takes_what_its_default_is(default: object, right: object, wrong: object) -> None:
    rule = Rule(assumes={}, message="", remedy={})
    made = rule.option("most", default, "so many at most")  # type: ignore[type-var]
    made.set(right)
    assert made.value == (tuple(right) if isinstance(right, list) else right)
    with pytest.raises(ValueError, match="must be"):
        made.set(wrong)
