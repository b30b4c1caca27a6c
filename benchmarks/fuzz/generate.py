"""Texts for the fuzzers: programs from small grammars, nesting, repetition, and mutations of what there is.

Mutation of real files seldom leads deep: parsers and rules fail on structure that is nested or repeated a thousand
times. So most of what is made here is. Every choice is taken from a `random.Random`, be it seeded or one that
hypothesis controls and can shrink.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random

from portlint.rules import discover

Grammar = Mapping[str, Sequence[str]]
"""symbol -> texts, in which `<symbol>` stands for one of its texts; the last ones of a symbol end the recursion"""

MOST_BYTES = 60_000
DEPTHS = (1, 2, 3, 5, 10, 30, 60, 90, 99, 150, 190, 250, 500, 900, 1_100, 3_000, 10_000)
COUNTS = (2, 3, 10, 100, 1_000, 5_000, 20_000)

_SYMBOL = re.compile(r"<(\w+)>")
_TOKEN = re.compile(rb"\w+|\s+|[^\w\s]")

_PYTHON: Grammar = {
    "program": ("<imports>\n<statements>", "<statements>\n<imports>", "<statements>"),
    "imports": (
        "import torch\nimport torch.nn.functional as F\nimport triton\nimport triton.language as tl",
        "import jax\nimport jax.numpy as jnp\nfrom jax.experimental import pallas as pl\nfrom jax import lax",
        "import torch, os, functools\nfrom torch import *\nfrom .device import device as torch",
        "import neuronxcc.nki as nki\nimport neuronxcc.nki.language as nl\nimport torch_xla.core.xla_model as xm",
    ),
    "statements": ("<statement>\n<statements>", "<statement>\n<statement>\n<statements>", "<statement>", "<statement>"),
    "statement": (
        "if <condition>:\n    <statements>\nelse:\n    <statements>",
        "if <condition>:\n    <statements>\nelif <condition>:\n    <statements>",
        "for <name> in <value>:\n    <statements>",
        "while <condition>:\n    <statements>",
        "with <value> as <name>:\n    <statements>",
        "try:\n    <statements>\nexcept <name>:\n    <statements>\nfinally:\n    <statements>",
        "<decorator>\ndef <name>(<name>, <name>=<value>, *args: <value>, BLOCK: tl.constexpr = 64):\n    <statements>",
        "async def <name>(self):\n    <statements>\n    return <value>",
        "class <name>(<value>):\n    <name> = <value>\n    <statements>",
        "match <value>:\n    case <name>:\n        <statements>\n    case _:\n        <statements>",
        "<name> = <value>", "<name>.<name> = <value>", "<name>[<value>] += <value>", "<name>: <value> = <value>",
        "assert <condition>, <value>", "return <value>", "raise <value>", "yield <value>", "del <name>", "<value>",
        "global <name>", "from <name> import <name> as <name>", "import <name>.<name> as <name>", "pass",
    ),
    "decorator": (
        "@triton.jit", "@torch.compile", "@jax.jit", "@functools.partial(jax.jit, static_argnums=(0,))", "@<value>",
        "@triton.autotune(configs=[triton.Config({'BLOCK': <number>}, num_warps=<number>)], key=['<name>'])",
        "@nki.jit", "@numba.cuda.jit", "@pytest.mark.skipif(<condition>, reason=<value>)",
    ),
    "condition": (
        "<condition> and <condition>", "<condition> or not <condition>", "not (<condition>)", "<value> == <value>",
        "torch.cuda.is_available()", "torch.version.hip is not None", "<value> in (<value>, <value>)", "<name>",
        "torch.cuda.get_device_capability() >= (<number>, 0)", "<name>.device.type == 'cuda'", "is_rocm()",
        "(<name> := <value>) is None", "jax.default_backend() == 'tpu'", "os.environ.get('X') != <value>", "True",
    ),
    "value": (
        "<rule_name>(<value>, <value>)", "<rule_name>(<value>, <name>=<value>)", "<rule_name>", "<name>(<value>)",
        "<value>.<attribute>(<value>)", "<value>.<attribute>", "(<value> <operator> <value>)", "[<value>, *<value>]",
        "{<value>: <value>, **<value>}", "[<value> for <name> in <value> if <condition>]", "lambda <name>: <value>",
        "<value> if <condition> else <value>", "f'{<name>} {<number>:{<name>}}'", "await <value>", "-<value>",
        "<name>[<value>:<value>, ...]", "*<value>", "<string>", "<number>", "<name>", "<name>",
    ),
    "attribute": ("to", "cuda", "item", "half", "shape", "device", "size", "is_cuda", "<rule_attribute>", "numpy"),
    "operator": ("+", "-", "*", "//", "%", "<<", "&", "|", "**", "@", "<", ">=", "==", "and", "or"),
    "string": (
        "'cuda'", "'cuda:<number>'", "\"nccl\"", "'''__global__ void k(float* a) { __shfl_sync(~0u, a[0], 31); }'''",
        "r'sm_<number>'", "b'\\xff'", "'\\N{BULLET}'", "''", "'tf32'", "'<rule_name>'",
    ),
    "number": ("0", "1", "2", "8", "9", "16", "32", "31", "64", "80", "128", "256", "1024", "48 * 1024", "1e-8", "0xff",
               "98304", "2**63", "10**400", "1_0", "1j"),
    "name": ("x", "y", "self", "device", "dtype", "torch", "tl", "model", "args", "warpSize", "num_warps", "é"),
}  # fmt: skip

_CXX: Grammar = {
    "program": ("<include>\n<items>", "<items>", "<items>\n<include>"),
    "include": ("#include <cuda_runtime.h>", "#include <hip/hip_runtime.h>", '#include "flashnorm.h"', "#pragma once"),
    "items": ("<item>\n<items>", "<item>\n<item>\n<items>", "<item>", "<item>"),
    "item": (
        "#if <macro>\n<items>\n#elif <macro>\n<items>\n#else\n<items>\n#endif", "#ifdef <word>\n<items>\n#endif",
        "#ifndef <word>\n<items>\n#else\n<items>\n#endif", "#define <word> <number>", "#undef <word>",
        "#define <word>(x) \\\n  <expression>; \\\n  <expression>", "#include <<word>.h>",
        "__global__ void <word>(<type> <word>, <type> <word>) {\n<statements>\n}", "constexpr int <word> = <number>;",
        "template <typename T, int N = <number>> __device__ T <word>(T <word>) {\n<statements>\n}",
        "namespace <word> {\n<items>\n}", "struct <word> {\n<type> <word>;\n<items>\n};", "enum { <word> = <number> };",
        "__shared__ <type> <word>[<number>];", "static <type> <word>(<type> <word>) {\n<statements>\n}",
        "<word>(<expression>, <type>)", "using <word> = <type>;", "extern \"C\" {\n<items>\n}",
        "template <> struct <word><<number>> : <word><<number>> {};", "<type> <word> = <expression>;",
    ),
    "statements": ("<statement>\n<statements>", "<statement>\n<statement>\n<statements>", "<statement>", "<statement>"),
    "statement": (
        "if (<expression>) {\n<statements>\n} else {\n<statements>\n}", "#if <macro>\n<statements>\n#endif",
        "for (int <word> = <number>; <word> < <expression>; <word> <assignment> <number>) {\n<statements>\n}",
        "while (<expression>) <statement>", "switch (<expression>) { case <number>: <statements> default: break; }",
        "do { <statements> } while (<expression>);", "<word><<<<expression>, <expression>, <number>>>>(<expression>);",
        'asm volatile("<instruction>" : "=r"(<word>) : "r"(<expression>) : "memory");', "#pragma unroll <number>",
        "__shared__ <type> <word>[<number>][<number>];", "<type> <word> = <expression>;", "<expression>;", ";",
        "<word> <assignment> <expression>;", "return <expression>;", "if constexpr (<expression>) <statement>",
        "auto <word> = [=] __device__ (int <word>) { <statements> };", "goto <word>; <word>:",
    ),
    "macro": (
        "<macro> && <macro>", "!(<macro>) || <macro>", "defined(<word>)", "__CUDA_ARCH__ >= <number>", "<word>",
        "defined(__HIP_PLATFORM_AMD__)", "!defined(USE_ROCM)", "<word> ? <macro> : <number>", "0", "1",
        "CUDA_VERSION / 1000 == <number>", "defined __gfx90a__", "__has_include(<hip/hip_fp8.h>)", "1 / 0", "1 << 70",
    ),
    "expression": (
        "<rule_function>(<expression>, <expression>, <number>)", "<rule_function>(<expression>)", "<rule_word>",
        "(<expression> <operator> <expression>)", "<word>[<expression>]", "<word>.<word>(<expression>)",
        "static_cast<<type>>(<expression>)", "(<type>)<expression>", "<expression> ? <expression> : <expression>",
        "threadIdx.x <operator> <number>", "<word><<number>>::value", "&<word>", "*<word>", "sizeof(<type>)", "\"<word>\"",
        "~0u", "-<expression>", "<type>{<expression>}", "<number>", "<number>", "<word>",
    ),
    "instruction": (
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0}, {%1}, {%2}, {%3};", "cp.async.cg.shared.global [%0], [%1], 16;",
        "shfl.sync.bfly.b32 %0, %1, 16, 0x1f, 0xffffffff;", "mov.u32 %0, %laneid;", "v_mov_b32 %0, %1", "s_barrier",
        "{ .reg .pred p; setp.ne.b32 p, %1, 0; @p bra L; }", "<word>.<word>.<word>", "%%", "",
    ),
    "type": ("int", "float*", "unsigned long long", "__half", "<word><<type>, <number>>", "const T&", "__nv_bfloat16",
             "auto", "dim3", "cudaStream_t", "uint32_t", "wmma::fragment<<word>, 16, 16, 16, half>"),
    "operator": ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "<", ">", "==", "&&", "||", ","),
    "assignment": ("=", "+=", ">>=", "/=", "&=", "%="),
    "number": ("0", "1", "2", "16", "31", "32", "32", "64", "63", "0x1f", "0xffffffff", "0xFFFFFFFFFFFFFFFFull", "1.0f",
               "48 * 1024", "98304", "1024", "800", "warpSize", "'x'", "1'000", "99999999999999999999"),
    "word": ("x", "lane", "mask", "WARP_SIZE", "T", "USE_ROCM", "__HIPCC__", "kernel", "N", "__CUDACC__", "warpSize"),
}  # fmt: skip

_RECIPES: Mapping[str, Grammar] = {
    "Dockerfile": {
        "program": ("<line>\n<program>", "<line>\n<line>\n<program>", "<line>"),
        "line": (
            "FROM <image> AS <word>", "FROM --platform=$TARGETPLATFORM <image>", "ARG <word>=<version>", "RUN <shell>",
            "RUN --mount=type=cache,target=/root <shell>", "ENV <word>=<word> <word>=\"<version>\"", "COPY --from=<word> a b",
            "RUN <<EOF\n<shell>\n<shell>\nEOF", "RUN [\"pip\", \"install\", \"<package>\"]", "# syntax=docker/dockerfile:1",
            "USER <word>", "SHELL [\"/bin/bash\", \"-c\"]", "RUN <shell> && \\\n    <shell> \\\n    # <word>\n    && <shell>",
        ),
        "image": ("nvidia/cuda:<version>-devel-ubuntu22.04", "rocm/pytorch:latest", "${<word>}", "<word>:$<word>",
                  "nvcr.io/nvidia/pytorch:24.01-py3", "python:3.11@sha256:0", "scratch"),
    },
    "requirements.txt": {
        "program": ("<line>\n<program>", "<line>\n<line>\n<program>", "<line>"),
        "line": (
            "<package>", "<package> ; <marker>", "-r <word>.txt", "--extra-index-url <url>", "-e .[<word>]", "# <word>",
            "-f <url>", "<package> @ <url>", "git+<url>@<word>#egg=<word>", "--index-url=<url> \\\n", "<package> --hash=sha256:0",
        ),
        "marker": ("<marker> and <marker>", "(<marker>) or <marker>", "platform_machine == 'x86_64'",
                   "sys_platform != \"linux\"", "extra == '<word>'", "python_version < '<version>'"),
    },
    "compose.yml": {
        "program": ("services:\n  <word>:\n    <fields>", "<fields>", "- <fields>\n- *<word>"),
        "fields": ("<field>\n<fields>", "<field>\n<field>\n<fields>", "<field>", "<field>"),
        "field": (
            "<word>:\n  <fields>", "image: nvidia/cuda:<version>", "deploy:\n  resources:\n    <fields>", "driver: nvidia",
            "capabilities: [gpu, <word>]", "run: |\n  <shell>\n  <shell>", "<word>: &<word> <version>", "<<: *<word>",
            "runtime: nvidia", "devices:\n  - <word>: <version>\n  - \"/dev/kfd\"", "pip:\n  - <package>\n  - <package>",
            "<word>: !<word> {<word>: [<package>, '<package>']}", "dependencies:\n  - <package>", "? <word>\n: <word>",
            "<word>: >-\n  <shell>\n", "with:\n  cuda: '<version>'", "uses: <word>/<word>@v1", "env:\n  <word>: ${{ <word> }}",
        ),
    },
    "pyproject.toml": {
        "program": ("<table>\n<program>", "<table>\n<table>\n<program>", "<table>"),
        "table": (
            "[project]\ndependencies = [<packages>]", "[build-system]\nrequires = [<packages>]", "[<word>.<word>]\n<pair>",
            "[project.optional-dependencies]\n<word> = [<packages>]", "[[tool.uv.index]]\nurl = \"<url>\"\n<pair>",
            "[tool.poetry.dependencies]\ntorch = {version = \"<version>\", source = \"<word>\"}", "<pair>",
            "[tool.portlint]\ntarget = [\"cdna3\"]", "[dependency-groups]\n<word> = [<packages>, {include-group = \"<word>\"}]",
        ),
        "packages": ("\"<package>\", <packages>", "\"<package>\"", "'''<package>'''", "# <word>\n"),
        "pair": ("<word> = <version>", "<word>.<word> = {<word> = [<packages>]}", "\"<word>\" = true", "<word> = '''<url>'''"),
    },
    "CMakeLists.txt": {
        "program": ("<command>\n<program>", "<command>\n<command>\n<program>", "<command>"),
        "command": (
            "if(<condition>)\n<program>\nelseif(<condition>)\n<program>\nelse()\n<program>\nendif()", "enable_language(CUDA)",
            "foreach(<word> <arguments>)\n<program>\nendforeach()", "function(<word> <word>)\n<program>\nendfunction()",
            "project(<word> LANGUAGES CXX CUDA)", "find_package(<rule_word> REQUIRED)", "set(<word> <arguments>)",
            "set(CMAKE_CUDA_ARCHITECTURES \"70;80;<version>\")", "target_link_libraries(<word> CUDA::cublas <arguments>)",
            "add_library(<word> <arguments>)", "target_compile_options(<word> PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-arch=sm_80>)",
            "list(APPEND <word> <arguments>)", "option(<word> \"<word>\" ON)", "include(<word>)", "<rule_word>(<arguments>)",
            "string(REGEX REPLACE \"(<word>)\" \"\\\\1\" <word> ${<word>})", "macro(<word>)\n<program>\nendmacro()",
        ),
        "condition": ("<condition> AND <condition>", "NOT (<condition>)", "<word> STREQUAL \"<word>\"", "USE_ROCM", "<word>",
                      "CMAKE_CUDA_COMPILER_VERSION VERSION_LESS <version>", "${<word>}", "TARGET CUDA::cudart", "ON"),
        "arguments": ("<argument> <arguments>", "<argument>", "<argument>"),
        "argument": ("<word>", "kernel.cu", "${<word>_${<word>}}", "\"<word>;${<word>}\"", "[[<word>]]", "#[[<word>]]", "-O3",
                     "--expt-relaxed-constexpr", "-gencode=arch=compute_80,code=sm_80", "$<BOOL:${<word>}>", "$ENV{<word>}"),
    },
    "build.sh": {
        "program": ("<shell>\n<program>", "<shell>\n<shell>\n<program>", "<shell>"),
    },
}  # fmt: skip

_SHARED: Grammar = {
    "shell": (
        "if <test>; then <shell>; else <shell>; fi", "for <word> in $<word> <version>; do <shell>; done", "$(<shell>)",
        "case $<word> in <word>) <shell> ;; *) <shell> ;; esac", "<word>() { <shell>; }", "<shell> | <shell>",
        "<shell> && <shell> || <shell>", "cat <<'EOF' > <word>\n<shell>\nEOF", "<word>=\"$(<shell>)\" <shell>",
        "pip install <package> '<package>' --index-url <url>", "python -m pip install -U \"<package>\"", "nvidia-smi -L",
        "export <word>=${<word>:-<version>}", "conda install -y pytorch-cuda=<version> -c nvidia", "nvcc -arch=sm_80 a.cu",
        "TORCH_CUDA_ARCH_LIST=\"8.0 9.0+PTX\" python setup.py install", "apt-get install -y cuda-toolkit-12-4 libnccl2",
        "CUDA_VISIBLE_DEVICES=0 torchrun a.py --backend nccl", "bash -c '<word>'", "echo <word>", "true",
    ),
    "test": ("[ -n \"$<word>\" ]", "[[ $<word> == <word> && -e /dev/kfd ]]", "command -v nvidia-smi", "! <test>", "(( <version> ))"),
    "package": ("torch==<version>+cu121", "torch", "flash-attn>=<version>", "triton<<version>", "nvidia-cublas-cu12", "cupy-cuda12x",
                "bitsandbytes[<word>]~=<version>", "xformers", "jax[cuda12]", "apex", "{<word>}", "tensorrt; <word>"),
    "version": ("12.4.1", "0", "1.0", "11", "2.4.0.dev20240101", "1!2", "*", "90a", "$V", "1e999", "0x"),
    "url": ("https://download.pytorch.org/whl/cu121", "https://github.com/a/b", "file:///x", "http://[::1", "$U"),
    "word": ("a", "torch", "USE_ROCM", "CUDA_HOME", "gpu", "rocm", "x-y", "1", "_", "ROCM_PATH", "BUILD", "é"),
}  # fmt: skip


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    """What stands before and behind the dots of each part."""
    parts = (part.partition("…") for part in text.split("~"))
    return tuple((before, behind) for before, _, behind in parts)


_PAIRS: Mapping[str, Sequence[tuple[str, str]]] = {
    "python": _pairs(
        "(…)~[…]~{…}~{1:…}~f(…)~a[…]~(a,…)~lambda x=…:1~lambda:(…)~(yield …)~(a:=…)~not (…)~-(…)~await (…)~f'{…}'~"
        "(a if … else b)~[a for x in …]~(a for a in b if (…))~f(*…)~f(a=…)~{**…}~1|(…)~(x as …)~torch.load(…)~x.to(…)~"
        "torch.where(…, 1, 2)~@f(…)\ndef f(): pass~tl.dot(…, x)~x.view(torch.int32)[…]~str(…).item()~…if a:\n "
    ),
    "cuda": _pairs(
        "(…)~f(…)~{…}~if(a){…}~A<…>~k<<<…>>>()~(a)…~[]{return …;}()~struct A{…};~namespace a{…}~template<…>~a[…]~"
        "#if A\n…\n#endif\n~decltype(…)~__shfl_sync(m, …, 1)~a?…:b~sizeof(…)~(int)(…)~#ifdef A\n…\n#else\n#endif\n~"
        "for(;;){…}~switch(x){case 1:…}~(... + …)~static_cast<int>(…)~do{…}while(0);~__ballot_sync(…, p)~*(…)~-…"
    ),
    "recipe": _pairs("[…]~{a: …}~(…)~$(…)~${…}~\"…\"~'…'~if(A)\n…\nendif()~if a; then …; fi~a:\n …~- …~<…>~[[…]]~{…;}"),
}

_UNITS: Mapping[str, Sequence[str]] = {
    "python": (
        "x = ", "a.", "f()", "[0]", "a + ", "not ", "if a: pass\n", "elif a: pass\n", "a, ", "'cuda' ", "*", "import torch\n",
        "x = x.cuda()\n", "@f\n", "a if b else ", "lambda: ", "def f(x): return x\n", "x = torch.load(f)\n", "# a\n", "\\\n",
        "with a:\n", "f'{x}' ", "a = b = ", "x = y\ny = x\n", "from a import *\n", "try: a\nexcept: b\n", "tl.arange(0, 32)\n",
        "device = 'cuda'\n", "x.append(", "global x\n", "a or ", "class A(A): pass\n", "x: int\n", "assert x\n", "-", "await ",
    ),
    "cuda": (
        "a<", "k<<<", "1<<", "(a)", "(a*)", "*", "a*", "a(", "::", "a::", "a<b>::", "->b()", "#if A\n", "#endif\n", "#else\n",
        "#elif B\nint x;\n", "\\\na", "/*", "R\"x(", "1+", "a?b:", "!", "unsigned ", "__global__ ", "[[", "else ", "FOO(a) BAR ",
        "#define X Y\n", "#define Y(x) X(x) x\n", "case 1:", "a:", "new ", "template<class T> ", "class T,", ")]}>", "extern \"C\" ",
        "__shfl_sync(~0u, v, 31) + ", "warpSize * ", "if (lane < 32) ", "int x = 32;\n", "#undef X\n", "x = x >> 5;\n", "asm(\"\");\n",
        "__syncthreads();\n", "lane & ", "typedef a b;\n", "using namespace a;\n", "k<<<1, 32>>>(x);\n", "constexpr int a = a;\n",
    ),
    "recipe": (
        "FROM a AS a\n", "RUN a && \\\n", "ARG A=$A\n", "- ", "a: ", "&a ", "*a ", "[", "{", "if(A)\n", "endif()\n", "set(A ${A})\n",
        "${", "$(", "\"", "'", "`", "torch==1\n", "; ", "|| ", "| ", "\\\n", "# a\n", "a.", "[a]\n", "[[a]]\n", "a = 1\n", "<<A\n",
        "and a == 'b' ", "(", "!", "-r a.txt\n", "--index-url ", "a=b ", "export A=$A\n", "foreach(A ${A})\n", "@", ",", "? ", "---\n",
    ),
}  # fmt: skip

_NOISE = (
    *'( ) [ ] { } < > <<< >>> " \' \\ # /* */ // : ; template< #if """ \ufeff \u2028 portlint:ignore['.encode().split(
        b" "
    ),
    *(b"\n", b"\r\n", b"\r", b"\t", b"\f", b"\0", b" ", b"\n#if 0\n", b"\n#endif\n", b"\xff", b"\xc3", b"\xed\xa0\x80"),
)

