#include "tensor/recurrence.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "schedule/scans.h"
#include "schedule/schedule.h"
#include "tensor/counted_recurrence.h"
#include "tensor/create.h"
#include "tensor/custom.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/movement.h"

namespace tiny {

namespace {

RecurrenceResult unrolled(const Recurrence& r, const RecurrenceFunction& step) {
  const int64_t steps = r.steps.value();
  std::vector<std::vector<Tensor>> outputs;
  std::vector<Tensor> state = r.state;
  for (int64_t n = 0; n < steps; ++n) {
    RecurrenceStep now{{}, std::move(state)};
    for (const Sequence& s : r.sequences) {
      const int64_t t = s.reverse ? steps - 1 - n : n;
      now.inputs.push_back(squeeze(slice_axis(s.tensor, s.axis, t, t + 1), {s.axis}));
    }
    RecurrenceResult made = step(now);
    outputs.resize(made.outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i].push_back(made.outputs[i]);
    state = std::move(made.state);
  }
  RecurrenceResult all{{}, std::move(state)};
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!r.is_backwards.empty() && r.is_backwards[i]) std::ranges::reverse(outputs[i]);
    all.outputs.push_back(stack(outputs[i], 0));
  }
  return all;
}

// What no steps make: nothing of each output, whose shape one step tells, and the state as it was.
RecurrenceResult of_no_steps(const Ref<Context>& context, const Recurrence& r,
                             const RecurrenceFunction& step) {
  RecurrenceStep first{{}, r.state};
  for (const Sequence& s : r.sequences) {
    const Shape shape = move_axis(s.tensor, s.axis, 0).shape();
    first.inputs.push_back(full(context, s.tensor.dtype(), {shape.begin() + 1, shape.end()}, 0));
  }
  RecurrenceResult all{{}, r.state};
  for (const Tensor& output : step(first).outputs) {
    Shape shape = output.shape();
    shape.insert(shape.begin(), Dim(0));
    all.outputs.push_back(full(context, output.dtype(), shape, 0));
  }
  return all;
}

// Whether the steps have recurrences of their own.
bool has_scans(const std::vector<UOp>& values, const ScanLoop* loop) {
  const std::vector<UOp> order = topological(values, has_memory);
  std::vector<uint8_t> is_inside(order.front().graph().id_limit());
  for (const UOp& u : order) {
    if (has_memory(u)) continue;
    bool inside = u.op() == Op::ScanStep && scan_part(u).loop.get() == loop;
    for (const UOp& s : u.src()) inside |= is_inside[s.id()] != 0;
    if (inside && u.op() == Op::Scan) return true;
    is_inside[u.id()] = inside ? 1 : 0;
  }
  return false;
}

// The nodes of the outputs, then of the states; none where these are not what a loop carries.
std::optional<std::vector<UOp>> values_of(const RecurrenceResult& made, const Recurrence& r) {
  invariant(made.state.size() == r.state.size(), "a step makes a new state of the one before");
  invariant(r.is_backwards.empty() || r.is_backwards.size() == made.outputs.size(),
            "each output has its direction");
  std::vector<UOp> values;
  for (const Tensor& output : made.outputs) values.push_back(output.node());
  for (size_t i = 0; i < r.state.size(); ++i) {
    const Tensor& next = made.state[i];
    if (!(next.shape() == r.state[i].shape()) || next.dtype() != r.state[i].dtype())
      return std::nullopt;
    values.push_back(next.node());
  }
  return values;
}

