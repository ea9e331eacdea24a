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
using Type = memory::data_type;
using Arguments = std::unordered_map<int, memory>;

const char* setting(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "(unset)";
}

memory::desc plain(const memory::dims& dims, Format format, Type type = Type::f32) {
  return {dims, type, format};
}

// An engine, its stream, and primitives that run one after the other.
struct Onednn {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::vector<dnnl::primitive> primitives;
  std::vector<Arguments> arguments;
  memory::desc plain_result;

  // A copy of row-major values in the format that a primitive wants.
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
    for (size_t i = 0; i < primitives.size(); ++i) primitives[i].execute(stream, arguments[i]);
    stream.wait();
  }

  std::vector<float> result() {
    memory made = arguments.back().at(DNNL_ARG_DST);
    memory target(plain_result, engine);
    dnnl::reorder(made, target).execute(stream, made, target);
    stream.wait();
    const auto* data = static_cast<const float*>(target.get_data_handle());
    return {data, data + plain_result.get_size() / sizeof(float)};
  }
};

Contender contender_of(const std::string& name, const std::string& settings,
                       const std::string& kind, const std::shared_ptr<Onednn>& work) {
  return {name, settings, kind, [work] { work->call(); }, [work] { return work->result(); }};
}

// ---- matrix products

Contender openblas_gemm(const Gemm& gemm) {
  const auto c = std::make_shared<std::vector<float>>(static_cast<size_t>(gemm.m * gemm.n));
  const auto size = [](int64_t n) { return static_cast<blasint>(n); };
  const auto call = [&gemm, c, size] {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size(gemm.m), size(gemm.n), size(gemm.k),
                1.0F, gemm.a.data(), size(gemm.k), gemm.b.data(), size(gemm.n), 0.0F, c->data(),
                size(gemm.n));
  };
  return {"OpenBLAS", std::string("cblas_sgemm, ") + openblas_get_corename(), "peer", call,
          [c] { return *c; }};
}

Contender onednn_sgemm(const Gemm& gemm) {
  const auto c = std::make_shared<std::vector<float>>(static_cast<size_t>(gemm.m * gemm.n));
  const auto call = [&gemm, c] {
    dnnl_sgemm('N', 'N', gemm.m, gemm.n, gemm.k, 1.0F, gemm.a.data(), gemm.k, gemm.b.data(), gemm.n,
               0.0F, c->data(), gemm.n);
  };
  return {"oneDNN sgemm", "dnnl_sgemm", "peer", call, [c] { return *c; }};
}

struct GemmTypes {
  Type a, b, c;
};

GemmTypes types_of(Elements elements) {
  if (elements == Elements::kBfloat16) return {Type::bf16, Type::bf16, Type::bf16};
  if (elements == Elements::kInt8) return {Type::u8, Type::s8, Type::s32};
  return {Type::f32, Type::f32, Type::f32};
}

Contender onednn_matmul(const Gemm& gemm, bool is_prepared) {
  const auto work = std::make_shared<Onednn>();
  const GemmTypes types = types_of(gemm.elements);
  const memory::dims b_dims{gemm.k, gemm.n};
  const auto a = plain({gemm.m, gemm.k}, Format::ab, types.a);
  const auto b = plain(b_dims, is_prepared ? Format::any : Format::ab, types.b);
  const auto c = plain({gemm.m, gemm.n}, Format::ab, types.c);
  const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), work->engine);
  work->primitives = {dnnl::matmul(description)};
  work->plain_result = plain({gemm.m, gemm.n}, Format::ab);
  work->arguments = {
      {{DNNL_ARG_SRC, work->prepared(gemm.a, plain({gemm.m, gemm.k}, Format::ab), a)},
       {DNNL_ARG_WEIGHTS,
        work->prepared(gemm.b, plain(b_dims, Format::ab), description.weights_desc())},
       {DNNL_ARG_DST, memory(c, work->engine)}}};
  const std::string how = std::string("matmul, ") + description.impl_info_str();
  if (!is_prepared) return contender_of("oneDNN matmul", how, "peer", work);
  return contender_of("oneDNN, B prepared", how, gemm.is_constant ? "peer" : "other", work);
}

