// How many registers a piece of a linear program wants in some order of its ops.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/linear.h"
#include "ir/target.h"

namespace tiny {

// A piece's ops in an order, and what waits in scratch until it is wanted.
struct PieceOrder {
  std::vector<LinearId> ops;
  std::vector<LinearId> parked;
};

enum class Kept : uint8_t { Nowhere, Integer, Vector };  // the register that a value needs
Kept kept_in(const LinearOp& op);

// Where each value is read last; what a loop reads from outside is wanted until the loop ends.
std::vector<LinearId> last_uses(const std::vector<LinearOp>& ops);

class RegisterCount {
 public:
  // Of the ops from `begin` to before `end`.
  RegisterCount(const LinearProgram& program, std::span<const LinearId> last_use, LinearId begin,
                LinearId end);

  bool fits(const PieceOrder& order, const Target& target) const;
  // Registers for vectors that the order wants at once.
  int64_t vectors(const PieceOrder& order) const;
  // What comes in a register from outside and is read in one window alone, not the first.
  std::vector<LinearId> read_late(const std::function<size_t(LinearId)>& window_of) const;

 private:
  std::array<int64_t, 3> most(const PieceOrder& order) const;  // at any time, by kind
  size_t register_of(LinearId source);
  bool is_inside(LinearId id) const { return id >= begin_ && id - begin_ < reads_.size(); }

  const LinearProgram& program_;
  const LinearId begin_;
  struct Register {
    Kept kept = Kept::Nowhere;
    bool stays = false;  // is wanted after the piece
    LinearId value = 0;
  };
  std::vector<Register> registers_;  // what ops inside make, then what comes from outside
  std::unordered_map<LinearId, size_t> outside_;
  std::vector<std::array<size_t, 4>> reads_;  // of each op, by register
  std::array<int64_t, 3> live_before_{};      // by kind
};

}  // namespace tiny
