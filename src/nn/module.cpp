#include "nn/module.h"

#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/random.h"
#include "tensor/value.h"

namespace tiny {

namespace {

void check_name(std::string_view name) {
  require(!name.empty() && name.front() != '.' && name.back() != '.' &&
              name.find("..") == std::string_view::npos,
          Status::InvalidArgument, "the name \"", name,
          "\"; wanted words with a dot between each two");
}

// A key for what has the name, whatever else is made.
Tensor key_of(const Tensor& key, std::string_view name) {
  const uint64_t hash = hash_bytes(name);
  const auto word = [&](int64_t i) { return slice_axis(key, 0, i, i + 1); };
  const auto half = [&](uint64_t bits) {
    return full_bits(key.context_ref(), kUInt32, {1}, bits & 0xFFFFFFFF);
  };
  const ThreefryWords made = threefry2x32({word(0), word(1)}, {half(hash), half(hash >> 32)});
  return concat(std::array{made.first, made.second}, 0);
}

}  // namespace

Module::Module(const Ref<Context>& context, uint64_t seed) : tree_(make_ref<Tree>()) {
  tree_->context = context;
  tree_->key = random_key(context, seed);
  tree_->generator = make_ref<Generator>(context, seed);
}

Module::Module(Ref<Tree> tree, std::string prefix)
    : tree_(std::move(tree)), prefix_(std::move(prefix)) {
}

Ref<Module> Module::child(std::string_view name) const {
  check_name(name);
  return Ref<Module>(new Module(tree_, full_name(name) + '.'));
}

std::string Module::full_name(std::string_view name) const {
  return prefix_ + std::string(name);
}

void Module::set_dtype(DType dtype) {
  require(dtype.is_float(), Status::DType, "parameters of ", dtype, "; wanted floats");
  tree_->dtype = dtype;
}

Module::Entry& Module::entry(std::string_view name, const Ints& shape, DType dtype,
                             bool is_parameter, const Initialization& how) {
  check_name(name);
  std::string full = full_name(name);
  if (const auto found = tree_->by_name.find(full); found != tree_->by_name.end()) {
    Entry& known = *found->second;
    require(known.is_parameter == is_parameter, Status::InvalidArgument, "\"", full, "\" is a ",
            known.is_parameter ? "parameter" : "buffer", " already");
    require(Shape(known.value.shape()) == to_shape(shape), Status::Shape, "\"", full,
            "\" has the shape ", known.value.shape(), "; wanted ", to_shape(shape));
    return known;
  }
  const Tensor value = is_parameter ? initialize(key_of(tree_->key, full), how, dtype, shape)
                                    : tiny::full(tree_->context, dtype, to_shape(shape), how.a);
  auto made = std::make_unique<Entry>(Entry{full, value, is_parameter});
  // Graphs that are built from now on read memory, which steps write to.
  own_memory(made->value, true);
  Tensor* const one[] = {&made->value};
  realize(one);
  tree_->entries.push_back(std::move(made));
  Entry* const kept = tree_->entries.back().get();
  tree_->by_name.emplace(std::move(full), kept);
  return *kept;
}

Tensor Module::parameter(std::string_view name, const Ints& shape, const Initialization& how) {
  return entry(name, shape, dtype(), true, how).value;
}

Tensor& Module::buffer(std::string_view name, const Ints& shape, DType dtype, double value) {
  return entry(name, shape, dtype, false, {Initial::Constant, value}).value;
}

std::vector<const Module::Entry*> Module::entries(bool parameters_only) const {
  std::vector<const Entry*> found;
  for (const auto& e : tree_->entries)
    if ((e->is_parameter || !parameters_only) && e->name.starts_with(prefix_))
      found.push_back(e.get());
  return found;
}

}  // namespace tiny
