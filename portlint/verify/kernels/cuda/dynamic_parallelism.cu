// Whether a kernel may launch another.
//
// Options: -rdc=true
// Proof: compile
#include "portlint.h"

__global__ void child(int* out) { *out = 1; }

__global__ void measure(int* out) { child<<<1, 1>>>(out); }
