#include "schedule/row_test.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "ir/bounds.h"
#include "ir/dot.h"
#include "ir/shared_value.h"
#include "schedule/decide.h"
#include "schedule/schedule.h"

namespace tiny {

namespace {

constexpr double kRowTileMin = 4;     // rows that go through a chain of products at once
constexpr int64_t kRowsMin = 8;       // that a joined kernel keeps, unless it is small
constexpr double kComputedRows = 14;  // rows of a tile that are computed before a product
constexpr double kRatedBytes = 4;     // of the elements that a machine's rate is told by

bool is_reduce(const UOp& u) {
  return u.op() == Op::Reduce;
}

// Whether a value is one of a few, by its position: such values share what they are made of as long
// as nothing but elementwise work stands around them.
bool chooses_by_position(const UOp& u) {
  if (u.op() != Op::Where || u.src(0).op() != Op::Less || u.src(1).is_const()) return false;
  const UOp& position = u.src(0).src(0);
  if (position.dtype() != kInt64 || !u.src(0).src(1).is_const()) return false;
  const Interval range = bounds(position);
  return range.lo == 0 && range.hi < kChoicesMax && !u.src(2).is_const();
}

// What is read as it lies in memory that the graph was given: a weight is packed for its product,
// and rows that are computed for it are kept for all of its panels.
bool is_given(UOp factor, std::span<const UOp> values) {
  while (factor.op() == Op::Cast) factor = UOp(factor.src(0));
  if (factor.op() != Op::Load || factor.src(0).op() != Op::Param) return false;
  const auto slot = static_cast<size_t>(factor.src(0).int_arg());
  return slot < values.size() && has_memory(values[slot]);
}

// Pieces of a kernel for each core that shares it, and the arithmetic from which it is shared.
constexpr double kPiecesPerCore = 6;
constexpr double kSharedWorkMin = 65536;
// How much longer products take where they are no kernel of their own.
constexpr double kFillSlowness = 16;

}  // namespace

RowTest::RowTest(const Kernel& kernel, const Machine& machine)
    : kernel_(kernel), machine_(machine) {
  for (const UOp& u : topological(kernel.roots)) {
    RangeSet free = u.op() == Op::Range ? RangeSet{1} << kernel.position(u) : 0;
    for (const UOp& s : u.src()) free |= free_.at(s.node());
    if (u.op() == Op::Reduce)
      for (size_t i = 1; i < u.src().size(); ++i) free &= ~free_.at(u.src(i).node());
    free_.emplace(u.node(), free);
    nodes_.push_back(u);
  }
  registers_ = widest_bytes() / kRatedBytes;
}

// What is computed in lanes, which lie along the last range or a reduction, has as many of them as
// the widest value leaves.  Indices have none.
double RowTest::widest_bytes() const {
  double widest = kRatedBytes;
  std::unordered_set<const Node*> is_data;  // or made of it
  for (const UOp& u : nodes_) {
    const auto is = [&](const UOp& s) { return is_data.contains(s.node()); };
    if (u.op() == Op::Load || std::ranges::any_of(u.src(), is)) is_data.insert(u.node());
  }
  RangeSet lanes = last_range();
  for (size_t i = 0; i < kernel_.ranges.size(); ++i)
    if (kernel_.ranges[i].reduced) lanes |= bit(i);
  std::vector<UOp> values;
  for (const UOp& root : kernel_.roots)
    if (root.op() == Op::Store) values.push_back(root.src(1));
  for (const UOp& u : topological(values, [](const UOp& v) { return v.op() == Op::Load; }))
    if ((free_.at(u.node()) & lanes) && (u.dtype() != kInt64 || is_data.contains(u.node())))
      widest = std::max(widest, static_cast<double>(u.dtype().bytes()));
  return widest;
}

double RowTest::work() const {
  double sum = 0;
  for (const UOp& u : nodes_) {
    sum += work_of(u);
    // Words of what is read are multiplied at once.
    const auto product = dot_product(u);
    if (product && machine_.has_dot(product->kind) && product->a.op() == Op::Load &&
        product->b.op() == Op::Load)
      sum -= extent(free_.at(u.src(0).node())) *
             (1 - 1 / static_cast<double>(dot_steps(product->kind)));
  }
  return sum;
}

double RowTest::work_again(std::span<const UOp> values) const {
  std::unordered_map<const Node*, double> times;  // the most, over all products
  for (const UOp& u : nodes_) {
    if (!is_reduce(u) || u.src(0).op() != Op::Mul || !is_contraction(u)) continue;
    const auto factors = u.src(0).src();
    if (std::ranges::any_of(factors, [&](const UOp& f) { return is_given(f, values); })) continue;
    for (const UOp& factor : factors)
      for (const UOp& v : topological({&factor, 1}, is_reduce)) {
        const RangeSet repeated = free_.at(u.node()) & ~free_.at(v.node());
        double& most = times[v.node()];
        most = std::max(most, std::ceil(extent(repeated) / kComputedRows));
      }
  }
  double sum = 0;
  std::unordered_set<const Node*> made_of_sums;  // kept where they are wanted again
  for (const UOp& u : nodes_) {
    const auto is_made = [&](const UOp& s) { return made_of_sums.contains(s.node()); };
    if (is_reduce(u) || std::ranges::any_of(u.src(), is_made)) made_of_sums.insert(u.node());
    const auto at = times.find(u.node());
    if (at == times.end() || made_of_sums.contains(u.node())) continue;
    sum += work_of(u) * (at->second - 1);
  }
  return sum;
}

double RowTest::work_of(const UOp& u) const {
  if (!has(u.op(), kElementwise) || u.dtype() == kInt64) return 0;
  return op_weight(u.op()) * extent(free_.at(u.node())) * registers_;
}

double RowTest::staging_saves() const {
  // Without reductions nothing is wanted in another place.
  if (std::ranges::none_of(nodes_, is_reduce)) return 0;
  const size_t place = common_outer_ranges(kernel_);
  if (place == 0) return 0;
  double sum = 0;
  for (const SharedValue& shared : find_shared_values(kernel_, place, 1)) {
    const double bytes = shared.elements * static_cast<double>(shared.value.dtype().bytes());
    // What the images have beside the value, as work() counts it.
    std::unordered_set<const Node*> kept;
    for (const UOp& u : topological({&shared.value, 1})) kept.insert(u.node());
    double work = 0;
    for (const UOp& u : topological(shared.images))
      if (!kept.contains(u.node())) work += work_of(u);
    sum += std::max(work / machine_.fma_rate - 2 * bytes / machine_.l2_bandwidth, 0.0);
  }
  return sum;
}

bool RowTest::stores_share_loops() const {
  if (std::ranges::any_of(nodes_, chooses_by_position)) return false;
  RangeSet reduced = 0;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i)
    if (kernel_.ranges[i].reduced) reduced |= RangeSet{1} << i;
  const bool reduces = reduced != 0;
  const RangeSet first = free_.at(kernel_.roots.front().node());
  for (const UOp& store : kernel_.roots) {
    const RangeSet own = free_.at(store.node());
    // What is stored once for each of the first ranges, in whose loops the others are.
    const RangeSet outside = (RangeSet{1} << std::bit_width(own)) - 1;
    if (reduces ? (outside & ~(own | reduced)) != 0 : own != first) return false;
    const std::vector<UOp> below = topological({&store, 1});
    for (const UOp& u : nodes_)
      if (is_reduce(u) && is_contraction(u) && std::ranges::find(below, u) == below.end())
        return false;
  }
  return true;
}

