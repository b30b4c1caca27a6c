// How much shared memory a block gets when it asks at the launch, and how much the blocks of a multiprocessor share.
//
// ITEM: shared_bytes, with the check that a launch of that size computes rightly and a larger one is refused;
// shared_per_sm_bytes, with the check that as many blocks of a quarter of it are resident as fit.
//
// Proof: run
#include "portlint.h"

// Every byte of the memory is written by one thread and read by another.
__global__ void measure(int bytes, int* wrong) {
  extern __shared__ char place[];
  for (int at = threadIdx.x; at < bytes; at += blockDim.x) place[at] = (char)(at * 7);
  __syncthreads();
  for (int at = threadIdx.x; at < bytes; at += blockDim.x)
    if (place[bytes - 1 - at] != (char)((bytes - 1 - at) * 7)) atomicAdd(wrong, 1);
}

#ifdef PORTLINT_HOST
bool asks_for(size_t bytes) {
  auto code = reinterpret_cast<const void*>(&measure);
  bool granted = GPU(FuncSetAttribute)(code, GPU(FuncAttributeMaxDynamicSharedMemorySize), (int)bytes) == GPU(Success);
  (void)GPU(GetLastError)();
  return granted;
}

bool computes_with(size_t bytes) {
  int* wrong = shared_zeros<int>(1);
  asks_for(bytes);
  measure<<<1, 256, bytes>>>((int)bytes, wrong);
  return has_run() && *wrong == 0;
}

#if defined(ITEM_shared_per_sm_bytes)
int main() {
  size_t all = properties().sharedMemPerMultiprocessor, quarter = all / 4 - 1024;
  int blocks = 0;
  asks_for(quarter);
  CHECKED(GPU(OccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, measure, 64, quarter));
  return report("memory.shared_per_sm_bytes", (long long)all, blocks == 4);
}
#else
int main() {
  Properties device = properties();
  size_t most = device.sharedMemPerBlockOptin > device.sharedMemPerBlock ? device.sharedMemPerBlockOptin
                                                                         : device.sharedMemPerBlock;
  return report("memory.shared_bytes", (long long)most, computes_with(most) && !computes_with(most + 1024));
}
#endif
#endif
