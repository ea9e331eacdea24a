#include "codegen/linear/overlap_stages.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tiny {

size_t OverlapStages::stage_of(LinearId id) const {
  size_t k = 0;
  while (k + 1 < stages.size() && id >= stages[k + 1].loop.begin) ++k;
  return k;
}

bool OverlapStages::is_stage_loop(LinearId id) const {
  return std::ranges::any_of(stages, [&](const OverlapStage& s) { return s.loop.begin == id; });
}

std::vector<LinearId> OverlapStages::address_ops(const std::vector<LinearOp>& ops,
                                                 LinearId prefetch) const {
  std::vector<LinearId> found, open{prefetch};
  while (!open.empty()) {
    const LinearOp& op = ops[open.back()];
    open.pop_back();
    for (size_t s = 0; s < op.count; ++s) {
      const LinearId source = op.src[s];
      if (!is_inside(source) || !is_in_loop(source) || is_stage_loop(source)) continue;
      if (std::ranges::find(found, source) != found.end()) continue;
      found.push_back(source);
      open.push_back(source);
    }
  }
  std::ranges::sort(found);
  return found;
}

namespace {

constexpr size_t kStagesMax = 4;
constexpr int kIndexDepthMax = 12;  // ops of an index that two accesses are compared by

class StageFinder {
 public:
  StageFinder(const LinearProgram& program, LinearId loop) : program_(program) { out_.loop = loop; }

  std::optional<OverlapStages> run() {
    if (!find_stages() || !is_memory_safe() || !find_crossings()) return std::nullopt;
    return std::move(out_);
  }

 private:
  const std::vector<LinearOp>& ops() const { return program_.ops; }

  // The loops that all of a step's elements pass through, the longest, and what is between them.
  bool find_stages() {
    if (ops()[out_.loop].imm != 1) return false;
    std::vector<OpSpan> loops;
    std::vector<LinearId> open;
    for (LinearId i = out_.loop + 1; i < ops().size() && out_.end == 0; ++i) {
      const LinearOp& op = ops()[i];
      if (op.op == Op::Check) return false;
      if (op.op == Op::Loop || op.op == Op::If) open.push_back(i);
      if (op.op != Op::EndLoop && op.op != Op::EndIf) continue;
      if (op.src[0] == out_.loop) {
        out_.end = i;
      } else {
        if (open.size() == 1 && op.op == Op::EndLoop) loops.push_back({open.back(), i + 1});
        open.pop_back();
      }
    }
    const std::optional<OpSpan> longest = find_longest(loops);
    if (!longest) return false;
    std::erase_if(loops, [&](const OpSpan& p) { return !is_like(p, *longest); });
    if (loops.size() < 2 || loops.size() > kStagesMax) return false;
    for (size_t k = 0; k < loops.size(); ++k) {
      OverlapStage stage;
      stage.loop = loops[k];
      stage.after = {loops[k].end, k + 1 < loops.size() ? loops[k + 1].begin : out_.end};
      out_.stages.push_back(stage);
    }
    return true;
  }

  // How often a loop of constant bounds runs; 0: they are not constant.
  int64_t trips(const OpSpan& loop) const {
    const LinearOp& head = ops()[loop.begin];
    const LinearOp& from = ops()[head.src[0]];
    const LinearOp& to = ops()[head.src[1]];
    if (from.op != Op::Const || to.op != Op::Const || head.imm != 1) return 0;
    return to.imm - from.imm;
  }
  // One of those that run the most often; those with bounds that only a run knows come first, if
  // there are several with the same.
  std::optional<OpSpan> find_longest(const std::vector<OpSpan>& loops) const {
    std::optional<OpSpan> longest;
    for (const OpSpan& p : loops) {
      const auto like =
          std::ranges::count_if(loops, [&](const OpSpan& q) { return is_like(p, q); });
      if (trips(p) == 0 && like > 1) return p;
      if (trips(p) > (longest ? trips(*longest) : 1)) longest = p;
    }
    return longest;
  }
  bool is_like(const OpSpan& a, const OpSpan& b) const {
    const LinearOp& x = ops()[a.begin];
    const LinearOp& y = ops()[b.begin];
    if (x.imm != 1 || y.imm != 1) return false;
    return is_same(x.src[0], y.src[0], 0) && is_same(x.src[1], y.src[1], 0);
  }

  struct Access {
    LinearId op = 0;
    size_t stage = 0;
  };
  struct Memory {
    std::vector<Access> loads;
    std::vector<Access> stores;
  };

