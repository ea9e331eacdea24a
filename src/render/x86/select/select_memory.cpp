// Loads, stores and prefetches, by the linear op.
#include <utility>
#include <vector>

#include "render/x86/select/masks.h"
#include "render/x86/select/ops.h"
#include "render/x86/select/stores.h"
#include "render/x86/select/transpose.h"

namespace tiny::x86 {

namespace {

// A row waits for the last one, with which all are stored.
void store_across(Values& v, const Squares& squares, LinearId id) {
  Emitter& e = v.emitter();
  v.use(v.op(id).src[2]);
  const std::vector<LinearId>& stores = *squares.rows_of(id);
  if (stores.empty()) return;
  std::vector<VReg> rows;
  for (LinearId row : stores) rows.push_back(v.use(v.op(row).src[2]));
  const LinearOp& first = v.op(stores[0]);
  const DType dtype = v.source(first, 2).dtype;
  const LanePlaces at = v.places(first, dtype);
  const uint64_t lanes = squares.stored_lanes(first);
  if (squares.are_woven(first, rows.size())) return store_woven(e, at, rows, lanes);
  store_columns(e, dtype, std::move(rows), lanes,
                [&](int64_t lane) { return lane_address(e, at, lane); });
}

}  // namespace

void select_load(Values& v, LinearId id) {
  const LinearOp& o = v.op(id);
  const OpFacts& f = v.facts(id);
  bool steady = true;  // an accumulator as an index may be set before the user comes
  for (size_t s = 0; s < o.count; ++s) steady = steady && v.source(o, s).op != Op::Accumulator;
  if (f.uses == 1 && steady) {
    const Op user = v.op(f.user).op;
    const bool user_ends_epoch =
        user == Op::Store || user == Op::Set || user == Op::Loop || user == Op::If;
    if (v.facts(f.user).epoch == f.epoch + (user_ends_epoch ? 1 : 0)) {
      v.defer(id);
      return;
    }
  }
  v.load_now(id);
}

void select_store(Values& v, const Squares& squares, LinearId id) {
  if (squares.rows_of(id)) return store_across(v, squares, id);
  Emitter& e = v.emitter();
  const LinearOp& o = v.op(id);
  DType d = v.source(o, 2).dtype;
  VReg value = kNoReg;
  if (is_mask(d)) {
    const int64_t lane = v.mask_lane(o.src[2]);
    value = mask_to_bytes(e, v.mask_in(o.src[2], lane), d.lanes, lane);
    d = kUInt8.with_lanes(d.lanes);
  } else {
    value = v.use(o.src[2]);
  }
  const VReg mask = o.count > 3 ? v.mask_in(o.src[3], d.bytes()) : kNoReg;
  const LanePlaces at = v.places(o, d);
  const int64_t bytes = d.lanes * d.bytes();
  const bool whole = mask == kNoReg && !at.is_indexed() && (d.lanes == 1 || at.stride == 1);
  if (o.bypass && whole && bytes >= 16) return e.store_past_caches(at.mem, value, bytes);
  store(e, at, value, mask);
}

void select_prefetch(Values& v, LinearId id) {
  Emitter& e = v.emitter();
  const LinearOp& o = v.op(id);
  const Mem mem = v.address(o.src[0], o.src[1], o.aux, o.imm);
  e.emit(Opcode::Prefetch, 8).mem = mem;
}

}  // namespace tiny::x86
