// The one exception of the engine, and the two checks that throw it.
//
// `require` is for the caller's mistakes: its message names the call, what it got, what it wanted.
// `invariant` is for ours: status Internal, because an embedded library must not kill its host.
// Both are always compiled in.  Only src/api catches.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "base/text.h"

namespace tiny {

enum class Status : int32_t {
#define STATUS(name, c_name, value, meaning) name = value,
#include "base/status.def"
};

// The status as it stands in tiny.h without its prefix: "INVALID_ARGUMENT".
const char* status_name(Status status);

class Error : public std::exception {
 public:
  Error(Status status, std::string message);
  Error(const Error&);
  Error& operator=(const Error&);
  ~Error() override;
  Status status() const { return status_; }
  const std::string& message() const { return message_; }
  const char* what() const noexcept override;

  // The node of a model and the file that it is about, "" for none: the first that is set stays.
  const std::string& node() const { return node_; }
  const std::string& file() const { return file_; }
  Error& in_node(const std::string& node);
  Error& in_file(const std::string& file);
  // The same error with the place before its message.
  Error at(const std::string& place) const;

 private:
  Status status_;
  std::string message_;
  std::string node_;
  std::string file_;
};

// Of words, which `throw_error` makes of parts.
[[noreturn]] void throw_words(Status status, uint64_t kinds, ...);  // NOLINT: any number

// Throws Error{status, parts...}.
template <class... Parts>
[[noreturn]] void throw_error(Status status, const Parts&... parts) {
  throw_words(status, text_kinds<Parts...>(), text_word(text_part(parts))...);
}

// Throws Error{status, parts...} unless `ok`.
template <class... Parts>
void require(bool ok, Status status, const Parts&... parts) {
  if (!ok) [[unlikely]]
    throw_words(status, text_kinds<Parts...>(), text_word(text_part(parts))...);
}

[[noreturn]] void fail_invariant(const char* what, const char* file, int line);

// Throws Error{Internal} that names `what` and the place, unless `ok`.
inline void invariant(bool ok, const char* what, const char* file = __builtin_FILE(),
                      int line = __builtin_LINE()) {
  if (!ok) [[unlikely]]
    fail_invariant(what, file, line);
}

}  // namespace tiny
