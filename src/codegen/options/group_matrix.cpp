#include "codegen/options/group_matrix.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/error.h"
#include "base/matrix.h"
#include "ir/affine.h"
#include "ir/build.h"
#include "rules/symbolic.h"

namespace tiny {

namespace {

constexpr int64_t kResultColumns = 2;  // side by side, of a thread

DType element_of(MatrixElement element) {
  switch (element) {
    case MatrixElement::Half:
      return kFloat16;
    case MatrixElement::Bfloat:
      return kBFloat16;
    case MatrixElement::Tf32:
      break;
  }
  return kFloat32;
}

bool are_equal(const UOp& a, const UOp& b) {
  const std::optional<Affine> difference = affine(sub(a, b));
  return difference && difference->is_constant() && difference->constant == 0;
}

// Whether the value is a load that is out of range, so zero, where fact < 0.
bool is_zero_outside(const UOp& value, const UOp& fact) {
  if (value.op() == Op::Index) {
    const UOp& stage = value.src(0);
    std::vector<std::pair<UOp, UOp>> places;
    for (size_t i = 1; i < value.src().size(); ++i) places.emplace_back(stage.src(i), value.src(i));
    return stage.src(0).op() == Op::Load && is_zero_outside(substitute(stage.src(0), places), fact);
  }
  if (value.op() != Op::Load) return false;
  const ViewArg& view = value.view_arg();
  size_t symbolic = 1 + view.shape.size();
  for (size_t i = 0; i < view.shape.size(); ++i) {
    const UOp size = view.shape[i] == kSymbolicDim ? UOp(value.src(symbolic++))
                                                   : value.graph().integer(view.shape[i]);
    if (are_equal(add(sub(size, value.src(1 + i)), -1), fact)) return true;
  }
  return false;
}

// The value, and zero where fact < 0.
UOp zero_outside(const UOp& value, const UOp& fact) {
  if (is_zero_outside(value, fact)) return value;
  const DType bits = value.dtype().bytes() == 2 ? kUInt16 : kUInt32;
  const UOp chosen =
      where(nonnegative(fact), bitcast(value, bits), value.graph().constant(bits, 0));
  return bitcast(chosen, value.dtype());
}

class MatrixMaker {
 public:
  MatrixMaker(const Kernel& kernel, const Option& option)
      : option_(option),
        row_(kMatrixRows[static_cast<size_t>(option.amount)]),
        out_(kernel),
        m_(range_of(0, row_.m)),
        n_(range_of(1, row_.n)),
        k_(range_of(2, row_.k)) {
    add_free_ranges(kernel, kernel.roots, free_);
  }

  Kernel run() {
    if (m_ == n_ || n_ == k_ || m_ == k_) refuse("a range is named twice");
    check_ranges();
    make_terms();
    split();
    check_axes();
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw_error(Status::InvalidArgument, "option ", to_text({&option_, 1}),
                " does not fit the kernel: ", why);
  }

  UOp range_of(size_t place, int64_t size) const {
    const int64_t number = option_.list[place];
    const size_t at = out_.find_range(number);
    if (at == out_.ranges.size()) refuse(cat("it has no range r", number));
    const UOp& range = out_.ranges[at].range;
    if (out_.ranges[at].kind != RangeKind::Loop) refuse(cat("r", number, " has a kind already"));
    if (!range.src(0).is_const_int(size)) refuse(cat("r", number, " has not the size ", size));
    return range;
  }

  bool depends(const UOp& u, const UOp& range) const {
    return (free_.at(u.node()) & bit(out_.position(range))) != 0;
  }
  static bool closes(const UOp& u, const UOp& range) {
    return closes_ranges(u) && std::ranges::find(u.src().subspan(1), range) != u.src().end();
  }

