#include "engine/trial.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"

namespace tiny {

namespace {

constexpr int64_t kVariableMax = 256;
constexpr int64_t kSymbolicBytes = 64 << 20;  // of all buffers, before variables are made smaller
constexpr int64_t kBytesMax = 1 << 30;
constexpr int64_t kPatternElements = 16 << 10;

// Elements of a parameter that an access may touch.
int64_t reach(const UOp& access, std::span<const UOp> kernel_variables,
              std::span<const int64_t> values) {
  const ViewArg& view = access.view_arg();
  size_t symbol = (access.op() == Op::Store ? 2 : 1) + view.shape.size();
  const auto number = [&](int64_t known) {
    if (known != kSymbolicDim) return known;
    return SizeExpression(Dim(UOp(access.src(symbol++))), kernel_variables).value(values);
  };
  Ints shape;
  for (int64_t n : view.shape) shape.push_back(number(n));
  int64_t last = 0;
  for (int64_t n : shape)
    if (n == 0) return 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t stride = number(view.strides[i]);
    if (stride > 0)
      last = checked_add(last, checked_mul(stride, shape[i] - 1, "a buffer's size"),
                         "a buffer's size");
  }
  return checked_add(last, number(view.offset) + 1, "a buffer's size");
}

// Small numbers of a dtype: fractions between -1 and 1, integers and bools from 1 to 3.
std::string pattern_of(DType dtype) {
  std::string out;
  const auto bytes = static_cast<size_t>(dtype.bytes());
  uint32_t state = 12345;
  for (int64_t i = 0; i < kPatternElements; ++i) {
    state = state * 1664525 + 1013904223;
    const uint32_t random = state >> 16;
    const double value = dtype.is_float() ? (static_cast<double>(random % 255) - 127) / 128
                                          : static_cast<double>(1 + random % 3);
    const uint64_t bits = bits_of(dtype, value);
    out.append(reinterpret_cast<const char*>(&bits), bytes);
  }
  return out;
}

}  // namespace

Trial::Trial(Device& device, const Kernel& kernel, const StopSignal& stop)
    : device_(device), stop_(stop), params_(kernel.params), queue_(device.make_queue()) {
  for (const UOp& v : kernel.variables) {
    const auto& [name, least, most] = v.variable_arg();
    variables_.push_back(std::clamp(kVariableMax, least, most));
  }
  std::vector<int64_t> wanted = sizes(kernel);
  const auto total = [&] { return std::accumulate(wanted.begin(), wanted.end(), int64_t{0}); };
  for (bool smaller = true; smaller && total() > kSymbolicBytes;) {
    smaller = false;
    for (size_t i = 0; i < variables_.size(); ++i) {
      const int64_t half = std::max(variables_[i] / 2, kernel.variables[i].variable_arg().min);
      smaller |= half < variables_[i];
      variables_[i] = half;
    }
    if (smaller) wanted = sizes(kernel);
  }
  require(total() <= kBytesMax, Status::Limit, "its buffers take ", total(), " bytes");
  for (size_t i = 0; i < wanted.size(); ++i) {
    buffers_.push_back(device_.allocate(wanted[i]));
    patterns_.push_back(pattern_of(params_[i].element));
    fill(i);
  }
}

std::vector<int64_t> Trial::sizes(const Kernel& kernel) const {
  std::vector<int64_t> out(params_.size(), 1);
  for (const UOp& u : topological(kernel.roots)) {
    if (u.op() != Op::Load && u.op() != Op::Store) continue;
    const auto param = static_cast<size_t>(u.src(0).int_arg());
    const int64_t bytes = checked_mul(reach(u, kernel.variables, variables_),
                                      params_[param].element.bytes(), "a buffer's size");
    out[param] = std::max(out[param], bytes);
  }
  return out;
}

void Trial::fill(size_t param) {
  Buffer& buffer = *buffers_[param];
  const std::string& pattern = patterns_[param];
  for (int64_t at = 0; at < buffer.bytes(); at += std::ssize(pattern)) {
    stop_.check();
    device_.copy_in(queue_.get(), buffer, at, pattern.data(),
                    std::min(std::ssize(pattern), buffer.bytes() - at));
  }
}

double Trial::run(Executable& code, const SizeExpression& threads_extent) {
  std::vector<Argument> arguments;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (params_[i].read && params_[i].written) fill(i);
    arguments.push_back({buffers_[i].get(), 0});
  }
  device_.wait(queue_.get());
  Launch launch;
  launch.executable = &code;
  launch.arguments = arguments;
  launch.variables = variables_;
  launch.end = threads_extent.value(variables_);
  if (threads_extent.is_const() && launch.end == 0) launch.end = 1;
  const Ref<Event> start = device_.record(*queue_);
  device_.launch(queue_.get(), launch, stop_);
  const Ref<Event> end = device_.record(*queue_);
  device_.wait(queue_.get());
  stop_.check_known();
  return device_.seconds(*start, *end);
}

}  // namespace tiny
