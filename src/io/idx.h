// IDX files, in which MNIST and its kin are: two zero bytes, the element type, the number of axes,
// their sizes (32 bits) and the elements, all big-endian.
#pragma once

#include "io/host_tensor.h"

namespace tiny {

// Whether the bytes begin as such a file does.
bool is_idx(const SharedBytes& bytes);

// In place where elements have one byte.  A breach of the format is Error{InvalidModel}.
HostTensor parse_idx(const SharedBytes& bytes, const FileAccess& access = {});

}  // namespace tiny
