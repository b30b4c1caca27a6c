// The matrix instructions of AMD's GPUs, by the compiler's built-in functions: MFMA, WMMA and their sparse forms.
//
// ITEM: which of them.
//
// Proof: compile
#include "portlint.h"

template <class T, int N>
using Vector = T __attribute__((ext_vector_type(N)));
using Half4 = Vector<_Float16, 4>;
using Half8 = Vector<_Float16, 8>;
using Half16 = Vector<_Float16, 16>;
using Float4 = Vector<float, 4>;
using Float8 = Vector<float, 8>;
using Float16 = Vector<float, 16>;
using Double4 = Vector<double, 4>;
using Short4 = Vector<short, 4>;
using Short8 = Vector<short, 8>;
using Short16 = Vector<short, 16>;
using Int2 = Vector<int, 2>;
using Int4 = Vector<int, 4>;
using Int8 = Vector<int, 8>;

// D is the type of the result and of what is added; A and B are those of the operands.
#define MULTIPLY(D, A, B, CALL, ...) \
  __global__ void measure(D* c, A* a, B* b, int* index) { *c = CALL(*a, *b, *c __VA_ARGS__); }
#define MFMA(D, A, NAME) MULTIPLY(D, A, A, __builtin_amdgcn_mfma_##NAME, , 0, 0, 0)

// WMMA repeats its operands in both halves of a wave on GFX11, and no longer on GFX12.
#if defined(__GFX12__)
#define WMMA(D, WIDE, NARROW, NAME) MULTIPLY(D, NARROW, NARROW, __builtin_amdgcn_wmma_##NAME##_w32_gfx12)
#else
#define WMMA(D, WIDE, NARROW, NAME) MULTIPLY(D, WIDE, WIDE, __builtin_amdgcn_wmma_##NAME##_w32)
#endif
#if defined(__GFX12__)
#define IU_WMMA(WIDE, NARROW, NAME)                                                             \
  __global__ void measure(Int8* c, NARROW* a, NARROW* b) {                                      \
    *c = __builtin_amdgcn_wmma_##NAME##_w32_gfx12(true, *a, true, *b, *c, false);               \
  }
#else
#define IU_WMMA(WIDE, NARROW, NAME)                                                             \
  __global__ void measure(Int8* c, WIDE* a, WIDE* b) {                                          \
    *c = __builtin_amdgcn_wmma_##NAME##_w32(true, *a, true, *b, *c, false);                     \
  }
#endif

#if defined(ITEM_mfma_f16)
MFMA(Float16, Half4, f32_32x32x8f16)
#elif defined(ITEM_mfma_bf16_1k)
MFMA(Float16, Short4, f32_32x32x8bf16_1k)
#elif defined(ITEM_mfma_f16_double_rate)
MFMA(Float4, Half8, f32_16x16x32_f16)
#elif defined(ITEM_mfma_f32)
MFMA(Float16, float, f32_32x32x2f32)
#elif defined(ITEM_mfma_f64)
MFMA(Double4, double, f64_16x16x4f64)
#elif defined(ITEM_mfma_xf32)
using Float2 = Vector<float, 2>;
MFMA(Float4, Float2, f32_16x16x8_xf32)
#elif defined(ITEM_mfma_i8)
// the form for four values of each operand; its successors take eight
#if defined(__gfx90a__)
MFMA(Int4, int, i32_16x16x16i8)
#else
MFMA(Int4, long, i32_16x16x32_i8)
#endif
#elif defined(ITEM_mfma_fp8)
MFMA(Float4, long, f32_16x16x32_fp8_fp8)
#elif defined(ITEM_mfma_f8f6f4)
// unscaled: the scales are 1.0 in E8M0
__global__ void measure(Float4* c, Int8* a, Int8* b) {
  *c = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(*a, *b, *c, 4, 4, 0, 127, 0, 127);
}
#elif defined(ITEM_mfma_scale_f8f6f4)
__global__ void measure(Float4* c, Int8* a, Int8* b, int* scales) {
  *c = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(*a, *b, *c, 4, 4, 0, scales[0], 0, scales[1]);
}
#elif defined(ITEM_smfmac_sparse)
MULTIPLY(Float4, Half4, Half8, __builtin_amdgcn_smfmac_f32_16x16x32_f16, , *index, 0, 0)
#elif defined(ITEM_wmma_f16)
WMMA(Float8, Half16, Half8, f32_16x16x16_f16)
#elif defined(ITEM_wmma_bf16)
WMMA(Float8, Short16, Short8, f32_16x16x16_bf16)
#elif defined(ITEM_wmma_iu8)
IU_WMMA(Int4, Int2, i32_16x16x16_iu8)
#elif defined(ITEM_wmma_iu4)
IU_WMMA(Int2, int, i32_16x16x16_iu4)
#elif defined(ITEM_wmma_fp8)
MULTIPLY(Float8, Int2, Int2, __builtin_amdgcn_wmma_f32_16x16x16_fp8_fp8_w32_gfx12)
#elif defined(ITEM_swmmac_sparse)
MULTIPLY(Float8, Half8, Half16, __builtin_amdgcn_swmmac_f32_16x16x32_f16_w32, , *index)
#else
#error "no such instruction here"
#endif
