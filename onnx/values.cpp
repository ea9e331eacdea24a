// Runs of models whose inputs and outputs need not be tensors.  Each value is taken apart into
// tensors, which are a program's inputs, and put together again of its outputs; texts are numbers
// in between (onnx/texts.h).
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "engine/realize.h"
#include "onnx/session.h"
#include "tensor/create.h"
#include "tensor/value.h"

namespace tiny::onnx {

namespace {

using Kind = ModelValue::Kind;

const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"a tensor", "texts", "a sequence", "a map", "nothing"};
  return kNames[static_cast<size_t>(kind)];
}

// The elements of a tensor that has memory, or is a constant.
std::vector<std::byte> bytes_of(Tensor tensor) {
  std::vector<std::byte> bytes(static_cast<size_t>(element_count(tensor) * tensor.dtype().bytes()));
  read(tensor, bytes.data(), static_cast<int64_t>(bytes.size()));
  return bytes;
}

// A tensor that a value is made of: one of numbers, or texts.
struct Part {
  std::string name;
  const ModelValue& value;
  DType dtype;
  Ints shape;
};

// Takes values apart, whose types the model says.
class Parts {
 public:
  // The form of a value of this type; its tensors are named after it.
  ValueForm take(const std::string& name, const ValueType& type, const ModelValue& value) {
    const auto fits = [&](Kind kind) {
      require(value.kind == kind, Status::InvalidArgument, "input \"", name, "\" is of type ",
              to_string(type), "; got ", name_of(value.kind));
    };
    ValueForm form{value.kind, 0, 0, nullptr, {}};
    switch (type.kind) {
      case ValueType::Kind::Optional:
        if (value.kind == Kind::Nothing) return form;
        return take(name, type.element.at(0), value);
      case ValueType::Kind::Sequence:
        fits(Kind::Sequence);
        require(type.element.at(0).kind == ValueType::Kind::Tensor, Status::Unsupported, "input \"",
                name, "\" is of type ", to_string(type));
        for (size_t i = 0; i < value.elements.size(); ++i)
          form.parts.push_back(take(cat(name, "[", i, "]"), type.element.at(0), value.elements[i]));
        if (!form.parts.empty()) form.type = form.parts[0].type;
        return form;
      case ValueType::Kind::Map: {
        fits(Kind::Map);
        ValueType keys;
        keys.kind = ValueType::Kind::Tensor;
        keys.elem_type = type.elem_type;
        form.parts.push_back(take(cat(name, ".keys"), keys, value.elements.at(0)));
        form.parts.push_back(take(cat(name, ".values"), type.element.at(0), value.elements.at(1)));
        return form;
      }
      case ValueType::Kind::Tensor:
        break;
      default:
        throw_error(Status::Unsupported, "input \"", name, "\" is of type ", to_string(type));
    }
    const TensorTypeInfo* info = tensor_type(type.elem_type);
    const bool is_text = type.elem_type == kTextType;
    fits(is_text ? Kind::Texts : Kind::Tensor);
    if (is_text || (info && is_carried(*info))) form.type = type.elem_type;
    form.leaf = parts_.size();
    const DType dtype = is_text ? kInt64 : dtype_of_tensor_type(type.elem_type, "input", name);
    require(is_text || value.tensor.dtype() == dtype, Status::DType, "input \"", name,
            "\" is of type ", dtype, "; got ", is_text ? dtype : value.tensor.dtype());
    parts_.push_back({name, value, dtype, is_text ? value.shape : dims_of(value.tensor)});
    return form;
  }
  const std::vector<Part>& parts() const { return parts_; }

 private:
  std::vector<Part> parts_;
};

Tensor numbers_of(const Ref<Context>& context, const ModelValue& value, Texts& texts) {
  Ints numbers;
  for (const std::string& text : value.texts) numbers.push_back(texts.number_of(text));
  return from_data(context, kInt64, value.shape, numbers.data(),
                   static_cast<int64_t>(numbers.size() * sizeof(int64_t)));
}

std::string text_of(const ValueForm& form) {
  std::string text = cat("(", static_cast<int>(form.kind), ",", form.type);
  for (const ValueForm& part : form.parts) text += text_of(part);
  return text + ")";
}

// Puts a run's outputs together.
class Whole {
 public:
  Whole(const Ref<Context>& context, const Texts& texts, const Tensors& tensors)
      : context_(context), texts_(texts), tensors_(tensors) {}

  ModelValue value(const ValueForm& form) const {
    ModelValue out;
    out.kind = form.kind;
    for (const ValueForm& part : form.parts) out.elements.push_back(value(part));
    if (form.columns) return maps(*form.columns, tensors_[form.leaf]);
    if (form.kind == Kind::Tensor) out.tensor = tensors_[form.leaf];
    if (form.kind != Kind::Texts) return out;
    const std::vector<std::byte> bytes = bytes_of(tensors_[form.leaf]);
    out.shape = const_dims(tensors_[form.leaf].shape());
    for (size_t at = 0; at < bytes.size(); at += sizeof(int64_t)) {
      int64_t number = 0;
      std::memcpy(&number, bytes.data() + at, sizeof number);
      out.texts.push_back(texts_.text(number));
    }
    return out;
  }

