// Files of tensors, by the ending of their path: .npy and .pb (an ONNX TensorProto) hold one,
// .safetensors any number by name.  What data sets come in is read alone: IDX files (-ubyte, .idx)
// hold one, CIFAR's (.bin) and pickles (.pkl, .pickle, .meta, no ending) several; so is any of
// these with .gz behind its ending.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io/host_tensor.h"

namespace tiny {

struct NamedTensor {
  std::string name;         // "" in a .npy
  HostTensor value;         // dtype Void: one that the engine does not have
  std::string unsupported;  // the file's word for such a dtype
};

struct Archive {
  std::vector<NamedTensor> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;  // of a .safetensors: key and text
};

// The file's tensors, where they lie in its bytes; its errors name the file.
Archive read_archive(const std::string& path, const FileAccess& access = {});
// Writes them; a file for one tensor takes no other number, and no metadata.
// Throws what `stop` (may be null) says.
void write_archive(const std::string& path, const Archive& archive,
                   const StopSignal* stop = nullptr);

// Error{InvalidArgument} unless the path has one of the endings.
void check_ending(const std::string& path);

// The tensor's value, which has a dtype of the engine, or Error{Unsupported} that names its own.
const HostTensor& supported(const NamedTensor& tensor);

// "a", "b", .. and how many more: for messages.
std::string names_text(const std::vector<std::string>& names);

}  // namespace tiny
