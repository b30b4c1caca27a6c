"""From the bytes of a file to text, lines and columns; from a notebook to a program; and what is not parsed at all."""

import ast
import codecs
import json
import random

import pytest

from portlint.source.decode import Decoded, NotText, decode, line_starts, position
from portlint.source.notebook import Notebook, Place, blank_magics, read
from portlint.source.prescan import Limits, refuse, refuse_size

LIMITS = Limits()

# ---- encodings ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["python", "cuda", "cxx?", "cmake", ""])
def test_utf_8_with_and_without_a_byte_order_mark(kind: str) -> None:
    text = "x = 'é🎉'\r\n".encode()
    assert decode(text, kind) == Decoded(text, "utf_8", False)
    assert decode(codecs.BOM_UTF8 + text, kind) == Decoded(text, "utf_8", True)
    assert decode(b"", kind).text == b""


@pytest.mark.parametrize(
    ("cookie", "codec"),
    [
        ("latin-1", "latin_1"),
        ("ISO-8859-1-unix", "latin_1"),
        ("iso8859-15", "iso8859_15"),
        ("cp1252", "cp1252"),
        ("windows-1251", "cp1251"),
        ("gbk", "gbk"),
        ("Shift_JIS", "shift_jis"),
        ("euc-jp", "euc_jp"),
        ("koi8-r", "koi8_r"),
        ("big5", "big5"),
        ("euc-kr", "euc_kr"),
        ("utf8", "utf_8"),
        ("utf-8-dos", "utf_8"),
        ("ascii", "ascii"),
    ],
)
def test_python_is_read_in_the_encoding_of_its_coding_comment(cookie: str, codec: str) -> None:
    text = {"gbk": "好", "shift_jis": "表", "euc_jp": "表", "cp1251": "я", "koi8_r": "я", "big5": "好", "euc_kr": "한"}
    program = f"# -*- coding: {cookie} -*-\nx = '{text.get(codec, '' if codec == 'ascii' else 'é')}'\n"
    decoded = decode(program.encode(codec), "python")
    assert (decoded.text.decode(), decoded.encoding) == (program, codec)


@pytest.mark.parametrize(
    "head",
    [
        "# coding: latin-1",
        "#!/usr/bin/python\n# vim: set fileencoding=latin-1 :",
        "\n# coding: latin-1",
        " \t\f# -*- encoding: latin-1 -*-",
        "#!/usr/bin/python\r# coding: latin-1",
    ],
)
def test_the_coding_comment_stands_where_cpython_looks_for_it(head: str) -> None:
    assert decode(f"{head}\nx = 'é'\n".encode("latin-1"), "python").encoding == "latin_1"


@pytest.mark.parametrize("head", ["\n\n# coding: latin-1", "x = 1\n# coding: latin-1", "x = 1  # coding: latin-1"])
def test_a_coding_comment_elsewhere_is_a_comment(head: str) -> None:
    with pytest.raises(NotText, match="not valid utf-8"):
        decode(f"{head}\nx = 'é'\n".encode("latin-1"), "python")


@pytest.mark.parametrize("cookie", ["rot13", "utf-7", "punycode", "unicode_escape", "idna", "zlib", "no-such", "../x"])
def test_other_codecs_are_refused_by_name(cookie: str) -> None:
    with pytest.raises(NotText, match="which is not an encoding that portlint reads"):
        decode(f"# coding: {cookie}\nx = 1\n".encode(), "python")


def test_a_byte_order_mark_and_a_coding_comment_must_agree() -> None:
    assert decode(codecs.BOM_UTF8 + b"# coding: utf-8\n", "python").bom
    with pytest.raises(NotText, match="'latin-1'"):
        decode(codecs.BOM_UTF8 + b"# coding: latin-1\n", "python")


def test_invalid_utf_8_in_python_is_refused_with_its_place() -> None:
    with pytest.raises(NotText, match=r"byte 0xe9 at byte 13 \(line 3\)"):
        decode(b"x = 1\r\n\r# caf\xe9\n", "python")
    with pytest.raises(NotText, match="byte 0xe9 at byte 3 "):
        decode(codecs.BOM_UTF8 + b"\xe9", "python")


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf_16_with_a_byte_order_mark_is_read_but_not_as_python(codec: str) -> None:
    bom = codecs.BOM_UTF16_LE if codec.endswith("le") else codecs.BOM_UTF16_BE
    data = bom + "// é🎉\r\n__global__ void k();".encode(codec)
    assert decode(data, "cuda") == Decoded("// é🎉\r\n__global__ void k();".encode(), codec.replace("-", "_"), True)
    with pytest.raises(NotText, match="UTF-16"):
        decode(data, "python")
    with pytest.raises(NotText, match="UTF-16"):
        decode(data + b"\0", "cuda")


