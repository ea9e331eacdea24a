// What this machine has.
#include <sched.h>
#include <unistd.h>

#include "api/boundary.h"
#include "api/model_handle.h"
#include "base/json.h"
#include "engine/backend.h"

using tiny::guarded;
using tiny::Status;

namespace {

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
    const bool is_hosts = backend.memory_bytes == 0;
    json.key("memory").integer(is_hosts ? sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE)
                                        : backend.memory_bytes);
    if (!is_hosts) {
      json.key("units").integer(backend.units).key("group_threads").integer(backend.group.threads);
      json.key("group_memory").integer(backend.group.shared_bytes);
      json.key("buffer_memory").integer(backend.buffer_bytes);
    }
    json.key("default").boolean(backend.name == chosen).end_object();
  }
  json.end_array().end_object();
  return json.result();
}

}  // namespace

extern "C" {

tiny_status tiny_devices(tiny_report** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [=] { *out = new tiny_report(devices_json()); });
}

}  // extern "C"
