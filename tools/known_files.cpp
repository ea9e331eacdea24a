#include "known_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

namespace tiny::cli {
namespace {

using namespace std::string_view_literals;

struct Kind {
  size_t offset;
  std::string_view bytes;
  const char* name;
};

// From the formats' own specifications.  Several of one beginning: the first that fits is told.
constexpr Kind kKinds[] = {
    {0, "\x89PNG\r\n\x1a\n"sv, "a PNG picture"},
    {0, "\xff\xd8\xff"sv, "a JPEG picture"},
    {0, "GIF8"sv, "a GIF picture"},
    {8, "WEBP"sv, "a WebP picture"},
    {8, "WAVE"sv, "a WAV sound"},
    {0, "II*\0"sv, "a TIFF picture"},
    {0, "MM\0*"sv, "a TIFF picture"},
    {0, "%PDF-"sv, "a PDF document"},
    {4, "TFL3"sv, "a TensorFlow Lite model"},
    {4, "ORTM"sv, "a model in ONNX Runtime's own format (ORT)"},
    {0, "GGUF"sv, "a GGUF model"},
    {0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file (Keras keeps models in them)"},
    {0, "\x93NUMPY"sv, "a NumPy array (.npy)"},
    {0, "PK\x03\x04"sv, "a zip archive (as .npz files and PyTorch's .pt files are)"},
    {0, "\x80\x02"sv, "a Python pickle (as PyTorch's older .pt files are)"},
    {0, "\x80\x03"sv, "a Python pickle"},
    {0, "\x80\x04"sv, "a Python pickle"},
    {0, "\x80\x05"sv, "a Python pickle"},
    {0, "\x1f\x8b"sv, "a gzip file, which has to be unpacked first"},
    {0, "\xfd\x37zXZ\0"sv, "an xz file, which has to be unpacked first"},
    {0, "\x28\xb5\x2f\xfd"sv, "a zstd file, which has to be unpacked first"},
    {0, "BZh"sv, "a bzip2 file, which has to be unpacked first"},
    {257, "ustar"sv, "a tar archive, which has to be unpacked first"},
    {0, "\x7f\x45LF"sv, "an ELF program or library"},
    {0, "version https://git-lfs"sv, "a pointer of Git LFS; `git lfs pull` gets the model itself"},
    {8, "{\""sv, "a .safetensors file: weights without a graph"},
};

// Texts, by how they begin in lower case, behind blanks.
constexpr std::pair<std::string_view, const char*> kTexts[] = {
    {"<!doctype html", "a web page"},
    {"<html", "a web page"},
    {"<?xml", "an XML file"},
    {"{", "a JSON text"},
};

// A model begins with small numbers, which no text has.
bool is_text(std::string_view head) {
  return std::ranges::all_of(head, [](char c) {
    return static_cast<unsigned char>(c) >= ' ' || "\t\n\f\r"sv.find(c) != std::string_view::npos;
  });
}

const char* kind_of_text(std::string_view head) {
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);  // a byte order mark
  head.remove_prefix(std::min(head.find_first_not_of(" \t\n\f\r"), head.size()));
  std::string start(head.substr(0, 16));
  for (char& c : start) c = 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const auto& [beginning, name] : kTexts)
    if (start.starts_with(beginning)) return name;
  return "a text";
}

}  // namespace

std::string known_kind(const std::string& path) {
  struct stat found;
  if (stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode)) return "a folder";
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) return "";
  std::array<char, 512> start;
  const std::string_view head(start.data(), std::fread(start.data(), 1, start.size(), file.get()));
  if (head.empty()) return "an empty file";
  for (const Kind& kind : kKinds)
    if (head.size() > kind.offset && head.substr(kind.offset).starts_with(kind.bytes))
      return kind.name;
  return is_text(head) ? kind_of_text(head) : "";
}

}  // namespace tiny::cli
