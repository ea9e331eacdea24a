#include "runtime/cuda/graph.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tiny::cuda {

void launch_one(Gpu& gpu, const LaunchArguments& arguments, const CudaQueue& queue) {
  if (arguments.is_empty()) return;
  const Gpu::Scope scope(gpu);
  const KernelNode n = arguments.node();
  gpu.check(gpu.functions().cuLaunchKernel(n.function, n.grid_x, n.grid_y, n.grid_z, n.block_x,
                                           n.block_y, n.block_z, n.shared_bytes, queue.stream(),
                                           n.parameters, nullptr),
            "cuLaunchKernel");
}

namespace {

// The driver's graph is built at the first run and again where a launch begins or ceases to have
// anything to do, or has another queue; where only arguments have changed, their nodes are told.
class Graph : public Prepared {
 public:
  Graph(Ref<Gpu> gpu, int64_t blocks_most, std::span<const Launch> launches)
      : gpu_(std::move(gpu)), blocks_most_(blocks_most), launches_(launches) {}
  void changed() override { has_changed_ = true; }

  void run(const Queue* on, const StopSignal& stop) override {
    const auto& queue = static_cast<const CudaQueue&>(*on);
    stop.check();
    if (!executable_ || has_changed_ || queue_ != &queue) update(queue);
    const Gpu::Scope scope(*gpu_);
    gpu_->check(gpu_->functions().cuGraphLaunch(executable_, queue.stream()), "cuGraphLaunch");
    queue.obey(stop);
  }

 private:
  ~Graph() override { drop(); }

  void drop() {
    gpu_->clean_up([&](const Functions& f) {
      if (executable_) f.cuGraphExecDestroy(executable_);
      if (graph_) f.cuGraphDestroy(graph_);
    });
    executable_ = nullptr;
    graph_ = nullptr;
    nodes_.clear();
    arguments_.clear();
  }

  std::vector<LaunchArguments> arguments_of(const CudaQueue& queue) const {
    std::vector<LaunchArguments> all;
    all.reserve(launches_.size());
    for (const Launch& launch : launches_) all.emplace_back(launch, queue, blocks_most_);
    return all;
  }

  bool has_equal_nodes(const std::vector<LaunchArguments>& now) const {
    for (size_t i = 0; i < now.size(); ++i)
      if (now[i].is_empty() != arguments_[i].is_empty()) return false;
    return true;
  }

  void update(const CudaQueue& queue) {
    std::vector<LaunchArguments> now = arguments_of(queue);
    if (!executable_ || queue_ != &queue || !has_equal_nodes(now)) {
      drop();
      arguments_ = std::move(now);
      build();
      queue_ = &queue;
    } else {
      tell(now);
      arguments_ = std::move(now);
    }
    has_changed_ = false;
  }

  void tell(const std::vector<LaunchArguments>& now) {
    const Gpu::Scope scope(*gpu_);
    for (size_t i = 0; i < now.size(); ++i) {
      if (now[i].is_empty() || now[i] == arguments_[i]) continue;
      const KernelNode node = now[i].node();
      gpu_->check(gpu_->functions().cuGraphExecKernelNodeSetParams(executable_, nodes_[i], &node),
                  "cuGraphExecKernelNodeSetParams");
    }
  }

  // A launch without anything to do has no node: who comes after it comes after what it does.
  void build() {
    const Gpu::Scope scope(*gpu_);
    const Functions& f = gpu_->functions();
    gpu_->check(f.cuGraphCreate(&graph_, 0), "cuGraphCreate");
    std::vector<std::vector<uint32_t>> stands_for(launches_.size());
    for (uint32_t i = 0; i < launches_.size(); ++i) {
      std::vector<uint32_t> after;
      for (const uint32_t before : launches_[i].after)
        after.insert(after.end(), stands_for[before].begin(), stands_for[before].end());
      std::ranges::sort(after);
      after.erase(std::ranges::unique(after).begin(), after.end());
      nodes_.push_back(nullptr);
      if (arguments_[i].is_empty()) {
        stands_for[i] = std::move(after);
        continue;
      }
      stands_for[i] = {i};
      std::vector<CUgraphNode_st*> nodes;
      for (const uint32_t before : after) nodes.push_back(nodes_[before]);
      const KernelNode node = arguments_[i].node();
      gpu_->check(f.cuGraphAddKernelNode(&nodes_[i], graph_, nodes.data(), nodes.size(), &node),
                  "cuGraphAddKernelNode");
    }
    gpu_->check(f.cuGraphInstantiateWithFlags(&executable_, graph_, 0),
                "cuGraphInstantiateWithFlags");
  }

  const Ref<Gpu> gpu_;
  const int64_t blocks_most_;
  const std::span<const Launch> launches_;
  const CudaQueue* queue_ = nullptr;
  bool has_changed_ = false;
  CUgraph_st* graph_ = nullptr;
  CUgraphExec_st* executable_ = nullptr;
  std::vector<CUgraphNode_st*> nodes_;  // by launch; null: nothing to do
  std::vector<LaunchArguments> arguments_;
};

// A single launch is no graph.
class Single : public Prepared {
 public:
  Single(Device& device, std::span<const Launch> launches) : device_(device), launches_(launches) {}
  void run(const Queue* queue, const StopSignal& stop) override {
    device_.launch_all(queue, launches_, stop);
  }

 private:
  Device& device_;
  const std::span<const Launch> launches_;
};

}  // namespace

Ref<Prepared> prepare_graph(Ref<Gpu> gpu, int64_t blocks_most, Device& device,
                            std::span<const Launch> launches) {
  if (launches.size() < 2) return make_ref<Single>(device, launches);
  return make_ref<Graph>(std::move(gpu), blocks_most, launches);
}

}  // namespace tiny::cuda
