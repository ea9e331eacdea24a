// Loaders: batches of the rows of tensors.
#include <mutex>
#include <optional>

#include "api/archive_handle.h"
#include "api/boundary.h"
#include "api/computed.h"
#include "io/batches.h"
#include "tensor/value.h"

using tiny::Held;
using tiny::require;
using tiny::Status;

namespace {

// A tensor whose rows are gathered; what it is never changes, so that any thread may.  On a device
// whose memory the host does not see it is read once, as it is when the loader is made.
struct Array {
  Held tensor;
  tiny::SharedBytes copy;
  tiny::Ints row;  // the shape of one
  int64_t row_bytes = 0;
};

// The rows one after the other.
void copy_rows(const Array& array, std::span<const int64_t> rows, std::byte* to) {
  const tiny_tensor& tensor = *array.tensor;
  // Stays where it is while this lives.
  const tiny::Computed elements(tensor);
  const bool has_copy = array.copy.size() > 0;
  const std::byte* data = has_copy ? array.copy.data() : elements.data();
  require(data != nullptr && to != nullptr, Status::InvalidArgument,
          "a tensor of the loader was assigned to and not computed since; tiny_realize does that");
  const auto width = static_cast<size_t>(tensor.dtype.bytes());
  const auto strides = tiny::strides_of(tensor);
  const bool is_whole = has_copy || tiny::is_row_major(array.row, strides.subspan(1));
  const int64_t step = has_copy ? array.row_bytes : strides[0] * tensor.dtype.bytes();
  for (const int64_t row : rows) {
    const std::byte* from = data + row * step;
    if (is_whole)
      std::memcpy(to, from, static_cast<size_t>(array.row_bytes));
    else
      tiny::copy_elements(to, from, width, array.row, strides.subspan(1));
    to += array.row_bytes;
  }
}

// The same in memory of the device.
tiny::Ref<tiny::Buffer> gather(tiny::Device& device, const Array& array,
                               std::span<const int64_t> rows) {
  const auto bytes = array.row_bytes * std::ssize(rows);
  const tiny::Ref<tiny::Buffer> memory = device.allocate(bytes);
  if (bytes == 0) return memory;
  if (device.sees_host()) {
    copy_rows(array, rows, memory->host());
  } else {
    std::vector<std::byte> staged(static_cast<size_t>(bytes));
    copy_rows(array, rows, staged.data());
    device.copy_in(nullptr, *memory, 0, staged.data(), bytes);
  }
  return memory;
}

// What the rows are gathered from, where the host does not see the device's memory.
void read_all(std::vector<Array>& arrays, tiny::Device& device) {
  for (Array& array : arrays) {
    const tiny_tensor& tensor = *array.tensor;
    const int64_t bytes = tensor.numel * tensor.dtype.bytes();
    const auto copy =
        tiny::make_ref<tiny::NewBytes>(tiny::Ref<tiny::MemoryUse>(&device.memory()), bytes);
    tiny::read(tensor.value, copy->data(), bytes);
    array.copy = tiny::NewBytes::shared(copy);
  }
}

}  // namespace

struct tiny_loader : tiny::CountedAs<tiny::HandleKind::Loader> {
  tiny_loader(tiny_context& c, std::vector<Array> a, const tiny::BatchPlan& plan, size_t ahead)
      : context(&c),
        arrays(std::move(a)),
        batches(plan, ahead, [this](std::span<const int64_t> rows) {
          tiny::BatchLoader::Memory memory;
          for (const Array& array : arrays)
            memory.push_back(gather(context->core->device(), array, rows));
          return memory;
        }) {
    c.retain();
  }
  void drop_batch() {
    current = {};
    given.assign(arrays.size(), Held());
  }

  tiny_context* context;
  const std::vector<Array> arrays;
  mutable std::mutex mutex;  // of what follows: one call at a time
  tiny::BatchLoader::Batch current;
  std::vector<Held> given;    // of the batch: what was asked for
  tiny::BatchLoader batches;  // ends its thread before what that looks at goes
};

namespace {

std::vector<Array> arrays_of(tiny_tensor* const* tensors, size_t count) {
  std::vector<Array> arrays;
  for (size_t i = 0; i < count; ++i) {
    const tiny_tensor& t = *tensors[i];
    require(t.is_fixed && t.rank > 0, Status::Shape, "arrays[", i, "] has no rows: its shape is ",
            t.is_fixed ? "[]" : t.shape);
    require(t.dims[0] == tensors[0]->dims[0], Status::Shape, "arrays[", i, "] has ", t.dims[0],
            " rows, arrays[0] ", tensors[0]->dims[0]);
    tiny::Ints row(t.dims + 1, t.dims + t.rank);
    const int64_t bytes = t.dims[0] == 0 ? 0 : t.numel / t.dims[0] * t.dtype.bytes();
    arrays.push_back({Held(&t), {}, std::move(row), bytes});
  }
  return arrays;
}

tiny::Tensor tensor_of(tiny_loader& loader, size_t index) {
  const Array& array = loader.arrays[index];
  tiny::Ints shape = array.row;
  shape.insert(shape.begin(), loader.current.rows);
  const tiny::DType dtype = array.tensor->dtype;
  tiny::Context& core = *loader.context->core;
  const auto storage = tiny::make_ref<tiny::Storage>(loader.current.memory[index], 0);
  storage->claim();
  const int64_t count = array.row_bytes / dtype.bytes() * loader.current.rows;
  return tiny::Tensor::of_memory(loader.context->core,
                                 tiny::make_buffer(core.graph(), storage, dtype, count),
                                 tiny::row_major(tiny::to_shape(shape)));
}

}  // namespace

