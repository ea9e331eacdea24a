// The loads and stores of the C renderer.  Addresses are integers and lanes are copied as bytes, so
// that neither aliasing nor alignment is the compiler's to assume.
//
// The lanes of a masked load are read through volatile, which keeps them scalar: gcc 12 vectorises
// the plain loop to a masked load and, where the mask is constant, merges that into a blend which
// reads all lanes.
#include "base/text.h"
#include "render/c/helpers.h"
#include "render/c/natives.h"
#include "render/c/types.h"

namespace tiny::c {
namespace {

// A vector of bools has the type of its bytes, but not their form in memory.
std::string access_name(DType dtype) {
  return dtype.is_bool() && dtype.lanes > 1 ? cat("b8x", dtype.lanes) : type_name(dtype);
}

}  // namespace

std::string Helpers::access(const char* what, DType dtype, Space space) const {
  return cat(what, access_name(dtype), dialect_.pointer(space).suffix);
}

// One lane where there is no memcpy: a pointer that may lie anywhere its elements do.
std::string Helpers::typed_place(DType dtype, Space space) {
  const std::string t = type(dtype);
  if (first(cat("anywhere_", t))) write(cat("ANYWHERE(", t, ")"));
  return cat("*(", dialect_.pointer(space).word, "anywhere_", t, " *)p");
}

std::string Helpers::load(DType dtype, bool strided, bool masked, Space space) {
  const std::string t = type(dtype);
  const bool is_vector = dtype.lanes > 1;
  if (is_vector && (strided || masked))
    return lane_access(access(masked ? "load_masked_" : "load_strided_", dtype, space), dtype, "",
                       {space, ", i64 stride", "p + (address)l * (address)stride"}, masked);
  const std::string name = access("load_", dtype, space);
  if (!dialect_.is_gnu && is_vector)
    return lane_access(name, dtype, "", {space, "", cat("p + l * ", dtype.bytes())}, false);
  const char* pointer = dialect_.pointer(space).type;
  if (!dialect_.is_gnu) {
    const std::string place = typed_place(dtype, space);
    if (first(name)) write(fill("INLINE $0 $1($2p) { return $3; }", {t, name, pointer, place}));
    return name;
  }
  if (is_vector && dtype.is_bool())
    return by_lane(name, dtype, cat(pointer, "p"), "-bytes[l]", "",
                   fill("  b8 bytes[$0];\n  memcpy(bytes, (const void *)p, sizeof bytes);\n",
                        {std::to_string(dtype.lanes)}));
  if (first(name))
    write(
        fill("INLINE $0 $1($4p) {\n"
             "  $0 x$2;\n"
             "  memcpy(&x, (const void *)p, $3);\n"
             "  return x;\n"
             "}",
             {t, name, padded_lanes(dtype) > dtype.lanes ? cat(" = ", splat(dtype), "(0)") : "",
              std::to_string(dtype.lanes * dtype.bytes()), pointer}));
  return name;
}

std::string Helpers::store(DType dtype, bool strided, bool masked, Space space) {
  const std::string t = type(dtype), value = cat(", ", t, " x");
  const bool is_vector = dtype.lanes > 1;
  if (is_vector && (strided || masked))
    return lane_access(access(masked ? "store_masked_" : "store_strided_", dtype, space), dtype,
                       value, {space, ", i64 stride", "p + (address)l * (address)stride"}, masked);
  const std::string name = access("store_", dtype, space);
  if (!dialect_.is_gnu && is_vector)
    return lane_access(name, dtype, value, {space, "", cat("p + l * ", dtype.bytes())}, false);
  const std::string bytes = std::to_string(dtype.lanes * dtype.bytes());
  const char* pointer = dialect_.pointer(space).type;
  const std::string place = dialect_.is_gnu ? "" : typed_place(dtype, space);
  if (!first(name)) return name;
  if (!dialect_.is_gnu)
    write(fill("INLINE void $0($1p, $2 x) { $3 = x; }", {name, pointer, t, place}));
  else if (is_vector && dtype.is_bool())
    write(
        fill("INLINE void $0($3p, $1 x) {\n"
             "  b8 bytes[$2];\n"
             "  for (int l = 0; l < $2; ++l) bytes[l] = (b8)(AT(x, l) & 1);\n"
             "  memcpy((void *)p, bytes, $2);\n"
             "}",
             {name, t, bytes, pointer}));
  else
    write(fill("INLINE void $0($3p, $1 x) { memcpy((void *)p, &x, $2); }",
               {name, t, bytes, pointer}));
  return name;
}

std::string Helpers::gather(DType dtype, bool masked, Space space) {
  const std::string index = type(kInt64.with_lanes(dtype.lanes));
  return lane_access(
      access(masked ? "gather_masked_" : "gather_", dtype, space), dtype, "",
      {space, cat(", ", index, " index"), cat("p + (address)AT(index, l) * ", dtype.bytes())},
      masked);
}

std::string Helpers::scatter(DType dtype, bool masked, Space space) {
  const std::string t = type(dtype), index = type(kInt64.with_lanes(dtype.lanes));
  return lane_access(
      access(masked ? "scatter_masked_" : "scatter_", dtype, space), dtype, cat(", ", t, " x"),
      {space, cat(", ", index, " index"), cat("p + (address)AT(index, l) * ", dtype.bytes())},
      masked);
}

// One lane after the other: a load if there is no value parameter.
std::string Helpers::lane_access(const std::string& name, DType dtype, const std::string& value,
                                 const LanePlace& place, bool masked) {
  const bool is_load = value.empty(), is_bool = dtype.is_bool();
  std::string parameters = cat(dialect_.pointer(place.space).type, "p", value, place.parameters);
  if (masked) parameters += cat(", ", type(mask_of(dtype)), " mask");
  const std::string lane = !is_load ? store(dtype.element(), false, false, place.space)
                           : masked ? load_now(dtype.element(), place.space)
                                    : load(dtype.element(), false, false, place.space);
  const std::string condition = masked ? "if (AT(mask, l)) " : "";
  std::string text;
  if (is_load)
    text = lanes_text(name, dtype, parameters,
                      cat(is_bool ? "-" : "", lane, "(", place.of_lane, ")"), condition);
  else
    text = fill(
        "INLINE void $0($1) {\n"
        "  for (int l = 0; l < $2; ++l)\n"
        "    $3$4($5, $6);\n"
        "}",
        {name, parameters, std::to_string(dtype.lanes), condition, lane, place.of_lane,
         is_bool ? "(b8)(AT(x, l) & 1)" : "AT(x, l)"});
  if (first(name)) write(text);
  return name;
}

std::string Helpers::adjacent_masked(bool is_load, DType dtype, Space space) {
  const std::string t = type(dtype), m = type(mask_of(dtype));
  const std::string name = access(is_load ? "load_lanes_" : "store_lanes_", dtype, space);
  const std::string lanes =
      is_load ? load(dtype, false, true, space) : store(dtype, false, true, space);
  const std::string parameters =
      cat(dialect_.pointer(space).type, "p, ", is_load ? "" : cat(t, " x, "), m, " mask");
  const std::string bytes = std::to_string(dtype.bytes());
  const std::string otherwise = is_load ? fill("INLINE $0 $1($2) { return $3(p, $4, mask); }",
                                               {t, name, parameters, lanes, bytes})
                                        : fill("INLINE void $0($1) { $2(p, x, $3, mask); }",
                                               {name, parameters, lanes, bytes});
  if (first(name))
    write_native(native_masked(is_load, dtype), name, is_load ? t : "void", parameters, otherwise);
  return name;
}

bool Helpers::has_second_lanes(DType dtype, bool masked) const {
  if (!dialect_.is_gnu) return false;
  if (dtype.is_bool() || padded_lanes(dtype) != dtype.lanes || dtype.lanes < 4) return false;
  return !masked || !native_masked(true, dtype).empty();
}

// Every second lane: of two vectors, of which the other lanes are left out.  Without a mask the
// second one begins an element early, so that nothing behind the last lane is read.
std::string Helpers::load_second_lanes(DType dtype, bool masked) {
  const std::string t = type(dtype), m = type(mask_of(dtype)),
                    bytes = std::to_string(dtype.bytes());
  const std::string name = cat(masked ? "load_masked_2_" : "load_strided_2_", access_name(dtype));
  const Space space = Space::Global;  // as good as any: GNU's dialects have one memory
  const std::string lanes = load(dtype, true, masked, space);
  const std::string adjacent =
      masked ? adjacent_masked(true, dtype, space) : load(dtype, false, false, space);
  if (!first(name)) return name;
  const auto n = dtype.lanes;
  std::string low, high, evens;
  for (int64_t l = 0; l < n; ++l) {
    low += cat(", ", l % 2 == 0 ? l / 2 : n);
    high += cat(", ", l % 2 == 0 ? n / 2 + l / 2 : n);
    evens += cat(", ", 2 * l < n || masked ? 2 * l : 2 * l + 1);
  }
  const std::string parameters = masked ? cat("address p, ", m, " mask") : std::string("address p");
  const std::string with =
      masked ? fill(
                   "  const $0 none = {0};\n"
                   "  const $1 a = $2(p, __builtin_shufflevector(mask, none$3));\n"
                   "  const $1 b = $2(p + sizeof a, __builtin_shufflevector(mask, none$4));\n",
                   {m, t, adjacent, low, high})
             : fill("  const $0 a = $1(p), b = $1(p + sizeof a - $2);\n", {t, adjacent, bytes});
  write(
      fill("#if defined(SHUFFLES)$0\n"
           "INLINE $1 $2($3) {\n"
           "$4"
           "  return __builtin_shufflevector(a, b$5);\n"
           "}\n"
           "#else\n"
           "INLINE $1 $2($3) { return $6(p, 2 * $7$8); }\n"
           "#endif",
           {masked ? cat(" && ", native_masked(true, dtype)[0].guard) : std::string(), t, name,
            parameters, with, evens, lanes, bytes, masked ? ", mask" : ""}));
  return name;
}

std::string Helpers::load_now(DType dtype, Space space) {
  const std::string t = type(dtype), name = cat("load_now_", t);
  const std::string otherwise = load(dtype, false, false, space);
  if (!dialect_.is_gnu) return otherwise;
  if (first(name))
    write(
        fill("#if defined(__GNUC__)\n"
             "ANYWHERE($0)\n"
             "INLINE $0 $1(address p) { return *(const volatile anywhere_$0 *)p; }\n"
             "#else\n"
             "INLINE $0 $1(address p) { return $2(p); }\n"
             "#endif",
             {t, name, otherwise}));
  return name;
}

}  // namespace tiny::c
