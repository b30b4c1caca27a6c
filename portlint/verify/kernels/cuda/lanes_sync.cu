// Whether there are the *_sync warp functions: shuffles, votes, the barrier of a warp.
//
// Proof: compile
#include "portlint.h"

__global__ void measure(int* out) {
  int own = *out;
  int other = __shfl_sync(ALL_LANES, own, 0) + __shfl_xor_sync(ALL_LANES, own, 1) + __shfl_up_sync(ALL_LANES, own, 1) +
              __shfl_down_sync(ALL_LANES, own, 1);
  __syncwarp();
  if (__any_sync(ALL_LANES, other) || __all_sync(ALL_LANES, own)) *out = __popcll(__ballot_sync(ALL_LANES, other));
}
