// Products of matrices of a warp, and how their fragments are loaded: PTX ISA, "Warp-level matrix
// instructions".  Written from the manual's drawings, not from the table that codegen has.
#include <array>
#include <bit>
#include <cstring>

#include "base/half.h"
#include "tests/emulation/ptx_decode.h"
#include "tests/emulation/ptx_machine.h"

namespace tiny::emulation {

namespace {

enum : uint8_t { kHalf, kBfloat, kTf32 };

constexpr uint32_t kRowsM = 16, kColumnsN = 8, kStepsMax = 16;

// The slots of a vector of so many registers of 32 bits.
void take_vector(Decoder& d, size_t operand, size_t count, bool is_written,
                 std::vector<uint32_t>& slots) {
  const Operand& of = d.operand(operand);
  const bool is_vector = of.form == Operand::Form::Vector;
  const size_t given = is_vector ? of.parts.size() : 1;
  if (given != count) d.refuse("needs a vector of " + std::to_string(count));
  for (size_t i = 0; i < count; ++i) {
    const Operand& part = is_vector ? of.parts[i] : of;
    slots.push_back(is_written ? d.destination(part, kB32, true) : d.source(part, kB32, true));
  }
}

// The value of one element of a register; of tf32 the hardware reads 19 bits.
double element(uint64_t slot, uint32_t half, uint8_t kind) {
  const auto word = static_cast<uint32_t>(slot);
  if (kind == kTf32) return std::bit_cast<float>(word & 0xFFFFE000u);
  const auto bits = static_cast<uint16_t>(word >> (16 * half));
  return kind == kHalf ? float_from_half(bits) : float_from_bfloat(bits);
}

void multiply(const Instruction& i, Thread* const* lanes) {
  std::array<std::array<double, kStepsMax>, kRowsM> a{};
  std::array<std::array<double, kColumnsN>, kStepsMax> b{};
  const std::vector<uint32_t>& list = lanes[0]->lists();
  const uint32_t* d_slots = &list[i.first];
  const uint32_t *a_slots = d_slots + 4, *b_slots = a_slots + 4, *c_slots = b_slots + 2;
  const uint32_t per_word = i.mode == kTf32 ? 1 : 2;
  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    const uint64_t* slots = lanes[lane]->slots;
    const uint32_t group = lane >> 2, in_group = lane & 3;
    for (uint32_t e = 0; e < per_word; ++e) {
      const uint32_t low = in_group * per_word + e, high = low + 4 * per_word;
      a[group][low] = element(slots[a_slots[0]], e, i.mode);
      a[group + 8][low] = element(slots[a_slots[1]], e, i.mode);
      a[group][high] = element(slots[a_slots[2]], e, i.mode);
      a[group + 8][high] = element(slots[a_slots[3]], e, i.mode);
      b[low][group] = element(slots[b_slots[0]], e, i.mode);
      b[high][group] = element(slots[b_slots[1]], e, i.mode);
    }
  }
  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    uint64_t* slots = lanes[lane]->slots;
    std::array<uint32_t, 4> results{};
    for (uint32_t e = 0; e < 4; ++e) {
      const uint32_t row = (lane >> 2) + (e >= 2 ? 8 : 0), column = (lane & 3) * 2 + (e & 1);
      double sum = std::bit_cast<float>(static_cast<uint32_t>(slots[c_slots[e]]));
      for (uint32_t k = 0; k < 8 * per_word; ++k) sum += a[row][k] * b[k][column];
      results[e] = std::bit_cast<uint32_t>(static_cast<float>(sum));
    }
    for (uint32_t e = 0; e < 4; ++e) slots[d_slots[e]] = results[e];
  }
}

// mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 d, a, b, c, and the same of bf16; m16n8k8 of
// tf32.
void decode_mma(Decoder& d) {
  if (!d.take("sync") || !d.take("aligned")) d.refuse("needs .sync.aligned");
  const int shape = d.take_one({"m16n8k16", "m16n8k8"});
  if (shape < 0 || !d.take("row") || !d.take("col")) d.refuse("has no such shape");
  if (!d.take("f32")) d.refuse("is of .f32 sums");
  const int kind = d.take_one({"f16", "bf16", "tf32"});
  if (kind < 0 || (kind == kTf32) != (shape == 1)) d.refuse("has no such operands");
  if (d.take_one({"f16", "bf16", "tf32"}) != kind || !d.take("f32"))
    d.refuse("has operands of one type, and .f32 sums");
  d.end(4);
  std::vector<uint32_t> slots;
  take_vector(d, 0, 4, true, slots);
  take_vector(d, 1, 4, false, slots);
  take_vector(d, 2, 2, false, slots);
  take_vector(d, 3, 4, false, slots);
  d.out.step = Step::WarpSync;
  d.out.mode = static_cast<uint8_t>(kind);
  d.out.run_warp = multiply;
  d.out.first = d.list(slots);
  d.out.members = d.constant(0xFFFFFFFFu);
}