def test_utf_16_without_a_mark_and_utf_32_are_refused_by_name() -> None:
    with pytest.raises(NotText, match=r"UTF-16 \(little-endian\) without"):
        decode("x = 1\n".encode("utf-16-le"), "python")
    with pytest.raises(NotText, match=r"UTF-16 \(big-endian\) without"):
        decode("int x;\n".encode("utf-16-be"), "cuda")
    for codec in ("utf-32", "utf-32-be"):
        with pytest.raises(NotText, match="UTF-32"):
            decode((codecs.BOM_UTF32_BE if codec == "utf-32-be" else b"") + "x = 1".encode(codec), "cuda")


def test_c_plus_plus_that_is_not_utf_8_is_read_byte_by_byte() -> None:
    assert decode(b"// caf\xe9 \x93q\x94\n", "cuda") == Decoded("// café “q”\n".encode(), "cp1252", False)
    assert decode(b"// \x81\xe9\n", "cxx?") == Decoded("// \x81é\n".encode(), "latin_1", False)


@pytest.mark.parametrize("kind", ["python", "cuda"])
@pytest.mark.parametrize(
    "data",
    [b"x = 1\0\n", b"# a\0b\n", b'x = "a\0b"\n', b"x = 1\n\0", b"\x7fELF\x02\x01\x01\0\0", b"\x93NUMPY\x01\0v\0{"],
)
def test_a_nul_byte_anywhere_means_binary(kind: str, data: bytes) -> None:
    with pytest.raises(NotText, match=r"binary|UTF-16"):
        decode(data, kind)


def test_control_characters_in_what_is_not_utf_8_mean_binary() -> None:
    with pytest.raises(NotText, match="binary"):
        decode(b"\xff\xd8\xff\xe1\x01\x02JFIF", "cuda")


# ---- lines and columns ----------------------------------------------------------------------------------------------


def test_lines_end_as_cpython_ends_them() -> None:
    text = "a\n\fb\r\nc\rd\x0b\x1c\x85\u2028e\n".encode()
    assert [text[start:][:1] for start in line_starts(text)[:-1]] == [b"a", b"\f", b"c", b"d"]
    assert line_starts(b"") == [0]
    assert line_starts(b"\n") == [0, 1]
    assert line_starts(b"\r\n\r\r\n") == [0, 2, 3, 5]


@pytest.mark.parametrize("seed", range(20))
def test_line_numbers_equal_those_of_ast(seed: int) -> None:
    pieces = ["x = 1", "'''a\nb'''", "# é", "\f", "", "s = '\u2028\x85'", "(1,\r2)", "y\\\r\n=2"]
    chosen = random.Random(seed)
    text = "".join(chosen.choice(pieces) + chosen.choice(["\n", "\r\n", "\r"]) for _ in range(30)) + "last\n"
    tree = ast.parse(text.encode())
    data = text.encode()
    assert position(data, line_starts(data), data.rindex(b"last")) == (tree.body[-1].lineno, 1)


@pytest.mark.parametrize("before", ["", "a", "é", "🎉🎉", "e\u0301", "\t", "日本", "\r\n🎉", "\ufeff"])
def test_columns_count_code_points(before: str) -> None:
    data = f"x\n{before}here".encode()
    line, column = position(data, line_starts(data), data.index(b"here"))
    assert column == len(before.rpartition("\n")[2]) + 1
    assert line == 2 + before.count("\n")


def test_an_offset_inside_a_character_has_the_column_of_the_character() -> None:
    data = "é🎉".encode()
    assert [position(data, [0], offset)[1] for offset in range(len(data) + 1)] == [1, 1, 2, 2, 2, 2, 3]


# ---- what is not parsed ---------------------------------------------------------------------------------------------


def test_sizes_are_limited_by_kind() -> None:
    for kind, most in (("python", 1_000_000), ("cmake", 1_000_000), ("cuda", 5_000_000), ("notebook", 10_000_000)):
        assert refuse_size(most, kind, LIMITS) is None
        assert f"{most:,}" in str(refuse_size(most + 1, kind, LIMITS))
    assert "1,000,001 bytes" in str(refuse(b"x" * 1_000_001, "python", LIMITS))


