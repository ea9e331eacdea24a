// What ai.onnx.ml does with features before a model sees them, and with what it says afterwards.
#include <cmath>

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/host_value.h"
#include "onnx/import/import.h"
#include "onnx/import/ml.h"
#include "onnx/import/table.h"
#include "onnx/import/text_function.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

// One number of each feature along the last axis, or one of all; none where the attribute has none.
Tensor feature_numbers(const Call& c, const Tensor& x, const char* name) {
  const std::vector<float> values = c.floats_attr(name);
  if (values.empty()) return {};
  c.check(values.size() == 1 || (x.rank() > 0 && dim_of(x, -1) == std::ssize(values)),
          "the attribute ", name, " has ", values.size(), " numbers for features ", x.shape());
  return real_constant(x, x.dtype(), {std::ssize(values)}, {values.begin(), values.end()});
}

Tensors import_scaler(Call& c) {
  Tensor x = cast(c.in(0), kFloat32);
  if (const Tensor offset = feature_numbers(c, x, "offset")) x = x - offset;
  if (const Tensor scale = feature_numbers(c, x, "scale")) x = x * scale;
  return {x};
}

enum class Norm : uint8_t { Max, L1, L2 };
constexpr Named<Norm> kNorms[] = {{"MAX", Norm::Max}, {"L1", Norm::L1}, {"L2", Norm::L2}};

// A row whose norm is 0 stays.
Tensors import_normalizer(Call& c) {
  const Tensor x = cast(c.in(0), kFloat32);
  c.check(x.rank() == 1 || x.rank() == 2, "it takes rows of features; got shape ", x.shape());
  const auto norm = named_attr<Norm>(c, "norm", "MAX", kNorms);
  const Tensor size = norm == Norm::Max  ? max(x, {-1}, true)
                      : norm == Norm::L1 ? sum(abs(x), {-1}, true)
                                         : sqrt(sum(square(x), {-1}, true));
  return {x / where(equal(size, number(size, 0)), number(size, 1), size)};
}

Tensors import_binarizer(Call& c) {
  const Tensor& x = c.in(0);
  const Tensor bound = number(x, static_cast<double>(c.real_attr("threshold", 0)));
  return {cast(greater(x, bound), x.dtype())};
}

Tensors import_imputer(Call& c) {
  const Tensor& x = c.in(0);
  if (x.dtype().is_float()) {
    const Tensor imputed = feature_numbers(c, x, "imputed_value_floats");
    c.check(static_cast<bool>(imputed), "it needs the attribute imputed_value_floats");
    const float replaced = c.real_attr("replaced_value_float", 0);
    const Tensor is_missing =
        std::isnan(replaced) ? is_nan(x) : equal(x, number(x, static_cast<double>(replaced)));
    return {where(is_missing, imputed, x)};
  }
  const Ints values = c.ints_attr("imputed_value_int64s", {});
  c.check(values.size() == 1 ||
              (!values.empty() && x.rank() > 0 && dim_of(x, -1) == std::ssize(values)),
          "the attribute imputed_value_int64s has ", values.size(), " numbers for features ",
          x.shape());
  const Tensor is_missing = equal(x, number_int(x, c.attr("replaced_value_int64", 0)));
  return {where(is_missing, cast(c.constant(values), x.dtype()), x)};
}

// Each input has so many columns as `inputdimensions` says: what is missing is 0.
Tensors import_feature_vectorizer(Call& c) {
  const Tensors given = c.all();
  const Ints sizes = c.ints_attr("inputdimensions", {});
  c.check(sizes.size() == given.size(), "the attribute inputdimensions has ", sizes.size(),
          " values for ", given.size(), " inputs");
  Tensors parts;
  for (size_t i = 0; i < given.size(); ++i) {
    Tensor x = cast(given[i], kFloat32);
    c.check(x.rank() == 1 || x.rank() == 2, "it takes rows of features; got shape ", x.shape());
    if (x.rank() == 1) x = unsqueeze(x, {1});
    constexpr int64_t kMost = int64_t{1} << 31;
    c.check(sizes[i] > 0 && sizes[i] < kMost, "the attribute inputdimensions has ", sizes[i]);
    parts.push_back(pad(x, {0, 0}, {0, sizes[i] - dim_of(x, 1)}));
  }
  return {concat(parts, 1)};
}

