// Linear ops that need nothing but values, by kind: each is given its instructions and its value.
#pragma once

#include "render/x86/select/squares.h"
#include "render/x86/select/values.h"

namespace tiny::x86 {

void select_binary(Values& v, LinearId id);
void select_fma(Values& v, LinearId id);
void select_dot(Values& v, LinearId id);

void select_compare(Values& v, LinearId id);
void select_where(Values& v, LinearId id);
void select_mask_logic(Values& v, LinearId id);
void select_lane_range(Values& v, LinearId id);

void select_cast(Values& v, LinearId id);
void select_bitcast(Values& v, LinearId id);

void select_broadcast(Values& v, LinearId id);
void select_ramp(Values& v, LinearId id);
void select_fold(Values& v, LinearId id);
// What the target cannot do to vectors is done to their lanes.
void scalarise(Values& v, LinearId id);

void select_load(Values& v, LinearId id);
void select_store(Values& v, const Squares& squares, LinearId id);
void select_prefetch(Values& v, LinearId id);

void select_accumulator(Values& v, LinearId id);
void select_set(Values& v, LinearId id);

}  // namespace tiny::x86
