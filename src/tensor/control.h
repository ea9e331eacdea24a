// What is computed depends on what was computed: one of two lists of values, and steps until a
// condition ends them.  The run decides; what it does not choose costs nothing.
#pragma once

#include <functional>
#include <vector>

#include "tensor/dependence.h"
#include "tensor/tensor.h"

namespace tiny {

// `yes` where the condition (one element) is not 0, else `no`: lists of as many values, of the same
// shapes and dtypes.  What only one of them needs is computed if it is chosen; with `guard` (bool,
// one element; or none), and the guard is not 0: without it the values are any.  Who makes many of
// one graph has their dependences.
std::vector<Tensor> choose(const Tensor& condition, const std::vector<Tensor>& yes,
                           const std::vector<Tensor>& no, Dependences& known,
                           const Tensor& guard = Tensor());

// Makes a new state of the one before, as long as there are rounds left and the last one said so.
struct Round {
  std::vector<Tensor> state;
  Tensor again;  // bool, one element: whether another round follows
  std::vector<Tensor> collected = {};
};
using RoundFunction = std::function<Round(const Tensor& number, const std::vector<Tensor>& state)>;

// The state after at most `rounds` rounds (int64, one element; none at all below 1).  `round` is
// called once, for the round of any number (int64, no axes), and its state keeps shapes and dtypes:
// Error{Unsupported} otherwise.
std::vector<Tensor> repeat(const Tensor& rounds, const std::vector<Tensor>& state,
                           Dependences& known, const RoundFunction& round);

// A loop's induction variable (or none), which sizes of what a round makes on its way may have:
// `first` in the first round, one more in each that follows.  A state may then be less along its
// first axis than it was before the first round; what is behind is any.  A program of the values
// has the Variable among its own.
struct InductionVariable {
  UOp variable = UOp();
  Dim first = 0;
};

// The same of at most `most` rounds, which are collected; a number is at least one.
struct Rounds {
  std::vector<Tensor> state;
  std::vector<Tensor> collected;  // by `most` rounds; of those that were not made it is any
  Tensor count;                   // int64, no axes: how many were made
};
Rounds collect(const Tensor& rounds, const Dim& most, const std::vector<Tensor>& state,
               Dependences& known, const RoundFunction& round,
               const InductionVariable& induction = {});

}  // namespace tiny
