// Whose work kernels do: names of tensors and of a model's nodes, through caches and rewriting.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/onnx/model_writer.h"
#include "tiny.h"

namespace {

constexpr std::array<int64_t, 2> kDims = {8, 8};
constexpr int64_t kCount = 64;

// The names between the brackets of each "computes" of a report.
std::vector<std::string> computes_of(const std::string& json) {
  const std::string key = "\"computes\":[";
  std::vector<std::string> found;
  for (size_t at = json.find(key); at != std::string::npos; at = json.find(key, at)) {
    at += key.size();
    found.push_back(json.substr(at, json.find(']', at) - at));
  }
  return found;
}

using Names = std::vector<std::string>;

class Named : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("tiny-names-" + std::to_string(getpid()));
    open();
  }
  void TearDown() override {
    close();
    std::filesystem::remove_all(folder_);
  }
  void open() {
    tiny_options* options = nullptr;
    ASSERT_EQ(tiny_options_create(&options), TINY_OK);
    ASSERT_EQ(tiny_options_set_string(options, "device", "interp"), TINY_OK);
    ASSERT_EQ(tiny_options_set_string(options, "cache_dir", folder_.c_str()), TINY_OK);
    ASSERT_EQ(tiny_options_set_int(options, "spec", 0), TINY_OK);  // which reads no cache
    ASSERT_EQ(tiny_context_create(options, &context_), TINY_OK);
    tiny_options_release(options);
  }
  void close() {
    for (tiny_tensor* t : kept_) tiny_tensor_release(t);
    kept_.clear();
    tiny_context_release(context_);
    context_ = nullptr;
  }
  tiny_tensor* keep(tiny_status status, tiny_tensor* t) {
    EXPECT_EQ(status, TINY_OK) << tiny_last_error();
    kept_.push_back(t);
    return t;
  }
  tiny_tensor* input() {
    tiny_tensor* x = nullptr;
    const tiny_status status = tiny_input(context_, TINY_FLOAT32, kDims.data(), 2, &x);
    return keep(status, x);
  }
  tiny_tensor* matmul(tiny_tensor* a, tiny_tensor* b) {
    tiny_tensor* out = nullptr;
    const tiny_status status = tiny_matmul(a, b, &out);
    return keep(status, out);
  }
  tiny_tensor* unary(tiny_unary_op op, tiny_tensor* a) {
    tiny_tensor* out = nullptr;
    const tiny_status status = tiny_unary(op, a, &out);
    return keep(status, out);
  }
  tiny_tensor* named(tiny_tensor* t, const char* name) {
    EXPECT_EQ(tiny_tensor_set_name(t, name), TINY_OK) << tiny_last_error();
    return t;
  }
  // exp(x x) x, its two products with these names.
  tiny_tensor* network(tiny_tensor* x, const char* first, const char* second) {
    tiny_tensor* h = named(unary(TINY_EXP, matmul(x, x)), first);
    return named(matmul(h, x), second);
  }
  tiny_program* compile(tiny_tensor* x, tiny_tensor* y) {
    tiny_program* program = nullptr;
    EXPECT_EQ(tiny_program_compile(&x, 1, &y, 1, &program), TINY_OK) << tiny_last_error();
    return program;
  }
  Names of_program(const char* first, const char* second) {
    tiny_tensor* x = input();
    tiny_program* program = compile(x, network(x, first, second));
    tiny_report* report = nullptr;
    EXPECT_EQ(tiny_program_kernels(program, &report), TINY_OK);
    const Names names = computes_of(tiny_report_text(report));
    tiny_report_release(report);
    tiny_program_release(program);
    return names;
  }

  std::filesystem::path folder_;
  tiny_context* context_ = nullptr;
  std::vector<tiny_tensor*> kept_;
};

TEST_F(Named, a_tensor_has_the_name_that_it_was_given) {
  tiny_tensor* x = input();
  const char* name = nullptr;
  ASSERT_EQ(tiny_tensor_name(x, &name), TINY_OK);
  EXPECT_STREQ(name, "");
  named(x, "pixels");
  ASSERT_EQ(tiny_tensor_name(x, &name), TINY_OK);
  EXPECT_STREQ(name, "pixels");
  named(x, "");
  ASSERT_EQ(tiny_tensor_name(x, &name), TINY_OK);
  EXPECT_STREQ(name, "");
  EXPECT_EQ(tiny_tensor_set_name(x, nullptr), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_tensor_set_name(nullptr, "x"), TINY_ERROR_INVALID_ARGUMENT);
}

TEST_F(Named, kernels_list_what_they_compute) {
  EXPECT_EQ(of_program("first", "second"), (Names{"\"first\"", "\"second\""}));
}

TEST_F(Named, a_schedule_lists_it_too) {
  tiny_tensor* y = network(input(), "one", "two");
  tiny_report* report = nullptr;
  ASSERT_EQ(tiny_schedule(&y, 1, &report), TINY_OK) << tiny_last_error();
  EXPECT_EQ(computes_of(tiny_report_text(report)), (Names{"\"one\"", "\"two\""}));
  tiny_report_release(report);
}

TEST_F(Named, what_has_no_name_belongs_to_what_alone_needs_it) {
  EXPECT_EQ(of_program("", "all"), (Names{"\"all\"", "\"all\""}));
  EXPECT_EQ(of_program("first", ""), (Names{"\"first\"", ""}));
  EXPECT_EQ(of_program("", ""), (Names{"", ""}));
}

