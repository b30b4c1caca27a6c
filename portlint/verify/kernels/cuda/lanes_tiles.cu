// Whether a tile of VALUE threads of a cooperative group is one warp: tiled_partition takes it, and shuffles in it.
//
// Proof: compile
#include "portlint.h"
#if defined(__HIP__)
#include <hip/hip_cooperative_groups.h>
#else
#include <cooperative_groups.h>
#endif

__global__ void measure(int* out) {
  auto tile = cooperative_groups::tiled_partition<VALUE>(cooperative_groups::this_thread_block());
  *out = tile.shfl_down(*out, 1) + tile.thread_rank();
}
