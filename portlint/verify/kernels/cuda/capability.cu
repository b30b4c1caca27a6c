// What the device answers when it is asked for its compute capability.
//
// The check: the attributes say the same as the properties.
//
// Proof: run
#include "portlint.h"

__global__ void measure() {}

#ifdef PORTLINT_HOST
#if defined(__HIP__)
#define ATTRIBUTE(NAME) hipDeviceAttribute##NAME
#else
#define ATTRIBUTE(NAME) cudaDevAttr##NAME
#endif

int main() {
  int major = 0, minor = 0;
  CHECKED(GPU(DeviceGetAttribute)(&major, ATTRIBUTE(ComputeCapabilityMajor), 0));
  CHECKED(GPU(DeviceGetAttribute)(&minor, ATTRIBUTE(ComputeCapabilityMinor), 0));
  Properties device = properties();
  std::string pair = "[" + std::to_string(device.major) + ", " + std::to_string(device.minor) + "]";
  return report_json("isa.capability", pair, major == device.major && minor == device.minor);
}
#endif
