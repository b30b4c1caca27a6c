"""The shipped profiles hold what the rules ask for, a broken profile is explained, and `portlint target` shows both."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from portlint.cli.target import target as target_command
from portlint.condition import PLATFORM_WORDS, UNKNOWN, Literal, Name, Op, evaluate
from portlint.naming import guess_platform
from portlint.target import (
    Level,
    ProfileError,
    Target,
    aliases,
    check,
    load,
    shipped,
    vocabulary,
)

NVIDIA = ("ampere", "ada", "hopper", "blackwell", "blackwell-ultra", "blackwell-rtx")
CDNA = ("cdna2", "cdna3", "cdna4")
RDNA = ("rdna3", "rdna4")
AMD = CDNA + RDNA
TPU = ("tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-v7")
NEURON = ("inferentia2", "trainium2", "trainium3")
GAUDI = ("gaudi2", "gaudi3")
EVERY = (*NVIDIA, *AMD, *TPU, *NEURON, *GAUDI, "xpu", "mps", "cpu")

PACKS = (
    "lanes",
    "isa",
    "memory",
    "api",
    "library",
    "dtype",
    "shape",
    "sync",
    "device",
    "launch",
    "tile",
    "numerics",
    "build",
    "system",
)
INSTRUCTION_SETS = (
    "isa.wgmma",
    "isa.tcgen05",
    "isa.tma",
    "isa.clusters",
    "isa.pdl",
    "isa.setmaxnreg",
    "isa.async_copy",
)
EVERYWHERE = (
    "isa.cuda_cxx",
    "isa.ptx",
    "shape.data_dependent",
    "shape.dynamic",
    "sync.host_read",
    "device.type",
    "device.cuda",
    "device.nccl",
    "device.cuda_version",
    "device.hip_module",
    "library.flash_attn",
    "library.bitsandbytes",
    "library.triton",
    "library.pynvml",
    "library.tensorrt",
    "system.vendor",
)
ON_WARPS = (
    "lanes.width",
    "lanes.mask_bits",
    "lanes.warp_size_constant",
    "memory.shared_bytes",
    "memory.shared_static_bytes",
    "launch.threads_per_block",
    "launch.warps_per_block",
    "isa.capability",
    "build.architectures",
    "dtype.float64",
    "dtype.float32",
    "dtype.tf32",
    "dtype.bfloat16",
    "dtype.float16",
    "dtype.fp8_e4m3fn",
    "dtype.fp8_e5m2",
    "dtype.fp8_e4m3fnuz",
    "dtype.fp8_e5m2fnuz",
    "dtype.fp4",
    "dtype.int64",
    "dtype.complex64",
    "dtype.complex128",
)


def value(name: str, fact: str) -> object:
    stated = load(name).fact(fact)
    return None if stated is None else stated.value


def test_the_shipped_targets_are_the_documented_ones() -> None:
    assert sorted(EVERY) == list(shipped())


@pytest.mark.parametrize("name", EVERY)
def test_every_fact_has_a_source_to_follow(name: str) -> None:
    one = load(name)
    assert one.name == name
    assert one.profile.facts
    for fact_name, fact in one.profile.facts.items():
        for cite in one.cites(fact):
            assert cite.title, fact_name
            assert re.fullmatch(r"https://\S+", cite.url), fact_name
            assert re.fullmatch(r"20\d\d-\d\d-\d\d", cite.seen), fact_name
        assert one.state(fact_name).text, fact_name


@pytest.mark.parametrize("name", EVERY)
def test_no_source_is_listed_for_nothing(name: str) -> None:
    profile = load(name).profile
    used = {key for fact in profile.facts.values() for key in _keys(fact.cite)}
    used |= {key for product in profile.products.values() for key in _keys(product["cite"])}
    assert used == set(profile.cites)


def _keys(cite: object) -> Iterator[str]:
    yield from [cite] if isinstance(cite, str) else cite  # type: ignore[misc]


@pytest.mark.parametrize("name", EVERY)
def test_every_target_states_what_the_rules_ask(name: str) -> None:
    wanted = EVERYWHERE
    if name in NVIDIA + AMD:
        wanted += ON_WARPS + INSTRUCTION_SETS
    if name in NVIDIA + AMD + TPU + NEURON:
        wanted += ("shape.traced_data_dependent",)
    assert not set(wanted) - set(load(name).profile.facts)


def test_every_word_of_the_vocabulary_is_stated_by_a_target() -> None:
    stated = {fact for name in EVERY for fact in load(name).profile.facts}
    assert not set(vocabulary()) - stated


def test_packs_are_kept_together_and_spelled_as_documented() -> None:
    packs = list(dict.fromkeys(name.partition(".")[0] for name in vocabulary()))
    assert packs == list(PACKS)
    order = [name.partition(".")[0] for name in vocabulary()]
    assert order == sorted(order, key=packs.index)


@pytest.mark.parametrize(
    ("names", "fact", "expected"),
    [
        (NVIDIA + RDNA, "lanes.width", 32),
        (CDNA, "lanes.width", 64),
        (("mps",), "lanes.width", 32),
        (TPU + NEURON + GAUDI + ("xpu", "cpu"), "lanes.width", None),
        (NVIDIA, "lanes.mask_bits", 32),
        (AMD, "lanes.mask_bits", 64),
        (NVIDIA, "isa.ptx", "native"),
        (AMD + TPU + NEURON + GAUDI + ("xpu", "mps", "cpu"), "isa.ptx", "none"),
        (NVIDIA + AMD, "isa.cuda_cxx", "native"),
        (TPU + NEURON + GAUDI + ("xpu", "mps", "cpu"), "isa.cuda_cxx", "none"),
        (NVIDIA + AMD, "device.cuda", "native"),
        (TPU + NEURON + GAUDI + ("xpu", "mps", "cpu"), "device.cuda", "none"),
        (EVERY, "device.hip_module", "none"),
        (("ampere",), "memory.shared_bytes", 166_912),
        (("ada", "blackwell-rtx"), "memory.shared_bytes", 101_376),
        (("hopper", "blackwell", "blackwell-ultra"), "memory.shared_bytes", 232_448),
        (("cdna2", "cdna3", *RDNA), "memory.shared_bytes", 65_536),
        (("cdna4",), "memory.shared_bytes", 163_840),
        (NVIDIA, "memory.shared_static_bytes", 49_152),
        (("hopper",), "isa.capability", [9, 0]),
        (("blackwell-ultra",), "isa.capability", [10, 3]),
        (("cdna3",), "isa.capability", [9, 4]),
        (("hopper",), "isa.wgmma", "variant"),
        (("blackwell", "blackwell-ultra"), "isa.tcgen05", "variant"),
        (("ampere", "ada", "blackwell", "blackwell-ultra", "blackwell-rtx", *AMD), "isa.wgmma", "none"),
        (("blackwell-rtx",), "isa.ptx.mma_kind_mxf4nvf4", "variant"),
        (("ampere", "ada", "hopper"), "isa.ptx.max3_f32", "none"),
        (("blackwell", "blackwell-ultra", "blackwell-rtx"), "isa.ptx.max3_f32", "native"),
        (("cdna3",), "dtype.fp8_e4m3fn", "emulated"),
        (("cdna3",), "dtype.fp8_e4m3fnuz", "native"),
        (GAUDI, "dtype.float64", "narrowed"),
        (TPU, "dtype.float64", "emulated"),
        (("mps", *NEURON), "dtype.float64", "none"),
        (("cpu",), "sync.host_read", "native"),
    ],
)
def test_figures_that_findings_rest_on(names: tuple[str, ...], fact: str, expected: object) -> None:
    assert {name: value(name, fact) for name in names} == dict.fromkeys(names, expected)


def test_ptx_instructions_are_listed_where_there_is_ptx() -> None:
    instructions = {name for name in vocabulary() if name.startswith("isa.ptx.")}
    assert len(instructions) > 40
    for name in EVERY:
        stated = {fact for fact in load(name).profile.facts if fact.startswith("isa.ptx.")}
        assert stated == (instructions if name in NVIDIA else set()), name


def test_only_builds_with_an_architecture_specific_pass_have_variant_facts() -> None:
    for name in EVERY:
        one = load(name)
        has_facts = any(fact.value == Level.VARIANT for fact in one.profile.facts.values())
        assert has_facts == any(build.variant for build, _ in one.passes()), name


def test_aliases_are_lower_case_and_lead_to_one_target() -> None:
    text = (Path(load("cpu").path).parent / "aliases.toml").read_text()
    listed = [alias for line in text.splitlines() if "=" in line for alias in re.findall(r'"([^"]+)"', line)]
    assert len(listed) == len(set(listed))
    assert all(alias == alias.lower() for alias in listed)
    assert not set(listed) & set(shipped())
    assert not set(listed) & {"nvidia", "amd", "intel", "google", "aws", "gpu", "tpu", "gaudi", "trainium"}
    assert set(aliases().values()) == set(shipped())
    assert load("MI300X").name == "cdna3"


def test_device_pass_knows_its_architecture() -> None:
    recent = Op(">=", (Name("__CUDA_ARCH__"), Literal(900)))
    assert {build.name: evaluate(recent, macros) for build, macros in load("hopper").passes()} == {
        "host": False,
        "sm_90": True,
        "sm_90a": True,
    }
    specific = Op("defined", (Name("__CUDA_ARCH_FEAT_SM90_ALL"),))
    assert [evaluate(specific, macros) for _, macros in load("hopper").passes()] == [False, False, True]


@pytest.mark.parametrize("name", NVIDIA)
def test_rocm_code_is_dead_on_nvidia(name: str) -> None:
    rocm = Op("or", (Op("defined", (Name("USE_ROCM"),)), Op("defined", (Name("__HIP_PLATFORM_AMD__"),))))
    assert {evaluate(rocm, macros) for _, macros in load(name).passes()} == {False}


@pytest.mark.parametrize("name", AMD)
def test_nvcc_code_is_dead_on_amd(name: str) -> None:
    for _, macros in load(name).passes():
        assert evaluate(Op("defined", (Name("__NVCC__"),)), macros) is False
        assert evaluate(Op("defined", (Name("USE_ROCM"),)), macros) is True
        # a build for ROCm may keep USE_CUDA, so nothing is known of it
        assert evaluate(Op("defined", (Name("USE_CUDA"),)), macros) is UNKNOWN


def test_python_code_learns_where_it_runs() -> None:
    assert load("cdna3").queries().lookup("torch.version.cuda") is None
    assert load("cdna3").queries().lookup("torch.cuda.is_available") is True
    assert load("hopper").queries().lookup("device.capability") == (9, 0)
    assert load("mps").queries().lookup("sys.platform") == "darwin"
    assert load("tpu-v6e").queries().lookup("device.type") == "xla"
    assert load("hopper").queries().lookup("torch.backends.cudnn.enabled") is UNKNOWN


@pytest.mark.parametrize("name", EVERY)
def test_a_target_answers_as_its_facts_say(name: str) -> None:
    one = load(name)
    queries = one.profile.queries
    assert queries["device.type"] == value(name, "device.type")
    assert queries["torch.cuda.is_available"] is (value(name, "device.cuda") == "native")
    assert (queries["torch.version.cuda"] != "none") is (value(name, "device.cuda_version") == "native")
    assert queries.get("warp_size") == value(name, "lanes.width")
    without = None if value(name, "device.cuda") == "native" else "none"
    assert queries.get("device.capability") == (value(name, "isa.capability") or without)
    assert {word.lstrip("~") for word in one.profile.platforms} <= PLATFORM_WORDS


@pytest.mark.parametrize(
    ("name", "platforms", "expected"),
    [
        ("IS_ROCM", {"rocm", "hip"}, True),
        ("isRocm", {"rocm"}, True),
        ("current_platform.is_rocm", {"rocm"}, True),
        ("USE_ROCM", {"cuda"}, False),
        ("is_cuda", {"rocm", "~cuda"}, UNKNOWN),
        ("is_not_rocm", {"rocm"}, UNKNOWN),
        ("DISABLE_HIP", {"hip"}, UNKNOWN),
        ("HIP_GRAPH_SUPPORT", {"hip"}, UNKNOWN),
        ("cuda_or_rocm", {"rocm"}, UNKNOWN),
        ("has_flash_attn", {"rocm"}, UNKNOWN),
        ("USE_NVIDIA_CUVS", {"rocm"}, False),
        ("WITH_OPTIX", {"cuda", "nvidia"}, UNKNOWN),
        ("NO_CUTLASS", {"rocm"}, UNKNOWN),
    ],
)
def test_names_made_of_a_platform(name: str, platforms: set[str], expected: object) -> None:
    assert guess_platform(name, frozenset(platforms)) is expected


PROFILE = """
name = "mine"
title = "My machine"
families = ["gpu"]
languages = ["cuda"]
words = { warp = "gang" }

