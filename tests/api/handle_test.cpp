// Handles that are wrong, NULL aside: of another kind, released, or no handle at all.  Calls say
// what they got; releases and retains do nothing.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/onnx/model_writer.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temporary_folder.h"
#include "tiny.h"

namespace tiny {
namespace {

namespace w = onnx::testing;

bool error_has(const std::string& text) {
  return std::string(tiny_last_error()).find(text) != std::string::npos;
}

// One handle of each kind.
class Handles : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(tiny_options_create(&options_), TINY_OK);
    ASSERT_EQ(tiny_options_set_string(options_, "device", "interp"), TINY_OK);
    ASSERT_EQ(tiny_context_create(options_, &context_), TINY_OK);
    const int64_t dims[] = {2};
    ASSERT_EQ(tiny_input(context_, TINY_FLOAT32, dims, 1, &tensor_), TINY_OK);
    ASSERT_EQ(tiny_cancel_create(&cancel_), TINY_OK);
    ASSERT_EQ(tiny_archive_create(context_, &archive_), TINY_OK);
    ASSERT_EQ(tiny_variable_create(context_, "n", 2, 8, &variable_), TINY_OK);
    const std::string path = folder_ / "neg.onnx";
    write_file(path, w::model(w::typed_graph({w::node("Neg", {"x"}, {"y"})},
                                             {w::floats("x", {w::dim(2)})}, {"y"}, {}))
                         .bytes());
    ASSERT_EQ(tiny_model_load(context_, path.c_str(), &model_), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_model_compile(model_, nullptr, 0, &program_), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_create(program_, &run_), TINY_OK);
    ASSERT_EQ(tiny_devices(&report_), TINY_OK);
    ASSERT_EQ(tiny_window_create(2, &window_), TINY_OK);
  }
  // In an order that makes each the last owner of what it was made from.
  void TearDown() override {
    tiny_context_release(context_);
    tiny_options_release(options_);
    tiny_model_release(model_);
    tiny_program_release(program_);
    tiny_tensor_release(tensor_);
    tiny_cancel_release(cancel_);
    tiny_archive_release(archive_);
    tiny_variable_release(variable_);
    tiny_run_release(run_);
    tiny_report_release(report_);
    tiny_window_release(window_);
  }

  // The handles, each as if it were one of T.
  template <class T>
  std::vector<T*> all_as() const {
    std::vector<T*> list;
    for (void* handle :
         std::initializer_list<void*>{options_, context_, tensor_, report_, cancel_, archive_,
                                      model_, program_, run_, variable_, window_})
      list.push_back(static_cast<T*>(handle));
    return list;
  }

  testing::TemporaryFolder folder_;
  tiny_options* options_ = nullptr;
  tiny_context* context_ = nullptr;
  tiny_tensor* tensor_ = nullptr;
  tiny_report* report_ = nullptr;
  tiny_cancel* cancel_ = nullptr;
  tiny_archive* archive_ = nullptr;
  tiny_model* model_ = nullptr;
  tiny_program* program_ = nullptr;
  tiny_run* run_ = nullptr;
  tiny_variable* variable_ = nullptr;
  tiny_window* window_ = nullptr;
};

// `call` takes handles of T alone: it refuses the other handles, and says why.
template <class T, class Call>
void expect_refused(const std::vector<T*>& handles, const T* right, const char* type, Call call) {
  for (T* handle : handles) {
    if (handle == right) continue;
    EXPECT_EQ(call(handle), TINY_ERROR_INVALID_ARGUMENT);
    EXPECT_TRUE(error_has(std::string(" where a ") + type + " is wanted")) << tiny_last_error();
  }
  EXPECT_EQ(call(const_cast<T*>(right)), TINY_OK) << tiny_last_error();
}

TEST_F(Handles, OfAnotherKindAreNamed) {
  int64_t whole = 0;
  size_t count = 0;
  tiny_tensor* tensor = nullptr;
  tiny_report* report = nullptr;
  expect_refused(all_as<tiny_options>(), options_, "tiny_options",
                 [](tiny_options* o) { return tiny_options_set_int(o, "threads", 1); });
  expect_refused(all_as<tiny_context>(), context_, "tiny_context", [&](tiny_context* c) {
    const tiny_status status = tiny_scalar_int(c, 1, &tensor);
    tiny_tensor_release(tensor);
    return status;
  });
  expect_refused(all_as<tiny_tensor>(), tensor_, "tiny_tensor",
                 [&](tiny_tensor* t) { return tiny_tensor_numel(t, &whole); });
  expect_refused(all_as<tiny_cancel>(), cancel_, "tiny_cancel",
                 [](tiny_cancel* c) { return tiny_cancel_clear(c); });
  expect_refused(all_as<tiny_archive>(), archive_, "tiny_archive",
                 [&](tiny_archive* a) { return tiny_archive_count(a, &count); });
  expect_refused(all_as<tiny_model>(), model_, "tiny_model", [&](tiny_model* m) {
    const tiny_status status = tiny_model_header(m, &report);
    tiny_report_release(report);
    return status;
  });
  expect_refused(all_as<tiny_program>(), program_, "tiny_program",
                 [&](tiny_program* p) { return tiny_program_kernel_count(p, &count); });
  expect_refused(all_as<tiny_run>(), run_, "tiny_run",
                 [](tiny_run* r) { return tiny_run_set_timed(r, 0); });
  expect_refused(all_as<tiny_variable>(), variable_, "tiny_variable",
                 [&](tiny_variable* v) { return tiny_variable_dim(v, &whole); });
  expect_refused(all_as<tiny_window>(), window_, "tiny_window",
                 [](tiny_window* w) { return tiny_window_set_groups(w, 2); });
  for (tiny_report* r : all_as<tiny_report>()) {
    if (r == report_) continue;
    EXPECT_STREQ(tiny_report_text(r), "");
    EXPECT_EQ(tiny_report_bytes(r), 0u);
  }
}

