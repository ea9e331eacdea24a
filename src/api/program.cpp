// Programs and runs.
#include <algorithm>
#include <memory>

#include "api/boundary.h"
#include "api/model_handle.h"
#include "engine/compile.h"
#include "engine/kernel_cache.h"
#include "engine/records.h"
#include "ir/node_map.h"
#include "schedule/schedule.h"
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

// A tape of the program's, and the context that it is of.
struct TapeOf {
  tiny_context* context;
  const tiny::Program* tape;
};
// Without those parts that have no kernels of their own.
std::vector<TapeOf> tapes_of(const tiny_program* program) {
  std::vector<TapeOf> tapes;
  for (const tiny::ProgramPart& part : tiny::required(program, "program").parts())
    if (const tiny::Program* tape = part.value->compiled.program.get())
      tapes.push_back({part.context, tape});
  return tapes;
}

size_t count_kernels(const tiny_program* program, bool (*counts)(const tiny::TapeEntry& entry)) {
  size_t count = 0;
  for (const TapeOf& one : tapes_of(program))
    for (const tiny::TapeEntry& entry : one.tape->tape) count += counts(entry) ? 1 : 0;
  return count;
}

// What gives elements to a value that the outputs depend on, beside the inputs; null if nothing
// does.
tiny::Ref<tiny::Exchange> exchange_below(tiny_tensor* const* inputs, size_t input_count,
                                         tiny_tensor* const* outputs, size_t output_count) {
  std::vector<tiny_context*> contexts;
  for (size_t i = 0; i < output_count; ++i) {
    tiny_context* const context = tiny::required(outputs[i], "outputs").context;
    if (!std::ranges::count(contexts, context)) contexts.push_back(context);
  }
  for (tiny_context* context : contexts) {
    const tiny::Building building(*context);
    std::vector<tiny::UOp> values;
    tiny::NodeSet given;
    for (size_t i = 0; i < output_count; ++i)
      if (outputs[i]->context == context) values.push_back(outputs[i]->value.node());
    for (size_t i = 0; i < input_count; ++i)
      if (tiny::is_live(inputs[i]) && inputs[i]->context == context)
        for (const tiny::UOp& u :
             tiny::topological(std::vector{inputs[i]->value.node()}, tiny::has_memory))
          given.insert(u.node());
    for (const tiny::UOp& u : tiny::topological(values, tiny::has_memory)) {
      if (!tiny::is_input(u) || given.contains(u.node())) continue;
      if (auto* const source = static_cast<tiny::Exchange*>(tiny::source_of(u)))
        return tiny::Ref<tiny::Exchange>(source);
    }
  }
  return {};
}

tiny_status ask(const char* call, size_t* out, tiny::FunctionRef<size_t()> body) noexcept {
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
  tiny::throw_error(Status::InvalidArgument, "the program has no variable \"", variable.name,
                    "\" from ", variable.min, " to ", variable.max, "; it has ",
                    known.empty() ? std::string("none") : tiny::join(known, ", "));
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
  tiny::throw_error(Status::InvalidArgument, "unknown stage \"", name,
                    "\"; known: ", tiny::join(known, ", "));
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
  return tiny::produce(__func__, out, context, [=] {
    return tiny::make_placeholder(context->core, tiny::dtype_argument(dtype),
                                  context->marks.shape(tiny::numbers(dims, ndim, "dims"), "dims"));
  });
}

tiny_status tiny_program_compile(tiny_tensor* const* inputs, size_t input_count,
                                 tiny_tensor* const* outputs, size_t output_count,
                                 tiny_program** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [=] {
    require(outputs != nullptr && output_count > 0, Status::InvalidArgument,
            "outputs is NULL or empty");
    if (const auto exchange =
            exchange_below(inputs, inputs ? input_count : 0, outputs, output_count)) {
      *out = exchange->compile({inputs, input_count}, {outputs, output_count}).release();
      return;
    }
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
  return ask(__func__, out,
             [=] { return count_kernels(program, [](const tiny::TapeEntry&) { return true; }); });
}

tiny_status tiny_program_interpreted_count(const tiny_program* program, size_t* out) {
  return ask(__func__, out, [=] {
    return count_kernels(program,
                         [](const tiny::TapeEntry& entry) { return entry.info.interpreted; });
  });
}

tiny_status tiny_program_cached_count(const tiny_program* program, size_t* out) {
  return ask(__func__, out, [=] {
    return count_kernels(program, [](const tiny::TapeEntry& entry) { return entry.info.cached; });
  });
}

tiny_status tiny_program_memory(const tiny_program* program, size_t* arena, size_t* weights) {
  if (!arena || !weights)
    return tiny::fail(__func__, Status::InvalidArgument, "arena or weights is NULL");
  *arena = *weights = 0;
  return guarded(__func__, [=] {
    for (const tiny::ProgramPart& part : tiny::required(program, "program").parts()) {
      const tiny::Program* const tape = part.value->compiled.program.get();
      *arena += tape ? static_cast<size_t>(tape->arena_bytes) : 0;
      *weights += static_cast<size_t>(part.value->compiled.weight_bytes);
    }
  });
}

tiny_status tiny_program_kernels(const tiny_program* program, tiny_report** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [=] {
    std::string all;
    for (const TapeOf& one : tapes_of(program)) {
      if (one.tape->tape.empty()) continue;
      const std::string part = tiny::kernels_json(*one.tape);  // "[..]"
      all += (all.empty() ? "" : ",") + part.substr(1, part.rfind(']') - 1);
    }
    *out = new tiny_report("[" + all + "]");
  });
}

