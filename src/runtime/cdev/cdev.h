// The device "c": compiles C with the system's compiler into a shared object and calls it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device.h"

namespace tiny {

struct CDeviceOptions {
  std::string compiler = "cc";          // a name to look up in PATH, or a path
  std::string directory = "/tmp";       // where a private folder is made for each batch
  std::vector<std::string> flags = {};  // after the device's own
};

// Each batch of codes is compiled at once: the codes' texts are translation units, a text that is
// empty or stands twice is compiled once, and entries are looked up in the whole batch.  A missing
// or failing compiler is Error{Device} with what it said.  The library stays loaded as long as an
// executable of its batch lives.
std::unique_ptr<Device> make_c_device(CDeviceOptions options = {});

}  // namespace tiny
