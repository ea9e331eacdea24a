#include "runtime/interp/group.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"

namespace tiny::interp {

namespace {

int64_t threads_of(const BytecodeHeader& header) {
  return int64_t{header.group[0]} * header.group[1] * header.group[2];
}

int64_t bytes_of_thread(const BytecodeHeader& header) {
  return header.program_scratch_bytes + header.frame_bytes;
}

class GroupRun {
 public:
  GroupRun(const GroupCode& code, const KernelArgs& args)
      : code_(code),
        args_(args),
        threads_(static_cast<size_t>(threads_of(code.header))),
        next_(threads_.size()) {
    const auto& group = code.header.group;
    std::byte* scratch = args.scratch;
    for (size_t t = 0; t < threads_.size(); ++t) {
      static_cast<KernelArgs&>(threads_[t]) = args;
      threads_[t].scratch = scratch;
      threads_[t].worker = static_cast<int64_t>(t);
      threads_[t].thread[0] = static_cast<int64_t>(t % group[0]);
      threads_[t].thread[1] = static_cast<int64_t>(t / group[0] % group[1]);
      threads_[t].thread[2] = static_cast<int64_t>(t / group[0] / group[1]);
      scratch += bytes_of_thread(code.header);
    }
    for (ThreadArgs& t : threads_) t.shared = scratch;
  }

  void run(int64_t group) {
    for (ThreadArgs& t : threads_) {
      t.begin = group;
      t.end = group + 1;
    }
    std::ranges::fill(next_, code_.steps.data());
    while (const Step* meeting = run_to_meeting()) {
      if (meeting->d != 0) meet(code_.meetings[meeting->d - 1], *meeting);
      std::ranges::fill(next_, meeting + 1);
    }
  }

 private:
  std::byte* frame(size_t thread) const {
    return threads_[thread].scratch + code_.header.program_scratch_bytes;
  }

  // Where all threads wait; null if they have ended.
  const Step* run_to_meeting() {
    size_t ended = 0;
    bool do_part = false;
    const Step* meeting = nullptr;
    for (size_t t = 0; t < threads_.size(); ++t) {
      const ThreadArgs& args = threads_[t];
      args.waits_at = nullptr;
      for (const Step* step = next_[t]; step != nullptr;) step = step->run(step, frame(t), &args);
      if (!args.waits_at) ++ended;
      if (args.waits_at && !meeting) meeting = args.waits_at;
      do_part = do_part || args.waits_at != threads_[0].waits_at;
    }
    if (ended > 0 && args_.poll->ask(args_.poll)) return nullptr;  // some were to leave early
    require(!do_part, Status::Internal, "kernel ", code_.name,
            ": threads of a group part before they meet");
    return meeting;
  }

  void meet(const GroupMeeting& of, const Step& meeting) {
    if (!of.is_of_warps) return fold(of, meeting);
    std::array<std::byte*, kWarpThreads> frames{};
    for (size_t first = 0; first < threads_.size(); first += frames.size()) {
      for (size_t lane = 0; lane < frames.size(); ++lane) frames[lane] = frame(first + lane);
      const auto warp = static_cast<int64_t>(first / frames.size());
      if (of.matrices && of.matrices->shares_operands())
        multiply_shared(*of.matrices, meeting, frames, threads_[first].shared,
                        warp % of.matrices->warps);
      else if (of.matrices)
        multiply_matrices(*of.matrices, meeting, frames);
      else
        load_matrices(meeting, frames);
    }
  }

  // What the threads along the axes have brought, combined as by Fold, axis by axis.
  void fold(const GroupMeeting& of, const Step& meeting) {
    const auto slot = static_cast<size_t>(of.slot_bytes);
    AlignedMemory memory(of.slot_bytes * static_cast<int64_t>(3 + threads_.size()));
    std::byte* values = memory.data + 3 * slot;
    for (size_t t = 0; t < threads_.size(); ++t)
      std::memcpy(values + t * slot, frame(t) + meeting.a, slot);
    size_t apart = 1;
    std::vector<size_t> from(threads_.size());  // whose value a thread takes
    for (size_t t = 0; t < from.size(); ++t) from[t] = t;
    for (size_t axis = 0; axis < 3; ++axis) {
      const size_t size = code_.header.group[axis];
      if (meeting.aux >> axis & 1)
        for (size_t half = size / 2; half > 0; half /= 2)
          for (size_t t = 0; t < threads_.size(); ++t)
            if (t / apart % size < half)
              combine(of, memory.data, values + t * slot, values + (t + half * apart) * slot);
      if (meeting.aux >> axis & 1)
        for (size_t& t : from) t -= t / apart % size * apart;
      apart *= size;
    }
    for (size_t t = 0; t < threads_.size(); ++t)
      std::memcpy(frame(t) + meeting.result, values + from[t] * slot, slot);
  }

  static void combine(const GroupMeeting& of, std::byte* frame, std::byte* to,
                      const std::byte* with) {
    const auto slot = static_cast<size_t>(of.slot_bytes);
    std::memcpy(frame, to, slot);
    std::memcpy(frame + slot, with, slot);
    of.combine.run(&of.combine, frame, nullptr);
    std::memcpy(to, frame + 2 * slot, slot);
  }

  const GroupCode& code_;
  const KernelArgs& args_;
  std::vector<ThreadArgs> threads_;
  std::vector<const Step*> next_;
};

}  // namespace

int64_t scratch_bytes(const BytecodeHeader& header) {
  const int64_t threads = header.group[0] == 0 ? 1 : threads_of(header);
  return threads * bytes_of_thread(header) + header.shared_bytes;
}

void run_groups(const GroupCode& code, const KernelArgs& args) {
  GroupRun run(code, args);
  for (int64_t group = args.begin; group < args.end; ++group) {
    if (args.poll->ask(args.poll)) return;
    run.run(group);
  }
}

}  // namespace tiny::interp
