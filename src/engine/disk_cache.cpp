#include "engine/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include "base/build_id.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/sort.h"
#include "base/text.h"

namespace tiny {

namespace {

constexpr uint64_t kMagic = 0x33656C6E72656B74;  // and the format's number
constexpr const char* kEnding = ".tiny";
// Its time is that of the last look at the sizes of a share of the files, which is not done more
// often than that each has its turn in this time.  A share are the names that begin with one
// hexadecimal digit: a look at 200,000 files and the removal of half of them takes half a minute,
// for which whoever comes first would wait.
constexpr const char* kTrimmedName = "trimmed";
constexpr int64_t kTrimSeconds = 3600;
constexpr int64_t kShares = 16;
constexpr int64_t kRemovedMax = 4096;  // files, by one look
// A share of the small files is as good as all of them; of few large ones it says nothing, which
// therefore have room of their own.
constexpr int64_t kFileBytesMax = 64 << 20;
constexpr int64_t kLargeFileBytes = 1 << 20;
constexpr int64_t kSmallBytesMax = 256 << 20;
constexpr int64_t kLargeBytesMax = 512 << 20;
constexpr int64_t kBlockBytes = 4096;  // a file takes whole ones

// Over many bytes: four words are on their way at once.
uint64_t hash_long(std::string_view bytes, uint64_t seed) {
  constexpr size_t kLanes = 4, kBlock = kLanes * sizeof(uint64_t);
  uint64_t lanes[kLanes];
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = hash_mix(seed, i);
  const size_t blocks = bytes.size() / kBlock;
  for (const char* at = bytes.data(); at != bytes.data() + blocks * kBlock; at += kBlock)
    for (size_t i = 0; i < kLanes; ++i) {
      uint64_t word = 0;
      std::memcpy(&word, at + i * sizeof word, sizeof word);
      // Reversible in the lane for each word, so that no single difference is lost.
      const uint64_t mixed = (lanes[i] ^ word) * 0xD6E8FEB86659FD93u;
      lanes[i] = mixed ^ (mixed >> 32);
    }
  uint64_t h = hash_bytes(bytes.substr(blocks * kBlock), bytes.size());
  for (uint64_t lane : lanes) h = hash_mix(h, lane);
  return h;
}

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// Whether nobody else may write it.
bool is_ours(const struct stat& status) {
  return status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Makes the folder and those around it; true if it can be used.
bool make_folder(const std::string& path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    mkdir(path.substr(0, at).c_str(), 0755);
  mkdir(path.c_str(), 0700);
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && is_ours(status) &&
         access(path.c_str(), R_OK | W_OK | X_OK) == 0;
}

// $XDG_CACHE_HOME/tiny or ~/.cache/tiny; empty if there is no home.
std::string standard_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/')
    return cat(cache, "/tiny");
  if (const char* home = std::getenv("HOME"); home && *home == '/')
    return cat(home, "/.cache/tiny");
  return {};
}

// The whole file; none if it is not a file of ours.
std::optional<DiskContent> map_file(const std::string& path) {
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status{};
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  if (!is_ours(status) || status.st_size <= 0 || status.st_size > kFileBytesMax)
    return std::nullopt;
  // Files are replaced and removed, but never written to again: what is mapped stays.
  const auto size = static_cast<size_t>(status.st_size);
  void* mapping = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file.get(), 0);
  if (mapping == MAP_FAILED) return std::nullopt;
  // For trim(), to which an hour is nothing; may fail.
  if (std::time(nullptr) - status.st_mtim.tv_sec > kTrimSeconds) futimens(file.get(), nullptr);
  return DiskContent(mapping, size);
}

bool write_file(const std::string& path, std::string_view bytes) {
  const File file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return false;
  while (!bytes.empty()) {
    const ssize_t put = write(file.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

struct Entry {
  int64_t time, bytes;
  std::string path;
};

// If they have more bytes than that: until three quarters of it are left.
void remove_oldest(std::vector<Entry>& entries, int64_t bytes_max) {
  int64_t total = 0, removed = 0;
  for (const Entry& entry : entries) total += entry.bytes;
  if (total <= bytes_max) return;
  sort_stable(entries, [](const Entry& a, const Entry& b) { return a.time < b.time; });
  for (const Entry& entry : entries) {
    if (total <= bytes_max / 4 * 3 || ++removed > kRemovedMax) return;
    if (unlink(entry.path.c_str()) == 0) total -= entry.bytes;
  }
}

}  // namespace

DiskContent::~DiskContent() {
  if (mapping_) munmap(mapping_, size_);
}

DiskCache::DiskCache(const Flags& flags, std::string_view target_key)
    : target_key_(target_key), log_(flags.log) {
  open(flags);
}

void DiskCache::open(const Flags& flags) {
  tell_ = flags.debug >= 1;
  is_on_.store(false);
  const bool watched = flags.spec != 0 || flags.debug >= 3 || flags.graphuops != 0 ||
                       flags.track_match_stats != 0 || flags.viz != 0;
  if (flags.cache == 0 || watched) return;
  const std::string build = build_id();
  const std::string folder = flags.cache_dir.empty() ? standard_folder() : flags.cache_dir;
  if (build.empty() || folder.empty() || !make_folder(folder)) {
    if (tell_)
      log_.tell(cat("tiny: no disk cache: ",
                    build.empty()    ? std::string("this build has no identity")
                    : folder.empty() ? std::string("there is no home folder")
                                     : cat(folder, " cannot be used"),
                    "\n"));
    return;
  }
  if (folder_.empty()) folder_ = folder;  // which others may read
  common_ = ByteWriter()
                .text(build)
                .text(target_key_)
                .number(flags.noopt)
                .number(flags.beam)
                .number(flags.fusion)
                .text(flags.flip_joins)
                .text(flags.wino)
                .text(flags.opts)
                .result();
  is_on_.store(true);
}

std::string DiskCache::name_of(std::string_view key) const {
  char name[33];
  const auto hash = [&](uint64_t seed) {
    return static_cast<unsigned long long>(hash_long(key, hash_bytes(common_, seed)));
  };
  std::snprintf(name, sizeof name, "%016llx%016llx", hash(1), hash(2));
  return name;
}

// The content if the file is whole and of this key (null: of the one that its name stands for).
std::optional<DiskContent> DiskCache::read_named(const std::string& name,
                                                 const std::string_view* key) const {
  if (!enabled()) return std::nullopt;
  auto bytes = map_file(cat(folder_, "/", name, kEnding));
  if (!bytes) return std::nullopt;
  ByteReader file(bytes->mapped());
  const auto magic = file.number<uint64_t>();
  const auto checksum = file.number<uint64_t>();
  const std::string_view text = file.text();
  if (!file.at_end() || magic != kMagic || checksum != hash_long(text, kMagic)) return std::nullopt;
  ByteReader body(text);
  const std::string_view common = body.text();
  const std::string_view found = body.text();
  const std::string_view content = body.text();
  if (!body.at_end() || common != common_) return std::nullopt;
  if (key ? found != *key : name_of(found) != name) return std::nullopt;
  bytes->show(content);
  return bytes;
}

std::optional<DiskContent> DiskCache::find(std::string_view key) const {
  return enabled() ? read_named(name_of(key), &key) : std::nullopt;
}

std::optional<DiskContent> DiskCache::find_named(const std::string& name,
                                                 const DiskBundle& bundle) const {
  if (const auto at = bundle.find(name); at != bundle.end()) return DiskContent(at->second);
  return read_named(name, nullptr);
}

void DiskCache::store(std::string_view key, std::string_view content) {
  if (!enabled()) return;
  const std::string body = ByteWriter().text(common_).text(key).text(content).result();
  const std::string bytes =
      ByteWriter().number(kMagic).number(hash_long(body, kMagic)).text(body).result();
  if (std::ssize(bytes) > kFileBytesMax) return;
  if (!trimmed_) trim();
  const std::string path = cat(folder_, "/", name_of(key), kEnding);
  const std::string aside =
      cat(path, ".", getpid(), "-", reinterpret_cast<uintptr_t>(this), "-", written_++);
  if (write_file(aside, bytes) && rename(aside.c_str(), path.c_str()) == 0) return;
  const int error = errno;
  unlink(aside.c_str());
  if (tell_)
    log_.tell(cat("tiny: no more is written to the disk cache ", folder_, ": ",
                  std::strerror(error), "\n"));
  is_on_.store(false);
}

// Before the first write of a context, if none has of late: of a share of the files, the oldest go
// until three quarters are left of what it may have.
void DiskCache::trim() {
  trimmed_ = true;
  const std::string stamp = cat(folder_, "/", kTrimmedName);
  struct stat last{};
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (stat(stamp.c_str(), &last) == 0 &&
      std::abs(now.tv_sec - last.st_mtim.tv_sec) < kTrimSeconds / kShares)
    return;
  if (!write_file(stamp, "")) utimensat(AT_FDCWD, stamp.c_str(), nullptr, 0);
  // By chance: turns would be the same ones for a process that runs at the same time each day.
  const uint64_t share = hash_mix(static_cast<uint64_t>(now.tv_nsec), 0) % kShares;
  DIR* folder = opendir(folder_.c_str());
  if (!folder) return;
  std::vector<Entry> small, large;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != "0123456789abcdef"[share]) continue;
    if (std::strstr(entry->d_name, kEnding) == nullptr) continue;
    std::string path = cat(folder_, "/", entry->d_name);
    struct stat status{};
    if (lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    const int64_t bytes = (status.st_size + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    (bytes < kLargeFileBytes ? small : large)
        .push_back({status.st_mtim.tv_sec, bytes, std::move(path)});
  }
  closedir(folder);
  remove_oldest(small, kSmallBytesMax / kShares);
  remove_oldest(large, kLargeBytesMax / kShares);
}

}  // namespace tiny
