// A device that is not the host, for tests of everything that has to know the difference: memory that host code cannot
// touch, work that is done as late as possible and in the least convenient order that its streams and events allow. Its
// kernels are the reference backend's.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "trireme/backend/registry.hpp"
#include "trireme/backend/tuner.hpp"
#include "trireme/base/error.hpp"

namespace trireme::testkit {

// Where the devices of a group meet, as threads of one process.
class GroupHall {
 public:
  // Each of `ranks` devices brings values and gets the sum, added up in the order of ranks.
  void sum(int rank, int ranks, float* values, std::size_t count) {
    std::unique_lock lock(mutex_);
    const int number = sums_of_[rank]++;
    Round& round = rounds_[number];
    round.brought[rank].assign(values, values + count);
    changed_.notify_all();
    changed_.wait(lock, [&] { return static_cast<int>(round.brought.size()) == ranks; });
    std::fill(values, values + count, 0.0f);
    for (const auto& [who, what] : round.brought) {
      for (std::size_t i = 0; i < count; ++i) values[i] += what.at(i);
    }
    if (++round.taken == ranks) rounds_.erase(number);
  }

  // A message on its way: there when it was received.
  struct Parcel {
    std::vector<std::byte> content;
    bool is_there = false;
  };
  std::string name_group() {
    const std::lock_guard lock(mutex_);
    return "hall " + std::to_string(groups_++);
  }
  std::shared_ptr<Parcel> send(const std::string& group, int from, const void* memory, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto* const begin = static_cast<const std::byte*>(memory);
    auto parcel = std::make_shared<Parcel>();
    parcel->content.assign(begin, begin + bytes);
    parcels_[{group, from}].push_back(parcel);
    return parcel;
  }
  bool is_there(const Parcel& parcel) {
    const std::lock_guard lock(mutex_);
    return parcel.is_there;
  }
  bool receive(const std::string& group, int from, void* memory, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto& queue = parcels_[{group, from}];
    if (queue.empty()) return false;
    EXPECT_EQ(queue.front()->content.size(), bytes) << "another message is received than was sent";
    std::memcpy(memory, queue.front()->content.data(), std::min(bytes, queue.front()->content.size()));
    queue.front()->is_there = true;
    queue.pop_front();
    return true;
  }

 private:
  struct Round {
    std::map<int, std::vector<float>> brought;  // by rank
    int taken = 0;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, int> sums_of_;  // rank -> how many it has begun
  std::map<int, Round> rounds_;
  int groups_ = 0;
  std::map<std::pair<std::string, int>, std::deque<std::shared_ptr<Parcel>>> parcels_;  // by group and sender
};

class ApartDevice final : public ComputeDevice {
 public:
  struct Options {
    bool records = true;
    std::shared_ptr<GroupHall> hall = nullptr;  // of those that can form a group
  };
  explicit ApartDevice(Options options) : options_(std::move(options)) {}

  std::string name() const override { return "apart"; }

  DeviceMemory allocate(std::int64_t bytes, std::string_view) override {
    if (bytes == 0) return {};
    const auto size = static_cast<std::size_t>(bytes);
    void* const memory = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail(ErrorKind::failed, "no memory for the test device");
    regions_.emplace(static_cast<std::byte*>(memory), size);
    return {std::shared_ptr<void>(memory,
                                  [this, size](void* p) {
                                    finish();
                                    regions_.erase(static_cast<std::byte*>(p));
                                    munmap(p, size);
                                  }),
            bytes};
  }
  DeviceMemory allocate_staging(std::int64_t bytes) override {
    const DeviceMemory memory = host_device().allocate(bytes, "staging");
    return {std::shared_ptr<void>(memory.at(0), [this, memory](void*) { finish(); }), bytes};
  }

  void upload(void* to, const void* from, std::int64_t bytes) override { copy_checked(to, from, bytes, {to}); }
  void download(void* to, const void* from, std::int64_t bytes) override { copy_checked(to, from, bytes, {from}); }
  void copy(void* to, const void* from, std::int64_t bytes) override { copy_checked(to, from, bytes, {to, from}); }

