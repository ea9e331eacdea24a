#include "cost/estimate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>
#include <vector>

#include "cost/access_table.h"
#include "cost/borders.h"
#include "cost/footprint.h"
#include "cost/group_estimate.h"
#include "ir/affine.h"
#include "ir/bounds.h"
#include "ir/picked_lanes.h"

namespace tiny {

namespace {

// Cycles of one core, for as much of a vector as a unit computes at once where nothing else is
// said.  Of Zen 5 (Agner Fog, Instruction tables; measured where they differ; what moves lanes on
// Zen 4, whose units beside those of products do that) and near enough of other wide cores: what
// counts is how they stand to each other.
constexpr double kLoaded = 0.5;         // a load that lies in one line
constexpr double kLoadedAcross = 1;     // that lies in two, as most of a whole line's bytes do
constexpr double kStored = 1;           //
constexpr double kMultiplied = 0.5;     // a multiply-add, a sum, a comparison
constexpr double kDivided = 8;          //
constexpr double kDividedScalar = 3;    // one element
constexpr double kInsertedLane = 0.4;   // a lane that lies apart is put into its vector
constexpr double kInsertIssued = 1.3;   // instructions of such a lane
constexpr double kGatheredLane = 1.25;  // at an index of its own
constexpr double kGatherIssued = 4;     //
constexpr double kPermuted = 0.5;       // lanes of two registers are picked into one
constexpr double kExtractedLane = 1;    // or stored
constexpr double kMaskMade = 2;         // which lanes' indices are in order
constexpr double kBorderMask = 0.5;     // which lanes of a register are loaded, where loops decide
constexpr double kMaskIssued = 4;       // instructions of such masks
constexpr double kTurned = 0.5;         // two vectors unpacked, or pieces of one moved
constexpr double kAsked = 1.5;          // a load that asks whether there is anything
constexpr double kIndexDivided = 1.5;   // an index divided by a constant: multiplied and shifted
constexpr double kWordDivided = 20;     // an integer divided by another
constexpr double kLatency = 4;          // of an addition, for the next one that needs it
constexpr double kLookedUp = 120;       // of eight lanes, for the next lookup, whose index it is
constexpr double kLookedUpFar = 260;    // in tables larger than L2 (12 in a row of forests, Zen 5)
constexpr double kFoldedLanes = 8;      // lanes added up
constexpr double kLoopTurn = 1;         // a turn of a loop: a branch that is taken, and counters
constexpr double kLoopEntered = 6;      // a loop begins and ends: the branch is foreseen mostly
constexpr double kAhead = 300;          // instructions that are looked ahead
constexpr double kSpilled = 1;          // a value that no register has
constexpr double kBeside = 2;           // registers for operands
constexpr double kBesideSums = 3;       // of products of a tile: two vectors, and what both meet
// Of a window's vectors that wait, those that may be read anew instead: of one too many a Zen 5,
// 2026-11-30, tells nothing (18 sums and 14 taps), of two twice the time (13 sums and 4 of AVX2).
constexpr double kReadAnew = 1;
// Of the copies of a load, those that are its own: where fewer are, copies share what slides by.
// Vectors side by side with dilated taps have one of 18 in common, and nothing waits for it.
constexpr double kSharedLess = 0.9;
constexpr double kForwarded = 8;  // from a store to a load of what it stored: Zen 4; Zen 5 takes 10
constexpr double kOthers = 0.15;  // of what the wanted most resource leaves, is not hidden
constexpr double kTold = 0.01;    // of all: resources of which less is wanted are not told
constexpr size_t kClosuresMax = 64;  // that are told apart

constexpr std::string_view kNames[kResources] = {"issue", "arithmetic", "loads",   "stores",
                                                 "chain", "level 2",    "level 3", "memory"};

class Estimator {
 public:
  Estimator(const Kernel& kernel, const Machine& target)
      : kernel_(kernel), target_(target), table_(access_table(kernel)) {
    for (size_t i = 0; i < kernel.ranges.size(); ++i) {
      const RangeKind kind = kernel.ranges[i].kind;
      if (kind == RangeKind::Loop || kind == RangeKind::Thread) loops_ |= bit(i);
      if (kind == RangeKind::Upcast || kind == RangeKind::Unroll) unrolled_ |= bit(i);
      if (kind == RangeKind::Vec) lanes_ |= bit(i);
      if (kind == RangeKind::Dot) words_ |= bit(i);
    }
    for (const UOp& fact : kernel.facts) {
      RangeSet ranges = 0;
      for (const UOp& u : topological({&fact, 1}))
        if (u.op() == Op::Range) ranges |= bit(kernel.position(u));
      const Bodies bodies = bodies_of(ranges);
      cut_.push_back({ranges, bodies, steps_of(fact, ranges)});
    }
    accesses_.resize(table_.order.size());
    for (const AccessInfo& a : table_.accesses) accesses_[a.place] = &a;
  }

