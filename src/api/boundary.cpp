#include "api/boundary.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace tiny {

namespace {

// Fixed, so that running out of memory can be told.
struct LastError {
  Status status;
  const char* call;  // a literal; null: there was no error
  char message[1024];
  char node[256];
  char file[512];
  char json[8192];
};
// All zeros, which takes no room in the library.
thread_local constinit LastError last{};
static_assert(Status{} == Status::Ok);

// As much of `text` as fits, cut between two characters of UTF-8.
void copy_text(char* to, size_t capacity, const char* text) {
  size_t n = std::min(std::strlen(text), capacity - 1);
  if (text[n] != '\0')
    while (n > 0 && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) --n;
  std::memcpy(to, text, n);
  to[n] = '\0';
}

// `text` inside a JSON string, from `at` on; the new end.
size_t put_json(char* to, size_t at, size_t limit, const char* text) {
  for (; *text; ++text) {
    const auto c = static_cast<unsigned char>(*text);
    char piece[8] = {static_cast<char>(c), '\0'};
    if (c == '"' || c == '\\')
      std::snprintf(piece, sizeof piece, "\\%c", c);
    else if (c < 0x20)
      std::snprintf(piece, sizeof piece, "\\u%04x", c);
    const size_t n = std::strlen(piece);
    // Whole characters only: what is left must hold the longest.
    if (at + 8 > limit && (c & 0xC0) != 0x80) break;
    std::copy_n(piece, n, to + at);
    at += n;
  }
  return at;
}

}  // namespace

tiny_status fail(const char* call, Status status, const char* message) noexcept {
  last.node[0] = last.file[0] = '\0';
  last.status = status;
  last.call = call;
  char prefixed[sizeof last.message];
  std::snprintf(prefixed, sizeof prefixed, "%s: ", call);
  const size_t n = std::strlen(prefixed);
  std::memcpy(last.message, prefixed, n);
  copy_text(last.message + n, sizeof last.message - n, message);
  return static_cast<tiny_status>(status);
}

tiny_status guarded(const char* call, FunctionRef<void()> body) noexcept {
  try {
    body();
    return TINY_OK;
  } catch (const Error& e) {
    const tiny_status status = fail(call, e.status(), e.what());
    copy_text(last.node, sizeof last.node, e.node().c_str());
    copy_text(last.file, sizeof last.file, e.file().c_str());
    return status;
  } catch (const std::bad_alloc&) {
    return fail(call, Status::OutOfMemory, "out of memory");
  } catch (const std::exception& e) {
    return fail(call, Status::Internal, e.what());
  } catch (...) {
    return fail(call, Status::Internal, "an unknown exception");
  }
}

std::vector<int64_t> numbers(const int64_t* values, size_t count, const char* name) {
  require(values != nullptr || count == 0, Status::InvalidArgument, name, " is NULL but has ",
          count, " values");
  require(count <= TINY_RANK_MAX, Status::Shape, name, " has ", count, " values; at most ",
          TINY_RANK_MAX);
  return {values, values + count};
}

