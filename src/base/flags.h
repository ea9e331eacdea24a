// The settings of a context, from flags.def: defaults, then the environment, then the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ref.h"
#include "base/stop.h"
#include "base/thread_pool.h"

namespace tiny {

// Where a context tells what `debug` asks for: text of whole lines, from any thread that works for
// it.
struct Log {
  void (*write)(void* user, const char* text) = nullptr;  // null: to stderr
  void* user = nullptr;

  void tell(const std::string& text) const;
};

// What the caller's functions need, as long as one of them may be called: its end tells the caller.
class CallbackOwner : public RefCounted {
 public:
  void add(void (*deleter)(void* user), void* user) { deleters_.push_back({deleter, user}); }

 private:
  ~CallbackOwner() override {
    for (const Deleter& d : deleters_) d.call(d.user);
  }
  struct Deleter {
    void (*call)(void* user);
    void* user;
  };
  std::vector<Deleter> deleters_;
};

// The caller's own memory for buffers; both are called from any thread.
struct Allocator {
  void* (*allocate)(void* user, size_t bytes, size_t alignment) = nullptr;  // null: the device's
  void (*release)(void* user, void* memory, size_t bytes, size_t alignment) = nullptr;
  void* user = nullptr;
  Ref<CallbackOwner> owner{};  // may be null
};

struct Flags {
#define FLAG_Int int64_t
#define FLAG_Text std::string
#define FLAG(key, kind, default_text, least, most, meaning) FLAG_##kind key{};
#include "base/flags.def"
#undef FLAG_Int
#undef FLAG_Text
  Log log;
  Allocator allocator;
  OwnThreads threads_of_caller;
  Progress progress;
  Poll poll;
  Ref<CallbackOwner> owner;  // of what these need; may be null

  // The table's, whatever the environment says.
  static Flags defaults();
  // Defaults, overridden by TINY_* variables.  A variable that is malformed, out of range or
  // unknown is reported through `warning` (one line each) and otherwise ignored.
  static Flags from_environment(void (*warning)(const std::string& line));

  // Error{InvalidArgument} that lists the known keys for an unknown key, names the right function
  // for one of the other kind, and the range for a number outside of it.
  void set_int(std::string_view key, int64_t value);
  void set_text(std::string_view key, std::string_view value);
};

// A setting and where a Flags has it: as a number or as a text, the other is null.
struct FlagInfo {
  const char* key;
  const char* default_text;
  int64_t least;  // of a number
  int64_t most;
  const char* meaning;
  int64_t Flags::* number;
  std::string Flags::* text;
};
inline constexpr int64_t kFlagAny = INT64_MAX;  // as `most`: no bound but the type's
inline constexpr FlagInfo kFlags[] = {
#define FLAG_Int(key) &Flags::key, nullptr
#define FLAG_Text(key) nullptr, &Flags::key
#define FLAG(key, kind, default_text, least, most, meaning) \
  {#key, default_text, least, most, meaning, FLAG_##kind(key)},
#include "base/flags.def"
#undef FLAG_Int
#undef FLAG_Text
};

}  // namespace tiny