int64_t RowTest::reductions() const {
  return std::ranges::count_if(nodes_, is_reduce);
}

bool RowTest::has_product() const {
  return std::ranges::any_of(nodes_,
                             [&](const UOp& u) { return is_reduce(u) && is_contraction(u); });
}

std::vector<double> RowTest::tile_streams() const {
  std::vector<double> streams;
  if (!has_product()) return streams;
  for (const UOp& u : topological(kernel_.roots, is_reduce)) {
    if (u.op() == Op::Load)
      streams.push_back(extent(walked(u)) * static_cast<double>(u.dtype().bytes()));
    if (u.op() == Op::Store)
      streams.push_back(extent(free_.at(u.node())) * static_cast<double>(u.src(1).dtype().bytes()));
  }
  return streams;
}

// The innermost range that is not reduced: neighbours in what is stored.
RangeSet RowTest::last_range() const {
  for (size_t i = kernel_.ranges.size(); i-- > 0;)
    if (!kernel_.ranges[i].reduced) return RangeSet{1} << i;
  return 0;
}

// Whether a product's operand is read by an index that is read itself: it has no tiles.  Nor have
// the results that it meets where their neighbours lie anywhere.
bool RowTest::looks_up_operands() const {
  const auto reads = [](const UOp& u) { return u.op() == Op::Load; };
  std::vector<UOp> found;  // loads at an index that was read
  for (const UOp& u : nodes_)
    if (reads(u) && std::ranges::any_of(topological(u.src().subspan(1)), reads)) found.push_back(u);
  if (found.empty()) return false;
  const RangeSet last = last_range();
  for (const UOp& u : nodes_) {
    if (u.op() != Op::Reduce || !is_contraction(u)) continue;
    for (const UOp& load : found)
      for (const UOp& index : load.src().subspan(1))
        if ((free_.at(index.node()) & last) && std::ranges::any_of(topological({&index, 1}), reads))
          return true;
    const std::vector<UOp> below = topological(u.src().first(1));
    for (const UOp& load : found)
      if (std::ranges::find(below, load) != below.end()) return true;
  }
  return false;
}

