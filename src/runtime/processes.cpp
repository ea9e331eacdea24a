#include "runtime/processes.h"

#include <dlfcn.h>

#include "base/error.h"
#include "base/transport_abi.h"

namespace tiny {

namespace {

constexpr const char* kLibrary = "libtiny_mpi.so";

class Transport : public Processes {
 public:
  explicit Transport(const tiny_transport& table) : table_(table) {}
  int64_t rank() const override { return table_.rank; }
  int64_t count() const override { return table_.count; }
  void exchange(std::span<const std::byte> to_next,
                std::span<std::byte> from_previous) const override {
    const char* const wrong =
        table_.exchange(to_next.data(), to_next.size(), from_previous.data(), from_previous.size());
    require(wrong == nullptr, Status::Io, "between processes: ", wrong ? wrong : "");
  }

 private:
  ~Transport() override { table_.close(); }
  const tiny_transport table_;
};

}  // namespace

Ref<Processes> open_processes(const std::string& library) {
  const std::string name = library.empty() ? kLibrary : library;
  // Not closed again: what it is made of has threads of its own.
  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const char* why = handle ? nullptr : dlerror();
  require(handle != nullptr, Status::Unsupported,
          "no transport between processes: ", why ? why : name);
  const auto open =
      reinterpret_cast<tiny_transport_open_function>(dlsym(handle, TINY_TRANSPORT_OPEN));
  require(open != nullptr, Status::Unsupported, name, " is no transport: it has no ",
          TINY_TRANSPORT_OPEN);
  tiny_transport table{};
  const char* const wrong = open(TINY_TRANSPORT_VERSION, &table);
  require(wrong == nullptr, Status::Unsupported, name, ": ", wrong ? wrong : "");
  invariant(table.count > 0 && table.rank >= 0 && table.rank < table.count,
            "a process is one of those that compute together");
  return make_ref<Transport>(table);
}

}  // namespace tiny