LANGUAGES: Mapping[str, str] = {
    "kernel.cu": "cuda", "ops.hip": "cuda", "tile.cuh": "cuda", "w.h": "cuda", "binding.cpp": "cuda",
    "module.py": "python", "test_ops.py": "python", "setup.py": "python", "train.py": "python",
    **dict.fromkeys((*_RECIPES, "environment.yml", ".github/workflows/ci.yml", "x.cmake"), "recipe"),
}  # fmt: skip
"""file -> the kind of text that is made for it"""

_LIKE = {"environment.yml": "compose.yml", ".github/workflows/ci.yml": "compose.yml", "x.cmake": "CMakeLists.txt"}


@cache
def grammar(name: str) -> Grammar:
    """The grammar for a file of this name, with the words that the rules look for."""
    language = LANGUAGES[name]
    own = {"python": _PYTHON, "cuda": _CXX}.get(language) or {**_SHARED, **_RECIPES[_LIKE.get(name, name)]}
    return {**own, **_rule_words("cmake" if "make" in name.lower() else language)}


@cache
def _rule_words(language: str) -> Grammar:
    """What detectors ask for: names of their own, and the words in their queries."""
    detectors = [one for rule in discover().values() for one in rule.detectors if one.language == language]
    names = sorted({name for one in detectors for name in one.names})
    words = sorted({word for one in detectors for word in re.findall(r'"([\w.]{2,40})"', one.query)})
    return {
        "rule_name": [name for name in names if not name.startswith(".")] or ["x"],
        "rule_attribute": [name[1:] for name in names if name.startswith(".")] or ["x"],
        "rule_function": [*names, *words] or ["x"],
        "rule_word": [*words, *names] or ["x"],
    }