tiny_status tiny_program_kernel_source(const tiny_program* program, size_t index, const char* stage,
                                       tiny_report** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [=] {
    const size_t count = count_kernels(program, [](const tiny::TapeEntry&) { return true; });
    require(index < count, Status::InvalidArgument, "the program has ", count,
            " kernels; got index ", index);
    const tiny::SourceStage wanted = stage_named(&tiny::required(stage, "stage"));
    size_t first = 0;
    for (const auto& [context, tape] : tapes_of(program)) {
      const size_t at = index - first;
      first += tape->tape.size();
      if (index >= first) continue;
      const tiny::Building building(*context);
      *out =
          new tiny_report(context->core->kernels().source(tape->tape[at].executable.get(), wanted));
      return;
    }
  });
}

tiny_status tiny_program_times(const tiny_program* program, double* schedule, double* compile,
                               double* init) {
  if (!schedule || !compile || !init)
    return tiny::fail(__func__, Status::InvalidArgument, "schedule, compile or init is NULL");
  *schedule = *compile = *init = 0;
  return guarded(__func__, [=] {
    for (const tiny::ProgramPart& part : tiny::required(program, "program").parts()) {
      const TensorProgram& p = *part.value;
      *schedule += p.import_seconds + p.compiled.schedule_seconds;
      *compile += p.compiled.compile_seconds;
      *init += p.compiled.init_seconds;
    }
  });
}

tiny_status tiny_run_create(tiny_program* program, tiny_run** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [=] {
    const tiny_program& p = tiny::required(program, "program");
    auto run = std::make_unique<tiny_run>(
        *p.context, tiny::make_ref<tiny::TensorRun>(p.context->core, p.value));
    if (p.joint) run->joint = p.joint->begin();
    *out = run.release();
  });
}

void tiny_run_release(tiny_run* run) {
  tiny::release_owned(run);
}

tiny_status tiny_run_set_input(tiny_run* run, size_t index, const tiny_tensor* tensor) {
  return guarded(__func__, [=] {
    tiny_run& r = tiny::required(run, "run");
    const tiny_tensor& t = tiny::required(tensor, "tensor");
    if (r.joint) {
      const Using use(r);
      r.joint->set_input(index, t);
      return;
    }
    tiny::require_one_context(*t.context, *r.context, "tensor comes from another context");
    const tiny::Building building(*r.context);
    const Using use(r);
    r.value->set_input(index, t.value);
  });
}

tiny_status tiny_run_bind_input(tiny_run* run, size_t index, const void* data, size_t bytes) {
  return guarded(__func__, [=] {
    tiny_run& r = tiny::required(run, "run");
    const Using use(r);
    if (r.joint)
      r.joint->bind_input(index, data, tiny::signed_bytes(bytes));
    else
      r.value->bind_input(index, data, tiny::signed_bytes(bytes));
  });
}

tiny_status tiny_run_bind_output(tiny_run* run, size_t index, void* data, size_t bytes) {
  return guarded(__func__, [=] {
    output_at(run, index);
    const Using use(*run);
    if (run->joint)
      run->joint->bind_output(index, data, tiny::signed_bytes(bytes));
    else
      run->value->bind_output(index, data, tiny::signed_bytes(bytes));
  });
}

tiny_status tiny_run_set_variable(tiny_run* run, const tiny_variable* variable, int64_t value) {
  return guarded(__func__, [=] {
    tiny_run& r = tiny::required(run, "run");
    const size_t index = index_of(r, tiny::required(variable, "variable"));
    const Using use(r);
    r.value->set_variable(index, value);
  });
}

tiny_status tiny_run_dim(const tiny_run* run, int64_t dim, int64_t* out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = 0;
  return guarded(__func__, [=] {
    const tiny_run& r = tiny::required(run, "run");
    const tiny::Building building(*r.context);
    *out = r.value->value_of(r.context->marks.dim(dim, "dim"));
  });
}

