// The address a task listens on. Used by Listener.
#pragma once

#include <string>

namespace trireme::comm::rpc {

// "10.0.0.1:2230" of "alpha:2230": one address, where a name may stand for several. Error(bad_input) begins with `who`.
std::string resolve_address(const std::string& address, const std::string& who);
// Why nobody can listen on it now: "127.0.0.1:2221 is in use; ...". Empty: it seems to be possible.
std::string why_not_listen(const std::string& resolved);

}  // namespace trireme::comm::rpc
