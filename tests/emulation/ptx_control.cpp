// Branches, barriers, and what threads of a warp do together.
#include <algorithm>
#include <bit>

#include "tests/emulation/ptx_decode.h"
#include "tests/emulation/ptx_kinds.h"
#include "tests/emulation/ptx_machine.h"

namespace tiny::emulation {

namespace {

void decode_bra(Decoder& d) {
  d.take("uni");
  d.end(1);
  if (d.operand(0).form != Operand::Form::Name) d.refuse("needs a label");
  d.out.step = Step::Branch;
  d.branch_to(d.operand(0).name);
}

void decode_end(Decoder& d) {
  d.take("uni");
  d.end(0);
  d.out.step = Step::End;
}

void decode_trap(Decoder& d) {
  d.end(0);
  d.out.step = Step::Trap;
}

void nothing(const Instruction&, uint64_t*, Thread&) {
}

// Memory is always as the last store left it, but for products that run beside the threads.
void fence_shared(const Instruction&, uint64_t*, Thread& thread) {
  thread.machine->fence_shared(thread);
}
void decode_fence(Decoder& d) {
  if (d.take("proxy")) {
    if (!d.take("async") || !d.take("shared::cta")) d.refuse("is of .proxy.async.shared::cta");
    d.end(0);
    d.out.run = fence_shared;
    return;
  }
  d.take_one({"sc", "acq_rel"});
  if (d.take_one({"cta", "gpu", "gl", "sys"}) < 0) d.refuse("needs a scope");
  d.end(0);
  d.out.run = nothing;
}

// bar.warp.sync members;
void decode_warp_barrier(Decoder& d) {
  if (!d.take("sync")) d.refuse("needs .sync");
  d.end(1);
  d.out.step = Step::WarpSync;
  d.out.mode = kOrdersMemory;
  d.out.run_warp = [](const Instruction&, Thread* const*) {};
  d.out.members = d.source(0, kU32);
  d.set_partial_barriers();
}

// bar.sync a{, b}; bar.arrive a, b; bar.red.popc.u32 d, a{, b}, p; bar.red.and.pred p, a{, b}, q
void decode_bar(Decoder& d) {
  if (d.take("warp")) return decode_warp_barrier(d);
  const int what = d.take_one({"sync", "arrive", "red"});
  d.take("cta");
  d.take("aligned");
  if (what < 0) d.refuse("needs .sync, .arrive or .red");
  d.out.step = Step::Barrier;
  size_t next = 0;
  if (what == 1) d.out.mode = kArrives;
  if (what == 2) {
    const int how = d.take_one({"popc", "and", "or"});
    if (how < 0) d.refuse("needs .popc, .and or .or");
    d.out.mode = static_cast<uint8_t>(kCounts + how);
    const Type type = d.type();
    if (type != (how == 0 ? kU32 : kPredicate)) d.refuse("has no result of " + to_string(type));
    d.out.d = d.destination(next++, type);
  }
  const size_t last = what == 2 ? 1 : 0;  // the predicate, behind all
  d.end(next + 1 + last, next + 2 + last);
  d.out.a = d.source(next++, kU32);
  if (next + last < d.operands.size()) {
    d.out.count = 1;  // `b` says how many threads
    d.out.b = d.source(next++, kU32);
    d.set_partial_barriers();
  }
  if (what == 1 && d.out.count == 0) d.refuse("needs a count of threads");
  if (last == 0) return;
  Operand of = d.operand(next);
  d.out.imm = of.is_negated ? 1 : 0;
  of.is_negated = false;
  d.out.c = d.predicate(of);
}

enum : uint8_t { kUp, kDown, kButterfly, kIndex };

// The lane that gives, or the lane itself where that is outside of its part of the warp.
uint32_t giving_lane(uint32_t lane, uint32_t by, uint32_t clamp_and_mask, uint8_t mode,
                     bool& is_inside) {
  const uint32_t part = (clamp_and_mask >> 8) & 31, clamp = clamp_and_mask & 31;
  const uint32_t first = lane & part, last = first | (clamp & ~part);
  by &= 31;
  int64_t from = 0;
  if (mode == kUp) {
    // Here the clamp bounds from below.
    from = int64_t{lane} - by;
    is_inside = from >= int64_t{last};
  } else {
    from = mode == kDown        ? int64_t{lane} + by
           : mode == kButterfly ? int64_t{lane ^ by}
                                : int64_t{first | (by & ~part)};
    is_inside = from <= int64_t{last};
  }
  return is_inside ? static_cast<uint32_t>(from) : lane;
}

void shuffle(const Instruction& i, Thread* const* lanes) {
  std::array<uint64_t, kWarp> given{};
  for (uint32_t lane = 0; lane < kWarp; ++lane)
    if (lanes[lane]) given[lane] = lanes[lane]->slots[i.a];
  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    if (!lanes[lane]) continue;
    uint64_t* slots = lanes[lane]->slots;
    bool is_inside = false;
    const uint32_t from = giving_lane(lane, static_cast<uint32_t>(slots[i.b]),
                                      static_cast<uint32_t>(slots[i.c]), i.mode, is_inside);
    if (!lanes[from])
      throw Fault(Fault::Of::Barrier, "a shuffle takes from lane " + std::to_string(from) +
                                          ", which is not among its members, at line " +
                                          std::to_string(i.line));
    slots[i.d2] = is_inside ? 1 : 0;
    slots[i.d] = given[from];
  }
}

void decode_shfl(Decoder& d) {
  if (!d.take("sync")) d.refuse("needs .sync");
  const int mode = d.take_one({"up", "down", "bfly", "idx"});
  if (mode < 0 || d.type() != kB32) d.refuse("needs .up, .down, .bfly or .idx, and .b32");
  d.end(5);
  Operand to = d.operand(0);
  if (!to.other.empty()) {
    Operand second;
    second.name = to.other;
    to.other = {};
    d.out.d2 = d.destination(second, kPredicate);
  }
  d.out.step = Step::WarpSync;
  d.out.mode = static_cast<uint8_t>(mode);
  d.out.run_warp = shuffle;
  d.out.d = d.destination(to, kB32);
  d.out.a = d.source(1, kB32);
  d.out.b = d.source(2, kU32);
  d.out.c = d.source(3, kU32);
  d.out.members = d.source(4, kU32);
}

// `mode`: all, any, whether all are equal, the bits of all.
void vote(const Instruction& i, Thread* const* lanes) {
  uint32_t there = 0, yes = 0;
  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    if (!lanes[lane]) continue;
    there |= 1u << lane;
    if ((lanes[lane]->slots[i.a] != 0) != (i.imm != 0)) yes |= 1u << lane;
  }
  const uint64_t results[] = {yes == there, yes != 0, yes == there || yes == 0, yes};
  for (uint32_t lane = 0; lane < kWarp; ++lane)
    if (lanes[lane]) lanes[lane]->slots[i.d] = results[i.mode];
}

