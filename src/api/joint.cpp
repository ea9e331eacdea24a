#include "api/joint.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "api/boundary.h"
#include "api/model_handle.h"
#include "api/together.h"
#include "engine/backend.h"
#include "engine/compile.h"
#include "engine/program.h"
#include "engine/realize.h"
#include "engine/versions.h"
#include "ir/node_map.h"
#include "schedule/schedule.h"
#include "tensor/alias.h"
#include "tensor/movement.h"

namespace tiny {

std::unique_ptr<Entered> enter_all(std::vector<tiny_context*> contexts) {
  std::ranges::sort(contexts);
  contexts.erase(std::ranges::unique(contexts).begin(), contexts.end());
  std::unique_ptr<Entered> entered;
  for (tiny_context* one : contexts) entered = std::make_unique<Entered>(std::move(entered), *one);
  return entered;
}

namespace {

// A tensor as it is now, for as long as it is needed: any thread may let go of it.
class Kept {
 public:
  explicit Kept(tiny_tensor* made) : tensor_(made) {}
  Kept(Kept&& other) noexcept : tensor_(std::exchange(other.tensor_, nullptr)) {}
  Kept& operator=(Kept&&) = delete;
  ~Kept() { release_handle(tensor_); }
  tiny_tensor* operator->() const { return tensor_; }

 private:
  tiny_tensor* tensor_;
};

// What is written in place has the elements of later versions too: then they are copied.
Kept kept(const tiny_tensor& tensor) {
  return Kept(make_handle(*tensor.context, [&] {
    UOp base = tensor.value.node();
    while (!has_memory(base) && has(base.op(), kMovement)) base = UOp(base.src(0));
    if (base.op() == Op::After) return clone(tensor.value);
    return tensor.value.with(tensor.value.node());
  }));
}

class ExchangeOf : public Exchange {
 public:
  std::unique_ptr<tiny_program> compile(std::span<tiny_tensor* const> inputs,
                                        std::span<tiny_tensor* const> outputs) const override;

  std::vector<Kept> operands;
  std::vector<ResultOf> results;
  std::vector<const Node*> nodes;  // of the results, which count this object
  Together together;
};

const ExchangeOf* exchange_of(const UOp& u) {
  return is_input(u) ? static_cast<const ExchangeOf*>(source_of(u)) : nullptr;
}

// Of a placeholder.
UOp node_of(const Tensor& tensor) {
  const UOp node = tensor.node();
  return node.op() == Op::Reshape ? UOp(node.src(0)) : node;
}

// Where a value is: computed by a part, the number there.
struct Place {
  size_t part;
  size_t output;
};

class JointProgramOf : public JointProgram {
 public:
  // A value of the program: its inputs come first, then what exchanges give.
  struct Part {
    std::vector<size_t> inputs;  // by input of its program: the value
    int64_t level;               // as many exchanges, one after the other, are before it
  };
  struct Step {
    std::vector<Place> operands;
    std::vector<ResultOf> results;
    std::vector<size_t> values;  // by result
    Together together;
    int64_t level;  // of the parts that it follows
  };

  ~JointProgramOf() override {
    for (tiny_context* one : contexts) one->release();
  }
  const std::vector<ProgramPart>& parts() const override { return programs; }
  Ref<JointRun> begin() const override;

  std::vector<tiny_context*> contexts;  // each counted once
  std::vector<ProgramPart> programs;
  std::vector<Part> order;  // of each of the programs
  std::vector<Step> steps;
  std::vector<tiny_context*> inputs;  // where each is wanted
  std::vector<Place> outputs;
  int64_t levels = 0;
};

class JointRunOf : public JointRun {
 public:
  explicit JointRunOf(Ref<const JointProgramOf> program)
      : program_(std::move(program)), is_bound_(program_->inputs.size()) {
    for (const ProgramPart& part : program_->programs)
      runs_.push_back(make_ref<TensorRun>(part.context->core, part.value));
  }

