#include "engine/program_record.h"

#include <algorithm>
#include <list>
#include <unordered_map>

#include "base/bytes.h"
#include "engine/copied_constant.h"
#include "engine/observe.h"
#include "engine/plan_graph.h"
#include "engine/stored.h"

namespace tiny {

namespace {

void write_numbers(ByteWriter& out, const std::vector<uint32_t>& numbers) {
  out.number(static_cast<uint32_t>(numbers.size()));
  for (uint32_t n : numbers) out.number(n);
}

// None if one is not below the limit.
bool read_numbers(ByteReader& in, size_t limit, std::vector<uint32_t>& out) {
  for (auto n = in.number<uint32_t>(); n > 0 && in.good(); --n)
    out.push_back(in.number<uint32_t>());
  return in.good() && std::ranges::all_of(out, [&](uint32_t n) { return n < limit; });
}

bool read_step(ByteReader& in, size_t& values, ProgramRecord::Step& step) {
  step.plan = in.text();
  if (!read_numbers(in, values, step.leaves)) return false;
  step.results = in.number<uint32_t>();
  const size_t before = values;
  if (step.results > UINT32_MAX / 2 - values) return false;
  if (step.plan.empty() && (step.leaves.size() != 1 || step.results != 1)) return false;
  values += step.results;
  for (auto n = in.number<uint32_t>(); n > 0 && in.good(); --n) {
    ProgramRecord::Derived& d = step.derived.emplace_back();
    d.value = in.number<uint32_t>();
    d.origin = in.number<uint32_t>();
    d.recipe = in.text();
    const bool is_result = d.value >= before && d.value < values;
    if ((d.value != ProgramRecord::kNone && !is_result) || d.origin >= before) return false;
  }
  return in.good();
}

using Storages = std::vector<Ref<Storage>>;

Storages picked(const Storages& values, const std::vector<uint32_t>& numbers) {
  Storages out;
  for (uint32_t n : numbers) out.push_back(values[n]);
  return out;
}

// The results of a step, if all of them are kept with their origins already.
bool find_derived(const ProgramRecord::Step& step, Storages& values) {
  if (step.derived.size() < step.results) return false;
  const size_t begin = values.size();
  Storages found(step.results);
  for (const ProgramRecord::Derived& d : step.derived)
    if (d.value != ProgramRecord::kNone)
      found[d.value - begin] = values[d.origin]->derived(d.recipe);
  if (!std::ranges::all_of(found, [](const Ref<Storage>& s) { return static_cast<bool>(s); }))
    return false;
  values.insert(values.end(), found.begin(), found.end());
  return true;
}

void keep(const ProgramRecord::Step& step, const Storages& values) {
  for (const ProgramRecord::Derived& d : step.derived) {
    if (d.value != ProgramRecord::kNone) values[d.origin]->keep_derived(d.recipe, values[d.value]);
    values[d.origin]->unload();
  }
}

}  // namespace

std::string encode_record(const ProgramRecord& record) {
  ByteWriter out;
  out.number(static_cast<uint32_t>(record.steps.size()));
  for (const ProgramRecord::Step& step : record.steps) {
    out.text(step.plan);
    write_numbers(out, step.leaves);
    out.number(step.results).number(static_cast<uint32_t>(step.derived.size()));
    for (const ProgramRecord::Derived& d : step.derived)
      out.number(d.value).number(d.origin).text(d.recipe);
  }
  out.text(record.plan);
  write_numbers(out, record.leaves);
  write_numbers(out, record.origins);
  out.number(static_cast<uint32_t>(record.files.size()));
  for (const auto& [name, content] : record.files) out.text(name).text(content);
  return out.result();
}

std::optional<ProgramRecord> decode_record(std::string_view bytes, size_t leaves) {
  ByteReader in(bytes);
  ProgramRecord record;
  size_t values = leaves;
  for (auto n = in.number<uint32_t>(); n > 0 && in.good(); --n)
    if (!read_step(in, values, record.steps.emplace_back())) return std::nullopt;
  record.plan = in.text();
  if (!read_numbers(in, values, record.leaves)) return std::nullopt;
  if (!read_numbers(in, SIZE_MAX, record.origins)) return std::nullopt;
  for (auto n = in.number<uint32_t>(); n > 0 && in.good(); --n) {
    const std::string_view name = in.text();
    record.files.emplace_hint(record.files.end(), name, in.text());
  }
  if (!in.at_end()) return std::nullopt;
  return record;
}

ProgramRecorder::ProgramRecorder(const DiskCache& disk, const GraphKey& graph)
    : disk_(disk), origins_(graph.origins) {
  // Of leaves with the same memory each stands for the others.
  for (const UOp& leaf : graph.leaves) {
    held_.push_back(storage_of(leaf));
    numbers_.try_emplace(held_.back().get(), static_cast<uint32_t>(held_.size() - 1));
  }
}

uint32_t ProgramRecorder::number_of(const Ref<Storage>& storage) {
  const auto at = numbers_.find(storage.get());
  if (at != numbers_.end()) return at->second;
  give_up();
  return ProgramRecord::kNone;
}

std::vector<uint32_t> ProgramRecorder::numbers_of(std::span<const Ref<Storage>> storages) {
  std::vector<uint32_t> out;
  for (const Ref<Storage>& s : storages) out.push_back(number_of(s));
  return out;
}

void ProgramRecorder::add(const Realized& made, std::span<const Kept> kept) {
  if (made.plan.empty()) give_up();
  if (!is_whole_) return;
  ProgramRecord::Step step;
  step.plan = disk_.name_of(made.plan);
  step.leaves = numbers_of(made.leaves);
  add_step(std::move(step), made.results, kept);
}

void ProgramRecorder::add_copy(const Kept& copy) {
  if (!is_whole_) return;
  ProgramRecord::Step step;
  step.leaves = {number_of(copy.origin)};
  add_step(std::move(step), {&copy.value, 1}, {&copy, 1});
}

void ProgramRecorder::add_step(ProgramRecord::Step step, std::span<const Ref<Storage>> results,
                               std::span<const Kept> kept) {
  step.results = static_cast<uint32_t>(results.size());
  for (const Ref<Storage>& result : results) {
    held_.push_back(result);
    numbers_.try_emplace(result.get(), static_cast<uint32_t>(held_.size() - 1));
  }
  for (const Kept& k : kept)
    step.derived.push_back(
        {k.value ? number_of(k.value) : ProgramRecord::kNone, number_of(k.origin), k.recipe});
  record_.steps.push_back(std::move(step));
}

void ProgramRecorder::finish(const std::string& plan, std::span<const Ref<Storage>> leaves,
                             std::span<const Origin> origins) {
  if (plan.empty()) give_up();
  std::unordered_map<Origin, uint32_t> numbers;
  for (const Origin origin : origins_)
    numbers.emplace(origin, static_cast<uint32_t>(numbers.size()));
  for (const Origin origin : origins) {
    const auto at = numbers.find(origin);
    record_.origins.push_back(at == numbers.end() ? ProgramRecord::kNone : at->second);
  }
  record_.plan = disk_.name_of(plan);
  record_.leaves = numbers_of(leaves);
}

std::optional<std::string> ProgramRecorder::encoded() {
  if (!is_whole_) return std::nullopt;
  std::list<DiskContent> kept;
  std::list<std::string> names;
  const auto add = [&](const std::string& name) -> std::string_view {
    if (const auto known = record_.files.find(name); known != record_.files.end())
      return known->second;
    auto content = disk_.find_named(name);
    if (!content) return {};
    const std::string_view view = kept.emplace_back(std::move(*content)).view();
    record_.files.emplace(names.emplace_back(name), view);
    return view;
  };
  const auto add_plan = [&](const std::string& name) {
    if (name.empty()) return;
    if (const auto plan = decode_plan(add(name), SIZE_MAX, SIZE_MAX))
      for (const std::string& kernel : plan->kernels) add(kernel);
  };
  for (const ProgramRecord::Step& step : record_.steps) add_plan(step.plan);
  add_plan(record_.plan);
  std::string bytes = encode_record(record_);
  record_.files.clear();
  return bytes;
}

std::optional<Plan> replay(Context& context, const ProgramRecord& record, const GraphKey& graph) {
  Storages values;
  for (const UOp& leaf : graph.leaves) values.push_back(storage_of(leaf));
  for (const ProgramRecord::Step& step : record.steps) {
    if (find_derived(step, values)) continue;
    if (step.plan.empty()) {
      values.push_back(copy_and_unload(context, *values[step.leaves.front()]));
      keep(step, values);
      continue;
    }
    auto plan = stored_plan(context, step.plan, picked(values, step.leaves), record.files);
    if (!plan || plan->outputs != int64_t{step.results}) return std::nullopt;
    const Storages results = run_once(context, std::move(*plan), Placement::Together);
    values.insert(values.end(), results.begin(), results.end());
    keep(step, values);
  }
  auto plan = stored_plan(context, record.plan, picked(values, record.leaves), record.files);
  if (!plan) return plan;
  ++context.observer().compiles().programs_on_disk;
  std::vector<Origin> origins;
  for (const uint32_t at : record.origins)
    origins.push_back(at < graph.origins.size() ? graph.origins[at] : kNobody);
  plan->names = origin_texts(context, origins);
  return plan;
}

}  // namespace tiny
