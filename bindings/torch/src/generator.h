// Generators of random numbers: a seed, and how many draws were made of it.  A draw's key depends
// on these two alone, so numbers are the same on any number of threads and however late they are
// computed.
#pragma once

#include <ATen/core/Generator.h>

#include <optional>

#include "value.h"

namespace tiny_torch {

const at::Generator& default_generator();
at::Generator make_generator();

// The key of the next draw, two uint32 in memory; of the default generator if there is none.
Value next_key(const std::optional<at::Generator>& generator);

}  // namespace tiny_torch
