// Tiles of which the last does not fit what they are cut from: the steps that are within, and the
// code that knows of them.
#pragma once

#include <vector>

#include "cost/walked_kernel.h"

namespace tiny {

class CutTiles {
 public:
  explicit CutTiles(const WalkedKernel& walk);
  // Of the steps of these ranges, those that are within tiles.
  double share_within(RangeSet walked) const;
  // Whether a range is of tiles of which the last does not fit, and that number fewer.
  bool is_cut(size_t range, double fewer) const;
  // How often what depends on these ranges stands in the code: once in each body.
  double bodies(RangeSet free) const;

 private:
  // A loop over tiles of unrolled steps, as many as a run says, has a body for each number of steps
  // that a tile can have (codegen/linearize/balance.h).
  struct Bodies {
    RangeSet loop = 0, steps = 0;
  };
  // The steps of tiles that are within a range of known size, of all: code for the last tile has no
  // others (codegen/linearize/peeling.h).
  struct Steps {
    RangeSet ranges = 0;  // that count them
    double share = 1;
  };
  // A tile of which the last does not fit, with those around it.
  struct CutTile {
    RangeSet ranges = 0;
    Bodies bodies;
    Steps steps;
  };
  Steps steps_of(const UOp& fact, RangeSet ranges) const;
  Bodies bodies_of(RangeSet fact) const;

  const WalkedKernel& walk_;
  std::vector<CutTile> tiles_;
};

}  // namespace tiny
