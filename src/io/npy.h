// NumPy's .npy files, format versions 1.0, 2.0 and 3.0.
//
// Read: C or Fortran order, either byte order, every dtype of the engine; bfloat16 is what the
// ml_dtypes package writes, two opaque bytes ("V2").  Written: version 1.0, C order, little-endian.
#pragma once

#include <string>

#include "io/host_tensor.h"

namespace tiny {

// Reads a .npy file's bytes.  A breach of the format is Error{InvalidModel}, an element type that
// the engine does not have Error{Unsupported} with its name.  In place where the file allows it.
HostTensor parse_npy(const SharedBytes& bytes, const StopSignal* stop = nullptr);
HostTensor read_npy(const std::string& path, const FileAccess& access = {});

// The bytes of a .npy file.
std::string npy_bytes(const HostTensor& tensor);
void write_npy(const std::string& path, const HostTensor& tensor, const StopSignal* stop = nullptr);

}  // namespace tiny