  void synchronize() override {
    refuse_while_capturing("synchronize()");
    const Access access(*this);
    // The streams from the last to the first: those of an exchange run ahead of what they forget to wait for.
    while (advance_all() || waits_for_others()) {
    }
    for (const auto& [stream, queue] : streams_) {
      if (!queue.empty()) fail(ErrorKind::failed, "stream {} waits for an event that never comes", stream);
    }
  }

  void set_context(const RunContext& context) override {
    enqueue([this, context] { context_ = context; });
  }
  const RunContext& context() const { return context_; }

  std::unique_ptr<DeviceGraph> capture(const std::function<void()>& work) override;
  int graphs() const { return graphs_; }

  int streams() const override { return 3; }
  int outward_stream() const override { return 3; }
  int inward_stream() const override { return 4; }
  int input_stream() const override { return 5; }
  int add_stream() override { return last_stream_++; }
  void set_stream(int stream) override { stream_ = stream; }
  int record_event() override {
    passed_.push_back(false);
    const int id = static_cast<int>(passed_.size()) - 1;
    add({.kind = Item::Kind::event, .event = id});
    return id;
  }
  void wait_event(int event) override { add({.kind = Item::Kind::wait, .event = event}); }
  void wait_event_on_host(int event) override {
    refuse_while_capturing("wait_event_on_host()");
    const Access access(*this);
    run_until(event);
  }

  // At the first look nothing has.
  bool has_passed(int event) override {
    if (looked_for_.insert(event).second) return false;
    wait_event_on_host(event);
    return true;
  }

  bool has_groups() const override { return options_.hall != nullptr; }
  std::string name_group() override { return options_.hall->name_group(); }
  std::unique_ptr<DeviceGroup> join_group(const GroupPlan& plan) override;

  void record_time(int index) override {
    enqueue([this, index] { times_[index] = std::chrono::steady_clock::now(); });
  }
  double seconds_between(int first, int second) override {
    synchronize();
    return std::chrono::duration<double>(times_.at(second) - times_.at(first)).count();
  }

  // Work of kernels, in the current stream.
  void enqueue(std::function<void()> work) { add({.kind = Item::Kind::work, .work = std::move(work)}); }
  void transfer(std::function<bool()> transfer) {
    add({.kind = Item::Kind::transfer, .transfer = std::move(transfer)});
  }

 private:
  struct Item {
    enum class Kind { work, event, wait, transfer } kind = Kind::work;
    std::function<void()> work = {};
    int event = -1;
    std::function<bool()> transfer = {};  // tries to; whether it is done
  };
  using Captured = std::vector<std::pair<int, Item>>;  // with streams
  class Tape;
  class Group;

  // Its memory can be touched while this lives.
  class Access {
   public:
    explicit Access(ApartDevice& device) : device_(device) { device_.protect(PROT_READ | PROT_WRITE); }
    ~Access() { device_.protect(PROT_NONE); }

   private:
    ApartDevice& device_;
  };
  void protect(int protection) {
    for (const auto& [begin, bytes] : regions_) mprotect(begin, bytes, protection);
  }

  void copy_checked(void* to, const void* from, std::int64_t bytes, const std::vector<const void*>& own) {
    for (const void* const each : own) {
      const auto region = regions_.upper_bound(static_cast<std::byte*>(const_cast<void*>(each)));
      const auto* const begin = static_cast<const std::byte*>(each);
      if (region == regions_.begin() || begin + bytes > std::prev(region)->first + std::prev(region)->second) {
        fail(ErrorKind::failed, "a copy of {} bytes from or to what is no memory of the device", bytes);
      }
    }
    enqueue([=] { std::memcpy(to, from, bytes); });
  }

