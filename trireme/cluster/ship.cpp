#include "trireme/cluster/ship.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <sstream>
#include <thread>

#include "trireme/base/error.hpp"
#include "trireme/cluster/child_process.hpp"

namespace trireme::cluster {
namespace {

using Clock = std::chrono::steady_clock;

// The host's half, for its shell: name, bytes, folder. It says "there PATH", or "send" and then, when all has arrived,
// "done PATH". What is not complete never has the name by which it is looked for; several launches, on several hosts
// that share the folder, may do this at the same time.
constexpr const char* kReceive = R"sh(
set -eu
name=$1 bytes=$2 base=${3:-${XDG_CACHE_HOME:-$HOME/.cache}/trireme/ship}
case $base in /*) ;; *) base=$HOME/$base ;; esac
folder=$base/$name
fail() { echo "$*" >&2; exit 1; }
is_there() { [ -O "$folder" ] && [ -x "$folder/trireme" ]; }
if is_there; then
  touch "$folder"
  echo "there $folder"
  exit 0
fi
mkdir -p "$base"
free=$(df -Pk "$base" | awk 'NR == 2 { print $4 }')
[ "$free" -gt $((bytes / 1024)) ] ||
  fail "$base has room for $((free * 1024 / 1000000)) MB, and $((bytes / 1000000)) MB are needed"
new=$(mktemp -d "$base/.new.XXXXXX")
trap 'rm -rf "$new"' EXIT
trap 'exit 1' HUP INT TERM PIPE
echo send
why=$(timeout 1800 tar -xof - -C "$new" 2>&1) || fail "cannot write to $base: $(echo "$why" | head -n 1)"
[ -x "$new/trireme" ] || fail "the connection ended before all had arrived"
mv -T "$new" "$folder" 2>/dev/null || is_there || fail "$folder is in the way; remove it"
touch "$folder"
ls -1dt "$base"/*/ | grep -E '/[0-9a-f]{16}/$' | tail -n +4 | while IFS= read -r old; do
  if [ -O "$old" ] && [ -x "$old/trireme" ]; then rm -rf "$old"; fi
done
find "$base" -maxdepth 1 -name '.new.*' -mmin +60 -exec rm -rf {} +
echo "done $folder"
)sh";

// To the end of a line, without it, or of all.
std::string read_line(const UniqueFd& pipe) {
  std::string line;
  for (char byte = 0; read(pipe.get(), &byte, 1) == 1 && byte != '\n';) line += byte;
  return line;
}

std::string read_all(const UniqueFd& pipe) {
  std::string text;
  std::array<char, 4096> chunk{};
  while (const ssize_t count = read(pipe.get(), chunk.data(), chunk.size())) {
    if (count < 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(count));
  }
  return text;
}

// Ends early where nobody reads any more: whoever has stopped says why.
void write_all(const UniqueFd& pipe, const std::string& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = write(pipe.get(), bytes.data() + sent, bytes.size() - sent);
    if (count < 0) return;
    sent += static_cast<std::size_t>(count);
  }
}

// "done /home/me/.cache/..."
std::string folder_in(const std::string& answer) {
  const std::size_t space = answer.find(' ');
  return space == std::string::npos ? "" : answer.substr(space + 1);
}

ShipResult ship_to_host(const Shipment& shipment, const std::string& host, const HostReach& reach,
                        const std::vector<std::string>& command) {
  const Clock::time_point begun = Clock::now();
  PipeEnds in = make_pipe(), out = make_pipe(), err = make_pipe();
  ChildProcess connection(
      {.command = reach.command(host, command), .in = in.read.get(), .out = out.write.get(), .err = err.write.get()});
  for (UniqueFd* theirs : {&in.read, &out.write, &err.write}) theirs->reset();
  std::string answer = read_line(out.read);
  ShipResult result{.was_there = answer.starts_with("there ")};
  if (answer == "send") {
    write_all(in.write, shipment.archive);
    in.write.reset();
    answer = read_line(out.read);
  }
  in.write.reset();
  const std::string complaint = last_words(read_all(err.read), reach);
  const Ending ending = connection.wait();
  result.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  const std::string folder = folder_in(answer);
  if (ending.is_success() && folder.starts_with('/')) {
    result.program = folder + "/trireme";
  } else if (result.problem = reach.failure(ending.exit_code(), complaint); result.problem.empty()) {
    const std::string reason = !complaint.empty()    ? complaint
                               : ending.is_success() ? fmt::format("it answers '{}'", answer)
                                                     : fmt::format("the copying {}", ending_text(ending));
    result.problem = fmt::format("trireme cannot be copied to it: {}", reason);
  }
  return result;
}

// A connection that breaks is no reason for a signal to end us all.
void block_sigpipe() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace

std::vector<ShipResult> ship(const Shipment& shipment, const std::vector<std::string>& hosts, const HostReach& reach,
                             const std::string& folder) {
  const std::vector<std::string> receive{
      "sh", "-c", kReceive, "sh", shipment.name, std::to_string(shipment.archive.size()), folder};
  std::vector<ShipResult> results(hosts.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    threads.emplace_back([&, i] {
      block_sigpipe();
      try {
        results[i] = ship_to_host(shipment, hosts[i], reach, receive);
      } catch (const Error& error) {
        results[i].problem = error.what();
      }
    });
  }
  threads.clear();  // waits for them
  return results;
}

}  // namespace trireme::cluster
