// Whether a thread has VALUE accumulation registers (AGPRs) besides its vector registers: the last of them is written.
//
// Proof: compile
#include "portlint.h"

__global__ void __launch_bounds__(64) measure() { asm volatile("v_accvgpr_write_b32 a[%0], 0" ::"n"(VALUE - 1)); }
