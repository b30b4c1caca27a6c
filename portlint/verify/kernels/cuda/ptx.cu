// Whether inline assembly is in the language that the code assumes: PTX, or that of AMD's GPUs.
//
// ITEM: ptx; or inline_asm with VALUE, the language as the profile calls it.
//
// Proof: compile
#include "portlint.h"

#define TEXT_OF(...) #__VA_ARGS__
#define TEXT(...) TEXT_OF(__VA_ARGS__)
#if defined(ITEM_inline_asm)
constexpr bool ASSUMES_PTX = TEXT(VALUE)[0] == 'P';
#else
constexpr bool ASSUMES_PTX = true;
#endif

template <bool IS_PTX>
__device__ int lane() {
  int read = 0;
  if constexpr (IS_PTX)
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(read));
  else
    asm volatile("s_nop 0");
  return read;
}

__global__ void measure(int* out) { *out = lane<ASSUMES_PTX>(); }
