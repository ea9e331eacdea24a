#include "io/archive.h"

#include <algorithm>
#include <string_view>

#include "io/npy.h"
#include "io/safetensors.h"
#include "io/tensor_pb.h"

namespace tiny {

namespace {

enum class Kind { Npy, TensorProto, Safetensors };

Kind kind_of(std::string_view path) {
  if (path.ends_with(".npy")) return Kind::Npy;
  if (path.ends_with(".pb")) return Kind::TensorProto;
  require(path.ends_with(".safetensors"), Status::InvalidArgument, "the file \"", path,
          "\" ends neither in .npy nor in .pb nor in .safetensors");
  return Kind::Safetensors;
}

}  // namespace

void check_ending(const std::string& path) {
  kind_of(path);
}

Archive read_archive(const std::string& path, const FileAccess& access) {
  Archive archive;
  switch (kind_of(path)) {
    case Kind::Npy:
      archive.tensors.push_back({"", read_npy(path, access), ""});
      return archive;
    case Kind::TensorProto: {
      const TensorData data = read_tensor_pb(path, {.stop = access.stop}, access);
      const TensorTypeInfo& type = *tensor_type(data.type);
      archive.tensors.push_back({data.name, {type.ours, data.dims, data.bytes}, ""});
      if (type.ours == ScalarType::Void) archive.tensors[0].unsupported = type.name;
      return archive;
    }
    case Kind::Safetensors:
      break;
  }
  return read_safetensors(path, access);
}

void write_archive(const std::string& path, const Archive& archive, const StopSignal* stop) {
  const Kind kind = kind_of(path);
  if (kind == Kind::Safetensors) return write_safetensors(path, archive, stop);
  require(archive.tensors.size() == 1 && archive.metadata.empty(), Status::InvalidArgument, path,
          ": such a file holds one tensor and no metadata, not ", archive.tensors.size(),
          " tensors and ", archive.metadata.size(), " entries; a .safetensors does");
  const NamedTensor& tensor = archive.tensors[0];
  if (kind == Kind::Npy)
    write_npy(path, supported(tensor), stop);
  else
    write_tensor_pb(path, supported(tensor), tensor.name, stop);
}

const HostTensor& supported(const NamedTensor& tensor) {
  require(tensor.value.dtype != kVoid, Status::Unsupported, "tensor \"", tensor.name,
          "\" has the element type ", tensor.unsupported, ", which is not supported");
  return tensor.value;
}

std::string names_text(const std::vector<std::string>& names) {
  constexpr size_t kShown = 20;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
    text += cat(i == 0 ? "\"" : ", \"", names[i], "\"");
  if (names.size() > kShown) text += cat(" and ", names.size() - kShown, " more");
  return text;
}

}  // namespace tiny
