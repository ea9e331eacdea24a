"""Computes the coefficients of src/rules/polynomials.h.  Needs mpmath.

Each approximation is the polynomial p of a given degree with the least maximum of

    | weight(x) * (p(x) - f(x)) |        over an interval,

found by a Remez exchange: solve for the polynomial whose error alternates at degree + 2 points, move the
points to the extrema of its error, repeat until the extrema are equal.  All in 250-bit arithmetic; the
coefficients are then rounded to the digits of the format they are used in, and the maximum is taken again.
The weight turns the error of p into that of the whole function, relative to its value.

    fit_polynomials.py [NAME ...]        all, or those named: one line of errors, one of coefficients
"""

import sys

import mpmath as mp

mp.mp.prec = 250
TINY = mp.mpf("1e-40")  # keeps a weight off 0, where the exchange would divide by it


def extrema(error, low, high, count):
    """Alternating extrema of `error`, at least `count` of them if it has so many, and its maximum."""
    steps = 40 * count
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / steps) for i in range(steps + 1)]
    values = [error(x) for x in grid]
    found = []
    for i, value in enumerate(values):
        left = i == 0 or abs(value) >= abs(values[i - 1])
        right = i == steps or abs(value) >= abs(values[i + 1])
        if not (left and right):
            continue
        a, b, sign = grid[max(i - 1, 0)], grid[min(i + 1, steps)], mp.sign(value)
        for _ in range(30):
            m, n = a + (b - a) * mp.mpf("0.382"), a + (b - a) * mp.mpf("0.618")
            a, b = (a, n) if sign * error(m) > sign * error(n) else (m, b)
        x = max([(a + b) / 2, grid[i]], key=lambda t: sign * error(t))
        found.append((x, error(x)))
    greatest = max(abs(e) for _, e in found)
    alternating = []
    for x, e in found:
        if alternating and mp.sign(alternating[-1][1]) == mp.sign(e):
            if abs(e) > abs(alternating[-1][1]):
                alternating[-1] = (x, e)
        else:
            alternating.append((x, e))
    while len(alternating) > count:
        alternating.pop(0 if abs(alternating[0][1]) < abs(alternating[-1][1]) else -1)
    return alternating, greatest


def remez(f, weight, low, high, degree):
    count = degree + 2
    points = [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (count - 1 - i) / (count - 1))
              for i in range(count)]
    for _ in range(12):
        matrix, right = mp.matrix(count, count), mp.matrix(count, 1)
        for i, x in enumerate(points):
            for j in range(degree + 1):
                matrix[i, j] = x**j
            matrix[i, degree + 1] = (-1) ** i / weight(x)
            right[i] = f(x)
        solution = mp.lu_solve(matrix, right)
        coefficients = [solution[j] for j in range(degree + 1)]
        alternating, greatest = extrema(
            lambda x: weight(x) * (mp.polyval(coefficients[::-1], x) - f(x)), low, high, count)
        if len(alternating) < count or greatest / abs(solution[degree + 1]) < 1.001:
            break
        points = [x for x, _ in alternating]
    return coefficients, greatest


def rounded(x, digits):
    with mp.workprec(digits):
        return +x


def near_zero(f, limit, eps="1e-15"):
    """f, but what it tends to where its formula would cancel."""
    return lambda x: f(x) if abs(x) > mp.mpf(eps) else limit(x)


def root(f):
    return lambda z: f(mp.sqrt(z))


# name: function, weight, interval, degree, digits
HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.0005")
QUARTER_PI_2 = (mp.pi / 4 * mp.mpf("1.012")) ** 2
THIRD = mp.mpf(1) / 3
S2 = mp.mpf("0.0296")  # the square of (sqrt(2) - 1)/(sqrt(2) + 1), rounded up

exp = (near_zero(lambda r: (mp.expm1(r) - r) / r**2, lambda r: mp.mpf(1) / 2 + r / 6),
       lambda r: r * r / mp.exp(r) + TINY, -HALF_LN2, HALF_LN2)
log = (near_zero(lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, lambda f: THIRD - f / 4),
       near_zero(lambda f: f * f * abs(f / mp.log1p(f)), lambda f: TINY), -THIRD, THIRD)
atanh = (near_zero(root(lambda s: (2 * mp.atanh(s) / s - 2) / s**2), lambda z: 2 * THIRD + 2 * z / 5),
         lambda z: z / 2 + TINY, mp.mpf(0), S2)
