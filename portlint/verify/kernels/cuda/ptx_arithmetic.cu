// PTX instructions that compute and convert: packed and mixed arithmetic, narrow types, dot products.
//
// ITEM: which of them. A plain architecture refuses what only its architecture-specific variant has.
//
// Proof: compile
#include "portlint.h"

// Registers that hold something, one letter a type: i and j s32, h and k 16 bits, e 8, w 32, f and g f32, l and m 64.
#define INSTRUCTION(...)                                                                                           \
  __global__ void measure() {                                                                                      \
    asm volatile("{.reg .b32 i, j, w; .reg .b16 h, k; .reg .b8 e; .reg .f32 f, g; .reg .b64 l, m; mov.b32 i, 1; " \
                 "mov.b32 w, 1; mov.b16 h, 1; mov.b16 k, 1; mov.b32 f, 0f3f800000; mov.b32 g, 0f3f800000; "        \
                 "mov.b64 l, 1; " __VA_ARGS__ "}");                                                                \
  }

#if defined(ITEM_cvt_e4m3x2)
INSTRUCTION("cvt.rn.satfinite.e4m3x2.f32 h, f, g; cvt.rn.f16x2.e4m3x2 w, h;")
#elif defined(ITEM_cvt_e2m1x2)
INSTRUCTION("cvt.rn.satfinite.e2m1x2.f32 e, f, g; cvt.rn.f16x2.e2m1x2 w, e;")
#elif defined(ITEM_cvt_rs)
INSTRUCTION("cvt.rs.f16x2.f32 w, f, g, i;")
#elif defined(ITEM_cvt_bf16_int)
INSTRUCTION("cvt.rn.bf16.s32 h, i; cvt.rzi.s32.bf16 j, h;")
#elif defined(ITEM_bf16_arith)
INSTRUCTION("add.rn.bf16 h, h, k; sub.rn.bf16 h, h, k; mul.rn.bf16 h, h, k;")
#elif defined(ITEM_tanh_bf16)
INSTRUCTION("tanh.approx.bf16 h, k; ex2.approx.ftz.bf16 h, k;")
#elif defined(ITEM_add_f32x2)
INSTRUCTION("add.rn.f32x2 m, l, l;")
#elif defined(ITEM_add_mixed)
INSTRUCTION("add.f32.bf16 g, h, f; fma.rn.f32.f16 g, h, k, f;")
#elif defined(ITEM_max3_f32)
INSTRUCTION("max.f32 g, f, f, f; min.f32 g, f, f, f;")
#elif defined(ITEM_dp4a)
INSTRUCTION("dp4a.s32.s32 j, i, w, i;")
#else
#error "no such instruction here"
#endif
