// A loaded model and the programs compiled from it.
//
// A free dimension is a Variable in the programs that run() makes, so that one program serves many
// sizes (FreeSizes).  Sizes that come again and again, and those asked for by compile(), get
// programs of their own.
//
// A model holds no nodes of a graph: it may be released from any thread, and so may its programs.
// Compiling builds graphs and belongs to the context's thread.  What is asked about a model is
// answered from what never changes, or in a context made for the question: by any thread.
#pragma once

#include <array>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "onnx/free_sizes.h"
#include "onnx/host_elements.h"
#include "onnx/import/import.h"
#include "onnx/model.h"
#include "onnx/model_value.h"
#include "onnx/output_types.h"
#include "tensor/run.h"
#include "tensor/tensor.h"

namespace tiny::onnx {

// How a value is made of tensors, which stand one after the other: of one, from `leaf` on, or of
// parts.
struct ValueForm {
  ModelValue::Kind kind = ModelValue::Kind::Tensor;
  int32_t type = 0;  // ONNX's, of what the tensor carries (Value::narrow)
  size_t leaf = 0;
  std::shared_ptr<const MapKeys> columns;  // the tensor's rows are maps with these keys
  std::vector<ValueForm> parts;            // of a sequence; of a map its keys and its values
};

// Whether an input of this shape may be read before a program is compiled.
bool may_be_host(const Ints& shape);

// A program of a model.
class ModelProgram : public TensorProgram {
 public:
  std::vector<ValueForm> forms;  // of the outputs
  Ref<const Texts> texts;        // of its constants
  // Whether it has one input more than the model: where the run's texts are (int64 [1]).
  bool looks_into_texts = false;
  // What its one output answers, where a run has to before it can have a program.
  std::optional<Question> question;
  // Made for who has one program for everything, in place of what a run would ask.
  bool is_guessed = false;
};

class LoadedModel : public RefCounted {
 public:
  // Reads and checks the file.
  LoadedModel(const Ref<Context>& context, const std::string& path);
  // The same of its bytes; `folder` is where weights in other files lie; empty refuses them.
  LoadedModel(const Ref<Context>& context, const SharedBytes& bytes, const std::string& folder);
  // From a model already read.
  LoadedModel(Ref<Context> context, Model model);

  const Ref<Context>& context() const { return context_; }
  const Model& model() const { return model_; }

