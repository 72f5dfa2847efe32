#include "trireme/cluster/ship.hpp"

#include <fmt/format.h>
#include <link.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <thread>

#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/hash.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/cluster/child_process.hpp"
#include "trireme/cluster/greeting.hpp"

namespace trireme::cluster {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* kWrapper = R"sh(#!/bin/sh
# Starts the program with the libraries that came with it.
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$here/bin/trireme" "$@"
)sh";

// Libraries of this process; the binary and the kernel's vDSO have no path.
std::vector<fs::path> loaded_libraries() {
  std::vector<fs::path> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        const std::string path = info->dlpi_name;
        if (path.find('/') != std::string::npos) static_cast<std::vector<fs::path>*>(result)->emplace_back(path);
        return 0;
      },
      &paths);
  return paths;
}

// UCX opens modules, named with its own suffix, in the folder `ucx` next to itself.
std::vector<fs::path> ucx_modules(const fs::path& ucs) {
  const std::string name = ucs.filename().string(), ending = name.substr(std::min(name.find(".so"), name.size()));
  std::vector<fs::path> modules;
  std::error_code none;  // a build without modules
  for (const auto& entry : fs::directory_iterator(ucs.parent_path() / "ucx", none)) {
    if (entry.path().filename().string().ends_with(ending)) modules.push_back(entry.path());
  }
  return modules;
}

std::string content_of(const fs::path& path) {
  std::string content = read_text(path);
  if (content.empty()) fail(ErrorKind::unavailable, "--ship: {} cannot be read", path.string());
  return content;
}

// For the host's login shell of any kind: one portable line. The rest, of the given size, follows on standard input.
constexpr const char* kBegin = R"sh(eval "$(head -c "$1")")sh";

// The host's half, for sh: the size of this text, greeting, name, bytes, folder. It prints "there PATH", or "send" and,
// after everything has arrived, "done PATH". Incomplete shipments never have the final name; several launches, on hosts
// that share the folder, may do this concurrently. In braces, so that a truncated script does nothing.
//
// What runs from there must be ours. So every part of the path, links included, must belong to the user or root and not
// be writable by others, as in sshd; except in a sticky folder like /tmp, where nobody can replace others' files. The
// path is made part by part, so that nothing is followed unchecked. The user's own group (of the same name) may write.
constexpr std::string_view kReceive = R"sh({
set -eu
echo "$2"
name=$3 bytes=$4 base=${5:-${XDG_CACHE_HOME:-$HOME/.cache}/trireme/ship}
case $base in /*) ;; *) base=$HOME/$base ;; esac
fail() { echo "$*" >&2; exit 1; }
others_can() { [ -n "$(find "$1" -maxdepth 0 \( ! -user 0 ! -user "$(id -u)" -o ! -type l \
  \( -perm -2 -o -perm -20 ! -group "$group" \) $2 \))" ]; }
is_there() { [ -O "$folder" ] && [ -x "$folder/trireme" ]; }
group=0
[ "$(id -gn)" != "$(id -un)" ] || group=$(id -g)
umask 077
at='' rest=$base/ links=0
while [ -n "$rest" ]; do
  part=${rest%%/*} rest=${rest#*/}
  case $part in '' | .) continue ;; ..) at=${at%/*}; continue ;; esac
  next=$at/$part
  [ -e "$next" ] || [ -h "$next" ] || mkdir "$next" 2>/dev/null || [ -e "$next" ] || mkdir "$next"
  if others_can "$next" '! -perm -1000'; then
    fail "$next is not yours alone: it belongs to another user, or others can write to it; see --ship-dir"
  fi
  if [ -h "$next" ]; then
    links=$((links + 1))
    [ $links -lt 40 ] || fail "$base: too many links"
    target=$(readlink "$next")
    case $target in /*) at='' ;; esac
    rest=$target/$rest
  else
    at=$next
  fi
done
base=$at
if others_can "$base" ''; then fail "$base is not yours alone: others can write to it; see --ship-dir"; fi
folder=$base/$name
if is_there; then
  touch "$folder"
  echo "there $folder"
  exit 0
fi
free=$(df -Pk "$base" | awk 'NR == 2 { print $4 }')
[ "$free" -gt $((bytes / 1024)) ] ||
  fail "$base has room for $((free * 1024 / 1000000)) MB, but $((bytes / 1000000)) MB are needed"
new=$(mktemp -d "$base/.new.XXXXXX")
trap 'rm -rf "$new"' EXIT
trap 'exit 1' HUP INT TERM PIPE
echo send
unpack() {
  while read -r mode size name; do
    mkdir -p "$(dirname "$new/$name")" && timeout 1800 head -c "$size" >"$new/$name" || return 1
    [ "$(wc -c <"$new/$name")" -eq "$size" ] || return 0
    chmod "$mode" "$new/$name" || return 1
  done
}
why=$(unpack 2>&1) || fail "cannot write to $base: $(echo "$why" | head -n 1)"
[ -x "$new/trireme" ] || fail "the connection ended before everything arrived"
mv -T "$new" "$folder" 2>/dev/null || is_there || fail "$folder is in the way; remove it"
touch "$folder"
ls -1dt "$base"/*/ | grep -E '/[0-9a-f]{16}/$' | tail -n +4 | while IFS= read -r old; do
  if [ -O "$old" ] && [ -x "$old/trireme" ]; then rm -rf "$old"; fi
done
find "$base" -maxdepth 1 -name '.new.*' -mmin +60 -exec rm -rf {} +
echo "done $folder"
})sh";

