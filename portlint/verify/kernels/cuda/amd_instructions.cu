// Other instructions of AMD's GPUs, by the compiler's built-in functions where there are some: conversions, loads
// straight to LDS, exchanges between lanes, atomics, dot products.
//
// ITEM: which of them.
//
// Proof: compile
#include "portlint.h"

template <class T, int N>
using Vector = T __attribute__((ext_vector_type(N)));
using Half2 = Vector<_Float16, 2>;
using Short4 = Vector<short, 4>;
using Bfloat2 = Vector<short, 2>;
#define GLOBAL __attribute__((address_space(1)))
#define LDS __attribute__((address_space(3)))

#if defined(ITEM_cvt_fp8_f32)
__global__ void measure(int* out, float* in) { *out = __builtin_amdgcn_cvt_pk_fp8_f32(in[0], in[1], *out, false); }
#elif defined(ITEM_cvt_scalef32_fp4)
__global__ void measure(int* out, float* in) {
  *out = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(*out, in[0], in[1], in[2], 0);
}
#elif defined(ITEM_direct_to_lds_b32)
__global__ void measure(GLOBAL int* in) {
  __shared__ int place[256];
  __builtin_amdgcn_global_load_lds(in, (LDS int*)place, 4, 0, 0);
}
#elif defined(ITEM_direct_to_lds_b128)
__global__ void measure(GLOBAL int* in) {
  __shared__ int place[256];
  __builtin_amdgcn_global_load_lds(in, (LDS int*)place, 16, 0, 0);
}
#elif defined(ITEM_async_load_to_lds)
using Int4 = Vector<int, 4>;
__global__ void measure(GLOBAL Int4* in) {
  __shared__ Int4 place[64];
  __builtin_amdgcn_global_load_async_to_lds_b128(in, (LDS Int4*)place, 0, 0);
}
#elif defined(ITEM_tensor_dma)
using Int4 = Vector<int, 4>;
using Int8 = Vector<int, 8>;
__global__ void measure(Int4* a, Int8* b) { __builtin_amdgcn_tensor_load_to_lds(a[0], b[0], a[1], a[2], 0); }
#elif defined(ITEM_ds_read_tr_b16)
__global__ void measure(Short4* out) {
  __shared__ Short4 place[64];
  *out = __builtin_amdgcn_ds_read_tr16_b64_v4i16((LDS Short4*)place);
}
#elif defined(ITEM_permlane32_swap)
__global__ void measure(unsigned* out) {
  auto both = __builtin_amdgcn_permlane32_swap(out[0], out[1], false, false);
  out[2] = both[0];
}
#elif defined(ITEM_ds_bpermute)
__global__ void measure(int* out) { *out = __builtin_amdgcn_ds_bpermute(4, *out); }
#elif defined(ITEM_dpp_row_bcast15)
__global__ void measure(int* out) { *out = __builtin_amdgcn_update_dpp(0, *out, 0x142, 0xf, 0xf, false); }
#elif defined(ITEM_atomic_add_f32)
__global__ void measure(GLOBAL float* at) { asm volatile("global_atomic_add_f32 %0, %1, off" ::"v"(at), "v"(1.0f)); }
#elif defined(ITEM_atomic_add_f64)
__global__ void measure(GLOBAL double* at) { __builtin_amdgcn_global_atomic_fadd_f64(at, 1.0); }
#elif defined(ITEM_atomic_pk_add_f16)
__global__ void measure(GLOBAL Half2* at) { __builtin_amdgcn_global_atomic_fadd_v2f16(at, Half2{1, 1}); }
#elif defined(ITEM_atomic_pk_add_bf16)
__global__ void measure(GLOBAL Bfloat2* at) { __builtin_amdgcn_global_atomic_fadd_v2bf16(at, Bfloat2{1, 1}); }
#elif defined(ITEM_v_pk_fma_f32)
__global__ void measure(Vector<float, 2>* out) { asm volatile("v_pk_fma_f32 %0, %0, %0, %0" : "+v"(*out)); }
#elif defined(ITEM_v_dot2_f32_f16)
__global__ void measure(float* out, Half2* in) { *out = __builtin_amdgcn_fdot2(in[0], in[1], *out, false); }
#elif defined(ITEM_v_dot4_i32_i8)
// GFX11 has it for operands of either sign
__global__ void measure(int* out, int* in) {
#if defined(__GFX9__)
  *out = __builtin_amdgcn_sdot4(in[0], in[1], *out, false);
#else
  *out = __builtin_amdgcn_sudot4(true, in[0], true, in[1], *out, false);
#endif
}
#elif defined(ITEM_v_bitop3)
__global__ void measure(int* out) { *out = __builtin_amdgcn_bitop3_b32(out[0], out[1], out[2], 0x96); }
#elif defined(ITEM_v_prng)
__global__ void measure(unsigned* out) { *out = __builtin_amdgcn_prng_b32(*out); }
#elif defined(ITEM_gws_barrier)
__global__ void measure(unsigned count) { __builtin_amdgcn_ds_gws_barrier(count, 0); }
#else
#error "no such instruction here"
#endif
