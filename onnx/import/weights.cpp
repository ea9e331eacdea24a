// A model's constants: as memory of the device, and as values of the graph.
#include <bit>
#include <cstring>
#include <memory>
#include <utility>

#include "engine/realize.h"
#include "ir/build.h"
#include "onnx/import/import.h"
#include "onnx/import/narrow.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"

namespace tiny::onnx {

namespace {

// Constants of at most this many bytes are copied.
constexpr int64_t kCopiedMax = 16384;

// The first of two or more integers that count up one by one; none if they do not.
std::optional<int64_t> counted_from(const HostTensor& tensor, int64_t count) {
  if (tensor.dtype != kInt32 && tensor.dtype != kInt64) return std::nullopt;
  const auto size = static_cast<size_t>(tensor.dtype.bytes());
  int64_t first = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, tensor.bytes.data() + static_cast<size_t>(i) * size, size);
    const int64_t value = int_of(tensor.dtype, bits);
    if (i == 0) first = value;
    if (value < INT32_MIN || value > INT32_MAX || value - i != first) return std::nullopt;
  }
  if (count < 2) return std::nullopt;
  return first;
}

constexpr uintptr_t kVectorBytes = 64;
// Bytes of what kernels read again and again, vectors across cache lines and all, if it stays where
// it is; larger weights are laid out anew or read once a run.
constexpr int64_t kReadAgainMax = 64 << 10;

// The bits of a tensor whose elements all have the same.
std::optional<uint64_t> uniform_bits(const HostTensor& tensor) {
  constexpr int64_t kMostLookedAt = 4096;
  const int64_t count = element_count(tensor.shape, "a constant");
  if (count == 0 || count > kMostLookedAt) return std::nullopt;
  const auto width = static_cast<size_t>(tensor.dtype.bytes());
  for (int64_t i = 1; i < count; ++i)
    if (std::memcmp(tensor.bytes.data(), tensor.bytes.data() + static_cast<size_t>(i) * width,
                    width) != 0)
      return std::nullopt;
  uint64_t bits = 0;
  std::memcpy(&bits, tensor.bytes.data(), width);
  return bits;
}

void drop_bytes(void* user) {
  delete static_cast<SharedBytes*>(user);
}
void unload_bytes(void* user) {
  static_cast<SharedBytes*>(user)->unload();
}

// The bytes where they are, for as long as the storage, or a copy where the device cannot see them.
Ref<Storage> wrapped(Context& context, const SharedBytes& bytes) {
  if (!context.device().sees_host()) return context.from_host(bytes.data(), bytes.size());
  auto keeper = std::make_unique<SharedBytes>(bytes);
  // Kernels only read captured memory, so a read-only mapping serves.
  Ref<Buffer> memory = context.device().wrap(const_cast<std::byte*>(bytes.data()), bytes.size());
  Ref<Storage> storage = make_ref<Storage>(std::move(memory), 0, drop_bytes, keeper.get());
  keeper.release();
  if (bytes.can_unload()) storage->set_unload(unload_bytes);
  return storage;
}

// A copy of the bytes in memory of the device, from which shapes may be computed: where it keeps
// none, in memory that it is shown.
Ref<Storage> copied(Context& context, const SharedBytes& bytes) {
  Ref<Storage> storage = context.from_host(bytes.data(), bytes.size());
  if (has_elements(*storage)) return storage;
  return wrapped(context, SharedBytes::own({bytes.view().begin(), bytes.view().end()}));
}

}  // namespace

Ref<Storage> Weights::storage(Context& context, const HostTensor& tensor) {
  Ref<Storage>& known = storages_[tensor.bytes.data()];
  if (known) return known;
  const auto address = std::bit_cast<uintptr_t>(tensor.bytes.data());
  const bool in_place = address % kVectorBytes == 0 || tensor.bytes.size() > kReadAgainMax;
  known = in_place ? wrapped(context, tensor.bytes) : copied(context, tensor.bytes);
  return known;
}

Value Importer::constant(const HostTensor& tensor) {
  Value value;
  value.known = std::make_shared<const HostTensor>(tensor);
  const Shape shape = to_shape(tensor.shape);
  check_shape(shape, tensor.dtype);
  if (const auto bits = uniform_bits(tensor)) {
    value.tensor = full_bits(context_, tensor.dtype, shape, *bits);
    return value;
  }
  const int64_t count = element_count(tensor.shape, "a constant");
  if (count == 0) {
    value.tensor = full_bits(context_, tensor.dtype, shape, 0);
    return value;
  }
  if (const auto first = counted_from(tensor, count)) {
    // Positions, not data: what selects by them can be read instead of summed.
    UOp positions = make_iota(context_->graph(), count, tensor.dtype);
    if (*first != 0) {
      const UOp start = context_->graph().constant_int(tensor.dtype, *first);
      positions = add(positions, make_expand(make_reshape(start, {1}), {count}));
    }
    value.tensor = Tensor(context_, make_reshape(positions, shape));
    return value;
  }
  // Small ones are copied: what is folded on the way must not stay with the model.
  const Ref<Storage> storage = tensor.bytes.size() <= kCopiedMax
                                   ? copied(*context_, tensor.bytes)
                                   : weights_.storage(*context_, tensor);
  storage->set_constant();
  const UOp buffer = make_buffer(context_->graph(), storage, tensor.dtype, count);
  value.tensor = Tensor(context_, make_reshape(buffer, shape));
  return value;
}

Value Importer::constant(const TensorData& tensor) {
  const TensorTypeInfo& type = *tensor_type(tensor.type);
  if (tensor.type == kTextType) {
    std::vector<int64_t> numbers;
    for (const std::string& text : tensor.strings) numbers.push_back(texts().number_of(text));
    const auto* bytes = reinterpret_cast<const std::byte*>(numbers.data());
    Value value = constant(HostTensor{
        kInt64, tensor.dims, SharedBytes::own({bytes, bytes + numbers.size() * sizeof(int64_t)})});
    value.carried = kTextType;
    return value;
  }
  if (!is_carried(type)) return constant(to_host_tensor(tensor));
  Value value;
  if (type.bits < 8 && tensor.count > kFoldedMax)
    value.tensor =
        unpacked(constant(HostTensor{kUInt8, {tensor.bytes.size()}, tensor.bytes}).tensor, tensor);
  else
    value = constant(to_host_tensor(tensor));
  value.carried = tensor.type;
  return value;
}

}  // namespace tiny::onnx
