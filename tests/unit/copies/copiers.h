#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "copies/copier.h"
#include "store/listening_socket.h"
#include "store/send_buffer.h"
#include "support/log_test_support.h"
#include "support/patience.h"
#include "support/temporary_folder.h"
#include "wire/connect.h"

namespace lrun::test {
using namespace launcher;
namespace fs = std::filesystem;

/// Content by path.
using Copies = std::map<std::string, std::string>;

inline std::string random_bytes(std::size_t count) {
  std::mt19937_64 random(count);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

inline Fd connected_to(int port) {
  Fd socket = connect_to("127.0.0.1", static_cast<std::uint16_t>(port), soon());
  set_nonblocking(socket.get());
  return socket;
}

/// Runs the loop until the condition holds.
inline void wait_until(EventLoop& loop, const std::function<bool()>& is_so) {
  constexpr Duration kLook(5);
  bool is_late = false;
  const EventLoop::Timer limit = loop.after(kPatience, [&] { is_late = true; });
  while (!is_so() && !is_late) {
    const EventLoop::Timer look = loop.after(kLook, [&] { loop.stop(); });
    loop.run();
  }
  EXPECT_FALSE(is_late) << "nothing happened for " << format_duration(kPatience);
}

inline Copies files_below(const fs::path& folder) {
  Copies files;
  std::error_code gone;  // they may go meanwhile
  for (fs::recursive_directory_iterator entry(folder, gone), end; entry != end; entry.increment(gone)) {
    if (entry->is_regular_file(gone)) {
      files[entry->path().lexically_relative(folder)] = content_of(entry->path());
    }
  }
  return files;
}

/// A node of a job: its folder in memory, and its copier.
class CopyingNode {
 public:
  struct Options {
    std::optional<std::uint64_t> most_bytes = std::uint64_t{1} << 30U;
    std::string secret = {};
  };

  CopyingNode(EventLoop& loop, const std::string& token, const Options& options) : loop_(loop), token_(token) {
    fs::create_directory(folder());
    copier.emplace(CopierProcess::Facts{.outer = outer_.path(),
                                        .folder = folder(),
                                        .most_bytes = options.most_bytes,
                                        .token = token,
                                        .secret = options.secret,
                                        .reach = StoreReach::kLoopback,
                                        .address = "127.0.0.1",
                                        .of = "a test"});
    begin_again();
  }
  CopyingNode(const CopyingNode&) = delete;
  CopyingNode& operator=(const CopyingNode&) = delete;

  [[nodiscard]] const fs::path& outer() const { return outer_.path(); }
  [[nodiscard]] fs::path folder() const { return outer_ / "files"; }
  [[nodiscard]] fs::path place(const std::string& name) const { return folder() / name; }
  [[nodiscard]] int port() const { return copier->port(); }

  void save(const std::string& name, const std::string& text) const {
    fs::create_directories(place(name).parent_path());
    std::ofstream(place(name), std::ios::binary) << text;
  }
  [[nodiscard]] Copies files() const { return files_below(folder()); }
  /// Of all that is in its outer folder.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(outer())) names.push_back(entry.path().filename());
    return names;
  }
  /// Where it keeps other nodes' files, without those that come.
  [[nodiscard]] std::vector<fs::path> copy_folders() const {
    std::vector<fs::path> folders;
    for (const std::string& name : names()) {
      if (name.starts_with("copies-") && !name.ends_with(".new")) folders.push_back(outer() / name);
    }
    return folders;
  }
  [[nodiscard]] Copies copies() const {
    Copies all;
    for (const fs::path& folder : copy_folders()) all.merge(files_below(folder));
    return all;
  }

  /// This node's files are copied to the neighbour, and it knows that it is the neighbour.
  void copies_to(const CopyingNode& neighbour, int node_rank = 0) const {
    copies_to(neighbour.port(), neighbour.copier->key());
    neighbour.keeps_for({{token_, node_rank}});
  }
  void copies_to(int port, const std::string& key) const {
    copier->tell({.self = {.neighbour = "127.0.0.1", .neighbour_port = port, .neighbour_key = key}});
  }
  void keeps_for(const std::vector<FileOwner>& owners) const { copier->tell({.self = {.keeps_for = owners}}); }

  void end() {
    news_.cancel();  // before its descriptor is another's
    copier.reset();
  }
  void begin_again() {
    has_ended = false;
    keeps.clear();
    copier->start();
    news_ = loop_.on_readable(copier->channel(), [this] { read(); });
  }

  std::optional<CopierProcess> copier;
  std::vector<FileOwner> keeps;
  std::vector<FetchedFiles> fetched;
  std::vector<std::string> refusals;
  bool has_ended = false;

 private:
  void read() {
    const std::optional<CopierNews> news = copier->next_news(has_ended);
    if (has_ended) return news_.cancel();
    if (!news) return;
    if (news->keeps) keeps = *news->keeps;
    if (news->fetched) fetched = *news->fetched;
    if (!news->refusal.empty()) refusals.push_back(news->refusal);
  }

  EventLoop& loop_;
  std::string token_;
  TemporaryFolder outer_;
  EventLoop::Watch news_;
};

/// Passes bytes on between clients and a port, and ends connections when a test says so.
class Relay {
 public:
  Relay(EventLoop& loop, int target)
      : loop_(loop), target_(target), listener_(open_listening_socket(StoreReach::kLoopback, 0)) {
    acceptable_ = loop_.on_readable(listener_.get(), [this] { accept(); });
  }