constexpr std::size_t kMostSaid = kMostChatter + kHostGreeting.size();  // more is not for us

// One host during its delivery.
class Delivery {
 public:
  Delivery(const Shipment& shipment, const std::vector<std::string>& command, const ShipTimeouts& timeouts)
      : shipment_(shipment), timeouts_(timeouts), receiver_(start_piped(command)) {}

  void run();                                                      // until it ends or times out
  const std::optional<Ending>& ending() const { return ending_; }  // nullopt: timed out
  // The last line of its answer, "done /home/me/.cache/..."; empty if there is none.
  std::string answer() const;
  const std::string& complaints() const { return complaints_; }
  bool is_chattering() const { return said_.size() > kMostSaid && behind_greeting(said_) == std::string::npos; }
  std::string timeout_text() const;  // what we waited for in vain

 private:
  std::chrono::milliseconds timeout() const { return answer().empty() ? timeouts_.answer : timeouts_.progress; }
  // Counts only once it has answered: endless shell output is not progress.
  void note_progress() {
    if (!answer().empty()) progress_ = SteadyClock::now();
  }
  void wait_for_something();
  void write_some();
  void read_some(UniqueFd& pipe, std::string& text);

  const Shipment& shipment_;
  const ShipTimeouts timeouts_;
  PipedProcess receiver_;
  std::string_view unsent_ = kReceive;
  bool is_asked_for_all_ = false;
  std::string said_, complaints_;
  SteadyClock::time_point progress_ = SteadyClock::now();
  std::optional<Ending> ending_;
};

void Delivery::run() {
  while (!ending_ && !is_chattering() && SteadyClock::now() - progress_ < timeout()) {
    wait_for_something();
    ending_ = receiver_.process.try_wait();  // before reading, so that the output is complete
    read_some(receiver_.out, said_);
    read_some(receiver_.err, complaints_);
    const std::string last = answer();
    if (!is_asked_for_all_ && last == "send") {
      is_asked_for_all_ = true;
      unsent_ = shipment_.archive;
    }
    write_some();
    const bool is_all_said = unsent_.empty() && (is_asked_for_all_ || !last.empty());
    if (is_all_said) receiver_.in.reset();
  }
}

void Delivery::wait_for_something() {
  std::array<pollfd, 4> polled{pollfd{receiver_.out.get(), POLLIN, 0}, pollfd{receiver_.err.get(), POLLIN, 0},
                               pollfd{receiver_.process.poll_descriptor(), POLLIN, 0},
                               pollfd{unsent_.empty() ? -1 : receiver_.in.get(), POLLOUT, 0}};
  poll(polled.data(), polled.size(), static_cast<int>(std::min<std::chrono::milliseconds>(timeout(), 1s).count()));
}

// If nobody reads any more, the receiver's exit tells why.
void Delivery::write_some() {
  while (receiver_.in.is_open() && !unsent_.empty()) {
    const ssize_t count = write(receiver_.in.get(), unsent_.data(), unsent_.size());
    if (count < 0 && errno != EAGAIN) receiver_.in.reset();
    if (count <= 0) return;
    unsent_.remove_prefix(count);
    note_progress();
  }
}

void Delivery::read_some(UniqueFd& pipe, std::string& text) {
  const std::size_t before = text.size();
  read_available(pipe, text, kMostSaid);
  if (text.size() > before) note_progress();
}

std::string Delivery::answer() const {
  const std::size_t begin = behind_greeting(said_), end = said_.rfind('\n');
  if (begin == std::string::npos || end < begin) return "";
  const std::size_t before = said_.rfind('\n', end - 1);
  return said_.substr(std::max(begin, before + 1), end - std::max(begin, before + 1));
}

