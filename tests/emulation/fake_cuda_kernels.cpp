// The functions of libcuda.so.1 that are about code: assembling, modules, launches and graphs.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

#include "tests/emulation/fake_call.h"
#include "tests/emulation/fake_cuda.h"

using namespace tiny::emulation;  // NOLINT(google-build-using-namespace): all is of the emulator
using namespace tiny::cuda;       // NOLINT(google-build-using-namespace)

namespace {

constexpr std::string_view kCubinMark = "EMULATED CUBIN\n", kUnitMark = "EMULATED UNIT\n";
constexpr unsigned kThreadsMax = 1024, kGridMax = 65535;  // of a block; of a grid's y and z
constexpr uint32_t kSharedUnasked = 48 << 10;

uint32_t shared_most() {
  return static_cast<uint32_t>(attribute_of(kMaxSharedMemoryPerBlockOptin));
}

// The newest PTX of a driver: CUDA 11.0 brought 7.0, 12.0 brought 8.0, 13.0 brought 9.0; 12.6
// brought nothing.
uint32_t ptx_version_max() {
  const int64_t version = setting("FAKE_CUDA_VERSION", 12080);
  const int64_t missed = version >= 12060 && version < 13000 ? 1 : 0;
  return static_cast<uint32_t>((version / 1000 - 4) * 10 + version % 1000 / 10 - missed);
}

void say(LinkOption* options, void** values, unsigned count, const std::string& words) {
  char* log = nullptr;
  size_t room = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == kErrorLogBuffer) log = static_cast<char*>(values[i]);
    if (options[i] == kErrorLogBufferSizeBytes) room = reinterpret_cast<size_t>(values[i]);
  }
  if (!log || room == 0) return;
  const size_t length = std::min(room - 1, words.size());
  std::memcpy(log, words.data(), length);
  log[length] = '\0';
}

// Parses, and checks that this device and driver take it.
Result read_module(std::string_view text, Module& module, std::string& words) {
  try {
    module = parse_module(text);
  } catch (const Refused& r) {
    words = r.what();
    return kInvalidPtx;
  }
  if (module.version > ptx_version_max()) {
    words = "the driver does not know that version of PTX";
    return kUnsupportedPtxVersion;
  }
  const std::string target = module.target.substr(3);  // behind "sm_"
  const int64_t compute = setting("FAKE_CUDA_COMPUTE", 90);
  const int64_t wanted = std::strtoll(target.c_str(), nullptr, 10);
  if (wanted > compute || (target.ends_with('a') && wanted != compute)) {
    words = "the target " + module.target + " is not the device's";
    return kNoBinary;
  }
  return kSuccess;
}

// PTX, or what has been linked of several units.
Result read_image(std::string_view image, Module& module, std::string& words) {
  if (!image.starts_with(kCubinMark)) return read_module(image, module, words);
  image.remove_prefix(kCubinMark.size() + kUnitMark.size());
  Result result = kSuccess;
  for (bool goes_on = true; goes_on && result == kSuccess;) {
    const size_t end = image.find(kUnitMark);
    Module unit;
    result = read_module(image.substr(0, end), unit, words);
    module.entries.merge(unit.entries);
    if (!unit.entries.empty()) result = kInvalidImage;  // an entry twice
    goes_on = end != std::string_view::npos;
    if (goes_on) image.remove_prefix(end + kUnitMark.size());
  }
  return result;
}

Result check_geometry(const CUfunc_st& f, const KernelLaunch& launch) {
  const Entry& e = *f.entry;
  uint64_t threads = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    if (launch.grid[axis] == 0 || launch.block[axis] == 0) return kInvalidValue;
    if (axis > 0 && launch.grid[axis] > kGridMax) return kInvalidValue;
    threads *= launch.block[axis];
  }
  if (launch.grid[0] > 0x7FFFFFFFu || threads > kThreadsMax) return kInvalidValue;
  if (e.threads_max[0] > 0) {
    const uint64_t most = uint64_t{e.threads_max[0]} * e.threads_max[1] * e.threads_max[2];
    if (threads > most || (e.threads_are_exact && launch.block != e.threads_max))
      return kInvalidValue;
  }
  const uint32_t shared = e.shared_bytes + launch.dynamic_shared;
  const auto asked = static_cast<uint32_t>(f.dynamic_shared_max);
  if (launch.dynamic_shared > std::max(asked, kSharedUnasked) || shared > shared_most())
    return kInvalidValue;
  return kSuccess;
}