  // Whether no stage reads what another step's stage has overwritten or not yet written.
  bool is_memory_safe() const {
    std::map<std::pair<Op, int64_t>, Memory> memories;
    for (LinearId i = out_.loop + 1; i < out_.end; ++i) {
      const LinearOp& op = ops()[i];
      if (op.op != Op::Load && op.op != Op::Store) continue;
      LinearId base = op.src[0];
      while (ops()[base].op == Op::Address) base = ops()[base].src[0];
      Memory& memory = memories[{ops()[base].op, ops()[base].imm}];
      (op.op == Op::Load ? memory.loads : memory.stores).push_back({i, out_.stage_of(i)});
    }
    return std::ranges::all_of(memories, [&](const auto& entry) {
      const Memory& m = entry.second;
      if (m.stores.empty()) return true;
      const size_t writer = m.stores.front().stage;
      if (std::ranges::any_of(m.stores, [&](const Access& a) { return a.stage != writer; }))
        return false;
      if (entry.first.first != Op::Scratch) return m.loads.empty();
      return std::ranges::all_of(m.loads, [&](const Access& load) {
        if (load.stage == writer) return true;
        if (load.stage != writer + 1) return false;
        return std::ranges::any_of(m.stores, [&](const Access& store) {
          return out_.is_in_loop(load.op) == out_.is_in_loop(store.op) &&
                 is_same_place(load.op, store.op);
        });
      });
    });
  }

  bool is_same_place(LinearId a, LinearId b) const {
    const DType stored = ops()[ops()[b].src[2]].dtype;
    return ops()[a].dtype == stored && ops()[a].imm == ops()[b].imm &&
           ops()[a].aux == ops()[b].aux && is_same(ops()[a].src[0], ops()[b].src[0], 0) &&
           is_same(ops()[a].src[1], ops()[b].src[1], 0);
  }

  // Whether two values are equal where their stages' loops are at the same place, whatever the
  // steps are.
  bool is_same(LinearId a, LinearId b, int depth) const {
    a = without_offset(a);
    b = without_offset(b);
    if (a == b && !out_.is_inside(a)) return a != out_.loop;
    if (depth > kIndexDepthMax || a == out_.loop || b == out_.loop) return false;
    if (out_.is_stage_loop(a) && out_.is_stage_loop(b)) return true;
    const LinearOp& x = ops()[a];
    const LinearOp& y = ops()[b];
    if (!computes(x.op) || x.op != y.op || x.dtype != y.dtype || x.imm != y.imm || x.aux != y.aux ||
        x.count != y.count)
      return false;
    for (size_t s = 0; s < x.count; ++s)
      if (!is_same(x.src[s], y.src[s], depth + 1)) return false;
    return true;
  }
  // What an address is, if nothing is added to it.
  LinearId without_offset(LinearId id) const {
    while (ops()[id].op == Op::Address && ops()[ops()[id].src[1]].op == Op::Const &&
           ops()[ops()[id].src[1]].imm == 0)
      id = ops()[id].src[0];
    return id;
  }
  static bool computes(Op op) {
    return has(op, kElementwise) || op == Op::Const || op == Op::Param || op == Op::Scratch ||
           op == Op::Variable || op == Op::LaunchArg || op == Op::Address || op == Op::Broadcast ||
           op == Op::Ramp || op == Op::LaneRange;
  }

  // What stages read of earlier ones: copied, declared where it is used, or carried along.
  bool find_crossings() {
    find_steady();
    if (!move_accumulators()) return false;
    std::vector<std::vector<LinearId>> wanted(out_.stages.size());
    for (LinearId i = out_.loop + 1; i < out_.end; ++i) {
      const LinearOp& op = ops()[i];
      if (op.op == Op::Prefetch && out_.is_in_loop(i)) {
        // It is for what stage 0 reads next, wherever it stands.
        if (!prefetch_steady(i, wanted[0])) return false;
        continue;
      }
      const size_t stage = home_of(i);
      for (size_t s = 0; s < op.count; ++s)
        if (!want(op.src[s], stage, wanted)) return false;
    }
    for (size_t k = 0; k < out_.stages.size(); ++k) copy_for(k, std::move(wanted[k]));
    return true;
  }

  // What depends on the step's number alone, and on the loop where it is in one.
  void find_steady() {
    steady_.assign(out_.end, 0);
    for (LinearId i = out_.loop; i < out_.end; ++i) {
      const LinearOp& op = ops()[i];
      bool holds = i == out_.loop || out_.is_stage_loop(i) || computes(op.op);
      for (size_t s = 0; s < op.count && i != out_.loop; ++s)
        holds = holds && (op.src[s] < out_.loop || steady_[op.src[s]]);
      steady_[i] = holds;
    }
  }

