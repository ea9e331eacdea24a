#include "save.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "failure.h"
#include "files.h"
#include "npz.h"

namespace tiny::cli {
namespace {

enum class Form { Folder, Npz, Safetensors, Npy, Pb };

bool is_folder(const std::string& path) {
  struct stat found;
  return stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

// A folder that is there is one whatever its name; else the ending says what is to be written, and
// one that says nothing known was not meant as a folder's.
Form form_of(const std::string& target, size_t count) {
  if (target.ends_with('/') || is_folder(target)) return Form::Folder;
  const std::string end = ending(target);
  if (end == ".npz") return Form::Npz;
  if (end == ".safetensors") return Form::Safetensors;
  if (end == ".npy" || end == ".pb") {
    if (count != 1)
      throw usage_failure("a " + end + " file holds one tensor, not " + std::to_string(count) +
                          ": choose one with --outputs, or save to a folder or FILE.npz");
    return end == ".npy" ? Form::Npy : Form::Pb;
  }
  if (is_file(target))
    throw file_failure(target, "is a file, where a folder would be made for the outputs");
  if (!end.empty())
    throw usage_failure("--save " + target + ": the ending " + end +
                        " is not known; it writes FILE.npz, FILE.safetensors, FILE.npy, FILE.pb, "
                        "or a folder: " +
                        target + "/");
  return Form::Folder;
}

void refuse_bfloat16(const Array& array, const std::string& target) {
  if (array.dtype == TINY_BFLOAT16)
    throw usage_failure("--save " + target + ": output " + array.name +
                        " is bfloat16, which NumPy's format has not; it can be saved to "
                        "FILE.safetensors, FILE.pb or a folder");
}

void save_to_folder(const Context& context, const std::string& target,
                    const std::vector<Array>& arrays) {
  if (mkdir(target.c_str(), 0777) != 0 && errno != EEXIST)
    throw file_failure(target, std::strerror(errno));
  std::set<std::string> used;
  for (size_t i = 0; i < arrays.size(); ++i) {
    std::string name = escaped(arrays[i].name);
    if (!used.insert(name).second) name += "%" + std::to_string(i);
    const char* suffix = arrays[i].dtype == TINY_BFLOAT16 ? ".pb" : ".npy";
    name.insert(0, target + "/");
    save_tensor(context, arrays[i], name.append(suffix));
  }
}

}  // namespace

void check_target(const std::string& target, size_t count) {
  form_of(target, count);
}

void save_outputs(const Context& context, const std::string& target,
                  const std::vector<Array>& arrays) {
  switch (form_of(target, arrays.size())) {
    case Form::Folder:
      return save_to_folder(context, target, arrays);
    case Form::Npz:
      for (const Array& array : arrays) refuse_bfloat16(array, target);
      return write_npz(target, arrays);
    case Form::Safetensors:
      return save_archive(context, arrays, target);
    case Form::Npy:
      refuse_bfloat16(arrays[0], target);
      return save_tensor(context, arrays[0], target);
    case Form::Pb:
      return save_tensor(context, arrays[0], target);
  }
}

}  // namespace tiny::cli
