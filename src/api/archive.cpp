// Files of tensors: one by itself, or several by name.
#include "io/archive.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "api/boundary.h"
#include "api/model_handle.h"
#include "base/json.h"
#include "tensor/create.h"
#include "tensor/value.h"

using tiny::guarded;
using tiny::require;
using tiny::Status;

namespace {

// A tensor of the file, or one that was set: then a counted handle, and of the file's the name
// alone.
struct Entry {
  explicit Entry(tiny::NamedTensor t) : stored(std::move(t)) {}
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  ~Entry() { tiny_tensor_release(given); }

  tiny::NamedTensor stored;
  tiny_tensor* given = nullptr;
};

bool is_before(const Entry* entry, std::string_view name) {
  return entry->stored.name < name;
}

tiny::Archive read_file(const tiny_context& context, const std::string& path) {
  const bool is_mapped = context.core->flags().map_files != 0;
  return tiny::read_archive(path, is_mapped ? tiny::FileAccess::Mapped : tiny::FileAccess::Copied);
}

tiny::Tensor tensor_of(tiny_context& context, const tiny::NamedTensor& stored) {
  const tiny::HostTensor& host = tiny::supported(stored);
  return tiny::from_data(context.core, host.dtype, host.shape, host.bytes.data(),
                         host.bytes.size());
}

// The elements as they are, computed before.
tiny::NamedTensor stored_of(const std::string& name, tiny::Tensor& tensor) {
  const tiny::DType dtype = tensor.dtype();
  std::vector<std::byte> bytes(static_cast<size_t>(tiny::element_count(tensor) * dtype.bytes()));
  tiny::read(tensor, bytes.data(), static_cast<int64_t>(bytes.size()));
  return {name,
          {dtype, tiny::const_dims(tensor.shape()), tiny::SharedBytes::own(std::move(bytes))},
          ""};
}

}  // namespace

struct tiny_archive : tiny::CountedAs<tiny::HandleKind::Archive> {
  explicit tiny_archive(tiny_context& c) : context(&c) { c.retain(); }
  // Null if there is none of this name.
  Entry* find(std::string_view name) const {
    const auto at = std::lower_bound(by_name.begin(), by_name.end(), name, is_before);
    return at != by_name.end() && (*at)->stored.name == name ? *at : nullptr;
  }
  // Those of a file, which are in no order yet.
  void fill(tiny::Archive file) {
    for (tiny::NamedTensor& tensor : file.tensors)
      by_name.push_back(entries.emplace_back(std::make_unique<Entry>(std::move(tensor))).get());
    std::sort(by_name.begin(), by_name.end(),
              [](const Entry* a, const Entry* b) { return is_before(a, b->stored.name); });
    metadata = std::move(file.metadata);
  }
  Entry& add(const std::string& name) {
    auto entry = std::make_unique<Entry>(tiny::NamedTensor{name, {}, ""});
    entries.reserve(entries.size() + 1);
    const auto at = std::lower_bound(by_name.begin(), by_name.end(), name, is_before);
    by_name.insert(at, entry.get());
    return *entries.emplace_back(std::move(entry));
  }

  tiny_context* context;
  std::vector<std::unique_ptr<Entry>> entries;
  std::vector<Entry*> by_name;  // in the order of names
  std::vector<std::pair<std::string, std::string>> metadata;
};

