// Words for a sum of products of narrow values (bytes, bfloat16), where the target multiplies and
// adds them at once: the steps of one reduced range.  What is chosen afterwards sees words for
// elements.
#pragma once

#include <cstdint>

#include "codegen/choose/editor.h"

namespace tiny {

struct Words {
  int64_t range = -1;     // the number of the range of a word's steps; -1: there are none
  UOp scattered_operand;  // the parameter whose steps of a word lie apart
  // Whether there is one that is not laid out again: words are of no use then.
  bool is_scattered = false;
};

// Makes words of the steps of `reduce`, if the target multiplies such.
Words form_words(Editor& edit, const UOp& reduce);

struct Seen;
// An editor of the kernel, with words if it has one reduction and they are of use.
Editor with_words(const Seen& seen);

}  // namespace tiny
