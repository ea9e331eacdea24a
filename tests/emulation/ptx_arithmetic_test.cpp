// Every form of arithmetic, bit by bit, against C++ on the host; the text is ptxas's, too.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "base/half.h"
#include "tests/emulation/kernels.h"
#include "tests/emulation/ptx_floats.h"

namespace tiny::emulation {
namespace {

// Values of 64 bits as operands, one thread each.
class ArithmeticTest : public EmulatorTest {
 protected:
  // `form` has A, B, C for operands and D for the result; bits wide: what is stored and loaded.
  std::vector<uint64_t> results(const std::string& form, const std::string& before = "",
                                const std::string& after = "") {
    std::string text = R"(
mov.u32 %r0, %tid.x;
mov.u32 %r1, %ctaid.x;
mad.lo.u32 %r0, %r1, 64, %r0;
mul.wide.u32 %d4, %r0, 8;
add.s64 %d5, %d0, %d4;
add.s64 %d6, %d1, %d4;
add.s64 %d7, %d2, %d4;
add.s64 %d8, %d3, %d4;
ld.global.b64 %d9, [%d5];
ld.global.b64 %d10, [%d6];
ld.global.b64 %d11, [%d7];
cvt.u32.u64 %r9, %d9;
cvt.u32.u64 %r10, %d10;
cvt.u32.u64 %r11, %d11;
cvt.u16.u64 %h1, %d9;
cvt.u16.u64 %h2, %d10;
cvt.u16.u64 %h3, %d11;
mov.b64 %d12, 0;
mov.b32 %r12, 0;
mov.b16 %h0, 0;
)" + before + form + "\n" +
                       after + "st.global.b64 [%d8], %d12;\n";
    const uint64_t to = room(8 * count());
    run(module_of(text, 4), {upload(a_), upload(b_), upload(c_), to},
        static_cast<uint32_t>(count() / 64), 64);
    return download<uint64_t>(to, count());
  }
  // Operands and result of 64, 32 and 16 bits.
  std::vector<uint64_t> of64(const std::string& opcode, int operands) {
    return results(opcode + " %d12" + listed("%d", 9, operands) + ";");
  }
  std::vector<uint64_t> of32(const std::string& opcode, int operands) {
    return results(opcode + " %r12" + listed("%r", 9, operands) + ";", "",
                   "cvt.u64.u32 %d12, %r12;\n");
  }
  std::vector<uint64_t> of16(const std::string& opcode, int operands) {
    return results(opcode + " %h0" + listed("%h", 1, operands) + ";", "",
                   "cvt.u64.u16 %d12, %h0;\n");
  }
  static std::string listed(const std::string& kind, int first, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += ", " + kind + std::to_string(first + i);
    return text;
  }

  // Every pair of special values, then others.
  void fill(const std::vector<uint64_t>& special) {
    for (const uint64_t x : special)
      for (const uint64_t y : special) {
        a_.push_back(x);
        b_.push_back(y);
        c_.push_back(special[random_() % special.size()]);
      }
    while (a_.size() < 1024 || a_.size() % 64 != 0)
      for (auto* v : {&a_, &b_, &c_}) v->push_back(random_());
  }
  size_t count() const { return a_.size(); }

  using Reference = std::function<uint64_t(uint64_t, uint64_t, uint64_t)>;
  void expect(const std::string& what, const std::vector<uint64_t>& got, const Reference& wanted) {
    for (size_t i = 0; i < count(); ++i)
      ASSERT_EQ(got[i], wanted(a_[i], b_[i], c_[i]))
          << what << " of " << std::hex << a_[i] << ", " << b_[i] << ", " << c_[i];
  }

  std::vector<uint64_t> a_, b_, c_;
  std::mt19937_64 random_{7};
};

template <class T>
uint64_t bits(T value) {
  if constexpr (sizeof(T) == 8)
    return std::bit_cast<uint64_t>(value);
  else if constexpr (sizeof(T) == 4)
    return std::isnan(static_cast<double>(value)) ? 0x7FFFFFFFu : std::bit_cast<uint32_t>(value);
  else
    return static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(value));
}
template <class T>
uint64_t integer_bits(T value) {
  return static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(value));
}