 private:
  // A map for each row.
  ModelValue maps(const MapKeys& keys, const Tensor& rows) const {
    ModelValue of_keys, out;
    if (keys.texts.empty()) {
      of_keys.kind = Kind::Tensor;
      of_keys.tensor = from_data(context_, kInt64, {std::ssize(keys.integers)},
                                 keys.integers.data(), std::ssize(keys.integers) * 8);
    } else {
      of_keys.kind = Kind::Texts;
      of_keys.shape = {std::ssize(keys.texts)};
      of_keys.texts = keys.texts;
    }
    out.kind = Kind::Sequence;
    const std::vector<std::byte> bytes = bytes_of(rows);
    const Ints dims = const_dims(rows.shape());
    const Ints of_row(dims.begin() + 1, dims.end());
    const int64_t row_bytes = element_count(of_row, "a map") * rows.dtype().bytes();
    for (int64_t row = 0; row < dims[0]; ++row) {
      ModelValue& map = out.elements.emplace_back();
      map.kind = Kind::Map;
      ModelValue values;
      values.kind = Kind::Tensor;
      values.tensor =
          from_data(context_, rows.dtype(), of_row, bytes.data() + row * row_bytes, row_bytes);
      map.elements = {of_keys, std::move(values)};
    }
    return out;
  }

  const Ref<Context>& context_;
  const Texts& texts_;
  const Tensors& tensors_;
};

}  // namespace

// The program for values of this form, made or found: by its text, which is a part of the key, and
// the tensors' very sizes.
Ref<const ModelProgram> LoadedModel::values_program(const Signature& signature) {
  Key key{{}, {}};
  for (const ValueForm& form : signature.inputs) key.known.push_back(text_of(form));
  for (const Leaf& leaf : signature.leaves) {
    key.shapes.push_back(const_dims(leaf.shape));
    key.known.push_back(leaf.known ? cat("=", leaf.known->bytes.text()) : std::string());
  }
  for (const Decision& decision : *signature.decisions)
    key.known.push_back(cat("?", decision.answer.bytes.text()));
  if (Ref<const ModelProgram> found = find_program(key, false, true)) return found;
  Ref<const ModelProgram> program = make_program(signature, {});
  keep(std::move(key), program);
  return program;
}

// A program that looks into texts finds the run's where the last input says.
void LoadedModel::bind_texts(const ModelProgram& program, TensorRun& run, RunTexts& texts) {
  if (!program.looks_into_texts) return;
  texts.address = std::bit_cast<uint64_t>(texts.table.get());
  run.bind_input(program.inputs.size() - 1, &texts.address, sizeof texts.address);
}

LoadedModel::ValuesRun LoadedModel::begin_values(const std::vector<ModelValue>& inputs) {
  require(inputs.size() == input_count(), Status::InvalidArgument, "the model has ", input_count(),
          " inputs; got ", inputs.size());
  Signature signature;
  Parts parts;
  std::vector<size_t> hosts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    signature.inputs.push_back(parts.take(input(i).name, input(i).type, inputs[i]));
    const ValueForm& form = signature.inputs.back();
    if (form.kind == Kind::Tensor && is_host_input(i)) hosts.push_back(form.leaf);
  }
  for (const Part& part : parts.parts()) {
    const bool is_host = std::ranges::count(hosts, signature.leaves.size()) > 0;
    Leaf& leaf = signature.leaves.emplace_back(
        Leaf{part.name, part.dtype, to_shape(part.shape), std::nullopt});
    if (is_host && may_be_host(part.shape))
      leaf.known =
          HostTensor{part.dtype, part.shape, SharedBytes::own(bytes_of(part.value.tensor))};
  }
  std::vector<Decision> decisions;
  signature.decisions = &decisions;
  while (true) {
    ValuesRun out;
    out.program = values_program(signature);
    out.texts = std::make_unique<RunTexts>();
    out.texts->table = make_ref<Texts>(out.program->texts);
    out.run = take_idle(*out.program);
    if (!out.run) out.run = make_ref<TensorRun>(context_, out.program);
    out.run->set_cancel(context_->stop().token());
    for (size_t i = 0; i < parts.parts().size(); ++i) {
      const Part& part = parts.parts()[i];
      const bool is_text = part.value.kind == Kind::Texts;
      out.run->set_input(
          i, is_text ? numbers_of(context_, part.value, *out.texts->table) : part.value.tensor);
    }
    bind_texts(*out.program, *out.run, *out.texts);
    if (!out.program->question) return out;
    decisions.push_back(answer(*out.program, *out.run));
    keep_idle(*out.program, std::move(out.run));
  }
}

std::vector<ModelValue> LoadedModel::end_values(ValuesRun run) {
  const std::vector<Tensor> tensors = outputs_of(*run.run);
  const Whole whole(context_, *run.texts->table, tensors);
  std::vector<ModelValue> out;
  for (const ValueForm& form : run.program->forms) out.push_back(whole.value(form));
  keep_idle(*run.program, std::move(run.run));
  return out;
}

}  // namespace tiny::onnx
