#include "shape/shape.h"

#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "base/error.h"
#include "ir/affine.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/open_size.h"
#include "ir/quotient.h"
#include "shape/winograd.h"

namespace tiny {

namespace {

// The one expression of a sum of products; anything else as it is.
UOp canonical(const UOp& expression) {
  if (expression.is_const() || expression.op() == Op::Variable) return expression;
  const std::optional<Affine> sum = affine(expression);
  return sum ? to_uop(expression.graph(), *sum) : expression;
}

}  // namespace

void throw_free(std::span<const UOp> expressions, const std::string& what) {
  std::vector<std::string> names;
  for (const UOp& u : topological(expressions))
    if (u.op() == Op::Variable) names.push_back(u.variable_arg().name);
  throw FreeDimension(
      cat(what, " depends on the free dimension", names.size() > 1 ? "s " : " ", join(names, ", ")),
      names);
}

Dim::Dim(UOp expression) {
  expression = canonical(expression);
  if (expression.is_const())
    value_ = expression.const_int();
  else
    expression_ = std::move(expression);
}

void Dim::throw_unknown() const {
  throw_free({&expression_, 1}, cat("the size ", to_string(*this)));
}

namespace {

Graph& graph_of(const Dim& a, const Dim& b) {
  return (a.is_const() ? b : a).expression().graph();
}

// a - b >= 0 in every case.
bool proves_less_equal(const Dim& b, const Dim& a) {
  const Dim room = a - b;
  return room.is_const() ? room.value() >= 0 : prove_nonnegative(room.expression());
}

[[noreturn]] void throw_undecided(const Dim& a, const char* relation, const Dim& b) {
  Graph& g = graph_of(a, b);
  const UOp both[] = {a.uop(g), b.uop(g)};
  throw_free(both, cat("whether ", to_string(a), relation, to_string(b)));
}

}  // namespace

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return checked_add(a.value(), b.value(), "a dimension");
  Graph& g = graph_of(a, b);
  return Dim(add(a.uop(g), b.uop(g)));
}

Dim operator-(const Dim& a, const Dim& b) {
  return a + b * Dim(-1);
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return checked_mul(a.value(), b.value(), "a size");
  Graph& g = graph_of(a, b);
  return Dim(mul(a.uop(g), b.uop(g)));
}

namespace {

// The term of the most factors, of these the first in the order of atoms: that of a product is the
// product of its operands'.  Without an atom it is the constant.
AffineTerm leading(const Affine& sum) {
  AffineTerm out{{}, sum.constant};
  size_t most = 0;
  for (const AffineTerm& term : sum.terms) {
    const size_t count = factors(term.atom).size();
    if (count < most || (count == most && !stands_before(term.atom, out.atom))) continue;
    most = count;
    out = term;
  }
  return out;
}

// a / b by long division, if nothing is left.
std::optional<Affine> divided(Affine a, const Affine& b) {
  constexpr int kStepsMax = 64;
  const AffineTerm by = leading(b);
  Affine quotient;
  for (int step = 0; a != Affine(); ++step) {
    const AffineTerm of = leading(a);
    if (step == kStepsMax || of.coefficient % by.coefficient != 0) return std::nullopt;
    Affine part{of.coefficient / by.coefficient, {}};
    if (of.atom) {
      const auto rest =
          by.atom ? factors_without(of.atom, by.atom) : std::optional(factors(of.atom));
      if (!rest) return std::nullopt;
      if (!rest->empty()) part = {0, {{product_atom(*rest), part.constant}}};
    } else if (by.atom) {
      return std::nullopt;
    }
    auto sum = add_scaled(quotient, part, 1), left = multiplied(b, part);
    if (left) left = add_scaled(a, *left, -1);
    if (!sum || !left) return std::nullopt;
    quotient = std::move(*sum);
    a = std::move(*left);
  }
  return quotient;
}

}  // namespace

