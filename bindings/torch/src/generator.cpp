#include "generator.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/GeneratorImpl.h>

#include <torch/library.h>

#include <cstring>

namespace tiny_torch {

namespace {

// What generators of PyTorch begin with.
constexpr uint64_t kDefaultSeed = c10::default_rng_seed_val;

struct State {
  uint64_t seed = kDefaultSeed;
  uint64_t draws = 0;
};

class Generator final : public c10::GeneratorImpl {
 public:
  Generator()
      : GeneratorImpl(c10::Device(c10::DeviceType::PrivateUse1, 0),
                      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}
  void set_current_seed(uint64_t seed) override { state_ = {seed, 0}; }
  void set_offset(uint64_t offset) override { state_.draws = offset; }
  uint64_t get_offset() const override { return state_.draws; }
  uint64_t current_seed() const override { return state_.seed; }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return state_.seed;
  }
  void set_state(const c10::TensorImpl& state) override {
    TORCH_CHECK(state.device().is_cpu() && state.dtype() == c10::scalarTypeToTypeMeta(at::kByte) &&
                    state.numel() == sizeof state_,
                "tiny: the state of a generator is a uint8 tensor on the CPU of ", sizeof state_,
                " elements, as get_state() gives it");
    std::memcpy(&state_, state.data(), sizeof state_);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const at::Tensor state = at::empty({static_cast<int64_t>(sizeof state_)}, at::kByte);
    std::memcpy(state.data_ptr(), &state_, sizeof state_);
    return state.getIntrusivePtr();
  }
  State draw() {
    const State now = state_;
    ++state_.draws;
    return now;
  }

 private:
  Generator* clone_impl() const override {
    auto* const copy = new Generator;
    copy->state_ = state_;
    return copy;
  }

  State state_;
};

// Steele, Lea and Flood 2014, the finaliser of SplitMix64: near seeds and draws have keys far
// apart.
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

const at::Generator& default_generator() {
  static const auto& made = *new at::Generator(make_generator());
  return made;
}

at::Generator make_generator() {
  return at::make_generator<Generator>();
}

Value next_key(const std::optional<at::Generator>& generator) {
  const at::Generator& source =
      generator.has_value() && generator->defined() ? *generator : default_generator();
  TORCH_CHECK(source.device().type() == c10::DeviceType::PrivateUse1,
              "Expected a 'tiny' device type for generator but found '", source.device().type(),
              "'");
  auto* const impl = static_cast<Generator*>(source.unsafeGetGeneratorImpl());
  const std::lock_guard guard(impl->mutex_);
  const State state = impl->draw();
  const uint64_t bits = mix(mix(state.seed + 0x9e3779b97f4a7c15u) + state.draws);
  const uint32_t key[2] = {static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)};
  const int64_t size = 2;
  return from_data(TINY_UINT32, {&size, 1}, key, sizeof key);
}

TORCH_LIBRARY_FRAGMENT(tiny, m) {
  m.def("default_generator() -> Generator?", [] { return default_generator(); });
}

}  // namespace tiny_torch
