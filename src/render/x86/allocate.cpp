#include "render/x86/allocate.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "base/error.h"
#include "base/look_often.h"

namespace tiny::x86 {

namespace {

constexpr int kRoundsMax = 64;
constexpr uint32_t kNowhere = UINT32_MAX;

// Registers in the order they are handed out: those a function may overwrite come first.
constexpr int8_t kIntOrder[] = {0, 1, 2, 6, 7, 8, 9, 10, 11, 3, 5, 12, 13, 14, 15};
constexpr int8_t kMaskOrder[] = {1, 2, 3, 4, 5, 6, 7};
constexpr int8_t kVecOrder[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
constexpr int8_t kRax = 0, kRdx = 2, kRdi = 7;

// From the first write to the last read, in half steps: instruction i reads at 2i and writes at
// 2i+1.
struct Interval {
  uint32_t start = kNowhere;
  uint32_t end = 0;
  uint32_t maker = 0;  // the instruction that writes first
  float weight = 0;    // reads and writes, those in loops counted more
};

struct OpenLoop {
  uint32_t begin;
  uint32_t end;
};

class Scan {
 public:
  explicit Scan(const MachineProgram& program)
      : program_(program), intervals_(program.regs.size()), spilled_(program.regs.size(), 0) {
    result_.reg.assign(program.regs.size(), -1);
  }

  // True if every interval has a register; else spilled() says which have none.
  bool run() {
    find_loops();
    build();
    for (size_t i = 0; i < order_.size(); ++i) {
      look_often(program_.stop, i);
      place(order_[i]);
    }
    return !any_spilled_;
  }
  const std::vector<uint8_t>& spilled() const { return spilled_; }
  Allocation take() { return std::move(result_); }

 private:
  void find_loops() {
    loop_end_.assign(program_.code.size(), 0);
    std::vector<uint32_t> open;
    for (uint32_t i = 0; i < program_.code.size(); ++i) {
      const Opcode op = program_.code[i].op;
      if (op == Opcode::LoopTop) open.push_back(i);
      if (op == Opcode::LoopBack) {
        loop_end_[open.back()] = i;
        open.pop_back();
      }
    }
  }

  void touch(VReg v, uint32_t at) {
    Interval& x = intervals_[v];
    for (const OpenLoop& loop : loops_)
      if (x.start < 2 * loop.begin) {  // enters this loop from outside: needed until its last round
        at = std::max(at, 2 * loop.end + 1);
        break;
      }
    x.end = std::max(x.end, at);
    x.weight += weight_;
  }

  void build() {
    for (uint32_t i = 0; i < program_.code.size(); ++i) {
      look_often(program_.stop, i);
      const Inst& inst = program_.code[i];
      if (inst.op == Opcode::LoopTop) {
        loops_.push_back({i, loop_end_[i]});
        weight_ *= 8;
      }
      const uint8_t flags = info(inst.op).flags;
      if (flags & kDivides) divides_.push_back(2 * i);
      for (size_t s = 0; s < 3; ++s)
        if (inst.src[s] != kNoReg) touch(inst.src[s], 2 * i + (s == 1 && (flags & kLate1) ? 1 : 0));
      const uint32_t mem_at = 2 * i + (flags & kLateMem ? 1 : 0);
      if (inst.mask != kNoReg) touch(inst.mask, 2 * i);
      if (inst.mem.base != kNoReg) touch(inst.mem.base, mem_at);
      if (inst.mem.index != kNoReg) touch(inst.mem.index, mem_at);
      if (inst.dst != kNoReg) {
        Interval& x = intervals_[inst.dst];
        if (x.start == kNowhere) {
          x.start = 2 * i + 1;
          x.maker = i;
          order_.push_back(inst.dst);
        }
        touch(inst.dst, 2 * i + 1);
      }
      if (inst.op == Opcode::LoopBack) {
        loops_.pop_back();
        weight_ /= 8;
      }
    }
  }

  std::span<const int8_t> registers(RegClass cls) const {
    if (cls == RegClass::Int) return kIntOrder;
    if (cls == RegClass::Mask) return kMaskOrder;
    return std::span<const int8_t>(kVecOrder).first(program_.avx512 ? 32 : 16);
  }

  VReg& owner(RegClass cls, int8_t reg) {
    return owners_[static_cast<size_t>(cls)][static_cast<size_t>(reg)];
  }

  // Division overwrites rax and rdx.
  bool allowed(RegClass cls, int8_t reg, const Interval& x) const {
    if (cls != RegClass::Int || (reg != kRax && reg != kRdx) || divides_.empty()) return true;
    const auto first =
        std::lower_bound(divides_.begin(), divides_.end(), x.start > 0 ? x.start - 1 : 0);
    return first == divides_.end() || *first > x.end;
  }

  bool is_free(RegClass cls, int8_t reg, const Interval& x) const {
    return ends_[static_cast<size_t>(cls)][static_cast<size_t>(reg)] < x.start &&
           allowed(cls, reg, x);
  }

  // The register of an operand that ends where this value is made, if it is free.
  int8_t hinted(VReg v, RegClass cls) {
    const Interval& x = intervals_[v];
    const Inst& maker = program_.code[x.maker];
    if (maker.op == Opcode::IArgs) return kRdi;
    const bool fma = maker.op == Opcode::Fma || maker.op == Opcode::FmaScalar;
    for (size_t s :
         {fma ? size_t{2} : size_t{0}, fma ? size_t{0} : size_t{1}, fma ? size_t{1} : size_t{2}}) {
      const VReg from = maker.src[s];
      if (from == kNoReg || program_.regs[from].cls != cls || result_.reg[from] < 0) continue;
      if (is_free(cls, result_.reg[from], x)) return result_.reg[from];
    }
    return -1;
  }

  void give(VReg v, RegClass cls, int8_t reg) {
    result_.reg[v] = reg;
    owner(cls, reg) = v;
    ends_[static_cast<size_t>(cls)][static_cast<size_t>(reg)] = intervals_[v].end;
    if (cls == RegClass::Int) result_.int_used |= uint32_t{1} << reg;
    if (cls == RegClass::Vec) result_.vec_used = true;
  }

  void place(VReg v) {
    const RegClass cls = program_.regs[v].cls;
    const Interval& x = intervals_[v];
    const int8_t hint = hinted(v, cls);
    if (hint >= 0) return give(v, cls, hint);
    for (int8_t reg : registers(cls))
      if (is_free(cls, reg, x)) return give(v, cls, reg);
    VReg victim = v;
    for (int8_t reg : registers(cls))
      if (allowed(cls, reg, x) && owner(cls, reg) != kNoReg && cost(owner(cls, reg)) < cost(victim))
        victim = owner(cls, reg);
    invariant(!program_.regs[victim].temporary, "some register can be spilled");
    spilled_[victim] = 1;
    any_spilled_ = true;
    if (victim == v) return;
    const int8_t reg = result_.reg[victim];
    give(v, cls, reg);
  }

  float cost(VReg v) const {
    const RegInfo& r = program_.regs[v];
    if (r.temporary) return std::numeric_limits<float>::infinity();
    const Interval& x = intervals_[v];
    const float again = r.pooled || r.immediate ? 0.5f : 1.0f;
    return again * x.weight / static_cast<float>(x.end - x.start + 1);
  }

  const MachineProgram& program_;
  std::vector<Interval> intervals_;
  std::vector<uint8_t> spilled_;
  bool any_spilled_ = false;
  std::vector<VReg> order_;
  std::vector<uint32_t> loop_end_;
  std::vector<OpenLoop> loops_;
  std::vector<uint32_t> divides_;
  float weight_ = 1;
  std::array<std::array<VReg, 32>, 3> owners_ = [] {
    std::array<std::array<VReg, 32>, 3> none{};
    for (auto& row : none) row.fill(kNoReg);
    return none;
  }();
  std::array<std::array<uint32_t, 32>, 3> ends_{};  // of the owners' intervals; 0: there is none
  Allocation result_;
};

// Rewrites a program so that spilled registers live in memory.
class Spiller {
 public:
  Spiller(MachineProgram& program, const std::vector<uint8_t>& spilled)
      : program_(program), spilled_(spilled), slot_of_(spilled.size(), kNowhere) {}

  void run() {
    const std::vector<Inst> old = std::move(program_.code);
    program_.code.clear();
    program_.code.reserve(old.size() + old.size() / 4);
    for (size_t i = 0; i < old.size(); ++i) {
      look_often(program_.stop, i);
      rewrite(old[i]);
    }
  }

 private:
  bool is_spilled(VReg v) const { return v != kNoReg && v < spilled_.size() && spilled_[v]; }
  bool constant(VReg v) const { return program_.regs[v].pooled || program_.regs[v].immediate; }

  Mem slot(VReg v) {
    if (slot_of_[v] == kNowhere) {
      slot_of_[v] = static_cast<uint32_t>(program_.slots.size());
      program_.slots.push_back(program_.regs[v].bytes);
    }
    Mem m;
    m.kind = MemKind::Slot;
    m.id = slot_of_[v];
    return m;
  }

  VReg temporary(VReg v) {
    RegInfo r;
    r.cls = program_.regs[v].cls;
    r.bytes = program_.regs[v].bytes;
    r.temporary = true;
    program_.regs.push_back(r);
    return static_cast<VReg>(program_.regs.size() - 1);
  }

  Inst& emit(Opcode op, VReg v, const Inst& around) {
    Inst& i = program_.code.emplace_back();
    i.op = op;
    i.width = i.width2 = program_.regs[v].bytes;
    i.origin = around.origin;
    return i;
  }

  static Opcode load_of(RegClass cls) {
    return cls == RegClass::Int   ? Opcode::ILoad
           : cls == RegClass::Vec ? Opcode::VLoad
                                  : Opcode::KLoad;
  }
  static Opcode store_of(RegClass cls) {
    return cls == RegClass::Int   ? Opcode::IStore
           : cls == RegClass::Vec ? Opcode::VStore
                                  : Opcode::KStore;
  }

  VReg reload(VReg v, const Inst& around) {
    const VReg t = temporary(v);
    const RegInfo r = program_.regs[v];
    if (r.immediate) {
      Inst& i = emit(Opcode::IMoveImm, v, around);
      i.dst = t;
      i.imm = r.value;
    } else if (r.pooled) {
      Inst& i = emit(Opcode::VLoadPool, v, around);
      i.dst = t;
      i.mem = pool(v);
    } else {
      const Mem m = slot(v);
      Inst& i = emit(load_of(r.cls), v, around);
      i.dst = t;
      i.mem = m;
    }
    return t;
  }

  void store(VReg v, VReg from, const Inst& around) {
    const Mem m = slot(v);
    Inst& i = emit(store_of(program_.regs[v].cls), v, around);
    i.src[0] = from;
    i.mem = m;
  }

  Mem pool(VReg v) const {
    Mem m;
    m.kind = MemKind::Pool;
    m.id = program_.regs[v].pool;
    return m;
  }

  // Which source may be memory instead: -1 if none.
  static int foldable(const Inst& inst, VReg v) {
    if (inst.mem.kind != MemKind::None) return -1;
    switch (inst.op) {
      case Opcode::Fma:
      case Opcode::FmaScalar:
        for (int s : {1, 0, 2})
          if (inst.src[static_cast<size_t>(s)] == v) return s;
        return -1;
      case Opcode::Dot:
      case Opcode::IAdd:
      case Opcode::ISub:
      case Opcode::IMul:
      case Opcode::IAnd:
      case Opcode::IOr:
      case Opcode::IXor:
      case Opcode::ISetCompare:
      case Opcode::JumpCompare:
      case Opcode::LoopBack:
        return inst.src[1] == v ? 1 : -1;
      default:
        break;
    }
    const Shape shape = info(inst.op).shape;
    const bool two = shape == Shape::RRM || shape == Shape::RRMI || shape == Shape::KRM ||
                     shape == Shape::KRMI || shape == Shape::KCmp;
    return two && inst.src[1] == v ? 1 : -1;
  }

  void fold(Inst& inst, VReg v) {
    const int s = foldable(inst, v);
    if (s < 0 || program_.regs[v].immediate) return;
    inst.src[static_cast<size_t>(s)] = kNoReg;
    inst.mem = program_.regs[v].pooled ? pool(v) : slot(v);
  }

  void rewrite(Inst inst) {
    if (is_spilled(inst.dst) && constant(inst.dst)) return;  // made again at each use
    for (VReg v : {inst.src[1], inst.src[0], inst.src[2]})
      if (is_spilled(v)) fold(inst, v);
    const std::array<VReg*, 6> reads = {&inst.src[0], &inst.src[1],   &inst.src[2],
                                        &inst.mask,   &inst.mem.base, &inst.mem.index};
    std::array<std::pair<VReg, VReg>, 6> done;
    size_t count = 0;
    for (VReg* read : reads) {
      if (!is_spilled(*read)) continue;
      VReg t = kNoReg;
      for (size_t d = 0; d < count; ++d)
        if (done[d].first == *read) t = done[d].second;
      if (t == kNoReg) {
        t = reload(*read, inst);
        done[count++] = {*read, t};
      }
      *read = t;
    }
    if (!is_spilled(inst.dst)) {
      program_.code.push_back(inst);
      return;
    }
    const VReg v = inst.dst;
    const bool plain_move = inst.op == Opcode::IMove || inst.op == Opcode::KMove ||
                            (inst.op == Opcode::VMove && inst.mask == kNoReg);
    if (plain_move) return store(v, inst.src[0], inst);
    inst.dst = info(inst.op).flags & kPair ? reload(v, inst) : temporary(v);
    const VReg t = inst.dst;
    program_.code.push_back(inst);
    store(v, t, inst);
  }

  MachineProgram& program_;
  const std::vector<uint8_t>& spilled_;
  std::vector<uint32_t> slot_of_;
};

}  // namespace

Allocation allocate(MachineProgram& program) {
  for (int round = 0; round < kRoundsMax; ++round) {
    Scan scan(program);
    if (scan.run()) return scan.take();
    Spiller(program, scan.spilled()).run();
  }
  throw_error(Status::Internal, "x86: register allocation does not end");
}

}  // namespace tiny::x86