const std::vector<uint64_t> kIntegers = {0,
                                         1,
                                         2,
                                         3,
                                         7,
                                         31,
                                         32,
                                         33,
                                         63,
                                         64,
                                         0x7F,
                                         0x80,
                                         0xFF,
                                         0x7FFF,
                                         0x8000,
                                         0xFFFF,
                                         0x7FFFFFFF,
                                         0x80000000,
                                         0xFFFFFFFF,
                                         0x7FFFFFFFFFFFFFFF,
                                         0x8000000000000000,
                                         ~uint64_t{0}};

template <class T>
struct Integers {
  static uint64_t sum(uint64_t a, uint64_t b) { return integer_bits(static_cast<T>(a + b)); }
  static uint64_t difference(uint64_t a, uint64_t b) { return integer_bits(static_cast<T>(a - b)); }
  static uint64_t product(uint64_t a, uint64_t b) { return integer_bits(static_cast<T>(a * b)); }
  static bool overflows(uint64_t a, uint64_t b) {
    return static_cast<T>(b) == 0 ||
           (std::is_signed_v<T> && static_cast<T>(b) == static_cast<T>(-1) &&
            static_cast<T>(a) == std::numeric_limits<T>::min());
  }
  static uint64_t quotient(uint64_t a, uint64_t b) {
    return integer_bits(static_cast<T>(static_cast<T>(a) / static_cast<T>(b)));
  }
  static uint64_t rest(uint64_t a, uint64_t b) {
    return integer_bits(static_cast<T>(static_cast<T>(a) % static_cast<T>(b)));
  }
  static uint64_t shifted(uint64_t a, uint64_t by) {
    constexpr uint64_t kBits = 8 * sizeof(T);
    const auto whole =
        static_cast<std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>(static_cast<T>(a));
    if (by >= kBits) return integer_bits(static_cast<T>(std::is_signed_v<T> && whole < 0 ? -1 : 0));
    return integer_bits(static_cast<T>(whole >> by));
  }
};

TEST_F(ArithmeticTest, Integers) {
  fill(kIntegers);
  const auto check = [&]<class T>(const std::string& type, auto run) {
    using I = Integers<T>;
    expect("add", (this->*run)("add." + type, 2),
           [](auto a, auto b, auto) { return I::sum(a, b); });
    expect("sub", (this->*run)("sub." + type, 2),
           [](auto a, auto b, auto) { return I::difference(a, b); });
    expect("mul.lo", (this->*run)("mul.lo." + type, 2),
           [](auto a, auto b, auto) { return I::product(a, b); });
    expect("mad.lo", (this->*run)("mad.lo." + type, 3),
           [](auto a, auto b, auto c) { return I::sum(I::product(a, b), c); });
    expect("min", (this->*run)("min." + type, 2), [](auto a, auto b, auto) {
      return integer_bits(std::min(static_cast<T>(a), static_cast<T>(b)));
    });
    expect("max", (this->*run)("max." + type, 2), [](auto a, auto b, auto) {
      return integer_bits(std::max(static_cast<T>(a), static_cast<T>(b)));
    });
    const auto quotients = (this->*run)("div." + type, 2), rests = (this->*run)("rem." + type, 2);
    for (size_t i = 0; i < count(); ++i) {
      if (I::overflows(a_[i], b_[i])) continue;
      ASSERT_EQ(quotients[i], I::quotient(a_[i], b_[i])) << type;
      ASSERT_EQ(rests[i], I::rest(a_[i], b_[i])) << type;
    }
  };
  check.operator()<int64_t>("s64", &ArithmeticTest_Integers_Test::of64);
  check.operator()<uint64_t>("u64", &ArithmeticTest_Integers_Test::of64);
  check.operator()<int32_t>("s32", &ArithmeticTest_Integers_Test::of32);
  check.operator()<uint32_t>("u32", &ArithmeticTest_Integers_Test::of32);
  check.operator()<int16_t>("s16", &ArithmeticTest_Integers_Test::of16);
  check.operator()<uint16_t>("u16", &ArithmeticTest_Integers_Test::of16);
}

