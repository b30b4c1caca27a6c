// The limits of a launch: what the device says of itself, and whether it keeps to it.
//
// ITEM: threads_per_block, warps_per_block, threads_per_sm, blocks_per_sm, registers_per_block,
// threads_per_grid_dimension, blocks_per_other_axis. The check launches at the limit and beyond it, or asks how many
// blocks are resident.
//
// Proof: run
#include "portlint.h"

__global__ void empty() {}

// Needs as many registers as it may have: every value is read before the first is used.
__global__ void __launch_bounds__(1024) hungry(const int* in, int* out) {
  int values[128];
#pragma unroll
  for (int at = 0; at < 128; ++at) values[at] = in[at * blockDim.x + threadIdx.x];
  asm volatile("" ::: "memory");
#pragma unroll
  for (int at = 0; at < 128; ++at) out[at * blockDim.x + threadIdx.x] = values[at] * values[(at + 64) % 128];
}

#ifdef PORTLINT_HOST
bool takes(dim3 blocks, unsigned threads) {
  empty<<<blocks, threads>>>();
  return has_run();
}

int resident(int threads) {
  int blocks = 0;
  CHECKED(GPU(OccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, empty, threads, 0));
  return blocks;
}

// The largest of three grids that is taken, along the second axis and along the third.
unsigned most_blocks(bool along_third) {
  unsigned most = 0;
  for (unsigned count : {65535u, 65536u, 65537u})
    if (takes(along_third ? dim3(1, 1, count) : dim3(1, count, 1), 1)) most = count;
  return most;
}

int main() {
  Properties device = properties();
  int width = device.warpSize, threads = device.maxThreadsPerBlock;
  bool keeps = takes(dim3(1), threads) && !takes(dim3(1), threads + 1);
#if defined(ITEM_warps_per_block)
  return report("launch.warps_per_block", threads / width, keeps && threads % width == 0);
#elif defined(ITEM_threads_per_sm)
  int all = device.maxThreadsPerMultiProcessor;
  return report("launch.threads_per_sm", all, resident(256) * 256 == all);
#elif defined(ITEM_blocks_per_sm)
  int blocks = resident(width);
#if !defined(__HIP__)
  keeps = blocks == device.maxBlocksPerMultiProcessor;
#endif
  return report("launch.blocks_per_sm", blocks, keeps);
#elif defined(ITEM_registers_per_block)
  GPU(FuncAttributes) code;
  CHECKED(GPU(FuncGetAttributes)(&code, reinterpret_cast<const void*>(&hungry)));
  int all = device.regsPerBlock, used = code.numRegs * 1024;
  return report("launch.registers_per_block", all, used <= all && used > all / 2);
#elif defined(ITEM_threads_per_grid_dimension)
  bool wraps = !takes(dim3(1u << 22), 1024);
  return report("launch.threads_per_grid_dimension", wraps ? 4294967295 : 2147483647ll * 1024,
                takes(dim3((1u << 22) - 1), 1024));
#elif defined(ITEM_blocks_per_other_axis)
  return report("launch.blocks_per_other_axis", most_blocks(false), most_blocks(false) == most_blocks(true));
#else
  return report("launch.threads_per_block", threads, keeps);
#endif
}
#endif