TEST_F(Handles, AreCheckedWhereverTheyMayBeLeftOut) {
  auto* model = reinterpret_cast<tiny_tensor*>(model_);
  tiny_tensor* out = nullptr;
  tiny_context* context = nullptr;
  EXPECT_EQ(tiny_clip(tensor_, model, nullptr, &out), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("tiny_clip: low is a tiny_model where a tiny_tensor is wanted"))
      << tiny_last_error();
  EXPECT_EQ(tiny_conv(tensor_, tensor_, nullptr, reinterpret_cast<tiny_window*>(model_), &out),
            TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("window is a tiny_model where a tiny_window")) << tiny_last_error();
  tiny_tensor* list[] = {tensor_, model};
  EXPECT_EQ(tiny_concat(list, 2, 0, &out), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("tensors[1] is a tiny_model")) << tiny_last_error();
  EXPECT_EQ(tiny_model_run(model_, &model, 1, &out, 1), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("inputs[0] is a tiny_model")) << tiny_last_error();
  EXPECT_EQ(tiny_run_set_output(run_, 0, model), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_run_set_cancel(run_, reinterpret_cast<tiny_cancel*>(model_)),
            TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_context_create(reinterpret_cast<tiny_options*>(model_), &context),
            TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_archive_set(archive_, "a", model), TINY_ERROR_INVALID_ARGUMENT);
  const char text[] = "no handle at all, but long enough to be looked at";
  EXPECT_EQ(tiny_unary(TINY_NEG, reinterpret_cast<const tiny_tensor*>(text), &out),
            TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("a is no tiny_tensor")) << tiny_last_error();
}

TEST_F(Handles, OfAnotherKindAreNotReleased) {
  for (int round = 0; round < 3; ++round) {
    for (auto* t : all_as<tiny_tensor>())
      if (t != tensor_) tiny_tensor_retain(t), tiny_tensor_release(t);
    for (auto* m : all_as<tiny_model>())
      if (m != model_) tiny_model_release(m);
    for (auto* c : all_as<tiny_context>())
      if (c != context_) tiny_context_release(c);
    for (auto* r : all_as<tiny_run>())
      if (r != run_) tiny_run_release(r);
    for (auto* o : all_as<tiny_options>())
      if (o != options_) tiny_options_release(o);
    for (auto* c : all_as<tiny_cancel>())
      if (c != cancel_) tiny_cancel_release(c);
    for (auto* a : all_as<tiny_archive>())
      if (a != archive_) tiny_archive_release(a);
    for (auto* p : all_as<tiny_program>())
      if (p != program_) tiny_program_release(p);
    for (auto* r : all_as<tiny_report>())
      if (r != report_) tiny_report_release(r);
    for (auto* v : all_as<tiny_variable>())
      if (v != variable_) tiny_variable_release(v);
    for (auto* w : all_as<tiny_window>())
      if (w != window_) tiny_window_release(w);
  }
  EXPECT_EQ(tiny_run_set_timed(run_, 1), TINY_OK) << tiny_last_error();
  EXPECT_NE(tiny_report_bytes(report_), 0u);
}

// A context that others keep is released once by its owner, and can be had again.
TEST_F(Handles, OfContextsThatAreReleasedTwiceLeaveWhatTheyMade) {
  tiny_tensor* number = nullptr;
  ASSERT_EQ(tiny_scalar_int(context_, 1, &number), TINY_OK);
  for (int i = 0; i < 10; ++i) tiny_context_release(context_);
  tiny_tensor* out = nullptr;
  EXPECT_EQ(tiny_scalar_int(context_, 1, &out), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("context is a released tiny_context")) << tiny_last_error();
  tiny_context_retain(context_);
  EXPECT_EQ(tiny_scalar_int(context_, 1, &out), TINY_ERROR_INVALID_ARGUMENT);
  int64_t value = 0;
  EXPECT_EQ(tiny_tensor_read(number, &value, sizeof value), TINY_OK) << tiny_last_error();
  tiny_context* again = nullptr;
  ASSERT_EQ(tiny_tensor_context(number, &again), TINY_OK);
  EXPECT_EQ(again, context_);
  EXPECT_EQ(tiny_scalar_int(again, 1, &out), TINY_OK) << tiny_last_error();
  tiny_tensor_release(out);
  tiny_tensor_release(number);
}

// Reads memory that is free.
TEST_F(Handles, ThatWereReleasedAreNamed) {
  if (testing::kWatchesMemory) GTEST_SKIP() << "a sanitizer reports the same";
  int64_t whole = 0;
  size_t count = 0;
  tiny_tensor_release(tensor_);
  for (int i = 0; i < 3; ++i) tiny_tensor_release(tensor_);
  tiny_tensor_retain(tensor_);
  EXPECT_EQ(tiny_tensor_numel(tensor_, &whole), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("tensor is a released tiny_tensor")) << tiny_last_error();
  tiny_variable_release(variable_);
  tiny_variable_release(variable_);
  EXPECT_EQ(tiny_variable_dim(variable_, &whole), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("variable is a released tiny_variable")) << tiny_last_error();
  tiny_run_release(run_);
  EXPECT_EQ(tiny_run_execute(run_), TINY_ERROR_INVALID_ARGUMENT);
  tiny_model_release(model_);
  tiny_model_release(model_);
  EXPECT_EQ(tiny_model_input_count(model_, &count), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("model is ")) << tiny_last_error();
}

}  // namespace
}  // namespace tiny
