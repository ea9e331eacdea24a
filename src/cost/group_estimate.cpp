#include "cost/group_estimate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <vector>

#include "base/matrix.h"
#include "cost/access_table.h"
#include "ir/bounds.h"
#include "ir/op.h"

namespace tiny {

namespace {

constexpr double kSector = 32;          // bytes that memory gives at once
constexpr double kWord = 4;             // bytes of a bank, and of a register
constexpr double kIndexed = 2;          // instructions of an access beside itself: its address
constexpr double kTurn = 3;             // of a loop's turn
constexpr double kOthers = 0.15;        // of what the wanted most resource leaves, is not hidden
constexpr double kRegistersLeast = 24;  // of a thread: addresses, counters, operands
constexpr double kRegistersMost = 255;  // that an instruction can name
constexpr double kSpilled = 8;          // what a thread whose values have no registers takes more
constexpr double kIssueLatency = 4;     // cycles from one instruction of a warp to the next
constexpr double kAhead = 4;            // turns of a loop whose loads are under way together
constexpr double kUsable = 0.5;         // of the cache that all share
constexpr double kDivided = 10;         // a division or root, in instructions; by steps
constexpr double kWordDivided = 20;     // an integer divided by another
constexpr double kPulled = 4;           // this part of the processors takes all that memory gives
constexpr double kCounted = 1e15;       // more is not told apart

class GroupEstimator {
 public:
  GroupEstimator(const Kernel& kernel, const Machine& machine)
      : kernel_(kernel), machine_(machine), table_(access_table(kernel)) {
    for (size_t i = 0; i < kernel.ranges.size(); ++i) {
      const KernelRange& r = kernel.ranges[i];
      switch (r.kind) {
        case RangeKind::Thread:
          groups_ *= extent(i);
          break;
        case RangeKind::Local:
          sizes_[r.axis] = r.range.src(0).const_int();
          break;
        case RangeKind::Vec:
          lanes_ |= bit(i);
          break;
        case RangeKind::Loop:
          loops_ |= bit(i);
          break;
        default:
          unrolled_ |= bit(i);
      }
    }
    threads_ = static_cast<double>(sizes_[0] * sizes_[1] * sizes_[2]);
    warps_ = std::ceil(threads_ / machine.group.warp);
  }

  Estimate run() {
    for (size_t k = 0; k < table_.order.size(); ++k) count(k);
    for (const AccessInfo& a : table_.accesses) access(a);
    for (const UOp& u : table_.order)
      if (closes_ranges(u)) close(u);
    for (const UOp& u : table_.order)
      if (u.op() == Op::Running) run_along(u);
    return sum();
  }

 private:
  double extent(size_t range) const { return table_.extents[range]; }
  double product(RangeSet set) const {
    double n = 1;
    for (; set; set &= set - 1) n *= extent(static_cast<size_t>(std::countr_zero(set)));
    return n;
  }
  RangeSet closed_by(const UOp& u) const {
    RangeSet own = 0;
    if (closes_ranges(u))
      for (const UOp& r : u.src().subspan(1)) own |= bit(kernel_.position(r));
    return own;
  }
  // How often a thread makes a value, of all lanes at once.
  double times(RangeSet set) const { return product(set & (loops_ | unrolled_)); }

  void count(size_t place) {
    const UOp& u = table_.order[place];
    const RangeSet set = table_.free[place];
    if (set & shared_columns_ && u.op() != Op::MatrixTerm) return;  // no thread has a value
    if (u.op() == Op::MatrixTerm) return multiply(u, set);
    const double copies = product(set & (unrolled_ | lanes_));
    thread_.copies = std::max(thread_.copies, copies);
    if (!has(u.op(), kElementwise)) return;
    const bool is_index = u.dtype() == kInt64;
    const double n = times(set) * (is_index ? 1 : product(set & lanes_));
    const double each = n * price(u);
    thread_.instructions += each;
    if (!is_index) thread_.arithmetic += each;
  }

