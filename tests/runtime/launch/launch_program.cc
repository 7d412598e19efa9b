// A user's program that starts its own ranks, for launch_test.cc: public headers only.
//
// usage: launch_program MODE METHOD RANKS
//   train     rank 0 trains with the others; afterwards the program prints its own parameters, as hexadecimal doubles
//   result    prints what the function returned: of rank 0 alone, with a tensor
//   world     every rank prints its world
//   twice     two launches, of which the second goes on with what the first left here
//   again     a launch that fails, and one that does not
//   throw, crash, complain, leave   rank 1 throws, dies of SIGSEGV, aborts with words on stderr, calls exit(0)
//   wait      prints 'waiting' once all ranks are there, each with a process of its own in another session
//   refuse    all ranks ignore SIGTERM
//   stay      as wait; told to end by SIGTERM or SIGHUP, ranks print 'asked' and go on
//   linger    the same, but rank 1 throws
//   shout     all ranks write to stderr without end
//   refused   a launch that is refused before it starts, and one whose ranks tell what the first threw there
//   exit      a static object and a handler of atexit() tell of the end of each process
//   late      handlers of atexit() launch: one in ranks that end, which is no launch any more, one in the program
//   leak      prints what the launch left: descriptors, children
//   nested    the function launches
//   backward, thread, pool   backward(), a thread, LibTorch's pool were used in this process before
// Prints the text of an exception that launch() throws, and ends with 7.
#include <lrun/lrun.h>
#include <signal.h>
#include <sys/wait.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <latch>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>

namespace {

constexpr std::int64_t kGlobalBatch = 12;

struct Net : torch::nn::Module {
  Net() {
    first = register_module("first", torch::nn::Linear(8, 16));
    norm = register_module("norm", torch::nn::BatchNorm1d(16));
    second = register_module("second", torch::nn::Linear(16, 3));
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& input) { return second(norm(at::tanh(first(input)))); }
  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};

/// The part of the whole batch of this step that is this rank's.
std::pair<at::Tensor, at::Tensor> batch_of(int step, const lrun::Session& session) {
  const auto wave = [&](double frequency, std::int64_t columns) {
    return at::sin(at::arange(kGlobalBatch * columns, at::kDouble) * (frequency + 0.01 * step)).view({-1, columns});
  };
  const std::int64_t part = kGlobalBatch / session.world_size();
  return {wave(0.7, 8).narrow(0, session.rank() * part, part), wave(1.3, 3).narrow(0, session.rank() * part, part)};
}

/// \return the last loss.
double train(const std::shared_ptr<Net>& net) {
  lrun::Session session({.timeout = std::chrono::seconds(60), .banner = false});
  auto model = session.wrap(net);
  auto optimizer = session.optimizer<torch::optim::SGD>(model, 0.1);
  at::Tensor loss;
  for (int step = 0; step < 10; ++step) {
    optimizer.zero_grad();
    loss = model.train_step(
        batch_of(step, session),
        [](Net& replica, const std::pair<at::Tensor, at::Tensor>& part) { return replica.forward(part.first); },
        [](const at::Tensor& outputs, const auto& full) { return at::mse_loss(outputs, full.second); });
    optimizer.step();
  }
  return session.all_reduce(loss.item<double>());
}

void print_state(const Net& net) {
  const auto print = [](const std::string& name, const at::Tensor& tensor) {
    std::printf("%s", name.c_str());
    const auto flat = tensor.detach().to(at::kDouble).flatten();
    for (std::int64_t index = 0; index < flat.numel(); ++index) std::printf(" %a", flat[index].item<double>());
    std::printf("\n");
  };
  for (const auto& item : net.named_parameters()) print(item.key(), item.value());
  for (const auto& item : net.named_buffers()) print(item.key(), item.value());
}

std::string rank_or_program() {
  const char* const rank = std::getenv("RANK");
  return rank == nullptr ? "the program" : std::string("rank ") + rank;
}

bool is_rank_one() { return std::string(std::getenv("RANK")) == "1"; }

void write_to_stdout(std::string_view text) {
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) ::_exit(99);
}

