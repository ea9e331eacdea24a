// Whose work a node does: the ONNX node that it was imported for, the name that a tensor was
// given, or, where nobody has named it, the operator that a caller applied.
//
// An origin is a number on a node, so that a graph is built without touching a text.  A node that
// takes another's place takes its origin (Graph::make in an OriginScope, UOp::with_src).  Equal
// nodes are one: of two origins within one model the first stays; one that two models made is
// nobody's, since a wrong name is worse than none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace tiny {

using Origin = uint32_t;
inline constexpr Origin kNobody = 0;
inline constexpr Origin kSeveral = UINT32_MAX;

// From here on: operators.
inline constexpr Origin kOperators = uint32_t{1} << 31;

inline bool is_named(Origin origin) {
  return origin != kNobody && origin != kSeveral;
}
// What any name of a model's or a caller's is better than.
inline bool is_operator(Origin origin) {
  return origin >= kOperators && origin != kSeveral;
}

// The texts of the origins of one graph.
class Origins {
 public:
  // Numbers that follow each other for the nodes of a model; the first of them.  The same list is
  // kept once, so that a model that is loaded again and again takes no more memory.
  Origin add(std::vector<std::string> names);
  // The number of a name that a tensor is given: for the same name always the same.
  Origin named(const std::string& name);
  // The number of an operator: for the same always the same.
  Origin of_operator(const std::string& name);

  // Of two origins that the same node has.
  Origin merged(Origin first, Origin other) const;
  // "" for an origin without a text.
  std::string text(Origin origin) const;

 private:
  struct List {
    std::vector<std::string> names;
    bool is_given = false;  // to a tensor
  };
  using Lists = std::map<Origin, List>;
  // What an origin is one of; end() of none.
  Lists::const_iterator list_of(Origin origin) const;

  Lists lists_;  // by the first number
  std::unordered_multimap<uint64_t, Origin> by_hash_;
  std::unordered_map<std::string, Origin> given_;
  std::vector<std::string> operators_;  // by number
  std::unordered_map<std::string, Origin> operator_numbers_;
  Origin next_ = 1;
};

}  // namespace tiny
