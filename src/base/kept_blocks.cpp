#include "base/kept_blocks.h"

#include <utility>

namespace tiny {

namespace {

thread_local constinit KeptBlocks* current = nullptr;  // of the thread; null: it keeps none

}  // namespace

void* KeptBlocks::take(size_t bytes) {
  if (bytes > kLargeMax) return std::malloc(bytes);
  const Size size = size_of(bytes);
  KeptBlocks* const kept = current;
  // Of its size's bytes also where nobody keeps blocks: who gives it back may.
  if (!kept || !kept->free_[size.number]) return std::malloc(size.bytes);
  Free* const block = kept->free_[size.number];
  kept->free_[size.number] = block->next;
  kept->bytes_ -= size.bytes;
  return block;
}

void KeptBlocks::give(void* block, size_t bytes) noexcept {
  KeptBlocks* const kept = current;
  if (!kept || !block || bytes == 0 || bytes > kLargeMax) return std::free(block);
  const Size size = size_of(bytes);
  if (kept->bytes_ + size.bytes > kBytesMax) return std::free(block);
  kept->bytes_ += size.bytes;
  kept->free_[size.number] = new (block) Free{kept->free_[size.number]};
}

KeptBlocks::~KeptBlocks() {
  for (Free* block : free_)
    while (block) std::free(std::exchange(block, block->next));
}

void KeptBlocks::shrink(size_t bytes_max) {
  for (size_t number = kSizes; number-- > 0 && bytes_ > bytes_max;)
    while (free_[number] && bytes_ > bytes_max) {
      bytes_ -= bytes_of(number);
      std::free(std::exchange(free_[number], free_[number]->next));
    }
}

KeptBlocks::Scope::Scope(KeptBlocks& blocks, size_t rest_bytes_max)
    : outer_(current), blocks_(blocks), rest_bytes_max_(rest_bytes_max) {
  if (!outer_) current = &blocks;
}

KeptBlocks::Scope::~Scope() {
  current = outer_;
  if (!outer_) blocks_.shrink(rest_bytes_max_);
}

}  // namespace tiny
