// What the driver loads at run time: PTX, and nothing else here, since other formats need a compiler to make them.
//
// The check: text that is no program is refused.
//
// Proof: run
#include "portlint.h"

__global__ void measure() {}

#ifdef PORTLINT_HOST
constexpr const char* PROGRAM =
    ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry measure() {\n  ret;\n}\n";

bool loads(const char* text) {
#if defined(__HIP__)
  hipModule_t module;
  bool taken = hipModuleLoadData(&module, text) == hipSuccess;
#else
  cudaLibrary_t library;
  cudaKernel_t kernel;
  bool taken = cudaLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0) == cudaSuccess &&
               cudaLibraryGetKernel(&kernel, library, "measure") == cudaSuccess;
#endif
  (void)GPU(GetLastError)();
  return taken;
}

int main() {
  if (std::string(ITEM) != "PTX") {
    std::fprintf(stderr, "this kernel tries PTX only\n");
    return 3;
  }
  CHECKED(GPU(Free)(nullptr));
  return report_json("isa.module_formats", loads(PROGRAM) ? "[\"PTX\"]" : "[]", !loads("no program"));
}
#endif
