// Values that a row's reduction computes and that are wanted again after it: kept for the row.
#pragma once

#include "codegen/choose/editor.h"

namespace tiny {

void share_values(Editor& edit);

}  // namespace tiny
