// A function that is borrowed for the time of a call: two words, with neither memory nor an end of
// its own, so that a caller compiles to less than with std::function, and what is called is
// compiled once where it would else be a template.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace tiny {

template <class Signature>
class FunctionRef;

template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class Function>
    requires std::is_object_v<std::remove_reference_t<Function>> &&
                 (!std::same_as<std::remove_cvref_t<Function>, FunctionRef>) &&
                 std::is_invocable_r_v<Result, Function&, Args...>
  FunctionRef(Function&& function)  // NOLINT: a call names its function bare
      : function_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
        call_([](void* function, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<Function>*>(function))(
              std::forward<Args>(args)...);
        }) {}

  FunctionRef(Result (*function)(Args...))  // NOLINT
      : function_(reinterpret_cast<void*>(function)),
        call_([](void* function, Args... args) -> Result {
          return reinterpret_cast<Result (*)(Args...)>(function)(std::forward<Args>(args)...);
        }) {}

  Result operator()(Args... args) const { return call_(function_, std::forward<Args>(args)...); }

 private:
  void* function_;
  Result (*call_)(void* function, Args... args);
};

}  // namespace tiny