void check_flags(tiny_flags flags, tiny_flags known) {
  if ((flags & ~known) == 0) return;
  std::vector<std::string> names;
#define FLAG(name)              \
  if (known & TINY_FLAG_##name) \
    names.push_back(cat("TINY_FLAG_" #name " (", int{TINY_FLAG_##name}, ")"));
#include "api/families.def"
  throw_error(Status::InvalidArgument, "flags is ", flags, "; its bits may be ", join(names, ", "));
}

int64_t signed_bytes(size_t bytes) {
  require(bytes <= static_cast<size_t>(INT64_MAX), Status::Shape, "bytes is ", bytes);
  return static_cast<int64_t>(bytes);
}

DType dtype_argument(tiny_dtype value) {
  if (const auto dtype = dtype_numbered(value); dtype && tiny_dtype_supported(value)) return *dtype;
  std::vector<std::string> names;
  for (tiny_dtype d = TINY_BOOL; tiny_dtype_supported(d); ++d)
    names.push_back(cat(tiny_dtype_name(d), " (", d, ")"));
  require(!tiny_dtype_name(value), Status::Unsupported, "tensors of ", tiny_dtype_name(value),
          " are not supported; known: ", join(names, ", "));
  throw_error(Status::InvalidArgument, "unknown dtype ", value, "; known: ", join(names, ", "));
}

void throw_of_two(const tiny_context& got, const tiny_context& wanted, const std::string& words) {
  throw_error(Status::InvalidArgument, words + of_two_devices(*got.core, *wanted.core));
}

std::vector<Tensor> values_of(tiny_tensor* const* tensors, size_t count) {
  std::vector<Tensor> values;
  for (size_t i = 0; i < count; ++i) values.push_back(tensors[i]->value);
  return values;
}

std::vector<Tensor*> values_in(tiny_tensor* const* tensors, size_t count) {
  std::vector<Tensor*> values;
  for (size_t i = 0; i < count; ++i) values.push_back(&tensors[i]->value);
  return values;
}

Ref<CancelToken> token_of(const tiny_cancel* cancel) {
  return cancel ? required(cancel, "cancel").token : nullptr;
}

tiny_context& Operands::context() const {
  if (kind_ == Kind::Context) return required(context_, "context");
  tiny_context* found = nullptr;
  const auto check = [&](const tiny_tensor* tensor, const char* name) {
    required(tensor, name);
    if (!found) found = tensor->context;
    require_one_context(*tensor->context, *found, name, " comes from another context");
  };
  for (const Operand& operand : named_)
    if (operand.tensor || !operand.may_be_null) check(operand.tensor, operand.name);
  if (kind_ == Kind::List) {
    require(list_ != nullptr && count_ > 0, Status::InvalidArgument, name_, " is NULL or empty");
    for (size_t i = 0; i < count_; ++i) check(list_[i], cat(name_, "[", i, "]").c_str());
  }
  return *found;
}

Building::Building(tiny_context& context, StopSignal::Since since)
    : Building(context, context.enter(since), std::adopt_lock) {
}

Building::Building(tiny_context& context, StopSignal::Since since, std::adopt_lock_t)
    : context_(context), inside_(&context) {
  context.core->stop().begin(context.core->flags().time_limit, since);
}

Beside::Beside(tiny_context& context, StopSignal::Since since)
    : context_(context),
      inside_(&context),
      since_(since ? since : StopSignal::Since(StopSignal::Clock::now())) {
  stop_.set_token(context.lock.token());
  stop_.set_poll(context.core->flags().poll);
  stop_.begin(context.core->flags().time_limit, since_);
}

FileAccess Beside::file_access() const {
  Context& core = *context_.core;
  return {core.flags().map_files == 0, Ref<MemoryUse>(&core.device().memory()), &stop_};
}

Ref<Context> Beside::own_context() const {
  Context& core = *context_.core;
  Flags flags = Flags::defaults();
  flags.device = "interp";
  flags.threads = 1;
  flags.cache = 0;
  flags.spec = core.flags().spec;
  flags.map_files = core.flags().map_files;
  flags.memory_kept = 0;
  if (const int64_t limit = core.flags().memory_limit; limit > 0)
    flags.memory_limit = std::max<int64_t>(1, limit - core.device().memory().used());
  flags.allocator = core.flags().allocator;
  flags.poll = core.flags().poll;
  flags.owner = core.flags().owner;
  Ref<Context> own = make_ref<Context>(std::move(flags));
  own->custom_ops().copy(core.custom_ops());
  own->stop().set_token(stop_.token());
  own->stop().begin(core.flags().time_limit, since_);
  return own;
}

tiny_tensor* make_handle(tiny_context& context, FunctionRef<Tensor()> body) {
  // Before the value, so that nothing fails once a deleter is attached.
  auto handle = std::make_unique<tiny_tensor>(context);
  handle->hold(body());
  context.retain();
  return handle.release();
}

void give_handles(tiny_context& context, std::vector<Tensor> values, tiny_tensor** outs) {
  std::vector<std::unique_ptr<tiny_tensor>> handles;
  for (Tensor& value : values) {
    handles.push_back(std::make_unique<tiny_tensor>(context));
    handles.back()->hold(std::move(value));
  }
  for (std::unique_ptr<tiny_tensor>& handle : handles) {
    context.retain();
    *outs++ = handle.release();
  }
}

tiny_status produce(const char* call, tiny_tensor** out, const Operands& operands,
                    FunctionRef<Tensor()> body) noexcept {
  if (!out) return fail(call, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(call, [&] {
    tiny_context& context = operands.context();
    const Building building(context);
    *out = make_handle(context, body);
  });
}

tiny_status produce_list(const char* call, tiny_tensor** outs, size_t count,
                         const Operands& operands,
                         FunctionRef<std::vector<Tensor>()> body) noexcept {
  if (!outs) return fail(call, Status::InvalidArgument, "out is NULL");
  for (size_t i = 0; i < count; ++i) outs[i] = nullptr;
  return guarded(call, [&] {
    tiny_context& context = operands.context();
    const Building building(context);
    std::vector<Tensor> values = body();
    invariant(values.size() == count, "a call makes as many tensors as it says");
    give_handles(context, std::move(values), outs);
  });
}

tiny_status act(const char* call, const Operands& operands, FunctionRef<void()> body) noexcept {
  return guarded(call, [&] {
    const Building building(operands.context());
    body();
  });
}

}  // namespace tiny

extern "C" {

const char* tiny_last_error(void) {
  return tiny::last.message;
}

const char* tiny_last_error_json(void) {
  using tiny::last;
  if (last.status == tiny::Status::Ok) return "{}";
  char* to = last.json;
  const size_t limit = sizeof last.json - 4;
  size_t n = static_cast<size_t>(std::snprintf(to, limit, "{\"status\":\"%s\",\"call\":\"%s\"",
                                               tiny::status_name(last.status), last.call));
  const auto put = [&](const char* key, const char* text) {
    n += static_cast<size_t>(std::snprintf(to + n, limit - n, ",\"%s\":\"", key));
    n = tiny::put_json(to, n, limit, text);
    to[n++] = '"';
  };
  if (*last.node) put("node", last.node);
  if (*last.file) put("file", last.file);
  // Last, since it may be cut: without its prefix, which says the call once more.
  put("message", last.message + std::strlen(last.call) + 2);
  std::memcpy(to + n, "}", 2);
  return to;
}

}  // extern "C"
