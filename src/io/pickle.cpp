#include "io/pickle.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace tiny {

namespace {

// Values that a small file can make; those of CIFAR are 60,000.
constexpr size_t kValuesMax = size_t{1} << 22;

enum class Kind : uint8_t {
  Mark,
  None,
  Bool,
  Int,
  Real,
  Text,  // bytes and texts alike
  Tuple,
  List,
  Dict,    // keys and values in turn
  Global,  // a name, which nobody looks up
  Type,    // of an array's elements
  Array
};

using Index = uint32_t;  // of a value

struct Value {
  Kind kind = Kind::None;
  int64_t number = 0;
  std::string name = {};          // of a Global; of a Type its code, "<f4"
  SharedBytes bytes = {};         // of a Text; of an Array its elements
  std::vector<Index> parts = {};  // of a Tuple, List or Dict
  Ints shape = {};                // of an Array
  bool is_built = false;          // of an Array: it has its elements
};

struct TypeCode {
  std::string_view code;
  ScalarType type;
};
constexpr TypeCode kTypeCodes[] = {
    {"b1", ScalarType::Bool},    {"i1", ScalarType::Int8},    {"i2", ScalarType::Int16},
    {"i4", ScalarType::Int32},   {"i8", ScalarType::Int64},   {"u1", ScalarType::UInt8},
    {"u2", ScalarType::UInt16},  {"u4", ScalarType::UInt32},  {"u8", ScalarType::UInt64},
    {"f2", ScalarType::Float16}, {"f4", ScalarType::Float32}, {"f8", ScalarType::Float64}};

// What may be named, and what a call of it makes.
enum class Maker : uint8_t { EmptyArray, ArrayOfBytes, ElementType, Encoded, NoBytes, OnlyNamed };
struct Known {
  std::string_view name;
  Maker maker;
};
constexpr Known kKnown[] = {
    {"numpy.core.multiarray _reconstruct", Maker::EmptyArray},
    {"numpy._core.multiarray _reconstruct", Maker::EmptyArray},
    {"numpy.core.numeric _frombuffer", Maker::ArrayOfBytes},
    {"numpy._core.numeric _frombuffer", Maker::ArrayOfBytes},
    {"numpy dtype", Maker::ElementType},
    {"_codecs encode", Maker::Encoded},
    {"__builtin__ bytes", Maker::NoBytes},
    {"numpy ndarray", Maker::OnlyNamed},
};

// The operations by their bytes.
enum Op : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyTuple = ')',
  kEmptyDict = '}',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
  kByteArray8 = 0x96
};

class Machine {
 public:
  Machine(const SharedBytes& bytes, const FileAccess& access) : bytes_(bytes), access_(access) {}

  Archive run() {
    check(bytes_.size() > 2 && bytes_.data()[0] == std::byte{kProto}, "no pickle of protocol 2");
    while (step()) {
    }
    check(stack_.size() == 1, stack_.size(), " values are left");
    return archive_of(top());
  }