  struct Uses {  // stages in which an accumulator is set and read
    size_t first_set = kStagesMax;
    size_t last_set = 0;
    size_t first_read = kStagesMax;
    size_t last_read = 0;
  };

  // An accumulator belongs to the stage that sets it; later ones read what it was in the end.
  bool move_accumulators() {
    std::unordered_map<LinearId, Uses> found;
    for (LinearId i = out_.loop + 1; i < out_.end; ++i)
      for (size_t s = 0; s < ops()[i].count; ++s) {
        const LinearId source = ops()[i].src[s];
        if (ops()[source].op != Op::Accumulator) continue;
        Uses& uses = found[source];
        const bool sets = ops()[i].op == Op::Set && s == 0;
        const size_t stage = out_.stage_of(i);
        size_t& first = sets ? uses.first_set : uses.first_read;
        size_t& last = sets ? uses.last_set : uses.last_read;
        first = std::min(first, stage);
        last = std::max(last, stage);
      }
    for (const auto& [accumulator, uses] : found) {
      if (uses.first_set == kStagesMax) continue;
      if (uses.first_set != uses.last_set || uses.first_read < uses.last_set) return false;
      if (accumulator < out_.loop && uses.last_read > uses.last_set) return false;
      if (accumulator < out_.loop || uses.last_set == out_.stage_of(accumulator)) continue;
      const LinearId first = ops()[accumulator].src[0];
      if (first > out_.loop && !steady_[first]) return false;
      out_.moved.emplace(accumulator, uses.last_set);
      out_.stages[uses.last_set].declared.push_back(accumulator);
    }
    for (OverlapStage& s : out_.stages) std::ranges::sort(s.declared);
    return true;
  }
  size_t home_of(LinearId id) const {
    const auto moved = out_.moved.find(id);
    return moved == out_.moved.end() ? out_.stage_of(id) : moved->second;
  }

  // Notes that `stage` reads `source`.
  bool want(LinearId source, size_t stage, std::vector<std::vector<LinearId>>& wanted) {
    if (!out_.is_inside(source)) return true;
    const size_t home = home_of(source);
    if (home == stage) return true;
    if (steady_[source]) {
      wanted[stage].push_back(source);
      return true;
    }
    const DType dtype = ops()[source].dtype;
    if (dtype == kAddress || dtype.is_bool() || dtype == kVoid) return false;
    auto at = std::ranges::find(out_.carried, source, &CarriedValue::value);
    if (at == out_.carried.end()) at = out_.carried.insert(at, {source, home, 0});
    at->steps = std::max(at->steps, stage - home);
    return true;
  }

  // Adds what a prefetch needs of the step's number to what stage 0 has.
  bool prefetch_steady(LinearId prefetch, std::vector<LinearId>& wanted) const {
    for (LinearId id : out_.address_ops(ops(), prefetch)) {
      if (!steady_[id]) return false;
      for (size_t s = 0; s < ops()[id].count; ++s)
        if (out_.is_inside(ops()[id].src[s]) && !out_.is_in_loop(ops()[id].src[s]))
          wanted.push_back(ops()[id].src[s]);
    }
    for (size_t s = 0; s < ops()[prefetch].count; ++s) {
      const LinearId source = ops()[prefetch].src[s];
      if (out_.is_inside(source) && !steady_[source]) return false;
      if (out_.is_inside(source) && !out_.is_in_loop(source)) wanted.push_back(source);
    }
    return true;
  }

  // All that the wanted ops are made of, in order.  Stage 0 has its own first ops.
  void copy_for(size_t k, std::vector<LinearId> wanted) {
    std::vector<LinearId> all;
    while (!wanted.empty()) {
      const LinearId id = wanted.back();
      wanted.pop_back();
      if (std::ranges::find(all, id) != all.end()) continue;
      all.push_back(id);
      for (size_t s = 0; s < ops()[id].count; ++s)
        if (out_.is_inside(ops()[id].src[s])) wanted.push_back(ops()[id].src[s]);
    }
    std::ranges::sort(all);
    out_.stages[k].copied = std::move(all);
  }

  const LinearProgram& program_;
  OverlapStages out_;
  std::vector<uint8_t> steady_;
};

}  // namespace

std::optional<OverlapStages> find_overlap_stages(const LinearProgram& program, LinearId loop) {
  return StageFinder(program, loop).run();
}

}  // namespace tiny