  void set_input(size_t index, const tiny_tensor& tensor) override {
    check_input(index);
    require_one_context(*tensor.context, *program_->inputs[index],
                        "tensor comes from another context than the input");
    const Building building(*tensor.context);
    for_each_use(index, [&](TensorRun& run, size_t at) { run.set_input(at, tensor.value); });
    is_bound_[index] = true;
  }
  void bind_input(size_t index, const void* data, int64_t bytes) override {
    check_input(index);
    for_each_use(index, [&](TensorRun& run, size_t at) { run.bind_input(at, data, bytes); });
    is_bound_[index] = true;
  }
  void set_output(size_t index, tiny_tensor* tensor) override {
    tiny_context& context = context_of(index);
    if (tensor)
      require_one_context(*tensor->context, context,
                          "tensor comes from another context than the output");
    const Building building(context);
    const auto [part, at] = program_->outputs[index];
    runs_[part]->set_output(at, tensor ? &tensor->value : nullptr);
  }
  void bind_output(size_t index, void* data, int64_t bytes) override {
    const auto [part, at] = program_->outputs[index];
    runs_[part]->bind_output(at, data, bytes);
  }
  void execute() override {
    std::vector<std::string> missing;
    for (size_t i = 0; i < is_bound_.size(); ++i)
      if (!is_bound_[i]) missing.push_back(cat("\"inputs[", i, "]\""));
    require(missing.empty(), Status::InvalidArgument,
            "inputs that were not set: ", join(missing, ", "));
    for (int64_t level = 0; level < program_->levels; ++level) {
      execute_parts(level);
      for (const JointProgramOf::Step& step : program_->steps)
        if (step.level == level) exchange(step);
    }
  }
  void read_output(size_t index, void* data) override {
    const auto [part, at] = program_->outputs[index];
    runs_[part]->read_output(at, data);
  }
  tiny_context& context_of(size_t index) override {
    return *program_->programs[program_->outputs[index].part].context;
  }
  void require_output(size_t index) override {
    const auto [part, at] = program_->outputs[index];
    runs_[part]->require_output(at);
  }
  Tensor take_output(size_t index) override {
    const auto [part, at] = program_->outputs[index];
    return runs_[part]->take_output(at);
  }
  void set_cancel(const Ref<CancelToken>& token) override {
    for (const Ref<TensorRun>& run : runs_) run->set_cancel(token);
  }
  void set_timed(bool timed) override {
    for (const Ref<TensorRun>& run : runs_) run->set_timed(timed);
  }
  std::vector<double> seconds() override {
    std::vector<double> all;
    for (const Ref<TensorRun>& run : runs_)
      all.insert(all.end(), run->seconds().begin(), run->seconds().end());
    return all;
  }

 private:
  void check_input(size_t index) const {
    require(index < is_bound_.size(), Status::InvalidArgument, "the program has ", is_bound_.size(),
            " inputs; got index ", index);
  }
  template <class Use>
  void for_each_use(size_t value, Use use) {
    for (size_t part = 0; part < runs_.size(); ++part) {
      const std::vector<size_t>& inputs = program_->order[part].inputs;
      for (size_t at = 0; at < inputs.size(); ++at)
        if (inputs[at] == value) use(*runs_[part], at);
    }
  }

  // Parts of a level need nothing of each other.  A run on the host returns when it is done, so
  // that partitions of it have a thread each; others compute behind their queues.
  void execute_parts(int64_t level) {
    std::vector<size_t> parts;
    for (size_t part = 0; part < runs_.size(); ++part)
      if (program_->order[part].level == level) parts.push_back(part);
    std::vector<std::exception_ptr> failed(parts.size());
    const auto execute = [&](size_t i) {
      try {
        const Inside inside(program_->programs[parts[i]].context);
        runs_[parts[i]]->execute();
      } catch (...) {
        failed[i] = std::current_exception();
      }
    };
    std::vector<std::thread> threads;
    std::vector<size_t> own;
    for (size_t i = 0; i < parts.size(); ++i) {
      Device& device = program_->programs[parts[i]].context->core->device();
      if (i == 0 || !device.sees_host() || !start(threads, [&execute, i] { execute(i); }))
        own.push_back(i);
    }
    for (const size_t i : own) execute(i);
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& one : failed)
      if (one) std::rethrow_exception(one);
  }
  // False where the system has no thread to give.
  template <class Body>
  static bool start(std::vector<std::thread>& threads, Body body) {
    try {
      threads.emplace_back(body);
      return true;
    } catch (const std::system_error&) {
      return false;
    }
  }

  void exchange(const JointProgramOf::Step& step) {
    std::vector<tiny_context*> contexts;
    for (const Place& place : step.operands)
      contexts.push_back(program_->programs[place.part].context);
    for (const ResultOf& result : step.results) contexts.push_back(result.context);
    const std::unique_ptr<Entered> entered = enter_all(std::move(contexts));
    std::vector<Tensor> operands;
    std::vector<Tensor*> pointers;
    for (const auto& [part, at] : step.operands) operands.push_back(runs_[part]->take_output(at));
    for (Tensor& one : operands) pointers.push_back(&one);
    const std::vector<Tensor> results = step.together(pointers);
    for (size_t i = 0; i < results.size(); ++i)
      for_each_use(step.values[i],
                   [&](TensorRun& run, size_t at) { run.set_input(at, results[i]); });
  }

