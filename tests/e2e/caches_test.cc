// Workers whose HOME is on a network file system, played by a FUSE mount in a mount namespace of lrun's own.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "base/fd.h"
#include "support/fuse_mount.h"
#include "support/lrun_process.h"
#include "support/temporary_folder.h"

namespace lrun::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

/// Serves an empty folder on FUSE.
class EmptyFuse {
 public:
  EmptyFuse() : device_(::open("/dev/fuse", O_RDWR | O_CLOEXEC)), end_(make_pipe()) {
    if (device_) server_ = std::thread([this] { serve(); });
  }
  EmptyFuse(const EmptyFuse&) = delete;
  EmptyFuse& operator=(const EmptyFuse&) = delete;
  ~EmptyFuse() {
    end_.write.reset();
    if (server_.joinable()) server_.join();
  }

  [[nodiscard]] bool can_be_mounted() const { return device_ && ::geteuid() == 0; }

  /// In a child, which gets a mount namespace. \param folder  of whoever reads it, also another process
  void mount_at(const fs::path& folder) const { mount_fuse(device_, folder); }

 private:
  void serve() const {
    std::array<char, 256 * 1024> request{};
    for (;;) {
      pollfd both[] = {{device_.get(), POLLIN, 0}, {end_.read.get(), POLLIN, 0}};
      if (::poll(both, 2, -1) < 0 || both[1].revents != 0) return;
      if (::read(device_.get(), request.data(), request.size()) < 0) {
        if (errno == EPERM || errno == EINTR || errno == EAGAIN) std::this_thread::yield();  // not mounted yet
        if (errno == ENODEV) return;
        continue;
      }
      fuse_in_header header{};
      std::memcpy(&header, request.data(), sizeof header);
      answer(header);
    }
  }

  void answer(const fuse_in_header& request) const {
    switch (request.opcode) {
      case FUSE_INIT: {
        fuse_init_out init{};
        init.major = FUSE_KERNEL_VERSION;
        init.minor = FUSE_KERNEL_MINOR_VERSION;
        init.max_write = 4096;
        return reply(request, 0, &init, sizeof init);
      }
      case FUSE_GETATTR: {
        fuse_attr_out attributes{};
        attributes.attr.ino = FUSE_ROOT_ID;
        attributes.attr.mode = S_IFDIR | 0755;
        attributes.attr.nlink = 2;
        return reply(request, 0, &attributes, sizeof attributes);
      }
      case FUSE_STATFS: {
        const fuse_statfs_out statistics{};
        return reply(request, 0, &statistics, sizeof statistics);
      }
      case FUSE_LOOKUP:
        return reply(request, -ENOENT, nullptr, 0);
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT:
        return;
      default:
        return reply(request, -ENOSYS, nullptr, 0);
    }
  }

  void reply(const fuse_in_header& request, int error, const void* body, std::size_t size) const {
    fuse_out_header header{static_cast<std::uint32_t>(sizeof header + size), error, request.unique};
    iovec parts[] = {{&header, sizeof header}, {const_cast<void*>(body), size}};
    (void)!::writev(device_.get(), parts, size > 0 ? 2 : 1);
  }

  Fd device_;
  Pipe end_;
  std::thread server_;
};

constexpr const char* kShow = "echo \"$TRITON_CACHE_DIR|$NUMBA_CACHE_DIR|$CUDA_CACHE_PATH|$TORCHINDUCTOR_CACHE_DIR\"";

class Caches : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fuse_.can_be_mounted()) GTEST_SKIP() << "only root can mount FUSE here";
    fs::create_directory(home());
    fs::create_directory(temporary());
  }

  [[nodiscard]] fs::path home() const { return folder_.path() / "home"; }
  [[nodiscard]] fs::path temporary() const { return folder_.path() / "tmp"; }
  [[nodiscard]] LrunProcess::Options on_network() const { return on_network(fuse_); }
  /// \param fuse  that was not mounted yet; must outlive the options
  [[nodiscard]] LrunProcess::Options on_network(const EmptyFuse& fuse) const {
    return {.environment = {{"HOME", home()}, {"TMPDIR", temporary()}, {"XDG_CACHE_HOME", ""}},
            .before_exec = [this, &fuse] { fuse.mount_at(home()); }};
  }

  TemporaryFolder folder_;
  EmptyFuse fuse_;
};

TEST_F(Caches, ThatWouldBeOnANetworkFileSystemAreOnTheNode) {
  LrunProcess lrun({"-n", "1", "sh", "-c", kShow}, on_network());
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  const fs::path own = temporary() / ("lrun-caches-" + std::to_string(::geteuid()));
  EXPECT_EQ(lrun.out(), "[0] " + own.string() + "/triton|" + own.string() + "/numba|" + own.string() + "/cuda|\n");
  struct stat status {};
  ASSERT_EQ(::stat(own.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
}

TEST_F(Caches, HaveThePlaceThatTheUserNames) {
  LrunProcess::Options options = on_network();
  options.environment["TRITON_CACHE_DIR"] = "/own";
  LrunProcess lrun({"-n", "1", "--env", "CUDA_CACHE_PATH=/mine", "--unset", "NUMBA_CACHE_DIR", "sh", "-c", kShow},
                   options);
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(lrun.out(), "[0] /own||/mine|\n");
}

TEST_F(Caches, AreInThePlanWithTheReason) {
  LrunProcess lrun({"-n", "1", "--dry-run", "sh", "-c", kShow}, on_network());
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_THAT(lrun.out(), HasSubstr("TRITON_CACHE_DIR=" + temporary().string()));
  EXPECT_THAT(lrun.out(), HasSubstr("its default is on FUSE"));
  EXPECT_TRUE(fs::is_empty(temporary())) << "a plan makes nothing";
}

TEST_F(Caches, OfAHomeOnTheNodeStayWhereTheyAre) {
  LrunProcess lrun({"-n", "1", "sh", "-c", kShow}, {.environment = {{"HOME", home()}, {"TMPDIR", temporary()}}});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(lrun.out(), "[0] |||\n");
}

TEST_F(Caches, AreNotWhereAnotherUserCouldPutSomething) {
  const fs::path own = temporary() / ("lrun-caches-" + std::to_string(::geteuid()));
  const auto is_avoided = [&] {
    const EmptyFuse fuse;
    LrunProcess lrun({"-n", "1", "sh", "-c", kShow}, on_network(fuse));
    return lrun.wait().code == 0 && lrun.out().find(temporary().string()) == std::string::npos;
  };
  fs::create_directory(own);
  EXPECT_EQ(::chmod(own.c_str(), 0777), 0);
  EXPECT_TRUE(is_avoided()) << "others may write there";
  ASSERT_EQ(::chown(own.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(is_avoided()) << "it belongs to another user";
  fs::remove(own);
  EXPECT_EQ(::chmod(temporary().c_str(), 0777), 0);
  EXPECT_TRUE(is_avoided()) << "others may rename it";
}

}  // namespace
}  // namespace lrun::test
