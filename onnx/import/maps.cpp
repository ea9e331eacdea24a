// Maps of ai.onnx.ml: keys and values, each a tensor of one axis.  A key is a number or a text, and
// a text is compared by its number (onnx/texts.h).
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/ml.h"
#include "onnx/import/table.h"
#include "onnx/import/text_function.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/top_k.h"

namespace tiny::onnx {

namespace {

struct MapInput {
  Value keys, values;
};
MapInput map_in(Call& c) {
  const Value input = c.input(0);
  c.check(static_cast<bool>(input.map), "input 0 is no map");
  return {(*input.map)[0], (*input.map)[1]};
}

// Where each of `wanted` stands among the keys, and whether it does.
struct Places {
  Tensor place, is_there;
};
Places places_of(const Tensor& wanted, const Tensor& keys) {
  const Tensor is_key = equal(unsqueeze(wanted, {1}), unsqueeze(keys, {0}));
  return {argmax(cast(is_key, kInt32), 1), any(is_key, {1})};
}

// The value of each word of the vocabulary, 0 for one that is no key.
Tensors import_dict_vectorizer(Call& c) {
  const MapInput map = map_in(c);
  const auto texts = c.strings_attr("string_vocabulary");
  const Tensor vocabulary =
      texts ? text_constant(c, *texts) : c.constant(c.ints_attr("int64_vocabulary", {}));
  c.check(!vocabulary.shape()[0].is(0), "it needs a vocabulary");
  c.check(texts.has_value() == (map.keys.carried == kTextType),
          "its keys and its vocabulary are of two types");
  const Places at = places_of(vocabulary, map.keys.tensor);
  const Tensor& values = map.values.tensor;
  if (map.values.carried == kTextType) c.set_carried(0, kTextType);
  return {unsqueeze(where(at.is_there, gather(values, at.place), number_int(values, 0)), {0})};
}

enum class CastTo : uint8_t { Float, Text, Integer };
constexpr Named<CastTo> kCasts[] = {
    {"TO_FLOAT", CastTo::Float}, {"TO_STRING", CastTo::Text}, {"TO_INT64", CastTo::Integer}};
constexpr Named<bool> kForms[] = {{"DENSE", false}, {"SPARSE", true}};

// One row: the values in the order of their keys, or each at the place that its key says.
Tensors import_cast_map(Call& c) {
  const MapInput map = map_in(c);
  c.check(map.keys.carried == 0, "its keys are texts");
  const auto to = named_attr<CastTo>(c, "cast_to", "TO_FLOAT", kCasts);
  const bool is_text = map.values.carried == kTextType;
  Tensor values = map.values.tensor;
  if (to == CastTo::Text && !is_text)
    values = text_of_numbers(c, values);
  else if (to != CastTo::Text && is_text)
    values = numbers_of_text(c, values, to == CastTo::Float ? kFloat32 : kInt64);
  else if (to != CastTo::Text)
    values = cast(values, to == CastTo::Float ? kFloat32 : kInt64);
  if (to == CastTo::Text) c.set_carried(0, kTextType);
  if (named_attr<bool>(c, "map_form", "DENSE", kForms)) {
    const Places at = places_of(arange(c.context(), kInt64, c.attr("max_map", 1)), map.keys.tensor);
    return {unsqueeze(where(at.is_there, gather(values, at.place), number_int(values, 0)), {0})};
  }
  const Tensor& keys = map.keys.tensor;
  const Tensor order = top_k(keys, dim_of(keys, 0), 0, false).indices;
  return {unsqueeze(gather(values, order), {0})};
}

// Categories as texts become integers, integers the texts.
Tensors import_category_mapper(Call& c) {
  const auto texts = c.strings_attr("cats_strings");
  const auto integers = c.ints_attr("cats_int64s");
  c.check(texts && integers && texts->size() == integers->size() && !texts->empty(),
          "it needs as many texts as integers");
  const Tensor words = text_constant(c, *texts), numbers = c.constant(*integers);
  const bool from_text = is_text(c, 0);
  const Tensor& x = c.in(0);
  const Places at = places_of(flatten(x), from_text ? words : numbers);
  const Tensor other =
      from_text
          ? number_int(numbers, c.attr("default_int64", -1))
          : reshape(text_constant(c, std::vector{c.text_attr("default_string", "_Unused")}), {});
  c.pass_over({"default_int64", "default_string"});
  if (!from_text) c.set_carried(0, kTextType);
  const Tensor found = gather(from_text ? numbers : words, at.place);
  return {reshape(where(at.is_there, found, other), x.shape())};
}

// clang-format off
constexpr Row kRows[] = {
    {"CastMap",        1, kNewestMl, import_cast_map, 0, nullptr, kMl},
    {"CategoryMapper", 1, kNewestMl, import_category_mapper, 0, nullptr, kMl},
    {"DictVectorizer", 1, kNewestMl, import_dict_vectorizer, 0, nullptr, kMl},
};
// clang-format on

}  // namespace

std::span<const Row> map_rows() {
  return kRows;
}

}  // namespace tiny::onnx