TEST_F(ArithmeticTest, WideAndHighProducts) {
  fill(kIntegers);
  expect("mul.wide.s32", results("mul.wide.s32 %d12, %r9, %r10;"), [](auto a, auto b, auto) {
    return bits(int64_t{static_cast<int32_t>(a)} * static_cast<int32_t>(b));
  });
  expect("mad.wide.u32", results("mad.wide.u32 %d12, %r9, %r10, %d11;"),
         [](auto a, auto b, auto c) {
           return uint64_t{static_cast<uint32_t>(a)} * static_cast<uint32_t>(b) + c;
         });
  expect("mul.hi.s32", of32("mul.hi.s32", 2), [](auto a, auto b, auto) {
    return integer_bits(
        static_cast<int32_t>((int64_t{static_cast<int32_t>(a)} * static_cast<int32_t>(b)) >> 32));
  });
  // By halves, as on paper.
  expect("mul.hi.u64", of64("mul.hi.u64", 2), [](uint64_t a, uint64_t b, uint64_t) {
    const uint64_t low = 0xFFFFFFFF;
    const uint64_t mid = (a >> 32) * (b & low) + (((a & low) * (b & low)) >> 32);
    return (a >> 32) * (b >> 32) + (mid >> 32) + (((a & low) * (b >> 32) + (mid & low)) >> 32);
  });
  expect("neg.s64", of64("neg.s64", 1), [](auto a, auto, auto) { return uint64_t{0} - a; });
  expect("abs.s32", of32("abs.s32", 1), [](auto a, auto, auto) {
    const auto of = static_cast<int32_t>(a);
    return uint64_t{of < 0 ? 0u - static_cast<uint32_t>(of) : static_cast<uint32_t>(of)};
  });
}

TEST_F(ArithmeticTest, BitsAndShifts) {
  fill(kIntegers);
  for (uint64_t& b : b_) b %= 80;
  for (uint64_t& c : c_) c %= 80;
  expect("shl.b32", results("shl.b32 %r12, %r9, %r10;", "", "cvt.u64.u32 %d12, %r12;\n"),
         [](auto a, auto b, auto) { return b >= 32 ? 0 : (a << b) & 0xFFFFFFFF; });
  expect("shl.b64", results("shl.b64 %d12, %d9, %r10;"),
         [](auto a, auto b, auto) { return b >= 64 ? 0 : a << b; });
  expect("shr.s64", results("shr.s64 %d12, %d9, %r10;"),
         [](auto a, auto b, auto) { return Integers<int64_t>::shifted(a, b); });
  expect("shr.u64", results("shr.u64 %d12, %d9, %r10;"),
         [](auto a, auto b, auto) { return Integers<uint64_t>::shifted(a, b); });
  expect("shr.s32", of32("shr.s32", 2),
         [](auto a, auto b, auto) { return Integers<int32_t>::shifted(a, b); });
  expect("not.b32", of32("not.b32", 1), [](auto a, auto, auto) { return ~a & 0xFFFFFFFF; });
  expect("popc.b64", results("popc.b64 %r12, %d9;", "", "cvt.u64.u32 %d12, %r12;\n"),
         [](uint64_t a, uint64_t, uint64_t) { return static_cast<uint64_t>(std::popcount(a)); });
  expect("clz.b32", of32("clz.b32", 1), [](auto a, auto, auto) {
    return static_cast<uint64_t>(std::countl_zero(static_cast<uint32_t>(a)));
  });
  expect("lop3.b32",
         results("lop3.b32 %r12, %r9, %r10, %r11, 0xCA;", "", "cvt.u64.u32 %d12, %r12;\n"),
         [](auto a, auto b, auto c) { return ((a & b) | (~a & c)) & 0xFFFFFFFF; });
  expect("bfe.u32", results("bfe.u32 %r12, %r9, 5, 9;", "", "cvt.u64.u32 %d12, %r12;\n"),
         [](auto a, auto, auto) { return (a >> 5) & 511; });
  expect("bfe.s32", results("bfe.s32 %r12, %r9, 24, 8;", "", "cvt.u64.u32 %d12, %r12;\n"),
         [](auto a, auto, auto) { return integer_bits(static_cast<int32_t>(a) >> 24); });
  expect("bfe.s32 beyond", results("bfe.s32 %r12, %r9, 28, 8;", "", "cvt.u64.u32 %d12, %r12;\n"),
         [](auto a, auto, auto) { return integer_bits(static_cast<int32_t>(a) >> 28); });
  expect("prmt.b32", results("prmt.b32 %r12, %r9, %r10, 0x8041;", "", "cvt.u64.u32 %d12, %r12;\n"),
         [](uint64_t a, uint64_t b, uint64_t) {
           const uint64_t sign = (a & 0x80) != 0 ? 0xFF : 0;
           return ((a >> 8) & 0xFF) | (b & 0xFF) << 8 | (a & 0xFF) << 16 | sign << 24;
         });
  expect("shf.r.wrap.b32",
         results("shf.r.wrap.b32 %r12, %r9, %r10, %r11;", "", "cvt.u64.u32 %d12, %r12;\n"),
         [](uint64_t a, uint64_t b, uint64_t c) {
           return (((b << 32) | (a & 0xFFFFFFFF)) >> (c & 31)) & 0xFFFFFFFF;
         });
  expect("dp4a", results("dp4a.u32.s32 %r12, %r9, %r10, %r11;", "", "cvt.u64.u32 %d12, %r12;\n"),
         [](uint64_t a, uint64_t b, uint64_t c) {
           int64_t sum = static_cast<int64_t>(c);
           for (int n = 0; n < 4; ++n)
             sum += int64_t{static_cast<uint8_t>(a >> (8 * n))} * static_cast<int8_t>(b >> (8 * n));
           return static_cast<uint64_t>(sum) & 0xFFFFFFFF;
         });
}

