// The rule tables of src/rules that say when two expressions are the same value.
//
//   identities()       every dtype, bit for bit (a NaN stays some NaN): IEEE results are kept
//   integer_rules()    ints and bools, true also where arithmetic wraps
//   index_rules()      int64 indices, which are assumed not to overflow; bounds and facts are used
#pragma once

#include "ir/rewrite.h"

namespace tiny {

RuleTable identities();
RuleTable integer_rules();
RuleTable index_rules();

}  // namespace tiny
