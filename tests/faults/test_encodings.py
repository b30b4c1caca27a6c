"""Files in every encoding and in none: analysed where a compiler would read them, named where not."""

from __future__ import annotations

import ast
import codecs
import random

import pytest
from runs import DEVICE, FULL, KERNEL, TARGETS, check, found, portlint, scan, told, write

from portlint.source.prescan import Limits

KINDS_OF_BINARY = {
    "elf": b"\x7fELF\x02\x01\x01" + bytes(600),
    "pyc": b"\xa7\r\r\n" + bytes(12) + b"\xe3\0\0\0",
    "zip": b"PK\x03\x04\x14\0\0\0",
    "npy": b"\x93NUMPY\x01\0v\0{'descr'",
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "gz": b"\x1f\x8b\x08\0\0\0\0\0",
    "pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n\0",
    "mach": b"\xcf\xfa\xed\xfe\x07\0\0\x01",
    "pe": b"MZ\x90\0\x03\0\0\0",
    "hdf5": b"\x89HDF\r\n\x1a\n\0\0",
    "sqlite": b"SQLite format 3\0",
    "wasm": b"\0asm\x01\0\0\0",
    "class": b"\xca\xfe\xba\xbe\0\0",
    "tar": b"a.py" + bytes(200) + b"ustar",
    "all": bytes(range(256)) * 8,
    "nul": bytes(5_000),
    "cubin": b"\x7fELF\x02\x01\x013\x07" + bytes(9),
    "fatbin": b"P\xedU\xba\x01\0\x10\0",
    "pickle": b"\x80\x04\x95\x0b\0\0\0\0\0\0\0",
    "onnx": b"\x08\x07\x12\x00\x1a\x00:\xff\0",
}
LIMITS = Limits()


@pytest.mark.parametrize("end", ["py", "cu", "cuh", "ipynb"])
def test_what_is_no_text_is_named_and_not_looked_into(end: str) -> None:
    texts = {f"{kind}.{end}": data for kind, data in KINDS_OF_BINARY.items()}
    for name, result in scan(texts.items(), LIMITS).items():
        assert not result.analysed
        assert not result.findings
        assert [problem.kind for problem in result.problems] == ["read"], (name, result.problems)


@pytest.mark.parametrize("end", ["py", "cu"])
@pytest.mark.parametrize("place", ["a\0b", '# "a\0"', '// "a\0"', "s = 'a\0'", "\0"])
def test_a_nul_byte_is_the_same_everywhere(end: str, place: str) -> None:
    text = {"py": DEVICE, "cu": KERNEL}[end] + place
    ((_, result),) = scan([(f"a.{end}", text.encode())], LIMITS).items()
    assert result.problems[0].message == f"binary: it holds a NUL byte, the first at byte {text.index(chr(0))}"


def test_bytes_that_are_not_utf_8_cost_their_own_file() -> None:
    write(
        {
            "good.py": DEVICE,
            "comment.py": DEVICE.encode() + b"# caf\xe9\n",
            "text.py": DEVICE.encode() + b's = "\xff"\n',
            "overlong.py": DEVICE.encode() + b's = "\xc0\x80"\n',
            "half.py": DEVICE.encode() + b's = "\xed\xa0\x80"\n',
            "kernel.cu": KERNEL.encode() + b"// caf\xe9\n",
        }
    )
    report = check()
    assert found(report) == ["good.py", "kernel.cu"]
    line = DEVICE.count("\n") + 1
    assert told(report) == {
        "comment.py": f"read: not valid utf-8: byte 0xe9 at byte {len(DEVICE) + 5} (line {line})",
        "text.py": f"read: not valid utf-8: byte 0xff at byte {len(DEVICE) + 5} (line {line})",
        "overlong.py": f"read: not valid utf-8: byte 0xc0 at byte {len(DEVICE) + 5} (line {line})",
        "half.py": f"read: not valid utf-8: byte 0xed at byte {len(DEVICE) + 5} (line {line})",
    }


CODECS = [
    ("latin-1", "é"),
    ("cp1252", "“é”"),
    ("iso8859-15", "€"),
    ("gbk", "你好"),
    ("gb18030", "你好"),
    ("big5", "好"),
    ("shift_jis", "表"),
    ("euc-jp", "表"),
    ("euc-kr", "한"),
    ("koi8-r", "я"),
    ("cp1251", "я"),
    ("mac-roman", "é"),
    ("utf-8", "é🎉"),
    ("cp932", "表"),
    ("cp949", "한"),
    ("iso8859-2", "ł"),
]


def test_python_in_other_encodings_is_analysed_with_the_right_columns() -> None:
    """Also where a character of the encoding ends in the byte of a backslash, as that of 表 does in Shift JIS."""
    texts = [
        (
            f"{codec}.py",
            f"# coding: {codec}\nimport torch\ns = '{text}'; x = torch.cuda.current_device()\n".encode(codec),
        )
        for codec, text in CODECS
    ]
    results = scan(texts, LIMITS)
    for codec, text in CODECS:
        result = results[f"{codec}.py"]
        assert not result.problems
        assert {(one.line, one.column) for one in result.findings} == {(3, len(f"s = '{text}'; x = ") + 1)}, codec


