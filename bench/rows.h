// The rows of bench_kernels: tiny beside its peers and the bound that each is held against.
#pragma once

#include "peers.h"
#include "tiny.h"

namespace tiny::bench {

// The contexts that a row's contenders of tiny live in.
struct Setting {
  tiny_context* context = nullptr;
  tiny_context* single = nullptr;  // of one thread, where `context` has more; else null
  int threads = 1;
  bool is_wide = true;  // whether the bound has vectors of 512 bits
};

// Each fills in the values of the work, which must outlive the row.
Row gemm_row(const Setting& setting, const std::string& name, Gemm& gemm);
Row convolution_row(const Setting& setting, const std::string& name, Convolution& conv);
Row pass_row(const Setting& setting, const std::string& name, Pass& pass);

}  // namespace tiny::bench