  // A warp forms products of matrices, whose elements are some of the repeated ranges.
  void multiply(const UOp& term, RangeSet set) {
    const MatrixRow& row = kMatrixRows[static_cast<size_t>(term.int_arg())];
    RangeSet elements = bit(kernel_.position(term.src(4))) | bit(kernel_.position(term.src(5)));
    if (row.shares_operands())
      elements |= bit(kernel_.position(term.src(3))) | bit(kernel_.position(term.src(6)));
    const double n = times(set & ~elements & ~steps_of_words());
    thread_.instructions += n;
    // Words of one step are half as many in the same time.
    const double each =
        static_cast<double>(row.m * row.n * row.k) * 2 / static_cast<double>(row.steps);
    if (row.shares_operands()) return multiply_shared(term, row, n, rooms_of(set));
    all_.products += groups_ * warps_ * n * each;
    for (const UOp& operand : {term.src(0), term.src(1)}) operands_.push_back(operand);
  }
  // Both operands are read whole for each product of several warps.
  void multiply_shared(const UOp& term, const MatrixRow& row, double n, double rooms) {
    const double products = groups_ * warps_ / static_cast<double>(row.warps) * n;
    const auto rows = static_cast<double>(row.m * row.warps), columns = static_cast<double>(row.n);
    const double element = kWord / static_cast<double>(row.steps);
    const double all = products * rows * columns * static_cast<double>(row.k);
    all_.wide_products += all;
    if (rooms < static_cast<double>(kRoomsOfProducts)) all_.waited_products += all;
    all_.shared_turns += products * (rows + columns) * static_cast<double>(row.k) * element /
                         (kWord * machine_.group.banks);
    for (const UOp& operand : {term.src(0), term.src(1)}) operands_.push_back(operand);
  }
  RangeSet steps_of_words() const {
    RangeSet words = 0;
    for (size_t i = 0; i < kernel_.ranges.size(); ++i)
      if (kernel_.ranges[i].kind == RangeKind::Dot) words |= bit(i);
    return words;
  }

  // An operand that is loaded from shared memory as matrices, in rows of 16 bytes: each turn of a
  // warp reads eight of them, if they are in different banks.
  void load_matrices(const AccessInfo& a, double n, double element) {
    constexpr double kRowBytes = 16;
    const double words = n * element / kWord;
    thread_.instructions += 2 * words * kWord / kRowBytes;
    const StageArg& stage = a.node.src(0).stage_arg();
    int64_t line = 1;
    for (const int64_t stride : stage.strides) line = std::max(line, stride);
    const auto pieces = static_cast<int64_t>(static_cast<double>(line) * element / kRowBytes);
    const int64_t meet = std::max<int64_t>(std::gcd(pieces, int64_t{8}) >> stage.swizzle, 1);
    all_.shared_turns += groups_ * warps_ * words * static_cast<double>(meet);
  }

  static double price(const UOp& u) {
    switch (u.op()) {
      case Op::Div:
      case Op::Sqrt:
        return kDivided;
      case Op::FloorDiv:
      case Op::FloorMod:
      case Op::TruncDiv:
      case Op::TruncMod:
        return u.src(1).is_const() ? kTurn : kWordDivided;
      default:
        return 1;
    }
  }

  // The steps of an access from thread to thread, along each axis; kOpaqueStride: anywhere.
  std::array<int64_t, kGroupAxes> steps_of(std::span<const int64_t> strides) const {
    std::array<int64_t, kGroupAxes> steps{};
    for (size_t i = 0; i < strides.size(); ++i)
      if (kernel_.ranges[i].kind == RangeKind::Local && strides[i] != 0)
        steps[kernel_.ranges[i].axis] = strides[i];
    return steps;
  }
  // Elements that a thread has side by side in one access, and how many such accesses its lanes
  // are.
  struct Lanes {
    double beside = 1;
    double accesses = 1;
  };
  Lanes lanes_of(const AccessInfo& a, double element) const {
    const double widest = std::max(machine_.group.access_bytes / element, 1.0);
    Lanes lanes;
    for (size_t i = 0; i < a.strides.size(); ++i) {
      if (!(lanes_ & bit(i)) || a.strides[i] == 0) continue;
      if (a.strides[i] == 1) lanes.beside *= extent(i);
      if (a.strides[i] != 1) lanes.accesses *= extent(i);
    }
    if (lanes.beside > widest) lanes.accesses *= lanes.beside / widest, lanes.beside = widest;
    return lanes;
  }

