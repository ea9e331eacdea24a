// Files of tensors: one by itself, or several by name.
//
// An archive needs its context only to make tensors, and to compute what is to be saved: files are
// read and written beside whoever has the context.
#include "io/archive.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "api/archive_handle.h"
#include "api/boundary.h"
#include "api/computed.h"
#include "api/model_handle.h"
#include "base/json.h"
#include "tensor/create.h"
#include "tensor/value.h"

using tiny::guarded;
using tiny::Held;
using tiny::require;
using tiny::require_fixed;
using tiny::Status;
using tiny::with_archive;
using Entry = tiny::ArchiveEntry;

namespace {

tiny::Archive read_file(tiny_context& context, const std::string& path) {
  const tiny::Beside beside(context);
  return tiny::read_archive(path, beside.file_access());
}

tiny::Tensor tensor_of(tiny_context& context, const tiny::NamedTensor& stored) {
  const tiny::HostTensor& host = tiny::supported(stored);
  return tiny::from_data(context.core, host.dtype, host.shape, host.bytes.data(),
                         host.bytes.size());
}

int64_t bytes_of(const tiny_tensor& tensor) {
  return tensor.numel * tensor.dtype.bytes();
}

// The elements of tensors that are to be saved.
class Saving {
 public:
  Saving(tiny_context& context, tiny::StopSignal::Since since) : context_(context), since_(since) {}

  void add(const Entry& entry) {
    if (entry.given) require_fixed(*entry.given);
    items_.push_back({entry, nullptr, {}});
  }
  // Computes what is not, and writes.
  void write(const std::string& path,
             std::vector<std::pair<std::string, std::string>> metadata = {});

 private:
  struct Item {
    Entry entry;
    std::unique_ptr<tiny::Computed> elements;  // stay as they are while it lives
    tiny::SharedBytes copy;                    // of what cannot be read in its place
  };
  using Copy = tiny::Ref<tiny::NewBytes>;

  static bool find(Item& item);
  void find_or_compute();
  Copy new_copy(const tiny_tensor& tensor) const {
    return tiny::make_ref<tiny::NewBytes>(
        tiny::Ref<tiny::MemoryUse>(&context_.core->device().memory()), bytes_of(tensor));
  }
  tiny::NamedTensor value_of(const Item& item, const tiny::StopSignal& stop) const;