  Estimate run() {
    find_data();
    find_owners();
    for (size_t k = 0; k < closures_.size(); ++k) close(closures_[k], uint64_t{1} << k);
    return sum();
  }

 private:
  // The loops around what a closure computes, outermost first, and what it touches in them.
  struct Nest {
    bool is_split = false;  // sums are added to their destination in each turn of the loops outside
    RangeSet lanes = 0;     // of vectors of what is computed in them
    std::vector<size_t> loops;
    std::vector<const AccessInfo*> touched;
  };

  // Of a node: whether it is computed from data, and cycles of lookups that wait for each other.
  struct Found {
    bool is_data = false;
    double wait = 0;
  };

  // What closes ranges, and what is computed in its loops.
  struct Closure {
    uint32_t place = 0;
    uint64_t users = 0;         // the closures in whose loops its value is wanted
    std::vector<size_t> loops;  // around it and its own, outermost first
  };

  // A node with what its walk has found.
  struct Value {
    const UOp& node;
    RangeSet free = 0;
    uint32_t place = 0;
  };
  Value value(uint32_t place) const { return {table_.order[place], table_.free[place], place}; }
  std::span<const uint32_t> sources(uint32_t place) const {
    return std::span(table_.sources).subspan(first_[place], table_.order[place].src().size());
  }

  // Of each node, where its sources' places begin, whether it is computed from data, and how long
  // lookups in its closure's loops wait for each other until it is there.
  void find_data() {
    const size_t count = table_.order.size();
    first_.resize(count);
    found_.resize(count);
    uint32_t first = 0;
    for (size_t k = 0; k < count; ++k) {
      const UOp& u = table_.order[k];
      first_[k] = first;
      const auto below = std::span(table_.sources).subspan(first, u.src().size());
      first += static_cast<uint32_t>(below.size());
      bool is = u.op() == Op::Load || u.op() == Op::Index || u.op() == Op::Reduce;
      if (u.op() != Op::Range)
        for (const uint32_t s : below) is = is || found_[s].is_data;
      found_[k].is_data = is;
      if (!closes_ranges(u)) found_[k].wait = longest_wait(below);
      const bool is_read = u.op() == Op::Load || u.op() == Op::Index;
      const auto indices = below.subspan(is_read ? 1 : 0);
      if (is_read && std::ranges::any_of(indices, [&](uint32_t s) { return found_[s].is_data; })) {
        const double bytes = accesses_[k]->span * bytes_of(u.dtype());
        found_[k].wait += bytes <= static_cast<double>(target_.l2_bytes) ? kLookedUp : kLookedUpFar;
      }
    }
  }
  double longest_wait(std::span<const uint32_t> places) const {
    double longest = 0;
    for (const uint32_t s : places) longest = std::max(longest, found_[s].wait);
    return longest;
  }

  // In one walk from users to sources: a value is computed in the loops of each closure that it is
  // reached from without another between.
  void find_owners() {
    computed_.resize(table_.order.size());
    closures_.reserve(table_.closures.size());
    std::vector<uint64_t> owners(table_.order.size());
    for (size_t k = table_.order.size(); k-- > 0;) {
      const auto place = static_cast<uint32_t>(k);
      const UOp& u = table_.order[k];
      const bool closes = closes_ranges(u) || u.op() == Op::Store || u.op() == Op::Check;
      uint64_t mine = owners[k];
      if (closes) {
        mine = uint64_t{1} << std::min(closures_.size(), kClosuresMax - 1);
        if (closures_.size() < kClosuresMax) closures_.push_back({place, owners[k], {}});
      } else {
        computed_[k] = computed_in(mine);
      }
      // Where a stage is read is a sum of ranges, however its dimensions were split.
      const auto looked = sources(place).first(u.op() == Op::Index ? 1 : u.src().size());
      for (const uint32_t s : looked) owners[s] |= mine;
    }
  }

  // Stores over the same ranges are one block, in which a value that several need is made once.
  uint64_t computed_in(uint64_t owners) const {
    if (std::popcount(owners) < 2) return owners;
    uint64_t once = 0;
    std::array<RangeSet, kClosuresMax> blocks;  // so many of them are set
    size_t count = 0;
    for (uint64_t left = owners; left; left &= left - 1) {
      const auto k = static_cast<size_t>(std::countr_zero(left));
      const Value closure = value(closures_[k].place);
      if (closure.node.op() == Op::Store) {
        const RangeSet block = closure.free;
        const auto end = blocks.begin() + count;
        if (std::find(blocks.begin(), end, block) != end) continue;
        blocks[count++] = block;
      }
      once |= uint64_t{1} << k;
    }
    return once;
  }

