// Loaded before the C library (LD_PRELOAD): a second after a process has first asked for the time, the clock of the
// wall is an hour ahead, as if somebody had set it.
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

namespace {

constexpr time_t kJump = 3600;

using ClockFunction = int (*)(clockid_t, timespec*);

ClockFunction real_clock() {
  static const auto function = reinterpret_cast<ClockFunction>(dlsym(RTLD_NEXT, "clock_gettime"));
  return function;
}

time_t seconds_ahead() {
  static timespec start{};
  timespec now{};
  real_clock()(CLOCK_MONOTONIC, &now);
  if (start.tv_sec == 0) start = now;
  return now.tv_sec - start.tv_sec >= 1 ? kJump : 0;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = real_clock()(clock, time);
  if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += seconds_ahead();
  return result;
}

extern "C" int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return result;
}

extern "C" time_t time(time_t* place) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (place != nullptr) *place = now.tv_sec;
  return now.tv_sec;
}