// What any kernel wants: few enough inputs, few enough operations to compile, tiles of its
// products.
bool RowTest::may_be_one(size_t inputs) const {
  if (looks_up_operands()) return false;
  int64_t ops = 0;
  for (const UOp& u : nodes_)
    if (has(u.op(), kElementwise) && u.dtype() != kInt64)
      ops += has(u.op(), kTranscendental) ? 20 : 1;
  return static_cast<int64_t>(inputs) <= machine_.inputs_max && ops <= machine_.ops_max;
}

bool RowTest::passes(size_t inputs) const {
  if (!may_be_one(inputs)) return false;
  const int64_t count = reductions();
  if (count == 0) return true;
  if (std::any_of(nodes_.begin(), nodes_.end(), chooses_by_position)) return false;
  double rows = 1;
  for (const UOp& u : nodes_) {
    if (u.op() != Op::Reduce) continue;
    const RangeSet free = free_.at(u.node());
    // The ranges outside of a reduction are the kernel's outermost ones.
    if (free & (free + 1)) return false;
    if (count > 1 && is_contraction(u)) return false;
    rows = std::max(rows, extent(free));
    for (size_t i = 0; i < kernel_.ranges.size(); ++i)
      if ((free & (RangeSet{1} << i)) && kernel_.ranges[i].reduced) return false;
  }
  return fits(rows);
}

// A product is what the kernel ends in, or is wanted again and so kept; a few rows of it fit.
bool RowTest::keeps_its_products(RangeSet common) const {
  RangeSet reduced = 0;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i)
    if (kernel_.ranges[i].reduced) reduced |= RangeSet{1} << i;
  double widest = 0;
  const bool is_streamed = is_weighing();
  std::vector<const Node*> repeated;  // computed again for each step of another, unless it is kept
  for (const UOp& u : nodes_) {
    if (u.op() != Op::Reduce) continue;
    const RangeSet columns = free_.at(u.node()) & ~common;
    if (columns == 0) continue;
    if (!is_streamed && !is_contraction(u)) return false;
    if (columns & reduced) repeated.push_back(u.node());
    widest = std::max(widest, extent(columns) * static_cast<double>(u.dtype().bytes()));
  }
  if (!is_streamed &&
      kRowTileMin * kStagesOfRows * widest > static_cast<double>(machine_.l2_bytes) / 2)
    return false;
  if (repeated.empty()) return true;
  std::unordered_set<const Node*> kept;
  for (const SharedValue& shared :
       find_shared_values(kernel_, static_cast<size_t>(std::countr_one(common)), kWorkWorthKeeping))
    for (const UOp& u : topological(shared.images, is_reduce)) kept.insert(u.node());
  return std::ranges::all_of(repeated, [&](const Node* u) { return kept.contains(u); });
}

