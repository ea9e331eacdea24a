// A list of numbers as a part of a message: its text is made only if the message is, which a check
// that holds does not.  The list outlives it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/text.h"

namespace tiny {

struct Listed {
  const std::vector<int64_t>& numbers;
};

inline std::string to_string(const Listed& list) {
  return list_text(list.numbers);
}

}  // namespace tiny