[[noreturn]] void wait_for_ever() {
  while (true) ::pause();
}

std::size_t entries_of(const std::string& folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

void backward() { at::ones({1}).requires_grad_().sum().backward(); }

void barrier() { lrun::Session({.timeout = std::chrono::seconds(60), .banner = false}).barrier(); }

class Program {
 public:
  Program(std::string mode, lrun::LaunchOptions options) : mode_(std::move(mode)), options_(std::move(options)) {}

  void run() {
    if (mode_ == "train") return run_train();
    if (mode_ == "result") return run_result();
    if (mode_ == "world") return run_world();
    if (mode_ == "twice") return run_twice();
    if (mode_ == "again") return run_again();
    if (mode_ == "refused") return run_refused();
    if (mode_ == "exit") return run_exit();
    if (mode_ == "late") return run_late();
    if (mode_ == "leak") return run_leak();
    if (mode_ == "backward") backward();
    if (mode_ == "thread") start_thread();
    if (mode_ == "pool") at::ones({1 << 22}).add_(1);
    lrun::launch([this] { misbehave(); }, options_);
    std::printf("went on\n");
  }

 private:
  /// Returns when it runs: below AddressSanitizer a fork that meets a thread's start never allocates again.
  static void start_thread() {
    static std::latch begun(1);
    std::thread([] {
      begun.count_down();
      wait_for_ever();
    }).detach();
    begun.wait();
  }

  void run_train() {
    torch::manual_seed(7);
    const auto net = std::make_shared<Net>();
    options_.module = net;
    const double loss = lrun::launch([&] { return train(net); }, options_);
    if (const char* const rank = std::getenv("RANK"); rank != nullptr && std::string(rank) != "0") return;
    std::printf("loss %a\n", loss);
    print_state(*net);
    std::printf("training %d\n", net->first->weight.grad().defined() ? 1 : 0);
  }

  void run_result() {
    using Result = std::tuple<double, std::string, at::Tensor>;
    const auto [number, text, tensor] = lrun::launch(
        [] {
          const int rank = std::atoi(std::getenv("RANK"));
          return Result(40.5 + rank, "rank " + std::to_string(rank), at::arange(3, at::kFloat));
        },
        options_);
    std::printf("%g %s %g\n", number, text.c_str(), tensor.sum().item<double>());
  }

  void run_world() {
    std::printf("before\n");
    lrun::launch(
        [] {
          const lrun::World world = lrun::World::from_environment();
          const char* const threads = std::getenv("OMP_NUM_THREADS");
          std::printf(
              "rank %d of %d, local %d of %d, node %d of %d, strategy %s, device %s, seed %d, threads %s, call %d\n",
              world.rank, world.world_size, world.local_rank, world.local_world_size, world.node_rank, world.nodes,
              world.strategy.c_str(), world.devices.at(0).c_str(), static_cast<int>(world.seed.value_or(0)),
              threads == nullptr ? "none" : threads, std::getenv("LRUN_LAUNCH_CALL") == nullptr ? 0 : 1);
          barrier();
        },
        options_);
    std::printf("after\n");
  }

  void run_twice() {
    const auto net = std::make_shared<torch::nn::LinearImpl>(1, 1);
    options_.module = net;
    const auto add = [&](double amount) {
      return lrun::launch(
          [&, amount] {
            barrier();
            at::NoGradGuard no_grad;
            net->weight.fill_(amount + (net->weight.item<double>() >= 10 ? net->weight.item<double>() : 0));
            return net->weight.item<double>();
          },
          options_);
    };
    const double first = add(10);
    const double second = add(first);
    std::printf("%g %g %g\n", first, second, net->weight.item<double>());
  }

  void run_again() {
    try {
      lrun::launch([] { throw std::runtime_error("not this time"); }, options_);
    } catch (const lrun::WorkersFailed& error) {
      std::printf("rank %d failed with %d\n", error.rank(), error.exit_code());
      const std::string text = lrun::launch([] { return std::string("this time"); }, options_);
      std::printf("%s\n", text.c_str());
    }
  }

  void run_refused() {
    std::string thrown;
    try {
      lrun::LaunchOptions impossible = options_;
      impossible.timeout = std::chrono::milliseconds(-1);
      lrun::launch([] {}, impossible);
    } catch (const std::invalid_argument& error) {
      thrown = error.what();
    } catch (const std::exception& error) {
      thrown = std::string("another class: ") + error.what();
    }
    const std::string in_rank = lrun::launch([&] { return thrown; }, options_);
    std::printf("%s\n%s\n", thrown.c_str(), in_rank.c_str());
  }

  void run_exit() {
    static const struct Static {
      ~Static() { write_to_stdout("static of " + rank_or_program() + "\n"); }
    } object;
    std::atexit([] { write_to_stdout("handler of " + rank_or_program() + "\n"); });
    lrun::launch([] { barrier(); }, options_);
  }

  void run_late() {
    static lrun::LaunchOptions& options = *new lrun::LaunchOptions(options_);
    std::atexit([] {
      if (std::getenv("RANK") != nullptr) lrun::launch([] { write_to_stdout("in a rank that ends\n"); }, options);
    });
    lrun::launch([] {}, options);  // first: what LibTorch needs is then destroyed after the next handler
    std::atexit([] { write_to_stdout("late " + lrun::launch([] { return rank_or_program(); }, options) + "\n"); });
  }

  void run_leak() {
    lrun::launch(barrier, options_);  // what it returned stays in an open file
    const std::size_t before = entries_of("/proc/self/fd");
    lrun::launch(barrier, options_);
    std::printf("%d descriptors more, %s\n", static_cast<int>(entries_of("/proc/self/fd") - before),
                ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD ? "no child" : "a child");
  }

  /// The function of the other modes.
  void misbehave() const {
    if (mode_ == "refuse") ::signal(SIGTERM, SIG_IGN);
    if (mode_ == "stay" || mode_ == "linger") {
      for (const int number : {SIGTERM, SIGHUP}) ::signal(number, [](int) { write_to_stdout("asked\n"); });
    }
    barrier();
    if (mode_ == "nested") lrun::launch([] {}, options_);
    if (mode_ == "wait" || mode_ == "stay") wait_with_orphan();
    if (mode_ == "shout") shout();
    if (mode_ == "backward") return backward();
    if (mode_ == "thread" || mode_ == "pool") return;
    if (!is_rank_one()) wait_for_ever();
    if (mode_ == "throw" || mode_ == "refuse" || mode_ == "linger") throw std::runtime_error("no data on this rank");
    if (mode_ == "crash") {
      ::signal(SIGSEGV, SIG_DFL);  // a sanitizer would end the process with a code of its own
      ::raise(SIGSEGV);
    }
    if (mode_ == "leave") std::exit(0);
    if (mode_ == "complain") {
      std::cerr << "first line\nterminate called after throwing an instance of 'Own'\n  what():  cannot go on\n";
      std::abort();
    }
  }

  [[noreturn]] static void shout() {
    const std::string line(1000, '!');
    while (true) std::cerr << line << std::endl;
  }

  static void wait_with_orphan() {
    if (::fork() == 0) {
      ::setsid();
      if (::fork() == 0) wait_for_ever();
      ::_exit(0);
    }
    barrier();
    if (!is_rank_one()) std::printf("waiting\n");
    std::fflush(stdout);
    wait_for_ever();
  }

  std::string mode_;
  lrun::LaunchOptions options_;
};

}  // namespace

int main(int count, char** arguments) {
  lrun::LaunchOptions options;
  if (count > 2 && std::string(arguments[2]) != "default") options.strategy = arguments[2];
  if (count > 3) options.devices = std::stoi(arguments[3]);
  if (const char* const text = std::getenv("TEST_TIMEOUT_MS"))
    options.timeout = std::chrono::milliseconds(std::stoi(text));
  if (const char* const text = std::getenv("TEST_GRACE_MS")) options.grace = std::chrono::milliseconds(std::stoi(text));
  try {
    Program(arguments[1], options).run();
  } catch (const lrun::Error& error) {
    std::printf("%s\n", error.what());
    return 7;
  }
}
