#include "onnx/free_sizes.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace tiny::onnx {

namespace {

// Variables begin here: a size of 0 or 1 is a number.
constexpr int64_t kVariableMin = 2;
// The greatest value of a variable is a power of two, at least this.
constexpr int64_t kVariableMax = 256;
// The same of a batch, the first of so many axes or more: costs are weighed at the greatest value,
// and what is laid out for 256 pictures takes a hundred times as long for two.
constexpr int64_t kBatchMax = 8;
constexpr size_t kBatchAxesMin = 3;
// After so many relations that did not last a dimension is what it is: each cost a program.
constexpr int kDroppedMax = 3;
// At so many sizes everything is tried: one picture of an odd size says nothing of the others.
constexpr int kGivenUpMax = 3;

// The sizes that a program is for: multiples of `step`.
struct Room {
  int64_t min, max, step;
  bool operator==(const Room&) const = default;
};

// What is tried, one after the other: a table of 2^k rows serves what was there before and one
// more; what is sorted is laid out for all that there may be, no more than twice those that there
// are; what is halved again and again has to be long enough, and is met by what was not halved
// where it is a multiple.
constexpr int kLevelMax = 7;

// `most`: the usual greatest value.
Room room_of(int64_t value, int64_t most, int level) {
  constexpr int64_t kStepMax = 32;  // a detector's coarsest map has a 32nd of the picture's rows
  constexpr int64_t kOctaves = 4;   // as much less as there may be
  const auto bits = static_cast<uint64_t>(value);
  const auto below = static_cast<int64_t>(std::bit_floor(bits));
  const int64_t twice = 2 * below;
  const int64_t step = std::min(value & -value, kStepMax);
  const Room rooms[kLevelMax + 1] = {
      {0, most, 1},         {0, most - 1, 1},     {below / kOctaves, most, 1},
      {below, most, 1},     {below, twice, 1},    {below / kOctaves, most, step},
      {below, twice, step}, {below, twice - 1, 1}};
  const Room& room = rooms[level];
  return {std::max(room.min, kVariableMin), std::max(room.max, value), room.step};
}

}  // namespace

bool FreeSizes::is_batch(const FreeDim& dim) {
  return dim.is_first && dim.axes >= kBatchAxesMin;
}

// Its name in the model, if that stands for one size.
std::string FreeSizes::name_of(size_t input, size_t axis) const {
  const ValueInfo& info = inputs_[input];
  const std::string& name = info.type.dims[axis].name;
  return name.empty() || apart_.contains(name) ? cat(info.name, ".", axis) : name;
}

FreeSizes::FreeDims FreeSizes::free_dims(const std::vector<Ints>& shapes,
                                         const std::vector<bool>& is_known) const {
  FreeDims out;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!inputs_[i].type.has_rank) continue;
    for (size_t k = 0; k < shapes[i].size(); ++k) {
      if (inputs_[i].type.dims[k].is_known()) continue;
      const std::string name = name_of(i, k);
      FreeDim& dim = out.try_emplace(name, FreeDim{shapes[i][k]}).first->second;
      dim.is_first = dim.is_first && k == 0;
      dim.axes = std::max(dim.axes, shapes[i].size());
      // Elements that are known have a known count.
      if (shapes[i][k] < kVariableMin || (!is_known.empty() && is_known[i]))
        dim.is_variable = false;
    }
  }
  bound(out);
  return out;
}

// Lengths that grow together (all of a text, and what there was of it before) outgrow a program
// together.
void FreeSizes::bound(FreeDims& dims) {
  int64_t greatest = 0;
  for (auto& [name, dim] : dims) {
    const auto next = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(dim.value)));
    dim.most = std::max(is_batch(dim) ? kBatchMax : kVariableMax, next);
    if (dim.is_variable && !is_batch(dim)) greatest = std::max(greatest, dim.most);
  }
  for (auto& [name, dim] : dims)
    if (!is_batch(dim) && 2 * dim.most == greatest) dim.most = greatest;
}

void FreeSizes::learn(const std::vector<Ints>& shapes) {
  // A model may use one name for whatever it does not know.
  std::map<std::string_view, int64_t> sizes;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!inputs_[i].type.has_rank) continue;
    for (size_t k = 0; k < shapes[i].size(); ++k) {
      const Dim& dim = inputs_[i].type.dims[k];
      if (dim.is_known() || dim.name.empty()) continue;
      const auto [at, is_new] = sizes.try_emplace(dim.name, shapes[i][k]);
      if (!is_new && at->second != shapes[i][k]) apart_.insert(dim.name);
    }
  }
  const FreeDims dims = free_dims(shapes, {});
  std::vector<std::string> over;
  for (const auto& [name, relation] : relations_)
    if (!holds(name, relation, dims)) over.push_back(name);
  for (const std::string& name : over) drop(name);
  for (auto& [candidates, found] : found_)
    for (const auto& [name, times] : found.given_up)
      if (times < kGivenUpMax && found.numbers.erase(name) > 0) found.levels.erase(name);
}

bool FreeSizes::holds(const std::string& name, const Relation& relation,
                      const FreeDims& dims) const {
  int64_t sum = relation.more;
  for (const std::string& term : relation.terms) {
    const auto at = dims.find(term);
    if (at == dims.end()) return false;
    sum += at->second.value;
  }
  const auto at = dims.find(name);
  return at != dims.end() && at->second.value == sum;
}

