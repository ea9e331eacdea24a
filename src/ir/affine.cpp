#include "ir/affine.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace tiny {

namespace {

constexpr size_t kTermsMax = 64;
constexpr size_t kTermsUsual = 4;   // most sums have no more
constexpr int kStepsMax = 512;      // a chain of x + x has exponentially many paths
constexpr int kNestedProducts = 6;  // products of sums within products of sums

constexpr int kOrderDepth = 4;  // of atoms that are compared piece by piece

int rank(const UOp& u) {
  if (u.op() == Op::Range) return 0;
  if (u.op() == Op::Variable) return 1;
  return u.is_const() ? 3 : 2;
}

template <class T>
int three_way(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

// Below 0 if `a` stands before `b`.  What people would compare decides, then the hash.
int compare(const UOp& a, const UOp& b, int depth) {
  if (a == b) return 0;
  int order = three_way(rank(a), rank(b));
  if (order == 0 && rank(a) == 0) order = three_way(a.int_arg(), b.int_arg());
  if (order == 0 && rank(a) == 1) order = three_way(a.variable_arg().name, b.variable_arg().name);
  if (order == 0 && rank(a) == 3) order = three_way(a.const_bits(), b.const_bits());
  if (order == 0 && rank(a) == 2 && depth > 0) {
    order = three_way(a.op(), b.op());
    for (size_t i = 0; order == 0 && i < a.src().size() && i < b.src().size(); ++i)
      order = compare(a.src(i), b.src(i), depth - 1);
  }
  if (order == 0) order = three_way(a.hash(), b.hash());
  return order != 0 ? order : three_way(a.id(), b.id());
}

// Sums like terms of an unordered list, in place; false on overflow or too many.
bool normalise(Affine& a) {
  std::sort(a.terms.begin(), a.terms.end(),
            [](const AffineTerm& s, const AffineTerm& t) { return stands_before(s.atom, t.atom); });
  size_t kept = 0;
  for (size_t i = 0; i < a.terms.size();) {
    AffineTerm sum = a.terms[i++];
    while (i < a.terms.size() && a.terms[i].atom == sum.atom)
      if (__builtin_add_overflow(sum.coefficient, a.terms[i++].coefficient, &sum.coefficient))
        return false;
    if (sum.coefficient != 0) a.terms[kept++] = std::move(sum);
  }
  a.terms.resize(kept);
  return kept <= kTermsMax;
}

class Collector {
 public:
  // Adds scale * u; false if it cannot be done.
  bool collect(const UOp& u, int64_t scale, int nested) {
    Work work;
    work.add(u, scale);
    while (work.count > 0) {
      const auto [node, k] = work.parts[--work.count];
      if (++steps_ > kStepsMax) return false;
      if (!step(*node, k, nested, work)) return false;
    }
    return true;
  }
  Affine result;

 private:
  // Parts of the expression that are left to do.  Each step takes one and adds at most two.
  struct Work {
    struct Part {
      const UOp* node;
      int64_t scale;
    };
    void add(const UOp& u, int64_t scale) { parts[count++] = {&u, scale}; }
    std::array<Part, kStepsMax + 2> parts;  // of which `count` are set
    size_t count = 0;
  };

  bool step(const UOp& u, int64_t k, int nested, Work& work) {
    switch (u.op()) {
      case Op::Const:
        return add_constant(u.const_int(), k);
      case Op::Add:
        work.add(u.src(0), k);
        work.add(u.src(1), k);
        return true;
      case Op::Neg:
        if (k == INT64_MIN) return false;
        work.add(u.src(0), -k);
        return true;
      case Op::Mul:
        return product(u, k, nested, work);
      default:
        add_term(u, k);
        return true;
    }
  }

  void add_term(const UOp& atom, int64_t k) {
    if (result.terms.empty()) result.terms.reserve(kTermsUsual);
    result.terms.push_back({atom, k});
  }
  bool add_constant(int64_t value, int64_t k) {
    int64_t p = 0;
    return !__builtin_mul_overflow(value, k, &p) &&
           !__builtin_add_overflow(result.constant, p, &result.constant);
  }

  bool product(const UOp& u, int64_t k, int nested, Work& work) {
    for (size_t side = 0; side < 2; ++side) {
      if (!u.src(side).is_const()) continue;
      int64_t scale = 0;
      if (__builtin_mul_overflow(u.src(side).const_int(), k, &scale)) return false;
      if (scale != 0) work.add(u.src(1 - side), scale);
      return true;
    }
    if (nested > 0) {
      if (const auto expanded = multiply_out(u, nested - 1)) {
        for (const AffineTerm& t : expanded->terms) {
          int64_t c = 0;
          if (__builtin_mul_overflow(t.coefficient, k, &c)) return false;
          add_term(t.atom, c);
        }
        return add_constant(expanded->constant, k);
      }
    }
    add_term(u, k);
    return true;
  }

  std::optional<Affine> multiply_out(const UOp& u, int nested) {
    Affine sides[2];
    for (size_t side = 0; side < 2; ++side) {
      Collector inner;
      inner.steps_ = steps_;
      const bool fits = inner.collect(u.src(side), 1, nested) && normalise(inner.result);
      steps_ = inner.steps_;
      if (!fits) return std::nullopt;
      sides[side] = std::move(inner.result);
    }
    return multiplied(sides[0], sides[1]);
  }

  int steps_ = 0;
};

}  // namespace

int64_t Affine::coefficient(const UOp& atom) const {
  for (const AffineTerm& t : terms)
    if (t.atom == atom) return t.coefficient;
  return 0;
}

bool stands_before(const UOp& a, const UOp& b) {
  return compare(a, b, kOrderDepth) < 0;
}

std::vector<UOp> factors(const UOp& atom) {
  std::vector<UOp> found;
  std::vector<UOp> work{atom};
  while (!work.empty()) {
    const UOp u = std::move(work.back());
    work.pop_back();
    if (u.op() == Op::Mul) {
      work.push_back(u.src(1));
      work.push_back(u.src(0));
    } else {
      found.push_back(u);
    }
    // A product with more factors than any index has stays whole.
    if (found.size() + work.size() > kTermsMax) return {atom};
  }
  std::sort(found.begin(), found.end(), stands_before);
  return found;
}

UOp product_atom(std::vector<UOp> factors) {
  invariant(!factors.empty(), "a product atom has a factor");
  std::sort(factors.begin(), factors.end(), stands_before);
  UOp product = factors[0];
  for (size_t i = 1; i < factors.size(); ++i)
    product = product.graph().make(Op::Mul, {product, factors[i]});
  return product;
}

std::optional<std::vector<UOp>> factors_without(const UOp& product, const UOp& divisor) {
  std::vector<UOp> rest = factors(product);
  for (const UOp& f : factors(divisor)) {
    const auto at = std::find(rest.begin(), rest.end(), f);
    if (at == rest.end()) return std::nullopt;
    rest.erase(at);
  }
  return rest;
}

std::optional<Affine> affine(const UOp& u) {
  if (u.dtype() != kInt64) return std::nullopt;
  Collector c;
  if (!c.collect(u, 1, kNestedProducts) || !normalise(c.result)) return std::nullopt;
  return std::move(c.result);
}

std::optional<Affine> add_scaled(const Affine& a, const Affine& b, int64_t scale) {
  Affine sum{a.constant, {}};
  sum.terms.reserve(a.terms.size() + b.terms.size());
  sum.terms = a.terms;
  int64_t p = 0;
  if (__builtin_mul_overflow(b.constant, scale, &p) ||
      __builtin_add_overflow(a.constant, p, &sum.constant))
    return std::nullopt;
  for (const AffineTerm& t : b.terms) {
    if (__builtin_mul_overflow(t.coefficient, scale, &p)) return std::nullopt;
    sum.terms.push_back({t.atom, p});
  }
  if (!normalise(sum)) return std::nullopt;
  return sum;
}

std::optional<Affine> scaled(const Affine& a, int64_t scale) {
  return add_scaled({}, a, scale);
}

std::optional<Affine> multiplied(const Affine& a, const Affine& b) {
  if ((a.terms.size() + 1) * (b.terms.size() + 1) > kTermsMax) return std::nullopt;
  Affine product;
  int64_t p = 0;
  if (__builtin_mul_overflow(a.constant, b.constant, &product.constant)) return std::nullopt;
  for (const AffineTerm& s : a.terms) {
    if (__builtin_mul_overflow(s.coefficient, b.constant, &p)) return std::nullopt;
    if (p != 0) product.terms.push_back({s.atom, p});
    for (const AffineTerm& t : b.terms) {
      if (__builtin_mul_overflow(s.coefficient, t.coefficient, &p)) return std::nullopt;
      std::vector<UOp> f = factors(s.atom);
      for (UOp& more : factors(t.atom)) f.push_back(std::move(more));
      product.terms.push_back({product_atom(std::move(f)), p});
    }
  }
  for (const AffineTerm& t : b.terms) {
    if (__builtin_mul_overflow(t.coefficient, a.constant, &p)) return std::nullopt;
    if (p != 0) product.terms.push_back({t.atom, p});
  }
  if (!normalise(product)) return std::nullopt;
  return product;
}

UOp to_uop(Graph& graph, const Affine& a) {
  UOp sum;
  for (const AffineTerm& t : a.terms) {
    UOp term = t.atom;
    if (t.coefficient == -1) {
      term = graph.make(Op::Neg, {term});
    } else if (t.coefficient != 1) {
      term = graph.make(Op::Mul, {term, graph.integer(t.coefficient)});
    }
    sum = sum ? graph.make(Op::Add, {sum, term}) : term;
  }
  if (!sum) return graph.integer(a.constant);
  if (a.constant == 0) return sum;
  return graph.make(Op::Add, {sum, graph.integer(a.constant)});
}

}  // namespace tiny