std::optional<Dim> divide_exactly(const Dim& a, const Dim& b) {
  if (b.is(1)) return a;
  if (a == b) return Dim(1);
  if (a.is_const() && b.is_const()) {
    if (b.value() == 0 || a.value() % b.value() != 0) return std::nullopt;
    return Dim(a.value() / b.value());
  }
  if (a.is(0)) return Dim(0);
  if (b.is(0)) return std::nullopt;
  Graph& g = graph_of(a, b);
  const std::optional<Affine> of = affine(a.uop(g));
  const std::optional<Affine> by = affine(b.uop(g));
  if (!of || !by) return std::nullopt;
  const std::optional<Affine> quotient = divided(*of, *by);
  if (!quotient) return std::nullopt;
  return Dim(to_uop(g, *quotient));
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return floor_div(a.value(), b.value());
  if (const auto exact = divide_exactly(a, b)) return *exact;
  Graph& g = graph_of(a, b);
  if (b.is_const() && b.value() > 1)
    if (const auto sum = affine(a.expression())) {
      BoundsCache cache;
      if (in_range(*sum, {b.value(), {}}, {}, cache)) return 0;
      return Dim(to_uop(g, quotient(*sum, b.value(), {}, cache)));
    }
  return Dim(floor_div(a.uop(g), b.uop(g)));
}

Dim floor_mod(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return floor_mod(a.value(), b.value());
  if (divide_exactly(a, b)) return 0;
  Graph& g = graph_of(a, b);
  return Dim(floor_mod(a.uop(g), b.uop(g)));
}

Dim minimum(const Dim& a, const Dim& b) {
  if (proves_less_equal(a, b)) return a;
  if (proves_less_equal(b, a)) return b;
  Graph& g = graph_of(a, b);
  return Dim(minimum(a.uop(g), b.uop(g)));
}

Dim maximum(const Dim& a, const Dim& b) {
  if (proves_less_equal(a, b)) return b;
  if (proves_less_equal(b, a)) return a;
  Graph& g = graph_of(a, b);
  return Dim(maximum(a.uop(g), b.uop(g)));
}

bool decide_equal(const Dim& a, const Dim& b) {
  if (a == b) return true;
  if (a.is_const() && b.is_const()) return false;
  if (proves_less_equal(a + 1, b) || proves_less_equal(b + 1, a)) return false;
  throw_undecided(a, " equals ", b);
}

bool decide_less_equal(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return a.value() <= b.value();
  if (proves_less_equal(a, b)) return true;
  if (proves_less_equal(b + 1, a)) return false;
  throw_undecided(a, " is at most ", b);
}

Dim product(const Shape& shape) {
  if (all_const(shape)) {
    int64_t n = 1;
    for (const Dim& d : shape) n = checked_mul(n, d.value(), "a size");
    return n;
  }
  Dim n = 1;
  for (const Dim& d : shape) n = n * d;
  return n;
}

double elements_at_most(const UOp& node) {
  double n = 1;
  for (const Dim& d : shape_of(node))
    n *= static_cast<double>(
        std::max<int64_t>(d.is_const() ? d.value() : usual_most(d.expression()), 1));
  return n;
}

Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size(), Dim(1));
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

bool all_const(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_const(); });
}

bool depend_on(std::span<const Dim> sizes, const UOp& variable) {
  return std::ranges::any_of(sizes, [&](const Dim& size) {
    if (size.is_const()) return false;
    return std::ranges::count(topological({&size.expression(), 1}), variable) > 0;
  });
}

Ints const_dims(const Shape& shape) {
  Ints dims;
  dims.reserve(shape.size());
  for (const Dim& d : shape) dims.push_back(d.value());
  return dims;
}

Shape to_shape(const Ints& dims) {
  return Shape(dims.begin(), dims.end());
}

