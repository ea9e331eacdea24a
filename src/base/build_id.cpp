#include "base/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tiny {

namespace {

struct Search {
  uintptr_t place;  // an address in the module that is looked for
  std::string found;
};

size_t padded(size_t size) {
  return (size + 3) / 4 * 4;
}

// The description of the note of this type by "GNU".
std::string_view gnu_note(std::string_view notes, uint32_t type) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(notes.data());
    const size_t name = sizeof *note, text = name + padded(note->n_namesz);
    const size_t end = text + padded(note->n_descsz);
    if (end > notes.size()) break;
    if (note->n_type == type && notes.substr(name, note->n_namesz) == std::string_view("GNU\0", 4))
      return notes.substr(text, note->n_descsz);
    notes.remove_prefix(end);
  }
  return {};
}

int look_at(dl_phdr_info* module, size_t, void* user) {
  auto& search = *static_cast<Search*>(user);
  bool is_ours = false;
  std::string_view id;
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = module->dlpi_phdr[i];
    const uintptr_t start = module->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD)
      is_ours |= search.place >= start && search.place - start < part.p_memsz;
    if (part.p_type == PT_NOTE && id.empty())
      id = gnu_note({reinterpret_cast<const char*>(start), part.p_memsz}, NT_GNU_BUILD_ID);
  }
  if (is_ours) search.found = id;
  return is_ours ? 1 : 0;
}

}  // namespace

std::string build_id() {
  Search search{reinterpret_cast<uintptr_t>(&look_at), {}};
  dl_iterate_phdr(look_at, &search);
  return search.found;
}

}  // namespace tiny
