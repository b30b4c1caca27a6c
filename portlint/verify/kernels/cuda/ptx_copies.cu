// PTX instructions that copy between global and shared memory on their own, and what waits for them.
//
// ITEM: which of them. A plain architecture refuses what only its architecture-specific variant has.
//
// Proof: compile
#include "portlint.h"

// Registers: `at` shared memory, `bar` a barrier in it, `far` global memory, `map` a tensor map, x<5> coordinates.
#define INSTRUCTION(...)                                                                                         \
  __global__ void measure() {                                                                                    \
    asm volatile("{.reg .b32 at, bar, x<5>; .reg .b64 far, map, state; .reg .b16 half; .reg .pred p; "           \
                 ".shared .align 128 .b8 place[1024]; .shared .align 8 .b64 gate; mov.u32 at, place; mov.u32 "   \
                 "bar, gate; mov.b64 far, 0; mov.b64 map, 0; mov.b32 x0, 0; mov.b32 x1, 0; mov.b32 x2, 0; "      \
                 "mov.b32 x3, 0; mov.b32 x4, 0; mov.b16 half, 1; " __VA_ARGS__ "}");                             \
  }

#if defined(ITEM_cp_async)
INSTRUCTION("cp.async.cg.shared.global [at], [far], 16; cp.async.commit_group; cp.async.wait_group 0;")
#elif defined(ITEM_cp_async_bulk)
INSTRUCTION("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [at], [far], 16, [bar];")
#elif defined(ITEM_tma_tensor) || defined(ITEM_tma)
INSTRUCTION("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [at], [map, {x0, x1}], [bar];")
#elif defined(ITEM_bulk_cta_group)
INSTRUCTION("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::1 [at], "
            "[map, {x0, x1}], [bar];")
#elif defined(ITEM_bulk_gather4)
INSTRUCTION("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [at], "
            "[map, {x0, x1, x2, x3, x4}], [bar];")
#elif defined(ITEM_bulk_scatter4)
INSTRUCTION("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [map, {x0, x1, x2, x3, x4}], [at]; "
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes [at], "
            "[map, {x0, x1, x2, x3, x4}], [bar];")
#elif defined(ITEM_st_bulk)
INSTRUCTION("st.bulk.weak.shared::cta [at], 64, 0;")
#elif defined(ITEM_tensormap_replace)
INSTRUCTION("tensormap.replace.tile.global_address.global.b1024.b64 [map], far;")
#elif defined(ITEM_mbarrier)
INSTRUCTION("mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.shared.b64 state, [bar]; "
            "mbarrier.test_wait.shared.b64 p, [bar], state;")
#elif defined(ITEM_mbarrier_try_wait)
INSTRUCTION("mbarrier.try_wait.parity.shared::cta.b64 p, [bar], x0;")
#elif defined(ITEM_fence_proxy)
INSTRUCTION("fence.proxy.async.shared::cta; fence.mbarrier_init.release.cluster;")
#else
#error "no such instruction here"
#endif
