#include "schedule/schedule.h"

#include <ranges>
#include <unordered_map>

#include "base/error.h"
#include "schedule/decide.h"
#include "schedule/hazards.h"
#include "schedule/join_beside.h"
#include "schedule/layout.h"
#include "schedule/lower_once.h"
#include "shape/shape.h"

namespace tiny {

namespace {

// The parts of a concatenation's buffer where its sources go.
std::vector<View> slice_views(const UOp& concat, const Decision& decision) {
  View view = decision.view_of(concat);
  const auto axis = static_cast<size_t>(concat.int_arg());
  std::vector<View> views;
  Dim begin = 0;
  for (const UOp& part : concat.src()) {
    view.offset = begin * view.strides[axis];
    view.shape[axis] = shape_of(part)[axis];
    views.push_back(view);
    begin = begin + view.shape[axis];
  }
  return views;
}

// The step in which the host computes these results of one call.
ScheduledKernel call_kernel(std::span<const UOp> results) {
  ScheduledKernel out;
  out.call = results.front();
  out.kernel.name = "call";
  for (const UOp& source : out.call.src()) {
    out.values.push_back(source);
    out.kernel.params.push_back({source.dtype(), true, false});
    out.reads.push_back({source, {0, INT64_MAX}, false, {}});
  }
  for (const UOp& result : results) {
    out.values.push_back(result);
    out.kernel.params.push_back({result.dtype(), false, true});
    out.stores.push_back({result, result, row_major(shape_of(result))});
  }
  std::vector<UOp> sizes;
  const HostCall& call = *call_result(out.call).call;
  for (const auto* values : {&call.inputs, &call.outputs})
    for (const HostCall::Value& value : *values)
      for (const Dim& d : value.shape)
        if (!d.is_const()) sizes.push_back(d.expression());
  for (const UOp& u : topological(sizes))
    if (u.op() == Op::Variable) out.kernel.variables.push_back(u);
  return out;
}

// The results of each call that are computed, in the graph's order.
using CallResults = std::unordered_map<const HostCall*, std::vector<UOp>>;

CallResults results_of_calls(const std::vector<UOp>& order) {
  CallResults results;
  for (const UOp& u : order)
    if (u.op() == Op::Call && !has_memory(u)) results[call_result(u).call.get()].push_back(u);
  return results;
}

// A Scan's buffer is what the stores of its body fill, step by step.
void add_result(const UOp& scan, Schedule& schedule) {
  const ScanLoop* loop = scan_part(scan).loop.get();
  const auto known = std::ranges::find(schedule.scans, loop, &ScheduledScan::loop);
  if (known != schedule.scans.end())
    known->results.push_back(scan);
  else
    schedule.scans.push_back({loop, {scan}});
  schedule.stored.push_back(scan);
}

bool is_empty(const UOp& node) {
  for (const Dim& d : shape_of(node))
    if (d.is(0)) return true;
  return false;
}

}  // namespace

Schedule make_schedule(std::span<const UOp> outputs, const Machine& target, bool fusion,
                       const JoinSettings& joins) {
  Schedule schedule;
  Decision decision = decide_stored(outputs, target);
  LowerOnce lowered(decision);
  Joins made;
  if (fusion) {
    made = join_kernels(decision, lowered, outputs, target, joins);
    choose_layouts(decision, outputs, target);
  }
  const auto set_body = [&](ScheduledKernel& kernel, const UOp& stored) {
    kernel.scan = decision.bodies.of(stored);
    kernel.segment = decision.bodies.segment(stored);
  };
  const auto add_kernel = [&](const UOp& node, const UOp& destination, const View& view) {
    if (is_empty(node)) return;
    schedule.kernels.push_back(lowered.store(node, destination, view));
    set_body(schedule.kernels.back(), destination);
  };
  const CallResults calls = results_of_calls(decision.order);
  // What has a buffer of its own, read from there.
  const auto copy_of = [&](const UOp& value) {
    UOp copy = value.graph().make(Op::Contiguous, {value});
    decision.stored.resize(value.graph().id_limit());
    return copy;
  };
  const auto is_slice_of = [&](const UOp& part, const UOp& node) {
    const UOp* whole = decision.slice(part);
    return whole && *whole == node;
  };
  for (const UOp& u : decision.order) {
    if (joins.stop && decision.stored[u.id()]) joins.stop->check();
    if (has_memory(u) || !decision.stored[u.id()] || u.op() == Op::After) continue;
    if (decision.slice(u)) continue;       // written with its concatenation's other parts
    if (u.op() == Op::ScanStep) continue;  // a part of what its source is stored in
    if (u.op() == Op::Scan) {
      add_result(u, schedule);
      continue;
    }
    if (u.op() == Op::Assign) {
      const UOp* scatter = decision.scatter_of(u);
      if (!is_empty(scatter ? scatter->src(2) : u)) schedule.kernels.push_back(lowered.value(u));
      continue;
    }
    schedule.stored.push_back(u);
    if (u.op() == Op::Call) {
      const std::vector<UOp>& results = calls.at(call_result(u).call.get());
      if (results.front() == u) {
        schedule.kernels.push_back(call_kernel(results));
        set_body(schedule.kernels.back(), u);
      }
      continue;
    }
    if (u.op() == Op::Scatter) {
      // Scatters into what only they read are one after the other in the buffer of the last.
      std::vector<UOp> chain{u};
      while (is_slice_of(scattered_into(chain.back()), chain.back()) &&
             scattered_into(chain.back()).op() == Op::Scatter)
        chain.push_back(scattered_into(chain.back()));
      UOp data = scattered_into(chain.back());
      if (is_slice_of(data, chain.back()))
        decision.stored[data.id()] = 0;
      else
        data = copy_of(chain.back().src(0));
      add_kernel(data, u, row_major(shape_of(data)));
      for (const UOp& scatter : chain | std::views::reverse)
        if (!is_empty(scatter.src(2))) add_kernel(scatter, u, row_major(shape_of(scatter)));
      continue;
    }
    if (u.op() != Op::Concat) {
      add_kernel(u, u, decision.view_of(u));
      continue;
    }
    const std::vector<View> slices = slice_views(u, decision);
    for (size_t i = 0; i < u.src().size(); ++i) {
      UOp part = u.src(i);
      if (is_slice_of(part, u)) decision.stored[part.id()] = 0;  // it is computed here, not read
      if (part.op() == Op::Scatter || part.op() == Op::Call || is_of_scan(part))
        part = copy_of(part);
      add_kernel(part, u, slices[i]);
    }
  }
  order_kernels(schedule, decision, outputs);
  if (fusion) join_beside(schedule, decision, outputs, target, joins, made);
  schedule.elements = std::move(decision.elements);
  return schedule;
}

}  // namespace tiny
