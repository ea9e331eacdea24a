// The dimensions that a model's inputs leave free, as Variables of programs that serve many sizes.
//
// Those of one name are one Variable until they have different sizes in one run, which a model is
// free to mean; 0 and 1 are numbers (broadcasting and squeezing ask for them).  Where an operator
// asks about several dimensions (two masks are added; all of a sequence is what was there and what
// is new), one of them follows from the others as the sizes at hand say, for as long as they do;
// where that is not enough, sizes nearer to those at hand may do (a table has so many positions),
// or multiples of a step (a picture is halved so often).  A dimension on which a decision depends
// all the same (FreeDimension) is a number.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/uop.h"
#include "onnx/model.h"
#include "shape/shape.h"

namespace tiny::onnx {

class FreeSizes {
 public:
  // Stands for a free dimension in the key of a program.
  static constexpr int64_t kFree = -1;
  // The shapes that a program is for.
  struct Choice {
    std::set<std::string> candidates;  // what may be Variables, and whose elements are known
    std::vector<UOp> variables;
    std::vector<std::string> names;  // of the dimensions that the variables are, or have as a step
    std::vector<Shape> shapes;
    std::vector<Ints> key;  // kFree where variables decide
    bool has_relations = false;
  };

  FreeSizes() = default;
  explicit FreeSizes(std::vector<ValueInfo> inputs) : inputs_(std::move(inputs)) {}

  // Sizes of a run that others did not have.
  void learn(const std::vector<Ints>& shapes);
  // For these sizes and larger ones.  `is_known` (empty, or one for each input) tells of inputs
  // whose elements are known, whose sizes are numbers.
  Choice choose(tiny::Graph& graph, const std::vector<Ints>& shapes,
                const std::vector<bool>& is_known) const;
  // Of what a program could not be made.
  enum class Answer : uint8_t {
    None,   // these Variables are none of the choice's
    Again,  // another choice may do
    Later,  // sizes have to be narrowed, which is for those that change: the first are a program's
  };
  Answer decide(const FreeDimension& question, const Choice& choice,
                const std::vector<Ints>& shapes);
  // Dimensions that follow from others do so no more.
  void drop_relations();
  // What could not be a Variable: together with these candidates it is one no more.
  void make_numbers(const Choice& choice);

 private:
  // What a dimension is: the sum of others and of a number.
  struct Relation {
    std::vector<std::string> terms;
    int64_t more = 0;
  };
  // What was found out where these are the candidates: with others (a step has one token, and a
  // prompt many) a model asks other questions.
  struct Found {
    bool had_sizes = false;               // that a program of their own was made for
    std::set<std::string> numbers;        // that cannot be Variables
    std::map<std::string, int> levels;    // how much less than usual the values are
    std::map<std::string, int> given_up;  // at how many sizes each was a number in the end
  };
  // The value of a free dimension that an input's shape gives.
  struct FreeDim {
    int64_t value = 0;
    int64_t most = 0;  // the greatest value of its Variable, unless it is to be less
    bool is_variable = true;
    bool is_first = true;  // it is the first axis wherever it stands
    size_t axes = 0;       // of the input with the most of them that it stands in
  };
  using FreeDims = std::map<std::string, FreeDim>;

  static bool is_batch(const FreeDim& dim);
  static void bound(FreeDims& dims);
  std::string name_of(size_t input, size_t axis) const;
  FreeDims free_dims(const std::vector<Ints>& shapes, const std::vector<bool>& is_known) const;
  bool holds(const std::string& name, const Relation& relation, const FreeDims& dims) const;
  std::optional<Relation> relation_of(const std::string& name, const std::set<std::string>& asked,
                                      const FreeDims& dims) const;
  void drop(const std::string& name);

  std::vector<ValueInfo> inputs_;
  std::set<std::string> apart_;  // names of dimensions that have had different sizes at once
  std::map<std::set<std::string>, Found> found_;
  std::map<std::string, Relation> relations_;
  std::map<std::string, int> dropped_;  // how many relations of each did not last
};

}  // namespace tiny::onnx
