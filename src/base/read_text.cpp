#include "base/read_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace tiny {

std::string read_text(const std::string& path, size_t bytes_max) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text(bytes_max, '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = read(fd, text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  close(fd);
  text.resize(have);
  return text;
}

}  // namespace tiny
