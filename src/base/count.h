// A number that one thread at a time counts up, and that any thread may read meanwhile.
#pragma once

#include <atomic>

namespace tiny {

template <class T>
class Count {
 public:
  Count() = default;
  Count(const Count& other) : value_(other) {}
  Count& operator=(const Count& other) {
    value_.store(other, std::memory_order_relaxed);
    return *this;
  }
  operator T() const { return value_.load(std::memory_order_relaxed); }  // NOLINT: it is a number
  // No exchange, which would be for several threads that count.
  Count& operator+=(T more) {
    value_.store(*this + more, std::memory_order_relaxed);
    return *this;
  }
  Count& operator++() { return *this += 1; }

 private:
  std::atomic<T> value_{};
};

}  // namespace tiny
