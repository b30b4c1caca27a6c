// Whether the threads of a warp are scheduled independently: two lanes wait for each other by turns.
//
// One of the two branches runs first where a warp is in lock step, and waits in vain: the wait ends after many rounds.
// The check: the same handshake between two blocks succeeds on any device.
//
// Proof: run
#include "portlint.h"

constexpr int ROUNDS = 1 << 20;

__device__ int wait_for(volatile int* flag) {
  for (int round = 0; round < ROUNDS; ++round)
    if (*flag) return 1;
  return 0;
}

__device__ int handshake(bool is_first, volatile int* flags) {
  int met = 0;
  if (is_first) {
    met = wait_for(&flags[0]);
    flags[1] = 1;
  } else {
    flags[0] = 1;
    met = wait_for(&flags[1]);
  }
  return met;
}

__global__ void between_lanes(volatile int* flags, int* met) {
  if (threadIdx.x < 2) met[threadIdx.x] = handshake(threadIdx.x == 0, flags);
}

__global__ void between_blocks(volatile int* flags, int* met) { met[blockIdx.x] = handshake(blockIdx.x == 0, flags); }

#ifdef PORTLINT_HOST
template <class Kernel>
bool both_meet(Kernel kernel, int blocks, int threads) {
  int *flags = nullptr, *met = nullptr, found[2];
  CHECKED(GPU(Malloc)(&flags, 2 * sizeof(int)));
  CHECKED(GPU(Malloc)(&met, 2 * sizeof(int)));
  CHECKED(GPU(Memset)(flags, 0, 2 * sizeof(int)));
  kernel<<<blocks, threads>>>(flags, met);
  CHECKED(GPU(Memcpy)(found, met, 2 * sizeof(int), GPU(MemcpyDeviceToHost)));
  return found[0] && found[1];
}

int main() {
  bool independent = both_meet(between_lanes, 1, 32);
  return report_level("lanes.independent_scheduling", independent, both_meet(between_blocks, 2, 1));
}
#endif
