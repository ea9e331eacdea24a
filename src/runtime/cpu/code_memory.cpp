#include "runtime/cpu/code_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace tiny {

namespace {

constexpr size_t kAlignment = 64;
#ifndef MFD_EXEC
constexpr unsigned MFD_EXEC = 0x10;
#endif

// Newer kernels want to be told that the file may be executed; older ones do not know the flag.
int anonymous_file() {
  const int fd = memfd_create("tiny-code", MFD_CLOEXEC | MFD_EXEC);
  return fd >= 0 ? fd : memfd_create("tiny-code", MFD_CLOEXEC);
}

}  // namespace

Ref<CodeMemory> CodeMemory::make(std::span<const std::span<const std::byte>> functions) {
  const Ref<CodeMemory> memory(new CodeMemory);
  size_t size = 0;
  for (const auto& f : functions) {
    memory->offsets_.push_back(size);
    size += (f.size() + kAlignment - 1) / kAlignment * kAlignment;
  }
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  memory->size_ = (size + page) / page * page;
  if (memory->map_shared(functions) || memory->map_private(functions)) return memory;
  throw_error(Status::Device,
              "this process may not make memory executable: ", std::strerror(errno));
}

void CodeMemory::copy(std::byte* to, std::span<const std::span<const std::byte>> functions) const {
  for (size_t i = 0; i < functions.size(); ++i)
    if (!functions[i].empty())
      std::memcpy(to + offsets_[i], functions[i].data(), functions[i].size());
}

bool CodeMemory::map_shared(std::span<const std::span<const std::byte>> functions) {
  const int fd = anonymous_file();
  if (fd < 0) return false;
  void* writable = MAP_FAILED;
  if (ftruncate(fd, static_cast<off_t>(size_)) == 0)
    writable = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (writable != MAP_FAILED) {
    copy(static_cast<std::byte*>(writable), functions);
    munmap(writable, size_);
    void* executable = mmap(nullptr, size_, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    if (executable != MAP_FAILED) base_ = static_cast<std::byte*>(executable);
  }
  const int error = errno;
  close(fd);
  errno = error;
  return base_ != nullptr;
}

bool CodeMemory::map_private(std::span<const std::span<const std::byte>> functions) {
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  copy(static_cast<std::byte*>(memory), functions);
  if (mprotect(memory, size_, PROT_READ | PROT_EXEC) != 0) {
    const int error = errno;
    munmap(memory, size_);
    errno = error;
    return false;
  }
  base_ = static_cast<std::byte*>(memory);
  return true;
}

CodeMemory::~CodeMemory() {
  if (base_) munmap(base_, size_);
}

}  // namespace tiny