  // Nothing that was given may find its memory gone.
  void finish() noexcept {
    try {
      synchronize();
    } catch (const Error&) {  // the test is failing already
      streams_.clear();
    }
  }
  void refuse_while_capturing(const char* what) const {
    if (tape_ != nullptr) fail(ErrorKind::failed, "{} while work is recorded", what);
  }
  void add(Item item) {
    if (tape_ != nullptr) {
      tape_->emplace_back(stream_, std::move(item));
    } else {
      streams_[stream_].push_back(std::move(item));
    }
  }
  // Does the next thing of a stream, unless it has to wait.
  bool advance(std::deque<Item>& stream) {
    if (stream.empty()) return false;
    Item& next = stream.front();
    if (next.kind == Item::Kind::wait && !passed_.at(next.event)) return false;
    if (next.kind == Item::Kind::transfer && !next.transfer()) return false;
    if (next.kind == Item::Kind::work) next.work();
    if (next.kind == Item::Kind::event) passed_[next.event] = true;
    stream.pop_front();
    return true;
  }
  bool advance_all() {
    bool moved = false;
    for (auto& [number, stream] : streams_) {
      while (advance(stream)) moved = true;
    }
    return moved;
  }
  // For a moment, if a stream can only go on when another device does.
  bool waits_for_others() {
    const auto waits = [](const auto& stream) {
      return !stream.second.empty() && stream.second.front().kind == Item::Kind::transfer;
    };
    if (std::none_of(streams_.begin(), streams_.end(), waits)) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    return true;
  }
  // No more than what has to be done for this event, unless another device has to do something.
  void run_until(int event) {
    const auto gives = [&](const Item& item) { return item.kind == Item::Kind::event && item.event == event; };
    for (auto& [number, stream] : streams_) {
      if (std::none_of(stream.begin(), stream.end(), gives)) continue;
      while (!passed_.at(event)) {
        if (advance(stream)) continue;
        if (stream.front().kind == Item::Kind::transfer) {
          advance_all();
          waits_for_others();
        } else {
          run_until(stream.front().event);
        }
      }
      return;
    }
    if (!passed_.at(event)) fail(ErrorKind::failed, "nobody gives event {}", event);
  }

  Options options_;
  std::map<std::byte*, std::size_t> regions_;
  std::map<int, std::deque<Item>, std::greater<>> streams_;  // the last first
  std::vector<bool> passed_;                                 // [event]
  std::set<int> looked_for_;                                 // events
  int stream_ = 0, last_stream_ = 6;
  Captured* tape_ = nullptr;
  int graphs_ = 0;
  RunContext context_;
  std::map<int, std::chrono::steady_clock::time_point> times_;
};

// A launch is work of stream 0, with other streams between its beginning and its end.
class ApartDevice::Tape final : public DeviceGraph {
 public:
  Tape(ApartDevice& device, Captured items) : device_(device), items_(std::move(items)) { check(); }

  void launch() override {
    std::map<int, int> events;  // captured -> of this launch
    for (const auto& [stream, item] : items_) {
      device_.set_stream(stream);
      if (item.kind == Item::Kind::event) {
        events[item.event] = device_.record_event();
      } else if (item.kind == Item::Kind::wait) {
        device_.wait_event(events.at(item.event));
      } else {
        device_.enqueue(item.work);
      }
    }
    device_.set_stream(0);
  }

 private:
  // What other streams do begins after something in the graph and ends before its end.
  void check() const {
    std::set<int> given, waited, begun{0}, open;
    std::map<int, int> last_event;
    for (const auto& [stream, item] : items_) {
      if (item.kind == Item::Kind::wait) {
        if (!given.contains(item.event)) fail(ErrorKind::failed, "a graph waits for what was before it");
        begun.insert(stream);
        for (const auto& [other, event] : last_event) {
          if (event == item.event) open.erase(other);
        }
      }
      if (!begun.contains(stream))
        fail(ErrorKind::failed, "stream {} is captured before it waits for stream 0", stream);
      if (stream != 0) open.insert(stream);
      if (item.kind == Item::Kind::event) {
        given.insert(item.event);
        last_event[stream] = item.event;
      }
    }
    if (!open.empty()) fail(ErrorKind::failed, "nobody waits for stream {} at the end of a graph", *open.begin());
  }

