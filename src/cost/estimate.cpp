#include "cost/estimate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>
#include <vector>

#include "cost/border_questions.h"
#include "cost/cut_tiles.h"
#include "cost/footprint.h"
#include "cost/group_estimate.h"
#include "cost/nests.h"
#include "cost/prices.h"
#include "cost/walked_kernel.h"
#include "ir/picked_lanes.h"

namespace tiny {

namespace {

constexpr std::string_view kNames[kResources] = {"issue", "arithmetic", "loads",   "stores",
                                                 "chain", "level 2",    "level 3", "memory"};

// The resource that is wanted most, and a part of what the others take.
double seconds_by(const std::array<double, kResources>& each) {
  double most = 0, all = 0;
  for (const double s : each) most = std::max(most, s), all += s;
  return most + kOthers * (all - most);
}

class Estimator {
 public:
  Estimator(const Kernel& kernel, const Machine& machine)
      : walk_(kernel, machine), cut_(walk_), nests_(walk_) {}

  Estimate run() {
    for (size_t k = 0; k < nests_.closures().size(); ++k) close(k);
    return sum();
  }

 private:
  using Value = WalkedKernel::Value;

  double& at(Resource r) { return cycles_[static_cast<size_t>(r)]; }
  // How often a value in this nest is made: where its innermost loop turns, for each copy.
  double times(const Nest& nest, const Value& u) const {
    const RangeSet set = u.free;
    double n = walk_.product(set & walk_.unrolled);
    size_t depth = nest.loops.size();
    while (depth > 0 && !(set & bit(nest.loops[depth - 1]))) --depth;
    RangeSet walked = set & walk_.unrolled;
    for (size_t i = 0; i < depth; ++i)
      n *= walk_.extent(nest.loops[i]), walked |= bit(nest.loops[i]);
    return n * cut_.share_within(walked);
  }
  double turns(const Nest& nest) const {
    double n = 1;
    for (const size_t l : nest.loops) n *= walk_.extent(l);
    return n;
  }

  void close(size_t closure) {
    const Value u = walk_.value(nests_.closures()[closure].place);
    const RangeSet own = walk_.closed_by(u.node);
    Nest nest = nests_.open(closure);
    const double before = at(Resource::Issue);
    for (uint32_t k = u.place; k-- > 0;)
      if (nests_.is_computed_in(k, closure)) compute(nest, walk_.value(k), u.node);
    totals_.copies = std::max(totals_.copies, walk_.product((u.free | own) & walk_.unrolled));
    if (u.node.op() == Op::Reduce) reduce(nest, u, own);
    if (u.node.op() == Op::Store) store(nest, u);
    if (u.node.op() == Op::Stage) fill(nest, u, own);
    look_up(nest, nests_.longest_wait(walk_.sources(u.place)), at(Resource::Issue) - before);
    turn(nest);
    const LevelBytes bytes =
        traffic(nest.touched, nest.loops, walk_.unrolled | walk_.lanes | walk_.words,
                walk_.table.extents, walk_.machine);
    totals_.bytes.level2 += bytes.level2;
    totals_.bytes.level3 += bytes.level3;
    totals_.bytes.memory += bytes.memory;
  }

  // A value's instructions stand in the code once for each of its copies, of which the bodies have
  // one, two, .. and all.
  void repeat(const Value& v, double instructions) {
    const double copies = walk_.product(v.free & walk_.unrolled);
    totals_.copies = std::max(totals_.copies, copies);
    totals_.code += copies * cut_.bodies(v.free) * instructions;
  }

  // Copies wait together for lookups that wait for each other; meanwhile a core looks at the next
  // turns.  One lookup alone is known ahead.
  void look_up(const Nest& nest, double wait, double instructions) {
    if (wait <= kLookedUpFar) return;
    const double turned = turns(nest);
    const double ahead = std::max(1.0, kAhead * turned / std::max(1.0, instructions));
    at(Resource::Chain) += turned * wait / ahead;
  }

  // What the loops themselves take.
  void turn(const Nest& nest) {
    double n = 1;
    for (const size_t l : nest.loops) {
      at(Resource::Issue) += n * kLoopEntered * walk_.machine.issued;
      n *= walk_.extent(l);
      at(Resource::Issue) += n * kLoopTurn * walk_.machine.issued;
    }
  }

