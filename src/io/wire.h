// The protobuf wire format of ONNX files, read from memory through protozero.
//
// A WireReader walks the fields of one message.  Readers of nested messages point to their parent,
// so that every error names the place: "ModelProto.graph.node[3].attribute[0] at byte 1234: ...".
// A breach of the format is Error{InvalidModel}.  Nothing is read outside the bytes given.
#pragma once

#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/limits.h"
#include "ir/uop.h"

namespace tiny {

enum class ProtoMessage : uint8_t {
#define MESSAGE(name, text) name,
#include "io/onnx_proto.def"
};

// Field numbers: `field::TensorProto::dims`.
namespace field {
#define FIELD(message, name, number)                      \
  namespace message {                                     \
  inline constexpr protozero::pbf_tag_type name = number; \
  }
#include "io/onnx_proto.def"
}  // namespace field

// The name of a message, and of its field with this number; null if the table has no such field.
const char* message_name(ProtoMessage message);
const char* field_name(ProtoMessage message, uint32_t number);

class WireReader {
 public:
  // Reads a whole file; the budget must outlive the reader, and the bytes what it returns.
  WireReader(std::string_view bytes, ProtoMessage message, Budget& budget);
  WireReader(const WireReader&) = delete;
  WireReader& operator=(const WireReader&) = delete;

  // Steps to the next field, past the value of the current one if nobody took it; false at the end.
  bool next();
  // The number of the current field.  The calls below take its value: one call for each field.
  uint32_t field() const { return field_; }
  bool is_packed() const { return wire_type_ == protozero::pbf_wire_type::length_delimited; }

  int64_t integer();  // int32, int64 and enums
  float real();
  std::string_view bytes();
  // A packed run of fixed-size numbers, or one such number, as the bytes in the file.
  std::string_view fixed(size_t width);
  // Bytes that must be UTF-8 without NUL and within the limit name_bytes.
  std::string name();
  // Bytes within the limit attribute_bytes.
  std::string text();
  // A nested message; this reader must outlive the result and stay where it is.
  // `index` is its position among the values of a repeated field.
  WireReader message(ProtoMessage kind, size_t index = kOnlyOne);
  // One more value of a repeated number field, or a packed run of them; an error of status
  // `too_many` where `values` would grow beyond `count_max`.
  void append_integers(Ints& values, int64_t count_max, Status too_many = Status::Limit);
  void append_reals(std::vector<float>& values, int64_t count_max);

  // A second reader of the same message, from its start.
  WireReader again() const;
  // Of the whole message.
  int64_t size() const { return static_cast<int64_t>(all_.size()); }

  // Throws unless `ok`: an error about this message, with its place.
  template <class... Parts>
  void check(bool ok, const Parts&... parts) const {
    if (!ok) [[unlikely]]
      fail(Status::InvalidModel, parts...);
  }
  template <class... Parts>
  [[noreturn]] void fail(Status status, const Parts&... parts) const {
    fail_in_words(status, text_kinds<Parts...>(), text_word(text_part(parts))...);
  }
  // "ModelProto.graph.node[3] at byte 1234".
  std::string place() const;

  Budget& budget() const { return *budget_; }

 private:
  [[noreturn]] void fail_in_words(Status status, uint64_t kinds, ...) const;  // NOLINT: as cat

  static constexpr size_t kOnlyOne = SIZE_MAX;

  WireReader(std::string_view bytes, ProtoMessage message, const WireReader* parent, size_t index,
             const char* file, Budget& budget);
  // Runs a protozero call; its exceptions become errors of ours.
  template <class Call>
  auto guarded(Call call) -> decltype(call());
  void expect(protozero::pbf_wire_type type);
  std::string path() const;

  protozero::pbf_reader reader_;
  std::string_view all_;
  const WireReader* parent_;
  const char* file_;  // where byte 0 of the outermost message lies
  Budget* budget_;
  size_t index_;
  ProtoMessage message_;
  protozero::pbf_wire_type wire_type_ = protozero::pbf_wire_type::unknown;
  uint32_t field_ = 0;
  bool taken_ = true;
};

}  // namespace tiny
