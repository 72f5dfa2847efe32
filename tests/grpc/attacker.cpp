#include "attacker.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <grpcpp/generic/generic_stub.h>
#include <sys/socket.h>

#include <cstring>
#include <random>

#include "tests/comm/suite_check.hpp"
#include "trireme/base/unique_fd.hpp"
#include "trireme/comm/grpc/control.pb.h"
#include "trireme/comm/grpc/frame.hpp"
#include "trireme/comm/grpc/grpc_support.hpp"
#include "trireme/comm/grpc/listener.hpp"
#include "trireme/comm/grpc/proof.hpp"

namespace trireme::comm::testkit {
namespace {

namespace wire = rpc::wire;

using grpc::StatusCode;

constexpr const char* kNoMethod = "/no/such";  // after a good proof, the answer is that there is none
constexpr const char* kMethods[] = {rpc::kMembershipMethod, rpc::kDataMethod, kNoMethod, rpc::kChallengeMethod};

std::string random_text(std::mt19937& random, std::size_t most) {
  std::string bytes(random() % most, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

void send_raw(const std::string& address, const std::string& bytes) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in target{};
  target.sin_family = AF_INET;
  target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  target.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&target), sizeof target) != 0) return;
  send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

// A call of any method that sends some messages and ends.
grpc::Status call(grpc::GenericStub& stub, grpc::ClientContext& context, const std::string& method,
                  const std::vector<std::string>& messages) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool is_ok = true;
  const auto next = [&] { return queue.Next(&tag, &is_ok) && is_ok; };
  const auto stream = stub.PrepareCall(&context, method, &queue);
  stream->StartCall(nullptr);
  bool goes_on = next();
  for (const std::string& message : messages) {
    if (!goes_on) break;
    stream->Write(rpc::to_buffer(message), nullptr);
    goes_on = next();
  }
  if (goes_on) {
    stream->WritesDone(nullptr);
    next();
  }
  grpc::ByteBuffer reply;
  do {
    stream->Read(&reply, nullptr);
  } while (next());
  grpc::Status status;
  stream->Finish(&status, nullptr);
  next();
  return status;
}

// What a caller has to show; by hand, and so wrong in every way that a test needs.
struct Exchange {
  std::string claim, challenge, proof;
};

Exchange prove(grpc::GenericStub& stub, const wire::Claim& claim, const std::string& secret) {
  Exchange exchange;
  exchange.claim = claim.SerializeAsString();
  grpc::ClientContext context;
  context.AddMetadata(rpc::kClaimKey, exchange.claim);
  call(stub, context, rpc::kChallengeMethod, {});
  const auto& answer = context.GetServerTrailingMetadata();
  if (const auto found = answer.find(rpc::kChallengeKey); found != answer.end()) {
    exchange.challenge = {found->second.data(), found->second.size()};
  }
  exchange.proof = rpc::caller_proof(secret, exchange.claim, exchange.challenge);
  return exchange;
}

grpc::Status call_with(grpc::GenericStub& stub, const Exchange& exchange, const std::string& method,
                       const std::vector<std::string>& messages) {
  grpc::ClientContext context;
  context.AddMetadata(rpc::kClaimKey, exchange.claim);
  context.AddMetadata(rpc::kChallengeKey, exchange.challenge);
  context.AddMetadata(rpc::kProofKey, exchange.proof);
  return call(stub, context, method, messages);
}

wire::Claim claim_of(const std::vector<rpc::RpcTask>& tasks, int from, int to, const std::string& method,
                     const std::string& instance) {
  wire::Claim claim;
  claim.set_method(method);
  claim.set_from(from);
  claim.set_instance(instance);
  claim.set_to(to);
  claim.set_address(tasks[to].address);
  claim.set_nonce(rpc::random_bytes(rpc::kNonceBytes));
  return claim;
}

}  // namespace

class Attacker::Impl {
 public:
  Impl(const std::vector<rpc::RpcTask>& tasks, std::string secret) : tasks_(tasks), secret_(std::move(secret)) {
    for (const rpc::RpcTask& task : tasks) channels_.push_back(rpc::make_channel(task.address, {}, {}));
  }