// Columns of the last axis, which the second input names.
Tensors import_array_feature_extractor(Call& c) {
  const Tensor x = c.in(0).rank() == 1 ? unsqueeze(c.in(0), {0}) : c.in(0);
  if (is_text(c, 0)) c.set_carried(0, kTextType);
  return {gather(x, flatten(cast(c.in(1), kInt64)), x.rank() - 1)};
}

// Where the last axis of `is_key` [.., keys] has its first true element, and whether there is one.
struct Found {
  Tensor place;
  Tensor is_there;
};
Found first_of(const Tensor& is_key) {
  return {argmax(cast(is_key, kInt32), -1), any(is_key, {-1})};
}

// ---- Labels.

// A list of labels in an attribute: floats or integers, or a tensor of them; none if there is none.
Tensor label_list(Call& c, const std::string& kind) {
  const auto name = [&](const char* type) { return cat(kind, type); };
  if (const auto texts = c.strings_attr(name("_strings").c_str())) return text_constant(c, *texts);
  if (const auto values = c.ints_attr(name("_int64s").c_str())) return c.constant(*values);
  if (const std::vector<float> values = c.floats_attr(name("_floats").c_str()); !values.empty())
    return real_constant(c.in(0), kFloat32, {std::ssize(values)}, {values.begin(), values.end()});
  if (c.has_attribute(name("_tensor").c_str()))
    return c.importer().constant(c.tensor_attr(name("_tensor").c_str())).tensor;
  return {};
}

// Whether a list of labels holds texts.
bool are_texts(const Call& c, const std::string& kind) {
  const std::string tensor = cat(kind, "_tensor");
  return c.has_attribute(cat(kind, "_strings").c_str()) ||
         (c.has_attribute(tensor.c_str()) && c.tensor_attr(tensor.c_str()).type == kTextType);
}

Tensors import_label_encoder(Call& c) {
  const Tensor keys = label_list(c, "keys"), values = label_list(c, "values");
  c.check(keys && values && keys.rank() == 1 && values.rank() == 1 &&
              dim_of(keys, 0) == dim_of(values, 0) && dim_of(keys, 0) > 0,
          "it needs as many keys as values");
  c.check(are_texts(c, "keys") == is_text(c, 0), "its input and its keys are of two types");
  c.pass_over({"default_string", "default_float", "default_int64"});
  const bool to_text = are_texts(c, "values");
  Tensor other;
  if (c.has_attribute("default_tensor"))
    other = reshape(c.importer().constant(c.tensor_attr("default_tensor")).tensor, {});
  else if (to_text)
    other = reshape(text_constant(c, std::vector{c.text_attr("default_string", "_Unused")}), {});
  else if (values.dtype().is_float())
    other = number(values, static_cast<double>(c.real_attr("default_float", -0.0f)));
  else
    other = number_int(values, c.attr("default_int64", -1));
  const Tensor x = unsqueeze(c.in(0), {c.in(0).rank()});
  Tensor is_key = equal(x, cast(keys, x.dtype()));
  if (x.dtype().is_float() && c.version() >= 4)
    is_key = bit_or(is_key, bit_and(is_nan(x), is_nan(cast(keys, x.dtype()))));
  const Found found = first_of(is_key);
  if (to_text) c.set_carried(0, kTextType);
  return {where(found.is_there, gather(values, found.place), cast(other, values.dtype()))};
}

