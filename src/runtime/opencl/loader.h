// The functions of OpenCL 1.2, of a library that is opened when they are first asked for, and what
// its errors are called.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <cstdint>
#include <string>

#include "base/error.h"

namespace tiny::opencl {

// clang-format off
#define TINY_OPENCL_FUNCTIONS(F)                                                                  \
  F(clGetPlatformIDs) F(clGetPlatformInfo) F(clGetDeviceIDs) F(clGetDeviceInfo)                   \
  F(clCreateSubDevices) F(clReleaseDevice)                                                        \
  F(clCreateContext) F(clReleaseContext) F(clCreateCommandQueue) F(clReleaseCommandQueue)         \
  F(clCreateBuffer) F(clReleaseMemObject)                                                         \
  F(clEnqueueReadBuffer) F(clEnqueueWriteBuffer) F(clEnqueueCopyBuffer) F(clEnqueueFillBuffer)    \
  F(clCreateProgramWithSource) F(clBuildProgram) F(clGetProgramBuildInfo) F(clReleaseProgram)     \
  F(clCreateKernel) F(clReleaseKernel) F(clSetKernelArg) F(clGetKernelWorkGroupInfo)              \
  F(clEnqueueNDRangeKernel) F(clEnqueueMarkerWithWaitList) F(clReleaseEvent)                      \
  F(clGetEventProfilingInfo) F(clGetEventInfo) F(clWaitForEvents) F(clFlush) F(clFinish)
// clang-format on

struct Functions {
#define TINY_FUNCTION(name) decltype(&::name) name = nullptr;
  TINY_OPENCL_FUNCTIONS(TINY_FUNCTION)
#undef TINY_FUNCTION
};

// Error{Device} where there is no libOpenCL.so.1, or an older one.  It stays open: drivers have
// threads of their own.  A library that the process has loaded for all, or that was loaded before
// it (a tracer, a simulator), is taken as it is.
Functions load_functions();

// "CL_OUT_OF_RESOURCES", or the number of an error that has no name here.
std::string name_of_error(cl_int code);
// OutOfMemory, DeviceLost, or Device.
Status status_of_error(cl_int code);

// Error unless the call succeeded: "OpenCL: clBuildProgram: CL_.., for WHAT".
void check(cl_int code, const char* call, const std::string& what);

}  // namespace tiny::opencl