std::vector<uint64_t> single_bits() {
  std::vector<uint64_t> all;
  for (const float f : {0.0f, 1.0f, 1.5f, 0.1f, 3e-39f, 1e-45f, 1.1754944e-38f, 3.4028235e38f,
                        65504.0f, 65520.0f, 6e-8f, 2147483648.0f, 4294967296.0f, 9.2233720e18f,
                        0.5f, 2.5f, 33.0f, std::numeric_limits<float>::infinity()})
    for (const float g : {f, -f}) all.push_back(std::bit_cast<uint32_t>(g));
  all.push_back(0x7FC00000);
  return all;
}

float single(uint64_t slot) {
  return std::bit_cast<float>(static_cast<uint32_t>(slot));
}

TEST_F(ArithmeticTest, Float32) {
  fill(single_bits());
  expect("add", of32("add.rn.f32", 2),
         [](auto a, auto b, auto) { return bits(single(a) + single(b)); });
  expect("sub", of32("sub.rn.f32", 2),
         [](auto a, auto b, auto) { return bits(single(a) - single(b)); });
  expect("mul", of32("mul.rn.f32", 2),
         [](auto a, auto b, auto) { return bits(single(a) * single(b)); });
  expect("div", of32("div.rn.f32", 2),
         [](auto a, auto b, auto) { return bits(single(a) / single(b)); });
  expect("sqrt", of32("sqrt.rn.f32", 1),
         [](auto a, auto, auto) { return bits(std::sqrt(single(a))); });
  expect("rcp", of32("rcp.rn.f32", 1), [](auto a, auto, auto) { return bits(1 / single(a)); });
  expect("fma", of32("fma.rn.f32", 3),
         [](auto a, auto b, auto c) { return bits(std::fma(single(a), single(b), single(c))); });
  expect("abs", of32("abs.f32", 1), [](auto a, auto, auto) { return bits(std::fabs(single(a))); });
  expect("max", of32("max.f32", 2), [](auto a, auto b, auto) {
    const float x = single(a), y = single(b);
    if (x == 0 && y == 0) return bits(std::signbit(x) ? y : x);
    return bits(std::fmax(x, y));
  });
  for (const auto& [word, rounds] : {std::pair("cvt.rmi.f32.f32", &floorf),
                                     {"cvt.rpi.f32.f32", &ceilf},
                                     {"cvt.rzi.f32.f32", &truncf},
                                     {"cvt.rni.f32.f32", &nearbyintf}})
    expect(word, of32(word, 1), [&](auto a, auto, auto) { return bits(rounds(single(a))); });
}

