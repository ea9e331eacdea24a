#include "tensor/ngrams.h"

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny {

namespace {

// How often it stands in each row.
Tensor count_of(const Tensor& x, const Ngram& ngram, int64_t most_skipped) {
  const int64_t size = x.shape()[1].value(), n = std::ssize(ngram.members);
  Tensor found = full(x.context_ref(), kFloat32, {x.shape()[0]}, 0);
  // A single element has no gaps.
  for (int64_t gap = 1; gap <= (n == 1 ? 1 : most_skipped + 1) && (n - 1) * gap < size; ++gap) {
    const int64_t places = size - (n - 1) * gap;
    Tensor hit;
    for (int64_t i = 0; i < n; ++i) {
      const Tensor part = slice_axis(x, 1, i * gap, i * gap + places);
      const Tensor same = equal(part, number_int(part, ngram.members[static_cast<size_t>(i)]));
      hit = hit ? bit_and(hit, same) : same;
    }
    found = found + sum(cast(hit, kFloat32), {1});
  }
  return found;
}

}  // namespace

Tensor count_ngrams(const Tensor& x, std::span<const Ngram> ngrams, const NgramOptions& options) {
  require(x.rank() == 2, Status::Shape, "n-grams are counted in rows; got the shape ", x.shape());
  require(options.columns > 0, Status::Shape, "n-grams are counted in ", options.columns,
          " columns");
  std::vector<Tensor> columns(static_cast<size_t>(options.columns));
  for (const Ngram& ngram : ngrams) {
    require(ngram.column >= 0 && ngram.column < options.columns && !ngram.members.empty(),
            Status::InvalidArgument, "an n-gram of ", ngram.members.size(), " in the column ",
            ngram.column, " of ", options.columns);
    Tensor found = count_of(x, ngram, options.most_skipped);
    if (options.once) found = minimum(found, number(found, 1));
    if (ngram.weight != 1) found = found * number(found, ngram.weight);
    columns[static_cast<size_t>(ngram.column)] = found;
  }
  for (Tensor& column : columns)
    if (!column) column = full(x.context_ref(), kFloat32, {x.shape()[0]}, 0);
  return stack(columns, 1);
}

}  // namespace tiny
