// Dimensions as plain numbers, for callers that have no other.  A size stands for itself; what
// depends on Variables has a mark, a negative number that stands for it in one context.
//
// A mark says itself that it is one, so that no mistake becomes a size:
//
//   -(kMarkBase + place * 2^41 + context * 2^24 + check)
//
// Sizes end at 2^40, and marks are more than 2^40 apart and away from them.  So a mark plus or less
// a size is neither, nor is a mark negated, divided by anything up to 2^21, plus or less another
// one; and no mark is given whose multiples, up to the 64-fold, come near to a size.  What
// arithmetic makes otherwise is a size or a mark by accident only: 2^41 of 2^64 numbers are.
// `context` tells numbers of contexts apart, the check those of many.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "ir/node_map.h"
#include "shape/shape.h"

namespace tiny {

// The largest size, and the furthest position, that a number can stand for.
inline constexpr int64_t kDimMax = int64_t{1} << 40;

// Built in by one thread at a time; what is known of a number, any thread asks beside it.
class DimensionMarks {
 public:
  // Of the context of this number: marks of another are nothing here.
  explicit DimensionMarks(uint32_t context) : context_(context) {}
  // A number that no context of the process had before (but for 2^32 of them).
  static uint32_t next_context();

  // The number itself, or the mark of the expression: the same for equal ones.
  int64_t mark(const Dim& dim);
  // What the number stands for.  Error{InvalidArgument} that begins with `name` if that is nothing
  // here.
  Dim dim(int64_t number, const std::string& name) const;
  Shape shape(const Ints& numbers, const char* name) const;
  // The same for positions, among which INT64_MAX, -INT64_MAX and INT64_MIN are beyond any end.
  Shape positions(const Ints& numbers, const char* name) const;
  // A number that elements are made of: itself, or what it stands for.  Error{InvalidArgument} for
  // what is near to a mark (which arithmetic has made of it), and for another context's mark.
  Dim scalar(int64_t number, const char* name) const;
  // The same for one that cannot be a mark.
  double scalar(double number, const char* name) const;
  // What is known of the number without its expression, which only who builds may touch.
  struct Known {
    int64_t min = 0;
    int64_t max = 0;
    std::string text;
  };
  Known known(int64_t number, const std::string& name) const;
  // The numbers themselves, where what depends on Variables is not taken: FreeDimension.
  Ints plain(Ints numbers, const char* name) const;

 private:
  int64_t number_at(uint64_t place) const;
  // The place of a number that was given, or one beyond all places.
  uint64_t place_of(int64_t number) const;
  UOp find(int64_t number) const;
  bool is_near_mark(int64_t number) const;

  uint32_t context_;
  std::vector<UOp> expressions_;  // by place; empty where the number would not do
  NodeMap<uint64_t> places_;
  mutable std::mutex mutex_;  // of what follows
  std::vector<Known> known_;  // of the expressions; no text where there is none
};

// Whether no multiple of the number, up to the 64-fold, is one that a size or position can be.
bool is_far_from_sizes(int64_t number);

}  // namespace tiny
