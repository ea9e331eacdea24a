// A constant that stays as it lies, in memory of the device: a mapped file has small pages.
//
// It is copied piece by piece, and what was copied leaves memory, so that a large constant is there
// once at all times; a kernel would have all of it there twice.
#pragma once

#include "engine/context.h"
#include "engine/storage.h"
#include "ir/uop.h"

namespace tiny {

// Whether `value`, which has no memory yet, is all of one that can leave memory, as it lies.
bool is_copied(const UOp& value);

// The elements of `origin` in new memory; its own has left memory then.  On all threads.
Ref<Storage> copy_and_unload(Context& context, const Storage& origin);

}  // namespace tiny
