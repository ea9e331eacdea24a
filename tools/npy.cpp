#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <string_view>

#include "failure.h"
#include "npz.h"

namespace tiny::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Letters {
  std::string_view text;
  tiny_dtype dtype;
};
constexpr Letters kLetters[] = {{"b1", TINY_BOOL},    {"i1", TINY_INT8},    {"i2", TINY_INT16},
                                {"i4", TINY_INT32},   {"i8", TINY_INT64},   {"u1", TINY_UINT8},
                                {"u2", TINY_UINT16},  {"u4", TINY_UINT32},  {"u8", TINY_UINT64},
                                {"f2", TINY_FLOAT16}, {"f4", TINY_FLOAT32}, {"f8", TINY_FLOAT64},
                                {"V2", TINY_BFLOAT16}};

// What follows `'key':` in the header, which is the text of a Python dictionary.
std::string_view header_value(std::string_view header, std::string_view key) {
  const size_t at = header.find("'" + std::string(key) + "'");
  if (at == std::string_view::npos) return {};
  header.remove_prefix(at + key.size() + 2);
  const size_t colon = header.find_first_not_of(" :");
  return colon == std::string_view::npos ? std::string_view{} : header.substr(colon);
}

bool parse_shape(std::string_view text, std::vector<int64_t>& shape) {
  if (text.empty() || text[0] != '(') return false;
  text.remove_prefix(1);
  for (;;) {
    const size_t first = text.find_first_not_of(" ,");
    if (first == std::string_view::npos) return false;
    text.remove_prefix(first);
    if (text[0] == ')') return shape.size() <= TINY_RANK_MAX;
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), dim);
    if (error != std::errc() || dim < 0) return false;
    shape.push_back(dim);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
}

// Elements stored column by column, put row by row.
std::vector<std::byte> from_fortran(const Array& array) {
  const size_t size = tiny_dtype_size(array.dtype), rank = array.shape.size();
  std::vector<std::byte> rows(array.bytes.size());
  std::vector<size_t> strides(rank), index(rank);
  size_t stride = 1, from = 0;
  for (size_t axis = 0; axis < rank; ++axis) {
    strides[axis] = stride;
    stride *= static_cast<size_t>(array.shape[axis]);
  }
  for (size_t i = 0; i < array.count(); ++i) {
    std::memcpy(rows.data() + i * size, array.bytes.data() + from * size, size);
    for (size_t axis = rank; axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < static_cast<size_t>(array.shape[axis])) break;
      from -= strides[axis] * index[axis];
      index[axis] = 0;
    }
  }
  return rows;
}

}  // namespace

Array parse_npy(std::span<const std::byte> file, const std::string& path, const std::string& what) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const auto wrong = [&](const std::string& why) {
    return file_failure(path, (what.empty() ? "" : what + ": ") + why);
  };
  if (!text.starts_with(kMagic) || text.size() < 12) throw wrong("not a .npy file");
  const bool short_header = text[6] == 1;
  uint32_t length = 0;
  std::memcpy(&length, text.data() + 8, short_header ? 2 : 4);
  const size_t begin = short_header ? 10 : 12;
  if (text.size() - begin < length) throw wrong("the header is cut short");
  const std::string_view header = text.substr(begin, length);
  const std::string_view descr = header_value(header, "descr");
  if (descr.size() < 5 || descr[0] != '\'') throw wrong("elements that are no numbers");
  const char order = descr[1];
  Array array;
  array.dtype = 0;
  for (const auto& [letters, dtype] : kLetters)
    if (descr.substr(2).starts_with(letters) && descr[2 + letters.size()] == '\'')
      array.dtype = dtype;
  if (array.dtype == 0) throw wrong("no dtype for elements " + std::string(descr.substr(0, 8)));
  if (!parse_shape(header_value(header, "shape"), array.shape)) throw wrong("a shape is missing");
  const int64_t count = element_count(array.shape);
  const size_t size = tiny_dtype_size(array.dtype), given = text.size() - begin - length;
  if (count < 0 || static_cast<uint64_t>(count) > given / size || given % size != 0 ||
      static_cast<size_t>(count) * size != given)
    throw wrong("the data is not of the size of " + describe(array.dtype, array.shape));
  const auto data = file.subspan(begin + length);
  array.bytes.assign(data.begin(), data.end());
  if (order == '>')
    for (size_t i = 0; i < array.bytes.size(); i += size)
      std::reverse(array.bytes.begin() + static_cast<ptrdiff_t>(i),
                   array.bytes.begin() + static_cast<ptrdiff_t>(i + size));
  if (header_value(header, "fortran_order").starts_with("True")) array.bytes = from_fortran(array);
  return array;
}

std::vector<std::byte> format_npy(const Array& array) {
  std::string letters;
  for (const auto& [text, dtype] : kLetters)
    if (dtype == array.dtype) letters = text;
  if (array.dtype == TINY_BFLOAT16) letters = "u2";
  std::string header = "{'descr': '" + std::string(letters[1] == '1' ? "|" : "<") + letters +
                       "', 'fortran_order': False, 'shape': (";
  for (const int64_t dim : array.shape) header += std::to_string(dim) + ",";
  header += "), }";
  // The data begins at a multiple of 64.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string file(kMagic);
  file += '\1';
  file += '\0';
  file += static_cast<char>(header.size() & 255);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  std::vector<std::byte> bytes(file.size() + array.bytes.size());
  std::memcpy(bytes.data(), file.data(), file.size());
  std::copy(array.bytes.begin(), array.bytes.end(),
            bytes.begin() + static_cast<ptrdiff_t>(file.size()));
  return bytes;
}

}  // namespace tiny::cli
