#include "verdict/core_owner.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/fd.h"

namespace lrun::inline core {
namespace {

using FileHeader = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using NoteHeader = ElfW(Nhdr);

constexpr int kMostSegments = 64;  // the kernel writes the notes into the first
// The note of the process comes before those of its threads.
constexpr std::size_t kMostNoteBytes = std::size_t{64} * 1024;

std::string read_at(int fd, std::size_t bytes, off_t offset) {
  std::string text(bytes, '\0');
  const ssize_t count = ::pread(fd, text.data(), bytes, offset);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, count)));
  return text;
}

template <class Header>
std::optional<Header> header_in(std::string_view text) {
  Header header;
  if (text.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, text.data(), sizeof header);
  return header;
}

bool is_core(const FileHeader& header) {
  constexpr unsigned char kClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == kClass &&
         header.e_type == ET_CORE && header.e_phentsize == sizeof(Segment);
}

/// Names and descriptions of notes are padded to 4 bytes.
std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

pid_t process_in(std::string_view notes) {
  while (const auto note = header_in<NoteHeader>(notes)) {
    notes.remove_prefix(sizeof *note);
    notes.remove_prefix(std::min(padded(note->n_namesz), notes.size()));
    if (note->n_type == NT_PRPSINFO) {
      const auto process = header_in<elf_prpsinfo>(notes.substr(0, note->n_descsz));
      return process ? process->pr_pid : 0;
    }
    notes.remove_prefix(std::min(padded(note->n_descsz), notes.size()));
  }
  return 0;
}

}  // namespace

pid_t owner_of_core(const std::string& file) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  const auto header = header_in<FileHeader>(read_at(fd.get(), sizeof(FileHeader), 0));
  if (!header || !is_core(*header)) return 0;
  for (int i = 0; i < std::min<int>(header->e_phnum, kMostSegments); ++i) {
    const auto offset = static_cast<off_t>(header->e_phoff + static_cast<std::size_t>(i) * sizeof(Segment));
    const auto segment = header_in<Segment>(read_at(fd.get(), sizeof(Segment), offset));
    if (!segment) return 0;
    if (segment->p_type != PT_NOTE) continue;
    const auto bytes = std::min<std::size_t>(segment->p_filesz, kMostNoteBytes);
    return process_in(read_at(fd.get(), bytes, static_cast<off_t>(segment->p_offset)));
  }
  return 0;
}

}  // namespace lrun::inline core