@pytest.mark.parametrize("kind", ["python", "cuda", "yaml"])
def test_lines_are_limited_in_number_and_length(kind: str) -> None:
    assert refuse(b"\n" * 200_000, kind, LIMITS) is None
    assert "200,001 lines" in str(refuse(b"\n" * 200_001, kind, LIMITS))
    short = b"x\n" * 300
    assert refuse(short + b" " * 100_000 + b"\n", kind, LIMITS) is None
    assert "generated" in str(refuse(short + b" " * 100_001 + b"\n", kind, LIMITS))


def test_minified_text_is_refused_unless_it_is_short() -> None:
    assert "minified" in str(refuse(b"a=1;" * 10_000, "cuda", LIMITS))
    assert "minified" in str(refuse((b"a = 1; " * 80 + b"\n") * 100, "python", LIMITS))
    assert refuse(b"a = 1; " * 2_000, "python", LIMITS) is None


@pytest.mark.parametrize("pair", ["()", "[]", "{}"])
@pytest.mark.parametrize(("kind", "limit"), [("python", 200), ("cuda", 1_000)])
def test_brackets_are_nested_at_most_so_deep(pair: str, kind: str, limit: int) -> None:
    def nested(depth: int) -> bytes:
        return f"x = {pair[0] * depth}1{pair[1] * depth};\n".encode()

    assert refuse(nested(limit) * 3, kind, LIMITS) is None
    assert f"{limit + 1:,} deep" in str(refuse(nested(limit + 1), kind, LIMITS))
    assert f"{limit + 1:,} deep" in str(refuse(b")" * 5_000 + b"\n" + nested(limit + 1), kind, LIMITS))


@pytest.mark.parametrize(
    "line",
    [
        "s = '((('",
        's = "[[[\\"["',
        "# ((( don't",
        "s = '''\n(((\n'''",
        's = """(("("""',
        "s = 'a\\\n((('",
        "s = r'\\\\'  # (",
    ],
)
def test_brackets_in_python_strings_and_comments_do_not_count(line: str) -> None:
    ast.parse(line)
    assert refuse(f"{line}\n".encode() * 300, "python", LIMITS) is None
    assert refuse(f"{line}\n".encode() * 300 + b"x = " + b"(" * 201 + b"\n", "python", LIMITS) is not None


@pytest.mark.parametrize(
    "line",
    [
        "// ((( don't",
        "// ((( \\\n(((",
        "/* ((( \n ' */",
        's = "(((\\"(";',
        "c = '('; d = '\\'';",
        'r = R"x( ((( " )x";',
        "n = 1'000'000; c = '{';",
        'u = "http://("; // "',
    ],
)
def test_brackets_in_c_plus_plus_literals_and_comments_do_not_count(line: str) -> None:
    assert refuse(f"{line}\n".encode() * 1_100, "cuda", LIMITS) is None
    assert refuse(f"{line}\n".encode() * 1_100 + b"(" * 1_001 + b"\n", "cuda", LIMITS) is not None


def blocks(levels: int, indent: str = " ") -> str:
    return "".join(f"{indent * level}if x:\n" for level in range(levels)) + f"{indent * levels}pass\n"


@pytest.mark.parametrize("indent", [" ", "    ", "\t"])
def test_python_is_indented_at_most_99_levels(indent: str) -> None:
    ast.parse(blocks(99, indent))
    assert refuse(blocks(99, indent).encode() * 2, "python", LIMITS) is None
    assert "99 levels" in str(refuse(blocks(100, indent).encode(), "python", LIMITS))


def test_continuation_lines_strings_and_comments_are_no_indentation() -> None:
    steps = "".join(f"{' ' * width}{width},\n" for width in range(1, 300))
    joined = "x = 0" + "".join(f" + \\\n{' ' * width}{width}" for width in range(1, 300)) + "\n"
    for text in (f"x = [\n{steps}]\n", f'x = """\n{steps}"""\n', joined):
        ast.parse(text)
        assert refuse(text.encode(), "python", LIMITS) is None
    comments = "".join(f"{' ' * width}# {width}\n\n" for width in range(300))
    assert refuse(comments.encode(), "python", LIMITS) is None


