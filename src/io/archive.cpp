#include "io/archive.h"

#include <algorithm>
#include <string_view>

#include "io/cifar.h"
#include "io/idx.h"
#include "io/inflate.h"
#include "io/npy.h"
#include "io/pickle.h"
#include "io/safetensors.h"
#include "io/tensor_pb.h"

namespace tiny {

namespace {

enum class Kind { Npy, TensorProto, Safetensors, Idx, Cifar, Pickle };

// What files are for that are read, and which of these are written.
struct Ending {
  std::string_view text;
  Kind kind;
  bool is_written = true;
};
constexpr Ending kEndings[] = {{".npy", Kind::Npy},
                               {".pb", Kind::TensorProto},
                               {".safetensors", Kind::Safetensors},
                               {"-ubyte", Kind::Idx, false},
                               {".idx", Kind::Idx, false},
                               {".bin", Kind::Cifar, false},
                               {".pkl", Kind::Pickle, false},
                               {".pickle", Kind::Pickle, false},
                               {".meta", Kind::Pickle, false}};
constexpr std::string_view kCompressed = ".gz";

Kind kind_of(std::string_view path, bool writes) {
  // CIFAR's pickles have no ending: "data_batch_1".
  const std::string_view file = path.substr(path.rfind('/') + 1);
  if (!writes && !file.ends_with("-ubyte") && file.find('.') == std::string_view::npos)
    return Kind::Pickle;
  std::vector<std::string> known;
  for (const Ending& ending : kEndings) {
    if (writes && !ending.is_written) continue;
    if (path.ends_with(ending.text)) return ending.kind;
    known.push_back(std::string(ending.text));
  }
  throw_error(Status::InvalidArgument, "the file \"", path, "\" does not end in ",
              join(known, ", "), writes ? "" : ", or one with .gz");
}

NamedTensor from_tensor_proto(const TensorData& data) {
  const TensorTypeInfo& type = *tensor_type(data.type);
  if (is_carried(type)) return {data.name, to_host_tensor(data), ""};
  NamedTensor tensor{data.name, {type.ours, data.dims, data.bytes}, ""};
  if (type.ours == ScalarType::Void) tensor.unsupported = type.name;
  return tensor;
}

Archive parse(Kind kind, const SharedBytes& bytes, const FileAccess& access) {
  switch (kind) {
    case Kind::Npy:
      return {{{"", parse_npy(bytes, access.stop), ""}}, {}};
    case Kind::TensorProto:
      return {{from_tensor_proto(parse_tensor_pb(bytes, {.stop = access.stop}))}, {}};
    case Kind::Safetensors:
      return parse_safetensors(bytes, access.stop);
    case Kind::Idx:
      return {{{"", parse_idx(bytes, access), ""}}, {}};
    case Kind::Cifar:
      return parse_cifar(bytes, access);
    case Kind::Pickle:
      return parse_pickle(bytes, access);
  }
  return {};
}

}  // namespace

void check_ending(const std::string& path) {
  kind_of(path, true);
}

Archive read_archive(const std::string& path, const FileAccess& access) {
  const bool is_compressed = path.ends_with(kCompressed);
  std::string_view name = path;
  if (is_compressed) name.remove_suffix(kCompressed.size());
  const Kind kind = kind_of(name, false);
  SharedBytes bytes = open_file(path, access);
  try {
    if (is_compressed) bytes = gunzip(bytes, access);
    return parse(kind, bytes, access);
  } catch (const Error& e) {
    throw e.at(path).in_file(path);
  }
}

void write_archive(const std::string& path, const Archive& archive, const StopSignal* stop) {
  const Kind kind = kind_of(path, true);
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