std::string Delivery::timeout_text() const {
  const auto seconds = std::chrono::duration<double>(timeout()).count();
  return answer().empty() ? fmt::format("does not answer within {} s", seconds)
                          : fmt::format("the copy to it has made no progress for {} s", seconds);
}

std::string problem_of(const Delivery& delivery, const HostReach& reach) {
  const std::string complaint = last_words(delivery.complaints(), reach);
  if (delivery.is_chattering()) return kChatterProblem;
  if (!delivery.ending()) return delivery.timeout_text() + (complaint.empty() ? "" : ": " + complaint);
  const Ending& ending = *delivery.ending();
  if (std::string problem = reach.failure(ending.exit_code(), complaint); !problem.empty()) return problem;
  const std::string reason = !complaint.empty()    ? complaint
                             : ending.is_success() ? fmt::format("it answers '{}'", delivery.answer())
                                                   : fmt::format("the copy process {}", ending_text(ending));
  return fmt::format("cannot copy trireme to it: {}", reason);
}

ShipResult ship_to_host(const Shipment& shipment, const std::vector<std::string>& command, const HostReach& reach,
                        const ShipTimeouts& timeouts) {
  const SteadyClock::time_point begun = SteadyClock::now();
  Delivery delivery(shipment, command, timeouts);
  delivery.run();
  const std::string answer = delivery.answer();
  ShipResult result{.was_there = answer.starts_with("there ")};
  result.seconds = seconds_since(begun);
  const std::string folder = answer.substr(std::min(answer.size(), answer.find(' ') + 1));
  if (delivery.ending() && delivery.ending()->is_success() && folder.starts_with('/')) {
    result.program = folder + "/trireme";
  } else {
    result.problem = problem_of(delivery, reach);
  }
  return result;
}

// A broken connection must not kill this process.
void block_sigpipe() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace

// libibverbs and the like open their own drivers, as does CUDA.
bool belongs_to_the_system(const std::string& library) {
  constexpr std::array kNames{"ld-linux",      "linux-vdso",   "libc.so",      "libm.so",    "libmvec.so", "libpthread",
                              "libdl.so",      "librt.so",     "libresolv.so", "libutil.so", "libanl.so",  "libnss_",
                              "libibverbs.so", "librdmacm.so", "libmlx",       "libcuda.so", "libnvidia-"};
  return std::ranges::any_of(kNames, [&](const char* name) { return library.starts_with(name); });
}

std::string packed(const std::string& name, const std::string& content, bool is_executable) {
  return fmt::format("{} {} {}\n{}", is_executable ? 700 : 600, content.size(), name, content);
}

Shipment pack_this_program() {
  std::map<std::string, fs::path> libraries;  // by name: the load order may differ
  for (const fs::path& library : loaded_libraries()) {
    const std::string name = library.filename();
    if (belongs_to_the_system(name)) continue;
    libraries["lib/" + name] = library;
    if (!name.starts_with("libucs.so")) continue;
    for (const fs::path& module : ucx_modules(library)) libraries["lib/ucx/" + module.filename().string()] = module;
  }
  Shipment shipment{.name = "", .archive = packed("bin/trireme", content_of("/proc/self/exe"), true), .libraries = 0};
  for (const auto& [name, path] : libraries) shipment.archive += packed(name, content_of(path), false);
  shipment.archive += packed("trireme", kWrapper, true);  // last: if it can be run, everything is there
  shipment.libraries = libraries.size();
  shipment.name = fmt::format("{:016x}", hash_bytes(std::as_bytes(std::span(shipment.archive))));
  return shipment;
}

std::vector<ShipResult> ship(const Shipment& shipment, const std::vector<std::string>& hosts, const HostReach& reach,
                             const std::string& folder, const ShipTimeouts& timeouts) {
  const std::string greeting(kHostGreeting.substr(0, kHostGreeting.find('\n')));
  const std::vector<std::string> receive{"sh",
                                         "-c",
                                         kBegin,
                                         "sh",
                                         std::to_string(kReceive.size()),
                                         greeting,
                                         shipment.name,
                                         std::to_string(shipment.archive.size()),
                                         folder};
  std::vector<ShipResult> results(hosts.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    threads.emplace_back([&, i] {
      block_sigpipe();
      try {
        results[i] = ship_to_host(shipment, reach.command(hosts[i], receive), reach, timeouts);
      } catch (const Error& error) {
        results[i].problem = error.what();
      }
    });
  }
  threads.clear();  // joins them
  return results;
}

}  // namespace trireme::cluster