@pytest.mark.parametrize("kind", ["python", "cuda", "cmake"])
@pytest.mark.parametrize(
    "piece", ["'", '"', "'\\", '"\\\n', "'''", '"""\\', "/*", "//\\\n", 'R"(', "(", ")", "#", "\\", "\r"]
)
def test_any_text_gets_an_answer(kind: str, piece: str) -> None:
    for text in (piece * 400, (piece * 90 + "\n") * 300, (piece + "(\n") * 300):
        reason = refuse(text.encode(), kind, LIMITS)
        assert reason is None or reason[0].islower()


# ---- notebooks ------------------------------------------------------------------------------------------------------


def notebook(*cells: object, indent: int | None = 1, **more: object) -> bytes:
    """A notebook of format 4; a cell is the source of a code cell, or the whole cell."""
    whole = [cell if isinstance(cell, dict) else {"cell_type": "code", "source": cell, "outputs": []} for cell in cells]
    return json.dumps({"cells": whole, "nbformat": 4, "nbformat_minor": 5, **more}, indent=indent).encode()


def shown(data: bytes, book: Notebook) -> list[str]:
    """What the file has at the places of the program's lines."""
    lines = data.decode().split("\n")
    return [lines[place.line - 1][place.column_shift :] for place in book.places]


def test_code_cells_become_one_program_and_other_cells_are_left_out() -> None:
    markdown = {"cell_type": "markdown", "source": ["# import no\n"]}
    book = read(notebook(["import torch\n", "x = 1"], markdown, "y = 2\n", [], "z = '''\n'''"))
    assert book.text == b"import torch\nx = 1\ny = 2\nz = '''\n'''\n"
    assert [(place.cell, place.cell_line) for place in book.places] == [(1, 1), (1, 2), (3, 1), (5, 1), (5, 2)]
    assert book.unread_cells == ()


def test_every_line_knows_where_it_stands_in_the_file() -> None:
    data = notebook(["a = 1\n", "\n", "b = '\\n'"], "c = 3\nd = 4", ["e = ", "5\n", "f = 6\ng = 7\n"])
    starts = ['a = 1\\n"', '\\n"', "b = '\\\\n'\"", "c = 3\\nd", 'd = 4"', 'e = "', "f = 6\\n", 'g = 7\\n"']
    for line, start in zip(shown(data, read(data)), starts, strict=True):
        assert line.startswith(start)


def test_places_count_code_points_and_see_through_escapes() -> None:
    source = 's = "é🎉"\n🎉 = 1\nx = 2'
    for text in (json.dumps(source), json.dumps(source, ensure_ascii=False)):
        data = f'{{"nbformat": 4, "cells": [{{"é": 0, "source": {text}, "cell_type": "code"}}]}}'.encode()
        book = read(data)
        assert book.text == f"{source}\n".encode()
        assert shown(data, book)[2].startswith('x = 2"')
        assert [place.line for place in book.places] == [1, 1, 1]


def test_the_end_of_the_program_belongs_to_its_last_line() -> None:
    book = read(notebook(["a\n", "b\n"]))
    assert book.place(3) == book.place(2)
    assert book.place(2).cell_line == 2
    assert (read(notebook()).text, read(notebook()).places) == (b"", ())


def test_decoys_in_outputs_and_metadata_are_not_source() -> None:
    output = {"source": ["no"], "cells": [{"cell_type": "code", "source": "no"}], "data": {"x": '"source": "no"'}}
    cell = {"cell_type": "code", "metadata": {"source": "no"}, "outputs": [output], "source": ["yes\n"]}
    data = notebook(cell, metadata={"cells": [{"cell_type": "code", "source": "no"}]})
    book = read(data)
    assert book.text == b"yes\n"
    line = data[: data.index(b"yes")].count(b"\n") + 1
    assert book.places == (Place(line=line, column_shift=5, cell=1, cell_line=1),)


def test_format_3_has_worksheets() -> None:
    cells = [
        {"cell_type": "markdown", "source": "no"},
        {"cell_type": "code", "input": ["a = 1\n"], "language": "python"},
    ]
    data = json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]}).encode()
    book = read(data)
    assert (book.text, book.places[0].cell) == (b"a = 1\n", 2)


