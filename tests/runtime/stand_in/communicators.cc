// NCCL as C functions, as far as liblrun_cuda.so calls it. In: their calls by ranks that are threads. Out: work for the
// machine's streams, and the state that ncclCommGetAsyncError() tells.
#include "runtime/stand_in/communicators.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/stand_in/machine.h"
#include "runtime/stand_in/reductions.h"
#include "runtime/stand_in/script.h"

namespace lrun::test::stand_in {
namespace {

/// One operation of all ranks.
struct Gathering {
  std::size_t arrived = 0;
  std::string form;  // of the first that came
  bool is_of_one_form = true;
  std::vector<Bytes> inputs;
};

struct Clique {
  std::size_t size = 0;
  std::size_t joined = 0;
  std::size_t connecting = 0;  // ranks that have called an operation
  std::size_t finalizing = 0;
  bool is_of_one_thread = false;
  std::set<int> ranks;
  std::set<int> devices;
  std::map<std::uint64_t, std::shared_ptr<Gathering>> gatherings;
  std::map<std::pair<int, int>, std::deque<Bytes>> messages;  // by sender and receiver: sent and not yet received
};

struct Member {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  int device = 0;
  ncclResult_t state = ncclInProgress;
  bool is_aborted = false;
  bool is_finalizing = false;
  bool has_operated = false;
  std::uint64_t operations = 0;
  std::size_t in_flight = 0;
  std::uint64_t jobs = 0;  // a stream for what NCCL's own thread does
  std::atomic<bool> is_entered{false};
};

using MemberPointer = std::shared_ptr<Member>;

struct Operation {
  std::string name;
  const void* from = nullptr;
  std::size_t bytes_from = 0;  // 0: this rank gives nothing
  void* to = nullptr;
  std::size_t bytes_to = 0;
  std::string form = {};
  int peer = -1;  // of a message
  std::uint64_t stream = 0;
  StreamClock known = {};
  MemberPointer member = nullptr;
  /// From all inputs the output of a rank.
  std::function<Bytes(const std::vector<Bytes>& inputs, std::size_t rank)> result = {};
};

/// All under the machine's lock.
struct Network {
  std::map<std::string, std::shared_ptr<Clique>> cliques;
  std::map<std::uint64_t, MemberPointer> members;
  std::uint64_t last_number = 1000;
};

Network& network() {
  static Network& instance = *new Network;
  return instance;
}

/// Calls between ncclGroupStart() and ncclGroupEnd() of this thread.
struct OpenCalls {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<MemberPointer> joining;
  std::vector<MemberPointer> finalizing;
  std::vector<Operation> operations;
};
thread_local OpenCalls open_calls;

ncclResult_t note(ncclResult_t result) {
  if (open_calls.depth > 0 && result != ncclSuccess && result != ncclInProgress) open_calls.error = result;
  return result;
}

/// A call of a communicator, from its begin to its end.
class Entered {
 public:
  Entered(ncclComm_t communicator, const char* function, const void* caller) {
    with_machine([&] {
      const auto found = network().members.find(reinterpret_cast<std::uintptr_t>(communicator));
      if (found != network().members.end()) member_ = found->second;
    });
    if (!member_) {
      report_misuse(std::string(function) + " of a communicator that does not exist");
      error_ = ncclInvalidArgument;
      return;
    }
    if (member_->is_entered.exchange(true)) {
      report_misuse(std::string(function) + " of a communicator in which another thread is");
    }
    error_ = static_cast<ncclResult_t>(enter_call(function, caller));
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
  ~Entered() {
    if (member_) member_->is_entered = false;
  }

  [[nodiscard]] ncclResult_t error() const { return error_; }
  [[nodiscard]] const MemberPointer& member() const { return member_; }

 private:
  MemberPointer member_;
  ncclResult_t error_ = ncclSuccess;
};

/// Refuses calls of a communicator that is not ready for them. With the machine's lock held.
ncclResult_t check_ready(const Member& member, const std::string& function) {
  if (member.state == ncclSuccess && !member.is_finalizing) return ncclSuccess;
  if (member.state != ncclSuccess && member.state != ncclInProgress) return member.state;
  report_misuse(function + " of a communicator that is " + (member.is_finalizing ? "being finalized" : "in progress"));
  return ncclInvalidArgument;
}

void end_progress(Member& member) {
  if (member.state == ncclInProgress) member.state = ncclSuccess;
}

void join(const MemberPointer& member) {
  ++member->clique->joined;
  add_work(member->jobs,
           {.name = "connecting",
            .may_run = [member] { return member->is_aborted || member->clique->joined == member->clique->size; },
            .run = [member] { end_progress(*member); }},
           {});
}

void put_in_stream(const Operation& operation) {
  const MemberPointer& member = operation.member;
  std::shared_ptr<Gathering>& gathering = member->clique->gatherings[member->operations++];
  if (!gathering) gathering = std::make_shared<Gathering>();
  DeviceWork work{.name = operation.name};
  if (operation.bytes_from > 0) work.accesses.push_back({operation.from, operation.bytes_from, false});
  if (operation.bytes_to > 0) work.accesses.push_back({operation.to, operation.bytes_to, true});
  work.arrive = [gathering, operation] {
    if (gathering->arrived++ == 0) gathering->form = operation.form;
    if (gathering->form != operation.form) gathering->is_of_one_form = false;
    gathering->inputs.resize(operation.member->clique->size);
    if (operation.bytes_from == 0) return;
    const char* from = static_cast<const char*>(operation.from);
    gathering->inputs[static_cast<std::size_t>(operation.member->rank)].assign(from, from + operation.bytes_from);
  };
  work.may_run = [gathering, member] {
    return member->is_aborted || (gathering->arrived == member->clique->size && gathering->is_of_one_form);
  };
  work.run = [gathering, operation] {
    --operation.member->in_flight;
    if (operation.member->is_aborted || operation.bytes_to == 0) return;
    const Bytes bytes = operation.result(gathering->inputs, static_cast<std::size_t>(operation.member->rank));
    std::memcpy(operation.to, bytes.data(), operation.bytes_to);
  };
  add_work(operation.stream, std::move(work), operation.known);
}

/// The messages of one group of calls, which go on together.
void put_messages_in_stream(const std::vector<Operation>& messages) {
  const MemberPointer& member = messages.front().member;
  DeviceWork work{.name = messages.front().name};
  for (const Operation& message : messages) {
    if (message.bytes_from > 0) work.accesses.push_back({message.from, message.bytes_from, false});
    if (message.bytes_to > 0) work.accesses.push_back({message.to, message.bytes_to, true});
  }
  const auto incoming = [member](const Operation& message) -> std::deque<Bytes>& {
    return member->clique->messages[{message.peer, member->rank}];
  };
  work.arrive = [messages, member] {
    for (const Operation& message : messages) {
      const char* from = static_cast<const char*>(message.from);
      if (from != nullptr)
        member->clique->messages[{member->rank, message.peer}].emplace_back(from, from + message.bytes_from);
    }
  };
  work.may_run = [messages, member, incoming] {
    return member->is_aborted || std::ranges::all_of(messages, [&](const Operation& message) {
             return message.to == nullptr ||
                    (!incoming(message).empty() && incoming(message).front().size() == message.bytes_to);
           });
  };
  work.run = [messages, member, incoming] {
    member->in_flight -= messages.size();
    for (const Operation& message : messages) {
      if (member->is_aborted || message.to == nullptr) continue;
      std::memcpy(message.to, incoming(message).front().data(), message.bytes_to);
      incoming(message).pop_front();
    }
  };
  add_work(messages.front().stream, std::move(work), messages.front().known);
}

void put_all_in_streams(const std::vector<Operation>& operations) {
  std::vector<Operation> messages;
  for (const Operation& operation : operations) {
    if (operation.peer >= 0) {
      messages.push_back(operation);
    } else {
      put_in_stream(operation);
    }
  }
  if (!messages.empty()) put_messages_in_stream(messages);
}

/// The operations of one communicator in a group of calls. \return  ncclSuccess: they are in their streams.
ncclResult_t launch(const MemberPointer& member, std::vector<Operation> operations) {
  member->in_flight += operations.size();
  const bool is_first = !std::exchange(member->has_operated, true);
  if (is_first) ++member->clique->connecting;
  if (!is_first && toss()) {
    put_all_in_streams(operations);
    return ncclSuccess;
  }
  member->state = ncclInProgress;
  const auto are_connected = [member] {
    return member->is_aborted || member->clique->connecting == member->clique->size;
  };
  const auto put_all = [member, operations = std::move(operations)] {
    if (member->is_aborted) {
      member->in_flight -= operations.size();
      return;
    }
    put_all_in_streams(operations);
    end_progress(*member);
  };
  add_work(member->jobs, {.name = "launching", .may_run = are_connected, .run = put_all}, {});
  return ncclInProgress;
}

void finalize(const MemberPointer& member) {
  ++member->clique->finalizing;
  const auto has_ended = [member] {
    const bool waits = member->clique->is_of_one_thread && member->clique->finalizing < member->clique->size;
    return member->is_aborted || (member->in_flight == 0 && !waits);
  };
  add_work(member->jobs, {.name = "finalizing", .may_run = has_ended, .run = [member] { end_progress(*member); }}, {});
}

ncclResult_t call(ncclComm_t communicator, cudaStream_t stream, Operation operation, const void* caller) {
  const Entered entered(communicator, operation.name.c_str(), caller);
  if (entered.error() != ncclSuccess) return note(entered.error());
  ncclResult_t result = ncclSuccess;
  with_machine([&] {
    const MemberPointer& member = entered.member();
    result = check_ready(*member, operation.name);
    if (result != ncclSuccess) return;
    operation.stream = stream == nullptr ? default_stream(member->device) : reinterpret_cast<std::uintptr_t>(stream);
    if (device_of_stream(operation.stream) != member->device) {
      report_misuse(operation.name + " in a stream of another device");
      result = ncclInvalidArgument;
      return;
    }
    operation.known = known_to_thread();
    operation.member = member;
    if (open_calls.depth > 0) {
      open_calls.operations.push_back(std::move(operation));
    } else {
      result = launch(member, {std::move(operation)});
    }
  });
  return note(result);
}

std::string form_of(const char* name, std::size_t bytes, int type, int operation, int root) {
  std::string form = name;
  for (const std::size_t part :
       {bytes, static_cast<std::size_t>(type), static_cast<std::size_t>(operation), static_cast<std::size_t>(root)}) {
    form += ' ' + std::to_string(part);
  }
  return form;
}

int rank_of(ncclComm_t communicator) {
  int rank = -1;
  with_machine([&] {
    const auto found = network().members.find(reinterpret_cast<std::uintptr_t>(communicator));
    if (found != network().members.end()) rank = found->second->rank;
  });
  return rank;
}

std::size_t size_of_clique(ncclComm_t communicator) {
  std::size_t size = 1;
  with_machine([&] {
    const auto found = network().members.find(reinterpret_cast<std::uintptr_t>(communicator));
    if (found != network().members.end()) size = found->second->clique->size;
  });
  return size;
}

ncclResult_t forget_member(ncclComm_t communicator, const MemberPointer& member) {
  member->is_aborted = true;
  network().members.erase(reinterpret_cast<std::uintptr_t>(communicator));
  count_communicators(-1);
  return ncclSuccess;
}

/// With the machine's lock held. \return  null: the identifier or the rank is wrong.
MemberPointer make_member(int size, const std::string& id, int rank) {
  std::shared_ptr<Clique>& clique = network().cliques[id];
  if (!clique) return nullptr;
  clique->size = static_cast<std::size_t>(size);
  const int device = current_device();
  if (rank < 0 || rank >= size || !clique->ranks.insert(rank).second) return nullptr;
  if (!clique->devices.insert(device).second) report_misuse("two ranks of a communicator share a device");
  auto member = std::make_shared<Member>();
  member->clique = clique;
  member->rank = rank;
  member->device = device;
  member->jobs = make_stream(device);
  return member;
}

ncclResult_t close_group(OpenCalls calls, ncclResult_t error) {
  std::map<MemberPointer, std::vector<Operation>> of_member;
  for (Operation& operation : calls.operations) of_member[operation.member].push_back(std::move(operation));
  ncclResult_t result = error;
  with_machine([&] {
    if (error != ncclSuccess) {  // nothing begins, and no communicator of it is of use any more
      for (const MemberPointer& member : calls.joining) member->state = error;
      for (const MemberPointer& member : calls.finalizing) member->state = error;
      for (const auto& [member, operations] : of_member) member->state = error;
      return;
    }
    for (const MemberPointer& member : calls.joining) join(member);
    for (const MemberPointer& member : calls.finalizing) finalize(member);
    if (!calls.joining.empty() || !calls.finalizing.empty()) result = ncclInProgress;
    for (auto& [member, operations] : of_member) {
      if (launch(member, std::move(operations)) == ncclInProgress) result = ncclInProgress;
    }
  });
  return result;
}

}  // namespace

void lose_connections(int device) {
  with_machine([device] {
    for (auto& [number, member] : network().members) {
      if (member->device == device) member->state = ncclRemoteError;
    }
  });
}

}  // namespace lrun::test::stand_in

using namespace lrun::test::stand_in;  // NOLINT: the functions below are not of a namespace

// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
  }
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (const int error = enter_call(__func__, __builtin_return_address(0))) return static_cast<ncclResult_t>(error);
  std::memset(id, 0, sizeof *id);
  with_machine([id] {
    const std::string name = "clique " + std::to_string(++network().last_number);
    std::memcpy(id->internal, name.data(), name.size());
    network().cliques[name] = std::make_shared<Clique>();
  });
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  *communicator = nullptr;
  if (const int error = enter_call(__func__, __builtin_return_address(0))) {
    return note(static_cast<ncclResult_t>(error));
  }
  if (config == nullptr || config->blocking != 0) report_misuse("a communicator that blocks: not modelled");
  ncclResult_t result = ncclInProgress;
  with_machine([&] {
    const MemberPointer member = make_member(size, id.internal, rank);
    if (!member) {
      report_misuse("a communicator of a wrong identifier or rank");
      result = ncclInvalidArgument;
      return;
    }
    const std::uint64_t number = ++network().last_number;
    network().members[number] = member;
    count_communicators(1);
    *communicator = reinterpret_cast<ncclComm_t>(number);  // NOLINT(performance-no-int-to-ptr)
    if (open_calls.depth > 0) member->clique->is_of_one_thread = true;
    open_calls.depth > 0 ? open_calls.joining.push_back(member) : join(member);
  });
  return note(result);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
  const Entered entered(communicator, __func__, __builtin_return_address(0));
  if (entered.error() != ncclSuccess) return entered.error();
  with_machine([&] { *state = entered.member()->state; });
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  const Entered entered(communicator, __func__, __builtin_return_address(0));
  if (entered.error() != ncclSuccess) return note(entered.error());
  ncclResult_t result = ncclInProgress;
  with_machine([&] {
    const MemberPointer& member = entered.member();
    if (const ncclResult_t error = check_ready(*member, "ncclCommFinalize")) {
      result = error;
      return;
    }
    member->is_finalizing = true;
    member->state = ncclInProgress;
    open_calls.depth > 0 ? open_calls.finalizing.push_back(member) : finalize(member);
  });
  return note(result);
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  const Entered entered(communicator, __func__, __builtin_return_address(0));
  if (entered.error() != ncclSuccess) return entered.error();
  with_machine([&] {
    const Member& member = *entered.member();
    if (!member.is_finalizing || member.state != ncclSuccess) {
      report_misuse("a communicator is destroyed before it was finalized");
    }
    forget_member(communicator, entered.member());
  });
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  const Entered entered(communicator, __func__, __builtin_return_address(0));
  if (entered.error() != ncclSuccess) return note(entered.error());
  with_machine([&] { forget_member(communicator, entered.member()); });
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  if (const int error = enter_call(__func__, __builtin_return_address(0))) return static_cast<ncclResult_t>(error);
  ++open_calls.depth;
  count_groups(1);
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (open_calls.depth == 0) {
    report_misuse("the end of a group that was not begun");
    return ncclInvalidUsage;
  }
  const int error = enter_call(__func__, __builtin_return_address(0));
  count_groups(-1);
  if (--open_calls.depth > 0) return ncclSuccess;
  OpenCalls calls = std::exchange(open_calls, {});
  const ncclResult_t result = error != 0 ? static_cast<ncclResult_t>(error) : calls.error;
  return close_group(std::move(calls), result);
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t stream) {
  const std::size_t bytes = count * size_of(type);
  return call(
      communicator, stream,
      {.name = __func__,
       .from = from,
       .bytes_from = bytes,
       .to = to,
       .bytes_to = bytes,
       .form = form_of(__func__, bytes, type, operation, 0),
       .result = [=](const std::vector<Bytes>& inputs, std::size_t) { return reduce(inputs, type, operation); }},
      __builtin_return_address(0));
}

ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t operation, int root,
                        ncclComm_t communicator, cudaStream_t stream) {
  const std::size_t bytes = count * size_of(type);
  return call(
      communicator, stream,
      {.name = __func__,
       .from = from,
       .bytes_from = bytes,
       .to = to,
       .bytes_to = rank_of(communicator) == root ? bytes : 0,
       .form = form_of(__func__, bytes, type, operation, root),
       .result = [=](const std::vector<Bytes>& inputs, std::size_t) { return reduce(inputs, type, operation); }},
      __builtin_return_address(0));
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
  const std::size_t bytes = count * size_of(type);
  const bool is_root = rank_of(communicator) == root;
  return call(
      communicator, stream,
      {.name = __func__,
       .from = from,
       .bytes_from = is_root ? bytes : 0,
       .to = to,
       .bytes_to = is_root && from == to ? 0 : bytes,
       .form = form_of(__func__, bytes, type, 0, root),
       .result = [=](const std::vector<Bytes>& inputs, std::size_t) { return inputs[static_cast<std::size_t>(root)]; }},
      __builtin_return_address(0));
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t communicator,
                           cudaStream_t stream) {
  const std::size_t bytes = count * size_of(type);
  return call(communicator, stream,
              {.name = __func__,
               .from = from,
               .bytes_from = bytes,
               .to = to,
               .bytes_to = bytes * size_of_clique(communicator),
               .form = form_of(__func__, bytes, type, 0, 0),
               .result =
                   [](const std::vector<Bytes>& inputs, std::size_t) {
                     Bytes all;
                     for (const Bytes& input : inputs) all.insert(all.end(), input.begin(), input.end());
                     return all;
                   }},
              __builtin_return_address(0));
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  return call(communicator, stream, {.name = __func__, .from = from, .bytes_from = count * size_of(type), .peer = peer},
              __builtin_return_address(0));
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  return call(communicator, stream, {.name = __func__, .to = to, .bytes_to = count * size_of(type), .peer = peer},
              __builtin_return_address(0));
}

ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                               ncclComm_t communicator, cudaStream_t stream) {
  const std::size_t bytes = count * size_of(type);
  return call(communicator, stream,
              {.name = __func__,
               .from = from,
               .bytes_from = bytes * size_of_clique(communicator),
               .to = to,
               .bytes_to = bytes,
               .form = form_of(__func__, bytes, type, operation, 0),
               .result =
                   [=](const std::vector<Bytes>& inputs, std::size_t rank) {
                     const Bytes all = reduce(inputs, type, operation);
                     const auto begin = all.begin() + static_cast<std::ptrdiff_t>(rank * bytes);
                     return Bytes(begin, begin + static_cast<std::ptrdiff_t>(bytes));
                   }},
              __builtin_return_address(0));
}
}
// NOLINTEND(readability-identifier-naming)