tiny_status tiny_run_set_output(tiny_run* run, size_t index, tiny_tensor* tensor) {
  return guarded(__func__, [=] {
    tiny_run& r = tiny::required(run, "run");
    output_at(run, index);
    if (r.joint) {
      if (tensor) tiny::required(tensor, "tensor");
      const Using use(r);
      r.joint->set_output(index, tensor);
      return;
    }
    if (tensor)
      tiny::require_one_context(*tiny::required(tensor, "tensor").context, *r.context,
                                "tensor comes from another context");
    const tiny::Building building(*r.context);
    const Using use(r);
    r.value->set_output(index, tensor ? &tensor->value : nullptr);
  });
}

tiny_status tiny_run_execute(tiny_run* run) {
  return guarded(__func__, [=] {
    tiny_run& r = tiny::required(run, "run");
    const Using use(r);
    r.forget_taken();
    if (r.joint) {
      r.joint->execute();
      return;
    }
    const tiny::Inside inside(r.context);
    r.value->execute();
  });
}

tiny_status tiny_run_set_cancel(tiny_run* run, tiny_cancel* cancel) {
  return guarded(__func__, [=] {
    tiny_run& r = tiny::required(run, "run");
    const Using use(r);
    if (r.joint)
      r.joint->set_cancel(tiny::token_of(cancel));
    else
      r.value->set_cancel(tiny::token_of(cancel));
  });
}

tiny_status tiny_run_read_output(tiny_run* run, size_t index, void* data, size_t bytes) {
  return guarded(__func__, [=] {
    const TensorProgram::Port& port = output_at(run, index);
    run->value->require_variables();
    require(bytes == static_cast<size_t>(port.bytes), Status::Shape, "output \"", port.name,
            "\" of shape ", tiny::list_text(port.shape), " has ", port.bytes, " bytes; got ",
            bytes);
    require(data != nullptr || bytes == 0, Status::InvalidArgument, "data is NULL");
    const Using use(*run);
    if (run->joint)
      run->joint->read_output(index, data);
    else
      run->value->read_output(index, data);
  });
}

tiny_status tiny_run_output_tensor(tiny_run* run, size_t index, tiny_tensor** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [=] {
    output_at(run, index);
    tiny_context& context = run->joint ? run->joint->context_of(index) : *run->context;
    const tiny::Building building(context);
    const Using use(*run);
    tiny_tensor*& taken = run->taken[index];
    if (run->joint)
      run->joint->require_output(index);
    else
      run->value->require_output(index);
    if (!taken)
      taken = tiny::make_handle(context, [&] {
        return run->joint ? run->joint->take_output(index) : run->value->take_output(index);
      });
    taken->add_owner();
    *out = taken;
  });
}

tiny_status tiny_run_output_dtype(const tiny_run* run, size_t index, tiny_dtype* out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = 0;
  return guarded(__func__, [=] { *out = output_at(run, index).dtype.info().number; });
}

tiny_status tiny_run_output_shape(const tiny_run* run, size_t index, int64_t* dims, size_t capacity,
                                  size_t* rank) {
  return ask(__func__, rank, [=] {
    require(dims != nullptr || capacity == 0, Status::InvalidArgument,
            "dims is NULL but has room for ", capacity);
    const tiny::Ints& shape = output_at(run, index).shape;
    run->value->require_variables();
    for (size_t i = 0; i < shape.size() && i < capacity; ++i) dims[i] = shape[i];
    return shape.size();
  });
}

tiny_status tiny_run_set_timed(tiny_run* run, int32_t on) {
  return guarded(__func__, [=] {
    tiny_run& r = tiny::required(run, "run");
    const Using use(r);
    if (r.joint)
      r.joint->set_timed(on != 0);
    else
      r.value->set_timed(on != 0);
  });
}

tiny_status tiny_run_kernel_seconds(const tiny_run* run, double* seconds, size_t capacity,
                                    size_t* count) {
  return ask(__func__, count, [=] {
    require(seconds != nullptr || capacity == 0, Status::InvalidArgument,
            "seconds is NULL but has room for ", capacity);
    const tiny_run& r = tiny::required(run, "run");
    const std::span<const double> own = r.value->seconds();
    const std::vector<double> all =
        r.joint ? r.joint->seconds() : std::vector<double>(own.begin(), own.end());
    for (size_t i = 0; i < all.size() && i < capacity; ++i) seconds[i] = all[i];
    return all.size();
  });
}

tiny_status tiny_run_trace(const tiny_run* run, tiny_report** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [=] {
    const tiny_run& r = tiny::required(run, "run");
    require(!r.joint, Status::Unsupported,
            "a program of several devices has no one trace: tiny_run_kernel_seconds"
            " has the times of its kernels");
    *out = new tiny_report{r.value->trace()};
  });
}

}  // extern "C"
