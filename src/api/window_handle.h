// What a window of tiny.h is.
#pragma once

#include <mutex>

#include "api/handle.h"
#include "tensor/window.h"

struct tiny_window : tiny::CountedAs<tiny::HandleKind::Window> {
  explicit tiny_window(size_t n) : spatial(n) {}

  tiny::Window read() const {
    const std::lock_guard lock(mutex);
    return value;
  }

  const size_t spatial;  // axes
  mutable std::mutex mutex;
  tiny::Window value;
};