[facts]
"lanes.width" = { value = 16, cite = "manual" }
"memory.managed" = { value = "slow", cite = "manual", note = "over PCIe", since = "2.0" }

[cites.manual]
title = "The manual"
url = "https://example.com/manual"
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(PROFILE)
    return path


def test_a_profile_of_ones_own_is_a_target(own: Path) -> None:
    one = load(str(own))
    assert isinstance(one, Target)
    assert one.state("lanes.width").text == "16 lanes per gang"
    assert one.state("memory.managed").text.startswith("slow ")
    assert one.state("isa.ptx").value is None


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('name = "mine"', "name = ", "line 2"),
        ('title = "My machine"\n', "", "title"),
        ('families = ["gpu"]', 'families = "gpu"', "families"),
        ('languages = ["cuda"]', 'languages = ["cuda"]\nwarps = 4', "warps"),
        ('"lanes.width" =', '"lanes.widht" =', "lanes.widht"),
        ("value = 16", 'value = "sixteen"', "lanes.width"),
        ('value = "slow"', 'value = "fast"', "memory.managed"),
        ('value = 16, cite = "manual"', 'value = 16, cite = "folklore"', "folklore"),
        ('value = 16, cite = "manual"', "value = 16, cite = []", "lanes.width"),
        ('value = 16, cite = "manual"', "value = 16", "cite"),
        ('url = "https://example.com/manual"\n', "", "url"),
    ],
)
def test_a_broken_profile_is_explained(own: Path, old: str, new: str, named: str) -> None:
    assert old in PROFILE
    own.write_text(PROFILE.replace(old, new))
    with pytest.raises(ProfileError) as caught:
        load(str(own))
    assert str(own) in str(caught.value)
    assert named in str(caught.value)