// ---- convolutions

// Spatial axes come last; Format::abc and so on by their number.
Format plain_format(size_t rank) {
  return rank == 3 ? Format::abc : rank == 4 ? Format::abcd : Format::abcde;
}
Format channels_last(size_t rank) {
  return rank == 3 ? Format::acb : Format::acdb;
}

memory::dims with_spatial(memory::dims dims, const std::vector<int64_t>& spatial) {
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  return dims;
}

// Adds a convolution to the primitives; its source is `source` or, where that is empty, `values`.
memory add_convolution(Onednn& work, dnnl::algorithm algorithm, const memory& source,
                       const std::vector<float>& values, const memory::dims& x,
                       const memory::dims& weight, const std::vector<float>& weights,
                       const memory::dims& y, int64_t stride, int64_t padding, std::string& how) {
  const memory::dims strides(x.size() - 2, stride);
  const memory::dims paddings(x.size() - 2, padding);
  const auto x_desc = source ? source.get_desc() : plain(x, Format::any);
  const dnnl::convolution_forward::primitive_desc description(
      dnnl::convolution_forward::desc(dnnl::prop_kind::forward_inference, algorithm, x_desc,
                                      plain(weight, Format::any), plain(y, Format::any), strides,
                                      paddings, paddings),
      work.engine);
  how += std::string(how.empty() ? "" : " then ") + description.impl_info_str();
  memory made(description.dst_desc(), work.engine);
  const auto x_plain = plain(x, plain_format(x.size()));
  work.primitives.push_back(dnnl::convolution_forward(description));
  work.arguments.push_back(
      {{DNNL_ARG_SRC, source ? source : work.prepared(values, x_plain, description.src_desc())},
       {DNNL_ARG_WEIGHTS, work.prepared(weights, plain(weight, plain_format(weight.size())),
                                        description.weights_desc())},
       {DNNL_ARG_DST, made}});
  return made;
}

Contender onednn_convolution(const Convolution& conv, const std::string& name,
                             dnnl::algorithm algorithm) {
  const auto work = std::make_shared<Onednn>();
  const memory::dims kernel(conv.size.size(), conv.kernel);
  const memory::dims x = with_spatial({1, conv.channels}, conv.size);
  memory::dims y = with_spatial({1, conv.filters}, conv.out_size());
  memory::dims weight = with_spatial({conv.filters, conv.channels}, kernel);
  if (conv.groups > 1)
    weight = with_spatial({conv.groups, conv.filters / conv.groups, conv.channels / conv.groups},
                          kernel);
  std::string how;
  const memory made = add_convolution(*work, algorithm, {}, conv.x, x, weight, conv.weight, y,
                                      conv.stride, conv.padding(), how);
  if (conv.pointwise > 0) {
    const memory::dims last = with_spatial({1, conv.pointwise}, conv.out_size());
    const memory::dims ones(conv.size.size(), 1);
    const memory::dims filters = with_spatial({conv.pointwise, conv.filters}, ones);
    add_convolution(*work, algorithm, made, {}, y, filters, conv.pointwise_weight, last, 1, 0, how);
    y = last;
  }
  work->plain_result = plain(y, channels_last(y.size()));
  return contender_of(name, "any formats, " + how, "peer", work);
}

// ---- passes over memory

