#include "tests/onnx/file_mutator.h"

#include <algorithm>
#include <cstring>

#include "io/wire.h"

namespace tiny::onnx::testing {

namespace {

constexpr uint32_t kVarint = 0;
constexpr uint32_t kFixed64 = 1;
constexpr uint32_t kBytes = 2;
constexpr uint32_t kFixed32 = 5;
constexpr uint32_t kLastField = 31;  // no message of a model has a field above
constexpr int kDeepest = 24;
constexpr size_t kLargestFile = 1 << 20;  // that nesting may grow to

bool read_varint(std::string_view bytes, size_t& at, uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && at < bytes.size(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes[at++]);
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

void write_varint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

bool is_text(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

// Whether bytes are a message is guessed: text is not, and what does not parse is not.
bool FileMutator::parse(std::string_view bytes, int depth, Fields& out) {
  for (size_t at = 0; at < bytes.size();) {
    uint64_t tag = 0;
    if (!read_varint(bytes, at, tag)) return false;
    Field field;
    field.number = static_cast<uint32_t>(std::min<uint64_t>(tag >> 3, kLastField + 1));
    field.wire_type = static_cast<uint32_t>(tag & 7);
    if (field.number == 0 || field.number > kLastField) return false;
    if (field.wire_type == kVarint) {
      if (!read_varint(bytes, at, field.value)) return false;
    } else if (field.wire_type == kFixed64 || field.wire_type == kFixed32) {
      const size_t width = field.wire_type == kFixed64 ? 8 : 4;
      if (bytes.size() - at < width) return false;
      std::memcpy(&field.value, bytes.data() + at, width);
      at += width;
    } else if (field.wire_type == kBytes) {
      uint64_t size = 0;
      if (!read_varint(bytes, at, size) || size > bytes.size() - at) return false;
      const std::string_view content = bytes.substr(at, size);
      at += size;
      field.is_message =
          depth < kDeepest && !is_text(content) && parse(content, depth + 1, field.fields);
      if (!field.is_message) {
        field.fields.clear();
        field.bytes = content;
      }
    } else {
      return false;
    }
    out.push_back(std::move(field));
  }
  return true;
}

void FileMutator::write(const Fields& fields, std::string& out) {
  for (const Field& field : fields) {
    write_varint(uint64_t{field.number} << 3 | field.wire_type, out);
    if (field.wire_type == kVarint) {
      write_varint(field.value, out);
    } else if (field.wire_type != kBytes) {
      char raw[8];
      std::memcpy(raw, &field.value, sizeof raw);
      out.append(raw, field.wire_type == kFixed64 ? 8 : 4);
    } else {
      std::string inner;
      if (field.is_message) write(field.fields, inner);
      const std::string& content = field.is_message ? inner : field.bytes;
      write_varint(content.size(), out);
      out += content;
    }
  }
}

void FileMutator::collect(Fields& fields, std::vector<Field*>& leaves,
                          std::vector<Fields*>& messages) {
  if (!fields.empty()) messages.push_back(&fields);
  for (Field& field : fields) {
    if (field.is_message)
      collect(field.fields, leaves, messages);
    else
      leaves.push_back(&field);
  }
}

uint64_t FileMutator::odd_number() {
  constexpr int64_t kOdd[] = {0,
                              1,
                              -1,
                              2,
                              3,
                              5,
                              7,
                              8,
                              11,
                              16,
                              27,
                              28,
                              64,
                              65,
                              255,
                              1 << 20,
                              0x7FFFFFFF,
                              1LL << 31,
                              1LL << 40,
                              1LL << 62,
                              INT64_MAX,
                              INT64_MIN,
                              INT64_MIN + 1};
  return static_cast<uint64_t>(kOdd[below(std::size(kOdd))]);
}

void FileMutator::change_leaf(Field& leaf, const std::vector<Field*>& leaves) {
  if (leaf.wire_type != kBytes) {
    leaf.value = below(2) == 0 ? odd_number() : leaf.value + below(5) - 2;
    return;
  }
  switch (below(6)) {
    case 0:
    case 1: {
      // Another's name or data: cycles, names twice, operators that want something else.
      const Field& other = *leaves[below(leaves.size())];
      if (other.wire_type == kBytes) leaf.bytes = other.bytes;
      break;
    }
    case 2:
      leaf.bytes = below(2) == 0 ? "" : "Unheard";
      break;
    case 3:
      leaf.bytes.resize(below(leaf.bytes.size() + 1));
      break;
    case 4:
      leaf.bytes += std::string(1 + below(9), static_cast<char>(below(256)));
      break;
    default:
      if (!leaf.bytes.empty()) leaf.bytes[below(leaf.bytes.size())] = static_cast<char>(below(256));
      break;
  }
}

void FileMutator::change_list(Fields& fields, const std::vector<Fields*>& messages) {
  const size_t i = below(fields.size());
  const auto at = fields.begin() + static_cast<std::ptrdiff_t>(i);
  switch (below(6)) {
    case 0:
      fields.erase(at);
      break;
    case 1: {
      const Field twice = *at;
      fields.insert(at, twice);
      break;
    }
    case 2:
      std::swap(*at, fields[below(fields.size())]);
      break;
    case 3:
      at->number = 1 + static_cast<uint32_t>(below(kLastField - 1));
      break;
    case 4: {
      // A message inside another, or inside itself, again and again.
      const Fields outer = *messages[below(messages.size())];
      std::string size;
      write(outer, size);
      size_t copies = 1 + below(below(4) == 0 ? 100 : 2);
      for (; copies > 0 && size.size() * copies < kLargestFile; --copies) {
        Field wrap = fields[i];
        wrap.wire_type = kBytes;
        wrap.is_message = true;
        wrap.fields = outer;
        wrap.fields.push_back(fields[i]);
        fields[i] = std::move(wrap);
      }
      break;
    }
    default: {
      Field added;
      added.number = 1 + static_cast<uint32_t>(below(kLastField - 1));
      added.wire_type = kVarint;
      added.value = odd_number();
      fields.insert(at, added);
      break;
    }
  }
}

std::string FileMutator::with_other_fields(const std::string& file) {
  Fields fields;
  if (!parse(file, 0, fields) || fields.empty()) return with_other_bytes(file);
  for (size_t times = 1 + below(3); times > 0; --times) {
    std::vector<Field*> leaves;
    std::vector<Fields*> messages;
    collect(fields, leaves, messages);
    if (leaves.empty() || messages.empty()) break;
    if (below(3) > 0)
      change_leaf(*leaves[below(leaves.size())], leaves);
    else
      change_list(*messages[below(messages.size())], messages);
  }
  std::string out;
  write(fields, out);
  return out;
}

std::string FileMutator::with_other_bytes(std::string file) {
  if (file.empty()) return file;
  for (size_t times = 1 + below(8); times > 0; --times) {
    char& byte = file[below(file.size())];
    byte = static_cast<char>(below(2) == 0 ? below(256)
                                           : static_cast<uint8_t>(byte) ^ (size_t{1} << below(8)));
  }
  return file;
}

bool FileMutator::make_external(Fields& fields, const Fields& entries) {
  namespace t = field::TensorProto;
  const auto raw = std::find_if(fields.begin(), fields.end(), [](const Field& field) {
    return field.number == t::raw_data && field.wire_type == kBytes;
  });
  const bool is_tensor = std::any_of(fields.begin(), fields.end(), [](const Field& field) {
    return field.number == t::data_type && field.wire_type == kVarint;
  });
  if (raw != fields.end() && is_tensor) {
    fields.erase(raw);
    fields.insert(fields.end(), entries.begin(), entries.end());
    return true;
  }
  return std::any_of(fields.begin(), fields.end(), [&](Field& field) {
    return field.is_message && make_external(field.fields, entries);
  });
}

std::string FileMutator::with_external_data(const std::string& file, const std::string& location,
                                            const std::string& offset, const std::string& length) {
  namespace t = field::TensorProto;
  namespace e = field::StringStringEntryProto;
  Fields entries;
  const auto entry = [&](const char* key, const std::string& value) {
    Field message{t::external_data, kBytes, 0, "", {}, true};
    message.fields.push_back({e::key, kBytes, 0, key, {}, false});
    message.fields.push_back({e::value, kBytes, 0, value, {}, false});
    entries.push_back(std::move(message));
  };
  entry("location", location);
  if (!offset.empty()) entry("offset", offset);
  if (!length.empty()) entry("length", length);
  entries.push_back({t::data_location, kVarint, 1, "", {}, false});
  Fields fields;
  if (!parse(file, 0, fields)) return file;
  make_external(fields, entries);
  std::string out;
  write(fields, out);
  return out;
}

}  // namespace tiny::onnx::testing
