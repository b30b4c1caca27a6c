// Whether lanes read each other's registers: every kind of shuffle, against the same values worked out on the host.
//
// Proof: run
#include "portlint.h"

constexpr int THREADS = 64;
constexpr int KINDS = 4;

__global__ void measure(int* out) {
  int own = 7 * (int)threadIdx.x + 3;
  int* row = out + KINDS * threadIdx.x;
  row[0] = __shfl_sync(ALL_LANES, own, 5);
  row[1] = __shfl_xor_sync(ALL_LANES, own, 1);
  row[2] = __shfl_up_sync(ALL_LANES, own, 1);
  row[3] = __shfl_down_sync(ALL_LANES, own, 1);
}

#ifdef PORTLINT_HOST
int main() {
  int* out = shared_zeros<int>(KINDS * THREADS);
  measure<<<1, THREADS>>>(out);
  bool there = has_run();
  int width = properties().warpSize;
  bool right = true;
  for (int thread = 0; thread < THREADS; ++thread) {
    int lane = thread % width, first = thread - lane;
    int sources[KINDS] = {first + 5, thread ^ 1, lane == 0 ? thread : thread - 1,
                          lane == width - 1 ? thread : thread + 1};
    for (int kind = 0; kind < KINDS; ++kind) right &= out[KINDS * thread + kind] == 7 * sources[kind] + 3;
  }
  return report_level("lanes.shuffle", there, right || !there);
}
#endif
