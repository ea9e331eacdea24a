#include "codegen/linear/overlap.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

namespace tiny {

namespace {

constexpr size_t kStagesMax = 4;
constexpr int kIndexDepthMax = 12;  // ops of an index that two accesses are compared by

// Ops from `begin` to before `end` of the program.
struct Piece {
  LinearId begin = 0;
  LinearId end = 0;
  bool holds(LinearId id) const { return id >= begin && id < end; }
};

// One loop of a step and what follows it.  Stage 0 has what precedes it as well.
struct Stage {
  Piece loop;                      // from its Loop to after its EndLoop
  Piece after;                     // up to the next stage's loop
  std::vector<LinearId> copied;    // ops of earlier stages that depend on the step's number alone
  std::vector<LinearId> declared;  // accumulators of earlier stages that only this one uses
};

// A value that later stages read, and the accumulators where it waits: a step later, two ..
struct Carried {
  LinearId value = 0;
  size_t home = 0;
  size_t steps = 0;
  std::vector<LinearId> kept;
};

class Overlapper {
 public:
  Overlapper(const LinearProgram& program, LinearId loop) : program_(program), loop_(loop) {}

  std::optional<LinearProgram> run() {
    if (!find_stages() || !is_memory_safe() || !find_crossings()) return std::nullopt;
    out_ = program_;
    out_.ops.assign(ops().begin(), ops().begin() + loop_);
    stage_maps_.resize(stages_.size());
    write_loop();
    write_rest();
    return std::move(out_);
  }

 private:
  using Map = std::unordered_map<LinearId, LinearId>;

  const std::vector<LinearOp>& ops() const { return program_.ops; }

  // The loops that all of a step's elements pass through, the longest, and what is between them.
  bool find_stages() {
    if (ops()[loop_].imm != 1) return false;
    std::vector<Piece> loops;
    std::vector<LinearId> open;
    for (LinearId i = loop_ + 1; i < ops().size() && end_ == 0; ++i) {
      const LinearOp& op = ops()[i];
      if (op.op == Op::Check) return false;
      if (op.op == Op::Loop || op.op == Op::If) open.push_back(i);
      if (op.op != Op::EndLoop && op.op != Op::EndIf) continue;
      if (op.src[0] == loop_) {
        end_ = i;
      } else {
        if (open.size() == 1 && op.op == Op::EndLoop) loops.push_back({open.back(), i + 1});
        open.pop_back();
      }
    }
    const std::optional<Piece> longest = find_longest(loops);
    if (!longest) return false;
    std::erase_if(loops, [&](const Piece& p) { return !is_like(p, *longest); });
    if (loops.size() < 2 || loops.size() > kStagesMax) return false;
    for (size_t k = 0; k < loops.size(); ++k) {
      Stage stage;
      stage.loop = loops[k];
      stage.after = {loops[k].end, k + 1 < loops.size() ? loops[k + 1].begin : end_};
      stages_.push_back(stage);
    }
    return true;
  }

  // How often a loop of constant bounds runs; 0: they are not constant.
  int64_t trips(const Piece& loop) const {
    const LinearOp& head = ops()[loop.begin];
    const LinearOp& from = ops()[head.src[0]];
    const LinearOp& to = ops()[head.src[1]];
    if (from.op != Op::Const || to.op != Op::Const || head.imm != 1) return 0;
    return to.imm - from.imm;
  }
  // One of those that run the most often; those with bounds that only a run knows come first, if
  // there are several with the same.
  std::optional<Piece> find_longest(const std::vector<Piece>& loops) const {
    std::optional<Piece> longest;
    for (const Piece& p : loops) {
      const auto like = std::ranges::count_if(loops, [&](const Piece& q) { return is_like(p, q); });
      if (trips(p) == 0 && like > 1) return p;
      if (trips(p) > (longest ? trips(*longest) : 1)) longest = p;
    }
    return longest;
  }
  bool is_like(const Piece& a, const Piece& b) const {
    const LinearOp& x = ops()[a.begin];
    const LinearOp& y = ops()[b.begin];
    if (x.imm != 1 || y.imm != 1) return false;
    return is_same(x.src[0], y.src[0], 0) && is_same(x.src[1], y.src[1], 0);
  }

