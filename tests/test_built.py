"""Which platforms a C++ file is built for, as the files around it say: CMake lists, headers' users, twins for AMD."""

from pathlib import Path

import pytest
from harness import rules, scan

from portlint.judge import lives
from portlint.source.cxx.built import build_guards
from portlint.source.cxx.definers import is_defined_for
from portlint.source.cxx.twins import twin_guards
from portlint.source.cxx.users import all_users_of, users_of
from portlint.target import load

AMD, NVIDIA = load("cdna3"), load("hopper")


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("test", "amd"),
    [
        ('GPU_LANG STREQUAL "CUDA"', False),
        ("GPU_LANG STREQUAL CUDA", False),
        ('GPU_LANG STREQUAL "HIP"', True),
        ("NOT USE_ROCM", False),
        ("USE_ROCM OR WITH_ALL", True),
        ("NOT USE_HIP AND WITH_TESTS", False),
        ("NOT (USE_HIP OR USE_SYCL)", None),
        ("WITH_KERNELS", None),
    ],
)
def test_a_list_behind_a_test_of_the_platform(tmp_path: Path, test: str, amd: bool | None) -> None:
    write(tmp_path, {"CMakeLists.txt": f"if({test})\n  set(S a.cu)\nendif()\n", "a.cu": ""})
    guards = build_guards(str(tmp_path / "a.cu"))
    assert lives(guards, AMD, "cuda") is amd


def test_cuda_means_nvidia_in_a_build_that_knows_amd(tmp_path: Path) -> None:
    write(tmp_path, {"CMakeLists.txt": "if(BUILD_CUDA)\n set(S a.cu)\nelseif(BUILD_HIP)\n set(S b.cu)\nendif()\n"})
    assert lives(build_guards(str(tmp_path / "a.cu")), AMD, "cuda") is False
    assert lives(build_guards(str(tmp_path / "a.cu")), NVIDIA, "cuda") is True
    assert lives(build_guards(str(tmp_path / "b.cu")), AMD, "cuda") is True


def test_cuda_may_mean_hip_in_a_build_that_does_not(tmp_path: Path) -> None:
    write(tmp_path, {"CMakeLists.txt": "if(BUILD_CUDA)\n set(S a.cu)\nendif()\n"})
    assert lives(build_guards(str(tmp_path / "a.cu")), AMD, "cuda") is None


def test_a_file_in_two_lists_is_built_where_either_holds(tmp_path: Path) -> None:
    lists = 'if(L STREQUAL "CUDA")\n set(S a.cu)\nendif()\nif(L STREQUAL "HIP")\n set(S a.cu)\nendif()\n'
    write(tmp_path, {"CMakeLists.txt": lists, "a.cu": ""})
    guards = build_guards(str(tmp_path / "a.cu"))
    assert lives(guards, AMD, "cuda") is True
    assert lives(guards, NVIDIA, "cuda") is True


def test_a_header_goes_where_the_files_that_include_it_go(tmp_path: Path) -> None:
    lists = 'set(S b.cu)\nif(L STREQUAL "CUDA")\n list(APPEND S a.cu)\nendif()\n'
    files = {
        "CMakeLists.txt": lists,
        "a.cu": '#include "x/one.cuh"\n#include "x/two.cuh"\n',
        "b.cu": '#include "x/two.cuh"\n',
        "x/one.cuh": "",
        "x/two.cuh": "",
    }
    write(tmp_path, files)
    assert lives(build_guards(str(tmp_path / "x/one.cuh")), AMD, "cuda") is False
    assert build_guards(str(tmp_path / "x/two.cuh")) == ()


def test_a_file_that_no_list_names_says_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"CMakeLists.txt": "if(NOT USE_ROCM)\n set(S a.cu)\nendif()\n", "b.cu": ""})
    assert build_guards(str(tmp_path / "b.cu")) == ()


