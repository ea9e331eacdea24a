// The static functions and type definitions that a translation unit needs, written when first asked
// for.  Each method returns the name of a function that does the op on such operands;
// docs/semantics.md says what they compute.
//
// Whoever renders gives vectors of bools as masks: their dtype is that of their lanes (mask_of).
// Everything is written twice where it must be: with GNU vectors, and lane by lane for compilers
// that have none (preamble.h).
#pragma once

#include <set>
#include <string>

#include "ir/dot.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "render/c/dialect.h"
#include "render/c/natives.h"

namespace tiny::c {

class Helpers {
 public:
  explicit Helpers(const Dialect& dialect) : dialect_(dialect) {}
  const Dialect& dialect() const { return dialect_; }
  bool defines(const std::string& name) const { return known_.contains(name); }

  // All definitions so far, in an order in which each comes before its users.
  const std::string& text() const { return text_; }

  // The name of the type, defined if it is a vector.
  std::string type(DType dtype);

  // The expression of an elementwise op other than Where, Cast and Bitcast.
  std::string arithmetic(Op op, DType operand, const std::string& a, const std::string& b = "",
                         const std::string& c = "");
  // The same of masks.
  std::string mask_arithmetic(Op op, DType mask, const std::string& a, const std::string& b = "");
  std::string dot(DotKind kind, DType sum);        // (words, words, sum)
  std::string where(DType dtype);                  // (mask_of(dtype), a, b)
  std::string cast(DType from, DType to);          // (x); of bools, one lane
  std::string bitcast(DType from, DType to);       // (x)
  std::string resize_mask(DType from, DType to);   // (mask)
  std::string cast_of_mask(DType mask, DType to);  // (mask), to numbers
  std::string splat(DType dtype);                  // (x)
  std::string ramp(DType dtype);                   // (first, step)
  std::string lane_range(DType mask);              // (low, high)
  std::string fold(Op op, DType dtype);            // (vector)
  std::string fold_of_mask(Op op, DType mask);     // (mask)
  // (value, memory of the group, the thread, how far apart those that are folded are, how many)
  std::string group_fold(Op op, DType dtype, bool of_bools);
  std::string check();                    // (status, b8, number, position)
  std::string check_of_mask(DType mask);  // the same
  // A constant, with what it needs.
  std::string constant(DType dtype, uint64_t bits);

  // (address [, stride in bytes] [, mask]), (address, indices [, mask]), and for stores the value
  // after the address.  The mask is mask_of(dtype); of bools, value and mask are of bytes.
  std::string load(DType dtype, bool strided, bool masked, Space space);
  std::string store(DType dtype, bool strided, bool masked, Space space);
  // Of adjacent lanes: (address [, value], mask).
  std::string adjacent_masked(bool is_load, DType dtype, Space space);
  // Of every second lane: (address [, mask]), where `has_second_lanes` says so.
  std::string load_second_lanes(DType dtype, bool masked);
  bool has_second_lanes(DType dtype, bool masked) const;
  std::string gather(DType dtype, bool masked, Space space);
  std::string scatter(DType dtype, bool masked, Space space);

 private:
  // True the first time: the caller then writes the definition.
  bool first(const std::string& name) { return known_.insert(name).second; }
  void write(const std::string& definition) { text_ += definition + "\n"; }
  // A definition for GNU vectors where there are any, and one that does without.
  void write_both(const std::string& with_vectors, const std::string& without);

  // The instruction where there is one, else the portable text.
  void write_native(const Natives& natives, const std::string& name, const std::string& type,
                    const std::string& parameters, const std::string& otherwise);

  // The text of a function (x) that gives its bits as another type.
  std::string same_bits(const std::string& to, const std::string& name,
                        const std::string& from) const;
  std::string infix(Op op, DType dtype);
  std::string scalar_function(Op op, DType dtype);
  std::string flip_sign(DType dtype);
  std::string scalar_cast(DType from, DType to);
  std::string half_cast(DType from, DType to);
  std::string saturated(const std::string& name, DType from, DType to, const std::string& lanes);
  void bits_of_float();
  std::string vector_function(Op op, DType dtype);
  std::string each_lane_of(Op op, DType dtype, const std::string& one);
  std::string vector_shift(Op op, DType dtype);
  std::string vector_maximum(Op op, DType dtype);
  std::string complement(DType dtype);
  // The text of a function whose result's lane l is the expression `lane`, where `condition` holds,
  // else 0.
  std::string lanes_text(const std::string& name, DType result, const std::string& parameters,
                         const std::string& lane, const std::string& condition = "",
                         const std::string& before = "");
  // The same, written if it is not known; its name.
  std::string by_lane(const std::string& name, DType result, const std::string& parameters,
                      const std::string& lane, const std::string& condition = "",
                      const std::string& before = "");
  std::string each_lane_text(const std::string& name, DType dtype, int operands,
                             const std::string& function);
  // Where lanes are in memory: behind which parameters of the address, and how each is found.
  struct LanePlace {
    Space space;
    std::string parameters, of_lane;
  };
  std::string lane_access(const std::string& name, DType dtype, const std::string& value,
                          const LanePlace& place, bool masked);
  std::string load_now(DType dtype, Space space);
  std::string typed_place(DType dtype, Space space);
  // The name of what accesses such memory.
  std::string access(const char* what, DType dtype, Space space) const;
  std::string comparison(Op op, DType operand);
  std::string halving(const std::string& name, DType dtype, const std::string& half,
                      const std::string& step, const std::string& last);

  const Dialect& dialect_;
  std::set<std::string> known_;
  std::string text_;
};

}  // namespace tiny::c
