// Whether there is hardware that samples textures: the instruction that fetches from a texture of two dimensions.
//
// Proof: compile
#include "portlint.h"

#if !defined(__HIP__)
__global__ void measure(float4* out, unsigned long long texture) {
  asm volatile("tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %5}];"
               : "=f"(out->x), "=f"(out->y), "=f"(out->z), "=f"(out->w)
               : "l"(texture), "f"(0.5f));
}
#elif defined(__GFX9__)
__global__ void measure() { asm volatile("image_sample v[0:3], v[0:1], s[0:7], s[8:11] dmask:0xf"); }
#elif defined(__GFX12__)
__global__ void measure() {
  asm volatile("image_sample v[0:3], [v0, v1], s[0:7], s[8:11] dmask:0xf dim:SQ_RSRC_IMG_2D");
}
#else
__global__ void measure() {
  asm volatile("image_sample v[0:3], v[0:1], s[0:7], s[8:11] dmask:0xf dim:SQ_RSRC_IMG_2D");
}
#endif
