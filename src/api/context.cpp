// Versions, names, options and contexts.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "api/boundary.h"
#include "api/model_handle.h"
#include "base/json.h"
#include "engine/backend.h"
#include "engine/kernel_cache.h"
#include "engine/observe.h"
#include "engine/records.h"
#include "runtime/in_flight.h"

namespace {

// Told only if TINY_DEBUG asks: the library prints nothing by itself.
void warn(const std::string& line) {
  const char* debug = std::getenv("TINY_DEBUG");
  if (debug && std::strcmp(debug, "0") != 0 && *debug)
    std::fprintf(stderr, "tiny: %s\n", line.c_str());
}

// Asks only what any thread may.
std::string info_json(tiny::Context& context) {
  const tiny::Target& target = context.backend().target();
  tiny::JsonWriter json;
  json.begin_object().key("device").text(context.device().name());
  json.key("isa").text(target.isa == tiny::Isa::Generic ? "" : target.name);
  json.key("threads").integer(context.backend().threads());
  json.key("debug").integer(context.observer().level());
  json.key("memory_limit").integer(context.flags().memory_limit);
  json.key("memory_used").integer(context.device().memory().used());
  json.key("memory_kept").integer(context.device().kept_bytes());
  json.key("cache_dir").text(context.kernels().disk().folder());
  return json.end_object().result();
}

struct Described {
  const char* name = nullptr;
  size_t bits = 0;
  bool is_supported = false;
};

// Numbers that are kept for types which tensors have not yet.
struct Unsupported {
  tiny_dtype number;
  const char* name;
  size_t bits;  // of an element; 0: they have no common size
};
constexpr Unsupported kUnsupported[] = {{TINY_FLOAT8_E8M0, "float8_e8m0", 8},
                                        {TINY_FLOAT4_E2M1, "float4_e2m1", 4},
                                        {TINY_INT4, "int4", 4},
                                        {TINY_UINT4, "uint4", 4},
                                        {TINY_INT2, "int2", 2},
                                        {TINY_UINT2, "uint2", 2},
                                        {TINY_COMPLEX64, "complex64", 64},
                                        {TINY_COMPLEX128, "complex128", 128},
                                        {TINY_STRING, "string", 0}};

Described describe(tiny_dtype dtype) {
  for (const tiny::ScalarInfo& scalar : tiny::kScalars)
    if (scalar.number == dtype && scalar.kind != tiny::DTypeKind::None)
      return {scalar.text, scalar.bits, true};
  for (const auto& [number, name, bits] : kUnsupported)
    if (number == dtype) return {name, bits, false};
  return {};
}

}  // namespace

