// The registry: which renderer and which runtime make a device, and what it can do.  The only place
// where render and runtime meet.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/flags.h"
#include "cost/machine.h"
#include "ir/linear.h"
#include "runtime/collectives.h"
#include "runtime/cpu/cpuid.h"
#include "runtime/device.h"
#include "runtime/device_number.h"

namespace tiny {

// Kernels ready to be launched; `interpreted` where machine code could not be had.
struct LoadedKernel {
  Ref<Executable> executable;
  bool interpreted = false;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual Device& device() = 0;
  // What choices assume; its cores are the device's threads, unless results are the same bits with
  // any number of them.
  virtual const Machine& machine() const = 0;
  // That work for the device, the caller's included.
  int threads();
  const Target& target() const { return machine(); }
  // The code of a batch.  Interpretable: for when `load` has refused the other.
  enum class Form : uint8_t { Best, Interpretable };
  virtual std::vector<Code> render(std::span<const LinearProgram> programs, Form form) = 0;
  // Whether its code is made to be fast, so that a search among several is worth while.
  virtual bool is_fast() const { return true; }
  // What the driver has for several devices together, of which this one's is the first; null:
  // nothing.
  virtual Ref<Collectives> collectives(std::span<Backend* const>) { return {}; }
  // Error{Device} where the system refuses memory to execute.
  std::vector<LoadedKernel> load(std::span<const Code> codes, const StopSignal& stop);
  // Whether `listing` is the source in the device's language, which is told where C is of others.
  virtual bool lists_source() const { return false; }
  // What the device executes of one program, for people: machine code, bytecode's linear program,
  // C.
  virtual std::string listing(const LinearProgram& program) = 0;
};

// The dot products that machine code for `isa` has on such a processor.
DotSet dots_of(const CpuFacts& facts, CpuIsa isa);
// Of those what its matrix unit multiplies.
DotSet tiles_of(const CpuFacts& facts, CpuIsa isa);

// Error{InvalidArgument} that lists the known names; Error{Unsupported} if this machine lacks it.
std::unique_ptr<Backend> make_backend(const Flags& flags);

// The one name of a device that has several ("opencl:0" is "opencl"); Error{InvalidArgument} that
// lists the kinds.
std::string canonical_device(const std::string& device);

struct BackendInfo {
  std::string name;
  std::string description;
  bool available = true;
  std::string reason = "";  // why it is not
  std::vector<std::string> isas = {};
  // Of a device with memory of its own; 0: it has the host's.
  int64_t memory_bytes = 0;
  int64_t buffer_bytes = 0;  // the largest
  // Of one that runs groups of threads: how many at a time, and the most that one may have.
  int64_t units = 0;
  GroupLimits group = {};
};
// Whether drivers are opened, to say which devices they have; else each is one row that does not.
enum class Drivers : uint8_t { Ask, LeaveClosed };
std::vector<BackendInfo> known_backends(Drivers drivers = Drivers::Ask);

}  // namespace tiny
