// Whether there is managed memory: what the device writes to it, the host reads, and the other way round.
//
// Proof: run
#include "portlint.h"

constexpr int COUNT = 1000;

__global__ void measure(int* place) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < COUNT) place[at] = 3 * place[at] + 1;
}

#ifdef PORTLINT_HOST
int main() {
  int* place = nullptr;
  bool there = GPU(MallocManaged)(&place, COUNT * sizeof(int)) == GPU(Success);
  bool right = true;
  if (there) {
    for (int at = 0; at < COUNT; ++at) place[at] = at;
    measure<<<(COUNT + 127) / 128, 128>>>(place);
    there = has_run();
    for (int at = 0; at < COUNT; ++at) right &= place[at] == 3 * at + 1;
  }
  return report_level("memory.managed", there, right || !there);
}
#endif