  [[nodiscard]] int port() const { return port_of_socket(listener_.get()); }
  /// Connections so far.
  [[nodiscard]] int accepted() const { return accepted_; }
  [[nodiscard]] int ended() const { return ended_; }
  void drop_all() { pairs_.clear(); }
  /// The next connection ends when more than so many bytes have passed.
  void drop_behind(std::size_t bytes) { left_ = bytes; }

 private:
  struct End {
    Fd socket;
    SendBuffer out;
    EventLoop::Watch readable;
    EventLoop::Watch writable;
  };
  struct Pair {
    End ends[2];
  };

  void accept() {
    Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!client) return;
    const int id = ++accepted_;
    Pair& pair = pairs_[id];
    pair.ends[0].socket = std::move(client);
    pair.ends[1].socket = connected_to(target_);
    for (const int side : {0, 1}) {
      pair.ends[side].readable = loop_.on_readable(pair.ends[side].socket.get(), [this, id, side] { pass(id, side); });
    }
  }
  void pass(int id, int side) {
    End& from = pairs_.at(id).ends[side];
    char bytes[65536];
    const ssize_t count = ::recv(from.socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) return;
    if (count > 0) pairs_.at(id).ends[1 - side].out.tail().append(bytes, static_cast<std::size_t>(count));
    if (count <= 0) return end(id);
    if (left_) {
      if (static_cast<std::size_t>(count) > *left_) {
        left_.reset();
        return end(id);
      }
      *left_ -= static_cast<std::size_t>(count);
    }
    flush(id, 1 - side);
  }
  void flush(int id, int side) {
    End& to = pairs_.at(id).ends[side];
    if (!to.out.send_to(to.socket.get())) return end(id);
    if (to.out.empty()) return to.writable.cancel();
    to.writable = loop_.on_writable(to.socket.get(), [this, id, side] { flush(id, side); });
  }
  void end(int id) {
    ++ended_;
    pairs_.erase(id);
  }

  EventLoop& loop_;
  int target_;
  Fd listener_;
  std::map<int, Pair> pairs_;
  std::optional<std::size_t> left_;
  int accepted_ = 0;
  int ended_ = 0;
  EventLoop::Watch acceptable_;
};

}  // namespace lrun::test