// Operators of tiny_op, where nobody has named their results.
TEST_F(Named, operators_are_named_by_themselves) {
  const auto op = [&](const char* name, tiny_tensor* a) {
    tiny_tensor* out = nullptr;
    const tiny_status status = tiny_op(context_, nullptr, name, 0, &a, 1, R"({"axis":1})", &out, 1);
    return keep(status, out);
  };
  const auto names = [&](bool is_named) {
    tiny_tensor* x = input();
    tiny_tensor* y = op("Softmax", matmul(x, x));
    if (is_named) named(y, "weights");
    tiny_report* report = nullptr;
    EXPECT_EQ(tiny_schedule(&y, 1, &report), TINY_OK) << tiny_last_error();
    std::set<std::string> found;
    for (const std::string& of_kernel : computes_of(tiny_report_text(report)))
      found.insert(of_kernel);
    tiny_report_release(report);
    return found;
  };
  const std::set<std::string> plain = names(false), given = names(true);
  EXPECT_TRUE(plain.contains("\"Softmax\"") && plain.contains("")) << "the product is nobody's";
  EXPECT_EQ(plain.size(), 2u);
  EXPECT_EQ(given, std::set<std::string>{"\"weights\""});
}

// A branch's nodes stand behind the node that has it.
TEST_F(Named, nodes_of_inner_graphs_are_behind_the_outer_node) {
  namespace w = tiny::onnx::testing;
  const auto node = [](const char* op, const char* input, const char* output, const char* name) {
    return w::node(op, {input}, {output}).text(tiny::field::NodeProto::name, name);
  };
  const auto branch = [&](const char* op, const char* name) {
    return w::graph({node(op, "x", "b", name)}, {}, {"b"});
  };
  const w::Message choice = w::with(w::with(node("If", "c", "y", "choice"),
                                            w::graph_attribute("then_branch", branch("Exp", "e"))),
                                    w::graph_attribute("else_branch", branch("Log", "")));
  const std::string bytes =
      w::model(w::typed_graph({choice},
                              {w::value("c", w::tensor_type(w::kBoolType, {})),
                               w::floats("x", {w::dim(8), w::dim(8)})},
                              {"y"}))
          .bytes();
  tiny_model* model = nullptr;
  ASSERT_EQ(tiny_model_load_memory(context_, bytes.data(), bytes.size(), nullptr, &model), TINY_OK)
      << tiny_last_error();
  tiny_program* program = nullptr;
  ASSERT_EQ(tiny_model_compile(model, nullptr, 0, &program), TINY_OK) << tiny_last_error();
  tiny_report* report = nullptr;
  ASSERT_EQ(tiny_program_kernels(program, &report), TINY_OK);
  EXPECT_EQ(computes_of(tiny_report_text(report)), Names{R"("choice","choice/e","choice/Log:b")"});
  tiny_report_release(report);
  tiny_program_release(program);
  tiny_model_release(model);
}

// The plan is found in the context, then in the disk cache of another process's stead: the graph's
// structure is the same, its names are not.
TEST_F(Named, plans_from_caches_have_the_names_of_the_graph_that_asks) {
  EXPECT_EQ(of_program("a", "b"), (Names{"\"a\"", "\"b\""}));
  EXPECT_EQ(of_program("c", "d"), (Names{"\"c\"", "\"d\""}));
  EXPECT_EQ(of_program("", ""), (Names{"", ""}));
  EXPECT_EQ(of_program("same", "same"), (Names{"\"same\"", "\"same\""}));
  close();
  open();
  EXPECT_EQ(of_program("e", "f"), (Names{"\"e\"", "\"f\""}));
  EXPECT_EQ(of_program("", ""), (Names{"", ""}));
}

TEST_F(Named, a_trace_has_an_event_for_each_kernel) {
  tiny_tensor* x = input();
  tiny_program* program = compile(x, network(x, "first", "second"));
  tiny_run* run = nullptr;
  ASSERT_EQ(tiny_run_create(program, &run), TINY_OK);
  std::vector<float> values(kCount, 0.1f);
  tiny_tensor* data = nullptr;
  ASSERT_EQ(tiny_tensor_from_data(context_, TINY_FLOAT32, kDims.data(), 2, values.data(),
                                  values.size() * sizeof(float), &data),
            TINY_OK);
  keep(TINY_OK, data);
  ASSERT_EQ(tiny_run_set_input(run, 0, data), TINY_OK);
  ASSERT_EQ(tiny_run_execute(run), TINY_OK);
  tiny_report* report = nullptr;
  EXPECT_EQ(tiny_run_trace(run, &report), TINY_ERROR_INVALID_ARGUMENT) << "it was not timed";
  EXPECT_EQ(report, nullptr);
  ASSERT_EQ(tiny_run_set_timed(run, 1), TINY_OK);
  ASSERT_EQ(tiny_run_execute(run), TINY_OK);
  ASSERT_EQ(tiny_run_trace(run, &report), TINY_OK) << tiny_last_error();
  const std::string text = tiny_report_text(report);
  EXPECT_EQ(computes_of(text), (Names{"\"first\"", "\"second\""}));
  EXPECT_NE(text.find("\"displayTimeUnit\":\"ms\""), std::string::npos);
  for (const char* key :
       {"\"ph\":\"X\"", "\"ts\":", "\"dur\":", "\"pid\":", "\"tid\":", "\"gflops\":"})
    EXPECT_NE(text.find(key), std::string::npos) << key << " in " << text;
  tiny_report_release(report);
  tiny_run_release(run);
  tiny_program_release(program);
}

}  // namespace