@pytest.mark.parametrize(
    ("file", "twin"),
    [
        ("scan.cu", "scan.hip"),
        ("scan.cu", "scan_hip.cpp"),
        ("scan_cuda.cu", "scan_hip.cu"),
        ("cuda/scan.cu", "hip/scan.cu"),
        ("cuda/detail/scan.cuh", "rocm/detail/scan.h"),
        ("nvidia_detail/scan.h", "amd_detail/scan.h"),
    ],
)
def test_a_twin_takes_the_place_of_a_file(tmp_path: Path, file: str, twin: str) -> None:
    write(tmp_path, {file: "", twin: ""})
    guards = twin_guards(str(tmp_path / file))
    assert lives(guards, AMD, "cuda") is False
    assert lives(guards, NVIDIA, "cuda") is True
    assert twin_guards(str(tmp_path / twin)) == ()


@pytest.mark.parametrize(
    ("file", "beside", "rtx"),
    [
        ("gemm_sm90.cu", "gemm_sm120.cu", False),
        ("mma_sm100_umma.hpp", "mma_sm120.hpp", False),
        ("sm90/gemm.cu", "sm120/gemm.cu", False),
        ("gemm_sm90.cu", "gemm_sm100.cu", True),
        ("gemm_sm80.cu", "gemm_sm120.cu", True),
        ("gemm.cu", "gemm_sm120.cu", True),
    ],
)
def test_a_generation_with_files_of_its_own_reads_those(tmp_path: Path, file: str, beside: str, rtx: bool) -> None:
    write(tmp_path, {file: "", beside: ""})
    assert lives(twin_guards(str(tmp_path / file)), load("blackwell-rtx"), "cuda") is rtx
    assert lives(twin_guards(str(tmp_path / file)), AMD, "cuda") is True


@pytest.mark.parametrize("others", [["scan.cpp"], ["scan_test.cu"], ["hip/other.cu"], ["cuda.hip"]])
def test_other_neighbours_are_no_twins(tmp_path: Path, others: list[str]) -> None:
    write(tmp_path, dict.fromkeys(["scan.cu", *others], ""))
    assert twin_guards(str(tmp_path / "scan.cu")) == ()


def test_a_folder_of_another_platform_is_built_there(tmp_path: Path) -> None:
    write(tmp_path, {"setup.py": "", "csrc/xpu/includes/scan.h": "", "csrc/includes/scan.h": ""})
    assert lives(twin_guards(str(tmp_path / "csrc/xpu/includes/scan.h")), AMD, "cuda") is False
    assert twin_guards(str(tmp_path / "csrc/includes/scan.h")) == ()


def test_setup_py_lists_sources_behind_tests_too(tmp_path: Path) -> None:
    setup = """\
from torch.utils.cpp_extension import IS_HIP_EXTENSION, CUDAExtension
IS_ROCM = IS_HIP_EXTENSION
extensions = [CUDAExtension("ops.common", ["csrc/common.cu"])]
if not IS_ROCM:
    extensions.append(CUDAExtension("ops.fast", ["csrc/fast.cu"]))
"""
    write(tmp_path, {"setup.py": setup, "csrc/common.cu": "", "csrc/fast.cu": ""})
    assert build_guards(str(tmp_path / "csrc/common.cu")) == ()
    assert lives(build_guards(str(tmp_path / "csrc/fast.cu")), AMD, "cuda") is False
    assert lives(build_guards(str(tmp_path / "csrc/fast.cu")), NVIDIA, "cuda") is not False


@pytest.mark.parametrize("text", ["if(", "set(a.cu", "\x00", "(" * 5000])
def test_a_broken_build_says_nothing(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"CMakeLists.txt": text, "setup.py": text, "a.cu": ""})
    assert build_guards(str(tmp_path / "a.cu")) == ()


