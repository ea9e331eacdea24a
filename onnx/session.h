// A loaded model and the programs compiled from it.
//
// A free dimension is a Variable in the programs that run() makes, so that one program serves many
// sizes; 0 and 1 are numbers (broadcasting and squeezing ask for them), and so is a dimension on
// which a decision depends (FreeDimension).  Sizes that come several times in a row, and those
// asked for by compile(), get programs of their own.
//
// A model holds no nodes of a graph: it may be released from any thread, and so may its programs.
// Compiling builds graphs and belongs to the context's thread.
#pragma once

#include <list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/ref.h"
#include "engine/compile.h"
#include "onnx/import/import.h"
#include "onnx/model.h"
#include "tensor/tensor.h"

namespace tiny::onnx {

// A model compiled for certain shapes, or for all that its variables allow.  Immutable; holds no
// nodes.
class ModelProgram : public RefCounted {
 public:
  struct Port {
    std::string name;
    DType dtype;
    Ints shape;  // with the variables at their greatest values
    int64_t bytes = 0;
    int64_t number = -1;                // in the program; < 0: nothing to bind
    std::vector<SizeExpression> sizes;  // the shape, by the variables
    // An output that is the memory of a tensor which the program writes.
    Ref<Storage> captured = {};
  };
  std::vector<ProgramVariable> variables;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  CompiledProgram compiled;
  double import_seconds = 0;
};

// One execution after the other of a program, each output in memory of its own.
class ModelRun : public RefCounted {
 public:
  // `values` are those of the program's variables.
  ModelRun(Ref<Context> context, Ref<const ModelProgram> program, const Ints& values = {});

  // The tensor must have the program's dtype and shape; it is computed now if need be, and its
  // memory is kept until another is set.  Belongs to the context's thread; the other calls do not.
  void set_input(size_t index, const Tensor& tensor);
  // Error{InvalidArgument} that names the inputs that are not bound.
  void execute();
  // Of the last execution; null for an output without elements.
  const Ref<Storage>& output(size_t index) const { return outputs_[index]; }
  // Copies an output's elements, row-major.
  void read_output(size_t index, void* data) const;
  // An output of the last execution as a tensor; the next has other memory.  Belongs to the
  // context's thread.
  Tensor take_output(size_t index);
  void set_timed(bool timed);
  void set_cancel(Ref<CancelToken> token);
  // Lets go of the memory of inputs and outputs; before the next execution outputs are renewed.
  void let_go();
  void renew_outputs();
  // Of each kernel of the last timed execution.
  std::span<const double> seconds() const;
  const ModelProgram& program() const { return *program_; }
  // Of the program's variables.
  const Ints& values() const { return values_; }
  // The program's outputs, with the shapes of this run.
  const std::vector<ModelProgram::Port>& output_ports() const { return output_ports_; }

 private:
  Ref<Context> context_;
  Ref<const ModelProgram> program_;
  Ints values_;
  std::vector<ModelProgram::Port> input_ports_;
  std::vector<ModelProgram::Port> output_ports_;
  Ref<Run> run_;  // null for a program that has nothing to compute
  std::vector<bool> bound_;
  std::vector<Ref<Storage>> outputs_;
};

class LoadedModel : public RefCounted {
 public:
  // Reads and checks the file.
  LoadedModel(const Ref<Context>& context, const std::string& path);
  // From a model already read.
  LoadedModel(Ref<Context> context, Model model);

  const Ref<Context>& context() const { return context_; }
  const Model& model() const { return model_; }

  // The inputs that a caller gives: those of the graph without an initializer.
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return model_.graph.outputs.size(); }
  const ValueInfo& input(size_t index) const { return model_.graph.inputs[inputs_[index]]; }
  const ValueInfo& output(size_t index) const { return model_.graph.outputs[index]; }
  // Error{InvalidArgument} that lists the names if there is no such.
  size_t input_index(const std::string& name) const;
  size_t output_index(const std::string& name) const;
  // Error{Unsupported} for a type that the engine has not.
  DType input_dtype(size_t index) const;
  // Whether shapes may depend on the input's elements.
  bool is_host_input(size_t index) const;

  // The program for inputs of these shapes (one per input), made or found.  `known` (empty, or one
  // per input) holds the elements of inputs that shapes depend on; they are part of the key.
  Ref<const ModelProgram> compile(const std::vector<Ints>& shapes,
                                  const std::vector<std::optional<HostTensor>>& known = {});
  // The shapes of inputs whose dimensions are all fixed by the model; Error{InvalidArgument} names
  // one that is not.
  std::vector<Ints> fixed_shapes() const;

  // Arithmetic operations of one run; none if a shape is free or something is not supported.
  std::optional<double> operations();

  // Outputs for these inputs; computes inputs that have no memory yet.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs);

  // Every program that is kept, the latest used first.
  std::vector<Ref<const ModelProgram>> programs() const;

 private:
  using Known = std::vector<std::optional<HostTensor>>;
  struct Key {
    std::vector<Ints> shapes;  // a variable's place has kFree
    std::vector<std::string> known;
    bool operator==(const Key&) const = default;
  };
  // The value of a free dimension that an input's shape gives.
  struct FreeDim {
    std::string name;
    int64_t value = 0;
    bool is_variable = true;
  };

  // The graph for inputs of these shapes, built anew.
  struct Imported {
    std::vector<int64_t> numbers;  // of the inputs, among `nodes`; < 0: it has no elements
    std::vector<UOp> nodes;
    Tensors outputs;
  };

  void index_inputs();
  Imported import(const std::vector<Shape>& shapes, const Known& known);
  void check_shapes(const std::vector<Ints>& shapes) const;
  Ref<const ModelProgram> make_program(const std::vector<Shape>& shapes,
                                       const std::vector<UOp>& variables, const Known& known);
  std::string dim_name(size_t index, size_t axis) const;
  std::vector<FreeDim> free_dims(const std::vector<Ints>& shapes, const Known& known) const;
  Ref<const ModelProgram> find_program(const Key& wanted, bool shared);
  void keep(Key key, const Ref<const ModelProgram>& program);
  Ref<const ModelProgram> program_for(const std::vector<Ints>& shapes, const Known& known);
  Ref<const ModelProgram> symbolic_program(const std::vector<Ints>& shapes, const Known& known,
                                           std::vector<std::string>& failed);

  Ref<Context> context_;
  Model model_;
  std::vector<size_t> inputs_;       // positions among the graph's inputs
  std::vector<size_t> host_inputs_;  // of them, those whose elements decide shapes
  Weights weights_;
  std::list<std::pair<Key, Ref<const ModelProgram>>> programs_;  // the latest used first
  Ref<ModelRun> idle_;  // of the last run(): its arena serves the next of the same program
  std::set<std::string> numbers_;  // free dimensions that cannot be variables
  Key last_;                       // of the latest run, and how many in a row had it
  int64_t repeats_ = 0;
};

}  // namespace tiny::onnx