  double extent(size_t range) const { return table_.extents[range]; }
  double product(RangeSet set) const {
    double n = 1;
    for (; set; set &= set - 1) n *= extent(static_cast<size_t>(std::countr_zero(set)));
    return n;
  }
  static double bytes_of(DType dtype) { return static_cast<double>(dtype.bytes()); }
  // Registers that so many lanes take: one at the least.
  double registers(double lanes, DType dtype) const {
    return std::max(1.0, lanes * bytes_of(dtype) / target_.vector_bytes);
  }
  double unit_bytes() const { return std::min(target_.unit_bytes, target_.vector_bytes); }
  // What units compute of so many lanes in turn: one at the least.
  double units(double lanes, DType dtype) const {
    return std::max(1.0, lanes * bytes_of(dtype) / unit_bytes());
  }
  double& at(Resource r) { return cycles_[static_cast<size_t>(r)]; }
  double lanes_of(const Value& u) const { return product(u.free & lanes_); }
  double vectors(const Value& u, DType dtype) const { return registers(lanes_of(u), dtype); }
  // How often a value in this nest is made: where its innermost loop turns, for each copy.
  double times(const Nest& nest, const Value& u) const {
    const RangeSet set = u.free;
    double n = product(set & unrolled_);
    size_t depth = nest.loops.size();
    while (depth > 0 && !(set & bit(nest.loops[depth - 1]))) --depth;
    RangeSet walked = set & unrolled_;
    for (size_t i = 0; i < depth; ++i) n *= extent(nest.loops[i]), walked |= bit(nest.loops[i]);
    return n * share_within(walked);
  }
  double turns(const Nest& nest) const {
    double n = 1;
    for (const size_t l : nest.loops) n *= extent(l);
    return n;
  }

  RangeSet closed_by(const UOp& u) const {
    RangeSet own = 0;
    if (closes_ranges(u))
      for (const UOp& r : u.src().subspan(1)) own |= bit(kernel_.position(r));
    return own;
  }

  // The loops that are open where a closure begins: those that its element depends on, and what
  // stands around these where it is wanted.
  std::vector<size_t> loops_around(const Closure& closure) const {
    const RangeSet free = table_.free[closure.place] & loops_;
    std::vector<size_t> around;
    for (size_t i = 0; i < kernel_.ranges.size(); ++i)
      if (free & bit(i)) around.push_back(i);
    if (!free) return around;
    double most = 0;
    for (uint64_t left = closure.users; left; left &= left - 1) {
      const std::vector<size_t>& loops =
          closures_[static_cast<size_t>(std::countr_zero(left))].loops;
      size_t depth = loops.size();
      while (depth > 0 && !(free & bit(loops[depth - 1]))) --depth;
      double turns = 1;
      for (size_t d = 0; d < depth; ++d) turns *= extent(loops[d]);
      if (turns <= most) continue;
      most = turns;
      around.assign(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(depth));
    }
    return around;
  }

  Nest nest_of(const Closure& closure, RangeSet own) const {
    const UOp& u = table_.order[closure.place];
    Nest nest;
    nest.loops = loops_around(closure);
    // A reduction's loops are inside of its element's, but for those that stand outside of all.
    std::vector<size_t> inner;
    for (size_t i = 0; i < kernel_.ranges.size(); ++i)
      if (own & loops_ & bit(i)) inner.push_back(i);
    const size_t innermost = nest.loops.empty() ? 0 : nest.loops.back();
    const bool is_split = u.op() == Op::Reduce && !nest.loops.empty() && !inner.empty() &&
                          inner.front() < innermost && inner.size() > 1;
    nest.loops.insert(nest.loops.end(), inner.begin(), inner.end());
    if (is_split) std::ranges::sort(nest.loops);
    nest.is_split = is_split;
    nest.lanes = (table_.free[closure.place] | own) & lanes_;
    return nest;
  }

