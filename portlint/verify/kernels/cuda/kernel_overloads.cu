// Whether cudaFuncSetAttribute takes a kernel as it is, without a cast to a pointer to void.
//
// The check: the cast is taken everywhere, by the compiler and by the device.
//
// Proof: run
#include "portlint.h"

__global__ void measure() {}

#ifdef PORTLINT_HOST
template <class Kernel, class = void>
constexpr bool IS_TAKEN = false;
template <class Kernel>
constexpr bool IS_TAKEN<Kernel, decltype((void)GPU(FuncSetAttribute)(
                                    Kernel(), GPU(FuncAttributeMaxDynamicSharedMemorySize), 0))> = true;

int main() {
  auto cast = reinterpret_cast<const void*>(&measure);
  bool set = GPU(FuncSetAttribute)(cast, GPU(FuncAttributeMaxDynamicSharedMemorySize), 1024) == GPU(Success);
  return report_level("api.kernel_overloads", IS_TAKEN<void (*)()>, set && IS_TAKEN<const void*>);
}
#endif
