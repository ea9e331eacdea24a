// Programs and runs.
#include "api/boundary.h"
#include "api/model_handle.h"
#include "engine/kernel_cache.h"
#include "engine/records.h"
#include "tensor/run.h"
#include "tensor/value.h"

using tiny::guarded;
using tiny::require;
using tiny::Status;
using tiny::TensorProgram;

namespace {

// Takes the run for one call; Error{Busy} if another thread has it.
class Using {
 public:
  explicit Using(tiny_run& run) : run_(run) {
    require(!run.busy.exchange(true, std::memory_order_acquire), Status::Busy,
            "another thread is using the run");
  }
  ~Using() { run_.busy.store(false, std::memory_order_release); }
  Using(const Using&) = delete;
  Using& operator=(const Using&) = delete;

 private:
  tiny_run& run_;
};

// The tape; null for a program without kernels of its own.
const tiny::Program* tape_of(const tiny_program* program) {
  return tiny::required(program, "program").value->compiled.program.get();
}

template <class Body>
tiny_status ask(const char* call, size_t* out, Body body) noexcept {
  if (!out) return tiny::fail(call, Status::InvalidArgument, "out is NULL");
  *out = 0;
  return guarded(call, [&] { *out = body(); });
}

const TensorProgram::Port& output_at(const tiny_run* run, size_t index) {
  const std::vector<TensorProgram::Port>& outputs =
      tiny::required(run, "run").value->output_ports();
  require(index < outputs.size(), Status::InvalidArgument, "the program has ", outputs.size(),
          " outputs; got index ", index);
  return outputs[index];
}

// The variable's place in the run's program.
size_t index_of(const tiny_run& run, const tiny_variable& variable) {
  tiny::require_one_context(*variable.context, *run.context, "variable comes from another context");
  std::vector<std::string> known;
  const std::vector<tiny::ProgramVariable>& variables = run.value->program().variables;
  for (size_t i = 0; i < variables.size(); ++i) {
    const tiny::ProgramVariable& v = variables[i];
    if (v.name == variable.name && v.min == variable.min && v.max == variable.max) return i;
    known.push_back(tiny::cat('"', v.name, "\" from ", v.min, " to ", v.max));
  }
  throw tiny::Error(Status::InvalidArgument,
                    tiny::cat("the program has no variable \"", variable.name, "\" from ",
                              variable.min, " to ", variable.max, "; it has ",
                              known.empty() ? std::string("none") : tiny::join(known, ", ")));
}

struct StageName {
  const char* name;
  tiny::SourceStage stage;
};
constexpr StageName kStages[] = {{"uops", tiny::SourceStage::Uops},
                                 {"linear", tiny::SourceStage::Linear},
                                 {"c", tiny::SourceStage::C},
                                 {"asm", tiny::SourceStage::Asm}};

tiny::SourceStage stage_named(std::string_view name) {
  std::vector<std::string> known;
  for (const StageName& s : kStages) {
    if (name == s.name) return s.stage;
    known.emplace_back(s.name);
  }
  throw tiny::Error(Status::InvalidArgument,
                    tiny::cat("unknown stage \"", name, "\"; known: ", tiny::join(known, ", ")));
}

}  // namespace

extern "C" {

const char* tiny_report_text(const tiny_report* report) {
  return tiny::is_live(report) ? report->text.c_str() : "";
}

size_t tiny_report_bytes(const tiny_report* report) {
  return tiny::is_live(report) ? report->text.size() : 0;
}

void tiny_report_release(tiny_report* report) {
  if (tiny::is_last_release(report)) delete report;
}

tiny_status tiny_input(tiny_context* context, tiny_dtype dtype, const int64_t* dims, size_t ndim,
                       tiny_tensor** out) {
  return tiny::produce(__func__, out, context, [&] {
    return tiny::make_placeholder(context->core, tiny::dtype_argument(dtype),
                                  context->marks.shape(tiny::numbers(dims, ndim, "dims"), "dims"));
  });
}

tiny_status tiny_program_compile(tiny_tensor* const* inputs, size_t input_count,
                                 tiny_tensor* const* outputs, size_t output_count,
                                 tiny_program** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [&] {
    tiny_context& context = tiny::Operands(outputs, output_count, "outputs").context();
    if (input_count > 0)
      require(&tiny::Operands(inputs, input_count, "inputs").context() == &context,
              Status::InvalidArgument, "inputs and outputs come from different contexts");
    const tiny::Building building(context);
    *out = new tiny_program(
        context, tiny::compile_tensors(context.core, tiny::values_of(inputs, input_count),
                                       tiny::values_of(outputs, output_count)));
  });
}

