// Loop-carried values of which some grow by as much in each round: what a decoder keeps of the
// tokens so far, a list that is concatenated.
#pragma once

#include <optional>

#include "onnx/import/call.h"

namespace tiny::onnx {

class CarriedGrowth {
 public:
  // Of what is carried before a first round, after it and after a second one; none where its
  // tensors stay as they are, or change in another way.
  static std::optional<CarriedGrowth> of(const Tensors& before, const Tensors& after,
                                         const Tensors& later);

  // With memory for what so many rounds add: the axes that grow are the first, and what there is
  // stands at their beginnings.
  Tensors with_room(const Tensors& before, int64_t rounds) const;
  // What there is in such memory after so many rounds.
  Tensors seen(const Tensors& kept, const tiny::Dim& rounds) const;
  // The beginnings of such memory that hold what is there after so many rounds.
  // Error{Unsupported} where that has not grown by as much.
  Tensors stored(const Tensors& made, const tiny::Dim& rounds) const;
  // Bytes that a round adds.
  int64_t bytes() const;

 private:
  // One tensor: its sizes before the first round, and where it grows.
  struct Part {
    Shape shape;
    DType dtype;
    int64_t axis = 0;
    int64_t by = 0;  // 0: it stays
    tiny::Dim size(const tiny::Dim& rounds) const;
  };
  std::vector<Part> parts_;
};

}  // namespace tiny::onnx
