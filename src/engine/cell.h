// What a tensor and its views share: the newest version of a value.
//
// A cell that owns its memory has a flat node: a Buffer, or a version of one; writes go there.  Any
// other cell has the value as it was made, and gets memory of its own at the first write.  The
// context knows its cells: they are what is alive of its graph.
//
// All this belongs to the thread that builds, but for Reading: any thread may look at elements that
// were in memory when the last building call ended.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "ir/uop.h"

namespace tiny {

class Context;

class Cell : public RefCounted {
 public:
  Cell(Ref<Context> context, UOp node, bool owns_memory = false);

  const UOp& node() const;
  bool owns_memory() const { return owns_memory_; }
  // A later version, or the same value in memory.
  void set(UOp node);
  // All of it becomes `value`, which was built on `base`, the node of that time, where `companion`
  // is computed (or read, if it is memory), and not before: until then it stays as it is.  What
  // sets it in another way before that leaves nothing of this.
  struct Along {
    UOp base;
    UOp value;
    UOp companion;
  };
  void write_along(Along write);
  const std::vector<Along>& along() const { return along_; }
  void forget_along();
  void set_memory(UOp flat) {
    set(std::move(flat));
    owns_memory_ = true;
  }
  Cell* next() const { return next_; }

  // While it lives the elements stay as they are: a change of the cell waits for its end.
  class Pin {
   public:
    explicit Pin(const Cell& cell);
    Pin(Pin&& other) noexcept : cell_(std::exchange(other.cell_, nullptr)) {}
    Pin& operator=(Pin&&) = delete;
    ~Pin();

   private:
    const Cell* cell_;  // which the maker keeps alive
  };
  // Element 0 of the elements, row-major, or null if they are not known to be in the host's memory.
  class Reading : public Pin {
   public:
    explicit Reading(const Cell& cell) : Pin(cell), data_(cell.published_.load()) {}
    const std::byte* data() const { return data_; }

   private:
    const std::byte* data_;
  };

 private:
  ~Cell() override;
  friend class Context;

  Ref<Context> context_;  // declared first: the node dies before its graph
  mutable UOp node_;
  void note_change();
  void publish();
  void withdraw();

  std::vector<Along> along_;
  bool owns_memory_ = false;
  bool is_changed_ = false;  // since the last publication: on the context's list
  std::atomic<const std::byte*> published_{nullptr};
  mutable std::atomic<uint32_t> pins_{0};  // and kAwaited
  Cell* changed_previous_ = nullptr;
  Cell* changed_next_ = nullptr;
  Cell* previous_ = nullptr;
  Cell* next_ = nullptr;
};

}  // namespace tiny
