// What a context keeps of its work with the setting `viz`, for tiny_context_record: the graphs, the
// kernels pass by pass with the rules that fired, the programs.  Belongs to the thread that builds.
//
// Everything is JSON as soon as it happens, since nodes do not stay.  Beyond a number of bytes what
// is new is left out, and counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "codegen/pipeline.h"
#include "ir/kernel.h"
#include "ir/rewrite.h"
#include "ir/uop.h"
#include "schedule/pipeline.h"

namespace tiny {

struct Plan;

class Recorder {
 public:
  // A graph that is computed or compiled, before any pass.
  void graph(std::span<const UOp> outputs);
  void graph_pass(const GraphPassNote& note);
  // From here on passes and rewrites are of this kernel, up to lowered().
  void begin_kernel(const Kernel& kernel);
  void pass(const PassTime& pass, const std::string& text);
  void rewrite(const RewriteStep& step);
  void lowered(const Kernel& kernel, const CodegenResult& result);
  // Of the kernel with the program's name: its code.
  void rendered(const LinearProgram& program, const std::string& c, const std::string& listing);
  // Of the last graph.
  void program(const Plan& plan);

  // "graphs", "kernels", "programs" and "left_out" of a JSON object.
  void put(JsonWriter& json) const;

 private:
  struct KernelRecord {
    std::string lowered;  // members of an object
    std::string code;     // the same, or empty
  };
  bool has_room(size_t bytes);
  std::string take_rewrites();
  void end_schedule();

  std::vector<std::string> graphs_;        // objects whose list "passes" is not closed
  std::vector<std::string> graph_passes_;  // of the last one
  std::vector<KernelRecord> kernels_;
  std::map<std::string, size_t> places_;  // by name
  std::vector<std::string> programs_;
  std::string scheduled_;  // the kernel in progress as the scheduler made it
  std::vector<std::string> passes_;
  std::string last_text_;
  std::vector<std::string> rewrites_;  // since the last pass
  int64_t rewrites_left_out_ = 0;
  size_t bytes_ = 0;
  int64_t left_out_ = 0;
};

}  // namespace tiny
