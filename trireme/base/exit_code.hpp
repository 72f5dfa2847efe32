// What a program ends with after an error, by the kind of the error. Used by main(), and by the launcher, which sees
// the exit codes of others.
#pragma once

#include "trireme/base/error.hpp"

namespace trireme {

inline int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::bad_input:
      return 2;
    case ErrorKind::unavailable:
      return 3;
    case ErrorKind::failed:
      return 1;
  }
  return 1;
}

// The other way round; codes of others are failures.
inline ErrorKind error_kind(int code) {
  for (const ErrorKind kind : {ErrorKind::bad_input, ErrorKind::unavailable}) {
    if (code == exit_code(kind)) return kind;
  }
  return ErrorKind::failed;
}

}  // namespace trireme