  tiny_context& context_;
  tiny::StopSignal::Since since_;
  std::vector<Item> items_;
};

// Whether the elements can be read without the context.
bool Saving::find(Item& item) {
  if (!item.entry.given || item.entry.given->is_number || item.entry.given->numel == 0) return true;
  item.elements = std::make_unique<tiny::Computed>(*item.entry.given);
  return item.elements->data() != nullptr;
}

// What was found is let go before the context is waited for: who has it may be waiting to change
// these elements.
void Saving::find_or_compute() {
  if (std::ranges::all_of(items_, find)) return;
  std::vector<tiny::Tensor*> given;
  for (Item& item : items_) {
    item.elements = nullptr;
    if (item.entry.given) given.push_back(&item.entry.given->value);
  }
  const tiny::Building building(context_, since_);
  tiny::realize(given);
  context_.core->publish_cells();
  for (Item& item : items_) {
    if (find(item)) continue;
    const tiny_tensor& tensor = *item.entry.given;
    const Copy copy = new_copy(tensor);
    tiny::read(tensor.value, copy->data(), bytes_of(tensor));
    item.copy = tiny::NewBytes::shared(copy);
  }
}

tiny::NamedTensor Saving::value_of(const Item& item, const tiny::StopSignal& stop) const {
  if (!item.entry.given) return item.entry.stored;
  const tiny_tensor& tensor = *item.entry.given;
  const auto dims = tiny::dims_of(tensor);
  const auto strides = tiny::strides_of(tensor);
  const auto size = static_cast<size_t>(bytes_of(tensor));
  tiny::SharedBytes bytes = item.copy;
  if (tensor.is_number) {
    bytes = {nullptr, std::as_bytes(std::span(&tensor.number_bits, 1)).first(size)};
  } else if (item.elements && item.elements->data() && tiny::is_row_major(dims, strides)) {
    bytes = {nullptr, {item.elements->data(), size}};
  } else if (item.elements && item.elements->data()) {
    const Copy copy = new_copy(tensor);
    tiny::copy_elements(copy->data(), item.elements->data(),
                        static_cast<size_t>(tensor.dtype.bytes()), dims, strides, &stop);
    bytes = tiny::NewBytes::shared(copy);
  }
  return {item.entry.stored.name, {tensor.dtype, {dims.begin(), dims.end()}, bytes}, ""};
}

void Saving::write(const std::string& path,
                   std::vector<std::pair<std::string, std::string>> metadata) {
  find_or_compute();
  const tiny::Beside beside(context_, since_);
  tiny::Archive written{{}, std::move(metadata)};
  for (const Item& item : items_) written.tensors.push_back(value_of(item, beside.stop()));
  tiny::write_archive(path, written, &beside.stop());
}

void describe(tiny::JsonWriter& json, const Entry& entry) {
  const tiny::HostTensor& host = entry.stored.value;
  const tiny::DType dtype = entry.given ? entry.given->dtype : host.dtype;
  json.begin_object().key("name").text(entry.stored.name).key("dtype");
  json.text(dtype == tiny::kVoid ? entry.stored.unsupported : to_string(dtype));
  json.key("shape").begin_array();
  if (entry.given) require_fixed(*entry.given);
  const std::span<const int64_t> dims =
      entry.given ? tiny::dims_of(*entry.given) : std::span<const int64_t>(host.shape);
  for (const int64_t dim : dims) json.integer(dim);
  json.end_array().key("bytes");
  json.integer(entry.given ? bytes_of(*entry.given) : host.bytes.size());
  json.end_object();
}

std::string info_json(const tiny_archive& archive) {
  tiny::JsonWriter json;
  json.begin_object().key("tensors").begin_array();
  for (const auto& entry : archive.entries) describe(json, *entry);
  json.end_array().key("metadata").begin_object();
  for (const auto& [key, text] : archive.metadata) json.key(key).text(text);
  return json.end_object().end_object().result();
}

// A copy of the entry; Error{InvalidArgument} that lists the names if there is none.
Entry entry_named(const tiny_archive& archive, const std::string& name) {
  const std::lock_guard lock(archive.mutex);
  if (const Entry* entry = archive.find(name)) return *entry;
  std::vector<std::string> names;
  for (const auto& known : archive.entries) names.push_back(known->stored.name);
  tiny::throw_error(Status::InvalidArgument, "no tensor is named \"", name,
                    "\"; known: ", tiny::names_text(names));
}

}  // namespace

extern "C" {

tiny_status tiny_tensor_load(tiny_context* context, const char* path, tiny_tensor** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [=] {
    tiny_context& owner = tiny::required(context, "context");
    const std::string file = &tiny::required(path, "path");
    const tiny::StopSignal::Since since = tiny::StopSignal::Clock::now();
    const tiny::Archive archive = read_file(owner, file);
    std::vector<std::string> names;
    for (const tiny::NamedTensor& tensor : archive.tensors) names.push_back(tensor.name);
    require(names.size() == 1, Status::InvalidArgument, file, " has ", names.size(),
            " tensors, not one; tiny_archive_load gives them by name: ", tiny::names_text(names));
    const tiny::Building building(owner, since);
    *out = tiny::make_handle(owner, [&] { return tensor_of(owner, archive.tensors[0]); });
  });
}