  // The inputs that a caller gives: those of the graph without an initializer.
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return model_.graph.outputs.size(); }
  const ValueInfo& input(size_t index) const { return model_.graph.inputs[inputs_[index]]; }
  const ValueInfo& output(size_t index) const { return model_.graph.outputs[index]; }
  // What the file says of itself, by key: its own fields that are not empty, then its
  // metadata_props.
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }
  // Error{InvalidArgument} that lists the names if there is no such.
  size_t input_index(const std::string& name) const;
  size_t output_index(const std::string& name) const;
  // Error{Unsupported} for a type that the engine has not.
  DType input_dtype(size_t index) const;
  // What an output is before anything runs; null if it has to be inferred first.  `custom_ops` are
  // those that the context has now.
  const OutputType* find_output_type(size_t index, const CustomOps& custom_ops) const;
  // Infers it in `aside`, a context that nobody else has.
  const OutputType& output_type(size_t index, const Ref<Context>& aside) const;
  // Whether shapes may depend on the input's elements.
  bool is_host_input(size_t index) const;

  // The program for inputs of these shapes (one per input), made or found.  `known` (empty, or one
  // per input) holds the elements of inputs that shapes depend on; they are part of the key.
  Ref<const TensorProgram> compile(const std::vector<Ints>& shapes,
                                   const std::vector<std::optional<HostTensor>>& known = {});
  // The same for shapes some of whose dimensions depend on Variables, which its runs bind; made
  // anew.
  Ref<const TensorProgram> compile_free(const std::vector<Shape>& shapes);
  // The shapes of inputs whose dimensions are all fixed by the model; Error{InvalidArgument} names
  // one that is not.
  std::vector<Ints> fixed_shapes() const;

  // The nodes that a program could not be made of, imported in `aside`, a context that nobody else
  // has, for any sizes of free dimensions; by their operators and types alone where an input has
  // no shape, or is one of few elements that may decide shapes.
  std::vector<UnsupportedNode> unsupported(const Ref<Context>& aside) const;
  // Arithmetic operations of one run of a model of which everything is supported, counted in
  // `aside`, a context that nobody else has; none if a shape is free.
  std::optional<double> operations(const Ref<Context>& aside) const;

  // Outputs for these inputs; computes inputs that have no memory yet.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs);
  // The same in steps: begin, execute what it gives, end.  Between the first and the last the
  // context may be another thread's, and other runs be under way; the inputs' memory stays as it
  // is.
  Ref<TensorRun> begin_run(const std::vector<Tensor>& inputs);
  std::vector<Tensor> end_run(Ref<TensorRun> run);
  // The same of values that need not be tensors.
  struct RunTexts {
    Ref<Texts> table;
    uint64_t address = 0;  // the table's, where the run finds it
  };
  struct ValuesRun {
    Ref<const ModelProgram> program;
    std::unique_ptr<RunTexts> texts;
    Ref<TensorRun> run;
  };
  ValuesRun begin_values(const std::vector<ModelValue>& inputs);
  std::vector<ModelValue> end_values(ValuesRun run);
  // Random numbers are those of the first execution again, and so on.
  void set_seed(uint64_t seed) { executions_->begin(seed); }
  // The model as a part of the graph that `inputs` are of: its outputs, not computed.
  std::vector<Tensor> apply(const std::vector<Tensor>& inputs);

  // Every program that is kept, the latest used first.
  std::vector<Ref<const TensorProgram>> programs() const;

 private:
  using Known = std::vector<std::optional<HostTensor>>;
  struct Key {
    std::vector<Ints> shapes;  // a variable's place has FreeSizes::kFree
    std::vector<std::string> known;
    bool operator==(const Key&) const = default;
  };
  // A tensor of the inputs, and what all of them are.
  struct Leaf {
    std::string name;
    DType dtype;
    Shape shape;
    std::optional<HostTensor> known;
  };
  struct Signature {
    std::vector<Leaf> leaves;
    std::vector<ValueForm> inputs;
    // What runs have found out; null: nobody can be asked.
    const std::vector<Decision>* decisions = nullptr;
  };
  // The graph for inputs of a signature, built anew.
  struct Imported {
    std::vector<int64_t> numbers;  // of the leaves, among `nodes`; < 0: it has no elements
    std::vector<UOp> nodes;
    Values outputs;
    std::vector<ComputedVariable> sizes;  // that runs compute
    Ref<const Texts> texts;
    int64_t text_table = -1;           // where runs have their texts, as `execution`
    std::optional<Question> question;  // what is to be known first; its answer is the only output
    bool is_guessed = false;
    int64_t execution = -1;  // what numbers executions, among `nodes`, if anything asks
  };
  // Of the latest runs, the last of which is whole.
  class Latest {
   public:
    bool add(const Key& key);
    // How many of them had the last one.
    int64_t repeats() const;

   private:
    // A few sizes that take turns come again; each length of a text that grows comes once.  Seven
    // lengths of two layers of attention have programs of their own, eight share one: 350 ms and 90
    // to compile, 0.37 and 0.40 ms a run (tests/peers/session_times.py sizes 7 8; a Xeon of family
    // 6, model 207).
    static constexpr size_t kRuns = 32;
    Key key_;
    uint64_t hash_ = 0;
    size_t runs_ = 0;
    std::array<uint64_t, kRuns> hashes_{};
  };

  void index_inputs();
  void list_metadata();
  std::vector<InferredOutput> inferred_outputs(const Ref<Context>& aside) const;
  std::optional<std::vector<Shape>> free_shapes(tiny::Graph& graph) const;
  Importer importer();
  Signature plain_signature(const std::vector<Shape>& shapes, const Known& known) const;
  Imported import(Importer& importer, const Signature& signature) const;
  void check_plain(const ModelProgram& program) const;
  Ref<const ModelProgram> values_program(const Signature& signature);
  Decision answer(const ModelProgram& program, TensorRun& run) const;
  static void bind_texts(const ModelProgram& program, TensorRun& run, RunTexts& texts);
  std::vector<Tensor> outputs_of(const TensorRun& run) const;
  void check_shapes(const std::vector<Ints>& shapes) const;
  void check_shapes(const std::vector<Shape>& shapes) const;
  Tensor checked_input(size_t index, const Tensor& tensor) const;
  Ref<const ModelProgram> make_program(const Signature& signature,
                                       const std::vector<UOp>& variables);
  Ref<TensorRun> take_idle(const ModelProgram& program);
  void keep_idle(const ModelProgram& program, Ref<TensorRun> run);
  Ref<const ModelProgram> find_program(const Key& wanted, bool shared, bool may_ask);
  void keep(Key key, const Ref<const ModelProgram>& program);
  Ref<const ModelProgram> exact_program(const std::vector<Ints>& shapes, const Known& known,
                                        const std::vector<Decision>* decisions);
  Ref<const ModelProgram> program_for(const std::vector<Ints>& shapes, const Known& known,
                                      const std::vector<Decision>& decisions);
  Ref<const ModelProgram> symbolic_program(const std::vector<Ints>& shapes, const Known& known,
                                           const std::vector<Decision>& decisions,
                                           std::optional<FreeSizes::Choice>& failed);
  bool is_final(const Error& e) const;
  Ref<const ModelProgram> finding_program(const std::vector<Ints>& shapes, const Known& told);

  Ref<Context> context_;
  Model model_;
  std::vector<size_t> inputs_;       // positions among the graph's inputs
  std::vector<size_t> host_inputs_;  // of them, those whose elements decide shapes
  mutable OutputTypes output_types_;
  std::vector<std::pair<std::string, std::string>> metadata_;
  Weights weights_;
  GraphOrigins origins_;                                         // once it was imported
  std::list<std::pair<Key, Ref<const ModelProgram>>> programs_;  // the latest used first
  // Of runs that ended: their arenas serve the next of the same program.  With those under way they
  // are no more than have been under way at once.
  struct Idle {
    std::vector<Ref<TensorRun>> whole;
    std::vector<Ref<TensorRun>> asking;  // several, one after another, are part of a run
  };
  Idle idle_;
  std::vector<DType> dtypes_;  // of the inputs, once run() has asked
  FreeSizes free_;
  HostElements hosts_;
  Latest latest_;
  Ref<ExecutionCount> executions_ = make_ref<ExecutionCount>();
};

}  // namespace tiny::onnx