// Each direction, by what it means: the nearest on that side of the exact result.
TEST_F(ArithmeticTest, RoundingInEveryDirection) {
  fill(single_bits());
  const std::vector<uint64_t> nearest = of32("mul.rn.f32", 2), zero = of32("mul.rz.f32", 2),
                              down = of32("mul.rm.f32", 2), up = of32("mul.rp.f32", 2);
  for (size_t i = 0; i < count(); ++i) {
    const double exact = double{single(a_[i])} * single(b_[i]);
    if (std::isnan(exact)) continue;
    ASSERT_LE(single(down[i]), exact);
    ASSERT_GE(single(up[i]), exact);
    ASSERT_LE(std::fabs(single(zero[i])), std::fabs(exact));
    ASSERT_EQ(single(zero[i]), single(exact < 0 ? up[i] : down[i]));
    ASSERT_TRUE(nearest[i] == down[i] || nearest[i] == up[i]);
    if (std::isfinite(single(down[i])) && single(down[i]) != exact) {
      ASSERT_EQ(std::nextafterf(single(down[i]), INFINITY), single(up[i]));
    }
  }
}

TEST_F(ArithmeticTest, Float64) {
  std::vector<uint64_t> special;
  for (const double f : {0.0, 1.0, 0.1, 5e-324, 1.7e308, 3.4e38, 9.3e18, 2.5, HUGE_VAL})
    for (const double g : {f, -f}) special.push_back(std::bit_cast<uint64_t>(g));
  fill(special);
  const auto of = [](uint64_t slot) { return std::bit_cast<double>(slot); };
  const auto check = [&](const std::string& opcode, int operands, auto wanted) {
    const std::vector<uint64_t> got = of64(opcode, operands);
    for (size_t i = 0; i < count(); ++i) {
      const double want = wanted(of(a_[i]), of(b_[i]), of(c_[i]));
      if (std::isnan(want))
        ASSERT_TRUE(std::isnan(of(got[i]))) << opcode;
      else
        ASSERT_EQ(got[i], bits(want)) << opcode;
    }
  };
  check("add.rn.f64", 2, [](double a, double b, double) { return a + b; });
  check("mul.rn.f64", 2, [](double a, double b, double) { return a * b; });
  check("div.rn.f64", 2, [](double a, double b, double) { return a / b; });
  check("fma.rn.f64", 3, [](double a, double b, double c) { return std::fma(a, b, c); });
  check("sqrt.rn.f64", 1, [](double a, double, double) { return std::sqrt(a); });
  check("cvt.rmi.f64.f64", 1, [](double a, double, double) { return std::floor(a); });
}

// Comparisons with and without order: a NaN fulfils the second kind alone.
TEST_F(ArithmeticTest, Comparisons) {
  fill(single_bits());
  const auto compared = [&](const std::string& form) {
    return results("setp." + form + ";\nselp.b64 %d12, 1, 0, %p1;", "setp.ne.b32 %p2, %r11, 0;\n");
  };
  const auto nan = [](uint64_t a, uint64_t b) {
    return std::isnan(single(a)) || std::isnan(single(b));
  };
  expect("lt", compared("lt.f32 %p1, %r9, %r10"),
         [](auto a, auto b, auto) { return single(a) < single(b) ? 1u : 0u; });
  expect("ne", compared("ne.f32 %p1, %r9, %r10"),
         [&](auto a, auto b, auto) { return !nan(a, b) && single(a) != single(b) ? 1u : 0u; });
  expect("neu", compared("neu.f32 %p1, %r9, %r10"),
         [](auto a, auto b, auto) { return single(a) != single(b) ? 1u : 0u; });
  expect("leu", compared("leu.f32 %p1, %r9, %r10"),
         [&](auto a, auto b, auto) { return nan(a, b) || single(a) <= single(b) ? 1u : 0u; });
  expect("nan", compared("nan.f32 %p1, %r9, %r10"),
         [&](auto a, auto b, auto) { return nan(a, b) ? 1u : 0u; });
  expect("and", compared("lt.and.s32 %p1, %r9, %r10, !%p2"), [](auto a, auto b, auto c) {
    return static_cast<int32_t>(a) < static_cast<int32_t>(b) && static_cast<uint32_t>(c) == 0 ? 1u
                                                                                              : 0u;
  });
  expect("hi", compared("hi.u32 %p1, %r9, %r10"), [](auto a, auto b, auto) {
    return static_cast<uint32_t>(a) > static_cast<uint32_t>(b) ? 1u : 0u;
  });
}