 private:
  template <class... Parts>
  void check(bool ok, const Parts&... parts) const {
    require(ok, Status::InvalidModel, "pickle: byte ", at_, ": ", parts...);
  }
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    throw_error(Status::Unsupported, "pickle: byte ", at_, ": ", parts...,
                "; only dicts, lists, tuples, numbers, "
                "texts and NumPy's arrays are read");
  }

  // ---- The bytes.
  SharedBytes take(uint64_t count) {
    check(count <= static_cast<uint64_t>(bytes_.size() - at_), "the file ends in the middle");
    at_ += static_cast<int64_t>(count);
    return bytes_.part(at_ - static_cast<int64_t>(count), static_cast<int64_t>(count));
  }
  uint64_t little_endian(uint64_t count) {
    uint64_t value = 0;
    std::memcpy(&value, take(count).data(), static_cast<size_t>(count));
    return value;
  }
  std::string line() {
    const std::string_view rest = bytes_.text().substr(static_cast<size_t>(at_));
    const size_t end = rest.find('\n');
    check(end != std::string_view::npos, "the file ends in the middle");
    return std::string(take(end + 1).text().substr(0, end));
  }

  // ---- The stack.
  Value& push(Value value) {
    require(values_.size() < kValuesMax, Status::Limit, "pickle: more than ", kValuesMax,
            " values");
    values_.push_back(std::move(value));
    stack_.push_back(static_cast<Index>(values_.size() - 1));
    return values_.back();
  }
  void push_text(SharedBytes bytes) {
    Value value{Kind::Text};
    value.bytes = std::move(bytes);
    push(std::move(value));
  }
  void push_number(Kind kind, int64_t number) { push({kind, number}); }
  void push_tuple(std::vector<Index> parts) {
    Value value{Kind::Tuple};
    value.parts = std::move(parts);
    push(std::move(value));
  }
  Index pop() {
    check(!stack_.empty() && values_[stack_.back()].kind != Kind::Mark, "a value is missing");
    const Index index = stack_.back();
    stack_.pop_back();
    return index;
  }
  Value& top() {
    check(!stack_.empty(), "a value is missing");
    return values_[stack_.back()];
  }
  std::vector<Index> pop_to_mark() {
    auto at = stack_.size();
    while (at > 0 && values_[stack_[at - 1]].kind != Kind::Mark) --at;
    check(at > 0, "a mark is missing");
    std::vector<Index> parts(stack_.begin() + static_cast<ptrdiff_t>(at), stack_.end());
    stack_.resize(at - 1);
    return parts;
  }
  std::vector<Index> pop_some(size_t count) {
    std::vector<Index> parts(count);
    for (size_t i = count; i-- > 0;) parts[i] = pop();
    return parts;
  }
  void append(Kind kind, const std::vector<Index>& parts) {
    Value& to = top();
    check(to.kind == kind && (kind == Kind::List || parts.size() % 2 == 0),
          "something is added to what takes none of it");
    to.parts.insert(to.parts.end(), parts.begin(), parts.end());
  }
  void remember(size_t place) {
    check(!stack_.empty(), "a value is missing");
    check(place <= kValuesMax, "a place beyond all");
    if (memo_.size() <= place) memo_.resize(place + 1);
    memo_[place] = stack_.back();
  }
  void recall(size_t place) {
    check(place < memo_.size() && memo_[place], "a place that nothing was put to");
    require(stack_.size() < kValuesMax, Status::Limit, "pickle: more than ", kValuesMax, " values");
    stack_.push_back(*memo_[place]);
  }

  bool step();
  bool step_text(uint8_t op);
  bool step_container(uint8_t op);
  bool step_number(uint8_t op);
  bool step_memo(uint8_t op);

  // ---- What is made of names.
  void push_global(std::string name);
  void reduce();
  void build();
  void build_array(Value& array, const Value& state);
  void encode(const std::vector<Index>& given);
  const Value& part(const Value& of, size_t i, Kind kind) const;
  Ints shape_of(const Value& tuple) const;

  // ---- The result.
  HostTensor tensor_of(const Value& array) const;
  std::optional<HostTensor> integers_of(const Value& list) const;
  Archive archive_of(const Value& value) const;

  const SharedBytes& bytes_;
  const FileAccess& access_;
  int64_t at_ = 0;
  std::vector<Value> values_;
  std::vector<Index> stack_;
  std::vector<std::optional<Index>> memo_;
  size_t memoized_ = 0;
};

// False at the end.
bool Machine::step() {
  const auto op = static_cast<uint8_t>(little_endian(1));
  switch (op) {
    case kStop:
      return false;
    case kProto: {
      const uint64_t version = little_endian(1);
      if (version < 2 || version > 5) refuse("protocol ", version);
      return true;
    }
    case kFrame:
      take(8);
      return true;
    case kPop:
      if (!stack_.empty() && top().kind == Kind::Mark)
        stack_.pop_back();
      else
        pop();
      return true;
    case kPopMark:
      pop_to_mark();
      return true;
    case kGlobal: {
      std::string module = line();
      push_global(module + ' ' + line());
      return true;
    }
    case kStackGlobal: {
      const std::vector<Index> names = pop_some(2);
      push_global(std::string(values_[names[0]].bytes.text()) + ' ' +
                  std::string(values_[names[1]].bytes.text()));
      return true;
    }
    case kReduce:
      reduce();
      return true;
    case kBuild:
      build();
      return true;
    default:
      break;
  }
  if (!step_text(op) && !step_container(op) && !step_number(op) && !step_memo(op)) {
    --at_;
    refuse("the operation ", static_cast<int>(op));
  }
  return true;
}

bool Machine::step_text(uint8_t op) {
  switch (op) {
    case kShortBinString:
    case kShortBinBytes:
    case kShortBinUnicode:
      push_text(take(little_endian(1)));
      return true;
    case kBinString:
    case kBinUnicode:
    case kBinBytes:
      push_text(take(little_endian(4)));
      return true;
    case kBinUnicode8:
    case kBinBytes8:
    case kByteArray8:
      push_text(take(little_endian(8)));
      return true;
    default:
      return false;
  }
}