std::string to_string(const Dim& dim) {
  if (dim.is_const()) return std::to_string(dim.value());
  const std::optional<Affine> sum = affine(dim.expression());
  if (!sum) return expression_text(dim.expression());
  std::string out;
  // "3*n*m - n + 1"
  const auto append = [&](int64_t coefficient, std::vector<std::string> factors) {
    const bool is_less = coefficient < 0;
    out += out.empty() ? (is_less ? "-" : "") : (is_less ? " - " : " + ");
    const uint64_t size =
        is_less ? -static_cast<uint64_t>(coefficient) : static_cast<uint64_t>(coefficient);
    if (size != 1 || factors.empty()) factors.insert(factors.begin(), std::to_string(size));
    out += join(factors, "*");
  };
  for (const AffineTerm& term : sum->terms) {
    std::vector<std::string> texts;
    for (const UOp& factor : factors(term.atom)) texts.push_back(expression_text(factor));
    append(term.coefficient, texts);
  }
  if (sum->constant != 0) append(sum->constant, {});
  return out;
}

std::string to_string(const Shape& shape) {
  std::vector<std::string> items;
  for (const Dim& d : shape) items.push_back(to_string(d));
  return "[" + join(items, ", ") + "]";
}

int64_t upper_bound(const Dim& dim) {
  return dim.is_const() ? dim.value() : bounds(dim.expression()).hi;
}

int64_t lower_bound(const Dim& dim) {
  if (dim.is_const()) return dim.value();
  // 0 where only a proof tells it: Min and Max hide it from plain bounds.
  const int64_t lo = bounds(dim.expression()).lo;
  return lo < 0 && prove_nonnegative(dim.expression()) ? 0 : lo;
}

// ---- Movement nodes carry their parameters as integers, with symbolic ones among the sources.

namespace {

// Parameter lists are flattened into one: a pad is its befores, then its afters.
UOp movement(Op op, const UOp& x, const Shape& parameters) {
  Ints numbers;
  numbers.reserve(parameters.size());
  for (const Dim& d : parameters) numbers.push_back(d.is_const() ? d.value() : kSymbolicDim);
  if (all_const(parameters)) return x.graph().make(op, std::span(&x, 1), std::move(numbers));
  std::vector<UOp> src{x};
  for (const Dim& d : parameters)
    if (!d.is_const()) src.push_back(d.expression());
  return x.graph().make(op, src, std::move(numbers));
}

Shape joined(const Shape& a, const Shape& b) {
  Shape all;
  all.reserve(a.size() + b.size());
  all.insert(all.end(), a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

bool all_zero(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is(0); });
}

Shape reduced_shape(const UOp& node) {
  Shape shape = shape_of(node.src(0));
  for (int64_t axis : node.reduce_arg().axes) shape[static_cast<size_t>(axis)] = 1;
  return shape;
}

Shape gathered_shape(const UOp& node) {
  const Shape& data = shape_of(node.src(0));
  const Shape& index = shape_of(node.src(1));
  const auto axis = node.int_arg();
  Shape shape(data.begin(), data.begin() + axis);
  shape.insert(shape.end(), index.begin(), index.end());
  shape.insert(shape.end(), data.begin() + axis + 1, data.end());
  return shape;
}

Shape concatenated_shape(const UOp& node) {
  const auto axis = static_cast<size_t>(node.int_arg());
  Shape shape = shape_of(node.src(0));
  for (size_t i = 1; i < node.src().size(); ++i)
    shape[axis] = shape[axis] + shape_of(node.src(i))[axis];
  return shape;
}

Shape moved_shape(const UOp& node) {
  if (node.op() == Op::AsStrided) return to_shape(node.view_arg().shape);
  const Shape& x = shape_of(node.src(0));
  Shape p = movement_dims(node);
  switch (node.op()) {
    case Op::Reshape:
    case Op::Expand:
      return p;
    case Op::Permute: {
      Shape shape;
      shape.reserve(p.size());
      for (const Dim& axis : p) shape.push_back(x[static_cast<size_t>(axis.value())]);
      return shape;
    }
    case Op::Pad: {
      Shape shape = x;
      for (size_t i = 0; i < x.size(); ++i) shape[i] = x[i] + p[i] + p[x.size() + i];
      return shape;
    }
    case Op::Shrink: {
      Shape shape = x;
      for (size_t i = 0; i < x.size(); ++i) shape[i] = p[x.size() + i] - p[i];
      return shape;
    }
    case Op::Unfold: {
      const Unfolding windows = unfolding(node);
      Shape shape = x;
      auto at = shape.begin() + windows.axis;
      Shape kernels;
      for (const Unfolding::Along& w : windows.along) {
        *at++ = w.count;
        kernels.emplace_back(w.kernel);
      }
      shape.insert(at, kernels.begin(), kernels.end());
      return shape;
    }
    default:
      return x;
  }
}

Shape scanned_shape(const UOp& node) {
  const ScanPart& part = scan_part(node);
  if (part.kind == ScanPart::Kind::Last) return shape_of(whole_state(node, part.index));
  Shape shape = shape_of(node.src(part.index));
  shape.insert(shape.begin(), part.loop->count);
  return shape;
}

// A shape as it lies with its node.
struct KnownShape : RefCounted {
  explicit KnownShape(Shape known) : shape(std::move(known)) {}
  const Shape shape;
};

// Of a node whose sources have theirs; what is as its first source shares it.
Ref<RefCounted> known_shape(const UOp& node) {
  const auto known = [](Shape shape) {
    return Ref<RefCounted>(make_ref<KnownShape>(std::move(shape)));
  };
  if (has(node.op(), kMovement)) return known(moved_shape(node));
  switch (node.op()) {
    case Op::Const:
    case Op::Variable:
      return known({});
    case Op::Buffer:
      return known({node.src().empty() ? Dim(0) : Dim(node.src(0))});
    case Op::Iota:
      return known({Dim(node.src(0))});
    case Op::Call: {
      const CallResult& result = call_result(node);
      return known({product(result.call->outputs[result.index].shape)});
    }
    case Op::ScanStep:
      return known(scan_part(node).shape);
    case Op::Scan:
      return known(scanned_shape(node));
    case Op::ReduceAxis:
      return known(reduced_shape(node));
    case Op::Winograd:
      return known(winograd_shape(node));
    case Op::Gather:
      return known(gathered_shape(node));
    case Op::Concat:
      return known(concatenated_shape(node));
    default:
      return node.src(0).node()->shape;
  }
}

const UOp* source_without_shape(const UOp& node) {
  for (const UOp& s : node.src())
    if (!s.node()->shape) return &s;
  return nullptr;
}

}  // namespace

