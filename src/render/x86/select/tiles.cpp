#include "render/x86/select/tiles.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace tiny::x86 {

namespace {

constexpr int64_t kRowBytes = kTileLanes * kWordBytes;  // of a tile

// What LDTILECFG reads (Intel 64 and IA-32 Architectures Software Developer's Manual).
constexpr size_t kConfigBytes = 64;
constexpr size_t kConfigColumns = 16;  // uint16 each: bytes of a row
constexpr size_t kConfigRows = 48;     // a byte each

Mem at(VReg base, int64_t displacement) {
  Mem m;
  m.kind = MemKind::Address;
  m.base = base;
  m.disp = static_cast<int32_t>(displacement);
  return m;
}

Mem slot(uint32_t first, int64_t row) {
  Mem m;
  m.kind = MemKind::Slot;
  m.id = first + static_cast<uint32_t>(row);
  return m;
}

LinearId first_sum(const TileProduct& p) {
  return *std::ranges::min_element(p.sums);
}

}  // namespace

Tiles::Tiles(const LinearProgram& program, Values& values, DotSet kinds)
    : v_(values), e_(values.emitter()), products_(find_tile_products(program, kinds)) {
  if (products_.empty()) return;
  is_tiled_.assign(program.ops.size(), 0);
  int64_t sums = 0, rows = 0;
  for (const TileProduct& p : products_) {
    sums = std::max(sums, p.rows * p.vectors);
    for (const LinearId sum : p.sums) is_tiled_[sum] = 1;
    for (const TileLoop& l : p.loops) {
      if (!l.words.empty()) rows = std::max(rows, p.rows);
      for (LinearId id = l.loop + 1; id < l.end; ++id) {
        const LinearOp& o = v_.op(id);
        is_tiled_[id] =
            o.op == Op::Load || o.op == Op::Broadcast || o.op == Op::Dot || o.op == Op::Set;
      }
    }
  }
  sum_slots_ = e_.add_slots(sums, kRowBytes);
  row_slots_ = e_.add_slots(rows, kRowBytes);
  place_configurations(program);
}

// A configuration takes as long as a dozen products of tiles: it is made before the outermost block
// that has products of its sizes alone.
void Tiles::place_configurations(const LinearProgram& program) {
  const auto are_alike = [](const TileProduct& a, const TileProduct& b) {
    return a.rows == b.rows && a.vectors == b.vectors && a.steps == b.steps;
  };
  for (const TileProduct& p : products_) configured_.push_back(first_sum(p));
  std::vector<LinearId> open{0};  // the program, and blocks in it
  const auto widen = [&](LinearId begin, LinearId end) {
    const TileProduct* inside = nullptr;
    for (const TileProduct& p : products_) {
      if (first_sum(p) < begin || first_sum(p) >= end) continue;
      if (inside && !are_alike(*inside, p)) return;
      inside = &p;
    }
    for (size_t i = 0; i < products_.size(); ++i)
      if (first_sum(products_[i]) >= begin && first_sum(products_[i]) < end) configured_[i] = begin;
  };
  for (LinearId id = 0; id < program.ops.size(); ++id) {
    const Op op = program.ops[id].op;
    if (op == Op::Loop || op == Op::If) open.push_back(id);
    if (op != Op::EndLoop && op != Op::EndIf) continue;
    widen(open.back(), id);
    open.pop_back();
  }
  widen(0, static_cast<LinearId>(program.ops.size()));
}

void Tiles::configure(const TileProduct& p) {
  std::vector<std::byte> config(kConfigBytes, std::byte{0});
  config[0] = std::byte{1};  // the palette
  const auto set = [&](int64_t tile, int64_t rows, int64_t bytes) {
    config[kConfigColumns + 2 * static_cast<size_t>(tile)] = static_cast<std::byte>(bytes);
    config[kConfigRows + static_cast<size_t>(tile)] = static_cast<std::byte>(rows);
  };
  for (int64_t r = 0; r < p.row_tiles(); ++r) {
    set(row_tile(p, r), p.rows_of(r), p.steps * kWordBytes);
    for (int64_t v = 0; v < p.vectors; ++v) set(sum_tile(p, r, v), p.rows_of(r), kRowBytes);
  }
  for (int64_t v = 0; v < p.vectors; ++v) set(vector_tile(p, v), p.steps, kRowBytes);
  Inst& i = e_.emit(Opcode::TileConfig, kRowBytes);
  i.mem.kind = MemKind::Pool;
  i.mem.id = e_.pool_bytes(std::move(config));
}

