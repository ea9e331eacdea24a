#include "values.h"

#include <algorithm>

#include "failure.h"
#include "inputs.h"

namespace tiny::cli {
namespace {

std::vector<tiny_kind> kinds_of(const tiny_model* model, bool of_outputs) {
  size_t count = 0;
  check(of_outputs ? tiny_model_output_count(model, &count)
                   : tiny_model_input_count(model, &count));
  std::vector<tiny_kind> kinds(count);
  for (size_t i = 0; i < count; ++i)
    check(of_outputs ? tiny_model_output_kind(model, i, &kinds[i])
                     : tiny_model_input_kind(model, i, &kinds[i]));
  return kinds;
}

std::vector<Value> load_values(const Context& context, const std::string& folder, const char* what,
                               const std::vector<tiny_kind>& kinds) {
  const std::vector<std::string> files = data_files(folder, what);
  if (files.size() > kinds.size())
    throw file_failure(folder, std::to_string(files.size()) + " files of " + what + "s for " +
                                   std::to_string(kinds.size()));
  std::vector<Value> values;
  for (size_t i = 0; i < files.size(); ++i)
    check(tiny_value_load(context.get(), files[i].c_str(), kinds[i], out(values.emplace_back())),
          files[i]);
  return values;
}

struct Texts {
  std::vector<int64_t> shape, lengths;
  std::string all;
  bool operator==(const Texts&) const = default;
};
Texts texts_of(const tiny_value* value) {
  Texts texts;
  size_t rank = 0, count = 0, bytes = 0;
  check(tiny_value_shape(value, nullptr, 0, &rank));
  texts.shape.resize(rank);
  check(tiny_value_shape(value, texts.shape.data(), rank, &rank));
  check(tiny_value_text_lengths(value, nullptr, 0, &count));
  texts.lengths.resize(count);
  check(tiny_value_text_lengths(value, texts.lengths.data(), count, &count));
  for (const int64_t length : texts.lengths) bytes += static_cast<size_t>(length);
  texts.all.resize(bytes);
  check(tiny_value_read_texts(value, texts.all.data(), bytes));
  return texts;
}

class Comparer {
 public:
  Comparer(std::string file, Tolerance tolerance) : file_(std::move(file)), tolerance_(tolerance) {}

  // `where`: "" or "[2]", which element of the whole it is.
  Comparison compare(const tiny_value* got, const tiny_value* want,
                     const std::string& where) const {
    tiny_kind kind = 0, wanted = 0;
    check(tiny_value_kind(got, &kind));
    check(tiny_value_kind(want, &wanted));
    if (kind != wanted)
      return differs(where + " is of kind " + std::to_string(kind) + ", wanted " +
                     std::to_string(wanted));
    if (kind == TINY_KIND_TENSOR) return compare_tensors(got, want);
    if (kind == TINY_KIND_TEXTS) {
      const Texts a = texts_of(got), b = texts_of(want);
      if (a == b) return same(a.lengths.size());
      return differs(where + " has the texts " + shape_text(a.shape) + " \"" + a.all +
                     "\", wanted " + shape_text(b.shape) + " \"" + b.all + "\"");
    }
    size_t count = 0, wanted_count = 0;
    check(tiny_value_count(got, &count));
    check(tiny_value_count(want, &wanted_count));
    if (count != wanted_count)
      return differs(where + " has " + std::to_string(count) + " elements, wanted " +
                     std::to_string(wanted_count));
    Comparison all = same(0);
    for (size_t i = 0; i < count && all.pass; ++i) {
      Value one, other;
      check(tiny_value_element(got, i, out(one)));
      check(tiny_value_element(want, i, out(other)));
      const Comparison part =
          compare(one.get(), other.get(), where + "[" + std::to_string(i) + "]");
      if (!part.pass) return part;
      all.max_abs = std::max(all.max_abs, part.max_abs);
      all.max_rel = std::max(all.max_rel, part.max_rel);
      all.total += part.total;
    }
    return all;
  }

 private:
  Comparison same(uint64_t total) const {
    Comparison result;
    result.file = file_;
    result.total = total;
    return result;
  }
  Comparison differs(std::string reason) const {
    Comparison result = same(0);
    result.pass = false;
    result.reason = std::move(reason);
    return result;
  }
  Comparison compare_tensors(const tiny_value* got, const tiny_value* want) const {
    Tensor one, other;
    check(tiny_value_tensor(got, out(one)));
    check(tiny_value_tensor(want, out(other)));
    return cli::compare(read_tensor(one.get(), "got"), read_tensor(other.get(), "wanted"), file_,
                        tolerance_);
  }

  std::string file_;
  Tolerance tolerance_;
};

}  // namespace

bool has_values(const tiny_model* model) {
  for (const bool of_outputs : {false, true})
    for (const tiny_kind kind : kinds_of(model, of_outputs))
      if (kind != TINY_KIND_TENSOR) return true;
  return false;
}

std::vector<Comparison> compare_run_of_values(const Context& context, tiny_model* model,
                                              const std::string& folder, Tolerance tolerance) {
  const std::vector<tiny_kind> kinds = kinds_of(model, true);
  const std::vector<Value> inputs = load_values(context, folder, "input", kinds_of(model, false));
  const std::vector<Value> wanted = load_values(context, folder, "output", kinds);
  if (wanted.empty()) throw file_failure(folder, "no output_0.pb");
  std::vector<tiny_value*> given, made(kinds.size());
  for (const Value& value : inputs) given.push_back(value.get());
  check(tiny_model_run_values(model, given.data(), given.size(), made.data(), made.size()));
  std::vector<Value> outputs;
  for (tiny_value* value : made) outputs.emplace_back(value);
  std::vector<Comparison> all;
  for (size_t i = 0; i < wanted.size(); ++i)
    all.push_back(Comparer("output_" + std::to_string(i) + ".pb", tolerance)
                      .compare(outputs[i].get(), wanted[i].get(), ""));
  return all;
}

}  // namespace tiny::cli
