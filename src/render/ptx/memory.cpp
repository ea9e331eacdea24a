#include "render/ptx/memory.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "render/ptx/arithmetic.h"

namespace tiny::ptx {
namespace {

constexpr int64_t kMostBytes = 16;  // of one access of a thread

// A place for instructions: a register and a constant that they add to it.
struct Place {
  Operand base;
  int64_t displacement = 0;
};

std::string spelled(const Place& place) {
  const std::string base = Writer::text(place.base, "u64");
  if (place.displacement == 0) return cat("[", base, "]");
  return cat("[", base, "+", place.displacement, "]");
}

// "u8" of bytes: what a register extends as the dtype wants.
std::string memory_type(DType dtype) {
  if (dtype.bits() >= 32) return std::string(bits_type(dtype));
  return cat(dtype.is_signed() ? "s" : "u", dtype.bits());
}

std::string guard(const Operand* condition) {
  return condition ? cat("@", Writer::text(*condition, "pred"), " ") : "";
}

std::string braced(const Value& registers, std::string_view type) {
  if (registers.size() == 1) return Writer::text(registers[0], type);
  std::string out = "{";
  for (size_t i = 0; i < registers.size(); ++i)
    out += cat(i ? ", " : "", Writer::text(registers[i], type));
  return out + "}";
}

class Accesses {
 public:
  Accesses(Writer& out, const Access& access) : out_(out), access_(access) {}

  Place place_of(size_t lane) {
    const int64_t size = access_.dtype.bytes();
    if (access_.index.size() > 1) return place(access_.index[lane], access_.displacement);
    if (!is_known_) first_ = place(access_.index[0], access_.displacement);
    is_known_ = true;
    return within(
        {first_.base, first_.displacement + static_cast<int64_t>(lane) * access_.stride * size});
  }

  // How many lanes from this one on one access takes.
  int64_t lanes_at(int64_t lane) const {
    const int64_t size = access_.dtype.bytes(), left = access_.dtype.lanes - lane;
    int64_t lanes = 1;
    while (is_adjacent() && 2 * lanes <= left && 2 * lanes * size <= kMostBytes &&
           access_.alignment % (2 * lanes * size) == 0 && lane * size % (2 * lanes * size) == 0)
      lanes *= 2;
    return lanes;
  }

  std::string opcode(const char* name, int64_t registers, std::string_view type) const {
    return cat(name, ".", to_string(access_.address.space), access_.passes_caches ? ".cs" : "",
               registers > 1 ? cat(".v", registers) : "", ".", type, " ");
  }

 private:
  bool is_adjacent() const { return access_.index.size() == 1 && access_.stride == 1; }

  Place place(const Operand& index, int64_t displacement) {
    const int64_t size = access_.dtype.bytes();
    if (index.is_constant)
      return within(
          {access_.address.base, static_cast<int64_t>(index.value * static_cast<uint64_t>(size) +
                                                      static_cast<uint64_t>(displacement))});
    return within({address_at(out_, access_.address.base, index, size), displacement});
  }

  // Constants of instructions have 32 bits.
  Place within(const Place& place) {
    if (place.displacement == static_cast<int32_t>(place.displacement)) return place;
    return {out_.make("add", "s64", {place.base, number(place.displacement)}), 0};
  }

