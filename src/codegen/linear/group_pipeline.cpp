#include "codegen/linear/group_pipeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/checked.h"
#include "base/matrix.h"
#include "codegen/linear/group_products.h"

namespace tiny {

namespace {

// A marked loop: its body is a part that fills, up to the last barrier that stands in no other
// block, and a part that computes.
struct MarkedLoop {
  LinearId head = 0, end = 0, compute = 0;
  int64_t rooms = 1;
  std::set<int64_t> filled;      // Shared, by offset
  bool leaves_products = false;  // of a step under way in the next one

  int64_t ahead() const { return rooms - (leaves_products ? 2 : 1); }
};

class Pipeliner {
 public:
  explicit Pipeliner(LinearProgram& program) : from_(program.ops), program_(program) {}

  // Whether there was a marked loop.
  bool run() {
    const std::optional<MarkedLoop> loop = find();
    if (!loop) return false;
    loop_ = *loop;
    program_.ops.clear();
    from_[loop_.head].aux = 0;
    map_.assign(from_.size(), 0);
    if (!can_run_ahead()) {
      program_.ops = std::move(from_);
      return true;
    }
    loop_.leaves_products = may_leave_products();
    lay_out();
    for (LinearId i = 0; i < loop_.head; ++i) keep(i);
    write_loop();
    for (LinearId i = loop_.end + 1; i < from_.size(); ++i) keep(i);
    return true;
  }

 private:
  using Map = std::map<LinearId, LinearId>;  // ops of a copy

  std::optional<MarkedLoop> find() const {
    MarkedLoop found;
    const auto is_marked = [](const LinearOp& op) { return op.op == Op::Loop && op.aux > 1; };
    const auto head = std::ranges::find_if(from_, is_marked);
    if (head == from_.end()) return std::nullopt;
    found.head = static_cast<LinearId>(head - from_.begin());
    found.rooms = head->aux;
    found.compute = found.head + 1;
    int depth = 0;
    for (found.end = found.head + 1;; ++found.end) {
      const LinearOp& op = from_[found.end];
      if (op.op == Op::EndLoop && op.src[0] == found.head) return found;
      if (op.op == Op::Loop || op.op == Op::If) ++depth;
      if (op.op == Op::EndLoop || op.op == Op::EndIf) --depth;
      if (op.op == Op::Barrier && depth == 0) found.compute = found.end + 1;
    }
  }

  LinearId root(LinearId address) const {
    while (from_[address].op == Op::Address) address = from_[address].src[0];
    return address;
  }
  bool is_shared(LinearId address) const { return from_[root(address)].op == Op::Shared; }
  bool is_access(const LinearOp& op) const {
    return op.op == Op::Load || op.op == Op::Store || op.op == Op::LoadMatrix;
  }

  // The part that fills does nothing else, the part that computes fills nothing, and nobody else
  // has the rooms.
  bool can_run_ahead() {
    if (from_[loop_.head].imm != 1) return false;
    for (LinearId i = loop_.head + 1; i < loop_.compute; ++i) {
      const LinearOp& op = from_[i];
      if (op.op == Op::Store && !is_shared(op.src[0])) return false;
      if (op.op == Op::Store) loop_.filled.insert(from_[root(op.src[0])].imm);
      const bool reads_shared =
          (op.op == Op::Load || op.op == Op::LoadMatrix) && is_shared(op.src[0]);
      if (reads_shared || op.op == Op::Check || op.op == Op::GroupFold || op.op == Op::Mma)
        return false;
    }
    const auto has_room = [&](LinearId i) {
      return is_access(from_[i]) && is_shared(from_[i].src[0]) &&
             loop_.filled.contains(from_[root(from_[i].src[0])].imm);
    };
    for (LinearId i = 0; i < from_.size(); ++i) {
      const bool computes =
          i >= loop_.compute && i<loop_.end, fills = i> loop_.head && !computes && i < loop_.end;
      if (has_room(i) && !computes && !fills) return false;
      if (computes &&
          (from_[i].op == Op::Barrier || (from_[i].op == Op::Store && is_shared(from_[i].src[0]))))
        return false;
    }
    return !loop_.filled.empty();
  }
  bool may_leave_products() const {
    const std::span computed(from_.begin() + loop_.compute, from_.begin() + loop_.end);
    return loop_.rooms >= kRoomsOfProducts && std::ranges::any_of(computed, multiplies_shared) &&
           std::ranges::none_of(computed, [&](const LinearOp& op) {
             return op.op == Op::Load || ends_products(from_, op);
           });
  }