  // What a value takes that is computed in the loops of `closed`.
  void compute(Nest& nest, const Value& v, const UOp& closed) {
    const UOp& u = v.node;
    if (u.op() == Op::Load || u.op() == Op::Index) return load(nest, v);
    if (!has(u.op(), kElementwise)) return;
    repeat(v, walk_.vectors(v, u.dtype()));
    const double n = times(nest, v);
    if (u.dtype() == kInt64 && !nests_.is_data(v.place)) return index(v, n);
    if (u.src(0).dtype() == kInt64 && !nests_.is_data(v.place) && u.dtype() == kBool)
      return mask(v, n);
    // The product of a sum of products is no instruction of its own.
    if (u.op() == Op::Mul && closed.op() == Op::Reduce && closed.src(0) == u &&
        closed.reduce_arg().op == Op::Add)
      return;
    const DType operand = u.src(0).dtype();
    const DType computed = u.op() == Op::Cast || u.dtype() == kBool ? operand : u.dtype();
    at(Resource::Issue) += n * walk_.vectors(v, computed);
    at(Resource::Arithmetic) += n * price(v, operand) * walk_.units(walk_.lanes_of(v), computed);
    if (u.op() == Op::Where && is_asked_by_taps(v))
      at(Resource::Arithmetic) += n * kAsked * walk_.units(walk_.lanes_of(v), computed);
  }

  // Whether the turns of a window's loop decide which of two values it is: what is read of the
  // other is made safe in each.
  bool is_asked_by_taps(const Value& where) const {
    const uint32_t condition = walk_.sources(where.place)[0];
    if (nests_.is_data(condition)) return false;
    for (RangeSet set = walk_.table.free[condition] & walk_.loops; set; set &= set - 1)
      if (walk_.kernel.ranges[static_cast<size_t>(std::countr_zero(set))].reduced) return true;
    return false;
  }

  double price(const Value& v, DType operand) const {
    const bool is_vector = (v.free & walk_.lanes) != 0;
    switch (v.node.op()) {
      case Op::Div:
      case Op::Sqrt:
        return operand.is_float() ? (is_vector ? kDivided : kDividedScalar) : kWordDivided;
      case Op::FloorDiv:
      case Op::FloorMod:
      case Op::TruncDiv:
      case Op::TruncMod:
        return v.node.src(1).is_const() ? 4 * kMultiplied : kWordDivided * walk_.lanes_of(v);
      default:
        return kMultiplied;
    }
  }

  // Sums of ranges are part of an address; what is divided is computed, for each lane.
  void index(const Value& v, double n) {
    const Op op = v.node.op();
    if (op != Op::FloorDiv && op != Op::FloorMod && op != Op::Where) return;
    at(Resource::Arithmetic) += n * walk_.lanes_of(v) * kIndexDivided;
    at(Resource::Issue) += n * walk_.lanes_of(v) * 4;
  }

  // Whether indices are in some order: a mask of each vector's lanes is made from where it changes.
  void mask(const Value& v, double n) {
    const bool has_lanes = (v.free & walk_.lanes) != 0;
    at(Resource::Arithmetic) += n * (has_lanes ? kMaskMade : kMultiplied);
    at(Resource::Issue) += n * (has_lanes ? kMaskIssued : 1);
  }

  void mask_lanes(const AccessInfo& a, double registers) {
    const double masks = registers * masks_made(walk_, a);
    at(Resource::Arithmetic) += masks * kBorderMask;
    at(Resource::Issue) += masks * kMaskIssued;
  }

  void load(Nest& nest, const Value& v) {
    const AccessInfo& a = *walk_.accesses[v.place];
    const DType dtype = v.node.dtype();
    const double made = walk_.product(v.free & walk_.unrolled);
    const double n = times(nest, v) / made * std::min(made, walk_.copies(a));
    const double full = walk_.vectors(v, dtype);
    const double lanes = walk_.lanes_of(v);
    const int64_t stride = walk_.lane_stride(a);
    if (stride == 0 || stride == 1 || stride == -1) {
      const double across =
          stride == 0 ? 0 : walk_.share_across(a, lanes * walk_.bytes_of(dtype), dtype);
      // What all lanes share is loaded into all of them.
      const double all =
          std::min(walk_.product(nest.lanes), walk_.machine.vector_bytes / walk_.bytes_of(dtype));
      const double parts = walk_.units(stride == 0 ? all : lanes, dtype);
      at(Resource::Loads) += n * (parts * kLoaded + full * across * (kLoadedAcross - kLoaded));
      at(Resource::Issue) += n * full * (stride == -1 ? 2 : 1);
      if (stride == 0 && a.inside_reduction)
        at(Resource::Arithmetic) += n * share_asked(walk_, a) * kAsked;
      if (stride == 1) mask_lanes(a, times(nest, v) / made * full);
      repeat(v, full);
    } else if (stride != kOpaqueStride &&
               are_picked(walk_.machine, std::abs(stride), static_cast<int64_t>(lanes),
                          v.node.dtype().bytes())) {
      const double registers = full * static_cast<double>(std::abs(stride));
      const double parts = walk_.units(lanes, dtype) * static_cast<double>(std::abs(stride));
      at(Resource::Loads) += n * (parts * kLoaded + registers * (kLoadedAcross - kLoaded));
      at(Resource::Arithmetic) +=
          n * (parts - walk_.units(lanes, dtype)) * walk_.machine.move_cycles;
      at(Resource::Issue) += n * registers * 2;
      mask_lanes(a, times(nest, v) / made * registers);
      repeat(v, 2 * registers);
    } else {
      const bool is_opaque = stride == kOpaqueStride;
      const double gathered = walk_.machine.gather_cycles;
      const double inserted = kInsertMoves * walk_.machine.move_cycles;
      at(Resource::Loads) += n * lanes * kLoaded;
      at(Resource::Arithmetic) += n * lanes * (is_opaque ? gathered : inserted);
      at(Resource::Issue) += n * lanes * (is_opaque ? kGatherIssued * gathered : kInsertIssued);
      repeat(v, 2 * lanes);
    }
    nest.touched.push_back(&a);
  }

