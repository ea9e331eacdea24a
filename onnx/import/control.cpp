// Control flow.  Where its course is known when the model is compiled branches are chosen, and
// loops are loops where their bodies are the same for every round, or what they carry grows by as
// much in each, else unrolled; the run decides the rest.
#include "tensor/control.h"

#include <algorithm>

#include "base/error.h"
#include "onnx/import/branches.h"
#include "onnx/import/carried_growth.h"
#include "onnx/import/complex.h"
#include "onnx/import/functions.h"
#include "onnx/import/host_value.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/recurrence.h"

namespace tiny::onnx {

namespace {

// Rounds of one loop; each becomes a copy of its body.
constexpr int64_t kRoundsMax = 4096;

// Rounds of which each may be a branch: each is a copy of the body, and 1024 of a small one compile
// in seconds.
constexpr int64_t kBranchedRoundsMax = 1024;

// Few rounds are unrolled: kernels of several are one.
constexpr int64_t kUnrolledMax = 4;
// The same of rounds that carry values which grow: copies have gradients and are exported as C,
// which a loop that the run counts is not.  Of a small decoder 8 and 16 copies and a loop of 17
// rounds take 50, 100 and 15 ms to load and run first, then all 11 to 14 us a round
// (tests/peers/growing_times.py rounds 8 16 17; a Xeon of family 6, model 207).
constexpr int64_t kUnrolledGrowingMax = 16;

// None where the body needs to know of its elements, or its round, what only unrolling tells it, or
// carries values that change their shapes.
std::optional<RecurrenceResult> as_loop(Call& c, const Recurrence& recurrence,
                                        const RecurrenceFunction& step) {
  if (!recurrence.steps.is_const()) return recur_as_loop(c.context(), recurrence, step);
  if (recurrence.steps.value() <= kUnrolledMax) return std::nullopt;
  std::optional<RecurrenceResult> made;
  std::string failure;
  c.importer().attempt([&] { made = recur_as_loop(c.context(), recurrence, step); }, failure);
  return made;
}

// Body: (round, condition, carried..) to (condition, carried.., scanned..).
struct Loop {
  const Graph& body;
  size_t carried;
  size_t scanned;
};

// What a graph makes in the round of this number.
Values round_of(Call& c, const Graph& body, const Tensor& number, const Values& inputs) {
  Values made;
  c.importer().in_round(number, [&] { made = c.importer().subgraph(body, inputs); });
  return made;
}

Values plain_values(const Tensors& tensors) {
  Values out;
  for (const Tensor& tensor : tensors) out.push_back({tensor, nullptr, nullptr});
  return out;
}

// What one round makes: whether another follows, what it carries, and what is collected.
struct LoopRound {
  Tensor condition;
  Values state;
  Values scanned;
};

// What one round makes of its number and the values that it is carried.
LoopRound one_round(Call& c, const Loop& loop, const Tensor& number, const Values& state) {
  Values inputs = plain_values({number, full(c.context(), kBool, {}, 1)});
  inputs.insert(inputs.end(), state.begin(), state.end());
  const Values made = round_of(c, loop.body, number, inputs);
  const auto scanned = made.begin() + 1 + static_cast<int64_t>(loop.carried);
  c.check(static_cast<bool>(made[0].tensor), "the condition of its body is no tensor");
  for (auto at = scanned; at != made.end(); ++at)
    c.check(static_cast<bool>(at->tensor), "its body collects what is no tensor");
  return {made[0].tensor, {made.begin() + 1, scanned}, {scanned, made.end()}};
}

Values state_before(Call& c, const Loop& loop) {
  Values state;
  for (size_t i = 0; i < loop.carried; ++i) state.push_back(c.input(2 + i));
  return state;
}

// That the rounds are as many as their number says, whatever they make.
void check_goes_on(Call& c, const Tensor& condition) {
  if (!c.is_known(condition) || c.number_of(condition, "the condition of its body") == 0)
    c.unsupported("a loop that ends itself");
}

void check_form(Call& c, const Values& before, const Values& after) {
  if (!are_alike(before, after)) c.unsupported("a loop that changes the lengths of sequences");
}

// A loop of so many rounds whose body keeps its condition.
std::optional<Values> loop_by_steps(Call& c, const Loop& loop, int64_t rounds) {
  const Values state = state_before(c, loop);
  Values scanned;
  Recurrence all{rounds, {{arange(c.context(), kInt64, rounds)}}, flat(state), {}};
  const auto round = [&](const RecurrenceStep& now) {
    const LoopRound made = one_round(c, loop, now.inputs[0], formed(state, now.state));
    check_goes_on(c, made.condition);
    check_form(c, state, made.state);
    scanned = made.scanned;
    return RecurrenceResult{flat(made.scanned), flat(made.state)};
  };
  const auto made = as_loop(c, all, round);
  if (!made) return std::nullopt;
  Values out = formed(state, made->state);
  const Values collected = formed(scanned, made->outputs);
  out.insert(out.end(), collected.begin(), collected.end());
  return out;
}

// The most rounds that a loop may have, as far as can be said before the run.
int64_t most_rounds(Call& c) {
  if (!c.has(0)) return INT64_MAX;
  if (c.known(0)) return c.integer(0);
  return c.importer().dependence(c.in(0)).on_data() ? INT64_MAX : upper_bound(c.size(0));
}

constexpr int64_t kCollectedBytesMax = 256 << 20;  // as much as the activations of large networks

// For how many rounds there is memory where nothing says how many a loop has before it ends itself.
int64_t assumed_rounds(Call& c, const Loop& loop, const Values& state,
                       const std::optional<CarriedGrowth>& growth) {
  if (growth) {
    // Written before the first round, in each run: 4, 8, 16 and 32 MiB take 0.7, 1.3, 4 and 9 ms
    // (tests/peers/growing_times.py room 4 8 16 32; a Xeon of family 6, model 207).  What longer
    // loops need is an error.
    constexpr int64_t kGrownBytesMax = 32 << 20;
    const int64_t rounds = kGrownBytesMax / std::max<int64_t>(growth->bytes(), 1);
    return std::clamp(rounds, kBranchedRoundsMax, kRecurrenceStepsMax);
  }
  const Tensor first = full_bits(c.context(), kInt64, {}, 0);
  int64_t rounds = kRecurrenceStepsMax;
  for (const Value& value : one_round(c, loop, first, state).scanned) {
    const int64_t bytes = upper_bound(product(value.tensor.shape())) *
                          static_cast<int64_t>(value.tensor.dtype().bytes());
    rounds = std::min(rounds, kCollectedBytesMax / std::max<int64_t>(bytes, 1));
  }
  return std::max(rounds, kRoundsMax);
}

// How what is carried grows, as two rounds tell; none where it does not, or in another way.
std::optional<CarriedGrowth> growth_of(Call& c, const Loop& loop, const Values& state) {
  const auto next = [&](int64_t number, const Values& now) {
    const Tensor round = full_bits(c.context(), kInt64, {}, static_cast<uint64_t>(number));
    const Values made = one_round(c, loop, round, now).state;
    check_form(c, state, made);
    return made;
  };
  const Values first = next(0, state);
  return CarriedGrowth::of(flat(state), flat(first), flat(next(1, first)));
}

// A loop whose rounds the run counts; `may_end`: where one may be the last before their number is
// reached.  Of carried values that `grow` a round sees as much as there is.
Values loop_in_run(Call& c, const Loop& loop, bool may_end, bool grow = false) {
  const Values state = state_before(c, loop);
  std::optional<CarriedGrowth> growth;
  if (grow) growth = growth_of(c, loop, state);
  if (grow && !growth) c.unsupported("a loop that changes the shapes of its state");
  int64_t most = 1;
  bool is_room_assumed = false;
  if (loop.scanned > 0 || growth) {
    most = std::max<int64_t>(most_rounds(c), 1);
    const bool is_known =
        most <= kRecurrenceStepsMax && (!growth || most * growth->bytes() <= kCollectedBytesMax);
    const int64_t room = is_known ? most : assumed_rounds(c, loop, state, growth);
    if (most > room && !may_end)
      c.unsupported("a loop that collects values in ", most, " rounds; at most ", room, " can be");
    is_room_assumed = room < most;
    most = room;
  }
  const auto number = [&](int64_t value) {
    return full_bits(c.context(), kInt64, {}, static_cast<uint64_t>(value));
  };
  Tensor rounds = c.has(0) ? reshape(c.in(0), Shape()) : number(INT64_MAX);
  if (c.has(1)) rounds = where(reshape(c.in(1), Shape()), rounds, number(0));
  if (c.importer().guard()) rounds = where(c.importer().guard(), rounds, number(0));
  // Where the room may not suffice, whether the last round asked for another is a state too.
  Tensors before = flat(state);
  const size_t carried = before.size();
  if (growth) before = growth->with_room(before, most);
  if (is_room_assumed) before.push_back(full(c.context(), kBool, {}, 1));
  InductionVariable induction;
  if (growth && most > 1)
    induction.variable = c.importer().induction_variable(c.node(), {0, most - 1});
  const tiny::Dim begun = induction.variable ? tiny::Dim(induction.variable) : tiny::Dim(0);
  Values scanned;
  const auto round = [&](const Tensor& at, Tensors now) {
    now.resize(carried);
    if (growth) now = growth->seen(now, begun);
    const LoopRound one = one_round(c, loop, at, formed(state, now));
    if (!may_end) check_goes_on(c, one.condition);
    check_form(c, state, one.state);
    scanned = one.scanned;
    Tensors after = flat(one.state);
    if (growth) after = growth->stored(after, begun + 1);
    if (is_room_assumed) after.push_back(cast(reshape(one.condition, Shape()), kBool));
    return Round{after, one.condition, flat(one.scanned)};
  };
  const Rounds made = collect(is_room_assumed ? minimum(rounds, number(most)) : rounds, most,
                              before, c.importer().dependences(), round, induction);
  Tensors last(made.state.begin(), made.state.begin() + static_cast<ptrdiff_t>(carried));
  if (loop.scanned == 0 && !growth) return formed(state, last);
  Tensor made_rounds = made.count;
  if (is_room_assumed) {
    // One round more than there is room for ends the run.
    const Tensor goes_on = bit_and(made.state.back(), less(number(most), rounds));
    const Tensor is_full = bit_and(goes_on, equal(made_rounds, number(most)));
    made_rounds = where(is_full, number(most + 1), made_rounds);
  }
  // All of them are made where none may end the loop and nobody decides whether it is there.
  const bool are_all = !may_end && c.has(0) && c.known(0) && !c.importer().guard();
  const tiny::Dim count = are_all
                              ? tiny::Dim(most)
                              : c.importer().computed_size(made_rounds, tiny::Dim(most), c.node());
  Values out = formed(state, growth ? growth->seen(last, count) : last);
  for (size_t i = 0; i < scanned.size(); ++i) {
    scanned[i].tensor = slice_axis(made.collected[i], 0, 0, count);
    out.push_back(scanned[i]);
  }
  return out;
}

// The same of rounds whose sizes differ, or that find sizes: each is a branch, taken if the
// one before was and said so.
Values loop_of_branches(Call& c, const Loop& loop, int64_t most) {
  const auto flag_of = [](const Tensor& x) { return cast(reshape(x, Shape()), kBool); };
  const Tensor ended = full(c.context(), kBool, {}, 0);
  Tensor goes_on = c.has(1) ? flag_of(c.in(1)) : full(c.context(), kBool, {}, 1);
  Tensor count = full_bits(c.context(), kInt64, {}, 0);
  Values state = state_before(c, loop), like;
  std::vector<Tensors> scanned(loop.scanned);
  for (int64_t round = 0; round < most; ++round) {
    const Tensor number = full_bits(c.context(), kInt64, {}, static_cast<uint64_t>(round));
    if (c.has(0)) goes_on = bit_and(goes_on, less(number, reshape(c.in(0), Shape())));
    LoopRound made;
    std::string failure;
    const auto make = [&] { made = one_round(c, loop, number, state); };
    if (!c.importer().attempt_if(goes_on, make, failure)) c.unsupported(failure);
    check_form(c, state, made.state);
    Tensors yes = flat(made.state), no = flat(state);
    if (!are_of_one_kind(yes, no)) c.unsupported("a loop that changes ranks or types of its state");
    const auto carried = static_cast<ptrdiff_t>(yes.size());
    for (const Value& value : made.scanned) {
      yes.push_back(value.tensor);
      no.push_back(full_bits(c.context(), value.tensor.dtype(), value.tensor.shape(), 0));
    }
    yes.push_back(flag_of(made.condition));
    no.push_back(ended);
    const Tensors chosen = chosen_of(c, goes_on, yes, no);
    count = count + cast(goes_on, kInt64);
    state = formed(state, {chosen.begin(), chosen.begin() + carried});
    for (size_t i = 0; i < scanned.size(); ++i)
      scanned[i].push_back(chosen[static_cast<size_t>(carried) + i]);
    goes_on = chosen.back();
    like = made.scanned;
  }
  if (loop.scanned == 0) return state;
  const tiny::Dim made = c.importer().computed_size(count, tiny::Dim(most), c.node());
  for (size_t i = 0; i < scanned.size(); ++i) {
    like[i].tensor = slice_axis(stack(scanned[i], 0), 0, 0, made);
    state.push_back(like[i]);
  }
  return state;
}

Values unrolled_loop(Call& c, const Loop& loop, int64_t rounds, const std::string& refused = {});

// What an integer or a bool is, or is for the run that asks.
std::optional<int64_t> asked(Call& c, const Tensor& one) {
  if (c.is_known(one)) return static_cast<int64_t>(c.number_of(one, "what it goes on by"));
  const auto found = c.importer().decided(cast(reshape(one, Shape()), kInt64));
  return found ? std::optional(integers_of(*found).at(0)) : std::nullopt;
}

// A loop whose rounds the run counts.
Values counted_loop(Call& c, const Loop& loop) {
  const int64_t most = most_rounds(c);
  const bool is_few = most >= 1 && most <= kBranchedRoundsMax;
  std::optional<Values> made;
  std::string failure, other;  // the first says why
  c.importer().attempt([&] { made = loop_in_run(c, loop, true); }, failure);
  if (!made) c.importer().attempt([&] { made = loop_in_run(c, loop, true, true); }, other);
  if (!made && is_few)
    c.importer().attempt([&] { made = loop_of_branches(c, loop, most); }, failure);
  if (made) return *made;
  // Rounds of any kind, once it is known how many there can be, and of each whether another
  // follows.
  const auto rounds = c.has(0) ? asked(c, c.in(0)) : INT64_MAX;
  const auto begins = c.has(1) ? asked(c, c.in(1)) : 1;
  if (!rounds || !begins) c.unsupported(failure);
  return unrolled_loop(c, loop, *begins == 0 ? 0 : *rounds, failure);
}

// A loop of more rounds than are unrolled; none where its body needs to know of its round what only
// unrolling tells it.
std::optional<Values> long_loop(Call& c, const Loop& loop, int64_t rounds) {
  if (rounds <= kRecurrenceStepsMax)
    if (auto made = loop_by_steps(c, loop, rounds)) return made;
  std::optional<Values> made;
  std::string failure;
  if (rounds > kUnrolledGrowingMax && rounds <= kRecurrenceStepsMax)
    c.importer().attempt([&] { made = loop_in_run(c, loop, false, true); }, failure);
  if (made || rounds <= kRoundsMax || loop.scanned > 0) return made;
  c.importer().attempt([&] { made = loop_in_run(c, loop, false); }, failure);
  return made;
}

// No values like this one, along a new first axis.
Tensor none_of(const Tensor& one) {
  Shape shape = one.shape();
  shape.insert(shape.begin(), tiny::Dim(0));
  return full_bits(one.context_ref(), one.dtype(), shape, 0);
}

// Each round a copy of the body, as long as the conditions are known, or (`refused`: why it can be
// no loop that the run counts) can be asked.
Values unrolled_loop(Call& c, const Loop& loop, int64_t rounds, const std::string& refused) {
  Values state = state_before(c, loop);
  std::vector<Tensors> scanned(loop.scanned);
  Values like(loop.scanned);
  bool goes_on = true;
  for (int64_t round = 0; goes_on && round < rounds; ++round) {
    if (round >= kRoundsMax && loop.scanned > 0)
      c.unsupported("a loop of ", rounds, " rounds that collects values; at most ",
                    kRecurrenceStepsMax, " can be, or ", kRoundsMax,
                    " where each is different or may be the last");
    const Tensor number = full_bits(c.context(), kInt64, {}, static_cast<uint64_t>(round));
    const LoopRound made = one_round(c, loop, number, state);
    const bool is_known = round < kRoundsMax && c.is_known(made.condition);
    if (!is_known && refused.empty()) return counted_loop(c, loop);
    const auto follows = asked(c, made.condition);
    if (!follows) c.unsupported(refused);
    goes_on = *follows != 0;
    state = made.state;
    like = made.scanned;
    for (size_t i = 0; i < scanned.size(); ++i) scanned[i].push_back(made.scanned[i].tensor);
  }
  // What a round would collect says what none do.
  if (rounds <= 0 && loop.scanned > 0)
    like = one_round(c, loop, full_bits(c.context(), kInt64, {}, 0), state).scanned;
  for (size_t i = 0; i < scanned.size(); ++i) {
    like[i].tensor = scanned[i].empty() ? none_of(like[i].tensor) : stack(scanned[i], 0);
    state.push_back(like[i]);
  }
  return state;
}

Tensors import_loop(Call& c) {
  const Graph& body = c.graph_attr("body");
  const size_t carried = c.node().inputs.size() > 2 ? c.node().inputs.size() - 2 : 0;
  c.check(body.outputs.size() >= 1 + carried && c.outputs() <= body.outputs.size() - 1,
          "its body has ", body.outputs.size(), " outputs");
  const Loop loop{body, carried, body.outputs.size() - 1 - carried};
  if ((c.has(0) && !c.known(0)) || (c.has(1) && !c.known(1))) return give(c, counted_loop(c, loop));
  const bool begins = !c.has(1) || c.integer(1) != 0;
  const int64_t rounds = !begins ? 0 : c.has(0) ? c.integer(0) : INT64_MAX;
  if (rounds > 0)
    if (const auto made = long_loop(c, loop, rounds)) return give(c, *made);
  return give(c, unrolled_loop(c, loop, rounds));
}

// A step of a scan: what its inputs carry is what the node's from `first` on do, and what its
// outputs carry the node's.
Tensors scan_step(Call& c, const Graph& body, const Tensors& inputs, size_t first = 0) {
  Values values;
  for (size_t i = 0; i < inputs.size(); ++i)
    values.push_back({.tensor = inputs[i], .carried = c.carried(first + i)});
  Tensors out;
  for (const Value& made : c.importer().subgraph(body, values)) {
    require(made.tensor && !made.columns, Status::Unsupported, "its graph makes what is no tensor");
    c.set_carried(out.size(), made.carried);
    out.push_back(made.tensor);
  }
  return out;
}

// The same, whose random numbers are those of its number.
Tensors drawing_step(Call& c, const Graph& body, const Tensor& number, const Tensors& inputs,
                     size_t first = 0) {
  Tensors made;
  c.importer().in_round(number, [&] { made = scan_step(c, body, inputs, first); });
  return made;
}

// Version 9 and later: (carried.., scanned..) to (carried.., collected..), along chosen axes.
Tensors import_scan(Call& c) {
  const Graph& body = c.graph_attr("body");
  const int64_t scans = c.attr("num_scan_inputs");
  const auto all = static_cast<int64_t>(c.inputs());
  c.check(scans > 0 && scans <= all, "num_scan_inputs = ", scans, " of ", all, " inputs");
  const auto carried = static_cast<size_t>(all - scans);
  c.check(body.outputs.size() >= carried && c.outputs() <= body.outputs.size(), "its body has ",
          body.outputs.size(), " outputs");
  const size_t collects = body.outputs.size() - carried;
  const auto listed = [&](const char* name, size_t count) {
    const Ints values = c.ints_attr(name, Ints(count, 0));
    c.check(values.size() == count, "the attribute ", name, " has ", values.size(), " values");
    return values;
  };
  Ints in_axes = listed("scan_input_axes", static_cast<size_t>(scans));
  for (size_t i = 0; i < in_axes.size(); ++i)
    in_axes[i] = carrier_axis(in_axes[i], c.carried(carried + i));
  const Ints in_back = listed("scan_input_directions", static_cast<size_t>(scans));
  const Ints out_axes = listed("scan_output_axes", collects);
  const Ints out_back = listed("scan_output_directions", collects);
  // Where the steps are in an output of this rank, once one has been made.
  const auto out_axis = [&](size_t i, int64_t rank) {
    return axis_of(carrier_axis(out_axes[i], c.made(carried + i).carried), rank);
  };
  const Tensor& first = c.in(carried);
  Recurrence loop{first.shape()[static_cast<size_t>(axis_of(in_axes[0], first.rank()))],
                  {},
                  {},
                  {out_back.begin(), out_back.end()}};
  for (size_t i = 0; i < carried; ++i) loop.state.push_back(c.in(i));
  for (size_t i = 0; i < static_cast<size_t>(scans); ++i)
    loop.sequences.push_back({c.in(carried + i), in_axes[i], in_back[i] != 0});
  // Which step it is only random numbers ask.
  const bool draws = draws_numbers(body);
  if (draws) loop.sequences.push_back({positions(c.context(), kInt64, loop.steps, 0, 1)});
  const auto step = [&](const RecurrenceStep& now) {
    Tensors inputs = now.state;
    inputs.insert(inputs.end(), now.inputs.begin(), now.inputs.begin() + scans);
    const Tensors made =
        draws ? drawing_step(c, body, now.inputs.back(), inputs) : scan_step(c, body, inputs);
    const auto collected = made.begin() + static_cast<int64_t>(carried);
    return RecurrenceResult{{collected, made.end()}, {made.begin(), collected}};
  };
  if (const auto made = as_loop(c, loop, step)) {
    Tensors out = made->state;
    for (size_t i = 0; i < collects; ++i)
      out.push_back(move_axis(made->outputs[i], 0, out_axis(i, made->outputs[i].rank())));
    return out;
  }
  const int64_t rounds = dim_of(first, axis_of(in_axes[0], first.rank()));
  if (rounds > kRoundsMax) c.unsupported("a scan of more than ", kRoundsMax, " rounds");
  Tensors state;
  for (size_t i = 0; i < carried; ++i) state.push_back(c.in(i));
  std::vector<Tensors> collected(collects);
  for (int64_t round = 0; round < rounds; ++round) {
    Tensors inputs = state;
    for (size_t i = 0; i < static_cast<size_t>(scans); ++i) {
      const Tensor& x = c.in(carried + i);
      const int64_t axis = axis_of(in_axes[i], x.rank());
      c.check(dim_of(x, axis) == rounds, "its scanned inputs differ in length");
      const int64_t at = in_back[i] ? rounds - 1 - round : round;
      inputs.push_back(squeeze(slice_axis(x, axis, at, at + 1), {axis}));
    }
    const Tensor number = full_bits(c.context(), kInt64, {}, static_cast<uint64_t>(round));
    const Tensors results = drawing_step(c, body, number, inputs);
    state.assign(results.begin(), results.begin() + static_cast<int64_t>(carried));
    for (size_t i = 0; i < collects; ++i) {
      Tensors& list = collected[i];
      list.insert(out_back[i] ? list.begin() : list.end(), results[carried + i]);
    }
  }
  if (rounds == 0 && collects > 0) {
    // What a step would collect says what none do.
    Tensors inputs = state;
    for (size_t i = 0; i < static_cast<size_t>(scans); ++i) {
      const Tensor& x = c.in(carried + i);
      Shape shape = x.shape();
      shape.erase(shape.begin() + axis_of(in_axes[i], x.rank()));
      inputs.push_back(full_bits(c.context(), x.dtype(), shape, 0));
    }
    const Tensors like = scan_step(c, body, inputs);
    for (size_t i = 0; i < collects; ++i) {
      const Tensor none = none_of(like[carried + i]);
      state.push_back(move_axis(none, 0, out_axis(i, none.rank())));
    }
    return state;
  }
  for (size_t i = 0; i < collects; ++i) {
    const int64_t rank = collected[i][0].rank() + 1;
    state.push_back(stack(collected[i], out_axis(i, rank)));
  }
  return state;
}

// Version 8: a scan for each element of a batch, which is the first axis of all; the second of what
// is scanned has the steps, of which lengths may say how many count.
Tensors import_scan_of_batch(Call& c) {
  const Graph& body = c.graph_attr("body");
  const int64_t scans = c.attr("num_scan_inputs");
  const auto all = static_cast<int64_t>(c.inputs()) - 1;
  c.check(scans > 0 && scans <= all, "num_scan_inputs = ", scans, " of ", all, " inputs");
  const auto carried = static_cast<size_t>(all - scans);
  c.check(body.outputs.size() >= carried && c.outputs() <= body.outputs.size(), "its body has ",
          body.outputs.size(), " outputs");
  const Ints back = c.ints_attr("directions", Ints(static_cast<size_t>(scans), 0));
  c.check(std::ssize(back) == scans, "the attribute directions has ", back.size(), " values");
  if (c.has(0) && std::ranges::count(back, 0) < scans)
    c.unsupported("a scan from the end of sequences that have lengths");
  const Tensor& first = c.in(1 + carried);
  const int64_t batch = dim_of(first, 0);
  c.check(batch > 0 && batch <= kRoundsMax, "a batch of ", batch);
  std::vector<Tensors> made(body.outputs.size());
  for (int64_t b = 0; b < batch; ++b) {
    const auto own = [&](const Tensor& x) { return squeeze(slice_axis(x, 0, b, b + 1), {0}); };
    Recurrence loop{size_of(first, 1), {}, {}, {}};
    for (size_t i = 0; i < carried; ++i) loop.state.push_back(own(c.in(1 + i)));
    for (size_t i = 0; i < static_cast<size_t>(scans); ++i)
      loop.sequences.push_back({own(c.in(1 + carried + i)), 0, back[i] != 0});
    loop.sequences.push_back({positions(c.context(), kInt64, loop.steps, 0, 1)});
    const auto step = [&](const RecurrenceStep& now) {
      const Tensor& number = now.inputs.back();
      Tensors inputs = now.state;
      inputs.insert(inputs.end(), now.inputs.begin(), now.inputs.end() - 1);
      Tensors results = drawing_step(c, body, number, inputs, 1);
      // Behind its length a state stays, and what is collected is 0.
      for (size_t i = 0; c.has(0) && i < results.size(); ++i) {
        const Tensor counts = less(number, cast(own(c.in(0)), kInt64));
        const Tensor other = i < carried ? now.state[i] : tiny::number_int(results[i], 0);
        results[i] = where(counts, results[i], other);
      }
      const auto collected = results.begin() + static_cast<int64_t>(carried);
      return RecurrenceResult{{collected, results.end()}, {results.begin(), collected}};
    };
    RecurrenceResult result;
    c.importer().in_round(full_bits(c.context(), kInt64, {}, static_cast<uint64_t>(b)),
                          [&] { result = recur(c.context(), loop, step); });
    result.state.insert(result.state.end(), result.outputs.begin(), result.outputs.end());
    for (size_t i = 0; i < made.size(); ++i) made[i].push_back(result.state[i]);
  }
  Tensors out;
  for (const Tensors& parts : made) out.push_back(stack(parts, 0));
  return out;
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"If",   1, kNow, import_if,   operand(0)},
    {"Loop", 1, kNow, import_loop, operand(0) | operand(1)},
    {"Scan", 8, 8,    import_scan_of_batch},
    {"Scan", 9, kNow, import_scan},
};
// clang-format on

}  // namespace

std::span<const Row> control_rows() {
  return kRows;
}

}  // namespace tiny::onnx