  void access(const AccessInfo& a) {
    const DType dtype = a.store ? a.node.src(1).dtype() : a.node.dtype();
    const auto element = static_cast<double>(dtype.bytes());
    const RangeSet set = table_.free[a.place];
    const Lanes lanes = lanes_of(a, element);
    const double n = times(set) * lanes.accesses;
    const auto steps = steps_of(a.strides);
    if (a.node.op() == Op::Index && std::ranges::find(operands_, a.node) != operands_.end()) {
      if (shared_columns_ == 0) load_matrices(a, n, element);
      return;
    }
    if (a.node.op() == Op::Index) {
      thread_.instructions += 2 * n;
      if (is_stage(a.node.src(0)) && a.node.src(0).stage_arg().is_shared)
        share(n, steps, element, lanes.beside);
      return;
    }
    thread_.instructions += n * (1 + kIndexed);
    const double sectors = sectors_of(steps, element, lanes.beside);
    const double bytes = groups_ * n * sectors * kSector;
    all_.level2 += bytes;
    Param& param = all_.params[a.node.src(0).int_arg()];
    param.all = std::max(param.all, std::max(a.elements, 1.0) * element);
    param.moved += bytes;
    for (size_t i = 0; i < a.strides.size(); ++i)
      if (a.strides[i] != 0 && kernel_.ranges[i].kind == RangeKind::Thread) param.groups |= bit(i);
    // What is copied ahead is under way in all rooms but one.
    if (!a.store) thread_.waits += product(set & loops_) / kAhead / rooms_of(set) + 1;
  }

  double rooms_of(RangeSet set) const {
    double rooms = 1;
    for (; set; set &= set - 1)
      rooms *= kernel_.ranges[static_cast<size_t>(std::countr_zero(set))].rooms;
    return rooms;
  }

  // The sectors that a group's warps touch in one access.
  double sectors_of(const std::array<int64_t, kGroupAxes>& steps, double element,
                    double beside) const {
    double left = std::min<double>(machine_.group.warp, threads_);
    double span = element * beside, others = 1;
    for (size_t axis = 0; axis < kGroupAxes; ++axis) {
      const double size = std::min(static_cast<double>(sizes_[axis]), left);
      left = std::max(left / static_cast<double>(sizes_[axis]), 1.0);
      if (steps[axis] == 0 || size == 1) continue;
      const double step = steps[axis] == kOpaqueStride
                              ? kSector
                              : std::abs(static_cast<double>(steps[axis])) * element;
      if (step < kSector || step <= span)
        span += step * (size - 1);
      else
        others *= size;
    }
    return std::ceil(span / kSector) * others * warps_;
  }

  void share(double n, const std::array<int64_t, kGroupAxes>& steps, double element,
             double beside) {
    const auto bytes = static_cast<int64_t>(element * beside);
    const double least = std::ceil(static_cast<double>(bytes) / kWord);
    const auto conflicts =
        bank_conflicts(steps, sizes_, static_cast<int64_t>(element), bytes, machine_.group);
    all_.shared_turns += groups_ * warps_ * n * (least + static_cast<double>(conflicts));
  }

  void close(const UOp& u) {
    const RangeSet own = closed_by(u);
    const RangeSet set = table_.free_of(u) | own;
    const double turns = product(set & loops_);
    thread_.instructions += turns * kTurn;
    const double begun = product(table_.free_of(u) & loops_);
    bool is_dealt = false;
    for (size_t i = 0; i < kernel_.ranges.size(); ++i)
      is_dealt = is_dealt || ((own & bit(i)) && kernel_.ranges[i].kind == RangeKind::Local &&
                              !(is_matrix_sum(u) && kernel_.ranges[i].axis < 2));
    if (u.op() == Op::Reduce) {
      const double additions = is_matrix_sum(u) ? 0 : times(set) * product(set & lanes_);
      thread_.instructions += additions;
      thread_.arithmetic += additions;
      const double sums = product(table_.free_of(u) & (unrolled_ | lanes_));
      thread_.registers += sums * static_cast<double>(u.dtype().bytes()) / kWord;
      if (is_dealt) {
        thread_.barriers += 2 * begun;
        thread_.instructions += begun * sums * std::log2(std::max(threads_, 2.0)) * 2;
      }
      return;
    }
    if (!is_stage(u) || !u.stage_arg().is_shared) return;
    // Of all that is copied ahead there is one barrier a step.
    thread_.barriers += rooms_of(table_.free_of(u)) > 1 ? begun / 2 : 2 * begun;
    fill(u, own);
  }

  // What is so far of a value stays in registers, and is corrected once a step; a sum that threads
  // do not fold has none beside its own.
  void run_along(const UOp& running) {
    const RangeSet set = table_.free_of(running);
    const double copies = product(set & (unrolled_ | lanes_));
    const double n = product(set & loops_) * copies;
    thread_.instructions += 2 * n;
    thread_.arithmetic += 2 * n;
    if (!is_matrix_sum(UOp(running.src(0))))
      thread_.registers += copies * static_cast<double>(running.dtype().bytes()) / kWord;
  }

