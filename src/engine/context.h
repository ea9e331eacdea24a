// A context: one graph, one device, its kernel cache and settings.  Nothing is global.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/count.h"
#include "base/flags.h"
#include "base/kept_blocks.h"
#include "base/ref.h"
#include "base/stop.h"
#include "engine/cell.h"
#include "engine/custom_op.h"
#include "ir/uop.h"

namespace tiny {

class Backend;
class Device;
class KernelCache;
class Observer;
class PlanCache;
class Storage;

// What was done to compute values, since the context began.
struct Counters {
  Count<int64_t> launches;  // of kernels, outside of programs
  Count<int64_t> copies;    // of old versions that a write would have destroyed
  Count<int64_t> copied_bytes;
};

class Context : public RefCounted {
 public:
  explicit Context(Flags flags);

  Graph& graph() { return *graph_; }
  Backend& backend() { return *backend_; }
  Device& device();
  KernelCache& kernels() { return *kernels_; }
  PlanCache& plans() { return *plans_; }
  Observer& observer() { return *observer_; }
  const Flags& flags() const { return flags_; }
  // What bare numbers are where nothing else says it.
  DType default_int() const;
  DType default_float() const;
  // Changes a setting of a context that is in use; Error{InvalidArgument} that lists those that can
  // be.  Within a building call.
  void set(std::string_view key, int64_t value);
  // What ends the building call in progress early.
  StopSignal& stop() { return stop_; }

  // Memory of the device, within the limit of the settings.
  Ref<Storage> allocate(int64_t bytes);
  Ref<Storage> from_host(const void* data, int64_t bytes);

  // The first of all cells; the others follow (Cell::next).
  Cell* cells() const { return cells_; }
  // Whether some are written along with others.
  bool has_writes_along() const { return along_count_ != 0; }
  // At the end of a building call: what is in memory may be read by any thread from now on, until
  // it changes.
  void publish_cells();
  // In a forked child, which has none of the parent's readers.
  void forget_pins();
  // Tells one write from every other.
  int64_t next_version() { return ++version_; }
  Counters& counters() { return counters_; }
  CustomOps& custom_ops() { return custom_ops_; }
  // Of the building call in progress: small graphs that are realised one after the other are made
  // in the same blocks.  Between calls no more than kRestBytesMax stay.
  KeptBlocks& blocks() { return blocks_; }
  static constexpr size_t kRestBytesMax = size_t{2} << 20;

 private:
  friend class Cell;
  ~Context() override;
  Flags flags_;
  StopSignal stop_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Observer> observer_;
  std::unique_ptr<KernelCache> kernels_;  // holds UOps: dies before the graph
  std::unique_ptr<PlanCache> plans_;      // holds code of the device
  CustomOps custom_ops_;
  Cell* cells_ = nullptr;
  Cell* changed_ = nullptr;  // the first of those that changed since the last publication
  int64_t along_count_ = 0;  // of all cells
  int64_t version_ = 0;
  Counters counters_;
  KeptBlocks blocks_;
};

// For an error where the context of something is not the one that was wanted: what there is to say
// of their devices; "" if these are of one name.
std::string of_two_devices(Context& got, Context& wanted);

}  // namespace tiny