FreeSizes::Choice FreeSizes::choose(tiny::Graph& graph, const std::vector<Ints>& shapes,
                                    const std::vector<bool>& is_known) const {
  Choice out;
  out.key = shapes;
  const FreeDims dims = free_dims(shapes, is_known);
  for (const auto& [name, dim] : dims)
    if (dim.is_variable) out.candidates.insert(name);
  // As if they were an axis behind the last.
  for (size_t i = 0; i < is_known.size(); ++i)
    if (is_known[i]) out.candidates.insert(cat(inputs_[i].name, ".", shapes[i].size()));
  const auto at = found_.find(out.candidates);
  const Found found = at == found_.end() ? Found() : at->second;
  std::map<std::string_view, tiny::Dim> sizes;
  for (const auto& [name, dim] : dims) {
    if (dim.is_variable && relations_.contains(name)) continue;
    if (!dim.is_variable || found.numbers.contains(name)) {
      sizes.emplace(name, dim.value);
      continue;
    }
    const auto level = found.levels.find(name);
    const Room room = room_of(dim.value, dim.most, level == found.levels.end() ? 0 : level->second);
    const int64_t least = (room.min + room.step - 1) / room.step, most = room.max / room.step;
    if (least == most) {
      sizes.emplace(name, dim.value);
      continue;
    }
    const bool is_step = room.step > 1;
    out.variables.push_back(
        graph.variable(is_step ? cat(name, "/", room.step) : name, least, most));
    out.names.push_back(name);
    sizes.emplace(name, tiny::Dim(out.variables.back()) * tiny::Dim(room.step));
  }
  for (const auto& [name, relation] : relations_) {
    if (sizes.contains(name) || !dims.contains(name)) continue;
    tiny::Dim sum = relation.more;
    for (const std::string& term : relation.terms) sum = sum + sizes.at(term);
    sizes.emplace(name, sum);
    out.has_relations = true;
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    out.shapes.push_back(to_shape(shapes[i]));
    if (!inputs_[i].type.has_rank) continue;
    for (size_t k = 0; k < shapes[i].size(); ++k) {
      if (inputs_[i].type.dims[k].is_known()) continue;
      const tiny::Dim& size = sizes.at(name_of(i, k));
      out.shapes[i][k] = size;
      if (!size.is_const()) out.key[i][k] = kFree;
    }
  }
  return out;
}

// How this dimension may follow from others, one of which was asked about with it: it is another
// one, or the sum of two, or the next number.
std::optional<FreeSizes::Relation> FreeSizes::relation_of(const std::string& name,
                                                          const std::set<std::string>& asked,
                                                          const FreeDims& dims) const {
  const auto of_itself = [&](const std::string& term) {
    return term != name && !relations_.contains(term);
  };
  const int64_t value = dims.at(name).value;
  std::vector<std::string> others;  // asked about, that a run gives
  for (const std::string& other : asked)
    if (of_itself(other) && dims.contains(other) && dims.at(other).is_variable)
      others.push_back(other);
  for (const std::string& other : others)
    if (dims.at(other).value == value) return Relation{{other}};
  for (const bool is_batch : {false, true})  // where both would do, a length is meant
    for (const std::string& other : others)
      for (const auto& [more, dim] : dims)
        if (of_itself(more) && more != other && dim.value > 0 && dim.is_first == is_batch &&
            dims.at(other).value + dim.value == value)
          return Relation{{other, more}};
  for (const std::string& other : others)
    if (dims.at(other).value + 1 == value) return Relation{{other}, 1};
  return std::nullopt;
}

FreeSizes::Answer FreeSizes::decide(const FreeDimension& question, const Choice& choice,
                                    const std::vector<Ints>& shapes) {
  std::set<std::string> asked;
  for (size_t i = 0; i < choice.variables.size(); ++i)
    if (std::ranges::find(question.variables(), choice.variables[i].variable_arg().name) !=
        question.variables().end())
      asked.insert(choice.names[i]);
  if (asked.empty()) return Answer::None;
  const FreeDims dims = free_dims(shapes, {});
  for (const std::string& name : asked) {
    const bool is_term = std::ranges::any_of(relations_, [&](const auto& of) {
      return std::ranges::find(of.second.terms, name) != of.second.terms.end();
    });
    if (is_term || dropped_[name] >= kDroppedMax) continue;
    if (auto relation = relation_of(name, asked, dims)) {
      relations_.emplace(name, std::move(*relation));
      return Answer::Again;
    }
  }
  Found& found = found_[choice.candidates];
  if (!std::exchange(found.had_sizes, true)) return Answer::Later;
  bool is_less = false;
  for (const std::string& name : asked) {
    const FreeDim& dim = dims.at(name);
    const auto room = [&](int level) { return room_of(dim.value, dim.most, level); };
    int& level = found.levels[name];
    const Room before = room(level);
    while (level < kLevelMax && room(level) == before) ++level;
    is_less |= room(level) != before;
  }
  if (is_less) return Answer::Again;
  for (const std::string& name : asked) {
    found.numbers.insert(name);
    ++found.given_up[name];
  }
  return Answer::Again;
}

void FreeSizes::drop(const std::string& name) {
  relations_.erase(name);
  ++dropped_[name];
}

void FreeSizes::drop_relations() {
  while (!relations_.empty()) drop(relations_.begin()->first);
}

void FreeSizes::make_numbers(const Choice& choice) {
  found_[choice.candidates].numbers.insert(choice.names.begin(), choice.names.end());
}

}  // namespace tiny::onnx
