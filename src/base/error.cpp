#include "base/error.h"

#include <cstring>
#include <utility>

namespace tiny {

const char* status_name(Status status) {
  switch (status) {
#define STATUS(name, c_name, value, meaning) \
  case Status::name:                         \
    return #c_name;
#include "base/status.def"
  }
  return "UNKNOWN";
}

// Not in the header: what throws needs their code only once.
Error::Error(Status status, std::string message) : status_(status), message_(std::move(message)) {
}
Error::Error(const Error&) = default;
Error& Error::operator=(const Error&) = default;
Error::~Error() = default;

const char* Error::what() const noexcept {
  return message_.c_str();
}

Error& Error::in_node(const std::string& node) {
  if (node_.empty()) node_ = node;
  return *this;
}

Error& Error::in_file(const std::string& file) {
  if (file_.empty()) file_ = file;
  return *this;
}

Error Error::at(const std::string& place) const {
  Error out = *this;
  out.message_ = cat(place, ": ", message_);
  return out;
}

void throw_words(Status status, uint64_t kinds, ...) {
  va_list words;
  va_start(words, kinds);
  std::string message = text_of(kinds, words);
  va_end(words);
  throw Error(status, std::move(message));
}

void fail_invariant(const char* what, const char* file, int line) {
  const char* slash = std::strrchr(file, '/');
  throw_error(Status::Internal, "internal error (a bug in libtiny): ", what, " at ",
              slash ? slash + 1 : file, ":", line);
}

}  // namespace tiny
