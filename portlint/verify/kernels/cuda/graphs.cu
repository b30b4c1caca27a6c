// Whether launches are captured into a graph and run again from it.
//
// The check: the kernel counts its runs; capturing alone runs nothing.
//
// Proof: run
#include "portlint.h"

constexpr int REPLAYS = 5;

__global__ void measure(int* runs) { atomicAdd(runs, 1); }

#ifdef PORTLINT_HOST
int main() {
  int* runs = shared_zeros<int>(1);
  GPU(Stream_t) stream;
  GPU(Graph_t) graph;
  GPU(GraphExec_t) ready;
  CHECKED(GPU(StreamCreate)(&stream));
  bool there = GPU(StreamBeginCapture)(stream, GPU(StreamCaptureModeThreadLocal)) == GPU(Success);
  bool right = true;
  if (there) {
    measure<<<1, 1, 0, stream>>>(runs);
    measure<<<1, 1, 0, stream>>>(runs);
    there = GPU(StreamEndCapture)(stream, &graph) == GPU(Success) &&
            GPU(GraphInstantiateWithFlags)(&ready, graph, 0) == GPU(Success);
    CHECKED(GPU(DeviceSynchronize)());
    right = *runs == 0;
    for (int replay = 0; there && replay < REPLAYS; ++replay) CHECKED(GPU(GraphLaunch)(ready, stream));
    CHECKED(GPU(DeviceSynchronize)());
    right = right && *runs == 2 * REPLAYS;
  }
  return report_level("launch.graphs", there, right || !there);
}
#endif
