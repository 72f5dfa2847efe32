#include "trireme/cluster/console.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "trireme/base/error.hpp"

namespace trireme::cluster {
namespace {

constexpr std::size_t kFullBytes = 1U << 20U;
constexpr std::size_t kNeverBlocks = 4096;          // PIPE_BUF: a ready pipe takes this much at once
constexpr std::string_view kEraseToEnd = "\x1b[K";  // nothing after the text is ever kept
constexpr std::size_t kLongestLine = 1U << 20U;     // output without newlines must not fill the memory

std::string without_erasing(std::string line) {
  for (std::size_t at = line.find(kEraseToEnd); at != std::string::npos; at = line.find(kEraseToEnd, at)) {
    line.erase(at, kEraseToEnd.size());
  }
  return line;
}

void open_files(const Task& task, bool only_workers, const std::string& folder, std::array<std::ofstream, 2>& files) {
  const std::string name = fmt::format("{}-{}", only_workers ? "rank" : task.role, task.index);
  const std::array<const char*, 2> endings{".out", ".err"};
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string path = (std::filesystem::path(folder) / (name + endings[i])).string();
    files[i].open(path, std::ios::binary | std::ios::trunc);
    if (!files[i]) bad_input("--output-dir: cannot write {}: {}", path, std::strerror(errno));
  }
}

}  // namespace

void LineBuffer::append(std::string_view text, const OnLine& on_line) {
  for (const char c : text) {
    if (c == '\n') {
      end_line(on_line);
    } else if (c == '\r') {
      returned_ = true;
    } else {
      if (returned_) line_.clear();
      overwritten_ = overwritten_ || returned_;
      returned_ = false;
      line_ += c;
      if (line_.size() >= kLongestLine) end_line(on_line);
    }
  }
}

void LineBuffer::finish(const OnLine& on_line) {
  if (overwritten_ ? !bar().empty() : !line_.empty()) end_line(on_line);
}

std::string LineBuffer::bar() const { return overwritten_ ? without_erasing(line_) : ""; }

void LineBuffer::end_line(const OnLine& on_line) {
  on_line(overwritten_ ? without_erasing(line_) : line_);
  line_.clear();
  returned_ = overwritten_ = false;
}

Console::Console(const JobDescription& job, const ConsoleOptions& options)
    : job_(job),
      options_(options),
      shows_bar_(isatty(options.err) != 0),
      out_is_terminal_(isatty(options.out) != 0),
      tasks_(job.tasks.size()) {
  if (options.output_folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(options.output_folder, error);
  if (error) bad_input("--output-dir {}: cannot make this folder: {}", options.output_folder, error.message());
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    open_files(job.tasks[i], job.has_only_workers(), options.output_folder, tasks_[i].files);
  }
}

void Console::add_output(int task, int stream, std::string_view text) {
  TaskOutput& output = tasks_.at(task);
  const std::size_t index = stream - 1;
  keep(task, stream, text);
  output.lines[index].append(text, [&](const std::string& line) { show_line(task, stream, line); });
  if (shows_bar_ && task == 0 && stream == 2 && output.lines[index].bar() != bar_) {
    hide_bar();
    bar_ = output.lines[index].bar();
    show_bar();
  }
}

void Console::finish(int task) {
  if (task == 0) {
    hide_bar();
    bar_.clear();
  }
  TaskOutput& output = tasks_.at(task);
  for (const int stream : {1, 2}) {
    output.lines[stream - 1].finish([&](const std::string& line) { show_line(task, stream, line); });
  }
}

void Console::keep_error(int task, std::string_view text) { keep(task, 2, fmt::format("trireme: error: {}\n", text)); }

// Reports a full disk once per file: later output would be incomplete.
void Console::keep(int task, int stream, std::string_view text) {
  std::ofstream& file = tasks_.at(task).files[stream - 1];
  if (!file.is_open()) return;
  errno = 0;
  file << text << std::flush;
  if (file) return;
  say(fmt::format("trireme: warning: --output-dir {}: no longer writing {} of {} {}: {}", options_.output_folder,
                  stream == 1 ? "stdout" : "stderr", job_.tasks[task].role, job_.tasks[task].index,
                  std::strerror(errno)));
  file.close();
}

void Console::show_line(int task, int stream, const std::string& line) {
  hide_bar();
  write(stream == 1 ? options_.out : options_.err, fmt::format("{}{}\n", job_.prefix(task), line));
  show_bar();
}

void Console::say(const std::string& text) {
  hide_bar();
  write(options_.err, text + "\n");
  show_bar();
}

void Console::hide_bar() {
  if (!bar_.empty()) write(options_.err, "\r\x1b[K");
}

void Console::show_bar() {
  if (!bar_.empty()) write(options_.err, bar_);
}

// One queue for both streams: on a shared terminal the order matters.
void Console::write(int descriptor, std::string text) {
  unwritten_bytes_ += text.size();
  if (!unwritten_.empty() && unwritten_.back().descriptor == descriptor) {
    unwritten_.back().text += text;
  } else {
    unwritten_.push_back({descriptor, std::move(text)});
  }
}

int Console::descriptor() const { return unwritten_.empty() ? -1 : unwritten_.front().descriptor; }

bool Console::is_full() const { return unwritten_bytes_ > kFullBytes; }

void Console::flush() {
  while (!unwritten_.empty()) {
    pollfd polled{unwritten_.front().descriptor, POLLOUT, 0};
    if (poll(&polled, 1, 0) <= 0 || !write_first_chunk()) return;
  }
}

// False: try again later.
bool Console::write_first_chunk() {
  Chunk& chunk = unwritten_.front();
  const ssize_t count = ::write(chunk.descriptor, chunk.text.data(), std::min(chunk.text.size(), kNeverBlocks));
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  std::size_t done = chunk.text.size();  // drops the text if nobody reads the stream
  if (count >= 0) done = count;
  if (count < 0 && chunk.descriptor == options_.out && !out_is_terminal_) broken_ = true;
  unwritten_bytes_ -= done;
  chunk.text.erase(0, done);
  if (chunk.text.empty()) unwritten_.pop_front();
  return true;
}

}  // namespace trireme::cluster
