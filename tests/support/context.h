// Contexts for tests: the settings of the environment on a device that the test names.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "cost/group_machines.h"
#include "engine/backend.h"
#include "engine/context.h"

namespace tiny::testing {

// The environment's flags with this device; `isa` where it is not empty.
inline Flags flags_for(const std::string& device, const std::string& isa = "") {
  Flags flags = Flags::from_environment(nullptr);
  flags.device = device;
  if (!isa.empty()) flags.isa = isa;
  return flags;
}

inline Ref<Context> new_context(const std::string& device, const std::string& isa = "") {
  return make_ref<Context>(flags_for(device, isa));
}

// One that makes kernels, on one thread and without a cache, and computes nothing.
inline Ref<Context> planning_context() {
  Flags flags = flags_for("null");
  flags.cache = 0;
  flags.threads = 1;
  return make_ref<Context>(flags);
}

// Whether the environment has choices made for a machine that computes in groups: devices that
// stand for any machine do so for this one.
inline bool is_for_groups() {
  return find_group_machine(Flags::from_environment(nullptr).processor) != nullptr;
}

// The devices of this machine that compute something; but for those of drivers, which take a tenth
// of a second and more to compile a kernel (has_opencl, has_cuda).
inline std::vector<BackendInfo> computing_backends() {
  constexpr std::string_view kOthers[] = {"null", "hip", "metal", "wgsl", "opencl", "cuda"};
  std::vector<BackendInfo> found;
  for (const BackendInfo& backend : known_backends(Drivers::LeaveClosed)) {
    const bool can_be_any = backend.name == "interp" || backend.name == "far";
    if (is_for_groups() && !can_be_any) continue;
    if (backend.available && std::ranges::find(kOthers, backend.name) == std::end(kOthers))
      found.push_back(backend);
  }
  return found;
}

// Whether a driver of OpenCL has a device that can be used.
inline bool has_opencl() {
  if (is_for_groups()) return false;
  for (const BackendInfo& backend : known_backends())
    if (backend.available && backend.name == "opencl") return true;
  return false;
}

// Whether the driver of CUDA, or the emulated one, has a device that can be used.
inline bool has_cuda() {
  if (is_for_groups()) return false;
  for (const BackendInfo& backend : known_backends())
    if (backend.available && backend.name.starts_with("cuda:")) return true;
  return false;
}

// Their names.
inline std::vector<std::string> computing_devices() {
  std::vector<std::string> names;
  for (const BackendInfo& backend : computing_backends()) names.push_back(backend.name);
  return names;
}

}  // namespace tiny::testing
