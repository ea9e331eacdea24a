// The loads and stores of the C renderer.  Addresses are integers and lanes are copied as bytes, so
// that neither aliasing nor alignment is the compiler's to assume.
//
// The lanes of a masked load are read through volatile, which keeps them scalar: gcc 12 vectorises
// the plain loop to a masked load and, where the mask is constant, merges that into a blend which
// reads all lanes.
#include "base/text.h"
#include "render/c/helpers.h"
#include "render/c/types.h"

namespace tiny::c {
namespace {

// A bool in memory is 0 or 1, a lane of a mask 0 or -1.
const char* sign(DType dtype) {
  return dtype.is_bool() ? "-" : "";
}

}  // namespace

std::string Helpers::load(DType dtype, bool strided, bool masked) {
  const std::string t = type(dtype);
  if (dtype.lanes == 1) {
    const std::string name = cat("load_", t);
    if (first(name))
      write(
          fill("INLINE $0 $1(address p) {\n"
               "  $0 x;\n"
               "  __builtin_memcpy(&x, (const void *)p, sizeof x);\n"
               "  return x;\n"
               "}",
               {t, name}));
    return name;
  }
  if (!strided && !masked) {
    const std::string name = cat("load_", t);
    if (first(name))
      write(
          fill("INLINE $0 $1(address p) {\n"
               "  $0 x$2;\n"
               "  __builtin_memcpy(&x, (const void *)p, $3);\n"
               "  return $4x;\n"
               "}",
               {t, name, padded_lanes(dtype) > dtype.lanes ? " = {0}" : "",
                std::to_string(dtype.lanes * dtype.bytes()), sign(dtype)}));
    return name;
  }
  return lane_access(cat(masked ? "load_masked_" : "load_strided_", t), dtype, "", ", i64 stride",
                     "p + l * stride", masked);
}

std::string Helpers::store(DType dtype, bool strided, bool masked) {
  const std::string t = type(dtype);
  if (dtype.lanes == 1 || (!strided && !masked)) {
    const std::string name = cat("store_", t);
    const bool mask = dtype.is_bool() && dtype.lanes > 1;
    if (first(name))
      write(fill(
          "INLINE void $0(address p, $1 x) {\n"
          "$2"
          "  __builtin_memcpy((void *)p, &x, $3);\n"
          "}",
          {name, t, mask ? "  x = x & 1;\n" : "", std::to_string(dtype.lanes * dtype.bytes())}));
    return name;
  }
  return lane_access(cat(masked ? "store_masked_" : "store_strided_", t), dtype, cat(", ", t, " x"),
                     ", i64 stride", "p + l * stride", masked);
}

std::string Helpers::gather(DType dtype, bool masked) {
  const std::string t = type(dtype), index = type(kInt64.with_lanes(dtype.lanes));
  return lane_access(cat(masked ? "gather_masked_" : "gather_", t), dtype, "",
                     cat(", ", index, " index"), cat("p + index[l] * ", dtype.bytes()), masked);
}

std::string Helpers::scatter(DType dtype, bool masked) {
  const std::string t = type(dtype), index = type(kInt64.with_lanes(dtype.lanes));
  return lane_access(cat(masked ? "scatter_masked_" : "scatter_", t), dtype, cat(", ", t, " x"),
                     cat(", ", index, " index"), cat("p + index[l] * ", dtype.bytes()), masked);
}

// One lane after the other: a load if there is no value parameter.
std::string Helpers::lane_access(const std::string& name, DType dtype, const std::string& value,
                                 const std::string& where, const std::string& place, bool masked) {
  const bool is_load = value.empty();
  std::string parameters = cat(value, where);
  if (masked) parameters += cat(", ", type(kBool.with_lanes(dtype.lanes)), " mask");
  const std::string lane = !is_load ? store(dtype.element(), false, false)
                           : masked ? load_now(dtype.element())
                                    : load(dtype.element(), false, false);
  const std::string condition = masked ? "if (mask[l]) " : "";
  if (is_load)
    return by_lane(name, dtype, cat("address p", parameters),
                   cat(sign(dtype), lane, "(", place, ")"), condition);
  if (first(name))
    write(
        fill("INLINE void $0(address p$1) {\n"
             "  for (int l = 0; l < $2; ++l)\n"
             "    $3$4($5, $6x[l]);\n"
             "}",
             {name, parameters, std::to_string(dtype.lanes), condition, lane, place, sign(dtype)}));
  return name;
}

std::string Helpers::load_now(DType dtype) {
  const std::string t = type(dtype), name = cat("load_now_", t);
  if (first(name))
    write(
        fill("typedef $0 anywhere_$0 __attribute__((aligned(1), may_alias));\n"
             "INLINE $0 $1(address p) { return *(const volatile anywhere_$0 *)p; }",
             {t, name}));
  return name;
}

}  // namespace tiny::c
