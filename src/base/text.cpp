#include "base/text.h"

#include <cstdio>

namespace tiny {

void TextPart::append_to(std::string& out) const {
  char digits[32];
  switch (kind_) {
    case Kind::Text:
      out += text_;
      return;
    case Kind::Character:
      out += static_cast<char>(int_);
      return;
    case Kind::Signed:
      std::snprintf(digits, sizeof digits, "%lld", static_cast<long long>(int_));
      break;
    case Kind::Unsigned:
      std::snprintf(digits, sizeof digits, "%llu", static_cast<unsigned long long>(int_));
      break;
    case Kind::Float:
      std::snprintf(digits, sizeof digits, "%g", float_);
      break;
  }
  out += digits;
}

std::string cat_parts(std::initializer_list<TextPart> parts) {
  std::string out;
  for (const TextPart& part : parts) part.append_to(out);
  return out;
}

std::string join(const std::vector<std::string>& items, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i) out += separator;
    out += items[i];
  }
  return out;
}

std::string list_text(const std::vector<int64_t>& values) {
  std::vector<std::string> items;
  items.reserve(values.size());
  for (int64_t v : values) items.push_back(std::to_string(v));
  return cat("[", join(items, ", "), "]");
}

}  // namespace tiny