@pytest.mark.parametrize(
    ("test", "built_for"),
    [
        ("CUTLASS_ARCHS MATCHES 90a", {"hopper"}),
        ('NOT MSVC AND NVCC_ARCHS MATCHES "100a|100f"', {"blackwell"}),
        ("NVCC_ARCHS MATCHES 90", {"hopper", "blackwell", "blackwell-rtx"}),
        ('"9.0a" IN_LIST TORCH_CUDA_ARCH_LIST', {"hopper"}),
        ("NVCC_ARCHS MATCHES .*", {"hopper", "blackwell", "blackwell-rtx"}),
    ],
)
def test_a_list_behind_a_test_of_the_architectures(tmp_path: Path, test: str, built_for: set[str]) -> None:
    write(tmp_path, {"CMakeLists.txt": f"if({test})\n  set(S a.cu)\nendif()\n", "a.cu": ""})
    guards = build_guards(str(tmp_path / "a.cu"))
    targets = ("hopper", "blackwell", "blackwell-rtx")
    assert {one for one in targets if lives(guards, load(one), "cuda") is not False} == built_for
    assert lives(guards, AMD, "cuda") is not False


def test_a_list_for_the_architectures_that_are_left_of_another(tmp_path: Path) -> None:
    lists = """
        keep_archs(SM_ARCHS "9.0a;" "${ARCHS}")
        if(VERSION VERSION_GREATER 12 AND SM_ARCHS)
          set(S a.cu)
        endif()
        if(VERSION VERSION_GREATER 13)
          keep_archs(SM_ARCHS "10.0f" "${ARCHS}")
        else()
          keep_archs(SM_ARCHS "10.0a" "${ARCHS}")
        endif()
        if(SM_ARCHS)
          set(S b.cu)
        endif()
    """
    write(tmp_path, {"CMakeLists.txt": lists})
    built = {
        (name, target)
        for name in ("a.cu", "b.cu")
        for target in ("hopper", "blackwell", "blackwell-ultra", "blackwell-rtx")
        if lives(build_guards(str(tmp_path / name)), load(target), "cuda") is not False
    }
    assert built == {("a.cu", "hopper"), ("b.cu", "blackwell"), ("b.cu", "blackwell-ultra")}


def test_a_header_for_one_generation_in_a_project_with_headers_for_another(tmp_path: Path) -> None:
    names = (
        "pyproject.toml",
        "lib/a/sm90_mma.hpp",
        "lib/b/sm120_mma_scaled.hpp",
        "lib/b/sm100_reduce.hpp",
        "src/run_sm90.cu",
    )
    write(tmp_path, dict.fromkeys(names, ""))
    guards = {name: twin_guards(str(tmp_path / name)) for name in names[1:]}
    assert lives(guards["lib/a/sm90_mma.hpp"], load("hopper"), "cuda") is True
    assert lives(guards["lib/a/sm90_mma.hpp"], load("blackwell-rtx"), "cuda") is False
    assert (
        lives(guards["lib/a/sm90_mma.hpp"], load("blackwell"), "cuda") is True
    )  # what is for that part does another job
    assert lives(guards["src/run_sm90.cu"], load("blackwell-rtx"), "cuda") is True


MODULE = """
def module():
    flags = flags_for(supported_major_versions=[10, 11])
    return compile("scan", sources=[CSRC / "scan.cu"], flags=flags)


def other():
    return compile("sort", sources=["csrc/sort.cu", "csrc/fill.cu"], flags=sm90a_nvcc_flags)


TABLE = {"exact": sm100a_nvcc_flags}


def from_a_table(target):
    return compile("find", sources=["csrc/find.cu"], flags=TABLE[target])


def plain():
    return compile("fill", sources=["csrc/fill.cu"], flags=["-O3"])
"""


