// Attention of random sizes, as kernels and options are tested with it.
#pragma once

#include <cstdint>
#include <limits>
#include <random>
#include <utility>

#include "codegen/pipeline.h"
#include "engine/context.h"
#include "schedule/rewrite/form_fma.h"
#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tests/support/tensors.h"

namespace tiny::testing {

// 0, 1, 2 .. along the one axis that is longer than 1.
inline Tensor positions(const Ref<Context>& context, const Ints& shape) {
  return reshape(arange(context, kInt64, shape[0] * shape[1]), to_shape(shape));
}

// A number that kernels know.
inline Tensor constant(const Ref<Context>& context, double value) {
  return full(context, kFloat32, Shape{}, value);
}

// Attention of random sizes, weights and masks; equal for equal seeds.  Its operands may be of
// fewer bits, and are in memory then.
class Attention {
 public:
  struct Sizes {
    Ints rows{1, 2, 3, 4, 5, 13, 20, 33};
    Ints keys{17, 32, 40, 64, 100, 130};
    Ints width{4, 16, 20, 33};
    Ints depth{8, 16, 33, 64};
  };
  Attention(Ref<Context> context, uint64_t seed, DType dtype, Sizes sizes)
      : context_(std::move(context)), random_(seed), dtype_(dtype), sizes_(std::move(sizes)) {}
  Attention(Ref<Context> context, uint64_t seed)
      : Attention(std::move(context), seed, kFloat32, Sizes()) {}

  Tensor make() {
    heads_ = one_of({1, 2, 3});
    rows_ = one_of(sizes_.rows);
    keys_ = one_of(sizes_.keys);
    const int64_t width = one_of(sizes_.width), depth = one_of(sizes_.depth);
    const Tensor q = tensor({heads_, rows_, width});
    const Tensor k = below(2) ? tensor({heads_, width, keys_})
                              : permute(tensor({heads_, keys_, width}), {0, 2, 1});
    Tensor scores = cast(matmul(q, k), kFloat32);
    if (below(2)) scores = mul(scores, number(0.25F));
    if (below(2)) scores = add(scores, below(2) ? mask() : mask_by_position());
    return matmul(cast(weights(scores), dtype_), tensor({heads_, keys_, depth}));
  }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t one_of(const Ints& list) { return list[static_cast<size_t>(below(std::ssize(list)))]; }
  Tensor number(float value) { return floats(context_, {value}); }
  Tensor tensor(const Ints& shape) {
    int64_t count = 1;
    for (int64_t n : shape) count *= n;
    Floats data;
    for (int64_t i = 0; i < count; ++i) data.push_back(static_cast<float>(below(33) - 16) / 8);
    const Tensor drawn = floats(context_, data, shape);
    if (dtype_ == kFloat32) return drawn;
    Tensor narrow = cast(drawn, dtype_);
    Tensor* const one[] = {&narrow};
    realize(one);
    return narrow;
  }
  // Causal, or of what is random; some rows see nothing, and some scores are no numbers.
  Tensor mask() {
    const bool is_causal = below(2) == 0, has_empty_rows = below(3) == 0, is_finite = below(3) == 0;
    const bool has_odd_scores = below(3) == 0;
    Floats data;
    for (int64_t r = 0; r < rows_; ++r) {
      const bool is_empty = has_empty_rows && below(4) == 0;
      for (int64_t k = 0; k < keys_; ++k) {
        const bool is_hidden = is_empty || (is_causal ? k > r : below(3) == 0);
        float score = is_hidden ? (is_finite ? std::numeric_limits<float>::lowest()
                                             : -std::numeric_limits<float>::infinity())
                                : 0;
        if (has_odd_scores && below(200) == 0)
          score = below(2) ? std::numeric_limits<float>::infinity()
                           : std::numeric_limits<float>::quiet_NaN();
        data.push_back(score);
      }
    }
    return floats(context_, data, {rows_, keys_});
  }
  // What a row sees is known from its number: the keys before it and `past` more, or fewer.
  Tensor mask_by_position() {
    const int64_t past = one_of({0, 3, keys_ - rows_, -2});
    const Tensor key = positions(context_, {1, keys_});
    const Tensor row = positions(context_, {rows_, 1});
    const Tensor last = add(row, full(context_, kInt64, Shape{}, static_cast<double>(past)));
    return where(less_equal(key, last), constant(context_, 0),
                 constant(context_, -std::numeric_limits<float>::infinity()));
  }
  Tensor weights(const Tensor& scores) {
    if (below(4)) return softmax(scores, 2);
    const Tensor e = mul(scores, scores);  // without the maximum, each row divided by its sum
    return div(e, add(sum(e, {2}, true), number(1)));
  }

  Ref<Context> context_;
  std::mt19937_64 random_;
  DType dtype_;
  Sizes sizes_;
  int64_t heads_ = 0;
  int64_t rows_ = 0;
  int64_t keys_ = 0;
};

// The one kernel of a tensor, as options find it; no roots if there are several.
inline Kernel kernel_of(const Tensor& tensor, const Machine& target) {
  const UOp node = tensor.graph().make(Op::Contiguous, {tensor.node()});
  const ChangedGraph fused = form_fma({&node, 1});
  const Schedule schedule = make_schedule(fused.roots, target);
  return schedule.kernels.size() == 1 ? prepare_kernel(schedule.kernels.front().kernel, target)
                                      : Kernel();
}

}  // namespace tiny::testing
