#include "trace.h"

#include <unistd.h>

#include <algorithm>

#include "failure.h"
#include "files.h"
#include "json.h"

namespace tiny::cli {
namespace {

Json trace_event(const std::string& name, double start_us, double us) {
  Json event = Json::object();
  event.set("name", name).set("cat", "phase").set("ph", "X").set("ts", start_us).set("dur", us);
  return event.set("pid", int64_t{getpid()}).set("tid", int64_t{getpid()});
}

}  // namespace

void write_trace(const std::string& path, Session& session, double load_ms, double first_run_ms) {
  if (!session.run())
    throw Failure(Exit::Unsupported, "UNSUPPORTED",
                  "the model's shapes depend on its inputs' values: no program can be traced");
  Json phases = Json::object();
  phases.set("load", load_ms);
  const Json times = session.times();
  for (size_t i = 0; i < times.keys().size(); ++i) phases.set(times.keys()[i], times.items()[i]);
  phases.set("first run", first_run_ms);
  Json events = Json::array();
  double at = 0;  // microseconds, the format's unit
  for (size_t i = 0; i < phases.keys().size(); ++i) {
    const double us = phases.items()[i].number() * 1e3;
    events.push(trace_event(phases.keys()[i], at, us));
    at += us;
  }
  check(tiny_run_set_timed(session.run(), 1));
  session.execute();
  Report report;
  check(tiny_run_trace(session.run(), out(report)));
  check(tiny_run_set_timed(session.run(), 0));
  auto trace = Json::parse(tiny_report_text(report.get()));
  if (!trace) throw Failure(Exit::Internal, "INTERNAL", "tiny_run_trace gave no JSON");
  double end = at;
  Json kernels = Json::array();
  for (Json kernel : trace->find("traceEvents")->items()) {
    kernel.set("ts", at + kernel.find("ts")->number());
    end = std::max(end, kernel.find("ts")->number() + kernel.find("dur")->number());
    kernels.push(std::move(kernel));
  }
  events.push(trace_event("run", at, end - at));
  for (const Json& kernel : kernels.items()) events.push(kernel);
  write_file(path, trace->set("traceEvents", events).dump() + "\n");
}

}  // namespace tiny::cli
