#include "io/idx.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "base/pieces.h"
#include "io/limits.h"

namespace tiny {

namespace {

struct ElementType {
  uint8_t code;
  ScalarType type;
};
constexpr ElementType kElementTypes[] = {{0x08, ScalarType::UInt8},   {0x09, ScalarType::Int8},
                                         {0x0b, ScalarType::Int16},   {0x0c, ScalarType::Int32},
                                         {0x0d, ScalarType::Float32}, {0x0e, ScalarType::Float64}};

constexpr int64_t kHeadBytes = 4;
constexpr int64_t kSizeBytes = 4;

const ElementType* type_of(std::byte code) {
  for (const ElementType& type : kElementTypes)
    if (std::byte{type.code} == code) return &type;
  return nullptr;
}

template <class... Parts>
void check(bool ok, const Parts&... parts) {
  require(ok, Status::InvalidModel, "IDX: ", parts...);
}

}  // namespace

bool is_idx(const SharedBytes& bytes) {
  return bytes.size() >= kHeadBytes && bytes.data()[0] == std::byte{0} &&
         bytes.data()[1] == std::byte{0} && type_of(bytes.data()[2]) != nullptr;
}

HostTensor parse_idx(const SharedBytes& bytes, const FileAccess& access) {
  check(bytes.size() >= kHeadBytes, "a file of ", bytes.size(), " bytes");
  const std::byte* data = bytes.data();
  check(data[0] == std::byte{0} && data[1] == std::byte{0}, "the file does not begin with 0 0");
  const ElementType* type = type_of(data[2]);
  check(type != nullptr, "unknown element type ", static_cast<int>(data[2]));
  const auto rank = static_cast<int64_t>(data[3]);
  check(rank <= Limits{}.rank, rank, " axes, more than ", Limits{}.rank);
  const int64_t head = kHeadBytes + rank * kSizeBytes;
  check(bytes.size() >= head, "the sizes of ", rank, " axes are missing");
  HostTensor tensor{DType(type->type), {}, {}};
  for (int64_t at = kHeadBytes; at < head; at += kSizeBytes) {
    int64_t size = 0;
    for (int64_t i = 0; i < kSizeBytes; ++i) size = size << 8 | static_cast<int64_t>(data[at + i]);
    tensor.shape.push_back(size);
  }
  const int64_t width = tensor.dtype.bytes();
  const int64_t wanted = checked_mul(element_count(tensor.shape, "an IDX file"), width, "IDX");
  check(bytes.size() - head == wanted, "shape ", list_text(tensor.shape), " of ", tensor.dtype,
        " needs ", wanted, " bytes, the file has ", bytes.size() - head);
  tensor.bytes = bytes.part(head, wanted);
  if (width == 1) return tensor;
  const auto turned = make_ref<NewBytes>(access.memory, wanted);
  for_each_piece_of(wanted, width, access.stop, [&](int64_t begin, int64_t size) {
    for (int64_t at = begin; at < begin + size; at += width)
      std::reverse_copy(data + head + at, data + head + at + width, turned->data() + at);
  });
  tensor.bytes = NewBytes::shared(turned);
  return tensor;
}

}  // namespace tiny
