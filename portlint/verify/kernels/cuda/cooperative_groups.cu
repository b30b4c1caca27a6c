// What cooperative groups have beyond blocks and tiles.
//
// ITEM: cooperative_groups_headers, those of reduce, scan and memcpy_async; cluster_group.
//
// Proof: compile
#include "portlint.h"
#if defined(__HIP__)
#include <hip/hip_cooperative_groups.h>
#else
#include <cooperative_groups.h>
#endif

namespace cg = cooperative_groups;

#if defined(ITEM_cooperative_groups_headers)
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
__global__ void measure(int* out) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  *out = cg::reduce(tile, *out, cg::plus<int>()) + cg::inclusive_scan(tile, *out);
}
#elif defined(ITEM_cluster_group)
__global__ void measure(int* out) {
  cg::cluster_group cluster = cg::this_cluster();
  cluster.sync();
  *out = cluster.block_rank();
}
#else
#error "no such item here"
#endif