  // The steps are those of sums alone, rows and columns those of stores, or of what the group
  // shares of the products.
  void check_ranges() const {
    for (const UOp& u : topological(out_.roots)) {
      if ((closes(u, m_) || closes(u, n_)) && !shares_product(u))
        refuse("a value is summed or kept along rows or columns");
      if (closes(u, k_) && u.op() != Op::Reduce) refuse("a value is kept along the steps");
      if (is_stage(u) && (depends(u, m_) || depends(u, n_) || depends(u, k_)))
        refuse("a stage is filled anew for each of its steps");
    }
    if (ordered_ranges(out_) & (bit(out_.position(m_)) | bit(out_.position(n_))))
      refuse("its steps go one after the other");
    if (row_.shares_operands() && ordered_ranges(out_) != 0)
      refuse(cat("sums of ", row_.name, " begin with nothing"));
  }

  bool shares_product(const UOp& u) const {
    if (!is_stage(u) || !u.stage_arg().is_shared || !closes(u, m_) || !closes(u, n_)) return false;
    const std::vector<UOp> below = topological(u.src().first(1), is_stage);
    return std::ranges::any_of(below, [&](const UOp& sum) { return closes(sum, k_); });
  }

  // The operand of a product, as it was before it was widened.
  UOp narrow(const UOp& factor) const {
    const DType element = element_of(row_.element);
    if (row_.rounds_float) return factor.dtype() == element ? factor : UOp();
    const bool is_widened = factor.op() == Op::Cast && factor.src(0).dtype() == element;
    return is_widened ? factor.src(0) : UOp();
  }

  void make_terms() {
    Graph& graph = m_.graph();
    c_ = graph.make(Op::Range, {graph.integer(row_.n)}, out_.next_range_number());
    std::vector<std::pair<UOp, UOp>> terms;
    RangeSet closed = 0;
    for (const UOp& u : topological(out_.roots))
      if (closes(u, k_)) {
        for (const UOp& r : u.src().subspan(1)) closed |= bit(out_.position(r));
        terms.emplace_back(u, u);
      }
    if (terms.empty()) refuse("no sum is over the steps");
    std::vector<UOp> outside;  // what is left out of the steps
    std::erase_if(out_.facts, [&](const UOp& fact) {
      FreeRanges free;
      add_free_ranges(out_, {&fact, 1}, free);
      if (!(free.at(fact.node()) & closed)) return false;
      outside.push_back(fact);
      return true;
    });
    for (auto& [sum, made] : terms) made = matrix_sum(sum, outside);
    const bool is_split = row_.shares_operands();
    out_.ranges.push_back({c_, is_split ? RangeKind::Loop : RangeKind::Local, true, false, 1});
    for (UOp& root : out_.roots) root = substitute(root, terms);
  }

  UOp matrix_sum(const UOp& sum, std::span<const UOp> outside) const {
    const UOp& product = sum.src(0);
    if (sum.reduce_arg().op != Op::Add || sum.dtype() != kFloat32 || product.op() != Op::Mul)
      refuse("what it closes is no float32 sum of products");
    UOp a = narrow(product.src(0)), b = narrow(product.src(1));
    if (!a || !b) refuse(cat("the factors are not those of ", row_.name));
    if (depends(b, m_)) std::swap(a, b);
    if (!depends(a, m_) || depends(a, n_) || !depends(b, n_) || depends(b, m_) || !depends(a, k_) ||
        !depends(b, k_))
      refuse("one factor has the rows and the steps, the other the steps and the columns");
    const auto is_in_lines = [](const UOp& operand) {
      return operand.op() == Op::Index && operand.src(0).stage_arg().is_shared &&
             operand.src(0).stage_arg().swizzle == kSwizzledBitsMax;
    };
    if (row_.shares_operands() && (!is_in_lines(a) || !is_in_lines(b)))
      refuse(cat("the operands of ", row_.name, " are shared, swizzled by ", kSwizzledBitsMax));
    for (const UOp& fact : outside) {
      a = zero_outside(a, fact);
      b = zero_outside(b, fact);
    }
    b = substitute(b, {{n_, c_}});
    const UOp term =
        sum.graph().make(Op::MatrixTerm, {a, b, n_, c_, m_, k_}, option_.amount, kFloat32);
    std::vector<UOp> src(sum.src().begin(), sum.src().end());
    src[0] = term;
    src.push_back(c_);
    return sum.with_src(src);
  }