  Writer& out_;
  const Access& access_;
  Place first_;
  bool is_known_ = false;
};

// Whether the lanes are all of one predicate, which then guards an access of them all.
bool is_uniform(const Value& mask) {
  return std::ranges::all_of(mask, [&](const Operand& lane) { return lane == mask[0]; });
}

// The lanes of narrow elements that words hold, the lowest first.
void unpack(Writer& out, DType dtype, const Value& words, Value& lanes) {
  const auto bits = static_cast<uint32_t>(dtype.bits());
  for (const Operand& packed : words)
    for (uint32_t at = 0; at < 32; at += bits) {
      if (dtype.is_bool()) {
        const Operand byte = out.make("and", "b32", {packed, word(0xFFu << at)});
        lanes.push_back(out.compare("ne", "u32", {byte, word(0)}));
      } else {
        lanes.push_back(
            out.make("bfe", dtype.is_signed() ? "s32" : "u32", {packed, word(at), word(bits)}));
      }
    }
}

// A bool as a byte.
Operand stored_form(Writer& out, DType dtype, const Operand& lane) {
  return dtype.is_bool() ? out.choose_bits("b32", lane, word(1), word(0)) : lane;
}

Value pack(Writer& out, DType dtype, const Value& value, size_t first, size_t lanes) {
  const auto bits = static_cast<uint32_t>(dtype.bits());
  const uint32_t low = (uint32_t{1} << bits) - 1;
  Value words;
  for (size_t l = 0; l < lanes; l += 32 / bits) {
    Operand all;
    for (uint32_t at = 0, i = 0; at < 32; at += bits, ++i) {
      Operand part = stored_form(out, dtype, value[first + l + i]);
      if (dtype.is_signed() && at + bits < 32) part = out.make("and", "b32", {part, word(low)});
      if (at > 0) part = out.make("shl", "b32", {part, word(at)});
      all = at > 0 ? out.make("or", "b32", {all, part}) : part;
    }
    words.push_back(all);
  }
  return words;
}

Value fresh_registers(Writer& out, File file, int64_t count, bool are_cleared) {
  Value registers;
  for (int64_t i = 0; i < count; ++i) {
    registers.push_back(out.fresh(file));
    if (are_cleared) out.move(registers.back(), {file, true, false, 0});
  }
  return registers;
}

bool is_packed(DType dtype, int64_t lanes) {
  return dtype.bytes() < 4 && lanes * dtype.bytes() >= 4;
}

// So many lanes from one on, as they lie in memory.
Value load_registers(Writer& out, Accesses& at, const Access& access, size_t lane, int64_t lanes,
                     const Operand* condition) {
  const DType dtype = access.dtype;
  const bool packed = is_packed(dtype, lanes);
  const std::string type = packed ? "b32" : memory_type(dtype);
  const int64_t count = packed ? lanes * dtype.bytes() / 4 : lanes;
  Value registers = fresh_registers(out, dtype.bytes() == 8 ? File::Double : File::Word, count,
                                    condition != nullptr);
  const Place place = at.place_of(lane);
  out.line(cat(guard(condition), at.opcode("ld", count, type), braced(registers, type), ", ",
               spelled(place)));
  return registers;
}
// The lanes that they hold, appended to the others.
void add_lanes(Writer& out, DType dtype, int64_t lanes, const Value& registers, Value& result) {
  if (is_packed(dtype, lanes)) return unpack(out, dtype, registers, result);
  for (const Operand& r : registers)
    result.push_back(dtype.is_bool() ? out.compare("ne", "u32", {r, word(0)}) : r);
}

// Whether all of these lanes are there.
Operand all_of(Writer& out, const Access& access, const Value& mask, size_t lane, int64_t lanes) {
  const auto step = static_cast<size_t>(access.is_run ? lanes - 1 : 1);
  Operand all = mask[lane];
  for (size_t l = step; l < static_cast<size_t>(lanes); l += step)
    all = out.make("and", "pred", {all, mask[lane + l]});
  return all;
}

void load_partly(Writer& out, Accesses& at, const Access& access, size_t lane, int64_t lanes,
                 const Value& mask, Value& result) {
  const DType dtype = access.dtype;
  const Operand all = all_of(out, access, mask, lane, lanes);
  const Value registers = load_registers(out, at, access, lane, lanes, &all);
  const bool packed = is_packed(dtype, lanes);
  const Value single = packed ? fresh_registers(out, File::Word, lanes, true) : registers;
  const std::string after = out.fresh_label(), type = memory_type(dtype);
  out.line(cat(guard(&all), "bra ", after));
  for (size_t l = 0; l < single.size(); ++l)
    out.line(cat(guard(&mask[lane + l]), at.opcode("ld", 1, type), Writer::text(single[l], type),
                 ", ", spelled(at.place_of(lane + l))));
  out.label(after);
  if (!packed) return add_lanes(out, dtype, lanes, registers, result);
  Value together, apart;
  add_lanes(out, dtype, lanes, registers, together);
  add_lanes(out, dtype, 1, single, apart);
  for (size_t l = 0; l < together.size(); ++l)
    result.push_back(out.make("or", dtype.is_bool() ? "pred" : "b32", {together[l], apart[l]}));
}

void store_lanes(Writer& out, Accesses& at, const Access& access, size_t lane, int64_t lanes,
                 const Operand* condition, const Value& value) {
  const DType dtype = access.dtype;
  Value registers;
  std::string type = memory_type(dtype);
  if (is_packed(dtype, lanes)) {
    type = "b32";
    registers = pack(out, dtype, value, lane, static_cast<size_t>(lanes));
  } else {
    for (size_t l = 0; l < static_cast<size_t>(lanes); ++l)
      registers.push_back(stored_form(out, dtype, value[lane + l]));
    for (Operand& r : registers)
      if (r.is_constant) r = out.in_register(r);
  }
  const Place place = at.place_of(lane);
  out.line(cat(guard(condition), at.opcode("st", static_cast<int64_t>(registers.size()), type),
               spelled(place), ", ", braced(registers, type)));
}

}  // namespace

const char* to_string(Space space) {
  static constexpr const char* kNames[] = {"global", "shared", "local"};
  return kNames[static_cast<size_t>(space)];
}

Operand address_at(Writer& out, const Operand& base, const Operand& index, int64_t bytes) {
  if (index.is_constant) {
    const uint64_t distance = index.value * static_cast<uint64_t>(bytes);
    return distance == 0 ? base
                         : out.make("add", "s64", {base, number(static_cast<int64_t>(distance))});
  }
  if (index.file == File::Word && bytes == static_cast<int32_t>(bytes)) {
    const Operand result = out.fresh(File::Double);
    out.into(result, "mad.wide", "s32", {index, number(bytes), base});
    return result;
  }
  const Operand wide = index.file == File::Word ? out.convert("", "s64", "s32", index) : index;
  if (bytes == 1) return out.make("add", "s64", {base, wide});
  return out.make("mad.lo", "s64", {wide, number(bytes), base});
}

Value load(Writer& out, const Access& access, const Value& mask) {
  Accesses at(out, access);
  Value result;
  const bool by_lane = !mask.empty() && !is_uniform(mask);
  for (size_t lane = 0; lane < access.dtype.lanes;) {
    const int64_t lanes = at.lanes_at(static_cast<int64_t>(lane));
    if (by_lane && lanes > 1)
      load_partly(out, at, access, lane, lanes, mask, result);
    else
      add_lanes(out, access.dtype, lanes,
                load_registers(out, at, access, lane, lanes, mask.empty() ? nullptr : &mask[lane]),
                result);
    lane += static_cast<size_t>(lanes);
  }
  return result;
}

void store(Writer& out, const Access& access, const Value& value, const Value& mask) {
  Accesses at(out, access);
  const bool by_lane = !mask.empty() && !is_uniform(mask);
  for (size_t lane = 0; lane < access.dtype.lanes;) {
    const int64_t lanes = at.lanes_at(static_cast<int64_t>(lane));
    if (by_lane && lanes > 1) {
      const Operand all = all_of(out, access, mask, lane, lanes);
      store_lanes(out, at, access, lane, lanes, &all, value);
      const std::string after = out.fresh_label();
      out.line(cat(guard(&all), "bra ", after));
      for (size_t l = lane; l < lane + static_cast<size_t>(lanes); ++l)
        store_lanes(out, at, access, l, 1, &mask[l], value);
      out.label(after);
    } else {
      store_lanes(out, at, access, lane, lanes, mask.empty() ? nullptr : &mask[lane], value);
    }
    lane += static_cast<size_t>(lanes);
  }
}

void copy_to_shared(Writer& out, const Copy& copy) {
  constexpr int64_t kLeast = 4;  // bytes that a copy beside the thread takes
  const bool beside =
      copy.runs_beside && copy.from.space == Space::Global && copy.alignment >= kLeast;
  const bool is_whole =
      copy.valid.is_constant && copy.valid.value >= static_cast<uint64_t>(copy.bytes);
  const int64_t most = beside ? kMostBytes : is_whole ? 8 : copy.element_bytes;
  const int64_t unit = std::min({most, copy.alignment, copy.bytes});
  const auto zero = word(0);
  for (int64_t at = 0; at < copy.bytes; at += unit) {
    const std::string to = spelled({copy.to, at}), from = spelled({copy.from.base, at});
    if (beside) {
      std::string size;
      if (!is_whole) {
        Operand left = copy.valid;
        if (at > 0) left = out.make("sub", "s32", {left, word(static_cast<uint32_t>(at))});
        left = out.make("max", "s32", {left, zero});
        left = out.make("min", "s32", {left, word(static_cast<uint32_t>(unit))});
        size = cat(", ", Writer::text(out.in_register(left), "u32"));
      }
      out.line(cat("cp.async.", unit == kMostBytes ? "cg" : "ca", ".shared.global ", to, ", ", from,
                   ", ", unit, size));
      continue;
    }
    const std::string_view type = unit == 8 ? "b64" : unit == 4 ? "b32" : unit == 2 ? "u16" : "u8";
    const Value value = fresh_registers(out, unit == 8 ? File::Double : File::Word, 1, !is_whole);
    std::string when;
    if (!is_whole) {
      const Operand is_there =
          out.compare("gt", "s32", {out.in_register(copy.valid), word(static_cast<uint32_t>(at))});
      when = guard(&is_there);
    }
    out.line(cat(when, "ld.", to_string(copy.from.space), ".", type, " ", braced(value, type), ", ",
                 from));
    out.line(cat("st.shared.", type, " ", to, ", ", braced(value, type)));
  }
}

}  // namespace tiny::ptx
