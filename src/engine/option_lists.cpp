#include "engine/option_lists.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/error.h"
#include "base/hash.h"
#include "base/read_text.h"
#include "codegen/options/options.h"
#include "engine/kernel_key.h"

namespace tiny {

namespace {

constexpr size_t kFileBytesMax = 16 << 20;
constexpr std::string_view kMark = "options ";  // of a line that counts in what was told
constexpr std::string_view kNone = "none";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

// Calls `each` with the lines of `text`, without spaces around them.
template <class Each>
void for_each_line(std::string_view text, Each each) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    each(trimmed(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

std::string structure_name(const Kernel& kernel) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), ".%08x",
                static_cast<unsigned>(hash_bytes(kernel_key(kernel)) >> 32));
  return kernel.name + text.data();
}

std::string option_text(const std::string& setting) {
  if (!setting.starts_with('@')) return setting;
  const std::string path = setting.substr(1);
  const std::string text = read_text(path, kFileBytesMax);
  require(!text.empty(), Status::Io, "opts: the file ", path, " cannot be read, or is empty");
  require(text.size() < kFileBytesMax, Status::Io, "opts: the file ", path, " is longer than ",
          kFileBytesMax >> 20, " MB");
  std::string lists;
  for_each_line(text, [&](std::string_view line) {
    if (line.starts_with(kMark)) lists += cat(line.substr(kMark.size()), "\n");
  });
  require(!lists.empty(), Status::InvalidArgument, "opts: the file ", path,
          " has no line \"options NAME: ..\", as TINY_DEBUG=3 tells them");
  return lists;
}

OptionLists::OptionLists(std::string_view text) {
  for_each_line(text, [&](std::string_view line) {
    if (line.empty()) return;
    const size_t colon = line.find(':');
    const bool has_name = colon != std::string_view::npos;
    const std::string_view name = has_name ? trimmed(line.substr(0, colon)) : std::string_view();
    require(!has_name || (!name.empty() && name.find_first_of(" \t") == std::string_view::npos),
            Status::InvalidArgument, "opts: got \"", line,
            "\" where the name of a kernel, a colon and its options were expected");
    add(name, trimmed(has_name ? line.substr(colon + 1) : line));
  });
}

void OptionLists::add(std::string_view name, std::string_view list) {
  if (list == kNone) list = {};
  try {
    parse_options(list);
  } catch (const Error& e) {
    throw name.empty() ? e : e.at(cat("kernel ", name));
  }
  const auto [place, is_new] = lists_.emplace(name, list);
  require(is_new || place->second == list, Status::InvalidArgument, "opts: two lists for ",
          name.empty() ? std::string("all kernels") : cat("kernel ", name), ": \"", place->second,
          "\" and \"", list, "\"");
}

const std::string* OptionLists::find(const Kernel& kernel) {
  if (lists_.empty()) return nullptr;
  for (const std::string& name : {structure_name(kernel), kernel.name, std::string()}) {
    const auto found = lists_.find(name);
    if (found == lists_.end()) continue;
    used_.insert(name);
    return &found->second;
  }
  return nullptr;
}

std::vector<std::string> OptionLists::unused() const {
  std::vector<std::string> names;
  for (const auto& [name, list] : lists_)
    if (!name.empty() && !used_.contains(name)) names.push_back(name);
  return names;
}

}  // namespace tiny
