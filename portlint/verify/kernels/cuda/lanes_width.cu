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
  int *counted = nullptr, *highest = nullptr;
  CHECKED(GPU(MallocManaged)(&counted, sizeof(int)));
  CHECKED(GPU(MallocManaged)(&highest, sizeof(int)));
  measure<<<1, THREADS>>>(counted, highest);
  CHECKED(GPU(DeviceSynchronize)());
  int asked = 0;
  CHECKED(GPU(DeviceGetAttribute)(&asked, GPU(DevAttrWarpSize), 0));
  return report("lanes.width", *counted, *counted == asked && *highest == asked - 1);
}
#endif
