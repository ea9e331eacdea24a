// Numbers and strings as bytes in a row, for keys and files that this machine alone reads.  A
// reader never leaves its bytes: what is missing or too long makes it bad, and from then on all it
// gives is zero or empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tiny {

class ByteWriter {
 public:
  template <class T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  ByteWriter& number(T value) {
    if (used_ + sizeof value > sizeof buffer_) flush();
    std::memcpy(buffer_ + used_, &value, sizeof value);
    used_ += sizeof value;
    return *this;
  }
  // Its length, then its bytes.
  ByteWriter& text(std::string_view value) {
    number(uint64_t{value.size()});
    flush();
    out_.append(value);
    return *this;
  }
  const std::string& result() {
    flush();
    return out_;
  }

 private:
  void flush() { out_.append(buffer_, std::exchange(used_, 0)); }

  std::string out_;
  char buffer_[256];  // what follows `out_`
  size_t used_ = 0;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  T number() {
    T value{};
    const std::string_view bytes = take(sizeof value);
    if (bytes.size() == sizeof value) bytes.copy(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  }
  // Points into the reader's bytes.
  std::string_view text() {
    const auto size = number<uint64_t>();
    return take(size);
  }
  bool good() const { return good_; }
  bool at_end() const { return good_ && rest_.empty(); }

 private:
  std::string_view take(uint64_t size) {
    if (!good_ || size > rest_.size()) {
      good_ = false;
      return {};
    }
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  std::string_view rest_;
  bool good_ = true;
};

}  // namespace tiny
