// The number of processes of a job, for code that starts or plans one.
#pragma once

namespace trireme::comm {

struct JobSize {
  int workers = 1;
  int servers = 0;
};

}  // namespace trireme::comm
