// Loads, stores and atomic operations.
#include <algorithm>
#include <cstring>

#include "tests/emulation/ptx_decode.h"
#include "tests/emulation/ptx_floats.h"
#include "tests/emulation/ptx_kinds.h"
#include "tests/emulation/ptx_machine.h"

namespace tiny::emulation {

namespace {

template <class T>
uint64_t extended(const std::byte* from, uint64_t mask) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return static_cast<uint64_t>(value) & mask;
}

template <class T>
void load(const Instruction& i, uint64_t* slots, Thread& thread) {
  const uint64_t address = slots[i.a] + static_cast<uint64_t>(i.imm);
  const std::byte* from =
      thread.machine->resolve(i, address, i.count * uint32_t{sizeof(T)}, Access::Read, thread);
  if (i.count == 1) {
    slots[i.d] = extended<T>(from, i.mask);
    return;
  }
  for (uint32_t n = 0; n < i.count; ++n)
    slots[thread.lists()[i.first + n]] = extended<T>(from + n * sizeof(T), i.mask);
}

template <class T>
void load_parameter(const Instruction& i, uint64_t* slots, Thread& thread) {
  const std::byte* from = thread.machine->parameters().data() + i.imm;
  if (i.count == 1) {
    slots[i.d] = extended<T>(from, i.mask);
    return;
  }
  for (uint32_t n = 0; n < i.count; ++n)
    slots[thread.lists()[i.first + n]] = extended<T>(from + n * sizeof(T), i.mask);
}

template <class T>
void store(const Instruction& i, uint64_t* slots, Thread& thread) {
  const uint64_t address = slots[i.a] + static_cast<uint64_t>(i.imm);
  std::byte* to =
      thread.machine->resolve(i, address, i.count * uint32_t{sizeof(T)}, Access::Write, thread);
  for (uint32_t n = 0; n < i.count; ++n) {
    const auto value = static_cast<T>(slots[i.count == 1 ? i.b : thread.lists()[i.first + n]]);
    std::memcpy(to + n * sizeof(T), &value, sizeof(T));
  }
}

template <class Make>
Handler for_memory(Decoder& d, Type type, Make make) {
  if (type.kind == Kind::Predicate || type.lanes != 1) d.refuse("is not of " + to_string(type));
  const bool is_signed = type.kind == Kind::Signed;
  switch (type.bits) {
    case 8:
      return is_signed ? make.template operator()<int8_t>() : make.template operator()<uint8_t>();
    case 16:
      return is_signed ? make.template operator()<int16_t>() : make.template operator()<uint16_t>();
    case 32:
      return is_signed ? make.template operator()<int32_t>() : make.template operator()<uint32_t>();
    default:
      return make.template operator()<uint64_t>();
  }
}

void take_space(Decoder& d) {
  constexpr std::array kSpaces = {Space::Global, Space::Shared, Space::Local, Space::Param};
  const int space = d.take_one({"global", "shared", "local", "param"});
  d.take_one({"shared::cta"});
  if (space >= 0) d.out.space = kSpaces[static_cast<size_t>(space)];
}

// Where in caches: of no meaning to values.
void take_hints(Decoder& d) {
  d.take("volatile");
  d.take("nc");
  d.take_one({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
}

// The slots of a vector or of one value.
void take_values(Decoder& d, const Operand& of, Type type, bool is_written) {
  std::vector<uint32_t> slots;
  const std::span<const Operand> parts =
      of.form == Operand::Form::Vector ? std::span(of.parts) : std::span(&of, 1);
  if (parts.size() != d.out.count) d.refuse("has another number of values than its .v says");
  for (const Operand& part : parts)
    slots.push_back(is_written ? d.destination(part, type, !type.is_float())
                               : d.source(part, type, !type.is_float()));
  d.out.first = d.list(slots);
  (is_written ? d.out.d : d.out.b) = slots.front();
}

void take_shape(Decoder& d, Type type) {
  const int lanes = d.take_one({"v2", "v4"});
  d.out.count = lanes < 0 ? 1 : 2u << lanes;
  d.out.bytes = static_cast<uint8_t>(type.bytes());
  if (d.out.count * type.bytes() > 16) d.refuse("is of more than 16 bytes");
}

void decode_ld(Decoder& d) {
  take_space(d);
  take_hints(d);
  const Type type = d.type();
  take_shape(d, type);
  d.end(2);
  const bool is_parameter = d.out.space == Space::Param;
  d.out.run = is_parameter
                  ? for_memory(d, type, []<class T>() -> Handler { return load_parameter<T>; })
                  : for_memory(d, type, []<class T>() -> Handler { return load<T>; });
  take_values(d, d.operand(0), type, true);
  if (is_parameter)
    d.parameter_address(d.operand(1));
  else
    d.address(d.operand(1));
}

void decode_st(Decoder& d) {
  take_space(d);
  take_hints(d);
  const Type type = d.type();
  take_shape(d, type);
  d.end(2);
  if (d.out.space == Space::Param) d.refuse("parameters are not written");
  d.out.run = for_memory(d, type, []<class T>() -> Handler { return store<T>; });
  d.address(d.operand(0));
  take_values(d, d.operand(1), type, false);
}

constexpr std::string_view kAtomics[] = {"add", "min",  "max", "and", "or",
                                         "xor", "exch", "cas", "inc", "dec"};
enum : uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor, kExch, kCas, kInc, kDec };

template <class T>
T changed(T old, T by, T other, int how) {
  if constexpr (std::floating_point<T>) {
    return old + by;
  } else {
    using U = std::make_unsigned_t<T>;
    switch (how) {
      case kAdd:
        return static_cast<T>(static_cast<U>(old) + static_cast<U>(by));
      case kMin:
        return std::min(old, by);
      case kMax:
        return std::max(old, by);
      case kAnd:
        return old & by;
      case kOr:
        return old | by;
      case kXor:
        return old ^ by;
      case kExch:
        return by;
      case kCas:
        return old == by ? other : old;
      case kInc:
        return old >= by ? T{0} : static_cast<T>(old + 1);
      default:
        return old == 0 || old > by ? by : static_cast<T>(old - 1);
    }
  }
}

template <class T>
void atomic(const Instruction& i, uint64_t* slots, Thread& thread) {
  const uint64_t address = slots[i.a] + static_cast<uint64_t>(i.imm);
  std::byte* at = thread.machine->resolve(i, address, sizeof(T), Access::Atomic, thread);
  T old;
  std::memcpy(&old, at, sizeof(T));
  const T now = changed(old, from_slot<T>(slots[i.b]), from_slot<T>(slots[i.c]), i.mode);
  std::memcpy(at, &now, sizeof(T));
  slots[i.d] = extended<std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>(
      reinterpret_cast<const std::byte*>(&old), ~uint64_t{0});
}

Handler atomic_of(Decoder& d, Type type) {
  if (type == Type{Kind::Float, 32}) return atomic<float>;
  if (type == Type{Kind::Float, 64}) return atomic<double>;
  if (type.is_float() || type.bits < 32) d.refuse("is not of " + to_string(type));
  return for_integer(d, type, []<class T>() -> Handler {
    if constexpr (sizeof(T) >= 4)
      return atomic<T>;
    else
      return nullptr;
  });
}

// What an operation takes: sums and orders numbers, logic and exchanges bits.
bool takes(int how, Type type) {
  if (how == kAdd) return type.kind != Kind::Bits;
  if (how == kMin || how == kMax) return type.is_integer();
  if (how == kInc || how == kDec) return type == kU32;
  return type.kind == Kind::Bits;
}

template <bool kHasResult>
void decode_atomic(Decoder& d) {
  take_space(d);
  if (d.out.space == Space::Local || d.out.space == Space::Param)
    d.refuse("is of global and shared");
  d.take_one({"relaxed", "acquire", "release", "acq_rel"});
  d.take_one({"cta", "gpu", "sys"});
  const int how = d.take_one(kAtomics);
  const Type type = d.type();
  if (how < 0 || !takes(how, type)) d.refuse("has no such operation on " + to_string(type));
  d.out.mode = static_cast<uint8_t>(how);
  d.out.run = atomic_of(d, type);
  const size_t first = kHasResult ? 1 : 0;
  if (!kHasResult && how >= kExch && how <= kCas) d.refuse("gives no result");
  d.end(first + (how == kCas ? 3 : 2));
  if (kHasResult) d.out.d = d.destination(0, type);
  d.address(d.operand(first));
  d.out.b = d.source(first + 1, type);
  if (how == kCas) d.out.c = d.source(first + 2, type);
}

}  // namespace

std::vector<Decode> access_decoders() {
  return {{"ld", decode_ld},
          {"st", decode_st},
          {"atom", decode_atomic<true>},
          {"red", decode_atomic<false>}};
}

}  // namespace tiny::emulation