  bool is_inside(LinearId id) const { return id > loop_ && id < end_; }
  // The stage whose steps an op of the loop belongs to.
  size_t stage_of(LinearId id) const {
    size_t k = 0;
    while (k + 1 < stages_.size() && id >= stages_[k + 1].loop.begin) ++k;
    return k;
  }
  bool is_in_loop(LinearId id) const { return stages_[stage_of(id)].loop.holds(id); }

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
    for (LinearId i = loop_ + 1; i < end_; ++i) {
      const LinearOp& op = ops()[i];
      if (op.op != Op::Load && op.op != Op::Store) continue;
      LinearId base = op.src[0];
      while (ops()[base].op == Op::Address) base = ops()[base].src[0];
      Memory& memory = memories[{ops()[base].op, ops()[base].imm}];
      (op.op == Op::Load ? memory.loads : memory.stores).push_back({i, stage_of(i)});
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
          return is_in_loop(load.op) == is_in_loop(store.op) && is_same_place(load.op, store.op);
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
    if (a == b && !is_inside(a)) return a != loop_;
    if (depth > kIndexDepthMax || a == loop_ || b == loop_) return false;
    if (is_stage_loop(a) && is_stage_loop(b)) return true;
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
  bool is_stage_loop(LinearId id) const {
    return std::ranges::any_of(stages_, [&](const Stage& s) { return s.loop.begin == id; });
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
    std::vector<std::vector<LinearId>> wanted(stages_.size());
    for (LinearId i = loop_ + 1; i < end_; ++i) {
      const LinearOp& op = ops()[i];
      if (op.op == Op::Prefetch && is_in_loop(i)) {
        // It is for what stage 0 reads next, wherever it stands.
        if (!prefetch_steady(i, wanted[0])) return false;
        continue;
      }
      const size_t stage = home_of(i);
      for (size_t s = 0; s < op.count; ++s)
        if (!want(op.src[s], stage, wanted)) return false;
    }
    for (size_t k = 0; k < stages_.size(); ++k) copy_for(k, std::move(wanted[k]));
    return true;
  }

  // What depends on the step's number alone, and on the loop where it is in one.
  void find_steady() {
    steady_.assign(end_, 0);
    for (LinearId i = loop_; i < end_; ++i) {
      const LinearOp& op = ops()[i];
      bool holds = i == loop_ || is_stage_loop(i) || computes(op.op);
      for (size_t s = 0; s < op.count && i != loop_; ++s)
        holds = holds && (op.src[s] < loop_ || steady_[op.src[s]]);
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
    for (LinearId i = loop_ + 1; i < end_; ++i)
      for (size_t s = 0; s < ops()[i].count; ++s) {
        const LinearId source = ops()[i].src[s];
        if (ops()[source].op != Op::Accumulator) continue;
        Uses& uses = found[source];
        const bool sets = ops()[i].op == Op::Set && s == 0;
        const size_t stage = stage_of(i);
        size_t& first = sets ? uses.first_set : uses.first_read;
        size_t& last = sets ? uses.last_set : uses.last_read;
        first = std::min(first, stage);
        last = std::max(last, stage);
      }
    for (const auto& [accumulator, uses] : found) {
      if (uses.first_set == kStagesMax) continue;
      if (uses.first_set != uses.last_set || uses.first_read < uses.last_set) return false;
      if (accumulator < loop_ && uses.last_read > uses.last_set) return false;
      if (accumulator < loop_ || uses.last_set == stage_of(accumulator)) continue;
      const LinearId first = ops()[accumulator].src[0];
      if (first > loop_ && !steady_[first]) return false;
      moved_.emplace(accumulator, uses.last_set);
      stages_[uses.last_set].declared.push_back(accumulator);
    }
    for (Stage& s : stages_) std::ranges::sort(s.declared);
    return true;
  }
  size_t home_of(LinearId id) const {
    const auto moved = moved_.find(id);
    return moved == moved_.end() ? stage_of(id) : moved->second;
  }

  // Notes that `stage` reads `source`.
  bool want(LinearId source, size_t stage, std::vector<std::vector<LinearId>>& wanted) {
    if (!is_inside(source)) return true;
    const size_t home = home_of(source);
    if (home == stage) return true;
    if (steady_[source]) {
      wanted[stage].push_back(source);
      return true;
    }
    const DType dtype = ops()[source].dtype;
    if (dtype == kAddress || dtype.is_bool() || dtype == kVoid) return false;
    auto at = std::ranges::find(carried_, source, &Carried::value);
    if (at == carried_.end()) at = carried_.insert(at, {source, home, 0, {}});
    at->steps = std::max(at->steps, stage - home);
    return true;
  }

  // Adds what a prefetch needs of the step's number to what stage 0 has.
  bool prefetch_steady(LinearId prefetch, std::vector<LinearId>& wanted) const {
    for (LinearId id : address_ops(prefetch)) {
      if (!steady_[id]) return false;
      for (size_t s = 0; s < ops()[id].count; ++s)
        if (is_inside(ops()[id].src[s]) && !is_in_loop(ops()[id].src[s]))
          wanted.push_back(ops()[id].src[s]);
    }
    for (size_t s = 0; s < ops()[prefetch].count; ++s) {
      const LinearId source = ops()[prefetch].src[s];
      if (is_inside(source) && !steady_[source]) return false;
      if (is_inside(source) && !is_in_loop(source)) wanted.push_back(source);
    }
    return true;
  }

  // The ops in the loop around that a prefetch is made of, in order.
  std::vector<LinearId> address_ops(LinearId prefetch) const {
    std::vector<LinearId> found, open{prefetch};
    while (!open.empty()) {
      const LinearOp& op = ops()[open.back()];
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

  // All that the wanted ops are made of, in order.  Stage 0 has its own first ops.
  void copy_for(size_t k, std::vector<LinearId> wanted) {
    std::vector<LinearId> all;
    while (!wanted.empty()) {
      const LinearId id = wanted.back();
      wanted.pop_back();
      if (std::ranges::find(all, id) != all.end()) continue;
      all.push_back(id);
      for (size_t s = 0; s < ops()[id].count; ++s)
        if (is_inside(ops()[id].src[s])) wanted.push_back(ops()[id].src[s]);
    }
    std::ranges::sort(all);
    stages_[k].copied = std::move(all);
  }

  // Writing.

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
  void copy(Piece piece, Map& map) {
    for (LinearId i = piece.begin; i < piece.end; ++i)
      if (!moved_.contains(i)) copy(i, map);
  }

  void write_loop() {
    const LinearId begin = ops()[loop_].src[0];
    const LinearId end = ops()[loop_].src[1];
    for (Carried& c : carried_) {
      const DType dtype = ops()[c.value].dtype;
      const LinearId zero = out_.add(Op::Const, dtype);
      for (size_t d = 0; d < c.steps; ++d)
        c.kept.push_back(out_.add(Op::Accumulator, dtype, {zero}));
    }
    const LinearId ramp = integer(static_cast<int64_t>(stages_.size()) - 1);
    const LinearId full = out_.add(Op::Add, kInt64, {begin, ramp});
    const LinearId last = out_.add(Op::Add, kInt64, {end, ramp});
    const LinearId step = out_.add(Op::Loop, kInt64, {begin, last}, 1);
    std::vector<LinearId> rows{step};
    for (size_t k = 1; k < stages_.size(); ++k)
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
    for (size_t k = stages_.size(); k-- > 0;) write_apart(k, rows[k], begin, end);
    out_.add(Op::EndIf, kVoid, {apart});
    out_.add(Op::EndLoop, kVoid, {step});
  }

  void start_maps(const std::vector<LinearId>& rows) {
    for (size_t k = 0; k < stages_.size(); ++k) {
      stage_maps_[k].clear();
      stage_maps_[k][loop_] = rows[k];
      for (const Carried& c : carried_)
        if (k > c.home && k - c.home <= c.steps) stage_maps_[k][c.value] = c.kept[k - c.home - 1];
    }
  }

  // What a stage has before its loop.
  void write_before(size_t k) {
    Map& map = stage_maps_[k];
    if (k == 0) copy(Piece{loop_ + 1, stages_[0].loop.begin}, map);
    for (LinearId id : stages_[k].copied)
      if (k > 0 || id >= stages_[0].loop.begin) copy(id, map);
    for (LinearId id : stages_[k].declared) copy(id, map);
  }

  void write_together() {
    for (size_t k = 0; k < stages_.size(); ++k) write_before(k);
    const Piece first = stages_[0].loop;
    copy(first.begin, stage_maps_[0]);
    const LinearId loop = stage_maps_[0].at(first.begin);
    // What a stage reads from scratch comes before what the one before it writes there.
    for (size_t k = stages_.size(); k-- > 0;) {
      Map& map = stage_maps_[k];
      const Piece body = stages_[k].loop;
      map[body.begin] = loop;
      for (LinearId i = body.begin + 1; i + 1 < body.end; ++i)
        if (ops()[i].op == Op::Prefetch)
          write_prefetch(i, loop);
        else
          copy(i, map);
    }
    out_.add(Op::EndLoop, kVoid, {loop});
    for (size_t k = stages_.size(); k-- > 0;) {
      pass_on(k);
      copy(stages_[k].after, stage_maps_[k]);
      keep(k);
    }
  }

  void write_prefetch(LinearId prefetch, LinearId loop) {
    Map map = stage_maps_[0];
    for (const Stage& s : stages_) map[s.loop.begin] = loop;
    for (LinearId id : address_ops(prefetch)) copy(id, map);
    copy(prefetch, map);
  }

  // One stage of a step where not all have one.
  void write_apart(size_t k, LinearId row, LinearId begin, LinearId end) {
    pass_on(k);
    const LinearId from = out_.add(Op::LessEqual, kBool, {begin, row});
    const LinearId to = out_.add(Op::Less, kBool, {row, end});
    const LinearId has_step = out_.add(Op::If, kVoid, {out_.add(Op::And, kBool, {from, to})});
    write_before(k);
    for (LinearId i = stages_[k].loop.begin; i < stages_[k].loop.end; ++i)
      if (ops()[i].op != Op::Prefetch) copy(i, stage_maps_[k]);
    copy(stages_[k].after, stage_maps_[k]);
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
    for (LinearId i = end_ + 1; i < ops().size(); ++i) copy(i, map);
  }

  const LinearProgram& program_;
  const LinearId loop_;
  LinearId end_ = 0;
  std::vector<Stage> stages_;
  std::vector<uint8_t> steady_;
  std::unordered_map<LinearId, size_t> moved_;  // accumulators to the stage that uses them
  std::vector<Carried> carried_;
  LinearProgram out_;
  std::vector<Map> stage_maps_;
};

}  // namespace

void overlap_steps(LinearProgram& program) {
  for (LinearId i = 0; i < program.ops.size(); ++i) {
    if (program.ops[i].op != Op::Loop || program.ops[i].aux == 0) continue;
    program.ops[i].aux = 0;
    if (auto done = Overlapper(program, i).run()) program = std::move(*done);
  }
}

}  // namespace tiny
