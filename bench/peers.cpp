#include "peers.h"

#include <cblas.h>

#include <cstdlib>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

namespace tiny::bench {
namespace {

using dnnl::memory;
using Format = memory::format_tag;
using Arguments = std::unordered_map<int, memory>;

const char* setting(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "(unset)";
}

// An engine, its stream, and one primitive with the memory that it works on.
struct Onednn {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::primitive primitive;
  Arguments arguments;
  memory::desc plain_result;

  memory::desc plain(const memory::dims& dims, Format format) const {
    return {dims, memory::data_type::f32, format};
  }

  // A copy of row-major values in the format that the primitive wants.
  memory prepared(const std::vector<float>& values, const memory::desc& from,
                  const memory::desc& wanted) {
    memory source(from, engine);
    std::copy(values.begin(), values.end(), static_cast<float*>(source.get_data_handle()));
    if (from == wanted) return source;
    memory target(wanted, engine);
    dnnl::reorder(source, target).execute(stream, source, target);
    stream.wait();
    return target;
  }

  void call() {
    primitive.execute(stream, arguments);
    stream.wait();
  }

  std::vector<float> result() {
    const memory& made = arguments.at(DNNL_ARG_DST);
    memory target(plain_result, engine);
    dnnl::reorder(made, target).execute(stream, const_cast<memory&>(made), target);
    stream.wait();
    const auto* data = static_cast<const float*>(target.get_data_handle());
    return {data, data + plain_result.get_size() / sizeof(float)};
  }
};

Contender contender_of(const std::string& name, const std::string& settings,
                       const std::string& kind, const std::shared_ptr<Onednn>& work) {
  return {name, settings, kind, [work] { work->call(); }, [work] { return work->result(); }};
}

Contender openblas_gemm(const Gemm& gemm, const std::shared_ptr<std::vector<float>>& c) {
  const auto size = [](int64_t n) { return static_cast<blasint>(n); };
  const auto call = [&gemm, c, size] {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size(gemm.m), size(gemm.n), size(gemm.k),
                1.0F, gemm.a.data(), size(gemm.k), gemm.b.data(), size(gemm.n), 0.0F, c->data(),
                size(gemm.n));
  };
  return {"OpenBLAS", std::string("cblas_sgemm, ") + openblas_get_corename(), "peer", call,
          [c] { return *c; }};
}

Contender onednn_sgemm(const Gemm& gemm, const std::shared_ptr<std::vector<float>>& c) {
  const auto call = [&gemm, c] {
    dnnl_sgemm('N', 'N', gemm.m, gemm.n, gemm.k, 1.0F, gemm.a.data(), gemm.k, gemm.b.data(), gemm.n,
               0.0F, c->data(), gemm.n);
  };
  return {"oneDNN sgemm", "dnnl_sgemm", "peer", call, [c] { return *c; }};
}

Contender onednn_matmul(const Gemm& gemm, bool is_prepared) {
  const auto work = std::make_shared<Onednn>();
  const auto a = work->plain({gemm.m, gemm.k}, Format::ab);
  const auto b = work->plain({gemm.k, gemm.n}, Format::ab);
  const auto c = work->plain({gemm.m, gemm.n}, Format::ab);
  const auto any = work->plain({gemm.k, gemm.n}, Format::any);
  const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, is_prepared ? any : b, c),
                                                 work->engine);
  work->primitive = dnnl::matmul(description);
  work->plain_result = c;
  work->arguments = {{DNNL_ARG_SRC, work->prepared(gemm.a, a, a)},
                     {DNNL_ARG_WEIGHTS, work->prepared(gemm.b, b, description.weights_desc())},
                     {DNNL_ARG_DST, memory(c, work->engine)}};
  const std::string how = description.impl_info_str();
  return is_prepared ? contender_of("oneDNN, B prepared", "matmul, " + how, "prepared", work)
                     : contender_of("oneDNN matmul", "matmul, " + how, "peer", work);
}

}  // namespace

std::vector<Contender> gemm_peers(const Gemm& gemm) {
  const auto result = [&] {
    return std::make_shared<std::vector<float>>(static_cast<size_t>(gemm.m * gemm.n));
  };
  return {openblas_gemm(gemm, result()), onednn_sgemm(gemm, result()), onednn_matmul(gemm, false),
          onednn_matmul(gemm, true)};
}

std::vector<Contender> convolution_peers(const Convolution& conv) {
  const auto work = std::make_shared<Onednn>();
  const memory::dims x{1, conv.channels, conv.size, conv.size};
  const memory::dims weight{conv.filters, conv.channels, conv.kernel, conv.kernel};
  const memory::dims y{1, conv.filters, conv.out_size(), conv.out_size()};
  const memory::dims strides{conv.stride, conv.stride};
  const memory::dims padding{conv.padding, conv.padding};
  const dnnl::convolution_forward::primitive_desc description(
      dnnl::convolution_forward::desc(dnnl::prop_kind::forward_inference,
                                      dnnl::algorithm::convolution_direct,
                                      work->plain(x, Format::any), work->plain(weight, Format::any),
                                      work->plain(y, Format::any), strides, padding, padding),
      work->engine);
  work->primitive = dnnl::convolution_forward(description);
  work->plain_result = work->plain(y, Format::nchw);
  work->arguments = {
      {DNNL_ARG_SRC, work->prepared(conv.x, work->plain(x, Format::nchw), description.src_desc())},
      {DNNL_ARG_WEIGHTS,
       work->prepared(conv.weight, work->plain(weight, Format::oihw), description.weights_desc())},
      {DNNL_ARG_DST, memory(description.dst_desc(), work->engine)}};
  return {contender_of("oneDNN", std::string("direct, any formats, ") + description.impl_info_str(),
                       "peer", work)};
}

std::vector<Contender> softmax_peers(int64_t rows, int64_t columns, const std::vector<float>& x) {
  const auto work = std::make_shared<Onednn>();
  const auto shape = work->plain({rows, columns}, Format::ab);
  const dnnl::softmax_forward::primitive_desc description(
      dnnl::softmax_forward::desc(dnnl::prop_kind::forward_inference, shape, 1), work->engine);
  work->primitive = dnnl::softmax_forward(description);
  work->plain_result = shape;
  work->arguments = {{DNNL_ARG_SRC, work->prepared(x, shape, shape)},
                     {DNNL_ARG_DST, memory(shape, work->engine)}};
  return {
      contender_of("oneDNN", std::string("softmax, ") + description.impl_info_str(), "peer", work)};
}

std::vector<std::string> peer_settings() {
  const dnnl_version_t* version = dnnl_version();
  const std::string number = std::to_string(version->major) + "." + std::to_string(version->minor) +
                             "." + std::to_string(version->patch);
  return {std::string("OpenBLAS: ") + openblas_get_config() + ", core " + openblas_get_corename() +
              ", OPENBLAS_CORETYPE=" + setting("OPENBLAS_CORETYPE") +
              ", OPENBLAS_NUM_THREADS=" + setting("OPENBLAS_NUM_THREADS"),
          "oneDNN " + number + ": OMP_NUM_THREADS=" + setting("OMP_NUM_THREADS")};
}

}  // namespace tiny::bench
