#include "tensor/collective.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "engine/backend.h"
#include "engine/realize.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/value.h"

namespace tiny {

namespace {

// A part begins where devices read their widest vectors: 256 bytes of 4-byte elements.
constexpr int64_t kPartElements = 64;

constexpr int64_t modulo(int64_t a, int64_t n) {
  return (a % n + n) % n;
}

// Elements that are cut into as many parts as a ring has members; the last ones may be empty.
class Cut {
 public:
  Cut(int64_t count, int64_t parts)
      : count_(count), size_(round_up(ceil_div(count, parts), kPartElements)) {}
  int64_t begin(int64_t part) const { return std::min(count_, part * size_); }
  int64_t size(int64_t part) const { return begin(part + 1) - begin(part); }

 private:
  int64_t count_;
  int64_t size_;
};

// Elements that lie together on a device.
struct Piece {
  Ref<Storage> storage;
  int64_t byte_offset = 0;
  int64_t bytes = 0;

  Argument place() const { return {&storage->memory(), storage->byte_offset() + byte_offset}; }
  std::byte* host() const {
    std::byte* const memory = storage->memory().host();
    return memory ? memory + place().byte_offset : nullptr;
  }
};

void copy(const Piece& from, const Piece& to, Context& context) {
  if (from.bytes == 0) return;
  const auto [here, here_at] = to.place();
  const auto [there, there_at] = from.place();
  if (&here->device() == &there->device())
    here->device().copy(nullptr, *here, here_at, *there, there_at, from.bytes);
  else
    copy_between(to.place(), from.place(), from.bytes, context.stop());
}

// Between processes bytes are the host's.
void exchange(const Processes& processes, const Piece& to_next, const Piece& from_previous) {
  std::vector<std::byte> sent, received;
  const auto bytes_of = [](const Piece& piece, std::vector<std::byte>& copy) {
    const auto size = static_cast<size_t>(piece.bytes);
    if (std::byte* const host = piece.host()) return std::span(host, size);
    copy.resize(size);
    return std::span(copy);
  };
  const std::span<std::byte> out = bytes_of(to_next, sent);
  const std::span<std::byte> in = bytes_of(from_previous, received);
  if (!sent.empty()) {
    const Argument from = to_next.place();
    from.buffer->device().copy_out(nullptr, sent.data(), *from.buffer, from.byte_offset,
                                   to_next.bytes);
  }
  processes.exchange(out, in);
  if (received.empty()) return;
  const Argument to = from_previous.place();
  to.buffer->device().copy_in(nullptr, *to.buffer, to.byte_offset, received.data(),
                              from_previous.bytes);
}

// What all processes must ask for alike.
struct Request {
  int64_t kind, detail, count, dtype, rank;
  std::array<int64_t, kRankMax> dims;
};

Request request_of(int64_t kind, int64_t detail, std::span<Tensor* const> tensors) {
  const Tensor& first = *tensors[0];
  Request asked{.kind = kind,
                .detail = detail,
                .count = std::ssize(tensors),
                .dtype = static_cast<int64_t>(first.dtype().scalar),
                .rank = first.rank(),
                .dims = {}};
  for (size_t i = 0; i < first.shape().size(); ++i) asked.dims[i] = first.shape()[i].value();
  return asked;
}

// Goes once round, so that all processes end alike.
void require_alike(const Request& asked, const Processes& processes) {
  Request passed = asked;
  int64_t differs = -1;
  for (int64_t step = 1; step < processes.count(); ++step) {
    Request came;
    processes.exchange(std::as_bytes(std::span(&passed, 1)),
                       std::as_writable_bytes(std::span(&came, 1)));
    if (std::memcmp(&came, &asked, sizeof came) != 0)
      differs = modulo(processes.rank() - step, processes.count());
    passed = came;
  }
  require(
      differs < 0, Status::InvalidArgument, "process ", differs, " and process ", processes.rank(),
      " ask for different things: the same call, with as many tensors of one shape and dtype, is"
      " wanted in each");
}

void check(std::span<Tensor* const> tensors) {
  for (const Tensor* one : tensors) {
    const Tensor& first = *tensors[0];
    require(one->shape() == first.shape(), Status::Shape, "tensors of shapes ", first.shape(),
            " and ", one->shape(), ": all are of one shape");
    require(one->dtype() == first.dtype(), Status::DType, "tensors of ", first.dtype(), " and ",
            one->dtype(), ": all are of one dtype");
  }
}

// What all come to, divided and in the dtype that was given.
Tensor finished(Tensor done, DType dtype, int64_t divisor) {
  if (divisor > 1) done = div(done, number_int(done, divisor));
  return cast(done, dtype);
}

// One device's tensor on its way round the ring, in the dtype that it is combined in.
class Member {
 public:
  Member(Tensor& tensor, DType dtype, int64_t members)
      : context_(tensor.context_ref()),
        dtype_(dtype),
        made_of_(tensor.dtype()),
        cut_(element_count(tensor), members) {
    Tensor wide = cast(tensor, dtype);
    elements_ = row_major_memory(wide);
    for (int64_t part = 0; part < members; ++part)
      parts_.push_back(Storage::part(elements_, cut_.begin(part) * dtype.bytes()));
    result_ = context_->allocate(element_count(tensor) * made_of_.bytes());
  }

