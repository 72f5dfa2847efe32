#include "trireme/comm/grpc/listener.hpp"

#include <fmt/format.h>
#include <grpcpp/alarm.h>

#include <condition_variable>
#include <cstring>
#include <exception>

#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"

namespace trireme::comm::rpc {
namespace {

using grpc::StatusCode;

// Work for a queue's thread; deletes itself when done.
class PostedWork {
 public:
  PostedWork(grpc::CompletionQueue& queue, std::function<void()> work)
      : done_([this, work = std::move(work)](bool) {
          work();
          delete this;
        }) {
    alarm_.Set(&queue, gpr_now(GPR_CLOCK_MONOTONIC), done_.tag());
  }

 private:
  grpc::Alarm alarm_;
  Completion done_;
};

// Calls `use(bytes)` for each memory piece of a message from `begin` on.
template <typename Use>
void for_each_piece(const std::vector<grpc::Slice>& slices, std::size_t begin, const Use& use) {
  for (const grpc::Slice& slice : slices) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(slice.begin());
    if (begin < slice.size()) use(std::span(bytes + begin, slice.size() - begin));
    begin -= std::min(begin, slice.size());
  }
}

// The payload after a frame's header, in gRPC's memory.
class SlicePayload : public Payload {
 public:
  SlicePayload(std::vector<grpc::Slice> slices, std::size_t size) : slices_(std::move(slices)), size_(size) {}

  std::size_t size() const override { return size_; }
  void copy_to(std::byte* target) const override {
    for_each_piece(slices_, FrameHeader::kBytes, [&](std::span<const std::byte> piece) {
      std::memcpy(target, piece.data(), piece.size());
      target += piece.size();
    });
  }

 private:
  std::vector<grpc::Slice> slices_;
  std::size_t size_;
};

FrameBytes header_of(const std::vector<grpc::Slice>& slices) {
  FrameBytes header{};
  std::size_t filled = 0;
  for_each_piece(slices, 0, [&](std::span<const std::byte> piece) {
    const std::size_t taken = std::min(piece.size(), header.size() - filled);
    std::copy_n(piece.begin(), taken, header.begin() + static_cast<std::ptrdiff_t>(filled));
    filled += taken;
  });
  return header;
}

}  // namespace

// Puts frames of a data stream into the inboxes.
class Listener::DataHandler : public CallHandler {
 public:
  DataHandler(int from, Listener& listener) : from_(from), listener_(listener) {}

  std::optional<grpc::Status> on_message(const grpc::ByteBuffer& message) override {
    FrameHeader header;
    std::string wrong = deliver(message, header);
    if (wrong.empty() && has_ended_) wrong = "a frame after the last one";
    if (!wrong.empty()) {
      wrong = "sent " + wrong;
      listener_.authenticator_.report(fmt::format("{} {}", listener_.roster_.name_of(from_), wrong));
      listener_.roster_.lose(from_, wrong);
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, wrong);
    }
    if (header.kind == FrameKind::end) {
      has_ended_ = true;
      if (++listener_.ended_streams_[from_] == header.sequence) listener_.roster_.leave(from_);
    }
    return std::nullopt;
  }

  void on_end() override {
    if (!has_ended_) listener_.roster_.lose(from_, "connection closed");
  }

 private:
  // Returns what is wrong with a frame; empty if it is valid.
  std::string deliver(const grpc::ByteBuffer& frame, FrameHeader& header) {
    std::vector<grpc::Slice> slices;
    if (!frame.Dump(&slices).ok() || frame.Length() < FrameHeader::kBytes) return "a frame without a header";
    const std::size_t bytes = frame.Length() - FrameHeader::kBytes;
    const auto decoded = decode(header_of(slices), bytes);
    if (!decoded) return "a malformed frame";
    header = *decoded;
    if (header.kind == FrameKind::end) return "";
    auto payload = std::make_unique<SlicePayload>(std::move(slices), bytes);
    const bool fits = listener_.inboxes_.get(header.context)->deliver(from_, header, std::move(payload));
    return fits ? "" : "a frame that contradicts earlier ones";
  }

  const int from_;
  Listener& listener_;
  bool has_ended_ = false;
};

