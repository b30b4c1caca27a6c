// Whether a thread may use VALUE vector registers: the compiler is asked for so many, or the last of them is written.
//
// NVIDIA's assembler only warns of a number that is too large.
//
// Options: --ptxas-options=--warning-as-error
// Proof: compile
#include "portlint.h"

#if defined(__HIP__)
__global__ void __launch_bounds__(64) measure() { asm volatile("v_mov_b32 v[%0], 0" ::"n"(VALUE - 1)); }
#else
__global__ void __maxnreg__(VALUE) measure(int* out) { *out = 1; }
#endif
