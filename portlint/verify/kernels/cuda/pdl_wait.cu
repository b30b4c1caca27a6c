// Whether a kernel of a programmatic dependent launch waits by itself for the kernel before it: that one lets it start,
// takes its time and then writes what the dependent kernel reads, once without waiting and once with.
//
// The check: the one that waits always sees the value.
//
// Proof: run
#include "portlint.h"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define DEPENDENT(TEXT) asm volatile("griddepcontrol." TEXT ";" ::: "memory")
#else
#define DEPENDENT(TEXT)
#endif

#if !defined(__HIP__)
__global__ void writes(volatile int* value) {
  DEPENDENT("launch_dependents");
  long long started = clock64();
  while (clock64() - started < 20000000) {
  }
  *value = 1;
}

__global__ void reads(volatile int* value, int waits, int* seen) {
  if (waits) DEPENDENT("wait");
  *seen = *value;
}
#endif

#ifdef PORTLINT_HOST
#if defined(__HIP__)
int main() {
  std::fprintf(stderr, "HIP has no programmatic dependent launch\n");
  return 3;
}
#else
bool sees(bool waits) {
  int *value = nullptr, *seen = shared_zeros<int>(1);
  CHECKED(cudaMalloc(&value, sizeof(int)));
  CHECKED(cudaMemset(value, 0, sizeof(int)));
  CHECKED(cudaDeviceSynchronize());
  cudaStream_t stream;
  CHECKED(cudaStreamCreate(&stream));
  cudaLaunchAttribute overlap;
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t dependent = {};
  dependent.gridDim = dependent.blockDim = dim3(1);
  dependent.stream = stream;
  dependent.attrs = &overlap;
  dependent.numAttrs = 1;
  writes<<<1, 1, 0, stream>>>(value);
  CHECKED(cudaLaunchKernelEx(&dependent, reads, (volatile int*)value, (int)waits, seen));
  CHECKED(cudaDeviceSynchronize());
  return *seen == 1;
}

int main() {
  bool waits_by_itself = sees(false);
  return report_level("isa.pdl_implicit_wait", waits_by_itself, sees(true));
}
#endif
#endif