  void attack(int number) {
    const std::size_t target = static_cast<std::size_t>(number / kKinds) % tasks_.size();
    const std::string method = kMethods[static_cast<std::size_t>(number / (2 * kKinds)) % std::size(kMethods)];
    const std::string garbage = random_text(random_, 300);
    grpc::GenericStub stub(channels_[target]);
    grpc::ClientContext context;
    switch (number % kKinds) {
      case 0:
        return send_raw(tasks_[target].address, random_text(random_, 4000));
      case 1:
        return send_raw(tasks_[target].address, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + random_text(random_, 4000));
      case 2:
        return expect_refused(StatusCode::UNAUTHENTICATED, call(stub, context, method_that_needs_proof(method), {}));
      case 3:
        return expect_refused(StatusCode::UNAUTHENTICATED, join(target, secret_ + "x"));
      case 4:
        return expect_refused(StatusCode::UNAUTHENTICATED, call(stub, context, rpc::kDataMethod, {garbage}));
      case 5:
        context.AddMetadata(rpc::kClaimKey, garbage);
        context.AddMetadata(rpc::kChallengeKey, garbage);
        context.AddMetadata(rpc::kProofKey, garbage);
        return expect_refused(StatusCode::UNAUTHENTICATED, call(stub, context, method, {garbage}));
      case 6: {
        const Exchange exchange = prove(stub, claim(target, method), secret_);
        call_with(stub, exchange, method, {garbage, garbage});
        return;
      }
      case 7:
        return expect_refused(StatusCode::FAILED_PRECONDITION, join(target, secret_));
      case 8: {
        // What was good once is not a second time, neither on this connection nor on another.
        const Exchange exchange = prove(stub, claim(target, kNoMethod), secret_);
        expect_refused(StatusCode::UNIMPLEMENTED, call_with(stub, exchange, kNoMethod, {}));
        expect_refused(StatusCode::UNAUTHENTICATED, call_with(stub, exchange, kNoMethod, {}));
        expect_refused(StatusCode::UNAUTHENTICATED, call_with(stub, exchange, rpc::kDataMethod, {}));
        grpc::GenericStub other(rpc::make_channel(tasks_[target].address, {}, {}));
        return expect_refused(StatusCode::ABORTED, call_with(other, exchange, kNoMethod, {}));
      }
      case 9: {
        // Somebody between, to whom one task speaks, cannot pass that on to another.
        const std::size_t meant = (target + 1) % tasks_.size();
        grpc::ClientContext asking;
        asking.AddMetadata(rpc::kClaimKey, claim(meant, kNoMethod).SerializeAsString());
        return expect_refused(StatusCode::NOT_FOUND, call(stub, asking, rpc::kChallengeMethod, {}));
      }
      default:
        // Too large, and then some KB that would be many MB: neither is read.
        if (number / kKinds % 2 == 0) context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
        return expect_refused(StatusCode::UNAUTHENTICATED, call(stub, context, rpc::kDataMethod, {too_large_}));
    }
  }

  std::string surprises() const { return surprises_; }

 private:
  static std::string method_that_needs_proof(const std::string& method) {
    return method == rpc::kChallengeMethod ? rpc::kDataMethod : method;
  }

  // As a second process that is the next task.
  wire::Claim claim(std::size_t target, const std::string& method) const {
    const std::size_t claimed = (target + 1) % tasks_.size();
    return claim_of(tasks_, static_cast<int>(claimed), static_cast<int>(target), method, "made up");
  }

  grpc::Status join(std::size_t target, const std::string& secret) {
    grpc::GenericStub stub(channels_[target]);
    const wire::Claim claimed = claim(target, rpc::kMembershipMethod);
    wire::MemberMessage message;
    wire::Identity& from = *message.mutable_join()->mutable_from();
    from.set_index(claimed.from());
    from.set_name(tasks_[claimed.from()].name);
    from.set_pid(1);
    from.set_instance(claimed.instance());
    for (const rpc::RpcTask& task : tasks_) message.mutable_join()->add_tasks(task.name + " " + task.address);
    return call_with(stub, prove(stub, claimed, secret), rpc::kMembershipMethod, {message.SerializeAsString()});
  }