template <class To>
uint64_t saturated(double value) {
  if (std::isnan(value)) return 0;
  if (value >= std::ldexp(1.0, std::numeric_limits<To>::digits))
    return integer_bits(std::numeric_limits<To>::max());
  if (value <= static_cast<double>(std::numeric_limits<To>::min()))
    return integer_bits(std::numeric_limits<To>::min());
  return integer_bits(static_cast<To>(value));
}

TEST_F(ArithmeticTest, ConversionsOfNumbers) {
  fill(single_bits());
  const std::string widen = "cvt.u64.u32 %d12, %r12;\n";
  expect("cvt.rzi.s32.f32", of32("cvt.rzi.s32.f32", 1),
         [](auto a, auto, auto) { return saturated<int32_t>(single(a)); });
  expect("cvt.rzi.u32.f32", of32("cvt.rzi.u32.f32", 1),
         [](auto a, auto, auto) { return saturated<uint32_t>(single(a)); });
  expect("cvt.rzi.s64.f32", results("cvt.rzi.s64.f32 %d12, %r9;"),
         [](auto a, auto, auto) { return saturated<int64_t>(single(a)); });
  expect("cvt.rzi.u64.f32", results("cvt.rzi.u64.f32 %d12, %r9;"),
         [](auto a, auto, auto) { return saturated<uint64_t>(single(a)); });
  expect("cvt.rn.f32.s64", results("cvt.rn.f32.s64 %r12, %d9;", "", widen),
         [](auto a, auto, auto) { return bits(static_cast<float>(static_cast<int64_t>(a))); });
  expect("cvt.rn.f32.u64", results("cvt.rn.f32.u64 %r12, %d9;", "", widen),
         [](uint64_t a, auto, auto) { return bits(static_cast<float>(a)); });
  expect("cvt.rn.f64.u64", results("cvt.rn.f64.u64 %d12, %d9;"),
         [](uint64_t a, auto, auto) { return bits(static_cast<double>(a)); });
  expect("cvt.rn.f32.s32", of32("cvt.rn.f32.s32", 1),
         [](auto a, auto, auto) { return bits(static_cast<float>(static_cast<int32_t>(a))); });
  expect("cvt.f64.f32",
         results(
             "cvt.f64.f32 %d12, %r9;\nsetp.nan.f64 %p1, %d12, %d12;\nselp.b64 %d12, 0, %d12, %p1;"),
         [](auto a, auto, auto) { return std::isnan(single(a)) ? 0 : bits(double{single(a)}); });
  expect("cvt.rn.f32.f64", results("cvt.rn.f32.f64 %r12, %d9;", "", widen),
         [](auto a, auto, auto) { return bits(static_cast<float>(std::bit_cast<double>(a))); });
  expect("cvt.s32.s8", of32("cvt.s32.s8", 1),
         [](auto a, auto, auto) { return integer_bits(int32_t{static_cast<int8_t>(a)}); });
  expect("cvt.u32.u16", of32("cvt.u32.u16", 1), [](auto a, auto, auto) { return a & 0xFFFF; });
  expect("cvt.s64.s32", results("cvt.s64.s32 %d12, %r9;"),
         [](auto a, auto, auto) { return integer_bits(int64_t{static_cast<int32_t>(a)}); });
  expect("cvt.sat.s8.s32", of32("cvt.sat.s8.s32", 1), [](auto a, auto, auto) {
    return integer_bits(int32_t{std::clamp(static_cast<int32_t>(a), -128, 127)});
  });
}

