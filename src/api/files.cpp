// Files of tensors, and what this machine has.
#include <sched.h>
#include <unistd.h>

#include <string_view>

#include "api/boundary.h"
#include "api/model_handle.h"
#include "base/json.h"
#include "engine/backend.h"
#include "io/npy.h"
#include "io/tensor_pb.h"
#include "tensor/create.h"
#include "tensor/value.h"

using tiny::guarded;
using tiny::require;
using tiny::Status;

namespace {

enum class FileKind { Npy, TensorProto };

FileKind kind_of(std::string_view path) {
  if (path.ends_with(".npy")) return FileKind::Npy;
  require(path.ends_with(".pb"), Status::InvalidArgument, "the file \"", path,
          "\" ends neither in .npy nor in .pb");
  return FileKind::TensorProto;
}

// Threads that the affinity mask allows.
int64_t allowed_threads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return sysconf(_SC_NPROCESSORS_ONLN);
}

std::string devices_json() {
  const std::vector<tiny::BackendInfo> backends = tiny::known_backends();
  // The default is "cpu", or the interpreter where there is no such.
  std::string chosen = "interp";
  for (const tiny::BackendInfo& backend : backends)
    if (backend.name == "cpu" && backend.available) chosen = "cpu";
  tiny::JsonWriter json;
  json.begin_object().key("devices").begin_array();
  for (const tiny::BackendInfo& backend : backends) {
    json.begin_object().key("name").text(backend.name);
    json.key("description").text(backend.description);
    json.key("available").boolean(backend.available).key("reason").text(backend.reason);
    json.key("isa").begin_array();
    for (const std::string& isa : backend.isas) json.text(isa);
    json.end_array();
    json.key("threads").integer(allowed_threads());
    json.key("memory").integer(sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
    json.key("default").boolean(backend.name == chosen).end_object();
  }
  json.end_array().end_object();
  return json.result();
}

}  // namespace

extern "C" {

tiny_status tiny_tensor_load(tiny_context* context, const char* path, tiny_tensor** out) {
  return tiny::produce(__func__, out, context, [&] {
    const std::string file = &tiny::required(path, "path");
    const tiny::HostTensor host = kind_of(file) == FileKind::Npy
                                      ? tiny::read_npy(file)
                                      : tiny::to_host_tensor(tiny::read_tensor_pb(file));
    return tiny::from_data(context->core, host.dtype, host.shape, host.bytes.data(),
                           host.bytes.size());
  });
}

tiny_status tiny_tensor_save(const tiny_tensor* tensor, const char* path, const char* name) {
  return tiny::act(__func__, {{tensor, "tensor"}}, [&] {
    const std::string file = &tiny::required(path, "path");
    const FileKind kind = kind_of(file);
    const tiny::Ints shape = tiny::const_dims(tensor->value.shape());
    const tiny::DType dtype = tensor->value.dtype();
    std::vector<std::byte> bytes(
        static_cast<size_t>(tiny::element_count(tensor->value) * dtype.bytes()));
    tiny::read(tensor->value, bytes.data(), static_cast<int64_t>(bytes.size()));
    const tiny::HostTensor host{dtype, shape, tiny::SharedBytes::own(std::move(bytes))};
    if (kind == FileKind::Npy)
      tiny::write_npy(file, host);
    else
      tiny::write_tensor_pb(file, host, name ? name : "");
  });
}

tiny_status tiny_devices(tiny_report** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [&] { *out = new tiny_report{devices_json()}; });
}

}  // extern "C"
