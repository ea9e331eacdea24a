// What a storage of PyTorch holds here: the newest value of its bytes, most often not computed yet.
//
//   address    of a region that is reserved and never mapped: PyTorch compares addresses and asks
//              which storages overlap, and reads nothing there
//   form       the value of a tensor that covers the whole storage without a hole, with its sizes
//              and strides: what nearly every operator writes, and the next one reads as it is
//   flat       the value as elements in the storage's order, when a view of other sizes and strides
//              reads or writes; a write to a part is an assign to a view of it
//   later      makes the form when the storage is looked at first: of results that few look at,
//              which would cost each call of their operator their nodes otherwise
//
// Everything here may be called from any thread: one lock holds what belongs together.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/util/DimVector.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>

#include "value.h"

namespace tiny_torch {

// TINY_FLOAT32 of kFloat; a clear error, which names `what`, for what no tensor here can be.
tiny_dtype dtype_of(at::ScalarType type, const char* what = "tiny");
at::ScalarType scalar_type_of(tiny_dtype type);

c10::Allocator* allocator();

// The value of a tensor of this device, with its sizes.
Value read(const at::Tensor& tensor);
// The same for who only computes with it: what becomes of it is another value, made by an
// operation.
Value read_operand(const at::Tensor& tensor);
// The tensor's elements become `value`, which broadcasts and is converted.
void write(const at::Tensor& tensor, const Value& value);
// The same of a value that an operation, not movement, made, and of which nobody else keeps a
// handle.
void write_new(const at::Tensor& tensor, const Value& value);

// The same of a value that is made when somebody looks, of values that are kept until then.
void write_later(const at::Tensor& tensor, std::function<Value()> make);

// A copy of a whole storage to another is its value as it is: objects are copied as bytes, whatever
// they hold.  False, and nothing is done, for other copies.
bool copy_whole(const at::Tensor& source, const at::Tensor& target);

// Computes what every living storage waits for, in one schedule.
void flush();
// How often there was something to compute.
int64_t flush_count();

void resize_bytes(const c10::Storage& storage, size_t bytes);

// Writes an operator's results count as work that waits; after this many everything is computed.
constexpr int64_t kPendingWritesMax = 16384;

}  // namespace tiny_torch
