// Launches that are given again and again, as a graph of the driver: one call starts all of them,
// and what need not wait for each other does not.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/cuda/parts.h"

namespace tiny::cuda {

void launch_one(Gpu& gpu, const LaunchArguments& arguments, const CudaQueue& queue);

// `blocks_most`: of a program without groups.
Ref<Prepared> prepare_graph(Ref<Gpu> gpu, int64_t blocks_most, Device& device,
                            std::span<const Launch> launches);

}  // namespace tiny::cuda