  void close(Closure& closure, uint64_t mine) {
    const Value u = value(closure.place);
    const RangeSet own = closed_by(u.node);
    Nest nest = nest_of(closure, own);
    closure.loops = nest.loops;
    const double before = at(Resource::Issue);
    for (uint32_t k = closure.place; k-- > 0;)
      if (computed_[k] & mine) compute(nest, value(k), u.node);
    totals_.copies = std::max(totals_.copies, product((u.free | own) & unrolled_));
    if (u.node.op() == Op::Reduce) reduce(nest, u, own);
    if (u.node.op() == Op::Store) store(nest, u);
    if (u.node.op() == Op::Stage) fill(nest, u, own);
    look_up(nest, longest_wait(sources(closure.place)), at(Resource::Issue) - before);
    turn(nest);
    const LevelBytes bytes =
        traffic(nest.touched, nest.loops, unrolled_ | lanes_ | words_, table_.extents, target_);
    totals_.bytes.level2 += bytes.level2;
    totals_.bytes.level3 += bytes.level3;
    totals_.bytes.memory += bytes.memory;
  }

  // A loop over tiles of unrolled steps, as many as a run says, has a body for each number of steps
  // that a tile can have (codegen/linearize/balance.h).
  struct Bodies {
    RangeSet loop = 0, steps = 0;
  };
  // The steps of tiles that are within a range of known size, of all: code for the last tile has no
  // others (codegen/linearize/peeling.h).
  struct Steps {
    RangeSet ranges = 0;  // that count them
    double share = 1;
  };
  // A tile of which the last does not fit, with those around it.
  struct CutTile {
    RangeSet ranges = 0;
    Bodies bodies;
    Steps steps;
  };
  // None of a fact about steps that others tell as well.
  Steps steps_of(const UOp& fact, RangeSet ranges) const {
    const Steps steps{ranges & (loops_ | unrolled_), 1};
    const std::optional<Affine> within = affine(fact);
    const auto is_same = [&](const CutTile& c) { return c.steps.ranges == steps.ranges; };
    if (!within || !(ranges & unrolled_) || std::ranges::any_of(cut_, is_same)) return {};
    double nearest = kCounted;
    for (const AffineTerm& term : within->terms) {
      if (term.atom.op() != Op::Range || term.coefficient >= 0) return {};
      const size_t range = kernel_.position(term.atom);
      if (!kernel_.ranges[range].range.src(0).is_const()) return {};
      if (steps.ranges & bit(range))
        nearest = std::min(nearest, -static_cast<double>(term.coefficient));
    }
    const double count = std::ceil(static_cast<double>(within->constant + 1) / nearest);
    return {steps.ranges, std::min(1.0, count / product(steps.ranges))};
  }
  // Of the steps of these ranges, those that are within tiles.
  double share_within(RangeSet walked) const {
    double share = 1;
    for (const CutTile& tile : cut_)
      if (tile.steps.ranges && (tile.steps.ranges & ~walked) == 0) share *= tile.steps.share;
    return share;
  }
  // Of one fact of several about the same loop; none of the others.
  Bodies bodies_of(RangeSet fact) const {
    Bodies found{0, fact & unrolled_};
    for (RangeSet set = fact & loops_; set; set &= set - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(set));
      if (!kernel_.ranges[i].range.src(0).is_const()) found.loop |= bit(i);
    }
    const auto is_same = [&](const CutTile& c) { return c.bodies.loop == found.loop; };
    const bool is_new = found.loop && found.steps && std::ranges::none_of(cut_, is_same);
    return is_new ? found : Bodies();
  }

  // A value's instructions stand in the code once for each of its copies, of which the bodies have
  // one, two, .. and all.
  void repeat(const Value& v, double instructions) {
    const double copies = product(v.free & unrolled_);
    totals_.copies = std::max(totals_.copies, copies);
    double bodies = 1;
    for (const CutTile& tile : cut_) {
      const Bodies& b = tile.bodies;
      const double steps = product(b.steps);
      if (v.free & b.steps)
        bodies *= (steps + 1) / 2;
      else if (v.free & b.loop)
        bodies *= steps;
    }
    totals_.code += copies * bodies * instructions;
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
      at(Resource::Issue) += n * kLoopEntered * target_.issued;
      n *= extent(l);
      at(Resource::Issue) += n * kLoopTurn * target_.issued;
    }
  }