  // What the device before has come to, with the part here.
  void take(int64_t part, const Member& from, const Combining& how) {
    const int64_t size = cut_.size(part);
    if (size == 0) return;
    const Ref<Storage> came = context_->allocate(size * dtype_.bytes());
    tiny::copy({from.parts_[at(part)], 0, size * dtype_.bytes()}, {came}, *context_);
    parts_[at(part)] = combined(how, came, parts_[at(part)], size);
  }
  // The part is combined; with those of other processes it becomes the result, divided by
  // `divisor`.
  void finish(int64_t part, const Combining& how, int64_t divisor, const Processes* processes) {
    if (cut_.size(part) == 0) return;
    const int64_t count = processes ? processes->count() : 1;
    const int64_t rank = processes ? processes->rank() : 0;
    const Cut cut(cut_.size(part), count);
    std::vector<Ref<Storage>> pieces;
    for (int64_t i = 0; i < count; ++i)
      pieces.push_back(Storage::part(parts_[at(part)], cut.begin(i) * dtype_.bytes()));
    for (int64_t step = 0; step + 1 < count; ++step) {
      const int64_t sent = modulo(rank - step, count), taken = modulo(rank - 1 - step, count);
      const int64_t bytes = cut.size(taken) * dtype_.bytes();
      const Ref<Storage> came = context_->allocate(bytes);
      exchange(*processes, {pieces[at(sent)], 0, cut.size(sent) * dtype_.bytes()},
               {came, 0, bytes});
      if (bytes > 0) pieces[at(taken)] = combined(how, came, pieces[at(taken)], cut.size(taken));
    }
    const auto place = [&](int64_t i) {
      return Piece{result_, (cut_.begin(part) + cut.begin(i)) * made_of_.bytes(),
                   cut.size(i) * made_of_.bytes()};
    };
    const int64_t own = modulo(rank + 1, count);
    if (cut.size(own) > 0) {
      Tensor done = finished(of_storage(context_, dtype_, {cut.size(own)}, pieces[at(own)]),
                             made_of_, divisor);
      tiny::copy({row_major_memory(done), 0, place(own).bytes}, place(own), *context_);
    }
    for (int64_t step = 0; step + 1 < count; ++step)
      exchange(*processes, place(modulo(own - step, count)), place(modulo(own - 1 - step, count)));
  }
  // The finished part, of the device before.
  void copy(int64_t part, const Member& from) {
    const Piece here{result_, cut_.begin(part) * made_of_.bytes(),
                     cut_.size(part) * made_of_.bytes()};
    tiny::copy({from.result_, here.byte_offset, here.bytes}, here, *context_);
  }
  Tensor result(const Ints& shape) const { return of_storage(context_, made_of_, shape, result_); }

 private:
  static size_t at(int64_t i) { return static_cast<size_t>(i); }
  Ref<Storage> combined(const Combining& how, const Ref<Storage>& a, const Ref<Storage>& b,
                        int64_t size) const {
    Tensor both = how.combine(of_storage(context_, dtype_, {size}, a),
                              of_storage(context_, dtype_, {size}, b));
    return row_major_memory(both);
  }

