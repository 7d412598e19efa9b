// In: the plan of a node, its secrets from the environment, and a Job. Out: the membership of the job's first round, or
// why there is none.
#include "run/join_job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/child_query.h"
#include "base/clock.h"
#include "base/nearest.h"
#include "base/numeric_address.h"
#include "base/sha256.h"
#include "base/shortened.h"
#include "base/user_error.h"
#include "cluster/own_names.h"
#include "inspect/run_status.h"
#include "rendezvous/admission.h"
#include "rendezvous/handshake.h"
#include "run/end_signals.h"
#include "run/repeat_filter.h"
#include "run/run_folders.h"
#include "store/host_address.h"
#include "store/socket_connector.h"
#include "wire/connect.h"

namespace lrun::launcher {
namespace {

/// The leader gives up by its own clock; the others wait a little longer for its message.
constexpr Duration kLateness(2000);
constexpr Duration kUnreachedPause(5000);
constexpr Duration kUnreachedPauseOfMany(60'000);
constexpr Duration kAnswerPause(500);
constexpr Duration kConnectPause(100);
/// How long the leader stays for other nodes, beyond the grace period of their workers.
constexpr Duration kLeaveLimit(15'000);
constexpr Duration kQuietLeave(1000);
constexpr const char* kJobSecret = "LRUN_JOB_SECRET";
constexpr const char* kEtcdUser = "LRUN_ETCD_USER";
constexpr const char* kOutcomeToken = "LRUN_OUTCOME_TOKEN";
constexpr std::size_t kMostProgramBytes = 200;

std::string name_with_address(const std::string& host, const std::string& address) {
  return "'" + host + "'" + (host == address ? "" : " (" + address + ")");
}

/// One wait for the job to begin.
class RendezvousWait : public JobEvents {
 public:
  RendezvousWait(EventLoop& loop, Job& job, const LaunchPlan& plan, const Guard& guard, const Environment& environment,
                 const LauncherOutput& output)
      : loop_(loop), job_(job), plan_(plan), guard_(guard), environment_(environment), output_(output) {}

  /// \param notice  nullptr: nobody looks for one
  RendezvousOutcome run(NoticeMonitor* notice) {
    job_.set_events(*this);
    const EndSignals signals(loop_, plan_, guard_, [this](int number) {
      end({.why_not = number == 0 ? "" : waited_for(), .signal_number = number});
    });
    if (notice != nullptr) {
      notice->tell(output_.sink, [this](const std::string& text) {
        end({.why_not = waited_for(), .signal_number = SIGTERM, .notice = text});
      });
    }
    limit_at_ = steady_now() + plan_.rendezvous->join_timeout;
    limit_ = loop_.after(plan_.rendezvous->join_timeout + kLateness, [this] {
      end({.why_not = fmt::format("not enough nodes in {}", format_duration(plan_.rendezvous->join_timeout))});
    });
    watch_for_rendezvous(unreached_pause());
    show_ = loop_.after(kUnseenWait, [this] { show_wait(); });
    if (!ended_) loop_.run();
    if (notice != nullptr) notice->tell(output_.sink, {});
    end_.tells = speaks_for_node(plan_) || is_next();
    if (!end_.membership && !end_.not_needed && tells_later()) end_.record = std::move(record_);
    return std::move(end_);
  }

  void waiting(const std::string& text) override {
    last_told_ = text;
    if (!speaks_for_job(plan_) || !told_.is_worth_a_line(text)) return;
    output_.sink.note(fmt::format("{}{}: {}{}", waits_for_others(), may_be_known() ? " at " + text_of(endpoint()) : "",
                                  text, time_left()));
    if (plan_.rendezvous->may_be_elsewhere && !own_place_) look_for_own_place();
    hint_at_loopback();
  }
  /// The job runs without this node, which waits as long as the job runs.
  void spare(const std::string& text) override {
    limit_.cancel();
    const bool is_known = std::exchange(waits_, true) && is_spare();  // it follows its job to another rendezvous
    if (is_known) return;
    output_.sink.note(is_spare() ? fmt::format("node {} is a spare: it waits until another one is lost", name())
                                 : text);
  }
  void begun(const Membership& membership) override {
    if (is_spare()) {
      output_.sink.note(fmt::format("node {} was a spare, and takes part now: node rank {} of {}", name(),
                                    membership.self.node_rank, membership.num_nodes));
    }
    end({.membership = membership});
  }
  void failed(const std::string& why, const std::string& hint) override {
    end({.why_not = why, .hint = hint, .not_needed = is_spare()});
  }
  void lost(const std::string& /*node*/, const std::string& how, std::int64_t /*heard_ns*/,
            const std::string& /*spare*/) override {
    end({.why_not = how});
  }
  void over(const std::string& report) override { end({.report = report}); }
  void ended(const std::string& why, bool /*by_leader*/) override { end({.why_not = why, .not_needed = true}); }
  void rejected(const std::string& line) override { output_.sink.warn(line); }
  void redirected(const std::string& text) override { output_.sink.note(text); }

 private:
  [[nodiscard]] int port() const { return plan_.rendezvous->port; }
  [[nodiscard]] Endpoint endpoint() const { return {plan_.rendezvous->host, port()}; }
  /// A person may know the endpoint: neither a head has chosen it, nor a tool that starts a launcher for each rank.
  [[nodiscard]] bool may_be_known() const {
    return plan_.rendezvous->listener < 0 && !plan_.rendezvous->of_ranks && output_.head == nullptr;
  }
  [[nodiscard]] std::string waits_for_others() const {
    return "waiting for other " + unit_of(plan_.rendezvous->of_ranks, 2);
  }

  /// Prints from time to time that the rendezvous was not reached, if the reason has changed.
  void watch_for_rendezvous(Duration pause) {
    unreached_ = loop_.after(pause, [this] {
      // Slowness is no news before an attempt has failed.
      const bool may_answer = plan_.rendezvous->etcd.empty() && job_.last_error().empty();
      watch_for_rendezvous(may_answer ? kAnswerPause : unreached_pause());
      if (may_answer || job_.joined() || !(speaks_for_node(plan_) || is_next())) return;
      if (told_trouble_ && *told_trouble_ == job_.last_error()) return;
      told_trouble_ = job_.last_error();
      const std::string why = told_trouble_->empty() ? "" : ": " + *told_trouble_;
      const bool etcd = !plan_.rendezvous->etcd.empty();
      const std::string place = fmt::format("{} port {}", plan_.rendezvous->host, port());
      output_.sink.note(fmt::format("{}: {} yet{}; waiting up to {}", waits_for_others(),
                                    etcd ? fmt::format("no rendezvous was reached through etcd at {}", place)
                                         : fmt::format("nobody serves the rendezvous at {}", place),
                                    why, format_duration(job_.connect_timeout())));
      if (plan_.rendezvous->leaves_endpoint) output_.sink.hint(kServeEndpointHint);
      if (output_.head != nullptr) output_.sink.hint(kOtherPlaceHint);
      hint_at_endpoint();
    });
  }

  /// The place was typed on each node, and nothing but the user's eye can compare them.
  void hint_at_endpoint() {
    const RendezvousPlan& rendezvous = *plan_.rendezvous;
    const bool is_typed = may_be_known() && rendezvous.etcd.empty() && rendezvous.host_from.starts_with('-');
    if (!is_typed || rendezvous.leaves_endpoint || std::exchange(told_endpoint_, true)) return;
    if (job_.last_error() == no_such_host(rendezvous.host)) {
      return output_.sink.hint(fmt::format("check the name '{}' in '{}'", rendezvous.host, rendezvous.host_from));
    }
    const bool is_later_rank = rendezvous.node_rank.value_or(0) > 0;
    output_.sink.hint(fmt::format("is lrun started on '{}', with {}the same '{}' (port {})?", rendezvous.host,
                                  is_later_rank ? fmt::format("'{} 0' and ", rendezvous.node_rank_from) : "",
                                  rendezvous.host_from, port()));
  }

  /// Nodes on this host find each other at its loopback address, and no others do.
  void hint_at_loopback() {
    const RendezvousPlan& rendezvous = *plan_.rendezvous;
    if (!may_be_known() || loopback_address_of(rendezvous.host).empty() || std::exchange(told_loopback_, true)) return;
    output_.sink.hint(
        fmt::format("start the others with the same '{}'; other hosts do not reach '{}': name this one there",
                    rendezvous.host_from, rendezvous.host));
  }

  /// Others go where the name leads, and wait there as this node does here.
  void look_for_own_place() {
    const std::string& host = plan_.rendezvous->host;
    own_place_.emplace(
        loop_, [host] { return ask_for_address(host); }, kNameServiceLimit,
        [this](const ChildAnswer& answer) {
          if (answer.end == ChildAnswer::End::kAnswered) doubt_place(answer.text);
        });
  }

  /// \param address  of the rendezvous; empty: there is no such host. Behind NAT another one than ours may be right.
  void doubt_place(const std::string& address) {
    const RendezvousPlan& rendezvous = *plan_.rendezvous;
    if (address.empty()) {
      output_.sink.warn(
          fmt::format("node rank 0 hosts the rendezvous, and no host '{}' is known here: the others may not "
                      "find it",
                      rendezvous.host));
      output_.sink.hint(fmt::format("name this host in '{}' as the others reach it", rendezvous.host_from));
    } else if (interface_of(address).empty()) {
      output_.sink.warn(
          fmt::format("node rank 0 hosts the rendezvous, and {} is no address of this host: others reach "
                      "it there only if something forwards them",
                      name_with_address(rendezvous.host, address)));
      output_.sink.hint(fmt::format("if '{}' is another node, this one needs another '{}'", rendezvous.host,
                                    rendezvous.node_rank_from));
    }
  }

  /// A leader that is late is late for all: the next node tells that soon, where people read them in one place.
  [[nodiscard]] Duration unreached_pause() const {
    const bool is_one_of_many = plan_.rendezvous->shares_screen && plan_.rendezvous->node_rank.value_or(0) > 1;
    return is_one_of_many ? kUnreachedPauseOfMany : kUnreachedPause;
  }

  /// It speaks where the first one was never reached: mpirun may have started another program there.
  [[nodiscard]] bool is_next() const { return !job_.joined() && plan_.rendezvous->node_rank.value_or(0) <= 1; }
  [[nodiscard]] bool tells_later() const { return speaks_for_job(plan_) || is_next(); }

  void show_wait() {
    try {
      record_ = std::make_unique<WaitingRecord>(
          loop_, folder_of_run(plan_, environment_), part_of(plan_), names_of_run(plan_, environment_), began_,
          [this](std::string_view /*command*/, const ControlSocket::Reply& reply) { reply(to_json(status())); });
    } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): RunRecord warns of it when the job begins
    }
  }

  [[nodiscard]] RunStatus status() const {
    const RendezvousPlan& rendezvous = *plan_.rendezvous;
    return {
        .run_id = plan_.run_id,
        .host = name(),
        .pid = guard_.pid(),
        .started_ms = started_ms_,
        .running_ms = std::chrono::ceil<Duration>(std::chrono::steady_clock::now() - began_).count(),
        .argv = plan_.argv,
        .strategy = text_of(plan_.strategy.value),
        .world_size = plan_.world_size,
        .phase = "waiting",
        .meets_at = fmt::format("{}{} port {}", rendezvous.etcd.empty() ? "" : "etcd ", rendezvous.host, port()),
        .waits_for = waited_for(),
        .gives_up_in_ms = limit_.armed() ? std::max<std::int64_t>(0, (limit_at_ - steady_now()) / Duration(1)) : -1};
  }

  /// '; for 9m50s more'. Empty where the wait has no end.
  [[nodiscard]] std::string time_left() const {
    if (!limit_.armed()) return {};
    const Duration left = std::max(Duration::zero(), std::chrono::ceil<Duration>(limit_at_ - steady_now()));
    return fmt::format("; for {} more", format_elapsed(left));
  }

  /// As far as this launcher knows: the leader tells at intervals which launchers are there.
  [[nodiscard]] std::string waited_for() const {
    const RendezvousPlan& rendezvous = *plan_.rendezvous;
    if (waits_) return "a place in the job";
    if (std::string seen = job_.who_is_there(); !seen.empty()) return seen;
    if (job_.joined() && !last_told_.empty()) return last_told_;
    const std::string here =
        job_.joined() ? "this one has joined" : fmt::format("{} port {} was not reached", rendezvous.host, port());
    return fmt::format("{}; the job needs {} {}", here, nodes_text(rendezvous.min_nodes, rendezvous.max_nodes),
                       unit_of(rendezvous.of_ranks, 2));
  }

  /// This node waits for a place, and the plan asks for spares.
  [[nodiscard]] bool is_spare() const { return waits_ && plan_.rendezvous->spares > 0; }
  [[nodiscard]] const std::string& name() const { return plan_.nodes.front().name; }

  void end(RendezvousOutcome what) {
    if (std::exchange(ended_, true)) return;
    end_ = std::move(what);
    loop_.stop();
  }

  EventLoop& loop_;
  Job& job_;
  const LaunchPlan& plan_;
  const Guard& guard_;
  const Environment& environment_;
  const LauncherOutput& output_;
  const SteadyTime began_ = std::chrono::steady_clock::now();
  const std::int64_t started_ms_ = wall_ms();
  EventLoop::Timer show_;
  std::unique_ptr<WaitingRecord> record_;
  EventLoop::Timer limit_;
  SteadyTime limit_at_;  ///< of the leader
  bool ended_ = false;
  bool waits_ = false;  ///< for a place in the job
  bool told_loopback_ = false;
  bool told_endpoint_ = false;
  RepeatFilter told_;
  std::string last_told_;  ///< by the leader: which launchers are there
  std::optional<std::string> told_trouble_;
  EventLoop::Timer unreached_;
  std::optional<ChildQuery> own_place_;  ///< where the name of the rendezvous leads
  RendezvousOutcome end_;
};

/// Rejected nodes are the only news that still matter when this node is done.
class Rejections : public JobEvents {
 public:
  explicit Rejections(MessageSink& sink) : sink_(sink) {}
  void rejected(const std::string& line) override { sink_.warn(line); }