@pytest.mark.parametrize(
    ("source", "built_for"),
    [
        ("scan.cu", {"blackwell", "blackwell-ultra"}),
        ("scan_impl.cuh", {"blackwell", "blackwell-ultra"}),
        ("sort.cu", {"hopper"}),
        ("find.cu", {"blackwell"}),
        ("fill.cu", {"hopper", "blackwell", "blackwell-ultra", "blackwell-rtx"}),
        ("else.cu", {"hopper", "blackwell", "blackwell-ultra", "blackwell-rtx"}),
    ],
)
def test_sources_that_python_compiles_for_some_architectures(tmp_path: Path, source: str, built_for: set[str]) -> None:
    files = {f"csrc/{name}": "" for name in ("sort.cu", "fill.cu", "else.cu", "scan_impl.cuh")}
    included = {"csrc/scan.cu": '#include "scan_impl.cuh"\n'}
    write(tmp_path, {"pyproject.toml": "", "package/jit.py": MODULE, **files, **included})
    guards = build_guards(str(tmp_path / "csrc" / source))
    targets = ("hopper", "blackwell", "blackwell-ultra", "blackwell-rtx")
    assert {one for one in targets if lives(guards, load(one), "cuda") is not False} == built_for
    assert lives(guards, AMD, "cuda") is not False


def built_on(path: Path, *targets: str) -> set[str]:
    return {one for one in targets if lives(build_guards(str(path)), load(one), "cuda") is not False}


def test_the_conditions_around_an_include_are_those_of_the_header(tmp_path: Path) -> None:
    utilities = '#ifndef USE_ROCM\n#include "mainloop.cuh"\n#endif\n'
    write(tmp_path, {"utilities.h": utilities, "mainloop.cuh": "", "a.cu": '#include "utilities.h"\n'})
    assert built_on(tmp_path / "mainloop.cuh", "hopper", "cdna3") == {"hopper"}
    assert built_on(tmp_path / "utilities.h", "hopper", "cdna3") == {"hopper", "cdna3"}


def test_an_included_name_means_the_nearest_header(tmp_path: Path) -> None:
    lists = 'if(L STREQUAL "CUDA")\n set(S a.cu)\nendif()\n'
    files = {"one/scan.h": "", "two/scan.h": "", "one/a.cu": '#include "scan.h"\n'}
    write(
        tmp_path, {"CMakeLists.txt": "", "one/CMakeLists.txt": lists, "two/part/b.cu": '#include "scan.h"\n', **files}
    )
    assert built_on(tmp_path / "one/scan.h", "hopper", "cdna3") == {"hopper"}
    assert built_on(tmp_path / "two/scan.h", "hopper", "cdna3") == {"hopper", "cdna3"}


@pytest.mark.parametrize(
    "lists",
    [
        "if(NOT GPU STREQUAL VARIANT_CUDA)\n message(FATAL_ERROR no)\nendif()\nadd_subdirectory(part)\n",
        "if(GPU STREQUAL VARIANT_CUDA)\n add_subdirectory(part)\nendif()\n",
        "if(USE_ROCM)\n message(FATAL_ERROR no)\nendif()\nif(WITH_PART)\n add_subdirectory(part)\nendif()\n",
    ],
)
def test_a_folder_that_the_build_adds_for_one_platform(tmp_path: Path, lists: str) -> None:
    write(tmp_path, {"CMakeLists.txt": lists, "part/CMakeLists.txt": "set(S src/a.cu)\n", "part/src/a.cu": ""})
    assert built_on(tmp_path / "part/src/a.cu", "hopper", "cdna3") == {"hopper"}


@pytest.mark.parametrize(
    ("lists", "built_for"),
    [
        ("gpu_library(GPU_SRCS a.cu CUDA_SPECIFIC_SRCS b.cu)\n", {"hopper"}),
        ("file(GLOB cuda_part b*.cu)\ngpu_library(CUDA_SPECIFIC_SRCS\n ${cuda_part})\n", {"hopper"}),
        ("set(hip_part b.cu)\ngpu_library(HIP_SPECIFIC_SRCS ${hip_part})\n", {"cdna3"}),
        ("gpu_library(CUDA_SRCS b.cu)\n", {"hopper", "cdna3"}),
    ],
)
def test_a_list_that_is_said_to_be_for_one_platform(tmp_path: Path, lists: str, built_for: set[str]) -> None:
    write(tmp_path, {"CMakeLists.txt": lists, "a.cu": "", "b.cu": ""})
    assert built_on(tmp_path / "b.cu", "hopper", "cdna3") == built_for


