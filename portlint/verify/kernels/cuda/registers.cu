// How many registers the compiler gives one thread that needs more than there are.
//
// The check: some of its values went to memory, so it had all the registers that there are.
//
// Proof: run
#include "portlint.h"

constexpr int VALUES = 640;

// Every value is read before the first is used.
__global__ void __launch_bounds__(64) measure(const int* in, int* out) {
  int values[VALUES];
#pragma unroll
  for (int at = 0; at < VALUES; ++at) values[at] = in[at * 64 + threadIdx.x];
  asm volatile("" ::: "memory");
#pragma unroll
  for (int at = 0; at < VALUES; ++at) out[at * 64 + threadIdx.x] = values[at] * values[(at + VALUES / 2) % VALUES];
}

#ifdef PORTLINT_HOST
int main() {
  GPU(FuncAttributes) code;
  CHECKED(GPU(FuncGetAttributes)(&code, reinterpret_cast<const void*>(&measure)));
  return report("launch.registers_per_thread", code.numRegs, code.localSizeBytes > 0);
}
#endif
