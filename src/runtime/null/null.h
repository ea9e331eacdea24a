// A device that computes nothing: memory of its own has a size but no bytes, launches return at
// once, what is read back is zero.  Everything before the launch is real, so that schedules,
// generated code and what a launch costs can be looked at without the processor that the code is
// for.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace tiny {

std::unique_ptr<Device> make_null_device(std::string name = "null");

}  // namespace tiny
