// What the second argument of __launch_bounds__ asks for: with blocks of the largest size, 2 leaves a thread half of the
// registers if it means resident blocks, and as many as 1 if it means the waves of one execution unit.
//
// The check: two blocks are resident in the first case.
//
// Proof: run
#include "portlint.h"

// Needs more registers than it may have: every value is read before the first is used.
__device__ void compute(const int* in, int* out) {
  int values[128];
#pragma unroll
  for (int at = 0; at < 128; ++at) values[at] = in[at * blockDim.x + threadIdx.x];
  asm volatile("" ::: "memory");
#pragma unroll
  for (int at = 0; at < 128; ++at) out[at * blockDim.x + threadIdx.x] = values[at] * values[(at + 64) % 128];
}

__global__ void __launch_bounds__(1024, 1) one(const int* in, int* out) { compute(in, out); }
__global__ void __launch_bounds__(1024, 2) two(const int* in, int* out) { compute(in, out); }

#ifdef PORTLINT_HOST
int main() {
  GPU(FuncAttributes) first, second;
  CHECKED(GPU(FuncGetAttributes)(&first, reinterpret_cast<const void*>(&one)));
  CHECKED(GPU(FuncGetAttributes)(&second, reinterpret_cast<const void*>(&two)));
  bool are_blocks = second.numRegs < first.numRegs;
  int resident = 0;
  CHECKED(GPU(OccupancyMaxActiveBlocksPerMultiprocessor)(&resident, two, 1024, 0));
  // parts with room for 1536 threads never hold two such blocks
  bool has_room = properties().maxThreadsPerMultiProcessor >= 2048;
  return report_text("launch.bounds_second_argument", are_blocks ? "blocks per multiprocessor" : "waves per execution unit",
                     !are_blocks || !has_room || resident >= 2);
}
#endif
