// Elements chosen by other elements.
#include "tensor/indexing.h"

#include <algorithm>

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/ngrams.h"

namespace tiny::onnx {

namespace {

Tensors import_gather(Call& c) {
  return {gather(c.in(0), places(c, 1), c.attr("axis", 0))};
}

Tensors import_gather_elements(Call& c) {
  const Tensor& data = c.in(0);
  return {take_along_axis(data, places(c, 1), axis_of(c.attr("axis", 0), data.rank()))};
}

Tensors import_gather_nd(Call& c) {
  return {gather_nd(c.in(0), places(c, 1), c.attr("batch_dims", 0))};
}

Tensors import_one_hot(Call& c) {
  const tiny::Dim depth = c.size(1);
  c.check(!depth.is_const() || depth.value() >= 0, "a depth of ", depth);
  const Tensor& values = c.in(2);
  c.check(dims_of(values) == Ints{2}, "values of shape ", values.shape());
  const Tensor off = reshape(slice_axis(values, 0, 0, 1), Shape());
  const Tensor on = reshape(slice_axis(values, 0, 1, 2), Shape());
  const Tensor index = cast(c.in(0), kInt64);
  if (is_text(c, 2)) c.set_carried(0, kTextType);
  return {one_hot(index, depth, on, off, axis_of(c.attr("axis", -1), index.rank() + 1))};
}

Tensors import_reverse_sequence(Call& c) {
  return {reverse_sequence(c.in(0), c.in(1), c.attr("batch_axis", 1), c.attr("time_axis", 0))};
}

// The n-grams of the pool whose lengths are wanted: the pool has all of one length after those of
// the one before.
std::vector<Ngram> ngrams_of(Call& c, const Ints& pool, const Ints& columns) {
  const Ints counts = c.ints_attr("ngram_counts", {});
  const int64_t shortest = c.attr("min_gram_length"), longest = c.attr("max_gram_length");
  const std::vector<float> weights = c.floats_attr("weights");
  std::vector<Ngram> ngrams;
  size_t place = 0;
  for (size_t k = 0; k < counts.size(); ++k) {
    const auto n = static_cast<int64_t>(k) + 1;
    const int64_t end = k + 1 < counts.size() ? counts[k + 1] : std::ssize(pool);
    c.check(counts[k] >= 0 && counts[k] <= end && end <= std::ssize(pool),
            "the attribute ngram_counts is ", list_text(counts));
    for (int64_t start = counts[k]; start + n <= end; start += n, ++place) {
      c.check(place < columns.size(), "there are more n-grams than columns");
      if (n < shortest || n > longest) continue;
      const auto first = pool.begin() + start;
      ngrams.push_back({Ints(first, first + n), columns[place],
                        place < weights.size() ? static_cast<double>(weights[place]) : 1});
    }
  }
  return ngrams;
}

Tensors import_tf_idf(Call& c) {
  constexpr int64_t kColumnsMax = 1 << 20;
  const Tensor x = c.in(0).rank() == 1 ? unsqueeze(c.in(0), {0}) : c.in(0);
  c.check(x.rank() == 2, "it takes one or two axes; got ", c.in(0).rank());
  auto pool = c.ints_attr("pool_int64s");
  const auto words = c.strings_attr("pool_strings");
  c.check(pool.has_value() != words.has_value() && words.has_value() == is_text(c, 0),
          "its input and its pool are of two types");
  if (words) {
    pool.emplace();
    for (const std::string& word : *words) pool->push_back(c.importer().texts().number_of(word));
  }
  const Ints columns = c.ints_attr("ngram_indexes", {});
  const std::string mode = c.text_attr("mode", "");
  c.check(mode == "TF" || mode == "IDF" || mode == "TFIDF", "the attribute mode is \"", mode, "\"");
  NgramOptions options{
      .most_skipped = std::clamp<int64_t>(c.attr("max_skip_count"), 0, int64_t{1} << 31),
      .once = mode == "IDF"};
  for (int64_t column : columns) {
    c.check(column >= 0 && column < kColumnsMax, "a column ", column);
    options.columns = std::max(options.columns, column + 1);
  }
  c.check(options.columns > 0, "it has no columns");
  std::vector<Ngram> ngrams = ngrams_of(c, *pool, columns);
  if (mode == "TF")
    for (Ngram& ngram : ngrams) ngram.weight = 1;
  const Tensor table = count_ngrams(x, ngrams, options);
  return {c.in(0).rank() == 1 ? reshape(table, to_shape({options.columns})) : table};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"Gather",          1,  kNow, import_gather},
    {"GatherElements",  11, kNow, import_gather_elements},
    {"GatherND",        11, kNow, import_gather_nd},
    {"GatherND",        1,  1,    import_gather_nd, 0, nullptr, kContributed},
    {"OneHot",          9,  kNow, import_one_hot, operand(1)},
    {"ReverseSequence", 10, kNow, import_reverse_sequence},
    {"TfIdfVectorizer", 9,  kNow, import_tf_idf},
};
// clang-format on

}  // namespace

std::span<const Row> indexing_rows() {
  return kRows;
}

}  // namespace tiny::onnx
