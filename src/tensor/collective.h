// Values of several devices put together, each result on all of them.
//
// A ring: each device takes from the one before it and gives to the one behind it, a part of the
// elements at a time, so that what goes over a link does not grow with the number of devices.
//   Order      Part k is combined along the ring from device k on, whoever asks: a result has the
//              same bits on every device and in every run, and on devices of any kind.
//   Now        The tensors are computed and the results have memory: each context has a graph of
//              its own, which knows nothing of the others.
//   Processes  With a ring of processes (may be null: this one alone) the tensors of all are
//              meant, in the order of their ranks; each gives as many, of one shape and dtype.
//   Locks      Who calls has the contexts of all tensors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/processes.h"
#include "tensor/tensor.h"

namespace tiny {

// How two values become one.
struct Combining {
  Tensor (*combine)(const Tensor& a, const Tensor& b);
  bool is_mean;    // what all come to is divided by their number; of floats alone
  int32_t number;  // by which processes see that they ask for the same
};

// The shape of each result.  Error{Shape or DType} for tensors that do not fit each other.
Ints reduced_shape(std::span<Tensor* const> tensors, const Combining& how);
Ints gathered_shape(std::span<Tensor* const> tensors, int64_t axis, const Processes* processes);

// out[i] = what element i of all tensors comes to, one result for each tensor, on its device, of
// their shape and dtype.  16-bit floats are combined as float32 and rounded once.
std::vector<Tensor> allreduce(std::span<Tensor* const> tensors, const Combining& how,
                              const Processes* processes);

// The tensors, one after the other along an axis, on the device of each.
std::vector<Tensor> allgather(std::span<Tensor* const> tensors, int64_t axis,
                              const Processes* processes);

}  // namespace tiny
