#include "base/kept_blocks.h"

#include <utility>

namespace tiny {

thread_local constinit KeptBlocks* KeptBlocks::current_ = nullptr;

KeptBlocks::~KeptBlocks() {
  for (Free* block : free_)
    while (block) std::free(std::exchange(block, block->next));
}

KeptBlocks::Scope::Scope(KeptBlocks& blocks) : outer_(current_) {
  if (!outer_) current_ = &blocks;
}

KeptBlocks::Scope::~Scope() {
  current_ = outer_;
}

}  // namespace tiny
