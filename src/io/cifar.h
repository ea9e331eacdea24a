// The binary version of CIFAR-10 and CIFAR-100: one picture after the other, its label (or a coarse
// and a fine one) and 3 x 32 x 32 bytes.
#pragma once

#include "io/archive.h"

namespace tiny {

// "data", [n, 3, 32, 32], and "labels", or "coarse_labels" and "fine_labels"; all uint8.  Which of
// the two the file is follows from its size; Error{InvalidModel} if it can be neither.
Archive parse_cifar(const SharedBytes& bytes, const FileAccess& access = {});

}  // namespace tiny