// Whether a product's rows are weights: what it multiplies with the columns is summed too, along
// the same steps.  Such sums run along blocks (codegen/options/stream.h), so that neither the
// length of the rows nor their number nor the size of what all rows read matters.
bool RowTest::is_weighing() const {
  const auto is_sum = [](const UOp& u) {
    return is_reduce(u) && u.reduce_arg().op == Op::Add && u.src().size() == 2;
  };
  for (const UOp& product : nodes_) {
    if (!is_sum(product)) continue;
    std::vector<UOp> factors{product.src(0)};
    for (size_t i = 0; i < factors.size(); ++i)
      if (factors[i].op() == Op::Mul || factors[i].op() == Op::Div) {
        const UOp u = factors[i];
        factors.insert(factors.end(), u.src().begin(), u.src().end());
      }
    for (const UOp& sum : nodes_) {
      if (!is_sum(sum) || !(sum.src(1).src(0) == product.src(1).src(0))) continue;
      if (!(free_.at(product.node()) & ~free_.at(sum.node()))) continue;  // no columns
      const UOp weight = substitute(sum.src(0), {{sum.src(1), product.src(1)}});
      if (std::ranges::find(factors, weight) != factors.end()) return true;
    }
  }
  return false;
}

bool RowTest::passes_as_tiles(size_t inputs) const {
  if (!may_be_one(inputs)) return false;
  if (std::any_of(nodes_.begin(), nodes_.end(), chooses_by_position)) return false;
  RangeSet common = ~RangeSet{0};
  for (const UOp& u : nodes_)
    if (u.op() == Op::Reduce || u.op() == Op::Store) common &= free_.at(u.node());
  if ((common & (common + 1)) || !keeps_its_products(common)) return false;
  if (is_weighing()) return true;
  if (common == 0) return false;
  // Rows are worth a tile if a matrix is the same for all of them, and is read from a cache.  One
  // that is the same for all of the kernel wants panels for all, which the product alone has.
  RangeSet row = common;
  double operands = 0;
  for (const UOp& u : nodes_) {
    if (u.op() != Op::Load) continue;
    const RangeSet walks = walked(u);
    if ((walks & common) == common || std::popcount(walks & ~common) < 2) continue;
    if (!(walks & common)) return false;
    row &= ~walks;
    operands += extent(walks & ~common) * static_cast<double>(u.dtype().bytes());
  }
  return operands > 0 && row && extent(std::bit_floor(row)) >= kRowTileMin &&
         operands <= static_cast<double>(machine_.l3_bytes) / 2;
}

double RowTest::alone_seconds() const {
  RangeSet common = ~RangeSet{0};
  for (const UOp& u : nodes_)
    if (u.op() == Op::Store) common &= free_.at(u.node());
  if (extent(common) > 1) return 0;
  return work() / machine_.fma_rate * (1 - 1.0 / machine_.cores);
}