// The parameters' values are read now; what they point to is read when the kernel runs.
Result make_launch(CUfunc_st* f, std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block,
                   unsigned shared, void** parameters, KernelLaunch& launch) {
  launch = {f->entry, grid, block, shared, {}};
  launch.parameters.resize(f->entry->parameter_bytes);
  for (size_t i = 0; i < f->entry->parameters.size(); ++i) {
    const Parameter& p = f->entry->parameters[i];
    if (!parameters || !parameters[i]) return kInvalidValue;
    std::memcpy(launch.parameters.data() + p.offset, parameters[i], p.bytes);
  }
  return check_geometry(*f, launch);
}

bool is_known(FakeDriver&, const CUfunc_st* f, const CUctx_st* context) {
  return f != nullptr && f->context == context;
}

Result make_node(FakeCall& call, const KernelNode& from, CUgraphNode_st& node) {
  if (!is_known(call.driver, from.function, call.context())) return kInvalidHandle;
  node.function = from.function;
  return make_launch(from.function, {from.grid_x, from.grid_y, from.grid_z},
                     {from.block_x, from.block_y, from.block_z}, from.shared_bytes, from.parameters,
                     node.launch);
}

// Nodes in any order that their dependencies allow.
void run_graph(FakeDriver& driver, CUctx_st& context, const std::vector<KernelLaunch>& launches,
               const std::vector<std::vector<size_t>>& after) {
  std::mt19937_64 random(static_cast<uint64_t>(setting("FAKE_CUDA_SEED", 1)));
  std::vector<size_t> waits(launches.size()), ready;
  std::vector<std::vector<size_t>> before(launches.size());
  for (size_t i = 0; i < launches.size(); ++i) {
    waits[i] = after[i].size();
    for (const size_t other : after[i]) before[other].push_back(i);
    if (waits[i] == 0) ready.push_back(i);
  }
  while (!ready.empty() && context.lost == kSuccess) {
    std::swap(ready[random() % ready.size()], ready.back());
    const size_t next = ready.back();
    ready.pop_back();
    driver.run(context, launches[next]);
    for (const size_t other : before[next])
      if (--waits[other] == 0) ready.push_back(other);
  }
}

}  // namespace