tiny_status tiny_tensor_save(const tiny_tensor* tensor, const char* path, const char* name) {
  return guarded(__func__, [=] {
    const tiny_tensor& given = tiny::required(tensor, "tensor");
    const std::string file = &tiny::required(path, "path");
    tiny::check_ending(file);
    Saving saving(*given.context, tiny::StopSignal::Clock::now());
    saving.add({{name ? name : "", {}, ""}, Held(&given)});
    saving.write(file);
  });
}

tiny_status tiny_archive_create(tiny_context* context, tiny_archive** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [=] { *out = new tiny_archive(tiny::required(context, "context")); });
}

tiny_status tiny_archive_load(tiny_context* context, const char* path, tiny_archive** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [=] {
    tiny_context& owner = tiny::required(context, "context");
    tiny::Archive file = read_file(owner, &tiny::required(path, "path"));
    std::unique_ptr<tiny_archive, void (*)(tiny_archive*)> archive(new tiny_archive(owner),
                                                                   tiny_archive_release);
    archive->fill(std::move(file));
    *out = archive.release();
  });
}

void tiny_archive_retain(tiny_archive* archive) {
  tiny::retain_owned(archive);
}

void tiny_archive_release(tiny_archive* archive) {
  tiny::release_owned(archive);
}

tiny_status tiny_archive_count(const tiny_archive* archive, size_t* out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = 0;
  return with_archive(__func__, archive, [=] { *out = archive->entries.size(); });
}

tiny_status tiny_archive_name(const tiny_archive* archive, size_t index, const char** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return with_archive(__func__, archive, [=] {
    require(index < archive->entries.size(), Status::InvalidArgument, "the archive has ",
            archive->entries.size(), " tensors; got index ", index);
    *out = archive->entries[index]->stored.name.c_str();
  });
}

tiny_status tiny_archive_info(const tiny_archive* archive, tiny_report** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return with_archive(__func__, archive, [=] { *out = new tiny_report(info_json(*archive)); });
}

tiny_status tiny_archive_get(const tiny_archive* archive, const char* name, tiny_tensor** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return guarded(__func__, [=] {
    const Entry entry =
        entry_named(tiny::required(archive, "archive"), &tiny::required(name, "name"));
    tiny_context& context = *archive->context;
    const tiny::Building building(context);
    *out = tiny::make_handle(context, [&] {
      return entry.given ? entry.given->value : tensor_of(context, entry.stored);
    });
  });
}

tiny_status tiny_archive_set(tiny_archive* archive, const char* name, const tiny_tensor* tensor) {
  Held before;  // goes after the archive's lock
  return with_archive(__func__, archive, [&] {
    const std::string key = &tiny::required(name, "name");
    tiny::require_one_context(*tiny::required(tensor, "tensor").context, *archive->context,
                              "tensor is of another context than the archive");
    Entry* known = archive->find(key);
    Entry& entry = known ? *known : archive->add(key);
    before = std::exchange(entry.given, Held(tensor));
    // Its name stays where it is.
    entry.stored.value = {};
    entry.stored.unsupported.clear();
  });
}

tiny_status tiny_archive_set_metadata(tiny_archive* archive, const char* key, const char* value) {
  return with_archive(__func__, archive, [=] {
    const std::string name = &tiny::required(key, "key");
    const std::string text = &tiny::required(value, "value");
    if (std::string* old = archive->find_text(name))
      *old = text;
    else
      archive->metadata.emplace_back(name, text);
  });
}

tiny_status tiny_archive_save(const tiny_archive* archive, const char* path) {
  return guarded(__func__, [=] {
    const tiny_archive& from = tiny::required(archive, "archive");
    const std::string file = &tiny::required(path, "path");
    tiny::check_ending(file);
    Saving saving(*from.context, tiny::StopSignal::Clock::now());
    std::vector<std::pair<std::string, std::string>> metadata;
    {
      const std::lock_guard lock(from.mutex);
      for (const auto& entry : from.entries) saving.add(*entry);
      metadata.assign(from.metadata.begin(), from.metadata.end());
    }
    saving.write(file, std::move(metadata));
  });
}

}  // extern "C"
