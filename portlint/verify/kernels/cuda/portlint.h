// What the kernels of this folder share: one spelling for CUDA and HIP, and the JSON line that each prints.
//
// Device code is all that a check with a compiler looks at; the host part is left out where it is compiled alone
// (NVRTC, or clang with `--cuda-device-only` and the stub header).
#pragma once

#if defined(__HIP__) || defined(__HIPCC__)
#include <hip/hip_runtime.h>
#define GPU(name) hip##name
#elif !defined(__CUDACC_RTC__)
#include <cuda_runtime.h>
#define GPU(name) cuda##name
#endif

// The mask of a whole wave, of the type that the toolkit's `*_sync` functions take.
#if defined(__HIP__) || defined(__HIPCC__)
#define ALL_LANES (~0ull)
#else
#define ALL_LANES (~0u)
#endif

#if !defined(__CUDACC_RTC__) && !defined(PORTLINT_DEVICE_ONLY)
#define PORTLINT_HOST 1
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECKED(call)                                                                     \
  do {                                                                                    \
    auto status = (call);                                                                 \
    if (status != GPU(Success)) {                                                         \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, GPU(GetErrorString)(status)); \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (0)

// One line: what was assumed, what was measured, whether the kernel's own check of its result held, and where.
inline int report(const char* assumption, long long measured, bool checked) {
  int device = 0, runtime = 0, driver = 0;
  CHECKED(GPU(GetDevice)(&device));
  CHECKED(GPU(RuntimeGetVersion)(&runtime));
  CHECKED(GPU(DriverGetVersion)(&driver));
#if defined(__HIP__) || defined(__HIPCC__)
  hipDeviceProp_t properties;
#else
  cudaDeviceProp properties;
#endif
  CHECKED(GPU(GetDeviceProperties)(&properties, device));
  std::printf(
      "{\"assumption\": \"%s\", \"measured\": %lld, \"outcome\": \"%s\", \"environment\": {\"device\": \"%s\", "
      "\"capability\": \"%d.%d\", \"runtime\": \"%d\", \"driver\": \"%d\"}}\n",
      assumption, measured, checked ? "measured" : "failed", properties.name, properties.major, properties.minor,
      runtime, driver);
  return checked ? 0 : 1;
}
#endif