 private:
  MessageSink& sink_;
};

/// The settings that must be equal on all nodes, because each node decides by them.
std::string settings_text(const LaunchPlan& plan) {
  const int spares = plan.rendezvous->spares;
  return fmt::format("--strategy {}, --max-restarts {}, --restart-backoff {}, {}{}{}{}", text_of(plan.strategy.value),
                     plan.max_restarts.value, format_duration(plan.restart_backoff.value),
                     plan.personality.repeats_identical ? "--compat=torchrun" : "--compat=lrun",
                     plan.rank_0_hosts_store ? ", TORCH_DISABLE_SHARE_RDZV_TCP_STORE" : "",
                     spares > 0 ? fmt::format(", --spares {}", spares) : "",
                     plan.is_of_one_rank ? fmt::format(", ranks on {}", counted(plan.num_nodes, "node")) : "");
}

/// The command by which the leader tells two jobs at one rendezvous apart. Programs written for torchrun may get
/// different arguments on each node, and in a job with a name torchrun lets nodes run different programs.
void describe_command(const LaunchPlan& plan, const std::string& program, JoinRecord& record) {
  const bool is_torchrun = plan.personality.run_name_defaults_to_none;
  record.program = shortened(std::filesystem::path(program).filename().string(), kMostProgramBytes);
  if (has_name(record) && is_torchrun) return;
  std::string command = record.program;
  auto argument = std::find(plan.argv.begin(), plan.argv.end(), program);
  if (is_torchrun) argument = plan.argv.end();
  while (argument != plan.argv.end() && ++argument != plan.argv.end()) command.append(1, '\0').append(*argument);
  record.command_digest = in_hexadecimal(sha256(command));
}

std::error_code error_of_connecting(const std::string& address, int port, SteadyTime deadline) {
  try {
    (void)connect_to(address, static_cast<std::uint16_t>(port), deadline);
    return {};
  } catch (const std::system_error& error) {
    return error.code();
  }
}

}  // namespace

JoinRecord join_record_of(const LaunchPlan& plan, const std::string& program, bool is_managed) {
  const RendezvousPlan& rendezvous = *plan.rendezvous;
  JoinRecord record;
  record.token = fmt::format("{}/{}/{}", plan.nodes.front().name, plan.run_id, ::getpid());
  const bool is_named = plan.run_name != plan.run_id;
  record.run_name = is_named ? plan.run_name : std::string();
  record.run_id = plan.run_id;
  record.node = plan.nodes.front().name;
  if (!rendezvous.local_addr.empty()) {
    record.address = resolve_address(rendezvous.local_addr);
    if (record.address.empty()) {
      throw UserError(fmt::format("'--local-addr {}': no address of it can be found", rendezvous.local_addr),
                      "write a numeric address, or leave it out");
    }
  }
  record.workers = static_cast<int>(plan.nodes.front().workers.size());
  record.node_rank = rendezvous.node_rank;
  record.role = plan.role;
  record.of_rank = rendezvous.of_ranks;
  record.min_nodes = rendezvous.min_nodes;
  record.max_nodes = rendezvous.max_nodes;
  record.settings = settings_text(plan);
  if (!is_managed || !is_named) describe_command(plan, program, record);
  return record;
}

std::string job_secret(const Environment& environment) { return environment.get(kJobSecret).value_or(""); }

std::string job_secret_or_new(const Environment& environment) {
  const std::string secret = job_secret(environment);
  return secret.empty() ? random_secret() : secret;
}

std::string outcome_token(const Environment& environment) { return environment.get(kOutcomeToken).value_or(""); }

std::string etcd_user(const Environment& environment) { return environment.get(kEtcdUser).value_or(""); }

void hide_secrets() {
  for (const char* const name : {kJobSecret, kEtcdUser, kOutcomeToken}) {
    char* const value = ::getenv(name);
    if (value == nullptr) continue;
    std::fill(value, value + std::strlen(value), '\0');
    ::unsetenv(name);
  }
}

std::string weak_secret_warning(const std::string& secret, const std::string& place) {
  constexpr std::size_t kShortest = 16;
  if (secret.size() >= kShortest) return {};
  if (!secret.empty()) {
    return "LRUN_JOB_SECRET is short: an eavesdropper can find it by trying; 'openssl rand -hex 32' makes one "
           "that nobody finds";
  }
  return fmt::format(
      "anyone who can reach {} can take part in the job: set LRUN_JOB_SECRET to the same value on every node", place);
}

void warn_of_weak_secret(const Job& job, const LaunchPlan& plan, const std::string& secret, MessageSink& sink) {
  const std::string place = job.open_place();
  const std::string warning = weak_secret_warning(secret, place);
  if (!warning.empty() && !place.empty() && speaks_for_job(plan)) sink.warn(warning);
}

std::error_code wait_for_server(const Endpoint& endpoint, Duration patience) {
  const SteadyTime deadline = std::chrono::steady_clock::now() + patience;
  const std::string address = resolve_address(endpoint.host);
  std::error_code error = error_of_connecting(address, *endpoint.port, deadline);
  while (error && std::chrono::steady_clock::now() + kConnectPause < deadline) {
    std::this_thread::sleep_for(kConnectPause);
    error = error_of_connecting(address, *endpoint.port, deadline);
  }
  return error;
}

void wait_for_others_at(const Endpoint& endpoint, std::optional<Duration> patience, MessageSink& sink) {
  constexpr Duration kUsualPatience(60'000);
  const Duration limit = patience.value_or(kUsualPatience);
  if (!wait_for_server(endpoint, kConnectPause)) return;
  const std::string nobody = fmt::format("nobody serves the rendezvous at {} port {}", endpoint.host, *endpoint.port);
  sink.note(fmt::format("{} yet: waiting up to {}", nobody, format_duration(limit)));
  if (const std::error_code error = wait_for_server(endpoint, limit)) {
    throw UserError(fmt::format("'--rdzv-conf is_host=false': {}: {}", nobody, error.message()),
                    "leave 'is_host' out: this run has one node and needs nobody");
  }
}

RendezvousOutcome meet(EventLoop& loop, Job& job, const LaunchPlan& plan, const Guard& guard,
                       const Environment& environment, const LauncherOutput& output, NoticeMonitor* notice) {
  return RendezvousWait(loop, job, plan, guard, environment, output).run(notice);
}

void leave(EventLoop& loop, Job& job, const std::string& text, const LaunchPlan& plan, const Guard& guard,
           MessageSink& sink, int ignored) {
  bool left = false;
  const auto end = [&] {
    left = true;
    loop.stop();
  };
  const EndSignals signals(loop, plan, guard, [&](int number) {
    if (number == 0 || number != ignored) end();
  });
  const EventLoop::Timer note = loop.after(kQuietLeave, [&sink] {
    sink.note("the job's launchers meet here: waiting until the other nodes have ended, too");
  });
  Rejections rejections(sink);
  job.set_events(rejections);
  job.finish(text, plan.grace.value + kLeaveLimit, end);
  if (!left) loop.run();
  job.report_rejections();
}

}  // namespace lrun::launcher
