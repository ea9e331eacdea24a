#include "codegen/linear/overlap.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/linear/overlap_stages.h"

namespace tiny {

namespace {

// The program with the stages of a loop's steps side by side.
class Overlapper {
 public:
  Overlapper(const LinearProgram& program, const OverlapStages& plan)
      : program_(program), plan_(plan), stage_maps_(plan.stages.size()) {}

  LinearProgram run() {
    out_ = program_;
    out_.ops.assign(ops().begin(), ops().begin() + plan_.loop);
    write_loop();
    write_rest();
    return std::move(out_);
  }

 private:
  using Map = std::unordered_map<LinearId, LinearId>;
  // With the accumulators where it waits: a step later, two ..
  struct Carried : CarriedValue {
    std::vector<LinearId> kept;
  };

  const std::vector<LinearOp>& ops() const { return program_.ops; }

  LinearId add(const LinearOp& op) {
    out_.ops.push_back(op);
    return static_cast<LinearId>(out_.ops.size() - 1);
  }
  LinearId integer(int64_t value) { return out_.add(Op::Const, kInt64, {}, value); }

  LinearId source(LinearId id, const Map& map) const {
    const auto found = map.find(id);
    return found == map.end() ? id : found->second;
  }
  void copy(LinearId id, Map& map) {
    LinearOp op = ops()[id];
    for (size_t s = 0; s < op.count; ++s) op.src[s] = source(op.src[s], map);
    map[id] = add(op);
  }
  void copy(OpSpan piece, Map& map) {
    for (LinearId i = piece.begin; i < piece.end; ++i)
      if (!plan_.moved.contains(i)) copy(i, map);
  }

  void write_loop() {
    const LinearId begin = ops()[plan_.loop].src[0];
    const LinearId end = ops()[plan_.loop].src[1];
    for (const CarriedValue& c : plan_.carried) {
      const DType dtype = ops()[c.value].dtype;
      const LinearId zero = out_.add(Op::Const, dtype);
      Carried& kept = carried_.emplace_back(Carried{c, {}});
      for (size_t d = 0; d < c.steps; ++d)
        kept.kept.push_back(out_.add(Op::Accumulator, dtype, {zero}));
    }
    const LinearId ramp = integer(static_cast<int64_t>(plan_.stages.size()) - 1);
    const LinearId full = out_.add(Op::Add, kInt64, {begin, ramp});
    const LinearId last = out_.add(Op::Add, kInt64, {end, ramp});
    const LinearId step = out_.add(Op::Loop, kInt64, {begin, last}, 1);
    std::vector<LinearId> rows{step};
    for (size_t k = 1; k < plan_.stages.size(); ++k)
      rows.push_back(out_.add(Op::Sub, kInt64, {step, integer(static_cast<int64_t>(k))}));
    const LinearId begun = out_.add(Op::LessEqual, kBool, {full, step});
    const LinearId goes_on = out_.add(Op::Less, kBool, {step, end});
    const LinearId all = out_.add(Op::And, kBool, {begun, goes_on});
    const LinearId together = out_.add(Op::If, kVoid, {all});
    start_maps(rows);
    write_together();
    out_.add(Op::EndIf, kVoid, {together});
    const LinearId apart = out_.add(Op::If, kVoid, {out_.add(Op::Not, kBool, {all})});
    start_maps(rows);
    for (size_t k = plan_.stages.size(); k-- > 0;) write_apart(k, rows[k], begin, end);
    out_.add(Op::EndIf, kVoid, {apart});
    out_.add(Op::EndLoop, kVoid, {step});
  }

  void start_maps(const std::vector<LinearId>& rows) {
    for (size_t k = 0; k < plan_.stages.size(); ++k) {
      stage_maps_[k].clear();
      stage_maps_[k][plan_.loop] = rows[k];
      for (const Carried& c : carried_)
        if (k > c.home && k - c.home <= c.steps) stage_maps_[k][c.value] = c.kept[k - c.home - 1];
    }
  }