  void expect_refused(StatusCode expected, const grpc::Status& status) {
    if (status.error_code() == expected) return;
    surprises_ += fmt::format("{} instead of {}: {}\n", static_cast<int>(status.error_code()),
                              static_cast<int>(expected), status.error_message());
  }

  const std::vector<rpc::RpcTask> tasks_;
  static constexpr int kKinds = 11;
  const std::string secret_;
  const std::string too_large_ = std::string(5 << 20, '\0');
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::mt19937 random_{17};
  std::string surprises_;
};

Attacker::Attacker(const std::vector<rpc::RpcTask>& tasks, const std::string& secret)
    : impl_(std::make_unique<Impl>(tasks, secret)) {}
Attacker::~Attacker() = default;
void Attacker::attack(int number) { impl_->attack(number); }
std::string Attacker::surprises() const { return impl_->surprises(); }

namespace {

std::string frame_of(const rpc::FrameHeader& header, const std::string& data) {
  const rpc::FrameBytes bytes = encode(header);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) + data;
}

grpc::Status stream_from(const std::vector<rpc::RpcTask>& tasks, int task, const std::vector<std::string>& frames) {
  grpc::GenericStub stub(rpc::make_channel(tasks[0].address, {}, {}));
  const wire::Claim claim = claim_of(tasks, task, 0, rpc::kDataMethod, fmt::format("instance {}", task));
  return call_with(stub, prove(stub, claim, "open sesame"), rpc::kDataMethod, frames);
}

void expect_harmless(const std::vector<rpc::RpcTask>& tasks, const std::string& malformed) {
  const rpc::RpcOptions options{.tasks = tasks, .self = 0, .secret = "open sesame"};
  const rpc::Tls no_tls;
  rpc::Roster roster(options);
  rpc::Inboxes inboxes;
  const rpc::Identity self = rpc::own_identity(options);
  const rpc::Listener listener(options, no_tls, self, roster, inboxes);
  for (const int task : {1, 2}) {
    rpc::Identity identity;
    identity.set_index(task);
    identity.set_name(tasks[task].name);
    identity.set_host("here");
    identity.set_pid(task);
    identity.set_instance(fmt::format("instance {}", task));
    roster.admit(identity);
  }
  std::string memory = "....";
  const auto receive = inboxes.get(0)->post(1, 5, std::as_writable_bytes(std::span(memory)));

  const grpc::Status refused = stream_from(tasks, 2, {malformed});
  expect(refused.error_code() == StatusCode::INVALID_ARGUMENT, "a malformed frame ends its stream with an error");
  expect(roster.presence(2) == Presence::lost, "who sends it is lost");
  expect(roster.presence(1) == Presence::here, "others are not");

  const rpc::FrameHeader part{.tag = 5, .total_bytes = 4};
  const grpc::Status taken =
      stream_from(tasks, 1, {frame_of(part, "good"), frame_of({.kind = rpc::FrameKind::end, .sequence = 1}, "")});
  expect(taken.ok(), "good frames are taken");
  expect(receive->is_complete && memory == "good", "and arrive");
  expect(roster.presence(1) == Presence::left, "and an end is heard");
}

}  // namespace

std::string send_malformed_frames(const std::vector<rpc::RpcTask>& tasks) {
  rpc::silence_library();
  std::mt19937 random(23);
  for (const std::string& malformed :
       {std::string(), std::string("short"), random_text(random, 3000) + std::string(50, 'x'),
        frame_of({.total_bytes = 10}, "more than ten bytes"), frame_of({.context = -7, .total_bytes = 4}, "abcd"),
        frame_of({.tag = 5000, .total_bytes = 4}, "abcd"),
        frame_of({.tag = 1, .sequence = std::uint64_t{1} << 50, .total_bytes = 4}, "abcd"),
        frame_of({.kind = rpc::FrameKind::end}, "with data")}) {
    expect_harmless(tasks, malformed);
  }
  return "";
}

}  // namespace trireme::comm::testkit
