// PTX instructions on matrices: mma, wgmma and tcgen05, and those that move their operands.
//
// ITEM: which of them. A plain architecture refuses what only its architecture-specific variant has.
//
// Proof: compile
#include "portlint.h"

#define INSTRUCTION(...) \
  __global__ void measure() { asm volatile("{" __VA_ARGS__ "}"); }

// A multiply that adds to its result: a<4> and b<4> are the operands; f<4>, s<4> or e<4>, by type, hold the result.
#define MMA(SHAPE, TYPES, A, B, D)                                                      \
  INSTRUCTION(".reg .b32 a<4>, b<4>; .reg .f32 f<4>; .reg .s32 s<4>; .reg .f64 e<4>; " \
              "mma.sync.aligned." SHAPE "." TYPES " " D ", " A ", " B ", " D ";")

#if defined(ITEM_mma_f16)
MMA("m16n8k16", "row.col.f32.f16.f16.f32", "{a0, a1, a2, a3}", "{b0, b1}", "{f0, f1, f2, f3}")
#elif defined(ITEM_mma_bf16)
MMA("m16n8k16", "row.col.f32.bf16.bf16.f32", "{a0, a1, a2, a3}", "{b0, b1}", "{f0, f1, f2, f3}")
#elif defined(ITEM_mma_tf32)
MMA("m16n8k8", "row.col.f32.tf32.tf32.f32", "{a0, a1, a2, a3}", "{b0, b1}", "{f0, f1, f2, f3}")
#elif defined(ITEM_mma_f64)
MMA("m8n8k4", "row.col.f64.f64.f64.f64", "{e2}", "{e3}", "{e0, e1}")
#elif defined(ITEM_mma_s8)
MMA("m16n8k32", "row.col.s32.s8.s8.s32", "{a0, a1, a2, a3}", "{b0, b1}", "{s0, s1, s2, s3}")
#elif defined(ITEM_mma_s4)
MMA("m16n8k64", "row.col.s32.s4.s4.s32", "{a0, a1, a2, a3}", "{b0, b1}", "{s0, s1, s2, s3}")
#elif defined(ITEM_mma_b1)
INSTRUCTION(".reg .b32 a<4>, b<2>; .reg .s32 s<4>; mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
            "{s0, s1, s2, s3}, {a0, a1, a2, a3}, {b0, b1}, {s0, s1, s2, s3};")
#elif defined(ITEM_mma_fp8)
MMA("m16n8k32", "row.col.f32.e4m3.e4m3.f32", "{a0, a1, a2, a3}", "{b0, b1}", "{f0, f1, f2, f3}")
#elif defined(ITEM_mma_kind_f8f6f4)
MMA("m16n8k32", "row.col.kind::f8f6f4.f32.e2m1.e2m1.f32", "{a0, a1, a2, a3}", "{b0, b1}", "{f0, f1, f2, f3}")
#elif defined(ITEM_mma_kind_mxf8f6f4)
INSTRUCTION(".reg .b32 a<4>, b<2>, x, y; .reg .f32 f<4>; .reg .u16 i; mov.u16 i, 0; "
            "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0 "
            "{f0, f1, f2, f3}, {a0, a1, a2, a3}, {b0, b1}, {f0, f1, f2, f3}, {x}, {0, 0}, {y}, {0, 0};")
#elif defined(ITEM_mma_kind_mxf4nvf4)
INSTRUCTION(".reg .b32 a<4>, b<2>, x, y; .reg .f32 f<4>; "
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 "
            "{f0, f1, f2, f3}, {a0, a1, a2, a3}, {b0, b1}, {f0, f1, f2, f3}, {x}, {0, 0}, {y}, {0, 0};")
#elif defined(ITEM_wgmma)
INSTRUCTION(".reg .f32 f<4>; .reg .b64 a, b; .reg .pred p; setp.ne.b32 p, 1, 0; mov.b64 a, 0; mov.b64 b, 0; "
            "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f0, f1, f2, f3}, a, b, p, "
            "1, 1, 0, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;")
#elif defined(ITEM_tcgen05)
INSTRUCTION(".reg .b32 at; .shared .align 8 .b32 place; mov.u32 at, place; "
            "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], 32;")
#elif defined(ITEM_tcgen05_mma_f16)
INSTRUCTION(".reg .b32 d, i; .reg .b64 a, b; .reg .pred p; setp.ne.b32 p, 1, 0; mov.b32 d, 0; mov.b32 i, 0; "
            "mov.b64 a, 0; mov.b64 b, 0; tcgen05.mma.cta_group::1.kind::f16 [d], a, b, i, p;")
#elif defined(ITEM_tcgen05_mma_tf32)
INSTRUCTION(".reg .b32 d, i; .reg .b64 a, b; .reg .pred p; setp.ne.b32 p, 1, 0; mov.b32 d, 0; mov.b32 i, 0; "
            "mov.b64 a, 0; mov.b64 b, 0; tcgen05.mma.cta_group::1.kind::tf32 [d], a, b, i, p;")
#elif defined(ITEM_tcgen05_mma_i8)
INSTRUCTION(".reg .b32 d, i; .reg .b64 a, b; .reg .pred p; setp.ne.b32 p, 1, 0; mov.b32 d, 0; mov.b32 i, 0; "
            "mov.b64 a, 0; mov.b64 b, 0; tcgen05.mma.cta_group::1.kind::i8 [d], a, b, i, p;")
#elif defined(ITEM_tcgen05_mma_f8f6f4)
INSTRUCTION(".reg .b32 d, i; .reg .b64 a, b; .reg .pred p; setp.ne.b32 p, 1, 0; mov.b32 d, 0; mov.b32 i, 0; "
            "mov.b64 a, 0; mov.b64 b, 0; tcgen05.mma.cta_group::1.kind::f8f6f4 [d], a, b, i, p;")
#elif defined(ITEM_tcgen05_mma_mxf4nvf4)
INSTRUCTION(".reg .b32 d, i, x, y; .reg .b64 a, b; .reg .pred p; setp.ne.b32 p, 1, 0; mov.b32 d, 0; mov.b32 i, 0; "
            "mov.b32 x, 0; mov.b32 y, 0; mov.b64 a, 0; mov.b64 b, 0; "
            "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [d], a, b, i, [x], [y], p;")
#elif defined(ITEM_ldmatrix)
INSTRUCTION(".reg .b32 at, a<4>; .shared .align 16 .b8 place[512]; mov.u32 at, place; "
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {a0, a1, a2, a3}, [at];")
#elif defined(ITEM_stmatrix)
INSTRUCTION(".reg .b32 at, a<4>; .shared .align 16 .b8 place[512]; mov.u32 at, place; "
            "stmatrix.sync.aligned.m8n8.x4.shared.b16 [at], {a0, a1, a2, a3};")
#elif defined(ITEM_matrix_b8)
INSTRUCTION(".reg .b32 at, a<2>; .shared .align 16 .b8 place[512]; mov.u32 at, place; "
            "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {a0, a1}, [at]; "
            "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [at], {a0};")
#else
#error "no such instruction here"
#endif