  // What a stage has before its loop.
  void write_before(size_t k) {
    Map& map = stage_maps_[k];
    if (k == 0) copy(OpSpan{plan_.loop + 1, plan_.stages[0].loop.begin}, map);
    for (LinearId id : plan_.stages[k].copied)
      if (k > 0 || id >= plan_.stages[0].loop.begin) copy(id, map);
    for (LinearId id : plan_.stages[k].declared) copy(id, map);
  }

  void write_together() {
    for (size_t k = 0; k < plan_.stages.size(); ++k) write_before(k);
    const OpSpan first = plan_.stages[0].loop;
    copy(first.begin, stage_maps_[0]);
    const LinearId loop = stage_maps_[0].at(first.begin);
    // What a stage reads from scratch comes before what the one before it writes there.
    for (size_t k = plan_.stages.size(); k-- > 0;) {
      Map& map = stage_maps_[k];
      const OpSpan body = plan_.stages[k].loop;
      map[body.begin] = loop;
      for (LinearId i = body.begin + 1; i + 1 < body.end; ++i)
        if (ops()[i].op == Op::Prefetch)
          write_prefetch(i, loop);
        else
          copy(i, map);
    }
    out_.add(Op::EndLoop, kVoid, {loop});
    for (size_t k = plan_.stages.size(); k-- > 0;) {
      pass_on(k);
      copy(plan_.stages[k].after, stage_maps_[k]);
      keep(k);
    }
  }

  void write_prefetch(LinearId prefetch, LinearId loop) {
    Map map = stage_maps_[0];
    for (const OverlapStage& s : plan_.stages) map[s.loop.begin] = loop;
    for (LinearId id : plan_.address_ops(ops(), prefetch)) copy(id, map);
    copy(prefetch, map);
  }

  // One stage of a step where not all have one.
  void write_apart(size_t k, LinearId row, LinearId begin, LinearId end) {
    pass_on(k);
    const LinearId from = out_.add(Op::LessEqual, kBool, {begin, row});
    const LinearId to = out_.add(Op::Less, kBool, {row, end});
    const LinearId has_step = out_.add(Op::If, kVoid, {out_.add(Op::And, kBool, {from, to})});
    write_before(k);
    for (LinearId i = plan_.stages[k].loop.begin; i < plan_.stages[k].loop.end; ++i)
      if (ops()[i].op != Op::Prefetch) copy(i, stage_maps_[k]);
    copy(plan_.stages[k].after, stage_maps_[k]);
    keep(k);
    out_.add(Op::EndIf, kVoid, {has_step});
  }

  // What waits moves a place, before the stage's own comes.
  void pass_on(size_t stage) {
    for (const Carried& c : carried_)
      for (size_t d = c.steps; c.home == stage && d-- > 1;)
        out_.add(Op::Set, kVoid, {c.kept[d], c.kept[d - 1]});
  }
  void keep(size_t stage) {
    for (const Carried& c : carried_)
      if (c.home == stage) out_.add(Op::Set, kVoid, {c.kept[0], stage_maps_[stage].at(c.value)});
  }

  void write_rest() {
    Map map;
    for (LinearId i = plan_.end + 1; i < ops().size(); ++i) copy(i, map);
  }

  const LinearProgram& program_;
  const OverlapStages& plan_;
  std::vector<Carried> carried_;
  LinearProgram out_;
  std::vector<Map> stage_maps_;
};

}  // namespace

void overlap_steps(LinearProgram& program) {
  for (LinearId i = 0; i < program.ops.size(); ++i) {
    if (program.ops[i].op != Op::Loop || program.ops[i].aux == 0) continue;
    program.ops[i].aux = 0;
    if (const auto plan = find_overlap_stages(program, i))
      program = Overlapper(program, *plan).run();
  }
}

}  // namespace tiny
