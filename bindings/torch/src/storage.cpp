#include "storage.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "computed.h"
#include "layout.h"
#include "variables.h"

namespace tiny_torch {

namespace {

struct Contents {
  size_t bytes = 0;
  char* address = nullptr;
  size_t reserved = 0;  // bytes of addresses
  Value form;
  c10::DimVector sizes, strides;  // of form
  Value flat;
  std::function<Value()> later;
  // Another storage may have this value, by movement of it or as it is: who writes to a part has to
  // have a value of its own first.
  bool is_shared = false;
  Contents* previous = nullptr;  // among those that are alive
  Contents* next = nullptr;
  bool is_pending = false;   // written since all was computed
  bool is_own_cell = false;  // form was made by an operation: its cell has these elements alone
  bool is_in_order = true;   // flat's cell has its elements in the storage's order
};

// The lock outlives every storage, as the context does.
std::recursive_mutex& lock() {
  static auto& mutex = *new std::recursive_mutex;
  return mutex;
}
// Every storage that is alive: a ring around this one.
Contents& living() {
  static auto& ring = *[] {
    auto* const made = new Contents;
    made->previous = made->next = made;
    return made;
  }();
  return ring;
}
void enter(Contents& contents) {
  Contents& ring = living();
  contents.previous = ring.previous;
  contents.next = &ring;
  ring.previous->next = &contents;
  ring.previous = &contents;
}
void leave(Contents& contents) {
  contents.previous->next = contents.next;
  contents.next->previous = contents.previous;
}

int64_t pending_writes = 0;
int64_t flushes = 0;

// Ranges of addresses, by size, of a region that nothing is mapped to.
class Region {
 public:
  char* take(size_t bytes) {
    const size_t size = rounded(bytes);
    auto& free = free_[size];
    if (!free.empty()) {
      char* const address = free.back();
      free.pop_back();
      return address;
    }
    if (!base_ || size > kBytes - used_) reserve(size);
    char* const address = base_ + used_;
    used_ += size;
    return address;
  }
  void give(char* address, size_t bytes) { free_[rounded(bytes)].push_back(address); }

 private:
  static constexpr size_t kBytes = size_t{1} << 40;
  static constexpr size_t kGranule = 64;  // bytes: what PyTorch's allocators align to

  // Four sizes an octave, so that what is given back fits what is asked for later.
  static size_t rounded(size_t bytes) {
    const size_t least = std::max(bytes, kGranule);
    const size_t step = std::max(std::bit_floor(least) / 4, kGranule);
    return (least + step - 1) / step * step;
  }
  void reserve(size_t size) {
    TORCH_CHECK_WITH(OutOfMemoryError, size <= kBytes, "tiny: a storage of ", size,
                     " bytes; at most ", kBytes, " have addresses");
    void* const got =
        mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TORCH_CHECK_WITH(OutOfMemoryError, got != MAP_FAILED, "tiny: no ", kBytes,
                     " bytes of addresses can be reserved (ulimit -v?)");
    base_ = static_cast<char*>(got);
    used_ = 0;
  }

