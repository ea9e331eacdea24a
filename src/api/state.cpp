// States: archives that change, and whose tensors are put back into those of a program.
#include <optional>
#include <ranges>

#include "api/archive_handle.h"
#include "base/sort.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/value.h"

using tiny::ArchiveEntry;
using tiny::Held;
using tiny::require;
using tiny::Status;
using tiny::with_archive;

ArchiveEntry& tiny_archive::add(const std::string& name) {
  const auto is_it = [&](const auto& entry) { return entry->stored.name == name; };
  const auto known = std::ranges::find_if(removed, is_it);
  std::unique_ptr<ArchiveEntry> entry;
  entries.reserve(entries.size() + 1);
  by_name.reserve(by_name.size() + 1);
  if (known != removed.end()) {
    entry = std::move(*known);
    removed.erase(known);
  } else {
    entry = std::make_unique<ArchiveEntry>(tiny::NamedTensor{name, {}, ""}, Held());
  }
  by_name.insert(std::ranges::lower_bound(
                     by_name, std::string_view(name), {},
                     [](const ArchiveEntry* e) -> std::string_view { return e->stored.name; }),
                 entry.get());
  return *entries.emplace_back(std::move(entry));
}

bool tiny_archive::remove(std::string_view name, Held& gone) {
  ArchiveEntry* entry = find(name);
  if (!entry) return false;
  removed.reserve(removed.size() + 1);
  gone = std::exchange(entry->given, Held());
  entry->stored.value = {};
  entry->stored.unsupported.clear();
  std::erase(by_name, entry);
  const auto at = std::ranges::find(entries, entry, &std::unique_ptr<ArchiveEntry>::get);
  removed.push_back(std::move(*at));
  entries.erase(at);
  return true;
}

namespace {

// The entries as they are now, in their order.
std::vector<ArchiveEntry> entries_of(const tiny_archive& archive) {
  const std::lock_guard lock(archive.mutex);
  std::vector<ArchiveEntry> entries;
  for (const auto& entry : archive.entries) entries.push_back(*entry);
  return entries;
}

std::string described(const ArchiveEntry& entry) {
  if (entry.given)
    return tiny::cat(entry.given->dtype, " ",
                     tiny::list_text({entry.given->dims, entry.given->dims + entry.given->rank}));
  const tiny::HostTensor& host = entry.stored.value;
  return tiny::cat(host.dtype == tiny::kVoid ? entry.stored.unsupported : to_string(host.dtype),
                   " ", tiny::list_text(host.shape));
}

// Whether elements of `from` can be those of `to`, which was set.
bool agree(const ArchiveEntry& to, const ArchiveEntry& from) {
  const tiny::DType wanted = to.given->dtype;
  const tiny::DType had = from.given ? from.given->dtype : from.stored.value.dtype;
  if (had != wanted && !(had.is_float() && wanted.is_float())) return false;
  const std::span<const int64_t> dims =
      from.given ? std::span<const int64_t>(from.given->dims, from.given->rank)
                 : std::span<const int64_t>(from.stored.value.shape);
  return std::ranges::equal(dims, std::span(to.given->dims, to.given->rank));
}

// What of `source` goes where.
struct Assignment {
  const ArchiveEntry* to;
  const ArchiveEntry* from;
};

class Names {
 public:
  explicit Names(const char* what) : what_(what) {}
  void add(const std::string& name) { names_.push_back(name); }
  void append_to(std::vector<std::string>& complaints) const {
    if (!names_.empty()) complaints.push_back(tiny::cat(what_, tiny::names_text(names_)));
  }

