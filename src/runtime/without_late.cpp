// A build without devices of drivers: no queue is late, and the device that is for what such queues
// do is left out too.
#include "base/error.h"
#include "runtime/device.h"
#include "runtime/far/far.h"
#include "runtime/in_flight.h"

namespace tiny {

bool has_far_device() {
  return false;
}

std::unique_ptr<Device> make_far_device() {
  throw_error(Status::Unsupported, "the device \"far\": ", kNoFarDevice);
}

Needs::Needs(std::vector<Ref<Buffer>>, std::vector<Ref<RefCounted>>) {
}

Needs::~Needs() = default;

bool Needs::has(const Buffer&) const {
  return false;
}

InFlight::InFlight(Device& device) : device_(device) {
}

InFlight::~InFlight() = default;

// Of a device that has done the work when it returns.
void InFlight::give(const Ref<const Needs>&, const std::function<void(const Queue&)>& work) {
  work(*device_.make_queue());
}

void InFlight::wait_for(const Buffer&) {
}

bool InFlight::wait() {
  return false;
}

void InFlight::retire() {
}

}  // namespace tiny
