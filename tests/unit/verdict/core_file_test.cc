#include "verdict/core_file.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/procfs.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "support/temporary_folder.h"
#include "verdict/core_owner.h"

namespace lrun {
namespace {

TEST(CoreFile, IsNamedByTheKernelsPattern) {
  EXPECT_EQ(core_file_pattern("core", false, 42, 11, "/job"), "/job/core");
  EXPECT_EQ(core_file_pattern("core", true, 42, 11, "/job"), "/job/core.42");
  EXPECT_EQ(core_file_pattern("core.%p", true, 42, 11, "/job"), "/job/core.42");
  EXPECT_EQ(core_file_pattern("/var/core/%e.%p.%s.%t%%", false, 42, 11, "/job"), "/var/core/*.42.11.*%");
}

TEST(CoreFile, NamesWithGlobbingCharactersStandForThemselves) {
  EXPECT_EQ(core_file_pattern("core[*]", false, 1, 6, "/a?b"), "/a\\?b/core\\[\\*\\]");
}

/// A core file with the notes of one thread and its process, as the kernel writes it.
std::string core_of(pid_t pid) {
  const auto note = [](unsigned type, const auto& description) {
    const ElfW(Nhdr) header{5, sizeof description, type};
    std::string text(sizeof header, '\0');
    std::memcpy(text.data(), &header, sizeof header);
    text += std::string("CORE\0\0\0\0", 8);
    const std::size_t at = text.size();
    text.resize(at + (sizeof description + 3) / 4 * 4);
    std::memcpy(text.data() + at, &description, sizeof description);
    return text;
  };
  elf_prpsinfo process{};
  process.pr_pid = pid;
  elf_prstatus thread{};
  thread.pr_pid = pid + 1;
  const std::string notes = note(NT_PRSTATUS, thread) + note(NT_PRPSINFO, process);
  ElfW(Ehdr) header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  header.e_type = ET_CORE;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(ElfW(Phdr));
  header.e_phnum = 1;
  ElfW(Phdr) segment{};
  segment.p_type = PT_NOTE;
  segment.p_offset = sizeof header + sizeof segment;
  segment.p_filesz = notes.size();
  std::string text(sizeof header + sizeof segment, '\0');
  std::memcpy(text.data(), &header, sizeof header);
  std::memcpy(text.data() + sizeof header, &segment, sizeof segment);
  return text + notes;
}

class CoreDump : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& content) const {
    const std::filesystem::path file = folder_.path() / name;
    std::ofstream(file) << content;
    return file.string();
  }
  [[nodiscard]] std::string words(const CorePattern& pattern, bool dumped = true, int signal_number = SIGSEGV) const {
    return describe_core_dump({42, signal_number, folder_.path().string(), dumped}, pattern);
  }
  [[nodiscard]] std::string folder() const { return folder_.path().string(); }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(CoreDump, IsFoundByTheProcessThatItNames) {
  EXPECT_EQ(owner_of_core(write("core", core_of(42))), 42);
  EXPECT_EQ(words({"core"}), folder() + "/core");
  (void)write("core.ranks.1", core_of(43));
  EXPECT_EQ(words({"core.%h.%t"}), folder() +
                                       "/core.ranks.1 belongs to process 43, which overwrote it: the kernel's "
                                       "pattern 'core.%h.%t' has no '%p'");
  (void)write("core.ranks.2", core_of(42));
  EXPECT_EQ(words({"core.%h.%t"}), folder() + "/core.ranks.2");
}

TEST_F(CoreDump, OfAnotherRankIsNotTheCulprits) {
  (void)write("core", core_of(43));
  EXPECT_EQ(words({"core"}), folder() +
                                 "/core belongs to process 43, which overwrote it: the kernel's pattern 'core' has "
                                 "no '%p'");
  EXPECT_EQ(describe_core_dump({42, SIGSEGV, folder(), true, false, {{42, 0}, {43, 1}}}, {"core"}),
            folder() + "/core belongs to rank 1, which overwrote it: the kernel's pattern 'core' has no '%p'");
  (void)write("core", "cut off");
  EXPECT_EQ(words({"core"}), folder() + "/core may belong to another process: the kernel's pattern 'core' has no '%p'");
  (void)write("core.42", "cut off");
  EXPECT_EQ(words({"core.%p"}), folder() + "/core.42") << "its name says whose it is";
  EXPECT_EQ(words({"dump.%p"}), "not found by the kernel's pattern 'dump.%p' in " + folder());
}

TEST_F(CoreDump, ThatIsMissingIsToldWithTheReason) {
  EXPECT_EQ(words({"core"}, false),
            "none was written: the program may have disabled core files, or left '" + folder() + "'");
  EXPECT_EQ(words({"core"}, false, SIGKILL), "") << "this signal asks for none";
  EXPECT_EQ(words({"cores/%p"}, false), "none was written: '" + folder() + "/cores' is not a folder");
  EXPECT_EQ(words({"|/usr/bin/keeper %p"}, false), "none was written: '/usr/bin/keeper' did not accept it");
  std::filesystem::create_directory(folder() + "/core");
  EXPECT_EQ(words({"core"}, false), "none was written: '" + folder() + "/core' exists and is not a regular file");
  EndedProcess process{42, SIGABRT, folder(), false};
  process.limit_is_zero = true;
  EXPECT_EQ(describe_core_dump(process, {"core"}), "none was written: the core file size limit is 0");
}

TEST_F(CoreDump, GivenToAProgramNamesIt) {
  EXPECT_EQ(words({"|/usr/lib/systemd/systemd-coredump %P"}), "'coredumpctl gdb 42'");
  EXPECT_EQ(words({"|/usr/share/apport/apport %p"}), "given to '/usr/share/apport/apport'");
}

TEST_F(CoreDump, OwnerOfAnythingElseIsNobody) {
  const std::string whole = core_of(42);
  for (std::size_t bytes = 0; bytes + 4 < whole.size(); bytes += 17) {
    EXPECT_EQ(owner_of_core(write("cut", whole.substr(0, bytes))), 0) << bytes << " bytes";
  }
  std::string wild = whole;
  ElfW(Ehdr) header;
  std::memcpy(&header, wild.data(), sizeof header);
  header.e_phoff = ~static_cast<decltype(header.e_phoff)>(0) - 7;
  header.e_phnum = 0xffff;
  std::memcpy(wild.data(), &header, sizeof header);
  EXPECT_EQ(owner_of_core(write("wild", wild)), 0);
  EXPECT_EQ(owner_of_core(folder()), 0);
  EXPECT_EQ(owner_of_core("/dev/zero"), 0);
}

}  // namespace
}  // namespace lrun
