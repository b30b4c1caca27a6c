// PTX instructions by which the threads of a warp, a cluster or a grid work together.
//
// ITEM: which of them. A plain architecture refuses what only its architecture-specific variant has.
//
// Proof: compile
#include "portlint.h"

#define INSTRUCTION(...)                                                                                            \
  __global__ void measure() {                                                                                       \
    asm volatile("{.reg .b32 x, y, at, bar; .reg .f32 f, g; .reg .b64 far; .reg .pred p; .shared .align 16 .b8 "    \
                 "place[16]; .shared .align 8 .b64 gate; mov.u32 at, place; mov.u32 bar, gate; mov.b32 x, 0; "      \
                 "mov.b32 f, 0f00000000; mov.b64 far, 0; " __VA_ARGS__ "}");                                        \
  }

#if defined(ITEM_cluster) || defined(ITEM_clusters)
INSTRUCTION("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;")
#elif defined(ITEM_dsmem)
INSTRUCTION("mapa.shared::cluster.u32 y, at, 0; ld.shared::cluster.u32 x, [y];")
#elif defined(ITEM_cluster_scope)
INSTRUCTION("mov.u32 x, %cluster_ctarank; mov.u32 y, %cluster_nctarank; fence.acq_rel.cluster;")
#elif defined(ITEM_clusterlaunchcontrol)
INSTRUCTION("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [at], [bar];")
#elif defined(ITEM_pdl)
INSTRUCTION("griddepcontrol.launch_dependents; griddepcontrol.wait;")
#elif defined(ITEM_setmaxnreg)
__global__ void __launch_bounds__(128) measure() { asm volatile("setmaxnreg.dec.sync.aligned.u32 40;"); }
#elif defined(ITEM_redux_sync_int)
INSTRUCTION("redux.sync.add.s32 y, x, 0xffffffff;")
#elif defined(ITEM_redux_sync_f32)
INSTRUCTION("redux.sync.max.f32 g, f, 0xffffffff;")
#elif defined(ITEM_match_sync)
INSTRUCTION("match.any.sync.b32 y, x, 0xffffffff; match.all.sync.b32 y|p, x, 0xffffffff;")
#elif defined(ITEM_elect_sync)
INSTRUCTION("elect.sync y|p, 0xffffffff;")
#elif defined(ITEM_nanosleep)
INSTRUCTION("nanosleep.u32 100;")
#else
#error "no such instruction here"
#endif