// Sinks of a step's values.  An output that is a state's value is stored once.
std::vector<UOp> stores_of(const std::vector<UOp>& values, const Ref<ScanLoop>& loop,
                           const std::vector<uint8_t>& is_backwards) {
  using Kind = ScanPart::Kind;
  std::vector<UOp> stores(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (i < loop->outputs) {
      const bool reverse = !is_backwards.empty() && is_backwards[i];
      stores[i] = make_scan_store(values[i], {loop, Kind::Output, i, reverse});
      continue;
    }
    const auto end = values.begin() + static_cast<int64_t>(loop->outputs);
    const auto same =
        static_cast<size_t>(std::find(values.begin(), end, values[i]) - values.begin());
    const bool is_first =
        std::find(values.begin() + static_cast<int64_t>(loop->outputs), values.end(), values[i]) ==
        values.begin() + static_cast<int64_t>(i);
    stores[i] = same < loop->outputs && is_first
                    ? stores[same]
                    : make_scan_store(values[i], {loop, Kind::State, i - loop->outputs});
  }
  return stores;
}

// The steps as a loop; none if they cannot be one.
std::optional<RecurrenceResult> looped(const Ref<Context>& context, const Recurrence& r,
                                       const RecurrenceFunction& step) {
  using Kind = ScanPart::Kind;
  const Ref<ScanLoop> loop = make_ref<ScanLoop>();
  loop->count = r.steps;
  RecurrenceStep now;
  for (const Sequence& s : r.sequences) {
    const Tensor first = move_axis(s.tensor, s.axis, 0);
    const Shape& shape = first.shape();
    const ScanPart part{loop, Kind::Element, 0, s.reverse, {shape.begin() + 1, shape.end()}};
    now.inputs.emplace_back(context, make_scan_step(stored_whole(first), part));
  }
  for (size_t i = 0; i < r.state.size(); ++i) {
    const ScanPart part{loop, Kind::State, i, false, r.state[i].shape()};
    now.state.emplace_back(context, make_scan_step(stored_whole(r.state[i]), part));
  }
  const RecurrenceResult made = step(now);
  const std::optional<std::vector<UOp>> values = values_of(made, r);
  if (!values || values->empty() || has_scans(*values, loop.get())) return std::nullopt;
  loop->outputs = made.outputs.size();
  loop->states = r.state.size();
  const std::vector<UOp> stores = stores_of(*values, loop, r.is_backwards);
  RecurrenceResult all;
  for (size_t i = 0; i < loop->outputs; ++i)
    all.outputs.emplace_back(context, make_scan(stores, {loop, Kind::Output, i}));
  for (size_t i = 0; i < loop->states; ++i)
    all.state.push_back(contiguous(Tensor(context, make_scan(stores, {loop, Kind::Last, i}))));
  return all;
}

bool is_empty(const Tensor& x) {
  return std::ranges::any_of(x.shape(), [](const Dim& d) { return d.is(0); });
}

}  // namespace

std::optional<RecurrenceResult> recur_as_loop(const Ref<Context>& context,
                                              const Recurrence& recurrence,
                                              const RecurrenceFunction& step) {
  const Dim& steps = recurrence.steps;
  const bool in_run = !steps.is_const() && lower_bound(steps) < 1;
  require(in_run || upper_bound(steps) <= kRecurrenceStepsMax, Status::Unsupported,
          "a recurrence of ", to_string(steps), " steps; it takes 0 to ", kRecurrenceStepsMax);
  bool any_empty = false;
  for (const Sequence& s : recurrence.sequences) {
    const auto axis = static_cast<size_t>(checked_axis(s.axis, s.tensor.rank()));
    require(decide_equal(s.tensor.shape()[axis], steps), Status::Shape, "a sequence of shape ",
            s.tensor.shape(), " for ", to_string(steps), " steps along axis ", s.axis);
    any_empty |= is_empty(s.tensor);
  }
  for (const Tensor& s : recurrence.state) any_empty |= is_empty(s);
  if (steps.is(0) || steps.is(1) || any_empty) return std::nullopt;
  if (in_run) return recur_in_run(context, recurrence, step);
  return looped(context, recurrence, step);
}

RecurrenceResult recur(const Ref<Context>& context, const Recurrence& recurrence,
                       const RecurrenceFunction& step) {
  if (auto made = recur_as_loop(context, recurrence, step)) return *std::move(made);
  return recurrence.steps.is(0) ? of_no_steps(context, recurrence, step)
                                : unrolled(recurrence, step);
}

}  // namespace tiny
