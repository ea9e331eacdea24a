#include "tests/runtime/fake_opencl.h"

#include <algorithm>
#include <cstring>
#include <memory>

// The test program gives these to whoever looks for them in it.
#define FAKE extern "C" __attribute__((visibility("default")))

using tiny::fake_opencl::Device;
using tiny::fake_opencl::driver;

struct _cl_mem {
  std::vector<std::byte> bytes;
};
struct _cl_event {
  cl_ulong time;
};

namespace tiny::fake_opencl {

Driver& driver() {
  static Driver one;
  return one;
}

}  // namespace tiny::fake_opencl

namespace {

// Objects of which nothing but their number matters.
char thing;

cl_int called(const char* function) {
  ++driver().calls[function];
  const auto planted = driver().planted.find(function);
  if (planted == driver().planted.end()) return CL_SUCCESS;
  const cl_int code = planted->second;
  driver().planted.erase(planted);
  return code;
}

template <class T>
T made(const char* function, T object, cl_int* code) {
  *code = called(function);
  if (*code != CL_SUCCESS) return nullptr;
  ++driver().live;
  return object;
}
template <class T>
T made(const char* function, cl_int* code) {
  return made(function, reinterpret_cast<T>(&thing), code);
}

cl_int released(const char* function) {
  --driver().live;
  return called(function);
}

cl_int give(const void* value, size_t value_size, size_t size, void* out, size_t* needed) {
  if (needed) *needed = value_size;
  if (out) std::memcpy(out, value, std::min(size, value_size));
  return CL_SUCCESS;
}
cl_int give(const std::string& text, size_t size, void* out, size_t* needed) {
  return give(text.c_str(), text.size() + 1, size, out, needed);
}

// Devices are told by their number and one; a part of the first one by how many units it has.
constexpr uintptr_t kPart = 1000;
const Device& device_of(cl_device_id id) {
  const auto number = reinterpret_cast<uintptr_t>(id);
  return driver().devices[number < kPart ? number - 1 : 0];
}
cl_uint units_of(cl_device_id id) {
  const auto number = reinterpret_cast<uintptr_t>(id);
  return number < kPart ? driver().units : static_cast<cl_uint>(number - kPart);
}

}  // namespace

FAKE cl_int clGetPlatformIDs(cl_uint count, cl_platform_id* out, cl_uint* needed) {
  if (needed) *needed = 1;
  if (count > 0) *out = reinterpret_cast<cl_platform_id>(&thing);
  return called(__func__);
}

FAKE cl_int clGetPlatformInfo(cl_platform_id, cl_platform_info, size_t size, void* out,
                              size_t* needed) {
  return give("Fakes", size, out, needed);
}

FAKE cl_int clGetDeviceIDs(cl_platform_id, cl_device_type, cl_uint count, cl_device_id* out,
                           cl_uint* needed) {
  if (needed) *needed = static_cast<cl_uint>(driver().devices.size());
  for (size_t i = 0; i < count; ++i) out[i] = reinterpret_cast<cl_device_id>(i + 1);
  return driver().devices.empty() ? CL_DEVICE_NOT_FOUND : called(__func__);
}

FAKE cl_int clGetDeviceInfo(cl_device_id id, cl_device_info what, size_t size, void* out,
                            size_t* needed) {
  const Device& device = device_of(id);
  const auto number = [&](auto value) { return give(&value, sizeof value, size, out, needed); };
  switch (what) {
    case CL_DEVICE_NAME:
      return give(device.model, size, out, needed);
    case CL_DEVICE_VERSION:
      return give(device.version, size, out, needed);
    case CL_DRIVER_VERSION:
      return give("7", size, out, needed);
    case CL_DEVICE_PROFILE:
      return give("FULL_PROFILE", size, out, needed);
    case CL_DEVICE_EXTENSIONS:
      return give(device.extensions, size, out, needed);
    case CL_DEVICE_SINGLE_FP_CONFIG:
      return number(device.floats);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
      return number(size_t{1024});
    case CL_DEVICE_MAX_COMPUTE_UNITS:
      return number(units_of(id));
    case CL_DEVICE_TYPE:
      return number(driver().type);
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE:
    case CL_DEVICE_ENDIAN_LITTLE:
      return number(cl_bool{CL_TRUE});
    default:
      return number(cl_ulong{1} << 30);
  }
}

// By counts alone.
FAKE cl_int clCreateSubDevices(cl_device_id, const cl_device_partition_property* how, cl_uint count,
                               cl_device_id* out, cl_uint* made) {
  const cl_int code = called(__func__);
  if (code != CL_SUCCESS) return code;
  cl_uint units = 0, parts = 0;
  while (how[1 + parts] != CL_DEVICE_PARTITION_BY_COUNTS_LIST_END)
    units += static_cast<cl_uint>(how[1 + parts++]);
  if (how[0] != CL_DEVICE_PARTITION_BY_COUNTS || units > driver().units || parts != count)
    return CL_INVALID_DEVICE_PARTITION_COUNT;
  for (cl_uint i = 0; i < parts; ++i)
    out[i] = reinterpret_cast<cl_device_id>(kPart + static_cast<uintptr_t>(how[1 + i]));
  driver().live += parts;
  if (made) *made = parts;
  return CL_SUCCESS;
}
FAKE cl_int clReleaseDevice(cl_device_id) {
  return released(__func__);
}