  void fill(const UOp& stage, RangeSet own) {
    std::vector<int64_t> strides(kernel_.ranges.size());
    double room = 1;
    for (size_t i = 1; i < stage.src().size(); ++i) {
      const size_t at = kernel_.position(stage.src(i));
      strides[at] = stage.stage_arg().strides[i - 1];
      room += (extent(at) - 1) * static_cast<double>(strides[at]);
    }
    const auto element = static_cast<double>(stage.dtype().bytes());
    shared_bytes_ += room * element * rooms_of(table_.free_of(stage));
    double beside = 1;
    for (size_t i = 0; i < strides.size(); ++i)
      if ((lanes_ & bit(i)) && strides[i] == 1) beside *= extent(i);
    const RangeSet set = table_.free_of(stage) | own;
    const double n = times(set) * product(set & lanes_) / beside;
    thread_.instructions += n * 2;
    const std::array<int64_t, kGroupAxes> apart{};
    share(n, stage.stage_arg().swizzle != 0 ? apart : steps_of(strides), element, beside);
  }

  // Groups that one processor holds at a time.
  double resident(double registers) const {
    const GroupRates& rates = machine_.of_groups;
    const double threads = warps_ * machine_.group.warp;
    double n = std::min<double>(rates.groups, std::floor(rates.threads / threads));
    n = std::min(n, std::floor(rates.registers / (registers * threads)));
    if (shared_bytes_ > 0)
      n = std::min(n, std::floor(static_cast<double>(rates.shared_bytes) / shared_bytes_));
    return std::max(n, 1.0);
  }

  // Bytes that memory gives.  Groups that run at a time are about at the same step: what several
  // of them read comes once.  What one reads again later is there if all that these groups read
  // stays in the cache, what later groups read again if all of it does.
  double memory_bytes(double at_a_time) const {
    const double usable = kUsable * static_cast<double>(machine_.l2_bytes);
    double once = 0, held = 0;
    for (const auto& [number, param] : all_.params) {
      once += param.once();
      held += param.once() * part_of(param.groups, at_a_time);
    }
    if (once <= usable) return once;
    double all = 0;
    for (const auto& [number, param] : all_.params) {
      const double own = param.once() / product(param.groups);
      const double again = held <= usable ? 1 : std::max(param.moved / groups_ / own, 1.0);
      const double turns = std::max(groups_ / at_a_time, 1.0);
      const double in_turns = turns * part_of(param.groups, at_a_time) * param.once() * again;
      all += std::clamp(in_turns, param.once(), std::max(param.moved, param.once()));
    }
    return all;
  }
  // Of what groups have one by one along these ranges, the part that so many of them have, which
  // begin one after the other.
  double part_of(RangeSet ranges, double groups) const {
    double part = 1;
    for (size_t i = thread_ranges(kernel_); i-- > 0;) {
      if (ranges & bit(i)) part *= std::min(groups / extent(i), 1.0);
      groups = std::max(groups / extent(i), 1.0);
    }
    return part;
  }

  // Of one group, of these products of all.
  double product_seconds(double products) const {
    if (products == 0) return 0;
    return products / groups_ * machine_.cores / machine_.of_groups.wide_matrix_rate;
  }