const Shape& shape_of(const UOp& node) {
  const Node* n = node.node();
  if (!n->shape && !source_without_shape(node)) n->shape = known_shape(node);
  if (!n->shape) {
    // Sources first, so that a deep graph needs no stack.
    std::vector<UOp> stack{node};
    while (!stack.empty()) {
      const UOp top = stack.back();
      const UOp* const missing = top.node()->shape ? nullptr : source_without_shape(top);
      if (missing) {
        stack.push_back(*missing);
        continue;
      }
      if (!top.node()->shape) top.node()->shape = known_shape(top);
      stack.pop_back();
    }
  }
  return static_cast<const KnownShape*>(n->shape.get())->shape;
}

Shape movement_dims(const UOp& node) {
  Shape out;
  out.reserve(node.ints().size());
  size_t next = 1;
  for (int64_t v : node.ints()) {
    if (v == kSymbolicDim)
      out.emplace_back(node.src(next++));
    else
      out.emplace_back(v);
  }
  return out;
}

UOp make_reshape(const UOp& x, const Shape& shape) {
  if (shape_of(x) == shape) return x;
  invariant(product(shape) == product(shape_of(x)), "a reshape keeps the number of elements");
  // Of two reshapes in a row only the last matters.
  if (x.op() == Op::Reshape) return make_reshape(x.src(0), shape);
  return movement(Op::Reshape, x, shape);
}

UOp make_expand(const UOp& x, const Shape& shape) {
  const Shape& from = shape_of(x);
  if (from == shape) return x;
  invariant(from.size() == shape.size(), "an expand keeps the rank");
  for (size_t i = 0; i < from.size(); ++i)
    invariant(from[i].is(1) || from[i] == shape[i], "an expand repeats axes of size 1");
  return movement(Op::Expand, x, shape);
}

