// Whether `warpSize` is a constant expression, as an array bound must be.
//
// Proof: compile
#include "portlint.h"

__global__ void measure(int* out) {
  constexpr int lanes = warpSize;
  __shared__ int partial[1024 / lanes];
  partial[threadIdx.x / lanes] = *out;
  __syncthreads();
  *out = partial[0];
}