  Estimate sum() {
    const GroupRates& rates = machine_.of_groups;
    // What is done with the sums of wide products stands where these did.
    const double copies = shared_columns_ != 0 ? 0 : thread_.copies;
    thread_.registers = kRegistersLeast + thread_.registers + copies;
    const bool spills = thread_.registers > kRegistersMost;
    const double held = resident(std::min(thread_.registers, kRegistersMost));
    const double processors = machine_.cores;
    const double busy = std::min(groups_, processors);
    // What the processor with most groups has is what all wait for.
    const double most = std::ceil(groups_ / processors);
    const double lanes = warps_ * machine_.group.warp;
    Estimate out;
    const auto at = [&](Resource r) -> double& { return out.each[static_cast<size_t>(r)]; };
    const double spilled = spills ? kSpilled : 1;
    at(Resource::Issue) =
        spilled * most * lanes * thread_.instructions / rates.issued / rates.clock;
    at(Resource::Arithmetic) =
        most * lanes * thread_.arithmetic * processors / machine_.fma_rate / 2;
    if (all_.products > 0)
      at(Resource::Arithmetic) += all_.products / groups_ * most * processors / rates.matrix_rate;
    at(Resource::Arithmetic) += most * product_seconds(all_.wide_products);
    at(Resource::Loads) = all_.shared_turns / groups_ * most * machine_.group.banks /
                          rates.shared_words / rates.clock;
    at(Resource::Level2) = all_.level2 / machine_.l2_bandwidth * processors / busy;
    at(Resource::Memory) = memory_bytes(held * processors) / machine_.memory_bandwidth /
                           std::min(1.0, kPulled * busy / processors);
    const double chain =
        thread_.waits * rates.memory_seconds + thread_.barriers * rates.barrier_seconds +
        thread_.instructions * kIssueLatency / rates.clock + product_seconds(all_.waited_products);
    at(Resource::Chain) = std::ceil(most / held) * chain;
    out.copies = static_cast<int64_t>(std::min(thread_.copies, kCounted));
    out.code = static_cast<int64_t>(std::min(thread_.instructions, kCounted));
    double wanted = 0, all = 0;
    for (const double s : out.each) wanted = std::max(wanted, s), all += s;
    out.seconds = wanted + kOthers * (all - wanted) + machine_.launch_seconds;
    return out;
  }

  struct Param {
    double all = 0;       // bytes that are touched
    double moved = 0;     // by sectors, each time
    RangeSet groups = 0;  // launched ranges in which they differ

    double once() const { return std::min(all, moved); }
  };

  // What a thread does.
  struct OfThread {
    double instructions = 0, arithmetic = 0;
    double copies = 1;  // of the value that is repeated most
    double registers = 0;
    double waits = 0, barriers = 0;
  };
  // What all groups move.
  struct OfAll {
    double level2 = 0;           // bytes
    double shared_turns = 0;     // of warps, for words of shared memory
    double products = 0;         // of matrices: multiply-adds of 16 bits
    double wide_products = 0;    // the same, of several warps
    double waited_products = 0;  // of these, with which each step ends
    std::map<int64_t, Param> params;
  };

  const Kernel& kernel_;
  const Machine& machine_;
  const AccessTable table_;
  std::array<int64_t, kGroupAxes> sizes_{1, 1, 1};  // of a group, by axis
  RangeSet loops_ = 0, unrolled_ = 0, lanes_ = 0;
  double groups_ = 1, threads_ = 1, warps_ = 1;
  double shared_bytes_ = 0;    // of a group
  std::vector<UOp> operands_;  // of products of matrices
  RangeSet shared_columns_ = tiny::shared_columns(kernel_);
  OfThread thread_;
  OfAll all_;
};

}  // namespace

Estimate estimate_groups(const Kernel& kernel, const Machine& machine) {
  return GroupEstimator(kernel, machine).run();
}

int64_t bank_conflicts(const std::array<int64_t, kGroupAxes>& strides,
                       const std::array<int64_t, kGroupAxes>& sizes, int64_t element_bytes,
                       int64_t bytes, const GroupLimits& limits) {
  if (limits.banks == 0) return 0;
  const auto word = static_cast<int64_t>(kWord);
  const int64_t words = std::max<int64_t>(bytes / word, 1);
  const int64_t threads = std::min<int64_t>(limits.warp, sizes[0] * sizes[1] * sizes[2]);
  // Threads of wide accesses go in turns, as many as the banks give at once.
  const int64_t beside = std::max<int64_t>(limits.banks / words, 1);
  int64_t conflicts = 0;
  for (int64_t first = 0; first < threads; first += beside) {
    std::map<int64_t, std::vector<int64_t>> banks;
    size_t most = 1;
    for (int64_t t = first; t < std::min(threads, first + beside); ++t) {
      const std::array<int64_t, kGroupAxes> at{t % sizes[0], t / sizes[0] % sizes[1],
                                               t / sizes[0] / sizes[1]};
      int64_t address = 0;
      for (size_t axis = 0; axis < kGroupAxes; ++axis) {
        const int64_t stride = strides[axis] == kOpaqueStride ? 1 : strides[axis];
        address += at[axis] * stride * element_bytes;
      }
      for (int64_t w = 0; w < words; ++w) {
        const int64_t number = address / word + w;
        std::vector<int64_t>& held = banks[number % limits.banks];
        if (std::ranges::find(held, number) == held.end()) held.push_back(number);
        most = std::max(most, held.size());
      }
    }
    conflicts += static_cast<int64_t>(most) - 1;
  }
  return conflicts;
}

}  // namespace tiny
