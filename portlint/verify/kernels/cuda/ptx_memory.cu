// PTX instructions on global memory: atomics, wide loads, textures, and memory of several devices at once.
//
// ITEM: which of them. A plain architecture refuses what only its architecture-specific variant has.
//
// Proof: compile
#include "portlint.h"

#define INSTRUCTION(...)                                                                                          \
  __global__ void measure() {                                                                                     \
    asm volatile("{.reg .b32 w, x; .reg .f32 f<8>; .reg .f64 e, g; .reg .b64 far; .reg .b128 q, r; mov.b64 far, " \
                 "0; mov.b32 w, 1; mov.b32 f0, 0f3f800000; " __VA_ARGS__ "}");                                    \
  }

#if defined(ITEM_atom_add_f64)
INSTRUCTION("mov.f64 e, 0d3ff0000000000000; atom.global.add.f64 g, [far], e;")
#elif defined(ITEM_atom_add_bf16x2)
INSTRUCTION("atom.global.add.noftz.bf16x2 x, [far], w;")
#elif defined(ITEM_atom_add_v4_f32)
INSTRUCTION("atom.global.v4.f32.add {f4, f5, f6, f7}, [far], {f0, f0, f0, f0};")
#elif defined(ITEM_atom_b128)
INSTRUCTION("mov.b128 r, {far, far}; atom.global.exch.b128 q, [far], r;")
#elif defined(ITEM_ld_v8_f32)
INSTRUCTION("ld.global.v8.f32 {f0, f1, f2, f3, f4, f5, f6, f7}, [far];")
#elif defined(ITEM_multimem)
INSTRUCTION("multimem.ld_reduce.relaxed.sys.global.add.f32 f1, [far];")
#elif defined(ITEM_tex)
INSTRUCTION("tex.2d.v4.f32.f32 {f4, f5, f6, f7}, [far, {f0, f0}];")
#else
#error "no such instruction here"
#endif
