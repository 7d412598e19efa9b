#include "progress.h"

#include <unistd.h>

#include <algorithm>
#include <array>

namespace fashion_mnist {
namespace {

constexpr int kBarWidth = 30;
constexpr std::chrono::milliseconds kRedrawEvery{100};

template <typename... Arguments>
std::string format(const char* pattern, Arguments... arguments) {
  std::array<char, 160> buffer{};
  std::snprintf(buffer.data(), buffer.size(), pattern, arguments...);
  return buffer.data();
}

}  // namespace

std::string table_header() { return "epoch  train loss  test accuracy  images/s"; }

std::string table_row(const EpochResult& result) {
  return format("%5lld  %10.4f  %11.2f %%  %8.0f", static_cast<long long>(result.epoch), result.loss,
                100 * result.accuracy, result.images_per_s);
}

std::string final_line(double accuracy) { return format("final test accuracy: %.2f %%", 100 * accuracy); }

std::string bar_text(std::int64_t epoch, std::int64_t step, std::int64_t steps, double loss, int width) {
  const double share = steps > 0 ? static_cast<double>(step) / static_cast<double>(steps) : 1;
  const auto full = static_cast<std::size_t>(std::clamp(static_cast<int>(share * width), 0, width));
  std::string bar(full, '=');
  if (full < static_cast<std::size_t>(width)) bar += '>';
  bar.resize(static_cast<std::size_t>(width), ' ');
  return format("epoch %lld [%s] %3.0f %%  loss %.4f", static_cast<long long>(epoch), bar.c_str(), 100 * share, loss);
}

ProgressBar::ProgressBar(std::FILE* stream, bool wanted)
    : stream_(stream), active_(wanted && ::isatty(::fileno(stream)) == 1) {}

void ProgressBar::show(std::int64_t epoch, std::int64_t step, std::int64_t steps, double loss) {
  if (!active_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kRedrawEvery;
  drawn_ = true;
  std::fprintf(stream_, "\r%s", bar_text(epoch, step, steps, loss, kBarWidth).c_str());
  std::fflush(stream_);
}

void ProgressBar::clear() {
  if (!drawn_) return;
  drawn_ = false;
  std::fputs("\r\033[K", stream_);
  std::fflush(stream_);
}

}  // namespace fashion_mnist