void tiny_program_retain(tiny_program* program) {
  tiny::retain_owned(program);
}

void tiny_program_release(tiny_program* program) {
  tiny::release_owned(program);
}

tiny_status tiny_program_kernel_count(const tiny_program* program, size_t* out) {
  return ask(__func__, out, [&] {
    const tiny::Program* tape = tape_of(program);
    return tape ? tape->tape.size() : 0;
  });
}

tiny_status tiny_program_interpreted_count(const tiny_program* program, size_t* out) {
  return ask(__func__, out, [&] {
    size_t count = 0;
    if (const tiny::Program* tape = tape_of(program))
      for (const tiny::TapeEntry& entry : tape->tape) count += entry.info.interpreted ? 1 : 0;
    return count;
  });
}

tiny_status tiny_program_cached_count(const tiny_program* program, size_t* out) {
  return ask(__func__, out, [&] {
    size_t count = 0;
    if (const tiny::Program* tape = tape_of(program))
      for (const tiny::TapeEntry& entry : tape->tape) count += entry.info.cached ? 1 : 0;
    return count;
  });
}

tiny_status tiny_program_memory(const tiny_program* program, size_t* arena, size_t* weights) {
  if (!arena || !weights)
    return tiny::fail(__func__, Status::InvalidArgument, "arena or weights is NULL");
  *arena = *weights = 0;
  return guarded(__func__, [&] {
    const tiny::Program* tape = tape_of(program);
    *arena = tape ? static_cast<size_t>(tape->arena_bytes) : 0;
    *weights = static_cast<size_t>(program->value->compiled.weight_bytes);
  });
}

tiny_status tiny_program_kernels(const tiny_program* program, tiny_report** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [&] {
    const tiny::Program* tape = tape_of(program);
    *out = new tiny_report(tape ? tiny::kernels_json(*tape) : "[]");
  });
}

tiny_status tiny_program_kernel_source(const tiny_program* program, size_t index, const char* stage,
                                       tiny_report** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [&] {
    const tiny::Program* tape = tape_of(program);
    const size_t count = tape ? tape->tape.size() : 0;
    require(index < count, Status::InvalidArgument, "the program has ", count,
            " kernels; got index ", index);
    const tiny::SourceStage wanted = stage_named(&tiny::required(stage, "stage"));
    const tiny::Building building(*program->context);
    *out = new tiny_report(
        program->context->core->kernels().source(tape->tape[index].executable.get(), wanted));
  });
}

tiny_status tiny_program_times(const tiny_program* program, double* schedule, double* compile,
                               double* init) {
  if (!schedule || !compile || !init)
    return tiny::fail(__func__, Status::InvalidArgument, "schedule, compile or init is NULL");
  *schedule = *compile = *init = 0;
  return guarded(__func__, [&] {
    const TensorProgram& p = *tiny::required(program, "program").value;
    *schedule = p.import_seconds + p.compiled.schedule_seconds;
    *compile = p.compiled.compile_seconds;
    *init = p.compiled.init_seconds;
  });
}

tiny_status tiny_run_create(tiny_program* program, tiny_run** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [&] {
    const tiny_program& p = tiny::required(program, "program");
    *out = new tiny_run(*p.context, tiny::make_ref<tiny::TensorRun>(p.context->core, p.value));
  });
}

void tiny_run_release(tiny_run* run) {
  tiny::release_owned(run);
}

tiny_status tiny_run_set_input(tiny_run* run, size_t index, const tiny_tensor* tensor) {
  return guarded(__func__, [&] {
    tiny_run& r = tiny::required(run, "run");
    const tiny_tensor& t = tiny::required(tensor, "tensor");
    tiny::require_one_context(*t.context, *r.context, "tensor comes from another context");
    const tiny::Building building(*r.context);
    const Using use(r);
    r.value->set_input(index, t.value);
  });
}

tiny_status tiny_run_bind_input(tiny_run* run, size_t index, const void* data, size_t bytes) {
  return guarded(__func__, [&] {
    tiny_run& r = tiny::required(run, "run");
    const Using use(r);
    r.value->bind_input(index, data, tiny::signed_bytes(bytes));
  });
}

tiny_status tiny_run_bind_output(tiny_run* run, size_t index, void* data, size_t bytes) {
  return guarded(__func__, [&] {
    output_at(run, index);
    const Using use(*run);
    run->value->bind_output(index, data, tiny::signed_bytes(bytes));
  });
}