std::optional<double> RowTest::operand_seconds(size_t inputs) const {
  if (!may_be_one(inputs)) return std::nullopt;
  std::vector<UOp> reductions;
  for (const UOp& u : nodes_)
    if (u.op() == Op::Reduce) reductions.push_back(u);
  if (reductions.size() != 2) return std::nullopt;
  if (std::any_of(nodes_.begin(), nodes_.end(), chooses_by_position)) return std::nullopt;
  const UOp& inner = reductions[0];
  const UOp& outer = reductions[1];
  // A product in register tiles has loops of its own: what they lose is more than a launch.
  if (is_contraction(outer)) return std::nullopt;
  const std::vector<UOp> below = topological({&outer, 1});
  if (std::find(below.begin(), below.end(), inner) == below.end()) return std::nullopt;
  const RangeSet free = free_.at(inner.node());
  const RangeSet own = closed(outer);
  if (free == 0 || (free & ~own) != 0) return std::nullopt;
  const double bytes = extent(free) * static_cast<double>(inner.dtype().bytes());
  if (bytes > static_cast<double>(machine_.l1_bytes) / 2) return std::nullopt;
  RangeSet all = free;
  for (size_t i = 1; i < inner.src().size(); ++i) all |= free_.at(inner.src(i).node());
  double read = 0;
  for (const UOp& u : topological({&inner, 1}))
    if (u.op() == Op::Load)
      read += extent(walked(u) & all) * static_cast<double>(u.dtype().bytes());
  const double arithmetic = extent(all) / machine_.fma_rate;
  // A product that fills scratch has neither a tile of registers nor lanes.
  const double fill = inner.src(0).op() == Op::Mul ? arithmetic * kFillSlowness : 0;
  // Each piece of the loop that cores share computes the operand anew.
  const double pieces = work() < kSharedWorkMin ? 1 : kPiecesPerCore * machine_.cores;
  if (machine_.cores < 2 || pieces == 1) return fill;
  const double seconds =
      std::max(arithmetic, (saved_seconds(read, machine_) - machine_.launch_seconds) / 2);
  return fill + seconds * (pieces - 1) / machine_.cores;
}

RangeSet RowTest::closed(const UOp& reduce) const {
  RangeSet own = 0;
  for (size_t i = 1; i < reduce.src().size(); ++i) own |= free_.at(reduce.src(i).node());
  return own;
}

// The rows that `outer` multiplies with a matrix, if they are made of `inner`, are walked whole by
// `outer`, and the matrix is the same for all.
std::optional<RangeSet> RowTest::rows_of_factor(const UOp& inner, const UOp& outer) const {
  const UOp product = outer.src(0);
  if (product.op() != Op::Mul || outer.reduce_arg().op != Op::Add) return std::nullopt;
  const auto is_made_of = [&](const UOp& u) {
    const std::vector<UOp> below = topological({&u, 1});
    return std::find(below.begin(), below.end(), inner) != below.end();
  };
  const bool first = is_made_of(product.src(0));
  if (first == is_made_of(product.src(1))) return std::nullopt;
  const RangeSet factor = free_.at(product.src(first ? 0 : 1).node());
  const RangeSet matrix = free_.at(product.src(first ? 1 : 0).node());
  const RangeSet own = closed(outer);
  const RangeSet rows = factor & ~own;
  if (std::popcount(own) != 1 || (own & ~factor) || (own & ~matrix)) return std::nullopt;
  if (rows == 0 || (rows & matrix) || (matrix & ~own) == 0) return std::nullopt;
  if (free_.at(inner.node()) & ~factor) return std::nullopt;
  return rows;
}

