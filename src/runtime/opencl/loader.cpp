#include "runtime/opencl/loader.h"

#include <dlfcn.h>

namespace tiny::opencl {
namespace {

constexpr const char* kLibrary = "libOpenCL.so.1";

struct NamedError {
  cl_int code;
  const char* name;
};
#define TINY_ERROR(name) {name, #name}
constexpr NamedError kErrors[] = {
    TINY_ERROR(CL_DEVICE_NOT_FOUND),
    TINY_ERROR(CL_DEVICE_NOT_AVAILABLE),
    TINY_ERROR(CL_COMPILER_NOT_AVAILABLE),
    TINY_ERROR(CL_MEM_OBJECT_ALLOCATION_FAILURE),
    TINY_ERROR(CL_OUT_OF_RESOURCES),
    TINY_ERROR(CL_OUT_OF_HOST_MEMORY),
    TINY_ERROR(CL_PROFILING_INFO_NOT_AVAILABLE),
    TINY_ERROR(CL_MEM_COPY_OVERLAP),
    TINY_ERROR(CL_BUILD_PROGRAM_FAILURE),
    TINY_ERROR(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
    TINY_ERROR(CL_COMPILE_PROGRAM_FAILURE),
    TINY_ERROR(CL_DEVICE_PARTITION_FAILED),
    TINY_ERROR(CL_INVALID_DEVICE_PARTITION_COUNT),
    TINY_ERROR(CL_LINKER_NOT_AVAILABLE),
    TINY_ERROR(CL_LINK_PROGRAM_FAILURE),
    TINY_ERROR(CL_INVALID_VALUE),
    TINY_ERROR(CL_INVALID_DEVICE_TYPE),
    TINY_ERROR(CL_INVALID_PLATFORM),
    TINY_ERROR(CL_INVALID_DEVICE),
    TINY_ERROR(CL_INVALID_CONTEXT),
    TINY_ERROR(CL_INVALID_QUEUE_PROPERTIES),
    TINY_ERROR(CL_INVALID_COMMAND_QUEUE),
    TINY_ERROR(CL_INVALID_HOST_PTR),
    TINY_ERROR(CL_INVALID_MEM_OBJECT),
    TINY_ERROR(CL_INVALID_BINARY),
    TINY_ERROR(CL_INVALID_BUILD_OPTIONS),
    TINY_ERROR(CL_INVALID_PROGRAM),
    TINY_ERROR(CL_INVALID_PROGRAM_EXECUTABLE),
    TINY_ERROR(CL_INVALID_KERNEL_NAME),
    TINY_ERROR(CL_INVALID_KERNEL_DEFINITION),
    TINY_ERROR(CL_INVALID_KERNEL),
    TINY_ERROR(CL_INVALID_ARG_INDEX),
    TINY_ERROR(CL_INVALID_ARG_VALUE),
    TINY_ERROR(CL_INVALID_ARG_SIZE),
    TINY_ERROR(CL_INVALID_KERNEL_ARGS),
    TINY_ERROR(CL_INVALID_WORK_DIMENSION),
    TINY_ERROR(CL_INVALID_WORK_GROUP_SIZE),
    TINY_ERROR(CL_INVALID_WORK_ITEM_SIZE),
    TINY_ERROR(CL_INVALID_GLOBAL_OFFSET),
    TINY_ERROR(CL_INVALID_EVENT_WAIT_LIST),
    TINY_ERROR(CL_INVALID_EVENT),
    TINY_ERROR(CL_INVALID_OPERATION),
    TINY_ERROR(CL_INVALID_BUFFER_SIZE),
    TINY_ERROR(CL_INVALID_GLOBAL_WORK_SIZE),
    TINY_ERROR(CL_INVALID_PROPERTY),
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},  // of the extension that finds drivers
};
#undef TINY_ERROR

// A library that the process sees already, else our own; it stays.
void* opened_library() {
  if (dlsym(RTLD_DEFAULT, "clGetPlatformIDs")) return RTLD_DEFAULT;
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const char* why = library ? nullptr : dlerror();
  require(library != nullptr, Status::Device, "OpenCL: ", kLibrary, " cannot be opened (",
          why ? why : "no reason given", "); a driver's package or \"ocl-icd-libopencl1\" has it");
  return library;
}

template <class F>
void find(void* library, const char* name, F& function) {
  void* address = dlsym(library, name);
  require(address != nullptr, Status::Device, "OpenCL: ", kLibrary, " has no ", name,
          ": it is older than version 1.2");
  function = reinterpret_cast<F>(address);
}

}  // namespace

Functions load_functions() {
  Functions out;
  void* library = opened_library();
#define TINY_FUNCTION(name) find(library, #name, out.name);
  TINY_OPENCL_FUNCTIONS(TINY_FUNCTION)
#undef TINY_FUNCTION
  return out;
}

std::string name_of_error(cl_int code) {
  for (const NamedError& e : kErrors)
    if (e.code == code) return e.name;
  return cat("error ", code);
}

Status status_of_error(cl_int code) {
  switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
      return Status::OutOfMemory;
    case CL_DEVICE_NOT_AVAILABLE:
    case CL_INVALID_COMMAND_QUEUE:
    case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST:
      return Status::DeviceLost;
    default:
      return Status::Device;
  }
}

void check(cl_int code, const char* call, const std::string& what) {
  if (code == CL_SUCCESS) return;
  throw_error(status_of_error(code), "OpenCL: ", call, " failed with ", name_of_error(code), ", ",
              what);
}

}  // namespace tiny::opencl