bool Machine::step_container(uint8_t op) {
  switch (op) {
    case kMark:
      push({Kind::Mark});
      return true;
    case kEmptyDict:
      push({Kind::Dict});
      return true;
    case kEmptyList:
      push({Kind::List});
      return true;
    case kEmptyTuple:
      push_tuple({});
      return true;
    case kTuple:
      push_tuple(pop_to_mark());
      return true;
    case kTuple1:
    case kTuple2:
    case kTuple3:
      push_tuple(pop_some(static_cast<size_t>(op - kTuple1) + 1));
      return true;
    case kAppend:
      append(Kind::List, pop_some(1));
      return true;
    case kAppends:
      append(Kind::List, pop_to_mark());
      return true;
    case kSetItem:
      append(Kind::Dict, pop_some(2));
      return true;
    case kSetItems:
      append(Kind::Dict, pop_to_mark());
      return true;
    default:
      return false;
  }
}

bool Machine::step_number(uint8_t op) {
  switch (op) {
    case kNone:
      push({Kind::None});
      return true;
    case kNewTrue:
    case kNewFalse:
      push_number(Kind::Bool, op == kNewTrue ? 1 : 0);
      return true;
    case kBinInt:
      push_number(Kind::Int, static_cast<int32_t>(little_endian(4)));
      return true;
    case kBinInt1:
      push_number(Kind::Int, static_cast<int64_t>(little_endian(1)));
      return true;
    case kBinInt2:
      push_number(Kind::Int, static_cast<int64_t>(little_endian(2)));
      return true;
    case kLong1: {
      const uint64_t count = little_endian(1);
      if (count > 8) refuse("an integer of ", count, " bytes");
      const uint64_t value = little_endian(count);
      const auto unused = static_cast<unsigned>(64 - 8 * count);
      push_number(Kind::Int, count == 0 ? 0 : static_cast<int64_t>(value << unused) >> unused);
      return true;
    }
    case kBinFloat:
      take(8);
      push({Kind::Real});
      return true;
    default:
      return false;
  }
}

bool Machine::step_memo(uint8_t op) {
  switch (op) {
    case kBinPut:
      remember(little_endian(1));
      return true;
    case kLongBinPut:
      remember(little_endian(4));
      return true;
    case kMemoize:
      remember(memoized_++);
      return true;
    case kBinGet:
      recall(little_endian(1));
      return true;
    case kLongBinGet:
      recall(little_endian(4));
      return true;
    default:
      return false;
  }
}

void Machine::push_global(std::string name) {
  check(is_utf8(name), "a name that is no text");
  const auto is_it = [&](const Known& known) { return known.name == name; };
  if (std::ranges::none_of(kKnown, is_it)) refuse("the name \"", name, "\"");
  Value value{Kind::Global};
  value.name = std::move(name);
  push(std::move(value));
}

const Value& Machine::part(const Value& of, size_t i, Kind kind) const {
  check(of.kind == Kind::Tuple && i < of.parts.size() && values_[of.parts[i]].kind == kind,
        "an array is not described as NumPy does it");
  return values_[of.parts[i]];
}

Ints Machine::shape_of(const Value& tuple) const {
  Ints shape;
  for (size_t i = 0; i < tuple.parts.size(); ++i) shape.push_back(part(tuple, i, Kind::Int).number);
  return shape;
}

void Machine::encode(const std::vector<Index>& given) {
  check(given.size() == 2 && values_[given[1]].bytes.text() == "latin1",
        "a text is not encoded as NumPy does it");
  // Characters up to 255, of one byte or two.
  const std::string_view text = values_[given[0]].bytes.text();
  const auto bytes = make_ref<NewBytes>(access_.memory, std::ssize(text));
  size_t size = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<uint8_t>(text[i]);
    if (lead < 0x80) {
      bytes->data()[size++] = std::byte{lead};
      continue;
    }
    check((lead == 0xc2 || lead == 0xc3) && i + 1 < text.size(), "a character beyond latin1");
    const auto next = static_cast<uint8_t>(text[++i]);
    bytes->data()[size++] = static_cast<std::byte>((lead & 3) << 6 | (next & 0x3f));
  }
  push_text({bytes, {bytes->data(), size}});
}