  // Rows of a square that is stored across: copies that lie side by side where lanes lie apart.
  // None where some of them are left out in half of the tiles or more.
  double rows_across(std::vector<std::pair<double, size_t>> copies) const {  // stride and range
    std::ranges::sort(copies);
    double rows = 1;
    for (const auto& [stride, range] : copies) {
      const bool is_row = stride <= rows;
      if (cut_.is_cut(range, 2)) return 1;
      if (is_row) rows *= walk_.extent(range);
    }
    return rows;
  }
  double rows_across(const AccessInfo& a) const {
    std::vector<std::pair<double, size_t>> copies;
    for (RangeSet set = walk_.unrolled; set; set &= set - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(set));
      if (a.strides[i] != 0) copies.emplace_back(std::abs(static_cast<double>(a.strides[i])), i);
    }
    return rows_across(std::move(copies));
  }

  void store(Nest& nest, const Value& u) {
    const AccessInfo& a = *walk_.accesses[u.place];
    const DType dtype = u.node.src(1).dtype();
    repeat(u, walk_.lane_stride(a) == 0 || walk_.lane_stride(a) == 1 ? 1 : 2 * walk_.lanes_of(u));
    // All values of a block are made before the first is stored.
    const double full = walk_.vectors(u, dtype);
    spill(turns(nest),
          walk_.product(u.free & walk_.unrolled) * full + kBeside - walk_.machine.vector_registers,
          walk_.units(walk_.lanes_of(u), dtype) / full);
    write(times(nest, u), walk_.lanes_of(u), dtype, walk_.lane_stride(a), rows_across(a));
    nest.touched.push_back(&a);
  }

  // Moves between registers that turn so many rows: each step of unpacking pairs them all, and
  // columns are taken out of the registers that hold several.
  static double moves(double rows, double lanes, double registers) {
    const auto height = static_cast<double>(std::bit_ceil(static_cast<uint64_t>(rows)));
    const double taken = height < lanes ? lanes * (1 - height / lanes) : 0;
    return height * std::log2(height) * registers + taken;
  }

  void write(double n, double lanes, DType dtype, int64_t stride, double rows) {
    const double full = walk_.registers(lanes, dtype), parts = walk_.units(lanes, dtype);
    if (stride == 0 || stride == 1) {
      at(Resource::Stores) += n * parts * kStored;
      at(Resource::Issue) += n * full;
    } else if (weaves(walk_.machine) && dtype.bytes() == kWovenBytes &&
               are_woven(static_cast<int64_t>(rows), static_cast<int64_t>(lanes), stride)) {
      at(Resource::Stores) += n * parts * kStored;
      at(Resource::Arithmetic) += n * parts * (rows - 1) * walk_.machine.move_cycles;
      at(Resource::Issue) += n * full * rows;
    } else {
      // What is left of rows that fill squares fills a lower one; few are stored lane by lane.
      const int64_t bytes = dtype.bytes();
      const double most = bytes == kWovenBytes ? lanes : kByteRows;
      const bool turns = lanes >= 4 && (bytes == kWovenBytes || bytes == 1);
      const double whole = turns ? std::floor(rows / most) : 0, rest = rows - whole * most;
      const bool is_last = turns && are_turned(static_cast<int64_t>(rest), bytes);
      const double squares = n / rows * (whole + (is_last ? 1 : 0));
      const double apart = n / rows * (is_last ? 0 : rest);
      const double moved =
          n / rows * (whole * moves(most, lanes, full) + (is_last ? moves(rest, lanes, full) : 0));
      at(Resource::Stores) += (squares + apart) * lanes * kStored;
      at(Resource::Arithmetic) +=
          moved * walk_.machine.move_cycles * parts / full + apart * lanes * kExtractedLane;
      at(Resource::Issue) += (squares * lanes + moved + apart * lanes * 2);
    }
  }