  // Into digits: halves have the numbers of m and k, threads along axis 0 that of n.
  void split() {
    int64_t column = option_.list[1], column_of_b = c_.int_arg();
    std::vector<UOp> blocks;
    if (row_.shares_operands()) {
      column = split_blocks(column, RangeKind::Upcast, blocks);
      column_of_b = split_blocks(column_of_b, RangeKind::Unroll, blocks);
    }
    const int64_t first = out_.next_range_number();
    tile(option_.list[0], kLaneRows);
    tile(column, kResultColumns);
    tile(option_.list[2], row_.steps * kLaneColumns);
    set_kind(column_of_b, RangeKind::Local, 1);
    set_kind(option_.list[0], RangeKind::Upcast);
    set_kind(first, RangeKind::Local, 1);
    set_kind(column, RangeKind::Local, 0);
    set_kind(first + 1, RangeKind::Vec);
    set_kind(option_.list[2], RangeKind::Unroll);
    if (row_.steps > 1) {
      tile(first + 2, row_.steps);
      set_kind(first + 3, RangeKind::Dot);
    }
    set_kind(first + 2, RangeKind::Local, 0);
    // The terms name the halves.
    const UOp rows = range(option_.list[0]), steps = range(option_.list[2]);
    map_kernel(out_, [&](const UOp& u, std::vector<UOp>& src) {
      if (u.op() == Op::MatrixTerm && u.src(4).op() != Op::Range) {
        src[4] = rows, src[5] = steps;
        if (!blocks.empty()) src[3] = blocks[1], src.push_back(blocks[0]);
      }
      return u.with_src(src);
    });
  }
  // Of columns, those that a row of one warp has; the number of the range inside of a block.
  int64_t split_blocks(int64_t columns, RangeKind kind, std::vector<UOp>& blocks) {
    const int64_t inside = out_.next_range_number();
    tile(columns, kLaneRows);
    set_kind(columns, kind);
    blocks.push_back(range(columns));
    return inside;
  }
  void tile(int64_t number, int64_t size) {
    out_ = apply_option(out_, {OptionKind::Tile, number, size, {}, 0, false});
  }
  UOp range(int64_t number) const { return out_.ranges[out_.find_range(number)].range; }
  void set_kind(int64_t number, RangeKind kind, uint8_t axis = 0) {
    KernelRange& r = out_.ranges[out_.find_range(number)];
    r.kind = kind;
    r.axis = axis;
  }

  // Ranges of one axis have one size, and no value is over two of them but the products and what
  // they are summed to.
  void check_axes() const {
    std::array<RangeSet, kGroupAxes> of_axis{};
    std::array<UOp, kGroupAxes> sizes;
    for (size_t i = 0; i < out_.ranges.size(); ++i) {
      const KernelRange& r = out_.ranges[i];
      if (r.kind != RangeKind::Local) continue;
      of_axis[r.axis] |= bit(i);
      if (!sizes[r.axis]) sizes[r.axis] = r.range.src(0);
      if (!(sizes[r.axis] == r.range.src(0))) refuse("an axis of the warp has another size");
    }
    FreeRanges free;
    add_free_ranges(out_, out_.roots, free);
    for (const UOp& u : topological(out_.roots)) {
      if (u.op() == Op::MatrixTerm || is_matrix_sum(u)) continue;
      RangeSet over = free.at(u.node());
      for (size_t i = 1; closes_ranges(u) && i < u.src().size(); ++i)
        over |= bit(out_.position(u.src(i)));
      for (const RangeSet same : of_axis)
        if (std::popcount(over & same) > 1) refuse("a value depends on another range of an axis");
    }
  }

  const Option& option_;
  const MatrixRow& row_;
  Kernel out_;
  UOp m_, n_, k_, c_;
  FreeRanges free_;
};

}  // namespace

Kernel apply_matrix(const Kernel& kernel, const Option& option) {
  return MatrixMaker(kernel, option).run();
}

}  // namespace tiny
