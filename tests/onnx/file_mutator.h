// Damages the bytes of a model file in ways that know the wire format: what comes out is mostly a
// file that can be parsed and says something senseless.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tiny::onnx::testing {

class FileMutator {
 public:
  explicit FileMutator(uint64_t seed) : random_(seed) {}

  // A number below n, which is not 0.
  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  // One to eight bytes have other values.
  std::string with_other_bytes(std::string file);
  // One to three fields are changed, moved, doubled, dropped, nested or given another's content:
  // dimensions that lie, cycles, unknown operators and versions, deep graphs.
  std::string with_other_fields(const std::string& file);
  // The first tensor with raw data says that it lies in the file `location` instead; the file
  // itself where there is no such tensor.
  static std::string with_external_data(const std::string& file, const std::string& location,
                                        const std::string& offset, const std::string& length);

 private:
  // One field of a message: a number, bytes, or the fields of a message.
  struct Field {
    uint32_t number = 0;
    uint32_t wire_type = 0;
    uint64_t value = 0;         // wire types 0, 1, 5
    std::string bytes;          // wire type 2, unless it holds a message
    std::vector<Field> fields;  // of that message
    bool is_message = false;
  };
  using Fields = std::vector<Field>;

  static bool parse(std::string_view bytes, int depth, Fields& out);
  static void write(const Fields& fields, std::string& out);
  static void collect(Fields& fields, std::vector<Field*>& leaves, std::vector<Fields*>& messages);
  static bool make_external(Fields& fields, const Fields& entries);

  void change_leaf(Field& leaf, const std::vector<Field*>& leaves);
  void change_list(Fields& fields, const std::vector<Fields*>& messages);
  uint64_t odd_number();

  std::mt19937_64 random_;
};

}  // namespace tiny::onnx::testing
