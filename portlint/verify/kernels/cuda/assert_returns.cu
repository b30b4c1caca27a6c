// Whether the host goes on after a trap on the device, and is told of it. Elsewhere its process ends, so it is a child.
//
// The check: without a trap the child ends well.
//
// Proof: run
#include "portlint.h"
#include "child.h"

__global__ void measure(int traps) {
#if defined(__HIP__)
  if (traps) __builtin_trap();
#else
  if (traps) __trap();
#endif
}

#ifdef PORTLINT_HOST
bool is_told(bool traps) {
  measure<<<1, 1>>>(traps);
  return (GPU(DeviceSynchronize)() != GPU(Success)) == traps;
}

int main() {
  bool told = survives([] { return is_told(true); });
  return report_level("launch.assert_returns", told, survives([] { return is_told(false); }));
}
#endif