@pytest.mark.parametrize(
    "metadata",
    [None, {}, {"kernelspec": None}, {"kernelspec": {"name": "conda-env-x"}}, {"language_info": None}],
)
def test_notebooks_that_do_not_say_their_language_are_python(metadata: object) -> None:
    assert read(notebook("x = 1", metadata=metadata)).text == b"x = 1\n"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not valid JSON"),
        (b'{"cells": [', "not valid JSON"),
        (b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": "\\ud800"}]}', "not valid JSON"),
        (b'{"nbformat": 4, "cells": "\xff"}', "not valid JSON"),
        (b'{"nbformat": 4, "x": ' + b"[" * 100_000, "not valid JSON"),
        (b"[]", "not a Jupyter notebook"),
        (b"{}", "not a Jupyter notebook"),
        (b'{"nbformat": 2, "worksheets": []}', "format 2"),
        (notebook("x <- 1", metadata={"kernelspec": {"language": "R"}}), "in 'R'"),
        (notebook("x <- 1", metadata={"kernelspec": {"name": "ir", "display_name": "R"}}), "in 'ir'"),
        (notebook("x = 1\0"), "binary"),
    ],
    ids=["empty", "cut", "surrogate", "bytes", "deep", "list", "none", "old", "R", "kernel", "nul"],
)
def test_what_is_no_notebook_in_python_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(NotText, match=reason):
        read(data)


@pytest.mark.parametrize(
    "cell",
    [
        "%matplotlib inline\n",
        "!pip install 'torch\n",
        "for a in b:\n  !ls (\n",
        "?print\n",
        "print??\n",
        "torch.cuda?",
        "files = !ls (\n",
        "t = %timeit -o f(\n",
        "!pip install a \\\n    (b\n",
        "if x:\n    !pip install y\nz = 1\n",
        "%%time\nx = 1\n",
        "\n%%capture out\nx = 1\n",
        "%%bash\nfor i in (; do\n",
        "%%html\r\n<b>it's</b>\r\n",
        "!echo ü\n",
    ],
)
def test_the_syntax_of_ipython_is_blanked_to_equal_length(cell: str) -> None:
    data = cell.encode()
    blanked = blank_magics(data)
    assert blanked is not None
    ast.parse(blanked)
    assert len(blanked) == len(data)
    assert line_starts(blanked) == line_starts(data)


def test_python_beside_magics_stays() -> None:
    assert blank_magics(b"%%time\nx = 1\n%cd y\nz = 2") == b"0     \nx = 1\n0    \nz = 2"
    assert blank_magics(b"%%writefile k.py\nx = 1\n") == b"0" + b" " * 15 + b"\nx = 1\n"
    assert blank_magics(b"%%writefile k.txt\nx = 1\n") == b" " * 17 + b"\n     \n"
    assert blank_magics(b"f = !ls\n") == b"f = 0  \n"


@pytest.mark.parametrize(
    "cell",
    [
        "x = (a\n  % b)\n",
        "x = a \\\n  % b\n",
        's = """\n%no\n!no\nno?\n"""\n',
        "a != b\n",
        "# what?\n",
        "x = a if b else '?'\n",
    ],
)
def test_python_that_looks_like_a_magic_stays(cell: str) -> None:
    ast.parse(cell)
    assert blank_magics(cell.encode()) == cell.encode()


@pytest.mark.parametrize("cell", ["x = (1,\n", 's = """\n', "x = 1 + \\\n", "x = \\"])
def test_a_cell_that_is_cut_off_costs_itself_only(cell: str) -> None:
    book = read(notebook("a = 1", cell, "b = 2"))
    assert book.text == b"a = 1\nb = 2\n"
    assert book.unread_cells == (2,)
    assert [place.cell for place in book.places] == [1, 3]


def test_the_commands_of_a_notebook_are_where_its_program_has_blanks() -> None:
    cells = [
        "x = 1\n!pip install a \\\n  b\n%pip install c\n%time y()\nif x:\n    !pip install d\n",
        "%%bash\npip install e",
        "%%js\nf()",
    ]
    file = {"cells": [{"cell_type": "code", "source": one} for one in cells], "metadata": {}, "nbformat": 4}
    notebook = read(json.dumps(file).encode())
    assert len(notebook.commands) == len(notebook.text) == len(notebook.shown)
    kept = [line.strip() for line in notebook.commands.decode().splitlines() if line.strip()]
    assert kept == ["pip install a \\", "b", "pip install c", "pip install e"]
    assert b"pip" not in notebook.text
