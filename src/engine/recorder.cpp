#include "engine/recorder.h"

#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "engine/option_lists.h"
#include "engine/program.h"
#include "ir/nest.h"
#include "ir/tree.h"
#include "schedule/schedule.h"
#include "shape/shape.h"

namespace tiny {

namespace {

constexpr size_t kBytesMax = size_t{96} << 20;
// Of a graph that is drawn: those nearest to the outputs.
constexpr size_t kNodesMax = 1500;
// Between two passes.
constexpr size_t kRewritesMax = 2000;
constexpr size_t kTextMax = 1200;

std::string cut(std::string text) {
  if (text.size() > kTextMax) text = text.substr(0, kTextMax) + " ..";
  return text;
}

// The members of an object, without its braces.
std::string members(const JsonWriter& json) {
  const std::string& text = json.result();
  return text.substr(1, text.size() - 2);
}

std::string list_of(const std::vector<std::string>& values) {
  return "[" + join(values, ",") + "]";
}

void put_node(JsonWriter& json, const UOp& u,
              const std::unordered_map<const Node*, size_t>& numbers) {
  json.begin_object().key("op").text(info(u.op()).name).key("dtype").text(to_string(u.dtype()));
  json.key("shape").text(to_string(shape_of(u))).key("arg").text(cut(arg_text(u)));
  json.key("name").text(u.graph().origins().text(u.node()->origin));
  json.key("memory").boolean(has_memory(u)).key("src").begin_array();
  if (!has_memory(u))
    for (const UOp& s : u.src())
      if (const auto at = numbers.find(s.node()); at != numbers.end())
        json.integer(static_cast<int64_t>(at->second));
  json.end_array().end_object();
}

// Sources before users; nothing below what has memory.
void put_nodes(JsonWriter& json, std::span<const UOp> outputs) {
  const std::vector<UOp> order = topological(outputs, has_memory);
  const size_t first = order.size() > kNodesMax ? order.size() - kNodesMax : 0;
  std::unordered_map<const Node*, size_t> numbers;
  json.key("nodes_left_out").integer(static_cast<int64_t>(first)).key("nodes").begin_array();
  for (size_t i = first; i < order.size(); ++i) {
    put_node(json, order[i], numbers);
    numbers.emplace(order[i].node(), i - first);
  }
  json.end_array().key("outputs").begin_array();
  for (const UOp& out : outputs)
    if (const auto at = numbers.find(out.node()); at != numbers.end())
      json.integer(static_cast<int64_t>(at->second));
  json.end_array();
}

void put_proposals(JsonWriter& json, const CodegenResult& result) {
  json.key("proposed").begin_array();
  for (const ProposalNote& p : result.proposed) {
    json.begin_object().key("strategy").text(p.strategy).key("seconds").real(p.cost.seconds);
    json.key("bound").text(name_of(p.cost.bound())).key("options").text(to_text(p.options));
    json.key("taken").boolean(p.is_taken).end_object();
  }
  json.end_array();
}

void put_ranges(JsonWriter& json, const Kernel& kernel) {
  json.key("ranges").begin_array();
  for (const KernelRange& r : kernel.ranges) {
    json.begin_object().key("range").text(expression_text(r.range));
    json.key("size").text(short_text(r.range.src(0)));
    json.key("kind").text(name_of(r.kind));
    json.key("reduced").boolean(r.reduced).end_object();
  }
  json.end_array();
}

const char* slot_name(SlotKind kind) {
  static constexpr const char* kNames[] = {"weights", "input", "output", "arena", "part"};
  return kNames[static_cast<size_t>(kind)];
}

void put_entry(JsonWriter& json, const TapeEntry& entry) {
  json.begin_object().key("name").text(entry.info.name);
  json.key("operations").real(entry.info.operations).key("bytes").real(entry.info.bytes);
  json.key("buffers").begin_array();
  for (size_t p = 0; p < entry.slots.size(); ++p) {
    const KernelParam& param = entry.info.params[p];
    json.begin_object().key("buffer").integer(entry.slots[p]);
    json.key("access").text(!param.written ? "read" : param.read ? "update" : "write");
    json.key("dtype").text(to_string(param.element)).end_object();
  }
  json.end_array().end_object();
}

}  // namespace

bool Recorder::has_room(size_t bytes) {
  if (bytes_ + bytes > kBytesMax) {
    ++left_out_;
    return false;
  }
  bytes_ += bytes;
  return true;
}

std::string Recorder::take_rewrites() {
  const std::string list = list_of(std::exchange(rewrites_, {}));
  return cat("\"rewrites\":", list,
             ",\"rewrites_left_out\":", std::exchange(rewrites_left_out_, int64_t{0}));
}

void Recorder::rewrite(const RewriteStep& step) {
  if (rewrites_.size() >= kRewritesMax) {
    ++rewrites_left_out_;
    return;
  }
  JsonWriter json;
  json.begin_object().key("table").text(step.table);
  json.key("rule").text(step.rule ? to_string(*step.rule) : "constant folding");
  json.key("before").text(cut(short_text(step.before)));
  json.key("after").text(cut(short_text(step.after))).end_object();
  rewrites_.push_back(json.result());
}

void Recorder::graph(std::span<const UOp> outputs) {
  rewrites_.clear();
  if (!graphs_.empty()) graphs_.back() += cat(",\"passes\":", list_of(graph_passes_));
  graph_passes_.clear();
  JsonWriter json;
  json.begin_object();
  put_nodes(json, outputs);
  json.end_object();
  graphs_.push_back(has_room(json.result().size()) ? members(json) : R"("nodes":[],"outputs":[])");
}

void Recorder::graph_pass(const GraphPassNote& note) {
  JsonWriter json;
  json.begin_object().key("name").text(note.name).key("seconds").real(note.seconds);
  json.key("changed").boolean(note.changed);
  if (note.changed) put_nodes(json, note.roots);
  json.end_object();
  const std::string text = cat("{", members(json), ",", take_rewrites(), "}");
  if (has_room(text.size())) graph_passes_.push_back(text);
}

// What fired since the last pass over the graph: its lowering to kernels.
void Recorder::end_schedule() {
  if (rewrites_.empty() || graphs_.empty()) return;
  const std::string text = cat(R"({"name":"schedule","changed":false,)", take_rewrites(), "}");
  if (has_room(text.size())) graph_passes_.push_back(text);
}

void Recorder::begin_kernel(const Kernel& kernel) {
  end_schedule();
  rewrites_.clear();
  passes_.clear();
  last_text_ = uops_text(kernel);
  scheduled_ = last_text_;
}

void Recorder::pass(const PassTime& pass, const std::string& text) {
  JsonWriter json;
  json.begin_object().key("name").text(pass.name).key("seconds").real(pass.seconds);
  json.key("changed").boolean(text != last_text_);
  if (text != last_text_) json.key("text").text(text);
  json.end_object();
  last_text_ = text;
  passes_.push_back(cat("{", members(json), ",", take_rewrites(), "}"));
}

void Recorder::lowered(const Kernel& kernel, const CodegenResult& result) {
  JsonWriter json;
  json.begin_object().key("name").text(result.program.name);
  json.key("structure").text(structure_name(kernel)).key("options").text(result.options);
  json.key("operations").real(result.operations).key("bytes").real(result.bytes);
  json.key("scheduled").text(scheduled_).key("tree").text(tree_text(kernel.roots));
  json.key("nest").text(nest_text(result.program));
  put_ranges(json, result.kernel);
  put_proposals(json, result);
  json.end_object();
  const std::string text = cat(members(json), ",\"passes\":", list_of(passes_));
  passes_.clear();
  if (!has_room(text.size())) return;
  places_.insert_or_assign(result.program.name, kernels_.size());
  kernels_.push_back({text, {}});
}

void Recorder::rendered(const LinearProgram& program, const std::string& c,
                        const std::string& listing) {
  const auto at = places_.find(program.name);
  if (at == places_.end() || !has_room(c.size() + listing.size())) return;
  JsonWriter json;
  json.begin_object().key("c").text(c).key("asm").text(listing).end_object();
  kernels_[at->second].code = members(json);
}

void Recorder::program(const Plan& plan) {
  end_schedule();
  JsonWriter json;
  json.begin_object().key("graph").integer(std::ssize(graphs_) - 1);
  json.key("arena_bytes").integer(plan.arena_bytes).key("buffers").begin_array();
  for (const Slot& slot : plan.slots) {
    json.begin_object().key("kind").text(slot_name(slot.kind)).key("bytes").integer(slot.bytes);
    if (slot.kind == SlotKind::Arena) json.key("at").integer(slot.arena_offset);
    if (slot.kind == SlotKind::Input || slot.kind == SlotKind::Output)
      json.key("number").integer(slot.number);
    json.end_object();
  }
  json.end_array().key("kernels").begin_array();
  for (const TapeEntry& entry : plan.tape) put_entry(json, entry);
  json.end_array().end_object();
  if (has_room(json.result().size())) programs_.push_back(json.result());
}

void Recorder::put(JsonWriter& json) const {
  json.key("graphs").begin_array();
  for (size_t i = 0; i < graphs_.size(); ++i) {
    const bool is_last = i + 1 == graphs_.size();
    json.raw(cat("{", graphs_[i], is_last ? cat(",\"passes\":", list_of(graph_passes_)) : "", "}"));
  }
  json.end_array().key("kernels").begin_array();
  for (const KernelRecord& k : kernels_)
    json.raw(cat("{", k.lowered, k.code.empty() ? "" : ",", k.code, "}"));
  json.end_array().key("programs").begin_array();
  for (const std::string& program : programs_) json.raw(program);
  json.end_array().key("left_out").integer(left_out_);
}

}  // namespace tiny