def test_whoever_asks_for_the_users_of_a_header_finds_them_all(tmp_path: Path) -> None:
    write(tmp_path, {"CMakeLists.txt": "", "a.cuh": "", "b.cu": '#include "a.cuh"\n'})
    header, user = str(tmp_path / "a.cuh"), str(tmp_path / "b.cu")
    assert all_users_of(header) == [user]
    assert users_of(header) == [user]


CALLED = '__device__ inline void step(float* x) { asm volatile("wgmma.fence.sync.aligned;"); }\n'
GUARDED = '#include "step.cuh"\n#if __CUDA_ARCH__ == 900\n__device__ void run(float* x) { step(x); }\n#endif\n'


def findings(tmp_path: Path, files: dict[str, str]) -> list[str]:
    """Where the assembly of `step.cuh` is reported: Blackwell has no wgmma."""
    write(tmp_path, {"CMakeLists.txt": "", "step.cuh": CALLED, **files})
    found = scan(tmp_path / "step.cuh", [rules()["isa/inline-ptx"]], ("blackwell",))
    return [one.target for one in found]


def test_a_function_of_a_header_is_live_where_one_of_its_calls_is(tmp_path: Path) -> None:
    assert findings(tmp_path / "none", {}) == ["blackwell"]
    assert findings(tmp_path / "guarded", {"a.cu": GUARDED}) == []
    assert findings(tmp_path / "open", {"a.cu": GUARDED, "b.cu": GUARDED.replace("== 900", ">= 900")}) == ["blackwell"]
    passed_on = '#include "step.cuh"\nvoid set() { use(step); }\n'
    assert findings(tmp_path / "passed", {"a.cu": GUARDED, "b.cu": passed_on}) == ["blackwell"]
    instantiated = '#include "step.cuh"\ntemplate __device__ void step<float>(float*);\n'
    assert findings(tmp_path / "made", {"a.cu": GUARDED, "b.cu": instantiated}) == ["blackwell"]


def test_a_function_that_very_many_files_may_call_is_live(tmp_path: Path) -> None:
    assert findings(tmp_path, {f"{number}.cu": GUARDED for number in range(40)}) == ["blackwell"]


def test_outside_a_project_only_the_folder_is_read(tmp_path: Path) -> None:
    write(tmp_path, {"a.cuh": "", "b.cu": '#include "a.cuh"\n', "below/c.cu": '#include "../a.cuh"\n'})
    assert users_of(str(tmp_path / "a.cuh")) == [str(tmp_path / "b.cu")]


def test_links_are_not_read(tmp_path: Path) -> None:
    write(tmp_path, {"tree/CMakeLists.txt": "", "tree/a.cuh": "", "else/b.cu": '#include "a.cuh"\n'})
    (tmp_path / "tree" / "b.cu").symlink_to(tmp_path / "else" / "b.cu")
    assert users_of(str(tmp_path / "tree" / "a.cuh")) == []


