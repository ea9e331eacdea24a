// Every approximation of the decompositions, with its source.
//
// The coefficients were computed for this project by scripts/fit_polynomials.py: a Remez exchange
// in 250-bit arithmetic (mpmath) for the least maximum of  weight * (polynomial - function), then
// each coefficient rounded to the format it is used in.  "2^-28.0" is the maximum of that error
// after rounding, relative to the function decomposed unless said otherwise.  Lowest power first.
#pragma once

namespace tiny::polynomials {

// (e^r - 1 - r) / r^2, |r| <= ln 2 / 2.
inline constexpr double kExp32[] = {0x1.fffffcp-2, 0x1.555492p-3, 0x1.5558f2p-5, 0x1.123a2p-7,
                                    0x1.6a23cep-10};  // 2^-28.0
inline constexpr double kExp64[] = {
    0x1.0000000000000p-1,  0x1.555555555555bp-3,  0x1.5555555555503p-5,  0x1.111111110ec3fp-7,
    0x1.6c16c16c305dbp-10, 0x1.a01a01b38a1d5p-13, 0x1.a01a01364ea0ep-16, 0x1.71ddf00273f90p-19,
    0x1.27e5b491eb14fp-22, 0x1.af6c1dce9e83cp-26, 0x1.1e3d09102caa1p-29};  // 2^-60.3

// (log(1 + f) - f + f^2/2) / f^3, |f| <= 1/3.
inline constexpr double kLog32[] = {0x1.555556p-2,  -0x1.ffff0ep-3, 0x1.99977ep-3,
                                    -0x1.559906p-3, 0x1.24f492p-3,  -0x1.f38a04p-4,
                                    0x1.b87df2p-4,  -0x1.071122p-3, 0x1.ebd17ap-4};  // 2^-28.7
// (2 atanh(s) / s - 2) / z, z = s^2 <= 0.0296.
inline constexpr double kLog64[] = {0x1.5555555555555p-1, 0x1.9999999999d18p-2,
                                    0x1.2492492434b60p-2, 0x1.c71c7254f71f2p-3,
                                    0x1.745cddde491acp-3, 0x1.3b20edbb00282p-3,
                                    0x1.0f539b1ec0c2fp-3, 0x1.0fcd5f037c106p-3};  // 2^-64.0
// 2 atanh(s) / s / ln 2, z = s^2 <= 0.0296, in float64 for powers of float32.
inline constexpr double kLog2Pow32[] = {0x1.71547652b824ap+1, 0x1.ec709dc54960fp-1,
                                        0x1.2776c2837c59cp-1, 0x1.a61a3bf6ab14cp-2,
                                        0x1.47931e26cb0d8p-2, 0x1.21d20d37aa644p-2};  // 2^-43.5
// 2^r, |r| <= 1/2, in float64 for powers of float32.
inline constexpr double kExp2Pow32[] = {
    0x1.ffffffffabbe9p-1, 0x1.62e42ff11630cp-1,  0x1.ebfbe0a4bdaa8p-3,  0x1.c6b08aaf241d5p-5,
    0x1.3b29dc41061b4p-7, 0x1.5d8a708f5d006p-10, 0x1.446a1fe1710dep-13, 0x1.fe177ed1a75ecp-17};
// 2^-34.5

// (sin(r)/r - 1) / z and (cos(r) - 1 + z/2) / z^2, z = r^2, |r| <= pi/4 * 1.012.
inline constexpr double kSin32[] = {-0x1.555556p-3, 0x1.111108p-7, -0x1.a00eb4p-13, 0x1.6c97cap-19};
inline constexpr double kCos32[] = {0x1.555556p-5, -0x1.6c16bcp-10, 0x1.a01276p-16,
                                    -0x1.245fd4p-22};
inline constexpr double kSin64[] = {
    -0x1.5555555555555p-3,  0x1.111111111110bp-7,  -0x1.a01a01a0189f7p-13, 0x1.71de3a530d9c8p-19,
    -0x1.ae64524906783p-26, 0x1.61205656fc2f5p-33, -0x1.aa83e3a66226ap-41};
inline constexpr double kCos64[] = {
    0x1.5555555555555p-5,  -0x1.6c16c16c16c14p-10, 0x1.a01a01a019642p-16, -0x1.27e4fb767c10ep-22,
    0x1.1eed8d1ffde7ep-29, -0x1.9393b21b33a19p-37, 0x1.aaf4c043bbcd9p-45};

// (tanh(x)/x - 1) / z, z = x^2 <= 0.36.
inline constexpr double kTanh32[] = {-0x1.555554p-2, 0x1.1110a8p-3, -0x1.b9fafcp-5,
                                     0x1.640fecp-6,  -0x1.0e80bp-7, 0x1.2248fcp-9};  // 2^-28.5
inline constexpr double kTanh64[] = {
    -0x1.5555555555555p-2,  0x1.1111111110fb9p-3,  -0x1.ba1ba1ba00c89p-5,  0x1.664f487ae9c87p-6,
    -0x1.226e3413cafd2p-7,  0x1.d6d38d0d62c10p-9,  -0x1.7d9ecf3e20cfap-10, 0x1.352257e00d250p-11,
    -0x1.f21a268f68cadp-13, 0x1.83da486fc75a7p-14, -0x1.05395bc48dfeep-15, 0x1.b2b40253b77a5p-18};
// 2^-56.7

// erf(x)/x - 1, z = x^2 <= 0.85.
inline constexpr double kErf32[] = {0x1.06eba8p-3, -0x1.812744p-2, 0x1.ce2e2p-4,  -0x1.b81076p-6,
                                    0x1.54daaap-8, -0x1.aae7ep-11, 0x1.5f0bacp-14};  // 2^-26.7
// log(1 - erf(a)), 0.9 <= a <= 4; the error is that of erf.
inline constexpr double kErfTail32[] = {
    0x1.093082p-12, -0x1.214298p+0, -0x1.43d01ap-1,  -0x1.c002a4p-4, 0x1.a8bea4p-6,
    -0x1.28fd5ep-8, 0x1.154cb4p-11, -0x1.17f5fep-15, 0x1.349c96p-22, 0x1.0c0c3cp-24};  // 2^-27.6

// e^(a^2) erfc(a) as a polynomial of (a - 2)/(a + 2), 0.9 <= a <= 6; the error is that of erf.
inline constexpr double kErfTail64[] = {
    0x1.058671b52c776p-2,   -0x1.b57034efd3f70p-2, 0x1.eeea7dc8a7925p-3,   -0x1.437f0b68c1560p-4,
    0x1.e9471596b2811p-9,   0x1.ca95ed55b63fcp-8,  -0x1.bc25a3c5ff8f6p-11, -0x1.016b5e209c148p-10,
    0x1.6d5deb0b42bc7p-15,  0x1.6daa249032bd8p-13, 0x1.cde748e73d2dfp-16,  -0x1.cef2512643bc6p-16,
    -0x1.d621ba826687dp-17, 0x1.8d41bd6abae94p-20, 0x1.08bb0abf78160p-18,  0x1.d86640490f862p-21,
    -0x1.96d230f6b931fp-21};  // 2^-57.0
inline constexpr double kErf64[] = {
    0x1.06eba8214db69p-3,  -0x1.812746b0379e7p-2,  0x1.ce2f21a042bc0p-4,  -0x1.b82ce31287da8p-6,
    0x1.565bcd0e3cc1ap-8,  -0x1.c02db3f4eb16ap-11, 0x1.f9a3252987137p-14, -0x1.f4d22a5da8323p-17,
    0x1.b9e31c04f052fp-20, -0x1.5f4446e06b50dp-23, 0x1.f974ed7c6e6d0p-27, -0x1.3ea0c6523da4dp-30,
    0x1.181453dcaaa92p-34};  // 2^-56.3

// (2 atanh(s)/s - 2 - 2/3 z) / z^2, z = s^2 <= 0.0296, for powers of float64.
inline constexpr double kLogPow64[] = {0x1.9999999999999p-2, 0x1.24924924927bdp-2,
                                       0x1.c71c71c672eedp-3, 0x1.745d17c64cdaap-3,
                                       0x1.3b137d3d5522cp-3, 0x1.111d0dd9f0637p-3,
                                       0x1.debb1aa39091ap-4, 0x1.e709f7ff09789p-4};  // 2^-69.8

// 2/3, 1/ln 2 and ln 2 in two parts of full precision.
inline constexpr double kTwoThirds[] = {0x1.5555555555555p-1, 0x1.5555555555555p-55};
inline constexpr double kLog2EParts[] = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
inline constexpr double kLn2Parts[] = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

// ln 2 in two parts, the first short enough that its product with any exponent is exact.
inline constexpr double kLn2High32 = 0x1.62e8p-1, kLn2Low32 = -0x1.e8082ep-16;
inline constexpr double kLn2High64 = 0x1.62e42fefa4p-1, kLn2Low64 = -0x1.8432a1b0e2634p-43;
inline constexpr double kLog2E = 0x1.71547652b82fep+0;

// pi/2 in three parts of full precision, and the bits of 2/pi in pieces of 29 bits and of full
// precision, the first below 1, each of the others to be scaled by another 2^-bits.
inline constexpr double kHalfPi64[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54,
                                       -0x1.f1976b7ed8fbcp-110};
inline constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
inline constexpr double kTwoOverPi29[] = {0x1.45f306dp-1, 0x1.9391054p-1, 0x1.4fe13abp-1,
                                          0x1.d1f534dp-1, 0x1.b81b6c5p-1, 0x1.5993c4p-3,
                                          0x1.c820ff2p-1};
inline constexpr double kTwoOverPi64[] = {
    0x1.45f306dc9c882p-1, 0x1.4a7f09d5f47d4p-1, 0x1.a6ee06db14accp-1, 0x1.3c439041fe516p-1,
    0x1.d5ef5de2b0db8p-3, 0x1.2371d2126e970p-2, 0x1.924bba8274600p-8, 0x1.21cfe1deb1cb1p-1,
    0x1.4d39f74411af8p-3, 0x1.4baed1213a671p-1, 0x1.8135a2fbf209cp-1, 0x1.91d639835339fp-1,
    0x1.272117e2ef7e4p-2, 0x1.41d8ffc4bffeep-2, 0x1.02cc07f79788cp-1, 0x1.6b414da3eda6cp-2,
    0x1.fb3c9f2c26dd2p-2, 0x1.d18fd9a797fa8p-1, 0x1.6ba93dd63f5f2p-1, 0x1.f17b3d0739f78p-1,
    0x1.4a525d4d7f6bfp-1, 0x1.88fc6ae842b00p-2, 0x1.98237e3db5d5fp-1};

}  // namespace tiny::polynomials