  void fill(const Nest& nest, const Value& stage, RangeSet own) {
    const UOp& u = stage.node;
    const RangeSet set = walk_.table.free[walk_.sources(stage.place)[0]] | own;
    int64_t stride = 0;
    double n = 1;
    for (const size_t l : nest.loops) n *= walk_.extent(l);
    n *= walk_.product(set & walk_.unrolled);
    std::vector<std::pair<double, size_t>> copies;
    for (size_t i = 1; i < u.src().size(); ++i) {
      const size_t range = walk_.kernel.position(u.src(i));
      const int64_t along = u.stage_arg().strides[i - 1];
      if (bit(range) & walk_.lanes) stride = along;
      if (bit(range) & walk_.unrolled) copies.emplace_back(static_cast<double>(along), range);
    }
    write(n, walk_.product(set & walk_.lanes), u.dtype(), stride, rows_across(std::move(copies)));
  }

  // What no register has is stored and loaded again.
  void spill(double times, double values, double units_of_each) {
    const double spilled = std::max(0.0, values);
    at(Resource::Loads) += times * spilled * units_of_each * kSpilled;
    at(Resource::Stores) += times * spilled * units_of_each * kSpilled;
    at(Resource::Issue) += times * spilled * 2;
  }

  // Sums of a tile that no register has.  Where copies read what other steps of their sums read too
  // (rows along a window), either all that these steps have for every copy waits for the next copy,
  // beside what is loaded into all lanes to meet it (vectors are read where they lie), or what
  // copies read waits for the next step, beside what one step has: whichever is less
  // (codegen/linear/order_sums.h).
  double sums_without(const Nest& nest, double sums, RangeSet repeated) const {
    bool is_sliding = false;
    double waiting = 0, met = 0, of_step = 0;
    for (const AccessInfo* a : nest.touched) {
      const RangeSet copied = walk_.table.free[a->place] & walk_.unrolled;
      if (!a->inside_reduction || !(copied & repeated)) continue;
      const Value v = walk_.value(a->place);
      const double vectors = walk_.vectors(v, v.node.dtype());
      const double steps = walk_.product(copied & repeated);
      if (walk_.copies(*a) > kSharedLess * walk_.product(copied)) {
        waiting += walk_.product(copied) * vectors;
        of_step += walk_.product(copied) / steps * vectors;
      } else {
        is_sliding = true;
        if (walk_.lane_stride(*a) == 0) met = 1;
        of_step += std::max(walk_.copies(*a) - steps + 1, 1.0) * vectors;
      }
    }
    const double of_window = is_sliding ? std::min(waiting + met, of_step) - kReadAnew : 0;
    return sums + std::max(kBesideSums, of_window) - walk_.machine.vector_registers;
  }

  // The additions themselves, and the chain of those that wait for each other.
  void reduce(const Nest& nest, const Value& u, RangeSet own) {
    const RangeSet all = u.free | own;
    const DType dtype = u.node.dtype();
    const double lanes = walk_.product(all & walk_.lanes);
    const double full = walk_.registers(lanes, dtype);
    RangeSet repeated = 0;  // into the same sum
    for (size_t i = 0; i < walk_.kernel.ranges.size(); ++i)
      if ((own & bit(i)) && walk_.kernel.ranges[i].kind == RangeKind::Unroll) repeated |= bit(i);
    const double sums = walk_.product(all & walk_.unrolled & ~repeated) * full;
    const double n = turns(nest) * walk_.product(all & walk_.unrolled) *
                     cut_.share_within(all & (walk_.loops | walk_.unrolled));
    const double parts = walk_.units(lanes, dtype);
    at(Resource::Issue) += n * full;
    at(Resource::Arithmetic) += n * parts * kMultiplied;
    const double without = sums_without(nest, sums, repeated);
    spill(turns(nest) * walk_.product(repeated), without, parts / full);
    const double steps = walk_.product(own & walk_.loops) * walk_.product(repeated);
    const double outside = turns(nest) / walk_.product(own & walk_.loops);
    const double ahead = std::max(1.0, kAhead / (steps * sums * 2));
    const bool is_stored = without > 0 && (own & walk_.loops) != 0;  // by each turn, for the next
    at(Resource::Chain) += outside * steps * (kLatency + (is_stored ? kForwarded : 0)) / ahead;
    if (nest.is_split) {
      size_t last = nest.loops.size();  // the reduced loops inside of all others
      double inside = 1;
      while (last > 0 && (own & bit(nest.loops[last - 1])))
        inside *= walk_.extent(nest.loops[--last]);
      const double added = turns(nest) / inside * sums;
      const double pieces = added * parts / full;
      at(Resource::Loads) += pieces * kLoaded + added * (kLoadedAcross - kLoaded);
      at(Resource::Stores) += pieces * kStored;
      at(Resource::Issue) += added * 3;
      at(Resource::Arithmetic) += pieces * kMultiplied;
    }
    if (own & walk_.lanes) {
      const Op op = u.node.reduce_arg().op;
      const bool is_extreme = (op == Op::Max || op == Op::Min) && dtype.is_float();
      const double combined = is_extreme ? kExtreme : 1;
      const double folds = outside * walk_.product(u.free & walk_.unrolled) * kFolds;
      at(Resource::Arithmetic) += folds * (1 + combined) * kMultiplied;
      at(Resource::Issue) += folds * (1 + combined);
    }
  }

