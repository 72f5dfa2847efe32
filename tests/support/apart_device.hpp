// A device that is not the host, for tests of everything that has to know the difference: memory that host code cannot
// touch, work that is done as late as possible and in the least convenient order that its lanes and signals allow. Its
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

 private:
  struct Round {
    std::map<int, std::vector<float>> brought;  // by rank
    int taken = 0;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, int> sums_of_;  // rank -> how many it has begun
  std::map<int, Round> rounds_;
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
    refuse_while_recording("synchronize()");
    const Access access(*this);
    // The lanes from the last to the first: those of an exchange run ahead of what they forget to wait for.
    for (bool moved = true; moved;) {
      moved = false;
      for (auto lane = lanes_.rbegin(); lane != lanes_.rend(); ++lane) {
        while (advance(lane->second)) moved = true;
      }
    }
    for (const auto& [lane, queue] : lanes_) {
      if (!queue.empty()) fail(ErrorKind::failed, "lane {} waits for a signal that never comes", lane);
    }
  }

  void set_context(const RunContext& context) override {
    give([this, context] { context_ = context; });
  }
  const RunContext& context() const { return context_; }

  std::unique_ptr<Recording> record(const std::function<void()>& work) override;
  int recordings() const { return recordings_; }

  int lanes() const override { return 3; }
  int outward_lane() const override { return 3; }
  int inward_lane() const override { return 4; }
  int input_lane() const override { return 5; }
  void set_lane(int lane) override { lane_ = lane; }
  int signal() override {
    passed_.push_back(false);
    const int id = static_cast<int>(passed_.size()) - 1;
    add({.kind = Item::Kind::signal, .signal = id});
    return id;
  }
  void wait_for(int signal) override { add({.kind = Item::Kind::wait, .signal = signal}); }
  void wait_on_host(int signal) override {
    refuse_while_recording("wait_on_host()");
    const Access access(*this);
    run_until(signal);
  }

  bool has_groups() const override { return options_.hall != nullptr; }
  std::string name_group() override { return "hall"; }
  std::unique_ptr<DeviceGroup> join_group(const GroupPlan& plan) override;

  void mark(int index) override {
    give([this, index] { marks_[index] = std::chrono::steady_clock::now(); });
  }
  double seconds_between(int first, int second) override {
    synchronize();
    return std::chrono::duration<double>(marks_.at(second) - marks_.at(first)).count();
  }

  // Work of kernels, in the current lane.
  void give(std::function<void()> work) { add({.kind = Item::Kind::work, .work = std::move(work)}); }

 private:
  struct Item {
    enum class Kind { work, signal, wait } kind = Kind::work;
    std::function<void()> work = {};
    int signal = -1;
  };
  using Recorded = std::vector<std::pair<int, Item>>;  // with lanes
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
    give([=] { std::memcpy(to, from, static_cast<std::size_t>(bytes)); });
  }

  // Nothing that was given may find its memory gone.
  void finish() noexcept {
    try {
      synchronize();
    } catch (const Error&) {  // the test is failing already
      lanes_.clear();
    }
  }
  void refuse_while_recording(const char* what) const {
    if (tape_ != nullptr) fail(ErrorKind::failed, "{} while work is recorded", what);
  }
  void add(Item item) {
    if (tape_ != nullptr) {
      tape_->emplace_back(lane_, std::move(item));
    } else {
      lanes_[lane_].push_back(std::move(item));
    }
  }
  // Does the next thing of a lane, unless it has to wait.
  bool advance(std::deque<Item>& lane) {
    if (lane.empty()) return false;
    Item& next = lane.front();
    if (next.kind == Item::Kind::wait && !passed_.at(static_cast<std::size_t>(next.signal))) return false;
    if (next.kind == Item::Kind::work) next.work();
    if (next.kind == Item::Kind::signal) passed_[static_cast<std::size_t>(next.signal)] = true;
    lane.pop_front();
    return true;
  }
  // No more than what has to be done for this signal.
  void run_until(int signal) {
    const auto gives = [&](const Item& item) { return item.kind == Item::Kind::signal && item.signal == signal; };
    for (auto& [number, lane] : lanes_) {
      if (std::none_of(lane.begin(), lane.end(), gives)) continue;
      while (!passed_.at(static_cast<std::size_t>(signal))) {
        if (!advance(lane)) run_until(lane.front().signal);
      }
      return;
    }
    if (!passed_.at(static_cast<std::size_t>(signal))) fail(ErrorKind::failed, "nobody gives signal {}", signal);
  }

  Options options_;
  std::map<std::byte*, std::size_t> regions_;
  std::map<int, std::deque<Item>> lanes_;
  std::vector<bool> passed_;  // [signal]
  int lane_ = 0;
  Recorded* tape_ = nullptr;
  int recordings_ = 0;
  RunContext context_;
  std::map<int, std::chrono::steady_clock::time_point> marks_;
};

