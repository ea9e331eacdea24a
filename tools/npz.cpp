#include "npz.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "failure.h"
#include "files.h"

namespace tiny::cli {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr size_t kCentralSize = 46, kLocalSize = 30, kEndSize = 22;

// The file's bytes with every access checked.
struct Bytes {
  std::span<const std::byte> all;
  const std::string& path;

  std::span<const std::byte> part(uint64_t offset, uint64_t size) const {
    if (offset > all.size() || size > all.size() - offset)
      throw file_failure(path, "a zip file that is cut short");
    return all.subspan(offset, size);
  }
  template <typename T>
  T number(uint64_t offset) const {
    T value;
    std::memcpy(&value, part(offset, sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string text(uint64_t offset, uint64_t size) const {
    const auto bytes = part(offset, size);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
};

struct Member {
  std::string name;
  uint16_t method;
  uint32_t crc;
  uint64_t packed, size, local;
};

// Where the table of members begins, and how many it has.
std::pair<uint64_t, uint64_t> find_table(const Bytes& file) {
  const uint64_t size = file.all.size();
  const uint64_t lowest = size > kEndSize + 65535 ? size - kEndSize - 65535 : 0;
  for (uint64_t at = size; at-- > lowest;) {
    if (size - at < kEndSize || file.number<uint32_t>(at) != kEnd) continue;
    if (at >= 20 && file.number<uint32_t>(at - 20) == kEnd64Locator) {
      const uint64_t end = file.number<uint64_t>(at - 12);
      if (file.number<uint32_t>(end) == kEnd64)
        return {file.number<uint64_t>(end + 48), file.number<uint64_t>(end + 32)};
    }
    return {file.number<uint32_t>(at + 16), file.number<uint16_t>(at + 10)};
  }
  throw file_failure(file.path, "not a zip file");
}

// Fields of 32 bits that are all ones continue, in order, in the extra field 1.
void widen(const Bytes& file, uint64_t extra, uint64_t length, Member& member) {
  for (uint64_t at = extra; at + 4 <= extra + length; at += 4 + file.number<uint16_t>(at + 2)) {
    if (file.number<uint16_t>(at) != 1) continue;
    uint64_t field = at + 4;
    for (uint64_t* value : {&member.size, &member.packed, &member.local}) {
      if (*value != 0xFFFFFFFF) continue;
      *value = file.number<uint64_t>(field);
      field += 8;
    }
    return;
  }
}

std::vector<std::byte> unpack(const Bytes& file, const Member& member) {
  const uint64_t names = file.number<uint16_t>(member.local + 26);
  const uint64_t extra = file.number<uint16_t>(member.local + 28);
  const auto packed = file.part(member.local + kLocalSize + names + extra, member.packed);
  std::vector<std::byte> data;
  if (member.method == 0) {
    data.assign(packed.begin(), packed.end());
  } else if (member.method == Z_DEFLATED) {
    // Deflate packs at most 1032 to 1: a larger claim is a lie, and is not allocated.
    if (member.size / 1032 > member.packed) throw file_failure(file.path, "a damaged zip member");
    data.resize(member.size);
    z_stream stream{};
    inflateInit2(&stream, -MAX_WBITS);
    size_t in = 0, done = 0;
    int state = Z_OK;
    while (state == Z_OK && (done < data.size() || stream.avail_in > 0 || in < packed.size())) {
      const size_t in_step = std::min<size_t>(packed.size() - in, 1u << 30);
      const size_t out_step = std::min<size_t>(data.size() - done, 1u << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + in));
      stream.avail_in = static_cast<uInt>(in_step);
      stream.next_out = reinterpret_cast<Bytef*>(data.data() + done);
      stream.avail_out = static_cast<uInt>(out_step);
      state = inflate(&stream, Z_NO_FLUSH);
      in += in_step - stream.avail_in;
      done += out_step - stream.avail_out;
    }
    inflateEnd(&stream);
    if (state != Z_STREAM_END || done != data.size())
      throw file_failure(file.path, "damaged data of member " + member.name);
  } else {
    throw file_failure(file.path, "member " + member.name + " is packed by an unknown method");
  }
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size());
  if (crc != member.crc) throw file_failure(file.path, "wrong checksum of member " + member.name);
  return data;
}

class ZipWriter {
 public:
  void add(const std::string& name, std::span<const std::byte> data) {
    const auto local = static_cast<uint32_t>(out_.size());
    const auto crc =
        static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()));
    uLongf packed_size = compressBound(data.size());
    std::string packed(packed_size, '\0');
    compress2(reinterpret_cast<Bytef*>(packed.data()), &packed_size,
              reinterpret_cast<const Bytef*>(data.data()), data.size(), 1);
    // zlib's frame, two bytes before and four behind, is not part of the zip format.
    const std::string_view deflated(packed.data() + 2, packed_size - 6);
    put32(out_, kLocal);
    put_fields(out_, crc, deflated.size(), data.size(), name.size());
    out_ += name;
    out_ += deflated;
    put32(table_, kCentral);
    put16(table_, 20);
    put_fields(table_, crc, deflated.size(), data.size(), name.size());
    table_.append(10, '\0');
    put32(table_, local);
    table_ += name;
    ++count_;
    if (out_.size() > UINT32_MAX || data.size() > UINT32_MAX)
      throw Failure(Exit::Limit, "LIMIT", "an archive beyond 4 GiB is not written");
  }

