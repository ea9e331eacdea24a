// Python's pickles of arrays by name, such as the Python version of CIFAR-10 and CIFAR-100.
//
// A pickle is a program for a machine with a stack.  What is read of it makes plain values and
// NumPy's arrays; nothing is looked up, called or executed.  An operation that makes anything else
// is refused by name.
#pragma once

#include "io/archive.h"

namespace tiny {

// Of a dict: arrays as they are, lists of integers as int64, texts as metadata; what else is in it
// is passed over.  Of an array: it, named "".  Arrays lie where they are in the bytes.
// Error{InvalidModel} for a breach of the format, Error{Unsupported} for what is refused.
Archive parse_pickle(const SharedBytes& bytes, const FileAccess& access = {});

}  // namespace tiny
