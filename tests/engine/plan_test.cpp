#include "engine/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <random>

#include "engine/compile.h"
#include "engine/realize.h"
#include "shape/shape.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tests/reference/random_graph.h"
#include "tests/reference/reference.h"

namespace tiny {
namespace {

Ref<Context> make_context() {
  return make_ref<Context>(Flags::from_environment(nullptr));
}

std::vector<std::byte> on_host(const Storage& storage, int64_t bytes) {
  std::vector<std::byte> out(static_cast<size_t>(bytes));
  copy_to_host(storage, out.data(), bytes);
  return out;
}

bool overlap(int64_t a, int64_t a_last, int64_t b, int64_t b_last) {
  return a <= b_last && b <= a_last;
}

TEST(PlaceLifetimes, WhatLivesAtTheSameTimeLiesApart) {
  std::mt19937_64 random(7);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<Lifetime> lives;
    for (int64_t i = below(40); i >= 0; --i) {
      const int64_t first = below(30);
      lives.push_back({below(4) == 0 ? 0 : below(100000), first, first + below(6), 0});
    }
    const int64_t total = place_lifetimes(lives, ArenaLayout());
    int64_t peak = 0;
    for (int64_t t = 0; t < 40; ++t) {
      int64_t alive = 0;
      for (const Lifetime& l : lives) alive += l.first <= t && t <= l.last ? l.bytes : 0;
      peak = std::max(peak, alive);
    }
    EXPECT_EQ(peak_bytes(lives), peak);
    EXPECT_GE(total, peak);
    for (size_t i = 0; i < lives.size(); ++i) {
      EXPECT_EQ(lives[i].offset % 64, 0);
      EXPECT_LE(lives[i].offset + lives[i].bytes, total);
      for (size_t j = 0; j < i; ++j) {
        if (!overlap(lives[i].first, lives[i].last, lives[j].first, lives[j].last)) continue;
        if (lives[i].bytes == 0 || lives[j].bytes == 0) continue;
        EXPECT_TRUE(lives[i].offset + lives[i].bytes <= lives[j].offset ||
                    lives[j].offset + lives[j].bytes <= lives[i].offset);
      }
    }
  }
}

// By the definition: the largest first, each at the first place where nothing lies that lives at
// the same time.
std::vector<Lifetime> placed_by_definition(std::vector<Lifetime> lives, int64_t alignment) {
  std::vector<Lifetime*> by_size;
  for (Lifetime& life : lives) by_size.push_back(&life);
  std::ranges::stable_sort(by_size, std::greater<>(), &Lifetime::bytes);
  for (size_t i = 0; i < by_size.size(); ++i) {
    Lifetime& life = *by_size[i];
    std::vector<const Lifetime*> others;
    for (size_t j = 0; j < i; ++j)
      if (overlap(by_size[j]->first, by_size[j]->last, life.first, life.last))
        others.push_back(by_size[j]);
    std::vector<int64_t> places{0};
    for (const Lifetime* other : others)
      places.push_back((other->offset + other->bytes + alignment - 1) / alignment * alignment);
    std::ranges::sort(places);
    life.offset = *std::ranges::find_if(places, [&](int64_t at) {
      return std::ranges::all_of(others, [&](const Lifetime* other) {
        return at + life.bytes <= other->offset || other->offset + other->bytes <= at;
      });
    });
  }
  return lives;
}

TEST(PlaceLifetimes, TheLowestGapIsFound) {
  std::mt19937_64 random(3);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  for (int round = 0; round < 100; ++round) {
    std::vector<Lifetime> lives;
    for (int64_t i = below(300); i >= 0; --i) {
      const int64_t first = below(200);
      lives.push_back({1 + below(1000), first, first + below(1 + below(100)), 0});
    }
    const std::vector<Lifetime> wanted = placed_by_definition(lives, 64);
    place_lifetimes(lives, ArenaLayout());
    for (size_t i = 0; i < lives.size(); ++i) ASSERT_EQ(lives[i].offset, wanted[i].offset);
  }
}

TEST(PlaceLifetimes, BesideVeryManyAValueLiesBehindAll) {
  // As gradients need them: the first that is made is read last.
  std::vector<Lifetime> lives;
  constexpr int64_t kCount = 2000;
  for (int64_t i = 0; i < kCount; ++i) lives.push_back({64, i, 2 * kCount - i, 0});
  lives.push_back({64, 2 * kCount, 2 * kCount, 0});  // beside the first alone
  EXPECT_EQ(place_lifetimes(lives, ArenaLayout()), 64 * kCount);
  EXPECT_EQ(lives.back().offset, 64);
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < kCount; ++i) offsets.push_back(lives[static_cast<size_t>(i)].offset);
  std::ranges::sort(offsets);
  for (int64_t i = 0; i < kCount; ++i) EXPECT_EQ(offsets[static_cast<size_t>(i)], 64 * i);
}