void Machine::reduce() {
  const std::vector<Index> call = pop_some(2);
  const Value &function = values_[call[0]], &given = values_[call[1]];
  check(function.kind == Kind::Global && given.kind == Kind::Tuple, "a call of no name");
  const auto is_it = [&](const Known& known) { return known.name == function.name; };
  Value made;
  switch (std::ranges::find_if(kKnown, is_it)->maker) {
    case Maker::EmptyArray:
      made.kind = Kind::Array;
      break;
    case Maker::ArrayOfBytes: {
      made.kind = Kind::Array;
      made.bytes = part(given, 0, Kind::Text).bytes;
      made.name = part(given, 1, Kind::Type).name;
      made.shape = shape_of(part(given, 2, Kind::Tuple));
      if (part(given, 3, Kind::Text).bytes.text() != "C") refuse("an array in Fortran's order");
      made.is_built = true;
      break;
    }
    case Maker::ElementType:
      made.kind = Kind::Type;
      made.name = part(given, 0, Kind::Text).bytes.text();
      check(is_utf8(made.name), "a type that is no text");
      break;
    case Maker::Encoded:
      return encode(std::vector<Index>(given.parts));
    case Maker::NoBytes:
      check(given.parts.empty(), "bytes are not made as pickles do it");
      return push_text({});
    case Maker::OnlyNamed:
      refuse("a call of \"", function.name, "\"");
  }
  push(std::move(made));
}

void Machine::build_array(Value& array, const Value& state) {
  array.shape = shape_of(part(state, 1, Kind::Tuple));
  array.name = part(state, 2, Kind::Type).name;
  check(state.parts.size() == 5, "an array is not described as NumPy does it");
  if (values_[state.parts[3]].number != 0) refuse("an array in Fortran's order");
  array.bytes = part(state, 4, Kind::Text).bytes;
  array.is_built = true;
}

void Machine::build() {
  const Value& state = values_[pop()];
  Value& object = top();
  if (object.kind == Kind::Array) return build_array(object, state);
  check(object.kind == Kind::Type, "a state of what has none");
  if (part(state, 1, Kind::Text).bytes.text() == ">" && !object.name.ends_with('1'))
    refuse("elements that are big-endian");
}

// ---- The result.

HostTensor Machine::tensor_of(const Value& array) const {
  check(array.is_built, "an array without elements");
  std::string_view code = array.name;
  if (code.starts_with('<') || code.starts_with('|')) code.remove_prefix(1);
  const auto type = std::ranges::find(kTypeCodes, code, &TypeCode::code);
  if (type == std::end(kTypeCodes)) refuse("elements of type \"", array.name, "\"");
  HostTensor tensor{DType(type->type), array.shape, array.bytes};
  const int64_t wanted =
      checked_mul(element_count(tensor.shape, "an array"), tensor.dtype.bytes(), "an array's size");
  check(tensor.bytes.size() == wanted, "an array of shape ", list_text(tensor.shape), " and ",
        tensor.dtype, " has ", tensor.bytes.size(), " bytes, not ", wanted);
  if (tensor.dtype.is_bool() && has_odd_bools(tensor.bytes, access_.stop))
    tensor.bytes = normal_bools(tensor.bytes, access_.stop);
  return tensor;
}

// None unless all of them are.
std::optional<HostTensor> Machine::integers_of(const Value& list) const {
  std::vector<std::byte> bytes(list.parts.size() * sizeof(int64_t));
  for (size_t i = 0; i < list.parts.size(); ++i) {
    const Value& value = values_[list.parts[i]];
    if (value.kind != Kind::Int) return std::nullopt;
    std::memcpy(bytes.data() + i * sizeof(int64_t), &value.number, sizeof(int64_t));
  }
  return HostTensor{kInt64, {std::ssize(list.parts)}, SharedBytes::own(std::move(bytes))};
}

Archive Machine::archive_of(const Value& value) const {
  Archive archive;
  if (value.kind == Kind::Array) {
    archive.tensors.push_back({"", tensor_of(value), ""});
    return archive;
  }
  if (value.kind != Kind::Dict) refuse("a value that is neither a dict nor an array");
  for (size_t i = 0; i + 1 < value.parts.size(); i += 2) {
    const Value &key = values_[value.parts[i]], &item = values_[value.parts[i + 1]];
    const std::string name(key.bytes.text());
    if (key.kind != Kind::Text) refuse("a key that is no text");
    check(is_utf8(name) && name.find('\0') == std::string::npos, "a key that is no text");
    const auto is_it = [&](const NamedTensor& t) { return t.name == name; };
    check(std::ranges::none_of(archive.tensors, is_it), "two values are named \"", name, "\"");
    if (item.kind == Kind::Array)
      archive.tensors.push_back({name, tensor_of(item), ""});
    else if (item.kind == Kind::Text && is_utf8(std::string(item.bytes.text())))
      archive.metadata.emplace_back(name, item.bytes.text());
    else if (auto integers = item.kind == Kind::List ? integers_of(item) : std::nullopt)
      archive.tensors.push_back({name, std::move(*integers), ""});
  }
  return archive;
}

}  // namespace

Archive parse_pickle(const SharedBytes& bytes, const FileAccess& access) {
  return Machine(bytes, access).run();
}

}  // namespace tiny