tiny_status tiny_run_set_variable(tiny_run* run, const tiny_variable* variable, int64_t value) {
  return guarded(__func__, [&] {
    tiny_run& r = tiny::required(run, "run");
    const size_t index = index_of(r, tiny::required(variable, "variable"));
    const Using use(r);
    r.value->set_variable(index, value);
  });
}

tiny_status tiny_run_dim(const tiny_run* run, int64_t dim, int64_t* out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = 0;
  return guarded(__func__, [&] {
    const tiny_run& r = tiny::required(run, "run");
    const tiny::Building building(*r.context);
    *out = r.value->value_of(r.context->marks.dim(dim, "dim"));
  });
}

tiny_status tiny_run_set_output(tiny_run* run, size_t index, tiny_tensor* tensor) {
  return guarded(__func__, [&] {
    tiny_run& r = tiny::required(run, "run");
    output_at(run, index);
    if (tensor)
      tiny::require_one_context(*tiny::required(tensor, "tensor").context, *r.context,
                                "tensor comes from another context");
    const tiny::Building building(*r.context);
    const Using use(r);
    r.value->set_output(index, tensor ? &tensor->value : nullptr);
  });
}

tiny_status tiny_run_execute(tiny_run* run) {
  return guarded(__func__, [&] {
    tiny_run& r = tiny::required(run, "run");
    const Using use(r);
    r.forget_taken();
    const tiny::Inside inside(r.context);
    r.value->execute();
  });
}

tiny_status tiny_run_set_cancel(tiny_run* run, tiny_cancel* cancel) {
  return guarded(__func__, [&] {
    tiny_run& r = tiny::required(run, "run");
    const Using use(r);
    r.value->set_cancel(tiny::token_of(cancel));
  });
}

tiny_status tiny_run_read_output(tiny_run* run, size_t index, void* data, size_t bytes) {
  return guarded(__func__, [&] {
    const TensorProgram::Port& port = output_at(run, index);
    run->value->require_variables();
    require(bytes == static_cast<size_t>(port.bytes), Status::Shape, "output \"", port.name,
            "\" of shape ", tiny::list_text(port.shape), " has ", port.bytes, " bytes; got ",
            bytes);
    require(data != nullptr || bytes == 0, Status::InvalidArgument, "data is NULL");
    const Using use(*run);
    run->value->read_output(index, data);
  });
}

tiny_status tiny_run_output_tensor(tiny_run* run, size_t index, tiny_tensor** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [&] {
    output_at(run, index);
    const tiny::Building building(*run->context);
    const Using use(*run);
    tiny_tensor*& taken = run->taken[index];
    run->value->require_output(index);
    if (!taken)
      taken = tiny::make_handle(*run->context, [&] { return run->value->take_output(index); });
    taken->add_owner();
    *out = taken;
  });
}

tiny_status tiny_run_output_dtype(const tiny_run* run, size_t index, tiny_dtype* out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = 0;
  return guarded(__func__, [&] { *out = output_at(run, index).dtype.info().number; });
}

tiny_status tiny_run_output_shape(const tiny_run* run, size_t index, int64_t* dims, size_t capacity,
                                  size_t* rank) {
  return ask(__func__, rank, [&] {
    require(dims != nullptr || capacity == 0, Status::InvalidArgument,
            "dims is NULL but has room for ", capacity);
    const tiny::Ints& shape = output_at(run, index).shape;
    run->value->require_variables();
    for (size_t i = 0; i < shape.size() && i < capacity; ++i) dims[i] = shape[i];
    return shape.size();
  });
}

tiny_status tiny_run_set_timed(tiny_run* run, int32_t on) {
  return guarded(__func__, [&] {
    tiny_run& r = tiny::required(run, "run");
    const Using use(r);
    r.value->set_timed(on != 0);
  });
}

tiny_status tiny_run_kernel_seconds(const tiny_run* run, double* seconds, size_t capacity,
                                    size_t* count) {
  return ask(__func__, count, [&] {
    require(seconds != nullptr || capacity == 0, Status::InvalidArgument,
            "seconds is NULL but has room for ", capacity);
    const std::span<const double> all = tiny::required(run, "run").value->seconds();
    for (size_t i = 0; i < all.size() && i < capacity; ++i) seconds[i] = all[i];
    return all.size();
  });
}

tiny_status tiny_run_trace(const tiny_run* run, tiny_report** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__,
                 [&] { *out = new tiny_report{tiny::required(run, "run").value->trace()}; });
}

}  // extern "C"