def test_a_missing_profile_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"nowhere\.toml"):
        load(str(tmp_path / "nowhere.toml"))


def test_an_unknown_target_gets_a_suggestion() -> None:
    with pytest.raises(ProfileError, match="Did you mean 'hopper'"):
        load("hoper")


def run(*arguments: str) -> str:
    result = CliRunner().invoke(target_command, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_list_shows_each_target_with_its_aliases() -> None:
    heading, *lines = run().splitlines()
    assert heading.split() == ["target", "title", "aliases"]
    assert [line.split()[0] for line in lines] == list(shipped())
    cdna3 = next(line for line in lines if line.startswith("cdna3 "))
    assert "AMD CDNA3 (gfx942)" in cdna3
    assert "gfx942, mi300a" in cdna3
    titles = {line.index(load(line.split()[0]).title) for line in lines}
    assert titles == {heading.index("title")}


def test_a_page_shows_value_source_and_reservations() -> None:
    page = run("mi300x")
    assert page.startswith("cdna3: AMD CDNA3 (gfx942)\n")
    fact = page[page.index("lanes.warp_size_constant") :].split("\n  lanes.")[0]
    assert "= none (no 'warpSize' as a constant expression)" in fact
    assert "https://github.com/ROCm/rocm-systems/" in fact
    assert "2026-11-29" in fact
    assert "since ROCm 7.0" in fact
    assert "note: " in fact
    assert "lanes.width = 64 lanes (64 lanes per wavefront)" in page
    assert page.index("\nlanes\n") < page.index("\nisa\n") < page.index("\nmemory\n")


def test_a_page_of_ones_own_profile(own: Path) -> None:
    page = run(str(own))
    assert "mine: My machine" in page
    assert "lanes.width = 16 lanes (16 lanes per gang)\n    The manual, https://example.com/manual\n" in page
    assert "since 2.0\n    note: over PCIe" in page


def test_the_difference_lists_what_differs_and_what_one_side_omits() -> None:
    lines = run("--diff", "cdna3", "cdna4").splitlines()
    assert lines[0].split() == ["fact", "cdna3", "cdna4"]
    rows = {line.split()[0]: line.split()[1:] for line in lines[1:] if line}
    assert rows["memory.shared_bytes"] == ["65536", "163840"]
    assert rows["dtype.fp8_e4m3fnuz"] == ["native", "none"]
    assert rows["memory.hipblas_workspace_mib"] == ["128", "-"]
    assert "lanes.width" not in rows


def test_equal_targets_do_not_differ() -> None:
    assert run("--diff", "cdna3", "gfx942") == "cdna3 and cdna3 state the same facts.\n"


def test_all_three_as_json(own: Path) -> None:
    listed = json.loads(run("--output-format", "json"))
    assert [one["name"] for one in listed] == list(shipped())
    page = json.loads(run(str(own), "--output-format", "json"))
    assert page["facts"]["lanes.width"] == {
        "value": 16,
        "unit": "lanes",
        "text": "16 lanes per gang",
        "cites": [{"title": "The manual", "url": "https://example.com/manual", "seen": ""}],
        "note": "",
        "since": "",
    }
    difference = json.loads(run("--diff", "hopper", "cdna3", "--output-format", "json"))
    assert {"name": "lanes.width", "left": 32, "right": 64} in difference["facts"]
    assert {"name": "isa.ptx.wgmma", "left": "variant", "right": None} in difference["facts"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["hoper"], "Did you mean 'hopper'"),
        (["./nowhere.toml"], "nowhere.toml"),
        (["--diff", "hopper", "cdna9"], "there is no target 'cdna9'"),
        (["hopper", "--diff", "hopper", "cdna3"], "not both"),
    ],
)
def test_mistakes_are_named_on_standard_error(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(target_command, arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not result.stdout


@pytest.mark.parametrize("name", EVERY)
def test_a_shipped_profile_stands_the_check_of_a_users_own(name: str) -> None:
    check(load(name).profile, name)


@pytest.mark.parametrize(
    ("macro", "target", "can_be"),
    [
        ("CUTE_ARCH_MMA_SM90A_ENABLED", "hopper", True),
        ("CUTE_ARCH_MMA_SM90A_ENABLED", "blackwell", False),
        ("CUTE_ARCH_TMA_SM90_ENABLED", "blackwell", True),
        ("CUTLASS_ARCH_MMA_SM100F_ENABLED", "blackwell-ultra", True),
        ("CUTLASS_ARCH_MMA_SM100A_ENABLED", "blackwell-rtx", False),
        ("CUTE_ARCH_TCGEN05_TMEM_ENABLED", "blackwell-rtx", False),
        ("CUTE_ARCH_TCGEN05_TMEM_ENABLED", "blackwell", True),
        ("CUTE_ARCH_MMA_SM90A_ENABLED", "cdna3", False),
    ],
)
def test_the_macros_of_cutlass_name_an_architecture(macro: str, target: str, can_be: bool) -> None:
    device = [environment for one, environment in load(target).passes() if one.name != "host"]
    assert any(environment.defined(macro) is not False for environment in device) is can_be