TEST(PlaceLifetimes, LargeValuesOfOneTimeBeginApartInTheirPages) {
  // A chain: each is read while the next is stored; one is read again later.
  std::vector<Lifetime> lives;
  for (int64_t i = 0; i < 12; ++i) lives.push_back({256 << 10, i, i + 1, 0});
  lives.push_back({512 << 10, 3, 9, 0});
  const int64_t total = place_lifetimes(lives, ArenaLayout());
  EXPECT_LE(total, (1024 << 10) + 3 * 4096);
  for (size_t i = 0; i < lives.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      if (!overlap(lives[i].first, lives[i].last, lives[j].first, lives[j].last)) continue;
      const int64_t apart = std::abs(lives[i].offset - lives[j].offset) % 4096;
      EXPECT_GE(apart, 1024) << i << " " << j;
      EXPECT_LE(apart, 3072) << i << " " << j;
    }
  // Small ones lie as close as they can.
  std::vector<Lifetime> small{{4096, 0, 1, 0}, {4096, 0, 1, 0}};
  EXPECT_EQ(place_lifetimes(small, ArenaLayout()), 8192);
}

// Graphs as a program, with what it computes checked by the oracle.
class PlanTest : public ::testing::Test {
 protected:
  // A tensor that the program reads from an input, and its numbers.
  Tensor input(const Ints& dims) {
    std::vector<float> data(static_cast<size_t>(product(to_shape(dims)).value()));
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = static_cast<float>(static_cast<int>((i * 7 + 3 * data_.size()) % 23) - 11) / 8;
    const auto count = static_cast<int64_t>(data.size());
    const UOp node = make_input(*context_, kFloat32, count);
    const Ref<Storage> storage = context_->from_host(data.data(), count * 4);
    inputs_.push_back(node);
    known_.emplace_back(node, make_buffer(context_->graph(), storage, kFloat32, count));
    data_.push_back(storage);
    return Tensor(context_, make_reshape(node, to_shape(dims)));
  }

  // Compiles, runs twice, compares with the oracle.
  Ref<Program> check(const Tensor& output) {
    const UOp nodes[] = {output.node()};
    const Ref<Program> program = compile_program(*context_, nodes, inputs_).program;
    const Ref<tiny::Run> run = make_ref<tiny::Run>(program);
    const int64_t bytes = element_count(output) * output.dtype().bytes();
    const Ref<Storage> out = context_->allocate(bytes);
    for (size_t i = 0; i < data_.size(); ++i) run->bind_input(static_cast<int64_t>(i), data_[i]);
    run->bind_output(0, out);
    const reference::Values want = reference::evaluate(substitute(output.node(), known_));
    for (int round = 0; round < 2; ++round) {
      run->execute();
      EXPECT_EQ(reference::difference(want, on_host(*out, bytes).data()), "");
    }
    EXPECT_LE(static_cast<double>(program->arena_bytes),
              1.25 * static_cast<double>(program->live_bytes_max) + 64 * 64);
    return program;
  }

  // How many kernels store where an input of theirs was.
  static int64_t taken_over(const Program& program) {
    int64_t count = 0;
    for (const TapeEntry& entry : program.tape) {
      std::map<uint32_t, int> seen;
      for (uint32_t slot : entry.slots) count += ++seen[slot] == 2 ? 1 : 0;
    }
    return count;
  }

  Ref<Context> context_ = make_context();
  std::vector<UOp> inputs_;
  std::vector<std::pair<UOp, UOp>> known_;
  std::vector<Ref<Storage>> data_;
};