extern "C" {

Result cuLinkCreate_v2(unsigned, LinkOption*, void**, CUlinkState_st** link) {
  FakeCall call("cuLinkCreate_v2", FakeCall::Needs::Context);
  if (call.result == kSuccess) *link = call.driver.links.make();
  return call.result;
}

Result cuLinkAddData_v2(CUlinkState_st* link, LinkInput kind, void* data, size_t bytes, const char*,
                        unsigned, LinkOption*, void**) {
  FakeCall call("cuLinkAddData_v2", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (!call.driver.links.find(link) || link->is_complete) return kInvalidHandle;
  const auto* text = static_cast<const char*>(data);
  if (kind != kLinkInputPtx || bytes == 0 || text[bytes - 1] != '\0') return kInvalidValue;
  Module module;
  std::string words;
  const Result result = read_module(text, module, words);
  if (result == kSuccess) link->text += std::string(kUnitMark) + text;
  return result;
}

Result cuLinkComplete(CUlinkState_st* link, void** image, size_t* bytes) {
  FakeCall call("cuLinkComplete", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (!call.driver.links.find(link) || link->text.empty()) return kInvalidHandle;
  link->text = std::string(kCubinMark) + link->text;
  link->is_complete = true;
  *image = link->text.data();
  *bytes = link->text.size() + 1;
  return kSuccess;
}

Result cuLinkDestroy(CUlinkState_st* link) {
  FakeCall call("cuLinkDestroy", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  return call.driver.links.erase(link) ? kSuccess : kInvalidHandle;
}

Result cuModuleLoadDataEx(CUmod_st** module, const void* image, unsigned count, LinkOption* options,
                          void** values) {
  FakeCall call("cuModuleLoadDataEx", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  CUmod_st* made = call.driver.modules.make();
  std::string words;
  const Result result = read_image(static_cast<const char*>(image), made->module, words);
  if (result != kSuccess) {
    call.driver.modules.erase(made);
    say(options, values, count, words);
    return result;
  }
  made->context = call.context();
  for (const auto& [name, entry] : made->module.entries) {
    auto& function = made->functions[name] = std::make_unique<CUfunc_st>();
    function->context = made->context;
    function->entry = &entry;
  }
  *module = made;
  return kSuccess;
}

Result cuModuleUnload(CUmod_st* module) {
  FakeCall call("cuModuleUnload", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  return call.driver.modules.erase(module) ? kSuccess : kInvalidHandle;
}

Result cuModuleGetFunction(CUfunc_st** function, CUmod_st* module, const char* name) {
  FakeCall call("cuModuleGetFunction", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (!call.driver.modules.find(module)) return kInvalidHandle;
  const auto found = module->functions.find(std::string_view(name));
  if (found == module->functions.end()) return kNotFound;
  *function = found->second.get();
  return kSuccess;
}

Result cuFuncSetAttribute(CUfunc_st* function, FunctionAttribute which, int value) {
  FakeCall call("cuFuncSetAttribute", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (!is_known(call.driver, function, call.context())) return kInvalidHandle;
  if (which != kMaxDynamicSharedSizeBytes || value < 0 ||
      static_cast<uint32_t>(value) + function->entry->shared_bytes > shared_most())
    return kInvalidValue;
  function->dynamic_shared_max = value;
  return kSuccess;
}

Result cuLaunchKernel(CUfunc_st* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                      CUstream_st* stream, void** parameters, void** extra) {
  FakeCall call("cuLaunchKernel", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  CUstream_st* on = call.driver.streams.find(stream);
  if (!on || !is_known(call.driver, function, call.context())) return kInvalidHandle;
  if (extra) return kInvalidValue;
  auto launch = std::make_shared<KernelLaunch>();
  const Result made = make_launch(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z},
                                  shared, parameters, *launch);
  if (made != kSuccess) return made;
  on->work.emplace_back(
      [&driver = call.driver, context = call.context(), launch] { driver.run(*context, *launch); });
  return kSuccess;
}

Result cuGraphCreate(CUgraph_st** graph, unsigned flags) {
  FakeCall call("cuGraphCreate", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (flags != 0) return kInvalidValue;
  *graph = call.driver.graphs.make();
  (*graph)->context = call.context();
  return kSuccess;
}

Result cuGraphAddKernelNode(CUgraphNode_st** node, CUgraph_st* graph, CUgraphNode_st* const* after,
                            size_t count, const KernelNode* of) {
  FakeCall call("cuGraphAddKernelNode", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (!call.driver.graphs.find(graph)) return kInvalidHandle;
  auto made = std::make_unique<CUgraphNode_st>();
  for (size_t i = 0; i < count; ++i) {
    const bool is_here = std::ranges::any_of(
        graph->nodes, [&](const auto& other) { return other.get() == after[i]; });
    if (!is_here || std::ranges::find(made->after, after[i]) != made->after.end())
      return kInvalidValue;
    made->after.push_back(after[i]);
  }
  const Result result = make_node(call, *of, *made);
  if (result != kSuccess) return result;
  *node = made.get();
  graph->nodes.push_back(std::move(made));
  return kSuccess;
}

Result cuGraphInstantiateWithFlags(CUgraphExec_st** executable, CUgraph_st* graph,
                                   unsigned long long flags) {
  FakeCall call("cuGraphInstantiateWithFlags", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (!call.driver.graphs.find(graph)) return kInvalidHandle;
  if (flags != 0) return kInvalidValue;
  CUgraphExec_st* made = call.driver.executables.make();
  made->context = graph->context;
  for (const auto& node : graph->nodes) {
    made->numbers[node.get()] = made->nodes.size();
    made->nodes.push_back(*node);
    std::vector<size_t> after;
    for (const CUgraphNode_st* other : node->after) after.push_back(made->numbers.at(other));
    made->after.push_back(std::move(after));
  }
  *executable = made;
  return kSuccess;
}

Result cuGraphExecKernelNodeSetParams(CUgraphExec_st* executable, CUgraphNode_st* node,
                                      const KernelNode* of) {
  FakeCall call("cuGraphExecKernelNodeSetParams", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (!call.driver.executables.find(executable)) return kInvalidHandle;
  const auto found = executable->numbers.find(node);
  if (found == executable->numbers.end()) return kInvalidValue;
  return make_node(call, *of, executable->nodes[found->second]);
}

Result cuGraphLaunch(CUgraphExec_st* executable, CUstream_st* stream) {
  FakeCall call("cuGraphLaunch", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  CUstream_st* on = call.driver.streams.find(stream);
  if (!on || !call.driver.executables.find(executable)) return kInvalidHandle;
  std::vector<KernelLaunch> launches;
  for (const CUgraphNode_st& node : executable->nodes) launches.push_back(node.launch);
  on->work.emplace_back(
      [&driver = call.driver, context = call.context(), launches = std::move(launches),
       after = executable->after] { run_graph(driver, *context, launches, after); });
  return kSuccess;
}

Result cuGraphExecDestroy(CUgraphExec_st* executable) {
  FakeCall call("cuGraphExecDestroy", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  return call.driver.executables.erase(executable) ? kSuccess : kInvalidHandle;
}

Result cuGraphDestroy(CUgraph_st* graph) {
  FakeCall call("cuGraphDestroy", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  return call.driver.graphs.erase(graph) ? kSuccess : kInvalidHandle;
}
}
