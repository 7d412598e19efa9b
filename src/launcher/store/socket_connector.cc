#include "store/socket_connector.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "wire/connect.h"

namespace lrun::launcher {

void SocketConnector::connect(Target target, std::function<void(Result)> done) {
  cancel();
  target_ = std::move(target);
  done_ = std::move(done);
  if (const std::string known = known_address(target_.host); !known.empty()) return connect_to(known);
  // The name service may take seconds: whatever else this launcher does goes on.
  resolving_.emplace(
      loop_, [this] { return target_.find_address(target_.host); }, kNameServiceLimit,
      [this](const ChildAnswer& answer) {
        const bool is_answered = answer.end == ChildAnswer::End::kAnswered;
        const bool is_unknown = is_answered && answer.text.empty();
        unknown_since_ = is_unknown ? std::optional(unknown_since_.value_or(steady_now())) : std::nullopt;
        if (is_answered && !is_unknown) return connect_to(answer.text);
        finish(
            {.is_unknown = is_unknown,
             .trouble = is_unknown ? no_such_host(target_.host) : "no address of '" + target_.host + "' can be found"});
      });
}

void SocketConnector::cancel() {
  resolving_.reset();
  writable_.cancel();  // before the descriptor may get another owner
  timer_.cancel();
  socket_.reset();
}

void SocketConnector::connect_to(const std::string& address) {
  address_ = address;
  try {
    socket_ = begin_to_connect(address, target_.port);
  } catch (const std::system_error& error) {
    // Later, as every other result: the caller has not finished its call.
    timer_ = loop_.after(Duration::zero(),
                         [this, why = std::string(error.what())] { finish({.address = address_, .trouble = why}); });
    return;
  }
  writable_ = loop_.on_writable(socket_.get(), [this] {
    const int error = connection_error(socket_.get());
    std::string why;
    if (error != 0) why = "cannot connect to " + place() + ": " + std::generic_category().message(error);
    finish({.socket = error == 0 ? std::exchange(socket_, Fd()) : Fd(),
            .address = address_,
            .error = error,
            .trouble = std::move(why)});
  });
  const Duration left = std::max(std::chrono::ceil<Duration>(target_.give_up - steady_now()), Duration(1));
  timer_ = loop_.after(std::min(target_.limit, left), [this] {
    finish({.address = address_, .error = ETIMEDOUT, .trouble = "no answer from " + place()});
  });
}

void SocketConnector::finish(Result result) {
  cancel();
  std::exchange(done_, nullptr)(std::move(result));
}

}  // namespace lrun::launcher
