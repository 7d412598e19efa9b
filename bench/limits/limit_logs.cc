// The least that forwarding output takes: limit_logs [-w WRITERS] [-b MIB] [-l LINE] [-c CHUNK] [-k RUNS] [-o FILE]
//   [-m prefix|direct]  one thread puts '[rankN]: ' before each line and writes all to FILE; or each writer writes to a
//                       file of its own, FILE.N, and nobody reads
// The writers write MIB MiB in all, lines of LINE bytes, CHUNK bytes a write. Prints megabytes of input a second, and
// the processor time of the thread for a gigabyte.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "figures.h"
#include "lines.h"

namespace {

constexpr std::size_t kReadBytes = 256 << 10;
constexpr std::size_t kWriteBytes = 1 << 20;

struct Options {
  int writers = 8;
  std::size_t mebibytes = 256;
  std::size_t line = 100;
  std::size_t chunk = 4096;
  int runs = 7;
  std::string file = "/dev/shm/limit_logs";
  bool direct = false;

  [[nodiscard]] std::size_t bytes_of_writer() const {
    return (mebibytes << 20U) / static_cast<std::size_t>(writers) / line * line;
  }
};

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::_Exit(1);
}

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int open_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) give_up(path.c_str());
  return fd;
}

/// A stream of one writer, whose last line may not be whole yet.
struct Stream {
  int fd = -1;
  std::string prefix;
  std::string begun;
};

/// Lines with their prefixes, on their way to a file.
class Output {
 public:
  explicit Output(int fd) : fd_(fd), bytes_(kWriteBytes + 4 * kReadBytes) {}

  /// \param size  at most kReadBytes.
  void add_lines(Stream& stream, const char* data, std::size_t size) {
    const char* const end = data + size;
    while (const void* newline = data < end ? std::memchr(data, '\n', static_cast<std::size_t>(end - data)) : nullptr) {
      const char* const next = static_cast<const char*>(newline) + 1;
      add(stream.prefix.data(), stream.prefix.size());
      if (!stream.begun.empty()) add(stream.begun.data(), stream.begun.size());
      stream.begun.clear();
      add(data, static_cast<std::size_t>(next - data));
      data = next;
    }
    stream.begun.append(data, end);
    if (size_ >= kWriteBytes) write();
  }

  void write() {
    if (!write_all(fd_, bytes_.data(), size_)) give_up("write");
    size_ = 0;
  }

 private:
  void add(const char* data, std::size_t size) {
    if (bytes_.size() < size_ + size) bytes_.resize(2 * (size_ + size));  // short lines with long prefixes
    std::memcpy(bytes_.data() + size_, data, size);
    size_ += size;
  }

  int fd_;
  std::vector<char> bytes_;
  std::size_t size_ = 0;
};

/// Until all streams have ended.
void forward(std::vector<Stream>& streams, int file) {
  const int events = ::epoll_create1(EPOLL_CLOEXEC);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    ::epoll_ctl(events, EPOLL_CTL_ADD, streams[i].fd, &event);
  }
  Output output(file);
  std::vector<char> buffer(kReadBytes);
  std::array<epoll_event, 64> ready;
  for (std::size_t open = streams.size(); open > 0;) {
    const int count = ::epoll_wait(events, ready.data(), static_cast<int>(ready.size()), -1);
    for (int i = 0; i < count; ++i) {
      Stream& stream = streams[ready[static_cast<std::size_t>(i)].data.u64];
      const ssize_t size = ::read(stream.fd, buffer.data(), buffer.size());
      if (size > 0) {
        output.add_lines(stream, buffer.data(), static_cast<std::size_t>(size));
      } else {
        ::epoll_ctl(events, EPOLL_CTL_DEL, stream.fd, nullptr);
        --open;
      }
    }
    output.write();
  }
  ::close(events);
}

/// A child that writes its lines once the pipe `start` has no writer any more.
pid_t start_writer(const Options& options, int output, const std::array<int, 2>& start) {
  const pid_t pid = ::fork();
  if (pid < 0) give_up("fork");
  if (pid > 0) return pid;
  ::close(start[1]);
  char nothing = 0;
  if (::read(start[0], &nothing, 1) != 0) ::_exit(1);
  ::_exit(write_lines(output, options.bytes_of_writer(), options.line, options.chunk) ? 0 : 1);
}

struct Figures {
  double seconds = 0;
  double processor_seconds = 0;
};

/// The writers, and where their output is read.
struct Writers {
  std::vector<pid_t> processes;
  std::vector<Stream> streams;  ///< None where they write to files.
  std::array<int, 2> start{-1, -1};

  explicit Writers(const Options& options) {
    if (::pipe2(start.data(), O_CLOEXEC) != 0) give_up("pipe2");
    for (int i = 0; i < options.writers; ++i) {
      std::array<int, 2> ends{-1, -1};
      if (options.direct) {
        ends[1] = open_file(options.file + "." + std::to_string(i));
      } else if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        give_up("pipe2");
      }
      processes.push_back(start_writer(options, ends[1], start));
      ::close(ends[1]);
      if (!options.direct) streams.push_back({ends[0], "[rank" + std::to_string(i) + "]: ", {}});
    }
  }

  void wait() const {
    for (const pid_t process : processes) {
      int status = 0;
      if (::waitpid(process, &status, 0) != process || status != 0) give_up("a writer");
    }
    for (const Stream& stream : streams) ::close(stream.fd);
    ::close(start[0]);
  }
};

Figures one_run(const Options& options) {
  Writers writers(options);
  const int file = options.direct ? -1 : open_file(options.file);
  const double begin = seconds_now();
  const double used = processor_seconds();
  ::close(writers.start[1]);
  if (!options.direct) forward(writers.streams, file);
  writers.wait();
  if (file >= 0) ::close(file);
  return {seconds_now() - begin, processor_seconds() - used};
}

Options read_options(int argc, char** argv) {
  Options options;
  for (int option = 0; (option = ::getopt(argc, argv, "w:b:l:c:k:o:m:")) != -1;) {
    if (option == '?') std::_Exit(2);
    if (option == 'o') options.file = optarg;
    if (option == 'm') options.direct = std::strcmp(optarg, "direct") == 0;
    const int number = std::max(1, std::atoi(optarg));
    if (option == 'w') options.writers = number;
    if (option == 'b') options.mebibytes = static_cast<std::size_t>(number);
    if (option == 'l') options.line = static_cast<std::size_t>(number);
    if (option == 'c') options.chunk = static_cast<std::size_t>(number);
    if (option == 'k') options.runs = number;
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  const double bytes = static_cast<double>(options.bytes_of_writer()) * options.writers;
  std::vector<double> speeds;
  std::vector<double> costs;
  one_run(options);  // files and memory are there afterwards
  for (int run = 0; run < options.runs; ++run) {
    const Figures figures = one_run(options);
    speeds.push_back(bytes / 1e6 / figures.seconds);
    costs.push_back(figures.processor_seconds / (bytes / 1e9));
  }
  std::printf("limit %-6s writers=%d line=%zu chunk=%-5zu MB/s med=%.0f (min %.0f max %.0f)  processor s/GB=%.2f\n",
              options.direct ? "direct" : "prefix", options.writers, options.line, options.chunk, median(speeds),
              *std::min_element(speeds.begin(), speeds.end()), *std::max_element(speeds.begin(), speeds.end()),
              median(costs));
}
