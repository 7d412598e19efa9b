#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/duration.h"
#include "cluster/device_request.h"
#include "cluster/user_hosts.h"
#include "plan/backend_choice.h"
#include "plan/named_value.h"
#include "plan/notice_source.h"
#include "plan/output_request.h"
#include "plan/rendezvous_request.h"
#include "plan/setting.h"
#include "plan/strategy.h"
#include "plan/worker_setup.h"

namespace lrun::launcher {

enum class Compat { kLrun, kTorchrun, kHorovodrun };
/// The part of the machine that a worker may run on; see bind_workers().
enum class Binding { kNone, kCore, kCache, kNuma, kSocket };
inline constexpr NamedValue<Binding> kBindings[] = {{"none", Binding::kNone},
                                                    {"core", Binding::kCore},
                                                    {"cache", Binding::kCache},
                                                    {"numa", Binding::kNuma},
                                                    {"socket", Binding::kSocket}};
inline std::string text_of(Binding binding) { return name_in(kBindings, binding); }

enum class HangSignal { kProgress, kCpu };
enum class OnHang { kDump, kKill, kRestart };
enum class DryRun { kNo, kText, kJson };

/// The values that the user asked for, each checked by itself; nothing was looked up. cli makes it, make_plan() reads
/// it.
struct LaunchRequest {
  Compat compat = Compat::kLrun;
  std::vector<std::string> command;  ///< PROGRAM and its arguments, untouched. Never empty.
  bool module = false;               ///< -m: PROGRAM is a Python module
  bool run_path = false;             ///< --run-path: PROGRAM is a Python script, whatever its name
  bool no_python = false;            ///< --no-python: execute PROGRAM itself
  Setting<std::string> python;       ///< --python: a path or a name; empty: not given
  bool of_liblrun = false;           ///< --liblrun: PROGRAM carries out the strategy, though it is a Python program
  bool nested = false;               ///< --nested: a worker of another run starts this one on purpose
  bool no_local_rank = false;        ///< --no-local-rank: under 'deepspeed' PROGRAM gets no '--local_rank=N'
  bool is_old_launch = false;        ///< --compat=torch.distributed.launch: PROGRAM gets '--local-rank=N' …
  bool use_env = false;              ///< … except with --use-env
  WorkerSetup setup;

  Setting<DeviceRequest> devices;
  Setting<DeviceRequest> nproc_per_node;           ///< also -n, -np
  Setting<int> num_nodes{1};                       ///< at most
  int min_nodes = 0;                               ///< at least; 0: as many as num_nodes
  Setting<int> spares{0};                          ///< nodes of the job that wait to take the place of a lost one
  Setting<HostList> hosts;                         ///< -H
  Setting<std::string> hostfile;                   ///< a path; empty when not given
  Setting<std::string> include;                    ///< of those hosts: 'a@b:0,2'; empty: all
  Setting<std::string> exclude;                    ///< the same for hosts to leave out
  Setting<std::vector<std::string>> ssh{{"ssh"}};  ///< the command that reaches the other hosts
  bool copy = false;                               ///< lrun is copied to the other hosts
  Setting<std::optional<Strategy>> strategy;
  Setting<std::optional<DeviceKind>> accelerator;              ///< empty: auto
  std::string accelerator_word;                                ///< the user's: 'cuda'; empty: it is the value's
  Setting<std::optional<GroupBackend>> process_group_backend;  ///< empty: auto
  Setting<std::optional<std::uint64_t>> seed;
  std::string role = "default";
  bool standalone = false;
  std::string rdzv_id;  ///< the name of the run for its workers; empty: not given
  RendezvousRequest rendezvous;
  Setting<std::optional<int>> master_port;  ///< 0 or not given: the kernel chooses
  Setting<std::string> log_dir;             ///< empty: the run directory; '/dev/null': no files
  OutputRequest output;
  bool standard_input = false;  ///< --stdin: rank 0 reads lrun's standard input, the others nothing
  Setting<Duration> grace{Duration(30'000)};
  Setting<Duration> settle{Duration(0)};
  Duration monitor_interval{100};   ///< torchrun's time between two polls
  Setting<Duration> timeout;        ///< zero: none
  Setting<Duration> start_timeout;  ///< zero: none
  Setting<Duration> hang_timeout;   ///< zero: none
  HangSignal hang_signal = HangSignal::kProgress;
  Setting<OnHang> on_hang{OnHang::kKill};
  Setting<std::string> signals_to_handle;  ///< 'SIGTERM,SIGUSR1'; empty: not given
  Setting<int> max_restarts{0};
  Setting<std::optional<Duration>> restart_backoff;  ///< empty: the personality's
  Setting<std::string> checkpoint_path;              ///< empty: not given
  Setting<NoticeSource> notice;
  bool isolate_gpus = false;  ///< --virtual-local-rank, --isolate-gpus: one visible device a worker
  bool share_gpus = false;    ///< --share-gpus: busy GPUs may be used
  Setting<Binding> bind{Binding::kNone};
  DryRun dry_run = DryRun::kNo;
  int verbosity = 0;

  bool operator==(const LaunchRequest&) const = default;
};

}  // namespace lrun::launcher
