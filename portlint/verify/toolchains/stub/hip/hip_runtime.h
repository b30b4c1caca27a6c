// Stands in for HIP's header where there is no ROCm: what the device code of kernels uses, with the types of HIP 7.
//
// For checks by the compiler only. Functions have the signatures that HIP documents; bodies are the compiler's built-ins.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define STUB_THREADS(COUNT) __attribute__((amdgpu_flat_work_group_size(1, COUNT)))
#define STUB_THREADS_AND_WAVES(COUNT, WAVES) STUB_THREADS(COUNT) __attribute__((amdgpu_waves_per_eu(WAVES)))
#define STUB_BOUNDS(FIRST, SECOND, CHOICE, ...) CHOICE
#define __launch_bounds__(...) STUB_BOUNDS(__VA_ARGS__, STUB_THREADS_AND_WAVES, STUB_THREADS, )(__VA_ARGS__)
#define warpSize ((int)__builtin_amdgcn_wavefrontsize())
#define STUB static inline __attribute__((device, always_inline))

typedef unsigned int uint;

// threadIdx.x reads a register: a property with a getter, as in HIP's own header
#define STUB_INDEX(NAME, X, Y, Z)                            \
  struct NAME {                                              \
    __declspec(property(get = get_x)) uint x;                \
    __declspec(property(get = get_y)) uint y;                \
    __declspec(property(get = get_z)) uint z;                \
    __attribute__((device)) uint get_x() const { return X; } \
    __attribute__((device)) uint get_y() const { return Y; } \
    __attribute__((device)) uint get_z() const { return Z; } \
  };
STUB_INDEX(StubThread, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z())
STUB_INDEX(StubBlock, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z())
STUB_INDEX(StubSize, __builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(), __builtin_amdgcn_workgroup_size_z())
STUB_INDEX(StubGrid, __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(),
           __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y(),
           __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z())
extern const __attribute__((device, weak)) StubThread threadIdx;
extern const __attribute__((device, weak)) StubBlock blockIdx;
extern const __attribute__((device, weak)) StubSize blockDim;
extern const __attribute__((device, weak)) StubGrid gridDim;

STUB int __lane_id() {
  int below = __builtin_amdgcn_mbcnt_lo(~0u, 0);
  return warpSize == 64 ? __builtin_amdgcn_mbcnt_hi(~0u, below) : below;
}
STUB void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
STUB unsigned long long __ballot(int predicate) { return __builtin_amdgcn_uicmp(predicate, 0, 33 /* != */); }
STUB int __any(int predicate) { return __ballot(predicate) != 0; }
STUB int __all(int predicate) { return __ballot(predicate) == __ballot(1); }
STUB unsigned long long __activemask() { return __ballot(1); }
STUB int __popc(uint bits) { return __builtin_popcount(bits); }
STUB int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
STUB int __ffs(int bits) { return __builtin_ffs(bits); }
STUB int __ffsll(long long bits) { return __builtin_ffsll(bits); }
STUB int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz((uint)bits); }

STUB int stub_fetch(int value, int lane) { return __builtin_amdgcn_ds_bpermute(lane << 2, value); }
template <class T>
STUB T stub_fetched(T value, int lane) {
  static_assert(sizeof(T) == 4, "the stub shuffles values of four bytes");
  return __builtin_bit_cast(T, stub_fetch(__builtin_bit_cast(int, value), lane));
}
template <class T>
STUB T __shfl(T value, int source, int width = warpSize) {
  int own = __lane_id();
  return stub_fetched(value, (source & (width - 1)) + (own & ~(width - 1)));
}
template <class T>
STUB T __shfl_up(T value, uint offset, int width = warpSize) {
  int own = __lane_id();
  return stub_fetched(value, (own & (width - 1)) < (int)offset ? own : own - (int)offset);
}
template <class T>
STUB T __shfl_down(T value, uint offset, int width = warpSize) {
  int own = __lane_id();
  return stub_fetched(value, (own & (width - 1)) + (int)offset >= width ? own : own + (int)offset);
}
template <class T>
STUB T __shfl_xor(T value, int mask, int width = warpSize) {
  int own = __lane_id(), other = own ^ mask;
  return stub_fetched(value, other >= ((own + width) & ~(width - 1)) ? own : other);
}

// HIP 7 takes masks of 64 bits only, on parts with 32 lanes as well
#define STUB_MASK(M) static_assert(sizeof(M) == 8, "The mask must be a 64-bit integer.")
template <class M, class T>
STUB T __shfl_sync(M, T value, int source, int width = warpSize) {
  STUB_MASK(M);
  return __shfl(value, source, width);
}
template <class M, class T>
STUB T __shfl_up_sync(M, T value, uint offset, int width = warpSize) {
  STUB_MASK(M);
  return __shfl_up(value, offset, width);
}
template <class M, class T>
STUB T __shfl_down_sync(M, T value, uint offset, int width = warpSize) {
  STUB_MASK(M);
  return __shfl_down(value, offset, width);
}
template <class M, class T>
STUB T __shfl_xor_sync(M, T value, int mask, int width = warpSize) {
  STUB_MASK(M);
  return __shfl_xor(value, mask, width);
}
template <class M>
STUB unsigned long long __ballot_sync(M, int predicate) {
  STUB_MASK(M);
  return __ballot(predicate);
}
template <class M>
STUB int __any_sync(M, int predicate) {
  STUB_MASK(M);
  return __any(predicate);
}
template <class M>
STUB int __all_sync(M, int predicate) {
  STUB_MASK(M);
  return __all(predicate);
}
template <class M>
STUB void __syncwarp(M) {
  STUB_MASK(M);
  __builtin_amdgcn_wave_barrier();
}
STUB void __syncwarp() { __builtin_amdgcn_wave_barrier(); }

STUB float atomicAdd(float* at, float value) {
  return __hip_atomic_fetch_add(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
STUB int atomicAdd(int* at, int value) {
  return __hip_atomic_fetch_add(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
STUB void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
STUB long long clock64() { return (long long)__builtin_readcyclecounter(); }
