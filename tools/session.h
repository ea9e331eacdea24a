// What run, info, bench and test share: the flags that all of them take, the context made from
// them, a loaded model with its inputs and outputs, and one compiled program with its run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "array.h"
#include "handles.h"
#include "json.h"

namespace tiny::cli {

struct CommonFlags {
  bool json = false;
  bool quiet = false;
  int verbose = 0;
  std::string device;
  std::string isa;
  std::optional<int64_t> threads;
  std::vector<std::string> options;  // KEY=VALUE
  std::optional<int64_t> limit_memory;
  bool no_cache = false;
  std::vector<std::string> dims;    // NAME=N
  std::vector<std::string> shapes;  // INPUT=1x3x224x224
  uint64_t seed = 0;
};

// Where a context computes, as the reports name it.
struct Place {
  std::string device;
  std::string isa;
  int64_t threads = 0;
};

// A context with these flags; a device that this build or machine lacks is exit 4.
Context open_context(const CommonFlags& flags);
// One that keeps what a file holds, which the device "null" does not.
Context open_context_for_files();
Place place_of(const Context& context);
// tiny_devices' report.
Json devices_report();

struct Port {
  std::string name;
  tiny_dtype dtype = 0;
  bool has_rank = true;            // false: the model says nothing of the shape
  std::vector<int64_t> shape;      // -1: free
  std::vector<std::string> names;  // of the free dimensions, "" for none
};

// "float32 [N,3,224,224]".
std::string describe(const Port& port);

// A model file that was read.
class LoadedModel {
 public:
  LoadedModel(const Context& context, std::string path);
  // Asks for the inputs and outputs; to be called before the session's functions and those below.
  // Exit 4 if one is no tensor.
  void read_ports();

  tiny_model* get() const { return model_.get(); }
  const std::string& path() const { return path_; }
  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }
  double load_ms() const { return load_ms_; }
  // tiny_model_info's report.
  Json info() const;
  // tiny_model_header's.
  Json header() const;
  // The index of a name; wrong usage with the known names if there is none.
  size_t input_index(const std::string& name) const;
  size_t output_index(const std::string& name) const;

 private:
  Json report_of(decltype(&tiny_model_info) call, const char* name) const;

  std::string path_;
  double load_ms_ = 0;
  Model model_;
  std::vector<Port> inputs_;
  std::vector<std::string> outputs_;
};

// A model compiled for the shapes of its inputs.
//   A model whose shapes depend on its inputs' values has no program: then execute() goes through
//   tiny_model_run, and the figures of the program are what the context counted meanwhile.
class Session {
 public:
  // Copies the arrays' elements, and lets go of them: big inputs need not be there twice.
  Session(const Context& context, const LoadedModel& model, const std::vector<Array*>& inputs);

  // Until the device has done it.
  void execute();
  // The same of another run; of any thread.
  tiny_status execute(tiny_run* run) const;
  // Milliseconds of the first execution, which is made now unless compiling took it.
  double first_run();
  // Another run of the same program, with its own memory; wrong usage if there is no program.
  Run another_run() const;
  std::vector<Array> read_outputs() const;

  tiny_program* program() const { return program_.get(); }
  tiny_run* run() const { return run_.get(); }
  double compile_ms() const { return compile_ms_; }
  // "times_ms" but for "load" and "first_run", "kernels", "memory": of the JSON report.
  Json times() const;
  Json kernels() const;
  Json memory() const;

 private:
  // What tiny_context_counters counts, of kernels and of milliseconds.
  struct Counted {
    uint64_t launched = 0, launched_interpreted = 0, compiled = 0, interpreted = 0;
    double schedule_ms = 0, compile_ms = 0;
  };
  Counted counted() const;
  void compile(const std::vector<Array*>& inputs);
  void compile_by_running();
  void bind(tiny_run* run) const;
  Json kernels_of_runs() const;

  const Context& context_;
  const LoadedModel& model_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> results_;  // of tiny_model_run
  Program program_;
  Run run_;
  double compile_ms_ = 0;
  std::optional<double> first_run_ms_;
  Counted before_, first_;  // without a program: before and after the first execution
  uint64_t executions_ = 0;
};

// Splits KEY=VALUE at the first '='; wrong usage without one.
std::pair<std::string, std::string> split_pair(const std::string& text, const std::string& flag);
// A whole number in [low, high]; wrong usage otherwise.
int64_t parse_integer(const std::string& text, const std::string& what, int64_t low, int64_t high);
// "a, b, c", for messages.
std::string list_text(const std::vector<std::string>& names);

}  // namespace tiny::cli
