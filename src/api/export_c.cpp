// Programs as C.
#include "aot/export_c.h"

#include "api/boundary.h"
#include "api/model_handle.h"

extern "C" {

tiny_status tiny_program_export_c(const tiny_program* program, const char* directory,
                                  const char* name) {
  return tiny::guarded(__func__, [=] {
    const tiny_program& p = tiny::required(program, "program");
    const std::string folder = &tiny::required(directory, "directory");
    const std::string called = &tiny::required(name, "name");
    tiny::require(!p.joint, tiny::Status::Unsupported,
                  "a program of several devices is not written as C");
    const tiny::Building building(*p.context);
    tiny::Context& context = *p.context->core;
    const tiny::CExport files = tiny::export_c(context, *p.value, called, tiny_version());
    tiny::write_c_export(files, folder, called, &context.stop());
  });
}

}  // extern "C"
