#include "aot/ports.h"

#include "aot/names.h"
#include "aot/tape.h"
#include "base/text.h"

namespace tiny::aot {
namespace {

const char* element_type(DType dtype) {
  switch (dtype.scalar) {
    case ScalarType::Bool:
    case ScalarType::UInt8:
    case ScalarType::Float8E4M3FN:
    case ScalarType::Float8E4M3FNUZ:
    case ScalarType::Float8E5M2:
    case ScalarType::Float8E5M2FNUZ:
      return "uint8_t";
    case ScalarType::Int8:
      return "int8_t";
    case ScalarType::Int16:
      return "int16_t";
    case ScalarType::Int32:
      return "int32_t";
    case ScalarType::Int64:
      return "int64_t";
    case ScalarType::UInt16:
    case ScalarType::Float16:
    case ScalarType::BFloat16:
      return "uint16_t";
    case ScalarType::UInt32:
      return "uint32_t";
    case ScalarType::UInt64:
      return "uint64_t";
    case ScalarType::Float32:
      return "float";
    case ScalarType::Float64:
      return "double";
    default:
      return "void";
  }
}

// A comment must not end early.
std::string quoted(const std::string& name) {
  std::string text;
  for (const char ch : name) text += ch == '/' && !text.empty() && text.back() == '*' ? '|' : ch;
  for (char& ch : text)
    if (static_cast<unsigned char>(ch) < ' ' || ch == '\\') ch = '?';
  return cat("\"", text, "\"");
}

// "n[0]" as the member that it is.
std::string by_names(std::string text, const std::vector<std::string>& variables) {
  for (size_t k = variables.size(); k-- > 0;) {
    const std::string from = cat("n[", k, "]");
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += variables[k].size())
      text.replace(at, from.size(), variables[k]);
  }
  return text;
}

CPort make_c_port(const TensorProgram::Port& port, const std::vector<std::string>& variables) {
  CPort out;
  out.type = element_type(port.dtype);
  out.number = port.number;
  for (const SizeExpression& size : port.sizes) {
    const std::string text = size_text(size, "n");
    out.comment += cat("[", by_names(text, variables), "]");
    out.elements += cat(out.elements.empty() ? "" : " * ", text);
  }
  if (out.elements.empty()) out.elements = "1";
  if (out.comment.empty()) out.comment = "one";
  const bool is_named = port.dtype.is_narrow_float() || port.dtype.is_bool();
  out.comment = cat(quoted(port.name), is_named ? cat(" ", to_string(port.dtype)) : std::string(),
                    ", ", out.comment);
  return out;
}

// "inputs[0]", as programs of tensors call them, is input0.
std::string member_name(const std::string& name, const char* many, const char* one) {
  return name.starts_with(cat(many, "[")) ? cat(one, name.substr(std::string_view(many).size() + 1))
                                          : name;
}

}  // namespace

CPorts make_ports(const TensorProgram& program, const CapturedMemory& captured) {
  CPorts out;
  Members members({"weights", "state", "memory", "memory_bytes", "threads"});
  for (const ProgramVariable& v : program.variables) out.variables.push_back(members.add(v.name));
  for (const TensorProgram::Port& port : program.inputs) {
    CPort& added = out.inputs.emplace_back(make_c_port(port, out.variables));
    added.member = members.add(member_name(port.name, "inputs", "input"));
    added.may_be_null = port.number < 0;
  }
  if (program.execution >= 0) {
    CPort& added = out.inputs.emplace_back();
    added.member = members.add("execution");
    added.type = "uint64_t";
    added.comment = "that decides the random numbers, [2]: a seed, and how many came before";
    added.number = program.execution;
  }
  for (const TensorProgram::Port& port : program.outputs) {
    CPort& added = out.outputs.emplace_back(make_c_port(port, out.variables));
    added.member = members.add(member_name(port.name, "outputs", "output"));
    added.may_be_null = port.number < 0;
    if (!port.captured) continue;
    added.is_given = false;
    added.state_offset = captured.find(*port.captured).offset;
  }
  return out;
}

}  // namespace tiny::aot
