// Sequences of tensors, whose lengths are known when the model is compiled, and optional values,
// which are there or not.
#include "base/checked.h"
#include "base/error.h"
#include "engine/host_room.h"
#include "onnx/import/functions.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/joining.h"
#include "tensor/movement.h"

namespace tiny::onnx {

namespace {

constexpr int64_t kBytesOfPart = 512;  // of a view and what names it, about

// A position in a sequence of `count`, counted from the front.
size_t place_in(const Call& c, size_t input, size_t count) {
  const auto n = static_cast<int64_t>(count);
  const int64_t at = c.integer(input);
  c.check(at >= -n && at < n, "position ", at, " of a sequence of ", n);
  return static_cast<size_t>(at < 0 ? at + n : at);
}

Tensors import_construct(Call& c) {
  c.set_sequence(0, c.all());
  return {};
}

Tensors import_empty(Call& c) {
  Value value;
  value.sequence = std::make_shared<const Tensors>();
  const int64_t type = c.type_attr("dtype", 0);
  if (type == kTextType || is_complex(type)) value.carried = static_cast<int32_t>(type);
  return give(c, {value});
}

Tensors import_at(Call& c) {
  return {c.sequence(0)[place_in(c, 1, c.sequence(0).size())]};
}

Tensors import_insert(Call& c) {
  Tensors all = c.sequence(0);
  // One more place than elements: behind the last, which is also the default.
  const auto n = static_cast<int64_t>(all.size());
  int64_t at = c.has(2) ? c.integer(2) : n;
  c.check(at >= -n && at <= n, "position ", at, " of a sequence of ", n);
  if (at < 0) at += n;
  all.insert(all.begin() + at, c.in(1));
  c.set_sequence(0, std::move(all));
  return {};
}

Tensors import_erase(Call& c) {
  Tensors all = c.sequence(0);
  c.check(!all.empty(), "an empty sequence");
  const size_t at = c.has(1) ? place_in(c, 1, all.size()) : all.size() - 1;
  all.erase(all.begin() + static_cast<int64_t>(at));
  c.set_sequence(0, std::move(all));
  return {};
}

Tensors import_length(Call& c) {
  return {full_bits(c.context(), kInt64, {}, c.sequence(0).size())};
}

Tensors import_concat(Call& c) {
  const Tensors& parts = c.sequence(0);
  c.check(!parts.empty(), "an empty sequence");
  const bool is_new = c.flag("new_axis", false);
  const int64_t axis = axis_of(c.attr("axis"), parts[0].rank() + (is_new ? 1 : 0));
  return {is_new ? stack(parts, axis) : concat(parts, axis)};
}

// Parts of one size (the last may be smaller), of given sizes, or single elements.
Tensors import_split(Call& c) {
  const Tensor& x = c.in(0);
  const int64_t axis = axis_of(c.attr("axis", 0), x.rank());
  const int64_t n = dim_of(x, axis);
  Ints sizes;
  int64_t part = 1;
  if (c.has(1)) {
    const HostTensor given = c.value(1);
    sizes = c.ints(1);
    if (given.shape.empty()) {
      part = sizes.at(0);
      sizes.clear();
    }
  }
  c.check(part > 0, "parts of ", part, " elements");
  if (sizes.empty()) {
    HostRoom room(*c.context(), ceil_div(n, part), kBytesOfPart);
    for (int64_t at = 0; at < n; at += part) {
      room.check();
      sizes.push_back(std::min(part, n - at));
    }
  }
  Tensors parts = split(x, sizes, axis);
  if (!c.has(1) && !c.flag("keepdims", true))
    for (Tensor& t : parts) t = squeeze(t, {axis});
  c.set_sequence(0, std::move(parts));
  return {};
}

// The body for every element of the first sequence; other inputs are sequences of the same length
// or tensors that all share.
Tensors import_map(Call& c) {
  const Graph& body = c.graph_attr("body");
  const size_t count = c.sequence(0).size();
  std::vector<Tensors> made(body.outputs.size());
  Ints types(body.outputs.size());
  for (size_t n = 0; n < count; ++n) {
    Values inputs;
    for (size_t i = 0; i < c.inputs(); ++i) {
      Value& input = inputs.emplace_back(c.input(i));
      if (!c.is_sequence(i)) continue;
      c.check(c.sequence(i).size() == count, "sequences of ", count, " and ", c.sequence(i).size());
      input.sequence = nullptr;
      input.tensor = c.sequence(i)[n];
    }
    Values results;
    c.importer().in_round(full_bits(c.context(), kInt64, {}, n),
                          [&] { results = c.importer().subgraph(body, inputs); });
    for (size_t i = 0; i < results.size(); ++i) {
      c.check(static_cast<bool>(results[i].tensor), "its body makes what is no tensor");
      made[i].push_back(results[i].tensor);
      types[i] = results[i].carried;
    }
  }
  Values sequences(made.size());
  for (size_t i = 0; i < made.size(); ++i) {
    sequences[i].sequence = std::make_shared<const Tensors>(std::move(made[i]));
    sequences[i].carried = static_cast<int32_t>(types[i]);
  }
  return give(c, sequences);
}

// ---- Optional values.

Tensors import_has_element(Call& c) {
  return {full(c.context(), kBool, {}, c.has(0) ? 1 : 0)};
}

Tensors import_get_element(Call& c) {
  c.check(c.has(0), "the optional value is not there");
  return give(c, {c.input(0)});
}

Tensors import_optional(Call& c) {
  c.pass_over({"type"});
  return give(c, {c.has(0) ? c.input(0) : Value{.is_nothing = true}});
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"SequenceConstruct",  11, kNow, import_construct},
    {"SequenceEmpty",      11, kNow, import_empty},
    {"SequenceAt",         11, kNow, import_at, operand(1)},
    {"SequenceInsert",     11, kNow, import_insert, operand(2)},
    {"SequenceErase",      11, kNow, import_erase, operand(1)},
    {"SequenceLength",     11, kNow, import_length},
    {"SequenceMap",        17, kNow, import_map},
    {"ConcatFromSequence", 11, kNow, import_concat},
    {"SplitToSequence",    11, kNow, import_split, operand(1)},
    {"Optional",           15, kNow, import_optional},
    {"OptionalHasElement", 15, kNow, import_has_element},
    {"OptionalGetElement", 15, kNow, import_get_element},
};
// clang-format on

}  // namespace

std::span<const Row> sequence_rows() {
  return kRows;
}

}  // namespace tiny::onnx
