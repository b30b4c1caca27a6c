"""Texts that parsers and analyses die of: nesting, chains and repetitions, by language. Each grows with a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Shape: TypeAlias = Callable[[int], str]


def around(before: str, core: str, after: str, head: str = "x = ", tail: str = "\n") -> Shape:
    """`core` in so many pairs of `before` and `after`."""
    return lambda number: head + before * number + core + after * number + tail


def again(piece: str, head: str = "x = ", tail: str = "1\n") -> Shape:
    """`piece` so many times."""
    return lambda number: head + piece * number + tail


def stairs(line: str, last: str = "pass\n") -> Shape:
    """Blocks inside one another, each a column further in."""
    return lambda number: "".join(" " * level + line for level in range(number)) + " " * number + last


PYTHON_BRACKETS: dict[str, Shape] = {
    "parentheses": around("(", "1", ")"),
    "lists": around("[", "1", "]"),
    "dictionaries": around("{1:", "1", "}"),
    "calls": around("f(", "1", ")"),
    "subscripts": around("a[", "1", "]"),
    "walrus": around("(a:=", "1", ")"),
    "stars": around("f(*", "a", ")"),
    "keywords": around("f(a=", "1", ")"),
    "comprehensions": around("[a for a in ", "b", "]"),
    "conditions": around("(a if ", "b", " else c)"),
    "lambdas": around("(lambda x=", "1", ": x)"),
    "patterns": around("[", "1", "]", "match x:\n  case ", ": pass\n"),
    "mapping patterns": around("{1:", "1", "}", "match x:\n  case ", ": pass\n"),
    "class patterns": around("C(a=", "1", ")", "match x:\n  case ", ": pass\n"),
    "annotations": around("List[", "int", "]", "x: "),
    "with": around("(", "a", ")", "with ", " as y: pass\n"),
    "bases": around("f(", "a", ")", "class A(", "): pass\n"),
    "decorators": around("f(", "a", ")", "@", "\ndef g(): pass\n"),
    "unclosed": again("(", tail="\n"),
    "unclosed lists": again("[", tail="\n"),
    "closing": again(")", tail="\n"),
}
"""what nests in brackets in Python, and is refused beyond a depth"""

PYTHON_CHAINS: dict[str, Shape] = {
    "sum": again("1+"),
    "or": again("a or ", tail="a\n"),
    "strings": again('"a"\n', "x = (", ")\n"),
    "added strings": again('"a" +\n', "x = (", '"b")\n'),
    "signs": again("-"),
    "not": again("not "),
    "attributes": again(".b", "x = a", "\n"),
    "method calls": again(".b()", "x = a", "\n"),
    "items": again("[0]", "x = a", "\n"),
    "lambdas": again("lambda:"),
    "conditional": again("1 if a else "),
    "elif": again("elif a:\n  pass\n", "if a:\n  pass\n", ""),
    "awaited": again("await ", "async def f():\n  ", "x\n"),
    "powers": again("2**"),
    "comparison": again("a<", tail="a\n"),
    "tuple": again("1,", tail="\n"),
    "statements": again("x=1\n", "", ""),
    "semicolons": again("x=1;", "", "\n"),
    "assignments": again("x=", "", "1\n"),
    "decorators": again("@d\n", "", "def f(): pass\n"),
    "with items": again("a,", "with ", "a: pass\n"),
    "alternatives": again("1|", "match x:\n  case ", "1: pass\n"),
    "backslashes": again("\\\n", "x = 1", "\n"),
    "excepts": again("except A: pass\n", "try: pass\n", ""),
    "cases": again("  case 1: pass\n", "match x:\n", ""),
    "imports": again("import a\n", "", ""),
    "aliases": again("a as b, ", "import ", "c\n"),
    "defaults": lambda number: "def f(" + ", ".join(f"a{one}=1" for one in range(number)) + "): pass\n",
    "redefined": again("def f(x):\n  return f(x)\n", "", ""),
    "rebound": again("x = x + 1\n", "", ""),
    "shadowed": lambda number: "".join(f"x{one + 1} = x{one}\n" for one in range(number)),
    "called in turn": lambda number: "".join(f"def f{one}(a):\n  return f{one + 1}(a)\n" for one in range(number)),
}
"""what grows without a bracket in Python"""

PYTHON_STAIRS: dict[str, Shape] = {
    "if": stairs("if a:\n"),
    "def": stairs("def f():\n"),
    "class": stairs("class A:\n"),
    "for": stairs("for a in b:\n"),
    "with": stairs("with a:\n"),
    "try": lambda number: (
        "".join(" " * level + "try:\n" for level in range(number))
        + " " * number
        + "pass\n"
        + "".join(" " * level + "finally: pass\n" for level in reversed(range(number)))
    ),
}
"""what nests by indentation in Python"""

CUDA_QUADRATIC: dict[str, Shape] = {
    **{piece: again(piece, "", "") for piece in ("<!", "}-", ",&", ")*", "*<", "~?", "::<")},
    "qualified": again("a<b>::", "int x = ", "c;\n"),
}
"""what takes the parser of CUDA time that grows with the square"""

CUDA_SHAPES: dict[str, Shape] = {
    "unclosed parentheses": again("(", "int x = ", "\n"),
    "unclosed braces": again("{", "void f() ", "\n"),
    "unclosed launches": again("k<<<", "void f(){", "}"),
    "less": again("a<", "int x = ", "\n"),
    "less, closed": around("a<", "b", ">", "int x = ", ";"),
    "templates": around("A<", "int", ">", "", " x;"),
    "unclosed templates": again("A<", "", "int x;"),
    "launches": again("k<<<g,b>>>(a);\n", "void f(){", "}"),
    "shifts": again("1<<", "int x = ", "1;"),
    "parentheses": around("(", "1", ")", "int x = ", ";"),
    "calls": around("f(", "1", ")", "int x = ", ";"),
    "blocks": around("{", "", "}", "void f() ", ""),
    "ifs": around("if(a){", "", "}", "void f() {", "}"),
    "else ifs": again("if(a) x(); else ", "void f() {", "y();}"),
    "casts": again("(a)", "int x = ", "b;"),
    "pointers": again("*", "void f(){ a", "b; }"),
    "function pointers": around("(*", "p", ")()", "int ", ";"),
    "#if, nested": around("#if A\n", "int x;\n", "#endif\n", "", ""),
    "#if, unclosed": again("#if A\n", "", "int x;\n"),
    "#if, split braces": again("#if A\nif (x) {\n#else\nif (y) {\n#endif\nz(); }\n", "void f() {\n", "}\n"),
    "#elif": again("#elif B\nint x;\n", "#if A\n", "#endif\n"),
    "#if in an expression": again("#if A\n1,\n#endif\n", "int x[] = {\n", "};\n"),
    "#endif alone": again("#endif\n", "", ""),
    "#define": lambda number: "".join(f"#define A{one} (A{one + 1} + A{one + 1})\n" for one in range(number)),
    "#define, continued": again("\\\na", "#define X ", "\n"),
    "#define, again": again("#define X X + 1\n", "", "int y = X;\n"),
    "#undef": again("#ifdef A\n#undef A\n#else\n#define A\n#endif\n", "", ""),
    "strings": again('"add;\\n"\n', "void f(){ asm volatile(", "); }"),
    "raw strings": again('R"x(', "auto s = ", ""),
    "comments": again("/*", "", ""),
    "initialisers": again("1,", "int a[] = {", "};"),
    "nested initialisers": around("{", "1", "}", "int a[] = ", ";"),
    "sum": again("1+", "int x = ", "1;"),
    "conditional": again("a?b:", "int x = ", "c;"),
    "members": again(".b", "int x = a", ";"),
    "member calls": again("->b()", "int x = a", ";"),
    "names": again("a::", "int x = ", "b;"),
    "signs": again("-", "int x = ", "1;"),
    "lambdas": around("[]{return ", "1", ";}", "auto x = ", ";"),
    "structs": around("struct A{", "", "};", "", ""),
    "namespaces": around("namespace a{", "", "}", "", ""),
    "parameters": again("class T,", "template<", "class U> void f();"),
    "templates of templates": around("template<", "class T", "> class A", "", ";"),
    "closing brackets": again(")]}>", "", ""),
    "words": again("foo bar ", "", ""),
    "keywords": again("template operator class ", "", ""),
    "qualifiers": again("__global__ ", "", ""),
    "attributes": again("[[", "", ""),
    "labels": again("a:", "void f(){", ";}"),
    "cases": again("case 1:", "void f(){switch(x){", "break;}}"),
    "else": again("else ", "void f(){", "}"),
    "sizeof": again("sizeof ", "int x = ", "a;"),
    "decltype": around("decltype(", "x", ")", "", " y;"),
    "python": again('def f(x):\n    return x["a"] if x else {1:2}\n', "", ""),
    "json": again('{"a":[1,2,{"b":"c"}]},\n', "[", "]"),
    "assembly": again("ld.param.u64 %rd1, [k_param_0];\nmad.lo.s32 %r1, %r2, %r3, %r4;\n", "", ""),
    "kernels": again("__global__ void k(float*a){int i=blockIdx.x*blockDim.x+threadIdx.x;a[i]+=1.f;}\n", "", ""),
    "constants": lambda number: "".join(f"constexpr int a{one + 1} = a{one} + a{one};\n" for one in range(number)),
    "called in turn": lambda number: "".join(
        f"__device__ int f{one}(int a) {{ return f{one + 1}(a) + f{one + 1}(a); }}\n" for one in range(number)
    ),
}
"""what nests, chains and repeats in CUDA"""

OTHERS: dict[str, dict[str, Shape]] = {
    "CMakeLists.txt": {
        "ifs": around("if(A)\n", "set(x 1)\n", "endif()\n", "", ""),
        "unclosed ifs": again("if(A)\n", "", ""),
        "else ifs": again("elseif(A)\n", "if(A)\n", "endif()\n"),
        "parentheses": around("(", "1", ")", "set(x ", ")\n"),
        "variables": around("${", "a", "}", "set(x ", ")\n"),
        "arguments": again("a ", "set(x ", ")\n"),
        "commands": again("set(x ${x}a)\n", "", ""),
        "quotes": again('"', "set(x ", ")\n"),
        "functions": around("function(f)\n", "", "endfunction()\n", "", ""),
    },
    "run.sh": {
        "substitutions": around("$(", "a", ")", "x=", "\n"),
        "parentheses": around("(", "a", ")", "", "\n"),
        "braces": around("{ ", "a;", "}", "", "\n"),
        "parameters": around("${a:-", "b", "}", "x=", "\n"),
        "ifs": around("if a; then\n", "b\n", "fi\n", "", ""),
        "pipes": again("a | ", "", "b\n"),
        "lists": again("a && ", "", "b\n"),
        "here documents": again("cat <<A\n", "", ""),
        "quotes": again('"$(', "x=", "\n"),
        "arithmetic": around("$((", "1", "))", "x=", "\n"),
        "functions": around("f() {\n", "a\n", "}\n", "", ""),
        "cases": again("case a in\n", "", ""),
    },
    "Dockerfile": {
        "runs": again("RUN pip install torch\n", "FROM a\n", ""),
        "continued": again("a \\\n", "FROM a\nRUN ", "b\n"),
        "images": again("FROM a AS b\n", "", ""),
        "here documents": again("RUN <<A\n", "FROM a\n", ""),
        "substitutions": around("$(", "a", ")", "FROM a\nRUN x=", "\n"),
        "arrays": again('"a",', "FROM a\nRUN [", '"b"]\n'),
        "arguments": lambda number: "".join(f"ARG A{one + 1}=$A{one}$A{one}\n" for one in range(number)) + "FROM $A9\n",
    },
    "requirements.txt": {
        "lines": again("torch==2.0\n", "", ""),
        "extras": again("a,", "torch[", "b]\n"),
        "versions": again(">=1,", "torch", "<2\n"),
        "markers": around("(", "a=='b'", ")", "torch ; ", "\n"),
        "options": again("--find-links a ", "", "\n"),
        "continued": again("\\\n", "torch", "\n"),
    },
    "pyproject.toml": {
        "arrays": around("[", "", "]", "a = ", "\n"),
        "inline tables": around("{a=", "1", "}", "a = ", "\n"),
        "dots": again("a.", "", "b = 1\n"),
        "tables": again("[a]\n", "", ""),
        "dependencies": again('"torch",\n', "[project]\ndependencies = [", "]\n"),
        "unclosed": again("[", "a = ", "\n"),
    },
    "environment.yml": {
        "lists": again("- ", "", "a\n"),
        "keys": again("? ", "", "a\n"),
        "flow lists": around("[", "a", "]", "a: ", "\n"),
        "flow maps": around("{a: ", "b", "}", "a: ", "\n"),
        "unclosed": again("[", "a: ", "\n"),
        "stairs": stairs("a:\n", "b\n"),
        "anchors": lambda number: (
            "a0: &a0 [x]\n" + "".join(f"a{one + 1}: &a{one + 1} [*a{one}, *a{one}, *a{one}]\n" for one in range(number))
        ),
        "documents": again("---\n", "", ""),
        "dependencies": again("- pytorch-cuda=12.1\n", "dependencies:\n", ""),
        "scalars": again("|\n", "a: ", ""),
    },
}
"""the same of recipes and builds, by the name of a file of that kind"""