  Estimate sum() {
    Estimate out;
    const double cycle = 2.0 * walk_.unit_bytes() / 4 / walk_.machine.fma_rate;
    at(Resource::Issue) /= walk_.machine.issued;
    for (size_t i = 0; i < kResources; ++i) out.each[i] = cycles_[i] * cycle;
    out.each[static_cast<size_t>(Resource::Level2)] =
        totals_.bytes.level2 / walk_.machine.l2_bandwidth;
    out.each[static_cast<size_t>(Resource::Level3)] =
        totals_.bytes.level3 / walk_.machine.l3_bandwidth;
    out.each[static_cast<size_t>(Resource::Memory)] =
        totals_.bytes.memory / walk_.machine.memory_bandwidth;
    out.copies = static_cast<int64_t>(std::min(totals_.copies, kCounted));
    out.code = static_cast<int64_t>(std::min(totals_.code, kCounted));
    out.seconds = seconds_by(out.each);
    double cores = 1;
    if (const size_t threads = thread_ranges(walk_.kernel); threads > 0) {
      double pieces = 1;
      for (size_t i = 0; i < threads; ++i) pieces *= walk_.extent(i);
      const double busy = std::min<double>(walk_.machine.cores, pieces);
      cores = pieces / std::ceil(pieces / busy);
    }
    out.seconds = out.seconds / cores + walk_.machine.launch_seconds;
    return out;
  }

  const WalkedKernel walk_;
  const CutTiles cut_;
  Nests nests_;
  std::array<double, kResources> cycles_{};
  struct Totals {
    double copies = 1, code = 0;
    LevelBytes bytes;
  };
  Totals totals_;
};

}  // namespace

std::string_view name_of(Resource resource) {
  return kNames[static_cast<size_t>(resource)];
}

Resource Estimate::bound() const {
  return static_cast<Resource>(std::ranges::max_element(each) - each.begin());
}

std::string text_of(const Estimate& estimate) {
  std::vector<std::pair<double, std::string_view>> parts;
  for (size_t i = 0; i < kResources; ++i)
    if (estimate.each[i] > estimate.seconds * kTold)
      parts.emplace_back(estimate.each[i], kNames[i]);
  std::ranges::sort(parts, std::ranges::greater());
  char text[64];
  std::snprintf(text, sizeof text, "%.2f us", estimate.seconds * 1e6);
  std::string out = text;
  for (size_t i = 0; i < parts.size(); ++i) {
    out += i == 0 ? " by " : ", ";
    out += parts[i].second;
    std::snprintf(text, sizeof text, " %.2f", parts[i].first * 1e6);
    out += text;
  }
  return out;
}

Estimate with_matrix_unit(const Estimate& by_vectors, double share, const Machine& target) {
  Estimate out = by_vectors;
  for (const Resource r :
       {Resource::Issue, Resource::Arithmetic, Resource::Loads, Resource::Stores})
    out.each[static_cast<size_t>(r)] *= share;
  out.each[static_cast<size_t>(Resource::Chain)] = 0;
  const double launch = target.launch_seconds;
  out.seconds =
      launch + (out.seconds - launch) * seconds_by(out.each) / seconds_by(by_vectors.each);
  return out;
}

Estimate estimate(const Kernel& kernel, const Machine& target) {
  if (target.computes_in_groups()) return estimate_groups(kernel, target);
  return Estimator(kernel, target).run();
}

}  // namespace tiny
