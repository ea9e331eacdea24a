#include "io/inflate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace tiny {

namespace {

constexpr int kCodeBitsMax = 15;
constexpr int kFastBits = 10;  // of a code that one look finds
constexpr int kWindow = 32768;
// Two bits for 258 bytes: what a stream can at most become.
constexpr int64_t kRatioMax = 1032;
constexpr size_t kLook = 1 << 20;  // bytes between two looks whether to go on

constexpr std::array<uint32_t, 256> kCrcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = (c & 1) != 0 ? 0xedb8'8320U ^ (c >> 1) : c >> 1;
    table[i] = c;
  }
  return table;
}();

uint32_t crc32(const std::byte* data, size_t size) {
  uint32_t c = UINT32_MAX;
  for (size_t i = 0; i < size; ++i)
    c = kCrcTable[(c ^ static_cast<uint32_t>(data[i])) & 0xff] ^ (c >> 8);
  return ~c;
}

// Bits of bytes, the lowest first.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class... Parts>
  void check(bool ok, const Parts&... parts) const {
    if (!ok) [[unlikely]]
      throw_error(Status::InvalidModel, "gzip: byte ", place(), ": ", parts...);
  }
  // At least `count` bits, at most 32, are there to look at; zeros behind the end.
  void fill(int count) {
    while (held_ < count) {
      const auto next = at_ < bytes_.size() ? static_cast<uint64_t>(bytes_[at_]) : 0;
      ++at_;
      bits_ |= next << held_;
      held_ += 8;
    }
  }
  uint32_t look(int count) {
    fill(count);
    return static_cast<uint32_t>(bits_ & ((uint64_t{1} << count) - 1));
  }
  void skip(int count) {
    check(count <= held_ - 8 * over(), "the data end in the middle");
    bits_ >>= count;
    held_ -= count;
  }
  uint32_t take(int count) {
    const uint32_t bits = look(count);
    skip(count);
    return bits;
  }
  // The rest of the byte is passed over.
  void align() {
    skip(held_ % 8);
    while (held_ > 0) {
      held_ -= 8;
      --at_;
    }
    bits_ = 0;
  }
  // Of whole bytes, after align().
  std::span<const std::byte> take_bytes(size_t count) {
    check(at_ <= bytes_.size() && count <= bytes_.size() - at_, "the data end in the middle");
    at_ += count;
    return bytes_.subspan(at_ - count, count);
  }
  uint32_t take_little_endian(size_t count) {
    uint32_t value = 0;
    for (size_t i = 0; i < count; ++i) value |= take(8) << (8 * i);
    return value;
  }
  // Of whole bytes: nothing is left but padding.
  bool is_at_end() const {
    const auto is_zero = [](std::byte b) { return b == std::byte{0}; };
    return std::ranges::all_of(bytes_.subspan(std::min(at_, bytes_.size())), is_zero);
  }
  size_t place() const { return at_ - static_cast<size_t>(held_ / 8); }

 private:
  // Bytes that were made up behind the end.
  int over() const { return at_ > bytes_.size() ? static_cast<int>(at_ - bytes_.size()) : 0; }

  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  uint64_t bits_ = 0;
  int held_ = 0;
};

// A canonical prefix code.
class Code {
 public:
  // Of lengths in bits by symbol, 0 for none.  Incomplete only with no symbol, or `may_be_one`.
  void build(BitReader& in, std::span<const uint8_t> lengths, bool may_be_one = true) {
    std::array<uint16_t, kCodeBitsMax + 2> first{};
    counts_.fill(0);
    for (const uint8_t length : lengths) ++counts_[length];
    counts_[0] = 0;
    int left = 1, used = 0;
    for (int length = 1; length <= kCodeBitsMax; ++length) {
      left = 2 * left - counts_[static_cast<size_t>(length)];
      in.check(left >= 0, "more codes than bits");
      used += counts_[static_cast<size_t>(length)];
      first[static_cast<size_t>(length) + 1] = static_cast<uint16_t>(used);
    }
    in.check(left == 0 || used == 0 || (may_be_one && used == 1 && counts_[1] == 1),
             "an incomplete code");
    for (size_t symbol = 0; symbol < lengths.size(); ++symbol)
      if (lengths[symbol] != 0) symbols_[first[lengths[symbol]]++] = static_cast<uint16_t>(symbol);
    fill_fast();
  }

  int next(BitReader& in) const {
    const uint32_t bits = in.look(kCodeBitsMax);
    const Fast& fast = fast_[bits & ((1U << kFastBits) - 1)];
    if (fast.length != 0) {
      in.skip(fast.length);
      return fast.symbol;
    }
    const auto [symbol, length] = walk(bits);
    in.check(length > 0, "a code that stands for nothing");
    in.skip(length);
    return symbol;
  }

 private:
  struct Fast {
    uint16_t symbol = 0;
    uint8_t length = 0;
  };