void Tiles::begin(LinearId id) {
  for (size_t i = 0; i < products_.size(); ++i) {
    const TileProduct& p = products_[i];
    const bool is_first =
        std::ranges::find(configured_, id) - configured_.begin() == static_cast<std::ptrdiff_t>(i);
    if (configured_[i] == id && is_first) configure(p);
    if (first_sum(p) != id) continue;
    for (int64_t t = 0; t < p.row_tiles() * p.vectors; ++t) e_.emit(Opcode::TileZero, 0).imm = t;
  }
}

VReg Tiles::address_of(LinearId load) {
  const LinearOp& o = v_.op(load);
  const Mem mem = v_.address(o.src[0], o.src[1], kWordBytes, o.imm);
  const VReg at = e_.int_reg();
  e_.emit(Opcode::ILea, 8, at).mem = mem;
  return at;
}

void Tiles::load(int64_t tile, Mem at, VReg stride) {
  Inst& i = e_.emit(Opcode::TileLoad, 8);
  i.imm = tile;
  i.mem = at;
  i.mem.index = stride;
}

// The steps of each row into the frame: what is loaded, or as often the constant.
void Tiles::copy_rows(const TileProduct& p, const TileLoop& l, VReg rows) {
  const int64_t bytes = p.steps * kWordBytes;
  for (int64_t r = 0; r < p.rows; ++r) {
    const int64_t word = l.words[static_cast<size_t>(r)];
    VReg value = kNoReg;
    if (word == TileLoop::kLoaded) {
      value = e_.vec_reg(bytes);
      e_.emit(Opcode::VLoad, bytes, value).mem = at(rows, (r - l.first_row) * l.row_bytes);
    } else {
      value = e_.lanes_const(static_cast<uint64_t>(word), kWordBytes, bytes);
    }
    e_.emit(Opcode::VStore, bytes, kNoReg, value).mem = slot(row_slots_, r);
  }
}

int64_t Tiles::multiply(LinearId end_loop) {
  for (const TileProduct& p : products_)
    for (const TileLoop& l : p.loops) {
      if (l.end != end_loop) continue;
      const VReg rows = address_of(l.row), vectors = address_of(l.vector);
      const bool is_copied = !l.words.empty();
      if (is_copied) copy_rows(p, l, rows);
      const VReg row_stride = e_.int_const(is_copied ? kRowBytes : l.row_bytes);
      const VReg step_stride = e_.int_const(l.step_bytes);
      for (int64_t r = 0; r < p.row_tiles(); ++r) {
        const int64_t row = r * p.rows_of(0);
        load(row_tile(p, r), is_copied ? slot(row_slots_, row) : at(rows, row * l.row_bytes),
             row_stride);
        for (int64_t v = 0; v < p.vectors; ++v) {
          if (r == 0) load(vector_tile(p, v), at(vectors, v * l.vector_bytes), step_stride);
          Inst& dot = e_.emit(Opcode::TileDot, 0);
          dot.imm = sum_tile(p, r, v) | row_tile(p, r) << 8 | vector_tile(p, v) << 16;
          dot.width2 =
              static_cast<uint8_t>((p.has_signed_rows ? 1 : 0) | (p.has_signed_vectors ? 2 : 0));
        }
      }
      return p.steps;
    }
  return 1;
}

void Tiles::store(LinearId end_loop) {
  for (const TileProduct& p : products_) {
    if (p.end != end_loop) continue;
    const VReg stride = e_.int_const(kRowBytes);
    for (int64_t v = 0; v < p.vectors; ++v) {
      const auto first = sum_slots_ + static_cast<uint32_t>(v * p.rows);
      for (int64_t r = 0; r < p.row_tiles(); ++r) {
        Inst& i = e_.emit(Opcode::TileStore, 8);
        i.imm = sum_tile(p, r, v);
        i.mem = slot(first, r * p.rows_of(0));
        i.mem.index = stride;
      }
      for (int64_t r = 0; r < p.rows; ++r)
        v_.set_slot(p.sums[static_cast<size_t>(r * p.vectors + v)],
                    first + static_cast<uint32_t>(r));
    }
  }
}

void Tiles::end() {
  if (!products_.empty()) e_.emit(Opcode::TileRelease, 0);
}

}  // namespace tiny::x86
