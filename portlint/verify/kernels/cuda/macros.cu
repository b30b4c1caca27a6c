// Whether device code finds a macro of the compiler or the toolkit.
//
// ITEM: cuda_arch_macro, wavefront_size_macro, cuda_version_macros.
//
// Proof: compile
#include "portlint.h"

#if defined(ITEM_cuda_arch_macro)
__global__ void measure(int* out) { *out = __CUDA_ARCH__; }
#elif defined(ITEM_wavefront_size_macro)
__global__ void measure(int* out) { *out = __AMDGCN_WAVEFRONT_SIZE; }
#elif defined(ITEM_cuda_version_macros)
// NVRTC cannot include cuda.h, which has CUDA_VERSION
#if !defined(__HIP__)
#include <cuda_runtime_api.h>
#endif
__global__ void measure(int* out) { *out = CUDART_VERSION; }
#else
#error "no such macro here"
#endif
