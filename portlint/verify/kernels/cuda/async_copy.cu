// Whether there are asynchronous copies from global to shared memory, as cuda_pipeline.h has them.
//
// Proof: compile
#include "portlint.h"
#include <cuda_pipeline.h>

__global__ void measure(int4* out, const int4* in) {
  __shared__ int4 place[64];
  __pipeline_memcpy_async(&place[threadIdx.x], &in[threadIdx.x], sizeof(int4));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  out[threadIdx.x] = place[63 - threadIdx.x];
}