// Each lane brings the address of one row of 16 bytes.
void load_matrices(const Instruction& i, Thread* const* lanes) {
  std::array<std::array<std::array<uint16_t, 8>, 8>, 4> matrices{};
  for (uint32_t lane = 0; lane < 8 * i.count; ++lane) {
    Thread& thread = *lanes[lane];
    const uint64_t address = thread.slots[i.a] + static_cast<uint64_t>(i.imm);
    std::memcpy(matrices[lane / 8][lane % 8].data(),
                thread.machine->resolve(i, address, 16, Access::Read, thread), 16);
  }
  const std::vector<uint32_t>& list = lanes[0]->lists();
  for (uint32_t lane = 0; lane < kWarp; ++lane)
    for (uint32_t of = 0; of < i.count; ++of) {
      const auto& m = matrices[of];
      const uint32_t row = lane / 4, first = 2 * (lane % 4);
      const uint32_t low = i.mode != 0 ? m[first][row] : m[row][first];
      const uint32_t high = i.mode != 0 ? m[first + 1][row] : m[row][first + 1];
      lanes[lane]->slots[list[i.first + of]] = low | high << 16;
    }
}

// ldmatrix.sync.aligned.m8n8.x2{.trans}.shared.b16 {a, b}, [address], and .x1, .x4.
void decode_ldmatrix(Decoder& d) {
  if (!d.take("sync") || !d.take("aligned") || !d.take("m8n8"))
    d.refuse("needs .sync.aligned.m8n8");
  const int count = d.take_one({"x1", "x2", "x4"});
  if (count < 0) d.refuse("needs .x1, .x2 or .x4");
  d.out.mode = d.take("trans") ? 1 : 0;
  if (!d.take("shared") || d.type() != kB16) d.refuse("is of .shared.b16");
  d.end(2);
  d.out.count = 1u << count;
  d.out.space = Space::Shared;
  std::vector<uint32_t> slots;
  take_vector(d, 0, d.out.count, true, slots);
  d.address(d.operand(1));
  d.out.step = Step::WarpSync;
  d.out.run_warp = load_matrices;
  d.out.first = d.list(slots);
  d.out.members = d.constant(0xFFFFFFFFu);
}

void begin_copy(const Instruction& i, uint64_t* slots, Thread& thread) {
  const auto valid = static_cast<uint32_t>(i.count != 0 ? slots[i.c] : i.bytes);
  if (valid > i.bytes)
    throw Fault(Fault::Of::Address,
                "a copy of more than its bytes, at line " + std::to_string(i.line));
  thread.machine->begin_copy(i,
                             {slots[i.a] + static_cast<uint64_t>(i.imm),
                              slots[i.b] + i.mask,  // the offset
                              i.bytes, valid, thread.groups, &i},
                             thread);
}
void commit(const Instruction&, uint64_t*, Thread& thread) {
  ++thread.groups;
}
void wait_for_copies(const Instruction& i, uint64_t*, Thread& thread) {
  thread.machine->end_copies(thread, static_cast<uint64_t>(i.imm));
}

// cp.async.ca.shared.global [to], [from], 4|8|16{, valid}; cp.async.cg of 16 bytes;
// cp.async.commit_group; cp.async.wait_group n.
void decode_copy(Decoder& d) {
  if (!d.take("async")) d.refuse("needs .async");
  if (d.take("commit_group")) {
    d.end(0);
    d.out.run = commit;
    return;
  }
  if (d.take("wait_group")) {
    d.end(1);
    d.out.imm = d.number(0);
    d.out.run = wait_for_copies;
    return;
  }
  const int cache = d.take_one({"ca", "cg"});
  if (cache < 0 || !d.take("shared") || !d.take("global")) d.refuse("is .ca or .cg .shared.global");
  d.end(3, 4);
  const int64_t bytes = d.number(2);
  if (bytes != 16 && (cache == 1 || (bytes != 4 && bytes != 8)))
    d.refuse("copies 4, 8 or 16 bytes");
  d.out.bytes = static_cast<uint8_t>(bytes);
  d.address(d.operand(1));
  d.out.b = d.out.a;
  d.out.mask = static_cast<uint64_t>(d.out.imm);
  d.out.space = Space::Shared;
  d.address(d.operand(0));
  d.out.count = d.operands.size() == 4 ? 1 : 0;
  if (d.out.count != 0) d.out.c = d.source(3, kU32);
  d.out.run = begin_copy;
}

}  // namespace

std::vector<Decode> matrix_decoders() {
  return {{"mma", decode_mma}, {"ldmatrix", decode_ldmatrix}, {"cp", decode_copy}};
}

}  // namespace tiny::emulation
