#include "io/wire.h"

#include <cstring>

namespace tiny {

namespace {

struct FieldName {
  ProtoMessage message;
  uint16_t number;
  char name[27];  // in place: a pointer is a relocation, larger than the name
};

constexpr const char* kMessageNames[] = {
#define MESSAGE(name, text) text,
#include "io/onnx_proto.def"
};

constexpr FieldName kFieldNames[] = {
#define FIELD(message, name, number) {ProtoMessage::message, number, #name},
#include "io/onnx_proto.def"
};

// The bytes of the UTF-8 sequence at the start of `text`; 0 if there is none or it is NUL.
size_t utf8_length(std::string_view text) {
  const auto at = [&](size_t i) -> uint32_t { return static_cast<unsigned char>(text[i]); };
  const uint32_t first = at(0);
  if (first < 0x80) return first == 0 ? 0 : 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  uint32_t code = first & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xC0u) != 0x80u) return 0;
    code = (code << 6) | (at(i) & 0x3Fu);
  }
  const bool too_long = (length == 3 && code < 0x800u) || (length == 4 && code < 0x10000u);
  const bool surrogate = code >= 0xD800u && code <= 0xDFFFu;
  return too_long || surrogate || code > 0x10FFFFu ? 0 : length;
}

bool is_clean_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// The exception in flight, in our words.
const char* what_is_wrong() {
  try {
    throw;
  } catch (const protozero::end_of_buffer_exception&) {
    return "the bytes end inside a value";
  } catch (const protozero::varint_too_long_exception&) {
    return "a number has more than ten bytes";
  } catch (const protozero::invalid_tag_exception&) {
    return "a field number that protobuf forbids";
  } catch (const protozero::unknown_pbf_wire_type_exception&) {
    return "an unknown wire type";
  } catch (const protozero::exception& e) {
    return e.what();
  }
}

}  // namespace

const char* message_name(ProtoMessage message) {
  return kMessageNames[static_cast<size_t>(message)];
}

const char* field_name(ProtoMessage message, uint32_t number) {
  for (const FieldName& f : kFieldNames)
    if (f.message == message && f.number == number) return f.name;
  return nullptr;
}

template <class Call>
auto WireReader::guarded(Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const protozero::exception&) {
    fail(Status::InvalidModel, what_is_wrong());
  }
}

WireReader::WireReader(std::string_view bytes, ProtoMessage message, Budget& budget)
    : WireReader(bytes, message, nullptr, kOnlyOne,
                 bytes.data(),  // NOLINT(bugprone-suspicious-stringview-data-usage): a place
                 budget) {
}

WireReader::WireReader(std::string_view bytes, ProtoMessage message, const WireReader* parent,
                       size_t index, const char* file, Budget& budget)
    : reader_(bytes.data(), bytes.size()),
      all_(bytes),
      parent_(parent),
      file_(file),
      budget_(&budget),
      index_(index),
      message_(message) {
}

bool WireReader::next() {
  return guarded([this] {
    if (!taken_) {
      if (is_packed())
        bytes();
      else
        reader_.skip();
    }
    field_ = 0;  // an error from here on is about the message, not about its last field
    if (!reader_.next()) return false;
    field_ = reader_.tag();
    wire_type_ = reader_.wire_type();
    taken_ = false;
    return true;
  });
}

void WireReader::expect(protozero::pbf_wire_type type) {
  invariant(!taken_, "a field's value is taken once");
  check(wire_type_ == type, "wire type ", static_cast<int>(wire_type_), " where ",
        static_cast<int>(type), " is due");
  taken_ = true;
}

int64_t WireReader::integer() {
  expect(protozero::pbf_wire_type::varint);
  return guarded([this] { return reader_.get_int64(); });
}

float WireReader::real() {
  expect(protozero::pbf_wire_type::fixed32);
  return guarded([this] { return reader_.get_float(); });
}