  char* base_ = nullptr;
  size_t used_ = 0;
  std::unordered_map<size_t, std::vector<char*>> free_;
};

Region& region() {
  static auto& made = *new Region;
  return made;
}

void drop(void* context) {
  const std::lock_guard guard(lock());
  auto* const contents = static_cast<Contents*>(context);
  leave(*contents);
  if (contents->address) region().give(contents->address, contents->reserved);
  delete contents;
}

// Addresses of a storage whose size is a stand-in for another: that many bytes there never are.
constexpr size_t kRecordedBytesMax = 64;

class TinyAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    auto* const contents = new Contents;
    contents->bytes = bytes;
    contents->reserved = recording() ? std::min(bytes, kRecordedBytesMax) : bytes;
    const std::lock_guard guard(lock());
    enter(*contents);
    if (bytes) contents->address = region().take(contents->reserved);
    return {contents->address, contents, &drop, c10::Device(c10::DeviceType::PrivateUse1, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void*, const void*, std::size_t) const override {
    TORCH_CHECK_NOT_IMPLEMENTED(false,
                                "tiny: storages are copied as tensors (clone), not as memory");
  }
};

TinyAllocator tiny_allocator;
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &tiny_allocator)

// Where a tensor's elements are: a storage made here, and where its own storage begins there.
struct Place {
  Contents& contents;
  int64_t offset = 0;  // bytes
};

// The storage with its form, which may not be made yet.
Contents& with_form(Contents& contents) {
  if (!contents.later) return contents;
  const auto make = std::exchange(contents.later, nullptr);
  contents.form = make();
  contents.is_shared = true;
  contents.is_pending = true;
  ++pending_writes;
  return contents;
}

Place place_of(const at::Tensor& tensor) {
  const c10::DataPtr& pointer = tensor.storage().data_ptr();
  if (pointer.get_deleter() == &drop)
    return {with_form(*static_cast<Contents*>(pointer.get_context()))};
  // PyTorch makes storages of addresses, too, when it writes files: part of one that is alive.
  auto* const address = static_cast<char*>(const_cast<void*>(pointer.get()));
  for (Contents* it = living().next; it != &living(); it = it->next)
    if (it->address && address >= it->address && address < it->address + it->bytes)
      return {with_form(*it), address - it->address};
  TORCH_CHECK(false, "tiny: no storage of device \"tiny\" is at the address of a tensor");
}

// As a tensor that begins where the storage does.
Layout layout_in(const Place& place, const at::Tensor& tensor) {
  Layout layout = layout_of(tensor);
  layout.offset += place.offset / static_cast<int64_t>(tensor.itemsize());
  return layout;
}

size_t item_bytes(tiny_dtype dtype) {
  return tiny_dtype_size(dtype);
}

// The bits of `flat` as elements of another size, as many as are whole among `bytes`; zeros follow
// what it holds.
Value recut_to(const Value& flat, tiny_dtype dtype, size_t bytes) {
  const size_t item = item_bytes(flat.dtype());
  const size_t wanted = bytes / item_bytes(dtype) * item_bytes(dtype);
  const int64_t zero = 0;
  const int64_t change = static_cast<int64_t>((wanted + item - 1) / item) - flat.numel();
  const Value whole = change ? pad(flat, {&zero, 1}, {&change, 1}, 0) : flat;
  const Value made = recut(whole, dtype);
  const int64_t count = static_cast<int64_t>(wanted / item_bytes(dtype));
  return made.numel() == count ? made : slice_axis(made, 0, 0, count);
}

// A form as elements in the order of the storage.
Value flattened(Contents& contents) {
  const size_t rank = contents.sizes.size();
  Sizes order(rank);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return contents.strides[static_cast<size_t>(a)] > contents.strides[static_cast<size_t>(b)];
  });
  const bool is_sorted = std::is_sorted(order.begin(), order.end());
  contents.is_in_order = is_sorted && contents.is_own_cell;
  const Value ordered = is_sorted ? contents.form : permute(contents.form, order);
  const int64_t count = ordered.numel();
  return reshape(ordered, {&count, 1});
}

Value flat_of(Contents& contents, tiny_dtype dtype) {
  if (!contents.flat) {
    const int64_t count = static_cast<int64_t>(contents.bytes / item_bytes(dtype));
    contents.flat = contents.form ? flattened(contents) : full(dtype, {&count, 1}, 0);
  }
  const tiny_dtype held = contents.flat.dtype();
  if (held == dtype) return contents.flat;
  return recut_to(contents.flat, dtype, contents.bytes);
}

// The same to see as a layout: what no movement makes addresses the elements of a cell.
Value flat_for(Contents& contents, tiny_dtype dtype, const Layout& layout) {
  const Value flat = flat_of(contents, dtype);
  if (contents.is_in_order || is_movement(layout, flat.numel())) return flat;
  contents.flat = clone(contents.flat);
  contents.is_in_order = true;
  return flat_of(contents, dtype);
}

void note_write(Contents& contents) {
  contents.is_pending = true;
  if (++pending_writes > kPendingWritesMax) flush();
}