  Ref<Context> context_;
  DType dtype_;
  DType made_of_;
  Cut cut_;
  Ref<Storage> elements_;
  std::vector<Ref<Storage>> parts_;
  Ref<Storage> result_;
};

// What the devices' driver has for them together; null where it has nothing, and where the order
// of sums is to be ours.
Ref<Collectives> library_of(std::span<Tensor* const> tensors, const Processes* processes) {
  Context& first = tensors[0]->context();
  if (processes || tensors.size() < 2 || first.flags().deterministic != 0) return {};
  std::vector<Backend*> backends;
  for (Tensor* one : tensors) backends.push_back(&one->context().backend());
  return backends[0]->collectives(backends);
}

std::optional<CollectiveElement> element_of(DType dtype) {
  switch (dtype.scalar) {
    case ScalarType::Int8:
      return CollectiveElement::Int8;
    case ScalarType::UInt8:
      return CollectiveElement::UInt8;
    case ScalarType::Int32:
      return CollectiveElement::Int32;
    case ScalarType::UInt32:
      return CollectiveElement::UInt32;
    case ScalarType::Int64:
      return CollectiveElement::Int64;
    case ScalarType::UInt64:
      return CollectiveElement::UInt64;
    case ScalarType::Float32:
      return CollectiveElement::Float32;
    case ScalarType::Float64:
      return CollectiveElement::Float64;
    default:
      return std::nullopt;
  }
}

// The greatest and the least are ours: libraries may leave NaN out.
std::optional<CollectiveSum> sum_of(const Combining& how) {
  using Combine = decltype(Combining::combine);
  if (how.combine == static_cast<Combine>(add)) return CollectiveSum::Sum;
  if (how.combine == static_cast<Combine>(mul)) return CollectiveSum::Product;
  return std::nullopt;
}

Argument place_of(const Ref<Storage>& storage) {
  return Piece{storage}.place();
}

// All of them reduced by a library; none where there is none, or none that knows the elements or
// the sum.
std::vector<Tensor> reduced_by_library(std::span<Tensor* const> tensors, const Combining& how,
                                       DType wide, const Processes* processes) {
  const std::optional<CollectiveElement> element = element_of(wide);
  const std::optional<CollectiveSum> sum = sum_of(how);
  const int64_t count = element_count(*tensors[0]);
  if (!element || !sum || count == 0) return {};
  const Ref<Collectives> library = library_of(tensors, processes);
  if (!library) return {};
  std::vector<Ref<Storage>> given, got;
  std::vector<Argument> from, to;
  for (Tensor* one : tensors) {
    Tensor value = cast(*one, wide);
    given.push_back(row_major_memory(value));
    got.push_back(one->context().allocate(count * wide.bytes()));
    from.push_back(place_of(given.back()));
    to.push_back(place_of(got.back()));
  }
  library->all_reduce(from, to, count, *element, *sum);
  std::vector<Tensor> results;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& own = *tensors[i];
    results.push_back(finished(of_storage(own.context_ref(), wide, const_dims(own.shape()), got[i]),
                               own.dtype(), how.is_mean ? std::ssize(tensors) : 1));
    row_major_memory(results.back());
  }
  return results;
}

}  // namespace

Ints reduced_shape(std::span<Tensor* const> tensors, const Combining& how) {
  check(tensors);
  const DType dtype = tensors[0]->dtype();
  require(!how.is_mean || dtype.is_float(), Status::DType, "a mean of ", dtype,
          ": floats are wanted");
  return const_dims(tensors[0]->shape());
}

Ints gathered_shape(std::span<Tensor* const> tensors, int64_t axis, const Processes* processes) {
  check(tensors);
  const Tensor& first = *tensors[0];
  require(axis >= -first.rank() && axis < first.rank(), Status::Shape, "axis ", axis, " of shape ",
          first.shape());
  Ints shape = const_dims(first.shape());
  shape[static_cast<size_t>(modulo(axis, first.rank()))] *=
      std::ssize(tensors) * (processes ? processes->count() : 1);
  return shape;
}