extern "C" {

const char* tiny_version(void) {
#define TINY_TEXT_OF(number) #number
#define TINY_TEXT(macro) TINY_TEXT_OF(macro)
  return TINY_TEXT(TINY_VERSION_MAJOR) "." TINY_TEXT(TINY_VERSION_MINOR) "." TINY_TEXT(
      TINY_VERSION_PATCH);
}

int32_t tiny_abi_version(void) {
  return TINY_ABI_VERSION;
}

const char* tiny_status_name(tiny_status status) {
  return tiny::status_name(static_cast<tiny::Status>(status));
}

const char* tiny_dtype_name(tiny_dtype dtype) {
  return describe(dtype).name;
}

size_t tiny_dtype_size(tiny_dtype dtype) {
  return describe(dtype).bits / 8;
}

size_t tiny_dtype_bits(tiny_dtype dtype) {
  return describe(dtype).bits;
}

int32_t tiny_dtype_supported(tiny_dtype dtype) {
  return describe(dtype).is_supported ? 1 : 0;
}

tiny_status tiny_options_create(tiny_options** out) {
  if (!out) return tiny::fail(__func__, tiny::Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::guarded(__func__,
                       [=] { *out = new tiny_options(tiny::Flags::from_environment(warn)); });
}

void tiny_options_release(tiny_options* options) {
  if (tiny::is_last_release(options)) delete options;
}

tiny_status tiny_options_set_int(tiny_options* options, const char* key, int64_t value) {
  return tiny::guarded(__func__, [=] {
    tiny::required(options, "options").flags.set_int(&tiny::required(key, "key"), value);
  });
}

tiny_status tiny_options_set_string(tiny_options* options, const char* key, const char* value) {
  return tiny::guarded(__func__, [=] {
    tiny::required(options, "options")
        .flags.set_text(&tiny::required(key, "key"), &tiny::required(value, "value"));
  });
}

tiny_status tiny_options_set_log(tiny_options* options, void (*log)(void* user, const char* text),
                                 void* user) {
  return tiny::guarded(__func__,
                       [=] { tiny::required(options, "options").flags.log = {log, user}; });
}

tiny_status tiny_options_set_allocator(
    tiny_options* options, void* (*allocate)(void* user, size_t bytes, size_t alignment),
    void (*release)(void* user, void* memory, size_t bytes, size_t alignment), void* user) {
  return tiny::guarded(__func__, [=] {
    tiny::required(options, "options");
    tiny::require((allocate == nullptr) == (release == nullptr), tiny::Status::InvalidArgument,
                  "allocate and release go together: both or neither is NULL");
    options->flags.allocator = {allocate, release, user};
  });
}

tiny_status tiny_options_set_thread_pool(tiny_options* options,
                                         void (*run)(void* user,
                                                     void (*task)(void* data, size_t index),
                                                     void* data, size_t count),
                                         void* user) {
  return tiny::guarded(
      __func__, [=] { tiny::required(options, "options").flags.threads_of_caller = {run, user}; });
}

tiny_status tiny_options_set_progress(tiny_options* options,
                                      int32_t (*progress)(void* user, const char* what,
                                                          int64_t done, int64_t total),
                                      void* user) {
  return tiny::guarded(
      __func__, [=] { tiny::required(options, "options").flags.progress = {progress, user}; });
}

tiny_status tiny_options_set_poll(tiny_options* options, int32_t (*poll)(void* user), void* user) {
  return tiny::guarded(__func__,
                       [=] { tiny::required(options, "options").flags.poll = {poll, user}; });
}

tiny_status tiny_options_add_deleter(tiny_options* options, void (*deleter)(void* user),
                                     void* user) {
  return tiny::guarded(__func__, [=] {
    tiny::Flags& flags = tiny::required(options, "options").flags;
    tiny::require(deleter != nullptr, tiny::Status::InvalidArgument, "deleter is NULL");
    if (!flags.owner) flags.owner = tiny::make_ref<tiny::CallbackOwner>();
    flags.owner->add(deleter, user);
  });
}

tiny_status tiny_context_create(const tiny_options* options, tiny_context** out) {
  if (!out) return tiny::fail(__func__, tiny::Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::guarded(__func__, [=] {
    *out = new tiny_context(options ? tiny::required(options, "options").flags
                                    : tiny::Flags::from_environment(warn));
  });
}

tiny_status tiny_context_counters(tiny_context* context, tiny_report** out) {
  if (!out) return tiny::fail(__func__, tiny::Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::guarded(__func__, [=] {
    *out = new tiny_report(tiny::counters_json(*tiny::required(context, "context").core));
  });
}

tiny_status tiny_context_totals(tiny_context* context, int64_t* launches, double* operations,
                                double* bytes, double* timed_seconds, int64_t* memory_used) {
  const bool has_all = launches && operations && bytes && timed_seconds && memory_used;
  if (!has_all) return tiny::fail(__func__, tiny::Status::InvalidArgument, "an out is NULL");
  *launches = *memory_used = 0;
  *operations = *bytes = *timed_seconds = 0;
  return tiny::guarded(__func__, [=] {
    tiny::Device& device = tiny::required(context, "context").core->device();
    const tiny::DeviceCounts& counts = device.counts();
    *launches = counts.launches.load(std::memory_order_relaxed);
    *operations = counts.operations.load(std::memory_order_relaxed);
    *bytes = counts.bytes.load(std::memory_order_relaxed);
    *timed_seconds = counts.seconds.load(std::memory_order_relaxed);
    *memory_used = device.memory().used();
  });
}

tiny_status tiny_context_record(tiny_context* context, tiny_report** out) {
  if (!out) return tiny::fail(__func__, tiny::Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::act(__func__, context,
                   [=] { *out = new tiny_report(context->core->observer().record()); });
}

tiny_status tiny_context_set_int(tiny_context* context, const char* key, int64_t value) {
  return tiny::act(__func__, context,
                   [=] { context->core->set(&tiny::required(key, "key"), value); });
}

tiny_status tiny_context_synchronize(tiny_context* context) {
  return tiny::guarded(__func__, [=] {
    tiny::Device& device = tiny::required(context, "context").core->device();
    if (device.is_late()) device.in_flight().wait();
  });
}

void tiny_context_retain(tiny_context* context) {
  tiny::retain_owned(context);
}

tiny_status tiny_context_info(tiny_context* context, tiny_report** out) {
  if (!out) return tiny::fail(__func__, tiny::Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::guarded(__func__, [=] {
    *out = new tiny_report(info_json(*tiny::required(context, "context").core));
  });
}

tiny_status tiny_context_set_cancel(tiny_context* context, tiny_cancel* cancel) {
  return tiny::act(__func__, context, [=] {
    const tiny::Ref<tiny::CancelToken> token = tiny::token_of(cancel);
    context->core->stop().set_token(token);
    context->lock.set_token(token);
  });
}

tiny_status tiny_cancel_create(tiny_cancel** out) {
  if (!out) return tiny::fail(__func__, tiny::Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::guarded(__func__, [=] { *out = new tiny_cancel; });
}

void tiny_cancel_retain(tiny_cancel* cancel) {
  tiny::retain_owned(cancel);
}

void tiny_cancel_release(tiny_cancel* cancel) {
  if (tiny::is_last_release(cancel)) delete cancel;
}

tiny_status tiny_cancel_set(tiny_cancel* cancel) {
  if (!cancel) return tiny::fail(__func__, tiny::Status::InvalidArgument, "cancel is NULL");
  cancel->token->set();  // and nothing else, which a signal handler might not do
  return TINY_OK;
}

tiny_status tiny_cancel_clear(tiny_cancel* cancel) {
  return tiny::guarded(__func__, [=] { tiny::required(cancel, "cancel").token->clear(); });
}

void tiny_context_release(tiny_context* context) {
  if (tiny::is_last_release(context)) context->release();
}

}  // extern "C"
