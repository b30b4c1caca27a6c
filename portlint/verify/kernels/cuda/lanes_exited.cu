// Whether the mask of a *_sync function may name lanes that have exited: the upper half of a warp leaves before a ballot
// of all lanes. Elsewhere the ballot traps, so it is run in a child process.
//
// The check: with the mask of the remaining lanes alone, the child ends well everywhere.
//
// Proof: run
#include "portlint.h"
#include "child.h"

__global__ void measure(unsigned long long mask, unsigned long long* voted) {
  if ((int)threadIdx.x >= warpSize / 2) return;
  unsigned long long lanes = __ballot_sync(mask, 1);
  if (threadIdx.x == 0) *voted = lanes;
}

#ifdef PORTLINT_HOST
bool votes_right(bool names_all) {
  int width = properties().warpSize;
  unsigned long long half = (1ull << width / 2) - 1, all = half | half << width / 2;
  auto* voted = shared_zeros<unsigned long long>(1);
  measure<<<1, width>>>(names_all ? all : half, voted);
  return has_run() && *voted == half;
}

int main() {
  bool there = survives([] { return votes_right(true); });
  return report_level("lanes.exited_in_mask", there, survives([] { return votes_right(false); }));
}
#endif