// A replay is work of lane 0, with other lanes between its beginning and its end.
class ApartDevice::Tape final : public Recording {
 public:
  Tape(ApartDevice& device, Recorded items) : device_(device), items_(std::move(items)) { check(); }

  void replay() override {
    std::map<int, int> signals;  // recorded -> of this replay
    for (const auto& [lane, item] : items_) {
      device_.set_lane(lane);
      if (item.kind == Item::Kind::signal) {
        signals[item.signal] = device_.signal();
      } else if (item.kind == Item::Kind::wait) {
        device_.wait_for(signals.at(item.signal));
      } else {
        device_.give(item.work);
      }
    }
    device_.set_lane(0);
  }

 private:
  // What other lanes do begins after something in the recording and ends before its end.
  void check() const {
    std::set<int> given, waited, begun{0}, open;
    std::map<int, int> last_signal;
    for (const auto& [lane, item] : items_) {
      if (item.kind == Item::Kind::wait) {
        if (!given.contains(item.signal)) fail(ErrorKind::failed, "a recording waits for what was before it");
        begun.insert(lane);
        for (const auto& [other, signal] : last_signal) {
          if (signal == item.signal) open.erase(other);
        }
      }
      if (!begun.contains(lane)) fail(ErrorKind::failed, "lane {} is recorded before it waits for lane 0", lane);
      if (lane != 0) open.insert(lane);
      if (item.kind == Item::Kind::signal) {
        given.insert(item.signal);
        last_signal[lane] = item.signal;
      }
    }
    if (!open.empty()) fail(ErrorKind::failed, "nobody waits for lane {} at the end of a recording", *open.begin());
  }

  ApartDevice& device_;
  Recorded items_;
};

class ApartDevice::Group final : public DeviceGroup {
 public:
  Group(ApartDevice& device, int rank, int ranks) : device_(device), rank_(rank), ranks_(ranks) {}
  // As NCCL's, which waits for recordings of its sums to go first, for ever.
  ~Group() override { EXPECT_EQ(in_use_.use_count(), 1) << "a recording has sums of a group that goes"; }
  void sum(float* values, std::int64_t elements, const float* factor) override {
    device_.give([this, values, elements, factor, in_use = in_use_] {
      for (std::int64_t i = 0; i < elements; ++i) values[i] *= *factor;
      device_.options_.hall->sum(rank_, ranks_, values, static_cast<std::size_t>(elements));
    });
  }

 private:
  ApartDevice& device_;
  int rank_, ranks_;
  std::shared_ptr<int> in_use_ = std::make_shared<int>();
};

inline std::unique_ptr<Recording> ApartDevice::record(const std::function<void()>& work) {
  if (!options_.records) return nullptr;
  synchronize();
  Recorded items;
  tape_ = &items;
  work();
  tape_ = nullptr;
  ++recordings_;
  return std::make_unique<Tape>(*this, std::move(items));
}

inline std::unique_ptr<DeviceGroup> ApartDevice::join_group(const GroupPlan& plan) {
  if (plan.name != name_group()) fail(ErrorKind::failed, "a group called '{}'", plan.name);
  return std::make_unique<Group>(*this, plan.rank, plan.ranks);
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
    void bind(const KernelMemory& memory) override { kernel_->bind(memory); }
    void run(const RunContext&) override {
      device_.give([this] { kernel_->run(device_.context()); });
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
  std::unique_ptr<Backend> reference_ = make_backend("reference");
};

// By name: "apart", or one of the registry's; none: the default one.
inline std::unique_ptr<Backend> make_test_backend(const std::string& name, TuningOptions tuning = {}) {
  if (name == "apart") return std::make_unique<ApartBackend>();
  return make_backend(name.empty() ? default_backend() : name, std::move(tuning));
}

}  // namespace trireme::testkit
