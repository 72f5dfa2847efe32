// How many processes a job has. Known to those who start one and to those who plan what it does.
#pragma once

namespace trireme::comm {

struct JobSize {
  int workers = 1;
  int servers = 0;
};

}  // namespace trireme::comm
