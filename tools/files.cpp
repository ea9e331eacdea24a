#include "files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "failure.h"
#include "npz.h"
#include "session.h"
#include "suggest.h"

namespace tiny::cli {
namespace {

using File = std::unique_ptr<FILE, int (*)(FILE*)>;

}  // namespace

bool is_file(const std::string& path) {
  struct stat found;
  return stat(path.c_str(), &found) == 0 && !S_ISDIR(found.st_mode);
}

std::vector<std::byte> read_file(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) throw file_failure(path, std::strerror(errno));
  std::vector<std::byte> bytes;
  size_t used = 0;
  for (;;) {
    bytes.resize(used + std::max<size_t>(65536, used));
    const size_t got = std::fread(bytes.data() + used, 1, bytes.size() - used, file.get());
    used += got;
    if (got == 0) break;
  }
  if (std::ferror(file.get())) throw file_failure(path, std::strerror(errno));
  bytes.resize(used);
  return bytes;
}

void write_file(const std::string& path, std::string_view content) {
  File file(std::fopen(path.c_str(), "wb"), std::fclose);
  if (!file) throw file_failure(path, std::strerror(errno));
  const bool whole = std::fwrite(content.data(), 1, content.size(), file.get()) == content.size();
  if (std::fclose(file.release()) != 0 || !whole) throw file_failure(path, std::strerror(errno));
}

std::string ending(const std::string& path) {
  const size_t dot = path.rfind('.'), slash = path.rfind('/');
  if (dot == std::string::npos || (slash != std::string::npos && slash > dot)) return "";
  std::string text = path.substr(dot);
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

namespace {

// Whatever is wrong, it is the file that is wrong.
void check_file(tiny_status status, const std::string& path) {
  if (status == TINY_OK) return;
  Failure failure = last_failure(status, path);
  if (failure.exit != Exit::Limit && failure.exit != Exit::Internal &&
      failure.exit != Exit::Unsupported)
    failure.exit = Exit::File;
  throw failure;
}

Tensor tensor_of(const Context& context, const Array& array) {
  Tensor tensor;
  check(tiny_tensor_from_data(context.get(), array.dtype, array.shape.data(), array.shape.size(),
                              array.bytes.data(), array.bytes.size(), out(tensor)));
  return tensor;
}

// The places that are wanted of arrays with these names: see load_archive.
std::vector<size_t> chosen_places(const std::string& path, const std::vector<std::string>& names,
                                  const std::string& name, bool or_only) {
  std::vector<size_t> places;
  for (size_t i = 0; i < names.size(); ++i)
    if (name.empty() || names[i] == name) places.push_back(i);
  if (places.empty() && or_only && names.size() == 1) return {0};
  if (places.empty() && !name.empty())
    throw file_failure(path, "no array '" + name + "'" + did_you_mean(name, names) + "; it has " +
                                 list_text(names));
  return places;
}

}  // namespace

Array load_tensor(const Context& context, const std::string& path) {
  if (!is_file(path)) throw file_failure(path, "no such file");
  Tensor tensor;
  check_file(tiny_tensor_load(context.get(), path.c_str(), out(tensor)), path);
  return read_tensor(tensor.get(), path);
}

bool is_archive(const std::string& path) {
  return ending(path) == ".npz" || ending(path) == ".safetensors";
}

std::vector<Array> load_archive(const Context& context, const std::string& path,
                                const std::string& name, bool or_only) {
  std::vector<std::string> names;
  std::vector<Array> arrays;
  if (ending(path) == ".npz") {
    std::vector<Array> all = read_npz(path);
    for (const Array& array : all) names.push_back(array.name);
    for (const size_t i : chosen_places(path, names, name, or_only))
      arrays.push_back(std::move(all[i]));
    return arrays;
  }
  Archive archive;
  size_t count = 0;
  check_file(tiny_archive_load(context.get(), path.c_str(), out(archive)), path);
  check_file(tiny_archive_count(archive.get(), &count), path);
  for (size_t i = 0; i < count; ++i) {
    const char* text = nullptr;
    check_file(tiny_archive_name(archive.get(), i, &text), path);
    names.emplace_back(text);
  }
  for (const size_t i : chosen_places(path, names, name, or_only)) {
    Tensor tensor;
    check_file(tiny_archive_get(archive.get(), names[i].c_str(), out(tensor)), path);
    arrays.push_back(read_tensor(tensor.get(), names[i]));
  }
  return arrays;
}

Array load_raw(const std::string& path, tiny_dtype dtype, std::vector<int64_t> shape) {
  if (!is_file(path)) throw file_failure(path, "no such file");
  Array array{path, dtype, std::move(shape), read_file(path)};
  const int64_t count = element_count(array.shape);
  if (count < 0 || array.bytes.size() % tiny_dtype_size(dtype) != 0 ||
      array.count() != static_cast<uint64_t>(count))
    throw file_failure(path, std::to_string(array.bytes.size()) + " bytes are not the size of " +
                                 describe(dtype, array.shape));
  return array;
}

void save_tensor(const Context& context, const Array& array, const std::string& path) {
  const Tensor tensor = tensor_of(context, array);
  check(tiny_tensor_save(tensor.get(), path.c_str(), array.name.c_str()), path);
}

void save_archive(const Context& context, const std::vector<Array>& arrays,
                  const std::string& path) {
  Archive archive;
  check(tiny_archive_create(context.get(), out(archive)));
  for (const Array& array : arrays)
    check(tiny_archive_set(archive.get(), array.name.c_str(), tensor_of(context, array).get()));
  check(tiny_archive_save(archive.get(), path.c_str()), path);
}

std::string escaped(std::string_view name) {
  constexpr char kHex[] = "0123456789ABCDEF";
  constexpr size_t kLengthMax = 200;  // of the 255 that file systems allow
  std::string text;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || (c == '.' && !text.empty());
    if (plain) {
      text += c;
      continue;
    }
    text += '%';
    text += kHex[static_cast<unsigned char>(c) >> 4];
    text += kHex[c & 15];
  }
  if (text.size() > kLengthMax) text.resize(kLengthMax);
  return text.empty() ? "%" : text;
}

}  // namespace tiny::cli