  const Ref<const JointProgramOf> program_;
  std::vector<Ref<TensorRun>> runs_;
  std::vector<uint8_t> is_bound_;  // by input
};

Ref<JointRun> JointProgramOf::begin() const {
  return make_ref<JointRunOf>(Ref<const JointProgramOf>(this));
}

// Cuts what outputs depend on at its exchanges.
class Cutting {
 public:
  Cutting(std::span<tiny_tensor* const> inputs, std::span<tiny_tensor* const> outputs)
      : inputs_(inputs), outputs_(outputs) {
    for (size_t i = 0; i < inputs.size(); ++i)
      add_context(required(inputs[i], cat("inputs[", i, "]").c_str()).context);
    for (size_t i = 0; i < outputs.size(); ++i)
      add_context(required(outputs[i], cat("outputs[", i, "]").c_str()).context);
  }

  std::unique_ptr<tiny_program> program() {
    // Which contexts take part is seen in their graphs.
    std::unique_ptr<Entered> entered;
    for (size_t known = 0; std::exchange(known, contexts_.size()) != contexts_.size();) {
      entered.reset();
      entered = enter_all(contexts_);
      find_exchanges();
    }
    find_levels();
    for (size_t i = 0; i < outputs_.size(); ++i) output_levels_.push_back(level_of_output(i));
    program_ = make_ref<JointProgramOf>();
    program_->contexts = contexts_;
    for (tiny_context* one : contexts_) one->retain();
    program_->outputs.resize(outputs_.size());
    program_->levels = levels_ + 1;
    const Ref<TensorProgram> ports = make_ref<TensorProgram>();
    add_inputs(*ports);
    ports->outputs.resize(outputs_.size());
    for (int64_t level = 0; level <= levels_; ++level) compile_level(level, *ports);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      ports->outputs[i].name = cat("outputs[", i, "]");
      ports->outputs[i].number = -1;
    }
    auto out = std::make_unique<tiny_program>(*outputs_[0]->context, ports);
    out->joint = program_;
    return out;
  }

 private:
  struct Entry {
    tiny_context* context;
    Tensor tensor;
    size_t value;
    int64_t level;  // of the first parts that have it
  };

  void add_context(tiny_context* context) {
    if (!std::ranges::count(contexts_, context)) contexts_.push_back(context);
  }

  // The values that a context has of outputs and exchanges, and what is written beside them.
  std::vector<UOp> roots_in(tiny_context* context) const {
    std::vector<UOp> roots = outputs_in(context);
    const std::vector<UOp> beside = writes_in(context, roots);
    roots.insert(roots.end(), beside.begin(), beside.end());
    for (const ExchangeOf* one : exchanges_)
      for (const Kept& operand : one->operands)
        if (operand->context == context) roots.push_back(operand->value.node());
    return roots;
  }
  std::vector<UOp> outputs_in(tiny_context* context) const {
    std::vector<UOp> nodes;
    for (const tiny_tensor* one : outputs_)
      if (one->context == context) nodes.push_back(one->value.node());
    return nodes;
  }
  // Writes that a program of these outputs does along, whatever exchanges they depend on.
  std::vector<UOp> writes_in(tiny_context* context, std::span<const UOp> outputs) const {
    if (pending_below(outputs).empty()) return {};
    std::vector<UOp> versions, known;
    for (const Cell* cell = context->core->cells(); cell; cell = cell->next())
      versions.push_back(cell->node());
    for (const UOp& u : topological(versions, has_memory))
      if (exchange_of(u)) known.push_back(u);
    for (const tiny_tensor* one : inputs_)
      if (one->context == context) known.push_back(node_of(one->value));
    return writes_beside(*context->core, outputs, known);
  }

  bool is_given(const UOp& node) const {
    return std::ranges::any_of(inputs_,
                               [&](const tiny_tensor* one) { return node_of(one->value) == node; });
  }

  // Those below the outputs, and those below these.
  void find_exchanges() {
    exchanges_.clear();
    for (size_t found = 1; std::exchange(found, exchanges_.size()) != exchanges_.size();) {
      const std::vector<tiny_context*> entered = contexts_;
      for (tiny_context* context : entered)
        for (const UOp& u : topological(roots_in(context), has_memory)) {
          const ExchangeOf* const exchange = exchange_of(u);
          if (!exchange || std::ranges::count(exchanges_, exchange) || is_given(u)) continue;
          exchanges_.push_back(exchange);
          for (const ResultOf& result : exchange->results) add_context(result.context);
          for (const Kept& operand : exchange->operands) add_context(operand->context);
        }
      // Their graphs may be looked at once they are entered.
      if (contexts_.size() != entered.size()) return;
    }
  }