Listener::Listener(const RpcOptions& options, const Tls& tls, const Identity& self, Roster& roster, Inboxes& inboxes)
    : authenticator_(options),
      roster_(roster),
      inboxes_(inboxes),
      ended_streams_(options.tasks.size()),
      membership_(options, self, roster, authenticator_),
      has_membership_(options.self == kMembershipTask),
      acceptor_(options) {
  call_server_.make_handler = [this](const std::string& method, const wire::Claim& caller, IncomingCall& call,
                                     grpc::Status& status) { return make_handler(method, caller, call, status); };
  authenticator_.set_on_proof([this](const std::string& peer) { acceptor_.set_proven(peer); });
  grpc::ServerBuilder builder;
  configure(builder, options);
  grpc_acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, make_server_credentials(tls));
  builder.RegisterAsyncGenericService(&call_server_.service);
  queue_ = builder.AddCompletionQueue();
  call_server_.queue = queue_.get();
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    queue_->Shutdown();
    run_queue(*queue_);
    bad_input("{}: gRPC cannot listen on {}{}", options.tasks[options.self].name, acceptor_.address(),
              tls.is_on() ? "; --tls-cert and --tls-key must be matching PEM files, and --tls-ca a PEM file" : "");
  }
  IncomingCall::await(call_server_);
  thread_ = std::thread([this] { run_queue(*queue_); });
  acceptor_.open([this](int connection) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.fd = connection;
    grpc_acceptor_->HandleNewConnection(&parameters);
  });
}

Listener::~Listener() {
  acceptor_.close();
  server_->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));
  {
    const std::lock_guard lock(mutex_);
    // On the thread that starts operations, so that none starts afterwards.
    new PostedWork(*queue_, [this] {
      call_server_.is_closed = true;
      queue_->Shutdown();
    });
    is_closed_ = true;
  }
  thread_.join();
}

void Listener::announce_arrivals() {
  post([this] { membership_.announce_arrivals(); });
}

void Listener::announce_absences() {
  if (!has_membership_) return;
  post([this] { membership_.announce_absences(); });
}

void Listener::leave(std::chrono::milliseconds longest) {
  post([this] {
    for (IncomingCall* const call : call_server_.calls) call->finish(grpc::Status::OK);
  });
  const auto until = SteadyClock::now() + longest;
  while (SteadyClock::now() < until) {
    bool is_empty = false;
    post_and_wait([&] { is_empty = call_server_.calls.empty(); });
    if (is_empty) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void Listener::break_off() {
  post([this] {
    for (IncomingCall* const call : call_server_.calls) call->cancel();
  });
}

std::unique_ptr<CallHandler> Listener::make_handler(const std::string& method, const wire::Claim& caller,
                                                    IncomingCall& call, grpc::Status& status) {
  if (method == kMembershipMethod) {
    if (has_membership_) return membership_.make_handler(caller, call);
    status = {StatusCode::FAILED_PRECONDITION, "tasks join at task 0"};
  } else if (method != kDataMethod) {
    status = {StatusCode::UNIMPLEMENTED, "there is no such method"};
  } else if (!roster_.admit(caller.from(), caller.instance())) {
    authenticator_.report(fmt::format("refused a data stream: it is from another process than {}", caller.from()));
    status = {StatusCode::PERMISSION_DENIED, "another process is that task"};
  } else {
    return std::make_unique<DataHandler>(caller.from(), *this);
  }
  return nullptr;
}

void Listener::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (!is_closed_) new PostedWork(*queue_, std::move(work));
}

void Listener::post_and_wait(const std::function<void()>& work) {
  std::mutex mutex;
  std::condition_variable done;
  bool is_done = false;
  post([&] {
    work();
    const std::lock_guard lock(mutex);
    is_done = true;
    done.notify_one();
  });
  std::unique_lock lock(mutex);
  done.wait(lock, [&] { return is_done; });
}

}  // namespace trireme::comm::rpc
