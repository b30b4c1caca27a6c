// Whether processes share device memory: a child opens a handle of this process and reads what it wrote.
//
// The check: the child answers with the sum that the host knows.
//
// Proof: run
#include "portlint.h"
#include "child.h"

constexpr int COUNT = 256;

__global__ void measure(int* place) { place[threadIdx.x] = threadIdx.x; }

#ifdef PORTLINT_HOST
// The child is forked before this process touches the device; the pipe brings it the handle.
int main() {
  int pipes[2];
  if (pipe(pipes) != 0) return 1;
  pid_t child = fork();
  GPU(IpcMemHandle_t) handle;
  if (child == 0) {
    alarm(60);
    void* opened = nullptr;
    std::vector<int> read_back(COUNT);
    if (read(pipes[0], &handle, sizeof handle) != sizeof handle) _exit(2);
    if (GPU(IpcOpenMemHandle)(&opened, handle, GPU(IpcMemLazyEnablePeerAccess)) != GPU(Success)) _exit(2);
    CHECKED(GPU(Memcpy)(read_back.data(), opened, COUNT * sizeof(int), GPU(MemcpyDeviceToHost)));
    int sum = 0;
    for (int one : read_back) sum += one;
    _exit(sum == COUNT * (COUNT - 1) / 2 ? 0 : 1);
  }
  int* place = nullptr;
  CHECKED(GPU(Malloc)(&place, COUNT * sizeof(int)));
  measure<<<1, COUNT>>>(place);
  CHECKED(GPU(DeviceSynchronize)());
  bool there = GPU(IpcGetMemHandle)(&handle, place) == GPU(Success);
  if (there) there = write(pipes[1], &handle, sizeof handle) == sizeof handle;
  close(pipes[1]);
  close(pipes[0]);
  int status = 0;
  waitpid(child, &status, 0);
  there = there && WIFEXITED(status) && WEXITSTATUS(status) != 2;
  return report_level("memory.ipc", there, !there || WEXITSTATUS(status) == 0);
}
#endif
