// tiny info: what a model file holds, and whether this build can run it.
#include "commands.h"

namespace tiny::cli {
namespace {

// The value of a key; null if there is none.
const Json& member(const Json& object, const char* key) {
  static const Json* const null = new Json;
  const Json* found = object.find(key);
  return found ? *found : *null;
}

std::string shape_of(const Json& shape) {
  if (shape.kind() != Json::Kind::Array) return "of any shape";
  std::string text = "[";
  for (size_t i = 0; i < shape.items().size(); ++i) {
    const std::string& dim = shape.items()[i].text();
    text += (i ? "," : "") + (dim.empty() ? std::string("?") : dim);
  }
  return text + "]";
}

std::string ports_text(const char* kind, const Json& ports) {
  std::string text;
  for (const Json& port : ports.items())
    text += std::string(kind) + member(port, "name").text() + "  " + member(port, "dtype").text() +
            " " + shape_of(member(port, "shape")) + "\n";
  return text;
}

std::string joined(const Json& list) {
  std::vector<std::string> names;
  for (const Json& item : list.items()) names.push_back(item.text());
  return list_text(names);
}

std::string operators_text(const Json& operators) {
  std::string text;
  for (const Json& op : operators.items()) {
    const std::string& domain = member(op, "domain").text();
    const std::string name = (domain.empty() ? "" : domain + ".") + member(op, "op").text();
    text += "  " + right(member(op, "count").text(), 6) + "  " + left(name, 28) + " version " +
            member(op, "version").text() +
            (member(op, "supported").truth() ? "" : "  UNSUPPORTED") + "\n";
  }
  return text;
}

std::string unsupported_text(const Json& unsupported) {
  std::string text;
  for (const Json& node : unsupported.items()) {
    const std::string& domain = member(node, "domain").text();
    text += "unsupported  node " + member(node, "node").text() + ": " +
            (domain.empty() ? "" : domain + ".") + member(node, "op").text() + " version " +
            member(node, "version").text() + " of " + joined(member(node, "dtypes")) + ": " +
            member(node, "reason").text() + "\n";
  }
  return text;
}

std::string pretty(const std::string& path, const Json& info) {
  const Json& model = member(info, "model");
  std::string text = "model   " + path + "  (ir " + member(model, "ir_version").text();
  const Json& opset = member(model, "opset");
  for (size_t i = 0; i < opset.keys().size(); ++i)
    text += ", opset " + (opset.keys()[i].empty() ? "" : opset.keys()[i] + " ") +
            opset.items()[i].text();
  const std::string& producer = member(model, "producer").text();
  text += (producer.empty() ? "" : ", by " + producer) + ")\n";
  text += ports_text("input   ", member(info, "inputs"));
  text += ports_text("output  ", member(info, "outputs"));
  if (!member(info, "dims").items().empty())
    text += "free    " + joined(member(info, "dims")) + "\n";
  const Json& initializers = member(info, "initializers");
  text += "weights " + member(initializers, "count").text() + " tensors, " +
          bytes_text(member(initializers, "bytes").number());
  if (!member(initializers, "external").items().empty())
    text += ", in " + joined(member(initializers, "external"));
  text += "\n";
  if (member(info, "flops").kind() == Json::Kind::Number)
    text += "work    " + fixed(member(info, "flops").number() / 1e6, 3) + " MFLOP per run\n";
  const Json& metadata = member(info, "metadata");
  for (size_t i = 0; i < metadata.keys().size(); ++i)
    text += "meta    " + metadata.keys()[i] + " = " + metadata.items()[i].text() + "\n";
  text += "nodes   " + member(info, "nodes").text() + "\n";
  text += operators_text(member(info, "operators"));
  text += unsupported_text(member(info, "unsupported"));
  text += member(info, "supported").truth() ? "supported\n" : "NOT supported\n";
  return text;
}

}  // namespace

Outcome info_command(const InfoFlags& flags, const CommonFlags& common) {
  const Context context = open_context(common);
  LoadedModel model(context, flags.model);
  if (!common.dims.empty() || !common.shapes.empty()) {
    model.read_ports();
    check_shapes(model, common);
  }
  Outcome outcome;
  outcome.body = model.info();
  Json about = member(outcome.body, "model");
  outcome.body.set("model", about.set("path", flags.model));
  outcome.text = pretty(flags.model, outcome.body);
  if (flags.check && !member(outcome.body, "supported").truth()) {
    const std::string nodes = unsupported_text(member(outcome.body, "unsupported"));
    outcome.failure = Failure(Exit::Unsupported, "UNSUPPORTED",
                              "not supported: " + (nodes.empty() ? flags.model : nodes));
    if (outcome.failure->message.ends_with('\n')) outcome.failure->message.pop_back();
    outcome.failure->file = flags.model;
  }
  return outcome;
}

Outcome devices_command(const CommonFlags&) {
  Outcome outcome;
  outcome.body = devices_report();
  for (const Json& device : member(outcome.body, "devices").items()) {
    outcome.text +=
        left(member(device, "name").text(), 9) + (member(device, "default").truth() ? "* " : "  ");
    if (member(device, "available").truth()) {
      outcome.text += member(device, "description").text();
      if (!member(device, "isa").items().empty())
        outcome.text += "; " + joined(member(device, "isa"));
      const auto bytes = [&](const char* key) { return bytes_text(member(device, key).number()); };
      if (device.find("units"))
        outcome.text += "; units " + member(device, "units").text() + ", groups of up to " +
                        member(device, "group_threads").text() + " with " + bytes("group_memory") +
                        ", buffers of up to " + bytes("buffer_memory");
      else
        outcome.text += "; threads " + member(device, "threads").text();
      outcome.text += ", memory " + bytes("memory");
    } else {
      outcome.text += "not available: " + member(device, "reason").text();
    }
    outcome.text += "\n";
  }
  return outcome;
}

}  // namespace tiny::cli