class TestDefinedByTheProject:
    """A function that the project's own header defines, behind more headers than are read with their conditions."""

    BODY = "MACRO_FOR_DEVICE\nvoid\narrive()\n{\n}\nstruct Barrier final : Base {};\n"

    def chain(self, tmp_path: Path, length: int = 9) -> Path:
        above = {f"lib/h{i}.hpp": f'#include "lib/h{i + 1}.hpp"\n' for i in range(length)}
        write(tmp_path, {"CMakeLists.txt": "", **above, f"lib/h{length}.hpp": self.BODY})
        return tmp_path

    @pytest.mark.parametrize("name", ["arrive", "Barrier"])
    def test_however_far_away(self, tmp_path: Path, name: str) -> None:
        write(self.chain(tmp_path), {"a.cu": '#include "lib/h0.hpp"\n', "b.cu": "#include <lib/h0.hpp>\n"})
        assert all(is_defined_for(str(tmp_path / file), name) for file in ("a.cu", "b.cu", "lib/h9.hpp"))

    def test_a_file_that_does_not_include_it_means_another(self, tmp_path: Path) -> None:
        write(self.chain(tmp_path), {"a.cu": "#include <cute/arch.hpp>\n"})
        assert not is_defined_for(str(tmp_path / "a.cu"), "arrive")

    def test_a_call_a_declaration_and_a_comment_define_nothing(self, tmp_path: Path) -> None:
        mentions = "// arrive() {\nvoid arrive();\ninline void f() { if (arrive()) { leave(); } }\nstruct Barrier;\n"
        write(tmp_path, {"CMakeLists.txt": "", "a.h": mentions, "a.cu": '#include "a.h"\n'})
        assert not any(is_defined_for(str(tmp_path / "a.cu"), name) for name in ("arrive", "Barrier"))

    @pytest.mark.parametrize(("second", "defined"), [('#include "lib/h0.hpp"\n', True), ("", False)])
    def test_a_header_leans_on_all_its_users(self, tmp_path: Path, second: str, defined: bool) -> None:
        users = {"a.cu": '#include "lib/h0.hpp"\n#include "x.h"\n', "b.cu": second + '#include "x.h"\n'}
        write(self.chain(tmp_path), {"x.h": "", **users})
        assert is_defined_for(str(tmp_path / "x.h"), "arrive") is defined

    def test_a_submodule_is_a_project_of_its_own(self, tmp_path: Path) -> None:
        write(tmp_path, {"setup.py": "", "a.cu": '#include "deps/lib/a.h"\n', "deps/lib/.git": "gitdir: ../../.git"})
        write(tmp_path, {"deps/lib/a.h": self.BODY, "deps/lib/b.cu": '#include "a.h"\n'})
        assert not is_defined_for(str(tmp_path / "a.cu"), "arrive")
        assert is_defined_for(str(tmp_path / "deps/lib/b.cu"), "arrive")

    def test_outside_a_project_nothing_is_read(self, tmp_path: Path) -> None:
        write(tmp_path, {"a.h": self.BODY, "a.cu": '#include "a.h"\n'})
        assert not is_defined_for(str(tmp_path / "a.cu"), "arrive")


NVIDIA_PARTS = ("hopper", "blackwell", "blackwell-rtx")
BY_BACKEND = """
SOURCES = ["csrc/bind.cu"]


def _flags():
    return [*sm90a_nvcc_flags, "-DWITH_SCALES"]


def module(backend):
    flags = []
    if backend == "old":
        sources = ["csrc/old.cu", "inst/old_kernels.jinja"]
    elif backend == "new":
        sources = ["csrc/new.cu", "inst/new_kernels.jinja"]
    else:
        raise ValueError(backend)
    if backend == "new":
        flags += sm90a_nvcc_flags
    return compile("module_sm90", sources, flags)


def bound():
    return compile("bound", SOURCES, _flags())


def for_older():
    return compile("older", ["csrc/older.cu", "csrc/both.cu"], sm89_nvcc_flags)


def for_either(new):
    if new:
        flags = sm90a_nvcc_flags
    else:
        flags = sm89_nvcc_flags
    return compile("either", ["csrc/either.cu", "csrc/both.cu"], flags)
"""
FLAGS = 'sm89_nvcc_flags = ["-gencode=arch=compute_89,code=sm_89"]\n'


@pytest.mark.parametrize(
    ("source", "built_for"),
    [
        ("csrc/old.cu", set(NVIDIA_PARTS)),
        ("csrc/new.cu", {"hopper"}),
        ("csrc/new.cuh", {"hopper"}),
        ("csrc/old.cuh", set(NVIDIA_PARTS)),
        ("csrc/bind.cu", {"hopper"}),
        ("csrc/older.cu", set()),
        ("csrc/either.cu", {"hopper"}),
        ("csrc/both.cu", {"hopper"}),
        ("other/bind.cu", set(NVIDIA_PARTS)),
    ],
)
def test_python_compiles_what_stands_in_a_branch_with_the_flags_of_that_branch(
    tmp_path: Path, source: str, built_for: set[str]
) -> None:
    files = {
        "pyproject.toml": "",
        "package/modules.py": BY_BACKEND,
        "package/core.py": FLAGS,
        "inst/old_kernels.jinja": '#include "../csrc/old.cuh"\n',
        "inst/new_kernels.jinja": '#include "../csrc/new.cuh"\n',
    }
    write(tmp_path, {**files, source: ""})
    assert built_on(tmp_path / source, *NVIDIA_PARTS) == built_for


