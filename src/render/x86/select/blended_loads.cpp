#include "render/x86/select/blended_loads.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "render/x86/select/loads.h"
#include "render/x86/select/masks.h"

namespace tiny::x86 {

namespace {

constexpr int64_t kWord = 4;  // bytes of a lane

// Where the lanes lie in as many registers as they are elements apart: each at a place that no
// other has, so that the registers are blended into one.
class Places {
 public:
  explicit Places(const LanePlaces& at)
      : lanes_(at.dtype.lanes), step_(std::abs(at.stride)), turned_(at.stride < 0) {}

  int64_t registers() const { return step_; }
  // The first element of a register.  Numbers of elements an odd number apart differ by their place
  // in a register as they are; of an even number, where each register begins one place earlier.
  int64_t start(int64_t reg) const { return reg * (step_ % 2 == 0 ? lanes_ - 1 : lanes_); }
  bool reaches_beyond(int64_t reg) const { return start(reg) + lanes_ > (lanes_ - 1) * step_ + 1; }
  int64_t place(int64_t lane) const { return element(lane) - start(register_of(lane)); }
  // Those of the register's lanes, of such as `wanted` says, a bit each.
  uint64_t places(int64_t reg, uint64_t wanted) const {
    uint64_t out = 0;
    for (int64_t l = 0; l < lanes_; ++l)
      if (register_of(l) == reg && (wanted >> l & 1)) out |= uint64_t{1} << place(l);
    return out;
  }
  bool are_even() const { return step_ == 2 && !turned_; }

 private:
  int64_t element(int64_t lane) const { return (turned_ ? lanes_ - 1 - lane : lane) * step_; }
  int64_t register_of(int64_t lane) const { return element(lane) / lanes_; }

  int64_t lanes_, step_;
  bool turned_;
};

// Lane l of the result is lane from[l] of the value.
VReg permuted(Emitter& e, VReg value, const std::vector<int64_t>& from) {
  const auto width = static_cast<int64_t>(from.size()) * kWord;
  const bool is_half = width == 16;  // whose lanes are shuffled as bytes
  std::vector<std::byte> numbers(static_cast<size_t>(width), std::byte{0});
  for (size_t l = 0; l < from.size(); ++l)
    for (size_t b = 0; b < (is_half ? kWord : 1); ++b)
      numbers[l * kWord + b] =
          static_cast<std::byte>(is_half ? from[l] * kWord + static_cast<int64_t>(b) : from[l]);
  const VReg index = e.pool_reg(e.pool_bytes(std::move(numbers)), width);
  return is_half ? e.rrm(Opcode::vpshufb, width, value, index)
                 : e.rrm(Opcode::vpermps, width, index, value);
}

// Even lanes of the first register, odd lanes of the second.
VReg evens_and_odds(Emitter& e, int64_t width, VReg low, VReg high) {
  constexpr int64_t kEvenOdd = 0xD8;
  const VReg mixed = e.rrmi(Opcode::vshufps, width, low, high, kEvenOdd);
  return width == 16 ? mixed : e.rri(Opcode::vpermq, width, mixed, kEvenOdd);
}

}  // namespace

VReg load_blended(Emitter& e, const LanePlaces& at, VReg mask, std::optional<uint64_t> known) {
  const Places places(at);
  const int64_t lanes = at.dtype.lanes, width = width_of(at.dtype);
  const uint64_t all = (uint64_t{1} << lanes) - 1, wanted = known.value_or(all) & all;
  const bool is_found = mask != kNoReg && !known;  // by the kernel
  std::vector<int64_t> place_of, lane_at(static_cast<size_t>(lanes));
  for (int64_t l = 0; l < lanes; ++l) {
    place_of.push_back(places.place(l));
    lane_at[static_cast<size_t>(places.place(l))] = l;
  }
  const VReg placed = is_found ? permuted(e, mask, lane_at) : kNoReg;
  const Mem first = at.stride < 0 ? lane_address(e, at, lanes - 1) : at.mem;
  std::vector<std::pair<VReg, uint64_t>> loaded;  // with its lanes' places
  for (int64_t reg = 0; reg < places.registers(); ++reg) {
    const uint64_t mine = places.places(reg, wanted);
    if (mine == 0) continue;
    const Mem mem = offset_by(e, first, places.start(reg) * kWord);
    if (!is_found && wanted == all && !places.reaches_beyond(reg)) {
      loaded.emplace_back(load_plain(e, at.dtype, mem), mine);
      continue;
    }
    VReg under = make_constant_mask(e, mine, lanes, kWord);
    if (is_found) under = e.rrm(Opcode::vandps, width, placed, under);
    loaded.emplace_back(load_masked(e, at.dtype, mem, under), mine);
  }
  if (loaded.empty()) return e.lanes_const(0, kWord, width);
  if (loaded.size() == 2 && places.are_even())
    return evens_and_odds(e, width, loaded[0].first, loaded[1].first);
  VReg blended = loaded.front().first;
  for (size_t i = 1; i < loaded.size(); ++i)
    blended = e.rrmi(Opcode::vblendps, width, blended, loaded[i].first,
                     static_cast<int64_t>(loaded[i].second));
  return permuted(e, blended, place_of);
}

}  // namespace tiny::x86
