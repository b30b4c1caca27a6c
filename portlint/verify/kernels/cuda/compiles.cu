// Whether there is a compiler that takes a kernel at all.
//
// Proof: compile
#include "portlint.h"

__global__ void measure(float* out, const float* in, int count) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < count) out[at] = 2.0f * in[at];
}
