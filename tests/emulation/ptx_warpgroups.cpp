// Products of matrices of four warps, of operands in shared memory, which run beside the threads:
// PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions".  Written from the manual's drawings,
// not from the table that codegen has.
//
// A product is formed when its group is waited for, the latest that it may be; until then nobody
// may write what it reads, and its sums are no numbers.
#include <algorithm>
#include <bit>
#include <cstring>

#include "base/half.h"
#include "tests/emulation/ptx_decode.h"
#include "tests/emulation/ptx_machine.h"

namespace tiny::emulation {

namespace {

constexpr uint32_t kWarps = 4, kRowsOfWarp = 16, kSteps = 16, kLine = 128, kPiece = 16;
constexpr uint64_t kPoison = 0x7FC0DEAD;
constexpr uint8_t kTurnsA = 1, kTurnsB = 2, kIsBfloat = 4;

// Of a descriptor: "Matrix Descriptor Format".
struct Operand64 {
  uint64_t begin = 0, leading = 0, stride = 0;
};
Operand64 operand_of(uint64_t bits, const Instruction& i) {
  constexpr uint64_t kField = 0x3FFF, kLines128 = 1;
  if (bits >> 62 != kLines128 || (bits >> 49 & 7) != 0)
    throw Fault(Fault::Of::Address,
                "a descriptor of lines of other sizes, or that begins within a "
                "pattern, at line " +
                    std::to_string(i.line));
  return {(bits & kField) * kPiece, (bits >> 16 & kField) * kPiece, (bits >> 32 & kField) * kPiece};
}

// Where an element lies; rows of A and columns of B are sides.
uint64_t place(const Operand64& o, uint32_t side, uint32_t step, bool is_turned) {
  const uint64_t flat =
      is_turned
          ? o.begin + side / 64 * o.leading + side % 64 * 2 + step / 8 * o.stride + step % 8 * kLine
          : o.begin + side / 8 * o.stride + side % 8 * kLine + uint64_t{step} * 2;
  return flat ^ (flat >> 7 & 7) << 4;
}

template <class Body>
void for_each_piece(const Operand64& o, uint32_t first, uint32_t sides, bool is_turned,
                    const Body& body) {
  for (uint32_t side = first; side < first + sides; side += is_turned ? 8 : 1)
    for (uint32_t step = 0; step < kSteps; step += is_turned ? 1 : 8)
      body(place(o, side, step, is_turned));
}

uint32_t columns_of(const Instruction& i) {
  return i.count * 2;
}

template <class Body>
void for_all_pieces(const Instruction& i, const Thread::Product& p, uint32_t warp,
                    const Body& body) {
  for_each_piece(operand_of(p.a, i), warp * kRowsOfWarp, kRowsOfWarp, (i.mode & kTurnsA) != 0,
                 body);
  for_each_piece(operand_of(p.b, i), 0, columns_of(i), (i.mode & kTurnsB) != 0, body);
}

void begin(const Instruction& i, Thread* const* lanes) {
  Thread& first = *lanes[0];
  Machine& machine = *first.machine;
  const Thread::Product product{first.slots[i.a], first.slots[i.b], first.slots[i.c] != 0,
                                first.product_groups, &i};
  for (uint32_t lane = 0; lane < kWarp; ++lane)
    if (lanes[lane]->slots[i.a] != product.a || lanes[lane]->slots[i.b] != product.b)
      throw Fault(Fault::Of::Barrier,
                  "threads of a warp name other operands, at line " + std::to_string(i.line));
  machine.check_same_operands(first, product);
  if (!first.may_change_sums)
    throw Fault(Fault::Of::Race,
                "no wgmma.fence before the product at line " + std::to_string(i.line));
  for_all_pieces(i, product, first.index / kWarp % kWarps,
                 [&](uint64_t at) { machine.begin_product(at, kPiece, {first.index, i.line}); });
  const std::vector<uint32_t>& list = first.lists();
  for (uint32_t e = 0; e < i.count; ++e) {
    auto [held, is_new] = first.sums.try_emplace(list[i.first + e]);
    if (!is_new) continue;
    for (uint32_t lane = 0; lane < kWarp; ++lane)
      held->second[lane] = std::exchange(lanes[lane]->slots[list[i.first + e]], kPoison);
  }
  first.products.push_back(product);
}

float value_at(const Thread& thread, uint64_t at, bool is_bfloat) {
  uint16_t half = 0;
  std::memcpy(&half, thread.machine->shared_at(at), sizeof half);
  return is_bfloat ? float_from_bfloat(half) : float_from_half(half);
}

void form(Thread& first, const Thread::Product& p) {
  const Instruction& i = *p.at;
  const uint32_t warp = first.index / kWarp % kWarps;
  const bool is_bfloat = (i.mode & kIsBfloat) != 0;
  const Operand64 a = operand_of(p.a, i), b = operand_of(p.b, i);
  std::vector<double> of_a, of_b;
  for (uint32_t m = 0; m < kRowsOfWarp; ++m)
    for (uint32_t k = 0; k < kSteps; ++k)
      of_a.push_back(
          value_at(first, place(a, warp * kRowsOfWarp + m, k, (i.mode & kTurnsA) != 0), is_bfloat));
  for (uint32_t n = 0; n < columns_of(i); ++n)
    for (uint32_t k = 0; k < kSteps; ++k)
      of_b.push_back(value_at(first, place(b, n, k, (i.mode & kTurnsB) != 0), is_bfloat));
  const std::vector<uint32_t>& list = first.lists();
  for (uint32_t lane = 0; lane < kWarp; ++lane)
    for (uint32_t e = 0; e < i.count; ++e) {
      const uint32_t row = lane / 4 + (e / 2 % 2) * 8, column = e / 4 * 8 + lane % 4 * 2 + e % 2;
      uint64_t& held = first.sums.at(list[i.first + e])[lane];
      double sum = p.adds ? std::bit_cast<float>(static_cast<uint32_t>(held)) : 0.0F;
      for (uint32_t k = 0; k < kSteps; ++k)
        sum += of_a[row * kSteps + k] * of_b[column * kSteps + k];
      held = std::bit_cast<uint32_t>(static_cast<float>(sum));
    }
  for_all_pieces(i, p, warp, [&](uint64_t at) { first.machine->end_product(at, kPiece); });
}

void wait(const Instruction& i, Thread* const* lanes) {
  Thread& first = *lanes[0];
  std::erase_if(first.products, [&](const Thread::Product& p) {
    if (p.group + static_cast<uint64_t>(i.imm) >= first.product_groups) return false;
    form(first, p);
    return true;
  });
  const std::vector<uint32_t>& list = first.lists();
  std::erase_if(first.sums, [&](const auto& sum) {
    for (const Thread::Product& p : first.products)
      for (uint32_t e = 0; e < p.at->count; ++e)
        if (list[p.at->first + e] == sum.first) return false;
    for (uint32_t lane = 0; lane < kWarp; ++lane) {
      uint64_t& slot = lanes[lane]->slots[sum.first];
      if (slot != kPoison)
        throw Fault(Fault::Of::Race,
                    "a sum was written while a product was under way, before line " +
                        std::to_string(i.line));
      slot = sum.second[lane];
    }
    return true;
  });
  if (first.products.empty()) first.may_change_sums = false;
}

void meet_as_warp(Decoder& d, WarpHandler run) {
  d.out.step = Step::WarpSync;
  d.out.run_warp = run;
  d.out.members = d.constant(0xFFFFFFFFu);
}

void decode_product(Decoder& d) {
  constexpr std::string_view kShapes[] = {"m64n64k16", "m64n128k16", "m64n256k16"};
  const int shape = d.take_one(std::span(kShapes));
  if (shape < 0 || !d.take("f32")) d.refuse("has no such shape, of .f32 sums");
  const int kind = d.take_one({"f16", "bf16"});
  if (kind < 0 || d.take_one({"f16", "bf16"}) != kind) d.refuse("has operands of one type");
  d.end(8);
  d.out.count = 32u << shape;
  const Operand& sums = d.operand(0);
  if (sums.form != Operand::Form::Vector || sums.parts.size() != d.out.count)
    d.refuse("needs a vector of " + std::to_string(d.out.count));
  std::vector<uint32_t> slots;
  for (const Operand& part : sums.parts) slots.push_back(d.destination(part, kB32, true));
  d.out.a = d.source(1, kB64);
  d.out.b = d.source(2, kB64);
  d.out.c = d.predicate(d.operand(3));
  if (d.number(4) != 1 || d.number(5) != 1) d.refuse("of negated operands is not known");
  d.out.mode = static_cast<uint8_t>((d.number(6) != 0 ? kTurnsA : 0) |
                                    (d.number(7) != 0 ? kTurnsB : 0) | (kind == 1 ? kIsBfloat : 0));
  d.out.first = d.list(slots);
  meet_as_warp(d, begin);
}

// wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 {d, ..}, a, b, p, 1, 1, turned a, turned b; and
// of bf16; wgmma.fence, wgmma.commit_group, wgmma.wait_group n.
void decode_wgmma(Decoder& d) {
  const int what = d.take_one({"mma_async", "fence", "commit_group", "wait_group"});
  if (what < 0 || !d.take("sync") || !d.take("aligned")) d.refuse("needs .sync.aligned");
  if (what == 0) return decode_product(d);
  d.end(what == 3 ? 1 : 0);
  if (what == 1)
    return meet_as_warp(
        d, [](const Instruction&, Thread* const* lanes) { lanes[0]->may_change_sums = true; });
  if (what == 2)
    return meet_as_warp(
        d, [](const Instruction&, Thread* const* lanes) { ++lanes[0]->product_groups; });
  d.out.imm = d.number(0);
  meet_as_warp(d, wait);
}

}  // namespace

std::vector<Decode> warpgroup_decoders() {
  return {{"wgmma", decode_wgmma}};
}

}  // namespace tiny::emulation