UOp make_permute(const UOp& x, const Ints& axes) {
  invariant(axes.size() == shape_of(x).size(), "a permutation names every axis");
  if (std::is_sorted(axes.begin(), axes.end())) return x;
  if (x.op() == Op::Permute) {
    Ints both;
    for (int64_t a : axes) both.push_back(x.ints()[static_cast<size_t>(a)]);
    return make_permute(x.src(0), both);
  }
  return x.graph().make(Op::Permute, {x}, axes);
}

UOp make_flip(const UOp& x, const Ints& axes) {
  if (axes.empty()) return x;
  return x.graph().make(Op::Flip, {x}, axes);
}

UOp make_pad(const UOp& x, const Shape& before, const Shape& after) {
  invariant(before.size() == shape_of(x).size() && after.size() == before.size(),
            "a pad names every axis");
  if (all_zero(before) && all_zero(after)) return x;
  return movement(Op::Pad, x, joined(before, after));
}

UOp make_shrink(const UOp& x, const Shape& begin, const Shape& end) {
  invariant(begin.size() == shape_of(x).size() && end.size() == begin.size(),
            "a shrink names every axis");
  if (all_zero(begin) && end == shape_of(x)) return x;
  return movement(Op::Shrink, x, joined(begin, end));
}

UOp make_unfold(const UOp& x, const Unfolding& windows) {
  const Shape& shape = shape_of(x);
  invariant(windows.axis >= 0 && windows.axis + std::ssize(windows.along) <= std::ssize(shape),
            "windows lie along axes that exist");
  Shape parameters{windows.axis}, end = shape, apart = shape;
  bool is_whole = true;  // each window is an element
  for (size_t i = 0; i < windows.along.size(); ++i) {
    const Unfolding::Along& w = windows.along[i];
    const auto axis = static_cast<size_t>(windows.axis) + i;
    invariant(w.kernel >= 1 && w.stride >= 1 && w.dilation >= 1,
              "a kernel, a stride and a dilation are at least one");
    const Dim last =
        (w.count - 1) * Dim(w.stride) + checked_mul(w.kernel - 1, w.dilation, "a window");
    invariant(w.count.is(0) || !last.is_const() || !shape[axis].is_const() ||
                  last.value() < shape[axis].value(),
              "windows lie inside the axis");
    is_whole = is_whole && w.kernel == 1 && w.stride == 1;
    end[axis] = apart[axis] = w.count;
    for (const Dim& d : {w.count, Dim(w.kernel), Dim(w.stride), Dim(w.dilation)})
      parameters.push_back(d);
  }
  if (!is_whole) return movement(Op::Unfold, x, parameters);
  apart.insert(apart.begin() + windows.axis + std::ssize(windows.along), windows.along.size(), 1);
  return make_reshape(make_shrink(x, Shape(shape.size(), Dim(0)), end), apart);
}

Unfolding unfolding(const UOp& node) {
  const Shape p = movement_dims(node);
  Unfolding windows{p[0].value(), {}};
  for (size_t i = 1; i < p.size(); i += 4)
    windows.along.push_back({p[i], p[i + 1].value(), p[i + 2].value(), p[i + 3].value()});
  return windows;
}

UOp make_alias(const UOp& x, AliasKind kind, std::span<const UOp> others) {
  std::vector<UOp> src{x};
  src.insert(src.end(), others.begin(), others.end());
  return x.graph().make(Op::Alias, std::move(src), Ints{static_cast<int64_t>(kind)});
}

UOp make_apart(const UOp& x, int64_t number) {
  return x.graph().make(Op::Alias, {x}, Ints{static_cast<int64_t>(AliasKind::Apart), number});
}

AliasKind alias_kind(const UOp& node) {
  return static_cast<AliasKind>(node.ints().front());
}

UOp make_iota(Graph& graph, const Dim& count, DType dtype) {
  return graph.make(Op::Iota, {count.uop(graph)}, {}, dtype);
}

UOp make_reduce(const UOp& x, Op op, const Ints& axes) {
  if (axes.empty()) return x;
  Ints sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  return x.graph().make(Op::ReduceAxis, {x}, ReduceArg{op, sorted});
}