  // Where each piece of the group's memory is once some have several rooms.
  void lay_out() {
    const bool is_shared = std::ranges::any_of(from_, multiplies_shared);
    const int64_t alignment = is_shared ? kMatrixBlock : kMatrixLine;
    std::set<int64_t> pieces;
    for (const LinearOp& op : from_)
      if (op.op == Op::Shared) pieces.insert(op.imm);
    int64_t used = 0;
    for (auto piece = pieces.begin(); piece != pieces.end(); ++piece) {
      const auto next = std::next(piece);
      int64_t bytes = (next == pieces.end() ? program_.shared_bytes : *next) - *piece;
      const bool is_ring = loop_.filled.contains(*piece);
      if (is_ring) bytes = round_up(bytes, alignment);
      used = round_up(used, alignment);
      places_[*piece] = {used, bytes};
      used += is_ring ? bytes * loop_.rooms : bytes;
    }
    program_.shared_bytes = used;
  }

  LinearId add(Op op, DType dtype, std::initializer_list<LinearId> src = {}, int64_t imm = 0,
               int32_t aux = 0) {
    return program_.add(op, dtype, src, imm, aux);
  }
  LinearId number(int64_t value) { return add(Op::Const, kInt64, {}, value); }
  LinearId arithmetic(Op op, LinearId a, int64_t b) { return add(op, kInt64, {a, number(b)}); }

  // An op as it was, outside of what changes.
  void keep(LinearId i) {
    LinearOp op = from_[i];
    for (size_t s = 0; s < op.count; ++s) op.src[s] = map_[op.src[s]];
    if (op.op == Op::Shared) op.imm = places_.at(op.imm).first;
    map_[i] = static_cast<LinearId>(program_.ops.size());
    program_.ops.push_back(op);
  }

  // The op in a copy whose rooms are those of `room`: what is not copied is as it was, but
  // addresses in rooms.
  LinearId in_copy(LinearId i, Map& copied, LinearId room) {
    if (const auto found = copied.find(i); found != copied.end()) return found->second;
    const LinearOp& op = from_[i];
    LinearId made = map_[i];
    if (op.op == Op::Shared && loop_.filled.contains(op.imm))
      made = add(Op::Address, kAddress, {map_[i], room}, places_.at(op.imm).second);
    else if (op.op == Op::Address && is_shared(i) && loop_.filled.contains(from_[root(i)].imm))
      made =
          add(Op::Address, kAddress, {in_copy(op.src[0], copied, room), map_[op.src[1]]}, op.imm);
    else
      return made;
    copied[i] = made;
    return made;
  }
  void copy(LinearId i, Map& copied, LinearId room) {
    LinearOp op = from_[i];
    for (size_t s = 0; s < op.count; ++s) op.src[s] = in_copy(op.src[s], copied, room);
    copied[i] = static_cast<LinearId>(program_.ops.size());
    program_.ops.push_back(op);
  }

  // What a copy needs of the ops before the loop, made where all of it sees them.
  Map begin_copy(LinearId step, LinearId room) {
    Map copied{{loop_.head, step}};
    for (LinearId i = 0; i < loop_.head; ++i) in_copy(i, copied, room);
    return copied;
  }

  // Fills the room with what is wanted in this step.
  void fill(LinearId step, LinearId room) {
    Map copied = begin_copy(step, room);
    for (LinearId i = loop_.head + 1; i < loop_.compute; ++i) {
      if (from_[i].op == Op::Barrier) continue;
      if (from_[i].op == Op::Store && copy_ahead(i, copied, room)) continue;
      copy(i, copied, room);
    }
  }

  // How many bytes of the masked lanes of a load are there; none where they are not the first ones.
  std::optional<LinearId> valid_bytes(const LinearOp& load, int64_t bytes, Map& copied,
                                      LinearId room) {
    if (load.count == 2) return number(bytes);
    const LinearOp& mask = from_[load.src[2]];
    if (mask.op == Op::Broadcast)
      return add(Op::Where, kInt64, {in_copy(mask.src[0], copied, room), number(bytes), number(0)});
    if (mask.op != Op::LaneRange) return std::nullopt;
    const LinearOp& low = from_[mask.src[0]];
    if (low.op != Op::Const || low.imm != 0) return std::nullopt;
    const LinearId high = in_copy(mask.src[1], copied, room);
    const LinearId some = arithmetic(Op::Min, arithmetic(Op::Max, high, 0), load.dtype.lanes);
    return arithmetic(Op::Mul, some, load.dtype.element().bytes());
  }