  // What a value takes that is computed in the loops of `closed`.
  void compute(Nest& nest, const Value& v, const UOp& closed) {
    const UOp& u = v.node;
    if (u.op() == Op::Load || u.op() == Op::Index) return load(nest, v);
    if (!has(u.op(), kElementwise)) return;
    repeat(v, vectors(v, u.dtype()));
    const double n = times(nest, v);
    if (u.dtype() == kInt64 && !found_[v.place].is_data) return index(v, n);
    if (u.src(0).dtype() == kInt64 && !found_[v.place].is_data && u.dtype() == kBool)
      return mask(v, n);
    // The product of a sum of products is no instruction of its own.
    if (u.op() == Op::Mul && closed.op() == Op::Reduce && closed.src(0) == u &&
        closed.reduce_arg().op == Op::Add)
      return;
    const DType operand = u.src(0).dtype();
    const DType computed = u.op() == Op::Cast || u.dtype() == kBool ? operand : u.dtype();
    at(Resource::Issue) += n * vectors(v, computed);
    at(Resource::Arithmetic) += n * price(v, operand) * units(lanes_of(v), computed);
    if (u.op() == Op::Where && is_asked_by_taps(v))
      at(Resource::Arithmetic) += n * kAsked * units(lanes_of(v), computed);
  }

  // Whether the turns of a window's loop decide which of two values it is: what is read of the
  // other is made safe in each.
  bool is_asked_by_taps(const Value& where) const {
    const uint32_t condition = sources(where.place)[0];
    if (found_[condition].is_data) return false;
    for (RangeSet set = table_.free[condition] & loops_; set; set &= set - 1)
      if (kernel_.ranges[static_cast<size_t>(std::countr_zero(set))].reduced) return true;
    return false;
  }

  double price(const Value& v, DType operand) const {
    const bool is_vector = (v.free & lanes_) != 0;
    switch (v.node.op()) {
      case Op::Div:
      case Op::Sqrt:
        return operand.is_float() ? (is_vector ? kDivided : kDividedScalar) : kWordDivided;
      case Op::FloorDiv:
      case Op::FloorMod:
      case Op::TruncDiv:
      case Op::TruncMod:
        return v.node.src(1).is_const() ? 4 * kMultiplied : kWordDivided * lanes_of(v);
      default:
        return kMultiplied;
    }
  }

  // Sums of ranges are part of an address; what is divided is computed, for each lane.
  void index(const Value& v, double n) {
    const Op op = v.node.op();
    if (op != Op::FloorDiv && op != Op::FloorMod && op != Op::Where) return;
    at(Resource::Arithmetic) += n * lanes_of(v) * kIndexDivided;
    at(Resource::Issue) += n * lanes_of(v) * 4;
  }

  // Whether indices are in some order: a mask of each vector's lanes is made from where it changes.
  void mask(const Value& v, double n) {
    const bool has_lanes = (v.free & lanes_) != 0;
    at(Resource::Arithmetic) += n * (has_lanes ? kMaskMade : kMultiplied);
    at(Resource::Issue) += n * (has_lanes ? kMaskIssued : 1);
  }

  int64_t lane_stride(const AccessInfo& a) const {
    if (!lanes_) return 0;
    int64_t stride = 0;
    for (RangeSet set = lanes_; set; set &= set - 1) {
      const int64_t s = a.strides[static_cast<size_t>(std::countr_zero(set))];
      if (s != 0) stride = s;
    }
    return stride;
  }