def derive(random: Random, rules: Grammar, symbol: str = "program", budget: int = 12) -> str:
    """A text of a grammar. What a symbol stands for is indented as the symbol is, so that blocks of Python come out."""
    texts = rules[symbol]
    text = random.choice(texts if budget > 0 else texts[-2:])
    parts: list[str] = []
    end = 0
    for match in _SYMBOL.finditer(text):
        if match[1] not in rules:
            continue
        inner = derive(random, rules, match[1], budget - random.choice((1, 2, 3))) if budget > -30 else "x"
        before = text[end : match.start()]
        margin = before.rpartition("\n")[2]
        if "\n" in inner and not margin.strip():
            inner = inner.replace("\n", "\n" + margin)
        parts += [before, inner]
        end = match.end()
    return "".join((*parts, text[end:]))


def program(random: Random, name: str) -> bytes:
    """A program from the grammar of a file."""
    return derive(random, grammar(name), budget=random.choice((4, 8, 12, 16)))[:MOST_BYTES].encode()


def nesting(random: Random, name: str) -> bytes:
    """One construct within another, many times over; perhaps never closed, perhaps inside a program."""
    pairs = [random.choice(_PAIRS[LANGUAGES[name]]) for _ in range(random.choice((1, 1, 2, 3)))]
    core = derive(random, grammar(name), budget=2)
    depth = min(random.choice(DEPTHS), MOST_BYTES // (1 + max(len(left + right) for left, right in pairs)))
    opening = "".join(pairs[at % len(pairs)][0] for at in range(depth))
    closing = "".join(pairs[at % len(pairs)][1] for at in reversed(range(depth)))
    return _framed(random, name, opening + core + random.choice((closing, closing, closing, "", closing[::2])))


def repetition(random: Random, name: str) -> bytes:
    """A few words, again and again."""
    units = [random.choice(_UNITS[LANGUAGES[name]]) for _ in range(random.choice((1, 1, 1, 2, 3)))]
    if random.random() < 0.4:
        units.append(derive(random, grammar(name), budget=random.choice((1, 3, 5))))
    unit = "".join(units)
    return _framed(random, name, unit * min(random.choice(COUNTS), 1 + MOST_BYTES // len(unit)))


def _framed(random: Random, name: str, text: str) -> bytes:
    """A text alone, or where a statement can stand or has stood."""
    if random.random() < 0.4:
        before, after = derive(random, grammar(name), budget=3), derive(random, grammar(name), budget=3)
        text = random.choice((f"{before}\n{text}\n{after}", f"{text}\n{before}", f"{before}{text}"))
    elif LANGUAGES[name] == "cuda" and random.random() < 0.6:
        text = f"__global__ void k(float* a) {{ {text} ; }}"
    return text.encode()


def mutated(random: Random, text: bytes, others: Sequence[bytes]) -> bytes:
    """A text with pieces cut out, doubled, swapped, or put in."""
    for _ in range(random.choice((1, 1, 2, 4, 8))):
        start = random.randint(0, len(text))
        end = min(len(text), start + random.choice((1, 2, 8, 64, 512)))
        text = random.choice(_MUTATIONS)(random, text, start, end, others)[:MOST_BYTES]
    return text


Mutation = Callable[[Random, bytes, int, int, Sequence[bytes]], bytes]


def _cut(random: Random, text: bytes, start: int, end: int, others: Sequence[bytes]) -> bytes:  # noqa: ARG001
    return text[:start] + text[end:]


def _double(random: Random, text: bytes, start: int, end: int, others: Sequence[bytes]) -> bytes:  # noqa: ARG001
    return text[:end] + text[start:end] * random.choice((1, 1, 10, 1_000)) + text[end:]


def _end(random: Random, text: bytes, start: int, end: int, others: Sequence[bytes]) -> bytes:  # noqa: ARG001
    return random.choice((text[:start], text[start:]))


def _put(random: Random, text: bytes, start: int, end: int, others: Sequence[bytes]) -> bytes:  # noqa: ARG001
    return text[:start] + random.choice(_NOISE) * random.choice((1, 1, 3, 50)) + text[start:]


def _splice(random: Random, text: bytes, start: int, end: int, others: Sequence[bytes]) -> bytes:
    lines = random.choice(others).splitlines(keepends=True) or [b""]
    first = random.randrange(len(lines))
    return text[:start] + b"".join(lines[first : first + random.choice((1, 3, 10))]) + text[end:]


def _shuffle(random: Random, text: bytes, start: int, end: int, others: Sequence[bytes]) -> bytes:  # noqa: ARG001
    tokens = _TOKEN.findall(text[start : start + 300])
    random.shuffle(tokens)
    return text[:start] + b"".join(tokens) + text[start + 300 :]


def _swap(random: Random, text: bytes, start: int, end: int, others: Sequence[bytes]) -> bytes:  # noqa: ARG001
    return text[:start] + text[end : end + 50] + text[start:end] + text[end + 50 :]


def _retype(random: Random, text: bytes, start: int, end: int, others: Sequence[bytes]) -> bytes:  # noqa: ARG001
    return text[:start] + bytes([random.randrange(256)]) + text[start + 1 :]


_MUTATIONS: tuple[Mutation, ...] = (_cut, _double, _end, _put, _splice, _splice, _shuffle, _swap, _retype)
