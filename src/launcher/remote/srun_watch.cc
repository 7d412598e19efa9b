#include "remote/srun_watch.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/whole_number.h"
#include "store/listening_socket.h"
#include "wire/connect.h"

namespace lrun::launcher {
namespace {

constexpr Duration kFirstPause(100);  // whatever listens there now may close every connection
constexpr Duration kPause(1000);
constexpr int kMostTries = 30;  // one a second: the network may be out of order for a while

/// So that firewalls do not forget a connection without traffic.
void keep_alive(int fd) {
  constexpr int kSeconds = 60;
  const int on = 1;
  (void)::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kSeconds, sizeof kSeconds);
}

}  // namespace

std::optional<SrunPlace> srun_place(const Environment& environment) {
  const auto port = whole_number<std::uint16_t>(environment.get(kSrunPort).value_or(""));
  std::string address = environment.get("SLURM_SRUN_COMM_HOST").value_or("");
  if (address.empty()) address = environment.get("SLURM_LAUNCH_NODE_IPADDR").value_or("");
  if (!port || *port == 0 || address.empty()) return std::nullopt;
  return SrunPlace{std::move(address), *port};
}

Fd open_socket_for_srun() { return open_listening_socket(StoreReach::kNetwork, 0); }

SrunWatch::SrunWatch(EventLoop& loop, SrunPlace place, std::function<void()> gone)
    : loop_(loop), place_(std::move(place)), gone_(std::move(gone)) {
  connect();
}

void SrunWatch::connect() {
  ++tries_;
  try {
    socket_ = begin_to_connect(place_.address, place_.port);
    watch_ = loop_.on_writable(socket_.get(), [this] { connecting_ended(); });
  } catch (const std::system_error& error) {
    not_connected(error.code().value());
  }
}

void SrunWatch::connecting_ended() {
  const int error = connection_error(socket_.get());
  reached_ = reached_ || error == 0 || error == ECONNRESET;  // a reset proves that there was a connection
  if (error != 0) return not_connected(error);
  tries_ = 0;
  keep_alive(socket_.get());
  watch_ = loop_.on_readable(socket_.get(), [this] { connection_broke(); });
}

/// Not yet a proof: a device between the hosts may have reset it.
void SrunWatch::connection_broke() {
  watch_.cancel();
  socket_.reset();
  next_try_ = loop_.after(kFirstPause, [this] { connect(); });
}

void SrunWatch::not_connected(int error) {
  watch_.cancel();
  socket_.reset();
  if (reached_ && error == ECONNREFUSED) return std::exchange(gone_, [] {})();
  if (reached_ && tries_ < kMostTries) next_try_ = loop_.after(kPause, [this] { connect(); });
}

}  // namespace lrun::launcher
