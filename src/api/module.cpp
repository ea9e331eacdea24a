// Modules, and layers with their parameters: handles of src/nn's.
#include "nn/module.h"

#include "api/archive_handle.h"
#include "api/generator_handle.h"
#include "api/holder.h"
#include "api/initial.h"
#include "api/window_handle.h"
#include "nn/layers.h"
#include "nn/sequence_layers.h"

using tiny::require;
using tiny::Status;
using tiny::Tensor;

struct tiny_module final : tiny::CountedAs<tiny::HandleKind::Module>, tiny::HoldsNodes {
  tiny_module(tiny_context& c, tiny::Ref<tiny::Module> m)
      : HoldsNodes(c, tiny::end_handle<tiny_module>), core(std::move(m)) {}

  tiny::Ref<tiny::Module> core;
};

namespace {

constexpr tiny::Named<tiny::RecurrentKind> kRecurrentKinds[] = {
    {TINY_RECURRENT_KIND_RNN, "TINY_RECURRENT_KIND_RNN", tiny::RecurrentKind::Rnn},
    {TINY_RECURRENT_KIND_GRU, "TINY_RECURRENT_KIND_GRU", tiny::RecurrentKind::Gru},
    {TINY_RECURRENT_KIND_LSTM, "TINY_RECURRENT_KIND_LSTM", tiny::RecurrentKind::Lstm},
};

Tensor value_or_none(const tiny_tensor* tensor) {
  return tensor ? tensor->value : Tensor();
}

// A module that is to be worked with, and the tensors that it is given.
void check(const tiny_module& module, const tiny::Operands& operands) {
  tiny::require_one_context(operands.context(), *module.context,
                            "a tensor is of another context than the module");
}

// What every layer is told.
struct LayerCall {
  const char* call;
  const tiny_module* module;
  const char* name;
  tiny_flags flags = 0;
  tiny_flags known = 0;
};

tiny_status layer(const LayerCall& told, std::initializer_list<tiny::Operand> tensors,
                  tiny_tensor** out, tiny::FunctionRef<Tensor(tiny::Module&)> body) noexcept {
  return tiny::produce_with(told.call, told.module, "module", out, [&](tiny_module& m) {
    tiny::required(told.name, "name");
    check(m, tiny::Operands(tensors));
    tiny::check_flags(told.flags, told.known);
    return body(*m.core);
  });
}

// Makes a handle of what a module has.
template <class Made, class Body>
tiny_status make_of(const char* call, const tiny_module* module, Made** out, Body body) noexcept {
  if (!out) return tiny::fail(call, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::with(call, module, "module", [&](tiny_module& m) {
    *out = tiny::new_holder<Made>(*m.context, body(*m.core));
  });
}

const tiny::Module::Entry& parameter_at(const tiny::Module& module, size_t index) {
  const auto all = module.entries(true);
  require(index < all.size(), Status::InvalidArgument, "parameter ", index, " of ", all.size());
  return *all[index];
}

tiny::NormOptions norm_options(double epsilon, tiny_flags flags) {
  return {epsilon, (flags & TINY_FLAG_NO_AFFINE) == 0};
}

bool has_bias(tiny_flags flags) {
  return (flags & TINY_FLAG_NO_BIAS) == 0;
}

}  // namespace

extern "C" {

tiny_status tiny_module_create(tiny_context* context, int64_t seed, tiny_module** out) {
  return tiny::make_with(__func__, context, out, [=] {
    return tiny::make_ref<tiny::Module>(context->core, static_cast<uint64_t>(seed));
  });
}

void tiny_module_retain(tiny_module* module) {
  tiny::retain_owned(module);
}

void tiny_module_release(tiny_module* module) {
  tiny::release_holder(module);
}

tiny_status tiny_module_child(const tiny_module* module, const char* name, tiny_module** out) {
  return make_of(__func__, module, out,
                 [=](tiny::Module& m) { return m.child(&tiny::required(name, "name")); });
}

tiny_status tiny_module_set_training(tiny_module* module, int32_t training) {
  return tiny::with(__func__, module, "module",
                    [=](tiny_module& m) { m.core->set_training(training != 0); });
}

tiny_status tiny_module_is_training(const tiny_module* module, int32_t* out) {
  return tiny::answer_with(__func__, module, "module", out, [](tiny_module& m) {
    return static_cast<int32_t>(m.core->is_training());
  });
}

tiny_status tiny_module_set_dtype(tiny_module* module, tiny_dtype dtype) {
  return tiny::with(__func__, module, "module",
                    [=](tiny_module& m) { m.core->set_dtype(tiny::dtype_argument(dtype)); });
}

tiny_status tiny_module_generator(const tiny_module* module, tiny_generator** out) {
  return make_of(__func__, module, out,
                 [](tiny::Module& m) { return tiny::Ref<tiny::Generator>(&m.generator()); });
}

tiny_status tiny_module_parameter(tiny_module* module, const char* name, const int64_t* dims,
                                  size_t ndim, tiny_initial initial, double a, double b,
                                  tiny_tensor** out) {
  return tiny::produce_with(__func__, module, "module", out, [=](tiny_module& m) {
    return m.core->parameter(&tiny::required(name, "name"), tiny::numbers(dims, ndim, "dims"),
                             tiny::initial_argument(initial, a, b));
  });
}

tiny_status tiny_module_buffer(tiny_module* module, const char* name, tiny_dtype dtype,
                               const int64_t* dims, size_t ndim, double value, tiny_tensor** out) {
  return tiny::produce_with(__func__, module, "module", out, [=](tiny_module& m) {
    return m.core->buffer(&tiny::required(name, "name"), tiny::numbers(dims, ndim, "dims"),
                          tiny::dtype_argument(dtype), value);
  });
}

tiny_status tiny_module_parameter_count(const tiny_module* module, size_t* out) {
  return tiny::answer_with(__func__, module, "module", out,
                           [](tiny_module& m) { return m.core->entries(true).size(); });
}

tiny_status tiny_module_parameter_name(const tiny_module* module, size_t index, const char** out) {
  return tiny::answer_with(__func__, module, "module", out, [=](tiny_module& m) {
    return parameter_at(*m.core, index).name.c_str();
  });
}

tiny_status tiny_module_parameter_at(const tiny_module* module, size_t index, tiny_tensor** out) {
  return tiny::produce_with(__func__, module, "module", out,
                            [=](tiny_module& m) { return parameter_at(*m.core, index).value; });
}

tiny_status tiny_module_state(const tiny_module* module, tiny_archive** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::with(__func__, module, "module", [=](tiny_module& m) {
    auto archive = std::make_unique<tiny_archive>(*m.context);
    const size_t above = m.core->full_name("").size();
    for (const tiny::Module::Entry* e : m.core->entries(false)) {
      tiny_tensor* const tensor = tiny::make_handle(*m.context, [&] { return e->value; });
      archive->add(e->name.substr(above)).given = tiny::Held(tensor);
      tiny_tensor_release(tensor);
    }
    *out = archive.release();
  });
}

tiny_status tiny_module_linear(tiny_module* module, const char* name, const tiny_tensor* x,
                               int64_t features, tiny_flags flags, tiny_tensor** out) {
  return layer(
      {__func__, module, name, flags, TINY_FLAG_NO_BIAS}, {{x, "x"}}, out,
      [=](tiny::Module& m) { return tiny::linear(m, name, x->value, features, has_bias(flags)); });
}

tiny_status tiny_module_conv(tiny_module* module, const char* name, const tiny_tensor* x,
                             int64_t channels, const tiny_window* window, tiny_flags flags,
                             tiny_tensor** out) {
  return layer({__func__, module, name, flags, TINY_FLAG_NO_BIAS}, {{x, "x"}}, out,
               [=](tiny::Module& m) {
                 return tiny::conv(m, name, x->value, channels,
                                   tiny::required(window, "window").read(), has_bias(flags));
               });
}

tiny_status tiny_module_conv_transpose(tiny_module* module, const char* name, const tiny_tensor* x,
                                       int64_t channels, const tiny_window* window,
                                       tiny_flags flags, tiny_tensor** out) {
  return layer(
      {__func__, module, name, flags, TINY_FLAG_NO_BIAS}, {{x, "x"}}, out, [=](tiny::Module& m) {
        return tiny::conv_transpose(m, name, x->value, channels,
                                    tiny::required(window, "window").read(), has_bias(flags));
      });
}

tiny_status tiny_module_embedding(tiny_module* module, const char* name, const tiny_tensor* index,
                                  int64_t count, int64_t size, tiny_tensor** out) {
  return layer({__func__, module, name}, {{index, "index"}}, out, [=](tiny::Module& m) {
    return tiny::embedding(m, name, index->value, count, size);
  });
}

tiny_status tiny_module_batch_norm(tiny_module* module, const char* name, const tiny_tensor* x,
                                   double momentum, double epsilon, tiny_flags flags,
                                   tiny_tensor** out) {
  return layer({__func__, module, name, flags, TINY_FLAG_NO_AFFINE}, {{x, "x"}}, out,
               [=](tiny::Module& m) {
                 return tiny::batch_norm(m, name, x->value, norm_options(epsilon, flags), momentum);
               });
}

tiny_status tiny_module_layer_norm(tiny_module* module, const char* name, const tiny_tensor* x,
                                   int64_t axis, double epsilon, tiny_flags flags,
                                   tiny_tensor** out) {
  return layer({__func__, module, name, flags, TINY_FLAG_NO_AFFINE}, {{x, "x"}}, out,
               [=](tiny::Module& m) {
                 return tiny::layer_norm(m, name, x->value, axis, norm_options(epsilon, flags));
               });
}

tiny_status tiny_module_rms_norm(tiny_module* module, const char* name, const tiny_tensor* x,
                                 int64_t axis, double epsilon, tiny_flags flags,
                                 tiny_tensor** out) {
  return layer({__func__, module, name, flags, TINY_FLAG_NO_AFFINE}, {{x, "x"}}, out,
               [=](tiny::Module& m) {
                 return tiny::rms_norm(m, name, x->value, axis, norm_options(epsilon, flags));
               });
}

tiny_status tiny_module_group_norm(tiny_module* module, const char* name, const tiny_tensor* x,
                                   int64_t groups, double epsilon, tiny_flags flags,
                                   tiny_tensor** out) {
  return layer({__func__, module, name, flags, TINY_FLAG_NO_AFFINE}, {{x, "x"}}, out,
               [=](tiny::Module& m) {
                 return tiny::group_norm(m, name, x->value, groups, norm_options(epsilon, flags));
               });
}

tiny_status tiny_module_instance_norm(tiny_module* module, const char* name, const tiny_tensor* x,
                                      double epsilon, tiny_flags flags, tiny_tensor** out) {
  return layer({__func__, module, name, flags, TINY_FLAG_NO_AFFINE}, {{x, "x"}}, out,
               [=](tiny::Module& m) {
                 return tiny::instance_norm(m, name, x->value, norm_options(epsilon, flags));
               });
}

tiny_status tiny_module_dropout(const tiny_module* module, const tiny_tensor* x, double p,
                                tiny_tensor** out) {
  return layer({__func__, module, "dropout"}, {{x, "x"}}, out,
               [=](tiny::Module& m) { return tiny::dropout(m, x->value, p); });
}

tiny_status tiny_module_recurrent(tiny_module* module, const char* name, tiny_recurrent_kind kind,
                                  const tiny_tensor* x, int64_t hidden, int64_t layers,
                                  double dropout, tiny_flags flags, const tiny_tensor* h,
                                  const tiny_tensor* c, tiny_tensor** outputs,
                                  size_t output_count) {
  if (!outputs) return tiny::fail(__func__, Status::InvalidArgument, "outputs is NULL");
  for (size_t i = 0; i < output_count; ++i) outputs[i] = nullptr;
  return tiny::with(__func__, module, "module", [=](tiny_module& m) {
    tiny::required(name, "name");
    check(m, {{x, "x"}, {h, "h", true}, {c, "c", true}});
    tiny::check_flags(flags, TINY_FLAG_NO_BIAS | TINY_FLAG_BIDIRECTIONAL | TINY_FLAG_BATCH_FIRST);
    const auto core = tiny::find(std::span<const tiny::Named<tiny::RecurrentKind>>(kRecurrentKinds),
                                 kind, "recurrent kind");
    const size_t most = core == tiny::RecurrentKind::Lstm ? 3 : 2;
    require(output_count >= 1 && output_count <= most, Status::InvalidArgument, output_count,
            " outputs; wanted 1 to ", most);
    const tiny::RecurrentLayerOptions options{hidden,
                                              layers,
                                              (flags & TINY_FLAG_BIDIRECTIONAL) != 0,
                                              (flags & TINY_FLAG_BATCH_FIRST) != 0,
                                              has_bias(flags),
                                              dropout};
    const tiny::RecurrentLayers made =
        tiny::recurrent(*m.core, name, core, x->value, options, value_or_none(h), value_or_none(c));
    std::vector<Tensor> values{made.y, made.h, made.c};
    values.resize(output_count);
    tiny::give_handles(*m.context, std::move(values), outputs);
  });
}

tiny_status tiny_module_attention(tiny_module* module, const char* name, const tiny_tensor* query,
                                  const tiny_tensor* key, const tiny_tensor* value, int64_t heads,
                                  double dropout, tiny_flags flags, const tiny_tensor* mask,
                                  tiny_tensor** out) {
  return layer({__func__, module, name, flags, TINY_FLAG_NO_BIAS | TINY_FLAG_CAUSAL},
               {{query, "query"}, {key, "key"}, {value, "value"}, {mask, "mask", true}}, out,
               [=](tiny::Module& m) {
                 return tiny::multi_head_attention(
                     m, name, query->value, key->value, value->value,
                     {heads, value_or_none(mask), (flags & TINY_FLAG_CAUSAL) != 0, has_bias(flags),
                      dropout});
               });
}

}  // extern "C"
