// How options come about: strategies propose complete lists, the estimate decides.
//
// A strategy is a row of the table in strategies.cpp and a file.  Every row that applies proposes;
// the first proposal stands unless another is estimated to take clearly less.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "codegen/choose/editor.h"
#include "codegen/choose/proposal.h"
#include "cost/access_table.h"
#include "cost/machine.h"
#include "ir/kernel.h"

namespace tiny {

// What all strategies look at.
struct Seen {
  Seen(const Kernel& kernel, const Machine& machine, double runs);
  Seen(const Seen&) = delete;
  Seen& operator=(const Seen&) = delete;

  const Kernel& kernel;
  const Machine& machine;
  double runs;  // of the kernel's program
  AccessTable table;
  std::vector<const ClosureInfo*> reductions;  // of the table's closures
};

// Which machines a strategy is for.
enum class ComputedBy : uint8_t { OneThread, Groups };

struct Strategy {
  std::string_view name;
  ComputedBy by;
  bool (*applies)(const Seen& seen);
  // Adds to `to`, which holds what the rows before proposed.
  void (*propose)(const Seen& seen, std::vector<Proposal>& to);
};

std::span<const Strategy> strategies();
// What all rows that apply propose, in their order, each with its end (finish.h).
std::vector<Proposal> all_proposals(const Seen& seen);

// elementwise.cpp
bool is_elementwise(const Seen& seen);
void propose_elementwise(const Seen& seen, std::vector<Proposal>& to);
// contraction.cpp
bool is_contraction(const Seen& seen);
// Of a contraction: whether a store beside it walks ranges of its own.
bool has_stores_apart(const Seen& seen);
void propose_contraction(const Seen& seen, std::vector<Proposal>& to);
// Outputs whose elements lie side by side in an operand of which the steps of a word lie apart:
// lanes along them are a panel of it, which may hold words.
std::optional<size_t> lanes_of_panel(const UOp& scattered_operand, const Editor& edit);
// matrix_tiles.cpp
bool has_matrix_tiles(const Seen& seen);
void propose_matrix_tiles(const Seen& seen, std::vector<Proposal>& to);
// computed_words.cpp
bool has_computed_words(const Seen& seen);
void propose_computed_words(const Seen& seen, std::vector<Proposal>& to);
// staged_operand.cpp
bool has_staged_operand(const Seen& seen);
void propose_staged_operand(const Seen& seen, std::vector<Proposal>& to);
// row_tiles.cpp, rows.cpp
bool has_rows(const Seen& seen);
bool may_have_rows(const Seen& seen);
void propose_row_tiles(const Seen& seen, std::vector<Proposal>& to);
void propose_rows(const Seen& seen, std::vector<Proposal>& to);
// generic.cpp
void propose_generic(const Seen& seen, std::vector<Proposal>& to);

// Of groups of threads, which group_editor.h deals ranges to.
// group_elements.cpp
void propose_group_elements(const Seen& seen, std::vector<Proposal>& to);
bool has_turned(const Seen& seen);
void propose_turned_square(const Seen& seen, std::vector<Proposal>& to);
// group_rows.cpp
bool has_shared_sums(const Seen& seen);
void propose_group_rows(const Seen& seen, std::vector<Proposal>& to);
void propose_group_columns(const Seen& seen, std::vector<Proposal>& to);
// group_tile.cpp
bool is_group_product(const Seen& seen);
void propose_group_tiles(const Seen& seen, std::vector<Proposal>& to);
// group_chain.cpp
bool is_group_chain(const Seen& seen);
void propose_group_chain(const Seen& seen, std::vector<Proposal>& to);
// group_matrices.cpp
bool is_matrix_product(const Seen& seen);
void propose_group_matrices(const Seen& seen, std::vector<Proposal>& to);

}  // namespace tiny
