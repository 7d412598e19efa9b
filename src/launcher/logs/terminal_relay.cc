// In: keys from lrun's terminal, and the output of one program. Out: each passed to the other side. WorkerOutput has
// one where a rank owns the terminal.
#include "logs/terminal_relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/process_stat.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kStep = 4096;
constexpr int kScreenPatienceMs = 200;
constexpr int kUsualColumns = 80;

/// A description of our own: one that does not block, while the shell's stays as it is. Not /dev/tty: the launcher
/// leads a session without one.
Fd open_terminal(int access) {
  Fd terminal(::open("/proc/self/fd/0", access | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!terminal) throw std::system_error(errno, std::generic_category(), "open the terminal of standard input");
  return terminal;
}

/// Every key is passed on as it comes; what lrun itself writes still has its line ends.
termios every_key(termios settings) {
  settings.c_iflag &= ~static_cast<tcflag_t>(IGNBRK | BRKINT | PARMRK | ISTRIP | INLCR | IGNCR | ICRNL | IXON);
  settings.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHONL | ICANON | ISIG | IEXTEN);
  settings.c_cc[VMIN] = 1;
  settings.c_cc[VTIME] = 0;
  return settings;
}

/// Our parent, the guard, is in the shell's session: when lrun uses the shell's terminal from the background, the
/// kernel stops the guard and not us.
bool is_in_foreground() {
  const auto guard = stat_of_process(::getppid());
  return !guard || guard->foreground_group < 0 || guard->group == guard->foreground_group;
}

bool is_only_for_now(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

TerminalRelay::TerminalRelay() : keys_(open_terminal(O_RDONLY)), screen_(open_terminal(O_WRONLY)) {
  winsize size{};
  if (::tcgetattr(keys_.get(), &before_) != 0) throw std::system_error(errno, std::generic_category(), "tcgetattr");
  (void)::ioctl(keys_.get(), TIOCGWINSZ, &size);
  pty_ = make_pty(before_, size);
  to_program_.from = keys_.get();
  to_program_.to = pty_.ours.get();
  to_screen_.from = pty_.ours.get();
  to_screen_.to = screen_.get();
}

TerminalRelay::~TerminalRelay() {
  events_.ended = nullptr;
  end();
}

void TerminalRelay::begin(EventLoop& loop, Events events) {
  events_ = std::move(events);
  pty_.programs.reset();
  loop_ = &loop;
  begun_ = true;
  resume();
  watch(to_screen_);
}

void TerminalRelay::leave_keys() {
  to_program_.readable.cancel();
  to_program_.writable.cancel();
  if (!begun_) return;
  line_.forget();  // the next owner of the terminal writes there
  events_.drawn(line_);
}

void TerminalRelay::release() {
  if (begun_) (void)::tcsetattr(keys_.get(), TCSADRAIN, &before_);
  leave_keys();
}

/// In the background, a stop may have gone unseen: the kernel drops a SIGTSTP that is still unread when SIGCONT comes.
/// The shell has made its own settings since.
void TerminalRelay::resume() {
  if (!begun_) return;
  if (!is_in_foreground()) return leave_keys();
  const termios settings = every_key(before_);
  (void)::tcsetattr(keys_.get(), TCSADRAIN, &settings);
  resize();
  watch(to_program_);
}

void TerminalRelay::resize() {
  winsize size{};
  if (begun_ && ::ioctl(keys_.get(), TIOCGWINSZ, &size) == 0) (void)::ioctl(pty_.ours.get(), TIOCSWINSZ, &size);
}

void TerminalRelay::watch(Direction& direction) {
  if (direction.queue.empty()) {
    direction.writable.cancel();
    direction.readable = loop_->on_readable(direction.from, [&] { read_some(direction); });
  } else {
    direction.readable.cancel();
    direction.writable = loop_->on_writable(direction.to, [&] { write_some(direction); });
  }
}

void TerminalRelay::read_some(Direction& direction) {
  const ssize_t count = ::read(direction.from, direction.queue.room(kStep), kStep);
  if (count < 0 && is_only_for_now(errno)) return;
  if (count <= 0) return end();  // EIO: nobody has the other end of the program's terminal; or lrun's own hung up
  direction.queue.commit(static_cast<std::size_t>(count));
  write_some(direction);
}

void TerminalRelay::write_some(Direction& direction) {
  const std::string_view bytes = direction.queue.front();
  const ssize_t count = ::write(direction.to, bytes.data(), bytes.size());
  if (count < 0 && !is_only_for_now(errno)) return end();
  const bool was_reading = direction.readable.armed();
  if (count > 0) {
    if (&direction == &to_screen_) drew(bytes.substr(0, static_cast<std::size_t>(count)));
    direction.queue.consume(static_cast<std::size_t>(count));
  }
  if (direction.queue.empty() != was_reading) watch(direction);
}

void TerminalRelay::drew(std::string_view bytes) {
  winsize size{};
  const bool known = ::ioctl(screen_.get(), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  line_.take(bytes, known ? size.ws_col : kUsualColumns);
  events_.drawn(line_);
}

void TerminalRelay::finish() {
  events_.ended = nullptr;
  while (begun_) {
    if (to_screen_.queue.empty()) {
      const ssize_t count = ::read(to_screen_.from, to_screen_.queue.room(kStep), kStep);
      if (count <= 0) return end();
      to_screen_.queue.commit(static_cast<std::size_t>(count));
    }
    const std::string_view bytes = to_screen_.queue.front();
    pollfd screen{to_screen_.to, POLLOUT, 0};
    if (::poll(&screen, 1, kScreenPatienceMs) != 1) return end();
    const ssize_t count = ::write(to_screen_.to, bytes.data(), bytes.size());
    if (count <= 0) return end();
    drew(bytes.substr(0, static_cast<std::size_t>(count)));
    to_screen_.queue.consume(static_cast<std::size_t>(count));
  }
}

void TerminalRelay::end() {
  to_screen_.readable.cancel();
  to_screen_.writable.cancel();
  if (!begun_) return;
  OtherProgressLine left = line_;
  release();
  begun_ = false;
  left.leave();
  events_.drawn(left);
  if (const auto ended = std::exchange(events_.ended, nullptr)) ended();
}

}  // namespace lrun::launcher
