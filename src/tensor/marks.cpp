#include "tensor/marks.h"

#include <atomic>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

namespace tiny {

namespace {

// (sqrt(2) - 1) / 2 of 2^64: multiples modulo 2^64 stay far from 0.
constexpr uint64_t kMarkBase = 0x3504F333F9DE6484;
constexpr int kCheckBits = 24;
constexpr int kContextBits = 16;
constexpr int kPlaceShift = kCheckBits + kContextBits + 1;  // a bit between marks stays free
constexpr int kPlaceBits = 20;
constexpr uint64_t kPlaces = uint64_t{1} << kPlaceBits;
// The largest multiple that is_far_from_sizes looks at.
constexpr uint64_t kFactorMax = 64;

static_assert(kDimMax == int64_t{1} << (kPlaceShift - 1));
static_assert(kMarkBase + (kPlaces << kPlaceShift) <= uint64_t{INT64_MAX});
// The sum of two marks is none.
static_assert(2 * kMarkBase > kMarkBase + (kPlaces << kPlaceShift));

// The one thing that contexts share, so that none takes another's numbers.
std::atomic<uint32_t> contexts{0};

bool is_in_range(int64_t number) {
  return number >= -kDimMax && number <= kDimMax;
}

bool is_beyond_any_end(int64_t number) {
  return number == INT64_MAX || number == -INT64_MAX || number == INT64_MIN;
}

// How far the number is below where marks begin; very far, modulo 2^64, if it is above.
uint64_t offset_of(int64_t number) {
  return -static_cast<uint64_t>(number) - kMarkBase;
}

int64_t mark_of(uint32_t context, uint64_t place) {
  const uint64_t number = context & ((uint32_t{1} << kContextBits) - 1);
  const uint64_t check = hash_mix(context, place) >> (64 - kCheckBits);
  const uint64_t tag = number << kCheckBits | check;
  return -static_cast<int64_t>(kMarkBase + (place << kPlaceShift) + tag);
}

// Whether a context of the process, this or another, may have given the number.
bool is_mark_of_any(int64_t number) {
  const uint64_t offset = offset_of(number);
  const uint64_t place = offset >> kPlaceShift;
  if (place >= kPlaces) return false;
  const uint32_t made = contexts.load(std::memory_order_relaxed);
  uint64_t context = offset >> kCheckBits & ((uint64_t{1} << kContextBits) - 1);
  for (; context < made; context += uint64_t{1} << kContextBits)
    if (mark_of(static_cast<uint32_t>(context), place) == number) return true;
  return false;
}

[[noreturn]] void throw_no_dimension(int64_t number, const std::string& name) {
  throw_error(
      Status::InvalidArgument, name, " is ", number,
      ", no size (0 to 2^40) and no dimension of this context: a number that stands for one is "
      "its own context's, and is calculated with by tiny_dim_add and its like");
}

}  // namespace

bool is_far_from_sizes(int64_t number) {
  for (uint64_t factor = 1; factor <= kFactorMax; ++factor)
    if (is_in_range(static_cast<int64_t>(static_cast<uint64_t>(number) * factor))) return false;
  return true;
}

uint32_t DimensionMarks::next_context() {
  return contexts.fetch_add(1, std::memory_order_relaxed);
}

int64_t DimensionMarks::number_at(uint64_t place) const {
  return mark_of(context_, place);
}

uint64_t DimensionMarks::place_of(int64_t number) const {
  const uint64_t place = offset_of(number) >> kPlaceShift;
  return number < 0 && place < kPlaces && number == number_at(place) ? place : kPlaces;
}

UOp DimensionMarks::find(int64_t number) const {
  const uint64_t place = place_of(number);
  return place < expressions_.size() ? expressions_[place] : UOp();
}

int64_t DimensionMarks::mark(const Dim& dim) {
  if (dim.is_const()) return dim.value();
  if (const uint64_t* place = places_.find(dim.expression())) return number_at(*place);
  while (!is_far_from_sizes(number_at(expressions_.size()))) expressions_.emplace_back();
  require(expressions_.size() < kPlaces, Status::Limit, "more than ", kPlaces,
          " dimensions that depend on variables in one context");
  Known known{lower_bound(dim), upper_bound(dim), to_string(dim)};
  expressions_.push_back(dim.expression());
  {
    const std::lock_guard lock(mutex_);
    known_.resize(expressions_.size());
    known_.back() = std::move(known);
  }
  return number_at(places_.insert(dim.expression(), expressions_.size() - 1));
}

Dim DimensionMarks::dim(int64_t number, const std::string& name) const {
  if (is_in_range(number)) return number;
  UOp expression = find(number);
  if (!expression) throw_no_dimension(number, name);
  return Dim(std::move(expression));
}

DimensionMarks::Known DimensionMarks::known(int64_t number, const std::string& name) const {
  if (is_in_range(number)) return {number, number, std::to_string(number)};
  const uint64_t place = place_of(number);
  const std::lock_guard lock(mutex_);
  if (place >= known_.size() || known_[place].text.empty()) throw_no_dimension(number, name);
  return known_[place];
}

Shape DimensionMarks::shape(const Ints& numbers, const char* name) const {
  Shape out;
  for (int64_t number : numbers) out.push_back(dim(number, cat(name, "[", out.size(), "]")));
  return out;
}

Shape DimensionMarks::positions(const Ints& numbers, const char* name) const {
  Shape out;
  for (int64_t number : numbers)
    out.push_back(is_beyond_any_end(number) ? Dim(number)
                                            : dim(number, cat(name, "[", out.size(), "]")));
  return out;
}

bool DimensionMarks::is_near_mark(int64_t number) const {
  constexpr uint64_t kHalf = uint64_t{1} << (kPlaceShift - 1);
  const uint64_t at = (offset_of(number) + kHalf) >> kPlaceShift;
  // Of the nearest two: a mark lies in the lower half of its place.
  for (uint64_t place = at == 0 ? 0 : at - 1; place <= at && place < expressions_.size(); ++place)
    if (is_in_range(number - number_at(place))) return true;
  return false;
}

Dim DimensionMarks::scalar(int64_t number, const char* name) const {
  if (number > -static_cast<int64_t>(kMarkBase) + kDimMax) return number;
  if (UOp expression = find(number)) return Dim(std::move(expression));
  require(!is_near_mark(number) && !is_mark_of_any(number), Status::InvalidArgument, name, " is ",
          number, ", no dimension of this context but near to a number that stands for one, or ",
          "another context's: such numbers are calculated with by tiny_dim_add and its like");
  return number;
}

double DimensionMarks::scalar(double number, const char* name) const {
  constexpr auto kLowest = -static_cast<double>(kMarkBase + (kPlaces << kPlaceShift));
  const bool may_be = number >= kLowest && number <= -static_cast<double>(kMarkBase - kDimMax);
  require(!may_be || !is_near_mark(static_cast<int64_t>(number)), Status::InvalidArgument, name,
          " is ", number, ", what a floating-point number keeps of one that stands for a ",
          "dimension: tiny_scalar_int makes a scalar of it");
  return number;
}

Ints DimensionMarks::plain(Ints numbers, const char* name) const {
  const Shape dims = shape(numbers, name);
  for (size_t i = 0; i < dims.size(); ++i)
    if (!dims[i].is_const())
      throw_free({&dims[i].expression(), 1}, cat(name, "[", i, "], ", dims[i], ","));
  return numbers;
}

}  // namespace tiny