UOp make_gather(const UOp& data, const UOp& index, int64_t axis) {
  invariant(axis >= 0 && axis < static_cast<int64_t>(shape_of(data).size()),
            "the gathered axis exists");
  return data.graph().make(Op::Gather, {data, index}, axis);
}

UOp make_scatter(const UOp& data, const UOp& places, const UOp& updates, Op fold, int64_t axis) {
  const Shape& shape = shape_of(data);
  const Shape& given = shape_of(updates);
  invariant(given.size() == shape.size() && given == shape_of(places),
            "updates and places have the axes of the data");
  for (size_t i = 0; i < shape.size(); ++i)
    invariant(static_cast<int64_t>(i) == axis || decide_less_equal(given[i], shape[i]),
              "updates are inside of the data");
  return data.graph().make(Op::Scatter, {data, places, updates}, ReduceArg{fold, {axis}});
}

UOp make_concat(const std::vector<UOp>& parts, int64_t axis) {
  if (parts.size() == 1) return parts.front();
  return parts.front().graph().make(Op::Concat, parts, axis);
}

UOp make_version(const UOp& previous, const UOp& target, const UOp& value, int64_t version) {
  invariant(shape_of(target) == shape_of(value), "a write has the shape of its target");
  Graph& graph = previous.graph();
  const UOp write = graph.make(Op::Assign, {target, value}, version);
  return graph.make(Op::After, {previous, write}, version);
}

const CallResult& call_result(const UOp& node) {
  return static_cast<const CallResult&>(*std::get<Ref<RefCounted>>(node.arg()));
}

std::vector<UOp> alive_results(const UOp& node) {
  const HostCall& call = *call_result(node).call;
  const std::vector<UOp> sources(node.src().begin(), node.src().end());
  std::vector<UOp> results;
  for (CallResult* result : call.alive)
    results.push_back(node.graph().make(Op::Call, sources, Ref<RefCounted>(result),
                                        call.outputs[result->index].dtype));
  return results;
}

UOp make_call(Graph& graph, const Ref<const HostCall>& call, std::vector<UOp> sources,
              size_t index) {
  const DType dtype = call->outputs[index].dtype;
  return graph.make(Op::Call, std::move(sources),
                    Ref<RefCounted>(make_ref<CallResult>(call, index)), dtype);
}

namespace {

struct ScanArg : RefCounted {
  explicit ScanArg(ScanPart p) : part(std::move(p)) {}
  const ScanPart part;
};

Ref<RefCounted> scan_arg(ScanPart part) {
  return Ref<RefCounted>(make_ref<ScanArg>(std::move(part)));
}

}  // namespace

const ScanPart& scan_part(const UOp& node) {
  return static_cast<const ScanArg&>(*std::get<Ref<RefCounted>>(node.arg())).part;
}

UOp make_scan_step(const UOp& source, ScanPart part) {
  return source.graph().make(Op::ScanStep, {source}, scan_arg(std::move(part)));
}

UOp make_scan_store(const UOp& value, ScanPart part) {
  return value.graph().make(Op::ScanStore, {value}, scan_arg(std::move(part)));
}

UOp make_scan(const std::vector<UOp>& sources, ScanPart part) {
  const ScanLoop& loop = *part.loop;
  const size_t behind = sources.size() - loop.stores();
  invariant(loop.is_branch    ? behind == 1 || behind == 2
            : loop.is_counted ? behind == 1 + loop.states
                              : behind == 0,
            "a scan has a store for all it makes");
  const size_t which = part.kind == ScanPart::Kind::Last ? loop.outputs + part.index : part.index;
  return sources.front().graph().make(Op::Scan, sources, scan_arg(std::move(part)),
                                      sources[which].dtype());
}

UOp whole_state(const UOp& scan, size_t state) {
  const ScanLoop& loop = *scan_part(scan).loop;
  return UOp(scan.src(loop.induction_variable ? loop.stores() + 1 + state : loop.outputs + state));
}

UOp make_buffer(Graph& graph, Ref<RefCounted> storage, DType dtype, const Dim& count) {
  return graph.make(Op::Buffer, {count.uop(graph)}, std::move(storage), dtype);
}

}  // namespace tiny