FAKE cl_context clCreateContext(const cl_context_properties*, cl_uint, const cl_device_id*,
                                void (*)(const char*, const void*, size_t, void*), void*,
                                cl_int* code) {
  return made<cl_context>(__func__, code);
}
FAKE cl_int clReleaseContext(cl_context) {
  return released(__func__);
}

FAKE cl_command_queue clCreateCommandQueue(cl_context, cl_device_id, cl_command_queue_properties,
                                           cl_int* code) {
  return made<cl_command_queue>(__func__, code);
}
FAKE cl_int clReleaseCommandQueue(cl_command_queue) {
  return released(__func__);
}

FAKE cl_mem clCreateBuffer(cl_context, cl_mem_flags, size_t size, void*, cl_int* code) {
  auto memory = std::make_unique<_cl_mem>();
  cl_mem out = made(__func__, memory.get(), code);
  if (!out) return nullptr;
  memory->bytes.resize(size);
  return memory.release();
}
FAKE cl_int clReleaseMemObject(cl_mem memory) {
  delete memory;
  return released(__func__);
}

FAKE cl_int clEnqueueReadBuffer(cl_command_queue, cl_mem from, cl_bool, size_t offset, size_t size,
                                void* to, cl_uint, const cl_event*, cl_event*) {
  std::memcpy(to, from->bytes.data() + offset, size);
  return called(__func__);
}
FAKE cl_int clEnqueueWriteBuffer(cl_command_queue, cl_mem to, cl_bool, size_t offset, size_t size,
                                 const void* from, cl_uint, const cl_event*, cl_event*) {
  std::memcpy(to->bytes.data() + offset, from, size);
  return called(__func__);
}
FAKE cl_int clEnqueueCopyBuffer(cl_command_queue, cl_mem from, cl_mem to, size_t from_offset,
                                size_t to_offset, size_t size, cl_uint, const cl_event*,
                                cl_event*) {
  std::memcpy(to->bytes.data() + to_offset, from->bytes.data() + from_offset, size);
  return called(__func__);
}
FAKE cl_int clEnqueueFillBuffer(cl_command_queue, cl_mem to, const void* pattern, size_t of,
                                size_t offset, size_t size, cl_uint, const cl_event*, cl_event*) {
  for (size_t at = 0; at < size; at += of) std::memcpy(to->bytes.data() + offset + at, pattern, of);
  return called(__func__);
}

FAKE cl_program clCreateProgramWithSource(cl_context, cl_uint, const char**, const size_t*,
                                          cl_int* code) {
  return made<cl_program>(__func__, code);
}
FAKE cl_int clBuildProgram(cl_program, cl_uint, const cl_device_id*, const char* options,
                           void (*)(cl_program, void*), void*) {
  driver().options.push_back(options);
  return called(__func__);
}
FAKE cl_int clGetProgramBuildInfo(cl_program, cl_device_id, cl_program_build_info, size_t size,
                                  void* out, size_t* needed) {
  return give(driver().log, size, out, needed);
}
FAKE cl_int clReleaseProgram(cl_program) {
  return released(__func__);
}

FAKE cl_kernel clCreateKernel(cl_program, const char*, cl_int* code) {
  return made<cl_kernel>(__func__, code);
}
FAKE cl_int clReleaseKernel(cl_kernel) {
  return released(__func__);
}
FAKE cl_int clSetKernelArg(cl_kernel, cl_uint, size_t, const void*) {
  return called(__func__);
}
FAKE cl_int clGetKernelWorkGroupInfo(cl_kernel, cl_device_id, cl_kernel_work_group_info,
                                     size_t size, void* out, size_t* needed) {
  return give(&driver().group, sizeof driver().group, size, out, needed);
}
FAKE cl_int clEnqueueNDRangeKernel(cl_command_queue, cl_kernel, cl_uint, const size_t*,
                                   const size_t*, const size_t* local, cl_uint, const cl_event*,
                                   cl_event*) {
  driver().items.push_back(*local);
  return called(__func__);
}

FAKE cl_int clEnqueueMarkerWithWaitList(cl_command_queue, cl_uint, const cl_event*, cl_event* out) {
  cl_int code = CL_SUCCESS;
  static cl_ulong now = 0;
  auto event = std::make_unique<_cl_event>(_cl_event{++now});
  *out = made(__func__, event.get(), &code);
  if (*out) event.release();
  return code;
}
FAKE cl_int clReleaseEvent(cl_event event) {
  delete event;
  return released(__func__);
}
FAKE cl_int clGetEventProfilingInfo(cl_event event, cl_profiling_info, size_t size, void* out,
                                    size_t* needed) {
  return give(&event->time, sizeof event->time, size, out, needed);
}
FAKE cl_int clGetEventInfo(cl_event, cl_event_info, size_t size, void* out, size_t* needed) {
  const cl_int state = CL_COMPLETE;
  return give(&state, sizeof state, size, out, needed);
}
FAKE cl_int clWaitForEvents(cl_uint, const cl_event*) {
  return called(__func__);
}
FAKE cl_int clFlush(cl_command_queue) {
  return called(__func__);
}
FAKE cl_int clFinish(cl_command_queue) {
  return called(__func__);
}
