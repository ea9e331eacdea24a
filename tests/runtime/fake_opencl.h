// A driver of OpenCL in this program, which the loader finds before any library: it has memory and
// queues, runs no kernel, counts what lives, and fails where a test plants an error.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/opencl/loader.h"

namespace tiny::fake_opencl {

struct Device {
  std::string model = "Fake";
  std::string version = "OpenCL 1.2 fake";
  std::string extensions = "cl_khr_fp64 cl_other";
  cl_device_fp_config floats =
      CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST | CL_FP_DENORM | CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
};

struct Driver {
  std::vector<Device> devices = {{}};
  std::map<std::string, cl_int> planted;  // by function: what its next call gives
  std::map<std::string, int> calls;
  std::string log;    // of the compiler
  int64_t live = 0;   // objects that were not released
  size_t group = 64;  // what a compiled kernel may have
  cl_uint units = 2;  // of each device
  cl_device_type type = CL_DEVICE_TYPE_GPU;
  std::vector<size_t> items;  // of a group, along the first axis, by launches
  std::vector<std::string> options;
};
Driver& driver();

}  // namespace tiny::fake_opencl