atanh_rest = (near_zero(root(lambda s: (2 * mp.atanh(s) / s - 2 - 2 * THIRD * s**2) / s**4),
                        lambda z: mp.mpf(2) / 5 + 2 * z / 7, "1e-12"),
              lambda z: z * z / 2 + TINY, mp.mpf(0), S2)
log2 = (near_zero(root(lambda s: 2 * mp.atanh(s) / s / mp.log(2)), lambda z: 2 / mp.log(2)),
        lambda z: mp.mpf(1), mp.mpf(0), S2)
exp2 = (lambda r: mp.mpf(2) ** r, lambda r: mp.mpf(2) ** -r, mp.mpf("-0.5"), mp.mpf("0.5"))
sin = (near_zero(root(lambda r: (mp.sin(r) / r - 1) / r**2), lambda z: -mp.mpf(1) / 6 + z / 120),
       near_zero(root(lambda r: r**3 / mp.sin(r) + TINY), lambda z: TINY), mp.mpf(0), QUARTER_PI_2)
cos = (near_zero(root(lambda r: (mp.cos(r) - 1 + r**2 / 2) / r**4),
                 lambda z: mp.mpf(1) / 24 - z / 720, "1e-12"),
       lambda z: z * z / mp.cos(mp.sqrt(z)) + TINY, mp.mpf(0), QUARTER_PI_2)
tanh = (near_zero(root(lambda x: (mp.tanh(x) / x - 1) / x**2), lambda z: -THIRD + 2 * z / 15),
        near_zero(root(lambda x: x**3 / mp.tanh(x) + TINY), lambda z: TINY), mp.mpf(0), mp.mpf("0.36"))
erf = (near_zero(root(lambda x: mp.erf(x) / x - 1), lambda z: 2 / mp.sqrt(mp.pi) - 1, "1e-20"),
       near_zero(root(lambda x: x / mp.erf(x)), lambda z: mp.sqrt(mp.pi) / 2, "1e-20"),
       mp.mpf(0), mp.mpf("0.85"))
erf_tail32 = (lambda a: mp.log(mp.erfc(a)), lambda a: mp.erfc(a) / mp.erf(a),
              mp.mpf("0.9"), mp.mpf(4))


def tail_argument(t):  # a of t = (a - 2)/(a + 2)
    return 2 * (1 + t) / (1 - t)


erf_tail64 = (lambda t: mp.erfc(tail_argument(t)) * mp.exp(tail_argument(t) ** 2),
              lambda t: mp.exp(-tail_argument(t) ** 2) / mp.erf(tail_argument(t)),
              mp.mpf("-0.38"), mp.mpf("0.5"))

FITS = {
    "kExp32": (*exp, 4, 24), "kExp64": (*exp, 10, 53),
    "kLog32": (*log, 8, 24), "kLog64": (*atanh, 7, 53),
    "kLog2Pow32": (*log2, 5, 53), "kExp2Pow32": (*exp2, 7, 53), "kLogPow64": (*atanh_rest, 7, 53),
    "kSin32": (*sin, 3, 24), "kCos32": (*cos, 3, 24), "kSin64": (*sin, 6, 53), "kCos64": (*cos, 6, 53),
    "kTanh32": (*tanh, 5, 24), "kTanh64": (*tanh, 11, 53),
    "kErf32": (*erf, 6, 24), "kErf64": (*erf, 12, 53),
    "kErfTail32": (*erf_tail32, 9, 24), "kErfTail64": (*erf_tail64, 16, 53),
}


def fit(name):
    f, weight, low, high, degree, digits = FITS[name]
    coefficients, best = remez(f, weight, low, high, degree)
    used = [rounded(c, digits) for c in coefficients]
    samples = [low + (high - low) * i / 2000 for i in range(2001)]
    worst = max(abs(weight(x) * (mp.polyval(used[::-1], x) - f(x))) for x in samples)
    print(f"{name}: 2^{float(mp.log(best, 2)):.1f}, rounded 2^{float(mp.log(worst, 2)):.1f}")
    print("    {" + ", ".join(float(c).hex() for c in used) + "}", flush=True)


if __name__ == "__main__":
    for wanted in sys.argv[1:] or FITS:
        fit(wanted)