bool has_sizes(const Value& value, at::IntArrayRef sizes) {
  int64_t held[TINY_RANK_MAX];
  const size_t rank = value.shape(held);
  return rank == sizes.size() && std::equal(sizes.begin(), sizes.end(), held);
}

Value with_sizes(const Value& value, at::IntArrayRef sizes) {
  if (has_sizes(value, sizes)) return value;
  return expand(value, {sizes.data(), sizes.size()});
}

// Elements that several places of a target share get the value of the last place, as loops in
// row-major order leave it.
void write_overlapping(Contents& contents, const Layout& layout, const Value& value) {
  const tiny_dtype dtype = value.dtype();
  const size_t item = item_bytes(dtype);
  const Value flat = flat_of(contents, dtype);
  const int64_t elements = value.numel();
  std::vector<char> memory(static_cast<size_t>(flat.numel()) * item);
  std::vector<char> given(static_cast<size_t>(elements) * item);
  read(flat, memory.data(), memory.size());
  read(value, given.data(), given.size());
  for (int64_t i = 0; i < elements; ++i) {
    int64_t at = layout.offset;
    int64_t rest = i;
    for (size_t axis = layout.sizes.size(); axis-- > 0; rest /= layout.sizes[axis])
      at += rest % layout.sizes[axis] * layout.strides[axis];
    std::memcpy(memory.data() + static_cast<size_t>(at) * item,
                given.data() + static_cast<size_t>(i) * item, item);
  }
  const int64_t count = flat.numel();
  contents.flat = from_data(dtype, {&count, 1}, memory.data(), memory.size());
  contents.is_in_order = true;
}

bool covers(const Contents& contents, const at::Tensor& tensor) {
  return tensor.storage_offset() == 0 &&
         static_cast<size_t>(tensor.numel()) * tensor.itemsize() == contents.bytes &&
         tensor.is_non_overlapping_and_dense();
}

void write_part(const Place& place, const at::Tensor& tensor, Value value) {
  Contents& contents = place.contents;
  const Layout layout = layout_in(place, tensor);
  const Layout target = without_repeats(layout);
  if (target.sizes != layout.sizes) value = last_of_repeats(value, layout);
  if (may_overlap(target)) {
    write_overlapping(contents, layout, with_sizes(value, tensor.sizes()));
  } else if (recording()) {
    // A program has values and no state: the storage has another one from now on.
    contents.flat = written(flat_of(contents, value.dtype()), target, value);
    contents.is_in_order = true;
    contents.is_shared = false;
  } else {
    Value flat = flat_for(contents, value.dtype(), target);
    if (std::exchange(contents.is_shared, false)) {
      flat = clone(flat);
      contents.is_in_order = true;
    }
    assign(view_of(flat, target), value);
    contents.flat = flat;  // another dtype's bits, perhaps
  }
  contents.form = Value();
}

}  // namespace