  // The symbol that the bits begin with, and its length; 0 if there is none.
  std::pair<int, int> walk(uint32_t bits) const {
    int code = 0, first = 0, index = 0;
    for (int length = 1; length <= kCodeBitsMax; ++length) {
      code |= static_cast<int>(bits >> (length - 1) & 1);
      const int count = counts_[static_cast<size_t>(length)];
      if (code - first < count)
        return {symbols_[static_cast<size_t>(index + code - first)], length};
      index += count;
      first = 2 * (first + count);
      code *= 2;
    }
    return {0, 0};
  }
  void fill_fast() {
    for (uint32_t bits = 0; bits < fast_.size(); ++bits) {
      const auto [symbol, length] = walk(bits);
      const bool is_short = length > 0 && length <= kFastBits;
      fast_[bits] =
          is_short ? Fast{static_cast<uint16_t>(symbol), static_cast<uint8_t>(length)} : Fast{};
    }
  }

  std::array<uint16_t, kCodeBitsMax + 1> counts_{};
  std::array<uint16_t, 288> symbols_{};
  std::array<Fast, 1 << kFastBits> fast_{};
};

// Memory that grows, and counts.
class Output {
 public:
  Output(const FileAccess& access, size_t expected) : access_(access) { grow(expected); }
  void push(std::byte b) {
    if (size_ == capacity_) grow(2 * capacity_ + 1);
    data()[size_++] = b;
  }
  void append(std::span<const std::byte> bytes) {
    if (bytes.size() > capacity_ - size_) grow(2 * capacity_ + bytes.size());
    if (!bytes.empty()) std::memcpy(data() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  // `length` bytes from `distance` before the end on, which may be among them.
  void repeat(size_t distance, size_t length) {
    if (length > capacity_ - size_) grow(2 * capacity_ + length);
    std::byte* to = data() + size_;
    const std::byte* from = to - distance;
    for (size_t i = 0; i < length; ++i) to[i] = from[i];
    size_ += length;
  }
  void look() {
    if (access_.stop && size_ >= next_look_) {
      access_.stop->check();
      next_look_ = size_ + kLook;
    }
  }
  size_t size() const { return size_; }
  std::byte* data() const { return memory_->data(); }
  SharedBytes finish() const { return {memory_, {data(), size_}}; }

 private:
  void grow(size_t capacity) {
    Ref<NewBytes> more = make_ref<NewBytes>(access_.memory, static_cast<int64_t>(capacity));
    if (size_ > 0) std::memcpy(more->data(), data(), size_);
    memory_ = std::move(more);
    capacity_ = capacity;
  }

  const FileAccess& access_;
  Ref<NewBytes> memory_;
  size_t size_ = 0, capacity_ = 0, next_look_ = kLook;
};

// Lengths and distances: the least that a symbol stands for, and the bits of what is added.
struct Extra {
  uint16_t base;
  uint8_t bits;
};
constexpr Extra kLengths[] = {
    {3, 0},  {4, 0},  {5, 0},  {6, 0},   {7, 0},   {8, 0},   {9, 0},   {10, 0},  {11, 1}, {13, 1},
    {15, 1}, {17, 1}, {19, 2}, {23, 2},  {27, 2},  {31, 2},  {35, 3},  {43, 3},  {51, 3}, {59, 3},
    {67, 4}, {83, 4}, {99, 4}, {115, 4}, {131, 5}, {163, 5}, {195, 5}, {227, 5}, {258, 0}};
constexpr Extra kDistances[] = {{1, 0},     {2, 0},     {3, 0},      {4, 0},      {5, 1},
                                {7, 1},     {9, 2},     {13, 2},     {17, 3},     {25, 3},
                                {33, 4},    {49, 4},    {65, 5},     {97, 5},     {129, 6},
                                {193, 6},   {257, 7},   {385, 7},    {513, 8},    {769, 8},
                                {1025, 9},  {1537, 9},  {2049, 10},  {3073, 10},  {4097, 11},
                                {6145, 11}, {8193, 12}, {12289, 12}, {16385, 13}, {24577, 13}};
constexpr int kEndOfBlock = 256;

class Inflater {
 public:
  Inflater(BitReader& in, Output& out) : in_(in), out_(out), begin_(out.size()) {}

  void run() {
    for (bool is_last = false; !is_last;) {
      is_last = in_.take(1) != 0;
      switch (in_.take(2)) {
        case 0:
          stored();
          break;
        case 1:
          fixed_codes();
          block();
          break;
        case 2:
          own_codes();
          block();
          break;
        default:
          in_.check(false, "a block of no known type");
      }
      out_.look();
    }
    in_.align();
  }

 private:
  void stored() {
    in_.align();
    const uint32_t size = in_.take_little_endian(2), inverse = in_.take_little_endian(2);
    in_.check(size == (~inverse & 0xffff), "a stored block of ", size, " bytes, or not");
    in_.align();
    out_.append(in_.take_bytes(size));
  }
  void fixed_codes() {
    std::array<uint8_t, 288> lengths{};
    for (size_t i = 0; i < lengths.size(); ++i)
      lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    literals_.build(in_, lengths);
    std::array<uint8_t, 32> distances{};
    distances.fill(5);
    distances_.build(in_, distances);
  }
  void own_codes() {
    constexpr uint8_t kOrder[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    const size_t literals = in_.take(5) + 257, distances = in_.take(5) + 1, codes = in_.take(4) + 4;
    in_.check(literals <= 286 && distances <= 30, "more symbols than there are");
    std::array<uint8_t, 19> code_lengths{};
    for (size_t i = 0; i < codes; ++i) code_lengths[kOrder[i]] = static_cast<uint8_t>(in_.take(3));
    literals_.build(in_, code_lengths, false);  // for the lengths, until it is made of them
    std::array<uint8_t, 286 + 30> lengths{};
    for (size_t i = 0; i < literals + distances;) {
      const int symbol = literals_.next(in_);
      if (symbol < 16) {
        lengths[i++] = static_cast<uint8_t>(symbol);
        continue;
      }
      in_.check(symbol != 16 || i > 0, "a length repeated before there is one");
      const uint8_t again = symbol == 16 ? lengths[i - 1] : 0;
      const size_t times = symbol == 16   ? 3 + in_.take(2)
                           : symbol == 17 ? 3 + in_.take(3)
                                          : 11 + in_.take(7);
      in_.check(i + times <= literals + distances, "more lengths than symbols");
      std::fill_n(lengths.begin() + static_cast<ptrdiff_t>(i), times, again);
      i += times;
    }
    in_.check(lengths[kEndOfBlock] != 0, "a block without an end");
    literals_.build(in_, std::span(lengths).first(literals));
    distances_.build(in_, std::span(lengths).subspan(literals, distances));
  }
  void block() {
    while (true) {
      const int symbol = literals_.next(in_);
      if (symbol < kEndOfBlock) {
        out_.push(static_cast<std::byte>(symbol));
        continue;
      }
      if (symbol == kEndOfBlock) return;
      const auto which = static_cast<size_t>(symbol - kEndOfBlock - 1);
      in_.check(which < std::size(kLengths), "a length of no known symbol");
      const size_t length = kLengths[which].base + in_.take(kLengths[which].bits);
      const auto far = static_cast<size_t>(distances_.next(in_));
      in_.check(far < std::size(kDistances), "a distance of no known symbol");
      const size_t distance = kDistances[far].base + in_.take(kDistances[far].bits);
      in_.check(distance <= std::min<size_t>(out_.size() - begin_, kWindow),
                "bytes from before the beginning");
      out_.repeat(distance, length);
      out_.look();
    }
  }

  BitReader& in_;
  Output& out_;
  const size_t begin_;
  Code literals_, distances_;
};

enum Flag : uint32_t { kHeaderCrc = 2, kExtra = 4, kName = 8, kComment = 16, kReserved = 224 };

void skip_text(BitReader& in) {
  while (in.take(8) != 0) {
  }
}

void skip_header(BitReader& in) {
  in.check(in.take(8) == 0x1f && in.take(8) == 0x8b, "no gzip file");
  in.check(in.take(8) == 8, "compressed by another method than deflate");
  const uint32_t flags = in.take(8);
  in.check((flags & kReserved) == 0, "flags that have no meaning");
  for (int i = 0; i < 6; ++i) in.take(8);  // time, level, system
  if ((flags & kExtra) != 0)
    for (uint32_t n = in.take_little_endian(2); n > 0; --n) in.take(8);
  if ((flags & kName) != 0) skip_text(in);
  if ((flags & kComment) != 0) skip_text(in);
  if ((flags & kHeaderCrc) != 0) in.take_little_endian(2);
}

// What the file says at its end of its last member's size, as far as that can be.
size_t expected_size(std::span<const std::byte> bytes) {
  uint32_t size = 0;
  if (bytes.size() >= sizeof size)
    std::memcpy(&size, bytes.data() + bytes.size() - sizeof size, sizeof size);
  return static_cast<size_t>(std::min<int64_t>(size, std::ssize(bytes) * kRatioMax));
}

}  // namespace

bool is_gzip(const SharedBytes& bytes) {
  return bytes.text().starts_with("\x1f\x8b");
}

SharedBytes gunzip(const SharedBytes& bytes, const FileAccess& access) {
  const std::span<const std::byte> all{bytes.data(), static_cast<size_t>(bytes.size())};
  BitReader in(all);
  Output out(access, expected_size(all));
  do {
    const size_t begin = out.size();
    skip_header(in);
    Inflater(in, out).run();
    const uint32_t crc = in.take_little_endian(4), size = in.take_little_endian(4);
    in.check(size == static_cast<uint32_t>(out.size() - begin), "the data have ",
             out.size() - begin, " bytes, and are said to have ", size);
    in.check(crc == crc32(out.data() + begin, out.size() - begin), "the checksum is another one");
    in.align();
  } while (!in.is_at_end());
  return out.finish();
}

}  // namespace tiny
