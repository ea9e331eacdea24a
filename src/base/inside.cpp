#include "base/inside.h"

namespace tiny {

namespace {

thread_local constinit const Inside* innermost = nullptr;

}  // namespace

Inside::Inside(const void* object) : object_(object), outer_(innermost) {
  innermost = this;
}

Inside::~Inside() {
  innermost = outer_;
}

bool Inside::is(const void* object) {
  for (const Inside* at = innermost; at; at = at->outer_)
    if (at->object_ == object) return true;
  return false;
}

}  // namespace tiny