tiny_dtype dtype_of(at::ScalarType type, const char* what) {
  switch (type) {
    case at::kBool:
      return TINY_BOOL;
    case at::kChar:
      return TINY_INT8;
    case at::kShort:
      return TINY_INT16;
    case at::kInt:
      return TINY_INT32;
    case at::kLong:
      return TINY_INT64;
    case at::kByte:
      return TINY_UINT8;
    case at::kUInt16:
      return TINY_UINT16;
    case at::kUInt32:
      return TINY_UINT32;
    case at::kUInt64:
      return TINY_UINT64;
    case at::kHalf:
      return TINY_FLOAT16;
    case at::kBFloat16:
      return TINY_BFLOAT16;
    case at::kFloat:
      return TINY_FLOAT32;
    case at::kDouble:
      return TINY_FLOAT64;
    case at::kFloat8_e4m3fn:
      return TINY_FLOAT8_E4M3FN;
    case at::kFloat8_e4m3fnuz:
      return TINY_FLOAT8_E4M3FNUZ;
    case at::kFloat8_e5m2:
      return TINY_FLOAT8_E5M2;
    case at::kFloat8_e5m2fnuz:
      return TINY_FLOAT8_E5M2FNUZ;
    default:
      break;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(false, what, ": tensors of ", type,
                              " are not supported on device \"tiny\"");
}

at::ScalarType scalar_type_of(tiny_dtype type) {
  constexpr at::ScalarType kTypes[] = {
      at::kBool,        at::kChar,           at::kShort,  at::kInt,           at::kLong,
      at::kByte,        at::kUInt16,         at::kUInt32, at::kUInt64,        at::kHalf,
      at::kBFloat16,    at::kFloat,          at::kDouble, at::kFloat8_e4m3fn, at::kFloat8_e4m3fnuz,
      at::kFloat8_e5m2, at::kFloat8_e5m2fnuz};
  TORCH_CHECK(type >= TINY_BOOL && type <= TINY_FLOAT8_E5M2FNUZ, "tiny: no type of PyTorch is ",
              type);
  return kTypes[type - TINY_BOOL];
}

c10::Allocator* allocator() {
  return &tiny_allocator;
}

namespace {

// The form's axes in the tensor's order, if the tensor is the form with its axes in another order.
std::optional<Sizes> order_in_form(const Contents& contents, const at::Tensor& tensor) {
  const size_t rank = contents.sizes.size();
  if (static_cast<size_t>(tensor.dim()) != rank || tensor.storage_offset() != 0)
    return std::nullopt;
  Sizes order;
  std::vector<bool> is_taken(rank);
  for (int64_t axis = 0; axis < tensor.dim(); ++axis) {
    size_t other = 0;
    while (other < rank &&
           (is_taken[other] || contents.sizes[other] != tensor.size(axis) ||
            (tensor.size(axis) > 1 && contents.strides[other] != tensor.stride(axis))))
      ++other;
    if (other == rank) return std::nullopt;
    is_taken[other] = true;
    order.push_back(static_cast<int64_t>(other));
  }
  return order;
}

Value value_at(const Place& place, const at::Tensor& tensor) {
  Contents& contents = place.contents;
  const tiny_dtype dtype = dtype_of(tensor.scalar_type());
  if (contents.form && place.offset == 0 && tensor.storage_offset() == 0 &&
      tensor.sizes() == contents.sizes && tensor.strides() == contents.strides &&
      contents.form.dtype() == dtype)
    return contents.form;
  if (contents.form && place.offset == 0 && contents.form.dtype() == dtype && tensor.numel() > 0)
    if (const auto order = order_in_form(contents, tensor)) return permute(contents.form, *order);
  if (tensor.numel() == 0) return full(dtype, {tensor.sizes().data(), tensor.sizes().size()}, 0);
  const Layout layout = layout_in(place, tensor);
  return view_of(flat_for(contents, dtype, layout), layout);
}

}  // namespace

Value read(const at::Tensor& tensor) {
  if (tensor.is_neg()) return -read(tensor._neg_view());
  const std::lock_guard guard(lock());
  const Place place = place_of(tensor);
  place.contents.is_shared = true;
  return value_at(place, tensor);
}

Value read_operand(const at::Tensor& tensor) {
  if (tensor.is_neg()) return -read_operand(tensor._neg_view());
  const std::lock_guard guard(lock());
  return value_at(place_of(tensor), tensor);
}

namespace {

void put(const at::Tensor& tensor, const Value& given, bool is_new) {
  const std::lock_guard guard(lock());
  const Place place = place_of(tensor);
  Contents& contents = place.contents;
  Value value = cast(given, dtype_of(tensor.scalar_type()));
  if (!has_sizes(value, tensor.sizes())) {
    value = with_sizes(value, tensor.sizes());
    is_new = false;
  }
  if (tensor.is_neg()) value = -value;
  if (tensor.numel() == 0) return;
  if (covers(contents, tensor)) {
    contents.form = std::move(value);
    contents.is_shared = !is_new;
    contents.is_own_cell = is_new;
    contents.sizes = tensor.sizes();
    contents.strides = tensor.strides();
    contents.flat = Value();
  } else {
    write_part(place, tensor, std::move(value));
  }
  note_write(contents);
}

}  // namespace

void write(const at::Tensor& tensor, const Value& value) {
  put(tensor, value, false);
}
void write_new(const at::Tensor& tensor, const Value& value) {
  put(tensor, value, true);
}

void write_later(const at::Tensor& tensor, std::function<Value()> make) {
  const std::lock_guard guard(lock());
  Contents& contents = place_of(tensor).contents;
  // A recording asks for results while it lasts.
  if (recording() || tensor.numel() == 0 || tensor.is_neg() || !covers(contents, tensor))
    return write(tensor, make());
  contents.form = contents.flat = Value();
  contents.sizes = tensor.sizes();
  contents.strides = tensor.strides();
  contents.is_own_cell = contents.is_pending = false;
  contents.later = std::move(make);
}

bool is_computed(const at::Tensor& tensor) {
  const std::lock_guard guard(lock());
  return !place_of(tensor).contents.is_pending;
}

void write_elements(const at::Tensor& tensor, const Value& value) {
  const std::lock_guard guard(lock());
  const bool is_whole = value.dtype() == dtype_of(tensor.scalar_type()) && !tensor.is_neg() &&
                        has_sizes(value, tensor.sizes()) &&
                        covers(place_of(tensor).contents, tensor);
  put(tensor, value, true);
  if (is_whole) place_of(tensor).contents.is_pending = false;
}

bool copy_whole(const at::Tensor& source, const at::Tensor& target) {
  if (source.scalar_type() != target.scalar_type() || source.sizes() != target.sizes() ||
      source.strides() != target.strides() || source.is_neg() || target.is_neg())
    return false;
  const std::lock_guard guard(lock());
  const Place from = place_of(source);
  const Place to = place_of(target);
  if (from.offset || to.offset || !covers(from.contents, source) || !covers(to.contents, target) ||
      !(from.contents.form || from.contents.flat))
    return false;
  from.contents.is_shared = true;
  to.contents.form = from.contents.form;
  to.contents.sizes = from.contents.sizes;
  to.contents.strides = from.contents.strides;
  to.contents.flat = from.contents.flat;
  to.contents.is_shared = true;
  to.contents.is_own_cell = from.contents.is_own_cell;
  to.contents.is_in_order = from.contents.is_in_order;
  note_write(to.contents);
  return true;
}

void flush() {
  const std::lock_guard guard(lock());
  if (pending_writes == 0) return;
  pending_writes = 0;
  std::vector<Value> values;
  for (Contents* it = living().next; it != &living(); it = it->next)
    if (std::exchange(it->is_pending, false)) values.push_back(it->form ? it->form : it->flat);
  if (values.empty()) return;
  std::vector<tiny_tensor*> handles;
  handles.reserve(values.size());
  for (const Value& value : values) handles.push_back(value.handle());
  ++flushes;
  realize(handles);
}

int64_t flush_count() {
  return flushes;
}

void resize_bytes(const c10::Storage& storage, size_t bytes) {
  const std::lock_guard guard(lock());
  auto& old = with_form(*static_cast<Contents*>(storage.data_ptr().get_context()));
  c10::DataPtr pointer = tiny_allocator.allocate(bytes);
  auto& made = *static_cast<Contents*>(pointer.get_context());
  const size_t kept = std::min(old.bytes, bytes);
  if (kept && (old.form || old.flat)) {
    const tiny_dtype dtype = (old.form ? old.form : old.flat).dtype();
    const Value flat = flat_of(old, dtype);
    const size_t item = item_bytes(dtype);
    if (bytes % item || old.bytes % item) {
      made.flat = recut_to(recut(flat, TINY_UINT8), TINY_UINT8, bytes);
    } else {
      const int64_t zero = 0;
      const int64_t change = static_cast<int64_t>(bytes / item) - flat.numel();
      made.flat = pad(flat, {&zero, 1}, {&change, 1}, 0);
      made.is_shared = true;
      made.is_in_order = false;
    }
    note_write(made);
  }
  c10::StorageImpl* const impl = storage.unsafeGetStorageImpl();
  impl->set_data_ptr_noswap(std::move(pointer));
  impl->set_nbytes(bytes);
}

}  // namespace tiny_torch
