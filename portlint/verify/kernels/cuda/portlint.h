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
#include <string>
#include <vector>

#define CHECKED(call)                                                                     \
  do {                                                                                    \
    auto status = (call);                                                                 \
    if (status != GPU(Success)) {                                                         \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, GPU(GetErrorString)(status)); \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (0)

#if defined(__HIP__) || defined(__HIPCC__)
using Properties = hipDeviceProp_t;
#else
using Properties = cudaDeviceProp;
#endif

inline Properties properties() {
  int device = 0;
  Properties found;
  CHECKED(GPU(GetDevice)(&device));
  CHECKED(GPU(GetDeviceProperties)(&found, device));
  return found;
}

// Memory that host and device see, in which every bit is 0.
template <class T>
T* shared_zeros(size_t count) {
  T* place = nullptr;
  CHECKED(GPU(MallocManaged)(&place, count * sizeof(T)));
  CHECKED(GPU(Memset)(place, 0, count * sizeof(T)));
  CHECKED(GPU(DeviceSynchronize)());
  return place;
}

// Whether what was launched last was taken and has run to its end; forgets the error if not.
inline bool has_run() {
  bool launched = GPU(GetLastError)() == GPU(Success);
  bool ended = GPU(DeviceSynchronize)() == GPU(Success);
  (void)GPU(GetLastError)();
  return launched && ended;
}

// One line: what was assumed, what was measured (as JSON), whether the kernel's own check of its result held, and where.
inline int report_json(const char* assumption, const std::string& measured, bool checked) {
  int runtime = 0, driver = 0;
  CHECKED(GPU(RuntimeGetVersion)(&runtime));
  CHECKED(GPU(DriverGetVersion)(&driver));
  const Properties device = properties();
  std::printf(
      "{\"assumption\": \"%s\", \"measured\": %s, \"outcome\": \"%s\", \"environment\": {\"device\": \"%s\", "
      "\"capability\": \"%d.%d\", \"runtime\": \"%d\", \"driver\": \"%d\"}}\n",
      assumption, measured.c_str(), checked ? "measured" : "failed", device.name, device.major, device.minor, runtime,
      driver);
  return checked ? 0 : 1;
}

inline int report(const char* assumption, long long measured, bool checked) {
  return report_json(assumption, std::to_string(measured), checked);
}

inline int report_text(const char* assumption, const std::string& measured, bool checked) {
  return report_json(assumption, '"' + measured + '"', checked);
}

// A level: native if it is there.
inline int report_level(const char* assumption, bool there, bool checked) {
  return report_text(assumption, there ? "native" : "none", checked);
}
#endif
