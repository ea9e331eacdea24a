// The .safetensors format: eight bytes with the length of the header (little-endian), the header,
// the data.
//
// The header is a JSON object, padded with spaces: for each tensor its name and
// {"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}, positions in the data; and "__metadata__",
// an object of strings, if there is any.  The tensors cover the data without gaps and overlaps;
// elements are row-major and little-endian.  Written: the widest elements first, so that each is
// aligned.
#pragma once

#include <string>

#include "io/archive.h"

namespace tiny {

// Reads a .safetensors file's bytes, in place.  A breach of the format is Error{InvalidModel}, a
// header beyond 100 MB Error{Limit}.
Archive parse_safetensors(const SharedBytes& bytes, const StopSignal* stop = nullptr);
Archive read_safetensors(const std::string& path, const FileAccess& access = {});

// The bytes before the data, and the positions of the tensors in the order of the data.
// Error{InvalidArgument} for a name that is no UTF-8, that another tensor has, or that is the
// metadata's.
struct SafetensorsHeader {
  std::string bytes;
  std::vector<size_t> order;
};
SafetensorsHeader safetensors_header(const Archive& archive);
void write_safetensors(const std::string& path, const Archive& archive,
                       const StopSignal* stop = nullptr);

}  // namespace tiny
