// Memory of the caller's on a device that does not see it: copied where it is given, read and
// written at executions, never written behind anybody's back.
#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/program.h"
#include "tensor/run.h"
#include "tensor/value.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;
using testing::Floats;

class Far : public ::testing::Test {
 protected:
  Tensor wrapped(bool is_writable, int* deleted = nullptr) {
    return wrap(
        context_, kFloat32, {3}, {1}, data_.data(),
        [](void* user) { user ? ++*static_cast<int*>(user) : 0; }, deleted, is_writable);
  }

  const Ref<Context> context_ = testing::new_context("far");
  Floats data_{1, 2, 3};
};

TEST_F(Far, WrappedMemoryIsCopiedAndLetGo) {
  int deleted = 0;
  Tensor t = wrapped(true, &deleted);
  EXPECT_EQ(deleted, 1);
  data_[0] = 9;
  EXPECT_EQ(testing::floats_of(add(t, t)), (Floats{2, 4, 6}));
  expect_failure(failure_of([&] { elements_of(t); }), Status::Device, {"is not the host's"});
}

TEST_F(Far, WhatWasWrappedToBeWrittenCannotBe) {
  Tensor t = wrapped(true);
  expect_failure(failure_of([&] { assign(t, add(t, t)); }), Status::Device,
                 {"the device \"far\" has a copy of memory that was wrapped"});
  Tensor only_read = wrapped(false);
  assign(only_read, add(only_read, only_read));
  EXPECT_EQ(testing::floats_of(only_read), (Floats{2, 4, 6}));
  EXPECT_EQ(data_, (Floats{1, 2, 3}));
}

TEST_F(Far, ExecutionsReadAndWriteWhatIsBound) {
  const Tensor x = make_placeholder(context_, kFloat32, {3});
  const std::vector<Tensor> inputs{x}, outputs{add(x, x), add(x, x)};
  const Ref<TensorRun> made =
      make_ref<TensorRun>(context_, compile_tensors(context_, inputs, outputs));
  TensorRun& run = *made;
  Floats twice(3), again(3);
  run.bind_input(0, data_.data(), 12);
  run.bind_output(0, twice.data(), 12);
  run.bind_output(1, again.data(), 12);
  run.execute();
  EXPECT_EQ(twice, (Floats{2, 4, 6}));
  data_ = {5, 6, 7};
  run.execute();
  EXPECT_EQ(twice, (Floats{10, 12, 14}));
  EXPECT_EQ(again, twice);
  run.bind_output(0, nullptr, 0);
  twice = {};
  data_ = {1, 1, 1};
  run.execute();
  Floats read(3);
  run.read_output(0, read.data());
  EXPECT_EQ(read, (Floats{2, 2, 2}));
  EXPECT_EQ(again, read);
}

}  // namespace
}  // namespace tiny
