// What inputs' elements decide of shapes: it is known on the host, asked of a run before there is a
// program (questions.h), or a size that the run computes.
#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "engine/host_room.h"
#include "engine/realize.h"
#include "onnx/import/host_value.h"
#include "onnx/import/import.h"
#include "schedule/schedule.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"

namespace tiny::onnx {

namespace {

// What is computed for a shape operand that is known only now.
constexpr int64_t kHostMax = int64_t{1} << 20;

std::string size_name(const Node& node) {
  return cat('#', node.name.empty() ? node.op_type : node.name);
}

}  // namespace

Shape Importer::host_sizes_of(const Tensor& tensor, const std::string& what,
                              const FoundSize& found) {
  const Dependence& on = dependence(tensor);
  if ((on.on_variable || on.on_input) && tensor.dtype().is_int())
    if (const Tensor wide = cast(tensor, kInt64);
        const auto elements = host_expressions(wide.node(), kFoldedMax)) {
      const Tensor flat = flatten(wide);
      Shape sizes;
      for (size_t i = 0; i < elements->size(); ++i) {
        const UOp& e = (*elements)[i];
        const auto place = static_cast<int64_t>(i);
        sizes.push_back(e ? tiny::Dim(e) : found(i, slice_axis(flat, 0, place, place + 1)));
      }
      return sizes;
    }
  return to_shape(integers_of(host_value_of(tensor, what)));
}

HostTensor Importer::host_value_of(const Tensor& tensor, const std::string& what) {
  const Dependence& on = dependence(tensor);
  if (!on.on_data() && !on.on_variable)
    if (auto value = host_value(tensor.node(), kHostMax)) return std::move(*value);
  if (!on.on_data() && on.on_variable) {
    const auto elements = host_expressions(tensor.node(), kFoldedMax);
    if (elements)
      if (auto value = numbers_of(*elements, tensor)) return std::move(*value);
    throw_free({&tensor.node(), 1}, what);
  }
  if (on.on_data()) {
    auto answer = decided(tensor);
    require(answer.has_value(), Status::Unsupported, what,
            " decides a shape and depends on input data");
    return std::move(*answer);
  }
  const Ints shape = dims_of(tensor);
  const int64_t count = element_count(shape, "a shape operand");
  const HostRoom room(*context_, count, tensor.dtype().bytes());
  std::vector<std::byte> bytes(static_cast<size_t>(count * tensor.dtype().bytes()));
  read(*context_, tensor.node(), bytes.data(), static_cast<int64_t>(bytes.size()));
  return HostTensor{tensor.dtype(), shape, SharedBytes::own(std::move(bytes))};
}

// What is imported several times, or is not before a loop's round, cannot be told apart.
bool Importer::may_ask(const Tensor& tensor) {
  const bool is_once = std::ranges::none_of(scopes_, &Scope::is_repeated) &&
                       dependence(tensor).on_steps.empty() && all_const(tensor.shape());
  return is_once && questions_.may_ask(product(tensor.shape()).value());
}

std::optional<HostTensor> Importer::decided(const Tensor& tensor) {
  const Question question = questions_.next();
  if (const HostTensor* answer = questions_.find(question)) {
    require(answer->dtype == tensor.dtype() && answer->shape == dims_of(tensor), Status::Internal,
            "the answer to another question");
    return *answer;
  }
  if (!may_ask(tensor)) return std::nullopt;
  // Behind a branch that is not taken values are any.
  const Tensor value = guard_ ? where(guard_, tensor, tiny::number_int(tensor, 0)) : tensor;
  throw Undecided{question, contiguous(value)};
}

// Asks for a size that runs compute; returns if it cannot be asked.
void Importer::ask_size(std::string_view variable) {
  const Question* question = questions_.find_size(variable);
  const ComputedVariable* size = find_computed(variable);
  if (!question || !size) return;
  const Tensor value(context_, size->value);
  if (may_ask(value)) throw Undecided{*question, value};
}

// The number of elements that `count` (int64, one element) will say, at most `most`.
tiny::Dim Importer::computed_size(const Tensor& count, const tiny::Dim& most, const Node& node,
                                  int64_t least) {
  // Behind a branch that is not taken there are none.
  return add_size(count, {guard_ ? 0 : least, upper_bound(most)}, is_open(most), node);
}

tiny::Dim Importer::open_size(const Tensor& count, const Node& node, int64_t most) {
  return add_size(count, {0, most}, true, node);
}

tiny::Dim Importer::common_size(const tiny::Dim& a, const tiny::Dim& b, const Node& node) {
  if ((a - b).is_const() || (!is_computed(a) && !is_computed(b))) {
    require(decide_equal(a, b), Status::InvalidModel, "sizes of ", a, " and ", b,
            ", which must be the same");
    return a;
  }
  const Tensor one = size_tensor(context_, a), other = size_tensor(context_, b);
  const Tensor both = where(equal(one, other), one, tiny::number_int(one, -1));
  return computed_size(both, upper_bound(a) < upper_bound(b) ? a : b, node);
}

tiny::Dim Importer::add_size(const Tensor& count, Interval range, bool is_open, const Node& node) {
  const Dependence& on = dependence(count);
  if (!on.on_data() && !on.on_variable) return integers_of(host_value_of(count, "its count")).at(0);
  require(sizes_.are_allowed, Status::Unsupported, "input data decides the size of its result");
  require(on.on_steps.empty(), Status::Unsupported,
          "data decides the size of its result, in a loop");
  const Question question = questions_.next();
  if (const HostTensor* answer = questions_.find(question)) return integers_of(*answer).at(0);
  // Computed whether or not the branch around is: behind one that is not taken values are any.
  const Tensor none = full(context_, kInt64, {}, 0);
  const UOp value =
      contiguous(guard_ ? where(guard_, reshape(count, Shape()), none) : count).node();
  if (is_open) range.hi = std::min(range.hi, kOpenSizeMax);
  for (const ComputedVariable& known : sizes_.computed)
    if (known.value == value && known.is_open == is_open &&
        known.variable.variable_arg().min == range.lo &&
        known.variable.variable_arg().max == range.hi)
      return tiny::Dim(known.variable);
  const std::string name = size_name(node);
  std::string unused = name;
  for (size_t number = sizes_.computed.size(); find_computed(unused); ++number)
    unused = cat(name, '\'', number);
  const UOp variable = context_->graph().variable(unused, range.lo, range.hi);
  sizes_.computed.push_back({variable, value, is_open});
  const bool is_in_body = std::ranges::any_of(scopes_, &Scope::is_repeated);
  questions_.add_size(unused, is_in_body ? Question() : question);
  return tiny::Dim(variable);
}

UOp Importer::induction_variable(const Node& node, Interval range) {
  require(sizes_.are_allowed, Status::Unsupported, "each of its rounds has other sizes");
  // Each is another: what was tried in vain may have left values of one behind.
  const std::string name = cat(size_name(node), ".round", ++sizes_.induction_variables);
  const UOp variable = context_->graph().variable(name, range.lo, range.hi);
  sizes_.computed.push_back({variable, UOp(), false});
  return variable;
}

namespace {

std::vector<std::string> names_in(const tiny::Dim& size) {
  std::vector<std::string> names;
  if (size.is_const()) return names;
  for (const UOp& u : topological({&size.expression(), 1}))
    if (u.op() == Op::Variable) names.push_back(u.variable_arg().name);
  return names;
}

}  // namespace

bool Importer::is_computed(const tiny::Dim& size) const {
  return are_computed(names_in(size));
}

bool Importer::is_open(const tiny::Dim& size) const {
  return std::ranges::any_of(names_in(size), [&](const std::string& name) {
    const ComputedVariable* found = find_computed(name);
    return found && found->is_open;
  });
}

void Importer::require_found(const Shape& sizes) const {
  for (const tiny::Dim& size : sizes)
    if (!is_computed(size)) size.value();
}

const ComputedVariable* Importer::find_computed(std::string_view variable) const {
  const auto at = std::ranges::find_if(sizes_.computed, [&](const ComputedVariable& c) {
    return c.variable.variable_arg().name == variable;
  });
  return at == sizes_.computed.end() ? nullptr : &*at;
}

bool Importer::are_computed(const std::vector<std::string>& variables) const {
  return !variables.empty() && std::ranges::all_of(variables, [&](const std::string& name) {
    return find_computed(name);
  });
}

bool Importer::is_decided_by_data(const Tensor& tensor) {
  const Dependence& on = dependence(tensor);
  if (on.on_data()) return true;
  if (sizes_.computed.empty() || !on.on_variable) return false;
  return std::ranges::any_of(topological({&tensor.node(), 1}, has_memory), [&](const UOp& u) {
    return u.op() == Op::Variable && find_computed(u.variable_arg().name);
  });
}

}  // namespace tiny::onnx