  size_t number_of(const ExchangeOf* exchange) const {
    return static_cast<size_t>(std::ranges::find(exchanges_, exchange) - exchanges_.begin());
  }

  // How many exchanges are below each node, one after the other: the exchanges' own levels grow
  // until they fit.
  void find_levels() {
    exchange_levels_.assign(exchanges_.size(), 0);
    for (bool grows = true; std::exchange(grows, false);) {
      node_levels_.clear();
      for (tiny_context* context : contexts_)
        for (const UOp& u : topological(roots_in(context), has_memory))
          node_levels_.insert(u, level_of(u));
      for (size_t i = 0; i < exchanges_.size(); ++i)
        for (const Kept& operand : exchanges_[i]->operands) {
          const int64_t level = *node_levels_.find(operand->value.node());
          grows |= level > exchange_levels_[i];
          exchange_levels_[i] = std::max(exchange_levels_[i], level);
        }
    }
    for (const int64_t level : exchange_levels_) levels_ = std::max(levels_, level + 1);
    for (tiny_context* context : contexts_) {
      std::vector<UOp> operands;
      for (const ExchangeOf* one : exchanges_)
        for (const Kept& operand : one->operands)
          if (operand->context == context) operands.push_back(operand->value.node());
      for (const UOp& u : topological(operands, has_memory)) needed_.insert(u.node());
    }
  }
  int64_t level_of(const UOp& u) const {
    if (has_memory(u)) {
      const ExchangeOf* const exchange = exchange_of(u);
      return !exchange || is_given(u) ? 0 : exchange_levels_[number_of(exchange)] + 1;
    }
    int64_t level = 0;
    for (const UOp& source : u.src()) level = std::max(level, *node_levels_.find(source));
    return level;
  }
  // A tensor that is written is so by the last part, unless an exchange needs it before: others may
  // read what it replaces.
  int64_t level_of_output(size_t i) const {
    UOp base = outputs_[i]->value.node();
    const int64_t level = *node_levels_.find(base);
    while (!has_memory(base) && has(base.op(), kMovement)) base = UOp(base.src(0));
    if (base.op() != Op::After || has_memory(base)) return level;
    return needed_.contains(base.node()) ? level : levels_;
  }