// All of float16 up, and all that is near to it down; bfloat16 likewise.
TEST_F(ArithmeticTest, NarrowFloats) {
  for (uint64_t h = 0; h < 65536; ++h) {
    a_.push_back(h);
    b_.push_back(random_());
    c_.push_back(random_());
  }
  expect("cvt.f32.f16", results("cvt.f32.f16 %r12, %h1;", "", "cvt.u64.u32 %d12, %r12;\n"),
         [](auto a, auto, auto) { return bits(float_from_half(static_cast<uint16_t>(a))); });
  const auto half = [](float f) {
    return uint64_t{std::isnan(f) ? uint16_t{0x7FFF} : half_from_float(f)};
  };
  const auto bfloat = [](float f) {
    return uint64_t{std::isnan(f) ? uint16_t{0x7FFF} : bfloat_from_float(f)};
  };
  expect("add.rn.f16", of16("add.rn.f16", 2), [&](auto a, auto b, auto) {
    return half(float_from_half(static_cast<uint16_t>(a)) +
                float_from_half(static_cast<uint16_t>(b)));
  });
  expect("mul.rn.f16", of16("mul.rn.f16", 2), [&](auto a, auto b, auto) {
    return half(float_from_half(static_cast<uint16_t>(a)) *
                float_from_half(static_cast<uint16_t>(b)));
  });
  // Float16 and its neighbourhood: below, at and above the middle of two.
  for (uint64_t& a : a_) {
    const auto there = std::bit_cast<uint32_t>(float_from_half(static_cast<uint16_t>(a)));
    a = there + static_cast<uint32_t>(static_cast<int64_t>(random_() % 3) - 1) +
        (random_() % 2 == 0 ? 0x1000u : 0u);
  }
  expect("cvt.rn.f16.f32", results("cvt.rn.f16.f32 %h0, %r9;", "", "cvt.u64.u16 %d12, %h0;\n"),
         [&](auto a, auto, auto) { return half(single(a)); });
  for (uint64_t& a : a_) a = (random_() << 15) & 0xFFFF8000;
  for (size_t i = 0; i < count(); i += 3) a_[i] ^= random_() & 0xFFFF;
  expect("cvt.rn.bf16.f32", results("cvt.rn.bf16.f32 %h0, %r9;", "", "cvt.u64.u16 %d12, %h0;\n"),
         [&](auto a, auto, auto) { return bfloat(single(a)); });
  expect("cvt.rn.f16x2.f32",
         results("cvt.rn.f16x2.f32 %r12, %r9, %r10;", "", "cvt.u64.u32 %d12, %r12;\n"),
         [&](auto a, auto b, auto) { return half(single(a)) << 16 | half(single(b)); });
}

// A fused product and sum is rounded once, which two roundings of float32 and float16 would show.
TEST_F(ArithmeticTest, FusedFloat16IsRoundedOnce) {
  // 1 + 2^-10 squared is 1 + 2^-9 + 2^-20: what is below the half of a last place decides.
  a_.assign(64, 0x3C01);
  b_.assign(64, 0x3C01);
  c_.assign(64, 0x0001);  // 2^-24
  const auto exact = [](uint64_t a, uint64_t b, uint64_t c) {
    const auto of = [](uint64_t h) {
      return static_cast<long double>(float_from_half(static_cast<uint16_t>(h)));
    };
    const long double sum = of(a) * of(b) + of(c);  // 64 bits hold it
    float nearest = static_cast<float>(sum);
    // To odd, so that the next rounding sees what is lost.
    if (nearest != sum && (std::bit_cast<uint32_t>(nearest) & 1) == 0)
      nearest = std::nextafterf(nearest, sum > nearest ? INFINITY : -INFINITY);
    return uint64_t{half_from_float(nearest)};
  };
  for (size_t i = 1; i < 64; ++i)
    for (auto* v : {&a_, &b_, &c_}) (*v)[i] = random_() & 0xBBFF;  // finite
  expect("fma.rn.f16", of16("fma.rn.f16", 3), exact);
}

TEST_F(ArithmeticTest, MovesPackAndUnpack) {
  fill(kIntegers);
  expect("pack", results("mov.b64 %d12, {%r9, %r10};"),
         [](auto a, auto b, auto) { return (a & 0xFFFFFFFF) | b << 32; });
  expect("unpack",
         results("mov.b64 {%r12, %r13}, %d9;\nadd.u32 %r12, %r12, %r13;\ncvt.u64.u32 %d12, %r12;"),
         [](auto a, auto, auto) { return (a + (a >> 32)) & 0xFFFFFFFF; });
  expect("numbers",
         results("mov.b32 %r12, 0fBF800000;\nmov.b64 %d12, 0d3FF0000000000000;\nmov.b64 %d13, "
                 "-3;\nadd.s64 %d12, %d12, %d13;"),
         [](auto, auto, auto) { return 0x3FF0000000000000u - 3; });
}

}  // namespace
}  // namespace tiny::emulation