dnnl::primitive chain_primitive(Onednn& work, const memory::desc& shape, Arguments& arguments) {
  const auto scalar = plain({1, 1}, Format::ab);
  dnnl::post_ops after;
  after.append_binary(dnnl::algorithm::binary_add, scalar);
  after.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
  after.append_binary(dnnl::algorithm::binary_add, scalar);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(after);
  arguments[DNNL_ARG_SRC_0] = arguments[DNNL_ARG_SRC];
  arguments[DNNL_ARG_SRC_1] = work.prepared({kFactor}, scalar, scalar);
  arguments[DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1] =
      work.prepared({kBefore}, scalar, scalar);
  arguments[DNNL_ARG_ATTR_MULTIPLE_POST_OP(2) | DNNL_ARG_SRC_1] =
      work.prepared({kAfter}, scalar, scalar);
  return dnnl::binary({dnnl::binary::desc(dnnl::algorithm::binary_mul, shape, scalar, shape),
                       attributes, work.engine});
}

dnnl::primitive norm_primitive(Onednn& work, const Pass& pass, const memory::desc& shape,
                               Arguments& arguments) {
  using Flags = dnnl::normalization_flags;
  const auto one = plain({pass.columns}, Format::a);
  arguments[DNNL_ARG_SCALE] = work.prepared(pass.scale, one, one);
  arguments[DNNL_ARG_SHIFT] = work.prepared(pass.shift, one, one);
  return dnnl::layer_normalization_forward(
      {dnnl::layer_normalization_forward::desc(dnnl::prop_kind::forward_inference, shape, kEpsilon,
                                               Flags::use_scale | Flags::use_shift),
       work.engine});
}

}  // namespace

std::vector<int64_t> Convolution::out_size() const {
  std::vector<int64_t> out;
  for (const int64_t n : size) out.push_back((n + 2 * padding() - kernel) / stride + 1);
  return out;
}

std::vector<Contender> gemm_peers(const Gemm& gemm) {
  std::vector<Contender> peers;
  if (gemm.elements == Elements::kFloat32) peers = {openblas_gemm(gemm), onednn_sgemm(gemm)};
  peers.push_back(onednn_matmul(gemm, false));
  peers.push_back(onednn_matmul(gemm, true));
  return peers;
}

std::vector<Contender> convolution_peers(const Convolution& conv) {
  return {onednn_convolution(conv, "oneDNN direct", dnnl::algorithm::convolution_direct),
          onednn_convolution(conv, "oneDNN auto", dnnl::algorithm::convolution_auto)};
}

std::vector<Contender> pass_peers(const Pass& pass) {
  const auto work = std::make_shared<Onednn>();
  const auto shape = plain({pass.rows, pass.columns}, Format::ab);
  Arguments arguments{{DNNL_ARG_SRC, work->prepared(pass.x, shape, shape)},
                      {DNNL_ARG_DST, memory(shape, work->engine)}};
  std::string how = "softmax";
  if (pass.kind == Bandwidth::kChain) {
    work->primitives = {chain_primitive(*work, shape, arguments)};
    how = "binary with three post-operations";
  } else if (pass.kind == Bandwidth::kLayerNorm) {
    work->primitives = {norm_primitive(*work, pass, shape, arguments)};
    how = "layer_normalization";
  } else {
    work->primitives = {dnnl::softmax_forward(
        {dnnl::softmax_forward::desc(dnnl::prop_kind::forward_inference, shape, 1), work->engine})};
  }
  work->arguments = {arguments};
  work->plain_result = shape;
  return {contender_of("oneDNN", how, "peer", work)};
}

std::vector<std::string> peer_settings() {
  const dnnl_version_t* version = dnnl_version();
  const std::string number = std::to_string(version->major) + "." + std::to_string(version->minor) +
                             "." + std::to_string(version->patch);
  return {std::string("OpenBLAS: ") + openblas_get_config() + ", core " + openblas_get_corename() +
              ", OPENBLAS_CORETYPE=" + setting("OPENBLAS_CORETYPE") +
              ", OPENBLAS_NUM_THREADS=" + setting("OPENBLAS_NUM_THREADS"),
          "oneDNN " + number + ": OMP_NUM_THREADS=" + setting("OMP_NUM_THREADS") +
              ", DNNL_MAX_CPU_ISA=" + setting("DNNL_MAX_CPU_ISA")};
}

}  // namespace tiny::bench
