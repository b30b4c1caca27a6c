// How many lanes a wave has: the lanes that a ballot of all threads names in the first wave of a block.
//
// The check: the same number, counted by the run-time API, and by shuffles that fetch the highest lane's index.
//
// Proof: run
#include "portlint.h"

constexpr int THREADS = 128;

__global__ void measure(int* counted, int* highest) {
  const unsigned long long together = __ballot_sync(ALL_LANES, 1);
  if (threadIdx.x == 0) *counted = __popcll(together);
  int last = __shfl_sync(ALL_LANES, (int)threadIdx.x, warpSize - 1);
  if (threadIdx.x == 0) *highest = last;
}

#ifdef PORTLINT_HOST
int main() {
  int *counted = shared_zeros<int>(1), *highest = shared_zeros<int>(1);
  measure<<<1, THREADS>>>(counted, highest);
  CHECKED(GPU(DeviceSynchronize)());
  return report("lanes.width", *counted, *counted == properties().warpSize && *highest == *counted - 1);
}
#endif