// Version 1: texts to their places in the list and back.
Tensors import_old_label_encoder(Call& c) {
  const auto classes = c.strings_attr("classes_strings");
  c.check(classes && !classes->empty(), "it needs the attribute classes_strings");
  const Tensor texts = text_constant(c, *classes);
  const Tensor& x = c.in(0);
  c.pass_over({"default_int64", "default_string"});
  if (is_text(c, 0)) {
    const Found found = first_of(equal(unsqueeze(x, {x.rank()}), texts));
    return {
        where(found.is_there, found.place, number_int(found.place, c.attr("default_int64", -1)))};
  }
  c.set_carried(0, kTextType);
  const Tensor place = unsqueeze(cast(x, kInt64), {x.rank()});
  const Found found = first_of(equal(place, arange(c.context(), kInt64, std::ssize(*classes))));
  const Tensor other = text_constant(c, std::vector{c.text_attr("default_string", "_Unused")});
  return {where(found.is_there, gather(texts, found.place), reshape(other, {}))};
}

// A new last axis with a 1 at the place of the category.  Without `zeros` one that is not there
// ends the run.
Tensors import_one_hot_encoder(Call& c) {
  const auto texts = c.strings_attr("cats_strings");
  c.check(texts.has_value() == is_text(c, 0), "its input and its categories are of two types");
  const Tensor categories =
      texts ? text_constant(c, *texts) : c.constant(c.ints_attr("cats_int64s", {}));
  const int64_t count = dim_of(categories, 0);
  c.check(count > 0, "it needs the attribute cats_int64s or cats_strings");
  const Tensor x = unsqueeze(cast(c.in(0), kInt64), {c.in(0).rank()});
  const Tensor is_key = equal(x, categories);
  if (c.flag("zeros", true)) return {cast(is_key, kFloat32)};
  const Found found = first_of(is_key);
  const Tensor row = where(found.is_there, found.place, number_int(found.place, count));
  return {gather(eye(c.context(), kFloat32, count, count), row)};
}

// What a map from labels to numbers would hold: columns in the order of the labels.
Tensors import_zip_map(Call& c) {
  const Tensor& x = c.in(0);
  const auto texts = c.strings_attr("classlabels_strings");
  const auto labels = c.ints_attr("classlabels_int64s");
  const int64_t count = texts ? std::ssize(*texts) : labels ? std::ssize(*labels) : 0;
  c.check(x.rank() >= 1 && x.rank() <= 2 && dim_of(x, -1) == count, count,
          " labels for columns of ", x.shape());
  const auto keys = std::make_shared<MapKeys>();
  if (texts) keys->texts = *texts;
  if (!texts && labels) keys->integers = *labels;
  Value columns;
  columns.tensor = x.rank() == 1 ? unsqueeze(x, {0}) : x;
  columns.columns = keys;
  return give(c, {columns});
}

// clang-format off
constexpr Row kRows[] = {
    {"Scaler",                1, kNewestMl, import_scaler, 0, nullptr, kMl},
    {"Normalizer",            1, kNewestMl, import_normalizer, 0, nullptr, kMl},
    {"Binarizer",             1, kNewestMl, import_binarizer, 0, nullptr, kMl},
    {"Imputer",               1, kNewestMl, import_imputer, 0, nullptr, kMl},
    {"FeatureVectorizer",     1, kNewestMl, import_feature_vectorizer, 0, nullptr, kMl},
    {"ArrayFeatureExtractor", 1, kNewestMl, import_array_feature_extractor, 0, nullptr, kMl},
    {"LabelEncoder",          1, 1, import_old_label_encoder, 0, nullptr, kMl},
    {"LabelEncoder",          2, kNewestMl, import_label_encoder, 0, nullptr, kMl},
    {"OneHotEncoder",         1, kNewestMl, import_one_hot_encoder, 0, nullptr, kMl},
    {"ZipMap",                1, kNewestMl, import_zip_map, 0, nullptr, kMl},
};
// clang-format on

}  // namespace

std::span<const Row> ml_feature_rows() {
  return kRows;
}

}  // namespace tiny::onnx
