// Stands in for HIP's cooperative groups: blocks and tiles, as far as kernels use them.
#pragma once

#include <hip/hip_runtime.h>

namespace cooperative_groups {

#if defined(__GFX9__)
constexpr unsigned stub_wavefront = 64;
#else
constexpr unsigned stub_wavefront = 32;
#endif

struct thread_block {
  __device__ void sync() const { __syncthreads(); }
  __device__ unsigned thread_rank() const {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
  __device__ unsigned size() const { return blockDim.x * blockDim.y * blockDim.z; }
};
STUB thread_block this_thread_block() { return {}; }

template <unsigned SIZE, class PARENT = void>
struct thread_block_tile {
  static_assert((SIZE & (SIZE - 1)) == 0 && SIZE <= stub_wavefront,
                "Tile size is either not a power of 2 or greater than the wavefront size");
  __device__ void sync() const { __builtin_amdgcn_wave_barrier(); }
  __device__ unsigned thread_rank() const { return this_thread_block().thread_rank() & (SIZE - 1); }
  static constexpr unsigned size() { return SIZE; }
  template <class T>
  __device__ T shfl(T value, int source) const {
    return __shfl(value, source, SIZE);
  }
  template <class T>
  __device__ T shfl_down(T value, unsigned offset) const {
    return __shfl_down(value, offset, SIZE);
  }
  template <class T>
  __device__ T shfl_xor(T value, unsigned mask) const {
    return __shfl_xor(value, mask, SIZE);
  }
};
template <unsigned SIZE, class PARENT>
STUB thread_block_tile<SIZE, PARENT> tiled_partition(const PARENT&) {
  return {};
}

}  // namespace cooperative_groups
