#include "io/safetensors.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "base/json.h"
#include "base/json_reader.h"
#include "base/sort.h"

namespace tiny {

namespace {

constexpr int64_t kLengthBytes = 8;
constexpr int64_t kHeaderMax = 100'000'000;  // as the format's own library has it
constexpr std::string_view kMetadata = "__metadata__";

struct ElementType {
  std::string_view name;
  int bits;
  ScalarType ours = ScalarType::Void;
};
constexpr ElementType kElementTypes[] = {{"BOOL", 8, ScalarType::Bool},
                                         {"I8", 8, ScalarType::Int8},
                                         {"I16", 16, ScalarType::Int16},
                                         {"I32", 32, ScalarType::Int32},
                                         {"I64", 64, ScalarType::Int64},
                                         {"U8", 8, ScalarType::UInt8},
                                         {"U16", 16, ScalarType::UInt16},
                                         {"U32", 32, ScalarType::UInt32},
                                         {"U64", 64, ScalarType::UInt64},
                                         {"F16", 16, ScalarType::Float16},
                                         {"BF16", 16, ScalarType::BFloat16},
                                         {"F32", 32, ScalarType::Float32},
                                         {"F64", 64, ScalarType::Float64},
                                         {"F8_E4M3", 8, ScalarType::Float8E4M3FN},
                                         {"F8_E5M2", 8, ScalarType::Float8E5M2},
                                         {"F8_E8M0", 8},
                                         {"F6_E2M3", 6},
                                         {"F6_E3M2", 6},
                                         {"F4", 4},
                                         {"C64", 64}};

const ElementType* element_type(std::string_view name) {
  for (const ElementType& type : kElementTypes)
    if (type.name == name) return &type;
  return nullptr;
}

// What the header says of one tensor.
struct Entry {
  std::string name;
  std::string type;
  Ints shape;
  int64_t begin = 0;  // in the data
  int64_t end = 0;
};

template <class... Parts>
void check(bool ok, const Parts&... parts) {
  require(ok, Status::InvalidModel, parts...);
}

Entry read_entry(JsonReader& json, std::string name) {
  Entry entry;
  entry.name = std::move(name);
  bool has_type = false, has_shape = false, has_place = false;
  const auto once = [&](bool& has, std::string_view key) {
    if (has) json.fail("tensor \"", entry.name, "\" has two \"", key, "\"");
    has = true;
  };
  json.begin_object();
  for (std::string key; json.next_key(key);) {
    if (key == "dtype") {
      once(has_type, key);
      entry.type = json.text();
    } else if (key == "shape") {
      once(has_shape, key);
      for (json.begin_array(); json.next_item();) {
        entry.shape.push_back(json.natural());
        if (static_cast<int64_t>(entry.shape.size()) > Limits{}.rank)
          json.fail("tensor \"", entry.name, "\" has more than ", Limits{}.rank, " dimensions");
      }
    } else if (key == "data_offsets") {
      once(has_place, key);
      Ints places;
      for (json.begin_array(); places.size() < 3 && json.next_item();)
        places.push_back(json.natural());
      if (places.size() != 2)
        json.fail("tensor \"", entry.name, "\": data_offsets are not a begin and an end");
      entry.begin = places[0];
      entry.end = places[1];
    } else {
      json.fail("tensor \"", entry.name, "\" has the unknown key \"", key, "\"");
    }
  }
  if (!has_type || !has_shape || !has_place)
    json.fail("tensor \"", entry.name, "\" lacks dtype, shape or data_offsets");
  return entry;
}

// Each name once; `what` names them in messages.
void check_distinct(std::vector<std::string_view> names, Status status, const char* what) {
  sort_stable(names);
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) throw_error(status, "two ", what, " are named \"", *twice, "\"");
}

void check_names(const Archive& archive, Status status) {
  std::vector<std::string_view> names;
  for (const NamedTensor& tensor : archive.tensors) names.push_back(tensor.name);
  check_distinct(std::move(names), status, "tensors");
  names.clear();
  for (const auto& [key, text] : archive.metadata) names.push_back(key);
  check_distinct(std::move(names), status, "entries of the metadata");
}

void read_metadata(JsonReader& json, Archive& archive) {
  json.begin_object();
  for (std::string key; json.next_key(key);) archive.metadata.emplace_back(key, json.text());
}

std::vector<Entry> read_header(std::string_view header, Archive& archive) {
  std::vector<Entry> entries;
  JsonReader json(header);
  bool has_metadata = false;
  json.begin_object();
  for (std::string key; json.next_key(key);) {
    if (key == kMetadata) {
      if (std::exchange(has_metadata, true)) json.fail("two \"", kMetadata, "\"");
      read_metadata(json, archive);
      continue;
    }
    if (key.find('\0') != std::string::npos) json.fail("a name with a NUL character");
    entries.push_back(read_entry(json, key));
  }
  json.end();
  return entries;
}

// The tensors, in the order of their data, follow one another without gaps and overlaps.
void check_layout(const std::vector<Entry>& entries, int64_t data_bytes) {
  std::vector<const Entry*> sorted;
  for (const Entry& entry : entries) sorted.push_back(&entry);
  sort_stable(sorted, [](const Entry* a, const Entry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  int64_t end = 0;
  for (const Entry* entry : sorted) {
    check(entry->end >= entry->begin && entry->end <= data_bytes, "tensor \"", entry->name,
          "\" is to lie at ", entry->begin, " to ", entry->end, " of ", data_bytes,
          " bytes of data");
    check(entry->begin >= end, "tensor \"", entry->name, "\" begins at byte ", entry->begin,
          " of the data, inside another, which ends at ", end);
    check(entry->begin == end, "bytes ", end, " to ", entry->begin, " of the data are no tensor's");
    end = entry->end;
  }
  check(end == data_bytes, "bytes ", end, " to ", data_bytes, " of the data are no tensor's");
}

// A type that is unknown here has a size that is unknown.
void check_size(const Entry& entry) {
  const std::string what = cat("tensor \"", entry.name, "\"");
  const int64_t count = element_count(entry.shape, what.c_str());
  const ElementType* type = element_type(entry.type);
  if (!type) return;
  const int64_t bits = checked_mul(count, type->bits, what.c_str());
  const int64_t bytes = entry.end - entry.begin;
  check(bits % 8 == 0 && bits / 8 == bytes, what, " of shape ", list_text(entry.shape),
        " and type ", entry.type, " needs ", ceil_div(bits, 8), " bytes, data_offsets give it ",
        bytes);
}

std::string_view name_of(DType dtype) {
  for (const ElementType& type : kElementTypes)
    if (type.ours == dtype.scalar && dtype.lanes == 1 && type.ours != ScalarType::Void)
      return type.name;
  throw_error(Status::Unsupported, ".safetensors files have no element type ", to_string(dtype));
}

void check_text(const std::string& text, const char* what) {
  require(is_utf8(text), Status::InvalidArgument, what, " \"", text, "\" is not UTF-8");
}

}  // namespace

Archive parse_safetensors(const SharedBytes& bytes, const StopSignal* stop) {
  check(bytes.size() >= kLengthBytes, "the file has ", bytes.size(),
        " bytes, too few for the length of its header");
  uint64_t length = 0;
  bytes.text().copy(reinterpret_cast<char*>(&length), sizeof length);
  const int64_t behind = bytes.size() - kLengthBytes;
  check(length <= static_cast<uint64_t>(behind), "the header is to have ", length,
        " bytes, the file has ", behind, " behind its length");
  const auto header_bytes = static_cast<int64_t>(length);
  require(header_bytes <= kHeaderMax, Status::Limit, "a header of ", header_bytes,
          " bytes, more than the limit of ", kHeaderMax);
  Archive archive;
  std::vector<Entry> entries;
  try {
    entries = read_header(bytes.part(kLengthBytes, header_bytes).text(), archive);
  } catch (const Error& e) {
    throw e.at("the header");
  }
  const int64_t data = kLengthBytes + header_bytes;
  check_layout(entries, bytes.size() - data);
  for (Entry& entry : entries) {
    check_size(entry);
    const ElementType* type = element_type(entry.type);
    const DType dtype = type ? type->ours : ScalarType::Void;
    SharedBytes part = bytes.part(data + entry.begin, entry.end - entry.begin);
    if (dtype.is_bool() && has_odd_bools(part, stop)) part = normal_bools(part, stop);
    archive.tensors.push_back({std::move(entry.name), {dtype, std::move(entry.shape), part}, ""});
    if (dtype == kVoid) archive.tensors.back().unsupported = std::move(entry.type);
  }
  check_names(archive, Status::InvalidModel);
  return archive;
}

Archive read_safetensors(const std::string& path, const FileAccess& access) {
  const SharedBytes bytes = open_file(path, access);
  try {
    return parse_safetensors(bytes, access.stop);
  } catch (const Error& e) {
    throw e.at(path).in_file(path);
  }
}

SafetensorsHeader safetensors_header(const Archive& archive) {
  check_names(archive, Status::InvalidArgument);
  SafetensorsHeader made;
  made.order.resize(archive.tensors.size());
  std::iota(made.order.begin(), made.order.end(), size_t{0});
  sort_stable(made.order, [&](size_t a, size_t b) {
    return archive.tensors[a].value.dtype.bytes() > archive.tensors[b].value.dtype.bytes();
  });
  JsonWriter json;
  json.begin_object();
  if (!archive.metadata.empty()) {
    json.key(kMetadata).begin_object();
    for (const auto& [key, text] : archive.metadata) {
      check_text(key, "the metadata's key");
      check_text(text, "the metadata's text");
      json.key(key).text(text);
    }
    json.end_object();
  }
  int64_t at = 0;
  for (const size_t i : made.order) {
    const NamedTensor& tensor = archive.tensors[i];
    check_text(tensor.name, "the name");
    require(tensor.name != kMetadata, Status::InvalidArgument, "a tensor cannot be named \"",
            kMetadata, "\"");
    const int64_t end = checked_add(at, supported(tensor).bytes.size(), "the size of the file");
    json.key(tensor.name).begin_object().key("dtype").text(name_of(tensor.value.dtype));
    json.key("shape").begin_array();
    for (const int64_t dim : tensor.value.shape) json.integer(dim);
    json.end_array().key("data_offsets").begin_array().integer(at).integer(end);
    json.end_array().end_object();
    at = end;
  }
  std::string text = json.end_object().result();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  made.bytes.assign(reinterpret_cast<const char*>(&length), sizeof length);
  made.bytes += text;
  return made;
}

void write_safetensors(const std::string& path, const Archive& archive, const StopSignal* stop) {
  const SafetensorsHeader header = safetensors_header(archive);
  std::vector<std::string_view> parts = {header.bytes};
  for (const size_t i : header.order) parts.push_back(archive.tensors[i].value.bytes.text());
  write_file(path, parts, stop);
}

}  // namespace tiny
