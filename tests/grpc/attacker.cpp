#include "attacker.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <grpcpp/generic/generic_stub.h>
#include <sys/socket.h>

#include <cstring>
#include <random>

#include "tests/comm/suite_check.hpp"
#include "trireme/base/unique_fd.hpp"
#include "trireme/comm/grpc/control.grpc.pb.h"
#include "trireme/comm/grpc/frame.hpp"
#include "trireme/comm/grpc/listener.hpp"
#include "trireme/comm/grpc/security.hpp"

namespace trireme::comm::testkit {
namespace {

using grpc::StatusCode;
using rpc::wire::Control;

constexpr const char* kMethods[] = {"/trireme.comm.rpc.wire.Control/Hello",
                                    "/trireme.comm.rpc.wire.Control/Health",
                                    "/trireme.comm.rpc.wire.Control/Statistics",
                                    "/trireme.comm.rpc.wire.Control/Shutdown",
                                    rpc::kDataMethod,
                                    "/no/such"};

grpc::ByteBuffer to_buffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

std::string random_bytes(std::mt19937& random, std::size_t most) {
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
    stream->Write(to_buffer(message), nullptr);
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

}  // namespace

class Attacker::Impl {
 public:
  Impl(const std::vector<rpc::RpcTask>& tasks, std::string secret) : tasks_(tasks), secret_(std::move(secret)) {
    for (const rpc::RpcTask& task : tasks) channels_.push_back(rpc::make_channel(task.address, {}, {}));
  }

  void attack(int number) {
    const std::size_t target = static_cast<std::size_t>(number / kKinds) % tasks_.size();
    const std::string method = kMethods[static_cast<std::size_t>(number / (2 * kKinds)) % std::size(kMethods)];
    const std::string garbage = random_bytes(random_, 300);
    grpc::GenericStub stub(channels_[target]);
    grpc::ClientContext context;
    switch (number % kKinds) {
      case 0:
        return send_raw(tasks_[target].address, random_bytes(random_, 4000));
      case 1:
        return send_raw(tasks_[target].address, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + random_bytes(random_, 4000));
      case 2:
        return expect_refused(StatusCode::UNAUTHENTICATED, hello(target, ""));
      case 3:
        return expect_refused(StatusCode::UNAUTHENTICATED, hello(target, secret_ + "x"));
      case 4:
        // Only what is no message at all is refused before its secret is looked at.
        return expect_refused(StatusCode::UNAUTHENTICATED, call(stub, context, rpc::kDataMethod, {garbage}));
      case 5:
        call(stub, context, method, {garbage});
        return;
      case 6:
        context.AddMetadata(rpc::kSecretKey, secret_);
        if (method.ends_with("Shutdown")) return;  // with the secret it is a good call
        context.AddMetadata(rpc::kTaskKey, "1");
        context.AddMetadata(rpc::kInstanceKey, "made up");
        context.AddMetadata(rpc::kStreamsKey, "2");
        call(stub, context, method, {garbage, garbage});
        return;
      case 7:
        return expect_refused(StatusCode::FAILED_PRECONDITION, hello(target, secret_));
      case 8:
        return expect_refused(StatusCode::RESOURCE_EXHAUSTED, call(stub, context, kMethods[0], {too_large_}));
      default:
        // Some KB that would be many MB: it is not unpacked, and so is no message at all.
        context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
        return expect_refused(StatusCode::INTERNAL, call(stub, context, kMethods[0], {too_large_}));
    }
  }

  std::string surprises() const { return surprises_; }