  // A store of what was loaded just so becomes a copy.
  bool copy_ahead(LinearId i, Map& copied, LinearId room) {
    const LinearOp& store = from_[i];
    const LinearOp& load = from_[store.src[2]];
    if (load.op != Op::Load || store.src[2] < loop_.head || store.count > 3) return false;
    if (from_[root(load.src[0])].op != Op::Param) return false;
    const int64_t bytes = load.dtype.bytes() * load.dtype.lanes,
                  element = load.dtype.element().bytes();
    if (bytes != 4 && bytes != 8 && bytes != 16) return false;
    const auto is_run = [&](const LinearOp& op) {
      return (load.dtype.lanes == 1 || op.aux == 1) && from_[op.src[1]].dtype.lanes == 1;
    };
    if (!is_run(store) || !is_run(load)) return false;
    const auto place = [&](const LinearOp& op) {
      const LinearId at =
          add(Op::Address, kAddress,
              {in_copy(op.src[0], copied, room), in_copy(op.src[1], copied, room)}, element);
      return op.imm == 0 ? at : add(Op::Address, kAddress, {at, number(op.imm)}, 1);
    };
    const std::optional<LinearId> valid = valid_bytes(load, bytes, copied, room);
    if (!valid) return false;
    const LinearId to = place(store);
    add(Op::CopyAsync, kVoid, {to, place(load), *valid}, element, static_cast<int32_t>(bytes));
    return true;
  }

  // The ops of the part that fills which the other part needs.
  std::vector<bool> needed_to_compute() const {
    std::vector<bool> needed(from_.size());
    for (LinearId i = loop_.end; i-- > loop_.head + 1;) {
      if (i < loop_.compute && !needed[i]) continue;
      for (size_t s = 0; s < from_[i].count; ++s) needed[from_[i].src[s]] = true;
    }
    return needed;
  }

  void guarded_fill(LinearId step, LinearId room) {
    const LinearId is_there = add(Op::Less, kBool, {step, map_[from_[loop_.head].src[1]]});
    const LinearId branch = add(Op::If, kVoid, {is_there});
    fill(step, room);
    add(Op::EndIf, kVoid, {branch});
    add(Op::Commit, kVoid);
  }

  void write_loop() {
    const LinearOp head = from_[loop_.head];
    const LinearId begin = map_[head.src[0]];
    const int64_t ahead = loop_.ahead();
    // Around this loop there may be another, in whose last trip all may still compute.
    add(Op::Barrier, kVoid);
    for (int64_t s = 0; s < ahead; ++s) guarded_fill(arithmetic(Op::Add, begin, s), number(s));
    const LinearId loop = add(Op::Loop, kInt64, {begin, map_[head.src[1]]}, 1);
    map_[loop_.head] = loop;
    add(Op::WaitCopies, kVoid, {}, ahead - 1);
    add(Op::Barrier, kVoid);
    const LinearId number_of_step = number_of(loop, begin);
    const auto room_of = [&](LinearId step) { return arithmetic(Op::FloorMod, step, loop_.rooms); };
    const auto fill_ahead = [&] {
      guarded_fill(arithmetic(Op::Add, loop, ahead),
                   room_of(arithmetic(Op::Add, number_of_step, ahead)));
    };
    if (!loop_.leaves_products) fill_ahead();
    const LinearId room = room_of(number_of_step);
    const std::vector<bool> needed = needed_to_compute();
    Map copied = begin_copy(loop, room);
    for (LinearId i = loop_.head + 1; i < loop_.end; ++i)
      if (i >= loop_.compute || needed[i]) copy(i, copied, room);
    if (loop_.leaves_products) {
      add(Op::CommitMmas, kVoid);
      fill_ahead();
      add(Op::WaitMmas, kVoid, {}, 1);
    }
    add(Op::EndLoop, kVoid, {loop});
    if (loop_.leaves_products) add(Op::WaitMmas, kVoid, {}, 0);
  }

  // Steps from the first one.
  LinearId number_of(LinearId step, LinearId begin) {
    if (program_.ops[begin].op == Op::Const && program_.ops[begin].imm == 0) return step;
    return add(Op::Add, kInt64, {step, add(Op::Mul, kInt64, {begin, number(-1)})});
  }

  std::vector<LinearOp> from_;
  LinearProgram& program_;
  MarkedLoop loop_;
  std::vector<LinearId> map_;                              // of ops outside of copies
  std::map<int64_t, std::pair<int64_t, int64_t>> places_;  // offset: the new one, bytes of a room
};

}  // namespace

void run_copies_ahead(LinearProgram& program) {
  while (Pipeliner(program).run()) {
  }
}

}  // namespace tiny
