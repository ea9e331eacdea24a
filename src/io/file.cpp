#include "io/file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/checked.h"
#include "base/pieces.h"

namespace tiny {

namespace {

class OwnedBytes final : public BytesOwner {
 public:
  explicit OwnedBytes(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::span<const std::byte> view() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Closes its descriptor, whatever happens.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int give() { return std::exchange(fd_, -1); }
  void reset(int fd) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

std::string system_message(int error) {
  char text[128] = "";
  // The GNU form returns the text; it need not use the buffer.
  return strerror_r(error, text, sizeof text);
}

int open_retrying(int folder, const char* path, int flags) {
  int fd = -1;
  do {
    fd = openat(folder, path, flags);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

class MappedFile final : public BytesOwner {
 public:
  MappedFile(int fd, size_t size, const std::string& path) : size_(size) {
    address_ = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (address_ != MAP_FAILED) return;
    const int error = errno;
    throw_error(error == ENOMEM ? Status::OutOfMemory : Status::Io, "cannot map ", path,
                " into memory: ", system_message(error));
  }
  ~MappedFile() override { munmap(address_, size_); }
  std::span<const std::byte> view() const {
    return {static_cast<const std::byte*>(address_), size_};
  }
  bool can_unload() const override { return true; }
  // Pages that also hold other bytes stay.
  void unload(std::span<const std::byte> bytes) const override {
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
    const uintptr_t first = (begin + page - 1) / page * page;
    const uintptr_t last = (begin + bytes.size()) / page * page;
    // The mapping is read-only, so that nothing of it is only in memory.
    if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  }

 private:
  void* address_ = nullptr;
  size_t size_;
};

struct stat regular_file(int fd, const std::string& path) {
  struct stat info{};
  require(fstat(fd, &info) == 0, Status::Io, "cannot read ", path, ": ", system_message(errno));
  require(S_ISREG(info.st_mode), Status::Io, "cannot read ", path, ": not a regular file");
  return info;
}

// The whole file, as long as it was when it was asked.
SharedBytes copy_descriptor(int fd, size_t size, const std::string& path,
                            const FileAccess& access) {
  const auto copy = make_ref<NewBytes>(access.memory, static_cast<int64_t>(size));
  const auto read_piece = [&](int64_t begin, int64_t bytes) {
    for (int64_t at = begin; at < begin + bytes;) {
      const ssize_t got = pread(fd, copy->data() + at, static_cast<size_t>(begin + bytes - at), at);
      if (got < 0 && errno == EINTR) continue;
      require(got >= 0, Status::Io, "cannot read ", path, ": ", system_message(errno));
      require(got > 0, Status::Io, "cannot read ", path, ": it has become shorter meanwhile");
      at += got;
    }
  };
  for_each_piece_of(static_cast<int64_t>(size), 1, access.stop, read_piece);
  return NewBytes::shared(copy);
}

SharedBytes open_descriptor(int fd, const std::string& path, const FileAccess& access,
                            int64_t bytes_max) {
  const struct stat info = regular_file(fd, path);
  require(info.st_size <= bytes_max, Status::Limit, path, " has ", info.st_size,
          " bytes, more than the limit of ", bytes_max);
  if (info.st_size == 0) return {};
  if (access.is_copied) return copy_descriptor(fd, static_cast<size_t>(info.st_size), path, access);
  auto owner = make_ref<MappedFile>(fd, static_cast<size_t>(info.st_size), path);
  const std::span<const std::byte> view = owner->view();
  return {owner, view};
}

[[noreturn]] void refuse_write(const std::string& path, int error) {
  throw Error(Status::Io, cat("cannot write ", path, ": ", system_message(error))).in_file(path);
}

// A file that is written: beside the regular file whose place it takes at the end, or the place
// where there is none yet.
class Replacement {
 public:
  explicit Replacement(const std::string& path) : path_(path), fd_(-1) {
    struct stat old{};
    if (lstat(path.c_str(), &old) != 0)
      open_beside(path, nullptr);
    else if (stat(path.c_str(), &old) == 0 && S_ISREG(old.st_mode))
      open_instead_of(old);
    if (fd_.get() < 0)
      fd_.reset(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (fd_.get() < 0) refuse_write(path, errno);
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;
  ~Replacement() {
    if (!beside_.empty()) unlink(beside_.c_str());
  }

  int descriptor() const { return fd_.get(); }
  // Whole on the disk before it has the name, and the name on the disk before this returns.
  void finish() {
    if (!beside_.empty() && fsync(fd_.get()) != 0) refuse_write(path_, errno);
    if (close(fd_.give()) != 0) refuse_write(path_, errno);
    if (beside_.empty()) return;
    if (rename(beside_.c_str(), target_.c_str()) != 0) refuse_write(path_, errno);
    beside_.clear();
    keep_name();
  }

 private:
  void open_instead_of(const struct stat& old) {
    const auto release = [](char* text) { std::free(text); };
    // A link stays one.
    const std::unique_ptr<char, decltype(release)> real(realpath(path_.c_str(), nullptr));
    if (real) open_beside(real.get(), &old);
  }
  // Leaves no descriptor where the folder takes no other file.
  void open_beside(const std::string& target, const struct stat* old) {
    target_ = target;
    std::string name = target_ + ".XXXXXX";
    fd_.reset(mkostemp(name.data(), O_CLOEXEC));
    if (fd_.get() < 0) return;
    // A name of its own, with the access that a file which is made here gets.
    if (!old) {
      unlink(name.c_str());
      fd_.reset(open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
      if (fd_.get() >= 0) beside_ = std::move(name);
      return;
    }
    if (access(path_.c_str(), W_OK) == 0 && fchmod(fd_.get(), old->st_mode & 07777) == 0) {
      beside_ = std::move(name);
      return;
    }
    const int error = errno;
    unlink(name.c_str());
    refuse_write(path_, error);
  }
  // A folder that cannot be read, or a file system without such a call, keeps names as it does.
  void keep_name() const {
    const size_t slash = target_.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : target_.substr(0, slash + 1);
    const Descriptor fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd.get() >= 0 && fsync(fd.get()) != 0 && errno == EIO) refuse_write(path_, errno);
  }

  const std::string& path_;
  std::string target_;
  std::string beside_;  // "" if there is none, or no longer
  Descriptor fd_;
};

std::vector<std::string> components_of(const std::string& location) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= location.size()) {
    const size_t end = std::min(location.find('/', begin), location.size());
    const std::string part = location.substr(begin, end - begin);
    require(part != "..", Status::InvalidModel, "external data \"", location,
            "\": the location may not contain \"..\"");
    if (!part.empty() && part != ".") parts.push_back(part);
    begin = end + 1;
  }
  require(!parts.empty(), Status::InvalidModel, "external data \"", location, "\" names no file");
  return parts;
}

[[noreturn]] void refuse_open(const std::string& location, int error) {
  if (error == ELOOP || error == EXDEV)
    throw_error(Status::InvalidModel, "external data \"", location,
                "\" leads through a symbolic link or out of the folder");
  throw_error(Status::Io, "cannot open external data \"", location, "\": ", system_message(error));
}

// ELOOP where `part` is a symbolic link, which O_DIRECTORY | O_NOFOLLOW reports as ENOTDIR.
int open_error(int folder, const std::string& part, int error) {
  struct stat info{};
  if (error == ENOTDIR && fstatat(folder, part.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISLNK(info.st_mode))
    return ELOOP;
  return error;
}

int open_by_components(int folder, const std::string& location,
                       const std::vector<std::string>& parts) {
  Descriptor here(-1);
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    const int flags = last ? O_RDONLY | O_NONBLOCK : O_PATH | O_DIRECTORY;
    const int at = i == 0 ? folder : here.get();
    const int fd = open_retrying(at, parts[i].c_str(), flags | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) refuse_open(location, open_error(at, parts[i], errno));
    here.reset(fd);
  }
  return here.give();
}

}  // namespace

SharedBytes SharedBytes::own(std::vector<std::byte> bytes) {
  auto owner = make_ref<OwnedBytes>(std::move(bytes));
  const auto view = owner->view();
  return {owner, view};
}

SharedBytes SharedBytes::copy(std::string_view bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  return own(std::vector<std::byte>(begin, begin + bytes.size()));
}

SharedBytes SharedBytes::part(int64_t offset, int64_t size) const {
  invariant(offset >= 0 && size >= 0 && offset <= this->size() && size <= this->size() - offset,
            "a part lies inside its bytes");
  return {owner_, view_.subspan(static_cast<size_t>(offset), static_cast<size_t>(size))};
}

SharedBytes open_file(const std::string& path, const FileAccess& access, int64_t bytes_max) {
  require(path.find('\0') == std::string::npos, Status::Io, "a path contains a NUL byte");
  // Without O_NONBLOCK the open of a FIFO would wait for a writer.
  Descriptor fd(open_retrying(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0)
    throw Error(Status::Io, cat("cannot open ", path, ": ", system_message(errno))).in_file(path);
  return open_descriptor(fd.get(), path, access, bytes_max);
}

void write_file(const std::string& path, std::span<const std::string_view> parts,
                const StopSignal* stop) {
  require(path.find('\0') == std::string::npos, Status::Io, "a path contains a NUL byte");
  Replacement file(path);
  const auto write_all = [&](std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = write(file.descriptor(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) refuse_write(path, errno);
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  };
  for (const std::string_view bytes : parts)
    for_each_piece_of(std::ssize(bytes), 1, stop, [&](int64_t at, int64_t size) {
      write_all(bytes.substr(static_cast<size_t>(at), static_cast<size_t>(size)));
    });
  file.finish();
}

void write_file(const std::string& path, std::string_view bytes) {
  write_file(path, std::span(&bytes, 1));
}

int open_beneath(int folder, const std::string& location, bool use_openat2) {
  require(location.find('\0') == std::string::npos, Status::InvalidModel,
          "an external data location contains a NUL byte");
  require(location.empty() || location[0] != '/', Status::InvalidModel, "external data \"",
          location, "\": the location must be relative to the model");
  const std::vector<std::string> parts = components_of(location);
  if (use_openat2) {
    struct open_how how{};
    how.flags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    const std::string path = join(parts, "/");
    long fd = -1;
    int tries = 32;  // EAGAIN tells of a rename on the way, which somebody might repeat for ever.
    do {
      fd = syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how);
    } while (fd < 0 && (errno == EINTR || errno == EAGAIN) && --tries > 0);
    if (fd >= 0) return static_cast<int>(fd);
    // Kernels before 5.6 lack the call, and sandboxes forbid it.
    if (errno != ENOSYS && errno != EPERM) refuse_open(location, errno);
  }
  return open_by_components(folder, location, parts);
}

ExternalFiles::~ExternalFiles() {
  if (folder_fd_ >= 0) close(folder_fd_);
}

const SharedBytes& ExternalFiles::file(const std::string& location) {
  const auto known = files_.find(location);
  if (known != files_.end()) return known->second;
  require(static_cast<int64_t>(files_.size()) < limits_.external_files, Status::Limit,
          "the model names more than external_files = ", limits_.external_files, " files");
  if (folder_fd_ < 0) {
    folder_fd_ = open_retrying(AT_FDCWD, folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    require(folder_fd_ >= 0, Status::Io, "cannot open ", folder_, ": ", system_message(errno));
  }
  Descriptor fd(open_beneath(folder_fd_, location));
  const std::string name = cat("external data \"", location, "\"");
  require(limits_.hard_links || regular_file(fd.get(), name).st_nlink == 1, Status::InvalidModel,
          name, " has further names (hard links), which the limit hard_links forbids");
  return files_.emplace(location, open_descriptor(fd.get(), name, access_, INT64_MAX))
      .first->second;
}

SharedBytes ExternalFiles::read(const std::string& location, int64_t offset, int64_t size) {
  const SharedBytes& bytes = file(location);
  require(offset >= 0 && size >= 0 && offset <= bytes.size() && size <= bytes.size() - offset,
          Status::InvalidModel, "external data \"", location, "\": ", size, " bytes at ", offset,
          " do not lie inside its ", bytes.size(), " bytes");
  return bytes.part(offset, size);
}

}  // namespace tiny
