// What a completion queue gives back: each operation under way has an event, whose function is called, by the thread
// that turns the queue, when the operation ends. Used by Outlet and Listener.
#pragma once

#include <grpcpp/completion_queue.h>

#include <functional>
#include <utility>

namespace trireme::comm::rpc {

class Event {
 public:
  explicit Event(std::function<void(bool)> then) : then_(std::move(then)) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void* tag() { return this; }
  void happen(bool is_ok) { then_(is_ok); }

 private:
  std::function<void(bool)> then_;
};

// Until the queue is shut down and empty.
inline void turn(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool is_ok = false;
  while (queue.Next(&tag, &is_ok)) static_cast<Event*>(tag)->happen(is_ok);
}

}  // namespace trireme::comm::rpc