void decode_vote(Decoder& d) {
  if (!d.take("sync")) d.refuse("needs .sync");
  const int mode = d.take_one({"all", "any", "uni", "ballot"});
  const Type type = d.type();
  if (mode < 0 || type != (mode == 3 ? kB32 : kPredicate)) d.refuse("has no such form");
  d.end(3);
  d.out.step = Step::WarpSync;
  d.out.mode = static_cast<uint8_t>(mode);
  d.out.run_warp = vote;
  d.out.d = d.destination(0, type);
  Operand of = d.operand(1);
  d.out.imm = of.is_negated ? 1 : 0;
  of.is_negated = false;
  d.out.a = d.predicate(of);
  d.out.members = d.source(2, kU32);
}

constexpr std::string_view kReductions[] = {"add", "min", "max", "and", "or", "xor"};

template <class T>
T reduced(T a, T b, uint8_t how) {
  switch (how) {
    case 0:
      return static_cast<T>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
    case 1:
      return std::min(a, b);
    case 2:
      return std::max(a, b);
    case 3:
      return a & b;
    case 4:
      return a | b;
    default:
      return a ^ b;
  }
}

template <class T>
void reduce(const Instruction& i, Thread* const* lanes) {
  bool is_first = true;
  T result{};
  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    if (!lanes[lane]) continue;
    const auto value = static_cast<T>(lanes[lane]->slots[i.a]);
    result = is_first ? value : reduced(result, value, i.mode);
    is_first = false;
  }
  for (uint32_t lane = 0; lane < kWarp; ++lane)
    if (lanes[lane]) lanes[lane]->slots[i.d] = static_cast<uint32_t>(result);
}

void decode_redux(Decoder& d) {
  if (!d.take("sync")) d.refuse("needs .sync");
  const int how = d.take_one(kReductions);
  const Type type = d.type();
  if (how < 0 || type.bits != 32 || type.is_float() || (how >= 3) != (type.kind == Kind::Bits))
    d.refuse("has no such form");
  d.end(3);
  d.out.step = Step::WarpSync;
  d.out.mode = static_cast<uint8_t>(how);
  d.out.run_warp = type.kind == Kind::Signed ? reduce<int32_t> : reduce<uint32_t>;
  d.out.d = d.destination(0, type);
  d.out.a = d.source(1, type);
  d.out.members = d.source(2, kU32);
}

}  // namespace

std::vector<Decode> control_decoders() {
  return {{"bra", decode_bra},   {"ret", decode_end},      {"exit", decode_end},
          {"trap", decode_trap}, {"membar", decode_fence}, {"fence", decode_fence},
          {"bar", decode_bar},   {"barrier", decode_bar},  {"shfl", decode_shfl},
          {"vote", decode_vote}, {"redux", decode_redux}};
}

}  // namespace tiny::emulation
