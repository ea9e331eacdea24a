// What a thread is in the middle of, so that a function of the caller's that calls back into the
// library is told by it instead of waiting for itself.
#pragma once

namespace tiny {

// This thread works for `object` as long as this lives, on the stack.
class Inside {
 public:
  explicit Inside(const void* object);
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  static bool is(const void* object);

 private:
  const void* object_;
  const Inside* outer_;
};

}  // namespace tiny