std::optional<RowTest::ComputedRows> RowTest::computed_rows(size_t inputs) const {
  if (!may_be_one(inputs)) return std::nullopt;
  if (std::any_of(nodes_.begin(), nodes_.end(), chooses_by_position)) return std::nullopt;
  std::vector<UOp> reductions;
  RangeSet common = ~RangeSet{0};
  for (const UOp& u : nodes_) {
    if (u.op() == Op::Reduce) reductions.push_back(u);
    if (u.op() == Op::Reduce || u.op() == Op::Store) common &= free_.at(u.node());
  }
  if (reductions.size() != 2 || is_contraction(reductions[0], true)) return std::nullopt;
  const auto rows = rows_of_factor(reductions[0], reductions[1]);
  if (!rows || *rows != common || (common & (common + 1))) return std::nullopt;
  // What the rows read is another for each step: a product would want a tile of steps too.
  const RangeSet step = closed(reductions[1]);
  for (const UOp& u : topological({&reductions[0], 1}))
    if (u.op() == Op::Load && (walked(u) & *rows) && !(walked(u) & step)) return std::nullopt;
  const double row = extent(std::bit_floor(*rows));
  const auto bytes = static_cast<double>(reductions[1].dtype().bytes());
  const double steps = extent(step);
  const double columns = extent(free_.at(reductions[1].node()) & ~*rows);
  const auto cache = static_cast<double>(machine_.l2_bytes);
  if (row < kRowTileMin || steps * bytes * kComputedRows > cache / 2) return std::nullopt;
  const double matrix = steps * columns * bytes;
  ComputedRows out;
  out.filled = extent(free_.at(reductions[0].node()) | closed(reductions[0])) / machine_.fma_rate;
  out.is_filtered = reductions[0].src(0).op() == Op::Mul;
  if (matrix > cache * 3 / 4)
    out.panels = matrix * extent(*rows) / std::min(row, kComputedRows) / machine_.l3_bandwidth;
  return out;
}

double RowTest::extent(RangeSet set) const {
  double n = 1;
  for (; set; set &= set - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(set));
    n *= static_cast<double>(std::max<int64_t>(bounds(kernel_.ranges[i].range.src(0)).hi, 1));
  }
  return n;
}

// The ranges along which a load moves through memory: a stride of 0 repeats.
RangeSet RowTest::walked(const UOp& load) const {
  const ViewArg& view = load.view_arg();
  RangeSet set = 0;
  for (size_t i = 0; i < view.strides.size(); ++i)
    if (view.strides[i] != 0) set |= free_.at(load.src(1 + i).node());
  return set;
}

// The elements that a load walks through as these ranges run.  A range that is split into several
// indices counts with the values that each of them takes; windows that overlap count as apart.
double RowTest::walked_elements(const UOp& load, RangeSet ranges) const {
  const ViewArg& view = load.view_arg();
  double elements = 1;
  for (size_t i = 0; i < view.strides.size(); ++i) {
    const UOp& index = load.src(1 + i);
    const RangeSet set = free_.at(index.node()) & ranges;
    if (view.strides[i] == 0 || set == 0) continue;
    const Interval values = bounds(index);
    const bool one = std::popcount(set) == 1;
    elements *= one ? std::min(extent(set),
                               static_cast<double>(values.hi) - static_cast<double>(values.lo) + 1)
                    : extent(set);
  }
  return std::min(elements, extent(walked(load) & ranges));
}

// A reduction whose operands are read more than once: it wants register tiles of its own.
bool RowTest::is_contraction(const UOp& reduce, bool splits) const {
  RangeSet all = free_.at(reduce.node());
  for (size_t i = 1; i < reduce.src().size(); ++i) all |= free_.at(reduce.src(i).node());
  double largest = 1;
  const UOp value = reduce.src(0);
  for (const UOp& u : topological({&value, 1}))
    if (u.op() == Op::Load)
      largest = std::max(largest, splits ? walked_elements(u, all) : extent(walked(u) & all));
  return extent(all) > 1.5 * largest;
}

bool RowTest::fits(double rows) const {
  double bytes = 0;
  double stored = 0;
  for (const UOp& u : nodes_) {
    if (u.op() == Op::Load) bytes += extent(walked(u)) * static_cast<double>(u.dtype().bytes());
    if (u.op() == Op::Store)
      stored += extent(free_.at(u.node())) * static_cast<double>(u.src(1).dtype().bytes());
  }
  if ((bytes + stored) / rows > static_cast<double>(machine_.l2_bytes) / 2) return false;
  return rows >= static_cast<double>(kRowsMin) || bytes + stored <= 64 * 1024;
}

}  // namespace tiny
