// Tensors in files: .npy, .safetensors and ONNX's .pb through the library, .npz and .bin by hand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "array.h"
#include "handles.h"

namespace tiny::cli {

bool is_file(const std::string& path);
std::vector<std::byte> read_file(const std::string& path);
// Writes the whole file or throws.
void write_file(const std::string& path, std::string_view content);

// ".npy" of "a/B.NPY": the ending in lower case.
std::string ending(const std::string& path);

// Whether the ending is that of a file of several arrays by name: .npz or .safetensors.
bool is_archive(const std::string& path);
// Its arrays in its order; with a name that one alone, or, if `or_only`, the only one that there
// is.
std::vector<Array> load_archive(const Context& context, const std::string& path,
                                const std::string& name = {}, bool or_only = false);
// One tensor from .npy or .pb.
Array load_tensor(const Context& context, const std::string& path);
// Raw elements; the file must be of their exact size.
Array load_raw(const std::string& path, tiny_dtype dtype, std::vector<int64_t> shape);
// Writes .npy or .pb, by the ending of the path.
void save_tensor(const Context& context, const Array& array, const std::string& path);
// Writes a .safetensors with the arrays under their names.
void save_archive(const Context& context, const std::vector<Array>& arrays,
                  const std::string& path);

// A file name made of any text: other characters than letters, digits, '_', '-' and '.' as %XX.
std::string escaped(std::string_view name);

}  // namespace tiny::cli