  ApartDevice& device_;
  Captured items_;
};

class ApartDevice::Group final : public DeviceGroup {
 public:
  Group(ApartDevice& device, const GroupPlan& plan)
      : device_(device), name_(plan.name), rank_(plan.rank), ranks_(plan.ranks) {}
  // As NCCL's, which waits for graphs of its sums to go first, for ever.
  ~Group() override { EXPECT_EQ(in_use_.use_count(), 1) << "a graph has sums of a group that goes"; }
  void sum(float* values, std::int64_t elements, const float* factor) override {
    device_.enqueue([this, values, elements, factor, in_use = in_use_] {
      for (std::int64_t i = 0; i < elements; ++i) values[i] *= *factor;
      device_.options_.hall->sum(rank_, ranks_, values, elements);
    });
  }
  void send(const void* memory, std::int64_t bytes, int) override {
    device_.transfer([this, memory, bytes, parcel = std::shared_ptr<GroupHall::Parcel>()]() mutable {
      if (!parcel) parcel = hall().send(name_, rank_, memory, static_cast<std::size_t>(bytes));
      return hall().is_there(*parcel);
    });
  }
  void receive(void* memory, std::int64_t bytes, int from) override {
    device_.transfer(
        [this, memory, bytes, from] { return hall().receive(name_, from, memory, static_cast<std::size_t>(bytes)); });
  }

 private:
  GroupHall& hall() const { return *device_.options_.hall; }

  ApartDevice& device_;
  std::string name_;
  int rank_, ranks_;
  std::shared_ptr<int> in_use_ = std::make_shared<int>();
};

inline std::unique_ptr<DeviceGraph> ApartDevice::capture(const std::function<void()>& work) {
  if (!options_.records) return nullptr;
  synchronize();
  Captured items;
  tape_ = &items;
  work();
  tape_ = nullptr;
  ++graphs_;
  return std::make_unique<Tape>(*this, std::move(items));
}

inline std::unique_ptr<DeviceGroup> ApartDevice::join_group(const GroupPlan& plan) {
  if (!plan.name.starts_with("hall ")) fail(ErrorKind::failed, "a group called '{}'", plan.name);
  return std::make_unique<Group>(*this, plan);
}

// The reference backend on such a device.
class ApartBackend final : public Backend {
 public:
  explicit ApartBackend(ApartDevice::Options options = {}) : device_(std::make_unique<ApartDevice>(options)) {}

  std::string name() const override { return "apart"; }
  ApartDevice& device() const override { return *device_; }
  KernelChoice choose(const KernelRequest& request) const override { return later(reference_->choose(request)); }
  KernelChoice choose_reorder(const TensorDesc& from, const Format& to) const override {
    return later(reference_->choose_reorder(from, to));
  }

 private:
  class LaterKernel final : public Kernel {
   public:
    LaterKernel(std::unique_ptr<Kernel> kernel, ApartDevice& device) : kernel_(std::move(kernel)), device_(device) {}
    std::unique_ptr<Kernel> another() const override {
      return std::make_unique<LaterKernel>(kernel_->another(), device_);
    }
    void bind(const KernelMemory& memory) override { kernel_->bind(memory); }
    void run(const RunContext&) override {
      device_.enqueue([this] { kernel_->run(device_.context()); });
    }

   private:
    std::unique_ptr<Kernel> kernel_;
    ApartDevice& device_;
  };
  KernelChoice later(KernelChoice choice) const {
    choice.kernel = std::make_unique<LaterKernel>(std::move(choice.kernel), *device_);
    return choice;
  }

  std::unique_ptr<ApartDevice> device_;
  std::shared_ptr<Backend> reference_ = make_backend("reference");
};

// By name: "apart", or one of the registry's; none: the default one.
inline std::shared_ptr<Backend> make_test_backend(const std::string& name, TuningOptions tuning = {}) {
  if (name == "apart") return std::make_unique<ApartBackend>();
  return make_backend(name.empty() ? default_backend() : name, std::move(tuning));
}

}  // namespace trireme::testkit
