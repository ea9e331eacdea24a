// Vectors that are stored with their lanes apart, several side by side: the rows of a square of
// elements that is stored across.  Its columns are made in registers and stored whole.
//
// reads: the linear program and its facts.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "render/x86/select/facts.h"
#include "render/x86/select/linear_view.h"

namespace tiny::x86 {

class Squares {
 public:
  // Both must outlive it.
  Squares(const LinearView& ops, const Facts& facts, bool avx512);

  // Whether a store is of a row of a square; with the last one, all of them, by place.
  const std::vector<LinearId>* rows_of(LinearId store) const;
  // Whether the columns of so few rows lie side by side, so that they are stored as whole vectors.
  bool are_woven(const LinearOp& row, size_t count) const;
  // The lanes that a store has.
  uint64_t stored_lanes(const LinearOp& o) const;

 private:
  bool is_stored_across(const LinearOp& o) const;
  bool changes(LinearId id, const LinearOp& store) const;
  std::pair<Op, int64_t> memory_of(LinearId address) const;
  bool meet(const LinearOp& a, const LinearOp& b) const;
  bool ends(const std::vector<LinearId>& run, LinearId id) const;
  void note_squares(std::vector<LinearId> stores);

  const LinearView& ops_;
  const Facts& facts_;
  const bool avx512_;
  std::unordered_map<LinearId, std::vector<LinearId>> squares_;
};

}  // namespace tiny::x86
