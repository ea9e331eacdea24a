// Owners of the library's handles: released where they go out of scope.
#pragma once

#include <memory>

#include "tiny.h"

namespace tiny::cli {

template <typename T, void (*release)(T*)>
struct Release {
  void operator()(T* handle) const { release(handle); }
};
template <typename T, void (*release)(T*)>
using Handle = std::unique_ptr<T, Release<T, release>>;

using Options = Handle<tiny_options, tiny_options_release>;
using Context = Handle<tiny_context, tiny_context_release>;
using Tensor = Handle<tiny_tensor, tiny_tensor_release>;
using Archive = Handle<tiny_archive, tiny_archive_release>;
using Model = Handle<tiny_model, tiny_model_release>;
using Program = Handle<tiny_program, tiny_program_release>;
using Variable = Handle<tiny_variable, tiny_variable_release>;
using Run = Handle<tiny_run, tiny_run_release>;
using Report = Handle<tiny_report, tiny_report_release>;

// Lets a function of the library fill an owner: `tiny_model_load(c, path, out(model))`.
template <typename Owner>
class Out {
 public:
  explicit Out(Owner& owner) : owner_(owner) {}
  ~Out() { owner_.reset(made_); }
  Out(const Out&) = delete;
  operator typename Owner::pointer *() { return &made_; }

 private:
  Owner& owner_;
  typename Owner::pointer made_ = nullptr;
};
template <typename Owner>
Out<Owner> out(Owner& owner) {
  return Out<Owner>(owner);
}

}  // namespace tiny::cli