  void add_inputs(TensorProgram& ports) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const tiny_tensor& one = *inputs_[i];
      require(
          one.is_fixed, Status::Unsupported, "inputs[", i,
          "] has a size that is a variable's: sizes of a program of several devices are numbers");
      program_->inputs.push_back(one.context);
      ports.inputs.push_back(make_port(cat("inputs[", i, "]"), one.dtype, one.value.shape(), {}));
      entries_.push_back({one.context, one.value, i, 0});
    }
    size_t value = inputs_.size();
    for (size_t i = 0; i < exchanges_.size(); ++i) {
      first_values_.push_back(value);
      value += exchanges_[i]->results.size();
    }
    NodeSet seen;
    for (tiny_context* context : contexts_)
      for (const UOp& u : topological(roots_in(context), has_memory)) {
        const ExchangeOf* const exchange = exchange_of(u);
        if (!exchange || is_given(u) || !seen.insert(u.node())) continue;
        const size_t at = number_of(exchange);
        const auto result = static_cast<size_t>(std::ranges::find(exchange->nodes, u.node()) -
                                                exchange->nodes.begin());
        const Shape shape = to_shape(exchange->results[result].shape);
        entries_.push_back({context, Tensor(context->core, make_reshape(u, shape)),
                            first_values_[at] + result, exchange_levels_[at] + 1});
      }
    // Before anything is written by a part: all that is missing is missing now.
    for (tiny_context* context : contexts_) {
      std::vector<UOp> given;
      for (const Entry& entry : entries_)
        if (entry.context == context) given.push_back(node_of(entry.tensor));
      require_values(roots_in(context), given);
    }
  }

  void compile_level(int64_t level, TensorProgram& ports) {
    std::vector<JointProgramOf::Step> steps;
    for (size_t i = 0; i < exchanges_.size(); ++i) {
      if (exchange_levels_[i] != level || level == levels_) continue;
      JointProgramOf::Step step{{}, exchanges_[i]->results, {}, exchanges_[i]->together, level};
      step.operands.resize(exchanges_[i]->operands.size());
      for (size_t k = 0; k < step.results.size(); ++k) step.values.push_back(first_values_[i] + k);
      steps.push_back(std::move(step));
    }
    for (tiny_context* context : contexts_) {
      std::vector<Tensor> values;
      const size_t part = program_->programs.size();
      size_t at = 0;
      for (size_t i = 0; i < exchanges_.size(); ++i) {
        if (exchange_levels_[i] != level || level == levels_) continue;
        JointProgramOf::Step& step = steps[at++];
        for (size_t k = 0; k < step.operands.size(); ++k) {
          const Kept& operand = exchanges_[i]->operands[k];
          if (operand->context != context) continue;
          step.operands[k] = {part, values.size()};
          values.push_back(operand->value);
        }
      }
      std::vector<std::pair<size_t, size_t>> given;  // an output, where it is among the values
      for (size_t i = 0; i < outputs_.size(); ++i)
        if (outputs_[i]->context == context && output_levels_[i] == level) {
          given.emplace_back(i, values.size());
          values.push_back(outputs_[i]->value);
        }
      if (values.empty()) continue;
      std::vector<Tensor> inputs;
      JointProgramOf::Part order{{}, level};
      for (const Entry& entry : entries_)
        if (entry.context == context && entry.level <= level) {
          inputs.push_back(entry.tensor);
          order.inputs.push_back(entry.value);
        }
      const Ref<const TensorProgram> made = compile_tensors(context->core, inputs, values);
      require_apart(*made, context);
      for (const auto& [output, number] : given) {
        program_->outputs[output] = {part, number};
        ports.outputs[output] = made->outputs[number];
      }
      program_->programs.push_back({context, made});
      program_->order.push_back(std::move(order));
    }
    for (JointProgramOf::Step& step : steps) program_->steps.push_back(std::move(step));
  }

  // What a part writes is not what a later one was built on.
  void require_apart(const TensorProgram& made, const tiny_context* context) const {
    const Program* const later = made.compiled.program.get();
    for (const ProgramPart& part : program_->programs) {
      const Program* const before = part.value->compiled.program.get();
      if (part.context != context || !before || !later) continue;
      for (const Slot& written : before->slots) {
        if (!written.is_written) continue;
        for (const Slot& slot : later->slots)
          require(slot.kind != SlotKind::Captured ||
                      !overlap(*slot.storage, slot.bytes, *written.storage, written.bytes),
                  Status::Unsupported,
                  "what follows an exchange between devices reads a tensor that is written before"
                  " it: in one program it would have the new elements");
      }
    }
  }

  const std::span<tiny_tensor* const> inputs_, outputs_;
  std::vector<tiny_context*> contexts_;
  std::vector<const ExchangeOf*> exchanges_;
  std::vector<int64_t> exchange_levels_;
  NodeMap<int64_t> node_levels_;
  NodeSet needed_;  // by exchanges
  std::vector<int64_t> output_levels_;
  int64_t levels_ = 0;  // of the last parts
  std::vector<Entry> entries_;
  std::vector<size_t> first_values_;  // by exchange
  Ref<JointProgramOf> program_;
};

std::unique_ptr<tiny_program> ExchangeOf::compile(std::span<tiny_tensor* const> inputs,
                                                  std::span<tiny_tensor* const> outputs) const {
  return Cutting(inputs, outputs).program();
}

}  // namespace

bool is_of_program(std::span<tiny_tensor* const> tensors) {
  const auto has_input = [](const tiny_tensor* one) {
    return std::ranges::any_of(topological(std::vector{one->value.node()}, has_memory), is_input);
  };
  if (std::ranges::none_of(tensors, has_input)) return false;
  for (const tiny_tensor* one : tensors)
    require(one->is_fixed, Status::Unsupported, "a tensor whose size is a variable's, ", one->shape,
            ", goes from device to device");
  return true;
}

std::vector<Tensor> exchanged(std::span<tiny_tensor* const> operands, std::vector<ResultOf> results,
                              Together together) {
  const auto exchange = make_ref<ExchangeOf>();
  for (const tiny_tensor* one : operands) exchange->operands.push_back(kept(*one));
  exchange->together = std::move(together);
  std::vector<Tensor> made;
  for (const ResultOf& result : results) {
    const Shape shape = to_shape(result.shape);
    check_shape(shape, result.dtype);
    const UOp node = make_input(*result.context->core, result.dtype, product(shape), exchange);
    exchange->nodes.push_back(node.node());
    made.emplace_back(result.context->core, make_reshape(node, shape));
  }
  exchange->results = std::move(results);
  return made;
}

}  // namespace tiny
