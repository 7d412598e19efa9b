#include "rendezvous/port_probe.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include "wire/connect.h"

namespace lrun::launcher {
namespace {

constexpr Duration kPause(20);

}  // namespace

void PortProbe::ask(const std::string& address, std::uint16_t port, Duration patience,
                    std::function<void(bool refused)> done) {
  cancel();
  address_ = address;
  port_ = port;
  done_ = std::move(done);
  limit_ = loop_.after(patience, [this] { answered(false); });
  again_ = loop_.after(Duration::zero(), [this] { connect(); });  // `done` never comes from within ask()
}

void PortProbe::cancel() {
  connected_.cancel();
  limit_.cancel();
  again_.cancel();
  socket_.reset();
}

/// A process that accepts the connection is asked again: it may be about to end.
void PortProbe::connect() {
  connected_.cancel();
  try {
    socket_ = begin_to_connect(address_, port_);
  } catch (const std::system_error&) {
    again_ = loop_.after(kPause, [this] { connect(); });
    return;
  }
  connected_ = loop_.on_writable(socket_.get(), [this] {
    connected_.cancel();
    if (connection_error(socket_.get()) == ECONNREFUSED) return answered(true);
    again_ = loop_.after(kPause, [this] { connect(); });
  });
}

void PortProbe::answered(bool refused) {
  cancel();
  std::exchange(done_, nullptr)(refused);
}

}  // namespace lrun::launcher
