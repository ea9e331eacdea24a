#include "runtime/cdev/cdev.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "runtime/cdev/subprocess.h"
#include "runtime/host.h"

namespace tiny {
namespace {

// A folder that only this user can enter, deleted with its files.
class PrivateFolder {
 public:
  explicit PrivateFolder(const std::string& parent) : path_(parent + "/tiny-c-XXXXXX") {
    require(mkdtemp(path_.data()) != nullptr, Status::Device, "cannot make a folder in ", parent,
            ": ", std::strerror(errno));
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder() {
    for (const std::string& file : files_) unlink(file.c_str());
    rmdir(path_.c_str());
  }
  // The path of a file in the folder, which is deleted with it.
  std::string file(const std::string& name) {
    files_.push_back(path_ + "/" + name);
    return files_.back();
  }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

void write_file(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  require(fd >= 0, Status::Device, "cannot write ", path, ": ", std::strerror(errno));
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  const int error = errno;
  close(fd);
  require(done == text.size(), Status::Device, "cannot write ", path, ": ", std::strerror(error));
}

class Library : public RefCounted {
 public:
  explicit Library(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    const char* why = handle_ ? nullptr : dlerror();
    require(handle_ != nullptr, Status::Device,
            "cannot load the compiled kernels: ", why ? why : "");
  }
  KernelFunction symbol(const std::string& name) const {
    void* address = dlsym(handle_, name.c_str());
    require(address != nullptr, Status::Device, "the compiled kernels have no ", name);
    return reinterpret_cast<KernelFunction>(address);
  }

 protected:
  ~Library() override {
    if (handle_) dlclose(handle_);
  }

 private:
  void* handle_;
};

class CExecutable : public HostExecutable {
 public:
  CExecutable(const Code& code, Ref<Library> library)
      : HostExecutable(code.name, code.scratch_bytes),
        library_(std::move(library)),
        function_(library_->symbol(code.entry)) {}
  void run(const KernelArgs& args) const override { function_(&args); }

 private:
  Ref<Library> library_;
  KernelFunction function_;
};

class CDevice : public HostDevice {
 public:
  explicit CDevice(CDeviceOptions options) : HostDevice("c"), options_(std::move(options)) {}

  using Device::load;
  std::vector<Ref<Executable>> load(std::span<const Code> codes, const StopSignal& stop) override {
    if (codes.empty()) return {};
    const Ref<Library> library = compile(codes, stop);
    std::vector<Ref<Executable>> out;
    out.reserve(codes.size());
    for (const Code& code : codes) out.push_back(make_ref<CExecutable>(code, library));
    return out;
  }

 private:
  Ref<Library> compile(std::span<const Code> codes, const StopSignal& stop) const {
    PrivateFolder folder(options_.directory);
    const std::string output = folder.file("kernels.so");
    std::vector<std::string> arguments = {options_.compiler,
                                          "-x",
                                          "c",
                                          "-std=gnu11",
                                          "-shared",
                                          "-fPIC",
                                          "-O2",
                                          "-ffp-contract=off",
                                          "-fno-math-errno",
                                          "-fno-trapping-math",
                                          "-fwrapv",
                                          "-fno-strict-aliasing",
                                          "-w",
                                          "-Wno-psabi"};
#if defined(__x86_64__) || defined(__aarch64__)
    arguments.push_back("-march=native");
#endif
    arguments.insert(arguments.end(), options_.flags.begin(), options_.flags.end());
    arguments.insert(arguments.end(), {"-o", output});
    std::vector<const std::string*> texts;
    for (const Code& code : codes) {
      require(code.kind == CodeKind::C, Status::Device, "kernel ", code.name, " is not C");
      const bool known =
          code.text.empty() || std::any_of(texts.begin(), texts.end(),
                                           [&](const std::string* t) { return *t == code.text; });
      if (known) continue;
      texts.push_back(&code.text);
      const std::string source = folder.file(cat("kernels_", texts.size(), ".c"));
      write_file(source, code.text);
      arguments.push_back(source);
    }
    arguments.push_back("-lm");
    const ProcessResult result = run_process(arguments, folder.file("messages"), stop);
    stop.check_known();
    require(result.ok, Status::Device, "the C compiler failed on ", codes.front().name,
            codes.size() > 1 ? cat(" and ", codes.size() - 1, " more") : "", ": ", result.message);
    return make_ref<Library>(output);
  }

  CDeviceOptions options_;
};

}  // namespace

std::unique_ptr<Device> make_c_device(CDeviceOptions options) {
  return std::make_unique<CDevice>(std::move(options));
}

}  // namespace tiny
