#include "impostor.hpp"

#include <arpa/inet.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <sys/socket.h>

#include "trireme/base/unique_fd.hpp"
#include "trireme/comm/grpc/grpc_support.hpp"
#include "trireme/comm/grpc/proof.hpp"

namespace trireme::comm::testkit {
namespace {

std::string listen_silently(const std::string& address) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  own.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  const int yes = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) return "";
  listen(listener.get(), 10);
  const UniqueFd caller(accept(listener.get(), nullptr, nullptr));
  std::string heard;
  char buffer[4096];
  for (ssize_t count = 0; (count = read(caller.get(), buffer, sizeof buffer)) > 0;) {
    heard.append(buffer, count);
  }
  return heard;
}

// Calls one after the other: for a challenge, which it gives, and then the one that carries the proof.
std::string answer(const std::string& address, Impostor kind) {
  grpc::AsyncGenericService service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterAsyncGenericService(&service);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  std::string heard;
  void* tag = nullptr;
  bool is_ok = true;
  for (bool has_proof = false; !has_proof;) {
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter call(&context);
    service.RequestCall(&context, &call, queue.get(), queue.get(), nullptr);
    queue->Next(&tag, &is_ok);
    std::string proof;
    for (const auto& [key, value] : context.client_metadata()) {
      heard += std::string(key.data(), key.size()) + ": " + std::string(value.data(), value.size()) + "\n";
      if (key == rpc::kProofKey) proof = {value.data(), value.size()};
    }
    has_proof = !proof.empty();
    grpc::Status status;
    if (!has_proof) {
      context.AddTrailingMetadata(rpc::kChallengeKey, rpc::random_bytes(56));
    } else if (kind == Impostor::refuses) {
      status = {grpc::StatusCode::UNAUTHENTICATED, "no"};
    } else if (kind != Impostor::agrees) {
      if (kind == Impostor::guesses) context.AddInitialMetadata(rpc::kProofKey, rpc::random_bytes(rpc::kProofBytes));
      if (kind == Impostor::reflects) context.AddInitialMetadata(rpc::kProofKey, proof);
      call.SendInitialMetadata(nullptr);
      queue->Next(&tag, &is_ok);
      grpc::ByteBuffer message;  // what a caller says who believes it
      call.Read(&message, nullptr);
      queue->Next(&tag, &is_ok);
      if (is_ok) heard += kBelieved;
    }
    call.Finish(status, nullptr);
    queue->Next(&tag, &is_ok);
  }
  server->Shutdown();
  queue->Shutdown();
  while (queue->Next(&tag, &is_ok)) continue;
  return heard;
}

}  // namespace

std::string to_string(Impostor kind) {
  switch (kind) {
    case Impostor::silent:
      return "IsSilent";
    case Impostor::refuses:
      return "Refuses";
    case Impostor::agrees:
      return "Agrees";
    case Impostor::guesses:
      return "Guesses";
    case Impostor::stalls:
      return "Stalls";
    default:
      return "Reflects";
  }
}

std::string listen_as_impostor(const std::string& address, Impostor kind) {
  rpc::silence_library();
  return kind == Impostor::silent ? listen_silently(address) : answer(address, kind);
}

}  // namespace trireme::comm::testkit
