#include "trireme/comm/grpc/listener.hpp"

#include <fmt/format.h>
#include <grpcpp/alarm.h>

#include <condition_variable>
#include <exception>
#include <thread>

#include "trireme/base/error.hpp"
#include "trireme/comm/grpc/bind_address.hpp"
#include "trireme/comm/grpc/data_guest.hpp"
#include "trireme/comm/grpc/events.hpp"
#include "trireme/comm/grpc/incoming_call.hpp"
#include "trireme/comm/grpc/meeting.hpp"
#include "trireme/comm/grpc/messages.hpp"
#include "trireme/comm/grpc/porch.hpp"
#include "trireme/comm/grpc/security.hpp"

namespace trireme::comm::rpc {
namespace {

using grpc::StatusCode;

// All tasks of a job may come at once, with some connections each.
constexpr std::size_t kSpareStrangers = 64;
constexpr std::chrono::seconds kPatience{20};
constexpr std::uint64_t kStrangersBytes = 64 << 10;  // a handshake, of TLS too, takes some KB

// Something for the thread that turns a queue; deletes itself when it is done.
class Errand {
 public:
  Errand(grpc::CompletionQueue& queue, std::function<void()> what)
      : done_([this, what = std::move(what)](bool) {
          what();
          delete this;
        }) {
    alarm_.Set(&queue, gpr_now(GPR_CLOCK_MONOTONIC), done_.tag());
  }

 private:
  grpc::Alarm alarm_;
  Event done_;
};

}  // namespace

class Listener::Impl {
 public:
  Impl(const RpcOptions& options, const Tls& tls, const Identity& self, Roster& roster, Inboxes& inboxes,
       Answers answers)
      : gate_(options),
        roster_(roster),
        sink_(roster, inboxes, options),
        answers_(std::move(answers)),
        meeting_(options, self, roster, gate_),
        holds_meeting_(options.self == kMeetingTask) {
    const std::string who = options.tasks[options.self].name;
    const std::string address = resolve_address(options.tasks[options.self].address, who);
    check_reachable(address, options.tasks, options.self);
    reception_.answer = [this](const std::string& method, grpc::Status& status) { return answer(method, status); };
    reception_.receive = [this](const std::string& method, const wire::Claim& caller, IncomingCall& call,
                                grpc::Status& status) { return receive(method, caller, call, status); };
    porch_.emplace(
        listen_on(address, who, options.liveness.answer_within),
        Porch::Limits{
            .strangers = kSpareStrangers + 2 * options.tasks.size(), .patience = kPatience, .bytes = kStrangersBytes});
    gate_.set_on_proof([this](const std::string& peer) { porch_->know(peer); });
    grpc::ServerBuilder builder;
    configure(builder, options);
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, make_server_credentials(tls));
    builder.RegisterAsyncGenericService(&reception_.service);
    queue_ = builder.AddCompletionQueue();
    reception_.queue = queue_.get();
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) {
      stop_queue();
      bad_input(
          "{}: gRPC cannot listen on {}{}", who, address,
          tls.is_on() ? "; --tls-cert and --tls-key must be PEM files that belong together, --tls-ca one too" : "");
    }
    IncomingCall::await(reception_);
    thread_ = std::thread([this] { turn(*queue_); });
    porch_->open([this](int connection) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
      parameters.fd = connection;
      acceptor_->HandleNewConnection(&parameters);
    });
  }

  ~Impl() {
    if (server_ == nullptr) return;
    porch_->close();
    server_->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));
    {
      const std::lock_guard lock(mutex_);
      // By the thread that begins operations, so that none begins after it.
      new Errand(*queue_, [this] {
        gate_.close();
        queue_->Shutdown();
      });
      is_closed_ = true;
    }
    thread_.join();
  }

  void tell_arrivals() {
    do_there([this] { meeting_.tell_arrivals(); });
  }
  void tell_absences() {
    if (!holds_meeting_) return;
    do_there([this] { meeting_.tell_absences(); });
  }
  std::string failure() const { return meeting_.failure(); }
  std::int64_t refused_calls() const { return gate_.refused(); }

  void leave(std::chrono::milliseconds longest) {
    do_there([this] {
      for (IncomingCall* const call : reception_.calls) call->finish(grpc::Status::OK);
    });
    const auto until = std::chrono::steady_clock::now() + longest;
    while (std::chrono::steady_clock::now() < until) {
      bool is_empty = false;
      do_there_and_wait([&] { is_empty = reception_.calls.empty(); });
      if (is_empty) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  void break_off() {
    do_there([this] {
      for (IncomingCall* const call : reception_.calls) call->cancel();
    });
  }

 private:
  std::optional<std::string> answer(const std::string& method, grpc::Status& status) {
    try {
      if (method == kHealthMethod) return to_message(roster_.health()).SerializeAsString();
      if (method == kStatisticsMethod) return answers_.statistics();
      if (method != kShutdownMethod) return std::nullopt;
      answers_.shut_down();
    } catch (const std::exception& error) {
      status = {StatusCode::INTERNAL, error.what()};
    }
    return "";
  }

  std::unique_ptr<Guest> receive(const std::string& method, const wire::Claim& caller, IncomingCall& call,
                                 grpc::Status& status) {
    if (method == kMeetingMethod) {
      if (holds_meeting_) return meeting_.receive(caller, call);
      status = {StatusCode::FAILED_PRECONDITION, "the meeting is elsewhere"};
    } else if (method != kDataMethod) {
      status = {StatusCode::UNIMPLEMENTED, "there is no such method"};
    } else if (!roster_.admit(caller.from(), caller.instance())) {
      gate_.report(fmt::format("refused a data stream: it is of another process than {}", caller.from()));
      status = {StatusCode::PERMISSION_DENIED, "another process is that task"};
    } else {
      return std::make_unique<DataGuest>(caller.from(), sink_, gate_);
    }
    return nullptr;
  }

  void do_there(std::function<void()> what) {
    const std::lock_guard lock(mutex_);
    if (!is_closed_) new Errand(*queue_, std::move(what));
  }

  void do_there_and_wait(const std::function<void()>& what) {
    std::mutex mutex;
    std::condition_variable done;
    bool is_done = false;
    do_there([&] {
      what();
      const std::lock_guard lock(mutex);
      is_done = true;
      done.notify_one();
    });
    std::unique_lock lock(mutex);
    done.wait(lock, [&] { return is_done; });
  }

  void stop_queue() {
    queue_->Shutdown();
    turn(*queue_);
  }

  Gate gate_;
  Roster& roster_;
  PartSink sink_;
  const Answers answers_;
  Meeting meeting_;
  const bool holds_meeting_;
  Reception reception_{gate_};
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::optional<Porch> porch_;
  std::thread thread_;
  std::mutex mutex_;
  bool is_closed_ = false;  // the queue takes nothing any more
};

Listener::Listener(const RpcOptions& options, const Tls& tls, const Identity& self, Roster& roster, Inboxes& inboxes,
                   Answers answers)
    : impl_(std::make_unique<Impl>(options, tls, self, roster, inboxes, std::move(answers))) {}
Listener::~Listener() = default;

void Listener::tell_arrivals() { impl_->tell_arrivals(); }
void Listener::tell_absences() { impl_->tell_absences(); }
std::string Listener::failure() const { return impl_->failure(); }
std::int64_t Listener::refused_calls() const { return impl_->refused_calls(); }
void Listener::leave(std::chrono::milliseconds longest) { impl_->leave(longest); }
void Listener::break_off() { impl_->break_off(); }

}  // namespace trireme::comm::rpc
