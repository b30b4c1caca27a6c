// Whether all blocks of a grid can wait for each other: a cooperative launch of as many blocks as are resident, which
// meet at a barrier twice.
//
// The check: after each barrier every block has seen the writes of all others.
//
// Proof: run
#include "portlint.h"

__device__ void meet(int* arrived, int expected) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1);
    while (*(volatile int*)arrived < expected) {
    }
    __threadfence();
  }
  __syncthreads();
}

__global__ void measure(int* arrived, volatile int* written, int* wrong) {
  int blocks = gridDim.x;
  for (int round = 1; round <= 2; ++round) {
    if (threadIdx.x == 0) written[blockIdx.x] = round * (int)blockIdx.x;
    meet(arrived, (2 * round - 1) * blocks);
    for (int block = threadIdx.x; block < blocks; block += blockDim.x)
      if (written[block] != round * block) atomicAdd(wrong, 1);
    meet(arrived, 2 * round * blocks);
  }
}

#ifdef PORTLINT_HOST
int main() {
  Properties device = properties();
  int resident = 0;
  CHECKED(GPU(OccupancyMaxActiveBlocksPerMultiprocessor)(&resident, measure, 64, 0));
  int blocks = resident * device.multiProcessorCount;
  int *arrived = nullptr, *written = nullptr, *wrong = shared_zeros<int>(1);
  CHECKED(GPU(Malloc)(&arrived, sizeof(int)));
  CHECKED(GPU(Memset)(arrived, 0, sizeof(int)));
  CHECKED(GPU(Malloc)(&written, blocks * sizeof(int)));
  void* arguments[] = {&arrived, &written, &wrong};
  auto code = reinterpret_cast<const void*>(&measure);
  bool there = device.cooperativeLaunch &&
               GPU(LaunchCooperativeKernel)(code, dim3(blocks), dim3(64), arguments, 0, nullptr) == GPU(Success);
  there = has_run() && there;
  return report_level("launch.grid_sync", there, *wrong == 0);
}
#endif