std::vector<Tensor> allreduce(std::span<Tensor* const> tensors, const Combining& how,
                              const Processes* processes) {
  const Ints shape = reduced_shape(tensors, how);
  const DType dtype = tensors[0]->dtype();
  if (processes) require_alike(request_of(0, how.number, tensors), *processes);
  const int64_t count = std::ssize(tensors);
  const DType wide = dtype.is_narrow_float() ? dtype.computed() : dtype;
  std::vector<Tensor> results = reduced_by_library(tensors, how, wide, processes);
  if (!results.empty()) return results;
  std::vector<Member> members;
  for (Tensor* one : tensors) members.emplace_back(*one, wide, count);
  const auto member = [&](int64_t i) -> Member& {
    return members[static_cast<size_t>(modulo(i, count))];
  };
  for (int64_t step = 0; step + 1 < count; ++step)
    for (int64_t i = 0; i < count; ++i)
      member(i).take(modulo(i - 1 - step, count), member(i - 1), how);
  const int64_t all = count * (processes ? processes->count() : 1);
  for (int64_t part = 0; part < count; ++part)
    member(part - 1).finish(part, how, how.is_mean ? all : 1, processes);
  for (int64_t step = 0; step + 1 < count; ++step)
    for (int64_t i = 0; i < count; ++i) member(i).copy(modulo(i - step, count), member(i - 1));
  for (const Member& one : members) results.push_back(one.result(shape));
  return results;
}

std::vector<Tensor> allgather(std::span<Tensor* const> tensors, int64_t axis,
                              const Processes* processes) {
  const Ints together = gathered_shape(tensors, axis, processes);
  const Tensor& first = *tensors[0];
  axis = modulo(axis, first.rank());
  if (processes) require_alike(request_of(1, axis, tensors), *processes);
  const int64_t here = std::ssize(tensors), count = processes ? processes->count() : 1;
  const int64_t bytes = element_count(first) * first.dtype().bytes();
  // On each device the tensors of all, as they lie.
  std::vector<Ref<Storage>> gathered;
  const auto block = [&](int64_t device, int64_t rank) {
    return Piece{gathered[static_cast<size_t>(device)], rank * here * bytes, here * bytes};
  };
  const int64_t rank = processes ? processes->rank() : 0;
  for (Tensor* one : tensors) gathered.push_back(one->context().allocate(bytes * here * count));
  std::vector<Ref<Storage>> given;
  for (Tensor* one : tensors) given.push_back(row_major_memory(*one));
  const Ref<Collectives> library = bytes > 0 ? library_of(tensors, processes) : Ref<Collectives>();
  if (library) {
    std::vector<Argument> from, to;
    for (size_t i = 0; i < tensors.size(); ++i) {
      from.push_back(place_of(given[i]));
      to.push_back(place_of(gathered[i]));
    }
    library->all_gather(from, to, bytes);
  } else {
    for (int64_t i = 0; i < here; ++i) {
      Piece place = block(i, rank);
      place.byte_offset += i * bytes;
      place.bytes = bytes;
      copy({given[static_cast<size_t>(i)], 0, bytes}, place,
           tensors[static_cast<size_t>(i)]->context());
    }
    for (int64_t step = 0; step + 1 < here; ++step)
      for (int64_t i = 0; i < here; ++i) {
        const int64_t previous = modulo(i - 1, here), part = modulo(i - 1 - step, here);
        Piece from = block(previous, rank), to = block(i, rank);
        from.byte_offset += part * bytes, to.byte_offset += part * bytes;
        from.bytes = to.bytes = bytes;
        copy(from, to, tensors[static_cast<size_t>(i)]->context());
      }
  }
  for (int64_t step = 0; step + 1 < count; ++step) {
    const int64_t taken = modulo(rank - 1 - step, count);
    exchange(*processes, block(0, modulo(rank - step, count)), block(0, taken));
    for (int64_t i = 1; i < here; ++i)
      copy(block(i - 1, taken), block(i, taken), tensors[static_cast<size_t>(i)]->context());
  }
  // [tensors, ..] with the first axis before the one that they are gathered along.
  Ints order;
  for (int64_t i = 1; i <= first.rank(); ++i) {
    if (i == axis + 1) order.push_back(0);
    order.push_back(i);
  }
  Ints stacked = const_dims(first.shape());
  stacked.insert(stacked.begin(), here * count);
  std::vector<Tensor> results;
  for (int64_t i = 0; i < here; ++i) {
    const Tensor& own = *tensors[static_cast<size_t>(i)];
    const Tensor all =
        of_storage(own.context_ref(), own.dtype(), stacked, gathered[static_cast<size_t>(i)]);
    results.push_back(reshape(permute(all, order), to_shape(together)));
  }
  return results;
}

}  // namespace tiny