extern "C" {

tiny_status tiny_loader_create(tiny_tensor* const* arrays, size_t count, int64_t batch,
                               int64_t seed, size_t ahead, tiny_flags flags, tiny_loader** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::guarded(__func__, [=] {
    tiny::check_flags(flags, TINY_FLAG_SHUFFLE | TINY_FLAG_DROP_LAST);
    require(count > 0, Status::InvalidArgument, "there are no arrays");
    tiny_context& context = tiny::Operands(arrays, count, "arrays").context();
    require(batch >= 1, Status::InvalidArgument, "a batch of ", batch, " rows; wanted at least 1");
    std::vector<Array> held = arrays_of(arrays, count);
    {
      const tiny::Building building(context);
      tiny::realize(tiny::values_in(arrays, count));
      tiny::Device& device = context.core->device();
      if (!device.sees_host()) read_all(held, device);
    }
    tiny::BatchPlan plan;
    plan.rows = arrays[0]->dims[0];
    plan.batch = batch;
    plan.is_shuffled = flags & TINY_FLAG_SHUFFLE;
    plan.drops_last = flags & TINY_FLAG_DROP_LAST;
    plan.seed = static_cast<uint64_t>(seed);
    *out = new tiny_loader(context, std::move(held), plan, ahead);
  });
}

void tiny_loader_retain(tiny_loader* loader) {
  tiny::retain_owned(loader);
}

void tiny_loader_release(tiny_loader* loader) {
  if (!tiny::is_last_release(loader)) return;
  if (loader->batches.is_stranded()) return;  // the child of a fork keeps what it has of it
  tiny_context* context = loader->context;
  delete loader;
  context->release();
}

tiny_status tiny_loader_batch_count(const tiny_loader* loader, int64_t* out) {
  return tiny::answer(__func__, out, loader, "loader",
                      [](const tiny_loader& l) { return l.batches.plan().count(); });
}

tiny_status tiny_loader_next(tiny_loader* loader, int64_t* out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = 0;
  return tiny::guarded(__func__, [=] {
    tiny_loader& l = tiny::required(loader, "loader");
    const std::lock_guard lock(l.mutex);
    const tiny::Beside beside(*l.context);
    l.drop_batch();
    l.current = l.batches.next(beside.stop());
    *out = l.current.rows;
  });
}

tiny_status tiny_loader_tensor(tiny_loader* loader, size_t index, tiny_tensor** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::guarded(__func__, [=] {
    tiny_loader& l = tiny::required(loader, "loader");
    const tiny::Building building(*l.context);
    const std::lock_guard lock(l.mutex);
    require(index < l.arrays.size(), Status::InvalidArgument, "the loader has ", l.arrays.size(),
            " arrays; got index ", index);
    require(l.current.rows > 0, Status::InvalidArgument,
            "there is no batch: tiny_loader_next was not called, or told the end of an epoch");
    if (!l.given[index]) {
      tiny_tensor* made = tiny::make_handle(*l.context, [&] { return tensor_of(l, index); });
      l.given[index] = Held(made);
      tiny_tensor_release(made);
    }
    *out = &*l.given[index];
    tiny_tensor_retain(*out);
  });
}

tiny_status tiny_loader_seek(tiny_loader* loader, int64_t epoch, int64_t batch) {
  return tiny::guarded(__func__, [=] {
    tiny_loader& l = tiny::required(loader, "loader");
    const std::lock_guard lock(l.mutex);
    l.batches.seek({epoch, batch});
    l.drop_batch();
  });
}

tiny_status tiny_loader_place(const tiny_loader* loader, int64_t* epoch, int64_t* batch) {
  if (epoch) *epoch = 0;
  if (batch) *batch = 0;
  return tiny::guarded(__func__, [=] {
    const tiny_loader& l = tiny::required(loader, "loader");
    const std::lock_guard lock(l.mutex);
    const tiny::BatchLoader::Place place = l.batches.place();
    tiny::required(epoch, "epoch") = place.epoch;
    tiny::required(batch, "batch") = place.batch;
  });
}

}  // extern "C"
