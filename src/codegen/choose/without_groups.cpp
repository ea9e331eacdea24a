// A build without devices that compute in groups of threads: no row proposes for them.
#include "codegen/choose/group_editor.h"
#include "codegen/choose/strategies.h"

namespace tiny {

void propose_group_elements(const Seen&, std::vector<Proposal>&) {
}

bool has_turned(const Seen&) {
  return false;
}

void propose_turned_square(const Seen&, std::vector<Proposal>&) {
}

bool has_shared_sums(const Seen&) {
  return false;
}

void propose_group_rows(const Seen&, std::vector<Proposal>&) {
}

void propose_group_columns(const Seen&, std::vector<Proposal>&) {
}

bool is_group_product(const Seen&) {
  return false;
}

void propose_group_tiles(const Seen&, std::vector<Proposal>&) {
}

bool is_group_chain(const Seen&) {
  return false;
}

void propose_group_chain(const Seen&, std::vector<Proposal>&) {
}

bool is_matrix_product(const Seen&) {
  return false;
}

void propose_group_matrices(const Seen&, std::vector<Proposal>&) {
}

bool fits_group(const Kernel&, const Target&) {
  return false;
}

}  // namespace tiny
