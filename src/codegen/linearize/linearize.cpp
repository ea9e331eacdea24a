#include "codegen/linearize/linearize.h"

#include "codegen/linear/masked_blocks.h"
#include "codegen/linearize/lineariser.h"
#include "codegen/linearize/split_reduce.h"

namespace tiny {

LinearProgram linearize(const Kernel& kernel, const Target& target) {
  // What cuts, peels and moves loops is for one thread that walks them alone.
  if (is_grouped(kernel) || thread_ranges(kernel) > 1) {
    BalancedKernel whole{kernel, {}, {}, {}};
    whole.tiles.resize(kernel.ranges.size());
    return Lineariser(whole, target).run();
  }
  BalancedKernel balanced = balance_tiles(split_outer_reduction(kernel));
  if (!balanced.outer) leave_out_masked_blocks(balanced.kernel);
  return Lineariser(balanced, target).run();
}

}  // namespace tiny