  std::string finish() {
    const auto table = static_cast<uint32_t>(out_.size());
    out_ += table_;
    put32(out_, kEnd);
    put32(out_, 0);
    put16(out_, count_);
    put16(out_, count_);
    put32(out_, static_cast<uint32_t>(table_.size()));
    put32(out_, table);
    put16(out_, 0);
    return std::move(out_);
  }

 private:
  static void put16(std::string& out, size_t value) {
    out += static_cast<char>(value & 255);
    out += static_cast<char>(value >> 8 & 255);
  }
  static void put32(std::string& out, uint32_t value) {
    put16(out, value & 0xFFFF);
    put16(out, value >> 16);
  }
  // Version 2.0, UTF-8 names, deflated, dated 1980-01-01; then what the entry is.
  static void put_fields(std::string& out, uint32_t crc, size_t packed, size_t size, size_t name) {
    put16(out, 20);
    put16(out, 0x800);
    put16(out, Z_DEFLATED);
    put16(out, 0);
    put16(out, 33);
    put32(out, crc);
    put32(out, static_cast<uint32_t>(packed));
    put32(out, static_cast<uint32_t>(size));
    put16(out, name);
    put16(out, 0);
  }

  std::string out_, table_;
  size_t count_ = 0;
};

}  // namespace

std::vector<Array> read_npz(const std::string& path) {
  const std::vector<std::byte> content = read_file(path);
  const Bytes file{content, path};
  auto [at, count] = find_table(file);
  std::vector<Array> arrays;
  for (uint64_t i = 0; i < count; ++i) {
    if (file.number<uint32_t>(at) != kCentral) throw file_failure(path, "a damaged zip table");
    const uint64_t name = file.number<uint16_t>(at + 28), extra = file.number<uint16_t>(at + 30);
    Member member{file.text(at + kCentralSize, name), file.number<uint16_t>(at + 10),
                  file.number<uint32_t>(at + 16),     file.number<uint32_t>(at + 20),
                  file.number<uint32_t>(at + 24),     file.number<uint32_t>(at + 42)};
    widen(file, at + kCentralSize + name, extra, member);
    at += kCentralSize + name + extra + file.number<uint16_t>(at + 32);
    if (!member.name.ends_with(".npy")) continue;
    Array array = parse_npy(unpack(file, member), path, member.name);
    array.name = member.name.substr(0, member.name.size() - 4);
    arrays.push_back(std::move(array));
  }
  return arrays;
}

void write_npz(const std::string& path, std::span<const Array> arrays) {
  ZipWriter zip;
  for (const Array& array : arrays) zip.add(array.name + ".npy", format_npy(array));
  write_file(path, zip.finish());
}

}  // namespace tiny::cli
