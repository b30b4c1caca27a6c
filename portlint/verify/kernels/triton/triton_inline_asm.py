"""Which assembly language inline_asm_elementwise of Triton takes: one move instruction in PTX and in AMD's.

How it checks itself: the compiler must take exactly one of the two, and its output must hold that instruction.

Proof: compile
"""

from _kernel import need, options, report

asked = options("isa.triton_inline_asm")

from _compile import INSTALL, compiled, target, triton

tl = need("triton.language", INSTALL)


@triton.jit
def moves(source, out, ASM: tl.constexpr, CONSTRAINTS: tl.constexpr):
    place = tl.arange(0, 256)
    value = tl.load(source + place)
    moved = tl.inline_asm_elementwise(ASM, CONSTRAINTS, [value], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(out + place, moved)


LANGUAGES = {
    "PTX": ("mov.b32 $0, $1; // portlint", "=r,r"),
    "AMD GCN assembly": ("v_mov_b32 $0, $1 ; portlint", "=v,v"),
}

gpu = target(asked)
made = {
    language: compiled(moves, ("*i32", "*i32"), {"ASM": text, "CONSTRAINTS": constraints}, gpu)
    for language, (text, constraints) in LANGUAGES.items()
}
taken = [language for language, one in made.items() if one.accepted]
report(
    asked.fact,
    " and ".join(taken) or "none",
    checked=len(taken) == 1 and "portlint" in made[taken[0]].assembly,
    detail="; ".join(f"{language}: {one.words}" for language, one in made.items() if one.words),
    triton=triton.__version__,
)