def test_a_header_that_python_lists_goes_where_its_users_go(tmp_path: Path) -> None:
    script = 'HEADERS = ["csrc/mma.cuh", "csrc/gemm.cuh"]\n__all__ = ["make_sm90_module"]\n\n\n' + MODULE
    uses = {"csrc/sort.cu": '#include "mma.cuh"\n', "csrc/mma.cuh": "", "csrc/gemm.cuh": ""}
    write(tmp_path, {"pyproject.toml": "", "package/jit.py": script, **uses})
    assert built_on(tmp_path / "csrc/mma.cuh", *NVIDIA_PARTS) == {"hopper"}
    assert built_on(tmp_path / "csrc/gemm.cuh", *NVIDIA_PARTS) == set(NVIDIA_PARTS)


COMPILER = r"""
inline std::string kernel_text(int width) {
  return R"(
#include <kernels/gemm.cuh>
)" + std::to_string(width);
}
inline Program compile(std::string text) { return call_compiler(text, {"-std=c++17", ARCHITECTURE}); }
"""


@pytest.mark.parametrize(
    ("architecture", "built_for"),
    [
        ('"--gpu-architecture=sm_90a"', {"hopper"}),
        ('"-arch", "compute_90"', set(NVIDIA_PARTS)),
        ("of_this_device()", set(NVIDIA_PARTS)),
        ('"no sm_90a here"', set(NVIDIA_PARTS)),
    ],
)
def test_a_header_of_a_text_that_is_compiled_at_run_time(
    tmp_path: Path, architecture: str, built_for: set[str]
) -> None:
    compiler = COMPILER.replace("ARCHITECTURE", architecture)
    write(tmp_path, {"pyproject.toml": "", "kernels/gemm.cuh": "", "compiler.cuh": compiler})
    write(tmp_path, {"a.cu": '#include "compiler.cuh"\n'})
    assert built_on(tmp_path / "kernels/gemm.cuh", *NVIDIA_PARTS) == built_for
    assert built_on(tmp_path / "compiler.cuh", *NVIDIA_PARTS) == set(NVIDIA_PARTS)


@pytest.mark.parametrize(
    ("others", "built_for"),
    [
        ({}, {"hopper"}),
        ({"package/plain.py": 'FLAGS = ["-DWITH_SCALES"]\n'}, set(NVIDIA_PARTS)),
        ({"csrc/config.h": "#define WITH_SCALES 1\n"}, set(NVIDIA_PARTS)),
        ({"CMakeLists.txt": "add_definitions(-DWITH_SCALES)\n"}, set(NVIDIA_PARTS)),
    ],
)
def test_a_macro_that_python_defines_for_some_architectures(
    tmp_path: Path, others: dict[str, str], built_for: set[str]
) -> None:
    files = {
        "pyproject.toml": "",
        "package/modules.py": BY_BACKEND,
        "csrc/a.cu": '#ifdef WITH_SCALES\n#include "scales.cuh"\n#else\n#include "plain.cuh"\n#endif\n',
        "csrc/scales.cuh": "",
        "csrc/plain.cuh": "",
    }
    write(tmp_path, {**files, **others})
    assert built_on(tmp_path / "csrc/scales.cuh", *NVIDIA_PARTS) == built_for
    assert built_on(tmp_path / "csrc/plain.cuh", *NVIDIA_PARTS) == set(NVIDIA_PARTS)