 private:
  // As a second process that is the next task.
  grpc::Status hello(std::size_t target, const std::string& secret) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    if (!secret.empty()) context.AddMetadata(rpc::kSecretKey, secret);
    rpc::wire::HelloRequest request;
    const std::size_t claimed = (target + 1) % tasks_.size();
    request.mutable_from()->set_index(static_cast<int>(claimed));
    request.mutable_from()->set_name(tasks_[claimed].name);
    request.mutable_from()->set_pid(1);
    request.mutable_from()->set_instance("made up");
    request.set_to(static_cast<int>(target));
    for (const rpc::RpcTask& task : tasks_) request.add_tasks(task.name + " " + task.address);
    rpc::wire::HelloReply reply;
    return Control::NewStub(channels_[target])->Hello(&context, request, &reply);
  }

  void expect_refused(StatusCode expected, const grpc::Status& status) {
    if (status.error_code() == expected) return;
    surprises_ += fmt::format("{} instead of {}: {}\n", static_cast<int>(status.error_code()),
                              static_cast<int>(expected), status.error_message());
  }

  const std::vector<rpc::RpcTask> tasks_;
  static constexpr int kKinds = 10;
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

grpc::Status stream_from(const std::string& address, int task, const std::vector<std::string>& frames) {
  grpc::GenericStub stub(rpc::make_channel(address, {}, {}));
  grpc::ClientContext context;
  context.AddMetadata(rpc::kSecretKey, "open sesame");
  context.AddMetadata(rpc::kTaskKey, std::to_string(task));
  context.AddMetadata(rpc::kInstanceKey, fmt::format("instance {}", task));
  context.AddMetadata(rpc::kStreamsKey, "1");
  return call(stub, context, rpc::kDataMethod, frames);
}

void expect_harmless(const std::vector<rpc::RpcTask>& tasks, const std::string& malformed) {
  const rpc::RpcOptions options{.tasks = tasks, .self = 0, .secret = "open sesame"};
  const rpc::Tls no_tls;
  rpc::Roster roster(options);
  rpc::Inboxes inboxes;
  const rpc::Identity self = rpc::own_identity(options);
  const rpc::Listener listener(options, no_tls, self, roster, inboxes, {});
  for (const int task : {1, 2}) {
    const std::string name = tasks[static_cast<std::size_t>(task)].name;
    roster.admit(
        {.index = task, .name = name, .host = "here", .pid = task, .instance = fmt::format("instance {}", task)});
  }
  std::string memory = "....";
  const auto receive = inboxes.get(0)->post(1, 5, std::as_writable_bytes(std::span(memory)));

  const grpc::Status refused = stream_from(tasks[0].address, 2, {malformed});
  expect(refused.error_code() == StatusCode::INVALID_ARGUMENT, "a malformed frame ends its stream with an error");
  expect(roster.presence(2) == Presence::lost, "who sends it is lost");
  expect(roster.presence(1) == Presence::here, "others are not");

  const rpc::FrameHeader part{.tag = 5, .total_bytes = 4};
  const grpc::Status taken =
      stream_from(tasks[0].address, 1, {frame_of(part, "good"), frame_of({.kind = rpc::FrameKind::goodbye}, "")});
  expect(taken.ok(), "good frames are taken");
  expect(receive->is_complete && memory == "good", "and arrive");
  expect(roster.presence(1) == Presence::left, "and a goodbye is heard");
}

}  // namespace

std::string send_malformed_frames(const std::vector<rpc::RpcTask>& tasks) {
  rpc::silence_library();
  std::mt19937 random(23);
  for (const std::string& malformed :
       {std::string(), std::string("short"), random_bytes(random, 3000) + std::string(50, 'x'),
        frame_of({.total_bytes = 10}, "more than ten bytes"), frame_of({.context = -7, .total_bytes = 4}, "abcd"),
        frame_of({.tag = 5000, .total_bytes = 4}, "abcd"),
        frame_of({.tag = 1, .sequence = std::uint64_t{1} << 50, .total_bytes = 4}, "abcd"),
        frame_of({.kind = rpc::FrameKind::goodbye}, "with data")}) {
    expect_harmless(tasks, malformed);
  }
  return "";
}

}  // namespace trireme::comm::testkit
