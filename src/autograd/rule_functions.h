// The rules of gradients by themselves: autograd/rules.cpp has the table.  Each gives to the
// sources of a node that want it.
#pragma once

#include "autograd/rules.h"

namespace tiny {

// elementwise_rules.cpp
void of_neg(Step& step);
void of_abs(Step& step);
void of_sqrt(Step& step);
void of_exp(Step& step);
void of_log(Step& step);
void of_sin(Step& step);
void of_cos(Step& step);
void of_tanh(Step& step);
void of_erf(Step& step);
void of_cast(Step& step);
void of_add(Step& step);
void of_mul(Step& step);
void of_div(Step& step);
void of_pow(Step& step);
void of_extremum(Step& step);  // of two
void of_where(Step& step);
void of_fma(Step& step);

// movement_rules.cpp
void of_reshape(Step& step);
void of_permute(Step& step);
void of_expand(Step& step);
void of_pad(Step& step);
void of_shrink(Step& step);
void of_flip(Step& step);
void of_unfold(Step& step);
void of_as_strided(Step& step);
void of_alias(Step& step);
void of_concat(Step& step);
void of_same(Step& step);  // the same value in other memory
void of_after(Step& step);
void of_assign(Step& step);

// reduce_rules.cpp
void of_reduce(Step& step);

// index_rules.cpp
void of_gather(Step& step);
void of_scatter(Step& step);

}  // namespace tiny
