// Whether a block may declare VALUE bytes of shared memory.
//
// Proof: compile
#include "portlint.h"

__global__ void measure(char* out) {
  __shared__ char place[VALUE];
  place[threadIdx.x] = *out;
  __syncthreads();
  *out = place[VALUE - 1 - threadIdx.x];
}
