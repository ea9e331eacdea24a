#include "schedule/row_test.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "ir/bounds.h"
#include "ir/shared_value.h"
#include "schedule/decide.h"

namespace tiny {

namespace {

constexpr int64_t kRowsMin = 8;             // that a joined kernel keeps, unless it is small
constexpr double kSmallBytes = 64 * 1024;   // read and stored
constexpr int64_t kTranscendentalOps = 20;  // that one is made of

}  // namespace

// Whether a product's operand is read by an index that is read itself: it has no tiles.  Nor have
// the results that it meets where their neighbours lie anywhere.
bool RowTest::looks_up_operands() const {
  const auto reads = [&](const UOp& index) { return loops_.is_data(index); };
  std::vector<UOp> found;  // loads at an index that was read
  for (const UOp& u : loops_.nodes())
    if (u.op() == Op::Load && std::ranges::any_of(u.src().subspan(1), reads)) found.push_back(u);
  if (found.empty()) return false;
  const RangeSet last = loops_.last_range();
  for (const UOp& u : loops_.nodes()) {
    if (u.op() != Op::Reduce || !loops_.is_contraction(u)) continue;
    for (const UOp& load : found)
      for (const UOp& index : load.src().subspan(1))
        if ((loops_.free(index) & last) && reads(index)) return true;
    const std::vector<UOp> below = topological(u.src().first(1));
    for (const UOp& load : found)
      if (std::ranges::find(below, load) != below.end()) return true;
  }
  return false;
}

bool RowTest::may_be_one(size_t inputs) const {
  if (looks_up_operands()) return false;
  int64_t ops = 0;
  for (const UOp& u : loops_.nodes())
    if (has(u.op(), kElementwise) && u.dtype() != kInt64)
      ops += has(u.op(), kTranscendental) ? kTranscendentalOps : 1;
  return static_cast<int64_t>(inputs) <= machine_.most.inputs && ops <= machine_.most.ops;
}

bool RowTest::fits(double rows) const {
  double bytes = 0;
  double stored = 0;
  for (const UOp& u : loops_.nodes()) {
    if (u.op() == Op::Load) bytes += loops_.walked_bytes(u);
    if (u.op() == Op::Store) stored += loops_.stored_bytes(u);
  }
  if ((bytes + stored) / rows > static_cast<double>(machine_.l2_bytes) / 2) return false;
  return rows >= static_cast<double>(kRowsMin) || bytes + stored <= kSmallBytes;
}

bool RowTest::passes(size_t inputs) const {
  if (!may_be_one(inputs)) return false;
  const int64_t count = loops_.reductions();
  if (count == 0) return true;
  if (loops_.chooses_by_position()) return false;
  double rows = 1;
  for (const UOp& u : loops_.nodes()) {
    if (u.op() != Op::Reduce) continue;
    const RangeSet free = loops_.free(u);
    // The ranges outside of a reduction are the kernel's outermost ones.
    if (free & (free + 1)) return false;
    if (count > 1 && loops_.is_contraction(u)) return false;
    rows = std::max(rows, loops_.extent(free));
    if (free & loops_.reduced()) return false;
  }
  return fits(rows);
}

// Whether a product's rows are weights: what it multiplies with the columns is summed too, along
// the same steps.  Such sums run along blocks (codegen/options/stream.h), so that neither the
// length of the rows nor their number nor the size of what all rows read matters.
bool RowTest::is_weighing() const {
  const auto is_sum = [](const UOp& u) {
    return is_reduce(u) && u.reduce_arg().op == Op::Add && u.src().size() == 2;
  };
  for (const UOp& product : loops_.nodes()) {
    if (!is_sum(product)) continue;
    std::vector<UOp> factors{product.src(0)};
    for (size_t i = 0; i < factors.size(); ++i)
      if (factors[i].op() == Op::Mul || factors[i].op() == Op::Div ||
          (factors[i].op() == Op::Cast && machine_.computes_in_groups())) {
        const UOp u = factors[i];
        factors.insert(factors.end(), u.src().begin(), u.src().end());
      }
    for (const UOp& sum : loops_.nodes()) {
      if (!is_sum(sum) || !(sum.src(1).src(0) == product.src(1).src(0))) continue;
      if (!(loops_.free(product) & ~loops_.free(sum))) continue;  // no columns
      const UOp weight = substitute(sum.src(0), {{sum.src(1), product.src(1)}});
      if (std::ranges::find(factors, weight) != factors.end()) return true;
    }
  }
  return false;
}

// Whether a few rows fit that have so many elements.
bool RowTest::holds_rows(RangeSet columns, DType dtype) const {
  const double row = loops_.extent(columns) * static_cast<double>(dtype.bytes());
  return kRowTileMin * kStagesOfRows * row <= static_cast<double>(machine_.l2_bytes) / 2;
}

// A product is what the kernel ends in, or is wanted again and so kept; a few rows of it fit.
bool RowTest::keeps_its_products(RangeSet common) const {
  const RangeSet reduced = loops_.reduced();
  const bool is_streamed = is_weighing();
  std::vector<const Node*> repeated;  // computed again for each step of another, unless it is kept
  for (const UOp& u : loops_.nodes()) {
    if (u.op() != Op::Reduce) continue;
    const RangeSet columns = loops_.free(u) & ~common;
    if (columns == 0) continue;
    if (!is_streamed && !loops_.is_contraction(u)) return false;
    if (!is_streamed && !holds_rows(columns, u.dtype())) return false;
    if (columns & reduced) repeated.push_back(u.node());
  }
  if (repeated.empty()) return true;
  std::unordered_set<const Node*> kept;
  for (const SharedValue& shared : find_shared_values(
           loops_.kernel(), static_cast<size_t>(std::countr_one(common)), kWorkWorthKeeping))
    for (const UOp& u : topological(shared.images, is_reduce)) kept.insert(u.node());
  return std::ranges::all_of(repeated, [&](const Node* u) { return kept.contains(u); });
}

RangeSet RowTest::common() const {
  RangeSet common = ~RangeSet{0};
  for (const UOp& u : loops_.nodes())
    if (u.op() == Op::Reduce || u.op() == Op::Store) common &= loops_.free(u);
  return common;
}

bool RowTest::passes_as_tiles(size_t inputs) const {
  if (!may_be_one(inputs)) return false;
  if (loops_.chooses_by_position()) return false;
  const RangeSet common = this->common();
  if ((common & (common + 1)) || !keeps_its_products(common)) return false;
  if (is_weighing()) return true;
  if (common == 0) return false;
  // Rows are worth a tile if a matrix is the same for all of them, and is read from a cache.  One
  // that is the same for all of the kernel wants panels for all, which the product alone has.
  RangeSet row = common;
  double operands = 0;
  for (const UOp& u : loops_.nodes()) {
    if (u.op() != Op::Load) continue;
    const RangeSet walks = loops_.walked(u);
    if ((walks & common) == common || std::popcount(walks & ~common) < 2) continue;
    if (!(walks & common)) return false;
    row &= ~walks;
    operands += loops_.extent(walks & ~common) * static_cast<double>(u.dtype().bytes());
  }
  return operands > 0 && row && loops_.extent(std::bit_floor(row)) >= kRowTileMin &&
         operands <= static_cast<double>(machine_.l3_bytes) / 2;
}

bool RowTest::runs_along_blocks(size_t inputs) const {
  return is_weighing() && passes_as_tiles(inputs);
}

bool RowTest::is_along_blocks_alone(size_t inputs) const {
  if (!runs_along_blocks(inputs)) return false;
  const RangeSet common = this->common();
  return std::ranges::any_of(loops_.nodes(), [&](const UOp& u) {
    const RangeSet walks = u.op() == Op::Load ? loops_.walked(u) : loops_.free(u);
    const bool is_of_rows =
        u.op() == Op::Reduce || (u.op() == Op::Load && (walks & common) == common);
    return is_of_rows && !holds_rows(walks & ~common, u.dtype());
  });
}

bool RowTest::stores_share_loops() const {
  if (loops_.chooses_by_position()) return false;
  const RangeSet reduced = loops_.reduced();
  const bool reduces = reduced != 0;
  const RangeSet first = loops_.free(loops_.kernel().roots.front());
  std::vector<UOp> products;
  for (const UOp& u : loops_.nodes())
    if (is_reduce(u) && loops_.is_contraction(u)) products.push_back(u);
  for (const UOp& store : loops_.kernel().roots) {
    const RangeSet own = loops_.free(store);
    // What is stored once for each of the first ranges, in whose loops the others are.
    const RangeSet outside = (RangeSet{1} << std::bit_width(own)) - 1;
    if (reduces ? (outside & ~(own | reduced)) != 0 : own != first) return false;
    if (products.empty()) continue;
    const std::vector<UOp> below = topological({&store, 1});
    for (const UOp& u : products)
      if (std::ranges::find(below, u) == below.end()) return false;
  }
  return true;
}

}  // namespace tiny
