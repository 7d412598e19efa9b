#include "rendezvous/port_probe.h"

#include <cerrno>
#include <utility>

namespace lrun::launcher {
namespace {

constexpr Duration kPause(20);

}  // namespace

void PortProbe::ask(const std::string& address, std::uint16_t port, Duration timeout,
                    std::function<void(bool refused)> done) {
  cancel();
  target_ = {.host = address, .port = port, .limit = timeout};
  done_ = std::move(done);
  limit_ = loop_.after(timeout, [this] { answered(false); });
  again_ = loop_.after(Duration::zero(), [this] { connect(); });  // `done` never comes from within ask()
}

void PortProbe::cancel() {
  connector_.cancel();
  limit_.cancel();
  again_.cancel();
}

/// A process that accepts the connection is asked again: it may be about to end.
void PortProbe::connect() {
  connector_.connect(target_, [this](const SocketConnector::Result& result) {
    if (result.error == ECONNREFUSED) return answered(true);
    again_ = loop_.after(kPause, [this] { connect(); });
  });
}

void PortProbe::answered(bool refused) {
  cancel();
  std::exchange(done_, nullptr)(refused);
}

}  // namespace lrun::launcher