CONTEXT = """
def spelled(major, minor):
    if major == 9:
        return f"{minor}a"
    elif major >= 12:
        if TOOLKIT >= 12.9:
            return "0f" if minor == 0 else str(minor) + "a"
        else:
            raise RuntimeError
    return str(minor)


def flags(archs):
    return [f"-gencode=arch=compute_{major}{minor},code=sm_{major}{minor}" for major, minor in archs]
"""
FP4 = '#if __CUDA_ARCH__ >= 1000\n__global__ void k() { asm("cvt.rn.satfinite.e2m1x2.f32 %0, %1, %2;"); }\n#endif\n'


@pytest.mark.parametrize(
    ("others", "found"),
    [
        ({"package/context.py": CONTEXT}, []),
        ({}, ["blackwell-rtx"]),
        ({"package/context.py": CONTEXT.replace("major >= 12", "major == 10")}, ["blackwell-rtx"]),
        ({"package/context.py": CONTEXT.replace("raise RuntimeError", "pass")}, ["blackwell-rtx"]),
        ({"package/context.py": CONTEXT, "package/b.py": 'X = f"arch=compute_{cap}"\n'}, ["blackwell-rtx"]),
        ({"package/context.py": CONTEXT, "tests/b.py": 'X = f"arch=compute_{cap}"\n'}, []),
        (
            {"package/context.py": CONTEXT, "package/b.py": 'X = "-gencode=arch=compute_120,code=sm_120"\n'},
            ["blackwell-rtx"],
        ),
        ({"package/context.py": CONTEXT, "CMakeLists.txt": "add_library(x csrc/fp4.cu)\n"}, ["blackwell-rtx"]),
    ],
)
def test_a_project_that_always_builds_for_the_variant(tmp_path: Path, others: dict[str, str], found: list[str]) -> None:
    write(tmp_path, {"pyproject.toml": "", "csrc/fp4.cu": FP4, **others})
    reported = scan(tmp_path / "csrc/fp4.cu", [rules()["isa/inline-ptx"]], ("blackwell-rtx",))
    assert [one.target for one in reported] == found


def test_what_no_variant_has_is_reported_of_such_a_project(tmp_path: Path) -> None:
    kernel = '__global__ void k() { asm volatile("wgmma.fence.sync.aligned;"); }\n'
    write(tmp_path, {"pyproject.toml": "", "package/context.py": CONTEXT, "csrc/a.cu": kernel})
    reported = scan(tmp_path / "csrc/a.cu", [rules()["isa/inline-ptx"]], ("blackwell-rtx",))
    assert [one.target for one in reported] == ["blackwell-rtx"]


SETUP = """
flags = ["-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_90a,code=sm_90a"]
CUDAExtension("kernels", ["csrc/listed.cu", *glob("csrc/made/*.cu")], extra_compile_args=flags)
"""


@pytest.mark.parametrize("source", ["csrc/listed.cu", "csrc/made/one.cu", "csrc/made/one_of_all.cu", "csrc/mma.h"])
@pytest.mark.parametrize(
    ("setup", "built_for"),
    [
        (SETUP, {"hopper"}),
        (SETUP.replace("90a", "90"), set(NVIDIA_PARTS)),
        (SETUP + 'os.environ.get("TORCH_CUDA_ARCH_LIST")\n', set(NVIDIA_PARTS)),
        (SETUP + 'flags.append(f"arch=compute_{own},code=sm_{own}")\n', set(NVIDIA_PARTS)),
    ],
)
def test_a_setup_py_that_builds_for_variants(tmp_path: Path, source: str, setup: str, built_for: set[str]) -> None:
    files = {
        "csrc/listed.cu": '#include "mma.h"\n',
        "csrc/made/one.cu": "",
        "csrc/made/one_of_all.cu": "",
        "csrc/mma.h": "",
    }
    write(tmp_path, {"setup.py": setup, **files})
    assert built_on(tmp_path / source, *NVIDIA_PARTS) == built_for
