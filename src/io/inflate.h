// gzip files (RFC 1952) and the deflate streams in them (RFC 1951).
#pragma once

#include "io/file.h"

namespace tiny {

// Whether the bytes begin as a gzip file does.
bool is_gzip(const SharedBytes& bytes);

// What all members of the file hold, one after the other; counts in access.memory.  A breach of the
// format, also of a checksum, is Error{InvalidModel} that names the byte.
SharedBytes gunzip(const SharedBytes& bytes, const FileAccess& access = {});

}  // namespace tiny
