#include "runtime/opencl/connection.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/text.h"

namespace tiny::opencl {
namespace {

constexpr int64_t kUnitBytes = 256;  // what Device::allocate promises to be aligned to

int64_t in_units(int64_t bytes) {
  return std::max<int64_t>((bytes + kUnitBytes - 1) / kUnitBytes, 1) * kUnitBytes;
}

std::string text_of(const Functions& cl, cl_device_id id, cl_device_info what) {
  size_t size = 0;
  if (cl.clGetDeviceInfo(id, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
  std::string text(size, '\0');
  if (cl.clGetDeviceInfo(id, what, size, text.data(), nullptr) != CL_SUCCESS) return "";
  return text.c_str();  // up to the end mark
}

std::string text_of(const Functions& cl, cl_platform_id id, cl_platform_info what) {
  size_t size = 0;
  if (cl.clGetPlatformInfo(id, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
  std::string text(size, '\0');
  if (cl.clGetPlatformInfo(id, what, size, text.data(), nullptr) != CL_SUCCESS) return "";
  return text.c_str();
}

template <class T>
T fact_of(const Functions& cl, cl_device_id id, cl_device_info what) {
  T value{};
  return cl.clGetDeviceInfo(id, what, sizeof value, &value, nullptr) == CL_SUCCESS ? value : T{};
}

bool has_word(const std::string& text, const std::string& word) {
  return cat(" ", text, " ").find(cat(" ", word, " ")) != std::string::npos;
}

// Whether "OpenCL 3.0 .." is 1.2 or later.
bool is_new_enough(const std::string& version) {
  int major = 0, minor = 0;
  if (std::sscanf(version.c_str(), "OpenCL %d.%d", &major, &minor) != 2) return false;
  return major > 1 || (major == 1 && minor >= 2);
}

bool has_float64(const Functions& cl, cl_device_id id) {
  return has_word(text_of(cl, id, CL_DEVICE_EXTENSIONS), "cl_khr_fp64");
}
bool rounds_divisions(cl_device_fp_config floats) {
  return (floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
}

// The first thing that kernels need and the device has not.
std::string missing(const Functions& cl, cl_device_id id) {
  if (!fact_of<cl_bool>(cl, id, CL_DEVICE_AVAILABLE)) return "the driver says it is not available";
  const std::string version = text_of(cl, id, CL_DEVICE_VERSION);
  if (!is_new_enough(version)) return cat("it has \"", version, "\", and 1.2 is needed");
  if (!fact_of<cl_bool>(cl, id, CL_DEVICE_COMPILER_AVAILABLE)) return "the driver has no compiler";
  if (text_of(cl, id, CL_DEVICE_PROFILE) != "FULL_PROFILE")
    return "it has OpenCL's embedded profile, whose arithmetic is less exact";
  if (!fact_of<cl_bool>(cl, id, CL_DEVICE_ENDIAN_LITTLE)) return "its bytes are in the other order";
  const auto floats = fact_of<cl_device_fp_config>(cl, id, CL_DEVICE_SINGLE_FP_CONFIG);
  struct Need {
    cl_device_fp_config bit;
    const char* what;
  };
  constexpr Need kNeeds[] = {{CL_FP_INF_NAN, "infinities and NaN"},
                             {CL_FP_ROUND_TO_NEAREST, "rounding to nearest"},
                             {CL_FP_DENORM, "denormal numbers"}};
  for (const Need& need : kNeeds)
    if (!(floats & need.bit)) return cat("its floats have no ", need.what);
  if (!rounds_divisions(floats) && !has_float64(cl, id))
    return "its floats have no correctly rounded divisions, nor float64 to compute them in";
  return "";
}

Facts facts_of(const Functions& cl, cl_platform_id platform, cl_device_id id, std::string name) {
  Facts facts;
  facts.name = std::move(name);
  facts.model = text_of(cl, id, CL_DEVICE_NAME);
  facts.platform =
      cat(text_of(cl, platform, CL_PLATFORM_NAME), ", ", text_of(cl, id, CL_DEVICE_VERSION),
          ", driver ", text_of(cl, id, CL_DRIVER_VERSION));
  facts.missing = missing(cl, id);
  facts.memory_bytes = static_cast<int64_t>(fact_of<cl_ulong>(cl, id, CL_DEVICE_GLOBAL_MEM_SIZE));
  facts.buffer_bytes =
      static_cast<int64_t>(fact_of<cl_ulong>(cl, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  facts.shared_bytes = static_cast<int64_t>(fact_of<cl_ulong>(cl, id, CL_DEVICE_LOCAL_MEM_SIZE));
  facts.group_threads =
      static_cast<int64_t>(fact_of<size_t>(cl, id, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  facts.units = fact_of<cl_uint>(cl, id, CL_DEVICE_MAX_COMPUTE_UNITS);
  const auto kinds =
      fact_of<cl_device_type>(cl, id, CL_DEVICE_TYPE) & ~cl_device_type{CL_DEVICE_TYPE_DEFAULT};
  facts.is_processor = kinds == CL_DEVICE_TYPE_CPU;
  facts.vector_bytes = static_cast<int32_t>(
      fact_of<cl_uint>(cl, id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT) * sizeof(cl_float));
  facts.has_float64 = has_float64(cl, id);
  facts.rounds_divisions =
      rounds_divisions(fact_of<cl_device_fp_config>(cl, id, CL_DEVICE_SINGLE_FP_CONFIG));
  return facts;
}

FoundDevice device_of_number(const Functions& cl, int64_t number) {
  std::vector<FoundDevice> found = find_devices(cl);
  require(!found.empty(), Status::Device,
          "OpenCL: no driver has a device here; \"tiny devices\" lists what there is, and Debian's "
          "package \"pocl-opencl-icd\" makes the processor one");
  require(number < std::ssize(found), Status::Device, "OpenCL: no device \"opencl:", number,
          "\": there ", found.size() == 1 ? "is 1" : cat("are ", found.size()),
          ", numbered from 0");
  FoundDevice& device = found[static_cast<size_t>(number)];
  require(device.facts.missing.empty(), Status::Unsupported, "the device \"", device.facts.name,
          "\" (", device.facts.model, ") cannot be used: ", device.facts.missing);
  return std::move(device);
}

}  // namespace

std::vector<FoundDevice> find_devices(const Functions& cl) {
  cl_uint count = 0;
  if (cl.clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) return {};
  std::vector<cl_platform_id> platforms(count);
  if (cl.clGetPlatformIDs(count, platforms.data(), nullptr) != CL_SUCCESS) return {};
  std::vector<FoundDevice> found;
  for (cl_platform_id platform : platforms) {
    count = 0;
    if (cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) continue;
    std::vector<cl_device_id> ids(count);
    if (count == 0 ||
        cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr) != CL_SUCCESS)
      continue;
    for (cl_device_id id : ids) {
      const std::string name = found.empty() ? "opencl" : cat("opencl:", found.size());
      found.push_back({platform, id, facts_of(cl, platform, id, name)});
    }
  }
  return found;
}

Connection::Connection(const DeviceNumber& which, int64_t kept_most)
    : functions_(load_functions()),
      found_(device_of_number(functions_, which.number)),
      process_(getpid()),
      kept_most_(kept_most) {
  kept_.reserve(kMost);
  if (which.parts > 1) become_part(which);
  cl_int code = CL_SUCCESS;
  context_ = functions_.clCreateContext(nullptr, 1, &found_.id, nullptr, nullptr, &code);
  if (code != CL_SUCCESS && is_part_) functions_.clReleaseDevice(found_.id);
  check(code, "clCreateContext", cat("for ", facts().model));
}

// All parts are made, so that those of one number are the same units whoever asks; the others are
// given back.
void Connection::become_part(const DeviceNumber& which) {
  const std::string whole = facts().name;
  const int64_t units = facts().units;
  require(which.parts <= units, Status::Device, "OpenCL: the device \"", whole, "\" has ", units,
          units == 1 ? " unit" : " units", ", too few for ", which.parts, " parts");
  std::vector<cl_device_partition_property> counts = {CL_DEVICE_PARTITION_BY_COUNTS};
  for (int64_t i = 0; i < which.parts; ++i)
    counts.push_back(units / which.parts + (i < units % which.parts ? 1 : 0));
  counts.insert(counts.end(), {CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0});
  std::vector<cl_device_id> parts(static_cast<size_t>(which.parts));
  check(functions_.clCreateSubDevices(found_.id, counts.data(), static_cast<cl_uint>(parts.size()),
                                      parts.data(), nullptr),
        "clCreateSubDevices", cat("for ", which.parts, " parts of the device \"", whole, "\""));
  const auto own = static_cast<size_t>(which.part);
  for (size_t i = 0; i < parts.size(); ++i)
    if (i != own) functions_.clReleaseDevice(parts[i]);
  is_part_ = true;
  found_.id = parts[own];
  found_.facts = facts_of(functions_, found_.platform, found_.id,
                          cat("opencl:", which.number, ".", which.part, "/", which.parts));
}

Connection::~Connection() {
  if (!is_here()) return;  // what a child has of it is the parent's
  drop_all();
  if (context_) functions_.clReleaseContext(context_);
  if (is_part_) functions_.clReleaseDevice(found_.id);
}

bool Connection::is_here() const {
  return getpid() == process_;
}

void Connection::check_usable() const {
  require(is_here(), Status::DeviceLost, "the device \"", facts().name,
          "\" stayed behind in a fork: a child makes a context of its own");
  require(!is_lost_.load(std::memory_order_acquire), Status::DeviceLost, "the device \"",
          facts().name, "\" was lost: ", lost_by_);
}

void Connection::check(cl_int code, const char* call, const std::string& what) {
  if (code == CL_SUCCESS) return;
  if (status_of_error(code) == Status::DeviceLost) lose(code, call);
  opencl::check(code, call, what);
}

void Connection::check_done(cl_int code, const char* call, const std::string& what) {
  if (code == CL_SUCCESS) return;
  if (code == CL_OUT_OF_RESOURCES) {
    lose(code, call);
    check_usable();
  }
  check(code, call, what);
}

void Connection::lose(cl_int code, const char* call) {
  const std::lock_guard held(lock_);
  if (is_lost_.load(std::memory_order_relaxed)) return;
  lost_by_ = cat("OpenCL: ", call, " failed with ", name_of_error(code));
  is_lost_.store(true, std::memory_order_release);
}

cl_mem Connection::new_memory(int64_t bytes, cl_int& code) const {
  return functions_.clCreateBuffer(context_, CL_MEM_READ_WRITE, static_cast<size_t>(bytes), nullptr,
                                   &code);
}

cl_mem Connection::take_memory(int64_t bytes) {
  check_usable();
  const int64_t size = in_units(bytes);
  require(size <= facts().buffer_bytes, Status::OutOfMemory, "a buffer of ", bytes,
          " bytes: the device \"", facts().name, "\" has buffers of at most ",
          facts().buffer_bytes);
  cl_int code = CL_SUCCESS;
  const std::lock_guard held(lock_);
  const auto known =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) { return k.bytes == size; });
  cl_mem memory = known == kept_.end() ? nullptr : known->memory;
  if (memory) {
    kept_.erase(known);
    kept_bytes_ -= size;
  } else {
    memory = new_memory(size, code);
    if (code != CL_SUCCESS && !kept_.empty()) {
      drop_all();
      memory = new_memory(size, code);
    }
  }
  opencl::check(code, "clCreateBuffer",
                cat("for ", bytes, " bytes on the device \"", facts().name, "\""));
  used_ += size;
  used_most_ = std::max(used_most_, used_);
  return memory;
}

void Connection::give_memory(cl_mem memory, int64_t bytes) {
  if (!is_here()) return;
  const int64_t size = in_units(bytes);
  const std::lock_guard held(lock_);
  used_ -= size;
  const bool has_room = kept_.size() < kMost && kept_bytes_ + size <= kept_most_ &&
                        used_ + kept_bytes_ + size <= used_most_;
  if (!has_room || is_lost_.load(std::memory_order_relaxed)) {
    functions_.clReleaseMemObject(memory);
    return;
  }
  kept_.push_back({size, memory});
  kept_bytes_ += size;
}

int64_t Connection::kept_bytes() {
  const std::lock_guard held(lock_);
  return kept_bytes_;
}

void Connection::release_kept() {
  const std::lock_guard held(lock_);
  drop_all();
}

void Connection::drop_all() {
  for (const Kept& kept : kept_) functions_.clReleaseMemObject(kept.memory);
  kept_.clear();
  kept_bytes_ = 0;
}

}  // namespace tiny::opencl
