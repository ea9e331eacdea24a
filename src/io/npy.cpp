#include "io/npy.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "base/pieces.h"

namespace tiny {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kRankMax = 64;
constexpr size_t kAlignment = 64;  // of the data in the file, as NumPy writes it

struct TypeCode {
  std::string_view code;  // of a little-endian file, without its byte-order character
  ScalarType type;
};
constexpr TypeCode kTypeCodes[] = {
    {"b1", ScalarType::Bool},    {"i1", ScalarType::Int8},    {"i2", ScalarType::Int16},
    {"i4", ScalarType::Int32},   {"i8", ScalarType::Int64},   {"u1", ScalarType::UInt8},
    {"u2", ScalarType::UInt16},  {"u4", ScalarType::UInt32},  {"u8", ScalarType::UInt64},
    {"f2", ScalarType::Float16}, {"f4", ScalarType::Float32}, {"f8", ScalarType::Float64},
    {"V2", ScalarType::BFloat16}};

template <class... Parts>
void check(bool ok, const Parts&... parts) {
  require(ok, Status::InvalidModel, ".npy file: ", parts...);
}

struct Header {
  std::string descr;
  bool fortran = false;
  Ints shape;
};

// Reads the header: a Python dictionary of a string, a boolean and a tuple of integers.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Header parse() {
    Header header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        require(peek() != '[', Status::Unsupported, ".npy file: a structured element type");
        header.descr = quoted();
        has_descr = true;
      } else if (key == "fortran_order") {
        header.fortran = boolean();
        has_order = true;
      } else if (key == "shape") {
        header.shape = tuple();
        has_shape = true;
      } else {
        check(false, "unknown header key \"", key, "\"");
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    check(peek() == '\0', "text behind the header");
    check(has_descr && has_order && has_shape, "the header lacks descr, fortran_order or shape");
    return header;
  }

 private:
  // The next character that is no space; NUL at the end.
  char peek() {
    const size_t at = text_.find_first_not_of(" \t\r\n");
    text_.remove_prefix(at == std::string_view::npos ? text_.size() : at);
    return text_.empty() ? '\0' : text_[0];
  }
  bool take(char c) {
    if (peek() != c || c == '\0') return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) { check(take(c), "the header has no '", c, "' where it is due"); }

  std::string quoted() {
    const char quote = peek();
    check(quote == '\'' || quote == '"', "the header has no string where it is due");
    const size_t end = text_.find(quote, 1);
    check(end != std::string_view::npos, "a string in the header does not end");
    const std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }

  bool boolean() {
    peek();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true},
                                      std::pair<std::string_view, bool>{"False", false}})
      if (text_.starts_with(word)) {
        text_.remove_prefix(word.size());
        return value;
      }
    check(false, "fortran_order is neither True nor False");
    return false;
  }

  Ints tuple() {
    Ints values;
    expect('(');
    while (!take(')')) {
      peek();
      int64_t value = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
      check(error == std::errc() && value >= 0, "the shape holds no valid dimension");
      check(values.size() < kRankMax, "more than ", kRankMax, " dimensions");
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      take('L');  // Python 2 wrote long integers so.
      values.push_back(value);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

  std::string_view text_;
};

// The dtype, and whether the bytes of its elements stand in reverse.
std::pair<DType, bool> element_type(const std::string& descr) {
  const std::string_view order = std::string_view(descr).substr(0, 1);
  for (const TypeCode& row : kTypeCodes) {
    if (std::string_view(descr).substr(order.size()) != row.code) continue;
    const DType dtype = row.type;
    if (order == "<" || order == "|" || order == "=") return {dtype, false};
    if (order == ">") return {dtype, dtype.bytes() > 1 && row.type != ScalarType::BFloat16};
  }
  throw_error(Status::Unsupported, ".npy file: the element type \"", descr, "\" is not supported");
}

std::vector<std::byte> reversed_elements(const SharedBytes& bytes, int64_t width,
                                         const StopSignal* stop) {
  std::vector<std::byte> out;
  out.reserve(static_cast<size_t>(bytes.size()));
  for_each_piece_of(bytes.size(), width, stop, [&](int64_t at, int64_t size) {
    for (const std::byte *from = bytes.data() + at, *end = from + size; from != end; from += width)
      std::reverse_copy(from, from + width, std::back_inserter(out));
  });
  return out;
}

// The same elements with the last axis fastest; `bytes` has the first axis fastest.
std::vector<std::byte> row_major(const SharedBytes& bytes, const Ints& shape, int64_t width,
                                 const StopSignal* stop) {
  const size_t rank = shape.size();
  Ints strides(rank);  // in the file, in bytes
  int64_t step = width;
  for (size_t k = 0; k < rank; ++k) {
    strides[k] = step;
    step *= shape[k];
  }
  std::vector<std::byte> out;
  out.reserve(static_cast<size_t>(bytes.size()));
  Ints index(rank, 0);
  int64_t from = 0;
  for_each_piece_of(bytes.size(), width, stop, [&](int64_t, int64_t size) {
    for (int64_t done = 0; done < size; done += width) {
      const std::byte* element = bytes.data() + from;
      out.insert(out.end(), element, element + width);
      for (size_t k = rank; k-- > 0;) {
        from += strides[k];
        if (++index[k] < shape[k]) break;
        from -= strides[k] * shape[k];
        index[k] = 0;
      }
    }
  });
  return out;
}

std::string code_of(DType dtype) {
  for (const TypeCode& row : kTypeCodes)
    if (row.type == dtype.scalar && dtype.lanes == 1)
      return cat(dtype.bytes() == 1 ? "|" : "<", row.code);
  throw_error(Status::Unsupported, ".npy files have no element type ", to_string(dtype));
}

}  // namespace

