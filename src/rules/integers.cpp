#include "rules/identities.h"
#include "rules/index_code.h"

namespace tiny {

namespace {

using namespace pattern_words;

bool is_bool(const Match& m) {
  return m.root().dtype().is_bool();
}

// clang-format off
// Rules of ints and bools that hold in arithmetic modulo 2^n: data may use them.
// Progress: every rule removes a node, folds a constant, or moves one outwards.
constexpr WrittenRule kIntegers[] = {
    rule(i + 0,                             i),
    rule(i * 0,                             0),
    rule(i * -1,                            -i),
    rule(i + i,                             i * 2),
    rule(i + (-i),                          0),
    rule(i * c0 + i,                        i * (c0 + 1)),
    rule(i * c0 + i * c1,                   i * (c0 + c1)),
    rule(i * c0 + (-i),                     i * (c0 + (-1))),

    // Constants move outwards, where they meet and fold.
    rule((i + c0) + c1,                     i + (c0 + c1)),
    rule((i * c0) * c1,                     i * (c0 * c1)),
    rule((-i) * c0,                         i * (-c0)),
    rule(-(i * c0),                         i * (-c0)),
    rule(-(i + c0),                         -i + (-c0)),
    rule((i + c0) * c1,                     i * c1 + c0 * c1),

    // Division: x // 0 and x % 0 are 0 by definition.
    rule(i / 1,                             i),
    rule(i / 0,                             0),
    rule(0 / i,                             0),
    rule(i % 1,                             0),
    rule(i % 0,                             0),
    rule(0 % i,                             0),
    rule(i % i,                             0),
    rule(trunc_div(i, 1),                   i),
    rule(trunc_div(i, 0),                   0),
    rule(trunc_div(0, i),                   0),
    rule(trunc_mod(i, 1),                   0),
    rule(trunc_mod(i, 0),                   0),
    rule(trunc_mod(0, i),                   0),
    rule(trunc_mod(i, i),                   0),

    // Bits; of a bool, -1 is true.
    rule(x & 0,                             0),
    rule(x & -1,                            x),
    rule(x & x,                             x),
    rule(x | 0,                             x),
    rule(x | -1,                            -1),
    rule(x | x,                             x),
    rule(x ^ 0,                             x),
    rule(i ^ -1,                            !i),
    rule(x ^ x,                             0),
    rule(x & !x,                            0),
    rule(x | !x,                            -1),
    rule(x ^ !x,                            -1),
    rule(x & (x | y),                       x),
    rule(x | (x & y),                       x),
    rule((x & y) & y,                       x & y),
    rule((x | y) | y,                       x | y),
    rule((i & c0) & c1,                     i & (c0 & c1)),
    rule((i | c0) | c1,                     i | (c0 | c1)),
    rule((i ^ c0) ^ c1,                     i ^ (c0 ^ c1)),
    rule(i << 0,                            i),
    rule(i >> 0,                            i),
    rule(0 << i,                            0),
    rule(0 >> i,                            0),

    // Min and max.
    rule(max(max(i, c0), c1),               max(i, max(c0, c1))),
    rule(min(min(i, c0), c1),               min(i, min(c0, c1))),
    rule(max(min(i, c0), c1),               c1,                     c0 <= c1),
    rule(min(max(i, c0), c1),               c1,                     c1 <= c0),
    rule(max(i, min(i, j)),                 i),
    rule(min(i, max(i, j)),                 i),
    rule(max(max(i, j), j),                 max(i, j)),
    rule(min(min(i, j), j),                 min(i, j)),

    // Comparisons.
    rule(i < i,                             0),
    rule(i <= i,                            1),
    rule(i == i,                            1),
    rule(i != i,                            0),
    rule(b == b,                            1),
    rule(b != b,                            0),
    rule(!(i < j),                          j <= i),
    rule(!(i <= j),                         j < i),
    rule((i + c0) == c1,                    i == c1 + (-c0)),
    rule((i + c0) != c1,                    i != c1 + (-c0)),

    // Truth values.
    rule(b == 1,                            b),
    rule(b == 0,                            !b),
    rule(b != 0,                            b),
    rule(b != 1,                            !b),
    rule(b ^ 1,                             !b),
    rule(where(b, 1, 0),                    b,                      is_bool),
    rule(where(b, 0, 1),                    !b,                     is_bool),
    rule(where(b, 1, d),                    b | d),
    rule(where(b, d, 0),                    b & d),
    rule(where(b, 0, d),                    (!b) & d),
    rule(where(b, d, 1),                    (!b) | d),

    // What is known on both sides of a choice is computed there.
    rule(where(b, c0, c1) + c2,             where(b, c0 + c2, c1 + c2)),
    rule(where(b, c0, c1) * c2,             where(b, c0 * c2, c1 * c2)),
    rule(where(b, c0, c1) / c2,             where(b, c0 / c2, c1 / c2)),
    rule(where(b, c0, c1) % c2,             where(b, c0 % c2, c1 % c2)),
    rule(where(b, c0, c1) < c2,             where(b, c0 < c2, c1 < c2)),
    rule(c2 < where(b, c0, c1),             where(b, c2 < c0, c2 < c1)),
    rule(where(b, c0, c1) == c2,            where(b, c0 == c2, c1 == c2)),
    rule(where(b, c0, c1) != c2,            where(b, c0 != c2, c1 != c2)),

    // Of a choice between a value and a constant the constant's side is known.
    rule(where(b, i, c1) < c2,              where(b, i < c2, c1 < c2)),
    rule(where(b, c1, i) < c2,              where(b, c1 < c2, i < c2)),
    rule(c2 < where(b, i, c1),              where(b, c2 < i, c2 < c1)),
    rule(c2 < where(b, c1, i),              where(b, c2 < c1, c2 < i)),
    rule(where(b, i, c1) == c2,             where(b, i == c2, c1 == c2)),
    rule(where(b, c1, i) == c2,             where(b, c1 == c2, i == c2)),
    rule(where(b, i, c1) != c2,             where(b, i != c2, c1 != c2)),
    rule(where(b, c1, i) != c2,             where(b, c1 != c2, i != c2)),
    rule(where(b, i, c1) / c2,              where(b, i / c2, c1 / c2)),
    rule(where(b, c1, i) / c2,              where(b, c1 / c2, i / c2)),
    rule(where(b, i, c1) % c2,              where(b, i % c2, c1 % c2)),
    rule(where(b, c1, i) % c2,              where(b, c1 % c2, i % c2)),
};

// Rules of int64 indices, which do not overflow.  Sums have one form: terms in order, the constant
// last (ir/affine.h); a comparison has its positive terms left and its negative ones right.
// Progress: sums and comparisons reach their form in one step; every other rule removes a division
// or modulo, makes one of a smaller divisor or of fewer terms, or drops a node.
constexpr WrittenRule kIndices[] = {
    // Known ranges.
    rule(i / c0,                            0,                      lo(i) >= 0 && hi(i) < c0),
    rule(i % c0,                            i,                      lo(i) >= 0 && hi(i) < c0),
    rule(trunc_div(i, j),                   i / j,                  lo(i) >= 0 && lo(j) > 0),
    rule(trunc_mod(i, j),                   i % j,                  lo(i) >= 0 && lo(j) > 0),
    rule(abs(i),                            i,                      lo(i) >= 0),
    rule(abs(i),                            -i,                     hi(i) <= 0),

    // Divisions of divisions; the modulo comes out, where it meets others.
    rule((i / c0) / c1,                     i / (c0 * c1),          c0 > 0 && c1 > 0 && c0 * c1 > 0),
    rule((i % c0) % c1,                     i % c1,                 c0 > 0 && c1 > 0 && c0 % c1 == 0),
    rule((i % c0) / c1,                     (i / c1) % (c0 / c1),   c0 > 0 && c1 > 0 && c0 % c1 == 0),

    // Shifts and masks are divisions.
    rule(i << c0,                           power_for_shift_left),
    rule(i >> c0,                           division_for_shift_right),
    rule(i & c0,                            modulo_for_mask),

    // Sums of terms, and what needs to look at them.
    rule(i + j,                             ordered_sum),
    rule(i * j,                             ordered_sum),
    rule(-i,                                ordered_sum),
    rule(i / j,                             split_division),
    rule(i % j,                             split_modulo),
    rule(i < j,                             ordered_comparison),
    rule(i <= j,                            ordered_comparison),
    rule(i == j,                            ordered_equality),
    rule(i != j,                            ordered_equality),
    rule(min(i, j),                         decided_min_max),
    rule(max(i, j),                         decided_min_max),
    rule(where(b, i, j),                    decided_where),
    rule(b & d,                             ordered_conjunction),
    rule(b | d,                             ordered_disjunction),
};
// clang-format on

}  // namespace

RuleTable integer_rules() {
  return rule_table<kIntegers>("integers");
}
RuleTable index_rules() {
  return rule_table<kIndices>("indices", true);
}

}  // namespace tiny