 private:
  const char* what_;
  std::vector<std::string> names_;
};

// Error{InvalidArgument}, or Error{Shape} where the names agree, that lists all there is to say.
std::vector<Assignment> matched(std::span<const ArchiveEntry> target,
                                std::span<const ArchiveEntry> source, bool is_partial) {
  std::vector<const ArchiveEntry*> left;
  for (const ArchiveEntry& entry : source) left.push_back(&entry);
  const auto name_of = [](const ArchiveEntry* e) -> const std::string& { return e->stored.name; };
  sort_stable(left, {}, name_of);
  std::vector<bool> taken(left.size());
  Names missing("source lacks "), unexpected("target lacks "), foreign("not set in target: ");
  std::vector<std::string> differing;
  std::vector<Assignment> assignments;
  for (const ArchiveEntry& to : target) {
    const std::string& name = to.stored.name;
    const auto at = std::ranges::lower_bound(left, name, {}, name_of);
    if (at == left.end() || name_of(*at) != name) {
      missing.add(name);
      continue;
    }
    taken[static_cast<size_t>(at - left.begin())] = true;
    if (!to.given || !to.given->is_fixed || to.given->is_number)
      foreign.add(name);
    else if (!agree(to, **at))
      differing.push_back(tiny::cat("\"", name, "\" is ", described(to), " in target and ",
                                    described(**at), " in source"));
    else
      assignments.push_back({&to, *at});
  }
  for (size_t i = 0; i < left.size(); ++i)
    if (!taken[i]) unexpected.add(name_of(left[i]));
  std::vector<std::string> complaints;
  if (!is_partial) {
    missing.append_to(complaints);
    unexpected.append_to(complaints);
  }
  foreign.append_to(complaints);
  const Status status = complaints.empty() ? Status::Shape : Status::InvalidArgument;
  complaints.insert(complaints.end(), differing.begin(), differing.end());
  if (!complaints.empty()) tiny::throw_error(status, tiny::join(complaints, "; "));
  return assignments;
}

// The elements where they lie, if they are aligned there; they are read before the archive is gone
// or not at all.
tiny::Tensor lent_tensor(tiny_context& context, const tiny::HostTensor& host) {
  std::byte* data = const_cast<std::byte*>(host.bytes.data());
  const bool is_aligned =
      reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(host.dtype.bytes()) == 0;
  if (!is_aligned || host.bytes.size() == 0)
    return tiny::from_data(context.core, host.dtype, host.shape, data, host.bytes.size());
  auto held = std::make_unique<tiny::SharedBytes>(host.bytes);
  tiny::Tensor tensor = tiny::wrap(
      context.core, host.dtype, host.shape,
      tiny::const_dims(tiny::row_major_strides(tiny::to_shape(host.shape))), data,
      [](void* user) { delete static_cast<tiny::SharedBytes*>(user); }, held.get(), false);
  static_cast<void>(held.release());
  return tensor;
}

void assign_all(tiny_context& context, std::span<const Assignment> assignments) {
  // Values of before the first assignment: a target may be another's source.
  std::vector<tiny::Tensor> values;
  for (const auto& [to, from] : assignments) {
    tiny::Tensor value = from->given ? from->given->value.with(from->given->value.node())
                                     : lent_tensor(context, from->stored.value);
    if (value.dtype() != to->given->dtype) value = tiny::cast(value, to->given->dtype);
    values.push_back(std::move(value));
  }
  std::vector<tiny::Tensor*> targets;
  for (size_t i = 0; i < values.size(); ++i) {
    tiny::assign(assignments[i].to->given->value, values[i]);
    targets.push_back(&assignments[i].to->given->value);
  }
  tiny::realize(targets);
}

}  // namespace

extern "C" {

tiny_status tiny_archive_remove(tiny_archive* archive, const char* name) {
  Held gone;  // goes after the archive's lock
  return with_archive(__func__, archive, [&] {
    const std::string key = &tiny::required(name, "name");
    require(archive->remove(key, gone), Status::InvalidArgument, "no tensor is named \"", key,
            "\"");
  });
}

tiny_status tiny_archive_metadata(const tiny_archive* archive, const char* key, const char** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return with_archive(__func__, archive, [=] {
    const std::string name = &tiny::required(key, "key");
    const auto at =
        std::ranges::find(archive->metadata, name, &std::pair<std::string, std::string>::first);
    if (at != archive->metadata.end()) *out = at->second.c_str();
  });
}

tiny_status tiny_archive_assign(const tiny_archive* target, const tiny_archive* source,
                                tiny_flags flags) {
  return tiny::guarded(__func__, [=] {
    tiny::check_flags(flags, TINY_FLAG_PARTIAL);
    tiny_context& context = *tiny::required(target, "target").context;
    tiny::require_one_context(*tiny::required(source, "source").context, context,
                              "source is of another context than target");
    const std::vector<ArchiveEntry> to = entries_of(*target);
    const std::vector<ArchiveEntry> from = entries_of(*source);
    const std::vector<Assignment> assignments = matched(to, from, flags & TINY_FLAG_PARTIAL);
    const tiny::Building building(context);
    assign_all(context, assignments);
  });
}

}  // extern "C"