TEST_F(PlanTest, AnEpilogueTakesOverTheOperandThatDies) {
  const Tensor x = input({48, 64}), v = input({64, 64}), w = input({64, 64}), u = input({64, 64});
  const Tensor y = matmul(x, v);
  const Tensor z = add(matmul(y, w), y);  // y is read by the product and by the sum
  const Tensor s = matmul(z, u);
  const Ref<Program> apart = check(s);
  EXPECT_EQ(taken_over(*apart), 0) << "the product contracts y";
  const Tensor other = matmul(x, u);
  const Tensor sum = add(matmul(contiguous(input({48, 64})), w), other);
  const Ref<Program> program = check(matmul(sum, v));
  EXPECT_EQ(taken_over(*program), 1) << "the sum only adds it";
}

TEST_F(PlanTest, AnotherOrderOrAnotherReaderIsNotTakenOver) {
  const Tensor x = input({64, 64}), v = input({64, 64}), w = input({64, 64});
  const Tensor y = matmul(x, v);
  const Tensor both = add(add(matmul(x, w), permute(y, {1, 0})), y);
  EXPECT_EQ(taken_over(*check(matmul(both, v))), 0);
  EXPECT_EQ(taken_over(*check(matmul(add(matmul(x, w), flip(y, {0})), v))), 0);
  const Tensor sum = add(matmul(x, w), y);
  EXPECT_EQ(taken_over(*check(add(matmul(sum, v), mul(y, w)))), 0) << "y is read again";
}

TEST_F(PlanTest, InputsOutputsAndWeightsAreNotTakenOver) {
  const Tensor x = input({64, 64}), w = input({64, 64});
  EXPECT_EQ(taken_over(*check(add(matmul(x, w), x))), 0);
}

TEST(MemoryPlan, RandomGraphsFitTheArenaAndHaveTheOraclesValues) {
  int64_t programs = 0, taken = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const Ref<Context> context = make_context();
    testing::GraphOptions options;
    options.steps = 14;
    options.elements_max = 4000;
    testing::RandomGraph graph(context, seed, options);
    std::vector<Tensor> tensors = graph.make();
    std::vector<UOp> nodes;
    for (const Tensor& t : tensors)
      if (element_count(t) > 0 && std::find(nodes.begin(), nodes.end(), t.node()) == nodes.end())
        nodes.push_back(t.node());
    if (nodes.empty()) continue;
    // What the graph is made of becomes inputs, so that nothing is computed beforehand.
    std::vector<UOp> inputs;
    std::vector<std::pair<UOp, UOp>> replaced;
    std::vector<Ref<Storage>> data;
    for (const UOp& u : topological(nodes)) {
      if (u.op() != Op::Buffer) continue;
      inputs.push_back(make_input(*context, u.dtype(), product(shape_of(u)).value()));
      replaced.emplace_back(u, inputs.back());
      data.push_back(storage_of(u));
    }
    std::vector<UOp> outputs;
    for (const UOp& u : nodes) outputs.push_back(substitute(u, replaced));
    const Ref<Program> program = compile_program(*context, outputs, inputs).program;
    EXPECT_LE(static_cast<double>(program->arena_bytes),
              1.25 * static_cast<double>(program->live_bytes_max) + 64 * 16)
        << graph.story();
    const Ref<tiny::Run> run = make_ref<tiny::Run>(program);
    for (size_t i = 0; i < data.size(); ++i) run->bind_input(static_cast<int64_t>(i), data[i]);
    std::vector<Ref<Storage>> results;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const int64_t bytes = product(shape_of(outputs[i])).value() * outputs[i].dtype().bytes();
      results.push_back(context->allocate(bytes));
      run->bind_output(static_cast<int64_t>(i), results.back());
    }
    run->execute();
    for (size_t i = 0; i < outputs.size(); ++i)
      EXPECT_EQ(reference::difference(reference::evaluate(nodes[i]),
                                      on_host(*results[i], results[i]->memory().bytes()).data()),
                "")
          << "seed " << seed << "\n"
          << graph.story();
    ++programs;
    for (const TapeEntry& entry : program->tape)
      for (size_t i = 0; i < entry.slots.size(); ++i)
        for (size_t j = 0; j < i; ++j) taken += entry.slots[i] == entry.slots[j];
  }
  RecordProperty("taken_over", std::to_string(taken));
  EXPECT_GT(programs, 300);
  EXPECT_GT(taken, 0) << "the graphs make use of it";
}

}  // namespace
}  // namespace tiny