@pytest.mark.parametrize(
    "codec",
    [
        "rot13",
        "punycode",
        "utf-7",
        "unicode_escape",
        "raw_unicode_escape",
        "idna",
        "zlib",
        "bz2",
        "hex",
        "base64",
        "uu",
        "quopri",
        "mbcs",
        "oem",
        "undefined",
        "utf-16",
        "utf-32",
        "iso2022_jp",
        "hz",
        "no-such",
        "../x",
        "os",
        "antigravity",
    ],
)
def test_an_encoding_that_no_source_has_is_named_and_not_loaded(codec: str) -> None:
    """Looking a codec up would import a module of that name."""
    ((_, result),) = scan([("a.py", f"# coding: {codec}\nimport torch\n".encode())], LIMITS).items()
    assert result.problems[0].message.startswith("the coding comment names '")


def test_marks_of_byte_order() -> None:
    bom = codecs.BOM_UTF8
    texts: dict[str, bytes] = {
        "bom.py": bom + DEVICE.encode(),
        "cookie.py": bom + b"# coding: utf-8\n" + DEVICE.encode(),
        "twice.py": bom + bom + DEVICE.encode(),
        "bom.cu": bom + KERNEL.encode(),
        "le.cu": codecs.BOM_UTF16_LE + KERNEL.encode("utf-16-le"),
        "be.cu": codecs.BOM_UTF16_BE + KERNEL.encode("utf-16-be"),
        "le.py": codecs.BOM_UTF16_LE + DEVICE.encode("utf-16-le"),
        "none.py": DEVICE.encode("utf-16-le"),
        "none.cu": KERNEL.encode("utf-16-be"),
        "32.py": codecs.BOM_UTF32_LE + DEVICE.encode("utf-32-le"),
        "32.cu": codecs.BOM_UTF32_BE + KERNEL.encode("utf-32-be"),
        "other.py": bom + b"# coding: latin-1\n" + DEVICE.encode(),
        "only.py": bom,
        "empty.cu": b"",
    }
    results = scan(texts.items(), LIMITS)
    for name in ("bom.py", "cookie.py", "bom.cu", "le.cu", "be.cu"):
        plain = scan([("x." + name[-2:], DEVICE.encode() if name[-2:] == "py" else KERNEL.encode())], LIMITS)
        (alone,) = plain.values()
        lines = 1 if name == "cookie.py" else 0
        assert [(one.rule, one.line - lines, one.column) for one in results[name].findings] == [
            (one.rule, one.line, one.column) for one in alone.findings
        ], name
    told_of = {name: result.problems[0].message for name, result in results.items() if result.problems}
    assert told_of.keys() == {"le.py", "none.py", "none.cu", "32.py", "32.cu", "other.py"}
    assert all("UTF-16" in told_of[name] for name in ("le.py", "none.py", "none.cu"))
    assert all("UTF-32" in told_of[name] for name in ("32.py", "32.cu"))


PIECES = [
    "x = 1",
    "'''a\nb'''",
    "# é",
    "\f",
    "",
    "s = '\u2028\x85\u2029'",
    "(1,\r2)",
    "y\\\r\n=2",
    "\fz = 3",
    "s = '\v\x1c\x1d\x1e'",
    "if x:\n\f    y = 1",
    "if x:\n  \f  y = 1\n",
    "s = '🎉e\u0301'",
    '"""a\r\nb\rc"""',
]


@pytest.mark.parametrize("seed", range(200 if FULL else 12))
def test_lines_and_columns_are_those_of_python(seed: int) -> None:
    """Form feeds, separators of Unicode, all three ends of lines, and characters beyond the first plane before it."""
    chosen = random.Random(seed)
    text = "import torch\n" + "".join(chosen.choice(PIECES) + chosen.choice(["\n", "\r\n", "\r"]) for _ in range(20))
    before = chosen.choice(["", "s = '🎉'; ", "s = 'é\u2028'; ", "s = '日本e\u0301'; ", "s = '\U0001d523'; "])
    text += f"{before}x = torch.cuda.current_device()\n"
    tree = ast.parse(text.encode())
    ((_, result),) = scan([("a.py", text.encode())], LIMITS, jobs=1).items()
    (line,) = {one.line for one in result.findings}
    assert line == tree.body[-1].lineno
    call = tree.body[-1].value  # type: ignore[attr-defined]
    column = len(text.encode().splitlines(keepends=False) and f"{before}x = ") + 1
    assert {one.column for one in result.findings} == {column}
    assert len(f"{before}x = ".encode()) == call.col_offset


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "latin-1", "cp932"])
def test_a_fix_changes_its_own_bytes_only(end: str, codec: str) -> None:
    """Line ends, byte order mark, encoding, form feeds, blanks at the end: all stay."""
    cookie = "utf-8" if codec.startswith("utf") else codec
    text = {"latin-1": "é", "cp932": "表"}.get(codec, "🎉")
    code = "try:\n    from fbgemm_gpu.experimental.gen_ai import attention\nexcept ImportError:\n    attention = None\n"
    before = f"# coding: {cookie}\n\f\ns = '{text}'  \n{code} \t \n".replace("\n", end)
    data = before.encode(codec)
    write({"a.py": data})
    portlint("check", "a.py", *TARGETS, "--isolated", "--fix", "--unsafe-fixes", "--output-format", "json")
    with open("a.py", "rb") as file:
        after = file.read()
    assert after != data
    assert after == data.replace(b"except ImportError:", after[data.index(b"except") :].partition(b":")[0] + b":")