HostTensor parse_npy(const SharedBytes& bytes, const StopSignal* stop) {
  const std::string_view text = bytes.text();
  check(text.starts_with(kMagic) && text.size() >= kMagic.size() + 4, "the first bytes are wrong");
  const auto byte_at = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(text[i])); };
  const size_t version = byte_at(6);
  check(version >= 1 && version <= 3 && byte_at(7) == 0, "version ", version, ".", byte_at(7),
        " is unknown");
  const size_t length_bytes = version == 1 ? 2 : 4;
  const size_t begin = 8 + length_bytes;
  check(text.size() >= begin, "the file ends inside its header");
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) length |= byte_at(8 + i) << (8 * i);
  check(length <= text.size() - begin, "the file ends inside its header");
  const Header header = HeaderParser(text.substr(begin, length)).parse();
  const auto [dtype, reversed] = element_type(header.descr);
  const int64_t count = element_count(header.shape, ".npy file");
  const int64_t size = checked_mul(count, dtype.bytes(), "the size of a .npy file");
  const int64_t have = static_cast<int64_t>(text.size() - begin - length);
  check(size == have, "shape ", list_text(header.shape), " of ", to_string(dtype), " needs ", size,
        " bytes, the file has ", have);
  HostTensor tensor{dtype, header.shape, bytes.part(static_cast<int64_t>(begin + length), size)};
  if (header.fortran && header.shape.size() > 1 && count > 1)
    tensor.bytes = SharedBytes::own(row_major(tensor.bytes, header.shape, dtype.bytes(), stop));
  if (reversed) {
    tensor.bytes = SharedBytes::own(reversed_elements(tensor.bytes, dtype.bytes(), stop));
  }
  if (dtype.is_bool() && has_odd_bools(tensor.bytes, stop))
    tensor.bytes = normal_bools(tensor.bytes, stop);
  return tensor;
}

HostTensor read_npy(const std::string& path, const FileAccess& access) {
  const SharedBytes bytes = open_file(path, access);
  try {
    return parse_npy(bytes, access.stop);
  } catch (const Error& e) {
    throw e.at(path).in_file(path);
  }
}

namespace {

// What stands before the elements.
std::string npy_head(const HostTensor& tensor) {
  std::string shape;
  for (int64_t dim : tensor.shape) shape += cat(dim, ", ");
  if (tensor.shape.size() > 1) shape.resize(shape.size() - 2);
  if (tensor.shape.size() == 1) shape.resize(shape.size() - 1);
  std::string header = cat("{'descr': '", code_of(tensor.dtype),
                           "', 'fortran_order': False, 'shape': (", shape, "), }");
  const size_t fixed = kMagic.size() + 4;
  const size_t unpadded = fixed + header.size() + 1;
  header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string out(kMagic);
  out += '\x01';
  out += '\0';
  out += static_cast<char>(header.size() & 0xFF);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  return out;
}

}  // namespace

std::string npy_bytes(const HostTensor& tensor) {
  return npy_head(tensor).append(tensor.bytes.text());
}

void write_npy(const std::string& path, const HostTensor& tensor, const StopSignal* stop) {
  const std::string head = npy_head(tensor);
  const std::string_view parts[] = {head, tensor.bytes.text()};
  write_file(path, parts, stop);
}

}  // namespace tiny