  // Different places among the copies of an access.
  double copies(const AccessInfo& a) const {
    Axes axes;
    double copies = 1;
    for (RangeSet set = unrolled_; set; set &= set - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(set));
      if (a.strides[i] == kOpaqueStride)
        copies *= extent(i);
      else if (a.strides[i] != 0)
        axes.add(std::abs(static_cast<double>(a.strides[i])), extent(i));
    }
    Places places;
    for (const Axis& axis : axes.sorted()) places.add(axis);
    return copies * places.count();
  }

  // The share of a load's steps that ask whether they are beyond the border of what is read: of
  // rows near it, where copies lie along them and the taps of their window are walked, those taps
  // that are beyond it for some of the copies.  None where the taps at the border are so few that
  // they are written apart.
  double share_asked(const AccessInfo& a) const {
    if (a.node.op() != Op::Load) return 0;
    const ViewArg& view = a.node.view_arg();
    double asked = 0;
    for (size_t i = 0; i < view.shape.size(); ++i) {
      if (view.shape[i] == kSymbolicDim) continue;
      const UOp& index = a.node.src(i + 1);
      const Reach reach = reach_beyond(index, view.shape[i], {});
      const double beyond = reach.before + reach.behind;
      if (beyond == 0 || beyond > kCounted) continue;  // data says where
      const std::optional<Affine> sum = affine(index);
      double rows = 1, taps = 1;
      double across = 0, along = 0;  // from the first copy to the last, and of the walked taps
      bool has_copies = false, are_apart = true;
      for (size_t r = 0; r < kernel_.ranges.size(); ++r) {
        const KernelRange& range = kernel_.ranges[r];
        if (!reaches(index, range.range)) continue;
        has_copies |= !range.reduced && (unrolled_ & bit(r)) != 0;
        if (!range.reduced) rows *= extent(r);
        const bool is_walked = range.reduced && (loops_ & bit(r)) != 0;
        if (is_walked) taps *= extent(r);
        if (is_walked && turns_beyond(reach, sum, range.range) > kPeeledMax) are_apart = false;
        const double length = std::abs(static_cast<double>(a.strides[r])) * (extent(r) - 1);
        if (unrolled_ & bit(r)) across += length;
        if (is_walked) along += length;
      }
      if (!has_copies || are_apart || taps < double{kTapsMany}) continue;
      const bool is_split = taps >= double{kTapsSplit} && along > 0;
      const double straddled = is_split ? std::min(1.0, across / along) : 1;
      asked = std::max(asked, std::min(1.0, beyond / rows) * straddled);
    }
    return asked;
  }

  // The masks that a turn of the loops makes of lanes of a load, where more turns are at a border
  // than are written apart: each turn of a tile's loop, and of taps in tiles at the border.  Copies
  // that lie elsewhere share them.
  double masks_made(const AccessInfo& a) const {
    if (a.node.op() != Op::Load) return 0;
    const ViewArg& view = a.node.view_arg();
    double most = 0;
    for (size_t i = 0; i < view.shape.size(); ++i) {
      const UOp& index = a.node.src(i + 1);
      const RangeSet free = table_.free[sources(a.place)[i + 1]];
      if (!(free & lanes_) || !(free & loops_) || view.shape[i] == kSymbolicDim) continue;
      const Reach reach = reach_beyond(index, view.shape[i], kernel_.facts);
      if (reach.most() == 0) continue;
      const std::optional<Affine> sum = affine(index);
      double tiles = 1;
      bool has_tiles = false, has_taps = false;  // that make masks
      for (RangeSet set = free & loops_; set; set &= set - 1) {
        const auto r = static_cast<size_t>(std::countr_zero(set));
        const KernelRange& range = kernel_.ranges[r];
        if (!range.reduced) tiles *= extent(r);
        if (turns_beyond(reach, sum, range.range) <= kPeeledMax) continue;
        (range.reduced ? has_taps : has_tiles) = true;
      }
      const double borders = (reach.before > 0 ? 1 : 0) + (reach.behind > 0 ? 1 : 0);
      const double share = has_tiles ? 1 : has_taps ? std::min(1.0, borders / tiles) : 0;
      most = std::max(most, share * product(free & unrolled_));
    }
    return most;
  }

  void mask_lanes(const AccessInfo& a, double registers) {
    const double masks = registers * masks_made(a);
    at(Resource::Arithmetic) += masks * kBorderMask;
    at(Resource::Issue) += masks * kMaskIssued;
  }

  void load(Nest& nest, const Value& v) {
    const AccessInfo& a = *accesses_[v.place];
    const DType dtype = v.node.dtype();
    const double made = product(v.free & unrolled_);
    const double n = times(nest, v) / made * std::min(made, copies(a));
    const double full = vectors(v, dtype);
    const double lanes = lanes_of(v);
    const int64_t stride = lane_stride(a);
    if (stride == 0 || stride == 1 || stride == -1) {
      const bool is_line = stride != 0 && lanes * bytes_of(dtype) >= kLine;
      // What all lanes share is loaded into all of them.
      const double all = std::min(product(nest.lanes), target_.vector_bytes / bytes_of(dtype));
      const double parts = units(stride == 0 ? all : lanes, dtype);
      at(Resource::Loads) +=
          n * (parts * kLoaded + (is_line ? full * (kLoadedAcross - kLoaded) : 0));
      at(Resource::Issue) += n * full * (stride == -1 ? 2 : 1);
      if (stride == 0 && a.inside_reduction)
        at(Resource::Arithmetic) += n * share_asked(a) * kAsked;
      if (stride == 1) mask_lanes(a, times(nest, v) / made * full);
      repeat(v, full);
    } else if (stride != kOpaqueStride &&
               are_picked(target_, std::abs(stride), static_cast<int64_t>(lanes),
                          v.node.dtype().bytes())) {
      const double registers = full * static_cast<double>(std::abs(stride));
      const double parts = units(lanes, dtype) * static_cast<double>(std::abs(stride));
      at(Resource::Loads) += n * (parts * kLoaded + registers * (kLoadedAcross - kLoaded));
      at(Resource::Arithmetic) += n * (parts - units(lanes, dtype)) * kPermuted;
      at(Resource::Issue) += n * registers * 2;
      mask_lanes(a, times(nest, v) / made * registers);
      repeat(v, 2 * registers);
    } else {
      const bool is_opaque = stride == kOpaqueStride;
      at(Resource::Loads) += n * lanes * kLoaded;
      at(Resource::Arithmetic) += n * lanes * (is_opaque ? kGatheredLane : kInsertedLane);
      at(Resource::Issue) += n * lanes * (is_opaque ? kGatherIssued : kInsertIssued);
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
      if (is_cut(range, 2)) return 1;
      if (is_row) rows *= extent(range);
    }
    return rows;
  }
  double rows_across(const AccessInfo& a) const {
    std::vector<std::pair<double, size_t>> copies;
    for (RangeSet set = unrolled_; set; set &= set - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(set));
      if (a.strides[i] != 0) copies.emplace_back(std::abs(static_cast<double>(a.strides[i])), i);
    }
    return rows_across(std::move(copies));
  }
  // Whether it is of tiles of which the last does not fit, and that number fewer.
  bool is_cut(size_t range, double tiles) const {
    return std::ranges::any_of(cut_, [&](const CutTile& tile) {
      const RangeSet ranges = tile.ranges;
      return (ranges & bit(range)) && product(ranges & ~bit(range)) < tiles;
    });
  }

  void store(Nest& nest, const Value& u) {
    const AccessInfo& a = *accesses_[u.place];
    const DType dtype = u.node.src(1).dtype();
    repeat(u, lane_stride(a) == 0 || lane_stride(a) == 1 ? 1 : 2 * lanes_of(u));
    // All values of a block are made before the first is stored.
    const double full = vectors(u, dtype);
    spill(turns(nest), product(u.free & unrolled_) * full + kBeside - target_.vector_registers,
          units(lanes_of(u), dtype) / full);
    write(times(nest, u), lanes_of(u), dtype, lane_stride(a), rows_across(a));
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
    const double full = registers(lanes, dtype), parts = units(lanes, dtype);
    if (stride == 0 || stride == 1) {
      at(Resource::Stores) += n * parts * kStored;
      at(Resource::Issue) += n * full;
    } else if (weaves(target_) && dtype.bytes() == kWovenBytes &&
               are_woven(static_cast<int64_t>(rows), static_cast<int64_t>(lanes), stride)) {
      at(Resource::Stores) += n * parts * kStored;
      at(Resource::Arithmetic) += n * parts * (rows - 1) * kPermuted;
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
      at(Resource::Arithmetic) += moved * kTurned * parts / full + apart * lanes * kExtractedLane;
      at(Resource::Issue) += (squares * lanes + moved + apart * lanes * 2);
    }
  }

  void fill(const Nest& nest, const Value& stage, RangeSet own) {
    const UOp& u = stage.node;
    const RangeSet set = table_.free[sources(stage.place)[0]] | own;
    int64_t stride = 0;
    double n = 1;
    for (const size_t l : nest.loops) n *= extent(l);
    n *= product(set & unrolled_);
    std::vector<std::pair<double, size_t>> copies;
    for (size_t i = 1; i < u.src().size(); ++i) {
      const size_t range = kernel_.position(u.src(i));
      const int64_t along = u.stage_arg().strides[i - 1];
      if (bit(range) & lanes_) stride = along;
      if (bit(range) & unrolled_) copies.emplace_back(static_cast<double>(along), range);
    }
    write(n, product(set & lanes_), u.dtype(), stride, rows_across(std::move(copies)));
  }

  // What no register has is stored and loaded again.
  void spill(double times, double values, double units_of_each) {
    const double spilled = std::max(0.0, values);
    at(Resource::Loads) += times * spilled * units_of_each * kSpilled;
    at(Resource::Stores) += times * spilled * units_of_each * kSpilled;
    at(Resource::Issue) += times * spilled * 2;
  }

  // Sums of a tile that no register has.  Where copies read what other steps of their sums read too
  // (rows along a window), all that these steps have for every copy waits for the next copy, beside
  // what is loaded into all lanes to meet it; vectors are read where they lie.
  double sums_without(const Nest& nest, double sums, RangeSet repeated) const {
    bool is_sliding = false;
    double waiting = 0, met = 0;
    for (const AccessInfo* a : nest.touched) {
      const RangeSet copied = table_.free[a->place] & unrolled_;
      if (!a->inside_reduction || !(copied & repeated)) continue;
      const Value v = value(a->place);
      if (copies(*a) > kSharedLess * product(copied)) {
        waiting += product(copied) * vectors(v, v.node.dtype());
      } else {
        is_sliding = true;
        if (lane_stride(*a) == 0) met = 1;
      }
    }
    const double of_window = is_sliding ? waiting + met - kReadAnew : 0;
    return sums + std::max(kBesideSums, of_window) - target_.vector_registers;
  }

  // The additions themselves, and the chain of those that wait for each other.
  void reduce(const Nest& nest, const Value& u, RangeSet own) {
    const RangeSet all = u.free | own;
    const DType dtype = u.node.dtype();
    const double lanes = product(all & lanes_);
    const double full = registers(lanes, dtype);
    RangeSet repeated = 0;  // into the same sum
    for (size_t i = 0; i < kernel_.ranges.size(); ++i)
      if ((own & bit(i)) && kernel_.ranges[i].kind == RangeKind::Unroll) repeated |= bit(i);
    const double sums = product(all & unrolled_ & ~repeated) * full;
    const double n =
        turns(nest) * product(all & unrolled_) * share_within(all & (loops_ | unrolled_));
    const double parts = units(lanes, dtype);
    at(Resource::Issue) += n * full;
    at(Resource::Arithmetic) += n * parts * kMultiplied;
    const double without = sums_without(nest, sums, repeated);
    spill(turns(nest) * product(repeated), without, parts / full);
    const double steps = product(own & loops_) * product(repeated);
    const double outside = turns(nest) / product(own & loops_);
    const double ahead = std::max(1.0, kAhead / (steps * sums * 2));
    const bool is_stored = without > 0 && (own & loops_) != 0;  // by each turn, for the next
    at(Resource::Chain) += outside * steps * (kLatency + (is_stored ? kForwarded : 0)) / ahead;
    if (nest.is_split) {
      size_t last = nest.loops.size();  // the reduced loops inside of all others
      double inside = 1;
      while (last > 0 && (own & bit(nest.loops[last - 1]))) inside *= extent(nest.loops[--last]);
      const double added = turns(nest) / inside * sums;
      const double pieces = added * parts / full;
      at(Resource::Loads) += pieces * kLoaded + added * (kLoadedAcross - kLoaded);
      at(Resource::Stores) += pieces * kStored;
      at(Resource::Issue) += added * 3;
      at(Resource::Arithmetic) += pieces * kMultiplied;
    }
    if (own & lanes_) {
      const double results = outside * product(u.free & unrolled_);
      at(Resource::Arithmetic) += results * kFoldedLanes * kMultiplied;
      at(Resource::Issue) += results * kFoldedLanes;
    }
  }

  Estimate sum() {
    Estimate out;
    const double cycle = 2.0 * unit_bytes() / 4 / target_.fma_rate;
    at(Resource::Issue) /= target_.issued;
    for (size_t i = 0; i < kResources; ++i) out.each[i] = cycles_[i] * cycle;
    out.each[static_cast<size_t>(Resource::Level2)] = totals_.bytes.level2 / target_.l2_bandwidth;
    out.each[static_cast<size_t>(Resource::Level3)] = totals_.bytes.level3 / target_.l3_bandwidth;
    out.each[static_cast<size_t>(Resource::Memory)] =
        totals_.bytes.memory / target_.memory_bandwidth;
    out.copies = static_cast<int64_t>(std::min(totals_.copies, kCounted));
    out.code = static_cast<int64_t>(std::min(totals_.code, kCounted));
    double most = 0, all = 0;
    for (const double s : out.each) most = std::max(most, s), all += s;
    out.seconds = most + kOthers * (all - most);
    double cores = 1;
    if (const size_t threads = thread_ranges(kernel_); threads > 0) {
      double pieces = 1;
      for (size_t i = 0; i < threads; ++i) pieces *= extent(i);
      const double busy = std::min<double>(target_.cores, pieces);
      cores = pieces / std::ceil(pieces / busy);
    }
    out.seconds = out.seconds / cores + target_.launch_seconds;
    return out;
  }

  const Kernel& kernel_;
  const Machine& target_;
  const AccessTable table_;
  std::vector<CutTile> cut_;
  std::vector<Closure> closures_;
  // By place:
  std::vector<uint64_t> computed_;           // the closures in whose loops it is computed
  std::vector<const AccessInfo*> accesses_;  // null of what is none
  std::vector<uint32_t> first_;              // of its sources
  std::vector<Found> found_;
  RangeSet loops_ = 0, unrolled_ = 0, lanes_ = 0, words_ = 0;
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

Estimate estimate(const Kernel& kernel, const Machine& target) {
  if (target.computes_in_groups()) return estimate_groups(kernel, target);
  return Estimator(kernel, target).run();
}

}  // namespace tiny
