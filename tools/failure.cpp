#include "failure.h"

#include "json.h"

namespace tiny::cli {

Exit exit_of(tiny_status status) {
  switch (status) {
    case TINY_OK:
      return Exit::Ok;
    case TINY_ERROR_INVALID_ARGUMENT:
      return Exit::Usage;
    case TINY_ERROR_SHAPE:
    case TINY_ERROR_DTYPE:
    case TINY_ERROR_INDEX:
    case TINY_ERROR_IO:
      return Exit::File;
    case TINY_ERROR_DEVICE:
    case TINY_ERROR_DEVICE_LOST:
    case TINY_ERROR_UNSUPPORTED:
      return Exit::Unsupported;
    case TINY_ERROR_INVALID_MODEL:
      return Exit::InvalidModel;
    case TINY_ERROR_OUT_OF_MEMORY:
    case TINY_ERROR_LIMIT:
      return Exit::Limit;
    case TINY_ERROR_CANCELLED:
      return Exit::Interrupted;
    default:
      return Exit::Internal;
  }
}

Failure last_failure(tiny_status status, std::string_view file) {
  Failure failure(exit_of(status), tiny_status_name(status), tiny_last_error());
  failure.file = file;
  // The library's own record may say more than its message.
  if (const auto record = Json::parse(tiny_last_error_json())) {
    if (const Json* call = record->find("call")) failure.call = call->text();
    if (const Json* node = record->find("node")) failure.node = node->text();
    if (const Json* path = record->find("file"); path && !path->text().empty())
      failure.file = path->text();
  }
  // "tiny_model_load: ..": whoever types a command called no function of C.
  if (const std::string prefix = failure.call + ": ";
      !failure.call.empty() && failure.message.starts_with(prefix))
    failure.message.erase(0, prefix.size());
  if (failure.message.empty()) failure.message = failure.status;
  return failure;
}

void check(tiny_status status, std::string_view file) {
  if (status != TINY_OK) throw last_failure(status, file);
}

Failure usage_failure(std::string message) {
  return Failure(Exit::Usage, "INVALID_ARGUMENT", std::move(message));
}

Failure file_failure(std::string_view file, std::string_view why) {
  Failure failure(Exit::File, "IO", std::string(file) + ": " + std::string(why));
  failure.file = file;
  return failure;
}

}  // namespace tiny::cli
