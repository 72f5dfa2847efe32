// The worker's side of parameter servers (ps/server.hpp): pushes gradients as backward completes them and receives new
// values, most urgent first, on a separate thread. Made by workers for parallel::Replicas.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "trireme/base/clock.hpp"
#include "trireme/parallel/gradient_sync.hpp"
#include "trireme/perf/recorder.hpp"
#include "trireme/ps/messages.hpp"
#include "trireme/ps/placement.hpp"

namespace trireme::ps {

struct WorkerOptions : UpdateRules {
  Strategy placement = Strategy::round_robin;
  // distributed_replicated: a worker's copy changes at the end of a step, after all servers have all workers'
  // gradients. Otherwise each value arrives as soon as it is ready.
  bool replicated = false;
  bool overlap = true;  // false: push only after backward; finish all within the step
  std::int64_t chunk_elements = 1 << 20;
  std::function<void()> start_thread = {};  // called first on the message thread
  perf::Recorder* recorder = nullptr;       // gets a span per bucket; null: no tracing
};

class WorkerSync : public parallel::GradientSync {
 public:
  // The first `workers` ranks are the workers, the others the servers. Only this object may use the communicator.
  WorkerSync(comm::Communicator& communicator, int workers, WorkerOptions options);
  ~WorkerSync() override;  // without leave(), others see this worker as lost

  void configure(const Graph& graph, SessionOptions& options) override;
  void open(std::vector<GradientBucket> buckets, std::uint64_t step) override;

  Exchange kind() const override {
    return options_.mode == Mode::asynchronous ? Exchange::serve_each : Exchange::serve;
  }
  void begin_step(std::uint64_t step) override;
  void start(int bucket) override;
  bool done(int bucket) override;
  void wait(int bucket) override;
  void end_step() override;
  void check() override;

  void pull() override;
  void pull_state() override;
  void settle() override;
  void rest() override;
  void leave() override;

  bool is_lock_step() const override { return options_.mode == Mode::synchronous && options_.backup_workers == 0; }
  void call_end() override;
  bool end_was_called() const override { return end_was_called_.load(std::memory_order_relaxed); }
  void set_vote(float value) override { vote_ = value; }
  float agreed() const override;
  void set_weight(float weight) override { weight_ = weight; }
  std::span<const GradientBucket> buckets() const override { return buckets_; }
  std::span<const double> communication_seconds() const override { return {&step_seconds_, 1}; }

  const Placement& placement() const { return *placement_; }
  std::vector<std::string> server_statistics();  // of each server, as JSON text

 private:
  struct Chunk {
    int bucket = 0, server = 0;
    std::uint32_t index = 0;  // on its server
    std::span<float> gradients;
    std::vector<std::span<float>> arrays;  // the values, then the rule's state arrays
    std::int64_t priority = 0;
    std::uint64_t version = 0;
    bool awaited = false;
  };
  struct ServerLink {
    MessageReceiver inbox;
    MessageSender outbox;
    std::vector<int> chunks;  // by index on the server
    std::string text = {};
  };
  struct Order {  // a request of the computing thread to the message thread: what to send
    Kind kind = Kind::push;
    int bucket = -1;
    std::uint32_t array = 0;  // pull
    float learning_rate = 0, weight = 1, vote = 0;
  };
  // Spans of a bucket from push until its new values are in place. Buckets overlap, so each has its own track.
  struct BucketTrace {
    perf::Track* track = nullptr;  // null: no tracing
    std::int32_t label = 0;
    std::int64_t pushed = 0;  // nanoseconds; 0: nothing under way, or no tracing now
  };

  void stop_timing();
  void name_spans();
  // Before the thread starts.
  void cut_into_chunks();
  void add_chunks(int bucket, int server, std::size_t part, ElementRange range);
  Setup setup_for(const ServerLink& server, std::uint64_t step) const;
  void exchange_initial_values(std::uint64_t step);

  void enqueue(Order order);
  void wait_until(const std::function<bool()>& condition);
  void throw_if_failed() const;

  // On the thread.
  void work() noexcept;
  bool take_orders();  // false: no more work, ever
  void carry_out(const Order& order);
  void send_pull(int chunk, std::uint32_t array = 0);
  bool has_array(const Chunk& chunk, std::uint32_t array) const { return array < chunk.arrays.size(); }
  bool progress(int server);
  bool note_left();
  void obey(int server, const Header& header);
  void finish_chunk(int chunk, const Header& header);
  void add_span(std::size_t bucket);
  void count_answer();
  void count_vote(int chunk, const Header& header);
  void check_servers(SteadyClock::time_point last_move) const;
  void check_presence() const;
  bool is_idle() const;
  std::string name_of(int server) const;

  comm::Communicator& communicator_;
  int workers_;
  WorkerOptions options_;
  std::unique_ptr<Placement> placement_;
  std::vector<GradientBucket> buckets_;
  std::vector<Chunk> chunks_;
  std::vector<ServerLink> servers_;
  bool left_ordered_ = false;  // used only by the thread
  int voting_chunk_ = 0;       // the one needed first: its answer has the votes
  float vote_ = 0, weight_ = 1;
  double step_seconds_ = 0;
  std::vector<Order> held_back_;  // without overlap: until backward has ended

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // for the computing thread
  std::condition_variable ordered_;  // for the message thread
  std::deque<Order> orders_;
  std::vector<int> missing_;  // [bucket]: chunks whose new values are not in place
  std::vector<BucketTrace> traces_;
  int answers_missing_ = 0;  // of all buckets, including texts
  int acknowledgements_missing_ = 0;
  bool vote_missing_ = false;
  float agreed_ = 0;
  double busy_seconds_ = 0;  // since the last step ended
  std::optional<SteadyClock::time_point> busy_since_;
  bool stopping_ = false, left_ = false;
  std::exception_ptr error_;
  std::atomic<bool> has_failed_{false}, end_was_called_{false};
  std::thread thread_;
};

}  // namespace trireme::ps