std::string_view WireReader::bytes() {
  expect(protozero::pbf_wire_type::length_delimited);
  // protozero keeps 32 bits of a length: it must not see one that has more.
  const protozero::data_view rest = reader_.data();
  const char* at = rest.data();
  const char* end = rest.data() + rest.size();
  const uint64_t length = guarded([&] { return protozero::decode_varint(&at, end); });
  check(length <= static_cast<uint64_t>(end - at), "a length of ", length, " bytes, but ", end - at,
        " are left");
  check(length <= UINT32_MAX, "a length of ", length, " bytes is beyond protobuf's limit");
  const protozero::data_view view = guarded([this] { return reader_.get_view(); });
  return {view.data(), view.size()};
}

std::string WireReader::name() {
  const std::string_view view = bytes();
  if (static_cast<int64_t>(view.size()) > budget_->limits.name_bytes)
    fail(Status::Limit, "a name of ", view.size(),
         " bytes, more than the limit name_bytes = ", budget_->limits.name_bytes);
  check(is_clean_utf8(view), "a name that is not UTF-8 text");
  budget_->charge_structure(static_cast<int64_t>(view.size()), "names");
  return std::string(view);
}

std::string WireReader::text() {
  const std::string_view view = bytes();
  if (static_cast<int64_t>(view.size()) > budget_->limits.attribute_bytes)
    fail(Status::Limit, view.size(),
         " bytes, more than the limit attribute_bytes = ", budget_->limits.attribute_bytes);
  budget_->charge_structure(static_cast<int64_t>(view.size()), "strings");
  return std::string(view);
}

WireReader WireReader::message(ProtoMessage kind, size_t index) {
  return WireReader(bytes(), kind, this, index, file_, *budget_);
}

WireReader WireReader::again() const {
  return WireReader(all_, message_, parent_, index_, file_, *budget_);
}

std::string_view WireReader::fixed(size_t width) {
  if (is_packed()) {
    const std::string_view run = bytes();
    check(run.size() % width == 0, "a run of ", run.size(), " bytes holds no whole number of ",
          width, "-byte values");
    return run;
  }
  const bool wide = width == 8;
  expect(wide ? protozero::pbf_wire_type::fixed64 : protozero::pbf_wire_type::fixed32);
  const char* begin = reader_.data().data();
  guarded([&] { return wide ? reader_.get_fixed64() : reader_.get_fixed32(); });
  return {begin, width};
}

void WireReader::append_integers(Ints& values, int64_t count_max, Status too_many) {
  const auto append = [&](int64_t value) {
    if (static_cast<int64_t>(values.size()) >= count_max)
      fail(too_many, "more than ", count_max, " values");
    values.push_back(value);
  };
  if (!is_packed()) return append(integer());
  const std::string_view run = bytes();
  const char* at = run.data();
  const char* end = at + run.size();
  while (at != end)
    append(static_cast<int64_t>(guarded([&] { return protozero::decode_varint(&at, end); })));
}

void WireReader::append_reals(std::vector<float>& values, int64_t count_max) {
  const std::string_view run = fixed(sizeof(float));
  const size_t old = values.size();
  const size_t count = run.size() / sizeof(float);
  if (static_cast<int64_t>(old + count) > count_max)
    fail(Status::Limit, "more than ", count_max, " values");
  values.resize(old + count);
  if (count) std::memcpy(values.data() + old, run.data(), run.size());
}

std::string WireReader::path() const {
  // The outermost message first: collect the chain, which is as deep as subgraph_depth allows.
  std::vector<const WireReader*> chain;
  for (const WireReader* r = this; r; r = r->parent_) chain.push_back(r);
  std::string text = message_name(chain.back()->message_);
  for (size_t i = chain.size(); i-- > 0;) {
    const WireReader& r = *chain[i];
    if (r.field_ == 0) break;
    const char* known = field_name(r.message_, r.field_);
    text += '.';
    text += known ? std::string(known) : cat("field_", r.field_);
    if (i > 0 && chain[i - 1]->index_ != kOnlyOne) text += cat("[", chain[i - 1]->index_, "]");
  }
  return text;
}

std::string WireReader::place() const {
  return cat(path(), " at byte ", reader_.data().data() - file_);
}

void WireReader::fail_in_words(Status status, uint64_t kinds, ...) const {
  va_list words;
  va_start(words, kinds);
  const std::string message = text_of(kinds, words);
  va_end(words);
  throw_error(status, place(), ": ", message);
}

}  // namespace tiny
