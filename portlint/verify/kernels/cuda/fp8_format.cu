// Which FP8 formats the hardware has: every byte is read as e4m3, and the largest number tells the variant (448 in that
// of the OCP, 240 in FNUZ).
//
// ITEM: fp8_e4m3_max, the number; fp8_variant, the name. The check: that number written and read again is the same, and
// the byte 0x80 is minus zero in the one and no number in the other.
//
// Proof: run
#include "portlint.h"

#if defined(__gfx942__) || defined(__gfx950__) || defined(__GFX12__)
#define HAS_FP8 1
#elif !defined(__HIP__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define HAS_FP8 1
#else
#define HAS_FP8 0
#endif

__device__ float decode(unsigned byte) {
#if !HAS_FP8
  return 0.0f;
#elif defined(__HIP__)
  return __builtin_amdgcn_cvt_f32_fp8(byte, 0);
#else
  unsigned halves = 0;
  float value = 0.0f;
  asm("{.reg .b16 in; cvt.u16.u32 in, %1; cvt.rn.f16x2.e4m3x2 %0, in; }" : "=r"(halves) : "r"(byte));
  asm("{.reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, low; }" : "=f"(value) : "r"(halves));
  return value;
#endif
}

__device__ unsigned encode(float value) {
#if !HAS_FP8
  return 0;
#elif defined(__HIP__)
  return __builtin_amdgcn_cvt_pk_fp8_f32(value, value, 0, false) & 0xff;
#else
  unsigned short pair = 0;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %1;" : "=h"(pair) : "f"(value));
  return pair & 0xff;
#endif
}

__global__ void read_all(float* values) { values[threadIdx.x] = decode(threadIdx.x); }

__global__ void again(const float* value, float* read) { *read = decode(encode(*value)); }

#ifdef PORTLINT_HOST
int main() {
  float *values = shared_zeros<float>(256), *most = shared_zeros<float>(1), *read = shared_zeros<float>(1);
  read_all<<<1, 256>>>(values);
  CHECKED(GPU(DeviceSynchronize)());
  for (int byte = 0; byte < 256; ++byte)
    if (values[byte] > *most) *most = values[byte];
  again<<<1, 1>>>(most, read);
  CHECKED(GPU(DeviceSynchronize)());
  float minus_zero = values[0x80];
  bool is_fnuz = *most == 240.0f, is_ocp = *most == 448.0f;
  bool right = *most == 0.0f || (*read == *most && (is_ocp ? minus_zero == 0.0f : minus_zero != minus_zero));
#if defined(ITEM_fp8_variant)
  return report_text("dtype.fp8_variant", is_ocp ? "OCP e4m3fn/e5m2" : is_fnuz ? "FNUZ e4m3fnuz/e5m2fnuz" : "none", right);
#else
  return report("numerics.fp8_e4m3_max", (long long)*most, right);
#endif
}
#endif