namespace {

// A call about an archive, alone on its context.
template <class Body>
tiny_status with_archive(const char* call, const tiny_archive* archive, Body body) noexcept {
  return guarded(call, [&] {
    const tiny_context& context = *tiny::required(archive, "archive").context;
    const tiny::Building building(const_cast<tiny_context&>(context));
    body();
  });
}

void describe(tiny::JsonWriter& json, const Entry& entry) {
  const tiny::HostTensor& host = entry.stored.value;
  const tiny::Tensor* given = entry.given ? &entry.given->value : nullptr;
  const tiny::DType dtype = given ? given->dtype() : host.dtype;
  json.begin_object().key("name").text(entry.stored.name).key("dtype");
  json.text(dtype == tiny::kVoid ? entry.stored.unsupported : to_string(dtype));
  json.key("shape").begin_array();
  for (const int64_t dim : given ? tiny::const_dims(given->shape()) : host.shape) json.integer(dim);
  json.end_array().key("bytes");
  json.integer(given ? tiny::element_count(*given) * dtype.bytes() : host.bytes.size());
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

}  // namespace

extern "C" {

tiny_status tiny_tensor_load(tiny_context* context, const char* path, tiny_tensor** out) {
  return tiny::produce(__func__, out, context, [&] {
    const std::string file = &tiny::required(path, "path");
    const tiny::Archive archive = read_file(*context, file);
    std::vector<std::string> names;
    for (const tiny::NamedTensor& tensor : archive.tensors) names.push_back(tensor.name);
    require(names.size() == 1, Status::InvalidArgument, file, " has ", names.size(),
            " tensors, not one; tiny_archive_load gives them by name: ", tiny::names_text(names));
    return tensor_of(*context, archive.tensors[0]);
  });
}

tiny_status tiny_tensor_save(const tiny_tensor* tensor, const char* path, const char* name) {
  return tiny::act(__func__, {{tensor, "tensor"}}, [&] {
    const std::string file = &tiny::required(path, "path");
    tiny::check_ending(file);
    tiny::Archive archive;
    archive.tensors.push_back(stored_of(name ? name : "", tensor->value));
    tiny::write_archive(file, archive);
  });
}

tiny_status tiny_archive_create(tiny_context* context, tiny_archive** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::act(__func__, context, [&] { *out = new tiny_archive(*context); });
}

tiny_status tiny_archive_load(tiny_context* context, const char* path, tiny_archive** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::act(__func__, context, [&] {
    std::unique_ptr<tiny_archive, void (*)(tiny_archive*)> archive(new tiny_archive(*context),
                                                                   tiny_archive_release);
    archive->fill(read_file(*context, &tiny::required(path, "path")));
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
  return with_archive(__func__, archive, [&] { *out = archive->entries.size(); });
}

tiny_status tiny_archive_name(const tiny_archive* archive, size_t index, const char** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return with_archive(__func__, archive, [&] {
    require(index < archive->entries.size(), Status::InvalidArgument, "the archive has ",
            archive->entries.size(), " tensors; got index ", index);
    *out = archive->entries[index]->stored.name.c_str();
  });
}

tiny_status tiny_archive_info(const tiny_archive* archive, tiny_report** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return with_archive(__func__, archive, [&] { *out = new tiny_report(info_json(*archive)); });
}

tiny_status tiny_archive_get(const tiny_archive* archive, const char* name, tiny_tensor** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  const tiny_status known = guarded(__func__, [&] { tiny::required(archive, "archive"); });
  if (known != TINY_OK) return known;
  return tiny::produce(__func__, out, archive->context, [&] {
    const Entry* entry = archive->find(&tiny::required(name, "name"));
    if (entry)
      return entry->given ? entry->given->value : tensor_of(*archive->context, entry->stored);
    std::vector<std::string> names;
    for (const auto& known : archive->entries) names.push_back(known->stored.name);
    throw tiny::Error(Status::InvalidArgument, tiny::cat("no tensor is named \"", name,
                                                         "\"; known: ", tiny::names_text(names)));
  });
}

tiny_status tiny_archive_set(tiny_archive* archive, const char* name, const tiny_tensor* tensor) {
  return with_archive(__func__, archive, [&] {
    const std::string key = &tiny::required(name, "name");
    require(tiny::required(tensor, "tensor").context == archive->context, Status::InvalidArgument,
            "tensor is of another context than the archive");
    Entry* known = archive->find(key);
    Entry& entry = known ? *known : archive->add(key);
    auto* given = const_cast<tiny_tensor*>(tensor);
    tiny_tensor_retain(given);
    tiny_tensor_release(std::exchange(entry.given, given));
    entry.stored = {key, {}, ""};
  });
}

tiny_status tiny_archive_set_metadata(tiny_archive* archive, const char* key, const char* value) {
  return with_archive(__func__, archive, [&] {
    const std::string name = &tiny::required(key, "key");
    const std::string text = &tiny::required(value, "value");
    for (auto& [known, old] : archive->metadata)
      if (known == name) {
        old = text;
        return;
      }
    archive->metadata.emplace_back(name, text);
  });
}

tiny_status tiny_archive_save(const tiny_archive* archive, const char* path) {
  return with_archive(__func__, archive, [&] {
    const std::string file = &tiny::required(path, "path");
    tiny::check_ending(file);
    std::vector<tiny::Tensor*> given;
    for (const auto& entry : archive->entries)
      if (entry->given) given.push_back(&entry->given->value);
    if (!given.empty()) tiny::realize(given);
    tiny::Archive written{{}, archive->metadata};
    for (const auto& entry : archive->entries)
      written.tensors.push_back(entry->given ? stored_of(entry->stored.name, entry->given->value)
                                             : entry->stored);
    tiny::write_archive(file, written);
  });
}

}  // extern "C"
